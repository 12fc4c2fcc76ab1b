/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs on parts of a ring, alone and side by side. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"
#include "optree/private.h"
#include "tests/unit/optree/common.h"
#include "tests/unit/optree/ring_sim.h"

/* ---- the proof that jobs keep out of each other's way ---- */

struct shared_job {
	const char *name;		/* of the job, for messages */
	const struct coll_sched *sched;	/* with light */
	const int32_t *at;		/* position of each rank; NULL: rank r
					 * is at position r */
	bool line;			/* as in its params: no light passes
					 * from the last rank to the first */
};

struct sharing {
	const struct rwa_ring *ring;
	const struct shared_job *jobs;
	int32_t *taken;		/* by direction, link, fibre, channel: the job
				 * that uses it, counted from 1 */
};

static int claim(struct sharing *s, int job, const struct coll_light *l,
		 int link, struct err *err)
{
	const struct rwa_ring *r = s->ring;
	size_t row = (size_t)l->dir * (size_t)r->n + (size_t)link;
	int32_t *owner = &s->taken[(row * (size_t)r->fibres + l->fibre) *
					   (size_t)r->channels + l->channel];

	if (*owner && *owner != job + 1) {
		return err_set(err, WEFT_EVERIFY,
			       "jobs %s and %s both use channel %d of fibre %d "
			       "%s on link %d", s->jobs[*owner - 1].name,
			       s->jobs[job].name, l->channel, l->fibre,
			       l->dir == RWA_CW ? "clockwise"
						: "counter-clockwise", link);
	}
	*owner = job + 1;
	return 0;
}

static bool on_ring(const struct rwa_ring *r, const struct coll_light *l,
		    int from, int to)
{
	return l->dir <= RWA_CCW && l->fibre < r->fibres &&
	       l->channel < r->channels && from >= 0 && from < r->n &&
	       to >= 0 && to < r->n && from != to;
}

static int claim_light(struct sharing *s, int job, const struct coll_light *l,
		       struct err *err)
{
	const struct shared_job *j = &s->jobs[job];
	const struct topo_arc *a = topo_arc(coll_topo(j->sched), l->arc);
	int n = s->ring->n, first = j->at ? j->at[0] : 0, rc = 0;
	int from = j->at ? j->at[a->src] : a->src;
	int to = j->at ? j->at[a->dst] : a->dst;
	int begin = l->dir == RWA_CW ? from : to;
	int end = l->dir == RWA_CW ? to : from;

	if (!on_ring(s->ring, l, from, to)) {
		return err_set(err, WEFT_EVERIFY,
			       "job %s: channel %d of fibre %d from position "
			       "%d to %d is not on the ring", j->name,
			       l->channel, l->fibre, from, to);
	}
	if (j->line && (begin - first + n) % n > (end - first + n) % n) {
		return err_set(err, WEFT_EVERIFY,
			       "job %s: light from position %d to %d leaves "
			       "its segment", j->name, from, to);
	}
	for (int link = begin; link != end && !rc; link = (link + 1) % n) {
		rc = claim(s, job, l, link, err);
	}
	return rc;
}

/*
 * Jobs that share a ring, each running in its own time: whatever steps they
 * are in, no two may use a channel of a fibre on the same link and direction.
 * WEFT_EVERIFY names two jobs and the place where they clash, or the job whose
 * light is not on the ring. ring: the whole one.
 */
static int check_shared(const struct rwa_ring *ring,
			const struct shared_job *jobs, int n_jobs,
			struct err *err)
{
	size_t slots = 2 * (size_t)ring->n * (size_t)ring->fibres *
		       (size_t)ring->channels;
	struct sharing s = { ring, jobs, x_new(slots, sizeof(*s.taken)) };
	int rc = 0;

	for (int j = 0; j < n_jobs && !rc; j++) {
		int64_t n;
		const struct coll_light *l = coll_lights(jobs[j].sched, &n);

		for (int64_t k = 0; k < n && !rc; k++) {
			rc = claim_light(&s, j, &l[k], err);
		}
	}
	free(s.taken);
	return rc;
}

/* ---- tests ---- */

static void make(const struct optree_params *p, struct optree_plan *out)
{
	struct err err = { 0 };

	if (optree_make(p, OPTREE_AUTO, out, &err) ||
	    optree_plan_expand(p, out, &err)) {
		fail_msg("n=%d w=%d: %s", p->n, p->channels, err.msg);
	}
}

/* Every light's loss is that of the links it crosses, on allowed channels. */
static void check_lights(const struct optree_params *p,
			 const struct coll_sched *s)
{
	int64_t n;
	const struct coll_light *l = coll_lights(s, &n);
	struct rwa_ring ring = { p->ring_nodes ? p->ring_nodes : p->n,
				 p->fibres, p->channels };

	for (int64_t i = 0; i < n; i++) {
		const struct topo_arc *a = topo_arc(coll_topo(s), l[i].arc);
		int links = optree_links(p, a->src, a->dst, l[i].dir);
		bool allowed = p->n_light == 0;

		if (p->loss) {
			assert_int_equal(l[i].loss_mdb, rwa_path_loss_mdb(
				&ring, p->loss, links));
		}
		for (int k = 0; k < p->n_light; k++) {
			const struct optree_fibre *f = &p->light[k];

			allowed = allowed ||
				  (f->dir == l[i].dir &&
				   f->fibre == l[i].fibre &&
				   l[i].channel >= f->first &&
				   l[i].channel < f->first + f->channels);
		}
		assert_true(allowed);
		if (p->line) {
			assert_int_equal(l[i].dir, a->src < a->dst ? RWA_CW
								   : RWA_CCW);
		}
	}
}

/* Plans, expands (which replays all) and checks one job alone. */
static void check_by(const struct optree_params *p, enum coll_kind kind,
		     enum optree_algorithm how, struct optree_plan *out)
{
	struct rwa_ring ring = { p->ring_nodes ? p->ring_nodes : p->n,
				 p->fibres, p->channels };
	struct shared_job job = { .name = "job", .at = p->at,
				     .line = p->line };
	struct coll_report report;
	struct coll_cost cost = { .alpha_ns = p->alpha_ns, .link_bps = p->channel_bps,
				  .size_bytes = p->shard_bytes * p->n };
	struct err err = { 0 };
	int64_t ns;

	if (optree_collective(p, kind, 0, how, out, &err) || optree_plan_expand(p, out, &err)) {
		fail_msg("n=%d w=%d algorithm %d: %s", p->n, p->channels, (int)how, err.msg);
	}
	coll_report_init(&report);
	assert_int_equal(coll_verify(out->sched, &report, &err), 0);
	assert_int_equal(report.steps, out->steps);
	assert_int_equal(coll_time(out->sched, &report, &cost, &ns, NULL,
				   &err), 0);
	assert_true(ns <= out->time_ns);
	/* In all-to-all on a line not all nodes have as much to send. */
	if (out->chunks < 2500 && out->chunks * 2 < p->shard_bytes && !p->span_delay_ns &&
	    !(p->line && kind == COLL_ALLTOALL)) {
		assert_true(ns >= out->time_ns - 2);
	}
	assert_true(out->time_ns >= out->bound_ns);
	check_lights(p, out->sched);
	job.sched = out->sched;
	assert_int_equal(check_shared(&ring, &job, 1, &err), 0);
	coll_report_fini(&report);
}

static void check(const struct optree_params *p, enum coll_kind kind, struct optree_plan *out)
{
	check_by(p, kind, OPTREE_AUTO, out);
}

static void segments(void **state)
{
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE, COLL_ALLTOALL };

	(void)state;
	for (int n = 2; n <= 40; n++) {
		for (int k = 0; k < 4; k++) {
			struct optree_params p = params(
				n, 1 + (n + k) % 9, k ? 4000 : 4000000);
			struct optree_plan plan;
			int64_t lights;

			p.line = true;
			check(&p, kinds[k], &plan);
			coll_lights(plan.sched, &lights);
			assert_int_equal(lights, plan.lightpaths);
			assert_int_equal(plan.optree_time_ns, 0);
			optree_plan_fini(&plan);
		}
	}
}

/* Long items on a line: a relay both paths, as fast as an end can receive. */
static void a_line_meets_its_bound(void **state)
{
	struct optree_params p = params(50, 8, 100000000);
	struct optree_plan plan;

	(void)state;
	p.line = true;
	check(&p, COLL_ALLGATHER, &plan);
	assert_true(plan.bound_ns > 25000 + 49 * INT64_C(20000000) / 8);
	assert_true(plan.gap < 0.01);
	optree_plan_fini(&plan);
}

static void unequal_fibres(void **state)
{
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 4);
	for (int k = 0; k < 120; k++) {
		struct optree_params p = params(
			2 + (int)rng_below(&rng, 30), 12,
			1 + (int64_t)rng_below(&rng, 300000));
		struct optree_fibre f[4];
		struct optree_plan plan;
		int n = 1 + (int)rng_below(&rng, 4);

		for (int i = 0; i < n; i++) {
			f[i] = (struct optree_fibre){
				.dir = i & 1, .fibre = (uint8_t)(2 - i / 2),
				.first = (int)rng_below(&rng, 6),
				.channels = 1 + (int)rng_below(&rng, 6) };
		}
		p.fibres = 3;
		p.light = f;
		p.n_light = n;
		p.line = n > 1 && k % 3 == 0;
		p.overlap = k % 2;
		p.convert_ns = 500;
		if (optree_collective(&p, kinds[k % 3], 0, OPTREE_AUTO, &plan,
				      &(struct err){ 0 })) {
			fail();
		}
		optree_plan_fini(&plan);
		p.overlap = false;
		check(&p, kinds[k % 3], &plan);
		optree_plan_fini(&plan);
	}
}

/* Two thirds of the light clockwise: both directions take their share. */
static void unequal_directions_meet_the_bound(void **state)
{
	static const struct optree_fibre f[] = {
		{ RWA_CW, 0, 0, 64 }, { RWA_CCW, 0, 0, 32 } };
	struct optree_params p = params(64, 64, 4000000000);
	struct optree_plan plan;

	(void)state;
	p.light = f;
	p.n_light = 2;
	check(&p, COLL_ALLGATHER, &plan);
	assert_true(plan.gap < 0.01);
	optree_plan_fini(&plan);
	p.n_light = 1;
	check(&p, COLL_ALLGATHER, &plan);
	assert_true(plan.gap < 0.01);
	optree_plan_fini(&plan);
}

/* A random part: some nodes or all, a line, unequal fibres. */
static void make_part(struct rng *rng, struct optree_params *p, struct optree_fibre *f, int32_t *at)
{
	p->fibres = 2;
	p->line = rng_below(rng, 3) == 0;
	if (rng_below(rng, 2)) {
		p->n_light = 2 + (int)rng_below(rng, 3);
		p->light = f;
		for (int i = 0; i < p->n_light; i++) {
			f[i] = (struct optree_fibre){
				.dir = i & 1, .fibre = (uint8_t)(i / 2),
				.first = (int)rng_below(rng, (uint64_t)p->channels) };
			f[i].channels = 1 + (int)rng_below(
				rng, (uint64_t)(p->channels - f[i].first));
		}
	}
	if (rng_below(rng, 2)) {
		p->at = at;
		p->ring_nodes = 0;
		for (int v = 0; v < p->n; v++) {
			at[v] = p->ring_nodes;
			p->ring_nodes += 1 + (int)rng_below(rng, 3);
		}
	}
}

/* Every algorithm and collective on random parts: replayed, and no faster on
 * the simulated ring than was said, nor slower. */
static void every_algorithm_on_parts(void **state)
{
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE, COLL_ALLTOALL };
	struct rwa_loss loss = { .launch_mdbm = 150000, .span_mdb = 1000, .pass_mdb = 1 };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 17);
	for (int k = 0; k < 240; k++) {
		enum coll_kind kind = kinds[k % 4];
		int how = kind == COLL_ALLTOALL ? OPTREE_AUTO : k / 4 % (OPTREE_BY_ONE_STAGE + 1);
		struct ring_sim_params sim = { .flit_bytes = 1 };
		struct ring_sim_result ran;
		struct optree_params *p = &sim.ring;
		struct optree_fibre f[4];
		struct optree_plan plan;
		int32_t at[64];

		*p = params(2 + (int)rng_below(&rng, 30), 1 + (int)rng_below(&rng, 12), 6400);
		if (how == OPTREE_GROUPED && p->n < 4) {
			p->n = 4;
		}
		make_part(&rng, p, f, at);
		p->line = p->line && how != OPTREE_GROUPED;
		if (how == OPTREE_BY_NE) {
			p->n += p->at ? -(p->n % 2) : p->n % 2;
			p->n = p->n < 2 ? 2 : p->n;
			p->line = false;
		}
		p->loss = &loss;
		p->span_delay_ns = k % 3 ? 0 : (int64_t)rng_below(&rng, 5000);
		sim.retune_ns = p->alpha_ns;
		check_by(p, kind, (enum optree_algorithm)how, &plan);
		assert_int_equal(ring_simulate(plan.sched, &sim, &ran, &(struct err){ 0 }), 0);
		assert_true(ran.time_ns <= plan.time_ns + plan.steps);
		if (!p->line && (!p->at || !p->span_delay_ns)) {
			assert_true(ran.time_ns >= plan.time_ns - 2);
		}
		optree_plan_fini(&plan);
	}
}

/* All channels of all fibres, as a list: the whole ring. */
static void equal_fibres_are_the_whole_ring(void **state)
{
	static const struct optree_fibre f[] = {
		{ RWA_CW, 0, 0, 4 }, { RWA_CW, 1, 0, 4 }, { RWA_CCW, 0, 0, 4 },
		{ RWA_CCW, 1, 0, 4 } };

	(void)state;
	for (int how = OPTREE_AUTO; how <= OPTREE_BY_ONE_STAGE; how++) {
		struct optree_params p = params(24, 4, 50000);
		struct optree_plan whole, list;

		p.fibres = 2;
		check_by(&p, COLL_ALLREDUCE, (enum optree_algorithm)how, &whole);
		p.light = f;
		p.n_light = 4;
		check_by(&p, COLL_ALLREDUCE, (enum optree_algorithm)how, &list);
		assert_int_equal(whole.time_ns, list.time_ns);
		assert_int_equal(whole.steps, list.steps);
		assert_int_equal(whole.closed_form_steps, list.closed_form_steps);
		assert_int_equal(whole.optree_time_ns, list.optree_time_ns);
		optree_plan_fini(&whole);
		optree_plan_fini(&list);
		if (how <= OPTREE_COMPOSED) {
			check_by(&p, COLL_BROADCAST, (enum optree_algorithm)how, &list);
			optree_plan_fini(&list);
		}
	}
}

/* One long lightpath of a tree on a line costs what its links cost. */
static void trees_on_lines_keep_to_the_budget(void **state)
{
	struct rwa_loss loss = { .launch_mdbm = 8000, .span_mdb = 1000 };
	struct optree_params p = params(16, 4, 4000);
	struct optree_plan plan;
	struct err err = { 0 };

	(void)state;
	p.line = true;
	p.loss = &loss;
	check_by(&p, COLL_ALLGATHER, OPTREE_TREE, &plan);
	assert_int_equal(plan.worst_loss_mdb, 8000);
	optree_plan_fini(&plan);
	loss.launch_mdbm = 7000;
	assert_int_equal(optree_make(&p, OPTREE_TREE, &plan, &err), WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "over 8 hops"));
	check(&p, COLL_ALLGATHER, &plan);
	optree_plan_fini(&plan);
}

/* Random jobs on disjoint channels or disjoint arcs of one ring. */
static void jobs_share_a_ring(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 9);
	for (int k = 0; k < 40; k++) {
		struct rwa_ring ring = { 64, 2, 16 };
		struct rwa_loss loss = { .launch_mdbm = 60000,
					 .span_mdb = 1000, .pass_mdb = 1 };
		struct shared_job jobs[4];
		struct optree_plan plans[4];
		int32_t at[4][64];
		struct err err = { 0 };
		bool by_channel = k % 2;

		for (int j = 0; j < 4; j++) {
			int lo = by_channel ? (int)rng_below(&rng, 64)
					    : 16 * j + 60;
			int room = by_channel ? 63 : 15;
			struct optree_fibre f[] = {
				{ RWA_CW, j / 2, 8 * (j % 2), 8 },
				{ RWA_CCW, j / 2, 8 * (j % 2), 8 } };
			struct optree_params p = params(0, 16, 4000);

			for (int v = 0; v <= room; v++) {
				if (rng_below(&rng, 3) || v == 0 ||
				    v == room) {
					at[j][p.n++] = (lo + v) % 64;
				}
			}
			p.fibres = 2;
			p.light = by_channel ? f : NULL;
			p.n_light = by_channel ? 2 : 0;
			p.at = at[j];
			p.ring_nodes = 64;
			p.line = !by_channel;
			p.loss = &loss;
			check(&p, COLL_ALLGATHER, &plans[j]);
			assert_true(plans[j].worst_loss_mdb <= 60000);
			jobs[j] = (struct shared_job){
				"job", plans[j].sched, at[j], !by_channel };
		}
		if (check_shared(&ring, jobs, 4, &err)) {
			fail_msg("%s", err.msg);
		}
		for (int j = 0; j < 4; j++) {
			optree_plan_fini(&plans[j]);
		}
	}
}

/* Light passes nodes that take no part: reach counts their links. */
static void reach_counts_links_passed(void **state)
{
	static const int32_t at[] = { 0, 1, 2, 3, 13, 14, 15, 16 };
	struct rwa_loss loss = { .launch_mdbm = 10000, .span_mdb = 1000 };
	struct optree_params p = params(8, 4, 4000);
	struct optree_plan plan;
	struct err err;

	(void)state;
	p.at = at;
	p.ring_nodes = 20;
	p.loss = &loss;
	check(&p, COLL_ALLGATHER, &plan);
	assert_int_equal(plan.worst_loss_mdb, 10000);
	optree_plan_fini(&plan);
	loss.launch_mdbm = 9000;
	assert_int_equal(optree_make(&p, OPTREE_AUTO, &plan, &err),
			 WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "3 -> 4 over 10 hops"));
}

static int refused(const struct optree_params *p, enum optree_algorithm how,
		   enum coll_kind kind)
{
	struct optree_plan plan;
	struct err err = { 0 };
	int rc = optree_collective(p, kind, 0, how, &plan, &err);

	assert_int_not_equal(rc, 0);
	assert_true(err.msg[0] != '\0');
	return rc;
}

static void what_is_not_there_is_refused(void **state)
{
	static const int32_t wrong[] = { 0, 2, 1, 3 }, beyond[] = { 0, 9 };
	struct optree_fibre f[] = { { RWA_CW, 0, 0, 2 }, { RWA_CW, 0, 1, 2 },
				    { RWA_CW, 1, 0, 1 }, { RWA_CW, 0, 3, 2 } };
	struct optree_params p = params(4, 4, 4000);

	(void)state;
	p.at = wrong;
	assert_int_equal(refused(&p, OPTREE_AUTO, COLL_ALLGATHER),
			 WEFT_EINVAL);
	p.n = 2;
	p.at = beyond;
	p.ring_nodes = 9;
	assert_int_equal(refused(&p, OPTREE_AUTO, COLL_ALLGATHER),
			 WEFT_EINVAL);
	p = params(4, 4, 4000);
	p.light = f;
	p.n_light = 2;	/* channel 1 twice */
	assert_int_equal(refused(&p, OPTREE_AUTO, COLL_ALLGATHER),
			 WEFT_EINVAL);
	p.n_light = 1;
	p.line = true;	/* and nothing back */
	assert_int_equal(refused(&p, OPTREE_AUTO, COLL_ALLGATHER),
			 WEFT_EINVAL);
	p.light = f + 2;	/* no such fibre */
	assert_int_equal(refused(&p, OPTREE_AUTO, COLL_ALLGATHER),
			 WEFT_EINVAL);
	p.light = f + 3;	/* no such channel */
	assert_int_equal(refused(&p, OPTREE_AUTO, COLL_ALLGATHER),
			 WEFT_EINVAL);
	p = params(4, 4, 4000);
	p.light = f;
	p.n_light = 1;	/* one way */
	for (int how = OPTREE_TREE; how <= OPTREE_BY_ONE_STAGE; how++) {
		if (how != OPTREE_BY_RING) {
			assert_int_equal(refused(&p, (enum optree_algorithm)how, COLL_ALLGATHER),
					 WEFT_EUNSUPPORTED);
		}
	}
	p = params(4, 4, 4000);
	p.line = true;
	assert_int_equal(refused(&p, OPTREE_BY_NE, COLL_ALLGATHER),
			 WEFT_EUNSUPPORTED);
	assert_int_equal(refused(&p, OPTREE_TREE, COLL_BROADCAST),
			 WEFT_EUNSUPPORTED);
}

static void clashes_are_found(void **state)
{
	static const int32_t every_other[] = { 0, 2, 4, 6, 8, 10, 12, 14 };
	struct rwa_ring ring = { 16, 1, 4 };
	struct optree_params p = params(16, 4, 4096), q = params(8, 4, 4096);
	struct optree_plan a, b;
	struct shared_job jobs[2];
	struct err err = { 0 };

	(void)state;
	make(&p, &a);
	make(&q, &b);
	jobs[0] = (struct shared_job){ "left", a.sched, NULL, false };
	jobs[1] = (struct shared_job){ "right", b.sched, every_other,
					  false };
	assert_int_equal(check_shared(&ring, jobs, 1, &err), 0);
	assert_int_equal(check_shared(&ring, jobs + 1, 1, &err), 0);
	assert_int_equal(check_shared(&ring, jobs, 2, &err),
			 WEFT_EVERIFY);
	assert_non_null(strstr(err.msg, "jobs left and right both use "
					"channel"));
	jobs[0].line = true;
	assert_int_equal(check_shared(&ring, jobs, 1, &err),
			 WEFT_EVERIFY);
	assert_non_null(strstr(err.msg, "leaves its segment"));
	ring.channels = 3;
	jobs[0].line = false;
	assert_int_equal(check_shared(&ring, jobs, 1, &err),
			 WEFT_EVERIFY);
	assert_non_null(strstr(err.msg, "is not on the ring"));
	optree_plan_fini(&a);
	optree_plan_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments),
		cmocka_unit_test(a_line_meets_its_bound),
		cmocka_unit_test(unequal_fibres),
		cmocka_unit_test(unequal_directions_meet_the_bound),
		cmocka_unit_test(every_algorithm_on_parts),
		cmocka_unit_test(equal_fibres_are_the_whole_ring),
		cmocka_unit_test(trees_on_lines_keep_to_the_budget),
		cmocka_unit_test(jobs_share_a_ring),
		cmocka_unit_test(reach_counts_links_passed),
		cmocka_unit_test(what_is_not_there_is_refused),
		cmocka_unit_test(clashes_are_found),
	};

	return cmocka_run_group_tests_name("optree/shared", tests, NULL, NULL);
}
