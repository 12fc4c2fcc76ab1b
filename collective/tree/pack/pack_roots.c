/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An all-reduce along trees of few roots, where some ranks have thinner links than others.
 *
 * Half of each link is for trees that sum, half for trees that copy, and a part of the vector goes
 * along one of either with the same root. A rank takes in what is not summed in it: with capacity c
 * of its links, both ways, and all parts at rate R, parts of R - c / 2 or more are summed in it. If
 * all have equal parts the thinnest decides; here they have just what they need, and R is the most
 * of which the ranks' parts are all: GenKautz(4,64) has four ranks of three links, and with a
 * quarter of the vector in each all links are busy throughout. Where larger sets need more the
 * links pass the same in a little more time.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/cut_bound.h"
#include "collective/tree/pack/pack_private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

/* Time is added by 1 / FINE, FINE / 4 times at most, until all sets have what they need. */
#define FINE 16

struct roots_net {
	int n, m;
	struct graph_arc *arcs;		/* m, in lowest terms, of the digraph or its transpose; then
					 * n_roots to these from node n */
	int64_t *cap;			/* n: out of or into a node, whichever is less */
	int64_t units;			/* of an arc's unit of capacity, each way */
	int64_t rate;			/* of all roots */
	int n_roots;
	struct graph_root *roots;
	struct arrays arrays;
};

static int roots_init(struct roots_net *r, const struct topo *t, struct err *err)
{
	int64_t *in, unit;
	int rc;

	*r = (struct roots_net){ .n = topo_n(t), .m = topo_m(t) };
	arrays_add(&r->arrays, r->arcs, r->m + r->n);
	arrays_add(&r->arrays, r->cap, r->n);
	arrays_add(&r->arrays, r->roots, r->n);
	arrays_add(&r->arrays, in, r->n);
	rc = coll_cut_arcs(t, r->arcs, &unit, err);
	for (int a = 0; a < r->m && rc == 0; a++) {
		r->cap[r->arcs[a].from] += r->arcs[a].cap;
		in[r->arcs[a].to] += r->arcs[a].cap;
	}
	for (int v = 0; v < r->n; v++) {
		r->cap[v] = in[v] < r->cap[v] ? in[v] : r->cap[v];
	}
	return rc;
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* With the k thinnest ranks as roots, k R - (sum of their capacities) = R, and the next has enough
 * without. */
static int choose_roots(struct roots_net *r, struct err *err)
{
	int64_t *sorted = x_alloc((size_t)r->n + 1, sizeof(*sorted)), sum, gcd;
	int k = 2;

	memcpy(sorted, r->cap, (size_t)r->n * sizeof(*sorted));
	qsort(sorted, (size_t)r->n, sizeof(*sorted), ascending);
	for (sum = sorted[0] + sorted[1]; k < r->n && sum > sorted[k] * (k - 1); k++) {
		sum += sorted[k];
	}
	free(sorted);
	if (k == r->n || sum == 0) {
		return err_set(err, WEFT_EUNSUPPORTED, "few roots: no rank has thinner links than "
			       "most");
	}
	gcd = rat_gcd(sum, k - 1);
	r->rate = sum / gcd * FINE;
	r->units = (k - 1) / gcd * FINE;
	for (int v = 0; v < r->n; v++) {
		int64_t weight = r->rate - r->units * r->cap[v];

		if (weight > 0) {
			r->roots[r->n_roots++] = (struct graph_root){ v, weight };
		}
	}
	return 0;
}

/* Arcs of r->units a unit of capacity, one way, and to the roots. */
static struct graph_arc *scaled(const struct roots_net *r, bool inwards)
{
	struct graph_arc *arcs = x_alloc((size_t)(r->m + r->n_roots), sizeof(*arcs));

	for (int a = 0; a < r->m; a++) {
		const struct graph_arc *x = &r->arcs[a];

		arcs[a] = (struct graph_arc){ inwards ? x->to : x->from, inwards ? x->from : x->to,
					      x->cap * r->units };
	}
	for (int i = 0; i < r->n_roots; i++) {
		arcs[r->m + i] = (struct graph_arc){ r->n, r->roots[i].node, r->roots[i].weight };
	}
	return arcs;
}

/* Whether all sets have what they need, both ways. */
static int is_enough(const struct roots_net *r, bool *ok, struct err *err)
{
	int rc = 0;

	*ok = true;
	for (int inwards = 0; inwards < 2 && *ok && rc == 0; inwards++) {
		struct graph_arc *arcs = scaled(r, inwards);
		int64_t least;

		rc = graph_root_cut(r->n + 1, arcs, r->m + r->n_roots, r->n, r->n, &least, err);
		*ok = rc == 0 && least >= r->rate;
		free(arcs);
	}
	return rc;
}

static int find_time(struct roots_net *r, struct err *err)
{
	int64_t step = r->units / FINE;
	bool ok = false;

	for (int i = 0; i <= FINE / 4 && !ok; i++) {
		int rc = is_enough(r, &ok, err);

		if (rc) {
			return rc;
		}
		r->units += ok ? 0 : step;
	}
	return ok ? 0 : err_set(err, WEFT_EUNSUPPORTED, "few roots: sets of ranks have much "
				"thinner links than each of them");
}

/* Weights times ranks, and the rate as a share. */
static int pack_half(const struct roots_net *r, bool inwards, struct coll_forest *out,
		    struct err *err)
{
	struct graph_arc *arcs = scaled(r, inwards);
	struct graph_trees trees = { 0 };
	int rc = graph_pack_from_roots(r->n, arcs, r->m, r->roots, r->n_roots, &trees, err);

	for (size_t i = 0; i < trees.list.n && rc == 0; i++) {
		trees.list.v[i].weight *= r->n;
	}
	if (rc == 0) {
		pack_take_trees(&trees, NULL, inwards, out);
	}
	graph_trees_fini(&trees);
	free(arcs);
	return rc;
}

int coll_forest_few_roots(const struct topo *t, struct coll_forest *out, struct err *err)
{
	struct roots_net r = { 0 };
	int rc = topo_check_plain(t, "an all-reduce from few roots", err);

	if (rc) {
		return rc;
	}
	if (topo_n(t) < 3) {
		return err_set(err, WEFT_EUNSUPPORTED, "few roots: fewer than three ranks");
	}
	(void)((rc = topo_copy(t, &out->logical, err)) || (rc = roots_init(&r, t, err)) ||
	       (rc = choose_roots(&r, err)) || (rc = find_time(&r, err)) ||
	       (rc = pack_half(&r, false, out, err)) || (rc = pack_half(&r, true, out, err)));
	if (rc == 0) {
		out->share = r.rate;
		pack_measure(t, out);
	}
	arrays_fini(&r.arrays);
	return rc;
}
