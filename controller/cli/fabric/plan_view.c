/* A plan as people and programs read it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/cli/core/private.h"
#include "lib/base/units.h"

#define FOLD_OVER 12	/* circuits of a kind on a device shown at most */
#define FOLD_TO 8

/* ---- gathering ---- */

/* A deep copy, by way of the wire. */
static void *copy(const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = malloc(len ? len : 1);
	ProtobufCMessage *out = NULL;

	if (bytes) {
		protobuf_c_message_pack(m, bytes);
		out = protobuf_c_message_unpack(m->descriptor, NULL, len,
						bytes);
	}
	free(bytes);
	return out;
}

/* Appends a copy to a list. */
static int append(void ***list, size_t *n, size_t *cap,
		  const ProtobufCMessage *m, struct err *err)
{
	if (*n == *cap) {
		size_t more = *cap ? *cap * 2 : 16;
		void **v = realloc(*list, more * sizeof(*v));

		if (!v) {
			return err_nomem(err);
		}
		*list = v;
		*cap = more;
	}
	(*list)[*n] = copy(m);
	if (!(*list)[*n]) {
		return err_nomem(err);
	}
	(*n)++;
	return 0;
}

int plan_view_add(struct plan_view *v, const Weft__V1__PlanPart *part,
		  struct err *err)
{
	switch (part->part_case) {
	case WEFT__V1__PLAN_PART__PART_SUMMARY:
		if (v->summary) {
			return err_set(err, WEFT_EINVAL,
				       "weftd sent two summaries");
		}
		v->summary = copy(&part->summary->base);
		return v->summary ? 0 : err_nomem(err);
	case WEFT__V1__PLAN_PART__PART_DEVICE:
		return append((void ***)&v->devices, &v->n_devices,
			      &v->cap_devices, &part->device->base, err);
	case WEFT__V1__PLAN_PART__PART_JOB:
		return append((void ***)&v->jobs, &v->n_jobs, &v->cap_jobs,
			      &part->job->base, err);
	case WEFT__V1__PLAN_PART__PART_BATCH:
		return append((void ***)&v->batches, &v->n_batches,
			      &v->cap_batches, &part->batch->base, err);
	case WEFT__V1__PLAN_PART__PART_LIGHTPATH:
		return append((void ***)&v->paths, &v->n_paths,
			      &v->cap_paths, &part->lightpath->base, err);
	case WEFT__V1__PLAN_PART__PART_OUTAGES:
		if (!v->dark) {
			v->dark = copy(&part->outages->base);
		}
		return v->dark ? 0 : err_nomem(err);
	case WEFT__V1__PLAN_PART__PART_FILE:
		buf_add(&v->file, part->file.data, part->file.len);
		return v->file.failed ? err_nomem(err) : 0;
	default:	/* from a newer weftd */
		return 0;
	}
}

void plan_view_fini(struct plan_view *v)
{
	if (v->summary) {
		weft__v1__plan_summary__free_unpacked(v->summary, NULL);
	}
	for (size_t i = 0; i < v->n_devices; i++) {
		weft__v1__plan_device__free_unpacked(v->devices[i], NULL);
	}
	for (size_t i = 0; i < v->n_jobs; i++) {
		weft__v1__plan_job__free_unpacked(v->jobs[i], NULL);
	}
	for (size_t i = 0; i < v->n_batches; i++) {
		weft__v1__plan_batch__free_unpacked(v->batches[i], NULL);
	}
	free(v->devices);
	free(v->jobs);
	free(v->batches);
	for (size_t i = 0; i < v->n_paths; i++) {
		weft__v1__plan_lightpath__free_unpacked(v->paths[i], NULL);
	}
	free(v->paths);
	if (v->dark) {
		weft__v1__plan_outages__free_unpacked(v->dark, NULL);
	}
	buf_fini(&v->file);
	memset(v, 0, sizeof(*v));
}

/* ---- as a diff ---- */

struct pen {
	struct buf b;
	bool colour, full;
	int width;	/* of device names */
};

static void open_line(struct pen *p, char sign, const char *device)
{
	const char *colour = sign == '+' ? "\033[32m" : sign == '-'
				? "\033[31m" : "\033[33m";

	buf_printf(&p->b, "%s%c%s %-*s  ", p->colour ? colour : "", sign,
		   p->colour ? "\033[0m" : "", p->width, device);
}

static void draw_circuits(struct pen *p, char sign, const char *device,
			  Weft__V1__Circuit *const *v, size_t n)
{
	size_t shown = p->full || n <= FOLD_OVER ? n : FOLD_TO;

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
		buf_printf(&p->b, "and %zu more (--full shows them)\n",
			   n - shown);
	}
}

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
	buf_printf(&p->b, ", channels %d-%d: %llu settings in %llu bytes\n",
		   q->first_channel, q->first_channel + q->channels - 1,
		   (unsigned long long)q->settings,
		   (unsigned long long)q->bytes);
}

static void draw_device(struct pen *p, const Weft__V1__PlanDevice *d)
{
	draw_circuits(p, '-', d->name, d->delete_, d->n_delete_);
	draw_circuits(p, '+', d->name, d->add, d->n_add);
	for (size_t i = 0; i < d->n_programs; i++) {
		draw_program(p, d, d->programs[i]);
	}
	if (d->n_add > 0 && wire_power_loss(d->power_loss)) {
		open_line(p, '!', d->name);
		buf_printf(&p->b, "%s\n", wire_power_loss(d->power_loss));
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

static void draw_stage(struct pen *p, const Weft__V1__PlanSummary *s,
		       size_t i)
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

static void draw_stages(struct pen *p, const Weft__V1__PlanSummary *s)
{
	size_t n = s->n_stages;
	size_t shown = p->full || n <= FOLD_OVER ? n : FOLD_TO;

	for (size_t i = 0; i < shown && n > 1; i++) {
		draw_stage(p, s, i);
	}
	if (shown < n) {
		buf_printf(&p->b, "and %zu more stages (--full shows them)\n",
			   n - shown);
	}
}

static void draw_summary(struct pen *p, const Weft__V1__PlanSummary *s)
{
	bool is_learned = s->downtime_source[0] &&
			  strcmp(s->downtime_source, "configured") != 0;
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
static void out_tuning(struct out *o, const Weft__V1__PlanJob *j)
{
	if (!j->n_tuning) {
		return;
	}
	out_array(o, "tuning");
	for (size_t k = 0; k < j->n_tuning; k++) {
		out_object(o, NULL);
		out_str(o, "port", j->tuning[k]->port);
		out_int(o, "channel", j->tuning[k]->channel);
		out_end(o);
	}
	out_end(o);
}

static void draw_tuning(struct buf *b, const struct plan_view *v)
{
	for (size_t i = 0; i < v->n_jobs; i++) {
		const Weft__V1__PlanJob *j = v->jobs[i];

		for (size_t k = 0; k < j->n_tuning; k++) {
			buf_printf(b, "%s%s sends channel %d\n",
				   k ? "" : "\n", j->tuning[k]->port,
				   j->tuning[k]->channel);
		}
	}
}

/* How far the plan is from the fewest moves, where that is known. */
static void out_moves(struct out *o, const Weft__V1__PlanJob *j)
{
	out_int(o, "moves", j->moves);
	if (j->moves_bound >= 0) {
		out_int(o, "moves_bound", j->moves_bound);
		out_int(o, "moves_gap", j->moves - j->moves_bound);
	} else {
		out_null(o, "moves_bound");
		out_null(o, "moves_gap");
	}
}

void cli_out_jobs(const struct cli *c, struct out *o,
		  Weft__V1__PlanJob *const *jobs, size_t n)
{
	bool table = c->format == OUT_TABLE;

	out_array(o, "jobs");
	for (size_t i = 0; i < n; i++) {
		const Weft__V1__PlanJob *j = jobs[i];

		out_object(o, NULL);
		out_str(o, table ? "job" : "name", j->name);
		out_str(o, "collective", j->collective);
		out_str(o, "algorithm", j->algorithm);
		out_str(o, "topology",
			table && !j->topology[0] && j->n_devices == 1
				? j->devices[0]
				: j->topology);
		out_int(o, "nodes", j->nodes);
		out_int(o, "steps", j->steps);
		out_str(o, table ? "M/B" : "bandwidth_factor",
			j->bandwidth_factor);
		wire_out_ns(o, c->format, "time", j->time_ns);
		wire_out_ns(o, c->format, "bound", j->bound_ns);
		cli_out_gap(c, o, "gap", j->gap);
		if (!table) {
			out_bool(o, "bandwidth_optimal", j->bandwidth_optimal);
			out_int(o, "size_bytes", j->size_bytes);
			out_int(o, "chunks", j->chunks);
			out_int(o, "transfers", j->transfers);
			out_int(o, "circuits", j->circuits);
			out_moves(o, j);
			out_int(o, "depth", j->depth);
			out_int(o, "closed_form_steps", j->closed_form_steps);
			out_int(o, "lightpaths", j->lightpaths);
			out_int(o, "worst_loss_mdb", j->worst_loss_mdb);
			out_int(o, "retune_hidden_ns", j->retune_hidden_ns);
			wire_out_without(o, j);
			out_array(o, "devices");
			for (size_t k = 0; k < j->n_devices; k++) {
				out_str(o, NULL, j->devices[k]);
			}
			out_end(o);
			out_tuning(o, j);
		}
		out_end(o);
	}
	out_end(o);
	wire_note_hidden(o, jobs, n);
	wire_note_without(o, jobs, n);
}

static int render_jobs(const struct cli *c, const struct plan_view *v,
		       struct buf *b)
{
	struct out *o;
	int r;

	if (v->n_jobs == 0) {
		return 0;
	}
	o = out_new(OUT_TABLE);
	if (!o) {
		return WEFT_ENOMEM;
	}
	out_set_width(o, cli_width());
	cli_out_jobs(c, o, v->jobs, v->n_jobs);
	r = out_render(o, b);
	out_free(o);
	return r;
}

static int print_table(struct cli *c, const struct plan_view *v,
		       struct err *err)
{
	struct pen p = { .colour = cli_colour(c, STDOUT_FILENO),
			 .full = cli_has(c, "full") };
	int r;

	for (size_t i = 0; i < v->n_devices; i++) {
		int len = (int)strlen(v->devices[i]->name);

		p.width = len > p.width ? len : p.width;
	}
	for (size_t i = 0; i < v->n_devices; i++) {
		draw_device(&p, v->devices[i]);
	}
	if (p.b.len > 0) {
		buf_char(&p.b, '\n');
	}
	r = render_jobs(c, v, &p.b);
	draw_tuning(&p.b, v);
	if (r == 0) {
		buf_str(&p.b, v->n_jobs ? "\n" : "");
		draw_summary(&p, v->summary);
		r = plan_light_draw(&p.b, v, p.full);
		plan_commands_draw(&p.b, v);
	}
	if (r || p.b.failed) {
		r = err_nomem(err);
	} else {
		r = cli_print_bytes(p.b.data, p.b.len, err);
	}
	buf_fini(&p.b);
	return r;
}

/* ---- for programs ---- */

static void out_programs(struct out *o, const Weft__V1__PlanDevice *d)
{
	out_array(o, "programs");
	for (size_t i = 0; i < d->n_programs; i++) {
		const Weft__V1__PlanProgram *q = d->programs[i];

		out_object(o, NULL);
		out_str(o, "job", q->job);
		out_str(o, "change", q->change);
		out_int(o, "steps", q->steps);
		out_int(o, "settings", (int64_t)q->settings);
		out_int(o, "bytes", (int64_t)q->bytes);
		out_int(o, "first_node", q->first_node);
		out_int(o, "nodes", q->nodes);
		out_int(o, "first_channel", q->first_channel);
		out_int(o, "channels", q->channels);
		out_end(o);
	}
	out_end(o);
}

static void out_device(struct out *o, const Weft__V1__PlanDevice *d)
{
	char kind[32];

	out_str(o, "name", d->name);
	out_str(o, "kind", wire_enum(&weft__v1__device_kind__descriptor,
				    (int)d->kind, kind, sizeof(kind)));
	out_bool(o, "read", d->read);
	wire_out_circuits(o, "delete", d->delete_, d->n_delete_);
	wire_out_circuits(o, "add", d->add, d->n_add);
	wire_out_circuits(o, "stolen", d->displaced, d->n_displaced);
	wire_out_circuits(o, "foreign", d->external, d->n_external);
	out_int(o, "keep", d->keep);
	out_bool(o, "load_program", d->load_program);
	out_int(o, "program_steps", d->program_steps);
	out_int(o, "program_settings", (int64_t)d->program_settings);
	if (d->n_programs) {
		out_programs(o, d);
	}
	out_int(o, "switch_ns", d->switch_ns);
	out_int(o, "down_ns", d->down_ns);
	out_str(o, "power_loss", d->power_loss);
}

static void out_stages(struct out *o, const Weft__V1__PlanSummary *s)
{
	out_array(o, "stages");
	for (size_t i = 0; i < s->n_stages; i++) {
		const Weft__V1__PlanStage *st = s->stages[i];

		out_object(o, NULL);
		out_str(o, "domain", st->domain);
		out_int(o, "delete", st->delete_);
		out_int(o, "add", st->add);
		out_int(o, "loads", st->loads);
		out_str(o, "host", st->host);
		out_str(o, "way", !st->host[0] ? "" : st->receiving ?
			"receives" : "sends");
		out_int(o, "left_bps", st->remaining_bps);
		out_int(o, "of_bps", st->total_bps);
		out_end(o);
	}
	out_end(o);
}

static void out_plan(const struct cli *c, struct out *o,
		     const struct plan_view *v)
{
	const Weft__V1__PlanSummary *s = v->summary;

	out_str(o, "fabric", s->fabric);
	out_str(o, "state", s->state_uuid);
	out_int(o, "generation", s->generation);
	out_str(o, "digest", s->digest);
	out_str(o, "mode", s->mode == WEFT__V1__MODE__MODE_UPDATE ? "update"
								  : "safe");
	out_bool(o, "nothing_to_do", s->nothing_to_do);
	out_bool(o, "new_config", s->new_config);
	out_int(o, "add", s->add);
	out_int(o, "delete", s->delete_);
	out_int(o, "keep", s->keep);
	out_int(o, "loads", s->loads);
	out_int(o, "unread", s->unread);
	out_array(o, "silent");
	for (size_t i = 0; i < s->n_unreachable; i++) {
		out_str(o, NULL, s->unreachable[i]);
	}
	out_end(o);
	out_array(o, "warnings");
	for (size_t i = 0; i < s->n_warnings; i++) {
		out_str(o, NULL, s->warnings[i]);
	}
	out_end(o);
	out_int(o, "down_ns", s->down_ns);
	out_str(o, "down_by", s->downtime_source);
	out_stages(o, s);
	out_array(o, "devices");
	for (size_t i = 0; i < v->n_devices; i++) {
		out_object(o, NULL);
		out_device(o, v->devices[i]);
		out_end(o);
	}
	out_end(o);
	cli_out_jobs(c, o, v->jobs, v->n_jobs);
	plan_light_out(o, v);
	if (cli_has(c, "commands")) {
		plan_commands_out(o, v);
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
	if (o) {
		out_plan(c, o, v);
	}
	return cli_print(o, err);
}
