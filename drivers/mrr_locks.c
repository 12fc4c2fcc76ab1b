/* `mrr-reg`: resonators that are not locked, and what has failed; see mrr.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/mrr.h"

uint32_t mrr_n_unlocked(const struct mrr *m)
{
	uint32_t n = 0;

	for (int i = 0; i < m->n_slots; i++) {
		n += mrr_in_use(&m->slots[i]) ?
		     mrr_slot_reg(&m->slots[i], MRR_LOCK_FAILED) : 0;
	}
	return n;
}

/* The first setting that is not locked, in words. */
void mrr_lock_words(const struct mrr *m, char *text, size_t size)
{
	const struct mrr_slot *s = m->slots;
	struct light_tune t;

	while (!mrr_in_use(s) || !mrr_slot_reg(s, MRR_LOCK_FAILED)) {
		s++;
	}
	mrr_get_tune(s->regs + MRR_LOCK_TUNE, &t);
	snprintf(text, size, "step %u node %u %s fibre %u channel %u: %s",
		 t.step, t.node, t.dir ? "ccw" : "cw", t.fibre, t.channel,
		 light_lock_text(mrr_slot_reg(s, MRR_LOCK_STATE)));
}

/* ---- what has failed --------------------------------------------------------- */

static bool dead_plausible(const struct mrr *m, const struct light_dead *d)
{
	return d->part >= LIGHT_RESONATOR && d->part <= LIGHT_NODE &&
	       d->dir <= LIGHT_CCW && d->fibre < m->h.ring_fibres &&
	       d->node < m->h.n_in && d->channel < m->h.n_out;
}

/* Room for n parts. False when there is none. */
static bool make_dead(struct drv_snapshot *s, size_t n)
{
	free(s->dead);
	s->n_dead = 0;
	s->dead = calloc(n + 1, sizeof(*s->dead));
	return s->dead;
}

static void sort_dead(struct drv_snapshot *s)
{
	int n = 0;

	qsort(s->dead, (size_t)s->n_dead, sizeof(*s->dead), light_dead_cmp);
	for (int i = 0; i < s->n_dead; i++) {
		if (n == 0 || light_dead_cmp(&s->dead[n - 1], &s->dead[i])) {
			s->dead[n++] = s->dead[i];
		}
	}
	s->n_dead = n;
}

/* From a device that keeps no table: the first setting of each program that is
 * not locked. That nothing locks as the laser is off is no failure. */
static bool dead_of_locks(struct mrr *m)
{
	struct drv_snapshot *snap = &m->h.snap;

	if (!make_dead(snap, MRR_MAX_SLOTS)) {
		return false;
	}
	for (int i = 0; i < m->n_slots; i++) {
		const struct mrr_slot *s = &m->slots[i];
		struct light_tune t;
		struct light_dead d;

		if (!mrr_in_use(s) || !mrr_slot_reg(s, MRR_LOCK_FAILED) ||
		    mrr_slot_reg(s, MRR_LOCK_STATE) == LIGHT_LOCK_NOT_STARTED) {
			continue;
		}
		mrr_get_tune(s->regs + MRR_LOCK_TUNE, &t);
		d = (struct light_dead){
			.part = LIGHT_RESONATOR, .dir = t.dir,
			.fibre = t.fibre, .node = t.node,
			.channel = t.channel,
			.why = (uint8_t)mrr_slot_reg(s, MRR_LOCK_STATE) };
		if (dead_plausible(m, &d)) {
			snap->dead[snap->n_dead++] = d;
		}
	}
	sort_dead(snap);
	return true;
}

static void on_failures(struct mrr *m, const struct mrr_frame *f)
{
	struct drv_snapshot *s = &m->h.snap;
	uint32_t n = f->len / MRR_FAILURE_BYTES;

	if (f->op != MRR_READ_OK || f->len != m->total) {
		mrr_give_up_text(m, WEFT_EDEVICE,
				 "the table of failures is not whole");
		return;
	}
	if (!make_dead(s, n)) {
		mrr_give_up_text(m, WEFT_ENOMEM, "out of memory");
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct light_dead *d = &s->dead[s->n_dead];

		mrr_get_dead(f->data + i * MRR_FAILURE_BYTES, d);
		if (!dead_plausible(m, d)) {
			mrr_give_up_text(m, WEFT_EDEVICE, "its table of failures "
					 "names what it does not have");
			return;
		}
		s->n_dead++;
	}
	sort_dead(s);
	mrr_end(m, 0, NULL);
}

static void on_failure_count(struct mrr *m, const struct mrr_frame *f)
{
	uint32_t n = f->op == MRR_READ_OK && f->len == 4 ?
		     mrr_get32(f->data) : UINT32_MAX;
	uint32_t most = (mrr_reg(m, MRR_MAX_WINDOW) - 4) / MRR_FAILURE_BYTES;

	if (n == UINT32_MAX) {
		mrr_give_up_text(m, WEFT_EDEVICE,
				 "the table of failures is not whole");
	} else if (n == 0) {
		mrr_end(m, 0, NULL);
	} else {
		most = most < MRR_MAX_FAILURES ? most : MRR_MAX_FAILURES;
		m->total = (n < most ? n : most) * MRR_FAILURE_BYTES;
		m->next = on_failures;
		mrr_ask_read(m, MRR_FAILURE_TABLE, 4, m->total);
	}
}

/* The last of a snapshot. */
void mrr_read_failures(struct mrr *m)
{
	if (mrr_reg(m, MRR_FEATURES) & MRR_FAILURES) {
		m->next = on_failure_count;
		mrr_ask_read(m, MRR_FAILURE_TABLE, 0, 4);
	} else if (dead_of_locks(m)) {
		mrr_end(m, 0, NULL);
	} else {
		mrr_give_up_text(m, WEFT_ENOMEM, "out of memory");
	}
}
