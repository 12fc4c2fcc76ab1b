/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading what a SONiC optical switch prints: the frame that a shell session
 * puts around a command's output, and rows of its tables. Pure text work that
 * trusts nothing. Private to drivers and emulators.
 *
 * A command goes out as `COMMAND 2>&1; echo weft-end:TAG:$?`; its output and
 * then a line `weft-end:TAG:STATUS` come back. An echo of the command has no
 * such line, since its own begins with the command.
 *
 * Tables: those of `show ocs`, SONiC's high level design of optical circuit
 * switches, section 9.2; and those of the CLI that sonic-cli-gen makes from
 * sonic-ocs.yang, `show ocs-port` and others, as sonic-ocs/sonic-buildimage shows
 * them in its instructions for ocs-kvm.
 */
#ifndef WEFT_DRIVERS_SONIC_SONIC_H
#define WEFT_DRIVERS_SONIC_SONIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/core/batch.h"
#include "drivers/core/driver.h"
#include "drivers/core/driver_base.h"
#include "drivers/core/xc_map.h"
#include "lib/base/vec.h"

#define SONIC_END "weft-end:"
/* The longest output: a table of factory losses of 384 x 384 pairs. */
#define SONIC_MAX_FRAME (16 << 20)
#define SONIC_MAX_PORT 4096
#define SONIC_MAX_COLUMNS 32

/* Length of the first frame, up to the end of its last line: 0 when more
 * bytes are needed, negative at a byte that no command prints. The first
 * `from` bytes were asked about before; arg is not used. O(len - from). */
int64_t sonic_frame(const uint8_t *data, size_t len, size_t from, void *arg);

/* Where the output ends within a whole frame, and its last line's numbers.
 * WEFT_EDEVICE. */
int sonic_parse_end(const uint8_t *frame, size_t len, size_t *text_len,
		    uint64_t *tag, int *status, struct err *err);

/* Rows begin with a number. Each parser returns 1 for a row, 0 for a line that is
 * none, WEFT_EDEVICE for a row that cannot be read; the line is cut into its
 * columns. Ports `12A` and `32B` are input 11 and output 31; letters may be small.
 * A state is two words, of a side each, or in a CLI made from YANG one. */
int sonic_parse_config(char *line, struct optics_xc *xc, struct err *err);
int sonic_parse_status(char *line, struct optics_xc *xc, enum drv_state *state, struct err *err);
int sonic_parse_loss(char *line, struct optics_xc *xc, int32_t *loss_mdb, struct err *err);
/* Of the tables of ports: the last column, behind a label that may
 * hold blanks. */
int sonic_parse_port(char *line, bool *is_out, int *index, const char **word, struct err *err);

/* Whether a line is a row; if not, whether it is a heading, a rule or blank. */
bool sonic_is_row(const char *line);
bool sonic_is_heading(const char *line);

/* `12A-32B`, from either side. */
bool sonic_parse_pair(const char *text, struct optics_xc *xc);

/*
 * What the files of `sonic-ocs` have of each other: sonic_read.c talks and
 * reads the tables, sonic_batch.c changes them, sonic_ocs.c is the driver.
 */

struct sonic_xc {
	struct optics_xc xc;
	enum drv_state state;
	bool configured, seen;	/* in either table */
};

typedef VEC(struct sonic_xc) sonic_xcs;

struct sonic {
	struct driver_base h;
	int64_t gap_ms, chunk, settle_ms, tune_ms;
	char sudo[8];
	bool want_losses;
	int32_t *losses;	/* [in * n_out + out], -1: not known */
	uint64_t tag;
	uint64_t ready_session;	/* the shell is set up, the size right */
	bool yang;		/* its CLI is made from YANG: else `show ocs` */
	bool asked_yang;	/* the question that is out tells */
	void (*next)(struct sonic *s, char *text, int status);
	int at_read;
	unsigned asked;		/* bits of the reads that are out */
	void (*after_reads)(struct sonic *s);
	sonic_xcs xcs;		/* of both tables */
	struct xc_map map;
	struct batch batch;
	int n_in, n_out;	/* while counting */
	bool any_change;	/* that the tables may show later */
	size_t clearing;	/* of xcs, before a REPLACE */
	int64_t until_ns;	/* for tuning */
	char code[16], text[DRV_TEXT_MAX];	/* of a command that failed */
};

/* ---- sonic_read.c -------------------------------------------------------- */

extern const struct tcp_conf sonic_session;

/* Runs a command in the device's shell. next gets its output, which it may
 * change, and exit status. */
void sonic_ask(struct sonic *s, const char *command, void (*next)(struct sonic *, char *, int));

/* Everything that is wanted now, or the two tables of circuits alone. */
enum sonic_reads { SONIC_READ_ALL, SONIC_READ_MAP };

/* Reads, then calls after. An answer that makes no sense ends the
 * operation. */
void sonic_start_reads(struct sonic *s, enum sonic_reads what, void (*after)(struct sonic *));
/* The two questions about circuits, as they are asked. */
const char *sonic_map_command(const struct sonic *s, int i);
/* The circuit as read last, or NULL. O(circuits). */
struct sonic_xc *sonic_find_xc(const struct sonic *s, struct optics_xc xc);

/* ---- sonic_batch.c ------------------------------------------------------- */

/* base_ops.port_set: the device's size is checked first, as before a batch. */
void sonic_port_set(struct driver_base *h);

/* base_ops.submit, and the class's explain. */
void sonic_submit(struct driver_base *h);
void sonic_explain(struct drv *dev, const struct drv_batch *batch, drv_trace_fn fn, void *arg);

#endif
