/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What emulated robots share: a queue of moves that take their time, and a
 * command line that echoes.
 *
 * Moves are done when they are due, by a timer or before the next command,
 * whichever comes first: so what a command reads is never older than the clock.
 * Autonomous lines gather in `unsent` and go out in front of the next echo, or
 * by themselves when a move ends.
 */
#include "drivers/emulators/robot/robot_device.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"

const char *robot_device_obstacle(const struct robot_device *d, struct optics_xc xc)
{
	if (emu_holds_xc(d->e, FAULT_PORT_FAILED, xc)) {
		return "port is disabled";
	}
	if (emu_holds_xc(d->e, FAULT_PORT_DISABLED, xc)) {
		return "port is locked";
	}
	if (emu_holds_xc(d->e, FAULT_REFUSE_PORT, xc)) {
		return "request refused";
	}
	return NULL;
}

/* ---- moves --------------------------------------------------------------- */

/* A move that is ignored (a fault) counts as wear of the ports like any
 * other. */
static void move(struct robot_device *d, const struct robot_job *j)
{
	struct xc_map *m = &d->e->mem;
	int in = xc_map_flat_in(m, j->xc.in);
	int out = xc_map_flat_out(m, j->xc.out);

	d->moves[in]++;
	d->moves[out]++;
	d->last[in] = j->xc.out;
	d->last[out] = j->xc.in;
	if (emu_holds_xc(d->e, FAULT_IGNORE_PORT, j->xc)) {
		return;
	}
	if (j->connect) {
		xc_map_connect(m, j->xc);
		xc_map_connect(&d->known, j->xc);
	} else {
		xc_map_release(m, in);
		xc_map_release(&d->known, in);
	}
	emu_changed(d->e);
}

/* Robots check a move when its turn comes, not when it is queued: a queue may
 * free a port before it is needed again. */
static enum robot_end run_job(struct robot_device *d, const struct robot_job *j)
{
	struct xc_map *m = &d->e->mem;
	struct optics_xc other;

	if (xc_map_has(m, j->xc) == j->connect) {
		return ROBOT_SKIPPED;
	}
	if (j->connect && xc_map_conflict(m, j->xc, &other)) {
		return ROBOT_INVALID;
	}
	if (faults_strike(&d->e->faults, FAULT_HOMING, NULL)) {
		d->homing = true;
		return ROBOT_FAILED;
	}
	if (emu_holds_xc(d->e, FAULT_CONN_FAILED, j->xc)) {
		return ROBOT_FAILED;
	}
	move(d, j);
	return ROBOT_SUCCEEDED;
}

/* Does what is due; the rest is for later. */
static void catch_up(struct robot_device *d);

static void on_due(uv_timer_t *t)
{
	struct robot_device *d = t->data;

	catch_up(d);
	emu_send_event(d->e, d->unsent.data, d->unsent.len);
	buf_reset(&d->unsent);
}

/* A robot that failed on the way stands still until a homing run, and after
 * that until it is allowed to move. */
static bool may_move(const struct robot_device *d)
{
	return d->queue.n && !d->homing && !d->stopped;
}

static void catch_up(struct robot_device *d)
{
	int64_t now = clk_now_ns();

	if (d->homed_ns && d->homed_ns <= now) {
		d->homed_ns = 0;
		d->homing = false;
		buf_str(&d->unsent, d->words->homed);
	}
	while (may_move(d) && d->queue.v[0].due_ns <= now) {
		struct robot_job j = d->queue.v[0];

		memmove(d->queue.v, d->queue.v + 1, --d->queue.n * sizeof(j));
		d->words->report_move(&j, run_job(d, &j), &d->unsent);
	}
	if (d->homed_ns || may_move(d)) {
		int64_t at = d->homed_ns ? d->homed_ns : d->queue.v[0].due_ns;

		uv_timer_start(&d->due, on_due, (uint64_t)(at - now + 999999) / 1000000, 0);
	}
}

enum emu_fate robot_device_home(struct robot_device *d, struct emu_client *c)
{
	enum emu_fate fate = emu_set_command(c);
	int64_t ms = 0;

	if (fate != EMU_EAT) {
		faults_hold(&d->e->faults, FAULT_MOVE, &ms);
		d->stopped = true;
		d->homing = true;
		d->homed_ns = clk_now_ns() + ms * 1000000;
	}
	return fate;
}

enum emu_fate robot_device_enqueue(struct robot_device *d, struct emu_client *c,
				   struct optics_xc xc, bool connect)
{
	struct robot_job j = { .xc = xc, .connect = connect };
	enum emu_fate fate = emu_set_command(c);
	int64_t ms = 0;

	if (fate == EMU_EAT) {
		return fate;
	}
	faults_hold(&d->e->faults, FAULT_MOVE, &ms);
	j.due_ns = d->queue.n ? d->queue.v[d->queue.n - 1].due_ns : clk_now_ns();
	j.due_ns += ms * 1000000;
	vec_push(&d->queue, j);
	return fate;
}

/* ---- sessions ------------------------------------------------------------ */

/* The banner is the first thing in a session; the mark remembers that it was
 * sent. It waits for the first command, as the session has no other beginning
 * here. */
static void greet(struct robot_device *d, struct emu_client *c)
{
	struct buf out = { 0 };

	if (d->words->banner && !*emu_client_mark(c)) {
		buf_printf(&out, "%s%s\r\n%s", d->words->banner, d->e->conf.name,
			   emu_prompt(d->e, d->words->prompt));
		emu_send_event_to(c, out.data, out.len);
	}
	*emu_client_mark(c) = 1;
	buf_fini(&out);
}

static void answer(struct emu_client *c, char *line)
{
	struct robot_device *d = emu_of(c)->device;
	struct buf text = { 0 }, out = { 0 };
	enum emu_fate fate;

	line[strcspn(line, "\r")] = '\0';
	catch_up(d);
	d->e->n_commands++;
	greet(d, c);
	fate = d->words->run(d, c, line, &text);
	if (fate == EMU_DO) {
		/* Autonomous lines come in front of the echo. */
		buf_printf(&out, "%s%s%s\r\n%s%s", buf_cstr(&d->unsent), line,
			   emu_form_is(d->e, "wide") ? "         " : "", buf_cstr(&text),
			   emu_prompt(d->e, d->words->prompt));
		buf_reset(&d->unsent);
		emu_reply(c, out.data, out.len);
	}
	catch_up(d);
	if (fate == EMU_DO_AND_DROP) {
		emu_drop(c);
	}
	buf_fini(&text);
	buf_fini(&out);
}

int64_t robot_device_input(struct emu_client *c, const uint8_t *data, size_t len)
{
	return emu_take_command(c, data, len, "\n", answer);
}

/* ---- life ---------------------------------------------------------------- */

/* A move that another user made at the panel is reported like one from the
 * queue. */
static void report_change(struct optics_xc xc, bool connect, void *arg)
{
	struct robot_device *d = arg;
	struct robot_job j = { .xc = xc, .connect = connect };

	d->words->report_move(&j, ROBOT_SUCCEEDED, &d->unsent);
}

void robot_device_refresh(struct emu *e, enum emu_map_event event)
{
	struct robot_device *d = e->device;

	if (event == EMU_RESTARTED) {
		d->queue.n = 0;
		d->homing = d->stopped = false;
		d->homed_ns = 0;
		uv_timer_stop(&d->due);
	} else if (event == EMU_OTHER_USER) {
		xc_map_changes(&d->known, &e->mem, report_change, d);
		emu_send_event(e, d->unsent.data, d->unsent.len);
		buf_reset(&d->unsent);
	}
	xc_map_copy(&d->known, &e->mem);
}

void robot_device_close(struct emu *e)
{
	struct robot_device *d = e->device;

	vec_fini(&d->queue);
	buf_fini(&d->unsent);
	xc_map_fini(&d->known);
	free(d->moves);
	free(d->last);
	free(d);
}

void robot_device_open(struct emu *e)
{
	struct robot_device *d = x_new(1, sizeof(*d));
	size_t n = (size_t)e->mem.n_ports;

	d->e = e;
	d->words = e->dialect->table;
	e->device = d;
	uv_timer_init(&e->loop, &d->due);
	d->due.data = d;
	d->moves = x_new(n, sizeof(*d->moves));
	d->last = x_alloc(n, sizeof(*d->last));
	xc_map_init(&d->known, DRV_SPACE, e->mem.n_in, e->mem.n_out, false);
	xc_map_copy(&d->known, &e->mem);
	for (size_t i = 0; i < n; i++) {
		d->last[i] = -1;
	}
}
