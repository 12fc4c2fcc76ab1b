/* SPDX-License-Identifier: Apache-2.0 */
/* Composed plans: their proof, their figures, and that OpTree is no faster. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "optree/private.h"
#include "tests/unit/optree/common.h"
#include "tests/unit/world.h"

static void make(const struct optree_params *p, enum optree_algorithm how,
		 struct optree_plan *out)
{
	struct err err = { 0 };

	if (optree_make(p, how, out, &err)) {
		fail_msg("n=%d w=%d d=%lld: %s", p->n, p->channels,
			 (long long)p->shard_bytes, err.msg);
	}
}

/* The symmetric form's own proof and the replay of all of it agree, on the
 * time as well. */
static void check_expanded(const struct optree_params *p)
{
	struct optree_plan plan;
	struct err err = { 0 };
	int64_t ns, lights;

	make(p, OPTREE_COMPOSED, &plan);
	assert_int_equal(optree_plan_expand(p, &plan, &err), 0);
	ns = replay(p, &plan);
	if (plan.chunks < 5040 && plan.chunks < p->shard_bytes) {
		assert_int_equal(ns, plan.time_ns);
	}
	coll_lights(plan.sched, &lights);
	assert_int_equal(lights, plan.lightpaths);
	assert_true(plan.time_ns >= plan.bound_ns);
	optree_plan_fini(&plan);
}

static void small_rings_replay_in_full(void **state)
{
	static const int64_t bytes[] = { 1, 64, 4000, 300000, 40000000 };
	static const int widths[] = { 1, 2, 3, 7, 16, 65 };

	(void)state;
	for (int n = 2; n <= 64; n += ALL_OR_SOME(1, 7)) {
		for (int k = 0; k < 5; k++) {
			struct optree_params p =
				params(n, widths[(n + k) % 6], bytes[k]);

			p.fibres = 1 + (n + k) % 2;
			check_expanded(&p);
		}
	}
}

static void all_channels_of_all_rings_are_proven(void **state)
{
	(void)state;
	for (int n = 2; n <= 200; n++) {
		for (int len = 1; len < n; len++) {
			int classes = optree_sym_classes(n, len), max = 0;
			int end[200], first[200];

			memset(end, 0, sizeof(end));
			for (int v = n - 1; v >= 0; v--) {
				first[optree_sym_class(n, len, v)] = v;
			}
			for (int v = 0; v < n; v++) {
				int c = optree_sym_class(n, len, v);

				assert_true(end[c] <= v);
				end[c] = v + len;
				assert_true(end[c] <= first[c] + n);
				max = c > max ? c : max;
			}
			assert_int_equal(max + 1, classes);
		}
	}
}

/* Lightpaths of 1, 3 and 4 links fill a channel of 8: with classes of one length these take 50 us
 * and a third of what is above that more. */
static void unlike_lengths_share_channels(void **state)
{
	static const struct {
		int n, w, bytes, ns, tiles;
	} table[] = {
		{ 8, 64, 1000000, 50000, 2 }, { 8, 32, 1000000, 75000, 2 },
		{ 16, 64, 64000, 31400, 2 }, { 7, 32, 1000000, 65000, 2 },
		{ 41, 128, 1000000, 147000, 2 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(table) / sizeof(*table); k++) {
		struct optree_params p = params(table[k].n, table[k].w, table[k].bytes);
		struct optree_plan plan;
		int tiles = 0;

		make(&p, OPTREE_COMPOSED, &plan);
		assert_in_range(plan.time_ns, plan.bound_ns, table[k].ns);
		for (size_t b = 0; b < plan.sym->bands.n; b++) {
			tiles += plan.sym->bands.v[b].at > 0;
		}
		assert_true(tiles >= table[k].tiles);
		optree_plan_fini(&plan);
		check_expanded(&p);
	}
}

/* Two of one tile over each other: the proof sees it, whichever of them moves. */
static void places_in_a_tile_are_apart(void **state)
{
	struct optree_params p = params(8, 64, 1000000);
	struct optree_plan plan;
	struct err err;
	int moved = 0;

	(void)state;
	make(&p, OPTREE_COMPOSED, &plan);
	for (size_t k = 0; k < plan.sym->bands.n; k++) {
		struct sym_band *b = &plan.sym->bands.v[k], keep = *b;

		for (b->at = 0; b->at < b->tile; b->at++) {
			if (b->at != keep.at) {
				assert_int_equal(optree_sym_verify(plan.sym, &err), WEFT_EVERIFY);
				moved++;
			}
		}
		*b = keep;
	}
	assert_true(moved > 8);
	optree_plan_fini(&plan);
}

struct figure {
	int n, w;
	int64_t bytes;
	double min_gain;	/* against OpTree's T = S (d/B + a) */
	double max_ms;
};

static void figures_of_the_table(void **state)
{
	static const struct figure table[] = {
		{ 1024, 64, 64000, 3.9, 0.670 },
		{ 1024, 64, 4000000, 4.3, 13.2001 },
		{ 1024, 64, 128000000, 8.2, 217.4001 },
		{ 2048, 64, 4000000, 4.8, 26.2001 },
		{ 4096, 64, 128000000, 10, 870.2001 },
		{ 4096, 128, 4000, 8, 0.545 },
	};

	(void)state;
	for (size_t k = 0; k < ALL_OR_SOME(6, 2); k++) {
		const struct figure *f = &table[k];
		struct optree_params p = params(f->n, f->w, f->bytes);
		struct optree_plan plan;

		make(&p, OPTREE_AUTO, &plan);
		assert_true((double)plan.time_ns * f->min_gain <=
			    (double)plan.optree_time_ns);
		assert_true((double)plan.time_ns <= f->max_ms * 1e6);
		if (f->n == 1024 && f->bytes == 128000000) {
			assert_true(plan.gap < 0.07);
		}
		optree_plan_fini(&plan);
	}
}

/* bench_ring_random tries hundreds more. */
static void never_slower_than_optree(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7);
	for (int k = 0; k < ALL_OR_SOME(10, 2); k++) {
		int n = 16 + (int)rng_below(&rng, k % 2 ? 4081 : 100);
		double e = (double)rng_below(&rng, 1000000) / 1e6;
		struct optree_params p = params(
			n, 1 + (int)rng_below(&rng, 128),
			(int64_t)(4096 * pow(1e9 / 4096, e)));
		struct optree_plan plan;

		make(&p, OPTREE_AUTO, &plan);
		assert_true(plan.time_ns <= plan.optree_time_ns);
		assert_true(plan.time_ns >= plan.bound_ns);
		optree_plan_fini(&plan);
	}
}

static void never_slower_than_a_built_tree(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 8);
	for (int k = 0; k < ALL_OR_SOME(20, 5); k++) {
		struct optree_params p = params(
			2 + (int)rng_below(&rng, 120),
			1 + (int)rng_below(&rng, 128),
			1 + (int64_t)rng_below(&rng, 5000000));
		struct optree_plan plan, tree;

		make(&p, OPTREE_AUTO, &plan);
		make(&p, OPTREE_TREE, &tree);
		assert_true(plan.time_ns <= tree.time_ns);
		optree_plan_fini(&plan);
		optree_plan_fini(&tree);
	}
}

/* Sizes with poor factors, and the narrowest rings. */
static void any_number_of_nodes(void **state)
{
	static const int n[] = { 2, 3, 5, 1000, 1021 };
	static const int w[] = { 1, 7, 64 };

	(void)state;
	for (int i = 0; i < ALL_OR_SOME(5, 4); i++) {
		for (int j = 0; j < ALL_OR_SOME(3, 1); j++) {
			struct optree_params p = params(n[i], w[j], 100000);
			struct optree_plan plan;

			make(&p, OPTREE_AUTO, &plan);
			assert_true(plan.time_ns >= plan.bound_ns);
			assert_true(plan.time_ns <= plan.optree_time_ns);
			optree_plan_fini(&plan);
		}
	}
}

static int refused(const struct optree_params *p)
{
	struct optree_plan plan;
	struct err err = { 0 };
	int rc = optree_make(p, OPTREE_AUTO, &plan, &err);

	assert_int_not_equal(rc, 0);
	assert_true(err.msg[0] != '\0');
	return rc;
}

static void wrong_parameters(void **state)
{
	struct optree_params p = params(16, 0, 4096);

	(void)state;
	assert_int_equal(refused(&p), WEFT_EINVAL);
	p = params(16, 4, 0);
	assert_int_equal(refused(&p), WEFT_EINVAL);
	p = params(1, 4, 1);
	assert_int_equal(refused(&p), WEFT_ELIMIT);
	p = params(4097, 4, 1);
	assert_int_equal(refused(&p), WEFT_ELIMIT);
}

static struct rwa_loss budget(int reach)
{
	return (struct rwa_loss){ .launch_mdbm = 1000 * reach + 100,
				  .span_mdb = 1000 };
}

/* Levels adapt to how far light goes; no light goes further. */
static void reach_is_a_hard_limit(void **state)
{
	(void)state;
	for (int reach = 0; reach < 40; reach += ALL_OR_SOME(1, 3)) {
		struct rwa_loss loss = budget(reach);
		struct optree_params p = params(100, 16, 4000);
		struct optree_plan plan;

		p.loss = &loss;
		if (reach == 0) {
			assert_int_equal(refused(&p), WEFT_EINFEASIBLE);
			continue;
		}
		make(&p, OPTREE_COMPOSED, &plan);
		assert_true(plan.worst_loss_mdb <= 1000 * reach + 100);
		assert_non_null(plan.sym);
		assert_true(plan.sym->max_len <= reach);
		optree_plan_fini(&plan);
	}
}

/* One thing changed in a good form: its verifier notices. */
static void find_faults(const struct optree_params *p)
{
	struct optree_plan plan;
	struct err err;

	make(p, OPTREE_COMPOSED, &plan);
	for (size_t k = 0; k < plan.sym->hops.n; k++) {
		struct sym_hop *h = &plan.sym->hops.v[k], keep = *h;

		h->at = (h->at + 1) % 60;
		assert_int_equal(optree_sym_verify(plan.sym, &err),
				 WEFT_EVERIFY);
		*h = keep;
		h->last--;
		assert_int_equal(optree_sym_verify(plan.sym, &err),
				 WEFT_EVERIFY);
		*h = keep;
	}
	for (size_t k = 0; k < plan.sym->moves.n; k++) {
		struct sym_move *m = &plan.sym->moves.v[k], keep = *m;

		m->width = 9;
		assert_int_equal(optree_sym_verify(plan.sym, &err),
				 WEFT_EVERIFY);
		*m = keep;
		m->len++;
		assert_int_equal(optree_sym_verify(plan.sym, &err),
				 WEFT_EVERIFY);
		*m = keep;
		m->chunks++;
		assert_int_equal(optree_sym_verify(plan.sym, &err),
				 WEFT_EVERIFY);
		*m = keep;
	}
	for (size_t k = 0; k < plan.sym->bands.n; k++) {
		struct sym_band *b = &plan.sym->bands.v[k], keep = *b;

		for (int what = 0; what < 5; what++) {
			b->tile += what == 0 ? -1 : what == 1 ? 60 : 0;
			b->at += what == 2 ? 1 : 0;
			b->width += what == 3 ? 1 : 0;
			b->base = what == 4 ? -1 : b->base;
			assert_int_equal(optree_sym_verify(plan.sym, &err), WEFT_EVERIFY);
			*b = keep;
		}
	}
	plan.sym->rounds.n--;
	assert_int_equal(optree_sym_verify(plan.sym, &err), WEFT_EVERIFY);
	optree_plan_fini(&plan);
}

static void faults_are_found(void **state)
{
	static const struct optree_fibre uneven[] = {
		{ RWA_CW, 0, 0, 8 }, { RWA_CCW, 0, 2, 5 } };
	struct optree_params p = params(60, 8, 40000);

	(void)state;
	find_faults(&p);
	p.line = true;
	find_faults(&p);
	p.line = false;
	p.light = uneven;
	p.n_light = 2;
	p.shard_bytes = 400000000;
	find_faults(&p);
	p.overlap = true;
	p.convert_ns = 9000;
	p.shard_bytes = 4000;
	find_faults(&p);
}

/* Overlap never costs anything, and its bound holds. */
static void overlap_is_no_slower(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 10);
	for (int k = 0; k < ALL_OR_SOME(40, 5); k++) {
		struct optree_params p = params(
			2 + (int)rng_below(&rng, 150),
			1 + (int)rng_below(&rng, 128),
			1 + (int64_t)rng_below(&rng, k % 2 ? 9000 : 9000000));
		struct optree_plan plain, plan;

		make(&p, OPTREE_AUTO, &plain);
		p.overlap = true;
		p.convert_ns = (int64_t)rng_below(&rng, 25001);
		make(&p, OPTREE_AUTO, &plan);
		assert_true(plan.time_ns <= plain.time_ns);
		assert_true(plan.time_ns >= plan.bound_ns);
		assert_true(plan.bound_ns <= plain.bound_ns);
		optree_plan_fini(&plain);
		optree_plan_fini(&plan);
	}
}

static void baselines_are_real(void **state)
{
	(void)state;
	for (int n = 2; n <= 40; n++) {
		for (int w = 1; w <= 9; w += 4) {
			struct optree_params p = params(n, w, 4000);
			struct optree_plan plan;
			struct err err = { 0 };

			make(&p, OPTREE_BY_RING, &plan);
			assert_int_equal(plan.steps, n - 1);
			assert_int_equal(optree_plan_expand(&p, &plan, &err),
					 0);
			assert_int_equal(coll_steps(plan.sched), n - 1);
			optree_plan_fini(&plan);
			make(&p, OPTREE_BY_WRHT, &plan);
			assert_non_null(plan.sched);
			optree_plan_fini(&plan);
			make(&p, OPTREE_BY_ONE_STAGE, &plan);
			assert_int_equal(plan.steps,
					 (n * n / 4 + 2 * w - 1) / (2 * w));
			optree_plan_fini(&plan);
			if (n % 2) {
				assert_int_equal(
					optree_make(&p, OPTREE_BY_NE, &plan,
						    &err), WEFT_EUNSUPPORTED);
				continue;
			}
			make(&p, OPTREE_BY_NE, &plan);
			assert_int_equal(plan.steps, w > 1 ? n / 2 : n - 1);
			optree_plan_fini(&plan);
		}
	}
}

/* What must be written out is planned within what can be held: still faster
 * than OpTree, where the fastest has too many lights. */
static void lights_are_limited(void **state)
{
	struct optree_params p = params(ALL_OR_SOME(4096, 1024), 64, 128000000);
	struct optree_plan plan;
	int64_t before = INT64_MAX;

	(void)state;
	for (int64_t max = COLL_MAX_LIGHTS; max > 1 << 24; max /= 2) {
		p.max_lights = max;
		make(&p, OPTREE_AUTO, &plan);
		assert_true(plan.lightpaths <= max);
		assert_true(plan.lightpaths <= before);
		assert_true(5 * plan.time_ns <= plan.optree_time_ns);
		before = plan.lightpaths;
		optree_plan_fini(&plan);
	}
	p = params(40, 6, 400000);
	p.max_lights = 2000;
	make(&p, OPTREE_COMPOSED, &plan);
	assert_true(plan.lightpaths <= 2000);
	assert_int_equal(optree_plan_expand(&p, &plan, &(struct err){ 0 }),
			 0);
	optree_plan_fini(&plan);
	p.max_lights = 10;
	assert_int_equal(refused(&p), WEFT_ELIMIT);
}

static int count(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)); text++) {
		n++;
	}
	return n;
}

/* A panel for the light of each level, and a heading. */
static void plans_are_drawn(void **state)
{
	struct optree_params p = params(64, 8, 40000);
	struct optree_plan plan;
	struct buf svg = { 0 };
	struct err err;

	(void)state;
	make(&p, OPTREE_COMPOSED, &plan);
	assert_int_equal(optree_draw(&p, &plan, &svg, &err), 0);
	assert_true(count(buf_cstr(&svg), ">Step") >= 1 + plan.n_levels);
	/* An arc for each lightpath of the steps that are shown. */
	assert_true(count(buf_cstr(&svg), " 0 0 1 ") >= 64 * plan.n_levels);
	assert_non_null(strstr(buf_cstr(&svg), "</svg>"));
	optree_plan_fini(&plan);
	buf_fini(&svg);
}

/* By their lights, each once, in a panel of its own where no two steps are alike. */
static void plans_without_symmetry_are_drawn(void **state)
{
	static const struct { enum coll_kind kind; enum optree_algorithm how; } cases[] = {
		{ COLL_ALLREDUCE, OPTREE_COMPOSED }, { COLL_REDUCE_SCATTER, OPTREE_COMPOSED },
		{ COLL_BROADCAST, OPTREE_COMPOSED }, { COLL_ALLGATHER, OPTREE_TREE },
		{ COLL_ALLGATHER, OPTREE_GROUPED },
	};
	struct optree_params p = params(16, 8, 40000);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct optree_plan plan;
		struct buf svg = { 0 };
		struct err err;
		int64_t lights;

		assert_int_equal(optree_collective(&p, cases[i].kind, 0, cases[i].how, &plan,
						   &err), 0);
		assert_int_equal(optree_draw(&p, &plan, &svg, &err), 0);
		(void)coll_lights(plan.sched, &lights);
		assert_true(coll_steps(plan.sched) <= 12);
		assert_true(count(buf_cstr(&svg), " 0 0 1 ") + count(buf_cstr(&svg), " 0 1 1 ") <=
			    lights);
		assert_true(count(buf_cstr(&svg), " 0 0 1 ") > 0);
		assert_non_null(strstr(buf_cstr(&svg), coll_kind_name(cases[i].kind)));
		optree_plan_fini(&plan);
		buf_fini(&svg);
	}
}

static void algorithms_have_names(void **state)
{
	enum optree_algorithm a;
	struct err err;

	(void)state;
	for (int k = OPTREE_AUTO; k <= OPTREE_BY_ONE_STAGE; k++) {
		const char *name = optree_algorithm_name(
			(enum optree_algorithm)k);

		assert_int_equal(optree_algorithm_parse(name, &a, &err), 0);
		assert_int_equal(a, k);
	}
	assert_int_equal(optree_algorithm_parse("bfb", &a, &err), WEFT_EINVAL);
}

/* Of levels of one stride each the best take 267, 364, 526, 95 and 133 us. */
static void uneven_gaps_load_less(void **state)
{
	static const int rings[][4] = {
		{ 41, 64, 1000000, 235000 }, { 64, 64, 1000000, 331000 },
		{ 100, 64, 1000000, 483000 }, { 16, 8, 64000, 89000 }, { 64, 32, 64000, 114000 },
	};

	(void)state;
	for (int k = 0; k < 5; k++) {
		struct optree_params p = params(rings[k][0], rings[k][1], rings[k][2]);
		struct optree_plan plan;

		make(&p, OPTREE_COMPOSED, &plan);
		assert_true(plan.level[0].uneven);
		assert_true(plan.time_ns < rings[k][3]);
		optree_plan_fini(&plan);
		check_expanded(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_channels_of_all_rings_are_proven),
		cmocka_unit_test(unlike_lengths_share_channels),
		cmocka_unit_test(places_in_a_tile_are_apart),
		cmocka_unit_test(small_rings_replay_in_full),
		cmocka_unit_test(figures_of_the_table),
		cmocka_unit_test(never_slower_than_optree),
		cmocka_unit_test(never_slower_than_a_built_tree),
		cmocka_unit_test(any_number_of_nodes),
		cmocka_unit_test(wrong_parameters),
		cmocka_unit_test(reach_is_a_hard_limit),
		cmocka_unit_test(faults_are_found),
		cmocka_unit_test(overlap_is_no_slower),
		cmocka_unit_test(baselines_are_real),
		cmocka_unit_test(lights_are_limited),
		cmocka_unit_test(plans_are_drawn),
		cmocka_unit_test(plans_without_symmetry_are_drawn),
		cmocka_unit_test(algorithms_have_names),
		cmocka_unit_test(uneven_gaps_load_less),
	};

	return cmocka_run_group_tests_name("optree/compose", tests, NULL, NULL);
}
