/*
 * Strands: at a fixed number of colours, every link is filled up to that
 * number with idle arcs of one link, so that at each node as many arcs end as
 * begin. Joining each arc that ends to one that begins gives closed strands;
 * together they wind around the ring as often as there are colours, and each
 * at least once. A colouring is a way of joining where each strand winds just
 * once, that is where there are as many strands as colours.
 *
 * Exchanging what two arcs that end at one node are joined to splits a strand
 * that both belong to, and merges two strands otherwise. So a strand that
 * passes a node twice is split at once, which is a gain whatever the pieces;
 * one that winds too often and passes no node twice is merged with another
 * and split somewhere else, which changes the pieces and loses nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/rng.h"
#include "rwa/ring/private.h"

#define ARCS_MAX ((int64_t)1 << 24)
#define WORK_FACTOR 1024		/* arcs walked, for each arc there is */
#define WORK_LEAST ((int64_t)1 << 20)
#define WORK_MOST ((int64_t)1 << 25)

struct strands {
	const struct colouring *job;
	int width;
	int32_t n_arcs;		/* spans first, then idle arcs */
	int32_t *end;		/* node where an arc ends */
	int32_t *len;		/* of an arc, in links */
	int32_t *next;		/* arc that an arc is joined to */
	int32_t *strand;	/* that an arc belongs to */
	int32_t *entering;	/* arcs by the node they end at: */
	int32_t *first;		/* n + 1 */
	int32_t *turns;		/* of a strand: times around; width of them */
	int32_t *knot;		/* some arc of a strand */
	int32_t n_strands;
	int32_t *bad;		/* strands that wind more than once */
	int32_t *bad_at;	/* place of a strand in bad[], or -1 */
	int32_t n_bad;
	int32_t *passed;	/* arc of the present strand that ends at a
				 * node, as far as it has been walked */
	int64_t work;
	struct rng rng;
};

static void strands_fini(struct strands *s)
{
	free(s->end);
	free(s->len);
	free(s->next);
	free(s->strand);
	free(s->entering);
	free(s->first);
	free(s->turns);
	free(s->knot);
	free(s->bad);
	free(s->bad_at);
	free(s->passed);
}

static int32_t begin_of(const struct strands *s, int32_t a)
{
	int32_t v = s->end[a] - s->len[a];

	return v < 0 ? v + s->job->n : v;
}

/* Idle links of every link at this width; INT64_MAX when the load is above
 * it. idle: n. */
static int64_t count_idle(const struct colouring *job, int width,
			  int32_t *idle)
{
	int n = job->n;
	int64_t sum = 0;
	int32_t load = 0;

	memset(idle, 0, (size_t)n * sizeof(*idle));
	for (int32_t i = 0; i < job->count; i++) {
		struct span a = job->spans[i];

		idle[a.lo]++;
		idle[(a.lo + a.len) % n]--;
		load += a.lo + a.len >= n;
	}
	for (int v = 0; v < n; v++) {
		load += idle[v];
		idle[v] = width - load;
		if (idle[v] < 0) {
			return INT64_MAX;
		}
		sum += idle[v];
	}
	return sum;
}

static int strands_alloc(struct strands *s)
{
	size_t arcs = (size_t)s->n_arcs + 1, n = (size_t)s->job->n + 2;
	size_t width = (size_t)s->width + 1;

	s->end = malloc(arcs * sizeof(int32_t));
	s->len = malloc(arcs * sizeof(int32_t));
	s->next = malloc(arcs * sizeof(int32_t));
	s->strand = malloc(arcs * sizeof(int32_t));
	s->entering = malloc(arcs * sizeof(int32_t));
	s->first = calloc(n, sizeof(int32_t));
	s->turns = malloc(width * sizeof(int32_t));
	s->knot = malloc(width * sizeof(int32_t));
	s->bad = malloc(width * sizeof(int32_t));
	s->bad_at = malloc(width * sizeof(int32_t));
	s->passed = malloc(n * sizeof(int32_t));
	return s->end && s->len && s->next && s->strand && s->entering &&
			       s->first && s->turns && s->knot && s->bad &&
			       s->bad_at && s->passed
		       ? 0
		       : WEFT_ENOMEM;
}

/* All arcs, and the list of those that end at each node. */
static void fill_arcs(struct strands *s, const int32_t *idle)
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
	int32_t *leaving;	/* arcs by the node they begin at: */
	int32_t *first;		/* n + 1 */
	int32_t *want, *on;	/* of an arc, or -1 */
	int32_t *ended;		/* arc that has just ended on a track, or -1 */
};

static int tracks_init(struct tracks *t, const struct strands *s)
{
	size_t arcs = (size_t)s->n_arcs + 1, n = (size_t)s->job->n + 2;

	t->leaving = malloc(arcs * sizeof(int32_t));
	t->first = calloc(n, sizeof(int32_t));
	t->want = malloc(arcs * sizeof(int32_t));
	t->on = malloc(arcs * sizeof(int32_t));
	t->ended = malloc(((size_t)s->width + 1) * sizeof(int32_t));
	if (!t->leaving || !t->first || !t->want || !t->on || !t->ended) {
		return WEFT_ENOMEM;
	}
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
	return 0;
}

static void tracks_fini(struct tracks *t)
{
	free(t->leaving);
	free(t->first);
	free(t->want);
	free(t->on);
	free(t->ended);
}

/* Puts the arcs over link 0 on the tracks that they want, and the others of
 * them on those that are left. */
static void begin_tracks(struct tracks *t, const struct strands *s)
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

static void join(struct strands *s, struct tracks *t, int32_t ended,
		 int32_t begins)
{
	s->next[ended] = begins;
	t->ended[t->on[ended]] = -1;
	t->on[begins] = t->on[ended];
}

/* Joins the arcs that end at v to those that begin there, on the tracks that
 * these want where they are free. */
static void join_node(struct strands *s, struct tracks *t, int32_t v)
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
static int join_all(struct strands *s)
{
	struct tracks t;
	int rc = tracks_init(&t, s);

	if (!rc) {
		begin_tracks(&t, s);
		for (int32_t v = 1; v <= s->job->n; v++) {
			join_node(s, &t, v % s->job->n);
		}
	}
	tracks_fini(&t);
	return rc;
}

static void set_turns(struct strands *s, int32_t strand, int32_t turns)
{
	bool was = s->bad_at[strand] >= 0, is = turns > 1;

	s->turns[strand] = turns;
	if (is && !was) {
		s->bad_at[strand] = s->n_bad;
		s->bad[s->n_bad++] = strand;
	} else if (was && !is) {
		int32_t at = s->bad_at[strand], last = s->bad[--s->n_bad];

		s->bad[at] = last;
		s->bad_at[last] = at;
		s->bad_at[strand] = -1;
	}
}

/* Gives the closed strand through arc a a name, and forgets that it has been
 * walked; *links: its length. */
static void name_strand(struct strands *s, int32_t a, int32_t strand,
			int64_t *links)
{
	int32_t b = a;

	*links = 0;
	do {
		s->strand[b] = strand;
		*links += s->len[b];
		s->work++;
		if (s->passed[s->end[b]] == b) {
			s->passed[s->end[b]] = -1;
		}
		b = s->next[b];
	} while (b != a);
	s->knot[strand] = a;
}

static void exchange(struct strands *s, int32_t a, int32_t b)
{
	int32_t next = s->next[a];

	s->next[a] = s->next[b];
	s->next[b] = next;
}

/* Walks the strand from arc `from` on and splits it wherever it passes a node
 * again, until none of the pieces does. */
static void split(struct strands *s, int32_t from)
{
	int32_t n = s->job->n, strand = s->strand[from], a = from;
	int32_t turns = s->turns[strand];
	int64_t walked = 0;
	int64_t links = (int64_t)turns * n;

	while (walked < links) {
		int32_t v = s->end[a], b = s->passed[v];

		walked += s->len[a];
		s->work++;
		if (b >= 0 && s->strand[b] == strand) {
			int64_t piece;

			exchange(s, a, b);
			/* a closes the piece; b stays with the rest. The first
			 * arc must stay too, as the walk ends there. */
			name_strand(s, a, s->n_strands, &piece);
			set_turns(s, s->n_strands++, (int32_t)(piece / n));
			turns -= (int32_t)(piece / n);
			links -= piece;
			walked -= piece;
			a = b;
		} else {
			s->passed[v] = a;
		}
		a = s->next[a];
	}
	s->knot[strand] = from;
	set_turns(s, strand, turns);
	/* Forget the walk. */
	a = from;
	do {
		s->passed[s->end[a]] = -1;
		a = s->next[a];
	} while (a != from);
}

static void name_all(struct strands *s)
{
	for (int32_t c = 0; c < s->width; c++) {
		s->bad_at[c] = -1;
	}
	for (int32_t v = 0; v < s->job->n; v++) {
		s->passed[v] = -1;
	}
	for (int32_t a = 0; a < s->n_arcs; a++) {
		s->strand[a] = -1;
	}
	for (int32_t a = 0; a < s->n_arcs; a++) {
		int64_t links;

		if (s->strand[a] < 0) {
			name_strand(s, a, s->n_strands, &links);
			set_turns(s, s->n_strands++,
				  (int32_t)(links / s->job->n));
			split(s, a);
		}
	}
}

/* The last strand takes the name that has become free. */
static void drop_name(struct strands *s, int32_t strand)
{
	int32_t last = --s->n_strands, turns = s->turns[last];
	int64_t links;

	set_turns(s, strand, 1);
	set_turns(s, last, 1);
	if (last != strand) {
		name_strand(s, s->knot[last], strand, &links);
		set_turns(s, strand, turns);
	}
}

/* Merges a strand that winds too often with another at a random node, and
 * splits the two differently. */
static void stir(struct strands *s)
{
	int32_t bad = s->bad[rng_below(&s->rng, (uint64_t)s->n_bad)];
	int32_t a = s->knot[bad], b, other, v, turns;
	uint64_t skip = rng_below(&s->rng, 64);
	int64_t links;

	for (; skip; skip--) {
		a = s->next[a];
		s->work++;
	}
	s->knot[bad] = a;
	v = s->end[a];
	b = s->entering[s->first[v] +
			(int32_t)rng_below(&s->rng, (uint64_t)(s->first[v + 1] -
							       s->first[v]))];
	other = s->strand[b];
	s->work++;
	if (other == bad) {
		return;
	}
	turns = s->turns[bad] + s->turns[other];
	exchange(s, a, b);
	name_strand(s, a, bad, &links);
	set_turns(s, bad, turns);
	drop_name(s, other);
	/* drop_name() may have renamed this one. */
	split(s, s->next[rng_below(&s->rng, 2) ? a : b]);
}

static int strands_init(struct strands *s, const struct colouring *job,
			int width)
{
	int32_t *idle = malloc((size_t)job->n * sizeof(*idle));
	int64_t n_idle = idle ? count_idle(job, width, idle) : 0;
	int rc = idle ? 0 : WEFT_ENOMEM;

	*s = (struct strands){ .job = job, .width = width };
	rng_seed(&s->rng, (uint64_t)job->count);
	if (!rc && (n_idle > ARCS_MAX || n_idle + job->count > ARCS_MAX)) {
		rc = WEFT_ELIMIT;
	}
	if (!rc) {
		s->n_arcs = (int32_t)(n_idle + job->count);
		rc = strands_alloc(s);
	}
	if (!rc) {
		fill_arcs(s, idle);
		rc = join_all(s);
	}
	free(idle);
	return rc;
}

int rwa_colour_strands(struct colouring *this, int width, bool *found)
{
	struct strands s;
	int64_t most;
	int rc = strands_init(&s, this, width);

	*found = false;
	if (rc) {
		strands_fini(&s);
		return rc == WEFT_ELIMIT ? 0 : rc;
	}
	most = (int64_t)s.n_arcs * WORK_FACTOR;
	most = most < WORK_LEAST ? WORK_LEAST : most;
	most = most > WORK_MOST ? WORK_MOST : most;
	name_all(&s);
	while (s.n_bad && s.work < most) {
		stir(&s);
	}
	if (!s.n_bad) {
		memcpy(this->colour, s.strand,
		       (size_t)this->count * sizeof(*this->colour));
		this->tiled = 0;
		this->colours = width;
		this->method = "strands";
		*found = true;
	}
	strands_fini(&s);
	return 0;
}
