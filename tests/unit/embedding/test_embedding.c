/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Embedding: routes by every rule, against slower ways to find the same; what
 * Swing's paper has as loads; compact schedules and those written out; changed
 * routes.
 */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/number/rng.h"
#include "tests/unit/embedding/common.h"
#include "tests/unit/schedule/chains.h"
#include "tests/unit/world.h"

/* All shards from every rank over the arcs of K(n), in one step. */
static struct coll_sched *direct(int n)
{
	char expr[32];
	struct coll_sched *s;

	snprintf(expr, sizeof(expr), "K(%d)", n);
	s = empty(COLL_ALLGATHER, expr, 1);
	for (int u = 0; u < n; u++) {
		for (int v = 0; v < n; v++) {
			if (u != v) {
				send_part(s, 0, u, v, u, 0, 0, COLL_OP_COPY);
			}
		}
	}
	finish(s);
	return s;
}

/* ---- minimal-split ---- */

/* Distances between all pairs, -1: none. */
static int32_t *distances(const struct topo *t)
{
	int n = topo_n(t);
	int32_t *dist = malloc((size_t)n * (size_t)n * sizeof(*dist));

	for (int u = 0; u < n; u++) {
		topo_bfs(t, u, dist + u * n);
	}
	return dist;
}

/* Sends one unit from src to dst, node by node, every node after those that
 * are farther from dst; takes off what the routes carry. */
static void send_unit(const struct topo *t, const int32_t *dist, int src, int dst, mpq_t *flow)
{
	int n = topo_n(t);
	mpq_t *at = malloc((size_t)n * sizeof(*at)), q, part;

	mpq_inits(q, part, NULL);
	for (int u = 0; u < n; u++) {
		mpq_init(at[u]);
	}
	mpq_set_ui(at[src], 1, 1);
	for (int d = dist[src * n + dst]; d > 0; d--) {
		for (int u = 0; u < n; u++) {
			int64_t caps = 0;

			if (dist[u * n + dst] != d) {
				continue;
			}
			for (int a = 0; a < topo_m(t); a++) {
				const struct topo_arc *arc = topo_arc(t, a);

				caps += arc->src == u && dist[arc->dst * n + dst] == d - 1 ?
						arc->cap : 0;
			}
			for (int a = 0; a < topo_m(t); a++) {
				const struct topo_arc *arc = topo_arc(t, a);

				if (arc->src == u && dist[arc->dst * n + dst] == d - 1) {
					rat_set(part, arc->cap, caps);
					mpq_mul(q, at[u], part);
					mpq_add(at[arc->dst], at[arc->dst], q);
					mpq_sub(flow[a], flow[a], q);
				}
			}
		}
	}
	assert_int_equal(mpq_cmp_ui(at[dst], 1, 1), 0);
	for (int u = 0; u < n; u++) {
		mpq_clear(at[u]);
	}
	mpq_clears(q, part, NULL);
	free(at);
}

/* The routes from `first` on of one logical arc carry what a unit does that is divided at
 * every node. Returns the first route of the next. */
static int64_t check_split(const struct coll_sched *s, const int32_t *dist, int64_t first)
{
	const struct topo *t = coll_physical(s);
	int m = topo_m(t), arc = coll_arc_route(s, first).arc;
	const struct topo_arc *a = topo_arc(coll_topo(s), arc);
	mpq_t *flow = malloc((size_t)m * sizeof(*flow)), part;
	int64_t total = 0, end = first;

	mpq_init(part);
	for (int i = 0; i < m; i++) {
		mpq_init(flow[i]);
	}
	while (end < coll_n_arc_routes(s) && coll_arc_route(s, end).arc == arc) {
		total += coll_arc_route(s, end++).weight;
	}
	for (int64_t i = first; i < end; i++) {
		struct coll_arc_route r = coll_arc_route(s, i);

		assert_int_equal(r.n, dist[a->src * topo_n(t) + a->dst]);
		rat_set(part, r.weight, total);
		for (int h = 0; h < r.n; h++) {
			mpq_add(flow[r.hops[h]], flow[r.hops[h]], part);
		}
	}
	send_unit(t, dist, a->src, a->dst, flow);
	for (int i = 0; i < m; i++) {
		assert_int_equal(mpq_sgn(flow[i]), 0);
		mpq_clear(flow[i]);
	}
	mpq_clear(part);
	free(flow);
	return end;
}

/* Terminals and switches with a ring through all, and more arcs, some parallel, of
 * small capacities, and shared limits. */
static struct topo *random_fabric(struct rng *rng, int terminals)
{
	int switches = (int)rng_below(rng, 4), n = terminals + switches;
	int more = (int)rng_below(rng, (uint64_t)(3 * n)), m = n + more;
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int u = terminals; u < n; u++) {
		topo_set_node(t, u, TOPO_SWITCH, 0);
	}
	for (int a = 0; a < m; a++) {
		int u = a < n ? a : (int)rng_below(rng, (uint64_t)n);
		int v = a < n ? (a + 1) % n : (int)rng_below(rng, (uint64_t)n);

		must(topo_add_arc(t, u, v, 1 + (int64_t)rng_below(rng, 3),
				  (int64_t)rng_below(rng, 50), &err), &err);
	}
	for (int k = (int)rng_below(rng, 3); k > 0; k--) {
		int32_t arcs[2] = { (int32_t)rng_below(rng, (uint64_t)n), n - 1 };

		must(topo_add_limit(t, arcs, arcs[0] == n - 1 ? 1 : 2, 1 + k, &err), &err);
	}
	topo_freeze(t);
	return t;
}

static void minimal_split_is_divided_at_every_node(void **state)
{
	struct rng rng;
	int done = 0;

	(void)state;
	rng_seed(&rng, 1);
	for (int k = 0; k < 200; k++) {
		int n = 2 + (int)rng_below(&rng, 8), rc;
		struct coll_sched *s = direct(n), *e;
		struct err err = { 0 };
		int32_t *dist;

		rc = coll_embed(s, random_fabric(&rng, n), COLL_ROUTING_MINIMAL_SPLIT, 0, &e, &err);
		coll_free(s);
		if (rc) {
			assert_int_equal(rc, WEFT_ELIMIT);
			continue;
		}
		dist = distances(coll_physical(e));
		for (int64_t i = 0; i < coll_n_arc_routes(e);) {
			i = check_split(e, dist, i);
		}
		rc = coll_verify(e, NULL, &err);
		assert_true(rc == 0 || rc == WEFT_ELIMIT);
		if (rc == 0) {
			assert_counted(e);
			done++;
		}
		free(dist);
		coll_free(e);
	}
	assert_true(done > 150);
}

/* The k-th arc from u to a node that is nearer to dst, counted round. */
static int kth_towards(const struct topo *t, const int32_t *dist, int u, int dst, int k, int *count)
{
	int arcs[64], n = 0;

	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		if (arc->src == u && dist[arc->dst * topo_n(t) + dst] ==
					     dist[u * topo_n(t) + dst] - 1) {
			arcs[n++] = a;
		}
	}
	*count = n;
	return arcs[k % n];
}

/* Route i of a logical arc takes the k-th arc that leads on everywhere. */
static void check_kth(const struct coll_sched *s, const int32_t *dist, int64_t i, int k)
{
	struct coll_arc_route r = coll_arc_route(s, i);
	const struct topo_arc *a = topo_arc(coll_topo(s), r.arc);
	int at = a->src, count;

	assert_int_equal(r.weight, 1);
	for (int h = 0; h < r.n; h++) {
		assert_int_equal(r.hops[h], kth_towards(coll_physical(s), dist, at, a->dst, k,
							&count));
		at = topo_arc(coll_physical(s), r.hops[h])->dst;
	}
	assert_int_equal(at, a->dst);
}

/* All routes of a schedule by minimal-single or minimal-parallel. */
static void check_few_paths(const struct coll_sched *s, enum coll_routing routing)
{
	int32_t *dist = distances(coll_physical(s));
	int64_t i = 0;

	while (i < coll_n_arc_routes(s)) {
		int arc = coll_arc_route(s, i).arc, first, n = 1;
		const struct topo_arc *a = topo_arc(coll_topo(s), arc);

		topo_out(coll_topo(s), a->src, &first);
		if (routing == COLL_ROUTING_MINIMAL_PARALLEL) {
			kth_towards(coll_physical(s), dist, a->src, a->dst, 0, &n);
		}
		for (int k = 0; k < n; k++, i++) {
			assert_int_equal(coll_arc_route(s, i).arc, arc);
			check_kth(s, dist, i, n > 1 || routing == COLL_ROUTING_MINIMAL_PARALLEL
						      ? k : arc - first);
		}
	}
	free(dist);
}

static void fewer_paths_are_counted_round(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 3);
	for (int k = 0; k < 100; k++) {
		int n = 2 + (int)rng_below(&rng, 8);
		enum coll_routing routing = k % 2 ? COLL_ROUTING_MINIMAL_SINGLE
						  : COLL_ROUTING_MINIMAL_PARALLEL;
		struct coll_sched *s = direct(n), *e;
		struct err err = { 0 };
		int rc;

		must(coll_embed(s, random_fabric(&rng, n), routing, 0, &e, &err), &err);
		check_few_paths(e, routing);
		rc = coll_verify(e, NULL, &err);
		assert_true(rc == 0 || rc == WEFT_ELIMIT);
		if (rc == 0) {
			assert_counted(e);
		}
		coll_free(s);
		coll_free(e);
	}
}

static void assert_routes(const struct coll_sched *s, int arc, const char *want)
{
	const struct topo *t = coll_physical(s);
	struct buf b = { 0 };

	for (int64_t i = 0; i < coll_n_arc_routes(s); i++) {
		struct coll_arc_route r = coll_arc_route(s, i);

		if (r.arc == arc) {
			buf_printf(&b, "%s%d:", b.len ? " " : "", r.weight);
			for (int h = 0; h < r.n; h++) {
				buf_printf(&b, "%d-", topo_arc(t, r.hops[h])->src);
			}
			buf_printf(&b, "%d", topo_arc(t, r.hops[r.n - 1])->dst);
		}
	}
	assert_string_equal(buf_cstr(&b), want);
	buf_fini(&b);
}

static void routes_of_small_ones(void **state)
{
	struct coll_sched *s = direct(4), *e;

	(void)state;
	e = embedded(s, "Ring(4)", COLL_ROUTING_MINIMAL_SPLIT);
	assert_routes(e, topo_find_arc(coll_topo(e), 0, 1), "1:0-1");
	assert_routes(e, topo_find_arc(coll_topo(e), 0, 2), "1:0-1-2 1:0-3-2");
	assert_counted(e);
	coll_free(e);
	e = embedded(s, "Star(4)", COLL_ROUTING_MINIMAL_SPLIT);
	assert_routes(e, topo_find_arc(coll_topo(e), 2, 1), "1:2-4-1");
	assert_factor(e, "3/4", "3/4");
	coll_free(e);
	e = embedded(s, "Ring(4)", COLL_ROUTING_DIMENSION_ORDER);
	assert_routes(e, topo_find_arc(coll_topo(e), 0, 2), "1:0-1-2");
	assert_routes(e, topo_find_arc(coll_topo(e), 3, 1), "1:3-0-1");
	coll_free(e);
	e = embedded(s, "HyperX(2,2)", COLL_ROUTING_DIMENSION_ORDER);
	assert_routes(e, topo_find_arc(coll_topo(e), 0, 3),
		      "1:0-6-1-5-3 1:0-6-1-5-3 1:0-6-1-5-3 1:0-6-1-5-3 1:0-6-1-5-3 1:0-6-1-5-3 "
		      "1:0-6-1-5-3 1:0-6-1-5-3 1:0-6-1-5-3 1:0-6-1-5-3 1:0-6-1-5-3 1:0-6-1-5-3 "
		      "1:0-6-1-5-3 1:0-6-1-5-3 1:0-6-1-5-3 1:0-6-1-5-3");
	coll_free(e);
	coll_free(s);
}

static void refuses(struct coll_sched *s, const char *physical, enum coll_routing routing, int code,
		    const char *what)
{
	struct err err = { 0 };
	struct coll_sched *e;

	assert_int_equal(coll_embed(s, graph_of(physical), routing, 0, &e, &err), code);
	assert_null(e);
	if (!strstr(err.msg, what)) {
		fail_msg("\"%s\" is not in: %s", what, err.msg);
	}
}

static void refusals(void **state)
{
	struct coll_sched *s = direct(16), *e;
	struct err err = { 0 };

	(void)state;
	refuses(s, "FatTree(4)", COLL_ROUTING_DIMENSION_ORDER, WEFT_EUNSUPPORTED, "no digits");
	refuses(s, "GenKautz(2,16)", COLL_ROUTING_DIMENSION_ORDER, WEFT_EUNSUPPORTED, "no digits");
	refuses(s, "DgxA100(2,pcie)", COLL_ROUTING_DIMENSION_ORDER, WEFT_EUNSUPPORTED, "no digits");
	refuses(s, "Ring(8)", COLL_ROUTING_MINIMAL_SPLIT, WEFT_EINVAL, "8 terminals");
	e = embedded(s, "Ring(16)", COLL_ROUTING_MINIMAL_SPLIT);
	refuses(e, "Ring(16)", COLL_ROUTING_MINIMAL_SPLIT, WEFT_EUNSUPPORTED, "is embedded");
	coll_free(e);
	coll_free(s);
	s = direct(64);
	refuses(s, "Multi(Torus(8,8),2)", COLL_ROUTING_MINIMAL_SPLIT, WEFT_ELIMIT, "arc ");
	assert_int_equal(coll_embed(s, graph_from(64, 1, (const int[][2]){ { 0, 1 } }),
				    COLL_ROUTING_MINIMAL_SPLIT, 0, &e, &err), WEFT_EINFEASIBLE);
	coll_free(s);
}

/* ---- dimension-order ---- */

/* Terminals of a path differ in rising digits, each of which it sets at once. */
static void check_order(const struct coll_sched *s, const struct coll_arc_route *r,
			const int *radix, int n_digits)
{
	const struct topo *t = coll_physical(s);
	int at = topo_arc(t, r->hops[0])->src, dst = topo_arc(coll_topo(s), r->arc)->dst, done = 0;

	for (int h = 0; h < r->n; h++) {
		int v = topo_arc(t, r->hops[h])->dst, unit = 1;

		if (v >= coll_ranks(s)) {
			continue;
		}
		for (int k = 0; k < n_digits; unit *= radix[k++]) {
			if (at / unit % radix[k] == v / unit % radix[k]) {
				continue;
			}
			assert_true(k >= done);
			for (; done < k; done++) {
				int lower = 1;

				for (int j = 0; j < done; j++) {
					lower *= radix[j];
				}
				assert_int_equal(v / lower % radix[done],
						 dst / lower % radix[done]);
			}
		}
		at = v;
	}
	assert_int_equal(at, dst);
}

static void dimensions_come_in_order(void **state)
{
	static const struct {
		const char *expr;
		int n, digits, radix[4];
	} cases[] = {
		{ "Torus(3,5)", 15, 2, { 5, 3 } }, { "Torus(4,6)", 24, 2, { 6, 4 } },
		{ "Mesh(3,4)", 12, 2, { 4, 3 } }, { "Hypercube(4)", 16, 4, { 2, 2, 2, 2 } },
		{ "Torus(2,3,4)", 24, 3, { 4, 3, 2 } }, { "HyperX(3,4)", 12, 2, { 4, 3 } },
		{ "HyperX(2,3,2)", 12, 3, { 2, 3, 2 } }, { "HammingMesh(2,2,3)", 24, 2, { 6, 4 } },
		{ "HammingMesh(3,2,2)", 36, 2, { 6, 6 } }, { "Rails(3,4)", 12, 2, { 4, 3 } },
		{ "DgxA100(2,nvlink)", 16, 2, { 8, 2 } }, { "Ring(9)", 9, 1, { 9 } },
		{ "Mesh(7)", 7, 1, { 7 } }, { "Star(6)", 6, 1, { 6 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct coll_sched *s = direct(cases[i].n), *e;
		int32_t *dist;

		e = embedded(s, cases[i].expr, COLL_ROUTING_DIMENSION_ORDER);
		dist = distances(coll_physical(e));
		for (int64_t k = 0; k < coll_n_arc_routes(e); k++) {
			struct coll_arc_route r = coll_arc_route(e, k);
			const struct topo_arc *a = topo_arc(coll_topo(e), r.arc);

			/* On all of these the paths are shortest ones. */
			assert_int_equal(r.n, dist[a->src * topo_n(coll_physical(e)) + a->dst]);
			check_order(e, &r, cases[i].radix, cases[i].digits);
		}
		assert_counted(e);
		free(dist);
		coll_free(e);
		coll_free(s);
	}
}

/* ---- explicit ---- */

static int embed_text(const char *text, struct coll_sched **e, struct err *err)
{
	struct coll_sched *s = empty(COLL_ALLGATHER, "UniRing(1,3)", 1);
	int rc;

	for (int step = 0; step < 2; step++) {
		for (int u = 0; u < 3; u++) {
			send_part(s, step, u, (u + 1) % 3, (u + 3 - step) % 3, 0, 0, COLL_OP_COPY);
		}
	}
	finish(s);
	rc = coll_embed_routes(s, graph_of("Multi(Ring(3),2)"), text, strlen(text), 0, e, err);
	coll_free(s);
	return rc;
}

static void explicit_routes(void **state)
{
	static const struct {
		const char *text, *what;
	} bad[] = {
		{ "[]", "an object" }, { "{}", "routes" }, { "{\"routes\": 3}", "routes" },
		{ "{\"routes\": [], \"rotues\": 1}", "unknown key 'rotues'" },
		{ "{\"routes\": [[0, 1, 1]]}", "route 0" },
		{ "{\"routes\": [[0, 1, 0, [0, 1]]]}", "route 0" },
		{ "{\"routes\": [[0, 1, 1, [0, 1], 4]]}", "route 0" },
		{ "{\"routes\": [[0, 1, 1, [0, 1]], [1, 0, 1, [1, 0]]]}", "route 1" },
		{ "{\"routes\": [[0, 1, 1, [0, 7]]]}", "place 1" },
		{ "{\"routes\": [[0, 1, 1, [0, 2, 0, 1]]]}", "place 2" },
		{ "{\"routes\": [[0, 1, 1, [0, 2]]]}", "does not lead from node 0 to node 1" },
		{ "{\"routes\": [[0, 1, 1, [0, 1]], [1, 2, 1, [1, 2]]]}", "has no route" },
		{ "{\"routes\": [[0, 1, 1048577, [0, 1]]]}", "route 0" },
		{ "{\"routes\": [[9, 1, 1, [0, 1]]]}", "route 0" },
		{ "{\"routes\": [[0, 1, 1, [0, 1]]", "JSON" },
	};
	struct coll_sched *e;
	struct err err = { 0 };

	(void)state;
	must(embed_text("{\"routes\": [[0, 1, 3, [0, 1]], [2, 0, 1, [2, 0]], [1, 2, 1, [1, 2]],"
			" [0, 1, 1, [0, 2, 1]]]}", &e, &err), &err);
	assert_routes(e, 0, "6:0-1 6:0-1 1:0-2-1 1:0-2-1 1:0-2-1 1:0-2-1");
	assert_routes(e, 1, "1:1-2 1:1-2");
	assert_int_equal(coll_routing(e), COLL_ROUTING_EXPLICIT);
	assert_counted(e);
	coll_free(e);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(embed_text(bad[i].text, &e, &err), WEFT_EINVAL);
		assert_null(e);
		if (!strstr(err.msg, bad[i].what)) {
			fail_msg("\"%s\" is not in: %s", bad[i].what, err.msg);
		}
	}
}

/* ---- Swing ---- */

struct swing {
	int dims, size[3];
	int step;		/* of the dimension */
	int dim;		/* that the step at hand is in */
	bool mirrored;
};

static int rho(int s)
{
	int sum = 0;

	for (int i = 0, power = 1; i <= s; i++, power *= -2) {
		sum += power;
	}
	return sum;
}

static int unit_of(const struct swing *w, int dim)
{
	int unit = 1;

	for (int k = w->dims - 1; k > dim; k--) {
		unit *= w->size[k];
	}
	return unit;
}

/* Swing (De Sensi et al., NSDI 2024), equation 2, in one dimension. */
static int partner(const struct swing *w, int u)
{
	int unit = unit_of(w, w->dim), d = w->size[w->dim], r = u / unit % d, to;

	to = (r % 2 == 0) != w->mirrored ? r + rho(w->step) : r - rho(w->step);
	return u + (((to % d) + d) % d - r) * unit;
}

/* The steps of one collective: dimensions in turn from `first` on. */
static int swing_steps(const struct swing *shape, int first, struct swing *steps)
{
	int n = 0;

	for (int s = 0; s < 16; s++) {
		for (int k = 0; k < shape->dims; k++) {
			int dim = (first + k) % shape->dims;

			if (1 << s < shape->size[dim]) {
				steps[n] = *shape;
				steps[n].step = s;
				steps[n++].dim = dim;
			}
		}
	}
	return n;
}

/* Marks what u's blocks at a step are: its own and those of all it meets later. */
static void reach(const struct swing *steps, int n, int step, int u, bool *mark)
{
	mark[u] = true;
	for (; step < n; step++) {
		reach(steps, n, step + 1, partner(&steps[step], u), mark);
	}
}

/* One of the 2 dims collectives of the reduce-scatter, chunk c. */
static void add_swing(struct coll_sched *s, const struct swing *shape, int c)
{
	struct swing steps[32], like = *shape;
	int ranks = coll_ranks(s), n;
	bool *mark = malloc((size_t)ranks);

	like.mirrored = c >= shape->dims;
	n = swing_steps(&like, c % shape->dims, steps);
	for (int step = 0; step < n; step++) {
		for (int u = 0; u < ranks; u++) {
			int v = partner(&steps[step], u);

			memset(mark, 0, (size_t)ranks);
			reach(steps, n, step + 1, v, mark);
			for (int b = 0; b < ranks; b++) {
				if (mark[b]) {
					send_part(s, step, u, v, b, c, c, COLL_OP_REDUCE);
				}
			}
		}
	}
	free(mark);
}

static bool add_pair(struct topo *t, bool *seen, int u, int v)
{
	struct err err = { 0 };
	bool first = !seen[u * topo_n(t) + v];

	if (first) {
		seen[u * topo_n(t) + v] = true;
		must(topo_add_arc(t, u, v, 1, 0, &err), &err);
	}
	return first;
}

/* The digraph of all that meet. */
static struct topo *swing_graph(const struct swing *shape, int ranks)
{
	bool *seen = calloc((size_t)ranks * (size_t)ranks, 1);
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(ranks, &t, &err), &err);
	for (int mirrored = 0; mirrored < 2; mirrored++) {
		struct swing steps[32], like = *shape;
		int n;

		like.mirrored = mirrored;
		n = swing_steps(&like, 0, steps);
		for (int i = 0; i < n; i++) {
			for (int u = 0; u < ranks; u++) {
				add_pair(t, seen, u, partner(&steps[i], u));
			}
		}
	}
	topo_freeze(t);
	free(seen);
	return t;
}

/* research values: load over the vector, and the sum of the steps' hops. */
static void check_swing(const struct swing *shape, const char *physical, const char *load,
			int steps, int hops)
{
	struct coll_cost hops_only = { .hop_ns = 1000, .link_bps = INT64_C(1000000000000) };
	int ranks = 1;
	struct err err = { 0 };
	struct coll_sched *s, *e;
	struct coll_report r;
	int64_t ns;
	mpq_t want;

	for (int k = 0; k < shape->dims; k++) {
		ranks *= shape->size[k];
	}
	must(coll_new(COLL_REDUCE_SCATTER, swing_graph(shape, ranks), 2 * shape->dims, 0, 0, &s,
		      &err), &err);
	for (int c = 0; c < 2 * shape->dims; c++) {
		add_swing(s, shape, c);
	}
	finish(s);
	e = embedded(s, physical, COLL_ROUTING_MINIMAL_SPLIT);
	coll_report_init(&r);
	mpq_init(want);
	must(coll_verify(e, &r, &err), &err);
	assert_int_equal(rat_parse(want, load), 0);
	mpq_set_si(r.bandwidth_factor, ranks, 1);
	mpq_mul(want, want, r.bandwidth_factor);
	assert_true(mpq_equal(r.shard_times, want));
	assert_int_equal(r.steps, steps);
	must(coll_time(e, &r, &hops_only, &ns, NULL, &err), &err);
	assert_int_equal(ns, hops * 1000);
	mpq_clear(want);
	coll_report_fini(&r);
	coll_free(e);
	coll_free(s);
}

static void swing_loads(void **state)
{
	(void)state;
	check_swing(&(struct swing){ .dims = 1, .size = { 8 } }, "Ring(8)", "9/16", 3, 5);
	check_swing(&(struct swing){ .dims = 1, .size = { 16 } }, "Ring(16)", "23/32", 4, 10);
	check_swing(&(struct swing){ .dims = 1, .size = { 64 } }, "Ring(64)", "135/128", 6, 42);
	check_swing(&(struct swing){ .dims = 2, .size = { 8, 8 } }, "Torus(8,8)", "69/256", 6, 10);
	check_swing(&(struct swing){ .dims = 2, .size = { 16, 4 } }, "Torus(16,4)", "41/128", 6,
		    12);
	check_swing(&(struct swing){ .dims = 2, .size = { 16, 16 } }, "Torus(16,16)", "291/1024",
		    8, 20);
	check_swing(&(struct swing){ .dims = 3, .size = { 8, 8, 8 } }, "Torus(8,8,8)", "175/1024",
		    9, 15);
}

/* On HyperX every step goes through one switch: as good as can be. */
static void swing_on_hyperx(void **state)
{
	(void)state;
	check_swing(&(struct swing){ .dims = 2, .size = { 8, 8 } }, "HyperX(8,8)", "63/256", 6, 12);
}

/* ---- compact and written out ---- */

/* Embedded and unfolded, unfolded and embedded, written and read: all the same. */
static void check_pair(const char *logical, const char *physical, enum coll_routing routing,
		       enum coll_kind kind, int order)
{
	struct coll_sched *s = bfb(kind, logical), *flat = unfolded(s), *e, *f, *g, *h;
	struct err err = { 0 };
	struct buf b = { 0 };

	e = embedded(s, physical, routing);
	if (topo_group_order(coll_group(e)) != order) {
		fail_msg("%s on %s: %d elements stay", logical, physical,
			 topo_group_order(coll_group(e)));
	}
	f = unfolded(e);
	g = embedded(flat, physical, routing);
	assert_same_reports(e, f);
	assert_same_reports(e, g);
	assert_same_flat(f, g);
	assert_int_equal(coll_n_arc_routes(f), coll_n_arc_routes(g));
	assert_counted(e);
	coll_to_json(e, &b);
	must(coll_from_json(b.data, b.len, &h, &err), &err);
	assert_same_reports(e, h);
	buf_fini(&b);
	coll_free(s);
	coll_free(flat);
	coll_free(e);
	coll_free(f);
	coll_free(g);
	coll_free(h);
}

static void compact_as_unfolded(void **state)
{
	static const struct {
		const char *logical, *physical;
		int order;	/* of the group that stays, by minimal-split */
	} pairs[] = {
		{ "K(8)", "Star(8)", 8 }, { "K(16)", "Ring(16)", 16 },
		{ "C(16,{1,3,5})", "Ring(16)", 16 },
		{ "K(9)", "Torus(3,3)", 9 }, { "Torus(4,4)", "HyperX(4,4)", 16 },
		{ "Torus(4,4)", "Torus(4,4)", 16 }, { "Hypercube(4)", "Hypercube(4)", 16 },
		{ "Torus(4,4)", "HammingMesh(2,2,2)", 4 },
		{ "Torus(4,4)", "HammingMesh(1,4,4)", 16 },
		{ "Ring(16)", "FatTree(4)", 4 }, { "Hypercube(4)", "FatTree(4)", 16 },
		{ "Hypercube(4)", "DgxA100(2,nvlink)", 16 },
		{ "Ring(16)", "DgxA100(2,nvlink)", 16 },
		{ "K(16)", "DgxA100(2,nvlink)", 16 }, { "K(16)", "DgxA100(2,all)", 16 },
		{ "Hypercube(4)", "DgxA100(2,pcie)", 16 }, { "K(12)", "Rails(3,4)", 12 },
		{ "Torus(3,4)", "Rails(3,4)", 12 }, { "Ring(6)", "Mesh(6)", 6 },
		{ "K(16)", "FatTree(4)", 16 }, { "K(4,4)", "DgxA100(1,all)", 4 },
		{ "GenKautz(2,10)", "Star(10)", 1 }, { "GenKautz(2,12)", "K(12)", 3 },
	};
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		check_pair(pairs[i].logical, pairs[i].physical, COLL_ROUTING_MINIMAL_SPLIT,
			   kinds[i % 3], pairs[i].order);
	}
}

/* Circulants of random offsets on others, through whose groups they may move. */
static void random_circulants(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 3);
	for (int k = 0; k < 200; k++) {
		int n = 4 + (int)rng_below(&rng, 21), half = n / 2;
		int a = 1 + (int)rng_below(&rng, (uint64_t)half);
		char logical[40], physical[40];

		snprintf(logical, sizeof(logical), a > 1 ? "C(%d,{1,%d})" : "C(%d,{1})", n, a);
		if (k % 4 == 0) {
			snprintf(physical, sizeof(physical), "Star(%d)", n);
		} else {
			int b = 2 + (int)rng_below(&rng, (uint64_t)half - 1);

			snprintf(physical, sizeof(physical), "C(%d,{1,%d})", n, b);
		}
		check_pair(logical, physical, COLL_ROUTING_MINIMAL_SPLIT,
			   k % 3 ? COLL_ALLREDUCE : COLL_ALLGATHER, n);
	}
}

static void compact_by_dimensions(void **state)
{
	const enum coll_routing routing = COLL_ROUTING_DIMENSION_ORDER;

	(void)state;
	check_pair("K(16)", "Ring(16)", routing, COLL_ALLGATHER, 16);
	check_pair("K(16)", "Torus(4,4)", routing, COLL_ALLREDUCE, 16);
	check_pair("Torus(4,4)", "Torus(4,4)", routing, COLL_ALLGATHER, 16);
	check_pair("Torus(4,4)", "HyperX(4,4)", routing, COLL_ALLREDUCE, 16);
	check_pair("Torus(4,4)", "HammingMesh(2,2,2)", routing, COLL_REDUCE_SCATTER, 4);
	/* Automorphisms of the ring, but no additions to its numbers: every arc has its routes. */
	check_pair("Hypercube(2)", "Ring(4)", routing, COLL_ALLGATHER, 4);
}

/* ---- what passes through is not held ---- */

static void forwarding_holds_nothing(void **state)
{
	static const int logical[][2] = { { 0, 2 }, { 1, 0 }, { 1, 2 }, { 2, 0 }, { 2, 1 } };
	static const int physical[][2] = { { 0, 1 }, { 1, 0 }, { 1, 2 }, { 2, 1 } };
	struct err err = { 0 };
	struct coll_sched *s, *e;

	(void)state;
	must(coll_new(COLL_ALLGATHER, graph_from(3, 5, logical), 1, 0, 0, &s, &err), &err);
	send_part(s, 0, 0, 2, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 1, 1, 2, 0, 0, 0, COLL_OP_COPY);
	finish(s);
	must(coll_embed(s, graph_from(3, 4, physical), COLL_ROUTING_MINIMAL_SPLIT, 0, &e, &err),
	     &err);
	assert_routes(e, 0, "1:0-1-2");
	assert_refused(e, "held");
	coll_free(e);
	coll_free(s);
}

/* ---- changed routes ---- */

struct copy {
	int32_t arc, weight, n, hops[16];
};

/* The schedule again, with other routes. */
static int with_routes(const struct coll_sched *s, const struct copy *routes, int n,
		       struct coll_sched **out, struct err *err)
{
	struct coll_sched *e;
	struct topo *t, *physical;
	struct topo_group *group;
	int64_t n_xfers;
	const struct coll_xfer *x = coll_xfers(s, &n_xfers);
	int rc = 0;

	*out = NULL;
	must(topo_copy(coll_topo(s), &t, err), err);
	must(topo_copy(coll_physical(s), &physical, err), err);
	must(topo_group_copy(coll_group(s), &group, err), err);
	must(coll_new(coll_kind_of(s), t, coll_chunks(s), 0, 0, &e, err), err);
	must(coll_set_group(e, group, err), err);
	must(coll_set_physical(e, physical, COLL_ROUTING_EXPLICIT, 0, err), err);
	for (int64_t i = 0; i < n_xfers; i++) {
		must(coll_add(e, &x[i], err), err);
	}
	for (int i = 0; i < n && !rc; i++) {
		struct coll_arc_route r = { routes[i].arc, routes[i].weight, routes[i].hops,
					    routes[i].n };

		rc = coll_add_route(e, &r, err);
	}
	if (rc || (rc = coll_finish(e, err))) {
		coll_free(e);
		return rc;
	}
	*out = e;
	return 0;
}

static void change(struct rng *rng, const struct coll_sched *s, struct copy *r)
{
	int m = topo_m(coll_physical(s)), at = (int)rng_below(rng, (uint64_t)r->n);

	switch (rng_below(rng, 6)) {
	case 0:
		r->hops[at] = (int32_t)rng_below(rng, (uint64_t)m + 2) - 1;
		break;
	case 1:
		r->weight = (int32_t)rng_below(rng, 5) - 1;
		break;
	case 2:
		r->arc = (int32_t)rng_below(rng, (uint64_t)topo_m(coll_topo(s)) + 2) - 1;
		break;
	case 3:
		r->n--;
		break;
	case 4:
		r->hops[r->n++] = (int32_t)rng_below(rng, (uint64_t)m);
		break;
	default:
		r->hops[at] = r->hops[0];
		break;
	}
}

static int copy_routes(const struct coll_sched *s, struct copy *routes)
{
	for (int64_t i = 0; i < coll_n_arc_routes(s); i++) {
		struct coll_arc_route r = coll_arc_route(s, i);

		routes[i] = (struct copy){ r.arc, r.weight, r.n, { 0 } };
		memcpy(routes[i].hops, r.hops, (size_t)r.n * sizeof(*r.hops));
	}
	return (int)coll_n_arc_routes(s);
}

static void changed_routes(void **state)
{
	static const char *const physical[] = {
		"Ring(8)", "HyperX(2,4)", "Multi(Ring(8),2)", "DgxA100(1,all)", "Star(8)",
	};
	static struct copy routes[4096];
	struct coll_sched *flat = direct(8), *compact = bfb(COLL_ALLGATHER, "K(8)");
	int refused = 0, equal = 0;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7);
	for (int k = 0; k < ALL_OR_SOME(5000, 1000); k++) {
		struct coll_sched *e, *changed;
		struct err err = { 0 };
		int n, rc;

		e = embedded(k % 2 ? flat : compact, physical[k % 5], COLL_ROUTING_MINIMAL_SPLIT);
		n = copy_routes(e, routes);
		change(&rng, e, &routes[rng_below(&rng, (uint64_t)n)]);
		rc = with_routes(e, routes, n, &changed, &err);
		if (rc) {
			assert_int_equal(rc, WEFT_EINVAL);
			assert_non_null(strstr(err.msg, "arc "));
			refused++;
		} else {
			assert_counted(changed);
			equal++;
		}
		coll_free(changed);
		coll_free(e);
	}
	assert_true(refused > ALL_OR_SOME(2000, 400) && equal > ALL_OR_SOME(500, 100));
	coll_free(flat);
	coll_free(compact);
}

/* ---- forwarded sums ---- */

/* Ranks whose sums go on are moved with the arcs. Frees s. */
static void check_chains(struct coll_sched *s, const char *physical)
{
	struct coll_sched *flat = unfolded(s),
			  *e = embedded(s, physical, COLL_ROUTING_MINIMAL_SPLIT);
	struct coll_sched *of_flat = embedded(flat, physical, COLL_ROUTING_MINIMAL_SPLIT);

	assert_true(coll_forwards(e));
	assert_same(e, of_flat);
	assert_same_reports(e, of_flat);
	coll_free(s);
	coll_free(flat);
	coll_free(e);
	coll_free(of_flat);
}

static void forwarded_sums(void **state)
{
	static const struct chain_plan twelve = { "C(12,{1,3})", 2, { { 1, 3 }, { 3, 4 } } };
	static const struct chain_plan sixteen = { "C(16,{1,4})", 2, { { 1, 4 }, { 4, 4 } } };

	(void)state;
	check_chains(chains(&twelve), "Ring(12)");
	check_chains(chains(&twelve), "Torus(3,4)");
	check_chains(chains(&twelve), "Star(12)");
	check_chains(chains(&sixteen), "FatTree(4)");
	check_chains(chains(&sixteen), "HyperX(4,4)");
	check_chains(torus_chains(4, 4), "HyperX(4,4)");
	check_chains(torus_chains(4, 4), "FatTree(4)");
}

/* ---- batches ---- */

/* Without latencies, in ns. */
static double model_ns(const struct coll_sched *s, const struct coll_cost *c)
{
	struct coll_report r;
	struct err err = { 0 };
	double ns;

	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	ns = r.steps * (double)c->alpha_ns + mpq_get_d(r.bandwidth_factor) / coll_ports(s) *
		     (double)c->size_bytes * 8e9 / (double)c->link_bps;
	coll_report_fini(&r);
	return ns;
}

/* The number of batches that is the best by the loads of routes and of shared limits is the best
 * of all that are made, embedded and replayed. */
static void batches_by_routes(void **state)
{
	enum { MOST = 6, CASES = 60 };
	int chosen[MOST + 1] = { 0 };

	(void)state;
	for (int i = 0; i < CASES; i++) {
		struct coll_cost c = { .alpha_ns = 1000, .link_bps = 8000000000,
				       .size_bytes = 1000 << 2 * (i % 7) };
		struct coll_sched *s, *e = NULL;
		struct err err = { 0 };
		double least = HUGE_VAL, foretold = 0;
		int batches;

		must(coll_bfb(i % 2 ? COLL_ALLGATHER : COLL_ALLREDUCE, graph_of("GenKautz(2,9)"),
			      &s, &err), &err);
		for (int k = MOST; k >= 1; k--) {
			struct coll_sched *p;
			struct rng rng;
			double ns;

			rng_seed(&rng, (uint64_t)i);
			must(coll_pipeline(s, k, &p, &err), &err);
			coll_free(e);
			must(coll_embed(p, random_fabric(&rng, 9), COLL_ROUTING_MINIMAL_SPLIT, 0,
					&e, &err), &err);
			ns = model_ns(e, &c);
			least = ns < least ? ns : least;
			coll_free(p);
		}
		/* What is left is whole. */
		must(coll_pipeline_best(e, &c, MOST, &batches, &foretold, &err), &err);
		assert_true(fabs(foretold - least) <= least * 1e-9);
		chosen[batches]++;
		coll_free(e);
		coll_free(s);
	}
	assert_true(chosen[1] > 5 && chosen[MOST] > 5 && chosen[1] + chosen[MOST] < CASES - 5);
}

/* ---- what terminals see ---- */

static void assert_seen(const char *expr, int arcs, int64_t first, int64_t last)
{
	struct topo *t = graph_of(expr), *seen;
	struct err err = { 0 };

	must(coll_terminals_see(t, &seen, &err), &err);
	assert_int_equal(topo_n(seen), topo_ranks(t));
	assert_true(topo_is_plain(seen));
	assert_int_equal(topo_m(seen), arcs);
	assert_int_equal(topo_arc(seen, 0)->cap, first);
	assert_int_equal(topo_arc(seen, arcs - 1)->cap, last);
	topo_free(t);
	topo_free(seen);
}

static void terminals_see(void **state)
{
	(void)state;
	assert_seen("Star(8)", 56, 1, 1);
	assert_seen("Ring(8)", 16, 1, 1);
	assert_seen("HyperX(4,4)", 16 * 6, 1, 1);
	assert_seen("HyperX(3,5)", 15 * 6, 2, 1);
	assert_seen("FatTree(4)", 16 * 15, 1, 1);
	/* 300 for 7 by NVSwitch, 25 for one by the rail: 12 / 7 and 1. */
	assert_seen("DgxA100(2,nvlink)", 16 * 8, 12, 7);
	/* A neighbour of a board directly, and two of the other board by a switch. */
	assert_seen("HammingMesh(2,2,2)", 16 * 6, 2, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(minimal_split_is_divided_at_every_node),
		cmocka_unit_test(fewer_paths_are_counted_round),
		cmocka_unit_test(routes_of_small_ones),
		cmocka_unit_test(refusals),
		cmocka_unit_test(dimensions_come_in_order),
		cmocka_unit_test(explicit_routes),
		cmocka_unit_test(swing_loads),
		cmocka_unit_test(swing_on_hyperx),
		cmocka_unit_test(compact_as_unfolded),
		cmocka_unit_test(random_circulants),
		cmocka_unit_test(compact_by_dimensions),
		cmocka_unit_test(forwarding_holds_nothing),
		cmocka_unit_test(changed_routes),
		cmocka_unit_test(forwarded_sums),
		cmocka_unit_test(batches_by_routes), cmocka_unit_test(terminals_see),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
