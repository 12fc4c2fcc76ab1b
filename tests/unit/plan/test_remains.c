/* What remains of a fabric as applied when light is dead. */
#include "controller/plan/plan_private.h"
#include "tests/unit/plan/fixture.h"

/* A fabric with one job, applied, and what is seen of its devices. */
struct applied {
	struct model_fabric *f;
	struct plan *whole;
	struct plan_light *intent, *seen;
	struct light_xc *xcs;	/* that device 0 is seen to have */
	struct plan_base base;
};

static struct applied apply(const char *text)
{
	struct applied a = { .f = fabric_of(text) };

	a.whole = plan_of(a.f, NULL);
	a.intent = light_after(a.whole);
	a.seen = light_after(a.whole);
	a.xcs = calloc((size_t)a.seen[0].n_xcs + 1, sizeof(*a.xcs));
	if (a.seen[0].n_xcs > 0) {
		memcpy(a.xcs, a.seen[0].xcs,
		       (size_t)a.seen[0].n_xcs * sizeof(*a.xcs));
	}
	a.seen[0].xcs = a.xcs;
	a.base = (struct plan_base){ .intent = a.intent, .observed = a.seen };
	return a;
}

static void applied_free(struct applied *a)
{
	plan_free(a->whole);
	free(a->intent);
	free(a->seen);
	free(a->xcs);
	model_free(a->f);
}

static void lose(struct applied *a, int i)
{
	int n = --a->seen[0].n_xcs;

	/* Light is sorted. */
	memmove(a->xcs + i, a->xcs + i + 1,
		(size_t)(n - i) * sizeof(*a->xcs));
}

static struct plan *remains(const struct applied *a)
{
	struct plan *p = NULL;
	struct err err = { 0 };

	if (plan_remains(a->f, &a->base, &p, &err)) {
		fail_msg("%s", err.msg);
	}
	return p;
}

/* The schedule on what remains stands its replay, on exactly the arcs that
 * are not dead; the rate is that of its loads. */
static void check_loss(const struct plan_job *j, int dead)
{
	const struct plan_loss *loss = j->loss;
	struct coll_report rep;
	struct err err = { 0 };

	assert_non_null(loss);
	assert_int_equal(loss->dead, dead);
	assert_int_equal(loss->dead_arcs, dead);
	assert_int_equal(loss->arcs, topo_m(coll_topo(j->sched)));
	assert_non_null(loss->sched);
	assert_int_equal(topo_m(coll_topo(loss->sched)), loss->arcs - dead);
	assert_int_equal(coll_kind_of(loss->sched), coll_kind_of(j->sched));
	coll_report_init(&rep);
	assert_int_equal(coll_verify(loss->sched, &rep, &err), 0);
	assert_true(mpq_equal(rep.shard_times, loss->report.shard_times));
	assert_true(loss->rate > 0 && loss->rate <= 1);
	assert_true(loss->rate == mpq_get_d(j->report.shard_times) /
				  mpq_get_d(rep.shard_times));
	assert_true(loss->time_ns >= loss->bound_ns && loss->bound_ns > 0);
	coll_report_fini(&rep);
}

#define ALLREDUCE(topology)                                             \
	HOSTS_1 "jobs:\n"                                               \
	"  - { name: j, nodes: 'h[0-7]', collective: allreduce, "       \
	"size: 1MiB, topology: '" topology "', alpha: 10us }\n"

static void nothing_is_lost(void **state)
{
	struct applied a = apply(ALL_TO_ALL("K(4,4)", "auto"));
	struct plan *p;

	(void)state;
	p = remains(&a);
	assert_int_equal(p->n_jobs, 1);
	assert_null(p->jobs[0].loss);
	assert_true(plan_dead_light(a.f, &a.base) == 0);
	plan_free(p);
	applied_free(&a);
}

/* A circuit less, for every way to make the schedule. */
static void every_algorithm_is_made_anew(void **state)
{
	static const char *const all[] = {
		ALL_TO_ALL("Hypercube(3)", "auto"),
		ALL_TO_ALL("K(4,4)", "pmcf"), ALL_TO_ALL("K(4,4)", "tsmcf"),
		ALL_TO_ALL("K(4,4)", "single-path"),
		ALL_TO_ALL("K(4,4)", "shortest-path"),
		ALL_TO_ALL("K(4,4)", "disjoint"), ALLREDUCE("Hypercube(3)"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct applied a = apply(all[i]);
		struct plan *p;

		lose(&a, (int)i);
		p = remains(&a);
		check_loss(&p->jobs[0], 1);
		assert_int_equal(p->jobs[0].loss->why.code, 0);
		assert_int_equal(p->jobs[0].loss->device, 0);
		/* The light is that of the plan: nothing is to be moved. */
		assert_int_equal(p->jobs[0].n_circuits,
				 a.whole->jobs[0].n_circuits);
		plan_free(p);
		applied_free(&a);
	}
}

/* Of Hypercube(3) without an arc: three quarters of the rate, as docs say what
 * is left. */
static void the_rate_is_the_best(void **state)
{
	struct applied a = apply(ALL_TO_ALL("Hypercube(3)", "auto"));
	struct plan *p;

	(void)state;
	lose(&a, 0);
	p = remains(&a);
	check_loss(&p->jobs[0], 1);
	assert_in_range((int)(100 * p->jobs[0].loss->rate), 74, 76);
	plan_free(p);
	applied_free(&a);
}

/* Ports that failed kill their circuits though these are there still; and one
 * that has both ends bad is one. */
static void bad_ports_kill(void **state)
{
	struct applied a = apply(ALL_TO_ALL("K(4,4)", "auto"));
	int in = a.xcs[0].in, out[2] = { a.xcs[0].out, a.xcs[5].out };
	struct plan *p;
	uint64_t one;

	(void)state;
	a.seen[0].n_bad_in = 1;
	a.seen[0].bad_in = &in;
	one = plan_dead_light(a.f, &a.base);
	assert_true(one != 0);
	a.seen[0].n_bad_out = 2;
	a.seen[0].bad_out = out;
	assert_true(plan_dead_light(a.f, &a.base) != one);
	p = remains(&a);
	check_loss(&p->jobs[0], 2);
	plan_free(p);
	applied_free(&a);
}

/* What was never read, or never made, is not dead. */
static void the_unknown_is_alive(void **state)
{
	struct applied a = apply(ALL_TO_ALL("K(4,4)", "auto"));
	struct plan *p;

	(void)state;
	lose(&a, 3);
	a.seen[0].known = false;
	p = remains(&a);
	assert_null(p->jobs[0].loss);
	assert_true(plan_dead_light(a.f, &a.base) == 0);
	plan_free(p);

	a.seen[0].known = true;
	a.intent[0].n_xcs = 0;
	p = remains(&a);
	assert_null(p->jobs[0].loss);
	plan_free(p);
	applied_free(&a);
}

/* A one-way ring less an arc leaves pairs without a way: told, no error. */
static void cut_off(void **state)
{
	static const char *const all[] = {
		ALL_TO_ALL("UniRing(1,8)", "auto"),
		ALL_TO_ALL("UniRing(1,8)", "disjoint"),
		ALLREDUCE("UniRing(1,8)"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct applied a = apply(all[i]);
		const struct plan_loss *loss;
		struct plan *p;

		lose(&a, 0);
		p = remains(&a);
		loss = p->jobs[0].loss;
		assert_non_null(loss);
		assert_int_equal(loss->dead, 1);
		assert_null(loss->sched);
		assert_true(loss->rate == 0);
		assert_true(loss->why.code != 0 && loss->why.msg[0]);
		plan_free(p);
		applied_free(&a);
	}
}

/* Rings are not re-planned: their job is as it was. */
static void rings_are_left(void **state)
{
	struct applied a = apply(RING RING_JOB);
	struct plan *p;

	(void)state;
	a.seen[0].programs = NULL;
	p = remains(&a);
	assert_true(p->jobs[0].is_ring);
	assert_null(p->jobs[0].loss);
	assert_non_null(p->jobs[0].sched);
	plan_free(p);
	applied_free(&a);
}

/* The same dead light gives the same schedule, byte for byte. */
static void remains_are_pure(void **state)
{
	struct applied a = apply(ALL_TO_ALL("Hypercube(3)", "auto"));
	struct buf one = { 0 }, two = { 0 };
	struct err err = { 0 };
	struct plan *p;

	(void)state;
	lose(&a, 7);
	p = remains(&a);
	assert_int_equal(coll_to_proto(p->jobs[0].loss->sched, &one, &err), 0);
	plan_free(p);
	p = remains(&a);
	assert_int_equal(coll_to_proto(p->jobs[0].loss->sched, &two, &err), 0);
	plan_free(p);
	assert_int_equal(one.len, two.len);
	assert_memory_equal(one.data, two.data, one.len);
	buf_fini(&one);
	buf_fini(&two);
	applied_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(every_algorithm_is_made_anew),
		cmocka_unit_test(the_rate_is_the_best),
		cmocka_unit_test(bad_ports_kill),
		cmocka_unit_test(the_unknown_is_alive),
		cmocka_unit_test(cut_off),
		cmocka_unit_test(rings_are_left),
		cmocka_unit_test(remains_are_pure),
	};

	return cmocka_run_group_tests_name("plan/remains", tests, NULL, NULL);
}
