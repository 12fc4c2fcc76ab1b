/*
 * What the files of `sonic-ocs` have of each other: sonic_read.c talks and
 * reads the tables, sonic_batch.c changes them, sonic_ocs.c is the driver.
 */
#ifndef WEFT_DRIVERS_SONIC_SONIC_OCS_H
#define WEFT_DRIVERS_SONIC_SONIC_OCS_H

#include "drivers/core/batch.h"
#include "drivers/core/driver_base.h"
#include "drivers/core/xc_map.h"
#include "drivers/sonic/sonic.h"
#include "lib/base/vec.h"

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
	void (*next)(struct sonic *s, char *text, int status);
	int at_read;
	void (*after_reads)(struct sonic *s);
	sonic_xcs xcs;		/* of both tables */
	struct xc_map map;
	struct batch batch;
	int n_in, n_out;	/* while counting */
	bool any_add;
	int64_t until_ns;	/* for tuning */
	char code[16], text[DRV_TEXT_MAX];	/* of a command that failed */
};

/* ---- sonic_read.c -------------------------------------------------------- */

extern const struct tcp_conf sonic_session;

/* Runs a command in the device's shell. next gets its output, which it may
 * change, and exit status. */
void sonic_ask(struct sonic *s, const char *command,
	       void (*next)(struct sonic *, char *, int));
/* The first line of an answer that says something. */
void sonic_first_words(const char *text, char *out, size_t size);

/* Everything that is wanted now, or the two tables of circuits alone. */
enum sonic_reads { SONIC_READ_ALL, SONIC_READ_MAP };

/* Reads, then calls after. An answer that makes no sense ends the
 * operation. */
void sonic_start_reads(struct sonic *s, enum sonic_reads what,
		       void (*after)(struct sonic *));
/* The two questions about circuits, as they are asked. */
const char *sonic_map_command(int i);
/* The circuit as read last, or NULL. O(circuits). */
struct sonic_xc *sonic_find_xc(const struct sonic *s, struct optics_xc xc);

/* ---- sonic_ports.c ------------------------------------------------------- */

void sonic_port_set(struct driver_base *h);

/* ---- sonic_batch.c ------------------------------------------------------- */

void sonic_submit(struct driver_base *h);
void sonic_explain(struct drv *dev, const struct drv_batch *batch,
		   drv_trace_fn fn, void *arg);

#endif
