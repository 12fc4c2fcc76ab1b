/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules for routes share: paths of one logical arc, level by level. */
#ifndef WEFT_COLLECTIVE_EMBEDDING_PRIVATE_H
#define WEFT_COLLECTIVE_EMBEDDING_PRIVATE_H

#include "collective/embedding/embedding.h"
#include "lib/base/vec.h"

/* A route and its part of the data: num / den. */
struct embed_share {
	size_t first;		/* hop */
	int n;
	int64_t num, den;
};

/* Where a path has come to. */
struct embed_step {
	int32_t node, next_arc;
	int64_t num, den;	/* of the data that comes here */
	int64_t total;		/* capacity of the arcs that lead on */
};

/*
 * The routes of the logical arc at hand. A rule gives nodes a level: every path whose
 * levels grow by one from the tail to the head is a route, and every node with a
 * level has an arc to one of the next level, but for the head.
 */
struct embed_paths {
	const struct topo *t;		/* physical */
	int32_t *level;			/* of a node, -1: on no route */
	VEC(int32_t) marked;		/* nodes that have one */
	struct embed_step *step;	/* by level */
	VEC(int32_t) hops;
	VEC(struct embed_share) routes;
	struct arrays arrays;
};

void embed_paths_init(struct embed_paths *p, const struct topo *t);
void embed_paths_fini(struct embed_paths *p);
void embed_mark(struct embed_paths *p, int node, int level);
/* Adds the routes that the levels make, which have this weight together, and takes
 * the levels away. O(hops of the routes x degree). WEFT_ELIMIT. */
int embed_collect(struct embed_paths *p, int src, int dst, int64_t weight, struct err *err);
/* The same of one route only: at every node the k-th arc that leads on, counted round. k < 0: of
 * one for each arc that leads on from src. */
int embed_collect_kth(struct embed_paths *p, int src, int dst, int k, struct err *err);
/* Gives a logical arc the routes collected, and forgets them. */
int embed_add_routes(struct embed_paths *p, struct coll_sched *s, int arc, struct err *err);

/* Marks the nodes of all shortest paths. O(arcs of nodes that are as near) for a src in
 * another orbit of the digraph's own symmetry than in the call before, else O(arcs of nodes on
 * the paths). */
struct embed_minimal {
	const struct topo *t;
	struct topo_group *symmetry;	/* owned; NULL: none was found */
	int src;		/* the first of an orbit, whose distances are there, -1: none */
	int by;			/* takes the source at hand there */
	int32_t *dist;		/* of nodes that a search has come to, else -1 */
	int32_t *queue;		/* these, the first `done` with all their arcs */
	int found, done;
	struct arrays arrays;
};

int embed_minimal_init(struct embed_minimal *m, const struct topo *t, struct err *err);
void embed_minimal_fini(struct embed_minimal *m);
int embed_minimal(struct embed_minimal *m, struct embed_paths *p, int src, int dst,
		  struct err *err);

/* Digits of the numbers of a physical digraph's terminals. */
struct embed_grid {
	const struct topo *t;
	int n_digits;
	int radix[COLL_MAX_DIGITS];	/* the lowest first */
	int32_t *dist;			/* to the node that a digit leads to, -1: unknown */
	int32_t *queue;
	int32_t *component;		/* of a node that is no terminal, from 0 */
	int32_t *first;			/* terminal of a component, -1: none yet */
	uint8_t *differs;		/* of a component: parts of numbers */
	int n_components;
	struct arrays arrays;
};

/* WEFT_EUNSUPPORTED when the terminals have no such digits. O(divisors x m). */
int embed_grid_init(struct embed_grid *g, const struct topo *t, struct err *err);
/* Marks the nodes of one path. O(nodes and arcs of the lines that it goes along). */
int embed_dimensions(struct embed_grid *g, struct embed_paths *p, int src, int dst,
		     struct err *err);
/* Each generator adds a number to every digit. */
bool embed_keeps_digits(const struct embed_grid *grid, const struct topo_group *g);

/* A transfer moved by an element of a group, whose action on its digraph is given. */
struct coll_xfer embed_moved(const struct topo_group *g, const struct topo_action *action, int by,
			     const struct coll_xfer *x);
/* Groups that are tried move at most so many transfers, all written out. */
#define EMBED_MAX_MOVED (1 << 22)
/* A group of the physical digraph that keeps a compact schedule too: of the shifts of
 * topo_group_digits() those that do. action: of the schedule's group. *out NULL:
 * none does. O(generators x transfers written out x log). */
int embed_other_group(const struct coll_sched *s, const struct topo_action *action,
		      const struct topo *physical, struct topo_group **out, struct err *err);

/* Collects routes from a file: embed_explicit for every logical arc. */
struct json_t;
int embed_read_routes(const char *text, size_t len, struct json_t **root, struct err *err);
int embed_explicit(struct json_t *root, struct embed_paths *p, struct coll_sched *s,
		   struct err *err);

#endif
