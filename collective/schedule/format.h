/*
 * What the JSON and the protobuf form of a schedule have in common: a head
 * and three tables of whole numbers, whose columns are described here once.
 * A column with the same default in every row is left out of a file.
 */
#ifndef WEFT_COLLECTIVE_SCHEDULE_FORMAT_H
#define WEFT_COLLECTIVE_SCHEDULE_FORMAT_H

#include "collective/schedule/private.h"

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
void format_get(const struct coll_sched *s, enum format_which which,
		int64_t row, int64_t *values);
/* present[c]: the column is required or differs from its default. */
void format_present(const struct coll_sched *s, enum format_which which,
		    bool *present);

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

int format_start(struct format_load *l, const struct format_head *head,
		 struct err *err);
/* Adds a row; values as format_get gives them. Errors name table and row. */
int format_add(struct format_load *l, enum format_which which, int64_t row,
	       const int64_t *values, struct err *err);
/* After the last arc, before the first transfer. */
int format_graph(struct format_load *l, struct err *err);
int format_finish(struct format_load *l, struct coll_sched **out,
		  struct err *err);
/* Frees what is left; fine after format_finish. */
void format_abort(struct format_load *l);

#endif
