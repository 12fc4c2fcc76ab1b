/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The algorithms that the paper compares OpTree with, as real schedules with
 * lightpaths and channels: ring, neighbour exchange and Wrht. They pass the
 * same proofs as every plan, so that a comparison counts what they really
 * take and not only what their closed forms state.
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "optree/baselines/baselines.h"

/* A relay over the next link: one way round, on a line both ways. */
static void push_round(const struct optree_params *p, struct optree_sym *out, int r)
{
	int dir = tree_width(p, RWA_CW) ? RWA_CW : RWA_CCW, last = p->line ? RWA_CCW : dir;
	struct sym_round round = { .move = out->moves.n, .n_moves = 1 + (size_t)(last - dir),
				   .room = { 1, 1 } };

	for (; dir <= last; dir++) {
		struct sym_hop hop = { .at = dir == RWA_CW || !r ? r : p->n - r,
				       .dest = -1, .last = 1 };
		struct sym_move move = { .len = 1, .dir = (uint8_t)dir,
					 .hop = out->hops.n, .n_hops = 1 };

		vec_push(&out->hops, hop);
		vec_push(&out->moves, move);
	}
	vec_push(&out->rounds, round);
}

int baseline_ring(const struct optree_params *p, struct optree_sym *out, struct err *err)
{
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	int rc = 0;

	optree_sym_init(out, COLL_ALLGATHER, &ring);
	for (int r = 0; r < p->n - 1; r++) {
		push_round(p, out, r);
	}
	/* One channel is all it uses. */
	optree_sym_place(out, p);
	if ((rc = optree_sym_light(out, 2, err))) {
		optree_sym_fini(out);
	}
	return rc;
}

/* ---- lightpaths one by one ---- */

static void light_init(const struct optree_params *p, struct tree_light *t)
{
	size_t arcs = (size_t)p->n * (size_t)(p->n - 1);

	*t = (struct tree_light){
		.ring = tree_ring(p),
		.arcs = x_alloc(arcs, sizeof(*t->arcs)),
		.item = x_alloc(arcs, sizeof(*t->item)),
	};
}

/* One item over one lightpath; colour counts channels of all slots from
 * step `base`. */
static void add(struct tree_light *t, int src, int dst, int dir, int item, int base, int64_t colour)
{
	int64_t w = (int64_t)t->ring.channels * t->ring.fibres;
	int step = base + (int)(colour / w);

	t->arcs[t->n_arcs] = (struct rwa_arc){
		.src = src, .dst = dst, .dir = (uint8_t)dir, .slot = step,
		.fibre = (uint8_t)(colour % w / t->ring.channels),
		.channel = (uint16_t)(colour % w % t->ring.channels),
	};
	t->item[t->n_arcs++] = item;
	t->steps = step + 1 > t->steps ? step + 1 : t->steps;
}

/* Proves the lightpaths and reports on them. */
static int finish(const struct optree_params *p, enum optree_algorithm how,
		  enum optree_baseline what, struct tree_light *t,
		  struct optree_plan *out, struct err *err)
{
	int width = t->ring.channels * t->ring.fibres;
	int hops, rc = tree_check_reach(p, t, &hops, &out->worst_loss_mdb, err);

	if (rc || (rc = tree_schedule(p, t, &out->sched, err)) ||
	    (rc = tree_time_ns(p, t, &out->time_ns, err))) {
		return rc;
	}
	out->algorithm = how;
	out->chunks = 1;
	out->steps = t->steps;
	out->lightpaths = t->n_arcs;
	make_published(p, optree_best_depth(p->n), out);
	out->depth = 0;
	out->closed_form_steps = p->line ? 0 : optree_baseline_steps(what, p->n, width);
	return 0;
}

/* ---- neighbour exchange ---- */

/* The first of the two items that node v passes on in round r >= 1. They
 * began as a pair of neighbours, and come from the side that v does not send
 * to, one pair further in every second round. */
static int pair_item(int n, int v, int r)
{
	int far = r % 2 ? r - 1 : -r;

	return ((v / 2 * 2 + (v % 2 ? -far : far)) % n + n) % n;
}

int baseline_ne(const struct optree_params *p, struct optree_plan *out, struct err *err)
{
	struct rwa_ring ring = tree_ring(p);
	bool wide = ring.channels * ring.fibres > 1;
	struct tree_light t = { 0 };
	int rc;

	if (p->n % 2) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "neighbour exchange among %d nodes: not "
			       "supported, only even numbers", p->n);
	}
	light_init(p, &t);
	for (int v = 0; v < p->n; v++) {
		for (int r = 0; r < p->n / 2; r++) {
			int dir = (v + r) % 2 ? RWA_CCW : RWA_CW;
			int to = (v + (dir ? p->n - 1 : 1)) % p->n;
			int first = r ? pair_item(p->n, v, r) : v;
			int base = r == 0 ? 0 : wide ? r : 2 * r - 1;

			add(&t, v, to, dir, first, base, 0);
			if (r) {
				add(&t, v, to, dir, first + 1, base, 1);
			}
		}
	}
	out->rounds = p->n / 2;
	rc = finish(p, OPTREE_BY_NE, OPTREE_NE, &t, out, err);
	tree_light_fini(&t);
	return rc;
}

/* ---- Wrht ---- */

struct groups {
	struct tree_light *t;
	int n, size, count;
	bool line;
};

static int first_of(const struct groups *g, int group)
{
	return group * g->size;
}

static int end_of(const struct groups *g, int group)
{
	int end = first_of(g, group) + g->size;

	return end < g->n ? end : g->n;
}

static int leader_of(const struct groups *g, int group)
{
	return (first_of(g, group) + end_of(g, group) - 1) / 2;
}

/* All's item to the leader. */
static void collect(const struct groups *g)
{
	for (int k = 0; k < g->count; k++) {
		int lead = leader_of(g, k);

		for (int v = first_of(g, k); v < end_of(g, k); v++) {
			if (v != lead) {
				add(g->t, v, lead, v < lead ? RWA_CW : RWA_CCW,
				    v, 0, abs(lead - v) - 1);
			}
		}
	}
}

/* All items of a group to the other leaders: as many copies of the leaders'
 * all-to-all as the largest group has items. */
static int exchange(const struct groups *g, struct err *err)
{
	struct tree_light *t = g->t;
	int base = t->steps;
	/* So many channels that all lightpaths go in one slot. */
	struct rwa_ring wide = { g->n, 1, g->count * g->count / (g->line ? 4 : 8) + 1 };
	size_t pairs = (size_t)g->count * (size_t)(g->count - 1);
	struct rwa_arc *arcs = x_alloc(pairs + 1, sizeof(*arcs));
	int32_t *lead = x_alloc((size_t)g->count, sizeof(*lead));
	struct rwa_result res = { 0 };
	int rc;

	for (int k = 0; k < g->count; k++) {
		lead[k] = leader_of(g, k);
	}
	rc = rwa_all_to_all(&wide, lead, g->count, g->line, arcs, &res, err);
	for (size_t k = 0; k < pairs && !rc; k++) {
		int from = (int)(k / (size_t)(g->count - 1));
		int first = first_of(g, from), end = end_of(g, from);

		for (int v = first; v < end; v++) {
			int64_t colour = (int64_t)(v - first) * res.colours +
					 arcs[k].channel;

			add(t, arcs[k].src, arcs[k].dst, arcs[k].dir, v, base, colour);
		}
	}
	free(arcs);
	free(lead);
	return rc;
}

/* Everything to all in the group, but what a node began with. */
static void pass_on(const struct groups *g)
{
	int base = g->t->steps;

	for (int k = 0; k < g->count; k++) {
		int lead = leader_of(g, k), side[2];

		side[RWA_CW] = end_of(g, k) - 1 - lead;
		side[RWA_CCW] = lead - first_of(g, k);
		for (int v = first_of(g, k); v < end_of(g, k); v++) {
			int dir = v > lead ? RWA_CW : RWA_CCW, nth = 0;

			for (int item = 0; item < g->n && v != lead; item++) {
				if (item != v) {
					add(g->t, lead, v, dir, item, base,
					    (int64_t)nth++ * side[dir] + abs(lead - v) - 1);
				}
			}
		}
	}
}

int baseline_wrht(const struct optree_params *p, struct optree_plan *out, struct err *err)
{
	struct rwa_ring ring = tree_ring(p);
	int64_t size = 2 * (int64_t)ring.channels * ring.fibres + 1;
	struct tree_light t = { 0 };
	struct groups g = { .t = &t, .n = p->n, .line = p->line,
			    .size = size < p->n ? (int)size : p->n };
	int rc;

	light_init(p, &t);
	g.count = (p->n + g.size - 1) / g.size;
	collect(&g);
	rc = g.count > 1 ? exchange(&g, err) : 0;
	if (!rc) {
		pass_on(&g);
		out->rounds = g.count > 1 ? 3 : 2;
		rc = finish(p, OPTREE_BY_WRHT, OPTREE_WRHT, &t, out, err);
	}
	tree_light_fini(&t);
	return rc;
}
