/* State files of bring-up with power: refused or taken, then written the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/power.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char text[] =
	"weft: 1\nfabric: t\n"
	"hosts:\n  - { name: \"h[0-1]\", ports: p0, rate: 1Gbps }\n"
	"switches:\n  - { name: s, size: 2x2, driver: sim }\n"
	"fibres:\n  - { from: \"h[0-1].p0\", to: \"s.[1-2]\" }\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct model_fabric *f;
	struct err_list errs = { 0 };
	struct power *b = NULL;
	struct power_finding *v = NULL;
	struct buf out = { 0 };
	int n;

	if (!f) {
		if (model_parse("t", text, sizeof(text) - 1, &f, &errs)) {
			abort();
		}
		/* So that a corpus need not know the hash. */
		strcpy(f->hash, "x");
	}
	if (power_new(f, &b, NULL)) {
		abort();
	}
	if (power_load(b, (const char *)data, len, NULL) == 0) {
		if (power_save(b, &out, NULL) ||
		    power_load(b, out.data, out.len, NULL) ||
		    power_findings(b, &v, &n, NULL)) {
			abort();
		}
		free(v);
	}
	buf_fini(&out);
	power_free(b);
	return 0;
}
