/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a SONiC optical switch prints: the frame around a command's output, and
 * the rows of its tables. Tables are cut at blanks, so that the widths of
 * columns, which differ between releases, do not matter; columns that were added
 * stand before the states, as labels with blanks do.
 */
#include "drivers/core/parse.h"
#include "drivers/sonic/sonic.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Names may hold UTF-8, in which 0xff is no byte. */
static bool is_printed(uint8_t c)
{
	return (c >= ' ' && c != 0xff) || c == '\n' || c == '\r' || c == '\t';
}

static bool is_end(const uint8_t *line, size_t len)
{
	return len >= strlen(SONIC_END) && memcmp(line, SONIC_END, strlen(SONIC_END)) == 0;
}

int64_t sonic_frame(const uint8_t *data, size_t len, size_t from, void *arg)
{
	size_t line = from;

	(void)arg;
	while (line > 0 && data[line - 1] != '\n') {
		line--;
	}
	for (size_t i = from; i < len; i++) {
		if (!is_printed(data[i])) {
			return -1;
		}
		if (data[i] != '\n') {
			continue;
		}
		if (is_end(data + line, i - line)) {
			return (int64_t)i + 1;
		}
		line = i + 1;
	}
	return 0;
}

/* Digits and what must follow them. */
static bool take_number(const char **p, char end, uint64_t *out)
{
	char *after;

	if (**p < '0' || **p > '9') {
		return false;
	}
	*out = strtoull(*p, &after, 10);
	*p = after + 1;
	return *after == end;
}

int sonic_parse_end(const uint8_t *frame, size_t len, size_t *text_len,
		    uint64_t *tag, int *status, struct err *err)
{
	size_t at = len, n;
	char line[64];
	const char *p = line + strlen(SONIC_END);
	uint64_t code;

	while (at > 0 && (at == len || frame[at - 1] != '\n')) {
		at--;
	}
	*text_len = at;
	n = len - at;
	while (n && (frame[at + n - 1] == '\n' || frame[at + n - 1] == '\r')) {
		n--;
	}
	if (!is_end(frame + at, n) || n >= sizeof(line)) {
		return err_set(err, WEFT_EDEVICE, "the answer does not end as asked");
	}
	memcpy(line, frame + at, n);
	line[n] = '\0';
	if (!take_number(&p, ':', tag) || !take_number(&p, '\0', &code) || code > 255) {
		return err_set(err, WEFT_EDEVICE, "expected "
			       SONIC_END "TAG:STATUS, the device said '%s'",
			       line);
	}
	*status = (int)code;
	return 0;
}

/* ---- rows ---------------------------------------------------------------- */

bool sonic_is_row(const char *line)
{
	return isdigit((unsigned char)line[strspn(line, " \t")]);
}

bool sonic_is_heading(const char *line)
{
	static const char *const first[] = { "id ", "name ", "port", "simplex port id ",
					     "cross connect id " };
	bool is = strcasestr(line, "a_side") != NULL;

	line += strspn(line, " \t\r\n");
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		is = is || strncasecmp(line, first[i], strlen(first[i])) == 0;
	}
	return is || line[strspn(line, "-=+| \t\r\n")] == '\0';
}

static int no_row(const char *word, const char *expected, struct err *err)
{
	return err_set(err, WEFT_EDEVICE, "expected a row of %s, the device "
		       "said '%.40s'", expected, word);
}

/* `12A`, in either case: the number and the side. */
static bool take_port(const char **p, bool *is_b, int *index)
{
	if (!parse_number(p, 1, SONIC_MAX_PORT, '\0', index) || !**p || !strchr("ABab", **p)) {
		return false;
	}
	*is_b = toupper((unsigned char)*(*p)++) == 'B';
	--*index;
	return true;
}

bool sonic_parse_pair(const char *text, struct optics_xc *xc)
{
	int first, second;
	bool first_is_b, second_is_b;

	if (!take_port(&text, &first_is_b, &first) || *text++ != '-' ||
	    !take_port(&text, &second_is_b, &second) || *text || first_is_b == second_is_b) {
		return false;
	}
	*xc = first_is_b ? (struct optics_xc){ second, first }
		: (struct optics_xc){ first, second };
	return true;
}

int sonic_parse_config(char *line, struct optics_xc *xc, struct err *err)
{
	char *columns[SONIC_MAX_COLUMNS];
	int n = parse_columns(line, columns, SONIC_MAX_COLUMNS);

	if (n == 0 || !sonic_is_row(columns[0])) {
		return 0;
	}
	return n >= 3 && sonic_parse_pair(columns[0], xc) ? 1 :
	       no_row(columns[0], "cross-connects", err);
}

static bool parse_state(const char *word, enum drv_state *state)
{
	for (int s = DRV_BLOCKED; s <= DRV_FAILED; s++) {
		if (strcasecmp(word, drv_state_name(s)) == 0) {
			*state = (enum drv_state)s;
			return true;
		}
	}
	return false;
}

/* The one state of both sides, as the CLI that is made from YANG has it. */
static bool parse_one_state(const char *word, enum drv_state *state)
{
	static const struct {
		const char *word;
		enum drv_state state;
	} words[] = {
		{ "enabled", DRV_TUNED }, { "disabled", DRV_BLOCKED }, { "invalid", DRV_FAILED },
		{ "N/A", DRV_BLOCKED },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(word, words[i].word) == 0) {
			*state = words[i].state;
			return true;
		}
	}
	return false;
}

int sonic_parse_status(char *line, struct optics_xc *xc, enum drv_state *state, struct err *err)
{
	char *columns[SONIC_MAX_COLUMNS];
	int n = parse_columns(line, columns, SONIC_MAX_COLUMNS);
	enum drv_state a, b;

	if (n == 0 || !sonic_is_row(columns[0])) {
		return 0;
	}
	if (n >= 2 && sonic_parse_pair(columns[0], xc) && parse_one_state(columns[1], state)) {
		return 1;
	}
	if (n < 5 || !sonic_parse_pair(columns[0], xc) ||
	    !parse_state(columns[n - 2], &a) || !parse_state(columns[n - 1], &b)) {
		return no_row(columns[0], "cross-connects and their states", err);
	}
	/* The worse side counts: failed, blocked, tuning, tuned. */
	*state = a == DRV_FAILED || b == DRV_FAILED ? DRV_FAILED :
		 a < b ? a : b;
	return 1;
}

int sonic_parse_loss(char *line, struct optics_xc *xc, int32_t *loss_mdb, struct err *err)
{
	char *columns[SONIC_MAX_COLUMNS];
	int n = parse_columns(line, columns, SONIC_MAX_COLUMNS);

	if (n == 0 || !sonic_is_row(columns[0])) {
		return 0;
	}
	return n >= 5 && sonic_parse_pair(columns[0], xc) &&
	       parse_milli(columns[3], loss_mdb) ? 1 :
	       no_row(columns[0], "factory insertion losses", err);
}

int sonic_parse_port(char *line, bool *is_out, int *index, const char **word, struct err *err)
{
	char *columns[SONIC_MAX_COLUMNS];
	int n = parse_columns(line, columns, SONIC_MAX_COLUMNS);
	const char *p;

	if (n == 0 || !sonic_is_row(columns[0])) {
		return 0;
	}
	p = columns[0];
	if (n < 2 || !take_port(&p, is_out, index) || *p) {
		return no_row(columns[0], "ports", err);
	}
	*word = columns[n - 1];
	return 1;
}
