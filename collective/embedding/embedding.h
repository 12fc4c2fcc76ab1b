/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Embedding schedules: routes for the arcs of a logical digraph over a physical one.
 *
 * A schedule is made on a logical digraph, whose nodes are the terminals of a fabric
 * (and perhaps its memories), as if its arcs were wires. Here it gets routes through switches, and
 * through nodes that cut through, by one of these rules:
 *
 *   minimal-split    over all shortest paths by hops. At every node the data is divided
 *                    among the arcs that lead on in proportion to their capacities:
 *                    equally where these are alike, so that on a ring of even length
 *                    each half of it goes one way to the node opposite.
 *   minimal-single   over one shortest path: the k-th logical arc out of a node takes, at
 *                    every node, the k-th of the arcs that lead on, counted round.
 *   minimal-parallel over as many paths as arcs lead on from the tail, equally: the k-th takes
 *                    the k-th of these, and so at every node.
 *   dimension-order  the numbers of the terminals are read as digits, as few of each radix as
 *                    let every link, and all terminals of a switch, differ in one
 *                    digit. A route sets one digit after the other, the lowest
 *                    first, each on a shortest path between nodes that agree in all
 *                    other digits: in a ring the shorter way round, at equal
 *                    length with the digit growing. Parallel arcs share by capacity.
 *   explicit         as a file says; parallel arcs share by capacity.
 *
 * What is made is an embedded schedule (collective/schedule/schedule.h), whose loads
 * coll_verify counts on the physical digraph.
 */
#ifndef WEFT_COLLECTIVE_EMBEDDING_EMBEDDING_H
#define WEFT_COLLECTIVE_EMBEDDING_EMBEDDING_H

#include "collective/schedule/schedule.h"

/* Routes of one logical arc; more are WEFT_ELIMIT. */
#define COLL_MAX_ARC_ROUTES 1024

/*
 * A new schedule, finished and not verified: s, which stays as it is, on a physical
 * digraph, which is taken over, also on error. routing is not
 * COLL_ROUTING_EXPLICIT. ports: as coll_set_physical.
 *
 * A compact schedule keeps its group, or what extends of it to the
 * physical digraph by topo_group_extend(), or gets a larger one that keeps both: of the
 * shifts of topo_group_digits() those under which its transfers stay the same. By
 * dimension-order a group must add numbers to digits. Where there are fewer transfers and hops
 * so, it keeps all of its group, and each arc that carries has its own routes
 * (coll_route_each), as by minimal-single and minimal-parallel always. Its routes are the same as
 * those of the schedule unfolded.
 *
 * WEFT_EINVAL as coll_set_physical; WEFT_EUNSUPPORTED: s is embedded, has light or is
 * the part of a rank, or dimension-order and the physical digraph has no such
 * digits; WEFT_EINFEASIBLE: a head cannot be reached; WEFT_ELIMIT: too many routes, or
 * their shares need weights above COLL_MAX_WEIGHT. O(transfers + hops of the routes +
 * tails of arcs that carry x physical arcs).
 */
int coll_embed(const struct coll_sched *s, struct topo *physical, enum coll_routing routing,
	       int ports, struct coll_sched **out, struct err *err);

/*
 * The same with routes from JSON, {"routes": [[0, 3, 1, [0, 8, 3]], ...]}: of the logical
 * arcs 0 -> 3, a path through nodes 0, 8 and 3 that carries this weight of what they do,
 * of the sum of the weights of all their paths. A file is believed in no symmetry: each arc
 * has its own routes, also of a compact schedule. WEFT_EINVAL names the route: other keys, numbers
 * that are none, arcs that are not there.
 */
int coll_embed_routes(const struct coll_sched *s, struct topo *physical, const char *json,
		      size_t len, int ports, struct coll_sched **out, struct err *err);

#define COLL_MAX_DIGITS 16	/* TOPO_MAX_NODES = 2^16 */

/* The numbers of a digraph's terminals as digits of these radices, the lowest first, such that
 * every link, and all terminals of a switch, differ in one of them: the coordinates of tori and
 * meshes. A single one where there are no such digits. O(divisors x m). */
void coll_digits(const struct topo *t, int radix[COLL_MAX_DIGITS], int *n);

/* What schedules are embedded in, and how. */
struct coll_fabric {
	struct topo *topo;	/* frozen, owned */
	char *name;		/* for people, owned */
	enum coll_routing routing;
	char *routes;		/* of COLL_ROUTING_EXPLICIT: the text of coll_embed_routes, owned */
	size_t routes_len;
};

/* A new schedule, finished and not verified: s, which stays as it is, in the fabric, which is
 * copied. Errors of coll_embed and coll_embed_routes. */
int coll_embed_in(const struct coll_fabric *f, const struct coll_sched *s, struct coll_sched **out,
		  struct err *err);

/*
 * The digraph that terminals see: u -> v where u has an arc to v, or a path through
 * switches and memories only. A direct arc keeps its capacity; another has its part of
 * that of its tail's arcs to those switches, divided by the terminals that are reached
 * there, all scaled to whole numbers. New, frozen, of terminals only. WEFT_EINVAL: nodes are out of
 * order. O(terminals x (arcs of switches + arcs that come out)).
 */
int coll_terminals_see(const struct topo *t, struct topo **out, struct err *err);

#endif
