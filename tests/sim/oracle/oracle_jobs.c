/* SPDX-License-Identifier: Apache-2.0 */
/* A host has one collective at a time, of those that are on switches. Circuits share hosts, not
 * ports, which the rule about intents sees to. */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "controller/store/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"
#include "tests/sim/oracle/oracle.h"
#include "tests/sim/oracle/oracle_parts.h"
#include "tests/sim/oracle/wraps.h"

/* A job that has hosts. */
struct placed {
	char uuid[37];
	int64_t id;
	char *name, *nodes;
};

static VEC(struct placed) placed;

static void forget(const struct store *s, int64_t id)
{
	for (size_t i = placed.n; i-- > 0;) {
		if (placed.v[i].id == id && strcmp(placed.v[i].uuid, s->uuid) == 0) {
			free(placed.v[i].name);
			free(placed.v[i].nodes);
			placed.v[i] = placed.v[--placed.n];
		}
	}
}

/* A word of both, into out. */
static bool share_node(const char *a, const char *b, char *out, size_t size)
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

static bool shares_hosts(const struct store_job *j)
{
	Weft__V1__RequestJobRequest *req = NULL;
	bool shares;

	if (job_unpack(j->spec, &req, NULL)) {
		return false;
	}
	shares = req->n_circuits > 0 || req->n_ports > 0 || req->port_count > 0;
	rpc_free_message(&req->base);
	return shares;
}

/* What another process had placed may be in its store alone, and gone with that. */
static bool is_known(struct store *s, const struct placed *p)
{
	struct store_job *v = NULL;
	bool known = false;
	int n = 0;

	store_jobs(s, &v, &n, NULL);
	for (int i = 0; i < n; i++) {
		known = known || (v[i].id == p->id && strcmp(v[i].name, p->name) == 0 &&
				  v[i].nodes && strcmp(v[i].nodes, p->nodes) == 0);
	}
	store_jobs_free(v, n);
	return known;
}

static void take_job(struct store *s, const struct store_job *j)
{
	char host[64];
	struct placed p = { .id = j->id };

	forget(s, j->id);
	if ((j->state != STORE_JOB_STARTING && j->state != STORE_JOB_RUNNING) || shares_hosts(j)) {
		return;
	}
	for (size_t i = 0; i < placed.n; i++) {
		if (strcmp(placed.v[i].uuid, s->uuid) == 0 &&
		    share_node(j->nodes, placed.v[i].nodes, host, sizeof(host)) &&
		    is_known(s, &placed.v[i])) {
			sim_fail("one job a host", "jobs %s and %s both have host %s",
				 placed.v[i].name, j->name, host);
		}
	}
	memcpy(p.uuid, s->uuid, sizeof(p.uuid));
	p.name = x_dup(j->name);
	p.nodes = x_dup(j->nodes);
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
	}
	return rc;
}
