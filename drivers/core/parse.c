/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of the texts that devices print: numbers, lines, columns. Every byte
 * comes from a wire, so nothing overflows, and what is shown of it in an error
 * is printable. Contracts are in parse.h.
 */
#include "drivers/core/parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

bool parse_number(const char **s, int min, int max, char end, int *out)
{
	const char *p = *s;
	int n = 0;

	if (!isdigit((unsigned char)*p)) {
		return false;
	}
	for (; isdigit((unsigned char)*p) && n <= max; p++) {
		n = n > (INT32_MAX - 9) / 10 ? max + 1 : n * 10 + (*p - '0');
	}
	if (n < min || n > max || (end && *p != end)) {
		return false;
	}
	*s = p + (end != '\0');
	*out = n;
	return true;
}

bool parse_milli(const char *text, int32_t *milli)
{
	bool minus = *text == '-';
	int whole = 0, part = 0, unit = 1000;
	const char *s = text + minus;

	if (!isdigit((unsigned char)*s)) {
		return false;
	}
	for (; isdigit((unsigned char)*s) && whole < 1000; s++) {
		whole = whole * 10 + (*s - '0');
	}
	if (*s == '.') {
		for (s++; isdigit((unsigned char)*s); s++) {
			unit /= 10;
			part += (*s - '0') * unit;
		}
	}
	*milli = (whole * 1000 + part) * (minus ? -1 : 1);
	return whole < 1000 && *s == '\0';
}

char *parse_line(char **rest)
{
	char *line = *rest, *end;

	if (!line || !*line) {
		return NULL;
	}
	end = line + strcspn(line, "\n");
	*rest = *end ? end + 1 : end;
	*end = '\0';
	if (end > line && end[-1] == '\r') {
		end[-1] = '\0';
	}
	return line;
}

int parse_columns(char *line, char **columns, int max)
{
	char *rest = NULL;
	int n = 0;

	for (char *c = strtok_r(line, " \t\r\n", &rest); c && n < max;
	     c = strtok_r(NULL, " \t\r\n", &rest)) {
		columns[n++] = c;
	}
	return n;
}

void parse_first_line(const char *text, char *out, size_t size)
{
	while (isspace((unsigned char)*text)) {
		text++;
	}
	snprintf(out, size, "%.*s", (int)strcspn(text, "\r\n"), text);
}

int parse_unexpected(const char *text, const char *expected, struct err *err)
{
	char seen[61];
	size_t i;

	for (i = 0; text[i] && i < sizeof(seen) - 1; i++) {
		seen[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
	}
	seen[i] = '\0';
	return err_set(err, WEFT_EDEVICE, "expected %s, the device said '%s'", expected, seen);
}
