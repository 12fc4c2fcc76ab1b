/* The client's HTTP/2 session: what nghttp2 tells of the server's frames. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rpc/client.h"

#define STREAM_WINDOW (1 << 20)
#define CONN_WINDOW (4 << 20)
/* Of one message: a server may send more than it takes. */
#define MAX_DECODED ((size_t)512 << 20)

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
		     const uint8_t *name, size_t name_len,
		     const uint8_t *value, size_t value_len, uint8_t flags,
		     void *user)
{
	struct client_call *call = client_call_of(user, frame->hd.stream_id);

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
	int r = rpc_decode(call->response, buf_cstr(&call->in.body),
			   call->in.body.len, MAX_DECODED, &msg,
			   &call->local);

	if (r) {
		return err_wrap(&call->local, "response");
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
	return r ? err_set(&call->local, WEFT_ECANCELED,
			   "stopped on request")
		 : 0;
}

static int take_data(struct client_call *call, const uint8_t *data,
		     size_t len)
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
	struct client_call *call = client_call_of(user, stream);

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
	for (size_t i = 0; i < goaway->opaque_data_len &&
			   n + 1 < sizeof(c->leave_text); i++) {
		if (isprint(goaway->opaque_data[i])) {
			c->leave_text[n++] = (char)goaway->opaque_data[i];
		}
	}
	c->leave_text[n] = '\0';
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame,
		    void *user)
{
	struct rpc_client *c = user;
	struct client_call *call = client_call_of(c, frame->hd.stream_id);

	if (frame->hd.type == NGHTTP2_SETTINGS) {
		c->greeted = true;
	} else if (frame->hd.type == NGHTTP2_GOAWAY) {
		note_goaway(c, &frame->goaway);
	} else if (call && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
		   call->sent < call->request.len) {
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
	struct client_call *call = client_call_of(user, stream);

	(void)session;
	if (call) {
		call->closed = true;
		call->reset = error_code;
	}
	return 0;
}

int client_start_session(struct rpc_client *c, struct err *err)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
	};
	nghttp2_session_callbacks *cb;
	int r;

	if (nghttp2_session_callbacks_new(&cb)) {
		return err_nomem(err);
	}
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(
		cb, on_stream_close);
	r = nghttp2_session_client_new(&c->session, cb, c);
	nghttp2_session_callbacks_del(cb);
	if (r || nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE,
					 settings, 2) ||
	    nghttp2_session_set_local_window_size(
		    c->session, NGHTTP2_FLAG_NONE, 0, CONN_WINDOW)) {
		return err_nomem(err);
	}
	return 0;
}

int client_await_greeting(struct rpc_client *c, int64_t end_ns,
			  struct err *err)
{
	while (!c->greeted) {
		int wait_ms = client_slice_ms(end_ns);

		if (wait_ms == 0) {
			return err_set(err, WEFT_EUNAVAIL,
				       "%s: the server does not answer",
				       c->path);
		}
		if (client_step(c, wait_ms)) {
			break;
		}
	}
	if (c->leaving) {
		client_lose_to_server(c);
	}
	if (c->lost.code && err) {
		*err = c->lost;
	}
	return c->lost.code;
}
