/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands about many circuits at a time, for dialects that have them; see
 * tl1_switch.h.
 *
 * Such a command takes ports over without a word and is done some time after
 * its answer. So what is in the way is looked up in the map and ended first,
 * SAFE mode and the locks of others are kept here, and when the device says
 * that it is done the map is read and shows what became of each item. One
 * that is denied changed nothing: its items then go one by one.
 */
#include <stdio.h>
#include <string.h>

#include "drivers/tl1/tl1_private.h"
#include "lib/base/clock.h"

/* ---- which items go together --------------------------------------------- */

enum look { SEND, ALREADY, STOP };

static const struct tl1_circuit *circuit_at(const struct tl1_switch *s, struct optics_xc xc)
{
	int at = tl1_find_circuit(s, xc);

	return at < 0 ? NULL : &s->circuits.v[at];
}

/* Whether a command may end it: what others lock it must not, and what is
 * entered and not active takes another command. */
static bool may_end(const struct tl1_circuit *c)
{
	return !c->locked && c->state != DRV_BLOCKED;
}

/* The circuits that an add would cut, at most two. */
static int victims_of(const struct tl1_switch *s, struct optics_xc xc,
		      const struct tl1_circuit *v[2])
{
	int n = 0;

	for (size_t i = 0; i < s->circuits.n && n < 2; i++) {
		const struct tl1_circuit *c = &s->circuits.v[i];

		if (c->xc.in == xc.in || c->xc.out == xc.out) {
			v[n++] = c;
		}
	}
	return n;
}

static enum look look_at(const struct tl1_switch *s, const struct drv_item *item, int *n_victims)
{
	const struct tl1_circuit *c, *v[2];

	*n_victims = 0;
	if (xc_map_check(&s->map, item->xc, NULL)) {
		return STOP;
	}
	c = circuit_at(s, item->xc);
	if (c && item->op == DRV_ADD) {
		return c->state == DRV_TUNED ? ALREADY : STOP;
	}
	if (c) {
		return may_end(c) ? SEND : STOP;
	}
	*n_victims = victims_of(s, item->xc, v);
	for (int i = 0; i < *n_victims; i++) {
		if (item->op == DRV_DEL || s->h.batch->mode == DRV_SAFE || !may_end(v[i])) {
			return STOP;
		}
	}
	return item->op == DRV_DEL ? ALREADY : SEND;
}

static bool shares_port(const struct drv_batch *b, int first, int end)
{
	for (int i = first; i < end; i++) {
		if (b->items[i].xc.in == b->items[end].xc.in ||
		    b->items[i].xc.out == b->items[end].xc.out) {
			return true;
		}
	}
	return false;
}

/* ---- lists ---------------------------------------------------------------- */

static void put_name(struct tl1_switch *s, const struct tl1_circuit *c)
{
	const struct tl1_bulk *bulk = s->dialect->bulk;
	char name[TL1_PART_MAX];

	bulk->name(s, c, name, sizeof(name));
	if (s->bulk_list.len) {
		buf_char(&s->bulk_list, bulk->between);
	}
	buf_str(&s->bulk_list, name);
}

static void put_item(struct tl1_switch *s, const struct drv_item *item)
{
	const struct tl1_circuit fresh = { .xc = item->xc };
	const struct tl1_circuit *c = item->op == DRV_DEL ? circuit_at(s, item->xc) : NULL;

	put_name(s, c ? c : &fresh);
}

static const char *verb_of(const struct tl1_switch *s, enum drv_op op)
{
	return op == DRV_ADD ? s->dialect->bulk->enter : s->dialect->bulk->end;
}

/* ---- after a command ------------------------------------------------------ */

/* Gives the items that are in the command another result. */
static void settle_items(struct tl1_switch *s, enum drv_result r,
			 enum drv_class_of_error c, const char *text)
{
	for (int i = 0; i < s->h.n_outcomes; i++) {
		if (s->h.outcomes[i].result == DRV_UNKNOWN) {
			base_mark(&s->h, i, i + 1, r, DRV_SENT, c, NULL, text);
		}
	}
}

/* What the map shows of one item of the command. False when the device says
 * that some failed, and this is one. */
static bool judge_item(struct tl1_switch *s, int i)
{
	const struct drv_item *item = &s->h.batch->items[i];
	const struct tl1_circuit *c = circuit_at(s, item->xc);
	char text[2 * DRV_TEXT_MAX];

	if ((c != NULL) == (item->op == DRV_ADD) || !s->bulk_text[0]) {
		/* Entered and not active: a command of its own will see to
		 * that. What is confirmed and does not show is read again at
		 * the end of the batch. */
		bool rest = item->op == DRV_ADD && c && c->state == DRV_BLOCKED;

		base_mark(&s->h, i, i + 1, rest ? DRV_SKIPPED : DRV_DONE,
			  rest ? DRV_SENT : DRV_ACKED, DRV_ERR_NONE, NULL,
			  rest ? "not sent" : NULL);
		s->any_done = true;
		return true;
	}
	snprintf(text, sizeof(text), "%s %d-%d: %s", verb_of(s, item->op),
		 item->xc.in, item->xc.out, s->bulk_text);
	base_mark(&s->h, i, i + 1, s->bulk_cut ? DRV_UNKNOWN : DRV_REFUSED,
		  DRV_READ_BACK, DRV_ERR_STATE, "BULK", text);
	return false;
}

static void judge_items(struct tl1_switch *s)
{
	bool all = true;

	for (int i = s->item; i < s->bulk_end; i++) {
		if (s->h.outcomes[i].result == DRV_UNKNOWN) {
			all = judge_item(s, i) && all;
		}
	}
	s->bulk_cut = s->partly_done = false;
	if (all) {
		tl1_next_item(s);
	} else {
		tl1_end_batch(s);
	}
}

/* What was in the way of the items is gone now; if some of it is not, a
 * command of its own will show why. */
static void after_cut(struct tl1_switch *s)
{
	struct optics_xc other;

	for (int i = s->item; i < s->bulk_end; i++) {
		s->no_bulk = s->no_bulk || (s->h.outcomes[i].result == DRV_UNKNOWN &&
					    xc_map_conflict(&s->map, s->h.batch->items[i].xc,
							    &other));
	}
	settle_items(s, DRV_SKIPPED, DRV_ERR_NONE, "not sent");
	s->bulk_cut = true;
	tl1_next_item(s);
}

static void after_bulk(struct tl1_switch *s)
{
	bool cutting = s->bulk_cutting;

	s->bulk_cutting = false;
	s->any_done = true;
	if (s->item < 0) {
		tl1_next_item(s);
	} else if (cutting) {
		after_cut(s);
	} else {
		judge_items(s);
	}
}

/* ---- is it done ----------------------------------------------------------- */

static enum tl1_progress progress_of(struct tl1_switch *s, const struct tl1_message *m)
{
	const struct tl1_bulk *bulk = s->dialect->bulk;
	enum tl1_progress p = bulk->progress(m->remark);

	snprintf(s->bulk_text, sizeof(s->bulk_text), "%s", m->remark);
	for (size_t i = 0; i < m->n_lines && p == TL1_NO_WORD; i++) {
		p = bulk->progress(m->lines[i].text);
		snprintf(s->bulk_text, sizeof(s->bulk_text), "%s", m->lines[i].text);
	}
	return p;
}

static void ask_progress(struct tl1_switch *s);

static void on_poll(uv_timer_t *t)
{
	ask_progress(t->data);
}

static void too_long(struct tl1_switch *s)
{
	char text[DRV_TEXT_MAX];
	struct err err = { 0 };

	snprintf(text, sizeof(text), "not done after %lld ms: %.60s",
		 (long long)s->bulk_ms, s->bulk_text);
	settle_items(s, DRV_UNKNOWN, DRV_ERR_TRANSPORT, text);
	err_set(&err, WEFT_ETIMEOUT, "%s: %s", s->h.drv.name, text);
	base_end(&s->h, WEFT_ETIMEOUT, &err);
}

static void on_progress(struct tl1_switch *s, const struct tl1_message *m)
{
	enum tl1_progress p = m->denied ? TL1_NO_WORD : progress_of(s, m);

	if (p != TL1_UNDER_WAY) {
		/* What it calls done, or not, is seen in the map. */
		if (p != TL1_FAILED) {
			s->bulk_text[0] = '\0';
		}
		tl1_start_reads(s, after_bulk);
	} else if (clk_now_ns() < s->until_ns) {
		uv_timer_start(&s->h.timer, on_poll, (uint64_t)
			       (s->settle_ms ? s->settle_ms : 1), 0);
	} else {
		too_long(s);
	}
}

static void ask_progress(struct tl1_switch *s)
{
	struct tl1_command c;

	tl1_command(&c, s->dialect->bulk->ask, NULL, NULL);
	tl1_ask(s, &c, on_progress);
}

static void on_bulk(struct tl1_switch *s, const struct tl1_message *m)
{
	if (m->denied) {
		s->no_bulk = true;
		s->bulk_cutting = false;
		settle_items(s, DRV_SKIPPED, DRV_ERR_NONE, "not sent");
		tl1_next_item(s);
		return;
	}
	/* From here on a lost session leaves these items unknown. */
	s->partly_done = true;
	s->until_ns = clk_now_ns() + s->bulk_ms * 1000000;
	ask_progress(s);
}

static void send_bulk(struct tl1_switch *s, const char *verb)
{
	struct tl1_command c;

	tl1_command(&c, verb, NULL, NULL);
	c.list = buf_cstr(&s->bulk_list);
	tl1_ask(s, &c, on_bulk);
}

/* ---- a command ------------------------------------------------------------ */

/* A REPLACE ends what is not asked for: everything at once where nothing is,
 * else by lists. One that is locked is refused one by one, with its name. */
static bool clear_conflicts(struct tl1_switch *s)
{
	size_t n = 0;

	buf_reset(&s->bulk_list);
	for (size_t i = 0; i < s->circuits.n; i++) {
		const struct tl1_circuit *c = &s->circuits.v[i];

		if (tl1_is_asked_for(s->h.batch, c->xc)) {
			continue;
		}
		if (!may_end(c)) {
			return false;
		}
		if (n++ < (size_t)s->bulk) {
			put_name(s, c);
		}
	}
	if (n < 2 || (s->bulk_left && n >= s->bulk_left)) {
		return false;
	}
	s->bulk_left = n;
	base_mark(&s->h, 0, s->h.n_outcomes, DRV_UNKNOWN, DRV_SENT,
		  DRV_ERR_TRANSPORT, NULL, "not answered");
	if (n == s->circuits.n) {
		buf_reset(&s->bulk_list);
		send_bulk(s, s->dialect->bulk->end_all);
	} else {
		send_bulk(s, s->dialect->bulk->end);
	}
	return true;
}

/* How far a run of items from s->item goes that fit into one command; the
 * first of those to send, their number, and how many circuits they cut. */
static int run_end(const struct tl1_switch *s, int *first, int *n_send, int *n_cut)
{
	const struct drv_batch *b = s->h.batch;
	int end = s->item;

	*first = -1;
	for (*n_send = *n_cut = 0; end < b->n_items; end++) {
		int cut;
		enum look l = look_at(s, &b->items[end], &cut);

		/* What the map shows of a port holds up to the first item that
		 * moves it. */
		if (l == STOP || shares_port(b, s->item, end)) {
			break;
		}
		if (l == ALREADY) {
			continue;
		}
		if (*n_send == s->bulk || *n_cut + cut > s->bulk ||
		    (*first >= 0 &&
		     b->items[end].op != b->items[*first].op)) {
			break;
		}
		*first = *first < 0 ? end : *first;
		*n_send += 1;
		*n_cut += cut;
	}
	return end;
}

/* Lists the items of the run and marks them. */
static void list_run(struct tl1_switch *s)
{
	int cut;

	buf_reset(&s->bulk_list);
	for (int i = s->item; i < s->bulk_end; i++) {
		const struct drv_item *item = &s->h.batch->items[i];

		if (look_at(s, item, &cut) == SEND) {
			put_item(s, item);
			base_mark(&s->h, i, i + 1, DRV_UNKNOWN, DRV_SENT,
				  DRV_ERR_TRANSPORT, NULL, "not answered");
		} else {
			base_mark(&s->h, i, i + 1, DRV_DONE, DRV_READ_BACK,
				  DRV_ERR_NONE, NULL, "as asked already");
		}
	}
}

static bool is_cut(const struct tl1_switch *s, const struct tl1_circuit *c)
{
	for (int i = s->item; i < s->bulk_end; i++) {
		const struct optics_xc xc = s->h.batch->items[i].xc;

		if ((c->xc.in == xc.in || c->xc.out == xc.out) && optics_xc_cmp(&c->xc, &xc) != 0) {
			return true;
		}
	}
	return false;
}

/* Lists what the run cuts, in place of its items. One circuit may be in the
 * way of two of them. */
static void list_cut(struct tl1_switch *s)
{
	buf_reset(&s->bulk_list);
	for (size_t i = 0; i < s->circuits.n; i++) {
		if (is_cut(s, &s->circuits.v[i])) {
			put_name(s, &s->circuits.v[i]);
		}
	}
}

bool tl1_bulk_begin(struct tl1_switch *s)
{
	int first, n_send, n_cut;

	if (!s->dialect->bulk || s->bulk < 2 || s->no_bulk) {
		return false;
	}
	if (s->item < 0) {
		return clear_conflicts(s);
	}
	s->bulk_end = run_end(s, &first, &n_send, &n_cut);
	if (n_send < 2) {
		return false;
	}
	list_run(s);
	s->bulk_cutting = n_cut > 0;
	if (s->bulk_cutting) {
		list_cut(s);
	}
	send_bulk(s, s->bulk_cutting ? s->dialect->bulk->end :
		  verb_of(s, s->h.batch->items[first].op));
	return true;
}

/* ---- explaining ----------------------------------------------------------- */

int tl1_bulk_explain(struct tl1_switch *s, const struct drv_batch *b,
		     int first, struct tl1_command c[2])
{
	int end = first + 1;

	if (!s->dialect->bulk || s->bulk < 2) {
		return first;
	}
	while (end < b->n_items && end - first < s->bulk &&
	       b->items[end].op == b->items[first].op && !shares_port(b, first, end)) {
		end++;
	}
	if (end - first < 2) {
		return first;
	}
	buf_reset(&s->bulk_list);
	for (int i = first; i < end; i++) {
		put_name(s, &(struct tl1_circuit){ .xc = b->items[i].xc });
	}
	tl1_command(&c[0], verb_of(s, b->items[first].op), NULL, NULL);
	c[0].list = buf_cstr(&s->bulk_list);
	tl1_command(&c[1], s->dialect->bulk->ask, NULL, NULL);
	return end;
}
