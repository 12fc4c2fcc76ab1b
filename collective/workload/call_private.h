/* SPDX-License-Identifier: Apache-2.0 */
/* What call_lights.c and call_search.c share. */
#ifndef WEFT_COLLECTIVE_WORKLOAD_CALL_PRIVATE_H
#define WEFT_COLLECTIVE_WORKLOAD_CALL_PRIVATE_H

#include "collective/workload/call_lights.h"

#define CALL_MAX_EXCHANGES 10

/* Steps that follow each other under one light. */
struct call_run {
	int generators[CALL_MAX_PORTS];		/* 1 to ranks - 1; 0: the port is not used */
	int steps;
};

struct call_sequence {
	int n_runs;
	struct call_run *runs;	/* owned */
	/* Of an all-reduce: between the runs and their mirror ranks add up what they have, by so
	 * many exchanges of these radices. The runs are of the ranks over their product. */
	int exchanges, radix[CALL_MAX_EXCHANGES];
};

/* The k-th exchange, from 1: with those that are ranks over the product of the first k radices, and
 * so on, further. */
struct call_run call_exchange(const struct call_query *q, const struct call_sequence *s, int k);
/* So many ranks hold the same after the first k exchanges. */
int call_alike(const struct call_sequence *s, int k);
/* What gathers or sums in the least time; free() runs. */
void call_radices(const struct call_query *q, struct call_sequence *out);
/* Those of an all-to-all. */
void call_search(const struct call_query *q, struct call_sequence *out);
/* Over which generator, counted over all ports of all steps of the sequence, what is for rank s
 * further goes in each: via[s * steps + step] is a port, or -1: it waits. Returns the ns of a call;
 * HUGE_VAL: not all ranks are reached. via: [ranks x steps], NULL: not wanted. */
double call_paths(const struct call_query *q, const struct call_sequence *s, int8_t *via);
int call_steps(const struct call_sequence *s);

#endif
