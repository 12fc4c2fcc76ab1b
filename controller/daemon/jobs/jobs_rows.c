/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs as messages: for those who look, with how each circuit is, and for those who wait, with each
 * state that the job comes to, until it runs (or has ended, for a release). A client that goes away
 * leaves its job as it is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "controller/proto_convert/proto_convert.h"
#include "controller/proto_convert/report.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define MAX_CALLS 64		/* that wait for one job */

_Static_assert((int)msg_job_state(STORE_JOB_FAILED) ==
	       (int)WEFT__V1__JOB_STATE__JOB_STATE_FAILED,
	       "the API's states are those of the store");

/* ---- how a circuit is ---------------------------------------------------- */

struct circuit_row {
	Weft__V1__CircuitState m;
	Weft__V1__Number loss;
};

static int by_circuit(const void *a, const void *b)
{
	return optics_xc_cmp(a, &((const struct drv_xc *)b)->xc);
}

/* As its device lists the light from one port to the other, or NULL, and how far that is proven. */
static const struct drv_xc *find_light(const struct job *j, const struct model_fabric *f,
				       int tx, int rx, enum apply_level *level)
{
	const struct apply *apply = j->jobs->env->apply;
	const int device = f->ports[tx].tx_device;
	const struct drv_snapshot *s = &apply_devices(apply, &(int){ 0 })[device].snap;
	const int in = f->ports[tx].tx_port, out = f->ports[rx].rx_port;
	const bool swap = f->devices[device].any_to_any && in > out;
	const struct optics_xc xc = { swap ? out : in, swap ? in : out };
	const enum apply_level its = apply_circuit(apply, device, xc).level;

	*level = its < *level ? its : *level;
	return s->n_xcs == 0 ? NULL :
	       bsearch(&xc, s->xcs, (size_t)s->n_xcs, sizeof(*s->xcs), by_circuit);
}

/* One lane, on one device. False: it is not all there; what does not answer may have it. */
static bool read_lane(const struct job *j, const struct model_fabric *f, int a, int z,
		      struct circuit_row *row)
{
	const int device = f->ports[a].tx_device;
	const struct apply_device *d = apply_devices(j->jobs->env->apply, &(int){ 0 }) + device;
	enum apply_level level = APPLY_ERROR_FREE;
	const struct drv_xc *x = find_light(j, f, a, z, &level);
	const bool listed = x && (row->m.simplex || find_light(j, f, z, a, &level));

	row->m.proof = msg_proof(level);
	row->m.problem = (char *)(level > APPLY_UNVERIFIED ? "" :
				  !d->reachable ? "is not known, as its device does not answer" :
				  listed ? "is listed, and has no light" : "is not there");
	if (x && x->has_loss) {
		weft__v1__number__init(&row->loss);
		row->loss.value = x->loss_mdb;
		row->m.loss_mdb = &row->loss;
	}
	return level > APPLY_UNVERIFIED || !d->reachable;
}

/* Over fibres between switches what is known is known of the job as a whole. */
static void read_crossing(const struct job *j, struct circuit_row *row)
{
	row->m.proof = j->rate >= 1 ? WEFT__V1__PROOF__PROOF_READ_BACK
				    : WEFT__V1__PROOF__PROOF_UNVERIFIED;
	row->m.problem = (char *)(j->rate >= 1 ? "" : "its job has lost light");
}

/* Its nth circuit, by the last readings. False: it should be there, and is not. */
static bool circuit_row_init(struct circuit_row *row, const struct job *j, size_t nth)
{
	const Weft__V1__CircuitEnds *c = j->req->circuits[nth];
	const struct model_fabric *f = apply_fabric(j->jobs->env->apply);
	int a, z, lanes, more;
	bool good = true;

	weft__v1__circuit_state__init(&row->m);
	row->m.from = c->from;
	row->m.to = c->to;
	row->m.simplex = c->simplex;
	if (!f || !job_lives(j) || model_find_port(f, c->from, &a, &lanes, NULL) ||
	    model_find_port(f, c->to, &z, &more, NULL)) {
		return true;
	}
	if (f->ports[a].tx_device >= 0 && f->ports[a].tx_device == f->ports[z].rx_device) {
		row->m.device = f->devices[f->ports[a].tx_device].name;
		row->m.in = f->ports[a].tx_port + 1;
		row->m.out = f->ports[z].rx_port + 1;
	}
	if (j->s.state != STORE_JOB_RUNNING) {
		return true;
	}
	if (!row->m.device[0]) {
		read_crossing(j, row);
		return j->rate >= 1;
	}
	for (int l = 0; l < lanes && l < more && good; l++) {
		good = read_lane(j, f, a + l, z + l, row);
	}
	return good;
}

/* ---- as messages --------------------------------------------------------- */

/* A text cut into words. */
struct words {
	char *text, **list;
	size_t n;
};

struct job_row {
	Weft__V1__Job m;
	struct words nodes, ports;
	struct circuit_row *circuits;	/* [m.n_circuits] */
	struct buf spec;	/* what was asked for, as JSON */
	struct buf missing;	/* circuits that are not there */
	char who[64];		/* the name of who asked */
};

static void row_fini(struct job_row *row)
{
	free(row->nodes.text);
	free(row->nodes.list);
	free(row->ports.text);
	free(row->ports.list);
	free(row->circuits);
	free(row->m.circuits);
	buf_fini(&row->spec);
	buf_fini(&row->missing);
}

static void cut_words(struct words *w, const char *text)
{
	char *rest, *name;

	w->text = x_dup(text);
	w->list = x_new(strlen(text) / 2 + 2, sizeof(*w->list));
	rest = w->text;
	while ((name = strsep(&rest, " ")) != NULL) {
		if (*name) {
			w->list[w->n++] = name;
		}
	}
}

/* Each circuit, and how many of them are there. */
static void add_circuits(struct job_row *row, const struct job *j)
{
	const size_t n = j->req->n_circuits;
	size_t good = 0;

	row->circuits = x_new(n + 1, sizeof(*row->circuits));
	row->m.circuits = x_new(n + 1, sizeof(*row->m.circuits));
	row->m.n_circuits = n;
	for (size_t i = 0; i < n; i++) {
		const struct circuit_row *c = &row->circuits[i];
		const bool is_good = circuit_row_init(&row->circuits[i], j, i);

		row->m.circuits[i] = &row->circuits[i].m;
		good += is_good;
		if (!is_good && row->missing.len < STORE_NOTE_MAX) {
			buf_printf(&row->missing, "%s%s - %s %s", row->missing.len ? "; " : "",
				   c->m.from, c->m.to, c->m.problem);
		}
	}
	if (j->s.state == STORE_JOB_RUNNING && good < n) {
		row->m.rate = (double)good / (double)n;
		row->m.problem = j->s.problem[0] ? j->s.problem : (char *)buf_cstr(&row->missing);
	}
}

static void add_estimate(Weft__V1__Job *m, const struct job *j)
{
	m->estimated_start_at_ns = j->s.told_ns ? j->s.told_ns : j->foreseen_ns;
	m->estimate_kind = j->s.told_ns ? WEFT__V1__ESTIMATE_KIND__ESTIMATE_KIND_EXACT :
			   j->foreseen_ns ? WEFT__V1__ESTIMATE_KIND__ESTIMATE_KIND_PROFILE :
			   WEFT__V1__ESTIMATE_KIND__ESTIMATE_KIND_UNKNOWN;
}

static void row_init(struct job_row *row, const struct job *j)
{
	const struct model_request value = job_value(j);

	memset(row, 0, sizeof(*row));
	weft__v1__job__init(&row->m);
	cut_words(&row->nodes, j->s.nodes);
	cut_words(&row->ports, j->ports);
	row->m.nodes = row->nodes.list;
	row->m.n_nodes = row->nodes.n;
	row->m.ports = row->ports.list;
	row->m.n_ports = j->req->port_count > 0 ? 1 : row->ports.n;
	plan_request_json(&value, &row->spec);
	row->m.id = j->s.id;
	row->m.name = j->s.name;
	row->m.who = (char *)user_name(j->s.who, row->who, sizeof(row->who));
	row->m.state = msg_job_state(j->s.state);
	row->m.problem = j->s.problem;
	row->m.position = job_position(j);
	row->m.spec = (char *)buf_cstr(&row->spec);
	row->m.priority = j->s.priority;
	row->m.preemptible = j->s.preemptible;
	row->m.duration_ns = j->s.duration_ns;
	row->m.requested_at_ns = j->s.asked_ns;
	row->m.started_at_ns = j->s.started_ns;
	row->m.ended_at_ns = j->s.ended_ns;
	row->m.preempt_at_ns = j->s.preempt_ns;
	if (j->s.state == STORE_JOB_QUEUED) {
		add_estimate(&row->m, j);
	}
	row->m.repair = j->req->repair ? j->req->repair
				       : WEFT__V1__JOB_REPAIR__JOB_REPAIR_DEGRADED;
	row->m.rate = j->s.state == STORE_JOB_RUNNING ? j->rate : 0;
	row->m.repairs = j->s.repairs;
	if (j->req->n_circuits > 0) {
		add_circuits(row, j);
	}
}

struct job_row *job_row_new(const struct job *j, Weft__V1__Job **m)
{
	struct job_row *row = x_new(1, sizeof(*row));

	row_init(row, j);
	*m = &row->m;
	return row;
}

void job_row_free(struct job_row *row)
{
	row_fini(row);
	free(row);
}

/* ---- those who wait ------------------------------------------------------ */

/* Running, and if it is of circuits they have been looked for since weftd began. */
static bool is_seen_running(const struct job *j)
{
	return j->s.state == STORE_JOB_RUNNING &&
	       (j->req->n_circuits == 0 || j->jobs->env->was_read);
}

/* Whether a call has what it waits for, or never will. */
static bool is_over_for(const struct job *j, const struct job_call *c)
{
	return !job_lives(j) || (!c->release && (is_seen_running(j) || j->req->no_wait));
}

/* For a request, a job that failed or was released meanwhile is an error. */
static void finish_call(const struct job *j, const struct job_call *c)
{
	struct err err = { 0 };

	if (!c->release && j->s.state == STORE_JOB_FAILED) {
		err_set(&err, j->code ? j->code : WEFT_EINFEASIBLE, "%s", j->s.problem);
		rpc_finish_err(c->call, &err);
	} else if (!c->release && j->s.state == STORE_JOB_ENDED) {
		err_set(&err, WEFT_ECANCELED, "the job was released");
		rpc_finish_err(c->call, &err);
	} else {
		rpc_finish(c->call, RPC_OK, NULL);
	}
}

/* Sends the job to a call that waits; false when it waits no more. */
static bool send_job(const struct job *j, const struct job_call *c)
{
	struct err err = { 0 };
	struct job_row row;
	int r;

	row_init(&row, j);
	r = rpc_send(c->call, &row.m.base, &err);
	row_fini(&row);
	if (r) {
		rpc_finish_err(c->call, &err);
		return false;
	}
	if (is_over_for(j, c)) {
		finish_call(j, c);
		return false;
	}
	return true;
}

void job_send_to_all(struct job *j)
{
	size_t kept = 0;

	for (size_t i = 0; i < j->calls.n; i++) {
		struct job_call c = j->calls.v[i];

		if (send_job(j, &c)) {
			j->calls.v[kept++] = c;
		}
	}
	j->calls.n = kept;
}

static void on_gone(struct rpc_call *call, void *arg)
{
	struct job *j = arg;

	for (size_t i = 0; i < j->calls.n; i++) {
		if (j->calls.v[i].call == call) {
			j->calls.v[i] = j->calls.v[--j->calls.n];
			return;
		}
	}
}

void job_attach(struct job *j, struct rpc_call *call, bool release)
{
	struct job_call c = { call, release };
	struct err err = { 0 };

	if (j->calls.n >= MAX_CALLS) {
		err_set(&err, WEFT_ELIMIT, "more than %d calls wait for job "
			"%s", MAX_CALLS, j->s.name);
		rpc_finish_err(call, &err);
		return;
	}
	if (!j->moved && !send_job(j, &c)) {
		return;
	}
	vec_push(&j->calls, c);
	rpc_call_on_cancel(call, on_gone, j);
}

/* When it is to start, and when it was. */
static void tell_start(const struct job *j, const struct daemon_event *ev)
{
	char now[32], before[32];

	if (j->s.told_ns) {
		clk_iso(j->s.told_ns, now, sizeof(now));
	} else {
		snprintf(now, sizeof(now), "a time that is not known");
	}
	if (j->told_before_ns) {
		event_emit(j->jobs->env->events, ev, "job %s is to run by %s instead of %s%s%s",
			   j->s.name, now, clk_iso(j->told_before_ns, before, sizeof(before)),
			   j->why_later ? ": " : "", j->why_later ? j->why_later : "");
	} else {
		event_emit(j->jobs->env->events, ev, "job %s is to run by %s", j->s.name, now);
	}
}

void job_tell(struct job *j)
{
	const struct daemon_event ev = {
		.kind = EVENT_KIND(JOB),
	};

	if (j->moved) {
		event_emit(j->jobs->env->events, &ev, "job %s is %s%s%s", j->s.name,
			   store_job_state_name(j->s.state), j->s.problem[0] ? ": " : "",
			   j->s.problem);
	}
	if (j->retold && j->s.state == STORE_JOB_QUEUED) {
		tell_start(j, &ev);
	}
	j->moved = j->retold = false;
	job_send_to_all(j);
}

bool jobs_flush(struct jobs *jobs)
{
	VEC(struct store_job *) rows = { 0 };
	struct err err = { 0 };
	job_list moved = { 0 };
	int rc = 0;

	for (size_t i = 0; i < jobs->v.n; i++) {
		if (jobs->v.v[i]->moved || jobs->v.v[i]->retold) {
			vec_push(&moved, jobs->v.v[i]);
			vec_push(&rows, &jobs->v.v[i]->s);
		}
	}
	if (rows.n > 0) {
		rc = store_jobs_put(jobs->env->store, rows.v, (int)rows.n, &err);
	}
	if (rc && !jobs->refused) {
		log_error("jobs", "%zu jobs, as %s: %s", rows.n, rows.v[0]->name, err.msg);
	}
	jobs->refused = rc != 0;
	for (size_t i = 0; i < moved.n && rc == 0; i++) {
		job_tell(moved.v[i]);
	}
	vec_fini(&rows);
	vec_fini(&moved);
	return rc == 0;
}

/* ---- who looks ----------------------------------------------------------- */

void jobs_out(const struct jobs *jobs, struct out *o)
{
	out_array(o, "requests");
	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job_row row;

		if (job_lives(jobs->v.v[i])) {
			row_init(&row, jobs->v.v[i]);
			out_object(o, NULL);
			msg_out_fields(o, &row.m, NULL);
			out_end(o);
			row_fini(&row);
		}
	}
	out_end(o);
}

/* Who has the port that is asked for. WEFT_EINVAL: there is none. */
static int look_up_port(const struct jobs *jobs, const char *text, Weft__V1__ListJobsResponse *m,
			struct err *held, struct err *err)
{
	const struct model_fabric *f = apply_fabric(jobs->env->apply);
	int port, lanes, r;

	if (!f) {
		return err_set(err, WEFT_ENOTFOUND, "no configuration was ever applied");
	}
	r = port_by_names(f, text, &m->port, &port, &lanes, err);
	if (r == 0 && circuits_held(jobs, port, lanes, held)) {
		m->held = held->msg;
	}
	return r;
}

void handle_list_jobs(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__ListJobsRequest *q = (const void *)msg;
	Weft__V1__ListJobsResponse m = WEFT__V1__LIST_JOBS_RESPONSE__INIT;
	struct jobs *jobs = arg;
	struct job_row *rows = x_new(jobs->v.n + 1, sizeof(*rows));
	Weft__V1__Job **list = x_new(jobs->v.n + 1, sizeof(*list));
	struct err err = { 0 }, held = { 0 };
	char *const none = m.port;
	const int r = q->port[0] ? look_up_port(jobs, q->port, &m, &held, &err) : 0;

	m.jobs = list;
	jobs_foresee(jobs);
	for (size_t i = 0; i < jobs->v.n; i++) {
		const struct job *j = jobs->v.v[i];

		if ((job_lives(j) || q->include_ended) &&
		    (!q->name[0] || strcmp(q->name, j->s.name) == 0)) {
			struct job_row *row = &rows[m.n_jobs];

			list[m.n_jobs++] = &row->m;
			row_init(row, j);
		}
	}
	call_answer(call, r, &m.base, &err);
	if (m.port != none) {
		free(m.port);
	}
	for (size_t i = 0; i < m.n_jobs; i++) {
		row_fini(&rows[i]);
	}
	free(rows);
	free(list);
}
