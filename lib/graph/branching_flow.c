/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flow that shows how a node can get into all trees that have it not.
 *
 * The network is that of Edmonds' condition: every tree sends its weight, from any of its
 * nodes, over what is left of the arcs, to the sink. Trees are many, and each has many nodes, so
 * edges between the two are not listed: a row of bits says for each node which trees
 * have it, and a search, backwards from the sink, takes 64 trees at a time. What trees send
 * is listed where they do, for only over that a search may go back.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/graph/private.h"

void branching_flow_begin(struct branchings *b, int sink)
{
	const uint64_t *has = b->has + (size_t)sink * (size_t)b->words;

	b->sink = sink;
	b->unsent = 0;
	memset(b->lacks, 0, (size_t)b->words * sizeof(*b->lacks));
	for (size_t j = 0; j < b->trees.n; j++) {
		bool lacks = !(has[j / 64] >> j % 64 & 1);

		b->lacks[j / 64] |= (uint64_t)lacks << j % 64;
		b->supply[j] = lacks ? b->trees.v[j].weight : 0;
		b->unsent += b->supply[j];
		b->feeds_of[j] = -1;
	}
}

void branching_flow_end(struct branchings *b)
{
	for (size_t i = 0; i < b->carry.n; i++) {
		b->flow[b->carry.v[i]] = 0;
	}
	b->carry.n = 0;
	b->feeds.n = 0;
}

/* ---- levels ---- */

static void reach(struct branchings *b, int x, int level)
{
	b->level[x] = level;
	b->at[x] = x < b->n ? 0 : b->feeds_of[x - b->n];
	b->queue[b->queued++] = x;
}

/* Rows up to that of a level. */
static void add_level(struct branchings *b, int level)
{
	size_t words = (size_t)b->words;

	while ((size_t)level * words >= b->at_level.n) {
		vec_reserve(&b->at_level, words);
		memset(b->at_level.v + b->at_level.n, 0, words * sizeof(*b->at_level.v));
		b->at_level.n += words;
	}
}

/* Trees that have node u. *found: one of them can send. */
static void see_trees(struct branchings *b, int u, bool *found)
{
	int level = b->level[u] + 1;
	const uint64_t *has = b->feeds_from + (size_t)u * (size_t)b->words;
	uint64_t *row;

	add_level(b, level);
	row = b->at_level.v + (size_t)level * (size_t)b->words;
	for (int w = 0; w < b->words; w++) {
		uint64_t seen = has[w] & b->fresh[w];

		b->fresh[w] &= ~seen;
		row[w] |= seen;
		for (; seen; seen &= seen - 1) {
			int j = w * 64 + __builtin_ctzll(seen);

			reach(b, b->n + j, level);
			*found |= b->supply[j] > 0;
		}
	}
}

static void see_arcs(struct branchings *b, int u)
{
	for (int i = b->first_in[u]; i < b->first_in[u + 1]; i++) {
		int a = b->in[i];

		if (b->left[a] > b->flow[a] && b->level[b->arcs[a].from] < 0) {
			reach(b, b->arcs[a].from, b->level[u] + 1);
		}
	}
	for (int i = b->first_out[u]; i < b->first_out[u + 1]; i++) {
		int a = b->out[i];

		if (b->flow[a] > 0 && b->level[b->arcs[a].to] < 0) {
			reach(b, b->arcs[a].to, b->level[u] + 1);
		}
	}
}

static void see_feeds(struct branchings *b, int x)
{
	for (int e = b->feeds_of[x - b->n]; e >= 0; e = b->feeds.v[e].next) {
		if (b->feeds.v[e].amount > 0 && b->level[b->feeds.v[e].node] < 0) {
			reach(b, b->feeds.v[e].node, b->level[x] + 1);
		}
	}
}

/* Levels up to the first at which a tree can send; *found: there is one. */
static void find_levels(struct branchings *b, bool *found)
{
	int last = INT32_MAX;

	memset(b->level, -1, ((size_t)b->n + b->trees.n) * sizeof(*b->level));
	memcpy(b->fresh, b->lacks, (size_t)b->words * sizeof(*b->fresh));
	b->at_level.n = 0;
	b->queued = 0;
	*found = false;
	add_level(b, 0);
	reach(b, b->sink, 0);
	for (int i = 0; i < b->queued && b->level[b->queue[i]] < last; i++) {
		int x = b->queue[i];

		if (x >= b->n) {
			see_feeds(b, x);
			continue;
		}
		see_trees(b, x, found);
		last = *found && last == INT32_MAX ? b->level[x] + 1 : last;
		see_arcs(b, x);
	}
}

/* ---- paths ---- */

/* One edge backwards from node u, to a vertex of the next level. */
static bool step_from_node(struct branchings *b, int u, struct branching_step *step)
{
	int level = b->level[u] + 1, ins = b->first_in[u + 1] - b->first_in[u];
	int outs = b->first_out[u + 1] - b->first_out[u];
	const uint64_t *has = b->feeds_from + (size_t)u * (size_t)b->words;
	const uint64_t *row = b->at_level.v + (size_t)level * (size_t)b->words;

	if ((size_t)level * (size_t)b->words >= b->at_level.n && b->at[u] < b->words) {
		b->at[u] = b->words;
	}
	for (; b->at[u] < b->words; b->at[u]++) {
		uint64_t trees = has[b->at[u]] & row[b->at[u]];

		if (trees) {
			int j = b->at[u] * 64 + __builtin_ctzll(trees);

			*step = (struct branching_step){ STEP_FEED, -1, b->n + j };
			return true;
		}
	}
	for (; b->at[u] < b->words + ins; b->at[u]++) {
		int a = b->in[b->first_in[u] + b->at[u] - b->words];

		*step = (struct branching_step){ STEP_ARC, a, b->arcs[a].from };
		if (b->level[step->from] == level && b->left[a] > b->flow[a]) {
			return true;
		}
	}
	for (; b->at[u] < b->words + ins + outs; b->at[u]++) {
		int a = b->out[b->first_out[u] + b->at[u] - b->words - ins];

		*step = (struct branching_step){ STEP_ARC_BACK, a, b->arcs[a].to };
		if (b->level[step->from] == level && b->flow[a] > 0) {
			return true;
		}
	}
	return false;
}

static bool step_from_tree(struct branchings *b, int x, struct branching_step *step)
{
	for (; b->at[x] >= 0; b->at[x] = b->feeds.v[b->at[x]].next) {
		const struct branching_feed *feed = &b->feeds.v[b->at[x]];

		*step = (struct branching_step){ STEP_FEED_BACK, b->at[x], feed->node };
		if (b->level[feed->node] == b->level[x] + 1 && feed->amount > 0) {
			return true;
		}
	}
	return false;
}

/* Nothing leads on from here. */
static void leave(struct branchings *b, int x)
{
	if (x >= b->n) {
		int j = x - b->n;

		b->at_level.v[(size_t)b->level[x] * (size_t)b->words + (size_t)j / 64] &=
			~(UINT64_C(1) << j % 64);
	}
	b->level[x] = -1;
}

static int64_t room_of(const struct branchings *b, const struct branching_step *step)
{
	switch (step->kind) {
	case STEP_ARC:
		return b->left[step->edge] - b->flow[step->edge];
	case STEP_ARC_BACK:
		return b->flow[step->edge];
	case STEP_FEED:
		return INT64_MAX;
	default:
		return b->feeds.v[step->edge].amount;
	}
}

/* The tree sends so much more from node u. */
static void add_feed(struct branchings *b, int tree, int u, int64_t amount)
{
	int e = b->feeds_of[tree];

	while (e >= 0 && b->feeds.v[e].node != u) {
		e = b->feeds.v[e].next;
	}
	if (e >= 0) {
		b->feeds.v[e].amount += amount;
		return;
	}
	vec_push(&b->feeds, (struct branching_feed){ u, b->feeds_of[tree], amount });
	b->feeds_of[tree] = (int32_t)b->feeds.n - 1;
}

static void send_over(struct branchings *b, const struct branching_step *step, int to,
		      int64_t amount)
{
	if (step->kind == STEP_ARC) {
		if (b->flow[step->edge] == 0) {
			vec_push(&b->carry, step->edge);
		}
		b->flow[step->edge] += amount;
	} else if (step->kind == STEP_ARC_BACK) {
		b->flow[step->edge] -= amount;
	} else if (step->kind == STEP_FEED) {
		add_feed(b, step->from - b->n, to, amount);
	} else {
		b->feeds.v[step->edge].amount -= amount;
	}
}

/* Fills the path, whose last vertex is a tree that can send. */
static void fill_path(struct branchings *b, int tree)
{
	int64_t amount = b->supply[tree];
	int to = b->sink;

	for (size_t i = 0; i < b->path.n; i++) {
		int64_t room = room_of(b, &b->path.v[i]);

		amount = room < amount ? room : amount;
	}
	for (size_t i = 0; i < b->path.n; i++) {
		send_over(b, &b->path.v[i], to, amount);
		to = b->path.v[i].from;
	}
	b->supply[tree] -= amount;
	b->unsent -= amount;
	b->path.n = 0;
}

/* Paths along the levels until there is none. */
static void block(struct branchings *b)
{
	int x = b->sink;

	b->path.n = 0;
	for (;;) {
		struct branching_step step;

		if (x >= b->n && b->supply[x - b->n] > 0) {
			fill_path(b, x - b->n);
			x = b->sink;
		} else if (x >= b->n ? step_from_tree(b, x, &step) : step_from_node(b, x, &step)) {
			vec_push(&b->path, step);
			x = step.from;
		} else if (x == b->sink) {
			return;
		} else {
			leave(b, x);
			b->path.n--;
			x = b->path.n > 0 ? b->path.v[b->path.n - 1].from : b->sink;
		}
	}
}

static void send_from(struct branchings *b, const uint64_t *rows)
{
	bool found = true;

	b->feeds_from = rows;
	while (b->unsent > 0 && found) {
		find_levels(b, &found);
		if (found) {
			block(b);
		}
	}
}

void branching_flow_run(struct branchings *b)
{
	send_from(b, b->had);
	send_from(b, b->has);
}
