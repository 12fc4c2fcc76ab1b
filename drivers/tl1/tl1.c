/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of TL1 devices: frames, headers, status lines, quoted lines, denial
 * codes.
 *
 * The reader is lenient about what stands around a message (echo, prompt, blank
 * lines, blanks) and strict about the message: without a header line and a
 * status line it is none. Bytes that no TL1 message holds end the session.
 */
#include "drivers/tl1/tl1.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"

/* ---- frames -------------------------------------------------------------- */

static bool is_text(uint8_t c)
{
	return (c >= 0x20 && c < 0x7f) || c == '\r' || c == '\n' || c == '\t';
}

/* Whether the byte at `at` begins its line, but for blanks. */
static bool begins_line(const uint8_t *data, size_t at)
{
	while (at > 0 && (data[at - 1] == ' ' || data[at - 1] == '\t')) {
		at--;
	}
	return at == 0 || data[at - 1] == '\n' || data[at - 1] == '\r';
}

int64_t tl1_frame(const uint8_t *data, size_t len, size_t from, void *arg)
{
	(void)arg;
	for (size_t i = from; i < len; i++) {
		if (!is_text(data[i])) {
			return WEFT_EDEVICE;
		}
		if ((data[i] == ';' || data[i] == '>' || data[i] == '<') && begins_line(data, i)) {
			return (int64_t)i + 1;
		}
	}
	return 0;
}

/* ---- reading a frame ----------------------------------------------------- */

/* The next line of a text that ends in a zero byte, without its end; NULL
 * after the last. Blanks before it are left out. */
static char *next_line(char **rest)
{
	char *line = *rest + strspn(*rest, " \t\r\n");
	size_t n = strcspn(line, "\r\n");

	if (*line == '\0') {
		return NULL;
	}
	*rest = line + n + (line[n] != '\0');
	line[n] = '\0';
	return line;
}

static void copy_word(char *out, size_t size, const char *word)
{
	size_t n = strcspn(word, " \t");

	snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1), word);
}

static const char *after_word(const char *s)
{
	s += strcspn(s, " \t");
	return s + strspn(s, " \t");
}

/* `   SID 26-11-21 09:30:00`; the name may hold blanks. */
static bool read_header(const char *line, struct tl1_message *m)
{
	size_t n = strlen(line);
	int d[6], used = 0;

	while (n > 0 && line[n - 1] == ' ') {
		n--;
	}
	if (n < 18 || line[n - 18] != ' ' ||
	    sscanf(line + n - 17, "%2d-%2d-%2d %2d:%2d:%2d%n", &d[0], &d[1],
		   &d[2], &d[3], &d[4], &d[5], &used) != 6 || used != 17) {
		return false;
	}
	n -= 18;
	snprintf(m->sid, sizeof(m->sid), "%.*s",
		 (int)(n < sizeof(m->sid) ? n : sizeof(m->sid) - 1), line);
	return true;
}

static bool read_tag(const char *word, uint64_t *tag)
{
	char *end;

	if (!isdigit((unsigned char)*word)) {
		return false;
	}
	errno = 0;
	*tag = strtoull(word, &end, 10);
	return errno == 0 && (*end == ' ' || *end == '\0');
}

/* The line after the header: `M  17 COMPLD`, `*C 3 REPT ALM OCH`. */
static bool read_status(const char *line, struct tl1_message *m)
{
	const char *tag = after_word(line), *word = after_word(tag);
	char status[16];

	if (strncmp(line, "M ", 2) == 0) {
		m->kind = TL1_RESPONSE;
		copy_word(status, sizeof(status), word);
		m->denied = strcmp(status, "DENY") == 0;
		m->more = strcmp(status, "PRTL") == 0;
		return read_tag(tag, &m->tag) &&
		       (m->denied || m->more || strcmp(status, "COMPLD") == 0);
	}
	if (*line == 'A' || *line == '*') {
		m->kind = TL1_AUTONOMOUS;
		snprintf(m->report, sizeof(m->report), "%s", word);
		return *word != '\0';
	}
	return false;
}

/* Takes the quotes and the escapes of quotes away, in place. */
static char *unquote(char *line)
{
	char *end = strrchr(line, '"'), *to = line;

	for (char *s = line + 1; s < end; s++) {
		if (*s == '\\' && s + 1 < end && (s[1] == '"' || s[1] == '\\')) {
			s++;
		}
		*to++ = *s;
	}
	*to = '\0';
	return line;
}

static bool is_code(const char *line)
{
	for (int i = 0; i < 4; i++) {
		if (!isupper((unsigned char)line[i])) {
			return false;
		}
	}
	return line[4] == '\0' || line[4] == ' ';
}

/* Free text between comment marks; other unquoted text counts as such. */
static void add_remark(struct tl1_message *m, const char *line)
{
	size_t have = strlen(m->remark), n;

	if (strncmp(line, "/*", 2) == 0) {
		line += 2 + strspn(line + 2, " ");
	}
	n = strlen(line);
	if (n >= 2 && strcmp(line + n - 2, "*/") == 0) {
		n -= 2;
	}
	while (n > 0 && line[n - 1] == ' ') {
		n--;
	}
	if (n > 0) {
		snprintf(m->remark + have, sizeof(m->remark) - have, "%s%.*s",
			 have ? " " : "", (int)n, line);
	}
}

/* Text that is quoted, or part of an answer that some devices leave unquoted. */
static void add_line(struct tl1_message *m, char *line, bool quoted)
{
	m->lines[m->n_lines++] = (struct tl1_line){ quoted ? unquote(line) : line, quoted };
	if (m->kind == TL1_AUTONOMOUS && m->n_lines == 1) {
		size_t have = strlen(m->report);

		snprintf(m->report + have, sizeof(m->report) - have, " %s", m->lines[0].text);
	}
}

/* Whether a comment is open behind this line. */
static bool read_body_line(struct tl1_message *m, char *line, bool in_comment)
{
	bool comment = in_comment || strncmp(line, "/*", 2) == 0;

	if (!comment && line[0] == '"' && strrchr(line, '"') > line) {
		add_line(m, line, true);
	} else if (m->denied && !m->code[0] && is_code(line)) {
		copy_word(m->code, sizeof(m->code), line);
	} else {
		add_remark(m, line);
		if (!comment && !m->denied && m->kind == TL1_RESPONSE) {
			add_line(m, line, false);
		}
	}
	return comment && !strstr(line, "*/");
}

/* A quoted text that its line does not end, and that goes on behind a comma. */
static bool goes_on(const char *line)
{
	size_t n = strlen(line), quotes = 0;

	for (const char *s = line; *s; s++) {
		if (*s == '\\' && s[1]) {
			s++;
		} else {
			quotes += *s == '"';
		}
	}
	return line[0] == '"' && quotes % 2 == 1 && line[n - 1] == ',';
}

static char *next_body_line(char **rest)
{
	char *line = next_line(rest), *more;

	while (line && goes_on(line) && (more = next_line(rest))) {
		memmove(line + strlen(line), more, strlen(more) + 1);
	}
	return line;
}

static int read_text(struct tl1_message *m, struct err *err)
{
	char *rest = m->text, *line;
	bool header = false, status = false, in_comment = false;

	while (!status && (line = next_line(&rest))) {
		if (header) {
			status = read_status(line, m);
		}
		if (!status && read_header(line, m)) {
			header = true;
		}
	}
	if (!status) {
		return err_set(err, WEFT_EDEVICE, "%s",
			       header ? "a message without its status line" :
			       "a message without its header line");
	}
	while ((line = next_body_line(&rest))) {
		in_comment = read_body_line(m, line, in_comment);
	}
	return 0;
}

static size_t count_lines(const uint8_t *frame, size_t len)
{
	size_t n = 1;

	for (size_t i = 0; i < len; i++) {
		n += frame[i] == '\n' || frame[i] == '\r';
	}
	return n;
}

int tl1_parse(const uint8_t *frame, size_t len, struct tl1_message *m, struct err *err)
{
	int rc;

	memset(m, 0, sizeof(*m));
	if (len == 0 || memchr(frame, 0, len)) {
		return err_set(err, WEFT_EDEVICE, "the reply is garbage");
	}
	if (frame[len - 1] == '<') {
		m->kind = TL1_ACK;
		return 0;
	}
	m->text = x_ndup((const char *)frame, len - 1);
	m->lines = x_new(count_lines(frame, len), sizeof(*m->lines));
	rc = read_text(m, err);
	if (rc) {
		tl1_message_fini(m);
	} else {
		m->more |= frame[len - 1] == '>';
	}
	return rc;
}

void tl1_message_fini(struct tl1_message *m)
{
	free(m->lines);
	free(m->text);
	memset(m, 0, sizeof(*m));
}

/* ---- denials ------------------------------------------------------------- */

static const struct {
	char code[TL1_CODE_MAX];
	const char *words;
} codes[] = {
	{ "ENEQ", "not equipped" },
	{ "IBEX", "block of data too long" },
	{ "IBMS", "block of data missing" },
	{ "ICNV", "command not valid" },
	{ "IDNV", "data not valid" },
	{ "IIAC", "no such port or connection" },
	{ "IICM", "no such command" },
	{ "IICT", "bad correlation tag" },
	{ "IIPG", "bad parameter group" },
	{ "IISP", "bad punctuation" },
	{ "IITA", "bad target name" },
	{ "INUP", "unknown parameter" },
	{ "IPEX", "parameter too much" },
	{ "IPMS", "parameter missing" },
	{ "IPNV", "parameter not valid" },
	{ "ISCH", "bad character" },
	{ "ISPC", "bad punctuation" },
	{ "MERR", "several errors" },
	{ "PICC", "command not permitted" },
	{ "PIUC", "user not permitted" },
	{ "PIUI", "user not known or not logged in" },
	{ "SARB", "all resources are busy" },
	{ "SCSN", "sequence of commands not valid" },
	{ "SDBE", "internal data base error" },
	{ "SDNR", "data not ready" },
	{ "SNVS", "not in a valid state" },
	{ "SRAC", "requested access is configured" },
	{ "SROF", "the operation failed" },
	{ "SROU", "done already" },
	{ "SSRE", "system resources are exceeded" },
	{ "SWFA", "working unit has failed" },
};

const char *tl1_code_words(const char *code)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (strcmp(codes[i].code, code) == 0) {
			return codes[i].words;
		}
	}
	return "";
}

enum drv_class_of_error tl1_code_class(const char *code)
{
	/* By the first letter: input, privilege, equipage, status. */
	return code[0] && strchr("IPE", code[0]) ? DRV_ERR_CONFIGURATION : DRV_ERR_STATE;
}

/* ---- values -------------------------------------------------------------- */

/* Where the field at s ends: at a comma or colon outside of quotes. */
static const char *field_end(const char *s)
{
	bool quoted = false;

	for (; *s && (quoted || !strchr(",:", *s)); s++) {
		quoted = *s == '"' && (quoted || s[-1] == '=') ? !quoted : quoted;
	}
	return s;
}

/* The end of a value: a colon is part of one. */
static const char *value_end(const char *s)
{
	const char *end = field_end(s);

	while (*end == ':') {
		end = field_end(end + 1);
	}
	return end;
}

bool tl1_value(const char *text, const char *name, char *value, size_t size)
{
	size_t n = strlen(name), len;

	value[0] = '\0';
	for (const char *s = text; *s; s = field_end(s), s += *s != 0) {
		const char *from = s + n + 1;

		if (strncasecmp(s, name, n) != 0 || s[n] != '=') {
			continue;
		}
		len = (size_t)(value_end(from) - from);
		if (len >= 2 && from[0] == '"' && from[len - 1] == '"') {
			from++;
			len -= 2;
		}
		snprintf(value, size, "%.*s", (int)(len < size ? len : size - 1), from);
		return true;
	}
	return false;
}
