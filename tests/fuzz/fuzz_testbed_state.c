/* SPDX-License-Identifier: Apache-2.0 */
/* State files of bring-up: refused or taken, then written the same again. */
#include <stdint.h>
#include <stdlib.h>

#include "controller/testbed/bringup.h"
#include "tests/fuzz/two_hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char rest[] =
	"switches:\n  - { name: \"s[0-1]\", size: 2x2, driver: linux-tc, "
	"options: { fabric: t } }\n"
	"fibres:\n  - { from: \"h0.p0\", to: \"s0.1\" }\n"
	"  - { from: \"h1.p0\", to: \"s1.1\" }\n"
	"  - { from: \"s0.2\", to: \"s1.2\" }\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bringup *b = NULL;
	struct bringup_finding *v;
	struct buf out = { 0 }, yaml = { 0 };
	int n;

	if (bringup_new(two_hosts(rest), &b, NULL)) {
		abort();
	}
	if (bringup_load(b, (const char *)data, len, NULL) == 0) {
		if (bringup_save(b, &out, NULL) ||
		    bringup_load(b, out.data, out.len, NULL)) {
			abort();
		}
		bringup_findings(b, &v, &n);
		bringup_yaml(b, &yaml, NULL);	/* may be no fabric */
		free(v);
	}
	buf_fini(&yaml);
	buf_fini(&out);
	bringup_free(b);
	return 0;
}
