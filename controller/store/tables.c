/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables, one migration a version; docs/store.md explains those of today.
 *
 * No table or column is given another meaning under its name: an older weftd reads what a
 * newer one wrote as long as it finds all of its own. A migration is never edited once a weft that
 * writes it was released: stores of every version are brought up step by step, in one transaction.
 * What SQL cannot do is in migrate.c.
 */
#include "controller/store/private.h"

static const char v1[] =
	"PRAGMA application_id = 2003134068;" /* "weft" */
	"CREATE TABLE config ("
	"  hash TEXT PRIMARY KEY,"
	"  text BLOB NOT NULL"
	") STRICT;"
	"CREATE TABLE program ("
	"  digest BLOB PRIMARY KEY CHECK (length(digest) = 32),"
	"  steps INTEGER NOT NULL,"
	"  settings INTEGER NOT NULL,"
	"  data BLOB NOT NULL CHECK (length(data) = settings * 9)"
	") STRICT;"
	"CREATE TABLE change ("
	"  id INTEGER PRIMARY KEY AUTOINCREMENT,"
	"  generation INTEGER NOT NULL,"
	"  started_ns INTEGER NOT NULL,"
	"  ended_ns INTEGER,"
	"  who TEXT NOT NULL,"
	"  comment TEXT NOT NULL,"
	"  config_name TEXT NOT NULL,"
	"  config TEXT NOT NULL REFERENCES config (hash),"
	"  verdict TEXT NOT NULL CHECK (verdict IN ('running', 'interrupted',"
	"    'stuck', 'committed', 'refused', 'rolled back', 'aborted')),"
	"  undoing INTEGER NOT NULL DEFAULT 0 CHECK (undoing IN (0, 1)),"
	"  summary TEXT NOT NULL DEFAULT '',"
	"  superseded_by INTEGER REFERENCES change (id)"
	") STRICT;"
	"CREATE UNIQUE INDEX one_running ON change (verdict)"
	"  WHERE verdict = 'running';"
	"CREATE INDEX change_config ON change (config);"
	"CREATE TABLE state ("
	"  one INTEGER PRIMARY KEY CHECK (one = 1),"
	"  uuid TEXT NOT NULL,"
	"  generation INTEGER NOT NULL,"
	"  fence INTEGER NOT NULL,"
	"  applied INTEGER REFERENCES change (id)"
	") STRICT;"
	"CREATE TABLE journal_device ("
	"  change INTEGER NOT NULL REFERENCES change (id),"
	"  seq INTEGER NOT NULL,"
	"  device TEXT NOT NULL,"
	"  is_ring INTEGER NOT NULL CHECK (is_ring IN (0, 1)),"
	"  old_program BLOB REFERENCES program (digest),"
	"  new_program BLOB REFERENCES program (digest),"
	"  PRIMARY KEY (change, seq),"
	"  UNIQUE (change, device)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE journal_step ("
	"  change INTEGER NOT NULL,"
	"  device_seq INTEGER NOT NULL,"
	"  seq INTEGER NOT NULL,"
	"  op TEXT NOT NULL CHECK (op IN ('del', 'add', 'keep', 'load')),"
	"  in_port INTEGER NOT NULL,"
	"  out_port INTEGER NOT NULL,"
	"  state TEXT NOT NULL CHECK (state IN ('planned', 'sent', 'done',"
	"    'denied', 'unknown', 'as before', 'as planned')),"
	"  note TEXT NOT NULL DEFAULT '',"
	"  PRIMARY KEY (change, device_seq, seq),"
	"  FOREIGN KEY (change, device_seq)"
	"    REFERENCES journal_device (change, seq)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE intent_device ("
	"  device TEXT PRIMARY KEY,"
	"  program BLOB REFERENCES program (digest)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE intent_circuit ("
	"  device TEXT NOT NULL REFERENCES intent_device (device),"
	"  in_port INTEGER NOT NULL,"
	"  out_port INTEGER NOT NULL,"
	"  PRIMARY KEY (device, in_port, out_port)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE observed_device ("
	"  device TEXT PRIMARY KEY,"
	"  read_at_ns INTEGER NOT NULL,"
	"  epoch TEXT NOT NULL,"
	"  identity TEXT NOT NULL,"
	"  program_digest BLOB CHECK (length(program_digest) = 32)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE observed_circuit ("
	"  device TEXT NOT NULL REFERENCES observed_device (device),"
	"  in_port INTEGER NOT NULL,"
	"  out_port INTEGER NOT NULL,"
	"  PRIMARY KEY (device, in_port, out_port)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE audit ("
	"  id INTEGER PRIMARY KEY AUTOINCREMENT,"
	"  at_ns INTEGER NOT NULL,"
	"  change INTEGER NOT NULL,"
	"  device TEXT NOT NULL,"
	"  kind TEXT NOT NULL CHECK (kind IN ('command', 'reply', 'event')),"
	"  text TEXT NOT NULL"
	") STRICT;"
	"CREATE INDEX audit_change ON audit (change, id);";

/* Programs are packed, several to a ring, under another digest. What version 1
 * kept is no longer known by any device, so rings count as dark: the next
 * apply loads what its jobs need. */
static const char v2[] = "UPDATE journal_device SET old_program = NULL, new_program = NULL;"
	"UPDATE intent_device SET program = NULL;"
	"UPDATE observed_device SET program_digest = NULL;"
	"DROP TABLE program;"
	"CREATE TABLE program ("
	"  digest BLOB PRIMARY KEY CHECK (length(digest) = 32),"
	"  data BLOB NOT NULL"
	") STRICT;";

/* Changes to be confirmed, requests remembered. */
static const char v3[] = "ALTER TABLE change ADD COLUMN request TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE change ADD COLUMN confirm_within_ns INTEGER NOT NULL"
	"  DEFAULT 0;"
	"ALTER TABLE change ADD COLUMN proof INTEGER NOT NULL DEFAULT 0;"
	"CREATE INDEX change_request ON change (request) WHERE request <> '';"
	"CREATE TABLE confirm ("
	"  one INTEGER PRIMARY KEY CHECK (one = 1),"
	"  change INTEGER NOT NULL REFERENCES change (id),"
	"  by_ns INTEGER NOT NULL,"
	"  back_to INTEGER NOT NULL REFERENCES change (id)"
	") STRICT;";

/* Jobs of orchestrators. */
static const char v4[] = "CREATE TABLE job ("
	"  id INTEGER PRIMARY KEY AUTOINCREMENT,"
	"  name TEXT NOT NULL,"
	"  who TEXT NOT NULL,"
	"  request TEXT NOT NULL,"
	"  spec TEXT NOT NULL,"
	"  nodes TEXT NOT NULL DEFAULT '',"
	"  state TEXT NOT NULL CHECK (state IN ('queued', 'starting',"
	"    'running', 'ending', 'ended', 'failed')),"
	"  problem TEXT NOT NULL DEFAULT '',"
	"  priority INTEGER NOT NULL DEFAULT 0,"
	"  preemptible INTEGER NOT NULL DEFAULT 0 CHECK (preemptible IN (0, 1)),"
	"  duration_ns INTEGER NOT NULL DEFAULT 0,"
	"  asked_ns INTEGER NOT NULL DEFAULT 0,"
	"  started_ns INTEGER NOT NULL DEFAULT 0,"
	"  ended_ns INTEGER NOT NULL DEFAULT 0"
	") STRICT;";

/* Parts of the fabric that get no new light. */
static const char v5[] = "CREATE TABLE hold ("
	"  what TEXT PRIMARY KEY,"
	"  who TEXT NOT NULL,"
	"  reason TEXT NOT NULL,"
	"  since_ns INTEGER NOT NULL"
	") STRICT, WITHOUT ROWID;";

/* Circuits that a change leaves alone, dead as they are (SQLite changes a
 * CHECK only by copying); jobs that are repaired. */
static const char v6[] = "CREATE TABLE journal_step_6 ("
	"  change INTEGER NOT NULL,"
	"  device_seq INTEGER NOT NULL,"
	"  seq INTEGER NOT NULL,"
	"  op TEXT NOT NULL CHECK (op IN ('del', 'add', 'keep', 'load',"
	"    'leave')),"
	"  in_port INTEGER NOT NULL,"
	"  out_port INTEGER NOT NULL,"
	"  state TEXT NOT NULL CHECK (state IN ('planned', 'sent', 'done',"
	"    'denied', 'unknown', 'as before', 'as planned')),"
	"  note TEXT NOT NULL DEFAULT '',"
	"  PRIMARY KEY (change, device_seq, seq),"
	"  FOREIGN KEY (change, device_seq)"
	"    REFERENCES journal_device (change, seq)"
	") STRICT, WITHOUT ROWID;"
	"INSERT INTO journal_step_6 SELECT change, device_seq, seq, op,"
	"  in_port, out_port, state, note FROM journal_step;"
	"DROP TABLE journal_step;"
	"ALTER TABLE journal_step_6 RENAME TO journal_step;"
	"ALTER TABLE job ADD COLUMN repairs INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE job ADD COLUMN repair_ns INTEGER NOT NULL DEFAULT 0;";

/* Changes belong to traces of their orchestrators. */
static const char v7[] = "ALTER TABLE change ADD COLUMN trace TEXT NOT NULL DEFAULT '';";

/* Circuits that a change was committed without. */
static const char v8[] = "CREATE TABLE repair ("
	"  device TEXT NOT NULL,"
	"  in_port INTEGER NOT NULL,"
	"  out_port INTEGER NOT NULL,"
	"  change INTEGER NOT NULL,"
	"  since_ns INTEGER NOT NULL,"
	"  why TEXT NOT NULL,"
	"  PRIMARY KEY (device, in_port, out_port)"
	") STRICT, WITHOUT ROWID;";

/* Who leads, where several weftd share the store. */
static const char v9[] = "CREATE TABLE lease ("
	"  one INTEGER PRIMARY KEY CHECK (one = 1),"
	"  holder TEXT NOT NULL,"
	"  beat INTEGER NOT NULL"
	") STRICT;"
	"INSERT INTO lease VALUES (1, '', 0);";

/* What circuits lose while they are well. */
static const char v10[] = "CREATE TABLE circuit_loss ("
	"  device TEXT NOT NULL,"
	"  in_port INTEGER NOT NULL,"
	"  out_port INTEGER NOT NULL,"
	"  mdb INTEGER NOT NULL,"
	"  PRIMARY KEY (device, in_port, out_port)"
	") STRICT, WITHOUT ROWID;";

/* How far each circuit was proven; how long things take to come back, and how
 * long they were away. */
static const char v11[] = "ALTER TABLE journal_step ADD COLUMN proof INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE intent_circuit ADD COLUMN proof INTEGER NOT NULL"
	"  DEFAULT 0;"
	"ALTER TABLE repair ADD COLUMN layer INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE change ADD COLUMN expected_down_ns INTEGER NOT NULL"
	"  DEFAULT 0;"
	"ALTER TABLE change ADD COLUMN down_ns INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE change ADD COLUMN down_by INTEGER NOT NULL DEFAULT 0;"
	"CREATE TABLE timing ("
	"  kind TEXT NOT NULL CHECK (kind IN ('reactivation', 'switching')),"
	"  name TEXT NOT NULL,"
	"  seq INTEGER NOT NULL,"
	"  ns INTEGER NOT NULL,"
	"  PRIMARY KEY (kind, name, seq)"
	") STRICT, WITHOUT ROWID;";

/* Changes of light by others. */
static const char v12[] = "CREATE TABLE foreign_change ("
	"  id INTEGER PRIMARY KEY AUTOINCREMENT,"
	"  device TEXT NOT NULL,"
	"  kind TEXT NOT NULL CHECK (kind IN ('gone', 'appeared', 'dark',"
	"    'disabled', 'program')),"
	"  in_port INTEGER NOT NULL,"
	"  out_port INTEGER NOT NULL,"
	"  right_ns INTEGER NOT NULL,"
	"  noticed_ns INTEGER NOT NULL,"
	"  how TEXT NOT NULL,"
	"  who TEXT NOT NULL,"
	"  outcome TEXT NOT NULL DEFAULT 'open' CHECK (outcome IN ('open',"
	"    'restored', 'repaired', 'accepted', 'by itself')),"
	"  resolved_ns INTEGER NOT NULL DEFAULT 0,"
	"  change INTEGER NOT NULL DEFAULT 0,"
	"  given_up INTEGER NOT NULL DEFAULT 0 CHECK (given_up IN (0, 1))"
	") STRICT;"
	"CREATE UNIQUE INDEX foreign_open ON foreign_change (device, kind,"
	"  in_port, out_port) WHERE resolved_ns = 0;";

/* Requested jobs that have circuits, apart from the text of the fabric; what
 * was behind that text goes there by migrate.c. Tables by standard terms. */
static const char v13[] = "CREATE TABLE change_job ("
	"  change INTEGER NOT NULL REFERENCES change (id),"
	"  seq INTEGER NOT NULL,"
	"  name TEXT NOT NULL,"
	"  nodes TEXT NOT NULL,"
	"  collective TEXT NOT NULL,"
	"  topology TEXT NOT NULL,"
	"  algorithm TEXT NOT NULL,"
	"  ring TEXT NOT NULL,"
	"  size_bytes INTEGER NOT NULL,"
	"  channels INTEGER NOT NULL,"
	"  PRIMARY KEY (change, seq)"
	") STRICT, WITHOUT ROWID;"
	"ALTER TABLE foreign_change RENAME TO external_change;"
	"ALTER TABLE hold RENAME TO drain;"
	"ALTER TABLE change RENAME COLUMN down_by TO downtime_source;";

/* What was asked for with a request's id. */
static const char v14[] =
	"ALTER TABLE change ADD COLUMN arguments TEXT NOT NULL DEFAULT '';";

/* What jobs gain by a change. */
static const char v15[] = "CREATE TABLE change_gain ("
	"  change INTEGER NOT NULL REFERENCES change (id) ON DELETE CASCADE,"
	"  seq INTEGER NOT NULL,"
	"  job TEXT NOT NULL,"
	"  effect TEXT NOT NULL CHECK (effect IN ('changes', 'begins', 'ends')),"
	"  size_bytes INTEGER NOT NULL,"
	"  before_ns INTEGER NOT NULL,"
	"  before_whole_ns INTEGER NOT NULL,"
	"  after_ns INTEGER NOT NULL,"
	"  after_whole_ns INTEGER NOT NULL,"
	"  down_ns INTEGER NOT NULL,"
	"  PRIMARY KEY (change, seq)"
	") STRICT, WITHOUT ROWID;";

/* Of a store that others have too, how much of it is here; since when a leader leads. */
static const char v16[] = "CREATE TABLE replica ("
	"  one INTEGER PRIMARY KEY CHECK (one = 1),"
	"  position INTEGER NOT NULL,"
	"  log TEXT NOT NULL"
	") STRICT;"
	"INSERT INTO replica VALUES (1, 0, '');"
	"ALTER TABLE lease ADD COLUMN since_ns INTEGER NOT NULL DEFAULT 0;";

/* The circuits of a device in one value, as a change of a large fabric has tens of thousands
 * of steps. Who reads single ones has views by the names of the tables of before, older
 * versions of weft among them; weft itself does not, as a schema is not trusted to call
 * functions (store.c). */
#define AS_LETTER(state) \
	"CASE " state " WHEN 'planned' THEN 'p' WHEN 'sent' THEN 's' WHEN 'done' THEN 'd' " \
	"WHEN 'denied' THEN 'n' WHEN 'unknown' THEN 'u' WHEN 'as before' THEN 'b' " \
	"WHEN 'as planned' THEN 'a' END"
#define AS_STATE(letter) \
	"CASE " letter " WHEN 'p' THEN 'planned' WHEN 's' THEN 'sent' WHEN 'd' THEN 'done' " \
	"WHEN 'n' THEN 'denied' WHEN 'u' THEN 'unknown' WHEN 'b' THEN 'as before' " \
	"WHEN 'a' THEN 'as planned' END"
#define STEPS_OF_DEVICE \
	"(SELECT * FROM journal_step AS t WHERE t.change = journal_device.change " \
	"AND t.device_seq = journal_device.seq ORDER BY t.seq)"
#define CIRCUITS_OF(table, device) \
	"(SELECT * FROM " table " AS t WHERE t.device = " device ".device " \
	"ORDER BY t.in_port, t.out_port)"
#define PACK_ROWS \
	"UPDATE journal_device SET steps = (SELECT json_group_array(json_array(op, in_port, " \
	"  out_port)) FROM " STEPS_OF_DEVICE "), states = (SELECT coalesce(group_concat(" \
	AS_LETTER("state") ", ''), '') FROM " STEPS_OF_DEVICE "), notes = (SELECT " \
	"  json_group_object(CAST(seq AS TEXT), note) FILTER (WHERE note <> '') " \
	"  FROM " STEPS_OF_DEVICE ");" \
	"UPDATE intent_device SET circuits = (SELECT json_group_array(json_array(in_port, " \
	"  out_port, proof)) FROM " CIRCUITS_OF("intent_circuit", "intent_device") ");" \
	"INSERT INTO observed_map (device, circuits) SELECT device, (SELECT " \
	"  json_group_array(json_array(in_port, out_port)) FROM " \
	 CIRCUITS_OF("observed_circuit", "observed_device") ") " \
	"FROM observed_device;" \
	"DROP TABLE journal_step; DROP TABLE intent_circuit; DROP TABLE observed_circuit;"

static const char v17[] =
	"ALTER TABLE journal_device ADD COLUMN steps TEXT NOT NULL DEFAULT '[]';"
	"ALTER TABLE journal_device ADD COLUMN states TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE journal_device ADD COLUMN notes TEXT NOT NULL DEFAULT '{}';"
	"ALTER TABLE intent_device ADD COLUMN circuits TEXT NOT NULL DEFAULT '[]';"
	"CREATE TABLE observed_map ("
	"  device TEXT PRIMARY KEY REFERENCES observed_device (device),"
	"  circuits TEXT NOT NULL"
	") STRICT, WITHOUT ROWID;"
	PACK_ROWS
	"CREATE VIEW journal_step AS SELECT d.change, d.seq AS device_seq, s.key AS seq, "
	"  json_extract(s.value, '$[0]') AS op, json_extract(s.value, '$[1]') AS in_port, "
	"json_extract(s.value, '$[2]') AS out_port, "
	AS_STATE("substr(d.states, s.key + 1, 1)") " AS state, "
	"  coalesce(json_extract(d.notes, '$.\"' || s.key || '\"'), '') AS note, 0 AS proof "
	"FROM journal_device AS d, json_each(d.steps) AS s;"
	"CREATE VIEW intent_circuit AS SELECT d.device, json_extract(c.value, '$[0]') AS in_port, "
	"  json_extract(c.value, '$[1]') AS out_port, json_extract(c.value, '$[2]') AS proof "
	"FROM intent_device AS d, json_each(d.circuits) AS c;"
	"CREATE VIEW observed_circuit AS SELECT d.device, "
	"json_extract(c.value, '$[0]') AS in_port, "
	"  json_extract(c.value, '$[1]') AS out_port "
	"FROM observed_map AS d, json_each(d.circuits) AS c;";

/* No password stands in the text of a fabric: secrets.c. */
static const char v19[] = "";

/* Before the views, and with the rules that held for single rows. */
const char store_row_tables[] =
	"CREATE TEMP TABLE journal_step (change INTEGER NOT NULL, device_seq INTEGER NOT NULL, "
	"  seq INTEGER NOT NULL, op TEXT NOT NULL CHECK (op IN ('del', 'add', 'keep', 'load', "
	"  'leave')), in_port INTEGER NOT NULL, out_port INTEGER NOT NULL, state TEXT NOT NULL "
	"  CHECK (state IN ('planned', 'sent', 'done', 'denied', 'unknown', 'as before', "
	"  'as planned')), note TEXT NOT NULL DEFAULT '', proof INTEGER NOT NULL DEFAULT 0, "
	"  PRIMARY KEY (change, device_seq, seq)) STRICT;"
	"CREATE TEMP TABLE intent_circuit (device TEXT NOT NULL, in_port INTEGER NOT NULL, "
	"  out_port INTEGER NOT NULL, proof INTEGER NOT NULL DEFAULT 0, "
	"  PRIMARY KEY (device, in_port, out_port)) STRICT;"
	"CREATE TEMP TABLE observed_circuit (device TEXT NOT NULL, in_port INTEGER NOT NULL, "
	"  out_port INTEGER NOT NULL, PRIMARY KEY (device, in_port, out_port)) STRICT;";
const char store_pack_rows[] = PACK_ROWS;

/* Of a copy, the digest of the log up to its place. */
static const char v18[] =
	"ALTER TABLE replica ADD COLUMN digest BLOB NOT NULL DEFAULT "
	"x'0000000000000000000000000000000000000000000000000000000000000000';";

/* One number over all rows and one over all else (digest.c), and how many transactions the file
 * has taken. */
static const char v20[] = "CREATE TABLE content ("
	"  one INTEGER PRIMARY KEY CHECK (one = 1),"
	"  rows INTEGER NOT NULL,"
	"  rest INTEGER NOT NULL,"
	"  written INTEGER NOT NULL"
	") STRICT;"
	"INSERT INTO content VALUES (1, 0, 0, 0);";

/* Jobs on request may name ports, or be circuits. Of a copy, up to where others have it too. */
static const char v21[] = "ALTER TABLE change_job ADD COLUMN ports TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE change_job ADD COLUMN circuits TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE replica ADD COLUMN published INTEGER NOT NULL DEFAULT 0;";

/* Which topologies a change has chosen, that they stay when other ports work. */
static const char v22[] =
	"ALTER TABLE change ADD COLUMN topologies TEXT NOT NULL DEFAULT '';";

/* The part that is drained with the commit, as the change empties it. */
static const char v23[] = "ALTER TABLE change ADD COLUMN empties TEXT NOT NULL DEFAULT '';";

/* Starts that jobs in the queue were told, and ends of those that make room. */
static const char v24[] = "ALTER TABLE job ADD COLUMN told_ns INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE job ADD COLUMN preempt_ns INTEGER NOT NULL DEFAULT 0;";

/* How intended circuits were at the reading, and since when. */
static const char v25[] = "ALTER TABLE observed_map ADD COLUMN ages TEXT NOT NULL DEFAULT '[]';";

const char *const store_migrations[STORE_VERSION] = {
	v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16, v17, v18,
	v19, v20, v21, v22, v23, v24, v25,
};
