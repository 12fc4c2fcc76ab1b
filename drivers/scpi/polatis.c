/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `polatis-scpi`: HUBER+SUHNER Polatis switches over SCPI on TCP.
 *
 * A set command answers nothing, whether it worked or not. So each one is
 * chained with a query of the error queue, the queue is emptied before, and
 * an error that comes back is laid at the door of those items that a read of
 * the map does not show. An empty queue is an acknowledgement, no proof.
 *
 * `conn:add` takes busy ports over without a word. So the map is read before
 * a batch and SAFE mode is kept here.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/batch.h"
#include "drivers/core/driver_base.h"
#include "drivers/core/power_monitors.h"
#include "drivers/core/tcp_session.h"
#include "drivers/core/xc_map.h"
#include "drivers/scpi/scpi.h"
#include "lib/base/alloc.h"

#define DEFAULT_TIMEOUT_MS 2000
#define TYP_SWITCH_US 25000

#define ASK_MAP ":oxc:swit:conn:stat?"
/* Ports asked about in one question: as many as power allows. */
#define PORTS_A_QUESTION 256
/* Error queues are short; more than this is a device gone mad. */
#define MAX_STALE_ERRORS 256

static const struct drv_option_spec options[] = {
	{ "gap_ms", "least time between two commands", "100" },
	{ "chunk", "most pairs in one command", "256" },
	{ "settle_ms", "wait before a read-back after an error", "50" },
	{ "complete_ms", "longest wait until what was confirmed shows",
	  "2000" },
	MONITORED_SIDES,
	MONITOR_OPTIONS,
	{ NULL, NULL, NULL },
};

struct polatis {
	struct driver_base h;
	int64_t gap_ms, settle_ms, complete_ms;
	enum drv_power power;
	struct power_monitors monitors;
	struct xc_map map;	/* as last read, with our changes since */
	/* What to do with the answer to the question that is out. */
	void (*next)(struct polatis *p, char *reply);
	int port;		/* snapshot: next port to ask about, or whose state is next */
	bool odd;		/* the reading that is out: its first two questions */
	int stale;		/* errors drained in a row */
	struct batch batch;	/* submit */
	int code;		/* the device's first error about them, or 0 */
	char text[DRV_TEXT_MAX];
};

/* ---- questions and answers ----------------------------------------------- */

static void ask_buf(struct polatis *p, void (*next)(struct polatis *, char *),
		    struct buf *line)
{
	p->next = next;
	buf_char(line, '\n');
	base_ask(&p->h, line, 0);
}

static void ask(struct polatis *p, void (*next)(struct polatis *, char *), const char *line)
{
	struct buf b = { 0 };

	buf_str(&b, line);
	ask_buf(p, next, &b);
}

/* The text of a frame: no terminator, no zero byte. */
static char *frame_text(const uint8_t *frame, size_t len)
{
	while (len && (frame[len - 1] == '\n' || frame[len - 1] == '\r')) {
		len--;
	}
	return memchr(frame, 0, len) ? NULL : x_ndup((const char *)frame, len);
}

static void on_reply(const uint8_t *frame, size_t len, uint64_t tag, void *arg)
{
	struct polatis *p = arg;
	char *text = frame_text(frame, len);
	struct err err = { 0 };

	(void)tag;
	if (p->h.op == BASE_IDLE) {
		free(text);
		return;
	}
	if (text) {
		p->next(p, scpi_plain(text));
	} else {
		base_misunderstood(&p->h, err_set(&err, WEFT_EDEVICE,
					 "the reply is garbage"), &err);
	}
	free(text);
}

/* A device on a telnet port may echo what it is told. */
static enum tcp_verdict judge(const uint8_t *frame, size_t len, bool waiting,
			      uint64_t tag, void *arg)
{
	char *text = frame_text(frame, len);
	bool echo = text && scpi_is_echo(text);

	(void)tag;
	(void)arg;
	free(text);
	return echo ? TCP_IGNORE : waiting ? TCP_REPLY : TCP_NONSENSE;
}

static void on_trace(const uint8_t *bytes, size_t len, bool is_reply, void *arg)
{
	struct polatis *p = arg;
	char *text = p->h.drv.trace ? frame_text(bytes, len) : NULL;

	if (text) {
		base_trace(&p->h, text, is_reply);
	}
	free(text);
}

/* ---- the map ------------------------------------------------------------- */

static int read_map(struct polatis *p, const char *reply, struct err *err)
{
	struct scpi_pairs pairs = { 0 };
	int rc = scpi_parse_pairs(reply, &pairs, err);

	xc_map_clear(&p->map);
	for (int i = 0; rc == 0 && i < pairs.n; i++) {
		struct optics_xc xc;
		bool again;

		rc = xc_map_take_pair(&p->map, pairs.in[i], pairs.out[i], &xc, &again, err);
	}
	scpi_pairs_fini(&pairs);
	return rc;
}

static int32_t wire_in(const struct xc_map *m, struct optics_xc xc)
{
	return xc_map_flat_in(m, xc.in) + 1;
}

static int32_t wire_out(const struct xc_map *m, struct optics_xc xc)
{
	return xc_map_flat_out(m, xc.out) + 1;
}

/* ---- snapshot ------------------------------------------------------------ */

/* The first `size` answers of a line in turn, at its semicolons but for those in quotes; the last
 * has what is left. Their number; the line is cut into them. */
static int split_answers(char *line, char **out, int size)
{
	bool quoted = false;
	int n = 0;

	out[n++] = line;
	for (; *line && n < size; line++) {
		quoted ^= *line == '"';
		if (*line == ';' && !quoted) {
			*line = '\0';
			out[n++] = line + 1;
		}
	}
	for (int i = 0; i < n; i++) {
		out[i] = scpi_plain(out[i]);
	}
	return n;
}

/* The ports of the next question from p->port on, of n_ports; numbers from 1. */
static int next_ports(const struct polatis *p, int32_t *ports, bool monitored)
{
	int n = 0;

	for (int i = p->port; i < p->map.n_ports && n < PORTS_A_QUESTION; i++) {
		if (!monitored || power_monitors_at(p->power, &p->map, i)) {
			ports[n++] = i + 1;
		}
	}
	return n;
}

static struct drv_port *port_entry(struct polatis *p, int flat, struct err *err)
{
	bool is_out = !p->map.any_to_any && flat >= p->map.n_in;

	return base_port(&p->h, is_out, is_out ? flat - p->map.n_in : flat, err);
}

static void ask_powers(struct polatis *p);

static void on_powers(struct polatis *p, char *reply)
{
	int32_t ports[PORTS_A_QUESTION], mdbm[PORTS_A_QUESTION];
	int n = next_ports(p, ports, true);
	struct err err = { 0 };
	int rc = scpi_parse_powers(reply, n, mdbm, &err);

	for (int i = 0; rc == 0 && i < n; i++) {
		struct drv_port *port = port_entry(p, ports[i] - 1, &err);

		if (!port) {
			rc = err.code;
			break;
		}
		port->has_power = true;
		port->power_mdbm = mdbm[i];
	}
	if (rc) {
		base_misunderstood(&p->h, rc, &err);
		return;
	}
	p->port = ports[n - 1];
	ask_powers(p);
}

static void ask_powers(struct polatis *p)
{
	int32_t ports[PORTS_A_QUESTION];
	int n = next_ports(p, ports, true);
	struct buf b = { 0 };

	if (n == 0) {
		power_monitors_losses(&p->monitors, &p->h);
		base_end(&p->h, 0, NULL);
		return;
	}
	buf_str(&b, ":pmon:pow? ");
	scpi_put_list(&b, ports, n);
	ask_buf(p, on_powers, &b);
}

/* What a reading asks, in one line: two questions whose order shows which reading it is, so that
 * an answer that came twice is not taken for the next one; the map; the states of so many ports
 * each; and last, as IEEE 488.2 wants it, who it is. */
#define FIXED_ANSWERS 4
#define MAX_ANSWERS (FIXED_ANSWERS + SCPI_MAX_PORT / PORTS_A_QUESTION)

static void on_reading(struct polatis *p, char *reply);

static void ask_reading(struct polatis *p)
{
	int32_t ports[PORTS_A_QUESTION];
	struct buf b = { 0 };
	int n;

	p->odd = !p->odd;
	buf_str(&b, p->odd ? ":oxc:boot:mode?;:oxc:swit:size?" : ":oxc:swit:size?;:oxc:boot:mode?");
	buf_str(&b, ";" ASK_MAP);
	for (p->port = 0; (n = next_ports(p, ports, false)) > 0; p->port += n) {
		buf_str(&b, ";:oxc:swit:port:stat? ");
		scpi_put_list(&b, ports, n);
	}
	buf_str(&b, ";*idn?");
	ask_buf(p, on_reading, &b);
}

static int take_boot_mode(struct polatis *p, const char *reply, struct err *err)
{
	struct drv_caps *caps = &p->h.snap.caps;

	/* Short or long form: DARK, REST[ore], AUT[osave]. */
	if (strncasecmp(reply, "DARK", 4) == 0) {
		caps->persistence = DRV_PERSIST_DARK;
	} else if (strncasecmp(reply, "REST", 4) == 0) {
		caps->persistence = DRV_PERSIST_RESTORE;
	} else if (strncasecmp(reply, "AUT", 3) == 0) {
		caps->persistence = DRV_PERSIST_AUTOSAVE;
	} else {
		return err_set(err, WEFT_EDEVICE, "boot mode '%.40s' is none of "
			       "DARK, RESTore, AUTosave", reply);
	}
	return 0;
}

/* Those from p->port on. */
static int take_states(struct polatis *p, const char *reply, struct err *err)
{
	int32_t ports[PORTS_A_QUESTION];
	char states[PORTS_A_QUESTION];
	int n = next_ports(p, ports, false);
	int rc = scpi_parse_states(reply, n, states, err);

	for (int i = 0; rc == 0 && i < n; i++) {
		struct drv_port *port = states[i] == 'E' ? NULL : port_entry(p, ports[i] - 1, err);

		if (port) {
			port->enabled = states[i] != 'D';
			port->failed = states[i] == 'F';
		} else if (states[i] != 'E') {
			rc = err->code;
		}
	}
	p->port += n;
	return rc;
}

static int take_size(const struct polatis *p, const char *reply, struct err *err)
{
	int n_in, n_out, rc = scpi_parse_size(reply, &n_in, &n_out, err);

	/* What an any-to-any switch says about its second side is not
	 * documented; the first is enough. */
	if (rc == 0 && (n_in != p->h.n_in || (!p->h.any_to_any && n_out != p->h.n_out))) {
		rc = base_wrong_size(&p->h, n_in, n_out, p->h.any_to_any, err);
	}
	return rc;
}

/* The numbers of egress ports depend on the size, so nothing is sent to a
 * device before its model was seen. */
static int check_identity(const struct polatis *p, const char *reply, struct err *err)
{
	bool any;
	int n_in, n_out;
	int rc = scpi_parse_identity(reply, &n_in, &n_out, &any, err);

	if (rc == 0 && (n_in != p->h.n_in || n_out != p->h.n_out || any != p->h.any_to_any)) {
		rc = base_wrong_size(&p->h, n_in, n_out, any, err);
	}
	return rc;
}

/* In the order of ask_reading, but who it is first: one of another size cannot answer the rest. */
static int take_reading(struct polatis *p, char *reply, struct err *err)
{
	const int n_lists = (p->map.n_ports + PORTS_A_QUESTION - 1) / PORTS_A_QUESTION;
	char *parts[MAX_ANSWERS];
	int n = split_answers(reply, parts, FIXED_ANSWERS + n_lists);
	int rc = check_identity(p, parts[n - 1], err);

	if (rc == 0 && n < FIXED_ANSWERS + n_lists) {
		rc = err_set(err, WEFT_EDEVICE, "%d answers to %d questions", n,
			     FIXED_ANSWERS + n_lists);
	}
	if (rc || (rc = take_size(p, parts[p->odd], err)) ||
	    (rc = take_boot_mode(p, parts[!p->odd], err)) || (rc = read_map(p, parts[2], err))) {
		return rc;
	}
	snprintf(p->h.snap.identity, sizeof(p->h.snap.identity), "%s", parts[n - 1]);
	xc_map_snapshot(&p->map, &p->h.snap);
	p->port = 0;
	for (int i = 0; i < n_lists && rc == 0; i++) {
		rc = take_states(p, parts[FIXED_ANSWERS - 1 + i], err);
	}
	return rc;
}

static void on_reading(struct polatis *p, char *reply)
{
	struct err err = { 0 };
	int rc = take_reading(p, reply, &err);

	if (rc) {
		base_misunderstood(&p->h, rc, &err);
		return;
	}
	p->port = 0;
	ask_powers(p);
}

static void polatis_snapshot(struct driver_base *h)
{
	struct polatis *p = (struct polatis *)h;

	h->snap.caps = (struct drv_caps){
		.kind = DRV_SPACE,
		.numbering = h->any_to_any ? DRV_ANY_TO_ANY : DRV_SPLIT,
		.n_in = h->n_in,
		.n_out = h->n_out,
		.atomic_replace = true,
		.acks_silently = true,
		.power = p->power,
		.min_gap_us = p->gap_ms * 1000,
		.typ_switch_us = TYP_SWITCH_US,
		.settle_us = p->settle_ms * 1000,
	};
	ask_reading(p);
}

/* ---- submit: commands ---------------------------------------------------- */

/* The command for items first..end-1 with the query chained to it. */
static void put_command(const struct polatis *p, const struct drv_batch *batch,
			int first, int end, struct buf *b)
{
	static const char *const verbs[] = { "add", "sub" };
	const char *verb = batch->mode == DRV_REPLACE ? "only" :
			   verbs[batch->items[first].op == DRV_DEL];
	const char *before = "(@";

	if (first == end) {
		buf_str(b, ":oxc:swit:disc:all;:syst:err?");
		return;
	}
	buf_printf(b, ":oxc:swit:conn:%s ", verb);
	for (int i = first; i < end; i++, before = ",") {
		buf_printf(b, "%s%d", before, wire_in(&p->map, batch->items[i].xc));
	}
	before = "),(@";
	for (int i = first; i < end; i++, before = ",") {
		buf_printf(b, "%s%d", before, wire_out(&p->map, batch->items[i].xc));
	}
	buf_str(b, ");:syst:err?");
}

/* ---- submit: verdicts ---------------------------------------------------- */

static void next_command(struct polatis *p);

/* ---- submit: what was confirmed may be done some time after that --------- */

static void look(struct polatis *p);

static void on_look(uv_timer_t *t)
{
	look(t->data);
}

static void on_seen(struct polatis *p, char *reply)
{
	struct err err = { 0 };
	int rc = read_map(p, reply, &err);

	if (rc) {
		base_misunderstood(&p->h, rc, &err);
	} else if (batch_waits(&p->batch)) {
		uv_timer_start(&p->h.timer, on_look, (uint64_t)p->settle_ms, 0);
	} else {
		base_end(&p->h, 0, NULL);
	}
}

static void look(struct polatis *p)
{
	ask(p, on_seen, ASK_MAP);
}

static void end_batch(struct polatis *p)
{
	if (batch_ended(&p->batch, p->complete_ms)) {
		look(p);
	} else {
		base_end(&p->h, 0, NULL);
	}
}

static enum drv_class_of_error class_of(int code)
{
	/* SCPI: -1xx the command, -2xx its execution; -220..-229 are about
	 * parameters. */
	return (code <= -100 && code > -200) ||
	       (code <= -220 && code > -230) ? DRV_ERR_CONFIGURATION :
					       DRV_ERR_STATE;
}

/* The map after an error shows which of the items it was about. */
static void on_read_back(struct polatis *p, char *reply)
{
	struct err err = { 0 };
	char code[16];
	int rc = read_map(p, reply, &err);

	if (rc) {
		base_misunderstood(&p->h, rc, &err);
		return;
	}
	snprintf(code, sizeof(code), "%d", p->code);
	if (!batch_read_back(&p->batch, class_of(p->code), code, p->text) ||
	    p->h.batch->mode == DRV_REPLACE) {
		end_batch(p);
	} else {
		next_command(p);
	}
}

static void ask_port_state(struct polatis *p);

static void on_settled(uv_timer_t *t)
{
	struct polatis *p = t->data;

	if (p->h.op == BASE_PORT) {
		ask_port_state(p);
	} else {
		ask(p, on_read_back, ASK_MAP);
	}
}

/* An error read from the queue; 0 ends it. WEFT_EDEVICE for nonsense. */
static int take_error(struct polatis *p, const char *reply, int *code,
		      char *text, int size, struct err *err)
{
	int rc = scpi_parse_error(reply, code, text, size, err);

	if (rc == 0 && *code && ++p->stale > MAX_STALE_ERRORS) {
		rc = err_set(err, WEFT_EDEVICE, "the error queue does not get empty");
	}
	if (rc) {
		base_misunderstood(&p->h, rc, err);
	}
	return rc;
}

/* Whether the error queue is empty; else more is asked for, unless the reply is wrong. */
static bool no_more_errors(struct polatis *p, char *reply,
			   void (*again)(struct polatis *p, char *reply))
{
	char text[DRV_TEXT_MAX];
	struct err err = { 0 };
	int code, rc = take_error(p, reply, &code, text, sizeof(text), &err);

	if (rc == 0 && code) {
		ask(p, again, ":syst:err?");
	}
	return rc == 0 && !code;
}

static void on_more_errors(struct polatis *p, char *reply)
{
	if (no_more_errors(p, reply, on_more_errors)) {
		uv_timer_start(&p->h.timer, on_settled, (uint64_t)p->settle_ms, 0);
	}
}

static void on_set(struct polatis *p, char *reply)
{
	struct err err = { 0 };

	p->stale = 0;
	if (take_error(p, reply, &p->code, p->text, sizeof(p->text), &err)) {
		return;
	}
	if (p->code) {
		ask(p, on_more_errors, ":syst:err?");
		return;
	}
	if (p->h.op == BASE_PORT) {
		ask_port_state(p);
		return;
	}
	batch_done(&p->batch);
	if (p->h.batch->mode == DRV_REPLACE) {
		end_batch(p);
	} else {
		next_command(p);
	}
}

static void send_command(struct polatis *p)
{
	struct buf b = { 0 };

	put_command(p, p->h.batch, p->batch.first, p->batch.end, &b);
	ask_buf(p, on_set, &b);
}

static void next_command(struct polatis *p)
{
	if (batch_next(&p->batch)) {
		send_command(p);
	} else {
		end_batch(p);
	}
}

/* ---- ports and errors ---------------------------------------------------- */

static int wire_port(const struct polatis *p)
{
	return p->h.port.index + 1 +
	       (p->h.port.is_out && !p->map.any_to_any ? p->map.n_in : 0);
}

static void on_port_state(struct polatis *p, char *reply)
{
	char state, code[16] = "";
	struct err err = { 0 };
	int rc = scpi_parse_states(reply, 1, &state, &err);
	bool as_asked = rc == 0 && state == (p->h.enable ? 'E' : 'D');

	if (rc) {
		base_misunderstood(&p->h, rc, &err);
		return;
	}
	if (p->code) {
		snprintf(code, sizeof(code), "%d", p->code);
	}
	base_mark(&p->h, 0, 1, as_asked ? DRV_DONE : DRV_REFUSED,
		  DRV_READ_BACK, as_asked ? DRV_ERR_NONE : DRV_ERR_STATE,
		  as_asked ? NULL : code, as_asked ? NULL :
		  p->code ? p->text : state == 'F' ? "the port has failed" :
		  "the port is as it was");
	base_end(&p->h, 0, NULL);
}

static void ask_port_state(struct polatis *p)
{
	struct buf b = { 0 };

	buf_printf(&b, ":oxc:swit:port:stat? (@%d)", wire_port(p));
	ask_buf(p, on_port_state, &b);
}

static void set_port(struct polatis *p)
{
	struct buf b = { 0 };

	base_mark(&p->h, 0, 1, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT,
		  NULL, "sent and not answered");
	buf_printf(&b, ":oxc:swit:port:%s (@%d);:syst:err?",
		   p->h.enable ? "enab" : "dis", wire_port(p));
	ask_buf(p, on_set, &b);
}

static void on_cleared(struct polatis *p, char *reply)
{
	char text[DRV_TEXT_MAX];
	struct err err = { 0 };
	int code;

	if (take_error(p, reply, &code, text, sizeof(text), &err)) {
		return;
	}
	if (code) {
		if (p->stale == 1) {
			snprintf(p->text, sizeof(p->text), "%d %.100s", code, text);
		}
		ask(p, on_cleared, ":syst:err?");
		return;
	}
	snprintf(text, sizeof(text), "%d errors%s%.90s", p->stale,
		 p->stale ? ", the first: " : " waited",
		 p->stale ? p->text : "");
	base_mark(&p->h, 0, 1, DRV_DONE, DRV_READ_BACK, DRV_ERR_NONE, NULL, text);
	base_end(&p->h, 0, NULL);
}

static void polatis_recover(struct driver_base *h)
{
	struct polatis *p = (struct polatis *)h;

	p->stale = 0;
	ask(p, on_cleared, ":syst:err?");
}

/* ---- submit: it begins --------------------------------------------------- */

static void begin_changes(struct polatis *p)
{
	if (p->h.op == BASE_PORT) {
		set_port(p);
	} else if (p->h.batch->mode != DRV_REPLACE) {
		next_command(p);
	} else if (batch_replace(&p->batch)) {
		send_command(p);
	} else {
		base_end(&p->h, 0, NULL);
	}
}

/* Errors of the past, or of another session, must not be taken for ours. */
static void on_stale_error(struct polatis *p, char *reply)
{
	if (no_more_errors(p, reply, on_stale_error)) {
		begin_changes(p);
	}
}

#define ASK_BEFORE ASK_MAP ";:syst:err?;*idn?"

static void on_before(struct polatis *p, char *reply)
{
	char *parts[3];
	struct err err = { 0 };
	int n = split_answers(reply, parts, 3);
	int rc = check_identity(p, parts[n - 1], &err);

	if (rc == 0 && n < 3) {
		rc = err_set(&err, WEFT_EDEVICE, "%d answers to three questions", n);
	}
	if (rc || (rc = read_map(p, parts[0], &err))) {
		base_misunderstood(&p->h, rc, &err);
	} else {
		on_stale_error(p, parts[1]);
	}
}

static void polatis_submit(struct driver_base *h)
{
	struct polatis *p = (struct polatis *)h;

	p->batch.first = p->batch.end = p->stale = p->code = 0;
	if (h->op == BASE_SUBMIT && h->batch->n_items == 0 && h->batch->mode != DRV_REPLACE) {
		base_end(&p->h, 0, NULL);
		return;
	}
	ask(p, on_before, ASK_BEFORE);
}

static void polatis_explain(struct drv *dev, const struct drv_batch *batch,
			    drv_trace_fn fn, void *arg)
{
	const struct polatis *p = (struct polatis *)dev;
	bool replace = batch->mode == DRV_REPLACE;
	int first = 0, end;

	if (batch->n_items == 0 && !replace) {
		return;
	}
	fn(dev->name, ASK_BEFORE, false, arg);
	do {
		struct buf b = { 0 };

		for (end = first; end < batch->n_items; end++) {
			if (!replace && end > first &&
			    !batch_may_join(&p->batch, batch, first, end)) {
				break;
			}
		}
		if (end > first || replace) {
			put_command(p, batch, first, end, &b);
			fn(dev->name, buf_cstr(&b), false, arg);
		}
		buf_fini(&b);
		first = end;
	} while (first < batch->n_items);
	fn(dev->name, ASK_MAP, false, arg);
}

/* ---- life ---------------------------------------------------------------- */

static void polatis_fini(struct driver_base *h)
{
	xc_map_fini(&((struct polatis *)h)->map);
}

static int polatis_init(struct driver_base *h, const struct drv_config *cfg,
			struct tcp_conf *conf, struct err *err)
{
	struct polatis *p = (struct polatis *)h;
	const struct base_number numbers[] = {
		{ "gap_ms", 0, 60000, &p->gap_ms },
		{ "chunk", 1, 512, &p->batch.chunk },
		{ "settle_ms", 0, 60000, &p->settle_ms },
		{ "complete_ms", 0, 600000, &p->complete_ms },
	};
	const struct drv_class *cls = h->drv.cls;
	int rc;

	if ((rc = base_option_ints(cls, cfg, numbers, sizeof(numbers) / sizeof(numbers[0]), err)) ||
	    (rc = power_monitors_init(&p->monitors, cls, cfg, err)) ||
	    (rc = power_monitors_sides(&p->power, cls, cfg, err))) {
		return rc;
	}
	p->batch.h = h;
	p->batch.map = &p->map;
	conf->gap_us = p->gap_ms * 1000;
	xc_map_init(&p->map, DRV_SPACE, cfg->n_in, cfg->n_out, cfg->any_to_any);
	return 0;
}

/* A model without monitors is silent when it is asked for powers. */
static void on_failed(int rc, const struct err *err, bool sent, void *arg)
{
	struct polatis *p = arg;
	struct err own = *err;

	if (rc == WEFT_ETIMEOUT && p->next == on_powers) {
		err_set(&own, rc, "%.300s when asked for powers: has the "
			"switch monitors, as option power says?", err->msg);
	}
	base_lost(&p->h, rc, &own, sent);
}

static const struct tcp_conf session = {
	.timeout_ms = DEFAULT_TIMEOUT_MS,
	.max_frame = SCPI_MAX_LINE,
	.terminal = TERMINAL_LINES,
	.frame = tcp_frame_text,
	.judge = judge,
	.reply = on_reply,
	.failed = on_failed,
	.trace = on_trace,
};

static const struct base_ops ops = {
	.session = &session,
	.init = polatis_init,
	.snapshot = polatis_snapshot,
	.submit = polatis_submit,
	.port_set = polatis_submit,
	.recover = polatis_recover,
	.fini = polatis_fini,
};

const struct drv_class drv_polatis_scpi = {
	.name = "polatis-scpi",
	.summary = "HUBER+SUHNER Polatis switches, SCPI over TCP",
	.kind = DRV_SPACE,
	.options = options,
	BASE_CLASS(struct polatis, &ops),
	.explain = polatis_explain,
	.port_set = base_port_set,
	.recoveries = DRV_CLEAR,
	.recover = base_recover,
};
