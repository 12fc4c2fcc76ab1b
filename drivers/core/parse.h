/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of the texts that devices print, whatever the dialect: numbers, lines,
 * columns. Pure text work that trusts nothing: input is what came over a wire.
 * Private to drivers and emulators.
 */
#ifndef WEFT_DRIVERS_CORE_PARSE_H
#define WEFT_DRIVERS_CORE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

/* A whole number from min to max followed by `end` (any byte when 0); moves
 * *s behind it. False, with *s as it was, when there is none. */
bool parse_number(const char **s, int min, int max, char end, int *out);

/* A decimal number in dBm or dB, the whole text, to thousandths; digits beyond
 * the third are dropped. False when it is none, or 1000 or more. */
bool parse_milli(const char *text, int32_t *milli);

/* Cuts the next line off *rest, without its CR and LF; NULL at the end. */
char *parse_line(char **rest);

/* Cuts a line at blanks, in place; how many of `max` columns there are. What
 * comes after the last of them is left out. O(line). */
int parse_columns(char *line, char **columns, int max);

/* Copies the first line that is not blank, cut to size. */
void parse_first_line(const char *text, char *out, size_t size);

/* WEFT_EDEVICE, "expected X, the device said 'Y'": at most 60 bytes of the
 * text, with a question mark for each that cannot be printed. */
int parse_unexpected(const char *text, const char *expected, struct err *err);

#endif
