/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning and the end of the process. Rank 0 of MPI_COMM_WORLD reads the environment and
 * the table, checks the schedules, and sends all ranks what it found: whatever files and
 * environment the others see, all ranks go by one table.
 */
#include "runtime/preload/private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/file.h"

struct preload_library preload = { .lock = PTHREAD_MUTEX_INITIALIZER,
				   .keyval = MPI_KEYVAL_INVALID };

void preload_say(const char *fmt, ...)
{
	char text[ERR_MSG_MAX + ERR_FILE_MAX + 128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* One write, so that lines of several ranks stay whole. */
	fprintf(stderr, "weft: %s\n", text);
}

/* ---- rank 0 ---- */

static int read_table(const char *path, struct preload_table *out, struct err_list *errs)
{
	char *text = NULL;
	struct err err;
	size_t len;
	int rc = file_read(path, PRELOAD_MAX_TEXT, &text, &len, &err);

	if (rc) {
		memset(out, 0, sizeof(*out));
		err_list_add(errs, &err);
		return rc;
	}
	rc = preload_table_parse(path, text, len, out, errs);
	free(text);
	return rc;
}

/* NULL where it is not set, or empty. */
static const char *setting(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* The table that the environment names; empty without one. */
static int find_table(const char **name, struct preload_table *out, struct err_list *errs)
{
	const char *path = setting("WEFT_MPI_TABLE");
	const char *list = setting("WEFT_MPI_SCHEDULES");
	struct err err;

	memset(out, 0, sizeof(*out));
	*name = path ? path : "WEFT_MPI_SCHEDULES";
	if (path && list) {
		err_set(&err, WEFT_EINVAL,
			"WEFT_MPI_TABLE and WEFT_MPI_SCHEDULES are both set: one of them");
		err_list_add(errs, &err);
		return err.code;
	}
	if (path) {
		return read_table(path, out, errs);
	}
	return list ? preload_table_from_list(*name, list, out, errs) : 0;
}

/* All mistakes are found; entries stay only if there are none. */
static void check_table(const char *name, struct preload_table *t, struct err_list *errs)
{
	struct err err;
	int size;

	PMPI_Comm_size(MPI_COMM_WORLD, &size);
	for (size_t i = 0; i < t->entries.n; i++) {
		if (preload_entry_check(&t->entries.v[i], name, size, &err)) {
			err_list_add(errs, &err);
		}
	}
}

static void report_errors(const struct err_list *errs)
{
	char text[ERR_MSG_MAX + ERR_FILE_MAX + 32], more[64] = "";

	if (errs->n + errs->dropped > 1) {
		snprintf(more, sizeof(more), " (and %d more)", errs->n + errs->dropped - 1);
	}
	preload_say("%s%s; all calls are left to MPI",
		    errs->n ? err_str(&errs->v[0], text, sizeof(text)) : "out of memory", more);
}

static void read_environment(void *arg)
{
	struct preload_table *t = arg;
	const char *strict = setting("WEFT_MPI_STRICT"), *report = setting("WEFT_MPI_REPORT");
	struct err_list errs = { 0 };
	const char *name;

	preload.strict = strict && strcmp(strict, "1") == 0;
	snprintf(preload.report, sizeof(preload.report), "%s", report ? report : "");
	if (!find_table(&name, t, &errs)) {
		check_table(name, t, &errs);
	}
	if (errs.n + errs.dropped > 0) {
		report_errors(&errs);
		if (preload.strict) {
			PMPI_Abort(MPI_COMM_WORLD, errs.n ? err_exit_code(errs.v[0].code) : 1);
		}
		preload_table_fini(t);
	}
	err_list_fini(&errs);
}

/* ---- all ranks ---- */

/* What rank 0 tells first. */
struct begin_message {
	int32_t n, strict, report, unused;
};

/* Takes the entries of t over, and gives them to all ranks; to none when one cannot take them. */
static void share(struct preload_table *t, int rank)
{
	struct begin_message m = { (int32_t)t->entries.n, preload.strict, preload.report[0] != 0,
				   0 };
	struct preload_entry *entries = t->entries.v;
	int without = 0;

	PMPI_Bcast(&m, sizeof(m), MPI_BYTE, 0, MPI_COMM_WORLD);
	preload.strict = m.strict;
	if (rank != 0) {
		snprintf(preload.report, sizeof(preload.report), "%s", m.report ? "1" : "");
		entries = m.n ? calloc((size_t)m.n, sizeof(*entries)) : NULL;
	}
	without = m.n && (!entries || PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN,
							      preload_comm_delete,
							      &preload.keyval, NULL));
	PMPI_Allreduce(MPI_IN_PLACE, &without, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	if (!m.n || without) {
		free(entries);
		return;
	}
	PMPI_Bcast(entries, m.n * (int)sizeof(*entries), MPI_BYTE, 0, MPI_COMM_WORLD);
	preload.entries = entries;
	preload.n = m.n;
}

void preload_begin(void)
{
	struct preload_table t = { 0 };
	int rank;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0 && !alloc_try(read_environment, &t)) {
		preload_say("out of memory: all calls are left to MPI");
		t = (struct preload_table){ 0 };
	}
	share(&t, rank);
}

void preload_end(void)
{
	struct preload_comm *c;
	int found = 0;

	if (preload.report[0]) {
		preload_report();
	}
	if (preload.keyval != MPI_KEYVAL_INVALID) {
		PMPI_Comm_get_attr(MPI_COMM_WORLD, preload.keyval, &c, &found);
		if (found) {
			PMPI_Comm_delete_attr(MPI_COMM_WORLD, preload.keyval);
		}
		PMPI_Comm_free_keyval(&preload.keyval);
	}
	preload.ended = true;
	preload.n = 0;
	free(preload.entries);
	preload.entries = NULL;
	preload_programs_free();
}
