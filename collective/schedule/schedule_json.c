/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules as JSON, as docs/schedule.md describes it.
 *
 * Writing is by hand, as schedules have millions of rows and printf costs more
 * than all the rest; columns whose values are all the default are left out.
 * Reading goes through jansson's tree and hands rows to format.c. Unknown keys
 * are refused: a misspelt column would otherwise silently take its default.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/private.h"
#include "collective/schedule/schedule.h"
#include "lib/output/writer.h"

#define FORMAT_NAME "weft-schedule"

/* ---- writing ---- */

/* Decimal text; printf costs more than all the rest. */
static void put_int(struct buf *b, int64_t value)
{
	char text[24], *p = text + sizeof(text);
	uint64_t v = value < 0 ? -(uint64_t)value : (uint64_t)value;

	do {
		*--p = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	if (value < 0) {
		*--p = '-';
	}
	buf_add(b, p, (size_t)(text + sizeof(text) - p));
}

static void put_row(struct buf *b, const struct format_table *t,
		    const bool *present, const int64_t *v)
{
	char before = '[';

	for (int c = 0; c < t->n_columns; c++) {
		if (present[c]) {
			buf_char(b, before);
			put_int(b, v[c]);
			before = ',';
		}
	}
	buf_char(b, ']');
}

/* "T_columns" names the columns that are present, "T" has the rows. */
static void put_table(struct buf *b, const struct coll_sched *s, enum format_which which)
{
	const struct format_table *t = &format_tables[which];
	struct format_rows rows = format_rows(s, which);
	int64_t n = format_n_rows(s, which), v[FORMAT_COLUMNS];
	bool present[FORMAT_COLUMNS];
	const char *before = "";

	if (n == 0 && !t->always) {
		return;
	}
	format_present(s, which, present);
	buf_printf(b, ",\n  \"%s_columns\": [", t->name);
	for (int c = 0; c < t->n_columns; c++) {
		if (present[c]) {
			buf_printf(b, "%s\"%s\"", before, t->columns[c].name);
			before = ", ";
		}
	}
	buf_printf(b, "],\n  \"%s\": [", t->name);
	for (int64_t i = 0; i < n; i++) {
		buf_str(b, i ? ",\n    " : "\n    ");
		format_next(&rows, v);
		put_row(b, t, present, v);
	}
	buf_str(b, n ? "\n  ]" : "]");
}

/* Nothing for a column that is left out. */
static void put_names(struct buf *b, const char *name, char *const *v, int n)
{
	for (int i = 0; v && i < n; i++) {
		buf_printf(b, i ? ", " : ",\n    \"%s\": [", name);
		out_json_quote(b, v[i]);
	}
	buf_str(b, v && n ? "]" : "");
}

static void put_placement(struct buf *b, const struct coll_sched *s)
{
	const struct coll_placement *p = s->placement;
	int n = topo_n(coll_physical(s)), m = topo_m(coll_physical(s));

	buf_str(b, ",\n  \"placement\": {\n    \"hosts\": [");
	for (int u = 0; u < n; u++) {
		buf_str(b, u ? ", " : "");
		out_json_quote(b, p->hosts[u]);
	}
	buf_str(b, "]");
	put_names(b, "netns", p->netns, n);
	for (int u = 0; u < n && p->ring_nodes; u++) {
		buf_str(b, u ? ", " : ",\n    \"ring_nodes\": [");
		put_int(b, p->ring_nodes[u]);
	}
	buf_str(b, p->ring_nodes ? "]" : "");
	put_names(b, "tx_ports", p->tx_ports, m);
	put_names(b, "rx_ports", p->rx_ports, m);
	buf_str(b, "\n  }");
}

void coll_to_json(const struct coll_sched *s, struct buf *out)
{
	buf_str(out, "{\n  \"format\": \"" FORMAT_NAME "\"");
	buf_printf(out, ",\n  \"version\": %d", format_version(s));
	buf_printf(out, ",\n  \"collective\": \"%s\"", coll_kind_name(s->kind));
	if (s->topo_name) {
		buf_str(out, ",\n  \"topology\": ");
		out_json_quote(out, s->topo_name);
	}
	buf_printf(out, ",\n  \"nodes\": %d", topo_n(s->topo));
	if (s->embedding) {
		buf_str(out, ",\n  \"physical\": ");
		out_json_quote(out, coll_physical_name(s));
		buf_printf(out, ",\n  \"physical_nodes\": %d", topo_n(coll_physical(s)));
		buf_printf(out, ",\n  \"routing\": \"%s\"", coll_routing_name(coll_routing(s)));
	}
	buf_printf(out, ",\n  \"chunks\": %d", s->chunks);
	buf_printf(out, ",\n  \"ports\": %d", s->ports);
	if (coll_has_root(s->kind)) {
		buf_printf(out, ",\n  \"root\": %d", s->root);
	}
	if (s->part) {
		buf_printf(out, ",\n  \"part\": %d", coll_part(s));
	}
	buf_str(out, s->alike ? ",\n  \"alike\": true" : "");
	buf_printf(out, ",\n  \"steps\": %d", s->steps);
	if (s->placement) {
		put_placement(out, s);
	}
	for (int which = 0; which < FORMAT_TABLES; which++) {
		put_table(out, s, which);
	}
	buf_str(out, "\n}\n");
}

/* ---- reading ---- */

json_t *coll_json_root(const char *text, size_t len, struct err *err)
{
	json_error_t at;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);

	if (!root) {
		err_set(err, WEFT_EINVAL, "not valid JSON: %s", at.text);
		err_at(err, NULL, at.line, at.column);
	}
	return root;
}

/* Keys of the head, and of the tables by their names. "steps" is for people: it follows from the
 * transfers. */
static int check_keys(json_t *root, struct err *err)
{
	static const char *const head[] = {
		"format", "version", "collective", "topology", "nodes", "chunks", "ports", "root",
		"part", "steps", "physical", "physical_nodes", "routing", "placement",
		"alike",
	};
	size_t n = sizeof(head) / sizeof(head[0]);
	const char *known[sizeof(head) / sizeof(head[0]) + 2 * FORMAT_TABLES + 1] = { NULL };
	char columns[FORMAT_TABLES][40];

	memcpy(known, head, sizeof(head));
	for (int i = 0; i < FORMAT_TABLES; i++) {
		snprintf(columns[i], sizeof(columns[i]), "%s_columns", format_tables[i].name);
		known[n++] = format_tables[i].name;
		known[n++] = columns[i];
	}
	return topo_json_keys(root, known, err);
}

/* A string of the head; absent NULL: it must be there. */
static int get_text(const json_t *root, const char *key, const char *absent,
		    const char **out, struct err *err)
{
	const json_t *v = json_object_get(root, key);

	*out = v ? json_string_value(v) : absent;
	return *out ? 0 : err_set(err, WEFT_EINVAL, "%s: expected a string", key);
}

/* A whole number of the head; absent < 0: it must be there. */
static int get_int(const json_t *root, const char *key, int64_t absent,
		   int64_t *out, struct err *err)
{
	const json_t *v = json_object_get(root, key);

	if ((v && !json_is_integer(v)) || (!v && absent < 0)) {
		return err_set(err, WEFT_EINVAL, "%s: expected a whole number", key);
	}
	*out = v ? json_integer_value(v) : absent;
	return 0;
}

static int read_embedding(const json_t *root, struct format_head *head, struct err *err)
{
	const char *routing;
	int rc;

	if ((rc = get_int(root, "physical_nodes", 0, &head->physical_nodes, err)) ||
	    (rc = get_text(root, "physical", "", &head->physical, err)) ||
	    (rc = get_text(root, "routing", "explicit", &routing, err))) {
		return rc;
	}
	return coll_routing_parse(routing, &head->routing, err);
}

static int read_head(const json_t *root, struct format_head *head, struct err *err)
{
	const char *format, *kind;
	int rc = get_text(root, "format", "", &format, err);

	if (!rc && !*format) {
		rc = err_set(err, WEFT_EINVAL, "it has no \"format\": \"" FORMAT_NAME "\"");
	} else if (!rc && strcmp(format, FORMAT_NAME) != 0) {
		rc = err_set(err, WEFT_EINVAL, "format: \"%.64s\" is not \"" FORMAT_NAME "\"",
			     format);
	}
	if (!rc) {
		rc = get_int(root, "version", -1, &head->version, err);
	}
	if (!rc) {
		rc = get_text(root, "collective", NULL, &kind, err);
	}
	if (!rc) {
		rc = coll_kind_parse(kind, &head->kind, err);
	}
	if (!rc) {
		rc = get_text(root, "topology", "", &head->topology, err);
	}
	if (!rc) {
		rc = get_int(root, "nodes", -1, &head->nodes, err);
	}
	if (!rc) {
		rc = get_int(root, "chunks", -1, &head->chunks, err);
	}
	if (!rc) {
		rc = get_int(root, "ports", 0, &head->ports, err);
	}
	if (!rc) {
		rc = get_int(root, "root", 0, &head->root, err);
	}
	if (!rc) {
		rc = read_embedding(root, head, err);
	}
	if (rc == 0 && json_object_get(root, "alike")) {
		head->alike = json_is_true(json_object_get(root, "alike"));
		rc = head->alike || json_is_false(json_object_get(root, "alike"))
			     ? 0 : err_set(err, WEFT_EINVAL, "alike: expected true or false");
	}
	if (rc == 0 && json_object_get(root, "part")) {
		rc = get_int(root, "part", -1, &head->part, err);
		head->part += head->part < INT64_MAX;
	}
	return rc;
}

/* The columns of a table in the order of the file. */
struct coll_json_layout {
	int n;
	int column[FORMAT_COLUMNS];
};

static int find_column(const struct format_table *t, const char *name)
{
	for (int c = 0; name && c < t->n_columns; c++) {
		if (strcmp(name, t->columns[c].name) == 0) {
			return c;
		}
	}
	return -1;
}

static int check_required(const struct format_table *t, const bool *present, struct err *err)
{
	for (int c = 0; c < t->n_columns; c++) {
		if (t->columns[c].required && !present[c]) {
			return err_set(err, WEFT_EINVAL,
				       "%s_columns: \"%s\" is missing",
				       t->name, t->columns[c].name);
		}
	}
	return 0;
}

/* Without names the columns are those that a table must have. */
static int read_layout(const json_t *names, const struct format_table *t,
		       struct coll_json_layout *out, struct err *err)
{
	bool present[FORMAT_COLUMNS] = { false };
	size_t n = json_array_size(names);

	out->n = 0;
	for (int c = 0; c < t->n_columns && !names; c++) {
		if (t->columns[c].required) {
			out->column[out->n++] = c;
			present[c] = true;
		}
	}
	for (size_t i = 0; i < n; i++) {
		const json_t *name = json_array_get(names, i);
		int c = find_column(t, json_string_value(name));

		if (c < 0 || present[c]) {
			return err_set(err, WEFT_EINVAL,
				       "%s_columns[%zu]: %s", t->name, i,
				       c < 0 ? "no such column"
					     : "given twice");
		}
		present[c] = true;
		out->column[out->n++] = c;
	}
	return check_required(t, present, err);
}

static int read_row(struct format_load *l, enum format_which which,
		    const struct coll_json_layout *layout, const json_t *row, size_t i,
		    struct err *err)
{
	const struct format_table *t = &format_tables[which];
	int64_t v[FORMAT_COLUMNS];

	if (json_array_size(row) != (size_t)layout->n) {
		return err_set(err, WEFT_EINVAL,
			       "%s[%zu]: expected an array of %d numbers",
			       t->name, i, layout->n);
	}
	for (int c = 0; c < t->n_columns; c++) {
		v[c] = t->columns[c].absent;
	}
	for (int k = 0; k < layout->n; k++) {
		const json_t *cell = json_array_get(row, (size_t)k);

		if (!json_is_integer(cell)) {
			return err_set(err, WEFT_EINVAL,
				       "%s[%zu]: %s: expected a whole number",
				       t->name, i,
				       t->columns[layout->column[k]].name);
		}
		v[layout->column[k]] = json_integer_value(cell);
	}
	return format_add(l, which, (int64_t)i, v, err);
}

static int read_table(struct format_load *l, enum format_which which,
		      const json_t *root, struct err *err)
{
	const struct format_table *t = &format_tables[which];
	const json_t *rows = json_object_get(root, t->name);
	const json_t *names;
	struct coll_json_layout layout;
	char key[32];
	int rc;

	strcpy(stpcpy(key, t->name), "_columns");
	names = json_object_get(root, key);
	if ((names && !json_is_array(names)) ||
	    (rows && !json_is_array(rows)) ||
	    (!rows && t->always)) {
		return err_set(err, WEFT_EINVAL,
			       "%s: expected an array of rows and an array "
			       "of column names", t->name);
	}
	if ((rc = format_begin(l, which, (int64_t)json_array_size(rows), err)) ||
	    (rc = read_layout(names, t, &layout, err))) {
		return rc;
	}
	for (size_t i = 0; i < json_array_size(rows) && !rc; i++) {
		rc = read_row(l, which, &layout, json_array_get(rows, i), i, err);
	}
	return rc;
}

/* ---- placement ---- */

/* An array of the placement, NULL when there is none. */
static int get_column(const json_t *place, const char *name, const json_t **out, struct err *err)
{
	*out = json_object_get(place, name);
	return !*out || json_is_array(*out)
		       ? 0 : err_set(err, WEFT_EINVAL, "placement: %s: expected an array", name);
}

/* The names stay those of the tree; the array is of `arrays`. */
static int get_names(const json_t *place, const char *name, struct arrays *arrays,
		     struct format_names *out, struct err *err)
{
	const json_t *column;
	int rc = get_column(place, name, &column, err);

	if (rc || !column) {
		return rc;
	}
	out->n = json_array_size(column);
	arrays_add(arrays, out->v, out->n);
	for (size_t i = 0; i < out->n; i++) {
		out->v[i] = (char *)json_string_value(json_array_get(column, i));
		if (!out->v[i]) {
			return err_set(err, WEFT_EINVAL, "placement: %s[%zu]: expected a string",
				       name, i);
		}
	}
	return 0;
}

static int get_ring_nodes(const json_t *place, struct arrays *arrays, struct format_placement *out,
			  struct err *err)
{
	const json_t *column;
	int rc = get_column(place, "ring_nodes", &column, err);

	if (rc || !column) {
		return rc;
	}
	out->n_ring_nodes = json_array_size(column);
	arrays_add(arrays, out->ring_nodes, out->n_ring_nodes);
	for (size_t i = 0; i < out->n_ring_nodes; i++) {
		const json_t *v = json_array_get(column, i);
		json_int_t node = json_integer_value(v);

		if (!json_is_integer(v) || node < 0 || node > INT32_MAX) {
			return err_set(err, WEFT_EINVAL, "placement: ring_nodes[%zu]: expected a "
				       "node's number", i);
		}
		out->ring_nodes[i] = (int32_t)node;
	}
	return 0;
}

static int read_placement(struct format_load *l, json_t *place, struct err *err)
{
	static const char *const known[] = { "hosts", "netns", "ring_nodes", "tx_ports", "rx_ports",
					     NULL };
	struct format_placement f = { .n_ring_nodes = 0 };
	struct arrays arrays = { 0 };
	int rc;

	if (topo_json_keys(place, known, err)) {
		return err_wrap(err, "placement");
	}
	if ((rc = get_names(place, "hosts", &arrays, &f.hosts, err)) ||
	    (rc = get_names(place, "netns", &arrays, &f.netns, err)) ||
	    (rc = get_ring_nodes(place, &arrays, &f, err)) ||
	    (rc = get_names(place, "tx_ports", &arrays, &f.tx_ports, err)) ||
	    (rc = get_names(place, "rx_ports", &arrays, &f.rx_ports, err))) {
		goto out;
	}
	rc = format_place(l, &f, err);
out:
	arrays_fini(&arrays);
	return rc;
}

static int read_root(json_t *root, struct coll_sched **out, struct err *err)
{
	struct format_load l = { .sched = NULL };
	struct format_head head = { .version = 0 };
	int rc;

	if ((rc = check_keys(root, err)) || (rc = read_head(root, &head, err)) ||
	    (rc = format_start(&l, &head, err))) {
		goto out;
	}
	for (int which = 0; which < FORMAT_TABLES && !rc; which++) {
		rc = read_table(&l, which, root, err);
	}
	if (!rc && json_object_get(root, "placement")) {
		rc = read_placement(&l, json_object_get(root, "placement"), err);
	}
	if (!rc) {
		rc = format_finish(&l, out, err);
	}
out:
	format_abort(&l);
	return rc;
}

int coll_from_json(const char *text, size_t len, struct coll_sched **out, struct err *err)
{
	json_t *root = coll_json_root(text, len, err);
	int rc;

	*out = NULL;
	if (!root) {
		return WEFT_EINVAL;
	}
	rc = read_root(root, out, err);
	json_decref(root);
	return rc ? err_wrap(err, "schedule") : 0;
}

int coll_from_bytes(const void *data, size_t len, struct coll_sched **out, struct err *err)
{
	const char *text = data;

	/* A message begins with the tag of its version, byte 8. */
	if (len > 0 && strchr("{ \t\r\n", text[0]) && text[0]) {
		return coll_from_json(text, len, out, err);
	}
	return coll_from_proto(data, len, out, err);
}
