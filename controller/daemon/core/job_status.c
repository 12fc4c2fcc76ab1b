/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the jobs of the present configuration have, for those who look: rows of
 * status, and the picture of the web page. They come from planning the
 * configuration as it is applied, without touching a device, at the start,
 * after a change, and whenever a reading shows other failed circuits than
 * before. What an apply would give them is looked into behind that.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/plan_queue.h"
#include "controller/proto_convert/report.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/number/units.h"

struct job_status {
	struct daemon_env *env;
	struct plan_queue *queue;
	struct job_status_hooks hooks;
	struct job_rows rows;
	int n_refreshing;	/* plans under way */
	const struct plan_request *newest;	/* of them, which alone counts; NULL: it is there */
	uint64_t failed;	/* plan_failed_circuits when they were planned */
	uint64_t usable;	/* plan_failed_ports when advice was sought */
	enum { ADVICE_OLD, ADVICE_APPLIED, ADVICE_SOUGHT } advice;
	struct buf told;	/* all advice that events gave last, a line each */
};

/* ---- rows ---------------------------------------------------------------- */

/* A message of its own, as the plan whose texts it borrows goes. */
static void *copy_message(const ProtobufCMessage *m, struct buf *packed)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = (uint8_t *)buf_extend(packed, len);

	protobuf_c_message_pack(m, bytes);
	return x_have(protobuf_c_message_unpack(m->descriptor, NULL, len, bytes));
}

/* Its id is new also when the picture is as before: browsers ask for it then. */
static void take_picture(struct plan_request *r)
{
	r->rows.picture_id = clk_wall_ns() / 1000;
	r->rows.picture_len = r->picture.len;
	r->rows.picture = r->picture.len ? buf_steal(&r->picture) : NULL;
	r->rows.steps_len = r->steps.len;
	r->rows.steps = r->steps.len ? buf_steal(&r->steps) : NULL;
}

static void list_circuits(struct row_circuits *to, const struct plan *p, const struct plan_job *pj)
{
	const struct model_job *job = &p->fabric->jobs[pj->job];

	to->light = plan_light_record(p, (int)(pj - p->jobs));
	if (to->light && !pj->loss) {
		workload_to_json(job->workload, pj->step, &to->step);
	}
	to->n = pj->n_circuits;
	to->ring = pj->is_ring ? job->device : -1;
	to->v = x_new((size_t)to->n + 1, sizeof(*to->v));
	for (int i = 0; i < to->n; i++) {
		to->v[i] = (struct plan_hop){ pj->circuits[i].device, pj->circuits[i].xc };
	}
}

static void add_row(struct job_rows *rows, const struct plan *p, int job)
{
	struct msg_job j;
	struct buf gain = { 0 };
	Weft__V1__JobGain *has;

	msg_job_init(&j, p, job);
	has = j.row.gain;
	j.row.gain = NULL;
	rows->v[rows->n] = copy_message(&j.row.base, &rows->packed[rows->n]);
	if (has) {
		rows->v[rows->n]->gain = copy_message(&has->base, &gain);
	}
	list_circuits(&rows->circuits[rows->n], p, &p->jobs[job]);
	rows->n++;
	buf_fini(&gain);
	msg_job_fini(&j);
}

void job_rows_make(struct plan_request *r)
{
	struct job_rows *rows = &r->rows;
	const struct plan *p = r->plan;

	take_picture(r);
	if (!p) {
		return;
	}
	rows->v = x_new((size_t)p->n_jobs, sizeof(*rows->v));
	rows->packed = x_new((size_t)p->n_jobs, sizeof(*rows->packed));
	rows->circuits = x_new((size_t)p->n_jobs, sizeof(*rows->circuits));
	for (int i = 0; i < p->n_jobs; i++) {
		add_row(rows, p, i);
	}
	memcpy(rows->hash, p->fabric->hash, sizeof(rows->hash));
	rows->known = true;
}

void job_rows_fini(struct job_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		if (rows->v[i]) {
			weft__v1__plan_job__free_unpacked(rows->v[i], NULL);
		}
		buf_fini(&rows->packed[i]);
		free(rows->circuits[i].v);
		free(rows->circuits[i].light);
		buf_fini(&rows->circuits[i].step);
	}
	free(rows->circuits);
	free(rows->v);
	free(rows->packed);
	free(rows->picture);
	free(rows->steps);
	memset(rows, 0, sizeof(*rows));
}

/* Again, without what is sent beside it. */
static void pack_row(const Weft__V1__PlanJob *row, struct buf *packed)
{
	Weft__V1__PlanJob bare = *row;

	bare.gain = NULL;
	bare.proof = 0;
	bare.advice = (char *)protobuf_c_empty_string;
	bare.apply_time_ns = 0;
	buf_reset(packed);
	protobuf_c_message_pack(&bare.base, (uint8_t *)buf_extend(
			packed, protobuf_c_message_get_packed_size(&bare.base)));
}

/* Which change has made the light that a step has, by the history. */
static void find_lights(const struct job_status *s)
{
	struct err err = { 0 };

	for (size_t i = 0; i < s->rows.n; i++) {
		const char *light = s->rows.circuits[i].light;
		Weft__V1__StepPlan *step = s->rows.v[i]->step;
		char *who = NULL;

		if (light && step && store_light_since(s->env->store, light, &step->lit_at_ns,
						       &who, &err)) {
			log_warn("weftd", "%s", err.msg);
		}
		if (who) {
			step->lit_by = who;
			pack_row(s->rows.v[i], &s->rows.packed[i]);
		}
	}
}

const char *job_status_step(const struct job_status *s, const char *job)
{
	const struct model_fabric *f = apply_fabric(s->env->apply);
	bool present = f && strcmp(f->hash, s->rows.hash) == 0;

	for (size_t i = 0; present && i < s->rows.n; i++) {
		if (strcmp(s->rows.v[i]->name, job) == 0 && s->rows.circuits[i].step.len > 0) {
			return buf_cstr(&s->rows.circuits[i].step);
		}
	}
	return NULL;
}

const struct job_rows *job_status_rows(const struct job_status *s)
{
	return &s->rows;
}

static enum apply_level min_proof(const struct apply *a, const char *job,
				  const struct row_circuits *c)
{
	enum apply_level least = c->ring >= 0 ? apply_program_level(a, c->ring, job) :
				 c->n ? APPLY_ERROR_FREE : APPLY_UNVERIFIED;

	for (int i = 0; i < c->n && least > APPLY_UNVERIFIED; i++) {
		enum apply_level level = apply_circuit(a, c->v[i].device, c->v[i].xc).level;

		least = level < least ? level : least;
	}
	return least;
}

void job_status_prove(struct job_status *s)
{
	const struct model_fabric *f = apply_fabric(s->env->apply);

	for (size_t i = 0; f && i < s->rows.n && strcmp(f->hash, s->rows.hash) == 0; i++) {
		s->rows.v[i]->proof = msg_proof(min_proof(
			s->env->apply, s->rows.v[i]->name, &s->rows.circuits[i]));
	}
}

/* ---- what is lost and not planned yet ------------------------------------- */

/* Its circuits without light, and the first of them. */
static int count_lost(const struct apply *a, const struct row_circuits *c,
		      const struct plan_hop **first)
{
	int n = 0;

	for (int i = 0; i < c->n; i++) {
		enum apply_health health = apply_circuit(a, c->v[i].device, c->v[i].xc).health;

		if (health == APPLY_MISSING || health == APPLY_DARK) {
			*first = n++ ? *first : &c->v[i];
		}
	}
	return n;
}

/* What a job has lost, but for the rate; false: nothing. The share of the circuits, or of the parts
 * of a ring, stands for that of the rate meanwhile. */
static bool find_loss(const struct apply *a, const struct plan_base *base, const char *job,
		      const struct row_circuits *c, Weft__V1__JobDegradation *m)
{
	const struct model_fabric *f = apply_fabric(a);
	const struct plan_hop *first = NULL;

	if (c->ring >= 0) {
		m->device = f->devices[c->ring].name;
		m->rate = plan_program_share(&f->devices[c->ring], &base->intent[c->ring],
					     &base->observed[c->ring], job);
		return m->rate < 1;
	}
	m->failed = count_lost(a, c, &first);
	if (m->failed > 0) {
		m->device = f->devices[first->device].name;
		m->in = first->xc.in + 1;
		m->out = first->xc.out + 1;
		m->rate = 1 - (double)m->failed / c->n;
	}
	return m->failed > 0;
}

static void mark_row(struct job_status *s, const struct plan_base *base, size_t i)
{
	Weft__V1__PlanJob *row = s->rows.v[i];
	Weft__V1__JobDegradation m = WEFT__V1__JOB_DEGRADATION__INIT;
	struct buf bytes = { 0 };
	char text[512];

	if (!find_loss(s->env->apply, base, row->name, &s->rows.circuits[i], &m)) {
		return;
	}
	m.problem = "what is left of it is being planned";
	row->rate = m.rate;
	row->degradation = copy_message(&m.base, &bytes);
	if (m.failed > 0) {
		snprintf(text, sizeof(text), "job %s: %d of %d circuits failed (%s, in %d -> out "
			 "%d ...): %s", row->name, m.failed, s->rows.circuits[i].n, m.device, m.in,
			 m.out, m.problem);
	} else {
		msg_degradation_text(row, text, sizeof(text));
	}
	if (row->reason[0]) {
		free(row->reason);
	}
	row->reason = x_dup(text);
	pack_row(row, &s->rows.packed[i]);
	buf_fini(&bytes);
}

/* Jobs that have lost circuits, which their rows do not know: until they are planned no client is
 * told that all is well with them. */
static void mark_lost(struct job_status *s)
{
	const struct model_fabric *f = apply_fabric(s->env->apply);
	struct plan_base base;

	if (!f || strcmp(f->hash, s->rows.hash) != 0) {
		return;
	}
	apply_plan_base(s->env->apply, f, PLAN_SAFE, &base);
	for (size_t i = 0; i < s->rows.n; i++) {
		if (!s->rows.v[i]->degradation) {
			mark_row(s, &base, i);
		}
	}
}

void job_status_set(struct job_status *s, struct job_rows *rows)
{
	/* What the change did to them is history now. */
	for (size_t i = 0; i < rows->n; i++) {
		if (rows->v[i]->gain) {
			weft__v1__job_gain__free_unpacked(rows->v[i]->gain, NULL);
			rows->v[i]->gain = NULL;
		}
	}
	job_rows_fini(&s->rows);
	s->rows = *rows;
	find_lights(s);
	mark_lost(s);
	s->failed = 0;
	s->newest = NULL;	/* those under way began before the change was over */
	s->advice = ADVICE_APPLIED;
	memset(rows, 0, sizeof(*rows));
}

/* ---- planning them ------------------------------------------------------- */

/* Only the newest of several plans under way counts, which need not be the last to end, and only if
 * the fabric is still the one that it was made for. */
static void on_planned(struct plan_request *r)
{
	struct job_status *s = r->arg;
	const struct model_fabric *f = apply_fabric(s->env->apply);
	struct err err = r->err;
	bool outdated = r != s->newest || (r->fabric && f && strcmp(r->fabric->hash, f->hash) != 0);

	s->n_refreshing--;
	s->newest = r == s->newest ? NULL : s->newest;
	if (outdated) {
		plan_request_free(r);
		job_status_check(s);
		return;
	}
	job_rows_fini(&s->rows);
	s->rows = r->rows;
	find_lights(s);
	s->advice = ADVICE_OLD;
	memset(&r->rows, 0, sizeof(r->rows));
	if (r->rc) {
		log_warn("weftd", "the jobs cannot be planned: %s", err.msg);
		s->rows.err = err;
	} else {
		s->hooks.planned(r->plan, s->hooks.arg);
	}
	env_changed(s->env);
	plan_request_free(r);
	if (!s->env->draining) {
		s->hooks.known(true, s->hooks.arg);
	}
	job_status_check(s);
}

void job_status_refresh(struct job_status *s)
{
	struct err err = { 0 };
	struct plan_request *r;

	if (plan_request_new(s->queue, NULL, NULL, 0, &r, &err)) {
		return;		/* no configuration, no jobs */
	}
	r->offline = r->with_picture = r->with_rows = true;
	r->bare_picture = !s->env->applied;
	s->n_refreshing++;
	s->newest = r;
	r->done = on_planned;
	r->arg = s;
	plan_request_start(r);
}

/* ---- advice ---------------------------------------------------------------- */

/* What the plan gives the job of the row that it has not now: empty, nothing. */
static void write_advice(const struct plan *p, int job, Weft__V1__PlanJob *row, struct buf *out)
{
	const struct plan_job *pj = &p->jobs[job];
	const struct plan_gain *g = &p->gains[job];
	const char *aim = pj->topology && strcmp(pj->topology, row->topology) != 0
				  ? " --optimise" : "";
	int back = row->degradation && !pj->is_ring
			   ? row->degradation->failed - (pj->loss ? pj->loss->dead : 0) : 0;
	char text[32];

	/* Where an apply has nothing to do the plan's times are those of what may yet come back. */
	if (plan_is_empty(p)) {
		row->apply_time_ns = 0;
		return;
	}
	row->apply_time_ns = g->after_ns > 0 && (g->before_ns == 0 || g->after_ns < g->before_ns)
				     ? g->after_ns : 0;
	if (back <= 0 && !row->apply_time_ns) {
		return;
	}
	buf_printf(out, "job %s: weft apply%s would", row->name, aim);
	if (back > 0) {
		buf_printf(out, " bring back %d circuit%s%s", back, back == 1 ? "" : "s",
			   row->apply_time_ns ? ", and" : "");
	}
	if (row->apply_time_ns) {
		buf_printf(out, " take it to %s",
			   unit_human(UNIT_NS, (double)g->after_ns, text, sizeof(text)));
	}
	if (row->apply_time_ns && g->before_ns) {
		buf_printf(out, " from %s",
			   unit_human(UNIT_NS, (double)g->before_ns, text, sizeof(text)));
	}
	if (row->apply_time_ns) {
		buf_printf(out, "; it was designed for %s",
			   unit_human(UNIT_NS, (double)row->whole_time_ns, text, sizeof(text)));
	}
}

static void advise(struct job_status *s, const struct plan *p, Weft__V1__PlanJob *row,
		   struct buf *told)
{
	const struct daemon_event ev = {
		.kind = WEFT__V1__EVENT_KIND__EVENT_KIND_JOB_ADVICE, .job = row->name,
	};
	struct buf text = { 0 };

	for (int i = 0; i < p->n_jobs; i++) {
		if (strcmp(p->fabric->jobs[p->jobs[i].job].name, row->name) == 0) {
			write_advice(p, i, row, &text);
		}
	}
	if (row->advice[0]) {
		free(row->advice);
	}
	row->advice = text.len ? x_dup(buf_cstr(&text)) : (char *)protobuf_c_empty_string;
	if (text.len && !strstr(buf_cstr(&s->told), row->advice)) {
		event_emit(s->env->events, &ev, "%s", row->advice);
	}
	buf_printf(told, "%s\n", row->advice);
	buf_fini(&text);
}

/* Each is told once, until there is another. */
static void take_advice(struct job_status *s, const struct plan *p)
{
	struct buf told = { 0 };

	for (size_t i = 0; i < s->rows.n; i++) {
		advise(s, p, s->rows.v[i], &told);
	}
	buf_fini(&s->told);
	s->told = told;
	env_changed(s->env);
}

bool job_status_outdated(const struct job_status *s, const struct plan_request *r)
{
	return s->env->applied && strcmp(s->rows.hash, r->fabric->hash) == 0 &&
	       plan_failed_circuits(r->fabric, &r->snap.base) != s->failed;
}

/* Of other jobs, or of other failures than those that the rows are about, it is sought again. */
static void on_advice(struct plan_request *r)
{
	struct job_status *s = r->arg;

	if (r->rc == 0 && (s->n_refreshing || s->env->changing || job_status_outdated(s, r) ||
			   strcmp(s->rows.hash, r->fabric->hash) != 0)) {
		s->advice = ADVICE_OLD;
	} else if (r->rc == 0 && r->plan->gains_known && !s->env->draining) {
		take_advice(s, r->plan);
	}
	plan_request_free(r);
}

/* As a viewer would ask: it takes no slot, and waits behind others. */
static void seek_advice(struct job_status *s)
{
	struct err err = { 0 };
	struct plan_request *r;

	if (plan_request_new(s->queue, NULL, NULL, 0, &r, &err)) {
		return;
	}
	r->by = PLAN_BY_OTHER;
	snprintf(r->user, sizeof(r->user), "weftd");
	r->brief = true;
	r->aim = s->env->divided ? PLAN_REPAIR : PLAN_OPTIMISE;
	r->done = on_advice;
	r->arg = s;
	plan_request_start(r);
}

/* Whatever an apply could use may be another than when it was looked into; a change that was just
 * made has used what there is. */
static void check_advice(struct job_status *s, uint64_t usable)
{
	bool seek = s->advice == ADVICE_OLD || (s->advice == ADVICE_SOUGHT && s->usable != usable);

	s->usable = usable;
	s->advice = ADVICE_SOUGHT;
	if (seek) {
		seek_advice(s);
	}
}

bool job_status_refreshing(const struct job_status *s)
{
	return s->n_refreshing > 0;
}

void job_status_check(struct job_status *s)
{
	const struct daemon_env *env = s->env;
	const struct model_fabric *f = apply_fabric(env->apply);
	struct plan_base base;
	uint64_t failed;

	if (!f || !env->applied || env->reading || env->draining) {
		return;
	}
	apply_plan_base(env->apply, f, PLAN_SAFE, &base);
	failed = plan_failed_circuits(f, &base);
	if (failed != s->failed) {
		s->failed = failed;
		log_info("weftd", "%s: the jobs are planned again",
			 failed ? "circuits have failed"
				: "all circuits are back");
		mark_lost(s);
		job_status_refresh(s);
		s->hooks.failed(s->hooks.arg);
	} else if (s->n_refreshing == 0) {
		if (s->rows.known) {
			check_advice(s, plan_failed_ports(f, &base));
		}
		if (!failed) {
			s->hooks.known(false, s->hooks.arg);
		}
	}
}

void job_status_drained(struct job_status *s)
{
	s->advice = s->advice == ADVICE_SOUGHT ? ADVICE_OLD : s->advice;
	job_status_check(s);
}

uint64_t job_status_failed(const struct job_status *s)
{
	return s->failed;
}

/* ---- what jobs had before a plan ------------------------------------------ */

static struct plan_before before_of_row(const Weft__V1__PlanJob *row)
{
	return (struct plan_before){
		.name = row->name, .collective = row->collective, .nodes = row->nodes,
		.size_bytes = row->size_bytes,
		.time_ns = row->degradation ? row->degradation->time_ns : row->time_ns,
		.whole_ns = row->fault_free_time_ns ? row->fault_free_time_ns : row->time_ns,
	};
}

void job_status_compare(const struct job_status *s, struct plan_request *r)
{
	/* What was never applied has no past. */
	size_t n = s->env->applied ? s->rows.n : 0;
	struct plan_before *v;

	if (r->plan->gains_known || (s->env->applied && !s->rows.known)) {
		return;
	}
	v = x_new(n + 1, sizeof(*v));
	for (size_t i = 0; i < n; i++) {
		v[i] = before_of_row(s->rows.v[i]);
	}
	plan_gains(r->plan, v, (int)n);
	free(v);
}

/* ---- why there is no plan ------------------------------------------------ */

/* What failed circuits cost until they are repaired is often why there is no
 * plan. */
static void hint_row(const Weft__V1__PlanJob *row, struct err *err)
{
	const Weft__V1__JobDegradation *l = row->degradation;

	if (strcmp(row->collective, "circuits") == 0) {
		err_hint(err, "%d of %d circuits of %s are dead", l->failed, row->circuits,
			 row->name);
	} else if (l->failed == 0) {
		err_hint(err, "job %s: %s: %s", row->name, l->device, l->problem);
	} else if (l->part[0]) {
		err_hint(err, "job %s needs %s, which has failed", row->name, l->part);
	} else if (l->rate > 0) {
		err_hint(err, "%d of %d circuits of job %s are dead; "
			 "until they are repaired its schedule is the "
			 "one on what remains, at %.1f %% of the rate",
			 l->failed, row->circuits, row->name, 100 * l->rate);
	} else {
		err_hint(err, "%d of %d circuits of job %s are dead, "
			 "and what remains is cut off", l->failed,
			 row->circuits, row->name);
	}
}

void job_status_hint(const struct job_status *s, struct err *err)
{
	for (size_t i = 0; i < s->rows.n && !err->hint[0]; i++) {
		if (s->rows.v[i]->degradation) {
			hint_row(s->rows.v[i], err);
		}
	}
}

/* ---- life ---------------------------------------------------------------- */

struct job_status *job_status_new(struct daemon_env *env, struct plan_queue *q,
				  const struct job_status_hooks *hooks)
{
	struct job_status *s = x_new(1, sizeof(*s));

	*s = (struct job_status){ .env = env, .queue = q, .hooks = *hooks };
	return s;
}

void job_status_free(struct job_status *s)
{
	if (s) {
		job_rows_fini(&s->rows);
		buf_fini(&s->told);
		free(s);
	}
}
