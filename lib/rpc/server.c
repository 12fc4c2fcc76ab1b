/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: listening, deadlines, stopping. One timer waits for the earliest
 * deadline of all calls and connections. Stopping closes the listeners, sends
 * GOAWAY, waits for the calls until the grace is over, and frees the server in
 * the close callback of its last handle.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/rpc/private.h"

#define BACKLOG 128
#define NS_PER_MS 1000000
#define TRIM_CONNS 16

static void fill_limits(struct rpc_limits *l)
{
	const size_t mib = (size_t)1 << 20;

	l->max_request = l->max_request ? l->max_request : 4 * mib;
	l->max_decoded = l->max_decoded ? l->max_decoded : RPC_DEFAULT_BUDGET;
	l->max_queued = l->max_queued ? l->max_queued : 8 * mib;
	l->max_conn_queued = l->max_conn_queued ? l->max_conn_queued
						: 16 * mib;
	l->max_conn_held = l->max_conn_held ? l->max_conn_held : 64 * mib;
	l->max_conns = l->max_conns ? l->max_conns : 512;
	l->max_reserved = l->max_reserved ? l->max_reserved : 64;
	l->max_greeting = l->max_greeting ? l->max_greeting : 128;
	l->greet_ms = l->greet_ms ? l->greet_ms : 10000;
	l->first_call_ms = l->first_call_ms ? l->first_call_ms : 60000;
	l->max_calls = l->max_calls ? l->max_calls : 100;
}

/* ---- flushing ---- */

void rpc_server_mark_dirty(struct rpc_conn *conn)
{
	conn->dirty = true;
	conn->server->dirty = true;
}

/* Connections leave the list only from close callbacks, so that it is safe
 * to walk whatever the flushes call. A flush that makes another connection
 * dirty, through a handler, sets the mark again. */
static void flush_all(struct rpc_server *s)
{
	struct rpc_conn *conn;

	while (s->dirty) {
		s->dirty = false;
		TAILQ_FOREACH (conn, &s->conns, link) {
			if (conn->dirty) {
				rpc_conn_flush(conn);
			}
		}
	}
}

static void on_prepare(uv_prepare_t *handle)
{
	flush_all(handle->data);
}

static void on_check(uv_check_t *handle)
{
	flush_all(handle->data);
}

/* ---- deadlines ---- */

static void on_deadline(uv_timer_t *timer);

static void start_deadline(struct rpc_server *s, int64_t now)
{
	int64_t wait = s->deadline_ns > now ? s->deadline_ns - now : 0;

	/* The loop's own clock may be old by the time spent in callbacks. */
	uv_update_time(s->loop);
	uv_timer_start(&s->deadline, on_deadline,
		       (uint64_t)((wait + NS_PER_MS - 1) / NS_PER_MS), 0);
}

void rpc_server_watch_deadline(struct rpc_server *s, int64_t deadline_ns)
{
	if (s->deadline_ns == 0 || deadline_ns < s->deadline_ns) {
		s->deadline_ns = deadline_ns;
		start_deadline(s, clk_now_ns());
	}
}

/* True when `at` (0: never) has come; else *next is no later than it. */
static bool is_due(int64_t at, int64_t now, int64_t *next)
{
	if (at > now && (*next == 0 || at < *next)) {
		*next = at;
	}
	return at != 0 && at <= now;
}

/* Its time has come: to agree on TLS, to make a first call, or to be gone. */
static void end_late(struct rpc_conn *conn)
{
	if (conn->lingers || conn->leaves) {
		rpc_conn_close(conn);
	} else if (conn->has_spoken) {
		rpc_share_send_away(conn, "no call came in time");
	} else {
		rpc_share_refused(conn->server, "a connection",
				  conn->t.session ? "it sends nothing"
						  : "TLS was not agreed on in time");
		rpc_conn_close(conn);
	}
}

/* Expires what is due and waits for the next. O(calls) each time; the bounds
 * on connections and calls keep that small. */
static void on_deadline(uv_timer_t *timer)
{
	struct rpc_server *s = timer->data;
	int64_t now = clk_now_ns(), next = 0;
	struct rpc_conn *conn;
	struct rpc_call *call;

	TAILQ_FOREACH (conn, &s->conns, link) {
		if (is_due(conn->close_by_ns, now, &next)) {
			conn->close_by_ns = 0;
			end_late(conn);
			is_due(conn->close_by_ns, now, &next);
		}
		TAILQ_FOREACH (call, &conn->calls, link) {
			if (is_due(call->deadline_passed ? 0 : call->deadline_ns, now, &next)) {
				rpc_call_expire(call);
			}
		}
	}
	if (s->n_unsaid > 0 && is_due(s->log_at_ns, now, &next)) {
		rpc_share_say_refused(s);
	}
	s->deadline_ns = next;
	if (next) {
		start_deadline(s, now);
	}
}

/* ---- listening ---- */

static void ignore_sigpipe(void)
{
	struct sigaction act;

	if (sigaction(SIGPIPE, NULL, &act) == 0 && act.sa_handler == SIG_DFL) {
		act.sa_handler = SIG_IGN;
		sigaction(SIGPIPE, &act, NULL);
	}
}

static void on_connection(uv_stream_t *listener, int status)
{
	if (status == 0) {
		rpc_conn_accept(listener->data, listener);
	}
}

/* ---- the end ---- */

static void server_free(struct rpc_server *s)
{
	nghttp2_session_callbacks_del(s->callbacks);
	nghttp2_option_del(s->option);
	nghttp2_option_del(s->unix_option);
	rpc_tls_free(s->tls);
	free(s);
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct rpc_server *s = handle->data;
	void (*done)(void *) = s->done;
	void *arg = s->done_arg;

	if (--s->n_handles == 0) {
		server_free(s);
		if (done) {
			done(arg);
		}
	}
}

static void close_handle(void *handle)
{
	if (!uv_is_closing(handle)) {
		uv_close(handle, on_handle_closed);
	}
}

/* With no connection left nothing uses the handles any more. */
static void close_handles(struct rpc_server *s)
{
	close_handle(&s->listener);
	if (s->tls) {
		close_handle(&s->tcp_listener);
	}
	close_handle(&s->prepare);
	close_handle(&s->check);
	close_handle(&s->deadline);
	close_handle(&s->grace);
}

/* A connection has some 100 KiB, which the allocator keeps when it is freed: what lives longer
 * stands behind it. So it is told to give the pages back when most of many are gone. */
static void give_memory_back(struct rpc_server *s)
{
	if (s->peak_conns > TRIM_CONNS && s->n_conns < s->peak_conns / 4) {
		malloc_trim(0);
		s->peak_conns = s->n_conns;
	}
}

void rpc_server_add_conn(struct rpc_conn *conn)
{
	struct rpc_server *s = conn->server;

	TAILQ_INSERT_TAIL(&s->conns, conn, link);
	s->n_conns++;
	s->peak_conns = s->n_conns > s->peak_conns ? s->n_conns : s->peak_conns;
}

void rpc_server_remove_conn(struct rpc_conn *conn)
{
	struct rpc_server *s = conn->server;

	TAILQ_REMOVE(&s->conns, conn, link);
	rpc_share_leave(conn);
	s->n_conns--;
	free(conn);
	give_memory_back(s);
	if (s->stopping && s->n_conns == 0) {
		close_handles(s);
	}
}

static void on_grace_over(uv_timer_t *timer)
{
	struct rpc_server *s = timer->data;
	struct rpc_conn *conn;

	/* With no grace at all, this is what sends the GOAWAY. */
	flush_all(s);
	TAILQ_FOREACH (conn, &s->conns, link) {
		rpc_conn_close(conn);
	}
}

void rpc_server_stop(struct rpc_server *s, int grace_ms, void (*done)(void *), void *arg)
{
	struct rpc_conn *conn;

	assert(!s->stopping);
	s->stopping = true;
	s->done = done;
	s->done_arg = arg;
	close_handle(&s->listener);
	if (s->tls) {
		close_handle(&s->tcp_listener);
	}
	rpc_unix_remove(&s->socket);
	if (s->n_conns == 0) {
		close_handles(s);
		return;
	}
	TAILQ_FOREACH (conn, &s->conns, link) {
		rpc_conn_goaway(conn, NGHTTP2_NO_ERROR, "");
	}
	uv_timer_start(&s->grace, on_grace_over, (uint64_t)grace_ms, 0);
}

static int listen_tcp(struct rpc_server *s, struct err *err)
{
	const struct rpc_server_config *cfg = &s->cfg;
	struct sockaddr_storage addr = { 0 };
	int r = uv_ip4_addr(cfg->tcp_host, cfg->tcp_port, (struct sockaddr_in *)&addr);

	if (r < 0) {
		r = uv_ip6_addr(cfg->tcp_host, cfg->tcp_port, (struct sockaddr_in6 *)&addr);
	}
	if (r < 0) {
		return err_set(err, WEFT_EINVAL, "%s: is not an address", cfg->tcp_host);
	}
	r = uv_tcp_bind(&s->tcp_listener, (struct sockaddr *)&addr, 0);
	if (r == 0) {
		r = uv_listen((uv_stream_t *)&s->tcp_listener, BACKLOG, on_connection);
	}
	return r < 0 ? err_set(err, WEFT_EIO, "%s port %d: %s", cfg->tcp_host,
			       cfg->tcp_port, uv_strerror(r))
		     : 0;
}

static void init_handles(struct rpc_server *s)
{
	uv_pipe_init(s->loop, &s->listener, 0);
	uv_prepare_init(s->loop, &s->prepare);
	uv_check_init(s->loop, &s->check);
	uv_timer_init(s->loop, &s->deadline);
	uv_timer_init(s->loop, &s->grace);
	s->listener.data = s->prepare.data = s->check.data = s;
	s->deadline.data = s->grace.data = s;
	s->n_handles = 5;
	if (s->tls) {
		uv_tcp_init(s->loop, &s->tcp_listener);
		s->tcp_listener.data = s;
		s->n_handles++;
	}
	uv_prepare_start(&s->prepare, on_prepare);
	uv_check_start(&s->check, on_check);
}

static int open_socket(struct rpc_server *s, int *fd, struct err *err)
{
	const struct rpc_server_config *cfg = &s->cfg;

	if (!cfg->unix_fd) {
		return rpc_unix_bind(&s->socket, cfg->unix_path, cfg->mode, fd, err);
	}
	*fd = fcntl(cfg->unix_fd, F_DUPFD_CLOEXEC, 0);
	return *fd < 0 ? err_errno(err, WEFT_EIO, errno, "%s", cfg->unix_path) : 0;
}

int rpc_server_new(uv_loop_t *loop, const struct rpc_server_config *cfg,
		   struct rpc_server **out, struct err *err)
{
	struct rpc_server *s = x_new(1, sizeof(*s));
	int fd = -1, r = 0;

	*out = NULL;
	s->loop = loop;
	s->cfg = *cfg;
	fill_limits(&s->cfg.limits);
	TAILQ_INIT(&s->conns);
	rpc_conn_callbacks_new(s);
	if (cfg->tcp_host) {
		r = rpc_tls_new(&cfg->tls, true, &s->tls, err);
	}
	s->socket.lock_fd = -1;
	if (r == 0) {
		r = open_socket(s, &fd, err);
	}
	if (r) {
		server_free(s);
		return r;
	}
	ignore_sigpipe();
	snprintf(s->path, sizeof(s->path), "%s", cfg->unix_path);
	s->cfg.unix_path = s->path;
	init_handles(s);
	r = uv_pipe_open(&s->listener, fd);
	if (r == 0) {
		r = uv_listen((uv_stream_t *)&s->listener, BACKLOG, on_connection);
	} else {
		close(fd);
	}
	if (r < 0) {
		r = err_set(err, WEFT_EIO, "%s: %s", s->path, uv_strerror(r));
	} else if (s->tls) {
		r = listen_tcp(s, err);
	}
	if (r) {
		rpc_server_stop(s, 0, NULL, NULL);
		return r;
	}
	*out = s;
	return 0;
}

int rpc_server_port(const struct rpc_server *s)
{
	struct sockaddr_storage addr;
	int len = sizeof(addr);

	if (!s->tls || uv_tcp_getsockname(&s->tcp_listener, (struct sockaddr *)&addr, &len)) {
		return 0;
	}
	return ntohs(addr.ss_family == AF_INET6
			     ? ((struct sockaddr_in6 *)&addr)->sin6_port
			     : ((struct sockaddr_in *)&addr)->sin_port);
}

void rpc_server_release(struct rpc_server *s, int64_t mark)
{
	struct rpc_conn *conn;
	struct rpc_call *call;

	TAILQ_FOREACH(conn, &s->conns, link) {
		TAILQ_FOREACH(call, &conn->calls, link) {
			if (call->held_until && call->held_until <= mark && !call->ended) {
				rpc_call_release(call);
			}
		}
	}
}

void rpc_server_refuse(struct rpc_server *s, const struct err *err)
{
	struct rpc_conn *conn;
	struct rpc_call *call;

	TAILQ_FOREACH(conn, &s->conns, link) {
		TAILQ_FOREACH(call, &conn->calls, link) {
			if (call->held_until && call->finished && !call->ended) {
				call->status = rpc_status_of_code(err->code);
				call->err = *err;
				rpc_call_release(call);
			}
		}
	}
}

int rpc_server_reload_tls(struct rpc_server *s, struct err *err)
{
	struct rpc_tls *fresh;
	int r;

	if (!s->tls) {
		return 0;
	}
	r = rpc_tls_new(&s->cfg.tls, true, &fresh, err);
	if (r == 0) {
		rpc_tls_free(s->tls);
		s->tls = fresh;
	}
	return r;
}
