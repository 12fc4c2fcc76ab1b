/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the change under way is, and what jobs have meanwhile: what they had
 * before it, as traffic and schedules go by that until it is committed, beside
 * what it does to each of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/change/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

/* ---- how far ------------------------------------------------------------- */

void change_latest_note(struct change_latest *l, const struct apply_event *ev)
{
	snprintf(l->phase, sizeof(l->phase), "%s", ev->phase);
	snprintf(l->device, sizeof(l->device), "%s", ev->device);
	snprintf(l->text, sizeof(l->text), "%s", ev->text);
	l->done = ev->done;
	l->total = ev->total;
	if (ev->eta_ns > 0) {
		l->end_ns = clk_now_ns() + ev->eta_ns;
	}
}

/* What is left by the last that a device told; it goes on between two reports. */
static int64_t time_left(const struct change_latest *l)
{
	int64_t left = l->end_ns - clk_now_ns();

	return l->end_ns && left > 0 && l->done < l->total ? left : 0;
}

static void fill_progress(Weft__V1__ChangeProgress *m, const struct change_latest *l)
{
	weft__v1__change_progress__init(m);
	m->who = (char *)l->who;
	m->comment = (char *)l->comment;
	m->started_at_ns = l->started_at_ns;
	m->phase = (char *)l->phase;
	m->device = (char *)l->device;
	m->text = (char *)l->text;
	m->done = l->done;
	m->total = l->total;
	m->eta_ns = time_left(l);
}

/* ---- jobs meanwhile ------------------------------------------------------ */

/* at: where it is likely to be, as most jobs stay in their order. */
static const Weft__V1__PlanJob *find_row(const struct job_rows *rows, const char *name, size_t at)
{
	for (size_t i = 0; rows && i < rows->n; i++) {
		const Weft__V1__PlanJob *row = rows->v[(at + i) % rows->n];

		if (strcmp(row->name, name) == 0) {
			return row;
		}
	}
	return NULL;
}

/* Room for a row each that is shown, and for the gains of those that end. */
struct shown_jobs {
	Weft__V1__PlanJob **list, *rows;
	const struct buf **packed;
	struct msg_gain *ends;
};

static void make_room(struct progress_view *v, struct shown_jobs *s, size_t n)
{
	const size_t list = (n + 1) * sizeof(*s->list), rows = (n + 1) * sizeof(*s->rows);
	const size_t packed = (n + 1) * sizeof(*s->packed);
	char *block = x_new(1, list + packed + rows + (n + 1) * sizeof(*s->ends));

	v->memory = block;
	v->jobs = s->list = (void *)block;
	v->packed = s->packed = (void *)(block + list);
	s->rows = (void *)(block + list + packed);
	s->ends = (void *)(block + list + packed + rows);
}

static void put_job(struct progress_view *v, const struct shown_jobs *s, Weft__V1__PlanJob *job,
		    const struct buf *packed)
{
	s->packed[v->n_jobs] = packed;
	s->list[v->n_jobs++] = job;
}

/* A job of before; next: its row in the plan of the change, NULL: it has none. */
static void put_former(struct progress_view *v, const struct shown_jobs *s,
		       const Weft__V1__PlanJob *row, const struct buf *packed,
		       const Weft__V1__PlanJob *next)
{
	const int64_t whole_ns = row->fault_free_time_ns ? row->fault_free_time_ns : row->time_ns;
	const struct plan_gain ends = {
		.name = row->name, .job = -1, .effect = PLAN_ENDS, .size_bytes = row->size_bytes,
		.before_ns = row->degradation ? row->degradation->time_ns : row->time_ns,
		.before_whole_ns = whole_ns,
	};
	Weft__V1__PlanJob *to = &s->rows[v->n_jobs];

	*to = *row;
	if (!next) {
		msg_gain_init(&s->ends[v->n_jobs], &ends);
		to->gain = &s->ends[v->n_jobs].m;
	} else if (next->gain && next->gain->effect != WEFT__V1__JOB_EFFECT__JOB_EFFECT_STAYS) {
		to->gain = next->gain;
	}
	put_job(v, s, to, packed);
}

void progress_view_init(struct progress_view *v, const struct changes *c,
			const struct job_rows *rows)
{
	const struct job_rows *next = c->latest.rows;
	struct shown_jobs s = { 0 };

	*v = (struct progress_view){ .running = c->now != NULL };
	if (v->running) {
		fill_progress(&v->m, &c->latest);
	}
	make_room(v, &s, rows->n + (next ? next->n : 0));
	for (size_t i = 0; i < rows->n; i++) {
		if (next) {
			put_former(v, &s, rows->v[i], &rows->packed[i],
				   find_row(next, rows->v[i]->name, i));
		} else {
			put_job(v, &s, rows->v[i], &rows->packed[i]);
		}
	}
	for (size_t i = 0; next && i < next->n; i++) {
		if (!find_row(rows, next->v[i]->name, i)) {
			put_job(v, &s, next->v[i], &next->packed[i]);
		}
	}
}

void progress_view_fini(struct progress_view *v)
{
	free(v->memory);
	*v = (struct progress_view){ 0 };
}
