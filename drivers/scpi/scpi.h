/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the replies of the Polatis SCPI dialect. Every function takes one
 * reply line without its terminator, trusts nothing, and says WEFT_EDEVICE
 * with what it expected and what came. Private to drivers and emulators.
 */
#ifndef WEFT_DRIVERS_SCPI_SCPI_H
#define WEFT_DRIVERS_SCPI_SCPI_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Highest port number on the wire; ports start at 1. */
#define SCPI_MAX_PORT 8192
/* A full map of that many ports, with room to spare. */
#define SCPI_MAX_LINE (128 << 10)

struct scpi_pairs {
	int n;
	int32_t *in, *out;	/* device numbers, from 1 */
};

/* The reply without blanks around it and the quotes that some put it in; in
 * place. */
char *scpi_plain(char *line);
/* A command that comes back instead of a reply, since the device echoes. */
bool scpi_is_echo(const char *line);

/* `(@1,2),(@17,18)`: lists of equal length, numbers 1..SCPI_MAX_PORT; blanks
 * may stand between them. An empty map is `(@),(@)` or `<none>`; an empty reply is
 * none, since it may be another question's. */
int scpi_parse_pairs(const char *line, struct scpi_pairs *pairs, struct err *err);
void scpi_pairs_fini(struct scpi_pairs *pairs);

/* `-222,"Data out of range"`, `+0,"No error"`, also without quotes. text holds
 * size bytes. */
int scpi_parse_error(const char *line, int *code, char *text, int size, struct err *err);

/* `16,16`. */
int scpi_parse_size(const char *line, int *n_in, int *n_out, struct err *err);

/* `Polatis,I-OST-24x24-LU1-DMHNS,002414,6.5.2.18`: the size is part of the
 * model; `32xCC` is an any-to-any switch of 32 ports (n_out = n_in). */
int scpi_parse_identity(const char *line, int *n_in, int *n_out, bool *any_to_any, struct err *err);

/* `(D,E,F)`, exactly n letters in either case, into states[0..n-1]. */
int scpi_parse_states(const char *line, int n, char *states, struct err *err);

/* `(-29.55,-30.05)`, exactly n powers in dBm, into milli-dBm. */
int scpi_parse_powers(const char *line, int n, int32_t *mdbm, struct err *err);

/* Appends `(@1,2,3)`. */
void scpi_put_list(struct buf *b, const int32_t *ports, int n);

#endif
