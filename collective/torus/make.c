/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules of lines: where the trees of all dimensions meet.
 *
 * A node sends its sum of a shard in the earliest round in which its coordinate in that round's
 * dimension is not the shard's home yet: so at any time the coordinates that the shard is
 * still at are a product over the dimensions, and what a tree promises for a line holds for all.
 */
#include <stdlib.h>

#include "collective/torus/private.h"
#include "lib/base/alloc.h"

/* One collective of one shard, or of all that go along its tree. */
struct torus_tree {
	const struct torus_work *w;
	const struct torus_collective *c;
	struct torus_builder *b;
	int home;		/* the shard whose tree it is */
	int first, last;	/* shards that go along it */
	int chunk;
};

static int add(const struct torus_tree *r, int node, int dimension, int to, int step,
	       enum coll_op op, int dest, struct err *err)
{
	struct coll_xfer x = { .step = step, .dest = dest, .first = r->chunk, .last = r->chunk,
			       .op = (uint8_t)op };
	int rc = 0;

	for (x.origin = r->first; x.origin <= r->last && rc == 0; x.origin++) {
		rc = torus_builder_add(r->b, node, dimension, to, &x, err);
	}
	return rc;
}

/* When a node sends its sum, and where to; returns false for one that keeps it. */
static bool find_send(const struct torus_tree *r, int node, int *when, int *dimension, int *to)
{
	const struct torus_shape *s = r->w->shape;

	*when = -1;
	for (int e = 0; e < s->n_dims; e++) {
		const struct torus_line *l = r->c->line[e];
		int at = torus_digit(s, node, e) * l->d + torus_digit(s, r->home, e);
		int t = l->step[at] < 0 ? -1 : r->c->when[e][l->step[at]];

		if (t >= 0 && (*when < 0 || t < *when)) {
			*when = t;
			*dimension = e;
			*to = l->to[at];
		}
	}
	return *when >= 0;
}

/* ---- exchanges ---- */

/* A node to all its partners at once. */
static int exchange_directly(const struct torus_tree *r, const struct torus_round *k, int node,
			     struct err *err)
{
	const struct torus_line *l = r->c->line[k->dimension];
	int at = torus_digit(r->w->shape, node, k->dimension) * l->steps + l->level[k->level].first;
	int rc = 0;

	for (int i = l->first[at]; i < l->first[at + 1] && rc == 0; i++) {
		rc = add(r, node, k->dimension, l->partners.v[i].to, k->begin, COLL_OP_REDUCE,
			 COLL_NO_DEST, err);
	}
	return rc;
}

/* Whether a node still has a sum of the shard when exchanges along a dimension begin. */
static bool has_sum(const struct torus_tree *r, int e, int x)
{
	const struct torus_line *l = r->c->line[e];
	int step = l->step[x * l->d + torus_digit(r->w->shape, r->home, e)];

	return step < 0 || r->c->when[e][step] < 0;
}

/* Of levels: a node sends its own sum and passes on others. */
static int exchange_sums(const struct torus_tree *r, const struct torus_round *k, int node,
			 struct err *err)
{
	const struct torus_shape *s = r->w->shape;
	const struct torus_line *l = r->c->line[k->dimension];
	int e = k->dimension, x = torus_digit(s, node, e), first = l->level[k->level].first, rc = 0;

	for (size_t i = 0; i < l->sends.n && rc == 0; i++) {
		struct torus_send m = l->sends.v[i];
		int of = torus_at(s, node, e, (x + m.of) % l->d);

		if (m.step >= first && m.step < first + k->steps &&
		    has_sum(r, e, (x + m.to) % l->d)) {
			rc = add(r, node, e, (x + m.to) % l->d, k->begin + m.step - first,
				 m.of ? COLL_OP_FORWARD : COLL_OP_REDUCE, m.of ? of : COLL_NO_DEST,
				 err);
		}
	}
	return rc;
}

static int exchange(const struct torus_tree *r, int node, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < r->c->n_rounds && rc == 0; i++) {
		const struct torus_round *k = &r->c->round[i];

		if (k->exchange) {
			rc = r->c->line[k->dimension]->sends.n ? exchange_sums(r, k, node, err)
							       : exchange_directly(r, k, node, err);
		}
	}
	return rc;
}

/* ---- trees ---- */

static bool reduces(enum coll_kind kind)
{
	return kind == COLL_ALLREDUCE || kind == COLL_REDUCE_SCATTER || kind == COLL_REDUCE;
}

/* The sums of a node on their way there, and what comes of them on the way back. */
static int send(const struct torus_tree *r, int node, struct err *err)
{
	const struct torus_shape *s = r->w->shape;
	int when, e, to, rc = 0, end = r->c->reduced;

	if (!find_send(r, node, &when, &e, &to)) {
		return exchange(r, node, err);
	}
	if (reduces(r->b->kind)) {
		rc = add(r, node, e, to, when, COLL_OP_REDUCE, COLL_NO_DEST, err);
		end += r->c->steps;
	}
	if (rc == 0 && (r->b->kind == COLL_ALLREDUCE || !reduces(r->b->kind))) {
		int x = torus_digit(s, node, e);

		rc = add(r, torus_at(s, node, e, to), e, x, end - 1 - when, COLL_OP_COPY,
			 COLL_NO_DEST, err);
	}
	return rc;
}

static int send_all(const struct torus_tree *r, struct err *err)
{
	int rc = 0;

	for (int u = 0; u < topo_ranks(r->w->shape->t) && rc == 0; u++) {
		rc = send(r, u, err);
	}
	return rc;
}

/* All shards, of a compact schedule the first of each orbit; with a root all go along its tree. */
static int send_collective(struct torus_tree *r, int root, struct err *err)
{
	const struct topo_group *g = coll_group(r->b->sched);
	int ranks = topo_ranks(r->w->shape->t), rc = 0;

	if (coll_has_root(r->b->kind)) {
		r->home = root;
		r->first = 0;
		r->last = ranks - 1;
		return send_all(r, err);
	}
	for (int u = 0; u < ranks && rc == 0; u++) {
		if (topo_group_first(g, u) == u) {
			r->home = r->first = r->last = u;
			rc = send_all(r, err);
		}
	}
	return rc;
}

/* ---- the digraph and its group ---- */

static void join_partners(struct torus_builder *b, const struct torus_work *w)
{
	for (int m = 0; m < 2 && w->line[m][0]; m++) {
		for (int e = 0; e < w->shape->n_dims; e++) {
			const struct torus_line *l = w->line[m][e];

			for (int x = 0; x < l->d; x++) {
				for (int i = l->first[x * l->steps];
				     i < l->first[(x + 1) * l->steps]; i++) {
					torus_builder_join(b, e, x, l->partners.v[i].to);
				}
				for (size_t i = 0; i < l->sends.n; i++) {
					torus_builder_join(b, e, x, (x + l->sends.v[i].to) % l->d);
				}
			}
		}
	}
}

/* Moves the nodes as generator i of a line moves their coordinates. */
static void move_nodes(const struct torus_shape *s, int e, const struct torus_line *l, int i,
		       int32_t *image)
{
	for (int u = 0; u < topo_ranks(s->t); u++) {
		int x = torus_digit(s, u, e);

		image[u] = torus_at(s, u, e, l->image[i * l->d + x]);
	}
}

/* The product of the groups of all dimensions; NULL: none has one. */
static int product_group(const struct torus_work *w, struct topo_group **out, struct err *err)
{
	int n = 0, k = 0, ranks = topo_ranks(w->shape->t), rc;
	int orders[COLL_MAX_DIGITS * 2];
	int32_t *images;

	*out = NULL;
	for (int e = 0; e < w->shape->n_dims; e++) {
		n += w->line[0][e]->n_generators;
	}
	images = x_alloc((size_t)n * (size_t)ranks + 1, sizeof(*images));
	for (int e = 0; e < w->shape->n_dims; e++) {
		const struct torus_line *l = w->line[0][e];

		for (int i = 0; i < l->n_generators; i++, k++) {
			orders[k] = l->order[i];
			move_nodes(w->shape, e, l, i, images + (size_t)k * (size_t)ranks);
		}
	}
	rc = n ? topo_group_new(ranks, ranks, n, orders, images, out, err) : 0;
	free(images);
	return rc;
}

static int begin(struct torus_builder *b, const struct torus_work *w, enum coll_kind kind,
		 int root, struct err *err)
{
	struct topo_group *g = NULL;
	int rc = 0;

	torus_builder_init(b, w->shape, kind);
	b->paths = w->spec->paths;
	if (!coll_has_root(kind)) {
		rc = product_group(w, &g, err);
	}
	if (rc) {
		return rc;
	}
	join_partners(b, w);
	return torus_builder_begin(b, w->n_collectives, root, g, err);
}

static int make(const struct torus_work *w, enum coll_kind kind, int root,
		struct coll_sched **out, struct err *err)
{
	struct torus_builder b = { 0 };
	struct torus_tree r = { .w = w, .b = &b };
	int rc = begin(&b, w, kind, root, err);

	for (int c = 0; c < w->n_collectives && rc == 0; c++) {
		r.c = &w->collective[c];
		r.chunk = c;
		rc = send_collective(&r, root, err);
	}
	if (rc == 0) {
		rc = torus_builder_end(&b, out, err);
	}
	torus_builder_fini(&b);
	return rc;
}

int torus_make(struct torus_shape *s, const struct torus_spec *spec, enum coll_kind kind, int root,
	       struct coll_sched **out, struct err *err)
{
	struct torus_work w;
	int rc;

	*out = NULL;
	if (root < 0 || root >= topo_ranks(s->t)) {
		return err_set(err, WEFT_EINVAL, "root %d: there are %d ranks", root,
			       topo_ranks(s->t));
	}
	if (spec->lines == TORUS_RING && s->n_dims > 1) {
		return torus_rings(s, spec->one_port, kind, out, err);
	}
	rc = torus_work_begin(&w, s, spec, kind, NULL, err);
	if (rc == 0) {
		rc = make(&w, kind, root, out, err);
	}
	torus_work_end(&w);
	return rc;
}
