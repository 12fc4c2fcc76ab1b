/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `telescent-cli`: Telescent robotic patch panels over their command line.
 * First what the robot prints is read, then its dialect is given to robot.c as a
 * table. The command line is not published; docs/drivers.md has what is known
 * of it and what is reconstructed.
 *
 * The robot overrides locks when asked with --force, and an
 * allocation is a lock. So what stands in the way is found in the table, a
 * port that is locked and not in use is left alone, and only then are the two
 * ports unlocked for the move.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/driver_base.h"
#include "drivers/core/parse.h"
#include "drivers/robot/robot.h"

static bool parse_cell(const char **s, struct robot_port *cell)
{
	const char *letters = *s + strspn(*s, " \t");
	size_t n = 0;

	while (isalpha((unsigned char)letters[n])) {
		n++;
	}
	if (n == 0 || (letters[0] != 'A' && letters[0] != 'U')) {
		return false;
	}
	*cell = (struct robot_port){ .is_out = true, .moves = -1,
				     .connected = letters[0] == 'A' };
	/* What is allocated is locked by that; nothing more is known. */
	cell->locked = !cell->connected && memchr(letters, 'L', n);
	cell->disabled = memchr(letters, 'F', n);
	*s = letters + n;
	return parse_number(s, 0, ROBOT_MAX_PORT - 1, '\0', &cell->peer);
}

int telescent_parse_row(const char *line, struct robot_port cells[TELESCENT_COLUMNS])
{
	const char *s = line + strspn(line, " \t");
	int row, n = 0;

	if (*s++ != 'R' || !parse_number(&s, 0, ROBOT_MAX_PORT / TELESCENT_COLUMNS - 1, '#',
					 &row) || !isalpha((unsigned char)*s)) {
		return 0;
	}
	s++;
	while (n < TELESCENT_COLUMNS && parse_cell(&s, &cells[n])) {
		cells[n].index = row * TELESCENT_COLUMNS + n;
		n++;
	}
	return n;
}

size_t telescent_prompt(const uint8_t *line, size_t len, const void *arg)
{
	size_t n = 0;

	(void)arg;
	while (n < len && (isalnum(line[n]) || (line[n] && strchr("@._-", line[n])))) {
		n++;
	}
	if (n == 0 || n == len || line[n] != '>') {
		return 0;
	}
	n++;
	return n < len && line[n] == ' ' ? n + 1 : n;
}

/* Behind the marks around the word, where the message begins; at them if there
 * is none. */
static const char *message_of(const char *error)
{
	const char *s = error + strspn(error, "=");

	if (s == error || strncmp(s, " error ", 7) != 0) {
		return error;
	}
	s += 7;
	s += strspn(s, "=");
	s += strspn(s, " \r\n");
	return *s && *s != '=' ? s : error;
}

const char *telescent_error(const char *text)
{
	static const char *const words[] = { "ERROR", "Exception",
					     "== error ==" };
	const char *first = NULL;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *at = strstr(text, words[i]);

		first = at && (!first || at < first) ? at : first;
	}
	return first ? message_of(first) : NULL;
}

bool telescent_is_reserved(const char *text)
{
	return strstr(text, "UNALLOCATED_AND_LOCKED");
}

int telescent_move_report(const char *line, struct optics_xc xc, bool connect)
{
	char what[64];
	const char *at;

	if (connect) {
		snprintf(what, sizeof(what), "connect -in %d -out %d:", xc.in, xc.out);
	} else {
		snprintf(what, sizeof(what), "unallocate -in %d:", xc.in);
	}
	at = strstr(line, what);
	if (!at) {
		return 0;
	}
	if (telescent_error(line)) {
		return -1;
	}
	return strstr(at, "completed") != NULL;
}

bool telescent_event(const char *line, struct drv_event *ev)
{
	static const char *const verbs[] = { "connect -in ",
					     "unallocate -in " };
	bool failed = telescent_error(line);
	const char *at = NULL;

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]) && !at; i++) {
		at = strstr(line, verbs[i]);
		at = at ? at + strlen(verbs[i]) : NULL;
	}
	if (!at || (!failed && !strstr(at, "completed"))) {
		return false;
	}
	ev->is_out = false;
	ev->has_port = parse_number(&at, 0, ROBOT_MAX_PORT - 1, '\0', &ev->index);
	ev->kind = failed ? DRV_EVENT_ALARM : DRV_EVENT_CHANGED;
	return true;
}

/* ---- the driver ---------------------------------------------------------- */

static const struct drv_option_spec options[] = {
	{ "gap_ms", "least time between two commands", "100" },
	{ "queue", "most moves in the robot's queue at a time", "8" },
	{ "poll_ms", "time between two looks at the table", "5000" },
	{ "move_ms", "longest time a move may take", "1800000" },
	{ "idle_s", "close a session idle for so long; 0: keep it open",
	  "180" },
	{ "prompt", "what ends an answer, at the head of a line; empty: a word and >",
	  "" },
	BASE_SSH_OPTIONS,
	{ NULL, NULL, NULL },
};

static size_t prompt(const uint8_t *line, size_t len, const void *arg)
{
	const struct robot *r = arg;
	size_t n = strlen(r->prompt);

	if (n == 0) {
		return telescent_prompt(line, len, NULL);
	}
	return len >= n && memcmp(line, r->prompt, n) == 0 ? n : 0;
}

/* A cell is an output and, since a panel is square, stands for the input of
 * its number as well. */
static int take_cell(struct robot *r, const struct robot_port *cell, struct err *err)
{
	struct robot_port in = { .index = cell->index, .moves = -1,
				 .peer = -1 };
	int rc = robot_take_port(r, cell, err);

	if (rc) {
		return rc;
	}
	return robot_take_port(r, &in, err);
}

/* What follows the cells of a row is no cell: the size will not be right. */
static void note_unread(struct robot *r, char *line)
{
	struct robot_port cells[TELESCENT_COLUMNS];
	char *columns[TELESCENT_COLUMNS + 1];
	int n = telescent_parse_row(line, cells);
	int words = n ? parse_columns(line, columns, TELESCENT_COLUMNS + 1) - 1 : 0;

	if (words > n) {
		base_note(&r->h, "%d cells of row %s of the table cannot be read", words - n,
			  columns[0]);
	}
}

static int table(struct robot *r, char *text, struct err *err)
{
	struct robot_port cells[TELESCENT_COLUMNS];
	char *line;
	int rc = 0;

	while (rc == 0 && (line = parse_line(&text))) {
		int n = telescent_parse_row(line, cells);

		for (int i = 0; i < n && rc == 0; i++) {
			rc = take_cell(r, &cells[i], err);
		}
		note_unread(r, line);
	}
	return rc;
}

/* The unlock before an unallocate is of both directions of a port: devices
 * were seen to refuse it otherwise. */
static bool command(const struct robot_move *m, int k, char *text, size_t size)
{
	const char *in = m->connect ? "-in " : "";
	const char *out = m->connect ? "-out " : "";

	switch (k) {
	case 0:
		snprintf(text, size, "switchstate input %d", m->xc.in);
		return true;
	case 1:
		snprintf(text, size, "unlock --force %s%d", in, m->xc.in);
		return true;
	case 2:
		snprintf(text, size, "unlock --force %s%d", out, m->xc.out);
		return true;
	case 3:
		break;
	default:
		return false;
	}
	if (m->connect) {
		snprintf(text, size, "connect --force -in %d -out %d", m->xc.in, m->xc.out);
	} else {
		snprintf(text, size, "unallocate --force -in %d", m->xc.in);
	}
	return true;
}

static const char *refusal(const struct robot_move *m, const char *text)
{
	return m->connect && telescent_is_reserved(text) ?
	       "ERROR: the input is locked and not in use" :
	       telescent_error(text);
}

/* Nothing that is known lists the queue, so the table has to show it. */
static bool idle(struct robot *r, char *text)
{
	if (robot_read_table(r, text, NULL)) {
		return false;
	}
	robot_mark_shown(r);
	return robot_all_over(r);
}

static int move_result(const char *line, const struct robot_move *m)
{
	return telescent_move_report(line, m->xc, m->connect);
}

static const struct robot_dialect dialect = {
	.in_letter = "input ",
	.out_letter = "output ",
	.prompt = prompt,
	.ask_table = "switchstate",
	.table = table,
	.command = command,
	.refusal = refusal,
	.ask_pending = "switchstate",
	.idle = idle,
	.move_result = move_result,
	.event_of = telescent_event,
};

const struct drv_class drv_telescent_cli = {
	.name = "telescent-cli",
	.summary = "Telescent robotic patch panels, command line over TCP or SSH",
	.kind = DRV_SPACE,
	.options = options,
	BASE_CLASS(struct robot, &robot_ops),
	.dialect = &dialect,
	.explain = robot_explain,
	.cancel = base_cancel_submit,
};
