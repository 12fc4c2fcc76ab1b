/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values that describe light in a device, without any way to change it:
 * cross-connects of space switches and step programs of ring fabrics. Pure
 * data; planning, store, apply and drivers all speak in these.
 */
#ifndef WEFT_DRIVERS_OPTICS_OPTICS_H
#define WEFT_DRIVERS_OPTICS_OPTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

#define RING_DIGEST_LEN 32

/* A simplex cross-connect. Ports are 0-based (side, index) inside weft;
 * only a driver's dialect knows the device's own numbering. On an any-to-any
 * (duplex) switch both numbers are ports of the one side and in < out. */
struct optics_xc {
	int32_t in, out;
};

/* Directions round a ring: clockwise goes from ring position i to i+1. */
enum optics_dir { OPTICS_CW = 0, OPTICS_CCW = 1 };

/* What one ring resonator pair does in a step. Rings not named pass. */
enum resonator_mode { RESONATOR_ADD = 1, RESONATOR_DROP = 2, RESONATOR_ADD_DROP = 3 };

/* The setting of the resonators at ring position `node`, on one fibre of
 * one direction, for one channel, during one communication step. */
struct ring_setting {
	uint16_t step;
	uint16_t node;
	uint16_t channel;
	uint8_t dir;	/* enum optics_dir */
	uint8_t fibre;
	uint8_t mode;	/* enum resonator_mode */
};

/* A part of a ring that carries no light any more. */
enum ring_part {
	RING_RESONATOR = 1,	/* of node, direction, fibre, channel */
	RING_SPAN,		/* a fibre of a direction between node and the
				 * next one clockwise, whichever way it goes */
	RING_NODE,		/* all its resonators; light passes it */
};

/* Why a resonator does not hold its wave, as devices report it. */
enum resonator_lock {
	RESONATOR_LOCKED,
	RESONATOR_NOT_STARTED,
	RESONATOR_NO_WAVE,
	RESONATOR_NOT_IN_RANGE,
	RESONATOR_DUPLICATE,
	RESONATOR_ZERO,
	RESONATOR_WRONG_LANE,	/* it holds the wave of another lane */
	RESONATOR_AT_LIMIT,	/* its tuner is at the end of its range */
	RESONATOR_LOCK_LOST,	/* it held its wave, and does no longer */
	RESONATOR_N_LOCKS
};

/* Fields that the part does not have are 0. */
struct ring_fault {
	uint8_t part;		/* enum ring_part */
	uint8_t dir, fibre;
	uint8_t why;		/* enum resonator_lock; 0: not known */
	uint16_t node, channel;
};

/* A ring's program: settings for steps 0..steps-1, sorted by step, node,
 * dir, fibre, channel; no two with the same key. Owned arrays. */
struct ring_settings {
	uint32_t steps;
	size_t n;
	struct ring_setting *v;
};

/* Order of tunes in a program. Negative, 0, positive. */
int ring_setting_cmp(const struct ring_setting *a, const struct ring_setting *b);

/* Sorts, merges ADD and DROP of the same key into ADD_DROP; two equal modes
 * on one key are WEFT_EINVAL naming step, node and channel. O(n log n). */
int ring_settings_normalise(struct ring_settings *p, struct err *err);

void ring_settings_fini(struct ring_settings *p);

/* qsort order: by part, node, direction, fibre, channel; why does not count,
 * it is no other part. */
int ring_fault_cmp(const void *a, const void *b);

#define RING_FAULT_TEXT 224	/* bytes of a part as text */
/* "mem02 cw fibre 0 channel 3: no wave found", "cw fibre 0 between mem07 and mem00", "mem05"; of a
 * ring of so many nodes, by their names (NULL: "node 5"), of which 63 bytes are shown. */
void ring_fault_text(const struct ring_fault *d, int nodes, const char *const *names,
		     char text[RING_FAULT_TEXT]);

/* "no wave found"; "unknown lock state" for what is none. */
const char *resonator_lock_text(unsigned lock);

/* qsort order: by in, then out. */
int optics_xc_cmp(const void *a, const void *b);

/*
 * Ring programs as a device stores them: packed, one a job, each inside its
 * window of the ring. Packing is canonical: equal programs of one geometry
 * have equal bytes, so bytes are what is compared, digested, stored and read
 * back.
 *
 * A packed program is a head and one record a step. A step says what changes
 * against the step before (or starts from rings that all pass, if that is
 * shorter), as runs of equally spaced resonators and repeated runs.
 * docs/drivers.md has the format byte by byte.
 */

#define RING_PROGRAM_NAME_MAX 63	/* bytes of a program's name */
#define RING_MAX_STEPS (UINT16_MAX + 1)
#define RING_MAX_SETTINGS (128u << 20)	/* settings of a program */
#define RING_MAX_CELLS (16u << 20)	/* settings of a step */

/* The ring that a program is for. Positions count 0..nodes-1 clockwise. */
struct ring_geometry {
	uint16_t nodes, channels;
	uint8_t fibres;		/* per direction */
};

/* What of a ring a program may touch: `nodes` positions clockwise from
 * first_node on, and `channels` channels of every fibre. */
struct ring_window {
	uint16_t first_node, nodes;
	uint16_t first_channel, channels;
};

/* One program. bytes are owned. */
struct ring_program {
	char name[RING_PROGRAM_NAME_MAX + 1];	/* of the job */
	struct ring_window window;
	struct ring_geometry ring;
	uint32_t steps, settings;	/* from the head of the bytes */
	size_t len;
	uint8_t *bytes;
	/* What its plan did without, as it had failed: to find the plan again.
	 * No part of the program, nothing that a device holds or that is
	 * compared or digested. Owned. */
	int n_without;
	struct ring_fault *without;
};

/* All programs of a ring, sorted by name, no two with one name. */
struct ring_programs {
	int n;
	struct ring_program *v;
};

/* True when a resonator belongs to both windows. O(1). */
bool ring_windows_overlap(const struct ring_window *a, const struct ring_window *b, int ring_nodes);
bool ring_window_contains(const struct ring_window *w, int ring_nodes, int node, int channel);

/* Packs a normalised program. WEFT_EINVAL names a setting outside the ring
 * or the window; WEFT_ELIMIT too many steps or settings. O(n log n). */
int ring_program_pack(struct ring_program *out, const char *name, const struct ring_window *window,
		      const struct ring_geometry *ring, const struct ring_settings *p,
		      struct err *err);

/*
 * Packs a program that is too long to be held as settings, step by step.
 * Begin, every step in turn, end; the packer is the caller's to free (NULL is
 * fine). Errors as ring_program_pack(). O(settings of a step) memory.
 */
struct ring_program_packer;
int ring_program_packer_new(const struct ring_window *window, const struct ring_geometry *ring,
			    struct ring_program_packer **out, struct err *err);
/* v[0..n-1]: the settings of the next step in any order; ADD and DROP of one
 * resonator are one setting, twice the same is WEFT_EINVAL. */
int ring_program_packer_step(struct ring_program_packer *p, const struct ring_setting *v,
			     size_t n, struct err *err);
int ring_program_packer_end(struct ring_program_packer *p, const char *name,
			    struct ring_program *out, struct err *err);
void ring_program_packer_free(struct ring_program_packer *p);

/* Takes the bytes over (also on error) and reads steps, settings and
 * geometry from them; name and window are the caller's to have set. All
 * steps are gone through. WEFT_EINVAL names the byte and what is wrong with
 * it, or the setting outside the window. */
int ring_program_read(struct ring_program *inout, uint8_t *bytes, size_t len, struct err *err);

/* The settings again, normalised; *out is the caller's. */
int ring_program_unpack(const struct ring_program *p, struct ring_settings *out, struct err *err);

/* Copies dead[0..n-1] into p->without, in place of what is there. */
void ring_program_set_without(struct ring_program *p, const struct ring_fault *dead, int n);
void ring_program_copy(struct ring_program *out, const struct ring_program *from);
bool ring_program_equal(const struct ring_program *a, const struct ring_program *b);
void ring_program_fini(struct ring_program *p);

/* ---- step by step ---- */

/* A resonator that does not pass, by its place in the packed order:
 * ((dir * fibres + fibre) * channels + channel) * nodes + node. */
struct ring_cell {
	uint32_t at;
	uint8_t mode;		/* enum resonator_mode; 0: passes again */
};

struct ring_cells {
	struct ring_cell *v;
	size_t n, cap;
};

/* Goes through a program. */
struct ring_program_reader {
	const uint8_t *bytes;	/* borrowed */
	size_t len, at;
	struct ring_geometry ring;
	uint32_t steps, settings, step;	/* step: the next one */
	uint64_t seen;			/* settings so far */
	struct ring_cells cells;	/* of the last step, sorted by place */
	struct ring_cells changes;	/* that led to it, sorted by place */
	bool full;			/* it started from all passing */
	struct ring_cells spare;
};

/* Reads the head. WEFT_EINVAL. Finish with ring_program_reader_fini. */
int ring_program_reader_init(struct ring_program_reader *r, const uint8_t *bytes, size_t len,
			     struct err *err);
/* The next step into r->cells; 1 after the last one, which also checks that
 * nothing follows and the totals of the head are right. WEFT_EINVAL.
 * O(cells). */
int ring_program_reader_next(struct ring_program_reader *r, struct err *err);
void ring_program_reader_fini(struct ring_program_reader *r);

/* A cell of the step that ring_program_reader_next read last, as a setting. O(1). */
struct ring_setting ring_cell_setting(const struct ring_program_reader *r,
				      const struct ring_cell *c);

/* ---- a ring's programs ---- */

/* Puts a program in its place, taking it over (also on error). WEFT_EINVAL
 * when there is one of that name. O(n). */
int ring_programs_add(struct ring_programs *inout, struct ring_program *p, struct err *err);
const struct ring_program *ring_programs_find(const struct ring_programs *r, const char *name);
/* Whether a ring that holds the programs `has` (NULL: none), and of whose programs these
 * resonators hold no wave, plays this one: it is loaded, and none of them is in its window.
 * O(log programs + lost). */
bool ring_program_plays(const struct ring_program *p, const struct ring_programs *has,
			const struct ring_fault *lost, int n_lost);
bool ring_programs_equal(const struct ring_programs *a, const struct ring_programs *b);
void ring_programs_copy(struct ring_programs *out, const struct ring_programs *from);
void ring_programs_fini(struct ring_programs *r);

/* That all programs are for this ring and no two meet. WEFT_EINVAL names the
 * program, or both and what they share. O(n^2). */
int ring_programs_check(const struct ring_programs *r,
			const struct ring_geometry *ring, struct err *err);

/* Totals over the programs. */
size_t ring_programs_bytes(const struct ring_programs *r);
uint64_t ring_programs_settings(const struct ring_programs *r);
uint32_t ring_programs_steps(const struct ring_programs *r);	/* the longest */

/* SHA-256 over names, windows and bytes. */
void ring_programs_digest(const struct ring_programs *r, uint8_t digest[RING_DIGEST_LEN]);

/* All of it in one piece of memory and back, for files and databases.
 * *bytes is the caller's. WEFT_EINVAL names what is wrong. */
void ring_programs_save(const struct ring_programs *r, uint8_t **bytes, size_t *len);
int ring_programs_load(struct ring_programs *out, const uint8_t *bytes, size_t len,
		       struct err *err);

#endif
