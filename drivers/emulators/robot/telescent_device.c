/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of `telescent-cli`. Reconstructed: the banner, the prompt,
 * what an accepted command is answered with, the report of a move's
 * end, the letters L and F in a cell, and the size of a panel of less than
 * twelve columns. Seen: the commands, the form of a row, the words of the
 * state of a port, the signs of an error, that an allocation locks, and that
 * an unallocate wants both directions of its ports unlocked.
 */
#include "drivers/robot/robot.h"

#include <stdio.h>
#include <string.h>

#include "drivers/emulators/robot/robot_device.h"

#define GREEN "\x1b[32m"
#define PLAIN "\x1b[0m"

/* A skipped move is reported as completed: the panel is as it was asked for. */
static void report_move(const struct robot_job *j, enum robot_end end, struct buf *out)
{
	char what[64];

	if (j->connect) {
		snprintf(what, sizeof(what), "connect -in %d -out %d", j->xc.in, j->xc.out);
	} else {
		snprintf(what, sizeof(what), "unallocate -in %d", j->xc.in);
	}
	if (end == ROBOT_SUCCEEDED || end == ROBOT_SKIPPED) {
		buf_printf(out, "%s: completed\r\n", what);
	} else {
		buf_printf(out, "== error == %s: %s ==\r\n", what,
			   end == ROBOT_INVALID ? "the output is in use" :
						  "the move failed");
	}
}

/* ---- state --------------------------------------------------------------- */

/* The input whose fibre is in an output: what was last connected there, and
 * at first the one of the same number. */
static int fibre_in(const struct robot_device *d, int out)
{
	const struct xc_map *m = &d->e->mem;
	int flat = m->n_in + out;

	if (m->peer[flat] >= 0) {
		return m->peer[flat];
	}
	return d->last[flat] >= 0 ? d->last[flat] : out;
}

/* A cell is A or U (allocated or not), L (locked) and F (failed), then the
 * input. Allocated ones are green, with the escape codes that a driver has to
 * skip. */
static void put_cell(const struct robot_device *d, int out, struct buf *b)
{
	struct faults *f = &d->e->faults;
	int flat = d->e->mem.n_in + out;
	bool used = d->e->mem.peer[flat] >= 0;
	bool coloured = used && !emu_form_is(d->e, "plain");

	buf_printf(b, "  %s%s%s%s%d%s", coloured ? GREEN : "", used ? "A" : "U",
		   faults_hold_port(f, FAULT_PORT_DISABLED, flat) ? "L" : "",
		   faults_hold_port(f, FAULT_PORT_FAILED, flat) ? "F" : "",
		   fibre_in(d, out), coloured ? PLAIN : "");
}

/* The panel as rows of twelve outputs. */
static void switch_state(const struct robot_device *d, struct buf *b)
{
	buf_str(b, "     C1  C2  C3  C4  C5  C6  C7  C8  C9  C10 C11 C12\r\n");
	for (int out = 0; out < d->e->mem.n_out; out++) {
		if (out % TELESCENT_COLUMNS == 0) {
			buf_printf(b, "%sR%d#O", out ? "\r\n" : "", out / TELESCENT_COLUMNS);
		}
		put_cell(d, out, b);
	}
	buf_str(b, "\r\n");
}

/* A port that is not allocated can be locked all the same: another user has
 * reserved it. */
static void input_state(const struct robot_device *d, int in, struct buf *b)
{
	const struct xc_map *m = &d->e->mem;
	bool used = m->peer[in] >= 0;
	bool locked = used || faults_hold_port(&d->e->faults, FAULT_PORT_DISABLED, in);

	buf_printf(b, "STATE = %sALLOCATED_AND_%sLOCKED\r\nOUTPUT = %d \r\n",
		   used ? "" : "UN", locked ? "" : "UN",
		   used ? m->peer[in] - m->n_in :
		   d->last[in] >= 0 ? d->last[in] : in);
}

/* ---- commands ------------------------------------------------------------ */

static void error(const struct robot_device *d, struct buf *out, const char *why)
{
	if (emu_form_is(d->e, "framed")) {
		buf_printf(out, "\x1b[31m=== error ===\x1b[0m\r\n  %s\r\n=============\r\n", why);
		return;
	}
	buf_printf(out, "ERROR: %s\r\n", why);
}

/* With --force the robot queues the move without a question back. */
static enum emu_fate run_connect(struct robot_device *d, struct emu_client *c,
				 struct optics_xc xc, struct buf *out)
{
	const char *why = xc_map_check(&d->e->mem, xc, NULL) ? "no such port" :
			  robot_device_obstacle(d, xc);

	if (why) {
		error(d, out, why);
		return EMU_DO;
	}
	buf_str(out, "queued\r\n");
	return robot_device_enqueue(d, c, xc, true);
}

/* Ends the circuit of an input. One that is not allocated is as it should be,
 * and no error. The fibre stays where it is. */
static enum emu_fate run_unallocate(struct robot_device *d, struct emu_client *c, int in,
				    struct buf *out)
{
	const struct xc_map *m = &d->e->mem;
	struct optics_xc xc = { in, 0 };

	if (in < 0 || in >= m->n_in) {
		error(d, out, "no such port");
		return EMU_DO;
	}
	if (m->peer[in] < 0) {
		buf_str(out, "not allocated\r\n");
		return EMU_DO;
	}
	xc.out = m->peer[in] - m->n_in;
	buf_str(out, "queued\r\n");
	return robot_device_enqueue(d, c, xc, false);
}

/* An unlock of a port or of one direction of it. */
static bool is_unlock(const char *line)
{
	int port;
	char rest;

	return sscanf(line, "unlock --force %d%c", &port, &rest) == 1 ||
	       sscanf(line, "unlock --force -in %d%c", &port, &rest) == 1 ||
	       sscanf(line, "unlock --force -out %d%c", &port, &rest) == 1;
}

static enum emu_fate run_line(struct robot_device *d, struct emu_client *c,
			      const char *line, struct buf *out)
{
	struct optics_xc xc;
	char rest;
	int in;

	if (strcmp(line, "switchstate") == 0) {
		switch_state(d, out);
	} else if (sscanf(line, "switchstate input %d%c", &in, &rest) == 1 &&
		   in >= 0 && in < d->e->mem.n_in) {
		input_state(d, in, out);
	} else if (sscanf(line, "connect --force -in %d -out %d%c", &xc.in,
			  &xc.out, &rest) == 2) {
		return run_connect(d, c, xc, out);
	} else if (sscanf(line, "unallocate --force -in %d%c", &in,
			  &rest) == 1) {
		return run_unallocate(d, c, in, out);
	} else if (line[0] && !is_unlock(line)) {
		error(d, out, "unknown command");
	}
	return EMU_DO;
}

static const struct robot_words words = {
	.banner = "Telescent NTM ",
	.prompt = "telescent> ",
	.run = run_line,
	.report_move = report_move,
};

static const struct emu_form forms[] = {
	{ .name = "coloured" },
	{ .name = "plain", .prompt = "admin@ntm2>" },
	{ .name = "framed", .prompt = "\x1b[1m@ntm\x1b[0m> " },
	{ 0 },
};

const struct emu_dialect emu_telescent = {
	.name = "telescent-cli",
	.forms = forms,
	ROBOT_DIALECT(&words),
};
