/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 and TLS between a session and the bytes of its socket. */
#include "lib/rpc/private.h"

#include <stdlib.h>

#include "lib/base/alloc.h"

/* Bytes handed to the socket at a time. */
#define OUT_BYTES ((size_t)64 << 10)

nghttp2_session_callbacks *rpc_transport_callbacks_new(void)
{
	nghttp2_session_callbacks *cb = NULL;

	nghttp2_session_callbacks_new(&cb);
	return x_have(cb);
}

void rpc_transport_fini(struct rpc_transport *t)
{
	nghttp2_session_del(t->session);
	rpc_tls_session_free(t->tls);
	buf_fini(&t->out);
}

/* Some frames into t->out, encrypted or not. */
static int put(struct rpc_transport *t, const uint8_t *data, size_t len, struct err *err)
{
	int r;

	if (!t->tls) {
		buf_add(&t->out, data, len);
		return 0;
	}
	r = rpc_tls_write(t->tls, data, len, err);
	if (r == 0) {
		rpc_tls_output(t->tls, &t->out);
	}
	return r;
}

int rpc_transport_collect(struct rpc_transport *t, struct err *err)
{
	const uint8_t *data;
	ssize_t n = 1;
	int r = 0;

	if (t->tls) {
		rpc_tls_output(t->tls, &t->out);
	}
	while (t->session && r == 0 && n > 0 && t->out.len < OUT_BYTES) {
		n = nghttp2_session_mem_send(t->session, &data);
		if (n < 0) {
			return err_set(err, WEFT_EINTERNAL, "%s", nghttp2_strerror((int)n));
		}
		r = n > 0 ? put(t, data, (size_t)n, err) : 0;
	}
	return r;
}

static int take_plain(struct rpc_transport *t, const void *data, size_t len, struct err *err)
{
	ssize_t n = nghttp2_session_mem_recv(t->session, data, len);

	return n < 0 ? err_set(err, WEFT_EINVAL, "%s", nghttp2_strerror((int)n)) : 0;
}

int rpc_transport_take(struct rpc_transport *t, const void *data, size_t len,
		       bool *closed, struct err *err)
{
	uint8_t plain[16 << 10];
	int n, r = 0;

	*closed = false;
	if (!t->tls) {
		return take_plain(t, data, len, err);
	}
	rpc_tls_input(t->tls, data, len);
	while (r == 0 && t->session && !t->doomed && (n = rpc_tls_read(t->tls, plain, sizeof(plain),
								       closed, err)) != 0) {
		r = n < 0 ? n : take_plain(t, plain, (size_t)n, err);
	}
	return r;
}
