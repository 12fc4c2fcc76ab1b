/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines for people: one event a line on stderr, with the room that
 * speaks. Levels are global, one for each room, and may be changed at run time
 * from any thread.
 */
#ifndef WEFT_LIB_BASE_LOG_H
#define WEFT_LIB_BASE_LOG_H

#include "lib/base/err.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* "error", "warn", "info", "debug". */
const char *log_level_name(enum log_level level);

/* Lines above this level are dropped, whichever room speaks. Default
 * LOG_WARN. */
void log_set_level(enum log_level level);

/* "debug", "drivers=debug,rpc=error" or "warn,jobs=info": a level alone is for
 * all rooms, those that are not named stay as they are. All of it is taken or
 * nothing. WEFT_EINVAL names the word that is no level or room. */
int log_set_levels(const char *spec, struct err *err);

/* The i-th room that can have a level of its own, and that level; NULL behind
 * the last one. */
const char *log_room(int i, enum log_level *level);

/* What a line is about, for those who filter: "device", "change". */
struct log_field {
	const char *name, *value;
};

/* Replaces the sink (default: stderr, without fields). NULL restores the
 * default. Threads may call it at the same time. */
typedef void (*log_sink)(enum log_level level, const char *room, const char *line,
			 const struct log_field *fields, int n_fields);
void log_set_sink(log_sink sink);

/* Control characters become blanks; lines are cut at 1023 bytes. */
void log_line(enum log_level level, const char *room, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void log_with(enum log_level level, const char *room, const struct log_field *fields, int n_fields,
	      const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#define log_error(room, ...) log_line(LOG_ERROR, room, __VA_ARGS__)
#define log_warn(room, ...) log_line(LOG_WARN, room, __VA_ARGS__)
#define log_info(room, ...) log_line(LOG_INFO, room, __VA_ARGS__)
#define log_debug(room, ...) log_line(LOG_DEBUG, room, __VA_ARGS__)

#endif
