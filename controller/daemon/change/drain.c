/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the fabric that get no new circuits (drain), and the emergency
 * freeze. What has circuits keeps them: draining keeps new ones away from
 * ports, switches and hosts, freezing refuses every change. Both are entries of
 * one list in the store, which a restart finds again; the planner is kept away
 * from drained ports, and its plan is checked against the list again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/change/change.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"

#define NAME_SIZE (CONF_MAX_NAME + 16)

struct drain {
	struct daemon_env *env;
	struct store_drain *holds;	/* as in the store */
	int n_holds;
	void (*changed)(void *arg);	/* after an entry came or went */
	void *arg;
};

int drain_load(struct drain *d, struct err *err)
{
	struct store_drain *v;
	int n, r = store_drains(d->env->store, &v, &n, err);

	if (r == 0) {
		store_drains_free(d->holds, d->n_holds);
		d->holds = v;
		d->n_holds = n;
	}
	return r;
}

/* By name: "" is the frozen fabric; HOST, HOST.PORT, DEVICE, DEVICE.N. */
static const struct store_drain *find(const struct drain *d, const char *what)
{
	for (int i = 0; i < d->n_holds; i++) {
		if (strcmp(d->holds[i].what, what) == 0) {
			return &d->holds[i];
		}
	}
	return NULL;
}

int drain_check_frozen(const struct drain *d, struct err *err)
{
	const struct store_drain *h = find(d, "");

	if (!h) {
		return 0;
	}
	err_set(err, WEFT_ESTALE, "the fabric is frozen by %s%s%s", h->who,
		h->reason[0] ? ": " : "", h->reason);
	err_hint(err, "\"weft unfreeze\" allows changes again");
	return err->code;
}

/* ---- what a circuit touches ---------------------------------------------- */

static const struct store_drain *find_port(const struct drain *d, const char *device, int port)
{
	char name[NAME_SIZE];

	snprintf(name, sizeof(name), "%s.%d", device, port + 1);
	return find(d, name);
}

/* The host port at the other end of a fibre (may be none), or its host. */
static const struct store_drain *find_far_end(const struct drain *d, const struct model_fabric *f,
					      int port)
{
	const struct store_drain *h;

	if (port < 0) {
		return NULL;
	}
	h = find(d, f->ports[port].name);
	return h ? h : find(d, f->hosts[f->ports[port].host].name);
}

/* One side of a circuit: its device, the device's port, or what is at the other
 * end of the port's fibre. far_ends: by port of the device, or NULL. */
static const struct store_drain *find_side(const struct drain *d, const struct model_fabric *f,
					   const struct model_device *md, const int *far_ends,
					   int port)
{
	const struct store_drain *h = find(d, md->name);

	h = h ? h : find_port(d, md->name, port);
	return h ? h : find_far_end(d, f, far_ends ? far_ends[port] : -1);
}

/* What is drained of a host's port: it, its host, or what it reaches; NULL: nothing. */
static const struct store_drain *find_host_port(const struct drain *d,
						const struct model_fabric *f, int port)
{
	const struct model_port *p = &f->ports[port];
	const struct store_drain *h = find_far_end(d, f, port);

	if (!h && p->tx_device >= 0) {
		h = find_side(d, f, &f->devices[p->tx_device], NULL, p->tx_port);
	}
	if (!h && p->rx_device >= 0) {
		h = find_side(d, f, &f->devices[p->rx_device], NULL, p->rx_port);
	}
	return h;
}

bool drain_has_host(const struct drain *d, const struct model_fabric *f, int host)
{
	return find(d, f->hosts[host].name) != NULL;
}

bool drain_has_port(const struct drain *d, const struct model_fabric *f, int port)
{
	return find_host_port(d, f, port) != NULL;
}

/* WEFT_ESTALE: who drained it, why, and how it is allowed again. */
static int refuse(const struct store_drain *h, struct err *err, const char *what)
{
	err_set(err, WEFT_ESTALE, "%s is drained by %s%s%s: no %s there",
		h->what, h->who, h->reason[0] ? ": " : "", h->reason, what);
	err_hint(err, "\"weft undrain %s\" allows it again", h->what);
	return err->code;
}

int drain_check_port(const struct drain *d, const struct model_fabric *f, int port,
		     struct err *err)
{
	const struct store_drain *h = find_host_port(d, f, port);

	return h ? refuse(h, err, "new circuit") : 0;
}

/* The circuits that a plan makes on one device; those that stay are allowed. */
static int check_circuits(const struct drain *d, const struct model_fabric *f,
			  const struct plan_device *pd, struct err *err)
{
	const struct model_device *md = &f->devices[pd->device];
	const struct store_drain *h;
	char what[64];

	for (int i = 0; i < pd->n_add; i++) {
		struct optics_xc xc = pd->add[i];

		h = find_side(d, f, md, md->in_port, xc.in);
		h = h ? h : find_side(d, f, md, md->out_port, xc.out);
		if (h) {
			snprintf(what, sizeof(what), "circuit in %d -> out %d",
				 xc.in + 1, xc.out + 1);
			return refuse(h, err, what);
		}
	}
	return 0;
}

/* Whether a ring plays a program for the job of this name. */
static bool has_program(const struct ring_programs *ring, const char *name)
{
	for (int i = 0; i < ring->n; i++) {
		if (strcmp(ring->v[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

/* What is drained of a program: its ring, or a host of its job; NULL: nothing. */
static const struct store_drain *find_job(const struct drain *d, const struct model_fabric *f,
					  const struct model_device *md, const char *name)
{
	const struct store_drain *h = find(d, md->name);
	int job = model_find_job(f, name);

	for (int i = 0; job >= 0 && !h && i < f->jobs[job].n_hosts; i++) {
		h = find(d, f->hosts[f->jobs[job].hosts[i]].name);
	}
	return h;
}

/* Programs of a ring: those of jobs that it does not carry yet. */
static int check_programs(const struct drain *d, const struct model_fabric *f,
			  const struct plan_device *pd, struct err *err)
{
	const struct model_device *md = &f->devices[pd->device];
	const struct store_drain *h;
	char what[CONF_MAX_NAME + 32];

	for (int i = 0; pd->load_program && i < pd->programs.n; i++) {
		const char *job = pd->programs.v[i].name;

		if (has_program(&pd->old_programs, job)) {
			continue;
		}
		h = find_job(d, f, md, job);
		if (h) {
			snprintf(what, sizeof(what), "program of job %s", job);
			return refuse(h, err, what);
		}
	}
	return 0;
}

int drain_check_plan(const struct drain *d, const struct plan *p, struct err *err)
{
	int r = 0;

	for (int i = 0; i < p->n_devices && d->n_holds > 0; i++) {
		if ((r = check_circuits(d, p->fabric, &p->devices[i], err)) ||
		    (r = check_programs(d, p->fabric, &p->devices[i], err))) {
			break;
		}
	}
	return r;
}

/* ---- what the planner may use -------------------------------------------- */

/* Behind the n of a list. */
static void add_port(const int **list, int *n, int port)
{
	int *v = x_grow((void *)*list, (size_t)*n + 1, sizeof(*v));

	v[(*n)++] = port;
	*list = v;
}

/* The ports of one side that are drained or to be emptied: those without light cannot be used. */
static void add_drained(const struct drain *d, const struct drain *emptied,
			const struct model_fabric *f, const struct model_device *md, bool is_in,
			const bool *lit, struct plan_light *l)
{
	const int *far_ends = is_in ? md->in_port : md->out_port;

	for (int i = 0; i < (is_in ? md->n_in : md->n_out); i++) {
		bool moves = find_side(emptied, f, md, far_ends, i);

		if (!moves && !find_side(d, f, md, far_ends, i)) {
			continue;
		}
		if (!lit[i]) {
			add_port(is_in ? &l->bad_in : &l->bad_out,
				 is_in ? &l->n_bad_in : &l->n_bad_out, i);
		}
		if (lit[i] && moves) {
			add_port(is_in ? &l->evacuated_in : &l->evacuated_out,
				 is_in ? &l->n_evacuated_in : &l->n_evacuated_out, i);
		} else {
			add_port(is_in ? &l->held_in : &l->held_out,
				 is_in ? &l->n_held_in : &l->n_held_out, i);
		}
	}
}

/* Both sides of one device. */
static void restrict_device(const struct drain *d, const struct drain *emptied,
			    const struct model_fabric *f, const struct model_device *md,
			    struct plan_light *l)
{
	bool *in = x_new((size_t)md->n_in + 1, 1);
	bool *out = x_new((size_t)md->n_out + 1, 1);

	for (int i = 0; i < l->n_xcs; i++) {
		struct optics_xc xc = l->xcs[i];

		if (xc.in < md->n_in && xc.out < md->n_out &&
		    !plan_has_died(l, xc)) {
			in[xc.in] = out[xc.out] = true;
			in[xc.out < md->n_in ? xc.out : xc.in] |= md->any_to_any;
			out[xc.in < md->n_out ? xc.in : xc.out] |= md->any_to_any;
		}
	}
	add_drained(d, emptied, f, md, true, in, l);
	add_drained(d, emptied, f, md, false, out, l);
	free(in);
	free(out);
}

void drain_restrict(const struct drain *d, const struct model_fabric *f, const char *evacuated,
		    struct snapshot *s)
{
	struct store_drain one = { .what = (char *)evacuated };
	const struct drain emptied = { .holds = &one, .n_holds = evacuated[0] ? 1 : 0 };

	for (int i = 0; i < s->n && d->n_holds + emptied.n_holds > 0 && s->observed; i++) {
		if (f->devices[i].kind != MODEL_RING) {
			restrict_device(d, &emptied, f, &f->devices[i], &s->observed[i]);
		}
	}
}

/* ---- calls --------------------------------------------------------------- */

Weft__V1__Hold **drain_messages(const struct drain *d, size_t *n)
{
	Weft__V1__Hold **list = message_list(&weft__v1__hold__descriptor, (size_t)d->n_holds);

	for (int i = 0; i < d->n_holds; i++) {
		list[i]->target = d->holds[i].what;
		list[i]->who = d->holds[i].who;
		list[i]->reason = d->holds[i].reason;
		list[i]->since_at_ns = d->holds[i].since_ns;
	}
	*n = (size_t)d->n_holds;
	return list;
}

static bool is_number(const char *text, int most)
{
	char *end;
	long v = strtol(text, &end, 10);

	return text[0] >= '1' && text[0] <= '9' && !*end && v <= most;
}

int drain_check_name(const struct drain *d, const char *what, struct err *err)
{
	const struct model_fabric *f = apply_fabric(d->env->apply);
	const char *dot = strrchr(what, '.');
	char device[NAME_SIZE];
	int i;

	if (!f) {
		return err_set(err, WEFT_ENOTFOUND, "no configuration was ever applied");
	}
	if (model_find_host(f, what) >= 0 || model_find_device(f, what) >= 0) {
		return 0;
	}
	for (i = 0; dot && i < f->n_ports; i++) {
		if (strcmp(f->ports[i].name, what) == 0) {
			return 0;
		}
	}
	snprintf(device, sizeof(device), "%.*s",
		 dot && dot - what <= CONF_MAX_NAME ? (int)(dot - what) : 0,
		 what);
	i = model_find_device(f, device);
	if (i >= 0 && f->devices[i].kind != MODEL_RING &&
	    is_number(dot + 1, f->devices[i].n_in > f->devices[i].n_out
				       ? f->devices[i].n_in
				       : f->devices[i].n_out)) {
		return 0;
	}
	return err_set(err, WEFT_ENOTFOUND, "no host, device or port is "
		       "called \"%.100s\"", what);
}

/* Emits an event, and lists all entries of now: out->holds is the caller's, also on
 * error. */
static int announce(struct drain *d, Weft__V1__EventKind kind, const char *text,
		    Weft__V1__Holds *out, struct err *err)
{
	const struct daemon_event ev = { .kind = kind };
	int r = drain_load(d, err);

	if (r) {
		return r;
	}
	log_warn("weftd", "%s", text);
	store_audit(d->env->store, 0, "", STORE_EVENT, text);
	event_emit(d->env->events, &ev, "%s", text);
	out->holds = drain_messages(d, &out->n_holds);
	d->changed(d->arg);
	return 0;
}

/* The store holds `what`: drained, or the fabric frozen (""). */
static int announce_hold(struct drain *d, const char *what, const char *who, const char *reason,
			 Weft__V1__Holds *out, struct err *err)
{
	char text[RPC_PEER_TEXT_MAX + 256];

	snprintf(text, sizeof(text), "%.80s is %s by %s%s%.100s",
		 *what ? what : "the fabric", *what ? "drained" : "frozen",
		 who, reason[0] ? ": " : "", reason);
	return announce(d, *what ? EVENT_KIND(DRAINED) : EVENT_KIND(FROZEN), text, out, err);
}

/* Drains `what`, or freezes the fabric (""). */
static int hold(struct drain *d, const struct rpc_call *call, const char *what, const char *reason,
		Weft__V1__Holds *out, struct err *err)
{
	char who[RPC_PEER_TEXT_MAX];
	int r;

	rpc_peer_text(rpc_call_peer(call), who, sizeof(who));
	r = store_drain(d->env->store, what, who, reason, err);
	return r ? r : announce_hold(d, what, who, reason, out, err);
}

void drain_emptied(struct drain *d, const char *what, const struct change_order *order)
{
	Weft__V1__Holds all = WEFT__V1__HOLDS__INIT;
	struct err err = { 0 };

	if (announce_hold(d, what, order->who, order->comment, &all, &err)) {
		log_error("weftd", "%s", err.msg);
	}
	free(all.holds);
}

int drain_freeze(struct drain *d, const struct rpc_call *call, const char *reason,
		 Weft__V1__Holds *out, struct err *err)
{
	return hold(d, call, "", reason, out, err);
}

/* Undrains `what`, or unfreezes the fabric (""). */
static void release(struct drain *d, struct rpc_call *call, const char *what)
{
	char who[RPC_PEER_TEXT_MAX], text[RPC_PEER_TEXT_MAX + 256];
	Weft__V1__Holds res = WEFT__V1__HOLDS__INIT;
	struct err err = { 0 };
	int r = store_undrain(d->env->store, what, &err);

	rpc_peer_text(rpc_call_peer(call), who, sizeof(who));
	snprintf(text, sizeof(text), "%.80s is no longer %s: %s",
		 *what ? what : "the fabric", *what ? "drained" : "frozen",
		 who);
	if (r == 0) {
		r = announce(d, *what ? EVENT_KIND(UNDRAINED) : EVENT_KIND(UNFROZEN), text, &res,
			     &err);
	}
	call_answer(call, r, &res.base, &err);
	free(res.holds);
}

void handle_drain(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__DrainRequest *req = (const void *)msg;
	Weft__V1__Holds res = WEFT__V1__HOLDS__INIT;
	struct drain *d = arg;
	struct err err = { 0 };
	int r;

	if (!env_may_change(d->env, call)) {
		return;
	}
	r = drain_check_name(d, req->target, &err);
	if (r == 0) {
		r = hold(d, call, req->target, req->reason, &res, &err);
	}
	call_answer(call, r, &res.base, &err);
	free(res.holds);
}

void handle_undrain(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const char *what = ((const Weft__V1__UndrainRequest *)msg)->target;
	struct drain *d = arg;
	struct err err = { 0 };

	if (!env_may_change(d->env, call)) {
		return;
	}
	if (!*what) {
		err_set(&err, WEFT_EINVAL, "name what is to be undrained");
		rpc_finish_err(call, &err);
	} else {
		release(d, call, what);
	}
}

void handle_unfreeze(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	(void)msg;
	if (env_may_change(((struct drain *)arg)->env, call)) {
		release(arg, call, "");
	}
}

/* ---- life ---------------------------------------------------------------- */

int drain_count(const struct drain *d)
{
	return d->n_holds;
}

struct drain *drain_new(struct daemon_env *env, void (*changed)(void *arg), void *arg)
{
	struct drain *d = x_new(1, sizeof(*d));

	*d = (struct drain){ .env = env, .changed = changed, .arg = arg };
	return d;
}

void drain_free(struct drain *d)
{
	if (d) {
		store_drains_free(d->holds, d->n_holds);
		free(d);
	}
}
