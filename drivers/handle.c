/* What all drivers do alike; see handle.h. */
#include "drivers/handle.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clk.h"

static const struct drv_option *find_option(const struct drv_config *cfg,
					    const char *key)
{
	for (int i = 0; i < cfg->n_options; i++) {
		if (strcmp(cfg->options[i].key, key) == 0) {
			return &cfg->options[i];
		}
	}
	return NULL;
}

static const struct drv_option_spec *find_spec(const struct drv_class *cls,
					       const char *key)
{
	const struct drv_option_spec *s = cls->options;

	while (s && s->key && strcmp(s->key, key) != 0) {
		s++;
	}
	return s && s->key ? s : NULL;
}

static int unknown_option(const struct drv_class *cls, const char *key,
			  struct err *err)
{
	char known[ERR_FILE_MAX] = "";
	size_t len = 0;

	for (const struct drv_option_spec *s = cls->options;
	     s && s->key && len < sizeof(known); s++) {
		len += snprintf(known + len, sizeof(known) - len, "%s%s",
				len ? ", " : "", s->key);
	}
	err_set(err, WEFT_EINVAL, "driver %s has no option '%s'", cls->name,
		key);
	err_hint(err, "options: %s", known[0] ? known : "none");
	return WEFT_EINVAL;
}

static int check_options(const struct drv_class *cls,
			 const struct drv_config *cfg, struct err *err)
{
	for (int i = 0; i < cfg->n_options; i++) {
		const char *key = cfg->options[i].key;

		if (!find_spec(cls, key)) {
			return unknown_option(cls, key, err);
		}
		if (find_option(cfg, key) != &cfg->options[i]) {
			return err_set(err, WEFT_EINVAL,
				       "option '%s' is given twice", key);
		}
	}
	return 0;
}

const char *handle_option(const struct drv_class *cls,
			  const struct drv_config *cfg, const char *key)
{
	const struct drv_option *o = find_option(cfg, key);

	return o ? o->value : find_spec(cls, key)->def;
}

int handle_option_int(const struct drv_class *cls,
		      const struct drv_config *cfg, const char *key,
		      int64_t min, int64_t max, int64_t *out, struct err *err)
{
	const char *text = handle_option(cls, cfg, key);
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 10);
	if (errno || end == text || *end || *out < min || *out > max) {
		return err_set(err, WEFT_EINVAL,
			       "option %s=%s: expected a whole number from "
			       "%lld to %lld", key, text, (long long)min,
			       (long long)max);
	}
	return 0;
}

static int check_sizes(const struct drv_class *cls,
		       const struct drv_config *cfg, struct err *err)
{
	bool ring = cls->kind == DRV_RING;
	int max = ring ? UINT16_MAX : DRV_MAX_PORTS;
	int least_out = cfg->any_to_any ? 0 : 1;

	if (cfg->n_in < 1 || cfg->n_in > max || cfg->n_out < least_out ||
	    cfg->n_out > max) {
		return err_set(err, WEFT_EINVAL,
			       "size %dx%d: %s must be from 1 to %d",
			       cfg->n_in, cfg->n_out,
			       ring ? "nodes and channels" : "ports a side",
			       max);
	}
	if (ring && (cfg->ring_fibres < 1 || cfg->ring_fibres > 255)) {
		return err_set(err, WEFT_EINVAL,
			       "%d fibres per direction: must be from 1 to 255",
			       cfg->ring_fibres);
	}
	if (cfg->any_to_any && cfg->n_out && cfg->n_out != cfg->n_in) {
		return err_set(err, WEFT_EINVAL,
			       "size %dx%d: an any-to-any switch has one side",
			       cfg->n_in, cfg->n_out);
	}
	return 0;
}

int handle_check(const struct drv_class *cls, const struct drv_config *cfg,
		 struct err *err)
{
	int rc = check_options(cls, cfg, err);

	if (rc == 0) {
		rc = check_sizes(cls, cfg, err);
	}
	if (rc) {
		return rc;
	}
	if (strlen(cfg->name) >= DRV_NAME_MAX) {
		return err_set(err, WEFT_EINVAL,
			       "device name is over %d characters",
			       DRV_NAME_MAX - 1);
	}
	if (cfg->address && strlen(cfg->address) >= DRV_ADDRESS_MAX) {
		return err_set(err, WEFT_EINVAL,
			       "address is over %d characters",
			       DRV_ADDRESS_MAX - 1);
	}
	if (cfg->timeout_ms < 0 || cfg->timeout_ms > 3600 * 1000) {
		return err_set(err, WEFT_EINVAL,
			       "time-out must be from 0 to one hour");
	}
	return 0;
}

void handle_init(struct handle *h, const struct drv_class *cls,
		 const struct handle_ops *ops, uv_loop_t *loop,
		 const struct drv_config *cfg)
{
	h->drv.cls = cls;
	h->drv.loop = loop;
	snprintf(h->drv.name, sizeof(h->drv.name), "%s", cfg->name);
	snprintf(h->address, sizeof(h->address), "%s",
		 cfg->address ? cfg->address : "");
	h->ops = ops;
	h->n_in = cfg->n_in;
	h->n_out = cfg->any_to_any ? cfg->n_in : cfg->n_out;
	h->any_to_any = cfg->any_to_any;
	h->ring_fibres = cfg->ring_fibres;
	h->timeout_ms = cfg->timeout_ms;
	h->fence = cfg->fence;
	uv_timer_init(loop, &h->tick);
	h->tick.data = h;
}

static void on_stopped(uv_handle_t *tick)
{
	struct handle *h = tick->data;
	drv_close_cb cb = h->close_cb;
	void *arg = h->close_arg;

	h->ops->fini(h);
	free(h);
	if (cb) {
		cb(arg);
	}
}

void handle_stopped(struct handle *h)
{
	uv_close((uv_handle_t *)&h->tick, on_stopped);
}

/* A batch that is not for this kind of device is the caller's mistake, but
 * it may come from a file, so it is answered. */
static int check_batch(struct handle *h, struct err *err)
{
	bool ring = h->drv.cls->kind == DRV_RING;

	if (ring != (h->batch->programs != NULL)) {
		return err_set(err, WEFT_EINVAL, "%s: %s", h->drv.name,
			       ring ? "a ring takes programs, not items" :
			       "a switch takes items, not programs");
	}
	h->n_outcomes = ring ? 1 : h->batch->n_items;
	h->outcomes = calloc(h->n_outcomes ? h->n_outcomes : 1,
			     sizeof(*h->outcomes));
	if (!h->outcomes) {
		h->n_outcomes = 0;
		return err_nomem(err);
	}
	handle_mark(h, 0, h->n_outcomes, DRV_SKIPPED, DRV_SENT, DRV_ERR_NONE,
		    NULL, "not sent");
	return 0;
}

static void cancel_operation(struct handle *h)
{
	struct err err = { 0 };

	err_set(&err, WEFT_ECANCELED, "%s: the device was closed",
		h->drv.name);
	if (h->op == HANDLE_SNAPSHOT) {
		handle_snapshot_done(h, WEFT_ECANCELED, &err);
	} else if (h->op == HANDLE_SUBMIT) {
		if (!h->outcomes) {
			/* It has not begun; its items are answered all the
			 * same. */
			check_batch(h, NULL);
		}
		handle_submit_done(h, WEFT_ECANCELED, &err);
	}
}

static void start_submit(struct handle *h)
{
	struct err err = { 0 };
	int rc = check_batch(h, &err);

	if (rc) {
		handle_submit_done(h, rc, &err);
	} else {
		h->ops->submit(h);
	}
}

static void on_tick(uv_timer_t *tick)
{
	struct handle *h = tick->data;

	if (h->closing) {
		cancel_operation(h);
		h->ops->stop(h);
	} else if (h->op == HANDLE_SNAPSHOT) {
		h->ops->snapshot(h);
	} else if (h->op == HANDLE_SUBMIT) {
		start_submit(h);
	}
}

static void begin(struct handle *h, enum handle_op op)
{
	assert(!h->drv.busy && !h->closing);
	h->drv.busy = true;
	h->op = op;
	h->begun_ns = clk_now_ns();
	uv_timer_start(&h->tick, on_tick, 0, 0);
}

void handle_close(struct drv *dev, drv_close_cb cb, void *arg)
{
	struct handle *h = (struct handle *)dev;

	assert(!h->closing);
	h->closing = true;
	h->close_cb = cb;
	h->close_arg = arg;
	uv_timer_start(&h->tick, on_tick, 0, 0);
}

void handle_snapshot(struct drv *dev, drv_snapshot_cb cb, void *arg)
{
	struct handle *h = (struct handle *)dev;

	begin(h, HANDLE_SNAPSHOT);
	h->snapshot_cb = cb;
	h->arg = arg;
}

void handle_submit(struct drv *dev, const struct drv_batch *batch,
		   drv_submit_cb cb, void *arg)
{
	struct handle *h = (struct handle *)dev;

	begin(h, HANDLE_SUBMIT);
	h->batch = batch;
	h->submit_cb = cb;
	h->arg = arg;
}

static void end(struct handle *h, int rc)
{
	struct drv_use *use = &h->drv.use[h->op == HANDLE_SUBMIT
						  ? DRV_WORK_SUBMIT
						  : DRV_WORK_SNAPSHOT];

	use->n++;
	use->failed += rc != 0;
	use->ns += clk_now_ns() - h->begun_ns;
	h->op = HANDLE_IDLE;
	h->drv.busy = false;
}

void handle_snapshot_done(struct handle *h, int rc, const struct err *err)
{
	struct drv_snapshot snap = h->snap;
	struct err none = { 0 };

	assert(h->op == HANDLE_SNAPSHOT);
	memset(&h->snap, 0, sizeof(h->snap));
	end(h, rc);
	if (rc == 0 && snap.n_xcs) {
		qsort(snap.xcs, snap.n_xcs, sizeof(*snap.xcs), light_xc_cmp);
	}
	h->snapshot_cb(&h->drv, rc, rc ? NULL : &snap, err ? err : &none,
		       h->arg);
	drv_snapshot_fini(&snap);
}

/* The first outcome that is not DONE gives the operation's error. */
static int verdict(const struct handle *h, struct err *err)
{
	for (int i = 0; i < h->n_outcomes; i++) {
		const struct drv_outcome *o = &h->outcomes[i];

		if (o->result != DRV_DONE) {
			return err_set(err, WEFT_EDEVICE,
				       "%s: item %d %s: %s%s%s", h->drv.name,
				       i, drv_result_name(o->result), o->code,
				       o->code[0] ? " " : "", o->text);
		}
	}
	return 0;
}

void handle_submit_done(struct handle *h, int rc, const struct err *err)
{
	struct drv_outcome *outcomes = h->outcomes;
	int n = h->n_outcomes;
	struct err own = { 0 };

	assert(h->op == HANDLE_SUBMIT);
	if (rc == 0) {
		rc = verdict(h, &own);
		err = &own;
	}
	h->outcomes = NULL;
	h->n_outcomes = 0;
	h->batch = NULL;
	end(h, rc);
	h->submit_cb(&h->drv, rc, n, outcomes, err ? err : &own, h->arg);
	free(outcomes);
}

void handle_end(struct handle *h, int rc, const struct err *err)
{
	if (h->op == HANDLE_SNAPSHOT) {
		if (rc) {
			drv_snapshot_fini(&h->snap);
		}
		handle_snapshot_done(h, rc, err);
	} else if (h->op == HANDLE_SUBMIT) {
		handle_submit_done(h, rc, err);
	}
}

void handle_mark(struct handle *h, int first, int last, enum drv_result r,
		 enum drv_evidence e, enum drv_class_of_error c,
		 const char *code, const char *text)
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

void handle_settle_unknown(struct handle *h, enum drv_result r,
			   const char *text)
{
	for (int i = 0; i < h->n_outcomes; i++) {
		if (h->outcomes[i].result == DRV_UNKNOWN) {
			handle_mark(h, i, i + 1, r, DRV_SENT,
				    DRV_ERR_TRANSPORT, NULL, text);
		}
	}
}

void handle_trace(struct handle *h, const char *line, bool is_reply)
{
	if (h->drv.trace) {
		h->drv.trace(h->drv.name, line, is_reply, h->drv.trace_arg);
	}
}

int handle_netns(const struct drv_class *cls, const struct drv_config *cfg,
		 char *buf, size_t size, struct err *err)
{
	const char *fabric = handle_option(cls, cfg, "fabric");
	const char *netns = handle_option(cls, cfg, "netns");
	int n;

	if (!fabric[0] == !netns[0]) {
		return err_set(err, WEFT_EINVAL, "options: give either fabric "
			       "or netns, which name the namespace");
	}
	n = netns[0] ? snprintf(buf, size, "%s", netns) :
	    snprintf(buf, size, "weft.%s.%s", fabric, cfg->name);
	if (n >= (int)size || strchr(buf, '/')) {
		return err_set(err, WEFT_EINVAL, "option %s: no name of a "
			       "network namespace",
			       netns[0] ? "netns" : "fabric");
	}
	return 0;
}

void handle_event(struct handle *h, const struct drv_event *ev)
{
	if (h->drv.event && !h->closing) {
		h->drv.event(&h->drv, ev, h->drv.event_arg);
	}
}
