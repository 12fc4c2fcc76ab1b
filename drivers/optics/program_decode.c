/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed ring programs, read step by step.
 *
 * The bytes come from a device or a file: nothing in them is believed. Every
 * number is checked against what is left of the bytes and against the ring
 * before it is used, runs must come in order without overlap, and after the
 * last step the totals must be those of the head. So a reader that reached the
 * end has seen a program that could have been packed, and memory stays
 * O(settings of a step).
 */
#include <stdlib.h>
#include <string.h>

#include "drivers/optics/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"

static int bad(const struct ring_program_reader *r, struct err *err, const char *what)
{
	return err_set(err, WEFT_EINVAL, "byte %zu of a ring program, step %u: "
		       "%s", r->at, r->step, what);
}

int ring_program_reader_init(struct ring_program_reader *r, const uint8_t *bytes, size_t len,
			     struct err *err)
{
	*r = (struct ring_program_reader){ .bytes = bytes, .len = len };
	if (len < RING_PROGRAM_HEAD || bytes[0] != RING_PROGRAM_VERSION) {
		return bad(r, err, "no head of a packed program");
	}
	r->ring.fibres = bytes[1];
	r->ring.nodes = (uint16_t)optics_get_le(bytes + 2, 2);
	r->ring.channels = (uint16_t)optics_get_le(bytes + 4, 2);
	r->steps = (uint32_t)optics_get_le(bytes + 6, 4);
	r->settings = (uint32_t)optics_get_le(bytes + 10, 4);
	if (!r->ring.fibres || !r->ring.nodes || !r->ring.channels ||
	    2ull * r->ring.nodes * r->ring.channels * r->ring.fibres > UINT32_MAX ||
	    r->steps > RING_MAX_STEPS || r->settings > RING_MAX_SETTINGS) {
		return bad(r, err, "a geometry or size that cannot be");
	}
	r->at = RING_PROGRAM_HEAD;
	return 0;
}

void ring_program_reader_fini(struct ring_program_reader *r)
{
	vec_fini(&r->cells);
	vec_fini(&r->changes);
	vec_fini(&r->spare);
}

struct ring_setting ring_cell_setting(const struct ring_program_reader *r,
				      const struct ring_cell *c)
{
	const struct ring_geometry *g = &r->ring;
	uint32_t row = c->at / g->nodes, line = row / g->channels;

	return (struct ring_setting){
		.step = (uint16_t)(r->step - 1),
		.node = (uint16_t)(c->at % g->nodes),
		.channel = (uint16_t)(row % g->channels),
		.dir = (uint8_t)(line / g->fibres),
		.fibre = (uint8_t)(line % g->fibres),
		.mode = c->mode,
	};
}

static bool number(struct ring_program_reader *r, uint32_t *v)
{
	uint64_t x = 0;

	for (int shift = 0; shift < 35 && r->at < r->len; shift += 7) {
		uint8_t b = r->bytes[r->at++];

		x |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*v = (uint32_t)x;
			return x <= UINT32_MAX;
		}
	}
	return false;
}

struct packed_run {
	uint64_t first;
	uint32_t count, stride, times, every;
};

static uint64_t run_end(const struct packed_run *u)
{
	return u->first + (uint64_t)(u->times - 1) * u->every +
	       (uint64_t)(u->count - 1) * u->stride + 1;
}

/* end: the first place that the run may begin at. */
static int read_run(struct ring_program_reader *r, uint64_t end, struct packed_run *u,
		    struct err *err)
{
	uint64_t cells = 2ull * r->ring.nodes * r->ring.channels *
			 r->ring.fibres;
	uint32_t gap, shape, more = 0;

	*u = (struct packed_run){ .times = 1 };
	if (!number(r, &gap) || !number(r, &shape) || (shape > 1 && !number(r, &u->stride)) ||
	    (shape & 1 && (!number(r, &more) || !number(r, &u->every)))) {
		return bad(r, err, "a number that is cut or too large");
	}
	u->first = end + gap;
	u->count = (shape >> 1) + 1;
	if (more >= cells || u->count > cells) {
		return bad(r, err, "a run longer than the ring");
	}
	u->times = more + 1;
	if ((shape > 1 && u->stride == 0) || (shape & 1 && more == 0) ||
	    (more && u->every <= (uint64_t)(u->count - 1) * u->stride)) {
		return bad(r, err, "a run that meets itself");
	}
	if (run_end(u) > cells) {
		return bad(r, err, "a place outside the ring");
	}
	return 0;
}

static int add_run(struct ring_program_reader *r, const struct packed_run *u, uint8_t mode,
		   struct err *err)
{
	struct ring_cells *c = &r->changes;

	/* No step can hold more than all that the head promises (or than a
	 * step may), nor take away more than that. */
	if (c->n + (uint64_t)u->times * u->count >
	    2ull * (r->settings < RING_MAX_CELLS ? r->settings
						  : RING_MAX_CELLS)) {
		return bad(r, err, "more settings than the head says");
	}
	vec_reserve(c, (size_t)u->times * u->count);
	for (uint32_t t = 0; t < u->times; t++) {
		uint64_t at = u->first + (uint64_t)t * u->every;

		for (uint32_t i = 0; i < u->count; i++, at += u->stride) {
			c->v[c->n++] = (struct ring_cell){ (uint32_t)at,
							    mode };
		}
	}
	return 0;
}

static int read_mode(struct ring_program_reader *r, uint8_t mode, struct err *err)
{
	uint32_t n_runs;
	uint64_t end = 0;

	if (!number(r, &n_runs) || n_runs == 0 || n_runs > r->len - r->at) {
		return bad(r, err, "a count of runs that cannot be");
	}
	for (uint32_t i = 0; i < n_runs; i++) {
		struct packed_run u;
		int rc;

		if ((rc = read_run(r, end, &u, err)) || (rc = add_run(r, &u, mode, err))) {
			return rc;
		}
		end = run_end(&u);
	}
	return 0;
}

static int read_changes(struct ring_program_reader *r, struct err *err)
{
	uint8_t flags;
	int rc = 0;

	if (r->at >= r->len) {
		return bad(r, err, "the program is cut");
	}
	flags = r->bytes[r->at++];
	r->full = flags & RING_STEP_FULL;
	if (flags & RING_STEP_UNUSED || (r->full && flags & 1u << 2)) {
		return bad(r, err, "flags that mean nothing");
	}
	r->changes.n = 0;
	for (uint8_t mode = 0; mode <= RESONATOR_ADD_DROP && rc == 0; mode++) {
		if (flags & 1u << (mode + 2)) {
			rc = read_mode(r, mode, err);
		}
	}
	for (size_t i = 0; i < r->changes.n && flags & RING_STEP_TRANSPOSED; i++) {
		struct ring_cell *c = &r->changes.v[i];

		c->at = ring_place_transpose(&r->ring, c->at, false);
	}
	if (rc) {
		return rc;
	}
	ring_cells_sort(&r->changes, &r->spare);
	return 0;
}

/* r->cells after r->changes, into r->spare. */
static int merge(struct ring_program_reader *r, struct err *err)
{
	const struct ring_cells *a = &r->cells, *b = &r->changes;
	struct ring_cells *out = &r->spare;
	size_t i = 0, k = 0;

	out->n = 0;
	vec_reserve(out, a->n + b->n);
	while (i < a->n || k < b->n) {
		bool there = i < a->n && (k == b->n || a->v[i].at <= b->v[k].at);

		if (k == b->n || (there && a->v[i].at < b->v[k].at)) {
			out->v[out->n++] = a->v[i++];
			continue;
		}
		if ((k && b->v[k].at == b->v[k - 1].at) ||
		    (there ? a->v[i].mode == b->v[k].mode : !b->v[k].mode)) {
			return bad(r, err, "a change that changes nothing, or "
				   "two of one resonator");
		}
		i += there;
		if (b->v[k].mode) {
			out->v[out->n++] = b->v[k];
		}
		k++;
	}
	return 0;
}

int ring_program_reader_next(struct ring_program_reader *r, struct err *err)
{
	struct ring_cells swap;
	int rc;

	if (r->step == r->steps) {
		if (r->at != r->len) {
			return bad(r, err, "bytes after the end");
		}
		if (r->seen != r->settings) {
			return bad(r, err, "another number of settings than "
				   "the head says");
		}
		return 1;
	}
	rc = read_changes(r, err);
	if (rc == 0 && r->full) {
		r->cells.n = 0;
	}
	if (rc == 0 && (r->full || r->changes.n)) {
		rc = merge(r, err);
		swap = r->cells;
		r->cells = r->spare;
		r->spare = swap;
	}
	if (rc) {
		return rc;
	}
	r->seen += r->cells.n;
	if (r->seen > r->settings || r->cells.n > RING_MAX_CELLS) {
		return bad(r, err, "more settings than the head says");
	}
	r->step++;
	return 0;
}

/* ---- whole programs ---- */

int ring_program_read(struct ring_program *p, uint8_t *bytes, size_t len, struct err *err)
{
	struct ring_program_reader r;
	int rc = ring_program_reader_init(&r, bytes, len, err);

	p->bytes = bytes;
	p->len = len;
	p->ring = r.ring;
	p->steps = r.steps;
	p->settings = r.settings;
	while (rc == 0) {
		rc = ring_program_reader_next(&r, err);
		for (size_t i = 0; rc == 0 && i < r.changes.n; i++) {
			struct ring_setting t = ring_cell_setting(&r, &r.changes.v[i]);

			if (!ring_window_contains(&p->window, r.ring.nodes, t.node, t.channel)) {
				rc = err_set(err, WEFT_EINVAL, "step %u node "
					     "%u channel %u is outside the "
					     "program's part of the ring",
					     t.step, t.node, t.channel);
			}
		}
	}
	ring_program_reader_fini(&r);
	if (rc < 0) {
		ring_program_fini(p);
	}
	return rc < 0 ? rc : 0;
}

int ring_program_unpack(const struct ring_program *p, struct ring_settings *out, struct err *err)
{
	struct ring_program_reader r;
	int rc = ring_program_reader_init(&r, p->bytes, p->len, err);

	*out = (struct ring_settings){ .steps = r.steps };
	if (rc == 0) {
		out->v = x_alloc(r.settings, sizeof(*out->v));
	}
	while (rc == 0) {
		rc = ring_program_reader_next(&r, err);
		for (size_t i = 0; rc == 0 && i < r.cells.n; i++) {
			out->v[out->n++] = ring_cell_setting(&r, &r.cells.v[i]);
		}
	}
	ring_program_reader_fini(&r);
	rc = rc < 0 ? rc : ring_settings_normalise(out, err);
	if (rc) {
		ring_settings_fini(out);
	}
	return rc;
}
