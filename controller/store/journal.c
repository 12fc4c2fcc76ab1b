/*
 * The journal of open changes, as read back after a crash or by a later change.
 *
 * Rows come in the order in which the change was to be carried out; an unknown
 * operation or state means a damaged store, never a guess.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/store/private.h"
#include "lib/base/vec.h"

static const char *const op_names[] = {
	[STORE_DEL] = "del",
	[STORE_ADD] = "add",
	[STORE_KEEP] = "keep",
	[STORE_LOAD] = "load",
	[STORE_LEAVE] = "leave",
};

static const char *const state_names[] = {
	[STORE_PLANNED] = "planned",
	[STORE_SENT] = "sent",
	[STORE_DONE] = "done",
	[STORE_DENIED] = "denied",
	[STORE_UNKNOWN] = "unknown",
	[STORE_AS_BEFORE] = "as before",
	[STORE_AS_PLANNED] = "as planned",
};

const char *store_op_name(enum store_op op)
{
	return op_names[op];
}

const char *store_step_state_name(enum store_step_state st)
{
	return state_names[st];
}

void store_journal_fini(struct store_journal *j)
{
	for (int i = 0; i < j->n_works; i++) {
		struct store_work *w = &j->works[i];

		free(w->device);
		free(w->steps);
		ring_programs_fini(&w->old_programs);
		ring_programs_fini(&w->new_programs);
	}
	free(j->works);
	store_gains_free(j->gains, j->n_gains);
	store_change_fini(&j->change);
	memset(j, 0, sizeof(*j));
}

void store_journals_free(struct store_journal *v, int n)
{
	for (int i = 0; i < n; i++) {
		store_journal_fini(&v[i]);
	}
	free(v);
}

static int read_step(struct store *s, sqlite3_stmt *st, struct store_step *out, struct err *err)
{
	int op = store_name_index(op_names, COUNT(op_names), sqlite3_column_text(st, 0));
	int state = store_name_index(state_names, COUNT(state_names), sqlite3_column_text(st, 3));

	if (op < 0 || state < 0) {
		return db_damaged(s, err, "a step of the journal");
	}
	out->op = (enum store_op)op;
	out->xc.in = sqlite3_column_int(st, 1);
	out->xc.out = sqlite3_column_int(st, 2);
	out->state = (enum store_step_state)state;
	db_text_into(st, 4, out->note, sizeof(out->note));
	return 0;
}

static int read_steps(struct store *s, int64_t change, int seq,
		      struct store_work *w, struct err *err)
{
	VEC(struct store_step) list = { 0 };
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT op, in_port, out_port, "
			    "state, note FROM journal_step WHERE change = ? "
			    "AND device_seq = ? ORDER BY seq", "ii", change,
			    (int64_t)seq);

	if (rc) {
		return rc;
	}
	while ((rc = db_step(s, err, st)) == 1) {
		struct store_step step = { 0 };

		rc = read_step(s, st, &step, err);
		if (rc == 0 && vec_push(&list, step)) {
			rc = err_nomem(err);
		}
		if (rc) {
			break;
		}
	}
	sqlite3_finalize(st);
	w->steps = list.v;
	w->n_steps = (int)list.n;
	return rc;
}

/* The programs behind a digest column; a digest without programs is damage, as
 * they are swept only after the journal. */
static int read_program(struct store *s, sqlite3_stmt *st, int col, bool *has,
			struct ring_programs *out, struct err *err)
{
	uint8_t digest[RING_DIGEST_LEN];
	int rc;

	*has = sqlite3_column_type(st, col) != SQLITE_NULL;
	if (!*has) {
		return 0;
	}
	if (sqlite3_column_bytes(st, col) != RING_DIGEST_LEN) {
		return db_damaged(s, err, "the digest of a program");
	}
	memcpy(digest, sqlite3_column_blob(st, col), sizeof(digest));
	rc = store_program(s, digest, out, err);
	return rc == WEFT_ENOTFOUND ? db_damaged(s, err, "a program of the journal is gone") : rc;
}

/* One device of a journal with its steps. What was read stays in w on error,
 * for store_journal_fini. */
static int read_work(struct store *s, sqlite3_stmt *st, int64_t change,
		     struct store_work *w, struct err *err)
{
	int seq = sqlite3_column_int(st, 0);
	int rc;

	w->device = db_text(st, 1);
	if (!w->device) {
		return err_nomem(err);
	}
	w->is_ring = sqlite3_column_int(st, 2);
	rc = read_program(s, st, 3, &w->has_old, &w->old_programs, err);
	if (rc || (rc = read_program(s, st, 4, &w->has_new, &w->new_programs, err))) {
		return rc;
	}
	return read_steps(s, change, seq, w, err);
}

static int read_works(struct store *s, struct store_journal *j, struct err *err)
{
	VEC(struct store_work) list = { 0 };
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT seq, device, is_ring, "
			    "old_program, new_program FROM journal_device "
			    "WHERE change = ? ORDER BY seq", "i",
			    j->change.id);

	if (rc) {
		return rc;
	}
	while ((rc = db_step(s, err, st)) == 1) {
		rc = vec_push(&list, (struct store_work){ 0 }) ?
		     err_nomem(err) :
		     read_work(s, st, j->change.id, &list.v[list.n - 1], err);
		if (rc) {
			break;
		}
	}
	sqlite3_finalize(st);
	j->works = list.v;
	j->n_works = (int)list.n;
	return rc;
}

int store_open_changes(struct store *s, struct store_journal **v, int *n, struct err *err)
{
	VEC(struct store_journal) list = { 0 };
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT " CHANGE_COLUMNS
			    " FROM change WHERE verdict IN ('running', "
			    "'interrupted', 'stuck') AND superseded_by IS NULL "
			    "ORDER BY id DESC", "");

	if (rc) {
		return rc;
	}
	while ((rc = db_step(s, err, st)) == 1) {
		struct store_journal j = { 0 };

		rc = store_change_read(s, st, &j.change, err);
		if (rc == 0) {
			rc = read_works(s, &j, err);
		}
		if (rc == 0 && vec_push(&list, j)) {
			rc = err_nomem(err);
		}
		if (rc) {
			store_journal_fini(&j);
			break;
		}
	}
	sqlite3_finalize(st);
	if (rc) {
		store_journals_free(list.v, (int)list.n);
		return rc;
	}
	*v = list.v;
	*n = (int)list.n;
	return 0;
}
