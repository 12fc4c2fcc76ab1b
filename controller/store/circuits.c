/*
 * Intent and observed circuits, and ring programs kept by their digest.
 *
 * Programs are large and mostly the same from change to change: they are kept
 * once under their SHA-256, which is checked when they are read, and go with
 * the last row that refers to them (store_sweep).
 */
#include <stdlib.h>
#include <string.h>

#include "controller/store/private.h"
#include "lib/base/vec.h"

void store_light_fini(struct store_light *l)
{
	free(l->xcs);
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

int db_circuits(struct store *s, sqlite3_stmt *st, struct optics_xc **v, int *n, struct err *err)
{
	VEC(struct optics_xc) list = { 0 };
	int rc;

	while ((rc = db_step(s, err, st)) == 1) {
		struct optics_xc xc = { sqlite3_column_int(st, 0),
				       sqlite3_column_int(st, 1) };

		if (vec_push(&list, xc)) {
			rc = err_nomem(err);
			break;
		}
	}
	if (rc) {
		vec_fini(&list);
		return rc;
	}
	*v = list.v;
	*n = (int)list.n;
	return 0;
}

/* ---- programs ------------------------------------------------------------ */

int store_program_put(struct store *s, const struct ring_programs *p,
		      uint8_t digest[RING_DIGEST_LEN], struct err *err)
{
	uint8_t *data;
	size_t len;
	int rc = ring_programs_save(p, &data, &len, err);

	if (rc) {
		return rc;
	}
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
	int rc;

	if (len && !data) {
		return err_nomem(err);
	}
	rc = ring_programs_load(out, data, (size_t)len, err);
	if (rc == WEFT_ENOMEM) {
		return rc;
	}
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
	sqlite3_finalize(st);
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

/* Fills in the programs of a ring; a device without any is no error. */
static int intent_program(struct store *s, const char *device,
			  struct store_light *out, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT program FROM intent_device "
			    "WHERE device = ? AND program IS NOT NULL", "s",
			    device);

	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		uint8_t digest[RING_DIGEST_LEN];
		const void *blob = sqlite3_column_blob(st, 0);

		memcpy(digest, blob, RING_DIGEST_LEN);
		rc = store_program(s, digest, &out->programs, err);
		out->has_program = rc == 0;
	}
	sqlite3_finalize(st);
	return rc;
}

int store_intent(struct store *s, const char *device, struct store_light *out, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT in_port, out_port FROM "
			    "intent_circuit WHERE device = ? "
			    "ORDER BY in_port, out_port", "s", device);

	memset(out, 0, sizeof(*out));
	if (rc) {
		return rc;
	}
	rc = db_circuits(s, st, &out->xcs, &out->n_xcs, err);
	sqlite3_finalize(st);
	if (rc == 0) {
		rc = intent_program(s, device, out, err);
	}
	if (rc) {
		store_light_fini(out);
	}
	return rc;
}

/* Ends a statement that gives one level, or none. */
static int read_proof(struct store *s, sqlite3_stmt *st, const char *device,
		      int *proof, struct err *err)
{
	int rc = db_step(s, err, st);

	if (rc == 1 && sqlite3_column_type(st, 0) != SQLITE_NULL) {
		*proof = sqlite3_column_int(st, 0);
		rc = 0;
	} else if (rc >= 0) {
		rc = err_set(err, WEFT_ENOTFOUND, "%s: no such circuit is "
			     "intended", device);
	}
	sqlite3_finalize(st);
	return rc;
}

int store_circuit_proof(struct store *s, const char *device,
			struct optics_xc xc, int *proof, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT proof FROM intent_circuit "
			    "WHERE device = ? AND in_port = ? AND out_port = ?",
			    "sii", device, (int64_t)xc.in, (int64_t)xc.out);

	if (rc) {
		return rc;
	}
	return read_proof(s, st, device, proof, err);
}

int store_device_proof(struct store *s, const char *device, int *proof, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT MIN(proof) FROM "
			    "intent_circuit WHERE device = ?", "s", device);

	if (rc) {
		return rc;
	}
	return read_proof(s, st, device, proof, err);
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
		char *name = db_text(st, 0);

		if (!name || vec_push(&list, name)) {
			free(name);
			rc = WEFT_ENOMEM;
			break;
		}
	}
	sqlite3_finalize(st);
	if (rc || vec_push(&list, NULL)) {
		for (size_t i = 0; i < list.n; i++) {
			free(list.v[i]);
		}
		vec_fini(&list);
		return rc && rc != WEFT_ENOMEM ? rc : err_nomem(err);
	}
	*names = list.v;
	*n = (int)list.n - 1;
	return 0;
}

/* ---- observed ------------------------------------------------------------ */

static int put_circuits(struct store *s, const struct store_observed *o, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "INSERT INTO observed_circuit "
			    "VALUES (?, ?, ?)", "");

	for (int i = 0; i < o->n_xcs && rc == 0; i++) {
		rc = db_bind(s, err, st, "sii", o->device,
			     (int64_t)o->xcs[i].in, (int64_t)o->xcs[i].out);
		if (rc == 0) {
			rc = db_finish(s, err, st);
		}
	}
	sqlite3_finalize(st);
	return rc;
}

/* Whether the circuits of the last reading are these, in this order: most
 * readings find what was there, and a row for each is a lot to write. */
static int same_circuits(struct store *s, const struct store_observed *o,
			 bool *same, struct err *err)
{
	sqlite3_stmt *st;
	int64_t n = 0;
	int rc = db_prepare(s, err, &st, "SELECT in_port, out_port "
			    "FROM observed_circuit WHERE device = ? "
			    "ORDER BY in_port, out_port", "s", o->device);

	*same = true;
	if (rc) {
		return rc;
	}
	while (*same && (rc = db_step(s, err, st)) == 1) {
		*same = n < o->n_xcs &&
			o->xcs[n].in == sqlite3_column_int(st, 0) &&
			o->xcs[n].out == sqlite3_column_int(st, 1);
		n++;
	}
	*same = *same && n == o->n_xcs;
	sqlite3_finalize(st);
	return rc < 0 ? rc : 0;
}

/* The time of the reading always changes; circuits are written only if they
 * did. */
static int put_observed(struct store *s, const struct store_observed *o, struct err *err)
{
	bool same;
	int rc = same_circuits(s, o, &same, err);

	if (rc == 0) {
		rc = db_run(
			s, err,
			"INSERT INTO observed_device VALUES (?, ?, ?, ?, ?) ON CONFLICT (device) "
			"DO UPDATE SET read_at_ns = excluded.read_at_ns, epoch = excluded.epoch, "
			"identity = excluded.identity, program_digest = excluded.program_digest",
			"sissb", o->device, o->read_at_ns, o->epoch ? o->epoch : "",
			o->identity ? o->identity : "", o->has_program ? o->program_digest : NULL,
			RING_DIGEST_LEN);
	}

	if (rc || same) {
		return rc;
	}
	rc = db_run(s, err, "DELETE FROM observed_circuit WHERE device = ?", "s", o->device);
	if (rc) {
		return rc;
	}
	return put_circuits(s, o, err);
}

int store_observed_put(struct store *s, const struct store_observed *v, int n, struct err *err)
{
	int rc = s->newer ? 0 : db_begin(s, err);

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
	int len = sqlite3_column_bytes(st, 3);

	out->read_at_ns = sqlite3_column_int64(st, 0);
	out->device = strdup(device);
	out->epoch = db_text(st, 1);
	out->identity = db_text(st, 2);
	if (!out->device || !out->epoch || !out->identity) {
		return err_nomem(err);
	}
	out->has_program = sqlite3_column_type(st, 3) != SQLITE_NULL;
	if (out->has_program) {
		if (len != RING_DIGEST_LEN) {
			return db_damaged(s, err, "a program digest");
		}
		memcpy(out->program_digest, sqlite3_column_blob(st, 3), len);
	}
	return 0;
}

int store_observed_get(struct store *s, const char *device,
		       struct store_observed *out, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT read_at_ns, epoch, identity, "
			    "program_digest FROM observed_device "
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
	sqlite3_finalize(st);
	if (rc == 0) {
		rc = db_prepare(s, err, &st,
				"SELECT in_port, out_port FROM observed_circuit WHERE device = ? "
				"ORDER BY in_port, out_port",
				"s", device);
	}
	if (rc == 0) {
		rc = db_circuits(s, st, &out->xcs, &out->n_xcs, err);
		sqlite3_finalize(st);
	}
	if (rc) {
		store_observed_fini(out);
	}
	return rc;
}
