/*
 * The server's three objects, a file each; private to this room.
 *
 *	server.c  listens, owns the connections, timers and the stop
 *	conn.c    one socket and its HTTP/2 session
 *	call.c    one stream: request in, messages and trailers out
 *	tls.c     certificates and encryption of a TCP connection
 *
 * nghttp2 forbids sending from inside its callbacks, where handlers run. So
 * everything is only submitted and the connection marked dirty. A connection
 * is flushed after each read, and by the server once a loop turn if it was
 * made dirty by something else; that also coalesces writes.
 */
#ifndef WEFT_LIB_RPC_SERVER_H
#define WEFT_LIB_RPC_SERVER_H

#include <nghttp2/nghttp2.h>
#include <sys/queue.h>
#include <sys/un.h>

#include "lib/base/buf.h"
#include "lib/rpc/detail.h"
#include "lib/rpc/frame.h"
#include "lib/rpc/rpc.h"
#include "lib/rpc/tls.h"

/* What is kept of a request's headers, and announced in SETTINGS. */
#define RPC_MAX_HEADER_BYTES 8192

struct rpc_server {
	uv_loop_t *loop;
	struct rpc_server_config cfg;	/* limits filled in, path below */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;		/* of TCP */
	nghttp2_option *unix_option;
	uv_pipe_t listener;
	uv_tcp_t tcp_listener;
	struct rpc_tls *tls;	/* NULL: no TCP */
	uv_prepare_t prepare;	/* flush what timers made dirty */
	uv_check_t check;	/* flush what input made dirty */
	uv_timer_t deadline;	/* the earliest one of all calls */
	uv_timer_t grace;	/* of stopping */
	int n_handles;		/* not yet closed */
	int64_t deadline_ns;	/* what `deadline` waits for, 0: nothing */
	TAILQ_HEAD(, rpc_conn) conns;
	int n_conns, n_remote;	/* all; those over TCP */
	bool dirty;		/* some connection is */
	bool stopping;
	void (*done)(void *arg);
	void *done_arg;
	uint8_t input[64 << 10]; /* of whichever connection reads now */
};

struct rpc_conn {
	TAILQ_ENTRY(rpc_conn) link;
	struct rpc_server *server;
	struct rpc_peer peer;
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_pipe_t pipe;
		uv_tcp_t tcp;
	} io;
	struct rpc_tls_session *tls;	/* NULL: a unix socket */
	int64_t close_by_ns;	/* TLS must be agreed, or after the end
				   the peer gone, 0: no hurry */
	nghttp2_session *session; /* NULL until TLS is agreed */
	TAILQ_HEAD(, rpc_call) calls;
	struct buf out;		/* bytes for the socket */
	uv_write_t write;	/* of what the socket did not take at once */
	size_t queued;		/* unsent response bytes of all calls */
	size_t held;		/* request bytes, encoded and decoded */
	bool writing;		/* `write` is under way */
	bool dirty;		/* to be flushed */
	bool lingers;		/* all is said; the peer is to hang up */
	uv_shutdown_t shutdown;
	bool doomed;		/* to be closed by the next flush */
	bool closing;
};

/*
 * A call belongs to its stream (conn) and to its handler. It is freed when
 * neither needs it: conn is NULL and !held.
 */
struct rpc_call {
	TAILQ_ENTRY(rpc_call) link;
	struct rpc_conn *conn;	/* NULL: the stream is gone */
	int32_t stream;
	const struct rpc_method *method;	/* NULL until known */
	struct rpc_peer peer;
	struct buf headers;	/* name NUL value NUL ... of the request */
	size_t header_bytes;	/* of all, as HTTP/2 counts; not all kept */
	struct rpc_deframer in;
	ProtobufCMessage *request;
	size_t request_bytes;	/* heap of request */
	int64_t deadline_ns;
	rpc_cancel_cb on_cancel;
	void *cancel_arg;
	rpc_ready_cb on_ready;
	void *ready_arg;
	struct buf out;		/* framed responses; from out_sent unsent */
	size_t out_sent;
	struct buf details;	/* of a failure, see detail.h */
	enum rpc_status status;	/* of the trailers, once ended */
	struct err err;
	bool headers_done;	/* the request's headers are complete */
	bool headers_bad;
	bool plain;		/* a GET that is no gRPC */
	bool half_closed;	/* the client has sent everything */
	bool answered;		/* the response's headers are submitted */
	bool deferred;		/* nghttp2 waits for more data */
	bool ended;		/* the status is decided */
	bool deadline_passed;	/* and dealt with */
	bool held;		/* the handler has it */
	bool cancelling;	/* inside on_cancel */
};

/* ---- server.c ---- */

/* Sees to it that the connection is flushed before the loop waits. */
void rpc_server_mark_dirty(struct rpc_conn *conn);
/* Sees to it that calls due at this time are expired. */
void rpc_server_watch_deadline(struct rpc_server *s, int64_t deadline_ns);
/* A closed connection leaves; the last one may end the server. */
void rpc_server_remove_conn(struct rpc_conn *conn);

/* ---- conn.c ---- */

/* Fills in what all sessions share. WEFT_ENOMEM. */
int rpc_conn_callbacks_new(struct rpc_server *s, struct err *err);
/* Accepts a waiting connection, or refuses it. Problems are logged. */
void rpc_conn_accept(struct rpc_server *s, uv_stream_t *listener);
/* Sends what is to be sent; closes what has ended. */
void rpc_conn_flush(struct rpc_conn *conn);
/* Takes no more calls. */
void rpc_conn_goaway(struct rpc_conn *conn);
/* Has the next flush cancel the calls and close the socket: never at once,
 * as the caller may be in the midst of a call or of nghttp2. */
void rpc_conn_close(struct rpc_conn *conn);

/* ---- call.c ---- */

/* A call for a new stream, NULL when out of memory. */
struct rpc_call *rpc_call_new(struct rpc_conn *conn, int32_t stream);
void rpc_call_add_header(struct rpc_call *call, const uint8_t *name,
			 size_t name_len, const uint8_t *value,
			 size_t value_len);
/* The request's headers are complete: refuses what cannot be served. */
void rpc_call_headers_done(struct rpc_call *call);
void rpc_call_input(struct rpc_call *call, const uint8_t *data, size_t len);
/* The client has sent everything: starts the handler. */
void rpc_call_half_closed(struct rpc_call *call);
/* The stream is gone: tells the handler; frees the call unless a handler
 * without cancel callback still has it. */
void rpc_call_detach(struct rpc_call *call);
/* The deadline has passed: ends the call with DEADLINE_EXCEEDED, or drops
 * what a call that has ended could not send. */
void rpc_call_expire(struct rpc_call *call);

#endif
