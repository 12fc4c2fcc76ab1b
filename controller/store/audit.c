/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit trail: what was said to devices and what happened, bounded.
 *
 * Lines wait in memory and are written with the next transaction, so that a
 * change does not pay a sync for each. Count and bytes of what is kept are
 * bounded; the oldest lines go first. When the disk takes nothing, lines that
 * do not fit in memory are counted, and the count is written later.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/store/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/vec.h"

#define FLUSH_LINES 256	/* of those that wait */

static const char *const kind_names[] = {
	[STORE_COMMAND] = "command",
	[STORE_REPLY] = "reply",
	[STORE_EVENT] = "event",
};

/* A copy of at most max bytes, not cut inside a UTF-8 character. */
static char *copy_cut(const char *text, size_t max)
{
	size_t len = strnlen(text, max + 1);

	if (len > max) {
		len = max;
		while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) {
			len--;
		}
	}
	return x_ndup(text, len);
}

/* Writes what waits in a transaction of its own, if anything does. */
static int flush(struct store *s, struct err *err)
{
	int rc = s->n_waiting || s->n_lost ? db_begin_deferred(s, err) : 1;

	if (rc) {
		return rc == 1 ? 0 : rc;
	}
	return db_end(s, 0, err);
}

void store_audit(struct store *s, int64_t change, const char *device,
		 enum store_audit_kind kind, const char *text)
{
	struct store_audit line = { .at_ns = clk_wall_ns(), .change = change,
				    .kind = kind };

	if (s->newer) {
		return;
	}
	if (!s->waiting) {
		s->waiting = x_new(STORE_AUDIT_BUFFER, sizeof(*s->waiting));
	}
	if (s->n_waiting == STORE_AUDIT_BUFFER) {
		flush(s, NULL);
	}
	if (s->n_waiting == STORE_AUDIT_BUFFER) {
		s->n_lost++;
		return;
	}
	line.device = copy_cut(device, STORE_AUDIT_TEXT_MAX);
	line.text = copy_cut(text, kind == STORE_COMMAND ?
				   STORE_AUDIT_COMMAND_MAX :
				   STORE_AUDIT_TEXT_MAX);
	s->waiting[s->n_waiting++] = line;
	/* Thousands at once would hold up who commits next. */
	if (s->defers && s->n_waiting % FLUSH_LINES == 0) {
		flush(s, NULL);
	}
}

void store_audit_drop(struct store *s)
{
	for (int i = 0; i < s->n_waiting; i++) {
		free(s->waiting[i].device);
		free(s->waiting[i].text);
	}
	s->n_waiting = 0;
	s->n_lost = 0;
}

/* audit_bytes follows along once the lines were counted. */
static int write_line(struct store *s, sqlite3_stmt *st,
		      const struct store_audit *a, struct err *err)
{
	int rc = db_bind(s, err, st, "iisss", a->at_ns, a->change, a->device,
			 kind_names[a->kind], a->text);

	if (s->audit_bytes >= 0) {
		s->audit_bytes += (int64_t)strlen(a->text);
	}
	if (rc) {
		return rc;
	}
	return db_finish(s, err, st);
}

/* A line that says how many were not kept. */
static int write_lost(struct store *s, sqlite3_stmt *st, struct err *err)
{
	char text[64], device[] = "";
	struct store_audit a = { .at_ns = clk_wall_ns(), .device = device,
				 .kind = STORE_EVENT, .text = text };

	snprintf(text, sizeof(text), "%d lines were not kept", s->n_lost);
	return s->n_lost ? write_line(s, st, &a, err) : 0;
}

/* Commands may be long: the older half goes when their texts are too much.
 * What is deleted is not taken off the sum, which is then taken again. */
static int bound_bytes(struct store *s, struct err *err)
{
	int rc = s->audit_bytes < 0 || s->audit_bytes > STORE_AUDIT_BYTES
			 ? db_number(s, err, &s->audit_bytes,
				     "SELECT ifnull(sum(length(text)), 0) FROM audit", "") : 0;

	if (rc == 0 && s->audit_bytes > STORE_AUDIT_BYTES) {
		rc = db_run(s, err, "DELETE FROM audit WHERE id < (SELECT "
			    "(min(id) + max(id)) / 2 FROM audit)", "");
		s->audit_bytes = -1;
	}
	return rc;
}

static int write_lines(struct store *s, struct err *err)
{
	sqlite3_stmt *st;
	int rc;

	if (!s->n_waiting && !s->n_lost) {
		return 0;
	}
	rc = db_prepare(s, err, &st, "INSERT INTO audit (at_ns, change, "
			"device, kind, text) VALUES (?, ?, ?, ?, ?)", "");
	for (int i = 0; i < s->n_waiting && rc == 0; i++) {
		rc = write_line(s, st, &s->waiting[i], err);
	}
	if (rc == 0) {
		rc = write_lost(s, st, err);
	}
	db_release(s, st);
	if (rc ||
	    (rc = db_run(s, err, "DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?",
			 "i", (int64_t)STORE_AUDIT_MAX))) {
		return rc;
	}
	return bound_bytes(s, err);
}

static void end_lines(struct store *s, bool kept)
{
	if (kept) {
		store_audit_drop(s);
	}
}

const struct store_part store_audit_part = { .commit = write_lines, .end = end_lines };

void store_audit_free(struct store_audit *v, int n)
{
	for (int i = 0; i < n; i++) {
		free(v[i].device);
		free(v[i].text);
	}
	free(v);
}

static int read_line(struct store *s, sqlite3_stmt *st, struct store_audit *out, struct err *err)
{
	int kind = store_name_index(kind_names, COUNT(kind_names), sqlite3_column_text(st, 4));

	if (kind < 0) {
		return db_damaged(s, err, "a line of the audit trail");
	}
	*out = (struct store_audit){
		.id = sqlite3_column_int64(st, 0),
		.at_ns = sqlite3_column_int64(st, 1),
		.change = sqlite3_column_int64(st, 2),
		.device = db_text(st, 3),
		.kind = (enum store_audit_kind)kind,
		.text = db_text(st, 5),
	};
	return 0;
}

/* The newest first, so that the limit keeps the newest. */
static int select_lines(struct store *s, const struct store_audit_query *q,
			sqlite3_stmt **st, struct err *err)
{
	return db_prepare(s, err, st, "SELECT id, at_ns, change, device, "
			  "kind, text FROM audit WHERE (?1 = 0 OR change = ?1) "
			  "AND (?2 = '' OR device = ?2) AND at_ns >= ?3 AND "
			  "(?4 = 0 OR id < ?4) ORDER BY id DESC LIMIT ?5",
			  "isiii", q->change, q->device ? q->device : "",
			  q->since_ns, q->before, (int64_t)q->limit);
}

static void reverse(struct store_audit *v, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		struct store_audit a = v[i];

		v[i] = v[n - 1 - i];
		v[n - 1 - i] = a;
	}
}

int store_audit_read(struct store *s, const struct store_audit_query *q,
		     struct store_audit **v, int *n, struct err *err)
{
	VEC(struct store_audit) list = { 0 };
	sqlite3_stmt *st;
	size_t bytes = 0;
	int rc = flush(s, err);

	if (rc == 0) {
		rc = select_lines(s, q, &st, err);
	}
	if (rc) {
		return rc;
	}
	while ((!q->max_bytes || bytes < q->max_bytes) && (rc = db_step(s, err, st)) == 1) {
		struct store_audit a;

		rc = read_line(s, st, &a, err);
		if (rc) {
			break;
		}
		vec_push(&list, a);
		bytes += strlen(a.text);
	}
	db_release(s, st);
	if (rc) {
		store_audit_free(list.v, (int)list.n);
		return rc;
	}
	reverse(list.v, list.n);
	*v = list.v;
	*n = (int)list.n;
	return 0;
}
