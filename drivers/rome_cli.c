/*
 * `rome-cli`: ROME robotic patch panels over their command line.
 *
 * A move takes minutes. What a command is answered with is a place in the
 * robot's queue; later, at any place in the session, a line says how the move
 * ended, and the table of ports shows it. So every batch ends in waiting until
 * the queue is empty and reading the table. A robot is never told to do again
 * what it did not confirm, and never sent on a homing run: that is for people.
 *
 * An East port is an input, a West port an output; a move joins one fibre of
 * a pair. When one half of a duplex link fails the caller takes the other
 * back, as it does with any change.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/batch.h"
#include "drivers/devmem.h"
#include "drivers/drivers.h"
#include "drivers/handle.h"
#include "drivers/line.h"
#include "drivers/rome.h"
#include "drivers/sonic.h"
#include "lib/base/buf.h"
#include "lib/base/clk.h"
#include "lib/base/log.h"
#include "lib/base/vec.h"

#define DEFAULT_TIMEOUT_MS 10000
#define TYP_SWITCH_US 120000000
#define SHOW_BOARD "show board"
#define SHOW_PORTS "port show"
#define SHOW_PENDING "connection show pending"

static const struct drv_option_spec options[] = {
	{ "gap_ms", "least time between two commands", "100" },
	{ "queue", "most moves in the robot's queue at a time", "8" },
	{ "poll_ms", "time between two looks at the queue", "3000" },
	{ "move_ms", "longest time a move may take", "120000" },
	{ "wear_limit", "moves after which a port is moved no more; 0: none",
	  "0" },
	{ NULL, NULL, NULL },
};

struct rome_move {
	struct light_xc xc;
	bool connect;
	int item;		/* -1: only clears the way */
	int said;		/* by the robot, in passing */
};

struct rome {
	struct handle h;
	struct line *line;
	uv_timer_t timer;
	int64_t gap_ms, poll_ms, move_ms, wear_limit;
	uint64_t tag;
	char command[64];	/* the one that is out */
	void (*next)(struct rome *r, char *text);
	struct devmem map;
	int64_t *moves;		/* [flat port] wear */
	bool *shut;		/* [flat port] locked or disabled */
	int n_in, n_out;	/* while reading the table */
	void (*after_ports)(struct rome *r);
	struct batch batch;
	VEC(struct rome_move) queue;	/* of the command run */
	size_t at_move;
	int64_t until_ns;
	char failed[DRV_TEXT_MAX];	/* what the robot said last of it */
};

/* ---- questions and answers ----------------------------------------------- */

static void misunderstood(struct rome *r, int rc, struct err *err)
{
	err_wrap(err, "%s", r->h.drv.name);
	line_reset(r->line);
	handle_settle_unknown(&r->h, DRV_UNKNOWN, err->msg);
	handle_end(&r->h, rc, err);
}

/* A move that is in the queue goes on without us. */
static void on_failed(int rc, const struct err *err, bool sent, void *arg)
{
	struct rome *r = arg;
	bool queued = r->at_move > 0;

	handle_settle_unknown(&r->h, sent || queued ? DRV_UNKNOWN :
						      DRV_SKIPPED, err->msg);
	handle_end(&r->h, rc, err);
}

static void ask(struct rome *r, const char *command,
		void (*next)(struct rome *, char *))
{
	struct err err = { 0 };
	char line[sizeof(r->command) + 1];
	int n = snprintf(line, sizeof(line), "%s\n", command);

	snprintf(r->command, sizeof(r->command), "%s", command);
	r->next = next;
	if (line_ask(r->line, line, (size_t)n, ++r->tag)) {
		handle_settle_unknown(&r->h, DRV_SKIPPED, "out of memory");
		handle_end(&r->h, err_nomem(&err), &err);
	}
}

/* What the robot says of its own accord about the moves that are queued. */
static void listen_to(struct rome *r, const char *line)
{
	for (size_t i = 0; i < r->queue.n; i++) {
		struct rome_move *m = &r->queue.v[i];
		int said = rome_said(line, m->xc);

		if (said) {
			m->said = said;
			snprintf(r->failed, sizeof(r->failed), "%s",
				 said < 0 ? line : r->failed);
			log_info("drivers", "%s: %s", r->h.drv.name, line);
		}
	}
}

static void listen_to_all(struct rome *r, const char *text)
{
	char *copy = strdup(text), *rest = copy, *line;

	while (copy && (line = sonic_line(&rest))) {
		listen_to(r, line);
	}
	free(copy);
}

static char *frame_text(const uint8_t *frame, size_t len)
{
	return strndup((const char *)frame, len);
}

/* The echo tells whose answer it is: a banner, an empty line and an answer to
 * a command of before have another, or none. */
static enum line_verdict judge(const uint8_t *frame, size_t len, bool waiting,
			       uint64_t tag, void *arg)
{
	struct rome *r = arg;
	char *text = frame_text(frame, len);
	bool ours = text && waiting && rome_answer(text, r->command);

	(void)tag;
	if (text && !ours) {
		listen_to_all(r, text);
	}
	free(text);
	return ours ? LINE_ANSWER : LINE_IGNORE;
}

static void on_answer(const uint8_t *frame, size_t len, uint64_t tag, void *arg)
{
	struct rome *r = arg;
	struct err err = { 0 };
	char *text = frame_text(frame, len);

	(void)tag;
	if (!text) {
		misunderstood(r, err_nomem(&err), &err);
	} else if (r->h.op != HANDLE_IDLE) {
		listen_to_all(r, text);
		r->next(r, (char *)rome_answer(text, r->command));
	}
	free(text);
}

static void on_trace(const uint8_t *bytes, size_t len, bool is_reply, void *arg)
{
	struct rome *r = arg;
	char *text = r->h.drv.trace ? frame_text(bytes, len) : NULL;
	char *rest = text, *line;

	while (text && (line = sonic_line(&rest))) {
		if (line[0]) {
			handle_trace(&r->h, line, is_reply);
		}
	}
	free(text);
}

/* ---- reading ------------------------------------------------------------- */

static struct drv_port *new_port(struct rome *r, bool is_out, int index)
{
	struct drv_snapshot *snap = &r->h.snap;

	if (!snap->ports) {
		snap->ports = calloc((size_t)r->map.n_ports,
				     sizeof(*snap->ports));
	}
	if (!snap->ports || snap->n_ports == r->map.n_ports) {
		return NULL;
	}
	snap->ports[snap->n_ports] = (struct drv_port){
		.is_out = is_out, .index = index, .enabled = true };
	return &snap->ports[snap->n_ports++];
}

static bool is_worn(const struct rome *r, int flat)
{
	return r->wear_limit > 0 && r->moves[flat] >= r->wear_limit;
}

static int take_port(struct rome *r, const struct rome_port *row,
		     struct err *err)
{
	int flat = row->is_out ? r->h.n_in + row->index : row->index;
	struct light_xc other, xc = { row->index, row->peer };
	struct drv_port *port;

	r->n_in += !row->is_out;
	r->n_out += row->is_out;
	if (row->index >= (row->is_out ? r->h.n_out : r->h.n_in)) {
		return 0;	/* the count will not be right */
	}
	r->moves[flat] = row->moves;
	r->shut[flat] = row->locked || row->disabled;
	if (r->h.op == HANDLE_SNAPSHOT && (r->shut[flat] || is_worn(r, flat))) {
		port = new_port(r, row->is_out, row->index);
		if (!port) {
			return err_nomem(err);
		}
		port->enabled = !row->locked;
		port->failed = row->disabled;
		port->has_moves = true;
		port->moves = row->moves;
	}
	/* A port that is not connected may name its last one. */
	if (row->is_out || !row->connected) {
		return 0;
	}
	if (row->peer < 0 || devmem_check(&r->map, xc, NULL) ||
	    devmem_victim(&r->map, xc, &other)) {
		return err_set(err, WEFT_EDEVICE, "port E%d is connected to "
			       "what cannot be", row->index + 1);
	}
	devmem_connect(&r->map, xc);
	return 0;
}

static void on_ports(struct rome *r, char *text)
{
	struct rome_port row;
	struct err err = { 0 };
	char *line;
	int rc = 0;

	devmem_clear(&r->map);
	r->n_in = r->n_out = 0;
	while (rc == 0 && (line = sonic_line(&text))) {
		if (rome_parse_row(line, &row)) {
			rc = take_port(r, &row, &err);
		}
	}
	if (rc == 0 && (r->n_in != r->h.n_in || r->n_out != r->h.n_out)) {
		rc = err_set(&err, WEFT_EVERIFY, "the device is %dx%d, the "
			     "fabric says %dx%d", r->n_in, r->n_out, r->h.n_in,
			     r->h.n_out);
	}
	if (rc) {
		misunderstood(r, rc, &err);
		return;
	}
	r->after_ports(r);
}

static void read_ports(struct rome *r, void (*after)(struct rome *))
{
	r->after_ports = after;
	ask(r, SHOW_PORTS, on_ports);
}

/* ---- snapshot ------------------------------------------------------------ */

static void fill_snapshot(struct rome *r)
{
	struct err err = { 0 };
	int rc = devmem_snapshot(&r->map, &r->h.snap, &err);

	handle_end(&r->h, rc, rc ? &err : NULL);
}

static void on_board(struct rome *r, char *text)
{
	char *identity = r->h.snap.identity, *line;
	size_t size = sizeof(r->h.snap.identity);

	while ((line = sonic_line(&text))) {
		if (strstr(line, "ROME TYPE") || strstr(line, "S/N(")) {
			size_t n = strlen(identity);

			line += strspn(line, " ");
			snprintf(identity + n, size - n, "%s%s", n ? "," : "",
				 line);
		}
	}
	if (!identity[0]) {
		snprintf(identity, size, "ROME");
	}
	read_ports(r, fill_snapshot);
}

static void rome_snapshot(struct handle *h)
{
	struct rome *r = (struct rome *)h;

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
	ask(r, SHOW_BOARD, on_board);
}

/* ---- submit: moves ------------------------------------------------------- */

static void move_text(const struct rome_move *m, char *text, size_t size)
{
	snprintf(text, size, "connection %s E%d %s W%d",
		 m->connect ? "create" : "disconnect", m->xc.in + 1,
		 m->connect ? "to" : "from", m->xc.out + 1);
}

static bool plan_move(struct rome *r, struct light_xc xc, bool connect,
		      int item)
{
	struct rome_move m = { .xc = xc, .connect = connect, .item = item };

	return vec_push(&r->queue, m) == 0;
}

/* What holds a port of xc is moved out of the way first. */
static bool plan_clear(struct rome *r, struct light_xc xc)
{
	int flat[2] = { xc.in, r->h.n_in + xc.out };

	for (int k = 0; k < 2; k++) {
		int peer = r->map.peer[flat[k]];
		struct light_xc held = k ? (struct light_xc){ peer, xc.out } :
			(struct light_xc){ xc.in, peer - r->h.n_in };

		if (peer >= 0 && !plan_move(r, held, false, -1)) {
			return false;
		}
	}
	return true;
}

static bool plan_run(struct rome *r, int first, int end)
{
	const struct drv_item *items = r->h.batch->items;
	bool ok = true;

	r->queue.n = r->at_move = 0;
	for (int i = first; i < end && ok; i++) {
		bool add = items[i].op == DRV_ADD;

		ok = (!add || plan_clear(r, items[i].xc)) &&
		     plan_move(r, items[i].xc, add, i);
	}
	return ok;
}

/* REPLACE: disconnects of what is not asked for, then what is not there. */
static bool plan_all(struct rome *r, const struct light_xc *old, int n_old)
{
	const struct drv_batch *b = r->h.batch;
	bool ok = true;

	r->queue.n = r->at_move = 0;
	for (int i = 0; i < n_old && ok; i++) {
		if (!devmem_has(&r->map, old[i])) {
			ok = plan_move(r, old[i], false, -1);
		}
	}
	for (int i = 0; i < b->n_items && ok; i++) {
		bool there = n_old && bsearch(&b->items[i].xc, old,
					      (size_t)n_old, sizeof(*old),
					      light_xc_cmp);

		ok = there || plan_move(r, b->items[i].xc, true, i);
	}
	return ok;
}

/* ---- submit: the run ----------------------------------------------------- */

static void next_run(struct rome *r);

/* What the table shows, and what the robot said, tell of each item. One that
 * was confirmed and is not there stays confirmed and no more. */
static bool judge_run(struct rome *r)
{
	bool go_on = true;

	for (int i = r->batch.first; i < r->batch.end; i++) {
		const struct drv_item *item = &r->h.batch->items[i];
		int said = 0;

		for (size_t k = 0; k < r->queue.n; k++) {
			said = r->queue.v[k].item == i ? r->queue.v[k].said :
							 said;
		}
		if (r->h.outcomes[i].result != DRV_UNKNOWN) {
			go_on = go_on && r->h.outcomes[i].result == DRV_DONE;
		} else if (devmem_has(&r->map, item->xc) ==
			   (item->op == DRV_ADD)) {
			handle_mark(&r->h, i, i + 1, DRV_DONE, DRV_READ_BACK,
				    DRV_ERR_NONE, NULL, NULL);
		} else if (said < 0) {
			handle_mark(&r->h, i, i + 1, DRV_REFUSED,
				    DRV_READ_BACK, DRV_ERR_STATE, "FAILED",
				    r->failed);
			go_on = false;
		} else {
			handle_mark(&r->h, i, i + 1, DRV_DONE, DRV_ACKED,
				    DRV_ERR_NONE, NULL, NULL);
		}
	}
	return go_on;
}

static void after_run(struct rome *r)
{
	bool replace = r->h.batch->mode == DRV_REPLACE;
	struct err err = { 0 };

	for (int i = 0; replace && r->h.batch->n_items == 0 &&
	     i < r->h.n_in; i++) {
		if (r->map.peer[i] >= 0) {
			/* Nobody else can say so. */
			err_set(&err, WEFT_EDEVICE, "%s: E%d is still "
				"connected", r->h.drv.name, i + 1);
		}
	}
	if (err.code) {
		handle_end(&r->h, err.code, &err);
	} else if (judge_run(r) && !replace) {
		r->queue.n = r->at_move = 0;
		next_run(r);
	} else {
		handle_end(&r->h, 0, NULL);
	}
}

static void ask_pending(uv_timer_t *t);

/* The time is over: whatever still waits in the queue may happen yet. */
static void too_long(struct rome *r, const char *why)
{
	struct err err = { 0 };

	err_set(&err, WEFT_ETIMEOUT, "%s: the robot is not done: %s",
		r->h.drv.name, why);
	handle_settle_unknown(&r->h, DRV_UNKNOWN, err.msg);
	handle_end(&r->h, WEFT_ETIMEOUT, &err);
}

static void on_pending(struct rome *r, char *text)
{
	bool homing = strstr(text, "homing run") != NULL;

	if (rome_is_idle(text)) {
		read_ports(r, after_run);
	} else if (clk_now_ns() >= r->until_ns) {
		too_long(r, homing ? "it asks for a homing run" :
				     "moves wait in its queue");
	} else {
		uv_timer_start(&r->timer, ask_pending, (uint64_t)r->poll_ms,
			       0);
	}
}

static void ask_pending(uv_timer_t *t)
{
	ask(t->data, SHOW_PENDING, on_pending);
}

static void wait_for_queue(struct rome *r)
{
	r->until_ns = clk_now_ns() + r->move_ms * 1000000 *
		      (int64_t)(r->at_move + 1);
	ask(r, SHOW_PENDING, on_pending);
}

static void next_move(struct rome *r);

/* Nothing more is queued behind a refusal; what is queued goes on. */
static void refused(struct rome *r, const char *text)
{
	const struct rome_move *m = &r->queue.v[r->at_move];
	char words[DRV_TEXT_MAX];
	int first = m->item;

	text += strspn(text, "\r\n ");
	snprintf(words, sizeof(words), "%.*s", (int)strcspn(text, "\r\n"),
		 text);
	for (size_t k = r->at_move; first < 0 && k < r->queue.n; k++) {
		first = r->queue.v[k].item;
	}
	if (first >= 0) {
		handle_mark(&r->h, first, r->batch.end, DRV_SKIPPED, DRV_SENT,
			    DRV_ERR_NONE, NULL, "not sent");
		handle_mark(&r->h, first, first + 1, DRV_REFUSED, DRV_ACKED,
			    strstr(words, "matrix") ? DRV_ERR_CONFIGURATION :
						      DRV_ERR_STATE, "ERROR",
			    words);
	}
	r->queue.n = r->at_move;
	wait_for_queue(r);
}

static void on_queued(struct rome *r, char *text)
{
	const char *ok = strstr(text, "OK - ");
	const char *bad = strstr(text, "ERROR");

	if (!ok || (bad && bad < ok)) {
		refused(r, bad ? bad : text);
		return;
	}
	r->at_move++;
	next_move(r);
}

static void next_move(struct rome *r)
{
	char text[sizeof(r->command)];

	if (r->at_move == r->queue.n) {
		wait_for_queue(r);
		return;
	}
	move_text(&r->queue.v[r->at_move], text, sizeof(text));
	ask(r, text, on_queued);
}

/* A port that was moved often enough is left as it is. */
static bool is_spared(struct rome *r, int i)
{
	const struct light_xc xc = r->h.batch->items[i].xc;
	int flat[2] = { xc.in, r->h.n_in + xc.out };
	char text[DRV_TEXT_MAX];

	for (int k = 0; k < 2; k++) {
		if (is_worn(r, flat[k])) {
			snprintf(text, sizeof(text), "port %c%d has made %"
				 PRId64 " moves of %" PRId64, k ? 'W' : 'E',
				 (k ? xc.out : xc.in) + 1, r->moves[flat[k]],
				 r->wear_limit);
			handle_mark(&r->h, i, i + 1, DRV_REFUSED,
				    DRV_READ_BACK, DRV_ERR_STATE, "WEAR",
				    text);
			return true;
		}
	}
	return false;
}

static void start_run(struct rome *r, bool planned)
{
	struct err err = { 0 };

	for (int i = r->batch.first; i < r->batch.end; i++) {
		if (is_spared(r, i)) {
			handle_settle_unknown(&r->h, DRV_SKIPPED, "not sent");
			handle_end(&r->h, 0, NULL);
			return;
		}
	}
	if (!planned) {
		handle_settle_unknown(&r->h, DRV_SKIPPED, "out of memory");
		handle_end(&r->h, err_nomem(&err), &err);
		return;
	}
	r->failed[0] = '\0';
	next_move(r);
}

static void next_run(struct rome *r)
{
	if (batch_next(&r->batch)) {
		start_run(r, plan_run(r, r->batch.first, r->batch.end));
	} else {
		handle_end(&r->h, 0, NULL);
	}
}

static void begin_batch(struct rome *r)
{
	struct light_xc *old = NULL;
	struct err err = { 0 };
	int n_old;

	if (r->h.batch->mode != DRV_REPLACE) {
		next_run(r);
	} else if (devmem_xcs(&r->map, &old, &n_old, &err)) {
		handle_end(&r->h, WEFT_ENOMEM, &err);
	} else if (batch_replace(&r->batch)) {
		start_run(r, plan_all(r, old, n_old));
	} else {
		handle_end(&r->h, 0, NULL);
	}
	free(old);
}

static void rome_submit(struct handle *h)
{
	struct rome *r = (struct rome *)h;

	r->batch.first = r->batch.end = 0;
	r->queue.n = r->at_move = 0;
	if (h->batch->n_items == 0 && h->batch->mode != DRV_REPLACE) {
		handle_end(h, 0, NULL);
	} else {
		read_ports(r, begin_batch);
	}
}

static void rome_explain(struct drv *dev, const struct drv_batch *batch,
			 drv_trace_fn fn, void *arg)
{
	char text[64];

	fn(dev->name, SHOW_PORTS, false, arg);
	for (int i = 0; i < batch->n_items; i++) {
		struct rome_move m = { .xc = batch->items[i].xc,
				       .connect = batch->items[i].op ==
						  DRV_ADD };

		move_text(&m, text, sizeof(text));
		fn(dev->name, text, false, arg);
	}
	fn(dev->name, SHOW_PENDING, false, arg);
}

/* ---- life ---------------------------------------------------------------- */

static void on_line_closed(void *arg)
{
	handle_stopped(arg);
}

static void on_timer_closed(uv_handle_t *timer)
{
	struct rome *r = timer->data;

	line_close(r->line, on_line_closed, &r->h);
}

static void rome_stop(struct handle *h)
{
	uv_close((uv_handle_t *)&((struct rome *)h)->timer, on_timer_closed);
}

static void rome_fini(struct handle *h)
{
	struct rome *r = (struct rome *)h;

	devmem_fini(&r->map);
	vec_fini(&r->queue);
	free(r->moves);
	free(r->shut);
}

static const struct handle_ops ops = {
	.snapshot = rome_snapshot,
	.submit = rome_submit,
	.stop = rome_stop,
	.fini = rome_fini,
};

static int parse_options(struct rome *r, const struct drv_config *cfg,
			 struct err *err)
{
	const struct {
		const char *key;
		int64_t min, max, *out;
	} numbers[] = {
		{ "gap_ms", 0, 60000, &r->gap_ms },
		{ "queue", 1, 64, &r->batch.chunk },
		{ "poll_ms", 1, 60000, &r->poll_ms },
		{ "move_ms", 1, 3600000, &r->move_ms },
		{ "wear_limit", 0, INT32_MAX, &r->wear_limit },
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) &&
	     rc == 0; i++) {
		rc = handle_option_int(&drv_rome_cli, cfg, numbers[i].key,
				       numbers[i].min, numbers[i].max,
				       numbers[i].out, err);
	}
	return rc;
}

static int open_line(struct rome *r, uv_loop_t *loop,
		     const struct drv_config *cfg, struct err *err)
{
	struct line_conf conf = {
		.device = cfg->name,
		.address = cfg->address ? cfg->address : "",
		.timeout_ms = cfg->timeout_ms ? cfg->timeout_ms :
						DEFAULT_TIMEOUT_MS,
		.gap_us = r->gap_ms * 1000,
		.window = 1,
		.max_frame = ROME_MAX_FRAME,
		.arg = r,
		.frame = rome_frame,
		.judge = judge,
		.answer = on_answer,
		.failed = on_failed,
		.trace = on_trace,
	};

	return line_new(loop, &conf, &r->line, err);
}

static int prepare(struct rome *r, uv_loop_t *loop,
		   const struct drv_config *cfg, struct err *err)
{
	int rc = handle_check(&drv_rome_cli, cfg, err);

	if (rc == 0 && cfg->any_to_any) {
		rc = err_set(err, WEFT_EUNSUPPORTED, "rome-cli knows no "
			     "any-to-any panels: East joins West");
	}
	if (rc == 0) {
		rc = parse_options(r, cfg, err);
	}
	if (rc == 0) {
		rc = devmem_init(&r->map, DRV_SPACE, cfg->n_in, cfg->n_out,
				 false, err);
	}
	if (rc) {
		return rc;
	}
	r->moves = calloc((size_t)r->map.n_ports, sizeof(*r->moves));
	r->shut = calloc((size_t)r->map.n_ports, sizeof(*r->shut));
	if (!r->moves || !r->shut) {
		return err_nomem(err);
	}
	return open_line(r, loop, cfg, err);
}

static int rome_open(uv_loop_t *loop, const struct drv_config *cfg,
		     struct drv **out, struct err *err)
{
	struct rome *r = calloc(1, sizeof(*r));
	int rc;

	if (!r) {
		return err_nomem(err);
	}
	rc = prepare(r, loop, cfg, err);
	if (rc) {
		rome_fini(&r->h);
		free(r);
		return rc;
	}
	handle_init(&r->h, &drv_rome_cli, &ops, loop, cfg);
	r->batch.h = &r->h;
	r->batch.map = &r->map;
	uv_timer_init(loop, &r->timer);
	r->timer.data = r;
	*out = &r->h.drv;
	return 0;
}

const struct drv_class drv_rome_cli = {
	.name = "rome-cli",
	.summary = "ROME robotic patch panels, command line over TCP",
	.abi = DRV_ABI,
	.kind = DRV_SPACE,
	.options = options,
	.open = rome_open,
	.close = handle_close,
	.snapshot = handle_snapshot,
	.submit = handle_submit,
	.explain = rome_explain,
};
