/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocking client: one call at a time on one connection. nghttp2 does the
 * protocol; its callbacks fill the call that is running. A call whose two sides
 * go on sending is in stream.c.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rpc/private.h"

#define STREAM_WINDOW (1 << 20)
#define CONN_WINDOW (4 << 20)
/* Of one message: a server may send more than it takes, whole schedules. */
#define MAX_DECODED ((size_t)512 << 20)

/* ---- what the server sends ---- */

/* The call of a stream, or NULL. */
static struct client_call *call_of(struct rpc_client *c, int32_t stream)
{
	return c->call && c->call->stream == stream ? c->call : NULL;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *user)
{
	struct client_call *call = call_of(user, frame->hd.stream_id);

	(void)session, (void)flags;
	if (!call) {
		return 0;
	}
	/* nghttp2 terminates both. */
	(void)name_len;
	if (strcmp((const char *)name, ":status") == 0) {
		call->http_status = atoi((const char *)value);
		return 0;
	}
	rpc_status_read((const char *)name, (const char *)value, value_len,
			&call->grpc_status, &call->remote);
	return 0;
}

/* Hands one message over. Non-zero ends the call, with call->local set. */
static int deliver(struct client_call *call)
{
	ProtobufCMessage *msg;
	int r = rpc_decode(call->response, buf_cstr(&call->in.body), call->in.body.len, MAX_DECODED,
			   &msg, &call->local);

	if (r) {
		return err_wrap(&call->local, "response");
	}
	if (call->is_stream) {
		vec_push(&call->received, msg);
		return 0;
	}
	if (call->keep) {
		if (*call->keep) {
			rpc_free_message(msg);
			return err_set(&call->local, WEFT_EINTERNAL,
				       "more than one response message");
		}
		*call->keep = msg;
		return 0;
	}
	r = call->on_message ? call->on_message(msg, call->arg) : 0;
	rpc_free_message(msg);
	return r ? err_set(&call->local, WEFT_ECANCELED, "stopped on request")
		 : 0;
}

static int take_data(struct client_call *call, const uint8_t *data, size_t len)
{
	while (len > 0) {
		int r = rpc_deframe(&call->in, &data, &len, &call->local);

		if (r > 0) {
			r = deliver(call);
			rpc_deframer_next(&call->in);
		}
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream,
		   const uint8_t *data, size_t len, void *user)
{
	struct client_call *call = call_of(user, stream);

	(void)session, (void)flags;
	if (call && call->http_status == 200 && call->local.code == 0) {
		take_data(call, data, len);
	}
	return 0;
}

/* Keeps the printable part of a GOAWAY's words. */
static void note_goaway(struct rpc_client *c, const nghttp2_goaway *goaway)
{
	size_t n = 0;

	c->leaving = true;
	c->leave_code = goaway->error_code;
	for (size_t i = 0; i < goaway->opaque_data_len && n + 1 < sizeof(c->leave_text); i++) {
		if (isprint(goaway->opaque_data[i])) {
			c->leave_text[n++] = (char)goaway->opaque_data[i];
		}
	}
	c->leave_text[n] = '\0';
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct rpc_client *c = user;
	struct client_call *call = call_of(c, frame->hd.stream_id);

	if (frame->hd.type == NGHTTP2_SETTINGS) {
		c->greeted = true;
	} else if (frame->hd.type == NGHTTP2_GOAWAY) {
		note_goaway(c, &frame->goaway);
	} else if (call && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
		   (call->is_stream || call->sent < call->request.len)) {
		/* Answered before all was sent: the rest is not wanted. */
		return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE,
						 frame->hd.stream_id,
						 NGHTTP2_NO_ERROR);
	}
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream,
			   uint32_t error_code, void *user)
{
	struct client_call *call = call_of(user, stream);

	(void)session;
	if (call) {
		call->closed = true;
		call->reset = error_code;
	}
	return 0;
}

void client_start_session(struct rpc_client *c)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
	};
	nghttp2_session_callbacks *cb = rpc_transport_callbacks_new();

	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	nghttp2_session_client_new3(&c->t.session, cb, c, NULL, &rpc_mem);
	nghttp2_session_callbacks_del(cb);
	nghttp2_submit_settings(c->t.session, NGHTTP2_FLAG_NONE, settings, 2);
	nghttp2_session_set_local_window_size(c->t.session, NGHTTP2_FLAG_NONE, 0, CONN_WINDOW);
}

/* ---- a call ---- */

static ssize_t read_request(nghttp2_session *session, int32_t stream, uint8_t *data, size_t length,
			    uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct client_call *call = call_of(user, stream);
	size_t n;

	(void)session, (void)source;
	if (!call) {
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	n = call->request.len - call->sent;
	n = n < length ? n : length;
	if (n == 0 && call->is_stream) {
		call->waits = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	memcpy(data, call->request.data + call->sent, n);
	call->sent += n;
	if (call->sent == call->request.len && !call->is_stream) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	}
	return (ssize_t)n;
}

void rpc_client_header(struct rpc_client *c, const char *name, const char *value)
{
	c->header = (struct rpc_header){ name, value };
}

int client_submit(struct rpc_client *c, const char *path, int timeout_ms, struct err *err)
{
	nghttp2_data_provider provider = { .read_callback = read_request };
	struct rpc_headers h = { .n = 0 };
	char timeout[16];
	int32_t stream;

	rpc_headers_add(&h, ":method", "POST");
	rpc_headers_add(&h, ":scheme", c->t.tls ? "https" : "http");
	rpc_headers_add(&h, ":path", path);
	rpc_headers_add(&h, ":authority", "localhost");
	rpc_headers_add(&h, "te", "trailers");
	rpc_headers_add(&h, "content-type", "application/grpc");
	rpc_headers_add(&h, "grpc-accept-encoding", "identity");
	if (timeout_ms > 0) {
		rpc_headers_add(&h, "grpc-timeout", rpc_timeout_format(timeout_ms, timeout));
	}
	if (c->header.value) {
		rpc_headers_add(&h, c->header.name, c->header.value);
	}
	stream = nghttp2_submit_request(c->t.session, NULL, h.nv, h.n, &provider, NULL);
	if (stream < 0) {
		return err_set(err, WEFT_EIO, "%s: %s", c->path, nghttp2_strerror(stream));
	}
	c->call->stream = stream;
	return 0;
}

/* Why the call must not go on, or 0. */
static int interrupted(struct rpc_client *c, int64_t end_ns,
		       const volatile bool *cancel, struct err *err)
{
	/* Set by a signal handler or another thread. */
	if (cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED)) {
		return err_set(err, WEFT_ECANCELED, "stopped on request");
	}
	if (c->call->local.code) {
		*err = c->call->local;
		return err->code;
	}
	if (client_slice_ms(end_ns) == 0) {
		return err_set(err, WEFT_ETIMEOUT, "%s: no answer in time", c->path);
	}
	return 0;
}

/* Runs the connection until the stream is closed. A call that is given up
 * is reset, so that the server hears of it. */
static int run(struct rpc_client *c, int64_t end_ns, const volatile bool *cancel, struct err *err)
{
	struct client_call *call = c->call;
	int r = 0;

	while (!call->closed) {
		r = interrupted(c, end_ns, cancel, err);
		if (r) {
			nghttp2_submit_rst_stream(c->t.session, NGHTTP2_FLAG_NONE, call->stream,
						  NGHTTP2_CANCEL);
			client_send_frames(c);
			return r;
		}
		if (client_step(c, client_slice_ms(end_ns))) {
			/* The status may have come with the last bytes. */
			if (call->closed) {
				break;
			}
			*err = c->lost;
			return err->code;
		}
	}
	if (call->local.code) {
		*err = call->local;
	}
	return call->local.code;
}

int client_outcome(const struct client_call *call, struct err *err)
{
	enum rpc_status status;

	if (call->grpc_status == RPC_OK) {
		return rpc_deframer_partial(&call->in)
			       ? err_set(err, WEFT_EINTERNAL, "the response ends inside a message")
			       : 0;
	}
	if (call->grpc_status > 0) {
		*err = call->remote;
		if (err->code == 0) {
			err->code = rpc_code_of_status(call->grpc_status);
		}
		if (err->msg[0] == '\0') {
			snprintf(err->msg, sizeof(err->msg), "%s",
				 rpc_status_name(call->grpc_status));
		}
		return err->code;
	}
	if (call->http_status > 0 && call->http_status != 200) {
		status = rpc_status_of_http(call->http_status);
		return err_set(err, rpc_code_of_status(status),
			       "the server answered with HTTP status %d",
			       call->http_status);
	}
	status = rpc_status_of_reset(call->reset);
	return err_set(err, rpc_code_of_status(status),
		       "the server ended the call without a status (%s)",
		       nghttp2_http2_strerror(call->reset));
}

int client_ready(struct rpc_client *c, struct err *err)
{
	if (c->lost.code == 0 && c->leaving) {
		client_lose_to_server(c);
	}
	if (c->lost.code) {
		*err = c->lost;
	}
	return c->lost.code;
}

/* Runs `call`, whose members for the response are set. */
static int perform(struct rpc_client *c, struct client_call *call, const char *path,
		   const ProtobufCMessage *request, int timeout_ms, const volatile bool *cancel,
		   struct err *err)
{
	int64_t end_ns = client_end_of(timeout_ms);
	struct err mine = { 0 };
	int r;

	if (client_ready(c, &mine)) {
		goto out;
	}
	call->http_status = call->grpc_status = -1;
	call->in.max = CLIENT_MAX_RESPONSE;
	r = rpc_frame_append(&call->request, request, SIZE_MAX, &mine);
	if (r) {
		goto out;
	}
	c->call = call;
	r = client_submit(c, path, timeout_ms, &mine);
	if (r == 0) {
		r = run(c, end_ns, cancel, &mine);
	}
	if (r == 0 && c->leaving && call->reset == NGHTTP2_REFUSED_STREAM) {
		/* It came after the server's last word, which says why. */
		client_lose_to_server(c);
		mine = c->lost;
	} else if (r == 0) {
		client_outcome(call, &mine);
	}
	c->call = NULL;
out:
	buf_fini(&call->request);
	rpc_deframer_fini(&call->in);
	if (mine.code && err) {
		*err = mine;
	}
	return mine.code;
}

int rpc_client_call(struct rpc_client *c, const char *path, const ProtobufCMessage *request,
		    const ProtobufCMessageDescriptor *response, int timeout_ms,
		    rpc_on_message on_message, void *arg, const volatile bool *cancel,
		    struct err *err)
{
	struct client_call call = { .response = response,
				    .on_message = on_message,
				    .arg = arg };

	return perform(c, &call, path, request, timeout_ms, cancel, err);
}

int rpc_client_unary(struct rpc_client *c, const char *path, const ProtobufCMessage *request,
		     const ProtobufCMessageDescriptor *response, int timeout_ms,
		     ProtobufCMessage **out, struct err *err)
{
	struct client_call call = { .response = response, .keep = out };
	int r;

	*out = NULL;
	r = perform(c, &call, path, request, timeout_ms, NULL, err);
	if (r == 0 && !*out) {
		r = err_set(err, WEFT_EINTERNAL, "%s: no response message", path);
	}
	if (r) {
		rpc_free_message(*out);
		*out = NULL;
	}
	return r;
}
