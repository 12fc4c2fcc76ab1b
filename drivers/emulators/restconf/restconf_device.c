/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of Polatis' RESTCONF: enough of HTTP/1.1 for one request
 * after the other in a session, and the resources that the driver asks for.
 *
 * Public facts are paths, names and values of what is read and written, 201 for
 * a circuit that is new and 204 for one that replaces another or is removed,
 * 409 for ports in use, 404 for the removal of a circuit that is not there, 204
 * for an empty list, ETags (PublicQuantumNetwork/pqn-stack, quintons/polatis2,
 * alexandret01/UFABC_REDES, ms412/Polartis). Reconstructed: that a PUT is
 * refused when its egress is in use by another ingress, the tags and texts of
 * errors, the status of a port that failed (500), ports by RFC 8040's form of
 * an RPC, entries of the log, and the stream.
 *
 * Forms: `prefixed`, as pqn-stack reads it; `bare`, names without the module's
 * prefix, lists alone, numbers for powers, chunks (as quintons/polatis2 and
 * UFABC_REDES take it), errors in plain text; `pairs`, an older list name
 * (ONOS' NETCONF driver), strings for numbers, application/json, 404 for an
 * empty list.
 */
#include "drivers/emulators/core/emulator.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "drivers/core/parse.h"
#include "drivers/emulators/core/fibre_plant.h"
#include "drivers/restconf/restconf.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

/* admin:roo, and whatever follows: root, as devices come */
#define LOG_IN "Basic YWRtaW46cm9v"
#define STREAM_PATH "/api/streams/Polatis/json"
#define EVENT_STREAM 1		/* mark of a session that listens */
#define MAX_LOG 100

struct restconf_device {
	struct emu *e;
	bool *disabled;		/* by request, per flat port */
	bool *failed;		/* as last reported */
	struct xc_map known;	/* as last reported */
	char *log[MAX_LOG];	/* the last entries, by number modulo MAX_LOG */
	int n_log;		/* all that were made; they are numbered from 1 */
	uint64_t version;	/* in the ETag */
	int64_t last_ns;	/* the last request came */
};

struct rest_request {
	char method[12], path[256];
	char etag[64], log_in[128], accept[128];
	char *body;		/* "" without one */
};

struct rest_answer {
	int status;
	const char *type;	/* NULL: JSON as the form has it */
	const char *location;	/* NULL: none */
	struct buf body;
};

/* Unlike `prefixed`, the others are told apart by name. */
static const struct emu_form forms[] = {
	{ .name = "prefixed" }, { .name = "bare" }, { .name = "pairs" }, { .name = NULL } };

static bool is_bare(const struct restconf_device *d)
{
	return emu_form_is(d->e, "bare");
}

static bool is_plural(const struct restconf_device *d)
{
	return emu_form_is(d->e, "pairs");
}

static const char *prefix(const struct restconf_device *d)
{
	return is_bare(d) ? "" : "optical-switch:";
}

/* Around numbers. */
static const char *quote(const struct restconf_device *d)
{
	return is_plural(d) ? "\"" : "";
}

static void fail(struct restconf_device *d, struct rest_answer *a, int status, const char *tag,
		 const char *text)
{
	a->status = status;
	buf_reset(&a->body);
	if (is_bare(d)) {
		a->type = "text/plain";
		buf_printf(&a->body, "%s: %s\n", tag, text);
	} else {
		buf_printf(&a->body, "{\"ietf-restconf:errors\":{\"error\":[{\"error-type\":"
			   "\"application\",\"error-tag\":\"%s\",\"error-message\":\"%s\"}]}}",
			   tag, text);
	}
}

/* ---- what can be read ------------------------------------------------------ */

static void product(struct restconf_device *d, struct rest_answer *a)
{
	const struct xc_map *m = &d->e->mem;
	char size[16];

	if (m->any_to_any) {
		snprintf(size, sizeof(size), "CC");
	} else {
		snprintf(size, sizeof(size), "%d", m->n_out);
	}
	buf_printf(&a->body, "{\"%sproduct-information\":{\"manufacturer\":\"Polatis\","
		   "\"serial-number\":\"%s\",\"model-name\":\"N-VST-%dx%s-LA1-DMHNV-701\","
		   "\"software-version\":\"6.7.3.9\"}}", prefix(d), d->e->conf.name, m->n_in, size);
}

static void circuits(struct restconf_device *d, struct rest_answer *a)
{
	const struct xc_map *m = &d->e->mem;
	const char *q = quote(d), *comma = "";
	int n = 0;

	for (int i = 0; i < m->n_in; i++) {
		n += m->peer[i] > i;
	}
	if (n == 0 && is_plural(d)) {
		fail(d, a, 404, "data-missing", "no instance");
		return;
	}
	if (n == 0 && !is_bare(d)) {
		a->status = 204;
		return;
	}
	if (is_bare(d)) {
		buf_str(&a->body, n ? "{\"pair\":[" : "{\"cross-connects\":{}}");
	} else {
		buf_printf(&a->body, "{\"%scross-connects\":{\"%s\":%s", prefix(d),
			   is_plural(d) ? "pairs" : "pair", n > 1 || is_plural(d) ? "[" : "");
	}
	for (int i = 0; i < m->n_in; i++) {
		int low = i + 1, high = (int)m->peer[i] + 1;
		bool turn = m->any_to_any && is_plural(d);

		if (m->peer[i] > i) {
			buf_printf(&a->body, "%s{\"ingress\":%s%d%s,\"egress\":%s%d%s}", comma, q,
				   turn ? high : low, q, q, turn ? low : high, q);
			comma = ",";
		}
	}
	buf_str(&a->body, is_bare(d) ? (n ? "]}" : "") :
			  n > 1 || is_plural(d) ? "]}}" : "}}");
}

static bool is_failed(struct restconf_device *d, int flat)
{
	return faults_hold_port(&d->e->faults, FAULT_PORT_FAILED, flat);
}

static bool is_off(struct restconf_device *d, int flat)
{
	return d->disabled[flat] || faults_hold_port(&d->e->faults, FAULT_PORT_DISABLED, flat);
}

static void begin_ports(struct restconf_device *d, struct rest_answer *a, const char *name)
{
	if (is_bare(d)) {
		buf_str(&a->body, "{\"port\":[");
	} else {
		buf_printf(&a->body, "{\"%s%s\":{\"port\":[", prefix(d), name);
	}
}

static void ports(struct restconf_device *d, struct rest_answer *a)
{
	begin_ports(d, a, "port-config");
	for (int i = 0; i < d->e->mem.n_ports; i++) {
		buf_printf(&a->body, "%s{\"port-id\":%s%d%s,\"status\":\"%s\",\"label\":\"\","
			   "\"peer-port\":\"\"}", i ? "," : "", quote(d), i + 1, quote(d),
			   is_failed(d, i) ? "FAILED" : is_off(d, i) ? "DISABLED" : "ENABLED");
	}
	buf_str(&a->body, is_bare(d) ? "]}" : "]}}");
}

static void powers(struct restconf_device *d, struct rest_answer *a)
{
	const char *q = is_bare(d) ? "" : "\"";

	if (faults_hold(&d->e->faults, FAULT_NO_MONITORS, NULL)) {
		fail(d, a, 404, "unknown-element", "no opm-power");
		return;
	}
	begin_ports(d, a, "opm-power");
	for (int i = 0; i < d->e->mem.n_ports; i++) {
		buf_printf(&a->body, "%s{\"port-id\":%s%d%s,\"power\":%s%.2f%s}", i ? "," : "",
			   quote(d), i + 1, quote(d), q, plant_port_mdbm(d->e, i) / 1000.0, q);
	}
	buf_str(&a->body, is_bare(d) ? "]}" : "]}}");
}

static void startup(struct restconf_device *d, struct rest_answer *a)
{
	buf_printf(&a->body, "{\"%sstartup-mode\":\"%s\"}", is_bare(d) ? "" : "polatis-switch:",
		   d->e->conf.state ? "MODE_PRESERVE" : "MODE_VOLATILE");
}

/* The start counter as a time. */
static void boot(struct restconf_device *d, struct rest_answer *a)
{
	int n = (int)(d->e->mem.boots % 3600);

	if (is_plural(d)) {
		fail(d, a, 404, "unknown-element", "no boot-datetime");
		return;
	}
	buf_printf(&a->body, "{\"%sboot-datetime\":\"2018-03-14T12.%02d.%02dZ\"}",
		   is_bare(d) ? "" : "polatis-switch:", n / 60, n % 60);
}

static void notification_log(struct restconf_device *d, struct rest_answer *a)
{
	int first = d->n_log > MAX_LOG ? d->n_log - MAX_LOG : 0;

	if (is_plural(d)) {
		fail(d, a, 404, "unknown-element", "no notification-log");
		return;
	}
	buf_printf(&a->body, "{\"%slog\":[", is_bare(d) ? "" : "polatis-switch:");
	for (int i = first; i < d->n_log; i++) {
		buf_printf(&a->body, "%s{\"id\":%d,%s}", i > first ? "," : "", i + 1,
			   d->log[i % MAX_LOG]);
	}
	buf_str(&a->body, "]}");
}

static void streams(struct restconf_device *d, struct rest_answer *a)
{
	if (is_bare(d) || is_plural(d)) {
		fail(d, a, 404, "unknown-element", "no streams");
		return;
	}
	buf_str(&a->body, "{\"ietf-restconf-monitoring:streams\":{\"stream\":[{\"name\":"
		"\"Polatis\",\"access\":[{\"encoding\":\"json\",\"location\":\""
		STREAM_PATH "\"}]}]}}");
}

static const struct {
	const char *path;	/* below RESTCONF_DATA, without optical-switch: */
	void (*read)(struct restconf_device *d, struct rest_answer *a);
} resources[] = {
	{ "product-information", product },
	{ "cross-connects", circuits },
	{ "port-config", ports },
	{ "opm-power", powers },
	{ "system-config/startup-mode", startup },
	{ "system-config/boot-datetime", boot },
	{ "notification-log/log", notification_log },
	{ "ietf-restconf-monitoring:restconf-state/streams", streams },
};

/* ---- what can be changed ---------------------------------------------------- */

/* True, with an answer, when a port of xc cannot be connected. */
static bool has_obstacle(struct restconf_device *d, struct optics_xc xc, struct rest_answer *a)
{
	int ends[] = { xc_map_flat_in(&d->e->mem, xc.in), xc_map_flat_out(&d->e->mem, xc.out) };
	char text[48];

	for (int i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "port %d", ends[i] + 1);
		if (is_failed(d, ends[i]) || is_off(d, ends[i]) ||
		    faults_hold_port(&d->e->faults, FAULT_REFUSE_PORT, ends[i])) {
			fail(d, a, 500, "operation-failed", text);
			return true;
		}
		if (faults_hold_port(&d->e->faults, FAULT_BUSY, ends[i])) {
			fail(d, a, 409, "in-use", text);
			return true;
		}
		if (faults_hold_port(&d->e->faults, FAULT_LOCKED, ends[i])) {
			fail(d, a, 403, "access-denied", "the port is of subswitch noc");
			return true;
		}
	}
	return false;
}

static void connect_xc(struct restconf_device *d, struct optics_xc xc)
{
	if (!emu_holds_xc(d->e, FAULT_IGNORE_PORT, xc)) {
		xc_map_connect(&d->e->mem, xc);
	}
}

/* The pairs of a request; false with an answer. */
static bool take_pairs(struct restconf_device *d, const char *body, struct restconf_pair **pairs,
		       int *n, struct rest_answer *a)
{
	struct optics_xc xc;
	bool good = restconf_parse_pairs(body, pairs, n, NULL) == 0;

	for (int i = 0; good && i < *n; i++) {
		if (!xc_map_pair(&d->e->mem, (*pairs)[i].ingress, (*pairs)[i].egress, &xc)) {
			free(*pairs);
			good = false;
		}
	}
	if (!good) {
		fail(d, a, 400, "invalid-value", "no such pair of ports");
	}
	return good;
}

/* Whether another ingress than xc's has one of its ports. */
static bool is_taken(const struct restconf_device *d, struct optics_xc xc)
{
	const struct xc_map *m = &d->e->mem;
	int at_in = m->peer[xc_map_flat_in(m, xc.in)], at_out = m->peer[xc_map_flat_out(m, xc.out)];

	return (at_out >= 0 && at_out != xc_map_flat_in(m, xc.in)) ||
	       (m->any_to_any && at_in >= 0 && at_in < xc.in);
}

static void put_pair(struct restconf_device *d, int key, const char *body, struct rest_answer *a)
{
	struct xc_map *m = &d->e->mem;
	struct restconf_pair *pairs;
	struct optics_xc xc;
	int n;

	if (!take_pairs(d, body, &pairs, &n, a)) {
		return;
	}
	if (n != 1 || pairs[0].ingress != key) {
		fail(d, a, 400, "invalid-value", "another ingress than in the path");
	} else {
		xc_map_pair(m, pairs[0].ingress, pairs[0].egress, &xc);
		if (faults_strike(&d->e->faults, FAULT_RACE, NULL)) {
			xc_map_connect(m, xc);
		}
		if (!has_obstacle(d, xc, a)) {
			a->status = m->peer[xc_map_flat_in(m, xc.in)] >= 0 ? 204 : 201;
			if (is_taken(d, xc)) {
				fail(d, a, 409, "in-use", "the port is in use");
			} else {
				connect_xc(d, xc);
			}
		}
	}
	free(pairs);
}

/* All or nothing. */
static void put_all(struct restconf_device *d, const char *body, struct rest_answer *a)
{
	struct restconf_pair *pairs;
	struct optics_xc xc;
	int64_t half = INT64_MAX;
	int n;

	if (!take_pairs(d, body, &pairs, &n, a)) {
		return;
	}
	for (int i = 0; i < n && a->status == 200; i++) {
		xc_map_pair(&d->e->mem, pairs[i].ingress, pairs[i].egress, &xc);
		has_obstacle(d, xc, a);
	}
	if (a->status == 200) {
		a->status = 204;
		faults_hold(&d->e->faults, FAULT_HALF, &half);
		xc_map_clear(&d->e->mem);
		for (int i = 0; i < n && i < half; i++) {
			xc_map_pair(&d->e->mem, pairs[i].ingress, pairs[i].egress, &xc);
			connect_xc(d, xc);
		}
	}
	free(pairs);
}

/* A circuit is known by its ingress, as it is listed. */
static void delete_pair(struct restconf_device *d, int key, struct rest_answer *a)
{
	struct xc_map *m = &d->e->mem;
	int peer = key >= 1 && key <= m->n_ports ? m->peer[key - 1] : -1;
	bool turned = m->any_to_any && is_plural(d);

	if (peer < 0 || (turned ? peer > key - 1 : peer < key - 1)) {
		fail(d, a, 404, "data-missing", "no such pair");
	} else {
		a->status = 204;
		xc_map_release(m, key - 1);
	}
}

/* {"optical-switch:input":{"port-enab":[3]}} */
static void set_ports(struct restconf_device *d, const char *body, struct rest_answer *a)
{
	bool off = strstr(body, "\"port-disab\"");
	const char *list = strchr(body, '[');
	int n;

	if (!list || (!off && !strstr(body, "\"port-enab\"")) ||
	    !(list++, parse_number(&list, 1, d->e->mem.n_ports, ']', &n))) {
		fail(d, a, 400, "invalid-value", "no such port");
		return;
	}
	a->status = 204;
	d->disabled[n - 1] = off;
	if (off) {
		xc_map_release(&d->e->mem, n - 1);
	}
}

/* ---- requests ---------------------------------------------------------------- */

/* The part of a path behind RESTCONF_DATA and the module's name; NULL when it
 * is elsewhere. */
static const char *resource(const char *path)
{
	size_t n = strlen(RESTCONF_DATA);

	if (strncmp(path, RESTCONF_DATA, n) != 0) {
		return NULL;
	}
	return path + n + (strncmp(path + n, "optical-switch:", 15) == 0 ? 15 : 0);
}

static void change(struct restconf_device *d, const struct rest_request *q, struct rest_answer *a)
{
	const char *at = resource(q->path);
	const char *list = is_plural(d) ? "cross-connects/pairs=" : "cross-connects/pair=";
	bool pair = at && strncmp(at, list, strlen(list)) == 0;
	int key = pair ? atoi(at + strlen(list)) : 0;

	if (pair && strcmp(q->method, "PUT") == 0) {
		put_pair(d, key, q->body, a);
	} else if (pair && strcmp(q->method, "DELETE") == 0) {
		delete_pair(d, key, a);
	} else if (at && strcmp(at, "cross-connects") == 0 && strcmp(q->method, "PUT") == 0) {
		put_all(d, q->body, a);
	} else if (at && strcmp(at, "cross-connects") == 0 && strcmp(q->method, "DELETE") == 0) {
		a->status = 204;
		xc_map_clear(&d->e->mem);
	} else if (strcmp(q->path, RESTCONF_PORT_STATE) == 0 && strcmp(q->method, "POST") == 0) {
		set_ports(d, q->body, a);
	} else {
		fail(d, a, at ? 404 : 405, "unknown-element", "there is no such thing to change");
	}
	emu_changed(d->e);
}

static void read_resource(struct restconf_device *d, const struct rest_request *q,
			  struct rest_answer *a)
{
	const char *at = resource(q->path);

	for (size_t i = 0; at && i < sizeof(resources) / sizeof(resources[0]); i++) {
		if (strcmp(at, resources[i].path) == 0) {
			resources[i].read(d, a);
			return;
		}
	}
	fail(d, a, 404, "unknown-element", "there is no such thing");
}

static const char *reason(int status)
{
	static const struct {
		int status;
		const char *text;
	} reasons[] = { { 200, "OK" }, { 201, "Created" }, { 204, "No Content" },
			{ 304, "Not Modified" }, { 404, "Not Found" }, { 409, "Conflict" } };

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].status == status) {
			return reasons[i].text;
		}
	}
	return "Status";
}

static void put_answer(struct restconf_device *d, const struct rest_answer *a, struct buf *out)
{
	bool none = a->status == 204 || a->status == 304;

	buf_printf(out, "HTTP/1.1 %d %s\r\nCache-Control: private, no-cache\r\n", a->status,
		   reason(a->status));
	if (!is_plural(d)) {
		buf_printf(out, "ETag: \"1516-%llu\"\r\n", (unsigned long long)d->version);
	}
	if (a->location) {
		buf_printf(out, "Location: %s\r\n", a->location);
	}
	if (a->status == 503) {
		buf_str(out, "Retry-After: 1\r\n");
	}
	if (none) {
		buf_str(out, "\r\n");
		return;
	}
	buf_printf(out, "Content-Type: %s\r\n", a->type ? a->type :
		   is_plural(d) ? "application/json" : RESTCONF_JSON);
	if (is_bare(d) && a->body.len) {
		buf_printf(out, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", a->body.len);
		buf_add(out, a->body.data, a->body.len);
		buf_str(out, "\r\n0\r\n\r\n");
	} else {
		buf_printf(out, "Content-Length: %zu\r\n\r\n", a->body.len);
		buf_add(out, buf_cstr(&a->body), a->body.len);
	}
}

/* What comes in place of what was asked for: a fault, a log-in that is wrong,
 * or what is as it was. */
static bool other_answer(struct restconf_device *d, const struct rest_request *q, bool set,
			 struct rest_answer *a)
{
	struct faults *f = &d->e->faults;
	char etag[40], words[160];
	int64_t status;

	snprintf(etag, sizeof(etag), "\"1516-%llu\"", (unsigned long long)d->version);
	if (faults_strike(f, FAULT_STATUS, &status) ||
	    (set && faults_strike(f, FAULT_STATUS_SET, &status))) {
		fail(d, a, (int)status, "operation-failed", "as the fault has it");
		a->location = status / 100 == 3 ? "http://127.0.0.1:9/elsewhere" : NULL;
	} else if (q->log_in[0] && strncmp(q->log_in, LOG_IN, strlen(LOG_IN)) != 0) {
		snprintf(words, sizeof(words), "wrong user or password: %s", q->log_in);
		fail(d, a, 401, "access-denied", words);
	} else if (!strstr(q->accept, "json")) {
		fail(d, a, 406, "invalid-value", "only JSON here");
	} else if (!set && q->etag[0] && strcmp(q->etag, etag) == 0) {
		a->status = 304;
	} else {
		return false;
	}
	return true;
}

static void keep_known(struct restconf_device *d)
{
	xc_map_copy(&d->known, &d->e->mem);
}

/* A request that comes sooner behind another than the device can take it is
 * lost. */
static bool is_too_quick(struct restconf_device *d)
{
	int64_t now = clk_now_ns(), gap = now - d->last_ns, min_ms;

	d->last_ns = now;
	return faults_hold(&d->e->faults, FAULT_OVERRATE, &min_ms) && gap < min_ms * 1000000;
}

static void begin_stream(struct emu_client *c)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
				   "Cache-Control: no-cache\r\n\r\n: hello\n\n";

	*emu_client_mark(c) = EVENT_STREAM;
	emu_reply(c, head, sizeof(head) - 1);
}

static void run(struct emu_client *c, const struct rest_request *q)
{
	struct restconf_device *d = emu_of(c)->device;
	bool set = strcmp(q->method, "GET") != 0;
	struct rest_answer a = { .status = 200 };
	enum emu_fate fate = EMU_DO;
	struct buf out = { 0 };

	d->e->n_commands++;
	if (is_too_quick(d)) {
		return;
	}
	if (!set && strcmp(q->path, STREAM_PATH) == 0) {
		begin_stream(c);
		return;
	}
	if (set) {
		fate = emu_set_command(c);
	}
	if (fate != EMU_EAT && !other_answer(d, q, set, &a)) {
		if (set) {
			change(d, q, &a);
			keep_known(d);
			d->version++;
		} else {
			read_resource(d, q, &a);
		}
	}
	put_answer(d, &a, &out);
	buf_fini(&a.body);
	emu_finish_command(c, fate, &out);
}

/* The value of a header in a head that ends in a blank line. */
static void header(const char *head, const char *name, char *value, size_t size)
{
	const char *line = strstr(head, "\r\n");
	size_t n = strlen(name);

	value[0] = '\0';
	for (; line && line[2]; line = strstr(line + 2, "\r\n")) {
		const char *at = line + 2;

		if (strncasecmp(at, name, n) == 0 && at[n] == ':') {
			at += n + 1 + strspn(at + n + 1, " ");
			snprintf(value, size, "%.*s", (int)strcspn(at, "\r\n"), at);
		}
	}
}

/* A request with its whole body; 0 when it is not whole yet. */
static int64_t restconf_input(struct emu_client *c, const uint8_t *data, size_t len)
{
	const char *end = memmem(data, len, "\r\n\r\n", 4);
	struct rest_request q = { .body = NULL };
	size_t head_len = end ? (size_t)(end - (const char *)data) + 4 : 0, body_len;
	char *head, length[24];
	int64_t used;

	if (!end) {
		return 0;
	}
	head = x_ndup((const char *)data, head_len);
	header(head, "content-length", length, sizeof(length));
	header(head, "if-none-match", q.etag, sizeof(q.etag));
	header(head, "authorization", q.log_in, sizeof(q.log_in));
	header(head, "accept", q.accept, sizeof(q.accept));
	body_len = (size_t)atoi(length);
	if (body_len > RESTCONF_MAX_BODY || sscanf(head, "%11s %255s HTTP/1.1", q.method, q.path) !=
	    2) {
		used = -1;
	} else if (len < head_len + body_len) {
		used = 0;
	} else {
		q.body = x_ndup((const char *)data + head_len, body_len);
		run(c, &q);
		used = (int64_t)(head_len + body_len);
	}
	free(q.body);
	free(head);
	return used;
}

/* ---- what is told unasked ------------------------------------------------------ */

/* Into the log, and to all who listen. */
static void tell(struct restconf_device *d, const char *name, int flat, const char *more)
{
	struct buf entry = { 0 }, out = { 0 };
	char **at = &d->log[d->n_log % MAX_LOG];

	buf_printf(&entry, "\"eventTime\":\"2018-03-14T12:24:46Z\",\"optical-switch:%s\":"
		   "{\"port-id\":%d%s}", name, flat + 1, more);
	buf_printf(&out, "data: {\"ietf-restconf:notification\":{%s}}\n\n", buf_cstr(&entry));
	emu_send_event_marked(d->e, EVENT_STREAM, out.data, out.len);
	buf_fini(&out);
	free(*at);
	*at = buf_steal(&entry);
	d->n_log++;
	d->version++;
}

static void tell_change(struct optics_xc xc, bool connect, void *arg)
{
	struct restconf_device *d = arg;
	char more[64];

	snprintf(more, sizeof(more), ",\"user\":\"noc\",\"text\":\"%s %d\"",
		 connect ? "connected to" : "disconnected from",
		 xc_map_flat_out(&d->e->mem, xc.out) + 1);
	tell(d, "activity-log-notification", xc_map_flat_in(&d->e->mem, xc.in), more);
}

static void tell_failures(struct restconf_device *d)
{
	for (int i = 0; i < d->e->mem.n_ports; i++) {
		bool failed = is_failed(d, i);

		if (failed != d->failed[i]) {
			tell(d, failed ? "port-power-alarm" : "port-power-alarm-clear", i, "");
		}
		d->failed[i] = failed;
	}
}

static void restconf_refresh(struct emu *e, enum emu_map_event event)
{
	struct restconf_device *d = e->device;

	if (event == EMU_RESTARTED) {
		memset(d->disabled, 0, (size_t)e->mem.n_ports * sizeof(bool));
	} else if (event == EMU_OTHER_USER) {
		xc_map_changes(&d->known, &e->mem, tell_change, d);
		tell_failures(d);
	}
	d->version++;
	keep_known(d);
}

/* ---- life ------------------------------------------------------------------------ */

static void restconf_close(struct emu *e)
{
	struct restconf_device *d = e->device;

	for (int i = 0; d && i < MAX_LOG; i++) {
		free(d->log[i]);
	}
	if (d) {
		xc_map_fini(&d->known);
		free(d->disabled);
		free(d->failed);
	}
	free(d);
}

static void restconf_open(struct emu *e)
{
	const struct xc_map *m = &e->mem;
	struct restconf_device *d = x_new(1, sizeof(*d));

	d->e = e;
	e->device = d;
	d->disabled = x_new((size_t)m->n_ports, sizeof(bool));
	d->failed = x_new((size_t)m->n_ports, sizeof(bool));
	xc_map_init(&d->known, m->kind, m->n_in, m->n_out, m->any_to_any);
	keep_known(d);
}

/* Light stops at a disabled port whatever the map shows. */
static bool is_dark(struct emu *e, struct optics_xc xc)
{
	struct restconf_device *d = e->device;

	return is_off(d, xc_map_flat_in(&e->mem, xc.in)) ||
	       is_off(d, xc_map_flat_out(&e->mem, xc.out));
}

const struct emu_dialect emu_restconf = {
	.name = "polatis-restconf",
	.kind = DRV_SPACE,
	.max_input = RESTCONF_MAX_BODY,
	.forms = forms,
	.open = restconf_open,
	.close = restconf_close,
	.input = restconf_input,
	.refresh = restconf_refresh,
	.dark = is_dark,
};
