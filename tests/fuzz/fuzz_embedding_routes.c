/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as routes of an embedding: a schedule whose arcs all have routes from
 * tail to head, which its file keeps, or an error that says something. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collective/embedding/embedding.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good) {
		abort();
	}
}

static struct topo *parse(const char *expr)
{
	struct topo *t;

	check(topo_parse(expr, &t, NULL, NULL) == 0);
	return t;
}

/* Each of four sends its shard round a ring one way. */
static struct coll_sched *round_a_ring(void)
{
	struct coll_sched *s;

	check(coll_new(COLL_ALLGATHER, parse("UniRing(1,4)"), 1, 0, 0, &s, NULL) == 0);
	for (int step = 0; step < 3; step++) {
		for (int u = 0; u < 4; u++) {
			struct coll_xfer x = { step, u, (u + 4 - step) % 4, COLL_NO_DEST, 0, 0,
					       COLL_OP_COPY, 0 };

			check(coll_add(s, &x, NULL) == 0);
		}
	}
	check(coll_finish(s, NULL) == 0);
	return s;
}

static void check_routes(const struct coll_sched *s)
{
	for (int64_t i = 0; i < coll_n_arc_routes(s); i++) {
		struct coll_arc_route r = coll_arc_route(s, i);
		const struct topo_arc *a = topo_arc(coll_topo(s), r.arc);
		int at = a->src;

		for (int h = 0; h < r.n; h++) {
			check(topo_arc(coll_physical(s), r.hops[h])->src == at);
			at = topo_arc(coll_physical(s), r.hops[h])->dst;
		}
		check(at == a->dst && r.weight > 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct coll_sched *s = round_a_ring(), *e = NULL, *again = NULL;
	struct err err = { 0 };
	struct buf b = { 0 };

	if (coll_embed_routes(s, parse("HyperX(2,2)"), (const char *)data, size, 0, &e, &err)) {
		check(err.code != 0 && err.msg[0]);
	} else {
		check_routes(e);
		coll_to_json(e, &b);
		check(coll_from_json(b.data, b.len, &again, NULL) == 0);
		check(coll_n_arc_routes(again) == coll_n_arc_routes(e));
	}
	buf_fini(&b);
	coll_free(s);
	coll_free(e);
	coll_free(again);
	return 0;
}
