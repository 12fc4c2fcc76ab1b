/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What begins and stops changes: apply, rollback, cancel, freeze, and weftd itself, for jobs, for
 * restoring, and when a change is not confirmed. running_change.c has the change from there on.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/change/private.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "weft/v1/jobs.pb-c.h"

#define HISTORY_PAGE 64

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
		r = changes_start(all, call, q, pr, f.digest, err);
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
	return changes_start(all, call, q, pr, "", err);
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

	if (changes_is_answered(all, call, msg, &q)) {
		return;
	}
	r = changes_check_free(all, &q, &err);
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
	return changes_start(all, call, q, pr, "", err);
}

int changes_begin_part(struct changes *all, const struct joint_request *part,
		       struct rpc_call *call, const struct own_change *own, struct err *err)
{
	const struct change_request q = { .order = part->order, .own = own, .is_part = true };
	struct plan_request *pr;
	int r = changes_check_free(all, &q, err);

	if (r) {
		return r;
	}
	pr = plan_request_new_config(all->queue, &part->config);
	pr->mode = part->mode;
	pr->ignore_floor = part->ignore_floor;
	return changes_start(all, call, &q, pr, part->digest, err);
}

int changes_begin_jobs(struct changes *all, const struct own_change *own, struct err *err)
{
	const struct change_request q = { .order.request_id = "", .own = own,
					  .order.comment = own->comment };
	struct store_config cfg;
	int r;

	if ((r = changes_check_free(all, &q, err)) ||
	    (r = store_config(all->env->store, &cfg, err))) {
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

	if ((r = changes_check_free(all, &q, err)) ||
	    (r = plan_request_new(all->queue, NULL, NULL, 0, &pr, err))) {
		restore_request_free(restore);
		return r;
	}
	pr->prepare = prepare_restore;
	pr->mode = PLAN_UPDATE;
	return changes_start(all, NULL, &q, pr, "", err);
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
	int r = changes_check_free(all, q, err);

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

	if (changes_is_answered(all, call, msg, &q)) {
		return;
	}
	if (rollback(all, call, &q, req, &err)) {
		rpc_finish_err(call, &err);
	}
}

/* ---- light of a step ------------------------------------------------------ */

/* The present configuration, with the light of that collective for that job. */
static int set_light(struct changes *all, struct rpc_call *call, const struct change_request *q,
		     const Weft__V1__SetLightRequest *req, struct err *err)
{
	const char *const only[] = { req->job, NULL }, *known;
	struct plan_request *pr;
	int r = changes_check_free(all, q, err);

	if (r) {
		return r;
	}
	if (!req->job[0] || !req->collective[0]) {
		return err_set(err, WEFT_EINVAL, "job or collective: it is empty");
	}
	if (all->partners.ask) {
		return err_set(err, WEFT_EUNSUPPORTED, "several weftd lead this fabric: light that "
			       "changes by collective is not supported");
	}
	r = plan_request_new(all->queue, NULL, NULL, 0, &pr, err);
	if (r) {
		return r;
	}
	pr->only = copy_names(only);
	pr->light_job = x_dup(req->job);
	pr->light_of = x_dup(req->collective);
	known = job_status_step(all->jobs, req->job);
	pr->light_step = known ? x_dup(known) : NULL;
	return changes_start(all, call, q, pr, "", err);
}

void changes_set_light(struct changes *all, struct rpc_call *call,
		       const Weft__V1__SetLightRequest *req)
{
	struct buf comment = { 0 };
	struct change_request q = { .order.request_id = req->request_id };
	struct err err = { 0 };

	if (changes_is_answered(all, call, &req->base, &q)) {
		return;
	}
	buf_printf(&comment, "light of job %s for %s", req->job, req->collective);
	q.order.comment = buf_cstr(&comment);
	if (set_light(all, call, &q, req, &err)) {
		rpc_finish_err(call, &err);
	}
	buf_fini(&comment);
}

/* ---- cancel -------------------------------------------------------------- */

/* True when it is this change that waits for its confirmation. */
static bool waits(const struct changes *all, const struct finished_change *f, const char *id)
{
	return all->confirm.change && (!id[0] || (f && f->res.change == all->confirm.change));
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
		changes_watch(c, call);
		changes_stop_running(c, call);
		return;
	}
	f = id[0] ? changes_find_finished(all, id) : NULL;
	if (waits(all, f, id)) {
		env_audit_call(all->env, call, all->confirm.change, "cancelled");
		if (changes_begin_back(all, call, all->confirm.back_to,
				   "cancelled instead of confirmed", &err)) {
			rpc_finish_err(call, &err);
		}
		return;
	}
	if (f) {
		changes_send_result(call, &f->res, f->rc, &f->err);
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
		changes_stop_running(all->now, call);
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
