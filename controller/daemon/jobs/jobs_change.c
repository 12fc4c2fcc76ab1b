/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placing, starting and ending jobs: all that may go on when no change is under way go into one
 * together, and none waits for company. Jobs that end go first, with those of the queue that fit
 * beside them, unless one is to be repaired; a job that does not fit does not hold up those behind
 * it, but may push out jobs of lower priority that have agreed to that. Some start without others:
 * on a ring, as whether it fits is known by planning only, and circuits that may take what others
 * have, or need not all be made.
 *
 * When a change of several jobs fails for what may be one of them, each half of them is tried on
 * its own, and so on: the one that is to blame is told so alone, after as many changes as its
 * number has binary digits. What passes by itself is tried again after a while, all together;
 * those that need a device which does not answer hold up no others. Those that a weftd which has
 * ended had begun go before all others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define ROOM_TRIES 2000	/* sets of jobs that may have to go for another */
#define NAMES_MAX 160		/* bytes of names in the comment of a change */

/* ---- the end ------------------------------------------------------------- */

/* Not the job's fault: it stays where it was, and is tried again. */
static bool may_pass(int rc)
{
	return rc == WEFT_ESTALE || rc == WEFT_ECANCELED ||
	       rc == WEFT_EUNAVAIL || rc == WEFT_ETIMEOUT || rc == WEFT_EIO;
}

/* On a ring it may be that other jobs have the channels. */
static bool may_fit_later(const struct job *j, int rc)
{
	if (rc != WEFT_EINFEASIBLE || !j->req->ring[0]) {
		return false;
	}
	for (size_t i = 0; i < j->jobs->v.n; i++) {
		const struct job *o = j->jobs->v.v[i];

		if (o != j && job_has_circuits(o) && strcmp(o->req->ring, j->req->ring) == 0) {
			return true;
		}
	}
	return false;
}

/* Back into the queue for what passes by itself, else it has failed. */
static void handle_failed_start(struct job *j, int rc, const struct err *err)
{
	if (job_was_released(j)) {
		job_move(j, STORE_JOB_ENDED, "");
	} else if (may_pass(rc) || may_fit_later(j, rc)) {
		free(j->s.nodes);
		j->s.nodes = x_dup("");
		job_move(j, STORE_JOB_QUEUED, err->msg);
		j->retry_ns = clk_now_ns() + JOB_RETRY_NS;
	} else {
		job_move(j, STORE_JOB_FAILED, err->msg);
	}
}

static void handle_failure(struct job *j, int rc, const struct err *err)
{
	if (j->s.state == STORE_JOB_STARTING) {
		handle_failed_start(j, rc, err);
	} else if (j->s.state == STORE_JOB_ENDING) {
		job_move(j, STORE_JOB_ENDING, err->msg);
		j->part = 0;
		j->retry_ns = clk_now_ns() + JOB_RETRY_NS;
	}
}

/* Which of several was to blame is not known: one half is tried without the other. */
static void split(struct jobs *jobs, const job_list *list)
{
	const int part = jobs->n_parts + 1;

	jobs->n_parts += 2;
	for (size_t i = 0; i < list->n; i++) {
		list->v[i]->part = part + (i >= list->n / 2);
	}
}

/* The change under way has ended, or could not begin. */
static void end_change(struct jobs *jobs, bool begun, int rc, const struct err *err)
{
	job_list list = { 0 };
	int64_t moves_ns = 0;

	for (size_t i = 0; i < jobs->v.n; i++) {
		if (jobs->v.v[i]->busy) {
			jobs->v.v[i]->busy = false;
			moves_ns += jobs->v.v[i]->moves_ns;
			vec_push(&list, jobs->v.v[i]);
		}
	}
	jobs->n_busy = 0;
	while (begun && !rc && clk_now_ns() - jobs->began_ns - moves_ns > jobs->change_ns) {
		jobs->change_ns *= 2;
	}
	if (list.n == 1 && list.v[0]->moving) {
		job_end_repair(list.v[0], rc, err);
	} else if (begun && rc && list.n > 1 && !may_pass(rc)) {
		log_info("jobs", "%zu jobs in one change, of which each half is tried alone: %s",
			 list.n, err->msg);
		split(jobs, &list);
	} else {
		for (size_t i = 0; i < list.n; i++) {
			handle_failure(list.v[i], rc, err);
		}
	}
	vec_fini(&list);
	jobs_flush(jobs);
}

/* What the commit itself means is found by jobs_settle. */
static void on_ended(int rc, const struct err *err, void *arg)
{
	end_change(arg, true, rc, err);
}

/* ---- the change ---------------------------------------------------------- */

/* "jobs a, b and 3 more start; " of those in this state. */
static void add_comment(const job_list *list, enum store_job_state state, const char *verb,
			struct buf *b)
{
	size_t n = 0, told = 0, begin = b->len;

	for (size_t i = 0; i < list->n; i++) {
		n += list->v[i]->s.state == state;
	}
	for (size_t i = 0; i < list->n; i++) {
		if (list->v[i]->s.state == state && b->len - begin < NAMES_MAX) {
			buf_printf(b, "%s%s", told ? ", " : n > 1 ? "jobs " : "job ",
				   list->v[i]->s.name);
			told++;
		}
	}
	if (n > told) {
		buf_printf(b, " and %zu more", n - told);
	}
	if (n > 0) {
		buf_printf(b, " %s%s; ", verb, n > 1 ? "" : "s");
	}
}

/* Who asked for all of them. */
static const char *owner_of(const job_list *list)
{
	for (size_t i = 1; i < list->n; i++) {
		if (strcmp(list->v[i]->s.who, list->v[0]->s.who) != 0) {
			return "several users";
		}
	}
	return list->v[0]->s.who;
}

/* Begins the change that makes the circuits of these jobs what they are to be now. One that
 * could not begin is handled like one that has failed. */
static void begin(struct jobs *jobs, const job_list *list, const char *comment)
{
	const char **names = x_new(list->n + 1, sizeof(*names));
	const Weft__V1__RequestJobRequest *q = list->v[0]->req;
	const struct own_change own = {
		.who = owner_of(list), .comment = comment, .jobs = names,
		.update = q->mode == WEFT__V1__MODE__MODE_UPDATE, .partial = q->partial,
		.ended = on_ended, .arg = jobs,
	};
	struct err err = { 0 };
	int r;

	for (size_t i = 0; i < list->n; i++) {
		list->v[i]->busy = true;
		names[i] = list->v[i]->s.name;
	}
	jobs->n_busy = (int)list->n;
	jobs->began_ns = clk_now_ns();
	r = jobs_flush(jobs) ? changes_begin_jobs(jobs->changes, &own, &err)
			     : err_set(&err, WEFT_EIO, "states of jobs cannot be recorded");
	if (r) {
		end_change(jobs, false, r, &err);
	}
	free(names);
}

void job_begin_repair(struct job *j)
{
	job_list alone = { 0 };
	char comment[CONF_MAX_NAME + 32];

	snprintf(comment, sizeof(comment), "job %s is repaired", j->s.name);
	vec_push(&alone, j);
	begin(j->jobs, &alone, comment);
	vec_fini(&alone);
}

static void begin_list(struct jobs *jobs, const job_list *list)
{
	struct buf comment = { 0 };

	add_comment(list, STORE_JOB_STARTING, "start", &comment);
	add_comment(list, STORE_JOB_ENDING, "end", &comment);
	comment.data[comment.len - 2] = '\0';
	begin(jobs, list, comment.data);
	buf_fini(&comment);
}

/* ---- making room --------------------------------------------------------- */

/* Its hosts are going to be free. */
static bool is_going(const struct job *j)
{
	return j->s.state == STORE_JOB_ENDING || j->s.preempt_ns;
}

/* Whom j may push out, and who goes already: the least important, the youngest first. */
static int collect_preemptible(struct jobs *jobs, const struct job *j, struct job **out)
{
	int n = 0;

	for (size_t i = jobs->v.n; i-- > 0;) {
		struct job *o = jobs->v.v[i];
		int at = n;

		const bool may = o->s.state == STORE_JOB_RUNNING && o->s.preemptible &&
				 o->s.priority < j->s.priority && !o->req->ring[0];

		if (!may && o->s.state != STORE_JOB_ENDING) {
			continue;
		}
		while (at > 0 && out[at - 1]->s.priority > o->s.priority) {
			out[at] = out[at - 1];
			at--;
		}
		out[at] = o;
		n++;
	}
	return n;
}

/* Whether a word is in both. */
static bool shares_host(const char *a, const char *b)
{
	for (size_t len; *b; b += len + (b[len] == ' ')) {
		len = strcspn(b, " ");
		for (const char *p = a; *p; p += strcspn(p, " "), p += *p == ' ') {
			if (strcspn(p, " ") == len && strncmp(p, b, len) == 0) {
				return true;
			}
		}
	}
	return false;
}

/* Whom to end for a job, of those who have agreed. */
struct room_search {
	struct jobs *jobs;
	const struct job *j;
	struct job **others;	/* [n] the least important first */
	bool *gone;		/* [n] */
	int n, tries;
	const char **names;	/* scratch */
	char *nodes;		/* that the job has then, owned; NULL: it does not fit */
};

static bool fits_without(struct room_search *r)
{
	struct err err = { 0 };
	struct job_view v;
	int n = 0;

	r->tries--;
	for (int i = 0; i < r->n; i++) {
		if (r->gone[i]) {
			r->names[n++] = r->others[i]->s.name;
		}
	}
	job_view_init(&v, r->jobs);
	job_view_mark(&v, r->jobs, r->names, n);
	free(r->nodes);
	r->nodes = job_find_place(&v, r->j, &err);
	job_view_fini(&v);
	return r->nodes != NULL;
}

/* So many of those from `from` on, the least important ones that do. */
static bool choose_gone(struct room_search *r, int from, int left)
{
	if (left == 0) {
		return fits_without(r);
	}
	for (int i = from; i + left <= r->n && r->tries > 0; i++) {
		if (!r->gone[i]) {
			r->gone[i] = true;
			if (choose_gone(r, i + 1, left - 1)) {
				return true;
			}
			r->gone[i] = false;
		}
	}
	return false;
}

/* As few as there can be, as far as ROOM_TRIES go; else none that need not. */
static bool choose_fewest(struct room_search *r)
{
	bool *going = x_new((size_t)r->n + 1, sizeof(*going));
	bool found = false;

	memcpy(going, r->gone, (size_t)r->n * sizeof(*going));
	memset(r->gone, true, (size_t)r->n * sizeof(*r->gone));
	if (!fits_without(r)) {
		goto out;
	}
	memcpy(r->gone, going, (size_t)r->n * sizeof(*going));
	for (int k = 0; k < r->n && r->tries > 0 && !found; k++) {
		found = choose_gone(r, 0, k);
	}
	if (!found) {
		memset(r->gone, true, (size_t)r->n * sizeof(*r->gone));
		for (int i = r->n - 1; i >= 0; i--) {
			r->gone[i] = going[i];
			r->gone[i] = going[i] || !fits_without(r);
		}
		found = fits_without(r);
	}
out:
	free(going);
	return found;
}

/* Those whose hosts it is going to have end, at once or when their grace is over. True: some were
 * not on their way before. */
static bool end_preempted(const struct room_search *r)
{
	char why[CONF_MAX_NAME + 40];
	bool any = false;

	snprintf(why, sizeof(why), "makes room for job %s", r->j->s.name);
	for (int i = 0; i < r->n; i++) {
		struct job *o = r->others[i];

		if (!r->gone[i] || is_going(o) || !shares_host(o->s.nodes, r->nodes)) {
			continue;
		}
		if (o->req->grace_ns) {
			if (__builtin_add_overflow(clk_wall_ns(), o->req->grace_ns,
						   &o->s.preempt_ns)) {
				o->s.preempt_ns = INT64_MAX;
			}
			o->end_told = false;
		}
		job_move(o, o->req->grace_ns ? STORE_JOB_RUNNING : STORE_JOB_ENDING, why);
		any = true;
	}
	return any;
}

/* Tries to fit j in with others gone who have agreed to that. True when some are to go, who were
 * not before; j starts when they have ended. O(ROOM_TRIES x placing). */
static bool make_room(struct jobs *jobs, struct job *j)
{
	struct room_search r = { .jobs = jobs, .j = j, .tries = ROOM_TRIES,
			  .others = x_new(jobs->v.n + 1, sizeof(struct job *)),
			  .names = x_new(jobs->v.n + 1, sizeof(*r.names)),
			  .gone = x_new(jobs->v.n + 1, sizeof(*r.gone)) };
	bool found = false;

	r.n = j->req->ring[0] ? 0 : collect_preemptible(jobs, j, r.others);
	for (int i = 0; i < r.n; i++) {
		r.gone[i] = is_going(r.others[i]);
	}
	if (r.n > 0 && choose_fewest(&r)) {
		found = end_preempted(&r);
	}
	free(r.nodes);
	free(r.others);
	free(r.names);
	free(r.gone);
	if (found) {
		jobs_advance(jobs);	/* those behind it, with what it is told then */
	}
	return found;
}

/* ---- who goes on --------------------------------------------------------- */

/* Those whose change another weftd has left half done: a change that is for others only would not
 * make their circuits, and its commit would say that they run. */
static void collect_left(struct jobs *jobs, job_list *out)
{
	for (size_t i = 0; i < jobs->v.n; i++) {
		if (jobs->v.v[i]->s.state == STORE_JOB_STARTING) {
			vec_push(out, jobs->v.v[i]);
		}
	}
}

/* The lowest part of a change that has failed; those that were released meanwhile are over. */
static void collect_part(struct jobs *jobs, job_list *out)
{
	int part = 0;

	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];

		if (j->part && j->s.state == STORE_JOB_STARTING && job_was_released(j)) {
			job_move(j, STORE_JOB_ENDED, "");
		}
		part = j->part && (!part || j->part < part) ? j->part : part;
	}
	for (size_t i = 0; i < jobs->v.n && part; i++) {
		if (jobs->v.v[i]->part == part) {
			vec_push(out, jobs->v.v[i]);
		}
	}
}

/* All that are to end and need a device that does not answer, or none such. */
static void collect_ends(struct jobs *jobs, const struct job_view *v, bool silent, job_list *out)
{
	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];

		if (j->s.state == STORE_JOB_ENDING && !j->retry_ns &&
		    job_is_silent(v, j->s.nodes) == silent) {
			vec_push(out, j);
		}
	}
}

/* What becomes of one that has no place. True when others make room for it: those behind it
 * are to leave it what is free. */
static bool handle_no_place(struct jobs *jobs, struct job_view *v, struct job *j,
			    const struct err *err)
{
	const bool takes = j->req->mode == WEFT__V1__MODE__MODE_UPDATE &&
			   circuits_take_ports(v, j);

	if (job_may_wait(err->code) && (!j->req->no_queue || takes)) {
		job_move(j, STORE_JOB_QUEUED, err->msg);
		return takes || (j->req->n_circuits == 0 && make_room(jobs, j));
	}
	j->code = j->req->no_queue && err->code == WEFT_EINFEASIBLE ? WEFT_EHELD : err->code;
	job_move(j, STORE_JOB_FAILED, err->msg);
	return false;
}

/* One in whose place it is to be has not come to rest. */
static bool waits_for_former(const struct job *j)
{
	bool waits = false;

	for (size_t i = 0; i < j->jobs->v.n && !waits; i++) {
		const struct job *o = j->jobs->v.v[i];

		waits = o->s.id < j->s.id && job_lives(o) && o->s.state != STORE_JOB_RUNNING &&
			replaces_job(j->req, j->s.name, o->s.name);
	}
	return waits;
}

/* It has its place, and goes into the change that begins. */
static void start(struct job *j, struct job_view *v, char *nodes, job_list *out)
{
	free(j->s.nodes);
	j->s.nodes = nodes;
	job_move(j, STORE_JOB_STARTING, "");
	job_view_mark_job(v, j, nodes);
	vec_push(out, j);
}

/* Those of the queue that fit, and need a device that does not answer, or none such. */
static void collect_starts(struct jobs *jobs, struct job_view *v, bool silent, job_list *out)
{
	struct job_queue q;
	bool full = false;

	job_queue_init(&q, jobs, v);
	for (size_t i = 0; i < q.list.n && !full; i++) {
		struct job *j = q.list.v[i];
		struct err err = { 0 };
		char *nodes;

		if (j->retry_ns || (job_goes_alone(j) && out->n > 0) || waits_for_former(j)) {
			continue;
		}
		nodes = job_queue_place(&q, (int)i, &err);
		if (!nodes) {
			full = handle_no_place(jobs, v, j, &err);
		} else if (job_is_silent(v, nodes) == silent) {
			start(j, v, nodes, out);
			full = job_goes_alone(j);
		} else {
			job_queue_drop(&q, (int)i);
			free(nodes);
		}
	}
	job_queue_tell(&q);
	job_queue_fini(&q);
}

/* Those that end come last, as more do that make room. */
static void collect(struct jobs *jobs, struct job_view *v, bool silent, job_list *out)
{
	collect_ends(jobs, v, silent, out);
	if (out->n == 0 && jobs_repair_one(jobs)) {
		return;
	}
	out->n = 0;
	if (!jobs_repair_due(jobs)) {
		collect_starts(jobs, v, silent, out);
	}
	collect_ends(jobs, v, silent, out);
}

static int any_silent(const struct job_view *v)
{
	return memchr(v->silent, true, (size_t)v->f->n_hosts) != NULL;
}

void jobs_begin_next(struct jobs *jobs)
{
	job_list list = { 0 };
	struct job_view v;

	collect_part(jobs, &list);
	if (list.n == 0) {
		collect_left(jobs, &list);
	}
	job_view_init(&v, jobs);
	job_view_mark(&v, jobs, NULL, 0);
	for (int silent = 0; silent <= any_silent(&v) && list.n == 0 && !jobs->suspect; silent++) {
		collect(jobs, &v, silent, &list);
	}
	job_view_fini(&v);
	if (list.n > 0) {
		begin_list(jobs, &list);
	}
	vec_fini(&list);
}
