/* SPDX-License-Identifier: Apache-2.0 */
/* A host has one collective at a time, of those that are on switches. Circuits share hosts, not
 * what their ports send or receive. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "controller/store/private.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/vec.h"
#include "tests/sim/cluster/cluster.h"
#include "tests/sim/oracle/oracle.h"
#include "tests/sim/oracle/oracle_parts.h"
#include "tests/sim/oracle/wraps.h"

/* A job that has hosts. */
struct placed {
	char uuid[37];
	int64_t id, since;
	bool starts;
	char *name, *claims;
};

static VEC(struct placed) placed;

static void forget(const struct store *s, int64_t id)
{
	for (size_t i = placed.n; i-- > 0;) {
		if (placed.v[i].id == id && strcmp(placed.v[i].uuid, s->uuid) == 0) {
			free(placed.v[i].name);
			free(placed.v[i].claims);
			placed.v[i] = placed.v[--placed.n];
		}
	}
}

/* A word of both, into out. */
static bool share_word(const char *a, const char *b, char *out, size_t size)
{
	char words[1024], *save = NULL;
	size_t len;

	snprintf(words, sizeof(words), "%s", a);
	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		len = strlen(w);
		for (const char *at = b; (at = strstr(at, w)); at += len) {
			if ((at == b || at[-1] == ' ') && (at[len] == ' ' || !at[len])) {
				snprintf(out, size, "%s", w);
				return true;
			}
		}
	}
	return false;
}

/* What it has alone, as words: its hosts, or what ports send and receive. The caller's. */
static char *claims_of(const struct store_job *j)
{
	Weft__V1__RequestJobRequest *req = NULL;
	struct buf b = { 0 };

	if (job_unpack(j->spec, &req, NULL)) {
		return x_dup(j->nodes ? j->nodes : "");
	}
	for (size_t i = 0; i < req->n_circuits; i++) {
		const Weft__V1__CircuitEnds *c = req->circuits[i];

		buf_printf(&b, "%s.tx %s.rx ", c->from, c->to);
		if (!c->simplex) {
			buf_printf(&b, "%s.rx %s.tx ", c->from, c->to);
		}
	}
	if (req->n_circuits == 0 && req->n_ports == 0 && req->port_count == 0) {
		buf_str(&b, j->nodes ? j->nodes : "");
	}
	rpc_free_message(&req->base);
	return b.data ? (char *)b.data : x_dup("");
}

/* What another process had placed may be in its store alone, and gone with that. */
static bool is_known(struct store *s, const struct placed *p)
{
	struct store_job *v = NULL;
	bool known = false;
	int n = 0;

	store_jobs(s, &v, &n, NULL);
	for (int i = 0; i < n; i++) {
		char *claims = claims_of(&v[i]);

		known = known || (v[i].id == p->id && strcmp(v[i].name, p->name) == 0 &&
				  strcmp(claims, p->claims) == 0);
		free(claims);
	}
	store_jobs_free(v, n);
	return known;
}

static void check_circuit(const struct store_job *j, const char *from, const char *to,
			  int64_t since)
{
	const char *device, *other;
	struct optics_xc xc;

	if (cluster_find_port(from, &device, &xc.in) && cluster_find_port(to, &other, &xc.out) &&
	    !oracle_device_has(device, xc) && !oracle_is_disturbed(device, since)) {
		sim_fail("running dark", "job %s runs, and %s to %s is not there (%s %d,%d)",
			 j->name, from, to, device, xc.in, xc.out);
	}
}

/* One that comes to run has what it asked for. */
static void check_circuits(const struct store_job *j, int64_t since)
{
	Weft__V1__RequestJobRequest *req = NULL;

	if (job_unpack(j->spec, &req, NULL)) {
		return;
	}
	for (size_t i = 0; i < req->n_circuits; i++) {
		const Weft__V1__CircuitEnds *c = req->circuits[i];

		check_circuit(j, c->from, c->to, since);
		if (!c->simplex) {
			check_circuit(j, c->to, c->from, since);
		}
	}
	rpc_free_message(&req->base);
}

/* Words as a JSON array. */
static void words_out(struct buf *b, const char *key, const char *words)
{
	const char *comma = "";

	buf_printf(b, ", \"%s\": [", key);
	for (size_t len; *words; words += len + (words[len] == ' ')) {
		len = strcspn(words, " ");
		if (len > 0) {
			buf_printf(b, "%s\"%.*s\"", comma, (int)len, words);
			comma = ", ";
		}
	}
	buf_str(b, "]");
}

/* For tests/sim/queue_replay.py: what the store took. */
static void tell_row(const struct store_job *j)
{
	Weft__V1__RequestJobRequest *req = NULL;
	struct buf needs = { 0 }, b = { 0 };
	char *claims = claims_of(j);

	if (job_unpack(j->spec, &req, NULL) == 0) {
		for (size_t i = 0; i < req->n_nodes; i++) {
			buf_printf(&needs, "%s ", req->nodes[i]);
		}
		rpc_free_message(&req->base);
	}
	words_out(&b, "claims", claims);
	words_out(&b, "needs", buf_cstr(&needs));
	sim_tell("queue row {\"at\": %" PRId64 ", \"id\": %" PRId64 ", \"name\": \"%s\", "
		 "\"state\": \"%s\", \"priority\": %d, \"preemptible\": %d, \"duration\": "
		 "%" PRId64 ", \"asked\": %" PRId64 ", \"started\": %" PRId64 ", \"told\": "
		 "%" PRId64 ", \"preempt\": %" PRId64 ", \"problem\": \"%s\"%s}", clk_wall_ns(),
		 j->id, j->name, store_job_state_name(j->state), j->priority, j->preemptible,
		 j->duration_ns, j->asked_ns, j->started_ns, j->told_ns, j->preempt_ns, j->problem,
		 buf_cstr(&b));
	free(claims);
	buf_fini(&needs);
	buf_fini(&b);
}

static void take_job(struct store *s, const struct store_job *j)
{
	char what[64];
	struct placed p = { .id = j->id, .since = sim_now(),
			    .starts = j->state == STORE_JOB_STARTING };

	for (size_t i = 0; i < placed.n && j->state == STORE_JOB_RUNNING; i++) {
		const struct placed *o = &placed.v[i];

		if (o->id == j->id && o->starts && strcmp(o->uuid, s->uuid) == 0) {
			check_circuits(j, o->since);
		}
	}
	forget(s, j->id);
	if (j->state != STORE_JOB_STARTING && j->state != STORE_JOB_RUNNING) {
		return;
	}
	p.claims = claims_of(j);
	for (size_t i = 0; i < placed.n; i++) {
		if (strcmp(placed.v[i].uuid, s->uuid) == 0 &&
		    strcmp(placed.v[i].name, j->name) != 0 &&	/* one replaces the other */
		    share_word(p.claims, placed.v[i].claims, what, sizeof(what)) &&
		    is_known(s, &placed.v[i])) {
			sim_fail("one job a host", "jobs %s and %s both have %s",
				 placed.v[i].name, j->name, what);
		}
	}
	memcpy(p.uuid, s->uuid, sizeof(p.uuid));
	p.name = x_dup(j->name);
	vec_push(&placed, p);
}

static int refused;	/* of those that come */

void oracle_refuse_jobs(int n)
{
	refused = n;
}

WRAP(int, store_jobs_put, struct store *s, struct store_job *const *v, int n, struct err *err)
{
	int rc = refused > 0 && refused-- ? err_set(err, WEFT_EIO, "jobs are refused")
					  : __real_store_jobs_put(s, v, n, err);

	for (int i = 0; i < n && rc == 0; i++) {
		take_job(s, v[i]);
		tell_row(v[i]);
	}
	return rc;
}
