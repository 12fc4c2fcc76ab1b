/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a ring its programs light.
 *
 * A program is a list of steps, each with the resonators that it sets. Light
 * is added at one position and leaves at the next resonator on its way that
 * does not pass, so a step lights whole runs of segments. They are entered as
 * differences at their two ends (edges), which costs a constant a setting,
 * and are summed up once a program: O(settings + rows x nodes).
 */
#include "controller/webui/occupancy.h"

#include <stdlib.h>
#include <string.h>

#include "controller/webui/webui.h"
#include "lib/base/alloc.h"

/* Bins of `size` that n things take. */
static int bins(int n, int size)
{
	return (n + size - 1) / size;
}

/* The smallest bins with which the grid fits PAGE_BINS each way; a row never
 * mixes fibres, so that many fibres may still need more rows. */
void occupancy_init(struct occupancy *o, const struct ring_geometry *ring)
{
	int fibres = 2 * ring->fibres;

	memset(o, 0, sizeof(*o));
	o->ring = *ring;
	o->row_size = o->col_size = 1;
	while (fibres * bins(ring->channels, o->row_size) > PAGE_BINS &&
	       o->row_size < ring->channels) {
		o->row_size++;
	}
	while (bins(ring->nodes, o->col_size) > PAGE_BINS) {
		o->col_size++;
	}
	o->rows = fibres * bins(ring->channels, o->row_size);
	o->cols = bins(ring->nodes, o->col_size);
	o->lit = x_new((size_t)o->rows * (size_t)o->cols, sizeof(*o->lit));
	o->edges = x_new((size_t)o->rows * ((size_t)ring->nodes + 1), sizeof(*o->edges));
	o->begins = x_new((size_t)o->rows * ring->nodes, sizeof(*o->begins));
}

void occupancy_fini(struct occupancy *o)
{
	free(o->lit);
	free(o->edges);
	free(o->begins);
}

/* Adds one to segments first .. first + n - 1 of a row, round the ring. */
static void light_up(struct occupancy *o, int row, int first, int n)
{
	int32_t *e = o->edges + (size_t)row * ((size_t)o->ring.nodes + 1);
	int end = first + n, nodes = o->ring.nodes;

	o->begins[(size_t)row * (size_t)nodes + (size_t)first] = true;
	e[first]++;
	if (end <= nodes) {
		e[end]--;
	} else {
		e[nodes]--;
		e[0]++;
		e[end - nodes]--;
	}
}

/* The settings of one channel in one step, by position. Light goes from where
 * it is added to the next resonator on its way that does not pass. */
static void follow(struct occupancy *o, int row, bool clockwise,
		   const struct ring_cell *v, size_t n)
{
	uint32_t nodes = o->ring.nodes;

	for (size_t i = 0; i < n; i++) {
		size_t k = clockwise ? (i + 1) % n : (i + n - 1) % n;
		int from = (int)(v[i].at % nodes), to = (int)(v[k].at % nodes);
		int len = clockwise ? to - from : from - to;

		if (v[i].mode & RESONATOR_ADD) {
			len += len <= 0 ? (int)nodes : 0;
			light_up(o, row, clockwise ? from : to, len);
		}
	}
}

/* Settings are sorted by fibre, channel and position: each run of one channel
 * is followed by itself. */
static void take_step(struct occupancy *o, const struct ring_cells *cells)
{
	uint32_t nodes = o->ring.nodes, channels = o->ring.channels;
	int per_fibre = bins((int)channels, o->row_size);

	for (size_t i = 0, end; i < cells->n; i = end) {
		uint32_t line = cells->v[i].at / nodes;
		uint32_t fibre = line / channels;
		int row = (int)fibre * per_fibre +
			  (int)(line % channels) / o->row_size;

		for (end = i + 1; end < cells->n && cells->v[end].at / nodes == line; end++) {
		}
		follow(o, row, fibre < o->ring.fibres, cells->v + i, end - i);
	}
}

/* From differences to counts, and from segments to bins. */
static void sum_up(struct occupancy *o)
{
	size_t nodes = o->ring.nodes;

	for (int row = 0; row < o->rows; row++) {
		const int32_t *e = o->edges + (size_t)row * (nodes + 1);
		int64_t now = 0;

		for (size_t s = 0; s < nodes; s++) {
			now += e[s];
			o->lit[row * o->cols + (int)s / o->col_size] += now;
		}
	}
}

int occupancy_of_steps(struct occupancy *o, struct ring_program_reader *r, uint32_t most,
		       int64_t *cells, struct err *err)
{
	int rc = 0;

	memset(o->lit, 0, (size_t)o->rows * (size_t)o->cols * sizeof(*o->lit));
	memset(o->edges, 0, (size_t)o->rows * ((size_t)o->ring.nodes + 1) * sizeof(*o->edges));
	memset(o->begins, 0, (size_t)o->rows * o->ring.nodes * sizeof(*o->begins));
	o->steps = r->steps;
	o->seen = 0;
	while (*cells > 0 && o->seen < most && (rc = ring_program_reader_next(r, err)) == 0) {
		take_step(o, &r->cells);
		o->seen++;
		*cells -= (int64_t)r->cells.n + 1;
	}
	sum_up(o);
	return rc < 0 ? rc : 0;
}

int occupancy_of(struct occupancy *o, const struct ring_program *p, int64_t *cells, struct err *err)
{
	struct ring_program_reader r;
	int rc = ring_program_reader_init(&r, p->bytes, p->len, err);

	if (rc == 0) {
		rc = occupancy_of_steps(o, &r, p->steps, cells, err);
		ring_program_reader_fini(&r);
	}
	return rc;
}

int occupancy_share(const struct occupancy *o, int row, int col)
{
	int per_fibre = bins(o->ring.channels, o->row_size);
	int first_channel = row % per_fibre * o->row_size;
	int first_segment = col * o->col_size;
	int64_t channels = o->ring.channels - first_channel;
	int64_t segments = o->ring.nodes - first_segment;
	int64_t lit = o->lit[row * o->cols + col];

	channels = channels < o->row_size ? channels : o->row_size;
	segments = segments < o->col_size ? segments : o->col_size;
	if (!o->seen || !lit) {
		return 0;
	}
	lit = lit * 1000 / (channels * segments * o->seen);
	return lit ? (int)lit : 1;
}

/* A column that is one run with the one before it. */
static bool goes_on(const struct occupancy *o, int row, int col)
{
	if (occupancy_share(o, row, col) != occupancy_share(o, row, col - 1)) {
		return false;
	}
	return o->seen != 1 || o->col_size > 1 || o->row_size > 1 ||
	       !o->begins[row * o->ring.nodes + col];
}

void occupancy_put_runs(const struct occupancy *o, int job, struct buf *b, bool *comma)
{
	for (int row = 0; row < o->rows; row++) {
		for (int col = 0, end; col < o->cols; col = end) {
			int share = occupancy_share(o, row, col);

			for (end = col + 1; end < o->cols && goes_on(o, row, end); end++) {
			}
			if (share > 0) {
				buf_printf(b, "%s[%d,%d,%d,%d,%d]", *comma ? "," : "", row, col,
					   end - col, job, share);
				*comma = true;
			}
		}
	}
}
