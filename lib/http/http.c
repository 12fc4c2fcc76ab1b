/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd on libuv's loop: its epoll descriptor is watched as any other,
 * and a timer stands for the time-outs that it asks for. It has no thread of its
 * own: every callback here runs on the loop, so nothing is locked.
 *
 * A request goes on_request (its head) -> on_request (its end, empty since only
 * GET is served) -> handler. What the handler does not answer at once is
 * suspended; http_answer resumes it, and libmicrohttpd calls on_request a third
 * time to take the response. A suspended connection is in no epoll set of
 * libmicrohttpd, so that a handle of ours watches for its end.
 *
 * When there are as many connections as may be, a newcomer has the place of one of
 * whoever has most, be it the newcomer: so no client keeps out another user, and
 * requests that were never sent keep out none at all.
 */
#include "lib/http/private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"

#define MAX_HEAD ((size_t)16 << 10)	/* of a request, with MHD's own use */
#define IDLE_S 15u			/* without a byte in either direction */
#define HEAD_NS INT64_C(5000000000)	/* for a request's head, however slow */
#define SWEEP_MS 500

/* Of one request; made when its head is complete, freed by on_completed. */
struct http_request {
	struct http_server *server;
	struct MHD_Connection *conn;
	const char *path;	/* libmicrohttpd's, as long as the request */
	struct MHD_Response *response;	/* decided, owned; NULL: due */
	unsigned status;	/* of HTTP; 0 until http_answer */
	bool waiting;		/* suspended until the answer */
	struct hangup *hangup;	/* while it waits */
	http_gone_cb on_gone;
	void *gone_arg;
};

/* Watches for the end of a connection that libmicrohttpd does not watch. Outlives
 * its request until libuv has closed the handle. */
struct hangup {
	uv_poll_t poll;
	struct http_request *q;
};

/* An accepted connection, for its owner's share and the bound on the time of a request's head. */
struct client {
	TAILQ_ENTRY(client) link;	/* the oldest first */
	int fd;
	uint64_t owner;
	bool leaves;		/* has lost its place */
	int64_t since_ns;	/* waits for a request's head, 0: has one */
	const char *uri_end;	/* of the head that is being read */
};

struct http_server {
	uv_loop_t *loop;
	struct MHD_Daemon *mhd;
	http_handler handler;
	void *arg;
	uv_poll_t poll;		/* libmicrohttpd's epoll descriptor */
	uv_timer_t timer;	/* when it wants to run again */
	uv_timer_t sweep;
	uv_prepare_t prepare;	/* answers given since it has run */
	int n_handles;
	TAILQ_HEAD(clients, client) clients;
	int n_clients, max_clients;	/* those that do not leave */
	bool closed;		/* a connection, since it has run */
};

/* ---- the host ------------------------------------------------------------ */

bool http_host_is_local(const char *host)
{
	char name[64];
	struct in_addr v4;
	size_t len = host ? strcspn(host, host[0] == '[' ? "]" : ":") : 0;
	const char *rest = host ? host + len : NULL;

	if (len == 0 || len >= sizeof(name)) {
		return false;
	}
	if (host[0] == '[' && *rest++ != ']') {
		return false;
	}
	if (*rest != '\0' && (rest[0] != ':' || rest[1 + strspn(rest + 1, "0123456789")])) {
		return false;
	}
	memcpy(name, host, len);
	name[len] = '\0';
	return strcasecmp(name, "localhost") == 0 ||
	       strcmp(name, "[::1") == 0 ||
	       (inet_pton(AF_INET, name, &v4) == 1 &&
		ntohl(v4.s_addr) >> 24 == 127);
}

static bool is_loopback(const struct sockaddr_storage *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;

	return a->ss_family == AF_INET
		       ? ntohl(v4->sin_addr.s_addr) >> 24 == 127
		       : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* ---- answers ------------------------------------------------------------- */

static void on_prepare(uv_prepare_t *prepare);

static void on_hangup_closed(uv_handle_t *h)
{
	free(h->data);
}

static void unwatch(struct http_request *q)
{
	if (q->hangup) {
		uv_close((uv_handle_t *)&q->hangup->poll, on_hangup_closed);
		q->hangup = NULL;
	}
}

static void on_hangup(uv_poll_t *poll, int status, int events)
{
	struct http_request *q = ((struct hangup *)poll->data)->q;

	(void)status, (void)events;
	uv_poll_stop(poll);
	if (q->on_gone) {
		q->on_gone(q, q->gone_arg);
	}
}

/* Where libuv cannot watch it, the end is seen when the answer is written. */
static void watch_hangup(struct http_request *q)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		q->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct hangup *h = info ? x_new(1, sizeof(*h)) : NULL;

	if (!h) {
		return;
	}
	h->q = q;
	h->poll.data = h;
	if (uv_poll_init(q->server->loop, &h->poll, info->connect_fd)) {
		free(h);
		return;
	}
	q->hangup = h;
	uv_poll_start(&h->poll, UV_DISCONNECT, on_hangup);
}

static struct MHD_Response *response(const struct http_header *headers,
				     const void *body, size_t len)
{
	struct MHD_Response *r = x_have(MHD_create_response_from_buffer(
		len, (void *)body, MHD_RESPMEM_MUST_COPY));

	for (; headers && headers->name; headers++) {
		MHD_add_response_header(r, headers->name, headers->value);
	}
	return r;
}

void http_answer(struct http_request *q, int status, const struct http_header *headers,
		 const void *body, size_t len)
{
	struct http_server *s = q->server;

	q->status = (unsigned)status;
	q->response = response(headers, body, len);
	if (q->waiting) {
		q->waiting = false;
		unwatch(q);
		MHD_resume_connection(q->conn);
		uv_prepare_start(&s->prepare, on_prepare);
	}
}

static void refuse(struct http_request *q, int status, const char *text)
{
	static const struct http_header headers[] = {
		{ "Allow", "GET" },
		{ "Content-Type", "text/plain; charset=utf-8" },
		{ NULL, NULL },
	};

	http_answer(q, status, headers + (status != 405), text, strlen(text));
}

/* ---- requests ------------------------------------------------------------ */

const char *http_path(const struct http_request *q)
{
	return q->path;
}

const char *http_query(const struct http_request *q, const char *key)
{
	return MHD_lookup_connection_value(q->conn, MHD_GET_ARGUMENT_KIND, key);
}

void http_on_gone(struct http_request *q, http_gone_cb cb, void *arg)
{
	q->on_gone = cb;
	q->gone_arg = arg;
}

static struct client *client_of(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* Before libmicrohttpd takes it apart, which ends at a NUL what goes on behind it. */
static void *on_uri(void *arg, const char *uri, struct MHD_Connection *conn)
{
	struct client *c = client_of(conn);

	(void)arg;
	if (c) {
		c->uri_end = uri + strlen(uri);
	}
	return NULL;
}

static const char *header(const struct http_request *q, const char *name)
{
	return MHD_lookup_connection_value(q->conn, MHD_HEADER_KIND, name);
}

struct count {
	const char *name;
	int n;
};

static enum MHD_Result count_value(void *arg, enum MHD_ValueKind kind, const char *name,
				   const char *value)
{
	struct count *c = arg;

	(void)kind, (void)value;
	c->n += strcasecmp(name, c->name) == 0;
	return MHD_YES;
}

static int n_headers(const struct http_request *q, const char *name)
{
	struct count c = { .name = name };

	MHD_get_connection_values(q->conn, MHD_HEADER_KIND, count_value, &c);
	return c.n;
}

static bool has_body(const struct http_request *q)
{
	const char *length = header(q, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return header(q, MHD_HTTP_HEADER_TRANSFER_ENCODING) || (length && strcmp(length, "0") != 0);
}

static enum MHD_Result send_response(struct http_request *q)
{
	return MHD_queue_response(q->conn, q->status, q->response);
}

/* The head is complete; version follows the URI in it. What is refused here, before
 * libmicrohttpd asks for a body, also ends the connection. */
static enum MHD_Result begin(struct http_request *q, const char *method, const char *version)
{
	struct client *c = client_of(q->conn);

	if (c) {
		c->since_ns = 0;
	}
	if (c && version != c->uri_end + 1) {
		refuse(q, 400, "this is no URI\n");
	} else if (n_headers(q, MHD_HTTP_HEADER_HOST) != 1) {
		refuse(q, 400, "one Host is expected\n");
	} else if (n_headers(q, MHD_HTTP_HEADER_CONTENT_LENGTH) > 1) {
		refuse(q, 400, "one Content-Length is expected\n");
	} else if (strcmp(method, "GET") != 0) {
		refuse(q, 405, "only GET\n");
	} else if (has_body(q)) {
		refuse(q, 400, "a GET has no body\n");
	} else if (!http_host_is_local(header(q, MHD_HTTP_HEADER_HOST))) {
		refuse(q, 421, "this is not the host that was asked for\n");
	} else {
		return MHD_YES;
	}
	return send_response(q);
}

/* Called with the head of a request, at its end, and when it is resumed. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *conn, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *len, void **slot)
{
	struct http_request *q = *slot;

	(void)data, (void)len;
	if (!q) {
		q = x_new(1, sizeof(*q));
		*slot = q;
		q->server = arg;
		q->conn = conn;
		q->path = url;
		return begin(q, method, version);
	}
	if (q->status == 0) {
		q->server->handler(q, q->server->arg);
	}
	if (q->status == 0) {
		q->waiting = true;
		watch_hangup(q);
		MHD_suspend_connection(conn);
		return MHD_YES;
	}
	return send_response(q);
}

static void on_completed(void *arg, struct MHD_Connection *conn, void **slot,
			 enum MHD_RequestTerminationCode why)
{
	struct http_request *q = *slot;
	struct client *c = client_of(conn);

	(void)arg, (void)why;
	if (c) {
		c->since_ns = clk_now_ns();
	}
	if (q && q->response) {
		MHD_destroy_response(q->response);
	}
	free(q);
	*slot = NULL;
}

/* ---- connections --------------------------------------------------------- */

static void send_away(struct http_server *s, struct client *c)
{
	s->n_clients -= !c->leaves;
	c->leaves = true;
	shutdown(c->fd, SHUT_RDWR);
}

static int count_of(const struct http_server *s, uint64_t owner)
{
	const struct client *c;
	int n = 0;

	TAILQ_FOREACH (c, &s->clients, link) {
		n += !c->leaves && c->owner == owner;
	}
	return n;
}

/* Too many: of whoever has most, one that has sent no whole request, of these the oldest. */
static void make_room(struct http_server *s)
{
	struct client *c, *best = NULL;
	int n, most = 0;

	TAILQ_FOREACH (c, &s->clients, link) {
		n = c->leaves ? 0 : count_of(s, c->owner);
		if (n > most || (n == most && n > 0 && c->since_ns && !best->since_ns)) {
			best = c;
			most = n;
		}
	}
	if (best) {
		send_away(s, best);
	}
}

static void *add_client(struct http_server *s, int fd)
{
	struct client *c = x_new(1, sizeof(*c));

	c->fd = fd;
	c->since_ns = clk_now_ns();
	c->owner = http_owner(fd);
	TAILQ_INSERT_TAIL(&s->clients, c, link);
	if (++s->n_clients > s->max_clients) {
		make_room(s);
	}
	return c;
}

static void remove_client(struct http_server *s, struct client *c)
{
	TAILQ_REMOVE(&s->clients, c, link);
	s->n_clients -= !c->leaves;
	free(c);
	s->closed = true;
}

static void on_connection(void *arg, struct MHD_Connection *conn, void **slot,
			  enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
		*slot = info ? add_client(arg, info->connect_fd) : NULL;
	} else if (*slot) {
		remove_client(arg, *slot);
		*slot = NULL;
	}
}

/* A client that sends its head a byte at a time is never idle. */
static void on_sweep(uv_timer_t *timer)
{
	struct http_server *s = timer->data;
	int64_t now = clk_now_ns();
	struct client *c;

	TAILQ_FOREACH (c, &s->clients, link) {
		if (c->since_ns && now - c->since_ns > HEAD_NS) {
			send_away(s, c);
		}
	}
}

/* ---- the loop ------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

/* When connections end that were as many as may be, libmicrohttpd looks for
 * new ones again only the next time it runs. */
static void run_mhd(struct http_server *s)
{
	MHD_UNSIGNED_LONG_LONG ms;

	do {
		s->closed = false;
		MHD_run(s->mhd);
	} while (s->closed);
	if (MHD_get_timeout(s->mhd, &ms) == MHD_YES) {
		uv_timer_start(&s->timer, on_timer, ms, 0);
	} else {
		uv_timer_stop(&s->timer);
	}
}

static void on_timer(uv_timer_t *timer)
{
	run_mhd(timer->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	(void)status, (void)events;
	run_mhd(poll->data);
}

static void on_prepare(uv_prepare_t *prepare)
{
	uv_prepare_stop(prepare);
	run_mhd(prepare->data);
}

/* ---- life ---------------------------------------------------------------- */

static void on_closed(uv_handle_t *h)
{
	struct http_server *s = h->data;

	if (--s->n_handles == 0) {
		free(s);
	}
}

void http_server_free(struct http_server *s)
{
	if (!s) {
		return;
	}
	uv_poll_stop(&s->poll);
	MHD_run(s->mhd);	/* what was answered just now */
	uv_close((uv_handle_t *)&s->poll, on_closed);
	uv_close((uv_handle_t *)&s->timer, on_closed);
	uv_close((uv_handle_t *)&s->sweep, on_closed);
	uv_close((uv_handle_t *)&s->prepare, on_closed);
	MHD_stop_daemon(s->mhd);
}

/* Nothing that is served has a name that needs escapes; decoded ones could
 * end a path early. */
static size_t keep(void *arg, struct MHD_Connection *conn, char *text)
{
	(void)arg, (void)conn;
	return strlen(text);
}

static int start_mhd(struct http_server *s, const struct http_config *cfg,
		     const struct sockaddr_storage *addr, struct err *err)
{
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
			 (addr->ss_family == AF_INET6 ? MHD_USE_IPv6 : 0u);

	errno = 0;
	s->mhd = MHD_start_daemon(flags, (uint16_t)cfg->port, NULL, NULL, on_request, s,
				  MHD_OPTION_SOCK_ADDR, (const struct sockaddr *)addr,
				  MHD_OPTION_URI_LOG_CALLBACK, on_uri, s,
				  /* Those that leave are there for a moment. */
				  MHD_OPTION_CONNECTION_LIMIT, 2 * (unsigned)cfg->max_conns,
				  MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S,
				  MHD_OPTION_CONNECTION_MEMORY_LIMIT, MAX_HEAD,
				  MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK,
				  keep, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
				  MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
	if (s->mhd) {
		return 0;
	}
	return err_set(err, WEFT_EIO, "%s: %s port %d: %s", cfg->option,
		       cfg->host, cfg->port,
		       errno ? strerror(errno) : "cannot listen");
}

static int start_handles(struct http_server *s, struct err *err)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	int r = info ? uv_poll_init(s->loop, &s->poll, info->epoll_fd)
		     : UV_EINVAL;

	if (r) {
		MHD_stop_daemon(s->mhd);
		return err_set(err, WEFT_EIO, "HTTP: %s", uv_strerror(r));
	}
	uv_timer_init(s->loop, &s->timer);
	uv_timer_init(s->loop, &s->sweep);
	uv_prepare_init(s->loop, &s->prepare);
	s->n_handles = 4;
	s->poll.data = s->timer.data = s->sweep.data = s->prepare.data = s;
	uv_poll_start(&s->poll, UV_READABLE, on_poll);
	uv_timer_start(&s->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
	return 0;
}

int http_server_new(uv_loop_t *loop, const struct http_config *cfg,
		    struct http_server **out, struct err *err)
{
	struct sockaddr_storage addr;
	struct http_server *s;
	int r;

	if (uv_ip4_addr(cfg->host, cfg->port, (struct sockaddr_in *)&addr) &&
	    uv_ip6_addr(cfg->host, cfg->port, (struct sockaddr_in6 *)&addr)) {
		return err_set(err, WEFT_EINVAL, "%s: \"%s\" is not an "
			       "address", cfg->option, cfg->host);
	}
	if (!is_loopback(&addr)) {
		return err_set(err, WEFT_EINVAL, "%s: %s is not a loopback "
			       "address", cfg->option, cfg->host);
	}
	s = x_new(1, sizeof(*s));
	s->loop = loop;
	s->handler = cfg->handler;
	s->arg = cfg->arg;
	s->max_clients = cfg->max_conns;
	TAILQ_INIT(&s->clients);
	r = start_mhd(s, cfg, &addr, err);
	if (r || (r = start_handles(s, err))) {
		free(s);
		return r;
	}
	*out = s;
	return 0;
}

int http_server_port(const struct http_server *s)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_BIND_PORT);

	return info ? info->port : 0;
}
