/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan as people and programs read it.
 *
 * A plan comes in parts, from weftd or from a planner in this process, and a
 * view gathers copies of them, sorted by kind. Programs get the messages as
 * they are: the summary's fields, then devices, jobs, lightpaths, outages and
 * commands. For people it is drawn as a diff, device by device, with a sign
 * in front of every line ('-' delete, '+' add, '~' replace, '!' warning),
 * then the jobs, the tuning of transmitters, the stages and one line that
 * sums up. Deletions stand before additions, as they happen. Long lists are
 * folded to FOLD_TO unless --full, and what does not fit on a page is only
 * counted, for a plan of thousands of circuits must still be readable.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/cli/core/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/units.h"

#define FOLD_OVER 12	/* circuits of a kind on a device shown at most */
#define FOLD_TO 8
#define FOLD_PAGE 40	/* lines of circuits on all devices */

/* ---- gathering ---- */

/* A copy that outlives the call, by way of its bytes. */
static Weft__V1__PlanResponse *copy(const Weft__V1__PlanResponse *part)
{
	size_t len = weft__v1__plan_response__get_packed_size(part);
	uint8_t *bytes = x_alloc(len, 1);
	Weft__V1__PlanResponse *out;

	weft__v1__plan_response__pack(part, bytes);
	out = x_have(weft__v1__plan_response__unpack(NULL, len, bytes));
	free(bytes);
	return out;
}

/* Enters a part that stands in v->parts into the list of its kind. */
static int enter(struct plan_view *v, const Weft__V1__PlanResponse *part, struct err *err)
{
	switch (part->part_case) {
	case WEFT__V1__PLAN_RESPONSE__PART_SUMMARY:
		if (v->summary) {
			return err_set(err, WEFT_EINVAL, "weftd sent two summaries");
		}
		v->summary = part->summary;
		return 0;
	case WEFT__V1__PLAN_RESPONSE__PART_DEVICE:
		vec_push(&v->devices, part->device);
		return 0;
	case WEFT__V1__PLAN_RESPONSE__PART_JOB:
		vec_push(&v->jobs, part->job);
		return 0;
	case WEFT__V1__PLAN_RESPONSE__PART_BATCH:
		vec_push(&v->batches, part->batch);
		return 0;
	case WEFT__V1__PLAN_RESPONSE__PART_LIGHTPATH:
		vec_push(&v->lightpaths, part->lightpath);
		return 0;
	case WEFT__V1__PLAN_RESPONSE__PART_OUTAGES:
		v->outages = part->outages;
		return 0;
	default:	/* from a newer weftd */
		return 0;
	}
}

int plan_view_add(struct plan_view *v, const Weft__V1__PlanResponse *part, struct err *err)
{
	Weft__V1__PlanResponse *own;

	if (part->part_case == WEFT__V1__PLAN_RESPONSE__PART_FILE) {
		buf_add(&v->file, part->file.data, part->file.len);
		return 0;
	}
	if (part->part_case == WEFT__V1__PLAN_RESPONSE__PART_PICTURE) {
		buf_add(&v->picture, part->picture.data, part->picture.len);
		return 0;
	}
	own = copy(part);
	vec_push(&v->parts, own);
	return enter(v, own, err);
}

void plan_view_fini(struct plan_view *v)
{
	for (size_t i = 0; i < v->parts.n; i++) {
		weft__v1__plan_response__free_unpacked(v->parts.v[i], NULL);
	}
	vec_fini(&v->parts);
	vec_fini(&v->devices);
	vec_fini(&v->jobs);
	vec_fini(&v->batches);
	vec_fini(&v->lightpaths);
	buf_fini(&v->file);
	buf_fini(&v->picture);
	memset(v, 0, sizeof(*v));
}

/* ---- as a diff ---- */

/* What is drawn so far, and how. */
struct pen {
	struct buf b;
	bool colour, full;
	int width;	/* of device names */
	size_t lines;	/* of circuits so far */
	size_t folded, deleted, made;	/* devices that did not fit, their circuits */
};

/* The beginning of every line: sign, in colour, and device name in a
 * column. */
static void open_line(struct pen *p, char sign, const char *device)
{
	const char *colour = sign == '+' ? "\033[32m" : sign == '-'
				? "\033[31m" : "\033[33m";

	buf_printf(&p->b, "%s%c%s %-*s  ", p->colour ? colour : "", sign,
		   p->colour ? "\033[0m" : "", p->width, device);
}

/* "in 3 -> out 12 gpu0.p0 -> gpu1.p0": ports from 1, and the host ports at
 * both ends where they are known. */
static void draw_circuits(struct pen *p, char sign, const char *device,
			  Weft__V1__Circuit *const *v, size_t n)
{
	size_t shown = p->full || n <= FOLD_OVER ? n : FOLD_TO;

	p->lines += shown;
	for (size_t i = 0; i < shown; i++) {
		open_line(p, sign, device);
		buf_printf(&p->b, "in %d -> out %d", v[i]->in, v[i]->out);
		if (v[i]->from[0] || v[i]->to[0]) {
			buf_printf(&p->b, "   %s -> %s",
				   v[i]->from[0] ? v[i]->from : "?",
				   v[i]->to[0] ? v[i]->to : "?");
		}
		buf_char(&p->b, '\n');
	}
	if (shown < n) {
		open_line(p, sign, device);
		buf_printf(&p->b, "and %zu more (--full shows them)\n", n - shown);
	}
}

/* What becomes of a job's program on a ring; one that is kept is not
 * shown. */
static void draw_program(struct pen *p, const Weft__V1__PlanDevice *d,
			 const Weft__V1__PlanProgram *q)
{
	char sign = strcmp(q->change, "load") == 0 ? '+' :
		    strcmp(q->change, "replace") == 0 ? '~' : '-';

	if (strcmp(q->change, "keep") == 0) {
		return;
	}
	open_line(p, sign, d->name);
	buf_printf(&p->b, "program of %u step%s for job %s", q->steps,
		   q->steps == 1 ? "" : "s", q->job);
	if (sign == '-') {
		buf_str(&p->b, " ends\n");
		return;
	}
	buf_printf(&p->b, ", channels %d-%d: %llu settings in %llu bytes\n", q->first_channel,
		   q->first_channel + q->channels - 1, (unsigned long long)q->settings,
		   (unsigned long long)q->bytes);
}

/* Its circuits and programs that change, then what to beware of: circuits that
 * are taken from their owner, and circuits that stay and are not weft's. */
static void draw_device(struct pen *p, const Weft__V1__PlanDevice *d)
{
	if (p->full || p->lines < FOLD_PAGE || d->n_delete_ + d->n_add == 0) {
		draw_circuits(p, '-', d->name, d->delete_, d->n_delete_);
		draw_circuits(p, '+', d->name, d->add, d->n_add);
	} else {
		p->folded++;
		p->deleted += d->n_delete_;
		p->made += d->n_add;
	}
	for (size_t i = 0; i < d->n_programs; i++) {
		draw_program(p, d, d->programs[i]);
	}
	if (d->n_displaced > 0) {
		open_line(p, '!', d->name);
		buf_printf(&p->b, "takes %zu circuit%s that weft did not make "
				  "(first: in %d -> out %d)\n",
			   d->n_displaced, d->n_displaced == 1 ? "" : "s",
			   d->displaced[0]->in, d->displaced[0]->out);
	}
	if (d->n_external > 0) {
		open_line(p, '!', d->name);
		buf_printf(&p->b, "leaves %zu circuit%s alone that weft did "
				  "not make\n", d->n_external,
			   d->n_external == 1 ? "" : "s");
	}
}

/* Of maps that power loss would erase. */
static void draw_power_loss(struct pen *p, const struct plan_view *v)
{
	struct msg_saying *says = x_new(v->devices.n, sizeof(*says));
	struct buf names = { 0 };

	for (size_t i = 0; i < v->devices.n; i++) {
		const Weft__V1__PlanDevice *d = v->devices.v[i];
		const char *text = msg_power_loss_text(d->power_loss);

		says[i].name = d->name;
		snprintf(says[i].text, sizeof(says[i].text), "%s",
			 d->n_add > 0 && text ? text : "");
	}
	for (size_t i = 0; i < v->devices.n; i++) {
		if (msg_alike(says, v->devices.n, i, &names)) {
			open_line(p, '!', buf_cstr(&names));
			buf_printf(&p->b, "%s\n", says[i].text);
		}
	}
	buf_fini(&names);
	free(says);
}

/* With the share of its rate that the worst host keeps during the stage. */
static void draw_stage(struct pen *p, const Weft__V1__PlanSummary *s, size_t i)
{
	const Weft__V1__PlanStage *st = s->stages[i];

	buf_printf(&p->b, "stage %zu of %zu, domain %s: %d deleted, %d made",
		   i + 1, s->n_stages, st->domain, st->delete_, st->add);
	if (st->loads) {
		buf_printf(&p->b, ", %d loaded", st->loads);
	}
	if (st->total_bps > 0) {
		buf_printf(&p->b, "; %s %s %.0f%% meanwhile", st->host,
			   st->receiving ? "receives" : "sends",
			   100.0 * (double)st->remaining_bps /
				   (double)st->total_bps);
	}
	buf_char(&p->b, '\n');
}

/* One stage is not worth telling. */
static void draw_stages(struct pen *p, const Weft__V1__PlanSummary *s)
{
	size_t n = s->n_stages;
	size_t shown = p->full || n <= FOLD_OVER ? n : FOLD_TO;

	for (size_t i = 0; i < shown && n > 1; i++) {
		draw_stage(p, s, i);
	}
	if (shown < n) {
		buf_printf(&p->b, "and %zu more stages (--full shows them)\n", n - shown);
	}
}

/* The last lines: stages, the longest time that a port carries no signal, and
 * the counts. The source of the times is named when they were learned. */
static void draw_summary(struct pen *p, const Weft__V1__PlanSummary *s)
{
	bool is_learned = s->downtime_source[0] && strcmp(s->downtime_source, "configured") != 0;
	char text[64];

	draw_stages(p, s);
	if (s->down_ns > 0 && !s->nothing_to_do) {
		buf_printf(&p->b, "a port is dark for up to %s%s%s%s\n",
			   unit_human(UNIT_NS, (double)s->down_ns, text,
				      sizeof(text)), is_learned ? " (times " :
			   "", is_learned ? s->downtime_source : "",
			   is_learned ? ")" : "");
	}
	buf_printf(&p->b, "%d to add, %d to delete, %d kept, %d program%s to "
			  "load%s\n", s->add, s->delete_, s->keep, s->loads,
		   s->loads == 1 ? "" : "s", s->nothing_to_do ? ": nothing to do" : "");
	if (s->nothing_to_do && s->new_config) {
		buf_str(&p->b, "the configuration is a new one: apply records "
			       "it\n");
	}
}

/* What transmitters are to be tuned to, where they can be. */
static void draw_tuning(struct buf *b, const struct plan_view *v)
{
	for (size_t i = 0; i < v->jobs.n; i++) {
		const Weft__V1__PlanJob *j = v->jobs.v[i];

		for (size_t k = 0; k < j->n_tuning; k++) {
			buf_printf(b, "%s%s sends channel %d\n",
				   k ? "" : "\n", j->tuning[k]->port,
				   j->tuning[k]->channel);
		}
	}
}

/* The table of jobs, as wide as the terminal. */
static void render_jobs(const struct plan_view *v, struct buf *b)
{
	struct out *o;

	if (v->jobs.n == 0 && v->summary->n_ends == 0) {
		return;
	}
	o = out_new(OUT_TABLE);
	out_set_width(o, cli_width());
	msg_out_planned_jobs(o, OUT_TABLE, v->jobs.v, v->jobs.n);
	msg_note_gains(o, v->summary->ends, v->summary->n_ends);
	out_render(o, b);
	out_free(o);
}

static int print_table(struct cli *c, const struct plan_view *v, struct err *err)
{
	struct pen p = { .colour = cli_colour(c, STDOUT_FILENO),
			 .full = v->full };
	int r;

	for (size_t i = 0; i < v->devices.n; i++) {
		int len = (int)strlen(v->devices.v[i]->name);

		p.width = len > p.width ? len : p.width;
	}
	for (size_t i = 0; i < v->devices.n; i++) {
		draw_device(&p, v->devices.v[i]);
	}
	if (p.folded > 0) {
		buf_printf(&p.b, "and %zu more device%s: %zu to add, %zu to delete (--full shows "
				 "them)\n", p.folded, p.folded == 1 ? "" : "s", p.made, p.deleted);
	}
	draw_power_loss(&p, v);
	if (p.b.len > 0) {
		buf_char(&p.b, '\n');
	}
	render_jobs(v, &p.b);
	draw_tuning(&p.b, v);
	buf_str(&p.b, v->jobs.n ? "\n" : "");
	draw_summary(&p, v->summary);
	plan_light_draw(&p.b, v, p.full);
	plan_commands_draw(&p.b, v);
	r = cli_print_bytes(p.b.data, p.b.len, err);
	buf_fini(&p.b);
	return r;
}

/* ---- for programs ---- */

/* The messages of the plan as one object. */
static void out_plan(const struct cli *c, struct out *o, const struct plan_view *v)
{
	msg_out_fields(o, v->summary, NULL);
	msg_out_list(o, "devices", (void *const *)v->devices.v, v->devices.n);
	msg_out_planned_jobs(o, c->format, v->jobs.v, v->jobs.n);
	msg_out_list(o, "lightpaths", (void *const *)v->lightpaths.v, v->lightpaths.n);
	if (v->outages) {
		out_object(o, "outages");
		msg_out_fields(o, v->outages, NULL);
		out_end(o);
	}
	if (v->commands) {
		msg_out_list(o, "commands", (void *const *)v->batches.v, v->batches.n);
	}
}

int plan_view_print(struct cli *c, const struct plan_view *v, struct err *err)
{
	struct out *o;

	if (!v->summary) {
		return err_set(err, WEFT_EINVAL, "weftd sent no summary");
	}
	if (c->format == OUT_TABLE) {
		return print_table(c, v, err);
	}
	o = out_new(c->format);
	out_plan(c, o, v);
	return cli_print(o, err);
}
