/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver to begin from: `example-ocs`, an imaginary switch that speaks lines
 * of text over TCP. docs/drivers.md ("Writing a driver") has the rules;
 * tests/unit/drivers/test_example.c compiles this file and runs it.
 *
 *	we send         the switch replies
 *	ID              ID Example 8x8 serial 17
 *	MAP             MAP 1>3 2>4
 *	JOIN 1 3        OK, or ERR and why; a busy port is taken over
 *	CUT 1 3         OK, or ERR and why
 *
 * Its ports count from 1. It takes busy ports over without a word, so the map
 * is read before a batch, and SAFE mode is kept here (drivers/core/batch.h).
 * A reply "OK" is an acknowledgement; only the map is proof.
 *
 * To make a driver of your own: copy this file to drivers/FAMILY, put its class
 * into drivers/core/driver_base.h and drivers/registry.c, write an emulator, and
 * add a row to tests/unit/drivers/test_conformance.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/batch.h"

#define MAX_LINE 65536

/* What a user may set in the fabric file: options: { gap_ms: 5 }. */
static const struct drv_option_spec options[] = {
	{ "gap_ms", "least time between two commands", "0" },
	{ NULL, NULL, NULL },
};

struct example {
	struct driver_base h;	/* first: a driver_base is an example */
	int64_t gap_ms;
	struct xc_map map;	/* as last read, with our changes since */
	struct batch batch;	/* where a submit stands */
	/* What to do with the reply to the request that is out. */
	void (*next)(struct example *x, const char *reply);
};

/* ---- requests and replies ------------------------------------------------- */

static void ask(struct example *x, void (*next)(struct example *, const char *),
		const char *line)
{
	struct buf b = { 0 };

	x->next = next;
	buf_printf(&b, "%s\n", line);
	base_ask(&x->h, &b, 0);		/* frees b */
}

/* A frame as text, without its end of line; NULL when it is none. */
static char *frame_text(const uint8_t *frame, size_t len)
{
	while (len && (frame[len - 1] == '\n' || frame[len - 1] == '\r')) {
		len--;
	}
	return memchr(frame, 0, len) ? NULL : strndup((const char *)frame, len);
}

static void on_reply(const uint8_t *frame, size_t len, uint64_t tag, void *arg)
{
	struct example *x = arg;
	char *text = frame_text(frame, len);
	struct err err = { 0 };

	(void)tag;
	if (text) {
		x->next(x, text);
	} else {
		/* The session may be out of step: it ends, the operation too. */
		base_misunderstood(&x->h, err_set(&err, WEFT_EDEVICE,
				   "the reply is no text"), &err);
	}
	free(text);
}

/* ---- the map -------------------------------------------------------------- */

/* Reads "MAP 1>3 2>4". Nothing that a device says is believed unchecked. */
static int read_map(struct example *x, const char *reply, struct err *err)
{
	const char *p = reply + 3;
	int in, out, n;

	if (strncmp(reply, "MAP", 3) != 0) {
		return err_set(err, WEFT_EDEVICE, "expected MAP, got '%.40s'", reply);
	}
	xc_map_clear(&x->map);
	for (; sscanf(p, " %d>%d%n", &in, &out, &n) == 2; p += n) {
		struct optics_xc xc = { in - 1, out - 1 }, other;

		if (xc_map_check(&x->map, xc, NULL) ||
		    xc_map_conflict(&x->map, xc, &other)) {
			return err_set(err, WEFT_EDEVICE, "the map holds %d>%d, "
				       "which cannot be", in, out);
		}
		xc_map_connect(&x->map, xc);
	}
	if (*p) {
		return err_set(err, WEFT_EDEVICE, "the map is unreadable at '%.20s'", p);
	}
	return 0;
}

/* ---- snapshot: identity, then the map ------------------------------------- */

static void on_map(struct example *x, const char *reply)
{
	struct err err = { 0 };
	int rc = read_map(x, reply, &err);

	if (rc) {
		base_misunderstood(&x->h, rc, &err);
		return;
	}
	xc_map_snapshot(&x->map, &x->h.snap);
	base_snapshot_done(&x->h, 0, &err);
}

static void on_identity(struct example *x, const char *reply)
{
	struct drv_snapshot *snap = &x->h.snap;
	struct err err = { 0 };
	int n_in, n_out;

	if (sscanf(reply, "ID Example %dx%d", &n_in, &n_out) != 2) {
		base_misunderstood(&x->h, err_set(&err, WEFT_EDEVICE,
				   "it is '%.60s', no Example", reply), &err);
		return;
	}
	if (n_in != x->h.n_in || n_out != x->h.n_out) {
		base_misunderstood(&x->h, err_set(&err, WEFT_EVERIFY,
				   "the device is %dx%d, the fabric says %dx%d",
				   n_in, n_out, x->h.n_in, x->h.n_out), &err);
		return;
	}
	snprintf(snap->identity, sizeof(snap->identity), "%s", reply + 3);
	snap->caps = (struct drv_caps){
		.kind = DRV_SPACE, .numbering = DRV_SPLIT, .n_in = n_in, .n_out = n_out,
		.min_gap_us = x->gap_ms * 1000, .typ_switch_us = 20000,
	};
	ask(x, on_map, "MAP");
}

static void example_snapshot(struct driver_base *h)
{
	ask((struct example *)h, on_identity, "ID");
}

/* ---- submit: the map, then a command for each item ------------------------ */

static void put_command(const struct drv_item *item, char *line, size_t size)
{
	snprintf(line, size, "%s %d %d", item->op == DRV_ADD ? "JOIN" : "CUT",
		 item->xc.in + 1, item->xc.out + 1);
}

static void send_next(struct example *x);

static void on_done(struct example *x, const char *reply)
{
	if (strcmp(reply, "OK") == 0) {
		batch_done(&x->batch);	/* DONE, as far as it was acknowledged */
		send_next(x);
		return;
	}
	base_mark(&x->h, x->batch.first, x->batch.end, DRV_REFUSED, DRV_ACKED,
		  DRV_ERR_STATE, NULL, reply);
	base_submit_done(&x->h, 0, NULL);
}

/* The next item that is not in effect yet. It is marked UNKNOWN before it is
 * sent, so that a lost session tells the truth by itself. */
static void send_next(struct example *x)
{
	char line[64];

	if (!batch_next(&x->batch)) {
		base_submit_done(&x->h, 0, NULL);
		return;
	}
	put_command(&x->h.batch->items[x->batch.first], line, sizeof(line));
	ask(x, on_done, line);
}

static void on_map_before(struct example *x, const char *reply)
{
	struct err err = { 0 };
	int rc = read_map(x, reply, &err);

	if (rc) {
		base_misunderstood(&x->h, rc, &err);
		return;
	}
	send_next(x);
}

static void example_submit(struct driver_base *h)
{
	struct example *x = (struct example *)h;

	x->batch.first = x->batch.end = 0;
	ask(x, on_map_before, "MAP");	/* first a question that changes nothing */
}

/* What submit would send, for `weft plan --commands`. */
static void example_explain(struct drv *dev, const struct drv_batch *batch,
			    drv_trace_fn fn, void *arg)
{
	char line[64];

	fn(dev->name, "MAP", false, arg);
	for (int i = 0; i < batch->n_items; i++) {
		put_command(&batch->items[i], line, sizeof(line));
		fn(dev->name, line, false, arg);
	}
}

/* ---- life ----------------------------------------------------------------- */

static int example_init(struct driver_base *h, const struct drv_config *cfg,
			struct tcp_conf *conf, struct err *err)
{
	struct example *x = (struct example *)h;
	int rc = base_two_sides(h->drv.cls, cfg, "", err);

	if (rc) {
		return rc;
	}
	rc = base_option_int(h->drv.cls, cfg, "gap_ms", 0, 60000, &x->gap_ms, err);
	if (rc) {
		return rc;
	}
	x->batch = (struct batch){ .h = h, .map = &x->map, .chunk = 1 };
	conf->gap_us = x->gap_ms * 1000;
	xc_map_init(&x->map, DRV_SPACE, cfg->n_in, cfg->n_out, false);
	return 0;
}

static void example_fini(struct driver_base *h)
{
	xc_map_fini(&((struct example *)h)->map);
}

static const struct tcp_conf session = {
	.max_frame = MAX_LINE, .frame = tcp_frame_text, .reply = on_reply,
};

static const struct base_ops ops = {
	.session = &session, .init = example_init, .snapshot = example_snapshot,
	.submit = example_submit, .fini = example_fini,
};

extern const struct drv_class drv_example_ocs;
const struct drv_class drv_example_ocs = {
	.name = "example-ocs",
	.summary = "a switch to begin from, text over TCP",
	.kind = DRV_SPACE,
	.options = options,
	BASE_CLASS(struct example, &ops),
	.explain = example_explain,
};
