/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `mrr-reg`: registers, slots and banks are read.
 *
 * Reading is a chain of requests, with up to FRAMES_OUT of them out at a time
 * for slots and banks. Registers are checked for plausibility before any of
 * them is used: sizes from there bound every loop that follows. A start counter
 * that has changed since the last operation becomes an event.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/mrr/mrr.h"
#include "lib/base/alloc.h"

/* ---- registers --------------------------------------------------------------- */

/* What a device can mean seriously. */
static const char *implausible(const struct mrr *m)
{
	uint32_t window = mrr_reg(m, MRR_MAX_WINDOW), slots = mrr_reg(m, MRR_SLOTS);

	if (memcmp(m->regs + MRR_ID, "WMRR", 4) != 0) {
		return "it is no MRR ring controller";
	}
	if (mrr_reg(m, MRR_REVISION) != MRR_REVISION_NOW) {
		return "its register map has another revision than 2";
	}
	if (window < 8 || window > MRR_MAX_DATA || slots < 1 ||
	    slots > MRR_MAX_SLOTS ||
	    mrr_reg(m, MRR_MEMORY_USED) > mrr_reg(m, MRR_MEMORY)) {
		return "its registers contradict each other";
	}
	return NULL;
}

/* Nothing asked it to, or another user did. */
static void note_start(struct mrr *m)
{
	char text[DRV_TEXT_MAX];
	struct drv_event ev = { .kind = DRV_EVENT_ALARM, .text = text };

	if (m->was_read && m->boots_seen != mrr_reg(m, MRR_BOOTS)) {
		snprintf(text, sizeof(text), "the controller restarted, code %"
			 PRIu32 ": %s", mrr_reg(m, MRR_LAST_CODE),
			 mrr_last_code_text(mrr_reg(m, MRR_LAST_CODE)));
		base_event(&m->h, &ev);
	}
	m->was_read = true;
	m->boots_seen = mrr_reg(m, MRR_BOOTS);
}

bool mrr_take_registers(struct mrr *m, const struct mrr_frame *f)
{
	const char *wrong;
	struct err err = { 0 };

	if (f->op != MRR_READ_OK || f->len != MRR_REGISTERS) {
		mrr_give_up_text(m, WEFT_EDEVICE, "the register page is not whole");
		return false;
	}
	memcpy(m->regs, f->data, sizeof(m->regs));
	wrong = implausible(m);
	if (wrong) {
		mrr_give_up_text(m, WEFT_EDEVICE, wrong);
		return false;
	}
	m->n_slots = (int)mrr_reg(m, MRR_SLOTS);
	if (mrr_reg(m, MRR_NODES) != (uint32_t)m->h.n_in ||
	    mrr_reg(m, MRR_CHANNELS) != (uint32_t)m->h.n_out ||
	    mrr_reg(m, MRR_FIBRES) != (uint32_t)m->h.ring_fibres) {
		err_set(&err, WEFT_EVERIFY, "%s: the device has %" PRIu32
			" nodes, %" PRIu32 " channels, %" PRIu32 " fibres per "
			"direction, the fabric says %d, %d, %d", m->h.drv.name,
			mrr_reg(m, MRR_NODES), mrr_reg(m, MRR_CHANNELS),
			mrr_reg(m, MRR_FIBRES), m->h.n_in, m->h.n_out,
			m->h.ring_fibres);
		mrr_give_up(m, &err);
		return false;
	}
	note_start(m);
	return true;
}

void mrr_read_registers(struct mrr *m, void (*next)(struct mrr *, const struct mrr_frame *))
{
	m->next = next;
	mrr_ask_read(m, 0, 0, MRR_REGISTERS);
}

static bool slot_plausible(const struct mrr *m, const struct mrr_slot *s)
{
	return !mrr_in_use(s) ||
	       (mrr_slot_reg(s, MRR_SLOT_BYTES) <= mrr_reg(m, MRR_MEMORY) &&
		mrr_slot_reg(s, MRR_SLOT_BYTES) <= MRR_SLOT_MEMORY &&
		mrr_is_text(s->regs + MRR_SLOT_NAME, RING_PROGRAM_NAME_MAX + 1));
}

/* Slots that run nothing and are staged for nothing need no look. */
static int next_slot(const struct mrr *m, int slot)
{
	uint64_t used = mrr_get64(m->regs + MRR_USED);

	while (slot < m->n_slots && !(used >> slot & 1) && !m->slots[slot].staged) {
		slot++;
	}
	return slot;
}

static void read_more_slots(struct mrr *m)
{
	while (m->h.op != BASE_IDLE && m->slots_asked < m->n_slots &&
	       tcp_open_requests(m->h.session) < FRAMES_OUT) {
		int slot = m->slots_asked;

		m->slots_asked = next_slot(m, slot + 1);
		mrr_ask_read(m, (uint16_t)(MRR_SLOT + slot), 0, MRR_SLOT_REGISTERS);
	}
}

static void on_slot(struct mrr *m, const struct mrr_frame *f)
{
	struct mrr_slot *s = &m->slots[m->slots_answered];

	m->slots_answered = next_slot(m, m->slots_answered + 1);

	if (f->op != MRR_READ_OK || f->len != MRR_SLOT_REGISTERS) {
		mrr_give_up_text(m, WEFT_EDEVICE, "a slot's page is not whole");
		return;
	}
	memcpy(s->regs, f->data, sizeof(s->regs));
	if (!slot_plausible(m, s)) {
		mrr_give_up_text(m, WEFT_EDEVICE, "a slot's registers contradict each other");
	} else if (m->slots_answered == m->n_slots) {
		m->table_read(m);
	} else {
		read_more_slots(m);
	}
}

void mrr_read_slots(struct mrr *m)
{
	for (int i = 0; i < m->n_slots; i++) {
		memset(m->slots[i].regs, 0, sizeof(m->slots[i].regs));
	}
	m->slots_asked = m->slots_answered = next_slot(m, 0);
	m->next = on_slot;
	if (m->slots_asked == m->n_slots) {
		m->table_read(m);
	} else {
		read_more_slots(m);
	}
}

static void on_events(struct mrr *m, const struct mrr_frame *f)
{
	(void)f;
	m->events_out = false;
	mrr_read_slots(m);
}

/* Once in a session, and again when the device forgot it. */
static bool asks_for_events(struct mrr *m)
{
	uint8_t on[4];

	if (!(mrr_reg(m, MRR_FEATURES) & MRR_SENDS_EVENTS) ||
	    (m->heard_session == tcp_sessions(m->h.session) &&
	     m->heard_boots == mrr_reg(m, MRR_BOOTS))) {
		return false;
	}
	m->heard_session = tcp_sessions(m->h.session);
	m->heard_boots = mrr_reg(m, MRR_BOOTS);
	m->events_out = true;
	m->next = on_events;
	mrr_put32(on, 1);
	mrr_ask(m, MRR_WRITE, 0, MRR_EVENTS, on, sizeof(on));
	return true;
}

static void on_table_registers(struct mrr *m, const struct mrr_frame *f)
{
	if (mrr_take_registers(m, f) && !asks_for_events(m)) {
		mrr_read_slots(m);
	}
}

/* Device and slots. */
void mrr_read_table(struct mrr *m, void (*done)(struct mrr *))
{
	m->table_read = done;
	mrr_read_registers(m, on_table_registers);
}

/* ---- moving banks ----------------------------------------------------------- */

uint32_t mrr_piece(const struct mrr *m, uint32_t at)
{
	uint32_t to_page_end = MRR_PAGE_BYTES - at % MRR_PAGE_BYTES;
	uint32_t n = m->total - at;

	n = n < m->frame_bytes ? n : m->frame_bytes;
	return n < to_page_end ? n : to_page_end;
}

uint16_t mrr_bank_page(const struct mrr *m, enum mrr_bank bank, uint32_t at)
{
	return (uint16_t)(bank + (uint32_t)m->at_slot * MRR_SLOT_PAGES + at / MRR_PAGE_BYTES);
}

void mrr_begin_bank(struct mrr *m, uint32_t total)
{
	uint32_t most = mrr_reg(m, MRR_MAX_WINDOW);

	m->total = total;
	m->asked = m->answered = 0;
	m->frame_bytes = m->window < most ? (uint32_t)m->window : most;
}

static void read_more(struct mrr *m)
{
	while (m->h.op != BASE_IDLE && m->asked < m->total &&
	       tcp_open_requests(m->h.session) < FRAMES_OUT) {
		uint32_t n = mrr_piece(m, m->asked), at = m->asked;

		m->asked += n;
		mrr_ask_read(m, mrr_bank_page(m, MRR_ACTIVE, at), at % MRR_PAGE_BYTES, n);
	}
}

static void read_bank_after(struct mrr *m, int slot);

static void on_read(struct mrr *m, const struct mrr_frame *f)
{
	uint32_t n = mrr_piece(m, m->answered);

	if (f->op != MRR_READ_OK || f->len != n) {
		mrr_give_up_text(m, WEFT_EDEVICE, "the answer to a read has another length");
		return;
	}
	memcpy(m->slots[m->at_slot].bank + m->answered, f->data, n);
	m->answered += n;
	if (m->answered == m->total) {
		read_bank_after(m, m->at_slot + 1);
	} else {
		read_more(m);
	}
}

/* The active bank of the next slot in use, from `slot` on. */
static void read_bank_after(struct mrr *m, int slot)
{
	struct mrr_slot *s;

	while (slot < m->n_slots && (!mrr_in_use(&m->slots[slot]) ||
				     !mrr_slot_reg(&m->slots[slot],
						   MRR_SLOT_BYTES))) {
		slot++;
	}
	if (slot == m->n_slots) {
		m->moved(m);
		return;
	}
	s = &m->slots[slot];
	m->at_slot = slot;
	mrr_begin_bank(m, mrr_slot_reg(s, MRR_SLOT_BYTES));
	free(s->bank);
	s->bank = x_alloc(m->total, 1);
	m->next = on_read;
	read_more(m);
}

void mrr_read_banks(struct mrr *m, void (*moved)(struct mrr *))
{
	m->moved = moved;
	read_bank_after(m, 0);
}

/* What was read has the CRC that the device reports, in all slots. */
static bool banks_are_sound(const struct mrr *m)
{
	for (int i = 0; i < m->n_slots; i++) {
		const struct mrr_slot *s = &m->slots[i];

		if (mrr_in_use(s) && (!s->bank || mrr_slot_reg(s, MRR_SLOT_CRC) !=
		    mrr_crc32(0, s->bank, mrr_slot_reg(s, MRR_SLOT_BYTES)))) {
			return false;
		}
	}
	return true;
}

/* ---- snapshot ------------------------------------------------------------------ */

static void fill_snapshot(struct mrr *m)
{
	struct drv_snapshot *s = &m->h.snap;

	snprintf(s->identity, sizeof(s->identity),
		 "weft,mrr-reg,%.32s,%" PRIu32, (char *)m->regs + MRR_SERIAL,
		 mrr_reg(m, MRR_REVISION));
	for (char *c = s->identity; *c; c++) {
		*c = *c >= ' ' && *c < 127 ? *c : '?';
	}
	snprintf(s->epoch, sizeof(s->epoch), "boot-%" PRIu32,
		 mrr_reg(m, MRR_BOOTS));
	s->caps = (struct drv_caps){
		.kind = DRV_RING,
		.n_in = m->h.n_in,
		.n_out = m->h.n_out,
		.atomic_replace = true,
		.persistence = DRV_PERSIST_UNKNOWN,
		.max_steps = mrr_reg(m, MRR_MAX_STEPS),
		.max_tunes = mrr_reg(m, MRR_MAX_TUNES),
		.memory = mrr_reg(m, MRR_MEMORY),
		.max_programs = m->n_slots,
		.overlap = mrr_reg(m, MRR_FEATURES) & MRR_OVERLAP,
	};
	s->n_unlocked = (int)mrr_n_unlocked(m);
	if (mrr_reg(m, MRR_STATUS) & MRR_INTERLOCKED) {
		snprintf(s->alarm, sizeof(s->alarm), "the laser interlock is open");
	}
	if (s->n_unlocked) {
		mrr_lock_words(m, s->lock_detail, sizeof(s->lock_detail));
	}
}

static int take_program(struct mrr *m, struct mrr_slot *s, struct err *err)
{
	struct ring_program p = { 0 };
	uint8_t *bytes = s->bank;
	int rc;

	s->bank = NULL;
	memcpy(p.name, s->regs + MRR_SLOT_NAME, sizeof(p.name));
	mrr_get_window(s->regs + MRR_SLOT_WINDOW, &p.window);
	rc = ring_program_read(&p, bytes, mrr_slot_reg(s, MRR_SLOT_BYTES), err);
	if (rc) {
		return rc;
	}
	return ring_programs_add(&m->h.snap.programs, &p, err);
}

static int take_programs(struct mrr *m, struct err *err)
{
	const struct ring_geometry ring = {
		.nodes = (uint16_t)m->h.n_in, .channels = (uint16_t)m->h.n_out,
		.fibres = (uint8_t)m->h.ring_fibres };
	int rc = 0;

	for (int i = 0; i < m->n_slots && rc == 0; i++) {
		if (mrr_in_use(&m->slots[i])) {
			rc = take_program(m, &m->slots[i], err);
		}
	}
	if (rc == 0) {
		rc = ring_programs_check(&m->h.snap.programs, &ring, err);
	}
	return rc ? err_wrap(err, "%s: program read back", m->h.drv.name) : 0;
}

/* The registers after the banks: were it these programs all along? */
static void on_registers_after(struct mrr *m, const struct mrr_frame *f)
{
	uint32_t generation = mrr_reg(m, MRR_GENERATION);
	struct err err = { 0 };

	if (!mrr_take_registers(m, f)) {
		return;
	}
	if (mrr_has_restarted(m)) {
		return;
	}
	if (mrr_reg(m, MRR_GENERATION) != generation) {
		mrr_give_up_text(m, WEFT_ESTALE, "the program changed while it was read");
	} else if (!banks_are_sound(m)) {
		mrr_give_up_text(m, WEFT_EVERIFY, "the CRC of the program read back differs");
	} else if (take_programs(m, &err)) {
		mrr_give_up(m, &err);
	} else {
		fill_snapshot(m);
		mrr_read_failures(m);
	}
}

static void on_programs_read(struct mrr *m)
{
	mrr_read_registers(m, on_registers_after);
}

static void on_snapshot_table(struct mrr *m)
{
	m->boots = mrr_reg(m, MRR_BOOTS);
	mrr_read_banks(m, on_programs_read);
}

void mrr_snapshot(struct driver_base *h)
{
	mrr_read_table((struct mrr *)h, on_snapshot_table);
}
