/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a step and its plan: refused with errors that have text, or read, held against what
 * they say without harm, and written as they were. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collective/workload/workload.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "tests/unit/model/invariants.h"

#define MAX_BYTES 65536
#define MAX_RANKS 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_lights(const struct workload *w, const struct workload_plan *plan)
{
	struct topo **lights = x_new(plan->lights.n + 1, sizeof(*lights));
	struct err err = { 0 };
	size_t n = 0;
	int rc = 0;

	while (n < plan->lights.n &&
	       !(rc = workload_light_topo(w, &plan->lights.v[n], &lights[n], &err))) {
		n++;
	}
	if (!rc) {
		rc = workload_check(w, plan, lights, &err);
	}
	HOLDS(rc == 0 || err.msg[0]);
	while (n > 0) {
		topo_free(lights[--n]);
	}
	free(lights);
}

static void write_again(const struct workload *w, const struct workload_plan *plan)
{
	struct buf first = { 0 }, second = { 0 };
	struct err_list errs = { 0 };
	struct workload_plan *p;
	struct workload *v;

	workload_to_json(w, plan, &first);
	HOLDS(workload_from_json("again", first.data, first.len, &v, &p, &errs) == 0);
	workload_to_json(v, p, &second);
	HOLDS(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	workload_plan_free(p);
	workload_free(v);
	buf_fini(&first);
	buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err_list errs = { 0 };
	struct workload_plan *plan;
	struct workload *w;
	int rc;

	if (size > MAX_BYTES) {
		return 0;
	}
	rc = workload_from_json("step.json", (const char *)data, size, &w, &plan, &errs);
	HOLDS((rc == 0) == (errs.n == 0));
	for (int i = 0; i < errs.n; i++) {
		HOLDS(errs.v[i].code < 0 && errs.v[i].msg[0]);
	}
	err_list_fini(&errs);
	if (rc) {
		return 0;
	}
	if (workload_ranks(w, WORKLOAD_ALL_AXES) <= MAX_RANKS) {
		check_lights(w, plan);
	}
	write_again(w, plan);
	workload_plan_free(plan);
	workload_free(w);
	return 0;
}
