/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a ring its programs light; private to this room. */
#ifndef WEFT_WEBUI_OCCUPANCY_H
#define WEFT_WEBUI_OCCUPANCY_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/optics/optics.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

/*
 * Segment s of a ring lies between positions s and s + 1. A row is a channel
 * of a fibre of a direction, in the order of packed programs: ((dir * fibres +
 * fibre) * channels + channel). Rows and segments are put together in bins
 * where there are too many; rows of one bin share direction and fibre.
 */
struct occupancy {
	struct ring_geometry ring;
	int row_size, col_size;		/* channels, segments of a bin */
	int rows, cols;			/* bins */
	uint32_t steps, seen;		/* of the program; looked at */
	int64_t *lit;			/* [rows][cols] of one program, in
					 * (step, channel, segment) */
	int32_t *edges;			/* [rows][nodes + 1] */
	bool *begins;			/* [rows][nodes] a lightpath does, in the segment */
};

/* Finish with occupancy_fini. */
void occupancy_init(struct occupancy *o, const struct ring_geometry *ring);
void occupancy_fini(struct occupancy *o);
/* Replaces lit by that of one program; looks at no more than *cells settings,
 * and takes those that it has looked at away. WEFT_EINVAL. */
int occupancy_of(struct occupancy *o, const struct ring_program *p,
		 int64_t *cells, struct err *err);
/* The same for the next `most` steps of a reader that is at the end of a step; seen is how
 * many there were, 0 at the end of the program. */
int occupancy_of_steps(struct occupancy *o, struct ring_program_reader *r, uint32_t most,
		       int64_t *cells, struct err *err);
/* Share of a bin's light, 0 to 1000; what is lit at all is at least 1. */
int occupancy_share(const struct occupancy *o, int row, int col);
/* Appends what is lit, equal neighbours of a row as one, of a single step lightpath by
 * lightpath: [row, first column, columns, job, share],... *comma: whether one is due before the
 * next. O(bins). */
void occupancy_put_runs(const struct occupancy *o, int job, struct buf *b, bool *comma);

#endif
