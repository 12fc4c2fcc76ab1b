/* SPDX-License-Identifier: Apache-2.0 */
/* What remains of a fabric as applied when light is dead. */
#include "controller/plan/private.h"
#include "tests/unit/plan/fixture.h"

/* A fabric with one job, applied, and what is seen of its devices. */
struct applied {
	struct model_fabric *f;
	struct plan *whole;
	struct plan_light *intent, *seen;
	struct optics_xc *xcs;	/* that device 0 is seen to have */
	struct optics_xc *dark;	/* of these, at ports that failed */
	struct plan_base base;
};

static struct applied apply(const char *text)
{
	struct applied a = { .f = fabric_of(text) };

	a.whole = plan_of(a.f, NULL);
	a.intent = light_after(a.whole);
	a.seen = light_after(a.whole);
	a.xcs = calloc((size_t)a.seen[0].n_xcs + 1, sizeof(*a.xcs));
	a.dark = calloc((size_t)a.seen[0].n_xcs + 1, sizeof(*a.dark));
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
	free(a->dark);
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

	if (plan_degraded(a->f, &a->base, &p, &err)) {
		fail_msg("%s", err.msg);
	}
	return p;
}

/* The schedule on what remains stands its replay, on exactly the arcs that
 * are not dead; the rate is that of its loads. */
static void check_loss(const struct plan_job *j, int dead)
{
	const struct plan_job_loss *loss = j->loss;
	struct coll_report rep;
	struct err err = { 0 };

	assert_non_null(loss);
	assert_int_equal(loss->dead, dead);
	assert_int_equal(loss->dead_arcs, dead);
	assert_int_equal(loss->arcs, topo_m(coll_physical(j->sched)));
	assert_non_null(loss->sched);
	assert_int_equal(topo_m(coll_physical(loss->sched)), loss->arcs - dead);
	assert_int_equal(coll_kind_of(loss->sched), coll_kind_of(j->sched));
	coll_report_init(&rep);
	assert_int_equal(coll_verify(loss->sched, &rep, &err), 0);
	assert_true(mpq_equal(rep.shard_times, loss->report.shard_times));
	assert_true(loss->rate > 0 && loss->rate <= 1);
	assert_true(loss->rate == 1 || loss->rate == mpq_get_d(j->report.shard_times) /
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
	assert_true(plan_failed_circuits(a.f, &a.base) == 0);
	plan_free(p);
	applied_free(&a);
}

/* A circuit less, for every way to make the schedule. */
static void every_algorithm_is_made_anew(void **state)
{
	static const char *const all[] = {
		ALL_TO_ALL("Hypercube(3)", "auto"),
		/* Through hosts that forward. */
		ALLREDUCE("Ring(8)', algorithm: 'swing"),
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
	/* So large that steps cost nothing. */
	struct applied a =
		apply(HOSTS_1 "jobs:\n  - { name: j, nodes: 'h[0-7]', collective: "
			      "all-to-all, size: 64GiB, topology: 'Hypercube(3)', alpha: 1us }\n");
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
	ports_fail(&a.seen[0], a.dark, 1, &in, 0, NULL);
	one = plan_failed_circuits(a.f, &a.base);
	assert_true(one != 0);
	ports_fail(&a.seen[0], a.dark, 1, &in, 2, out);
	assert_true(plan_failed_circuits(a.f, &a.base) != one);
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
	assert_true(plan_failed_circuits(a.f, &a.base) == 0);
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
		const struct plan_job_loss *loss;
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

/* ---- rings ---------------------------------------------------------------- */

#define RING_OF(collective, more)                                       \
	RING "jobs:\n"                                                  \
	"  - { name: g, ring: r0, size: 1MiB, collective: " collective \
	more " }\n"

#define DEAD_RING(node_, dir_, channel_)                                \
	{ .part = RING_RESONATOR, .node = node_, .dir = dir_,          \
	  .channel = channel_, .why = RESONATOR_NO_WAVE }
#define DEAD_SPAN(node_, dir_)                                          \
	{ .part = RING_SPAN, .node = node_, .dir = dir_ }

static void fail_parts(struct applied *a, const struct ring_fault *dead, int n)
{
	a->seen[0].dead = dead;
	a->seen[0].n_dead = n;
}

/* Walks every lightpath of the program that is to be loaded, on its own: none
 * uses, or goes over, what is dead. */
static bool crosses(const struct ring_fault *d, const struct ring_setting *add,
		    const struct ring_settings *p)
{
	const int n = 8;

	for (int k = 0, node = add->node; k < n; k++) {
		int next = (node + (add->dir ? n - 1 : 1)) % n;

		if (d->node == (add->dir ? next : node)) {
			return true;
		}
		node = next;
		for (size_t i = 0; i < p->n; i++) {
			const struct ring_setting *t = &p->v[i];

			if (t->step == add->step && t->node == node &&
			    t->dir == add->dir && t->fibre == add->fibre &&
			    t->channel == add->channel &&
			    (t->mode & RESONATOR_DROP)) {
				return false;
			}
		}
	}
	fail_msg("light that no node drops");
	return true;
}

static void check_program(const struct ring_program *pack,
			  const struct ring_fault *dead, int n)
{
	struct ring_settings p;
	struct err err = { 0 };

	assert_int_equal(ring_program_unpack(pack, &p, &err), 0);
	assert_true(p.n > 0);
	for (size_t i = 0; i < p.n; i++) {
		for (int k = 0; k < n; k++) {
			const struct ring_setting *t = &p.v[i];
			const struct ring_fault *d = &dead[k];

			if (t->dir != d->dir || t->fibre != d->fibre) {
				continue;
			}
			if (d->part == RING_RESONATOR) {
				assert_false(t->node == d->node &&
					     t->channel == d->channel);
			} else if (t->mode & RESONATOR_ADD) {
				assert_false(crosses(d, t, &p));
			}
		}
	}
	ring_settings_fini(&p);
}

static double share_of(const struct applied *a, const struct plan_base *base)
{
	return plan_program_share(&a->f->devices[0], &base->intent[0], &base->observed[0],
				  a->f->jobs[0].name);
}

/* What has failed is told with what it costs; the plan that follows brings just
 * that; when it was applied nothing is lost any more, and when all is back the
 * first plan is. */
static void check_repair(const char *text, const struct ring_fault *dead, int n,
			 double min_rate)
{
	struct applied a = apply(text);
	struct plan *p, *repair, *after;
	struct plan_light *made;
	const struct plan_job_loss *loss;
	struct plan_base base;

	assert_true(share_of(&a, &a.base) == 1);
	fail_parts(&a, dead, n);
	assert_true(share_of(&a, &a.base) > 0 && share_of(&a, &a.base) < 1);
	assert_true(plan_failed_circuits(a.f, &a.base) != 0);
	p = remains(&a);
	loss = p->jobs[0].loss;
	assert_non_null(loss);
	assert_true(loss->part[0] && loss->dead > 0);
	assert_non_null(loss->sched);
	assert_true(loss->rate >= min_rate && loss->rate <= 1);
	repair = plan_of(a.f, &a.base);
	assert_int_equal(repair->n_loads, 1);
	assert_int_equal(repair->jobs[0].time_ns, loss->time_ns);
	assert_true(repair->jobs[0].fault_free_ns == p->jobs[0].time_ns);
	assert_int_equal(repair->jobs[0].n_without, n);
	check_program(&repair->devices[0].programs.v[0], dead, n);

	made = light_after(repair);
	base = (struct plan_base){ .intent = made, .observed = a.seen };
	assert_true(share_of(&a, &base) == 0);	/* it is not loaded yet */
	a.seen[0].programs = made[0].programs;
	assert_true(share_of(&a, &base) == 1);
	assert_true(plan_failed_circuits(a.f, &base) == 0);
	plan_free(p);
	p = NULL;
	assert_int_equal(plan_degraded(a.f, &base, &p, &(struct err){ 0 }), 0);
	assert_null(p->jobs[0].loss);
	assert_int_equal(p->jobs[0].time_ns, repair->jobs[0].time_ns);
	after = plan_of(a.f, &base);
	assert_true(plan_is_empty(after));
	plan_free(after);

	fail_parts(&a, NULL, 0);
	after = plan_of(a.f, &base);
	assert_true(ring_programs_equal(&after->devices[0].programs,
					&a.whole->devices[0].programs));
	plan_free(after);
	plan_free(p);
	plan_free(repair);
	free(made);
	applied_free(&a);
}

static void a_resonator_costs_its_channel(void **state)
{
	static const struct ring_fault one[] = { DEAD_RING(2, OPTICS_CW, 1) };
	static const struct ring_fault both[] = { DEAD_RING(2, OPTICS_CW, 1),
						  DEAD_RING(2, OPTICS_CCW, 1) };

	(void)state;
	check_repair(RING_OF("allgather", ""), one, 1, 0.6);
	check_repair(RING_OF("allgather", ""), both, 2, 0.6);
	check_repair(RING_OF("reduce-scatter", ""), one, 1, 0.6);
	check_repair(RING_OF("allreduce", ""), both, 2, 0.6);
	check_repair(RING_OF("all-to-all", ""), both, 2, 0.4);
	check_repair(RING_OF("broadcast", ""), one, 1, 0.5);
	check_repair(RING_OF("broadcast", ""), both, 2, 0.5);
	check_repair(RING_OF("allgather", ", algorithm: optree"), both, 2, 0.4);
}

/* A cable: a line of the same nodes. A fibre: that, or the other direction. */
static void a_break_leaves_a_line(void **state)
{
	(void)state;
	for (int at = 0; at < 8; at += 3) {
		const struct ring_fault cable[] = { DEAD_SPAN(at, OPTICS_CW),
						    DEAD_SPAN(at, OPTICS_CCW) };

		check_repair(RING_OF("allgather", ""), cable, 2, 0.2);
		check_repair(RING_OF("allreduce", ""), cable, 1, 0.2);
		check_repair(RING_OF("reduce-scatter", ""), cable + 1, 1, 0.2);
		check_repair(RING_OF("all-to-all", ""), cable, 2, 0.1);
		check_repair(RING_OF("broadcast", ""), cable, 2, 0.2);
		check_repair(RING_OF("broadcast", ""), cable, 1, 0.2);
		check_repair(RING_OF("allgather", ", nodes: 'n[3,4,6,1]'"),
			     cable, 2, 0.2);
	}
}

/* Two breaks: no line is left, but one direction may be. */
static void two_breaks(void **state)
{
	static const struct ring_fault one_direction[] = { DEAD_SPAN(1, OPTICS_CW),
						     DEAD_SPAN(5, OPTICS_CW) };

	(void)state;
	check_repair(RING_OF("allgather", ""), one_direction, 2, 0.2);
}

static void refused(const char *text, const struct ring_fault *dead, int n,
		    int code, const char *words)
{
	struct applied a = apply(text);
	struct plan *p, *none = NULL;
	struct err err = { 0 };

	fail_parts(&a, dead, n);
	p = remains(&a);
	assert_non_null(p->jobs[0].loss);
	assert_null(p->jobs[0].loss->sched);
	assert_true(p->jobs[0].loss->rate == 0);
	assert_non_null(strstr(p->jobs[0].loss->why.msg, words));
	assert_int_equal(plan_make(a.f, &a.base, &none, &err), code);
	assert_non_null(strstr(err.msg, words));
	plan_free(p);
	applied_free(&a);
}

static void what_cannot_be_is_named(void **state)
{
	static const struct ring_fault node[] = { { .part = RING_NODE,
						    .node = 5 } };
	static const struct ring_fault cables[] = {
		DEAD_SPAN(1, OPTICS_CW), DEAD_SPAN(1, OPTICS_CCW),
		DEAD_SPAN(5, OPTICS_CW), DEAD_SPAN(5, OPTICS_CCW) };
	static const struct ring_fault two[] = {
		DEAD_SPAN(1, OPTICS_CW), DEAD_SPAN(5, OPTICS_CW) };

	(void)state;
	refused(RING_OF("allgather", ""), node, 1, WEFT_EINFEASIBLE,
		"r0: n5 has failed, and the job runs on it");
	refused(RING_OF("allgather", ""), cables, 4, WEFT_EINFEASIBLE,
		"r0: failed: cw fibre 0 between n1 and n2 and 3 more; what "
		"is left of the ring does not do");
	refused(RING_OF("allgather", ", algorithm: optree"), two, 2, WEFT_EUNSUPPORTED,
		"r0: failed: cw fibre 0 between n1 and n2 and 1 more; what "
		"is left of the ring does not do: optree");
}

/* A node that is not the job's, a channel that another job has. */
static void what_is_not_needed_costs_nothing(void **state)
{
	static const struct ring_fault dead[] = {
		DEAD_RING(2, OPTICS_CW, 3), { .part = RING_NODE, .node = 5 } };
	struct applied a = apply(RING_OF("allgather",
		", nodes: 'n[0-4]', channels: 0-2"));
	struct plan *p;

	(void)state;
	fail_parts(&a, dead, 2);
	p = remains(&a);
	assert_null(p->jobs[0].loss);
	plan_free(p);
	p = plan_of(a.f, &a.base);
	assert_true(plan_is_empty(p));
	plan_free(p);
	applied_free(&a);
}

/* The same dead light gives the same schedule, byte for byte. */
static void remains_are_pure(void **state)
{
	struct applied a = apply(ALL_TO_ALL("Hypercube(3)", "auto"));
	struct buf one = { 0 }, two = { 0 };
	struct plan *p;

	(void)state;
	lose(&a, 7);
	p = remains(&a);
	coll_to_proto(p->jobs[0].loss->sched, &one);
	plan_free(p);
	p = remains(&a);
	coll_to_proto(p->jobs[0].loss->sched, &two);
	plan_free(p);
	assert_int_equal(one.len, two.len);
	assert_memory_equal(one.data, two.data, one.len);
	buf_fini(&one);
	buf_fini(&two);
	applied_free(&a);
}

/* Job a needs all its ports; b has one to spare. */
#define TWO_JOBS                                                        \
	"weft: 1\nfabric: t\nhosts:\n"                                  \
	"  - { name: 'h[0-3]', ports: 'p[0-1]', rate: 100Gbps }\n"      \
	"switches:\n"                                                   \
	"  - { name: ocs0, size: 8x8, driver: sim }\n"                  \
	"fibres:\n"                                                     \
	"  - { from: 'h[0-3].p[0-1]', to: 'ocs0.[1-8]' }\n"             \
	"jobs:\n"                                                       \
	"  - { name: a, nodes: 'h[0-1]', collective: allreduce, "       \
	"size: 1MiB, topology: 'UniRing(2,2)' }\n"                      \
	"  - { name: b, nodes: 'h[2-3]', collective: allreduce, "       \
	"size: 1MiB, topology: 'UniRing(1,2)' }\n"

/* The port from which a circuit of the job leaves. */
static int port_of(const struct plan *p, int job)
{
	return p->jobs[job].circuits[0].xc.in;
}

/* A circuit that cannot be made stays wanted, and the schedule goes round it; others are
 * repaired, by as few circuits as can be. Another job under the name was never applied. */
static void what_cannot_be_repaired_stays(void **state)
{
	struct applied a = apply(TWO_JOBS);
	struct plan_device *d;
	struct plan *p = NULL;
	int bad[2] = { port_of(a.whole, 0), port_of(a.whole, 1) };

	(void)state;
	ports_fail(&a.seen[0], a.dark, 1, bad, 0, NULL);
	p = plan_of(a.f, &a.base);
	assert_true(plan_is_empty(p));
	check_loss(&p->jobs[0], 1);
	assert_int_equal(p->n_warnings, 1);
	assert_non_null(strstr(p->warnings[0], "job a: 1 of its 4 circuits cannot be brought "
			       "back"));
	plan_free(p);
	ports_fail(&a.seen[0], a.dark, 2, bad, 0, NULL);
	p = plan_of(a.f, &a.base);
	d = &p->devices[0];
	check_loss(&p->jobs[0], 1);
	assert_null(p->jobs[1].loss);
	assert_int_equal(p->n_warnings, 1);
	assert_int_equal(d->n_del, 1);
	assert_int_equal(d->n_leave, 1);
	assert_int_equal(d->leave[0].in, bad[0]);
	assert_int_equal(d->n_add, 1);
	for (int i = 0; i < d->n_add; i++) {
		assert_true(d->add[i].in != bad[1] && d->add[i].in >= 4);
	}
	plan_free(p);
	/* Another job under the name was never applied. */
	p = NULL;
	topo_free(a.f->jobs[0].topo);
	assert_int_equal(topo_parse("UniRing(1,2)", &a.f->jobs[0].topo, NULL, NULL), 0);
	p = plan_of(a.f, &a.base);
	assert_int_equal(p->n_warnings, 0);
	plan_free(p);
	applied_free(&a);
}

/* One host has lost a port, and has a spare; another has lost all: the first is whole, and of
 * what the other needs only that is made which can be. */
static void each_circuit_is_for_itself(void **state)
{
	struct applied a = apply(
		"weft: 1\nfabric: t\nhosts:\n"
		"  - { name: 'h[0-3]', ports: 'p[0-1]', rate: 100Gbps }\n"
		"  - { name: h4, ports: p0, rate: 100Gbps }\n"
		"switches:\n  - { name: ocs0, size: 9x9, driver: sim }\n"
		"fibres:\n  - { from: 'h[0-3].p[0-1]', to: 'ocs0.[1-8]' }\n"
		"  - { from: h4.p0, to: 'ocs0.9' }\n"
		"jobs:\n  - { name: a, nodes: 'h[0-4]', collective: allreduce, size: 1MiB, "
		"topology: 'UniRing(1,5)' }\n");
	int bad[2] = { 0, 8 };	/* h0 sends by its first, h4 by its only one */
	struct plan_device *d;
	struct plan *p;

	(void)state;
	for (int i = 0; i < 5; i++) {
		lose(&a, 0);	/* the device has forgotten all */
	}
	ports_fail(&a.seen[0], a.dark, 2, bad, 0, NULL);
	p = plan_of(a.f, &a.base);
	d = &p->devices[0];
	assert_int_equal(p->jobs[0].loss->dead, 1);
	assert_null(p->jobs[0].loss->sched);	/* a ring of one way is cut */
	assert_int_equal(d->n_leave, 1);
	assert_int_equal(d->leave[0].in, 8);
	assert_int_equal(d->n_add, 4);
	assert_int_equal(d->add[0].in, 1);
	assert_int_equal(d->n_want, 5);
	plan_free(p);
	applied_free(&a);
}

#define CHOSEN                                                          \
	HOSTS_1 "jobs:\n"                                               \
	"  - { name: j, nodes: 'h[0-7]', collective: allreduce, "       \
	"size: 1MiB, alpha: 10us }\n"

/* A topology that was chosen stays when a port is lost: nothing is moved for it. */
static void chosen_topologies_stay(void **state)
{
	struct applied a = apply(CHOSEN);
	int bad = 0;
	struct plan *p;

	(void)state;
	ports_fail(&a.seen[0], a.dark, 1, &bad, 1, &bad);
	p = plan_of(a.f, &a.base);
	assert_true(plan_is_empty(p));
	assert_string_equal(p->jobs[0].topology, a.whole->jobs[0].topology);
	check_loss(&p->jobs[0], 2);
	plan_free(p);
	/* The port is back, and its circuits are gone: they are made, and nothing else. */
	ports_fail(&a.seen[0], a.dark, 0, NULL, 0, NULL);
	lose(&a, 0);
	p = plan_of(a.f, &a.base);
	assert_int_equal(p->n_add, 1);
	assert_int_equal(p->n_del, 0);
	assert_null(p->jobs[0].loss);
	plan_free(p);
	applied_free(&a);
}

/* So it does when the file marks the port, and the circuits there are dark, of jobs whose topology
 * is given, too. */
static void marked_ports_lose_their_light_only(const char *text, const char *marked)
{
	struct applied a = apply(text);
	struct model_fabric *without = a.f;
	struct plan *p;

	a.f = fabric_of(marked);
	a.base.topologies = a.whole->topologies;
	p = plan_of(a.f, &a.base);
	assert_true(plan_is_empty(p));
	assert_string_equal(p->jobs[0].topology, a.whole->jobs[0].topology);
	check_loss(&p->jobs[0], 2);
	plan_free(p);
	p = remains(&a);
	check_loss(&p->jobs[0], 2);
	plan_free(p);
	applied_free(&a);
	model_free(without);
}

#define MARKS "dead: [ { port: ocs0.1 } ]\n"

static void topologies_stay_where_ports_are_marked(void **state)
{
	(void)state;
	marked_ports_lose_their_light_only(CHOSEN, CHOSEN MARKS);
	marked_ports_lose_their_light_only(ALL_TO_ALL("K(4,4)", "auto"),
					   ALL_TO_ALL("K(4,4)", "auto") MARKS);
}

/* Another topology is taken only where that is asked for, and pays back in time. */
static void another_topology_must_pay(void **state)
{
	struct applied a = apply(CHOSEN);
	int bad = 0;
	struct plan *p = NULL, *now;

	(void)state;
	ports_fail(&a.seen[0], a.dark, 1, &bad, 1, &bad);
	a.base.aim = PLAN_OPTIMISE;
	now = remains(&a);
	assert_int_equal(plan_optimise(a.f, &a.base, now, &p, NULL), 0);
	assert_string_not_equal(p->jobs[0].topology, a.whole->jobs[0].topology);
	assert_true(p->gains[0].after_ns < p->gains[0].before_ns);
	assert_null(p->jobs[0].loss);
	plan_free(p);
	a.f->changes.pays_back_ns = 0;
	assert_int_equal(plan_optimise(a.f, &a.base, now, &p, NULL), 0);
	assert_string_equal(p->jobs[0].topology, a.whole->jobs[0].topology);
	assert_true(plan_is_empty(p));
	plan_free(p);
	plan_free(now);
	applied_free(&a);
}

/* Once a plan is applied its topologies are found again, though there are more ports. */
static void check_kept(const struct applied *a, const struct plan *p)
{
	struct plan_light *light = light_after(p);
	struct plan_base base = { .intent = light, .observed = light };
	struct plan *now, *q;

	assert_string_not_equal(p->jobs[0].topology, a->whole->jobs[0].topology);
	assert_int_equal(plan_degraded(a->f, &base, &q, NULL), 0);
	assert_string_equal(q->jobs[0].topology, p->jobs[0].topology);
	assert_null(q->jobs[0].loss);
	plan_free(q);
	/* Nor is another one applied, as it is written down: nothing moves, unless it is for other
	 * work or on request. */
	base.topologies = p->topologies;
	q = plan_of(a->f, &base);
	assert_true(plan_is_empty(q));
	assert_string_equal(q->topologies, p->topologies);
	plan_free(q);
	base.aim = PLAN_OPTIMISE;
	q = plan_of(a->f, &base);
	assert_string_equal(q->jobs[0].topology, a->whole->jobs[0].topology);
	plan_free(q);
	/* What there is now is what was applied, also when another one is asked for. */
	assert_int_equal(plan_degraded(a->f, &base, &now, NULL), 0);
	assert_string_equal(now->jobs[0].topology, p->jobs[0].topology);
	assert_int_equal(plan_optimise(a->f, &base, now, &q, NULL), 0);
	assert_string_equal(q->jobs[0].topology, a->whole->jobs[0].topology);
	plan_free(now);
	plan_free(q);
	base.aim = PLAN_REPAIR;
	a->f->jobs[0].size_bytes++;
	q = plan_of(a->f, &base);
	assert_string_equal(q->jobs[0].topology, a->whole->jobs[0].topology);
	plan_free(q);
	a->f->jobs[0].size_bytes--;
	free(light);
}

/* As CHOSEN, of a vector that no topology of fewer ports is faster for than what is left. */
#define CHOSEN_LARGE                                                    \
	HOSTS_1 "jobs:\n"                                               \
	"  - { name: j, nodes: 'h[0-7]', collective: allreduce, "       \
	"size: 256MiB, alpha: 10us }\n"

/* A port is emptied: a topology that was given has no other port, and stays lit; one that was
 * chosen becomes another, where that is faster than what would be left of it. */
static void evacuated_ports_are_left(void **state)
{
	struct applied a = apply(ALLREDUCE("Ring(8)"));
	int port = 0;
	struct plan *p;

	(void)state;
	a.seen[0].evacuated_in = a.seen[0].evacuated_out = &port;
	a.seen[0].n_evacuated_in = a.seen[0].n_evacuated_out = 1;
	p = plan_of(a.f, &a.base);	/* two of four ports are spare */
	assert_int_equal(p->n_add, 2);
	assert_int_equal(p->n_del, 2);
	assert_null(p->jobs[0].loss);
	plan_free(p);
	applied_free(&a);
	for (int k = 0; k < 3; k++) {
		bool chosen = k == 2;

		a = apply(chosen ? CHOSEN : k == 1 ? CHOSEN_LARGE : ALLREDUCE("C(8,{1,2})"));
		a.seen[0].evacuated_in = a.seen[0].evacuated_out = &port;
		a.seen[0].n_evacuated_in = a.seen[0].n_evacuated_out = 1;
		p = plan_of(a.f, &a.base);
		assert_null(p->jobs[0].loss);
		assert_int_equal(plan_is_empty(p), !chosen);
		assert_int_equal(p->n_warnings, !chosen);
		for (int i = 0; i < p->devices[0].n_want && chosen; i++) {
			assert_true(p->devices[0].want[i].in > 0);
			assert_true(p->devices[0].want[i].out > 0);
		}
		if (chosen) {
			check_kept(&a, p);
		}
		plan_free(p);
		applied_free(&a);
	}
}

/* What is lit at drained ports stays; what is made goes elsewhere. */
static void drained_ports_keep_their_light(void **state)
{
	struct applied a = apply(TWO_JOBS);
	int held[3] = { 0, 4, 6 }, bad = port_of(a.whole, 1);
	struct plan *p;

	(void)state;
	a.seen[0].held_in = a.seen[0].held_out = held;
	a.seen[0].n_held_in = a.seen[0].n_held_out = 3;
	p = plan_of(a.f, &a.base);
	assert_true(plan_is_empty(p));
	assert_null(p->jobs[0].loss);
	plan_free(p);
	/* The spare port of b's first host is drained, too. */
	held[1] = bad == 4 ? 5 : 4;
	ports_fail(&a.seen[0], a.dark, 1, &bad, 0, NULL);
	p = plan_of(a.f, &a.base);
	assert_true(plan_is_empty(p));
	assert_int_equal(p->jobs[1].loss->dead, 1);
	plan_free(p);
	applied_free(&a);
}

/* A circuit at a worn port is not moved where another way is open; where none is, that is
 * the reason why it stays dark. */
static void worn_ports_are_not_moved(void **state)
{
	struct applied a = apply(TWO_JOBS);
	struct optics_xc fixed = { 0 };
	struct plan *p = NULL;
	int bad;

	(void)state;
	/* From h2 to h3; the port at h3 fails, and that of h2 is worn. */
	for (int i = 0; i < a.whole->jobs[1].n_circuits; i++) {
		const struct plan_circuit *c = &a.whole->jobs[1].circuits[i];

		if (c->xc.in < 6) {
			fixed = c->xc;
		}
	}
	bad = fixed.out;
	a.seen[0].fixed = &fixed;
	a.seen[0].n_fixed = 1;
	ports_fail(&a.seen[0], a.dark, 0, NULL, 1, &bad);
	p = plan_of(a.f, &a.base);
	for (int i = 0; i < p->devices[0].n_add; i++) {
		assert_true(p->devices[0].add[i].in != fixed.in);
	}
	for (int i = 0; i < p->devices[0].n_del; i++) {
		assert_true(optics_xc_cmp(&p->devices[0].del[i], &fixed) != 0);
	}
	assert_int_equal(p->devices[0].n_external, 1);
	assert_true(p->devices[0].n_add > 0);
	plan_free(p);
	/* Job a has no other port. */
	fixed = a.whole->jobs[0].circuits[0].xc;
	a.seen[0].n_dark = 1;
	a.seen[0].dark = &fixed;
	ports_fail(&a.seen[0], a.dark, 0, NULL, 0, NULL);
	p = plan_of(a.f, &a.base);
	assert_true(plan_is_empty(p));
	assert_int_equal(p->jobs[0].loss->dead, 1);
	assert_non_null(strstr(p->warnings[0], "would have to be moved, and a port of it is "
			       "worn"));
	plan_free(p);
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
		cmocka_unit_test(a_resonator_costs_its_channel),
		cmocka_unit_test(a_break_leaves_a_line),
		cmocka_unit_test(two_breaks),
		cmocka_unit_test(what_cannot_be_is_named),
		cmocka_unit_test(what_is_not_needed_costs_nothing),
		cmocka_unit_test(remains_are_pure),
		cmocka_unit_test(what_cannot_be_repaired_stays),
		cmocka_unit_test(each_circuit_is_for_itself),
		cmocka_unit_test(chosen_topologies_stay),
		cmocka_unit_test(drained_ports_keep_their_light),
		cmocka_unit_test(topologies_stay_where_ports_are_marked),
		cmocka_unit_test(another_topology_must_pay),
		cmocka_unit_test(evacuated_ports_are_left),
		cmocka_unit_test(worn_ports_are_not_moved),
	};

	return cmocka_run_group_tests_name("plan/remains", tests, NULL, NULL);
}
