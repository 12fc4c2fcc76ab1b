/*
 * TLS with certificates on both sides, over bytes in memory: the caller has
 * the socket. TLS 1.2 or newer, ALPN "h2", no renegotiation, no resumption:
 * each connection shows its certificate. Private to this room.
 */
#ifndef WEFT_LIB_RPC_TLS_H
#define WEFT_LIB_RPC_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/rpc/rpc.h"

/* Certificate, key and trusted authorities, as loaded from files. */
struct rpc_tls;

/* Loads the files of a server or a client. WEFT_EINVAL names the file and
 * OpenSSL's reason; WEFT_ENOMEM. */
int rpc_tls_new(const struct rpc_tls_files *files, bool is_server,
		struct rpc_tls **out, struct err *err);
/* NULL is fine. Sessions that are open keep what they need. */
void rpc_tls_free(struct rpc_tls *tls);

/* One session. */
struct rpc_tls_session;

/* host: the name that the server's certificate must carry (a DNS name or an
 * IP address), NULL on the server's side. WEFT_ENOMEM. */
int rpc_tls_session_new(const struct rpc_tls *tls, const char *host,
			struct rpc_tls_session **out, struct err *err);
/* NULL is fine. */
void rpc_tls_session_free(struct rpc_tls_session *s);

/* Takes bytes of the socket. WEFT_ENOMEM. */
int rpc_tls_input(struct rpc_tls_session *s, const void *data, size_t len,
		  struct err *err);

/* Goes on with the handshake. *done: it is complete, the peer's certificate
 * verified and "h2" agreed. WEFT_EDENIED with the reason otherwise; what is
 * then to be sent to the peer is an alert. */
int rpc_tls_handshake(struct rpc_tls_session *s, bool *done, struct err *err);

/* Reads plain bytes: their number, 0 when more input is needed; *closed when
 * the peer has said that it ends. WEFT_EIO when the peer breaks the rules. */
int rpc_tls_read(struct rpc_tls_session *s, void *data, size_t len,
		 bool *closed, struct err *err);

/* Encrypts; what comes of it is for rpc_tls_output. WEFT_EIO, WEFT_ENOMEM. */
int rpc_tls_write(struct rpc_tls_session *s, const void *data, size_t len,
		  struct err *err);

/* Says to the peer that nothing more will be written. */
void rpc_tls_end(struct rpc_tls_session *s);

/* Moves what is to be sent to the socket to the end of out. */
void rpc_tls_output(struct rpc_tls_session *s, struct buf *out);

/* The peer's certificate, once the handshake is done: its subject as
 * "CN=weft,O=Site" (RFC 2253) into name, cut when too long. */
void rpc_tls_peer_name(const struct rpc_tls_session *s, char *name,
		       size_t size);

#endif
