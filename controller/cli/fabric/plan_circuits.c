/* The light that a plan makes, with its power, and the light it takes away. */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"
#include "lib/base/units.h"

#define FOLD_OVER 24	/* rows of a table shown at most */
#define FOLD_TO 16

bool plan_light_wanted(const struct cli *c)
{
	return cli_has(c, "lightpaths") || c->format != OUT_TABLE;
}

/* ---- for people ---- */

static size_t folded(size_t n, bool full)
{
	return full || n <= FOLD_OVER ? n : FOLD_TO;
}

static void note_folded(struct out *o, size_t shown, size_t n)
{
	if (shown < n) {
		out_note(o, "and %zu more (--full shows them)", n - shown);
	}
}

static void out_unit(struct out *o, const char *key, bool known,
		     enum unit_kind kind, int64_t value)
{
	char text[32];

	out_str(o, key, known ? unit_human(kind, (double)value, text,
					   sizeof(text)) : "");
}

/* "0.5 + ocs0 1.5* + 0.5": in dB, fibres without a name. */
static void out_way(struct out *o, const Weft__V1__PlanLightpath *p)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < p->n_elements; i++) {
		const Weft__V1__PlanElement *e = p->elements[i];

		buf_printf(&b, "%s%s%s%g%s", i ? " + " : "", e->device,
			   e->device[0] ? " " : "",
			   (double)e->loss_mdb / 1000,
			   strcmp(e->source, "learned") == 0 ? "*" :
			   strcmp(e->source, "factory") == 0 ? "!" : "");
	}
	out_str(o, "way (dB)", buf_cstr(&b));
	buf_fini(&b);
}

/* What may be lost, or gained, before the receiver's limits are met. */
static bool margin_of(const Weft__V1__PlanLightpath *p, int64_t *mdb)
{
	int64_t down = p->expected_min_mdbm - p->receiver_min_mdbm;
	int64_t up = p->receiver_max_mdbm - p->expected_max_mdbm;

	*mdb = !p->has_receiver_min || (p->has_receiver_max && up < down) ? up :
									 down;
	return p->has_expected && (p->has_receiver_min || p->has_receiver_max);
}

static void draw_path(struct out *o, const Weft__V1__PlanLightpath *p)
{
	int64_t margin;
	bool has_margin = margin_of(p, &margin);

	out_object(o, NULL);
	out_str(o, "from", p->from);
	out_str(o, "to", p->to);
	out_unit(o, "launched", p->has_launch, UNIT_MDBM, p->launched_mdbm);
	if (p->no_signal) {
		out_str(o, "measured", "no light");
	} else {
		out_unit(o, "measured", p->has_measured, UNIT_MDBM,
			 p->measured_mdbm);
	}
	out_unit(o, "loss", true, UNIT_MDB, p->loss_mdb);
	out_unit(o, "received", p->has_expected, UNIT_MDBM, p->expected_min_mdbm);
	out_unit(o, "margin", has_margin, UNIT_MDB, margin);
	out_way(o, p);
	out_end(o);
}

static void draw_paths(struct out *o, const struct plan_view *v, bool full)
{
	size_t shown = folded(v->n_paths, full);

	if (v->n_paths == 0) {
		return;
	}
	out_array(o, "new light");
	for (size_t i = 0; i < shown; i++) {
		draw_path(o, v->paths[i]);
	}
	out_end(o);
	note_folded(o, shown, v->n_paths);
	out_note(o, "launched, measured: as it arrives at the first device; "
		 "losses as configured, * learned, ! by the maker");
}

static void draw_outages(struct out *o, const Weft__V1__PlanOutages *d, bool full)
{
	size_t shown = folded(d->n_links, full);

	if (d->n_links == 0) {
		return;
	}
	out_array(o, "goes dark");
	for (size_t i = 0; i < shown; i++) {
		const Weft__V1__PlanOutage *g = d->links[i];
		char text[32];

		out_object(o, NULL);
		out_int(o, "stage", g->stage);
		out_str(o, "from", g->from);
		out_str(o, "to", g->to);
		if (g->restored_in_stage) {
			out_int(o, "light in stage", g->restored_in_stage);
		} else {
			out_str(o, "light in stage", "none");
		}
		out_str(o, "dark for", g->restored_in_stage ?
			unit_human(UNIT_NS, (double)g->down_ns, text,
				   sizeof(text)) : "good");
		out_end(o);
	}
	out_end(o);
	note_folded(o, shown, d->n_links);
}

static void draw_downtime(struct out *o, const char *title,
			  Weft__V1__PlanDowntime *const *v, size_t n, bool full)
{
	size_t shown = folded(n, full);

	if (n == 0) {
		return;
	}
	out_array(o, title);
	for (size_t i = 0; i < shown; i++) {
		char text[32];

		out_object(o, NULL);
		out_str(o, "name", v[i]->name);
		out_int(o, "links", v[i]->links);
		out_fmt(o, "dark for", "%s%s", !v[i]->down_ns && v[i]->permanent ?
			"good" : unit_human(UNIT_NS, (double)v[i]->down_ns,
					    text, sizeof(text)),
			v[i]->down_ns && v[i]->permanent ? ", some for good" : "");
		out_end(o);
	}
	out_end(o);
	note_folded(o, shown, n);
}

int plan_light_draw(struct buf *b, const struct plan_view *v, bool full)
{
	struct out *o;
	int r;

	if (!v->n_paths && !(v->dark && (v->dark->n_links ||
					 v->dark->n_jobs))) {
		return 0;
	}
	o = out_new(OUT_TABLE);
	if (!o) {
		return WEFT_ENOMEM;
	}
	out_set_width(o, cli_width());
	buf_char(b, '\n');
	draw_paths(o, v, full);
	if (v->dark) {
		draw_outages(o, v->dark, full);
		draw_downtime(o, "hosts in the dark", v->dark->hosts,
			      v->dark->n_hosts, full);
		draw_downtime(o, "jobs in the dark", v->dark->jobs,
			      v->dark->n_jobs, full);
	}
	r = out_render(o, b);
	out_free(o);
	return r;
}

/* ---- for programs ---- */

/* A figure that is null where it is not known. */
static void out_known(struct out *o, const char *key, bool known, int64_t value)
{
	if (known) {
		out_int(o, key, value);
	} else {
		out_null(o, key);
	}
}

static void out_path(struct out *o, const Weft__V1__PlanLightpath *p)
{
	int64_t margin;
	bool has_margin = margin_of(p, &margin);

	out_object(o, NULL);
	out_str(o, "job", p->job);
	out_str(o, "from", p->from);
	out_str(o, "to", p->to);
	out_array(o, "elements");
	for (size_t i = 0; i < p->n_elements; i++) {
		const Weft__V1__PlanElement *e = p->elements[i];

		out_object(o, NULL);
		out_str(o, "kind", e->device[0] ? "circuit" : "fibre");
		if (e->device[0]) {
			out_str(o, "device", e->device);
			out_int(o, "in", e->in);
			out_int(o, "out", e->out);
		}
		out_int(o, "loss_mdb", e->loss_mdb);
		out_str(o, "source", e->source);
		out_end(o);
	}
	out_end(o);
	out_int(o, "loss_mdb", p->loss_mdb);
	out_known(o, "launched_mdbm", p->has_launch, p->launched_mdbm);
	out_known(o, "measured_mdbm", p->has_measured, p->measured_mdbm);
	out_bool(o, "no_light", p->no_signal);
	out_known(o, "least_mdbm", p->has_expected, p->expected_min_mdbm);
	out_known(o, "most_mdbm", p->has_expected, p->expected_max_mdbm);
	out_known(o, "receive_min_mdbm", p->has_receiver_min,
		  p->receiver_min_mdbm);
	out_known(o, "receive_max_mdbm", p->has_receiver_max,
		  p->receiver_max_mdbm);
	out_known(o, "margin_mdb", has_margin, margin);
	out_end(o);
}

static void out_downtime(struct out *o, const char *key,
			 Weft__V1__PlanDowntime *const *v, size_t n)
{
	out_array(o, key);
	for (size_t i = 0; i < n; i++) {
		out_object(o, NULL);
		out_str(o, "name", v[i]->name);
		out_int(o, "links", v[i]->links);
		out_int(o, "down_ns", v[i]->down_ns);
		out_bool(o, "for_good", v[i]->permanent);
		out_end(o);
	}
	out_end(o);
}

static void out_dark(struct out *o, const Weft__V1__PlanOutages *d)
{
	out_array(o, "outages");
	for (size_t i = 0; i < d->n_links; i++) {
		const Weft__V1__PlanOutage *g = d->links[i];

		out_object(o, NULL);
		out_int(o, "stage", g->stage);
		out_str(o, "from", g->from);
		out_str(o, "to", g->to);
		out_known(o, "back_stage", g->restored_in_stage != 0, g->restored_in_stage);
		out_known(o, "down_ns", g->restored_in_stage != 0, g->down_ns);
		out_end(o);
	}
	out_end(o);
	out_object(o, "downtime");
	out_downtime(o, "hosts", d->hosts, d->n_hosts);
	out_downtime(o, "jobs", d->jobs, d->n_jobs);
	out_end(o);
}

void plan_light_out(struct out *o, const struct plan_view *v)
{
	out_array(o, "lightpaths");
	for (size_t i = 0; i < v->n_paths; i++) {
		out_path(o, v->paths[i]);
	}
	out_end(o);
	if (v->dark) {
		out_dark(o, v->dark);
	}
}
