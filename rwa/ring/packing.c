/*
 * Whole turns of the ring. Spans are sorted by (length, start); the spans of
 * one length and start form a pile, and a turn takes one from each of the
 * piles it visits.
 */
#include <stdlib.h>

#include "rwa/ring/private.h"

struct pile {
	int32_t len, lo;
	int32_t next;	/* first span of the pile not yet taken, in order[] */
	int32_t end;
};

struct piles {
	struct colouring *job;
	int32_t *order;		/* spans by (length, start) */
	struct pile *v;
	int32_t n;
};

static int by_length(const void *a, const void *b, void *spans)
{
	const struct span *x = (const struct span *)spans + *(const int32_t *)a;
	const struct span *y = (const struct span *)spans + *(const int32_t *)b;

	if (x->len != y->len) {
		return x->len < y->len ? -1 : 1;
	}
	if (x->lo != y->lo) {
		return x->lo < y->lo ? -1 : 1;
	}
	return *(const int32_t *)a < *(const int32_t *)b ? -1 : 1;
}

static void make_piles(struct piles *this)
{
	const struct span *spans = this->job->spans;

	for (int32_t k = 0; k < this->job->count; k++) {
		struct span s = spans[this->order[k]];
		struct pile *last = this->n ? &this->v[this->n - 1] : NULL;

		if (!last || last->len != s.len || last->lo != s.lo) {
			last = &this->v[this->n++];
			*last = (struct pile){ s.len, s.lo, k, k };
		}
		last->end++;
	}
}

/* The pile of this length and start when it still has a span, or NULL. */
static struct pile *find(const struct piles *this, int32_t len, int32_t lo)
{
	int32_t from = 0, to = this->n;

	while (from < to) {
		int32_t mid = from + (to - from) / 2;
		const struct pile *p = &this->v[mid];

		if (p->len < len || (p->len == len && p->lo < lo)) {
			from = mid + 1;
		} else {
			to = mid;
		}
	}
	if (from == this->n || this->v[from].len != len ||
	    this->v[from].lo != lo || this->v[from].next == this->v[from].end) {
		return NULL;
	}
	return &this->v[from];
}

static void take(struct piles *this, struct pile *p)
{
	this->job->colour[this->order[p->next++]] = this->job->tiled;
}

/* Turns from p on through spans of length p->len and then `other`,
 * alternating. */
static void turns(struct piles *this, struct pile *p, int32_t other)
{
	int n = this->job->n;
	int32_t len[2] = { p->len, other };

	while (p->next < p->end) {
		int32_t at = p->lo, which = 0;

		do {
			if (!find(this, len[which], at)) {
				return;
			}
			at = (at + len[which]) % n;
			which ^= 1;
		} while (at != p->lo);
		do {
			take(this, find(this, len[which], at));
			at = (at + len[which]) % n;
			which ^= 1;
		} while (at != p->lo);
		this->job->tiled++;
	}
}

int rwa_colour_tiling(struct colouring *this)
{
	size_t count = (size_t)this->count + 1;
	struct piles piles = { .job = this };
	int rc = 0;

	piles.order = malloc(count * sizeof(*piles.order));
	piles.v = malloc(count * sizeof(*piles.v));
	if (!piles.order || !piles.v) {
		rc = WEFT_ENOMEM;
		goto out;
	}
	for (int32_t i = 0; i < this->count; i++) {
		piles.order[i] = i;
	}
	qsort_r(piles.order, this->count, sizeof(*piles.order), by_length,
		this->spans);
	make_piles(&piles);
	for (int32_t k = 0; k < piles.n; k++) {
		struct pile *p = &piles.v[k];

		if (this->n % p->len == 0) {
			turns(&piles, p, p->len);
		}
		turns(&piles, p, this->n - p->len);
	}
	this->colours = this->tiled;
	this->method = "tiling";
out:
	free(piles.order);
	free(piles.v);
	return rc;
}
