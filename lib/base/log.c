/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines; see log.h. */
#include "lib/base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/text.h"

/* Every room that speaks; tests/lint/rooms compares. Others are "other". */
static const char *const rooms[] = {
	"access", "apply", "drivers", "emulators", "jobs", "light", "rpc",
	"weftd", "other",
};

#define N_ROOMS ((int)(sizeof(rooms) / sizeof(rooms[0])))

static const char *const level_names[] = {
	[LOG_ERROR] = "error", [LOG_WARN] = "warn",
	[LOG_INFO] = "info", [LOG_DEBUG] = "debug",
};

static _Atomic int levels[N_ROOMS] = {
	LOG_WARN, LOG_WARN, LOG_WARN, LOG_WARN, LOG_WARN,
	LOG_WARN, LOG_WARN, LOG_WARN, LOG_WARN,
};
static log_sink line_sink;

const char *log_level_name(enum log_level level)
{
	return level_names[level];
}

void log_set_level(enum log_level level)
{
	for (int i = 0; i < N_ROOMS; i++) {
		levels[i] = level;
	}
}

const char *log_room(int i, enum log_level *level)
{
	if (i >= N_ROOMS) {
		return NULL;
	}
	*level = (enum log_level)levels[i];
	return rooms[i];
}

static int find(const char *const *names, int n, const char *word, size_t len)
{
	for (int i = 0; i < n; i++) {
		if (strlen(names[i]) == len && memcmp(names[i], word, len) == 0) {
			return i;
		}
	}
	return -1;
}

/* One word of a list, to the levels that it sets. */
static int take_word(const char *word, size_t len, int fresh[N_ROOMS], struct err *err)
{
	const char *is = memchr(word, '=', len);
	const char *name = is ? is + 1 : word;
	int level = find(level_names, LOG_DEBUG + 1, name, len - (size_t)(name - word));
	int room = is ? find(rooms, N_ROOMS, word, (size_t)(is - word)) : 0;

	if (level < 0) {
		return err_set(err, WEFT_EINVAL, "\"%.*s\": not error, warn, "
			       "info or debug, nor one of these behind ROOM=",
			       (int)len, word);
	}
	if (room < 0) {
		err_set(err, WEFT_EINVAL, "\"%.*s\" is no room that logs", (int)(is - word), word);
		err_hint(err, "access, apply, drivers, emulators, jobs, light, "
			 "rpc, weftd; other is the rest");
		return err->code;
	}
	for (int i = is ? room : 0; i < (is ? room + 1 : N_ROOMS); i++) {
		fresh[i] = level;
	}
	return 0;
}

int log_set_levels(const char *spec, struct err *err)
{
	int fresh[N_ROOMS], r = 0;

	for (int i = 0; i < N_ROOMS; i++) {
		fresh[i] = levels[i];
	}
	for (const char *p = spec; r == 0; p++) {
		size_t len = strcspn(p, ",");

		r = take_word(p, len, fresh, err);
		p += len;
		if (!*p) {
			break;
		}
	}
	for (int i = 0; i < N_ROOMS && r == 0; i++) {
		levels[i] = fresh[i];
	}
	return r;
}

/* Rooms are few and named by constants: the loop is short. */
static bool is_wanted(enum log_level level, const char *room)
{
	int i = find(rooms, N_ROOMS - 1, room, strlen(room));

	return (int)level <= levels[i < 0 ? N_ROOMS - 1 : i];
}

void log_set_sink(log_sink sink)
{
	line_sink = sink;
}

static void log_va(enum log_level level, const char *room, const struct log_field *fields,
		   int n_fields, const char *fmt, va_list ap)
{
	char line[1024], when[32];

	vsnprintf(line, sizeof(line), fmt, ap);
	text_clean(line);	/* one event is one line */
	if (line_sink) {
		line_sink(level, room, line, fields, n_fields);
		return;
	}
	fprintf(stderr, "%s %s %s: %s\n", clk_iso(clk_wall_ns(), when, sizeof(when)),
		level_names[level], room, line);
}

void log_line(enum log_level level, const char *room, const char *fmt, ...)
{
	va_list ap;

	if (is_wanted(level, room)) {
		va_start(ap, fmt);
		log_va(level, room, NULL, 0, fmt, ap);
		va_end(ap);
	}
}

void log_with(enum log_level level, const char *room, const struct log_field *fields, int n_fields,
	      const char *fmt, ...)
{
	va_list ap;

	if (is_wanted(level, room)) {
		va_start(ap, fmt);
		log_va(level, room, fields, n_fields, fmt, ap);
		va_end(ap);
	}
}
