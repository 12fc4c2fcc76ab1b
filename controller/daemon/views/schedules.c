/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GetSchedule: all ranks of a job ask when it starts, so a schedule is planned once
 * and kept as the plan has it, which is compact where the job has symmetry; what a
 * call asks for, mostly the part of one rank, is cut out and written on a worker, and
 * sent in pieces as fast as its client reads.
 *
 * A schedule needs no device: it follows from the configuration, the circuits as
 * applied and those that are dead. What was planned holds until one of these
 * changes. Calls that come while a plan is made wait for it, unless something has
 * changed since it began: they wait for the next. The plan itself goes at once, and
 * of its schedules those asked for last stay within KEPT_BYTES; a larger one stays
 * until there was no call for it for IDLE_MS.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "controller/daemon/views/private.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"

#define PUMP_MS 5		/* how long a full queue is given to drain */
#define KEPT_BYTES ((size_t)16 << 20)
#define IDLE_MS 60000

/* A job's schedule, or why it has none. Of whoever keeps it and of every call that
 * writes it on a worker: it does not change. */
struct kept_schedule {
	TAILQ_ENTRY(kept_schedule) link;
	int refs;		/* on the loop only */
	char *job;		/* its name; owned */
	struct coll_sched *sched;	/* NULL: there is none */
	struct buf step;	/* of a step as a whole, in place of a schedule: as JSON */
	size_t bytes;		/* of memory, about */
	bool is_ring;
	int dead;		/* of its circuits or parts; then sched is for what remains. 0
				 * without sched: the program of a ring does not play */
	char part[RING_FAULT_TEXT];	/* the first of them, of a ring */
	double rate;		/* of sched, of that with all */
	struct err why;		/* what remains has no schedule */
};

/* What schedules were planned from. */
struct schedule_basis {
	char hash[65];		/* of the configuration */
	int64_t generation;	/* of what was applied */
	uint64_t failed;	/* a mark of the dead circuits */
	uint64_t overlap;	/* a mark of the rings that set channels ahead */
};

TAILQ_HEAD(schedule_calls, schedule_call);

struct schedules {
	const struct views *views;
	TAILQ_HEAD(kept_list, kept_schedule) kept;	/* the last asked for first */
	size_t bytes;		/* of all of them */
	bool is_known;		/* the next two are */
	struct schedule_basis basis;	/* of what is kept */
	uint64_t version;	/* of the devices when basis was compared last */
	bool planning;
	bool copied;		/* it has begun: plan_basis is known */
	struct schedule_basis plan_basis;
	struct schedule_calls waiting;
	struct part_timer *idle;
};

/* A call of GetSchedule. While it is written and sent it needs nothing of struct
 * schedules, which may be gone first. */
struct schedule_call {
	TAILQ_ENTRY(schedule_call) link;	/* while it waits */
	struct schedules *schedules;
	struct rpc_call *call;	/* NULL: gone */
	char *job;		/* its name; owned */
	bool needs_next;	/* the plan under way began before it came */
	struct kept_schedule *kept;	/* held while it is written */
	uv_work_t req;
	uv_timer_t timer;	/* its handle keeps the memory until it is closed */
	struct buf bytes;	/* what is sent */
	size_t at;		/* how much of it was */
	bool degraded;		/* on what works of its circuits */
	bool needs_all;		/* or none at all */
	bool has_rank;		/* the part of one */
	int64_t rank;		/* from 0; checked when it is cut out */
	int rc;			/* 0, or the WEFT_E... of err */
	struct err err;
};

/* ---- what is kept -------------------------------------------------------- */

static void kept_unref(struct kept_schedule *k)
{
	if (k && --k->refs == 0) {
		coll_free(k->sched);
		buf_fini(&k->step);
		free(k->job);
		free(k);
	}
}

static void drop(struct schedules *s, struct kept_schedule *k)
{
	TAILQ_REMOVE(&s->kept, k, link);
	s->bytes -= k->bytes;
	kept_unref(k);
}

/* But for so many bytes, and the first. */
static void drop_beyond(struct schedules *s, size_t bytes)
{
	while (s->bytes > bytes && TAILQ_FIRST(&s->kept) != TAILQ_LAST(&s->kept, kept_list)) {
		drop(s, TAILQ_LAST(&s->kept, kept_list));
	}
}

static void drop_all(struct schedules *s)
{
	while (!TAILQ_EMPTY(&s->kept)) {
		drop(s, TAILQ_FIRST(&s->kept));
	}
	s->is_known = false;
}

/* No call for a while: a large one goes as well. */
static void on_idle(void *arg)
{
	struct schedules *s = arg;

	if (s->bytes > KEPT_BYTES) {
		drop_all(s);
	}
}

/* The job's, which becomes the last asked for; NULL: not kept. O(kept). */
static struct kept_schedule *find_kept(struct schedules *s, const char *job)
{
	struct kept_schedule *k;

	TAILQ_FOREACH (k, &s->kept, link) {
		if (strcmp(k->job, job) == 0) {
			TAILQ_REMOVE(&s->kept, k, link);
			TAILQ_INSERT_HEAD(&s->kept, k, link);
			part_timer_start(s->idle, IDLE_MS);
			return k;
		}
	}
	return NULL;
}

/* "job/collective", as those of steps are kept, the step itself as "job/", one of several schedules
 * of a collective as "job/collective/2"; free(). */
static char *step_key(const char *job, const char *collective, bool is_step)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s%s%s", job, collective[0] || is_step ? "/" : "", collective);
	return buf_steal(&b);
}

/* Takes a job's schedule out of its plan; use: that of a step's collective, NULL: no step. */
static struct kept_schedule *kept_new(const char *job, struct plan_job *pj,
				      struct workload_use *use)
{
	const struct plan_job_loss *loss = pj->loss;
	struct kept_schedule *k = x_new(1, sizeof(*k));

	k->job = x_dup(job);
	k->refs = 1;
	k->is_ring = pj->is_ring;
	if (use) {
		k->sched = use->sched;
		use->sched = NULL;
	} else {
		k->sched = plan_take_schedule(pj);
	}
	k->bytes = sizeof(*k) + (k->sched ? coll_memory(k->sched) : 0);
	if (loss) {
		k->dead = loss->dead;
		k->rate = loss->rate;
		k->why = loss->why;
		memcpy(k->part, loss->part, sizeof(k->part));
	}
	if (use && k->sched && !use->degraded) {	/* no dead circuit serves it */
		k->dead = 0;
	}
	return k;
}

static bool is_wanted(const struct schedules *s, const char *job)
{
	const struct schedule_call *p;

	TAILQ_FOREACH (p, &s->waiting, link) {
		if (strcmp(p->job, job) == 0) {
			return true;
		}
	}
	return false;
}

/* Keeps one where there is room, or where it is waited for. */
static void keep(struct schedules *s, const char *name, struct plan_job *pj,
		 struct workload_use *use)
{
	const struct coll_sched *sched = use ? use->sched : pj->sched;
	bool wanted = is_wanted(s, name);
	struct kept_schedule *k;

	if (!wanted && s->bytes + (sched ? coll_memory(sched) : 0) > KEPT_BYTES) {
		return;
	}
	k = kept_new(name, pj, use);
	s->bytes += k->bytes;
	if (wanted) {
		TAILQ_INSERT_HEAD(&s->kept, k, link);
	} else {
		TAILQ_INSERT_TAIL(&s->kept, k, link);
	}
}

/* Those of a step, one for each collective but sends, and the step itself. */
static void keep_step(struct schedules *s, const struct model_job *job, struct plan_job *pj)
{
	struct workload_use none = { 0 };
	char *key = step_key(job->name, "", true);
	struct kept_schedule *k = kept_new(key, pj, &none);

	workload_to_json(job->workload, pj->step, &k->step);
	k->bytes += k->step.len;
	s->bytes += k->bytes;
	TAILQ_INSERT_TAIL(&s->kept, k, link);
	free(key);
	for (size_t i = 0; i < pj->step->uses.n; i++) {
		struct workload_use *use = &pj->step->uses.v[i];

		int number = workload_use_number(pj->step, i);
		struct buf b = { 0 };

		buf_printf(&b, number ? "%s/%s/%d" : "%s/%s", job->name,
			   job->workload->ops.v[use->op].name, number);
		keep(s, buf_cstr(&b), pj, use);
		buf_fini(&b);
	}
}

/* Keeps what there is room for, first of all what is waited for. O(jobs x waiting). */
static void keep_plan(struct schedules *s, struct plan *plan)
{
	drop_all(s);
	for (int i = 0; i < plan->n_jobs; i++) {
		struct plan_job *pj = &plan->jobs[i];
		const struct model_job *job = &plan->fabric->jobs[pj->job];

		if (pj->step) {
			keep_step(s, job, pj);
		} else {
			keep(s, job->name, pj, NULL);
		}
	}
}

/* ---- what it rests on ---------------------------------------------------- */

/* Whether a ring sets channels ahead is learned when it is read, and steps follow
 * from it. */
static uint64_t overlap_of(const struct model_fabric *f, const struct plan_base *base)
{
	uint64_t mark = 0;

	for (int d = 0; d < f->n_devices; d++) {
		mark = mark * 31 + (base->intent[d].overlap ? (uint64_t)d + 1 : 0);
	}
	return mark;
}

/* What a plan would rest on now. O(circuits). */
static void find_basis(struct apply *apply, struct schedule_basis *out)
{
	const struct model_fabric *f = apply_fabric(apply);
	struct plan_base base;

	apply_plan_base(apply, f, PLAN_SAFE, &base);
	memset(out, 0, sizeof(*out));
	memcpy(out->hash, f->hash, sizeof(out->hash));
	out->generation = base.generation;
	out->failed = plan_failed_circuits(f, &base);
	out->overlap = overlap_of(f, &base);
}

static bool is_same(const struct schedule_basis *a, const struct schedule_basis *b)
{
	return strcmp(a->hash, b->hash) == 0 && a->generation == b->generation &&
	       a->failed == b->failed && a->overlap == b->overlap;
}

/* Drops what no longer holds. O(1) while the devices were not read again. */
static void check_basis(struct schedules *s)
{
	struct apply *apply = s->views->env->apply;
	struct schedule_basis now;

	if (!s->is_known || s->version == apply_version(apply)) {
		return;
	}
	find_basis(apply, &now);
	if (!is_same(&now, &s->basis)) {
		drop_all(s);
	}
	s->version = apply_version(apply);
}

/* ---- sending ------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *h)
{
	struct schedule_call *p = h->data;

	buf_fini(&p->bytes);
	free(p->job);
	free(p);
}

static void end_call(struct schedule_call *p)
{
	call_end(p->call, p->rc, &p->err);
	p->call = NULL;
	uv_close((uv_handle_t *)&p->timer, on_timer_closed);
}

/* Sends until the call's queue is full, and again when it has drained. A first
 * piece that does not fit is an error, as there is nothing to wait for. */
static void pump(uv_timer_t *timer)
{
	struct schedule_call *p = timer->data;
	Weft__V1__GetScheduleResponse m = WEFT__V1__GET_SCHEDULE_RESPONSE__INIT;

	m.total_bytes = (int64_t)p->bytes.len;
	m.degraded = p->degraded;
	while (p->call && p->rc == 0 && p->at < p->bytes.len) {
		size_t left = p->bytes.len - p->at;

		m.data.data = (uint8_t *)p->bytes.data + p->at;
		m.data.len = left < MSG_PIECE ? left : MSG_PIECE;
		p->rc = rpc_send(p->call, &m.base, &p->err);
		if (p->rc == WEFT_ELIMIT && p->at > 0) {
			p->rc = 0;
			uv_timer_start(timer, pump, PUMP_MS, 0);
			return;
		}
		p->at += m.data.len;
	}
	end_call(p);
}

/* All of it, or one rank's part; a rank that is no int is none of the job's. */
static int write_schedule(const struct coll_sched *s, struct schedule_call *p)
{
	int rank = p->rank < 0 || p->rank > INT_MAX ? -1 : (int)p->rank;

	if (p->has_rank) {
		return coll_part_to_proto(s, rank, &p->bytes, &p->err);
	}
	coll_to_proto(s, &p->bytes);
	return 0;
}

/* The schedule of a job, or that on what remains where circuits have failed. A ring
 * plays what is loaded into it: a schedule for what remains is served only when its
 * program was loaded too. */
static int write_kept(const struct kept_schedule *k, struct schedule_call *p)
{
	const char *what = k->is_ring ? "ring's parts" : "circuits";

	if (k->dead == 0 && !k->sched && k->step.len == 0) {
		p->err = k->why;
		return err_wrap(&p->err, "job %s", p->job);
	}
	if (k->dead > 0 && p->needs_all) {
		err_set(&p->err, WEFT_EUNAVAIL, "job %s: %d of its %s are dead", p->job, k->dead,
			what);
		err_hint(&p->err, "it was asked for without repair: a "
				  "schedule for all of its circuits, or none");
		return p->err.code;
	}
	if (k->dead > 0 && k->is_ring && k->sched) {
		err_set(&p->err, WEFT_EUNAVAIL, "job %s: %s failed, and its program needs it",
			p->job, k->part);
		err_hint(&p->err, "\"weft apply\" loads one that does without, at %.1f %% of the "
			 "rate; its schedule is served then", 100 * k->rate);
		return p->err.code;
	}
	p->degraded = k->dead > 0;
	if (k->sched) {
		return write_schedule(k->sched, p);
	}
	if (k->step.len && !k->why.code) {
		buf_add(&p->bytes, k->step.data, k->step.len);
		return 0;
	}
	p->err = k->why;
	return err_wrap(&p->err, "job %s: %d of its %s are dead, and what remains has no "
			"schedule", p->job, k->dead, what);
}

/* On a worker: what is kept is not changed any more. */
static void run_write(uv_work_t *req)
{
	struct schedule_call *p = req->data;

	p->rc = write_kept(p->kept, p);
}

static void after_write(uv_work_t *req, int status)
{
	struct schedule_call *p = req->data;

	(void)status;
	kept_unref(p->kept);
	p->kept = NULL;
	pump(&p->timer);
}

static void begin_write(struct schedule_call *p, struct kept_schedule *k)
{
	const struct views *views = p->schedules->views;

	p->needs_all = jobs_needs_all(views->jobs, p->job);
	p->kept = k;
	k->refs++;
	p->req.data = p;
	uv_queue_work(views->env->loop, &p->req, run_write, after_write);
}

static int no_such_job(const char *job, struct err *err)
{
	err_set(err, WEFT_ENOTFOUND, "no job is called \"%s\"", job);
	err_hint(err, "\"weft status\" lists the jobs");
	return err->code;
}

/* A collective of a step without such a schedule: which there are. */
static int which_of_several(struct schedules *s, const char *key, struct err *err)
{
	const char *op = strchr(key, '/'), *number = op ? strchr(op + 1, '/') : NULL;
	int len = (int)(number ? number - key : (long)strlen(key)), n = 0;
	struct kept_schedule *k;

	TAILQ_FOREACH (k, &s->kept, link) {
		n += strncmp(k->job, key, (size_t)len) == 0 && k->job[len] == '/' &&
		     k->job[len + 1];
	}
	if (!op || n == 0) {
		return no_such_job(key, err);
	}
	err_set(err, WEFT_ENOTFOUND, "%.*s has %d schedules, by light and size", len, key, n);
	err_hint(err, "--job %.*s/1 to %.*s/%d; \"weft status\" lists them in this order", len,
		 key, len, key, n);
	return err->code;
}

/* ---- planning ------------------------------------------------------------ */

static void start_plan(struct schedules *s);

/* Answers those who waited for the plan just made: it came after they did. */
static void serve_waiting(struct schedules *s, int rc, const struct err *err)
{
	struct schedule_call *p, *next;

	for (p = TAILQ_FIRST(&s->waiting); p; p = next) {
		struct kept_schedule *k = rc ? NULL : find_kept(s, p->job);

		next = TAILQ_NEXT(p, link);
		if (p->needs_next) {
			p->needs_next = false;
			continue;
		}
		TAILQ_REMOVE(&s->waiting, p, link);
		if (k) {
			begin_write(p, k);
			continue;
		}
		p->rc = rc;
		if (rc) {
			p->err = *err;
		} else {
			p->rc = which_of_several(s, p->job, &p->err);
		}
		end_call(p);
	}
}

static void on_planned(struct plan_request *w)
{
	struct schedules *s = w->arg;
	struct err err = w->err;
	int rc = w->rc;

	if (rc == 0) {
		keep_plan(s, w->plan);
	}
	plan_request_free(w);
	s->planning = false;
	if (rc == 0) {
		s->basis = s->plan_basis;
		s->is_known = true;
		s->version = 0;	/* to be compared before it is used again */
	}
	serve_waiting(s, rc, &err);
	drop_beyond(s, KEPT_BYTES);
	if (!TAILQ_EMPTY(&s->waiting)) {
		start_plan(s);
	}
}

/* Called when the base was copied, which is what the plan is made from. */
static int on_copied(struct plan_request *w, struct err *err)
{
	struct schedules *s = w->arg;

	(void)err;
	find_basis(s->views->env->apply, &s->plan_basis);
	s->copied = true;
	return 0;
}

/* On an error all who wait are told. */
static void start_plan(struct schedules *s)
{
	struct err err = { 0 };
	struct plan_request *w;
	int rc = plan_request_new(s->views->queue, NULL, NULL, 0, &w, &err);

	if (rc) {
		serve_waiting(s, rc, &err);
		return;
	}
	s->planning = true;
	s->copied = false;
	w->offline = true;
	w->arg = s;
	w->prepare = on_copied;
	w->done = on_planned;
	plan_request_start(w);
}

/* Waits for the plan under way if that began from what is there now, else for the
 * next. */
static void wait_for_plan(struct schedules *s, struct schedule_call *p)
{
	struct schedule_basis now;

	if (s->planning && s->copied) {
		find_basis(s->views->env->apply, &now);
		p->needs_next = !is_same(&now, &s->plan_basis);
	}
	TAILQ_INSERT_TAIL(&s->waiting, p, link);
	if (!s->planning) {
		start_plan(s);
	}
}

/* ---- the call ------------------------------------------------------------ */

static struct schedule_call *new_call(struct schedules *s, struct rpc_call *call,
				      const Weft__V1__GetScheduleRequest *req)
{
	struct schedule_call *p = x_new(1, sizeof(*p));

	p->job = step_key(req->job, req->collective, req->step);
	p->schedules = s;
	p->has_rank = req->rank != NULL;
	p->rank = req->rank ? req->rank->value : 0;
	p->call = call;
	uv_timer_init(s->views->env->loop, &p->timer);
	p->timer.data = p;
	return p;
}

/* Whether it has a schedule for that collective, "" being its only one. */
static int check_collective(const struct model_job *job, const char *collective, bool step,
			    struct err *err)
{
	char *name = x_ndup(collective, strcspn(collective, "/"));
	int op = job->workload ? workload_find_op(job->workload, name) : -1;

	free(name);
	if (step && job->kind != MODEL_STEP) {
		return err_set(err, WEFT_ENOTFOUND, "job %s is no step", job->name);
	}
	if (step) {
		return 0;
	}
	if (job->kind == MODEL_CIRCUITS) {
		return err_set(err, WEFT_EINFEASIBLE, "job %s has circuits and no collective",
			       job->name);
	}
	if (job->kind == MODEL_COLLECTIVE) {
		return !collective[0] ? 0 : err_set(err, WEFT_ENOTFOUND, "job %s has one "
						    "collective, without a name", job->name);
	}
	if (op >= 0 && job->workload->ops.v[op].shift) {
		return err_set(err, WEFT_EINFEASIBLE, "%s of job %s sends: each rank to the one "
			       "%d further, in one step", collective, job->name,
			       job->workload->ops.v[op].shift);
	}
	if (op < 0) {
		err_set(err, WEFT_ENOTFOUND, "job %s is a step%s%s", job->name,
			collective[0] ? " without a collective " : " of several collectives",
			collective);
		err_hint(err, "weft schedule export --job %s/%s ...", job->name,
			 job->workload->ops.v[0].name);
		return err->code;
	}
	return 0;
}

/* A job that there is not, or that has no schedule, needs no plan to be told so. */
static int check_job(const struct model_fabric *f, const Weft__V1__GetScheduleRequest *req,
		     struct err *err)
{
	if (!f) {
		err_set(err, WEFT_ENOTFOUND, "no configuration was ever applied");
		err_hint(err, "give one: weft plan -f FABRIC.yaml");
		return err->code;
	}
	for (int i = 0; i < f->n_jobs; i++) {
		if (strcmp(f->jobs[i].name, req->job) == 0) {
			return check_collective(&f->jobs[i], req->collective, req->step, err);
		}
	}
	return no_such_job(req->job, err);
}

void handle_schedule(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__GetScheduleRequest *req = (const void *)msg;
	struct schedules *s = arg;
	struct schedule_call *p;
	struct kept_schedule *k;
	struct err err = { 0 };

	if (check_job(apply_fabric(s->views->env->apply), req, &err)) {
		rpc_finish_err(call, &err);
		return;
	}
	check_basis(s);
	p = new_call(s, call, req);
	rpc_call_on_cancel(call, call_forget, &p->call);
	k = find_kept(s, p->job);
	if (k) {
		begin_write(p, k);
	} else {
		wait_for_plan(s, p);
	}
}

/* ---- life ---------------------------------------------------------------- */

struct schedules *schedules_new(const struct views *views)
{
	struct schedules *s = x_new(1, sizeof(*s));

	s->views = views;
	TAILQ_INIT(&s->kept);
	TAILQ_INIT(&s->waiting);
	s->idle = part_timer_new(views->env, on_idle, s);
	return s;
}

void schedules_free(struct schedules *s)
{
	if (s) {
		drop_all(s);
		part_timer_free(s->idle);
		free(s);
	}
}
