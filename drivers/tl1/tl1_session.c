/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TL1 session: log-in and log-out, questions with their tags, answers of
 * several pages, reports; struct tl1_switch is in tl1_private.h.
 *
 * A session is logged in before its first question and again whenever the
 * device denies one for want of a log-in, once a question. Each question has
 * a tag of its own; an answer with another tag belongs to a question that was
 * given up and is passed over. The pages of an answer are gathered and handed
 * on as one message. Autonomous reports come between all of these: they become
 * events, and never end an operation.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/secret.h"
#include "drivers/tl1/tl1_private.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"

#define LOG_OUT_MS 1000

/* ---- operations end ------------------------------------------------------ */

void tl1_denied_text(const struct tl1_message *m, char *text, size_t size)
{
	const char *words = tl1_code_words(m->code);
	int n = snprintf(text, size, "%s%s%s", words,
			 words[0] && m->remark[0] ? ": " : "", m->remark);

	if (n >= (int)size) {
		memcpy(text + size - 4, "...", 4);
	}
}

/* The question that is out was not carried out. */
static void fail_not_done(struct tl1_switch *s, int rc, const struct err *err)
{
	base_settle_unknown(&s->h, s->partly_done ? DRV_UNKNOWN : DRV_SKIPPED, err->msg);
	base_end(&s->h, rc, err);
}

void tl1_fail_denied(struct tl1_switch *s, const char *what, const struct tl1_message *m)
{
	char text[DRV_TEXT_MAX];
	struct err err = { 0 };

	tl1_denied_text(m, text, sizeof(text));
	err_set(&err, WEFT_EDEVICE, "%s: %s denied: %s %s", s->h.drv.name, what, m->code, text);
	fail_not_done(s, WEFT_EDEVICE, &err);
}

/* ---- questions ----------------------------------------------------------- */

void tl1_command(struct tl1_command *c, const char *verb, const char *aid, const char *tail)
{
	snprintf(c->verb, sizeof(c->verb), "%s", verb);
	snprintf(c->aid, sizeof(c->aid), "%s", aid ? aid : "");
	snprintf(c->tail, sizeof(c->tail), "%s", tail ? tail : "");
	c->list = NULL;
}

void tl1_put_command(struct buf *b, const struct tl1_command *c, const char *tid, uint64_t tag)
{
	buf_printf(b, "%s:", c->verb);
	if (tid[0]) {
		buf_printf(b, "\"%s\"", tid);
	}
	buf_printf(b, ":%s:%" PRIu64 "%s;", c->list ? c->list : c->aid, tag,
		   c->tail);
}

void tl1_forget_pages(struct tl1_switch *s)
{
	for (size_t i = 0; i < s->n_lines; i++) {
		free(s->lines[i].text);
	}
	free(s->lines);
	s->lines = NULL;
	s->n_lines = s->page_bytes = 0;
}

static void send_command(struct tl1_switch *s, const struct tl1_command *c)
{
	struct buf b = { 0 };

	tl1_forget_pages(s);
	tl1_put_command(&b, c, s->use_tid ? s->tid : "", ++s->tag);
	buf_char(&b, '\n');
	base_ask(&s->h, &b, s->tag);
}

static bool logged_in(const struct tl1_switch *s)
{
	return tcp_connected(s->h.session) && s->logged_session == tcp_sessions(s->h.session);
}

void tl1_forget_password(struct tl1_switch *s)
{
	secret_free(s->password);
	s->password = NULL;
}

static int read_password(struct tl1_switch *s, struct err *err)
{
	const char *file = s->password_file;
	int rc = file[0] ? secret_read_line(file, &s->password, err) : 0;

	if (rc == 0 && s->password && !tl1_is_text(s->password, DRV_NAME_MAX)) {
		rc = secret_unusable(file, "TL1 knows no password so long, or with a blank, colon, "
				     "semicolon, comma or quote", err);
		tl1_forget_password(s);
	}
	return rc ? err_wrap(err, "%s: option password_file", s->h.drv.name) : 0;
}

static void log_in(struct tl1_switch *s)
{
	struct tl1_command c;
	char tail[DRV_NAME_MAX + 4];
	struct err err = { 0 };

	tl1_forget_password(s);
	if (read_password(s, &err)) {
		fail_not_done(s, err.code, &err);
		return;
	}
	s->phase = TL1_LOGGING_IN;
	snprintf(tail, sizeof(tail), "::%s", s->password ? s->password : s->dialect->password);
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

void tl1_ask(struct tl1_switch *s, const struct tl1_command *c,
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
		tl1_fail_denied(s, "log-in", m);
		return;
	}
	s->logged_session = tcp_sessions(s->h.session);
	send_or_log_in(s);
}

/* A denial that a log-in or the device's name will cure. The command was not
 * carried out, so it may go out again. */
static bool try_again(struct tl1_switch *s, const struct tl1_message *m)
{
	bool logged_out = strcmp(m->code, "PIUI") == 0 || strcmp(m->code, "PICC") == 0 ||
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
	} else if (s->h.op == BASE_IDLE) {
		return;
	} else if (s->phase == TL1_LOGGING_IN) {
		on_log_in(s, m);
	} else if (!try_again(s, m)) {
		s->next(s, m);
	}
}

/* Keeps copies of a page's lines until the last page is here. */
static bool keep_page(struct tl1_switch *s, const struct tl1_message *m, size_t len)
{
	struct tl1_line *lines = x_grow(s->lines, s->n_lines + m->n_lines + 1, sizeof(*lines));

	s->page_bytes += len;
	s->lines = lines;
	for (size_t i = 0; i < m->n_lines; i++) {
		char *copy = x_dup(m->lines[i].text);

		s->lines[s->n_lines++] = (struct tl1_line){ copy, m->lines[i].quoted };
	}
	return s->page_bytes <= TL1_MAX_ANSWER;
}

static enum tcp_verdict judge_response(struct tl1_switch *s, const struct tl1_message *m,
				       size_t len, bool waiting, uint64_t tag)
{
	/* A tag that the device could not read comes back as 0. */
	if (waiting && (m->tag == tag || (m->tag == 0 && m->denied))) {
		if (!m->more) {
			return TCP_REPLY;
		}
		return keep_page(s, m, len) ? TCP_IGNORE : TCP_NONSENSE;
	}
	/* One of ours from before came twice. */
	return m->tag > 0 && m->tag <= s->tag && m->tag != tag ? TCP_IGNORE : TCP_NONSENSE;
}

/* While it logs in, a device may say the password back. */
static void hide_in(const struct tl1_switch *s, char *text)
{
	if (s->password) {
		secret_hide(text, s->password);
	}
}

/* A report that came without a request becomes an event. */
static void report_event(struct tl1_switch *s, const struct tl1_message *m)
{
	char text[2 * DRV_TEXT_MAX];
	struct drv_event ev = { .text = text, .kind =
		strstr(m->report, "REPT ALM") ? DRV_EVENT_ALARM :
		strstr(m->report, "REPT EVT") ||
		strstr(m->report, "REPT DBCHG") ? DRV_EVENT_CHANGED :
						  DRV_EVENT_NOTE };

	snprintf(text, sizeof(text), "%s%s%s", m->report,
		 m->remark[0] ? " " : "", m->remark);
	hide_in(s, text);
	ev.has_port = m->n_lines > 0 && s->dialect->port(s, m->lines[0].text, &ev.is_out,
							 &ev.index);
	if (!s->h.drv.event) {
		log_warn("drivers", "%s reports: %s", s->h.drv.name, text);
	}
	base_event(&s->h, &ev);
}

static enum tcp_verdict judge(const uint8_t *frame, size_t len, bool waiting,
			      uint64_t tag, void *arg)
{
	struct tl1_switch *s = arg;
	enum tcp_verdict v = TCP_IGNORE;
	struct tl1_message m;

	if (tl1_parse(frame, len, &m, NULL)) {
		return TCP_NONSENSE;
	}
	if (m.kind == TL1_AUTONOMOUS) {
		report_event(s, &m);
	} else if (m.kind == TL1_RESPONSE) {
		v = judge_response(s, &m, len, waiting, tag);
	}
	tl1_message_fini(&m);
	return v;
}

static void learn_name(struct tl1_switch *s, const struct tl1_message *m)
{
	/* A name that cannot be written between quotes is none, nor is what Polatis
	 * switches print that were given none. */
	if (!s->use_tid && m->sid[0] && !strchr(m->sid, '"') && strcmp(m->sid, "( nil )") != 0) {
		memcpy(s->tid, m->sid, sizeof(s->tid));
	}
}

/* The whole answer: the pages kept, then the last one. */
static void join_pages(struct tl1_switch *s, struct tl1_message *m)
{
	size_t n = s->n_lines + m->n_lines;
	struct tl1_line *all = x_new(n + 1, sizeof(*all));

	if (s->n_lines) {
		memcpy(all, s->lines, s->n_lines * sizeof(*all));
	}
	if (m->n_lines) {
		memcpy(all + s->n_lines, m->lines, m->n_lines * sizeof(*all));
	}
	free(m->lines);
	m->lines = all;
	m->n_lines = n;
}

static void on_reply(const uint8_t *frame, size_t len, uint64_t tag, void *arg)
{
	struct tl1_switch *s = arg;
	struct err err = { 0 };
	struct tl1_message m;
	struct tl1_line *pages;
	size_t n_pages;
	int rc = tl1_parse(frame, len, &m, &err);

	(void)tag;
	if (rc == 0) {
		learn_name(s, &m);
		join_pages(s, &m);
	}
	if (rc) {
		tl1_forget_password(s);
		tl1_message_fini(&m);
		base_misunderstood(&s->h, rc, &err);
		return;
	}
	/* The next question forgets the pages of this one, which are still
	 * being read. */
	pages = s->lines;
	n_pages = s->n_lines;
	s->lines = NULL;
	s->n_lines = 0;
	hide_in(s, m.remark);
	tl1_forget_password(s);
	take_answer(s, &m);
	for (size_t i = 0; i < n_pages; i++) {
		free(pages[i].text);
	}
	free(pages);
	tl1_message_fini(&m);
}

static void on_failed(int rc, const struct err *err, bool sent, void *arg)
{
	struct tl1_switch *s = arg;
	bool unknown = s->partly_done || (sent && s->phase == TL1_ASKING);

	tl1_forget_password(s);
	if (s->phase == TL1_LOGGING_OUT) {
		stop_for_good(s);
		return;
	}
	base_lost(&s->h, rc, err, unknown);
}

/* Passwords are not traced, nor where the device echoes them. */
static void hide_password(char *line)
{
	char *command = strcasestr(line, "ACT-USER");
	char *tail = command ? strstr(command, "::") : NULL;
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
	char *text = s->h.drv.trace ? x_ndup((const char *)bytes, len) : NULL;
	char *rest = NULL;

	for (char *line = text ? strtok_r(text, "\r\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\r\n", &rest)) {
		hide_in(s, line);
		hide_password(line);
		base_trace(&s->h, line, is_reply);
	}
	free(text);
}

/* ---- its end ------------------------------------------------------------- */

static void stop_for_good(struct tl1_switch *s)
{
	if (!uv_is_closing((uv_handle_t *)&s->h.timer)) {
		base_stopped(&s->h);
	}
}

static void on_log_out_late(uv_timer_t *t)
{
	stop_for_good(t->data);
}

/* Logs out if that can be done in passing: a device may hold sessions of
 * users who just left, and have few of them. */
void tl1_stop(struct driver_base *h)
{
	struct tl1_switch *s = (struct tl1_switch *)h;
	struct tl1_command c;

	uv_timer_stop(&s->h.timer);
	if (!s->user[0] || !logged_in(s) || tcp_open_requests(s->h.session)) {
		stop_for_good(s);
		return;
	}
	s->phase = TL1_LOGGING_OUT;
	tl1_command(&c, "CANC-USER", s->user, "");
	send_command(s, &c);
	uv_timer_start(&s->h.timer, on_log_out_late, LOG_OUT_MS, 0);
}

const struct tcp_conf tl1_session = {
	.max_frame = TL1_MAX_FRAME,
	.terminal = TERMINAL_LINES,
	.frame = tl1_frame,
	.judge = judge,
	.reply = on_reply,
	.failed = on_failed,
	.trace = on_trace,
};
