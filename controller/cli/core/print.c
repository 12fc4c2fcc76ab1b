/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line says: data on stdout (tables as wide as the terminal, pictures and
 * other files at once or not at all), messages, errors and their hints on stderr. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "controller/cli/core/private.h"
#include "lib/base/file.h"
#include "lib/base/number/units.h"
#include "lib/base/text.h"

#define LEAST_COLUMNS 60	/* narrower tables are not worth reading */
#define UNKNOWN_COLUMNS 80	/* of terminals that do not know their width */
/* What a person may read of a format for programs. */
#define TERMINAL_LINES 100
#define TERMINAL_BYTES 16384

void cli_report(const struct err *err)
{
	char text[ERR_MSG_MAX + ERR_FILE_MAX + 32], hint[ERR_FILE_MAX];

	progress_clock_stop();
	err_str(err, text, sizeof(text));
	text_clean(text);
	fprintf(stderr, "weft: %s\n", text);
	memcpy(hint, err->hint, sizeof(hint));
	text_clean(hint);
	if (hint[0]) {
		fprintf(stderr, "hint: %s\n", hint);
	}
}

/* A list that was full says in the hint how many errors it dropped. */
void cli_report_list(struct err_list *errs, struct err *last)
{
	for (int i = 0; i + 1 < errs->n; i++) {
		cli_report(&errs->v[i]);
	}
	if (errs->n > 0 && last) {
		*last = errs->v[errs->n - 1];
	}
	if (errs->n > 0 && errs->dropped > 0) {
		err_hint(last, "and %d more", errs->dropped);
	}
}

void cli_say(const struct cli *c, enum cli_talk talk, const char *fmt, ...)
{
	char text[4096];
	va_list ap;

	if (c->talk < talk) {
		return;
	}
	progress_clock_stop();
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_clean(text);
	fprintf(stderr, "weft: %s\n", text);
}

/* --color wins; "auto" follows the conventions of no-color.org and of dumb
 * terminals. */
bool cli_colour(const struct cli *c, int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (strcmp(c->colour, "auto") != 0) {
		return strcmp(c->colour, "always") == 0;
	}
	return isatty(fd) && !(no && *no) && term && strcmp(term, "dumb");
}

/* Set once, by -q and by --full and --wide; the only state of the command line that is not in
 * struct cli. */
static bool no_tables, any_width;

void cli_no_tables(void)
{
	no_tables = true;
}

void cli_any_width(void)
{
	any_width = true;
}

int cli_print_bytes(const char *data, size_t len, struct err *err)
{
	progress_clock_stop();
	if (no_tables) {
		return 0;
	}
	if (fwrite(data, 1, len, stdout) != len || fflush(stdout) != 0) {
		return err_errno(err, WEFT_EIO, errno, "standard output");
	}
	return 0;
}

static int refuse_terminal(const char *data, size_t len, struct err *err)
{
	size_t lines = 0;
	bool text = true;

	for (size_t i = 0; i < len; i++) {
		lines += data[i] == '\n';
		text = text && ((unsigned char)data[i] >= ' ' || data[i] == '\n' ||
				data[i] == '\t');
	}
	if (text && lines <= TERMINAL_LINES && len <= TERMINAL_BYTES) {
		return 0;
	}
	if (text && lines > TERMINAL_LINES) {
		err_set(err, WEFT_EUSAGE, "%zu lines, and standard output is a terminal", lines);
	} else {
		err_set(err, WEFT_EUSAGE, "%zu bytes%s, and standard output is a terminal", len,
			text ? "" : " that are no text");
	}
	err_hint(err, "give -o FILE, or -o - to print them");
	return err->code;
}

int cli_write_data(const char *path, const struct buf *b, struct err *err)
{
	int r = path || !isatty(STDOUT_FILENO) ? 0 : refuse_terminal(buf_cstr(b), b->len, err);

	return r ? r : file_write_atomic(path ? path : "-", b->data, b->len, FILE_PUBLIC, err);
}

int cli_check_svg(const char *path, struct err *err)
{
	const char *name = path ? strrchr(path, '/') : NULL, *end;

	name = name ? name + 1 : path;
	end = name ? strrchr(name, '.') : NULL;
	if (!end || strcasecmp(end, ".svg") == 0) {
		return 0;
	}
	err_set(err, WEFT_EUSAGE, "%s: pictures are written as SVG, not as %s", path, end + 1);
	err_hint(err, "name it %.*s.svg", (int)(end - path), path);
	return WEFT_EUSAGE;
}

int cli_write_svg(const char *path, const struct buf *svg, struct err *err)
{
	int r = cli_check_svg(path, err);

	return r ? r : cli_write_data(path, svg, err);
}

/* COLUMNS wins over the terminal, so that tests and pipes can ask for a
 * width. */
int cli_width(void)
{
	const char *text = getenv("COLUMNS");
	int columns = text ? atoi(text) : 0;
	struct winsize w;

	if (any_width) {
		return 0;
	}
	if (columns <= 0 && isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0) {
		columns = w.ws_col ? w.ws_col : UNKNOWN_COLUMNS;
	}
	return columns > 0 && columns < LEAST_COLUMNS ? LEAST_COLUMNS : columns;
}

int cli_print(struct out *o, struct err *err)
{
	struct buf b = { 0 };
	int r;

	out_set_width(o, cli_width());
	out_render(o, &b);
	r = cli_print_bytes(buf_cstr(&b), b.len, err);
	buf_fini(&b);
	out_free(o);
	return r;
}

int cli_print_unless(int r, struct out *o, struct err *err)
{
	if (r) {
		out_free(o);
		return r;
	}
	return cli_print(o, err);
}

void cli_out_gap(const struct cli *c, struct out *o, const char *key, double gap)
{
	if (c->format == OUT_TABLE) {
		out_fmt(o, key, "%.1f %%", gap * 100);
	} else {
		out_real(o, key, gap);
	}
}

void cli_out_ns(const struct cli *c, struct out *o, const char *key, int64_t ns)
{
	char text[64];

	if (c->format == OUT_TABLE) {
		out_str(o, key, unit_human(UNIT_NS, (double)ns, text, sizeof(text)));
		return;
	}
	snprintf(text, sizeof(text), "%s_ns", key);
	out_int(o, text, ns);
}
