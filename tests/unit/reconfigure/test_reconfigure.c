/* SPDX-License-Identifier: Apache-2.0 */
/* Changing light: the order of moves, and what must be interrupted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "rwa/reconfigure/reconfigure.h"
#include "tests/unit/world.h"

static void add_path(struct rwa_assignment *a, int32_t demand, int32_t channel,
		     int32_t n, const int32_t *arcs)
{
	struct rwa_path p = { demand, n, (int64_t)a->hops.n };

	vec_push(&a->paths, p);
	for (int32_t i = 0; i < n; i++) {
		struct rwa_hop h = { arcs[i], 0, channel };

		vec_push(&a->hops, h);
	}
}

/* Duplex ring: arc i is i -> i+1, arc n+i is i+1 -> i. */
static struct rwa_mesh *ring(int n)
{
	struct rwa_mesh *m;

	assert_int_equal(rwa_mesh_new_ring(n, 1, &m, NULL), 0);
	return m;
}

static void demand(struct rwa_mesh *m, int32_t src, int32_t dst)
{
	struct rwa_mesh_demand d = { src, dst, 1, false };

	assert_int_equal(rwa_mesh_add_demand(m, &d, NULL), 0);
}

static void plan(const struct rwa_mesh *m, const struct rwa_assignment *from,
		 const struct rwa_assignment *to,
		 const struct rwa_change_options *opt, struct rwa_change *c)
{
	struct err err = { 0 };

	if (rwa_change_plan(m, from, to, opt, c, &err)) {
		fail_msg("%s", err.msg);
	}
}

static void forget(struct rwa_mesh *m, struct rwa_assignment *from,
		   struct rwa_assignment *to, struct rwa_change *c)
{
	rwa_change_fini(c);
	rwa_assignment_fini(from);
	rwa_assignment_fini(to);
	rwa_mesh_free(m);
}

/* Two lightpaths on one link change their channels. */
static void swap(int channels, struct rwa_change *c)
{
	static const int32_t arcs[] = { 0, 1 };
	struct rwa_change_options opt = { .channels = channels };
	struct rwa_assignment from = { 0 }, to = { 0 };
	struct rwa_mesh *m;

	assert_int_equal(rwa_mesh_new(3, &m, NULL), 0);
	assert_int_equal(rwa_mesh_add_arc(
		m, &(struct rwa_mesh_arc){ 0, 1, 1, 0, false }, NULL), 0);
	assert_int_equal(rwa_mesh_add_arc(
		m, &(struct rwa_mesh_arc){ 1, 2, 1, 0, false }, NULL), 0);
	demand(m, 0, 2);
	demand(m, 0, 1);
	add_path(&from, 0, 0, 2, arcs);
	add_path(&from, 1, 1, 1, arcs);
	add_path(&to, 0, 1, 2, arcs);
	add_path(&to, 1, 0, 1, arcs);
	plan(m, &from, &to, &opt, c);
	/* A check that nothing can fail would be none. */
	c->steps.n--;
	assert_int_equal(rwa_change_check(m, &from, &to, &opt, c, NULL),
			 WEFT_EVERIFY);
	c->steps.n++;
	if (c->cuts.n) {
		c->cuts.v[0].steps++;
		assert_int_equal(rwa_change_check(m, &from, &to, &opt, c,
						  NULL), WEFT_EVERIFY);
		c->cuts.v[0].steps--;
	}
	rwa_assignment_fini(&from);
	rwa_assignment_fini(&to);
	rwa_mesh_free(m);
}

static void a_cycle_is_parked_or_cut(void **state)
{
	struct rwa_change c;

	(void)state;
	swap(3, &c);
	assert_int_equal(c.moved, 2);
	assert_int_equal(c.rerouted, 1);
	assert_int_equal(c.cuts.n, 0);
	rwa_change_fini(&c);
	swap(2, &c);
	assert_int_equal(c.rerouted, 0);
	assert_int_equal(c.cuts.n, 1);
	assert_int_equal(c.longest_cut, 2);
	rwa_change_fini(&c);
}

static void needless_cuts_are_found(void **state)
{
	static const int32_t arcs[] = { 0 };
	struct rwa_change_options opt = { .channels = 2 };
	struct rwa_mesh *m = ring(3);
	struct rwa_assignment from = { 0 }, to = { 0 };
	struct rwa_change c;
	struct rwa_step first;

	(void)state;
	demand(m, 0, 1);
	add_path(&from, 0, 0, 1, arcs);
	add_path(&to, 0, 1, 1, arcs);
	plan(m, &from, &to, &opt, &c);
	assert_int_equal(c.steps.n, 1);
	first = c.steps.v[0];
	assert_int_equal(first.kind, RWA_STEP_MOVE);
	vec_push(&c.steps, first);
	c.steps.v[0] = (struct rwa_step){ RWA_STEP_CUT, 0, first.old, { 0 } };
	c.steps.v[1] = (struct rwa_step){ RWA_STEP_ADD, 0, { 0 }, first.new };
	assert_int_equal(rwa_change_check(m, &from, &to, &opt, &c, NULL),
			 WEFT_EVERIFY);
	forget(m, &from, &to, &c);
}

/* Two lightpaths that go in each of three ducts, and one in the first that
 * waits for one of the second. */
static void one_domain_after_the_other(void **state)
{
	static const int32_t arc[] = { 0, 1, 2 };
	struct rwa_change_options opt = { .channels = 2, .by_domain = true };
	struct rwa_assignment from = { 0 }, to = { 0 };
	struct rwa_mesh *m = ring(3);
	struct rwa_step first;
	struct rwa_change c;

	(void)state;
	for (int i = 0; i < 3; i++) {
		demand(m, i, (i + 1) % 3);
		demand(m, i, (i + 1) % 3);
		assert_int_equal(rwa_mesh_set_domain(m, i, i ? "b" : "a",
						     NULL), 0);
	}
	demand(m, 0, 2);
	for (int i = 0; i < 3; i++) {
		add_path(&from, 2 * i, 0, 1, &arc[i]);
		add_path(&from, 2 * i + 1, 1, 1, &arc[i]);
	}
	add_path(&to, 6, 0, 2, arc);
	plan(m, &from, &to, &opt, &c);
	/* b: four drops; a: two drops and the new one. */
	assert_int_equal(c.steps.n, 7);
	assert_int_equal(c.phases.n, 2);
	assert_int_equal(c.phases.v[0].domain, 1);
	assert_int_equal(c.phases.v[0].steps, 4);
	assert_int_equal(c.phases.v[1].steps, 3);
	/* b is left too early, then a step is of another domain. */
	first = c.steps.v[3];
	c.steps.v[3] = c.steps.v[4];
	c.steps.v[4] = first;
	assert_int_equal(rwa_change_check(m, &from, &to, &opt, &c, NULL),
			 WEFT_EVERIFY);
	c.phases.v[0].steps = 3;
	c.phases.v[1] = (struct rwa_phase){ 0, 3, 1 };
	vec_push(&c.phases, (struct rwa_phase){ 1, 4, 1 });
	vec_push(&c.phases, (struct rwa_phase){ 0, 5, 2 });
	assert_int_equal(rwa_change_check(m, &from, &to, &opt, &c, NULL),
			 WEFT_EVERIFY);
	forget(m, &from, &to, &c);
}

/* One lightpath on one link changes its channel. */
static void shift(int32_t to_channel, int32_t between, int channels,
		  struct rwa_change *c)
{
	static const int32_t arcs[] = { 0 };
	struct rwa_change_options opt = { .channels = channels };
	struct rwa_assignment from = { 0 }, to = { 0 };
	struct rwa_mesh *m = ring(3);

	m->guard.between = between;
	demand(m, 0, 1);
	add_path(&from, 0, 0, 1, arcs);
	add_path(&to, 0, to_channel, 1, arcs);
	plan(m, &from, &to, &opt, c);
	/* With wider guards the same steps collide, but not the other route
	 * round the ring. */
	m->guard.between = 4;
	assert_int_equal(rwa_change_check(m, &from, &to, &opt, c, NULL),
			 c->rerouted ? 0 : WEFT_EVERIFY);
	rwa_assignment_fini(&from);
	rwa_assignment_fini(&to);
	rwa_mesh_free(m);
}

/* Both ways of a move are active at once, so that it keeps away from itself. */
static void guards_hold_during_changes(void **state)
{
	struct rwa_change c;

	(void)state;
	shift(2, 1, 3, &c);
	assert_int_equal(c.steps.n, 1);
	rwa_change_fini(&c);
	/* The other way round the ring is spare. */
	shift(1, 1, 3, &c);
	assert_int_equal(c.rerouted, 1);
	assert_int_equal(c.cuts.n, 0);
	rwa_change_fini(&c);
}

/* A lightpath whose spare channel its transceivers do not reach is cut. */
static void tuning_ranges_hold_during_changes(void **state)
{
	static const int32_t arcs[] = { 0 };
	static const struct rwa_mesh_tuning range = { 1, 0, 1 };
	struct rwa_change_options opt = { .channels = 3 };
	struct rwa_assignment from = { 0 }, to = { 0 };
	struct rwa_mesh *m;
	struct rwa_change c;

	(void)state;
	assert_int_equal(rwa_mesh_new(2, &m, NULL), 0);
	assert_int_equal(rwa_mesh_add_arc(
		m, &(struct rwa_mesh_arc){ 0, 1, 1, 0, false }, NULL), 0);
	assert_int_equal(rwa_mesh_add_tuning(m, &range, NULL), 0);
	demand(m, 0, 1);
	demand(m, 0, 1);
	for (int32_t d = 0; d < 2; d++) {
		add_path(&from, d, d, 1, arcs);
		add_path(&to, d, 1 - d, 1, arcs);
	}
	plan(m, &from, &to, &opt, &c);
	assert_int_equal(c.rerouted, 0);
	assert_int_equal(c.cuts.n, 1);
	forget(m, &from, &to, &c);
}

/* A pair goes over to another channel, named the other way round. */
static void a_pair_stays_apart(void **state)
{
	static const int32_t cw[] = { 0, 1 }, ccw[] = { 7, 6 };
	struct rwa_change_options opt = { .channels = 2 };
	struct rwa_assignment from = { 0 }, to = { 0 };
	struct rwa_mesh_demand d = { 0, 2, 1, true };
	struct rwa_mesh *m = ring(4);
	struct rwa_step move;
	struct rwa_change c;

	(void)state;
	assert_int_equal(rwa_mesh_add_demand(m, &d, NULL), 0);
	add_path(&from, 0, 0, 2, cw);
	add_path(&from, 0, 0, 2, ccw);
	add_path(&to, 0, 1, 2, ccw);
	add_path(&to, 0, 1, 2, cw);
	plan(m, &from, &to, &opt, &c);
	assert_int_equal(c.moved, 2);
	assert_int_equal(c.cuts.n + (size_t)c.rerouted, 0);
	assert_int_equal(c.lightpaths.v[0].partner, 1);
	assert_int_equal(c.lightpaths.v[0].new_path, 1);
	/* The same light with the two exchanged is never apart. */
	c.lightpaths.v[0].new_path = 0;
	c.lightpaths.v[1].new_path = 1;
	move = c.steps.v[0];
	c.steps.v[0].lightpath = c.steps.v[1].lightpath;
	c.steps.v[1].lightpath = move.lightpath;
	assert_int_equal(rwa_change_check(m, &from, &to, &opt, &c, NULL),
			 WEFT_EVERIFY);
	c.lightpaths.v[1].partner = -1;
	assert_int_equal(rwa_change_check(m, &from, &to, &opt, &c, NULL),
			 WEFT_EVERIFY);
	forget(m, &from, &to, &c);
}

/* ---- random changes ---- */

/* Some arcs in one of up to three ducts. */
static void random_domains(struct rwa_mesh *m, struct rng *rng)
{
	static const char *const ducts[] = { "north", "south", "cellar" };

	for (int32_t e = 0; e < (int32_t)m->arcs.n; e++) {
		uint64_t duct = rng_below(rng, 4);

		if (duct < 3) {
			assert_int_equal(rwa_mesh_set_domain(m, e, ducts[duct],
							     NULL), 0);
		}
	}
}

/* A ring, half of the time with random chords. */
static struct rwa_mesh *random_mesh(struct rng *rng)
{
	int n = 3 + (int)rng_below(rng, 6);
	int chords = rng_below(rng, 2) ? 1 + (int)rng_below(rng, 3) : 0;
	int demands = 2 * n;
	struct rwa_mesh *m = ring(n);

	for (int k = 0; k < chords && n > 3; k++) {
		struct rwa_mesh_arc a = {
			(int)rng_below(rng, (uint64_t)n), 0,
			1 + (int)rng_below(rng, 2), 0, false,
		};

		a.dst = (a.src + 2) % n;
		assert_int_equal(rwa_mesh_add_arc(m, &a, NULL), 0);
	}
	random_domains(m, rng);
	for (int k = 0; k < demands; k++) {
		int32_t s = (int32_t)rng_below(rng, (uint64_t)n);
		int32_t hop = 1 + (int32_t)rng_below(rng, (uint64_t)n - 1);

		demand(m, s, (s + hop) % n);
	}
	return m;
}

/* Guard channels, tuning ranges, converters, limits and pairs, each in some of
 * the meshes. */
static void random_rules(struct rwa_mesh *m, struct rng *rng)
{
	if (rng_below(rng, 4) == 0) {
		m->guard.between = 1 + (int32_t)rng_below(rng, 2);
		m->guard.below = (int32_t)rng_below(rng, 2);
		m->guard.above = (int32_t)rng_below(rng, 2);
	}
	for (uint64_t n = rng_below(rng, 4); n == 1 || n == 2; n++) {
		struct rwa_mesh_tuning t = {
			(int32_t)rng_below(rng, m->nodes.n),
			(int32_t)rng_below(rng, 2), 0,
		};

		t.last = t.first + 1 + (int32_t)rng_below(rng, 4);
		assert_int_equal(rwa_mesh_add_tuning(m, &t, NULL), 0);
	}
	for (size_t v = rng_below(rng, 4) ? m->nodes.n : 0; v < m->nodes.n; v++) {
		m->nodes.v[v].convert = rng_below(rng, 2);
		m->nodes.v[v].add_limit = 1 + (int32_t)rng_below(rng, 2);
		m->nodes.v[v].drop_limit = 1 + (int32_t)rng_below(rng, 2);
	}
	if (rng_below(rng, 3) == 0) {
		for (size_t d = 0; d < m->demands.n; d += 2) {
			m->demands.v[d].protect = true;
			m->lightpaths++;
		}
	}
}

/* What is active while an assignment is drawn. */
struct drawing {
	const struct rwa_mesh *m;
	struct rng *rng;
	struct rwa_assignment *a;
	int channels;
};

/* A random walk from src that meets dst, not over the links of `avoid`; its
 * arcs into arcs. Returns its hops, 0 when it got lost. */
static int32_t walk(const struct drawing *w, const struct rwa_mesh_demand *d,
		    const struct rwa_path *avoid, int32_t *arcs)
{
	const struct rwa_mesh *m = w->m;
	bool seen[16] = { false };
	int32_t at = d->src, n = 0;

	for (int tries = 0; at != d->dst && tries < 60; tries++) {
		int32_t e = (int32_t)rng_below(w->rng, m->arcs.n);
		const struct rwa_mesh_arc *x = &m->arcs.v[e];
		bool open = x->src == at && !seen[x->dst];

		seen[at] = true;
		for (int32_t k = 0; avoid && k < avoid->hops; k++) {
			const struct rwa_mesh_arc *y = &m->arcs.v[
				w->a->hops.v[avoid->first + k].arc];

			open &= x->src + x->dst != y->src + y->dst ||
				x->src * x->dst != y->src * y->dst;
		}
		if (open) {
			arcs[n++] = e;
			at = x->dst;
		}
	}
	return at == d->dst ? n : 0;
}

/* One lightpath more, if the walk is lucky. */
static bool draw(const struct drawing *w, int32_t demand, bool backup)
{
	const struct rwa_path avoid = backup
		? w->a->paths.v[w->a->paths.n - 1] : (struct rwa_path){ 0 };
	int32_t arcs[16];
	int32_t c = (int32_t)rng_below(w->rng, (uint64_t)w->channels);
	int32_t n = walk(w, &w->m->demands.v[demand],
			 backup ? &avoid : NULL, arcs);

	if (n) {
		add_path(w->a, demand, c, n, arcs);
	}
	return n > 0;
}

/* Fills what it can, densely enough for cycles. */
static void random_assignment(const struct rwa_mesh *m, struct rng *rng,
			      int channels, struct rwa_assignment *a)
{
	const struct drawing w = { m, rng, a, channels };

	*a = (struct rwa_assignment){ 0 };
	for (int32_t d = 0; d < (int32_t)m->demands.n; d++) {
		bool pair = m->demands.v[d].protect, good = false;

		for (int tries = 0; !good && tries < (pair ? 40 : 12);
		     tries++) {
			size_t paths = a->paths.n, hops = a->hops.n;

			good = draw(&w, d, false) &&
			       (!pair || draw(&w, d, true)) &&
			       !rwa_mesh_check(m, a, channels, false, NULL);
			if (!good) {
				a->paths.n = paths;
				a->hops.n = hops;
			}
		}
	}
}

/* Whether a step lights one of a pair. */
static bool lights_pair(const struct rwa_change *c, size_t at)
{
	const struct rwa_step *s = &c->steps.v[at];

	return s->new.n && c->lightpaths.v[s->lightpath].partner >= 0;
}

/* rwa_change_plan() replays its own answer; here it is done again, and what
 * is counted is compared. */
/* Moves back of what had arrived, or stays, and left for others. */
static int64_t returns(const struct rwa_change *c)
{
	bool *arrived = calloc(c->lightpaths.n + 1, sizeof(*arrived));
	int64_t n = 0;

	assert_non_null(arrived);
	for (size_t i = 0; i < c->steps.n; i++) {
		const struct rwa_step *s = &c->steps.v[i];

		if (s->kind == RWA_STEP_MOVE || s->kind == RWA_STEP_ADD) {
			n += arrived[s->lightpath] || c->lightpaths.v[s->lightpath].kept;
			arrived[s->lightpath] = true;
		}
	}
	free(arrived);
	return n;
}

static void random_changes(void **state)
{
	struct rng rng;
	int64_t rerouted = 0, cut = 0, moved = 0, phases = 0;
	int64_t guarded = 0, tuned = 0, paired = 0;

	(void)state;
	rng_seed(&rng, 5);
	for (int k = 0; k < ALL_OR_SOME(500, 80); k++) {
		struct rwa_mesh *m = random_mesh(&rng);
		int channels = 1 + (int)rng_below(&rng, 4);
		struct rwa_change_options opt = { 0, k % 2 == 1 };
		struct rwa_assignment from, to;
		struct rwa_change c;

		random_rules(m, &rng);
		channels += m->guard.between * channels + m->guard.below +
			    m->guard.above;
		opt.channels = channels;
		random_assignment(m, &rng, channels, &from);
		random_assignment(m, &rng, channels, &to);
		plan(m, &from, &to, &opt, &c);
		assert_int_equal(rwa_change_check(m, &from, &to, &opt, &c,
						  NULL), 0);
		assert_int_equal(c.phases.n > 0, opt.by_domain && c.steps.n);
		phases += (int64_t)c.phases.n;
		assert_int_equal(c.kept + c.moved + c.dropped, from.paths.n);
		assert_int_equal(c.kept + c.moved + c.added, to.paths.n);
		assert_int_equal(c.steps.n, c.moved + c.added + c.dropped +
						    c.rerouted + (int64_t)c.cuts.n + returns(&c));
		rerouted += c.rerouted;
		cut += (int64_t)c.cuts.n;
		moved += c.moved;
		guarded += m->guard.between ? (int64_t)c.steps.n : 0;
		tuned += m->tunings.n ? (int64_t)c.steps.n : 0;
		for (size_t i = 0; i < c.steps.n; i++) {
			paired += lights_pair(&c, i);
		}
		forget(m, &from, &to, &c);
	}
	/* All kinds of change were met. */
	assert_true(rerouted > ALL_OR_SOME(50, 8));
	assert_true(cut > ALL_OR_SOME(50, 8));
	assert_true(moved > 2 * cut);
	assert_true(phases > ALL_OR_SOME(250, 40));
	assert_true(guarded > ALL_OR_SOME(250, 40));
	assert_true(tuned > ALL_OR_SOME(250, 40));
	assert_true(paired > ALL_OR_SOME(250, 40));
	print_message("# moved %lld, rerouted %lld, interrupted %lld, phases "
		      "%lld; steps with guards %lld, tuning %lld, pairs %lld\n",
		      (long long)moved, (long long)rerouted,
		      (long long)cut, (long long)phases, (long long)guarded,
		      (long long)tuned, (long long)paired);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cycle_is_parked_or_cut),
		cmocka_unit_test(needless_cuts_are_found),
		cmocka_unit_test(one_domain_after_the_other),
		cmocka_unit_test(guards_hold_during_changes),
		cmocka_unit_test(tuning_ranges_hold_during_changes),
		cmocka_unit_test(a_pair_stays_apart),
		cmocka_unit_test(random_changes),
	};

	return cmocka_run_group_tests_name("reconfigure/reconfigure", tests, NULL, NULL);
}
