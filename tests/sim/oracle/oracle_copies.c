/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of stores have: read from copies of them, so that no lock of a weftd is touched
 * and nothing of its disk is changed. A copy is taken between two calls of the disk and is what a
 * reader would see then: SQLite sets aside what was not committed.
 *
 * Two stores at the same place of the same log, by its digest, have the same rows in all tables but
 * those of one machine: that is what "behind 0" means. In the end all are at one place.
 */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/vec.h"
#include "tests/sim/oracle/oracle_parts.h"

#define COPY "oracle.db"
#define MAX_TABLES 40

/* Where a store stands, and a digest of the rows of each table. */
struct place {
	const char *path;
	char log[64];
	int64_t position;
	unsigned char digest[32];	/* of the log up to there */
	int n_tables;
	struct {
		char name[32];
		uint64_t digest;
		int n_rows;
	} tables[MAX_TABLES];
};

static VEC(char *) files;

void oracle_note_file(const char *path)
{
	for (size_t i = 0; i < files.n; i++) {
		if (strcmp(files.v[i], path) == 0) {
			return;
		}
	}
	vec_push(&files, x_dup(path));
}

/* ---- copies -------------------------------------------------------------- */

static bool copy_file(const char *path, const char *suffix)
{
	static char bytes[1 << 16];
	char from[512], to[64];
	FILE *in, *out;
	size_t n;

	snprintf(from, sizeof(from), "%s%s", path, suffix);
	snprintf(to, sizeof(to), COPY "%s", suffix);
	remove(to);
	in = fopen(from, "rb");
	out = in ? fopen(to, "wb") : NULL;
	while (out && (n = fread(bytes, 1, sizeof(bytes), in)) > 0) {
		fwrite(bytes, 1, n, out);
	}
	if (out) {
		fclose(out);
	}
	if (in) {
		fclose(in);
	}
	return out;
}

/* NULL: there is no such file, or it is none yet. */
static sqlite3 *open_copy(const char *path)
{
	sqlite3 *db = NULL;

	if (!copy_file(path, "")) {
		return NULL;
	}
	copy_file(path, "-wal");
	copy_file(path, "-journal");
	if (sqlite3_open_v2(COPY, &db, SQLITE_OPEN_READWRITE, "unix") ||
	    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL) ||
	    sqlite3_exec(db, "PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; "
			 "SELECT 1 FROM replica", NULL, NULL, NULL)) {
		sqlite3_close(db);
		return NULL;
	}
	return db;
}

/* ---- rows ---------------------------------------------------------------- */

static uint64_t mix(uint64_t h, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++) {
		h = (h ^ p[i]) * 1099511628211u;
	}
	return h;
}

static void digest_table(sqlite3 *db, struct place *p, int at)
{
	char sql[96];
	sqlite3_stmt *st;
	uint64_t h = 14695981039346656037u;

	snprintf(sql, sizeof(sql), "SELECT * FROM %s ORDER BY 1, 2, 3", p->tables[at].name);
	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL)) {
		snprintf(sql, sizeof(sql), "SELECT * FROM %s ORDER BY 1, 2", p->tables[at].name);
		sqlite3_prepare_v2(db, sql, -1, &st, NULL);
	}
	while (sqlite3_step(st) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(st); i++) {
			const void *v = sqlite3_column_blob(st, i);
			int n = sqlite3_column_bytes(st, i), type = sqlite3_column_type(st, i);

			h = mix(mix(mix(h, &type, sizeof(type)), &n, sizeof(n)), v, (size_t)n);
		}
		p->tables[at].n_rows++;
	}
	p->tables[at].digest = h;
	sqlite3_finalize(st);
}

static void read_place(sqlite3 *db, struct place *p)
{
	sqlite3_stmt *st;

	sqlite3_prepare_v2(db, "SELECT log, position, digest FROM replica", -1, &st, NULL);
	if (sqlite3_step(st) == SQLITE_ROW) {
		snprintf(p->log, sizeof(p->log), "%s", (const char *)sqlite3_column_text(st, 0));
		p->position = sqlite3_column_int64(st, 1);
		memcpy(p->digest, sqlite3_column_blob(st, 2), sizeof(p->digest));
	}
	sqlite3_finalize(st);
}

/* All but those of one machine. */
static void list_tables(sqlite3 *db, struct place *p)
{
	sqlite3_stmt *st;

	sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT "
			   "LIKE 'sqlite_%' AND name NOT IN ('audit', 'content', "
			   "'observed_device', 'observed_map', 'lease', 'replica') "
			   "ORDER BY name", -1, &st, NULL);
	while (p->n_tables < MAX_TABLES && sqlite3_step(st) == SQLITE_ROW) {
		snprintf(p->tables[p->n_tables++].name, sizeof(p->tables[0].name), "%s",
			 (const char *)sqlite3_column_text(st, 0));
	}
	sqlite3_finalize(st);
}

static void compare(const struct place *a, const struct place *b)
{
	if (!a->log[0] || strcmp(a->log, b->log) != 0 || a->position != b->position ||
	    memcmp(a->digest, b->digest, sizeof(a->digest)) != 0) {
		return;
	}
	for (int i = 0; i < a->n_tables && i < b->n_tables; i++) {
		if (a->tables[i].digest != b->tables[i].digest) {
			sim_fail("copies differ", "%s and %s are both at %" PRId64 " of the "
				 "log, and table %s is not the same (%d and %d rows)", a->path,
				 b->path, a->position, a->tables[i].name, a->tables[i].n_rows,
				 b->tables[i].n_rows);
			return;
		}
	}
}

static void compare_copies(void)
{
	struct place *v = x_new(files.n + 1, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < files.n; i++) {
		sqlite3 *db = open_copy(files.v[i]);

		if (db) {
			v[n].path = files.v[i];
			read_place(db, &v[n]);
			list_tables(db, &v[n]);
			for (int k = 0; k < v[n].n_tables; k++) {
				digest_table(db, &v[n], k);
			}
			for (size_t k = 0; k < n; k++) {
				compare(&v[k], &v[n]);
			}
			n++;
			sqlite3_close(db);
		}
	}
	free(v);
}

/* Only when two stand at the same place, and have not been compared there. */
void oracle_compare_copies(void)
{
	static int64_t compared;
	int64_t common = oracle_common_position();

	if (common > 0 && common != compared) {
		compare_copies();
		compared = common;
	}
}

/* ---- at the end ---------------------------------------------------------- */

/* What weftd knows to be missing: left as it was, to be repaired, or taken away by others; or what
 * it cannot know, as it does not read. A ring's program is -1,-1. */
static bool is_known_gone(sqlite3 *db, const char *device, struct optics_xc xc)
{
	sqlite3_stmt *st;
	bool known;

	if (oracle_is_left(device, xc) ||
	    (!oracle_reads_often() && oracle_is_disturbed(device, 0))) {
		return true;
	}
	sqlite3_prepare_v2(db, "SELECT 1 FROM repair WHERE device = ?1 AND in_port = ?2 AND "
			   "out_port = ?3 UNION ALL SELECT 1 FROM external_change WHERE "
			   "device = ?1 AND in_port = ?2 AND out_port = ?3 AND resolved_ns = 0",
			   -1, &st, NULL);
	sqlite3_bind_text(st, 1, device, -1, SQLITE_STATIC);
	sqlite3_bind_int(st, 2, xc.in);
	sqlite3_bind_int(st, 3, xc.out);
	known = sqlite3_step(st) == SQLITE_ROW;
	sqlite3_finalize(st);
	return known;
}

/* "[[IN,OUT,PROOF],...]" */
static void check_intent(sqlite3 *db, const char *path, const char *device, const char *text)
{
	struct optics_xc xc;

	for (const char *at = text; (at = strchr(at, '[')); at++) {
		if (sscanf(at, "[%d,%d", &xc.in, &xc.out) == 2 && !oracle_device_has(device, xc) &&
		    !is_known_gone(db, device, xc)) {
			sim_fail("intent", "%s intends %d,%d of %s, which does not have it",
				 path, xc.in, xc.out, device);
		}
	}
}

/* False: one is open, and explains what is not as intended. */
static bool check_open_changes(sqlite3 *db, const char *path)
{
	sqlite3_stmt *st;
	bool none = true;

	sqlite3_prepare_v2(db, "SELECT id, verdict, summary FROM change WHERE verdict IN "
			   "('running', 'interrupted', 'stuck') AND superseded_by IS NULL", -1,
			   &st, NULL);
	while (sqlite3_step(st) == SQLITE_ROW) {
		sim_fail("open change", "%s: change %lld is %s: %s", path,
			 (long long)sqlite3_column_int64(st, 0), sqlite3_column_text(st, 1),
			 sqlite3_column_text(st, 2));
		none = false;
	}
	sqlite3_finalize(st);
	return none;
}

static void check_file(const char *path, sqlite3 *db)
{
	sqlite3_stmt *st;

	if (!check_open_changes(db, path)) {
		return;
	}
	sqlite3_prepare_v2(db, "SELECT device, circuits, program FROM intent_device", -1, &st,
			   NULL);
	while (sqlite3_step(st) == SQLITE_ROW) {
		const char *device = (const char *)sqlite3_column_text(st, 0);

		check_intent(db, path, device, (const char *)sqlite3_column_text(st, 1));
		if (sqlite3_column_bytes(st, 2) == RING_DIGEST_LEN &&
		    !oracle_ring_has(device, sqlite3_column_blob(st, 2)) &&
		    !is_known_gone(db, device, (struct optics_xc){ -1, -1 })) {
			sim_fail("intent", "%s: %s does not run the programs that are intended",
				 path, device);
		}
	}
	sqlite3_finalize(st);
}

static void check_place(const struct place *first, const struct place *p)
{
	if (strcmp(first->log, p->log) != 0) {
		return;
	}
	if (first->position == p->position &&
	    memcmp(first->digest, p->digest, sizeof(p->digest)) != 0) {
		sim_fail("copies differ", "%s and %s are both at %" PRId64 ", and know of another "
			 "log", first->path, p->path, p->position);
	}
	if (first->position != p->position) {
		sim_fail("behind", "%s is at %" PRId64 " of the log, and %s at %" PRId64,
			 first->path, first->position, p->path, p->position);
	}
}

void oracle_check_files(void)
{
	struct place *v = x_new(files.n + 1, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < files.n; i++) {
		sqlite3 *db = open_copy(files.v[i]);

		if (!db) {
			sim_fail("store", "%s cannot be read", files.v[i]);
			continue;
		}
		check_file(files.v[i], db);
		v[n].path = files.v[i];
		read_place(db, &v[n]);
		for (size_t k = 0; k < n; k++) {
			check_place(&v[k], &v[n]);
		}
		n++;
		sqlite3_close(db);
	}
	free(v);
	compare_copies();
}
