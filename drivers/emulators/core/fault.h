/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of emulated devices, switched on by text: NAME[=VALUE][~PERMILLE].
 *
 * Three sorts: an event fault strikes once, at the VALUE-th event from now
 * (default the first), or with ~PERMILLE at each event with that
 * probability; a level fault holds until cleared, VALUE being a number or a
 * place; ~PERMILLE makes it hold now and then. Randomness comes from the
 * emulator's seed alone.
 */
#ifndef WEFT_DRIVERS_EMULATORS_CORE_FAULT_H
#define WEFT_DRIVERS_EMULATORS_CORE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/core/xc_map.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/number/rng.h"

enum fault_kind {
	/* any device */
	FAULT_REFUSE,		/* connections are refused */
	FAULT_SILENCE,		/* sessions are accepted, nothing answered */
	FAULT_SILENCE_SET,	/* event: set done, answer never sent */
	FAULT_EAT_SET,		/* event: set not done, nothing answered */
	FAULT_DROP_SET,		/* event: set done, session ended */
	FAULT_DROP_REPLY,	/* event: session ended in mid reply */
	FAULT_GARBAGE,		/* event: a reply of garbage */
	FAULT_DUPLICATE,	/* event: a reply sent twice */
	FAULT_LATE,		/* event, ms: a reply sent that much later */
	FAULT_SLOW,		/* level, ms: every reply takes that long */
	FAULT_BYTEWISE,		/* level: replies in tiny pieces */
	FAULT_IDLE_DEAD,	/* level, ms: a session unused for so long is
				 * dead, without a word */
	FAULT_IDLE_END,		/* level, ms: it is ended when it is used */
	FAULT_OVERRATE,		/* level, ms: quicker commands are lost */
	FAULT_COMPLETE,		/* level, ms: sets are done so long after the
				 * answer */
	FAULT_LOST,		/* event, ms: the map is lost that much later */
	/* any device, malformed or hostile traffic */
	FAULT_ENDLESS,		/* level: a line without end for a reply */
	FAULT_LINES,		/* level: lines without end */
	FAULT_NOISE,		/* level: random bytes without end */
	FAULT_HUGE,		/* level, MiB: so much more in each reply */
	FAULT_DRIP,		/* level, ms: a byte of a reply each so often */
	FAULT_AFTER_CLOSE,	/* level: replies come when the session was closed */
	/* switches */
	FAULT_PORT_FAILED,	/* level, port */
	FAULT_PORT_DISABLED,	/* level, port */
	FAULT_REFUSE_PORT,	/* level, port: connects end in an error */
	FAULT_BUSY,		/* level, port: in use, says the device */
	FAULT_RACE,		/* event: another user makes the same circuit */
	FAULT_DIM,		/* level, port: 3 dB less light than before */
	FAULT_MISROUTED,		/* level, path: an input's light leaves there */
	FAULT_IGNORE_PORT,	/* level, port: connects do nothing, no error */
	FAULT_HALF,		/* level, n: the first n pairs of a list only */
	FAULT_CHAIN_STOP,	/* event: a chain ends after its first command */
	FAULT_NO_MONITORS,	/* level: powers are an unknown question */
	FAULT_OTHERS_ERROR,	/* event: another session's in the queue */
	FAULT_TAKEN_ERROR,	/* event: another session reads it away */
	FAULT_QUEUE_FULL,	/* event: the error queue is full already */
	/* TL1 */
	FAULT_AUTONOMOUS,	/* level: reports come between the pages */
	FAULT_LOG_OUT,		/* event: the session is logged out */
	FAULT_TID_REQUIRED,	/* level: commands must name the device */
	FAULT_WRONG_CTAG,	/* event: an answer has another's tag */
	FAULT_PAGE,		/* level, n: lines in a page of an answer */
	FAULT_NOT_ACTIVATED,	/* level, port: accepted, not activated */
	FAULT_CONN_FAILED,	/* level, port: accepted, then no light */
	FAULT_LOCKED,		/* level, port: locked by user noc */
	/* polatis-restconf */
	FAULT_STATUS,		/* event, status: of the next answer */
	FAULT_STATUS_SET,	/* event, status: of the next to a set command */
	/* sonic-ocs */
	FAULT_TUNING,		/* level, port: never ends to tune */
	FAULT_STALE,		/* event: deleted, but not in hardware */
	/* rome-cli */
	FAULT_MOVE,		/* level, ms: what every move takes */
	FAULT_HOMING,		/* event: a move fails, all wait for people */
	/* rings */
	FAULT_NACK,		/* event: a write is answered with NACK busy */
	FAULT_CORRUPT_SHADOW,	/* event: a bit of the shadow flips */
	FAULT_CORRUPT_ACTIVE,	/* event: a bit of the new program flips */
	FAULT_IGNORE_COMMIT,	/* event: commit confirmed, not done */
	FAULT_INTERLOCK,	/* level: the laser interlock is open */
	FAULT_NO_WAVE,		/* level, place */
	FAULT_NOT_IN_RANGE,	/* level, place */
	FAULT_DUPLICATE_LOCK,	/* level, place */
	FAULT_ZERO_LOCK,	/* level, place */
	FAULT_LOL,		/* level, place: lock lost, latched */
	FAULT_LANE_ORDER,	/* level, place: locked on another lane's wave */
	FAULT_DAC_CLAMP,	/* level, place: tuner at its limit */
	FAULT_DRIFT,		/* level, ms: a lock is lost each so often */
	FAULT_LOCK_TIME,	/* level, ms: what resonators take to lock */
	FAULT_BUS_NACK,		/* event: the resonators' bus is silent */
	FAULT_PLAIN,		/* level: no tables, events or relocking */
	FAULT_RESET,		/* event: it restarts, the session stays */
	FAULT_NODE_DEAD,	/* level, node: its resonators do nothing */
	FAULT_CUT,		/* level, node: all fibres to the next one */
	FAULT_CUT_CW,		/* level, node and fibre, in a place's way */
	FAULT_CUT_CCW,
	N_FAULTS
};

/* A fault in force. What value and channel mean is the kind's, by the table in
 * fault.c. */
struct fault {
	enum fault_kind kind;
	int64_t value;		/* count, ms, number, flat port or node */
	int64_t channel;	/* of a place NODE:CHANNEL, or its fibre; of a
				 * path its output */
	int64_t seen;
	int permille;		/* -1: always */
	bool met;		/* a level fault has held */
};

/* All faults in force, in the order in which they were added; of two of one
 * kind the first that holds decides. */
struct faults {
	struct fault *v;
	size_t n, cap;
	uint64_t struck;	/* events that struck, and level faults that
				 * were met, since the start */
	struct rng rng;
	const struct xc_map *mem;	/* for the size of the device */
};

void faults_fini(struct faults *f);
/* Adds NAME[=VALUE][~PERMILLE]. WEFT_EINVAL names the word and what is known,
 * or what VALUE may be. Ports and places are checked against f->mem, which
 * must be set. */
int faults_add(struct faults *f, const char *spec, struct err *err);
/* Ends all faults; what they have changed already stays as it is. */
void faults_clear(struct faults *f);

/* An event happens: does a fault of this kind strike? One without ~PERMILLE is
 * removed when it does. *value is its VALUE, when not NULL, and unchanged when
 * nothing strikes. O(faults). */
bool faults_strike(struct faults *f, enum fault_kind kind, int64_t *value);
/* Does a level fault of this kind hold now? *value as above. Asking draws a
 * random number where the fault has ~PERMILLE, so a dialect asks once for each
 * thing it decides. O(faults). */
bool faults_hold(struct faults *f, enum fault_kind kind, int64_t *value);
/* The same for a fault of a port, flat: inputs first, then outputs. */
bool faults_hold_port(struct faults *f, enum fault_kind kind, int flat);
/* The same for a fault of a ring: of a node's resonators of a channel, both
 * directions, all fibres. */
bool faults_hold_place(struct faults *f, enum fault_kind kind, int node, int channel);
/* Of a path: the output, from 0, that the input's light leaves by, or -1. */
int faults_hold_path(struct faults *f, enum fault_kind kind, int in);
/* One line a fault: name, value and what it does. */
void faults_help(struct buf *b);

#endif
