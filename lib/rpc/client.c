/*
 * The blocking client; see rpc.h. One call at a time on one connection:
 * nghttp2 does the protocol, poll() the waiting, in slices short enough that
 * a cancel flag set by a signal handler or another thread is seen soon.
 */
#include <stdio.h>
#include <string.h>

#include "lib/rpc/client.h"

/* A server may send more than it takes: whole schedules. */
#define MAX_RESPONSE ((size_t)64 << 20)

static ssize_t read_request(nghttp2_session *session, int32_t stream,
			    uint8_t *data, size_t length, uint32_t *flags,
			    nghttp2_data_source *source, void *user)
{
	struct client_call *call = client_call_of(user, stream);
	size_t n;

	(void)session, (void)source;
	if (!call) {
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	n = call->request.len - call->sent;
	n = n < length ? n : length;
	memcpy(data, call->request.data + call->sent, n);
	call->sent += n;
	if (call->sent == call->request.len) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	}
	return (ssize_t)n;
}

void rpc_client_trace(struct rpc_client *c, const char *traceparent)
{
	c->trace = traceparent;
}

static int submit(struct rpc_client *c, const char *path, int timeout_ms,
		  struct err *err)
{
	nghttp2_data_provider provider = { .read_callback = read_request };
	struct rpc_headers h = { .n = 0 };
	char timeout[16];
	int32_t stream;

	rpc_headers_add(&h, ":method", "POST");
	rpc_headers_add(&h, ":scheme", c->tls ? "https" : "http");
	rpc_headers_add(&h, ":path", path);
	rpc_headers_add(&h, ":authority", "localhost");
	rpc_headers_add(&h, "te", "trailers");
	rpc_headers_add(&h, "content-type", "application/grpc");
	rpc_headers_add(&h, "grpc-accept-encoding", "identity");
	if (timeout_ms > 0) {
		rpc_headers_add(&h, "grpc-timeout",
				rpc_timeout_format(timeout_ms, timeout));
	}
	if (c->trace) {
		rpc_headers_add(&h, "traceparent", c->trace);
	}
	stream = nghttp2_submit_request(c->session, NULL, h.nv, h.n, &provider,
					NULL);
	if (stream < 0) {
		return err_set(err, WEFT_EIO, "%s: %s", c->path,
			       nghttp2_strerror(stream));
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
		return err_set(err, WEFT_ETIMEOUT, "%s: no answer in time",
			       c->path);
	}
	return 0;
}

/* Runs the connection until the stream is closed. A call that is given up
 * is reset, so that the server hears of it. */
static int run(struct rpc_client *c, int64_t end_ns,
	       const volatile bool *cancel, struct err *err)
{
	struct client_call *call = c->call;
	int r = 0;

	while (!call->closed) {
		r = interrupted(c, end_ns, cancel, err);
		if (r) {
			nghttp2_submit_rst_stream(c->session,
						  NGHTTP2_FLAG_NONE,
						  call->stream,
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

/* What a closed stream amounts to. */
static int outcome(const struct client_call *call, struct err *err)
{
	enum rpc_status status;

	if (call->grpc_status == RPC_OK) {
		return rpc_deframer_partial(&call->in)
			       ? err_set(err, WEFT_EINTERNAL,
					 "the response ends inside a message")
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

/* Runs `call`, whose members for the response are set. */
static int perform(struct rpc_client *c, struct client_call *call,
		   const char *path, const ProtobufCMessage *request,
		   int timeout_ms, const volatile bool *cancel,
		   struct err *err)
{
	int64_t end_ns = client_end_of(timeout_ms);
	struct err mine = { 0 };
	int r;

	if (c->lost.code) {
		mine = c->lost;
		goto out;
	}
	if (c->leaving) {
		client_lose_to_server(c);
		mine = c->lost;
		goto out;
	}
	call->http_status = call->grpc_status = -1;
	call->in.max = MAX_RESPONSE;
	r = rpc_frame_append(&call->request, request, SIZE_MAX, &mine);
	if (r) {
		goto out;
	}
	c->call = call;
	r = submit(c, path, timeout_ms, &mine);
	if (r == 0) {
		r = run(c, end_ns, cancel, &mine);
	}
	if (r == 0) {
		outcome(call, &mine);
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

int rpc_client_call(struct rpc_client *c, const char *path,
		    const ProtobufCMessage *request,
		    const ProtobufCMessageDescriptor *response, int timeout_ms,
		    rpc_on_message on_message, void *arg,
		    const volatile bool *cancel, struct err *err)
{
	struct client_call call = { .response = response,
				    .on_message = on_message,
				    .arg = arg };

	return perform(c, &call, path, request, timeout_ms, cancel, err);
}

int rpc_client_unary(struct rpc_client *c, const char *path,
		     const ProtobufCMessage *request,
		     const ProtobufCMessageDescriptor *response,
		     int timeout_ms, ProtobufCMessage **out, struct err *err)
{
	struct client_call call = { .response = response, .keep = out };
	int r;

	*out = NULL;
	r = perform(c, &call, path, request, timeout_ms, NULL, err);
	if (r == 0 && !*out) {
		r = err_set(err, WEFT_EINTERNAL, "%s: no response message",
			    path);
	}
	if (r) {
		rpc_free_message(*out);
		*out = NULL;
	}
	return r;
}
