/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of the ring register protocol (drivers/mrr/mrr_protocol.h):
 * registers, slots with a shadow and an active bank each, lock states by the
 * faults. mrr_light.c plays the programs.
 *
 * A client writes a program into the shadow of a slot, announces its length,
 * CRC, window and name in the slot's registers, and commits a set of slots at
 * once. The commit checks everything before it changes anything: bytes,
 * windows that must not meet, memory. So the ring runs the programs of before
 * or those of after, and never a mixture. Registers are made from the state at
 * each read; nothing is stored twice. What runs is kept in e->mem, from where
 * it returns after a restart that keeps it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/emulators/mrr/mrr_device.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define MAX_STEPS 65535

/* ---- locks ------------------------------------------------------------------ */

/* Entries of a slot's table of locks; the number of settings without a lock is
 * exact beyond. */
#define MAX_LOST (64u << 10)

/* Counts a setting that is not locked; the first one is kept for the slot's
 * registers. One that has not started is in no table: all are then, as the
 * interlock is open. */
static void note_unlocked(struct slot *s, const struct ring_setting *t, enum resonator_lock lock)
{
	const struct ring_fault d = {
		.part = RING_RESONATOR, .dir = t->dir, .fibre = t->fibre,
		.why = (uint8_t)lock, .node = t->node, .channel = t->channel };

	if (s->n_unlocked++ == 0) {
		mrr_put_tune(s->first_unlocked, t);
		s->lock_state = lock;
	}
	if (lock != RESONATOR_NOT_STARTED && s->lost.n < MAX_LOST) {
		vec_push(&s->lost, d);
	}
}

/* All settings of the step that r has read last. */
static void search_step(struct mrr_device *d, struct slot *s, const struct ring_program_reader *r)
{
	for (size_t i = 0; i < r->cells.n; i++) {
		struct ring_setting t = ring_cell_setting(r, &r->cells.v[i]);
		enum resonator_lock lock = mrr_lock_of(d, r, &t);

		if (lock != RESONATOR_LOCKED) {
			note_unlocked(s, &t, lock);
		}
	}
}

/* A resonator is used in many steps and lost once. */
static void sort_lost(struct slot *s)
{
	size_t n = 0;

	if (s->lost.n) {
		qsort(s->lost.v, s->lost.n, sizeof(*s->lost.v), ring_fault_cmp);
	}
	for (size_t i = 0; i < s->lost.n; i++) {
		if (n == 0 || ring_fault_cmp(&s->lost.v[n - 1], &s->lost.v[i])) {
			s->lost.v[n++] = s->lost.v[i];
		}
	}
	s->lost.n = n;
}

/* Without faults everything locks, and no program has to be read. */
void mrr_search_slot(struct mrr_device *d, struct slot *s)
{
	struct ring_program_reader r;

	s->n_unlocked = 0;
	s->lost.n = 0;
	if (!s->p.bytes || (d->e->faults.n == 0 && d->drifted.n == 0) ||
	    ring_program_reader_init(&r, s->p.bytes, s->p.len, NULL)) {
		return;
	}
	while (ring_program_reader_next(&r, NULL) == 0) {
		search_step(d, s, &r);
	}
	ring_program_reader_fini(&r);
	sort_lost(s);
}

void mrr_search_locks(struct mrr_device *d)
{
	for (int i = 0; i < d->n_slots; i++) {
		mrr_search_slot(d, &d->slots[i]);
	}
	if (faults_hold(&d->e->faults, FAULT_INTERLOCK, NULL)) {
		d->flags |= MRR_FLAG_INTERLOCK;
		d->last_code = MRR_CODE_INTERLOCK;
	}
}

/* ---- programs ---------------------------------------------------------------- */

static void clear_slot(struct slot *s)
{
	ring_program_fini(&s->p);
	mrr_stop_light(s);
	s->step = s->step_control = 0;
}

/* A program begins with its first step. Takes p over. */
static void fill_slot(struct slot *s, struct ring_program *p)
{
	clear_slot(s);
	s->p = *p;
	s->crc = mrr_crc32(0, p->bytes, p->len);
	memset(p, 0, sizeof(*p));
}

/* What the slots run, which differ in their names, into e->mem, from where it is
 * kept over a restart. */
static void remember(struct mrr_device *d)
{
	struct ring_programs all = { 0 };

	for (int i = 0; i < d->n_slots; i++) {
		struct ring_program copy;

		if (d->slots[i].p.bytes) {
			ring_program_copy(&copy, &d->slots[i].p);
			ring_programs_add(&all, &copy, NULL);
		}
	}
	ring_programs_fini(&d->e->mem.programs);
	d->e->mem.programs = all;
}

/* The slots from e->mem: programs take slots in the order of their names, so a
 * restart may move one to another slot. */
static void recall(struct mrr_device *d)
{
	const struct ring_programs *all = &d->e->mem.programs;

	for (int i = 0; i < d->n_slots; i++) {
		struct ring_program copy;

		clear_slot(&d->slots[i]);
		if (i < all->n) {
			ring_program_copy(&copy, &all->v[i]);
			fill_slot(&d->slots[i], &copy);
		}
	}
	mrr_search_locks(d);
}

/* The setting in the middle gets another mode, and the program is packed
 * again: it stays well-formed, so only its CRC shows the change. */
bool mrr_corrupt(struct ring_program *p)
{
	struct ring_settings prog;
	struct ring_program bad;
	struct ring_setting *t;
	int rc;

	if (!p->settings || ring_program_unpack(p, &prog, NULL)) {
		return false;
	}
	t = &prog.v[prog.n / 2];
	t->mode = t->mode == RESONATOR_ADD_DROP ? RESONATOR_ADD : t->mode ^ RESONATOR_ADD_DROP;
	rc = ring_program_pack(&bad, p->name, &p->window, &p->ring, &prog, NULL);
	ring_settings_fini(&prog);
	if (rc == 0) {
		ring_program_fini(p);
		*p = bad;
	}
	return rc == 0;
}

/* ---- banks ------------------------------------------------------------------ */

/* Doubles the shadow until `need` bytes fit; bytes that were never written read as
 * zero. */
static void grow_shadow(struct slot *s, size_t need)
{
	size_t cap = s->shadow_cap ? s->shadow_cap : 4096;
	uint8_t *bytes;

	if (need <= s->shadow_cap) {
		return;
	}
	while (cap < need) {
		cap *= 2;
	}
	bytes = x_grow(s->shadow, cap, 1);
	memset(bytes + s->shadow_cap, 0, cap - s->shadow_cap);
	s->shadow = bytes;
	s->shadow_cap = cap;
}

/* The slot and the byte that a page and an offset of a bank mean; NULL for
 * another bank. */
static struct slot *in_bank(struct mrr_device *d, enum mrr_bank bank,
			    const struct mrr_frame *f, size_t *at)
{
	uint32_t page = (uint32_t)f->page - bank;

	if (f->page < bank || page >= (uint32_t)d->n_slots * MRR_SLOT_PAGES ||
	    f->offset >= MRR_PAGE_BYTES) {
		return NULL;
	}
	*at = (size_t)(page % MRR_SLOT_PAGES) * MRR_PAGE_BYTES + f->offset;
	return &d->slots[page / MRR_SLOT_PAGES];
}

/* ---- commit ------------------------------------------------------------------ */

/* CRC of the announced bytes, as far as they were written. */
static uint32_t found_crc(const struct slot *s)
{
	size_t n = s->stage_bytes < s->shadow_cap ? s->stage_bytes : s->shadow_cap;

	return mrr_crc32(0, s->shadow, n);
}

/* The staged program as it will run, in *out, which owns it. *detail is what
 * the answer names: the CRC that was found, or the slot. */
static enum mrr_code take_staged(struct mrr_device *d, int i,
				 struct ring_program *out, uint32_t *detail)
{
	struct slot *s = &d->slots[i];
	struct ring_program p = { .window = s->stage_window };
	uint8_t *bytes;

	if (s->stage_bytes > s->shadow_cap || !mrr_is_text(s->stage_name, sizeof(s->stage_name))) {
		return MRR_BAD_LENGTH;
	}
	*detail = found_crc(s);
	if (*detail != s->stage_crc) {
		return MRR_BAD_CRC;
	}
	*detail = (uint32_t)i;
	bytes = x_alloc(s->stage_bytes, 1);
	memcpy(bytes, s->shadow, s->stage_bytes);
	memcpy(p.name, s->stage_name, sizeof(p.name));
	if (ring_program_read(&p, bytes, s->stage_bytes, NULL)) {
		return MRR_BAD_PROGRAM;
	}
	*out = p;
	return p.steps > MAX_STEPS ? MRR_BAD_PROGRAM : MRR_OK;
}

/* All that would run after the commit, without touching it: each program by
 * itself, no two of one name or in overlapping windows, and the memory.
 * O(slots^2 + bytes). */
static enum mrr_code check_together(struct mrr_device *d, const struct ring_program *next,
				    uint32_t *detail)
{
	const struct ring_geometry g = {
		.nodes = (uint16_t)d->e->mem.n_in,
		.channels = (uint16_t)d->e->mem.n_out,
		.fibres = (uint8_t)d->e->conf.fibres };
	size_t bytes = 0;

	for (int i = 0; i < d->n_slots; i++) {
		struct ring_programs one = { 1, (struct ring_program *)&next[i] };

		if (!next[i].bytes) {
			continue;
		}
		*detail = (uint32_t)i;
		if (ring_programs_check(&one, &g, NULL)) {
			return MRR_BAD_PROGRAM;
		}
		for (int k = 0; k < i; k++) {
			*detail = (uint32_t)k;
			if (next[k].bytes && (strcmp(next[k].name, next[i].name) == 0 ||
					      ring_windows_overlap(&next[k].window, &next[i].window,
								   g.nodes))) {
				return MRR_CONFLICT;
			}
		}
		bytes += next[i].len;
	}
	*detail = (uint32_t)d->e->conf.memory;
	return bytes > (uint64_t)d->e->conf.memory ? MRR_NO_MEMORY : MRR_OK;
}

/* next: [n_slots] in the slots that stay borrowed, in the others owned. */
static enum mrr_code check_commit(struct mrr_device *d, struct ring_program *next, uint32_t *detail)
{
	enum mrr_code code = MRR_OK;

	if (faults_hold(&d->e->faults, FAULT_INTERLOCK, NULL)) {
		return MRR_INTERLOCK;
	}
	if (d->fence < d->writer) {
		return MRR_STALE_WRITER;
	}
	for (int i = 0; i < d->n_slots && code == MRR_OK; i++) {
		if (!(d->mask >> i & 1)) {
			next[i] = d->slots[i].p;
		} else if (d->slots[i].stage == MRR_STAGE_LOAD) {
			code = take_staged(d, i, &next[i], detail);
		} else if (d->slots[i].stage != MRR_STAGE_CLEAR) {
			*detail = (uint32_t)i;
			code = MRR_BAD_LENGTH;
		}
	}
	return code ? code : check_together(d, next, detail);
}

/* From here on nothing can fail: slots of the mask get their new programs or
 * become empty. */
static void put_in_effect(struct mrr_device *d, struct ring_program *next)
{
	for (int i = 0; i < d->n_slots; i++) {
		struct slot *s = &d->slots[i];

		if (!(d->mask >> i & 1)) {
			continue;
		}
		if (next[i].bytes && faults_strike(&d->e->faults, FAULT_CORRUPT_ACTIVE, NULL)) {
			mrr_corrupt(&next[i]);
		}
		if (next[i].bytes) {
			fill_slot(s, &next[i]);
		} else {
			clear_slot(s);
		}
		s->stage = MRR_STAGE_NOTHING;
		s->generation++;
		mrr_settle(d, s);
		mrr_search_slot(d, s);
	}
}

/* Checks and carries out a commit; next[] of the slots in the mask that were
 * not taken over are freed here. */
static enum mrr_code commit(struct mrr_device *d, uint32_t *detail)
{
	struct ring_program next[MRR_MAX_SLOTS] = { 0 };
	enum mrr_code code = check_commit(d, next, detail);

	if (code == MRR_OK && !faults_strike(&d->e->faults, FAULT_IGNORE_COMMIT, NULL)) {
		put_in_effect(d, next);
		remember(d);
		d->writer = d->fence;
		d->generation++;
		emu_changed(d->e);
	}
	for (int i = 0; i < d->n_slots; i++) {
		if (d->mask >> i & 1) {
			ring_program_fini(&next[i]);
		}
	}
	return code;
}

/* ---- registers ----------------------------------------------------------------- */

/* With autostep the step follows from the time that has passed, so no timer
 * runs for it. */
uint32_t mrr_current_step(const struct slot *s)
{
	uint64_t gone = 0;

	if (s->p.steps == 0) {
		return 0;
	}
	if (s->step_control & MRR_AUTOSTEP) {
		gone = (uint64_t)(clk_now_ns() - s->step_ns) / AUTOSTEP_NS;
	}
	return (uint32_t)((s->step + gone) % s->p.steps);
}

void mrr_step(struct slot *s, uint32_t control)
{
	s->step = mrr_current_step(s) + (control & MRR_TRIGGER ? 1 : 0);
	s->step_ns = clk_now_ns();
	s->step_control = control & MRR_AUTOSTEP;
}

/* A slot's registers, MRR_SLOT_REGISTERS bytes. Those of a program are zero
 * where the slot is empty. */
static void fill_slot_registers(const struct slot *s, uint8_t *r)
{
	memset(r, 0, MRR_SLOT_REGISTERS);
	mrr_put32(r + MRR_SLOT_STATUS, s->p.bytes ? MRR_HAS_PROGRAM : 0);
	mrr_put32(r + MRR_SLOT_GENERATION, s->generation);
	mrr_put32(r + MRR_SLOT_WRITES, s->writes);
	mrr_put32(r + MRR_STAGE, s->stage);
	mrr_put32(r + MRR_STAGE_BYTES, s->stage_bytes);
	mrr_put32(r + MRR_STAGE_CRC, s->stage_crc);
	mrr_put_window(r + MRR_STAGE_WINDOW, &s->stage_window);
	memcpy(r + MRR_STAGE_NAME, s->stage_name, sizeof(s->stage_name));
	if (!s->p.bytes) {
		return;
	}
	mrr_put32(r + MRR_SLOT_BYTES, (uint32_t)s->p.len);
	mrr_put32(r + MRR_SLOT_CRC, s->crc);
	mrr_put32(r + MRR_SLOT_STEPS, s->p.steps);
	mrr_put_window(r + MRR_SLOT_WINDOW, &s->p.window);
	memcpy(r + MRR_SLOT_NAME, s->p.name, sizeof(s->p.name));
	mrr_put32(r + MRR_LOCK_TOTAL, s->p.settings);
	mrr_put32(r + MRR_LOCK_FAILED, s->n_unlocked);
	if (s->n_unlocked) {
		memcpy(r + MRR_LOCK_TUNE, s->first_unlocked, MRR_TUNE_BYTES);
		mrr_put32(r + MRR_LOCK_STATE, s->lock_state);
	}
	mrr_put32(r + MRR_STEP, mrr_current_step(s));
	mrr_put32(r + MRR_STEP_CONTROL, s->step_control);
}

/* A controller of the protocol's first features alone: no tables, events or
 * relocking. */
static bool is_plain(const struct mrr_device *d)
{
	return faults_hold(&d->e->faults, FAULT_PLAIN, NULL);
}

/* The controller's own registers, MRR_REGISTERS bytes. */
static void fill_registers(const struct mrr_device *d, uint8_t *r)
{
	const struct xc_map *mem = &d->e->mem;
	uint64_t used = 0;

	memset(r, 0, MRR_REGISTERS);
	memcpy(r + MRR_ID, "WMRR", 4);
	mrr_put32(r + MRR_REVISION, MRR_REVISION_NOW);
	mrr_put32(r + MRR_NODES, (uint32_t)mem->n_in);
	mrr_put32(r + MRR_CHANNELS, (uint32_t)mem->n_out);
	mrr_put32(r + MRR_FIBRES, (uint32_t)d->e->conf.fibres);
	mrr_put32(r + MRR_MAX_STEPS, MAX_STEPS);
	mrr_put32(r + MRR_MAX_TUNES, RING_MAX_SETTINGS);
	mrr_put32(r + MRR_FEATURES, (is_plain(d) ? 0u : MRR_FAILURES |
		  MRR_LOCKS | MRR_SENDS_EVENTS | MRR_RELOCKS) |
		  (d->e->conf.overlap ? MRR_OVERLAP : 0u));
	mrr_put32(r + MRR_MEMORY, (uint32_t)d->e->conf.memory);
	mrr_put32(r + MRR_MEMORY_USED, (uint32_t)ring_programs_bytes(&mem->programs));
	mrr_put32(r + MRR_MAX_WINDOW, MRR_MAX_DATA);
	mrr_put32(r + MRR_SLOTS, (uint32_t)d->n_slots);
	memcpy(r + MRR_SERIAL, d->e->conf.name, strnlen(d->e->conf.name, MRR_BOOTS - MRR_SERIAL));
	mrr_put32(r + MRR_BOOTS, (uint32_t)mem->boots);
	mrr_put32(r + MRR_GENERATION, d->generation);
	mrr_put64(r + MRR_WRITER, d->writer);
	mrr_put32(r + MRR_FLAGS, d->flags);
	mrr_put32(r + MRR_LAST_CODE, d->last_code);
	mrr_put32(r + MRR_STATUS, (mem->programs.n ? MRR_HAS_PROGRAM : 0u) |
		  (clk_now_ns() < d->locked_ns ? MRR_LOCKING : 0u) |
		  (faults_hold(&d->e->faults, FAULT_INTERLOCK, NULL) ?
		   MRR_INTERLOCKED : 0u));
	for (int i = 0; i < d->n_slots; i++) {
		used |= (uint64_t)(d->slots[i].p.bytes != NULL) << i;
	}
	mrr_put64(r + MRR_USED, used);
	mrr_put64(r + MRR_FENCE, d->fence);
	mrr_put64(r + MRR_MASK, d->mask);
}

/* Writes the registers from offset on; all must be writable. Flags are cleared
 * by writing ones. */
static enum mrr_code write_registers(struct emu_client *c, struct mrr_device *d,
				     const struct mrr_frame *f)
{
	uint8_t r[MRR_REGISTERS];
	uint32_t end = f->offset + f->len;

	if (f->offset >= MRR_RELOCK && is_plain(d)) {
		return MRR_BAD_ADDRESS;
	}
	if (f->offset == MRR_EVENTS && f->len == 4) {
		*emu_client_mark(c) = mrr_get32(f->data) ? mrr_event_mark(d) : 0;
		return MRR_OK;
	}
	if (f->offset == MRR_RELOCK && f->len == 4) {
		return mrr_get32(f->data) == MRR_RELOCK_WORD ? mrr_relock(d) : MRR_BAD_LENGTH;
	}
	if (f->len % 4 || f->offset % 4 || end > MRR_REGISTERS) {
		return MRR_BAD_LENGTH;
	}
	fill_registers(d, r);
	if (f->offset == MRR_FLAGS && f->len == 4) {
		d->flags &= ~mrr_get32(f->data);
	} else if (f->offset >= MRR_FENCE && end <= MRR_COMMIT) {
		memcpy(r + f->offset, f->data, f->len);
		d->fence = mrr_get64(r + MRR_FENCE);
		d->mask = mrr_get64(r + MRR_MASK);
	} else {
		return MRR_READ_ONLY;
	}
	return MRR_OK;
}

/* Stepping and staging are the only writes; each counts, so that a client sees
 * that another one wrote. */
static enum mrr_code write_slot(struct slot *s, const struct mrr_frame *f)
{
	uint8_t r[MRR_SLOT_REGISTERS];
	uint32_t end = f->offset + f->len;

	if (f->len % 4 || f->offset % 4 || end > MRR_SLOT_REGISTERS) {
		return MRR_BAD_LENGTH;
	}
	fill_slot_registers(s, r);
	if (f->offset == MRR_STEP_CONTROL && f->len == 4) {
		mrr_step(s, mrr_get32(f->data));
	} else if (f->offset >= MRR_STAGE) {
		memcpy(r + f->offset, f->data, f->len);
		s->stage = mrr_get32(r + MRR_STAGE);
		s->stage_bytes = mrr_get32(r + MRR_STAGE_BYTES);
		s->stage_crc = mrr_get32(r + MRR_STAGE_CRC);
		mrr_get_window(r + MRR_STAGE_WINDOW, &s->stage_window);
		memcpy(s->stage_name, r + MRR_STAGE_NAME, sizeof(s->stage_name));
	} else {
		return MRR_READ_ONLY;
	}
	s->writes++;
	return MRR_OK;
}

/* ---- frames ---------------------------------------------------------------------- */

/* A reply repeats the request's place and sequence number. */
static void answer(struct emu_client *c, const struct mrr_frame *f, uint8_t op,
		   uint8_t code, const void *data, uint32_t len)
{
	const struct mrr_frame reply = {
		.op = op, .code = code, .seq = f->seq, .page = f->page,
		.offset = f->offset, .len = len, .data = data };
	struct buf b = { 0 };

	mrr_encode(&b, &reply);
	emu_reply(c, b.data, b.len);
	buf_fini(&b);
}

/* A refusal with its code; detail is what was found, by the code. */
static void nack(struct emu_client *c, const struct mrr_frame *f,
		 enum mrr_code code, uint32_t detail)
{
	uint8_t data[4];

	mrr_put32(data, detail);
	answer(c, f, MRR_NACK, (uint8_t)code, data, sizeof(data));
}

/* The registers of a page, as they are now. Their number of bytes. */
static size_t page_registers(struct mrr_device *d, const struct mrr_frame *f, uint8_t *r)
{
	struct slot *s;

	if (f->page == 0) {
		fill_registers(d, r);
		return MRR_REGISTERS;
	}
	if (f->page < MRR_SLOT || f->page >= MRR_SLOT + d->n_slots) {
		return 0;
	}
	s = &d->slots[f->page - MRR_SLOT];
	fill_slot_registers(s, r);
	if (s->stage == MRR_STAGE_LOAD) {
		mrr_put32(r + MRR_STAGE_CRC_FOUND, found_crc(s));
	}
	return MRR_SLOT_REGISTERS;
}

/* A part of a table, which is made for each read. */
static void answer_table(struct emu_client *c, const struct mrr_device *d,
			 const struct mrr_frame *f, uint32_t n)
{
	struct buf table = { 0 };

	if (f->page == MRR_LOCK_TABLE) {
		mrr_put_lost(d, &table);
	} else {
		mrr_put_failures(d, &table);
	}
	if (f->offset + (size_t)n > table.len) {
		nack(c, f, MRR_BAD_ADDRESS, (uint32_t)table.len);
	} else {
		answer(c, f, MRR_READ_OK, 0, (uint8_t *)table.data + f->offset, n);
	}
	buf_fini(&table);
}

/* Registers, tables or a bank; a read beyond what was written is refused, with
 * the size. */
static void answer_read(struct emu_client *c, struct mrr_device *d, const struct mrr_frame *f)
{
	uint32_t n = f->len == 4 ? mrr_get32(f->data) : 0;
	uint8_t r[MRR_SLOT_REGISTERS];
	const uint8_t *from = r;
	size_t at = f->offset, size = page_registers(d, f, r);
	struct slot *s;

	if (n == 0 || n > MRR_MAX_DATA) {
		nack(c, f, MRR_BAD_LENGTH, n);
		return;
	}
	if ((f->page == MRR_FAILURE_TABLE || f->page == MRR_LOCK_TABLE) && !is_plain(d)) {
		answer_table(c, d, f, n);
		return;
	}
	if ((s = in_bank(d, MRR_SHADOW, f, &at)) != NULL) {
		from = s->shadow;
		size = s->shadow_cap;
	} else if ((s = in_bank(d, MRR_ACTIVE, f, &at)) != NULL) {
		from = s->p.bytes;
		size = s->p.len;
	}
	if (!from || at + n > size) {
		nack(c, f, MRR_BAD_ADDRESS, (uint32_t)size);
	} else {
		answer(c, f, MRR_READ_OK, 0, from + at, n);
	}
}

/* Bytes of a program; they must stay within a page, as in hardware with paged
 * addressing. */
static enum mrr_code write_shadow(struct mrr_device *d, struct slot *s,
				  const struct mrr_frame *f, size_t at)
{
	if (f->offset + f->len > MRR_PAGE_BYTES || at + f->len > (size_t)d->e->conf.memory) {
		return MRR_BAD_ADDRESS;
	}
	grow_shadow(s, at + f->len);
	memcpy(s->shadow + at, f->data, f->len);
	s->writes++;
	if (f->len && faults_strike(&d->e->faults, FAULT_CORRUPT_SHADOW, NULL)) {
		s->shadow[at] ^= 1;
	}
	return MRR_OK;
}

static enum mrr_code write_page(struct emu_client *c, struct mrr_device *d,
				const struct mrr_frame *f)
{
	struct slot *s;
	size_t at;

	if (f->page == 0) {
		return write_registers(c, d, f);
	}
	if (f->page >= MRR_SLOT && f->page < MRR_SLOT + d->n_slots) {
		return write_slot(&d->slots[f->page - MRR_SLOT], f);
	}
	s = in_bank(d, MRR_SHADOW, f, &at);
	if (s) {
		return write_shadow(d, s, f, at);
	}
	return f->page >= MRR_ACTIVE ? MRR_READ_ONLY : MRR_BAD_ADDRESS;
}

/* Of all writes a commit alone is a set command to the faults. */
static void answer_write(struct emu_client *c, struct mrr_device *d, const struct mrr_frame *f)
{
	enum emu_fate fate = EMU_DO;
	enum mrr_code code;
	uint32_t detail = 0;

	if (faults_strike(&d->e->faults, FAULT_NACK, NULL)) {
		code = MRR_BUSY;
	} else if (f->page == 0 && f->offset == MRR_COMMIT) {
		fate = emu_set_command(c);
		code = f->len == 4 && mrr_get32(f->data) == MRR_COMMIT_WORD ?
		       MRR_OK : MRR_BAD_LENGTH;
		if (fate != EMU_EAT && code == MRR_OK) {
			code = commit(d, &detail);
		}
	} else {
		code = write_page(c, d, f);
	}
	if (fate == EMU_DO_AND_DROP) {
		emu_drop(c);
	} else if (fate == EMU_DO && code == MRR_OK) {
		answer(c, f, MRR_WRITE_OK, 0, NULL, 0);
	} else if (fate == EMU_DO) {
		nack(c, f, code, detail);
	}
}

/* The controller's own registers are not behind the bus. */
static bool bus_is_silent(struct mrr_device *d, const struct mrr_frame *f)
{
	if (f->page == 0 || !faults_strike(&d->e->faults, FAULT_BUS_NACK, NULL)) {
		return false;
	}
	d->flags |= MRR_FLAG_BUS;
	d->last_code = MRR_CODE_BUS;
	return true;
}

/* The state after power-on: programs as e->mem has them, nothing staged, no
 * writer, and the flag that says so. */
static void power_up(struct mrr_device *d)
{
	d->flags = MRR_FLAG_POWERED_UP;
	d->last_code = MRR_CODE_POWERED_UP;
	d->writer = d->fence = d->mask = 0;
	d->generation = 0;
	d->drifted.n = 0;
	for (int i = 0; i < d->n_slots; i++) {
		d->slots[i].stage = MRR_STAGE_NOTHING;
		d->slots[i].generation = d->slots[i].writes = 0;
	}
	recall(d);
}

/* One frame. The fault `reset` strikes before a frame is looked at, and its
 * session stays: a client notices by the number of boots alone. A frame with a
 * bad checksum is refused under the number in its head. */
static int64_t emu_mrr_input(struct emu_client *c, const uint8_t *data, size_t len)
{
	struct mrr_device *d = emu_of(c)->device;
	int64_t n = mrr_frame_length(data, len, 0, NULL);
	struct mrr_frame f;

	if (n <= 0) {
		return n;
	}
	d->e->n_commands++;
	if (faults_strike(&d->e->faults, FAULT_RESET, NULL)) {
		xc_map_clear(&d->e->mem);
		d->e->mem.boots++;
		power_up(d);
		emu_changed_by(d->e, EMU_BY_FAULT);
	}
	if (!mrr_decode(data, (size_t)n, &f)) {
		memset(&f, 0, sizeof(f));
		f.seq = mrr_get32(data + 4);
		nack(c, &f, MRR_BAD_FRAME, 0);
	} else if (bus_is_silent(d, &f)) {
		nack(c, &f, MRR_BUS, 0);
	} else if (f.op == MRR_READ) {
		answer_read(c, d, &f);
	} else if (f.op == MRR_WRITE) {
		answer_write(c, d, &f);
	} else {
		nack(c, &f, MRR_BAD_FRAME, 0);
	}
	return n;
}

/* ---- as a dialect ------------------------------------------------------------------- */

static void emu_mrr_open(struct emu *e)
{
	struct mrr_device *d = x_new(1, sizeof(*d));

	d->e = e;
	d->n_slots = e->conf.slots;
	e->device = d;
	mrr_drift_init(d);
	power_up(d);
	mrr_drift(d);
}

static void emu_mrr_close(struct emu *e)
{
	struct mrr_device *d = e->device;

	for (int i = 0; i < d->n_slots; i++) {
		clear_slot(&d->slots[i]);
		free(d->slots[i].shadow);
		vec_fini(&d->slots[i].lost);
	}
	mrr_drift_fini(d);
	free(d);
}

static uint32_t n_unlocked(const struct mrr_device *d)
{
	uint32_t n = 0;

	for (int i = 0; i < d->n_slots; i++) {
		n += d->slots[i].n_unlocked;
	}
	return n;
}

/* The faults have changed. A lock that was lost or a flag that was set is an
 * event; a lock that was found again is none. */
static void look_again(struct mrr_device *d)
{
	uint32_t before = n_unlocked(d), flags = d->flags;
	const struct ring_fault *place = NULL;

	mrr_search_locks(d);
	for (int i = 0; i < d->n_slots && !place; i++) {
		place = d->slots[i].lost.n ? d->slots[i].lost.v : NULL;
	}
	if (n_unlocked(d) > before || d->flags != flags) {
		mrr_send_event(d, place);
	}
}

static void emu_mrr_refresh(struct emu *e, enum emu_map_event event)
{
	struct mrr_device *d = e->device;
	bool dark = true;

	for (int i = 0; i < d->n_slots; i++) {
		dark = dark && !d->slots[i].p.bytes;
	}
	if (event == EMU_RESTARTED) {
		power_up(d);
	} else if (e->mem.programs.n == 0 && !dark) {
		/* Another user took the programs away. */
		d->generation++;
		recall(d);
	} else {
		look_again(d);
	}
	mrr_drift(d);
}

const struct emu_dialect emu_mrr = {
	.name = "mrr-reg",
	.kind = DRV_RING,
	.max_input = MRR_MAX_FRAME,
	.open = emu_mrr_open,
	.close = emu_mrr_close,
	.input = emu_mrr_input,
	.refresh = emu_mrr_refresh,
	.command = mrr_command,
};
