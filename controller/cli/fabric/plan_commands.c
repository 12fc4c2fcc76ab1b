/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan would send to the devices. */
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "controller/cli/core/private.h"
#include "controller/dry_run/dry_run.h"
#include "lib/base/alloc.h"

/* ---- without weftd ---- */

/* Where the batches of dry_run_explain() go. */
struct telling {
	const struct model_fabric *fabric;
	msg_part_fn fn;
	void *arg;
};

static int tell(const struct dry_run_batch *o, void *arg, struct err *err)
{
	const struct telling *t = arg;

	return msg_send_batch(t->fabric, o, t->fn, t->arg, err);
}

int plan_commands(const struct plan *p, msg_part_fn fn, void *arg, struct err *err)
{
	struct telling t = { .fabric = p->fabric, .fn = fn, .arg = arg };
	int n = p->fabric->n_devices, opened = 0, r;
	struct dry_run_device *v;
	uv_loop_t loop;

	r = uv_loop_init(&loop);
	if (r) {
		return err_set(err, WEFT_EIO, "event loop: %s", uv_strerror(r));
	}
	v = x_new((size_t)n + 1, sizeof(*v));
	while (opened < n && r == 0) {
		r = dry_run_open(&loop, p->fabric, opened, 0, &v[opened].drv, err);
		opened += r == 0;
	}
	if (r == 0) {
		r = dry_run_explain(p, v, tell, &t, err);
	}
	for (int i = 0; i < opened; i++) {
		drv_close(v[i].drv, NULL, NULL);
	}
	/* drv_close() ends in the loop: run it until all handles are gone. */
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	free(v);
	return r;
}

/* ---- shown ---- */

/* The noun for a batch's items. */
static const char *what_of(const Weft__V1__PlanBatch *m)
{
	bool load = strcmp(m->phase, "load") == 0;

	return m->items == 1 ? load ? "program" : "circuit" : load ? "programs" : "circuits";
}

void plan_commands_draw(struct buf *b, const struct plan_view *v)
{
	bool guessed = false;

	for (size_t i = 0; i < v->batches.n; i++) {
		const Weft__V1__PlanBatch *m = v->batches.v[i];

		buf_printf(b, "%sstage %d, %s, %s: %d %s\n", i ? "" : "\n",
			   m->stage, m->device, m->phase, m->items,
			   what_of(m));
		for (size_t k = 0; k < m->n_lines; k++) {
			buf_printf(b, "    %s\n", m->lines[k]);
		}
		guessed |= m->limits_unknown;
	}
	if (v->batches.n) {
		buf_str(b, "log-in and most readings are not shown; tags are "
			   "renumbered when they are sent\n");
	}
	if (guessed) {
		buf_str(b, "devices that were never read may take fewer "
			   "circuits at a time\n");
	}
}
