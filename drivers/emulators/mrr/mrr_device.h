/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulated ring: what is shared by its registers (mrr_device.c), the player of
 * its programs (mrr_light.c), its faults (mrr_fail.c), its locks that drift
 * (mrr_drift.c) and the order of its tunings (mrr_tune.c). Private to
 * emulators.
 */
#ifndef WEFT_DRIVERS_EMULATORS_MRR_MRR_H
#define WEFT_DRIVERS_EMULATORS_MRR_MRR_H

#include "drivers/emulators/core/emulator.h"
#include "drivers/mrr/mrr_protocol.h"
#include "lib/base/vec.h"

/* How long a step of a program lasts while the sequencer steps by itself. */
#define AUTOSTEP_NS 1000000

/* A slot holds one job's program: in its active bank what the ring does, in
 * its shadow bank the bytes of the next one, which a commit checks and takes
 * over. Fields that begin with stage are the registers by which a client
 * announces what is in the shadow. */
struct slot {
	struct ring_program p;		/* active; no bytes: dark */
	uint32_t crc;			/* of its bytes */
	uint32_t generation, writes;
	uint8_t *shadow;
	size_t shadow_cap;		/* bytes ever written, rest is zero */
	uint32_t stage, stage_bytes, stage_crc;
	struct ring_window stage_window;
	uint8_t stage_name[RING_PROGRAM_NAME_MAX + 1];
	uint32_t n_unlocked, lock_state;
	uint8_t first_unlocked[MRR_TUNE_BYTES];
	VEC(struct ring_fault) lost;	/* as in the table of locks */
	uint64_t searched;		/* resonators that locked again */
	uint32_t step, step_control;
	int64_t step_ns;		/* when autostep began */
	/* The step that the rings are set to, reached change by change. */
	bool playing;
	struct ring_program_reader light;
	uint64_t moved;			/* resonators set since the load */
};

/* The ring's controller. fence is the epoch of the client that writes,
 * writer that of the last commit: a client with a lower one has been
 * replaced and may change nothing. mask has a bit for each slot that the
 * next commit is about. */
struct mrr_device {
	struct emu *e;
	int n_slots;
	struct slot slots[MRR_MAX_SLOTS];
	uint64_t fence, writer, mask;
	uint32_t generation, flags, last_code;
	VEC(struct ring_fault) drifted;	/* until they search again */
	uv_timer_t drift;
	int64_t locked_ns;		/* the last search is over then */
};

/* The step that the sequencer is at, from 0; it goes round. 0 without steps. */
uint32_t mrr_current_step(const struct slot *s);
/* What a write to MRR_STEP_CONTROL does. */
void mrr_step(struct slot *s, uint32_t control);
/* Turns one setting of a program into another, as a bit that flips in a bank
 * does, with bytes that still decode. False when it has none. */
bool mrr_corrupt(struct ring_program *p);

/* Whether a setting of the step that r is at locks, by the faults. mrr_fail.c */
enum resonator_lock mrr_lock_of(struct mrr_device *d, const struct ring_program_reader *r,
				const struct ring_setting *t);
/* Appends the table of failures: the parts that faults hold, whether programs
 * use them or not. */
void mrr_put_failures(const struct mrr_device *d, struct buf *out);

/* Finds out again which settings are locked, of one slot or of all, and
 * makes the table of those that are not. O(settings) where a fault holds,
 * else O(1). */
void mrr_search_slot(struct mrr_device *d, struct slot *s);
void mrr_search_locks(struct mrr_device *d);

/* Locks that get lost one by one, and are found again: mrr_drift.c. Init
 * before the first search, fini at the end. */
void mrr_drift_init(struct mrr_device *d);
void mrr_drift_fini(struct mrr_device *d);
/* The faults have changed: starts or stops losing locks. */
void mrr_drift(struct mrr_device *d);
/* Whether the resonator of a setting has lost its lock. O(lost locks). */
bool mrr_has_drifted(const struct mrr_device *d, const struct ring_setting *t);
/* What a slot uses holds its wave again; the status shows a search for as long
 * as the fault `lock-time` says. */
void mrr_settle(struct mrr_device *d, const struct slot *s);
/* A write to MRR_RELOCK: the slots of the mask search for their waves again.
 * MRR_INTERLOCK, MRR_STALE_WRITER. */
enum mrr_code mrr_relock(struct mrr_device *d);
/* A session that subscribed to events has this mark. It changes with a
 * restart, which ends all subscriptions. */
int64_t mrr_event_mark(const struct mrr_device *d);
/* Sends an event with the flags as they are now, about a resonator or NULL, to
 * the sessions that subscribed. */
void mrr_send_event(struct mrr_device *d, const struct ring_fault *place);
/* Appends the table of locks: resonators of running programs that hold no
 * wave. */
void mrr_put_lost(const struct mrr_device *d, struct buf *out);
/* Counts an entry in n and appends it while the table has room; the number at
 * a table's head may exceed its entries. */
void mrr_put_entry(struct buf *table, uint32_t *n, const struct ring_fault *d);

/* Forgets the step that the resonators are set to, since another program
 * comes. */
void mrr_stop_light(struct slot *s);
/* When each resonator is set in a program, one a line; with overlap as soon as
 * the last light on it has ended. Returns what is wrong, or NULL. */
const char *mrr_put_tunings(const struct slot *s, bool overlap, struct buf *out);
/* Commands of the control socket: slots, light, step, tunings, flip. Returns
 * what is wrong, or NULL. */
const char *mrr_command(struct emu *e, const char *verb, const char *arg, struct buf *answer);

#endif
