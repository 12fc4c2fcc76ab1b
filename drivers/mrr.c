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
#include "drivers/mrr.h"

#define DEFAULT_TIMEOUT_MS 2000

static const struct drv_option_spec options[] = {
	{ "window", "bytes of a bank in one frame", "16384" },
	{ "lock_ms", "time the resonators get to lock after a commit",
	  "1000" },
	{ NULL, NULL, NULL },
};

/* ---- the end of an operation ---------------------------------------------- */

static void drop_banks(struct mrr *m)
{
	for (int i = 0; i < MRR_MAX_SLOTS; i++) {
		free(m->slots[i].bank);
		m->slots[i].bank = NULL;
		m->slots[i].staged = false;
	}
}

void mrr_end(struct mrr *m, int rc, const struct err *err)
{
	drop_banks(m);
	handle_end(&m->h, rc, err);
}

void mrr_give_up(struct mrr *m, struct err *err)
{
	line_reset(m->h.line);
	if (m->h.op == HANDLE_SUBMIT) {
		handle_mark(&m->h, 0, 1, m->committed ? DRV_UNKNOWN :
			    DRV_SKIPPED, DRV_SENT, DRV_ERR_TRANSPORT, NULL,
			    err->msg);
	}
	mrr_end(m, err->code, err);
}

void mrr_give_up_text(struct mrr *m, enum weft_err code, const char *text)
{
	struct err err = { 0 };

	err_set(&err, code, "%s: %s", m->h.drv.name, text);
	mrr_give_up(m, &err);
}

void mrr_refuse(struct mrr *m, enum drv_evidence e,
		enum drv_class_of_error c, const char *code,
		const char *text)
{
	line_reset(m->h.line);
	handle_mark(&m->h, 0, 1, DRV_REFUSED, e, c, code, text);
	mrr_end(m, 0, NULL);
}

/* The device said no. Before and at the commit that leaves all as it was. */
static void on_nack(struct mrr *m, const struct mrr_frame *f)
{
	uint32_t detail = f->len >= 4 ? mrr_get32(f->data) : 0;
	bool state = f->code == MRR_BUSY || f->code == MRR_STALE_WRITER ||
		     f->code == MRR_INTERLOCK;
	bool after = m->committed && !m->commit_out;
	char text[DRV_TEXT_MAX], code[16];

	snprintf(text, sizeof(text), "page %04x offset %04x: %s (detail %"
		 PRIu32 ")", f->page, f->offset, mrr_code_text(f->code),
		 detail);
	if (m->h.op != HANDLE_SUBMIT || after) {
		mrr_give_up_text(m, WEFT_EDEVICE, text);
		return;
	}
	snprintf(code, sizeof(code), "%u", f->code);
	mrr_refuse(m, DRV_ACKED, state ? DRV_ERR_STATE : DRV_ERR_CONFIGURATION,
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

void mrr_ask(struct mrr *m, enum mrr_op op, uint16_t page, uint16_t offset,
	     const void *data, uint32_t len)
{
	const struct mrr_frame f = {
		.op = (uint8_t)op, .seq = ++m->seq, .page = page,
		.offset = offset, .len = len, .data = data };
	struct buf b = { 0 };

	mrr_encode(&b, &f);
	if (b.failed || line_ask(m->h.line, b.data, b.len, f.seq)) {
		mrr_give_up_text(m, WEFT_ENOMEM, "out of memory");
	}
	buf_fini(&b);
}

void mrr_ask_read(struct mrr *m, uint16_t page, uint16_t offset,
		  uint32_t bytes)
{
	uint8_t len[4];

	mrr_put32(len, bytes);
	mrr_ask(m, MRR_READ, page, offset, len, sizeof(len));
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
		unknown = unknown && (sent || !m->commit_out);
		handle_mark(&m->h, 0, 1, unknown ? DRV_UNKNOWN : DRV_SKIPPED,
			    DRV_SENT, DRV_ERR_TRANSPORT, NULL, err->msg);
	}
	mrr_end(m, rc, err);
}

/* ---- life -------------------------------------------------------- */

static void mrr_fini(struct handle *h)
{
	drop_banks((struct mrr *)h);
}

static int mrr_init(struct handle *h, const struct drv_config *cfg,
		    struct line_conf *conf, struct err *err)
{
	struct mrr *m = (struct mrr *)h;
	const struct handle_number numbers[] = {
		{ "window", 8, MRR_MAX_DATA, &m->window },
		{ "lock_ms", 0, 60000, &m->lock_ms },
	};

	(void)conf;
	return handle_option_ints(h->drv.cls, cfg, numbers, sizeof(numbers) /
				  sizeof(numbers[0]), err);
}

static const struct line_conf line = {
	.timeout_ms = DEFAULT_TIMEOUT_MS,
	.window = FRAMES_OUT,
	.max_frame = MRR_MAX_FRAME,
	.frame = mrr_frame_length,
	.judge = judge,
	.answer = on_answer,
	.failed = on_failed,
	.trace = on_trace,
};

static const struct handle_ops ops = {
	.line = &line,
	.init = mrr_init,
	.snapshot = mrr_snapshot,
	.submit = mrr_submit,
	.fini = mrr_fini,
};

static int mrr_open(uv_loop_t *loop, const struct drv_config *cfg,
		    struct drv **out, struct err *err)
{
	return handle_open(handle_new(&drv_mrr_reg, &ops, sizeof(struct mrr)),
			   loop, cfg, out, err);
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
