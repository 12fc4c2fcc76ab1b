/*
 * `mrr-reg`: rings of micro-ring resonators behind a register protocol.
 *
 * A program goes into a shadow bank that has no effect, is checked there by
 * length and CRC, and takes effect at one instant by a write to the commit
 * register. Until that write is sent the light is as before, whatever else
 * fails; after it the active bank is read back as a whole and compared.
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
/* What no device may claim to store, so that we never believe it. */
#define MAX_TUNES (16u << 20)

static const struct drv_option_spec options[] = {
	{ "window", "bytes of a bank in one frame", "16384" },
	{ "lock_ms", "time the resonators get to lock after a commit",
	  "1000" },
	{ NULL, NULL, NULL },
};

struct mrr {
	struct handle h;
	struct line *line;
	int64_t window, lock_ms;
	uv_timer_t poll;
	uint32_t seq;
	uint8_t regs[MRR_REGISTERS];	/* as last read */
	/* What to do with the answer to the question that is out. */
	void (*next)(struct mrr *m, const struct mrr_frame *f);
	/* A bank on its way: bytes asked for, bytes answered. */
	uint32_t total, asked, answered, frame_bytes, crc;
	void (*moved)(struct mrr *m);
	bool differs;			/* submit: read-back is another */
	uint32_t boots, generation;	/* before the commit */
	bool committed;
	int64_t polls;
};

static uint32_t reg(const struct mrr *m, enum mrr_register r)
{
	return mrr_get32(m->regs + r);
}

static void on_commit(struct mrr *m, const struct mrr_frame *f);

/* ---- the end of an operation ---------------------------------------------- */

static void end_operation(struct mrr *m, int rc, const struct err *err)
{
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

/* ---- moving a bank ---------------------------------------------------------- */

static const struct light_program *wanted(const struct mrr *m)
{
	return m->h.op == HANDLE_SUBMIT ? m->h.batch->program : NULL;
}

static uint32_t piece(const struct mrr *m, uint32_t at)
{
	uint32_t to_page_end = MRR_PAGE_BYTES - at % MRR_PAGE_BYTES;
	uint32_t n = m->total - at;

	n = n < m->frame_bytes ? n : m->frame_bytes;
	return n < to_page_end ? n : to_page_end;
}

static void put_tunes(const struct light_program *p, uint32_t at, uint32_t n,
		      uint8_t *to)
{
	const struct light_tune *t = &p->v[at / MRR_TUNE_BYTES];

	for (uint32_t i = 0; i < n; i += MRR_TUNE_BYTES) {
		mrr_put_tune(to + i, t++);
	}
}

/* Keeps FRAMES_OUT frames on the way. */
static void write_more(struct mrr *m)
{
	uint8_t data[MRR_MAX_DATA];

	while (m->h.op == HANDLE_SUBMIT && m->asked < m->total &&
	       line_open_questions(m->line) < FRAMES_OUT) {
		uint32_t n = piece(m, m->asked), at = m->asked;

		put_tunes(wanted(m), at, n, data);
		m->crc = mrr_crc32(m->crc, data, n);
		m->asked += n;
		ask(m, MRR_WRITE, (uint16_t)(MRR_SHADOW + at / MRR_PAGE_BYTES),
		    at % MRR_PAGE_BYTES, data, n);
	}
}

static void begin_bank(struct mrr *m, uint32_t total,
		       void (*moved)(struct mrr *))
{
	uint32_t most = reg(m, MRR_MAX_WINDOW);

	m->total = total;
	m->asked = m->answered = m->crc = 0;
	m->moved = moved;
	m->frame_bytes = m->window < most ? (uint32_t)m->window : most;
	m->frame_bytes -= m->frame_bytes % MRR_TUNE_BYTES;
}

static void on_written(struct mrr *m, const struct mrr_frame *f)
{
	if (f->op != MRR_WRITE_OK) {
		give_up_text(m, WEFT_EDEVICE, "the answer to a write is none");
		return;
	}
	m->answered += piece(m, m->answered);
	if (m->answered == m->total) {
		m->moved(m);
	} else {
		write_more(m);
	}
}

static void read_more(struct mrr *m)
{
	while (m->h.op != HANDLE_IDLE && m->asked < m->total &&
	       line_open_questions(m->line) < FRAMES_OUT) {
		uint32_t n = piece(m, m->asked), at = m->asked;

		m->asked += n;
		ask_read(m, (uint16_t)(MRR_ACTIVE + at / MRR_PAGE_BYTES),
			 at % MRR_PAGE_BYTES, n);
	}
}

/* Settings read for a submit are compared, for a snapshot kept. */
static void take_tunes(struct mrr *m, const uint8_t *data, uint32_t len)
{
	const struct light_program *want = wanted(m);
	size_t at = m->answered / MRR_TUNE_BYTES;

	for (uint32_t i = 0; i < len; i += MRR_TUNE_BYTES, at++) {
		struct light_tune t;

		mrr_get_tune(data + i, &t);
		if (want) {
			m->differs |= light_tune_cmp(&t, &want->v[at]) != 0 ||
				      t.mode != want->v[at].mode;
		} else {
			m->h.snap.program.v[at] = t;
		}
	}
}

static void on_read(struct mrr *m, const struct mrr_frame *f)
{
	uint32_t n = piece(m, m->answered);

	if (f->op != MRR_READ_OK || f->len != n) {
		give_up_text(m, WEFT_EDEVICE,
			     "the answer to a read has another length");
		return;
	}
	m->crc = mrr_crc32(m->crc, f->data, n);
	take_tunes(m, f->data, n);
	m->answered += n;
	if (m->answered == m->total) {
		m->moved(m);
	} else {
		read_more(m);
	}
}

static void read_active(struct mrr *m, void (*moved)(struct mrr *))
{
	begin_bank(m, reg(m, MRR_ACTIVE_BYTES), moved);
	m->next = on_read;
	if (m->total == 0) {
		moved(m);
	} else {
		read_more(m);
	}
}

/* ---- registers --------------------------------------------------------------- */

/* Bytes and geometry a device can mean seriously. */
static const char *implausible(const struct mrr *m)
{
	uint32_t window = reg(m, MRR_MAX_WINDOW);

	if (memcmp(m->regs + MRR_ID, "WMRR", 4) != 0) {
		return "it is no MRR ring controller";
	}
	if (window < MRR_TUNE_BYTES || window > MRR_MAX_DATA ||
	    reg(m, MRR_MAX_TUNES) > MAX_TUNES ||
	    reg(m, MRR_ACTIVE_BYTES) % MRR_TUNE_BYTES ||
	    reg(m, MRR_ACTIVE_BYTES) / MRR_TUNE_BYTES >
	    reg(m, MRR_MAX_TUNES)) {
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

/* The first setting that is not locked, in words. */
static void lock_words(const struct mrr *m, char *text, size_t size)
{
	struct light_tune t;

	mrr_get_tune(m->regs + MRR_LOCK_TUNE, &t);
	snprintf(text, size, "step %u node %u %s fibre %u channel %u: %s",
		 t.step, t.node, t.dir ? "ccw" : "cw", t.fibre, t.channel,
		 mrr_lock_text(reg(m, MRR_LOCK_STATE)));
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
	};
	s->has_program = reg(m, MRR_STATUS) & MRR_HAS_PROGRAM;
	s->program.steps = reg(m, MRR_ACTIVE_STEPS);
	s->n_unlocked = (int)reg(m, MRR_LOCK_FAILED);
	if (s->n_unlocked) {
		lock_words(m, s->lock_detail, sizeof(s->lock_detail));
	}
}

/* The registers after the bank: was it one program all along? */
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
	} else if (m->crc != reg(m, MRR_ACTIVE_CRC)) {
		give_up_text(m, WEFT_EVERIFY,
			     "the CRC of the program read back differs");
	} else if (light_program_normalise(&m->h.snap.program, &err)) {
		err_wrap(&err, "%s: program read back", m->h.drv.name);
		give_up(m, &err);
	} else {
		fill_snapshot(m);
		end_operation(m, 0, NULL);
	}
}

static void on_program_read(struct mrr *m)
{
	read_registers(m, on_registers_after);
}

static void on_registers(struct mrr *m, const struct mrr_frame *f)
{
	struct light_program *p = &m->h.snap.program;

	if (!take_registers(m, f)) {
		return;
	}
	if (!(reg(m, MRR_STATUS) & MRR_HAS_PROGRAM)) {
		fill_snapshot(m);
		end_operation(m, 0, NULL);
		return;
	}
	p->steps = reg(m, MRR_ACTIVE_STEPS);
	p->n = reg(m, MRR_ACTIVE_BYTES) / MRR_TUNE_BYTES;
	p->v = calloc(p->n ? p->n : 1, sizeof(*p->v));
	if (!p->v) {
		p->n = 0;
		give_up_text(m, WEFT_ENOMEM, "out of memory");
		return;
	}
	read_active(m, on_program_read);
}

static void mrr_snapshot(struct handle *h)
{
	read_registers((struct mrr *)h, on_registers);
}

/* ---- submit -------------------------------------------------------------------- */

static void on_registers_locking(struct mrr *m, const struct mrr_frame *f);

static void on_read_back(struct mrr *m)
{
	struct err err = { 0 };
	char text[DRV_TEXT_MAX];

	if (m->differs || m->crc != reg(m, MRR_ACTIVE_CRC)) {
		err_set(&err, WEFT_EVERIFY, "%s: the program read back is not "
			"the one that was loaded", m->h.drv.name);
		handle_mark(&m->h, 0, 1, DRV_UNKNOWN, DRV_READ_BACK,
			    DRV_ERR_TRAFFIC, NULL, err.msg);
		end_operation(m, err.code, &err);
		return;
	}
	handle_mark(&m->h, 0, 1, DRV_DONE, DRV_READ_BACK, DRV_ERR_NONE, NULL,
		    NULL);
	if (reg(m, MRR_LOCK_FAILED)) {
		lock_words(m, text, sizeof(text));
		handle_mark(&m->h, 0, 1, DRV_DONE, DRV_READ_BACK,
			    DRV_ERR_TRAFFIC, NULL, text);
	}
	end_operation(m, 0, NULL);
}

static void on_poll(uv_timer_t *t)
{
	read_registers(t->data, on_registers_locking);
}

static void on_registers_locking(struct mrr *m, const struct mrr_frame *f)
{
	if (!take_registers(m, f)) {
		return;
	}
	if ((reg(m, MRR_STATUS) & MRR_LOCKING) &&
	    ++m->polls * LOCK_POLL_MS <= m->lock_ms) {
		uv_timer_start(&m->poll, on_poll, LOCK_POLL_MS, 0);
	} else {
		read_active(m, on_read_back);
	}
}

/* After the commit: did the banks swap, and is the active one ours? */
static void on_registers_committed(struct mrr *m, const struct mrr_frame *f)
{
	const struct light_program *p = wanted(m);

	if (!take_registers(m, f)) {
		return;
	}
	if (reg(m, MRR_BOOTS) != m->boots) {
		give_up_text(m, WEFT_EDEVICE,
			     "the device restarted at the commit");
	} else if (reg(m, MRR_GENERATION) == m->generation) {
		refuse(m, DRV_READ_BACK, DRV_ERR_STATE, NULL, "the commit was "
		       "confirmed but the old program is still in effect");
	} else if (reg(m, MRR_ACTIVE_STEPS) != p->steps ||
		   reg(m, MRR_ACTIVE_BYTES) != p->n * MRR_TUNE_BYTES) {
		give_up_text(m, WEFT_EVERIFY,
			     "another program is in effect after the commit");
	} else {
		m->polls = 0;
		m->differs = false;
		on_registers_locking(m, f);
	}
}

static void on_commit(struct mrr *m, const struct mrr_frame *f)
{
	(void)f;
	read_registers(m, on_registers_committed);
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

static void on_shadow_checked(struct mrr *m, const struct mrr_frame *f)
{
	if (!take_registers(m, f)) {
		return;
	}
	if (reg(m, MRR_SHADOW_CRC_FOUND) != m->crc) {
		refuse(m, DRV_READ_BACK, DRV_ERR_TRANSPORT, "crc",
		       "the shadow bank does not hold what was written");
		return;
	}
	commit(m);
}

static void on_shadow_described(struct mrr *m, const struct mrr_frame *f)
{
	(void)f;
	read_registers(m, on_shadow_checked);
}

static void on_shadow_written(struct mrr *m)
{
	uint8_t head[MRR_COMMIT - MRR_SHADOW_STEPS] = { 0 };

	mrr_put32(head, wanted(m)->steps);
	mrr_put32(head + 4, m->total);
	mrr_put32(head + 8, m->crc);
	mrr_put64(head + MRR_FENCE - MRR_SHADOW_STEPS, m->h.fence);
	m->next = on_shadow_described;
	ask(m, MRR_WRITE, 0, MRR_SHADOW_STEPS, head, sizeof(head));
}

/* What this ring cannot hold, in words; false when it can. */
static bool misfit(const struct mrr *m, const struct light_program *p,
		   char *text, size_t size)
{
	if (p->steps > reg(m, MRR_MAX_STEPS) || p->n > reg(m, MRR_MAX_TUNES)) {
		snprintf(text, size, "%" PRIu32 " steps and %zu settings: the "
			 "device stores %" PRIu32 " and %" PRIu32, p->steps,
			 p->n, reg(m, MRR_MAX_STEPS), reg(m, MRR_MAX_TUNES));
		return true;
	}
	for (size_t i = 0; i < p->n; i++) {
		const struct light_tune *t = &p->v[i];

		if (t->step >= p->steps || t->node >= m->h.n_in ||
		    t->channel >= m->h.n_out || t->fibre >= m->h.ring_fibres ||
		    t->dir > LIGHT_CCW || t->mode < LIGHT_ADD ||
		    t->mode > LIGHT_ADD_DROP ||
		    (i && light_tune_cmp(&p->v[i - 1], t) >= 0)) {
			snprintf(text, size, "setting %zu (step %u node %u "
				 "fibre %u channel %u) is outside the ring or "
				 "out of order", i, t->step, t->node, t->fibre,
				 t->channel);
			return true;
		}
	}
	return false;
}

static void on_registers_before(struct mrr *m, const struct mrr_frame *f)
{
	const struct light_program *p = wanted(m);
	char text[DRV_TEXT_MAX];

	if (!take_registers(m, f)) {
		return;
	}
	if (misfit(m, p, text, sizeof(text))) {
		refuse(m, DRV_READ_BACK, DRV_ERR_CONFIGURATION, NULL, text);
		return;
	}
	m->boots = reg(m, MRR_BOOTS);
	m->generation = reg(m, MRR_GENERATION);
	begin_bank(m, (uint32_t)(p->n * MRR_TUNE_BYTES), on_shadow_written);
	m->next = on_written;
	if (m->total == 0) {
		on_shadow_written(m);
	} else {
		write_more(m);
	}
}

static void mrr_submit(struct handle *h)
{
	struct mrr *m = (struct mrr *)h;

	m->committed = false;
	read_registers(m, on_registers_before);
}

static void mrr_explain(struct drv *dev, const struct drv_batch *batch,
			drv_trace_fn fn, void *arg)
{
	const struct mrr *m = (struct mrr *)dev;
	uint32_t bytes, pages;
	char line[128];

	if (!batch->program) {
		return;
	}
	bytes = (uint32_t)(batch->program->n * MRR_TUNE_BYTES);
	pages = (bytes + MRR_PAGE_BYTES - 1) / MRR_PAGE_BYTES;
	fn(dev->name, "read page 0000 offset 0000 bytes 192", false, arg);
	if (bytes) {
		snprintf(line, sizeof(line), "write pages %04x-%04x bytes %"
			 PRIu32 " in frames of %d", MRR_SHADOW,
			 MRR_SHADOW + pages - 1, bytes, (int)m->window);
		fn(dev->name, line, false, arg);
	}
	snprintf(line, sizeof(line), "write page 0000 offset 0060: %" PRIu32
		 " steps, %" PRIu32 " bytes, CRC", batch->program->steps,
		 bytes);
	fn(dev->name, line, false, arg);
	fn(dev->name, "write page 0000 offset 0078: commit", false, arg);
	fn(dev->name, "read back the active bank", false, arg);
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
	(void)h;
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
	char host[DRV_ADDRESS_MAX];
	int port, rc = line_parse_address(conf.address, false, host,
					  sizeof(host), &port, err);

	if (rc) {
		return rc;
	}
	m->line = line_new(loop, &conf);
	return m->line ? 0 : err_nomem(err);
}

static int mrr_open(uv_loop_t *loop, const struct drv_config *cfg,
		    struct drv **out, struct err *err)
{
	const struct drv_class *cls = &drv_mrr_reg;
	struct mrr *m = calloc(1, sizeof(*m));
	int rc = m ? handle_check(cls, cfg, err) : err_nomem(err);

	if (rc == 0) {
		rc = handle_option_int(cls, cfg, "window", MRR_TUNE_BYTES,
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
