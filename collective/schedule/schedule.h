/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collective schedules: which chunk crosses which arc in which step.
 *
 * Each of the N terminals (ranks 0..N-1 = nodes 0..N-1 of the digraph) owns
 * one shard of M/N; a shard is cut into P equal chunks. Steps are
 * synchronous: what a transfer sends must be held when the step begins.
 *
 *   allgather       shard `origin` spreads from rank origin to all (copy)
 *   reduce-scatter  shard `origin` is summed towards rank origin (reduce)
 *   allreduce       a reduce-scatter then an allgather of the sums
 *   all-to-all      chunk of (origin -> destination), moved hop by hop; with demands
 *                   only the first chunks of each pair's shard
 *   broadcast       the root's vector is N shards: all go to all ranks
 *   reduce          the vectors of all ranks are summed in the root
 *   gather          shard `origin` goes from rank origin to the root
 *   scatter         shard `origin` goes from the root to rank origin
 *
 * Everything is exact: P, steps and loads are integers, T_B is a rational.
 */
#ifndef WEFT_COLLECTIVE_SCHEDULE_SCHEDULE_H
#define WEFT_COLLECTIVE_SCHEDULE_SCHEDULE_H

#include <gmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "topology/topology.h"

enum coll_kind {
	COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE, COLL_ALLTOALL,
	COLL_BROADCAST, COLL_REDUCE, COLL_GATHER, COLL_SCATTER,
};

#define COLL_KINDS (COLL_SCATTER + 1)

/*
 * copy: the head gets what the tail holds; reduce: the tail's sum is added to that of the
 * head. forward, in allreduce only: not the tail's own sum is added, but that of the rank
 * `dest`, which the tail got in an earlier step, by a reduce from `dest` itself or by a forward. It
 * is that sum as `dest` sent it, and `dest` has sent no other one of these chunks since. So sums
 * go along a chain of ranks, each of which adds all that pass and changes none.
 *
 * Sums may be *merged* on their way, in allreduce only: where some transfer says under which number
 * its head keeps what comes (`kept`), `dest` is that number at the tail, and all that came under
 * it by the step before is sent; what comes under one number adds up. Transfers of a step over an
 * arc whose chunks are kept under the same number are one message, their sum. What comes may be
 * kept *apart*, so that it is not added to the head's own sum; or it is of the *whole* sum, which
 * takes the place of the head's own where that comes back to it.
 */
enum coll_op { COLL_OP_COPY, COLL_OP_REDUCE, COLL_OP_FORWARD };

#define COLL_NO_DEST (-1)

/* The newest of its files, JSON and protobuf; older ones are read. */
#define COLL_FORMAT_VERSION 6
/* Limits of a schedule; crossing one is WEFT_ELIMIT. */
#define COLL_MAX_STEPS (1 << 20)
#define COLL_MAX_CHUNKS (1 << 20)
#define COLL_MAX_XFERS (1 << 26)
#define COLL_MAX_LIGHTS (1 << 26)
#define COLL_MAX_CAP (INT64_C(1) << 32)	/* of an arc */
#define COLL_MAX_PORTS (1 << 30)
#define COLL_MAX_MERGED 4096	/* ranks where sums are merged: replay keeps squares of them */
#define COLL_MAX_NAME 4096		/* bytes of the digraph's name */
#define COLL_MAX_WEIGHT (1 << 20)	/* of a route */

/* Chunks first..last (inclusive) of a shard over one arc in one step. */
struct coll_xfer {
	int32_t step;	/* 0-based */
	int32_t arc;	/* of the schedule's digraph */
	int32_t origin; /* whose shard */
	int32_t dest;	/* all-to-all: for whom; forward: whose sum, or under which number it is
			 * kept; else COLL_NO_DEST */
	int32_t first, last;
	uint8_t op;	/* enum coll_op */
	uint16_t kept;	/* of a sum: the number under which the head keeps it, below the ranks,
			 * + 1; 0: that of the rank whose sum it is; above the ranks: coll_is_apart
			 * and coll_is_whole */
};

/* Of values of coll_xfer.kept: kept under a number, but not added to the head's own sum. */
static inline bool coll_is_apart(int ranks, int kept)
{
	return kept > ranks && kept <= 2 * ranks;
}

/* Kept under no number: instead of the head's own contribution, with others like it. */
static inline bool coll_is_whole(int ranks, int kept)
{
	return kept == 2 * ranks + 1;
}

/* The number of others but 0. */
static inline int coll_kept_number(int ranks, int kept)
{
	return (kept - 1) % ranks;
}

/* The light that carries an arc during a step of a ring schedule (empty on
 * switched fabrics, where arcs carry throughout). Several lights on an arc
 * in a step add up: its capacity in that step is their number times the
 * arc's own. Of an embedded schedule the arc is physical, and arcs that have light in no step carry
 * throughout, as they are inside hosts: where there is a placement both ends are on one. */
struct coll_light {
	int32_t step, arc;
	uint16_t channel;
	uint8_t dir;	/* 0 clockwise, 1 counter-clockwise */
	uint8_t fibre;
	int32_t loss_mdb;
};

struct coll_sched;

/* A schedule may be *compact*: with a group of automorphisms of its digraph
 * (topology.h), its transfers stand for their images under all elements, one
 * of which each has the first terminal of an orbit as its origin. What follows
 * works on compact schedules as they are, where nothing else is said: time and
 * memory go with the transfers that are kept, not with those they stand for; where the group is
 * none of the physical digraph also with logical arcs times steps.
 *
 * It may be *embedded*: then its arcs are logical, and each has routes over the
 * arcs of a physical digraph, which share its data by weight. The nodes of the
 * logical digraph are the first of the physical one: all that hold data, or all terminals,
 * and then memories only forward. Loads,
 * ports, latencies and shared limits are those of the physical digraph. A node
 * on a route forwards and keeps nothing. */

/* "allgather", "reduce-scatter", "allreduce", "all-to-all", "broadcast",
 * "reduce", "gather", "scatter". */
const char *coll_kind_name(enum coll_kind kind);
/* Broadcast, reduce, gather and scatter have a root. */
bool coll_has_root(enum coll_kind kind);
/* Reduce-scatter, allreduce and reduce sum; the others copy. */
bool coll_is_sum(enum coll_kind kind);
int coll_kind_parse(const char *name, enum coll_kind *kind, struct err *err);

/* An empty schedule over a frozen digraph, which it takes over (freed with
 * it, also on error). chunks = P >= 1. ports: units of capacity a node may
 * drive (and receive) at a time, so that node bandwidth B = ports * link
 * bandwidth; 0 takes the largest total capacity of the arcs out of or into
 * a node, self-loops counted: the degree, when all capacities are 1. root:
 * where coll_has_root, else 0. WEFT_EINVAL, WEFT_ELIMIT, WEFT_EUNSUPPORTED for a
 * switch, for sums through memories, and for a node that cannot store, copy (all-gather,
 * all-reduce, broadcast) or reduce (sums). */
int coll_new(enum coll_kind kind, struct topo *topo, int chunks, int ports,
	     int root, struct coll_sched **out, struct err *err);
void coll_free(struct coll_sched *s);
/* About how many bytes of memory it takes, for those who keep schedules: within a
 * factor of two. O(1). */
size_t coll_memory(const struct coll_sched *s);

/* Chunks a shard, 1 to COLL_MAX_CHUNKS, of a schedule without transfers: for
 * those who learn it after coll_new has checked the digraph. */
void coll_set_chunks(struct coll_sched *s, int chunks);

/* Appends; coll_finish sorts by (step, arc, origin, dest, first), merges
 * adjoining chunk ranges and counts the steps. WEFT_EINVAL when a number is
 * outside the digraph, the ranks or the chunks; WEFT_ELIMIT.
 * Adding again after coll_finish needs another coll_finish.
 * coll_finish: O(transfers log transfers). */
int coll_add(struct coll_sched *s, const struct coll_xfer *x, struct err *err);
int coll_add_light(struct coll_sched *s, const struct coll_light *l, struct err *err);
int coll_finish(struct coll_sched *s, struct err *err);

/* Makes an empty schedule compact: takes g over, also on error; NULL is fine.
 * WEFT_EINVAL when g does not keep the digraph, WEFT_EUNSUPPORTED with a root. O(m
 * log degree) a generator. */
int coll_set_group(struct coll_sched *s, struct topo_group *g, struct err *err);
/*
 * Demands of an empty all-to-all, after its group: of the shard that rank u has for rank v
 * the chunks 0 .. chunks[u * ranks + v] - 1 are sent, the others do not exist. 0 to P, on the
 * diagonal 0; copied; NULL: P for all pairs. WEFT_EINVAL for others, when all are 0, or when the
 * group does not keep them; WEFT_ELIMIT above COLL_MAX_DEMAND_RANKS. O(ranks^2) a generator.
 */
#define COLL_MAX_DEMAND_RANKS 8192
int coll_set_demands(struct coll_sched *s, const int32_t *chunks, struct err *err);
/* NULL: all pairs send all chunks. */
const int32_t *coll_demands(const struct coll_sched *s);
/* For engines that know blocks of one size only: WEFT_EUNSUPPORTED when s has demands, with
 * `output`, such as "programs". */
int coll_refuse_demands(const struct coll_sched *s, const char *output, struct err *err);

/* After coll_finish: some transfer forwards a sum. O(1). */
bool coll_forwards(const struct coll_sched *s);

/* Whether a switch can do one of these (enum topo_flag). O(switches). */
bool coll_switches_can(const struct topo *t, unsigned abilities);
/* For engines whose switches only forward, and which would send each copy by itself:
 * WEFT_EUNSUPPORTED with the first step in which switches copy or sum. Errors and effort of
 * coll_verify's loads where some can, else O(switches). */
int coll_refuse_switches(const struct coll_sched *s, const char *output, struct err *err);

/* After coll_finish: some transfer says under which number it is kept. O(1). */
bool coll_merges(const struct coll_sched *s);

/* All shards of an empty all-reduce without a group move alike: transfers are of shard 0, and each
 * stands for the same of all shards. WEFT_EINVAL for others. */
int coll_set_alike(struct coll_sched *s, struct err *err);
bool coll_is_alike(const struct coll_sched *s);

/* NULL: every transfer stands for itself, or for all shards (coll_is_alike). */
const struct topo_group *coll_group(const struct coll_sched *s);
/* Of that group on the arcs of coll_topo; NULL without one. */
const struct topo_action *coll_action(const struct coll_sched *s);
/* All transfers, and routes, written out. New schedule, not yet verified. WEFT_ELIMIT
 * beyond COLL_MAX_XFERS. O(transfers that it has). */
int coll_unfold(const struct coll_sched *s, struct coll_sched **out, struct err *err);

/* For those who need every transfer: *flat is s itself when it is not compact, and
 * *own NULL; else *flat is *own, unfolded, the caller's. Errors of coll_unfold. */
int coll_flat(const struct coll_sched *s, const struct coll_sched **flat, struct coll_sched **own,
	      struct err *err);

/* ---- embedding ---- */

/* How routes were chosen: over all shortest paths, the data divided at every node
 * among the arcs that lead on, by capacity; one shortest path, one dimension after the other;
 * as the user said; one of all shortest paths, as the place of the arc among those of its tail has
 * it; one for each arc that leads on from there. collective/embedding/embedding.h chooses them. */
enum coll_routing {
	COLL_ROUTING_MINIMAL_SPLIT, COLL_ROUTING_DIMENSION_ORDER, COLL_ROUTING_EXPLICIT,
	COLL_ROUTING_MINIMAL_SINGLE, COLL_ROUTING_MINIMAL_PARALLEL,
};

#define COLL_ROUTINGS (COLL_ROUTING_MINIMAL_PARALLEL + 1)

/* A path of physical arcs that carries this weight of what a logical arc
 * carries, of the sum of the weights of all its routes. */
struct coll_arc_route {
	int32_t arc;		/* logical; of a compact schedule the first of its orbit, where
				 * the group keeps the physical digraph */
	int32_t weight;		/* > 0 */
	const int32_t *hops;	/* physical arcs */
	int n;
};

/* "minimal-split", "dimension-order", "explicit", "minimal-single", "minimal-parallel". */
const char *coll_routing_name(enum coll_routing routing);
int coll_routing_parse(const char *name, enum coll_routing *routing, struct err *err);

/*
 * Embeds a schedule without an embedding in a frozen physical digraph, which it
 * takes over (freed with it, also on error). Every logical arc that carries needs
 * routes before coll_finish: coll_add_route gives it one, or one of its orbit where the
 * group keeps the physical digraph too. Where it does not, the schedule stays compact, and
 * each arc that carries has its own routes. ports: as coll_new; 0 counts the physical arcs at
 * terminals. WEFT_EINVAL: the nodes differ; a route is no path between the ends of its arc.
 */
int coll_set_physical(struct coll_sched *s, struct topo *physical, enum coll_routing routing,
		      int ports, struct err *err);
int coll_add_route(struct coll_sched *s, const struct coll_arc_route *r, struct err *err);
/* Before any route: each arc has its own, although the group keeps the physical digraph; for
 * routes that it does not keep. Effort of topo_group_find and topo_group_digits. */
int coll_route_each(struct coll_sched *s, struct err *err);

/* The digraph that is there: that of coll_topo without an embedding. */
const struct topo *coll_physical(const struct coll_sched *s);
bool coll_is_embedded(const struct coll_sched *s);
/* Whether messages go through ranks between their ends. O(hops of routes). */
bool coll_through_ranks(const struct coll_sched *s);
/* Its name for people, as coll_set_topo_name; of an embedded schedule. */
void coll_set_physical_name(struct coll_sched *s, const char *name);
const char *coll_physical_name(const struct coll_sched *s);
enum coll_routing coll_routing(const struct coll_sched *s);
/* Routes by logical arc, after coll_finish: number, and the i-th. */
int64_t coll_n_arc_routes(const struct coll_sched *s);
struct coll_arc_route coll_arc_route(const struct coll_sched *s, int64_t i);

/* ---- placement ---- */

#define COLL_MAX_PLACE 255	/* bytes of a name */

/* Where a schedule is in a fabric, for engines that place ranks by it. Nodes and
 * arcs are those of coll_physical(); rank r is node r. Names are printable ASCII without
 * blanks. */
struct coll_placement {
	char **hosts;		/* by node */
	char **netns;		/* by node: the namespace that is the host, or ""; NULL: none
				 * is */
	int32_t *ring_nodes;	/* by node, on a ring: its place there; NULL: on no ring */
	/* By arc, the ports of its light: of the host that sends, and of the one that
	 * receives; both "" within a host. NULL: no arc has ports, as on rings, where light
	 * has its channels. */
	char **tx_ports, **rx_ports;
};

/* Copies p, in the place of what s had; after coll_set_physical. Parts and what is
 * unfolded keep it; other schedules made from s have none. WEFT_EINVAL for what is no name, and
 * for an arc with a port at one end. O(nodes + arcs). */
int coll_set_placement(struct coll_sched *s, const struct coll_placement *p, struct err *err);
/* NULL: nowhere. */
const struct coll_placement *coll_placement(const struct coll_sched *s);

/* What coll_new was given, the ports counted when they were 0; the digraph is
 * the schedule's. Steps after coll_finish. O(1). */
enum coll_kind coll_kind_of(const struct coll_sched *s);
const struct topo *coll_topo(const struct coll_sched *s);
int coll_ranks(const struct coll_sched *s);
int coll_chunks(const struct coll_sched *s);
int coll_ports(const struct coll_sched *s);
/* The largest total capacity of the arcs out of or into a terminal: what the ports are of schedules
 * that say nothing else. WEFT_ELIMIT for an arc's above COLL_MAX_CAP. */
int coll_count_ports(const struct topo *t, int64_t *ports, struct err *err);
int coll_root(const struct coll_sched *s);
int coll_steps(const struct coll_sched *s);
/* Transfers sorted as above, of a compact schedule those it keeps; after coll_finish. */
const struct coll_xfer *coll_xfers(const struct coll_sched *s, int64_t *n);
/* Light sorted by step, arc, dir, fibre, channel. */
const struct coll_light *coll_lights(const struct coll_sched *s, int64_t *n);
/* Name of the digraph for people (UTF-8), "" when unknown; copied. A name
 * longer than COLL_MAX_NAME is as good as unknown. */
void coll_set_topo_name(struct coll_sched *s, const char *name);
const char *coll_topo_name(const struct coll_sched *s);

/* Steps that need other light than the step before them: other lightpaths, by their
 * ends, channel, direction and fibre, whichever parallel arcs they carry. Steps without light
 * move nothing and are passed over; the first finds its light there. */
struct coll_light_change {
	int steps;		/* so many, 0: light stays, or there is none */
	int first, before;	/* the first of them, and the step before it; 0-based */
};

/* Of a finished schedule. O(lights log lights of a step). */
void coll_light_changes(const struct coll_sched *s, struct coll_light_change *out);
/* For those whose output, such as "programs", runs in its own time: WEFT_EUNSUPPORTED
 * with the first step that needs other light. 0 where light stays, or there is none: all of it
 * is there when the collective begins. Errors of coll_light_changes. */
int coll_refuse_light_changes(const struct coll_sched *s, const char *output, struct err *err);

/* The transfers, and the light, of the arcs into and out of one rank, on the
 * whole digraph: what that rank has to know to do its part. It can be written
 * and read, but not proven: coll_verify refuses it. WEFT_EINVAL for a rank that
 * is none. O(transfers). */
int coll_part_of(const struct coll_sched *s, int rank, struct coll_sched **out, struct err *err);
/* The same written at once as coll_to_proto does, without a copy of the digraph: for those
 * who serve all ranks. Errors of both. */
int coll_part_to_proto(const struct coll_sched *s, int rank, struct buf *out, struct err *err);
/* The rank that it is the part of, -1 for a whole schedule. */
int coll_part(const struct coll_sched *s);

/* What replay found. Initialise with coll_report_init. */
struct coll_report {
	int nodes, steps;
	int64_t transfers;	  /* of a compact schedule all it stands for */
	int64_t chunk_hops;	  /* chunks times (logical) arcs crossed */
	mpq_t shard_times;	  /* sum over steps of the largest load on an
				   * arc or a shared limit, in shards per unit
				   * capacity */
	mpq_t bandwidth_factor;	  /* T_B in units of M/B:
				   * shard_times * ports / N */
	mpq_t bandwidth_bound;	  /* no schedule of this collective can be
				   * below this on nodes of this bandwidth */
	bool bandwidth_optimal;	  /* factor == bound */
	bool has_bound;		  /* set before a replay: bandwidth_bound is that of another
				   * schedule of the collective on the same digraph and ports */
};

/* Every report before its first use, and after its last. */
void coll_report_init(struct coll_report *r);
void coll_report_fini(struct coll_report *r);
/* By how much the bound of an all-gather, a reduce-scatter or an all-reduce is above that of ranks
 * which all have the links of the one with the most, as a share: no schedule loses less. 0: of
 * links that are even, and of others. O(arcs). */
double coll_uneven_loss(const struct coll_sched *s, const struct coll_report *r);

/*
 * Replays a finished schedule and proves its post-condition. WEFT_EVERIFY
 * names the first fault, with step, arc, nodes, shard and chunk: a transfer
 * on a self-loop, a chunk sent before it is held, a chunk delivered twice, a
 * contribution summed twice, a copy of an incomplete sum, a sum forwarded by a rank
 * that does not have it as it was last sent, a chunk that does not arrive, light that is missing or
 * counted twice, a node that drives or receives more capacity in a step than its ports have. (Arcs
 * that are not in the digraph never get past coll_add.) report may be NULL. A schedule
 * that was replayed when it was made and did not change since is not replayed
 * again. On several processors, the same result on any number.
 *
 * Chunks of a shard that travel alike are replayed once. O(transfers +
 * N^2 ceil(P / 64)) time for copies and for sums along trees (every rank
 * sends its sum once, after all that it gets), O(N^2 / 64) words a shard and
 * chunk for other sums, and so many words for each transfer where sums are forwarded; memory
 * O(N^2) bits for sums, O(N) words for copies, beside an index of the transfers.
 *
 * The bounds reported, in M/B, are those of coll_bound() (collective/schedule/cut_bound.h), by
 * what has to cross the cuts of the digraph. With light, whose arcs are others in
 * every step, and where capacities are too large for it, only what a node takes in counts:
 *   allgather, reduce-scatter, gather, scatter  (N-1)/N: a shard from or for each
 *                  other rank
 *   allreduce      2(N-1)/N: a chunk needs N-1 transfers before its sum is
 *                  complete anywhere and N-1 more to bring it to the others; 1 where
 *                  switches reduce
 *   broadcast, reduce  1: every node but the root takes in (sends out) the
 *                  whole vector
 *   all-to-all     the larger of (N-1)/N (with demands, of the most that a node sends or takes
 *                  in) and the distance bound: the hops
 *                  that all shards need over the capacity of all arcs (or
 *                  of all ports, when these are fewer or light is switched),
 *                  or the same of some arcs alone: of up to one of the four least
 *                  capacities, or such between switches
 */
int coll_verify(const struct coll_sched *s, struct coll_report *report, struct err *err);

/* coll_verify for those who make schedules: notes that s was replayed, so
 * that until it changes coll_verify only measures it. */
int coll_prove(struct coll_sched *s, struct coll_report *report, struct err *err);

/* Time of a schedule in the alpha-beta model. */
struct coll_cost {
	int64_t alpha_ns;	/* of a step */
	int64_t hop_ns;		/* of each physical arc of a route */
	int64_t message_ns;	/* of each message a node sends over one arc in a
				 * step */
	int64_t retune_ns;	/* of each change of light (coll_light_changes): the
				 * slowest device that makes it; 0 where alpha
				 * includes it, as on rings */
	int64_t link_bps;	/* of an arc of capacity 1 */
	int64_t size_bytes;	/* M, the whole vector */
	bool steps_overlap;	/* the bound is for messages that wait for their data
				 * only, not for the steps of others */
	bool forwards;		/* ranks pass on messages for others (coll_cost_of) */
};

/* The one place where a cost is made of what a command or a fabric says: ranks forward where that
 * is given, and where a hop takes time. */
struct coll_cost coll_cost_of(struct coll_cost given);

/*
 * steps * alpha + changes of light * retune + what each step waits for, rounded up to
 * whole ns: the largest, over the routes of the arcs that it uses, of
 *
 *	the latencies of the route's arcs + hop * their number
 *	+ message * the routes in use that begin with the same arc
 *	+ the largest load of an arc of the route, or of a shared limit on it,
 *	  times (M/N) / link_bps.
 *
 * An arc that is not embedded is its own route. Where latencies, hops and
 * messages are alike the loads add up to shard_times. r: what coll_verify found for s.
 * *bound_ns (may be NULL): lower bound for any schedule on this
 * digraph with these parameters: as many steps as the largest distance that
 * must be covered, each with alpha, a hop, a message and the smallest latency of an arc, and
 * the bandwidth bound; embedded, or where nodes forward, and of broadcasts and reduces, the
 * least over all numbers of steps, as many as messages from rank to rank need at least, or any
 * where ranks pass them on, of what these need together
 * (collective/bound/bound.h, which proves it); where steps overlap, as many over that
 * distance, then one, with what first messages load (also there), or one with
 * the bandwidth bound. WEFT_EINVAL (negative times or size, link_bps < 1),
 * WEFT_ELIMIT when a time does not fit 64 bits, WEFT_EINFEASIBLE when some
 * rank cannot be reached. O(transfers + routes), with the bound O(N (N + m)) over
 * the orbits.
 */
int coll_time(const struct coll_sched *s, const struct coll_report *r, const struct coll_cost *c,
	      int64_t *time_ns, int64_t *bound_ns, struct err *err);

/* The same step by step, in ns: alpha and what the step waits for, changes of light left
 * out. step_ns: coll_steps(s) of them. Errors and effort of coll_time without a bound. */
int coll_step_times(const struct coll_sched *s, const struct coll_cost *c, double *step_ns,
		    struct err *err);

/* One step, and what each arc of coll_physical() carries in it, in shards; valid for this
 * call. */
typedef void coll_step_fn(int step, const double *shards, void *arg);
/* Calls fn for each step that moves something, in their order, from within: a finished
 * schedule as people look at it. The errors of coll_verify for loads and light; fn was called
 * for the steps before. O(transfers + routes + steps * arcs). */
int coll_each_step(const struct coll_sched *s, coll_step_fn *fn, void *arg, struct err *err);

/* ---- simulation ---- */

struct coll_sim_options {
	struct coll_cost cost;
	bool asynchronous;	/* else in lockstep */
	bool untimed;		/* the picture shows steps and no times */
};

struct coll_sim_step {
	double begin_ns, end_ns;	/* asynchronous ones overlap */
	int64_t messages;	/* of a compact schedule all it stands for */
};

/* A physical arc or a shared limit, for all that are its images by symmetry. */
struct coll_sim_load {
	int32_t number;		/* of the first such arc or limit */
	bool is_limit;
	int64_t images;		/* of an arc, itself counted; 1 for a limit */
	double share;		/* of what it could carry in the whole time, 0..1 */
};

/* Times in ns; zero it before coll_simulate. */
struct coll_sim {
	double time_ns;
	double utilisation;	/* share of all arcs together, self-loops left out */
	int n_steps;
	struct coll_sim_step *steps;	/* owned */
	int n_loads;
	struct coll_sim_load *loads;	/* owned: those that carry, the busiest first */
};

/*
 * How long a finished schedule takes when all that travels at a time shares
 * physical arcs and shared limits max-min fairly. All that a logical arc carries
 * in a step is one message, in parts over its routes. A part leaves alpha_ns after
 * its message may begin, retune_ns later in a step that needs other light, and message_ns
 * for every part that begins with the same arc in its step; after the latencies of
 * its arcs and hop_ns for each, its data flows.
 *
 * In lockstep a step begins when the one before has ended everywhere.
 * Asynchronous: a message begins when all that its transfers send has come (as
 * far as the schedule has it come in earlier steps) and the message before it
 * on its logical arc has ended; what comes before its step is kept aside until
 * then.
 *
 * Lockstep is coll_time, up to rounding, where all parts of a step are of one size
 * and latency, or share nothing. Of one size and several latencies, it is at most that;
 * of several sizes and one latency at least, as an arc can idle early while what
 * it waits for is held back elsewhere. Compact schedules are simulated as they
 * are. Deterministic. svg, when not NULL: a Gantt picture, appended.
 *
 * WEFT_EINVAL (negative times or size, link_bps < 1), WEFT_ELIMIT,
 * WEFT_EVERIFY (more ports in use than there are, an arc without light),
 * WEFT_EUNSUPPORTED (asynchronous with light, which belongs to steps; a part of
 * a schedule). O(transfers + messages + hops of their routes), and of maxmin_run; messages are
 * those of one arc an orbit, or of every arc where each has its own routes.
 */
int coll_simulate(const struct coll_sched *s, const struct coll_sim_options *o,
		  struct coll_sim *out, struct buf *svg, struct err *err);
void coll_sim_fini(struct coll_sim *r);

/* ---- schedules from schedules ---- */

/* Reversed in time on the transposed digraph: an all-gather
 * becomes a reduce-scatter and back, a broadcast a reduce, a scatter a gather, an
 * all-to-all the one that returns every shard. New schedule. WEFT_EUNSUPPORTED for
 * an all-reduce, whose reverse is none in general, and for embedded schedules. */
int coll_reverse(const struct coll_sched *s, struct coll_sched **out, struct err *err);

/* What contains a collective with a root: an all-reduce a broadcast and a reduce, an all-gather a
 * gather, a reduce-scatter a scatter. */
enum coll_kind coll_trimmed_from(enum coll_kind kind);
/* The collective with a root (kind) that coll_trimmed_from(kind) contains, in no more
 * steps and with no more on any arc in a step: not compact, embedded where s is. New schedule, not
 * yet verified. WEFT_EUNSUPPORTED for other collectives and light; WEFT_ELIMIT beyond 2^26 chunks
 * of shards times ranks, and of coll_unfold. O(chunks of all transfers). */
int coll_trim(const struct coll_sched *s, enum coll_kind kind, int root, struct coll_sched **out,
	      struct err *err);

/*
 * The same with other numbers for the nodes: node v becomes to[v], a
 * permutation, with its shard; in a broadcast and a reduce shards are places in
 * vectors and stay. New schedule, not yet verified.
 * O(m log m + transfers + lights).
 */
int coll_rename(const struct coll_sched *s, const int *to,
		struct coll_sched **out, struct err *err);

/* first then second, both on equal digraphs and chunk counts brought to
 * their least common multiple: reduce-scatter + all-gather = all-reduce.
 * WEFT_EUNSUPPORTED for other pairs, WEFT_EINVAL when digraphs or ports
 * differ. */
int coll_sequence(const struct coll_sched *first, const struct coll_sched *second,
		  struct coll_sched **out, struct err *err);

/* Makes an all-gather on a digraph that stays the caller's; its errors are those of
 * coll_from_gathers. */
typedef int coll_gather_fn(const struct topo *t, const void *arg, struct coll_sched **out,
			   struct err *err);

/* An all-gather, a reduce-scatter (the all-gather of the transpose, reversed) or an all-reduce
 * (both in sequence) by whoever makes all-gathers. New schedule, proven. WEFT_EUNSUPPORTED for
 * other collectives. */
int coll_from_gathers(enum coll_kind kind, const struct topo *topo, coll_gather_fn *gather,
		      const void *arg, struct coll_sched **out, struct err *err);

#define COLL_MAX_BATCHES 256

/*
 * Every shard in so many equal batches, each of which goes through s one step
 * after the one before: while the all-gather of one batch begins, the
 * reduce-scatter of the next ends, on links that would have been idle. Takes
 * steps + batches - 1 steps; T_B falls from the sum over steps of the
 * fullest arc towards the fullest arc's sum over steps, and never rises.
 * Where all arcs are full in all steps (T_B meets the bound that coll_verify
 * reports) nothing can be gained. WEFT_EINVAL for batches outside
 * 1..COLL_MAX_BATCHES, WEFT_ELIMIT beyond COLL_MAX_CHUNKS chunks or
 * COLL_MAX_XFERS transfers, WEFT_EUNSUPPORTED for schedules with light.
 * O(batches * transfers log).
 */
int coll_pipeline(const struct coll_sched *s, int batches,
		  struct coll_sched **out, struct err *err);

/*
 * How many batches take the least time in the alpha-beta model, latencies of
 * arcs left out, and that time in ns; 1 when none gains. Exact: all numbers up to `most`, itself at
 * most COLL_MAX_BATCHES, are tried that may gain. Of an embedded schedule by the loads of the
 * physical arcs and shared limits: coll_pipeline is for what it was embedded from.
 * WEFT_EUNSUPPORTED for light, WEFT_ELIMIT when capacities have no common multiple below 2^31 or
 * loads do not fit. O((steps + batches) * arcs) for each.
 */
int coll_pipeline_best(const struct coll_sched *s, const struct coll_cost *c,
		       int most, int *batches, double *ns, struct err *err);

/* The fewest batches, up to `most`, whose T_B is no larger than that of `most`
 * batches: 1 when none gains. Errors and work of coll_pipeline_best; WEFT_EINVAL as
 * coll_pipeline. */
int coll_pipeline_fewest(const struct coll_sched *s, int most, int *batches, struct err *err);

/* ---- formats ---- */

/* JSON as documented in docs/schedule.md; O(transfers). */
void coll_to_json(const struct coll_sched *s, struct buf *out);
int coll_from_json(const char *text, size_t len, struct coll_sched **out, struct err *err);
/* The weft.v1.Schedule message. */
void coll_to_proto(const struct coll_sched *s, struct buf *out);
int coll_from_proto(const void *data, size_t len, struct coll_sched **out, struct err *err);
/* Either, distinguished by the first byte. All sizes are checked: WEFT_EINVAL
 * or WEFT_ELIMIT names the field. Reading does not verify. */
int coll_from_bytes(const void *data, size_t len, struct coll_sched **out, struct err *err);

/* The value at the root of a JSON text, for json_decref; NULL and WEFT_EINVAL
 * with line and column for what is no JSON or has a key twice. */
struct json_t *coll_json_root(const char *text, size_t len, struct err *err);

#endif
