/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft watch and weft wait: the stream of events, and waiting for a
 * condition.
 *
 * watch prints events as they come: a line each for people, a JSON object a
 * line with --format json, so that both can be read while the stream goes on.
 * wait watches too, and asks for the status at every event: the stream begins
 * with one, so it neither polls nor misses what was so already. A weftd that
 * is not there yet, or restarts, is waited for; all of it within --timeout,
 * else exit code 124.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"
#include "lib/base/clock.h"

/* Between tries to connect. */
#define RETRY_MS 200
#define NS_PER_MS 1000000

/* ---- watch ---- */

struct watch {
	struct cli *c;
	int64_t left;		/* events to come, -1: no bound */
	struct err err;		/* of printing */
};

/* One object a line. */
static void add_json(struct buf *b, const Weft__V1__WatchResponse *ev)
{
	struct out *o = out_new(OUT_JSON_LINE);

	msg_out_event(o, ev);
	out_render(o, b);
	out_free(o);
}

/* Time, generation, kind and text, in columns. */
static void add_line(struct buf *b, const Weft__V1__WatchResponse *ev)
{
	char when[32], kind[32];

	buf_printf(b, "%s  %4" PRId64 "  %-18s  %s\n",
		   clk_iso(ev->at_ns, when, sizeof(when)), ev->generation,
		   msg_enum(&weft__v1__event_kind__descriptor, (int)ev->kind,
			    kind, sizeof(kind)),
		   ev->text);
}

/* Prints one event. Non-zero ends the stream: enough events, or an error. */
static int on_event(const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__WatchResponse *ev = (const Weft__V1__WatchResponse *)msg;
	struct watch *w = arg;
	struct buf b = { 0 };

	if (w->c->format == OUT_JSON) {
		add_json(&b, ev);
	} else {
		add_line(&b, ev);
	}
	cli_print_bytes(b.data, b.len, &w->err);
	buf_fini(&b);
	w->left -= w->left > 0;
	return w->err.code || w->left == 0;
}

/* Ends after --count events, on Ctrl-C, or with the connection. */
int cmd_watch(struct cli *c, struct err *err)
{
	Weft__V1__WatchRequest req = WEFT__V1__WATCH_REQUEST__INIT;
	Weft__V1__Number after = WEFT__V1__NUMBER__INIT;
	struct watch w = { .c = c, .left = -1 };
	struct rpc_client *client = NULL;
	int r;

	if (c->format == OUT_YAML) {
		return err_set(err, WEFT_EUSAGE, "weft watch: --format yaml "
			       "is not supported, only table and json");
	}
	if (cli_has(c, "after")) {
		req.after = &after;
	}
	if ((r = cli_opt_int(c, "after", 0, INT64_MAX, &after.value, err)) ||
	    (r = cli_opt_int(c, "count", 1, INT64_MAX, &w.left, err)) ||
	    (r = cli_connect(c, &client, err))) {
		return r;
	}
	cli_catch_signals();
	r = rpc_client_call(client, CLI_METHOD("Watch"), &req.base,
			    &weft__v1__watch_response__descriptor, 0, on_event,
			    &w, &cli_interrupted, err);
	rpc_client_close(client);
	if (w.err.code) {
		*err = w.err;
		return err->code;
	}
	/* Ended as it was meant to end. */
	return r == WEFT_ECANCELED ? 0 : r;
}

/* ---- wait ---- */

/* One of four conditions, of which three are off. */
struct wait {
	struct cli *c;
	const char *what;		/* as it was asked for */
	bool ready, no_change;		/* what for ... */
	int64_t generation;		/* -1: not for one */
	char device[CONF_MAX_NAME + 1]; /* "": not for one */
	int64_t by_ns;			/* monotonic; 0: no bound */
	bool met;
	struct err err;			/* looking has failed */
};

/* ready, no-change, generation=N or device=NAME:reachable. WEFT_EUSAGE. */
static int parse_for(struct wait *w, struct err *err)
{
	static const char reachable[] = ":reachable";
	const char *what = w->what, *colon = strrchr(what, ':');
	char *end;

	w->generation = -1;
	if (strcmp(what, "ready") == 0 || strcmp(what, "no-change") == 0) {
		w->ready = what[0] == 'r';
		w->no_change = !w->ready;
		return 0;
	}
	if (strncmp(what, "generation=", 11) == 0 && what[11] >= '0' && what[11] <= '9') {
		w->generation = strtoll(what + 11, &end, 10);
		if (!*end) {
			return 0;
		}
	}
	if (strncmp(what, "device=", 7) == 0 && colon && strcmp(colon, reachable) == 0 &&
	    colon > what + 7 && colon - what - 7 <= CONF_MAX_NAME) {
		snprintf(w->device, sizeof(w->device), "%.*s", (int)(colon - what - 7), what + 7);
		return 0;
	}
	return err_set(err, WEFT_EUSAGE, "--for: \"%s\" is not ready, "
		       "no-change, generation=N or device=NAME:reachable",
		       what);
}

/* Reading devices counts too: its outcome may start a change. */
static bool is_changing(const Weft__V1__StatusResponse *s)
{
	return s->state == WEFT__V1__STATE__STATE_CHANGING ||
	       s->state == WEFT__V1__STATE__STATE_READING;
}

/* A device that weftd does not know is not reachable. */
static bool is_met(const struct wait *w, const Weft__V1__StatusResponse *s)
{
	if (w->ready) {
		return s->state == WEFT__V1__STATE__STATE_READY;
	}
	if (w->no_change) {
		return !is_changing(s);
	}
	if (w->generation >= 0) {
		return s->generation >= w->generation;
	}
	for (size_t i = 0; i < s->n_devices; i++) {
		if (strcmp(s->devices[i]->name, w->device) == 0) {
			return s->devices[i]->reachable;
		}
	}
	return false;
}

/* Asks once; w->met is the answer. */
static int look(struct wait *w, struct err *err)
{
	Weft__V1__StatusRequest req = WEFT__V1__STATUS_REQUEST__INIT;
	ProtobufCMessage *res;
	int r;

	req.brief = true;
	r = cli_unary(w->c, CLI_METHOD("Status"), &req.base,
		      &weft__v1__status_response__descriptor, CLI_CALL_MS, &res, err);
	if (r == 0) {
		w->met = is_met(w, (const Weft__V1__StatusResponse *)res);
		protobuf_c_message_free_unpacked(res, NULL);
	}
	return r;
}

/* Each event is a reason to look again. */
static int on_watch_event(const ProtobufCMessage *msg, void *arg)
{
	struct wait *w = arg;

	(void)msg;
	return look(w, &w->err) || w->met;
}

/* Milliseconds left, at least 1; 0: no bound. */
static int left_ms(const struct wait *w)
{
	int64_t ms = (w->by_ns - clk_now_ns()) / NS_PER_MS;

	if (!w->by_ns) {
		return 0;
	}
	return ms < 1 ? 1 : ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/* Watches until it is met, or the connection is lost. */
static int watch_until(struct wait *w, struct err *err)
{
	Weft__V1__WatchRequest req = WEFT__V1__WATCH_REQUEST__INIT;
	struct rpc_client *client = NULL;
	int r = cli_connect(w->c, &client, err);

	w->err.code = 0;
	if (r == 0) {
		r = rpc_client_call(client, CLI_METHOD("Watch"), &req.base,
				    &weft__v1__watch_response__descriptor, left_ms(w),
					    on_watch_event,
				    w, &cli_interrupted, err);
	}
	rpc_client_close(client);
	if (w->err.code) {
		*err = w->err;
		return err->code;
	}
	return w->met ? 0 : r;
}

/* Worth another try: weftd was not there, and there is time. */
static bool goes_on(const struct wait *w, int r)
{
	return r == WEFT_EUNAVAIL && !cli_interrupted && (!w->by_ns || clk_now_ns() < w->by_ns);
}

/* Prints nothing on stdout: the exit code is the answer. */
int cmd_wait(struct cli *c, struct err *err)
{
	struct wait w = { .c = c, .what = cli_opt(c, "for") };
	int64_t timeout_ns = 0;
	bool said = false;
	int r;

	if ((r = cli_need(c, "for", err)) || (r = parse_for(&w, err)) ||
	    (r = cli_opt_unit(c, "timeout", UNIT_NS, &timeout_ns, err))) {
		return r;
	}
	w.by_ns = timeout_ns > 0 ? clk_now_ns() + timeout_ns : 0;
	cli_catch_signals();
	while (goes_on(&w, r = watch_until(&w, err))) {
		if (!said) {
			cli_say(c, CLI_NORMAL, "%s; waiting", err->msg);
		}
		said = true;
		poll(NULL, 0, RETRY_MS);
	}
	if (r == WEFT_ETIMEOUT || (r == WEFT_EUNAVAIL && w.by_ns)) {
		r = err_set(err, WEFT_ETIMEOUT, "%s: not so in time", w.what);
	}
	return r;
}
