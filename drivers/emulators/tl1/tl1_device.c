/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of TL1: commands are taken apart, log-in, target names and
 * tags are checked, answers framed and paged, reports sent to all sessions.
 * What a verb does is the vendor's table.
 *
 * Reconstructed, since never seen from an optical switch: a page that is not
 * the last ends in `>`, denial codes where a vendor's are not known, and who
 * may log in (here every user whose password begins with the user's name).
 */
#include "drivers/emulators/tl1/tl1_device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"

/* ---- answers ------------------------------------------------------------- */

void tl1_put_line(struct tl1_device *d, const char *fmt, ...)
{
	struct buf line = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&line, fmt, ap);
	va_end(ap);
	vec_push(&d->lines, buf_steal(&line));
}

const char *tl1_deny(struct tl1_device *d, const char *code, const char *remark)
{
	snprintf(d->remark, sizeof(d->remark), "%s", remark);
	return code;
}

static void forget_lines(struct tl1_device *d)
{
	for (size_t i = 0; i < d->lines.n; i++) {
		free(d->lines.v[i]);
	}
	d->lines.n = 0;
	d->remark[0] = '\0';
}

/* The lines in front of every message: the device's name (SID) and the time. */
static void put_header(const struct tl1_device *d, struct buf *out)
{
	time_t now = time(NULL);
	char when[32];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%y-%m-%d %H:%M:%S", &tm);
	buf_printf(out, "\r\n\n   %s %s\r\n",
		   emu_form_is(d->e, "unnamed") ? "( nil )" : d->e->conf.name, when);
}

/* An autonomous report in front of a page, as equipment alarms come at any
 * time. Its text has the marks of TL1's grammar in quotes, which a driver must
 * not take for its own. */
static void put_report(struct tl1_device *d, struct buf *out)
{
	if (faults_hold(&d->e->faults, FAULT_AUTONOMOUS, NULL)) {
		put_header(d, out);
		buf_printf(out, "*C %llu REPT ALM EQPT\r\n   \"FAN-1:MJ,TEMP,"
			   "NSA:\\\"fan; too slow\\\"\"\r\n;",
			   (unsigned long long)++d->n_reports);
	}
}

/* A line of the answer: in quotes; without them; or in quotes of their own for
 * every attribute, or in quotes that stay open from line to line. */
static void put_quoted(const struct tl1_device *d, const char *line, struct buf *out)
{
	bool each = emu_form_is(d->e, "attributes"), open = emu_form_is(d->e, "multicast");
	bool value = false;

	if (emu_form_is(d->e, "unquoted")) {
		buf_printf(out, "   %s\r\n", line);
		return;
	}
	buf_str(out, "   \"");
	for (; *line; line++) {
		value = *line == '"' ? !value : value;
		if (*line == ',' && !value && each) {
			buf_str(out, "\"\r\n   \"GGN:");
		} else if (*line == ',' && !value && open) {
			buf_str(out, ",\r\n    ");
		} else {
			buf_str(out, *line == '"' ? "\\" : "");
			buf_char(out, *line);
		}
	}
	buf_str(out, "\"\r\n");
}

static void put_page(struct tl1_device *d, const char *tag, size_t first,
		     size_t end, struct buf *out)
{
	put_report(d, out);
	put_header(d, out);
	buf_printf(out, "M  %s COMPLD\r\n", tag);
	if (emu_form_is(d->e, "unquoted")) {
		buf_str(out, "   /* NOTICE: authorised users\r\n   only; see the manual */\r\n");
	}
	for (size_t i = first; i < end; i++) {
		put_quoted(d, d->lines.v[i], out);
	}
	buf_char(out, end < d->lines.n ? '>' : ';');
}

/* The lines in pages of the vendor's length, or a denial with its code and
 * remark. */
static void put_answer(struct tl1_device *d, const char *tag, const char *code, struct buf *out)
{
	int64_t page = d->vendor->page;
	size_t at = 0, n = d->lines.n;

	faults_hold(&d->e->faults, FAULT_PAGE, &page);
	if (code) {
		put_report(d, out);
		put_header(d, out);
		buf_printf(out, "M  %s DENY\r\n   %s\r\n", tag, code);
		if (d->remark[0]) {
			buf_printf(out, "   /* %s */\r\n", d->remark);
		}
		buf_char(out, ';');
	} else {
		do {
			size_t end = page > 0 && n - at > (size_t)page ? at + (size_t)page : n;

			put_page(d, tag, at, end, out);
			at = end;
		} while (at < n);
	}
	buf_printf(out, "\r\n%s", emu_prompt(d->e, d->vendor->prompt));
}

/* ---- circuits ------------------------------------------------------------ */

const char *tl1_obstacle(struct tl1_device *d, struct optics_xc xc)
{
	const struct xc_map *m = &d->e->mem;
	struct optics_xc other;

	if (xc_map_check(m, xc, NULL)) {
		return tl1_deny(d, "IIAC", "no such port");
	}
	if (emu_holds_xc(d->e, FAULT_PORT_FAILED, xc)) {
		return tl1_deny(d, "SWFA", "port has failed");
	}
	if (emu_holds_xc(d->e, FAULT_PORT_DISABLED, xc) || d->disabled[xc_map_flat_in(m, xc.in)] ||
	    d->disabled[xc_map_flat_out(m, xc.out)]) {
		return tl1_deny(d, "SNVS", "port is disabled");
	}
	if (emu_holds_xc(d->e, FAULT_REFUSE_PORT, xc)) {
		return tl1_deny(d, "SROF", "");
	}
	if (emu_holds_xc(d->e, FAULT_BUSY, xc)) {
		return tl1_deny(d, "SARB", "port is in use");
	}
	if (faults_strike(&d->e->faults, FAULT_RACE, NULL)) {
		xc_map_connect(&d->e->mem, xc);
		emu_changed(d->e);
	}
	if (xc_map_has(m, xc)) {
		return tl1_deny(d, "SROU", "connected already");
	}
	if (xc_map_conflict(m, xc, &other)) {
		return tl1_deny(d, "SARB", "port is in use");
	}
	return NULL;
}

void tl1_connect(struct tl1_device *d, struct optics_xc xc)
{
	if (!emu_holds_xc(d->e, FAULT_IGNORE_PORT, xc)) {
		xc_map_connect(&d->e->mem, xc);
		d->made_ns[xc.in] = clk_now_ns();
		emu_changed(d->e);
	}
}

/* ---- commands ------------------------------------------------------------ */

/* Cuts the next field off; an absent one is "". Colons in quotes are text. */
static char *next_field(char **rest)
{
	char *field = *rest, *p = field;
	bool quoted = false;

	for (; *p && (quoted || *p != ':'); p++) {
		quoted ^= *p == '"';
	}
	*rest = *p ? p + 1 : p;
	*p = '\0';
	return field;
}

static char *without_quotes(char *s)
{
	size_t n = strlen(s);

	if (n >= 2 && s[0] == '"' && s[n - 1] == '"') {
		s[n - 1] = '\0';
		s++;
	}
	return s;
}

static void take_apart(char *command, struct tl1_request *q)
{
	char *rest = command;

	q->verb = next_field(&rest);
	q->tid = without_quotes(next_field(&rest));
	q->aid = next_field(&rest);
	q->tag = next_field(&rest);
	q->general = next_field(&rest);
	q->payload = rest;
}

/* The log-in here: the password begins with the user's name. A denial quotes what was given.
 * A session that is logged in already is denied. */
static const char *log_in(struct tl1_device *d, int64_t *session)
{
	const struct tl1_request *q = &d->request;
	char remark[sizeof(d->remark)];

	if (!q->aid[0] || strncmp(q->payload, q->aid, strlen(q->aid)) != 0) {
		snprintf(remark, sizeof(remark), "wrong user or password: %.60s", q->payload);
		return tl1_deny(d, "PIUI", remark);
	}
	if (*session) {
		return tl1_deny(d, "SROU", "Already logged in");
	}
	*session = 1;
	tl1_put_line(d, "%s:%s", q->aid, q->aid);
	return NULL;
}

static const struct tl1_verb *find_verb(const struct tl1_device *d, const char *name)
{
	const struct tl1_verb *v = d->vendor->verbs;

	while (v->name && strcasecmp(v->name, name) != 0) {
		v++;
	}
	return v->name ? v : NULL;
}

/* Checks the verb, the log-in and the target name, in this order. A target
 * name may be left out unless the fault demands it. */
static const char *run_verb(struct tl1_device *d, struct emu_client *c, enum emu_fate *fate)
{
	const struct tl1_verb *v = find_verb(d, d->request.verb);
	const char *tid = d->request.tid;

	if (!v) {
		return tl1_deny(d, "IICM", "Input, Invalid Command");
	}
	if (!*emu_client_mark(c)) {
		return tl1_deny(d, "PIUI", "Login Not Active");
	}
	if (tid[0] ? strcmp(tid, d->e->conf.name) != 0 :
		     faults_hold(&d->e->faults, FAULT_TID_REQUIRED, NULL)) {
		return tl1_deny(d, "IITA", "");
	}
	if (v->set) {
		*fate = emu_set_command(c);
	}
	return *fate == EMU_EAT ? NULL : v->run(d);
}

/* Circuits of a session's own commands are not reported; only another user's
 * are. */
static void keep_known(struct tl1_device *d)
{
	xc_map_copy(&d->known, &d->e->mem);
}

/* The mark of a session is 1 while its user is logged in. */
static void run_command(struct emu_client *c, char *command)
{
	struct tl1_device *d = emu_of(c)->device;
	int64_t *session = emu_client_mark(c);
	const struct tl1_request *q = &d->request;
	enum emu_fate fate = EMU_DO;
	const char *code = NULL;
	struct buf out = { 0 };

	take_apart(command + strspn(command, " \t\r\n"), &d->request);
	forget_lines(d);
	d->e->n_commands++;
	if (faults_strike(&d->e->faults, FAULT_LOG_OUT, NULL)) {
		*session = 0;
	}
	if (strcasecmp(q->verb, "ACT-USER") == 0) {
		code = log_in(d, session);
	} else if (strcasecmp(q->verb, "CANC-USER") == 0) {
		*session = 0;
	} else if (strcasecmp(q->verb, "RTRV-HDR") != 0) {
		code = run_verb(d, c, &fate);
	}
	if (faults_strike(&d->e->faults, FAULT_WRONG_CTAG, NULL)) {
		put_answer(d, "987654321", code, &out);
	} else {
		put_answer(d, q->tag[0] ? q->tag : "0", code, &out);
	}
	keep_known(d);
	emu_finish_command(c, fate, &out);
}

int64_t tl1_emu_input(struct emu_client *c, const uint8_t *data, size_t len)
{
	return emu_take_command(c, data, len, ";", run_command);
}

/* ---- life ---------------------------------------------------------------- */

void tl1_emu_close(struct emu *e)
{
	struct tl1_device *d = e->device;

	forget_lines(d);
	vec_fini(&d->lines);
	free(d->disabled);
	free(d->entered);
	free(d->failed);
	free(d->made_ns);
	xc_map_fini(&d->known);
	free(d);
}

void tl1_emu_open(struct emu *e)
{
	struct tl1_device *d = x_new(1, sizeof(*d));
	const struct xc_map *m = &e->mem;
	size_t n = (size_t)m->n_ports;

	e->device = d;
	d->e = e;
	d->vendor = e->dialect->table;
	d->disabled = x_new(n, sizeof(bool));
	d->entered = x_new(n, sizeof(*d->entered));
	d->failed = x_new(n, sizeof(bool));
	d->made_ns = x_new((size_t)m->n_in, sizeof(int64_t));
	xc_map_init(&d->known, DRV_SPACE, m->n_in, m->n_out, m->any_to_any);
	xc_map_copy(&d->known, m);
}

/* One report to all sessions: its head, and a line about a port. */
static void report(struct tl1_device *d, const char *head, int flat, const char *what)
{
	struct buf out = { 0 };
	char port[32];

	d->vendor->port(d->e, flat, port, sizeof(port));
	put_header(d, &out);
	buf_printf(&out, "%s\r\n   \"%s:%s\"\r\n;\r\n%s", head, port, what,
		   emu_prompt(d->e, d->vendor->prompt));
	emu_send_event(d->e, out.data, out.len);
	buf_fini(&out);
}

/* Reconstructed, but for the form of reports in general. */
static void report_change(struct optics_xc xc, bool connect, void *arg)
{
	struct tl1_device *d = arg;
	const struct xc_map *m = &d->e->mem;
	char head[48], what[64], out[32];

	d->vendor->port(d->e, xc_map_flat_out(m, xc.out), out, sizeof(out));
	snprintf(head, sizeof(head), "A  %llu REPT EVT CRS", (unsigned long long)++d->n_reports);
	snprintf(what, sizeof(what), "%s,NSA:\\\"%s %s by noc\\\"",
		 connect ? "CONNECTED" : "DISCONNECTED",
		 connect ? "to" : "from", out);
	report(d, head, xc_map_flat_in(m, xc.in), what);
}

/* A port that fails raises an alarm, and clears it when the fault ends; each
 * once. */
static void report_failures(struct tl1_device *d)
{
	char head[48];

	for (int i = 0; i < d->e->mem.n_ports; i++) {
		bool bad = faults_hold_port(&d->e->faults, FAULT_PORT_FAILED, i);

		if (bad != d->failed[i]) {
			snprintf(head, sizeof(head), "%s %llu REPT ALM EQPT",
				 bad ? "*C" : "A ",
				 (unsigned long long)++d->n_reports);
			report(d, head, i, bad ? "CR,PORTFAIL,SA" : "CL,PORTFAIL,NSA");
		}
		d->failed[i] = bad;
	}
}

bool tl1_emu_dark(struct emu *e, struct optics_xc xc)
{
	struct tl1_device *d = e->device;

	return emu_holds_xc(d->e, FAULT_CONN_FAILED, xc) ||
	       emu_holds_xc(d->e, FAULT_PORT_DISABLED, xc) ||
	       d->disabled[xc_map_flat_in(&e->mem, xc.in)] ||
	       d->disabled[xc_map_flat_out(&e->mem, xc.out)];
}

void tl1_emu_refresh(struct emu *e, enum emu_map_event event)
{
	struct tl1_device *d = e->device;

	if (event == EMU_RESTARTED) {
		d->n_entered = 0;
		memset(d->disabled, 0, (size_t)e->mem.n_ports * sizeof(bool));
	} else if (event == EMU_OTHER_USER) {
		xc_map_changes(&d->known, &e->mem, report_change, d);
		report_failures(d);
	}
	keep_known(d);
}
