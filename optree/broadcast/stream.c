/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broadcast as a stream: pieces go from neighbour to neighbour, both ways
 * round, over light that stays as it is.
 *
 * On a ring of n nodes with K steps, emission i of the root reaches the next
 * K - i nodes of its direction. Those that reach all n-1 carry different
 * pieces each way. The later ones are paired: the same piece goes c nodes
 * clockwise and n-1-c nodes counter-clockwise, so no emission is lost. All
 * nodes receive 2K - (n-2) pieces in K steps.
 *
 * Seeded, the root first gives each other node a piece of its own, which is
 * passed on both ways while the first emissions are still on their way. In K
 * steps it reaches K nodes each way; if that is not all, late emissions, which
 * are paired with none, repeat it. So every link carries something new in
 * every step, and all nodes have 2K + 1 pieces. K = (n-2)/2 is a scatter and
 * an all-gather; the more steps, the less the scatter counts. Linear programs
 * for rings of up to 8 nodes, with free choice of lightpaths and lengths of
 * steps, find at best a few per cent less.
 *
 * On a line, or with channels in one direction only, everything goes to each
 * side whole.
 */
#include <math.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "optree/broadcast/broadcast.h"

#define TRIES 400	/* numbers of steps built each side of the estimate */
#define MANY_STEPS 1000	/* then fewer are worth some time: this share of it */
#define STEPS_WORTH 0.01
#define LOADS 32	/* loads of a step tried for each of them */

/* What all streams of a broadcast have in common. */
struct stream_search {
	const struct optree_params *p;
	int root, reach;
	struct broadcast_stream like;	/* steps, load and counts not set */
	double vector_ns;	/* on one channel */
	double step_ns;		/* a step without its data */
	double first_ns;	/* once */
	int64_t max_steps;
	int64_t max_chunks;	/* of the vector: in a step a chunk at least on
				 * every channel */
	struct optree_broadcast *best;
};

static int64_t narrow(const struct broadcast_stream *s)
{
	return s->width[0] < s->width[1] ? s->width[0] : s->width[1];
}

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- what is sent ---- */

/* The least clockwise reach of a pair; their reaches follow each other. */
static int64_t min_pair(const struct broadcast_stream *s)
{
	return s->steps < s->n - 1 ? s->n - 1 - s->steps : 1;
}

static void cut(const struct broadcast_stream *s, int64_t from, int64_t size,
		int64_t *first, int64_t *end)
{
	*first = from;
	*end = min64(from + size, s->chunks);
}

/* Full emissions lie in front, then pairs, then seeds. */
static int64_t pairs_begin(const struct broadcast_stream *s)
{
	return s->full * (s->width[0] + s->width[1]) * s->load;
}

void broadcast_seed(const struct broadcast_stream *s, int offset, int64_t *first, int64_t *end)
{
	int64_t size = narrow(s) * s->load;

	cut(s, pairs_begin(s) + (s->pairs + offset - 1) * size, size, first, end);
}

/* The one that reaches `reach` nodes clockwise. The widest and the narrowest
 * come first, so what is short in the end is between them. */
static void pair(const struct broadcast_stream *s, int64_t reach, int64_t *first, int64_t *end)
{
	int64_t least = min_pair(s), most = least + s->pairs - 1;
	int64_t size = narrow(s) * s->load;
	int64_t place = reach == most ? 0 : reach - least + 1;

	cut(s, pairs_begin(s) + place * size, size, first, end);
}

/* What a line's emission, or a full one, carries. */
static void piece(const struct broadcast_stream *s, int dir, int64_t number,
		  int64_t *first, int64_t *end)
{
	int64_t size = s->width[dir] * s->load;
	int64_t by = s->paired ? (s->width[0] + s->width[1]) * s->load : size;
	int64_t ahead = s->paired && dir == RWA_CCW ? s->width[0] * s->load : 0;

	cut(s, number * by + ahead, size, first, end);
}

void broadcast_emission(const struct broadcast_stream *s, int dir, int64_t number,
			int64_t *first, int64_t *end)
{
	int64_t others = s->n - 1, reach = s->steps - number;

	*first = *end = 0;
	if (!s->paired || reach >= others) {
		piece(s, dir, number, first, end);
	} else if (others - reach <= s->steps) {
		pair(s, dir == RWA_CW ? reach : others - reach, first, end);
	} else if (s->seeded) {
		broadcast_seed(s, (int)(dir == RWA_CW ? s->steps + 1 + reach
						      : others - s->steps - reach), first, end);
	}
}

/* ---- how many steps ---- */

static void count(struct broadcast_stream *s)
{
	int64_t least = min_pair(s), most = min64(s->steps, s->n - 2);

	s->full = s->steps > s->n - 2 ? s->steps - (s->n - 2) : 0;
	s->pairs = most >= least ? most - least + 1 : 0;
}

/* Chunks that it brings everywhere when each step has a load of one. */
static int64_t capacity(const struct broadcast_stream *s)
{
	int64_t least = INT64_MAX;

	if (s->paired) {
		return s->full * (s->width[0] + s->width[1]) +
		       (s->pairs + (s->seeded ? s->n - 1 : 0)) * narrow(s);
	}
	for (int dir = 0; dir < 2; dir++) {
		if (s->hops[dir]) {
			least = min64(least, s->width[dir] * (s->steps - s->hops[dir] + 1));
		}
	}
	return least;
}

/* Chunks without which some step would be shorter than its load: then fewer
 * steps are as good. */
static int64_t needed(const struct broadcast_stream *s)
{
	int64_t whole = capacity(s) * s->load, least = INT64_MAX;

	if (s->paired && s->width[0] == s->width[1]) {
		return pairs_begin(s) + (s->full ? 0 : 1);
	}
	if (s->paired) {
		least = pairs_begin(s) + 2 * narrow(s) * s->load;
		return whole / 4 * 3 > least ? whole / 4 * 3 : least;
	}
	for (int dir = 0; dir < 2; dir++) {
		if (s->hops[dir]) {
			least = min64(least, s->width[dir] * s->load *
					     (s->steps - s->hops[dir]));
		}
	}
	return least + 1;
}

static void scatter_seeds(struct stream_search *x, int slots, struct optree_broadcast *b)
{
	int64_t n = x->p->n, *first = x_new((size_t)n * 2, sizeof(*first));

	for (int k = 1; k < n; k++) {
		broadcast_seed(&b->stream, k, &first[k], &first[n + k]);
	}
	broadcast_scatter(x->p, x->root, slots, first, first + n, b);
	free(first);
}

/* How many chunks a shard is cut into, and the load of a step that it needs
 * then, so that the steps are shortest. */
static int choose_load(const struct stream_search *x, struct broadcast_stream *s)
{
	int64_t n = s->n, each = capacity(s), max = compose_max_chunks(x->p);
	int64_t top = (n * max + each - 1) / each, chunks = max;

	s->load = top;
	for (int64_t load = top; load > 0 && load > top - LOADS; load--) {
		int64_t c = min64(max, (int64_t)((__int128)load * each / n));

		if (c > 0 && (__int128)load * chunks < (__int128)s->load * c) {
			s->load = load;
			chunks = c;
		}
	}
	s->chunks = n * chunks;
	return (int)chunks;
}

/* Steps of the scatter, or none; *ns: its time. */
static int seeding(const struct stream_search *x, const struct broadcast_stream *s, double *ns)
{
	double piece_ns = (double)narrow(s) * x->vector_ns / (double)capacity(s);
	int slots = 0;

	*ns = 0;
	if (s->seeded && !broadcast_scatter_steps(x->p, x->root, x->reach, piece_ns, &slots, ns)) {
		*ns = INFINITY;
	}
	return slots;
}

/* What no stream of so many steps goes below; whole chunks may take longer. */
static double estimate(const struct stream_search *x, struct broadcast_stream *s)
{
	double scatter_ns;

	count(s);
	if (capacity(s) < 1 || capacity(s) > x->max_chunks ||
	    (s->seeded && 2 * s->steps < s->n - 2)) {
		return INFINITY;
	}
	seeding(x, s, &scatter_ns);
	return x->first_ns + scatter_ns + (double)s->steps *
	       (x->step_ns + x->vector_ns / (double)capacity(s));
}

/* Builds it and keeps it when it is the fastest yet. */
static void try_steps(struct stream_search *x, struct broadcast_stream s)
{
	struct optree_broadcast b = { .method = BROADCAST_STREAM, .root = x->root };
	double ignored;
	int slots;

	count(&s);
	b.chunks = choose_load(x, &s);
	if (s.chunks < needed(&s)) {
		return;
	}
	b.stream = s;
	slots = seeding(x, &s, &ignored);
	if (s.seeded) {
		scatter_seeds(x, slots, &b);
	}
	broadcast_time(x->p, 0, &b);
	broadcast_keep(x->best, &b);
}

/* From the estimated best number of steps on, as long as fewer, or more, may
 * still be faster. */
static void search(struct stream_search *x, bool seeded)
{
	struct broadcast_stream s = x->like;
	double least = INFINITY;
	int64_t at = 0;

	s.seeded = seeded;
	for (int64_t k = 1; k <= x->max_steps; k += 1 + k / 4096) {
		double ns;

		s.steps = (int32_t)k;
		ns = estimate(x, &s);
		if (ns < least) {
			least = ns;
			at = k;
		}
	}
	for (int sign = -1; at && sign <= 1; sign += 2) {
		for (int64_t k = at + (sign > 0); k > 0 && k <= x->max_steps &&
		     k > at - TRIES && k < at + TRIES; k += sign) {
			s.steps = (int32_t)k;
			least = estimate(x, &s);
			if (x->best->time_ns >= 0 && least >= (double)x->best->time_ns) {
				break;
			}
			if (!isinf(least)) {
				try_steps(x, s);
			}
		}
	}
}

/* With overlap steps cost next to nothing, but each has to be stored and sent to devices: of very
 * many fewer. */
static void save_steps(struct stream_search *x)
{
	struct broadcast_stream s = x->best->stream;
	struct optree_broadcast least = { .time_ns = -1 }, *best = x->best;
	double limit = (double)best->time_ns * (1 + STEPS_WORTH);
	int tries = 0;

	x->best = &least;
	for (int64_t k = MANY_STEPS; k < best->stream.steps && tries < TRIES; k++) {
		s.steps = (int32_t)k;
		if (estimate(x, &s) <= limit) {
			tries++;
			try_steps(x, s);
			if (least.time_ns >= 0 && (double)least.time_ns <= limit) {
				broadcast_fini(best);
				*best = least;
				least = (struct optree_broadcast){ 0 };
				break;
			}
		}
	}
	broadcast_fini(&least);
	x->best = best;
}

static void limit_steps(struct stream_search *x)
{
	const struct broadcast_stream *s = &x->like;
	int64_t lights = s->hops[0] * s->width[0] + s->hops[1] * s->width[1];
	int64_t least = narrow(s) ? narrow(s) : s->width[0] + s->width[1];

	x->max_chunks = (int64_t)s->n * compose_max_chunks(x->p);
	x->max_steps = min64(2 * s->n + x->max_chunks / least, COLL_MAX_STEPS - s->n);
	if (x->p->max_steps) {
		x->max_steps = min64(x->max_steps, x->p->max_steps);
	}
	if (x->p->max_lights) {
		x->max_steps = min64(x->max_steps, x->p->max_lights / lights);
	}
}

static int span_of(const struct optree_params *p, int root, const int hops[2])
{
	int most = 1;

	for (int dir = 0; p->at && dir < 2; dir++) {
		for (int k = 0; k < hops[dir]; k++) {
			int from = dir == RWA_CW ? root + k : root + p->n - k;
			int to = dir == RWA_CW ? from + 1 : from - 1;
			int links = optree_links(p, from % p->n, to % p->n, dir);

			most = links > most ? links : most;
		}
	}
	return most;
}

void broadcast_streams(const struct optree_params *p, int root, int reach,
		       struct optree_broadcast *out)
{
	struct stream_search x = {
		.p = p, .root = root, .reach = reach, .best = out,
		.like = { .n = p->n, .width = { tree_width(p, 0), tree_width(p, 1) } },
		.vector_ns = broadcast_vector_ns(p),
		.step_ns = (double)(p->overlap ? p->convert_ns : p->alpha_ns),
		.first_ns = p->overlap ? (double)(p->alpha_ns - p->convert_ns) : 0,
	};

	x.like.paired = !p->line && x.like.width[0] && x.like.width[1];
	broadcast_sides(p, root, x.like.hops);
	for (int dir = 0; dir < 2 && !x.like.paired; dir++) {
		x.like.hops[dir] = x.like.width[dir] ? x.like.hops[dir] : 0;
		x.like.width[dir] = x.like.hops[dir] ? x.like.width[dir] : 0;
	}
	x.like.span = span_of(p, root, x.like.hops);
	x.step_ns += (double)x.like.span * (double)p->span_delay_ns;
	limit_steps(&x);
	search(&x, false);
	if (x.like.paired) {
		search(&x, true);
	}
	if (p->overlap && out->time_ns >= 0 && out->stream.steps > MANY_STEPS) {
		save_steps(&x);
	}
}
