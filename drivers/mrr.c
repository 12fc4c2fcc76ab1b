/*
 * `mrr-reg`: rings of micro-ring resonators behind a register protocol.
 *
 * Each job's program has a slot of its own. A program goes packed into its
 * slot's shadow bank, which has no effect, is checked there by CRC, and all
 * slots that change take effect at one instant by a write to the commit
 * register. Slots whose program stays are not written to at all. Until the
 * commit is sent the light is as before, whatever else fails; after it all
 * active banks are read back as a whole and compared.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/drivers.h"
#include "drivers/handle.h"
#include "drivers/line.h"
#include "drivers/mrr_wire.h"

#define DEFAULT_TIMEOUT_MS 2000
#define FRAMES_OUT 16
#define LOCK_POLL_MS 2

static const struct drv_option_spec options[] = {
	{ "window", "bytes of a bank in one frame", "16384" },
	{ "lock_ms", "time the resonators get to lock after a commit",
	  "1000" },
	{ NULL, NULL, NULL },
};

struct slot {
	uint8_t regs[MRR_SLOT_REGISTERS];	/* as last read */
	const struct light_pack *want;	/* submit: NULL when it is to end dark */
	bool staged;			/* submit: it changes */
	uint8_t *bank;			/* its active bank, as read */
};

struct mrr {
	struct handle h;
	struct line *line;
	int64_t window, lock_ms;
	uv_timer_t poll;
	uint32_t seq;
	uint8_t regs[MRR_REGISTERS];	/* as last read */
	int n_slots;
	struct slot slots[MRR_MAX_SLOTS];
	/* What to do with the answer to the question that is out. */
	void (*next)(struct mrr *m, const struct mrr_frame *f);
	/* Reading all slots' registers: asked for, answered, what then. */
	int slots_asked, slots_answered;
	void (*table_read)(struct mrr *m);
	/* A bank on its way: whose, bytes asked for, bytes answered. */
	int at_slot;
	uint32_t total, asked, answered, frame_bytes;
	void (*moved)(struct mrr *m);	/* all banks */
	uint32_t boots, generation;	/* before the commit */
	bool committed;
	int64_t polls;
};

static uint32_t slot_reg(const struct slot *s, enum mrr_slot_register r)
{
	return mrr_get32(s->regs + r);
}

static bool in_use(const struct slot *s)
{
	return slot_reg(s, MRR_SLOT_STATUS) & MRR_HAS_PROGRAM;
}

static uint32_t reg(const struct mrr *m, enum mrr_register r)
{
	return mrr_get32(m->regs + r);
}

static void on_commit(struct mrr *m, const struct mrr_frame *f);

/* ---- the end of an operation ---------------------------------------------- */

static void drop_banks(struct mrr *m)
{
	for (int i = 0; i < MRR_MAX_SLOTS; i++) {
		free(m->slots[i].bank);
		m->slots[i].bank = NULL;
		m->slots[i].staged = false;
	}
}

static void end_operation(struct mrr *m, int rc, const struct err *err)
{
	drop_banks(m);
	if (m->h.op == HANDLE_SNAPSHOT) {
		if (rc) {
			drv_snapshot_fini(&m->h.snap);
		}
		handle_snapshot_done(&m->h, rc, err);
	} else if (m->h.op == HANDLE_SUBMIT) {
		handle_submit_done(&m->h, rc, err);
	}
}

/* Ends the operation and the session. What was committed stays unknown. */
static void give_up(struct mrr *m, struct err *err)
{
	line_reset(m->line);
	if (m->h.op == HANDLE_SUBMIT) {
		handle_mark(&m->h, 0, 1, m->committed ? DRV_UNKNOWN :
			    DRV_SKIPPED, DRV_SENT, DRV_ERR_TRANSPORT, NULL,
			    err->msg);
	}
	end_operation(m, err->code, err);
}

static void give_up_text(struct mrr *m, enum weft_err code, const char *text)
{
	struct err err = { 0 };

	err_set(&err, code, "%s: %s", m->h.drv.name, text);
	give_up(m, &err);
}

static void refuse(struct mrr *m, enum drv_evidence e,
		   enum drv_class_of_error c, const char *code,
		   const char *text)
{
	line_reset(m->line);
	handle_mark(&m->h, 0, 1, DRV_REFUSED, e, c, code, text);
	end_operation(m, 0, NULL);
}

/* The device said no. Before and at the commit that leaves all as it was. */
static void on_nack(struct mrr *m, const struct mrr_frame *f)
{
	uint32_t detail = f->len >= 4 ? mrr_get32(f->data) : 0;
	bool state = f->code == MRR_BUSY || f->code == MRR_STALE_WRITER ||
		     f->code == MRR_INTERLOCK;
	bool after = m->committed && m->next != on_commit;
	char text[DRV_TEXT_MAX], code[16];

	snprintf(text, sizeof(text), "page %04x offset %04x: %s (detail %"
		 PRIu32 ")", f->page, f->offset, mrr_code_text(f->code),
		 detail);
	if (m->h.op != HANDLE_SUBMIT || after) {
		give_up_text(m, WEFT_EDEVICE, text);
		return;
	}
	snprintf(code, sizeof(code), "%u", f->code);
	refuse(m, DRV_ACKED, state ? DRV_ERR_STATE : DRV_ERR_CONFIGURATION,
	       code, text);
}

/* ---- frames ---------------------------------------------------------------- */

static void trace(struct mrr *m, const struct mrr_frame *f, bool is_reply)
{
	static const char *const ops[] = { "?", "read", "write" };
	char line[96];
	uint32_t bytes = f->op == MRR_READ && f->len == 4 ?
			 mrr_get32(f->data) : f->len;

	if (f->op == MRR_NACK) {
		snprintf(line, sizeof(line), "nack %u %s", f->code,
			 mrr_code_text(f->code));
	} else {
		snprintf(line, sizeof(line), "%s page %04x offset %04x bytes "
			 "%" PRIu32 "%s", ops[(f->op & 0x7f) % 3], f->page,
			 f->offset, bytes, is_reply ? " ok" : "");
	}
	handle_trace(&m->h, line, is_reply);
}

static void on_trace(const uint8_t *bytes, size_t len, bool is_reply, void *arg)
{
	struct mrr *m = arg;
	struct mrr_frame f;

	if (m->h.drv.trace && mrr_decode(bytes, len, &f)) {
		trace(m, &f, is_reply);
	}
}

static void ask(struct mrr *m, enum mrr_op op, uint16_t page, uint16_t offset,
		const void *data, uint32_t len)
{
	const struct mrr_frame f = {
		.op = (uint8_t)op, .seq = ++m->seq, .page = page,
		.offset = offset, .len = len, .data = data };
	struct buf b = { 0 };

	mrr_encode(&b, &f);
	if (b.failed || line_ask(m->line, b.data, b.len, f.seq)) {
		give_up_text(m, WEFT_ENOMEM, "out of memory");
	}
	buf_fini(&b);
}

static void ask_read(struct mrr *m, uint16_t page, uint16_t offset,
		     uint32_t bytes)
{
	uint8_t len[4];

	mrr_put32(len, bytes);
	ask(m, MRR_READ, page, offset, len, sizeof(len));
}

/* Old sequence numbers are answers that come twice or too late. */
static enum line_verdict judge(const uint8_t *frame, size_t len, bool waiting,
			       uint64_t tag, void *arg)
{
	const struct mrr *m = arg;
	struct mrr_frame f;

	if (!mrr_decode(frame, len, &f)) {
		return LINE_NONSENSE;
	}
	if (waiting && f.seq == (uint32_t)tag) {
		return LINE_ANSWER;
	}
	return (int32_t)(f.seq - (waiting ? (uint32_t)tag : m->seq + 1)) < 0 ?
	       LINE_IGNORE : LINE_NONSENSE;
}

static void on_answer(const uint8_t *frame, size_t len, uint64_t tag,
		      void *arg)
{
	struct mrr *m = arg;
	struct mrr_frame f;

	(void)tag;
	if (m->h.op == HANDLE_IDLE || !mrr_decode(frame, len, &f)) {
		return;
	}
	if (f.op == MRR_NACK) {
		on_nack(m, &f);
	} else {
		m->next(m, &f);
	}
}

static void on_failed(int rc, const struct err *err, bool sent, void *arg)
{
	struct mrr *m = arg;
	bool unknown = m->h.op == HANDLE_SUBMIT &&
		       m->h.outcomes[0].result == DRV_UNKNOWN;

	if (m->h.op == HANDLE_SUBMIT) {
		/* The commit may be the question that never left. */
		unknown = unknown && (sent || m->next != on_commit);
		handle_mark(&m->h, 0, 1, unknown ? DRV_UNKNOWN : DRV_SKIPPED,
			    DRV_SENT, DRV_ERR_TRANSPORT, NULL, err->msg);
	}
	end_operation(m, rc, err);
}

/* ---- registers --------------------------------------------------------------- */

/* What a device can mean seriously. */
static const char *implausible(const struct mrr *m)
{
	uint32_t window = reg(m, MRR_MAX_WINDOW), slots = reg(m, MRR_SLOTS);

	if (memcmp(m->regs + MRR_ID, "WMRR", 4) != 0) {
		return "it is no MRR ring controller";
	}
	if (reg(m, MRR_REVISION) != MRR_REVISION_NOW) {
		return "its register map has another revision than 2";
	}
	if (window < 8 || window > MRR_MAX_DATA || slots < 1 ||
	    slots > MRR_MAX_SLOTS ||
	    reg(m, MRR_MEMORY_USED) > reg(m, MRR_MEMORY)) {
		return "its registers contradict each other";
	}
	return NULL;
}

/* Keeps the register page; false when the operation ended over it. */
static bool take_registers(struct mrr *m, const struct mrr_frame *f)
{
	const char *wrong;
	struct err err = { 0 };

	if (f->op != MRR_READ_OK || f->len != MRR_REGISTERS) {
		give_up_text(m, WEFT_EDEVICE, "the register page is not whole");
		return false;
	}
	memcpy(m->regs, f->data, sizeof(m->regs));
	wrong = implausible(m);
	if (wrong) {
		give_up_text(m, WEFT_EDEVICE, wrong);
		return false;
	}
	m->n_slots = (int)reg(m, MRR_SLOTS);
	if (reg(m, MRR_NODES) != (uint32_t)m->h.n_in ||
	    reg(m, MRR_CHANNELS) != (uint32_t)m->h.n_out ||
	    reg(m, MRR_FIBRES) != (uint32_t)m->h.ring_fibres) {
		err_set(&err, WEFT_EVERIFY, "%s: the device has %" PRIu32
			" nodes, %" PRIu32 " channels, %" PRIu32 " fibres per "
			"direction, the fabric says %d, %d, %d", m->h.drv.name,
			reg(m, MRR_NODES), reg(m, MRR_CHANNELS),
			reg(m, MRR_FIBRES), m->h.n_in, m->h.n_out,
			m->h.ring_fibres);
		give_up(m, &err);
		return false;
	}
	return true;
}

static void read_registers(struct mrr *m,
			   void (*next)(struct mrr *, const struct mrr_frame *))
{
	m->next = next;
	ask_read(m, 0, 0, MRR_REGISTERS);
}

static bool slot_plausible(const struct mrr *m, const struct slot *s)
{
	return !in_use(s) ||
	       (slot_reg(s, MRR_SLOT_BYTES) <= reg(m, MRR_MEMORY) &&
		slot_reg(s, MRR_SLOT_BYTES) <= MRR_SLOT_MEMORY &&
		mrr_is_text(s->regs + MRR_SLOT_NAME, LIGHT_NAME_MAX + 1));
}

/* Slots that run nothing and are staged for nothing need no look. */
static int next_slot(const struct mrr *m, int slot)
{
	uint64_t used = mrr_get64(m->regs + MRR_USED);

	while (slot < m->n_slots && !(used >> slot & 1) &&
	       !m->slots[slot].staged) {
		slot++;
	}
	return slot;
}

static void read_more_slots(struct mrr *m)
{
	while (m->h.op != HANDLE_IDLE && m->slots_asked < m->n_slots &&
	       line_open_questions(m->line) < FRAMES_OUT) {
		int slot = m->slots_asked;

		m->slots_asked = next_slot(m, slot + 1);
		ask_read(m, (uint16_t)(MRR_SLOT + slot), 0,
			 MRR_SLOT_REGISTERS);
	}
}

static void on_slot(struct mrr *m, const struct mrr_frame *f)
{
	struct slot *s = &m->slots[m->slots_answered];

	m->slots_answered = next_slot(m, m->slots_answered + 1);

	if (f->op != MRR_READ_OK || f->len != MRR_SLOT_REGISTERS) {
		give_up_text(m, WEFT_EDEVICE, "a slot's page is not whole");
		return;
	}
	memcpy(s->regs, f->data, sizeof(s->regs));
	if (!slot_plausible(m, s)) {
		give_up_text(m, WEFT_EDEVICE,
			     "a slot's registers contradict each other");
	} else if (m->slots_answered == m->n_slots) {
		m->table_read(m);
	} else {
		read_more_slots(m);
	}
}

static void on_table_registers(struct mrr *m, const struct mrr_frame *f)
{
	if (!take_registers(m, f)) {
		return;
	}
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

/* Device and slots. */
static void read_table(struct mrr *m, void (*done)(struct mrr *))
{
	m->table_read = done;
	read_registers(m, on_table_registers);
}

static uint32_t n_unlocked(const struct mrr *m)
{
	uint32_t n = 0;

	for (int i = 0; i < m->n_slots; i++) {
		n += in_use(&m->slots[i]) ?
		     slot_reg(&m->slots[i], MRR_LOCK_FAILED) : 0;
	}
	return n;
}

/* The first setting that is not locked, in words. */
static void lock_words(const struct mrr *m, char *text, size_t size)
{
	const struct slot *s = m->slots;
	struct light_tune t;

	while (!in_use(s) || !slot_reg(s, MRR_LOCK_FAILED)) {
		s++;
	}
	mrr_get_tune(s->regs + MRR_LOCK_TUNE, &t);
	snprintf(text, size, "step %u node %u %s fibre %u channel %u: %s",
		 t.step, t.node, t.dir ? "ccw" : "cw", t.fibre, t.channel,
		 light_lock_text(slot_reg(s, MRR_LOCK_STATE)));
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
		const struct slot *s = &m->slots[i];
		struct light_tune t;
		struct light_dead d;

		if (!in_use(s) || !slot_reg(s, MRR_LOCK_FAILED) ||
		    slot_reg(s, MRR_LOCK_STATE) == LIGHT_LOCK_NOT_STARTED) {
			continue;
		}
		mrr_get_tune(s->regs + MRR_LOCK_TUNE, &t);
		d = (struct light_dead){
			.part = LIGHT_RESONATOR, .dir = t.dir,
			.fibre = t.fibre, .node = t.node,
			.channel = t.channel,
			.why = (uint8_t)slot_reg(s, MRR_LOCK_STATE) };
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
		give_up_text(m, WEFT_EDEVICE,
			     "the table of failures is not whole");
		return;
	}
	if (!make_dead(s, n)) {
		give_up_text(m, WEFT_ENOMEM, "out of memory");
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct light_dead *d = &s->dead[s->n_dead];

		mrr_get_dead(f->data + i * MRR_FAILURE_BYTES, d);
		if (!dead_plausible(m, d)) {
			give_up_text(m, WEFT_EDEVICE, "its table of failures "
				     "names what it does not have");
			return;
		}
		s->n_dead++;
	}
	sort_dead(s);
	end_operation(m, 0, NULL);
}

static void on_failure_count(struct mrr *m, const struct mrr_frame *f)
{
	uint32_t n = f->op == MRR_READ_OK && f->len == 4 ?
		     mrr_get32(f->data) : UINT32_MAX;
	uint32_t most = (reg(m, MRR_MAX_WINDOW) - 4) / MRR_FAILURE_BYTES;

	if (n == UINT32_MAX) {
		give_up_text(m, WEFT_EDEVICE,
			     "the table of failures is not whole");
	} else if (n == 0) {
		end_operation(m, 0, NULL);
	} else {
		most = most < MRR_MAX_FAILURES ? most : MRR_MAX_FAILURES;
		m->total = (n < most ? n : most) * MRR_FAILURE_BYTES;
		m->next = on_failures;
		ask_read(m, MRR_FAILURE_TABLE, 4, m->total);
	}
}

/* The last of a snapshot. */
static void read_failures(struct mrr *m)
{
	if (reg(m, MRR_FEATURES) & MRR_FAILURES) {
		m->next = on_failure_count;
		ask_read(m, MRR_FAILURE_TABLE, 0, 4);
	} else if (dead_of_locks(m)) {
		end_operation(m, 0, NULL);
	} else {
		give_up_text(m, WEFT_ENOMEM, "out of memory");
	}
}

/* ---- moving banks ----------------------------------------------------------- */

static uint32_t piece(const struct mrr *m, uint32_t at)
{
	uint32_t to_page_end = MRR_PAGE_BYTES - at % MRR_PAGE_BYTES;
	uint32_t n = m->total - at;

	n = n < m->frame_bytes ? n : m->frame_bytes;
	return n < to_page_end ? n : to_page_end;
}

static uint16_t bank_page(const struct mrr *m, enum mrr_bank bank, uint32_t at)
{
	return (uint16_t)(bank + (uint32_t)m->at_slot * MRR_SLOT_PAGES +
			  at / MRR_PAGE_BYTES);
}

static void begin_bank(struct mrr *m, uint32_t total)
{
	uint32_t most = reg(m, MRR_MAX_WINDOW);

	m->total = total;
	m->asked = m->answered = 0;
	m->frame_bytes = m->window < most ? (uint32_t)m->window : most;
}

/* Keeps FRAMES_OUT frames on the way. */
static void write_more(struct mrr *m)
{
	const uint8_t *bytes = m->slots[m->at_slot].want->bytes;

	while (m->h.op == HANDLE_SUBMIT && m->asked < m->total &&
	       line_open_questions(m->line) < FRAMES_OUT) {
		uint32_t n = piece(m, m->asked), at = m->asked;

		m->asked += n;
		ask(m, MRR_WRITE, bank_page(m, MRR_SHADOW, at),
		    at % MRR_PAGE_BYTES, bytes + at, n);
	}
}

static void read_more(struct mrr *m)
{
	while (m->h.op != HANDLE_IDLE && m->asked < m->total &&
	       line_open_questions(m->line) < FRAMES_OUT) {
		uint32_t n = piece(m, m->asked), at = m->asked;

		m->asked += n;
		ask_read(m, bank_page(m, MRR_ACTIVE, at), at % MRR_PAGE_BYTES,
			 n);
	}
}

static void read_bank_after(struct mrr *m, int slot);

static void on_read(struct mrr *m, const struct mrr_frame *f)
{
	uint32_t n = piece(m, m->answered);

	if (f->op != MRR_READ_OK || f->len != n) {
		give_up_text(m, WEFT_EDEVICE,
			     "the answer to a read has another length");
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
	struct slot *s;

	while (slot < m->n_slots && (!in_use(&m->slots[slot]) ||
				     !slot_reg(&m->slots[slot],
					       MRR_SLOT_BYTES))) {
		slot++;
	}
	if (slot == m->n_slots) {
		m->moved(m);
		return;
	}
	s = &m->slots[slot];
	m->at_slot = slot;
	begin_bank(m, slot_reg(s, MRR_SLOT_BYTES));
	free(s->bank);
	s->bank = malloc(m->total);
	if (!s->bank) {
		give_up_text(m, WEFT_ENOMEM, "out of memory");
		return;
	}
	m->next = on_read;
	read_more(m);
}

static void read_banks(struct mrr *m, void (*moved)(struct mrr *))
{
	m->moved = moved;
	read_bank_after(m, 0);
}

/* What was read has the CRC that the device says, in all slots. */
static bool banks_are_sound(const struct mrr *m)
{
	for (int i = 0; i < m->n_slots; i++) {
		const struct slot *s = &m->slots[i];

		if (in_use(s) && (!s->bank || slot_reg(s, MRR_SLOT_CRC) !=
		    mrr_crc32(0, s->bank, slot_reg(s, MRR_SLOT_BYTES)))) {
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
		 reg(m, MRR_REVISION));
	for (char *c = s->identity; *c; c++) {
		*c = *c >= ' ' && *c < 127 ? *c : '?';
	}
	snprintf(s->epoch, sizeof(s->epoch), "boot-%" PRIu32,
		 reg(m, MRR_BOOTS));
	s->caps = (struct drv_caps){
		.kind = DRV_RING,
		.n_in = m->h.n_in,
		.n_out = m->h.n_out,
		.atomic_replace = true,
		.persistence = DRV_PERSIST_UNKNOWN,
		.max_steps = reg(m, MRR_MAX_STEPS),
		.max_tunes = reg(m, MRR_MAX_TUNES),
		.memory = reg(m, MRR_MEMORY),
		.max_programs = m->n_slots,
		.overlap = reg(m, MRR_FEATURES) & MRR_OVERLAP,
	};
	s->n_unlocked = (int)n_unlocked(m);
	if (s->n_unlocked) {
		lock_words(m, s->lock_detail, sizeof(s->lock_detail));
	}
}

static int take_program(struct mrr *m, struct slot *s, struct err *err)
{
	struct light_pack p = { 0 };
	uint8_t *bytes = s->bank;
	int rc;

	s->bank = NULL;
	memcpy(p.name, s->regs + MRR_SLOT_NAME, sizeof(p.name));
	mrr_get_window(s->regs + MRR_SLOT_WINDOW, &p.window);
	rc = light_pack_read(&p, bytes, slot_reg(s, MRR_SLOT_BYTES), err);
	return rc ? rc : light_ring_add(&m->h.snap.programs, &p, err);
}

static int take_programs(struct mrr *m, struct err *err)
{
	const struct light_geometry ring = {
		.nodes = (uint16_t)m->h.n_in, .channels = (uint16_t)m->h.n_out,
		.fibres = (uint8_t)m->h.ring_fibres };
	int rc = 0;

	for (int i = 0; i < m->n_slots && rc == 0; i++) {
		if (in_use(&m->slots[i])) {
			rc = take_program(m, &m->slots[i], err);
		}
	}
	rc = rc ? rc : light_ring_check(&m->h.snap.programs, &ring, err);
	return rc ? err_wrap(err, "%s: program read back", m->h.drv.name) : 0;
}

/* The registers after the banks: were it these programs all along? */
static void on_registers_after(struct mrr *m, const struct mrr_frame *f)
{
	uint32_t generation = reg(m, MRR_GENERATION);
	struct err err = { 0 };

	if (!take_registers(m, f)) {
		return;
	}
	if (reg(m, MRR_GENERATION) != generation) {
		give_up_text(m, WEFT_ESTALE,
			     "the program changed while it was read");
	} else if (!banks_are_sound(m)) {
		give_up_text(m, WEFT_EVERIFY,
			     "the CRC of the program read back differs");
	} else if (take_programs(m, &err)) {
		give_up(m, &err);
	} else {
		fill_snapshot(m);
		read_failures(m);
	}
}

static void on_programs_read(struct mrr *m)
{
	read_registers(m, on_registers_after);
}

static void on_snapshot_table(struct mrr *m)
{
	read_banks(m, on_programs_read);
}

static void mrr_snapshot(struct handle *h)
{
	read_table((struct mrr *)h, on_snapshot_table);
}

/* ---- submit: after the commit ---------------------------------------------------- */

static const struct light_ring *wanted(const struct mrr *m)
{
	return m->h.batch->programs;
}

/* By name, window, length and CRC; the read-back compares the bytes. */
static bool slot_runs(const struct slot *s, const struct light_pack *p)
{
	uint8_t name[LIGHT_NAME_MAX + 1] = { 0 }, window[8];

	memcpy(name, p->name, strlen(p->name));
	mrr_put_window(window, &p->window);
	return in_use(s) &&
	       memcmp(s->regs + MRR_SLOT_NAME, name, sizeof(name)) == 0 &&
	       memcmp(s->regs + MRR_SLOT_WINDOW, window, sizeof(window)) == 0 &&
	       slot_reg(s, MRR_SLOT_BYTES) == p->len &&
	       slot_reg(s, MRR_SLOT_CRC) == mrr_crc32(0, p->bytes, p->len);
}

static bool runs_as_wanted(const struct mrr *m, bool whole)
{
	for (int i = 0; i < m->n_slots; i++) {
		const struct slot *s = &m->slots[i];

		if (in_use(s) != (s->want != NULL) ||
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
		handle_mark(&m->h, 0, 1, DRV_UNKNOWN, DRV_READ_BACK,
			    DRV_ERR_TRAFFIC, NULL, err.msg);
		end_operation(m, err.code, &err);
		return;
	}
	handle_mark(&m->h, 0, 1, DRV_DONE, DRV_READ_BACK, DRV_ERR_NONE, NULL,
		    NULL);
	if (n_unlocked(m)) {
		lock_words(m, text, sizeof(text));
		handle_mark(&m->h, 0, 1, DRV_DONE, DRV_READ_BACK,
			    DRV_ERR_TRAFFIC, NULL, text);
	}
	end_operation(m, 0, NULL);
}

static void poll_locks(struct mrr *m);

static void on_poll(uv_timer_t *t)
{
	read_table(t->data, poll_locks);
}

static void poll_locks(struct mrr *m)
{
	if ((reg(m, MRR_STATUS) & MRR_LOCKING) &&
	    ++m->polls * LOCK_POLL_MS <= m->lock_ms) {
		uv_timer_start(&m->poll, on_poll, LOCK_POLL_MS, 0);
	} else {
		read_banks(m, on_read_back);
	}
}

/* After the commit: did it happen, and is what is active ours? */
static void on_table_committed(struct mrr *m)
{
	if (reg(m, MRR_BOOTS) != m->boots) {
		give_up_text(m, WEFT_EDEVICE,
			     "the device restarted at the commit");
	} else if (reg(m, MRR_GENERATION) == m->generation) {
		refuse(m, DRV_READ_BACK, DRV_ERR_STATE, NULL, "the commit was "
		       "confirmed but the old program is still in effect");
	} else if (!runs_as_wanted(m, false)) {
		give_up_text(m, WEFT_EVERIFY,
			     "another program is in effect after the commit");
	} else {
		poll_locks(m);
	}
}

static void on_commit(struct mrr *m, const struct mrr_frame *f)
{
	(void)f;
	read_table(m, on_table_committed);
}

static void commit(struct mrr *m)
{
	uint8_t word[4];

	mrr_put32(word, MRR_COMMIT_WORD);
	m->committed = true;
	m->next = on_commit;
	handle_mark(&m->h, 0, 1, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT,
		    NULL, "commit not answered");
	ask(m, MRR_WRITE, 0, MRR_COMMIT, word, sizeof(word));
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

	for (int i = 0; i < m->n_slots; i++) {
		const struct slot *s = &m->slots[i];

		mask |= (uint64_t)s->staged << i;
		if (s->staged && s->want &&
		    slot_reg(s, MRR_STAGE_CRC_FOUND) !=
		    mrr_crc32(0, s->want->bytes, s->want->len)) {
			refuse(m, DRV_READ_BACK, DRV_ERR_TRANSPORT, "crc",
			       "the shadow bank does not hold what was "
			       "written");
			return;
		}
	}
	mrr_put64(who, m->h.fence);
	mrr_put64(who + MRR_MASK - MRR_FENCE, mask);
	m->next = on_masked;
	ask(m, MRR_WRITE, 0, MRR_FENCE, who, sizeof(who));
}

static void stage_after(struct mrr *m, int slot);

static void on_staged(struct mrr *m, const struct mrr_frame *f)
{
	(void)f;
	stage_after(m, m->at_slot + 1);
}

/* The slot's shadow bank is written, or it is to go dark. */
static void describe(struct mrr *m)
{
	const struct light_pack *p = m->slots[m->at_slot].want;
	uint8_t head[MRR_SLOT_REGISTERS - MRR_STAGE] = { 0 };

	mrr_put32(head, p ? MRR_STAGE_LOAD : MRR_STAGE_CLEAR);
	if (p) {
		mrr_put32(head + MRR_STAGE_BYTES - MRR_STAGE,
			  (uint32_t)p->len);
		mrr_put32(head + MRR_STAGE_CRC - MRR_STAGE,
			  mrr_crc32(0, p->bytes, p->len));
		mrr_put_window(head + MRR_STAGE_WINDOW - MRR_STAGE, &p->window);
		memcpy(head + MRR_STAGE_NAME - MRR_STAGE, p->name,
		       strlen(p->name));
	}
	m->next = on_staged;
	ask(m, MRR_WRITE, (uint16_t)(MRR_SLOT + m->at_slot), MRR_STAGE, head,
	    sizeof(head));
}

static void on_written(struct mrr *m, const struct mrr_frame *f)
{
	if (f->op != MRR_WRITE_OK) {
		give_up_text(m, WEFT_EDEVICE, "the answer to a write is none");
		return;
	}
	m->answered += piece(m, m->answered);
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
		read_table(m, on_shadows_checked);
	} else if (m->slots[slot].want) {
		begin_bank(m, (uint32_t)m->slots[slot].want->len);
		m->next = on_written;
		write_more(m);
	} else {
		describe(m);
	}
}

static int slot_named(const struct mrr *m, const char *name)
{
	for (int i = 0; i < m->n_slots; i++) {
		if (in_use(&m->slots[i]) &&
		    strcmp((char *)m->slots[i].regs + MRR_SLOT_NAME,
			   name) == 0) {
			return i;
		}
	}
	return -1;
}

/* A slot that nobody has, else one whose program goes with this commit; -1
 * when there is none. */
static int free_slot(const struct mrr *m)
{
	int going = -1;

	for (int i = 0; i < m->n_slots; i++) {
		const struct slot *s = &m->slots[i];

		if (s->want) {
			continue;
		}
		if (!in_use(s)) {
			return i;
		}
		if (going < 0 && !light_ring_find(wanted(m), (char *)s->regs +
						  MRR_SLOT_NAME)) {
			going = i;
		}
	}
	return going;
}

/* A slot for each program, its own if it has one. False when there are too
 * few. */
static bool allot_slots(struct mrr *m)
{
	const struct light_ring *want = wanted(m);

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
		struct slot *s = &m->slots[i];

		s->staged = s->want ? !slot_runs(s, s->want) : in_use(s);
		n += s->staged;
	}
	return n;
}

/* What this ring cannot hold, in words; false when it can. */
static bool misfit(struct mrr *m, char *text, size_t size)
{
	const struct light_ring *want = wanted(m);
	const struct light_geometry ring = {
		.nodes = (uint16_t)m->h.n_in, .channels = (uint16_t)m->h.n_out,
		.fibres = (uint8_t)m->h.ring_fibres };
	size_t bytes = light_ring_bytes(want);
	struct err err = { 0 };

	if (light_ring_check(want, &ring, &err)) {
		snprintf(text, size, "%.*s", (int)size - 1, err.msg);
		return true;
	}
	if (bytes > reg(m, MRR_MEMORY)) {
		snprintf(text, size, "%zu bytes of programs: the device stores "
			 "%" PRIu32, bytes, reg(m, MRR_MEMORY));
		return true;
	}
	for (int i = 0; i < want->n; i++) {
		const struct light_pack *p = &want->v[i];

		if (p->steps > reg(m, MRR_MAX_STEPS) ||
		    p->settings > reg(m, MRR_MAX_TUNES) ||
		    p->len > MRR_SLOT_MEMORY) {
			snprintf(text, size, "%" PRIu32 " steps and %" PRIu32
				 " settings: the device takes %" PRIu32 " and %"
				 PRIu32, p->steps, p->settings,
				 reg(m, MRR_MAX_STEPS), reg(m, MRR_MAX_TUNES));
			return true;
		}
	}
	if (!allot_slots(m)) {
		snprintf(text, size, "%d programs: the device has %d slots",
			 want->n, m->n_slots);
		return true;
	}
	return false;
}

static void on_table_before(struct mrr *m)
{
	char text[DRV_TEXT_MAX];

	if (misfit(m, text, sizeof(text))) {
		refuse(m, DRV_READ_BACK, DRV_ERR_CONFIGURATION, NULL, text);
		return;
	}
	m->boots = reg(m, MRR_BOOTS);
	m->generation = reg(m, MRR_GENERATION);
	if (mark_changes(m)) {
		stage_after(m, 0);
	} else {
		poll_locks(m);
	}
}

static void mrr_submit(struct handle *h)
{
	struct mrr *m = (struct mrr *)h;

	m->committed = false;
	m->polls = 0;
	read_table(m, on_table_before);
}

static void explain_program(struct drv *dev, const struct light_pack *p,
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

static void mrr_explain(struct drv *dev, const struct drv_batch *batch,
			drv_trace_fn fn, void *arg)
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
	fn(dev->name, "write page 0000 offset 0060: fence, slots; 0070: commit",
	   false, arg);
	fn(dev->name, "read back the active banks", false, arg);
}

/* ---- life ------------------------------------------------------------------------ */

static void on_line_closed(void *arg)
{
	handle_stopped(arg);
}

static void on_poll_closed(uv_handle_t *poll)
{
	struct mrr *m = poll->data;

	line_close(m->line, on_line_closed, &m->h);
}

static void mrr_stop(struct handle *h)
{
	uv_close((uv_handle_t *)&((struct mrr *)h)->poll, on_poll_closed);
}

static void mrr_fini(struct handle *h)
{
	drop_banks((struct mrr *)h);
}

static const struct handle_ops ops = {
	.snapshot = mrr_snapshot,
	.submit = mrr_submit,
	.stop = mrr_stop,
	.fini = mrr_fini,
};

static int open_line(struct mrr *m, uv_loop_t *loop,
		     const struct drv_config *cfg, struct err *err)
{
	struct line_conf conf = {
		.device = cfg->name,
		.address = cfg->address ? cfg->address : "",
		.timeout_ms = cfg->timeout_ms ? cfg->timeout_ms :
						DEFAULT_TIMEOUT_MS,
		.window = FRAMES_OUT,
		.max_frame = MRR_MAX_FRAME,
		.arg = m,
		.frame = mrr_frame_length,
		.judge = judge,
		.answer = on_answer,
		.failed = on_failed,
		.trace = on_trace,
	};

	return line_new(loop, &conf, &m->line, err);
}

static int mrr_open(uv_loop_t *loop, const struct drv_config *cfg,
		    struct drv **out, struct err *err)
{
	const struct drv_class *cls = &drv_mrr_reg;
	struct mrr *m = calloc(1, sizeof(*m));
	int rc = m ? handle_check(cls, cfg, err) : err_nomem(err);

	if (rc == 0) {
		rc = handle_option_int(cls, cfg, "window", 8,
				       MRR_MAX_DATA, &m->window, err);
	}
	if (rc == 0) {
		rc = handle_option_int(cls, cfg, "lock_ms", 0, 60000,
				       &m->lock_ms, err);
	}
	if (rc == 0) {
		rc = open_line(m, loop, cfg, err);
	}
	if (rc) {
		free(m);
		return rc;
	}
	handle_init(&m->h, cls, &ops, loop, cfg);
	uv_timer_init(loop, &m->poll);
	m->poll.data = m;
	*out = &m->h.drv;
	return 0;
}

const struct drv_class drv_mrr_reg = {
	.name = "mrr-reg",
	.summary = "micro-ring resonator rings, paged registers over TCP",
	.abi = DRV_ABI,
	.kind = DRV_RING,
	.options = options,
	.open = mrr_open,
	.close = handle_close,
	.snapshot = handle_snapshot,
	.submit = handle_submit,
	.explain = mrr_explain,
};
