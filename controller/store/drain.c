/* What no new light may go to: drained parts of the fabric, or all of it. */
#include <stdlib.h>

#include "controller/store/private.h"
#include "lib/base/clock.h"

void store_drains_free(struct store_drain *v, int n)
{
	for (int i = 0; i < n; i++) {
		free(v[i].what);
		free(v[i].who);
		free(v[i].reason);
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

static int read_hold(sqlite3_stmt *st, struct store_drain *h, struct err *err)
{
	h->what = db_text(st, 0);
	h->who = db_text(st, 1);
	h->reason = db_text(st, 2);
	h->since_ns = sqlite3_column_int64(st, 3);
	return h->what && h->who && h->reason ? 0 : err_nomem(err);
}

static int count_holds(struct store *s, int *n, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT count(*) FROM drain", "");

	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	*n = rc == 1 ? sqlite3_column_int(st, 0) : 0;
	db_release(s, st);
	return rc < 0 ? rc : 0;
}

int store_drains(struct store *s, struct store_drain **out, int *n, struct err *err)
{
	sqlite3_stmt *st;
	struct store_drain *v;
	int room, k = 0, rc = count_holds(s, &room, err);

	if (rc) {
		return rc;
	}
	v = calloc((size_t)room + 1, sizeof(*v));
	if (!v) {
		return err_nomem(err);
	}
	rc = db_prepare(s, err, &st,
			"SELECT what, who, reason, since_ns "
			"FROM drain ORDER BY what",
			"");
	if (rc) {
		free(v);
		return rc;
	}
	while (k < room && (rc = db_step(s, err, st)) == 1) {
		rc = read_hold(st, &v[k++], err);
		if (rc) {
			break;
		}
	}
	db_release(s, st);
	if (rc < 0) {
		store_drains_free(v, k);
		return rc;
	}
	*out = v;
	*n = k;
	return 0;
}
