/*
 * `rome-cli`: ROME robotic patch panels over their command line. First what
 * the robot prints is read, then its dialect is given to robot.c as a table. An
 * East port is an input, a West port an output.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/driver_base.h"
#include "drivers/core/parse.h"
#include "drivers/robot/robot.h"

#define MAX_COLUMNS 8

size_t rome_prompt(const uint8_t *line, size_t len, const void *arg)
{
	size_t n = strlen(ROME_PROMPT);

	(void)arg;
	if (len < n || memcmp(line, ROME_PROMPT, n) != 0) {
		return 0;
	}
	while (n < len && isupper(line[n])) {
		n++;
	}
	return n + 3 <= len && memcmp(line + n, "]# ", 3) == 0 ? n + 3 : 0;
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

bool rome_parse_row(char *line, struct robot_port *port)
{
	char *columns[MAX_COLUMNS];
	int n = parse_columns(line, columns, MAX_COLUMNS), peer;
	bool out;

	if (n < 5 || !rome_parse_port(columns[0], &port->is_out, &port->index) ||
	    !isdigit((unsigned char)columns[4][0])) {
		return false;
	}
	port->locked = strcmp(columns[1], "Locked") == 0;
	port->disabled = strcmp(columns[2], "Disabled") == 0;
	port->connected = strcmp(columns[3], "Connected") == 0;
	port->moves = strtoll(columns[4], NULL, 10);
	port->peer = n > 5 && rome_parse_port(columns[5], &out, &peer) &&
		     out != port->is_out ? peer : -1;
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
	return row[strspn(row, "\r\n ")] == '\0' ||
	       strncmp(row + strspn(row, "\r\n "), ROME_PROMPT,
		       strlen(ROME_PROMPT)) == 0;
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
	{ NULL, NULL, NULL },
};

static void identity(char *text, char *identity, size_t size)
{
	char *line;

	while ((line = parse_line(&text))) {
		if (strstr(line, "ROME TYPE") || strstr(line, "S/N(")) {
			size_t n = strlen(identity);

			line += strspn(line, " ");
			snprintf(identity + n, size - n, "%s%s", n ? "," : "", line);
		}
	}
	if (!identity[0]) {
		snprintf(identity, size, "ROME");
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
	.summary = "ROME robotic patch panels, command line over TCP",
	.kind = DRV_SPACE,
	.options = options,
	BASE_CLASS(struct robot, &robot_ops),
	.dialect = &dialect,
	.explain = robot_explain,
	.recoveries = DRV_HOMING,
	.recover = base_recover,
	.cancel = base_cancel_submit,
};
