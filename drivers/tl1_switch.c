/* Switches that speak TL1; see tl1_switch.h. */
#include "drivers/tl1_switch.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/log.h"

#define LOG_OUT_MS 1000

/* ---- operations end ------------------------------------------------------ */

static void denied_text(const struct tl1_message *m, char *text, size_t size)
{
	const char *words = tl1_code_words(m->code);
	int n = snprintf(text, size, "%s%s%s", words,
			 words[0] && m->remark[0] ? ": " : "", m->remark);

	if (n >= (int)size) {
		memcpy(text + size - 4, "...", 4);
	}
}

static void fail_denied(struct tl1_switch *s, const char *what,
			const struct tl1_message *m)
{
	char text[DRV_TEXT_MAX];
	struct err err = { 0 };

	denied_text(m, text, sizeof(text));
	err_set(&err, WEFT_EDEVICE, "%s: %s denied: %s %s", s->h.drv.name,
		what, m->code, text);
	handle_settle_unknown(&s->h, s->gone_too_far ? DRV_UNKNOWN : DRV_SKIPPED,
		       err.msg);
	handle_end(&s->h, WEFT_EDEVICE, &err);
}

/* ---- questions ----------------------------------------------------------- */

void tl1_command(struct tl1_command *c, const char *verb, const char *aid,
		 const char *tail)
{
	snprintf(c->verb, sizeof(c->verb), "%s", verb);
	snprintf(c->aid, sizeof(c->aid), "%s", aid ? aid : "");
	snprintf(c->tail, sizeof(c->tail), "%s", tail ? tail : "");
}

static void put_command(struct buf *b, const struct tl1_command *c,
			const char *tid, uint64_t tag)
{
	buf_printf(b, "%s:", c->verb);
	if (tid[0]) {
		buf_printf(b, "\"%s\"", tid);
	}
	buf_printf(b, ":%s:%" PRIu64 "%s;", c->aid, tag, c->tail);
}

static void forget_pages(struct tl1_switch *s)
{
	for (size_t i = 0; i < s->n_lines; i++) {
		free(s->lines[i]);
	}
	free(s->lines);
	s->lines = NULL;
	s->n_lines = s->page_bytes = 0;
}

static void send_command(struct tl1_switch *s, const struct tl1_command *c)
{
	struct buf b = { 0 };

	forget_pages(s);
	put_command(&b, c, s->use_tid ? s->tid : "", ++s->tag);
	buf_char(&b, '\n');
	handle_ask(&s->h, &b, s->tag);
}

static bool logged_in(const struct tl1_switch *s)
{
	return line_connected(s->h.line) &&
	       s->logged_session == line_sessions(s->h.line);
}

static void log_in(struct tl1_switch *s)
{
	struct tl1_command c;
	char tail[DRV_NAME_MAX + 4];

	s->phase = TL1_LOGGING_IN;
	snprintf(tail, sizeof(tail), "::%s", s->password);
	tl1_command(&c, "ACT-USER", s->user, tail);
	send_command(s, &c);
}

static void send_or_log_in(struct tl1_switch *s)
{
	if (s->user[0] && !logged_in(s)) {
		log_in(s);
	} else {
		s->phase = TL1_ASKING;
		send_command(s, &s->cmd);
	}
}

static void ask(struct tl1_switch *s, const struct tl1_command *c,
		void (*next)(struct tl1_switch *, const struct tl1_message *))
{
	s->cmd = *c;
	s->next = next;
	s->retried = false;
	send_or_log_in(s);
}

/* ---- answers ------------------------------------------------------------- */

static bool is_logged_in_already(const struct tl1_message *m)
{
	/* The words of CALIENT; a second log-in changes nothing. */
	return strstr(m->remark, "lready logged in") != NULL;
}

static void on_log_in(struct tl1_switch *s, const struct tl1_message *m)
{
	if (m->denied && !is_logged_in_already(m)) {
		fail_denied(s, "log-in", m);
		return;
	}
	s->logged_session = line_sessions(s->h.line);
	send_or_log_in(s);
}

/* A denial that a log-in or the device's name will cure. The command was not
 * carried out, so it may go out again. */
static bool try_again(struct tl1_switch *s, const struct tl1_message *m)
{
	bool logged_out = strcmp(m->code, "PIUI") == 0 ||
			  strcmp(m->code, "PICC") == 0 ||
			  strstr(m->remark, "Login Not Active");

	if (!m->denied || s->retried) {
		return false;
	}
	if (logged_out && s->user[0]) {
		s->logged_session = 0;
	} else if (strcmp(m->code, "IITA") == 0 && !s->use_tid && s->tid[0]) {
		s->use_tid = true;
	} else {
		return false;
	}
	s->retried = true;
	send_or_log_in(s);
	return true;
}

static void stop_for_good(struct tl1_switch *s);

static void take_answer(struct tl1_switch *s, const struct tl1_message *m)
{
	if (s->phase == TL1_LOGGING_OUT) {
		stop_for_good(s);
	} else if (s->h.op == HANDLE_IDLE) {
		return;
	} else if (s->phase == TL1_LOGGING_IN) {
		on_log_in(s, m);
	} else if (!try_again(s, m)) {
		s->next(s, m);
	}
}

/* Keeps copies of a page's lines until the last page is here. */
static bool keep_page(struct tl1_switch *s, const struct tl1_message *m,
		      size_t len)
{
	char **lines = realloc(s->lines, (s->n_lines + m->n_lines + 1) *
			       sizeof(*lines));

	s->page_bytes += len;
	if (!lines) {
		return false;
	}
	s->lines = lines;
	for (size_t i = 0; i < m->n_lines; i++) {
		char *copy = strdup(m->lines[i]);

		if (!copy) {
			return false;
		}
		s->lines[s->n_lines++] = copy;
	}
	return s->page_bytes <= TL1_MAX_ANSWER;
}

static enum line_verdict judge_response(struct tl1_switch *s,
					const struct tl1_message *m,
					size_t len, bool waiting, uint64_t tag)
{
	/* A tag that the device could not read comes back as 0. */
	if (waiting && (m->tag == tag || (m->tag == 0 && m->denied))) {
		if (!m->more) {
			return LINE_ANSWER;
		}
		return keep_page(s, m, len) ? LINE_IGNORE : LINE_NONSENSE;
	}
	/* One of ours from before came twice. */
	return m->tag > 0 && m->tag <= s->tag && m->tag != tag ?
	       LINE_IGNORE : LINE_NONSENSE;
}

/* What a report says is news to whoever asked for none. */
static void hand_on(struct tl1_switch *s, const struct tl1_message *m)
{
	char text[2 * DRV_TEXT_MAX];
	struct drv_event ev = { .text = text, .kind =
		strstr(m->report, "REPT ALM") ? DRV_EVENT_ALARM :
		strstr(m->report, "REPT EVT") ||
		strstr(m->report, "REPT DBCHG") ? DRV_EVENT_CHANGED :
						  DRV_EVENT_NOTE };

	snprintf(text, sizeof(text), "%s%s%s", m->report,
		 m->remark[0] ? " " : "", m->remark);
	ev.has_port = m->n_lines > 0 &&
		      s->dialect->port(s, m->lines[0], &ev.is_out, &ev.index);
	if (!s->h.drv.event) {
		log_warn("drivers", "%s reports: %s", s->h.drv.name, text);
	}
	handle_event(&s->h, &ev);
}

static enum line_verdict judge(const uint8_t *frame, size_t len, bool waiting,
			       uint64_t tag, void *arg)
{
	struct tl1_switch *s = arg;
	enum line_verdict v = LINE_IGNORE;
	struct tl1_message m;

	if (tl1_parse(frame, len, &m, NULL)) {
		return LINE_NONSENSE;
	}
	if (m.kind == TL1_AUTONOMOUS) {
		hand_on(s, &m);
	} else if (m.kind == TL1_RESPONSE) {
		v = judge_response(s, &m, len, waiting, tag);
	}
	tl1_message_fini(&m);
	return v;
}

static void learn_name(struct tl1_switch *s, const struct tl1_message *m)
{
	/* A name that cannot be written between quotes is none. */
	if (!s->use_tid && m->sid[0] && !strchr(m->sid, '"')) {
		memcpy(s->tid, m->sid, sizeof(s->tid));
	}
}

/* The whole answer: the pages kept, then the last one. */
static int join_pages(struct tl1_switch *s, struct tl1_message *m)
{
	size_t n = s->n_lines + m->n_lines;
	char **all = calloc(n + 1, sizeof(*all));

	if (!all) {
		return WEFT_ENOMEM;
	}
	if (s->n_lines) {
		memcpy(all, s->lines, s->n_lines * sizeof(*all));
	}
	if (m->n_lines) {
		memcpy(all + s->n_lines, m->lines, m->n_lines * sizeof(*all));
	}
	free(m->lines);
	m->lines = all;
	m->n_lines = n;
	return 0;
}

static void on_answer(const uint8_t *frame, size_t len, uint64_t tag, void *arg)
{
	struct tl1_switch *s = arg;
	struct err err = { 0 };
	struct tl1_message m;
	char **pages;
	size_t n_pages;
	int rc = tl1_parse(frame, len, &m, &err);

	(void)tag;
	if (rc == 0) {
		learn_name(s, &m);
		rc = join_pages(s, &m);
	}
	if (rc) {
		tl1_message_fini(&m);
		handle_misunderstood(&s->h, rc, &err);
		return;
	}
	/* The next question forgets the pages of this one, which are still
	 * being read. */
	pages = s->lines;
	n_pages = s->n_lines;
	s->lines = NULL;
	s->n_lines = 0;
	take_answer(s, &m);
	for (size_t i = 0; i < n_pages; i++) {
		free(pages[i]);
	}
	free(pages);
	tl1_message_fini(&m);
}

static void on_failed(int rc, const struct err *err, bool sent, void *arg)
{
	struct tl1_switch *s = arg;
	bool unknown = s->gone_too_far || (sent && s->phase == TL1_ASKING);

	if (s->phase == TL1_LOGGING_OUT) {
		stop_for_good(s);
		return;
	}
	handle_lost(&s->h, rc, err, unknown);
}

/* Passwords are nobody's business. */
static void hide_password(char *line)
{
	char *tail = strncmp(line, "ACT-USER", 8) == 0 ?
		     strstr(line, "::") : NULL;
	char *last = NULL;

	for (; tail; tail = strstr(tail + 1, "::")) {
		last = tail;
	}
	if (last) {
		memcpy(last, "::*;", strlen(last) >= 4 ? 5 : strlen(last) + 1);
	}
}

static void on_trace(const uint8_t *bytes, size_t len, bool is_reply, void *arg)
{
	struct tl1_switch *s = arg;
	char *text = s->h.drv.trace ? strndup((const char *)bytes, len) : NULL;
	char *rest = NULL;

	for (char *line = text ? strtok_r(text, "\r\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\r\n", &rest)) {
		if (!is_reply) {
			hide_password(line);
		}
		handle_trace(&s->h, line, is_reply);
	}
	free(text);
}

/* ---- for dialects -------------------------------------------------------- */

int tl1_unexpected(const char *line, const char *expected, struct err *err)
{
	return err_set(err, WEFT_EDEVICE, "expected %s, the device said "
		       "'%.60s'", expected, line);
}

int tl1_check_size(const struct tl1_switch *s, int n_in, int n_out,
		   struct err *err)
{
	if (n_in == s->h.n_in && n_out == s->h.n_out) {
		return 0;
	}
	return err_set(err, WEFT_EVERIFY,
		       "the device is %dx%d, the fabric says %dx%d", n_in,
		       n_out, s->h.n_in, s->h.n_out);
}

void tl1_identify(struct tl1_switch *s, const char *words)
{
	char *identity = s->h.snap.identity;
	size_t n = strlen(identity), size = sizeof(s->h.snap.identity);

	snprintf(identity + n, size - n, "%s%s", n ? "," : "", words);
}

static int find_circuit(const struct tl1_switch *s, struct light_xc xc)
{
	for (size_t i = 0; i < s->circuits.n; i++) {
		if (light_xc_cmp(&s->circuits.v[i].xc, &xc) == 0) {
			return (int)i;
		}
	}
	return -1;
}

int tl1_found_circuit(struct tl1_switch *s, const struct tl1_circuit *c,
		      struct err *err)
{
	struct light_xc other;

	if (devmem_check(&s->map, c->xc, NULL) || devmem_has(&s->map, c->xc) ||
	    devmem_victim(&s->map, c->xc, &other)) {
		return err_set(err, WEFT_EDEVICE,
			       "the map holds %d-%d, which cannot be",
			       c->xc.in, c->xc.out);
	}
	devmem_connect(&s->map, c->xc);
	return vec_push(&s->circuits, *c) ? err_nomem(err) : 0;
}

/* ---- reading ------------------------------------------------------------- */

static bool wanted(const struct tl1_switch *s, const struct tl1_read *r)
{
	bool snapshot = s->h.op == HANDLE_SNAPSHOT;

	switch (r->when) {
	case TL1_IDENTITY:
	case TL1_PORTS:
		return snapshot;
	case TL1_SIZE:
		return snapshot || !line_connected(s->h.line) ||
		       s->checked_session != line_sessions(s->h.line);
	case TL1_POWER:
		return snapshot && s->want_power;
	case TL1_MAP:
		break;
	}
	return true;
}

static void next_read(struct tl1_switch *s);

static void on_read(struct tl1_switch *s, const struct tl1_message *m)
{
	const struct tl1_read *r = &s->dialect->reads[s->at_read];
	struct err err = { 0 };
	int rc = 0;

	if (m->denied) {
		fail_denied(s, s->cmd.verb, m);
		return;
	}
	if (r->when == TL1_SIZE && m->n_lines == 0) {
		rc = tl1_unexpected("", "its size", &err);
	}
	for (size_t i = 0; rc == 0 && i < m->n_lines; i++) {
		rc = r->line(s, m->lines[i], &err);
	}
	if (rc == 0 && r->end) {
		rc = r->end(s, m->n_lines, &err);
	}
	if (rc) {
		handle_misunderstood(&s->h, rc, &err);
		return;
	}
	if (r->when == TL1_SIZE) {
		s->checked_session = line_sessions(s->h.line);
	}
	s->at_read++;
	next_read(s);
}

static void next_read(struct tl1_switch *s)
{
	const struct tl1_read *reads = s->dialect->reads;
	struct tl1_command c;

	while (reads[s->at_read].ask && !wanted(s, &reads[s->at_read])) {
		s->at_read++;
	}
	if (!reads[s->at_read].ask) {
		s->after_reads(s);
		return;
	}
	if (reads[s->at_read].when == TL1_MAP) {
		devmem_clear(&s->map);
		s->circuits.n = 0;
	}
	reads[s->at_read].ask(s, &c);
	ask(s, &c, on_read);
}

static void start_reads(struct tl1_switch *s,
			void (*after)(struct tl1_switch *s))
{
	s->at_read = 0;
	s->after_reads = after;
	next_read(s);
}

/* ---- snapshot ------------------------------------------------------------ */

static void fill_snapshot(struct tl1_switch *s)
{
	struct drv_snapshot *snap = &s->h.snap;
	struct err err = { 0 };

	snap->xcs = calloc(s->circuits.n + 1, sizeof(*snap->xcs));
	if (!snap->xcs) {
		handle_end(&s->h, err_nomem(&err), &err);
		return;
	}
	for (size_t i = 0; i < s->circuits.n; i++) {
		const struct tl1_circuit *c = &s->circuits.v[i];
		struct drv_xc *x = &snap->xcs[snap->n_xcs++];

		x->xc = c->xc;
		x->state = c->state;
		x->has_loss = c->has_loss;
		x->loss_mdb = c->loss_mdb;
		memcpy(x->owner, c->owner, sizeof(x->owner));
	}
	handle_end(&s->h, 0, &err);
}

static void tl1_snapshot(struct handle *h)
{
	struct tl1_switch *s = (struct tl1_switch *)h;

	h->snap.caps = (struct drv_caps){
		.kind = DRV_SPACE,
		.numbering = DRV_SPLIT,
		.n_in = h->n_in,
		.n_out = h->n_out,
		.power = s->want_power ? DRV_POWER_BOTH : DRV_POWER_NONE,
		.min_gap_us = s->gap_ms * 1000,
		.typ_switch_us = s->dialect->typ_switch_us,
		.settle_us = s->settle_ms * 1000,
	};
	s->gone_too_far = false;
	tl1_identify(s, s->dialect->vendor);
	start_reads(s, fill_snapshot);
}

/* ---- a batch: its end ---------------------------------------------------- */

/* What the map says about an item that was confirmed. One that the map does
 * not show stays confirmed and no more. */
static void verify_item(struct tl1_switch *s, int i)
{
	const struct drv_item *item = &s->h.batch->items[i];
	struct drv_outcome *o = &s->h.outcomes[i];
	int at = find_circuit(s, item->xc);
	const struct tl1_circuit *c = at < 0 ? NULL : &s->circuits.v[at];

	if (o->result != DRV_DONE) {
		return;
	}
	if (item->op == DRV_DEL) {
		o->evidence = c ? o->evidence : DRV_READ_BACK;
	} else if (c && c->state == DRV_TUNED) {
		o->evidence = DRV_READ_BACK;
	} else if (c && c->state == DRV_FAILED) {
		handle_mark(&s->h, i, i + 1, DRV_DONE, DRV_READ_BACK,
			    DRV_ERR_TRAFFIC, NULL, c->trouble);
	}
}

static void verify_items(struct tl1_switch *s)
{
	for (int i = 0; i < s->h.n_outcomes; i++) {
		verify_item(s, i);
	}
	handle_end(&s->h, 0, NULL);
}

static void on_settled(uv_timer_t *t)
{
	struct tl1_switch *s = t->data;

	s->gone_too_far = false;
	start_reads(s, verify_items);
}

static void end_batch(struct tl1_switch *s)
{
	if (s->dialect->verify && s->any_done) {
		uv_timer_start(&s->h.timer, on_settled, (uint64_t)s->settle_ms,
			       0);
	} else {
		handle_end(&s->h, 0, NULL);
	}
}

/* ---- a batch: commands --------------------------------------------------- */

static void next_item(struct tl1_switch *s);
static void next_step(struct tl1_switch *s);

/* The items that the command which is out is for: one, or all of a REPLACE
 * while it clears the way. */
static void mark(struct tl1_switch *s, enum drv_result r, enum drv_evidence e,
		 enum drv_class_of_error c, const char *code, const char *text)
{
	int first = s->item < 0 ? 0 : s->item;
	int end = s->item < 0 ? s->h.n_outcomes : s->item + 1;

	handle_mark(&s->h, first, end, r, e, c, code, text);
}

static void refuse(struct tl1_switch *s, enum drv_class_of_error c,
		   const char *text)
{
	mark(s, s->gone_too_far ? DRV_UNKNOWN : DRV_REFUSED, DRV_READ_BACK, c,
	     NULL, text);
	end_batch(s);
}

static void on_step_denied(struct tl1_switch *s, const struct tl1_message *m)
{
	char words[DRV_TEXT_MAX], text[2 * DRV_TEXT_MAX];
	struct err err = { 0 };

	denied_text(m, words, sizeof(words));
	snprintf(text, sizeof(text), "%s %d-%d%s%s", s->cmd.verb,
		 s->now.xc.in, s->now.xc.out, words[0] ? ": " : "", words);
	mark(s, s->gone_too_far ? DRV_UNKNOWN : DRV_REFUSED, DRV_ACKED,
	     tl1_code_class(m->code), m->code, text);
	if (s->h.n_outcomes == 0) {
		/* Nobody else can say that the map could not be cleared. */
		err_set(&err, WEFT_EDEVICE, "%s: %s %.100s", s->h.drv.name,
			m->code, text);
		handle_end(&s->h, WEFT_EDEVICE, &err);
		return;
	}
	end_batch(s);
}

static void on_step(struct tl1_switch *s, const struct tl1_message *m)
{
	if (m->denied && strcmp(m->code, "SROU") != 0) {
		on_step_denied(s, m);
		return;
	}
	s->gone_too_far = true;
	s->step++;
	next_step(s);
}

static void forget_circuit(struct tl1_switch *s, struct light_xc xc)
{
	int at = find_circuit(s, xc);

	if (at >= 0) {
		s->circuits.v[at] = s->circuits.v[--s->circuits.n];
	}
	devmem_release(&s->map, devmem_flat_in(&s->map, xc.in));
}

/* All commands about s->now are confirmed. */
static void finish_circuit(struct tl1_switch *s)
{
	const struct drv_item *item = s->item < 0 ? NULL :
				      &s->h.batch->items[s->item];
	struct err err = { 0 };

	forget_circuit(s, s->now.xc);
	s->any_done = true;
	if (s->now_op == DRV_ADD) {
		s->now.state = DRV_TUNED;
		if (tl1_found_circuit(s, &s->now, &err)) {
			handle_misunderstood(&s->h, err.code, &err);
			return;
		}
	}
	if (item && item->op == s->now_op) {
		mark(s, DRV_DONE, DRV_ACKED, DRV_ERR_NONE, NULL, NULL);
		s->item++;
		s->gone_too_far = false;
	}
	next_item(s);
}

static void next_step(struct tl1_switch *s)
{
	struct tl1_command c;

	if (!s->dialect->command(s, s->now_op, s->step, &s->now, &c)) {
		finish_circuit(s);
		return;
	}
	mark(s, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT, NULL, "not answered");
	ask(s, &c, on_step);
}

static void act_on(struct tl1_switch *s, enum drv_op op,
		   const struct tl1_circuit *c)
{
	s->now = *c;
	s->now_op = op;
	s->step = c->state == DRV_BLOCKED;
	next_step(s);
}

/* ---- a batch: what we decide ourselves ----------------------------------- */

/* Ends a circuit, unless it is somebody else's. */
static void end_circuit(struct tl1_switch *s, const struct tl1_circuit *c)
{
	char text[DRV_TEXT_MAX];

	if (c->locked) {
		snprintf(text, sizeof(text), "%d-%d is locked by %s", c->xc.in,
			 c->xc.out, c->owner);
		refuse(s, DRV_ERR_STATE, text);
	} else {
		act_on(s, DRV_DEL, c);
	}
}

static void refuse_busy(struct tl1_switch *s, struct light_xc victim)
{
	const struct drv_item *item = &s->h.batch->items[s->item];
	bool add = item->op == DRV_ADD;
	char text[DRV_TEXT_MAX];

	snprintf(text, sizeof(text), "%s %d-%d: %s %d-%d",
		 add ? "cannot connect" : "cannot remove", item->xc.in,
		 item->xc.out, add ? "it would cut" : "connected is",
		 victim.in, victim.out);
	refuse(s, DRV_ERR_STATE, text);
}

/* The item is in the map already. */
static void already(struct tl1_switch *s, const struct tl1_circuit *c)
{
	bool failed = c && c->state == DRV_FAILED;

	mark(s, DRV_DONE, DRV_READ_BACK, failed ? DRV_ERR_TRAFFIC :
	     DRV_ERR_NONE, NULL, failed ? c->trouble : "as asked already");
	s->item++;
}

/* Begins what an item needs; true when that is nothing. */
static bool do_item(struct tl1_switch *s, const struct drv_item *item)
{
	struct tl1_circuit fresh = { .xc = item->xc, .state = DRV_TUNED };
	struct light_xc victim = { 0, 0 };
	bool cuts = devmem_victim(&s->map, item->xc, &victim);
	int at = find_circuit(s, item->xc);
	const struct tl1_circuit *c = at < 0 ? NULL : &s->circuits.v[at];

	if (item->op == DRV_DEL) {
		if (c) {
			end_circuit(s, c);
		} else if (cuts) {
			refuse_busy(s, victim);
		} else {
			already(s, NULL);
			return true;
		}
	} else if (c && c->state == DRV_BLOCKED) {
		act_on(s, DRV_ADD, c);
	} else if (c) {
		already(s, c);
		return true;
	} else if (!cuts) {
		act_on(s, DRV_ADD, &fresh);
	} else if (s->h.batch->mode == DRV_SAFE) {
		refuse_busy(s, victim);
	} else {
		end_circuit(s, &s->circuits.v[find_circuit(s, victim)]);
	}
	return false;
}

static bool is_asked_for(const struct drv_batch *batch, struct light_xc xc)
{
	for (int i = 0; i < batch->n_items; i++) {
		if (light_xc_cmp(&batch->items[i].xc, &xc) == 0) {
			return true;
		}
	}
	return false;
}

static void next_item(struct tl1_switch *s)
{
	const struct drv_batch *batch = s->h.batch;
	struct err err = { 0 };

	for (size_t i = 0; s->item < 0 && i < s->circuits.n; i++) {
		if (!is_asked_for(batch, s->circuits.v[i].xc)) {
			end_circuit(s, &s->circuits.v[i]);
			return;
		}
	}
	if (s->item < 0) {
		s->item = 0;
		s->gone_too_far = false;
		handle_mark(&s->h, 0, s->h.n_outcomes, DRV_SKIPPED, DRV_SENT,
			    DRV_ERR_NONE, NULL, "not sent");
	}
	while (s->item < batch->n_items) {
		const struct drv_item *item = &batch->items[s->item];

		if (devmem_check(&s->map, item->xc, &err)) {
			refuse(s, DRV_ERR_CONFIGURATION, err.msg);
			return;
		}
		if (!do_item(s, item)) {
			return;
		}
	}
	end_batch(s);
}

/* REPLACE clears the way first, so a list that is wrong in itself must be
 * refused before. */
static bool check_replace(struct tl1_switch *s)
{
	const struct drv_batch *batch = s->h.batch;
	bool *used = calloc((size_t)s->map.n_ports, sizeof(*used));
	struct err err = { 0 };
	bool ok = true;

	if (!used) {
		handle_end(&s->h, err_nomem(&err), &err);
		return false;
	}
	for (s->item = 0; ok && s->item < batch->n_items; s->item++) {
		const struct light_xc xc = batch->items[s->item].xc;
		bool *in, *out;

		if (devmem_check(&s->map, xc, &err)) {
			refuse(s, DRV_ERR_CONFIGURATION, err.msg);
			ok = false;
			break;
		}
		in = &used[devmem_flat_in(&s->map, xc.in)];
		out = &used[devmem_flat_out(&s->map, xc.out)];
		if (*in || *out) {
			refuse(s, DRV_ERR_CONFIGURATION,
			       "a port of it is in the list twice");
			ok = false;
			break;
		}
		*in = *out = true;
	}
	free(used);
	return ok;
}

static void begin_batch(struct tl1_switch *s)
{
	s->item = s->h.batch->mode == DRV_REPLACE ? -1 : 0;
	next_item(s);
}

static void tl1_submit(struct handle *h)
{
	struct tl1_switch *s = (struct tl1_switch *)h;
	bool replace = h->batch->mode == DRV_REPLACE;

	s->gone_too_far = s->any_done = false;
	if (h->batch->n_items == 0 && !replace) {
		handle_end(&s->h, 0, NULL);
	} else if (!replace || check_replace(s)) {
		start_reads(s, begin_batch);
	}
}

void tl1_switch_explain(struct drv *dev, const struct drv_batch *batch,
			drv_trace_fn fn, void *arg)
{
	const struct tl1_switch *s = (struct tl1_switch *)dev;
	const struct tl1_read *r = s->dialect->reads;
	struct tl1_command c;
	struct buf b = { 0 };
	uint64_t tag = s->tag;

	while (r->when != TL1_MAP) {
		r++;
	}
	r->ask(s, &c);
	put_command(&b, &c, s->use_tid ? s->tid : "", ++tag);
	fn(dev->name, buf_cstr(&b), false, arg);
	for (int i = 0; i < batch->n_items; i++) {
		const struct drv_item *item = &batch->items[i];
		struct tl1_circuit now = { .xc = item->xc };

		for (int step = 0; s->dialect->command(s, item->op, step, &now,
						       &c); step++) {
			buf_reset(&b);
			put_command(&b, &c, s->use_tid ? s->tid : "", ++tag);
			fn(dev->name, buf_cstr(&b), false, arg);
		}
	}
	buf_fini(&b);
}

/* ---- life ---------------------------------------------------------------- */

static void stop_for_good(struct tl1_switch *s)
{
	if (!uv_is_closing((uv_handle_t *)&s->h.timer)) {
		handle_stopped(&s->h);
	}
}

static void on_log_out_late(uv_timer_t *t)
{
	stop_for_good(t->data);
}

/* Logs out if that can be done in passing: a device may hold sessions of
 * users who just left, and have few of them. */
static void tl1_stop(struct handle *h)
{
	struct tl1_switch *s = (struct tl1_switch *)h;
	struct tl1_command c;

	uv_timer_stop(&s->h.timer);
	if (!s->user[0] || !logged_in(s) || line_open_questions(s->h.line)) {
		stop_for_good(s);
		return;
	}
	s->phase = TL1_LOGGING_OUT;
	tl1_command(&c, "CANC-USER", s->user, "");
	send_command(s, &c);
	uv_timer_start(&s->h.timer, on_log_out_late, LOG_OUT_MS, 0);
}

static void tl1_fini(struct handle *h)
{
	struct tl1_switch *s = (struct tl1_switch *)h;

	forget_pages(s);
	vec_fini(&s->circuits);
	devmem_fini(&s->map);
}

int tl1_text_option(const struct drv_class *cls, const struct drv_config *cfg,
		    const char *key, char *out, size_t size, struct err *err)
{
	const char *text = handle_option(cls, cfg, key);

	for (const char *p = text; *p; p++) {
		if (!isgraph((unsigned char)*p) || strchr(":;,\"", *p)) {
			return err_set(err, WEFT_EINVAL, "option %s: no blank, "
				       "colon, semicolon, comma or quote may "
				       "be in it", key);
		}
	}
	if (strlen(text) >= size) {
		return err_set(err, WEFT_EINVAL,
			       "option %s is over %d characters", key,
			       (int)size - 1);
	}
	memcpy(out, text, strlen(text) + 1);
	return 0;
}

static int parse_options(struct tl1_switch *s, const struct drv_config *cfg,
			 struct err *err)
{
	const struct drv_class *cls = s->h.drv.cls;
	const struct handle_number numbers[] = {
		{ "gap_ms", 0, 60000, &s->gap_ms },
		{ "settle_ms", 0, 60000, &s->settle_ms },
	};
	int rc = handle_option_ints(cls, cfg, numbers, sizeof(numbers) /
				    sizeof(numbers[0]), err);

	if (rc == 0) {
		rc = tl1_text_option(cls, cfg, "user", s->user,
				     sizeof(s->user), err);
	}
	if (rc == 0) {
		rc = tl1_text_option(cls, cfg, "password", s->password,
				     sizeof(s->password), err);
	}
	if (rc == 0) {
		rc = tl1_text_option(cls, cfg, "tid", s->tid, sizeof(s->tid),
				     err);
	}
	s->use_tid = s->tid[0] != '\0';
	return rc;
}

static int tl1_init(struct handle *h, const struct drv_config *cfg,
		    struct line_conf *conf, struct err *err)
{
	struct tl1_switch *s = (struct tl1_switch *)h;
	int rc = handle_two_sides(h->drv.cls, cfg, "", err);

	rc = rc ? rc : parse_options(s, cfg, err);
	conf->gap_us = s->gap_ms * 1000;
	rc = rc ? rc : s->dialect->init(s, cfg, err);
	return rc ? rc : devmem_init(&s->map, DRV_SPACE, cfg->n_in, cfg->n_out,
				     false, err);
}

static const struct line_conf line = {
	.max_frame = TL1_MAX_FRAME,
	.frame = tl1_frame,
	.judge = judge,
	.answer = on_answer,
	.failed = on_failed,
	.trace = on_trace,
};

static const struct handle_ops ops = {
	.line = &line,
	.init = tl1_init,
	.snapshot = tl1_snapshot,
	.submit = tl1_submit,
	.stop = tl1_stop,
	.fini = tl1_fini,
};

int tl1_switch_open(const struct tl1_dialect *d, uv_loop_t *loop,
		    const struct drv_config *cfg, struct drv **out,
		    struct err *err)
{
	struct tl1_switch *s = handle_new(d->cls, &ops, d->size);

	if (s) {
		s->dialect = d;
	}
	return handle_open((struct handle *)s, loop, cfg, out, err);
}
