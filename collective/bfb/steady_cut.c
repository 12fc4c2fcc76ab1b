/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of unequal sizes in whole chunks: what each root has of them, and each link carries. */
#include <math.h>
#include <stdlib.h>

#include "collective/bfb/private.h"
#include "lib/base/alloc.h"

/* The vector has about so many chunks, a shard no more and no less than these. */
#define CHUNKS (1 << 14)
#define MIN_CHUNKS 16
#define MAX_CHUNKS 256

struct unequal_cut {
	const struct bfb_unequal *x;
	struct coll_sched *sched;
	int chunks;		/* of a shard; chunk c of the vector is c % chunks of c / chunks */
	int64_t *count;		/* of each part */
	double *owed;		/* by step and arc: what it should carry less what it does */
	int64_t *given;		/* to each use of a taker */
};

struct unequal_rest {
	double rest;
	int part;
};

static int by_rest(const void *a, const void *b)
{
	const struct unequal_rest *x = a, *y = b;

	return x->rest != y->rest ? (x->rest < y->rest ? 1 : -1) : x->part - y->part;
}

/* Whole chunks of each part, by largest remainders. */
static void count_parts(struct unequal_cut *c)
{
	int pairs = c->x->batches * c->x->n;
	int64_t left = (int64_t)c->chunks * c->x->n;
	double all = (double)left;
	struct unequal_rest *rest = x_alloc((size_t)pairs, sizeof(*rest));

	for (int i = 0; i < pairs; i++) {
		double want = c->x->part_sum[i] / c->x->rounds * all;

		c->count[i] = (int64_t)want;
		rest[i] = (struct unequal_rest){ want - (double)c->count[i], i };
		left -= c->count[i];
	}
	qsort(rest, (size_t)pairs, sizeof(*rest), by_rest);
	for (int i = 0; left > 0; i = (i + 1) % pairs, left--) {
		c->count[rest[i].part]++;
	}
	free(rest);
}

/* Whole chunks of a part for each use of a taker: those that were owed the most have what is left
 * over. */
static void share_out(struct unequal_cut *c, const struct bfb_ending *k, const int32_t *arcs,
		      const float *share, int64_t count, double *owed)
{
	double sum = 0;
	int64_t left = count;

	for (int i = 0; i < k->n; i++) {
		sum += share[i];
	}
	for (int i = 0; i < k->n; i++) {
		double want = (double)count * (sum > 0 ? share[i] / sum : 1.0 / k->n);

		c->given[i] = (int64_t)want;
		left -= c->given[i];
		owed[arcs[i]] += want - (double)c->given[i];
	}
	for (; left > 0; left--) {
		int most = 0;

		for (int i = 1; i < k->n; i++) {
			most = owed[arcs[i]] > owed[arcs[most]] ? i : most;
		}
		c->given[most]++;
		owed[arcs[most]]--;
	}
}

/* Chunks of the vector over an arc, shard by shard. */
static int add_chunks(struct unequal_cut *c, struct coll_xfer x, int64_t first, int64_t n,
		      struct err *err)
{
	int rc = 0;

	for (int64_t part; n > 0 && rc == 0; first += part, n -= part) {
		x.origin = (int32_t)(first / c->chunks);
		x.first = (int32_t)(first % c->chunks);
		part = c->chunks - x.first < n ? c->chunks - x.first : n;
		x.last = x.first + (int32_t)part - 1;
		rc = coll_add(c->sched, &x, err);
	}
	return rc;
}

/* What comes to a root, or goes out from it, of a part that begins with chunk `first`. Where sums
 * are copies backwards in time they are those of the counterpart of the batch. */
static int add_side(struct unequal_cut *c, bool sums, int batch, int root, int64_t first,
		    struct err *err)
{
	const struct bfb_unequal *x = c->x;
	bool mirror = sums && x->back;
	const struct bfb_paths *p = &x->paths[sums && !mirror];
	const struct bfb_ending *k = p->endings.v + (size_t)root * (size_t)(x->n - 1);
	const float *share = x->share[sums && !mirror] +
			     (size_t)(mirror ? x->batches - 1 - batch : batch) * p->uses.n;
	int32_t *arcs = x_alloc((size_t)x->m + 1, sizeof(*arcs));
	int64_t count = c->count[batch * x->n + root];
	int rc = 0;

	for (int i = 0; i < x->n - 1 && rc == 0; i++, k++) {
		struct coll_xfer move = {
			.step = x->begins[batch] + (sums ? -k->dist : k->dist - 1),
			.dest = COLL_NO_DEST, .op = sums ? COLL_OP_REDUCE : COLL_OP_COPY,
		};
		int64_t from = first;

		for (int j = 0; j < k->n; j++) {
			arcs[j] = p->uses.v[k->first + (size_t)j];
			arcs[j] = mirror ? x->back[arcs[j]] : arcs[j];
		}
		share_out(c, k, arcs, share + k->first, count,
			  c->owed + (size_t)move.step * (size_t)x->m);
		for (int j = 0; j < k->n && rc == 0; from += c->given[j++]) {
			move.arc = arcs[j];
			rc = add_chunks(c, move, from, c->given[j], err);
		}
	}
	free(arcs);
	return rc;
}

static int add_parts(struct unequal_cut *c, struct err *err)
{
	const struct bfb_unequal *x = c->x;
	int64_t first = 0;
	int rc = 0;

	for (int i = 0; i < x->n * x->batches && rc == 0; i++) {
		int root = i / x->batches, batch = i % x->batches;
		int64_t count = c->count[batch * x->n + root];

		if (count > 0) {
			(void)((rc = add_side(c, true, batch, root, first, err)) ||
			       (rc = add_side(c, false, batch, root, first, err)));
		}
		first += count;
	}
	return rc;
}

static int choose_chunks(int nodes)
{
	int chunks = CHUNKS / nodes;

	return chunks < MIN_CHUNKS ? MIN_CHUNKS : chunks > MAX_CHUNKS ? MAX_CHUNKS : chunks;
}

int bfb_unequal_cut(const struct bfb_unequal *x, struct topo *topo, struct coll_sched **out,
		    struct err *err)
{
	struct unequal_cut c = { .x = x, .chunks = choose_chunks(x->n) };
	struct arrays arrays = { 0 };
	int rc;

	arrays_add(&arrays, c.count, (size_t)x->batches * (size_t)x->n);
	arrays_add(&arrays, c.owed, (size_t)x->steps * (size_t)x->m);
	arrays_add(&arrays, c.given, x->m);
	count_parts(&c);
	(void)((rc = coll_new(COLL_ALLREDUCE, topo, c.chunks, 0, 0, &c.sched, err)) ||
	       (rc = add_parts(&c, err)) || (rc = coll_finish(c.sched, err)) ||
	       (rc = coll_prove(c.sched, NULL, err)));
	arrays_fini(&arrays);
	if (rc) {
		coll_free(c.sched);
		return rc;
	}
	*out = c.sched;
	return 0;
}
