/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optree_plan(): the depth with the fewest steps that the loss budget allows,
 * and everything that follows from it. Shapes of all depths are tried by
 * their lower bound of steps, so that the first ones built rule out most of
 * the others; the work is bounded by lightpaths built, not by time.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "optree/baselines/baselines.h"

static const struct rwa_arc *longest(const struct optree_params *p, const struct tree_light *t,
				     int *hops)
{
	const struct rwa_arc *best = NULL;

	*hops = 0;
	for (int64_t k = 0; k < t->n_arcs; k++) {
		const struct rwa_arc *a = &t->arcs[k];
		int links = optree_links(p, a->src, a->dst, a->dir);

		if (links > *hops) {
			*hops = links;
			best = a;
		}
	}
	return best;
}

int tree_check_reach(const struct optree_params *p, const struct tree_light *t,
		     int *hops, int64_t *worst_mdb, struct err *err)
{
	struct rwa_ring ring = { p->at && p->ring_nodes ? p->ring_nodes : p->n,
				 p->fibres, p->channels };
	const struct rwa_arc *a = longest(p, t, hops);

	*worst_mdb = p->loss ? rwa_path_loss_mdb(&ring, p->loss, *hops) : 0;
	if (!p->loss || *hops <= rwa_reach_hops(&ring, p->loss)) {
		return 0;
	}
	return tree_out_of_reach(p, a->src, a->dst, *hops, err);
}

/* Links of the longest lightpath of each step, summed over the steps. */
static void sum_longest(const struct optree_params *p, const struct tree_light *t, int64_t *links)
{
	int32_t *most = x_new((size_t)t->steps + 1, sizeof(*most));

	for (int64_t k = 0; k < t->n_arcs; k++) {
		const struct rwa_arc *a = &t->arcs[k];
		int hops = optree_links(p, a->src, a->dst, a->dir);

		most[a->slot] = hops > most[a->slot] ? hops : most[a->slot];
	}
	*links = 0;
	for (int step = 0; step < t->steps; step++) {
		*links += most[step];
	}
	free(most);
}

int tree_time_ns(const struct optree_params *p, const struct tree_light *t, int64_t *ns,
		 struct err *err)
{
	int64_t sending = tree_ceil_muldiv(p->shard_bytes, t->steps * INT64_C(8000000000),
					   p->channel_bps);
	int64_t links = 0;
	__int128 sum;

	if (p->span_delay_ns) {
		sum_longest(p, t, &links);
	}
	sum = sending + (__int128)t->steps * p->alpha_ns + (__int128)links * p->span_delay_ns;
	if (sending < 0 || sum > INT64_MAX) {
		return err_set(err, WEFT_ELIMIT, "%d steps last longer than 292 years", t->steps);
	}
	*ns = (int64_t)sum;
	return 0;
}

/* Lightpaths that the search for the fewest steps may build in all. */
#define SEARCH_LIGHTPATHS ((int64_t)6 << 20)

struct tree_choice {
	const struct optree_params *p;
	struct rwa_ring ring;
	struct tree_light best;
	int depth;		/* of best, 0: none yet */
	int64_t cost;		/* of best: steps, where links take time that */
	int64_t worst_mdb;
	int64_t built;		/* lightpaths, of all shapes tried */
	int min_hops;		/* longest lightpath of the nearest miss */
	struct err miss;
};

static int by_promise(const void *a, const void *b)
{
	const struct tree_shape *x = a, *y = b;

	if (x->min_steps != y->min_steps) {
		return x->min_steps < y->min_steps ? -1 : 1;
	}
	if (x->depth != y->depth) {
		return x->depth - y->depth;
	}
	if (x->rounded_steps != y->rounded_steps) {
		return x->rounded_steps < y->rounded_steps ? -1 : 1;
	}
	return memcmp(x->radix, y->radix, sizeof(x->radix));
}

/* All shapes worth a try, the most promising first. */
static int make_shapes(const struct tree_choice *ch, struct tree_shape *out)
{
	const struct optree_params *p = ch->p;
	struct tree_request request = { .n = p->n, .line = p->line, .mixed = p->depth == 0,
				  .width = (int64_t)ch->ring.channels * ch->ring.fibres };
	struct err ignored;
	int from = p->depth ? p->depth : 1, n = 0;
	int to = p->depth ? p->depth : tree_max_depth(p->n);

	/* What is out of reach is named when the nearest shape is checked. */
	make_reach(p, &request.reach, &ignored);
	for (int k = from; k <= to; k++) {
		n += tree_shapes(&request, k, out + n);
	}
	qsort(out, (size_t)n, sizeof(*out), by_promise);
	return n;
}

/* What no tree of so many steps goes below: each has a link at least. */
static int64_t min_cost(const struct tree_choice *ch, int64_t steps)
{
	const struct optree_params *p = ch->p;
	__int128 ns = (__int128)steps * (p->alpha_ns + p->span_delay_ns) +
		      (__int128)p->shard_bytes * steps * 8000000000 / p->channel_bps;

	if (!p->span_delay_ns) {
		return steps;
	}
	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

/* Nothing is known yet, or this shape may still win and there is work left. */
static bool worth_building(const struct tree_choice *ch, const struct tree_shape *s)
{
	int64_t least = min_cost(ch, s->min_steps);

	if (!ch->depth) {
		return true;
	}
	return (least < ch->cost || (least == ch->cost && s->depth < ch->depth)) &&
	       ch->built < SEARCH_LIGHTPATHS;
}

static void remember_miss(struct tree_choice *ch, int hops, const struct err *err)
{
	if (!ch->min_hops || hops < ch->min_hops) {
		ch->min_hops = hops;
		ch->miss = *err;
	}
}

/* Where links take no time, that of a tree follows from its steps. */
static int cost_of(const struct tree_choice *ch, const struct tree_light *t,
		   int64_t *cost, struct err *err)
{
	*cost = t->steps;
	return ch->p->span_delay_ns ? tree_time_ns(ch->p, t, cost, err) : 0;
}

/* Builds a shape; keeps it when it is better. */
static int try_shape(struct tree_choice *ch, const struct tree_shape *s, struct err *err)
{
	struct tree_light t = { 0 };
	struct err miss = { 0 };
	int64_t worst_mdb, cost = 0;
	int hops, rc = tree_build(&ch->ring, s, &t, err);

	if (rc || (rc = cost_of(ch, &t, &cost, err))) {
		goto out;
	}
	ch->built += t.n_arcs;
	if (tree_check_reach(ch->p, &t, &hops, &worst_mdb, &miss)) {
		remember_miss(ch, hops, &miss);
	} else if (!ch->depth || cost < ch->cost || (cost == ch->cost && s->depth < ch->depth)) {
		tree_light_fini(&ch->best);
		ch->best = t;
		ch->cost = cost;
		ch->depth = s->depth;
		ch->worst_mdb = worst_mdb;
		return 0;
	}
out:
	tree_light_fini(&t);
	return rc;
}

void tree_min_steps(const struct optree_params *p, int64_t *steps)
{
	struct tree_choice ch = { .p = p, .ring = tree_ring(p) };
	struct tree_shape *shapes = x_new(OPTREE_MAX_DEPTH * TREE_SHAPES_MAX, sizeof(*shapes));
	int n;

	n = make_shapes(&ch, shapes);
	*steps = n > 0 ? shapes[0].min_steps : 0;
	free(shapes);
}

static int choose(struct tree_choice *ch, struct err *err)
{
	struct tree_shape *shapes = x_new(OPTREE_MAX_DEPTH * TREE_SHAPES_MAX, sizeof(*shapes));
	int n, rc = 0;

	n = make_shapes(ch, shapes);
	for (int k = 0; !rc && k < n; k++) {
		if (worth_building(ch, &shapes[k])) {
			rc = try_shape(ch, &shapes[k], err);
		}
	}
	if (!rc && !ch->depth) {
		rc = err_set(err, ch->miss.code, "%s", ch->miss.msg);
	}
	free(shapes);
	return rc;
}

static int radix_of(int n, int depth)
{
	int m = 2;

	for (;; m++) {
		int64_t power = 1;

		for (int j = 0; j < depth && power < n; j++) {
			power *= m;
		}
		if (power >= n) {
			return m;
		}
	}
}

static int fill_plan(const struct tree_choice *ch, struct optree_plan *out, struct err *err)
{
	const struct optree_params *p = ch->p;
	const struct tree_light *t = &ch->best;
	int rc = tree_time_ns(p, t, &out->time_ns, err);

	if (rc) {
		return rc;
	}
	out->algorithm = OPTREE_TREE;
	out->chunks = 1;
	out->rounds = t->n_levels;
	make_published(p, ch->depth, out);
	out->depth = ch->depth;
	out->radix = radix_of(p->n, ch->depth);
	out->n_levels = t->n_levels;
	memcpy(out->level, t->level, sizeof(out->level));
	out->steps = t->steps;
	out->colours_over_bound = t->colours_over_bound;
	out->worst_loss_mdb = ch->worst_mdb;
	out->lightpaths = t->n_arcs;
	return 0;
}

int tree_plan(const struct optree_params *p, struct optree_plan *out, struct err *err)
{
	struct tree_choice ch = { .p = p, .ring = tree_ring(p) };
	int rc;

	memset(out, 0, sizeof(*out));
	rc = tree_check_params(p, err);
	if (!rc) {
		rc = part_supports(p, OPTREE_TREE, err);
	}
	if (!rc && !(rc = choose(&ch, err)) && !(rc = fill_plan(&ch, out, err))) {
		rc = tree_schedule(p, &ch.best, &out->sched, err);
	}
	tree_light_fini(&ch.best);
	return rc;
}
