/* Forests of packed arborescences: see pack.h. */
#include <stdlib.h>

#include "collective/tree/pack_private.h"
#include "lib/base/rat.h"

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
	if ((rc = topo_check_order(t, err)) == 0) {
		rc = topo_check_plain(t, "packing trees", err);
	}
	return rc;
}

/* ---- the forest ---- */

/* Trees of the digraph; back: those of its transpose, whose arc a is arc back[a] here. They
 * go over to out. */
static int take_trees(struct graph_trees *trees, const int32_t *back, struct coll_forest *out,
		      struct err *err)
{
	int n = topo_n(out->logical);

	if (vec_reserve(&out->trees, trees->list.n)) {
		return err_nomem(err);
	}
	for (size_t i = 0; i < trees->list.n; i++) {
		struct graph_tree *t = &trees->list.v[i];
		struct coll_forest_tree *tree = &out->trees.v[out->trees.n++];

		*tree = (struct coll_forest_tree){ .inwards = back, .weight = t->weight,
						   .via = t->via, .depth = t->deepest };
		t->via = NULL;
		for (int v = 0; v < n; v++) {
			tree->root = tree->via[v] < 0 ? v : tree->root;
			if (back && tree->via[v] >= 0) {
				tree->via[v] = back[tree->via[v]];
			}
		}
	}
	return 0;
}

/* The fullest arc's load over its capacity and the share. */
static int measure(const struct topo *t, struct coll_forest *f, struct err *err)
{
	int64_t *load = calloc((size_t)topo_m(t) + 1, sizeof(*load));
	mpq_t time;

	if (!load) {
		return err_nomem(err);
	}
	for (size_t i = 0; i < f->trees.n; i++) {
		for (int v = 0; v < topo_n(f->logical); v++) {
			int a = f->trees.v[i].via[v];

			if (a >= 0) {
				load[a] += f->trees.v[i].weight;
			}
		}
	}
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
	return 0;
}

static int pack_trees(const struct pack_net *net, const struct pack_rate *rate,
		      struct graph_trees *trees, struct err *err)
{
	struct graph_root *roots = calloc((size_t)net->n_roots, sizeof(*roots));
	int rc;

	if (!roots) {
		return err_nomem(err);
	}
	for (int i = 0; i < net->n_roots; i++) {
		roots[i] = (struct graph_root){ net->roots[i], rate->share };
	}
	rc = graph_pack_from_roots(net->n, rate->arcs, net->m, roots, net->n_roots, trees, err);
	free(roots);
	return rc;
}

/* Trees away from the roots on t, which is the transpose of out->logical where back is given. */
static int pack(const struct topo *t, const struct coll_pack_options *opt, const int32_t *back,
		struct coll_forest *out, struct err *err)
{
	struct pack_net net = { 0 };
	struct pack_rate rate = { 0 };
	struct graph_trees trees = { 0 };
	int rc;

	if ((rc = pack_net_init(&net, t, opt->kind, opt->root, err)) ||
	    (rc = pack_rate_find(&net, opt->share, &rate, err)) ||
	    (rc = pack_trees(&net, &rate, &trees, err)) ||
	    (rc = take_trees(&trees, back, out, err))) {
		goto out;
	}
	out->share = rate.share;
	rc = measure(out->logical, out, err);
out:
	graph_trees_fini(&trees);
	pack_rate_fini(&rate);
	pack_net_fini(&net);
	return rc;
}

int coll_forest_pack(const struct topo *t, const struct coll_pack_options *opt,
		     struct coll_forest *out, struct err *err)
{
	struct topo *transposed = NULL;
	int32_t *back = NULL;
	int rc = check(t, opt, err);

	if (rc || (rc = topo_copy(t, &out->logical, err))) {
		return rc;
	}
	if (is_inwards(opt->kind)) {
		back = malloc(((size_t)topo_m(t) + 1) * sizeof(*back));
		rc = back ? topo_transpose(t, &transposed, back, err) : err_nomem(err);
	}
	if (rc == 0) {
		rc = pack(transposed ? transposed : t, opt, back, out, err);
	}
	topo_free(transposed);
	free(back);
	return rc;
}
