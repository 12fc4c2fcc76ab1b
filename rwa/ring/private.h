/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room: arcs as ranges of links, and the colourings that
 * rwa_ring_colour() chooses from. Colours are 0-based integers here; they
 * become (slot, fibre, channel) only at the edge. */
#ifndef WEFT_RWA_RING_PRIVATE_H
#define WEFT_RWA_RING_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "rwa/ring/ring.h"

#define RWA_MAX_ARCS (1 << 28)
#define RWA_MAX_NODES (1 << 20)

/* Links lo, lo+1, ..., lo+len-1 modulo the ring's n; 0 < len < n. */
struct ring_span {
	int32_t lo, len;
};

/* The arcs of one direction, to be coloured. */
struct colouring {
	int n;			/* nodes = links of the ring */
	int32_t count;
	struct ring_span *spans;	/* count of them */
	int32_t *colour;	/* count, -1 where there is none yet */
	int bound;		/* largest load, raised by what lp_solve proves */
	int colours;		/* used by the best colouring so far */
	const char *method;
};

struct ring_span rwa_span(int n, const struct rwa_arc *arc);

/* WEFT_EINVAL when sizes or an arc's fields are out of range. */
int rwa_check_sizes(const struct rwa_ring *ring, int64_t n_arcs, struct err *err);
int rwa_check_arc(const struct rwa_ring *ring, const struct rwa_arc *arc,
		  int64_t index, struct err *err);

/* Slot, fibre and channel of a colour. */
void rwa_set_colour(const struct rwa_ring *ring, struct rwa_arc *arc, int32_t colour);

/* Load of every link: load[n]. O(count + n). */
void rwa_span_loads(const struct colouring *job, int32_t *load);

/*
 * Cuts the ring at a link, gives each span across it a colour, and packs the
 * others between the end of such a span and its beginning one turn later
 * (Tucker 1975: circular-arc graphs; best fit). Tries links from the least
 * loaded on and keeps the best. With an uncovered link this is
 * interval colouring, and meets the load. O(cuts count (1 + n/64)).
 */
void rwa_colour_cuts(struct colouring *this);

/* Tries to bring a complete colouring to just `width` colours, at least the
 * load: arcs are joined to closed trails that are split and merged until
 * each goes around once. Bounded work, deterministic. True: it does. */
bool rwa_colour_cycles(struct colouring *this, int width);

/* Minimum by column generation on lp_solve; raises `bound` to the rounded-up
 * fractional chromatic number. For small instances. */
int rwa_colour_lp(struct colouring *this, struct err *err);
bool rwa_lp_is_small(const struct colouring *this);

#endif
