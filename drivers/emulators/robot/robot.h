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

struct robot_job {
	struct optics_xc xc;
	bool connect;
	int64_t due_ns;
};

enum robot_end { ROBOT_SUCCEEDED, ROBOT_SKIPPED, ROBOT_FAILED, ROBOT_INVALID };

struct robot_device;

struct robot_words {
	const char *banner, *prompt;
	const char *homed;	/* said when a homing run is over, or NULL */
	/* Answers a line; EMU_EAT and the like from robot_request(). */
	enum emu_fate (*run)(struct robot_device *d, struct emu_client *c,
			     const char *line, struct buf *out);
	/* Says in passing how a move ended. */
	void (*say)(const struct robot_job *j, enum robot_end end,
		    struct buf *out);
};

struct robot_device {
	struct emu *e;
	const struct robot_words *words;
	VEC(struct robot_job) queue;
	struct buf said;	/* of its own accord, not yet out */
	uv_timer_t due;		/* the next move is over */
	int64_t *moves;		/* [flat port] */
	int *last;		/* [flat port] the port it was connected to */
	struct xc_map known;	/* what was said about the map so far */
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

/* e->device is a struct robot_device. WEFT_ENOMEM. */
int robot_device_open(struct emu *e, struct err *err);
void robot_device_close(struct emu *e);
int64_t robot_device_input(struct emu_client *c, const uint8_t *data, size_t len);
void robot_device_refresh(struct emu *e, enum emu_map_event event);

/* Why nothing can be connected there, NULL when it can. */
const char *robot_device_obstacle(const struct robot_device *d,
				  struct optics_xc xc);

/* A homing run begins; it is over as soon as a move would be, and nothing moves
 * until d->stopped is lifted. */
enum emu_fate robot_device_home(struct robot_device *d, struct emu_client *c);

/* A move enters the queue, unless a fault has it otherwise. */
enum emu_fate robot_device_enqueue(struct robot_device *d,
				   struct emu_client *c, struct optics_xc xc,
				   bool connect);

#endif
