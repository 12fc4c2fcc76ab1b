/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes: begin, commit, end; their history and configurations.
 *
 * A change is a row from its beginning, with its configuration and a journal of
 * every step. A commit moves the journal's circuits into the intent in one
 * transaction, and supersedes open changes before it; whatever ends otherwise
 * leaves the intent as it was. Requested jobs are kept for the applied change
 * and for open ones only: an older configuration comes back as the operator's
 * text, beside the jobs of that day.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/store/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

static const char *const verdict_names[] = {
	[STORE_RUNNING] = "running",
	[STORE_INTERRUPTED] = "interrupted",
	[STORE_STUCK] = "stuck",
	[STORE_COMMITTED] = "committed",
	[STORE_REFUSED] = "refused",
	[STORE_ROLLED_BACK] = "rolled back",
	[STORE_ABORTED] = "aborted",
};

#define N_VERDICTS (int)(sizeof(verdict_names) / sizeof(verdict_names[0]))
/* The columns of a change, in the order that read_change() wants them. */
#define COLUMNS \
	"id, generation, started_ns, ended_ns, who, comment, config_name, " \
	"config, verdict, undoing, summary, superseded_by, request, " \
	"confirm_within_ns, proof, trace, expected_down_ns, down_ns, downtime_source, " \
	"arguments"
#define IS_OPEN "(verdict IN ('running', 'interrupted', 'stuck') " \
	"AND superseded_by IS NULL)"

const char *store_verdict_name(enum store_verdict v)
{
	return verdict_names[v];
}

void store_order_copy(const struct change_order *from, struct change_order *to)
{
	*to = *from;
	to->who = x_dup(from->who ? from->who : "");
	to->comment = x_dup(from->comment ? from->comment : "");
	to->request_id = x_dup(from->request_id ? from->request_id : "");
}

void store_order_fini(struct change_order *o)
{
	free((char *)o->who);
	free((char *)o->comment);
	free((char *)o->request_id);
	memset(o, 0, sizeof(*o));
}

void store_change_fini(struct store_change *c)
{
	store_order_fini(&c->order);
	free(c->config_name);
	free(c->summary);
	memset(c, 0, sizeof(*c));
}

void store_history_free(struct store_change *v, int n)
{
	for (int i = 0; i < n; i++) {
		store_change_fini(&v[i]);
	}
	free(v);
}

void store_journal_fini(struct store_journal *j)
{
	for (int i = 0; i < j->n_works; i++) {
		struct store_work *w = &j->works[i];

		for (int k = 0; k < w->n_steps; k++) {
			free(w->steps[k].note);
		}
		free(w->device);
		free(w->steps);
		ring_programs_fini(&w->old_programs);
		ring_programs_fini(&w->new_programs);
	}
	free(j->works);
	store_gains_free(j->gains, j->n_gains);
	free(j->topologies);
	free(j->empties);
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

void store_config_fini(struct store_config *c)
{
	model_config_fini(&c->config);
	memset(c, 0, sizeof(*c));
}

/* ---- reading ------------------------------------------------------------- */

static int read_change(struct store *s, sqlite3_stmt *st, void *row, struct err *err)
{
	struct store_change *out = row;
	int verdict = store_name_index(verdict_names, N_VERDICTS, sqlite3_column_text(st, 8));

	memset(out, 0, sizeof(*out));
	if (verdict < 0) {
		return db_damaged(s, err, "the verdict of a change");
	}
	out->id = sqlite3_column_int64(st, 0);
	out->generation = sqlite3_column_int64(st, 1);
	out->started_ns = sqlite3_column_int64(st, 2);
	out->ended_ns = sqlite3_column_int64(st, 3);
	out->order.who = db_text(st, 4);
	out->order.comment = db_text(st, 5);
	out->config_name = db_text(st, 6);
	db_text_into(st, 7, out->config_hash, sizeof(out->config_hash));
	out->verdict = (enum store_verdict)verdict;
	out->undoing = sqlite3_column_int(st, 9);
	out->summary = db_text(st, 10);
	out->superseded_by = sqlite3_column_int64(st, 11);
	out->order.request_id = db_text(st, 12);
	out->order.confirm_within_ns = sqlite3_column_int64(st, 13);
	out->proof = sqlite3_column_int(st, 14);
	db_text_into(st, 15, out->order.trace, sizeof(out->order.trace));
	out->expected_down_ns = sqlite3_column_int64(st, 16);
	out->down_ns = sqlite3_column_int64(st, 17);
	out->downtime_source = sqlite3_column_int(st, 18);
	db_text_into(st, 19, out->order.arguments, sizeof(out->order.arguments));
	return 0;
}

static void free_change(void *row)
{
	store_change_fini(row);
}

int store_history(struct store *s, int64_t before, int limit,
		  struct store_change **v, int *n, struct err *err)
{
	static const struct db_row kind = { sizeof(struct store_change), read_change, free_change };
	struct db_rows rows;
	int rc = db_read_rows(s, err, &kind, &rows, "SELECT " COLUMNS " FROM change WHERE id < ? "
			      "ORDER BY id DESC LIMIT ?", "ii", before > 0 ? before : INT64_MAX,
			      (int64_t)limit);

	*v = rows.v;
	*n = rows.n;
	return rc;
}

static int read_open_change(struct store *s, sqlite3_stmt *st, void *row, struct err *err)
{
	struct store_journal *j = row;
	int rc = read_change(s, st, &j->change, err);

	return rc ? rc : store_works_read(s, j, err);
}

static void free_journal(void *row)
{
	store_journal_fini(row);
}

int store_open_changes(struct store *s, struct store_journal **v, int *n, struct err *err)
{
	static const struct db_row kind = { sizeof(struct store_journal), read_open_change,
					    free_journal };
	struct db_rows rows;
	int rc = db_read_rows(s, err, &kind, &rows, "SELECT " COLUMNS " FROM change WHERE " IS_OPEN
			      " ORDER BY id DESC", "");

	*v = rows.v;
	*n = rows.n;
	return rc;
}

static int no_change(struct err *err, int64_t id)
{
	return err_set(err, WEFT_ENOTFOUND, "there is no change %lld", (long long)id);
}

/* Reads the statement's one row and ends it. WEFT_ENOTFOUND without text. */
static int read_one(struct store *s, sqlite3_stmt *st, struct store_change *out, struct err *err)
{
	int rc = db_step(s, err, st);

	if (rc == 1) {
		rc = read_change(s, st, out, err);
	} else if (rc == 0) {
		rc = WEFT_ENOTFOUND;
	}
	db_release(s, st);
	return rc;
}

int store_change_get(struct store *s, int64_t id, struct store_change *out, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT " COLUMNS
			    " FROM change WHERE id = ?", "i", id);

	if (rc == 0) {
		rc = read_one(s, st, out, err);
	}
	return rc == WEFT_ENOTFOUND ? no_change(err, id) : rc;
}

int store_change_by_request(struct store *s, const char *request_id,
			    struct store_change *out, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT " COLUMNS
			    " FROM change WHERE request = ? AND request <> '' "
			    "ORDER BY id DESC LIMIT 1", "s", request_id);

	if (rc == 0) {
		rc = read_one(s, st, out, err);
	}
	return rc == WEFT_ENOTFOUND ?
		       err_set(err, WEFT_ENOTFOUND, "no change was asked for "
			       "with the id \"%.64s\"", request_id) : rc;
}

/* Appends the requests of a change to its configuration. */
static int read_requests(struct store *s, int64_t change, struct model_config *config,
			 struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st,
			    "SELECT name, nodes, collective, topology, algorithm, ring, "
			    "size_bytes, channels, ports, circuits FROM change_job "
			    "WHERE change = ? ORDER BY seq",
			    "i", change);

	if (rc) {
		return rc;
	}
	while ((rc = db_step(s, err, st)) == 1) {
		const struct model_request r = {
			.name = (char *)sqlite3_column_text(st, 0),
			.nodes = (char *)sqlite3_column_text(st, 1),
			.collective = (char *)sqlite3_column_text(st, 2),
			.topology = (char *)sqlite3_column_text(st, 3),
			.algorithm = (char *)sqlite3_column_text(st, 4),
			.ring = (char *)sqlite3_column_text(st, 5),
			.size_bytes = sqlite3_column_int64(st, 6),
			.channels = sqlite3_column_int(st, 7),
			.ports = (char *)sqlite3_column_text(st, 8),
			.circuits = (char *)sqlite3_column_text(st, 9),
		};

		model_config_add(config, &r);
	}
	db_release(s, st);
	return rc;
}

/* The hash of the operator's text, under which it is kept. */
static void hash_text(const struct model_config *config, char out[65])
{
	const struct model_config text = { .text = config->text, .len = config->len };

	model_config_hash(&text, out);
}

/* Name, text and hash of one row: a text that is not what its hash says is not handed out. */
static int read_config(struct store *s, sqlite3_stmt *st, struct model_config *out,
		       struct err *err)
{
	char hash[65];

	model_config_init(out, (const char *)sqlite3_column_text(st, 0),
			  sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1));
	hash_text(out, hash);
	return strcmp(hash, (const char *)sqlite3_column_text(st, 2)) == 0 ? 0 :
	       db_damaged(s, err, "a configuration is not what its hash says");
}

int store_change_config(struct store *s, int64_t id, struct store_config *out, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT config_name, text, hash FROM change "
			    "JOIN config ON config = hash WHERE id = ?", "i", id);

	memset(out, 0, sizeof(*out));
	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		out->change = id;
		rc = read_config(s, st, &out->config, err);
	} else if (rc == 0) {
		rc = no_change(err, id);
	}
	db_release(s, st);
	if (rc || (rc = read_requests(s, id, &out->config, err))) {
		store_config_fini(out);
		return rc;
	}
	model_config_hash(&out->config, out->hash);
	return 0;
}

int store_config(struct store *s, struct store_config *out, struct err *err)
{
	int64_t applied = 0;
	int rc = db_number(s, err, &applied, "SELECT applied FROM state "
			   "WHERE applied IS NOT NULL", "");

	memset(out, 0, sizeof(*out));
	if (rc) {
		return rc;
	}
	return applied ? store_change_config(s, applied, out, err) :
			 err_set(err, WEFT_ENOTFOUND,
				 "no configuration was applied yet");
}

int store_light_since(struct store *s, const char *begins, int64_t *since_ns, char **who,
		      struct err *err)
{
	sqlite3_stmt *st;
	int rc = s->newer ? 0 : db_prepare(s, err, &st,
			"SELECT ended_ns, who FROM change WHERE verdict = 'committed' AND id > "
			"coalesce((SELECT max(id) FROM change WHERE verdict = 'committed' AND "
			"instr(char(10) || topologies, char(10) || ?) = 0), 0) ORDER BY id LIMIT 1",
			"s", begins);

	*since_ns = 0;
	*who = NULL;
	if (rc == 0 && !s->newer) {
		rc = db_step(s, err, st);
		if (rc == 1) {
			*since_ns = sqlite3_column_int64(st, 0);
			*who = db_text(st, 1);
		}
		db_release(s, st);
	}
	return rc == 1 ? 0 : rc;
}

int store_topologies(struct store *s, int64_t change, char **out, struct err *err)
{
	sqlite3_stmt *st;
	int rc = s->newer ? 0 : db_prepare(s, err, &st, "SELECT topologies FROM change WHERE id = "
					   "coalesce(nullif(?, 0), (SELECT applied FROM state))",
					   "i", change);

	*out = NULL;
	if (rc == 0 && !s->newer) {
		rc = db_step(s, err, st);
		*out = rc == 1 ? db_text(st, 0) : NULL;
		db_release(s, st);
	}
	*out = *out ? *out : x_dup("");
	return rc == 1 ? 0 : rc;
}

/* ---- writing ------------------------------------------------------------- */

/* One change at a time, whichever process runs it. */
static int refuse_second(struct store *s, struct err *err)
{
	int64_t id = 0;
	int rc = db_number(s, err, &id, "SELECT id FROM change WHERE verdict = 'running'", "");

	return rc || !id ? rc : err_set(err, WEFT_ESTALE, "change %lld is under way",
					(long long)id);
}

int store_history_prune(struct store *s, int64_t keep, struct err *err)
{
	return db_run(s, err, "DELETE FROM change WHERE id <= "
		      "(SELECT max(id) FROM change) - ? AND NOT " IS_OPEN
		      " AND id NOT IN (SELECT applied FROM state "
		      "WHERE applied IS NOT NULL UNION ALL "
		      "SELECT superseded_by FROM change "
		      "WHERE superseded_by IS NOT NULL UNION ALL "
		      "SELECT change FROM confirm UNION ALL "
		      "SELECT back_to FROM confirm)", "i", keep);
}

/* The row of the change. Its configuration is kept once under its hash. */
static int insert_change(struct store *s, struct store_journal *j,
			 const struct model_config *config, int64_t now_ns, struct err *err)
{
	struct store_change *ch = &j->change;
	const struct change_order *o = &ch->order;
	int rc;

	hash_text(config, ch->config_hash);
	rc = db_run(s, err, "INSERT OR IGNORE INTO config VALUES (?, ?)", "sb", ch->config_hash,
		    config->text, (int)config->len);
	if (rc) {
		return rc;
	}
	return db_run(s, err,
		      "INSERT INTO change (generation, started_ns, who, comment, config_name, "
		      "config, verdict, request, arguments, confirm_within_ns, trace, "
		      "expected_down_ns, topologies, empties) "
		      "VALUES (?, ?, ?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?)",
		      "iissssssisiss", s->generation, now_ns, o->who ? o->who : "",
		      o->comment ? o->comment : "", config->name, ch->config_hash,
		      o->request_id ? o->request_id : "", o->arguments, o->confirm_within_ns,
		      o->trace, ch->expected_down_ns, j->topologies ? j->topologies : "",
		      j->empties ? j->empties : "");
}

int store_requests_put(struct store *s, int64_t change, const struct model_config *config,
		       struct err *err)
{
	int rc = 0;

	for (int i = 0; i < config->n_requests && rc == 0; i++) {
		const struct model_request *r = &config->requests[i];

		rc = db_run(s, err, "INSERT INTO change_job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
			    "?, ?)", "iissssssiiss", change, (int64_t)i, r->name, r->nodes,
			    r->collective, r->topology, r->algorithm, r->ring, r->size_bytes,
			    (int64_t)r->channels, r->ports, r->circuits);
	}
	return rc;
}

int store_begin(struct store *s, struct store_journal *j, const struct model_config *config,
		struct err *err)
{
	int64_t now_ns = clk_wall_ns(), id = 0;
	int rc = db_begin_deferred(s, err);

	if (rc) {
		return rc;
	}
	if ((rc = refuse_second(s, err)) || (rc = store_history_prune(s, STORE_HISTORY_MAX, err)) ||
	    (rc = insert_change(s, j, config, now_ns, err))) {
		return db_end(s, rc, err);
	}
	id = sqlite3_last_insert_rowid(s->db);
	rc = store_requests_put(s, id, config, err);
	if (rc == 0) {
		rc = store_works_put(s, j, id, err);
	}
	if (rc == 0) {
		rc = store_gains_put(s, j, id, err);
	}
	rc = db_end(s, rc, err);
	if (rc == 0) {
		j->change.id = id;
		j->change.verdict = STORE_RUNNING;
		j->change.generation = s->generation;
		j->change.started_ns = now_ns;
	}
	return rc;
}

int store_undoing(struct store *s, int64_t change, struct err *err)
{
	int rc = db_begin(s, err);

	if (rc) {
		return rc;
	}
	rc = db_run(s, err, "UPDATE change SET undoing = 1 WHERE id = ?", "i", change);
	return db_end(s, rc, err);
}

/* Ending is only for what is open. */
static int require_open(struct store *s, int64_t id, struct err *err)
{
	int64_t is_open = 0;
	int rc = db_number(s, err, &is_open, "SELECT 1 FROM change WHERE id = ? "
			   "AND " IS_OPEN, "i", id);

	return rc || is_open ? rc : err_set(err, WEFT_ENOTFOUND, "change %lld is not open",
					    (long long)id);
}

/* Journals and jobs of changes that are over; the applied one keeps its jobs. */
static int drop_closed_journals(struct store *s, struct err *err)
{
	static const char *const drops[] = {
		"DELETE FROM journal_device WHERE change NOT IN (SELECT id FROM change "
		"WHERE " IS_OPEN ")",
		"DELETE FROM change_job WHERE change NOT IN (SELECT id FROM change WHERE " IS_OPEN
		" UNION ALL SELECT applied FROM state WHERE applied IS NOT NULL)",
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(drops) / sizeof(drops[0]) && rc == 0; i++) {
		rc = db_run(s, err, drops[i], "");
	}
	if (rc) {
		return rc;
	}
	return store_sweep(s, err);
}

struct proven_circuit {
	struct optics_xc xc;	/* first, for optics_xc_cmp */
	int proof;
};

/* What the journal leaves on a device, sorted: *n of *v, the caller's. What stays is proven
 * no less than it was. */
static int list_proven(struct store *s, const struct store_work *w, struct proven_circuit **v,
		       int *n, struct err *err)
{
	struct store_light had;
	int rc = store_intent(s, w->device, &had, err);

	if (rc) {
		return rc;
	}
	*v = x_new((size_t)w->n_steps + 1, sizeof(**v));
	for (int i = 0; i < w->n_steps; i++) {
		const struct store_step *st = &w->steps[i];
		const struct optics_xc *old = st->op == STORE_ADD || !had.n_xcs ? NULL :
			bsearch(&st->xc, had.xcs, (size_t)had.n_xcs, sizeof(*had.xcs),
				optics_xc_cmp);
		int proof = old ? had.proofs[old - had.xcs] : 0;

		if (st->op == STORE_KEEP || st->op == STORE_ADD || st->op == STORE_LEAVE) {
			(*v)[(*n)++] = (struct proven_circuit){
				st->xc, st->proof > proof ? st->proof : proof };
		}
	}
	store_light_fini(&had);
	qsort(*v, (size_t)*n, sizeof(**v), optics_xc_cmp);
	return 0;
}

static int put_intent(struct store *s, int64_t change, const struct store_work *w,
		      struct err *err)
{
	struct proven_circuit *v = NULL;
	struct buf list = { 0 };
	int n = 0, rc = list_proven(s, w, &v, &n, err);

	for (int i = 0; i < n && rc == 0; i++) {
		store_put_circuit(&list, v[i].xc, &v[i].proof);
	}
	free(v);
	store_end_list(&list);
	if (rc == 0) {
		rc = db_run(s, err, "INSERT INTO intent_device (device, program, circuits) "
			    "SELECT device, new_program, ? FROM journal_device "
			    "WHERE change = ? AND device = ? ON CONFLICT (device) DO UPDATE SET "
			    "program = excluded.program, circuits = excluded.circuits "
			    "WHERE circuits <> excluded.circuits OR "
			    "program IS NOT excluded.program", "sis", buf_cstr(&list), change,
			    w->device);
	}
	buf_fini(&list);
	return rc;
}

/* Intent becomes what the journal leaves lit, as a change names every device that is to have
 * anything; what stays as it is is not written. */
static int move_intent(struct store *s, const struct store_journal *j, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < j->n_works && rc == 0; i++) {
		rc = put_intent(s, j->change.id, &j->works[i], err);
	}
	return rc ? rc : db_run(s, err, "DELETE FROM intent_device WHERE device NOT IN "
				"(SELECT device FROM journal_device WHERE change = ?)", "i",
				j->change.id);
}

/* The row keeps the generation that held once the change was over. */
static int close_change(struct store *s, int64_t id, enum store_verdict v,
			const char *summary, struct err *err)
{
	return db_run(s, err, "UPDATE change SET verdict = ?, ended_ns = ?, "
		      "summary = ?, generation = (SELECT generation "
		      "FROM state) WHERE id = ?", "sisi", verdict_names[v],
		      clk_wall_ns(), summary, id);
}

/* Older changes that were left open are over with this one. */
static int supersede(struct store *s, int64_t id, struct err *err)
{
	return db_run(s, err, "UPDATE change SET superseded_by = ? "
		      "WHERE id <> ? AND " IS_OPEN, "ii", id, id);
}

/* The generation in memory follows the file only after the commit. */
static int end_and_refresh(struct store *s, int rc, struct err *err)
{
	rc = db_end(s, rc, err);
	if (rc) {
		return rc;
	}
	return store_refresh(s, err);
}

/* Whatever waited waits no more; this change may have to wait itself. */
static int move_confirm(struct store *s, int64_t id, struct err *err)
{
	int rc = db_run(s, err, "DELETE FROM confirm", "");

	if (rc) {
		return rc;
	}
	return db_run(s, err,
		      "INSERT INTO confirm SELECT 1, c.id, ? + c.confirm_within_ns, "
		      "coalesce(st.applied, c.id) FROM change AS c, state AS st "
		      "WHERE c.id = ? AND c.confirm_within_ns > 0",
		      "ii", clk_wall_ns(), id);
}

int store_confirming(struct store *s, struct store_confirm *out, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT f.change, f.by_ns, "
			    "f.back_to, c.confirm_within_ns FROM confirm "
			    "AS f JOIN change AS c ON c.id = f.change", "");

	*out = (struct store_confirm){ 0 };
	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		out->change = sqlite3_column_int64(st, 0);
		out->by_ns = sqlite3_column_int64(st, 1);
		out->back_to = sqlite3_column_int64(st, 2);
		if (out->back_to == out->change) {
			out->back_to = 0;
		}
		out->within_ns = sqlite3_column_int64(st, 3);
		rc = 0;
	}
	db_release(s, st);
	return rc;
}

int store_confirm(struct store *s, struct err *err)
{
	int rc = db_begin(s, err);

	if (rc) {
		return rc;
	}
	return db_end(s, db_run(s, err, "DELETE FROM confirm", ""), err);
}

/* What the change has emptied is drained for its reason from now on. */
static int drain_emptied(struct store *s, int64_t id, struct err *err)
{
	return db_run(s, err, "INSERT INTO drain (what, who, reason, since_ns) "
		      "SELECT empties, who, comment, ? FROM change WHERE id = ? AND empties <> '' "
		      "ON CONFLICT (what) DO NOTHING", "ii", clk_wall_ns(), id);
}

/* Within a transaction. */
static int commit(struct store *s, const struct store_journal *j, const char *summary, int proof,
		  struct err *err)
{
	const int64_t change = j->change.id;
	int rc;

	if ((rc = require_open(s, change, err)) || (rc = move_intent(s, j, err)) ||
	    (rc = move_confirm(s, change, err)) || (rc = drain_emptied(s, change, err)) ||
	    (rc = store_repairs_prune(s, change, err)) ||
	    (rc = db_run(s, err, "UPDATE change SET proof = ?, down_ns = ?, downtime_source = ? "
			 "WHERE id = ?", "iiii", (int64_t)proof, j->change.down_ns,
			 (int64_t)j->change.downtime_source, change)) ||
	    (rc = db_run(s, err, "UPDATE state SET generation = generation + 1, applied = ?", "i",
			 change)) ||
	    (rc = close_change(s, change, STORE_COMMITTED, summary, err)) ||
	    (rc = supersede(s, change, err))) {
		return rc;
	}
	return drop_closed_journals(s, err);
}

int store_commit(struct store *s, int64_t change, const char *summary, int proof, struct err *err)
{
	struct store_journal j = { .change = { .id = change } };
	int rc = db_begin(s, err);

	if (rc) {
		return rc;
	}
	rc = store_works_read(s, &j, err);
	if (rc == 0) {
		rc = commit(s, &j, summary, proof, err);
	}
	store_journal_fini(&j);
	return end_and_refresh(s, rc, err);
}

int store_commit_proven(struct store *s, const struct store_journal *j,
			const char *summary, int proof, struct err *err)
{
	int rc = db_begin_deferred(s, err);

	return rc ? rc : end_and_refresh(s, commit(s, j, summary, proof, err), err);
}

int store_end(struct store *s, int64_t change, enum store_verdict verdict,
	      const char *summary, struct err *err)
{
	bool stays = verdict == STORE_INTERRUPTED || verdict == STORE_STUCK;
	int rc = db_begin(s, err);

	if (rc) {
		return rc;
	}
	rc = require_open(s, change, err);
	if (rc == 0 && stays) {
		rc = db_run(s, err, "UPDATE state SET generation = "
			    "generation + 1", "");
	}
	if (rc == 0 && (rc = close_change(s, change, verdict, summary, err)) == 0) {
		rc = drop_closed_journals(s, err);
	}
	return end_and_refresh(s, rc, err);
}
