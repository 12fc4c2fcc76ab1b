/*
 * The blocking client; see rpc.h. One call at a time on one connection:
 * nghttp2 does the protocol, poll() the waiting, in slices short enough that
 * a cancel flag set by a signal handler or another thread is seen soon.
 */
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clk.h"
#include "lib/rpc/frame.h"
#include "lib/rpc/rpc.h"
#include "lib/rpc/status.h"
#include "lib/rpc/tls.h"

#define SLICE_MS 100
#define CONNECT_RETRY_MS 10
#define NS_PER_MS 1000000
#define OUT_BYTES ((size_t)64 << 10)
#define STREAM_WINDOW (1 << 20)
#define CONN_WINDOW (4 << 20)
/* A server may send more than it takes: whole schedules. */
#define MAX_RESPONSE ((size_t)64 << 20)
#define MAX_DECODED ((size_t)512 << 20)

/* A host name and a port. */
#define NAME_MAX_TEXT 272

/* The call that is running; lives on the stack of rpc_client_call. */
struct client_call {
	int32_t stream;
	bool closed;
	uint32_t reset;		/* HTTP/2 error code it was closed with */
	struct buf request;
	size_t sent;
	int http_status, grpc_status;	/* -1 until known */
	struct err remote;	/* what the trailers say */
	struct err local;	/* what went wrong on this side */
	struct rpc_deframer in;
	const ProtobufCMessageDescriptor *response;
	rpc_on_message on_message;
	void *arg;
	ProtobufCMessage **keep; /* unary: takes the one message */
};

struct rpc_client {
	int fd;
	char path[NAME_MAX_TEXT];	/* of the socket, or HOST:PORT */
	struct rpc_tls_session *tls;	/* NULL: a unix socket */
	nghttp2_session *session;
	struct buf out;
	size_t out_sent;
	bool greeted;		/* the server's SETTINGS came */
	bool deaf;		/* the server takes no more bytes */
	bool leaving;		/* the server sent GOAWAY */
	uint32_t leave_code;
	char leave_text[128];
	struct err lost;	/* why the connection is unusable, if it is */
	struct client_call *call;
	const char *trace;	/* traceparent, or NULL */
};

static struct client_call *call_of(struct rpc_client *c, int32_t stream)
{
	return c->call && c->call->stream == stream ? c->call : NULL;
}

/* ---- nghttp2's callbacks ---- */

static ssize_t read_request(nghttp2_session *session, int32_t stream,
			    uint8_t *data, size_t length, uint32_t *flags,
			    nghttp2_data_source *source, void *user)
{
	struct client_call *call = call_of(user, stream);
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

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
		     const uint8_t *name, size_t name_len,
		     const uint8_t *value, size_t value_len, uint8_t flags,
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
	struct client_call *call = call_of(c, frame->hd.stream_id);

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
	struct client_call *call = call_of(user, stream);

	(void)session;
	if (call) {
		call->closed = true;
		call->reset = error_code;
	}
	return 0;
}

/* ---- the connection ---- */

/* Remembers why the connection can be used no more, the first time. */
static int lose(struct rpc_client *c, enum weft_err code, const char *why)
{
	if (c->lost.code == 0) {
		err_set(&c->lost, code, "%s: %s", c->path, why);
	}
	return c->lost.code;
}

/* The server has closed: say what its GOAWAY said, if it sent one. */
static int lose_to_server(struct rpc_client *c)
{
	if (!c->leaving) {
		return lose(c, WEFT_EUNAVAIL,
			    "the server closed the connection");
	}
	return lose(c,
		    c->leave_code == NGHTTP2_INADEQUATE_SECURITY
			    ? WEFT_EDENIED
			    : WEFT_EUNAVAIL,
		    c->leave_text[0] ? c->leave_text
				     : "the server is shutting down");
}

/* One piece of frames into c->out, encrypted or not. */
static int put(struct rpc_client *c, const uint8_t *data, size_t len)
{
	struct err err;

	if (!c->tls) {
		buf_add(&c->out, data, len);
		return 0;
	}
	if (len > 0 && rpc_tls_write(c->tls, data, len, &err)) {
		return lose(c, err.code, err.msg);
	}
	rpc_tls_output(c->tls, &c->out);
	return 0;
}

/* Hands c->out to the socket, as much as it takes; false when it takes no
 * more now. */
static bool send_out(struct rpc_client *c)
{
	ssize_t n = send(c->fd, c->out.data + c->out_sent,
			 c->out.len - c->out_sent, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return false;
	}
	/* What the server said before it closed is still to be read, and says
	 * more than EPIPE. */
	c->deaf = n < 0;
	c->out_sent += n > 0 ? (size_t)n : 0;
	if (c->out_sent == c->out.len) {
		buf_reset(&c->out);
		c->out_sent = 0;
	}
	return true;
}

/* Sends until nothing is left or the socket takes no more. */
static int send_frames(struct rpc_client *c)
{
	const uint8_t *data;
	ssize_t n;

	while (!c->deaf) {
		do {
			n = nghttp2_session_mem_send(c->session, &data);
			if (n < 0) {
				return lose(c, WEFT_EIO,
					    nghttp2_strerror((int)n));
			}
			if (put(c, data, (size_t)n)) {
				return c->lost.code;
			}
		} while (n > 0 && c->out.len < OUT_BYTES);
		if (c->out.failed) {
			return lose(c, WEFT_ENOMEM, "out of memory");
		}
		if (c->out.len == 0) {
			return 0;
		}
		if (!send_out(c)) {
			return 0;
		}
	}
	return 0;
}

static int take_plain(struct rpc_client *c, const uint8_t *data, size_t len)
{
	ssize_t n = nghttp2_session_mem_recv(c->session, data, len);

	return n < 0 ? lose(c, WEFT_EIO, nghttp2_strerror((int)n)) : 0;
}

/* Before the session begins, bytes are of the handshake only. */
static int take_encrypted(struct rpc_client *c, const uint8_t *data,
			  size_t len)
{
	uint8_t plain[16 << 10];
	struct err err;
	bool closed = false;
	int n = 0, r = 0;

	if (rpc_tls_input(c->tls, data, len, &err)) {
		return lose(c, err.code, err.msg);
	}
	while (r == 0 && c->session &&
	       (n = rpc_tls_read(c->tls, plain, sizeof(plain), &closed,
				 &err)) > 0) {
		r = take_plain(c, plain, (size_t)n);
	}
	/* A certificate that the server refuses is told after the handshake
	 * in TLS 1.3. */
	if (r == 0 && n < 0) {
		r = lose(c, c->greeted ? WEFT_EIO : WEFT_EDENIED, err.msg);
	}
	return r == 0 && closed ? lose_to_server(c) : r;
}

static int receive(struct rpc_client *c)
{
	uint8_t data[64 << 10];
	ssize_t n = recv(c->fd, data, sizeof(data), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return 0;
	}
	if (n <= 0) {
		return lose_to_server(c);
	}
	return c->tls ? take_encrypted(c, data, (size_t)n)
		      : take_plain(c, data, (size_t)n);
}

/* Sends, waits at most wait_ms for something to happen, and receives. */
static int step(struct rpc_client *c, int wait_ms)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	int r = send_frames(c);

	if (r) {
		return r;
	}
	if (c->out.len > 0 && !c->deaf) {
		p.events |= POLLOUT;
	}
	r = poll(&p, 1, wait_ms);
	if (r < 0 && errno != EINTR) {
		return lose(c, WEFT_EIO, strerror(errno));
	}
	return r > 0 && (p.revents & ~POLLOUT) ? receive(c) : 0;
}

/* Milliseconds of the next slice before `end_ns` (0: no end); 0 when it has
 * passed. */
static int slice_ms(int64_t end_ns)
{
	int64_t left;

	if (end_ns == 0) {
		return SLICE_MS;
	}
	left = (end_ns - clk_now_ns() + NS_PER_MS - 1) / NS_PER_MS;
	return left <= 0 ? 0 : left < SLICE_MS ? (int)left : SLICE_MS;
}

static int64_t end_of(int timeout_ms)
{
	return timeout_ms > 0 ? clk_now_ns() + (int64_t)timeout_ms * NS_PER_MS
			      : 0;
}

static int connect_error(const char *path, int errnum, struct err *err)
{
	switch (errnum) {
	case ENOENT:
	case ECONNREFUSED:
		return err_set(err, WEFT_EUNAVAIL, "nobody listens on %s",
			       path);
	case EACCES:
	case EPERM:
		return err_errno(err, WEFT_EDENIED, errnum, "%s", path);
	case EAGAIN:
		return err_set(err, WEFT_EUNAVAIL,
			       "%s: the server takes no connection", path);
	default:
		return err_errno(err, WEFT_EIO, errnum, "%s", path);
	}
}

/* Unix sockets connect at once or, while the backlog is full, not at all;
 * there is nothing to poll for. */
static int connect_unix(struct rpc_client *c, int64_t end_ns, struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	memcpy(addr.sun_path, c->path, strlen(c->path));
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0) {
		return err_errno(err, WEFT_EIO, errno, "%s", c->path);
	}
	while (connect(c->fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
		if (errno == EINTR) {
			continue;
		}
		if (errno != EAGAIN || slice_ms(end_ns) == 0) {
			return connect_error(c->path, errno, err);
		}
		poll(NULL, 0, CONNECT_RETRY_MS);
	}
	return 0;
}

static int start_session(struct rpc_client *c, struct err *err)
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

/* Waits for the server's SETTINGS: only then is somebody there. */
static int await_greeting(struct rpc_client *c, int64_t end_ns,
			  struct err *err)
{
	while (!c->greeted) {
		int wait_ms = slice_ms(end_ns);

		if (wait_ms == 0) {
			return err_set(err, WEFT_EUNAVAIL,
				       "%s: the server does not answer",
				       c->path);
		}
		if (step(c, wait_ms)) {
			break;
		}
	}
	if (c->leaving) {
		lose_to_server(c);
	}
	if (c->lost.code && err) {
		*err = c->lost;
	}
	return c->lost.code;
}

static struct rpc_client *client_new(const char *name, struct err *err)
{
	struct rpc_client *c = calloc(1, sizeof(*c));

	if (!c) {
		err_nomem(err);
		return NULL;
	}
	c->fd = -1;
	snprintf(c->path, sizeof(c->path), "%s", name);
	return c;
}

/* ---- TCP ---- */

/* Connects to one address. 0, or an errno. */
static int connect_address(struct rpc_client *c, const struct addrinfo *a,
			   int64_t end_ns)
{
	struct pollfd p = { .events = POLLOUT };
	socklen_t len = sizeof(int);
	int wait_ms, error = 0, on = 1;

	c->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       0);
	if (c->fd < 0) {
		return errno;
	}
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(c->fd, a->ai_addr, a->ai_addrlen) == 0) {
		return 0;
	}
	if (errno != EINPROGRESS) {
		return errno;
	}
	p.fd = c->fd;
	while ((wait_ms = slice_ms(end_ns)) > 0 && poll(&p, 1, wait_ms) <= 0) {
	}
	if (wait_ms == 0) {
		return ETIMEDOUT;
	}
	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	return error;
}

static int connect_tcp(struct rpc_client *c, const char *host, int port,
		       int64_t end_ns, struct err *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list, *a;
	char service[16];
	int error = 0;

	snprintf(service, sizeof(service), "%d", port);
	error = getaddrinfo(host, service, &hints, &list);
	if (error) {
		return err_set(err, WEFT_EUNAVAIL, "%s: %s", host,
			       gai_strerror(error));
	}
	for (a = list; a; a = a->ai_next) {
		error = connect_address(c, a, end_ns);
		if (error == 0) {
			break;
		}
		if (c->fd >= 0) {
			close(c->fd);
			c->fd = -1;
		}
	}
	freeaddrinfo(list);
	return error ? err_errno(err, WEFT_EUNAVAIL, error, "%s", c->path) : 0;
}

/* Sends what the handshake has to say; waits for an answer and takes it. */
static int exchange(struct rpc_client *c, int wait_ms)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	rpc_tls_output(c->tls, &c->out);
	while (c->out.len > 0 && !c->deaf && send_out(c)) {
	}
	if (c->out.failed) {
		return lose(c, WEFT_ENOMEM, "out of memory");
	}
	if (c->out.len > 0 && !c->deaf) {
		p.events |= POLLOUT;
	}
	return poll(&p, 1, wait_ms) > 0 && (p.revents & ~POLLOUT) ? receive(c)
								    : 0;
}

static int agree_on_tls(struct rpc_client *c, int64_t end_ns, struct err *err)
{
	struct err why = { 0 };
	bool done = false;
	int wait_ms, r = 0;

	for (;;) {
		r = rpc_tls_handshake(c->tls, &done, &why);
		if (r || done) {
			break;
		}
		wait_ms = slice_ms(end_ns);
		if (wait_ms == 0) {
			return err_set(err, WEFT_EUNAVAIL,
				       "%s: the server does not answer",
				       c->path);
		}
		if (exchange(c, wait_ms)) {
			*err = c->lost;
			return err->code;
		}
	}
	if (r) {
		exchange(c, 0);		/* the alert that says why */
		return err_set(err, r, "%s: %s", c->path, why.msg);
	}
	return 0;
}

int rpc_client_open_tls(const char *host, int port,
			const struct rpc_tls_files *files, int timeout_ms,
			struct rpc_client **out, struct err *err)
{
	int64_t end_ns = end_of(timeout_ms);
	struct rpc_tls *tls = NULL;
	char name[NAME_MAX_TEXT];
	struct rpc_client *c;
	int r;

	*out = NULL;
	snprintf(name, sizeof(name), "%s:%d", host, port);
	c = client_new(name, err);
	if (!c) {
		return err->code;
	}
	r = rpc_tls_new(files, false, &tls, err);
	if (r == 0) {
		r = rpc_tls_session_new(tls, host, &c->tls, err);
	}
	if (r == 0) {
		r = connect_tcp(c, host, port, end_ns, err);
	}
	if (r == 0) {
		r = agree_on_tls(c, end_ns, err);
	}
	if (r == 0) {
		r = start_session(c, err);
	}
	/* The first bytes of HTTP/2 may have come with the handshake. */
	if (r == 0) {
		r = take_encrypted(c, (const uint8_t *)"", 0);
	}
	if (r == 0) {
		r = await_greeting(c, end_ns, err);
	}
	rpc_tls_free(tls);
	if (r) {
		rpc_client_close(c);
		return r;
	}
	*out = c;
	return 0;
}

/* ---- unix sockets ---- */

int rpc_client_open(const char *unix_path, int timeout_ms,
		    struct rpc_client **out, struct err *err)
{
	int64_t end_ns = end_of(timeout_ms);
	struct rpc_client *c;
	int r;

	*out = NULL;
	if (strlen(unix_path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		return err_set(err, WEFT_EINVAL,
			       "%s: socket path longer than %zu bytes",
			       unix_path,
			       sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	}
	c = client_new(unix_path, err);
	if (!c) {
		return err->code;
	}
	r = connect_unix(c, end_ns, err);
	if (r == 0) {
		r = start_session(c, err);
	}
	if (r == 0) {
		r = await_greeting(c, end_ns, err);
	}
	if (r) {
		rpc_client_close(c);
		return r;
	}
	*out = c;
	return 0;
}

void rpc_client_close(struct rpc_client *c)
{
	if (!c) {
		return;
	}
	if (c->tls && c->session && !c->deaf) {
		rpc_tls_end(c->tls);
		send_frames(c);
	}
	nghttp2_session_del(c->session);
	rpc_tls_session_free(c->tls);
	if (c->fd >= 0) {
		close(c->fd);
	}
	buf_fini(&c->out);
	free(c);
}

void rpc_client_trace(struct rpc_client *c, const char *traceparent)
{
	c->trace = traceparent;
}

/* ---- calls ---- */

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
	if (slice_ms(end_ns) == 0) {
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
			send_frames(c);
			return r;
		}
		if (step(c, slice_ms(end_ns))) {
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
	int64_t end_ns = end_of(timeout_ms);
	struct err mine = { 0 };
	int r;

	if (c->lost.code) {
		mine = c->lost;
		goto out;
	}
	if (c->leaving) {
		lose_to_server(c);
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
