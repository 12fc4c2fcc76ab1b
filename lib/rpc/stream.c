/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of the client in which both sides go on sending. Nothing runs between its calls:
 * sending and receiving move the connection, and its socket may be waited on.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/rpc/private.h"

struct rpc_stream {
	struct rpc_client *client;
	struct client_call call;
	size_t taken;		/* of call.received */
};

int rpc_stream_open(struct rpc_client *c, const char *path,
		    const ProtobufCMessageDescriptor *response, struct rpc_stream **out,
		    struct err *err)
{
	struct rpc_stream *s;
	int r = client_ready(c, err);

	*out = NULL;
	if (r) {
		return r;
	}
	s = x_new(1, sizeof(*s));
	s->client = c;
	s->call.response = response;
	s->call.is_stream = true;
	s->call.http_status = s->call.grpc_status = -1;
	s->call.in.max = CLIENT_MAX_RESPONSE;
	c->call = &s->call;
	r = client_submit(c, path, 0, err);
	if (r == 0 && client_send_frames(c)) {
		*err = c->lost;
		r = err->code;
	}
	if (r) {
		c->call = NULL;
		free(s);
		return r;
	}
	*out = s;
	return 0;
}

/* What a stream that goes on no more amounts to. */
static int ended(struct rpc_stream *s, struct err *err)
{
	int r = 0;

	if (s->call.local.code) {
		*err = s->call.local;
		return err->code;
	}
	if (s->call.closed) {
		r = client_outcome(&s->call, err);
		return r ? r : err_set(err, WEFT_EUNAVAIL, "%s: the server ended the call",
				       s->client->path);
	}
	*err = s->client->lost;
	return err->code;
}

static bool goes_on(const struct rpc_stream *s)
{
	return !s->call.closed && !s->call.local.code && !s->client->lost.code;
}

int rpc_stream_send(struct rpc_stream *s, const ProtobufCMessage *msg, struct err *err)
{
	struct client_call *call = &s->call;
	int r;

	if (!goes_on(s)) {
		return ended(s, err);
	}
	buf_consume(&call->request, call->sent);
	call->sent = 0;
	r = rpc_frame_append(&call->request, msg, SIZE_MAX, err);
	if (r) {
		return r;
	}
	if (call->waits) {
		call->waits = false;
		nghttp2_session_resume_data(s->client->t.session, call->stream);
	}
	return client_send_frames(s->client) ? ended(s, err) : 0;
}

/* The next message that has come, or NULL. */
static ProtobufCMessage *take(struct rpc_stream *s)
{
	ProtobufCMessage *msg;

	if (s->taken == s->call.received.n) {
		return NULL;
	}
	msg = s->call.received.v[s->taken++];
	if (s->taken == s->call.received.n) {
		s->taken = s->call.received.n = 0;
	}
	return msg;
}

int rpc_stream_receive(struct rpc_stream *s, int timeout_ms, ProtobufCMessage **out,
		       struct err *err)
{
	int64_t end_ns = client_end_of(timeout_ms);
	int wait_ms;

	while (!(*out = take(s))) {
		if (!goes_on(s)) {
			return ended(s, err);
		}
		wait_ms = timeout_ms ? client_slice_ms(end_ns) : 0;
		client_step(s->client, wait_ms);
		if (wait_ms == 0) {
			*out = take(s);
			return *out || goes_on(s) ? 0 : ended(s, err);
		}
	}
	return 0;
}

void rpc_stream_close(struct rpc_stream *s)
{
	ProtobufCMessage *msg;

	if (!s) {
		return;
	}
	if (goes_on(s)) {
		nghttp2_submit_rst_stream(s->client->t.session, NGHTTP2_FLAG_NONE, s->call.stream,
					  NGHTTP2_CANCEL);
		client_send_frames(s->client);
	}
	while ((msg = take(s))) {
		rpc_free_message(msg);
	}
	s->client->call = NULL;
	vec_fini(&s->call.received);
	buf_fini(&s->call.request);
	rpc_deframer_fini(&s->call.in);
	free(s);
}
