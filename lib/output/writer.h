/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output writer: a command describes its result once, as nested objects
 * and arrays, and gets table, JSON and YAML for free. JSON and YAML carry
 * every field; table shows what people read:
 *  - an object's scalar fields as "name  value" lines,
 *  - an array of objects as columns (header from the keys of its rows),
 *  - an array of scalars joined by ", ",
 *  - nested objects and arrays under a heading, in the order written.
 *
 * JSON names are stable: snake_case, never removed within a major version.
 */
#ifndef WEFT_LIB_OUTPUT_WRITER_H
#define WEFT_LIB_OUTPUT_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* OUT_JSON_LINE: as OUT_JSON, but on one line without blanks, for streams of
 * objects. No user asks for it by name: out_parse_format gives OUT_JSON. */
enum out_format { OUT_TABLE, OUT_JSON, OUT_YAML, OUT_JSON_LINE };

struct out;

/* A writer in this format. The root is an object that is already open.
 * out_free(NULL) is fine. */
struct out *out_new(enum out_format format);
void out_free(struct out *o);

/* Tables are at most so many columns wide, as far as can be: long texts go on
 * in the next line of their column, notes further in. 0, as after out_new: as wide as they are. */
void out_set_width(struct out *o, int columns);

/* "table", "json" or "yaml". WEFT_EUSAGE otherwise. */
int out_parse_format(const char *name, enum out_format *format, struct err *err);

/* Opens an object or array; key is NULL inside an array. Close with
 * out_end(). Keys and strings are copied. */
void out_object(struct out *o, const char *key);
void out_array(struct out *o, const char *key);
void out_end(struct out *o);

/*
 * Scalars; key is NULL inside an array. A NULL string writes null. Text may be
 * any bytes: formats escape or replace what is not printable UTF-8. Reals are
 * written with the shortest digits that read back as the same double by JSON
 * and YAML, with six
 * by tables; what is not finite is null in JSON and YAML.
 */
void out_str(struct out *o, const char *key, const char *value);
void out_fmt(struct out *o, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void out_int(struct out *o, const char *key, int64_t value);
void out_real(struct out *o, const char *key, double value);
void out_bool(struct out *o, const char *key, bool value);
void out_null(struct out *o, const char *key);

/* The next key, with everything below it, is left out of tables (too long, or
 * for programs only). Holds for one call. */
void out_machine_only(struct out *o);
/* The text is shown in tables only (a heading or a remark), as a line of its
 * own where it stands among the fields, behind the rows of an array. */
void out_note(struct out *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Renders everything into b, ending in a newline. All objects and arrays
 * but the root must be closed (an assertion otherwise). */
void out_render(struct out *o, struct buf *b);

/* JSON helper for others that write JSON: appends s quoted and escaped;
 * invalid UTF-8 bytes become U+FFFD. */
void out_json_quote(struct buf *b, const char *s);

#endif
