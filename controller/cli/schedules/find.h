/* What the files of "topology find" share. */
#ifndef WEFT_CLI_SCHEDULES_FIND_H
#define WEFT_CLI_SCHEDULES_FIND_H

#include "collective/finder/finder.h"
#include "controller/cli/core/private.h"
#include "lib/base/vec.h"

/* --alpha, --bandwidth and --size, all or none. */
struct find_price {
	bool asked;
	int64_t alpha_ns, node_bps;
	VEC(int64_t) sizes;	/* bytes */
};

/* vec_fini the sizes, also after an error. All three options or none (asked
 * is false then); WEFT_EUSAGE. */
int find_price_read(const struct cli *c, struct find_price *p, struct err *err);
/* Time of so many steps and num / den in M/B with size number i, in ns. */
int64_t find_time(const struct find_price *p, size_t i, int steps, int64_t num, int64_t den);
/* The fastest of a frontier with size number i, NULL without a price. */
const struct coll_point *find_best(const struct coll_frontier *f,
				   const struct find_price *p, size_t i);
/* num / den in lowest terms as text, "15/8". */
void find_out_ratio(struct out *o, const char *key, int64_t num, int64_t den);

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

/* All-to-all, by the rate of a flow instead of steps and bandwidth: all
 * digraphs that were solved of one size, or the best of each in a sweep. A
 * cost is refused, as the best rate is the best for every size. */
int find_flow(const struct cli *c, struct err *err);

#endif
