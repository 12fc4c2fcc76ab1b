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

#include "rwa/ring/private.h"

/* Links times spans that all cuts together may cost. */
#define CUT_BUDGET ((int64_t)4 << 20)

struct sweep {
	const struct colouring *job;
	int32_t *todo;		/* spans without a colour when we began */
	int32_t n_todo;
	int32_t *order;		/* todo by start, longest first */
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

static int32_t start_of(const struct sweep *this, int32_t i)
{
	int32_t x = this->job->spans[i].lo - this->cut - 1;

	return x < 0 ? x + this->job->n : x;
}

static void sweep_free(struct sweep *this)
{
	free(this->todo);
	free(this->order);
	free(this->bucket);
	free(this->ending);
	free(this->next_ending);
	free(this->colour);
	free(this->needed);
	free(this->head);
	free(this->next_free);
	free(this->some);
}

static int sweep_init(struct sweep *this, const struct colouring *job)
{
	size_t count = (size_t)job->count + 1, n = (size_t)job->n + 2;

	*this = (struct sweep){ .job = job };
	this->todo = malloc(count * sizeof(int32_t));
	this->order = malloc(count * sizeof(int32_t));
	this->bucket = malloc(n * sizeof(int32_t));
	this->ending = malloc(n * sizeof(int32_t));
	this->next_ending = malloc(count * sizeof(int32_t));
	this->colour = malloc(count * sizeof(int32_t));
	this->needed = malloc(count * sizeof(int32_t));
	this->head = malloc(n * sizeof(int32_t));
	this->next_free = malloc(count * sizeof(int32_t));
	this->some = malloc((n / 64 + 1) * sizeof(uint64_t));
	if (!this->todo || !this->order || !this->bucket || !this->ending ||
	    !this->next_ending || !this->colour || !this->needed ||
	    !this->head || !this->next_free || !this->some) {
		return WEFT_ENOMEM;
	}
	for (int32_t i = 0; i < job->count; i++) {
		if (job->colour[i] < 0) {
			this->todo[this->n_todo++] = i;
		}
	}
	return 0;
}

/* Stable counting sort of from[] into to[] by key; keys are 0..n. */
#define COUNTING_SORT(this, from, to, key)                                    \
	do {                                                                  \
		memset((this)->bucket, 0,                                     \
		       ((size_t)(this)->job->n + 2) * sizeof(int32_t));       \
		for (int32_t k_ = 0; k_ < (this)->n_todo; k_++) {             \
			int32_t i = (from)[k_];                               \
			(this)->bucket[(key) + 1]++;                          \
		}                                                             \
		for (int v_ = 0; v_ <= (this)->job->n; v_++) {                \
			(this)->bucket[v_ + 1] += (this)->bucket[v_];         \
		}                                                             \
		for (int32_t k_ = 0; k_ < (this)->n_todo; k_++) {             \
			int32_t i = (from)[k_];                               \
			(to)[(this)->bucket[(key)]++] = i;                    \
		}                                                             \
	} while (0)

static void sort_by_start(struct sweep *this)
{
	const struct span *spans = this->job->spans;
	int n = this->job->n;

	/* next_ending is free until the sweep itself begins. */
	COUNTING_SORT(this, this->todo, this->next_ending, n - spans[i].len);
	COUNTING_SORT(this, this->next_ending, this->order,
		      start_of(this, i));
}

static void put_free(struct sweep *this, int32_t c)
{
	int32_t at = this->needed[c];

	this->next_free[c] = this->head[at];
	this->head[at] = c;
	this->some[at / 64] |= (uint64_t)1 << (at % 64);
}

static void ends_at(struct sweep *this, int32_t i, int32_t x)
{
	this->next_ending[i] = this->ending[x];
	this->ending[x] = i;
}

/* Takes a free colour not needed before `end`, the soonest needed first, or
 * a new one. */
static int32_t take_free(struct sweep *this, int32_t end)
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

static void colour_across(struct sweep *this)
{
	int n = this->job->n;

	for (int32_t k = 0; k < this->n_todo; k++) {
		int32_t i = this->order[k], x = start_of(this, i);
		int32_t over = x + this->job->spans[i].len - n;

		if (over > 0) {
			this->colour[i] = this->colours;
			this->needed[this->colours++] = x;
			ends_at(this, i, over);
		}
	}
}

static void sweep_cut(struct sweep *this, int cut)
{
	int n = this->job->n;
	int32_t k = 0;

	this->cut = cut;
	this->colours = 0;
	sort_by_start(this);
	memset(this->ending, 0xff, ((size_t)n + 1) * sizeof(int32_t));
	memset(this->head, 0xff, ((size_t)n + 1) * sizeof(int32_t));
	memset(this->some, 0, ((size_t)n / 64 + 1) * sizeof(uint64_t));
	colour_across(this);
	for (int32_t x = 0; x < n; x++) {
		for (int32_t i = this->ending[x]; i >= 0;
		     i = this->next_ending[i]) {
			put_free(this, this->colour[i]);
		}
		for (; k < this->n_todo &&
		       start_of(this, this->order[k]) == x; k++) {
			int32_t i = this->order[k];
			int32_t end = x + this->job->spans[i].len;

			if (end <= n) {
				this->colour[i] = take_free(this, end);
				ends_at(this, i, end);
			}
		}
	}
}

static void keep(const struct sweep *this, struct colouring *job)
{
	for (int32_t k = 0; k < this->n_todo; k++) {
		int32_t i = this->todo[k];

		job->colour[i] = job->tiled + this->colour[i];
	}
	job->colours = job->tiled + this->colours;
}

/* Load of every link by the spans that have no colour yet. */
static void loads(const struct sweep *this, int32_t *load)
{
	int n = this->job->n;
	int32_t now = 0;

	memset(load, 0, (size_t)n * sizeof(*load));
	for (int32_t k = 0; k < this->n_todo; k++) {
		struct span s = this->job->spans[this->todo[k]];

		load[s.lo]++;
		load[(s.lo + s.len) % n]--;
		now += s.lo + s.len >= n;
	}
	/* A span that ends just at node 0 was counted into `now` and leaves
	 * it again with its -1 there. */
	for (int v = 0; v < n; v++) {
		now += load[v];
		load[v] = now;
	}
}

int rwa_colour_cuts(struct colouring *this)
{
	struct sweep sweep;
	int32_t *load = malloc((size_t)this->n * sizeof(*load));
	int64_t cuts;
	int best = 0, rc = sweep_init(&sweep, this);

	if (rc || !load) {
		rc = WEFT_ENOMEM;
		goto out;
	}
	loads(&sweep, load);
	for (int e = 1; e < this->n; e++) {
		best = load[e] < load[best] ? e : best;
	}
	cuts = 1 + CUT_BUDGET / (1 + sweep.n_todo + (int64_t)this->n);
	cuts = cuts < this->n ? cuts : this->n;
	for (int64_t t = 0; t < cuts; t++) {
		sweep_cut(&sweep, (int)((best + t * this->n / cuts) % this->n));
		if (t == 0 || this->tiled + sweep.colours < this->colours) {
			keep(&sweep, this);
			this->method = load[best] ? "cut" : "interval";
		}
		if (this->colours <= this->bound || !load[best]) {
			break;
		}
	}
out:
	free(load);
	sweep_free(&sweep);
	return rc;
}
