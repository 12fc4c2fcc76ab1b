/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cycle cover: at a fixed number of colours, every link is filled up to that
 * number with idle arcs of one link, so that at each node as many arcs end as
 * begin. Joining each arc that ends to one that begins gives closed trails;
 * together they wind around the ring as often as there are colours, and each
 * at least once. A colouring is a way of joining where each trail winds just
 * once, that is where there are as many trails as colours.
 *
 * Exchanging what two arcs that end at one node are joined to splits a trail
 * that both belong to, and merges two trails otherwise. So a trail that
 * passes a node twice is split at once, which is a gain whatever the pieces;
 * one that winds too often and passes no node twice is merged with another
 * and split somewhere else, which changes the pieces and loses nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"
#include "rwa/ring/private.h"

#define ARCS_MAX ((int64_t)1 << 24)
#define WORK_FACTOR 1024		/* arcs walked, for each arc there is */
#define MIN_WORK ((int64_t)1 << 20)
#define MAX_WORK ((int64_t)1 << 25)

struct trails {
	const struct colouring *job;
	int width;
	int32_t *memory;	/* of the arrays below */
	int32_t n_arcs;		/* spans first, then idle arcs */
	int32_t *end;		/* node where an arc ends */
	int32_t *len;		/* of an arc, in links */
	int32_t *next;		/* arc that an arc is joined to */
	int32_t *trail;		/* that an arc belongs to */
	int32_t *entering;	/* arcs by the node they end at: */
	int32_t *first;		/* n + 1 */
	int32_t *winds;		/* of a trail: times around; width of them */
	int32_t *any_arc;	/* some arc of a trail */
	int32_t n_trails;
	int32_t *long_ones;	/* trails that wind more than once */
	int32_t *long_at;	/* place of a trail in long_ones[], or -1 */
	int32_t n_long;
	int32_t *passed;	/* arc of the present trail that ends at a
				 * node, as far as it has been walked */
	int64_t work;
	struct rng rng;
};

static int32_t begin_of(const struct trails *s, int32_t a)
{
	int32_t v = s->end[a] - s->len[a];

	return v < 0 ? v + s->job->n : v;
}

/* Idle links of every link at this width; INT64_MAX when the load is above
 * it. idle: n. */
static int64_t count_idle(const struct colouring *job, int width, int32_t *idle)
{
	int64_t sum = 0;

	rwa_span_loads(job, idle);
	for (int v = 0; v < job->n; v++) {
		idle[v] = width - idle[v];
		if (idle[v] < 0) {
			return INT64_MAX;
		}
		sum += idle[v];
	}
	return sum;
}

/* The next `count` numbers of a block. */
static int32_t *carve(int32_t **block, size_t count)
{
	int32_t *p = *block;

	*block += count;
	return p;
}

static void trails_alloc(struct trails *s)
{
	size_t arcs = (size_t)s->n_arcs + 1, n = (size_t)s->job->n + 2;
	size_t width = (size_t)s->width + 1;
	int32_t *next = x_new(5 * arcs + 2 * n + 4 * width, sizeof(*next));

	s->memory = next;
	s->end = carve(&next, arcs);
	s->len = carve(&next, arcs);
	s->next = carve(&next, arcs);
	s->trail = carve(&next, arcs);
	s->entering = carve(&next, arcs);
	s->first = carve(&next, n);
	s->passed = carve(&next, n);
	s->winds = carve(&next, width);
	s->any_arc = carve(&next, width);
	s->long_ones = carve(&next, width);
	s->long_at = carve(&next, width);
}

/* All arcs, and the list of those that end at each node. */
static void fill_arcs(struct trails *s, const int32_t *idle)
{
	const struct colouring *job = s->job;
	int32_t a = job->count, n = job->n;

	for (int32_t i = 0; i < job->count; i++) {
		s->len[i] = job->spans[i].len;
		s->end[i] = (job->spans[i].lo + job->spans[i].len) % n;
	}
	for (int32_t v = 0; v < n; v++) {
		for (int32_t k = 0; k < idle[v]; k++) {
			s->len[a] = 1;
			s->end[a++] = v + 1 == n ? 0 : v + 1;
		}
	}
	for (a = 0; a < s->n_arcs; a++) {
		s->first[s->end[a] + 1]++;
	}
	for (int32_t v = 0; v < n; v++) {
		s->first[v + 1] += s->first[v];
	}
	for (a = 0; a < s->n_arcs; a++) {
		s->entering[s->first[s->end[a]]++] = a;
	}
	memmove(s->first + 1, s->first, (size_t)n * sizeof(*s->first));
	s->first[0] = 0;
}

/* What the first joining keeps: each arc runs on a track, one of as many as
 * colours, and wants the track that is its colour. */
struct tracks {
	int32_t *memory;	/* of the arrays below */
	int32_t *leaving;	/* arcs by the node they begin at: */
	int32_t *first;		/* n + 1 */
	int32_t *want, *on;	/* of an arc, or -1 */
	int32_t *ended;		/* arc that has just ended on a track, or -1 */
};

static void tracks_init(struct tracks *t, const struct trails *s)
{
	size_t arcs = (size_t)s->n_arcs + 1, n = (size_t)s->job->n + 2;
	int32_t *next;

	t->memory = x_new(3 * arcs + n + (size_t)s->width + 1, sizeof(*next));
	next = t->memory;
	t->leaving = carve(&next, arcs);
	t->want = carve(&next, arcs);
	t->on = carve(&next, arcs);
	t->first = carve(&next, n);
	t->ended = carve(&next, (size_t)s->width + 1);
	for (int32_t a = 0; a < s->n_arcs; a++) {
		bool given = a < s->job->count && s->job->colour[a] < s->width;

		t->first[begin_of(s, a) + 1]++;
		t->want[a] = given ? s->job->colour[a] : -1;
	}
	for (int32_t v = 0; v < s->job->n; v++) {
		t->first[v + 1] += t->first[v];
	}
	for (int32_t a = 0; a < s->n_arcs; a++) {
		t->leaving[t->first[begin_of(s, a)]++] = a;
	}
	memmove(t->first + 1, t->first, (size_t)s->job->n * sizeof(int32_t));
	t->first[0] = 0;
	memset(t->ended, 0xff, (size_t)s->width * sizeof(int32_t));
}

/* Puts the arcs over link 0 on the tracks that they want, and the others of
 * them on those that are left. */
static void begin_tracks(struct tracks *t, const struct trails *s)
{
	int32_t free_track = 0;

	for (int round = 0; round < 2; round++) {
		for (int32_t a = 0; a < s->n_arcs; a++) {
			int32_t from = begin_of(s, a);

			if ((from && from + s->len[a] <= s->job->n) ||
			    (round == 0) != (t->want[a] >= 0)) {
				continue;
			}
			while (round && t->ended[free_track] >= 0) {
				free_track++;
			}
			t->want[a] = round ? free_track : t->want[a];
			t->on[a] = t->want[a];
			t->ended[t->on[a]] = a;
		}
		if (round) {
			break;
		}
	}
	memset(t->ended, 0xff, (size_t)s->width * sizeof(int32_t));
}

static void join(struct trails *s, struct tracks *t, int32_t ended, int32_t begins)
{
	s->next[ended] = begins;
	t->ended[t->on[ended]] = -1;
	t->on[begins] = t->on[ended];
}

/* Joins the arcs that end at v to those that begin there, on the tracks that
 * these want where they are free. */
static void join_node(struct trails *s, struct tracks *t, int32_t v)
{
	int32_t from = s->first[v], to = s->first[v + 1], rest = from;

	for (int32_t k = from; k < to; k++) {
		int32_t a = s->entering[k];

		t->ended[t->on[a]] = a;
		s->next[a] = -1;
	}
	for (int32_t k = from; k < to; k++) {
		int32_t a = t->leaving[k];

		if (t->want[a] >= 0 && t->ended[t->want[a]] >= 0) {
			join(s, t, t->ended[t->want[a]], a);
			t->leaving[k] = -1;
		}
	}
	for (int32_t k = from; k < to; k++) {
		if (t->leaving[k] < 0) {
			continue;
		}
		while (s->next[s->entering[rest]] >= 0) {
			rest++;
		}
		join(s, t, s->entering[rest], t->leaving[k]);
	}
}

/* As many arcs begin at a node as end there, so that both lists have the same
 * places. */
static void join_all(struct trails *s)
{
	struct tracks t;

	tracks_init(&t, s);
	begin_tracks(&t, s);
	for (int32_t v = 1; v <= s->job->n; v++) {
		join_node(s, &t, v % s->job->n);
	}
	free(t.memory);
}

static void set_winds(struct trails *s, int32_t trail, int32_t winds)
{
	bool was = s->long_at[trail] >= 0, is = winds > 1;

	s->winds[trail] = winds;
	if (is && !was) {
		s->long_at[trail] = s->n_long;
		s->long_ones[s->n_long++] = trail;
	} else if (was && !is) {
		int32_t at = s->long_at[trail], last = s->long_ones[--s->n_long];

		s->long_ones[at] = last;
		s->long_at[last] = at;
		s->long_at[trail] = -1;
	}
}

/* Gives the closed trail through arc a a label, and forgets that it has been
 * walked; *links: its length. */
static void label_trail(struct trails *s, int32_t a, int32_t trail, int64_t *links)
{
	int32_t b = a;

	*links = 0;
	do {
		s->trail[b] = trail;
		*links += s->len[b];
		s->work++;
		if (s->passed[s->end[b]] == b) {
			s->passed[s->end[b]] = -1;
		}
		b = s->next[b];
	} while (b != a);
	s->any_arc[trail] = a;
}

static void exchange(struct trails *s, int32_t a, int32_t b)
{
	int32_t next = s->next[a];

	s->next[a] = s->next[b];
	s->next[b] = next;
}

/* Walks the trail from arc `from` on and splits it wherever it passes a node
 * again, until none of the pieces does. */
static void split(struct trails *s, int32_t from)
{
	int32_t n = s->job->n, trail = s->trail[from], a = from;
	int32_t winds = s->winds[trail];
	int64_t walked = 0;
	int64_t links = (int64_t)winds * n;

	while (walked < links) {
		int32_t v = s->end[a], b = s->passed[v];

		walked += s->len[a];
		s->work++;
		if (b >= 0 && s->trail[b] == trail) {
			int64_t piece;

			exchange(s, a, b);
			/* a closes the piece; b stays with the rest. The first
			 * arc must stay too, as the walk ends there. */
			label_trail(s, a, s->n_trails, &piece);
			set_winds(s, s->n_trails++, (int32_t)(piece / n));
			winds -= (int32_t)(piece / n);
			links -= piece;
			walked -= piece;
			a = b;
		} else {
			s->passed[v] = a;
		}
		a = s->next[a];
	}
	s->any_arc[trail] = from;
	set_winds(s, trail, winds);
	/* Forget the walk. */
	a = from;
	do {
		s->passed[s->end[a]] = -1;
		a = s->next[a];
	} while (a != from);
}

static void label_all(struct trails *s)
{
	for (int32_t c = 0; c < s->width; c++) {
		s->long_at[c] = -1;
	}
	for (int32_t v = 0; v < s->job->n; v++) {
		s->passed[v] = -1;
	}
	for (int32_t a = 0; a < s->n_arcs; a++) {
		s->trail[a] = -1;
	}
	for (int32_t a = 0; a < s->n_arcs; a++) {
		int64_t links;

		if (s->trail[a] < 0) {
			label_trail(s, a, s->n_trails, &links);
			set_winds(s, s->n_trails++, (int32_t)(links / s->job->n));
			split(s, a);
		}
	}
}

/* The last trail takes the label that has become free. */
static void drop_label(struct trails *s, int32_t trail)
{
	int32_t last = --s->n_trails, winds = s->winds[last];
	int64_t links;

	set_winds(s, trail, 1);
	set_winds(s, last, 1);
	if (last != trail) {
		label_trail(s, s->any_arc[last], trail, &links);
		set_winds(s, trail, winds);
	}
}

/* Merges a trail that winds too often with another at a random node, and
 * splits the two differently. */
static void merge_and_split(struct trails *s)
{
	int32_t long_trail = s->long_ones[rng_below(&s->rng, (uint64_t)s->n_long)];
	int32_t a = s->any_arc[long_trail], b, other, v, winds;
	uint64_t skip = rng_below(&s->rng, 64);
	int64_t links;

	for (; skip; skip--) {
		a = s->next[a];
		s->work++;
	}
	s->any_arc[long_trail] = a;
	v = s->end[a];
	b = s->entering[s->first[v] +
			(int32_t)rng_below(&s->rng, (uint64_t)(s->first[v + 1] -
							       s->first[v]))];
	other = s->trail[b];
	s->work++;
	if (other == long_trail) {
		return;
	}
	winds = s->winds[long_trail] + s->winds[other];
	exchange(s, a, b);
	label_trail(s, a, long_trail, &links);
	set_winds(s, long_trail, winds);
	drop_label(s, other);
	/* drop_label() may have renamed this one. */
	split(s, s->next[rng_below(&s->rng, 2) ? a : b]);
}

/* False, with nothing to free: there would be too many arcs. */
static bool trails_init(struct trails *s, const struct colouring *job, int width)
{
	int32_t *idle = x_alloc((size_t)job->n, sizeof(*idle));
	int64_t n_idle = count_idle(job, width, idle);
	bool fits = n_idle <= ARCS_MAX && n_idle + job->count <= ARCS_MAX;

	*s = (struct trails){ .job = job, .width = width };
	rng_seed(&s->rng, (uint64_t)job->count);
	if (fits) {
		s->n_arcs = (int32_t)(n_idle + job->count);
		trails_alloc(s);
		fill_arcs(s, idle);
		join_all(s);
	}
	free(idle);
	return fits;
}

bool rwa_colour_cycles(struct colouring *this, int width)
{
	struct trails s;
	int64_t max_work;
	bool found;

	if (!trails_init(&s, this, width)) {
		return false;
	}
	max_work = (int64_t)s.n_arcs * WORK_FACTOR;
	max_work = max_work < MIN_WORK ? MIN_WORK : max_work;
	max_work = max_work > MAX_WORK ? MAX_WORK : max_work;
	label_all(&s);
	while (s.n_long && s.work < max_work) {
		merge_and_split(&s);
	}
	found = !s.n_long;
	if (found) {
		memcpy(this->colour, s.trail, (size_t)this->count * sizeof(*this->colour));
		this->colours = width;
		this->method = "cycle cover";
	}
	free(s.memory);
	return found;
}
