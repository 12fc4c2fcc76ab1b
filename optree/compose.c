/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Composed all-gathers: levels that halve, third, ... the distance between
 * the nodes that hold an item, far ones first. FORMULAS' direct and relay
 * levels are the two ends of what a level can be; in between a level goes
 * `jump` nodes on in a round. Gaps need not be multiples of the stride, so
 * any number of nodes will do, prime or not: what is left in the middle of a
 * gap is a smaller gap for the next level.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "optree/spread/spread.h"

/* ---- from levels to moves ---- */

struct weave {
	int n;
	int32_t *at, *next;	/* holders by offset, ascending */
	int n_at, n_next;
	struct compose_records rec;
	int round;		/* first of the level */
	int units, cw;		/* of one way */
	bool one_direction, mirrored;
};

static int mod(int v, int n)
{
	v %= n;
	return v < 0 ? v + n : v;
}

/* `count` new holders from one end of a gap; the last takes half an item
 * when `half` is 1 (first half) or 2. */
static void from_end(struct weave *w, const struct compose_level *l, int end,
		     int dir, int count, int half)
{
	int sign = dir == RWA_CW ? 1 : -1;

	for (int p = 1; p <= count; p++) {
		int round = (p - 1) / l->jump, from = round * l->jump;
		bool cut = half && p == count;
		struct compose_record r = {
			.round = w->round + round, .dir = (uint8_t)dir,
			.len = (p - from) * l->stride,
			.hop = { .at = mod(end + sign * from * l->stride,
					   w->n),
				 .dest = -1,
				 .first = cut && half == 2,
				 .last = !(cut && half == 1) },
		};

		vec_push(&w->rec, r);
	}
}

/* Gap number k, between the holders at x and y. */
static void fill_gap(struct weave *w, const struct compose_level *l, int k, int x, int y)
{
	int gap = y - x, lacks = (gap + l->stride - 1) / l->stride - 1;
	int left = lacks / 2, right = lacks / 2, half = 0;

	w->next[w->n_next++] = x;
	if (lacks % 2) {
		/* The one in the middle: half of it from each end, when it is
		 * as far from both. */
		half = gap % l->stride == 0;
		left += half || k % 2 == 0;
		right += half || k % 2;
	}
	for (int i = 1; i <= left; i++) {
		w->next[w->n_next++] = x + i * l->stride;
	}
	for (int i = half ? right - 1 : right; i >= 1; i--) {
		w->next[w->n_next++] = y - i * l->stride;
	}
	from_end(w, l, x, RWA_CW, left, half ? 1 : 0);
	from_end(w, l, y, RWA_CCW, right, half ? 2 : 0);
}

/* One way: what lies between the holders at x and y comes from x, and the
 * other part of the item in the mirror. */
static void fill_one_direction(struct weave *w, const struct compose_level *l, int x, int y)
{
	int lacks = (y - x + l->stride - 1) / l->stride - 1;
	bool both = w->cw == w->units;

	w->next[w->n_next++] = x;
	for (int p = 1; p <= lacks; p++) {
		int round = (p - 1) / l->jump, from = round * l->jump;
		int at = x + from * l->stride;
		struct compose_record r = {
			.round = w->round + round, .dir = RWA_CW,
			.len = (p - from) * l->stride,
			.hop = { .at = at, .dest = -1, .last = w->cw - 1 },
		};

		w->next[w->n_next++] = x + p * l->stride;
		if (w->cw) {
			vec_push(&w->rec, r);
		}
		r.dir = RWA_CCW;
		r.hop.at = mod(-at, w->n);
		r.hop.first = both ? 0 : w->cw;
		r.hop.last = w->units - 1;
		if (w->mirrored) {
			vec_push(&w->rec, r);
		}
	}
}

static void weave_level(struct weave *w, const struct compose_level *l)
{
	int32_t *swap = w->at;
	int last = w->round - 1;

	w->n_next = 0;
	for (int k = 0; k < w->n_at; k++) {
		int y = k + 1 < w->n_at ? w->at[k + 1] : w->n;

		if (w->one_direction) {
			fill_one_direction(w, l, w->at[k], y);
		} else {
			fill_gap(w, l, k, w->at[k], y);
		}
	}
	for (size_t i = w->rec.n; i-- > 0 && w->rec.v[i].round >= w->round;) {
		last = w->rec.v[i].round > last ? w->rec.v[i].round : last;
	}
	w->round = last + 1;
	w->at = w->next;
	w->n_at = w->n_next;
	w->next = swap;
}

static void weave_init(struct weave *w, const struct optree_params *p,
		       const struct compose_shape *shape)
{
	size_t bytes = (size_t)p->n * sizeof(int32_t);

	*w = (struct weave){
		.n = p->n, .n_at = 1, .at = x_alloc(bytes, 1),
		.next = x_alloc(bytes, 1), .one_direction = shape->one_direction,
		.units = shape->units, .cw = shape->cw,
		.mirrored = p->line || shape->cw < shape->units,
	};
	w->at[0] = 0;
}

/* What may be lost in a round rather than retune, in items' times. */
static double worth_keeping(const struct optree_params *p)
{
	return (double)(p->alpha_ns - p->convert_ns) *
	       (double)p->channel_bps / ((double)p->shard_bytes * 8e9);
}

static void set_rooms(const struct compose_shape *shape, struct optree_sym *s)
{
	for (size_t i = 0; i < s->rounds.n; i++) {
		struct sym_round *r = &s->rounds.v[i];
		const struct compose_level *l = &shape->level[r->level];

		for (int dir = 0; dir < 2; dir++) {
			r->from[dir] = l->from[dir];
			r->room[dir] = l->room[dir];
		}
	}
}

/* The all-gather of these levels, with its light. *out is initialised.
 * O(n log n) a level. */
static int compose_build(const struct optree_params *p, const struct compose_shape *shape,
			 struct optree_sym *out, struct err *err)
{
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	struct weave w;
	int ends[COMPOSE_MAX_LEVELS], rc;

	weave_init(&w, p, shape);
	optree_sym_init(out, COLL_ALLGATHER, &ring);
	out->units = shape->units;
	out->keep = part_keeps_light(p) ? worth_keeping(p) : 0;
	for (int j = 0; j < shape->levels; j++) {
		weave_level(&w, &shape->level[j]);
		ends[j] = w.round;
	}
	compose_gather(&w.rec, ends, out);
	optree_sym_place(out, p);
	set_rooms(shape, out);
	rc = optree_sym_light(out, compose_max_chunks(p), err);
	free(w.at);
	free(w.next);
	vec_fini(&w.rec);
	if (rc) {
		optree_sym_fini(out);
	}
	return rc;
}

/* What the links of all slots add to the times of their chunks. */
static __int128 time_of_links(const struct optree_params *p, const struct optree_sym *s)
{
	struct sym_clock clock = optree_sym_clock(p, s);
	__int128 sum = 0;

	for (size_t i = 0; i < s->rounds.n; i++) {
		const struct sym_round *r = &s->rounds.v[i];
		size_t at[2] = { 0, 0 };

		for (int slot = 0; slot < r->slots; slot++) {
			sum += optree_sym_slot_time(s, r, slot, at, &clock);
		}
		sum -= r->chunk_times * clock.chunk;
	}
	return sum;
}

int64_t compose_time_ns(const struct optree_params *p, const struct optree_sym *s)
{
	unsigned __int128 links = 0;
	unsigned __int128 bits = (unsigned __int128)p->shard_bytes * 8 *
				 (unsigned __int128)s->chunk_times;
	unsigned __int128 rate = (unsigned __int128)p->channel_bps *
				 (unsigned)s->chunks;
	unsigned __int128 t;

	if (p->span_delay_ns) {
		links = (unsigned __int128)time_of_links(p, s);
	}
	/* Whole seconds first: the product with 10^9 could be too large. */
	t = bits / rate * 1000000000 + (bits % rate * 1000000000 + links + rate - 1) / rate +
	    (unsigned __int128)s->steps * (unsigned __int128)p->alpha_ns;
	return t > INT64_MAX ? -1 : (int64_t)t;
}

int64_t compose_times(const struct optree_params *p, const struct optree_sym *s)
{
	int64_t ns = compose_time_ns(p, s);

	if (!p->overlap || ns < 0) {
		return ns;
	}
	return p->both_halves ? (overlap_time_ns(p, s, COLL_ALLREDUCE, NULL) + 1) / 2
			      : overlap_time_ns(p, s, COLL_ALLGATHER, NULL);
}

/* ---- the search ---- */

#define PENALTIES 40		/* searches for fewer lights */
#define KEEP 12			/* partial sequences kept for each distance */

struct partial {
	double ns;
	int32_t gap, rank;	/* where it comes from: distance, place */
	int32_t jump;
};

struct level_search {
	const struct optree_params *p;
	int reach;
	double item_ns;
	double retune_ns;	/* once a level with overlap, else 0: in */
	double step_ns;		/* every step */
	double *delay_ns;	/* by ranks that light passes; NULL: none */
	int64_t w;		/* of the narrower direction in use */
	double share;		/* most of an item's part in a direction,
				 * times w, by that direction's width */
	bool one_direction;
	bool shared;		/* lengths share channels, and these are full */
	struct partial *best;	/* KEEP for each distance 1..n */
	int *n_best;
};

static int classes_of(const struct level_search *s, int len)
{
	return s->p->line || s->shared ? len : optree_sym_classes(s->p->n, len);
}

/* Time of one round in which `holders` nodes send, at most `len` ranks far. */
static double round_ns(const struct level_search *s, int64_t load, double holders, int len)
{
	int64_t slots = (load + s->w - 1) / s->w;
	int64_t per = (load + slots - 1) / slots;
	double retunes = slots > 1 ? (double)slots * s->retune_ns : 0;
	double delay = s->delay_ns ? s->delay_ns[len] : 0;

	if (s->shared && slots == 1) {
		return s->step_ns + delay +
		       s->share * holders * (double)load / (double)s->w * s->item_ns;
	}
	return retunes + (double)slots * (s->step_ns + delay +
	       s->share * holders / (double)(s->w / per) * s->item_ns);
}

static void remember(struct level_search *s, int to, struct partial x)
{
	struct partial *list = s->best + (size_t)to * KEEP;
	int *n = &s->n_best[to], k;

	if (*n == KEEP && list[KEEP - 1].ns <= x.ns) {
		return;
	}
	k = *n < KEEP ? (*n)++ : KEEP - 1;
	for (; k > 0 && list[k - 1].ns > x.ns; k--) {
		list[k] = list[k - 1];
	}
	list[k] = x;
}

/* All jumps from holders `gap` apart to `stride` apart. */
static void try_stride(struct level_search *s, int gap, int stride)
{
	int n = s->p->n, lacks = (gap + stride - 1) / stride - 1;
	int side = s->one_direction ? lacks : (lacks + 1) / 2;
	double holders = (double)((n + gap - 1) / gap);
	const struct partial *from = s->best + (size_t)gap * KEEP;
	int64_t load = 0;
	double ends = !s->one_direction && lacks % 2 && gap % stride == 0 ? 0.5 : 1;

	for (int jump = 1; jump <= side; jump++) {
		int whole = (side - 1) / jump, rest = side - whole * jump;
		int64_t last = 0;
		double t;

		if (jump * stride > s->reach) {
			return;
		}
		load += classes_of(s, jump * stride);
		for (int i = 1; i <= rest; i++) {
			last += classes_of(s, i * stride);
		}
		t = s->retune_ns + whole * round_ns(s, load, holders, jump * stride) +
		    round_ns(s, last, rest == 1 ? holders * ends : holders, rest * stride);
		for (int k = 0; k < s->n_best[gap]; k++) {
			remember(s, stride, (struct partial){
				from[k].ns + t, gap, k, jump });
		}
		if (load > 4 * s->w && jump < side) {
			/* Many steps a round: only all at once is different. */
			while (jump + 1 < side) {
				jump++;
				load += classes_of(s, jump * stride);
			}
		}
	}
}

static void search_all(struct level_search *s)
{
	int n = s->p->n;

	s->best[(size_t)n * KEEP] = (struct partial){ 0 };
	s->n_best[n] = 1;
	for (int gap = n; gap > 1; gap--) {
		int before = gap;

		for (int m = 2; m <= gap && s->n_best[gap]; m++) {
			int stride = (gap + m - 1) / m;

			if (stride < before) {
				try_stride(s, gap, stride);
				before = stride;
			}
		}
	}
}

/* The levels that lead to sequence k of those that end at distance 1. */
static void trace(const struct level_search *s, int k, struct compose_shape *shape)
{
	struct compose_level back[COMPOSE_MAX_LEVELS];
	int stride = 1, levels = 0;

	shape->estimate_ns = s->best[(size_t)KEEP + (size_t)k].ns;
	while (stride < s->p->n) {
		const struct partial *x = &s->best[(size_t)stride * KEEP + (size_t)k];

		back[levels++] = (struct compose_level){
			.gap = x->gap, .stride = stride, .jump = x->jump };
		stride = x->gap;
		k = x->rank;
	}
	shape->one_direction = s->one_direction;
	shape->levels = levels;
	for (int j = 0; j < levels; j++) {
		shape->level[j] = back[levels - 1 - j];
	}
}

/* How one direction's width and part of the item compare: *w is the least
 * width in use, *share the largest part over its width, times *w. */
static void weigh(const struct optree_params *p, const double part[2], int64_t *w, double *share)
{
	double max = 0;

	*w = INT64_MAX;
	for (int dir = 0; dir < 2; dir++) {
		int64_t width = tree_width(p, dir);

		if (part[dir] > 0) {
			*w = width < *w ? width : *w;
			max = part[dir] / (double)width > max
				       ? part[dir] / (double)width : max;
		}
	}
	*share = max * (double)*w;
}

static double *delays(const struct optree_params *p, int reach)
{
	double *ns = x_new((size_t)p->n + 1, sizeof(*ns));

	for (int len = 1; len <= reach; len++) {
		ns[len] = (double)tree_span(p, len) * (double)p->span_delay_ns;
	}
	return ns;
}

static void search_init(struct level_search *s, const struct optree_params *p, int reach,
			const struct compose_shape *x)
{
	size_t n = (size_t)p->n + 1;
	double cw = x->one_direction ? (double)x->cw / x->units : 1;
	double part[2] = { cw, x->one_direction && !p->line ? 1 - cw : 1 };
	int64_t retune = part_keeps_light(p) ? p->alpha_ns - p->convert_ns : 0;

	*s = (struct level_search){
		.p = p, .reach = reach, .one_direction = x->one_direction,
		.item_ns = (double)p->shard_bytes * 8e9 /
			   (double)p->channel_bps,
		.retune_ns = (double)retune,
		.step_ns = (double)(p->alpha_ns - retune),
		.best = x_alloc(n * KEEP, sizeof(*s->best)),
		.n_best = x_new(n, sizeof(*s->n_best)),
		.delay_ns = p->span_delay_ns ? delays(p, reach) : NULL,
	};
	weigh(p, part, &s->w, &s->share);
}

/* The fastest so far. */
struct winner {
	const struct optree_params *p;
	double penalty_ns;	/* of a step in the search, for fewer lights */
	int64_t ns;		/* -1: none yet */
	struct compose_shape *shape;
	struct optree_sym *out;
};

bool compose_may_light(const struct optree_params *p, const struct optree_sym *s)
{
	return !p->max_lights || s->lightpaths <= p->max_lights;
}

/* Keeps it when it is faster than what is there; owns *s. */
static int take_faster(void *data, const struct compose_shape *x, struct optree_sym *s,
		       struct err *err)
{
	struct winner *win = data;
	int64_t ns = compose_times(win->p, s);

	(void)err;
	if (ns >= 0 && compose_may_light(win->p, s) && (win->ns < 0 || ns < win->ns)) {
		if (win->ns >= 0) {
			optree_sym_fini(win->out);
		}
		win->ns = ns;
		*win->shape = *x;
		*win->out = *s;
	} else {
		optree_sym_fini(s);
	}
	return 0;
}

static int try_shape(struct winner *win, const struct compose_shape *x, struct err *err)
{
	struct optree_sym s;
	int rc = compose_build(win->p, x, &s, err);

	if (rc) {
		return rc == WEFT_ELIMIT ? 0 : rc;
	}
	return take_faster(win, x, &s, err);
}

/* Data time of each level on one colour, about. */
static void weigh_levels(const struct optree_params *p,
			 const struct compose_shape *x, double *weight)
{
	for (int j = 0; j < x->levels; j++) {
		const struct compose_level *l = &x->level[j];
		double lacks = (l->gap - 1) / l->stride;
		double side = x->one_direction ? lacks : lacks / 2;

		/* A round of jumps loads stride * (1 + ... + jump). */
		weight[j] = (double)p->n / l->gap * l->stride * side *
			    (l->jump + 1) / 2;
	}
}

/* Level j uses bank j mod `banks`; banks are as wide as makes the sum of
 * their levels' times least, which is by the roots of the loads. */
static void divide(const struct optree_params *p, int banks, struct compose_shape *x)
{
	double weight[COMPOSE_MAX_LEVELS], part[COMPOSE_MAX_LEVELS] = { 0 };
	double sum = 0, before = 0;

	weigh_levels(p, x, weight);
	for (int j = 0; j < x->levels; j++) {
		part[j % banks] += weight[j];
	}
	for (int k = 0; k < banks; k++) {
		part[k] = sqrt(part[k]);
		sum += part[k];
	}
	for (int k = 0; k < banks; k++) {
		for (int dir = 0; dir < 2; dir++) {
			double w = (double)tree_width(p, dir);
			int from = (int)(before / sum * w);
			int to = (int)((before + part[k]) / sum * w + 1e-9);

			for (int j = k; j < x->levels; j += banks) {
				x->level[j].from[dir] = from;
				x->level[j].room[dir] = to - from;
			}
		}
		before += part[k];
	}
}

/* Levels that share all channels; with overlap also levels that take turns
 * on banks, of which one is retuned while another carries data. */
static int try_banks(struct winner *win, const struct compose_shape *x, struct err *err)
{
	int rc = try_shape(win, x, err);

	for (int banks = 2; part_keeps_light(win->p) && banks <= x->levels && !rc; banks++) {
		struct compose_shape y = *x;

		divide(win->p, banks, &y);
		rc = try_shape(win, &y, err);
		rc = rc == WEFT_EINFEASIBLE ? 0 : rc;
	}
	return rc;
}

/* shared: as though channels were full; the plans' times are exact. */
static int search_shape(struct winner *win, const struct compose_shape *like,
			int reach, bool shared, struct err *err)
{
	struct level_search s = { 0 };
	int rc = 0;

	search_init(&s, win->p, reach, like);
	s.shared = shared;
	s.step_ns += win->penalty_ns;
	search_all(&s);
	for (int k = 0; !rc && k < s.n_best[1]; k++) {
		struct compose_shape x = *like;

		trace(&s, k, &x);
		rc = try_banks(win, &x, err);
	}
	free(s.best);
	free(s.n_best);
	free(s.delay_ns);
	return rc;
}

/* The split of an item whose parts take about as long both ways. */
static void split_item(const struct optree_params *p, struct compose_shape *x)
{
	double cw = (double)tree_width(p, RWA_CW);
	double ccw = (double)tree_width(p, RWA_CCW), best = INFINITY;
	int max = p->shard_bytes < SYM_MAX_UNITS ? (int)p->shard_bytes
						  : SYM_MAX_UNITS;

	x->one_direction = true;
	for (int units = 1; units <= max; units++) {
		for (int k = 0; k <= units; k++) {
			double a = k ? k / cw : 0;
			double b = k < units ? (units - k) / ccw : 0;
			double t = (a > b ? a : b) / units;

			if (t < best - 1e-12) {
				best = t;
				x->units = units;
				x->cw = k;
			}
		}
	}
}

/* From both ends of gaps, or one way, as the directions are. */
static int search_directions(struct winner *win, int reach, struct err *err)
{
	struct compose_shape both = { .units = 2 };
	struct compose_shape one = { .one_direction = true, .units = 1, .cw = 1 };
	const struct optree_params *p = win->p;
	int64_t cw = tree_width(p, RWA_CW), ccw = tree_width(p, RWA_CCW);
	int rc = 0;

	if (!p->line && cw && ccw) {
		rc = search_shape(win, &both, reach, false, err);
	}
	if (!rc && !p->line && cw && ccw && !part_keeps_light(p)) {
		rc = search_shape(win, &both, reach, true, err);
	}
	if (!rc && (p->line || cw != ccw)) {
		if (!p->line) {
			split_item(p, &one);
		}
		rc = search_shape(win, &one, reach, false, err);
	}
	return rc;
}

static int best_levels(const struct optree_params *p, int reach, struct compose_shape *shape,
		       struct optree_sym *out, struct err *err)
{
	struct winner win = { .p = p, .ns = -1, .shape = shape, .out = out };
	int rc = search_directions(&win, reach, err);

	/* Every step lights all channels, more or less: more expensive steps, fewer
	 * lights. */
	for (int k = 0; k < PENALTIES && !rc && win.ns < 0 && p->max_lights; k++) {
		win.penalty_ns = win.penalty_ns > 0 ? 2 * win.penalty_ns
						    : 1000;
		rc = search_directions(&win, reach, err);
	}
	if (!rc && win.ns >= 0 && !p->line && tree_width(p, RWA_CW) == tree_width(p, RWA_CCW)) {
		rc = spread_trees(p, reach, &win.ns, out, take_faster, &win, err);
	}
	if (!rc && win.ns < 0) {
		rc = err_set(err, WEFT_ELIMIT, "no sequence of levels lasts "
			     "less than 292 years, %d steps and the lights "
			     "allowed", COLL_MAX_STEPS);
	} else if (rc && win.ns >= 0) {
		optree_sym_fini(out);
	}
	return rc;
}

int compose_overlapped(const struct optree_params *p, int reach, compose_fn *best,
		       struct compose_shape *shape, struct optree_sym *out, struct err *err)
{
	struct optree_params shared = *p;
	struct compose_shape other;
	struct optree_sym s;
	int rc = best(p, reach, shape, out, err);

	shared.shared = true;
	if (rc || !p->overlap || best(&shared, reach, &other, &s, &(struct err){ 0 })) {
		return rc;
	}
	if (compose_times(p, &s) >= 0 && compose_times(p, &s) < compose_times(p, out)) {
		struct optree_sym slower = *out;

		*out = s;
		s = slower;
		*shape = other;
	}
	optree_sym_fini(&s);
	return 0;
}

int compose_best(const struct optree_params *p, int reach, struct compose_shape *shape,
		 struct optree_sym *out, struct err *err)
{
	return compose_overlapped(p, reach, best_levels, shape, out, err);
}
