/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes that there were, and the audit trail of what devices were sent. Both
 * are read from the store page by page: a client asks for the page before the
 * oldest entry that it has. An answer is bounded in lines and in bytes, as a trail
 * grows for years; what is bounded says so (`more`).
 */
#include <stdio.h>
#include <stdlib.h>

#include "controller/daemon/views/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"

#define HISTORY_LIMIT 100	/* changes, unless asked otherwise */
#define HISTORY_MAX 10000
#define AUDIT_LIMIT 200		/* lines */
#define AUDIT_MAX 5000
#define AUDIT_BYTES ((size_t)4 << 20)	/* of an answer's texts */

/* ---- changes ------------------------------------------------------------- */

char *outcome_name(enum store_verdict v)
{
	return v == STORE_ROLLED_BACK ? "rolled-back"
				      : (char *)store_verdict_name(v);
}

static char *or_empty(const char *s)
{
	return (char *)(s ? s : "");
}

void fill_change(Weft__V1__Change *m, const struct store_change *c)
{
	weft__v1__change__init(m);
	m->expected_down_ns = c->expected_down_ns;
	m->down_ns = c->down_ns;
	m->down_source = msg_proof(c->downtime_source);
	m->id = c->id;
	m->outcome = outcome_name(c->verdict);
	m->generation = c->generation;
	m->who = or_empty(c->order.who);
	m->comment = or_empty(c->order.comment);
	m->started_at_ns = c->started_ns;
	m->ended_at_ns = c->ended_ns;
	m->summary = or_empty(c->summary);
	m->config_name = or_empty(c->config_name);
	m->config_sha256 = (char *)c->config_hash;
	m->rolling_back = c->undoing;
	m->superseded_by = c->superseded_by;
	m->request_id = or_empty(c->order.request_id);
	m->trace_id = (char *)c->order.trace;
	m->proof = msg_proof(c->proof);
}

/* What the changes of a page did to jobs. */
struct gains_view {
	struct store_gain *stored;
	int n;
	struct msg_gain *m;
	Weft__V1__JobGain **list;	/* [n], as stored: by change */
};

static void gains_fini(struct gains_view *v)
{
	store_gains_free(v->stored, v->n);
	free(v->m);
	free(v->list);
}

/* A stored gain as a message; both are of the same figures. */
static void fill_gain(struct msg_gain *m, const struct store_gain *s)
{
	static const enum plan_effect effects[] = {
		[STORE_CHANGES] = PLAN_CHANGES, [STORE_BEGINS] = PLAN_BEGINS,
		[STORE_ENDS] = PLAN_ENDS,
	};

	msg_gain_init(m, &(struct plan_gain){
		.name = s->job, .effect = effects[s->effect], .size_bytes = s->size_bytes,
		.before_ns = s->before_ns, .before_whole_ns = s->before_whole_ns,
		.after_ns = s->after_ns, .after_whole_ns = s->after_whole_ns,
		.down_ns = s->down_ns,
	});
}

/* Changes and gains are both sorted, the newest change first. gains_fini also on
 * error. */
static int add_gains(const struct daemon_env *env, struct gains_view *v, Weft__V1__Change **changes,
		     int n, struct err *err)
{
	int k = 0, r;

	if (n == 0) {
		return 0;
	}
	r = store_gains(env->store, changes[n - 1]->id, changes[0]->id, &v->stored, &v->n, err);
	if (r) {
		return r;
	}
	v->m = x_new((size_t)v->n + 1, sizeof(*v->m));
	v->list = x_new((size_t)v->n + 1, sizeof(*v->list));
	for (int i = 0; i < n; i++) {
		changes[i]->jobs = &v->list[k];
		for (; k < v->n && v->stored[k].change == changes[i]->id; k++) {
			fill_gain(&v->m[k], &v->stored[k]);
			v->list[k] = &v->m[k].m;
			changes[i]->n_jobs++;
		}
	}
	return 0;
}

void handle_history(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__HistoryRequest *req = (const void *)msg;
	Weft__V1__HistoryResponse m = WEFT__V1__HISTORY_RESPONSE__INIT;
	const struct daemon_env *env = arg;
	int limit, n = 0;
	struct gains_view gains = { 0 };
	struct store_change *v = NULL;
	struct err err = { 0 };
	int r = call_limit(req->limit, HISTORY_LIMIT, HISTORY_MAX, &limit, &err);

	if (r == 0 &&
	    (r = store_history(env->store, req->before, limit, &v, &n, &err)) == 0) {
		m.changes = message_list(&weft__v1__change__descriptor, (size_t)n);
		for (int i = 0; i < n; i++) {
			fill_change(m.changes[m.n_changes++], &v[i]);
		}
		r = add_gains(env, &gains, m.changes, n, &err);
	}
	call_answer(call, r, &m.base, &err);
	gains_fini(&gains);
	store_history_free(v, n);
	free(m.changes);
}

/* ---- the audit trail ------------------------------------------------------ */

/* The answer of Audit and the memory that it points to. */
struct audit_view {
	Weft__V1__AuditResponse m;
	struct store_audit *stored;	/* [n], oldest first */
	int n;
	VEC(struct store_change) changes;	/* that the lines are of, each once */
};

static void audit_fini(struct audit_view *v)
{
	store_audit_free(v->stored, v->n);
	for (size_t i = 0; i < v->changes.n; i++) {
		store_change_fini(&v->changes.v[i]);
	}
	vec_fini(&v->changes);
	free(v->m.lines);
	free(v->m.changes);
}

/* Texts are borrowed from v->stored. */
static void fill_lines(struct audit_view *v)
{
	static char *const kinds[] = {
		[STORE_COMMAND] = "command", [STORE_REPLY] = "reply",
		[STORE_EVENT] = "event",
	};

	v->m.lines = message_list(&weft__v1__audit_line__descriptor, (size_t)v->n);
	for (int i = 0; i < v->n; i++) {
		Weft__V1__AuditLine *m = v->m.lines[v->m.n_lines++];

		m->id = v->stored[i].id;
		m->at_ns = v->stored[i].at_ns;
		m->change = v->stored[i].change;
		m->device = v->stored[i].device;
		m->kind = kinds[v->stored[i].kind];
		m->text = v->stored[i].text;
	}
}

/* Whether v->changes has it; 0 is no change, and is known. */
static bool is_known(const struct audit_view *v, int64_t change)
{
	for (size_t i = 0; i < v->changes.n; i++) {
		if (v->changes.v[i].id == change) {
			return true;
		}
	}
	return change == 0;
}

/* The changes of the lines, newest first; lines outlive the changes that they are
 * of, so one that is gone is no error. */
static int find_changes(const struct daemon_env *env, struct audit_view *v, struct err *err)
{
	int64_t last = 0;
	int r = 0;

	for (int i = v->n - 1; i >= 0 && r == 0; i--) {
		struct store_change c;
		int64_t id = v->stored[i].change;

		if (id == last || is_known(v, id)) {
			continue;
		}
		last = id;
		r = store_change_get(env->store, id, &c, err);
		if (r == 0) {
			vec_push(&v->changes, c);
		} else if (r == WEFT_ENOTFOUND) {
			err_clear(err);
			r = 0;
		}
	}
	return r;
}

static void fill_changes(struct audit_view *v)
{
	v->m.changes = message_list(&weft__v1__change__descriptor, v->changes.n);
	for (size_t i = 0; i < v->changes.n; i++) {
		fill_change(v->m.changes[v->m.n_changes++], &v->changes.v[i]);
	}
}

/* Reads a page, and whether there is an older one; audit_fini also on error. */
static int audit_init(const struct daemon_env *env, const Weft__V1__AuditRequest *req,
		      struct audit_view *v, struct err *err)
{
	struct store_audit_query q = {
		.change = req->change, .device = req->device,
		.since_ns = req->since_at_ns, .before = req->before, .max_bytes = AUDIT_BYTES,
	}, older;
	struct store_audit *rest = NULL;
	int n_rest = 0;
	int r = call_limit(req->limit, AUDIT_LIMIT, AUDIT_MAX, &q.limit, err);

	if (r || (r = store_audit_read(env->store, &q, &v->stored, &v->n, err))) {
		return r;
	}
	if (v->n > 0) {
		older = q;
		older.before = v->stored[0].id;
		older.limit = 1;
		r = store_audit_read(env->store, &older, &rest, &n_rest, err);
		v->m.more = n_rest > 0;
		store_audit_free(rest, n_rest);
	}
	if (r) {
		return r;
	}
	fill_lines(v);
	r = find_changes(env, v, err);
	if (r) {
		return r;
	}
	fill_changes(v);
	return 0;
}

void handle_audit(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	struct audit_view v = { .m = WEFT__V1__AUDIT_RESPONSE__INIT };
	struct err err = { 0 };
	int r = audit_init(arg, (const Weft__V1__AuditRequest *)msg, &v, &err);

	call_answer(call, r, &v.m.base, &err);
	audit_fini(&v);
}
