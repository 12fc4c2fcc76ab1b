/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof of a grouped plan. What a group has gathered moves as one, so it is
 * enough to replay groups: first who holds which items while they are gathered,
 * then which nodes hold which group's. Light is counted again: every hop finds
 * its lightpath and takes its items' room there, all room is used, and
 * lightpaths of a step that share a channel share no link.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/order.h"
#include "optree/grouped/grouped.h"

/* A lightpath, to be sorted by direction, slot, colour and first link. */
struct lit {
	int32_t dir, slot, first, link, width, len;
};

struct replay {
	const struct optree_groups *g;
	const struct grouped_round *round;
	struct arrays arrays;	/* owns all that follow */
	int32_t *holder;	/* of each item, while it is gathered; or pieces * n:
				 * contributions that a node has summed, -1: sent */
	int pieces;		/* of owners, or groups */
	uint16_t *have;		/* pieces * n: since which round, 0: not */
	uint16_t *full;		/* of each node: since when it has the sum of all */
	int64_t *left;		/* room of each lightpath */
	struct lit *lit;	/* lightpaths of a round */
	uint16_t number;	/* of the round, from 2 */
	const char *fault;
};

static const struct grouped_stage *groups(const struct replay *v)
{
	return &v->g->stage[v->g->shape.stages];
}

static int end_of(int n, int src, int dir, int len)
{
	return dir == RWA_CW ? (src + len) % n : (src - len + n) % n;
}

struct grouped_path *grouped_path_of(const struct optree_groups *g, const struct grouped_round *r,
				     const struct grouped_hop *h)
{
	size_t lo = r->path, hi = r->path + r->n_paths;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct grouped_path *x = &g->paths.v[mid];

		if (x->dir != h->dir ? x->dir < h->dir
		    : x->kind != h->kind ? x->kind < h->kind : x->src < h->src) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return &g->paths.v[lo];
}

/* The hop has a lightpath, with room. */
static bool takes_room(struct replay *v, const struct grouped_hop *h, int64_t items)
{
	const struct grouped_path *x = grouped_path_of(v->g, v->round, h);
	size_t at = (size_t)(x - v->g->paths.v);

	if (at >= v->round->path + v->round->n_paths || x->src != h->src || x->dir != h->dir ||
	    x->kind != h->kind || x->len != h->len || v->left[at] < items) {
		return false;
	}
	v->left[at] -= items;
	return true;
}

static int gather_hop(void *data, const struct grouped_hop *h)
{
	struct replay *v = data;
	const struct grouped_stage *s = grouped_stage_of(v->g, v->round);
	int to = end_of(v->g->n, h->src, h->dir, h->len);

	if (v->g->shape.sums && !v->g->shape.pieces && v->holder[to] != to) {
		v->fault = "a contribution is summed twice";
		return WEFT_EVERIFY;
	}
	for (int32_t i = s->first[h->group]; i < s->first[h->group + 1]; i++) {
		if (v->holder[i] != h->src) {
			v->fault = "gathered from where it is not";
			return WEFT_EVERIFY;
		}
		v->holder[i] = to;
	}
	if (!takes_room(v, h, grouped_items(v->g, s, h))) {
		v->fault = "no lightpath for it";
		return WEFT_EVERIFY;
	}
	return 0;
}

static int spread_hop(void *data, const struct grouped_hop *h)
{
	struct replay *v = data;
	uint16_t *have = v->have + (size_t)h->group * v->g->n;
	uint16_t *to = &have[end_of(v->g->n, h->src, h->dir, h->len)];

	if (h->len < 1 || h->len >= v->g->n || !have[h->src] || have[h->src] == v->number) {
		v->fault = "sent before it is held";
	} else if (*to) {
		v->fault = "delivered twice";
	} else if (!takes_room(v, h, grouped_items(v->g, groups(v), h))) {
		v->fault = "no lightpath for it";
	}
	*to = v->number;
	return v->fault ? WEFT_EVERIFY : 0;
}

/* ---- sums ---- */

/* Who gets which group's sum; then, from round `full` on, who has all. */
static int sum_hop(void *data, const struct grouped_hop *h)
{
	struct replay *v = data;
	int stages = v->g->shape.stages, to = end_of(v->g->n, h->src, h->dir, h->len);
	uint16_t *own;

	if (v->round->level < stages || (v->g->shape.pieces && v->round->level > stages)) {
		return gather_hop(data, h);
	}
	if (!takes_room(v, h, grouped_items(v->g, groups(v), h))) {
		v->fault = "no lightpath for it";
	} else if (v->round->level == stages) {
		own = v->have + (size_t)h->group * v->g->n;
		v->fault = own[h->src] != 1 || own[to] ||
					     (v->round->slots > 1 && !v->g->shape.pieces)
			? "no sum of a group, or twice" : NULL;
		own[to] = v->number;
	} else {
		v->fault = !v->full[h->src] || v->full[h->src] == v->number || v->full[to]
				   ? "no sum of all, or twice" : NULL;
		v->full[to] = v->number;
	}
	return v->fault ? WEFT_EVERIFY : 0;
}

/* After the exchange every representative has the sum of every group. */
static int check_exchanged(struct replay *v, struct err *err)
{
	const struct grouped_stage *s = groups(v);

	for (int a = 0; a < s->count; a++) {
		for (int b = 0; b < s->count; b++) {
			if (!v->have[(size_t)a * v->g->n + s->rep[b]]) {
				return err_set(err, WEFT_EVERIFY, "the sum of group %d does not "
					       "arrive at rank %d", a, s->rep[b]);
			}
		}
		v->full[s->rep[a]] = 1;
	}
	return 0;
}

/* ---- owners ---- */

/* What a node has summed of a piece moves as one, so it is enough to count contributions; sums
 * go back as pieces. */
static const char *owner_fault(struct replay *v, int piece, int src, int to)
{
	int32_t *sum = &v->holder[(size_t)piece * v->g->n];
	uint16_t *have = &v->have[(size_t)piece * v->g->n];

	if (v->round->level >= v->g->shape.owners) {
		if (!have[src] || have[src] == v->number || have[to]) {
			return "no sum of a piece, or twice";
		}
	} else if (sum[src] < 1 || have[src] == v->number || sum[to] < 0) {
		return "a contribution is summed twice";
	} else {
		sum[to] += sum[src];
		sum[src] = -1;
	}
	have[to] = v->number;
	return NULL;
}

static int owner_hop(void *data, const struct grouped_hop *h)
{
	struct replay *v = data;
	int to = end_of(v->g->n, h->src, h->dir, h->len), part = h->group, parts = 1;

	for (int k = 0; part >= 0; part -= parts) {
		parts *= v->g->shape.owner[k++].parts;
	}
	part += parts;
	v->fault = takes_room(v, h, grouped_items(v->g, NULL, h)) ? NULL : "no lightpath for it";
	for (; part < v->pieces && !v->fault; part += parts) {
		v->fault = owner_fault(v, part, h->src, to);
	}
	return v->fault ? WEFT_EVERIFY : 0;
}

/* Every owner has all contributions to its piece, and from now on the sum. */
static int check_owned(struct replay *v, struct err *err)
{
	const struct optree_groups *g = v->g;

	memset(v->have, 0, (size_t)v->pieces * g->n * sizeof(*v->have));
	for (int k = 0; k < v->pieces; k++) {
		size_t owner = (size_t)k * g->n + grouped_owner(g, k);

		if (v->holder[owner] != g->n) {
			return err_set(err, WEFT_EVERIFY, "%d contributions to piece %d arrive at "
				       "its owner", v->holder[owner], k);
		}
		v->have[owner] = 1;
	}
	return 0;
}

/* ---- light ---- */

ORDER_BY(by_colour, struct lit, dir, slot, first, link)

/* Of those that begin with the same colour each starts behind the one before,
 * around the ring; those that begin with another are behind its colours. */
static bool apart(const struct lit *x, size_t count, int n)
{
	size_t begin = 0;

	for (size_t i = 1; i <= count; i++) {
		const struct lit *a = &x[i - 1], *b = &x[i];
		bool same = i < count && b->dir == a->dir && b->slot == a->slot;

		if (same && b->first == a->first) {
			if (a->link + a->len > b->link || a->width != b->width) {
				return false;
			}
			continue;
		}
		if (a->link + a->len > x[begin].link + n ||
		    (same && a->first + a->width > b->first)) {
			return false;
		}
		begin = i;
	}
	return true;
}

static int check_light(struct replay *v, struct err *err)
{
	const struct optree_groups *g = v->g;
	const struct grouped_round *r = v->round;

	for (size_t i = 0; i < r->n_paths; i++) {
		const struct grouped_path *x = &g->paths.v[r->path + i];

		if (x->first < 0 || x->width < 1 || x->first + x->width > g->w ||
		    x->slot < 0 || x->slot >= r->slots || v->left[r->path + i]) {
			return err_set(err, WEFT_EVERIFY, "round %d: the lightpath from node %d "
				       "over %d links has %d channels from %d, and %lld items "
				       "too few", v->number - 1, x->src, x->len, x->width,
				       x->first, (long long)v->left[r->path + i]);
		}
		v->lit[i] = (struct lit){
			x->dir, x->slot, x->first,
			x->dir == RWA_CW ? x->src : (x->src - x->len + g->n) % g->n,
			x->width, x->len };
	}
	qsort(v->lit, r->n_paths, sizeof(*v->lit), by_colour);
	return apart(v->lit, r->n_paths, g->n)
		       ? 0 : err_set(err, WEFT_EVERIFY, "round %d: two lightpaths on a channel of "
				     "a link", v->number - 1);
}

/* ---- all of it ---- */

static void replay_init(struct replay *v, const struct optree_groups *g)
{
	int pieces = g->shape.owners ? grouped_pieces(g) : g->stage[g->shape.stages].count;
	size_t holders = g->shape.owners ? (size_t)pieces * g->n : (size_t)g->n;

	*v = (struct replay){ .g = g, .number = 1, .pieces = pieces };
	arrays_add(&v->arrays, v->holder, holders);
	arrays_add(&v->arrays, v->have, (size_t)pieces * g->n);
	arrays_add(&v->arrays, v->full, g->n);
	arrays_add(&v->arrays, v->left, g->paths.n);
	arrays_add(&v->arrays, v->lit, g->paths.n);
	for (size_t i = 0; i < holders; i++) {
		v->holder[i] = g->shape.owners ? 1 : (int32_t)i;
	}
	for (size_t i = 0; i < g->paths.n; i++) {
		v->left[i] = g->paths.v[i].items;
	}
}

/* Every item is where the group's begin. */
static int check_gathered(struct replay *v, struct err *err)
{
	const struct grouped_stage *s = groups(v);

	for (int b = 0; b < s->count; b++) {
		for (int32_t i = s->first[b]; i < s->first[b + 1]; i++) {
			if (v->holder[i] != s->rep[b]) {
				return err_set(err, WEFT_EVERIFY, "the item of rank %d is not "
					       "gathered at %d", i, s->rep[b]);
			}
		}
		v->have[(size_t)b * v->g->n + s->rep[b]] = 1;
	}
	return 0;
}

static int check_arrived(const struct replay *v, struct err *err)
{
	size_t n = (size_t)v->g->n;

	for (size_t k = 0; k < n && v->g->shape.sums; k++) {
		if (v->g->shape.pieces ? v->holder[k] != (int)k : !v->full[k]) {
			return err_set(err, WEFT_EVERIFY, "%s arrive at rank %zu",
				       v->g->shape.pieces ? "its pieces do not"
							  : "the sum does not", k);
		}
	}
	for (size_t k = 0; k < (size_t)v->pieces * n && !v->g->shape.sums; k++) {
		if (!v->have[k]) {
			return err_set(err, WEFT_EVERIFY, "the items of group %zu do not arrive "
				       "at rank %zu", k / n, k % n);
		}
	}
	return 0;
}

int grouped_verify(const struct optree_groups *g, struct err *err)
{
	struct replay v;
	int rc = 0;

	replay_init(&v, g);
	for (size_t i = 0; i < g->rounds.n && !rc; i++) {
		bool gathers = g->rounds.v[i].level < g->shape.stages;
		grouped_hop_fn *hop = g->shape.owners ? owner_hop : g->shape.sums ? sum_hop
				    : gathers ? gather_hop : spread_hop;

		v.round = &g->rounds.v[i];
		v.number++;
		if ((int)i == g->shape.stages + g->shape.owners &&
		    (rc = g->shape.owners ? check_owned(&v, err) : check_gathered(&v, err))) {
			break;
		}
		if (g->shape.sums && (int)i == g->shape.stages + 1 &&
		    (rc = check_exchanged(&v, err))) {
			break;
		}
		if (grouped_each_hop(g, v.round, hop, &v)) {
			rc = err_set(err, WEFT_EVERIFY, "round %zu: %s", i + 1, v.fault);
		} else {
			rc = check_light(&v, err);
		}
	}
	if (!rc && g->shape.sums && (int)g->rounds.n == g->shape.stages + 1) {
		rc = check_exchanged(&v, err);
	}
	if (!rc) {
		rc = check_arrived(&v, err);
	}
	arrays_fini(&v.arrays);
	return rc;
}
