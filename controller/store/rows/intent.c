/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intent and observed circuits, and ring programs kept by their digest.
 *
 * The circuits of a device are one value, a list in JSON: a fabric may have tens of
 * thousands, which are written and read by one thread that has other things to do.
 *
 * Programs are large and mostly the same from change to change: they are kept
 * once under their SHA-256, which is checked when they are read, and go with
 * the last row that refers to them (store_sweep).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/store/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"

void store_light_fini(struct store_light *l)
{
	free(l->xcs);
	free(l->proofs);
	ring_programs_fini(&l->programs);
	memset(l, 0, sizeof(*l));
}

void store_observed_fini(struct store_observed *o)
{
	free(o->device);
	free(o->epoch);
	free(o->identity);
	free(o->xcs);
	memset(o, 0, sizeof(*o));
}

/* ---- lists ----------------------------------------------------------------- */

void store_put_number(struct buf *b, int n)
{
	char digits[12];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	buf_add(b, digits + at, sizeof(digits) - at);
}

void store_put_circuit(struct buf *b, struct optics_xc xc, const int *proof)
{
	buf_str(b, b->len ? ",[" : "[[");
	store_put_number(b, xc.in);
	buf_char(b, ',');
	store_put_number(b, xc.out);
	if (proof) {
		buf_char(b, ',');
		store_put_number(b, *proof);
	}
	buf_char(b, ']');
}

void store_end_list(struct buf *b)
{
	buf_str(b, b->len ? "]" : "[]");
}

bool store_take_char(const char **at, char c)
{
	bool is_there = **at == c;

	*at += is_there;
	return is_there;
}

bool store_take_number(const char **at, int *out)
{
	const char *begin = *at;

	for (*out = 0; **at >= '0' && **at <= '9' && *at - begin < 9; ++*at) {
		*out = 10 * *out + (**at - '0');
	}
	return *at > begin;
}

static bool take_circuit(const char **at, struct optics_xc *xc, int *proof)
{
	return store_take_char(at, '[') && store_take_number(at, &xc->in) &&
	       store_take_char(at, ',') && store_take_number(at, &xc->out) &&
	       (!proof || (store_take_char(at, ',') && store_take_number(at, proof))) &&
	       store_take_char(at, ']');
}

/* As many as there is room for, which is for all; true: that was the whole text. */
static bool take_circuits(const char *at, struct optics_xc *xcs, int *proofs, int *n)
{
	bool ok = store_take_char(&at, '[');

	for (*n = 0; ok && *at != ']'; ++*n) {
		ok = (*n == 0 || store_take_char(&at, ',')) &&
		     take_circuit(&at, &xcs[*n], proofs ? &proofs[*n] : NULL) &&
		     (*n == 0 || optics_xc_cmp(&xcs[*n - 1], &xcs[*n]) < 0);
	}
	return ok && strcmp(at, "]") == 0;
}

int store_read_circuits(struct store *s, const char *text, struct optics_xc **xcs,
			int **proofs, int *n, struct err *err)
{
	size_t most = 1;

	for (const char *at = text; (at = strchr(at, '[')); at++) {
		most++;
	}
	*xcs = x_new(most, sizeof(**xcs));
	if (proofs) {
		*proofs = x_new(most, sizeof(**proofs));
	}
	return take_circuits(text, *xcs, proofs ? *proofs : NULL, n) ? 0 :
	       db_damaged(s, err, "a list of circuits");
}

/* ---- programs ------------------------------------------------------------ */

int store_program_put(struct store *s, const struct ring_programs *p,
		      uint8_t digest[RING_DIGEST_LEN], struct err *err)
{
	uint8_t *data;
	size_t len;
	int rc;

	ring_programs_save(p, &data, &len);
	/* SQLite's own limit on a value. */
	if (len > 1000000000u) {
		rc = err_set(err, WEFT_ELIMIT, "programs of %zu bytes cannot "
			     "be stored", len);
	} else {
		ring_programs_digest(p, digest);
		rc = db_run(s, err, "INSERT OR IGNORE INTO program "
			    "VALUES (?, ?)", "bb", digest, RING_DIGEST_LEN,
			    data, (int)len);
	}
	free(data);
	return rc;
}

/* The digest is taken again: what does not match it is damage and not handed
 * out. */
static int read_program(struct store *s, sqlite3_stmt *st, const uint8_t digest[RING_DIGEST_LEN],
			struct ring_programs *out, struct err *err)
{
	uint8_t found[RING_DIGEST_LEN];
	int len = sqlite3_column_bytes(st, 0);
	const uint8_t *data = sqlite3_column_blob(st, 0);
	int rc = ring_programs_load(out, data, (size_t)len, err);

	if (rc == 0) {
		ring_programs_digest(out, found);
	}
	if (rc || memcmp(found, digest, RING_DIGEST_LEN) != 0) {
		ring_programs_fini(out);
		return db_damaged(s, err, "a ring program is not what its "
				  "digest says");
	}
	return 0;
}

int store_program(struct store *s, const uint8_t digest[RING_DIGEST_LEN],
		  struct ring_programs *out, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT data FROM program "
			    "WHERE digest = ?", "b", digest,
			    RING_DIGEST_LEN);

	memset(out, 0, sizeof(*out));
	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		rc = read_program(s, st, digest, out, err);
	} else if (rc == 0) {
		rc = err_set(err, WEFT_ENOTFOUND, "no intent or open change holds this program");
	}
	db_release(s, st);
	return rc;
}

int store_sweep(struct store *s, struct err *err)
{
	int rc = db_run(s, err, "DELETE FROM program WHERE digest NOT IN ("
			"SELECT program FROM intent_device "
			"WHERE program IS NOT NULL UNION ALL "
			"SELECT old_program FROM journal_device "
			"WHERE old_program IS NOT NULL UNION ALL "
			"SELECT new_program FROM journal_device "
			"WHERE new_program IS NOT NULL)", "");

	if (rc) {
		return rc;
	}
	return db_run(s, err,
		      "DELETE FROM config WHERE hash NOT IN (SELECT config FROM change)", "");
}

/* ---- intent -------------------------------------------------------------- */

/* Circuits and programs of one row; what was read stays in out on error. */
static int read_intent(struct store *s, sqlite3_stmt *st, struct store_light *out,
		       struct err *err)
{
	const char *text = (const char *)sqlite3_column_text(st, 0);
	const void *digest = sqlite3_column_blob(st, 1);
	int rc = text ? store_read_circuits(s, text, &out->xcs, &out->proofs, &out->n_xcs, err)
		      : db_damaged(s, err, "a list of circuits");

	if (rc == 0 && digest) {
		rc = sqlite3_column_bytes(st, 1) == RING_DIGEST_LEN
			     ? store_program(s, digest, &out->programs, err)
			     : db_damaged(s, err, "the digest of a program");
		out->has_program = rc == 0;
	}
	return rc;
}

int store_intent(struct store *s, const char *device, struct store_light *out, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT circuits, program FROM intent_device "
			    "WHERE device = ?", "s", device);

	memset(out, 0, sizeof(*out));
	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		rc = read_intent(s, st, out, err);
	}
	db_release(s, st);
	if (rc) {
		store_light_fini(out);
	}
	return rc;
}

int store_intent_devices(struct store *s, char ***names, int *n, struct err *err)
{
	VEC(char *) list = { 0 };
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT device FROM intent_device "
			    "ORDER BY device", "");

	if (rc) {
		return rc;
	}
	while ((rc = db_step(s, err, st)) == 1) {
		vec_push(&list, db_text(st, 0));
	}
	db_release(s, st);
	if (rc) {
		for (size_t i = 0; i < list.n; i++) {
			free(list.v[i]);
		}
		vec_fini(&list);
		return rc;
	}
	vec_push(&list, NULL);
	*names = list.v;
	*n = (int)list.n - 1;
	return 0;
}

/* ---- observed ------------------------------------------------------------ */

/* The time of the reading always changes; circuits are written only if they
 * did. */
static int put_observed(struct store *s, const struct store_observed *o, struct err *err)
{
	struct buf map = { 0 }, ages = { 0 };
	int rc = db_run(
		s, err,
		"INSERT INTO observed_device VALUES (?, ?, ?, ?, ?) ON CONFLICT (device) "
		"DO UPDATE SET read_at_ns = excluded.read_at_ns, epoch = excluded.epoch, "
		"identity = excluded.identity, program_digest = excluded.program_digest",
		"sissb", o->device, o->read_at_ns, o->epoch ? o->epoch : "",
		o->identity ? o->identity : "", o->has_program ? o->program_digest : NULL,
		RING_DIGEST_LEN);

	if (rc) {
		return rc;
	}
	for (int i = 0; i < o->n_xcs; i++) {
		store_put_circuit(&map, o->xcs[i], NULL);
	}
	store_end_list(&map);
	for (int i = 0; i < o->n_ages; i++) {
		const struct store_age *a = &o->ages[i];

		buf_printf(&ages, "%c[%d,%d,%d,%" PRId64 "]", i ? ',' : '[', a->xc.in, a->xc.out,
			   a->health, a->since_ns);
	}
	buf_str(&ages, o->n_ages ? "]" : "[]");
	rc = db_run(s, err, "INSERT INTO observed_map VALUES (?, ?, ?) ON CONFLICT (device) "
		    "DO UPDATE SET circuits = excluded.circuits, ages = excluded.ages "
		    "WHERE circuits <> excluded.circuits OR ages <> excluded.ages", "sss",
		    o->device, buf_cstr(&map), buf_cstr(&ages));
	buf_fini(&map);
	buf_fini(&ages);
	return rc;
}

int store_observed_put(struct store *s, const struct store_observed *v, int n, struct err *err)
{
	int rc = s->newer ? 0 : db_begin_deferred(s, err);

	if (rc || s->newer) {
		return rc;
	}
	for (int i = 0; i < n && rc == 0; i++) {
		rc = put_observed(s, &v[i], err);
	}
	return db_end(s, rc, err);
}

static int read_observed(struct store *s, sqlite3_stmt *st, const char *device,
			 struct store_observed *out, struct err *err)
{
	const char *map = (const char *)sqlite3_column_text(st, 4);
	int len = sqlite3_column_bytes(st, 3);

	out->read_at_ns = sqlite3_column_int64(st, 0);
	out->device = x_dup(device);
	out->epoch = db_text(st, 1);
	out->identity = db_text(st, 2);
	out->has_program = sqlite3_column_type(st, 3) != SQLITE_NULL;
	if (out->has_program) {
		if (len != RING_DIGEST_LEN) {
			return db_damaged(s, err, "a program digest");
		}
		memcpy(out->program_digest, sqlite3_column_blob(st, 3), len);
	}
	return map ? store_read_circuits(s, map, &out->xcs, NULL, &out->n_xcs, err) : 0;
}

int store_observed_get(struct store *s, const char *device,
		       struct store_observed *out, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT read_at_ns, epoch, identity, program_digest, "
			    "circuits FROM observed_device LEFT JOIN observed_map USING (device) "
			    "WHERE device = ?", "s", device);

	memset(out, 0, sizeof(*out));
	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		rc = read_observed(s, st, device, out, err);
	} else if (rc == 0) {
		rc = err_set(err, WEFT_ENOTFOUND, "%s was never read", device);
	}
	db_release(s, st);
	if (rc) {
		store_observed_fini(out);
	}
	return rc;
}

static int read_age(struct store *s, sqlite3_stmt *st, void *row, struct err *err)
{
	struct store_age *a = row;

	(void)s, (void)err;
	a->xc.in = sqlite3_column_int(st, 0);
	a->xc.out = sqlite3_column_int(st, 1);
	a->health = sqlite3_column_int(st, 2);
	a->since_ns = sqlite3_column_int64(st, 3);
	return 0;
}

int store_ages(struct store *s, const char *device, struct store_age **v, int *n,
	       struct err *err)
{
	static const struct db_row kind = { sizeof(struct store_age), read_age, NULL };
	struct db_rows rows;
	int rc = db_read_rows(s, err, &kind, &rows, "SELECT json_extract(c.value, '$[0]'), "
			      "json_extract(c.value, '$[1]'), json_extract(c.value, '$[2]'), "
			      "json_extract(c.value, '$[3]') FROM observed_map AS m, "
			      "json_each(m.ages) AS c WHERE m.device = ?", "s", device);

	*v = rows.v;
	*n = rows.n;
	return rc;
}
