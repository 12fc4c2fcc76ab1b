/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of all nodes of one direction are solved: for their loads or,
 * with latencies, for the times of the levels. */
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/private.h"
#include "lib/base/alloc.h"

/* Up to this part of the nodes searching from each is cheaper than growing
 * the sets of all. */
#define FEW_SOURCES 64

/* Raises the top of level t. */
static void raise_top(struct bfb_side *s, int t, struct bfb_ratio load)
{
	while (s->tops.n < (size_t)t) {
		vec_push(&s->tops, (struct bfb_ratio){ 0, 1 });
	}
	if (bfb_ratio_cmp(load, s->tops.v[t - 1]) > 0) {
		s->tops.v[t - 1] = load;
	}
}

/* The least load of the view's node at distance t; or, when that is less than
 * `top`, the largest of other nodes, perhaps top: it decides nothing then. */
static int solve_level(struct bfb_view *v, int t, struct bfb_ratio top,
		       struct bfb_ratio *load, struct err *err)
{
	int64_t items[1 << BFB_MAX_SUBSET_LINKS];
	struct bfb_program b;
	int rc;

	if (v->n_links <= BFB_MAX_SUBSET_LINKS) {
		memset(items, 0, sizeof(*items) << v->n_links);
		for (int i = v->level[t]; i < v->level[t + 1]; i++) {
			items[*bfb_usable(v, v->queue[i])]++;
		}
		*load = bfb_subsets_load(items, v->caps, v->n_links);
		return 0;
	}
	bfb_load_program(v, t, &b);
	if (top.num > 0 && bfb_program_is_below(&b, top)) {
		*load = top;
		rc = 0;
	} else {
		rc = bfb_program_solve(&b, load, err);
	}
	bfb_program_fini(&b);
	return rc;
}

/* When the view's node has all of distance t, whole chunks of it over
 * share[use]. Raises the time of the level. b: bfb_program_fini, also after an
 * error; *share: free(). */
static int time_level(struct bfb_side *s, struct bfb_view *v, int t,
		      struct bfb_program *b, int64_t **share, struct err *err)
{
	bfb_load_program(v, t, b);
	*share = NULL;
	*share = x_alloc((size_t)b->n_use + 1, sizeof(**share));
	bfb_times_need(&s->until, (size_t)t);
	bfb_times_need(&s->bounds, (size_t)t);
	return bfb_timing_solve(s->timed, b, v->latencies, s->until.v[t - 1],
				s->bounds.v[t - 1], *share, err);
}

static int time_node(struct bfb_side *s, struct bfb_view *v, int node, struct err *err)
{
	int rc = bfb_view_load(v, node, err);

	for (int t = 1; t <= v->levels && !rc; t++) {
		struct bfb_program b;
		int64_t *share;

		rc = time_level(s, v, t, &b, &share, err);
		free(share);
		bfb_program_fini(&b);
	}
	return rc;
}

static int solve_node(struct bfb_side *s, struct bfb_view *v, int node, struct err *err)
{
	int rc = bfb_view_load(v, node, err);

	for (int t = 1; t <= v->levels && !rc; t++) {
		struct bfb_ratio load = { 0, 1 }, top = { 0, 1 };

		if (s->tops.n >= (size_t)t) {
			top = s->tops.v[t - 1];
		}
		rc = solve_level(v, t, top, &load, err);
		if (!rc) {
			raise_top(s, t, load);
		}
	}
	return rc;
}

void bfb_side_fini(struct bfb_side *s)
{
	vec_fini(&s->tops);
	bfb_times_fini(&s->until);
	bfb_times_fini(&s->bounds);
}

/* Node by node: where a few stand for all, and where bits would take too much
 * memory. */
static int solve_nodes(struct bfb_side *s, struct err *err)
{
	struct bfb_view v;
	int rc = 0;

	bfb_view_init(&v, s->t);
	for (int u = 0; u < s->sources && !rc; u++) {
		rc = s->timed ? time_node(s, &v, u, err)
			      : solve_node(s, &v, u, err);
	}
	bfb_view_fini(&v);
	return rc;
}

/* Nodes, the first of all, that stand for the rest: translations move them,
 * and the mirror turns a run that they move round. */
static int count_solved(const struct bfb_side *s)
{
	return topo_has_mirror(s->t) ? s->sources - s->sources / 2 : s->sources;
}

int bfb_side_solve(struct bfb_side *s, const struct topo *t, int sources,
		   const struct bfb_timing *timed, struct err *err)
{
	int n = topo_n(t), rc;

	*s = (struct bfb_side){ .t = t, .timed = timed, .sources = sources };
	if (!timed && s->sources > n / FEW_SOURCES && bfb_bounds_can(t)) {
		rc = bfb_bounds_solve(t, count_solved(s), &s->tops, err);
	} else {
		rc = solve_nodes(s, err);
	}
	s->diameter = (int)(timed ? s->until.n : s->tops.n);
	return rc;
}
