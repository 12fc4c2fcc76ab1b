/*
 * The balancing program with latencies, direct-connect-topologies eq. (13):
 * what a node takes at a distance goes over its links so that the last of
 * those in use is done as early as can be, where a link is done after its
 * latency and what it carries. A link that carries nothing has no latency to
 * wait for, which the paper gets by solving again without it: here its room
 * is zero until its latency is over. Exact, in whole chunks.
 */
#ifndef WEFT_COLLECTIVE_BFB_LATENCY_H
#define WEFT_COLLECTIVE_BFB_LATENCY_H

#include <gmp.h>

#include "collective/bfb/balance.h"

/* What carrying takes. */
struct timed {
	mpq_t shard_ns;		/* of a shard, on a link of capacity one */
	int chunks;		/* of a shard */
};

/*
 * Raises *until (ns) to the least time by which the links, of these
 * latencies, have carried all items of b in whole chunks, when it is later:
 * share[i] chunks of the group go over link use[i] (room for n_use).
 * *bound is raised to a time that no shares whatever can be below. A maximum
 * flow each time that it turns out too early: its minimum cut is a set of
 * links, with items that can use no others, that tells the next.
 */
int timed_solve(const struct timed *p, const struct balance *b,
		const int64_t *latency, mpq_t until, mpq_t bound,
		int64_t *share, struct err *err);

/* A time for each distance, raised from 0. Zero it first. */
struct timed_list {
	mpq_t *v;
	size_t n, cap;
};

int timed_list_need(struct timed_list *l, size_t n, struct err *err);
void timed_list_fini(struct timed_list *l);
/* sum += all of them. */
void timed_list_add(const struct timed_list *l, mpq_t sum);

#endif
