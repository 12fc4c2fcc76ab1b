/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-reduces whose sums are merged on their way: in as many steps as the digraph is wide, or in
 * some more for less T_B.
 *
 * Each vector is cut into pieces, one a colour of nodes (owners.c). What every rank contributes to
 * a piece goes to all nodes of its colour, the owners; then the others get copies of the sum from
 * near ones. With a single colour all are owners, and there are no copies; with as many as
 * nodes it would be a reduce-scatter and an all-gather; in between T_B is a fraction of the first
 * for a step or two.
 *
 * What is known of a contribution at a node is for which owners it is. All that comes to a node in
 * a step for the same ones is kept as one sum (a state), and goes on as one message an arc. Which
 * arc an owner is reached over depends only on the node, and the steps that are left:
 *
 *   early   over the first arc by some order that is on a shortest path. Each contribution goes
 *           down a tree so, and is added wherever it comes by. Some orders are tried: by one of
 *           them trees agree, on meshes by that of dimensions;
 *   walks   over walks of as many arcs as there are steps, and as few arcs out of a node as cover
 *           the owners: on generalized Kautz graphs all states of a step are alike. What a rank
 *           contributes comes back to it, so what passes by is kept apart from the rank's own.
 *
 * All shards move alike. Parallel arcs share what goes to the next rank by their capacities.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/make/merged.h"
#include "collective/make/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/number/rng.h"

#define MAX_NODES 2896	/* so that tables by two of them stay small; <= COLL_MAX_MERGED */
#define MAX_SPLIT 5040	/* chunks */
#define MAX_WORK (INT64_C(1) << 27)	/* looks at a node, for other plans than the first */
#define OWN (-1)
#define ORDERS 5
#define GOOD 1.5	/* times the least vectors */
#define MAX_WALK 16	/* arcs */

/* Contributions at a node that go on to the same owners. */
struct merged_state {
	int32_t node, number;	/* kept under it there; OWN: what the rank itself contributes */
	int32_t tail;		/* from where a message brought it last */
	int32_t ranks;		/* whose contributions they are, */
	int32_t n;		/* and for how many owners: its level's targets.v[first] and on */
	size_t first;
};

struct merged_slot {
	uint64_t key;
	uint32_t round;
	int32_t state;
};

/* All of a step. */
struct merged_level {
	VEC(struct merged_state) states;
	VEC(int32_t) targets;
};

struct merged_plan {
	struct merged_owners owners;
	int order;
	bool walks;		/* else early */
	double vectors;		/* over the fullest link of each step, copies and all */
};

/* What bounds the vectors of any plan. */
struct merged_near {
	int width;		/* steps from some rank to another, */
	const int32_t *within;	/* and [0 .. width] as many ranks as so near to some rank, itself
				 * counted */
	double out, in, wide;	/* the least capacity of all arcs out of a rank, and into one; the
				 * most from one to another */
};

struct merged {
	struct merged_graph g;
	struct merged_near near;
	int32_t *n_twins;	/* arcs parallel to a first one, itself counted */
	int32_t *outs, *n_outs;	/* first arcs of a node as they come in an order, where topo_out has
				 * them */
	uint16_t *hop;		/* from * n + to: which of these is the first on a shortest path */
	int order;		/* that they are in; -1: none yet */
	uint64_t *arcs;		/* by owner of a state: those that lead there in time, a bit each */
	int32_t *choice, *sorted, *begin;	/* of the owners of a state, by arc */
	struct merged_level now, next;
	struct merged_slot *found;	/* of next, by node and owners: open addressing */
	size_t slots;		/* a power of two */
	uint32_t round;		/* of the step at hand: what older ones found is void */
	uint64_t *hash;		/* by node */
	int32_t *at;		/* of the states of a step, by node */
	int32_t *used, *got;	/* numbers of a node, and contributions that have come there */
	double *load;		/* by step and arc, in vectors */
	double *fullest;	/* by step, of its arcs, or what is known to be coming */
	double vectors, limit;	/* these added up; from how many on a plan is of no use */
	int step;
	const struct merged_plan *plan;
	int piece;
	int64_t rows, max_rows;	/* transfers */
	double carried;		/* of one link, all messages over all links alike, in pieces */
	double capacity;	/* of all links */
	struct coll_sched *out;	/* NULL: only counted */
	struct arrays arrays;
};

static int head(const struct merged *m, int arc)
{
	return topo_arc(m->g.t, arc)->dst;
}

/* ---- the digraph ---- */

static void find_twins(struct merged *m)
{
	const struct topo_arc *arcs = topo_arcs(m->g.t);

	for (int u = 0; u < m->g.n; u++) {
		int first, n = topo_out(m->g.t, u, &first);

		for (int a = first; a < first + n; a++) {
			m->g.twin[a] = first;
			while (arcs[m->g.twin[a]].dst != arcs[a].dst) {
				m->g.twin[a]++;
			}
			m->g.cap[m->g.twin[a]] += (int32_t)arcs[a].cap;
			m->n_twins[m->g.twin[a]]++;
			if (m->g.twin[a] == a) {
				m->outs[first + m->n_outs[u]++] = a;
			}
		}
	}
}

static void find_ports(struct merged *m)
{
	const struct topo_arc *arcs = topo_arcs(m->g.t);
	double *out = x_new((size_t)m->g.n * 2, sizeof(*out)), *in = out + m->g.n;

	for (int a = 0; a < topo_m(m->g.t); a++) {
		out[arcs[a].src] += (double)arcs[a].cap;
		in[arcs[a].dst] += (double)arcs[a].cap;
		m->near.wide = fmax(m->near.wide, m->g.cap[a]);
		m->capacity += (double)arcs[a].cap;
	}
	m->near.out = m->near.in = HUGE_VAL;
	for (int v = 0; v < m->g.n; v++) {
		m->near.out = fmin(m->near.out, out[v]);
		m->near.in = fmin(m->near.in, in[v]);
	}
	free(out);
}

static int find_distances(struct merged *m, struct err *err)
{
	arrays_add(&m->arrays, m->g.dist, (size_t)m->g.n * (size_t)m->g.n);
	arrays_add(&m->arrays, m->hop, (size_t)m->g.n * (size_t)m->g.n);
	m->order = -1;
	for (int u = 0; u < m->g.n; u++) {
		int32_t *row = &m->g.dist[(size_t)u * (size_t)m->g.n];

		topo_bfs(m->g.t, u, row);
		for (int v = 0; v < m->g.n; v++) {
			if (row[v] < 0) {
				return err_set(err, WEFT_EINFEASIBLE,
					       "rank %d does not reach all others", u);
			}
			m->g.width = row[v] > m->g.width ? row[v] : m->g.width;
		}
	}
	return 0;
}

/* From the steps to v: from that many ranks it is no farther; so far for the nearest rank only. */
static void count_within(const int32_t *dist, size_t stride, int n, int width, int32_t *within)
{
	for (int u = 0; u < n; u++) {
		within[dist[(size_t)u * stride]]++;
	}
	for (int i = 1; i <= width; i++) {
		within[i] += within[i - 1];
	}
}

/* By the rank that has the fewest so near. */
static void find_near(struct merged *m)
{
	size_t width = (size_t)m->g.width;
	int32_t *least, *within = x_alloc(width + 1, sizeof(*within));

	arrays_add(&m->arrays, least, width + 1);
	for (int v = 0; v < m->g.n; v++) {
		memset(within, 0, (width + 1) * sizeof(*within));
		count_within(&m->g.dist[v], (size_t)m->g.n, m->g.n, m->g.width, within);
		for (size_t i = 0; i <= width; i++) {
			least[i] = v && least[i] < within[i] ? least[i] : within[i];
		}
	}
	free(within);
	m->near.width = m->g.width;
	m->near.within = least;
}

/* What comes first in an order of arcs. */
static int64_t rank_of(const struct merged *m, int arc, int order)
{
	const struct topo_arc *a = topo_arc(m->g.t, arc);
	int far = abs(a->src - a->dst);

	switch (order) {
	case 0:
		return a->dst;
	case 1:
		return (int64_t)far * m->g.n + a->dst;
	case 2:
		return -(int64_t)a->dst;
	case 3:
		return (a->dst - a->src + m->g.n) % m->g.n;
	default:
		return (int64_t)(rng_mix((uint64_t)arc + 1) >> 1);
	}
}

static void sort_arcs(struct merged *m, int v, int order)
{
	int first;
	int32_t *outs;

	topo_out(m->g.t, v, &first);
	outs = &m->outs[first];
	for (int i = 1; i < m->n_outs[v]; i++) {
		int32_t arc = outs[i], k = i;
		int64_t rank = rank_of(m, arc, order);

		for (; k > 0 && rank_of(m, outs[k - 1], order) > rank; k--) {
			outs[k] = outs[k - 1];
		}
		outs[k] = arc;
	}
}

/* The first arc on a shortest path to each node; none for the node itself. */
static void find_hops(struct merged *m, int v)
{
	size_t n = (size_t)m->g.n;
	const int32_t *far = &m->g.dist[(size_t)v * n];
	uint16_t *hop = &m->hop[(size_t)v * n];
	int first;

	topo_out(m->g.t, v, &first);
	for (size_t to = 0; to < n; to++) {
		hop[to] = (uint16_t)m->n_outs[v];
	}
	for (int k = m->n_outs[v] - 1; k >= 0; k--) {
		const int32_t *next = &m->g.dist[(size_t)head(m, m->outs[first + k]) * n];

		for (size_t to = 0; to < n; to++) {
			hop[to] = next[to] < far[to] ? (uint16_t)k : hop[to];
		}
	}
	m->g.work += (int64_t)n * m->n_outs[v] / 8;
}

static void set_order(struct merged *m, int order)
{
	for (int v = 0; v < m->g.n && m->order != order; v++) {
		sort_arcs(m, v, order);
		find_hops(m, v);
	}
	m->order = order;
}

/* ---- one state goes on ---- */

/* A number as a transfer has it (coll_xfer.kept). */
static uint16_t kept(const struct merged *m, int number)
{
	int kept = !m->plan->walks ? number + 1 : number < m->g.n - 1 ? m->g.n + number + 1
							       : 2 * m->g.n + 1;

	return (uint16_t)kept;
}

static int64_t count_chunks(const struct merged *m)
{
	return m->out ? coll_chunks(m->out) / m->plan->owners.colours : 1;
}

/* A transfer of the piece at hand over an arc and those parallel to it, which share it. */
static int add_rows(struct merged *m, int arc, struct coll_xfer x, struct err *err)
{
	int first, n = topo_out(m->g.t, topo_arc(m->g.t, arc)->src, &first), rc = 0;
	int64_t chunks = count_chunks(m), cap = 0;

	m->rows += m->n_twins[arc];
	for (int a = arc; a < first + n && m->out && !rc; a++) {
		if (m->g.twin[a] != arc) {
			continue;
		}
		x.arc = a;
		x.first = (int32_t)(m->piece * chunks + cap * chunks / m->g.cap[arc]);
		cap += topo_arc(m->g.t, a)->cap;
		x.last = (int32_t)(m->piece * chunks + cap * chunks / m->g.cap[arc]) - 1;
		rc = x.first <= x.last ? coll_add(m->out, &x, err) : 0;
	}
	return rc;
}

static struct merged_slot *find_slot(struct merged *m, uint64_t key)
{
	size_t i = key & (m->slots - 1);

	while (m->found[i].round == m->round && m->found[i].key != key) {
		i = (i + 1) & (m->slots - 1);
	}
	return &m->found[i];
}

/* Room for twice as many states. */
static void grow_slots(struct merged *m)
{
	struct merged_slot *old = m->found;
	size_t n = m->slots;

	m->slots = n ? n * 2 : 1024;
	m->found = x_new(m->slots, sizeof(*m->found));
	for (size_t i = 0; i < n; i++) {
		if (old[i].round == m->round) {
			*find_slot(m, old[i].key) = old[i];
		}
	}
	free(old);
}

static void add_targets(struct merged *m, const int32_t *targets, int n)
{
	vec_reserve(&m->next.targets, (size_t)n);
	memcpy(&m->next.targets.v[m->next.targets.n], targets, (size_t)n * sizeof(*targets));
	m->next.targets.n += (size_t)n;
}

/* The state that these owners are at the head of an arc: one that is there, or a new one. */
static struct merged_state *arrive(struct merged *m, int node, const int32_t *targets, int n)
{
	bool ends = n == 1 && targets[0] == node &&
		    (!m->plan->walks || m->step == m->g.width - 1);
	uint64_t key = m->hash[node] * 3;
	struct merged_slot *slot;

	for (int k = 0; k < n; k++) {
		key += m->hash[targets[k]];
	}
	key = rng_mix(key);
	slot = find_slot(m, key);
	if (slot->round == m->round) {
		return &m->next.states.v[slot->state];
	}
	*slot = (struct merged_slot){ key, m->round, (int32_t)m->next.states.n };
	vec_push(&m->next.states, (struct merged_state){
		.node = node, .tail = -1, .n = n, .first = m->next.targets.n,
		.number = ends ? m->g.n - 1 : m->used[node]++,
	});
	add_targets(m, targets, n);
	if (m->next.states.n * 2 > m->slots) {
		grow_slots(m);
	}
	return &m->next.states.v[m->next.states.n - 1];
}

/* One message more. */
static void add_load(struct merged *m, int arc)
{
	double *load = &m->load[(size_t)m->step * (size_t)topo_m(m->g.t) + (size_t)arc];

	m->carried += 1 / m->capacity;
	*load += 1 / (double)m->g.cap[arc] / m->plan->owners.colours;
	if (*load > m->fullest[m->step]) {
		m->vectors += *load - m->fullest[m->step];
		m->fullest[m->step] = *load;
	}
}

static int send(struct merged *m, const struct merged_state *s, int arc, const int32_t *targets,
		int n, struct err *err)
{
	struct merged_state *to = arrive(m, head(m, arc), targets, n);
	struct coll_xfer x = {
		.step = m->step, .kept = kept(m, to->number), .dest = COLL_NO_DEST,
		.op = COLL_OP_REDUCE,
	};

	if (s->number != OWN) {
		x.op = COLL_OP_FORWARD;
		x.dest = s->number;
	}
	to->ranks += s->ranks;
	m->got[to->node] += !m->plan->walks || to->number == m->g.n - 1 ? s->ranks : 0;
	if (to->tail != s->node) {
		to->tail = s->node;
		add_load(m, arc);
	}
	return to->number < m->g.n ? add_rows(m, arc, x, err)
				   : err_set(err, WEFT_ELIMIT, "too many sums at rank %d",
					     to->node);
}

/* Those on shortest paths. */
static void choose_first(struct merged *m, const struct merged_state *s)
{
	const uint16_t *hop = &m->hop[(size_t)s->node * (size_t)m->g.n];

	for (int i = 0; i < s->n; i++) {
		m->choice[i] = hop[m->now.targets.v[s->first + (size_t)i]];
	}
	m->g.work += s->n;
}

static const uint64_t *walk(const struct merged *m, int length, int from)
{
	return &m->g.walks[((size_t)length * (size_t)m->g.n + (size_t)from) * m->g.words];
}

static bool is_in(const uint64_t *set, int node)
{
	return set[node / 64] >> node % 64 & 1;
}

/* Which arcs are the first of a walk to each owner, in as many steps as are left, a bit an arc; 0:
 * none, it stays for a step. */
static void find_walks(struct merged *m, const struct merged_state *s, const int32_t *outs)
{
	int left = m->g.width - m->step - 1;

	memset(m->arcs, 0, (size_t)s->n * sizeof(*m->arcs));
	for (int k = 0; k < m->n_outs[s->node]; k++) {
		const uint64_t *set = walk(m, left, head(m, outs[k]));

		for (int i = 0; i < s->n; i++) {
			int to = m->now.targets.v[s->first + (size_t)i];

			m->arcs[i] |= (uint64_t)is_in(set, to) << k;
		}
	}
	m->g.work += (int64_t)s->n * m->n_outs[s->node];
}

/* The arc that leads to most of the owners for which none is chosen, and on. */
static void choose_walks(struct merged *m, const struct merged_state *s, const int32_t *outs)
{
	int n = m->n_outs[s->node], left = s->n;

	find_walks(m, s, outs);
	for (int i = 0; i < s->n; i++) {
		m->choice[i] = m->arcs[i] ? -1 : n;
		left -= !m->arcs[i];
	}
	while (left > 0) {
		int best = 0;

		memset(m->begin, 0, (size_t)(n + 2) * sizeof(*m->begin));
		for (int i = 0; i < s->n; i++) {
			for (uint64_t x = m->choice[i] < 0 ? m->arcs[i] : 0; x; x &= x - 1) {
				m->begin[__builtin_ctzll(x)]++;
			}
		}
		for (int k = 1; k < n; k++) {
			best = m->begin[k] > m->begin[best] ? k : best;
		}
		for (int i = 0; i < s->n; i++) {
			if (m->choice[i] < 0 && m->arcs[i] >> best & 1) {
				m->choice[i] = best;
				left--;
			}
		}
	}
}

/* What a state waits with: the same, a step later. */
static void stay(struct merged *m, const struct merged_state *s, const int32_t *targets, int n)
{
	struct merged_state to = *s;

	to.first = m->next.targets.n;
	to.n = n;
	to.tail = -1;
	add_targets(m, targets, n);
	vec_push(&m->next.states, to);
}

/* The owners of a state by the arcs that are chosen: a message each. */
static int go_on(struct merged *m, const struct merged_state *s, struct err *err)
{
	int first, n_outs = m->n_outs[s->node], rc = 0;
	const int32_t *outs;

	topo_out(m->g.t, s->node, &first);
	outs = &m->outs[first];
	if (m->plan->walks) {
		choose_walks(m, s, outs);
	} else {
		choose_first(m, s);
	}
	memset(m->begin, 0, (size_t)(n_outs + 2) * sizeof(*m->begin));
	for (int i = 0; i < s->n; i++) {
		m->begin[m->choice[i] + 1]++;
	}
	for (int k = 0; k < n_outs; k++) {
		m->begin[k + 1] += m->begin[k];
	}
	for (int i = 0; i < s->n; i++) {
		m->sorted[m->begin[m->choice[i]]++] = m->now.targets.v[s->first + (size_t)i];
	}
	for (int k = 0, at = 0; k < n_outs && !rc; at = m->begin[k++]) {
		rc = m->begin[k] > at
			     ? send(m, s, outs[k], &m->sorted[at], m->begin[k] - at, err) : 0;
	}
	if (m->plan->walks && m->begin[n_outs] > (n_outs ? m->begin[n_outs - 1] : 0)) {
		int at = n_outs ? m->begin[n_outs - 1] : 0;

		stay(m, s, &m->sorted[at], m->begin[n_outs] - at);
	}
	return rc;
}

/* ---- the steps of a piece ---- */

static bool is_owner(const struct merged *m, int node)
{
	const struct merged_owners *o = &m->plan->owners;

	return o->colours == 1 || o->colour[node] == m->piece;
}

/* All contributions, each for all owners, early without the rank itself. */
static void begin_piece(struct merged *m)
{
	int32_t *owners = m->sorted, n = 0;

	for (int v = 0; v < m->g.n; v++) {
		owners[n] = v;
		n += is_owner(m, v);
	}
	m->now.states.n = m->now.targets.n = 0;
	vec_reserve(&m->now.targets, (size_t)m->g.n * (size_t)n + 1);
	memset(m->used, 0, (size_t)m->g.n * sizeof(*m->used));
	memset(m->got, 0, (size_t)m->g.n * sizeof(*m->got));
	for (int u = 0; u < m->g.n; u++) {
		size_t first = m->now.targets.n;

		for (int i = 0; i < n; i++) {
			m->now.targets.v[m->now.targets.n] = owners[i];
			m->now.targets.n += owners[i] != u || m->plan->walks;
		}
		vec_push(&m->now.states, (struct merged_state){
			.node = u, .number = OWN, .ranks = 1, .first = first,
			.n = (int32_t)(m->now.targets.n - first),
		});
	}
}

/* What came becomes what goes on, node by node. */
static void end_step(struct merged *m)
{
	struct merged_level came = m->next;
	int32_t *at = m->at;

	memset(at, 0, (size_t)(m->g.n + 1) * sizeof(*at));
	for (size_t i = 0; i < came.states.n; i++) {
		at[came.states.v[i].node + 1]++;
	}
	for (int v = 0; v < m->g.n; v++) {
		at[v + 1] += at[v];
	}
	m->next.targets = m->now.targets;
	m->next.targets.n = 0;
	m->now.states.n = 0;
	vec_reserve(&m->now.states, came.states.n);
	m->now.states.n = came.states.n;
	for (size_t i = 0; i < came.states.n; i++) {
		m->now.states.v[at[came.states.v[i].node]++] = came.states.v[i];
	}
	m->now.targets = came.targets;
	m->next.states.n = 0;
	m->round++;
	m->step++;
}

/* Whether the plan is of no use any more. */
static bool is_over(const struct merged *m)
{
	return m->vectors >= m->limit;
}

static int run_piece(struct merged *m, struct err *err)
{
	int rc = 0;

	begin_piece(m);
	for (m->step = 0; m->step < m->g.width && !rc && !is_over(m); end_step(m)) {
		for (size_t i = 0; i < m->now.states.n && !rc && !is_over(m); i++) {
			rc = go_on(m, &m->now.states.v[i], err);
		}
		if (!rc && m->rows > m->max_rows) {
			rc = err_set(err, WEFT_ELIMIT, "algorithm one-shot: more than %lld "
				     "transfers are too many", (long long)m->max_rows);
		}
	}
	for (int v = 0; v < m->g.n && m->plan->walks && !rc && !is_over(m); v++) {
		if (is_owner(m, v) && m->got[v] != m->g.n) {
			rc = err_set(err, WEFT_EINFEASIBLE, "no walks of %d arcs to rank %d",
				     m->g.width, v);
		}
	}
	return rc;
}

static int run_copies(struct merged *m, struct err *err)
{
	const struct merged_owners *o = &m->plan->owners;
	int rc = 0;

	for (size_t i = 0; i < o->copies.n && !rc; i++) {
		const struct merged_copy *c = &o->copies.v[i];
		struct coll_xfer x = { .step = m->g.width + c->step, .op = COLL_OP_COPY,
				       .dest = COLL_NO_DEST };

		m->piece = c->piece;
		rc = add_rows(m, c->arc, x, err);
	}
	return rc;
}

/* Whether the plan will be of no use if its other pieces are about as those so far, copies taken
 * into account: links do not carry less than on average. */
static bool is_hopeless(const struct merged *m)
{
	int colours = m->plan->owners.colours, pieces = m->piece + 1;
	double copies = (1 - 1 / (double)colours) / m->near.in;

	return !m->out && pieces < colours &&
	       m->carried / pieces + copies > m->limit * (pieces < 4 ? 1.25 : 1.05);
}

/* The sums of all pieces; who has them in the end: have[piece * n + node]. */
static int run_sums(struct merged *m, bool *have, struct err *err)
{
	int rc = 0;

	for (m->piece = 0; m->piece < m->plan->owners.colours && !rc && !is_over(m); m->piece++) {
		rc = run_piece(m, err);
		m->vectors = is_hopeless(m) ? HUGE_VAL : m->vectors;
		for (int v = 0; v < m->g.n && !is_over(m); v++) {
			have[m->piece * m->g.n + v] =
				m->plan->walks ? is_owner(m, v) : m->got[v] == m->g.n - 1;
		}
	}
	return rc;
}

/* Something goes on in every step, as one rank is that far from an owner; in the first what all
 * contribute to pieces of others. */
static void begin_plan(struct merged *m, const struct merged_plan *plan)
{
	double part = 1 / (double)plan->owners.colours;

	m->plan = plan;
	m->rows = 0;
	m->carried = m->vectors = 0;
	memset(m->load, 0, (size_t)topo_m(m->g.t) * (size_t)m->g.width * sizeof(*m->load));
	for (int step = 0; step < m->g.width; step++) {
		m->fullest[step] = step ? part / m->near.wide
					: fmax(part / m->near.wide, (1 - part) / m->near.out);
		m->vectors += m->fullest[step];
	}
	set_order(m, plan->order);
}

/* Vectors of a plan, HUGE_VAL from m->limit on; with m->out its transfers. */
static int run(struct merged *m, struct merged_plan *plan, struct err *err)
{
	struct merged_owners *o = &plan->owners;
	bool *have = x_new((size_t)o->colours * (size_t)m->g.n, sizeof(*have));
	int rc;

	begin_plan(m, plan);
	rc = run_sums(m, have, err);
	plan->vectors = HUGE_VAL;
	if (!rc && !is_over(m)) {
		merged_copy_sums(&m->g, o, have);
		plan->vectors = o->vectors;
		for (int step = 0; step < m->g.width; step++) {
			plan->vectors += m->fullest[step];
		}
		rc = run_copies(m, err);
	}
	free(have);
	return rc;
}

/* ---- the schedule ---- */

/* Chunks a piece, so that parallel arcs can share them; 1: where these were too many the widest
 * takes all. */
static int split(const struct merged *m, int colours)
{
	int64_t chunks = 1;

	for (int a = 0; a < topo_m(m->g.t) && chunks * colours <= MAX_SPLIT; a++) {
		if (m->g.twin[a] == a && m->g.cap[a] > topo_arc(m->g.t, a)->cap) {
			chunks = chunks / rat_gcd(chunks, m->g.cap[a]) * m->g.cap[a];
		}
	}
	return chunks * colours <= MAX_SPLIT ? (int)chunks : 1;
}

static int make_schedule(struct merged *m, struct merged_plan *plan, struct coll_sched **out,
			 struct err *err)
{
	struct topo *copy = NULL;
	int colours = plan->owners.colours, rc = topo_copy(m->g.t, &copy, err);

	(void)(rc || (rc = coll_new(COLL_ALLREDUCE, copy, colours * split(m, colours), 0, 0, out,
				    err)) || (rc = coll_set_alike(*out, err)));
	if (!rc) {
		m->out = *out;
		m->limit = HUGE_VAL;
		(void)((rc = run(m, plan, err)) || (rc = coll_finish(*out, err)));
	}
	return rc;
}

/* ---- which plan ---- */

static void plan_fini(struct merged_plan *p)
{
	merged_owners_fini(&p->owners);
}

/* What so many steps and vectors take: with a cost ns, else vectors. */
static double weigh_by(const struct coll_cost *c, int steps, double vectors)
{
	return c ? (double)steps * (double)(c->alpha_ns + c->hop_ns + c->message_ns) +
			   vectors * (double)c->size_bytes * 8e9 / (double)c->link_bps
		 : vectors;
}

static double weigh(const struct merged *m, const struct merged_plan *p,
		    const struct merged_aim *aim)
{
	return weigh_by(aim->cost, m->g.width + p->owners.radius, p->vectors);
}

/* Of so many colours: what a rank sends in the first step, what passes by later, and copies. */
static double min_vectors(const struct merged_near *near, int colours)
{
	double part = 1 / (double)colours;

	return fmax(part / near->wide, (1 - part) / near->out) +
	       part * (near->width - 1) / near->wide + (1 - part) / near->in;
}

/* About the least that sums may take with copies in so many steps: of as many colours as some node
 * has others near, or of two. */
static double estimate(const struct merged_near *near, int radius, const struct coll_cost *cost)
{
	double vectors = min_vectors(near, radius ? near->within[radius] : 1);

	return weigh_by(cost, near->width + radius,
			radius ? fmin(vectors, min_vectors(near, 2)) : vectors);
}

static bool may_gain(const struct merged *m, int radius, const struct merged_aim *aim,
		     const struct merged_plan *best)
{
	double least = estimate(&m->near, radius, aim->cost);

	return (aim->below_ns <= 0 || least < aim->below_ns) &&
	       (!best || least < weigh(m, best, aim));
}

/* Whether a is what is aimed at, and better: of equals the one that keeps nothing apart. */
static bool is_better(const struct merged *m, const struct merged_plan *a,
		      const struct merged_plan *b, const struct merged_aim *aim)
{
	double one = weigh(m, a, aim), other = weigh(m, b, aim);

	if (aim->below_ns > 0 && one >= aim->below_ns) {
		return false;
	}
	return one < other || (one < HUGE_VAL && one == other && b->walks && !a->walks);
}

/* From how many vectors on a plan is of no use beside the best so far, or what is aimed at. */
static double limit_of(const struct merged *m, const struct merged_plan *p,
		       const struct merged_aim *aim, const struct merged_plan *best)
{
	double most = weigh(m, best, aim), steps = weigh_by(aim->cost, m->g.width +
							    p->owners.radius, 0);

	most = aim->below_ns > 0 ? fmin(most, aim->below_ns) : most;
	most = aim->cost ? (most - steps) / weigh_by(aim->cost, 0, 1) : most;
	return best->walks && !p->walks ? most * (1 + 1e-9) : most;
}

/* Runs a plan, and keeps it where it is the best so far of few enough steps; it is taken over. */
static int try_plan(struct merged *m, struct merged_plan *p, const struct merged_aim *aim,
		    struct merged_plan *best, struct err *err)
{
	int rc;

	m->limit = limit_of(m, p, aim, best);
	if (min_vectors(&m->near, p->owners.colours) >= m->limit) {
		plan_fini(p);
		return 0;
	}
	rc = run(m, p, err);
	if (!rc && p->owners.radius <= aim->extra && is_better(m, p, best, aim)) {
		plan_fini(best);
		*best = *p;
	} else {
		plan_fini(p);
	}
	return rc;
}

/* Walks of as many arcs as the digraph is wide, where such lead from each node to each. */
static bool find_all_walks(struct merged *m, bool no_loops)
{
	struct merged_graph *g = &m->g;

	for (int a = 0; a < topo_m(g->t) && no_loops; a++) {
		if (topo_arc(g->t, a)->src == head(m, a)) {
			return false;
		}
	}
	if (g->width > MAX_WALK || topo_max_degree(g->t) > 64) {
		return false;
	}
	g->words = ((size_t)g->n + 63) / 64;
	arrays_add(&m->arrays, g->walks, (size_t)(g->width + 1) * (size_t)g->n * g->words);
	for (int u = 0; u < g->n; u++) {
		g->walks[(size_t)u * g->words + (size_t)u / 64] |= UINT64_C(1) << u % 64;
	}
	for (int a = 0; a < topo_m(g->t) * g->width; a++) {
		const struct topo_arc *arc = topo_arc(g->t, a % topo_m(g->t));
		int length = a / topo_m(g->t);
		const uint64_t *from = walk(m, length, arc->dst);
		size_t to = ((size_t)(length + 1) * (size_t)g->n + (size_t)arc->src) * g->words;

		for (size_t i = 0; i < g->words; i++) {
			g->walks[to + i] |= from[i];
		}
	}
	g->work += (int64_t)topo_m(g->t) * g->width * (int64_t)g->words;
	return true;
}

/* In as many steps as the digraph is wide: by walks, and by some orders of arcs. *first keeps the
 * first error. */
static void plan_one_shot(struct merged *m, const struct merged_aim *aim,
			  struct merged_plan *best, struct err *first)
{
	double least = min_vectors(&m->near, 1);

	if (find_all_walks(m, aim->no_loops) && may_gain(m, 0, aim, best)) {
		(void)try_plan(m, &(struct merged_plan){ .owners.colours = 1, .walks = true }, aim,
			       best, NULL);
	}
	for (int order = 0; order < ORDERS && may_gain(m, 0, aim, NULL); order++) {
		/* Where walks are about as good as can be, and better than by two orders. */
		if (order == 2 && best->walks && best->vectors < GOOD * least) {
			break;
		}
		(void)try_plan(m, &(struct merged_plan){ .owners.colours = 1, .order = order },
			       aim, best, first->code ? NULL : first);
	}
}

/* Sums by walks at those nodes where shorter ones end. */
static void plan_walks(struct merged *m, int radius, const struct merged_aim *aim,
		       struct merged_plan *best)
{
	struct merged_plan p = { .walks = true };

	if (m->g.walks && merged_colour_walks(&m->g, m->g.width - radius, &p.owners)) {
		p.owners.radius = radius;
		(void)try_plan(m, &p, aim, best, NULL);
	}
}

/* Sums at some nodes of each neighbourhood, early and by walks. */
static void plan_near(struct merged *m, int radius, int order, const struct merged_aim *aim,
		      struct merged_plan *best)
{
	struct merged_plan p = { .order = order }, q = { .order = order, .walks = true };

	if (!merged_colour(&m->g, radius, &p.owners)) {
		return;
	}
	p.owners.radius = q.owners.radius = radius;
	q.owners.colours = p.owners.colours;
	q.owners.colour = x_alloc((size_t)m->g.n, sizeof(*q.owners.colour));
	memcpy(q.owners.colour, p.owners.colour, (size_t)m->g.n * sizeof(*p.owners.colour));
	(void)try_plan(m, &p, aim, best, NULL);
	if (m->g.walks) {
		(void)try_plan(m, &q, aim, best, NULL);
	} else {
		plan_fini(&q);
	}
}

/* With copies in so many steps more at most, what promises most first. */
static void plan_hybrids(struct merged *m, const struct merged_aim *aim, struct merged_plan *best)
{
	int n = aim->extra < m->g.width - 1 ? aim->extra : m->g.width - 1, order = best->order;
	int *radii = x_alloc((size_t)m->g.width, sizeof(*radii));

	for (int i = 0; i < n; i++) {
		double least = estimate(&m->near, i + 1, aim->cost);
		int k = i;

		for (; k > 0 && estimate(&m->near, radii[k - 1], aim->cost) > least; k--) {
			radii[k] = radii[k - 1];
		}
		radii[k] = i + 1;
	}
	for (int i = 0; i < n && m->g.work < MAX_WORK && may_gain(m, radii[i], aim, best); i++) {
		plan_walks(m, radii[i], aim, best);
	}
	for (int i = 0; i < n && m->g.work < MAX_WORK && may_gain(m, radii[i], aim, best); i++) {
		plan_near(m, radii[i], order, aim, best);
	}
	free(radii);
}

/* A digraph that it can be done for. */
static int merged_init(struct merged *m, const struct topo *t, struct err *err)
{
	size_t n = (size_t)topo_n(t);

	*m = (struct merged){ .g = { .t = t, .n = topo_n(t) } };
	if (topo_n(t) != topo_ranks(t)) {
		return err_set(err, WEFT_EUNSUPPORTED, "sums through nodes that are no ranks: "
			       "not supported");
	}
	if (topo_n(t) > MAX_NODES) {
		return err_set(err, WEFT_ELIMIT, "%d nodes: sums are merged for at most %d",
			       topo_n(t), MAX_NODES);
	}
	arrays_add(&m->arrays, m->g.twin, topo_m(t));
	arrays_add(&m->arrays, m->g.cap, topo_m(t));
	arrays_add(&m->arrays, m->n_twins, topo_m(t));
	arrays_add(&m->arrays, m->outs, topo_m(t));
	arrays_add(&m->arrays, m->n_outs, n);
	arrays_add(&m->arrays, m->choice, n);
	arrays_add(&m->arrays, m->sorted, n + 1);
	arrays_add(&m->arrays, m->arcs, n);
	arrays_add(&m->arrays, m->begin, topo_max_degree(t) + 2);
	arrays_add(&m->arrays, m->at, n + 1);
	arrays_add(&m->arrays, m->hash, n);
	arrays_add(&m->arrays, m->used, n);
	arrays_add(&m->arrays, m->got, n);
	m->round = 1;
	grow_slots(m);
	for (size_t v = 0; v < n; v++) {
		m->hash[v] = rng_mix(v + 1);
	}
	find_twins(m);
	find_ports(m);
	return 0;
}

static void merged_fini(struct merged *m)
{
	free(m->found);
	vec_fini(&m->now.states);
	vec_fini(&m->next.states);
	vec_fini(&m->now.targets);
	vec_fini(&m->next.targets);
	arrays_fini(&m->arrays);
}

/* What no plan is below, about. */
static double min_weight(const struct merged_near *near, const struct merged_aim *aim)
{
	double least = estimate(near, 0, aim->cost);

	for (int radius = 1; radius <= aim->extra && radius < near->width; radius++) {
		least = fmin(least, estimate(near, radius, aim->cost));
	}
	return least;
}

/* The best plan, as it is aimed at; of HUGE_VAL vectors where there is none. */
static int find_plan(struct merged *m, const struct merged_aim *aim, struct merged_plan *best,
		     struct err *err)
{
	struct err first = { 0 };
	int rc = find_distances(m, err);

	if (rc) {
		return rc;
	}
	m->max_rows = aim->max_rows;
	find_near(m);
	if (aim->below_ns > 0 && min_weight(&m->near, aim) >= aim->below_ns) {
		return 0;
	}
	arrays_add(&m->arrays, m->load, (size_t)topo_m(m->g.t) * (size_t)m->g.width);
	arrays_add(&m->arrays, m->fullest, m->g.width);
	plan_one_shot(m, aim, best, &first);
	plan_hybrids(m, aim, best);
	return best->vectors < HUGE_VAL || !first.code
		       ? 0 : err_set(err, first.code, "%s", first.msg);
}

int make_merged(const struct topo *t, const struct merged_aim *aim, struct coll_sched **out,
		struct err *err)
{
	struct merged_plan best = { .vectors = HUGE_VAL };
	struct merged m;
	int rc;

	*out = NULL;
	(void)((rc = merged_init(&m, t, err)) || (rc = find_plan(&m, aim, &best, err)));
	if (!rc && best.vectors < HUGE_VAL) {
		rc = make_schedule(&m, &best, out, err);
	}
	if (rc) {
		coll_free(*out);
		*out = NULL;
	}
	plan_fini(&best);
	merged_fini(&m);
	return rc;
}

int make_merged_ns(const struct topo *t, const struct merged_aim *aim, double *ns,
		   struct err *err)
{
	struct merged_plan best = { .vectors = HUGE_VAL };
	struct merged m;
	int rc;

	(void)((rc = merged_init(&m, t, err)) || (rc = find_plan(&m, aim, &best, err)));
	*ns = weigh(&m, &best, aim);
	plan_fini(&best);
	merged_fini(&m);
	return rc;
}

/* As the first rank has others near. */
static int look_around(struct merged *m, struct err *err)
{
	struct topo *back = NULL;
	int32_t *dist, *within;
	int rc = topo_transpose(m->g.t, &back, NULL, err);

	if (rc) {
		return rc;
	}
	arrays_add(&m->arrays, dist, m->g.n);
	topo_bfs(back, 0, dist);
	topo_free(back);
	for (int v = 0; v < m->g.n; v++) {
		if (dist[v] < 0) {
			return err_set(err, WEFT_EINFEASIBLE, "rank %d does not reach all others",
				       v);
		}
		m->near.width = dist[v] > m->near.width ? dist[v] : m->near.width;
	}
	arrays_add(&m->arrays, within, m->near.width + 1);
	count_within(dist, 1, m->g.n, m->near.width, within);
	m->near.within = within;
	return 0;
}

int make_merged_min_ns(const struct topo *t, const struct merged_aim *aim, double *ns,
		       struct err *err)
{
	struct merged m;
	int rc;

	(void)((rc = merged_init(&m, t, err)) || (rc = look_around(&m, err)));
	*ns = rc ? HUGE_VAL : min_weight(&m.near, aim);
	merged_fini(&m);
	return rc;
}
