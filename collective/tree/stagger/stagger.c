/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many batches, in how many steps: runs of which the best is kept and made.
 *
 * A run (stagger_steps.c) takes its time from the pace that it is given, and nothing but a run
 * tells how long it takes. So the number of steps is searched from where steps and T_B should
 * balance, up and down, then all that the pace has is changed a little while that gains. Work is
 * counted in moves of batches, so the result does not depend on the machine.
 */
#include <math.h>
#include <stdlib.h>

#include "collective/tree/stagger/stagger_private.h"
#include "lib/base/alloc.h"

#define WORK (INT64_C(3) << 18)		/* moves of all runs, roughly, beside the first */
#define START_WORK (WORK / 4 * 3)		/* at least, from the best of all beginnings on */
#define MAX_MOVES (INT64_C(1) << 22)	/* of one schedule */
#define MAX_TIMED_MOVES (INT64_C(1) << 24)
#define MIN_FILL 4			/* batches of a step on the fullest arc */
#define FINE_FILL 16			/* as many, and weights need no more batches */
#define STEPS_WORTH 1000		/* without a cost so many cost as much as the limit */
#define FREE_SHARE 1000000		/* where a cost says that steps are for nothing */
#define WORTH_MANY 1.02			/* by so much faster, before much work is spent */
#define BALANCE 0.15			/* of the best numbers of steps that were measured */
#define START_RUNS 8			/* of a search from a number of batches, at least */
#define STEPS_A_BATCH 4			/* for each batch of a tree, where an arc has many trees */
#define LACKING 0.42			/* of the levels less one, before any is run */
#define FINER 1.04			/* between numbers of levels that are looked at */
#define SAME_LEVELS 0.1			/* so many more or less of them are not tried */
#define FAR 1.1				/* times what is asked for: no other beginning helps */
#define SAME 1e-9			/* of a price: rounding */
#define NEAR 1.0005			/* times what cannot be beaten: nothing more is tried */

#define N_EVEN 5

/* A run and what it cost. */
struct stagger_try {
	int64_t batches;
	double steps;		/* the most time of a step is the limit over this */
	double fill;		/* > 0: steps are such that the thinnest arc passes so many batches
				 * in each, and in_turn is times as much */
	double least;		/* time of a step over the most */
	double in_turn;		/* as in the pace */
	bool among;
	struct stagger_pace pace;
	double price;		/* time, in shard times */
	int number;		/* of a run that was shifted and the best so far; else 0 */
};

/* What runs of theorem 4's are expected to lack, of k steps: flat + steep / k full ones. */
struct stagger_levels {
	double k;		/* of the last run; 0: none */
	double flat, steep;
	double more;		/* steps than k */
};

/* What is made: all at a time, or sums and then copies. */
struct stagger_plan {
	struct stagger_try parts[2];
	int n;
};

struct stagger_search {
	const struct stagger *s;
	double step_price;	/* in shard times, */
	double min_step;	/* and what none costs less than */
	double below;		/* what takes as long is not made, in shard times */
	int64_t max_moves, work;
	enum stagger_part part;
	double limit;		/* shard times of the part */
	int64_t moves;		/* of one batch a unit */
	double units;		/* batches of that on the fullest arc */
	double fine;		/* steps up to which weights need no more batches */
	double even;		/* steps of these, where the thinnest arc passes a batch in each */
	int64_t batches;	/* 0: to be chosen */
	struct stagger_try best;	/* batches 0: none yet */
	int steps;		/* of the last run, */
	double lacks;		/* and the full ones that its first and last lack */
	struct stagger_levels levels;
	int kept;		/* the last run that has a number: its moves, so that it is not */
	int32_t *moves_at;	/* run again to be made; NULL: none */
	struct err *err;
};

/* ---- the schedule ---- */

static int add_routes(const struct stagger *s, struct coll_sched *out, struct err *err)
{
	const struct coll_forest *f = s->f;
	bool *done = x_new((size_t)s->m + 1, sizeof(*done));
	int rc = 0;

	for (size_t i = 0, next; i < f->routes.n && rc == 0; i = next) {
		int arc = f->routes.v[i].arc;
		int orbit = s->logical_action ? topo_action_orbit(s->logical_action, arc) : arc;

		for (next = i; next < f->routes.n && f->routes.v[next].arc == arc && rc == 0;
		     next++) {
			const struct coll_forest_route *r = &f->routes.v[next];
			struct coll_arc_route route = {
				arc, r->weight, f->hops.v + r->first, r->n,
			};

			rc = done[orbit] ? 0 : coll_add_route(out, &route, err);
		}
		done[orbit] = true;
	}
	free(done);
	return rc;
}

/* An empty schedule with what the forest says of its digraphs. */
static int new_schedule(const struct stagger *s, int chunks, struct coll_sched **out,
			struct err *err)
{
	const struct coll_forest *f = s->f;
	int root = coll_has_root(s->opt->kind) ? f->trees.v[0].root : 0, rc;
	struct topo *logical = NULL, *physical = NULL;
	struct topo_group *group = NULL;

	if ((rc = topo_copy(f->logical, &logical, err)) ||
	    (rc = coll_new(s->opt->kind, logical, chunks, 0, root, out, err))) {
		return rc;
	}
	if (f->group && ((rc = topo_group_copy(f->group, &group, err)) ||
			 (rc = coll_set_group(*out, group, err)))) {
		return rc;
	}
	if (f->routes.n == 0) {
		return 0;
	}
	(void)((rc = topo_copy(s->physical, &physical, err)) ||
	       (rc = coll_set_physical(*out, physical, COLL_ROUTING_EXPLICIT, 0, err)) ||
	       (rc = add_routes(s, *out, err)));
	return rc;
}

/* ---- runs ---- */

static bool runs_inwards(enum coll_kind kind)
{
	return kind == COLL_REDUCE_SCATTER || kind == COLL_REDUCE;
}

/* What comes together at a root is put into steps from the last to the first: then arcs are busy
 * from the first of these on. */
static struct stagger_pace pace_of(const struct stagger_search *c, const struct stagger_cut *cut,
				   const struct stagger_try *one)
{
	double most = c->limit * cut->chunks / one->steps;

	return (struct stagger_pace){
		.part = c->part, .most = most, .least = most * one->least,
		.in_turn = one->in_turn, .among = one->among,
		.backwards = runs_inwards(c->s->opt->kind) || c->part == STAGGER_IN,
	};
}

/* A run of even steps is shifted where that can be, and its moves are known. */
static bool is_shifted(const struct stagger *s, const struct stagger_try *one)
{
	return one->least == 1 && stagger_may_shift(s);
}

/* at: as in stagger_run; not NULL where it is shifted. */
static void run(const struct stagger *s, const struct stagger_cut *cut, bool shift,
		struct stagger_pace *pace, int32_t *at)
{
	stagger_run(s, cut, pace, at);
	if (shift) {
		stagger_shift(s, cut, pace, at);
	}
}

/* Steps in each of which the thinnest arc passes one batch. */
static double even_steps(const struct stagger_search *c, const struct stagger_cut *cut)
{
	double size = 1, thinnest = HUGE_VAL;

	for (size_t i = 0; i < cut->batches.n; i++) {
		size = cut->batches.v[i].size > size ? cut->batches.v[i].size : size;
	}
	for (int i = 0; i < c->s->loads.n; i++) {
		thinnest = c->s->loads.cap[i] < thinnest ? c->s->loads.cap[i] : thinnest;
	}
	return c->limit * cut->chunks * thinnest / size;
}

/* Keeps the moves of the best: takes them over. */
static void keep_moves(struct stagger_search *c, int32_t *at)
{
	free(c->moves_at);
	c->moves_at = at;
	c->best.number = ++c->kept;
}

/* Runs one, and keeps it when it is better. */
static int try_one(struct stagger_search *c, struct stagger_try one)
{
	struct stagger_cut cut = { 0 };
	bool shift = is_shifted(c->s, &one);
	int32_t *at = NULL;
	int rc = stagger_cut_init(c->s, one.batches, c->max_moves, &cut, c->err);

	if (rc == 0 && one.fill > 0) {
		one.steps = even_steps(c, &cut) / one.fill;
		one.in_turn *= one.steps;
		one.fill = 0;
	}
	if (rc == 0) {
		one.number = 0;
		one.pace = pace_of(c, &cut, &one);
		at = shift ? stagger_moves_new(c->s, &cut) : NULL;
		run(c->s, &cut, shift, &one.pace, at);
		one.price = one.pace.time / cut.chunks + one.pace.steps * c->step_price;
		c->steps = one.pace.steps;
		c->lacks = (one.pace.time / cut.chunks / c->limit - 1) * one.pace.steps;
		c->work -= c->part == STAGGER_ALL ? cut.moves : cut.moves / 2;
	}
	stagger_cut_fini(&cut);
	if (rc == 0 && (c->best.batches == 0 || one.price < c->best.price)) {
		c->best = one;
		if (at) {
			keep_moves(c, at);
			return 0;
		}
	}
	free(at);
	return rc;
}

/* ---- the search ---- */

/* No schedule of a part is below this: its fullest resource is never idle, or its deepest batch. */
static double min_price(const struct stagger_search *c, enum stagger_part part)
{
	return c->s->limit[part] + c->s->min_steps[part] * c->min_step;
}

/* Whether more runs are worth their work. */
static bool goes_on(const struct stagger_search *c)
{
	return c->work > 0 && c->best.price > min_price(c, c->part) * NEAR;
}

/* So many batches that the fullest arc passes several in each of so many steps. */
static int64_t enough_batches(const struct stagger_search *c, double steps)
{
	int64_t n = 1;

	if (c->batches > 0) {
		return c->batches;
	}
	while (c->units * (double)n < MIN_FILL * steps && 2 * n * c->moves <= WORK) {
		n *= 2;
	}
	return n;
}

/* Other numbers of steps, each `factor` times the one before, while that gains. */
static int search_steps(struct stagger_search *c, double factor)
{
	struct stagger_try at = c->best;
	double before;
	int idle = 0, rc = 0;

	while (rc == 0 && idle < 2 && goes_on(c)) {
		at.steps *= factor;
		if (at.steps < 1 || at.steps > COLL_MAX_STEPS / 2) {
			break;
		}
		at.batches = enough_batches(c, at.steps);
		before = c->best.price;
		rc = try_one(c, at);
		idle = c->best.price < before ? 0 : idle + 1;
	}
	return rc;
}

/* What is changed of the best: factors, and values where they are not KEEP. */
#define KEEP (-1.0)
struct stagger_change {
	double batches, steps, turns;	/* factors */
	double least, in_turn;
};

static const struct stagger_change changes[] = {
	{ 1, 1, 1, KEEP, 1.5 }, { 1, 1, 1, KEEP, 3 }, { 1, 1, 1, 0, KEEP }, { 1, 1, 1, KEEP, 0.5 },
	{ 1, 0.9, 1, KEEP, KEEP }, { 1, 1.1, 1, KEEP, KEEP }, { 1, 1, 0.5, KEEP, KEEP },
	{ 1, 1, 2, KEEP, KEEP }, { 1, 1, 1, 0.125, KEEP }, { 1, 1, 1, 0.5, KEEP },
	{ 0.5, 1, 1, KEEP, KEEP }, { 1, 0.8, 1, KEEP, KEEP }, { 1, 1.25, 1, KEEP, KEEP },
	{ 1, 1, 1, 0.25, KEEP }, { 1, 1, 1, 1, KEEP }, { 1, 1, 1, KEEP, 6 },
	{ 2, 1, 1, KEEP, KEEP }, { 2, 1.05, 1, 0, KEEP }, { 2, 1.05, 1, 0.2, KEEP },
	{ 2, 1.05, 1, 0.4, KEEP },
};

/* Whether there is anything to try: a change that changes nothing, or what the options say, is
 * none. */
static bool change(const struct stagger_search *c, const struct stagger_change *how,
		   struct stagger_try *at)
{
	*at = c->best;
	at->batches = (int64_t)((double)at->batches * how->batches);
	at->steps *= how->steps;
	at->least = how->least >= 0 ? how->least : at->least;
	at->in_turn = how->in_turn >= 0 ? how->in_turn : at->in_turn * how->turns;
	if (at->batches < 1 || at->batches * c->moves > c->work ||
	    (c->batches > 0 && how->batches != 1)) {
		return false;
	}
	return how->batches != 1 || how->steps != 1 || at->least != c->best.least ||
	       at->in_turn != c->best.in_turn;
}

static int search_around(struct stagger_search *c)
{
	struct stagger_try at;
	double before;
	int rc = 0;

	do {
		before = c->best.price;
		for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
			if (rc == 0 && goes_on(c) && change(c, &changes[i], &at)) {
				rc = try_one(c, at);
			}
		}
	} while (rc == 0 && c->best.price < before);
	return rc;
}

/* Steps alike, in each of which the thinnest arc passes a batch, or as many; so many steps that
 * what the first and last lack, about half of the deepest batch's, is worth as much as their fixed
 * time. Where that is much work nothing else is tried. */
static int try_even(struct stagger_search *c)
{
	static const struct { double steps, in_turn; } tries[N_EVEN] = {
		{ 1, 0.5 }, { 1, 0.75 }, { 1, 0.3 }, { 0.7, 0.5 }, { 1.4, 0.5 },
	};
	double best = sqrt(0.5 * c->s->deepest[c->part] * c->limit / c->step_price);
	double most = 2.0 * (double)WORK / (double)c->moves;
	int rc = 0;

	if (c->s->opt->kind != COLL_ALLREDUCE || !stagger_may_shift(c->s)) {
		return 0;
	}
	for (size_t i = 0; i < N_EVEN && rc == 0 && (i == 0 || goes_on(c)); i++) {
		struct stagger_try at = { .least = 1, .in_turn = tries[i].in_turn,
					  .among = true };
		double k = best / c->even * tries[i].steps;

		k = c->batches > 0 ? (double)c->batches : k < most ? k : most;
		at.batches = k > 1 ? (int64_t)(k + 0.5) : 1;
		at.fill = k < 1 ? floor(1 / k + 0.5) : 1;
		rc = try_one(c, at);
	}
	return rc;
}

/* Batches of a tree for each of many steps: a quarter as many where arcs pass many trees' in a
 * step, which costs nothing. */
static double need(const struct stagger_search *c)
{
	return fmin(1, fmax(1.0 / STEPS_A_BATCH, FINE_FILL / c->units));
}

/* The most steps for so many moves. */
static double affordable(const struct stagger_search *c, int64_t moves)
{
	return fmax(1, fmax(c->fine, floor((double)(moves / c->moves) / need(c))));
}

/* From the last run, and the one before. */
static void learn(struct stagger_search *c, double k)
{
	struct stagger_levels *l = &c->levels;
	double before = l->flat + (l->k > 0 ? l->steep / l->k : 0);

	l->flat = fmin(l->flat, c->lacks);
	if (l->k > 0 && l->k != k) {
		l->steep = fmax(0, (before - c->lacks) / (1 / l->k - 1 / k));
		l->flat = c->lacks - l->steep / k;
	} else {
		l->steep = (c->lacks - l->flat) * k;
	}
	l->k = k;
	l->more = c->steps - k;
}

/* Theorem 4's: each batch one level down a step, a step for each of k batches. No batch is later
 * than in that, as what should have passed by then goes first. */
static int try_level(struct stagger_search *c, double k)
{
	double batches = c->batches > 0 ? (double)c->batches : k <= c->fine ? 1 : ceil(k * need(c));
	int rc = try_one(c, (struct stagger_try){ .batches = (int64_t)batches, .steps = k,
						  .least = 1, .in_turn = k });

	learn(c, k);
	return rc;
}

static double expected(const struct stagger_search *c, double k)
{
	const struct stagger_levels *l = &c->levels;

	return (k + l->more) * c->step_price + c->limit * (1 + (l->flat + l->steep / k) / k);
}

static double best_level(const struct stagger_search *c, double most)
{
	double best = 1;

	for (double k = 1; k <= most; k = ceil(k * FINER)) {
		best = expected(c, k) < expected(c, best) ? k : best;
	}
	return best;
}

/* As many as seem best; and then by what these lacked. */
static int try_levels(struct stagger_search *c)
{
	bool few = c->s->n_trees < c->s->n;	/* long pipelines, each of few moves */
	double most = affordable(c, few ? 4 * WORK : WORK), k, better, behind;
	int rc;

	if (c->batches > 0) {
		return try_level(c, (double)c->batches);
	}
	behind = c->s->deepest[c->part] - 1;
	c->levels = (struct stagger_levels){ .flat = LACKING * behind, .more = behind };
	k = best_level(c, most);
	rc = try_level(c, k);
	better = best_level(c, most);
	return rc || fabs(better - k) < SAME_LEVELS * k ? rc : try_level(c, better);
}

/* The same in many batches, where what these are expected to take, by what fewer lacked, is worth
 * the work: no run of few is as good. */
static int try_many_levels(struct stagger_search *c)
{
	int64_t given = c->s->opt->max_transfers, room = 4 * WORK;
	double k = best_level(c, affordable(c, given > 0 && given < room ? given : room));
	double price = expected(c, k) * (k > affordable(c, WORK) ? WORTH_MANY : 1);

	return c->batches == 0 && k >= 2 && k != c->levels.k && price < c->best.price
		       ? try_level(c, k) : 0;
}

static void begin_part(struct stagger_search *c, enum stagger_part part)
{
	if (c->part == STAGGER_ALL && part != STAGGER_ALL) {
		c->moves /= 2;
	}
	c->units *= c->s->limit[part] / c->limit;
	c->limit = c->s->limit[part];
	c->part = part;
}

/* The best that is found for a part from one number of steps on, or from theorem 4's, in so many
 * batches (0: chosen). */
static int search(struct stagger_search *c, enum stagger_part part, int64_t batches)
{
	struct stagger_try at = { .least = 0.25, .in_turn = 0.5 };
	struct stagger_try even;
	double steps;
	int rc;

	begin_part(c, part);
	c->batches = batches;
	c->work = WORK;
	c->best = (struct stagger_try){ 0 };
	steps = sqrt(BALANCE * c->limit / c->step_price);
	at.steps = steps > c->s->deepest[part] ? steps : c->s->deepest[part];
	at.batches = enough_batches(c, at.steps);
	if ((rc = try_even(c))) {
		return rc;
	}
	if (c->work <= 0) {
		return (rc = try_levels(c)) ? rc : try_many_levels(c);
	}
	even = c->best;
	c->work = WORK;
	c->best = (struct stagger_try){ 0 };
	(void)((rc = try_one(c, at)) || (rc = search_steps(c, 0.7)) ||
	       (rc = search_steps(c, 1.4)) || (rc = try_levels(c)));
	c->work = c->work > START_WORK ? c->work : START_WORK;
	(void)(rc || (rc = search_around(c)) || (rc = try_many_levels(c)));
	if (rc == 0 && even.batches > 0 && even.price < c->best.price) {
		c->best = even;
		c->work = WORK / 2;
		(void)((rc = search_steps(c, 0.7)) || (rc = search_around(c)));
	}
	return rc;
}

/* The part that was searched, from these numbers of batches, too, where that is little work and
 * what was found not far from what is asked for: a search ends in the best that is near; of sums
 * by themselves that is it when two end in the same. */
static int search_starts(struct stagger_search *c, double below)
{
	static const int starts[] = { 32, 128 };
	bool done = c->best.price > below * FAR || c->s->opt->batches > 0;
	int rc = 0;

	for (size_t i = 0; i < 2 && rc == 0 && !done; i++) {
		struct stagger_try before = c->best;

		c->work = WORK - START_RUNS * starts[i] * c->moves;
		if (goes_on(c)) {
			rc = search(c, c->part, starts[i]);
			done = c->part != STAGGER_ALL &&
			       fabs(c->best.price - before.price) < before.price * SAME;
			c->best = c->best.price < before.price ? c->best : before;
		}
	}
	return rc;
}

/* Copies in as many batches as sums: as these are, which is all where both are alike, or else
 * searched for. */
static int search_copies(struct stagger_search *c, const struct stagger_try *sums, double alike)
{
	int rc;

	begin_part(c, STAGGER_OUT);
	c->best = (struct stagger_try){ 0 };
	rc = try_one(c, *sums);
	return rc || c->best.price <= alike * NEAR ? rc : search(c, STAGGER_OUT, sums->batches);
}

/* Sums, and then copies, where that is below the best of both at the same time. */
static int search_apart(struct stagger_search *c, struct stagger_plan *plan)
{
	double best = fmin(plan->parts[0].price, c->step_price > c->min_step ? HUGE_VAL : c->below);
	double out = min_price(c, STAGGER_OUT);
	double ratio = c->s->limit[STAGGER_OUT] / c->s->limit[STAGGER_IN];
	struct stagger_try sums;
	int rc = 0;

	if (min_price(c, STAGGER_IN) + out >= best ||
	    (rc = search(c, STAGGER_IN, c->s->opt->batches)) ||
	    (rc = search_starts(c, best / (1 + ratio)))) {
		return rc;
	}
	sums = c->best;
	if (sums.price + out >= best || (rc = search_copies(c, &sums, ratio * sums.price))) {
		return rc;
	}
	if (sums.price + c->best.price < best) {
		*plan = (struct stagger_plan){ { sums, c->best }, 2 };
		plan->parts[1].pace.first = sums.pace.steps;
	}
	return 0;
}

/* What a plan takes at least, in shard times. */
static double plan_price(const struct stagger_search *c, const struct stagger_plan *plan)
{
	double price = 0;

	for (int i = 0; i < plan->n; i++) {
		const struct stagger_try *t = &plan->parts[i];

		price += t->price - t->pace.steps * (c->step_price - c->min_step);
	}
	return price;
}

/* An all-reduce has sums and copies at the same time, or one after the other. plan->n is 0 where
 * none is fast enough. */
static int search_all(struct stagger_search *c, struct stagger_plan *plan)
{
	int rc = 0;

	*plan = (struct stagger_plan){ .n = 0 };
	if (min_price(c, STAGGER_ALL) >= c->below ||
	    (rc = search(c, STAGGER_ALL, c->s->opt->batches)) ||
	    (rc = search_starts(c, c->below))) {
		return rc;
	}
	*plan = (struct stagger_plan){ { c->best }, 1 };
	rc = c->s->opt->kind == COLL_ALLREDUCE ? search_apart(c, plan) : 0;
	plan->n = plan_price(c, plan) < c->below ? plan->n : 0;
	return rc;
}

static int64_t latency(const struct topo *t, bool most)
{
	int64_t ns = topo_m(t) > 0 ? topo_arc(t, 0)->latency_ns : 0;

	for (int a = 1; a < topo_m(t); a++) {
		int64_t other = topo_arc(t, a)->latency_ns;

		ns = (most ? other > ns : other < ns) ? other : ns;
	}
	return ns;
}

static int hops(const struct coll_forest *f, bool most)
{
	int n = f->routes.n > 0 ? f->routes.v[0].n : 1;

	for (size_t i = 1; i < f->routes.n; i++) {
		int other = f->routes.v[i].n;

		n = (most ? other > n : other < n) ? other : n;
	}
	return n;
}

/* What a step costs beside its load, in shard times: at least and at most, where it is not known
 * which routes it waits for. */
static void price_steps(struct stagger_search *k)
{
	const struct stagger *s = k->s;
	const struct coll_cost *c = s->opt->cost;
	double limit = s->limit[STAGGER_ALL], fixed, most, shard_ns;

	k->below = HUGE_VAL;
	if (!c || c->size_bytes == 0) {
		k->step_price = limit / (s->opt->steps_worth > 0 ? s->opt->steps_worth
								 : STEPS_WORTH);
		k->min_step = k->step_price;
		return;
	}
	fixed = (double)(c->alpha_ns + c->message_ns);
	most = fixed + (double)(c->hop_ns + latency(s->physical, true)) * hops(s->f, true);
	shard_ns = (double)c->size_bytes / s->ranks * 8e9 / (double)c->link_bps;
	k->step_price = most > 0 ? most / shard_ns : limit / FREE_SHARE;
	k->min_step = (fixed + (double)(c->hop_ns + latency(s->physical, false)) *
					 hops(s->f, false)) / shard_ns;
	k->below = s->opt->below_ns > 0 ? s->opt->below_ns / shard_ns : HUGE_VAL;
}

static int search_init(struct stagger_search *c)
{
	struct stagger_cut cut = { 0 };
	int rc;

	c->max_moves = c->s->opt->cost ? MAX_TIMED_MOVES : MAX_MOVES;
	rc = stagger_cut_init(c->s, 1, c->max_moves, &cut, c->err);
	price_steps(c);
	c->limit = c->s->limit[STAGGER_ALL];
	c->moves = cut.moves;
	c->units = c->limit * cut.chunks;
	c->fine = fmin(c->units / FINE_FILL, (double)cut.batches.n / (double)cut.pieces.n);
	c->even = even_steps(c, &cut);
	stagger_cut_fini(&cut);
	return rc;
}

/* ---- all of it ---- */

static void fill_info(const struct stagger_search *c, const struct stagger_plan *plan,
		      struct coll_stagger_info *info)
{
	const struct coll_forest *f = c->s->f;

	info->trees = c->s->n_trees * (f->group ? topo_group_order(f->group) : 1);
	for (int i = 0; i < c->s->n_trees; i++) {
		int depth = f->trees.v[i].depth;

		info->deepest = depth > info->deepest ? depth : info->deepest;
	}
	info->batches = (int)plan->parts[0].batches;
	for (int i = 0; i < plan->n; i++) {
		info->steps += plan->parts[i].pace.steps;
	}
}

/* The moves of a part: to be freed. */
static int32_t *moves_of(struct stagger_search *c, const struct stagger_cut *cut,
			 const struct stagger_try *part)
{
	struct stagger_pace pace = part->pace;
	int32_t *at = c->moves_at;

	if (at && part->number == c->kept) {
		c->moves_at = NULL;
		return at;
	}
	at = stagger_moves_new(c->s, cut);
	run(c->s, cut, is_shifted(c->s, part), &pace, at);
	return at;
}

static int make(struct stagger_search *c, const struct stagger_plan *plan,
		struct coll_sched **out, struct err *err)
{
	struct stagger_cut cut = { 0 };
	struct coll_sched *made = NULL;
	int rc;

	if ((rc = stagger_cut_init(c->s, plan->parts[0].batches, c->max_moves, &cut, err)) ||
	    (rc = new_schedule(c->s, cut.chunks, &made, err))) {
		goto out;
	}
	for (int i = 0; i < plan->n && rc == 0; i++) {
		const struct stagger_try *part = &plan->parts[i];
		int32_t *at = moves_of(c, &cut, part);

		rc = stagger_add(c->s, &cut, &part->pace, at, made, err);
		free(at);
	}
	(void)(rc || (rc = coll_finish(made, err)) || (rc = coll_prove(made, NULL, err)));
out:
	stagger_cut_fini(&cut);
	if (rc) {
		coll_free(made);
		return rc;
	}
	*out = made;
	return 0;
}

int coll_forest_schedule(const struct coll_forest *f, const struct topo *physical,
			 const struct coll_stagger_options *opt, struct coll_sched **out,
			 struct coll_stagger_info *info, struct err *err)
{
	struct stagger s = {
		.f = f, .opt = opt,
		.physical = f->routes.n > 0 && physical ? physical : f->logical,
	};
	struct stagger_search c = { .s = &s, .err = err };
	struct stagger_plan plan;
	int rc;

	*out = NULL;
	*info = (struct coll_stagger_info){ 0 };
	(void)((rc = stagger_init(&s, err)) || (rc = search_init(&c)) ||
	       (rc = search_all(&c, &plan)));
	if (rc == 0 && plan.n > 0) {
		rc = make(&c, &plan, out, err);
		fill_info(&c, &plan, info);
	}
	free(c.moves_at);
	stagger_fini(&s);
	return rc;
}
