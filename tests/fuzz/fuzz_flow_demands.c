/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of demands: whatever the bytes, whole numbers that keep their promises or an
 * error that says something. */
#include <stdint.h>
#include <stdlib.h>

#include "collective/flow/flow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct flow_demands d;
	struct err err = { 0 };
	int64_t largest = 0;

	if (flow_demands_parse((const char *)data, size, 3, &d, &err)) {
		check(err.code != 0 && err.msg[0] && !d.size);
		return 0;
	}
	for (int u = 0; u < 3; u++) {
		for (int v = 0; v < 3; v++) {
			int64_t one = flow_demand(&d, u, v);

			check(one >= 0 && one <= FLOW_MAX_DEMAND && (u != v || one == 0));
			largest = one > largest ? one : largest;
		}
	}
	check(largest > 0 && largest == d.largest && d.bytes >= 0);
	flow_demands_fini(&d);
	return 0;
}
