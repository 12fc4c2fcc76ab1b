/*
 * The device side of `rome-cli`: a queue of moves that take their time, and
 * text of its own accord in front of the next echo. Reconstructed: the words
 * of refusals (`ERROR: ...`) but for "Ports are not of the same matrix", and
 * what is said of a move that fails severely.
 */
#include "drivers/rome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/emulators/emu.h"
#include "lib/base/clk.h"
#include "lib/base/vec.h"

#define MAX_COMMAND 1024
#define PROMPT "ROME[OPER]# "
#define WHEN "08-05-2019 09:20 "
#define RULE "======= ========= ========= ================== ======= " \
	     "===================\r\n"

struct job {
	struct light_xc xc;
	bool connect;
	int64_t due_ns;
};

struct rome_device {
	struct emu *e;
	VEC(struct job) queue;
	struct buf said;	/* of its own accord, not yet out */
	int64_t *moves;		/* [flat port] */
	int *last;		/* [flat port] the port it was connected to */
	bool homing;		/* nothing moves before a homing run */
};

static bool holds(const struct rome_device *d, enum fault_kind kind,
		  struct light_xc xc)
{
	struct faults *f = &d->e->faults;
	const struct devmem *m = &d->e->mem;

	return faults_hold_port(f, kind, devmem_flat_in(m, xc.in)) ||
	       faults_hold_port(f, kind, devmem_flat_out(m, xc.out));
}

/* ---- moves --------------------------------------------------------------- */

static void say_result(struct rome_device *d, const struct job *j,
		       const char *result)
{
	int in = j->xc.in + 1, out = j->xc.out + 1;

	buf_printf(&d->said, WHEN "%s...\r\n" WHEN "CONNECTION OPERATION %s:"
		   "E%d[1AE%d]<->W%d[1AW%d] OP:%s\r\n",
		   j->connect ? "CONNECTING" : "DISCONNECTING", result, in, in,
		   out, out, j->connect ? "connect" : "disconnect");
}

static void move(struct rome_device *d, const struct job *j)
{
	struct devmem *m = &d->e->mem;
	int in = devmem_flat_in(m, j->xc.in);
	int out = devmem_flat_out(m, j->xc.out);

	d->moves[in]++;
	d->moves[out]++;
	d->last[in] = j->xc.out;
	d->last[out] = j->xc.in;
	if (!holds(d, FAULT_IGNORE_PORT, j->xc)) {
		if (j->connect) {
			devmem_connect(m, j->xc);
		} else {
			devmem_release(m, in);
		}
		emu_changed(d->e);
	}
	say_result(d, j, "SUCCEEDED");
}

static void run_job(struct rome_device *d, const struct job *j)
{
	struct devmem *m = &d->e->mem;
	struct light_xc other;

	if (devmem_has(m, j->xc) == j->connect) {
		say_result(d, j, "SKIPPED(already done)");
	} else if (j->connect && devmem_victim(m, j->xc, &other)) {
		buf_printf(&d->said, WHEN "OPERATION VALIDATION FAILED:E%d-W%d "
			   "requestType=connect\r\n", j->xc.in + 1,
			   j->xc.out + 1);
	} else if (faults_strike(&d->e->faults, FAULT_HOMING, NULL)) {
		d->homing = true;
		say_result(d, j, "FAILED");
	} else if (holds(d, FAULT_CONN_FAILED, j->xc)) {
		say_result(d, j, "FAILED");
	} else {
		move(d, j);
	}
}

/* Moves happen when somebody looks; nobody could tell the difference. */
static void catch_up(struct rome_device *d)
{
	int64_t now = clk_now_ns();

	while (d->queue.n && !d->homing && d->queue.v[0].due_ns <= now) {
		struct job j = d->queue.v[0];

		memmove(d->queue.v, d->queue.v + 1,
			--d->queue.n * sizeof(j));
		run_job(d, &j);
	}
}

static void enqueue(struct rome_device *d, struct light_xc xc, bool connect)
{
	struct job j = { .xc = xc, .connect = connect };
	int64_t ms = 0;

	faults_hold(&d->e->faults, FAULT_MOVE, &ms);
	j.due_ns = d->queue.n ? d->queue.v[d->queue.n - 1].due_ns :
				clk_now_ns();
	j.due_ns += ms * 1000000;
	(void)vec_push(&d->queue, j);
}

/* ---- commands ------------------------------------------------------------ */

static void show_board(struct rome_device *d, struct buf *out)
{
	buf_printf(out, "CURR SW VERSION 1.10.2.7\r\nROME TYPE ROME500\r\n"
		   "BOARD ver(LCU-100) rev(3) S/N(%s)\r\nMATRIX SIZE: Matrix "
		   "A: Male/West 1..%d, Female/East 1..%d\r\nOPERATION COUNT "
		   "7766\r\n", d->e->conf.name, d->e->mem.n_out,
		   d->e->mem.n_in);
}

static void show_port(const struct rome_device *d, int flat, struct buf *out)
{
	const struct devmem *m = &d->e->mem;
	struct faults *f = &d->e->faults;
	bool west = flat >= m->n_in, lit = m->peer[flat] >= 0;
	int n = west ? flat - m->n_in + 1 : flat + 1;
	int peer = lit ? m->peer[flat] - (west ? 0 : m->n_in) :
			 d->last[flat];
	char side = west ? 'W' : 'E', other = west ? 'E' : 'W';

	buf_printf(out, "%c%d[1A%c%d]  %s  %s  %s  %lld  ", side, n, side, n,
		   faults_hold_port(f, FAULT_PORT_DISABLED, flat) ? "Locked" :
								   "Unlocked",
		   faults_hold_port(f, FAULT_PORT_FAILED, flat) ? "Disabled" :
								 "Enabled",
		   lit ? "Connected" : "Disconnected",
		   (long long)d->moves[flat]);
	if (peer >= 0) {
		buf_printf(out, "%c%d[1A%c%d]  ", other, peer + 1, other,
			   peer + 1);
	}
	buf_printf(out, "A%d\r\n", n);
}

static void show_ports(struct rome_device *d, struct buf *out)
{
	buf_str(out, "Port Admin Oper Port Counter ConnectedTo Logical\r\n"
		"Status Status Status\r\n====== ====== ======\r\n");
	for (int i = 0; i < d->e->mem.n_ports; i++) {
		show_port(d, i, out);
	}
}

static void show_pending(struct rome_device *d, struct buf *out)
{
	size_t n = d->queue.n;

	buf_printf(out, "Connection execution status: %s\r\n%s\r\n",
		   d->homing ? "delayed due to command in process" : "enabled",
		   d->homing ? "                Perform \"homing run\"\r\n" :
			       "");
	if (n) {
		const struct job *j = &d->queue.v[0];

		buf_printf(out, "Command in process:\r\n%s, ports: E%d-W%d, "
			   "status: in process with payload\r\n\r\n",
			   j->connect ? "connect" : "disconnect", j->xc.in + 1,
			   j->xc.out + 1);
	} else {
		buf_str(out, "no request in process\r\n\r\n");
	}
	buf_str(out, RULE "Request Port1     Port2     Command            "
		"Source  User\r\n" RULE);
	for (size_t i = 1; i < n; i++) {
		buf_printf(out, "%zu E%d W%d connect cli weft\r\n", i,
			   d->queue.v[i].xc.in + 1, d->queue.v[i].xc.out + 1);
	}
}

static void run_homing(struct rome_device *d, struct buf *out)
{
	d->homing = false;
	buf_str(out, "RECOVERY FINISHED SUCCESSFULLY\r\n");
}

static const char *obstacle(const struct rome_device *d, struct light_xc xc)
{
	return devmem_check(&d->e->mem, xc, NULL) ?
		       "Ports are not of the same matrix" :
	       holds(d, FAULT_PORT_FAILED, xc) ? "port is disabled" :
	       holds(d, FAULT_PORT_DISABLED, xc) ? "port is locked" :
	       holds(d, FAULT_REFUSE_PORT, xc) ? "request refused" : NULL;
}

static enum emu_fate run_request(struct rome_device *d, struct emu_client *c,
				 struct light_xc xc, bool connect,
				 struct buf *out)
{
	const char *why = obstacle(d, xc);
	enum emu_fate fate = emu_set_command(c);

	if (fate == EMU_EAT) {
		return fate;
	}
	if (why && (connect || devmem_check(&d->e->mem, xc, NULL))) {
		buf_printf(out, "ERROR: %s\r\n", why);
	} else {
		enqueue(d, xc, connect);
		buf_printf(out, "OK - request added to pending queue "
			   "(E%d-W%d)\r\n", xc.in + 1, xc.out + 1);
	}
	return fate;
}

static const struct {
	const char *command;
	void (*run)(struct rome_device *d, struct buf *out);
} shows[] = {
	{ "show board", show_board },
	{ "port show", show_ports },
	{ "connection show pending", show_pending },
	{ "homing run", run_homing },
};

static enum emu_fate run_line(struct rome_device *d, struct emu_client *c,
			      const char *line, struct buf *out)
{
	struct light_xc xc;
	char rest;

	d->e->n_commands++;
	for (size_t i = 0; i < sizeof(shows) / sizeof(shows[0]); i++) {
		if (strcmp(line, shows[i].command) == 0) {
			shows[i].run(d, out);
			return EMU_DO;
		}
	}
	if (sscanf(line, "connection create E%d to W%d%c", &xc.in, &xc.out,
		   &rest) == 2) {
		return run_request(d, c, (struct light_xc){ xc.in - 1,
				   xc.out - 1 }, true, out);
	}
	if (sscanf(line, "connection disconnect E%d from W%d%c", &xc.in,
		   &xc.out, &rest) == 2) {
		return run_request(d, c, (struct light_xc){ xc.in - 1,
				   xc.out - 1 }, false, out);
	}
	if (line[0]) {
		buf_str(out, "ERROR: unknown command\r\n");
	}
	return EMU_DO;
}

/* ---- as a dialect -------------------------------------------------------- */

static void rome_close(struct emu *e)
{
	struct rome_device *d = e->device;

	vec_fini(&d->queue);
	buf_fini(&d->said);
	free(d->moves);
	free(d->last);
	free(d);
}

static int rome_open(struct emu *e, struct err *err)
{
	struct rome_device *d = calloc(1, sizeof(*d));
	size_t n = (size_t)e->mem.n_ports;

	if (!d) {
		return err_nomem(err);
	}
	d->e = e;
	d->moves = calloc(n, sizeof(*d->moves));
	d->last = malloc(n * sizeof(*d->last));
	e->device = d;
	if (!d->moves || !d->last) {
		rome_close(e);
		return err_nomem(err);
	}
	for (size_t i = 0; i < n; i++) {
		d->last[i] = -1;
	}
	return 0;
}

static void answer(struct emu_client *c, char *line)
{
	struct rome_device *d = emu_of(c)->device;
	struct buf text = { 0 }, out = { 0 };
	enum emu_fate fate;

	catch_up(d);
	fate = run_line(d, c, line, &text);
	catch_up(d);
	if (fate == EMU_DO) {
		buf_printf(&out, "%s%s\r\n%s" PROMPT, buf_cstr(&d->said), line,
			   buf_cstr(&text));
		buf_reset(&d->said);
		emu_reply(c, out.data, out.len);
	} else if (fate == EMU_DO_AND_DROP) {
		emu_drop(c);
	}
	buf_fini(&text);
	buf_fini(&out);
}

static int64_t rome_input(struct emu_client *c, const uint8_t *data,
			  size_t len)
{
	const uint8_t *end = memchr(data, '\n', len);
	char *line;

	if (!end) {
		return 0;
	}
	line = strndup((const char *)data, (size_t)(end - data));
	if (!line) {
		return WEFT_ENOMEM;
	}
	line[strcspn(line, "\r")] = '\0';
	answer(c, line);
	free(line);
	return end + 1 - data;
}

static void rome_refresh(struct emu *e, bool restarted)
{
	struct rome_device *d = e->device;

	if (restarted) {
		d->queue.n = 0;
		d->homing = false;
	}
}

const struct emu_dialect emu_rome = {
	.name = "rome-cli",
	.kind = DRV_SPACE,
	.max_input = MAX_COMMAND,
	.open = rome_open,
	.close = rome_close,
	.input = rome_input,
	.refresh = rome_refresh,
};
