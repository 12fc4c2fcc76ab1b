/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP sessions to devices.
 *
 * Requests stand in one list in the order of asking: the first n_out of them
 * are out, the others wait for the window, for the pace (gap_us) or for the
 * connection. Replies answer the head of the list. send_more() is the only
 * place that connects and sends; it runs from timers and from the loop, never
 * from inside a caller's call.
 *
 * A connection is an object of its own because libuv needs its memory for
 * another turn of the loop after it was closed, while the session may connect
 * again at once. Whatever is out of order drops the connection and all requests
 * with it, since a reply that comes late must not be taken for the reply to
 * something else.
 *
 * Devices, and firewalls between, drop idle sessions without a word. The first
 * request in a session that was idle may therefore be lost with it; if it is
 * one that changes nothing it keeps its bytes until it is answered, and is sent
 * once more in a new session. One that changes something never is.
 *
 * SSH is a filter between the connection and the frames: a connection counts as
 * made when its shell is open, what comes goes through take_bytes(), what goes out
 * through put_out(), and nothing else differs.
 */
#include "drivers/core/tcp_session.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define HOST_MAX 256
#define REFUSALS_MAX 256
#define BACK_OFF_MIN_MS 50
#define BACK_OFF_MAX_MS 2000
#define DENIED_MS 30000
/* A shell that is not used is kept open through what forgets idle connections. */
#define KEEP_ALIVE_S 30
#define READ_BYTES (64 << 10)
/* A session unused for so long may be dead without a sign of it. */
#define DOUBT_NS (500 * INT64_C(1000000))

struct request {
	struct request *next;
	uint64_t tag;
	bool sent;
	bool again;		/* may be asked again in another session */
	size_t len;
	uint8_t *bytes;		/* handed to the write when sent, unless it
				 * may be asked again */
};

/* One connection, or one attempt at it: every address of a name is tried in
 * a connection of its own. It outlives the session's interest in it
 * (session == NULL) until libuv has let go of it. */
struct connection {
	struct tcp_session *session;
	struct addrinfo *addresses;	/* of the name; owned; NULL: of a number */
	const struct addrinfo *address;	/* the one that is tried */
	uv_tcp_t tcp;
	uv_connect_t connect;
	uv_getaddrinfo_t lookup;
	struct ssh *ssh;		/* or NULL */
	bool looking_up, connected;	/* the latter: and the shell is open */
	char bytes[READ_BYTES];
};

struct write {
	uv_write_t req;
	struct connection *connection;
	uint8_t *bytes;
};

struct tcp_session {
	struct tcp_conf conf;
	struct ssh_conf ssh;	/* conf.ssh, unless that is NULL */
	char device[HOST_MAX], host[HOST_MAX], port[8];	/* conf.address, split */
	int port_number;
	uv_loop_t *loop;
	uv_timer_t deadline;	/* for the connect or the oldest reply */
	uv_timer_t wake;	/* sends, later */
	struct connection *connection;	/* NULL: the next request makes one */
	struct request *first, **last;	/* in order; the first n_out are out */
	int n_requests, n_out;		/* n_out <= conf.window, n_requests */
	uint64_t n_sessions;		/* established so far */
	bool in_doubt;		/* unused when the oldest one went out, and not
				 * a byte has come since */
	struct terminal terminal;
	struct buf in;		/* received, and in no whole frame yet */
	size_t looked;		/* bytes of in that hold no whole frame */
	int64_t sent_ns;	/* the last request went out; for the pace */
	int64_t used_ns;	/* the session was used last; 0: never */
	int64_t not_before_ns;	/* earliest next attempt to connect */
	int64_t back_off_ms;	/* doubled by each failure, 0 after a reply */
	struct err denied;	/* by SSH; code 0: it was not */
	int64_t connect_by_ns;	/* all addresses are tried until then */
	char refusals[REFUSALS_MAX];	/* of the addresses before this one */
	int closing;
	void (*closed)(void *);
	void *closed_arg;
};

static void send_more(struct tcp_session *s);

/* ---- addresses ----------------------------------------------------------- */

static int bad_address(const char *text, struct err *err)
{
	return err_set(err, WEFT_EINVAL, "address '%s': expected HOST:PORT or [IPV6]:PORT", text);
}

int tcp_parse_address(const char *text, bool port_0, char *host, int size,
		      int *port, struct err *err)
{
	const char *colon = strrchr(text, ':'), *from = text, *to = colon;
	char *end;
	long n;

	if (!colon || colon == text) {
		return bad_address(text, err);
	}
	if (text[0] == '[') {
		from++;
		to--;
		if (*to != ']') {
			return bad_address(text, err);
		}
	} else if (memchr(text, ':', (size_t)(colon - text))) {
		return bad_address(text, err);
	}
	n = strtol(colon + 1, &end, 10);
	if (to <= from || to - from >= size || *end || end == colon + 1 || colon[1] < '0' ||
	    colon[1] > '9' || n > 65535 || (n == 0 && !port_0)) {
		return bad_address(text, err);
	}
	memcpy(host, from, (size_t)(to - from));
	host[to - from] = '\0';
	*port = (int)n;
	return 0;
}

int64_t tcp_frame_text(const uint8_t *data, size_t len, size_t from, void *arg)
{
	const uint8_t *lf = memchr(data + from, '\n', len - from);

	(void)arg;

	return lf ? lf - data + 1 : 0;
}

/* ---- the end of a session ------------------------------------------------ */

static void on_connection_closed(uv_handle_t *tcp)
{
	struct connection *c = tcp->data;

	uv_freeaddrinfo(c->addresses);
	free(c);
}

static void drop_connection(struct tcp_session *s)
{
	struct connection *c = s->connection;

	uv_timer_stop(&s->deadline);
	buf_reset(&s->in);
	s->looked = 0;
	s->connection = NULL;
	if (!c) {
		return;
	}
	ssh_free(c->ssh);
	c->ssh = NULL;
	c->session = NULL;
	if (c->looking_up) {
		uv_cancel((uv_req_t *)&c->lookup);
	} else {
		uv_close((uv_handle_t *)&c->tcp, on_connection_closed);
	}
}

static void forget_requests(struct tcp_session *s)
{
	while (s->first) {
		struct request *q = s->first;

		s->first = q->next;
		free(q->bytes);
		free(q);
	}
	s->last = &s->first;
	s->n_requests = s->n_out = 0;
}

static void wake_up(struct tcp_session *s);

/* The session was dead, by all appearances before the only request went out
 * in it: that is asked again, once. */
static bool try_again(struct tcp_session *s, int rc, const struct err *err)
{
	struct request *q = s->first;

	if (!q || !q->again || !q->sent || q->next || !s->in_doubt || rc == WEFT_EDEVICE) {
		return false;
	}
	log_info("drivers", "%s: a new session is made", err->msg);
	drop_connection(s);
	q->again = q->sent = s->in_doubt = false;
	s->n_out = 0;
	wake_up(s);
	return true;
}

static void fail(struct tcp_session *s, int rc, const struct err *err)
{
	bool any = s->first, sent = any && s->first->sent;

	if (try_again(s, rc, err)) {
		return;
	}
	drop_connection(s);
	forget_requests(s);
	if (any) {
		s->conf.failed(rc, err, sent, s->conf.arg);
	} else {
		log_info("drivers", "%s", err->msg);
	}
}

static void fail_text(struct tcp_session *s, int rc, const char *text)
{
	struct err err = { 0 };

	err_set(&err, rc, "%s (%s): %s", s->device, s->conf.address, text);
	fail(s, rc, &err);
}

/* Adds what the address under way said to the list of all. */
static void note_refusal(struct tcp_session *s, const char *text)
{
	size_t n = strlen(s->refusals);
	char name[INET6_ADDRSTRLEN] = "";

	uv_ip_name(s->connection->address->ai_addr, name, sizeof(name));
	snprintf(s->refusals + n, sizeof(s->refusals) - n, "%s%s: %s", n ? ", " : "", name, text);
}

static bool try_next_address(struct tcp_session *s, const char *text);

/* It would be the same at the next attempt, until people do something. */
static void fail_denied(struct tcp_session *s, const char *text)
{
	struct err err = { 0 };

	err_set(&err, WEFT_EDENIED, "%s (%s): %s", s->device, s->conf.address, text);
	s->denied = err;
	s->not_before_ns = clk_now_ns() + DENIED_MS * INT64_C(1000000);
	fail(s, WEFT_EDENIED, &err);
}

/* Fails what was asked only when no address of the device is left to try, or
 * the device at this one was not to be trusted or did not let us in. */
static void fail_connect(struct tcp_session *s, int rc, const char *text)
{
	if (rc == WEFT_EDENIED) {
		fail_denied(s, text);
		return;
	}
	if (try_next_address(s, text)) {
		return;
	}
	if (s->refusals[0]) {
		note_refusal(s, text);
		text = s->refusals;
	}
	s->back_off_ms = s->back_off_ms ? s->back_off_ms * 2 : BACK_OFF_MIN_MS;
	if (s->back_off_ms > BACK_OFF_MAX_MS) {
		s->back_off_ms = BACK_OFF_MAX_MS;
	}
	s->not_before_ns = clk_now_ns() + s->back_off_ms * 1000000;
	fail_text(s, rc, text);
}

static void on_deadline(uv_timer_t *t)
{
	struct tcp_session *s = t->data;
	char text[96];

	if (s->connection && !s->connection->connected) {
		const struct ssh *ssh = s->connection->ssh;

		snprintf(text, sizeof(text), "%s took too long",
			 ssh ? ssh_stage(ssh) : "connecting");
		fail_connect(s, WEFT_EUNAVAIL, text);
		return;
	}
	snprintf(text, sizeof(text), "no reply within %lld ms", (long long)s->conf.timeout_ms);
	fail_text(s, WEFT_ETIMEOUT, text);
}

/* What an attempt to connect may take: the addresses that are left share the
 * time that is left, so that one which never replies does not use it up. */
static int64_t connect_ms(const struct tcp_session *s)
{
	int64_t left_ms = (s->connect_by_ns - clk_now_ns()) / 1000000;
	int n = 1;

	for (const struct addrinfo *a = s->connection->address; a && a->ai_next; a = a->ai_next) {
		n++;
	}
	return left_ms > n ? left_ms / n : 1;
}

static void arm_deadline(struct tcp_session *s)
{
	bool connecting = s->connection && !s->connection->connected;

	if (s->n_out > 0 || connecting) {
		uv_timer_start(&s->deadline, on_deadline, (uint64_t)
			       (connecting ? connect_ms(s) : s->conf.timeout_ms),
			       0);
	} else {
		uv_timer_stop(&s->deadline);
	}
}

/* ---- replies ------------------------------------------------------------- */

static void replied(struct tcp_session *s, const uint8_t *frame, size_t len)
{
	struct request *q = s->first;
	uint64_t tag = q->tag;

	s->first = q->next;
	if (!s->first) {
		s->last = &s->first;
	}
	s->n_requests--;
	s->n_out--;
	s->back_off_ms = 0;
	free(q->bytes);
	free(q);
	arm_deadline(s);
	s->conf.reply(frame, len, tag, s->conf.arg);
}

static void unreadable(struct tcp_session *s, bool garbage)
{
	char text[64];

	snprintf(text, sizeof(text), "the reply is longer than %zu KiB", s->conf.max_frame >> 10);
	fail_text(s, WEFT_EDEVICE, garbage ? "the reply is garbage" : text);
}

static enum tcp_verdict judge(struct tcp_session *s, const uint8_t *frame, size_t len)
{
	bool waiting = s->n_out > 0;
	enum tcp_verdict v = waiting ? TCP_REPLY : TCP_NONSENSE;

	if (s->conf.judge) {
		v = s->conf.judge(frame, len, waiting, waiting ? s->first->tag : 0, s->conf.arg);
	}
	return v == TCP_REPLY && !waiting ? TCP_NONSENSE : v;
}

/* Takes frames off the input. A reply's callback may ask more, but that is
 * sent only afterwards: a second frame in the same segment cannot be the
 * reply to a request not yet asked. */
static void take_frames(struct tcp_session *s)
{
	struct connection *c = s->connection;
	size_t at = 0;

	while (at < s->in.len) {
		const uint8_t *data = (const uint8_t *)s->in.data + at;
		int64_t n = s->conf.frame(data, s->in.len - at, s->looked, s->conf.arg);

		s->looked = n == 0 ? s->in.len - at : 0;
		if (n < 0 || n > (int64_t)s->conf.max_frame ||
		    (n == 0 && s->in.len - at >= s->conf.max_frame)) {
			unreadable(s, n < 0);
			return;
		}
		if (n == 0) {
			break;
		}
		if (s->conf.trace) {
			s->conf.trace(data, (size_t)n, true, s->conf.arg);
		}
		switch (judge(s, data, (size_t)n)) {
		case TCP_REPLY:
			replied(s, data, (size_t)n);
			break;
		case TCP_IGNORE:
			break;
		case TCP_NONSENSE:
			fail_text(s, WEFT_EDEVICE, "an unsolicited reply");
			break;
		}
		if (s->connection != c) {
			return;
		}
		at += (size_t)n;
	}
	buf_consume(&s->in, at);
}

static void on_alloc(uv_handle_t *tcp, size_t hint, uv_buf_t *out)
{
	struct connection *c = tcp->data;

	(void)hint;
	*out = uv_buf_init(c->bytes, sizeof(c->bytes));
}

static void on_written(uv_write_t *req, int status)
{
	struct write *w = req->data;
	struct tcp_session *s = w->connection->session;

	free(w->bytes);
	free(w);
	if (s && status < 0) {
		fail_text(s, WEFT_EUNAVAIL, uv_strerror(status));
	}
}

/* Bytes as they go over the network; they are the write's if it succeeds. */
static int write_bytes(struct connection *c, uint8_t *bytes, size_t len)
{
	struct write *w = x_alloc(1, sizeof(*w));
	uv_buf_t out = uv_buf_init((char *)bytes, (unsigned)len);
	int rc;

	w->req.data = w;
	w->connection = c;
	w->bytes = bytes;
	rc = uv_write(&w->req, (uv_stream_t *)&c->tcp, &out, 1, on_written);
	if (rc < 0) {
		free(w);
	}
	return rc;
}

static int write_copy(const void *bytes, size_t len, void *arg)
{
	uint8_t *copy = x_alloc(len, 1);
	int rc = write_bytes(arg, memcpy(copy, bytes, len), len);

	if (rc < 0) {
		free(copy);
	}
	return rc;
}

static void broken(struct tcp_session *s, int rc, const char *text)
{
	if (s->connection->connected) {
		fail_text(s, rc, text);
	} else {
		fail_connect(s, rc, text);
	}
}

/* From here on there are frames. */
static void established(struct connection *c)
{
	struct tcp_session *s = c->session;

	c->connected = true;
	s->denied.code = 0;
	s->used_ns = clk_now_ns();
	s->n_sessions++;
	arm_deadline(s);
}

/* The shell is open: the session is established when it takes commands. */
static void greet(struct connection *c)
{
	struct tcp_session *s = c->session;
	int64_t n = s->conf.greeting ?
		    s->conf.greeting((const uint8_t *)s->in.data, s->in.len, s->looked,
				     s->conf.arg) : 1;

	s->looked = n ? 0 : s->in.len;
	if (n > 0) {
		established(c);
	} else if (n < 0 || s->in.len >= s->conf.max_frame) {
		fail_connect(s, WEFT_EDEVICE, "no prompt comes of the shell");
	}
}

/* What came, as text, to the input; a telnet server gets its answer. A device
 * that does not get it goes on without. */
static void take_text(struct connection *c, const void *bytes, size_t len)
{
	struct tcp_session *s = c->session;
	struct buf answer = { 0 };

	terminal_text(&s->terminal, bytes, len, &s->in, &answer);
	if (c->ssh || !answer.len || write_bytes(c, (uint8_t *)answer.data, answer.len) < 0) {
		buf_fini(&answer);
	}
}

/* The same through SSH. */
static int take_shell(struct connection *c, const void *bytes, size_t len, struct err *err)
{
	struct buf text = { 0 };
	int rc = ssh_take(c->ssh, bytes, len, &text, err);

	take_text(c, text.data, text.len);
	buf_fini(&text);
	return rc;
}

/* Bytes of the device to s->in. False: the connection is over. */
static bool take_bytes(struct connection *c, const char *bytes, size_t n)
{
	struct tcp_session *s = c->session;
	struct err err = { 0 };
	int rc = 0;

	if (c->ssh) {
		rc = take_shell(c, bytes, n, &err);
	} else {
		take_text(c, bytes, n);
	}
	if (rc && c->connected) {
		take_frames(s);	/* what came before */
	}
	if (rc && s->connection == c) {
		broken(s, rc, err.msg);
	}
	if (rc) {
		return false;
	}
	if (!c->connected && ssh_is_open(c->ssh)) {
		greet(c);
	}
	return s->connection == c && c->connected;
}

static void ended(struct tcp_session *s, ssize_t n)
{
	const struct connection *c = s->connection;
	const char *why = n == UV_EOF ? "the device ended the session" : uv_strerror((int)n);
	char text[128];

	snprintf(text, sizeof(text), "%s%s%s", why, c->connected ? "" : " while ",
		 c->connected ? "" : ssh_stage(c->ssh));
	broken(s, WEFT_EUNAVAIL, text);
}

static void on_read(uv_stream_t *tcp, ssize_t n, const uv_buf_t *bytes)
{
	struct connection *c = tcp->data;
	struct tcp_session *s = c->session;

	if (!s || n == 0) {
		return;
	}
	if (n < 0) {
		ended(s, n);
		return;
	}
	s->in_doubt = false;
	if (take_bytes(c, bytes->base, (size_t)n)) {
		take_frames(s);
		send_more(s);
	}
}

/* ---- connecting ---------------------------------------------------------- */

static void begin_ssh(struct connection *c)
{
	struct tcp_session *s = c->session;
	struct err err = { 0 };
	uv_os_fd_t fd = -1;
	int rc;

	uv_tcp_keepalive(&c->tcp, 1, KEEP_ALIVE_S);
	uv_fileno((uv_handle_t *)&c->tcp, &fd);
	rc = ssh_new(&s->ssh, s->host, s->port_number, fd, write_copy, c, &c->ssh, &err);
	if (rc) {
		fail_connect(s, rc, err.msg);
	}
}

static void on_connect(uv_connect_t *req, int status)
{
	struct connection *c = req->data;
	struct tcp_session *s = c->session;

	if (!s) {
		return;
	}
	if (status < 0) {
		fail_connect(s, WEFT_EUNAVAIL, uv_strerror(status));
		return;
	}
	terminal_begin(&s->terminal, s->conf.terminal);
	uv_tcp_nodelay(&c->tcp, 1);
	uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
	if (s->conf.ssh) {
		begin_ssh(c);
		return;
	}
	established(c);
	send_more(s);
}

static void connect_to(struct connection *c, const struct sockaddr *addr)
{
	int rc;

	arm_deadline(c->session);
	c->connect.data = c;
	rc = uv_tcp_connect(&c->connect, &c->tcp, addr, on_connect);
	if (rc < 0) {
		fail_connect(c->session, WEFT_EUNAVAIL, uv_strerror(rc));
	}
}

static void on_lookup(uv_getaddrinfo_t *req, int status, struct addrinfo *res)
{
	struct connection *c = req->data;

	c->looking_up = false;
	if (!c->session) {
		uv_close((uv_handle_t *)&c->tcp, on_connection_closed);
	} else if (status < 0) {
		fail_connect(c->session, WEFT_EUNAVAIL, uv_strerror(status));
	} else {
		c->addresses = res;
		c->address = res;
		connect_to(c, res->ai_addr);
		return;
	}
	uv_freeaddrinfo(res);
}

static void look_up(struct connection *c)
{
	struct tcp_session *s = c->session;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	int rc;

	c->lookup.data = c;
	rc = uv_getaddrinfo(s->loop, &c->lookup, on_lookup, s->host, s->port, &hints);
	if (rc < 0) {
		fail_connect(s, WEFT_EUNAVAIL, uv_strerror(rc));
		return;
	}
	c->looking_up = true;
}

static struct connection *new_connection(struct tcp_session *s)
{
	struct connection *c = x_new(1, sizeof(*c));

	c->session = s;
	c->tcp.data = c;
	uv_tcp_init(s->loop, &c->tcp);
	return c;
}

/* The address that was tried failed, as text says. False when it was the last
 * one. */
static bool try_next_address(struct tcp_session *s, const char *text)
{
	struct connection *old = s->connection, *c;

	if (!old->address || !old->address->ai_next) {
		return false;
	}
	c = new_connection(s);
	note_refusal(s, text);
	c->addresses = old->addresses;
	c->address = old->address->ai_next;
	old->addresses = NULL;
	drop_connection(s);
	s->connection = c;
	connect_to(c, c->address->ai_addr);
	return true;
}

static void open_connection(struct tcp_session *s)
{
	struct connection *c = new_connection(s);
	struct sockaddr_storage addr;

	s->connection = c;
	s->refusals[0] = '\0';
	s->connect_by_ns = clk_now_ns() + s->conf.timeout_ms * 1000000;
	arm_deadline(s);
	if (uv_ip4_addr(s->host, s->port_number, (struct sockaddr_in *)&addr) == 0 ||
	    uv_ip6_addr(s->host, s->port_number, (struct sockaddr_in6 *)&addr) == 0) {
		connect_to(c, (struct sockaddr *)&addr);
	} else {
		look_up(c);
	}
}

/* ---- requests ----------------------------------------------------------- */

static void note_doubt(struct tcp_session *s)
{
	s->in_doubt = s->n_out == 0 && s->used_ns && clk_now_ns() - s->used_ns > DOUBT_NS;
}

/* Without SSH a request's bytes go over the network as they are: they become the
 * write's, unless they may be asked again. */
static int put_out(struct tcp_session *s, struct request *q, struct err *err)
{
	struct connection *c = s->connection;
	int rc;

	if (c->ssh) {
		return ssh_write(c->ssh, q->bytes, q->len, err);
	}
	rc = q->again ? write_copy(q->bytes, q->len, c) : write_bytes(c, q->bytes, q->len);
	if (rc < 0) {
		return err_set(err, WEFT_EUNAVAIL, "%s", uv_strerror(rc));
	}
	q->bytes = q->again ? q->bytes : NULL;
	return 0;
}

static void send_request(struct tcp_session *s, struct request *q)
{
	struct err err = { 0 };
	int rc;

	if (s->conf.trace && q->len) {
		s->conf.trace(q->bytes, q->len, false, s->conf.arg);
	}
	note_doubt(s);
	rc = q->len ? put_out(s, q, &err) : 0;
	if (rc) {
		/* Of what goes through SSH a part may be out. */
		q->sent = q->again || s->connection->ssh;
		fail_text(s, rc, err.msg);
		return;
	}
	q->sent = true;
	s->sent_ns = s->used_ns = clk_now_ns();
	if (s->n_out++ == 0) {
		arm_deadline(s);
	}
}

static struct request *next_unsent(struct tcp_session *s)
{
	struct request *q = s->first;

	while (q && q->sent) {
		q = q->next;
	}
	return q;
}

static void on_wake(uv_timer_t *t)
{
	send_more(t->data);
}

/* Nanoseconds until the pace or the back-off lets the next one go. */
static int64_t wait_ns(const struct tcp_session *s)
{
	int64_t now = clk_now_ns(), at = s->connection ?
		s->sent_ns + s->conf.gap_us * 1000 : s->not_before_ns;

	return at > now ? at - now : 0;
}

/* Devices end sessions that are not used, and not all of them say so. */
static bool was_idle(const struct tcp_session *s)
{
	return s->conf.idle_ms && s->n_out == 0 && tcp_connected(s) &&
	       clk_now_ns() - s->used_ns > s->conf.idle_ms * 1000000;
}

/* So lately refused that it is not asked again. */
static bool is_denied(const struct tcp_session *s)
{
	return !s->connection && s->denied.code && clk_now_ns() < s->not_before_ns;
}

static void send_more(struct tcp_session *s)
{
	struct request *q;

	while (!s->closing && s->n_out < s->conf.window && (q = next_unsent(s))) {
		int64_t wait;

		if (is_denied(s)) {
			fail(s, s->denied.code, &s->denied);
			return;
		}

		if (was_idle(s)) {
			drop_connection(s);
		}
		wait = q->len ? wait_ns(s) : 0;
		if (wait > 0) {
			uv_timer_start(&s->wake, on_wake, (uint64_t)(wait + 999999) / 1000000, 0);
			return;
		}
		if (!s->connection) {
			open_connection(s);
			return;
		}
		if (!s->connection->connected) {
			return;
		}
		send_request(s, q);
	}
}

static void wake_up(struct tcp_session *s)
{
	if (!uv_is_active((uv_handle_t *)&s->wake)) {
		uv_timer_start(&s->wake, on_wake, 0, 0);
	}
}

static void queue_request(struct tcp_session *s, const void *bytes, size_t len,
			  uint64_t tag, bool again)
{
	struct request *q = x_new(1, sizeof(*q));

	if (len > 0) {
		q->bytes = memcpy(x_alloc(len, 1), bytes, len);
	}
	q->len = len;
	q->tag = tag;
	q->again = again;
	*s->last = q;
	s->last = &q->next;
	s->n_requests++;
	wake_up(s);
}

void tcp_ask(struct tcp_session *s, const void *bytes, size_t len, uint64_t tag)
{
	queue_request(s, bytes, len, tag, false);
}

void tcp_ask_repeatable(struct tcp_session *s, const void *bytes, size_t len, uint64_t tag)
{
	queue_request(s, bytes, len, tag, true);
}

void tcp_expect(struct tcp_session *s, uint64_t tag)
{
	queue_request(s, NULL, 0, tag, false);
}

bool tcp_waiting(const struct tcp_session *s)
{
	return s->n_out > 0;
}

int tcp_open_requests(const struct tcp_session *s)
{
	return s->n_requests;
}

void tcp_reset(struct tcp_session *s)
{
	drop_connection(s);
	forget_requests(s);
}

uint64_t tcp_sessions(const struct tcp_session *s)
{
	return s->n_sessions;
}

bool tcp_connected(const struct tcp_session *s)
{
	return s->connection && s->connection->connected;
}

/* ---- life ---------------------------------------------------------------- */

int tcp_new(uv_loop_t *loop, const struct tcp_conf *conf, struct tcp_session **out, struct err *err)
{
	struct tcp_session *s = x_new(1, sizeof(*s));
	int rc;

	assert(conf->window >= 1 && conf->timeout_ms > 0);
	rc = tcp_parse_address(conf->address, false, s->host, HOST_MAX, &s->port_number, err);
	if (rc) {
		free(s);
		return rc;
	}
	s->conf = *conf;
	if (conf->ssh) {
		s->ssh = *conf->ssh;
		s->conf.ssh = &s->ssh;
	}
	s->conf.address = x_dup(conf->address);
	s->loop = loop;
	s->last = &s->first;
	s->sent_ns = INT64_MIN / 2;
	snprintf(s->device, sizeof(s->device), "%s", conf->device);
	snprintf(s->port, sizeof(s->port), "%d", s->port_number);
	uv_timer_init(loop, &s->deadline);
	uv_timer_init(loop, &s->wake);
	s->deadline.data = s->wake.data = s;
	*out = s;
	return 0;
}

static void on_timer_closed(uv_handle_t *timer)
{
	struct tcp_session *s = timer->data;
	void (*cb)(void *) = s->closed;
	void *arg = s->closed_arg;

	if (--s->closing > 0) {
		return;
	}
	buf_fini(&s->in);
	free((char *)s->conf.address);
	free(s);
	cb(arg);
}

void tcp_close(struct tcp_session *s, void (*cb)(void *arg), void *arg)
{
	drop_connection(s);
	forget_requests(s);
	s->closing = 2;
	s->closed = cb;
	s->closed_arg = arg;
	uv_close((uv_handle_t *)&s->deadline, on_timer_closed);
	uv_close((uv_handle_t *)&s->wake, on_timer_closed);
}
