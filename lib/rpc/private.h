/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the room share.
 *
 *	server.c    listens, owns the connections, timers and the stop
 *	unix_socket.c  the file of the server's unix socket, which only one has
 *	conn.c      one socket of the server, on the loop
 *	call.c      one stream: request in, messages and trailers out
 *	client.c    one call at a time, and the client's session
 *	stream.c    a call of the client in which both sides go on sending
 *	client_conn.c  connecting, and the client's socket, with poll()
 *	transport.c HTTP/2 and TLS between a session and a socket's bytes, the
 *	            same for server and client
 *	tls.c       certificates and encryption
 *	frame.c     gRPC messages in a stream of bytes
 *	grpc_status.c  statuses, errors and the header fields that carry them
 *	detail.c    what a failure is about, for programs
 *	decode.c    messages from outside, within bounds
 *
 * nghttp2 forbids sending from inside its callbacks, where handlers run. So
 * everything is only submitted and the server's connection marked dirty. It
 * is flushed after each read, and by the server once a loop turn if it was
 * made dirty by something else; that also coalesces writes.
 */
#ifndef WEFT_LIB_RPC_PRIVATE_H
#define WEFT_LIB_RPC_PRIVATE_H

#include <nghttp2/nghttp2.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "lib/base/buf.h"
#include "lib/base/vec.h"
#include "lib/rpc/rpc.h"

/* ---- unix_socket.c ---- */

struct rpc_unix_socket {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct stat file;	/* of the socket; st_ino 0: not bound */
	int lock_fd;		/* -1: this server has no such file */
};

/* Binds a socket (*fd, the caller's) to `path`, with `mode`, in place of one that no server
 * answers on. Of several who try at once one succeeds. WEFT_ESTALE, with the process that
 * listens there, and the file is left as it is; WEFT_EINVAL for a path that is too long or
 * is no socket; WEFT_EIO. */
int rpc_unix_bind(struct rpc_unix_socket *s, const char *path, int mode, int *fd, struct err *err);
/* Removes the file unless it is another's by now. */
void rpc_unix_remove(struct rpc_unix_socket *s);

/* ---- frame.c ----
 *
 * The gRPC message framing: a flag byte, the length in four bytes, the
 * message. */

#define RPC_PREFIX_BYTES 5

/* Appends prefix and packed message to out, which then holds at most `max`
 * bytes more than before. WEFT_ELIMIT leaves out as it was. */
int rpc_frame_append(struct buf *out, const ProtobufCMessage *msg, size_t max, struct err *err);
/* The same with a message that is packed already. */
int rpc_frame_append_packed(struct buf *out, const void *data, size_t len, size_t max,
			    struct err *err);

/* Cuts a stream of bytes into messages. Zero it and set `max`. */
struct rpc_deframer {
	size_t max;	/* bytes of one message */
	size_t need;	/* bytes of the message under way */
	size_t n_prefix;
	uint8_t prefix[RPC_PREFIX_BYTES];
	struct buf body;
};

/* Consumes input up to the end of a message. Returns 1 when d->body holds
 * a whole message (call rpc_deframer_next before going on), 0 when all
 * input is consumed without, or WEFT_ELIMIT (longer than max, known before
 * its body arrives), WEFT_EINTERNAL (compressed, as the
 * specification of gRPC has it), WEFT_EINVAL. Memory grows with the bytes that
 * came, not with the length announced. */
int rpc_deframe(struct rpc_deframer *d, const uint8_t **data, size_t *len, struct err *err);
void rpc_deframer_next(struct rpc_deframer *d);
/* True in the midst of a message: the stream must not end here. */
bool rpc_deframer_partial(const struct rpc_deframer *d);
void rpc_deframer_fini(struct rpc_deframer *d);

/* ---- grpc_status.c ---- */

/* The status that fits an error code, and the reverse. The status
 * of WEFT_OK is RPC_INTERNAL: an error was reported without being one. The code of RPC_OK is
 * WEFT_OK, of an unlisted status WEFT_EINTERNAL. */
enum rpc_status rpc_status_of_code(int code);
int rpc_code_of_status(int status);

/* The status that gRPC assigns to a plain HTTP answer, and to the error
 * code of RST_STREAM. */
enum rpc_status rpc_status_of_http(int http_status);
enum rpc_status rpc_status_of_reset(uint32_t http2_error);

#define RPC_MAX_HEADERS 12

/* Header fields being put together. Names and plain values must outlive
 * the list; encoded values live in `text`, which has room for the longest
 * struct err. */
struct rpc_headers {
	nghttp2_nv nv[RPC_MAX_HEADERS];
	size_t n;
	size_t used;
	char text[3 * sizeof(struct err)];
};

void rpc_headers_add(struct rpc_headers *h, const char *name, const char *value);

/* Adds the value percent-encoded, as gRPC does with grpc-message. A value
 * that finds no room in `text` is cut between two characters. */
void rpc_headers_add_encoded(struct rpc_headers *h, const char *name, const char *value);

/* Adds grpc-status, and of a failure also grpc-message and, when err has a
 * code, weft-error, weft-place and weft-hint. */
void rpc_headers_add_status(struct rpc_headers *h, enum rpc_status status, const struct err *err);

/* Takes one header field of a response into *status (untouched unless it is
 * grpc-status) and err. */
void rpc_status_read(const char *name, const char *value, size_t value_len,
		     int *status, struct err *err);

/* Undoes percent-encoding into out (at least one byte; always terminated,
 * cut when too small). Bytes that are no valid escape stay as they are. */
void rpc_percent_decode(const char *in, size_t len, char *out, size_t size);

/* Value of a grpc-timeout header in ns (saturating), -1 when malformed. */
int64_t rpc_timeout_parse(const char *text);

/* grpc-timeout text of ms > 0 into buf, at least 16 bytes. Returns buf. */
const char *rpc_timeout_format(int ms, char *buf);

/* ---- detail.c ----
 *
 * google.rpc.Status with ErrorInfo and ResourceInfo, as the trailer
 * grpc-status-details-bin. */

/* Clients take 8 KiB of trailers or so in all. */
#define RPC_MAX_DETAILS 4500

/* Appends one ResourceInfo to the details of a call's status. False, and nothing done,
 * when there is no room left. */
bool rpc_detail_add(struct buf *details, const char *type, const char *name,
		    const char *description);

/* The trailer's value in base64: the status, err as ErrorInfo (reason: its
 * name, domain "weft", metadata place and hint) if it has a code, and details.
 * Empty for success and where it adds nothing to the plain status. */
void rpc_detail_encode(enum rpc_status status, const struct err *err,
		       const struct buf *details, struct buf *out);

/* ---- decode.c ---- */

#define RPC_DEFAULT_BUDGET ((size_t)32 << 20)

/* rpc_decode, telling in *used the heap bytes that *out occupies. */
int rpc_decode_counted(const ProtobufCMessageDescriptor *type, const void *data, size_t len,
		       size_t budget, ProtobufCMessage **out, size_t *used, struct err *err);

/* values.c: whether the request m holds only strings of at most RPC_MAX_STRING bytes and known
 * values of enumerations. WEFT_EINVAL names the field. O(m). */
int rpc_check_values(const ProtobufCMessage *m, struct err *err);

/* Length of the UTF-8 character at p (RFC 3629: shortest form, no
 * surrogates, up to U+10FFFF), 0 when there is none. */
int rpc_utf8_length(const uint8_t *p, const uint8_t *end);

/* ---- tls.c ----
 *
 * TLS with certificates on both sides, over bytes in memory: the caller has
 * the socket. TLS 1.3, or 1.2 with suites that encrypt and authenticate at once (AEAD)
 * under keys of the session (ECDHE); ALPN "h2", no renegotiation, no resumption: each
 * connection shows its certificate. */

/* Certificate, key and trusted authorities, as loaded from files. */
struct rpc_tls;

/* For nghttp2's sessions: memory that is there. */
extern nghttp2_mem rpc_mem;

/* The same for OpenSSL, before it is used; a build without TLS has none. */
void rpc_tls_set_allocators(void);

/* Loads the files of a server or a client. WEFT_EINVAL names the file and
 * OpenSSL's reason; WEFT_EINTERNAL, with it, when OpenSSL offers nothing that is good. */
int rpc_tls_new(const struct rpc_tls_files *files, bool is_server,
		struct rpc_tls **out, struct err *err);
/* NULL is fine. Sessions that are open keep what they need. */
void rpc_tls_free(struct rpc_tls *tls);

/* One session. */
struct rpc_tls_session;

struct rpc_tls_session *rpc_tls_session_new(const struct rpc_tls *tls);
/* On a client's side: the name that the server's certificate must carry, a DNS name
 * or an IP address. WEFT_EINVAL for what TLS takes for none. */
int rpc_tls_expect_host(struct rpc_tls_session *s, const char *host, struct err *err);
/* NULL is fine. */
void rpc_tls_session_free(struct rpc_tls_session *s);

/* Takes bytes of the socket, at most INT_MAX. */
void rpc_tls_input(struct rpc_tls_session *s, const void *data, size_t len);

/* Goes on with the handshake. *done: it is complete, the peer's certificate
 * verified and "h2" agreed. WEFT_EDENIED with the reason otherwise; what is
 * then to be sent to the peer is an alert. */
int rpc_tls_handshake(struct rpc_tls_session *s, bool *done, struct err *err);

/* Reads plain bytes: their number, 0 when more input is needed; *closed when
 * the peer has announced the end. WEFT_EIO when the peer breaks the rules. */
int rpc_tls_read(struct rpc_tls_session *s, void *data, size_t len, bool *closed, struct err *err);

/* Encrypts; what comes of it is for rpc_tls_output. WEFT_EIO. */
int rpc_tls_write(struct rpc_tls_session *s, const void *data, size_t len, struct err *err);

/* Announces to the peer that nothing more will be written. */
void rpc_tls_end(struct rpc_tls_session *s);

/* Moves what is to be sent to the socket to the end of out. */
void rpc_tls_output(struct rpc_tls_session *s, struct buf *out);

/* The peer's certificate, once the handshake is done: its subject as
 * "CN=weft,O=Site" (RFC 2253) into name, cut when too long. */
void rpc_tls_peer_name(const struct rpc_tls_session *s, char *name, size_t size);

/* ---- transport.c ---- */

/* What stands between an HTTP/2 session and the bytes of its socket. */
struct rpc_transport {
	nghttp2_session *session;	/* NULL until TLS is agreed */
	struct rpc_tls_session *tls;	/* NULL: a unix socket */
	struct buf out;			/* bytes for the socket */
	bool doomed;			/* to be closed: takes no more */
};

/* Of nghttp2, never NULL. */
nghttp2_session_callbacks *rpc_transport_callbacks_new(void);
void rpc_transport_fini(struct rpc_transport *t);

/* Fills t->out with what TLS and the session have to send, up to about 64 KiB.
 * WEFT_EIO when encryption fails, WEFT_EINTERNAL of nghttp2. */
int rpc_transport_collect(struct rpc_transport *t, struct err *err);

/* Takes bytes of the socket to the session, whose callbacks run. Without a
 * session they are of the handshake, and wait; none are given to go on with
 * those that wait. *closed: the peer has announced the end by TLS. WEFT_EINVAL
 * for what is no HTTP/2, WEFT_EIO when TLS breaks. */
int rpc_transport_take(struct rpc_transport *t, const void *data, size_t len,
		       bool *closed, struct err *err);

/* ---- the server's connections and calls ---- */

/* What is kept of a request's headers, and announced in SETTINGS. */
#define RPC_MAX_HEADER_BYTES 8192

struct rpc_server {
	uv_loop_t *loop;
	struct rpc_server_config cfg;	/* limits filled in, path below */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;		/* of TCP */
	nghttp2_option *unix_option;
	struct rpc_unix_socket socket;
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
	int n_conns;		/* all, also those that are about to be closed */
	int peak_conns;		/* since memory was given back: server.c */
	int n_places;		/* those that have one of limits.max_conns */
	int n_greeting;		/* those that agree on TLS */
	int n_unsaid;		/* refusals since the last line of the log */
	int64_t log_at_ns;	/* when the next such line may be */
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
	struct rpc_transport t;
	int64_t close_by_ns;	/* TLS must be agreed, a first call come, or
				   after the end the peer gone; 0: no hurry */
	uint64_t owner;		/* a mark of who made it, for its share */
	int64_t used_ns;	/* when it began, or had a call last */
	bool has_place;		/* counts in n_places, or in n_greeting */
	bool is_greeting;
	bool privileged;
	bool has_spoken;	/* a first frame came */
	bool has_called;	/* and a first call */
	bool leaves;		/* is sent away; calls end, or are ended */
	TAILQ_HEAD(, rpc_call) calls;
	uv_write_t write;	/* of what the socket did not take at once */
	size_t queued;		/* unsent response bytes of all calls */
	size_t held;		/* request bytes, encoded and decoded */
	bool writing;		/* `write` is under way */
	bool dirty;		/* to be flushed */
	bool lingers;		/* all is sent; the peer is to hang up */
	uv_shutdown_t shutdown;
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
	struct buf details;	/* of a failure: rpc_detail_add */
	enum rpc_status status;	/* of the trailers, once ended, or held back */
	int64_t held_until;	/* what it sends is held back until this mark; 0: it is not */
	bool finished;		/* by its handler, while it was held back */
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
/* A new connection of conn->server is one of its own. */
void rpc_server_add_conn(struct rpc_conn *conn);
/* A closed connection leaves, and is freed; the last one may end the server. */
void rpc_server_remove_conn(struct rpc_conn *conn);

/* ---- shares.c: who has a connection when there is no room for all ---- */

/* TLS is to be agreed on: counts for its address; the oldest such connection of the
 * address with most of them is closed when there are too many. */
void rpc_share_greet(struct rpc_conn *conn);
/* The peer is known: gives it a place, maybe that of another connection. False: there is
 * none, and why says so to the client. O(connections) while there is room. */
bool rpc_share_take(struct rpc_conn *conn, char *why, size_t size);
/* It ends, and counts no more. Fine when it does not. */
void rpc_share_leave(struct rpc_conn *conn);
/* The same, and its calls have so long to end; why is told to the client. */
void rpc_share_send_away(struct rpc_conn *conn, const char *why);
/* So many are about to be closed that this one is not even told why it is refused;
 * false for the privileged. */
bool rpc_share_is_flood(const struct rpc_conn *conn);
/* Logs that a connection was refused, or counts it when a line was written just now;
 * then rpc_share_say_refused writes one when log_at_ns has come. */
void rpc_share_refused(struct rpc_server *s, const char *who, const char *why);
void rpc_share_say_refused(struct rpc_server *s);

/* ---- conn.c ---- */

/* Fills in what all sessions share. */
void rpc_conn_callbacks_new(struct rpc_server *s);
/* Accepts a waiting connection, or refuses it. Problems are logged. */
void rpc_conn_accept(struct rpc_server *s, uv_stream_t *listener);
/* Sends what is to be sent; closes what has ended. */
void rpc_conn_flush(struct rpc_conn *conn);
/* Takes no more calls, for this reason ("": the server stops), an HTTP/2 error code. */
void rpc_conn_goaway(struct rpc_conn *conn, uint32_t code, const char *why);
/* Has the next flush cancel the calls and close the socket: never at once,
 * as the caller may be in the midst of a call or of nghttp2. */
void rpc_conn_close(struct rpc_conn *conn);

/* ---- call.c ---- */

/* A call for a new stream. */
struct rpc_call *rpc_call_new(struct rpc_conn *conn, int32_t stream);
void rpc_call_add_header(struct rpc_call *call, const uint8_t *name, size_t name_len,
			 const uint8_t *value, size_t value_len);
/* The request's headers are complete: refuses what cannot be served. */
void rpc_call_headers_done(struct rpc_call *call);
void rpc_call_input(struct rpc_call *call, const uint8_t *data, size_t len);
/* The client has sent everything: starts the handler. */
void rpc_call_half_closed(struct rpc_call *call);
/* The stream is gone: notifies the handler; frees the call unless a handler
 * without cancel callback still has it. */
void rpc_call_detach(struct rpc_call *call);
/* It is held back no more. */
void rpc_call_release(struct rpc_call *call);
/* The deadline has passed: ends the call with DEADLINE_EXCEEDED, or drops
 * what a call that has ended could not send. */
void rpc_call_expire(struct rpc_call *call);

/* ---- the client ---- */

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
	struct err remote;	/* of the trailers */
	struct err local;	/* what went wrong on this side */
	struct rpc_deframer in;
	const ProtobufCMessageDescriptor *response;
	rpc_on_message on_message;
	void *arg;
	ProtobufCMessage **keep; /* unary: takes the one message */
	bool is_stream;		/* both sides go on sending: stream.c */
	bool waits;		/* nghttp2, for more to send */
	VEC(ProtobufCMessage *) received;	/* of a stream: those not yet taken */
};

struct rpc_client {
	int fd;
	char path[NAME_MAX_TEXT];	/* of the socket, or HOST:PORT */
	struct rpc_transport t;
	size_t out_sent;	/* of t.out */
	bool greeted;		/* the server's SETTINGS came */
	bool deaf;		/* the server takes no more bytes */
	bool leaving;		/* the server sent GOAWAY */
	uint32_t leave_code;
	char leave_text[RPC_PEER_TEXT_MAX + 64];
	struct err lost;	/* why the connection is unusable, if it is */
	struct client_call *call;
	struct rpc_header header;	/* of every call; value NULL: none */
};

/* ---- client_conn.c: the socket ---- */

/* Remembers why the connection can be used no more, the first time, and
 * returns that. */
int client_lose(struct rpc_client *c, enum weft_err code, const char *why);
/* The server has closed: for the reason in its GOAWAY, if it sent one. */
int client_lose_to_server(struct rpc_client *c);
/* Sends until nothing is left or the socket takes no more. This and the next:
 * 0, or c->lost.code. */
int client_send_frames(struct rpc_client *c);
/* Sends, waits at most wait_ms for something to happen, and receives. */
int client_step(struct rpc_client *c, int wait_ms);
/* Milliseconds of the next slice before `end_ns` (0: no end); 0 when it has
 * passed. */
int client_slice_ms(int64_t end_ns);
/* The moment so many milliseconds from now; 0 for none, when they are 0. */
int64_t client_end_of(int timeout_ms);

/* ---- client.c: the session ---- */

#define CLIENT_MAX_RESPONSE ((size_t)64 << 20)

void client_start_session(struct rpc_client *c);
/* 0 when the connection can take a call, or why not. */
int client_ready(struct rpc_client *c, struct err *err);
/* Sends the headers of c->call. */
int client_submit(struct rpc_client *c, const char *path, int timeout_ms, struct err *err);
/* What a closed stream amounts to. */
int client_outcome(const struct client_call *call, struct err *err);

#endif
