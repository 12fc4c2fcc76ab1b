/* SPDX-License-Identifier: Apache-2.0 */
/* `topology: auto`: that a plan takes what the finder gives for the same question, says what
 * stands against it, and plans collectives with a root. */
#include <stdio.h>

#include "collective/finder/finder.h"
#include "lib/base/number/rng.h"
#include "tests/unit/world.h"
#include "tests/unit/plan/fixture.h"

/* n hosts of so many ports on one switch, duplex when `both`. */
static struct model_fabric *hosts(int n, int ports, bool both, const char *job)
{
	int all = n * ports;
	char text[2048], size[64];

	snprintf(size, sizeof(size), both ? "ports: %d, any-to-any: true" : "size: %dx%d", all,
		 all);
	snprintf(text, sizeof(text), "weft: 1\nfabric: t\nhosts:\n"
		 "  - { name: 'h[1-%d]', ports: 'p[1-%d]', rate: 100Gbps }\n"
		 "switches:\n  - { name: ocs0, %s, driver: sim }\n"
		 "fibres:\n  - { from: 'h[1-%d].p[1-%d]', to: 'ocs0.[1-%d]' }\n"
		 "jobs:\n  - { name: j, nodes: 'h[1-%d]', alpha: 10us, %s }\n",
		 n, ports, size, n, ports, all, n, job);
	return fabric_of(text);
}

static void same_as_found(void **state)
{
	static const struct {
		int n, ports;
		bool both;
		enum coll_kind kind;
		const char *expr;	/* NULL: whichever */
	} rows[] = {
		{ 8, 4, true, COLL_ALLREDUCE, "K(4,4)" }, { 8, 4, false, COLL_ALLTOALL, "K(4,4)" },
		{ 13, 3, true, COLL_ALLGATHER, "Ring(13)" }, { 16, 2, false, COLL_ALLREDUCE, NULL },
		{ 12, 3, true, COLL_BROADCAST, NULL }, { 9, 4, false, COLL_REDUCE, NULL },
		{ 10, 4, true, COLL_REDUCE_SCATTER, NULL }, { 4, 6, false, COLL_ALLREDUCE, NULL },
		{ 4, 8, false, COLL_ALLREDUCE, "Multi(K(4),2)" },
		{ 4, 16, false, COLL_ALLREDUCE, "Multi(K(4),5)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct coll_want w = {
			.q = { .n = rows[i].n, .degree = rows[i].ports,
			       .bidirectional = rows[i].both, .kind = rows[i].kind },
			.cost = { .alpha_ns = 10000, .link_bps = INT64_C(100000000000),
				  .size_bytes = 1 << 20 },
		};
		struct coll_choices *all;
		struct coll_choice best;
		struct model_fabric *f;
		struct plan *p;
		char job[128];

		snprintf(job, sizeof(job), "collective: %s, size: 1MiB, topology: auto",
			 coll_kind_name(rows[i].kind));
		f = hosts(rows[i].n, rows[i].ports, rows[i].both, job);
		p = plan_of(f, NULL);
		assert_int_equal(coll_choices_new(&w, NULL, &all, NULL), 0);
		assert_int_equal(coll_choices_next(all, &best, NULL), 0);
		assert_string_equal(p->jobs[0].topology, best.expr);
		assert_int_equal(p->jobs[0].time_ns, best.time_ns);
		if (rows[i].expr) {
			assert_string_equal(best.expr, rows[i].expr);
		}
		coll_choices_free(all);
		plan_free(p);
		model_free(f);
	}
}

/* A plan and the command line, which has the frontier first, give the same: topology, time, and
 * steps and T_B of all ports that the hosts have. */
static void agrees(struct rng *rng)
{
	static const enum coll_kind kinds[] = { COLL_ALLREDUCE, COLL_ALLGATHER,
						COLL_REDUCE_SCATTER, COLL_BROADCAST,
						COLL_REDUCE, COLL_ALLTOALL };
	struct coll_want w = {
		.q = { .n = 2 + (int)rng_below(rng, 8), .degree = 1 + (int)rng_below(rng, 12),
		       .bidirectional = rng_below(rng, 2), .kind = kinds[rng_below(rng, 6)] },
		.cost = { .alpha_ns = 10000, .link_bps = INT64_C(100000000000),
			  .size_bytes = INT64_C(1) << (10 + rng_below(rng, 16)) },
	};
	char job[128];
	struct model_fabric *f;
	struct plan *p;
	struct coll_frontier known = { 0 };
	struct coll_query q = w.q;
	struct coll_choices *all;
	struct coll_choice best;
	const struct plan_topology *t;

	q.kind = coll_has_root(q.kind) ? COLL_ALLGATHER : q.kind;
	if (q.bidirectional && q.degree == 1 && q.n > 2) {
		return;
	}
	if (q.kind != COLL_ALLTOALL) {
		assert_int_equal(coll_find(&q, true, &known, NULL), 0);
	}
	snprintf(job, sizeof(job), "collective: %s, size: %lldB, topology: auto",
		 coll_kind_name(w.q.kind), (long long)w.cost.size_bytes);
	f = hosts(w.q.n, w.q.degree, w.q.bidirectional, job);
	p = plan_of(f, NULL);
	assert_int_equal(coll_choices_new(&w, &known, &all, NULL), 0);
	assert_int_equal(coll_choices_next(all, &best, NULL), 0);
	t = &p->jobs[0].choice->considered.v[0];
	assert_string_equal(p->jobs[0].topology, best.expr);
	assert_string_equal(t->expr, best.expr);
	assert_int_equal(t->steps, best.steps);
	assert_true(t->num == best.num && t->den == best.den);
	assert_int_equal(t->ports, best.ports);
	assert_int_equal(p->jobs[0].time_ns, best.time_ns);
	coll_choices_free(all);
	coll_frontier_fini(&known);
	plan_free(p);
	model_free(f);
}

/* 250 in five parts, by the seed of each. */
static void agrees_on_random(void **state)
{
	struct rng rng;

	rng_seed(&rng, *(uint64_t *)*state);
	for (int i = 0; i < ALL_OR_SOME(50, 2); i++) {
		agrees(&rng);
	}
}

/* Jobs on hosts of their own, of which some want the same. */
#define ALIKE 4
static char *alike_text(int only)
{
	static const char *const jobs[ALIKE] = {
		"collective: allreduce, size: 1MiB", "collective: allgather, size: 1MiB",
		"collective: allreduce, size: 1MiB", "collective: allreduce, size: 64MiB",
	};
	struct buf b = { 0 };

	buf_str(&b, "weft: 1\nfabric: t\nhosts:\n"
		"  - { name: 'h[00-31]', ports: 'p[0-2]', rate: 100Gbps }\n"
		"switches:\n  - { name: ocs0, size: 96x96, driver: sim }\n"
		"fibres:\n  - { from: 'h[00-31].p[0-2]', to: 'ocs0.[1-96]' }\njobs:\n");
	for (int j = 0; j < ALIKE; j++) {
		if (only < 0 || only == j) {
			buf_printf(&b, "  - { name: j%d, nodes: 'h[%02d-%02d]', alpha: 10us, "
				   "%s }\n", j, 8 * j, 8 * j + 7, jobs[j]);
		}
	}
	return buf_steal(&b);
}

static void assert_same_job(const struct plan_job *a, const struct plan_job *b)
{
	const struct plan_choice *x = a->choice, *y = b->choice;
	struct buf one = { 0 }, other = { 0 };

	assert_string_equal(a->topology, b->topology);
	assert_string_equal(a->algorithm, b->algorithm);
	assert_true(a->time_ns == b->time_ns && a->bound_ns == b->bound_ns);
	assert_int_equal(a->n_circuits, b->n_circuits);
	assert_int_equal(x->considered.n, y->considered.n);
	for (size_t i = 0; i < x->considered.n; i++) {
		assert_string_equal(x->considered.v[i].expr, y->considered.v[i].expr);
		assert_true(x->considered.v[i].time_ns == y->considered.v[i].time_ns);
	}
	assert_int_equal(x->ranges.n, y->ranges.n);
	coll_to_json(a->sched, &one);
	coll_to_json(b->sched, &other);
	assert_string_equal(buf_cstr(&one), buf_cstr(&other));
	buf_fini(&one);
	buf_fini(&other);
}

static void those_alike_are_planned_as_each_alone(void **state)
{
	char *text = alike_text(-1);
	struct model_fabric *f = fabric_of(text);
	struct plan *p = plan_of(f, NULL);

	(void)state;
	free(text);
	for (int j = 0; j < ALIKE; j++) {
		struct model_fabric *alone;
		struct plan *q;

		text = alike_text(j);
		alone = fabric_of(text);
		q = plan_of(alone, NULL);
		assert_same_job(&p->jobs[j], &q->jobs[0]);
		free(text);
		plan_free(q);
		model_free(alone);
	}
	plan_free(p);
	model_free(f);
}

/* The algorithm of the first job, whose schedule is verified and goes over circuits alone. */
static void assert_algorithm(struct model_fabric *f, const char *topology, const char *algorithm,
			     int steps)
{
	struct plan *p = plan_of(f, NULL);
	const struct plan_job *j = &p->jobs[0];
	struct coll_report r;

	coll_report_init(&r);
	assert_string_equal(j->topology, topology);
	assert_string_equal(j->algorithm, algorithm);
	assert_int_equal(j->report.steps, steps);
	assert_int_equal(coll_verify(j->sched, &r, NULL), 0);
	assert_int_equal(r.steps, steps);
	assert_false(coll_is_embedded(j->sched));
	assert_int_equal(j->n_circuits, topo_m(coll_topo(j->sched)));
	coll_report_fini(&r);
	plan_free(p);
	model_free(f);
}

/* On a torus of light the size decides; so it does which topology is taken. Hosts pass on
 * nothing. */
static void on_coordinates(void **state)
{
	static const struct {
		int n, ports;
		const char *job, *topology, *algorithm;
		int steps;
	} rows[] = {
		{ 16, 4, "size: 1KiB, topology: 'Torus(4,4)'", "Torus(4,4)", "swing-latency", 4 },
		{ 16, 4, "size: 1MiB, topology: 'Torus(4,4)'", "Torus(4,4)", "hybrid", 6 },
		{ 16, 4, "size: 100MB, topology: 'Torus(4,4)'", "Torus(4,4)", "hybrid", 7 },
		{ 16, 2, "size: 1KiB, topology: 'Ring(16)'", "Ring(16)", "one-shot", 8 },
		{ 16, 2, "size: 100MB, topology: 'Ring(16)'", "Ring(16)", "bfb", 16 },
		{ 8, 4, "size: 1KiB, topology: 'BiRing(4,8)'", "BiRing(4,8)", "one-shot", 4 },
		{ 16, 6, "size: 1KiB, topology: auto", "Pow(K(4),2)", "mixed-radix", 2 },
		{ 16, 6, "size: 100MB, topology: auto", "Pow(K(4),2)", "bfb", 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char job[128];

		snprintf(job, sizeof(job), "collective: allreduce, %s", rows[i].job);
		assert_algorithm(hosts(rows[i].n, rows[i].ports, true, job), rows[i].topology,
				 rows[i].algorithm, rows[i].steps);
	}
}

/* What was taken, with the figures of the job, the next best, and sizes. */
static void reasons(void **state)
{
	struct model_fabric *f = hosts(12, 2, false, "collective: allreduce, size: 4MiB, "
						     "topology: auto");
	struct plan *p = plan_of(f, NULL);
	const struct plan_job *j = &p->jobs[0];
	const struct plan_choice *c = j->choice;
	size_t at = 0;

	(void)state;
	assert_non_null(c);
	assert_int_equal(c->ports, 2);
	assert_false(c->bidirectional);
	assert_true(c->steps_bound > 0 && c->steps_bound <= j->report.steps);
	assert_int_equal(c->considered.n, 2);
	assert_string_equal(c->considered.v[0].expr, j->topology);
	assert_int_equal(c->considered.v[0].refused.code, 0);
	assert_int_equal(c->considered.v[0].time_ns, j->time_ns);
	assert_true(c->considered.v[1].time_ns >= j->time_ns);
	/* At the job's own size the taken one is the fastest. */
	for (size_t i = 0; i < c->ranges.n; i++) {
		at = c->ranges.v[i].from_bytes <= 4 << 20 ? i : at;
	}
	assert_true(c->ranges.n > 1);
	assert_string_equal(c->ranges.v[at].expr, j->topology);
	plan_free(p);
	model_free(f);
}

/* A topology that is given needs no reasons. */
static void given(void **state)
{
	struct model_fabric *f = hosts(8, 4, true, "collective: allreduce, size: 1MiB, "
						   "topology: 'C(8,{1,2})'");
	struct plan *p = plan_of(f, NULL);

	(void)state;
	assert_null(p->jobs[0].choice);
	plan_free(p);
	model_free(f);
}

/* Half of the hosts have a port on a switch of their own. */
static void refused_say_why(void **state)
{
	struct model_fabric *f = fabric_of(
		"weft: 1\nfabric: t\nhosts:\n"
		"  - { name: 'h[0-7]', ports: 'p[0-1]', rate: 100Gbps }\n"
		"switches:\n"
		"  - { name: ocs0, size: 12x12, driver: sim }\n"
		"  - { name: ocs1, size: 4x4, driver: sim }\n"
		"fibres:\n"
		"  - { from: 'h[0-3].p[0-1]', to: 'ocs0.[1-8]' }\n"
		"  - { from: 'h[4-7].p0', to: 'ocs0.[9-12]' }\n"
		"  - { from: 'h[4-7].p1', to: 'ocs1.[1-4]' }\n"
		"jobs:\n"
		"  - { name: j, nodes: 'h[0-7]', collective: allgather, size: 4KiB, "
		"topology: auto, alpha: 10us }\n");
	struct plan *p = plan_of(f, NULL);
	const struct plan_choice *c = p->jobs[0].choice;
	size_t refused = 0;

	(void)state;
	while (refused < c->considered.n && c->considered.v[refused].refused.code) {
		assert_true(c->considered.v[refused].time_ns <= p->jobs[0].time_ns);
		assert_int_equal(c->considered.v[refused].refused.code, WEFT_EINFEASIBLE);
		assert_true(c->considered.v[refused].refused.msg[0]);
		refused++;
	}
	assert_true(refused > 0 && refused < c->considered.n);
	assert_string_equal(c->considered.v[refused].expr, p->jobs[0].topology);
	for (size_t i = 0; i < c->ranges.n; i++) {
		assert_string_not_equal(c->ranges.v[i].expr, c->considered.v[0].expr);
	}
	plan_free(p);
	model_free(f);
}

/* ---- with a root ---- */

static void rooted(void **state)
{
	static const struct {
		enum coll_kind kind;
		const char *topology, *algorithm;
	} rows[] = {
		{ COLL_BROADCAST, "auto", "trimmed" }, { COLL_REDUCE, "auto", "trimmed" },
		{ COLL_BROADCAST, "'C(8,{1,2})'", "trimmed" },
		{ COLL_SCATTER, "'K(4,4)'", "paths" },
		{ COLL_GATHER, "Hypercube(3)", "paths" }, { COLL_GATHER, "auto", "paths" },
		{ COLL_SCATTER, "auto", "paths" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct coll_report report;
		struct model_fabric *f;
		struct plan *p;
		char job[128];

		snprintf(job, sizeof(job), "collective: %s, size: 1MiB, topology: %s",
			 coll_kind_name(rows[i].kind), rows[i].topology);
		f = hosts(8, 4, true, job);
		p = plan_of(f, NULL);
		coll_report_init(&report);
		assert_int_equal(coll_verify(p->jobs[0].sched, &report, NULL), 0);
		assert_int_equal(coll_kind_of(p->jobs[0].sched), rows[i].kind);
		assert_int_equal(coll_root(p->jobs[0].sched), 0);
		assert_string_equal(p->jobs[0].algorithm, rows[i].algorithm);
		assert_true(p->jobs[0].time_ns >= p->jobs[0].bound_ns);
		assert_true(p->n_add > 0);
		coll_report_fini(&report);
		plan_free(p);
		model_free(f);
	}
}

/* A broadcast goes on, on what remains of its circuits. */
static void rooted_remains(void **state)
{
	struct model_fabric *f = hosts(8, 4, false, "collective: broadcast, size: 1MiB, "
						    "topology: auto");
	struct plan *whole = plan_of(f, NULL), *left = NULL;
	struct plan_light *intent = light_after(whole), *seen = light_after(whole);
	struct plan_base base = { .intent = intent, .observed = seen };
	const struct plan_job_loss *loss;

	(void)state;
	seen[0].n_xcs--;
	assert_int_equal(plan_degraded(f, &base, &left, NULL), 0);
	loss = left->jobs[0].loss;
	assert_non_null(loss);
	assert_non_null(loss->sched);
	assert_int_equal(loss->arcs, 32);
	assert_int_equal(loss->dead_arcs, 1);
	assert_int_equal(topo_m(coll_topo(loss->sched)), 31);
	assert_int_equal(coll_kind_of(loss->sched), COLL_BROADCAST);
	assert_int_equal(coll_verify(loss->sched, NULL, NULL), 0);
	plan_free(left);
	plan_free(whole);
	free(intent);
	free(seen);
	model_free(f);
}

int main(void)
{
	static uint64_t seeds[] = { 39, 40, 41, 42, 43 };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_as_found),
		cmocka_unit_test_prestate(agrees_on_random, &seeds[0]),
		cmocka_unit_test_prestate(agrees_on_random, &seeds[1]),
		cmocka_unit_test_prestate(agrees_on_random, &seeds[2]),
		cmocka_unit_test_prestate(agrees_on_random, &seeds[3]),
		cmocka_unit_test_prestate(agrees_on_random, &seeds[4]),
		cmocka_unit_test(those_alike_are_planned_as_each_alone),
		cmocka_unit_test(on_coordinates),  cmocka_unit_test(reasons),
		cmocka_unit_test(given),	  cmocka_unit_test(refused_say_why),
		cmocka_unit_test(rooted),	  cmocka_unit_test(rooted_remains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
