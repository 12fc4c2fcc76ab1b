/*
 * The best digraphs to build for all-to-all among n nodes of d ports: by the
 * rate that a flow on them is proven to reach, against what no digraph of
 * that degree exceeds (all-to-all-mcf, section 4, Theorem 2).
 */
#ifndef WEFT_COLLECTIVE_FINDER_FIND_FLOW_H
#define WEFT_COLLECTIVE_FINDER_FIND_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/flow/flow.h"
#include "lib/base/vec.h"

struct coll_flow_query {
	int n, degree;
	bool both_ways;		/* every arc needs its reverse */
	struct mcf_options flow;	/* of each digraph */
	int most;		/* digraphs that are solved; 0: no limit */
};

/* A digraph and its flow; rates as in flow.h. */
struct coll_flow_point {
	char *expr;		/* owned */
	int diameter;
	int64_t distance_sum;	/* over all pairs */
	struct mcf_result flow;
};

struct coll_flow_list {
	VEC(struct coll_flow_point) points;	/* the least congestion first */
	int considered;		/* digraphs of the size */
	double bound;		/* of the congestion of any digraph */
};

/*
 * Considers complete, complete bipartite and generalized Kautz graphs, tori,
 * hypercubes, random and shortest-path expanders of a few seeds and the
 * frontier of coll_find, and solves those whose distances leave them a chance
 * to be best, those of the least distances first. The result does not depend
 * on anything but the query, unless a time limit cuts. WEFT_EINVAL,
 * WEFT_ELIMIT (n n degree above COLL_FLOW_MOST), WEFT_EINFEASIBLE when
 * nothing is known. coll_flow_list_fini also after an error.
 */
#define COLL_FLOW_MOST (1 << 28)
int coll_find_flow(const struct coll_flow_query *q,
		   struct coll_flow_list *out, struct err *err);
void coll_flow_list_fini(struct coll_flow_list *l);

#endif
