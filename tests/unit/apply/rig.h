/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine over a store in a folder of its own, with sim devices whose maps
 * live in files there, so that they outlast the engine as real switches
 * would. Plans are made here by plain set differences.
 */
#ifndef WEFT_TESTS_UNIT_APPLY_RIG_H
#define WEFT_TESTS_UNIT_APPLY_RIG_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/apply/private.h"
#include "lib/base/buf.h"

#define RIG_MAX_WANT 16

struct rig {
	char dir[64];
	uv_loop_t loop;
	struct store *store;
	struct apply *apply;
	struct buf yaml;		/* of the next fabric */

	/* the last answers */
	bool answered;
	int rc;
	struct err err;
	struct apply_result res;
	struct buf events;		/* "phase device text\n" */
	char text[512];

	bool in_stages;			/* plans have a stage for each delete */
	const char *maps;		/* folder of the devices' maps; NULL: dir */

	/* of changes of which others carry out parts */
	void (*ready)(int stage, void *arg);	/* arg is the rig; NULL: none are */
	int at;				/* the stage it waits for, or -1 */

	/* when to interfere, by the text of an event */
	const char *cue;
	void (*on_cue)(struct rig *r);

	int n_commands;			/* lines that are no readings */
	int n_lines;			/* all lines sent */
};

/* What a device should hold, for a hand-made plan. */
struct want {
	const char *device;
	int n;
	struct optics_xc xcs[RIG_MAX_WANT];
	const struct ring_programs *programs;
};

/* ---- life ---------------------------------------------------------------- */

static inline void rig_init(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	/* Memory, where there is some: what a disk takes for each sync is no
	 * part of these tests. */
	strcpy(r->dir, "/dev/shm/weft-apply-XXXXXX");
	if (!mkdtemp(r->dir)) {
		strcpy(r->dir, "/tmp/weft-apply-XXXXXX");
		assert_non_null(mkdtemp(r->dir));
	}
}

static inline void rig_up(struct rig *r)
{
	char path[96];
	struct err err = { 0 };

	snprintf(path, sizeof(path), "%s/state", r->dir);
	assert_int_equal(uv_loop_init(&r->loop), 0);
	if (store_open(path, &r->store, &err) ||
	    apply_new(&r->loop, r->store, &r->apply, &err)) {
		fail_msg("%s", err.msg);
	}
}

static inline void rig_run(struct rig *r)
{
	while (!r->answered && uv_run(&r->loop, UV_RUN_ONCE)) {
	}
	assert_true(r->answered);
}

static inline void rig_on_free(void *arg)
{
	((struct rig *)arg)->answered = true;
}

/* Ends engine and store as a clean stop would; devices keep their light. */
static inline void rig_down(struct rig *r)
{
	r->answered = false;
	apply_free(r->apply, rig_on_free, r);
	rig_run(r);
	uv_run(&r->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&r->loop), 0);
	store_free(r->store);
	r->apply = NULL;
	r->store = NULL;
}

static inline void rig_wipe(const struct rig *r)
{
	DIR *d = opendir(r->dir);
	struct dirent *e;
	char path[384];

	while ((e = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", r->dir, e->d_name);
		unlink(path);
	}
	closedir(d);
}

static inline void rig_fini(struct rig *r)
{
	if (r->apply) {
		rig_down(r);
	}
	rig_wipe(r);
	assert_int_equal(rmdir(r->dir), 0);
	buf_fini(&r->events);
	buf_fini(&r->yaml);
}

/* ---- fabrics ------------------------------------------------------------- */

static inline void rig_fabric(struct rig *r)
{
	buf_reset(&r->yaml);
	buf_str(&r->yaml, "weft: 1\nfabric: test\nhosts:\n"
		"  - { name: 'n[0-3]', ports: p0, rate: 100Gbps }\n"
		"fibres:\n"
		"  - { from: 'n[0-3].p0', to: 'a.[1-4]' }\n"
		"switches:\n");
}

/* An 8x8 sim switch; the first is to be called a. Options such as ", lie: o3". */
static inline void rig_switch(struct rig *r, const char *name,
			      const char *domain, const char *options)
{
	buf_printf(&r->yaml, "  - { name: %s, size: 8x8, driver: sim, "
		   "domain: %s, options: { state: '%s/%s.map'%s } }\n", name,
		   domain, r->maps ? r->maps : r->dir, name, options);
}

/* A ring of four; only after all switches. */
static inline void rig_ring(struct rig *r, const char *name,
			    const char *options)
{
	buf_printf(&r->yaml, "rings:\n  - { name: %s, nodes: 'n[0-3]', "
		   "channels: 8, channel-rate: 40Gbps, driver: sim-ring, "
		   "options: { state: '%s/%s.map'%s } }\n", name, r->dir,
		   name, options);
}

static inline struct model_fabric *rig_parse(const struct rig *r)
{
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;

	if (model_parse("fabric.yaml", buf_cstr(&r->yaml), r->yaml.len, &f,
			&errs)) {
		fail_msg("%d: %s", errs.v[0].line, errs.v[0].msg);
	}
	err_list_fini(&errs);
	return f;
}

static inline void rig_on_read(int rc, const struct err *err, void *arg)
{
	struct rig *r = arg;

	r->answered = true;
	r->rc = rc;
	r->err = *err;
}

/* Reads all devices; the answer is in r->rc. */
static inline void rig_read(struct rig *r)
{
	r->answered = false;
	apply_read(r->apply, rig_on_read, r);
	rig_run(r);
}

static inline void rig_count(const char *device, const char *line,
			     bool is_reply, void *arg)
{
	struct rig *r = arg;

	(void)device;
	r->n_lines += !is_reply;
	r->n_commands += !is_reply && strcmp(line, "map?") != 0;
}

/* Counts what is sent from here on (instead of the audit trail). */
static inline void rig_watch(struct rig *r)
{
	r->n_commands = r->n_lines = 0;
	for (struct device *d = r->apply->devices; d; d = d->next) {
		drv_set_trace(d->drv, rig_count, r);
	}
}

/* Opens the fabric's devices and reads them. */
static inline void rig_use(struct rig *r)
{
	struct err err = { 0 };

	if (apply_set_fabric(r->apply, rig_parse(r), &err)) {
		fail_msg("%s", err.msg);
	}
	rig_read(r);
}

static inline const struct apply_device *rig_device(struct rig *r,
						    const char *name)
{
	int n;
	const struct apply_device *v = apply_devices(r->apply, &n);

	for (int i = 0; i < n; i++) {
		if (strcmp(v[i].name, name) == 0) {
			return &v[i];
		}
	}
	fail_msg("no device %s", name);
	return NULL;
}

static inline bool rig_has(struct rig *r, const char *device, int in, int out)
{
	struct optics_xc xc = { in, out };

	return snap_find(&rig_device(r, device)->snap, xc) != NULL;
}

/* ---- another user ------------------------------------------------------- */

static inline void rig_on_submit(struct drv *dev, int rc, int n,
				 const struct drv_outcome *o,
				 const struct err *err, void *arg)
{
	(void)dev;
	(void)n;
	(void)o;
	(void)err;
	((struct rig *)arg)->rc = rc;
	((struct rig *)arg)->answered = true;
}

/* Changes a device behind the engine's back. */
static inline void rig_meddle(struct rig *r, const char *device,
			      enum drv_op op, int in, int out)
{
	struct device *d = device_set_find(r->apply->set, device);
	struct drv_item item = { op, { in, out } };
	struct drv_batch b = { .mode = DRV_UPDATE, .n_items = 1,
			       .items = &item };

	r->answered = false;
	drv_submit(d->drv, &b, rig_on_submit, r);
	rig_run(r);
	assert_int_equal(r->rc, 0);
}

static inline void rig_on_meddled(struct device *d, int rc, int n,
				  const struct drv_outcome *o,
				  const struct err *err, void *arg)
{
	(void)d;
	(void)n;
	(void)o;
	(void)err;
	(void)arg;
	assert_int_equal(rc, 0);
}

/* The same in the middle of a change: between two operations of the
 * device. One at a time. */
static inline void rig_meddle_later(struct rig *r, const char *device,
				    enum drv_op op, int in, int out)
{
	static struct device_op request;
	static struct drv_item item;
	static struct drv_batch b;

	item = (struct drv_item){ op, { in, out } };
	b = (struct drv_batch){ .mode = DRV_UPDATE, .n_items = 1,
				.items = &item };
	device_submit(device_set_find(r->apply->set, device), &request, &b,
		      rig_on_meddled, r);
}

/* What b's driver is made to say: its class is replaced by one that
 * forwards to the real one and changes the answers. */
static struct {
	bool dead;			/* readings fail */
	int tuning;			/* readings that say light moves */
	int max_batch;
	bool blocked;			/* 5 -> 6 is listed, without light, until
					 * it is asked for again */
	bool measures;			/* outcomes claim measured light */
	int hook_at;			/* readings until the hook is called */
	void (*hook)(struct rig *r);
	struct rig *rig;
	drv_snapshot_cb snapshot_cb;
	drv_submit_cb submit_cb;
} rig_b;

static inline void rig_b_read(struct drv *dev, int rc,
			      struct drv_snapshot *snap,
			      const struct err *err, void *arg)
{
	struct err gone = { 0 };

	if (rig_b.hook_at > 0 && --rig_b.hook_at == 0) {
		rig_b.hook(rig_b.rig);
	}
	if (rig_b.dead) {
		err_set(&gone, WEFT_EUNAVAIL, "%s: no answer", dev->name);
		rig_b.snapshot_cb(dev, WEFT_EUNAVAIL, NULL, &gone, arg);
		return;
	}
	for (int i = 0; i < snap->n_xcs && rig_b.tuning > 0; i++) {
		snap->xcs[i].state = DRV_TUNING;
	}
	for (int i = 0; i < snap->n_xcs && rig_b.blocked; i++) {
		if (snap->xcs[i].xc.in == 5 && snap->xcs[i].xc.out == 6) {
			snap->xcs[i].state = DRV_BLOCKED;
		}
	}
	rig_b.tuning -= rig_b.tuning > 0;
	snap->caps.max_batch = rig_b.max_batch;
	rig_b.snapshot_cb(dev, rc, snap, err, arg);
}

static inline void rig_b_snapshot(struct drv *dev, drv_snapshot_cb cb,
				  void *arg)
{
	rig_b.snapshot_cb = cb;
	drv_find("sim")->snapshot(dev, rig_b_read, arg);
}

static inline void rig_b_sent(struct drv *dev, int rc, int n,
			      const struct drv_outcome *o,
			      const struct err *err, void *arg)
{
	struct drv_outcome own[64];

	assert_true(n <= 64 && (rig_b.max_batch == 0 ||
				n <= rig_b.max_batch));
	for (int i = 0; i < n; i++) {
		own[i] = o[i];
		if (rig_b.measures) {
			own[i].evidence = DRV_MEASURED;
		}
	}
	rig_b.submit_cb(dev, rc, n, own, err, arg);
}

static inline void rig_b_submit(struct drv *dev, const struct drv_batch *batch,
				drv_submit_cb cb, void *arg)
{
	rig_b.submit_cb = cb;
	for (int i = 0; i < batch->n_items; i++) {
		if (batch->items[i].op == DRV_ADD &&
		    batch->items[i].xc.in == 5 && batch->items[i].xc.out == 6) {
			rig_b.blocked = false;
		}
	}
	drv_find("sim")->submit(dev, batch, rig_b_sent, arg);
}

static inline void rig_wrap_b(struct rig *r)
{
	static struct drv_class cls;

	memset(&rig_b, 0, sizeof(rig_b));
	rig_b.rig = r;
	cls = *drv_find("sim");
	cls.snapshot = rig_b_snapshot;
	cls.submit = rig_b_submit;
	device_set_find(r->apply->set, "b")->drv->cls = &cls;
}

static inline void rig_kill_b(struct rig *r)
{
	(void)r;
	rig_b.dead = true;
}

/* ---- plans --------------------------------------------------------------- */

static inline bool xc_in(const struct optics_xc *v, int n, struct optics_xc xc)
{
	for (int i = 0; i < n; i++) {
		if (optics_xc_cmp(&v[i], &xc) == 0) {
			return true;
		}
	}
	return false;
}

static inline void plan_switch(const struct plan_base *b, const struct want *w,
			       struct plan_device *d)
{
	const struct plan_light *seen = &b->observed[d->device];
	const struct plan_light *intent = &b->intent[d->device];

	d->want = calloc(w->n + 1, sizeof(*d->want));
	d->add = calloc(w->n + 1, sizeof(*d->add));
	d->del = calloc(seen->n_xcs + 1, sizeof(*d->del));
	for (int i = 0; i < w->n; i++) {
		d->want[d->n_want++] = w->xcs[i];
		if (!xc_in(seen->xcs, seen->n_xcs, w->xcs[i]) ||
		    xc_in(seen->dark, seen->n_dark, w->xcs[i])) {
			d->add[d->n_add++] = w->xcs[i];
		}
	}
	for (int i = 0; i < seen->n_xcs; i++) {
		struct optics_xc xc = seen->xcs[i];
		bool ours = xc_in(intent->xcs, intent->n_xcs, xc) ||
			    xc_in(intent->pending, intent->n_pending, xc);
		bool displaced = false;

		for (int k = 0; k < w->n && b->mode == PLAN_UPDATE; k++) {
			displaced |= w->xcs[k].in == xc.in ||
				  w->xcs[k].out == xc.out;
		}
		if ((ours || displaced) && !xc_in(w->xcs, w->n, xc)) {
			d->del[d->n_del++] = xc;
		}
	}
}

static inline void plan_program(const struct plan_base *b,
				const struct want *w, struct plan_device *d)
{
	const struct ring_programs *seen = b->observed[d->device].programs;

	if (seen && seen->n) {
		d->had_program = true;
		ring_programs_copy(&d->old_programs, seen);
	}
	if (w->programs) {
		d->has_program = true;
		ring_programs_copy(&d->programs, w->programs);
	}
	d->load_program = w->programs ? !d->had_program ||
		!ring_programs_equal(w->programs, seen) : d->had_program;
}

/* Each add goes with the last of the deletes that free its ports. */
static inline int stage_of_add(const struct plan_device *d, struct optics_xc xc,
			       int base)
{
	int stage = base;

	for (int i = 0; i < d->n_del; i++) {
		if (d->del[i].in == xc.in || d->del[i].out == xc.out) {
			stage = d->del_stage[i];
		}
	}
	return stage;
}

/* A stage a domain, or one for each delete. */
static inline void plan_in_stages(struct rig *r, struct plan *p)
{
	int n = 0, max = 0;

	for (int i = 0; i < p->n_devices; i++) {
		max += p->devices[i].n_del + 1;
	}
	p->stages = calloc(max, sizeof(*p->stages));
	for (int i = 0; i < p->n_devices; i++) {
		struct plan_device *d = &p->devices[i];
		const char *domain = p->fabric->devices[d->device].domain;
		int base = n > 0 && !r->in_stages &&
			   strcmp(domain, p->stages[n - 1].domain) == 0 ?
			   n - 1 : n;

		d->del_stage = calloc(d->n_del + 1, sizeof(int));
		d->add_stage = calloc(d->n_add + 1, sizeof(int));
		for (int k = 0; k < d->n_del; k++) {
			d->del_stage[k] = base + (r->in_stages ? k : 0);
			n = d->del_stage[k] + 1;
		}
		for (int k = 0; k < d->n_add; k++) {
			d->add_stage[k] = stage_of_add(d, d->add[k], base);
			n = n > base ? n : base + 1;
		}
		d->load_stage = base;
		n = d->load_program && n == base ? base + 1 : n;
		for (int k = base; k < n; k++) {
			p->stages[k].domain = domain;
		}
	}
	p->n_stages = n;
}

/* A plan for the fabric; devices that wants does not name want nothing. */
static inline struct plan *rig_plan(struct rig *r,
				    const struct model_fabric *f,
				    enum plan_mode mode,
				    const struct want *wants, int n)
{
	struct plan *p = calloc(1, sizeof(*p));
	struct plan_base b;

	apply_plan_base(r->apply, f, mode, &b);
	p->fabric = f;
	p->generation = b.generation;
	p->mode = mode;
	memcpy(p->state_uuid, b.state_uuid, sizeof(p->state_uuid));
	p->n_devices = f->n_devices;
	p->devices = calloc(f->n_devices, sizeof(*p->devices));
	for (int i = 0; i < f->n_devices; i++) {
		const struct want none = { .n = 0 };
		const struct want *w = &none;
		struct plan_device *d = &p->devices[i];

		for (int k = 0; k < n; k++) {
			if (!strcmp(wants[k].device, f->devices[i].name)) {
				w = &wants[k];
			}
		}
		d->device = i;
		if (f->devices[i].kind == MODEL_RING) {
			plan_program(&b, w, d);
		} else {
			plan_switch(&b, w, d);
		}
		p->n_add += d->n_add;
		p->n_del += d->n_del;
		p->n_loads += d->load_program;
	}
	plan_in_stages(r, p);
	return p;
}

/* ---- changes ------------------------------------------------------------- */

static inline void rig_on_event(const struct apply_event *ev, void *arg)
{
	struct rig *r = arg;

	assert_true(ev->done >= 0 && ev->done <= ev->total);
	buf_printf(&r->events, "%s %s %s\n", ev->phase, ev->device, ev->text);
	if (r->on_cue && strstr(buf_cstr(&r->events), r->cue)) {
		void (*fn)(struct rig *) = r->on_cue;

		r->on_cue = NULL;
		fn(r);
	}
}

static inline void rig_on_done(int rc, const struct apply_result *res,
			       const struct err *err, void *arg)
{
	struct rig *r = arg;

	r->answered = true;
	r->rc = rc;
	r->err = *err;
	r->res = *res;
}

static inline void rig_start(struct rig *r, struct plan *p,
			     struct model_fabric *f)
{
	struct err err = { 0 };

	r->answered = false;
	buf_reset(&r->events);
	if (apply_start(r->apply, p, f, &(struct apply_request){ .order.who = "alice",
					.order.comment = "test", .ready = r->ready }, rig_on_event,
			rig_on_done, r, &err)) {
		fail_msg("%s", err.msg);
	}
}

/* Plans the present YAML for wants and carries it through. */
static inline enum apply_verdict rig_go(struct rig *r, enum plan_mode mode,
					const struct want *wants, int n)
{
	struct model_fabric *f = rig_parse(r);

	rig_start(r, rig_plan(r, f, mode, wants, n), f);
	rig_run(r);
	return r->res.verdict;
}

static inline void rig_on_recovered(int rc, const char *text, void *arg)
{
	struct rig *r = arg;

	r->answered = true;
	r->rc = rc;
	snprintf(r->text, sizeof(r->text), "%s", text);
}

static inline void rig_recover(struct rig *r)
{
	r->answered = false;
	apply_recover(r->apply, rig_on_recovered, r);
	rig_run(r);
}

/* ---- what most tests begin with ------------------------------------------ */

static inline int rig_setup(void **state)
{
	struct rig *r = malloc(sizeof(*r));

	rig_init(r);
	rig_up(r);
	*state = r;
	return 0;
}

static inline int rig_teardown(void **state)
{
	rig_fini(*state);
	free(*state);
	return 0;
}

/* Two switches, each a failure domain of its own. */
static inline void rig_two_switches(struct rig *r, const char *options_a,
				    const char *options_b)
{
	rig_fabric(r);
	rig_switch(r, "a", "east", options_a);
	rig_switch(r, "b", "west", options_b);
	rig_use(r);
}

static const struct want rig_first[] = {
	{ "a", 3, { { 0, 1 }, { 1, 2 }, { 2, 3 } }, NULL },
	{ "b", 3, { { 0, 0 }, { 5, 6 }, { 6, 5 } }, NULL },
};

/* One circuit moves on each switch. */
static const struct want rig_second[] = {
	{ "a", 3, { { 0, 1 }, { 1, 4 }, { 2, 3 } }, NULL },
	{ "b", 3, { { 0, 0 }, { 5, 7 }, { 6, 5 } }, NULL },
};

/* Both hold rig_first. */
static inline void rig_begin(struct rig *r, const char *options_b)
{
	rig_two_switches(r, "", options_b);
	assert_int_equal(r->rc, 0);
	rig_go(r, PLAN_SAFE, rig_first, 2);
}

#define assert_says(text, words) \
	do { \
		if (!strstr((text), (words))) { \
			fail_msg("\"%s\" is not in \"%s\"", (words), (text)); \
		} \
	} while (0)

#endif
