/*
 * `sonic-ocs`: optical circuit switches that run SONiC, over their command
 * line: a shell session on a byte stream.
 *
 * The device keeps two tables, what is configured and what its hardware does.
 * A circuit is configured and becomes tuning, then tuned or failed; one may
 * be configured and not in the hardware's table at all (`blocked` here), or
 * left in the hardware after it was taken out of the configuration (`stale`).
 * A stale one cannot be deleted as such: it is added and deleted again.
 *
 * The modes are the device's own (safe, update, overwrite), but the map is
 * read before a batch and SAFE is kept here as well, so that the victim is
 * named. `overwrite` is a bulk of removes and creates that may stop half way,
 * so it does not count as atomic.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/batch.h"
#include "drivers/devmem.h"
#include "drivers/drivers.h"
#include "drivers/handle.h"
#include "drivers/line.h"
#include "drivers/sonic.h"
#include "lib/base/buf.h"
#include "lib/base/clk.h"
#include "lib/base/vec.h"

#define DEFAULT_TIMEOUT_MS 10000
#define TYP_SWITCH_US 100000
#define STALE "stale"
/* Lines of one answer that a trace shows. */
#define TRACED_LINES 64
/* The table of factory losses is read for switches up to this many pairs. */
#define MAX_LOSSES (384 * 384)

static const struct drv_option_spec options[] = {
	{ "gap_ms", "least time between two commands", "20" },
	{ "chunk", "most circuits in one command", "32" },
	{ "settle_ms", "wait before a read-back", "200" },
	{ "tune_ms", "longest wait for circuits to be tuned", "5000" },
	{ "sudo", "what runs config commands: sudo or nothing", "sudo" },
	{ "factory_loss", "read the table of factory losses: yes or no",
	  "yes" },
	{ NULL, NULL, NULL },
};

struct sonic_xc {
	struct light_xc xc;
	enum drv_state state;
	bool configured, seen;	/* in either table */
};

typedef VEC(struct sonic_xc) sonic_xcs;

struct sonic {
	struct handle h;
	int64_t gap_ms, chunk, settle_ms, tune_ms;
	char sudo[8];
	bool want_losses;
	int32_t *losses;	/* [in * n_out + out], -1: not known */
	uint64_t tag;
	uint64_t ready_session;	/* the shell is set up, the size right */
	void (*next)(struct sonic *s, char *text, int status);
	int at_read;
	void (*after_reads)(struct sonic *s);
	sonic_xcs xcs;		/* of both tables */
	struct devmem map;
	struct batch batch;
	int n_in, n_out;	/* while counting */
	bool any_add;
	int64_t until_ns;	/* for tuning */
	char code[16], text[DRV_TEXT_MAX];	/* of a command that failed */
};

/* ---- questions and answers ----------------------------------------------- */

static void ask(struct sonic *s, const char *command,
		void (*next)(struct sonic *, char *, int))
{
	struct buf b = { 0 };

	s->next = next;
	buf_printf(&b, "{ %s; } 2>&1; echo " SONIC_END "%" PRIu64 ":$?\n",
		   command, ++s->tag);
	handle_ask(&s->h, &b, s->tag);
}

static enum line_verdict judge(const uint8_t *frame, size_t len, bool waiting,
			       uint64_t tag, void *arg)
{
	struct sonic *s = arg;
	size_t text_len;
	uint64_t its;
	int status;

	if (sonic_parse_end(frame, len, &text_len, &its, &status, NULL)) {
		return LINE_NONSENSE;
	}
	if (waiting && its == tag) {
		return LINE_ANSWER;
	}
	/* One of ours from before came twice. */
	return its > 0 && its < s->tag ? LINE_IGNORE : LINE_NONSENSE;
}

static void on_answer(const uint8_t *frame, size_t len, uint64_t tag, void *arg)
{
	struct sonic *s = arg;
	struct err err = { 0 };
	size_t text_len;
	uint64_t its;
	int status;
	char *text = sonic_parse_end(frame, len, &text_len, &its, &status,
				     NULL) ?
		     NULL : strndup((const char *)frame, text_len);

	(void)tag;
	if (!text) {
		handle_misunderstood(&s->h, err_nomem(&err), &err);
	} else if (s->h.op != HANDLE_IDLE) {
		s->next(s, text, status);
	}
	free(text);
}

/* The command without what frames it, or the lines of an answer. */
static void on_trace(const uint8_t *bytes, size_t len, bool is_reply, void *arg)
{
	struct sonic *s = arg;
	char *text = s->h.drv.trace ? strndup((const char *)bytes, len) : NULL;
	char *rest = text, *line, *end;

	for (int n = 0; (line = sonic_line(&rest)) && n < TRACED_LINES; n++) {
		end = is_reply ? NULL : strstr(line, "; } 2>&1; echo "
					       SONIC_END);
		if (end) {
			*end = '\0';
			line += strlen("{ ");
		}
		if (!is_reply || strncmp(line, SONIC_END,
					 strlen(SONIC_END)) != 0) {
			handle_trace(&s->h, line, is_reply);
		}
	}
	if (rest && *rest) {
		handle_trace(&s->h, "(and more lines)", is_reply);
	}
	free(text);
}

/* The first line of an answer that says something. */
static void first_words(const char *text, char *out, size_t size)
{
	while (isspace((unsigned char)*text)) {
		text++;
	}
	snprintf(out, size, "%.*s", (int)strcspn(text, "\r\n"), text);
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
	char *identity = s->h.snap.identity;
	size_t size = sizeof(s->h.snap.identity), n = strlen(identity);

	(void)err;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = after_name(line, names[i]);

		if (value) {
			snprintf(identity + n, size - n, "%s%s", n ? "," : "",
				 value);
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
	if (s->h.op != HANDLE_SNAPSHOT || strcmp(word, "normal") == 0) {
		return 0;
	}
	port = handle_port(&s->h, is_out, index, err);
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
	port = handle_port(&s->h, is_out, index, err);
	if (!port) {
		return err->code;
	}
	port->failed = true;
	return 0;
}

static struct sonic_xc *find_xc(const struct sonic *s, struct light_xc xc)
{
	for (size_t i = 0; i < s->xcs.n; i++) {
		if (light_xc_cmp(&s->xcs.v[i].xc, &xc) == 0) {
			return &s->xcs.v[i];
		}
	}
	return NULL;
}

static int read_config(struct sonic *s, char *line, struct err *err)
{
	struct sonic_xc x = { .state = DRV_BLOCKED, .configured = true };
	struct light_xc other;
	int rc = sonic_parse_config(line, &x.xc, err);

	if (rc <= 0) {
		return rc;
	}
	if (devmem_check(&s->map, x.xc, NULL) || devmem_has(&s->map, x.xc) ||
	    devmem_victim(&s->map, x.xc, &other)) {
		return err_set(err, WEFT_EDEVICE, "the configuration holds "
			       "%d-%d, which cannot be", x.xc.in, x.xc.out);
	}
	devmem_connect(&s->map, x.xc);
	return vec_push(&s->xcs, x) ? err_nomem(err) : 0;
}

static int read_status(struct sonic *s, char *line, struct err *err)
{
	struct sonic_xc x = { .seen = true }, *known;
	struct light_xc other;
	int rc = sonic_parse_status(line, &x.xc, &x.state, err);

	if (rc <= 0) {
		return rc;
	}
	if (devmem_check(&s->map, x.xc, err)) {
		err->code = WEFT_EDEVICE;
		return WEFT_EDEVICE;
	}
	known = find_xc(s, x.xc);
	if (known) {
		known->seen = true;
		known->state = x.state;
		return 0;
	}
	/* Two of them may share a port, and the configuration comes first:
	 * the map has room for one. */
	if (!devmem_victim(&s->map, x.xc, &other)) {
		devmem_connect(&s->map, x.xc);
	}
	return vec_push(&s->xcs, x) ? err_nomem(err) : 0;
}

static int read_loss(struct sonic *s, char *line, struct err *err)
{
	struct light_xc xc;
	int32_t loss;
	int rc = sonic_parse_loss(line, &xc, &loss, err);

	if (rc > 0 && xc.in < s->h.n_in && xc.out < s->h.n_out) {
		s->losses[xc.in * s->h.n_out + xc.out] = loss;
	}
	return rc < 0 ? rc : 0;
}

enum when { ALWAYS, SNAPSHOT, NEW_SESSION, LOSSES };

/* In this order; the map last of what a batch needs. */
static const struct {
	const char *command;
	enum when when;
	line_fn line;	/* NULL: the output is nobody's business */
} reads[] = {
	/* A terminal's echo and prompt would stand among the answers. */
	{ "stty -echo; PS1=; LC_ALL=C; export LC_ALL", NEW_SESSION, NULL },
	{ "show version", SNAPSHOT, read_version },
	{ "cat /proc/sys/kernel/random/boot_id", SNAPSHOT, read_boot },
	{ "show ocs port config", NEW_SESSION, read_port_config },
	{ "show ocs port status", SNAPSHOT, read_port_status },
	{ "show ocs factory-insertion-loss", LOSSES, read_loss },
	{ "show ocs cross-connect config", ALWAYS, read_config },
	{ "show ocs cross-connect status", ALWAYS, read_status },
};

#define N_READS ((int)(sizeof(reads) / sizeof(reads[0])))
#define READ_STATUS (N_READS - 1)
#define READ_CONFIG (N_READS - 2)

static bool wanted(const struct sonic *s, int i)
{
	bool snapshot = s->h.op == HANDLE_SNAPSHOT;
	bool fresh = !line_connected(s->h.line) ||
		     s->ready_session != line_sessions(s->h.line);

	switch (reads[i].when) {
	case SNAPSHOT:
		return snapshot;
	case NEW_SESSION:
		return fresh || (snapshot && reads[i].line);
	case LOSSES:
		return snapshot && s->want_losses && !s->losses;
	case ALWAYS:
		break;
	}
	return true;
}

static void next_read(struct sonic *s);

static int take_lines(struct sonic *s, char *text, struct err *err)
{
	line_fn take = reads[s->at_read].line;
	char *rest = text, *line;
	int rc = 0;

	while (take && rc == 0 && (line = sonic_line(&rest))) {
		rc = take(s, line, err);
	}
	if (rc == 0 && take == read_port_config) {
		if (s->n_in != s->h.n_in || s->n_out != s->h.n_out) {
			return err_set(err, WEFT_EVERIFY, "the device is "
				       "%dx%d, the fabric says %dx%d", s->n_in,
				       s->n_out, s->h.n_in, s->h.n_out);
		}
		s->ready_session = line_sessions(s->h.line);
	}
	return rc;
}

static void on_read(struct sonic *s, char *text, int status)
{
	struct err err = { 0 };
	char words[DRV_TEXT_MAX];
	int rc = 0;

	first_words(text, words, sizeof(words));
	/* A shell without a terminal has no echo to turn off. */
	if (status && reads[s->at_read].line) {
		rc = err_set(&err, WEFT_EDEVICE, "'%s' ended with status %d: "
			     "%s", reads[s->at_read].command, status, words);
	}
	rc = rc ? rc : take_lines(s, text, &err);
	if (rc) {
		handle_misunderstood(&s->h, rc, &err);
		return;
	}
	s->at_read++;
	next_read(s);
}

static bool prepare_losses(struct sonic *s)
{
	size_t n = (size_t)s->h.n_in * (size_t)s->h.n_out;

	s->losses = malloc(n * sizeof(*s->losses));
	for (size_t i = 0; s->losses && i < n; i++) {
		s->losses[i] = -1;
	}
	return s->losses != NULL;
}

static void next_read(struct sonic *s)
{
	struct err err = { 0 };

	while (s->at_read < N_READS && !wanted(s, s->at_read)) {
		s->at_read++;
	}
	if (s->at_read == N_READS) {
		s->after_reads(s);
		return;
	}
	if (reads[s->at_read].when == LOSSES && !prepare_losses(s)) {
		handle_end(&s->h, err_nomem(&err), &err);
		return;
	}
	if (s->at_read == READ_CONFIG) {
		devmem_clear(&s->map);
		s->xcs.n = 0;
	}
	s->n_in = s->n_out = 0;
	ask(s, reads[s->at_read].command, on_read);
}

static void start_reads(struct sonic *s, int first,
			void (*after)(struct sonic *))
{
	s->at_read = first;
	s->after_reads = after;
	next_read(s);
}

/* ---- snapshot ------------------------------------------------------------ */

static void fill_snapshot(struct sonic *s)
{
	struct drv_snapshot *snap = &s->h.snap;
	struct err err = { 0 };

	snap->xcs = calloc(s->xcs.n + 1, sizeof(*snap->xcs));
	if (!snap->xcs) {
		handle_end(&s->h, err_nomem(&err), &err);
		return;
	}
	for (size_t i = 0; i < s->xcs.n; i++) {
		const struct sonic_xc *x = &s->xcs.v[i];
		struct drv_xc *out = &snap->xcs[snap->n_xcs++];
		int32_t loss = s->losses ?
			s->losses[x->xc.in * s->h.n_out + x->xc.out] : -1;

		out->xc = x->xc;
		out->state = x->state;
		out->has_factory_loss = loss >= 0;
		out->factory_loss_mdb = loss;
		if (!x->configured) {
			snprintf(out->owner, sizeof(out->owner), STALE);
		}
	}
	handle_end(&s->h, 0, NULL);
}

static void sonic_snapshot(struct handle *h)
{
	struct sonic *s = (struct sonic *)h;

	h->snap.caps = (struct drv_caps){
		.kind = DRV_SPACE,
		.numbering = DRV_SPLIT,
		.n_in = h->n_in,
		.n_out = h->n_out,
		.persistence = DRV_PERSIST_AUTOSAVE,
		.min_gap_us = s->gap_ms * 1000,
		.typ_switch_us = TYP_SWITCH_US,
		.settle_us = s->settle_ms * 1000,
	};
	start_reads(s, 0, fill_snapshot);
}

/* ---- submit: commands ---------------------------------------------------- */

static void put_pair(struct buf *b, bool first, struct light_xc xc)
{
	buf_printf(b, "%s%dA-%dB", first ? "" : ",", xc.in + 1, xc.out + 1);
}

static bool shares_port(struct light_xc a, struct light_xc b)
{
	return a.in == b.in || a.out == b.out;
}

static void put_config(const struct sonic *s, struct buf *b)
{
	buf_printf(b, "%s%sconfig ocs cross-connect ", s->sudo,
		   s->sudo[0] ? " " : "");
}

/* A stale circuit that the items first..end-1 run into: by name when they
 * delete, by a port when they add, in any case when they are to be all. */
static bool in_their_way(const struct drv_batch *batch, int first, int end,
			 struct light_xc xc)
{
	bool way = batch->mode == DRV_REPLACE;

	for (int i = first; i < end; i++) {
		const struct drv_item *item = &batch->items[i];
		bool same = light_xc_cmp(&item->xc, &xc) == 0;

		if (same) {
			return item->op == DRV_DEL;
		}
		way = way || (item->op == DRV_ADD &&
			      shares_port(item->xc, xc));
	}
	return way;
}

/* Stale circuits first become configured ones; `delete` of them is part of
 * the command, or comes here before an add. */
static void put_stale(const struct sonic *s, const struct drv_batch *batch,
		      int first, int end, struct buf *b)
{
	bool add = batch->mode == DRV_REPLACE ||
		   (end > first && batch->items[first].op == DRV_ADD);

	for (size_t i = 0; i < s->xcs.n; i++) {
		const struct sonic_xc *x = &s->xcs.v[i];

		if (x->configured ||
		    !in_their_way(batch, first, end, x->xc)) {
			continue;
		}
		put_config(s, b);
		buf_str(b, "add ");
		put_pair(b, true, x->xc);
		buf_str(b, " update && ");
		if (add) {
			put_config(s, b);
			buf_str(b, "delete ");
			put_pair(b, true, x->xc);
			buf_str(b, " && ");
		}
	}
}

static void put_command(const struct sonic *s, const struct drv_batch *batch,
			int first, int end, struct buf *b)
{
	static const char *const modes[] = { " safe", " update",
					     " overwrite" };
	bool add = batch->items[first].op == DRV_ADD;

	put_stale(s, batch, first, end, b);
	put_config(s, b);
	buf_str(b, add ? "add " : "delete ");
	for (int i = first; i < end; i++) {
		put_pair(b, i == first, batch->items[i].xc);
	}
	buf_str(b, add ? modes[batch->mode] : "");
}

static void next_command(struct sonic *s);

/* ---- submit: verdicts ---------------------------------------------------- */

static enum drv_class_of_error class_of(const char *text)
{
	return strcasestr(text, "invalid") || strcasestr(text, "no such") ?
	       DRV_ERR_CONFIGURATION : DRV_ERR_STATE;
}

/* What the tables say about an item that was confirmed. */
static void verify_item(struct sonic *s, int i)
{
	const struct drv_item *item = &s->h.batch->items[i];
	const struct sonic_xc *x = find_xc(s, item->xc);
	struct drv_outcome *o = &s->h.outcomes[i];

	if (o->result != DRV_DONE) {
		return;
	}
	if (item->op == DRV_DEL) {
		o->evidence = x ? o->evidence : DRV_READ_BACK;
	} else if (x && x->state == DRV_TUNED) {
		o->evidence = DRV_READ_BACK;
	} else if (x) {
		handle_mark(&s->h, i, i + 1, DRV_DONE, x->state == DRV_FAILED ?
			    DRV_READ_BACK : DRV_ACKED, DRV_ERR_TRAFFIC, NULL,
			    x->seen ? drv_state_name(x->state) :
			    "configured, and not in the hardware's table");
	}
}

static void verify_later(struct sonic *s);

static void verify_items(struct sonic *s)
{
	for (int i = 0; i < s->h.n_outcomes; i++) {
		const struct sonic_xc *x =
			find_xc(s, s->h.batch->items[i].xc);

		if (s->h.outcomes[i].result == DRV_DONE && x &&
		    x->state == DRV_TUNING && clk_now_ns() < s->until_ns) {
			verify_later(s);
			return;
		}
	}
	for (int i = 0; i < s->h.n_outcomes; i++) {
		verify_item(s, i);
	}
	handle_end(&s->h, 0, NULL);
}

static void on_verify(uv_timer_t *t)
{
	start_reads(t->data, READ_CONFIG, verify_items);
}

static void verify_later(struct sonic *s)
{
	uv_timer_start(&s->h.timer, on_verify, (uint64_t)s->settle_ms, 0);
}

static void end_batch(struct sonic *s)
{
	if (s->any_add) {
		s->until_ns = clk_now_ns() + s->tune_ms * 1000000;
		verify_later(s);
	} else {
		handle_end(&s->h, 0, NULL);
	}
}

/* A stale circuit that is asked for is not as asked: it goes to the
 * configuration like any other. */
static void forget_wanted_stale(struct sonic *s)
{
	for (int i = 0; i < s->h.batch->n_items; i++) {
		const struct drv_item *item = &s->h.batch->items[i];
		const struct sonic_xc *x = find_xc(s, item->xc);

		if (x && !x->configured && item->op == DRV_ADD &&
		    devmem_has(&s->map, x->xc)) {
			devmem_release(&s->map, x->xc.in);
		}
	}
}

/* A list is refused as a whole for one item's sake: from here on each goes
 * alone, and the one in the wrong is found. */
static void one_by_one(struct sonic *s)
{
	handle_mark(&s->h, s->batch.first, s->batch.end, DRV_SKIPPED, DRV_SENT,
		    DRV_ERR_NONE, NULL, "not sent");
	s->batch.end = s->batch.first;
	s->batch.chunk = 1;
	forget_wanted_stale(s);
	next_command(s);
}

static void after_failure(struct sonic *s)
{
	if (s->batch.end - s->batch.first > 1 &&
	    s->h.batch->mode != DRV_REPLACE) {
		one_by_one(s);
		return;
	}
	if (batch_read_back(&s->batch, class_of(s->text), s->code, s->text) &&
	    s->h.batch->mode != DRV_REPLACE) {
		next_command(s);
	} else {
		end_batch(s);
	}
}

static void on_settled(uv_timer_t *t)
{
	start_reads(t->data, READ_CONFIG, after_failure);
}

static void on_set(struct sonic *s, char *text, int status)
{
	if (status == 0 && strstr(text, "succeeded")) {
		batch_done(&s->batch);
		if (s->h.batch->mode == DRV_REPLACE) {
			end_batch(s);
		} else {
			next_command(s);
		}
		return;
	}
	snprintf(s->code, sizeof(s->code), "status %d", status);
	first_words(text, s->text, sizeof(s->text));
	uv_timer_start(&s->h.timer, on_settled, (uint64_t)s->settle_ms, 0);
}

static void send_command(struct sonic *s)
{
	const struct drv_batch *batch = s->h.batch;
	struct buf b = { 0 };

	s->any_add = s->any_add ||
		     batch->items[s->batch.first].op == DRV_ADD;
	put_command(s, batch, s->batch.first, s->batch.end, &b);
	for (size_t i = 0; i < s->xcs.n; i++) {
		/* Cleared once; its ports may be in use afterwards. */
		s->xcs.v[i].configured = s->xcs.v[i].configured ||
			in_their_way(batch, s->batch.first, s->batch.end,
				     s->xcs.v[i].xc);
	}
	ask(s, buf_cstr(&b), on_set);
	buf_fini(&b);
}

static void next_command(struct sonic *s)
{
	if (batch_next(&s->batch)) {
		send_command(s);
	} else {
		end_batch(s);
	}
}

/* ---- submit -------------------------------------------------------------- */

static void on_cleared(struct sonic *s, char *text, int status)
{
	struct err err = { 0 };
	char words[DRV_TEXT_MAX];

	first_words(text, words, sizeof(words));
	if (status) {
		err_set(&err, WEFT_EDEVICE, "%s: status %d: %s",
			s->h.drv.name, status, words);
	}
	handle_end(&s->h, err.code, &err);
}

/* `overwrite` takes a list, and an empty one is none. */
static void delete_all(struct sonic *s)
{
	struct buf b = { 0 };
	bool first = true;

	for (size_t i = 0; i < s->xcs.n; i++) {
		if (!s->xcs.v[i].configured) {
			put_config(s, &b);
			buf_str(&b, "add ");
			put_pair(&b, true, s->xcs.v[i].xc);
			buf_str(&b, " update && ");
		}
	}
	put_config(s, &b);
	buf_str(&b, "delete ");
	for (size_t i = 0; i < s->xcs.n; i++) {
		put_pair(&b, first, s->xcs.v[i].xc);
		first = false;
	}
	if (first) {
		handle_end(&s->h, 0, NULL);
	} else {
		ask(s, buf_cstr(&b), on_cleared);
	}
	buf_fini(&b);
}

static void begin_batch(struct sonic *s)
{
	if (s->h.batch->mode != DRV_REPLACE) {
		forget_wanted_stale(s);
		next_command(s);
	} else if (s->h.batch->n_items == 0) {
		delete_all(s);
	} else if (batch_replace(&s->batch)) {
		send_command(s);
	} else {
		handle_end(&s->h, 0, NULL);
	}
}

static void sonic_submit(struct handle *h)
{
	struct sonic *s = (struct sonic *)h;

	s->batch.first = s->batch.end = 0;
	s->batch.chunk = s->chunk;
	s->any_add = false;
	if (h->batch->n_items == 0 && h->batch->mode != DRV_REPLACE) {
		handle_end(h, 0, NULL);
	} else {
		start_reads(s, 0, begin_batch);
	}
}

static void sonic_explain(struct drv *dev, const struct drv_batch *batch,
			  drv_trace_fn fn, void *arg)
{
	const struct sonic *s = (struct sonic *)dev;
	bool replace = batch->mode == DRV_REPLACE;
	int end;

	if (batch->n_items == 0) {
		return;
	}
	fn(dev->name, reads[READ_CONFIG].command, false, arg);
	fn(dev->name, reads[READ_STATUS].command, false, arg);
	for (int first = 0; first < batch->n_items; first = end) {
		struct buf b = { 0 };

		for (end = first + 1; end < batch->n_items; end++) {
			if (!replace &&
			    !batch_may_join(&s->batch, batch, first, end)) {
				break;
			}
		}
		put_command(s, batch, first, end, &b);
		fn(dev->name, buf_cstr(&b), false, arg);
		buf_fini(&b);
	}
}

/* ---- life ---------------------------------------------------------------- */

static void sonic_fini(struct handle *h)
{
	struct sonic *s = (struct sonic *)h;

	devmem_fini(&s->map);
	vec_fini(&s->xcs);
	free(s->losses);
}

static int parse_options(struct sonic *s, const struct drv_config *cfg,
			 struct err *err)
{
	const struct drv_class *cls = s->h.drv.cls;
	const struct handle_number numbers[] = {
		{ "gap_ms", 0, 60000, &s->gap_ms },
		{ "chunk", 1, 512, &s->chunk },
		{ "settle_ms", 1, 60000, &s->settle_ms },
		{ "tune_ms", 0, 600000, &s->tune_ms },
	};
	bool sudo = false;
	int rc = handle_option_choice(cls, cfg, "sudo", "sudo", "", &sudo,
				      err);

	if (rc == 0) {
		rc = handle_option_choice(cls, cfg, "factory_loss", "yes",
					  "no", &s->want_losses, err);
	}
	snprintf(s->sudo, sizeof(s->sudo), "%s", sudo ? "sudo" : "");
	s->want_losses = s->want_losses &&
			 (int64_t)cfg->n_in * cfg->n_out <= MAX_LOSSES;
	return rc ? rc : handle_option_ints(cls, cfg, numbers, sizeof(numbers) /
					    sizeof(numbers[0]), err);
}

static int sonic_init(struct handle *h, const struct drv_config *cfg,
		      struct line_conf *conf, struct err *err)
{
	struct sonic *s = (struct sonic *)h;
	int rc = handle_two_sides(h->drv.cls, cfg, "A joins B", err);

	rc = rc ? rc : parse_options(s, cfg, err);
	s->batch.h = h;
	s->batch.map = &s->map;
	s->batch.chunk = s->chunk;
	conf->gap_us = s->gap_ms * 1000;
	return rc ? rc : devmem_init(&s->map, DRV_SPACE, cfg->n_in, cfg->n_out,
				     false, err);
}

static const struct line_conf line = {
	.timeout_ms = DEFAULT_TIMEOUT_MS,
	.max_frame = SONIC_MAX_FRAME,
	.frame = sonic_frame,
	.judge = judge,
	.answer = on_answer,
	.trace = on_trace,
};

static const struct handle_ops ops = {
	.line = &line,
	.init = sonic_init,
	.snapshot = sonic_snapshot,
	.submit = sonic_submit,
	.fini = sonic_fini,
};

static int sonic_open(uv_loop_t *loop, const struct drv_config *cfg,
		      struct drv **out, struct err *err)
{
	return handle_open(handle_new(&drv_sonic_ocs, &ops,
				      sizeof(struct sonic)), loop, cfg, out,
			   err);
}

const struct drv_class drv_sonic_ocs = {
	.name = "sonic-ocs",
	.summary = "SONiC optical circuit switches, command line over TCP",
	.abi = DRV_ABI,
	.kind = DRV_SPACE,
	.options = options,
	.open = sonic_open,
	.close = handle_close,
	.snapshot = handle_snapshot,
	.submit = handle_submit,
	.explain = sonic_explain,
};
