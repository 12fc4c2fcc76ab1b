/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call on the server: its request's headers and messages, the handler that
 * has it, and the response. It is decided once (end); after that only what is
 * queued is sent, then the status. Three parties may end it: the handler
 * (rpc_finish), the client (a reset, rpc_call_detach) and time
 * (rpc_call_expire), in any order; the handler hears of the others by its
 * cancel callback, from which it may not send.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/rpc/private.h"

/* What HTTP/2 counts for a header field beside its bytes. */
#define HEADER_OVERHEAD 32

static const struct rpc_limits *limits(const struct rpc_call *call)
{
	return &call->conn->server->cfg.limits;
}

struct rpc_call *rpc_call_new(struct rpc_conn *conn, int32_t stream)
{
	struct rpc_call *call = x_new(1, sizeof(*call));

	call->conn = conn;
	call->stream = stream;
	call->peer = conn->peer;
	call->in.max = conn->server->cfg.limits.max_request;
	TAILQ_INSERT_TAIL(&conn->calls, call, link);
	return call;
}

static void call_free(struct rpc_call *call)
{
	rpc_free_message(call->request);
	rpc_deframer_fini(&call->in);
	buf_fini(&call->headers);
	buf_fini(&call->out);
	buf_fini(&call->details);
	free(call);
}

/* ---- the response ---- */

static size_t unsent(const struct rpc_call *call)
{
	return call->out.len - call->out_sent;
}

/* The trailers; details holds what h points to. */
static void add_status(struct rpc_call *call, struct rpc_headers *h, struct buf *details)
{
	rpc_headers_add_status(h, call->status, &call->err);
	rpc_detail_encode(call->status, &call->err, &call->details, details);
	if (details->len > 0) {
		rpc_headers_add(h, "grpc-status-details-bin", details->data);
	}
}

static void submit_trailers(struct rpc_call *call)
{
	struct rpc_headers h = { .n = 0 };
	struct buf details = { 0 };

	add_status(call, &h, &details);
	/* Fails only for lack of memory; the stream then ends without a
	 * status, which clients report as an error. */
	if (nghttp2_submit_trailer(call->conn->t.session, call->stream, h.nv, h.n)) {
		rpc_conn_close(call->conn);
	}
	buf_fini(&details);
}

/* nghttp2 asks for up to `length` bytes of response. */
static ssize_t read_response(nghttp2_session *session, int32_t stream, uint8_t *data, size_t length,
			     uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct rpc_call *call = source->ptr;
	size_t n;

	(void)session, (void)stream, (void)user;
	if (unsent(call) == 0 && call->held && !call->ended && call->on_ready) {
		call->on_ready(call, call->ready_arg);
	}
	n = unsent(call) < length ? unsent(call) : length;
	if ((n == 0 || call->held_until) && !call->ended) {
		call->deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	if (n > 0) {
		memcpy(data, call->out.data + call->out_sent, n);
		call->out_sent += n;
		call->conn->queued -= n;
	}
	if (unsent(call) == 0) {
		buf_reset(&call->out);
		call->out_sent = 0;
		if (call->ended) {
			*flags |= NGHTTP2_DATA_FLAG_EOF;
		}
		if (call->ended && !call->plain) {
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			submit_trailers(call);
		}
	}
	return (ssize_t)n;
}

/* Submits response headers: with data to follow, or the only ones. */
static void submit_headers(struct rpc_call *call, struct rpc_headers *h, bool more)
{
	nghttp2_data_provider provider = { .source.ptr = call,
					   .read_callback = read_response };

	call->answered = true;
	if (nghttp2_submit_response(call->conn->t.session, call->stream, h->nv,
				    h->n, more ? &provider : NULL)) {
		rpc_conn_close(call->conn);
	}
	rpc_server_mark_dirty(call->conn);
}

static void add_response_headers(struct rpc_headers *h)
{
	rpc_headers_add(h, ":status", "200");
	rpc_headers_add(h, "content-type", "application/grpc");
	rpc_headers_add(h, "grpc-accept-encoding", "identity");
}

static void resume(struct rpc_call *call)
{
	if (call->deferred) {
		call->deferred = false;
		nghttp2_session_resume_data(call->conn->t.session, call->stream);
	}
	rpc_server_mark_dirty(call->conn);
}

/* No handler needs the request (any more): gives its memory back. */
static void drop_request(struct rpc_call *call)
{
	if (call->conn) {
		call->conn->held -= call->in.body.len + call->request_bytes;
	}
	rpc_deframer_fini(&call->in);
	rpc_free_message(call->request);
	call->request = NULL;
	call->request_bytes = 0;
}

/* Decides the status. What is queued is still sent, then the trailers; a
 * call with nothing sent yet gets the short form, headers only. */
static void end(struct rpc_call *call, enum rpc_status status, const struct err *err)
{
	struct rpc_headers h = { .n = 0 };
	struct buf details = { 0 };

	const struct rpc_server_config *cfg = &call->conn->server->cfg;

	call->ended = true;
	call->status = status;
	call->err = *err;
	if (cfg->ended) {
		cfg->ended(rpc_call_path(call), status, cfg->arg);
	}
	if (!call->held) {
		drop_request(call);
	}
	if (call->answered) {
		resume(call);
		return;
	}
	add_response_headers(&h);
	add_status(call, &h, &details);
	submit_headers(call, &h, false);
	buf_fini(&details);
}

static void end_err(struct rpc_call *call, const struct err *err)
{
	end(call, rpc_status_of_code(err->code), err);
}

/* No client waits for the handler's answer any more. */
static void cancel(struct rpc_call *call)
{
	if (call->held && call->on_cancel) {
		call->cancelling = true;
		call->on_cancel(call, call->cancel_arg);
		call->cancelling = false;
		call->held = false;
	}
}

/* Ends a call that a handler may have: the callback comes first, as it may
 * still look at the request; but it may not send any more. */
static void break_off(struct rpc_call *call, enum rpc_status status, const struct err *err)
{
	call->ended = true;
	cancel(call);
	end(call, status, err);
}

/* Not a gRPC request at all: a plain HTTP answer. */
static void end_http(struct rpc_call *call, const char *http_status)
{
	struct rpc_headers h = { .n = 0 };

	rpc_headers_add(&h, ":status", http_status);
	call->ended = true;
	submit_headers(call, &h, false);
}

/* ---- the request ---- */

void rpc_call_add_header(struct rpc_call *call, const uint8_t *name, size_t name_len,
			 const uint8_t *value, size_t value_len)
{
	struct buf *b = &call->headers;

	if (call->headers_done) {
		return;		/* request trailers mean nothing */
	}
	call->header_bytes += name_len + value_len + HEADER_OVERHEAD;
	if (call->header_bytes > RPC_MAX_HEADER_BYTES) {
		return;
	}
	if (memchr(name, '\0', name_len) || memchr(value, '\0', value_len)) {
		call->headers_bad = true;
		return;
	}
	buf_add(b, name, name_len);
	buf_char(b, '\0');
	buf_add(b, value, value_len);
	buf_char(b, '\0');
}

const char *rpc_call_metadata(const struct rpc_call *call, const char *key)
{
	const char *p = buf_cstr(&call->headers);
	const char *end_of_headers = p + call->headers.len;

	while (p < end_of_headers) {
		const char *value = p + strlen(p) + 1;

		if (strcmp(p, key) == 0) {
			return value;
		}
		p = value + strlen(value) + 1;
	}
	return NULL;
}

/* "application/grpc", also with "+proto" or parameters. */
static bool is_grpc(const char *content_type)
{
	static const char want[] = "application/grpc";
	const char *rest;

	if (!content_type || strncmp(content_type, want, strlen(want)) != 0) {
		return false;
	}
	rest = content_type + strlen(want);
	if (strncmp(rest, "+proto", 6) == 0) {
		rest += 6;
	}
	return *rest == '\0' || *rest == ';';
}

static const struct rpc_method *find_method(const struct rpc_call *call, const char *path)
{
	const struct rpc_method *m = call->conn->server->cfg.methods;

	while (m->path && strcmp(m->path, path) != 0) {
		m++;
	}
	return m->path ? m : NULL;
}

static int read_timeout(struct rpc_call *call, struct err *err)
{
	const char *text = rpc_call_metadata(call, "grpc-timeout");
	int64_t ns = text ? rpc_timeout_parse(text) : 0;

	if (ns < 0) {
		return err_set(err, WEFT_EINVAL, "grpc-timeout \"%.32s\" is "
			       "not a number and a unit", text);
	}
	if (text) {
		call->deadline_ns = clk_now_ns() + ns;
		rpc_server_watch_deadline(call->conn->server, call->deadline_ns);
	}
	return 0;
}

/* Refuses a gRPC request for what its headers show, before its message is
 * there. */
static int check_grpc(struct rpc_call *call, struct err *err)
{
	const char *path = rpc_call_metadata(call, ":path");
	const char *encoding = rpc_call_metadata(call, "grpc-encoding");

	if (call->headers_bad) {
		return err_set(err, WEFT_EINVAL, "zero byte in a header");
	}
	if (call->header_bytes > RPC_MAX_HEADER_BYTES) {
		return err_set(err, WEFT_ELIMIT, "more than %d bytes of "
			       "headers", RPC_MAX_HEADER_BYTES);
	}
	call->method = path ? find_method(call, path) : NULL;
	if (!call->method) {
		return err_set(err, WEFT_EUNSUPPORTED, "unknown method %.200s",
			       path ? path : "(none)");
	}
	if (encoding && strcmp(encoding, "identity") != 0) {
		return err_set(err, WEFT_EUNSUPPORTED, "encoding %.32s is not "
			       "supported, only identity", encoding);
	}
	if (call->conn->server->cfg.permit &&
	    call->conn->server->cfg.permit(call, call->conn->server->cfg.arg,
					   err)) {
		return err->code;
	}
	return read_timeout(call, err);
}

static bool is_plain_get(const struct rpc_call *call, const char *verb)
{
	const char *type = rpc_call_metadata(call, "content-type");

	return call->conn->server->cfg.get && !call->headers_bad && verb &&
	       strcmp(verb, "GET") == 0 && !is_grpc(type) &&
	       rpc_call_metadata(call, ":path");
}

void rpc_call_headers_done(struct rpc_call *call)
{
	const char *verb = rpc_call_metadata(call, ":method");
	bool complete = call->header_bytes <= RPC_MAX_HEADER_BYTES;
	struct err err = { 0 };

	call->headers_done = true;
	if (complete && is_plain_get(call, verb)) {
		call->plain = call->held = true;
		call->conn->server->cfg.get(call, call->conn->server->cfg.arg);
		return;
	}
	if (complete && (!verb || strcmp(verb, "POST") != 0)) {
		end_http(call, "405");
		return;
	}
	if (complete && !is_grpc(rpc_call_metadata(call, "content-type"))) {
		end_http(call, "415");
		return;
	}
	if (check_grpc(call, &err)) {
		end_err(call, &err);
	}
}

static bool many_requests(const struct rpc_call *call)
{
	return (call->method->streaming & RPC_CLIENT_STREAMING) != 0;
}

static void call_handler(struct rpc_call *call)
{
	call->held = true;
	call->method->handler(call, call->request, call->conn->server->cfg.arg);
}

/* One of several request messages. Between them only a handler that wants to
 * be notified of the end has the call. */
static void deliver(struct rpc_call *call)
{
	call_handler(call);
	if (!call->ended) {
		call->held = call->on_cancel != NULL;
		drop_request(call);
	}
}

/* A request message is complete: decodes it in what the connection may
 * still hold. */
static int take_message(struct rpc_call *call, struct err *err)
{
	const struct rpc_limits *l = limits(call);
	size_t room = l->max_conn_held - call->conn->held;
	const char *body = buf_cstr(&call->in.body);
	int r;

	if (call->request) {
		return err_set(err, WEFT_EUNSUPPORTED, "more than one request "
			       "message");
	}
	r = rpc_decode_counted(call->method->request, body, call->in.body.len,
			       room < l->max_decoded ? room : l->max_decoded,
			       &call->request, &call->request_bytes, err);
	call->conn->held += call->request_bytes;
	call->conn->held -= call->in.body.len;
	rpc_deframer_fini(&call->in);
	if (r == 0) {
		r = rpc_check_values(call->request, err);
	}
	if (r == 0 && many_requests(call)) {
		deliver(call);
	}
	return r;
}

static int input(struct rpc_call *call, const uint8_t *data, size_t len, struct err *err)
{
	struct rpc_conn *conn = call->conn;

	while (len > 0 && !call->ended) {
		size_t before = call->in.body.len;
		int r = rpc_deframe(&call->in, &data, &len, err);

		conn->held += call->in.body.len - before;
		if (conn->held > limits(call)->max_conn_held) {
			return err_set(err, WEFT_ELIMIT, "requests of one "
				       "connection take more than %zu bytes",
				       limits(call)->max_conn_held);
		}
		if (r > 0) {
			r = take_message(call, err);
		}
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

void rpc_call_input(struct rpc_call *call, const uint8_t *data, size_t len)
{
	struct err err;

	if (!call->ended && !call->plain && input(call, data, len, &err)) {
		break_off(call, rpc_status_of_code(err.code), &err);
	}
}

void rpc_call_half_closed(struct rpc_call *call)
{
	struct err err;

	call->half_closed = true;
	if (call->ended || call->plain) {
		return;
	}
	if (rpc_deframer_partial(&call->in)) {
		err_set(&err, WEFT_EINVAL, "the request ends inside a message");
		break_off(call, RPC_INVALID_ARGUMENT, &err);
		return;
	}
	if (!call->request && !many_requests(call)) {
		err_set(&err, WEFT_EUNSUPPORTED, "no request message");
		end_err(call, &err);
		return;
	}
	call_handler(call);
}

/* ---- the end from outside ---- */

void rpc_call_detach(struct rpc_call *call)
{
	struct rpc_conn *conn = call->conn;

	TAILQ_REMOVE(&conn->calls, call, link);
	conn->queued -= unsent(call);
	conn->held -= call->in.body.len + call->request_bytes;
	call->conn = NULL;
	cancel(call);
	if (!call->held) {
		call_free(call);
	}
}

void rpc_call_expire(struct rpc_call *call)
{
	struct err err;

	call->deadline_passed = true;
	if (!call->ended) {
		err_set(&err, WEFT_ETIMEOUT, "deadline passed");
		break_off(call, RPC_DEADLINE_EXCEEDED, &err);
	}
	/* Trailers behind a queue that the reader does not empty would keep
	 * its memory for as long as he likes. */
	if (unsent(call) > 0 && nghttp2_submit_rst_stream(call->conn->t.session, NGHTTP2_FLAG_NONE,
							  call->stream, NGHTTP2_CANCEL)) {
		rpc_conn_close(call->conn);
	}
	rpc_server_mark_dirty(call->conn);
}

/* ---- for handlers ---- */

const struct rpc_peer *rpc_call_peer(const struct rpc_call *call)
{
	return &call->peer;
}

const char *rpc_call_path(const struct rpc_call *call)
{
	return call->method ? call->method->path
			    : rpc_call_metadata(call, ":path");
}

void rpc_call_on_cancel(struct rpc_call *call, rpc_cancel_cb cb, void *arg)
{
	call->on_cancel = cb;
	call->cancel_arg = arg;
}

void rpc_call_on_ready(struct rpc_call *call, rpc_ready_cb cb, void *arg)
{
	call->on_ready = cb;
	call->ready_arg = arg;
}

size_t rpc_call_unsent(const struct rpc_call *call)
{
	return unsent(call);
}

/* Bytes that may still be queued on this call. */
static size_t room(const struct rpc_call *call)
{
	const struct rpc_limits *l = limits(call);
	size_t own = l->max_queued - unsent(call);
	size_t conn = l->max_conn_queued - call->conn->queued;

	return own < conn ? own : conn;
}

/* Moves the unsent bytes to the front once they are the smaller part, so
 * that the queue's memory stays within twice its bound. */
static void compact(struct rpc_call *call)
{
	if (call->out_sent > call->out.len / 2) {
		buf_consume(&call->out, call->out_sent);
		call->out_sent = 0;
	}
}

/* A response type that several methods' answers have as their only field. */
struct wrapper {
	ProtobufCMessage base;
	const ProtobufCMessage *inner;
};

static int append(struct rpc_call *call, const ProtobufCMessage *m, struct err *err)
{
	const ProtobufCMessageDescriptor *type = call->method->response;
	struct wrapper w = { .inner = m };

	if (m->descriptor != type) {
		assert(type->n_fields == 1 && type->sizeof_message == sizeof(w) &&
		       type->fields[0].descriptor == m->descriptor);
		w.base.descriptor = type;
		m = &w.base;
	}
	return rpc_frame_append(&call->out, m, room(call), err);
}

/* A message is to be queued: *before bytes are. WEFT_ECANCELED. */
static int begin_send(struct rpc_call *call, size_t *before, struct err *err)
{
	if (!call->conn || call->ended) {
		return err_set(err, WEFT_ECANCELED, "the call has ended");
	}
	assert((call->method->streaming & RPC_SERVER_STREAMING) || !call->answered);
	compact(call);
	*before = call->out.len;
	return 0;
}

/* What was just said may have to wait. */
static void hold_back(struct rpc_call *call)
{
	const struct rpc_server_config *cfg = &call->conn->server->cfg;
	int64_t mark = cfg->hold && !call->plain ? cfg->hold(call, cfg->arg) : 0;

	call->held_until = mark > call->held_until ? mark : call->held_until;
}

/* It was queued, unless r says why not. */
static int end_send(struct rpc_call *call, size_t before, int r, struct err *err)
{
	struct rpc_headers h = { .n = 0 };

	if (r) {
		return err_wrap(err, "%s: response queue", call->method->path);
	}
	call->conn->queued += call->out.len - before;
	hold_back(call);
	if (!call->answered) {
		add_response_headers(&h);
		submit_headers(call, &h, true);
	}
	resume(call);
	return 0;
}

int rpc_send(struct rpc_call *call, const ProtobufCMessage *response, struct err *err)
{
	size_t before;
	int r = begin_send(call, &before, err);

	return r ? r : end_send(call, before, append(call, response, err), err);
}

int rpc_send_packed(struct rpc_call *call, const void *data, size_t len, struct err *err)
{
	size_t before;
	int r = begin_send(call, &before, err);

	return r ? r : end_send(call, before, rpc_frame_append_packed(&call->out, data, len,
								       room(call), err), err);
}

/* Headers, and the body if there is room for it. */
static void submit_answer(struct rpc_call *call, int status, const struct rpc_header *headers,
			  const void *body, size_t len)
{
	struct rpc_headers h = { .n = 0 };
	bool fits = len <= room(call);
	char number[16];

	if (fits) {
		buf_add(&call->out, body, len);
	}
	snprintf(number, sizeof(number), "%d", fits ? status : 503);
	rpc_headers_add(&h, ":status", number);
	for (; fits && headers && headers->name; headers++) {
		rpc_headers_add(&h, headers->name, headers->value);
	}
	call->ended = true;
	call->conn->queued += call->out.len;
	submit_headers(call, &h, fits);
}

void rpc_answer(struct rpc_call *call, int status,
		const struct rpc_header *headers, const void *body, size_t len)
{
	assert(call->plain);
	if (call->cancelling) {
		return;		/* detach does the rest */
	}
	call->held = false;
	if (!call->conn) {
		call_free(call);
	} else {
		submit_answer(call, status, headers, body, len);
	}
}

bool rpc_call_add_resource(struct rpc_call *call, const char *type,
			   const char *name, const char *description)
{
	return rpc_detail_add(&call->details, type, name, description);
}

static void finish(struct rpc_call *call, enum rpc_status status, const struct err *err)
{
	if (call->cancelling) {
		return;		/* detach or expire does the rest */
	}
	assert(call->held);
	call->held = false;
	if (!call->conn) {
		call_free(call);
	} else if (!call->ended) {
		hold_back(call);
		call->finished = call->held_until != 0;
		call->status = status;
		call->err = *err;
		if (!call->finished) {
			end(call, status, err);
		}
	}
}

void rpc_call_release(struct rpc_call *call)
{
	const struct err err = call->err;

	call->held_until = 0;
	if (call->finished) {
		end(call, call->status, &err);
	} else {
		resume(call);
	}
}

void rpc_finish(struct rpc_call *call, enum rpc_status status, const char *message)
{
	struct err err = { 0 };

	if (message) {
		err_set(&err, WEFT_OK, "%s", message);
	}
	finish(call, status, &err);
}

void rpc_finish_err(struct rpc_call *call, const struct err *err)
{
	finish(call, rpc_status_of_code(err->code), err);
}
