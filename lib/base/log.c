/* Log lines; see log.h. */
#include "lib/base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "lib/base/clk.h"

static _Atomic int max_level = LOG_WARN;
static void (*line_sink)(enum log_level, const char *, const char *);

void log_set_level(enum log_level level)
{
	max_level = level;
}

void log_set_sink(void (*sink)(enum log_level, const char *, const char *))
{
	line_sink = sink;
}

/* One event is one line, whatever a device or a file put into it. */
static void clean(char *line)
{
	for (; *line; line++) {
		if ((unsigned char)*line < ' ' || *line == 0x7f) {
			*line = ' ';
		}
	}
}

void log_line(enum log_level level, const char *room, const char *fmt, ...)
{
	static const char *const names[] = { "error", "warn", "info", "debug" };
	char line[1024], when[32];
	va_list ap;

	if ((int)level > max_level) {
		return;
	}
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	clean(line);
	if (line_sink) {
		line_sink(level, room, line);
		return;
	}
	fprintf(stderr, "%s %s %s: %s\n",
		clk_iso(clk_wall_ns(), when, sizeof(when)), names[level], room,
		line);
}
