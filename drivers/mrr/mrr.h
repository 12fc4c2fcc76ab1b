/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the `mrr-reg` driver share: its session (mrr.c), reading
 * (mrr_read.c), loading (mrr_load.c), and resonators that do not hold their
 * wave (mrr_locks.c). Private to them.
 */
#ifndef WEFT_DRIVERS_MRR_MRR_H
#define WEFT_DRIVERS_MRR_MRR_H

#include "drivers/core/driver_base.h"
#include "drivers/core/tcp_session.h"
#include "drivers/mrr/mrr_protocol.h"

#define FRAMES_OUT 16

struct mrr_slot {
	uint8_t regs[MRR_SLOT_REGISTERS];	/* as last read */
	const struct ring_program *want;	/* submit: NULL when it is to end dark */
	bool staged;			/* submit: it changes */
	uint8_t *bank;			/* its active bank, as read */
};

struct mrr {
	struct driver_base h;
	int64_t window, lock_ms;
	uint32_t seq;
	uint8_t regs[MRR_REGISTERS];	/* as last read */
	int n_slots;
	struct mrr_slot slots[MRR_MAX_SLOTS];
	/* What to do with the answer to the question that is out. */
	void (*next)(struct mrr *m, const struct mrr_frame *f);
	/* Reading all slots' registers: asked for, answered, what then. */
	int slots_asked, slots_answered;
	void (*table_read)(struct mrr *m);
	/* A bank on its way: whose, bytes asked for, bytes answered. */
	int at_slot;
	uint32_t total, asked, answered, frame_bytes;
	void (*moved)(struct mrr *m);	/* all banks */
	uint32_t boots, generation;	/* as the operation began */
	bool committed, commit_out;	/* (or relocked) sent; not answered yet */
	/* Why the submit is to be refused. */
	char why[DRV_TEXT_MAX], why_code[16];
	enum drv_class_of_error why_class;
	enum drv_evidence why_evidence;
	uint32_t boots_seen;		/* by any operation; */
	bool was_read;			/* once there was one */
	/* The session and the start that were asked for events. */
	uint64_t heard_session;
	uint32_t heard_boots;
	bool events_out;		/* that question is out */
	/* A table of parts on its way: page, what then, what it held. */
	uint16_t parts_page;
	void (*parts_read)(struct mrr *m);
	struct ring_fault *parts;
	int n_parts;
	int64_t polls;
};

static inline uint32_t mrr_slot_reg(const struct mrr_slot *s, enum mrr_slot_register r)
{
	return mrr_get32(s->regs + r);
}

static inline bool mrr_in_use(const struct mrr_slot *s)
{
	return mrr_slot_reg(s, MRR_SLOT_STATUS) & MRR_HAS_PROGRAM;
}

static inline uint32_t mrr_reg(const struct mrr *m, enum mrr_register r)
{
	return mrr_get32(m->regs + r);
}

/* ---- mrr.c: the session ---------------------------------------------------- */

/* Ends the operation under way. */
void mrr_end(struct mrr *m, int rc, const struct err *err);
/* Ends the operation and the session. What was committed stays unknown. */
void mrr_give_up(struct mrr *m, struct err *err);
void mrr_give_up_text(struct mrr *m, enum weft_err code, const char *text);
/* Ends a submit that left everything as it was. */
void mrr_refuse(struct mrr *m, enum drv_evidence e,
		enum drv_class_of_error c, const char *code, const char *text);
/* The same by m->why, before anything was committed; but a controller that
 * restarted forgot what was staged, and then that is why. */
void mrr_refuse_unless_restarted(struct mrr *m);
/* The device started again since the operation began: ends it, with an error. */
bool mrr_has_restarted(struct mrr *m);
/* A part that this ring has. */
bool mrr_is_part(const struct mrr *m, const struct ring_fault *d);
/* Questions; the answer goes to m->next. */
void mrr_ask(struct mrr *m, enum mrr_op op, uint16_t page, uint16_t offset,
	     const void *data, uint32_t len);
void mrr_ask_read(struct mrr *m, uint16_t page, uint16_t offset, uint32_t bytes);

/* ---- mrr_read.c ------------------------------------------------------------- */

/* The device's registers, to next(). Keeps them; false when they were not fit
 * and the operation ended over it. */
void mrr_read_registers(struct mrr *m, void (*next)(struct mrr *, const struct mrr_frame *));
bool mrr_take_registers(struct mrr *m, const struct mrr_frame *f);
/* The device's registers and those of all slots in use or staged, then
 * done(). */
void mrr_read_table(struct mrr *m, void (*done)(struct mrr *));
/* The second half of it: the slots'. */
void mrr_read_slots(struct mrr *m);
/* The active banks of all slots in use, then moved(). */
void mrr_read_banks(struct mrr *m, void (*moved)(struct mrr *));
/* A bank of m->at_slot moves in pieces, from its first byte on. */
void mrr_begin_bank(struct mrr *m, uint32_t total);
/* Bytes of the piece that begins at byte `at`, and the page that it is on. */
uint32_t mrr_piece(const struct mrr *m, uint32_t at);
uint16_t mrr_bank_page(const struct mrr *m, enum mrr_bank bank, uint32_t at);
void mrr_snapshot(struct driver_base *h);

/* ---- mrr_locks.c ------------------------------------------------------------ */

/* Settings of all programs that are not locked. */
uint32_t mrr_n_unlocked(const struct mrr *m);
/* The first of them as text; there must be one. */
void mrr_lock_words(const struct mrr *m, char *text, size_t size);
/* The last of a snapshot: what has failed, what is lost. Ends it. */
void mrr_read_failures(struct mrr *m);
/* Resonators still search, and may: asks again in a moment, to go on with
 * next(), and is true. */
bool mrr_wait_for_locks(struct mrr *m, void (*next)(struct mrr *));
void mrr_recover(struct driver_base *h);

/* ---- mrr_load.c ------------------------------------------------------------- */

void mrr_submit(struct driver_base *h);
void mrr_explain(struct drv *dev, const struct drv_batch *batch, drv_trace_fn fn, void *arg);

#endif
