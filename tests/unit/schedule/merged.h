/* SPDX-License-Identifier: Apache-2.0 */
/* An all-reduce whose sums are merged, by hand. Include after common.h. */
#ifndef WEFT_TESTS_UNIT_SCHEDULE_MERGED_H
#define WEFT_TESTS_UNIT_SCHEDULE_MERGED_H

static inline int neighbour(const struct topo *t, int u, int i)
{
	int first;

	topo_out(t, u, &first);
	return topo_arc(t, first + i)->dst;
}

static inline int place_of(const struct topo *t, int u, int v)
{
	int i = 0;

	while (neighbour(t, u, i) != v) {
		i++;
	}
	return i;
}

/* Two steps on a graph of diameter 2 without triangles and squares, such as Petersen's: every rank
 * sends its own, then to each neighbour the sum of what the others sent. What neighbour i sent is
 * kept under number i. */
static inline struct coll_sched *merged_moore(const char *expr, int chunks, bool alike)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, expr, chunks);
	const struct topo *t = coll_topo(s);
	struct err err = { 0 };
	int d = topo_max_degree(t);

	if (alike) {
		must(coll_set_alike(s, &err), &err);
	}
	for (int shard = 0; shard < (alike ? 1 : topo_n(t)); shard++) {
		for (int a = 0; a < topo_m(t); a++) {
			int u = topo_arc(t, a)->src, v = topo_arc(t, a)->dst;
			struct coll_xfer x = { .arc = a, .origin = shard, .dest = COLL_NO_DEST,
					       .last = chunks - 1, .op = COLL_OP_REDUCE };

			x.kept = (uint16_t)(place_of(t, v, u) + 1);
			must(coll_add(s, &x, &err), &err);
			x.step = 1;
			x.op = COLL_OP_FORWARD;
			x.kept = (uint16_t)topo_n(t);
			for (x.dest = 0; x.dest < d; x.dest++) {
				if (neighbour(t, u, x.dest) != v) {
					must(coll_add(s, &x, &err), &err);
				}
			}
		}
	}
	must(coll_finish(s, &err), &err);
	return s;
}

/* Two steps where exactly one walk of two arcs leads from each rank to each, as on GenKautz(2,4):
 * what came in the first goes on in the second, and a rank's own comes back to it. */
static inline struct coll_sched *merged_walks(const char *expr, int chunks, bool alike)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, expr, chunks);
	const struct topo *t = coll_topo(s);
	struct err err = { 0 };
	int n = topo_n(t);

	if (alike) {
		must(coll_set_alike(s, &err), &err);
	}
	for (int i = 0; i < (alike ? 1 : n) * topo_m(t); i++) {
		struct coll_xfer x = { .arc = i % topo_m(t), .origin = i / topo_m(t),
				       .dest = COLL_NO_DEST, .last = chunks - 1,
				       .op = COLL_OP_REDUCE, .kept = (uint16_t)(n + 1) };

		must(coll_add(s, &x, &err), &err);
		x.step = 1;
		x.op = COLL_OP_FORWARD;
		x.dest = 0;
		x.kept = (uint16_t)(2 * n + 1);
		must(coll_add(s, &x, &err), &err);
	}
	must(coll_finish(s, &err), &err);
	return s;
}

/* Along a ring, whose arcs are in the order of their tails: each rank adds its own to what came,
 * which it keeps apart, in one message; the last has the sum, and all others get copies. */
static inline struct coll_sched *merged_chain(const char *expr, int chunks, bool alike)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, expr, chunks);
	struct err err = { 0 };
	int n = topo_n(coll_topo(s));

	if (alike) {
		must(coll_set_alike(s, &err), &err);
	}
	for (int i = 0; i < (alike ? 1 : n) * (n - 1); i++) {
		int at = i % (n - 1);
		struct coll_xfer x = { .step = at, .arc = at, .origin = i / (n - 1),
				       .dest = COLL_NO_DEST, .last = chunks - 1,
				       .op = COLL_OP_REDUCE,
				       .kept = (uint16_t)(at < n - 2 ? n + 1 : 1) };

		must(coll_add(s, &x, &err), &err);
		x.op = COLL_OP_FORWARD;
		x.dest = 0;
		if (at > 0) {
			must(coll_add(s, &x, &err), &err);
		}
		x = (struct coll_xfer){ .step = n - 1 + at, .arc = (n - 1 + at) % n,
					.origin = x.origin, .dest = COLL_NO_DEST,
					.last = chunks - 1 };
		must(coll_add(s, &x, &err), &err);
	}
	must(coll_finish(s, &err), &err);
	return s;
}

#endif
