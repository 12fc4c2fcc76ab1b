/* What a ROME robot prints; see rome.h. */
#include "drivers/robot/rome.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/tl1/tl1.h"

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
	    !tl1_number(&p, 1, ROBOT_MAX_PORT, '\0', index)) {
		return false;
	}
	--*index;
	*is_out = word[0] == 'W';
	return *p == '\0' || *p == '[';
}

bool rome_parse_row(char *line, struct robot_port *port)
{
	char *columns[MAX_COLUMNS], *rest = NULL;
	bool out;
	int n = 0, peer;

	for (char *c = strtok_r(line, " \t\r\n", &rest); c && n < MAX_COLUMNS;
	     c = strtok_r(NULL, " \t\r\n", &rest)) {
		columns[n++] = c;
	}
	if (n < 5 || !rome_parse_port(columns[0], &port->is_out,
				      &port->index) ||
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

int rome_said(const char *line, struct optics_xc xc)
{
	char ports[2][64];

	snprintf(ports[0], sizeof(ports[0]), "E%d-W%d ", xc.in + 1,
		 xc.out + 1);
	snprintf(ports[1], sizeof(ports[1]), "E%d[1AE%d]<->W%d[", xc.in + 1,
		 xc.in + 1, xc.out + 1);
	if (!strstr(line, ports[0]) && !strstr(line, ports[1])) {
		return 0;
	}
	return strstr(line, "FAILED") ? -1 :
	       strstr(line, "SUCCEEDED") || strstr(line, "SKIPPED") ? 1 : 0;
}

bool rome_news(const char *line, struct drv_event *ev)
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
	ev->has_port = word[0] && rome_parse_port(word, &ev->is_out,
						  &ev->index);
	ev->kind = strncmp(at, "FAILED", 6) == 0 ? DRV_EVENT_ALARM :
						   DRV_EVENT_CHANGED;
	return true;
}
