/* SPDX-License-Identifier: Apache-2.0 */
/* A dry run: a plan as the commands that carry it out. */
#include <stdlib.h>
#include <string.h>

#include "controller/dry_run/dry_run.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"

/* A dry run under way. */
struct dry_run {
	const struct plan *plan;
	const struct dry_run_device *devices;
	dry_run_fn fn;
	void *arg;
	struct err *err;
	VEC(char *) lines;	/* of the batch, as the driver gives them */
};

/* ---- what a driver says -------------------------------------------------- */

static void take_line(const char *device, const char *line, bool is_reply, void *arg)
{
	struct dry_run *r = arg;

	(void)device;
	(void)is_reply;
	vec_push(&r->lines, x_dup(line));
}

static void drop_lines(struct dry_run *r)
{
	for (size_t i = 0; i < r->lines.n; i++) {
		free(r->lines.v[i]);
	}
	r->lines.n = 0;
}

static int tell(struct dry_run *r, const struct plan_device *d, int stage,
		enum batch_phase phase, const struct drv_batch *batch)
{
	const struct dry_run_device *dd = &r->devices[d->device];
	struct dry_run_batch o = { .stage = stage, .device = d->device,
				    .phase = phase, .guessed = !dd->snap };

	drop_lines(r);
	drv_explain(dd->drv, batch, take_line, r);
	o.n_items = batch->programs ? batch->programs->n : batch->n_items;
	o.n_lines = (int)r->lines.n;
	o.lines = (const char *const *)r->lines.v;
	return r->fn(&o, r->arg, r->err);
}

/* ---- stages -------------------------------------------------------------- */

/* Nothing is known of the limits of a device that was never read. */
static const struct drv_caps *caps_of(const struct dry_run *r, const struct plan_device *d)
{
	static const struct drv_caps none;
	const struct drv_snapshot *s = r->devices[d->device].snap;

	return s ? &s->caps : &none;
}

static bool is_in(int n, const struct optics_xc *list, struct optics_xc xc)
{
	return n && bsearch(&xc, list, (size_t)n, sizeof(xc), optics_xc_cmp);
}

/* Of weft's circuits on the device, those that no stage moves. */
static int count_kept(const struct plan_device *d)
{
	int n = 0;

	for (int i = 0; i < d->n_want; i++) {
		n += !is_in(d->n_leave, d->leave, d->want[i]) &&
		     !is_in(d->n_add, d->add, d->want[i]);
	}
	return n;
}

/* The device as the stage will find it, when all goes as planned. */
static struct batch_stage look_ahead(const struct dry_run *r,
					const struct plan_device *d, int stage)
{
	const struct drv_snapshot *snap = r->devices[d->device].snap;
	struct batch_stage s = { .n_keep = count_kept(d),
				    .n_there = snap ? snap->n_xcs : 0 };

	for (int i = 0; i < d->n_del; i++) {
		s.n_del += d->del_stage[i] == stage;
		s.n_keep += d->del_stage[i] > stage;
		s.n_there -= d->del_stage[i] < stage;
	}
	for (int i = 0; i < d->n_add; i++) {
		s.n_add += d->add_stage[i] == stage;
		s.n_keep += d->add_stage[i] < stage;
		s.n_there += d->add_stage[i] < stage;
	}
	return s;
}

/* The stage's deletes or adds on a device, in batches as large as it takes. */
static int explain_circuits(struct dry_run *r, const struct plan_device *d,
			    int stage, enum batch_phase phase)
{
	bool del = phase == BATCH_DELETE;
	const struct optics_xc *xcs = del ? d->del : d->add;
	const int *at = del ? d->del_stage : d->add_stage;
	int n = del ? d->n_del : d->n_add, n_items = 0, rc = 0, more;
	struct drv_item *items = x_new((size_t)n + 1, sizeof(*items));

	for (int i = 0; i < n; i++) {
		if (at[i] == stage) {
			items[n_items++] = (struct drv_item){
				.op = del ? DRV_DEL : DRV_ADD, .xc = xcs[i] };
		}
	}
	for (int i = 0; i < n_items && rc == 0; i += more) {
		struct drv_batch b = { .items = &items[i] };

		more = batch_size(caps_of(r, d), n_items - i);
		b.n_items = more;
		b.mode = phase == BATCH_MAP ? DRV_REPLACE : DRV_SAFE;
		rc = tell(r, d, stage, phase, &b);
	}
	free(items);
	return rc;
}

/* Programs of a ring are loaded whole; no program at all darkens it. */
static int explain_load(struct dry_run *r, const struct plan_device *d, int stage)
{
	static const struct ring_programs dark;
	struct drv_batch b = { .programs = d->has_program ? &d->programs :
							    &dark };

	return d->load_program && d->load_stage == stage ? tell(r, d, stage, BATCH_LOAD, &b) : 0;
}

/* One phase of a stage on one device. */
static int explain_device(struct dry_run *r, const struct plan_device *d,
			  int stage, enum batch_phase phase)
{
	struct batch_stage s;

	if (phase == BATCH_LOAD) {
		return explain_load(r, d, stage);
	}
	s = look_ahead(r, d, stage);
	if (batch_replaces_map(caps_of(r, d), &s)) {
		return phase == BATCH_ADD ? explain_circuits(r, d, stage, BATCH_MAP) : 0;
	}
	return explain_circuits(r, d, stage, phase);
}

int dry_run_explain(const struct plan *p, const struct dry_run_device *devices, dry_run_fn fn,
		    void *arg, struct err *err)
{
	static const enum batch_phase phases[] = {
		BATCH_DELETE, BATCH_ADD, BATCH_LOAD,
	};
	struct dry_run r = { .plan = p, .devices = devices, .fn = fn,
			     .arg = arg, .err = err };
	int rc = 0;

	for (int i = 0; i < p->n_stages * 3 && rc == 0; i++) {
		for (int k = 0; k < p->n_devices && rc == 0; k++) {
			rc = explain_device(&r, &p->devices[k], i / 3, phases[i % 3]);
		}
	}
	drop_lines(&r);
	vec_fini(&r.lines);
	return rc;
}
