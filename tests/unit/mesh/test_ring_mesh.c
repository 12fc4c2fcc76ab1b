/* SPDX-License-Identifier: Apache-2.0 */
/* Rings as meshes: plain ones by the ring's own solver, others by search. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "rwa/mesh/mesh.h"
#include "tests/unit/mesh/ring_demands.h"
#include "tests/unit/world.h"

#define MOST_NODES 64

static void solve(const struct rwa_mesh *m, int channels,
		  struct rwa_mesh_result *res)
{
	struct rwa_mesh_options opt = { .channels = channels, .seed = 3 };
	struct err err = { 0 };

	if (rwa_mesh_solve(m, &opt, res, &err)) {
		fail_msg("%s", err.msg);
	}
	assert_int_equal(rwa_mesh_check(m, &res->assignment, res->channels,
					!channels, NULL), 0);
	assert_int_equal(rwa_certificate_check(m, &res->certificate, NULL), 0);
	assert_true(res->bound <= res->channels || channels);
}

static struct rwa_mesh *ring(int n, int fibres)
{
	struct rwa_mesh *m;

	assert_int_equal(rwa_mesh_new_ring(n, fibres, &m, NULL), 0);
	return m;
}

/* The same ring with its nodes and arcs in any order. */
static struct rwa_mesh *shuffled(const struct rwa_mesh *m, struct rng *rng,
				 int32_t *name)
{
	int32_t n = (int32_t)m->nodes.n, e = (int32_t)m->arcs.n;
	int32_t *order = calloc((size_t)e, sizeof(*order));
	struct rwa_mesh *out;

	assert_int_equal(rwa_mesh_new(n, &out, NULL), 0);
	for (int32_t i = 0; i < e; i++) {
		int32_t k = (int32_t)rng_below(rng, (uint64_t)i + 1);
		int32_t v = (int32_t)rng_below(rng, (uint64_t)(i % n) + 1);

		order[i] = order[k];
		order[k] = i;
		if (i < n) {
			name[i] = name[v];
			name[v] = i;
		}
	}
	for (int32_t i = 0; i < e; i++) {
		struct rwa_mesh_arc a = m->arcs.v[order[i]];

		a.src = name[a.src];
		a.dst = name[a.dst];
		assert_int_equal(rwa_mesh_add_arc(out, &a, NULL), 0);
	}
	free(order);
	return out;
}

static void add_demands(struct rwa_mesh *m, const struct rwa_arc *arcs,
			int64_t count, const int32_t *name)
{
	for (int64_t i = 0; i < count; i++) {
		struct rwa_mesh_demand d = {
			name ? name[arcs[i].src] : arcs[i].src,
			name ? name[arcs[i].dst] : arcs[i].dst, 1, false,
		};

		assert_int_equal(rwa_mesh_add_demand(m, &d, NULL), 0);
	}
}

static void plain_rings_are_no_worse(void **state)
{
	struct rwa_arc *arcs = calloc(8 * MOST_NODES, sizeof(*arcs));
	int32_t name[MOST_NODES];
	struct rng rng;
	const int sets = ALL_OR_SOME(16, 6);
	int by_ring = 0;

	(void)state;
	rng_seed(&rng, 12);
	for (int k = 0; k < sets; k++) {
		struct rwa_ring r = { .fibres = 1, .channels = 65536 };
		int64_t count = draw_demands(k, MOST_NODES, arcs, &r.n);
		int fibres = 1 + k % 3, channels;
		struct rwa_mesh *plain = ring(r.n, fibres);
		struct rwa_mesh *m = shuffled(plain, &rng, name);
		struct rwa_mesh_result res;
		struct rwa_result want;

		count = count < 200 ? count : 200;
		add_demands(m, arcs, count, name);
		assert_int_equal(rwa_ring_route(&r, arcs, count, &want, NULL),
				 0);
		channels = (want.colours + fibres - 1) / fibres;
		solve(m, 0, &res);
		assert_true(res.channels <= channels);
		assert_true(res.bound >= (want.bound + fibres - 1) / fibres);
		by_ring += strcmp(res.method, "ring") == 0;
		rwa_mesh_result_fini(&res);
		/* With room for all the ring's answer will do as well. */
		solve(m, channels, &res);
		assert_int_equal(res.lightpaths, count);
		assert_string_equal(res.method, "ring");
		rwa_mesh_result_fini(&res);
		rwa_mesh_free(m);
		rwa_mesh_free(plain);
	}
	assert_true(4 * by_ring >= 3 * sets);
	free(arcs);
}

/* Whatever asks for more than a plain ring has is searched for. */
static void what_is_no_plain_ring(void **state)
{
	(void)state;
	for (int k = 0; k < 7; k++) {
		struct rwa_mesh *m = ring(6, 1);
		struct rwa_mesh_result res;

		assert_int_equal(rwa_mesh_all_to_all(m, NULL), 0);
		if (k == 1) {
			m->arcs.v[3].fibres = 2;
		} else if (k == 2) {	/* a chord instead of a link */
			m->arcs.v[0].dst = 3;
		} else if (k == 3) {
			struct rwa_mesh_tuning t = { 2, 0, 99 };

			assert_int_equal(rwa_mesh_add_tuning(m, &t, NULL), 0);
		} else if (k == 4) {
			m->guard.between = 1;
		} else if (k == 5) {
			struct rwa_mesh_block b = { 0, 0, 0, false };

			assert_int_equal(rwa_mesh_add_block(m, &b, NULL), 0);
		} else if (k == 6) {
			m->demands.v[4].protect = true;
			m->lightpaths++;
		}
		solve(m, 0, &res);
		assert_int_equal(strcmp(res.method, "ring") == 0, k == 0);
		rwa_mesh_result_fini(&res);
		rwa_mesh_free(m);
	}
}

/* Nothing is active in a slot in use, next to another, or out of tune. */
static void check_rules(const struct rwa_mesh *m,
			const struct rwa_mesh_result *res)
{
	const struct rwa_assignment *a = &res->assignment;
	size_t width = (size_t)res->channels;
	bool *active = calloc(m->arcs.n * width, sizeof(*active));

	for (size_t i = 0; i < m->blocks.n; i++) {
		const struct rwa_mesh_block *b = &m->blocks.v[i];

		if (b->channel < res->channels && !b->filter) {
			active[(size_t)b->arc * width + (size_t)b->channel] = true;
		}
	}
	for (size_t i = 0; i < a->hops.n; i++) {
		const struct rwa_hop *h = &a->hops.v[i];
		bool *slot = &active[(size_t)h->arc * width + (size_t)h->channel];

		assert_false(*slot);
		*slot = true;
		for (size_t k = 0; k < m->blocks.n; k++) {
			assert_true(m->blocks.v[k].arc != h->arc ||
				    m->blocks.v[k].channel != h->channel);
		}
		assert_true(h->channel >= m->guard.below);
		assert_true(h->channel < res->channels - m->guard.above);
	}
	for (size_t s = 0; s + 1 < m->arcs.n * width && m->guard.between; s++) {
		assert_true(!active[s] || !active[s + 1] || (s + 1) % width == 0);
	}
	for (size_t i = 0; i < a->paths.n; i++) {
		int32_t c = a->hops.v[a->paths.v[i].first].channel;

		for (size_t t = 0; t < m->tunings.n; t++) {
			const struct rwa_mesh_tuning *x = &m->tunings.v[t];
			const struct rwa_mesh_demand *d =
				&m->demands.v[a->paths.v[i].demand];

			assert_true((d->src != x->node && d->dst != x->node) ||
				    (c >= x->first && c <= x->last));
		}
	}
	free(active);
}

static void rings_with_rules(void **state)
{
	struct rng rng;
	const int rings = ALL_OR_SOME(60, 12);
	int met = 0;

	(void)state;
	rng_seed(&rng, 13);
	for (int k = 0; k < rings; k++) {
		int n = 4 + (int)rng_below(&rng, 9);
		struct rwa_mesh *m = ring(n, 1);
		struct rwa_mesh_result res;

		for (int i = 0; i < 2 * n; i++) {
			int32_t s = (int32_t)rng_below(&rng, (uint64_t)n);
			int32_t hop = 1 + (int32_t)rng_below(&rng,
							(uint64_t)n - 1);
			struct rwa_mesh_demand d = { s, (s + hop) % n, 1,
						     false };

			assert_int_equal(rwa_mesh_add_demand(m, &d, NULL), 0);
		}
		if (k % 3 == 0) {
			m->guard = (struct rwa_mesh_guard){ 1, k % 2, 1 };
		}
		for (int i = 0; k % 4 == 1 && i < 2; i++) {
			struct rwa_mesh_tuning t = { 2 * i, 1 + i, 30 };

			assert_int_equal(rwa_mesh_add_tuning(m, &t, NULL), 0);
		}
		for (int i = 0; k % 2 == 0 && i < n; i++) {
			struct rwa_mesh_block b = {
				2 * i, 0, 4 * (int32_t)rng_below(&rng, 2),
				k % 10 == 4,
			};

			assert_int_equal(rwa_mesh_add_block(m, &b, NULL), 0);
		}
		solve(m, 0, &res);
		check_rules(m, &res);
		met += res.channels <= res.bound + 1;
		rwa_mesh_result_fini(&res);
		rwa_mesh_free(m);
	}
	print_message("# of %d: within one channel in %d\n", rings, met);
	assert_true(5 * met >= 4 * rings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_rings_are_no_worse),
		cmocka_unit_test(what_is_no_plain_ring),
		cmocka_unit_test(rings_with_rules),
	};

	return cmocka_run_group_tests_name("mesh/ring_mesh", tests, NULL, NULL);
}
