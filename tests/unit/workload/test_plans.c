/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of training steps against tests/data/workloads.txt, which another program made: no plan is
 * slower, no bound is lower, and no plan is below any bound. And each certificate is added up by
 * the theorem alone.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collective/workload/workload.h"
#include "collective/flow/flow.h"
#include "tests/unit/schedule/common.h"
#include "tests/unit/world.h"

#define STEPS "tests/data/workloads.txt"
#define RATE INT64_C(800000000000)
#define ALPHA 10000

/* ---- the file ---- */

static void read_mesh(struct workload *w, char *text)
{
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		char *eq = strchr(word, '=');
		struct err err = { 0 };

		*eq = '\0';
		must(workload_add_axis(w, word, atoi(eq + 1), &err), &err);
	}
}

static void read_op(struct workload *w, char *text)
{
	struct workload_op op = { .name = strtok(text, " ") };
	const char *kind = strtok(NULL, " ");
	struct err err = { 0 };

	if (strncmp(kind, "send", 4) == 0) {
		op.shift = atoi(kind + 4);
	} else {
		must(coll_kind_parse(kind, &op.kind, &err), &err);
	}
	op.bytes = atoll(strtok(NULL, " "));
	for (char *axis = strtok(NULL, " "); axis; axis = strtok(NULL, " ")) {
		op.axes |= UINT32_C(1) << workload_find_axis(w, axis);
	}
	must(workload_add_op(w, &op, &err), &err);
}

/* "3(x y+z) w", up to a bracket that closes, into a list that runs `times`. */
static struct workload_step read_order(const struct workload *w, const char **at, int64_t times)
{
	struct workload_step list = { .times = times };
	char name[64];
	int used;

	for (; **at && **at != ')'; *at += **at == ' ') {
		struct workload_step one = { 0 };

		if (**at >= '0' && **at <= '9') {
			times = strtoll(*at, (char **)at, 10);
			++*at;
			one = read_order(w, at, times);
			++*at;
		} else {
			do {
				*at += **at == '+';
				assert_int_equal(sscanf(*at, "%63[^ +)]%n", name, &used), 1);
				*at += used;
				one.ops |= UINT32_C(1) << workload_find_op(w, name);
			} while (**at == '+');
		}
		vec_push(&list.list, one);
	}
	return list;
}

static void count(struct workload *w, const char *order)
{
	struct workload_step s = read_order(w, &order, 1);
	struct err err = { 0 };

	must(workload_count(w, &s, &err), &err);
	workload_step_fini(&s);
}

/* ---- checks ---- */

static struct workload_params params(int ports, int64_t change_ns)
{
	return (struct workload_params){ .ports = ports, .link_bps = RATE / ports,
					 .alpha_ns = ALPHA, .change_ns = change_ns,
					 .max_changes = -1 };
}

/* ns of a number of seconds; -1: "-". */
static double ns_of(const char *word)
{
	return strcmp(word, "-") == 0 ? -1 : atof(word) * 1e9;
}

/* What the circuits along an axis, of one shift where it is not 0, add up to. */
static double sum_y(const struct workload *w, const struct workload_bound *b, size_t axis,
		    int shift)
{
	double sum = 0;

	for (size_t i = 0; i < w->ops.n; i++) {
		const struct workload_op *op = &w->ops.v[i];

		sum += (op->axes >> axis & 1) && (!op->shift || op->shift == shift)
			       ? b->weights.v[i].y : 0;
	}
	return sum;
}

/* By the theorem: no kind above 1, and (sum of sqrt(c w y))^2 / d and the steps' alpha. */
static void check_certificate(const struct workload *w, const struct workload_params *p,
			      const struct workload_bound *b)
{
	double roots = 0, fixed = 0;

	for (size_t a = 0; a < w->axes.n; a++) {
		for (int shift = -4; shift <= 4; shift++) {
			assert_true(sum_y(w, b, a, shift) <= 1 + 1e-14);
		}
	}
	for (size_t i = 0; i < w->ops.n; i++) {
		const struct workload_op *op = &w->ops.v[i];
		double n = workload_ranks(w, op->axes), calls = 0, v = (n - 1) / n, reached = 1;
		double level = p->ports;
		int steps = 0;

		for (size_t u = 0; u < w->units.n; u++) {
			calls += w->units.v[u].ops >> i & 1
					 ? (double)w->units.v[u].calls /
					   __builtin_popcount(w->units.v[u].ops) : 0;
		}
		for (; !op->shift && reached < n; level *= p->ports, steps++) {
			reached += level;
		}
		v = op->shift || op->kind != COLL_ALLTOALL ? v
			: mcf_degree_bound((int)n, p->ports) * p->ports / n;
		fixed += calls * p->alpha_ns * (op->shift ? 1 : steps);
		roots += sqrt(calls * v * (double)op->bytes * 8e9 / (double)p->link_bps *
			      b->weights.v[i].y);
	}
	assert_true(b->still_ns <= fixed + roots * roots / p->ports + 1);
	assert_true(b->still_ns >= (fixed + roots * roots / p->ports) * (1 - 1e-9) - 1);
}

/* Every rank has light for no more than its ports, and arcs along the axes of the light alone. */
static void check_light(const struct workload *w, const struct workload_light *l, int ports)
{
	struct err err = { 0 };
	struct topo *t;

	must(workload_light_topo(w, l, &t, &err), &err);
	assert_true(topo_max_degree(t) <= ports);
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		bool along = false;

		for (size_t i = 0; i < l->shares.n && !along; i++) {
			int n = workload_ranks(w, l->shares.v[i].axes);
			int *group = calloc((size_t)n, sizeof(*group));

			workload_group(w, l->shares.v[i].axes, arc->src, group);
			for (int k = 0; k < n; k++) {
				along |= group[k] == arc->dst;
			}
			free(group);
		}
		assert_true(along);
	}
	topo_free(t);
}

/* The changes and the time, added up from the uses. */
static void recount(const struct workload *w, const struct workload_plan *plan, int64_t change_ns)
{
	double time = (double)plan->changes * (double)change_ns;
	int64_t changes = 0;
	int of[WORKLOAD_MAX_OPS];

	for (size_t u = 0; u < w->units.n; u++) {
		double longest = 0;

		for (size_t i = 0; i < plan->lights.n; i++) {
			of[u] = plan->lights.v[i].units >> u & 1 ? (int)i : of[u];
		}
		for (size_t i = 0; i < plan->uses.n; i++) {
			const struct workload_use *use = &plan->uses.v[i];

			assert_true(use->time_ns >= use->bound_ns * (1 - 1e-12));
			if (use->light == of[u] && (w->units.v[u].ops >> use->op & 1)) {
				longest = fmax(longest, use->time_ns);
			}
		}
		assert_true(longest > 0);
		time += longest * (double)w->units.v[u].calls;
	}
	for (size_t u = 0; u < w->units.n; u++) {
		for (size_t v = 0; v < w->units.n; v++) {
			changes += of[u] != of[v] ? w->next[u * w->units.n + v] : 0;
		}
	}
	assert_int_equal(changes, plan->changes);
	assert_float_equal(time, (double)plan->time_ns, 1.001);
}

/* What is made takes no longer than foreseen, but for all-to-alls, which take more steps than hops:
 * 7.1 % of 15 MB in 64 ranks. It is of one group, and right. */
static void check_schedules(const struct workload *w, struct workload_plan *plan)
{
	double foreseen[2 * WORKLOAD_MAX_OPS];
	struct err err = { 0 };

	for (size_t i = 0; i < plan->uses.n; i++) {
		foreseen[i] = plan->uses.v[i].time_ns;
	}
	must(workload_make_schedules(w, plan, &err), &err);
	for (size_t i = 0; i < plan->uses.n; i++) {
		const struct workload_use *use = &plan->uses.v[i];
		const struct workload_op *op = &w->ops.v[use->op];
		bool pairs = op->kind == COLL_ALLTOALL;

		if (getenv("WORKLOAD_TABLE") && use->time_ns > foreseen[i] + 1) {
			print_message("%s: %.0f, foreseen %.0f\n", op->name, use->time_ns,
				      foreseen[i]);
		}
		assert_true(use->time_ns <= foreseen[i] * (pairs ? 1.08 : 1) + 1);
		assert_true(use->time_ns >= use->bound_ns * (1 - 1e-9));
		assert_int_equal(!use->sched, op->shift != 0);
		if (use->sched) {
			assert_int_equal(coll_ranks(use->sched), workload_ranks(w, op->axes));
			must(coll_verify(use->sched, NULL, &err), &err);
		}
	}
}

/* It says of itself what is so, and no less when it is written and read again; a plan that claims
 * less time is caught. */
static void check_files(const struct workload *w, struct workload_plan *plan)
{
	struct topo **lights = calloc(plan->lights.n, sizeof(*lights));
	struct buf text = { 0 }, again = { 0 };
	struct err_list errs = { 0 };
	struct workload_plan *copy;
	struct workload *v;
	struct err err = { 0 };

	for (size_t i = 0; i < plan->lights.n; i++) {
		must(workload_light_topo(w, &plan->lights.v[i], &lights[i], &err), &err);
	}
	must(workload_check(w, plan, lights, &err), &err);
	workload_to_json(w, plan, &text);
	plan->time_ns -= plan->time_ns / 1000 + 10;
	assert_int_equal(workload_check(w, plan, lights, &err), WEFT_EVERIFY);
	assert_int_equal(workload_from_json("t", text.data, text.len, &v, &copy, &errs), 0);
	workload_to_json(v, copy, &again);
	assert_string_equal(buf_cstr(&text), buf_cstr(&again));
	for (size_t i = 0; i < plan->lights.n; i++) {
		topo_free(lights[i]);
	}
	workload_plan_free(copy);
	workload_free(v);
	buf_fini(&text);
	buf_fini(&again);
	free(lights);
}

/* Of a time of change: not slower than `ns` (below 0: unknown), nor below its bound. */
static void check_plan(const struct workload *w, int ports, int64_t change_ns, double ns,
		       double still_ns, const double *bounds)
{
	struct workload_params p = params(ports, change_ns);
	struct workload_plan *plan;
	struct err err = { 0 };
	int rc = workload_make_plan(w, &p, &plan, &err);

	if (rc == WEFT_EINFEASIBLE && ns < 0) {
		return;
	}
	must(rc, &err);
	if (getenv("WORKLOAD_TABLE")) {
		print_message("%d ports, %lld ns a change: %lld ns (%.0f), still %lld (%.0f), "
			      "%lld changes, bounds %lld %lld %lld\n", ports, (long long)change_ns,
			      (long long)plan->time_ns, ns, (long long)plan->still_ns, still_ns,
			      (long long)plan->changes, (long long)plan->bound.still_ns,
			      (long long)plan->bound.classes_ns, (long long)plan->bound.any_ns);
	}
	assert_true(ns < 0 || (double)plan->time_ns <= ns + 1.001);
	assert_true(still_ns < 0 || (double)plan->still_ns <= still_ns + 1.001);
	assert_true(plan->still_ns < 0 || plan->time_ns <= plan->still_ns);
	assert_true(plan->bound.classes_ns <= plan->time_ns);
	assert_true(plan->still_ns < 0 || plan->bound.still_ns <= plan->still_ns);
	assert_true(plan->bound.any_ns <= plan->time_ns);
	assert_true((double)plan->bound.still_ns >= bounds[0] * (1 - 1e-6) - 1);
	assert_true((double)plan->bound.classes_ns >= bounds[1] * (1 - 1e-6) - 1);
	assert_true((double)plan->bound.any_ns >= bounds[2] * (1 - 1e-9) - 1);
	check_certificate(w, &p, &plan->bound);
	recount(w, plan, change_ns);
	for (size_t i = 0; i < plan->lights.n; i++) {
		check_light(w, &plan->lights.v[i], ports);
	}
	if (change_ns == 1000000) {	/* others have mostly the same lights */
		check_schedules(w, plan);
		check_files(w, plan);
	}
	workload_plan_free(plan);
}

static void check_row(const struct workload *w, char *text)
{
	static const int64_t change[] = { 15000000, 1000000, 10000 };
	char *word[13];

	for (int i = 0; i < 13; i++) {
		word[i] = strtok(i ? NULL : text, " \n");
		assert_non_null(word[i]);
	}
	for (int i = 0; i < 3; i++) {
		double bounds[3] = { ns_of(word[8]), ns_of(word[9 + i]), ns_of(word[12]) };

		check_plan(w, atoi(word[0]), change[i], ns_of(word[2 + 2 * i]), ns_of(word[1]),
			   bounds);
	}
}

static void values(void **state)
{
	FILE *f = fopen(STEPS, "r");
	struct workload *w = NULL;
	char line[512];
	int rows = 0;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		char *rest = strchr(line, ' ');

		line[strcspn(line, "\n")] = '\0';
		if (*line == '#') {
			continue;
		}
		*rest++ = '\0';
		if (strcmp(line, "step") == 0) {
			workload_free(w);
			workload_new(&w);
			if (getenv("WORKLOAD_TABLE")) {
				print_message("%s\n", rest);
			}
		} else if (strcmp(line, "mesh") == 0) {
			read_mesh(w, rest);
		} else if (strcmp(line, "op") == 0) {
			read_op(w, rest);
		} else if (strcmp(line, "order") == 0) {
			count(w, rest);
		} else if (rows++ % ALL_OR_SOME(1, 6) == 0 && in_turn(rows, ALL_OR_SOME(3, 1))) {
			check_row(w, rest);
		}
	}
	workload_free(w);
	fclose(f);
	assert_int_equal(rows, 34);
}

/* ---- order ---- */

static struct workload *mesh(char *axes, int n_ops, char **ops)
{
	char text[128];
	struct workload *w;

	workload_new(&w);
	snprintf(text, sizeof(text), "%s", axes);
	read_mesh(w, text);
	for (int i = 0; i < n_ops; i++) {
		snprintf(text, sizeof(text), "%s", ops[i]);
		read_op(w, text);
	}
	return w;
}

static void tables(void **state)
{
	char *ops[] = { "x allgather 8 a", "y allreduce 8 b", "z all-to-all 8 a b" };
	struct workload *w = mesh("a=2 b=3 c=1", 3, ops);

	(void)state;
	count(w, "4(3(x y) z) x");
	assert_int_equal(w->units.n, 3);
	assert_int_equal(w->units.v[0].calls, 13);
	assert_int_equal(w->units.v[1].calls, 12);
	assert_int_equal(w->units.v[2].calls, 4);
	/* x: to y 12 times, to itself once round; y: to x 8, to z 4; z: to x 4. */
	assert_int_equal(w->next[0], 1);
	assert_int_equal(w->next[1], 12);
	assert_int_equal(w->next[3], 8);
	assert_int_equal(w->next[5], 4);
	assert_int_equal(w->next[6], 4);
	assert_int_equal(workload_ranks(w, 3), 6);
	workload_free(w);
}

static void groups(void **state)
{
	struct workload *w = mesh("a=2 b=3 c=2", 0, NULL);
	int out[6];

	(void)state;
	/* Rank 9 is (1, 1, 1). */
	assert_int_equal(workload_group(w, 2, 9, out), 1);
	assert_int_equal(out[0], 7);
	assert_int_equal(out[2], 11);
	assert_int_equal(workload_group(w, 5, 9, out), 3);
	assert_int_equal(out[0], 2);
	assert_int_equal(out[1], 3);
	assert_int_equal(out[2], 8);
	assert_int_equal(out[3], 9);
	workload_free(w);
}

/* What is wrong is named. */
static void refusals(void **state)
{
	char *ops[] = { "x allgather 8 a", "f send+1 8 b", "g send-1 8 b" };
	struct workload *w = mesh("a=4 b=4", 3, ops);
	struct workload_op op = { .name = "r", .kind = COLL_BROADCAST, .axes = 1, .bytes = 1 };
	struct workload_params p = params(2, -1);
	struct workload_plan *plan;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(workload_add_op(w, &op, &err), WEFT_EUNSUPPORTED);
	assert_string_equal(err.msg, "r: a step has no broadcast");
	op = (struct workload_op){ .name = "s", .shift = 4, .axes = 1, .bytes = 1 };
	assert_int_equal(workload_add_op(w, &op, &err), WEFT_EINVAL);
	assert_string_equal(err.msg, "s: a shift of 4 along 4 ranks");
	count(w, "9(x f+g)");
	assert_int_equal(workload_make_plan(w, &p, &plan, &err), WEFT_EINFEASIBLE);
	assert_string_equal(err.msg, "circuits along 3 kinds of axes, where ranks have 2 ports and "
			    "light stays still");
	assert_string_equal(err.hint, "light of each collective's own needs 2");
	p.change_ns = 1000;
	must(workload_make_plan(w, &p, &plan, &err), &err);
	assert_int_equal(plan->changes, 18);
	assert_int_equal(plan->still_ns, -1);
	workload_plan_free(plan);
	p.max_changes = 17;
	assert_int_equal(workload_make_plan(w, &p, &plan, &err), WEFT_EINFEASIBLE);
	workload_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables), cmocka_unit_test(groups), cmocka_unit_test(values),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
