/* SPDX-License-Identifier: Apache-2.0 */
/* cost: forests out of programs span, weigh what they should and load links as they say. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/cost/cost.h"
#include "lib/base/number/rat.h"

struct forest_case {
	struct topo *t;
	struct coll_forest f;
	struct topo_action *physical, *logical;
	mpq_t *load;		/* by orbit of physical arcs, of all its arcs together */
};

/* All that may be asked of a tree by itself. */
static void check_tree(const struct forest_case *x, const struct coll_forest_tree *tree)
{
	int deepest = 0;

	assert_true(tree->weight > 0);
	for (int v = 0; v < topo_n(x->f.logical); v++) {
		int u = v, depth = 0;

		assert_true(v == tree->root || v >= topo_ranks(x->t) || tree->via[v] >= 0);
		while (tree->via[u] >= 0) {
			const struct topo_arc *a = topo_arc(x->f.logical, tree->via[u]);

			assert_int_equal(tree->inwards ? a->src : a->dst, u);
			u = tree->inwards ? a->dst : a->src;
			assert_true(++depth <= topo_n(x->f.logical));
		}
		assert_true(u == tree->root || tree->via[v] < 0);
		deepest = depth > deepest ? depth : deepest;
	}
	assert_int_equal(tree->depth, deepest);
}

static void add_hop(struct forest_case *x, int arc, int64_t weight, int64_t part, int64_t whole)
{
	mpq_t w;

	mpq_init(w);
	rat_set(w, part, whole);
	mpz_mul_si(mpq_numref(w), mpq_numref(w), weight * topo_group_order(x->f.group));
	mpq_canonicalize(w);
	mpq_add(x->load[topo_action_orbit(x->physical, arc)],
		x->load[topo_action_orbit(x->physical, arc)], w);
	mpq_clear(w);
}

/* What a logical arc carries, on the routes of its orbit. */
static void add_load(struct forest_case *x, int arc, int64_t weight)
{
	const struct coll_forest *f = &x->f;
	int64_t whole = 0;
	int at = -1;

	if (f->routes.n == 0) {
		add_hop(x, arc, weight, 1, 1);
		return;
	}
	for (size_t i = 0; i < f->routes.n; i++) {
		int other = f->routes.v[i].arc;

		if (topo_action_orbit(x->logical, other) == topo_action_orbit(x->logical, arc)) {
			assert_true(at < 0 || at == other);
			at = other;
			whole += f->routes.v[i].weight;
		}
	}
	assert_true(at >= 0);
	for (size_t i = 0; i < f->routes.n; i++) {
		const struct coll_forest_route *r = &f->routes.v[i];
		int node = topo_arc(f->logical, at)->src;

		for (int k = 0; k < r->n && r->arc == at; k++) {
			const struct topo_arc *hop = topo_arc(x->t, f->hops.v[r->first + k]);

			assert_int_equal(hop->src, node);
			node = hop->dst;
			add_hop(x, f->hops.v[r->first + k], weight, r->weight, whole);
		}
		assert_true(r->arc != at || node == topo_arc(f->logical, at)->dst);
	}
}

/* The fullest orbit takes f->time, times the units that a shard is cut into. */
static void check_loads(struct forest_case *x, int64_t shard)
{
	int orbits = topo_action_orbits(x->physical);
	mpq_t time, most;

	x->load = malloc((size_t)orbits * sizeof(*x->load));
	mpq_inits(time, most, NULL);
	for (int i = 0; i < orbits; i++) {
		mpq_init(x->load[i]);
	}
	for (size_t i = 0; i < x->f.trees.n; i++) {
		const struct coll_forest_tree *tree = &x->f.trees.v[i];

		check_tree(x, tree);
		for (int v = 0; v < topo_n(x->f.logical); v++) {
			if (tree->via[v] >= 0) {
				add_load(x, tree->via[v], tree->weight);
			}
		}
	}
	for (int i = 0; i < orbits; i++) {
		rat_set(time, 1, topo_action_size(x->physical, i) * shard);
		mpz_mul_si(mpq_denref(time), mpq_denref(time),
			   topo_arc(x->t, topo_action_first(x->physical, i))->cap);
		mpq_canonicalize(time);
		mpq_mul(time, time, x->load[i]);
		if (mpq_cmp(time, most) > 0) {
			mpq_set(most, time);
		}
		mpq_clear(x->load[i]);
	}
	/* Shares of routes are rounded. */
	if (mpq_get_d(most) > mpq_get_d(x->f.time) * 1.002 || mpq_cmp(most, x->f.time) < 0) {
		gmp_printf("# loads take %Qd, said %Qd\n", most, x->f.time);
		fail_msg("loads");
	}
	free(x->load);
	mpq_clears(time, most, NULL);
}

static void check_weights(const struct forest_case *x, enum coll_kind kind)
{
	const struct coll_forest *f = &x->f;
	int64_t sum[2] = { 0, 0 }, want = f->share;
	int roots = coll_has_root(kind) ? 1 : f->group ? topo_group_orbits(f->group)
					  : topo_ranks(x->t);

	for (size_t i = 0; i < f->trees.n; i++) {
		sum[f->trees.v[i].inwards] += f->trees.v[i].weight;
	}
	want *= roots;
	assert_int_equal(sum[0], kind == COLL_REDUCE_SCATTER || kind == COLL_REDUCE ? 0 : want);
	assert_int_equal(sum[1], kind == COLL_ALLGATHER || kind == COLL_BROADCAST ? 0 : want);
}

/* time: of f, in shards; NULL: near the best. */
static void check(const char *expr, enum coll_kind kind, const char *time)
{
	struct coll_rate_demand demand = { kind, 0, 1 };
	struct coll_rate_options opt = { .min_cost = true };
	struct forest_case x;
	struct err err = { 0 };
	struct coll_rate r;
	char text[100];

	coll_rate_init(&r);
	coll_forest_init(&x.f);
	assert_int_equal(topo_parse(expr, &x.t, NULL, &err), 0);
	if (coll_rate_forest(x.t, &demand, &opt, &r, &x.f, &err)) {
		fail_msg("%s: %s", expr, err.msg);
	}
	rat_str(x.f.time, text, sizeof(text));
	if (!time) {
		/* Weights are rounded. */
		double best = mpq_get_d(r.time) * (kind == COLL_ALLREDUCE ? topo_ranks(x.t) : 1);

		assert_true(mpq_get_d(x.f.time) >= best * (1 - 1e-12));
		assert_true(mpq_get_d(x.f.time) <= best * (1 + 1e-5));
	} else if (strcmp(text, time) != 0) {
		fail_msg("%s of %s takes %s, expected %s", coll_kind_name(kind), expr, text, time);
	}
	assert_int_equal(topo_action_new(x.t, x.f.group, &x.physical, NULL), 0);
	assert_int_equal(topo_action_new(x.f.logical, x.f.group, &x.logical, NULL), 0);
	check_weights(&x, kind);
	check_loads(&x, x.f.share);
	topo_action_free(x.physical);
	topo_action_free(x.logical);
	coll_forest_fini(&x.f);
	coll_rate_fini(&r);
	topo_free(x.t);
}

static void forests(void **state)
{
	(void)state;
	check("DgxA100(1,nvlink)", COLL_ALLGATHER, "7/300");
	check("DgxA100(2,nvlink)", COLL_ALLGATHER, "3/65");
	check("DgxA100(2,pcie)", COLL_ALLGATHER, "15/32");
	check("DgxA100(1,all)", COLL_ALLGATHER, "7/332");
	check("DgxA100(4,all)", COLL_ALLGATHER, "3/25");
	check("DgxA100(2,all)", COLL_REDUCE_SCATTER, "15/332");
	/* Beyond 18 servers some do as the last that is searched. */
	check("DgxA100(20,nvlink)", COLL_ALLGATHER, "19/25");
	check("DgxA100(20,nvlink)", COLL_REDUCE_SCATTER, "19/25");
	check("DgxA100(2,nvlink)", COLL_BROADCAST, "1/200");
	check("DgxA100(4,nvlink)", COLL_ALLREDUCE, "6/25");
	check("Jellyfish(14,3,2)", COLL_ALLGATHER, "13/3");
	check("Jellyfish(14,3,2)", COLL_ALLREDUCE, NULL);
	check("Mesh(3,3)", COLL_REDUCE, "1/2");
	check("Torus(4,4)", COLL_ALLREDUCE, "15/2");
	check("FatTree(4)", COLL_ALLGATHER, "15");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forests),
	};

	return cmocka_run_group_tests_name("cost/forest", tests, NULL, NULL);
}
