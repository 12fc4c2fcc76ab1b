/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal of open changes: as it is written, and read back after a crash or by a later
 * change.
 *
 * A row is a device, in the order in which the change was to be carried out. Its steps are
 * one value, as they never change; their states are another, a letter each, so that marking
 * a batch writes little; the few that have a note are an object by their number. An unknown
 * operation or state means a damaged store, never a guess.
 */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/store/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"
#include "lib/output/writer.h"

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

static const char state_letters[] = {
	[STORE_PLANNED] = 'p', [STORE_SENT] = 's', [STORE_DONE] = 'd', [STORE_DENIED] = 'n',
	[STORE_UNKNOWN] = 'u', [STORE_AS_BEFORE] = 'b', [STORE_AS_PLANNED] = 'a',
};

const char *store_op_name(enum store_op op)
{
	return op_names[op];
}

const char *store_step_state_name(enum store_step_state st)
{
	return state_names[st];
}

void store_set_note(struct store_step *st, const char *fmt, ...)
{
	char text[STORE_NOTE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	free(st->note);
	st->note = text[0] ? x_dup(text) : NULL;
}

/* ---- writing ------------------------------------------------------------- */

static void put_steps(const struct store_work *w, struct buf *b)
{
	for (int i = 0; i < w->n_steps; i++) {
		buf_str(b, i ? ",[\"" : "[[\"");
		buf_str(b, op_names[w->steps[i].op]);
		buf_str(b, "\",");
		store_put_number(b, w->steps[i].xc.in);
		buf_char(b, ',');
		store_put_number(b, w->steps[i].xc.out);
		buf_char(b, ']');
	}
	store_end_list(b);
}

static void put_states(const struct store_work *w, struct buf *states, struct buf *notes)
{
	char *letters = buf_extend(states, (size_t)w->n_steps);

	buf_char(notes, '{');
	for (int i = 0; i < w->n_steps; i++) {
		letters[i] = state_letters[w->steps[i].state];
		if (w->steps[i].note) {
			buf_printf(notes, "%s\"%d\":", notes->len > 1 ? "," : "", i);
			out_json_quote(notes, w->steps[i].note);
		}
	}
	buf_char(notes, '}');
}

/* A device of the journal: its programs before and after by digest, which are
 * NULL where it has none, and its steps in order. */
static int put_work(struct store *s, int64_t change, int seq, const struct store_work *w,
		    struct err *err)
{
	uint8_t old_digest[RING_DIGEST_LEN], new_digest[RING_DIGEST_LEN];
	struct buf steps = { 0 }, states = { 0 }, notes = { 0 };
	int rc;

	if ((w->has_old && (rc = store_program_put(s, &w->old_programs, old_digest, err))) ||
	    (w->has_new && (rc = store_program_put(s, &w->new_programs, new_digest, err)))) {
		return rc;
	}
	put_steps(w, &steps);
	put_states(w, &states, &notes);
	rc = db_run(s, err, "INSERT INTO journal_device VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		    "iisibbsss", change, (int64_t)seq, w->device, (int64_t)w->is_ring,
		    w->has_old ? old_digest : NULL, RING_DIGEST_LEN,
		    w->has_new ? new_digest : NULL, RING_DIGEST_LEN, buf_cstr(&steps),
		    buf_cstr(&states), buf_cstr(&notes));
	buf_fini(&steps);
	buf_fini(&states);
	buf_fini(&notes);
	return rc;
}

int store_works_put(struct store *s, const struct store_journal *j, int64_t change,
		    struct err *err)
{
	int rc = 0;

	for (int i = 0; i < j->n_works && rc == 0; i++) {
		rc = put_work(s, change, i, &j->works[i], err);
	}
	return rc;
}

int store_mark(struct store *s, const struct store_journal *j, int work, struct err *err)
{
	struct buf states = { 0 }, notes = { 0 };
	int rc = db_begin_deferred(s, err);

	if (rc) {
		return rc;
	}
	put_states(&j->works[work], &states, &notes);
	rc = db_run(s, err, "UPDATE journal_device SET states = ?, notes = ? WHERE change = ? "
		    "AND seq = ?", "ssii", buf_cstr(&states), buf_cstr(&notes), j->change.id,
		    (int64_t)work);
	buf_fini(&states);
	buf_fini(&notes);
	return db_end(s, rc, err);
}

/* ---- reading ------------------------------------------------------------- */

/* "add", and the rest of it. */
static bool take_step(const char **at, struct store_step *out)
{
	for (int op = 0; op < COUNT(op_names); op++) {
		size_t len = strlen(op_names[op]);

		if (strncmp(*at, op_names[op], len) == 0 && (*at)[len] == '"') {
			*at += len + 1;
			out->op = (enum store_op)op;
			return store_take_char(at, ',') && store_take_number(at, &out->xc.in) &&
			       store_take_char(at, ',') && store_take_number(at, &out->xc.out) &&
			       store_take_char(at, ']');
		}
	}
	return false;
}

/* Each state is one step's, as many as there are. */
static bool take_steps(const char *at, const char *states, struct store_work *w)
{
	bool ok = store_take_char(&at, '[');

	for (int i = 0; i < w->n_steps && ok; i++) {
		const char *state = memchr(state_letters, states[i], sizeof(state_letters));

		ok = state && (i == 0 || store_take_char(&at, ',')) &&
		     store_take_char(&at, '[') && store_take_char(&at, '"') &&
		     take_step(&at, &w->steps[i]);
		w->steps[i].state = (enum store_step_state)(ok ? state - state_letters : 0);
	}
	return ok && strcmp(at, "]") == 0;
}

static bool take_notes(const char *text, struct store_work *w)
{
	json_t *notes = json_loads(text, 0, NULL), *note;
	bool ok = json_is_object(notes);
	const char *key;

	json_object_foreach(notes, key, note) {
		int i = atoi(key);

		ok = ok && json_is_string(note) && i >= 0 && i < w->n_steps;
		if (ok) {
			store_set_note(&w->steps[i], "%s", json_string_value(note));
		}
	}
	json_decref(notes);
	return ok;
}

/* From the columns steps, states, notes, of which this is the first. */
static int read_steps(struct store *s, sqlite3_stmt *st, int col, struct store_work *w,
		      struct err *err)
{
	const char *steps = (const char *)sqlite3_column_text(st, col);
	const char *states = (const char *)sqlite3_column_text(st, col + 1);
	const char *notes = (const char *)sqlite3_column_text(st, col + 2);

	if (!steps || !states || !notes) {
		return db_damaged(s, err, "the steps of a journal");
	}
	w->n_steps = (int)strlen(states);
	w->steps = x_new((size_t)w->n_steps + 1, sizeof(*w->steps));
	return take_steps(steps, states, w) && (strcmp(notes, "{}") == 0 || take_notes(notes, w))
		       ? 0 : db_damaged(s, err, "the steps of a journal");
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
static int read_work(struct store *s, sqlite3_stmt *st, struct store_work *w, struct err *err)
{
	int rc;

	w->device = db_text(st, 0);
	w->is_ring = sqlite3_column_int(st, 1);
	rc = read_program(s, st, 2, &w->has_old, &w->old_programs, err);
	if (rc || (rc = read_program(s, st, 3, &w->has_new, &w->new_programs, err))) {
		return rc;
	}
	return read_steps(s, st, 4, w, err);
}

int store_works_read(struct store *s, struct store_journal *j, struct err *err)
{
	VEC(struct store_work) list = { 0 };
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT device, is_ring, old_program, "
			    "new_program, steps, states, notes FROM journal_device "
			    "WHERE change = ? ORDER BY seq", "i",
			    j->change.id);

	if (rc) {
		return rc;
	}
	while ((rc = db_step(s, err, st)) == 1) {
		vec_push(&list, (struct store_work){ 0 });
		rc = read_work(s, st, &list.v[list.n - 1], err);
		if (rc) {
			break;
		}
	}
	db_release(s, st);
	j->works = list.v;
	j->n_works = (int)list.n;
	return rc;
}
