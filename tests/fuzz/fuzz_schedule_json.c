/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a JSON schedule: what reads can be verified, simulated and written, and
 * reads the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void simulate(const struct coll_sched *s, bool asynchronous)
{
	const struct coll_sim_options o = {
		.cost = { .alpha_ns = 10, .link_bps = 1000000000, .size_bytes = 1000 },
		.asynchronous = asynchronous,
	};
	struct coll_sim sim = { 0 };
	struct buf svg = { 0 };
	struct err err;

	coll_simulate(s, &o, &sim, &svg, &err);
	coll_sim_fini(&sim);
	buf_fini(&svg);
}

/* Small compact schedules are as right as what they stand for. */
static void check_unfolded(const struct coll_sched *s)
{
	struct coll_sched *flat;
	struct err err;
	int64_t n;

	coll_xfers(s, &n);
	if (!coll_group(s) || coll_part(s) >= 0 || n * topo_group_order(coll_group(s)) > 4096 ||
	    coll_unfold(s, &flat, &err)) {
		return;
	}
	if ((coll_verify(s, NULL, &err) == 0) != (coll_verify(flat, NULL, &err) == 0)) {
		abort();
	}
	coll_free(flat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct coll_sched *s, *again;
	struct buf first = { 0 }, second = { 0 };
	struct err err;

	if (coll_from_json((const char *)data, size, &s, &err)) {
		return 0;
	}
	coll_verify(s, NULL, &err);
	check_unfolded(s);
	simulate(s, false);
	simulate(s, true);
	coll_to_json(s, &first);
	if (coll_from_json(first.data, first.len, &again, &err)) {
		abort();
	}
	coll_to_json(again, &second);
	if (strcmp(first.data, second.data) != 0) {
		abort();
	}
	buf_fini(&first);
	buf_fini(&second);
	coll_free(again);
	coll_free(s);
	return 0;
}
