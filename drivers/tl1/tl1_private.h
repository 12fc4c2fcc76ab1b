/*
 * What the files of the TL1 switches have of each other: tl1_session.c talks,
 * tl1_switch.c reads, tl1_batch.c and tl1_ports.c change. For them alone; dialects see
 * tl1_switch.h.
 */
#ifndef WEFT_DRIVERS_TL1_TL1_PRIVATE_H
#define WEFT_DRIVERS_TL1_TL1_PRIVATE_H

#include "drivers/tl1/tl1_switch.h"

/* ---- tl1_session.c ------------------------------------------------------- */

extern const struct tcp_conf tl1_session;

/* Appends VERB:TID:AID:CTAG TAIL; to b. */
void tl1_put_command(struct buf *b, const struct tl1_command *c,
		     const char *tid, uint64_t tag);
/* Asks, after a log-in if one is due; the whole answer goes to next, which
 * must not keep it. A denial that a log-in or the device's name cures never
 * gets there. */
void tl1_ask(struct tl1_switch *s, const struct tl1_command *c,
	     void (*next)(struct tl1_switch *, const struct tl1_message *));
/* What a denial means and the device's remark, cut to size. */
void tl1_denied_text(const struct tl1_message *m, char *text, size_t size);
/* Ends the operation: `what` was denied. */
void tl1_fail_denied(struct tl1_switch *s, const char *what,
		     const struct tl1_message *m);
/* Frees the pages of an answer that is not whole. */
void tl1_forget_pages(struct tl1_switch *s);
void tl1_stop(struct driver_base *h);

/* ---- tl1_switch.c -------------------------------------------------------- */

/* Asks what is wanted now (all for a snapshot; map, and size if this session
 * was not asked for it yet, for a batch), then calls after. */
void tl1_start_reads(struct tl1_switch *s,
		     void (*after)(struct tl1_switch *s));
/* Place of a circuit in s->circuits, or -1. O(circuits). */
int tl1_find_circuit(const struct tl1_switch *s, struct optics_xc xc);

/* ---- tl1_ports.c --------------------------------------------------------- */

void tl1_port_set(struct driver_base *h);

/* ---- tl1_batch.c --------------------------------------------------------- */

void tl1_submit(struct driver_base *h);
/* Goes on with s->item, or with what is in the way of a REPLACE (-1). */
void tl1_next_item(struct tl1_switch *s);
/* Reads again what was confirmed, where that is due, and ends the batch. */
void tl1_end_batch(struct tl1_switch *s);
/* O(items). */
bool tl1_is_asked_for(const struct drv_batch *batch, struct optics_xc xc);

/* ---- tl1_multi_connect.c ---------------------------------------------------------- */

/* Sends one command for as many as it may of what is next. False: there is no
 * such command, or fewer than two fit into it; then nothing was done. */
bool tl1_bulk_begin(struct tl1_switch *s);
/* The commands for a run of items from `first`, and where it ends: `first`
 * when they go one by one. c lives until the next call. */
int tl1_bulk_explain(struct tl1_switch *s, const struct drv_batch *b,
		     int first, struct tl1_command c[2]);

#endif
