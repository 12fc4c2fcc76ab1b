/* SPDX-License-Identifier: Apache-2.0 */
/* Circuits that are intended and that a change was committed without. */
#include <stdlib.h>

#include "controller/store/private.h"
#include "lib/base/clock.h"

static void free_repair(void *row)
{
	struct store_repair *r = row;

	free(r->device);
	free(r->why);
}

void store_repairs_free(struct store_repair *v, int n)
{
	for (int i = 0; i < n; i++) {
		free_repair(&v[i]);
	}
	free(v);
}

int store_repairs_put(struct store *s, const struct store_repair *v, int n, struct err *err)
{
	int rc = db_begin(s, err);

	if (rc) {
		return rc;
	}
	for (int i = 0; i < n && rc == 0; i++) {
		rc = db_run(s, err, "INSERT OR REPLACE INTO repair VALUES "
			    "(?, ?, ?, ?, ?, ?, ?)", "siiiisi", v[i].device,
			    (int64_t)v[i].xc.in, (int64_t)v[i].xc.out,
			    v[i].change, clk_wall_ns(), v[i].why,
			    (int64_t)v[i].layer);
	}
	return db_end(s, rc, err);
}

int store_repairs_prune(struct store *s, int64_t change, struct err *err)
{
	return db_run(s, err, "DELETE FROM repair WHERE change <> ? AND "
		      "NOT EXISTS (SELECT 1 FROM journal_device AS d, "
		      "json_each(d.steps) AS t WHERE d.change = ? AND "
		      "d.device = repair.device AND (json_extract(t.value, '$[0]') = 'leave' OR "
		      "(json_extract(t.value, '$[0]') = 'keep' AND repair.layer > 0)) AND "
		      "json_extract(t.value, '$[1]') = repair.in_port AND "
		      "json_extract(t.value, '$[2]') = repair.out_port)", "ii", change, change);
}

static int read_repair(struct store *s, sqlite3_stmt *st, void *row, struct err *err)
{
	struct store_repair *r = row;

	(void)s, (void)err;
	r->device = db_text(st, 0);
	r->xc.in = sqlite3_column_int(st, 1);
	r->xc.out = sqlite3_column_int(st, 2);
	r->change = sqlite3_column_int64(st, 3);
	r->since_ns = sqlite3_column_int64(st, 4);
	r->why = db_text(st, 5);
	r->layer = sqlite3_column_int(st, 6);
	return 0;
}

int store_repairs(struct store *s, struct store_repair **out, int *n, struct err *err)
{
	static const struct db_row kind = { sizeof(struct store_repair), read_repair, free_repair };
	struct db_rows rows;
	int rc = db_read_rows(s, err, &kind, &rows, "SELECT device, in_port, out_port, "
			      "change, since_ns, why, layer FROM repair "
			      "ORDER BY device, in_port, out_port", "");

	*out = rows.v;
	*n = rows.n;
	return rc;
}
