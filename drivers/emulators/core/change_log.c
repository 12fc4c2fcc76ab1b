/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every change of a circuit or program that an emulated device makes, in
 * order: what, when, and by whom. A map shows only the end; a circuit that
 * went away and came back is in this list. Tests prove by it that a change of
 * one job left all other circuits alone.
 *
 * Changes are found by comparing e->mem with the map of the last call
 * (`noted`), so a dialect need not report each; a circuit that is released and
 * made again within one command is no change. Circuits are printed on standard
 * output as well, for tests that read an emulator's log.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/emulators/core/emulator.h"
#include "lib/base/clock.h"

/* The oldest half is dropped when there are so many. */
#define MAX_MOVES (1 << 16)

static const char *const by_names[] = {
	[EMU_BY_SESSION] = "session", [EMU_BY_USER] = "user",
	[EMU_BY_FAULT] = "fault", [EMU_BY_RESTART] = "restart",
};

/* Adds m as made by whom the caller has set, now. */
static void add_move(struct emu *e, struct emu_move m)
{
	struct emu_change_log *l = &e->moves;

	if (l->list.n == MAX_MOVES) {
		size_t half = MAX_MOVES / 2;

		memmove(l->list.v, l->list.v + half, half * sizeof(*l->list.v));
		l->list.n = half;
		l->first += half;
	}
	m.by = l->by;
	m.at_ns = clk_now_ns();
	vec_push(&l->list, m);
}

static void on_circuit(struct optics_xc xc, bool made, void *arg)
{
	printf("circuit %d,%d %s\n", xc.in, xc.out, made ? "made" : "gone");
	fflush(stdout);
	add_move(arg, (struct emu_move){ .made = made, .xc = xc });
}

void emu_pack_digest(const struct ring_program *p, char hex[65])
{
	/* A ring of one; nothing in it is changed. */
	const struct ring_programs one = { .n = 1, .v = (struct ring_program *)p };
	uint8_t digest[RING_DIGEST_LEN];

	ring_programs_digest(&one, digest);
	for (int i = 0; i < RING_DIGEST_LEN; i++) {
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	}
}

/* The programs of `a` that `b` does not have, or has with other bytes: a
 * program that is replaced has ended and begun. */
static void note_programs(struct emu *e, const struct ring_programs *a,
			  const struct ring_programs *b, bool made)
{
	for (int i = 0; i < a->n; i++) {
		const struct ring_program *p = &a->v[i];
		const struct ring_program *q = ring_programs_find(b, p->name);
		struct emu_move m = { .made = made };

		if (q && ring_program_equal(p, q)) {
			continue;
		}
		snprintf(m.program, sizeof(m.program), "%s", p->name);
		emu_pack_digest(p, m.digest);
		add_move(e, m);
	}
}

void emu_log_changes(struct emu *e, enum emu_by by)
{
	struct xc_map *noted = &e->moves.noted;

	/* Not by a dialect that is tried without a program. */
	if (noted->n_in == 0) {
		return;
	}
	e->moves.by = by;
	if (noted->n_ports > 0) {
		xc_map_changes(noted, &e->mem, on_circuit, e);
	}
	note_programs(e, &noted->programs, &e->mem.programs, false);
	note_programs(e, &e->mem.programs, &noted->programs, true);
	xc_map_copy(noted, &e->mem);
}

/* A line is NUMBER MICROSECONDS WHO made|gone, then IN,OUT or program NAME
 * DIGEST. */
const char *emu_report_changes(const struct emu *e, uint64_t from, struct buf *answer)
{
	const struct emu_change_log *l = &e->moves;

	if (from < l->first) {
		return "older moves are not kept";
	}
	for (size_t i = from - l->first; i < l->list.n; i++) {
		const struct emu_move *m = &l->list.v[i];

		buf_printf(answer, "%zu %" PRId64 " %s %s ",
			   (size_t)l->first + i, m->at_ns / 1000,
			   by_names[m->by], m->made ? "made" : "gone");
		if (m->program[0]) {
			buf_printf(answer, "program %s %s\n", m->program, m->digest);
		} else {
			buf_printf(answer, "%d,%d\n", m->xc.in, m->xc.out);
		}
	}
	return NULL;
}

void emu_change_log_init(struct emu *e)
{
	xc_map_init(&e->moves.noted, e->mem.kind, e->mem.n_in, e->mem.n_out, e->mem.any_to_any);
	xc_map_copy(&e->moves.noted, &e->mem);
}

void emu_change_log_fini(struct emu *e)
{
	xc_map_fini(&e->moves.noted);
	vec_fini(&e->moves.list);
}
