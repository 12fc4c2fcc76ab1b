/* The line core; see tcp_session.h. */
#include "drivers/core/tcp_session.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define HOST_MAX 256
#define REFUSALS_MAX 256
#define BACK_OFF_MIN_MS 50
#define BACK_OFF_MAX_MS 2000
#define READ_BYTES (64 << 10)
/* A session unused for so long may be dead without anybody having said so. */
#define DOUBT_NS (500 * INT64_C(1000000))

struct question {
	struct question *next;
	uint64_t tag;
	bool sent;
	bool again;		/* may be asked again in another session */
	size_t len;
	uint8_t *bytes;		/* handed to the write when sent, unless it
				 * may be asked again */
};

/* One TCP session, or one attempt at it: every address of a name is tried in
 * a session of its own. It outlives the line's interest in it (line == NULL)
 * until libuv has let go of it. */
struct session {
	struct line *line;
	struct addrinfo *addresses;	/* of the name; owned; NULL: of a number */
	const struct addrinfo *address;	/* the one that is tried */
	uv_tcp_t tcp;
	uv_connect_t connect;
	uv_getaddrinfo_t lookup;
	bool looking_up, connected;
	char bytes[READ_BYTES];
};

struct write {
	uv_write_t req;
	struct session *session;
	uint8_t *bytes;
};

struct line {
	struct line_conf conf;
	char device[HOST_MAX], host[HOST_MAX], port[8];
	int port_number;
	uv_loop_t *loop;
	uv_timer_t deadline;	/* for the connect or the oldest answer */
	uv_timer_t wake;	/* sends, later */
	struct session *session;
	struct question *first, **last;
	int n_questions, n_out;
	uint64_t n_sessions;
	bool in_doubt;		/* unused when the oldest one went out, and not
				 * a byte has come since */
	struct buf in;
	size_t looked;		/* bytes of in that hold no whole frame */
	int64_t sent_ns, used_ns, not_before_ns;
	int64_t back_off_ms;
	int64_t connect_by_ns;	/* all addresses are tried until then */
	char refusals[REFUSALS_MAX];	/* of the addresses before this one */
	int closing;
	void (*closed)(void *);
	void *closed_arg;
};

static void send_more(struct line *l);

/* ---- addresses ----------------------------------------------------------- */

static int bad_address(const char *text, struct err *err)
{
	return err_set(err, WEFT_EINVAL,
		       "address '%s': expected HOST:PORT or [IPV6]:PORT", text);
}

int line_parse_address(const char *text, bool port_0, char *host, int size,
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
	if (to <= from || to - from >= size || *end || end == colon + 1 ||
	    colon[1] < '0' || colon[1] > '9' || n > 65535 ||
	    (n == 0 && !port_0)) {
		return bad_address(text, err);
	}
	memcpy(host, from, (size_t)(to - from));
	host[to - from] = '\0';
	*port = (int)n;
	return 0;
}

int64_t line_frame_text(const uint8_t *data, size_t len, size_t from,
			void *arg)
{
	const uint8_t *lf = memchr(data + from, '\n', len - from);

	(void)arg;

	return lf ? lf - data + 1 : 0;
}

/* ---- the end of a session ------------------------------------------------ */

static void on_session_closed(uv_handle_t *tcp)
{
	struct session *s = tcp->data;

	uv_freeaddrinfo(s->addresses);
	free(s);
}

static void drop_session(struct line *l)
{
	struct session *s = l->session;

	uv_timer_stop(&l->deadline);
	buf_reset(&l->in);
	l->looked = 0;
	l->session = NULL;
	if (!s) {
		return;
	}
	s->line = NULL;
	if (s->looking_up) {
		uv_cancel((uv_req_t *)&s->lookup);
	} else {
		uv_close((uv_handle_t *)&s->tcp, on_session_closed);
	}
}

static void forget_questions(struct line *l)
{
	while (l->first) {
		struct question *q = l->first;

		l->first = q->next;
		free(q->bytes);
		free(q);
	}
	l->last = &l->first;
	l->n_questions = l->n_out = 0;
}

static void wake_up(struct line *l);

/* The session was dead, by all appearances before the only question went out
 * in it: that is asked again, once. */
static bool try_again(struct line *l, int rc, const struct err *err)
{
	struct question *q = l->first;

	if (!q || !q->again || !q->sent || q->next || !l->in_doubt ||
	    rc == WEFT_EDEVICE || rc == WEFT_ENOMEM) {
		return false;
	}
	log_info("drivers", "%s: a new session is made", err->msg);
	drop_session(l);
	q->again = q->sent = l->in_doubt = false;
	l->n_out = 0;
	wake_up(l);
	return true;
}

static void fail(struct line *l, int rc, const struct err *err)
{
	bool any = l->first, sent = any && l->first->sent;

	if (try_again(l, rc, err)) {
		return;
	}
	drop_session(l);
	forget_questions(l);
	if (any) {
		l->conf.failed(rc, err, sent, l->conf.arg);
	} else {
		log_info("drivers", "%s", err->msg);
	}
}

static void fail_text(struct line *l, int rc, const char *text)
{
	struct err err = { 0 };

	err_set(&err, rc, "%s (%s): %s", l->device, l->conf.address, text);
	fail(l, rc, &err);
}

/* Adds what the address under way said to the list of all. */
static void note_refusal(struct line *l, const char *text)
{
	size_t n = strlen(l->refusals);
	char name[INET6_ADDRSTRLEN] = "";

	uv_ip_name(l->session->address->ai_addr, name, sizeof(name));
	snprintf(l->refusals + n, sizeof(l->refusals) - n, "%s%s: %s",
		 n ? ", " : "", name, text);
}

static bool try_next_address(struct line *l, const char *text);

/* Fails what was asked only when no address of the device is left to try. */
static void fail_connect(struct line *l, int rc, const char *text)
{
	if (try_next_address(l, text)) {
		return;
	}
	if (l->refusals[0]) {
		note_refusal(l, text);
		text = l->refusals;
	}
	l->back_off_ms = l->back_off_ms ? l->back_off_ms * 2 : BACK_OFF_MIN_MS;
	if (l->back_off_ms > BACK_OFF_MAX_MS) {
		l->back_off_ms = BACK_OFF_MAX_MS;
	}
	l->not_before_ns = clk_now_ns() + l->back_off_ms * 1000000;
	fail_text(l, rc, text);
}

static void on_deadline(uv_timer_t *t)
{
	struct line *l = t->data;
	char text[64];

	if (l->session && !l->session->connected) {
		fail_connect(l, WEFT_EUNAVAIL, "connecting took too long");
		return;
	}
	snprintf(text, sizeof(text), "no answer within %lld ms",
		 (long long)l->conf.timeout_ms);
	fail_text(l, WEFT_ETIMEOUT, text);
}

/* What an attempt to connect may take: the addresses that are left share the
 * time that is left, so that one which never answers does not use it up. */
static int64_t connect_ms(const struct line *l)
{
	int64_t left_ms = (l->connect_by_ns - clk_now_ns()) / 1000000;
	int n = 1;

	for (const struct addrinfo *a = l->session->address; a && a->ai_next;
	     a = a->ai_next) {
		n++;
	}
	return left_ms > n ? left_ms / n : 1;
}

static void arm_deadline(struct line *l)
{
	bool connecting = l->session && !l->session->connected;

	if (l->n_out > 0 || connecting) {
		uv_timer_start(&l->deadline, on_deadline, (uint64_t)
			       (connecting ? connect_ms(l) : l->conf.timeout_ms),
			       0);
	} else {
		uv_timer_stop(&l->deadline);
	}
}

/* ---- answers ------------------------------------------------------------- */

static void answered(struct line *l, const uint8_t *frame, size_t len)
{
	struct question *q = l->first;
	uint64_t tag = q->tag;

	l->first = q->next;
	if (!l->first) {
		l->last = &l->first;
	}
	l->n_questions--;
	l->n_out--;
	l->back_off_ms = 0;
	free(q->bytes);
	free(q);
	arm_deadline(l);
	l->conf.answer(frame, len, tag, l->conf.arg);
}

static void unreadable(struct line *l, bool garbage)
{
	char text[64];

	snprintf(text, sizeof(text), "the answer is longer than %zu KiB",
		 l->conf.max_frame >> 10);
	fail_text(l, WEFT_EDEVICE, garbage ? "the answer is garbage" : text);
}

static enum line_verdict judge(struct line *l, const uint8_t *frame,
			       size_t len)
{
	bool waiting = l->n_out > 0;
	enum line_verdict v = waiting ? LINE_ANSWER : LINE_NONSENSE;

	if (l->conf.judge) {
		v = l->conf.judge(frame, len, waiting,
				  waiting ? l->first->tag : 0, l->conf.arg);
	}
	return v == LINE_ANSWER && !waiting ? LINE_NONSENSE : v;
}

/* Takes frames off the input. An answer's callback may ask more, but that is
 * sent only afterwards: a second frame in the same segment cannot be the
 * answer to a question not yet asked. */
static void take_frames(struct line *l)
{
	struct session *s = l->session;
	size_t at = 0;

	while (at < l->in.len) {
		const uint8_t *data = (const uint8_t *)l->in.data + at;
		int64_t n = l->conf.frame(data, l->in.len - at, l->looked,
					  l->conf.arg);

		l->looked = n == 0 ? l->in.len - at : 0;
		if (n < 0 || n > (int64_t)l->conf.max_frame ||
		    (n == 0 && l->in.len - at >= l->conf.max_frame)) {
			unreadable(l, n < 0);
			return;
		}
		if (n == 0) {
			break;
		}
		if (l->conf.trace) {
			l->conf.trace(data, (size_t)n, true, l->conf.arg);
		}
		switch (judge(l, data, (size_t)n)) {
		case LINE_ANSWER:
			answered(l, data, (size_t)n);
			break;
		case LINE_IGNORE:
			break;
		case LINE_NONSENSE:
			fail_text(l, WEFT_EDEVICE,
				  "an answer that nobody asked for");
			break;
		}
		if (l->session != s) {
			return;
		}
		at += (size_t)n;
	}
	buf_consume(&l->in, at);
}

static void on_alloc(uv_handle_t *tcp, size_t hint, uv_buf_t *out)
{
	struct session *s = tcp->data;

	(void)hint;
	*out = uv_buf_init(s->bytes, sizeof(s->bytes));
}

static void on_read(uv_stream_t *tcp, ssize_t n, const uv_buf_t *bytes)
{
	struct session *s = tcp->data;
	struct line *l = s->line;

	if (!l || n == 0) {
		return;
	}
	if (n < 0) {
		fail_text(l, WEFT_EUNAVAIL, n == UV_EOF ?
			  "the device ended the session" :
			  uv_strerror((int)n));
		return;
	}
	l->in_doubt = false;
	buf_add(&l->in, bytes->base, (size_t)n);
	if (l->in.failed) {
		fail_text(l, WEFT_ENOMEM, "out of memory");
		return;
	}
	take_frames(l);
	send_more(l);
}

/* ---- connecting ---------------------------------------------------------- */

static void on_connect(uv_connect_t *req, int status)
{
	struct session *s = req->data;
	struct line *l = s->line;

	if (!l) {
		return;
	}
	if (status < 0) {
		fail_connect(l, WEFT_EUNAVAIL, uv_strerror(status));
		return;
	}
	s->connected = true;
	l->used_ns = clk_now_ns();
	l->n_sessions++;
	uv_tcp_nodelay(&s->tcp, 1);
	uv_read_start((uv_stream_t *)&s->tcp, on_alloc, on_read);
	arm_deadline(l);
	send_more(l);
}

static void connect_to(struct session *s, const struct sockaddr *addr)
{
	int rc;

	arm_deadline(s->line);
	s->connect.data = s;
	rc = uv_tcp_connect(&s->connect, &s->tcp, addr, on_connect);
	if (rc < 0) {
		fail_connect(s->line, WEFT_EUNAVAIL, uv_strerror(rc));
	}
}

static void on_lookup(uv_getaddrinfo_t *req, int status, struct addrinfo *res)
{
	struct session *s = req->data;

	s->looking_up = false;
	if (!s->line) {
		uv_close((uv_handle_t *)&s->tcp, on_session_closed);
	} else if (status < 0) {
		fail_connect(s->line, WEFT_EUNAVAIL, uv_strerror(status));
	} else {
		s->addresses = res;
		s->address = res;
		connect_to(s, res->ai_addr);
		return;
	}
	uv_freeaddrinfo(res);
}

static void look_up(struct session *s)
{
	struct line *l = s->line;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	int rc;

	s->lookup.data = s;
	rc = uv_getaddrinfo(l->loop, &s->lookup, on_lookup, l->host, l->port,
			    &hints);
	if (rc < 0) {
		fail_connect(l, WEFT_EUNAVAIL, uv_strerror(rc));
		return;
	}
	s->looking_up = true;
}

static struct session *new_session(struct line *l)
{
	struct session *s = calloc(1, sizeof(*s));

	if (s) {
		s->line = l;
		s->tcp.data = s;
		uv_tcp_init(l->loop, &s->tcp);
	}
	return s;
}

/* The address that was tried failed, as text says. False when it was the last
 * one, or there is no memory to try the next. */
static bool try_next_address(struct line *l, const char *text)
{
	struct session *old = l->session, *s;

	if (!old->address || !old->address->ai_next) {
		return false;
	}
	s = new_session(l);
	if (!s) {
		return false;
	}
	note_refusal(l, text);
	s->addresses = old->addresses;
	s->address = old->address->ai_next;
	old->addresses = NULL;
	drop_session(l);
	l->session = s;
	connect_to(s, s->address->ai_addr);
	return true;
}

static void open_session(struct line *l)
{
	struct session *s = new_session(l);
	struct sockaddr_storage addr;

	if (!s) {
		fail_text(l, WEFT_ENOMEM, "out of memory");
		return;
	}
	l->session = s;
	l->refusals[0] = '\0';
	l->connect_by_ns = clk_now_ns() + l->conf.timeout_ms * 1000000;
	arm_deadline(l);
	if (uv_ip4_addr(l->host, l->port_number,
			(struct sockaddr_in *)&addr) == 0 ||
	    uv_ip6_addr(l->host, l->port_number,
			(struct sockaddr_in6 *)&addr) == 0) {
		connect_to(s, (struct sockaddr *)&addr);
	} else {
		look_up(s);
	}
}

/* ---- questions ----------------------------------------------------------- */

static void on_written(uv_write_t *req, int status)
{
	struct write *w = req->data;
	struct line *l = w->session->line;

	free(w->bytes);
	free(w);
	if (l && status < 0) {
		fail_text(l, WEFT_EUNAVAIL, uv_strerror(status));
	}
}

/* The bytes for a write, which is their owner from then on. */
static uint8_t *bytes_to_send(struct question *q)
{
	uint8_t *bytes = q->again ? malloc(q->len) : q->bytes;

	if (q->again && bytes) {
		memcpy(bytes, q->bytes, q->len);
	}
	return bytes;
}

static void note_doubt(struct line *l)
{
	l->in_doubt = l->n_out == 0 && l->used_ns &&
		      clk_now_ns() - l->used_ns > DOUBT_NS;
}

static void send_question(struct line *l, struct question *q)
{
	struct write *w = malloc(sizeof(*w));
	uint8_t *copy = w ? bytes_to_send(q) : NULL;
	uv_buf_t bytes = uv_buf_init((char *)copy, (unsigned)q->len);
	int rc;

	if (!copy) {
		free(w);
		fail_text(l, WEFT_ENOMEM, "out of memory");
		return;
	}
	if (l->conf.trace) {
		l->conf.trace(q->bytes, q->len, false, l->conf.arg);
	}
	note_doubt(l);
	w->req.data = w;
	w->session = l->session;
	w->bytes = copy;
	rc = uv_write(&w->req, (uv_stream_t *)&l->session->tcp, &bytes, 1,
		      on_written);
	if (rc < 0) {
		if (q->again) {
			free(copy);
		}
		free(w);
		q->sent = q->again;	/* which is what may be done again */
		fail_text(l, WEFT_EUNAVAIL, uv_strerror(rc));
		return;
	}
	q->bytes = q->again ? q->bytes : NULL;
	q->sent = true;
	l->sent_ns = l->used_ns = clk_now_ns();
	if (l->n_out++ == 0) {
		arm_deadline(l);
	}
}

static struct question *next_unsent(struct line *l)
{
	struct question *q = l->first;

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
static int64_t wait_ns(const struct line *l)
{
	int64_t now = clk_now_ns(), at = l->session ?
		l->sent_ns + l->conf.gap_us * 1000 : l->not_before_ns;

	return at > now ? at - now : 0;
}

/* Devices end sessions that nobody uses, and not all of them say so. */
static bool was_idle(const struct line *l)
{
	return l->conf.idle_ms && l->n_out == 0 && line_connected(l) &&
	       clk_now_ns() - l->used_ns > l->conf.idle_ms * 1000000;
}

static void send_more(struct line *l)
{
	struct question *q;

	while (!l->closing && l->n_out < l->conf.window &&
	       (q = next_unsent(l))) {
		int64_t wait;

		if (was_idle(l)) {
			drop_session(l);
		}
		wait = wait_ns(l);
		if (wait > 0) {
			uv_timer_start(&l->wake, on_wake,
				       (uint64_t)(wait + 999999) / 1000000, 0);
			return;
		}
		if (!l->session) {
			open_session(l);
			return;
		}
		if (!l->session->connected) {
			return;
		}
		send_question(l, q);
	}
}

static void wake_up(struct line *l)
{
	if (!uv_is_active((uv_handle_t *)&l->wake)) {
		uv_timer_start(&l->wake, on_wake, 0, 0);
	}
}

static int queue_question(struct line *l, const void *bytes, size_t len,
			  uint64_t tag, bool again)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q) {
		return WEFT_ENOMEM;
	}
	q->bytes = malloc(len);
	if (!q->bytes) {
		free(q);
		return WEFT_ENOMEM;
	}
	memcpy(q->bytes, bytes, len);
	q->len = len;
	q->tag = tag;
	q->again = again;
	*l->last = q;
	l->last = &q->next;
	l->n_questions++;
	wake_up(l);
	return 0;
}

int line_ask(struct line *l, const void *bytes, size_t len, uint64_t tag)
{
	return queue_question(l, bytes, len, tag, false);
}

int line_ask_harmless(struct line *l, const void *bytes, size_t len,
		      uint64_t tag)
{
	return queue_question(l, bytes, len, tag, true);
}

bool line_waiting(const struct line *l)
{
	return l->n_out > 0;
}

int line_open_questions(const struct line *l)
{
	return l->n_questions;
}

void line_reset(struct line *l)
{
	drop_session(l);
	forget_questions(l);
}

uint64_t line_sessions(const struct line *l)
{
	return l->n_sessions;
}

bool line_connected(const struct line *l)
{
	return l->session && l->session->connected;
}

/* ---- life ---------------------------------------------------------------- */

int line_new(uv_loop_t *loop, const struct line_conf *conf, struct line **out,
	     struct err *err)
{
	struct line *l = calloc(1, sizeof(*l));
	int rc;

	assert(conf->window >= 1 && conf->timeout_ms > 0);
	if (!l) {
		return err_nomem(err);
	}
	rc = line_parse_address(conf->address, false, l->host, HOST_MAX,
				&l->port_number, err);
	if (rc) {
		free(l);
		return rc;
	}
	l->conf = *conf;
	l->conf.address = strdup(conf->address);
	if (!l->conf.address) {
		free(l);
		return err_nomem(err);
	}
	l->loop = loop;
	l->last = &l->first;
	l->sent_ns = INT64_MIN / 2;
	snprintf(l->device, sizeof(l->device), "%s", conf->device);
	snprintf(l->port, sizeof(l->port), "%d", l->port_number);
	uv_timer_init(loop, &l->deadline);
	uv_timer_init(loop, &l->wake);
	l->deadline.data = l->wake.data = l;
	*out = l;
	return 0;
}

static void on_timer_closed(uv_handle_t *timer)
{
	struct line *l = timer->data;
	void (*cb)(void *) = l->closed;
	void *arg = l->closed_arg;

	if (--l->closing > 0) {
		return;
	}
	buf_fini(&l->in);
	free((char *)l->conf.address);
	free(l);
	cb(arg);
}

void line_close(struct line *l, void (*cb)(void *arg), void *arg)
{
	drop_session(l);
	forget_questions(l);
	l->closing = 2;
	l->closed = cb;
	l->closed_arg = arg;
	uv_close((uv_handle_t *)&l->deadline, on_timer_closed);
	uv_close((uv_handle_t *)&l->wake, on_timer_closed);
}
