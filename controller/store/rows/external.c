/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of light that weft did not make, as they were noticed. */
#include <stdio.h>
#include <stdlib.h>

#include "controller/store/private.h"

#define COLUMNS \
	"id, device, kind, in_port, out_port, noticed_ns, right_ns, how, who, " \
	"resolved_ns, outcome, change, given_up"

static const char *const kind_names[] = {
	[STORE_EXTERNAL_GONE] = "gone", [STORE_EXTERNAL_APPEARED] = "appeared",
	[STORE_EXTERNAL_DARK] = "dark", [STORE_EXTERNAL_DISABLED] = "disabled",
	[STORE_EXTERNAL_PROGRAM] = "program",
};

static const char *const how_names[] = {
	[STORE_BY_POLL] = "poll", [STORE_BY_EVENT] = "event",
	[STORE_BY_VERIFY] = "verify", [STORE_BY_PLAN] = "before a change",
	[STORE_BY_CHANGE] = "during a change", [STORE_BY_START] = "at start",
};

static const char *const outcome_names[] = {
	[STORE_EXTERNAL_OPEN] = "open", [STORE_EXTERNAL_RESTORED] = "restored",
	[STORE_EXTERNAL_REPAIRED] = "repaired",
	[STORE_EXTERNAL_ACCEPTED] = "accepted",
	[STORE_EXTERNAL_BY_ITSELF] = "by itself",
};


const char *store_external_kind_name(enum store_external_kind k)
{
	return kind_names[k];
}

const char *store_external_how_name(enum store_external_how h)
{
	return how_names[h];
}

const char *store_external_outcome_name(enum store_external_outcome o)
{
	return outcome_names[o];
}

const char *store_external_text(const struct store_external_change *f, char *buf, int size)
{
	const char *name = kind_names[f->kind];

	switch (f->kind) {
	case STORE_EXTERNAL_PROGRAM:
		snprintf(buf, (size_t)size, "another program");
		break;
	case STORE_EXTERNAL_DISABLED:
		snprintf(buf, (size_t)size, "%s: %s %d", name,
			 f->xc.in >= 0 ? "in" : "out",
			 (f->xc.in >= 0 ? f->xc.in : f->xc.out) + 1);
		break;
	default:
		snprintf(buf, (size_t)size, "%s: in %d -> out %d", name,
			 f->xc.in + 1, f->xc.out + 1);
	}
	return buf;
}

static int insert(struct store *s, struct store_external_change *f, struct err *err)
{
	int rc = db_run(s, err,
			"INSERT INTO external_change (device, kind, in_port, out_port, noticed_ns, "
			"right_ns, how, who) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			"ssiiiiss", f->device, kind_names[f->kind], (int64_t)f->xc.in,
			(int64_t)f->xc.out, f->noticed_ns, f->right_ns, how_names[f->how], f->who);

	f->id = rc ? 0 : sqlite3_last_insert_rowid(s->db);
	return rc;
}

static int update(struct store *s, const struct store_external_change *f, struct err *err)
{
	return db_run(s, err,
		      "UPDATE external_change SET resolved_ns = ?, outcome = ?, change = ?, "
		      "given_up = ? WHERE id = ?",
		      "isiii", f->resolved_ns, outcome_names[f->outcome], f->change,
		      (int64_t)f->given_up, f->id);
}

int store_external_changes_put(struct store *s, struct store_external_change *v, int n,
			       struct err *err)
{
	int rc = s->newer ? 0 : db_begin(s, err);

	if (rc || s->newer) {
		return rc;
	}
	for (int i = 0; i < n && rc == 0; i++) {
		rc = v[i].id ? update(s, &v[i], err) : insert(s, &v[i], err);
	}
	if (rc == 0) {
		rc = db_run(s, err,
			    "DELETE FROM external_change WHERE resolved_ns <> 0 AND id <= (SELECT "
			    "max(id) FROM external_change) - ?",
			    "i", (int64_t)STORE_EXTERNAL_MAX);
	}
	return db_end(s, rc, err);
}

static int read_row(struct store *s, sqlite3_stmt *st, void *row, struct err *err)
{
	struct store_external_change *f = row;
	int kind = store_name_index(kind_names, COUNT(kind_names), sqlite3_column_text(st, 2));
	int how = store_name_index(how_names, COUNT(how_names), sqlite3_column_text(st, 7));
	int outcome = store_name_index(outcome_names, COUNT(outcome_names),
				       sqlite3_column_text(st, 10));

	if (kind < 0 || how < 0 || outcome < 0) {
		return db_damaged(s, err, "a change that weft did not make");
	}
	*f = (struct store_external_change){
		.id = sqlite3_column_int64(st, 0),
		.kind = (enum store_external_kind)kind,
		.xc = { sqlite3_column_int(st, 3), sqlite3_column_int(st, 4) },
		.noticed_ns = sqlite3_column_int64(st, 5),
		.right_ns = sqlite3_column_int64(st, 6),
		.how = (enum store_external_how)how,
		.resolved_ns = sqlite3_column_int64(st, 9),
		.outcome = (enum store_external_outcome)outcome,
		.change = sqlite3_column_int64(st, 11),
		.given_up = sqlite3_column_int(st, 12) != 0,
	};
	db_text_into(st, 1, f->device, sizeof(f->device));
	db_text_into(st, 8, f->who, sizeof(f->who));
	return 0;
}

int store_external_changes(struct store *s, const struct store_external_query *q,
			   struct store_external_change **out, int *n, struct err *err)
{
	static const struct db_row kind = { sizeof(struct store_external_change), read_row, NULL };
	struct db_rows rows;
	int rc = db_read_rows(s, err, &kind, &rows,
			      "SELECT " COLUMNS " FROM "
			      "external_change WHERE (?1 = '' OR device = ?1) AND (?2 = 0 OR "
			      "resolved_ns = 0) AND (?3 = 0 OR id < ?3) ORDER BY id DESC LIMIT ?4",
			      "siii", q->device ? q->device : "", (int64_t)q->open, q->before,
			      q->limit ? (int64_t)q->limit : -1);

	*out = rows.v;
	*n = rows.n;
	return rc;
}
