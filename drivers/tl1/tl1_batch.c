/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch on a TL1 switch, command by command: what is in the way, what is
 * another user's, what each answer means for its item. struct tl1_switch is in tl1_private.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/batch.h"
#include "drivers/tl1/tl1_private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

/* ---- a batch: its end ---------------------------------------------------- */

/* Whether the map shows an item as it was asked for, light or no light. */
static bool shows(const struct tl1_circuit *c, enum drv_op op)
{
	return op == DRV_DEL ? !c : c && c->state != DRV_TUNING;
}

static const struct tl1_circuit *circuit_of(const struct tl1_switch *s, int i)
{
	int at = tl1_find_circuit(s, s->h.batch->items[i].xc);

	return at < 0 ? NULL : &s->circuits.v[at];
}

/* What the map says about an item that was confirmed. One that the map does
 * not show stays confirmed and no more. */
static void verify_item(struct tl1_switch *s, int i)
{
	enum drv_op op = s->h.batch->items[i].op;
	struct drv_outcome *o = &s->h.outcomes[i];
	const struct tl1_circuit *c = circuit_of(s, i);

	if (o->result != DRV_DONE) {
		return;
	}
	o->evidence = shows(c, op) ? DRV_READ_BACK : DRV_ACKED;
	if (op == DRV_ADD && c && c->state == DRV_FAILED) {
		base_mark(&s->h, i, i + 1, DRV_DONE, DRV_READ_BACK,
			  DRV_ERR_TRAFFIC, NULL, c->trouble);
	} else if (op == DRV_ADD && c && c->state == DRV_BLOCKED) {
		base_mark(&s->h, i, i + 1, DRV_DONE, DRV_ACKED,
			  DRV_ERR_TRAFFIC, NULL, "entered, not activated");
	}
}

static void verify_later(struct tl1_switch *s);

/* What was confirmed may be done some time after that. */
static void verify_items(struct tl1_switch *s)
{
	for (int i = 0; i < s->h.n_outcomes; i++) {
		if (s->h.outcomes[i].result == DRV_DONE &&
		    !shows(circuit_of(s, i), s->h.batch->items[i].op) &&
		    clk_now_ns() < s->until_ns &&
		    !batch_overtaken(s->h.batch, i, s->h.any_to_any)) {
			verify_later(s);
			return;
		}
	}
	for (int i = 0; i < s->h.n_outcomes; i++) {
		verify_item(s, i);
	}
	base_end(&s->h, 0, NULL);
}

static void on_settled(uv_timer_t *t)
{
	tl1_start_reads(t->data, verify_items);
}

static void verify_later(struct tl1_switch *s)
{
	uv_timer_start(&s->h.timer, on_settled, (uint64_t)s->settle_ms, 0);
}

void tl1_end_batch(struct tl1_switch *s)
{
	if (s->dialect->verify && s->any_done) {
		s->partly_done = false;
		s->until_ns = clk_now_ns() + s->complete_ms * 1000000;
		if (s->dialect->settles) {
			verify_later(s);
		} else {
			tl1_start_reads(s, verify_items);
		}
	} else {
		base_end(&s->h, 0, NULL);
	}
}

/* ---- a batch: commands --------------------------------------------------- */

static void next_step(struct tl1_switch *s);

/* The items that the command which is out is for: one, or all of a REPLACE
 * while it clears the way. */
static void mark(struct tl1_switch *s, enum drv_result r, enum drv_evidence e,
		 enum drv_class_of_error c, const char *code, const char *text)
{
	int first = s->item < 0 ? 0 : s->item;
	int end = s->item < 0 ? s->h.n_outcomes : s->item + 1;

	base_mark(&s->h, first, end, r, e, c, code, text);
}

static void refuse(struct tl1_switch *s, enum drv_class_of_error c, const char *text)
{
	mark(s, s->partly_done ? DRV_UNKNOWN : DRV_REFUSED, DRV_READ_BACK, c, NULL, text);
	tl1_end_batch(s);
}

static void on_step_denied(struct tl1_switch *s, const struct tl1_message *m)
{
	char words[DRV_TEXT_MAX], text[2 * DRV_TEXT_MAX];
	struct err err = { 0 };

	tl1_denied_text(m, words, sizeof(words));
	snprintf(text, sizeof(text), "%s %d-%d%s%s", s->cmd.verb,
		 s->now.xc.in, s->now.xc.out, words[0] ? ": " : "", words);
	mark(s, s->partly_done ? DRV_UNKNOWN : DRV_REFUSED, DRV_ACKED,
	     tl1_code_class(m->code), m->code, text);
	if (s->h.n_outcomes == 0) {
		/* No outcome says that the map could not be cleared. */
		err_set(&err, WEFT_EDEVICE, "%s: %s %.100s", s->h.drv.name, m->code, text);
		base_end(&s->h, WEFT_EDEVICE, &err);
		return;
	}
	tl1_end_batch(s);
}

static void on_step(struct tl1_switch *s, const struct tl1_message *m)
{
	if (m->denied && strcmp(m->code, "SROU") != 0) {
		on_step_denied(s, m);
		return;
	}
	s->partly_done = true;
	s->step++;
	next_step(s);
}

static void forget_circuit(struct tl1_switch *s, struct optics_xc xc)
{
	int at = tl1_find_circuit(s, xc);

	if (at >= 0) {
		s->circuits.v[at] = s->circuits.v[--s->circuits.n];
	}
	xc_map_release(&s->map, xc_map_flat_in(&s->map, xc.in));
}

/* All commands about s->now are confirmed. */
static void finish_circuit(struct tl1_switch *s)
{
	const struct drv_item *item = s->item < 0 ? NULL : &s->h.batch->items[s->item];
	struct err err = { 0 };

	forget_circuit(s, s->now.xc);
	s->any_done = true;
	if (s->now_op == DRV_ADD) {
		s->now.state = DRV_TUNED;
		if (tl1_found_circuit(s, &s->now, &err)) {
			base_misunderstood(&s->h, err.code, &err);
			return;
		}
	}
	if (item && item->op == s->now_op) {
		mark(s, DRV_DONE, DRV_ACKED, DRV_ERR_NONE, NULL, NULL);
		s->item++;
		s->partly_done = false;
	}
	tl1_next_item(s);
}

static void next_step(struct tl1_switch *s)
{
	struct tl1_command c;

	if (!s->dialect->command(s, s->now_op, s->step, &s->now, &c)) {
		finish_circuit(s);
		return;
	}
	mark(s, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT, NULL, "not answered");
	tl1_ask(s, &c, on_step);
}

static void act_on(struct tl1_switch *s, enum drv_op op, const struct tl1_circuit *c)
{
	s->now = *c;
	s->now_op = op;
	s->step = c->state == DRV_BLOCKED;
	next_step(s);
}

/* ---- a batch: what we decide ourselves ----------------------------------- */

/* Ends a circuit, unless it is another user's. */
static void end_circuit(struct tl1_switch *s, const struct tl1_circuit *c)
{
	char text[DRV_TEXT_MAX];

	if (c->locked) {
		snprintf(text, sizeof(text), "%d-%d is locked by %s", c->xc.in,
			 c->xc.out, c->owner);
		refuse(s, DRV_ERR_STATE, text);
	} else {
		act_on(s, DRV_DEL, c);
	}
}

static void refuse_busy(struct tl1_switch *s, struct optics_xc displaced)
{
	char text[DRV_TEXT_MAX];

	batch_busy_text(&s->h.batch->items[s->item], displaced, text, sizeof(text));
	refuse(s, DRV_ERR_STATE, text);
}

/* The item is in the map already. */
static void already(struct tl1_switch *s, const struct tl1_circuit *c)
{
	bool failed = c && c->state == DRV_FAILED;

	mark(s, DRV_DONE, DRV_READ_BACK, failed ? DRV_ERR_TRAFFIC :
	     DRV_ERR_NONE, NULL, failed ? c->trouble : "as asked already");
	s->item++;
}

/* Begins what an item needs; true when that is nothing. */
static bool do_item(struct tl1_switch *s, const struct drv_item *item)
{
	struct tl1_circuit fresh = { .xc = item->xc, .state = DRV_TUNED };
	struct optics_xc displaced = { 0, 0 };
	bool cuts = xc_map_conflict(&s->map, item->xc, &displaced);
	int at = tl1_find_circuit(s, item->xc);
	const struct tl1_circuit *c = at < 0 ? NULL : &s->circuits.v[at];

	if (item->op == DRV_DEL) {
		if (c) {
			end_circuit(s, c);
		} else if (cuts) {
			refuse_busy(s, displaced);
		} else {
			already(s, NULL);
			return true;
		}
	} else if (c && c->state == DRV_BLOCKED) {
		act_on(s, DRV_ADD, c);
	} else if (c) {
		already(s, c);
		return true;
	} else if (!cuts) {
		act_on(s, DRV_ADD, &fresh);
	} else if (s->h.batch->mode == DRV_SAFE) {
		refuse_busy(s, displaced);
	} else {
		end_circuit(s, &s->circuits.v[tl1_find_circuit(s, displaced)]);
	}
	return false;
}

bool tl1_is_asked_for(const struct drv_batch *batch, struct optics_xc xc)
{
	for (int i = 0; i < batch->n_items; i++) {
		if (optics_xc_cmp(&batch->items[i].xc, &xc) == 0) {
			return true;
		}
	}
	return false;
}

void tl1_next_item(struct tl1_switch *s)
{
	const struct drv_batch *batch = s->h.batch;
	struct err err = { 0 };

	if (s->item < 0 && tl1_bulk_begin(s)) {
		return;
	}
	for (size_t i = 0; s->item < 0 && i < s->circuits.n; i++) {
		if (!tl1_is_asked_for(batch, s->circuits.v[i].xc)) {
			end_circuit(s, &s->circuits.v[i]);
			return;
		}
	}
	if (s->item < 0) {
		s->item = 0;
		s->partly_done = false;
		base_mark(&s->h, 0, s->h.n_outcomes, DRV_SKIPPED, DRV_SENT,
			  DRV_ERR_NONE, NULL, "not sent");
	}
	while (s->item < batch->n_items) {
		const struct drv_item *item = &batch->items[s->item];

		if (s->h.outcomes[s->item].result == DRV_DONE) {
			s->item++;
			continue;
		}
		if (tl1_bulk_begin(s)) {
			return;
		}
		if (xc_map_check(&s->map, item->xc, &err)) {
			refuse(s, DRV_ERR_CONFIGURATION, err.msg);
			return;
		}
		if (!do_item(s, item)) {
			return;
		}
	}
	tl1_end_batch(s);
}

/* REPLACE clears the way first, so a list that is wrong in itself must be
 * refused before. */
static bool check_replace(struct tl1_switch *s)
{
	const struct drv_batch *batch = s->h.batch;
	bool *used = x_new((size_t)s->map.n_ports, sizeof(*used));
	struct err err = { 0 };
	bool ok = true;

	for (s->item = 0; s->item < batch->n_items; s->item++) {
		const struct optics_xc xc = batch->items[s->item].xc;
		bool *in, *out;

		if (xc_map_check(&s->map, xc, &err)) {
			refuse(s, DRV_ERR_CONFIGURATION, err.msg);
			ok = false;
			break;
		}
		in = &used[xc_map_flat_in(&s->map, xc.in)];
		out = &used[xc_map_flat_out(&s->map, xc.out)];
		if (*in || *out) {
			refuse(s, DRV_ERR_CONFIGURATION, "a port of it is in the list twice");
			ok = false;
			break;
		}
		*in = *out = true;
	}
	free(used);
	return ok;
}

static void begin_batch(struct tl1_switch *s)
{
	s->item = s->h.batch->mode == DRV_REPLACE ? -1 : 0;
	tl1_next_item(s);
}

void tl1_submit(struct driver_base *h)
{
	struct tl1_switch *s = (struct tl1_switch *)h;
	bool replace = h->batch->mode == DRV_REPLACE;

	s->partly_done = s->any_done = s->no_bulk = false;
	s->bulk_cutting = s->bulk_cut = false;
	s->bulk_left = 0;
	if (h->batch->n_items == 0 && !replace) {
		base_end(&s->h, 0, NULL);
	} else if (!replace || check_replace(s)) {
		tl1_start_reads(s, begin_batch);
	}
}

struct explained {
	const struct tl1_switch *s;
	uint64_t tag;
	drv_trace_fn fn;
	void *arg;
};

static void explain_command(struct explained *x, const struct tl1_command *c)
{
	const struct tl1_switch *s = x->s;
	struct buf b = { 0 };

	tl1_put_command(&b, c, s->use_tid ? s->tid : "", ++x->tag);
	x->fn(s->h.drv.name, buf_cstr(&b), false, x->arg);
	buf_fini(&b);
}

static void explain_item(struct explained *x, const struct drv_item *item)
{
	struct tl1_circuit now = { .xc = item->xc };
	struct tl1_command c;

	for (int step = 0; x->s->dialect->command(x->s, item->op, step, &now, &c); step++) {
		explain_command(x, &c);
	}
}

void tl1_switch_explain(struct drv *dev, const struct drv_batch *batch, drv_trace_fn fn, void *arg)
{
	struct tl1_switch *s = (struct tl1_switch *)dev;
	const struct tl1_read *r = s->dialect->reads;
	struct explained x = { s, s->tag, fn, arg };
	struct tl1_command c[2];

	while (r->when != TL1_MAP) {
		r++;
	}
	r->ask(s, &c[0]);
	explain_command(&x, &c[0]);
	for (int i = 0, end; i < batch->n_items; i = end) {
		end = tl1_bulk_explain(s, batch, i, c);
		if (end > i) {
			explain_command(&x, &c[0]);
			explain_command(&x, &c[1]);
		} else {
			explain_item(&x, &batch->items[i]);
			end = i + 1;
		}
	}
}

/* ---- a port -------------------------------------------------------------- */

static void judge_port(struct tl1_switch *s)
{
	base_judge_port(&s->h, NULL, NULL);
}

static void on_set(struct tl1_switch *s, const struct tl1_message *m)
{
	char text[DRV_TEXT_MAX];

	/* Done already is done. */
	if (m->denied && strcmp(m->code, "SROU") != 0) {
		tl1_denied_text(m, text, sizeof(text));
		base_mark(&s->h, 0, 1, DRV_REFUSED, DRV_ACKED,
			  tl1_code_class(m->code), m->code, text);
		base_end(&s->h, 0, NULL);
		return;
	}
	s->partly_done = s->port_was_set = true;
	tl1_start_reads(s, judge_port);
}

static void set_port(struct tl1_switch *s)
{
	struct tl1_command c;

	s->dialect->port_command(s, s->h.port, s->h.enable, &c);
	base_mark(&s->h, 0, 1, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT,
		  NULL, "sent and not answered");
	tl1_ask(s, &c, on_set);
}

void tl1_port_set(struct driver_base *h)
{
	struct tl1_switch *s = (struct tl1_switch *)h;

	s->partly_done = s->port_was_set = false;
	tl1_start_reads(s, set_port);
}
