/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's connection: to a unix socket, or by TLS, and its bytes with
 * poll(), or in a coroutine while its loop goes on, in slices short enough that a cancel flag
 * set by a signal handler or another thread is seen soon. A server may close while this side still
 * sends: what it sent before is read all the same, since it explains more than
 * EPIPE.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/coroutine/coroutine.h"
#include "lib/rpc/private.h"

#define CONNECT_RETRY_MS 10
#define SLICE_MS 100
#define NS_PER_MS 1000000

int client_slice_ms(int64_t end_ns)
{
	int64_t left;

	if (end_ns == 0) {
		return SLICE_MS;
	}
	left = (end_ns - clk_now_ns() + NS_PER_MS - 1) / NS_PER_MS;
	return left <= 0 ? 0 : left < SLICE_MS ? (int)left : SLICE_MS;
}

int64_t client_end_of(int timeout_ms)
{
	return timeout_ms > 0 ? clk_now_ns() + (int64_t)timeout_ms * NS_PER_MS
			      : 0;
}

int client_lose(struct rpc_client *c, enum weft_err code, const char *why)
{
	if (c->lost.code == 0) {
		err_set(&c->lost, code, "%s: %s", c->path, why);
	}
	return c->lost.code;
}

int client_lose_to_server(struct rpc_client *c)
{
	if (!c->leaving) {
		return client_lose(c, WEFT_EUNAVAIL, "the server closed the connection");
	}
	client_lose(c, c->leave_code == NGHTTP2_INADEQUATE_SECURITY ? WEFT_EDENIED
								     : WEFT_EUNAVAIL,
		    c->leave_text[0] ? c->leave_text : "the server is shutting down");
	if (c->leave_code == NGHTTP2_ENHANCE_YOUR_CALM && !c->lost.hint[0]) {
		err_hint(&c->lost, "end some of them, or try again when they have ended");
	}
	return c->lost.code;
}

/* Hands t.out to the socket, as much as it takes; false when it takes no more
 * now. */
static bool send_out(struct rpc_client *c)
{
	ssize_t n = send(c->fd, c->t.out.data + c->out_sent,
			 c->t.out.len - c->out_sent, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return false;
	}
	/* What the server sent before it closed is still to be read, and
	 * explains more than EPIPE. */
	c->deaf = n < 0;
	c->out_sent += n > 0 ? (size_t)n : 0;
	if (c->out_sent == c->t.out.len) {
		buf_reset(&c->t.out);
		c->out_sent = 0;
	}
	return true;
}

int client_send_frames(struct rpc_client *c)
{
	struct err err;

	while (!c->deaf) {
		if (rpc_transport_collect(&c->t, &err)) {
			return client_lose(c, err.code == WEFT_EINTERNAL
					   ? WEFT_EIO : err.code, err.msg);
		}
		if (c->t.out.len == 0 || !send_out(c)) {
			return 0;
		}
	}
	return 0;
}

/* Bytes of the socket; none: what TLS holds already. */
static int take(struct rpc_client *c, const void *data, size_t len)
{
	struct err err;
	bool closed;

	switch (rpc_transport_take(&c->t, data, len, &closed, &err)) {
	case 0:
		return closed ? client_lose_to_server(c) : 0;
	case WEFT_EINVAL:
		return client_lose(c, WEFT_EIO, err.msg);
	case WEFT_EIO:
		/* A certificate that the server refuses is reported after the
		 * handshake in TLS 1.3. */
		return client_lose(c, c->greeted ? WEFT_EIO : WEFT_EDENIED, err.msg);
	default:
		return client_lose(c, err.code, err.msg);
	}
}

static int receive(struct rpc_client *c)
{
	uint8_t data[64 << 10];
	ssize_t n = recv(c->fd, data, sizeof(data), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return 0;
	}
	return n <= 0 ? client_lose_to_server(c) : take(c, data, (size_t)n);
}

int client_step(struct rpc_client *c, int wait_ms)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	int r = client_send_frames(c);

	if (r) {
		return r;
	}
	if (c->t.out.len > 0 && !c->deaf) {
		p.events |= POLLOUT;
	}
	r = co_poll(&p, wait_ms);
	if (r < 0 && errno != EINTR) {
		return client_lose(c, WEFT_EIO, strerror(errno));
	}
	return r > 0 && (p.revents & ~POLLOUT) ? receive(c) : 0;
}

/* Waits for the server's SETTINGS: before, nothing answers there. */
static int await_greeting(struct rpc_client *c, int64_t end_ns, struct err *err)
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

/* ---- opening ---- */

static struct rpc_client *client_new(const char *name)
{
	struct rpc_client *c = x_new(1, sizeof(*c));

	c->fd = -1;
	snprintf(c->path, sizeof(c->path), "%s", name);
	return c;
}

/* ---- TCP and TLS ---- */

/* Connects to one address. 0, or an errno. */
static int connect_address(struct rpc_client *c, const struct addrinfo *a, int64_t end_ns)
{
	struct pollfd p = { .events = POLLOUT };
	socklen_t len = sizeof(int);
	int wait_ms, error = 0, on = 1;

	c->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
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
	while ((wait_ms = client_slice_ms(end_ns)) > 0 && co_poll(&p, wait_ms) <= 0) {
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
	error = co_getaddrinfo(host, service, &hints, &list);
	if (error) {
		return err_set(err, WEFT_EUNAVAIL, "%s: %s", host, gai_strerror(error));
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

/* Sends what the handshake has written; waits for an answer and takes it. */
static int exchange(struct rpc_client *c, int wait_ms)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	rpc_tls_output(c->t.tls, &c->t.out);
	while (c->t.out.len > 0 && !c->deaf && send_out(c)) {
	}
	if (c->t.out.len > 0 && !c->deaf) {
		p.events |= POLLOUT;
	}
	return co_poll(&p, wait_ms) > 0 && (p.revents & ~POLLOUT) ? receive(c) : 0;
}

static int agree_on_tls(struct rpc_client *c, int64_t end_ns, struct err *err)
{
	struct err why = { 0 };
	bool done = false;
	int wait_ms, r = 0;

	for (;;) {
		r = rpc_tls_handshake(c->t.tls, &done, &why);
		if (r || done) {
			break;
		}
		wait_ms = client_slice_ms(end_ns);
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
		exchange(c, 0);		/* the alert with the reason */
		return err_set(err, r, "%s: %s", c->path, why.msg);
	}
	return 0;
}

int rpc_client_open_tcp(const char *host, int port, const struct rpc_tls_files *files,
			int timeout_ms, struct rpc_client **out, struct err *err)
{
	int64_t end_ns = client_end_of(timeout_ms);
	struct rpc_tls *tls = NULL;
	char name[NAME_MAX_TEXT];
	struct rpc_client *c;
	int r;

	*out = NULL;
	snprintf(name, sizeof(name), "%s:%d", host, port);
	c = client_new(name);
	r = files ? rpc_tls_new(files, false, &tls, err) : 0;
	if (r == 0 && files) {
		c->t.tls = rpc_tls_session_new(tls);
		r = rpc_tls_expect_host(c->t.tls, host, err);
	}
	if (r == 0) {
		r = connect_tcp(c, host, port, end_ns, err);
	}
	if (r == 0 && files) {
		r = agree_on_tls(c, end_ns, err);
	}
	if (r == 0) {
		client_start_session(c);
	}
	/* The first bytes of HTTP/2 may have come with the handshake. */
	if (r == 0 && files) {
		r = take(c, "", 0);
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

static int connect_error(const char *path, int errnum, struct err *err)
{
	switch (errnum) {
	case ENOENT:
	case ECONNREFUSED:
		return err_set(err, WEFT_EUNAVAIL, "no weftd listens at %s", path);
	case EACCES:
	case EPERM:
		return err_errno(err, WEFT_EDENIED, errnum, "%s", path);
	case EAGAIN:
		return err_set(err, WEFT_EUNAVAIL, "%s: the server takes no connection", path);
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
		if (errno != EAGAIN || client_slice_ms(end_ns) == 0) {
			return connect_error(c->path, errno, err);
		}
		co_poll(NULL, CONNECT_RETRY_MS);
	}
	return 0;
}

int rpc_client_open(const char *unix_path, int timeout_ms, struct rpc_client **out, struct err *err)
{
	int64_t end_ns = client_end_of(timeout_ms);
	struct rpc_client *c;
	int r;

	*out = NULL;
	if (strlen(unix_path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		return err_set(err, WEFT_EINVAL,
			       "%s: socket path longer than %zu bytes",
			       unix_path,
			       sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	}
	c = client_new(unix_path);
	r = connect_unix(c, end_ns, err);
	if (r == 0) {
		client_start_session(c);
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

int rpc_client_fd(const struct rpc_client *c)
{
	return c->fd;
}

void rpc_client_close(struct rpc_client *c)
{
	if (!c) {
		return;
	}
	if (c->t.tls && c->t.session && !c->deaf) {
		rpc_tls_end(c->t.tls);
		client_send_frames(c);
	}
	rpc_transport_fini(&c->t);
	if (c->fd >= 0) {
		close(c->fd);
	}
	free(c);
}
