/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows that share capacities, in time: the engine behind coll_simulate, which
 * knows nothing of schedules.
 *
 * A resource has a capacity. A message is a few flows; each has work to do,
 * over the resources it uses. Rates are max-min fair (Bertsekas and Gallager,
 * Data Networks, 6.5.2): all rise together until a resource is full, its flows
 * stay at that rate, the others rise on. A flow stands for all flows of its orbit: it
 * uses a resource as often as these do together over what they have of such
 * resources, so that what is symmetric is solved once.
 */
#ifndef WEFT_COLLECTIVE_SCHEDULE_SIMULATION_MAX_MIN_H
#define WEFT_COLLECTIVE_SCHEDULE_SIMULATION_MAX_MIN_H

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/vec.h"

/* A flow on a resource. */
struct maxmin_use {
	int32_t flow, resource;
	double weight;		/* capacity it takes for a rate of 1, > 0 */
};

/* One path of a message. */
struct maxmin_path {
	int32_t message;
	int32_t first_use;	/* up to that of the next */
	double work;		/* capacity x ns, >= 0 */
	double latency_ns;	/* before its data flows */
};

/* Begins when all messages it needs have ended, and ends with its last flow. */
struct maxmin_message {
	int32_t first_path;	/* up to that of the next */
	int32_t first_need;	/* up to that of the next */
	double delay_ns;	/* from its begin until its flows leave */
	double begin_ns, end_ns;	/* found by maxmin_run */
};

/* Zero it, fill the tables in order (uses after their path after their
 * message), run it. */
struct maxmin_net {
	VEC(double) capacity;	/* of each resource, > 0 */
	VEC(struct maxmin_message) messages;
	VEC(struct maxmin_path) paths;
	VEC(struct maxmin_use) uses;	/* a resource once a path */
	VEC(int32_t) needs;	/* messages, of smaller numbers */
};

/* Told whenever a flow has run at one rate: what it did from..to (ns). Paths
 * and times are in no order. Must not change the net. */
typedef void (*maxmin_ran_fn)(void *arg, int32_t path, double from_ns, double to_ns, double rate);

/* Runs all messages from `from_ns` on; returns when the last has ended (from_ns
 * without any). Deterministic. ran may be NULL. O(paths log paths)
 * where no two share a resource; otherwise each begin and end of a flow solves
 * those again that it shares resources with, directly or over others; an end only
 * those that are no slower. */
double maxmin_run(struct maxmin_net *net, double from_ns, maxmin_ran_fn ran, void *arg);

/* Empties the tables, whose memory stays. */
void maxmin_net_reset(struct maxmin_net *net);
void maxmin_net_fini(struct maxmin_net *net);

#endif
