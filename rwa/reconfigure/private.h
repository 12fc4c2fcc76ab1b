/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the planning of changes. */
#ifndef WEFT_RWA_RECONFIGURE_PRIVATE_H
#define WEFT_RWA_RECONFIGURE_PRIVATE_H

#include "rwa/mesh/private.h"
#include "rwa/reconfigure/reconfigure.h"

/* True when spare routes may change channels where nodes convert. O(nodes). */
bool change_spare_converts(const struct rwa_mesh *m, int channels);

/* Planning so far. `owner` says which lightpath holds each slot after the
 * steps in out->steps, and changes with each step. out->hops has those of
 * both assignments, then the spare routes. `freed` and `tried` spare searches:
 * a lightpath without a spare route gains one only on a channel where
 * something was given back since. */
struct planner {
	const struct rwa_mesh *m;
	const struct rwa_assignment *from, *to;
	const struct rwa_change_options *opt;
	struct rwa_change *out;
	struct u64map owner;	/* slot to lightpath + 1, 0: free */
	struct u64map shut;
	struct u64map goals;	/* slots of new routes */
	struct mesh_adjacency adj;
	struct arrays arrays;	/* owns those that follow */
	uint64_t attempt;	/* 0: who is most in the way leaves first */
	struct rng rng;
	bool hurry;		/* no one is late any more */
	int32_t *link;		/* of an arc */
	int32_t *adds, *drops;	/* lightpaths that begin and end at a node */
	/* by lightpath */
	struct rwa_place *now, *goal;
	bool *done;
	uint8_t *rerouted;	/* how often */
	bool *late;		/* does not move as soon as it can */
	int64_t *cut_step;	/* step of its CUT, -1: none */
	int32_t *domain;
	int64_t *tried;		/* when it had no spare route */
	/* spare.c: what was freed when, by a clock of its own, and the search */
	int64_t clock;
	int64_t *freed;		/* channel: when a slot of it was last freed */
	int32_t *risk;		/* of a link: stamp when the partner is on it */
	int32_t risk_stamp;
	int32_t width;		/* channels that one search goes over */
	int64_t *cost;		/* the state channel * nodes + node */
	struct rwa_hop *enter;
	int32_t *before;	/* state that it was entered from */
	int32_t *queue;
	bool *queued;
};

/* Neither a slot nor its guard channels are active. O(guard). */
bool change_slot_free(const struct planner *p, const struct rwa_hop *h);

/* Makes the arrays of the search. */
void change_spare_init(struct planner *p);

/* A spare route for lightpath i, behind out->hops; no hops when there is none,
 * which is remembered. apart: not on slots of anyone's new route.
 * O(channels * arcs). */
void change_find_spare(struct planner *p, int32_t i, bool apart, struct rwa_place *route);

#endif
