/* Connecting to a server, on a unix socket or by TLS, and closing. */
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

#include "lib/rpc/client.h"

#define CONNECT_RETRY_MS 10

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

/* ---- TCP and TLS ---- */

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
	while ((wait_ms = client_slice_ms(end_ns)) > 0 && poll(&p, 1, wait_ms) <= 0) {
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
	while (c->out.len > 0 && !c->deaf && client_send_out(c)) {
	}
	if (c->out.failed) {
		return client_lose(c, WEFT_ENOMEM, "out of memory");
	}
	if (c->out.len > 0 && !c->deaf) {
		p.events |= POLLOUT;
	}
	return poll(&p, 1, wait_ms) > 0 && (p.revents & ~POLLOUT) ? client_receive(c)
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
		exchange(c, 0);		/* the alert that says why */
		return err_set(err, r, "%s: %s", c->path, why.msg);
	}
	return 0;
}

int rpc_client_open_tls(const char *host, int port,
			const struct rpc_tls_files *files, int timeout_ms,
			struct rpc_client **out, struct err *err)
{
	int64_t end_ns = client_end_of(timeout_ms);
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
		r = client_start_session(c, err);
	}
	/* The first bytes of HTTP/2 may have come with the handshake. */
	if (r == 0) {
		r = client_take_encrypted(c, (const uint8_t *)"", 0);
	}
	if (r == 0) {
		r = client_await_greeting(c, end_ns, err);
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
		if (errno != EAGAIN || client_slice_ms(end_ns) == 0) {
			return connect_error(c->path, errno, err);
		}
		poll(NULL, 0, CONNECT_RETRY_MS);
	}
	return 0;
}

int rpc_client_open(const char *unix_path, int timeout_ms,
		    struct rpc_client **out, struct err *err)
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
	c = client_new(unix_path, err);
	if (!c) {
		return err->code;
	}
	r = connect_unix(c, end_ns, err);
	if (r == 0) {
		r = client_start_session(c, err);
	}
	if (r == 0) {
		r = client_await_greeting(c, end_ns, err);
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
		client_send_frames(c);
	}
	nghttp2_session_del(c->session);
	rpc_tls_session_free(c->tls);
	if (c->fd >= 0) {
		close(c->fd);
	}
	buf_fini(&c->out);
	free(c);
}
