/*
 * Log lines for people: one event a line on stderr, with the room that
 * speaks. Levels are global and may be changed at run time.
 */
#ifndef WEFT_BASE_LOG_H
#define WEFT_BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Lines above this level are dropped. Default LOG_WARN. */
void log_set_level(enum log_level level);

/* Replaces the sink (default: stderr). NULL restores the default. */
void log_set_sink(void (*sink)(enum log_level, const char *room,
			       const char *line));

/* Control characters become blanks; lines are cut at 1023 bytes. */
void log_line(enum log_level level, const char *room, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define log_error(room, ...) log_line(LOG_ERROR, room, __VA_ARGS__)
#define log_warn(room, ...) log_line(LOG_WARN, room, __VA_ARGS__)
#define log_info(room, ...) log_line(LOG_INFO, room, __VA_ARGS__)
#define log_debug(room, ...) log_line(LOG_DEBUG, room, __VA_ARGS__)

#endif
