/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of an open device, the same for all drivers.
 *
 * What a caller asks for is only noted, and the `tick` timer started with no
 * delay; the driver itself begins in on_tick(), in a later turn of the loop. So
 * no callback can come from inside a call. end() makes the handle idle before
 * it calls back, so that a callback may begin the next operation. Between the
 * two the outcomes say what is true if the handle is closed now: SKIPPED until
 * an item is sent, UNKNOWN until it is answered.
 *
 * Closing goes down a chain, as libuv lets go of nothing at once: the operation
 * under way is answered, then ops.stop, the driver's timer, the session, the
 * tick, and with the last of them the memory.
 */
#include "drivers/core/driver_base.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define DEFAULT_TIMEOUT_MS 5000

static void take_config(struct driver_base *h, const struct drv_config *cfg)
{
	snprintf(h->drv.name, sizeof(h->drv.name), "%s", cfg->name);
	snprintf(h->address, sizeof(h->address), "%s", cfg->address ? cfg->address : "");
	h->n_in = cfg->n_in;
	h->n_out = cfg->any_to_any ? cfg->n_in : cfg->n_out;
	h->any_to_any = cfg->any_to_any;
	h->ring_fibres = cfg->ring_fibres;
	h->timeout_ms = cfg->timeout_ms;
	h->fence = cfg->fence;
}

static void on_lost(int rc, const struct err *err, bool sent, void *arg)
{
	base_lost(arg, rc, err, sent);
}

static int open_session(struct driver_base *h, uv_loop_t *loop, const struct drv_config *cfg,
			struct tcp_conf *conf, struct err *err)
{
	struct ssh_conf ssh = { 0 };
	bool use_ssh;
	int rc = base_option_ssh(h->drv.cls, cfg, &ssh, &use_ssh, err);

	if (rc) {
		return rc;
	}
	conf->ssh = use_ssh ? &ssh : NULL;
	conf->device = h->drv.name;
	conf->address = h->address;
	conf->arg = h;
	conf->window = conf->window ? conf->window : 1;
	conf->failed = conf->failed ? conf->failed : on_lost;
	if (cfg->timeout_ms) {
		conf->timeout_ms = cfg->timeout_ms;
	} else if (!conf->timeout_ms) {
		conf->timeout_ms = DEFAULT_TIMEOUT_MS;
	}
	return tcp_new(loop, conf, &h->session, err);
}

/* Everything that can fail, in an order that leaves nothing for the loop to
 * close when something does: the session is last. */
static int prepare(struct driver_base *h, uv_loop_t *loop,
		   const struct drv_config *cfg, struct err *err)
{
	struct tcp_conf conf = { 0 };
	int rc = base_check(h->drv.cls, cfg, err);

	if (rc == 0) {
		take_config(h, cfg);
		conf = h->ops->session ? *h->ops->session : conf;
		rc = h->ops->init(h, cfg, &conf, err);
	}
	return rc || !h->ops->session ? rc : open_session(h, loop, cfg, &conf, err);
}

static void free_handle(struct driver_base *h)
{
	if (h->ops->fini) {
		h->ops->fini(h);
	}
	free(h);
}

int base_open(const struct drv_class *cls, uv_loop_t *loop,
	      const struct drv_config *cfg, struct drv **out, struct err *err)
{
	struct driver_base *h = x_new(1, cls->size);
	int rc;

	assert(cls->size >= sizeof(*h));
	h->drv.cls = cls;
	h->ops = cls->ops;
	rc = prepare(h, loop, cfg, err);
	if (rc) {
		free_handle(h);
		return rc;
	}
	h->drv.loop = loop;
	uv_timer_init(loop, &h->tick);
	uv_timer_init(loop, &h->timer);
	h->tick.data = h->timer.data = h;
	*out = &h->drv;
	return 0;
}

static void on_stopped(uv_handle_t *tick)
{
	struct driver_base *h = tick->data;
	drv_close_cb cb = h->close_cb;
	void *arg = h->close_arg;

	free_handle(h);
	if (cb) {
		cb(arg);
	}
}

static void on_session_closed(void *arg)
{
	struct driver_base *h = arg;

	uv_close((uv_handle_t *)&h->tick, on_stopped);
}

static void on_timer_closed(uv_handle_t *timer)
{
	struct driver_base *h = timer->data;

	if (h->session) {
		tcp_close(h->session, on_session_closed, h);
	} else {
		on_session_closed(h);
	}
}

void base_stopped(struct driver_base *h)
{
	uv_close((uv_handle_t *)&h->timer, on_timer_closed);
}

/* A batch that is not for this kind of device is the caller's mistake, but
 * it may come from a file, so it is answered. */
static int check_batch(struct driver_base *h, struct err *err)
{
	bool ring = h->drv.cls->kind == DRV_RING;

	if (ring != (h->batch->programs != NULL)) {
		return err_set(err, WEFT_EINVAL, "%s: %s", h->drv.name,
			       ring ? "a ring takes programs, not items" :
			       "a switch takes items, not programs");
	}
	return 0;
}

static void make_outcomes(struct driver_base *h)
{
	bool one = h->op != BASE_SUBMIT || h->drv.cls->kind == DRV_RING;

	h->n_outcomes = one ? 1 : h->batch->n_items;
	h->outcomes = x_new(h->n_outcomes, sizeof(*h->outcomes));
	base_mark(h, 0, h->n_outcomes, DRV_SKIPPED, DRV_SENT, DRV_ERR_NONE, NULL, "not sent");
}

static void cancel_operation(struct driver_base *h)
{
	struct err err = { 0 };

	err_set(&err, WEFT_ECANCELED, "%s: the device was closed", h->drv.name);
	if (h->op == BASE_SNAPSHOT) {
		base_snapshot_done(h, WEFT_ECANCELED, &err);
	} else if (base_acts(h)) {
		if (!h->outcomes) {
			/* It has not begun; its items are answered all the
			 * same. */
			make_outcomes(h);
		}
		base_submit_done(h, WEFT_ECANCELED, &err);
	}
}

static void start_acting(struct driver_base *h)
{
	struct err err = { 0 };
	int rc = h->op == BASE_SUBMIT ? check_batch(h, &err) : 0;

	/* A batch that is for another kind of device has no outcomes. */
	if (rc) {
		base_submit_done(h, rc, &err);
		return;
	}
	make_outcomes(h);
	if (h->op == BASE_SUBMIT) {
		h->ops->submit(h);
	} else if (h->op == BASE_PORT) {
		h->ops->port_set(h);
	} else {
		h->ops->recover(h);
	}
}

static void on_tick(uv_timer_t *tick)
{
	struct driver_base *h = tick->data;

	if (h->closing) {
		cancel_operation(h);
		if (h->ops->stop) {
			h->ops->stop(h);
		} else {
			base_stopped(h);
		}
	} else if (h->op == BASE_SNAPSHOT) {
		h->ops->snapshot(h);
	} else if (base_acts(h)) {
		start_acting(h);
	}
}

static void begin(struct driver_base *h, enum base_op op)
{
	assert(!h->drv.busy && !h->closing);
	h->drv.busy = true;
	h->op = op;
	h->begun_ns = clk_now_ns();
	h->asked = false;
	uv_timer_start(&h->tick, on_tick, 0, 0);
}

void base_close(struct drv *dev, drv_close_cb cb, void *arg)
{
	struct driver_base *h = (struct driver_base *)dev;

	assert(!h->closing);
	h->closing = true;
	h->close_cb = cb;
	h->close_arg = arg;
	uv_timer_start(&h->tick, on_tick, 0, 0);
}

void base_snapshot(struct drv *dev, drv_snapshot_cb cb, void *arg)
{
	struct driver_base *h = (struct driver_base *)dev;

	begin(h, BASE_SNAPSHOT);
	h->snapshot_cb = cb;
	h->arg = arg;
}

void base_submit(struct drv *dev, const struct drv_batch *batch, drv_submit_cb cb, void *arg)
{
	struct driver_base *h = (struct driver_base *)dev;

	begin(h, BASE_SUBMIT);
	h->batch = batch;
	h->submit_cb = cb;
	h->arg = arg;
}

void base_port_set(struct drv *dev, struct drv_port_id port, bool enable,
		   drv_submit_cb cb, void *arg)
{
	struct driver_base *h = (struct driver_base *)dev;

	begin(h, BASE_PORT);
	h->port = port;
	h->port.is_out = port.is_out && !h->any_to_any;	/* one side */
	h->enable = enable;
	h->submit_cb = cb;
	h->arg = arg;
}

void base_recover(struct drv *dev, enum drv_recovery what, drv_submit_cb cb, void *arg)
{
	struct driver_base *h = (struct driver_base *)dev;

	begin(h, BASE_RECOVER);
	h->recovery = what;
	h->submit_cb = cb;
	h->arg = arg;
}

void base_cancel_submit(struct drv *dev)
{
	struct driver_base *h = (struct driver_base *)dev;

	h->cancelled = h->op == BASE_SUBMIT;
}

bool base_acts(const struct driver_base *h)
{
	return h->op != BASE_IDLE && h->op != BASE_SNAPSHOT;
}

static void end(struct driver_base *h, int rc)
{
	struct drv_use *use = &h->drv.use[h->op == BASE_SNAPSHOT
						  ? DRV_WORK_SNAPSHOT
						  : DRV_WORK_SUBMIT];

	use->n++;
	use->failed += rc != 0;
	use->ns += clk_now_ns() - h->begun_ns;
	h->op = BASE_IDLE;
	h->cancelled = false;
	h->drv.busy = false;
}

void base_snapshot_done(struct driver_base *h, int rc, const struct err *err)
{
	struct drv_snapshot snap = h->snap;
	struct err none = { 0 };

	assert(h->op == BASE_SNAPSHOT);
	memset(&h->snap, 0, sizeof(h->snap));
	end(h, rc);
	if (rc == 0 && snap.n_xcs) {
		qsort(snap.xcs, snap.n_xcs, sizeof(*snap.xcs), optics_xc_cmp);
	}
	h->snapshot_cb(&h->drv, rc, rc ? NULL : &snap, err ? err : &none, h->arg);
	drv_snapshot_fini(&snap);
}

/* The first outcome that is not DONE gives the operation's error. */
static int verdict(const struct driver_base *h, struct err *err)
{
	char item[24] = "";

	for (int i = 0; i < h->n_outcomes; i++) {
		const struct drv_outcome *o = &h->outcomes[i];

		if (o->result == DRV_DONE) {
			continue;
		}
		if (h->op == BASE_SUBMIT) {
			snprintf(item, sizeof(item), "item %d ", i);
		}
		return err_set(err, h->cancelled && o->result == DRV_SKIPPED ?
			       WEFT_ECANCELED : WEFT_EDEVICE, "%s: %s%s: %s%s%s",
			       h->drv.name, item, drv_result_name(o->result),
			       o->code, o->code[0] ? " " : "", o->text);
	}
	return 0;
}

void base_submit_done(struct driver_base *h, int rc, const struct err *err)
{
	struct drv_outcome *outcomes = h->outcomes;
	int n = h->n_outcomes;
	struct err own = { 0 };

	assert(base_acts(h));
	if (rc == 0) {
		rc = verdict(h, &own);
		err = &own;
	}
	h->outcomes = NULL;
	h->n_outcomes = 0;
	h->batch = NULL;
	drv_snapshot_fini(&h->snap);	/* what was read back on the way */
	end(h, rc);
	h->submit_cb(&h->drv, rc, n, outcomes, err ? err : &own, h->arg);
	free(outcomes);
}

void base_end(struct driver_base *h, int rc, const struct err *err)
{
	if (h->op == BASE_SNAPSHOT) {
		if (rc) {
			drv_snapshot_fini(&h->snap);
		}
		base_snapshot_done(h, rc, err);
	} else if (base_acts(h)) {
		base_submit_done(h, rc, err);
	}
}

void base_mark(struct driver_base *h, int first, int last, enum drv_result r, enum drv_evidence e,
	       enum drv_class_of_error c, const char *code, const char *text)
{
	for (int i = first; i < last; i++) {
		struct drv_outcome *o = &h->outcomes[i];

		o->result = r;
		o->evidence = e;
		o->error = c;
		snprintf(o->code, sizeof(o->code), "%s", code ? code : "");
		snprintf(o->text, sizeof(o->text), "%s", text ? text : "");
	}
}

void base_settle_unknown(struct driver_base *h, enum drv_result r, const char *text)
{
	for (int i = 0; i < h->n_outcomes; i++) {
		if (h->outcomes[i].result == DRV_UNKNOWN) {
			base_mark(h, i, i + 1, r, DRV_SENT, DRV_ERR_TRANSPORT, NULL, text);
		}
	}
}

void base_trace(struct driver_base *h, const char *line, bool is_reply)
{
	if (h->drv.trace) {
		h->drv.trace(h->drv.name, line, is_reply, h->drv.trace_arg);
	}
}

void base_event(struct driver_base *h, const struct drv_event *ev)
{
	if (h->drv.event && !h->closing) {
		h->drv.event(&h->drv, ev, h->drv.event_arg);
	}
}

/* FNV-1a. */
static uint64_t hash_text(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++) {
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	}
	return hash;
}

static bool is_new_note(struct driver_base *h, const char *text)
{
	uint64_t hash = hash_text(text);

	for (int i = 0; i < h->n_notes; i++) {
		if (h->notes[i] == hash) {
			return false;
		}
	}
	if (h->n_notes == DRV_MAX_NOTES) {
		return false;
	}
	h->notes[h->n_notes++] = hash;
	return true;
}

void base_note(struct driver_base *h, const char *fmt, ...)
{
	struct drv_event ev = { .kind = DRV_EVENT_NOTE };
	char text[2 * DRV_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!is_new_note(h, text)) {
		return;
	}
	if (h->n_notes == DRV_MAX_NOTES) {
		snprintf(text, sizeof(text), "more lines are passed over; a trace shows them");
	}
	if (!h->drv.event) {
		log_warn("drivers", "%s: %s", h->drv.name, text);
	}
	ev.text = text;
	base_event(h, &ev);
}

static void trace_explained(const char *device, const char *line, bool is_reply, void *arg)
{
	(void)device;
	base_trace(arg, line, is_reply);
}

void base_trace_batch(struct driver_base *h)
{
	if (h->drv.trace) {
		h->drv.cls->explain(&h->drv, h->batch, trace_explained, h);
	}
}

/* ---- what was read -------------------------------------------------------- */

void base_identify(struct driver_base *h, const char *words)
{
	char *identity = h->snap.identity;
	size_t n = strlen(identity), size = sizeof(h->snap.identity);

	snprintf(identity + n, size - n, "%s%s", n ? "," : "", words);
}

int base_check_size(const struct driver_base *h, int n_in, int n_out, struct err *err)
{
	if (n_in == h->n_in && n_out == h->n_out) {
		return 0;
	}
	return base_wrong_size(h, n_in, n_out, h->any_to_any, err);
}

int base_wrong_size(const struct driver_base *h, int n_in, int n_out, bool any_to_any,
		    struct err *err)
{
	return err_set(err, WEFT_EVERIFY,
		       "the device is %dx%d%s, the fabric says %dx%d%s", n_in,
		       n_out, any_to_any ? " any-to-any" : "", h->n_in, h->n_out,
		       h->any_to_any ? " any-to-any" : "");
}

void base_judge_port(struct driver_base *h, const char *code, const char *text)
{
	bool enabled = true, failed = false;

	for (int i = 0; i < h->snap.n_ports; i++) {
		const struct drv_port *p = &h->snap.ports[i];

		if (p->is_out == h->port.is_out && p->index == h->port.index) {
			enabled = p->enabled;
			failed = p->failed;
		}
	}
	if (enabled == h->enable && !failed) {
		base_mark(h, 0, 1, DRV_DONE, DRV_READ_BACK, DRV_ERR_NONE, NULL, NULL);
	} else {
		if (!text || !text[0]) {
			text = failed ? "the port has failed" : "the port is as it was";
		}
		base_mark(h, 0, 1, DRV_REFUSED, DRV_READ_BACK, DRV_ERR_STATE, code, text);
	}
	base_end(h, 0, NULL);
}

/* ---- over a session ---------------------------------------------------------- */

void base_misunderstood(struct driver_base *h, int rc, struct err *err)
{
	err_wrap(err, "%s", h->drv.name);
	tcp_reset(h->session);
	base_settle_unknown(h, DRV_UNKNOWN, err->msg);
	base_end(h, rc, err);
}

void base_lost(struct driver_base *h, int rc, const struct err *err, bool sent)
{
	base_settle_unknown(h, sent ? DRV_UNKNOWN : DRV_SKIPPED, err->msg);
	base_end(h, rc, err);
}

void base_ask(struct driver_base *h, struct buf *b, uint64_t tag)
{
	/* Every operation begins with a question that changes nothing. */
	(h->asked ? tcp_ask : tcp_ask_repeatable)(h->session, b->data, b->len, tag);
	h->asked = true;
	buf_fini(b);
}

void base_expect(struct driver_base *h, uint64_t tag)
{
	tcp_expect(h->session, tag);
}

struct drv_port *base_port(struct driver_base *h, bool is_out, int index, struct err *err)
{
	struct drv_snapshot *snap = &h->snap;

	for (int i = 0; i < snap->n_ports; i++) {
		if (snap->ports[i].is_out == is_out && snap->ports[i].index == index) {
			return &snap->ports[i];
		}
	}
	if (index >= (is_out ? h->n_out : h->n_in)) {
		err_set(err, WEFT_EVERIFY, "the device reports %s %d, the "
			"fabric says %dx%d", is_out ? "out" : "in", index,
			h->n_in, h->n_out);
		return NULL;
	}
	if (!snap->ports) {
		snap->ports = x_new((size_t)h->n_in + (size_t)h->n_out, sizeof(*snap->ports));
	}
	snap->ports[snap->n_ports] = (struct drv_port){
		.is_out = is_out, .index = index, .enabled = true };
	return &snap->ports[snap->n_ports++];
}
