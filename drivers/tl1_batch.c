/*
 * A batch on a TL1 switch, command by command: what is in the way, what is
 * somebody else's, what each answer says about its item; see tl1_switch.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/batch.h"
#include "drivers/tl1_parts.h"

/* ---- a batch: its end ---------------------------------------------------- */

/* What the map says about an item that was confirmed. One that the map does
 * not show stays confirmed and no more. */
static void verify_item(struct tl1_switch *s, int i)
{
	const struct drv_item *item = &s->h.batch->items[i];
	struct drv_outcome *o = &s->h.outcomes[i];
	int at = tl1_find_circuit(s, item->xc);
	const struct tl1_circuit *c = at < 0 ? NULL : &s->circuits.v[at];

	if (o->result != DRV_DONE) {
		return;
	}
	if (item->op == DRV_DEL) {
		o->evidence = c ? o->evidence : DRV_READ_BACK;
	} else if (c && c->state == DRV_TUNED) {
		o->evidence = DRV_READ_BACK;
	} else if (c && c->state == DRV_FAILED) {
		handle_mark(&s->h, i, i + 1, DRV_DONE, DRV_READ_BACK,
			    DRV_ERR_TRAFFIC, NULL, c->trouble);
	}
}

static void verify_items(struct tl1_switch *s)
{
	for (int i = 0; i < s->h.n_outcomes; i++) {
		verify_item(s, i);
	}
	handle_end(&s->h, 0, NULL);
}

static void on_settled(uv_timer_t *t)
{
	struct tl1_switch *s = t->data;

	s->gone_too_far = false;
	tl1_start_reads(s, verify_items);
}

static void end_batch(struct tl1_switch *s)
{
	if (s->dialect->verify && s->any_done) {
		uv_timer_start(&s->h.timer, on_settled, (uint64_t)s->settle_ms,
			       0);
	} else {
		handle_end(&s->h, 0, NULL);
	}
}

/* ---- a batch: commands --------------------------------------------------- */

static void next_item(struct tl1_switch *s);
static void next_step(struct tl1_switch *s);

/* The items that the command which is out is for: one, or all of a REPLACE
 * while it clears the way. */
static void mark(struct tl1_switch *s, enum drv_result r, enum drv_evidence e,
		 enum drv_class_of_error c, const char *code, const char *text)
{
	int first = s->item < 0 ? 0 : s->item;
	int end = s->item < 0 ? s->h.n_outcomes : s->item + 1;

	handle_mark(&s->h, first, end, r, e, c, code, text);
}

static void refuse(struct tl1_switch *s, enum drv_class_of_error c,
		   const char *text)
{
	mark(s, s->gone_too_far ? DRV_UNKNOWN : DRV_REFUSED, DRV_READ_BACK, c,
	     NULL, text);
	end_batch(s);
}

static void on_step_denied(struct tl1_switch *s, const struct tl1_message *m)
{
	char words[DRV_TEXT_MAX], text[2 * DRV_TEXT_MAX];
	struct err err = { 0 };

	tl1_denied_text(m, words, sizeof(words));
	snprintf(text, sizeof(text), "%s %d-%d%s%s", s->cmd.verb,
		 s->now.xc.in, s->now.xc.out, words[0] ? ": " : "", words);
	mark(s, s->gone_too_far ? DRV_UNKNOWN : DRV_REFUSED, DRV_ACKED,
	     tl1_code_class(m->code), m->code, text);
	if (s->h.n_outcomes == 0) {
		/* Nobody else can say that the map could not be cleared. */
		err_set(&err, WEFT_EDEVICE, "%s: %s %.100s", s->h.drv.name,
			m->code, text);
		handle_end(&s->h, WEFT_EDEVICE, &err);
		return;
	}
	end_batch(s);
}

static void on_step(struct tl1_switch *s, const struct tl1_message *m)
{
	if (m->denied && strcmp(m->code, "SROU") != 0) {
		on_step_denied(s, m);
		return;
	}
	s->gone_too_far = true;
	s->step++;
	next_step(s);
}

static void forget_circuit(struct tl1_switch *s, struct light_xc xc)
{
	int at = tl1_find_circuit(s, xc);

	if (at >= 0) {
		s->circuits.v[at] = s->circuits.v[--s->circuits.n];
	}
	devmem_release(&s->map, devmem_flat_in(&s->map, xc.in));
}

/* All commands about s->now are confirmed. */
static void finish_circuit(struct tl1_switch *s)
{
	const struct drv_item *item = s->item < 0 ? NULL :
				      &s->h.batch->items[s->item];
	struct err err = { 0 };

	forget_circuit(s, s->now.xc);
	s->any_done = true;
	if (s->now_op == DRV_ADD) {
		s->now.state = DRV_TUNED;
		if (tl1_found_circuit(s, &s->now, &err)) {
			handle_misunderstood(&s->h, err.code, &err);
			return;
		}
	}
	if (item && item->op == s->now_op) {
		mark(s, DRV_DONE, DRV_ACKED, DRV_ERR_NONE, NULL, NULL);
		s->item++;
		s->gone_too_far = false;
	}
	next_item(s);
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

static void act_on(struct tl1_switch *s, enum drv_op op,
		   const struct tl1_circuit *c)
{
	s->now = *c;
	s->now_op = op;
	s->step = c->state == DRV_BLOCKED;
	next_step(s);
}

/* ---- a batch: what we decide ourselves ----------------------------------- */

/* Ends a circuit, unless it is somebody else's. */
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

static void refuse_busy(struct tl1_switch *s, struct light_xc victim)
{
	char text[DRV_TEXT_MAX];

	batch_busy_text(&s->h.batch->items[s->item], victim, text,
			sizeof(text));
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
	struct light_xc victim = { 0, 0 };
	bool cuts = devmem_victim(&s->map, item->xc, &victim);
	int at = tl1_find_circuit(s, item->xc);
	const struct tl1_circuit *c = at < 0 ? NULL : &s->circuits.v[at];

	if (item->op == DRV_DEL) {
		if (c) {
			end_circuit(s, c);
		} else if (cuts) {
			refuse_busy(s, victim);
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
		refuse_busy(s, victim);
	} else {
		end_circuit(s, &s->circuits.v[tl1_find_circuit(s, victim)]);
	}
	return false;
}

static bool is_asked_for(const struct drv_batch *batch, struct light_xc xc)
{
	for (int i = 0; i < batch->n_items; i++) {
		if (light_xc_cmp(&batch->items[i].xc, &xc) == 0) {
			return true;
		}
	}
	return false;
}

static void next_item(struct tl1_switch *s)
{
	const struct drv_batch *batch = s->h.batch;
	struct err err = { 0 };

	for (size_t i = 0; s->item < 0 && i < s->circuits.n; i++) {
		if (!is_asked_for(batch, s->circuits.v[i].xc)) {
			end_circuit(s, &s->circuits.v[i]);
			return;
		}
	}
	if (s->item < 0) {
		s->item = 0;
		s->gone_too_far = false;
		handle_mark(&s->h, 0, s->h.n_outcomes, DRV_SKIPPED, DRV_SENT,
			    DRV_ERR_NONE, NULL, "not sent");
	}
	while (s->item < batch->n_items) {
		const struct drv_item *item = &batch->items[s->item];

		if (devmem_check(&s->map, item->xc, &err)) {
			refuse(s, DRV_ERR_CONFIGURATION, err.msg);
			return;
		}
		if (!do_item(s, item)) {
			return;
		}
	}
	end_batch(s);
}

/* REPLACE clears the way first, so a list that is wrong in itself must be
 * refused before. */
static bool check_replace(struct tl1_switch *s)
{
	const struct drv_batch *batch = s->h.batch;
	bool *used = calloc((size_t)s->map.n_ports, sizeof(*used));
	struct err err = { 0 };
	bool ok = true;

	if (!used) {
		handle_end(&s->h, err_nomem(&err), &err);
		return false;
	}
	for (s->item = 0; ok && s->item < batch->n_items; s->item++) {
		const struct light_xc xc = batch->items[s->item].xc;
		bool *in, *out;

		if (devmem_check(&s->map, xc, &err)) {
			refuse(s, DRV_ERR_CONFIGURATION, err.msg);
			ok = false;
			break;
		}
		in = &used[devmem_flat_in(&s->map, xc.in)];
		out = &used[devmem_flat_out(&s->map, xc.out)];
		if (*in || *out) {
			refuse(s, DRV_ERR_CONFIGURATION,
			       "a port of it is in the list twice");
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
	next_item(s);
}

void tl1_submit(struct handle *h)
{
	struct tl1_switch *s = (struct tl1_switch *)h;
	bool replace = h->batch->mode == DRV_REPLACE;

	s->gone_too_far = s->any_done = false;
	if (h->batch->n_items == 0 && !replace) {
		handle_end(&s->h, 0, NULL);
	} else if (!replace || check_replace(s)) {
		tl1_start_reads(s, begin_batch);
	}
}

void tl1_switch_explain(struct drv *dev, const struct drv_batch *batch,
			drv_trace_fn fn, void *arg)
{
	const struct tl1_switch *s = (struct tl1_switch *)dev;
	const struct tl1_read *r = s->dialect->reads;
	struct tl1_command c;
	struct buf b = { 0 };
	uint64_t tag = s->tag;

	while (r->when != TL1_MAP) {
		r++;
	}
	r->ask(s, &c);
	tl1_put_command(&b, &c, s->use_tid ? s->tid : "", ++tag);
	fn(dev->name, buf_cstr(&b), false, arg);
	for (int i = 0; i < batch->n_items; i++) {
		const struct drv_item *item = &batch->items[i];
		struct tl1_circuit now = { .xc = item->xc };

		for (int step = 0; s->dialect->command(s, item->op, step, &now,
						       &c); step++) {
			buf_reset(&b);
			tl1_put_command(&b, &c, s->use_tid ? s->tid : "", ++tag);
			fn(dev->name, buf_cstr(&b), false, arg);
		}
	}
	buf_fini(&b);
}
