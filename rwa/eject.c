/*
 * Ejection: at a fixed number of colours, a span that has none is put where
 * the spans in its way are cheapest to move; they lose their colour and are
 * placed next. A span grows dearer each time it had to push, so the search
 * leaves dead ends by itself.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/rng.h"
#include "rwa/ring.h"

#define TABLE_MAX ((int64_t)1 << 24)	/* colours times links */
#define WORK_MAX ((int64_t)1 << 24)	/* links looked at */

struct ejection {
	struct colouring *job;
	int width;		/* colours to do with, beyond the tiled ones */
	int32_t *owner;		/* width * n: span that holds it, or -1 */
	int32_t *colour;	/* per span, 0-based beyond the tiled ones */
	int32_t *weight;	/* per span */
	int32_t *homeless;	/* stack of spans without colour */
	int32_t n_homeless;
	int64_t work;
	struct rng rng;
};

static void set_owner(struct ejection *this, int32_t i, int32_t who)
{
	struct span s = this->job->spans[i];
	int32_t *row = this->owner + (int64_t)this->colour[i] * this->job->n;

	for (int32_t k = 0, e = s.lo; k < s.len; k++) {
		row[e] = who;
		e = e + 1 == this->job->n ? 0 : e + 1;
	}
	this->work += s.len;
}

/* Links from e to the end of span i, which covers e. */
static int32_t left_of(const struct colouring *job, int32_t i, int32_t e)
{
	int32_t left = job->spans[i].lo + job->spans[i].len - e;

	return left > job->n ? left - job->n : left;
}

/* Weight of the spans that hold the links of span i in colour c; stops when
 * it exceeds `most`. */
static int64_t price(struct ejection *this, int32_t i, int32_t c, int64_t most)
{
	const struct colouring *job = this->job;
	struct span s = job->spans[i];
	const int32_t *row = this->owner + (int64_t)c * job->n;
	int64_t sum = 0;

	for (int32_t k = 0; k < s.len && sum <= most;) {
		int32_t e = (s.lo + k) % job->n, who = row[e];

		this->work++;
		if (who < 0) {
			k++;
		} else {
			sum += this->weight[who];
			k += left_of(job, who, e);
		}
	}
	return sum;
}

static int32_t cheapest(struct ejection *this, int32_t i)
{
	int32_t best = 0, ties = 0;
	int64_t least = INT64_MAX;

	for (int32_t c = 0; c < this->width; c++) {
		int64_t p = price(this, i, c, least);

		if (p > least) {
			continue;
		}
		ties = p < least ? 1 : ties + 1;
		least = p;
		if (rng_below(&this->rng, (uint64_t)ties) == 0) {
			best = c;
		}
		if (p == 0) {
			break;
		}
	}
	return best;
}

static void place(struct ejection *this, int32_t i, int32_t c)
{
	const struct colouring *job = this->job;
	struct span s = job->spans[i];
	const int32_t *row = this->owner + (int64_t)c * job->n;
	bool pushed = false;

	for (int32_t k = 0; k < s.len; k++) {
		int32_t who = row[(s.lo + k) % job->n];

		if (who >= 0) {
			set_owner(this, who, -1);
			this->colour[who] = -1;
			this->homeless[this->n_homeless++] = who;
			pushed = true;
		}
	}
	this->weight[i] += pushed;
	this->colour[i] = c;
	set_owner(this, i, i);
}

static int ejection_init(struct ejection *this, struct colouring *job)
{
	size_t count = (size_t)job->count + 1;
	size_t table = (size_t)(job->bound - job->tiled) * (size_t)job->n;

	*this = (struct ejection){ .job = job,
				   .width = job->bound - job->tiled };
	rng_seed(&this->rng, (uint64_t)job->count);
	this->owner = malloc(table * sizeof(int32_t));
	this->colour = malloc(count * sizeof(int32_t));
	this->weight = malloc(count * sizeof(int32_t));
	this->homeless = malloc(count * sizeof(int32_t));
	if (!this->owner || !this->colour || !this->weight ||
	    !this->homeless) {
		return WEFT_ENOMEM;
	}
	memset(this->owner, 0xff, table * sizeof(int32_t));
	for (int32_t i = 0; i < job->count; i++) {
		this->weight[i] = 1;
		this->colour[i] = job->colour[i] - job->tiled;
		if (job->colour[i] >= job->bound) {
			this->colour[i] = -1;
			this->homeless[this->n_homeless++] = i;
		} else if (job->colour[i] >= job->tiled) {
			set_owner(this, i, i);
		}
	}
	return 0;
}

int rwa_colour_eject(struct colouring *this)
{
	struct ejection ej;
	int rc;

	if (this->bound <= this->tiled ||
	    (int64_t)(this->bound - this->tiled) * this->n > TABLE_MAX) {
		return 0;
	}
	rc = ejection_init(&ej, this);
	while (!rc && ej.n_homeless && ej.work < WORK_MAX) {
		int32_t i = ej.homeless[--ej.n_homeless];

		place(&ej, i, cheapest(&ej, i));
	}
	if (!rc && !ej.n_homeless) {
		for (int32_t i = 0; i < this->count; i++) {
			if (this->colour[i] >= this->tiled) {
				this->colour[i] = this->tiled + ej.colour[i];
			}
		}
		this->colours = this->bound;
		this->method = "ejection";
	}
	free(ej.owner);
	free(ej.colour);
	free(ej.weight);
	free(ej.homeless);
	return rc;
}
