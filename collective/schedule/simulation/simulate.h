/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's files share: a schedule as flows (simulate.c), what its
 * messages wait for (message_needs.c), and their picture (gantt.c). */
#ifndef WEFT_COLLECTIVE_SCHEDULE_SIMULATION_SIMULATE_H
#define WEFT_COLLECTIVE_SCHEDULE_SIMULATION_SIMULATE_H

#include "collective/schedule/private.h"
#include "collective/schedule/simulation/max_min.h"

/* Beside each message of the net. */
struct sim_message {
	int32_t step;
	int32_t sender;		/* an orbit of logical arcs, or an arc: coll_senders */
	bool reduces;		/* its transfers do */
};

/* An orbit of physical arcs of which so many are in a shared limit. */
struct sim_limit_arcs {
	int32_t orbit, limit, arcs;
};

/*
 * A schedule being simulated. What carries is numbered: orbits of physical arcs
 * first, then a shared limit of each orbit of them. It is a resource of the net
 * only where something uses it.
 */
struct sim_run {
	const struct coll_sched *s;
	const struct coll_sim_options *o;
	struct coll_loads loads;	/* of the step at hand */
	double chunk_ns;	/* of a chunk on an arc of capacity 1 */
	struct maxmin_net net;
	VEC(struct sim_message) messages;	/* of the net */
	VEC(int32_t) carriers;	/* of the net's resources */
	int n_orbits, n_carriers;
	const int32_t *limits;	/* of carrier n_orbits + i; NULL: i itself */
	VEC(struct sim_limit_arcs) in_limits;	/* by orbit */
	int32_t *first_limit;	/* of an orbit, in in_limits */
	int32_t *resource;	/* of a carrier, -1: not in the net */
	int32_t *message_at;	/* of a sender, in the step at hand */
	int32_t *message_of;	/* of a transfer (coll_sender); asynchronous only */
	bool *retunes;		/* a step needs other light than the one before */
	double *busy_ns;	/* of a carrier: time at its full capacity */
	struct coll_sim *out;
	maxmin_ran_fn ran;	/* NULL: nothing is watched */
	void *ran_arg;
	struct arrays arrays;
};

/* What the messages that were added for all transfers wait for: those that
 * bring what they send, and the one before on their arc.
 * O(transfers log transfers). */
int sim_find_needs(struct sim_run *r, struct err *err);

/* Capacity of a carrier, in units of a link, and of how many it stands for. */
int64_t sim_capacity(const struct sim_run *r, int carrier);
int64_t sim_images(const struct sim_run *r, int carrier);
/* The physical arc, or the limit, that a carrier stands for. */
int sim_number(const struct sim_run *r, int carrier);

/* One simulation of s; r->out is filled but for the loads. WEFT_ELIMIT, WEFT_EVERIFY (an arc
 * without light). */
int sim_run_all(struct sim_run *r, struct err *err);

/* Runs r, whose results are there, once more and draws it. */
int sim_draw(struct sim_run *r, struct buf *svg, struct err *err);

#endif
