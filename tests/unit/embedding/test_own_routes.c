/* SPDX-License-Identifier: Apache-2.0 */
/* Compact schedules whose group keeps the logical digraph and not the physical one, or not
 * the routes: what is kept and what it stands for have the same loads, times and simulations, and
 * files of both forms are read as they were. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "lib/base/number/rng.h"
#include "tests/unit/embedding/common.h"
#include "tests/unit/schedule/chains.h"

#define MAX_HOPS 64
#define MAX_NODES 64

static const enum coll_kind kinds[] = { COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE };

/* ---- both forms agree ---- */

static void assert_near(double a, double b)
{
	if (fabs(a - b) > 1e-9 * (fabs(a) + fabs(b))) {
		fail_msg("%.15g is not %.15g", a, b);
	}
}

static void assert_same_simulation(const struct coll_sched *a, const struct coll_sched *b,
				   bool asynchronous)
{
	struct coll_sim_options o = { .cost = test_cost, .asynchronous = asynchronous };
	struct coll_sim sa = { 0 }, sb = { 0 };
	struct err err = { 0 };

	o.cost.size_bytes = 50000;
	must(coll_simulate(a, &o, &sa, NULL, &err), &err);
	must(coll_simulate(b, &o, &sb, NULL, &err), &err);
	assert_near(sa.time_ns, sb.time_ns);
	assert_near(sa.utilisation, sb.utilisation);
	assert_int_equal(sa.n_steps, sb.n_steps);
	for (int i = 0; i < sa.n_steps; i++) {
		assert_near(sa.steps[i].begin_ns, sb.steps[i].begin_ns);
		assert_near(sa.steps[i].end_ns, sb.steps[i].end_ns);
		assert_int_equal(sa.steps[i].messages, sb.steps[i].messages);
	}
	assert_int_equal(sa.n_loads, sb.n_loads);
	for (int i = 0; i < sa.n_loads; i++) {
		assert_near(sa.loads[i].share, sb.loads[i].share);
	}
	coll_sim_fini(&sa);
	coll_sim_fini(&sb);
}

static void assert_same_steps(const struct coll_sched *a, const struct coll_sched *b)
{
	double *ta = calloc((size_t)coll_steps(a) + 1, sizeof(*ta));
	double *tb = calloc((size_t)coll_steps(a) + 1, sizeof(*tb));
	struct err err = { 0 };

	must(coll_step_times(a, &test_cost, ta, &err), &err);
	must(coll_step_times(b, &test_cost, tb, &err), &err);
	for (int i = 0; i < coll_steps(a); i++) {
		assert_near(ta[i], tb[i]);
	}
	free(ta);
	free(tb);
}

/* What coll_part_to_proto writes at once. */
static void assert_written_at_once(const struct coll_sched *s, int rank,
				   const struct coll_sched *part)
{
	struct buf whole = { 0 }, once = { 0 };
	struct err err = { 0 };

	coll_to_proto(part, &whole);
	must(coll_part_to_proto(s, rank, &once, &err), &err);
	assert_int_equal(once.len, whole.len);
	assert_memory_equal(once.data, whole.data, whole.len);
	buf_fini(&whole);
	buf_fini(&once);
}

static void assert_same_parts(const struct coll_sched *a, const struct coll_sched *b, int rank)
{
	struct coll_sched *pa, *pb;
	struct err err = { 0 };

	must(coll_part_of(a, rank, &pa, &err), &err);
	must(coll_part_of(b, rank, &pb, &err), &err);
	assert_same_flat(pa, pb);
	assert_int_equal(coll_n_arc_routes(pa), coll_n_arc_routes(pb));
	assert_written_at_once(a, rank, pa);
	assert_written_at_once(b, rank, pb);
	coll_free(pa);
	coll_free(pb);
}

static struct coll_sched *reread(const struct coll_sched *s, bool json)
{
	struct coll_sched *out;
	struct err err = { 0 };
	struct buf b = { 0 };

	(json ? coll_to_json : coll_to_proto)(s, &b);
	must(coll_from_bytes(b.data, b.len, &out, &err), &err);
	buf_fini(&b);
	return out;
}

static void assert_same_routes(const struct coll_sched *a, const struct coll_sched *b)
{
	assert_int_equal(coll_n_arc_routes(a), coll_n_arc_routes(b));
	for (int64_t i = 0; i < coll_n_arc_routes(a); i++) {
		struct coll_arc_route p = coll_arc_route(a, i), q = coll_arc_route(b, i);

		assert_true(p.arc == q.arc && p.weight == q.weight && p.n == q.n);
		assert_memory_equal(p.hops, q.hops, (size_t)p.n * sizeof(*p.hops));
	}
}

/* Frees s, whose arcs have each its own routes. */
static void check(struct coll_sched *s, struct rng *rng)
{
	struct coll_sched *flat = unfolded(s), *again;

	assert_true(coll_group(s) != NULL && coll_group(flat) == NULL);
	assert_same_routes(s, flat);
	assert_same_reports(s, flat);
	assert_counted(s);
	assert_same_steps(s, flat);
	assert_same_simulation(s, flat, false);
	assert_same_simulation(s, flat, true);
	assert_same_parts(s, flat, (int)rng_below(rng, (uint64_t)coll_ranks(s)));
	for (int json = 0; json < 2; json++) {
		again = reread(s, json);
		assert_true(topo_group_equal(coll_group(s), coll_group(again)));
		assert_same_routes(s, again);
		assert_same_flat(s, again);
		assert_same_reports(s, again);
		coll_free(again);
	}
	coll_free(flat);
	coll_free(s);
}

/* ---- random routes ---- */

/* The arcs of a random shortest path, and one more arc at times. */
static int random_path(const struct topo *t, int from, int to, struct rng *rng, int32_t *hops)
{
	int32_t dist[MAX_NODES];
	int n, at = to;

	topo_bfs(t, from, dist);
	n = dist[to];
	for (int i = n - 1; i >= 0; i--) {
		const int32_t *in;
		int count = topo_in(t, at, &in), k;

		do {
			k = (int)rng_below(rng, (uint64_t)count);
		} while (dist[topo_arc(t, in[k])->src] != i);
		hops[i] = in[k];
		at = topo_arc(t, in[k])->src;
	}
	return n;
}

static void add_routes(struct coll_sched *s, struct rng *rng)
{
	int32_t hops[MAX_HOPS];
	struct err err = { 0 };

	for (int arc = topo_m(coll_topo(s)) - 1; arc >= 0; arc--) {
		const struct topo_arc *a = topo_arc(coll_topo(s), arc);
		int n = 1 + (int)rng_below(rng, 3);

		for (int i = 0; i < n && a->src != a->dst; i++) {
			struct coll_arc_route r = { .arc = arc, .hops = hops,
						    .weight = 1 + (int32_t)rng_below(rng, 3) };

			r.n = random_path(coll_physical(s), a->src, a->dst, rng, hops);
			must(coll_add_route(s, &r, &err), &err);
		}
	}
}

/* A ring of ranks with switches beside it, random arcs, capacities and latencies, and shared
 * limits. */
static struct topo *random_fabric(int ranks, struct rng *rng)
{
	int n = ranks + (int)rng_below(rng, 4), m = 3 * n;
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int a = 0; a < m; a++) {
		int u = a < n ? a : (int)rng_below(rng, (uint64_t)n);
		int v = a < n ? (a + 1) % n : (int)rng_below(rng, (uint64_t)n);

		must(topo_add_arc(t, u, v, 1 + (int)rng_below(rng, 3),
				  100 * (int)rng_below(rng, 3), &err), &err);
	}
	for (int u = ranks; u < n; u++) {
		topo_set_node(t, u, TOPO_SWITCH, 0);
	}
	for (int i = 0; i < 2; i++) {
		int32_t arcs[2] = { (int32_t)rng_below(rng, (uint64_t)n), 0 };

		arcs[1] = arcs[0] + n;
		must(topo_add_limit(t, arcs, 2, 2, &err), &err);
	}
	topo_freeze(t);
	return t;
}

/* The schedule over random routes in the digraph, which is taken over. */
static struct coll_sched *routed(struct coll_sched *s, struct topo *physical, struct rng *rng)
{
	struct err err = { 0 };
	int64_t n;
	const struct coll_xfer *x = coll_xfers(s, &n);
	struct topo_group *g;
	struct coll_sched *out;
	struct topo *copy;

	must(topo_copy(coll_topo(s), &copy, &err), &err);
	must(coll_new(coll_kind_of(s), copy, coll_chunks(s), 0, 0, &out, &err), &err);
	must(topo_group_copy(coll_group(s), &g, &err), &err);
	must(coll_set_group(out, g, &err), &err);
	must(coll_set_physical(out, physical, COLL_ROUTING_EXPLICIT, 1000, &err), &err);
	must(coll_route_each(out, &err), &err);
	add_routes(out, rng);
	for (int64_t i = 0; i < n; i++) {
		must(coll_add(out, &x[i], &err), &err);
	}
	finish(out);
	coll_free(s);
	return out;
}

static const char *const logical[] = {
	"Hypercube(3)", "Hypercube(4)", "C(12,{1,5})", "DiC(9,{1,3})", "Torus(3,4)", "K(7)",
	"Cay((1,2),(1,2,3))", "Cay(7:3,r=2,{(1,0),(0,1)})", "GenKautz(2,12)",
	"Multi(Ring(6),2)", "Prod(Cap(Ring(3),2),Lat(Ring(4),300))",
};

/* On any digraph, and on the logical one itself, whose group keeps no random routes. */
static void random_routes(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 19);
	for (int k = 0; k < 66; k++) {
		const char *expr = logical[(size_t)k % (sizeof(logical) / sizeof(*logical))];
		struct coll_sched *s = bfb(kinds[k % 3], expr);
		struct topo *t;
		struct err err = { 0 };

		if (k % 4 == 0) {
			must(topo_copy(coll_topo(s), &t, &err), &err);
		} else {
			t = random_fabric(coll_ranks(s), &rng);
		}
		check(routed(s, t, &rng), &rng);
	}
}

/* Every shard straight to its rank, in random steps. */
static void all_to_all(void **state)
{
	struct err err = { 0 };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 5);
	for (int n = 4; n < 20; n++) {
		struct coll_sched *s = empty(COLL_ALLTOALL, "K(4)", 1);
		struct topo_group *g;
		char expr[16];

		coll_free(s);
		snprintf(expr, sizeof(expr), "K(%d)", n);
		s = empty(COLL_ALLTOALL, expr, 1);
		must(topo_group_find(coll_topo(s), &g, &err), &err);
		must(coll_set_group(s, g, &err), &err);
		for (int v = 1; v < n; v++) {
			send_to(s, (int)rng_below(&rng, 3), 0, v, 0, v);
		}
		finish(s);
		check(routed(s, random_fabric(n, &rng), &rng), &rng);
	}
}

/* Sums that are forwarded along chains, whose ranks move with the rest. */
static void forwarded_sums(void **state)
{
	static const struct chain_plan plans[] = {
		{ "C(12,{1,3})", 2, { { 1, 3 }, { 3, 4 } } },
		{ "C(15,{1,5})", 2, { { 5, 3 }, { 1, 5 } } },
		{ "Ring(9)", 1, { { 1, 9 } } },
	};
	struct rng rng;

	(void)state;
	rng_seed(&rng, 8);
	for (size_t i = 0; i < 3 * sizeof(plans) / sizeof(plans[0]); i++) {
		struct coll_sched *s = chains(&plans[i / 3]);

		assert_true(coll_forwards(s));
		check(routed(s, random_fabric(coll_ranks(s), &rng), &rng), &rng);
	}
}

/* Shards go by two memories to all three ranks; rotations leave the memories where they are,
 * and so they leave the arc between them. */
static void memories(void **state)
{
	static const char text[] = "memory 3-4\nswitch 5\n0 3 1 10\n1 3 2 20\n2 3 1 30\n3 5 1 5\n"
				   "5 4 1 7\n3 4 2 2\n4 0 1 1\n4 1 2 2\n4 2 3 3\n";
	static const int arcs[][2] = { { 0, 3 }, { 1, 3 }, { 2, 3 }, { 3, 4 }, { 4, 0 }, { 4, 1 },
				       { 4, 2 } };
	static const int32_t turn[] = { 1, 2, 0, 3, 4 };
	struct err err = { 0 };
	struct topo_group *g;
	struct coll_sched *s;
	struct topo *t;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 2);
	must(topo_new(5, &t, &err), &err);
	for (size_t i = 0; i < sizeof(arcs) / sizeof(arcs[0]); i++) {
		must(topo_add_arc(t, arcs[i][0], arcs[i][1], 1, 0, &err), &err);
	}
	topo_set_node(t, 3, TOPO_MEMORY, TOPO_CAN_COPY | TOPO_CAN_STORE);
	topo_set_node(t, 4, TOPO_MEMORY, TOPO_CAN_COPY | TOPO_CAN_STORE);
	topo_freeze(t);
	must(coll_new(COLL_ALLGATHER, t, 1, 0, 0, &s, &err), &err);
	must(topo_group_new(5, 3, 1, (int[]){ 3 }, turn, &g, &err), &err);
	must(coll_set_group(s, g, &err), &err);
	send_part(s, 0, 0, 3, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 1, 3, 4, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 2, 4, 1, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 2, 4, 2, 0, 0, 0, COLL_OP_COPY);
	finish(s);
	must(topo_from_edges(text, strlen(text), &t, &err), &err);
	check(routed(s, t, &rng), &rng);
}

/* ---- chosen by coll_embed ---- */

/* Recursive doubling of n = 2^k ranks, each step over one arc: sums over the whole vector. */
static struct coll_sched *doubling(int n)
{
	struct err err = { 0 };
	struct topo_group *g;
	struct coll_sched *s;
	char expr[32];
	int k = 0;

	while (1 << k < n) {
		k++;
	}
	snprintf(expr, sizeof(expr), "Hypercube(%d)", k);
	s = empty(COLL_ALLREDUCE, expr, 1);
	must(topo_group_find(coll_topo(s), &g, &err), &err);
	must(coll_set_group(s, g, &err), &err);
	for (int step = 0; step < k; step++) {
		for (int u = 0; u < n; u++) {
			/* Shard 0 is summed in 0, then goes back: u has what ends in `step` 0s. */
			if (u % (1 << (step + 1)) == 1 << step) {
				send_part(s, step, u, u ^ 1 << step, 0, 0, 0, COLL_OP_REDUCE);
				send_part(s, 2 * k - 1 - step, u ^ 1 << step, u, 0, 0, 0,
					  COLL_OP_COPY);
			}
		}
	}
	finish(s);
	return s;
}

/* The whole group stays where transfers would be more than hops, by any rule. */
static void doubling_keeps_its_group(void **state)
{
	static const char *const physical[] = {
		"Ring(16)", "Torus(4,4)", "Mesh(4,4)", "HyperX(4,4)", "HammingMesh(2,2,2)",
		"Torus(2,8)", "Mesh(16)", "FatTree(4)", "Rails(4,4)",
	};
	struct coll_sched *s = doubling(16), *flat = unfolded(s);
	struct rng rng;
	int whole = 0;

	(void)state;
	rng_seed(&rng, 1);
	for (size_t i = 0; i < sizeof(physical) / sizeof(*physical); i++) {
		for (int dimensions = 0; dimensions < 2; dimensions++) {
			enum coll_routing routing = dimensions ? COLL_ROUTING_DIMENSION_ORDER
							       : COLL_ROUTING_MINIMAL_SPLIT;
			struct coll_sched *e, *f;

			if (dimensions && strcmp(physical[i], "FatTree(4)") == 0) {
				continue;
			}
			e = embedded(s, physical[i], routing);
			f = embedded(flat, physical[i], routing);
			assert_same_reports(e, f);
			if (coll_n_arc_routes(e) == coll_n_arc_routes(f)) {
				assert_int_equal(topo_group_order(coll_group(e)), 16);
				whole++;
				check(e, &rng);
			} else {
				coll_free(e);
			}
			coll_free(f);
		}
	}
	assert_true(whole >= 8);
	coll_free(s);
	coll_free(flat);
}

/* Explicit routes are believed in no symmetry, and yet the transfers stay compact. */
static void explicit_routes(void **state)
{
	static const char json[] = "{\"routes\": [[0,1,1,[0,1]], [1,0,1,[1,0]], [1,3,2,[1,3]], "
				   "[1,3,1,[1,0,2,3]], [3,1,1,[3,1]], [3,2,1,[3,2]], "
				   "[2,3,1,[2,3]], [2,0,1,[2,0]], [0,2,5,[0,1,3,2]]]}";
	static const char less[] = "{\"routes\": [[0,1,1,[0,1]]]}";
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "Hypercube(2)"), *e;
	struct err err = { 0 };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1);
	must(coll_embed_routes(s, graph_of("Hypercube(2)"), json, strlen(json), 0, &e, &err), &err);
	assert_int_equal(topo_group_order(coll_group(e)), 4);
	assert_int_equal(coll_n_arc_routes(e), 9);
	check(e, &rng);
	assert_int_equal(coll_embed_routes(s, graph_of("Hypercube(2)"), less, strlen(less), 0, &e,
					   &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "arc 1 (0 -> 2) carries and has no route"));
	coll_free(s);
}

/* ---- files ---- */

/* A file that says less than it must is refused. */
static void incomplete_files(void **state)
{
	static const char *const text = "{\"format\": \"weft-schedule\", \"version\": 2, "
		"\"collective\": \"allgather\", \"nodes\": 2, \"chunks\": 1, "
		"\"physical_nodes\": %d, \"physical_arcs\": [[0,1,1,0],[1,0,2,0]], "
		"\"physical_arcs_columns\": [\"src\",\"dst\",\"cap\",\"latency_ns\"], "
		"\"arcs\": [[0,1],[1,0]], \"arcs_columns\": [\"src\",\"dst\"], "
		"\"generators\": [[2]], \"images\": [%s], \"routing\": \"explicit\", "
		"\"routes\": [%s], \"routes_columns\": [\"arc\",\"hops\"], \"hops\": [%s], "
		"\"transfers_columns\": [\"step\",\"arc\",\"origin\",\"first\",\"last\"], "
		"\"transfers\": [[0,0,0,0,0]]}";
	static const struct {
		int nodes;
		const char *images, *routes, *hops, *error;
	} cases[] = {
		{ 2, "[1],[0]", "[0,1],[1,1]", "[0],[1]", NULL },
		{ 2, "[1],[0]", "[0,1]", "[0]", "arc 1 (1 -> 0) carries and has no route" },
		{ 2, "[1],[0]", "[1,1]", "[1]", "arc 0 (0 -> 1) carries and has no route" },
		{ 2, "[1],[0]", "[0,1],[2,1]", "[0],[1]", "arc 2 is missing" },
		{ 2, "[1],[1]", "[0,1],[1,1]", "[0],[1]", "generator 0" },
		{ 2, "[1],[0],[2]", "[0,1],[1,1]", "[0],[1]", "images: 3 rows" },
	};
	struct err err = { 0 };
	char file[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct coll_sched *s = NULL;
		int n = snprintf(file, sizeof(file), text, cases[i].nodes, cases[i].images,
				 cases[i].routes, cases[i].hops);
		int rc = coll_from_json(file, (size_t)n, &s, &err);

		if (!cases[i].error) {
			must(rc, &err);
			must(coll_verify(s, NULL, &err), &err);
		} else if (rc != WEFT_EINVAL || !strstr(err.msg, cases[i].error)) {
			fail_msg("case %zu: \"%s\" is not in: %s", i, cases[i].error, err.msg);
		}
		coll_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_routes),
		cmocka_unit_test(all_to_all),
		cmocka_unit_test(forwarded_sums),
		cmocka_unit_test(memories),
		cmocka_unit_test(doubling_keeps_its_group),
		cmocka_unit_test(explicit_routes),
		cmocka_unit_test(incomplete_files),
	};

	return cmocka_run_group_tests_name("embedding/own_routes", tests, NULL, NULL);
}
