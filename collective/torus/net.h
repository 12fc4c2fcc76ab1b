/* SPDX-License-Identifier: Apache-2.0 */
/* The links of a line of a dimension, and routes over them. */
#ifndef WEFT_COLLECTIVE_TORUS_NET_H
#define WEFT_COLLECTIVE_TORUS_NET_H

#include "collective/torus/private.h"

/* What a message puts on an arc. */
struct torus_hop {
	int32_t arc;
	int32_t begins;		/* so many paths begin with it */
	double share;
};

/* Of one coordinate to another. */
struct torus_route {
	size_t first;		/* hop */
	int n, length;		/* hops; arcs of a path */
	int64_t latency_ns;	/* of the slowest path */
};

struct torus_net {
	int d;
	bool forwards;		/* terminals do; else no route passes through one */
	struct topo *line;	/* terminals by coordinate, then switches */
	int period;		/* shifting by it keeps the line */
	int class_period, n_classes;
	int32_t *class, *images;	/* of an arc; of a class */
	double *load, *messages;	/* on each arc of a class, scratch of those who count */
	int32_t *route;		/* x * d + to: its number + 1 */
	int32_t *single;	/* likewise over one path, and over parallel ones: paths * d * d
				 * more; NULL: none yet */
	bool has_choice;	/* arcs of the same ends */
	bool splits;		/* NET_ALL is minimal-split, which has so many routes at most */
	int32_t *message;	/* likewise, of the step at hand; scratch */
	int64_t work;		/* arcs and hops that were looked at so far */
	VEC(struct torus_route) routes;
	VEC(struct torus_hop) hops;
	int32_t *dist, *queue;
	double *amount;
	int64_t *latency_ns;
	int32_t *paths;		/* shortest ones to the end of the route at hand */
	struct arrays arrays;
};

/* Paths of a route: all; or one, by a number below NET_TURNS; or one for each arc that leads on
 * from its beginning, of equal shares. */
#define NET_ALL (-1)
#define NET_TURNS 12	/* up to four arcs are counted round evenly */
#define NET_PARALLEL NET_TURNS

/* The nets of all dimensions, the shape's, and after how many nodes they repeat.
 * WEFT_EUNSUPPORTED beyond TORUS_MAX_SIZE. O(m + d divisors of d) a dimension the first time. */
int torus_nets(struct torus_shape *s, int *periods, struct err *err);
void torus_net_free(struct torus_net *n);
/* Classes of arcs under shifts by a period, a multiple of the net's or d. O(arcs x degree). */
void torus_net_classes(struct torus_net *n, int period);
/* The route, kept; paths: NET_ALL, NET_PARALLEL (COLL_ROUTING_MINIMAL_PARALLEL), or over one, at
 * every node the arc of that number that leads on, counted round (MINIMAL_SINGLE).
 * WEFT_EINFEASIBLE where there is none, WEFT_EUNSUPPORTED through terminals that do not forward,
 * WEFT_ELIMIT: minimal-split has more than COLL_MAX_ARC_ROUTES.
 * O(arcs) the first time. */
int torus_net_route(struct torus_net *n, int from, int to, int paths,
		    const struct torus_route **out, struct err *err);

#endif
