/* SPDX-License-Identifier: Apache-2.0 */
/* The paper's figures, and plans for rings of every size. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "optree/baselines/baselines.h"

static struct optree_params params(int n, int channels, int depth)
{
	return (struct optree_params){
		.n = n, .channels = channels, .fibres = 1, .depth = depth,
		.shard_bytes = 4 << 20, .channel_bps = 40000000000,
		.alpha_ns = 25000,
	};
}

static void closed_form_prints_the_papers_table(void **state)
{
	(void)state;
	assert_int_equal(optree_closed_form(16, 2, 1), 16);
	assert_int_equal(optree_closed_form(16, 2, 2), 12);
	assert_int_equal(optree_closed_form(1024, 64, 6), 70);
	assert_int_equal(optree_closed_form(1024, 64, 7), 70);
	assert_true(optree_closed_form(1024, 64, 5) > 70);
	assert_true(optree_closed_form(1024, 64, 8) > 70);
	assert_int_equal(optree_baseline_steps(OPTREE_RING, 1024, 64), 1023);
	assert_int_equal(optree_baseline_steps(OPTREE_NE, 1024, 64), 512);
	assert_int_equal(optree_baseline_steps(OPTREE_WRHT, 1024, 64), 259);
	assert_int_equal(optree_baseline_steps(OPTREE_WRHT, 1024, 128), 515);
	assert_int_equal(optree_baseline_steps(OPTREE_ONE_STAGE, 1024, 64),
			 2048);
	assert_int_equal(optree_baseline_steps(OPTREE_ONE_STAGE, 16, 2), 16);
}

/* The ceiling is right where the real number is an integer. */
static void closed_form_is_exact_at_integers(void **state)
{
	(void)state;
	for (int m = 2; m <= 8; m++) {
		int64_t n = m;

		for (int k = 2; n * m <= 65536; k++) {
			int64_t slots;

			n *= m;
			slots = (2 * k - 1) * n * m;
			for (int w = 1; w <= 128; w += w < 9 ? 1 : 17) {
				assert_int_equal(
					optree_closed_form((int)n, w, k),
					(slots + 8 * w - 1) / (8 * w));
			}
		}
	}
}

static void best_depths_and_average_reduction(void **state)
{
	static const int n[] = { 512, 1024, 2048, 4096 };
	static const int depth[] = { 6, 6, 7, 8 };
	double sum = 0;

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(optree_best_depth(n[i]), depth[i]);
		sum += 1 - (double)optree_closed_form(n[i], 64, depth[i]) /
				   (double)optree_closed_form(n[i], 64, 1);
	}
	assert_int_equal(lround(sum / 4 * 10000), 9685);
	for (int k = 2; k < 8; k++) {
		assert_int_equal(optree_best_depth(k), 1);
	}
}

/* The channels of a plan, from its schedule, checked on their own. */
static void check_light(const struct optree_plan *plan,
			const struct optree_params *p)
{
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	const struct topo *topo = coll_topo(plan->sched);
	const struct coll_light *lights;
	struct rwa_arc *arcs;
	struct err err;
	int64_t n;

	lights = coll_lights(plan->sched, &n);
	assert_int_equal(n, (int64_t)p->n * (p->n - 1));
	assert_int_equal(plan->lightpaths, n);
	arcs = calloc((size_t)n, sizeof(*arcs));
	for (int64_t k = 0; k < n; k++) {
		const struct topo_arc *a = topo_arc(topo, lights[k].arc);

		arcs[k] = (struct rwa_arc){
			.src = a->src, .dst = a->dst, .dir = lights[k].dir,
			.fibre = lights[k].fibre,
			.channel = lights[k].channel, .slot = lights[k].step,
		};
	}
	assert_int_equal(rwa_ring_check(&ring, arcs, n, &err), 0);
	free(arcs);
}

static void check_plan(const struct optree_plan *plan,
		       const struct optree_params *p)
{
	struct coll_report report;
	struct err err;
	int steps = 0;

	coll_report_init(&report);
	assert_int_equal(coll_verify(plan->sched, &report, &err), 0);
	assert_int_equal(report.steps, plan->steps);
	assert_int_equal(report.nodes, p->n);
	coll_report_fini(&report);
	check_light(plan, p);
	for (int j = 0; j < plan->n_levels; j++) {
		steps += plan->level[j].steps;
	}
	assert_int_equal(steps, plan->steps);
	assert_true(plan->time_ns >= plan->bound_ns);
	assert_true(plan->gap >= 0);
	assert_true((int64_t)plan->steps * 2 * p->channels * p->fibres >=
		    p->n - 1);
	assert_true(plan->colours_over_bound >= 0);
	assert_int_equal(coll_ports(plan->sched), 2 * p->channels * p->fibres);
}

static struct optree_plan plan_ok(const struct optree_params *p)
{
	struct optree_plan plan;
	struct err err = { 0 };
	int rc = optree_plan(p, &plan, &err);

	if (rc) {
		print_error("n=%d channels=%d fibres=%d depth=%d: %s\n", p->n,
			    p->channels, p->fibres, p->depth, err.msg);
	}
	assert_int_equal(rc, 0);
	check_plan(&plan, p);
	return plan;
}

static void the_papers_example(void **state)
{
	struct optree_params p = params(16, 2, 2);
	struct optree_plan plan = plan_ok(&p);

	(void)state;
	assert_int_equal(plan.steps, 12);
	assert_int_equal(plan.closed_form_steps, 12);
	assert_int_equal(plan.n_levels, 2);
	assert_int_equal(plan.level[0].steps, 4);
	assert_int_equal(plan.level[1].steps, 8);
	assert_int_equal(plan.level[1].items, 4);
	assert_int_equal(plan.level[1].members, 4);
	assert_int_equal(plan.radix, 4);
	assert_int_equal(plan.colours_over_bound, 0);
	/* 12 (d/B + a), d/B = 838860.8 ns */
	assert_int_equal(plan.time_ns, 10066330 + 12 * 25000);
	optree_plan_fini(&plan);
	p.depth = 1;
	plan = plan_ok(&p);
	assert_int_equal(plan.steps, 16);
	optree_plan_fini(&plan);
}

static int ceil_div(int64_t a, int64_t b)
{
	return (int)((a + b - 1) / b);
}

/* Where m^k = n no level takes more than its slots ask for, and the whole is
 * within the closed form and one step a level. */
static void perfect_powers_keep_the_papers_counts(void **state)
{
	static const int widths[] = { 1, 3, 7, 16, 40 };

	(void)state;
	for (int m = 2; m <= 14; m++) {
		int n = m;

		for (int k = 1; n <= 256; k++, n *= m) {
			struct optree_params p = params(n, 1, k);
			struct optree_plan plan;

			p.channels = widths[(m + k) % 5];
			plan = plan_ok(&p);
			assert_int_equal(plan.radix, m);
			assert_int_equal(plan.n_levels, k);
			assert_int_equal(plan.colours_over_bound, 0);
			for (int j = 0; j < k; j++) {
				int slots = n / m * (j ? m * m / 4
						       : (m * m + 7) / 8);

				assert_true(plan.level[j].steps <=
					    ceil_div(slots, p.channels));
				assert_int_equal(plan.level[j].subsets, n / m);
				assert_int_equal(plan.level[j].members, m);
				assert_int_equal(plan.level[j].items,
						 (int)lround(pow(m, j)));
			}
			assert_true(plan.steps <= plan.closed_form_steps + k);
			optree_plan_fini(&plan);
		}
	}
}

static void any_ring_any_depth(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 20);
	for (int t = 0; t < 70; t++) {
		int n = t < 30 ? 2 + t : 2 + (int)rng_below(&rng, 199);
		struct optree_params p = params(n, 1, 0);
		struct optree_plan plan;

		p.channels = 1 + (int)rng_below(&rng, 40);
		p.fibres = 1 + (int)rng_below(&rng, 3);
		p.depth = (int)rng_below(&rng, 9);
		plan = plan_ok(&p);
		if (p.depth) {
			assert_int_equal(plan.depth, p.depth);
		}
		optree_plan_fini(&plan);
	}
}

static void depth_zero_has_the_fewest_steps(void **state)
{
	static const int sizes[] = { 2, 7, 30, 61, 64, 100 };
	static const int widths[] = { 1, 4, 16 };

	(void)state;
	for (int i = 0; i < 6; i++) {
		for (int j = 0; j < 3; j++) {
			struct optree_params p = params(sizes[i], widths[j], 0);
			struct optree_plan best = plan_ok(&p);

			for (p.depth = 1; p.depth <= 7; p.depth++) {
				struct optree_plan plan = plan_ok(&p);

				assert_true(best.steps <= plan.steps);
				if (p.depth < best.depth) {
					assert_true(best.steps < plan.steps);
				}
				optree_plan_fini(&plan);
			}
			optree_plan_fini(&best);
		}
	}
}

static void the_same_plan_twice(void **state)
{
	struct optree_params p = params(75, 6, 0);
	struct optree_plan a = plan_ok(&p), b = plan_ok(&p);
	const struct coll_light *la, *lb;
	const struct coll_xfer *xa, *xb;
	int64_t na, nb;

	(void)state;
	la = coll_lights(a.sched, &na);
	lb = coll_lights(b.sched, &nb);
	assert_int_equal(na, nb);
	for (int64_t k = 0; k < na; k++) {
		assert_int_equal(la[k].arc, lb[k].arc);
		assert_int_equal(la[k].step, lb[k].step);
		assert_int_equal(la[k].channel, lb[k].channel);
	}
	xa = coll_xfers(a.sched, &na);
	xb = coll_xfers(b.sched, &nb);
	assert_int_equal(na, nb);
	for (int64_t k = 0; k < na; k++) {
		assert_int_equal(xa[k].arc, xb[k].arc);
		assert_int_equal(xa[k].origin, xb[k].origin);
	}
	optree_plan_fini(&a);
	optree_plan_fini(&b);
}

static void light_beyond_the_budget_is_refused(void **state)
{
	struct rwa_loss loss = {
		.launch_mdbm = 0, .sensitivity_mdbm = -20000, .margin_mdb = 0,
		.add_mdb = 500, .drop_mdb = 500, .pass_mdb = 50,
		.rings_per_node = 8, .span_mdb = 100,
	};
	struct optree_params p = params(64, 16, 0);
	struct optree_plan plan;
	struct err err;

	(void)state;
	/* 1 + 0.1 h + 0.4 (h - 1) <= 20: 38 hops; half a turn is 32. */
	p.loss = &loss;
	plan = plan_ok(&p);
	assert_int_equal(plan.worst_loss_mdb, 1000 + 3200 + 31 * 400);
	optree_plan_fini(&plan);
	/* 24 hops: half a turn is out of reach, a third is not. */
	loss.sensitivity_mdbm = -12600;
	plan = plan_ok(&p);
	assert_true(plan.worst_loss_mdb <= 12600);
	assert_int_equal(plan.level[0].members, 3);
	optree_plan_fini(&plan);
	loss.sensitivity_mdbm = -5000;
	assert_int_equal(optree_plan(&p, &plan, &err), WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "hops loses"));
	assert_non_null(strstr(err.msg, "budget is 5.000 dB (reach: 8 hops)"));
	assert_null(plan.sched);
	optree_plan_fini(&plan);
}

/* Without retuning time only bandwidth counts; when retuning is all, the
 * fewest rounds: 3, as lightpaths of 4 channels reach no more in 2. */
static void bound_at_its_ends(void **state)
{
	struct optree_params p = params(64, 4, 0);
	struct optree_plan plan;

	(void)state;
	p.alpha_ns = 0;
	p.shard_bytes = 5000;	/* 1 us */
	plan = plan_ok(&p);
	assert_int_equal(plan.bound_ns, (63 * 1000 + 7) / 8);
	optree_plan_fini(&plan);
	p.alpha_ns = 1000000000;
	plan = plan_ok(&p);
	assert_int_equal(plan.bound_rounds, 3);
	assert_true(plan.bound_ns > 3000000000 && plan.bound_ns < 3000100000);
	optree_plan_fini(&plan);
	/* The bound is met where one round is the best there is. */
	p = params(3, 1, 1);
	plan = plan_ok(&p);
	assert_int_equal(plan.time_ns, plan.bound_ns);
	optree_plan_fini(&plan);
}

static void nonsense_is_refused(void **state)
{
	struct optree_params p = params(1, 4, 0);
	struct optree_plan plan;
	struct err err;

	(void)state;
	assert_int_equal(optree_plan(&p, &plan, &err), WEFT_ELIMIT);
	p = params(5000, 4, 0);
	assert_int_equal(optree_plan(&p, &plan, &err), WEFT_ELIMIT);
	p = params(16, 0, 0);
	assert_int_equal(optree_plan(&p, &plan, &err), WEFT_EINVAL);
	p = params(16, 4, 33);
	assert_int_equal(optree_plan(&p, &plan, &err), WEFT_EINVAL);
	p = params(16, 4, -1);
	assert_int_equal(optree_plan(&p, &plan, &err), WEFT_EINVAL);
	p = params(16, 4, 0);
	p.channel_bps = 0;
	assert_int_equal(optree_plan(&p, &plan, &err), WEFT_EINVAL);
	p = params(16, 4, 0);
	p.span_delay_ns = -1;
	assert_int_equal(optree_plan(&p, &plan, &err), WEFT_EINVAL);
	p.span_delay_ns = OPTREE_MAX_SPAN_DELAY_NS + 1;
	assert_int_equal(optree_plan(&p, &plan, &err), WEFT_EINVAL);
	p = params(16, 1, 0);
	p.shard_bytes = INT64_MAX;
	p.channel_bps = 1;
	assert_int_equal(optree_plan(&p, &plan, &err), WEFT_ELIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_form_prints_the_papers_table),
		cmocka_unit_test(closed_form_is_exact_at_integers),
		cmocka_unit_test(best_depths_and_average_reduction),
		cmocka_unit_test(the_papers_example),
		cmocka_unit_test(perfect_powers_keep_the_papers_counts),
		cmocka_unit_test(any_ring_any_depth),
		cmocka_unit_test(depth_zero_has_the_fewest_steps),
		cmocka_unit_test(the_same_plan_twice),
		cmocka_unit_test(light_beyond_the_budget_is_refused),
		cmocka_unit_test(bound_at_its_ends),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests_name("optree/optree", tests, NULL, NULL);
}
