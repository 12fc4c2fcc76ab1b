/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forests of packed arborescences: see pack.h. The best rate gives every arc a whole number
 * of units that it may pass (pack_rate.c); arcs through switches become arcs between
 * terminals (pack_split.c, pack_logical.c); trees are packed into these, and what they then send
 * over physical arcs is counted once more, which is the time.
 */
#include <stdlib.h>

#include "collective/tree/pack/pack_private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

static bool is_inwards(enum coll_kind kind)
{
	return kind == COLL_REDUCE_SCATTER || kind == COLL_REDUCE;
}

static int check(const struct topo *t, const struct coll_pack_options *opt, struct err *err)
{
	bool one = coll_has_root(opt->kind);
	int rc;

	if (opt->kind != COLL_ALLGATHER && opt->kind != COLL_REDUCE_SCATTER &&
	    opt->kind != COLL_BROADCAST && opt->kind != COLL_REDUCE) {
		return err_set(err, WEFT_EINVAL, "%s is not made of trees",
			       coll_kind_name(opt->kind));
	}
	if (one && (opt->root < 0 || opt->root >= topo_ranks(t))) {
		return err_set(err, WEFT_EINVAL, "root %d is not one of the %d ranks", opt->root,
			       topo_ranks(t));
	}
	if (opt->share < 0 || opt->share > COLL_MAX_PACK_SHARE) {
		return err_set(err, WEFT_EINVAL, "a share of %lld units: expected 1 to 2^40",
			       (long long)opt->share);
	}
	if (opt->loss < 0 || opt->loss > COLL_MAX_PACK_LOSS) {
		return err_set(err, WEFT_EINVAL, "%d thousandths of the time: expected 0 to %d",
			       opt->loss, COLL_MAX_PACK_LOSS);
	}
	if ((rc = topo_check_order(t, err)) == 0) {
		rc = topo_check_unlimited(t, "packing trees", err);
	}
	return rc;
}

/* ---- the forest ---- */

void pack_take_trees(struct graph_trees *trees, const int32_t *number, bool inwards,
		     struct coll_forest *out)
{
	int n = topo_n(out->logical);

	vec_reserve(&out->trees, trees->list.n);
	for (size_t i = 0; i < trees->list.n; i++) {
		struct graph_tree *t = &trees->list.v[i];
		struct coll_forest_tree *tree = &out->trees.v[out->trees.n++];

		*tree = (struct coll_forest_tree){ .inwards = inwards, .weight = t->weight,
						   .via = t->via, .depth = t->deepest };
		t->via = NULL;
		for (int v = 0; v < n; v++) {
			tree->root = tree->via[v] < 0 ? v : tree->root;
			if (number && tree->via[v] >= 0) {
				tree->via[v] = number[tree->via[v]];
			}
		}
	}
}

/* What the trees send over the physical arcs. Routes are one an arc. */
static void add_loads(const struct coll_forest *f, int64_t *load)
{
	for (size_t i = 0; i < f->trees.n; i++) {
		const struct coll_forest_tree *tree = &f->trees.v[i];

		for (int v = 0; v < topo_n(f->logical); v++) {
			int a = tree->via[v];
			const struct coll_forest_route *r = a >= 0 && f->routes.n > 0
								    ? &f->routes.v[a] : NULL;

			if (a >= 0 && !r) {
				load[a] += tree->weight;
			}
			for (int h = 0; r && h < r->n; h++) {
				load[f->hops.v[r->first + h]] += tree->weight;
			}
		}
	}
}

void pack_measure(const struct topo *t, struct coll_forest *f)
{
	int64_t *load = x_new((size_t)topo_m(t) + 1, sizeof(*load));
	mpq_t time;

	add_loads(f, load);
	mpq_init(time);
	for (int a = 0; a < topo_m(t); a++) {
		rat_set(time, load[a], topo_arc(t, a)->cap);
		if (mpq_cmp(time, f->time) > 0) {
			mpq_set(f->time, time);
		}
	}
	rat_set(time, f->share, 1);
	mpq_div(f->time, f->time, time);
	mpq_clear(time);
	free(load);
}

/* Trees of arcs that are as many, by number, as those of net->n or fewer nodes. One root has few
 * trees, and trees grown arc by arc are shallower then. */
static int pack_trees(const struct pack_net *net, const struct pack_rate *rate,
		      const struct graph_arc *arcs, int m, struct graph_trees *trees,
		      struct err *err)
{
	struct graph_root *roots = x_new((size_t)net->n_roots, sizeof(*roots));
	int rc;

	for (int i = 0; i < net->n_roots; i++) {
		roots[i] = (struct graph_root){ net->roots[i], rate->share };
	}
	rc = net->n_roots == 1
		     ? graph_pack_trees(net->ranks, arcs, m, net->roots[0], rate->share, trees, err)
		     : graph_pack_from_roots(net->ranks, arcs, m, roots, net->n_roots, trees, err);
	free(roots);
	return rc;
}

/* The best rate, and arcs between terminals that allow it. Where a switch has more out than in,
 * and needs it, the rate is that of a digraph in which it has not. */
static int find_arcs(struct pack_net *net, const struct coll_pack_options *opt,
		     struct pack_rate *rate, struct pack_arcs *arcs, struct err *err)
{
	bool attained = false;

	for (int tries = 0; tries < 2 && !attained; tries++) {
		int rc;

		arcs->list.n = 0;
		pack_rate_fini(rate);
		if (tries > 0) {
			pack_balance(net);
		}
		if ((rc = pack_rate_find(net, opt, rate, err)) ||
		    (rc = pack_split(net, rate, arcs, &attained, err))) {
			return rc;
		}
	}
	return attained ? 0
			: err_set(err, WEFT_EUNSUPPORTED, "a share of %lld units does not go "
				  "through switches that have as much capacity out as in",
				  (long long)opt->share);
}

/* Through switches; back: net is of the transpose of t. */
static int pack_switched(struct pack_net *net, const struct topo *t,
			 const struct coll_pack_options *opt, const int32_t *back,
			 struct coll_forest *out, struct err *err)
{
	struct pack_rate rate = { 0 };
	struct pack_arcs arcs = { 0 };
	struct graph_arc *packed = NULL;
	struct graph_trees trees = { 0 };
	int rc;

	if ((rc = find_arcs(net, opt, &rate, &arcs, err)) ||
	    (rc = pack_logical(t, &arcs, back, out, &packed, err)) ||
	    (rc = pack_trees(net, &rate, packed, topo_m(out->logical), &trees, err))) {
		goto out;
	}
	pack_take_trees(&trees, NULL, back, out);
	out->share = rate.share;
out:
	graph_trees_fini(&trees);
	free(packed);
	vec_fini(&arcs.list);
	pack_rate_fini(&rate);
	return rc;
}

static int pack_plain(const struct pack_net *net, const struct topo *t,
		      const struct coll_pack_options *opt, const int32_t *back,
		      struct coll_forest *out, struct err *err)
{
	struct pack_rate rate = { 0 };
	struct graph_trees trees = { 0 };
	int rc;

	if ((rc = topo_copy(t, &out->logical, err)) ||
	    (rc = pack_rate_find(net, opt, &rate, err)) ||
	    (rc = pack_trees(net, &rate, rate.arcs, net->m, &trees, err))) {
		goto out;
	}
	pack_take_trees(&trees, back, back, out);
	out->share = rate.share;
out:
	graph_trees_fini(&trees);
	pack_rate_fini(&rate);
	return rc;
}

int coll_forest_pack(const struct topo *t, const struct coll_pack_options *opt,
		     struct coll_forest *out, struct err *err)
{
	struct pack_net net = { 0 };
	struct topo *transposed = NULL;
	int32_t *back = NULL;
	int rc = check(t, opt, err);

	if (rc) {
		return rc;
	}
	if (is_inwards(opt->kind)) {
		back = x_alloc((size_t)topo_m(t) + 1, sizeof(*back));
		rc = topo_transpose(t, &transposed, back, err);
	}
	if (rc || (rc = pack_net_init(&net, transposed ? transposed : t, opt->kind, opt->root,
				      err))) {
		goto out;
	}
	rc = net.n > net.ranks ? pack_switched(&net, t, opt, back, out, err)
			       : pack_plain(&net, t, opt, back, out, err);
	if (rc == 0) {
		pack_measure(t, out);
	}
out:
	pack_net_fini(&net);
	topo_free(transposed);
	free(back);
	return rc;
}
