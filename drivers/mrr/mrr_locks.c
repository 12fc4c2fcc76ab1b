/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `mrr-reg`: resonators that do not hold their wave, parts that have failed,
 * and the search for lost waves.
 *
 * A setting that is not locked is no failure of the load: the program is in
 * effect, and the outcome says TRAFFIC with the first such setting. Tables of
 * failed and lost parts are read in the last step of a snapshot, from pages of
 * their own, if the controller has them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/mrr/mrr.h"
#include "lib/base/alloc.h"

#define LOCK_POLL_MS 2

uint32_t mrr_n_unlocked(const struct mrr *m)
{
	uint32_t n = 0;

	for (int i = 0; i < m->n_slots; i++) {
		n += mrr_in_use(&m->slots[i]) ? mrr_slot_reg(&m->slots[i], MRR_LOCK_FAILED) : 0;
	}
	return n;
}

/* The first setting that is not locked, as text. */
void mrr_lock_words(const struct mrr *m, char *text, size_t size)
{
	const struct mrr_slot *s = m->slots;
	struct ring_setting t;

	while (!mrr_in_use(s) || !mrr_slot_reg(s, MRR_LOCK_FAILED)) {
		s++;
	}
	mrr_get_tune(s->regs + MRR_LOCK_TUNE, &t);
	snprintf(text, size, "step %u node %u %s fibre %u channel %u: %s",
		 t.step, t.node, t.dir ? "ccw" : "cw", t.fibre, t.channel,
		 resonator_lock_text(mrr_slot_reg(s, MRR_LOCK_STATE)));
}

/* ---- tables of parts --------------------------------------------------------- */

/* Room for n parts and what add_locks adds, none there yet. */
static void make_parts(struct mrr *m, size_t n)
{
	free(m->parts);
	m->n_parts = 0;
	m->parts = x_new(n + MRR_MAX_SLOTS, sizeof(*m->parts));
}

static void sort_parts(struct mrr *m)
{
	int n = 0;

	qsort(m->parts, (size_t)m->n_parts, sizeof(*m->parts), ring_fault_cmp);
	for (int i = 0; i < m->n_parts; i++) {
		if (n == 0 || ring_fault_cmp(&m->parts[n - 1], &m->parts[i])) {
			m->parts[n++] = m->parts[i];
		}
	}
	m->n_parts = n;
}

static void on_parts(struct mrr *m, const struct mrr_frame *f)
{
	uint32_t n = f->len / MRR_FAILURE_BYTES;

	if (f->op != MRR_READ_OK || f->len != m->total) {
		mrr_give_up_text(m, WEFT_EDEVICE, "the table of failures is not whole");
		return;
	}
	make_parts(m, n);
	for (uint32_t i = 0; i < n; i++) {
		struct ring_fault *d = &m->parts[m->n_parts++];

		mrr_get_dead(f->data + i * MRR_FAILURE_BYTES, d);
		if (!mrr_is_part(m, d)) {
			mrr_give_up_text(m, WEFT_EDEVICE, "its table of "
					 "failures names what it does not "
					 "have");
			return;
		}
	}
	sort_parts(m);
	m->parts_read(m);
}

static void on_part_count(struct mrr *m, const struct mrr_frame *f)
{
	uint32_t n = f->op == MRR_READ_OK && f->len == 4 ? mrr_get32(f->data) : UINT32_MAX;
	uint32_t most = (mrr_reg(m, MRR_MAX_WINDOW) - 4) / MRR_FAILURE_BYTES;

	if (n == UINT32_MAX) {
		mrr_give_up_text(m, WEFT_EDEVICE, "the table of failures is not whole");
	} else if (n == 0) {
		make_parts(m, 0);
		m->parts_read(m);
	} else {
		most = most < MRR_MAX_FAILURES ? most : MRR_MAX_FAILURES;
		m->total = (n < most ? n : most) * MRR_FAILURE_BYTES;
		m->next = on_parts;
		mrr_ask_read(m, m->parts_page, 4, m->total);
	}
}

static void read_parts(struct mrr *m, uint16_t page, void (*parts_read)(struct mrr *))
{
	m->parts_page = page;
	m->parts_read = parts_read;
	m->next = on_part_count;
	mrr_ask_read(m, page, 0, 4);
}

/* The first setting of each program that is not locked, where that is as its
 * resonator has (not) begun to search. */
static void add_locks(struct mrr *m, bool searched)
{
	for (int i = 0; i < m->n_slots; i++) {
		const struct mrr_slot *s = &m->slots[i];
		struct ring_setting t;
		struct ring_fault d;

		if (!mrr_in_use(s) || !mrr_slot_reg(s, MRR_LOCK_FAILED) ||
		    searched == (mrr_slot_reg(s, MRR_LOCK_STATE) == RESONATOR_NOT_STARTED)) {
			continue;
		}
		mrr_get_tune(s->regs + MRR_LOCK_TUNE, &t);
		d = (struct ring_fault){
			.part = RING_RESONATOR, .dir = t.dir,
			.fibre = t.fibre, .node = t.node,
			.channel = t.channel,
			.why = (uint8_t)mrr_slot_reg(s, MRR_LOCK_STATE) };
		if (mrr_is_part(m, &d)) {
			m->parts[m->n_parts++] = d;
		}
	}
	sort_parts(m);
}

/* From a device that keeps no table. That nothing locks as the laser is off is no
 * failure. */
static void parts_of_locks(struct mrr *m)
{
	make_parts(m, 0);
	add_locks(m, true);
}

/* ---- what has failed, what is lost ---------------------------------------------- */

static void keep_parts(struct mrr *m, struct ring_fault **v, int *n)
{
	free(*v);
	*v = m->parts;
	*n = m->n_parts;
	m->parts = NULL;
	m->n_parts = 0;
}

/* While the laser is off no program has light, and tables name none of its resonators. */
static void on_lost(struct mrr *m)
{
	add_locks(m, false);
	keep_parts(m, &m->h.snap.lost, &m->h.snap.n_lost);
	mrr_end(m, 0, NULL);
}

static void on_dead(struct mrr *m)
{
	keep_parts(m, &m->h.snap.dead, &m->h.snap.n_dead);
	if (mrr_reg(m, MRR_FEATURES) & MRR_LOCKS) {
		read_parts(m, MRR_LOCK_TABLE, on_lost);
	} else {
		parts_of_locks(m);
		on_lost(m);
	}
}

void mrr_read_failures(struct mrr *m)
{
	if (mrr_reg(m, MRR_FEATURES) & MRR_FAILURES) {
		read_parts(m, MRR_FAILURE_TABLE, on_dead);
	} else {
		parts_of_locks(m);
		on_dead(m);
	}
}

/* ---- locked again ---------------------------------------------------------------- */

static void on_poll(uv_timer_t *t)
{
	struct mrr *m = t->data;

	mrr_read_table(m, m->table_read);
}

bool mrr_wait_for_locks(struct mrr *m, void (*next)(struct mrr *))
{
	if (!(mrr_reg(m, MRR_STATUS) & MRR_LOCKING) || ++m->polls * LOCK_POLL_MS > m->lock_ms) {
		return false;
	}
	m->table_read = next;
	uv_timer_start(&m->h.timer, on_poll, LOCK_POLL_MS, 0);
	return true;
}

/* The rest did not lock: tried, and the outcome has what is left. */
static void end_relock(struct mrr *m)
{
	uint32_t left = mrr_n_unlocked(m);
	char first[DRV_TEXT_MAX] = "", text[DRV_TEXT_MAX];

	if (left) {
		mrr_lock_words(m, first, sizeof(first));
		snprintf(text, sizeof(text), "%" PRIu32 " settings are still "
			 "not locked: %.80s", left, first);
	} else {
		snprintf(text, sizeof(text), "all settings are locked");
	}
	base_mark(&m->h, 0, 1, DRV_DONE, DRV_READ_BACK,
		  left ? DRV_ERR_TRAFFIC : DRV_ERR_NONE, NULL, text);
	mrr_end(m, 0, NULL);
}

static void on_table_relocked(struct mrr *m)
{
	if (!mrr_has_restarted(m) && !mrr_wait_for_locks(m, on_table_relocked)) {
		end_relock(m);
	}
}

static void on_relock(struct mrr *m, const struct mrr_frame *f)
{
	(void)f;
	m->commit_out = false;
	mrr_read_table(m, on_table_relocked);
}

static void on_masked(struct mrr *m, const struct mrr_frame *f)
{
	uint8_t word[4];

	(void)f;
	mrr_put32(word, MRR_RELOCK_WORD);
	m->committed = m->commit_out = true;
	m->next = on_relock;
	base_mark(&m->h, 0, 1, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT,
		  NULL, "relock not answered");
	mrr_ask(m, MRR_WRITE, 0, MRR_RELOCK, word, sizeof(word));
}

/* Slots all of whose resonators hold their wave are left out. */
static void on_table_before(struct mrr *m)
{
	uint8_t who[MRR_COMMIT - MRR_FENCE];
	uint64_t mask = 0;

	m->boots = mrr_reg(m, MRR_BOOTS);
	for (int i = 0; i < m->n_slots; i++) {
		const struct mrr_slot *s = &m->slots[i];

		mask |= (uint64_t)(mrr_in_use(s) && mrr_slot_reg(s, MRR_LOCK_FAILED)) << i;
	}
	if (!mask) {
		end_relock(m);
	} else if (!(mrr_reg(m, MRR_FEATURES) & MRR_RELOCKS)) {
		mrr_give_up_text(m, WEFT_EUNSUPPORTED, "its controller searches"
				 " with a commit only");
	} else {
		mrr_put64(who, m->h.fence);
		mrr_put64(who + MRR_MASK - MRR_FENCE, mask);
		m->next = on_masked;
		mrr_ask(m, MRR_WRITE, 0, MRR_FENCE, who, sizeof(who));
	}
}

void mrr_recover(struct driver_base *h)
{
	struct mrr *m = (struct mrr *)h;

	m->committed = m->commit_out = false;
	m->polls = 0;
	mrr_read_table(m, on_table_before);
}
