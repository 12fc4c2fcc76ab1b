/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of "topology find" share. */
#ifndef WEFT_CLI_SCHEDULES_FIND_H
#define WEFT_CLI_SCHEDULES_FIND_H

#include "collective/finder/finder.h"
#include "controller/cli/core/private.h"
#include "lib/base/vec.h"

/* --alpha, --bandwidth and --size, all or none, and --hop and --forward with them. */
struct find_price {
	bool asked;
	struct coll_cost cost;	/* but for the rate of a link, and the size */
	int64_t node_bps;
	VEC(int64_t) sizes;	/* bytes */
	struct mcf_options flow;	/* --gap, of all-to-all */
	int most;			/* --candidates */
};

/* Also what is asked of flows. vec_fini the sizes, also after an error. All three
 * options or none (asked is false then); WEFT_EUSAGE. */
int find_price_read(const struct cli *c, struct find_price *p, struct err *err);
/* Time of so many steps and num / den in M/B with size number i, in ns. */
int64_t find_time(const struct find_price *p, size_t i, int steps, int64_t num, int64_t den);
/* The same as a cost of the schedules that a query's nodes would run. */
struct coll_cost find_cost(const struct find_price *p, size_t i, const struct coll_query *q);
/* The topologies for size number i, the fastest first, of a frontier that is known (NULL: none).
 * Errors of coll_choices_new. */
int find_choices(const struct find_price *p, size_t i, const struct coll_query *q,
		 const struct coll_frontier *known, struct coll_choices **out, struct err *err);
/* num / den in lowest terms as text, "15/8". */
void find_out_ratio(struct out *o, const char *key, int64_t num, int64_t den);

/* Whether nodes forward, where there is a price. */
void find_out_forward(struct out *o, const struct find_price *p);

/* A query a size and degree, sizes first. */
struct find_queries {
	VEC(struct coll_query) list;
};

/* Reads --nodes and --degree, of which each may be a list such as 8,16,32-64,
 * into a query for every pair of them. WEFT_EUSAGE, WEFT_ELIMIT. vec_fini the
 * list, also after an error. */
int find_queries_read(const struct cli *c, struct find_queries *out, struct err *err);

/* True when --nodes or --degree names more than one number. */
bool find_is_sweep(const struct cli *c);
/* Prints the frontiers of all, or with a price the fastest of each. */
int find_sweep(const struct cli *c, const struct find_price *p, struct err *err);

/* By the times of schedules that are made: all-to-all and collectives with a root, whose times
 * are no line over the size. All that were timed for one size, or the fastest of each in a
 * sweep. */
int find_ranked(const struct cli *c, const struct find_price *p, struct err *err);

/* All-to-all without a cost, by the rate of a flow instead of steps and bandwidth: all
 * digraphs that were solved of one size, or the best of each in a sweep. */
int find_flow(const struct cli *c, const struct find_price *p, struct err *err);

#endif
