/* SPDX-License-Identifier: Apache-2.0 */
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

#include "drivers/core/driver_base.h"
#include "drivers/mrr/mrr.h"
#include "lib/base/log.h"

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
	free(m->parts);
	m->parts = NULL;
	m->n_parts = 0;
	m->events_out = false;
	base_end(&m->h, rc, err);
}

void mrr_give_up(struct mrr *m, struct err *err)
{
	tcp_reset(m->h.session);
	if (base_acts(&m->h)) {
		base_mark(&m->h, 0, 1, m->committed ? DRV_UNKNOWN :
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

void mrr_refuse(struct mrr *m, enum drv_evidence e, enum drv_class_of_error c, const char *code,
		const char *text)
{
	tcp_reset(m->h.session);
	base_mark(&m->h, 0, 1, DRV_REFUSED, e, c, code, text);
	mrr_end(m, 0, NULL);
}

bool mrr_has_restarted(struct mrr *m)
{
	char text[DRV_TEXT_MAX];

	if (mrr_reg(m, MRR_BOOTS) == m->boots) {
		return false;
	}
	snprintf(text, sizeof(text), "the controller restarted meanwhile, code "
		 "%" PRIu32 ": %s", mrr_reg(m, MRR_LAST_CODE),
		 mrr_last_code_text(mrr_reg(m, MRR_LAST_CODE)));
	mrr_give_up_text(m, WEFT_EDEVICE, text);
	return true;
}

static void on_registers_after_no(struct mrr *m, const struct mrr_frame *f)
{
	if (mrr_take_registers(m, f) && !mrr_has_restarted(m)) {
		mrr_refuse(m, m->why_evidence, m->why_class, m->why_code, m->why);
	}
}

void mrr_refuse_unless_restarted(struct mrr *m)
{
	m->committed = m->commit_out = false;
	mrr_read_registers(m, on_registers_after_no);
}

static enum drv_class_of_error nack_class(uint8_t code)
{
	switch (code) {
	case MRR_BUSY:
	case MRR_STALE_WRITER:
	case MRR_INTERLOCK:
		return DRV_ERR_STATE;
	case MRR_BUS:
		return DRV_ERR_TRANSPORT;
	default:
		return DRV_ERR_CONFIGURATION;
	}
}

/* The device refused. Before and at the commit that leaves all as it was. */
static void on_nack(struct mrr *m, const struct mrr_frame *f)
{
	uint32_t detail = f->len >= 4 ? mrr_get32(f->data) : 0;
	bool after = m->committed && !m->commit_out;

	snprintf(m->why, sizeof(m->why), "page %04x offset %04x: %s (detail %"
		 PRIu32 ")", f->page, f->offset, mrr_code_text(f->code),
		 detail);
	snprintf(m->why_code, sizeof(m->why_code), "%u", f->code);
	m->why_class = nack_class(f->code);
	m->why_evidence = DRV_ACKED;
	if (m->events_out) {
		m->events_out = false;	/* then it is polled */
		mrr_read_slots(m);
	} else if (!base_acts(&m->h) || after) {
		mrr_give_up_text(m, WEFT_EDEVICE, m->why);
	} else if (m->commit_out) {
		mrr_refuse_unless_restarted(m);
	} else {
		mrr_refuse(m, DRV_ACKED, m->why_class, m->why_code, m->why);
	}
}

/* ---- frames ---------------------------------------------------------------- */

static void trace(struct mrr *m, const struct mrr_frame *f, bool is_reply)
{
	static const char *const ops[] = { "?", "read", "write", "event" };
	char line[96];
	uint32_t bytes = f->op == MRR_READ && f->len == 4 ? mrr_get32(f->data) : f->len;

	if (f->op == MRR_NACK) {
		snprintf(line, sizeof(line), "nack %u %s", f->code, mrr_code_text(f->code));
	} else {
		snprintf(line, sizeof(line), "%s page %04x offset %04x bytes "
			 "%" PRIu32 "%s", ops[f->op & 3], f->page,
			 f->offset, bytes,
			 is_reply && f->op != MRR_EVENT ? " ok" : "");
	}
	base_trace(&m->h, line, is_reply);
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
	/* Every operation begins by reading registers. */
	(m->h.asked || op != MRR_READ ? tcp_ask : tcp_ask_repeatable)(m->h.session, b.data, b.len,
								      f.seq);
	m->h.asked = true;
	buf_fini(&b);
}

void mrr_ask_read(struct mrr *m, uint16_t page, uint16_t offset, uint32_t bytes)
{
	uint8_t len[4];

	mrr_put32(len, bytes);
	mrr_ask(m, MRR_READ, page, offset, len, sizeof(len));
}

bool mrr_is_part(const struct mrr *m, const struct ring_fault *d)
{
	return d->part >= RING_RESONATOR && d->part <= RING_NODE &&
	       d->dir <= OPTICS_CCW && d->fibre < m->h.ring_fibres &&
	       d->node < m->h.n_in && d->channel < m->h.n_out;
}

/* An event is reported as the device sent it; the state is read. */
static bool hand_on(struct mrr *m, const struct mrr_frame *f)
{
	char text[RING_FAULT_TEXT];
	struct drv_event ev = { .kind = DRV_EVENT_ALARM, .text = text };
	struct mrr_event news;

	if (!mrr_get_event(f, &news) || (news.has_place && !mrr_is_part(m, &news.place))) {
		return false;
	}
	if (news.has_place) {
		ring_fault_text(&news.place, m->h.n_in, NULL, text);
		ev.part = &news.place;
	} else {
		snprintf(text, sizeof(text), "flags %" PRIu32 ", code %" PRIu32
			 ": %s", news.flags, news.code,
			 mrr_last_code_text(news.code));
	}
	if (!m->h.drv.event) {
		log_warn("drivers", "%s: %s", m->h.drv.name, text);
	}
	base_event(&m->h, &ev);
	return true;
}

/* Old sequence numbers are answers that come twice or too late. */
static enum tcp_verdict judge(const uint8_t *frame, size_t len, bool waiting,
			      uint64_t tag, void *arg)
{
	struct mrr *m = arg;
	struct mrr_frame f;

	if (!mrr_decode(frame, len, &f)) {
		return TCP_NONSENSE;
	}
	if (f.op == MRR_EVENT) {
		return hand_on(m, &f) ? TCP_IGNORE : TCP_NONSENSE;
	}
	if (waiting && f.seq == (uint32_t)tag) {
		return TCP_REPLY;
	}
	return (int32_t)(f.seq - (waiting ? (uint32_t)tag : m->seq + 1)) < 0 ?
	       TCP_IGNORE : TCP_NONSENSE;
}

static void on_reply(const uint8_t *frame, size_t len, uint64_t tag, void *arg)
{
	struct mrr *m = arg;
	struct mrr_frame f;

	(void)tag;
	if (m->h.op == BASE_IDLE || !mrr_decode(frame, len, &f)) {
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
	bool unknown = base_acts(&m->h) && m->h.outcomes[0].result == DRV_UNKNOWN;

	if (base_acts(&m->h)) {
		/* The commit may be the question that never left. */
		unknown = unknown && (sent || !m->commit_out);
		base_mark(&m->h, 0, 1, unknown ? DRV_UNKNOWN : DRV_SKIPPED,
			  DRV_SENT, DRV_ERR_TRANSPORT, NULL, err->msg);
	}
	mrr_end(m, rc, err);
}

/* ---- life -------------------------------------------------------- */

static void mrr_fini(struct driver_base *h)
{
	drop_banks((struct mrr *)h);
	free(((struct mrr *)h)->parts);
}

static int mrr_init(struct driver_base *h, const struct drv_config *cfg,
		    struct tcp_conf *conf, struct err *err)
{
	struct mrr *m = (struct mrr *)h;
	const struct base_number numbers[] = {
		{ "window", 8, MRR_MAX_DATA, &m->window },
		{ "lock_ms", 0, 60000, &m->lock_ms },
	};

	(void)conf;
	return base_option_ints(h->drv.cls, cfg, numbers, sizeof(numbers) /
				sizeof(numbers[0]), err);
}

static const struct tcp_conf session = {
	.timeout_ms = DEFAULT_TIMEOUT_MS,
	.window = FRAMES_OUT,
	.max_frame = MRR_MAX_FRAME,
	.frame = mrr_frame_length,
	.judge = judge,
	.reply = on_reply,
	.failed = on_failed,
	.trace = on_trace,
};

static const struct base_ops ops = {
	.session = &session,
	.init = mrr_init,
	.snapshot = mrr_snapshot,
	.submit = mrr_submit,
	.recover = mrr_recover,
	.fini = mrr_fini,
};

const struct drv_class drv_mrr_reg = {
	.name = "mrr-reg",
	.summary = "micro-ring resonator rings, paged registers over TCP",
	.kind = DRV_RING,
	.options = options,
	BASE_CLASS(struct mrr, &ops),
	.explain = mrr_explain,
	.recoveries = DRV_RELOCK,
	.recover = base_recover,
};
