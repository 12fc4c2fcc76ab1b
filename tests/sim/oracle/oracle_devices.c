/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices have, and what weftd sends them.
 *
 * Each emulator tells its change log of every circuit that comes or goes, and by whom; the list
 * is kept here as well, so that it is there when the emulator is not. What a session did must be
 * on record in the store of a weftd. What a weftd sends must be so before, durably, and none
 * sends who has been deposed: that is looked at when the command's line is told to the trace,
 * behind weftd's own last look at its lease.
 */
#include <stdlib.h>
#include <string.h>

#include "drivers/emulators/core/emulator.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"
#include "tests/sim/oracle/oracle_parts.h"
#include "tests/sim/oracle/wraps.h"

struct circuit {
	struct optics_xc xc;
	enum emu_by by;
	int64_t since;
};

/* A device; disturbed: when others than sessions have last moved light of it. */
struct watched {
	char name[DRV_NAME_MAX];
	VEC(struct circuit) circuits;
	uint8_t programs[RING_DIGEST_LEN];	/* of a ring: of all that it runs */
	const char *speaker;	/* machine that the last set command came from */
	int64_t disturbed;
};

static VEC(struct watched *) devices;

static struct watched *find_device(const char *name)
{
	struct watched *d;

	for (size_t i = 0; i < devices.n; i++) {
		if (strcmp(devices.v[i]->name, name) == 0) {
			return devices.v[i];
		}
	}
	d = x_new(1, sizeof(*d));
	snprintf(d->name, sizeof(d->name), "%s", name);
	vec_push(&devices, d);
	return d;
}

static struct circuit *find_circuit(const struct watched *d, struct optics_xc xc)
{
	for (size_t i = 0; i < d->circuits.n; i++) {
		if (optics_xc_cmp(&d->circuits.v[i].xc, &xc) == 0) {
			return &d->circuits.v[i];
		}
	}
	return NULL;
}

bool oracle_device_has(const char *device, struct optics_xc xc)
{
	return find_circuit(find_device(device), xc);
}

bool oracle_ring_has(const char *device, const uint8_t digest[RING_DIGEST_LEN])
{
	return memcmp(find_device(device)->programs, digest, RING_DIGEST_LEN) == 0;
}

bool oracle_is_disturbed(const char *device, int64_t since)
{
	const struct watched *d = find_device(device);

	return d->disturbed && d->disturbed >= since;
}

void oracle_forget_device(const char *device)
{
	struct watched *d = find_device(device);

	for (size_t i = 0; i < d->circuits.n; i++) {
		d->circuits.v[i].by = EMU_BY_RESTART;
	}
}

bool oracle_find_other(const char *device, struct optics_xc *out)
{
	const struct watched *d = find_device(device);

	for (size_t i = 0; i < d->circuits.n; i++) {
		if (d->circuits.v[i].by == EMU_BY_USER) {
			*out = d->circuits.v[i].xc;
			return true;
		}
	}
	return false;
}

/* ---- what a device did --------------------------------------------------- */

static void circuit_made(struct watched *d, struct optics_xc xc, enum emu_by by)
{
	struct circuit *had = find_circuit(d, xc);
	const struct circuit made = { .xc = xc, .by = by, .since = sim_now() };

	if (by == EMU_BY_SESSION && !oracle_is_on_record(d->name, xc, true)) {
		sim_fail("unexplained light", "%s: circuit %d,%d was made for %s, and no change "
			 "on record names it", d->name, xc.in, xc.out, d->speaker);
	}
	if (had) {
		*had = made;
	} else {
		vec_push(&d->circuits, made);
	}
}

static void circuit_gone(struct watched *d, struct optics_xc xc, enum emu_by by)
{
	struct circuit *had = find_circuit(d, xc);

	if (by == EMU_BY_SESSION && !oracle_is_on_record(d->name, xc, false)) {
		sim_fail(had && had->by == EMU_BY_USER ? "light of others" : "unexplained loss",
			 "%s: circuit %d,%d was taken away for %s, and no change on record "
			 "names it", d->name, xc.in, xc.out, d->speaker);
	}
	if (had) {
		*had = d->circuits.v[--d->circuits.n];
	}
}

static void take_move(struct watched *d, const struct emu_move *m)
{
	d->disturbed = m->by == EMU_BY_SESSION ? d->disturbed : sim_now();
	if (m->program[0]) {
		if (m->by == EMU_BY_SESSION && !oracle_is_load_on_record(d->name)) {
			sim_fail("unexplained light", "%s: program %s was %s for %s, and no "
				 "change on record loads programs", d->name, m->program,
				 m->made ? "loaded" : "ended", d->speaker);
		}
	} else if (m->made) {
		circuit_made(d, m->xc, m->by);
	} else {
		circuit_gone(d, m->xc, m->by);
	}
}

WRAP(void, emu_log_changes, struct emu *e, enum emu_by by)
{
	uint64_t before = e->moves.first + e->moves.list.n;
	struct watched *d = find_device(e->conf.name);

	__real_emu_log_changes(e, by);
	d->speaker = sim_machine_at(e->speaker);
	for (uint64_t i = before; i < e->moves.first + e->moves.list.n; i++) {
		take_move(d, &e->moves.list.v[i - e->moves.first]);
	}
	ring_programs_digest(&e->mem.programs, d->programs);
}

/* The program starts: what it kept was made by whoever made it before. */
WRAP(void, emu_change_log_init, struct emu *e)
{
	struct watched *d = find_device(e->conf.name);
	struct optics_xc *v;
	int n;

	__real_emu_change_log_init(e);
	d->disturbed = sim_now();
	ring_programs_digest(&e->mem.programs, d->programs);
	xc_map_xcs(&e->mem, &v, &n);
	for (size_t i = d->circuits.n; i-- > 0;) {
		if (!xc_map_has(&e->mem, d->circuits.v[i].xc)) {
			d->circuits.v[i] = d->circuits.v[--d->circuits.n];
		}
	}
	for (int i = 0; i < n; i++) {
		if (!find_circuit(d, v[i])) {
			circuit_made(d, v[i], EMU_BY_RESTART);
		}
	}
	free(v);
}

void oracle_check_devices(void)
{
	for (size_t i = 0; i < devices.n; i++) {
		const struct watched *d = devices.v[i];

		for (size_t k = 0; k < d->circuits.n; k++) {
			const struct circuit *c = &d->circuits.v[k];

			if (c->by == EMU_BY_SESSION && !oracle_is_intended(d->name, c->xc) &&
			    !oracle_is_on_record(d->name, c->xc, true)) {
				sim_fail("unexplained light", "%s: circuit %d,%d, made at %.3f "
					 "s, is in no intent and no open change", d->name,
					 c->xc.in, c->xc.out, (double)c->since / 1e9);
			}
		}
	}
}

/* ---- what a weftd sends -------------------------------------------------- */

/* An open driver of a weftd; batch: what it sends, NULL: it reads. */
struct sender {
	struct drv *drv;
	drv_trace_fn trace;
	void *arg;
	const struct drv_batch *batch;
	bool checked;		/* that the journal has all of the batch */
};

static VEC(struct sender *) senders;

static struct sender *find_sender(const struct drv *drv)
{
	for (size_t i = 0; i < senders.n; i++) {
		if (senders.v[i]->drv == drv) {
			return senders.v[i];
		}
	}
	return NULL;
}

static void check_marked(const struct store *s, const char *device, const struct drv_batch *b)
{
	if (b->programs && !oracle_is_load_marked(s, device)) {
		sim_fail("journal first", "%s: programs are sent, and the journal does not say "
			 "so durably", device);
	}
	for (int i = 0; !b->programs && i < b->n_items; i++) {
		const struct drv_item *it = &b->items[i];

		if (!oracle_is_marked(s, device, it->xc, it->op)) {
			sim_fail("journal first", "%s: %s %d,%d is sent, and the journal does "
				 "not say so durably", device,
				 it->op == DRV_ADD ? "make" : "delete", it->xc.in, it->xc.out);
		}
	}
}

static void on_trace(const char *device, const char *line, bool is_reply, void *arg)
{
	struct sender *from = arg;
	const struct store *s;

	from->trace(device, line, is_reply, from->arg);
	s = is_reply || !from->batch ? NULL : oracle_store();
	if (s && oracle_is_deposed(s)) {
		sim_fail("one leader", "%s: commands come from one who was deposed", device);
	}
	if (s && !from->checked) {
		check_marked(s, device, from->batch);
		from->checked = true;
	}
}

WRAP(void, drv_set_trace, struct drv *dev, drv_trace_fn fn, void *arg)
{
	struct sender *from = find_sender(dev);

	if (!from) {
		from = x_new(1, sizeof(*from));
		vec_push(&senders, from);
	}
	*from = (struct sender){ .drv = dev, .trace = fn, .arg = arg };
	__real_drv_set_trace(dev, on_trace, from);
}

void __real_drv_submit(struct drv *dev, const struct drv_batch *batch, drv_submit_cb cb, void *arg);
void watched_drv_submit(struct drv *dev, const struct drv_batch *batch, drv_submit_cb cb, void *arg)
{
	struct sender *from = find_sender(dev);

	if (from) {
		from->batch = batch;
		from->checked = false;
	}
	__real_drv_submit(dev, batch, cb, arg);
}

WRAP(void, drv_snapshot, struct drv *dev, drv_snapshot_cb cb, void *arg)
{
	struct sender *from = find_sender(dev);

	if (from) {
		from->batch = NULL;
	}
	__real_drv_snapshot(dev, cb, arg);
}
