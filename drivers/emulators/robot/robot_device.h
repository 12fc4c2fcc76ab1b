/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What emulated robots share: a queue of moves that take their time, wear,
 * a command line with echo and prompt, and text of its own accord, which
 * comes when a move is over and when another user moved something. Private
 * to emulators.
 */
#ifndef WEFT_DRIVERS_EMULATORS_ROBOT_ROBOT_H
#define WEFT_DRIVERS_EMULATORS_ROBOT_ROBOT_H

#include "drivers/emulators/core/emulator.h"
#include "lib/base/vec.h"

/* A move in the queue. due_ns is monotonic, and never before that of the move
 * in front: a robot has one arm. */
struct robot_job {
	struct optics_xc xc;
	bool connect;
	int64_t due_ns;
};

/* How a move ended: done; nothing to do; failed on the way (a collision, a
 * fibre that was lost); refused when its turn came, as a port is in use. */
enum robot_end { ROBOT_SUCCEEDED, ROBOT_SKIPPED, ROBOT_FAILED, ROBOT_INVALID };

struct robot_device;

/* What differs from maker to maker. */
struct robot_words {
	const char *banner, *prompt;
	const char *homed;	/* reported at a homing run's end, or NULL */
	/* Answers a line; EMU_EAT and the like from
	 * robot_device_enqueue() and robot_device_home(). */
	enum emu_fate (*run)(struct robot_device *d, struct emu_client *c,
			     const char *line, struct buf *out);
	/* Appends the autonomous lines that report the end of a move. */
	void (*report_move)(const struct robot_job *j, enum robot_end end, struct buf *out);
};

/* An emulated robot. A port is idle, or a fibre leads from it to its peer;
 * that fibre stays plugged where it was when a circuit ends. */
struct robot_device {
	struct emu *e;
	const struct robot_words *words;
	VEC(struct robot_job) queue;
	struct buf unsent;	/* autonomous lines not sent yet */
	uv_timer_t due;		/* the next move is over */
	int64_t *moves;		/* [flat port] */
	int *last;		/* [flat port] the port it was connected to */
	struct xc_map known;	/* the map as reported so far */
	bool homing;		/* nothing moves until people came */
	bool stopped;		/* nor until they let it, after that */
	int64_t homed_ns;	/* a homing run is over then; 0: none */
};

/* What the makers' dialects have alike, for their initialisers; `words` is a
 * struct robot_words. */
#define ROBOT_DIALECT(words) \
	.kind = DRV_SPACE, .max_input = 1024, .table = (words), \
	.open = robot_device_open, .close = robot_device_close, \
	.input = robot_device_input, .refresh = robot_device_refresh

/* e->device is a struct robot_device. */
void robot_device_open(struct emu *e);
void robot_device_close(struct emu *e);
/* An emu_dialect's input: moves that are due are made first, then the line is
 * answered with its echo, the text and the prompt. */
int64_t robot_device_input(struct emu_client *c, const uint8_t *data, size_t len);
/* A restart empties the queue; a move by another user is reported. */
void robot_device_refresh(struct emu *e, enum emu_map_event event);

/* Why nothing can be connected there, as text for an answer; NULL when it
 * can. */
const char *robot_device_obstacle(const struct robot_device *d, struct optics_xc xc);

/* A homing run begins; it is over as soon as a move would be, and nothing moves
 * until d->stopped is lifted. */
enum emu_fate robot_device_home(struct robot_device *d, struct emu_client *c);

/* A move enters the queue, unless a fault has it otherwise. It takes what the
 * fault `move` says, and no time without it. */
enum emu_fate robot_device_enqueue(struct robot_device *d, struct emu_client *c,
				   struct optics_xc xc, bool connect);

#endif
