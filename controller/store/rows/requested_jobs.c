/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that orchestrators have asked for. */
#include <stdlib.h>
#include <string.h>

#include "controller/store/private.h"
#include "lib/base/alloc.h"

static const char *const state_names[] = {
	[STORE_JOB_QUEUED] = "queued", [STORE_JOB_STARTING] = "starting",
	[STORE_JOB_RUNNING] = "running", [STORE_JOB_ENDING] = "ending",
	[STORE_JOB_ENDED] = "ended", [STORE_JOB_FAILED] = "failed",
};

#define N_STATES (int)(sizeof(state_names) / sizeof(state_names[0]))
#define COLUMNS \
	"id, name, who, request, spec, nodes, state, problem, priority, " \
	"preemptible, duration_ns, asked_ns, started_ns, ended_ns, repairs, " \
	"repair_ns, told_ns, preempt_ns"

const char *store_job_state_name(enum store_job_state st)
{
	return state_names[st];
}

void store_job_fini(struct store_job *j)
{
	free(j->name);
	free(j->who);
	free(j->request_id);
	free(j->spec);
	free(j->nodes);
	free(j->problem);
	memset(j, 0, sizeof(*j));
}

void store_jobs_free(struct store_job *v, int n)
{
	for (int i = 0; i < n; i++) {
		store_job_fini(&v[i]);
	}
	free(v);
}

static void free_job(void *row)
{
	store_job_fini(row);
}

static int read_job(struct store *s, sqlite3_stmt *st, void *row, struct err *err)
{
	struct store_job *out = row;
	int state = store_name_index(state_names, N_STATES, sqlite3_column_text(st, 6));

	if (state < 0) {
		return db_damaged(s, err, "the state of a job");
	}
	*out = (struct store_job){
		.id = sqlite3_column_int64(st, 0),
		.name = db_text(st, 1),
		.who = db_text(st, 2),
		.request_id = db_text(st, 3),
		.spec = db_text(st, 4),
		.nodes = db_text(st, 5),
		.state = (enum store_job_state)state,
		.problem = db_text(st, 7),
		.priority = sqlite3_column_int(st, 8),
		.preemptible = sqlite3_column_int(st, 9) != 0,
		.duration_ns = sqlite3_column_int64(st, 10),
		.asked_ns = sqlite3_column_int64(st, 11),
		.started_ns = sqlite3_column_int64(st, 12),
		.ended_ns = sqlite3_column_int64(st, 13),
		.repairs = sqlite3_column_int(st, 14),
		.repair_ns = sqlite3_column_int64(st, 15),
		.told_ns = sqlite3_column_int64(st, 16),
		.preempt_ns = sqlite3_column_int64(st, 17),
	};
	return 0;
}

int store_jobs(struct store *s, struct store_job **v, int *n, struct err *err)
{
	static const struct db_row kind = { sizeof(struct store_job), read_job, free_job };
	struct db_rows rows;
	int rc = db_read_rows(s, err, &kind, &rows, "SELECT " COLUMNS " FROM job ORDER BY id", "");

	*v = rows.v;
	*n = rows.n;
	return rc;
}

/* Forgets the oldest of those that are over. */
static int prune(struct store *s, struct err *err)
{
	return db_run(s, err, "DELETE FROM job WHERE state IN ('ended', "
		      "'failed') AND id NOT IN (SELECT id FROM job WHERE "
		      "state IN ('ended', 'failed') ORDER BY id DESC LIMIT ?)",
		      "i", (int64_t)STORE_JOBS_MAX);
}

/* Its id, when it is new, to *id. */
static int put_job(struct store *s, const struct store_job *j, int64_t *id, struct err *err)
{
	int rc = 0;

	*id = j->id;
	if (j->id == 0) {
		rc = db_run(s, err, "INSERT INTO job (name, who, request, "
			    "spec, state) VALUES (?, ?, ?, ?, 'queued')",
			    "ssss", j->name, j->who, j->request_id, j->spec);
		*id = sqlite3_last_insert_rowid(s->db);
	}
	return rc ? rc : db_run(s, err,
		"UPDATE job SET nodes = ?, state = ?, problem = ?, priority = ?, "
		"preemptible = ?, duration_ns = ?, asked_ns = ?, started_ns = ?, ended_ns "
		"= ?, repairs = ?, repair_ns = ?, told_ns = ?, preempt_ns = ? WHERE id = ?",
		"sssiiiiiiiiiii", j->nodes, state_names[j->state], j->problem,
		(int64_t)j->priority, (int64_t)j->preemptible, j->duration_ns, j->asked_ns,
		j->started_ns, j->ended_ns, (int64_t)j->repairs, j->repair_ns,
		j->told_ns, j->preempt_ns, *id);
}

int store_jobs_put(struct store *s, struct store_job *const *v, int n, struct err *err)
{
	int64_t *ids = x_new((size_t)n + 1, sizeof(*ids));
	int rc = db_begin(s, err);

	if (rc) {
		free(ids);
		return rc;
	}
	for (int i = 0; i < n && rc == 0; i++) {
		rc = put_job(s, v[i], &ids[i], err);
	}
	if (rc == 0) {
		rc = prune(s, err);
	}
	rc = db_end(s, rc, err);
	for (int i = 0; i < n && rc == 0; i++) {
		v[i]->id = ids[i];
	}
	free(ids);
	return rc;
}
