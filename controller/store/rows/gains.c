/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs were to gain by a change: for its history, written once. */
#include <stdlib.h>

#include "controller/store/private.h"

static const char *const effect_names[] = {
	[STORE_CHANGES] = "changes", [STORE_BEGINS] = "begins", [STORE_ENDS] = "ends",
};

void store_gains_free(struct store_gain *v, int n)
{
	for (int i = 0; i < n; i++) {
		free(v[i].job);
	}
	free(v);
}

int store_gains_put(struct store *s, const struct store_journal *j, int64_t change,
		    struct err *err)
{
	int rc = 0;

	for (int i = 0; i < j->n_gains && rc == 0; i++) {
		const struct store_gain *g = &j->gains[i];

		rc = db_run(s, err, "INSERT INTO change_gain VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			    "iissiiiiii", change, (int64_t)i, g->job, effect_names[g->effect],
			    g->size_bytes, g->before_ns, g->before_whole_ns, g->after_ns,
			    g->after_whole_ns, g->down_ns);
	}
	return rc;
}

static void free_gain(void *row)
{
	free(((struct store_gain *)row)->job);
}

static int read_gain(struct store *s, sqlite3_stmt *st, void *row, struct err *err)
{
	struct store_gain *out = row;
	int effect = store_name_index(effect_names, 3, sqlite3_column_text(st, 2));

	if (effect < 0) {
		return db_damaged(s, err, "what a change does to a job");
	}
	*out = (struct store_gain){
		.change = sqlite3_column_int64(st, 0),
		.job = db_text(st, 1),
		.effect = (enum store_effect)effect,
		.size_bytes = sqlite3_column_int64(st, 3),
		.before_ns = sqlite3_column_int64(st, 4),
		.before_whole_ns = sqlite3_column_int64(st, 5),
		.after_ns = sqlite3_column_int64(st, 6),
		.after_whole_ns = sqlite3_column_int64(st, 7),
		.down_ns = sqlite3_column_int64(st, 8),
	};
	return 0;
}

int store_gains(struct store *s, int64_t from, int64_t to, struct store_gain **v, int *n,
		struct err *err)
{
	static const struct db_row kind = { sizeof(struct store_gain), read_gain, free_gain };
	struct db_rows rows;
	int rc = db_read_rows(s, err, &kind, &rows,
			      "SELECT change, job, effect, size_bytes, before_ns, before_whole_ns, "
			      "after_ns, after_whole_ns, down_ns FROM change_gain "
			      "WHERE change BETWEEN ? AND ? ORDER BY change DESC, seq", "ii", from,
			      to);

	*v = rows.v;
	*n = rows.n;
	return rc;
}
