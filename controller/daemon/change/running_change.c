/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The change under way, and all who watch it.
 *
 * A change is a plan request first; when the plan is there, and is the one that
 * was asked for, the engine carries it out (apply_start), and the request keeps
 * its slot of the queue until the end, so that nothing else touches the devices
 * or their configuration. Who asks again with the same request id watches the
 * same change, or gets the result of the one that has ended.
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

#define WHO_MAX 64
#define CONFIRM_MAX_NS (INT64_C(365) * 24 * 3600 * 1000000000)

_Static_assert((int)msg_verdict(APPLY_STUCK) == (int)WEFT__V1__VERDICT__VERDICT_STUCK &&
	       (int)msg_proof(APPLY_ERROR_FREE) == (int)WEFT__V1__PROOF__PROOF_ERROR_FREE,
	       "the API's enumerations are those of apply.h");

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
void changes_watch(struct running_change *c, struct rpc_call *call)
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
void changes_send_result(struct rpc_call *call, const struct apply_result *res, int rc,
			 const struct err *err)
{
	Weft__V1__ChangeEvent ev = WEFT__V1__CHANGE_EVENT__INIT;
	Weft__V1__ChangeResult m = WEFT__V1__CHANGE_RESULT__INIT;
	struct err send_err = { 0 };

	m.verdict = msg_verdict(res->verdict);
	m.change = res->change;
	m.generation = res->generation;
	m.proof = msg_proof(res->level);
	m.took_ns = res->took_ns;
	m.left = res->n_left;
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
const struct finished_change *changes_find_finished(const struct changes *all,
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
			changes_send_result(c->watchers.v[i], res, rc, err);
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

/* Ranks go on when the call has ended well: a change of a step's light that was committed without
 * some of its circuits, or one whose light was there but for some that are dead, has not.
 * WEFT_EDEVICE. */
static int check_light(const struct running_change *c, const struct apply_result *res,
		       struct err *err)
{
	const char *job = c->plan->light_job;

	if (job && res->n_left > 0) {
		err_set(err, WEFT_EDEVICE, "job %s has not all of its light: %d of its circuits "
			"could not be made", job, res->n_left);
		err_hint(err, "\"weft status\" names them");
		return err->code;
	}
	for (size_t i = 0; job && i < c->rows.n; i++) {
		const Weft__V1__PlanJob *row = c->rows.v[i];

		if (strcmp(row->name, job) == 0 && row->degradation) {
			return err_set(err, WEFT_EDEVICE, "job %s has not all of its light: %d of "
				       "its circuits are dead", job, row->degradation->failed);
		}
	}
	return 0;
}

/* The engine is done. Also without any step the jobs are those of the
 * configuration now, and where that was to go back, no change waits any more. */
static void on_applied(int rc, const struct apply_result *res, const struct err *err, void *arg)
{
	struct running_change *c = arg;
	struct err ignored = { 0 }, lacks = { 0 };
	int r = rc;

	if (res->verdict == APPLY_NOTHING_TO_DO && c->of->confirm.change &&
	    store_confirm(c->of->env->store, &ignored)) {
		log_error("weftd", "%s", ignored.msg);
	}
	if (res->verdict == APPLY_COMMITTED || res->verdict == APPLY_NOTHING_TO_DO) {
		if (rc == 0) {
			r = check_light(c, res, &lacks);
		}
		take_jobs(c);
	}
	if (res->verdict == APPLY_COMMITTED && c->plan->evacuated[0]) {
		drain_emptied(c->of->drain, c->plan->evacuated, &c->order);
	}
	end_change(c, res, r, rc ? err : &lacks);
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

/* Circuits that a change was committed without, and that are still to be repaired. */
static int count_left(struct store *s, int64_t change, int *left, struct err *err)
{
	struct store_repair *v;
	int n, rc = store_repairs(s, &v, &n, err);

	*left = 0;
	if (rc) {
		return rc;
	}
	for (int i = 0; i < n; i++) {
		*left += v[i].change == change;
	}
	store_repairs_free(v, n);
	return 0;
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
	r = res.verdict == APPLY_COMMITTED
		    ? count_left(all->env->store, ch.id, &res.n_left, &err)
		    : err_set(&err, WEFT_EDEVICE, "change %lld: %s", (long long)ch.id, ch.summary);
	changes_send_result(call, &res, r, &err);
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
			changes_watch(all->now, call);
		}
		return true;
	}
	f = changes_find_finished(all, o->request_id);
	if (!f) {
		return is_on_record(all, call, o);
	}
	if (arguments_check(o->request_id, f->arguments, o->arguments, &err)) {
		rpc_finish_err(call, &err);
	} else {
		changes_send_result(call, &f->res, f->rc, &f->err);
	}
	return true;
}

/* A call with an id: its hash is in *q. True when there is nothing more to do for it. */
bool changes_is_answered(struct changes *all, struct rpc_call *call, const ProtobufCMessage *msg,
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
int changes_check_free(const struct changes *all, const struct change_request *q, struct err *err)
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
int changes_start(struct changes *all, struct rpc_call *call, const struct change_request *q,
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
		changes_watch(c, call);
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

/* Stops the change that runs: after its present step it is taken back. */
void changes_stop_running(struct running_change *c, struct rpc_call *call)
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
