/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies of the Polatis SCPI dialect: lists of ports, errors, sizes, states
 * and powers. Each reader takes a whole line or nothing; numbers are bounded
 * before they are used as sizes.
 */
#include "drivers/scpi/scpi.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "drivers/core/parse.h"
#include "lib/base/vec.h"

static bool take(const char **s, const char *token)
{
	size_t n = strlen(token);

	if (strncmp(*s, token, n) != 0) {
		return false;
	}
	*s += n;
	return true;
}

static void skip_blanks(const char **s)
{
	*s += strspn(*s, " \t");
}

/* A comma with blanks around it. */
static bool take_comma(const char **s)
{
	skip_blanks(s);
	if (!take(s, ",")) {
		return false;
	}
	skip_blanks(s);
	return true;
}

/* What closes a list, with blanks before it. */
static bool take_close(const char **s)
{
	skip_blanks(s);
	return take(s, ")");
}

static bool at_end(const char *s)
{
	skip_blanks(&s);
	return *s == '\0';
}

char *scpi_plain(char *line)
{
	size_t n;

	line += strspn(line, " \t");
	n = strlen(line);
	while (n && isspace((unsigned char)line[n - 1])) {
		n--;
	}
	line[n] = '\0';
	if (n >= 2 && line[0] == '"' && strchr(line + 1, '"') == line + n - 1) {
		line[n - 1] = '\0';
		line++;
	}
	return line;
}

bool scpi_is_echo(const char *line)
{
	line += strspn(line, " \t");
	return *line == ':' || *line == '*';
}

typedef VEC(int32_t) int_vec;

/* `(@1,2,3)` or `(@)`. False when it is none. */
static bool take_list(const char **s, int_vec *v)
{
	int n;

	if (!take(s, "(@")) {
		return false;
	}
	if (take_close(s)) {
		return true;
	}
	do {
		skip_blanks(s);
		if (!parse_number(s, 0, SCPI_MAX_PORT, '\0', &n) || n == 0 ||
		    v->n >= SCPI_MAX_PORT) {
			return false;
		}
		vec_push(v, n);
	} while (take_comma(s));
	return take_close(s);
}

int scpi_parse_pairs(const char *line, struct scpi_pairs *pairs, struct err *err)
{
	int_vec in = { 0 }, out = { 0 };
	const char *s = line;

	if (strcasecmp(line, "<none>") == 0) {
		*pairs = (struct scpi_pairs){ 0 };
		return 0;
	}
	if (take_list(&s, &in) && take_comma(&s) && take_list(&s, &out) && at_end(s) &&
	    in.n == out.n) {
		*pairs = (struct scpi_pairs){ (int)in.n, in.v, out.v };
		return 0;
	}
	vec_fini(&in);
	vec_fini(&out);
	return parse_unexpected(line, "two lists of ports of one length", err);
}

void scpi_pairs_fini(struct scpi_pairs *pairs)
{
	free(pairs->in);
	free(pairs->out);
	memset(pairs, 0, sizeof(*pairs));
}

int scpi_parse_error(const char *line, int *code, char *text, int size, struct err *err)
{
	const char *s = line;
	bool negative = take(&s, "-");
	size_t len;

	if (!negative) {
		take(&s, "+");
	}
	if (!parse_number(&s, 0, 99999, '\0', code) || (*s != ',' && !at_end(s))) {
		return parse_unexpected(line, "an error code and its text", err);
	}
	*code = negative ? -*code : *code;
	s += strspn(s, ", ");
	len = strlen(s);
	if (len >= 2 && s[0] == '"' && s[len - 1] == '"') {
		s++;
		len -= 2;
	}
	snprintf(text, (size_t)size, "%.*s", (int)len, s);
	for (char *c = text; *c; c++) {
		*c = isprint((unsigned char)*c) ? *c : '?';
	}
	return 0;
}

int scpi_parse_size(const char *line, int *n_in, int *n_out, struct err *err)
{
	const char *s = line;

	if (!parse_number(&s, 0, SCPI_MAX_PORT, '\0', n_in) || !take_comma(&s) ||
	    !parse_number(&s, 0, SCPI_MAX_PORT, '\0', n_out) || !at_end(s)) {
		return parse_unexpected(line, "a size such as 16,16", err);
	}
	return 0;
}

/* `NxM` or `NxCC` at s. */
static bool size_at(const char *s, int *n_in, int *n_out, bool *any_to_any)
{
	if (!parse_number(&s, 0, SCPI_MAX_PORT, '\0', n_in) || !take(&s, "x")) {
		return false;
	}
	*any_to_any = take(&s, "CC");
	if (*any_to_any) {
		*n_out = *n_in;
		return true;
	}
	return parse_number(&s, 0, SCPI_MAX_PORT, '\0', n_out);
}

int scpi_parse_identity(const char *line, int *n_in, int *n_out, bool *any_to_any, struct err *err)
{
	const char *s = strchr(line, ','), *end = s ? strchr(s + 1, ',') : NULL;

	if (strncasecmp(line, "polatis,", 8) != 0 || !end) {
		return parse_unexpected(line, "the identity of a Polatis switch", err);
	}
	for (; s < end; s++) {
		if (!isdigit((unsigned char)s[0]) && size_at(s + 1, n_in, n_out, any_to_any)) {
			return 0;
		}
	}
	return parse_unexpected(line, "a model with its size, such as 32x32 or 32xCC", err);
}

int scpi_parse_states(const char *line, int n, char *states, struct err *err)
{
	const char *s = line;
	bool ok = take(&s, "(");

	for (int i = 0; ok && i < n; i++) {
		ok = (i == 0 || take_comma(&s)) && *s &&
		     strchr("DEF", toupper((unsigned char)*s)) != NULL;
		if (ok) {
			states[i] = (char)toupper((unsigned char)*s++);
		}
	}
	if (!ok || !take_close(&s) || !at_end(s)) {
		return parse_unexpected(line, "one of D, E, F a port", err);
	}
	return 0;
}

/* `-29.55` to -29550. At most three digits on either side of the point. */
static bool take_power(const char **s, int32_t *mdbm)
{
	bool negative = take(s, "-");
	int whole, scale = 100;

	if (!negative) {
		take(s, "+");
	}
	if (!parse_number(s, 0, 999, '\0', &whole)) {
		return false;
	}
	*mdbm = whole * 1000;
	if (take(s, ".")) {
		for (; isdigit((unsigned char)**s); (*s)++, scale /= 10) {
			*mdbm += (**s - '0') * scale;
		}
	}
	*mdbm = negative ? -*mdbm : *mdbm;
	return true;
}

int scpi_parse_powers(const char *line, int n, int32_t *mdbm, struct err *err)
{
	const char *s = line;
	bool ok = take(&s, "(");

	for (int i = 0; ok && i < n; i++) {
		ok = (i == 0 || take_comma(&s)) && take_power(&s, &mdbm[i]);
	}
	if (!ok || !take_close(&s) || !at_end(s)) {
		return parse_unexpected(line, "one power in dBm a port", err);
	}
	return 0;
}

void scpi_put_list(struct buf *b, const int32_t *ports, int n)
{
	buf_str(b, "(@");
	for (int i = 0; i < n; i++) {
		buf_printf(b, i ? ",%d" : "%d", (int)ports[i]);
	}
	buf_char(b, ')');
}
