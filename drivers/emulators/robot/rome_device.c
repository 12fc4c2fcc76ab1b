/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of `rome-cli`: East ports are inputs, West ports outputs,
 * numbered from 1, and `E1[1AE1]` is port 1 with its place in matrix 1A.
 *
 * Reconstructed: the words of refusals (`ERROR: ...`) but for "Ports are not
 * of the same matrix", and what is reported of a move that fails severely, and
 * when a homing run is refused.
 */
#include "drivers/robot/robot.h"

#include <stdio.h>
#include <string.h>

#include "drivers/emulators/robot/robot_device.h"

#define WHEN "08-05-2019 09:20 "
#define RULE "======= ========= ========= ================== ======= " \
	     "===================\r\n"

/* Two lines when the robot moved, or had nothing to move; one when the request
 * was refused as its turn came. The time is fixed, so that outputs can be
 * compared. */
static void report_move(const struct robot_job *j, enum robot_end end, struct buf *out)
{
	static const char *const words[] = {
		[ROBOT_SUCCEEDED] = "SUCCEEDED", [ROBOT_FAILED] = "FAILED",
		[ROBOT_SKIPPED] = "SKIPPED(already done)",
	};
	int e = j->xc.in + 1, w = j->xc.out + 1;

	if (end == ROBOT_INVALID) {
		buf_printf(out, WHEN "OPERATION VALIDATION FAILED:E%d-W%d "
			   "requestType=connect\r\n", e, w);
		return;
	}
	buf_printf(out, WHEN "%s...\r\n" WHEN "CONNECTION OPERATION %s:"
		   "E%d[1AE%d]<->W%d[1AW%d] OP:%s\r\n",
		   j->connect ? "CONNECTING" : "DISCONNECTING", words[end], e,
		   e, w, w, j->connect ? "connect" : "disconnect");
}

/* ---- commands ------------------------------------------------------------ */

static void show_board(struct robot_device *d, struct buf *out)
{
	if (emu_form_is(d->e, "afm")) {
		buf_printf(out, "AFM NAME         s53\r\nAFM TYPE         2\r\n"
			   "BOARD            ver(LCU-100) rev(1) S/N(%s)\r\n", d->e->conf.name);
		return;
	}
	buf_printf(out, "CURR SW VERSION 1.10.2.7\r\nROME TYPE ROME500\r\n"
		   "BOARD ver(LCU-100) rev(3) S/N(%s)\r\nMATRIX SIZE: Matrix "
		   "A: Male/West 1..%d, Female/East 1..%d\r\nOPERATION COUNT "
		   "7766\r\n", d->e->conf.name, d->e->mem.n_out,
		   d->e->mem.n_in);
}

/* A port that is not connected still names the port that its fibre was last
 * connected to, as the robot leaves it there. */
static void show_port(const struct robot_device *d, int flat, struct buf *out)
{
	const struct xc_map *m = &d->e->mem;
	struct faults *f = &d->e->faults;
	bool west = flat >= m->n_in, connected = m->peer[flat] >= 0;
	int n = west ? flat - m->n_in + 1 : flat + 1;
	int peer = connected ? m->peer[flat] - (west ? 0 : m->n_in) : d->last[flat];
	char side = west ? 'W' : 'E', other = west ? 'E' : 'W';

	buf_printf(out, "%c%d[1A%c%d]  %s  %s  %s  %lld  ", side, n, side, n,
		   faults_hold_port(f, FAULT_PORT_DISABLED, flat) ? "Locked" :
								   "Unlocked",
		   faults_hold_port(f, FAULT_PORT_FAILED, flat) ? "Disabled" :
								 "Enabled",
		   connected ? "Connected" : "Disconnected",
		   (long long)d->moves[flat]);
	if (peer >= 0) {
		buf_printf(out, "%c%d[1A%c%d]  ", other, peer + 1, other, peer + 1);
	}
	buf_printf(out, "A%d\r\n", n);
}

/* The same as an AFM prints it: numbers, and only where the fibre is now. */
static void show_afm_port(const struct robot_device *d, int flat, struct buf *out)
{
	const struct xc_map *m = &d->e->mem;
	struct faults *f = &d->e->faults;
	bool west = flat >= m->n_in, connected = m->peer[flat] >= 0;
	int n = west ? flat - m->n_in + 1 : flat + 1;
	int peer = m->peer[flat] - (west ? 0 : m->n_in) + 1;

	buf_printf(out, "%c%-6d %d      %d      %d      %c%-6d ", west ? 'W' : 'E', n,
		   1 + faults_hold_port(f, FAULT_PORT_DISABLED, flat), 1 + connected,
		   1 + faults_hold_port(f, FAULT_PORT_FAILED, flat), west ? 'e' : 'w', n);
	if (connected) {
		buf_printf(out, "%c%-16d", west ? 'E' : 'W', peer);
	} else {
		buf_str(out, "                 ");
	}
	buf_printf(out, "1     %lld\r\n", (long long)d->moves[flat]);
}

static void show_afm_ports(struct robot_device *d, struct buf *out)
{
	buf_str(out, "Admin Lock state: 1-unlocked     2-locked\r\n"
		"Oper state:       1-disconnected 2-connected 6-attached\r\n"
		"HW Admin state:   1-enabled      2-disabled\r\n"
		"Port  Admin  Oper   HW Adm  Paired  Connected-port  Port  Connection  Port\r\n"
		"ID    Lock   state  state   Port     ID   Name      role  counter     Name\r\n");
	for (int i = 0; i < d->e->mem.n_ports; i++) {
		show_afm_port(d, i, out);
	}
}

static void show_ports(struct robot_device *d, struct buf *out)
{
	if (emu_form_is(d->e, "afm")) {
		show_afm_ports(d, out);
		return;
	}
	buf_str(out, "Port Admin Oper Port Counter ConnectedTo Logical\r\n"
		"Status Status Status\r\n====== ====== ======\r\n");
	for (int i = 0; i < d->e->mem.n_ports; i++) {
		show_port(d, i, out);
	}
}

/* What is in process, then what waits. After a severe failure the robot asks
 * for a homing run here, and nowhere else. */
static void show_pending(struct robot_device *d, struct buf *out)
{
	size_t n = d->queue.n;

	buf_printf(out, "Connection execution status: %s\r\n%s\r\n",
		   d->homing ? "delayed due to command in process" :
		   d->stopped ? "disabled" : "enabled",
		   d->homing && !d->homed_ns ?
		   "                Perform \"homing run\"\r\n" : "");
	if (n) {
		const struct robot_job *j = &d->queue.v[0];

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

/* After a homing run the operator allows the robot to move again. */
static void set_enabled(struct robot_device *d, struct buf *out)
{
	if (d->homing) {
		buf_str(out, "ERROR: perform \"homing run\" first\r\n");
	} else {
		d->stopped = false;
		buf_str(out, "OK\r\n");
	}
}

/* A request is only checked for what cannot change while it waits; `connection
 * disconnect` is accepted for any two ports. */
static enum emu_fate run_request(struct robot_device *d, struct emu_client *c, struct optics_xc xc,
				 bool connect, struct buf *out)
{
	bool known = xc_map_check(&d->e->mem, xc, NULL) == 0;
	const char *why = !known ? "Ports are not of the same matrix" :
			  connect ? robot_device_obstacle(d, xc) : NULL;
	enum emu_fate fate;

	if (why) {
		buf_printf(out, "ERROR: %s\r\n", why);
		return EMU_DO;
	}
	fate = robot_device_enqueue(d, c, xc, connect);
	buf_printf(out, "OK - request added to pending queue (E%d-W%d)\r\n", xc.in + 1, xc.out + 1);
	return fate;
}

static const struct {
	const char *command;
	void (*run)(struct robot_device *d, struct buf *out);
} shows[] = {
	{ "show board", show_board },
	{ "port show", show_ports },
	{ "connection show pending", show_pending },
	{ "connection set command-execution enable", set_enabled },
};

static enum emu_fate run_line(struct robot_device *d, struct emu_client *c,
			      const char *line, struct buf *out)
{
	struct optics_xc xc;
	char rest;

	for (size_t i = 0; i < sizeof(shows) / sizeof(shows[0]); i++) {
		if (strcmp(line, shows[i].command) == 0) {
			shows[i].run(d, out);
			return EMU_DO;
		}
	}
	if (strcmp(line, "homing run") == 0) {
		return robot_device_home(d, c);
	}
	if (sscanf(line, "connection create E%d to W%d%c", &xc.in, &xc.out, &rest) == 2) {
		return run_request(d, c, (struct optics_xc){ xc.in - 1,
				   xc.out - 1 }, true, out);
	}
	if (sscanf(line, "connection disconnect E%d from W%d%c", &xc.in, &xc.out, &rest) == 2) {
		return run_request(d, c, (struct optics_xc){ xc.in - 1,
				   xc.out - 1 }, false, out);
	}
	if (line[0]) {
		buf_str(out, "ERROR: unknown command\r\n");
	}
	return EMU_DO;
}

static const struct robot_words words = {
	.prompt = "ROME[OPER]# ",
	.homed = "RECOVERY FINISHED SUCCESSFULLY\r\n",
	.run = run_line,
	.report_move = report_move,
};

static const struct emu_form forms[] = {
	{ .name = "rome" },
	{ .name = "wide", .prompt = "ROME[TECH]#" },
	{ .name = "afm", .prompt = "s53[OPER]# ", .telnet = true,
	  .greeting = "\xff\xfb\x01\xff\xfb\x03\xff\xfd\x18" },
	{ 0 },
};

const struct emu_dialect emu_rome = {
	.name = "rome-cli",
	.forms = forms,
	ROBOT_DIALECT(&words),
};
