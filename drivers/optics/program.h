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
#ifndef WEFT_DRIVERS_OPTICS_PROGRAM_H
#define WEFT_DRIVERS_OPTICS_PROGRAM_H

#include "drivers/optics/optics.h"

#define LIGHT_NAME_MAX 63	/* bytes of a program's name */
#define LIGHT_MAX_STEPS (UINT16_MAX + 1)
#define LIGHT_MAX_TUNES (128u << 20)	/* settings of a program */
#define LIGHT_MAX_CELLS (16u << 20)	/* settings of a step */

/* The ring that a program is for. Positions count 0..nodes-1 clockwise. */
struct light_geometry {
	uint16_t nodes, channels;
	uint8_t fibres;		/* per direction */
};

/* What of a ring a program may touch: `nodes` positions clockwise from
 * first_node on, and `channels` channels of every fibre. */
struct light_window {
	uint16_t first_node, nodes;
	uint16_t first_channel, channels;
};

/* One program. bytes are owned. */
struct light_pack {
	char name[LIGHT_NAME_MAX + 1];	/* of the job */
	struct light_window window;
	struct light_geometry ring;
	uint32_t steps, settings;	/* as the head of the bytes says */
	size_t len;
	uint8_t *bytes;
	/* What its plan did without, as it had failed: to find the plan again.
	 * No part of the program, nothing that a device holds or that is
	 * compared or digested. Owned. */
	int n_without;
	struct light_dead *without;
};

/* All programs of a ring, sorted by name, no two with one name. */
struct light_ring {
	int n;
	struct light_pack *v;
};

/* True when a resonator belongs to both windows. O(1). */
bool light_windows_meet(const struct light_window *a,
			const struct light_window *b, int ring_nodes);
bool light_window_has(const struct light_window *w, int ring_nodes, int node,
		      int channel);

/* Packs a normalised program. WEFT_EINVAL names a setting outside the ring
 * or the window; WEFT_ELIMIT too many steps or settings. O(n log n). */
int light_pack_make(struct light_pack *out, const char *name,
		    const struct light_window *window,
		    const struct light_geometry *ring,
		    const struct light_program *p, struct err *err);

/*
 * Packs a program that is too long to be held as settings, step by step.
 * Begin, every step in turn, end; the packer is the caller's to free (NULL is
 * fine). Errors as light_pack_make(). O(settings of a step) memory.
 */
struct light_packer;
int light_packer_new(const struct light_window *window,
		     const struct light_geometry *ring,
		     struct light_packer **out, struct err *err);
/* v[0..n-1]: the settings of the next step in any order; ADD and DROP of one
 * resonator are one setting, twice the same is WEFT_EINVAL. */
int light_packer_step(struct light_packer *p, const struct light_tune *v,
		      size_t n, struct err *err);
int light_packer_end(struct light_packer *p, const char *name,
		     struct light_pack *out, struct err *err);
void light_packer_free(struct light_packer *p);

/* Takes the bytes over (also on error) and reads steps, settings and
 * geometry from them; name and window are the caller's to have set. All
 * steps are gone through. WEFT_EINVAL names the byte and what is wrong with
 * it, or the setting outside the window. */
int light_pack_read(struct light_pack *inout, uint8_t *bytes, size_t len,
		    struct err *err);

/* The settings again, normalised; *out is the caller's. */
int light_pack_open(const struct light_pack *p, struct light_program *out,
		    struct err *err);

/* Copies dead[0..n-1] into p->without, in place of what is there. WEFT_ENOMEM. */
int light_pack_without(struct light_pack *p, const struct light_dead *dead,
		       int n, struct err *err);
int light_pack_copy(struct light_pack *out, const struct light_pack *from,
		    struct err *err);
bool light_pack_equal(const struct light_pack *a, const struct light_pack *b);
void light_pack_fini(struct light_pack *p);

/* ---- step by step ---- */

/* A resonator that does not pass, by its place in the packed order:
 * ((dir * fibres + fibre) * channels + channel) * nodes + node. */
struct light_cell {
	uint32_t at;
	uint8_t mode;		/* enum light_mode; 0: passes again */
};

struct light_cells {
	struct light_cell *v;
	size_t n, cap;
};

/* Goes through a program. */
struct light_reader {
	const uint8_t *bytes;	/* borrowed */
	size_t len, at;
	struct light_geometry ring;
	uint32_t steps, settings, step;	/* step: the next one */
	uint64_t seen;			/* settings so far */
	struct light_cells cells;	/* of the last step, sorted by place */
	struct light_cells changes;	/* that led to it, sorted by place */
	bool full;			/* it started from all passing */
	struct light_cells spare;
};

/* Reads the head. WEFT_EINVAL. Finish with light_reader_fini. */
int light_reader_init(struct light_reader *r, const uint8_t *bytes, size_t len,
		      struct err *err);
/* The next step into r->cells; 1 after the last one, which also checks that
 * nothing follows and the head told the truth. WEFT_EINVAL, WEFT_ENOMEM.
 * O(cells). */
int light_reader_next(struct light_reader *r, struct err *err);
void light_reader_fini(struct light_reader *r);

/* A cell of the step that light_reader_next read last, as a setting. O(1). */
struct light_tune light_cell_tune(const struct light_reader *r,
				  const struct light_cell *c);

/* ---- a ring's programs ---- */

/* Puts a program in its place, taking it over (also on error). WEFT_EINVAL
 * when there is one of that name. O(n). */
int light_ring_add(struct light_ring *inout, struct light_pack *p,
		   struct err *err);
const struct light_pack *light_ring_find(const struct light_ring *r,
					 const char *name);
bool light_ring_equal(const struct light_ring *a, const struct light_ring *b);
int light_ring_copy(struct light_ring *out, const struct light_ring *from,
		    struct err *err);
void light_ring_fini(struct light_ring *r);

/* That all programs are for this ring and no two meet. WEFT_EINVAL names the
 * program, or both and what they share. O(n^2). */
int light_ring_check(const struct light_ring *r,
		     const struct light_geometry *ring, struct err *err);

/* Totals over the programs. */
size_t light_ring_bytes(const struct light_ring *r);
uint64_t light_ring_settings(const struct light_ring *r);
uint32_t light_ring_steps(const struct light_ring *r);	/* the longest */

/* SHA-256 over names, windows and bytes. */
void light_ring_digest(const struct light_ring *r,
		       uint8_t digest[LIGHT_DIGEST_LEN]);

/* All of it in one piece of memory and back, for files and databases.
 * *bytes is the caller's. WEFT_EINVAL names what is wrong. */
int light_ring_save(const struct light_ring *r, uint8_t **bytes, size_t *len,
		    struct err *err);
int light_ring_load(struct light_ring *out, const uint8_t *bytes, size_t len,
		    struct err *err);

#endif
