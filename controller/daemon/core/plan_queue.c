/*
 * Requests that plan: the queue, the worker, the steps of one of them.
 *
 * A request is parsed on a worker before it gets its slot, so that a bad
 * configuration is refused while others work; then it has the devices for
 * itself: those of its configuration are opened and read, what planning starts
 * from is copied, and the plan is made on a worker again. Whoever asked has the
 * slot until the request is freed, so that a change can be carried out on the
 * state that its plan was made from. A request for another configuration than
 * the present one opens other devices; afterwards the present ones are opened
 * and read again.
 */
#include <assert.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/plan_queue.h"
#include "controller/webui/webui.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

struct plan_queue {
	struct daemon_env *env;
	struct plan_queue_hooks hooks;
	struct plan_request *head, *last;	/* the head has the slot */
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
	plan_free(r->before);
	model_free(r->fabric);
	model_free(r->probe);
	daemon_snapshot_fini(&r->snap);
	buf_fini(&r->picture);
	buf_fini(&r->steps);
	job_rows_fini(&r->rows);
	model_config_fini(&r->config);
	err_list_fini(&r->errs);
	free(r->only);
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

void plan_request_free(struct plan_request *r)
{
	struct plan_queue *q = r->queue;
	bool had_slot = r->queued;

	assert(!had_slot || q->head == r);
	if (r->probed && !q->env->draining) {
		return_to_present(q);
	}
	if (had_slot) {
		q->hooks.slot_ends(q->hooks.arg);
		q->head = r->next;
	}
	r->req.data = r;
	uv_queue_work(q->env->loop, &r->req, run_free, after_free);
	if (had_slot) {
		q->hooks.slot_ended(q->hooks.arg);
	}
	if (had_slot && q->head) {
		begin_slot(q->head);
	}
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

/* The first error of a configuration, and how many more there are; errs gets all. */
static int parse(const struct model_config *config, struct model_fabric **out,
		 struct err_list *errs, struct err *err)
{
	int rc = model_parse_config(config, out, errs);
	int more = errs->n + errs->dropped - 1;

	if (rc && errs->n > 0) {
		*err = errs->v[0];
	} else if (rc) {
		err_set(err, rc, "%s: cannot be read", config->name);
	}
	if (rc && more > 0) {
		err_hint(err, "and %d more: \"weft check\" shows all", more);
	}
	return rc;
}

/* On a worker. Its devices may have to be opened to be planned, by a fabric of their own. */
static void run_parse(uv_work_t *req)
{
	struct plan_request *r = req->data;

	r->rc = parse(&r->config, &r->fabric, &r->errs, &r->err);
	if (r->rc == 0 && !r->offline) {
		r->rc = parse(&r->config, &r->probe, &r->errs, &r->err);
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
static void run_plan(uv_work_t *req)
{
	struct plan_request *r = req->data;
	int64_t begun_ns = clk_now_ns();

	if (r->has_keep) {
		r->fabric->changes.keep_ppm = r->keep_ppm;
	}
	r->snap.base.is_rollback = r->ignore_floor;
	if (r->assess && plan_degraded(r->fabric, &r->snap.base, &r->before, NULL)) {
		log_info("weftd", "what jobs gain is not known");
	}
	if (r->offline) {
		r->rc = plan_degraded(r->fabric, &r->snap.base, &r->plan, &r->err);
	} else {
		r->rc = plan_make(r->fabric, &r->snap.base, &r->plan, &r->err);
	}
	if (r->rc == WEFT_EINFEASIBLE && r->ignore_floor) {
		r->snap.base.no_floor = true;
		r->rc = plan_make(r->fabric, &r->snap.base, &r->plan, &r->err);
	}
	r->plan_ns = clk_now_ns() - begun_ns;
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
	struct plan_base base;

	apply_plan_base(q->env->apply, r->fabric, r->mode, &base);
	daemon_snapshot_init(&r->snap, &base, r->fabric->n_devices);
	r->assess = !r->offline && !r->prepare && q->hooks.outdated(r, q->hooks.arg);
	r->snap.base.only = r->only;
	q->hooks.restrict_base(r->fabric, &r->snap, q->hooks.arg);
	return r->prepare ? r->prepare(r, &r->err) : 0;
}

static void plan_or_end(struct plan_request *r)
{
	if (r->rc) {
		r->done(r);
	} else {
		uv_queue_work(r->queue->env->loop, &r->req, run_plan, after_plan);
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
	if (r->rc) {
		r->done(r);
	} else if (r->offline) {
		start_plan(r);
	} else {
		enqueue(r);
	}
}

void plan_request_start(struct plan_request *r)
{
	uv_queue_work(r->queue->env->loop, &r->req, run_parse, after_parse);
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

	if (!r->config.text) {
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
	int rc = parse(config, &f, &errs, err);

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
	q->initial.name = x_dup(path);
	return file_read(path, MODEL_MAX_TEXT, &q->initial.text, &q->initial.len, err);
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
