/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `polatis-restconf`: HUBER+SUHNER Polatis switches over RESTCONF (RFC 8040),
 * on HTTP or HTTPS.
 *
 * Circuits are made by PUT, never by POST: a user found that what he had POSTed
 * was gone again after some seconds, while what he PUT stayed
 * (alexandret01/UFABC_REDES). PUT of a pair takes busy ports over, by its
 * ingress at least; so the map is read before a batch and SAFE mode is kept
 * here. A refusal, and anything else that is no plain yes, is followed by a
 * read of the map, which decides.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/batch.h"
#include "drivers/core/driver_base.h"
#include "drivers/core/power_monitors.h"
#include "drivers/core/secret.h"
#include "drivers/core/xc_map.h"
#include "drivers/restconf/events.h"
#include "drivers/restconf/http_client.h"
#include "drivers/restconf/restconf.h"
#include "drivers/scpi/scpi.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"

#define DEFAULT_TIMEOUT_MS 5000
#define TYP_SWITCH_US 25000

static const struct drv_option_spec options[] = {
	{ "user", "who logs in; empty: no log-in", "" },
	{ "password_file", "file whose first line is the password", "" },
	{ "tls", "HTTPS: yes or no", "no" },
	{ "tls_ca", "HTTPS: file of the authorities; empty: the system's", "" },
	{ "tls_cert", "HTTPS: file of our certificate, if one is wanted", "" },
	{ "tls_key", "HTTPS: file of its key", "" },
	{ "tls_verify", "HTTPS: no accepts any certificate, with a warning", "yes" },
	{ "list", "name of the list of circuits: pair, in old firmware pairs", "pair" },
	{ "gap_ms", "least time between two requests", "20" },
	{ "settle_ms", "wait before a read-back after an error", "50" },
	{ "complete_ms", "longest wait until what was confirmed shows", "2000" },
	{ "events_ms", "how often events are looked for; 0: never", "10000" },
	MONITORED_SIDES,
	MONITOR_OPTIONS,
	{ NULL, NULL, NULL },
};

struct restconf {
	struct driver_base h;
	struct http_conf conf;		/* its strings are those of the next fields */
	char *user, *password_file, *ca, *cert, *key;
	char *password;			/* NULL before it is needed */
	int64_t gap_ms, settle_ms, complete_ms, events_ms;
	bool plural;			/* the list is called `pairs` */
	enum drv_power power;
	struct power_monitors monitors;
	struct http_client *client;	/* NULL before the first operation */
	struct restconf_events *events;	/* NULL before the first good snapshot */
	struct xc_map map;		/* as last read, with our changes since */
	bool *by_high;			/* any-to-any: the circuit of this port and
					 * a higher one has the higher as ingress */
	/* What to do with the answer to the request that is out. */
	void (*next)(struct restconf *p, const struct http_answer *a);
	bool changes;			/* it changes something */
	uint64_t checked;		/* connections when the size was seen */
	struct batch batch;		/* submit */
	struct optics_xc displaced;	/* that is being removed for an item */
	char code[16], text[DRV_TEXT_MAX];	/* the device's refusal */
};

/* ---- questions and answers ------------------------------------------------- */

/* The answer cannot be used: the operation ends. */
static void misunderstood(struct restconf *p, int rc, struct err *err)
{
	err_wrap(err, "%s", p->h.drv.name);
	http_distrust(p->client);
	base_settle_unknown(&p->h, DRV_UNKNOWN, err->msg);
	base_end(&p->h, rc, err);
}

/* But for the words of a device that refuses the log-in, and may say it back. */
static void trace_answer(struct restconf *p, const struct http_answer *a)
{
	bool has_words = a->len && a->status != 401;
	struct buf b = { 0 };

	if (p->h.drv.trace) {
		buf_printf(&b, "%d%s%s", a->status, has_words ? " " : "", has_words ? a->body : "");
		base_trace(&p->h, buf_cstr(&b), true);
		buf_fini(&b);
	}
}

/* Items that are out stay unknown when it was a later question that failed. */
static void on_answer(const struct http_answer *a, void *arg)
{
	struct restconf *p = arg;

	if (p->h.op == BASE_IDLE) {
		return;
	}
	if (a->rc == 0) {
		trace_answer(p, a);
		p->next(p, a);
	} else {
		base_lost(&p->h, a->rc, a->err, a->sent || !p->changes);
	}
}

static void trace_request(const char *device, const char *method, const char *path,
			  const char *body, drv_trace_fn fn, void *arg)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s %s%s%s", method, path, body ? " " : "", body ? body : "");
	fn(device, buf_cstr(&b), false, arg);
	buf_fini(&b);
}

/* body NULL: none is sent. */
static void ask(struct restconf *p, void (*next)(struct restconf *, const struct http_answer *),
		const char *method, const char *path, const char *body)
{
	struct http_call q = {
		.method = method, .path = path, .accept = RESTCONF_JSON, .type = RESTCONF_JSON,
		.body = body, .repeatable = strcmp(method, "GET") == 0,
		.done = on_answer, .arg = p };

	if (p->h.drv.trace) {
		trace_request(p->h.drv.name, method, path, body, p->h.drv.trace,
			      p->h.drv.trace_arg);
	}
	p->next = next;
	p->changes = !q.repeatable;
	http_ask(p->client, &q);
}

static bool is_good(const struct http_answer *a)
{
	return a->status >= 200 && a->status < 300;
}

/* The device's words about what it refuses. */
static void take_refusal(struct restconf *p, const struct http_answer *a)
{
	char tag[40], words[DRV_TEXT_MAX];

	restconf_parse_error(a->body, tag, sizeof(tag), words, sizeof(words));
	snprintf(p->code, sizeof(p->code), "%d", a->status);
	snprintf(p->text, sizeof(p->text), "%s%s%s", tag, tag[0] && words[0] ? ": " : "", words);
	if (a->status / 100 == 3) {
		snprintf(p->text, sizeof(p->text), "it redirects to %.80s, which is not followed",
			 a->location);
	} else if (a->status == 401) {
		snprintf(p->text, sizeof(p->text), "the log-in is refused; see the options user "
			 "and password_file");
	}
}

/* Whether what was asked for was sent. Nothing (204), and an answer that it is
 * missing, are an empty one where `may_miss`: RFC 8040 has 404 with the tag
 * invalid-value for what is not there, and devices data-missing. Any other tag
 * may mean that we ask for something else than we think. */
static int check_answer(struct restconf *p, const struct http_answer *a, bool may_miss,
			struct err *err)
{
	char tag[40], words[8];

	if (a->status == 200 || (a->status == 204 && may_miss)) {
		return 0;
	}
	restconf_parse_error(a->body, tag, sizeof(tag), words, sizeof(words));
	if (a->status == 404 && may_miss &&
	    (strcmp(tag, "data-missing") == 0 || strcmp(tag, "invalid-value") == 0)) {
		return 0;
	}
	take_refusal(p, a);
	return err_set(err, a->status == 429 || a->status > 500 ? WEFT_EUNAVAIL : WEFT_EDEVICE,
		       "the device answers %s%s%s", p->code, p->text[0] ? ": " : "", p->text);
}

static const char *body_of(const struct http_answer *a)
{
	return a->status == 200 ? a->body : "";
}

/* ---- the map --------------------------------------------------------------- */

static int read_map(struct restconf *p, const struct http_answer *a, struct err *err)
{
	struct restconf_pair *pairs = NULL;
	int n = 0, rc = check_answer(p, a, true, err);

	if (rc == 0) {
		rc = restconf_parse_pairs(body_of(a), &pairs, &n, err);
	}
	xc_map_clear(&p->map);
	for (int i = 0; rc == 0 && i < n; i++) {
		struct optics_xc xc;
		bool again;

		rc = xc_map_take_pair(&p->map, pairs[i].ingress, pairs[i].egress, &xc, &again, err);
		if (rc == 0) {
			p->by_high[xc.in] = pairs[i].ingress - 1 != xc.in && !again;
		}
	}
	free(pairs);
	return rc;
}

static int wire_in(const struct restconf *p, struct optics_xc xc)
{
	return xc_map_flat_in(&p->map, xc.in) + 1;
}

static int wire_out(const struct restconf *p, struct optics_xc xc)
{
	return xc_map_flat_out(&p->map, xc.out) + 1;
}

/* What the device calls a circuit that is there: its ingress. */
static int key_of(const struct restconf *p, struct optics_xc xc)
{
	bool high = xc_map_has(&p->map, xc) && p->by_high[xc.in];

	return high ? wire_out(p, xc) : wire_in(p, xc);
}

/* ---- snapshot -------------------------------------------------------------- */

static void end_snapshot(struct restconf *p)
{
	struct driver_base *h = &p->h;

	power_monitors_losses(&p->monitors, h);
	if (p->events_ms && !p->events) {
		p->events = restconf_events_new(h, p->client, &p->conf, p->events_ms);
	}
	base_end(h, 0, NULL);
}

/* These two are extras: a device that has them not says less. */
static void on_boot(struct restconf *p, const struct http_answer *a)
{
	struct drv_snapshot *snap = &p->h.snap;

	if (a->status != 200 || restconf_parse_text(a->body, "boot-datetime", snap->epoch,
						    sizeof(snap->epoch), NULL)) {
		snap->epoch[0] = '\0';
	}
	end_snapshot(p);
}

static void on_startup(struct restconf *p, const struct http_answer *a)
{
	enum drv_persistence *left = &p->h.snap.caps.persistence;
	char mode[40];

	*left = DRV_PERSIST_UNKNOWN;
	if (a->status == 200 &&
	    restconf_parse_text(a->body, "startup-mode", mode, sizeof(mode), NULL) == 0) {
		*left = strcmp(mode, "MODE_VOLATILE") == 0 ? DRV_PERSIST_DARK :
			strcmp(mode, "MODE_PRESERVE") == 0 ? DRV_PERSIST_AUTOSAVE :
							     DRV_PERSIST_UNKNOWN;
	}
	ask(p, on_boot, "GET", RESTCONF_BOOT, NULL);
}

/* The snapshot's entry of a port by the device's number; NULL, with an error,
 * when there is no such port. */
static struct drv_port *port_entry(struct restconf *p, int32_t number, struct err *err)
{
	bool is_out = !p->map.any_to_any && number > p->map.n_in;

	return base_port(&p->h, is_out, number - 1 - (is_out ? p->map.n_in : 0), err);
}

static int take_power(int32_t number, int32_t mdbm, void *arg, struct err *err)
{
	struct restconf *p = arg;
	struct drv_port *port;

	if (number <= p->map.n_ports && !power_monitors_at(p->power, &p->map, number - 1)) {
		return 0;
	}
	port = port_entry(p, number, err);
	if (port) {
		port->has_power = true;
		port->power_mdbm = mdbm;
	}
	return port ? 0 : err->code;
}

static void on_powers(struct restconf *p, const struct http_answer *a)
{
	struct err err = { 0 };
	int rc = check_answer(p, a, false, &err);

	if (rc == 0) {
		rc = restconf_parse_powers(a->body, take_power, p, &err);
	} else if (rc == WEFT_EDEVICE) {
		err_wrap(&err, "asked for powers: has the switch monitors, as option power says?");
	}
	if (rc) {
		misunderstood(p, rc, &err);
	} else {
		ask(p, on_startup, "GET", RESTCONF_STARTUP, NULL);
	}
}

static int take_state(int32_t number, enum restconf_status s, void *arg, struct err *err)
{
	struct restconf *p = arg;
	struct drv_port *port = s == RESTCONF_ENABLED ? NULL : port_entry(p, number, err);

	if (port) {
		port->enabled = s != RESTCONF_DISABLED;
		port->failed = s == RESTCONF_FAILED;
	}
	return port || s == RESTCONF_ENABLED ? 0 : err->code;
}

static int read_ports(struct restconf *p, const struct http_answer *a, struct err *err)
{
	int rc = check_answer(p, a, true, err);

	return rc == 0 ? restconf_parse_states(body_of(a), take_state, p, err) : rc;
}

static void on_ports(struct restconf *p, const struct http_answer *a)
{
	struct err err = { 0 };
	int rc = read_ports(p, a, &err);

	if (rc) {
		misunderstood(p, rc, &err);
	} else if (p->power) {
		ask(p, on_powers, "GET", RESTCONF_POWERS, NULL);
	} else {
		ask(p, on_startup, "GET", RESTCONF_STARTUP, NULL);
	}
}

static void on_map(struct restconf *p, const struct http_answer *a)
{
	struct err err = { 0 };
	int rc = read_map(p, a, &err);

	if (rc == 0) {
		xc_map_snapshot(&p->map, &p->h.snap);
	}
	if (rc) {
		misunderstood(p, rc, &err);
	} else {
		ask(p, on_ports, "GET", RESTCONF_PORTS, NULL);
	}
}

/* The numbers of egress ports depend on the size, so nothing is changed before
 * the model was seen over the same connection. */
static bool check_identity(struct restconf *p, const struct http_answer *a, char *line, size_t size)
{
	struct err err = { 0 };
	int n_in, n_out, rc;
	bool any;

	if ((rc = check_answer(p, a, false, &err)) == 0 &&
	    (rc = restconf_parse_product(a->body, line, size, &err)) == 0 &&
	    (rc = scpi_parse_identity(line, &n_in, &n_out, &any, &err)) == 0 &&
	    (n_in != p->h.n_in || n_out != p->h.n_out || any != p->h.any_to_any)) {
		rc = base_wrong_size(&p->h, n_in, n_out, any, &err);
	}
	if (rc) {
		misunderstood(p, rc, &err);
		return false;
	}
	p->checked = http_connections(p->client);
	return true;
}

static void on_identity(struct restconf *p, const struct http_answer *a)
{
	struct drv_snapshot *snap = &p->h.snap;

	if (!check_identity(p, a, snap->identity, sizeof(snap->identity))) {
		return;
	}
	snap->caps = (struct drv_caps){
		.kind = DRV_SPACE,
		.numbering = p->h.any_to_any ? DRV_ANY_TO_ANY : DRV_SPLIT,
		.n_in = p->h.n_in,
		.n_out = p->h.n_out,
		.atomic_replace = true,
		.power = p->power,
		.min_gap_us = p->gap_ms * 1000,
		.typ_switch_us = TYP_SWITCH_US,
		.settle_us = p->settle_ms * 1000,
	};
	ask(p, on_map, "GET", RESTCONF_CIRCUITS, NULL);
}

/* ---- the client ------------------------------------------------------------- */

/* False, and the operation has ended, when there cannot be one. The password is read here, so
 * that a plan can be made where its file is not. */
static bool have_client(struct restconf *p)
{
	struct err err = { 0 };
	int rc = 0;

	if (p->client) {
		return true;
	}
	if (p->password_file && !p->password) {
		rc = secret_read_line(p->password_file, &p->password, &err);
		if (rc) {
			err_wrap(&err, "option password_file");
		}
		p->conf.password = p->password;
	}
	if (rc == 0) {
		rc = http_client_new(p->h.drv.loop, &p->conf, &p->client, &err);
	}
	if (rc) {
		err_wrap(&err, "%s", p->h.drv.name);
		base_end(&p->h, rc, &err);
	}
	return rc == 0;
}

static void restconf_snapshot(struct driver_base *h)
{
	struct restconf *p = (struct restconf *)h;

	if (have_client(p)) {
		ask(p, on_identity, "GET", RESTCONF_PRODUCT, NULL);
	}
}

/* ---- submit: requests -------------------------------------------------------- */

struct restconf_change {
	const char *method;
	struct buf path, body;	/* body without bytes: none */
};

static void put_pair(const struct restconf *p, struct optics_xc xc, struct buf *b)
{
	buf_printf(b, "{\"ingress\":%d,\"egress\":%d}", wire_in(p, xc), wire_out(p, xc));
}

static void put_removal(const struct restconf *p, struct optics_xc xc, struct restconf_change *c)
{
	c->method = "DELETE";
	buf_printf(&c->path, RESTCONF_CIRCUITS "/%s=%d", p->plural ? "pairs" : "pair",
		   key_of(p, xc));
}

/* For item i, or with REPLACE for all. */
static void put_change(const struct restconf *p, const struct drv_batch *batch, int i,
		       struct restconf_change *c)
{
	const char *list = p->plural ? "pairs" : "pair";

	*c = (struct restconf_change){ .method = "PUT" };
	if (batch->mode == DRV_REPLACE) {
		buf_str(&c->path, RESTCONF_CIRCUITS);
		c->method = batch->n_items ? "PUT" : "DELETE";
		for (int k = 0; k < batch->n_items; k++) {
			buf_printf(&c->body, k ? ","
				   : "{\"optical-switch:cross-connects\":{\"%s\":[",
				   list);
			put_pair(p, batch->items[k].xc, &c->body);
		}
		buf_str(&c->body, batch->n_items ? "]}}" : "");
	} else if (batch->items[i].op == DRV_DEL) {
		put_removal(p, batch->items[i].xc, c);
	} else {
		buf_printf(&c->path, RESTCONF_CIRCUITS "/%s=%d", list,
			   wire_in(p, batch->items[i].xc));
		buf_printf(&c->body, "{\"optical-switch:%s\":[", list);
		put_pair(p, batch->items[i].xc, &c->body);
		buf_str(&c->body, "]}");
	}
}

static const char *body_text(const struct restconf_change *c)
{
	return c->body.len ? buf_cstr(&c->body) : NULL;
}

static void change_fini(struct restconf_change *c)
{
	buf_fini(&c->path);
	buf_fini(&c->body);
}

/* ---- submit: what was confirmed may be done some time after that ------------- */

static void look(struct restconf *p);

static void on_look(uv_timer_t *t)
{
	look(t->data);
}

static void on_seen(struct restconf *p, const struct http_answer *a)
{
	struct err err = { 0 };
	int rc = read_map(p, a, &err);

	if (rc) {
		misunderstood(p, rc, &err);
	} else if (batch_waits(&p->batch)) {
		uv_timer_start(&p->h.timer, on_look, (uint64_t)p->settle_ms, 0);
	} else {
		base_end(&p->h, 0, NULL);
	}
}

static void look(struct restconf *p)
{
	ask(p, on_seen, "GET", RESTCONF_CIRCUITS, NULL);
}

static void end_batch(struct restconf *p)
{
	if (batch_ended(&p->batch, p->complete_ms)) {
		look(p);
	} else {
		base_end(&p->h, 0, NULL);
	}
}

/* ---- submit: verdicts --------------------------------------------------------- */

static void next_change(struct restconf *p);
static void send_item(struct restconf *p);

/* 403 is a port of another user's subswitch, too. */
static enum drv_class_of_error class_of(const char *code)
{
	int status = atoi(code);
	bool state = status >= 500 || status == 403 || status == 409 || status == 412 ||
		     status == 423 || status == 429;

	return state ? DRV_ERR_STATE : DRV_ERR_CONFIGURATION;
}

/* The map after a refusal shows what became of the items. */
static void on_read_back(struct restconf *p, const struct http_answer *a)
{
	struct err err = { 0 };
	char code[sizeof(p->code)], text[sizeof(p->text)];
	int rc;

	memcpy(code, p->code, sizeof(code));
	memcpy(text, p->text, sizeof(text));
	rc = read_map(p, a, &err);
	if (rc) {
		misunderstood(p, rc, &err);
	} else if (!batch_read_back(&p->batch, class_of(code), code, text) ||
		   p->h.batch->mode == DRV_REPLACE) {
		end_batch(p);
	} else {
		next_change(p);
	}
}

static void on_port_state(struct restconf *p, const struct http_answer *a)
{
	struct err err = { 0 };
	int rc = read_ports(p, a, &err);

	if (rc) {
		misunderstood(p, rc, &err);
	} else {
		base_judge_port(&p->h, p->code, p->text);
	}
}

static void on_settled(uv_timer_t *t)
{
	struct restconf *p = t->data;

	if (p->h.op == BASE_PORT) {
		ask(p, on_port_state, "GET", RESTCONF_PORTS, NULL);
	} else {
		ask(p, on_read_back, "GET", RESTCONF_CIRCUITS, NULL);
	}
}

static void refused(struct restconf *p, const struct http_answer *a)
{
	take_refusal(p, a);
	uv_timer_start(&p->h.timer, on_settled, (uint64_t)p->settle_ms, 0);
}

static void on_port_set(struct restconf *p, const struct http_answer *a)
{
	if (is_good(a)) {
		ask(p, on_port_state, "GET", RESTCONF_PORTS, NULL);
	} else {
		refused(p, a);
	}
}

static void on_changed(struct restconf *p, const struct http_answer *a)
{
	if (!is_good(a)) {
		refused(p, a);
		return;
	}
	for (int i = p->batch.first; i < p->batch.end; i++) {
		p->by_high[p->h.batch->items[i].xc.in] = false;
	}
	batch_done(&p->batch);
	if (p->h.batch->mode == DRV_REPLACE) {
		end_batch(p);
	} else {
		next_change(p);
	}
}

/* 404: another user was quicker. */
static void on_cleared(struct restconf *p, const struct http_answer *a)
{
	if (is_good(a) || a->status == 404) {
		xc_map_release(&p->map, xc_map_flat_in(&p->map, p->displaced.in));
		send_item(p);
	} else {
		refused(p, a);
	}
}

/* A circuit at one of xc's ports that a PUT of xc would not replace, since the
 * device knows it by another ingress. */
static bool is_in_the_way(const struct restconf *p, struct optics_xc xc, struct optics_xc *other)
{
	int ends[] = { wire_in(p, xc), wire_out(p, xc) };

	for (int i = 0; i < 2; i++) {
		int peer = p->map.peer[ends[i] - 1];
		int low = peer + 1 < ends[i] ? peer + 1 : ends[i];
		int high = peer + 1 < ends[i] ? ends[i] : peer + 1;

		if (peer >= 0 && xc_map_pair(&p->map, low, high, other) &&
		    key_of(p, *other) != wire_in(p, xc)) {
			return true;
		}
	}
	return false;
}

static void send_item(struct restconf *p)
{
	const struct drv_batch *batch = p->h.batch;
	const struct drv_item *item = &batch->items[p->batch.first];
	struct restconf_change c = { 0 };
	bool clear = batch->mode == DRV_UPDATE && item->op == DRV_ADD &&
		     is_in_the_way(p, item->xc, &p->displaced);

	if (clear) {
		put_removal(p, p->displaced, &c);
	} else {
		put_change(p, batch, p->batch.first, &c);
	}
	ask(p, clear ? on_cleared : on_changed, c.method, buf_cstr(&c.path), body_text(&c));
	change_fini(&c);
}

static void next_change(struct restconf *p)
{
	if (!p->h.cancelled && batch_next(&p->batch)) {
		send_item(p);
	} else {
		end_batch(p);
	}
}

/* ---- submit: it begins --------------------------------------------------------- */

static void set_port(struct restconf *p)
{
	int number = p->h.port.index + 1 + (p->h.port.is_out ? p->map.n_in : 0);
	char body[80];

	base_mark(&p->h, 0, 1, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT,
		  NULL, "sent and not answered");
	snprintf(body, sizeof(body), "{\"optical-switch:input\":{\"port-%s\":[%d]}}",
		 p->h.enable ? "enab" : "disab", number);
	ask(p, on_port_set, "POST", RESTCONF_PORT_STATE, body);
}

static void begin_changes(struct restconf *p)
{
	if (p->h.op == BASE_PORT) {
		set_port(p);
	} else if (p->h.batch->mode != DRV_REPLACE) {
		next_change(p);
	} else if (batch_replace(&p->batch)) {
		send_item(p);
	} else {
		base_end(&p->h, 0, NULL);
	}
}

static void on_identity_before(struct restconf *p, const struct http_answer *a)
{
	char line[DRV_TEXT_MAX];

	if (check_identity(p, a, line, sizeof(line))) {
		begin_changes(p);
	}
}

static void on_map_before(struct restconf *p, const struct http_answer *a)
{
	struct err err = { 0 };
	int rc = read_map(p, a, &err);

	if (rc) {
		misunderstood(p, rc, &err);
	} else if (p->checked != http_connections(p->client)) {
		ask(p, on_identity_before, "GET", RESTCONF_PRODUCT, NULL);
	} else {
		begin_changes(p);
	}
}

static void restconf_submit(struct driver_base *h)
{
	struct restconf *p = (struct restconf *)h;

	p->batch.first = p->batch.end = 0;
	p->code[0] = p->text[0] = '\0';
	if (h->op == BASE_SUBMIT && h->batch->n_items == 0 && h->batch->mode != DRV_REPLACE) {
		base_end(h, 0, NULL);
	} else if (have_client(p)) {
		ask(p, on_map_before, "GET", RESTCONF_CIRCUITS, NULL);
	}
}

static void restconf_explain(struct drv *dev, const struct drv_batch *batch,
			     drv_trace_fn fn, void *arg)
{
	const struct restconf *p = (struct restconf *)dev;
	bool replace = batch->mode == DRV_REPLACE;

	if (batch->n_items == 0 && !replace) {
		return;
	}
	trace_request(dev->name, "GET", RESTCONF_CIRCUITS, NULL, fn, arg);
	for (int i = 0; i < (replace ? 1 : batch->n_items); i++) {
		struct restconf_change c;

		put_change(p, batch, i, &c);
		trace_request(dev->name, c.method, buf_cstr(&c.path), body_text(&c), fn, arg);
		change_fini(&c);
	}
}

/* ---- life ------------------------------------------------------------------------ */

static void on_events_closed(void *arg)
{
	struct restconf *p = arg;

	p->events = NULL;
	base_stopped(&p->h);
}

static void on_client_closed(void *arg)
{
	struct restconf *p = arg;

	p->client = NULL;
	if (p->events) {
		restconf_events_close(p->events, on_events_closed, p);
	} else {
		base_stopped(&p->h);
	}
}

static void restconf_stop(struct driver_base *h)
{
	struct restconf *p = (struct restconf *)h;

	uv_timer_stop(&h->timer);
	if (p->client) {
		http_close(p->client, on_client_closed, p);
	} else {
		base_stopped(h);
	}
}

static void restconf_fini(struct driver_base *h)
{
	struct restconf *p = (struct restconf *)h;

	xc_map_fini(&p->map);
	free(p->by_high);
	free(p->user);
	free(p->password_file);
	secret_free(p->password);
	free(p->ca);
	free(p->cert);
	free(p->key);
}

/* Copies user and paths; an empty one is NULL. */
static int take_texts(struct restconf *p, const struct drv_class *cls,
		      const struct drv_config *cfg, struct err *err)
{
	const struct {
		const char *key;
		char **to;
	} paths[] = { { "password_file", &p->password_file }, { "tls_ca", &p->ca },
		      { "tls_cert", &p->cert }, { "tls_key", &p->key } };
	const char *user = base_option(cls, cfg, "user");
	char path[SECRET_PATH_MAX];
	int rc = 0;

	p->user = user[0] ? x_dup(user) : NULL;
	for (size_t i = 0; rc == 0 && i < sizeof(paths) / sizeof(paths[0]); i++) {
		rc = base_option_path(cls, cfg, paths[i].key, path, err);
		*paths[i].to = rc == 0 && path[0] ? x_dup(path) : NULL;
	}
	return rc;
}

/* What contradicts itself is refused, so that no user believes in a check
 * that is not made. */
static int check_security(const struct restconf *p, struct err *err)
{
	if (!p->conf.tls && (p->ca || p->cert || p->key || !p->conf.verify)) {
		return err_set(err, WEFT_EINVAL, "options tls_ca, tls_cert, tls_key and "
			       "tls_verify are for tls=yes");
	}
	if (!p->cert != !p->key) {
		return err_set(err, WEFT_EINVAL, "options tls_cert and tls_key are given together");
	}
	if (!p->user != !p->password_file) {
		return err_set(err, WEFT_EINVAL, "options user and password_file are given "
			       "together");
	}
	if (p->conf.tls && !p->conf.verify) {
		log_warn("drivers", "%s: tls_verify=no: whoever answers at %s is believed",
			 p->h.drv.name, p->h.address);
	}
	return 0;
}

static int take_options(struct restconf *p, const struct drv_config *cfg, struct err *err)
{
	const struct base_number numbers[] = {
		{ "gap_ms", 0, 60000, &p->gap_ms },
		{ "settle_ms", 0, 60000, &p->settle_ms },
		{ "complete_ms", 0, 600000, &p->complete_ms },
		{ "events_ms", 0, 3600000, &p->events_ms },
	};
	const struct drv_class *cls = p->h.drv.cls;
	struct http_conf *f = &p->conf;
	bool single;
	int rc;

	if ((rc = base_option_ints(cls, cfg, numbers, sizeof(numbers) / sizeof(numbers[0]), err)) ||
	    (rc = power_monitors_init(&p->monitors, cls, cfg, err)) ||
	    (rc = power_monitors_sides(&p->power, cls, cfg, err)) ||
	    (rc = base_option_choice(cls, cfg, "list", "pair", "pairs", &single, err)) ||
	    (rc = base_option_choice(cls, cfg, "tls", "yes", "no", &f->tls, err)) ||
	    (rc = base_option_choice(cls, cfg, "tls_verify", "yes", "no", &f->verify, err)) ||
	    (rc = take_texts(p, cls, cfg, err))) {
		return rc;
	}
	p->plural = !single;
	f->device = p->h.drv.name;
	f->address = p->h.address;
	f->user = p->user;
	f->ca = p->ca;
	f->cert = p->cert;
	f->key = p->key;
	f->timeout_ms = cfg->timeout_ms ? cfg->timeout_ms : DEFAULT_TIMEOUT_MS;
	f->gap_us = p->gap_ms * 1000;
	f->max_body = RESTCONF_MAX_BODY;
	return check_security(p, err);
}

static int restconf_init(struct driver_base *h, const struct drv_config *cfg,
			 struct tcp_conf *conf, struct err *err)
{
	struct restconf *p = (struct restconf *)h;
	char host[DRV_ADDRESS_MAX];
	int port, rc;

	(void)conf;
	if ((rc = tcp_parse_address(h->address, false, host, sizeof(host), &port, err)) ||
	    (rc = take_options(p, cfg, err))) {
		return rc;
	}
	p->batch.h = h;
	p->batch.map = &p->map;
	p->batch.chunk = 1;
	p->by_high = x_new((size_t)cfg->n_in, sizeof(*p->by_high));
	xc_map_init(&p->map, DRV_SPACE, cfg->n_in, cfg->n_out, cfg->any_to_any);
	return 0;
}

static const struct base_ops ops = {
	.init = restconf_init,
	.snapshot = restconf_snapshot,
	.submit = restconf_submit,
	.port_set = restconf_submit,
	.stop = restconf_stop,
	.fini = restconf_fini,
};

const struct drv_class drv_polatis_restconf = {
	.name = "polatis-restconf",
	.summary = "HUBER+SUHNER Polatis switches, RESTCONF over HTTP or HTTPS",
	.kind = DRV_SPACE,
	.options = options,
	BASE_CLASS(struct restconf, &ops),
	.explain = restconf_explain,
	.port_set = base_port_set,
	.cancel = base_cancel_submit,
};
