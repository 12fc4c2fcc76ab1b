/* The emulated ring: shared by its registers (mrr.c) and the player of its
 * programs (mrr_light.c). Private to emulators. */
#ifndef WEFT_DRIVERS_EMULATORS_MRR_MRR_H
#define WEFT_DRIVERS_EMULATORS_MRR_MRR_H

#include "drivers/emulators/core/emulator.h"
#include "drivers/mrr/mrr_protocol.h"
#include "lib/base/vec.h"

#define AUTOSTEP_NS 1000000

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

uint32_t mrr_current_step(const struct slot *s);
/* What a write to MRR_STEP_CONTROL does. */
void mrr_step(struct slot *s, uint32_t control);
/* Turns one setting of a program into another. False when it has none. */
bool mrr_corrupt(struct ring_program *p);

/* Whether a setting of the step that r is at locks, by the faults. mrr_fail.c */
enum resonator_lock mrr_lock_of(struct mrr_device *d, const struct ring_program_reader *r,
				const struct ring_setting *t);
/* Appends the table of failures: the parts that faults hold, whether programs
 * use them or not. */
void mrr_put_failures(const struct mrr_device *d, struct buf *out);

/* Finds out again which settings are locked, of one slot or of all. */
void mrr_search_slot(struct mrr_device *d, struct slot *s);
void mrr_search_locks(struct mrr_device *d);

/* Locks that get lost, and are found again. mrr_drift.c */
void mrr_drift_init(struct mrr_device *d);
void mrr_drift_fini(struct mrr_device *d);
/* The faults are others: begins or ends to lose locks. */
void mrr_drift(struct mrr_device *d);
bool mrr_has_drifted(const struct mrr_device *d, const struct ring_setting *t);
/* What a slot uses holds its wave again, and takes its time for it. */
void mrr_settle(struct mrr_device *d, const struct slot *s);
/* A write to MRR_RELOCK. */
enum mrr_code mrr_relock(struct mrr_device *d);
/* A session that wants events has this mark, until the next restart. */
int64_t mrr_event_mark(const struct mrr_device *d);
/* Tells the sessions that want it; of a resonator or NULL. */
void mrr_tell(struct mrr_device *d, const struct ring_fault *place);
/* Resonators that hold no wave, as in a table. */
void mrr_put_lost(const struct mrr_device *d, struct buf *out);
/* Appends an entry to a table that begins with their number n. */
void mrr_put_entry(struct buf *table, uint32_t *n, const struct ring_fault *d);

/* Forgets the settings of the rings, as another program comes. */
void mrr_stop_light(struct slot *s);
/* When each resonator is set in a program, one a line. mrr_tune.c */
const char *mrr_put_tunings(const struct slot *s, bool overlap,
			    struct buf *out);
/* Words of the control socket: slots, light, step, tunings, flip. */
const char *mrr_command(struct emu *e, const char *verb, const char *arg,
			struct buf *answer);

#endif
