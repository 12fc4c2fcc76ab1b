/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports enabled and disabled and devices recovered, by hand: one operation in
 * a slot of its own, while no change runs or waits to be confirmed. Who asked,
 * why and what came of it is in the audit trail, with what was sent to the
 * device. Intent stays as it is: a circuit that goes shows as missing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/change/private.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/base/vec.h"

#define WHAT_MAX 64

/* One operation, from the call that asks for it to its answer. It is checked
 * twice: when it is asked for, to refuse at once, and when it has the slot, as
 * the fabric may be another one by then. */
struct maintenance_op {
	struct changes *changes;
	struct plan_request *slot;	/* once it has it */
	struct rpc_call *call;		/* NULL: gone */
	struct apply_maintenance what;	/* port from 0 */
	char device[CONF_MAX_NAME + 1];
	char words[WHAT_MAX];		/* "in 3 disabled" */
	char who[RPC_PEER_TEXT_MAX];
	char *reason;			/* "": none; owned */
	bool force;			/* also with intended circuits on the port */
	VEC(char *) interrupted;	/* these, as text; owned */
};

static void forget_interrupted(struct maintenance_op *c)
{
	for (size_t i = 0; i < c->interrupted.n; i++) {
		free(c->interrupted.v[i]);
	}
	vec_fini(&c->interrupted);
}

static void op_free(struct maintenance_op *c)
{
	forget_interrupted(c);
	free(c->reason);
	free(c);
}

/* ---- whose circuits go ---------------------------------------------------- */

/* The host at the far end of a port's fibre, or -1. */
static int far_host(const struct model_fabric *f, const int *far_ends, int port)
{
	return far_ends && far_ends[port] >= 0 ? f->ports[far_ends[port]].host : -1;
}

static bool runs_on(const struct model_job *job, int host)
{
	bool found = false;

	for (int i = 0; i < job->n_hosts; i++) {
		found = found || job->hosts[i] == host;
	}
	return found;
}

/* "in 3 -> out 4 (h0.1 to h1.1, job a)". */
static char *circuit_text(const struct model_fabric *f, int device, struct optics_xc xc)
{
	const struct model_device *md = &f->devices[device];
	int from = far_host(f, md->in_port, xc.in);
	int to = far_host(f, md->out_port, xc.out);
	const char *comma = "";
	struct buf b = { 0 };

	buf_printf(&b, "in %d -> out %d", xc.in + 1, xc.out + 1);
	if (from >= 0 && to >= 0) {
		buf_printf(&b, " (%s to %s", f->ports[md->in_port[xc.in]].name,
			   f->ports[md->out_port[xc.out]].name);
		comma = ", job ";
	}
	for (int i = 0; from >= 0 && to >= 0 && i < f->n_jobs; i++) {
		if (f->jobs[i].device < 0 && runs_on(&f->jobs[i], from) &&
		    runs_on(&f->jobs[i], to)) {
			buf_printf(&b, "%s%s", comma, f->jobs[i].name);
			comma = ", ";
		}
	}
	if (from >= 0 && to >= 0) {
		buf_char(&b, ')');
	}
	return buf_steal(&b);
}

static bool is_on_port(const struct model_device *md, struct optics_xc xc, struct drv_port_id port)
{
	return md->any_to_any ? xc.in == port.index || xc.out == port.index :
	       (port.is_out ? xc.out : xc.in) == port.index;
}

/* Intended circuits on the port. */
static void find_interrupted(struct maintenance_op *c, int device)
{
	const struct model_fabric *f = apply_fabric(c->changes->env->apply);
	const struct store_light *intent =
		apply_devices(c->changes->env->apply, &(int){ 0 })[device].intent;

	forget_interrupted(c);
	for (int i = 0; i < intent->n_xcs; i++) {
		if (is_on_port(&f->devices[device], intent->xcs[i], c->what.port)) {
			vec_push(&c->interrupted, circuit_text(f, device, intent->xcs[i]));
		}
	}
}

/* WEFT_ESTALE when it interrupts intended circuits and is not forced. */
static int check_interrupted(struct maintenance_op *c, int device, struct err *err)
{
	char more[32] = "";

	if (c->what.recovery || c->what.enable) {
		return 0;
	}
	find_interrupted(c, device);
	if (c->interrupted.n == 0 || c->force) {
		return 0;
	}
	if (c->interrupted.n > 1) {
		snprintf(more, sizeof(more), ", and %zu more", c->interrupted.n - 1);
	}
	err_set(err, WEFT_ESTALE, "%s: that interrupts circuit %.200s%s",
		c->device, c->interrupted.v[0], more);
	err_hint(err, "--force does it all the same");
	return err->code;
}

/* ---- may it be ----------------------------------------------------------- */

static int check_port(const struct maintenance_op *c, const struct model_device *md,
		      struct err *err)
{
	int n = c->what.port.is_out && !md->any_to_any ? md->n_out : md->n_in;

	if (c->what.recovery || (c->what.port.index >= 0 && c->what.port.index < n)) {
		return 0;
	}
	return err_set(err, WEFT_ENOTFOUND, "%s: there is no port %s %d",
		       c->device, c->what.port.is_out ? "out" : "in",
		       c->what.port.index + 1);
}

static int check_idle(const struct changes *all, struct err *err)
{
	if (all->now || apply_busy(all->env->apply)) {
		return err_set(err, WEFT_ESTALE, "a change is under way");
	}
	if (all->confirm.change) {
		return err_set(err, WEFT_ESTALE, "change %" PRId64 " waits for "
			       "its confirmation", all->confirm.change);
	}
	return drain_check_frozen(all->drain, err);
}

/* Everything that may speak against it, most general first. */
static int check(struct maintenance_op *c, struct err *err)
{
	const struct model_fabric *f = apply_fabric(c->changes->env->apply);
	int device = f ? model_find_device(f, c->device) : -1;
	int r = check_idle(c->changes, err);

	if (r) {
		return r;
	}
	if (device < 0) {
		return err_set(err, WEFT_ENOTFOUND, "no device is called "
			       "\"%s\"", c->device);
	}
	if ((r = apply_maintenance_check(c->changes->env->apply, c->device, &c->what, err)) ||
	    (r = check_port(c, &f->devices[device], err))) {
		return r;
	}
	return check_interrupted(c, device, err);
}

/* ---- it is done ---------------------------------------------------------- */

static void answer(const struct maintenance_op *c, const struct drv_outcome *o)
{
	Weft__V1__Maintenance m = WEFT__V1__MAINTENANCE__INIT;
	struct err err = { 0 };

	m.device = (char *)c->device;
	m.done = (char *)c->words;
	m.text = (char *)o->text;
	m.evidence = (char *)drv_evidence_name(o->evidence);
	m.interrupted = c->interrupted.v;
	m.n_interrupted = c->interrupted.n;
	call_answer(c->call, 0, &m.base, &err);
}

/* Durable before anything is sent: the reading before it is written first. */
static void note_begin(const struct maintenance_op *c)
{
	char text[RPC_PEER_TEXT_MAX + 256];

	snprintf(text, sizeof(text), "%s asked for by %s%s%.100s", c->words,
		 c->who, c->reason[0] ? ", " : "", c->reason);
	store_audit(c->changes->env->store, 0, c->device, STORE_EVENT, text);
}

/* What came of it, in the audit trail and as an event. */
static void note(const struct maintenance_op *c, const char *end)
{
	char text[RPC_PEER_TEXT_MAX + 512];
	const struct daemon_event ev = {
		.kind = EVENT_KIND(DEVICE_MAINTENANCE),
		.device = c->device };

	snprintf(text, sizeof(text), "%s by %s%s%.100s: %.200s", c->words,
		 c->who, c->reason[0] ? ", " : "", c->reason, end);
	store_audit(c->changes->env->store, 0, c->device, STORE_EVENT, text);
	event_emit(c->changes->env->events, &ev, "%s: %s", c->device, text);
}

/* The device has answered; its state was read again. */
static void on_done(int rc, const struct drv_outcome *o, const struct err *err, void *arg)
{
	struct maintenance_op *c = arg;
	struct plan_request *slot = c->slot;

	note(c, rc ? err->msg : o->text[0] ? o->text : "done, read back");
	if (c->call && rc) {
		rpc_finish_err(c->call, err);
	} else if (c->call) {
		answer(c, o);
	}
	op_free(c);
	plan_request_free(slot);
}

/* It has the slot: nothing plans or reads meanwhile. */
static void do_now(struct plan_request *slot)
{
	struct maintenance_op *c = slot->arg;
	struct err err = { 0 };
	int r = check(c, &err);

	c->slot = slot;
	if (r == 0) {
		note_begin(c);
		r = apply_maintain(c->changes->env->apply, c->device, &c->what, on_done, c, &err);
	}
	if (r == 0) {
		return;
	}
	if (c->call) {
		rpc_finish_err(c->call, &err);
	}
	op_free(c);
	plan_request_free(slot);
}

/* ---- calls --------------------------------------------------------------- */

/* Checks it, and queues it for its slot; `like` says what, the rest is of the call. */
static void start(struct changes *all, struct rpc_call *call, const char *device,
		  const char *reason, const struct maintenance_op *like)
{
	struct maintenance_op *c = x_new(1, sizeof(*c));
	struct err err = { 0 };

	*c = *like;
	c->reason = x_dup(reason);
	c->changes = all;
	c->call = call;
	snprintf(c->device, sizeof(c->device), "%s", device);
	rpc_peer_text(rpc_call_peer(call), c->who, sizeof(c->who));
	if (check(c, &err)) {
		op_free(c);
		rpc_finish_err(call, &err);
		return;
	}
	rpc_call_on_cancel(call, call_forget, &c->call);	/* it is done all the same */
	plan_queue_slot(all->queue, do_now, c);
}

void handle_set_port(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__SetPortRequest *req = (const void *)msg;
	struct maintenance_op c = {
		.what = { .port = { req->is_out, req->port - 1 },
			  .enable = req->enable },
		.force = req->force };

	snprintf(c.words, sizeof(c.words), "%s %d %s",
		 req->is_out ? "out" : "in", req->port,
		 req->enable ? "enabled" : "disabled");
	if (env_may_change(((struct changes *)arg)->env, call)) {
		start(arg, call, req->device, req->reason, &c);
	}
}

void handle_recover_device(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	static const enum drv_recovery kinds[] = {
		[WEFT__V1__RECOVERY__RECOVERY_HOMING] = DRV_HOMING,
		[WEFT__V1__RECOVERY__RECOVERY_RELOCK] = DRV_RELOCK,
		[WEFT__V1__RECOVERY__RECOVERY_CLEAR] = DRV_CLEAR,
	};
	const Weft__V1__RecoverRequest *req = (const void *)msg;
	struct maintenance_op c = { 0 };
	struct err err = { 0 };

	if (!env_may_change(((struct changes *)arg)->env, call)) {
		return;
	}
	if ((size_t)req->what >= sizeof(kinds) / sizeof(kinds[0]) || !kinds[req->what]) {
		err_set(&err, WEFT_EINVAL, "%s: no such recovery", req->device);
		rpc_finish_err(call, &err);
		return;
	}
	c.what.recovery = kinds[req->what];
	snprintf(c.words, sizeof(c.words), "%s", drv_recovery_name(c.what.recovery));
	start(arg, call, req->device, req->reason, &c);
}
