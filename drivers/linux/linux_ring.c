/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `linux-ring`: a network namespace as a ring of resonators; netns_ring.h has
 * its netdevs and rules. A program is packed as on any ring; the rules are
 * those of the step that each program is at, and `weft testbed step` takes it
 * to another. Every snapshot reads all rules: a resonator whose rules are not
 * those of its step counts as not locked. It gets its rules back when the same
 * programs are submitted again, or by a relock.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "drivers/core/driver_base.h"
#include "drivers/linux/netns_ring.h"

#define RETRY_MS 5	/* while another process steps */
#define RETRIES 400

static const struct drv_option_spec options[] = {
	{ "fabric", "the namespace is weft.FABRIC.DEVICE, as `weft testbed "
	  "up` makes it", "" },
	{ "netns", "name of the namespace instead", "" },
	{ "switch_ms", "how long changed channels stay dark", "0" },
	{ NULL, NULL, NULL },
};

struct ring {
	struct driver_base h;
	char netns[HOST_NETNS_MAX];
	int64_t switch_ms;
	struct ring_geometry g;
	int tries;
	struct netns_ring *r;	/* during a submit, once it is begun */
};

static const struct base_ops ops;

static void fill_caps(const struct ring *ring, struct drv_caps *caps)
{
	caps->kind = DRV_RING;
	caps->n_in = ring->h.n_in;
	caps->n_out = ring->h.n_out;
	caps->persistence = DRV_PERSIST_DARK;
	caps->power = DRV_POWER_NONE;
	caps->typ_switch_us = ring->switch_ms * 1000;
	caps->max_steps = RING_MAX_STEPS;
	caps->max_tunes = RING_MAX_SETTINGS;
	caps->reloads = true;
}

/* Another process is at it for a moment: again soon; true then. */
static bool comes_again(struct ring *ring, int rc, uv_timer_cb fn)
{
	if (rc != WEFT_ESTALE || ring->tries++ >= RETRIES) {
		return false;
	}
	uv_timer_start(&ring->h.timer, fn, RETRY_MS, 0);
	return true;
}

/* ---- snapshot -------------------------------------------------------------- */

static void fill_snapshot(struct ring *ring, struct netns_ring *r)
{
	struct drv_snapshot *snap = &ring->h.snap;
	struct utsname os = { 0 };

	uname(&os);
	snprintf(snap->identity, sizeof(snap->identity),
		 "Linux,ring,%.60s,%.50s", ring->netns, os.release);
	snprintf(snap->epoch, sizeof(snap->epoch), "%s", netns_ring_epoch(r));
	fill_caps(ring, &snap->caps);
	snap->n_unlocked = netns_ring_wrong(r, snap->lock_detail, sizeof(snap->lock_detail));
	ring_programs_copy(&snap->programs, netns_ring_programs(r));
}

static void on_snapshot(uv_timer_t *work)
{
	struct ring *ring = work->data;
	struct netns_ring *r = NULL;
	struct err err = { 0 };
	int rc = netns_ring_open(ring->netns, &ring->g, &r, &err);

	if (comes_again(ring, rc, on_snapshot)) {
		return;
	}
	if (rc == 0) {
		fill_snapshot(ring, r);
		netns_ring_close(r);
	}
	if (rc) {
		err_wrap(&err, "%s", ring->h.drv.name);
		drv_snapshot_fini(&ring->h.snap);
	}
	base_snapshot_done(&ring->h, rc, &err);
}

static void ring_snapshot(struct driver_base *h)
{
	struct ring *ring = (struct ring *)h;

	base_trace(h, "filter dump", false);
	ring->tries = 0;
	uv_timer_start(&ring->h.timer, on_snapshot, 0, 0);
}

/* ---- submit ---------------------------------------------------------------- */

static void finish(struct ring *ring, int rc, struct err *err)
{
	char text[DRV_TEXT_MAX];

	if (rc) {
		base_mark(&ring->h, 0, 1, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT, NULL, err->msg);
	} else if (netns_ring_wrong(ring->r, text, sizeof(text))) {
		base_mark(&ring->h, 0, 1, DRV_DONE, DRV_ACKED, DRV_ERR_TRAFFIC, NULL, text);
	} else {
		base_mark(&ring->h, 0, 1, DRV_DONE, DRV_ACKED, DRV_ERR_NONE, NULL, NULL);
	}
	netns_ring_close(ring->r);
	ring->r = NULL;
	base_submit_done(&ring->h, rc, err);
}

static void on_dark(uv_timer_t *work)
{
	struct ring *ring = work->data;
	struct err err = { 0 };
	int rc = netns_ring_activate(ring->r, &err);

	finish(ring, rc, &err);
}

static void on_submit(uv_timer_t *work)
{
	struct ring *ring = work->data;
	const struct ring_programs *p = ring->h.batch->programs;
	struct err err = { 0 };
	int rc = ring_programs_check(p, &ring->g, &err);

	if (rc) {
		base_mark(&ring->h, 0, 1, DRV_REFUSED, DRV_ACKED,
			  DRV_ERR_CONFIGURATION, "range", err.msg);
		base_submit_done(&ring->h, 0, NULL);
		return;
	}
	rc = netns_ring_open(ring->netns, &ring->g, &ring->r, &err);
	if (comes_again(ring, rc, on_submit)) {
		return;
	}
	if (rc) {
		base_mark(&ring->h, 0, 1, DRV_SKIPPED, DRV_SENT, DRV_ERR_TRANSPORT, NULL, err.msg);
		base_submit_done(&ring->h, rc, &err);
		return;
	}
	base_mark(&ring->h, 0, 1, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT,
		  NULL, "the light is moving");
	rc = netns_ring_load(ring->r, p, &err);
	if (rc) {
		finish(ring, rc, &err);
	} else {
		uv_timer_start(&ring->h.timer, on_dark, (uint64_t)ring->switch_ms, 0);
	}
}

static void ring_explain(struct drv *dev, const struct drv_batch *batch, drv_trace_fn fn, void *arg)
{
	char line[192];

	fn(dev->name, "programs; rules of the first step of those that are new", false, arg);
	for (int i = 0; i < batch->programs->n; i++) {
		const struct ring_program *p = &batch->programs->v[i];

		snprintf(line, sizeof(line), "program %s %" PRIu32 " steps, %"
			 PRIu32 " settings, %zu bytes", p->name, p->steps,
			 p->settings, p->len);
		fn(dev->name, line, false, arg);
	}
}

static void trace_line(const char *device, const char *line, bool is_reply, void *arg)
{
	(void)device;
	base_trace(arg, line, is_reply);
}

static void ring_submit(struct driver_base *h)
{
	struct ring *ring = (struct ring *)h;

	if (h->drv.trace) {
		ring_explain(&h->drv, h->batch, trace_line, h);
	}
	ring->tries = 0;
	uv_timer_start(&ring->h.timer, on_submit, 0, 0);
}

/* ---- relock ---------------------------------------------------------------- */

/* Its own programs, loaded again: only what is not as they want it changes. */
static void on_relock(uv_timer_t *work)
{
	struct ring *ring = work->data;
	struct err err = { 0 };
	int rc = netns_ring_open(ring->netns, &ring->g, &ring->r, &err);

	if (comes_again(ring, rc, on_relock)) {
		return;
	}
	if (rc) {
		base_mark(&ring->h, 0, 1, DRV_SKIPPED, DRV_SENT, DRV_ERR_TRANSPORT, NULL, err.msg);
		base_submit_done(&ring->h, rc, &err);
		return;
	}
	rc = netns_ring_load(ring->r, netns_ring_programs(ring->r), &err);
	if (rc == 0) {
		rc = netns_ring_activate(ring->r, &err);
	}
	finish(ring, rc, &err);
}

static void ring_relock(struct driver_base *h)
{
	struct ring *ring = (struct ring *)h;

	base_trace(h, "rules of the programs' present steps", false);
	ring->tries = 0;
	uv_timer_start(&h->timer, on_relock, 0, 0);
}

/* ---- life ------------------------------------------------------------------ */

static void ring_fini(struct driver_base *h)
{
	netns_ring_close(((struct ring *)h)->r);
}

static int ring_init(struct driver_base *h, const struct drv_config *cfg,
		     struct tcp_conf *conf, struct err *err)
{
	struct ring *ring = (struct ring *)h;
	int rc = base_netns(h->drv.cls, cfg, ring->netns, sizeof(ring->netns), err);

	(void)conf;
	ring->g = (struct ring_geometry){
		.nodes = (uint16_t)cfg->n_in, .channels = (uint16_t)cfg->n_out,
		.fibres = (uint8_t)cfg->ring_fibres };
	if (rc) {
		return rc;
	}
	return base_option_int(h->drv.cls, cfg, "switch_ms", 0, 600000, &ring->switch_ms, err);
}

static const struct base_ops ops = {
	.init = ring_init,
	.snapshot = ring_snapshot,
	.submit = ring_submit,
	.recover = ring_relock,
	.fini = ring_fini,
};

const struct drv_class drv_linux_ring = {
	.name = "linux-ring",
	.summary = "a network namespace as a ring: real packets, no light",
	.kind = DRV_RING,
	.options = options,
	BASE_CLASS(struct ring, &ops),
	.explain = ring_explain,
	.recoveries = DRV_RELOCK,
	.recover = base_recover,
};
