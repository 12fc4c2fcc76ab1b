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
#include "lib/base/map.h"
#include "lib/base/number/rat.h"
#include "lib/base/number/rng.h"

#define MAX_NODES 2896	/* so that tables by two of them stay small; <= COLL_MAX_MERGED */
#define MAX_SPLIT 5040	/* chunks */
#define MAX_ROWS (INT64_C(1) << 23)
#define MAX_WORK (INT64_C(1) << 27)	/* looks at a node, for other plans than the first */
#define OWN (-1)
#define ORDERS 5
#define MAX_WALK 16	/* arcs */

/* Contributions at a node that go on to the same owners. */
struct merged_state {
	int32_t node, number;	/* kept under it there; OWN: what the rank itself contributes */
	int32_t tail;		/* from where a message brought it last */
	int32_t ranks;		/* whose contributions they are, */
	int32_t n;		/* and for how many owners: targets.v[first] and on */
	size_t first;
};

struct merged_plan {
	struct merged_owners owners;
	int order;
	bool walks;		/* else early */
	int steps;		/* of sums, without copies */
	double vectors;		/* over the fullest link of each step, copies and all */
};

struct merged {
	struct merged_graph g;
	int32_t *outs, *n_outs;	/* first arcs of a node as they come in an order, where topo_out has
				 * them */
	uint64_t *arcs;		/* by owner of a state: those that lead there in time, a bit each */
	int32_t *choice, *sorted, *begin;	/* of the owners of a state, by arc */
	VEC(struct merged_state) now, next;
	VEC(int32_t) targets, next_targets;
	struct u64map found;	/* of next, by node and owners */
	int32_t *used, *got;	/* numbers of a node, and contributions that have come there */
	double *load;		/* by step and arc, in vectors */
	int step;
	const struct merged_plan *plan;
	int piece;
	int64_t rows;
	struct coll_sched *out;	/* NULL: only counted */
	struct arrays arrays;
};

static int dist(const struct merged *m, int from, int to)
{
	return m->g.dist[(size_t)from * (size_t)m->g.n + (size_t)to];
}

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
			if (m->g.twin[a] == a) {
				m->outs[first + m->n_outs[u]++] = a;
			}
		}
	}
}

static int find_distances(struct merged *m, struct err *err)
{
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

/* What comes first in an order of arcs. */
static int64_t rank_of(const struct merged *m, int arc, int order)
{
	const struct topo_arc *a = topo_arc(m->g.t, arc);
	int far = abs(a->src - a->dst);

	switch (order) {
	case 0:
		return a->dst;
	case 1:
		return -(int64_t)a->dst;
	case 2:
		return (int64_t)far * m->g.n + a->dst;
	case 3:
		return (a->dst - a->src + m->g.n) % m->g.n;
	default:
		return (int64_t)(rng_mix((uint64_t)arc + 1) >> 1);
	}
}

static void sort_arcs(struct merged *m, int order)
{
	for (int v = 0; v < m->g.n; v++) {
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

	m->rows++;
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

/* The state that these owners are at the head of an arc: one that is there, or a new one. */
static struct merged_state *arrive(struct merged *m, int node, const int32_t *targets, int n)
{
	bool ends = n == 1 && targets[0] == node &&
		    (!m->plan->walks || m->step == m->g.width - 1);
	uint64_t key = rng_mix((uint64_t)node + 1), i = m->next.n;

	for (int k = 0; k < n; k++) {
		key += rng_mix(rng_mix((uint64_t)targets[k] + 1) + (uint64_t)node);
	}
	if (!u64map_get(&m->found, key, &i)) {
		u64map_set(&m->found, key, i);
		vec_push(&m->next, (struct merged_state){
			.node = node, .tail = -1, .n = n, .first = m->next_targets.n,
			.number = ends ? m->g.n - 1 : m->used[node]++,
		});
		for (int k = 0; k < n; k++) {
			vec_push(&m->next_targets, targets[k]);
		}
	}
	return &m->next.v[i];
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
		m->load[(size_t)m->step * (size_t)topo_m(m->g.t) + (size_t)arc] +=
			1 / (double)m->g.cap[arc] / m->plan->owners.colours;
	}
	return to->number < m->g.n ? add_rows(m, arc, x, err)
				   : err_set(err, WEFT_ELIMIT, "too many sums at rank %d",
					     to->node);
}

/* The first arc on a shortest path to each owner; none for the node itself. */
static void choose_first(struct merged *m, const struct merged_state *s, const int32_t *outs)
{
	for (int i = 0; i < s->n; i++) {
		int to = m->targets.v[s->first + (size_t)i], far = dist(m, s->node, to), k = 0;

		while (far > 0 && dist(m, head(m, outs[k]), to) != far - 1) {
			k++;
		}
		m->choice[i] = far > 0 ? k : m->n_outs[s->node];
		m->g.work += k + 1;
	}
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
			int to = m->targets.v[s->first + (size_t)i];

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

	to.first = m->next_targets.n;
	to.n = n;
	to.tail = -1;
	for (int k = 0; k < n; k++) {
		vec_push(&m->next_targets, targets[k]);
	}
	vec_push(&m->next, to);
}

/* The owners of a state by the arcs that are chosen: a message each. */
static int go_on(struct merged *m, const struct merged_state *s, struct err *err)
{
	int first, n_outs = m->n_outs[s->node], rc = 0;
	const int32_t *outs;

	topo_out(m->g.t, s->node, &first);
	outs = &m->outs[first];
	(m->plan->walks ? choose_walks : choose_first)(m, s, outs);
	memset(m->begin, 0, (size_t)(n_outs + 2) * sizeof(*m->begin));
	for (int i = 0; i < s->n; i++) {
		m->begin[m->choice[i] + 1]++;
	}
	for (int k = 0; k < n_outs; k++) {
		m->begin[k + 1] += m->begin[k];
	}
	for (int i = 0; i < s->n; i++) {
		m->sorted[m->begin[m->choice[i]]++] = m->targets.v[s->first + (size_t)i];
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
	m->now.n = m->targets.n = 0;
	memset(m->used, 0, (size_t)m->g.n * sizeof(*m->used));
	memset(m->got, 0, (size_t)m->g.n * sizeof(*m->got));
	for (int u = 0; u < m->g.n; u++) {
		size_t first = m->targets.n;

		for (int v = 0; v < m->g.n; v++) {
			if ((v != u || m->plan->walks) && is_owner(m, v)) {
				vec_push(&m->targets, v);
			}
		}
		vec_push(&m->now, (struct merged_state){
			.node = u, .number = OWN, .ranks = 1, .first = first,
			.n = (int32_t)(m->targets.n - first),
		});
	}
}

static int by_node(const void *pa, const void *pb)
{
	const struct merged_state *a = pa, *b = pb;

	return a->node != b->node ? (a->node < b->node ? -1 : 1)
				  : a->number < b->number ? -1 : a->number > b->number;
}

/* What came becomes what goes on. */
static void end_step(struct merged *m)
{
	struct merged_state *states = m->now.v;
	int32_t *targets = m->targets.v;
	size_t cap = m->now.cap, target_cap = m->targets.cap;

	m->now.v = m->next.v;
	m->now.n = m->next.n;
	m->now.cap = m->next.cap;
	m->next.v = states;
	m->next.n = 0;
	m->next.cap = cap;
	m->targets.v = m->next_targets.v;
	m->targets.n = m->next_targets.n;
	m->targets.cap = m->next_targets.cap;
	m->next_targets.v = targets;
	m->next_targets.n = 0;
	m->next_targets.cap = target_cap;
	u64map_fini(&m->found);
	if (m->now.n > 0) {
		qsort(m->now.v, m->now.n, sizeof(*m->now.v), by_node);
	}
	m->step++;
}

static int run_piece(struct merged *m, struct err *err)
{
	int rc = 0;

	begin_piece(m);
	for (m->step = 0; m->step < m->g.width && m->now.n > 0 && !rc; end_step(m)) {
		for (size_t i = 0; i < m->now.n && !rc; i++) {
			rc = go_on(m, &m->now.v[i], err);
		}
		if (m->rows > MAX_ROWS) {
			rc = err_set(err, WEFT_ELIMIT, "sums that are merged take more than %lld "
				     "transfers", (long long)MAX_ROWS);
		}
	}
	u64map_fini(&m->found);
	for (int v = 0; v < m->g.n && m->plan->walks && !rc; v++) {
		if (is_owner(m, v) && m->got[v] != m->g.n) {
			rc = err_set(err, WEFT_EINFEASIBLE, "no walks of %d arcs to rank %d",
				     m->g.width, v);
		}
	}
	return rc;
}

static int run_copies(struct merged *m, int steps, struct err *err)
{
	const struct merged_owners *o = &m->plan->owners;
	int rc = 0;

	for (size_t i = 0; i < o->copies.n && !rc; i++) {
		const struct merged_copy *c = &o->copies.v[i];
		struct coll_xfer x = { .step = steps + c->step, .op = COLL_OP_COPY,
				       .dest = COLL_NO_DEST };

		m->piece = c->piece;
		rc = add_rows(m, c->arc, x, err);
	}
	return rc;
}

/* The sums of all pieces; who has them in the end: have[piece * n + node]. */
static int run_sums(struct merged *m, bool *have, struct err *err)
{
	int rc = 0;

	for (m->piece = 0; m->piece < m->plan->owners.colours && !rc; m->piece++) {
		rc = run_piece(m, err);
		for (int v = 0; v < m->g.n; v++) {
			have[m->piece * m->g.n + v] =
				m->plan->walks ? is_owner(m, v) : m->got[v] == m->g.n - 1;
		}
	}
	return rc;
}

/* The most that a link carries in a step. */
static double fullest(const struct merged *m, int step)
{
	const double *load = &m->load[(size_t)step * (size_t)topo_m(m->g.t)];
	double most = 0;

	for (int a = 0; a < topo_m(m->g.t); a++) {
		most = fmax(most, load[a]);
	}
	return most;
}

/* Steps and vectors of a plan; with m->out its transfers. */
static int run(struct merged *m, struct merged_plan *plan, struct err *err)
{
	struct merged_owners *o = &plan->owners;
	bool *have = x_new((size_t)o->colours * (size_t)m->g.n, sizeof(*have));
	int rc;

	m->plan = plan;
	m->rows = 0;
	sort_arcs(m, plan->order);
	memset(m->load, 0, (size_t)topo_m(m->g.t) * (size_t)m->g.width * sizeof(*m->load));
	rc = run_sums(m, have, err);
	if (!rc) {
		merged_copy_sums(&m->g, o, have);
	}
	plan->vectors = o->vectors;
	plan->steps = 0;
	for (int step = 0; step < m->g.width; step++) {
		double most = fullest(m, step);

		plan->vectors += most;
		plan->steps = most > 0 ? step + 1 : plan->steps;
	}
	if (!rc) {
		rc = run_copies(m, plan->steps, err);
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
		(void)((rc = run(m, plan, err)) || (rc = coll_finish(*out, err)));
	}
	return rc;
}

/* ---- which plan ---- */

static void plan_fini(struct merged_plan *p)
{
	merged_owners_fini(&p->owners);
}

/* What it takes: with a cost ns, else vectors. */
static double weigh(const struct merged_plan *p, const struct coll_cost *c)
{
	return c ? (double)(p->steps + p->owners.radius) *
			   (double)(c->alpha_ns + c->hop_ns + c->message_ns) +
			   p->vectors * (double)c->size_bytes * 8e9 / (double)c->link_bps
		 : p->vectors;
}

/* About the least that sums may take with copies in so many steps: what a rank sends and gets, and
 * what passes by, of as many pieces as the first node has others near. */
static double estimate(const struct merged *m, int radius, const struct coll_cost *cost)
{
	struct merged_plan p = { .owners.radius = radius, .steps = m->g.width };
	double colours = 0;

	for (int v = 0; v < m->g.n; v++) {
		colours += dist(m, 0, v) <= radius;
	}
	p.vectors = radius ? 2 * (1 - 1 / colours) / topo_max_degree(m->g.t) +
				     (m->g.width - 2) / colours
			   : m->g.width;
	return weigh(&p, cost);
}

static bool may_gain(const struct merged *m, int radius, const struct merged_aim *aim,
		     const struct merged_plan *best)
{
	double least = estimate(m, radius, aim->cost);

	return (aim->below_ns <= 0 || least < aim->below_ns) &&
	       (!best || least < weigh(best, aim->cost));
}

/* Runs a plan, and keeps it where it is the best so far of few enough steps; it is taken over. */
static int try_plan(struct merged *m, struct merged_plan *p, const struct merged_aim *aim,
		    struct merged_plan *best, struct err *err)
{
	int rc = run(m, p, err);

	if (!rc && p->steps + p->owners.radius - m->g.width <= aim->extra &&
	    weigh(p, aim->cost) < weigh(best, aim->cost)) {
		plan_fini(best);
		*best = *p;
	} else {
		plan_fini(p);
	}
	return rc;
}

/* In as many steps as the digraph is wide, by so many orders of arcs. */
static int plan_one_shot(struct merged *m, int orders, const struct merged_aim *aim,
			 struct merged_plan *best, struct err *err)
{
	int rc = 0;

	best->vectors = HUGE_VAL;
	for (int order = 0; order < orders && !rc; order++) {
		rc = try_plan(m, &(struct merged_plan){ .owners.colours = 1, .order = order }, aim,
			      best, err);
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

/* By walks, to all, and to those where shorter ones end. */
static void plan_walks(struct merged *m, const struct merged_aim *aim, struct merged_plan *best)
{
	if (!find_all_walks(m, aim->no_loops)) {
		return;
	}
	if (may_gain(m, 0, aim, NULL)) {
		(void)try_plan(m, &(struct merged_plan){ .owners.colours = 1, .walks = true }, aim,
			       best, NULL);
	}
	for (int length = m->g.width - 1; length > 0 && m->g.work < MAX_WORK; length--) {
		struct merged_plan p = { .walks = true };

		if (may_gain(m, m->g.width - length, aim, best) &&
		    merged_colour_walks(&m->g, length, &p.owners)) {
			(void)try_plan(m, &p, aim, best, NULL);
		}
	}
}

/* Sums at some nodes of each neighbourhood, early and by walks, and copies from there: of so many
 * steps more at most. */
static void plan_hybrids(struct merged *m, const struct merged_aim *aim, struct merged_plan *best)
{
	int order = best->order;

	for (int radius = 1; radius <= aim->extra && radius < m->g.width && m->g.work < MAX_WORK;
	     radius++) {
		struct merged_plan p = { .order = order }, q = { .order = order, .walks = true };

		if (!may_gain(m, radius, aim, best) || !merged_colour(&m->g, radius, &p.owners)) {
			continue;
		}
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
}

static void merged_init(struct merged *m, const struct topo *t)
{
	size_t n = (size_t)topo_n(t);

	*m = (struct merged){ .g = { .t = t, .n = topo_n(t) } };
	arrays_add(&m->arrays, m->g.dist, n * n);
	arrays_add(&m->arrays, m->g.twin, topo_m(t));
	arrays_add(&m->arrays, m->g.cap, topo_m(t));
	arrays_add(&m->arrays, m->outs, topo_m(t));
	arrays_add(&m->arrays, m->n_outs, n);
	arrays_add(&m->arrays, m->choice, n);
	arrays_add(&m->arrays, m->sorted, n);
	arrays_add(&m->arrays, m->arcs, n);
	arrays_add(&m->arrays, m->begin, topo_max_degree(t) + 2);
	arrays_add(&m->arrays, m->used, n);
	arrays_add(&m->arrays, m->got, n);
	find_twins(m);
}

static void merged_fini(struct merged *m)
{
	vec_fini(&m->now);
	vec_fini(&m->next);
	vec_fini(&m->targets);
	vec_fini(&m->next_targets);
	arrays_fini(&m->arrays);
}

/* The best plan, as it is aimed at; *out stays NULL where it is not good enough. */
static int plan_and_make(struct merged *m, const struct merged_aim *aim, struct coll_sched **out,
			 struct err *err)
{
	bool soon = may_gain(m, 0, aim, NULL), later = false;
	struct merged_plan best = { 0 };
	int rc = 0;

	for (int radius = 1; radius <= aim->extra && radius < m->g.width; radius++) {
		later = later || may_gain(m, radius, aim, NULL);
	}
	if (!soon && !later) {
		return 0;
	}
	arrays_add(&m->arrays, m->load, (size_t)topo_m(m->g.t) * (size_t)m->g.width);
	rc = plan_one_shot(m, soon ? ORDERS : 0, aim, &best, err);
	if (!rc) {
		plan_walks(m, aim, &best);
		plan_hybrids(m, aim, &best);
		rc = aim->below_ns <= 0 || weigh(&best, aim->cost) < aim->below_ns
			     ? make_schedule(m, &best, out, err) : 0;
	}
	plan_fini(&best);
	return rc;
}

int make_merged(const struct topo *t, const struct merged_aim *aim, struct coll_sched **out,
		struct err *err)
{
	struct merged m;
	int rc;

	*out = NULL;
	if (topo_n(t) != topo_ranks(t)) {
		return err_set(err, WEFT_EUNSUPPORTED, "sums through nodes that are no ranks: "
			       "not supported");
	}
	if (topo_n(t) > MAX_NODES) {
		return err_set(err, WEFT_ELIMIT, "%d nodes: sums are merged for at most %d",
			       topo_n(t), MAX_NODES);
	}
	merged_init(&m, t);
	(void)((rc = find_distances(&m, err)) || (rc = plan_and_make(&m, aim, out, err)));
	if (rc) {
		coll_free(*out);
		*out = NULL;
	}
	merged_fini(&m);
	return rc;
}
