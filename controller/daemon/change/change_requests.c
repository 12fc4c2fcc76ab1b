/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Apply, rollback, cancel: one change and all who watch it.
 *
 * A change is a plan request first; when the plan is there, and is the one that
 * was asked for, the engine carries it out (apply_start), and the request keeps
 * its slot of the queue until the end, so that nothing else touches the devices
 * or their configuration. Who asks again with the same request id watches the
 * same change, or gets the result of the one that has ended. weftd begins
 * changes of its own for jobs, for restoring, and when a change is not confirmed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/change/private.h"
#include "controller/proto_convert/proto_convert.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/vec.h"

#define HISTORY_PAGE 64
#define WHO_MAX 64
#define CONFIRM_MAX_NS (INT64_C(365) * 24 * 3600 * 1000000000)

_Static_assert((int)msg_verdict(APPLY_STUCK) == (int)WEFT__V1__VERDICT__VERDICT_STUCK &&
	       (int)msg_proof(APPLY_ERROR_FREE) == (int)WEFT__V1__PROOF__PROOF_ERROR_FREE,
	       "the API's enumerations are those of apply.h");

/* From the request that begins it to its end; there is one at most. */
struct running_change {
	struct changes *of;
	struct plan_request *plan;	/* has the slot until the end */
	struct change_order order;	/* a copy; without request_id it cannot be asked
					 * for again */
	char digest[65];	/* the plan must have it; "": any */
	char peer[RPC_PEER_TEXT_MAX];	/* for the audit trail; "": weftd */
	bool started;		/* the engine has it: end comes by on_applied */
	bool cancelled;		/* before that */
	bool is_part;		/* of a change in which others have parts */
	struct job_rows rows;	/* for status, once committed */
	struct host_routes *routes;	/* for hosts of this machine, then */
	struct restore_request *restore;	/* jobs stay as they are; owned,
						 * or NULL */
	VEC(struct rpc_call *) watchers;
	void (*ended)(int rc, const struct err *err, void *arg);	/* or NULL */
	void *ended_arg;
};

/* The change that a request asks for. */
struct change_request {
	struct change_order order;	/* who and trace are those of the call, but of a
					 * part; request_id is not NULL */
	const Weft__V1__Number *expected;	/* generation, NULL: any */
	const struct own_change *own;	/* weftd's own, or NULL */
	struct restore_request *restore;	/* instead of jobs, or NULL */
	bool ignore_floor;		/* no operator may be there to help */
	bool is_part;		/* of a change in which others have parts */
};

/* ---- watching ------------------------------------------------------------ */

/* A client that goes away only stops watching; its change goes on. */
static void on_watcher_gone(struct rpc_call *call, void *arg)
{
	struct running_change *c = arg;

	for (size_t i = 0; i < c->watchers.n; i++) {
		if (c->watchers.v[i] == call) {
			c->watchers.v[i] = c->watchers.v[--c->watchers.n];
			return;
		}
	}
}

/* From now on the call is sent the events of the change, and its result, which ends
 * it. */
static void watch(struct running_change *c, struct rpc_call *call)
{
	vec_push(&c->watchers, call);
	rpc_call_on_cancel(call, on_watcher_gone, c);
}

/* A watcher that reads too slowly misses events, never the result. */
static void send_all(struct running_change *c, const Weft__V1__ChangeEvent *ev)
{
	for (size_t i = 0; i < c->watchers.n; i++) {
		rpc_send(c->watchers.v[i], &ev->base, NULL);
	}
}

/* The engine reports progress: to all who watch, and problems to the log. */
static void on_event(const struct apply_event *ev, void *arg)
{
	const struct change_hooks *hooks = &((struct running_change *)arg)->of->hooks;
	Weft__V1__ChangeEvent m = WEFT__V1__CHANGE_EVENT__INIT;

	m.phase = (char *)ev->phase;
	m.device = (char *)ev->device;
	m.text = (char *)ev->text;
	m.is_problem = ev->is_problem;
	m.done = ev->done;
	m.total = ev->total;
	m.eta_ns = ev->eta_ns;
	change_latest_note(&((struct running_change *)arg)->of->latest, ev);
	send_all(arg, &m);
	hooks->progress(ev, hooks->arg);
	if (ev->is_problem) {
		log_warn("apply", "%s%s%s: %s", ev->device,
			 ev->device[0] ? ": " : "", ev->phase, ev->text);
	}
}

/* The last message of a watcher, and with it the end of its call: a change that
 * was not committed ends it with the error, and names the circuits that failed. */
static void send_result(struct rpc_call *call, const struct apply_result *res,
			int rc, const struct err *err)
{
	Weft__V1__ChangeEvent ev = WEFT__V1__CHANGE_EVENT__INIT;
	Weft__V1__ChangeResult m = WEFT__V1__CHANGE_RESULT__INIT;
	struct err send_err = { 0 };

	m.verdict = msg_verdict(res->verdict);
	m.change = res->change;
	m.generation = res->generation;
	m.proof = msg_proof(res->level);
	m.took_ns = res->took_ns;
	ev.result = &m;
	for (int i = 0; i < res->n_failed && rc; i++) {
		rpc_call_add_resource(call, "circuit", res->failed[i].name, res->failed[i].why);
	}
	if (rpc_send(call, &ev.base, &send_err)) {
		rpc_finish_err(call, &send_err);
	} else if (rc) {
		rpc_finish_err(call, err);
	} else {
		rpc_finish(call, RPC_OK, NULL);
	}
}

static void announce_start(const struct running_change *c)
{
	const struct daemon_event ev = {
		.kind = EVENT_KIND(CHANGE_STARTED),
		.trace = c->order.trace,
	};

	c->of->hooks.begun(c->order.who, c->order.comment, c->of->hooks.arg);
	event_emit(c->of->env->events, &ev, "change of %s begins%s%s", c->order.who,
		     c->order.comment[0] ? ": " : "", c->order.comment);
}

static void announce_end(const struct running_change *c, const struct apply_result *res, int rc,
			 const struct err *err)
{
	const struct daemon_event ev = {
		.kind = EVENT_KIND(CHANGE_ENDED),
		.change = res->change,
		.verdict = msg_verdict(res->verdict),
		.trace = c->order.trace,
	};

	c->of->hooks.ended(res, rc ? err : NULL, c->of->hooks.arg);
	event_emit(c->of->env->events, &ev, "change of %s: %s%s%s", c->order.who,
		     apply_verdict_name(res->verdict), rc ? ": " : "",
		     rc ? err->msg : "");
}

/* ---- the end of a change ------------------------------------------------- */

/* Keeps the result in place of the oldest one that is kept. */
static void remember(struct changes *all, const struct running_change *c,
		     const struct apply_result *res, int rc, const struct err *err)
{
	struct finished_change *f = &all->finished[all->n_finished++ % MAX_FINISHED];

	free(f->request_id);
	f->request_id = x_dup(c->order.request_id);
	memcpy(f->arguments, c->order.arguments, sizeof(f->arguments));
	f->res = *res;
	f->rc = rc;
	f->err = *err;
}

/* The newest first. */
static const struct finished_change *find_finished(const struct changes *all,
					    const char *request_id)
{
	int kept = all->n_finished < MAX_FINISHED ? all->n_finished
						: MAX_FINISHED;

	for (int i = 1; i <= kept; i++) {
		const struct finished_change *f =
			&all->finished[(all->n_finished - i) % MAX_FINISHED];

		if (f->request_id && strcmp(f->request_id, request_id) == 0) {
			return f;
		}
	}
	return NULL;
}

/* Frees the change and gives its slot back, in which the next request may begin
 * at once: nothing of the change may be used afterwards. */
static void change_free(struct running_change *c)
{
	struct changes *all = c->of;
	struct plan_request *pr = c->plan;
	struct restore_request *restore = c->restore;

	all->now = NULL;
	all->latest = (struct change_latest){ 0 };
	all->env->changing = false;
	store_order_fini(&c->order);
	vec_fini(&c->watchers);
	job_rows_fini(&c->rows);
	host_routes_free(c->routes);
	free(c);
	if (pr) {
		plan_request_free(pr);
	}
	restore_request_free(restore);
}

/* With fields, so that a log of JSON can be searched by change and by trace. */
static void log_end(const struct running_change *c, const struct apply_result *res,
		    int rc, const struct err *err)
{
	char id[24], generation[24];
	const struct log_field fields[] = {
		{ "change", id }, { "generation", generation },
		{ "outcome", apply_verdict_name(res->verdict) },
		{ "trace", c->order.trace },
	};

	snprintf(id, sizeof(id), "%" PRId64, res->change);
	snprintf(generation, sizeof(generation), "%" PRId64, res->generation);
	log_with(LOG_INFO, "weftd", fields, c->order.trace[0] ? 4 : 3,
		 "change of %s: %s%s%s", c->order.who,
		 apply_verdict_name(res->verdict), rc ? ": " : "",
		 rc ? err->msg : "");
}

/* The end of every change, in this order: log, result for repeated requests, all
 * who watch, those above; then its slot goes to the next one, and what was waited
 * for is looked after. res NULL: it never came to a plan, and devices were not
 * touched. Frees c. */
static void end_change(struct running_change *c, const struct apply_result *res,
		       int rc, const struct err *err)
{
	struct changes *all = c->of;
	struct apply_result none = {
		.verdict = APPLY_REFUSED,
		.generation = store_generation(all->env->store),
	};
	void (*ended)(int rc, const struct err *err, void *arg) = c->ended;
	void *ended_arg = c->ended_arg;
	bool moved = c->started && hosts_moved_routes(all->hosts);
	bool known = !c->is_part || all->partners.is_known(all->partners.arg);

	res = res ? res : &none;
	log_end(c, res, rc, err);
	if (c->order.request_id[0] && known) {
		remember(all, c, res, rc, err);
	}
	for (size_t i = 0; i < c->watchers.n; i++) {
		if (known) {
			send_result(c->watchers.v[i], res, rc, err);
		} else {
			rpc_finish_err(c->watchers.v[i], err);
		}
	}
	c->watchers.n = 0;
	announce_end(c, res, rc, err);
	if (c->is_part) {
		all->partners.ended(res, rc, err, all->partners.arg);
	}
	changes_resume_ended(all, res);
	change_free(c);
	if (!all->env->draining) {
		changes_watch_confirm(all);
	}
	if (moved && rc && !all->env->draining) {
		job_status_refresh(all->jobs);	/* restores the routes of hosts */
	}
	if (ended) {
		ended(rc, err, ended_arg);
	}
	all->hooks.idle(all->hooks.arg);
}

/* The jobs are now those of the change, and hosts get the routes of its plan; a
 * restore leaves them as they are. */
static void take_jobs(struct running_change *c)
{
	struct changes *all = c->of;

	all->env->applied = true;
	if (c->restore) {
		return;
	}
	job_status_set(all->jobs, &c->rows);
	hosts_route(all->hosts, c->routes);
	c->routes = NULL;
	all->hooks.committed(all->hooks.arg);
}

/* The engine is done. Also without any step the jobs are those of the
 * configuration now, and where that was to go back, no change waits any more. */
static void on_applied(int rc, const struct apply_result *res, const struct err *err, void *arg)
{
	struct running_change *c = arg;
	struct err ignored = { 0 };

	if (res->verdict == APPLY_NOTHING_TO_DO && c->of->confirm.change &&
	    store_confirm(c->of->env->store, &ignored)) {
		log_error("weftd", "%s", ignored.msg);
	}
	if (res->verdict == APPLY_COMMITTED || res->verdict == APPLY_NOTHING_TO_DO) {
		take_jobs(c);
	}
	end_change(c, res, rc, err);
}

/* A plan file was made for a state of the devices; the plan that is made from it
 * now must be the same, byte for byte. */
static int check_digest(const struct running_change *c, const struct plan *p, struct err *err)
{
	if (!c->digest[0] || strcmp(c->digest, p->digest) == 0) {
		return 0;
	}
	err_set(err, WEFT_ESTALE, "the devices are no longer as they were "
				  "when the plan was made");
	err_hint(err, "plan again: weft plan -f FABRIC.yaml -o PLAN");
	return err->code;
}

/* What a plan warns of is told to those who have it carried out unseen. */
static void tell_warnings(struct running_change *c, const struct plan *p)
{
	for (int i = 0; i < p->n_warnings; i++) {
		on_event(&(struct apply_event){ .phase = "plan", .device = "",
						.text = p->warnings[i], .is_problem = true }, c);
	}
}

/* The engine has come as far as the others must have come too. */
static void on_ready(int stage, void *arg)
{
	const struct change_partners *p = &((struct running_change *)arg)->of->partners;

	p->ready(stage, p->arg);
}

/* The plan is there, or not: hands it and its fabric over to the engine, which owns
 * them also when it refuses them. */
static void on_planned(struct plan_request *pr)
{
	struct running_change *c = pr->arg;
	const struct apply_request req = {
		.order = c->order, .peer = c->peer,
		.ignore_traffic = pr->ignore_floor,
		.restores = c->restore != NULL,
		.ready = c->is_part ? on_ready : NULL,
	};
	struct err err = pr->err;
	int r = pr->rc;

	if (c->cancelled) {
		r = err_set(&err, WEFT_ECANCELED, "stopped on request, before "
						  "anything was sent");
	}
	if (r || (r = check_digest(c, pr->plan, &err))) {
		end_change(c, NULL, r, &err);
		return;
	}
	c->rows = pr->rows;
	memset(&pr->rows, 0, sizeof(pr->rows));
	tell_warnings(c, pr->plan);
	if (c->is_part) {
		c->of->partners.planned(pr->plan, c->of->partners.arg);
	}
	c->of->latest.rows = c->restore ? NULL : &c->rows;
	c->started = true;
	c->routes = c->restore ? NULL : host_routes_of(pr->plan);
	r = apply_start(c->of->env->apply, pr->plan, pr->fabric, &req, on_event,
			on_applied, c, &err);
	pr->plan = NULL;
	pr->fabric = NULL;
	if (r) {
		end_change(c, NULL, r, &err);
		return;
	}
	hosts_begin_change(c->of->hosts);
}

/* ---- the start of a change ----------------------------------------------- */

enum apply_verdict verdict_of(const struct store_change *ch)
{
	switch (ch->verdict) {
	case STORE_COMMITTED:
		return APPLY_COMMITTED;
	case STORE_REFUSED:
	case STORE_ABORTED:
		return APPLY_REFUSED;
	case STORE_ROLLED_BACK:
		return APPLY_ROLLED_BACK;
	default:
		return APPLY_STUCK;
	}
}

/* A request that an earlier weftd has begun: the store knows how it ended. */
static bool is_on_record(struct changes *all, struct rpc_call *call,
			 const struct change_order *o)
{
	struct store_change ch;
	struct apply_result res;
	struct err err = { 0 };
	int r = store_change_by_request(all->env->store, o->request_id, &ch, &err);

	if (r == WEFT_ENOTFOUND) {
		return false;
	}
	if (r || arguments_check(o->request_id, ch.order.arguments, o->arguments, &err)) {
		rpc_finish_err(call, &err);
		if (r == 0) {
			store_change_fini(&ch);
		}
		return true;
	}
	res = (struct apply_result){
		.verdict = verdict_of(&ch), .change = ch.id,
		.generation = ch.generation,
		.level = (enum apply_level)ch.proof,
		.took_ns = ch.ended_ns > ch.started_ns ? ch.ended_ns - ch.started_ns : 0,
	};
	if (res.verdict != APPLY_COMMITTED) {
		r = err_set(&err, WEFT_EDEVICE, "change %lld: %s", (long long)ch.id, ch.summary);
	}
	send_result(call, &res, r, &err);
	store_change_fini(&ch);
	return true;
}

/* True when this request was made before, and is answered with that. */
static bool is_repeated(struct changes *all, struct rpc_call *call, const struct change_order *o)
{
	const struct finished_change *f;
	struct err err = { 0 };

	if (!o->request_id[0]) {
		return false;
	}
	if (all->now && strcmp(all->now->order.request_id, o->request_id) == 0) {
		if (arguments_check(o->request_id, all->now->order.arguments, o->arguments,
				    &err)) {
			rpc_finish_err(call, &err);
		} else {
			watch(all->now, call);
		}
		return true;
	}
	f = find_finished(all, o->request_id);
	if (!f) {
		return is_on_record(all, call, o);
	}
	if (arguments_check(o->request_id, f->arguments, o->arguments, &err)) {
		rpc_finish_err(call, &err);
	} else {
		send_result(call, &f->res, f->rc, &f->err);
	}
	return true;
}

/* A call with an id: its hash is in *q. True when there is nothing more to do for it. */
static bool is_answered(struct changes *all, struct rpc_call *call, const ProtobufCMessage *msg,
			struct change_request *q)
{
	if (!env_may_change(all->env, call)) {
		return true;
	}
	arguments_hash(call, msg, q->order.arguments);
	return is_repeated(all, call, &q->order);
}

/* Whether a change may begin, before anything is planned. WEFT_ESTALE: not now, or
 * the generation is not the expected one; WEFT_EINVAL: confirm_within_ns cannot be. */
static int check_free(const struct changes *all, const struct change_request *q, struct err *err)
{
	int64_t now = store_generation(all->env->store);

	if (all->now) {
		err_set(err, WEFT_ESTALE, "a change of %s is under way", all->now->order.who);
		err_hint(err, "wait for it, or \"weft cancel\"");
		return err->code;
	}
	if (all->confirm.change) {
		err_set(err, WEFT_ESTALE, "change %" PRId64 " waits for its "
			"confirmation", all->confirm.change);
		err_hint(err, "\"weft confirm\" keeps it, \"weft cancel\" goes "
			      "back");
		return err->code;
	}
	if (q->order.confirm_within_ns < 0 || q->order.confirm_within_ns > CONFIRM_MAX_NS) {
		return err_set(err, WEFT_EINVAL, "confirm_within_ns is %" PRId64
			       ", and may be 0 to %" PRId64 " (a year)",
			       q->order.confirm_within_ns, CONFIRM_MAX_NS);
	}
	if (q->expected && q->expected->value != now) {
		return err_set(err, WEFT_ESTALE,
			       "the generation is %" PRId64 ", not %" PRId64,
			       now, q->expected->value);
	}
	return 0;
}

/* Takes q->restore over. */
static struct running_change *new_change(struct changes *all, const struct rpc_call *call,
					 const struct change_request *q,
					 const struct change_order *order, const char *digest)
{
	struct running_change *c = x_new(1, sizeof(*c));

	c->of = all;
	store_order_copy(order, &c->order);
	c->is_part = q->is_part;
	c->ended = q->own ? q->own->ended : NULL;
	c->ended_arg = q->own ? q->own->arg : NULL;
	c->restore = q->restore;
	snprintf(c->digest, sizeof(c->digest), "%s", digest);
	if (call) {
		rpc_peer_text(rpc_call_peer(call), c->peer, sizeof(c->peer));
	}
	return c;
}

/* The change of pr is one of all who lead the fabric. */
static int ask_partners(struct changes *all, struct rpc_call *call, const struct own_change *own,
			const struct change_order *order, const struct plan_request *pr,
			const char *digest, struct err *err)
{
	struct joint_request q = { .order = *order, .config = pr->config, .mode = pr->mode,
				   .ignore_floor = pr->ignore_floor };

	snprintf(q.digest, sizeof(q.digest), "%s", digest);
	if (plan_request_check_aim(pr, err)) {
		return err->code;
	}
	if (order->confirm_within_ns) {
		return err_set(err, WEFT_EUNSUPPORTED, "several weftd lead this fabric: a change "
			       "that waits for its confirmation is not supported");
	}
	return all->partners.ask(&q, call, own, all->partners.arg, err);
}

static int prepare_part(struct plan_request *pr, struct err *err)
{
	const struct change_partners *p = &((struct running_change *)pr->arg)->of->partners;

	(void)err;
	p->prepare(pr, p->arg);
	return 0;
}

/* Takes pr and q->restore over, also on error. */
static int start_change(struct changes *all, struct rpc_call *call, const struct change_request *q,
			struct plan_request *pr, const char *digest, struct err *err)
{
	struct change_order order = q->order;
	struct running_change *c;
	char user[32], name[WHO_MAX], who[WHO_MAX];
	int r;

	if (!q->is_part) {
		snprintf(who, sizeof(who), "%s",
			 user_name(q->own ? q->own->who : call_user(call, user, sizeof(user)),
				   name, sizeof(name)));
		order.who = who;
		trace_of(call, order.trace);
	}
	if (all->partners.ask && !q->is_part && !q->restore) {
		r = ask_partners(all, call, q->own, &order, pr, digest, err);
		plan_request_free(pr);
		return r;
	}
	c = new_change(all, call, q, &order, digest);
	r = drain_check_frozen(all->drain, err);
	if (r) {
		change_free(c);
		plan_request_free(pr);
		return r;
	}
	if (call) {
		watch(c, call);
	}
	c->plan = pr;
	pr->arg = c;
	pr->with_picture = pr->with_rows = !c->restore;
	pr->done = on_planned;
	if (c->is_part) {
		pr->prepare = prepare_part;
	}
	all->now = c;
	all->latest = (struct change_latest){ .who = c->order.who, .comment = c->order.comment,
					      .phase = "plan", .started_at_ns = clk_wall_ns() };
	all->env->changing = true;
	announce_start(c);
	plan_request_start(pr);
	return 0;
}

int changes_begin_part(struct changes *all, const struct joint_request *part,
		       struct rpc_call *call, const struct own_change *own, struct err *err)
{
	const struct change_request q = { .order = part->order, .own = own, .is_part = true };
	struct plan_request *pr;
	int r = check_free(all, &q, err);

	if (r) {
		return r;
	}
	pr = plan_request_new_config(all->queue, &part->config);
	pr->mode = part->mode;
	pr->ignore_floor = part->ignore_floor;
	return start_change(all, call, &q, pr, part->digest, err);
}

/* ---- apply --------------------------------------------------------------- */

/* A plan file says which state it was made from; another one has moved on. */
static int check_plan_file(const struct changes *all, const struct plan_file *f, struct err *err)
{
	int64_t now = store_generation(all->env->store);

	if (!f->state_uuid[0]) {
		err_set(err, WEFT_ESTALE, "the plan was made without weftd, "
					  "from no state at all");
	} else if (strcmp(f->state_uuid, store_uuid(all->env->store)) != 0) {
		err_set(err, WEFT_ESTALE, "the plan is for another fabric's "
					  "state (%s)", f->state_uuid);
	} else if (f->generation != now) {
		err_set(err, WEFT_ESTALE,
			"the plan was made from generation %" PRId64
			", the present one is %" PRId64,
			f->generation, now);
	} else {
		return 0;
	}
	err_hint(err, "plan again: weft plan -f FABRIC.yaml -o PLAN");
	return err->code;
}

/* The configuration in a plan file, planned again in its mode. */
static int apply_plan_file(struct changes *all, struct rpc_call *call,
			   const struct change_request *q,
			   const Weft__V1__ApplyRequest *req, struct err *err)
{
	struct plan_file f;
	struct plan_request *pr;
	int r = plan_file_read(req->plan_file.data, req->plan_file.len, &f, err);

	if (r) {
		err_wrap(err, "%s", req->name);
		return r;
	}
	r = check_plan_file(all, &f, err);
	if (r == 0) {
		r = plan_request_new(all->queue, f.config.name, f.config.text,
				     f.config.len, &pr, err);
	}
	if (r == 0) {
		pr->mode = f.mode;
		pr->aim = f.aim;
		snprintf(pr->evacuated, sizeof(pr->evacuated), "%s", f.evacuated);
		r = start_change(all, call, q, pr, f.digest, err);
	}
	plan_file_fini(&f);
	return r;
}

/* The configuration in the request, in the mode that it names. */
static int apply_config(struct changes *all, struct rpc_call *call, const struct change_request *q,
			const Weft__V1__ApplyRequest *req, struct err *err)
{
	struct plan_request *pr;
	int r;

	if (req->source_case != WEFT__V1__APPLY_REQUEST__SOURCE_CONFIG) {
		return err_set(err, WEFT_EINVAL, "neither a configuration nor a plan file");
	}
	r = plan_request_new(all->queue, req->name,
			    req->config.data ? (char *)req->config.data : "",
			    req->config.len, &pr, err);
	if (r) {
		return r;
	}
	pr->mode = req->mode == WEFT__V1__MODE__MODE_UPDATE ? PLAN_UPDATE
							   : PLAN_SAFE;
	return start_change(all, call, q, pr, "", err);
}

void handle_apply(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__ApplyRequest *req = (const void *)msg;
	struct change_request q = {
		.order = { .request_id = req->request_id, .comment = req->comment,
			   .confirm_within_ns = req->confirm_within_ns },
		.expected = req->expected_generation,
	};
	struct changes *all = arg;
	struct err err = { 0 };
	int r;

	if (is_answered(all, call, msg, &q)) {
		return;
	}
	r = check_free(all, &q, &err);
	if (r == 0 && req->source_case == WEFT__V1__APPLY_REQUEST__SOURCE_PLAN_FILE) {
		r = apply_plan_file(all, call, &q, req, &err);
	} else if (r == 0) {
		r = apply_config(all, call, &q, req, &err);
	}
	if (r) {
		rpc_finish_err(call, &err);
	}
}

/* ---- rollback ------------------------------------------------------------ */

/* Which change to go back to; exact and skip are alternatives. */
struct rollback_search {
	bool exact;
	int64_t generation;	/* wanted, if exact */
	int skip;		/* committed changes to pass, if not */
	int64_t found;		/* change id, 0: none */
};

/* Looks through one page of the history, newest first; s->found says the rest. */
static void search_page(struct rollback_search *s, const struct store_change *v, int n)
{
	for (int i = 0; i < n && !s->found; i++) {
		if (v[i].verdict != STORE_COMMITTED) {
			continue;
		}
		if (s->exact ? v[i].generation == s->generation : s->skip-- == 0) {
			s->found = v[i].id;
		}
	}
}

/* Into *change the committed change to go back to: the one that made a generation; or the
 * present one while a change is open, as that is what was meant before it;
 * or the one before. */
static int find_target(struct changes *all, const Weft__V1__Number *to,
		       int64_t *change, struct err *err)
{
	struct rollback_search s = { .exact = to != NULL,
			    .generation = to ? to->value : 0 };
	struct store_journal *open = NULL;
	struct store_change *v;
	int64_t before = 0;
	int n, n_open, r = store_open_changes(all->env->store, &open, &n_open, err);

	s.skip = r == 0 && n_open > 0 ? 0 : 1;
	store_journals_free(open, r ? 0 : n_open);
	while (r == 0 && !s.found) {
		r = store_history(all->env->store, before, HISTORY_PAGE, &v, &n, err);
		if (r || n == 0) {
			break;
		}
		before = v[n - 1].id;
		search_page(&s, v, n);
		store_history_free(v, n);
	}
	*change = s.found;
	if (r || s.found) {
		return r;
	}
	if (to) {
		err_set(err, WEFT_ENOTFOUND, "no configuration of generation "
			"%" PRId64 " is on record", to->value);
	} else {
		err_set(err, WEFT_ENOTFOUND, "there is no earlier "
					     "configuration to go back to");
	}
	err_hint(err, "\"weft history\" lists what is");
	return err->code;
}

/* However few circuits are verified, the change goes on. Called before planning. */
static int open_gate(struct plan_request *pr, struct err *err)
{
	(void)err;
	pr->fabric->changes.gate_ppm = 0;
	return 0;
}

/* A list that ends with NULL, in one block; NULL of NULL. */
static const char **copy_names(const char *const *names)
{
	size_t n = 0, bytes = 0;
	const char **out;
	char *text;

	for (; names && names[n]; n++) {
		bytes += strlen(names[n]) + 1;
	}
	if (!names) {
		return NULL;
	}
	out = x_alloc((n + 1) * sizeof(*out) + bytes, 1);
	text = (char *)(out + n + 1);
	for (size_t i = 0; i < n; i++) {
		out[i] = strcpy(text, names[i]);
		text += strlen(text) + 1;
	}
	out[n] = NULL;
	return out;
}

/* Applies the configuration of change `to` once more (0: that of the present one, the first,
 * without its jobs); for weftd's own changes only the circuits of the jobs that they name may
 * move. */
static int start_earlier(struct changes *all, struct rpc_call *call,
			 const struct change_request *q, int64_t to, struct err *err)
{
	struct store_config cfg;
	struct plan_request *pr;
	int r = to ? store_change_config(all->env->store, to, &cfg, err)
		   : store_config(all->env->store, &cfg, err);

	if (r) {
		return r;
	}
	if (!to && (r = model_config_drop_jobs(&cfg.config, err))) {
		store_config_fini(&cfg);
		return r;
	}
	r = plan_request_new(all->queue, cfg.config.name, cfg.config.text, cfg.config.len, &pr,
			     err);
	store_config_fini(&cfg);
	if (r) {
		return r;
	}
	if (q->own) {
		pr->only = copy_names(q->own->jobs);
		pr->mode = q->own->update ? PLAN_UPDATE : PLAN_SAFE;
		pr->prepare = q->own->partial ? open_gate : NULL;
	}
	pr->back_to = to;
	pr->ignore_floor = q->ignore_floor;
	return start_change(all, call, q, pr, "", err);
}

int changes_begin_jobs(struct changes *all, const struct own_change *own, struct err *err)
{
	const struct change_request q = { .order.request_id = "", .own = own,
					  .order.comment = own->comment };
	struct store_config cfg;
	int r;

	if ((r = check_free(all, &q, err)) || (r = store_config(all->env->store, &cfg, err))) {
		return r;
	}
	r = start_earlier(all, NULL, &q, cfg.change, err);
	store_config_fini(&cfg);
	return r;
}

/* Called by the queue once the base is copied, as devices were read for it then. */
static int prepare_restore(struct plan_request *pr, struct err *err)
{
	const struct running_change *c = pr->arg;

	return restore_request_prepare(c->restore, c->of->env, pr->fabric, &pr->snap, err);
}

int changes_begin_restore(struct changes *all, const struct own_change *own,
			  struct restore_request *restore, struct err *err)
{
	const struct change_request q = { .order.request_id = "", .own = own,
					  .order.comment = own->comment,
					  .restore = restore };
	struct plan_request *pr;
	int r;

	if ((r = check_free(all, &q, err)) ||
	    (r = plan_request_new(all->queue, NULL, NULL, 0, &pr, err))) {
		restore_request_free(restore);
		return r;
	}
	pr->prepare = prepare_restore;
	pr->mode = PLAN_UPDATE;
	return start_change(all, NULL, &q, pr, "", err);
}

int changes_begin_back(struct changes *all, struct rpc_call *call, int64_t to,
		   const char *comment, struct err *err)
{
	const struct change_request q = { .order.request_id = "", .order.comment = comment,
					  .ignore_floor = true };

	if (all->now) {
		return err_set(err, WEFT_ESTALE, "a change of %s is under way",
			       all->now->order.who);
	}
	return start_earlier(all, call, &q, to, err);
}

/* Without a comment of its own a rollback is named after its target. */
static int rollback(struct changes *all, struct rpc_call *call, const struct change_request *q,
		    const Weft__V1__RollbackRequest *req, struct err *err)
{
	struct change_request named = *q;
	char comment[64];
	int64_t change;
	int r = check_free(all, q, err);

	if (r || (r = find_target(all, req->to, &change, err))) {
		return r;
	}
	snprintf(comment, sizeof(comment), "rollback to change %" PRId64,
		 change);
	if (!named.order.comment[0]) {
		named.order.comment = comment;
	}
	return start_earlier(all, call, &named, change, err);
}

void handle_rollback(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__RollbackRequest *req = (const void *)msg;
	struct change_request q = {
		.order = { .request_id = req->request_id, .comment = req->comment,
			   .confirm_within_ns = req->confirm_within_ns },
		.expected = req->expected_generation,
	};
	struct changes *all = arg;
	struct err err = { 0 };

	if (is_answered(all, call, msg, &q)) {
		return;
	}
	if (rollback(all, call, &q, req, &err)) {
		rpc_finish_err(call, &err);
	}
}

/* ---- cancel -------------------------------------------------------------- */

/* True when it is this change that waits for its confirmation. */
static bool waits(const struct changes *all, const struct finished_change *f, const char *id)
{
	return all->confirm.change && (!id[0] || (f && f->res.change == all->confirm.change));
}

/* Stops the change that runs: after its present step it is taken back. */
static void stop_running(struct running_change *c, struct rpc_call *call)
{
	struct apply *apply = c->of->env->apply;

	env_audit_call(c->of->env, call, apply_running(apply), "asked to stop");
	if (c->is_part) {
		c->of->partners.cancel(c->of->partners.arg);
		return;		/* it may be too late: the others decide too */
	}
	c->cancelled = true;
	if (c->started) {
		apply_cancel(apply);
	} else {
		plan_request_cancel(c->plan);	/* frees c, if nothing is under way */
	}
}

void handle_cancel(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const char *id = ((const Weft__V1__CancelRequest *)msg)->request_id;
	struct changes *all = arg;
	struct running_change *c = all->now;
	const struct finished_change *f;
	struct err err = { 0 };

	if (!env_may_change(all->env, call)) {
		return;
	}
	if (c && (!id[0] || strcmp(c->order.request_id, id) == 0)) {
		watch(c, call);
		stop_running(c, call);
		return;
	}
	f = id[0] ? find_finished(all, id) : NULL;
	if (waits(all, f, id)) {
		env_audit_call(all->env, call, all->confirm.change, "cancelled");
		if (changes_begin_back(all, call, all->confirm.back_to,
				   "cancelled instead of confirmed", &err)) {
			rpc_finish_err(call, &err);
		}
		return;
	}
	if (f) {
		send_result(call, &f->res, f->rc, &f->err);
		return;
	}
	err_set(&err, WEFT_ENOTFOUND, "no such change is under way");
	rpc_finish_err(call, &err);
}

/* ---- freeze -------------------------------------------------------------- */

/* Nothing comes between: the loop does one call at a time. */
void handle_freeze(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__FreezeRequest *req = (const void *)msg;
	Weft__V1__FreezeResponse res = WEFT__V1__FREEZE_RESPONSE__INIT;
	Weft__V1__Holds held = WEFT__V1__HOLDS__INIT;
	struct changes *all = arg;
	char who[RPC_PEER_TEXT_MAX];
	struct err err = { 0 };
	int r;

	if (!env_may_change(all->env, call)) {
		return;
	}
	r = drain_freeze(all->drain, call, req->reason, &held, &err);
	res.held = &held;
	if (r == 0 && req->now && all->now) {
		snprintf(who, sizeof(who), "%s", all->now->order.who);
		res.stopping = who;
		stop_running(all->now, call);
	}
	call_answer(call, r, &res.base, &err);
	free(held.holds);
}

/* ---- life ---------------------------------------------------------------- */

struct changes *changes_new(struct daemon_env *env, struct plan_queue *queue,
			    struct job_status *jobs, struct drain *drain, struct hosts *hosts,
			    const struct change_hooks *hooks)
{
	struct changes *c = x_new(1, sizeof(*c));

	*c = (struct changes){ .env = env, .queue = queue, .jobs = jobs, .drain = drain,
			       .hosts = hosts, .hooks = *hooks };
	c->clock.timer = part_timer_new(env, changes_confirm_expired, c);
	c->resume.timer = part_timer_new(env, changes_resume_due, c);
	return c;
}

void changes_set_partners(struct changes *c, const struct change_partners *partners)
{
	c->partners = *partners;
}

int changes_load(struct changes *c, struct err *err)
{
	return store_confirming(c->env->store, &c->confirm, err);
}

const struct store_confirm *changes_confirm(const struct changes *c)
{
	return &c->confirm;
}

void changes_free(struct changes *c)
{
	if (!c) {
		return;
	}
	for (int i = 0; i < MAX_FINISHED; i++) {
		free(c->finished[i].request_id);
	}
	part_timer_free(c->clock.timer);
	part_timer_free(c->resume.timer);
	free(c);
}
