/* SPDX-License-Identifier: Apache-2.0 */
/* The lightpaths that a plan makes, with their power, and the links that it
 * interrupts, as tables. */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"
#include "lib/base/number/units.h"

#define FOLD_OVER 24	/* rows of a table shown at most */
#define FOLD_TO 16

/* Programs always get lightpaths, people when they ask. */
bool plan_light_wanted(const struct cli *c)
{
	return cli_has(c, "lightpaths") || c->format != OUT_TABLE;
}

static void put_ns(int64_t ns, struct buf *b)
{
	char text[32];

	buf_str(b, unit_human(UNIT_NS, (double)ns, text, sizeof(text)));
}

/* Power measured at the first device that can; empty where none does. */
static void path_measured(const void *m, struct buf *b)
{
	const Weft__V1__PlanLightpath *p = m;
	char text[32];

	if (p->no_signal) {
		buf_str(b, "no signal");
	} else if (p->measured_mdbm) {
		buf_str(b, unit_human(UNIT_MDBM, (double)p->measured_mdbm->value, text,
				      sizeof(text)));
	}
}

/* "0.5 + ocs0 1.5* + 0.5": the losses along the path in dB, fibres without a
 * name. '*': learned from measurements, '!': from the manufacturer's figures,
 * otherwise configured. */
static void path_elements(const void *m, struct buf *b)
{
	const Weft__V1__PlanLightpath *p = m;

	for (size_t i = 0; i < p->n_elements; i++) {
		const Weft__V1__PlanElement *e = p->elements[i];

		buf_printf(b, "%s%s%s%g", i ? " + " : "", e->device, e->device[0] ? " " : "",
			   (double)e->loss_mdb / 1000);
		if (strcmp(e->source, "learned") == 0) {
			buf_char(b, '*');
		} else if (strcmp(e->source, "factory") == 0) {
			buf_char(b, '!');
		}
	}
}

static const struct msg_column path_columns[] = {
	{ "from", "from", NULL }, { "to", "to", NULL }, { "launched", "launched_mdbm", NULL },
	{ "measured", NULL, path_measured }, { "loss", "loss_mdb", NULL },
	{ "received", "expected_min_mdbm", NULL }, { "margin", "margin_mdb", NULL },
	{ "path (dB)", NULL, path_elements }, { NULL, NULL, NULL },
};

/* The stage that brings the link back, as people count: from 1. */
static void outage_end(const void *m, struct buf *b)
{
	const Weft__V1__PlanOutage *g = m;

	if (g->restored_in_stage) {
		buf_printf(b, "stage %d", g->restored_in_stage);
	} else {
		buf_str(b, "no stage");
	}
}

static void outage_time(const void *m, struct buf *b)
{
	const Weft__V1__PlanOutage *g = m;

	if (g->restored_in_stage) {
		put_ns(g->down_ns, b);
	} else {
		buf_str(b, "permanent");
	}
}

static const struct msg_column outage_columns[] = {
	{ "stage", "stage", NULL }, { "from", "from", NULL }, { "to", "to", NULL },
	{ "restored in", NULL, outage_end }, { "down for", NULL, outage_time },
	{ NULL, NULL, NULL },
};

/* The longest interruption, and whether some links end for good. */
static void downtime_time(const void *m, struct buf *b)
{
	const Weft__V1__PlanDowntime *t = m;

	if (!t->down_ns && t->permanent) {
		buf_str(b, "permanent");
		return;
	}
	put_ns(t->down_ns, b);
	buf_str(b, t->permanent ? ", some permanently" : "");
}

static const struct msg_column downtime_columns[] = {
	{ "name", "name", NULL }, { "links", "links", NULL }, { "down for", NULL, downtime_time },
	{ NULL, NULL, NULL },
};

/* The first of n messages as a table, with a note of how many are left out;
 * nothing without any. */
static void draw_table(struct out *o, const char *title, const struct msg_column *columns,
		       void *const *v, size_t n, bool full)
{
	size_t shown = full || n <= FOLD_OVER ? n : FOLD_TO;

	if (n == 0) {
		return;
	}
	msg_out_table(o, title, columns, v, shown);
	if (shown < n) {
		out_note(o, "and %zu more (--full shows them)", n - shown);
	}
}

static void draw_outages(struct out *o, const Weft__V1__PlanOutages *d, bool full)
{
	draw_table(o, "interrupted links", outage_columns, (void *const *)d->links, d->n_links,
		   full);
	draw_table(o, "downtime of hosts", downtime_columns, (void *const *)d->hosts, d->n_hosts,
		   full);
	draw_table(o, "downtime of jobs", downtime_columns, (void *const *)d->jobs, d->n_jobs,
		   full);
}

void plan_light_draw(struct buf *b, const struct plan_view *v, bool full)
{
	struct out *o;

	if (!v->lightpaths.n && !(v->outages && (v->outages->n_links || v->outages->n_jobs))) {
		return;
	}
	o = out_new(OUT_TABLE);
	out_set_width(o, cli_width());
	buf_char(b, '\n');
	draw_table(o, "new lightpaths", path_columns, (void *const *)v->lightpaths.v,
		   v->lightpaths.n, full);
	if (v->lightpaths.n > 0) {
		out_note(o, "launched, measured: power at the first device; losses as configured, "
			 "* learned, ! of the manufacturer");
	}
	if (v->outages) {
		draw_outages(o, v->outages, full);
	}
	out_render(o, b);
	out_free(o);
}
