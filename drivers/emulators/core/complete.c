/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault `complete`: set commands that are answered first and take effect
 * later, as in switches that acknowledge a command and then move their
 * mirrors.
 *
 * A command is carried out at once, so that its answer is what the dialect
 * makes of it. Then e->mem is put back as it was before, and the difference
 * waits in a queue by time. A device is asked for its map meanwhile: it shows
 * the circuits of before, which is what a driver has to live with. Dialects
 * that show a circuit on its way by a state of its own see to the fault
 * themselves (`completes`).
 */
#include "drivers/emulators/core/emulator.h"

#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/vec.h"

/* A circuit that is made or released. */
struct emu_change {
	struct optics_xc xc;
	bool connect;
};

/* What one command changes, in order. */
struct emu_later {
	struct emu_later *next;
	int64_t due_ns;
	VEC(struct emu_change) changes;
};

static void free_later(struct emu_later *l)
{
	vec_fini(&l->changes);
	free(l);
}

void emu_forget_later(struct emu *e)
{
	while (e->later) {
		struct emu_later *l = e->later;

		e->later = l->next;
		free_later(l);
	}
}

bool emu_is_completing(const struct emu *e)
{
	return e->later;
}

static void wait_for_first(struct emu *e);

/* A release of a circuit that another command has already released is passed
 * over: the map may have changed since the command was answered. */
static void complete_first(struct emu *e)
{
	struct emu_later *l = e->later;

	e->later = l->next;
	for (size_t i = 0; i < l->changes.n; i++) {
		const struct emu_change *c = &l->changes.v[i];

		if (c->connect) {
			xc_map_connect(&e->mem, c->xc);
		} else if (xc_map_has(&e->mem, c->xc)) {
			xc_map_release(&e->mem, xc_map_flat_in(&e->mem, c->xc.in));
		}
	}
	free_later(l);
	/* Not a change by another user: it is not reported. */
	e->dialect->refresh(e, EMU_LOST_SILENTLY);
	emu_changed(e);
}

/* The queue may have been emptied by a restart since the timer was set. */
static void on_due(uv_timer_t *t)
{
	struct emu *e = t->data;

	if (e->later) {
		complete_first(e);
	}
	wait_for_first(e);
}

void emu_complete_now(struct emu *e)
{
	while (e->later) {
		complete_first(e);
	}
}

static void wait_for_first(struct emu *e)
{
	int64_t ns;

	if (e->later) {
		ns = e->later->due_ns - clk_now_ns();
		uv_timer_start(&e->completion, on_due, ns > 0 ?
			       (uint64_t)(ns + 999999) / 1000000 : 0, 0);
	}
}

static void note(struct optics_xc xc, bool connect, void *arg)
{
	struct emu_later *l = arg;

	vec_push(&l->changes, ((struct emu_change){ xc, connect }));
}

/* Takes back what a command did, to be done ms from now. */
static void put_off(struct emu *e, const struct xc_map *before, int64_t ms)
{
	struct emu_later *l = x_new(1, sizeof(*l)), **at = &e->later;

	xc_map_changes(before, &e->mem, note, l);
	if (l->changes.n == 0) {
		free_later(l);
		return;
	}
	xc_map_copy(&e->mem, before);
	l->due_ns = clk_now_ns() + ms * 1000000;
	while (*at && (*at)->due_ns <= l->due_ns) {
		at = &(*at)->next;
	}
	l->next = *at;
	*at = l;
	wait_for_first(e);
}

int64_t emu_input(struct emu_client *c, const uint8_t *data, size_t len)
{
	struct emu *e = emu_of(c);
	struct xc_map before;
	int64_t ms, used;

	if (e->dialect->completes || e->mem.kind == DRV_RING ||
	    !faults_hold(&e->faults, FAULT_COMPLETE, &ms)) {
		return e->dialect->input(c, data, len);
	}
	xc_map_init(&before, DRV_SPACE, e->mem.n_in, e->mem.n_out, e->mem.any_to_any);
	xc_map_copy(&before, &e->mem);
	e->holding = true;
	used = e->dialect->input(c, data, len);
	e->holding = false;
	put_off(e, &before, ms);
	xc_map_fini(&before);
	return used;
}
