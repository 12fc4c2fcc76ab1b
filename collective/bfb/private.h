/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to breadth-first broadcast, bfb*.c: one direction of a digraph, the
 * view of one node, and what is scheduled.
 */
#ifndef WEFT_COLLECTIVE_BFB_PRIVATE_H
#define WEFT_COLLECTIVE_BFB_PRIVATE_H

#include "collective/bfb/balance.h"
#include "collective/bfb/bfb.h"
#include "lib/base/vec.h"
#include "topology/topology.h"

/* ---- bounds.c ---- */

/*
 * The loads that decide T_B of breadth-first broadcast: for every distance
 * the largest over all nodes of the least load of a node's fullest link
 * (direct-connect-topologies eq. (3)). All nodes at once: who reaches a node
 * within t hops is a row of bits, and most nodes are settled by counting bits.
 */
/* v[t - 1] = the top of distance t; as many as the diameter. */
struct bfb_bounds {
	struct bfb_ratio *v;
	size_t n, cap;
};

#define BFB_BOUNDS_MAX_NODES 16384	/* two matrices of bits, 64 MiB */

/* Whether bfb_bounds_solve takes this digraph: not too large, and no node with
 * more than BFB_LEVEL_MAX_LINKS arcs into it. */
bool bfb_bounds_can(const struct topo *t);

/*
 * Appends the tops. The first `sources` nodes stand for all of them: every
 * node is the image of one of these under an automorphism. Zero `out` first;
 * free its v also after an error. WEFT_EINFEASIBLE names two nodes when t is
 * not strongly connected. O(D N m / 64) words and, for the nodes that counts
 * do not settle, a program of balance.h each.
 */
int bfb_bounds_solve(const struct topo *t, int sources, struct bfb_bounds *out, struct err *err);

/* ---- latency.c ---- */

/*
 * The balancing program with latencies, direct-connect-topologies eq. (13):
 * what a node takes at a distance goes over its links so that the last of
 * those in use is done as early as can be, where a link is done after its
 * latency and what it carries. A link that carries nothing has no latency to
 * wait for, which the paper gets by solving again without it: here its room
 * is zero until its latency is over. Exact, in whole chunks.
 */
/* What carrying takes. */
struct bfb_timing {
	mpq_t shard_ns;		/* of a shard, on a link of capacity one */
	int chunks;		/* of a shard */
};

/*
 * Raises *until (ns) to the least time by which the links, of these
 * latencies, have carried all items of b in whole chunks, when it is later:
 * share[i] chunks of the group go over link use[i] (room for n_use).
 * *bound is raised to a time that no shares whatever can be below. A maximum
 * flow each time that it turns out too early: its minimum cut is a set of
 * links, with items that can use no others, that gives the next.
 */
int bfb_timing_solve(const struct bfb_timing *p, const struct bfb_program *b,
		const int64_t *latency, mpq_t until, mpq_t bound,
		int64_t *share, struct err *err);

/* A time for each distance, raised from 0. Zero it first. */
struct bfb_times {
	mpq_t *v;
	size_t n, cap;
};

void bfb_times_need(struct bfb_times *l, size_t n);
void bfb_times_fini(struct bfb_times *l);
/* sum += all of them. */
void bfb_times_add(const struct bfb_times *l, mpq_t sum);

/* ---- view.c: one node ---- */

/* The links into one node and who can use them. */
struct bfb_view {
	const struct topo *t;
	int node, n_links;
	int32_t *links;		/* arcs into the node, self-loops left out */
	int64_t *caps, *latencies;
	int32_t *first;		/* arcs into a node: source[first[node]] ... */
	int32_t *source;	/* where each comes from: one array to walk */
	int words;
	uint64_t *usable;	/* a row a rank: links that end its shortest
				 * paths */
	int32_t *dist;		/* to the node */
	int32_t *queue;		/* ranks by distance */
	int levels;
	int *level;		/* where a distance begins in the queue;
				 * level[levels + 1] = its end */
	struct arrays arrays;	/* all of these */
};

static inline uint64_t *bfb_usable(const struct bfb_view *v, int rank)
{
	return v->usable + (size_t)rank * v->words;
}

/* O(n + m). */
void bfb_view_init(struct bfb_view *v, const struct topo *t);
void bfb_view_fini(struct bfb_view *v);
/* Breadth-first search backwards from node. WEFT_EINFEASIBLE names a rank
 * that cannot reach it. O(m * words). */
int bfb_view_load(struct bfb_view *v, int node, struct err *err);
/* The program of the view's node at distance t: ranks with equal links side
 * by side in the queue, a group each. Its capacities are the view's.
 * O(ranks log ranks * words). */
void bfb_load_program(struct bfb_view *v, int t, struct bfb_program *b);
void bfb_program_fini(struct bfb_program *b);

/* ---- steady.c: all levels together ---- */

/* What the nodes of a side take over each link, in chunks: of their programs, by use, level after
 * level. */
struct bfb_steady {
	const int64_t *share;
	size_t *first;		/* of a node in share */
};

/* ---- steady_timed.c: batches of unequal sizes ---- */

/* A node other than the root, at this distance, and the ends of its shortest paths: one or more of
 * uses[first .. first + n - 1]. */
struct bfb_ending {
	int32_t dist, n;
	size_t first;
};

/* Shortest paths from all roots to all nodes, or the other way. */
struct bfb_paths {
	VEC(struct bfb_ending) endings;	/* root after root, n - 1 each */
	VEC(int32_t) uses;		/* arcs of the digraph */
};

#define BFB_UNEQUAL_BATCHES 5

/* What a batch has from a root is a *part* of the vector: parts[batch * n + root]. In step
 * begins[batch] - 1 the sums of a batch are complete in its roots. */
struct bfb_unequal {
	const struct topo *t;
	int n, m, diameter;
	int32_t *back;			/* by arc: its reverse; NULL: some have none, and */
	struct bfb_paths paths[2];	/* [1] are those to the roots, else not looked at */
	int tries;			/* of when batches begin */
	int most;			/* batches */
	int batches, steps, begins[BFB_UNEQUAL_BATCHES];
	float *regret[2], *share[2];	/* by batch, then as uses; share: sums over the rounds */
	double *per;			/* by arc: 1 / capacity */
	double *price, *price_regret;	/* by step and arc */
	double *load, *load_sum;	/* likewise: of the vector per capacity */
	double *part, *part_regret, *part_cost, *part_sum;
	double rounds;			/* the weight of all in these sums */
	struct arrays arrays;
};

/* Labels of the vector for each part, then their arcs: the schedule, verified. Takes over topo. */
int bfb_unequal_cut(const struct bfb_unequal *x, struct topo *topo, struct coll_sched **out,
		    struct err *err);

/* ---- solve.c: one direction ---- */

/* One direction: the all-gather of a digraph. */
struct bfb_side {
	const struct topo *t;
	int sources;		/* nodes, the first, that receipts are made for: a
				 * group takes them to all others */
	int diameter;
	struct bfb_bounds tops;	/* the largest load of a level */
	const struct bfb_steady *steady;	/* NULL: each level by itself */
	const struct bfb_timing *timed;	/* NULL: latencies do not matter */
	struct bfb_times until;	/* else: when a level is done, */
	struct bfb_times bounds;	/* and no earlier than */
};

/* Solves all programs of t, which must outlive s, where a group with so many
 * orbits is known (n of t without). timed: as coll_bfb_timed,
 * or NULL. bfb_side_fini also after an error (of bfb_view_load). */
int bfb_side_solve(struct bfb_side *s, const struct topo *t, int sources,
		   const struct bfb_timing *timed, struct err *err);
void bfb_side_fini(struct bfb_side *s);

/* ---- emit.c ---- */

/* Where the transfers of a side go: all-gather forwards from step `base`;
 * reduce-scatter backwards in time over the arcs that `back` names. */
struct bfb_target {
	int base;
	const int32_t *back;	/* NULL: forwards */
};

/* Adds the side's transfers to sched, in its chunks, those that its group moves
 * to all others: the same bytes on any number of threads. */
int bfb_side_emit(const struct bfb_side *s, const struct bfb_target *to,
		  struct coll_sched *sched, struct err *err);

/* ---- bfb.c: all of it ---- */

/* What is scheduled: the digraph forwards, its transpose, or both. */
struct bfb {
	struct topo_group *group;	/* of the digraph, NULL: none found */
	struct bfb_side sides[2];
	int n_sides;
	struct topo *reversed;	/* NULL for all-gather */
	int32_t *back;		/* arcs of reversed to arcs of the digraph */
};

/* Solves what the kind asks for. bfb_fini also after an error. */
int bfb_solve(struct bfb *b, enum coll_kind kind, const struct topo *t,
	      const struct bfb_timing *timed, struct err *err);
void bfb_fini(struct bfb *b);
int bfb_steps(const struct bfb *b);
/* The largest capacity out of or into a node, as coll_new takes it. */
int64_t bfb_count_ports(const struct topo *t);
/* An empty schedule: checks the digraph, which it takes over, the kind and the
 * chunks; 0 of these are for later. */
int bfb_begin(enum coll_kind kind, struct topo *topo, int chunks,
	      struct coll_sched **out, struct err *err);
/* The transfers of what is solved, in so many chunks, replayed. Hands the group
 * over. */
int bfb_complete(struct bfb *b, struct coll_sched *sched, int chunks, struct err *err);

#endif
