/*
 * Reading what a SONiC optical switch prints: the frame that a shell session
 * puts around a command's output, and rows of the tables of `show ocs`. Pure
 * text work that trusts nothing. Private to drivers and emulators.
 *
 * A command goes out as `COMMAND 2>&1; echo weft-end:TAG:$?`; its output and
 * then a line `weft-end:TAG:STATUS` come back. An echo of the command has no
 * such line, since its own begins with the command.
 *
 * Tables: SONiC's high level design of optical circuit switches, section 9.2.
 */
#ifndef WEFT_DRIVERS_SONIC_SONIC_H
#define WEFT_DRIVERS_SONIC_SONIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/core/driver.h"

#define SONIC_END "weft-end:"
/* The longest output: a table of factory losses of 384 x 384 pairs. */
#define SONIC_MAX_FRAME (16 << 20)
#define SONIC_MAX_PORT 4096
#define SONIC_MAX_COLUMNS 8

/* Length of the first frame, up to the end of its last line: 0 when more
 * bytes are needed, negative at a byte that no command prints. The first
 * `from` bytes were asked about before; arg is not used. O(len - from). */
int64_t sonic_frame(const uint8_t *data, size_t len, size_t from, void *arg);

/* Where the output ends within a whole frame, and its last line's numbers.
 * WEFT_EDEVICE. */
int sonic_parse_end(const uint8_t *frame, size_t len, size_t *text_len,
		    uint64_t *tag, int *status, struct err *err);

/* Cuts the next line off *rest, without its terminator; NULL at the end. */
char *sonic_line(char **rest);

/* Rows. Each returns 1 for a row, 0 for a heading, a rule or a blank line,
 * WEFT_EDEVICE for anything else; the line is cut into its columns. Ports
 * `12A` and `32B` are input 11 and output 31. */
int sonic_parse_config(char *line, struct optics_xc *xc, struct err *err);
int sonic_parse_status(char *line, struct optics_xc *xc, enum drv_state *state,
		       struct err *err);
int sonic_parse_loss(char *line, struct optics_xc *xc, int32_t *loss_mdb,
		     struct err *err);
/* Of `show ocs port config` and `status`: the last column. */
int sonic_parse_port(char *line, bool *is_out, int *index, const char **word,
		     struct err *err);

/* `12A-32B`. */
bool sonic_parse_pair(const char *text, struct optics_xc *xc);

#endif
