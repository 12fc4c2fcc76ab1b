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
#include "lib/base/clock.h"
#include "lib/base/vec.h"

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
#define IS_OPEN "(verdict IN ('running', 'interrupted', 'stuck') " \
	"AND superseded_by IS NULL)"

const char *store_verdict_name(enum store_verdict v)
{
	return verdict_names[v];
}

void store_change_fini(struct store_change *c)
{
	free(c->who);
	free(c->trace);
	free(c->comment);
	free(c->config_name);
	free(c->summary);
	free(c->request_id);
	memset(c, 0, sizeof(*c));
}

void store_history_free(struct store_change *v, int n)
{
	for (int i = 0; i < n; i++) {
		store_change_fini(&v[i]);
	}
	free(v);
}

void store_config_fini(struct store_config *c)
{
	model_config_fini(&c->config);
	memset(c, 0, sizeof(*c));
}

/* ---- reading ------------------------------------------------------------- */

int store_change_read(struct store *s, sqlite3_stmt *st, struct store_change *out, struct err *err)
{
	int verdict = store_name_index(verdict_names, N_VERDICTS, sqlite3_column_text(st, 8));

	memset(out, 0, sizeof(*out));
	if (verdict < 0) {
		return db_damaged(s, err, "the verdict of a change");
	}
	out->id = sqlite3_column_int64(st, 0);
	out->generation = sqlite3_column_int64(st, 1);
	out->started_ns = sqlite3_column_int64(st, 2);
	out->ended_ns = sqlite3_column_int64(st, 3);
	out->who = db_text(st, 4);
	out->comment = db_text(st, 5);
	out->config_name = db_text(st, 6);
	db_text_into(st, 7, out->config_hash, sizeof(out->config_hash));
	out->verdict = (enum store_verdict)verdict;
	out->undoing = sqlite3_column_int(st, 9);
	out->summary = db_text(st, 10);
	out->superseded_by = sqlite3_column_int64(st, 11);
	out->request_id = db_text(st, 12);
	out->confirm_within_ns = sqlite3_column_int64(st, 13);
	out->proof = sqlite3_column_int(st, 14);
	out->trace = db_text(st, 15);
	out->expected_down_ns = sqlite3_column_int64(st, 16);
	out->down_ns = sqlite3_column_int64(st, 17);
	out->downtime_source = sqlite3_column_int(st, 18);
	db_text_into(st, 19, out->arguments, sizeof(out->arguments));
	if (!out->who || !out->comment || !out->config_name ||
	    !out->summary || !out->request_id || !out->trace) {
		store_change_fini(out);
		return err_nomem(err);
	}
	return 0;
}

int store_history(struct store *s, int64_t before, int limit,
		  struct store_change **v, int *n, struct err *err)
{
	VEC(struct store_change) list = { 0 };
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT " CHANGE_COLUMNS
			    " FROM change WHERE id < ? "
			    "ORDER BY id DESC LIMIT ?", "ii",
			    before > 0 ? before : INT64_MAX, (int64_t)limit);

	if (rc) {
		return rc;
	}
	while ((rc = db_step(s, err, st)) == 1) {
		struct store_change c;

		rc = store_change_read(s, st, &c, err);
		if (rc == 0 && vec_push(&list, c)) {
			store_change_fini(&c);
			rc = err_nomem(err);
		}
		if (rc) {
			break;
		}
	}
	sqlite3_finalize(st);
	if (rc) {
		store_history_free(list.v, (int)list.n);
		return rc;
	}
	*v = list.v;
	*n = (int)list.n;
	return 0;
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
		rc = store_change_read(s, st, out, err);
	} else if (rc == 0) {
		rc = WEFT_ENOTFOUND;
	}
	sqlite3_finalize(st);
	return rc;
}

int store_change_get(struct store *s, int64_t id, struct store_change *out, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT " CHANGE_COLUMNS
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
	int rc = db_prepare(s, err, &st, "SELECT " CHANGE_COLUMNS
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
			    "size_bytes, channels FROM change_job WHERE change = ? ORDER BY seq",
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
		};

		rc = model_config_add(config, &r, err);
		if (rc) {
			break;
		}
	}
	sqlite3_finalize(st);
	return rc;
}

int store_change_config(struct store *s, int64_t id, struct store_config *out, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(
		s, err, &st,
		"SELECT config_name, text FROM change JOIN config ON config = hash WHERE id = ?",
		"i", id);

	memset(out, 0, sizeof(*out));
	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		out->change = id;
		rc = model_config_init(&out->config, (const char *)sqlite3_column_text(st, 0),
				       sqlite3_column_blob(st, 1),
				       (size_t)sqlite3_column_bytes(st, 1), err);
	} else if (rc == 0) {
		rc = no_change(err, id);
	}
	sqlite3_finalize(st);
	if (rc || (rc = read_requests(s, id, &out->config, err)) ||
	    (rc = model_config_hash(&out->config, out->hash, err))) {
		store_config_fini(out);
	}
	return rc;
}

int store_config(struct store *s, struct store_config *out, struct err *err)
{
	sqlite3_stmt *st;
	int64_t applied = 0;
	int rc = db_prepare(s, err, &st, "SELECT applied FROM state "
			    "WHERE applied IS NOT NULL", "");

	memset(out, 0, sizeof(*out));
	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		applied = sqlite3_column_int64(st, 0);
	}
	sqlite3_finalize(st);
	if (rc < 0) {
		return rc;
	}
	return applied ? store_change_config(s, applied, out, err) :
			 err_set(err, WEFT_ENOTFOUND,
				 "no configuration was applied yet");
}

/* ---- writing ------------------------------------------------------------- */

/* One change at a time, whichever process runs it. */
static int refuse_second(struct store *s, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT id FROM change "
			    "WHERE verdict = 'running'", "");

	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		rc = err_set(err, WEFT_ESTALE, "change %lld is under way",
			     (long long)sqlite3_column_int64(st, 0));
	}
	sqlite3_finalize(st);
	return rc;
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

static int insert_step(struct store *s, sqlite3_stmt *st, int64_t change, int work, int seq,
		       const struct store_step *step, struct err *err)
{
	int rc = db_bind(s, err, st, "iiisiiss", change, (int64_t)work, (int64_t)seq,
			 store_op_name(step->op), (int64_t)step->xc.in, (int64_t)step->xc.out,
			 store_step_state_name(step->state), step->note);

	if (rc) {
		return rc;
	}
	return db_finish(s, err, st);
}

/* A device of the journal: its programs before and after by digest, which are
 * NULL where it has none, and its steps in order. */
static int insert_work(struct store *s, sqlite3_stmt *st, int64_t change,
		       int seq, const struct store_work *w, struct err *err)
{
	uint8_t old_digest[RING_DIGEST_LEN], new_digest[RING_DIGEST_LEN];
	int rc = 0;

	if (w->has_old) {
		rc = store_program_put(s, &w->old_programs, old_digest, err);
	}
	if (rc == 0 && w->has_new) {
		rc = store_program_put(s, &w->new_programs, new_digest, err);
	}
	if (rc == 0) {
		rc = db_run(s, err, "INSERT INTO journal_device VALUES (?, ?, ?, ?, ?, ?)",
			    "iisibb", change, (int64_t)seq, w->device, (int64_t)w->is_ring,
			    w->has_old ? old_digest : NULL, RING_DIGEST_LEN,
			    w->has_new ? new_digest : NULL, RING_DIGEST_LEN);
	}
	for (int i = 0; i < w->n_steps && rc == 0; i++) {
		rc = insert_step(s, st, change, seq, i, &w->steps[i], err);
	}
	return rc;
}

static int insert_journal(struct store *s, const struct store_journal *j,
			  int64_t id, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "INSERT INTO journal_step "
			    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)", "");

	for (int i = 0; i < j->n_works && rc == 0; i++) {
		rc = insert_work(s, st, id, i, &j->works[i], err);
	}
	sqlite3_finalize(st);
	return rc;
}

/* The row of the change. Its configuration is kept once under its hash. */
static int insert_change(struct store *s, struct store_journal *j,
			 const struct model_config *config, int64_t now_ns, struct err *err)
{
	const struct model_config text = { .text = config->text, .len = config->len };
	struct store_change *ch = &j->change;
	int rc;

	if ((rc = model_config_hash(&text, ch->config_hash, err)) ||
	    (rc = db_run(s, err, "INSERT OR IGNORE INTO config VALUES (?, ?)", "sb",
			 ch->config_hash, config->text, (int)config->len))) {
		return rc;
	}
	return db_run(s, err,
		      "INSERT INTO change (generation, started_ns, who, comment, config_name, "
		      "config, verdict, request, arguments, confirm_within_ns, trace, "
		      "expected_down_ns) VALUES (?, ?, ?, ?, ?, ?, 'running', ?, ?, ?, ?, ?)",
		      "iissssssisi", s->generation, now_ns, ch->who ? ch->who : "",
		      ch->comment ? ch->comment : "", config->name, ch->config_hash,
		      ch->request_id ? ch->request_id : "", ch->arguments, ch->confirm_within_ns,
		      ch->trace ? ch->trace : "", ch->expected_down_ns);
}

int store_requests_put(struct store *s, int64_t change, const struct model_config *config,
		       struct err *err)
{
	int rc = 0;

	for (int i = 0; i < config->n_requests && rc == 0; i++) {
		const struct model_request *r = &config->requests[i];

		rc = db_run(s, err, "INSERT INTO change_job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			    "iissssssii", change, (int64_t)i, r->name, r->nodes, r->collective,
			    r->topology, r->algorithm, r->ring, r->size_bytes,
			    (int64_t)r->channels);
	}
	return rc;
}

int store_begin(struct store *s, struct store_journal *j, const struct model_config *config,
		struct err *err)
{
	int64_t now_ns = clk_wall_ns(), id = 0;
	int rc = db_begin(s, err);

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
		rc = insert_journal(s, j, id, err);
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

int store_mark(struct store *s, const struct store_journal *j, int work,
	       int first, int n, struct err *err)
{
	const struct store_work *w = &j->works[work];
	sqlite3_stmt *st = NULL;
	int rc = db_begin(s, err);

	if (rc) {
		return rc;
	}
	rc = db_prepare(s, err, &st, "UPDATE journal_step SET state = ?, "
			"note = ? WHERE change = ? AND device_seq = ? "
			"AND seq = ?", "");
	for (int i = first; i < first + n && rc == 0; i++) {
		rc = db_bind(s, err, st, "ssiii", store_step_state_name(w->steps[i].state),
			     w->steps[i].note, j->change.id, (int64_t)work, (int64_t)i);
		if (rc == 0) {
			rc = db_finish(s, err, st);
		}
	}
	sqlite3_finalize(st);
	return db_end(s, rc, err);
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
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT 1 FROM change WHERE id = ? "
			    "AND " IS_OPEN, "i", id);

	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	sqlite3_finalize(st);
	if (rc == 1) {
		return 0;
	}
	if (rc) {
		return rc;
	}
	return err_set(err, WEFT_ENOTFOUND, "change %lld is not open", (long long)id);
}

/* Journals and jobs of changes that are over; the applied one keeps its jobs. */
static int drop_closed_journals(struct store *s, struct err *err)
{
	static const char *const drops[] = {
		"DELETE FROM journal_step WHERE change NOT IN (SELECT id FROM change WHERE " IS_OPEN
		")",
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

/* What stays is proven no less than it was. */
static int keep_proofs(struct store *s, int64_t id, struct err *err)
{
	return db_run(s, err, "UPDATE journal_step SET proof = i.proof FROM "
		      "journal_device AS d JOIN intent_circuit AS i ON "
		      "i.device = d.device WHERE d.change = ? AND "
		      "journal_step.change = d.change AND "
		      "journal_step.device_seq = d.seq AND journal_step.op IN "
		      "('keep', 'leave') AND journal_step.in_port = i.in_port "
		      "AND journal_step.out_port = i.out_port "
		      "AND journal_step.proof < i.proof", "i", id);
}

/* How far each circuit was proven, and how long light was away. */
static int write_proofs(struct store *s, const struct store_journal *j, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "UPDATE journal_step SET proof = ? "
			    "WHERE change = ? AND device_seq = ? AND seq = ?",
			    "");

	for (int i = 0; i < j->n_works; i++) {
		const struct store_work *w = &j->works[i];

		for (int k = 0; k < w->n_steps && rc == 0; k++) {
			if (w->steps[k].proof > 0) {
				rc = db_bind(s, err, st, "iiii", (int64_t)w->steps[k].proof,
					     j->change.id, (int64_t)i, (int64_t)k);
				if (rc == 0) {
					rc = db_finish(s, err, st);
				}
			}
		}
	}
	sqlite3_finalize(st);
	if (rc) {
		return rc;
	}
	return db_run(s, err, "UPDATE change SET down_ns = ?, downtime_source = ? WHERE id = ?",
		      "iii", j->change.down_ns, (int64_t)j->change.downtime_source,
		      j->change.id);
}

/* Intent becomes what the journal leaves lit. It is replaced as a whole, as a
 * change names every device that is to have anything. */
static int move_intent(struct store *s, int64_t id, struct err *err)
{
	int rc = keep_proofs(s, id, err);

	if (rc || (rc = db_run(s, err, "DELETE FROM intent_circuit", "")) ||
	    (rc = db_run(s, err, "DELETE FROM intent_device", "")) ||
	    (rc = db_run(s, err,
			 "INSERT INTO intent_device SELECT device, new_program FROM journal_device "
			 "WHERE change = ?",
			 "i", id))) {
		return rc;
	}
	return db_run(
		s, err,
		"INSERT INTO intent_circuit SELECT d.device, st.in_port, st.out_port, st.proof "
		"FROM journal_step AS st JOIN journal_device AS d ON d.change = st.change AND "
		"d.seq = st.device_seq WHERE d.change = ? AND st.op IN ('keep', 'add', 'leave')",
		"i", id);
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
	sqlite3_finalize(st);
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

/* j NULL: found true by reading, after a restart. */
static int commit(struct store *s, int64_t change, const struct store_journal *j,
		  const char *summary, int proof, struct err *err)
{
	int rc = db_begin(s, err);

	if (rc) {
		return rc;
	}
	rc = require_open(s, change, err);
	if (rc == 0 && j) {
		rc = write_proofs(s, j, err);
	}
	if (rc == 0 && (rc = move_intent(s, change, err)) == 0 &&
	    (rc = move_confirm(s, change, err)) == 0 &&
	    (rc = store_repairs_prune(s, change, err)) == 0 &&
	    (rc = db_run(s, err, "UPDATE change SET proof = ? WHERE id = ?", "ii", (int64_t)proof,
			 change)) == 0 &&
	    (rc = db_run(s, err, "UPDATE state SET generation = generation + 1, applied = ?", "i",
			 change)) == 0 &&
	    (rc = close_change(s, change, STORE_COMMITTED, summary, err)) == 0 &&
	    (rc = supersede(s, change, err)) == 0) {
		rc = drop_closed_journals(s, err);
	}
	return end_and_refresh(s, rc, err);
}

int store_commit(struct store *s, int64_t change, const char *summary, int proof, struct err *err)
{
	return commit(s, change, NULL, summary, proof, err);
}

int store_commit_proven(struct store *s, const struct store_journal *j,
			const char *summary, int proof, struct err *err)
{
	return commit(s, j->change.id, j, summary, proof, err);
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
