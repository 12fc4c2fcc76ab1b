/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC over HTTP/2 in C: a server and a client on nghttp2, protobuf-c, OpenSSL
 * and libuv. Knows nothing of weft: methods are registered with their message
 * descriptors. Calls of all four kinds on the server; on the client unary and
 * server-streaming ones, and streams both ways. Unix sockets, authorised by
 * file mode and peer credentials; TCP with certificates on both sides. One
 * thread: everything runs on the loop.
 *
 * Boundary rules that this layer enforces for every request and response it
 * decodes: size and memory budget a call, valid UTF-8 without NUL in every
 * string, bounded nesting; of requests also RPC_MAX_STRING bytes a string and known
 * values of enumerations; a message that breaks one is INVALID_ARGUMENT or
 * RESOURCE_EXHAUSTED and never reaches a handler.
 */
#ifndef WEFT_LIB_RPC_RPC_H
#define WEFT_LIB_RPC_RPC_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "lib/base/err.h"

/* The gRPC status codes. */
enum rpc_status {
	RPC_OK = 0, RPC_CANCELLED = 1, RPC_UNKNOWN = 2,
	RPC_INVALID_ARGUMENT = 3, RPC_DEADLINE_EXCEEDED = 4,
	RPC_NOT_FOUND = 5, RPC_ALREADY_EXISTS = 6, RPC_PERMISSION_DENIED = 7,
	RPC_RESOURCE_EXHAUSTED = 8, RPC_FAILED_PRECONDITION = 9,
	RPC_ABORTED = 10, RPC_OUT_OF_RANGE = 11, RPC_UNIMPLEMENTED = 12,
	RPC_INTERNAL = 13, RPC_UNAVAILABLE = 14, RPC_DATA_LOSS = 15,
	RPC_UNAUTHENTICATED = 16,
};

/* Upper-case name, e.g. "NOT_FOUND"; "UNKNOWN" for anything else. */
const char *rpc_status_name(enum rpc_status s);

struct rpc_server;
struct rpc_call;	/* one call on the server, owned by the server */

#define RPC_MAX_STRING 4096
#define RPC_MAX_GROUPS 64

/* Who calls: of a unix socket from SO_PEERCRED, of TCP from the certificate. */
struct rpc_peer {
	bool remote;
	uid_t uid;		/* up to groups only of a unix socket */
	gid_t gid;
	pid_t pid;
	int n_groups;		/* the process's further groups */
	gid_t groups[RPC_MAX_GROUPS];
	char name[256];		/* subject, "CN=weft,O=Site" (RFC 2253) */
};

/* Name of a user of this host, kept for some minutes; "uid 1000" where there is none. Returns
 * buf. Threads may call it at the same time. */
const char *rpc_user_name(uid_t uid, char *buf, size_t size);
/* "alice (weft, process 4711)", without the command of a process that is gone or that may
 * not be looked at; or the certificate's name. Returns buf. */
#define RPC_PEER_TEXT_MAX 280
const char *rpc_peer_text(const struct rpc_peer *peer, char *buf, size_t size);

/* PEM files of one side of a TLS connection. */
struct rpc_tls_files {
	const char *cert;	/* own certificate, with its chain */
	const char *key;
	const char *ca;		/* who may vouch for the other side */
	const char *crl;	/* revoked certificates, or NULL */
};

/* Starts a call. The request is valid until the call is finished. The
 * handler (or something it started) must call rpc_finish exactly once.
 *
 * A client-streaming method's handler is called for each request message,
 * which is valid until it returns, and with NULL when the client has sent the
 * last one. It must call rpc_finish exactly once, then or earlier; what it
 * keeps between its calls it must give back in a cancel callback. */
typedef void (*rpc_handler)(struct rpc_call *call, const ProtobufCMessage *request, void *arg);

/* The call ended without the server finishing it: client gone, reset, or
 * deadline. Called at most once, only if set. The call must not be touched
 * after it returns. A handler that sets no callback need not care: it may
 * go on (rpc_send answers WEFT_ECANCELED) until it calls rpc_finish. */
typedef void (*rpc_cancel_cb)(struct rpc_call *call, void *arg);

/* All that was sent is on its way, and the client takes more. The callback may
 * send, also nothing, and may finish the call. */
typedef void (*rpc_ready_cb)(struct rpc_call *call, void *arg);

/* Which side sends any number of messages instead of one. */
enum rpc_streaming {
	RPC_UNARY = 0, RPC_SERVER_STREAMING = 1, RPC_CLIENT_STREAMING = 2,
	RPC_BIDI_STREAMING = RPC_SERVER_STREAMING | RPC_CLIENT_STREAMING,
};

struct rpc_method {
	const char *path;	/* "/weft.v1.FabricService/Plan" */
	const ProtobufCMessageDescriptor *request, *response;
	enum rpc_streaming streaming;
	rpc_handler handler;
};

struct rpc_limits {		/* zero: the default in brackets */
	size_t max_request;	/* bytes of one request message [4 MiB] */
	size_t max_decoded;	/* heap of one decoded request [32 MiB] */
	size_t max_queued;	/* unsent bytes of one call [8 MiB] */
	size_t max_conn_queued; /* unsent bytes of one connection [16 MiB] */
	size_t max_conn_held;	/* bytes of the requests, received and
				   decoded, of one connection [64 MiB] */
	int max_conns;		/* connections at a time, in all [512]: who has most
				   of them makes room for others */
	int max_reserved;	/* beside them, for peers that are privileged [64] */
	int max_greeting;	/* and while they agree on TLS [128] */
	int greet_ms;		/* until TLS is agreed on, and until a first
				   frame came [10 s] */
	int first_call_ms;	/* then until a first call came [60 s] */
	int max_calls;		/* calls at a time on a connection [100] */
};

/* A header of a plain answer; the name in lower case. */
struct rpc_header {
	const char *name, *value;
};

/* authorise: may this peer connect? NULL lets in whom the file mode lets
 * in, and whose certificate is good. Refused peers get a GOAWAY and are closed
 * before any call is read.
 * privileged: is a connection of this peer to be served also when others have all
 * of max_conns? NULL: none is.
 * permit: may this call be made? NULL: yes. Asked as soon as the method is
 * known (rpc_call_peer, _path, _metadata), before the request is read;
 * an error ends the call with it.
 * get: a plain GET, of a browser: rpc_call_path has path and query, `permit`
 * was not asked, and rpc_answer must end it exactly once, now
 * or later. NULL: every GET is 405.
 * hold: asked for each message and for the end of a call: not 0, that and what follows is held back
 * until rpc_server_release reaches this mark. NULL: nothing is.
 * ended: called for each answer once it is on its way.
 * All strings must outlive the server. */
struct rpc_server_config {
	const char *unix_path;
	int mode;		/* of the socket file, e.g. 0660 */
	int unix_fd;		/* a socket that listens there already, and that is left
				 * as it is when the server stops; 0: none */
	const char *tcp_host;	/* an address to listen on, or NULL */
	int tcp_port;		/* 0: any */
	struct rpc_tls_files tls; /* of TCP */
	struct rpc_limits limits;
	bool (*authorise)(const struct rpc_peer *peer, void *arg);
	bool (*privileged)(const struct rpc_peer *peer, void *arg);
	int (*permit)(struct rpc_call *call, void *arg, struct err *err);
	void (*get)(struct rpc_call *call, void *arg);
	int64_t (*hold)(struct rpc_call *call, void *arg);
	void (*ended)(const char *path, enum rpc_status status, void *arg);
	const struct rpc_method *methods;	/* path NULL ends the table */
	void *arg;	/* for handlers and these functions */
};

/* Listens. The file of a server that has died is replaced; where one answers, it is left to
 * that one. Of several that start at once one gets it: it holds a lock on the file
 * "PATH.lock" until it stops. cfg->methods must outlive the server. A SIGPIPE that
 * still has its default action is ignored from here on, as a client that
 * vanishes must not end the process. WEFT_ESTALE, naming the process that listens
 * there; WEFT_EINVAL for a path that is too
 * long or names something that is not a socket, an address that is none, a
 * certificate that cannot be used; WEFT_EIO. */
int rpc_server_new(uv_loop_t *loop, const struct rpc_server_config *cfg,
		   struct rpc_server **out, struct err *err);

/* The TCP port listened on, 0 without one. */
int rpc_server_port(const struct rpc_server *s);

/* Lets go what was held back until this mark, or one before it. O(calls). */
void rpc_server_release(struct rpc_server *s, int64_t mark);
/* Ends calls that are over but for what is held back with this error, whatever they were told.
 * O(calls). */
void rpc_server_refuse(struct rpc_server *s, const struct err *err);

/* Reads the certificate files again: new connections use them, those that
 * are open go on. On an error the old ones stay in use. */
int rpc_server_reload_tls(struct rpc_server *s, struct err *err);

/* Stops accepting, removes the socket file if it is still its own, sends GOAWAY, lets calls end for
 * grace_ms, closes the rest (their cancel callbacks run), frees, then calls
 * done (may be NULL) from the loop. Call once; a handler may call it. */
void rpc_server_stop(struct rpc_server *s, int grace_ms, void (*done)(void *), void *arg);

/* Who calls; lives as long as the call. */
const struct rpc_peer *rpc_call_peer(const struct rpc_call *call);
/* The path being called; of a plain GET with its query. */
const char *rpc_call_path(const struct rpc_call *call);
/* Value of a request metadata key (lower case), or NULL. */
const char *rpc_call_metadata(const struct rpc_call *call, const char *key);
void rpc_call_on_cancel(struct rpc_call *call, rpc_cancel_cb cb, void *arg);

/* Queues one response message (copied): the method's, or the message that is its only
 * field, as where several methods answer with the same. WEFT_ELIMIT when the queue bound is
 * reached: the message is dropped and the caller decides. WEFT_ECANCELED
 * when no client waits for it any more. */
int rpc_send(struct rpc_call *call, const ProtobufCMessage *response, struct err *err);

/* The same with a message of the method's response type that is encoded already. */
int rpc_send_packed(struct rpc_call *call, const void *data, size_t len, struct err *err);

/* Bytes queued that the client has not taken yet. */
size_t rpc_call_unsent(const struct rpc_call *call);

/* For streams without end: asks for a word each time the queue has run empty,
 * so that what a slow client has not read need not be queued. From then on
 * it may come whenever a handler has returned. */
void rpc_call_on_ready(struct rpc_call *call, rpc_ready_cb cb, void *arg);

/* Ends the call; the call must not be touched afterwards. message may be
 * NULL. */
void rpc_finish(struct rpc_call *call, enum rpc_status status, const char *message);

/* Ends a plain GET. headers end with a name NULL and are at most
 * RPC_MAX_ANSWER_HEADERS; the body is copied. A body that the limits do not
 * allow becomes 503. The call must not be touched afterwards. */
#define RPC_MAX_ANSWER_HEADERS 10
void rpc_answer(struct rpc_call *call, int status,
		const struct rpc_header *headers, const void *body, size_t len);

/* Names something that a failure is about ("circuit", "ocs0: in 3 -> out 4",
 * "refused: port has no signal") for the status that will end the call. False when
 * there is no room for more; the trailers that clients take are small. */
bool rpc_call_add_resource(struct rpc_call *call, const char *type,
			   const char *name, const char *description);

/* Ends the call with the status that fits err's code. The message keeps the
 * whole text; the metadata key weft-error carries the code's name and
 * weft-place "file:line:col", weft-hint the hint, so that the client side
 * returns an equal struct err. grpc-status-details-bin has the same and the
 * resources as google.rpc.Status. */
void rpc_finish_err(struct rpc_call *call, const struct err *err);

/* ---- client: blocking, or in a coroutine (lib/coroutine) while its loop goes on ---- */

struct rpc_client;

/* Connects to a unix socket and waits for the server's first word, at most
 * timeout_ms (0: no bound). WEFT_EUNAVAIL when no server listens or answers,
 * WEFT_EDENIED when the file mode or the server forbids it. */
int rpc_client_open(const char *unix_path, int timeout_ms,
		    struct rpc_client **out, struct err *err);
/* The same over TCP: host is a name or address, which the server's certificate
 * must carry. files NULL: without TLS. WEFT_EINVAL for files that cannot be used,
 * WEFT_EDENIED when either side refuses the other's certificate. */
int rpc_client_open_tcp(const char *host, int port, const struct rpc_tls_files *files,
			int timeout_ms, struct rpc_client **out, struct err *err);
/* NULL is fine. */
void rpc_client_close(struct rpc_client *c);

/* Sends this header with every call (value NULL: none). The texts must outlive the
 * client. */
void rpc_client_header(struct rpc_client *c, const char *name, const char *value);

/* Called for each response message; non-zero stops (the call is cancelled
 * and returns WEFT_ECANCELED). The message is freed after return. */
typedef int (*rpc_on_message)(const ProtobufCMessage *msg, void *arg);

/* Runs one call to its end. timeout_ms 0: no deadline. *cancel, when given,
 * is polled (atomically) at least every 100 ms: true resets the call.
 * Returns 0, the error the server sent (its code restored as by
 * rpc_finish_err), WEFT_ETIMEOUT, WEFT_ECANCELED, or WEFT_EUNAVAIL when the
 * connection is lost (it then stays so: close the client). on_message must
 * not use c. */
int rpc_client_call(struct rpc_client *c, const char *path, const ProtobufCMessage *request,
		    const ProtobufCMessageDescriptor *response, int timeout_ms,
		    rpc_on_message on_message, void *arg, const volatile bool *cancel,
		    struct err *err);

/* Unary shorthand: *response is freed by the caller with
 * protobuf_c_message_free_unpacked(m, NULL). */
int rpc_client_unary(struct rpc_client *c, const char *path, const ProtobufCMessage *request,
		     const ProtobufCMessageDescriptor *response, int timeout_ms,
		     ProtobufCMessage **out, struct err *err);

/* A call in which both sides send any number of messages. */
struct rpc_stream;

/* Begins one; c runs no other call until it is closed. */
int rpc_stream_open(struct rpc_client *c, const char *path,
		    const ProtobufCMessageDescriptor *response, struct rpc_stream **out,
		    struct err *err);
/* Queues a message, and sends what the socket takes. */
int rpc_stream_send(struct rpc_stream *s, const ProtobufCMessage *msg, struct err *err);
/* The next message (freed with rpc_free_message), for which it waits at most timeout_ms
 * (0: not at all); *out is NULL when none came. Errors are those of rpc_client_call;
 * WEFT_EUNAVAIL too when the server has ended the call well. */
int rpc_stream_receive(struct rpc_stream *s, int timeout_ms, ProtobufCMessage **out,
		       struct err *err);
/* Ends the call; the connection can take another. NULL is fine. */
void rpc_stream_close(struct rpc_stream *s);
/* To wait on: it is readable when there may be something to receive. */
int rpc_client_fd(const struct rpc_client *c);

/* ---- the boundary, usable alone (files, fuzzing) ---- */

/* Decodes and checks one message within a heap budget (0: 32 MiB, counting
 * what decoding needs meanwhile). Refuses with WEFT_EINVAL: a string that is
 * not UTF-8 or holds a NUL, messages nested deeper than RPC_MAX_NESTING, a
 * singular message field given twice (merging is quadratic in protobuf-c),
 * broken encoding; with WEFT_ELIMIT: a spent budget. Free with
 * rpc_free_message (NULL is fine). O(len log fields). */
#define RPC_MAX_NESTING 32
int rpc_decode(const ProtobufCMessageDescriptor *type, const void *data, size_t len, size_t budget,
	       ProtobufCMessage **out, struct err *err);
void rpc_free_message(ProtobufCMessage *msg);

/* ---- memory ---- */

/* Before anything else of this room or of OpenSSL is used: where memory ends, the process does
 * (alloc_on_end), in OpenSSL as well. */
void rpc_set_allocators(void);

#endif
