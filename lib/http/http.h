/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain HTTP/1.1 for people and scrapers on this machine: GET only, on a
 * loopback address only, from libmicrohttpd on libuv's loop. Knows nothing of
 * weft.
 *
 * Boundary rules that this layer enforces: a Host that is not this machine is
 * refused with 421, so that no web site can have a browser read what is
 * served here under its own name (DNS rebinding); any method but GET is 405;
 * what has not exactly one Host, two Content-Lengths, or a NUL in its URI is 400;
 * connections, the bytes of a request's head and the time that it may take (5 s)
 * are bounded. Of connections each user has a share: when there are as many as
 * may be, who has most loses one to whoever comes.
 */
#ifndef WEFT_LIB_HTTP_HTTP_H
#define WEFT_LIB_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "lib/base/err.h"

struct http_server;
struct http_request;

/* Must call http_answer exactly once for each request, now or later, on the
 * loop's thread. q is valid until then. */
typedef void (*http_handler)(struct http_request *q, void *arg);

/* The client has hung up while its answer was due; http_answer must be called
 * all the same, and sends nothing. */
typedef void (*http_gone_cb)(struct http_request *q, void *arg);

struct http_config {
	const char *option;	/* what errors call it: "--page" */
	const char *host;	/* a loopback address */
	int port;		/* 0: any */
	int max_conns;		/* at a time */
	http_handler handler;
	void *arg;
};

/* Listens. WEFT_EINVAL for what is not a loopback address, WEFT_EIO.
 * The strings are not needed afterwards. */
int http_server_new(uv_loop_t *loop, const struct http_config *cfg,
		    struct http_server **out, struct err *err);
/* The port listened on. */
int http_server_port(const struct http_server *s);
/* Closes everything; no request may be without its answer. Its last handles
 * are closed by the loop. NULL is fine. */
void http_server_free(struct http_server *s);

/* "/metrics"; as it was sent, without the query. */
const char *http_path(const struct http_request *q);
/* Value of a key of the query, as it was sent, or NULL. */
const char *http_query(const struct http_request *q, const char *key);
/* Calls cb when the client hangs up before its answer. */
void http_on_gone(struct http_request *q, http_gone_cb cb, void *arg);

/* A header of an answer. */
struct http_header {
	const char *name, *value;
};

/* Ends the request. headers end with a name NULL; the body is copied. The
 * request must not be touched afterwards. */
void http_answer(struct http_request *q, int status, const struct http_header *headers,
		 const void *body, size_t len);

/* True for "localhost", 127.0.0.0/8 and [::1], with or without a port. */
bool http_host_is_local(const char *host);

#endif
