/*
 * Tables of schedule files, shared by the JSON and the protobuf form.
 *
 * Both are a head and three tables of whole numbers. The columns, with what a
 * file may say and what a missing column stands for, are described here once;
 * writers ask for rows as numbers, readers hand rows in, and all checks of
 * values, with their errors, are made on the way in, whatever the form.
 */
#include "collective/schedule/private.h"

#include <string.h>

const struct format_table format_tables[FORMAT_TABLES] = {
	[FORMAT_ARCS] = { "arcs", 4, {
		{ "src", true, 0, INT32_MAX, 0 },
		{ "dst", true, 0, INT32_MAX, 0 },
		{ "cap", false, 1, COLL_MAX_CAP, 1 },
		{ "latency_ns", false, 0, INT64_MAX >> 20, 0 },
	} },
	[FORMAT_TRANSFERS] = { "transfers", 7, {
		{ "step", true, 0, INT32_MAX, 0 },
		{ "arc", true, 0, INT32_MAX, 0 },
		{ "origin", true, 0, INT32_MAX, 0 },
		{ "dest", false, 0, INT32_MAX, COLL_NO_DEST },
		{ "first", true, 0, INT32_MAX, 0 },
		{ "last", true, 0, INT32_MAX, 0 },
		{ "op", false, COLL_OP_COPY, COLL_OP_REDUCE, COLL_OP_COPY },
	} },
	[FORMAT_LIGHTS] = { "lightpaths", 6, {
		{ "step", true, 0, INT32_MAX, 0 },
		{ "arc", true, 0, INT32_MAX, 0 },
		{ "channel", true, 0, UINT16_MAX, 0 },
		{ "dir", true, 0, 1, 0 },
		{ "fibre", false, 0, UINT8_MAX, 0 },
		{ "loss_mdb", false, INT32_MIN, INT32_MAX, 0 },
	} },
};

int64_t format_n_rows(const struct coll_sched *s, enum format_which which)
{
	switch (which) {
	case FORMAT_ARCS:
		return topo_m(s->topo);
	case FORMAT_TRANSFERS:
		return (int64_t)s->xfers.n;
	case FORMAT_LIGHTS:
	case FORMAT_TABLES:
		break;
	}
	return (int64_t)s->lights.n;
}

static void get_arc(const struct topo_arc *a, int64_t *v)
{
	v[0] = a->src;
	v[1] = a->dst;
	v[2] = a->cap;
	v[3] = a->latency_ns;
}

static void get_xfer(const struct coll_xfer *x, int64_t *v)
{
	v[0] = x->step;
	v[1] = x->arc;
	v[2] = x->origin;
	v[3] = x->dest;
	v[4] = x->first;
	v[5] = x->last;
	v[6] = x->op;
}

static void get_light(const struct coll_light *l, int64_t *v)
{
	v[0] = l->step;
	v[1] = l->arc;
	v[2] = l->channel;
	v[3] = l->dir;
	v[4] = l->fibre;
	v[5] = l->loss_mdb;
}

void format_get(const struct coll_sched *s, enum format_which which, int64_t row, int64_t *values)
{
	switch (which) {
	case FORMAT_ARCS:
		get_arc(topo_arc(s->topo, (int)row), values);
		return;
	case FORMAT_TRANSFERS:
		get_xfer(&s->xfers.v[row], values);
		return;
	case FORMAT_LIGHTS:
	case FORMAT_TABLES:
		break;
	}
	get_light(&s->lights.v[row], values);
}

void format_present(const struct coll_sched *s, enum format_which which, bool *present)
{
	const struct format_table *t = &format_tables[which];
	int64_t n = format_n_rows(s, which), v[FORMAT_COLUMNS];

	for (int c = 0; c < t->n_columns; c++) {
		present[c] = t->columns[c].required;
	}
	for (int64_t i = 0; i < n; i++) {
		format_get(s, which, i, v);
		for (int c = 0; c < t->n_columns; c++) {
			present[c] |= v[c] != t->columns[c].absent;
		}
	}
}

/* "field: 7 is not in 0 to 3"; code is for values above. */
static int check(const char *field, int64_t value, int64_t lo, int64_t hi,
		 enum weft_err code, struct err *err)
{
	if (value >= lo && value <= hi) {
		return 0;
	}
	return err_set(err, value > hi ? code : WEFT_EINVAL,
		       "%s: %lld is not in %lld to %lld", field,
		       (long long)value, (long long)lo, (long long)hi);
}

static int check_head(const struct format_head *h, struct err *err)
{
	int rc = check("nodes", h->nodes, 1, TOPO_MAX_NODES, WEFT_ELIMIT, err);

	if (rc ||
	    (rc = check("chunks", h->chunks, 1, COLL_MAX_CHUNKS, WEFT_ELIMIT,
			err)) ||
	    (rc = check("ports", h->ports, 0, COLL_MAX_PORTS, WEFT_ELIMIT,
			err)) ||
	    (rc = check("root", h->root, 0, h->nodes - 1, WEFT_EINVAL, err)) ||
	    (rc = check("part", h->part - 1, -1, h->nodes - 1, WEFT_EINVAL,
			err))) {
		return rc;
	}
	return check("topology length", strlen(h->topology), 0, COLL_MAX_NAME, WEFT_ELIMIT, err);
}

int format_start(struct format_load *l, const struct format_head *head, struct err *err)
{
	int rc;

	*l = (struct format_load){ .head = *head };
	if (head->version != FORMAT_VERSION) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "version: schedule format %lld is not "
			       "supported, only %d", (long long)head->version,
			       FORMAT_VERSION);
	}
	rc = check_head(head, err);
	if (rc) {
		return rc;
	}
	return topo_new((int)head->nodes, &l->graph, err);
}

/* Row numbers are arc numbers, so the rows must stand as the digraph would
 * sort them. */
static int add_arc(struct format_load *l, const int64_t *v, struct err *err)
{
	if (v[0] < l->last_src) {
		return err_set(err, WEFT_EINVAL,
			       "src: %lld after %lld: arcs are listed by "
			       "ascending source", (long long)v[0],
			       (long long)l->last_src);
	}
	l->last_src = v[0];
	return topo_add_arc(l->graph, (int)v[0], (int)v[1], v[2], v[3], err);
}

static int add_xfer(struct format_load *l, const int64_t *v, struct err *err)
{
	struct coll_xfer x = {
		.step = (int32_t)v[0], .arc = (int32_t)v[1],
		.origin = (int32_t)v[2], .dest = (int32_t)v[3],
		.first = (int32_t)v[4], .last = (int32_t)v[5],
		.op = (uint8_t)v[6],
	};

	return coll_add(l->sched, &x, err);
}

static int add_light(struct format_load *l, const int64_t *v, struct err *err)
{
	struct coll_light light = {
		.step = (int32_t)v[0], .arc = (int32_t)v[1],
		.channel = (uint16_t)v[2], .dir = (uint8_t)v[3],
		.fibre = (uint8_t)v[4], .loss_mdb = (int32_t)v[5],
	};

	return coll_add_light(l->sched, &light, err);
}

int format_add(struct format_load *l, enum format_which which, int64_t row,
	       const int64_t *values, struct err *err)
{
	static int (*const add[FORMAT_TABLES])(struct format_load *, const int64_t *,
					       struct err *) = {
		[FORMAT_ARCS] = add_arc, [FORMAT_TRANSFERS] = add_xfer,
		[FORMAT_LIGHTS] = add_light,
	};
	const struct format_table *t = &format_tables[which];
	int rc = 0;

	for (int c = 0; c < t->n_columns && !rc; c++) {
		const struct format_column *col = &t->columns[c];

		if (values[c] != col->absent) {
			rc = check(col->name, values[c], col->lo, col->hi, WEFT_EINVAL, err);
		}
	}
	if (rc || add[which](l, values, err)) {
		return err_wrap(err, "%s[%lld]", t->name, (long long)row);
	}
	return 0;
}

int format_graph(struct format_load *l, struct err *err)
{
	struct topo *graph = l->graph;
	int rc = topo_freeze(graph, err);

	if (rc) {
		return rc;
	}
	l->graph = NULL;
	rc = coll_new(l->head.kind, graph, (int)l->head.chunks,
		      (int)l->head.ports, (int)l->head.root, &l->sched, err);
	if (!rc && l->head.topology[0]) {
		coll_set_topo_name(l->sched, l->head.topology);
	}
	return rc;
}

int format_finish(struct format_load *l, struct coll_sched **out, struct err *err)
{
	int rc = coll_finish(l->sched, err);

	if (!rc) {
		l->sched->part = (int)l->head.part;
		*out = l->sched;
		l->sched = NULL;
	}
	return rc;
}

void format_abort(struct format_load *l)
{
	topo_free(l->graph);
	coll_free(l->sched);
	l->graph = NULL;
	l->sched = NULL;
}
