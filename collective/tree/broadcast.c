/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broadcast down packed arborescences, in batches that follow one another.
 *
 * With S steps a tree of depth d passes S - d + 1 batches, so a deep tree passes
 * fewer than a shallow one and none stands idle before the last step: with D
 * slots, the sum over the trees of weight times batches, a slot is 1/D of the
 * vector and every step lasts 1/D of the vector over a unit of capacity. The
 * time of all packings and all S is known from weights and depths alone; only
 * the best is made.
 */
#include <stdlib.h>

#include "collective/tree/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/number/rng.h"

#define MAX_ROWS (INT64_C(1) << 24)	/* where a cost asks for many batches */
#define DEFAULT_ROWS (INT64_C(1) << 22)
#define MAX_ORDERS 4			/* of the arcs, */
#define ORDERS_WORK (1 << 15)		/* while trees times arcs are fewer */
#define MAX_WORK (1 << 21)		/* trees times arcs: more would take long */
#define FILL_SHARE 16			/* default: T_B within 1/16 of its limit */

/* Some trees and a number of steps. */
struct tree_plan {
	struct graph_trees trees;
	mpq_t full;		/* the largest share of an arc that the trees take */
	int steps;
	int64_t slots;
	mpq_t time;		/* what is least: ns, or T_B times the unit */
};

/* What the choice depends on. */
struct tree_choices {
	const struct tree_net *net;
	const struct coll_tree_options *opt;
	int64_t step_ns;	/* beside its load; 0 without cost */
	mpq_t volume;		/* ns of the vector over a unit; 1 without cost */
	int64_t max_batches;	/* of all trees together */
};

static void plan_init(struct tree_plan *p)
{
	*p = (struct tree_plan){ 0 };
	mpq_inits(p->full, p->time, NULL);
}

static void plan_fini(struct tree_plan *p)
{
	graph_trees_fini(&p->trees);
	mpq_clears(p->full, p->time, NULL);
}

/* ---- how the vector is cut ---- */

/* Slot x begins with unit x * num / den of the vector, rounded down. */
struct tree_cut {
	int chunks;		/* of a shard */
	int64_t units;		/* ranks * chunks */
	int64_t num, den;
};

/* Slots of equal size, so many chunks, where a schedule has room for chunks of
 * that size; whole shards when ranks are many. */
static struct tree_cut cut_vector(const struct tree_net *net, int64_t slots)
{
	int64_t n = net->ranks, gcd = rat_gcd(n, slots), chunks = slots / gcd;
	struct tree_cut cut = { .chunks = 1, .num = n, .den = slots };

	if (n * n > DEFAULT_ROWS) {
		cut.num = slots <= n ? (n + slots - 1) / slots : n;
		cut.den = slots <= n ? 1 : slots;
	} else if (chunks <= COLL_MAX_CHUNKS) {
		cut.chunks = (int)chunks;
		cut.num = n / gcd;
		cut.den = 1;
	} else {
		cut.chunks = COLL_MAX_CHUNKS;
		cut.num = n * COLL_MAX_CHUNKS;
	}
	cut.units = n * cut.chunks;
	return cut;
}

static int64_t slot_start(const struct tree_cut *cut, int64_t slot)
{
	__int128 at = (__int128)slot * cut->num / cut->den;

	return at < cut->units ? (int64_t)at : cut->units;
}

/* ---- the choice ---- */

/* The largest share of an arc's capacity that the trees take. */
static void measure_trees(const struct tree_net *net, struct tree_plan *p)
{
	int64_t *used = x_new((size_t)net->m + 1, sizeof(*used));
	mpq_t share;

	mpq_init(share);
	for (size_t i = 0; i < p->trees.list.n; i++) {
		const struct graph_tree *t = &p->trees.list.v[i];

		for (int v = 0; v < net->n; v++) {
			if (t->via[v] >= 0) {
				used[t->via[v]] += t->weight;
			}
		}
	}
	for (int a = 0; a < net->m; a++) {
		if (used[a] > 0) {
			rat_set(share, used[a], net->arcs[a].cap);
			if (mpq_cmp(share, p->full) > 0) {
				mpq_set(p->full, share);
			}
		}
	}
	mpq_clear(share);
	free(used);
}

/* steps * (step_ns + volume * full * share of the vector in a slot). */
static void time_of(const struct tree_choices *c, const struct tree_plan *p, int steps,
		    int64_t slots, mpq_t time)
{
	struct tree_cut cut = cut_vector(c->net, slots);
	mpq_t q;

	mpq_init(q);
	rat_set(time, cut.num, cut.den);
	rat_set(q, 1, cut.units);
	mpq_mul(time, time, q);
	mpq_mul(time, time, p->full);
	mpq_mul(time, time, c->volume);
	rat_set(q, c->step_ns, 1);
	mpq_add(time, time, q);
	rat_set(q, steps, 1);
	mpq_mul(time, time, q);
	mpq_clear(q);
}

/* Whether more steps than these cannot be faster than `best`: every step has
 * its latency, and the vector its time at the full rate. */
static bool is_late(const struct tree_choices *c, const struct tree_plan *p, int steps,
		    int64_t rate, const mpq_t best)
{
	mpq_t least, q;
	bool late;

	mpq_inits(least, q, NULL);
	mpq_mul(least, c->volume, p->full);
	rat_set(q, 1, rate);
	mpq_mul(least, least, q);
	rat_set(q, c->step_ns, 1);
	mpz_mul_si(mpq_numref(q), mpq_numref(q), steps);
	mpq_add(least, least, q);
	late = mpq_cmp(least, best) >= 0;
	mpq_clears(least, q, NULL);
	return late;
}

/* Batches and slots of so many steps. */
static int64_t count_batches(const struct tree_plan *p, int steps, int64_t *slots)
{
	int64_t batches = 0;

	*slots = 0;
	for (size_t i = 0; i < p->trees.list.n; i++) {
		const struct graph_tree *t = &p->trees.list.v[i];
		int64_t own = steps >= t->deepest ? steps - t->deepest + 1 : 0;

		batches += own;
		*slots += own * t->weight;
	}
	return batches;
}

static int deepest(const struct graph_trees *trees)
{
	int most = 0;

	for (size_t i = 0; i < trees->list.n; i++) {
		most = trees->list.v[i].deepest > most ? trees->list.v[i].deepest : most;
	}
	return most;
}

static int shallowest(const struct graph_trees *trees)
{
	int least = trees->list.v[0].deepest;

	for (size_t i = 1; i < trees->list.n; i++) {
		least = trees->list.v[i].deepest < least ? trees->list.v[i].deepest : least;
	}
	return least;
}

/* Without a cost: T_B is near enough to its limit, 1 / rate. */
static bool is_filled(const struct tree_plan *p, int64_t rate)
{
	mpq_t limit;
	bool filled;

	mpq_init(limit);
	rat_set(limit, FILL_SHARE + 1, FILL_SHARE * rate);
	mpq_mul(limit, limit, p->full);
	filled = mpq_cmp(p->time, limit) <= 0;
	mpq_clear(limit);
	return filled;
}

/* The number of steps that is best for these trees, which weigh `rate`. */
static void choose_steps(const struct tree_choices *c, struct tree_plan *p, int64_t rate)
{
	int batches = c->opt->batches, first = shallowest(&p->trees), last = COLL_MAX_STEPS;
	mpq_t time;

	if (batches > 0) {
		first = last = deepest(&p->trees) + batches - 1;
	}
	mpq_init(time);
	for (int steps = first; steps <= last; steps++) {
		int64_t slots, all = count_batches(p, steps, &slots);

		if (p->steps > 0 && (all > c->max_batches ||
				     steps - first >= COLL_TREE_MAX_BATCHES ||
				     (c->opt->cost && is_late(c, p, steps, rate, p->time)))) {
			break;
		}
		time_of(c, p, steps, slots, time);
		if (p->steps == 0 || mpq_cmp(time, p->time) < 0) {
			p->steps = steps;
			p->slots = slots;
			mpq_set(p->time, time);
		}
		if (!c->opt->cost && is_filled(p, rate)) {
			break;
		}
	}
	mpq_clear(time);
}

/* Arcs in another order: which is to be taken first decides which trees grow.
 * Order 0 is their own. */
static void order_arcs(const struct tree_net *net, int order, int *arcs)
{
	struct rng r;

	rng_seed(&r, (uint64_t)order);
	for (int a = 0; a < net->m; a++) {
		int b = order > 0 ? (int)rng_below(&r, (uint64_t)a + 1) : a;

		arcs[a] = arcs[b];
		arcs[b] = a;
	}
}

/* Trees of this rate from the arcs in that order. Weights are multiples of
 * `grain`, and so is the rate. */
static int pack(const struct tree_net *net, int64_t rate, int64_t grain, int order,
		struct graph_trees *trees, struct err *err)
{
	size_t m = (size_t)net->m + 1;
	struct graph_arc *arcs = x_new(m, sizeof(*arcs));
	int *from = x_new(m, sizeof(*from)), rc;

	order_arcs(net, order, from);
	for (int a = 0; a < net->m; a++) {
		arcs[a] = net->arcs[from[a]];
		arcs[a].cap /= grain;
	}
	rc = graph_pack_trees(net->n, arcs, net->m, net->root, rate / grain, trees, err);
	for (size_t i = 0; i < trees->list.n; i++) {
		int32_t *via = trees->list.v[i].via;

		trees->list.v[i].weight *= grain;
		for (int v = 0; v < net->n; v++) {
			via[v] = via[v] >= 0 ? from[via[v]] : -1;
		}
	}
	free(from);
	free(arcs);
	return rc;
}

/* By time; without a cost the shallower trees, by weight. */
static bool is_better(const struct tree_choices *c, const struct tree_plan *p,
		      const struct tree_plan *best)
{
	int64_t slots, best_slots;

	if (best->steps == 0 || c->opt->cost) {
		return best->steps == 0 || mpq_cmp(p->time, best->time) < 0;
	}
	(void)count_batches(p, COLL_MAX_STEPS, &slots);
	(void)count_batches(best, COLL_MAX_STEPS, &best_slots);
	return slots > best_slots;
}

/* Plans with these trees, takes them over, and keeps the better plan. */
static void offer(const struct tree_choices *c, int64_t rate, struct tree_plan *p,
		  struct tree_plan *best)
{
	measure_trees(c->net, p);
	choose_steps(c, p, rate);
	if (is_better(c, p, best)) {
		struct tree_plan worse = *best;

		*best = *p;
		*p = worse;
	}
	plan_fini(p);
}

static int try_plan(const struct tree_choices *c, int64_t rate, int64_t grain, int order,
		    struct tree_plan *best, struct err *err)
{
	struct tree_plan p;
	int rc;

	plan_init(&p);
	rc = pack(c->net, rate, grain, order, &p.trees, err);
	if (rc) {
		plan_fini(&p);
		return rc;
	}
	offer(c, rate, &p, best);
	return 0;
}

static int64_t out_of_root(const struct tree_net *net)
{
	int64_t cap = 0;

	for (int a = 0; a < net->m; a++) {
		cap += net->arcs[a].from == net->root ? net->arcs[a].cap : 0;
	}
	return cap;
}

/* As where all nodes are neighbours. */
static void try_two_levels(const struct tree_choices *c, int64_t cut, struct tree_plan *best)
{
	const struct tree_net *net = c->net;
	struct tree_plan p;

	plan_init(&p);
	if (graph_two_level_trees(net->n, net->arcs, net->m, net->root, &p.trees)) {
		offer(c, cut, &p, best);
	} else {
		plan_fini(&p);
	}
}

/* So many trees are at most made, as more would take long. There are no more
 * than the rate has grains: with a larger grain arcs lose what is left of their
 * capacity, but no more than half of the rate. */
static int choose_grain(const struct tree_net *net, int64_t cut, int64_t *rate, int64_t *grain,
			struct err *err)
{
	int64_t most = MAX_WORK / (net->m + 1) + 1, value = cut;
	struct graph_arc *arcs;
	int rc = 0;

	*grain = (cut + most - 1) / most;
	arcs = x_new((size_t)net->m + 1, sizeof(*arcs));
	for (bool found = *grain == 1; !found && rc == 0;) {
		for (int a = 0; a < net->m; a++) {
			arcs[a] = net->arcs[a];
			arcs[a].cap /= *grain;
		}
		rc = graph_root_cut(net->n, arcs, net->m, net->root, net->ranks, &value, err);
		found = *grain == 1 || value >= cut / *grain / 2;
		*grain = found ? *grain : *grain / 2;
	}
	free(arcs);
	*rate = (value < most ? value : most) * *grain;
	return rc;
}

/* All trees of the cut's rate, half of it, and so on; without a cost the first
 * of these only. Several orders of the arcs where that is quick. */
static int choose_plan(const struct tree_choices *c, int64_t cut, struct tree_plan *best,
		       struct err *err)
{
	int64_t rate = 0, grain = 1;
	int rc = choose_grain(c->net, cut, &rate, &grain, err);

	if (rc == 0 && out_of_root(c->net) == cut) {
		try_two_levels(c, cut, best);
	}
	if (rc == 0 && best->steps > 0) {
		rate = c->opt->cost ? rate / grain / 2 * grain : 0;
	}
	while (rate > 0 && rc == 0) {
		bool quick = rate / grain * c->net->m < ORDERS_WORK;

		for (int order = 0; order < (quick ? MAX_ORDERS : 1) && rc == 0; order++) {
			rc = try_plan(c, rate, grain, order, best, err);
		}
		rate = c->opt->cost ? rate / grain / 2 * grain : 0;
	}
	return rc;
}

/* ---- the transfers ---- */

/* The trees that have an arc, and what their batches begin with. */
struct tree_rows {
	const struct tree_net *net;
	const struct tree_plan *plan;
	struct tree_cut cut;
	int *first;		/* m + 1: trees of arc a are tree[first[a]..] */
	int *tree;
	int64_t **start;	/* a tree: slot of each of its batches */
	struct arrays arrays;
};

/* Slots go to the batches in the order in which they arrive. */
static void give_slots(struct tree_rows *r)
{
	const struct graph_trees *trees = &r->plan->trees;
	int64_t slot = 0;

	for (int step = 0; step < r->plan->steps; step++) {
		for (size_t i = 0; i < trees->list.n; i++) {
			int batch = step + 1 - trees->list.v[i].deepest;

			if (batch >= 0) {
				r->start[i][batch] = slot;
				slot += trees->list.v[i].weight;
			}
		}
	}
}

static void rows_init(struct tree_rows *r)
{
	const struct graph_trees *trees = &r->plan->trees;
	size_t n = (size_t)r->net->n, n_trees = trees->list.n;

	arrays_add(&r->arrays, r->first, r->net->m + 2);
	arrays_add(&r->arrays, r->tree, n * n_trees);
	arrays_add(&r->arrays, r->start, n_trees);
	for (size_t i = 0; i < n_trees; i++) {
		int batches = r->plan->steps - trees->list.v[i].deepest + 1;

		arrays_add(&r->arrays, r->start[i], batches > 0 ? batches : 0);
	}
	for (size_t i = 0; i < n * n_trees; i++) {
		int32_t arc = trees->list.v[i / n].via[i % n];

		r->first[arc >= 0 ? arc + 2 : 0] += arc >= 0;
	}
	for (int a = 0; a < r->net->m; a++) {
		r->first[a + 2] += r->first[a + 1];
	}
	for (size_t i = 0; i < n * n_trees; i++) {
		int32_t arc = trees->list.v[i / n].via[i % n];

		if (arc >= 0) {
			r->tree[r->first[arc + 1]++] = (int)(i / n);
		}
	}
	give_slots(r);
}

/* Units from .. to - 1 of the vector. */
static int add_units(const struct tree_rows *r, struct coll_xfer x, int64_t from, int64_t to,
		     struct coll_sched *s, struct err *err)
{
	int64_t chunks = r->cut.chunks;
	int rc = 0;

	while (from < to && rc == 0) {
		int64_t shard = from / chunks, end = (shard + 1) * chunks;

		end = end < to ? end : to;
		x.origin = (int32_t)shard;
		x.first = (int32_t)(from % chunks);
		x.last = x.first + (int32_t)(end - from) - 1;
		rc = coll_add(s, &x, err);
		from = end;
	}
	return rc;
}

/* The batch that crosses an arc of tree i in this step, if one does. */
static int add_batch(const struct tree_rows *r, int i, int step, int arc,
		     struct coll_sched *s, struct err *err)
{
	const struct graph_tree *t = &r->plan->trees.list.v[i];
	int batch = step - t->depth[r->net->arcs[arc].from];
	struct coll_xfer x = { .step = step, .arc = arc, .dest = COLL_NO_DEST };
	int64_t slot;

	if (batch < 0 || batch + t->deepest > r->plan->steps) {
		return 0;
	}
	slot = r->start[i][batch];
	return add_units(r, x, slot_start(&r->cut, slot), slot_start(&r->cut, slot + t->weight),
			 s, err);
}

static int add_rows(const struct tree_rows *r, struct coll_sched *s, struct err *err)
{
	int rc = 0;

	for (int step = 0; step < r->plan->steps; step++) {
		for (int a = 0; a < r->net->m; a++) {
			for (int k = r->first[a]; k < r->first[a + 1] && rc == 0; k++) {
				rc = add_batch(r, r->tree[k], step, a, s, err);
			}
		}
	}
	return rc;
}

static int make(const struct topo *t, const struct tree_net *net, const struct tree_plan *plan,
		struct coll_sched **out, struct err *err)
{
	struct tree_rows r = { .net = net, .plan = plan, .cut = cut_vector(net, plan->slots) };
	struct coll_sched *s = NULL;
	struct topo *copy = NULL;
	int rc;

	rows_init(&r);
	(void)((rc = topo_copy(t, &copy, err)) ||
	       (rc = coll_new(COLL_BROADCAST, copy, r.cut.chunks, 0, net->root, &s, err)) ||
	       (rc = add_rows(&r, s, err)) || (rc = coll_finish(s, err)) ||
	       (rc = coll_prove(s, NULL, err)));
	arrays_fini(&r.arrays);
	if (rc) {
		coll_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

/* ---- all of it ---- */

static int64_t max_latency(const struct topo *t)
{
	int64_t most = 0;

	for (int a = 0; a < topo_m(t); a++) {
		most = topo_arc(t, a)->latency_ns > most ? topo_arc(t, a)->latency_ns : most;
	}
	return most;
}

static void choice_init(struct tree_choices *c, const struct topo *t)
{
	const struct coll_cost *cost = c->opt->cost;
	int64_t rows = cost || c->opt->batches ? MAX_ROWS : DEFAULT_ROWS, n = c->net->ranks;
	mpq_t q;

	mpq_init(c->volume);
	rat_set(c->volume, 1, 1);
	c->max_batches = rows / n > 2 * n ? rows / n : 2 * n;
	if (cost) {
		mpq_init(q);
		c->step_ns = cost->alpha_ns + cost->hop_ns + cost->message_ns + max_latency(t);
		rat_set(c->volume, cost->size_bytes, cost->link_bps);
		rat_set(q, INT64_C(8000000000), c->net->unit);
		mpq_mul(c->volume, c->volume, q);
		mpq_clear(q);
	}
}

/* A slot on the fullest arc, once a step. */
static void fill_load(const struct tree_net *net, const struct tree_plan *p,
		      struct coll_tree_info *info)
{
	struct tree_cut cut = cut_vector(net, p->slots);
	mpq_t load, q;

	mpq_inits(load, q, NULL);
	rat_set(load, cut.num, cut.den);
	rat_set(q, p->steps, cut.units);
	mpq_mul(load, load, q);
	rat_set(q, 1, net->unit);
	mpq_mul(load, load, q);
	mpq_mul(load, load, p->full);
	if (mpz_fits_slong_p(mpq_numref(load)) && mpz_fits_slong_p(mpq_denref(load))) {
		info->load_num = mpz_get_si(mpq_numref(load));
		info->load_den = mpz_get_si(mpq_denref(load));
	}
	mpq_clears(load, q, NULL);
}

/* Of the trees that have a batch to pass. */
static void fill_info(const struct tree_net *net, const struct tree_plan *p, int64_t cut,
		      struct coll_tree_info *info)
{
	for (size_t i = 0; i < p->trees.list.n; i++) {
		const struct graph_tree *t = &p->trees.list.v[i];

		if (t->deepest <= p->steps) {
			info->trees++;
			info->rate += t->weight * net->unit;
			info->deepest = t->deepest > info->deepest ? t->deepest : info->deepest;
		}
	}
	info->rate_bound = cut * net->unit;
	info->batches = p->steps - info->deepest + 1;
	info->steps = p->steps;
	fill_load(net, p, info);
}

int tree_broadcast(const struct topo *t, const struct tree_net *net,
		   const struct coll_tree_options *opt, struct coll_sched **out,
		   struct coll_tree_info *info, struct err *err)
{
	struct tree_choices c = { .net = net, .opt = opt };
	struct tree_plan best;
	int64_t cut;
	int rc = graph_root_cut(net->n, net->arcs, net->m, net->root, net->ranks, &cut, err);

	if (rc) {
		return rc;
	}
	plan_init(&best);
	choice_init(&c, t);
	rc = choose_plan(&c, cut, &best, err);
	if (rc == 0 && out) {
		rc = make(t, net, &best, out, err);
	}
	if (rc == 0) {
		fill_info(net, &best, cut, info);
	}
	plan_fini(&best);
	mpq_clear(c.volume);
	return rc;
}
