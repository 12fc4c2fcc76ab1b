/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of the server: its socket on the loop, and the session's
 * callbacks, which hand frames to the calls. It begins (on TCP) with TLS,
 * answers, and ends in one of three ways: all is sent and the peer hangs up
 * (linger), the peer is gone, or it broke the rules (rpc_conn_close).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/rpc/private.h"

#define STREAM_WINDOW (256 << 10)
#define CONN_WINDOW (1 << 20)
/* Answers to pings and settings, and other frames, that may wait for a peer
 * that does not read. */
#define MAX_ACKS 512
#define MAX_FRAMES 4096
/* How long a peer may take to hang up after all was sent. */
#define LINGER_NS ((int64_t)1000000000)
#define NS_PER_MS INT64_C(1000000)
#define KEEPALIVE_S 60

/* Until when something must happen; a nearer end stays. */
static void close_by(struct rpc_conn *conn, int after_ms)
{
	if (!conn->leaves && !conn->lingers) {
		conn->close_by_ns = clk_now_ns() + after_ms * NS_PER_MS;
		rpc_server_watch_deadline(conn->server, conn->close_by_ns);
	}
}

/* A call has begun or ended: there is no hurry any more. */
static void note_call(struct rpc_conn *conn)
{
	conn->used_ns = clk_now_ns();
	conn->has_called = true;
	if (!conn->leaves && !conn->lingers) {
		conn->close_by_ns = 0;
	}
}

/* ---- nghttp2's callbacks ---- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct rpc_call *call;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
		return 0;
	}
	note_call(user);
	call = rpc_call_new(user, frame->hd.stream_id);
	nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *user)
{
	struct rpc_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)flags, (void)user;
	if (call) {
		rpc_call_add_header(call, name, name_len, value, value_len);
	}
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream,
		   const uint8_t *data, size_t len, void *user)
{
	struct rpc_call *call = nghttp2_session_get_stream_user_data(session, stream);

	(void)flags, (void)user;
	if (call) {
		rpc_call_input(call, data, len);
	}
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct rpc_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	bool headers = frame->hd.type == NGHTTP2_HEADERS;
	struct rpc_conn *conn = user;

	if (!conn->has_spoken) {
		conn->has_spoken = true;
		if (!conn->has_called) {
			close_by(conn, conn->server->cfg.limits.first_call_ms);
		}
	}
	if (!call || (!headers && frame->hd.type != NGHTTP2_DATA)) {
		return 0;
	}
	if (headers && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
		rpc_call_headers_done(call);
	}
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
		rpc_call_half_closed(call);
	}
	return 0;
}

/* A call that was answered before its request was complete: the rest of
 * the request is not wanted. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct rpc_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)user;
	if (call && !call->half_closed && frame->hd.type == NGHTTP2_HEADERS &&
	    (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
		return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE,
						 frame->hd.stream_id,
						 NGHTTP2_NO_ERROR);
	}
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream,
			   uint32_t error_code, void *user)
{
	struct rpc_call *call = nghttp2_session_get_stream_user_data(session, stream);

	(void)error_code;
	if (call) {
		note_call(user);
		rpc_call_detach(call);
	}
	return 0;
}

/* What is the same for both kinds of connections. */
static nghttp2_option *new_option(void)
{
	nghttp2_option *option = NULL;

	nghttp2_option_new(&option);
	option = x_have(option);
	nghttp2_option_set_max_outbound_ack(option, MAX_ACKS);
	nghttp2_option_set_no_closed_streams(option, 1);
	return option;
}

void rpc_conn_callbacks_new(struct rpc_server *s)
{
	nghttp2_session_callbacks *cb;

	s->option = new_option();
	s->unix_option = new_option();
	s->callbacks = rpc_transport_callbacks_new();
	cb = s->callbacks;
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_sent);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	/* On a unix socket gRPC clients send its path, or nothing, as
	 * :authority, which nghttp2 would refuse; what matters is checked in
	 * call.c. */
	nghttp2_option_set_no_http_messaging(s->unix_option, 1);
}

/* ---- out ---- */

/* Cancels all calls. A callback may finish other calls of the connection,
 * but none is freed by that, as all are still attached. */
static void detach_calls(struct rpc_conn *conn)
{
	struct rpc_call *call;

	while ((call = TAILQ_FIRST(&conn->calls))) {
		nghttp2_session_set_stream_user_data(conn->t.session, call->stream, NULL);
		rpc_call_detach(call);
	}
}

static void on_closed(uv_handle_t *handle)
{
	struct rpc_conn *conn = handle->data;

	rpc_transport_fini(&conn->t);
	rpc_server_remove_conn(conn);
}

static void close_now(struct rpc_conn *conn)
{
	conn->closing = true;
	rpc_share_leave(conn);
	detach_calls(conn);
	uv_close(&conn->io.handle, on_closed);
}

void rpc_conn_close(struct rpc_conn *conn)
{
	conn->t.doomed = true;
	rpc_server_mark_dirty(conn);
}

static void on_written(uv_write_t *write, int status)
{
	struct rpc_conn *conn = write->data;

	conn->writing = false;
	buf_reset(&conn->t.out);
	if (status < 0) {
		rpc_conn_close(conn);
	} else {
		rpc_server_mark_dirty(conn);
	}
}

/* Writes conn->t.out; what the socket does not take at once is written when
 * it can, and nothing else meanwhile. */
static int write_out(struct rpc_conn *conn)
{
	uv_stream_t *stream = &conn->io.stream;
	uv_buf_t b = uv_buf_init(conn->t.out.data, (unsigned)conn->t.out.len);
	int n = uv_try_write(stream, &b, 1);
	int r;

	if (n < 0 && n != UV_EAGAIN) {
		return n;
	}
	if (n == (int)b.len) {
		buf_reset(&conn->t.out);
		return 0;
	}
	b.base += n > 0 ? n : 0;
	b.len -= n > 0 ? n : 0;
	r = uv_write(&conn->write, stream, &b, 1, on_written);
	conn->writing = r == 0;
	return r;
}

/* Moves frames from nghttp2 to the socket until either has enough. */
static int send_frames(struct rpc_conn *conn)
{
	while (!conn->writing) {
		struct err err;
		int r = rpc_transport_collect(&conn->t, &err);

		if (r < 0) {
			return r;
		}
		if (conn->t.out.len == 0) {
			return 0;
		}
		if (write_out(conn) < 0) {
			return UV_EPIPE;
		}
	}
	return 0;
}

/* Nothing is left to send or to receive. */
static bool has_ended(const struct rpc_conn *conn)
{
	return conn->t.session && !conn->writing &&
	       !nghttp2_session_want_read(conn->t.session) &&
	       !nghttp2_session_want_write(conn->t.session);
}

/* Announces to a TLS peer that the end is meant, as far as the socket takes it. */
static void send_end(struct rpc_conn *conn)
{
	if (conn->t.tls && !conn->writing) {
		rpc_tls_end(conn->t.tls);
		send_frames(conn);
	}
}

static void on_shut(uv_shutdown_t *shutdown, int status)
{
	(void)shutdown, (void)status;
}

/* Closing while the peer still writes would have it lose our last words.
 * So this side is shut, and the other one may hang up first. */
static void linger(struct rpc_conn *conn)
{
	conn->lingers = true;
	rpc_share_leave(conn);
	detach_calls(conn);
	if (!uv_is_active(&conn->io.handle) ||
	    uv_shutdown(&conn->shutdown, &conn->io.stream, on_shut)) {
		close_now(conn);
		return;
	}
	conn->close_by_ns = clk_now_ns() + LINGER_NS;
	rpc_server_watch_deadline(conn->server, conn->close_by_ns);
}

void rpc_conn_flush(struct rpc_conn *conn)
{
	conn->dirty = false;
	if (conn->closing) {
		return;
	}
	if (conn->t.doomed || send_frames(conn) < 0 || conn->t.doomed) {
		close_now(conn);
	} else if (has_ended(conn) && !conn->lingers) {
		send_end(conn);
		linger(conn);
	}
}

void rpc_conn_goaway(struct rpc_conn *conn, uint32_t code, const char *why)
{
	int32_t last;

	if (!conn->t.session) {
		rpc_conn_close(conn);
		return;
	}
	last = nghttp2_session_get_last_proc_stream_id(conn->t.session);
	if (nghttp2_submit_goaway(conn->t.session, NGHTTP2_FLAG_NONE, last,
				  code, (const uint8_t *)why, strlen(why))) {
		conn->t.doomed = true;
	}
	rpc_server_mark_dirty(conn);
}

/* ---- beginning ---- */

static void new_session(struct rpc_conn *conn)
{
	const struct rpc_server *s = conn->server;
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
		  (uint32_t)s->cfg.limits.max_calls },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, RPC_MAX_HEADER_BYTES },
		{ NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
	};

	nghttp2_session_server_new3(&conn->t.session, s->callbacks, conn,
				    conn->t.tls ? s->option : s->unix_option,
				    &rpc_mem);
	nghttp2_submit_settings(conn->t.session, NGHTTP2_FLAG_NONE, settings,
				sizeof(settings) / sizeof(settings[0]));
	nghttp2_session_set_local_window_size(conn->t.session, NGHTTP2_FLAG_NONE, 0, CONN_WINDOW);
}

/* Sends a GOAWAY with the reason, after which the session wants nothing any more and
 * the flush closes the connection. */
static void refuse(struct rpc_conn *conn, uint32_t code, const char *why)
{
	char who[RPC_PEER_TEXT_MAX], text[RPC_PEER_TEXT_MAX + 32];

	snprintf(text, sizeof(text), "connection of %s",
		 rpc_peer_text(&conn->peer, who, sizeof(who)));
	rpc_share_refused(conn->server, text, why);
	nghttp2_submit_goaway(conn->t.session, NGHTTP2_FLAG_NONE, 0, code,
			      (const uint8_t *)why, strlen(why));
}

static void admit(struct rpc_conn *conn)
{
	const struct rpc_server_config *cfg = &conn->server->cfg;
	char why[RPC_PEER_TEXT_MAX + 64];

	if (cfg->authorise && !cfg->authorise(&conn->peer, cfg->arg)) {
		refuse(conn, NGHTTP2_INADEQUATE_SECURITY, "this user may not connect");
		return;
	}
	if (!rpc_share_take(conn, why, sizeof(why))) {
		refuse(conn, NGHTTP2_ENHANCE_YOUR_CALM, why);
	}
}

/* Begins to speak HTTP/2 with a peer that is known. */
static void start_session(struct rpc_conn *conn)
{
	new_session(conn);
	close_by(conn, conn->server->cfg.limits.greet_ms);
	admit(conn);
}

/* ---- in ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *b)
{
	struct rpc_conn *conn = handle->data;

	(void)suggested;
	/* One buffer for all: its bytes are used up before the next read. */
	*b = uv_buf_init((char *)conn->server->input,
			 sizeof(conn->server->input));
}

/* Goes on agreeing on TLS; then the peer is known. */
static int greet(struct rpc_conn *conn)
{
	struct err err = { 0 };
	bool done;

	if (rpc_tls_handshake(conn->t.tls, &done, &err)) {
		rpc_share_refused(conn->server, "a connection", err.msg);
		send_frames(conn);	/* the alert with the reason */
		return UV_EPROTO;
	}
	if (!done) {
		rpc_server_mark_dirty(conn);
		return 0;
	}
	rpc_tls_peer_name(conn->t.tls, conn->peer.name, sizeof(conn->peer.name));
	start_session(conn);
	return 0;
}

/* 0, or negative when the connection is to be closed. */
static int take_bytes(struct rpc_conn *conn, const void *data, size_t len)
{
	bool closed;
	struct err err;
	int r = rpc_transport_take(&conn->t, data, len, &closed, &err);

	if (r == 0 && !conn->t.session) {
		r = greet(conn);
		/* The first frames may have come with the handshake. */
		if (r == 0 && conn->t.session) {
			r = rpc_transport_take(&conn->t, "", 0, &closed, &err);
		}
	}
	return r == 0 && closed ? UV_EOF : r;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
	struct rpc_conn *conn = stream->data;
	char who[RPC_PEER_TEXT_MAX];

	if (n == 0 || conn->t.doomed) {
		return;
	}
	if (conn->lingers && n > 0) {
		return;
	}
	if (n < 0 || take_bytes(conn, b->base, (size_t)n)) {
		rpc_conn_close(conn);
		return;
	}
	if (conn->t.session && nghttp2_session_get_outbound_queue_size(
				     conn->t.session) > MAX_FRAMES) {
		log_warn("rpc", "connection of %s dropped: it sends but does "
			 "not read",
			 rpc_peer_text(&conn->peer, who, sizeof(who)));
		rpc_conn_close(conn);
		return;
	}
	/* libuv may read many times in a loop turn. What nghttp2
	 * answers to a flood of resets must get out in between. */
	rpc_conn_flush(conn);
}

/* ---- accepting ---- */

static int read_peer(const uv_pipe_t *pipe, struct rpc_peer *peer)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	uv_os_fd_t fd;
	int r = uv_fileno((const uv_handle_t *)pipe, &fd);

	if (r < 0) {
		return r;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len)) {
		return UV_EIO;
	}
	*peer = (struct rpc_peer){ .uid = cred.uid, .gid = cred.gid,
				   .pid = cred.pid };
	/* One with more groups than there is room for counts as in none. */
	len = sizeof(peer->groups);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, peer->groups, &len) == 0) {
		peer->n_groups = (int)(len / sizeof(gid_t));
	}
	return 0;
}

static int begin_unix(struct rpc_conn *conn)
{
	int r = read_peer(&conn->io.pipe, &conn->peer);

	if (r == 0 && rpc_share_is_flood(conn)) {
		rpc_share_refused(conn->server, "a connection", "too many at once");
		rpc_conn_close(conn);
		return 0;
	}
	if (r == 0) {
		start_session(conn);
	}
	return r;
}

/* Nothing is known of the peer before TLS is agreed, and for that it has
 * only so long. */
static void begin_tcp(struct rpc_conn *conn)
{
	struct rpc_server *s = conn->server;

	conn->peer.remote = true;
	if (rpc_share_is_flood(conn)) {
		rpc_share_refused(s, "a connection", "too many at once");
		rpc_conn_close(conn);
		return;
	}
	rpc_share_greet(conn);
	conn->t.tls = rpc_tls_session_new(s->tls);
	uv_tcp_nodelay(&conn->io.tcp, 1);
	uv_tcp_keepalive(&conn->io.tcp, 1, KEEPALIVE_S);
	close_by(conn, s->cfg.limits.greet_ms);
}

static struct rpc_conn *conn_new(struct rpc_server *s, bool remote)
{
	struct rpc_conn *conn = x_new(1, sizeof(*conn));

	conn->server = s;
	conn->write.data = conn;
	TAILQ_INIT(&conn->calls);
	if (remote) {
		uv_tcp_init(s->loop, &conn->io.tcp);
	} else {
		uv_pipe_init(s->loop, &conn->io.pipe, 0);
	}
	conn->io.handle.data = conn;
	rpc_server_add_conn(conn);
	conn->peer.remote = remote;
	return conn;
}

void rpc_conn_accept(struct rpc_server *s, uv_stream_t *listener)
{
	bool remote = listener == (uv_stream_t *)&s->tcp_listener;
	struct rpc_conn *conn = conn_new(s, remote);
	int r = uv_accept(listener, &conn->io.stream);

	if (r == 0 && remote) {
		begin_tcp(conn);
	} else if (r == 0) {
		r = begin_unix(conn);
	}
	if (r == 0) {
		r = uv_read_start(&conn->io.stream, on_alloc, on_read);
	}
	if (r < 0) {
		rpc_share_refused(s, "a connection", uv_strerror(r));
		conn->t.doomed = true;
	}
	rpc_server_mark_dirty(conn);
}
