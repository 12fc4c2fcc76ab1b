/* What the files of this room share. */
#ifndef WEFT_COLLECTIVE_SCHEDULE_PRIVATE_H
#define WEFT_COLLECTIVE_SCHEDULE_PRIVATE_H

#include "collective/schedule/schedule.h"
#include "lib/base/vec.h"

struct coll_sched {
	enum coll_kind kind;
	struct topo *topo;	/* owned, frozen */
	int ranks;		/* nodes of topo */
	int chunks;		/* of a shard, 1 to COLL_MAX_CHUNKS */
	int ports;		/* units of capacity a node may drive at a time */
	int root;		/* of a broadcast, else 0 */
	int part;		/* of this rank + 1 only; 0: all of it */
	int steps;		/* largest step + 1, set by coll_finish */
	bool finished;
	bool proven;		/* replayed as it is now */
	char *topo_name;	/* owned, NULL: unknown */
	VEC(struct coll_xfer) xfers;	/* finished: sorted, ranges merged */
	VEC(struct coll_light) lights;
};

/* An empty schedule of this kind over graph (taken over; NULL: a copy of that
 * of s), with the ports, root and name of s. */
int coll_new_like(const struct coll_sched *s, enum coll_kind kind, struct topo *graph, int chunks,
		  struct coll_sched **out, struct err *err);

/* The least common multiple of the capacities: a chunk on an arc takes scale /
 * capacity units of time, all whole. WEFT_ELIMIT above 2^31. */
int coll_common_scale(const struct topo *t, int64_t *scale, struct err *err);

/* Transfers, or lights, of one arc in one step: v[first .. first + n - 1]. */
struct coll_run {
	int64_t first, n;
};

/* The run of transfers that starts at `from` (< number of transfers). */
struct coll_run coll_xfer_run(const struct coll_sched *s, int64_t from);

/* The lights of (step, arc), searched from light number `from` on, which
 * must not lie behind them; n is 0 when the arc has no light. */
struct coll_run coll_light_run(const struct coll_sched *s, int64_t from, int step, int arc);

/* Fills the loads of a report and refuses a node that drives or receives
 * more than its ports, or an arc that carries without light; light must be
 * free of repetitions. */
int coll_measure(const struct coll_sched *s, struct coll_report *r, struct err *err);

/* ---- formats ---- */

/*
 * What the JSON and the protobuf form of a schedule have in common: a head
 * and three tables of whole numbers, whose columns are described here once.
 * A column with the same default in every row is left out of a file.
 */
#define FORMAT_VERSION 1
#define FORMAT_COLUMNS 7	/* of the widest table */

enum format_which { FORMAT_ARCS, FORMAT_TRANSFERS, FORMAT_LIGHTS,
		    FORMAT_TABLES };

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
};

extern const struct format_table format_tables[FORMAT_TABLES];

int64_t format_n_rows(const struct coll_sched *s, enum format_which which);
/* One row of a schedule as numbers, in the order of the columns. */
void format_get(const struct coll_sched *s, enum format_which which, int64_t row, int64_t *values);
/* present[c]: the column is required or differs from its default. */
void format_present(const struct coll_sched *s, enum format_which which, bool *present);

struct format_head {
	int64_t version, nodes, chunks, ports, root;
	int64_t part;		/* rank + 1, 0: whole */
	enum coll_kind kind;
	const char *topology;	/* "" when unknown */
};

/* A schedule being read: start, all arcs, graph, the other rows, finish; or
 * abort at any point after start. */
struct format_load {
	struct format_head head;
	struct topo *graph;
	int64_t last_src;
	struct coll_sched *sched;
};

int format_start(struct format_load *l, const struct format_head *head, struct err *err);
/* Adds a row; values as format_get gives them. Errors name table and row. */
int format_add(struct format_load *l, enum format_which which, int64_t row,
	       const int64_t *values, struct err *err);
/* After the last arc, before the first transfer. */
int format_graph(struct format_load *l, struct err *err);
int format_finish(struct format_load *l, struct coll_sched **out, struct err *err);
/* Frees what is left; fine after format_finish. */
void format_abort(struct format_load *l);

#endif
