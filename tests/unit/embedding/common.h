/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the room share: loads and times counted again, from every
 * transfer and every route, in fractions. Include after cmocka.h. */
#ifndef WEFT_TESTS_UNIT_EMBEDDING_COMMON_H
#define WEFT_TESTS_UNIT_EMBEDDING_COMMON_H

#include "collective/embedding/embedding.h"
#include "tests/unit/schedule/common.h"

static const struct coll_cost test_cost = {
	.alpha_ns = 700, .hop_ns = 110, .message_ns = 13,
	.link_bps = 400000000000, .size_bytes = 1 << 20,
};

static inline struct coll_sched *embedded(const struct coll_sched *s, const char *physical,
					  enum coll_routing routing)
{
	struct err err = { 0 };
	struct coll_sched *out;

	must(coll_embed(s, graph_of(physical), routing, 0, &out, &err), &err);
	return out;
}

/* Loads of one step, by physical arc, in chunks. */
struct counted {
	const struct coll_sched *s;	/* without a group */
	int64_t *total;			/* of the weights of a logical arc's routes */
	int64_t *chunks;		/* on a logical arc */
	int64_t *messages;
	mpq_t *load;
	mpq_t sum_load, sum_time;	/* over the steps */
	mpq_t chunk_ns;
};

static inline void count_routes(struct counted *c)
{
	mpq_t part;

	mpq_init(part);
	for (int a = 0; a < topo_m(coll_physical(c->s)); a++) {
		mpq_set_ui(c->load[a], 0, 1);
		c->messages[a] = 0;
	}
	for (int64_t i = 0; i < coll_n_arc_routes(c->s); i++) {
		struct coll_arc_route r = coll_arc_route(c->s, i);

		if (c->chunks[r.arc] == 0) {
			continue;
		}
		rat_set(part, c->chunks[r.arc] * r.weight, c->total[r.arc]);
		c->messages[r.hops[0]]++;
		for (int h = 0; h < r.n; h++) {
			mpq_add(c->load[r.hops[h]], c->load[r.hops[h]], part);
		}
	}
	mpq_clear(part);
}

/* The larger of the loads of an arc and of its shared limits, per capacity. */
static inline void load_at(const struct counted *c, int arc, mpq_t top)
{
	const struct topo *t = coll_physical(c->s);
	const int32_t *limits;
	mpq_t q, cap;

	mpq_inits(q, cap, NULL);
	rat_set(cap, topo_arc(t, arc)->cap, 1);
	mpq_div(top, c->load[arc], cap);
	for (int i = 0, n = topo_arc_limits(t, arc, &limits); i < n; i++) {
		const struct topo_limit *l = topo_limit(t, limits[i]);

		mpq_set_ui(q, 0, 1);
		for (int k = 0; k < l->n; k++) {
			mpq_add(q, q, c->load[l->arcs[k]]);
		}
		rat_set(cap, l->cap, 1);
		mpq_div(q, q, cap);
		if (mpq_cmp(q, top) > 0) {
			mpq_set(top, q);
		}
	}
	mpq_clears(q, cap, NULL);
}

static inline void raise_to(mpq_t top, const mpq_t q)
{
	if (mpq_cmp(q, top) > 0) {
		mpq_set(top, q);
	}
}

/* What a route waits for in this step: its latencies and its fullest arc. */
static inline void time_route(const struct counted *c, const struct coll_arc_route *r, mpq_t load,
			      mpq_t time)
{
	int64_t ns = test_cost.hop_ns * r->n + test_cost.message_ns * c->messages[r->hops[0]];
	mpq_t q;

	mpq_init(q);
	mpq_set_ui(load, 0, 1);
	for (int h = 0; h < r->n; h++) {
		load_at(c, r->hops[h], q);
		raise_to(load, q);
		ns += topo_arc(coll_physical(c->s), r->hops[h])->latency_ns;
	}
	mpq_mul(time, load, c->chunk_ns);
	rat_set(q, ns, 1);
	mpq_add(time, time, q);
	mpq_clear(q);
}

static inline void count_step(struct counted *c)
{
	mpq_t load, time, top_load, top_time;

	mpq_inits(load, time, top_load, top_time, NULL);
	count_routes(c);
	for (int64_t i = 0; i < coll_n_arc_routes(c->s); i++) {
		struct coll_arc_route r = coll_arc_route(c->s, i);

		if (c->chunks[r.arc] > 0) {
			time_route(c, &r, load, time);
			raise_to(top_load, load);
			raise_to(top_time, time);
		}
	}
	mpq_add(c->sum_load, c->sum_load, top_load);
	mpq_add(c->sum_time, c->sum_time, top_time);
	mpq_clears(load, time, top_load, top_time, NULL);
}

static inline void count_steps(struct counted *c)
{
	int64_t n, i = 0;
	const struct coll_xfer *x = coll_xfers(c->s, &n);

	while (i < n) {
		int step = x[i].step;

		memset(c->chunks, 0, (size_t)topo_m(coll_topo(c->s)) * sizeof(*c->chunks));
		for (; i < n && x[i].step == step; i++) {
			c->chunks[x[i].arc] += x[i].last - x[i].first + 1;
		}
		count_step(c);
	}
}

/* Shard times, and the time with test_cost without alpha, before rounding. */
static inline void count(const struct coll_sched *flat, mpq_t shard_times, mpq_t time)
{
	struct counted c = { .s = flat };
	size_t m = (size_t)topo_m(coll_topo(flat)), physical = (size_t)topo_m(coll_physical(flat));
	mpq_t q;

	mpq_inits(c.sum_load, c.sum_time, c.chunk_ns, q, NULL);
	c.total = calloc(m, sizeof(*c.total));
	c.chunks = calloc(m, sizeof(*c.chunks));
	c.messages = calloc(physical, sizeof(*c.messages));
	c.load = malloc(physical * sizeof(*c.load));
	for (size_t a = 0; a < physical; a++) {
		mpq_init(c.load[a]);
	}
	for (int64_t i = 0; i < coll_n_arc_routes(flat); i++) {
		c.total[coll_arc_route(flat, i).arc] += coll_arc_route(flat, i).weight;
	}
	rat_set(c.chunk_ns, test_cost.size_bytes * 8, coll_ranks(flat));
	rat_set(q, 1000000000, test_cost.link_bps * coll_chunks(flat));
	mpq_mul(c.chunk_ns, c.chunk_ns, q);
	count_steps(&c);
	rat_set(q, 1, coll_chunks(flat));
	mpq_mul(shard_times, c.sum_load, q);
	mpq_set(time, c.sum_time);
	for (size_t a = 0; a < physical; a++) {
		mpq_clear(c.load[a]);
	}
	free(c.total);
	free(c.chunks);
	free(c.messages);
	free(c.load);
	mpq_clears(c.sum_load, c.sum_time, c.chunk_ns, q, NULL);
}

/* coll_verify and coll_time find the same. */
static inline void assert_counted(const struct coll_sched *s)
{
	struct coll_sched *flat = unfolded(s);
	struct coll_report r;
	struct err err = { 0 };
	mpq_t shard_times, time, ns;
	int64_t found;

	mpq_inits(shard_times, time, ns, NULL);
	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	must(coll_time(s, &r, &test_cost, &found, NULL, &err), &err);
	count(flat, shard_times, time);
	assert_true(mpq_equal(r.shard_times, shard_times));
	rat_set(ns, found - coll_steps(s) * test_cost.alpha_ns, 1);
	assert_true(mpq_cmp(ns, time) >= 0);
	rat_set(ns, found - coll_steps(s) * test_cost.alpha_ns - 1, 1);
	assert_true(mpq_cmp(ns, time) < 0);
	coll_report_fini(&r);
	mpq_clears(shard_times, time, ns, NULL);
	coll_free(flat);
}

#endif
