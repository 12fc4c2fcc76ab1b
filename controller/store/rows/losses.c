/* SPDX-License-Identifier: Apache-2.0 */
/* What circuits were seen to lose while they were well. */
#include <stdlib.h>

#include "controller/store/private.h"

static int read_loss(struct store *s, sqlite3_stmt *st, void *row, struct err *err)
{
	struct store_insertion_loss *l = row;

	(void)s, (void)err;
	l->xc.in = sqlite3_column_int(st, 0);
	l->xc.out = sqlite3_column_int(st, 1);
	l->mdb = sqlite3_column_int(st, 2);
	return 0;
}

int store_insertion_losses(struct store *s, const char *device, struct store_insertion_loss **v,
			   int *n, struct err *err)
{
	static const struct db_row kind = { sizeof(struct store_insertion_loss), read_loss, NULL };
	struct db_rows rows;
	int rc = db_read_rows(s, err, &kind, &rows, "SELECT in_port, out_port, mdb FROM "
			      "circuit_loss WHERE device = ? ORDER BY in_port, out_port", "s",
			      device);

	*v = rows.v;
	*n = rows.n;
	return rc;
}

static int put_all(struct store *s, const char *device, const struct store_insertion_loss *v, int n,
		   struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "INSERT INTO circuit_loss "
			    "VALUES (?, ?, ?, ?)", "");

	for (int i = 0; i < n && rc == 0; i++) {
		rc = db_bind(s, err, st, "siii", device, (int64_t)v[i].xc.in,
			     (int64_t)v[i].xc.out, (int64_t)v[i].mdb);
		if (rc == 0) {
			rc = db_finish(s, err, st);
		}
	}
	db_release(s, st);
	return rc;
}

int store_insertion_losses_put(struct store *s, const char *device,
			       const struct store_insertion_loss *v, int n, struct err *err)
{
	int rc = s->newer ? 0 : db_begin_deferred(s, err);

	if (rc || s->newer) {
		return rc;
	}
	rc = db_run(s, err, "DELETE FROM circuit_loss WHERE device = ?", "s", device);
	if (rc == 0) {
		rc = put_all(s, device, v, n, err);
	}
	return db_end(s, rc, err);
}
