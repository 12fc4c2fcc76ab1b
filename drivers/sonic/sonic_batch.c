/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sonic-ocs`: a batch is carried out, and ports are set.
 *
 * Lists of circuits go into one `config` command. When such a list is refused
 * the device does not report which item failed, so its items are sent again
 * one by one. A circuit that is only in the hardware (stale) stands in the way
 * without being configured: it is configured and deleted first, in the same
 * command line, as the device knows no other way to end it. A CLI that is made
 * from YANG takes one circuit a command, says nothing when it took it, and would
 * take two of one port: what makes way is deleted by name, in the same line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/parse.h"
#include "drivers/sonic/sonic.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"

/* ---- submit: commands ---------------------------------------------------- */

static void put_pair(struct buf *b, bool first, struct optics_xc xc)
{
	buf_printf(b, "%s%dA-%dB", first ? "" : ",", xc.in + 1, xc.out + 1);
}

static bool shares_port(struct optics_xc a, struct optics_xc b)
{
	return a.in == b.in || a.out == b.out;
}

static void put_config(const struct sonic *s, bool add, struct buf *b)
{
	buf_printf(b, "%s%sconfig ocs%scross-connect %s ", s->sudo, s->sudo[0] ? " " : "",
		   s->yang ? "-" : " ", add ? "add" : "delete");
}

/* A command for one circuit. */
static void put_one(const struct sonic *s, bool add, struct optics_xc xc, struct buf *b)
{
	put_config(s, add, b);
	put_pair(b, true, xc);
	if (add && s->yang) {
		buf_printf(b, " --a-side %dA --b-side %dB", xc.in + 1, xc.out + 1);
	} else if (add) {
		buf_str(b, " update");
	}
}

/* A stale circuit that the items first..end-1 run into: by name when they
 * delete, by a port when they add. */
static bool conflicting(const struct drv_batch *batch, int first, int end, struct optics_xc xc)
{
	bool way = false;

	for (int i = first; i < end; i++) {
		const struct drv_item *item = &batch->items[i];
		bool same = optics_xc_cmp(&item->xc, &xc) == 0;

		if (same) {
			return item->op == DRV_DEL;
		}
		way = way || (item->op == DRV_ADD && shares_port(item->xc, xc));
	}
	return way;
}

/* Stale circuits first become configured ones; `delete` of them is part of
 * the command, or comes here before an add. */
static void put_stale(const struct sonic *s, const struct drv_batch *batch,
		      int first, int end, struct buf *b)
{
	bool add = batch->items[first].op == DRV_ADD;

	for (size_t i = 0; i < s->xcs.n; i++) {
		const struct sonic_xc *x = &s->xcs.v[i];

		if (x->configured || !conflicting(batch, first, end, x->xc)) {
			continue;
		}
		put_one(s, true, x->xc, b);
		buf_str(b, " && ");
		if (add) {
			put_one(s, false, x->xc, b);
			buf_str(b, " && ");
		}
	}
}

/* What holds a port of the circuit is deleted; a stale one was. */
static void put_displaced(const struct sonic *s, struct optics_xc xc, struct buf *b)
{
	const int ports[] = { xc_map_flat_in(&s->map, xc.in), xc_map_flat_out(&s->map, xc.out) };

	for (int i = 0; i < 2; i++) {
		const int peer = s->map.peer[ports[i]];
		const struct sonic_xc *x;
		struct optics_xc other;

		if (peer >= 0 && xc_map_of(&s->map, i ? peer : xc.in, &other) &&
		    (!(x = sonic_find_xc(s, other)) || x->configured)) {
			put_one(s, false, other, b);
			buf_str(b, " && ");
		}
	}
}

static void put_command(const struct sonic *s, const struct drv_batch *batch,
			int first, int end, struct buf *b)
{
	bool add = batch->items[first].op == DRV_ADD;

	put_stale(s, batch, first, end, b);
	if (s->yang) {
		if (add && batch->mode == DRV_UPDATE) {
			put_displaced(s, batch->items[first].xc, b);
		}
		put_one(s, add, batch->items[first].xc, b);
		return;
	}
	put_config(s, add, b);
	for (int i = first; i < end; i++) {
		put_pair(b, i == first, batch->items[i].xc);
	}
	buf_str(b, !add ? "" : batch->mode == DRV_UPDATE ? " update" : " safe");
}

static void next_command(struct sonic *s);

/* ---- submit: verdicts ---------------------------------------------------- */

static enum drv_class_of_error class_of(const char *text)
{
	return strcasestr(text, "invalid") || strcasestr(text, "no such") ?
	       DRV_ERR_CONFIGURATION : DRV_ERR_STATE;
}

/* What the tables say about an item that was confirmed. */
static void verify_item(struct sonic *s, int i)
{
	const struct drv_item *item = &s->h.batch->items[i];
	const struct sonic_xc *x = sonic_find_xc(s, item->xc);
	struct drv_outcome *o = &s->h.outcomes[i];

	if (o->result != DRV_DONE) {
		return;
	}
	if (item->op == DRV_DEL) {
		o->evidence = x ? o->evidence : DRV_READ_BACK;
	} else if (x && x->state == DRV_TUNED) {
		o->evidence = DRV_READ_BACK;
	} else if (x) {
		base_mark(&s->h, i, i + 1, DRV_DONE, x->state == DRV_FAILED ?
			  DRV_READ_BACK : DRV_ACKED, DRV_ERR_TRAFFIC, NULL,
			  x->seen ? drv_state_name(x->state) :
			  "configured, and not in the hardware's table");
	}
}

static void verify_later(struct sonic *s);

/* The tables do not show item i yet as they will. In a CLI made from YANG the hardware's
 * comes a while after the configuration, and a circuit is `disabled` until it is tuned. */
static bool is_pending(const struct sonic *s, int i)
{
	const struct drv_item *item = &s->h.batch->items[i];
	const struct sonic_xc *x = sonic_find_xc(s, item->xc);

	return s->h.outcomes[i].result == DRV_DONE && x &&
	       !batch_overtaken(s->h.batch, i, false) &&
	       (item->op == DRV_DEL ? s->yang : x->state == DRV_TUNING ||
		(s->yang && x->state == DRV_BLOCKED));
}

static void verify_items(struct sonic *s)
{
	for (int i = 0; i < s->h.n_outcomes; i++) {
		if (is_pending(s, i) && clk_now_ns() < s->until_ns) {
			verify_later(s);
			return;
		}
	}
	for (int i = 0; i < s->h.n_outcomes; i++) {
		verify_item(s, i);
	}
	base_end(&s->h, 0, NULL);
}

static void on_verify(uv_timer_t *t)
{
	sonic_start_reads(t->data, SONIC_READ_MAP, verify_items);
}

static void verify_later(struct sonic *s)
{
	uv_timer_start(&s->h.timer, on_verify, (uint64_t)s->settle_ms, 0);
}

static void end_batch(struct sonic *s)
{
	if (s->any_change) {
		s->until_ns = clk_now_ns() + s->tune_ms * 1000000;
		verify_later(s);
	} else {
		base_end(&s->h, 0, NULL);
	}
}

/* A stale circuit that is asked for is not as asked: it goes to the
 * configuration like any other. */
static void forget_wanted_stale(struct sonic *s)
{
	for (int i = 0; i < s->h.batch->n_items; i++) {
		const struct drv_item *item = &s->h.batch->items[i];
		const struct sonic_xc *x = sonic_find_xc(s, item->xc);

		if (x && !x->configured && item->op == DRV_ADD && xc_map_has(&s->map, x->xc)) {
			xc_map_release(&s->map, x->xc.in);
		}
	}
}

/* A list is refused as a whole for one item's sake: from here on each goes
 * alone, and the one in the wrong is found. */
static void one_by_one(struct sonic *s)
{
	base_mark(&s->h, s->batch.first, s->batch.end, DRV_SKIPPED, DRV_SENT,
		  DRV_ERR_NONE, NULL, "not sent");
	s->batch.end = s->batch.first;
	s->batch.chunk = 1;
	forget_wanted_stale(s);
	next_command(s);
}

static void after_failure(struct sonic *s)
{
	if (s->batch.end - s->batch.first > 1) {
		one_by_one(s);
		return;
	}
	if (batch_read_back(&s->batch, class_of(s->text), s->code, s->text)) {
		next_command(s);
	} else {
		end_batch(s);
	}
}

static void on_settled(uv_timer_t *t)
{
	sonic_start_reads(t->data, SONIC_READ_MAP, after_failure);
}

/* Each command takes such a device seconds. */
static void report_progress(struct sonic *s)
{
	const int done = s->batch.end, total = s->h.batch->n_items;
	char text[64];
	struct drv_event ev = { .kind = DRV_EVENT_PROGRESS, .done = done, .total = total,
				.text = text };

	ev.eta_ms = (clk_now_ns() - s->h.begun_ns) / 1000000 * (total - done) / done;
	snprintf(text, sizeof(text), "%d of %d circuits are set", done, total);
	base_event(&s->h, &ev);
}

static void on_set(struct sonic *s, char *text, int status)
{
	if (status == 0 && (s->yang || strstr(text, "succeeded"))) {
		batch_done(&s->batch);
		if (s->yang) {
			report_progress(s);
		}
		next_command(s);
		return;
	}
	snprintf(s->code, sizeof(s->code), "status %d", status);
	parse_first_line(text, s->text, sizeof(s->text));
	uv_timer_start(&s->h.timer, on_settled, (uint64_t)s->settle_ms, 0);
}

static void send_command(struct sonic *s)
{
	const struct drv_batch *batch = s->h.batch;
	struct buf b = { 0 };

	s->any_change = s->any_change || s->yang || batch->items[s->batch.first].op == DRV_ADD;
	put_command(s, batch, s->batch.first, s->batch.end, &b);
	for (size_t i = 0; i < s->xcs.n; i++) {
		/* Cleared once; its ports may be in use afterwards. */
		s->xcs.v[i].configured = s->xcs.v[i].configured ||
			conflicting(batch, s->batch.first, s->batch.end,
				     s->xcs.v[i].xc);
	}
	sonic_ask(s, buf_cstr(&b), on_set);
	buf_fini(&b);
}

static void next_command(struct sonic *s)
{
	if (!s->h.cancelled && batch_next(&s->batch)) {
		send_command(s);
	} else {
		end_batch(s);
	}
}

/* ---- submit -------------------------------------------------------------- */

static void clear_others(struct sonic *s);

static void on_cleared(struct sonic *s, char *text, int status)
{
	struct err err = { 0 };
	char words[DRV_TEXT_MAX];

	if (status) {
		parse_first_line(text, words, sizeof(words));
		err_set(&err, WEFT_EDEVICE, "%s: status %d: %s", s->h.drv.name, status, words);
		base_end(&s->h, err.code, &err);
	} else {
		clear_others(s);
	}
}

/* Whether the circuit is configured as the batch wants it. */
static bool is_kept(const struct sonic *s, const struct sonic_xc *x)
{
	bool kept = false;

	for (int i = 0; i < s->h.batch->n_items && x->configured; i++) {
		kept = kept || optics_xc_cmp(&s->h.batch->items[i].xc, &x->xc) == 0;
	}
	return kept;
}

/* A command that ends some of what the batch has not: a list of what is configured, which comes
 * first, or one that is stale, as to configure it ends what is configured at its ports. */
static void put_clearing(struct sonic *s, struct buf *b)
{
	for (int n = 0; n < s->batch.chunk && s->clearing < s->xcs.n; s->clearing++) {
		struct sonic_xc *x = &s->xcs.v[s->clearing];
		const bool stale = !x->configured;

		if (is_kept(s, x)) {
			xc_map_connect(&s->map, x->xc);
			continue;
		}
		if (stale && n > 0) {
			return;
		}
		if (stale) {
			put_one(s, true, x->xc, b);
			buf_str(b, " && ");
		}
		if (n == 0) {
			put_config(s, false, b);
		}
		put_pair(b, n == 0, x->xc);
		n = stale ? (int)s->batch.chunk : n + 1;
		x->configured = true;
	}
}

/* REPLACE: what the batch has not goes first, so that what stays keeps its light; the device's
 * own `overwrite` would end it all. */
static void clear_others(struct sonic *s)
{
	struct buf b = { 0 };

	if (!s->h.cancelled) {
		put_clearing(s, &b);
	}
	if (b.len) {
		sonic_ask(s, buf_cstr(&b), on_cleared);
	} else {
		next_command(s);
	}
	buf_fini(&b);
}

static void begin_batch(struct sonic *s)
{
	s->batch.chunk = s->yang ? 1 : s->chunk;
	if (s->h.batch->mode != DRV_REPLACE) {
		forget_wanted_stale(s);
		next_command(s);
	} else if (batch_replace(&s->batch)) {
		/* The list is good; nothing of it is sent yet. */
		base_mark(&s->h, 0, s->h.n_outcomes, DRV_SKIPPED, DRV_SENT, DRV_ERR_NONE, NULL,
			  "not sent");
		s->batch.end = 0;
		xc_map_clear(&s->map);
		clear_others(s);
	} else {
		base_end(&s->h, 0, NULL);
	}
}

void sonic_submit(struct driver_base *h)
{
	struct sonic *s = (struct sonic *)h;

	s->batch.first = s->batch.end = 0;
	s->any_change = false;
	s->clearing = 0;
	if (h->batch->n_items == 0 && h->batch->mode != DRV_REPLACE) {
		base_end(h, 0, NULL);
	} else {
		sonic_start_reads(s, SONIC_READ_ALL, begin_batch);
	}
}

void sonic_explain(struct drv *dev, const struct drv_batch *batch, drv_trace_fn fn, void *arg)
{
	const struct sonic *s = (struct sonic *)dev;
	int end;

	if (batch->n_items == 0) {
		return;
	}
	fn(dev->name, sonic_map_command(s, 0), false, arg);
	fn(dev->name, sonic_map_command(s, 1), false, arg);
	for (int first = 0; first < batch->n_items; first = end) {
		struct buf b = { 0 };

		for (end = first + 1; end < batch->n_items; end++) {
			if (s->yang || !batch_may_join(&s->batch, batch, first, end)) {
				break;
			}
		}
		put_command(s, batch, first, end, &b);
		fn(dev->name, buf_cstr(&b), false, arg);
		buf_fini(&b);
	}
}

/* ---- a port -------------------------------------------------------------- */

/* By the table of ports, which was read again. The device forces a port's
 * light off; its circuit stays configured. */
static void judge_port(struct sonic *s)
{
	base_judge_port(&s->h, s->code, s->text);
}

static void on_port_set(struct sonic *s, char *text, int status)
{
	if (status) {
		snprintf(s->code, sizeof(s->code), "status %d", status);
		parse_first_line(text, s->text, sizeof(s->text));
	}
	drv_snapshot_fini(&s->h.snap);
	sonic_start_reads(s, SONIC_READ_ALL, judge_port);
}

static void set_port(struct sonic *s)
{
	const char side = s->h.port.is_out ? 'B' : 'A';
	const char *state = s->h.enable ? "normal" : "force_blocked";
	char line[96];

	base_mark(&s->h, 0, 1, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT,
		  NULL, "sent and not answered");
	snprintf(line, sizeof(line), "%s%sconfig ocs%s %d%c%s %s", s->sudo, s->sudo[0] ? " " : "",
		 s->yang ? "-port update" : " port state", s->h.port.index + 1, side,
		 s->yang ? " --config-status" : "", state);
	sonic_ask(s, line, on_port_set);
}

/* The size of the device is checked first, as before a batch. */
void sonic_port_set(struct driver_base *h)
{
	struct sonic *s = (struct sonic *)h;

	s->code[0] = s->text[0] = '\0';
	sonic_start_reads(s, SONIC_READ_ALL, set_port);
}
