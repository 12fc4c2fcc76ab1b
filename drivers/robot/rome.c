/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `rome-cli`: ROME robotic patch panels over their command line. First what
 * the robot prints is read, then its dialect is given to robot.c as a table. An
 * East port is an input, a West port an output. AFM patch panels, the elder kind,
 * take the same commands.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "drivers/core/driver_base.h"
#include "drivers/core/parse.h"
#include "drivers/robot/robot.h"

#define MAX_COLUMNS 12

static bool is_name(uint8_t c)
{
	return isalnum(c) || c == '_' || c == '-' || c == '.';
}

size_t rome_prompt(const uint8_t *line, size_t len, const void *arg)
{
	size_t name = 0, n;

	(void)arg;
	while (name < len && is_name(line[name])) {
		name++;
	}
	n = name + 1;
	while (n < len && isalpha(line[n])) {
		n++;
	}
	if (name == 0 || n + 2 > len || line[name] != '[' || n == name + 1 || line[n] != ']' ||
	    line[n + 1] != '#') {
		return 0;
	}
	n += 2;
	return n < len && line[n] == ' ' ? n + 1 : n;
}

bool rome_parse_port(const char *word, bool *is_out, int *index)
{
	const char *p = word + 1;

	if ((word[0] != 'E' && word[0] != 'W') ||
	    !parse_number(&p, 1, ROBOT_MAX_PORT, '\0', index)) {
		return false;
	}
	--*index;
	*is_out = word[0] == 'W';
	return *p == '\0' || *p == '[';
}

static void take_peer(const char *word, struct robot_port *port)
{
	bool out;
	int peer;

	port->peer = rome_parse_port(word, &out, &peer) && out != port->is_out ? peer : -1;
}

/* `E5 1 2 1 w5 W6 1 765`: locks, states, the port that it makes a pair with,
 * perhaps the one that it is connected to, its role, and its counter. */
static bool parse_afm_row(char **columns, int n, struct robot_port *port)
{
	int at = 5;

	take_peer(columns[at], port);
	while (at < n && !isdigit((unsigned char)columns[at][0])) {
		at++;
	}
	if (at + 1 >= n || !isdigit((unsigned char)columns[at + 1][0])) {
		return false;
	}
	port->locked = strcmp(columns[1], "2") == 0;
	port->connected = strcmp(columns[2], "2") == 0;
	port->disabled = strcmp(columns[3], "2") == 0;
	port->moves = strtoll(columns[at + 1], NULL, 10);
	return true;
}

bool rome_parse_row(char *line, struct robot_port *port)
{
	char *columns[MAX_COLUMNS];
	int n = parse_columns(line, columns, MAX_COLUMNS);

	if (n < 5 || !rome_parse_port(columns[0], &port->is_out, &port->index)) {
		return false;
	}
	if (n > 6 && isdigit((unsigned char)columns[1][0])) {
		return parse_afm_row(columns, n, port);
	}
	if (!isdigit((unsigned char)columns[4][0])) {
		return false;
	}
	port->locked = strcasecmp(columns[1], "Locked") == 0;
	port->disabled = strcasecmp(columns[2], "Disabled") == 0;
	port->connected = strcasecmp(columns[3], "Connected") == 0;
	port->moves = strtoll(columns[4], NULL, 10);
	take_peer(n > 5 ? columns[5] : "", port);
	return true;
}

bool rome_is_idle(const char *text)
{
	const char *table = strstr(text, "=======");
	const char *row;

	if (!strstr(text, "no request in process") || !table) {
		return false;
	}
	/* A rule, the heading, a rule, then the rows. */
	row = strstr(table + strcspn(table, "\n"), "=======");
	row = row ? row + strcspn(row, "\n") : "";
	row += strspn(row, "\r\n ");
	return *row == '\0' || rome_prompt((const uint8_t *)row, strlen(row), NULL) > 0;
}

int rome_move_report(const char *line, struct optics_xc xc)
{
	char ports[2][64];

	snprintf(ports[0], sizeof(ports[0]), "E%d-W%d ", xc.in + 1, xc.out + 1);
	snprintf(ports[1], sizeof(ports[1]), "E%d[1AE%d]<->W%d[", xc.in + 1, xc.in + 1, xc.out + 1);
	if (!strstr(line, ports[0]) && !strstr(line, ports[1])) {
		return 0;
	}
	if (strstr(line, "FAILED")) {
		return -1;
	}
	return strstr(line, "SUCCEEDED") || strstr(line, "SKIPPED");
}

bool rome_event(const char *line, struct drv_event *ev)
{
	static const char operation[] = "CONNECTION OPERATION ";
	const char *at = strstr(line, operation), *port;
	char word[16];

	if (!at) {
		return false;
	}
	at += strlen(operation);
	port = strchr(at, ':');
	snprintf(word, sizeof(word), "%.*s", port ?
		 (int)strcspn(port + 1, "[-<") : 0, port ? port + 1 : "");
	ev->has_port = word[0] && rome_parse_port(word, &ev->is_out, &ev->index);
	ev->kind = strncmp(at, "FAILED", 6) == 0 ? DRV_EVENT_ALARM : DRV_EVENT_CHANGED;
	return true;
}

/* ---- the driver ---------------------------------------------------------- */

static const struct drv_option_spec options[] = {
	{ "gap_ms", "least time between two commands", "100" },
	{ "queue", "most moves in the robot's queue at a time", "8" },
	{ "poll_ms", "time between two looks at the queue", "3000" },
	{ "move_ms", "longest time a move may take", "120000" },
	{ "wear_limit", "moves after which a port is moved no more; 0: none",
	  "0" },
	BASE_SSH_OPTIONS,
	{ NULL, NULL, NULL },
};

static void identity(char *text, char *identity, size_t size)
{
	char *line;

	while ((line = parse_line(&text))) {
		if (strstr(line, "ROME TYPE") || strstr(line, "AFM TYPE") || strstr(line, "S/N(")) {
			size_t n = strlen(identity);

			line += strspn(line, " ");
			snprintf(identity + n, size - n, "%s%s", n ? "," : "", line);
		}
	}
	if (!identity[0]) {
		snprintf(identity, size, "ROME");
	}
}

/* A line about a port that cannot be read is said; headings are not. */
static void note_unread(struct robot *r, const char *word)
{
	bool is_out;
	int index;

	if (rome_parse_port(word, &is_out, &index)) {
		base_note(&r->h, "the row of %s in the table of ports cannot be read", word);
	}
}

/* Every circuit is in the table twice; the East side counts. */
static int table(struct robot *r, char *text, struct err *err)
{
	struct robot_port row;
	char *line;
	int rc = 0;

	while (rc == 0 && (line = parse_line(&text))) {
		if (rome_parse_row(line, &row)) {
			row.connected = row.connected && !row.is_out;
			rc = robot_take_port(r, &row, err);
		} else {
			note_unread(r, line);
		}
	}
	return rc;
}

static bool command(const struct robot_move *m, int k, char *text, size_t size)
{
	snprintf(text, size, "connection %s E%d %s W%d",
		 m->connect ? "create" : "disconnect", m->xc.in + 1,
		 m->connect ? "to" : "from", m->xc.out + 1);
	return k == 0;
}

static const char *refusal(const struct robot_move *m, const char *text)
{
	const char *ok = strstr(text, "OK - ");
	const char *bad = strstr(text, "ERROR");

	(void)m;
	if (ok && !(bad && bad < ok)) {
		return NULL;
	}
	return bad ? bad : text;
}

static bool idle(struct robot *r, char *text)
{
	(void)r;
	return rome_is_idle(text);
}

static const char *obstacle(const char *text)
{
	if (strstr(text, "homing run")) {
		return "it asks for a homing run";
	}
	if (strstr(text, "status: disabled")) {
		return "its moves are disabled";
	}
	return NULL;
}

static int move_result(const char *line, const struct robot_move *m)
{
	return rome_move_report(line, m->xc);
}

static const struct robot_dialect dialect = {
	.in_letter = "E",
	.out_letter = "W",
	.first_port = 1,
	.prompt = rome_prompt,
	.ask_identity = "show board",
	.identity = identity,
	.ask_table = "port show",
	.table = table,
	.command = command,
	.refusal = refusal,
	.ask_pending = "connection show pending",
	.idle = idle,
	.obstacle = obstacle,
	.homing = "homing run",
	.homed = "RECOVERY FINISHED SUCCESSFULLY",
	.enable = "connection set command-execution enable",
	.move_result = move_result,
	.event_of = rome_event,
};

const struct drv_class drv_rome_cli = {
	.name = "rome-cli",
	.summary = "ROME robotic patch panels, command line over TCP or SSH",
	.kind = DRV_SPACE,
	.options = options,
	BASE_CLASS(struct robot, &robot_ops),
	.dialect = &dialect,
	.explain = robot_explain,
	.recoveries = DRV_HOMING,
	.recover = base_recover,
	.cancel = base_cancel_submit,
};
