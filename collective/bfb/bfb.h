/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Breadth-first broadcast: schedules of all-gather, reduce-scatter and
 * all-reduce in which every shard travels along shortest paths only, with the
 * exactly balanced loads of direct-connect-topologies; and what is made from
 * them, for expanded digraphs and for runtimes that take few chunks.
 *
 * Every schedule is verified before it is returned.
 */
#ifndef WEFT_COLLECTIVE_BFB_BFB_H
#define WEFT_COLLECTIVE_BFB_BFB_H

#include <gmp.h>

#include "collective/schedule/schedule.h"

/*
 * Breadth-first-broadcast schedules of all-gather, reduce-scatter and
 * all-reduce: the balancing programs of direct-connect-topologies eq. (3)
 * (eq. (13) for unequal capacities), one per node and distance, solved
 * exactly; reduce-scatter is the reversed all-gather of the
 * transpose (definition 7); all-reduce is their sequence. Where the digraph
 * has translations (circulants, tori, hypercubes, complete graphs, ...) one
 * node is solved and moved. Steps = diameter, twice for all-reduce.
 *
 * P is the least common denominator of the steps' loads. When that exceeds
 * COLL_BFB_MAX_CHUNKS, the P up to it with the smallest T_B is taken and the
 * loads are rounded up (appendix D.2): the report of coll_verify has the
 * T_B that results.
 *
 * Takes over topo. WEFT_EINFEASIBLE when not strongly connected,
 * WEFT_EUNSUPPORTED for other collectives, WEFT_ELIMIT at once when COLL_MAX_XFERS transfers
 * cannot be enough. O(N (N + m) d / 64) beside N times diameter small programs.
 */
#define COLL_BFB_MAX_CHUNKS 5040
int coll_bfb(enum coll_kind kind, struct topo *topo, struct coll_sched **out, struct err *err);

/*
 * The same with shards of exactly `chunks` chunks, or of as many as coll_bfb
 * takes when 0. The integer program (12) of appendix D.2 is a flow, so each
 * level has the least load of any breadth-first broadcast with so many chunks,
 * not only one within theorem 20: with unit capacities the sum over the levels
 * of ceil(P U) / P, U the exact load. WEFT_EINVAL beyond COLL_MAX_CHUNKS.
 */
int coll_bfb_cut(enum coll_kind kind, struct topo *topo, int chunks,
		 struct coll_sched **out, struct err *err);

/*
 * The same with the latencies of arcs, the program (13) of appendix D.3: every
 * level is done as early as its links allow, each busy for its latency and
 * for what it carries, so that slow arcs carry less and very slow ones
 * nothing. chunks as above; 0 tries more and more up to COLL_BFB_MAX_CHUNKS
 * until the time is within 0.1% of *bound_ns: no breadth-first broadcast on
 * this digraph takes less, cut as it may be. What it takes, coll_time reports.
 * WEFT_EINVAL for a cost without size or link rate. Every node is solved, but
 * for translations: a few flows a node and distance.
 */
int coll_bfb_timed(enum coll_kind kind, struct topo *topo, int chunks, const struct coll_cost *cost,
		   struct coll_sched **out, int64_t *bound_ns, struct err *err);

/*
 * Breadth-first broadcast for batches that overlap (coll_pipeline), where a step carries all levels
 * of both phases: each link has an equal load of all that it carries, per unit of capacity, as
 * nearly as shortest paths allow, and so it has, nearly, of the first levels and of the last. T_B
 * of many batches comes near to that load: on tori with links out the bound of coll_verify. Where
 * shortest paths are unique, as on GenKautz graphs, nothing is gained. In one batch coll_bfb is
 * better. Of few chunks, whose rounding costs next to nothing.
 *
 * Takes over topo. Errors of coll_bfb; WEFT_ELIMIT beyond 2^26 links of nodes' levels times
 * steps, as on long chains; verified. O(rounds links of levels steps), on orbits where the
 * digraph has a group.
 */
int coll_steady(enum coll_kind kind, struct topo *topo, struct coll_sched **out, struct err *err);

/*
 * An all-reduce in a few batches that overlap, for a cost: of unequal sizes, with as much of the
 * vector summed in a root as serves all links, and shares of shortest paths for each batch and root
 * by itself. So nodes with fewer links than others keep no others waiting: on tori with links out
 * it comes within some percent of the time that the whole torus takes. Sizes and shares are the
 * optimum of one linear program within a percent or so, and cut into chunks of about 2^-14 of the
 * vector.
 *
 * Takes over topo. *out is NULL where it takes below_ns or more, where nodes times arcs are more
 * than 2^19 or a third of max_transfers, and beyond 2^22 arcs times twice the diameter.
 * WEFT_EUNSUPPORTED, WEFT_EINFEASIBLE, WEFT_ELIMIT; verified. O(700 rounds x (5 nodes + steps) x
 * arcs), a few ns each.
 */
int coll_steady_timed(struct topo *topo, const struct coll_cost *cost, double below_ns,
		      int64_t max_transfers, struct coll_sched **out, struct err *err);

/* What a schedule with late takers is made for. */
struct coll_late_aim {
	const struct coll_cost *cost;	/* its prices of steps and bytes */
	double below_ns;	/* 0, or a time that is too much */
	int64_t work;		/* at most, in units of some 60 ns, which are counted */
};
#define COLL_LATE_MAX_WORK INT64_C(60000000)

/*
 * The same collectives where breadth-first broadcast leaves links idle. What is forwarded is
 * whole, as there, but a node that need not forward a shard may take it in any step after one
 * of its neighbours has it, and a shard is cut into pieces of unequal sizes that follow one
 * another, in `extra` more steps a phase than breadth-first broadcast takes. Loads of steps and
 * sizes of pieces are the optimum of one linear program over the pieces that are considered:
 * never more than breadth-first broadcast has, and often (N-1)/N exactly where that is not
 * balanced. Who need not forward is chosen greedily: other schedules may be better still.
 *
 * P is the least common denominator of loads and sizes, or of those of another optimum when
 * fewer chunks are found so, or COLL_BFB_MAX_CHUNKS with loads rounded up when that is larger.
 * Where the digraph has a group, its first nodes are solved and moved.
 *
 * With an aim T_B is within a thousandth of that, in few chunks that lose next to nothing, which
 * takes far less work; *out is NULL where that is found to take as long as below_ns.
 *
 * Takes over topo. Errors of coll_bfb; WEFT_EINVAL for extra outside 0..COLL_LATE_MAX_EXTRA;
 * WEFT_ELIMIT beyond 200 steps, 2^24 arcs times orbits of nodes, or a capacity of 1024 times the
 * common divisor of all, or where the program grows too large, which is counted, not timed. The
 * schedule is verified.
 * For each set of links and steps that turns out to be too full a linear program of steps +
 * pieces columns and a maximum flow a node.
 */
#define COLL_LATE_MAX_EXTRA 8
int coll_late(enum coll_kind kind, struct topo *topo, int extra, const struct coll_late_aim *aim,
	      struct coll_sched **out, struct err *err);

/*
 * The same collectives by flooding: in every step each node takes over each link chunks that it
 * lacks, up to a quota for a unit of capacity. T_B is within some percent of (N-1) shards over the
 * narrowest node on most irregular digraphs; where a cut between many nodes is narrow it need not
 * be. Of several quotas and one to four chunks a shard, that with the least time by cost, or
 * without one (NULL) with the least T_B and a thousandth of its bound a step.
 *
 * topo stays the caller's. WEFT_EUNSUPPORTED: other collectives, a digraph that is not plain;
 * WEFT_EINFEASIBLE: not strongly connected; WEFT_ELIMIT: more than 2^23 transfers.
 * The schedule is verified. O(N^2 degree N / 64) a quota, which is counted and limited.
 */
int coll_flood(enum coll_kind kind, const struct topo *topo, const struct coll_cost *cost,
	       struct coll_sched **out, struct err *err);

/* T_B in M/B that no schedule of coll_bfb and coll_late is below on these links: some node has to
 * take in, or to send out, a shard for each other rank, and for an all-reduce first one and
 * then the other. O(m). */
void coll_late_bound(enum coll_kind kind, const struct topo *topo, mpq_t bound);

/* Steps and T_B (in M/B) of the schedule that coll_bfb would make with as many
 * chunks as it likes, without making it. Errors as coll_bfb. O(D N m / 64)
 * beside the programs of the nodes that counting does not settle. */
int coll_bfb_factor(enum coll_kind kind, const struct topo *topo, int *steps,
		    mpq_t factor, struct err *err);

/*
 * The schedule of an expression by the constructions of
 * direct-connect-topologies: line graph (definition 2), degree expansion
 * (definition 4), Cartesian power (definition 14), both directions (appendix
 * F: half of every shard by X, half by its transpose, for any X). Operators
 * are taken off from the outside in; what is left has its BFB schedule. With
 * the steps and T_B = factor * M/B of the all-gather on X, of N nodes:
 *
 *   L(X)       steps + 1    at most factor + 1/N               theorem 1
 *   Deg(X,k)   steps + 1    factor + (k-1)/(k N)               theorem 11
 *   Pow(X,k)   k * steps    factor N/(N-1) (N^k-1)/N^k         theorem 12
 *   Bi(X)      the larger   factor, where X's transpose has it in each step
 *
 * Reduce-scatter is made on the transposes and turned round in time;
 * all-reduce is their sequence. A digraph that is no such expansion, a
 * product among them, has no construction: WEFT_EUNSUPPORTED. Other errors
 * are those of coll_bfb and topo_parse; WEFT_ELIMIT beyond COLL_MAX_CHUNKS
 * chunks. The schedule is verified. O(transfers) beside the BFB of the
 * innermost digraph.
 */
int coll_expand(enum coll_kind kind, const char *expr, struct coll_sched **out, struct err *err);

/* Lowers s: 0, or the error of msccl_lower_as or mscclpp_lower. */
typedef int coll_bfb_try(const struct coll_sched *s, void *arg, struct err *err);

/*
 * A schedule of the same collective on the same digraph with fewer chunks a
 * shard, in one batch, which `lower` takes: breadth-first broadcast with as
 * many chunks as its exact loads need, when these are fewer, then with a half,
 * a quarter, ... of the chunks of s, the first that fits. One chunk is tried
 * before all others, as where that does not fit the others are not expected
 * to. What it costs in time, coll_verify reports. WEFT_ELIMIT: `lower` takes
 * none of them. WEFT_EUNSUPPORTED: no such schedules are made (all-to-all,
 * broadcast, schedules with light), or s has one chunk a shard. Any other error
 * is that of `lower` or of coll_bfb_cut. Caller frees *out (coll_free).
 * At most 2 + log2 P schedules are made and lowered.
 */
int coll_bfb_fewer_chunks(const struct coll_sched *s, coll_bfb_try *lower, void *arg,
	      struct coll_sched **out, struct err *err);

#endif
