/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share: the schedule as a struct, its loads step by
 * step, which measuring and costing walk through, and the tables of its files. */
#ifndef WEFT_COLLECTIVE_SCHEDULE_PRIVATE_H
#define WEFT_COLLECTIVE_SCHEDULE_PRIVATE_H

#include "collective/schedule/schedule.h"
#include "lib/base/vec.h"

/* A route as it is kept: hops first .. first + n - 1 of the embedding. */
struct coll_path {
	int32_t arc, weight, n;
	int64_t first;
};

struct coll_embedding {
	struct topo *physical;		/* owned, frozen */
	/* Of the schedule's group on it, or NULL: without a group, or where every logical
	 * arc has its own routes, as this group keeps the logical digraph only. */
	struct topo_action *action;
	struct topo_group *symmetry;	/* then what was found of it; owned, or NULL */
	enum coll_routing routing;
	char *name;			/* of the physical digraph; owned, NULL: unknown */
	VEC(struct coll_path) paths;	/* finished: by arc, as they were added */
	VEC(int32_t) hops;
};

struct coll_sched {
	enum coll_kind kind;
	struct topo *topo;	/* owned, frozen */
	int ranks;		/* terminals of topo, its first nodes */
	struct topo_group *group;	/* owned, NULL: no symmetry */
	struct topo_action *action;	/* of the group on topo, NULL without */
	struct coll_embedding *embedding;	/* owned, NULL: topo is physical */
	int chunks;		/* of a shard, 1 to COLL_MAX_CHUNKS */
	int32_t *demands;	/* of an all-to-all: chunks by pair, owned; NULL: all */
	int ports;		/* units of capacity a node may drive at a time */
	int root;		/* of a broadcast, else 0 */
	int part;		/* of this rank + 1 only; 0: all of it */
	int steps;		/* largest step + 1, set by coll_finish */
	bool finished;
	bool forwards;		/* finished: some transfer forwards a sum */
	bool merges;		/* finished: some transfer says under which number it is kept */
	bool alike;		/* transfers are of shard 0, for all shards */
	bool proven;		/* replayed as it is now */
	char *topo_name;	/* owned, NULL: unknown */
	struct coll_placement *placement;	/* owned, NULL: nowhere */
	VEC(struct coll_xfer) xfers;	/* finished: sorted, ranges merged */
	VEC(struct coll_light) lights;
};

/* An empty schedule of this kind over graph (taken over; NULL: a copy of that
 * of s), with the ports, root and name of s. */
int coll_new_like(const struct coll_sched *s, enum coll_kind kind, struct topo *graph, int chunks,
		  struct coll_sched **out, struct err *err);

/* The same with the group of s; not with its embedding. */
int coll_new_with_group(const struct coll_sched *s, enum coll_kind kind, struct topo *graph,
			int chunks, struct coll_sched **out, struct err *err);
/* An empty schedule with all that s has, which is not compact, but its transfers and light. */
int coll_new_flat(const struct coll_sched *s, enum coll_kind kind, struct coll_sched **out,
		  struct err *err);
/* WEFT_EUNSUPPORTED for `what`, such as "reversing", when s is embedded. */
int coll_refuse_embedded(const struct coll_sched *s, const char *what, struct err *err);

/* Messages may pass through other nodes: they have routes, or ranks forward. O(1). */
bool coll_may_route(const struct coll_sched *s, const struct coll_cost *c);
/* The most hops from where data starts to a rank that wants it, from such a node; and the fewest
 * steps in which a message can go so far, as another may: in one where ranks pass on messages, else
 * from rank to rank. port: capacity of the arcs out of the one or into the other, whichever is
 * more, of those so far apart with the least. */
struct coll_far {
	int hops, from, steps;
	int64_t port;
};
/* bound_time() of collective/bound/bound.h for an embedded schedule or one that sends on vectors;
 * bound_time_overlapped() where steps overlap, in whole ns: 0 with light. volume: the bandwidth
 * bound, in vectors per unit of capacity. WEFT_ELIMIT. O(m) beside it, and of topo_group_find. */
int coll_steps_bound(const struct coll_sched *s, const struct coll_far *far, int64_t latency_ns,
		     const mpq_t volume, const struct coll_cost *c, int64_t *ns, struct err *err);

/* Arcs that are counted: all up to a capacity, or those of them between two switches, or into
 * ranks. */
struct coll_hop_class {
	int64_t cap;
	bool switches, ranks;
};
/* dist[node]: the least number of counted arcs on paths from u, -1: there are none. O(n + m). */
void coll_count_arcs(const struct topo *t, int u, const struct coll_hop_class *class,
		     int32_t *dist);

/* The orbit of an arc, and its first arc: of no group the arc itself. */
static inline int coll_orbit(const struct topo_action *action, int arc)
{
	return action ? topo_action_orbit(action, arc) : arc;
}

static inline int coll_orbit_first(const struct topo_action *action, int orbit)
{
	return action ? topo_action_first(action, orbit) : orbit;
}

static inline int coll_orbits(const struct coll_sched *s)
{
	return s->action ? topo_action_orbits(s->action) : topo_m(s->topo);
}

/* The group moves transfers, but not what carries them: every arc has its own routes. */
static inline bool coll_has_own_routes(const struct coll_sched *s)
{
	return s->group && s->embedding && !s->embedding->action;
}

/* A group that keeps the digraph that is there. */
static inline const struct topo_group *coll_symmetry(const struct coll_sched *s)
{
	return coll_has_own_routes(s) ? s->embedding->symmetry : s->group;
}

/* One that keeps the demands of pairs too. */
static inline const struct topo_group *coll_pair_symmetry(const struct coll_sched *s)
{
	return s->demands && coll_has_own_routes(s) ? NULL : coll_symmetry(s);
}

/* What a group does to logical arcs and their routes alike. Its orbits send: one message a
 * step that is counted and simulated for all of them; arcs that have their own routes send
 * each for itself. */
static inline const struct topo_action *coll_senders(const struct coll_sched *s)
{
	return coll_has_own_routes(s) ? NULL : s->action;
}

/* The sender that has the transfers kept for an arc: of arcs with their own routes the first
 * of the orbit, which stands for the others. */
static inline int coll_sender(const struct coll_sched *s, int arc)
{
	int orbit = coll_orbit(s->action, arc);

	return coll_has_own_routes(s) ? coll_orbit_first(s->action, orbit) : orbit;
}

/* The group's elements over the arcs of an orbit: so many elements take an arc
 * to the same. */
static inline int coll_orbit_share(const struct coll_sched *s, const struct topo_action *action,
				   int orbit)
{
	return action ? topo_group_order(s->group) / topo_action_size(action, orbit) : 1;
}

/* Transfers that one which is kept stands for. */
static inline int64_t coll_images(const struct coll_sched *s)
{
	return s->alike ? s->ranks : topo_group_order(s->group);
}

/* Whether a shard is replayed by itself: others are images of one that is. */
static inline bool coll_is_first(const struct coll_sched *s, int origin)
{
	return s->alike ? origin == 0 : topo_group_first(s->group, origin) == origin;
}

/* Chunks of the shard of a pair, or of an origin. */
static inline int coll_chunks_of(const struct coll_sched *s, int origin, int dest)
{
	return s->demands ? s->demands[(size_t)origin * s->ranks + dest] : s->chunks;
}

/* The demands of `from`, rank u as to[u] (NULL: as u), origins and destinations exchanged
 * with `reverse`. Errors of coll_set_demands. */
int coll_set_demands_moved(struct coll_sched *s, const struct coll_sched *from, const int *to,
			   bool reverse, struct err *err);

/* Frees the placement, while the digraphs are there. */
void coll_forget_placement(struct coll_sched *s);

/* x moved by an element. */
struct coll_xfer coll_moved(const struct coll_sched *s, int by, const struct coll_xfer *x);

/* An element of the group that takes an arc to another of its orbit. */
int coll_element_to(const struct coll_sched *s, int arc, int to);
/* Frees it with all that it owns; NULL is fine. */
void coll_embedding_free(struct coll_embedding *e);
/* Sorts the routes and refuses a schedule with arcs that carry and have none. */
int coll_finish_routes(struct coll_sched *s, struct err *err);

/* Lights of one arc in one step: v[first .. first + n - 1]. */
struct coll_run {
	int64_t first, n;
};

/* The lights of (step, arc), searched from light number `from` on, which
 * must not lie behind them, one after the other, from 0 by halves; n is 0 when the arc has no
 * light. */
struct coll_run coll_light_run(const struct coll_sched *s, int64_t from, int step, int arc);

/* coll_light_changes, and which steps need other light than the one before: those
 * of changes, of coll_steps (NULL: not wanted), become true. */
void coll_light_changes_at(const struct coll_sched *s, bool *changes,
			   struct coll_light_change *out);

/* ---- replay ---- */

/* A transfer of the shard at hand, its chunks as classes. */
struct coll_move {
	int32_t step, arc, src, dst;
	int32_t from, to;	/* classes, inclusive */
	int32_t of;		/* whose sum is forwarded, or under which number it is kept */
	uint8_t op;
	uint16_t kept;		/* as of a transfer */
};

static inline bool coll_covers(const struct coll_move *m, int class)
{
	return m->from <= class && class <= m->to;
}

/* Replays the moves of one class of an all-reduce whose sums are merged, which come by steps, on n
 * ranks: every rank has every contribution once. WEFT_EVERIFY: `at` is the move that is wrong, or
 * NULL, and then `at_rank` the rank that lacks something; what says it. O(n^2 + moves). */
struct coll_merge_fault {
	const struct coll_move *at;
	int at_rank;
	char what[96];
};
int coll_replay_merged(int n, const struct coll_move *moves, int n_moves, int class,
		       struct coll_merge_fault *fault);

/* ---- loads ---- */

/* Chunks per unit of capacity. */
struct coll_load {
	int64_t chunks, cap;
};

static inline bool coll_less_load(struct coll_load a, struct coll_load b)
{
	return (__int128)a.chunks * b.cap < (__int128)b.chunks * a.cap;
}

/* Capacity in use at a node in a step, counted from 1; 0: none yet. */
struct coll_port {
	int64_t used;
	int32_t step;
};

/*
 * Walks through the steps of a finished schedule, in which light must be free of
 * repetitions:
 *
 *	rc = coll_loads_init(&w, s, err);
 *	while (!rc && (rc = coll_loads_next(&w, err)) == 0 && w.n_used > 0) { ... }
 *	coll_loads_fini(&w);
 *
 * All by orbits of arcs, or where each has its own routes by arcs (coll_senders); loads are
 * in units of 1 / scale of a chunk. coll_loads_next
 * refuses a node that drives or receives more than its ports, and an arc that
 * carries without light. O(transfers + routes of the arcs that carry + arcs of
 * shared limits).
 */
struct coll_loads {
	const struct coll_sched *s;
	const struct topo *physical;
	const struct topo_arc *arcs;		/* of it */
	const struct topo_action *action;	/* on it */
	const struct topo_action *senders;	/* of logical arcs: coll_senders */
	int64_t scale;		/* common multiple of the weights of routes */
	int64_t most;		/* load of an arc that counts */

	int step;		/* the one at hand */
	int n_used;		/* senders that carry in it, 0 after the last step */
	int32_t *used;		/* in the order of their first transfers, arcs of an orbit
				 * beside each other */
	int64_t *chunks;	/* of the transfers of a sender: of an orbit those kept */
	int n_loaded;
	int32_t *loaded;	/* physical orbits that carry in it */
	int64_t *load;		/* on an arc of a physical orbit */
	int64_t *cap;		/* of it in this step, with its lights */
	int64_t *messages;	/* routes in use that begin with an arc of it */
	struct coll_load top;	/* the largest, shared limits included */
	int64_t hops;		/* chunks times logical arcs, of the steps so far */

	int32_t *path_of;	/* the first route of a sender; NULL without routes */
	int64_t *saved;		/* chunks of its sender that a hop of a route need not carry, as a
				 * switch copies or sums them; NULL: none does */
	/* Where arcs have their own routes, else NULL: the arcs by orbit, where an orbit
	 * begins there, and the place of an arc among those of its orbit. */
	int32_t *members, *first_member, *place;
	struct coll_port *out, *in;	/* of a node */
	size_t xfer;		/* where the next step begins */
	int64_t light;
	bool *lit;		/* of an embedded schedule: arcs with light in some step */
	struct arrays arrays;
};

/* Fills w->saved, all 0, for the transfers from number `first` to w->xfer. O(transfers log
 * transfers + hops of their routes). */
void coll_save_loads(struct coll_loads *w, int64_t first);

/* coll_loads_fini in any case. */
int coll_loads_init(struct coll_loads *w, const struct coll_sched *s, struct err *err);
int coll_loads_next(struct coll_loads *w, struct err *err);
void coll_loads_fini(struct coll_loads *w);
/* The load of a physical arc in the step at hand, or of the fullest shared limit that it
 * is in when that is more. */
struct coll_load coll_loads_at(const struct coll_loads *w, int arc);
/* What all arcs of a shared limit carry in it. O(arcs of the limit). */
struct coll_load coll_limit_load(const struct coll_loads *w, int limit);

/* Fills the loads and the bound of a report. */
int coll_measure(const struct coll_sched *s, struct coll_report *r, struct err *err);
/* q *= num / den. */
void coll_scale(mpq_t q, int64_t num, int64_t den);

/* ---- formats ---- */

/*
 * What the JSON and the protobuf form of a schedule have in common: a head
 * and tables of whole numbers, whose columns are described here once.
 * A column with the same default in every row is left out of a file, and so is a
 * table without rows. Version 1 has arcs, transfers and lightpaths alone, and is
 * what a schedule is written in that needs no more; version 2 all tables, version 3 also
 * the placement, which is columns of names, version 4 also demands, version 5 also
 * forwarded sums, version 6 also merged ones and shards that move alike.
 */
#define FORMAT_PLACED 3		/* what a placement needs */
#define FORMAT_DEMANDED 4
#define FORMAT_FORWARDED 5
#define FORMAT_MERGED 6
#define FORMAT_COLUMNS 9	/* of the widest table */

/* In the order in which files are read; the transfers come after all that they
 * refer to. */
enum format_which {
	FORMAT_KINDS,		/* nodes that are no usual terminals */
	FORMAT_ARCS,
	FORMAT_PHYSICAL_ARCS,	/* of an embedded schedule */
	FORMAT_LIMITS,		/* shared; of the physical digraph when embedded */
	FORMAT_LIMIT_ARCS,
	FORMAT_GENERATORS,	/* of the group of a compact schedule */
	FORMAT_IMAGES,		/* of every node under the first generator, then the next */
	FORMAT_ROUTES,
	FORMAT_HOPS,		/* of the first route, then the next */
	FORMAT_DEMANDS,		/* above 0; of a compact schedule those of the first origins */
	FORMAT_TRANSFERS, FORMAT_LIGHTS,
	FORMAT_TABLES,
};

struct format_column {
	const char *name;
	bool required;
	int64_t lo, hi;		/* what a file may say */
	int64_t absent;		/* value when the column is left out */
};

struct format_table {
	const char *name;
	int n_columns;
	struct format_column columns[FORMAT_COLUMNS];
	bool always;		/* written also without rows */
	int since;		/* version */
};

extern const struct format_table format_tables[FORMAT_TABLES];

/* What it takes to write s. */
int format_version(const struct coll_sched *s);
int64_t format_n_rows(const struct coll_sched *s, enum format_which which);
/* Rows of a schedule as numbers, in the order of the columns: the first, or
 * the one after what the last call gave. */
struct format_rows {
	const struct coll_sched *s;
	enum format_which which;
	int64_t row;		/* the next */
	int64_t outer, inner;	/* of the tables that lie in others */
};

struct format_rows format_rows(const struct coll_sched *s, enum format_which which);
void format_next(struct format_rows *r, int64_t *values);
/* present[c]: the column is required or differs from its default. */
void format_present(const struct coll_sched *s, enum format_which which, bool *present);

struct format_head {
	int64_t version, nodes, chunks, ports, root;
	int64_t part;		/* rank + 1, 0: whole */
	int64_t physical_nodes;	/* 0: not embedded */
	bool alike;		/* coll_set_alike */
	enum coll_routing routing;
	enum coll_kind kind;
	const char *topology;	/* "" when unknown */
	const char *physical;	/* name of the physical digraph, "" when unknown */
};

struct format_demand {
	int32_t origin, dest, chunks;
};

/* A schedule being read: start, rows table by table, and finish; or
 * abort at any point after start. */
struct format_load {
	struct format_head head;
	struct topo *graph, *physical;	/* NULL once the schedule has them */
	int64_t last_src;
	VEC(int64_t) limits;		/* capacities */
	VEC(int32_t) limit_arcs;	/* pairs of limit and arc */
	VEC(int32_t) orders, images;
	VEC(struct coll_path) routes;
	VEC(int32_t) hops;
	VEC(struct format_demand) demands;
	struct coll_sched *sched;
};

int format_start(struct format_load *l, const struct format_head *head, struct err *err);
/* The table whose rows come next. */
int format_begin(struct format_load *l, enum format_which which, int64_t rows, struct err *err);
/* Adds a row of it; values as format_next gives them. Errors name table and row. */
int format_add(struct format_load *l, enum format_which which, int64_t row,
	       const int64_t *values, struct err *err);

/* The columns of a placement in a file; borrowed. */
struct format_names {
	char **v;
	size_t n;	/* 0: left out */
};

struct format_placement {
	struct format_names hosts, netns, tx_ports, rx_ports;
	int32_t *ring_nodes;
	size_t n_ring_nodes;
};

/* After the tables, where a file has a placement. Errors name the column. */
int format_place(struct format_load *l, const struct format_placement *f, struct err *err);
int format_finish(struct format_load *l, struct coll_sched **out, struct err *err);
/* Frees what is left; fine after format_finish. */
void format_abort(struct format_load *l);

#endif
