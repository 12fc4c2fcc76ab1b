/* SPDX-License-Identifier: Apache-2.0 */
/* State files of bring-up with power: refused or taken, then written the same again. */
#include <stdint.h>
#include <stdlib.h>

#include "controller/testbed/bringup_private.h"
#include "tests/fuzz/two_hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char rest[] =
	"switches:\n  - { name: s, size: 2x2, driver: sim }\n"
	"panels:\n  - { name: p, size: 2x2, driver: sim }\n"
	"fibres:\n  - { from: \"h[0-1].p0.tx\", to: \"p.in[1-2]\" }\n"
	"  - { from: \"p.out[1-2]\", to: \"s.in[1-2]\" }\n";

/* What follows from any tries that are taken. */
static void conclude(struct bringup *b)
{
	struct bringup_finding *v;
	char (*unseen)[BRINGUP_NAME_MAX];
	struct buf yaml = { 0 };
	struct optics_xc xc;
	int device, n;

	bringup_settle(b);
	bringup_next_pair(b, &device, &xc);
	if (bringup_moves_left(b) < 0) {
		abort();
	}
	bringup_findings(b, &v, &n);
	bringup_unseen(b, &unseen, &n);
	bringup_yaml(b, &yaml, NULL);	/* may be no fabric */
	buf_fini(&yaml);
	free(unseen);
	free(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bringup *b = NULL;
	struct buf out = { 0 };

	if (bringup_new(two_hosts(rest), &b, NULL)) {
		abort();
	}
	b->devices[1].unmonitored = b->devices[1].robot = true;
	if (bringup_load(b, (const char *)data, len, NULL) == 0) {
		if (bringup_save(b, &out, NULL) ||
		    bringup_load(b, out.data, out.len, NULL)) {
			abort();
		}
		conclude(b);
	}
	buf_fini(&out);
	bringup_free(b);
	return 0;
}
