/* SPDX-License-Identifier: Apache-2.0 */
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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/cli/core/private.h"
#include "lib/base/alloc.h"
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

int cli_load_schedule_file(const char *path, struct coll_sched **out, struct err *err)
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
		   : cli_load_schedule_file(c->argv[0], out, err);
}

/* ---- topologies ---- */

/* A file that is no JSON object is an edge list. */
static int load_edges(const char *path, const char *data, size_t len,
		      struct topo **out, char **name, struct err *err)
{
	int r = topo_from_edges(data, len, out, err);

	if (r && err->line > 0) {
		err_at(err, path, err->line, err->col);
		return r;
	}
	if (r) {
		err_wrap(err, "%s", path);
		return r;
	}
	*name = x_dup(path);
	return 0;
}

/* Both readers give the place in the text only; what has none names the key. */
static int load_json(const char *path, const char *data, size_t len, struct topo **out,
		     char **name, struct err *err)
{
	int r = topo_from_json(data, len, out, name, err);

	if (r && err->line > 0) {
		err_at(err, path, err->line, err->col);
	} else if (r) {
		err_wrap(err, "%s", path);
	}
	return r;
}

/* JSON when the first character that is not blank is '{'. */
static int load_topology_file(const char *path, struct topo **out, char **name, struct err *err)
{
	char *data = NULL;
	size_t len;
	int r = file_read(path, MAX_TOPOLOGY, &data, &len, err);

	if (r) {
		return r;
	}
	/* file_read() ends its data with NUL. */
	if (data[strspn(data, " \t\r\n")] == '{') {
		r = load_json(path, data, len, out, name, err);
	} else {
		r = load_edges(path, data, len, out, name, err);
	}
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
