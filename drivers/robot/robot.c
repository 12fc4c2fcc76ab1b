/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver of robotic patch panels, whoever made them.
 *
 * A batch is a chain: read the table of ports, queue one run of moves command
 * by command, ask every poll_ms whether the robot is done, read the table
 * again, judge each item by it. What the robot prints in passing about a move
 * is kept (`result`) and used only where the table does not show the move. A move
 * in the queue goes on whatever happens to the session, so after the first one
 * was accepted a lost session leaves its items UNKNOWN.
 */
#include "drivers/robot/robot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/parse.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define DEFAULT_TIMEOUT_MS 10000
#define TYP_SWITCH_US 120000000
#define PROGRESS_NS (10 * INT64_C(1000000000))	/* at least so often */

/* ---- questions and answers ----------------------------------------------- */

/* A move that is in the queue goes on without us. */
static void on_failed(int rc, const struct err *err, bool sent, void *arg)
{
	struct robot *r = arg;

	r->late_ns = r->at_move > 0 ? clk_now_ns() + r->move_ms * 1000000 : r->late_ns;
	base_lost(&r->h, rc, err, sent || r->at_move > 0);
}

static void ask(struct robot *r, const char *command, void (*next)(struct robot *, char *))
{
	struct buf line = { 0 };

	buf_printf(&line, "%s\n", command);
	snprintf(r->command, sizeof(r->command), "%s", command);
	r->next = next;
	base_ask(&r->h, &line, ++r->tag);
}

/* ---- unasked lines ------------------------------------------------------- */

static int moves_over(const struct robot *r)
{
	int n = 0;

	for (size_t i = 0; i < r->queue.n; i++) {
		n += r->queue.v[i].result || r->queue.v[i].shown;
	}
	return n;
}

/* Items of the batch that are made: those of the runs before, and of this one those whose move is.
 * Never fewer than were told. */
static int items_over(const struct robot *r)
{
	int n = r->batch.first;

	for (size_t i = 0; i < r->queue.n; i++) {
		n += r->queue.v[i].item >= 0 && (r->queue.v[i].result > 0 || r->queue.v[i].shown);
	}
	return n > r->reported ? n : r->reported;
}

/* What the moves that are left of the batch take: as long as those that are over took; before the
 * first, what such a robot usually takes. Nine tenths of the present one may be gone. */
static int64_t time_left(struct robot *r, int64_t now)
{
	const int over = moves_over(r), later = r->h.batch->n_items - r->batch.end;
	int64_t each, gone;

	if (over > r->over) {
		r->over = over;
		r->over_ns = now;
		r->move_ns = (now - r->began_ns) / over;
	}
	each = r->move_ns ? r->move_ns : TYP_SWITCH_US * INT64_C(1000);
	gone = now - r->over_ns < each - each / 10 ? now - r->over_ns : each - each / 10;
	return each * ((int)r->queue.n - over + later) - gone;
}

static void report_progress(struct robot *r, const char *obstacle)
{
	const int64_t now = clk_now_ns(), left_ns = time_left(r, now);
	const int over = items_over(r), total = r->h.batch->n_items;
	char text[96];
	struct drv_event ev = { .kind = DRV_EVENT_PROGRESS, .done = over, .total = total,
				.eta_ms = left_ns > 0 ? left_ns / 1000000 : 0, .text = text };

	if (r->reported_ns && over == r->reported && now - r->reported_ns < PROGRESS_NS) {
		return;
	}
	snprintf(text, sizeof(text), "%d of %d moves are over%s%s", over, total,
		 obstacle ? "; " : "", obstacle ? obstacle : "");
	r->reported = over;
	r->reported_ns = now;
	base_event(&r->h, &ev);
}

/* True when it is about a move that is queued. *known: the robot's table had shown that one before.
 * */
static bool note_move_report(struct robot *r, const char *line, bool *known)
{
	bool ours = false;

	*known = false;
	r->homed = r->homed || (r->dialect->homed && strstr(line, r->dialect->homed));
	for (size_t i = 0; i < r->queue.n; i++) {
		struct robot_move *m = &r->queue.v[i];
		int result = r->dialect->move_result(line, m);

		if (result) {
			*known = m->shown;
			m->result = result;
			snprintf(r->failed, sizeof(r->failed), "%s", result < 0 ? line : r->failed);
			log_info("drivers", "%s: %s", r->h.drv.name, line);
			ours = true;
		}
	}
	return ours;
}

/* A move of ours that was given up may be made all the same, later. */
static void take_unasked_line(struct robot *r, const char *line, bool unasked)
{
	struct drv_event ev = { .text = line };
	bool known, ours = note_move_report(r, line, &known);

	if (ours && r->h.op == BASE_SUBMIT) {
		if (r->began_ns) {
			report_progress(r, NULL);
		}
	} else if (unasked && !known && r->dialect->event_of(line, &ev)) {
		base_event(&r->h, &ev);
	}
}

/* Text up to `asked`, the answer to a command or NULL, came unasked. */
static void take_unasked_text(struct robot *r, const char *text, const char *asked)
{
	char *copy = x_dup(text), *rest = copy, *line;

	while ((line = parse_line(&rest))) {
		take_unasked_line(r, line, !asked || line - copy < asked - text);
	}
	free(copy);
}

/* What comes before the first answer names the device, where nothing else
 * does. */
static void keep_banner(struct robot *r, const char *text)
{
	text += strspn(text, "\r\n ");
	if (!r->banner[0] && !robot_answer(text, r->command)) {
		snprintf(r->banner, sizeof(r->banner), "%.*s", (int)strcspn(text, "\r\n"), text);
	}
}

static int64_t first_prompt(const uint8_t *data, size_t len, size_t from, void *arg)
{
	const struct robot *r = arg;

	return robot_frame(data, len, from, r->dialect->prompt, r);
}

static int64_t next_frame(const uint8_t *data, size_t len, size_t from, void *arg)
{
	const struct robot *r = arg;
	int64_t n = first_prompt(data, len, from, arg);

	/* What comes while nothing was asked comes line by line. */
	return n == 0 && !tcp_waiting(r->h.session) ? tcp_frame_text(data, len, from, NULL) : n;
}

/* The echo shows whose answer it is: a banner, an empty line and an answer to
 * a command of before have another, or none. */
static enum tcp_verdict judge(const uint8_t *frame, size_t len, bool waiting,
			      uint64_t tag, void *arg)
{
	struct robot *r = arg;
	char *text = x_ndup((const char *)frame, len);
	bool ours = waiting && robot_answer(text, r->command);

	(void)tag;
	if (!ours) {
		keep_banner(r, text);
		take_unasked_text(r, text, NULL);
	}
	free(text);
	return ours ? TCP_REPLY : TCP_IGNORE;
}

static void on_reply(const uint8_t *frame, size_t len, uint64_t tag, void *arg)
{
	struct robot *r = arg;
	char *text = x_ndup((const char *)frame, len);

	(void)tag;
	if (r->h.op != BASE_IDLE) {
		char *asked = (char *)robot_answer(text, r->command);

		take_unasked_text(r, text, asked);
		r->next(r, asked);
	}
	free(text);
}

static void on_trace(const uint8_t *bytes, size_t len, bool is_reply, void *arg)
{
	struct robot *r = arg;
	char *text = r->h.drv.trace ? x_ndup((const char *)bytes, len) : NULL;
	char *rest = text, *line;

	while (text && (line = parse_line(&rest))) {
		if (line[0]) {
			base_trace(&r->h, line, is_reply);
		}
	}
	free(text);
}

/* ---- reading ------------------------------------------------------------- */

static bool is_worn(const struct robot *r, int flat)
{
	return r->wear_limit > 0 && r->moves[flat] >= r->wear_limit;
}

static int take_state(struct robot *r, const struct robot_port *row, int flat, struct err *err)
{
	struct drv_port *port;

	r->moves[flat] = row->moves;
	r->bars[flat] = row->disabled ? ROBOT_DISABLED : row->locked ? ROBOT_LOCKED : ROBOT_FREE;
	if (r->h.op != BASE_SNAPSHOT || (r->bars[flat] == ROBOT_FREE && row->moves <= 0)) {
		return 0;
	}
	port = base_port(&r->h, row->is_out, row->index, err);
	if (!port) {
		return WEFT_EVERIFY;
	}
	port->enabled = !row->locked;
	port->failed = row->disabled;
	port->has_moves = row->moves >= 0;
	port->moves = port->has_moves ? row->moves : 0;
	port->worn = is_worn(r, flat);
	return 0;
}

int robot_take_port(struct robot *r, const struct robot_port *row, struct err *err)
{
	int flat = row->is_out ? r->h.n_in + row->index : row->index;
	struct optics_xc xc = { row->is_out ? row->peer : row->index,
				      row->is_out ? row->index : row->peer };
	int rc;

	r->n_in += !row->is_out;
	r->n_out += row->is_out;
	if (row->index >= (row->is_out ? r->h.n_out : r->h.n_in)) {
		return 0;	/* the count will not be right */
	}
	rc = take_state(r, row, flat, err);
	if (rc || !row->connected) {
		return rc;	/* it may name its last one all the same */
	}
	if (row->peer < 0 || (!xc_map_take(&r->map, xc) &&
			      (xc_map_check(&r->map, xc, NULL) || !xc_map_has(&r->map, xc)))) {
		return err_set(err, WEFT_EDEVICE, "port %s%d is connected to "
			       "what cannot be", row->is_out ?
			       r->dialect->out_letter : r->dialect->in_letter,
			       row->index + r->dialect->first_port);
	}
	return 0;
}

int robot_read_table(struct robot *r, char *text, struct err *err)
{
	int rc;

	xc_map_clear(&r->map);
	r->n_in = r->n_out = 0;
	rc = r->dialect->table(r, text, err);
	if (rc) {
		return rc;
	}
	return base_check_size(&r->h, r->n_in, r->n_out, err);
}

static void on_table(struct robot *r, char *text)
{
	struct err err = { 0 };
	int rc = robot_read_table(r, text, &err);

	if (rc) {
		base_misunderstood(&r->h, rc, &err);
		return;
	}
	r->after_table(r);
}

static void read_table(struct robot *r, void (*after)(struct robot *))
{
	r->after_table = after;
	ask(r, r->dialect->ask_table, on_table);
}

/* ---- snapshot ------------------------------------------------------------ */

static void fill_snapshot(struct robot *r)
{
	xc_map_snapshot(&r->map, &r->h.snap);
	base_end(&r->h, 0, NULL);
}

/* Before the table, which then has what was made until now. */
static void on_queue(struct robot *r, char *text)
{
	r->h.snap.late = !r->dialect->idle(r, text);
	read_table(r, fill_snapshot);
}

static void on_identity(struct robot *r, char *text)
{
	r->dialect->identity(text, r->h.snap.identity, sizeof(r->h.snap.identity));
	ask(r, r->dialect->ask_pending, on_queue);
}

static void identify_by_banner(struct robot *r)
{
	snprintf(r->h.snap.identity, sizeof(r->h.snap.identity), "%s",
		 r->banner[0] ? r->banner : r->h.drv.cls->name);
	fill_snapshot(r);
}

static void robot_snapshot(struct driver_base *h)
{
	struct robot *r = (struct robot *)h;

	r->at_move = 0;
	h->snap.caps = (struct drv_caps){
		.kind = DRV_SPACE,
		.numbering = DRV_SPLIT,
		.n_in = h->n_in,
		.n_out = h->n_out,
		.persistence = DRV_PERSIST_AUTOSAVE,
		.min_gap_us = r->gap_ms * 1000,
		.typ_switch_us = TYP_SWITCH_US,
	};
	if (r->dialect->ask_identity) {
		ask(r, r->dialect->ask_identity, on_identity);
	} else {
		h->snap.late = clk_now_ns() < r->late_ns;
		read_table(r, identify_by_banner);
	}
}

/* ---- submit: moves ------------------------------------------------------- */

static void forget_moves(struct robot *r)
{
	r->queue.n = r->at_move = 0;
	r->at_command = 0;
	r->began_ns = 0;
}

static void plan_move(struct robot *r, struct optics_xc xc, bool connect, int item)
{
	struct robot_move m = { .xc = xc, .connect = connect, .item = item };

	vec_push(&r->queue, m);
}

/* What holds a port of xc is moved out of the way first. */
static void plan_clear(struct robot *r, struct optics_xc xc)
{
	int flat[2] = { xc.in, r->h.n_in + xc.out };

	for (int k = 0; k < 2; k++) {
		int peer = r->map.peer[flat[k]];
		struct optics_xc held = k ? (struct optics_xc){ peer, xc.out } :
			(struct optics_xc){ xc.in, peer - r->h.n_in };

		if (peer >= 0) {
			plan_move(r, held, false, -1);
		}
	}
}

static void plan_run(struct robot *r, int first, int end)
{
	const struct drv_item *items = r->h.batch->items;

	forget_moves(r);
	for (int i = first; i < end; i++) {
		bool add = items[i].op == DRV_ADD;

		if (add) {
			plan_clear(r, items[i].xc);
		}
		plan_move(r, items[i].xc, add, i);
	}
}

/* REPLACE: disconnects of what is not asked for, then what is not there. */
static void plan_all(struct robot *r, const struct optics_xc *old, int n_old)
{
	const struct drv_batch *b = r->h.batch;

	forget_moves(r);
	for (int i = 0; i < n_old; i++) {
		if (!xc_map_has(&r->map, old[i])) {
			plan_move(r, old[i], false, -1);
		}
	}
	for (int i = 0; i < b->n_items; i++) {
		bool there = n_old && bsearch(&b->items[i].xc, old, (size_t)n_old, sizeof(*old),
					      optics_xc_cmp);

		if (!there) {
			plan_move(r, b->items[i].xc, true, i);
		}
	}
}

/* ---- submit: the run ----------------------------------------------------- */

static void next_run(struct robot *r);

/* Each item is judged by what the table shows and what the robot reported. One that
 * was confirmed and is not there stays confirmed and no more. */
static bool judge_run(struct robot *r)
{
	bool go_on = true;

	for (int i = r->batch.first; i < r->batch.end; i++) {
		const struct drv_item *item = &r->h.batch->items[i];
		int result = 0;

		for (size_t k = 0; k < r->queue.n; k++) {
			result = r->queue.v[k].item == i ? r->queue.v[k].result : result;
		}
		if (r->h.outcomes[i].result != DRV_UNKNOWN) {
			go_on = go_on && r->h.outcomes[i].result == DRV_DONE;
		} else if (xc_map_has(&r->map, item->xc) ==
			   (item->op == DRV_ADD)) {
			base_mark(&r->h, i, i + 1, DRV_DONE, DRV_READ_BACK,
				  DRV_ERR_NONE, NULL, NULL);
		} else if (result < 0) {
			base_mark(&r->h, i, i + 1, DRV_REFUSED, DRV_READ_BACK, DRV_ERR_STATE,
				  "FAILED", r->failed);
			go_on = false;
		} else {
			base_mark(&r->h, i, i + 1, DRV_DONE, DRV_ACKED, DRV_ERR_NONE, NULL, NULL);
		}
	}
	return go_on;
}

static void after_run(struct robot *r)
{
	bool replace = r->h.batch->mode == DRV_REPLACE;
	struct err err = { 0 };

	for (int i = 0; replace && r->h.batch->n_items == 0 && i < r->h.n_in; i++) {
		if (r->map.peer[i] >= 0) {
			/* No outcome has this yet. */
			err_set(&err, WEFT_EDEVICE, "%s: %s%d is still "
				"connected", r->h.drv.name,
				r->dialect->in_letter,
				i + r->dialect->first_port);
		}
	}
	if (err.code) {
		base_end(&r->h, err.code, &err);
	} else if (judge_run(r) && !replace) {
		forget_moves(r);
		next_run(r);
	} else {
		base_end(&r->h, 0, NULL);
	}
}

static void ask_pending(uv_timer_t *t);

/* The time is over: whatever still waits in the queue may happen yet. */
static void too_long(struct robot *r, const char *why)
{
	struct err err = { 0 };

	r->late_ns = clk_now_ns() + r->move_ms * 1000000;
	err_set(&err, WEFT_ETIMEOUT, "%s: the robot is not done: %s", r->h.drv.name, why);
	base_settle_unknown(&r->h, DRV_UNKNOWN, err.msg);
	base_end(&r->h, WEFT_ETIMEOUT, &err);
}

void robot_mark_shown(struct robot *r)
{
	for (size_t i = 0; i < r->queue.n; i++) {
		struct robot_move *m = &r->queue.v[i];

		m->shown = xc_map_has(&r->map, m->xc) == m->connect;
	}
}

bool robot_all_over(const struct robot *r)
{
	return moves_over(r) == (int)r->queue.n;
}

/* A robot that waits for people does nothing: they have as long as one move
 * may take, not as long as all that wait. */
static void note_obstacle(struct robot *r, const char *why)
{
	int64_t until_ns;

	if (!why) {
		r->blocked_ns = 0;
		return;
	}
	if (!r->blocked_ns) {
		r->blocked_ns = clk_now_ns();
		r->reported_ns = 0;		/* to be reported at once */
	}
	until_ns = r->blocked_ns + r->move_ms * 1000000;
	r->until_ns = until_ns < r->until_ns ? until_ns : r->until_ns;
}

static void on_pending(struct robot *r, char *text)
{
	const struct robot_dialect *d = r->dialect;
	const char *why = d->obstacle ? d->obstacle(text) : NULL;

	note_obstacle(r, why);
	if (d->idle(r, text)) {
		read_table(r, after_run);
	} else if (clk_now_ns() >= r->until_ns) {
		too_long(r, why ? why : "moves wait in its queue");
	} else {
		report_progress(r, why);
		uv_timer_start(&r->h.timer, ask_pending, (uint64_t)r->poll_ms, 0);
	}
}

static void ask_pending(uv_timer_t *t)
{
	struct robot *r = t->data;

	ask(r, r->dialect->ask_pending, on_pending);
}

static void wait_for_queue(struct robot *r)
{
	r->reported_ns = 0;
	r->blocked_ns = 0;
	r->until_ns = clk_now_ns() + r->move_ms * 1000000 *
		      (int64_t)(r->at_move + 1);
	ask(r, r->dialect->ask_pending, on_pending);
}

static void next_move(struct robot *r);

/* The item that a move is for; one that clears the way is for the next. */
static int item_of(const struct robot *r, size_t move)
{
	while (move < r->queue.n && r->queue.v[move].item < 0) {
		move++;
	}
	return move < r->queue.n ? r->queue.v[move].item : -1;
}

/* Nothing more is queued behind a refusal; what is queued goes on. */
static void refused(struct robot *r, const char *text)
{
	const struct robot_move *m = &r->queue.v[r->at_move];
	char words[DRV_TEXT_MAX];
	int first = m->item;

	r->at_command = 0;
	text += strspn(text, "\r\n ");
	snprintf(words, sizeof(words), "%.*s", (int)strcspn(text, "\r\n"), text);
	if (first < 0) {
		first = item_of(r, r->at_move);
	}
	if (first >= 0) {
		base_mark(&r->h, first, r->batch.end, DRV_SKIPPED, DRV_SENT,
			  DRV_ERR_NONE, NULL, "not sent");
		base_mark(&r->h, first, first + 1, DRV_REFUSED, DRV_ACKED,
			  strstr(words, "matrix") ? DRV_ERR_CONFIGURATION :
						      DRV_ERR_STATE, "ERROR",
			  words);
	}
	r->queue.n = r->at_move;
	wait_for_queue(r);
}

static void on_taken(struct robot *r, char *text)
{
	const struct robot_move *m = &r->queue.v[r->at_move];
	const char *why = r->dialect->refusal(m, text);
	char next[ROBOT_COMMAND_MAX];

	if (why) {
		refused(r, why);
		return;
	}
	if (!r->dialect->command(m, ++r->at_command, next, sizeof(next))) {
		r->at_command = 0;
		r->at_move++;
	}
	next_move(r);
}

/* What was not put into the queue yet is left out. No dialect is known that
 * takes a move back out of it: for those it is too late. */
static void leave_out(struct robot *r)
{
	int first = item_of(r, r->at_move);

	if (first >= 0) {
		base_mark(&r->h, first, r->batch.end, DRV_SKIPPED, DRV_SENT,
			  DRV_ERR_NONE, NULL, "cancelled before it was "
			  "sent");
	}
	r->queue.n = r->at_move;
}

static void next_move(struct robot *r)
{
	char text[ROBOT_COMMAND_MAX];

	if (r->h.cancelled && r->at_command == 0) {
		leave_out(r);
	}
	if (r->at_move == r->queue.n) {
		wait_for_queue(r);
		return;
	}
	r->dialect->command(&r->queue.v[r->at_move], r->at_command, text, sizeof(text));
	ask(r, text, on_taken);
}

/* A port that was moved often enough is left as it is, and nothing is
 * connected to one that is locked or out of order. */
static bool is_spared(const struct robot *r, const struct robot_move *m, struct drv_outcome *why)
{
	int flat[2] = { m->xc.in, r->h.n_in + m->xc.out };

	for (int k = 0; k < 2; k++) {
		enum robot_bar bar = m->connect ? r->bars[flat[k]] : ROBOT_FREE;
		const char *letter = k ? r->dialect->out_letter : r->dialect->in_letter;
		int port = (k ? m->xc.out : m->xc.in) + r->dialect->first_port;

		if (bar != ROBOT_FREE) {
			snprintf(why->code, sizeof(why->code), "%s",
				 bar == ROBOT_LOCKED ? "LOCKED" : "DISABLED");
			snprintf(why->text, sizeof(why->text), "port %s%d is "
				 "%s", letter, port, bar == ROBOT_LOCKED ?
				 "locked" : "out of order");
			return true;
		}
		if (is_worn(r, flat[k])) {
			snprintf(why->code, sizeof(why->code), "WEAR");
			snprintf(why->text, sizeof(why->text), "port %s%d has "
				 "made %" PRId64 " moves of %" PRId64, letter,
				 port, r->moves[flat[k]], r->wear_limit);
			return true;
		}
	}
	return false;
}

/* The first item with a move that is not made, or -1. */
static int first_spared(const struct robot *r, struct drv_outcome *why)
{
	for (size_t i = 0; i < r->queue.n; i++) {
		if (is_spared(r, &r->queue.v[i], why)) {
			int item = item_of(r, i);

			return item < 0 ? r->batch.first : item;
		}
	}
	return -1;
}

/* Refuses the item with what is behind it; those before it are the run. */
static bool spare(struct robot *r, int item, const struct drv_outcome *why)
{
	bool whole = item == r->batch.first || r->h.batch->mode == DRV_REPLACE;

	base_mark(&r->h, whole ? r->batch.first : item, r->batch.end,
		  DRV_SKIPPED, DRV_SENT, DRV_ERR_NONE, NULL, "not sent");
	if (whole && r->h.batch->n_items) {
		base_mark(&r->h, item, item + 1, DRV_REFUSED, DRV_READ_BACK,
			  DRV_ERR_STATE, why->code, why->text);
	}
	r->batch.end = item;
	return !whole;
}

static void start_run(struct robot *r)
{
	r->failed[0] = '\0';
	r->over = 0;
	r->began_ns = r->over_ns = clk_now_ns();
	next_move(r);
}

static void next_run(struct robot *r)
{
	struct drv_outcome why = { 0 };
	int spared = -1;
	bool more = !r->h.cancelled && batch_next(&r->batch);

	if (more) {
		plan_run(r, r->batch.first, r->batch.end);
		spared = first_spared(r, &why);
	}
	if (spared >= 0) {
		more = spare(r, spared, &why);
		if (more) {
			plan_run(r, r->batch.first, r->batch.end);
		}
	}
	if (more) {
		start_run(r);
	} else {
		base_end(&r->h, 0, NULL);
	}
}

/* A replacement is made as a whole or not at all. */
static void replace_all(struct robot *r, const struct optics_xc *old, int n_old)
{
	struct drv_outcome why = { 0 };
	struct err err = { 0 };
	int spared;

	if (!batch_replace(&r->batch)) {
		base_end(&r->h, 0, NULL);
		return;
	}
	plan_all(r, old, n_old);
	spared = first_spared(r, &why);
	if (spared < 0) {
		start_run(r);
		return;
	}
	spare(r, spared, &why);
	if (r->h.batch->n_items == 0) {
		err_set(&err, WEFT_EDEVICE, "%s: %s", r->h.drv.name, why.text);
	}
	base_end(&r->h, err.code, err.code ? &err : NULL);
}

static void begin_batch(struct robot *r)
{
	struct optics_xc *old = NULL;
	int n_old;

	if (r->h.batch->mode != DRV_REPLACE) {
		next_run(r);
	} else {
		xc_map_xcs(&r->map, &old, &n_old);
		replace_all(r, old, n_old);
	}
	free(old);
}

static void robot_submit(struct driver_base *h)
{
	struct robot *r = (struct robot *)h;

	r->batch.first = r->batch.end = r->reported = 0;
	forget_moves(r);
	if (h->batch->n_items == 0 && h->batch->mode != DRV_REPLACE) {
		base_end(h, 0, NULL);
	} else {
		read_table(r, begin_batch);
	}
}

/* ---- a homing run -------------------------------------------------------- */

static void ask_homed(uv_timer_t *t);

static void end_homing(struct robot *r, enum drv_result result, const char *text)
{
	char words[DRV_TEXT_MAX];

	text += strspn(text, "\r\n ");
	snprintf(words, sizeof(words), "%.*s", (int)strcspn(text, "\r\n"), text);
	base_mark(&r->h, 0, 1, result, DRV_READ_BACK,
		  result == DRV_DONE ? DRV_ERR_NONE : DRV_ERR_STATE, NULL,
		  words);
	base_end(&r->h, 0, NULL);
}

static void on_moves_again(struct robot *r, char *text)
{
	const char *why = r->dialect->obstacle(text);

	end_homing(r, why ? DRV_REFUSED : DRV_DONE, why ? why :
		   "the homing run is over, moves that wait go on");
}

static void on_enabled(struct robot *r, char *text)
{
	const char *bad = strstr(text, "ERROR");

	if (bad) {
		end_homing(r, DRV_REFUSED, bad);
	} else {
		ask(r, r->dialect->ask_pending, on_moves_again);
	}
}

static void look_homed(struct robot *r, char *text)
{
	(void)text;
	if (r->homed) {
		ask(r, r->dialect->enable, on_enabled);
	} else if (clk_now_ns() >= r->until_ns) {
		too_long(r, "its homing run is not over");
	} else {
		uv_timer_start(&r->h.timer, ask_homed, (uint64_t)r->poll_ms, 0);
	}
}

static void ask_homed(uv_timer_t *t)
{
	struct robot *r = t->data;

	ask(r, r->dialect->ask_pending, look_homed);
}

static void on_homing(struct robot *r, char *text)
{
	const char *bad = strstr(text, "ERROR");

	if (bad) {
		end_homing(r, DRV_REFUSED, bad);
	} else {
		look_homed(r, text);
	}
}

/* It takes the robot away from the moves that it is at. */
static void on_pending_before(struct robot *r, char *text)
{
	if (!r->dialect->obstacle(text) && !r->dialect->idle(r, text)) {
		end_homing(r, DRV_REFUSED, "moves are under way");
		return;
	}
	r->homed = false;
	r->until_ns = clk_now_ns() + r->move_ms * 1000000;
	base_mark(&r->h, 0, 1, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT,
		  NULL, "homing run not confirmed");
	ask(r, r->dialect->homing, on_homing);
}

static void robot_recover(struct driver_base *h)
{
	struct robot *r = (struct robot *)h;

	forget_moves(r);
	ask(r, r->dialect->ask_pending, on_pending_before);
}

void robot_explain(struct drv *dev, const struct drv_batch *batch, drv_trace_fn fn, void *arg)
{
	const struct robot *r = (const struct robot *)dev;
	char text[ROBOT_COMMAND_MAX];

	fn(dev->name, r->dialect->ask_table, false, arg);
	for (int i = 0; i < batch->n_items; i++) {
		struct robot_move m = { .xc = batch->items[i].xc,
					.connect = batch->items[i].op ==
						   DRV_ADD };

		for (int k = 0; r->dialect->command(&m, k, text, sizeof(text)); k++) {
			fn(dev->name, text, false, arg);
		}
	}
	fn(dev->name, r->dialect->ask_pending, false, arg);
}

/* ---- life ---------------------------------------------------------------- */

static void robot_fini(struct driver_base *h)
{
	struct robot *r = (struct robot *)h;

	xc_map_fini(&r->map);
	vec_fini(&r->queue);
	free(r->moves);
	free(r->bars);
}

static int take_prompt(struct robot *r, const char *prompt, struct err *err)
{
	if (strlen(prompt) >= sizeof(r->prompt)) {
		return err_set(err, WEFT_EINVAL, "option prompt='%s': expected at most "
			       "%zu characters", prompt, sizeof(r->prompt) - 1);
	}
	memcpy(r->prompt, prompt, strlen(prompt) + 1);
	return 0;
}

static int parse_options(struct robot *r, const struct drv_config *cfg, struct err *err)
{
	const struct base_number numbers[] = {
		{ "gap_ms", 0, 60000, &r->gap_ms },
		{ "queue", 1, 64, &r->batch.chunk },
		{ "poll_ms", 1, 60000, &r->poll_ms },
		{ "move_ms", 1, 3600000, &r->move_ms },
		{ "wear_limit", 0, INT32_MAX, &r->wear_limit },
		{ "idle_s", 0, 86400, &r->idle_s },
	};
	const struct drv_class *cls = r->h.drv.cls;
	const char *prompt = base_option(cls, cfg, "prompt");
	int rc = base_option_ints(cls, cfg, numbers, sizeof(numbers) / sizeof(numbers[0]), err);

	return rc || !prompt ? rc : take_prompt(r, prompt, err);
}

static void take_tables(struct robot *r)
{
	xc_map_init(&r->map, DRV_SPACE, r->h.n_in, r->h.n_out, false);
	r->moves = x_new((size_t)r->map.n_ports, sizeof(*r->moves));
	r->bars = x_new((size_t)r->map.n_ports, sizeof(*r->bars));
}

static int robot_init(struct driver_base *h, const struct drv_config *cfg,
		      struct tcp_conf *conf, struct err *err)
{
	struct robot *r = (struct robot *)h;
	char sides[32];
	int rc;

	r->dialect = h->drv.cls->dialect;
	snprintf(sides, sizeof(sides), "%s joins %s", r->dialect->in_letter,
		 r->dialect->out_letter);
	if ((rc = base_two_sides(h->drv.cls, cfg, sides, err)) ||
	    (rc = parse_options(r, cfg, err))) {
		return rc;
	}
	r->batch.h = h;
	r->batch.map = &r->map;
	r->late_ns = clk_now_ns() + r->move_ms * 1000000;	/* of an earlier process */
	conf->gap_us = r->gap_ms * 1000;
	conf->idle_ms = r->idle_s * 1000;
	take_tables(r);
	return 0;
}

static const struct tcp_conf session = {
	.timeout_ms = DEFAULT_TIMEOUT_MS,
	.max_frame = ROBOT_MAX_FRAME,
	.terminal = TERMINAL_ECHO,
	.frame = next_frame,
	.greeting = first_prompt,
	.judge = judge,
	.reply = on_reply,
	.failed = on_failed,
	.trace = on_trace,
};

const struct base_ops robot_ops = {
	.session = &session,
	.init = robot_init,
	.snapshot = robot_snapshot,
	.submit = robot_submit,
	.recover = robot_recover,
	.fini = robot_fini,
};
