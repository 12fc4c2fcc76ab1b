/*
 * Private to breadth-first broadcast, bfb*.c: one direction of a digraph, the
 * view of one node, and what is scheduled.
 */
#ifndef WEFT_COLLECTIVE_BFB_PRIVATE_H
#define WEFT_COLLECTIVE_BFB_PRIVATE_H

#include "collective/bfb/balance.h"
#include "collective/bfb/bfb.h"
#include "collective/bfb/bounds.h"
#include "collective/bfb/latency.h"
#include "collective/schedule/private.h"
#include "collective/schedule/translation.h"

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
};

static inline uint64_t *bfb_usable(const struct bfb_view *v, int rank)
{
	return v->usable + (size_t)rank * v->words;
}

/* bfb_view_fini also after WEFT_ENOMEM. O(n + m). */
int bfb_view_init(struct bfb_view *v, const struct topo *t, struct err *err);
void bfb_view_fini(struct bfb_view *v);
/* Breadth-first search backwards from node. WEFT_EINFEASIBLE names a rank
 * that cannot reach it. O(m * words). */
int bfb_view_load(struct bfb_view *v, int node, struct err *err);
/* The program of the view's node at distance t: ranks with equal links side
 * by side in the queue, a group each. Its capacities are the view's.
 * bfb_program_fini also after WEFT_ENOMEM. O(ranks log ranks * words). */
int bfb_load_program(struct bfb_view *v, int t, struct balance *b,
		     struct err *err);
void bfb_program_fini(struct balance *b);

/* ---- solve.c: one direction ---- */

/* One direction: the all-gather of a digraph. */
struct bfb_side {
	const struct topo *t;
	bool moved;		/* the first nodes are solved and moved by: */
	struct shift shift;
	int sources;		/* nodes that receipts are made for:
				 * shift.fixed, or all */
	int diameter;
	struct tops tops;	/* the largest load of a level */
	const struct timed *timed;	/* NULL: latencies do not matter */
	struct timed_list until;	/* else: when a level is done, */
	struct timed_list bounds;	/* and no earlier than */
};

/* Solves all programs of t, which must outlive s. timed: as coll_bfb_timed,
 * or NULL. bfb_side_fini also after an error (of bfb_view_load, WEFT_ENOMEM). */
int bfb_side_solve(struct bfb_side *s, const struct topo *t,
		   const struct timed *timed, struct err *err);
void bfb_side_fini(struct bfb_side *s);

/* ---- emit.c ---- */

/* Where the transfers of a side go: all-gather forwards from step `base`;
 * reduce-scatter backwards in time over the arcs that `back` names. */
struct bfb_target {
	int base;
	const int32_t *back;	/* NULL: forwards */
};

/* Adds the side's transfers to sched, in its chunks: the same bytes on any
 * number of threads. WEFT_ENOMEM. */
int bfb_side_emit(const struct bfb_side *s, const struct bfb_target *to,
		  struct coll_sched *sched, struct err *err);

/* ---- bfb.c: all of it ---- */

/* What is scheduled: the digraph forwards, its transpose, or both. */
struct bfb {
	struct bfb_side sides[2];
	int n_sides;
	struct topo *reversed;	/* NULL for all-gather */
	int32_t *back;		/* arcs of reversed to arcs of the digraph */
};

/* Solves what the kind asks for. bfb_fini also after an error. */
int bfb_solve(struct bfb *b, enum coll_kind kind, const struct topo *t,
	      const struct timed *timed, struct err *err);
void bfb_fini(struct bfb *b);
int bfb_steps(const struct bfb *b);
/* An empty schedule: checks the digraph, which it takes over, the kind and the
 * chunks; 0 of these are for later. */
int bfb_begin(enum coll_kind kind, struct topo *topo, int chunks,
	      struct coll_sched **out, struct err *err);
/* The transfers of what is solved, in so many chunks, replayed. */
int bfb_complete(const struct bfb *b, struct coll_sched *sched, int chunks,
		 struct err *err);

#endif
