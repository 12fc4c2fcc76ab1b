/* SPDX-License-Identifier: Apache-2.0 */
/* What no new light may go to: drained parts of the fabric, or all of it. */
#include <stdlib.h>

#include "controller/store/private.h"
#include "lib/base/clock.h"

static void free_drain(void *row)
{
	struct store_drain *d = row;

	free(d->what);
	free(d->who);
	free(d->reason);
}

void store_drains_free(struct store_drain *v, int n)
{
	for (int i = 0; i < n; i++) {
		free_drain(&v[i]);
	}
	free(v);
}

int store_drain(struct store *s, const char *what, const char *who, const char *reason,
		struct err *err)
{
	int rc = db_begin(s, err);

	if (rc) {
		return rc;
	}
	rc = db_run(s, err,
		    "INSERT INTO drain (what, who, reason, since_ns) VALUES (?, ?, ?, ?) ON "
		    "CONFLICT (what) DO NOTHING",
		    "sssi", what, who, reason, clk_wall_ns());
	return db_end(s, rc, err);
}

int store_undrain(struct store *s, const char *what, struct err *err)
{
	int rc = db_begin(s, err);

	if (rc) {
		return rc;
	}
	rc = db_run(s, err, "DELETE FROM drain WHERE what = ?", "s", what);
	if (rc == 0 && sqlite3_changes(s->db) == 0) {
		rc = err_set(err, WEFT_ENOTFOUND,
			     *what ? "%s is not drained" : "%snot frozen",
			     what);
	}
	return db_end(s, rc, err);
}

static int read_drain(struct store *s, sqlite3_stmt *st, void *row, struct err *err)
{
	struct store_drain *d = row;

	(void)s, (void)err;
	d->what = db_text(st, 0);
	d->who = db_text(st, 1);
	d->reason = db_text(st, 2);
	d->since_ns = sqlite3_column_int64(st, 3);
	return 0;
}

int store_drains(struct store *s, struct store_drain **out, int *n, struct err *err)
{
	static const struct db_row kind = { sizeof(struct store_drain), read_drain, free_drain };
	struct db_rows rows;
	int rc = db_read_rows(s, err, &kind, &rows,
			      "SELECT what, who, reason, since_ns FROM drain ORDER BY what", "");

	*out = rows.v;
	*n = rows.n;
	return rc;
}
