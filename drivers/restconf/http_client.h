/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 to one device, requests sent one after the other over a connection
 * that is kept, by libcurl on the loop: nothing blocks. (A name is looked up
 * by a thread of libcurl's, as libuv does it.) It knows nothing of what is
 * asked. Private to drivers.
 *
 * What changes something is sent once. A request that changes nothing is sent
 * again, once and over a new connection, when the kept one was closed by the
 * device, or was unused for a while and is dead: devices and what stands
 * between end connections that are not used. A status of 503 or 429 that says
 * how long to wait is no answer but a refusal to look: the request goes out
 * once more after that time. Redirects are answers, and are not followed;
 * proxies of the environment are not used. After a failed connect the next
 * attempt waits, from 50 ms up to 2 s.
 */
#ifndef WEFT_DRIVERS_RESTCONF_HTTP_CLIENT_H
#define WEFT_DRIVERS_RESTCONF_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "lib/base/err.h"

#define HTTP_ETAG_MAX 128

struct http_client;

/* All strings are copied; those that may be NULL say so. */
struct http_conf {
	const char *device;	/* for error texts */
	const char *address;	/* "HOST:PORT", "[V6]:PORT" */
	const char *user, *password;	/* Basic; user NULL or "": none */
	bool tls;		/* HTTPS */
	bool verify;		/* tls: the certificate must be good, and the
				 * address's own */
	const char *ca;		/* tls: file of the authorities; NULL: the system's */
	const char *cert, *key;	/* tls: files of our certificate; NULL: none */
	int64_t timeout_ms;	/* to connect, and for each whole answer */
	int64_t gap_us;		/* least time between two requests */
	size_t max_body;	/* longest answer */
};

/* What became of a request. */
struct http_answer {
	int rc;			/* 0: an answer came, whatever its status;
				 * WEFT_EUNAVAIL, WEFT_ETIMEOUT, WEFT_EDEVICE
				 * (no HTTP, too long) */
	const struct err *err;	/* of rc */
	bool sent;		/* a byte of it may have reached the device */
	int status;		/* 200 */
	const char *body;	/* without a zero byte inside; "" */
	size_t len;
	const char *etag;	/* "" when there is none */
	const char *location;	/* where a redirect leads, or "" */
};

struct http_call {
	const char *method, *path;
	const char *accept;	/* media type wanted */
	const char *type, *body;	/* of what is sent; NULL: nothing */
	const char *unless_etag;	/* If-None-Match; NULL or "": none */
	bool repeatable;	/* changes nothing */
	/* Once, from the loop, never from inside http_ask(). The answer lives
	 * until return. More may be asked from inside; http_close() may not
	 * be called. */
	void (*done)(const struct http_answer *a, void *arg);
	/* For an answer without end: its bytes as they come, when the status
	 * is 200; there is no time-out once it has begun. NULL: the body is
	 * gathered. */
	void (*data)(const char *bytes, size_t len, void *arg);
	void *arg;
};

/* Nothing is connected yet. WEFT_EINVAL (the address). */
int http_client_new(uv_loop_t *loop, const struct http_conf *conf,
		    struct http_client **out, struct err *err);

/* Queues a request; strings are copied. */
void http_ask(struct http_client *c, const struct http_call *q);

/* The next request goes over a new connection: an answer that arrived whole
 * made no sense, so what comes next on this one cannot be trusted. */
void http_distrust(struct http_client *c);

/* How many connections were made so far: tells whether two answers came over
 * the same. */
uint64_t http_connections(const struct http_client *c);

/* Forgets all requests without a call back, and ends; then cb. */
void http_close(struct http_client *c, void (*cb)(void *arg), void *arg);

#endif
