/* SPDX-License-Identifier: Apache-2.0 */
/* How long things took recently to come back. */
#include <stdlib.h>
#include <string.h>

#include "controller/store/private.h"
#include "lib/base/vec.h"

static const char *const kind_names[] = {
	[STORE_REACTIVATION] = "reactivation",
	[STORE_SWITCHING] = "switching",
};

typedef VEC(struct store_timing) timing_list;

void store_timings_free(struct store_timing *v, int n)
{
	for (int i = 0; i < n; i++) {
		free(v[i].name);
	}
	free(v);
}

/* Rows come by name, then from the oldest on. */
static void take_row(sqlite3_stmt *st, timing_list *list)
{
	char *name = db_text(st, 0);
	struct store_timing *t = list->n ? &list->v[list->n - 1] : NULL;

	if (!t || strcmp(t->name, name) != 0) {
		vec_push(list, (struct store_timing){ .name = name });
		t = &list->v[list->n - 1];
	} else {
		free(name);
	}
	if (t->n < STORE_TIMINGS_MAX) {
		t->ns[t->n++] = sqlite3_column_int64(st, 1);
	}
}

int store_timings(struct store *s, enum store_timing_kind kind,
		  struct store_timing **v, int *n, struct err *err)
{
	timing_list list = { 0 };
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT name, ns FROM timing WHERE "
			    "kind = ? ORDER BY name, seq", "s",
			    kind_names[kind]);

	if (rc) {
		return rc;
	}
	while ((rc = db_step(s, err, st)) == 1) {
		take_row(st, &list);
	}
	db_release(s, st);
	if (rc) {
		store_timings_free(list.v, (int)list.n);
		return rc;
	}
	*v = list.v;
	*n = (int)list.n;
	return 0;
}

static int put_one(struct store *s, const char *kind, const struct store_timing *t, struct err *err)
{
	int rc = db_run(s, err, "DELETE FROM timing WHERE kind = ? AND "
			"name = ?", "ss", kind, t->name);

	for (int i = 0; i < t->n && rc == 0; i++) {
		rc = db_run(s, err, "INSERT INTO timing VALUES (?, ?, ?, ?)",
			    "ssii", kind, t->name, (int64_t)i, t->ns[i]);
	}
	return rc;
}

int store_timings_put(struct store *s, enum store_timing_kind kind,
		      const struct store_timing *v, int n, struct err *err)
{
	int rc = s->newer ? 0 : db_begin_deferred(s, err);

	if (rc || s->newer) {
		return rc;
	}
	for (int i = 0; i < n && rc == 0; i++) {
		rc = put_one(s, kind_names[kind], &v[i], err);
	}
	return db_end(s, rc, err);
}
