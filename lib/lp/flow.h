/*
 * Minimum-cost flow in networks with integer capacities and costs: the part
 * of linear programming that needs no solver and is integral by itself.
 */
#ifndef WEFT_LIB_LP_FLOW_H
#define WEFT_LIB_LP_FLOW_H

#include <stdint.h>

#include "lib/base/err.h"

struct flow;

/* A network of n nodes without edges. */
int flow_new(int n, struct flow **out, struct err *err);
void flow_free(struct flow *f);

/* Adds an edge with 0 <= flow <= cap; its number goes to *edge (may be
 * NULL). The edges must form no cycle of negative cost. */
int flow_add(struct flow *f, int from, int to, int64_t cap, int64_t cost,
	     int *edge, struct err *err);

/*
 * Sends flow from source to sink along successive shortest paths for as long
 * as a path costs less than `limit`: limit 0 gives the flow of least cost,
 * INT64_MAX the cheapest maximum flow. *value and *cost (each may be NULL)
 * receive what was reached. Ties are broken by edge order: deterministic.
 * O(value * nodes * edges) at worst, near O(value * edges) in practice.
 */
int flow_run(struct flow *f, int source, int sink, int64_t limit,
	     int64_t *value, int64_t *cost, struct err *err);

/* Flow on an edge after flow_run. */
int64_t flow_on(const struct flow *f, int edge);

#endif
