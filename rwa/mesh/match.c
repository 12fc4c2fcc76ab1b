/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lightpath of the new assignment an old one becomes: within a demand,
 * as many as possible keep their hops, and others their channel. Pairs of a
 * protected demand are matched as pairs.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "rwa/mesh/private.h"

/* What is matched, and where the lightpaths go. */
struct matching {
	const struct rwa_mesh *m;
	const struct rwa_assignment *from, *to;
	struct rwa_matching *out;
};

static bool same_hops(const struct matching *g, int32_t old, int32_t new)
{
	const struct rwa_path *a = &g->from->paths.v[old];
	const struct rwa_path *b = &g->to->paths.v[new];

	return a->hops == b->hops &&
	       memcmp(g->from->hops.v + a->first, g->to->hops.v + b->first,
		      (size_t)a->hops * sizeof(struct rwa_hop)) == 0;
}

static bool same_channel(const struct matching *g, int32_t old, int32_t new)
{
	return g->from->hops.v[g->from->paths.v[old].first].channel ==
	       g->to->hops.v[g->to->paths.v[new].first].channel;
}

static bool any(const struct matching *g, int32_t old, int32_t new)
{
	(void)g;
	(void)old;
	(void)new;
	return true;
}

struct of_demand {		/* paths of one demand */
	int32_t demand, path;
};

ORDER_BY(by_demand, struct of_demand, demand, path)

/* All paths by demand, those of one in their order. */
static struct of_demand *sorted(const struct rwa_assignment *a)
{
	struct of_demand *v = x_new(a->paths.n + 1, sizeof(*v));

	for (size_t i = 0; i < a->paths.n; i++) {
		v[i] = (struct of_demand){ a->paths.v[i].demand, (int32_t)i };
	}
	qsort(v, a->paths.n, sizeof(*v), by_demand);
	return v;
}

/* A lightpath from an old path to a new one, -1 where there is none. */
static void push(struct matching *g, int32_t old, int32_t new, int32_t partner)
{
	struct rwa_changed c = { old, new, partner,
				 old >= 0 && new >= 0 &&
					 same_hops(g, old, new) };

	vec_push(g->out, c);
}

/* ---- one by one ---- */

/* Matches old[0..a-1] with new[0..b-1] where they fit; paths that are matched
 * become -1. */
static void match_where(struct matching *g, struct of_demand *old, size_t a, struct of_demand *new,
			size_t b, bool (*fits)(const struct matching *, int32_t, int32_t))
{
	for (size_t i = 0; i < a; i++) {
		for (size_t k = 0; old[i].path >= 0 && k < b; k++) {
			if (new[k].path >= 0 && fits(g, old[i].path, new[k].path)) {
				push(g, old[i].path, new[k].path, -1);
				old[i].path = new[k].path = -1;
			}
		}
	}
}

/* Each rule is weaker than the one before and matches what that left; in
 * the end whatever is left is added or dropped. */
static void match_singles(struct matching *g, struct of_demand *old, size_t a,
			  struct of_demand *new, size_t b)
{
	match_where(g, old, a, new, b, same_hops);
	match_where(g, old, a, new, b, same_channel);
	match_where(g, old, a, new, b, any);
	for (size_t i = 0; i < a; i++) {
		if (old[i].path >= 0) {
			push(g, old[i].path, -1, -1);
		}
	}
	for (size_t k = 0; k < b; k++) {
		if (new[k].path >= 0) {
			push(g, -1, new[k].path, -1);
		}
	}
}

/* ---- pairs ---- */

static bool both_same(const struct matching *g, const int32_t *old, const int32_t *new)
{
	return same_hops(g, old[0], new[0]) && same_hops(g, old[1], new[1]);
}

static bool one_same(const struct matching *g, const int32_t *old, const int32_t *new)
{
	return same_hops(g, old[0], new[0]) || same_hops(g, old[1], new[1]);
}

static bool share_link(const struct matching *g, int32_t old, int32_t new)
{
	const struct rwa_path *a = &g->from->paths.v[old];
	const struct rwa_path *b = &g->to->paths.v[new];

	for (int32_t i = 0; i < a->hops; i++) {
		for (int32_t k = 0; k < b->hops; k++) {
			if (mesh_same_link(g->m, g->from->hops.v[a->first + i].arc,
					     g->to->hops.v[b->first + k].arc)) {
				return true;
			}
		}
	}
	return false;
}

/* Either can move before the other. */
static bool apart(const struct matching *g, const int32_t *old, const int32_t *new)
{
	return !share_link(g, old[0], new[1]) && !share_link(g, old[1], new[0]);
}

static bool any_pair(const struct matching *g, const int32_t *old, const int32_t *new)
{
	(void)g;
	(void)old;
	(void)new;
	return true;
}

/* Two lightpaths, partners of each other. NULL: not in that assignment. */
static void push_pair(struct matching *g, const int32_t *old, const int32_t *new)
{
	int32_t at = (int32_t)g->out->n;

	push(g, old ? old[0] : -1, new ? new[0] : -1, at + 1);
	push(g, old ? old[1] : -1, new ? new[1] : -1, at);
}

struct pair_rule {
	bool (*fits)(const struct matching *, const int32_t *old, const int32_t *new);
};

static void match_pairs_where(struct matching *g, struct of_demand *old, size_t a,
			      struct of_demand *new, size_t b, const struct pair_rule *rule)
{
	for (size_t i = 0; i < a; i += 2) {
		/* Each new pair, k and its other, both ways round. */
		for (size_t k = 0; old[i].path >= 0 && k < b; k++) {
			size_t other = k % 2 ? k - 1 : k + 1;
			int32_t x[] = { old[i].path, old[i + 1].path };
			int32_t y[] = { new[k].path, new[other].path };

			if (y[0] >= 0 && rule->fits(g, x, y)) {
				push_pair(g, x, y);
				old[i].path = new[k].path = new[other].path = -1;
			}
		}
	}
}

/* As match_singles(), two paths at a time. */
static void match_pairs(struct matching *g, struct of_demand *old, size_t a,
			struct of_demand *new, size_t b)
{
	static const struct pair_rule rules[] = {
		{ both_same }, { one_same }, { apart }, { any_pair },
	};

	for (size_t r = 0; r < sizeof(rules) / sizeof(rules[0]); r++) {
		match_pairs_where(g, old, a, new, b, &rules[r]);
	}
	for (size_t i = 0; i < a; i += 2) {
		int32_t x[] = { old[i].path, old[i + 1].path };

		if (x[0] >= 0) {
			push_pair(g, x, NULL);
		}
	}
	for (size_t k = 0; k < b; k += 2) {
		int32_t y[] = { new[k].path, new[k + 1].path };

		if (y[0] >= 0) {
			push_pair(g, NULL, y);
		}
	}
}

/* ---- the whole ---- */

/* How many paths from i on belong to the demand. */
static size_t run_of(const struct of_demand *v, size_t i, size_t n, int32_t demand)
{
	size_t k = i;

	while (k < n && v[k].demand == demand) {
		k++;
	}
	return k - i;
}

void rwa_mesh_match(const struct rwa_mesh *m, const struct rwa_assignment *from,
		    const struct rwa_assignment *to, struct rwa_matching *out)
{
	struct matching g = { m, from, to, out };
	struct of_demand *old = sorted(from), *new = sorted(to);
	size_t i = 0, k = 0;

	*out = (struct rwa_matching){ 0 };
	for (int32_t d = 0; d < (int32_t)m->demands.n; d++) {
		size_t a = run_of(old, i, from->paths.n, d);
		size_t b = run_of(new, k, to->paths.n, d);

		if (m->demands.v[d].protect) {
			match_pairs(&g, old + i, a, new + k, b);
		} else {
			match_singles(&g, old + i, a, new + k, b);
		}
		i += a;
		k += b;
	}
	free(old);
	free(new);
}
