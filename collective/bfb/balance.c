/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Balancing the links into a node: the exact solution of eq. (3) and its integer
 * forms.
 *
 * The least load of the fullest link equals the largest ratio, over sets of
 * links, of the items that can use no other links to the capacity of the set.
 * With few links all sets are looked at. With many, a flow decides: source ->
 * group (its items) -> link (what the load allows) -> sink. When it carries all
 * items the load suffices; else the links on the source's side of the minimum cut
 * are a set that proves a larger load, which is tried next. That is Newton's
 * method on a piecewise linear function: it ends after at most n_links flows.
 */
#include "collective/bfb/balance.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/graph/graph.h"

int bfb_ratio_cmp(struct bfb_ratio a, struct bfb_ratio b)
{
	__int128 l = (__int128)a.num * b.den, r = (__int128)b.num * a.den;

	return l < r ? -1 : l > r;
}

int64_t bfb_ratio_ceil_mul(struct bfb_ratio r, int64_t factor)
{
	return (int64_t)(((__int128)r.num * factor + r.den - 1) / r.den);
}

/* ---- the flow, for proof and for whole chunks ---- */

/* Source 0, groups, links, sink. */
struct bfb_net {
	struct graph_flow *flow;
	int *group, *use, *link;	/* edges */
	int64_t wanted, reached;
};

static void net_fini(struct bfb_net *n)
{
	graph_flow_free(n->flow);
	free(n->group);
}

/* Whole units that fit a link. */
static int64_t room_of(int64_t cap, struct bfb_ratio per_cap)
{
	return (int64_t)((__int128)per_cap.num * cap / per_cap.den);
}

static int net_add(const struct bfb_program *b, struct bfb_net *n, int64_t per_item,
		   const int64_t *room, struct err *err)
{
	int sink = 1 + b->n_groups + b->n_links, link0 = 1 + b->n_groups;
	int rc = 0;

	for (int g = 0; g < b->n_groups && !rc; g++) {
		const struct bfb_group *gr = &b->groups[g];
		int64_t amount = gr->items * per_item;

		n->wanted += amount;
		rc = graph_flow_add(n->flow, 0, 1 + g, amount, 0, &n->group[g], err);
		for (int i = gr->first; i < gr->first + gr->n && amount > 0 && !rc; i++) {
			rc = graph_flow_add(n->flow, 1 + g, link0 + b->use[i],
				      amount, 0, &n->use[i], err);
		}
	}
	for (int w = 0; w < b->n_links && !rc; w++) {
		rc = graph_flow_add(n->flow, link0 + w, sink, room[w], 0, &n->link[w], err);
	}
	return rc;
}

/* Sends per_item for every item over links with so much room. net_fini also
 * after an error. */
static int net_fill(const struct bfb_program *b, int64_t per_item,
		    const int64_t *room, struct bfb_net *n, struct err *err)
{
	int sink = 1 + b->n_groups + b->n_links;
	size_t edges = (size_t)b->n_groups + b->n_use + b->n_links;
	int rc;

	memset(n, 0, sizeof(*n));
	n->group = x_alloc(edges, sizeof(*n->group));
	n->use = n->group + b->n_groups;
	n->link = n->use + b->n_use;
	memset(n->use, 0xff, (size_t)b->n_use * sizeof(*n->use));
	n->flow = graph_flow_new(sink + 1);
	if ((rc = net_add(b, n, per_item, room, err))) {
		return rc;
	}
	n->reached = graph_flow_max(n->flow, 0, sink, INT64_MAX);
	return 0;
}

/* The same with per_cap for each unit of the links' capacity. */
static int net_run(const struct bfb_program *b, int64_t per_item,
		   struct bfb_ratio per_cap, struct bfb_net *n, struct err *err)
{
	int64_t *room = x_alloc((size_t)b->n_links + 1, sizeof(*room));
	int rc;

	memset(n, 0, sizeof(*n));
	for (int w = 0; w < b->n_links; w++) {
		room[w] = room_of(b->cap[w], per_cap);
	}
	rc = net_fill(b, per_item, room, n, err);
	free(room);
	return rc;
}

/* Marks the links that a group with unsent items still reaches: those are
 * full, and their groups have no other links (a minimum cut). */
static void mark_cut(const struct bfb_program *b, const struct bfb_net *n,
		     int64_t per_item, bool *tight)
{
	bool *seen = x_new((size_t)b->n_groups + 1, sizeof(*seen));
	bool grown = true;

	memset(tight, 0, (size_t)b->n_links * sizeof(*tight));
	for (int g = 0; g < b->n_groups; g++) {
		seen[g] = graph_flow_on(n->flow, n->group[g]) <
			  b->groups[g].items * per_item;
	}
	while (grown) {
		grown = false;
		for (int g = 0; g < b->n_groups; g++) {
			const struct bfb_group *gr = &b->groups[g];

			for (int i = gr->first; i < gr->first + gr->n && gr->items > 0; i++) {
				int w = b->use[i];

				if (seen[g] && !tight[w]) {
					tight[w] = grown = true;
				} else if (!seen[g] && tight[w] &&
					   graph_flow_on(n->flow, n->use[i]) > 0) {
					seen[g] = grown = true;
				}
			}
		}
	}
	free(seen);
}

/* Items that can use only marked links, per unit of their capacity. */
static struct bfb_ratio density(const struct bfb_program *b, const bool *tight)
{
	struct bfb_ratio r = { 0, 0 };
	int64_t common;

	for (int w = 0; w < b->n_links; w++) {
		r.den += tight[w] ? b->cap[w] : 0;
	}
	for (int g = 0; g < b->n_groups; g++) {
		const struct bfb_group *gr = &b->groups[g];
		bool inside = true;

		for (int i = gr->first; i < gr->first + gr->n; i++) {
			inside = inside && tight[b->use[i]];
		}
		r.num += inside ? gr->items : 0;
	}
	if (r.den == 0) {
		return (struct bfb_ratio){ 0, 1 };
	}
	common = rat_gcd(r.den, r.num);
	return (struct bfb_ratio){ r.num / common, r.den / common };
}

int bfb_program_prove(const struct bfb_program *b, bool *tight, struct bfb_ratio *load,
		  struct err *err)
{
	bool proven = false;
	int rc = 0;

	while (!rc && !proven) {
		struct bfb_net n;

		*load = density(b, tight);
		rc = net_run(b, load->den, (struct bfb_ratio){ load->num, 1 }, &n,
			     err);
		proven = n.reached == n.wanted;
		if (!rc && !proven) {
			mark_cut(b, &n, load->den, tight);
		}
		net_fini(&n);
	}
	return rc;
}

struct bfb_ratio bfb_subsets_load(int64_t *items, const int64_t *cap, int n_links)
{
	int64_t caps[1 << BFB_MAX_SUBSET_LINKS];
	struct bfb_ratio best = { 0, 1 };
	int64_t common;

	caps[0] = 0;
	for (int w = 0; w < n_links; w++) {
		for (int set = 0; set < 1 << n_links; set++) {
			if (set >> w & 1) {
				items[set] += items[set ^ 1 << w];
			}
		}
		for (int set = 0; set < 1 << w; set++) {
			caps[set | 1 << w] = caps[set] + cap[w];
		}
	}
	for (int set = 1; set < 1 << n_links; set++) {
		struct bfb_ratio r = { items[set], caps[set] };

		best = bfb_ratio_cmp(r, best) > 0 ? r : best;
	}
	common = rat_gcd(best.den, best.num);
	return (struct bfb_ratio){ best.num / common, best.den / common };
}

int bfb_program_solve(const struct bfb_program *b, struct bfb_ratio *load, struct err *err)
{
	bool *tight;
	int rc;

	if (b->n_links <= BFB_MAX_SUBSET_LINKS) {
		int64_t items[1 << BFB_MAX_SUBSET_LINKS] = { 0 };

		for (int g = 0; g < b->n_groups; g++) {
			const struct bfb_group *gr = &b->groups[g];
			int set = 0;

			for (int i = gr->first; i < gr->first + gr->n; i++) {
				set |= 1 << b->use[i];
			}
			items[set] += gr->items;
		}
		*load = bfb_subsets_load(items, b->cap, b->n_links);
		return 0;
	}
	tight = x_alloc((size_t)b->n_links, sizeof(*tight));
	memset(tight, true, (size_t)b->n_links * sizeof(*tight));
	rc = bfb_program_prove(b, tight, load, err);
	free(tight);
	return rc;
}

/* ---- a quick look ---- */

#define FILL_ROUNDS 24

struct bfb_pour {
	double *load;	/* of a link, per unit of capacity */
	double *share;	/* of use[i] */
	int *order;	/* room for a group's links */
};

/* The level to which the links of a group rise when its items are poured onto
 * them, lowest first; f->order holds them by load. */
static double find_level(const struct bfb_program *b, const struct bfb_group *g, struct bfb_pour *f)
{
	double room = 0, caps = 0, level = 0;

	for (int i = 0; i < g->n; i++) {
		int w = b->use[g->first + i], k = i;

		for (; k > 0 && f->load[f->order[k - 1]] > f->load[w]; k--) {
			f->order[k] = f->order[k - 1];
		}
		f->order[k] = w;
	}
	for (int i = 0; i < g->n; i++) {
		double step = f->load[f->order[i]] - level;

		if (i > 0 && room + step * caps >= (double)g->items) {
			break;
		}
		room += step * caps;
		level += step;
		caps += (double)b->cap[f->order[i]];
	}
	return level + ((double)g->items - room) / caps;
}

static void pour(const struct bfb_program *b, const struct bfb_group *g, struct bfb_pour *f)
{
	double level;

	for (int i = g->first; i < g->first + g->n; i++) {
		f->load[b->use[i]] -= f->share[i] / (double)b->cap[b->use[i]];
	}
	level = find_level(b, g, f);
	for (int i = g->first; i < g->first + g->n; i++) {
		int w = b->use[i];
		double rise = level - f->load[w];

		f->share[i] = rise > 0 ? rise * (double)b->cap[w] : 0;
		f->load[w] += f->share[i] / (double)b->cap[w];
	}
}

static bool is_below(const struct bfb_program *b, const struct bfb_pour *f, double limit)
{
	for (int w = 0; w < b->n_links; w++) {
		if (f->load[w] > limit) {
			return false;
		}
	}
	return true;
}

bool bfb_program_is_below(const struct bfb_program *b, struct bfb_ratio limit)
{
	/* Far above what rounding adds up to. */
	double most = (double)limit.num / (double)limit.den * (1 - 1e-9);
	size_t numbers = (size_t)b->n_links + (size_t)b->n_use;
	struct bfb_pour f = { x_new(numbers, sizeof(double)), NULL,
			  x_alloc((size_t)b->n_links, sizeof(int)) };
	bool below = false;

	if (f.load && f.order) {
		f.share = f.load + b->n_links;
		for (int k = 0; k < FILL_ROUNDS && !below; k++) {
			for (int g = 0; g < b->n_groups; g++) {
				pour(b, &b->groups[g], &f);
			}
			below = is_below(b, &f, most);
		}
	}
	free(f.load);
	free(f.order);
	return below;
}

/* The least load above `most` at which a link takes one more unit. */
static struct bfb_ratio next_room(const struct bfb_program *b, struct bfb_ratio most)
{
	struct bfb_ratio next = { INT64_MAX, 1 };

	for (int w = 0; w < b->n_links; w++) {
		struct bfb_ratio r = { room_of(b->cap[w], most) + 1, b->cap[w] };

		next = bfb_ratio_cmp(r, next) < 0 ? r : next;
	}
	return next;
}

int bfb_program_fit(const struct bfb_program *b, int64_t chunks, const int64_t *room,
		int64_t *share, bool *cut, bool *fits, struct err *err)
{
	struct bfb_net n;
	int rc = net_fill(b, chunks, room, &n, err);

	*fits = n.reached == n.wanted;
	for (int i = 0; i < b->n_use && !rc && *fits; i++) {
		share[i] = n.use[i] < 0 ? 0 : graph_flow_on(n.flow, n.use[i]);
	}
	if (!rc && !*fits) {
		mark_cut(b, &n, chunks, cut);
	}
	net_fini(&n);
	return rc;
}

int bfb_program_split(const struct bfb_program *b, int64_t chunks, struct bfb_ratio *most,
		  int64_t *share, struct err *err)
{
	bool fits = false;
	int rc = 0;

	while (!rc && !fits) {
		struct bfb_net n;

		rc = net_run(b, chunks, *most, &n, err);
		fits = n.reached == n.wanted;
		for (int i = 0; i < b->n_use && !rc && fits; i++) {
			share[i] = graph_flow_on(n.flow, n.use[i]);
		}
		net_fini(&n);
		*most = rc || fits ? *most : next_room(b, *most);
	}
	return rc;
}
