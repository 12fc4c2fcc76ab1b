/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated ring with --overlap: when its controller sets resonators while
 * others carry data. It goes through a program once and sets each as soon as
 * the last light on it has ended: never under light. */
#include <inttypes.h>
#include <stdlib.h>

#include "drivers/emulators/mrr/mrr_device.h"
#include "lib/base/alloc.h"

/* A node's resonators for a channel: first the one that drops, then the one
 * that adds, as light meets them. */
enum kind { DROPS, ADDS };

struct resonator {
	int64_t last;		/* step with light on it; -1: none yet */
	bool on;
};

struct player {
	struct ring_program_reader light;
	struct resonator *all;	/* 2 a cell */
	struct buf *out;
	bool overlap;
};

/* Light of the step that was just read needs a resonator like this; a line is
 * printed when it has to be set for it, with the step from whose end on that
 * is allowed. */
static void need(struct player *p, uint32_t at, enum kind kind, bool on)
{
	struct resonator *x = &p->all[2 * (size_t)at + kind];
	int64_t step = (int64_t)p->light.step - 1;
	struct ring_cell cell = { at, 0 };
	struct ring_setting t = ring_cell_setting(&p->light, &cell);

	if (x->last == step) {
		return;
	}
	if (x->last < 0 || x->on != on) {
		buf_printf(p->out, "tune %" PRId64 " node %u %s fibre %u "
			   "channel %u %s %s after %" PRId64 "\n", step,
			   t.node, t.dir ? "ccw" : "cw", t.fibre, t.channel,
			   kind == ADDS ? "add" : "drop", on ? "on" : "off",
			   p->overlap ? x->last : step - 1);
	}
	x->on = on;
	x->last = step;
}

/* The light that is added at v[i] of a channel's n cells. */
static void need_direction(struct player *p, const struct ring_cell *v, size_t n, size_t i)
{
	uint32_t nodes = p->light.ring.nodes, row = v[i].at / nodes * nodes;
	bool cw = ring_cell_setting(&p->light, &v[i]).dir == OPTICS_CW;
	uint32_t to = v[(i + (cw ? 1 : n - 1)) % n].at, at = v[i].at;

	need(p, at, ADDS, true);
	for (;;) {
		at = row + (at - row + (cw ? 1 : nodes - 1)) % nodes;
		if (at == to) {
			break;
		}
		need(p, at, DROPS, false);
		need(p, at, ADDS, false);
	}
	need(p, to, DROPS, true);
}

/* All light of the step that was just read, row by row. */
static void need_step(struct player *p)
{
	const struct ring_cells *c = &p->light.cells;
	uint32_t nodes = p->light.ring.nodes;

	for (size_t i = 0, n; i < c->n; i += n) {
		for (n = 1; i + n < c->n && c->v[i + n].at / nodes == c->v[i].at / nodes;) {
			n++;
		}
		for (size_t k = 0; k < n; k++) {
			if (c->v[i + k].mode & RESONATOR_ADD) {
				need_direction(p, c->v + i, n, k);
			}
		}
	}
}

const char *mrr_put_tunings(const struct slot *s, bool overlap, struct buf *out)
{
	const struct ring_geometry *g = &s->p.ring;
	size_t n = (size_t)4 * g->nodes * g->channels * g->fibres;
	struct player p = { .out = out, .overlap = overlap };
	int rc = ring_program_reader_init(&p.light, s->p.bytes, s->p.len, NULL);

	p.all = x_new(n + 1, sizeof(*p.all));
	for (size_t i = 0; i < n; i++) {
		p.all[i].last = -1;
	}
	while (rc == 0) {
		rc = ring_program_reader_next(&p.light, NULL);
		if (rc == 0) {
			need_step(&p);
		}
	}
	ring_program_reader_fini(&p.light);
	free(p.all);
	return rc == 1 ? NULL : "the program cannot be read";
}
