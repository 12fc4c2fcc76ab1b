/* State files of bring-up with power: refused or taken, then written the same again. */
#include <stdint.h>
#include <stdlib.h>

#include "controller/testbed/cabling_power_only.h"
#include "tests/fuzz/two_hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char rest[] =
	"switches:\n  - { name: s, size: 2x2, driver: sim }\n"
	"panels:\n  - { name: p, size: 2x2, driver: sim }\n"
	"fibres:\n  - { from: \"h[0-1].p0.tx\", to: \"p.in[1-2]\" }\n"
	"  - { from: \"p.out[1-2]\", to: \"s.in[1-2]\" }\n";

/* What follows from any tries that are taken. */
static void conclude(struct power *p)
{
	struct power_finding *v = NULL;
	char (*unseen)[256] = NULL;
	struct buf yaml = { 0 };
	struct optics_xc xc;
	int device, n;

	blind_settle(p);
	blind_next(p, &device, &xc);
	if (blind_moves_left(p) < 0 || power_findings(p, &v, &n, NULL) ||
	    power_unseen(p, &unseen, &n, NULL)) {
		abort();
	}
	power_yaml(p, &yaml, NULL);	/* may be no fabric */
	buf_fini(&yaml);
	free(unseen);
	free(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct power *b = NULL;
	struct buf out = { 0 };

	if (power_new(two_hosts(rest), &b, NULL)) {
		abort();
	}
	b->devices[1].blind = b->devices[1].robot = true;
	if (power_load(b, (const char *)data, len, NULL) == 0) {
		if (power_save(b, &out, NULL) ||
		    power_load(b, out.data, out.len, NULL)) {
			abort();
		}
		conclude(b);
	}
	buf_fini(&out);
	power_free(b);
	return 0;
}
