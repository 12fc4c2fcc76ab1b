/* State files of bring-up: refused or taken, then written the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/bringup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char text[] =
	"weft: 1\nfabric: t\n"
	"hosts:\n  - { name: \"h[0-1]\", ports: p0, rate: 1Gbps }\n"
	"switches:\n  - { name: s, size: 2x2, driver: linux-tc, "
	"options: { fabric: t } }\n"
	"fibres:\n  - { from: \"h[0-1].p0\", to: \"s.[1-2]\" }\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct model_fabric *f;
	struct err_list errs = { 0 };
	struct bringup *b = NULL;
	struct bringup_finding *v = NULL;
	struct buf out = { 0 };
	int n;

	if (!f) {
		if (model_parse("t", text, sizeof(text) - 1, &f, &errs)) {
			abort();
		}
		/* So that a corpus need not know the hash. */
		strcpy(f->hash, "x");
	}
	if (bringup_new(f, &b, NULL)) {
		abort();
	}
	if (bringup_load(b, (const char *)data, len, NULL) == 0) {
		if (bringup_save(b, &out, NULL) ||
		    bringup_load(b, out.data, out.len, NULL) ||
		    bringup_findings(b, &v, &n, NULL)) {
			abort();
		}
		free(v);
	}
	buf_fini(&out);
	bringup_free(b);
	return 0;
}
