/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which labels go along which trees.
 *
 * With K batches a unit of weight, a unit being what all weights have in common, every tree passes
 * K times its weight in batches of one size, and all weights are kept exactly. Where that would be
 * more chunks than there may be, labels are given out by largest remainders.
 */
#include <stdlib.h>

#include "collective/tree/stagger/stagger_private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

#define EXACT_MOVES (INT64_C(1) << 18)	/* weights are kept exactly up to so many, */
#define ROUNDED_UNITS 64		/* or up to so many units a shard */

/* Trees of one root that go one way. */
struct stagger_side {
	VEC(int32_t) trees;
	int64_t weight;
};

/* A root's trees and labels. */
struct stagger_root {
	int root;
	struct stagger_side in, out;
	int64_t weight;		/* what its data weigh */
	int64_t first, n;	/* labels */
};

struct stagger_roots {
	VEC(struct stagger_root) list;
	int64_t weight;		/* of all */
	int64_t unit;		/* greatest common divisor of the weights */
};

/* Every root has its own shard. */
static bool is_own(enum coll_kind kind)
{
	return kind == COLL_ALLGATHER || kind == COLL_REDUCE_SCATTER;
}

/* ---- roots ---- */

static void roots_fini(struct stagger_roots *r)
{
	for (size_t i = 0; i < r->list.n; i++) {
		vec_fini(&r->list.v[i].in.trees);
		vec_fini(&r->list.v[i].out.trees);
	}
	vec_fini(&r->list);
}

static struct stagger_root *root_of(struct stagger_roots *r, int root)
{
	for (size_t i = r->list.n; i-- > 0;) {
		if (r->list.v[i].root == root) {
			return &r->list.v[i];
		}
	}
	vec_push(&r->list, (struct stagger_root){ .root = root });
	return &r->list.v[r->list.n - 1];
}

/* Deep trees in first, shallow ones out: where both ways are there, what comes a long way in has
 * a short one out. */
static void sort_trees(const struct stagger *s, struct stagger_side *side, bool deep_first)
{
	for (size_t i = 1; i < side->trees.n; i++) {
		int32_t tree = side->trees.v[i];
		int depth = s->f->trees.v[tree].depth;
		size_t k = i;

		for (; k > 0; k--) {
			int other = s->f->trees.v[side->trees.v[k - 1]].depth;

			if (deep_first ? other >= depth : other <= depth) {
				break;
			}
			side->trees.v[k] = side->trees.v[k - 1];
		}
		side->trees.v[k] = tree;
	}
}

static int wrong_weight(const struct stagger_root *r, struct err *err)
{
	return err_set(err, WEFT_EINVAL, "forest: the trees of root %d weigh %lld inwards and "
		       "%lld outwards, which does not fit the collective", r->root,
		       (long long)r->in.weight, (long long)r->out.weight);
}

static bool fits_kind(const struct stagger *s, const struct stagger_root *r)
{
	switch (s->opt->kind) {
	case COLL_ALLGATHER:
		return r->in.weight == 0 && r->out.weight == s->f->share;
	case COLL_REDUCE_SCATTER:
		return r->out.weight == 0 && r->in.weight == s->f->share;
	case COLL_ALLREDUCE:
		return r->in.weight == r->out.weight;
	case COLL_BROADCAST:
		return r->in.weight == 0;
	case COLL_REDUCE:
		return r->out.weight == 0;
	default:
		return false;
	}
}

static int find_roots(const struct stagger *s, struct stagger_roots *r, struct err *err)
{
	for (int i = 0; i < s->n_trees; i++) {
		const struct coll_forest_tree *t = s->trees[i].t;
		struct stagger_root *root = root_of(r, t->root);
		struct stagger_side *side = t->inwards ? &root->in : &root->out;

		vec_push(&side->trees, i);
		side->weight += t->weight;
		r->unit = rat_gcd(r->unit, t->weight);
	}
	for (size_t i = 0; i < r->list.n; i++) {
		struct stagger_root *root = &r->list.v[i];

		if (!fits_kind(s, root) || (coll_has_root(s->opt->kind) && i > 0)) {
			return wrong_weight(root, err);
		}
		root->weight = root->out.weight > 0 ? root->out.weight : root->in.weight;
		r->weight += root->weight;
		sort_trees(s, &root->in, true);
		sort_trees(s, &root->out, false);
	}
	return 0;
}

/* ---- labels ---- */

/* Label counts for weights of so much in all: `labels` by largest remainders. Gives them to
 * part[]. */
static void apportion(const int64_t *weights, size_t n, int64_t labels, int64_t *part)
{
	int64_t total = 0, given = 0;

	for (size_t i = 0; i < n; i++) {
		total += weights[i];
	}
	for (size_t i = 0; i < n; i++) {
		part[i] = (int64_t)((__int128)weights[i] * labels / total);
		given += part[i];
	}
	for (; given < labels; given++) {
		size_t best = 0;
		__int128 most = -1;

		for (size_t i = 0; i < n; i++) {
			__int128 lack = (__int128)weights[i] * labels - (__int128)part[i] * total;

			if (lack > most) {
				most = lack;
				best = i;
			}
		}
		part[best]++;
	}
}

/* ends[i]: the label after those of the i-th tree of a side. */
static void cut_side(const struct stagger *s, const struct stagger_root *root,
		     const struct stagger_side *side, int64_t *ends)
{
	int64_t *weights = x_new(side->trees.n + 1, sizeof(*weights));

	for (size_t i = 0; i < side->trees.n; i++) {
		weights[i] = s->trees[side->trees.v[i]].t->weight;
	}
	apportion(weights, side->trees.n, root->n, ends);
	for (size_t i = 1; i < side->trees.n; i++) {
		ends[i] += ends[i - 1];
	}
	free(weights);
}

/* What goes in along one tree and out along one. */
static void cut_root(const struct stagger *s, const struct stagger_root *root,
		     struct stagger_cut *cut)
{
	size_t n_in = root->in.trees.n, n_out = root->out.trees.n, i = 0, o = 0;
	int64_t *in = x_new(n_in + 1, sizeof(*in)), *out = x_new(n_out + 1, sizeof(*out));

	if (n_in > 0) {
		cut_side(s, root, &root->in, in);
	}
	if (n_out > 0) {
		cut_side(s, root, &root->out, out);
	}
	for (int64_t at = 0, end; at < root->n; at = end) {
		struct stagger_piece p = { -1, -1, root->first + at, 0 };

		while (n_in > 0 && in[i] <= at) {
			i++;
		}
		while (n_out > 0 && out[o] <= at) {
			o++;
		}
		p.in = n_in > 0 ? root->in.trees.v[i] : -1;
		p.out = n_out > 0 ? root->out.trees.v[o] : -1;
		end = n_in > 0 ? in[i] : root->n;
		end = n_out > 0 && out[o] < end ? out[o] : end;
		p.n = end - at;
		vec_push(&cut->pieces, p);
	}
	free(in);
	free(out);
}

/* A root's own shard, or its part of all that are named. */
static void give_labels(const struct stagger *s, struct stagger_roots *r, int64_t shards,
			int chunks)
{
	bool own = is_own(s->opt->kind);
	int64_t *weights = x_new(2 * r->list.n + 1, sizeof(*weights)), *part, at = 0;

	part = weights + r->list.n;
	for (size_t i = 0; i < r->list.n; i++) {
		weights[i] = r->list.v[i].weight;
	}
	if (!own) {
		apportion(weights, r->list.n, shards * chunks, part);
	}
	for (size_t i = 0; i < r->list.n; i++) {
		struct stagger_root *root = &r->list.v[i];

		root->first = own ? (int64_t)root->root * chunks : at;
		root->n = own ? chunks : part[i];
		at += root->n;
	}
	free(weights);
}

static void add_batches(const struct stagger *s, struct stagger_cut *cut, int64_t size)
{
	for (size_t i = 0; i < cut->pieces.n; i++) {
		const struct stagger_piece *p = &cut->pieces.v[i];
		int64_t n = (p->n + size - 1) / size;

		for (int64_t k = 0; k < n; k++) {
			int64_t from = p->n * k / n, to = p->n * (k + 1) / n;
			struct stagger_batch b = {
				(int32_t)i, (int32_t)(to - from), p->first + from,
				(double)(2 * k + 1) / (double)(2 * n),
				((double)k + ((double)i + 0.5) / (double)cut->pieces.n) / (double)n,
			};

			vec_push(&cut->batches, b);
		}
		cut->moves += n * ((p->in >= 0) + (p->out >= 0)) * (s->n - 1);
	}
}

/* Units that the weights of what `shards` shards hold are cut into: all, or fewer where a
 * schedule would have too many moves. */
static int64_t count_units(const struct stagger *s, const struct stagger_roots *r, int64_t shards,
			   int64_t units, int64_t max_moves)
{
	int64_t sides = s->opt->kind == COLL_ALLREDUCE ? 2 : 1;
	bool own = is_own(s->opt->kind);
	int64_t moves = sides * (s->n - 1) * (own ? (int64_t)r->list.n : 1);
	int64_t fit = EXACT_MOVES / moves, rounded = max_moves / moves;

	rounded = rounded < ROUNDED_UNITS * shards ? rounded : ROUNDED_UNITS * shards;
	fit = fit > rounded ? fit : rounded;
	if (units < fit) {
		return units;
	}
	return fit > shards ? fit : shards;
}

int stagger_cut_init(const struct stagger *s, int64_t batches, int64_t max_moves,
		     struct stagger_cut *cut, struct err *err)
{
	bool own = is_own(s->opt->kind);
	struct stagger_roots r = { 0 };
	int64_t shards = own ? 1 : coll_has_root(s->opt->kind) || !s->f->group
				     ? s->ranks : topo_group_orbits(s->f->group);
	int64_t slots, chunks, size;
	int rc = find_roots(s, &r, err);

	if (rc) {
		roots_fini(&r);
		return rc;
	}
	slots = count_units(s, &r, shards, (own ? s->f->share : r.weight) / r.unit, max_moves);
	slots *= batches;
	chunks = slots / rat_gcd(shards, slots);
	size = shards / rat_gcd(shards, slots);
	if (chunks > COLL_MAX_CHUNKS) {
		rc = err_set(err, WEFT_ELIMIT, "%lld batches: %lld chunks a shard, more than %d",
			     (long long)batches, (long long)chunks, COLL_MAX_CHUNKS);
	}
	cut->chunks = (int)chunks;
	if (rc == 0) {
		give_labels(s, &r, shards, cut->chunks);
		for (size_t i = 0; i < r.list.n; i++) {
			cut_root(s, &r.list.v[i], cut);
		}
		add_batches(s, cut, size);
	}
	roots_fini(&r);
	return rc;
}

void stagger_cut_fini(struct stagger_cut *cut)
{
	vec_fini(&cut->pieces);
	vec_fini(&cut->batches);
}
