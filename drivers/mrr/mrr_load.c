/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `mrr-reg`: programs are loaded.
 *
 * Which slot each program goes to is decided from the slots as read: one that
 * runs it already is not touched. The others are written to shadow banks and
 * checked by CRC, then one write to the commit register swaps them all. Before
 * that write every failure leaves the light as it was, and is a refusal; after
 * it the result is unknown until the table of slots is read again, and the
 * active banks are compared byte for byte.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/mrr/mrr.h"

/* ---- submit: after the commit ---------------------------------------------------- */

static const struct ring_programs *wanted(const struct mrr *m)
{
	return m->h.batch->programs;
}

/* By name, window, length and CRC; the read-back compares the bytes. */
static bool slot_runs(const struct mrr_slot *s, const struct ring_program *p)
{
	uint8_t name[RING_PROGRAM_NAME_MAX + 1] = { 0 }, window[8];

	memcpy(name, p->name, strlen(p->name));
	mrr_put_window(window, &p->window);
	return mrr_in_use(s) &&
	       memcmp(s->regs + MRR_SLOT_NAME, name, sizeof(name)) == 0 &&
	       memcmp(s->regs + MRR_SLOT_WINDOW, window, sizeof(window)) == 0 &&
	       mrr_slot_reg(s, MRR_SLOT_BYTES) == p->len &&
	       mrr_slot_reg(s, MRR_SLOT_CRC) == mrr_crc32(0, p->bytes, p->len);
}

static bool runs_as_wanted(const struct mrr *m, bool whole)
{
	for (int i = 0; i < m->n_slots; i++) {
		const struct mrr_slot *s = &m->slots[i];

		if (mrr_in_use(s) != (s->want != NULL) ||
		    (s->want && (!slot_runs(s, s->want) ||
				 (whole && memcmp(s->bank, s->want->bytes,
						  s->want->len) != 0)))) {
			return false;
		}
	}
	return true;
}

static void on_read_back(struct mrr *m)
{
	struct err err = { 0 };
	char text[DRV_TEXT_MAX];

	if (!runs_as_wanted(m, true)) {
		err_set(&err, WEFT_EVERIFY, "%s: the program read back is not "
			"the one that was loaded", m->h.drv.name);
		base_mark(&m->h, 0, 1, DRV_UNKNOWN, DRV_READ_BACK, DRV_ERR_TRAFFIC, NULL, err.msg);
		mrr_end(m, err.code, &err);
		return;
	}
	base_mark(&m->h, 0, 1, DRV_DONE, DRV_READ_BACK, DRV_ERR_NONE, NULL, NULL);
	if (mrr_n_unlocked(m)) {
		mrr_lock_words(m, text, sizeof(text));
		base_mark(&m->h, 0, 1, DRV_DONE, DRV_READ_BACK, DRV_ERR_TRAFFIC, NULL, text);
	}
	mrr_end(m, 0, NULL);
}

static void poll_locks(struct mrr *m)
{
	if (mrr_has_restarted(m)) {
		return;
	}
	if (!mrr_wait_for_locks(m, poll_locks)) {
		mrr_read_banks(m, on_read_back);
	}
}

/* After the commit: did it happen, and is what is active ours? */
static void on_table_committed(struct mrr *m)
{
	if (mrr_has_restarted(m)) {
		return;
	}
	if (mrr_reg(m, MRR_GENERATION) == m->generation) {
		mrr_refuse(m, DRV_READ_BACK, DRV_ERR_STATE, NULL, "the commit was "
			   "confirmed but the old program is still in effect");
	} else if (!runs_as_wanted(m, false)) {
		mrr_give_up_text(m, WEFT_EVERIFY, "another program is in "
				 "effect after the commit");
	} else {
		poll_locks(m);
	}
}

static void on_commit(struct mrr *m, const struct mrr_frame *f)
{
	(void)f;
	m->commit_out = false;
	mrr_read_table(m, on_table_committed);
}

static void commit(struct mrr *m)
{
	uint8_t word[4];

	mrr_put32(word, MRR_COMMIT_WORD);
	m->committed = true;
	m->commit_out = true;
	m->next = on_commit;
	base_mark(&m->h, 0, 1, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT,
		  NULL, "commit not answered");
	mrr_ask(m, MRR_WRITE, 0, MRR_COMMIT, word, sizeof(word));
}

/* ---- submit: before the commit --------------------------------------------------- */

static void on_masked(struct mrr *m, const struct mrr_frame *f)
{
	(void)f;
	commit(m);
}

static void on_shadows_checked(struct mrr *m)
{
	uint8_t who[MRR_COMMIT - MRR_FENCE];
	uint64_t mask = 0;

	if (mrr_has_restarted(m)) {
		return;
	}
	for (int i = 0; i < m->n_slots; i++) {
		const struct mrr_slot *s = &m->slots[i];

		mask |= (uint64_t)s->staged << i;
		if (s->staged && s->want &&
		    mrr_slot_reg(s, MRR_STAGE_CRC_FOUND) !=
		    mrr_crc32(0, s->want->bytes, s->want->len)) {
			snprintf(m->why, sizeof(m->why), "the shadow bank does "
				 "not hold what was written");
			snprintf(m->why_code, sizeof(m->why_code), "crc");
			m->why_class = DRV_ERR_TRANSPORT;
			m->why_evidence = DRV_READ_BACK;
			mrr_refuse_unless_restarted(m);
			return;
		}
	}
	mrr_put64(who, m->h.fence);
	mrr_put64(who + MRR_MASK - MRR_FENCE, mask);
	m->next = on_masked;
	mrr_ask(m, MRR_WRITE, 0, MRR_FENCE, who, sizeof(who));
}

static void stage_after(struct mrr *m, int slot);

static void on_staged(struct mrr *m, const struct mrr_frame *f)
{
	(void)f;
	stage_after(m, m->at_slot + 1);
}

/* Keeps FRAMES_OUT frames on the way. */
static void write_more(struct mrr *m)
{
	const uint8_t *bytes = m->slots[m->at_slot].want->bytes;

	while (m->h.op == BASE_SUBMIT && m->asked < m->total &&
	       tcp_open_requests(m->h.session) < FRAMES_OUT) {
		uint32_t n = mrr_piece(m, m->asked), at = m->asked;

		m->asked += n;
		mrr_ask(m, MRR_WRITE, mrr_bank_page(m, MRR_SHADOW, at),
			at % MRR_PAGE_BYTES, bytes + at, n);
	}
}

/* The slot's shadow bank is written, or it is to go dark. */
static void describe(struct mrr *m)
{
	const struct ring_program *p = m->slots[m->at_slot].want;
	uint8_t head[MRR_SLOT_REGISTERS - MRR_STAGE] = { 0 };

	mrr_put32(head, p ? MRR_STAGE_LOAD : MRR_STAGE_CLEAR);
	if (p) {
		mrr_put32(head + MRR_STAGE_BYTES - MRR_STAGE, (uint32_t)p->len);
		mrr_put32(head + MRR_STAGE_CRC - MRR_STAGE, mrr_crc32(0, p->bytes, p->len));
		mrr_put_window(head + MRR_STAGE_WINDOW - MRR_STAGE, &p->window);
		memcpy(head + MRR_STAGE_NAME - MRR_STAGE, p->name, strlen(p->name));
	}
	m->next = on_staged;
	mrr_ask(m, MRR_WRITE, (uint16_t)(MRR_SLOT + m->at_slot), MRR_STAGE, head, sizeof(head));
}

static void on_written(struct mrr *m, const struct mrr_frame *f)
{
	if (f->op != MRR_WRITE_OK) {
		mrr_give_up_text(m, WEFT_EDEVICE, "the answer to a write is none");
		return;
	}
	m->answered += mrr_piece(m, m->answered);
	if (m->answered == m->total) {
		describe(m);
	} else {
		write_more(m);
	}
}

/* Stages the next slot that changes, from `slot` on. */
static void stage_after(struct mrr *m, int slot)
{
	while (slot < m->n_slots && !m->slots[slot].staged) {
		slot++;
	}
	m->at_slot = slot;
	if (slot == m->n_slots) {
		mrr_read_table(m, on_shadows_checked);
	} else if (m->slots[slot].want) {
		mrr_begin_bank(m, (uint32_t)m->slots[slot].want->len);
		m->next = on_written;
		write_more(m);
	} else {
		describe(m);
	}
}

static int slot_named(const struct mrr *m, const char *name)
{
	for (int i = 0; i < m->n_slots; i++) {
		if (mrr_in_use(&m->slots[i]) && strcmp((char *)m->slots[i].regs + MRR_SLOT_NAME,
						       name) == 0) {
			return i;
		}
	}
	return -1;
}

/* A slot that is free, else one whose program goes with this commit; -1
 * when there is none. */
static int free_slot(const struct mrr *m)
{
	int going = -1;

	for (int i = 0; i < m->n_slots; i++) {
		const struct mrr_slot *s = &m->slots[i];

		if (s->want) {
			continue;
		}
		if (!mrr_in_use(s)) {
			return i;
		}
		if (going < 0 && !ring_programs_find(wanted(m), (char *)s->regs + MRR_SLOT_NAME)) {
			going = i;
		}
	}
	return going;
}

/* A slot for each program, its own if it has one. False when there are too
 * few. */
static bool allot_slots(struct mrr *m)
{
	const struct ring_programs *want = wanted(m);

	for (int i = 0; i < MRR_MAX_SLOTS; i++) {
		m->slots[i].want = NULL;
	}
	for (int i = 0; i < want->n; i++) {
		int slot = slot_named(m, want->v[i].name);

		slot = slot < 0 ? free_slot(m) : slot;
		if (slot < 0) {
			return false;
		}
		m->slots[slot].want = &want->v[i];
	}
	return true;
}

/* Marks the slots that change. Their number. */
static int mark_changes(struct mrr *m)
{
	int n = 0;

	for (int i = 0; i < m->n_slots; i++) {
		struct mrr_slot *s = &m->slots[i];

		s->staged = s->want ? !slot_runs(s, s->want) : mrr_in_use(s);
		n += s->staged;
	}
	return n;
}

/* What this ring cannot hold, as text; false when it can. */
static bool misfit(struct mrr *m, char *text, size_t size)
{
	const struct ring_programs *want = wanted(m);
	const struct ring_geometry ring = {
		.nodes = (uint16_t)m->h.n_in, .channels = (uint16_t)m->h.n_out,
		.fibres = (uint8_t)m->h.ring_fibres };
	size_t bytes = ring_programs_bytes(want);
	struct err err = { 0 };

	if (ring_programs_check(want, &ring, &err)) {
		snprintf(text, size, "%.*s", (int)size - 1, err.msg);
		return true;
	}
	if (bytes > mrr_reg(m, MRR_MEMORY)) {
		snprintf(text, size, "%zu bytes of programs: the device stores "
			 "%" PRIu32, bytes, mrr_reg(m, MRR_MEMORY));
		return true;
	}
	for (int i = 0; i < want->n; i++) {
		const struct ring_program *p = &want->v[i];

		if (p->steps > mrr_reg(m, MRR_MAX_STEPS) ||
		    p->settings > mrr_reg(m, MRR_MAX_TUNES) ||
		    p->len > MRR_SLOT_MEMORY) {
			snprintf(text, size, "%" PRIu32 " steps and %" PRIu32
				 " settings: the device takes %" PRIu32 " and %"
				 PRIu32, p->steps, p->settings,
				 mrr_reg(m, MRR_MAX_STEPS), mrr_reg(m, MRR_MAX_TUNES));
			return true;
		}
	}
	if (!allot_slots(m)) {
		snprintf(text, size, "%d programs: the device has %d slots", want->n, m->n_slots);
		return true;
	}
	return false;
}

static void on_table_before(struct mrr *m)
{
	char text[DRV_TEXT_MAX];

	if (misfit(m, text, sizeof(text))) {
		mrr_refuse(m, DRV_READ_BACK, DRV_ERR_CONFIGURATION, NULL, text);
		return;
	}
	m->boots = mrr_reg(m, MRR_BOOTS);
	m->generation = mrr_reg(m, MRR_GENERATION);
	if (mark_changes(m)) {
		stage_after(m, 0);
	} else {
		poll_locks(m);
	}
}

void mrr_submit(struct driver_base *h)
{
	struct mrr *m = (struct mrr *)h;

	m->committed = m->commit_out = false;
	m->polls = 0;
	mrr_read_table(m, on_table_before);
}

static void explain_program(struct drv *dev, const struct ring_program *p,
			    drv_trace_fn fn, void *arg)
{
	char line[192];

	snprintf(line, sizeof(line), "a slot for %s: write shadow bank, %zu "
		 "bytes, CRC %08" PRIx32 "; stage nodes %u+%u channels %u+%u",
		 p->name, p->len, mrr_crc32(0, p->bytes, p->len),
		 p->window.first_node, p->window.nodes,
		 p->window.first_channel, p->window.channels);
	fn(dev->name, line, false, arg);
}

void mrr_explain(struct drv *dev, const struct drv_batch *batch, drv_trace_fn fn, void *arg)
{
	if (!batch->programs) {
		return;
	}
	fn(dev->name, "read page 0000 and all slots; slots that run what is "
	   "wanted are left alone", false, arg);
	for (int i = 0; i < batch->programs->n; i++) {
		explain_program(dev, &batch->programs->v[i], fn, arg);
	}
	fn(dev->name, "stage all other slots to go dark", false, arg);
	fn(dev->name, "write page 0000 offset 0060: fence, slots; 0070: commit", false, arg);
	fn(dev->name, "read back the active banks", false, arg);
}
