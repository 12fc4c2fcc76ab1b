/* Private to the blocking client, client*.c: its connection and its call. */
#ifndef WEFT_LIB_RPC_CLIENT_H
#define WEFT_LIB_RPC_CLIENT_H

#include "lib/rpc/frame.h"
#include "lib/rpc/rpc.h"
#include "lib/rpc/status.h"
#include "lib/rpc/tls.h"

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

/* The call of a stream, or NULL. */
static inline struct client_call *client_call_of(struct rpc_client *c, int32_t stream)
{
	return c->call && c->call->stream == stream ? c->call : NULL;
}

/* ---- client_conn.c: bytes ---- */

/* Remembers why the connection can be used no more, the first time, and
 * returns that. */
int client_lose(struct rpc_client *c, enum weft_err code, const char *why);
/* The server has closed: say what its GOAWAY said, if it sent one. */
int client_lose_to_server(struct rpc_client *c);
/* Hands c->out to the socket, as much as it takes; false when it takes no
 * more now. */
bool client_send_out(struct rpc_client *c);
/* Sends until nothing is left or the socket takes no more. This and those
 * below: 0, or c->lost.code. */
int client_send_frames(struct rpc_client *c);
int client_receive(struct rpc_client *c);
/* Bytes of TLS; none: what it holds already. */
int client_take_encrypted(struct rpc_client *c, const uint8_t *data,
			  size_t len);
/* Sends, waits at most wait_ms for something to happen, and receives. */
int client_step(struct rpc_client *c, int wait_ms);
/* Milliseconds of the next slice before `end_ns` (0: no end); 0 when it has
 * passed. */
int client_slice_ms(int64_t end_ns);
/* The moment so many milliseconds from now; 0 for none, when they are 0. */
int64_t client_end_of(int timeout_ms);

/* ---- client_session.c: frames ---- */

/* WEFT_ENOMEM. */
int client_start_session(struct rpc_client *c, struct err *err);
/* Waits for the server's SETTINGS: only then is somebody there.
 * WEFT_EUNAVAIL when they do not come by end_ns, or c->lost. */
int client_await_greeting(struct rpc_client *c, int64_t end_ns,
			  struct err *err);

#endif
