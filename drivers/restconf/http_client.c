/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP to one device by libcurl's multi interface: libcurl says which sockets
 * and which time it waits for, libuv waits, and curl_multi_socket_action() is
 * told what happened. One transfer at a time, by one easy handle that is set
 * up again for each request; requests wait in a list.
 *
 * libcurl sends a request again by itself when a kept connection turns out to
 * be dead, whatever its method. That would send a change twice, so no socket
 * is opened for a request whose head is out: send_again() decides alone.
 */
#include "drivers/restconf/http_client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "drivers/core/tcp_session.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define MAX_HEAD_BYTES (64 << 10)
#define BACK_OFF_MIN_MS 50
#define BACK_OFF_MAX_MS 2000
/* A connection unused for so long may be dead without a sign of it. */
#define DOUBT_NS (500 * INT64_C(1000000))
/* As long as a device may make us wait by Retry-After. */
#define RETRY_AFTER_MAX_S 10

struct http_pending {
	struct http_pending *next;
	struct http_call q;	/* its strings are ours */
	bool waited;		/* as a 503 asked for */
};

/* A socket that libcurl waits for. */
struct http_watch {
	uv_poll_t poll;
	struct http_client *client;
	curl_socket_t fd;
};

struct http_client {
	struct http_conf conf;		/* its strings are ours */
	uv_loop_t *loop;
	uv_timer_t timer;	/* libcurl's */
	uv_timer_t wake;	/* sends the next request, later */
	CURLM *multi;
	CURL *easy;
	struct http_pending *first, **last;	/* in order; the first is out if `out` */
	bool out;
	/* of the request that is out */
	struct curl_slist *headers;
	struct buf body;
	char etag[HTTP_ETAG_MAX], location[256];
	char trouble[CURL_ERROR_SIZE];
	size_t head_bytes;	/* of the answer */
	bool head_done;		/* all of its head came */
	bool fresh;		/* over a connection that was made for it */
	bool head_out;		/* its own head was sent, or a part of it */
	bool doubted;		/* the connection was unused before */
	bool too_long;
	/* of all */
	bool distrust;
	uint64_t n_connections;
	int64_t used_ns;	/* the last request was over; 0: there was none */
	int64_t sent_ns;	/* the last one began */
	int64_t not_before_ns, back_off_ms;
	int n_handles;		/* that libuv has not let go of */
	void (*closed)(void *);
	void *closed_arg;
};

static void wake_up(struct http_client *c);

/* ---- what libcurl calls --------------------------------------------------- */

static size_t on_body(char *bytes, size_t one, size_t n, void *arg)
{
	struct http_client *c = arg;
	const struct http_call *q = &c->first->q;
	long status = 0;

	(void)one;
	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	if (q->data && status == 200) {
		q->data(bytes, n, q->arg);
		return n;
	}
	c->too_long = c->body.len + n > c->conf.max_body;
	if (c->too_long) {
		return 0;
	}
	buf_add(&c->body, bytes, n);
	return n;
}

/* The value of a header line if it has this name, without blanks around. */
static void take_header(const char *line, size_t len, const char *name, char *out, size_t size)
{
	size_t n = strlen(name);

	if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':') {
		return;
	}
	line += n + 1;
	len -= n + 1;
	while (len && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	while (len && strchr(" \t\r\n", line[len - 1])) {
		len--;
	}
	/* One that is cut would be another. */
	snprintf(out, size, "%.*s", len < size ? (int)len : 0, line);
}

/* One line of the answer's head. */
static size_t on_head(char *line, size_t one, size_t n, void *arg)
{
	struct http_client *c = arg;

	(void)one;
	c->head_bytes += n;
	c->too_long = c->head_bytes > MAX_HEAD_BYTES;
	if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) {
		c->head_done = false;	/* another, after an interim answer */
	} else {
		c->head_done = c->head_done || strspn(line, "\r\n") == n;
	}
	take_header(line, n, "etag", c->etag, sizeof(c->etag));
	take_header(line, n, "location", c->location, sizeof(c->location));
	return c->too_long ? 0 : n;
}

static int on_debug(CURL *easy, curl_infotype what, char *bytes, size_t n, void *arg)
{
	struct http_client *c = arg;

	(void)easy;
	(void)bytes;
	c->head_out = c->head_out || (what == CURLINFO_HEADER_OUT && n > 0);
	return 0;
}

static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct http_client *c = arg;
	curl_socket_t fd;

	(void)purpose;
	if (c->head_out) {
		return CURL_SOCKET_BAD;
	}
	fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
	if (fd >= 0 && !c->fresh) {
		c->fresh = true;
		c->n_connections++;
	}
	return fd;
}

/* ---- what libuv calls ----------------------------------------------------- */

static void take_results(struct http_client *c);

static void act(struct http_client *c, curl_socket_t fd, int what)
{
	int running;

	curl_multi_socket_action(c->multi, fd, what, &running);
	take_results(c);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct http_watch *w = poll->data;
	int what = (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
		   (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);

	act(w->client, w->fd, status < 0 ? CURL_CSELECT_ERR : what);
}

static void on_timer(uv_timer_t *t)
{
	act(t->data, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timeout(CURLM *multi, long ms, void *arg)
{
	struct http_client *c = arg;

	(void)multi;
	if (ms < 0) {
		uv_timer_stop(&c->timer);
	} else {
		uv_timer_start(&c->timer, on_timer, (uint64_t)ms, 0);
	}
	return 0;
}

/* Frees the client with the last of its handles. */
static void let_go(struct http_client *c)
{
	void (*cb)(void *) = c->closed;
	void *arg = c->closed_arg;

	if (--c->n_handles > 0) {
		return;
	}
	buf_fini(&c->body);
	free((char *)c->conf.device);
	free((char *)c->conf.address);
	free((char *)c->conf.user);
	free((char *)c->conf.password);
	free((char *)c->conf.ca);
	free((char *)c->conf.cert);
	free((char *)c->conf.key);
	free(c);
	cb(arg);
}

static void on_watch_closed(uv_handle_t *poll)
{
	struct http_watch *w = poll->data;
	struct http_client *c = w->client;

	free(w);
	let_go(c);
}

static struct http_watch *watch_new(struct http_client *c, curl_socket_t fd)
{
	struct http_watch *w = x_new(1, sizeof(*w));

	if (uv_poll_init_socket(c->loop, &w->poll, fd)) {
		free(w);
		return NULL;
	}
	w->client = c;
	w->fd = fd;
	w->poll.data = w;
	c->n_handles++;
	curl_multi_assign(c->multi, fd, w);
	return w;
}

/* libcurl waits for a socket, or is about to close it. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *own)
{
	struct http_client *c = arg;
	struct http_watch *w = own;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (w) {
			uv_close((uv_handle_t *)&w->poll, on_watch_closed);
		}
		return 0;
	}
	if (!w && !(w = watch_new(c, fd))) {
		return -1;
	}
	return uv_poll_start(&w->poll, (what & CURL_POLL_IN ? UV_READABLE : 0) |
			     (what & CURL_POLL_OUT ? UV_WRITABLE : 0), on_poll) ? -1 : 0;
}

/* ---- a request goes out --------------------------------------------------- */

static void add_header(struct http_client *c, const char *name, const char *value)
{
	struct buf b = { 0 };

	if (value && value[0]) {
		buf_printf(&b, "%s: %s", name, value);
		c->headers = x_have(curl_slist_append(c->headers, buf_cstr(&b)));
		buf_fini(&b);
	}
}

/* What is the same in all requests. */
static void set_up(struct http_client *c)
{
	const struct http_conf *f = &c->conf;
	CURL *e = c->easy;

	curl_easy_reset(e);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	/* A look-up that hangs must not be waited for when we close. */
	curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, f->tls ? "https" : "http");
	curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(e, CURLOPT_PROXY, "");
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->trouble);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_head);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, c);
	curl_easy_setopt(e, CURLOPT_VERBOSE, 1L);
	curl_easy_setopt(e, CURLOPT_DEBUGFUNCTION, on_debug);
	curl_easy_setopt(e, CURLOPT_DEBUGDATA, c);
	curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
	curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, c);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)f->timeout_ms);
	if (f->user && f->user[0]) {
		curl_easy_setopt(e, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
		curl_easy_setopt(e, CURLOPT_USERNAME, f->user);
		curl_easy_setopt(e, CURLOPT_PASSWORD, f->password ? f->password : "");
	}
	curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, f->verify ? 1L : 0L);
	curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, f->verify ? 2L : 0L);
	if (f->ca) {
		curl_easy_setopt(e, CURLOPT_CAINFO, f->ca);
		curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
	}
	curl_easy_setopt(e, CURLOPT_SSLCERT, f->cert);
	curl_easy_setopt(e, CURLOPT_SSLKEY, f->key);
}

static void set_request(struct http_client *c, const struct http_call *q)
{
	CURL *e = c->easy;
	struct buf url = { 0 };

	buf_printf(&url, "%s://%s%s", c->conf.tls ? "https" : "http", c->conf.address, q->path);
	curl_easy_setopt(e, CURLOPT_URL, buf_cstr(&url));
	buf_fini(&url);
	curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, q->method);
	if (q->body) {
		curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE, (long)strlen(q->body));
		curl_easy_setopt(e, CURLOPT_POSTFIELDS, q->body);
		/* Short bodies; an interim answer would only cost time. */
		c->headers = curl_slist_append(c->headers, "Expect:");
	}
	add_header(c, "Accept", q->accept);
	add_header(c, "Content-Type", q->body ? q->type : NULL);
	add_header(c, "If-None-Match", q->unless_etag);
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, c->headers);
	if (!q->data) {
		curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)c->conf.timeout_ms);
	}
	curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, c->distrust ? 1L : 0L);
}

static void send_first(struct http_client *c)
{
	int64_t now = clk_now_ns();

	c->out = true;
	c->head_bytes = 0;
	c->head_done = c->fresh = c->head_out = c->too_long = false;
	c->doubted = c->used_ns && now - c->used_ns > DOUBT_NS;
	c->etag[0] = c->location[0] = c->trouble[0] = '\0';
	c->sent_ns = now;
	buf_reset(&c->body);
	set_up(c);
	set_request(c, &c->first->q);
	c->distrust = false;
	curl_multi_add_handle(c->multi, c->easy);
}

static void on_wake(uv_timer_t *t)
{
	struct http_client *c = t->data;

	if (!c->out && c->first) {
		send_first(c);
	}
}

/* Sends the first request as soon as pace and back-off allow, in a later turn
 * of the loop. */
static void wake_up(struct http_client *c)
{
	int64_t at = c->sent_ns + c->conf.gap_us * 1000, now = clk_now_ns();

	at = at > c->not_before_ns ? at : c->not_before_ns;
	if (!c->out && c->first) {
		uv_timer_start(&c->wake, on_wake,
			       at > now ? (uint64_t)(at - now + 999999) / 1000000 : 0, 0);
	}
}

/* ---- and is over ---------------------------------------------------------- */

static void request_free(struct http_pending *r)
{
	free((char *)r->q.method);
	free((char *)r->q.path);
	free((char *)r->q.accept);
	free((char *)r->q.type);
	free((char *)r->q.body);
	free((char *)r->q.unless_etag);
	free(r);
}

static void back_off(struct http_client *c)
{
	c->back_off_ms = c->back_off_ms ? c->back_off_ms * 2 : BACK_OFF_MIN_MS;
	if (c->back_off_ms > BACK_OFF_MAX_MS) {
		c->back_off_ms = BACK_OFF_MAX_MS;
	}
	c->not_before_ns = clk_now_ns() + c->back_off_ms * 1000000;
}

/* Why a request has no answer, as a code and in words. */
static int failure(const struct http_client *c, CURLcode code, const char **text)
{
	switch (code) {
	case CURLE_OK:
		*text = "the connection ended in the middle of the answer";
		return WEFT_EUNAVAIL;
	case CURLE_OPERATION_TIMEDOUT:
		*text = c->head_out ? "no answer in time" : "connecting took too long";
		return c->head_out ? WEFT_ETIMEOUT : WEFT_EUNAVAIL;
	case CURLE_WRITE_ERROR:
	case CURLE_OUT_OF_MEMORY:	/* a line that libcurl does not take: there is memory */
		*text = "the answer is too long";
		return WEFT_EDEVICE;
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
		*text = "the connection ended before the answer";
		return WEFT_EUNAVAIL;
	case CURLE_COULDNT_CONNECT:
		*text = c->head_out ? "the connection ended before the answer" : c->trouble;
		return WEFT_EUNAVAIL;
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_BAD_CONTENT_ENCODING:
		*text = "the answer is no HTTP";
		return WEFT_EDEVICE;
	default:
		/* names that are not found, certificates that are not good */
		*text = c->trouble[0] ? c->trouble : curl_easy_strerror(code);
		return WEFT_EUNAVAIL;
	}
}

/* The kept connection was dead, by all appearances before the request went
 * out over it, or the device asks to be asked later. */
static bool send_again(struct http_client *c, int rc, int status)
{
	struct http_pending *r = c->first;
	curl_off_t wait_s = 0;

	if (rc == 0 && (status == 503 || status == 429) && !r->waited) {
		curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &wait_s);
		if (wait_s > 0 && wait_s <= RETRY_AFTER_MAX_S) {
			c->not_before_ns = clk_now_ns() + wait_s * 1000000000;
			r->waited = true;
		}
		return r->waited;
	}
	if (!r->q.repeatable || c->fresh || !c->head_out || c->head_bytes ||
	    (rc != WEFT_EUNAVAIL && !(rc == WEFT_ETIMEOUT && c->doubted))) {
		return false;
	}
	log_info("drivers", "%s (%s): the connection was closed, a new one is made",
		 c->conf.device, c->conf.address);
	r->q.repeatable = false;
	c->distrust = true;
	return true;
}

static void finish(struct http_client *c, CURLcode code)
{
	struct http_pending *r = c->first;
	struct http_answer a = { .body = "", .etag = c->etag, .location = c->location };
	struct err err = { 0 };
	long status = 0;
	const char *text = "";

	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	c->out = false;
	if (code != CURLE_OK || !c->head_done) {
		a.rc = failure(c, code, &text);
		err_set(&err, a.rc, "%s (%s): %s", c->conf.device, c->conf.address, text);
	}
	if (send_again(c, a.rc, (int)status)) {
		wake_up(c);
		return;
	}
	c->used_ns = clk_now_ns();
	if (a.rc && !c->head_out) {
		back_off(c);
	} else if (a.rc == 0) {
		c->back_off_ms = 0;
	}
	a.err = &err;
	a.sent = c->head_out;
	a.status = (int)status;
	a.len = c->body.len;
	if (memchr(buf_cstr(&c->body), 0, a.len)) {
		a.rc = err_set(&err, WEFT_EDEVICE, "%s (%s): the answer is garbage",
			       c->conf.device, c->conf.address);
	} else {
		a.body = buf_cstr(&c->body);
	}
	c->first = r->next;
	c->last = c->first ? c->last : &c->first;
	r->q.done(&a, r->q.arg);
	request_free(r);
	wake_up(c);
}

static void take_results(struct http_client *c)
{
	CURLcode code = CURLE_OK;
	bool over = false;
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(c->multi, &left))) {
		if (m->msg == CURLMSG_DONE) {
			code = m->data.result;
			over = true;
		}
	}
	if (over) {
		curl_multi_remove_handle(c->multi, c->easy);
		curl_slist_free_all(c->headers);
		c->headers = NULL;
		finish(c, code);
	}
}

void http_ask(struct http_client *c, const struct http_call *q)
{
	const char *const from[] = { q->method, q->path, q->accept, q->type, q->body,
				     q->unless_etag };
	struct http_pending *r = x_new(1, sizeof(*r));
	const char **to[6];

	r->q = *q;
	to[0] = &r->q.method;
	to[1] = &r->q.path;
	to[2] = &r->q.accept;
	to[3] = &r->q.type;
	to[4] = &r->q.body;
	to[5] = &r->q.unless_etag;
	for (int i = 0; i < 6; i++) {
		*to[i] = from[i] ? x_dup(from[i]) : NULL;
	}
	*c->last = r;
	c->last = &r->next;
	wake_up(c);
}

void http_distrust(struct http_client *c)
{
	c->distrust = true;
}

uint64_t http_connections(const struct http_client *c)
{
	return c->n_connections;
}

/* ---- life ----------------------------------------------------------------- */

/* Once a program. */
static bool curl_is_ready(void)
{
	static bool ready;

	ready = ready || curl_global_init_mem(CURL_GLOBAL_DEFAULT, x_malloc, free, x_realloc,
					      x_dup, x_new) == 0;
	return ready;
}

static char *copy(const char *text)
{
	return text && text[0] ? x_dup(text) : NULL;
}

static int make_handles(struct http_client *c, uv_loop_t *loop, struct err *err)
{
	if (!curl_is_ready()) {
		return err_set(err, WEFT_EINTERNAL, "libcurl does not start");
	}
	c->multi = x_have(curl_multi_init());
	c->easy = x_have(curl_easy_init());
	/* One connection is kept; one that is distrusted ends when its
	 * successor is kept. */
	curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, 1L);
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
	c->loop = loop;
	uv_timer_init(loop, &c->timer);
	uv_timer_init(loop, &c->wake);
	c->timer.data = c->wake.data = c;
	c->n_handles = 2;
	return 0;
}

static void nothing(void *arg)
{
	(void)arg;
}

int http_client_new(uv_loop_t *loop, const struct http_conf *conf,
		    struct http_client **out, struct err *err)
{
	char host[256];
	int port, rc = tcp_parse_address(conf->address, false, host, sizeof(host), &port, err);
	struct http_client *c;

	if (rc) {
		return rc;
	}
	c = x_new(1, sizeof(*c));
	c->conf = *conf;
	c->conf.device = copy(conf->device);
	c->conf.address = copy(conf->address);
	c->conf.user = copy(conf->user);
	c->conf.password = copy(conf->password);
	c->conf.ca = copy(conf->ca);
	c->conf.cert = copy(conf->cert);
	c->conf.key = copy(conf->key);
	c->last = &c->first;
	c->sent_ns = INT64_MIN / 2;
	rc = make_handles(c, loop, err);
	if (rc) {
		c->n_handles = 1;
		c->closed = nothing;
		let_go(c);
		return rc;
	}
	*out = c;
	return 0;
}

static void on_timer_closed(uv_handle_t *timer)
{
	let_go(timer->data);
}

void http_close(struct http_client *c, void (*cb)(void *arg), void *arg)
{
	c->closed = cb;
	c->closed_arg = arg;
	if (c->out) {
		curl_multi_remove_handle(c->multi, c->easy);
	}
	curl_easy_cleanup(c->easy);
	curl_multi_cleanup(c->multi);
	curl_slist_free_all(c->headers);
	while (c->first) {
		struct http_pending *r = c->first;

		c->first = r->next;
		request_free(r);
	}
	uv_close((uv_handle_t *)&c->timer, on_timer_closed);
	uv_close((uv_handle_t *)&c->wake, on_timer_closed);
}
