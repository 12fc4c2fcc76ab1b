/*
 * Reading what users name on the command line: fabrics, schedules,
 * topologies.
 *
 * Each of these can be named in more than one form. A schedule is a file or
 * the one that weftd keeps for an applied job; a topology is an expression
 * such as Torus(4,4), a JSON file of "weft topology build", an edge list, or
 * standard input ("-"). Which form it is follows from the argument alone,
 * never from an option, so all verbs that take one accept all forms. Errors
 * name the file and, where the format has lines, line and column.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/cli/core/private.h"
#include "lib/base/file.h"

/* Bytes of a topology file that are read at most. */
#define MAX_TOPOLOGY ((size_t)1 << 30)

/* A fabric file is checked as a whole. All but the last of its errors are
 * printed here; the last one is left in err, for the edge to print. Frees the
 * list and returns rc. */
static int report_all(struct err_list *errs, int rc, struct err *err)
{
	err_list_sort(errs);
	cli_report_list(errs, err);
	if (errs->n == 0) {
		err_set(err, rc, "the fabric could not be read");
	}
	err_list_fini(errs);
	return rc;
}

int cli_load_fabric(const char *path, struct model_fabric **out, struct err *err)
{
	struct err_list errs = { 0 };
	int r = model_load(path, out, &errs);

	return r ? report_all(&errs, r, err) : 0;
}

int cli_parse_config(const struct model_config *config, struct model_fabric **out, struct err *err)
{
	struct err_list errs = { 0 };
	int r = model_parse_config(config, out, &errs);

	return r ? report_all(&errs, r, err) : 0;
}

/* ---- schedules ---- */

/* JSON or protobuf: coll_from_bytes() tells them apart. */
static int load_schedule_file(const char *path, struct coll_sched **out, struct err *err)
{
	char *data = NULL;
	size_t len;
	int r = file_read(path, CLI_MAX_SCHEDULE, &data, &len, err);

	if (r == 0 && len == 0) {
		r = err_set(err, WEFT_EINVAL, "%s: the file is empty", path);
	} else if (r == 0) {
		r = coll_from_bytes(data, len, out, err);
		if (r && err->line > 0) {
			err_at(err, path, err->line, err->col);
		} else if (r) {
			err_wrap(err, "%s", path);
		}
	}
	free(data);
	return r;
}

int cli_load_job_schedule(struct cli *c, const char *job, struct coll_sched **out, struct err *err)
{
	struct buf bytes = { 0 };
	int r = cli_fetch_schedule(c, job, &bytes, err);

	if (r == 0) {
		r = coll_from_bytes(bytes.data, bytes.len, out, err);
	}
	buf_fini(&bytes);
	return r;
}

/* Exactly one of FILE and --job. */
int cli_load_schedule(struct cli *c, struct coll_sched **out, struct err *err)
{
	const char *job = cli_opt(c, "job");

	if ((job != NULL) == (c->argc == 1)) {
		err_set(err, WEFT_EUSAGE,
			"weft %s: give a schedule file or --job NAME, and "
			"not both", c->verb);
		err_hint(err, "--job takes the schedule of a job that weftd "
			      "has applied");
		return err->code;
	}
	return job ? cli_load_job_schedule(c, job, out, err)
		   : load_schedule_file(c->argv[0], out, err);
}

/* ---- topologies ---- */

/* {"topology": NAME, "nodes": N, "arcs": [[source, destination, capacity,
 * latency in ns], ...]}: what topology_from_json() reads. */
int cli_topology_json(const struct topo *t, const char *name, struct buf *b, struct err *err)
{
	buf_str(b, "{\"topology\": ");
	out_json_quote(b, name);
	buf_printf(b, ", \"nodes\": %d, \"arcs\": [", topo_n(t));
	for (int i = 0; i < topo_m(t); i++) {
		const struct topo_arc *a = topo_arc(t, i);

		buf_printf(b, "%s\n  [%d, %d, %lld, %lld]", i ? "," : "",
			   a->src, a->dst, (long long)a->cap,
			   (long long)a->latency_ns);
	}
	buf_str(b, "\n]}\n");
	return b->failed ? err_nomem(err) : 0;
}

/* One arc: [source, destination, capacity, latency in ns], the last two
 * optional. */
static int add_arc(struct topo *t, json_t *row, size_t i, struct err *err)
{
	static const char *const fields[] = { "source", "destination",
					      "capacity", "latency" };
	json_int_t v[4] = { 0, 0, 1, 0 };
	size_t n = json_array_size(row);

	if (!json_is_array(row) || n < 2 || n > 4) {
		return err_set(err, WEFT_EINVAL,
			       "arc %zu: [source, destination, capacity, "
			       "latency_ns] expected", i);
	}
	for (size_t k = 0; k < n; k++) {
		json_t *x = json_array_get(row, k);

		v[k] = json_integer_value(x);
		if (!json_is_integer(x)) {
			return err_set(err, WEFT_EINVAL, "arc %zu: the %s is "
				       "no whole number", i, fields[k]);
		}
		if (k < 2 && (v[k] < 0 || v[k] >= topo_n(t))) {
			return err_set(err, WEFT_EINVAL, "arc %zu: the %s %lld "
				       "is none of the nodes 0 to %d", i,
				       fields[k], (long long)v[k],
				       topo_n(t) - 1);
		}
		if (v[k] < 0) {
			return err_set(err, WEFT_EINVAL, "arc %zu: the %s %lld "
				       "is negative", i, fields[k],
				       (long long)v[k]);
		}
	}
	return topo_add_arc(t, (int)v[0], (int)v[1], v[2], v[3], err);
}

/* *name is the expression that the file says it was built from, "" without
 * one. Arcs keep their order, which schedules refer to. O(arcs). */
static int topology_from_json(json_t *root, struct topo **out, char **name, struct err *err)
{
	json_t *nodes = json_object_get(root, "nodes");
	json_t *arcs = json_object_get(root, "arcs");
	const char *said = json_string_value(json_object_get(root, "topology"));
	struct topo *t = NULL;
	int r;

	if (!json_is_integer(nodes) || !json_is_array(arcs)) {
		return err_set(err, WEFT_EINVAL,
			       "not a topology: \"nodes\", a whole number, and "
			       "\"arcs\", a list, expected");
	}
	if (json_integer_value(nodes) < 1 || json_integer_value(nodes) > TOPO_MAX_NODES) {
		return err_set(err, WEFT_EINVAL, "nodes: %lld is not in 1 to "
			       "%d", (long long)json_integer_value(nodes),
			       TOPO_MAX_NODES);
	}
	r = topo_new((int)json_integer_value(nodes), &t, err);
	for (size_t i = 0; r == 0 && i < json_array_size(arcs); i++) {
		r = add_arc(t, json_array_get(arcs, i), i, err);
	}
	if (r == 0) {
		r = topo_freeze(t, err);
	}
	if (r == 0) {
		*name = strdup(said ? said : "");
		r = *name ? 0 : err_nomem(err);
	}
	if (r) {
		topo_free(t);
		return r;
	}
	*out = t;
	return 0;
}

/* A file that is no JSON object is an edge list. */
static int load_edges(const char *path, const char *data, size_t len,
		      struct topo **out, char **name, struct err *err)
{
	int r = topo_from_edges(data, len, out, err);

	if (r) {
		err_at(err, path, err->line, err->col);
		return r;
	}
	*name = strdup(path);
	if (!*name) {
		topo_free(*out);
		return err_nomem(err);
	}
	return 0;
}

/* JSON when the first character that is not blank is '{'. */
static int load_topology_file(const char *path, struct topo **out, char **name, struct err *err)
{
	json_error_t je;
	json_t *root = NULL;
	char *data = NULL;
	size_t len;
	int r = file_read(path, MAX_TOPOLOGY, &data, &len, err);

	if (r) {
		return r;
	}
	/* file_read() ends its data with NUL. */
	if (data[strspn(data, " \t\r\n")] != '{') {
		r = load_edges(path, data, len, out, name, err);
		free(data);
		return r;
	}
	root = json_loadb(data, len, JSON_REJECT_DUPLICATES, &je);
	if (!root) {
		r = err_set(err, WEFT_EINVAL, "not a topology: %s", je.text);
		err_at(err, path, je.line, je.column);
	} else {
		r = topology_from_json(root, out, name, err);
		if (r) {
			err_wrap(err, "%s", path);
		}
	}
	json_decref(root);
	free(data);
	return r;
}

int cli_load_topology(const char *text, struct topo **out, char **name, struct err *err)
{
	int r;

	if (strcmp(text, "-") == 0 || access(text, F_OK) == 0) {
		return load_topology_file(text, out, name, err);
	}
	/* No expression has these in it. */
	if (strpbrk(text, "/.") && !strchr(text, '(')) {
		return err_set(err, WEFT_ENOTFOUND, "%s: No such file", text);
	}
	r = topo_parse(text, out, name, err);
	/* The parser hints at the nearest family where it knows one. */
	if (r && err && !err->hint[0]) {
		err_hint(err, "\"weft topology info\" lists the families; a "
			      "file of \"weft topology build -o\" is taken "
			      "too");
	}
	return r;
}
