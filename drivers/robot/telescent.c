/* What a Telescent robot prints; see telescent.h. */
#include "drivers/robot/telescent.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/tl1/tl1.h"

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
	/* What is allocated is locked by that; it tells nothing more. */
	cell->locked = !cell->connected && memchr(letters, 'L', n);
	cell->disabled = memchr(letters, 'F', n);
	*s = letters + n;
	return tl1_number(s, 0, ROBOT_MAX_PORT - 1, '\0', &cell->peer);
}

int telescent_parse_row(const char *line,
			struct robot_port cells[TELESCENT_COLUMNS])
{
	const char *s = line + strspn(line, " \t");
	int row, n = 0;

	if (*s++ != 'R' ||
	    !tl1_number(&s, 0, ROBOT_MAX_PORT / TELESCENT_COLUMNS - 1, '#',
			&row) ||
	    !isalpha((unsigned char)*s)) {
		return 0;
	}
	s++;
	while (n < TELESCENT_COLUMNS && parse_cell(&s, &cells[n])) {
		cells[n].index = row * TELESCENT_COLUMNS + n;
		n++;
	}
	return n;
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
	return first;
}

bool telescent_is_reserved(const char *text)
{
	return strstr(text, "UNALLOCATED_AND_LOCKED");
}

int telescent_said(const char *line, struct optics_xc xc, bool connect)
{
	char what[64];
	const char *at;

	if (connect) {
		snprintf(what, sizeof(what), "connect -in %d -out %d:", xc.in,
			 xc.out);
	} else {
		snprintf(what, sizeof(what), "unallocate -in %d:", xc.in);
	}
	at = strstr(line, what);
	return !at ? 0 : telescent_error(line) ? -1 :
	       strstr(at, "completed") ? 1 : 0;
}

bool telescent_news(const char *line, struct drv_event *ev)
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
	ev->has_port = tl1_number(&at, 0, ROBOT_MAX_PORT - 1, '\0',
				  &ev->index);
	ev->kind = failed ? DRV_EVENT_ALARM : DRV_EVENT_CHANGED;
	return true;
}
