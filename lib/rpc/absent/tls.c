/* SPDX-License-Identifier: Apache-2.0 */
/* Without TLS: unix sockets only, as nothing goes over TCP in the clear. */
#include "lib/rpc/private.h"

void rpc_tls_set_allocators(void)
{
}

int rpc_tls_new(const struct rpc_tls_files *files, bool is_server,
		struct rpc_tls **out, struct err *err)
{
	*out = NULL;
	return build_lacks("TLS", err);
}

void rpc_tls_free(struct rpc_tls *tls)
{
}

void rpc_tls_session_free(struct rpc_tls_session *s)
{
}

/* The others are of sessions that were made. */
struct rpc_tls_session *rpc_tls_session_new(const struct rpc_tls *tls)
{
	return NULL;
}

int rpc_tls_expect_host(struct rpc_tls_session *s, const char *host, struct err *err)
{
	return build_lacks("TLS", err);
}

void rpc_tls_input(struct rpc_tls_session *s, const void *data, size_t len)
{
}

int rpc_tls_handshake(struct rpc_tls_session *s, bool *done, struct err *err)
{
	return build_lacks("TLS", err);
}

int rpc_tls_read(struct rpc_tls_session *s, void *data, size_t len, bool *closed, struct err *err)
{
	return build_lacks("TLS", err);
}

int rpc_tls_write(struct rpc_tls_session *s, const void *data, size_t len, struct err *err)
{
	return build_lacks("TLS", err);
}

void rpc_tls_end(struct rpc_tls_session *s)
{
}

void rpc_tls_output(struct rpc_tls_session *s, struct buf *out)
{
}

void rpc_tls_peer_name(const struct rpc_tls_session *s, char *name, size_t size)
{
	*name = '\0';
}
