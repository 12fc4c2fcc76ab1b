/* One connection: a socket and an HTTP/2 session; see server.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/log.h"
#include "lib/rpc/server.h"

/* Bytes handed to the socket at a time. */
#define OUT_BYTES ((size_t)64 << 10)
#define STREAM_WINDOW (256 << 10)
#define CONN_WINDOW (1 << 20)
/* Answers to pings and settings, and other frames, that may wait for a peer
 * that does not read. */
#define MAX_ACKS 512
#define MAX_FRAMES 4096

/* ---- nghttp2's callbacks ---- */

static int on_begin_headers(nghttp2_session *session,
			    const nghttp2_frame *frame, void *user)
{
	struct rpc_call *call;

	if (frame->hd.type != NGHTTP2_HEADERS ||
	    frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
		return 0;
	}
	call = rpc_call_new(user, frame->hd.stream_id);
	if (!call) {
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
					     call);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
		     const uint8_t *name, size_t name_len,
		     const uint8_t *value, size_t value_len, uint8_t flags,
		     void *user)
{
	struct rpc_call *call = nghttp2_session_get_stream_user_data(
		session, frame->hd.stream_id);

	(void)flags, (void)user;
	if (call) {
		rpc_call_add_header(call, name, name_len, value, value_len);
	}
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream,
		   const uint8_t *data, size_t len, void *user)
{
	struct rpc_call *call =
		nghttp2_session_get_stream_user_data(session, stream);

	(void)flags, (void)user;
	if (call) {
		rpc_call_input(call, data, len);
	}
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame,
		    void *user)
{
	struct rpc_call *call = nghttp2_session_get_stream_user_data(
		session, frame->hd.stream_id);
	bool headers = frame->hd.type == NGHTTP2_HEADERS;

	(void)user;
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
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame,
			 void *user)
{
	struct rpc_call *call = nghttp2_session_get_stream_user_data(
		session, frame->hd.stream_id);

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
	struct rpc_call *call =
		nghttp2_session_get_stream_user_data(session, stream);

	(void)error_code, (void)user;
	if (call) {
		rpc_call_detach(call);
	}
	return 0;
}

int rpc_conn_callbacks_new(nghttp2_session_callbacks **callbacks,
			   nghttp2_option **option, struct err *err)
{
	nghttp2_session_callbacks *cb;

	*callbacks = NULL;
	*option = NULL;
	if (nghttp2_session_callbacks_new(callbacks) ||
	    nghttp2_option_new(option)) {
		return err_nomem(err);
	}
	cb = *callbacks;
	nghttp2_session_callbacks_set_on_begin_headers_callback(
		cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb,
							     on_frame_sent);
	nghttp2_session_callbacks_set_on_stream_close_callback(
		cb, on_stream_close);
	/* gRPC clients send the socket's path, or nothing, as :authority,
	 * which nghttp2 would refuse; what matters is checked in call.c. */
	nghttp2_option_set_no_http_messaging(*option, 1);
	nghttp2_option_set_max_outbound_ack(*option, MAX_ACKS);
	nghttp2_option_set_no_closed_streams(*option, 1);
	return 0;
}

/* ---- out ---- */

/* Cancels all calls. A callback may finish other calls of the connection,
 * but none is freed by that, as all are still attached. */
static void detach_calls(struct rpc_conn *conn)
{
	struct rpc_call *call;

	while ((call = TAILQ_FIRST(&conn->calls))) {
		nghttp2_session_set_stream_user_data(conn->session,
						     call->stream, NULL);
		rpc_call_detach(call);
	}
}

static void on_closed(uv_handle_t *handle)
{
	struct rpc_conn *conn = handle->data;

	nghttp2_session_del(conn->session);
	buf_fini(&conn->out);
	rpc_server_remove_conn(conn);
	free(conn);
}

static void close_now(struct rpc_conn *conn)
{
	conn->closing = true;
	detach_calls(conn);
	uv_close((uv_handle_t *)&conn->pipe, on_closed);
}

void rpc_conn_close(struct rpc_conn *conn)
{
	conn->doomed = true;
	rpc_server_mark_dirty(conn);
}

static void on_written(uv_write_t *write, int status)
{
	struct rpc_conn *conn = write->data;

	conn->writing = false;
	buf_reset(&conn->out);
	if (status < 0) {
		rpc_conn_close(conn);
	} else {
		rpc_server_mark_dirty(conn);
	}
}

/* Writes conn->out; what the socket does not take at once is written when
 * it can, and nothing else meanwhile. */
static int write_out(struct rpc_conn *conn)
{
	uv_stream_t *stream = (uv_stream_t *)&conn->pipe;
	uv_buf_t b = uv_buf_init(conn->out.data, (unsigned)conn->out.len);
	int n = uv_try_write(stream, &b, 1);
	int r;

	if (n < 0 && n != UV_EAGAIN) {
		return n;
	}
	if (n == (int)b.len) {
		buf_reset(&conn->out);
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
	const uint8_t *data;
	ssize_t n;

	while (!conn->writing) {
		do {
			n = nghttp2_session_mem_send(conn->session, &data);
			if (n < 0) {
				return (int)n;
			}
			buf_add(&conn->out, data, (size_t)n);
		} while (n > 0 && conn->out.len < OUT_BYTES);
		if (conn->out.failed) {
			return UV_ENOMEM;
		}
		if (conn->out.len == 0) {
			return 0;
		}
		if (write_out(conn) < 0) {
			return UV_EPIPE;
		}
	}
	return 0;
}

void rpc_conn_flush(struct rpc_conn *conn)
{
	nghttp2_session *s = conn->session;

	conn->dirty = false;
	if (conn->closing) {
		return;
	}
	if (conn->doomed || send_frames(conn) < 0 || conn->doomed ||
	    (!conn->writing && !nghttp2_session_want_read(s) &&
	     !nghttp2_session_want_write(s))) {
		close_now(conn);
	}
}

void rpc_conn_goaway(struct rpc_conn *conn)
{
	int32_t last = nghttp2_session_get_last_proc_stream_id(conn->session);

	if (nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE, last,
				  NGHTTP2_NO_ERROR, NULL, 0)) {
		conn->doomed = true;
	}
	rpc_server_mark_dirty(conn);
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

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
	struct rpc_conn *conn = stream->data;

	if (n == 0 || conn->doomed) {
		return;
	}
	if (n < 0 || nghttp2_session_mem_recv(conn->session,
					      (const uint8_t *)b->base,
					      (size_t)n) < 0) {
		rpc_conn_close(conn);
		return;
	}
	if (nghttp2_session_get_outbound_queue_size(conn->session) >
	    MAX_FRAMES) {
		log_warn("rpc", "connection of process %d dropped: it sends "
			 "but does not read", (int)conn->peer.pid);
		rpc_conn_close(conn);
		return;
	}
	/* libuv may read many times in a loop turn. What nghttp2 has to say
	 * against a flood of resets must get out in between. */
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
	*peer = (struct rpc_peer){ cred.uid, cred.gid, cred.pid };
	return 0;
}

static int new_session(struct rpc_conn *conn)
{
	const struct rpc_server *s = conn->server;
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
		  (uint32_t)s->cfg.limits.max_calls },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, RPC_MAX_HEADER_BYTES },
		{ NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
	};

	if (nghttp2_session_server_new2(&conn->session, s->callbacks, conn,
					s->option) ||
	    nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings,
				    sizeof(settings) / sizeof(settings[0])) ||
	    nghttp2_session_set_local_window_size(conn->session,
						  NGHTTP2_FLAG_NONE, 0,
						  CONN_WINDOW)) {
		return UV_ENOMEM;
	}
	return 0;
}

/* Says why in a GOAWAY, after which the session wants nothing any more and
 * the flush closes the connection. */
static int refuse(struct rpc_conn *conn, uint32_t code, const char *why)
{
	log_warn("rpc", "connection of process %d, user %d refused: %s",
		 (int)conn->peer.pid, (int)conn->peer.uid, why);
	return nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE, 0, code,
				     (const uint8_t *)why, strlen(why))
		       ? UV_ENOMEM
		       : 0;
}

static int admit(struct rpc_conn *conn)
{
	const struct rpc_server_config *cfg = &conn->server->cfg;

	if (cfg->authorise && !cfg->authorise(&conn->peer, cfg->arg)) {
		return refuse(conn, NGHTTP2_INADEQUATE_SECURITY,
			      "this user may not connect");
	}
	if (conn->server->n_conns > cfg->limits.max_conns) {
		return refuse(conn, NGHTTP2_ENHANCE_YOUR_CALM,
			      "too many connections");
	}
	return uv_read_start((uv_stream_t *)&conn->pipe, on_alloc, on_read);
}

void rpc_conn_accept(struct rpc_server *s)
{
	struct rpc_conn *conn = calloc(1, sizeof(*conn));
	int r;

	if (!conn) {
		log_error("rpc", "cannot accept: out of memory");
		return;
	}
	conn->server = s;
	conn->write.data = conn;
	TAILQ_INIT(&conn->calls);
	uv_pipe_init(s->loop, &conn->pipe, 0);
	conn->pipe.data = conn;
	TAILQ_INSERT_TAIL(&s->conns, conn, link);
	s->n_conns++;
	r = uv_accept((uv_stream_t *)&s->listener,
		      (uv_stream_t *)&conn->pipe);
	if (r == 0) {
		r = read_peer(&conn->pipe, &conn->peer);
	}
	if (r == 0) {
		r = new_session(conn);
	}
	if (r == 0) {
		r = admit(conn);
	}
	if (r < 0) {
		log_error("rpc", "cannot accept: %s", uv_strerror(r));
		conn->doomed = true;
	}
	rpc_server_mark_dirty(conn);
}
