/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulated ring at work: programs stepped change by change, and where the
 * light that is added goes.
 *
 * Both are answers on the control socket, for tests that ask whether light
 * really arrives: `light` follows each signal of the current step from the
 * resonator that adds it to the next one on its way, and reports what it
 * meets. A program that was checked shows only `drop` lines; `lost`,
 * `misrouted` and `dark` are proof that a program, or its order of steps, is
 * wrong.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/emulators/mrr/mrr_device.h"
#include "lib/base/vec.h"

void mrr_stop_light(struct slot *s)
{
	if (s->playing) {
		ring_program_reader_fini(&s->light);
	}
	s->playing = false;
	s->moved = 0;
}

/* Sets the resonators to the step that the sequencer is at, by going through
 * all changes from where they are; from the beginning, if the program has
 * begun again. O(changes). */
static const char *play(struct slot *s)
{
	uint32_t want = mrr_current_step(s);
	uint64_t moved = s->moved;

	if (s->p.steps == 0) {
		return "the program has no steps";
	}
	if (s->playing && s->light.step > want + 1) {
		mrr_stop_light(s);
	}
	if (!s->playing) {
		s->playing = ring_program_reader_init(&s->light, s->p.bytes, s->p.len, NULL) == 0;
		s->moved = moved;
	}
	while (s->playing && s->light.step < want + 1) {
		if (ring_program_reader_next(&s->light, NULL)) {
			mrr_stop_light(s);
		} else {
			s->moved += s->light.changes.n;
		}
	}
	return s->playing ? NULL : "the program cannot be read";
}

/* ---- where light goes ---- */

/* Cells [from, to) of one channel of one fibre, by position. */
struct row {
	const struct ring_program_reader *r;
	const struct ring_cell *v;
	size_t n;
	const struct ring_window *window;
};

/* Position of a node within the row's window, clockwise from its first node. */
static int offset_in(const struct row *row, int node)
{
	int n = row->r->ring.nodes;

	return (node - row->window->first_node + n) % n;
}

/* Light from a to b stays in a part of the ring unless it goes round. */
static bool leaves_window(const struct row *row, const struct ring_setting *a,
			  const struct ring_setting *b)
{
	int from = offset_in(row, a->node), to = offset_in(row, b->node);

	return row->window->nodes < row->r->ring.nodes &&
	       (a->dir == OPTICS_CW ? to <= from : to >= from);
}

static void put_place(struct buf *b, const char *what, const struct ring_setting *t)
{
	buf_printf(b, "%s %u node %u %s fibre %u channel %u", what, t->step,
		   t->node, t->dir ? "ccw" : "cw", t->fibre, t->channel);
}

/* The light added at cell i goes to the next cell on its way: `drop` there, or
 * `lost` where it meets a resonator that adds only, or `misrouted` when it had
 * to leave the window of its job. */
static void follow(const struct row *row, size_t i, struct buf *b)
{
	struct ring_setting from = ring_cell_setting(row->r, &row->v[i]);
	size_t next = (i + (from.dir == OPTICS_CW ? 1 : row->n - 1)) % row->n;
	struct ring_setting to = ring_cell_setting(row->r, &row->v[next]);

	if (!(from.mode & RESONATOR_ADD)) {
		return;
	}
	if (!(to.mode & RESONATOR_DROP)) {
		put_place(b, "lost", &from);
		buf_printf(b, " meets %u\n", to.node);
	} else if (leaves_window(row, &from, &to)) {
		put_place(b, "misrouted", &from);
		buf_printf(b, " to %u\n", to.node);
	} else {
		put_place(b, "drop", &to);
		buf_printf(b, " from %u\n", from.node);
	}
}

/* A resonator that drops where no light comes. */
static void find_dark(const struct row *row, size_t i, struct buf *b)
{
	struct ring_setting t = ring_cell_setting(row->r, &row->v[i]);
	size_t before = (i + (t.dir == OPTICS_CW ? row->n - 1 : 1)) % row->n;

	if (t.mode & RESONATOR_DROP && !(row->v[before].mode & RESONATOR_ADD)) {
		put_place(b, "dark", &t);
		buf_char(b, '\n');
	}
}

/* Cells are sorted by fibre, direction and channel, then position, so each
 * channel of a fibre is one row of them. */
static void put_light(const struct slot *s, struct buf *b)
{
	const struct ring_cells *c = &s->light.cells;
	uint32_t nodes = s->light.ring.nodes;
	struct row row = { .r = &s->light, .window = &s->p.window };

	for (size_t i = 0; i < c->n; i += row.n) {
		row.v = c->v + i;
		row.n = 0;
		while (i + row.n < c->n && c->v[i + row.n].at / nodes == c->v[i].at / nodes) {
			row.n++;
		}
		for (size_t k = 0; k < row.n; k++) {
			follow(&row, k, b);
			find_dark(&row, k, b);
		}
	}
}

/* ---- the control socket ---- */

static void put_slots(const struct mrr_device *d, struct buf *b)
{
	for (int i = 0; i < d->n_slots; i++) {
		const struct slot *s = &d->slots[i];

		if (s->p.bytes || s->writes) {
			buf_printf(b, "slot %d program %s generation %" PRIu32
				   " writes %" PRIu32 " step %" PRIu32
				   " of %" PRIu32 " moved %" PRIu64 " searched %"
				   PRIu64 "\n", i,
				   s->p.bytes ? s->p.name : "-", s->generation,
				   s->writes, mrr_current_step(s), s->p.steps,
				   s->moved, s->searched);
		}
	}
}

static struct slot *find_slot(struct mrr_device *d, const char *name)
{
	for (int i = 0; i < d->n_slots; i++) {
		if (d->slots[i].p.bytes && name && strcmp(d->slots[i].p.name, name) == 0) {
			return &d->slots[i];
		}
	}
	return NULL;
}

/* The program in the bank changes without the controller's doing: its CRC
 * register follows the bytes, as it is computed from the bank. */
static const char *flip(struct slot *s)
{
	mrr_stop_light(s);
	if (!mrr_corrupt(&s->p)) {
		return "the program has no settings";
	}
	s->crc = mrr_crc32(0, s->p.bytes, s->p.len);
	return NULL;
}

const char *mrr_command(struct emu *e, const char *verb, const char *arg, struct buf *answer)
{
	struct mrr_device *d = e->device;
	struct slot *s = find_slot(d, arg);
	bool steps = strcmp(verb, "step") == 0;
	const char *wrong;

	if (strcmp(verb, "slots") == 0) {
		put_slots(d, answer);
		return NULL;
	}
	if (!steps && strcmp(verb, "light") != 0 &&
	    strcmp(verb, "flip") != 0 && strcmp(verb, "tunings") != 0) {
		return "unknown command, try help";
	}
	if (!s) {
		return "no such program runs";
	}
	if (strcmp(verb, "flip") == 0) {
		return flip(s);
	}
	if (strcmp(verb, "tunings") == 0) {
		return mrr_put_tunings(s, e->conf.overlap, answer);
	}
	if (steps) {
		mrr_step(s, s->step_control | MRR_TRIGGER);
	}
	wrong = play(s);
	if (!wrong) {
		buf_printf(answer, "step %" PRIu32 " of %" PRIu32 "\n",
			   mrr_current_step(s), s->p.steps);
		put_light(s, answer);
	}
	return wrong;
}
