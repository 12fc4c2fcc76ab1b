/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of circuits that weft did not make, for people: as events when they
 * are noticed and when they are over, with each device in status and diff, and
 * all that are on record on request.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/change/change.h"
#include "lib/base/log.h"
#include "lib/base/vec.h"

#define LIST_LIMIT 100		/* records, unless asked otherwise */
#define LIST_MAX 5000

/* ---- events -------------------------------------------------------------- */

/* The n records of one kind, in one sentence: many circuits of a device
 * go at once when it restarts. */
static void emit(struct daemon_env *env, const struct store_external_change *first, int n)
{
	bool over = first->outcome != STORE_EXTERNAL_OPEN;
	const struct daemon_event ev = {
		.kind = over ? EVENT_KIND(EXTERNAL_CHANGE_RESOLVED) : EVENT_KIND(EXTERNAL_CHANGE),
		.device = first->device, .change = first->change,
	};
	char what[64], more[32] = "", by[48] = "";

	store_external_text(first, what, sizeof(what));
	if (n > 1) {
		snprintf(more, sizeof(more), " and %d more", n - 1);
	}
	if (first->change) {
		snprintf(by, sizeof(by), " by change %lld", (long long)first->change);
	}
	if (over) {
		event_emit(env->events, &ev, "%s: %s%s: %s%s", first->device, what, more,
			     store_external_outcome_name(first->outcome), by);
	} else {
		log_warn("weftd", "%s: %s%s, not by weft: %s", first->device,
			 what, more, first->who);
		event_emit(env->events, &ev, "%s: %s%s, not by weft: %s", first->device,
			     what, more, first->who);
	}
}

/* Called by the engine after a reading with what is new or over; records of the same
 * kind and outcome come one after the other. */
static void on_external(const struct store_external_change *v, int n, void *arg)
{
	for (int from = 0, i = 1; i <= n; i++) {
		if (i == n || v[i].outcome != v[from].outcome || v[i].kind != v[from].kind) {
			emit(arg, &v[from], i - from);
			from = i;
		}
	}
}

void external_changes_watch(struct daemon_env *env)
{
	apply_on_external(env->apply, on_external, env);
}

/* ---- messages ------------------------------------------------------------ */

/* Ports from 1, as people count them; strings are borrowed. */
static void fill(Weft__V1__ExternalChange *m, const struct store_external_change *f)
{
	m->id = f->id;
	m->device = (char *)f->device;
	m->kind = (char *)store_external_kind_name(f->kind);
	m->in = f->xc.in + 1;
	m->out = f->xc.out + 1;
	m->last_good_at_ns = f->right_ns;
	m->detected_at_ns = f->noticed_ns;
	m->detected_by = (char *)store_external_how_name(f->how);
	m->who = (char *)f->who;
	m->outcome = (char *)store_external_outcome_name(f->outcome);
	m->resolved_at_ns = f->resolved_ns;
	m->change = f->change;
	m->given_up = f->given_up;
}

int external_view_init(struct external_view *v, const struct daemon_env *env,
		      const struct store_external_query *q, struct err *err)
{
	int r = store_external_changes(env->store, q, &v->stored, &v->n_stored, err);

	if (r) {
		return r;
	}
	v->list = message_list(&weft__v1__external_change__descriptor, (size_t)v->n_stored);
	for (; v->n < (size_t)v->n_stored; v->n++) {
		fill(v->list[v->n], &v->stored[v->n]);
	}
	return 0;
}

void external_view_fini(struct external_view *v)
{
	free(v->stored);
	free(v->list);
	*v = (struct external_view){ 0 };
}

void handle_external_changes(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__ExternalChangesRequest *req = (const void *)msg;
	Weft__V1__ExternalChangesResponse m = WEFT__V1__EXTERNAL_CHANGES_RESPONSE__INIT;
	struct store_external_query q = {
		.device = req->device, .open = req->open, .before = req->before,
	};
	struct external_view v = { 0 };
	struct err err = { 0 };
	int r = call_limit(req->limit, LIST_LIMIT, LIST_MAX, &q.limit, &err);

	if (r == 0) {
		r = external_view_init(&v, arg, &q, &err);
	}

	m.n_changes = v.n;
	m.changes = v.list;
	call_answer(call, r, &m.base, &err);
	external_view_fini(&v);
}
