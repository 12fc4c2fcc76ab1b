/* What the files of the search for single paths share. */
#ifndef WEFT_COLLECTIVE_FLOW_UNSPLITTABLE_PRIVATE_H
#define WEFT_COLLECTIVE_FLOW_UNSPLITTABLE_PRIVATE_H

#include "collective/flow/unsplittable.h"
#include "lib/base/rng.h"

struct single_routes {
	const struct flow_net *net;
	int longest;		/* arcs of a path, at most */
	int32_t *arcs;		/* n x n x longest, from the sink back */
	int32_t *len;		/* n x n; 0: no such pair */
	int64_t *load;		/* m */
	double *weight;		/* m: of one path more */
	double power, scale;	/* of the weights */
	bool flat;		/* weights of the first heuristic */
	struct rng rng;

	double *dist;		/* n */
	int32_t *parent;	/* n */
	int32_t *queue;		/* n + 1 */
	bool *queued;		/* n */
};

static inline int32_t *single_arcs_of(const struct single_routes *r,
				      size_t pair)
{
	return r->arcs + pair * (size_t)r->longest;
}

/* single_routes_fini also after an error. */
int single_routes_init(struct single_routes *r, const struct flow_net *net,
		       int longest);
void single_routes_fini(struct single_routes *r);

/* The largest load over its capacity. */
double single_congestion(const struct single_routes *r);
void single_weigh_all(struct single_routes *r);
/* Adds (+1) or removes (-1) the path of a pair. */
void single_count(struct single_routes *r, size_t pair, int by);
/* Cheapest paths from s by label correction; parents are filled. */
void single_measure(struct single_routes *r, int s);
/* Takes the path to v just measured, when it is not too long. */
bool single_take(struct single_routes *r, size_t pair, int v);
double single_cost(const struct single_routes *r, size_t pair);

/* ---- routes and layers together, unsplittable_lanes.c ---- */

struct single_joint;

/*
 * Places for the paths of r in layers 0 .. n_layers - 1; nothing is placed
 * yet. r is borrowed. escape: a tree into some node and one out of it are
 * laid through layer 0 first, so that every pair has a path there.
 * WEFT_EINFEASIBLE when no such trees were found, WEFT_ENOMEM.
 */
int single_joint_new(struct single_routes *r, int n_layers, bool escape,
		     struct single_joint **out, struct err *err);
void single_joint_free(struct single_joint *this);

/* Puts the path of a pair, which counts already, into the first layer that
 * closes no cycle with it. 0, 1: there is none, WEFT_ENOMEM. */
int single_joint_place(struct single_joint *this, size_t pair);
/* Moves a pair to the cheapest path that was found for it in any layer. One
 * without a place must not count; it does when it has got one. 0: nothing
 * better, 1: moved, WEFT_ENOMEM. O(layers m degree) a trial. */
int single_joint_move(struct single_joint *this, size_t pair);
/* Of a pair, -1: none. */
int single_joint_layer(const struct single_joint *this, size_t pair);

#endif
