/* SPDX-License-Identifier: Apache-2.0 */
/* Shared backups, judged by cutting each link: what is active then has its slots for itself. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "lib/base/map.h"
#include "lib/base/number/rng.h"
#include "rwa/mesh/mesh.h"

static void arc(struct rwa_mesh *m, int32_t a, int32_t b, int32_t fibres)
{
	struct rwa_mesh_arc there = { .src = a, .dst = b, .fibres = fibres }, back = there;

	back.src = b;
	back.dst = a;
	assert_int_equal(rwa_mesh_add_arc(m, &there, NULL), 0);
	assert_int_equal(rwa_mesh_add_arc(m, &back, NULL), 0);
}

static void demand(struct rwa_mesh *m, int32_t s, int32_t t, int32_t count, enum rwa_protect kind)
{
	struct rwa_mesh_demand d = { s, t, count, kind };

	assert_int_equal(rwa_mesh_add_demand(m, &d, NULL), 0);
}

/* Three routes of two links from 0 to 1. */
static struct rwa_mesh *theta(enum rwa_protect kind)
{
	struct rwa_mesh *m;

	assert_int_equal(rwa_mesh_new(5, &m, NULL), 0);
	for (int32_t v = 2; v < 5; v++) {
		arc(m, 0, v, 1);
		arc(m, v, 1, 1);
	}
	demand(m, 0, 1, 2, kind);
	return m;
}

static struct rwa_mesh *draw(struct rng *rng, int kinds)
{
	int32_t n = 5 + (int32_t)rng_below(rng, 4);
	struct rwa_mesh *m;

	assert_int_equal(rwa_mesh_new(n, &m, NULL), 0);
	for (int32_t v = 0; v < n; v++) {
		arc(m, v, (v + 1) % n, 1 + (int32_t)rng_below(rng, 2));
	}
	arc(m, 0, 2, 1);
	arc(m, 1, n - 1, 1);
	for (int i = 0; i < 2 * n; i++) {
		int32_t s = (int32_t)rng_below(rng, (uint64_t)n);

		demand(m, s, (s + 1 + (int32_t)rng_below(rng, (uint64_t)n - 1)) % n,
		       1 + i % 2, kinds < 0 ? (enum rwa_protect)(i % 3) : (enum rwa_protect)kinds);
	}
	return m;
}

static bool is_cut(const struct rwa_mesh *m, int32_t arc, int32_t cut)
{
	const struct rwa_mesh_arc *a = &m->arcs.v[arc], *b = &m->arcs.v[cut];

	return (a->src == b->src && a->dst == b->dst) || (a->src == b->dst && a->dst == b->src);
}

static bool is_hit(const struct rwa_mesh *m, const struct rwa_assignment *a,
		   const struct rwa_path *p, int32_t cut)
{
	bool hit = false;

	for (int32_t h = 0; h < p->hops && cut >= 0; h++) {
		hit |= is_cut(m, a->hops.v[p->first + h].arc, cut);
	}
	return hit;
}

static void light(const struct rwa_assignment *a, const struct rwa_path *p, struct u64map *lit)
{
	for (int32_t h = 0; h < p->hops; h++) {
		const struct rwa_hop *x = &a->hops.v[p->first + h];
		uint64_t key = (uint64_t)x->arc << 32 | (uint64_t)x->fibre << 16 |
			       (uint64_t)x->channel;

		assert_false(u64map_get(lit, key, NULL));
		u64map_set(lit, key, 1);
	}
}

/* With this link cut (-1: none), each protected lightpath has light, on slots of its own. */
static void cut_link(const struct rwa_mesh *m, const struct rwa_assignment *a, int32_t cut)
{
	struct u64map lit = { 0 };

	for (size_t i = 0; i < a->paths.n; i++) {
		const struct rwa_path *p = &a->paths.v[i];
		enum rwa_protect kind = m->demands.v[p->demand].protect;
		bool hit = is_hit(m, a, p, cut);

		if (!hit) {
			light(a, p, &lit);
		}
		if (kind != RWA_UNPROTECTED) {
			const struct rwa_path *backup = &a->paths.v[++i];

			assert_int_equal(backup->demand, p->demand);
			assert_false(hit && is_hit(m, a, backup, cut));
			if (hit || (kind == RWA_DEDICATED && !is_hit(m, a, backup, cut))) {
				light(a, backup, &lit);
			}
		}
	}
	u64map_fini(&lit);
}

static int solve(const struct rwa_mesh *m, struct rwa_mesh_result *res)
{
	struct rwa_mesh_options opt = { .seed = 3, .work = 3000 };
	struct err err = { 0 };

	if (rwa_mesh_solve(m, &opt, res, &err)) {
		fail_msg("%s", err.msg);
	}
	return res->channels;
}

static void every_cut_is_survived(void **state)
{
	struct rng rng;
	int fewer = 0;

	(void)state;
	rng_seed(&rng, 5);
	for (int k = 0; k < 14; k++) {
		struct rwa_mesh *m = draw(&rng, k % 2 ? -1 : RWA_SHARED);
		struct rwa_mesh_result res, alone;
		int channels = solve(m, &res);

		assert_int_equal(res.lightpaths, m->lightpaths);
		assert_true(res.bound >= 1 && res.bound <= channels);
		for (int32_t e = -1; e < (int32_t)m->arcs.n; e++) {
			cut_link(m, &res.assignment, e);
		}
		for (size_t d = 0; d < m->demands.n; d++) {
			m->demands.v[d].protect = m->demands.v[d].protect ? RWA_DEDICATED : 0;
		}
		fewer += solve(m, &alone) - channels;
		rwa_mesh_result_fini(&res);
		rwa_mesh_result_fini(&alone);
		rwa_mesh_free(m);
	}
	print_message("# %d channels fewer than with backups of their own\n", fewer);
	assert_true(fewer > 6);
}

static void two_on_one(void **state)
{
	struct rwa_mesh *m = theta(RWA_SHARED);
	struct rwa_mesh_result res;
	struct err err = { 0 };
	struct rwa_hop *v;

	(void)state;
	assert_int_equal(solve(m, &res), 1);
	assert_int_equal(res.bound, 1);
	assert_int_equal(res.working_slots, 4);
	assert_int_equal(res.slots, 6);
	/* Both workings on one route, on two channels: their backups may not meet. */
	v = res.assignment.hops.v;
	memcpy(v + res.assignment.paths.v[2].first, v + res.assignment.paths.v[0].first,
	       2 * sizeof(*v));
	v += res.assignment.paths.v[2].first;
	v[0].channel = v[1].channel = 1;
	assert_int_equal(rwa_mesh_check(m, &res.assignment, 2, true, &err), WEFT_EVERIFY);
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
	m = theta(RWA_DEDICATED);
	assert_int_equal(solve(m, &res), 2);
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
}

/* Working lightpaths stay where they are; where no backup fits, the pair is left out. */
static void pinned(void **state)
{
	struct rwa_mesh *m = theta(RWA_DEDICATED);
	struct rwa_hop hops[] = { { 0, 0, 0 }, { 2, 0, 0 }, { 4, 0, 0 }, { 6, 0, 0 } };
	struct rwa_path paths[] = { { 0, 2, 0 }, { 0, 2, 2 } };
	struct rwa_assignment before = { .paths = { paths, 2, 2 }, .hops = { hops, 4, 4 } };
	struct rwa_mesh_options opt = { .channels = 1, .seed = 1, .work = 100,
					.objective = RWA_MIN_MOVED, .before = &before,
					.pinned = true };
	struct rwa_mesh_result res;

	(void)state;
	assert_int_equal(rwa_mesh_solve(m, &opt, &res, NULL), 0);
	assert_int_equal(res.lightpaths, 2);
	assert_memory_equal(res.assignment.hops.v + res.assignment.paths.v[0].first,
			    hops + 2 * (res.assignment.hops.v[0].arc == 4), 2 * sizeof(*hops));
	rwa_mesh_result_fini(&res);
	m->demands.v[0].protect = RWA_SHARED;
	assert_int_equal(rwa_mesh_solve(m, &opt, &res, NULL), 0);
	assert_int_equal(res.lightpaths, 4);
	assert_int_equal(res.slots, 6);
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
}

/* The least slots are those of an integer program over all disjoint pairs and their channels. */
static void fewest_slots(void **state)
{
	static const int links[][2] = { { 0, 1 }, { 0, 2 }, { 0, 4 }, { 0, 5 }, { 1, 2 }, { 2, 3 },
					{ 2, 5 }, { 3, 4 }, { 4, 5 } };
	static const int wanted[][2] = { { 0, 1 }, { 0, 2 }, { 0, 4 }, { 0, 5 }, { 1, 0 }, { 1, 2 },
					 { 1, 4 }, { 2, 1 }, { 2, 3 }, { 2, 5 }, { 3, 0 }, { 3, 2 },
					 { 4, 0 }, { 4, 3 }, { 5, 3 } };
	struct rwa_mesh_options opt = { .seed = 1 };
	struct rwa_mesh_result res;
	struct rwa_mesh *m;

	(void)state;
	assert_int_equal(rwa_mesh_new(6, &m, NULL), 0);
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
		arc(m, links[i][0], links[i][1], 1);
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		demand(m, wanted[i][0], wanted[i][1], 1, RWA_SHARED);
	}
	assert_int_equal(rwa_mesh_solve(m, &opt, &res, NULL), 0);
	assert_int_equal(res.channels, 3);
	assert_int_equal(res.slots, 32);
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
}

static void refused(void **state)
{
	struct rwa_mesh_options opt = { .seed = 1 };
	struct rwa_mesh *m = theta(RWA_SHARED);
	struct rwa_mesh_result res;
	struct err err = { 0 };

	(void)state;
	m->guard.between = 1;
	assert_int_equal(rwa_mesh_solve(m, &opt, &res, &err), WEFT_EUNSUPPORTED);
	assert_string_equal(err.msg, "shared backups with guard channels: not supported");
	m->guard.between = 0;
	m->nodes.v[1].add_limit = 3;
	assert_int_equal(rwa_mesh_solve(m, &opt, &res, &err), WEFT_EUNSUPPORTED);
	assert_string_equal(err.msg, "shared backups with limits to add and drop: not supported");
	rwa_mesh_free(m);
	/* A bridge. */
	assert_int_equal(rwa_mesh_new(3, &m, NULL), 0);
	arc(m, 0, 1, 2);
	arc(m, 1, 2, 2);
	demand(m, 0, 2, 1, RWA_SHARED);
	assert_int_equal(rwa_mesh_solve(m, &opt, &res, NULL), WEFT_EINFEASIBLE);
	rwa_mesh_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cut_is_survived), cmocka_unit_test(two_on_one),
		cmocka_unit_test(pinned), cmocka_unit_test(fewest_slots),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
