/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS over bytes in memory: OpenSSL reads from one buffer and writes to
 * another, so that the loop and poll() can move them. A context holds what was
 * loaded from files; sessions keep it alive after a reload.
 */
#include "lib/rpc/private.h"

#include <arpa/inet.h>
#include <assert.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

/* "h2" as ALPN writes it. */
static const unsigned char alpn[] = { 2, 'h', '2' };

struct rpc_tls {
	SSL_CTX *ctx;
	bool is_server;
};

struct rpc_tls_session {
	SSL *ssl;
	BIO *in, *out;		/* owned by ssl */
};

/* ---- memory -------------------------------------------------------------- */

static void *tls_malloc(size_t size, const char *file, int line)
{
	(void)file, (void)line;
	return x_malloc(size);
}

/* OpenSSL takes 0 bytes for an end. */
static void *tls_realloc(void *p, size_t size, const char *file, int line)
{
	(void)file, (void)line;
	if (size == 0) {
		free(p);
		return NULL;
	}
	return x_realloc(p, size);
}

static void tls_free(void *p, const char *file, int line)
{
	(void)file, (void)line;
	free(p);
}

void rpc_tls_set_allocators(void)
{
	CRYPTO_set_mem_functions(tls_malloc, tls_realloc, tls_free);
}

/* OpenSSL's own words for what went wrong last. */
static const char *reason(void)
{
	unsigned long e = ERR_peek_last_error();
	const char *text = e ? ERR_reason_error_string(e) : NULL;

	ERR_clear_error();
	return text ? text : "unknown";
}

/* ---- files --------------------------------------------------------------- */

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *out_len,
		     const unsigned char *in, unsigned in_len, void *arg)
{
	(void)ssl, (void)arg;
	return SSL_select_next_proto((unsigned char **)(uintptr_t)out, out_len,
				     alpn, sizeof(alpn), in, in_len) ==
			       OPENSSL_NPN_NEGOTIATED
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Without revocation nothing is known of a certificate whose key has leaked. */
static int load_crl(SSL_CTX *ctx, const char *file, struct err *err)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());

	if (!lookup || X509_load_crl_file(lookup, file, X509_FILETYPE_PEM) <= 0) {
		return err_set(err, WEFT_EINVAL, "%s: revocation list: %s", file, reason());
	}
	X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
	return 0;
}

static int load_files(SSL_CTX *ctx, const struct rpc_tls_files *f, struct err *err)
{
	if (SSL_CTX_use_certificate_chain_file(ctx, f->cert) != 1) {
		return err_set(err, WEFT_EINVAL, "%s: certificate: %s", f->cert, reason());
	}
	if (SSL_CTX_use_PrivateKey_file(ctx, f->key, SSL_FILETYPE_PEM) != 1) {
		return err_set(err, WEFT_EINVAL, "%s: key: %s", f->key, reason());
	}
	if (SSL_CTX_load_verify_file(ctx, f->ca) != 1) {
		return err_set(err, WEFT_EINVAL, "%s: authorities: %s", f->ca, reason());
	}
	return f->crl ? load_crl(ctx, f->crl, err) : 0;
}

/* Of TLS 1.2, whose other suites are without forward secrecy or cut into blocks (CBC),
 * and are forbidden to HTTP/2 (RFC 9113, appendix A). Those of 1.3 are all good. */
#define SUITES "ECDHE+AESGCM:ECDHE+CHACHA20"

static int set_rules(SSL_CTX *ctx, bool is_server, struct err *err)
{
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	if (SSL_CTX_set_cipher_list(ctx, SUITES) != 1) {
		return err_set(err, WEFT_EINTERNAL, "TLS: %s", reason());
	}
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION |
				 SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS);
	if (is_server) {
		SSL_CTX_set_alpn_select_cb(ctx, choose_h2, NULL);
	} else {
		SSL_CTX_set_alpn_protos(ctx, alpn, sizeof(alpn));
	}
	return 0;
}

int rpc_tls_new(const struct rpc_tls_files *files, bool is_server,
		struct rpc_tls **out, struct err *err)
{
	struct rpc_tls *tls = x_new(1, sizeof(*tls));
	int rc;

	*out = NULL;
	tls->is_server = is_server;
	tls->ctx = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
	rc = tls->ctx ? set_rules(tls->ctx, is_server, err)
		      : err_set(err, WEFT_EINTERNAL, "TLS: %s", reason());
	if (rc || (rc = load_files(tls->ctx, files, err))) {
		rpc_tls_free(tls);
		return rc;
	}
	*out = tls;
	return 0;
}

void rpc_tls_free(struct rpc_tls *tls)
{
	if (tls) {
		SSL_CTX_free(tls->ctx);
		free(tls);
	}
}

/* ---- sessions ------------------------------------------------------------ */

int rpc_tls_expect_host(struct rpc_tls_session *s, const char *host, struct err *err)
{
	unsigned char address[sizeof(struct in6_addr)];
	bool taken;

	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1) {
		taken = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(s->ssl), host);
	} else {
		taken = SSL_set1_host(s->ssl, host) && SSL_set_tlsext_host_name(s->ssl, host);
	}
	return taken ? 0 : err_set(err, WEFT_EINVAL, "TLS: %s is no name of a host", host);
}

struct rpc_tls_session *rpc_tls_session_new(const struct rpc_tls *tls)
{
	struct rpc_tls_session *s = x_new(1, sizeof(*s));

	s->ssl = x_have(SSL_new(tls->ctx));
	s->in = x_have(BIO_new(BIO_s_mem()));
	s->out = x_have(BIO_new(BIO_s_mem()));
	SSL_set_bio(s->ssl, s->in, s->out);
	if (tls->is_server) {
		SSL_set_accept_state(s->ssl);
	} else {
		SSL_set_connect_state(s->ssl);
	}
	return s;
}

void rpc_tls_session_free(struct rpc_tls_session *s)
{
	if (s) {
		SSL_free(s->ssl);
		free(s);
	}
}

void rpc_tls_input(struct rpc_tls_session *s, const void *data, size_t len)
{
	assert(len <= INT_MAX);
	BIO_write(s->in, data, (int)len);
}

/* Why a handshake failed: what is wrong with the certificate is a better
 * reason than that the handshake failed. */
static int handshake_error(struct rpc_tls_session *s, struct err *err)
{
	long verdict = SSL_get_verify_result(s->ssl);
	const char *why = reason();

	return verdict != X509_V_OK
		       ? err_set(err, WEFT_EDENIED, "certificate: %s",
				 X509_verify_cert_error_string(verdict))
		       : err_set(err, WEFT_EDENIED, "TLS: %s", why);
}

int rpc_tls_handshake(struct rpc_tls_session *s, bool *done, struct err *err)
{
	const unsigned char *proto;
	unsigned len;
	int r;

	*done = false;
	ERR_clear_error();
	r = SSL_do_handshake(s->ssl);
	if (r != 1) {
		if (SSL_get_error(s->ssl, r) == SSL_ERROR_WANT_READ) {
			return 0;
		}
		return handshake_error(s, err);
	}
	SSL_get0_alpn_selected(s->ssl, &proto, &len);
	if (len != sizeof(alpn) - 1 || memcmp(proto, alpn + 1, len) != 0) {
		return err_set(err, WEFT_EDENIED, "TLS: the peer does not offer HTTP/2");
	}
	*done = true;
	return 0;
}

int rpc_tls_read(struct rpc_tls_session *s, void *data, size_t len, bool *closed, struct err *err)
{
	int n;

	*closed = false;
	ERR_clear_error();
	n = SSL_read(s->ssl, data, len > INT_MAX ? INT_MAX : (int)len);
	if (n > 0) {
		return n;
	}
	switch (SSL_get_error(s->ssl, n)) {
	case SSL_ERROR_WANT_READ:
		return 0;
	case SSL_ERROR_ZERO_RETURN:
		*closed = true;
		return 0;
	default:
		return err_set(err, WEFT_EIO, "TLS: %s", reason());
	}
}

int rpc_tls_write(struct rpc_tls_session *s, const void *data, size_t len, struct err *err)
{
	const char *p = data;

	while (len > 0) {
		int n;

		ERR_clear_error();
		n = SSL_write(s->ssl, p, len > INT_MAX ? INT_MAX : (int)len);
		if (n <= 0) {
			return err_set(err, WEFT_EIO, "TLS: %s", reason());
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

void rpc_tls_end(struct rpc_tls_session *s)
{
	if (SSL_is_init_finished(s->ssl)) {
		SSL_shutdown(s->ssl);
	}
	ERR_clear_error();
}

void rpc_tls_output(struct rpc_tls_session *s, struct buf *out)
{
	char *data;
	long len = BIO_get_mem_data(s->out, &data);

	if (len > 0) {
		buf_add(out, data, (size_t)len);
		BIO_reset(s->out);
	}
}

void rpc_tls_peer_name(const struct rpc_tls_session *s, char *name, size_t size)
{
	X509 *cert = SSL_get0_peer_certificate(s->ssl);
	BIO *text = BIO_new(BIO_s_mem());
	long len = 0;
	char *data;

	name[0] = '\0';
	if (cert && text && X509_NAME_print_ex(text, X509_get_subject_name(cert), 0,
					       XN_FLAG_RFC2253) >= 0) {
		len = BIO_get_mem_data(text, &data);
		len = len < (long)size ? len : (long)size - 1;
		memcpy(name, data, (size_t)len);
		name[len] = '\0';
	}
	BIO_free(text);
}
