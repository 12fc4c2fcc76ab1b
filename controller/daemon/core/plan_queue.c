/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that plan: shares, the queue, the steps of one of them.
 *
 * A request gets a process of its own, in its turn. That reads its configuration before weftd
 * does, on a worker, so that what cannot be read, or costs too much to be, is refused there while
 * others work. Then the request has the devices for itself: those of its configuration are
 * opened and read, what planning starts from is copied, and the process makes the plan. Who
 * makes a change has the slot until the request is freed, so that it can be carried out on the
 * state that its plan was made from; who only looks gives it back before the plan is made, and
 * others than operators never have it. A request for another configuration than
 * the present one opens other devices; afterwards the present ones are opened
 * and read again.
 *
 * What is left for weftd's workers is linear in what the process has read or written within its
 * limits: reading the text once more (READ_MAX_NS of CPU at most), reading the plan, its rows.
 */
#include <assert.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/plan_process.h"
#include "controller/daemon/core/plan_queue.h"
#include "controller/plan/plan_layout.h"
#include "controller/webui/webui.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/output/layout_table.h"

#define READ_MAX_NS (INT64_C(10) * 1000000000)	/* of CPU, for a text that weftd reads too */
#define REST_MAX_NS (INT64_C(1) * 1000000000)	/* a process that planned longer plans no more */
#define MAX_OPERATORS 4		/* plans of operators at a time; of others: max_others */
#define MAX_WAITING 16		/* plans of one user */

struct plan_queue {
	struct daemon_env *env;
	struct plan_queue_hooks hooks;
	struct plan_request *head, *last;	/* the head has the slot */
	struct plan_request *waiting;	/* for their share, in their order */
	struct plan_request *admitted;	/* have it; by next_waiting too */
	struct {
		struct plan_process *process;	/* it rests, or NULL */
		char user[PLAN_USER_MAX];	/* whose it was, and no other's may be */
	} rest[PLAN_BY_OTHER + 1];
	int n;				/* requests, from their start to their end */
	struct model_config initial;	/* until one is applied; may be empty */
};

/* ---- life ---------------------------------------------------------------- */

/* One without a configuration. */
static struct plan_request *request_alloc(struct plan_queue *q)
{
	struct plan_request *r = x_new(1, sizeof(*r));

	r->queue = q;
	r->req.data = r;
	q->n++;
	return r;
}

struct plan_request *plan_request_new_config(struct plan_queue *q,
					     const struct model_config *config)
{
	struct plan_request *r = request_alloc(q);

	model_config_copy(&r->config, config);
	return r;
}

/* The jobs of orchestrators go with every text. */
static struct plan_request *request_text(struct plan_queue *q, const char *name, const void *text,
					 size_t len)
{
	struct plan_request *r = request_alloc(q);

	model_config_init(&r->config, name && *name ? name : "<configuration>", text, len);
	q->hooks.add_jobs(&r->config, q->hooks.arg);
	return r;
}

int plan_request_new(struct plan_queue *q, const char *name, const void *text,
		     size_t len, struct plan_request **out, struct err *err)
{
	const struct model_fabric *f = apply_fabric(q->env->apply);

	if (!text && !f) {
		err_set(err, WEFT_ENOTFOUND, "no configuration was ever applied");
		err_hint(err, "give one: weft plan -f FABRIC.yaml");
		return err->code;
	}
	*out = text ? request_text(q, name, text, len) : plan_request_new_config(q, &f->config);
	return 0;
}

static void begin_slot(struct plan_request *r);

/* Puts it at the end of the queue; an empty queue means its slot is now. */
static void enqueue(struct plan_request *r)
{
	struct plan_queue *q = r->queue;

	r->queued = true;
	if (q->head) {
		q->last->next = r;
		q->last = r;
		return;
	}
	q->head = q->last = r;
	begin_slot(r);
}

bool plan_queue_busy(const struct plan_queue *q)
{
	return q->env->changing || q->head || q->env->reading;
}

bool plan_queue_drained(const struct plan_queue *q)
{
	return q->n == 0;
}

static void after_reading_again(int rc, const struct err *err, void *arg)
{
	struct plan_request *r = arg;

	if (rc) {
		log_info("weftd", "%s", err->msg);
	}
	r->queue->env->reading = false;
	plan_request_free(r);
}

static void read_again(struct plan_request *r)
{
	apply_reading_for(r->queue->env->apply, STORE_BY_START);
	apply_read(r->queue->env->apply, after_reading_again, r);
}

/* Whether every device of the present fabric answered when it was last asked. */
static bool all_read(struct apply *apply)
{
	const struct apply_device *a;
	bool known = true;
	int n;

	a = apply_devices(apply, &n);
	for (int i = 0; i < n; i++) {
		known = known && (a[i].reachable || !apply_is_read(&a[i]));
	}
	return known;
}

/* Back to the present fabric. Those of its devices that were closed meanwhile
 * are not known any more. */
static void return_to_present(struct plan_queue *q)
{
	struct daemon_env *env = q->env;
	const struct model_fabric *before = apply_fabric(env->apply);
	struct err err = { 0 };
	int rc = plan_queue_settle(q, &err);

	if (rc == 0 && apply_fabric(env->apply) != before && !all_read(env->apply)) {
		env->reading = true;
		plan_queue_slot(q, read_again, NULL);
	}
	if (rc) {
		env->reading = false;
		log_warn("weftd", "%s", err.msg);
	}
}

/* What it still holds, on a worker: a plan may be large. An applied plan and its fabric were
 * taken out before. */
static void run_free(uv_work_t *req)
{
	struct plan_request *r = req->data;

	plan_free(r->plan);
	buf_fini(&r->answer);
	model_free(r->fabric);
	model_free(r->probe);
	daemon_snapshot_fini(&r->snap);
	buf_fini(&r->picture);
	buf_fini(&r->steps);
	job_rows_fini(&r->rows);
	model_config_fini(&r->config);
	err_list_fini(&r->errs);
	free(r->only);
	free(r->light_job);
	free(r->light_of);
	free(r->light_step);
	/* And the daemon is small. */
	malloc_trim(0);
}

static void after_free(uv_work_t *req, int status)
{
	struct plan_request *r = req->data;
	struct plan_queue *q = r->queue;

	(void)status;
	free(r);
	q->n--;
	if (q->env->draining && plan_queue_drained(q)) {
		q->hooks.drained(q->hooks.arg);
	}
}

/* The next request gets the slot, and may begin before this returns. One that slot_ended has added
 * to an empty queue has begun. */
static void leave_slot(struct plan_request *r)
{
	struct plan_queue *q = r->queue;
	struct plan_request *next;

	assert(q->head == r);
	if (r->probed && !q->env->draining) {
		return_to_present(q);
	}
	r->queued = r->probed = false;
	q->hooks.slot_ends(q->hooks.arg);
	q->head = next = r->next;
	q->hooks.slot_ended(q->hooks.arg);
	if (next) {
		begin_slot(next);
	}
}

static void leave_share(struct plan_request *r);

void plan_request_free(struct plan_request *r)
{
	plan_process_free(r->process);
	r->process = NULL;
	leave_share(r);
	if (r->queued) {
		leave_slot(r);
	}
	r->req.data = r;
	uv_queue_work(r->queue->env->loop, &r->req, run_free, after_free);
}

/* ---- a slot without planning --------------------------------------------- */

void plan_queue_slot(struct plan_queue *q, void (*run)(struct plan_request *r), void *arg)
{
	struct plan_request *r = request_alloc(q);

	r->done = run;
	r->arg = arg;
	enqueue(r);
}

/* ---- the worker ---------------------------------------------------------- */

/* Its devices are read before it is planned. */
static bool reads(const struct plan_request *r)
{
	return !r->offline && r->by != PLAN_BY_OTHER;
}

static void run_nothing(uv_work_t *req)
{
	(void)req;	/* done comes later, as promised */
}

static void cancelled(struct plan_request *r)
{
	r->rc = err_set(&r->err, WEFT_ECANCELED, r->queue->env->draining ? "weftd is stopping"
								       : "its client is gone");
}

/* Its process may plan for the same user again. */
static void rest(struct plan_request *r)
{
	struct plan_queue *q = r->queue;

	if (r->process && r->plan_ns < REST_MAX_NS && !q->env->draining) {
		snprintf(q->rest[r->by].user, sizeof(q->rest[r->by].user), "%s", r->user);
		plan_process_rest(r->process, &q->rest[r->by].process);
		r->process = NULL;
	}
}

/* What the process has answered, for read_answer, or how it has ended. */
static void take_answer(struct plan_request *r, int rc, const struct buf *answer,
			const struct err *err)
{
	r->asks = false;
	r->rc = rc;
	if (rc) {
		r->err = *err;
	} else {
		buf_add(&r->answer, answer->data, answer->len);
	}
}

/* Its error is the request's. */
static int read_answer(struct plan_request *r, struct plan_answer *a)
{
	int rc = layout_read(&plan_answer_layout, a, r->answer.data, r->answer.len, &r->err);

	if (rc) {
		return err_set(&r->err, WEFT_EINTERNAL, "what planning answered cannot be read");
	}
	r->plan_ns = a->took_ns;
	rc = a->err.code;
	if (rc) {
		r->err = a->err;
		r->errs = a->errs;
		a->errs = (struct err_list){ 0 };
		layout_fini(&plan_answer_layout, a);
	}
	return rc > 0 || rc < WEFT_EINTERNAL ? r->err.code = WEFT_EINTERNAL : rc;
}

/* On a worker. Its devices may have to be opened to be planned, by a fabric of their own. */
static void run_parse(uv_work_t *req)
{
	struct plan_request *r = req->data;

	r->rc = plan_parse(&r->config, &r->fabric, &r->errs, &r->err);
	if (r->rc == 0 && reads(r)) {
		r->rc = plan_parse(&r->config, &r->probe, &r->errs, &r->err);
	}
	if (r->rc == 0 && r->has_keep) {
		r->fabric->changes.keep_ppm = r->keep_ppm;
	}
}

/* Without a picture there is still a plan. */
static void draw(struct plan_request *r)
{
	struct err err = { 0 };

	if (page_picture(r->fabric, r->bare_picture ? NULL : r->plan, &r->picture, &err)) {
		log_warn("weftd", "the page has no picture: %s", err.msg);
		buf_fini(&r->picture);
	}
	if (!r->bare_picture && r->plan && page_steps(r->plan, &r->steps, &err)) {
		log_warn("weftd", "the page has no schedules: %s", err.msg);
		buf_fini(&r->steps);
	}
}

/* On a worker: touches nothing but the request. */
static void run_read(uv_work_t *req)
{
	struct plan_request *r = req->data;
	struct plan_answer a;

	r->rc = read_answer(r, &a);
	if (r->rc == 0) {
		r->rc = plan_from_bytes(r->fabric, a.plan, a.len, &r->plan, &r->err);
		if (r->rc) {
			r->rc = err_set(&r->err, WEFT_EINTERNAL, "what planning answered is no "
					"plan");
		}
		layout_fini(&plan_answer_layout, &a);
	}
	buf_fini(&r->answer);
}

/* On a worker again, as jobs may have many arcs: what was planned is known by now. */
static void run_rows(uv_work_t *req)
{
	struct plan_request *r = req->data;

	if (r->with_picture && page_find("/")) {
		draw(r);
	}
	if (r->with_rows) {
		job_rows_make(r);
	}
}

static void after_rows(uv_work_t *req, int status)
{
	struct plan_request *r = req->data;

	(void)status;
	r->done(r);
}

/* On the loop again: those above may refuse the plan before who asked sees it. */
static void after_plan(uv_work_t *req, int status)
{
	struct plan_request *r = req->data;

	(void)status;
	rest(r);
	if (r->cancelled) {
		cancelled(r);
	}
	r->queue->hooks.planned(r, r->queue->hooks.arg);
	if ((r->with_picture || r->with_rows) && (r->rc == 0 || r->offline)) {
		uv_queue_work(r->queue->env->loop, &r->req, run_rows, after_rows);
	} else {
		r->done(r);
	}
}

/* What planning starts from, on the loop. */
static int copy_base(struct plan_request *r)
{
	const struct plan_queue *q = r->queue;
	char *topologies;
	struct plan_base base;
	int rc = store_topologies(q->env->store, r->back_to, &topologies, &r->err);

	if (rc == 0 && r->light_job) {
		rc = plan_set_light(r->fabric, r->light_job, r->light_of, &topologies, &r->err);
	}
	if (rc) {
		free(topologies);
		return rc;
	}
	apply_plan_base(q->env->apply, r->fabric, r->mode, &base);
	base.topologies = topologies;
	daemon_snapshot_init(&r->snap, &base, r->fabric->n_devices);
	free(topologies);
	r->assess = !r->offline && q->hooks.outdated(r, q->hooks.arg);
	r->snap.base.only = r->only;
	r->snap.base.partial = r->light_job != NULL;
	r->snap.base.aim = r->aim;
	memcpy(r->snap.base.evacuated, r->evacuated, sizeof(r->evacuated));
	q->hooks.restrict_base(r, q->hooks.arg);
	rc = r->prepare ? r->prepare(r, &r->err) : 0;
	r->assess = r->assess && !r->waits;	/* others know more */
	return rc;
}

/* The plan is there, or how the process has ended. */
static void on_plan(int rc, const struct buf *answer, const struct err *err, void *arg)
{
	struct plan_request *r = arg;

	take_answer(r, rc, answer, err);
	uv_queue_work(r->queue->env->loop, &r->req, rc ? run_nothing : run_read, after_plan);
}

/* With the NULL behind them. */
static int count_names(const char *const *names)
{
	int n = 0;

	while (names && names[n++]) {
	}
	return n;
}

static void ask_plan(struct plan_request *r)
{
	const struct plan_task t = {
		.snap = r->snap, .only = (char **)r->snap.base.only,
		.n_only = count_names(r->snap.base.only),
		.restores = r->snap.base.restore != NULL,
		.restore = (struct plan_restore *)r->snap.base.restore,
		.n_restore = r->snap.base.restore ? r->snap.base.n_restore : 0,
		.degraded = r->offline, .assess = r->assess,
		.step = r->light_step ? r->light_step : (char *)"",
		.ignore_floor = r->ignore_floor, .has_keep = r->has_keep,
		.keep_ppm = r->keep_ppm,
	};
	struct buf question = { 0 };

	layout_write(&plan_task_layout, &t, &question);
	r->asks = true;
	plan_process_ask(r->process, &question, on_plan, r);
	if (r->brief && r->queued) {
		leave_slot(r);
	}
}

static void plan_or_end(struct plan_request *r)
{
	if (r->cancelled) {
		cancelled(r);
	}
	if (r->rc) {
		r->done(r);
	} else {
		ask_plan(r);
	}
}

static void start_plan(struct plan_request *r)
{
	r->rc = copy_base(r);
	if (r->rc || !r->waits) {
		plan_or_end(r);
	}
}

void plan_request_go_on(struct plan_request *r, int rc, const struct err *err)
{
	assert(r->waits);
	r->waits = false;
	r->rc = rc;
	if (rc) {
		r->err = *err;
	}
	plan_or_end(r);
}

static void after_parse(uv_work_t *req, int status)
{
	struct plan_request *r = req->data;

	(void)status;
	if (r->cancelled) {
		cancelled(r);
	}
	if (r->rc) {
		r->done(r);
	} else if (reads(r)) {
		enqueue(r);
	} else {
		start_plan(r);
	}
}

/* The process has read the configuration, or not. */
static void on_config(int rc, const struct buf *answer, const struct err *err, void *arg)
{
	struct plan_request *r = arg;
	struct plan_answer a;

	take_answer(r, rc, answer, err);
	if (rc == 0) {
		r->rc = read_answer(r, &a);
		buf_fini(&r->answer);
	}
	if (r->rc == 0) {
		layout_fini(&plan_answer_layout, &a);
		if (a.took_ns > READ_MAX_NS) {
			r->rc = err_set(&r->err, WEFT_ELIMIT, "%s: takes %lld s to be read, more "
					"than %lld s", r->config.name,
					(long long)(a.took_ns / 1000000000),
					(long long)(READ_MAX_NS / 1000000000));
		}
	}
	if (r->rc) {
		rest(r);
	}
	uv_queue_work(r->queue->env->loop, &r->req, r->rc ? run_nothing : run_parse, after_parse);
}

static const struct plan_limits *limits_of(const struct plan_request *r, struct plan_limits *l)
{
	static const int nice[] = { [PLAN_BY_WEFTD] = 0, [PLAN_BY_OPERATOR] = 5,
				    [PLAN_BY_OTHER] = 15 };

	*l = (struct plan_limits){ r->queue->env->plan_memory_mib, r->queue->env->plan_time_s,
				   nice[r->by] };
	return l;
}

static void ask_config(struct plan_request *r)
{
	struct buf question = { 0 };
	struct plan_limits l;

	if (strcmp(r->queue->rest[r->by].user, r->user) == 0) {
		r->process = plan_process_wake(&r->queue->rest[r->by].process);
	}
	if (!r->process) {
		r->rc = plan_process_new(r->queue->env->loop, limits_of(r, &l), &r->process,
					 &r->err);
	}
	if (r->rc) {
		uv_queue_work(r->queue->env->loop, &r->req, run_nothing, after_parse);
		return;
	}
	layout_write(&plan_config_layout, &r->config, &question);
	r->asks = true;
	plan_process_ask(r->process, &question, on_config, r);
}

/* ---- shares ------------------------------------------------------------------ */

/* Of the requests in a list: those of such askers, or of one of their users. */
static int count(const struct plan_request *r, enum plan_by by, const char *user)
{
	int n = 0;

	for (; r; r = r->next_waiting) {
		n += r->by == by && (!user || strcmp(r->user, user) == 0);
	}
	return n;
}

/* Takes it out of the list that it is in. */
static bool unlink_request(struct plan_request **list, const struct plan_request *r)
{
	for (; *list; list = &(*list)->next_waiting) {
		if (*list == r) {
			*list = r->next_waiting;
			return true;
		}
	}
	return false;
}

/* All processors but one, which is left for weftd and operators. */
static int max_others(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN) - 1;

	return n < 1 ? 1 : (int)n;
}

/* Who has waited longest of those whose user has the least; NULL: none may begin. */
static struct plan_request *find_next(struct plan_queue *q, enum plan_by by, int most)
{
	struct plan_request *best = NULL;
	int n, least = 0;

	if (count(q->admitted, by, NULL) >= most) {
		return NULL;
	}
	for (struct plan_request *r = q->waiting; r; r = r->next_waiting) {
		n = r->by == by ? count(q->admitted, by, r->user) : 0;
		if (r->by == by && (!best || n < least)) {
			best = r;
			least = n;
		}
	}
	return best;
}

static void admit(struct plan_request *r)
{
	r->admitted = true;
	r->next_waiting = r->queue->admitted;
	r->queue->admitted = r;
	ask_config(r);
}

static void admit_next(struct plan_queue *q)
{
	struct plan_request *r;

	while ((r = find_next(q, PLAN_BY_OPERATOR, MAX_OPERATORS)) ||
	       (r = find_next(q, PLAN_BY_OTHER, max_others()))) {
		unlink_request(&q->waiting, r);
		admit(r);
	}
}

static void leave_share(struct plan_request *r)
{
	if (r->admitted) {
		unlink_request(&r->queue->admitted, r);
		r->admitted = false;
		admit_next(r->queue);
	}
}

int plan_request_check_aim(const struct plan_request *r, struct err *err)
{
	if (r->queue->env->divided && (r->aim != PLAN_REPAIR || r->evacuated[0])) {
		return err_set(err, WEFT_EUNSUPPORTED, "several weftd lead this fabric: to "
			       "optimise or evacuate it is not supported");
	}
	return 0;
}

void plan_request_start(struct plan_request *r)
{
	struct plan_queue *q = r->queue;
	struct plan_request **end = &q->waiting;

	if (r->by == PLAN_BY_WEFTD) {
		admit(r);
		return;
	}
	if (count(q->waiting, r->by, r->user) >= MAX_WAITING) {
		r->rc = err_set(&r->err, WEFT_ELIMIT, "%d plans of %s wait already", MAX_WAITING,
				r->user);
		uv_queue_work(q->env->loop, &r->req, run_nothing, after_parse);
		return;
	}
	while (*end) {
		end = &(*end)->next_waiting;
	}
	*end = r;
	admit_next(q);
}

void plan_request_cancel(struct plan_request *r)
{
	bool waits = unlink_request(&r->queue->waiting, r);

	r->cancelled = true;
	if (waits || r->asks) {
		r->asks = false;
		plan_process_free(r->process);
		r->process = NULL;
		cancelled(r);
		r->done(r);
	}
}

void plan_queue_stop(struct plan_queue *q)
{
	struct plan_request *r;

	for (int i = 0; i <= PLAN_BY_OTHER; i++) {
		plan_process_free(q->rest[i].process);
	}
	while ((r = q->waiting)) {
		plan_request_cancel(r);
	}
	for (r = q->admitted; r;) {
		struct plan_request *next = r->next_waiting;

		if (r->by != PLAN_BY_WEFTD && !r->cancelled) {
			plan_request_cancel(r);
			next = q->admitted;
		}
		r = next;
	}
}

/* ---- a slot that plans --------------------------------------------------- */

/* A device that does not answer is no reason not to plan: what was last
 * read of it stands, and applying will find out. */
static void after_read(int rc, const struct err *err, void *arg)
{
	if (rc) {
		log_info("weftd", "planning without a fresh reading: %s", err->msg);
	}
	start_plan(arg);
}

/* Opens the devices of a configuration that is not the present one. */
static int probe(struct plan_request *r)
{
	struct apply *apply = r->queue->env->apply;
	const struct model_fabric *f = apply_fabric(apply);
	int rc;

	if (f && strcmp(f->hash, r->fabric->hash) == 0) {
		return 0;
	}
	rc = apply_set_fabric(apply, r->probe, &r->err);
	r->probe = NULL;
	r->probed = rc == 0;
	return rc;
}

/* The devices are this request's now: it reads them if it is to plan, and else
 * does what it wanted the slot for. */
static void take_slot(struct plan_request *r)
{
	struct apply *apply = r->queue->env->apply;

	if (r->cancelled) {
		cancelled(r);
	}
	if (!r->config.text || r->rc) {
		r->done(r);
		return;
	}
	r->rc = probe(r);
	if (r->rc) {
		r->done(r);
		return;
	}
	apply_reading_for(apply, STORE_BY_PLAN);
	apply_read(apply, after_read, r);
}

/* Asked as if weftd had just started: what was found may be the commit. */
static void after_recovery(int rc, const char *text, void *arg)
{
	struct plan_request *r = arg;
	struct plan_queue *q = r->queue;

	plan_queue_recovered(q, rc, text);
	q->hooks.recovered(q->hooks.arg);
	take_slot(r);
}

/* A change whose end could not be recorded is settled before anything else,
 * as at a start. */
static void begin_slot(struct plan_request *r)
{
	const struct daemon_env *env = r->queue->env;

	if (apply_unresolved(env->apply) && !env->reading && !env->standby) {
		apply_recover(env->apply, after_recovery, r);
	} else {
		take_slot(r);
	}
}

/* ---- the present fabric -------------------------------------------------- */

/* The configuration whose devices are the present ones. */
static int find_present(struct store *store, struct store_config *out, struct err *err)
{
	struct store_journal *open = NULL;
	int n = 0, rc = store_open_changes(store, &open, &n, err);

	if (rc == 0 && n > 0) {
		rc = store_change_config(store, open[0].change.id, out, err);
	} else if (rc == 0) {
		rc = store_config(store, out, err);
	}
	store_journals_free(open, n);
	return rc;
}

/* Makes it the present one: its devices are opened, the former ones closed. */
static int use_config(struct plan_queue *q, const struct model_config *config, struct err *err)
{
	struct model_fabric *f = NULL;
	struct err_list errs = { .max = 1 };
	int rc = plan_parse(config, &f, &errs, err);

	err_list_fini(&errs);
	if (rc) {
		return rc;
	}
	return apply_set_fabric(q->env->apply, f, err);
}

int plan_queue_settle(struct plan_queue *q, struct err *err)
{
	const struct model_fabric *f = apply_fabric(q->env->apply);
	struct store_config cfg;
	int rc = find_present(q->env->store, &cfg, err);

	q->env->applied = rc != WEFT_ENOTFOUND;
	if (rc == WEFT_ENOTFOUND) {
		err_clear(err);
		return f || !q->initial.text ? 0 : use_config(q, &q->initial, err);
	}
	if (rc) {
		return rc;
	}
	if (!f || strcmp(f->hash, cfg.hash) != 0) {
		rc = use_config(q, &cfg.config, err);
	}
	store_config_fini(&cfg);
	return rc;
}

void plan_queue_recovered(struct plan_queue *q, int rc, const char *text)
{
	struct err err = { 0 };

	if (rc) {
		log_warn("weftd", "%s", text);
	} else {
		log_info("weftd", "%s", text);
	}
	if (plan_queue_settle(q, &err)) {
		log_warn("weftd", "%s", err.msg);
	}
}

int plan_queue_set_default(struct plan_queue *q, const char *path, struct err *err)
{
	int rc = file_read(path, MODEL_MAX_TEXT, &q->initial.text, &q->initial.len, err);

	q->initial.name = x_dup(path);
	return rc ? rc : model_splice(path, &q->initial.text, &q->initial.len, err);
}

struct plan_queue *plan_queue_new(struct daemon_env *env, const struct plan_queue_hooks *hooks)
{
	struct plan_queue *q = x_new(1, sizeof(*q));

	*q = (struct plan_queue){ .env = env, .hooks = *hooks };
	return q;
}

void plan_queue_free(struct plan_queue *q)
{
	if (q) {
		model_config_fini(&q->initial);
		free(q);
	}
}
