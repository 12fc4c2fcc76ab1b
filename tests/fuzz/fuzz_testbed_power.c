/* State files of bring-up with power: refused or taken, then written the same again. */
#include <stdint.h>
#include <stdlib.h>

#include "controller/testbed/power.h"
#include "tests/fuzz/two_hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct power *b = NULL;
	struct power_finding *v = NULL;
	struct buf out = { 0 };
	int n;

	if (power_new(two_hosts("sim"), &b, NULL)) {
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
