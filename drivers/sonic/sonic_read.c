/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sonic-ocs`: a shell session, and the tables that are read in it.
 *
 * A command goes out with a trailer that prints a tag and its exit status, so
 * that an answer can be distinguished from the answers before it. The table `reads` says
 * what is asked in which order and for which operation, in the words of either
 * CLI that such switches have; the two tables of circuits come last, since a
 * batch needs only them. Which CLI it is a session's first answer tells.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/parse.h"
#include "drivers/sonic/sonic.h"
#include "lib/base/alloc.h"

#define DEFAULT_TIMEOUT_MS 10000
/* A terminal's echo and prompt would stand among the answers. */
#define SET_UP "stty -echo; PS1=; PROMPT_COMMAND=; LC_ALL=C; export LC_ALL"
/* Lines of one answer that a trace shows. */
#define TRACED_LINES 64

/* ---- questions and answers ----------------------------------------------- */

static void put_question(struct sonic *s, const char *command, struct buf *line)
{
	buf_printf(line, "%s{ %s; } 2>&1; echo " SONIC_END "%" PRIu64 ":$?", line->len ? "; " : "",
		   command, ++s->tag);
}

void sonic_ask(struct sonic *s, const char *command, void (*next)(struct sonic *, char *, int))
{
	struct buf b = { 0 };

	s->next = next;
	put_question(s, command, &b);
	buf_char(&b, '\n');
	base_ask(&s->h, &b, s->tag);
}

static enum tcp_verdict judge(const uint8_t *frame, size_t len, bool waiting,
			      uint64_t tag, void *arg)
{
	struct sonic *s = arg;
	size_t text_len;
	uint64_t its;
	int status;

	if (sonic_parse_end(frame, len, &text_len, &its, &status, NULL)) {
		return TCP_NONSENSE;
	}
	if (waiting && its == tag) {
		return TCP_REPLY;
	}
	/* One of ours from before came twice. */
	return its > 0 && its < s->tag ? TCP_IGNORE : TCP_NONSENSE;
}

static void on_reply(const uint8_t *frame, size_t len, uint64_t tag, void *arg)
{
	struct sonic *s = arg;
	struct err err = { 0 };
	size_t text_len;
	uint64_t its;
	int status;
	int rc = sonic_parse_end(frame, len, &text_len, &its, &status, &err);
	char *text;

	(void)tag;
	if (rc) {
		base_misunderstood(&s->h, rc, &err);
		return;
	}
	text = x_ndup((const char *)frame, text_len);
	if (s->h.op != BASE_IDLE) {
		s->next(s, text, status);
	}
	free(text);
}

/* The commands of a line without what frames them. */
static void trace_questions(struct sonic *s, char *line)
{
	char *end;

	while ((end = strstr(line, "; } 2>&1; echo " SONIC_END))) {
		*end = '\0';
		base_trace(&s->h, line + strlen("{ "), false);
		line = end + 1;
		line += strcspn(line, "{");
	}
}

/* Commands, or the lines of an answer. */
static void on_trace(const uint8_t *bytes, size_t len, bool is_reply, void *arg)
{
	struct sonic *s = arg;
	char *text = s->h.drv.trace ? x_ndup((const char *)bytes, len) : NULL;
	char *rest = text, *line;

	for (int n = 0; (line = parse_line(&rest)) && n < TRACED_LINES; n++) {
		if (!is_reply) {
			trace_questions(s, line);
		} else if (strncmp(line, SONIC_END, strlen(SONIC_END)) != 0) {
			base_trace(&s->h, line, true);
		}
	}
	if (rest && *rest) {
		base_trace(&s->h, "(and more lines)", is_reply);
	}
	free(text);
}

/* ---- reading ------------------------------------------------------------- */

/* A line of an answer; WEFT_EDEVICE ends the operation. */
typedef int (*line_fn)(struct sonic *s, char *line, struct err *err);

/* `Serial Number: X`: the rest of the line, or NULL. */
static const char *after_name(const char *line, const char *name)
{
	size_t n = strlen(name);

	if (strncmp(line, name, n) != 0 || line[n] != ':') {
		return NULL;
	}
	line += n + 1;
	return line + strspn(line, " ");
}

static int read_version(struct sonic *s, char *line, struct err *err)
{
	static const char *const names[] = { "SONiC Software Version", "HwSKU",
					     "Serial Number" };
	(void)err;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = after_name(line, names[i]);

		if (value) {
			base_identify(&s->h, value);
		}
	}
	return 0;
}

static int read_boot(struct sonic *s, char *line, struct err *err)
{
	if (strspn(line, "0123456789abcdef-") != strlen(line)) {
		return err_set(err, WEFT_EDEVICE, "expected a boot identity, "
			       "the device said '%.40s'", line);
	}
	if (line[0]) {
		snprintf(s->h.snap.epoch, sizeof(s->h.snap.epoch), "%s", line);
	}
	return 0;
}

static int read_port_config(struct sonic *s, char *line, struct err *err)
{
	const char *word;
	struct drv_port *port;
	bool is_out;
	int index, rc = sonic_parse_port(line, &is_out, &index, &word, err);

	if (rc <= 0) {
		return rc;
	}
	s->n_in += !is_out;
	s->n_out += is_out;
	if (s->h.op == BASE_SUBMIT || strcmp(word, "normal") == 0 || strcmp(word, "N/A") == 0) {
		return 0;
	}
	port = base_port(&s->h, is_out, index, err);
	if (!port) {
		return err->code;
	}
	port->enabled = false;
	return 0;
}

static int read_port_status(struct sonic *s, char *line, struct err *err)
{
	const char *word;
	struct drv_port *port;
	bool is_out;
	int index, rc = sonic_parse_port(line, &is_out, &index, &word, err);

	if (rc <= 0 || strcmp(word, drv_state_name(DRV_FAILED)) != 0) {
		return rc < 0 ? rc : 0;
	}
	port = base_port(&s->h, is_out, index, err);
	if (!port) {
		return err->code;
	}
	port->failed = true;
	return 0;
}

struct sonic_xc *sonic_find_xc(const struct sonic *s, struct optics_xc xc)
{
	for (size_t i = 0; i < s->xcs.n; i++) {
		if (optics_xc_cmp(&s->xcs.v[i].xc, &xc) == 0) {
			return &s->xcs.v[i];
		}
	}
	return NULL;
}

static int read_config(struct sonic *s, char *line, struct err *err)
{
	struct sonic_xc x = { .state = DRV_BLOCKED, .configured = true };
	int rc = sonic_parse_config(line, &x.xc, err);

	if (rc <= 0) {
		return rc;
	}
	/* A CLI made from YANG takes two for one port, and calls one of them invalid. */
	if (!xc_map_take(&s->map, x.xc) &&
	    (!s->yang || xc_map_check(&s->map, x.xc, NULL) || sonic_find_xc(s, x.xc))) {
		return err_set(err, WEFT_EDEVICE, "the configuration holds "
			       "%d-%d, which cannot be", x.xc.in, x.xc.out);
	}
	vec_push(&s->xcs, x);
	return 0;
}

static int read_status(struct sonic *s, char *line, struct err *err)
{
	struct sonic_xc x = { .seen = true }, *known;
	struct optics_xc other;
	int rc = sonic_parse_status(line, &x.xc, &x.state, err);

	if (rc <= 0) {
		return rc;
	}
	if (xc_map_check(&s->map, x.xc, err)) {
		err->code = WEFT_EDEVICE;
		return WEFT_EDEVICE;
	}
	known = sonic_find_xc(s, x.xc);
	if (known) {
		known->seen = true;
		known->state = x.state;
		if (known->configured && x.state == DRV_TUNED) {
			xc_map_connect(&s->map, x.xc);
		}
		return 0;
	}
	/* Two of them may share a port, and the configuration comes first:
	 * the map has room for one. */
	if (!xc_map_conflict(&s->map, x.xc, &other)) {
		xc_map_connect(&s->map, x.xc);
	}
	vec_push(&s->xcs, x);
	return 0;
}

static int read_loss(struct sonic *s, char *line, struct err *err)
{
	struct optics_xc xc;
	int32_t loss;
	int rc = sonic_parse_loss(line, &xc, &loss, err);

	if (rc > 0 && xc.in < s->h.n_in && xc.out < s->h.n_out) {
		s->losses[xc.in * s->h.n_out + xc.out] = loss;
	}
	return rc < 0 ? rc : 0;
}

enum when { ALWAYS, SNAPSHOT, LOSSES, PORTS };

/* Whether a table's command may fail: the hardware's tables are generated apart. */
enum form { TEXT, TABLE, HARDWARE };

#define BOOT_ID "cat /proc/sys/kernel/random/boot_id"

/* In this order; the map last of what a batch needs. */
static const struct {
	const char *command[2];	/* the other of a CLI made from YANG; NULL: it has none */
	enum when when;
	line_fn line;
	enum form form;	/* of tables only rows are taken */
} reads[] = {
	{ { "show version", "show version" }, SNAPSHOT, read_version, TEXT },
	{ { BOOT_ID, BOOT_ID }, SNAPSHOT, read_boot, TEXT },
	{ { "show ocs port config", "show ocs-port" }, PORTS, read_port_config, TABLE },
	{ { "show ocs port status", "show ocs-port-table" }, SNAPSHOT, read_port_status, HARDWARE },
	{ { "show ocs factory-insertion-loss", NULL }, LOSSES, read_loss, TABLE },
	{ { "show ocs cross-connect config", "show ocs-cross-connect" }, ALWAYS, read_config,
	  TABLE },
	{ { "show ocs cross-connect status", "show ocs-cross-connect-table" }, ALWAYS,
	  read_status, HARDWARE },
};

#define N_READS ((int)(sizeof(reads) / sizeof(reads[0])))
#define READ_CONFIG (N_READS - 2)

static const char *command_of(const struct sonic *s, int i)
{
	return reads[i].command[s->yang];
}

static bool is_fresh(const struct sonic *s)
{
	return !tcp_connected(s->h.session) || s->ready_session != tcp_sessions(s->h.session);
}

static bool wanted(const struct sonic *s, int i)
{
	bool snapshot = s->h.op == BASE_SNAPSHOT;

	switch (reads[i].when) {
	case SNAPSHOT:
		return snapshot;
	case PORTS:
		return is_fresh(s) || s->h.op != BASE_SUBMIT;
	case LOSSES:
		return snapshot && s->want_losses && !s->losses && command_of(s, i);
	case ALWAYS:
		break;
	}
	return s->h.op != BASE_PORT;
}

static void next_read(struct sonic *s);

/* Warnings of the shell and the like among the rows. */
static void note_other(struct sonic *s, const char *line)
{
	if (!sonic_is_heading(line)) {
		base_note(&s->h, "'%s': passed over '%.100s'", command_of(s, s->at_read), line);
	}
}

static int take_lines(struct sonic *s, char *text, struct err *err)
{
	line_fn take = reads[s->at_read].line;
	char *rest = text, *line;
	int rc = 0;

	while (rc == 0 && (line = parse_line(&rest))) {
		if (reads[s->at_read].form != TEXT && !sonic_is_row(line)) {
			note_other(s, line);
		} else {
			rc = take(s, line, err);
		}
	}
	if (rc == 0 && take == read_port_config) {
		rc = base_check_size(&s->h, s->n_in, s->n_out, err);
		s->ready_session = rc ? 0 : tcp_sessions(s->h.session);
	}
	return rc;
}

static void on_read(struct sonic *s, char *text, int status)
{
	struct err err = { 0 };
	char words[DRV_TEXT_MAX];
	int rc = 0;

	parse_first_line(text, words, sizeof(words));
	if (status && !(s->yang && reads[s->at_read].form == HARDWARE)) {
		rc = err_set(&err, WEFT_EDEVICE, "'%s' ended with status %d: "
			     "%s", command_of(s, s->at_read), status, words);
	}
	if (rc || (rc = take_lines(s, text, &err))) {
		base_misunderstood(&s->h, rc, &err);
		return;
	}
	s->at_read++;
	next_read(s);
}

static void prepare_losses(struct sonic *s)
{
	size_t n = (size_t)s->h.n_in * (size_t)s->h.n_out;

	s->losses = x_alloc(n, sizeof(*s->losses));
	for (size_t i = 0; i < n; i++) {
		s->losses[i] = -1;
	}
}

/* Waits for the next answer of those that are to come. */
static void next_read(struct sonic *s)
{
	while (s->at_read < N_READS && !(s->asked & 1u << s->at_read)) {
		s->at_read++;
	}
	if (s->at_read == N_READS) {
		s->after_reads(s);
	}
}

/* All from at_read on in one line: a pause between any two would be most of a reading's time. */
static void ask_tables(struct sonic *s)
{
	const uint64_t first = s->tag + 1;
	struct buf b = { 0 };

	s->asked = 0;
	for (int i = s->at_read; i < N_READS; i++) {
		if (!wanted(s, i)) {
			continue;
		}
		s->asked |= 1u << i;
		put_question(s, command_of(s, i), &b);
		if (reads[i].when == LOSSES) {
			prepare_losses(s);
		}
	}
	buf_char(&b, '\n');
	xc_map_clear(&s->map);
	s->xcs.n = 0;
	s->n_in = s->n_out = 0;
	s->next = on_read;
	base_ask(&s->h, &b, first);
	for (uint64_t tag = first + 1; tag <= s->tag; tag++) {
		base_expect(&s->h, tag);
	}
	next_read(s);
}

/* A shell without a terminal has no echo to turn off, so the status says nothing.
 * Only a CLI made from YANG has a table `ocs-port`. */
static void on_set_up(struct sonic *s, char *text, int status)
{
	char *rest = text, *line;
	const char *word;
	bool is_out;
	int index;

	(void)status;
	s->yang = s->yang && !s->asked_yang;
	while (s->asked_yang && !s->yang && (line = parse_line(&rest))) {
		s->yang = sonic_parse_port(line, &is_out, &index, &word, NULL) > 0;
	}
	ask_tables(s);
}

void sonic_start_reads(struct sonic *s, enum sonic_reads what, void (*after)(struct sonic *))
{
	s->after_reads = after;
	s->at_read = what == SONIC_READ_MAP ? READ_CONFIG : 0;
	if (what == SONIC_READ_MAP) {
		ask_tables(s);
	} else {
		/* Asked each time: should the session have died, this is the first
		 * question of a new one. */
		s->asked_yang = is_fresh(s);
		sonic_ask(s, s->asked_yang ? SET_UP "; show ocs-port" : SET_UP, on_set_up);
	}
}

const char *sonic_map_command(const struct sonic *s, int i)
{
	return command_of(s, READ_CONFIG + i);
}

const struct tcp_conf sonic_session = {
	.timeout_ms = DEFAULT_TIMEOUT_MS,
	.window = N_READS,
	.max_frame = SONIC_MAX_FRAME,
	.terminal = TERMINAL_SHELL,
	.frame = sonic_frame,
	.judge = judge,
	.reply = on_reply,
	.trace = on_trace,
};
