/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colouring the arcs of one direction after cutting the ring open at a link.
 *
 * Position x of the line is node (cut + 1 + x) mod n. A span across the cut
 * takes a colour first: it holds it from 0 to its end, and needs it again at
 * its start, so other spans fit only between. Each colour is therefore kept
 * on a free list under the position where it is needed again (n: never), and
 * a span takes the free colour that is needed again soonest after its end.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/vec.h"
#include "rwa/ring/private.h"

/* Links times spans that all cuts together may cost. */
#define CUT_BUDGET ((int64_t)4 << 20)

struct cut_sweep {
	const struct colouring *job;
	struct arrays arrays;	/* owns all that follow */
	int32_t *order;		/* spans by start, longest first */
	int32_t *bucket;	/* n + 2: counting sort */
	int32_t *ending;	/* n + 1: first span that ends at x, or -1 */
	int32_t *next_ending;	/* per span */
	int32_t *colour;	/* per span, of this cut */
	int32_t *needed;	/* per colour: position where needed again */
	int32_t *head;		/* n + 1: free colours by `needed`, or -1 */
	int32_t *next_free;	/* per colour */
	uint64_t *some;		/* bit x: head[x] >= 0 */
	int cut;
	int32_t colours;
};

static int32_t start_of(const struct cut_sweep *this, int32_t i)
{
	int32_t x = this->job->spans[i].lo - this->cut - 1;

	return x < 0 ? x + this->job->n : x;
}

static void sweep_free(struct cut_sweep *this)
{
	arrays_fini(&this->arrays);
}

static void sweep_init(struct cut_sweep *this, const struct colouring *job)
{
	size_t count = (size_t)job->count + 1, n = (size_t)job->n + 2;

	*this = (struct cut_sweep){ .job = job };
	arrays_add(&this->arrays, this->order, count);
	arrays_add(&this->arrays, this->bucket, n);
	arrays_add(&this->arrays, this->ending, n);
	arrays_add(&this->arrays, this->next_ending, count);
	arrays_add(&this->arrays, this->colour, count);
	arrays_add(&this->arrays, this->needed, count);
	arrays_add(&this->arrays, this->head, n);
	arrays_add(&this->arrays, this->next_free, count);
	arrays_add(&this->arrays, this->some, n / 64 + 1);
}

/* A stable counting sort of from[] (NULL: all in order) into to[] by start,
 * or by the links that a span leaves out: longest first. */
static void sort_spans(struct cut_sweep *this, const int32_t *from, int32_t *to, bool by_start)
{
	const struct colouring *job = this->job;
	size_t bytes = ((size_t)job->n + 2) * sizeof(int32_t);
	int32_t *bucket = this->bucket;

	memset(bucket, 0, bytes);
	for (int32_t i = 0; i < job->count; i++) {
		bucket[1 + (by_start ? start_of(this, i) : job->n - job->spans[i].len)]++;
	}
	for (int v = 0; v <= job->n; v++) {
		bucket[v + 1] += bucket[v];
	}
	for (int32_t k = 0; k < job->count; k++) {
		int32_t i = from ? from[k] : k;

		to[bucket[by_start ? start_of(this, i) : job->n - job->spans[i].len]++] = i;
	}
}

static void put_free(struct cut_sweep *this, int32_t c)
{
	int32_t at = this->needed[c];

	this->next_free[c] = this->head[at];
	this->head[at] = c;
	this->some[at / 64] |= (uint64_t)1 << (at % 64);
}

static void ends_at(struct cut_sweep *this, int32_t i, int32_t x)
{
	this->next_ending[i] = this->ending[x];
	this->ending[x] = i;
}

/* Takes a free colour not needed before `end`, the soonest needed first, or
 * a new one. */
static int32_t take_free(struct cut_sweep *this, int32_t end)
{
	int n = this->job->n;
	int32_t w = end / 64;
	uint64_t bits = this->some[w] & (~(uint64_t)0 << (end % 64));

	while (!bits && w < n / 64) {
		bits = this->some[++w];
	}
	if (bits) {
		int32_t at = w * 64 + __builtin_ctzll(bits);
		int32_t c = this->head[at];

		this->head[at] = this->next_free[c];
		if (this->head[at] < 0) {
			this->some[w] &= ~((uint64_t)1 << (at % 64));
		}
		return c;
	}
	this->needed[this->colours] = n;
	return this->colours++;
}

static void colour_across(struct cut_sweep *this)
{
	int n = this->job->n;

	for (int32_t k = 0; k < this->job->count; k++) {
		int32_t i = this->order[k], x = start_of(this, i);
		int32_t over = x + this->job->spans[i].len - n;

		if (over > 0) {
			this->colour[i] = this->colours;
			this->needed[this->colours++] = x;
			ends_at(this, i, over);
		}
	}
}

static void sweep_cut(struct cut_sweep *this, int cut)
{
	int n = this->job->n;
	int32_t k = 0;

	this->cut = cut;
	this->colours = 0;
	/* next_ending is free until the sweep itself begins. */
	sort_spans(this, NULL, this->next_ending, false);
	sort_spans(this, this->next_ending, this->order, true);
	memset(this->ending, 0xff, ((size_t)n + 1) * sizeof(int32_t));
	memset(this->head, 0xff, ((size_t)n + 1) * sizeof(int32_t));
	memset(this->some, 0, ((size_t)n / 64 + 1) * sizeof(uint64_t));
	colour_across(this);
	for (int32_t x = 0; x < n; x++) {
		for (int32_t i = this->ending[x]; i >= 0; i = this->next_ending[i]) {
			put_free(this, this->colour[i]);
		}
		for (; k < this->job->count && start_of(this, this->order[k]) == x; k++) {
			int32_t i = this->order[k];
			int32_t end = x + this->job->spans[i].len;

			if (end <= n) {
				this->colour[i] = take_free(this, end);
				ends_at(this, i, end);
			}
		}
	}
}

static void keep(const struct cut_sweep *this, struct colouring *job)
{
	memcpy(job->colour, this->colour, (size_t)job->count * sizeof(*job->colour));
	job->colours = this->colours;
}

void rwa_colour_cuts(struct colouring *this)
{
	struct cut_sweep sweep;
	int32_t *load = x_alloc((size_t)this->n, sizeof(*load));
	int64_t cuts;
	int best = 0;

	sweep_init(&sweep, this);
	rwa_span_loads(this, load);
	for (int e = 1; e < this->n; e++) {
		best = load[e] < load[best] ? e : best;
	}
	cuts = 1 + CUT_BUDGET / (1 + this->count + (int64_t)this->n);
	cuts = cuts < this->n ? cuts : this->n;
	for (int64_t t = 0; t < cuts; t++) {
		sweep_cut(&sweep, (int)((best + t * this->n / cuts) % this->n));
		if (t == 0 || sweep.colours < this->colours) {
			keep(&sweep, this);
			this->method = load[best] ? "cut" : "interval";
		}
		if (this->colours <= this->bound || !load[best]) {
			break;
		}
	}
	free(load);
	sweep_free(&sweep);
}
