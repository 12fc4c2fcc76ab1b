/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the emulators: a program that listens, takes commands, and
 * replies as the faults in force have it.
 *
 * A reply goes out in pieces with a time each (`struct piece`), ordered by that
 * time: slow, late, doubled, cut off and bytewise replies are all made by
 * queueing pieces otherwise. A session lives on the loop's handles; it is freed
 * when both of them are closed.
 *
 * The device's state is one xc_map (e->mem). Dialects change it, then call
 * emu_changed(), which saves it, logs what changed (change_log.c), publishes it
 * to the fibre plant, and lets the fault `lost` take its course. A restart ends
 * all sessions and leaves the map kept, empty, or as it was when the program
 * started.
 */
#include "drivers/emulators/core/emulator.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/core/tcp_session.h"
#include "drivers/core/terminal.h"
#include "drivers/emulators/core/fibre_plant.h"
#include "drivers/emulators/core/malformed_replies.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/version.h"

#define BYTEWISE_MAX 64

/* A piece of a reply and when it goes out. */
struct piece {
	struct piece *next;
	int64_t due_ns;
	bool then_drop;
	size_t len;
	uint8_t bytes[];
};

/* A session. It has two handles, tcp and timer, and is freed when both are
 * closed; `dying` holds from the first close on. A `deaf` one stays open and
 * gets no answers, as behind a firewall that dropped its state. */
struct emu_client {
	struct emu *e;
	struct emu_client *next;
	uv_tcp_t tcp;
	uv_timer_t timer;
	int64_t mark;
	struct terminal terminal;	/* of a client of a telnet server */
	struct buf in;
	struct buf late;	/* sent after the client closed its side */
	struct piece *pieces;	/* by due_ns */
	bool dying, deaf;
	int64_t heard_ns;	/* its last command */
	int open_handles;
	char bytes[64 << 10];
};

/* A piece on its way through libuv; both are freed when it is written. */
struct piece_write {
	uv_write_t req;
	struct piece *piece;
};

static const struct emu_dialect *const dialects[] = {
	&emu_calient_tl1,
	&emu_glimmerglass_tl1,
	&emu_mrr,
	&emu_polatis_tl1,
	&emu_restconf,
	&emu_rome,
	&emu_scpi,
	&emu_sonic,
	&emu_telescent,
};

#define N_DIALECTS ((int)(sizeof(dialects) / sizeof(dialects[0])))

const char *emu_set_form(struct emu *e, const char *name)
{
	static const struct emu_form plain = { .name = "plain" };
	const struct emu_form *forms = e->dialect->forms;

	if (!forms) {
		e->form = &plain;
		return name ? "it has no forms" : NULL;
	}
	while (name && forms->name && strcmp(forms->name, name) != 0) {
		forms++;
	}
	if (!forms->name) {
		return "it has no such form";
	}
	e->form = forms;
	return NULL;
}

bool emu_form_is(const struct emu *e, const char *name)
{
	return e->form && strcmp(e->form->name, name) == 0;
}

const char *emu_prompt(const struct emu *e, const char *own)
{
	return e->form && e->form->prompt ? e->form->prompt : own;
}

struct emu *emu_of(struct emu_client *c)
{
	return c->e;
}

int64_t *emu_client_mark(struct emu_client *c)
{
	return &c->mark;
}

/* ---- sessions end -------------------------------------------------------- */

/* Runs once for each of the session's two handles; the last one frees it. */
static void on_client_closed(uv_handle_t *h)
{
	struct emu_client *c = h->data;

	if (--c->open_handles == 0) {
		while (c->pieces) {
			struct piece *p = c->pieces;

			c->pieces = p->next;
			free(p);
		}
		buf_fini(&c->in);
		buf_fini(&c->late);
		free(c);
	}
}

/* Ends a session at once, with what waits to be sent. May be called again, and
 * from within its own callbacks. */
static void end_client(struct emu_client *c)
{
	struct emu_client **at = &c->e->clients;

	if (c->dying) {
		return;
	}
	c->dying = true;
	while (*at != c) {
		at = &(*at)->next;
	}
	*at = c->next;
	uv_close((uv_handle_t *)&c->tcp, on_client_closed);
	uv_close((uv_handle_t *)&c->timer, on_client_closed);
}

static void end_clients(struct emu *e)
{
	while (e->clients) {
		end_client(e->clients);
	}
}

/* ---- replies ------------------------------------------------------------- */

static void send_due(struct emu_client *c);

static void on_piece_timer(uv_timer_t *t)
{
	send_due(t->data);
}

static void on_piece_written(uv_write_t *req, int status)
{
	struct piece_write *w = req->data;
	struct emu_client *c = req->handle->data;
	bool drop = w->piece->then_drop;

	free(w->piece);
	free(w);
	if (drop || status < 0) {
		end_client(c);
	}
}

/* Hands a piece to libuv, which owns it from then on. A piece without bytes is
 * the mark of a session's end (emu_drop()). */
static void send_piece(struct emu_client *c, struct piece *p)
{
	struct piece_write *w = p->len ? x_alloc(1, sizeof(*w)) : NULL;
	uv_buf_t b = uv_buf_init((char *)p->bytes, (unsigned)p->len);

	if (!w) {
		/* Nothing to send is a session to end. */
		free(p);
		end_client(c);
		return;
	}
	w->piece = p;
	w->req.data = w;
	if (uv_write(&w->req, (uv_stream_t *)&c->tcp, &b, 1, on_piece_written)) {
		free(w);
		free(p);
		end_client(c);
	}
}

/* Sends all pieces whose time has come and sets the timer for the next one.
 * libuv's timers count whole milliseconds: rounded up, so that no piece goes
 * out early. */
static void send_due(struct emu_client *c)
{
	int64_t now = clk_now_ns();

	while (!c->dying && c->pieces && c->pieces->due_ns <= now) {
		struct piece *p = c->pieces;

		c->pieces = p->next;
		send_piece(c, p);
	}
	if (!c->dying && c->pieces) {
		uv_timer_start(&c->timer, on_piece_timer, (uint64_t)
			       (c->pieces->due_ns - now + 999999) / 1000000, 0);
	}
}

/* Puts a piece in its place by time; of two with one time the first queued
 * goes out first. */
static void queue_piece(struct emu_client *c, const void *bytes, size_t len,
			int64_t delay_ms, bool then_drop)
{
	struct piece *p = x_alloc(sizeof(*p) + len, 1), **at = &c->pieces;

	memcpy(p->bytes, bytes, len);
	p->len = len;
	p->then_drop = then_drop;
	p->due_ns = clk_now_ns() + delay_ms * 1000000;
	while (*at && (*at)->due_ns <= p->due_ns) {
		at = &(*at)->next;
	}
	p->next = *at;
	*at = p;
}

/* Until the last piece that waits goes out. */
static int64_t queued_ms(const struct emu_client *c)
{
	int64_t now = clk_now_ns(), last = now;

	for (const struct piece *p = c->pieces; p; p = p->next) {
		last = p->due_ns > last ? p->due_ns : last;
	}
	return (last - now + 999999) / 1000000;
}

/* The first bytes one by one, `each` ms apart. */
static void queue_bytewise(struct emu_client *c, const uint8_t *bytes,
			   size_t len, int64_t delay_ms, int64_t each)
{
	size_t n = len < BYTEWISE_MAX ? len : BYTEWISE_MAX;

	for (size_t i = 0; i < n; i++) {
		queue_piece(c, bytes + i, 1, delay_ms + (int64_t)i * each, false);
	}
	if (n < len) {
		queue_piece(c, bytes + n, len - n, delay_ms + (int64_t)n * each, false);
	}
}

/* Replies of a fault that replaces the reply as a whole; true when the fault
 * has taken care of it, and nothing else is to be sent. */
static bool send_malformed(struct emu_client *c, const uint8_t *bytes, size_t len)
{
	struct faults *f = &c->e->faults;
	int64_t each = 0;

	if (faults_hold(f, FAULT_AFTER_CLOSE, NULL)) {
		buf_add(&c->late, bytes, len);
		return true;
	}
	if (faults_hold(f, FAULT_DRIP, &each)) {
		queue_bytewise(c, bytes, len, 0, each);
		send_due(c);
		return true;
	}
	return malformed_reply((uv_stream_t *)&c->tcp, f, bytes, len);
}

/* The order of the faults matters: garbage may be cut off, sent bytewise or
 * twice, but a reply that is cut off is not sent bytewise as well. */
void emu_reply(struct emu_client *c, const void *bytes, size_t len)
{
	static const char garbage[] = "\x07?!\xff garbage\r\n";
	struct faults *f = &c->e->faults;
	int64_t delay = 0, late = 0;

	if (c->dying || faults_hold(f, FAULT_SILENCE, NULL) || send_malformed(c, bytes, len)) {
		return;
	}
	faults_hold(f, FAULT_SLOW, &delay);
	if (faults_strike(f, FAULT_LATE, &late)) {
		delay += late;
	}
	if (faults_strike(f, FAULT_GARBAGE, NULL)) {
		bytes = garbage;
		len = sizeof(garbage) - 1;
	}
	if (faults_strike(f, FAULT_DROP_REPLY, NULL)) {
		queue_piece(c, bytes, len / 2, delay, true);
	} else if (faults_hold(f, FAULT_BYTEWISE, NULL)) {
		queue_bytewise(c, bytes, len, delay + queued_ms(c), 1);
	} else {
		queue_piece(c, bytes, len, delay, false);
	}
	if (faults_strike(f, FAULT_DUPLICATE, NULL)) {
		queue_piece(c, bytes, len, delay, false);
	}
	send_due(c);
}

/* An event goes out behind the last reply that waits, so that a slow reply and
 * the event after it stay in the order in which the device made them. */
void emu_send_event_to(struct emu_client *c, const void *bytes, size_t len)
{
	if (len == 0 || c->dying || faults_hold(&c->e->faults, FAULT_SILENCE, NULL)) {
		return;
	}
	queue_piece(c, bytes, len, queued_ms(c), false);
	send_due(c);
}

/* `next` is taken before sending: a failed write ends the session and unlinks
 * it from the list. */
void emu_send_event(struct emu *e, const void *bytes, size_t len)
{
	struct emu_client *next;

	for (struct emu_client *c = e->clients; c; c = next) {
		next = c->next;
		emu_send_event_to(c, bytes, len);
	}
}

void emu_send_event_marked(struct emu *e, int64_t mark, const void *bytes, size_t len)
{
	struct emu_client *next;

	for (struct emu_client *c = e->clients; c; c = next) {
		next = c->next;
		if (c->mark == mark) {
			emu_send_event_to(c, bytes, len);
		}
	}
}

/* The empty piece is queued last, so that the replies before it go out. */
void emu_drop(struct emu_client *c)
{
	queue_piece(c, "", 0, 0, true);
	send_due(c);
}

/* ---- commands ------------------------------------------------------------ */

/* The command as it came, with its end and a line end. */
static void echo(struct emu_client *c, const char *command, size_t len)
{
	struct buf out = { 0 };

	while (len && strchr("\r\n", command[len - 1])) {
		len--;
	}
	while (len && strchr("\r\n", *command)) {
		command++;
		len--;
	}
	buf_printf(&out, "%.*s\r\n", (int)len, command);
	if (len) {
		emu_send_event_to(c, out.data, out.len);
	}
	buf_fini(&out);
}

int64_t emu_take_command(struct emu_client *c, const uint8_t *data, size_t len, const char *ends,
			 void (*run)(struct emu_client *c, char *command))
{
	size_t n = 0;
	char *command;

	while (n < len && (!data[n] || !strchr(ends, data[n]))) {
		n++;
	}
	if (n == len) {
		return 0;
	}
	command = x_ndup((const char *)data, n);
	if (c->e->form->echo) {
		echo(c, (const char *)data, n + 1);
	}
	run(c, command);
	free(command);
	return (int64_t)n + 1;
}

void emu_finish_command(struct emu_client *c, enum emu_fate fate, struct buf *out)
{
	if (fate == EMU_DO && out->len) {
		emu_reply(c, out->data, out->len);
	} else if (fate == EMU_DO_AND_DROP) {
		emu_drop(c);
	}
	buf_fini(out);
}

bool emu_holds_xc(struct emu *e, enum fault_kind kind, struct optics_xc xc)
{
	return faults_hold_port(&e->faults, kind, xc_map_flat_in(&e->mem, xc.in)) ||
	       faults_hold_port(&e->faults, kind, xc_map_flat_out(&e->mem, xc.out));
}

/* ---- what the device does ------------------------------------------------ */

/* Prints who gives commands whenever it is another than before, among the circuits that
 * emu_log_changes prints. */
static void tell_speaker(struct emu_client *c)
{
	struct sockaddr_storage from;
	int len = sizeof(from);
	char name[INET6_ADDRSTRLEN] = "?";

	if (uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&from, &len) == 0) {
		uv_ip_name((struct sockaddr *)&from, name, sizeof(name));
	}
	if (strcmp(name, c->e->speaker) != 0) {
		printf("commands from %s\n", name);
		fflush(stdout);
		snprintf(c->e->speaker, sizeof(c->e->speaker), "%s", name);
	}
}

/* A session that answers nothing at all (`silence`) carries out nothing
 * either: the driver must find the device as it was. */
enum emu_fate emu_set_command(struct emu_client *c)
{
	struct faults *f = &c->e->faults;

	c->e->n_sets++;
	tell_speaker(c);
	if (faults_hold(f, FAULT_SILENCE, NULL) || faults_strike(f, FAULT_EAT_SET, NULL)) {
		return EMU_EAT;
	}
	if (faults_strike(f, FAULT_DROP_SET, NULL)) {
		return EMU_DO_AND_DROP;
	}
	return faults_strike(f, FAULT_SILENCE_SET, NULL) ? EMU_DO_SILENTLY : EMU_DO;
}

/* Writes the state file and the plant's map. An emulator goes on when a disk
 * is full: its circuits are right, and the log says what is lost. */
static void save(struct emu *e)
{
	struct err err = { 0 };

	if (e->conf.state && xc_map_save(&e->mem, e->conf.state, &err)) {
		log_error("emulators", "%s: %s", e->conf.name, err.msg);
	}
	if (plant_publish(e, &err)) {
		log_error("emulators", "%s: %s", e->conf.name, err.msg);
	}
}

/* The fault `lost`: the mirrors fall back, as after a brown-out, and no
 * session is notified. */
static void on_lost(uv_timer_t *t)
{
	struct emu *e = t->data;

	xc_map_clear(&e->mem);
	e->dialect->refresh(e, EMU_LOST_SILENTLY);
	save(e);
	emu_log_changes(e, EMU_BY_FAULT);
}

void emu_changed(struct emu *e)
{
	emu_changed_by(e, EMU_BY_SESSION);
}

void emu_changed_by(struct emu *e, enum emu_by by)
{
	int64_t ms;

	if (e->holding) {
		return;
	}
	save(e);
	emu_log_changes(e, by);
	if (faults_strike(&e->faults, FAULT_LOST, &ms)) {
		uv_timer_start(&e->lost, on_lost, (uint64_t)ms, 0);
	}
}

/* ---- sessions begin ------------------------------------------------------ */

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *out)
{
	struct emu_client *c = h->data;

	(void)hint;
	*out = uv_buf_init(c->bytes, sizeof(c->bytes));
}

/* A session that was not used for long is of no use any more. */
static bool is_gone(struct emu_client *c)
{
	struct faults *f = &c->e->faults;
	int64_t now = clk_now_ns(), ms, idle = now - c->heard_ns;

	if (faults_hold(f, FAULT_IDLE_END, &ms) && idle > ms * 1000000) {
		end_client(c);
		return true;
	}
	c->deaf = c->deaf || (faults_hold(f, FAULT_IDLE_DEAD, &ms) && idle > ms * 1000000);
	c->heard_ns = now;
	return c->deaf;
}

/* A telnet server's client may send options among its commands. */
static void take_bytes(struct emu_client *c, const void *bytes, size_t len)
{
	struct buf ignored = { 0 };

	terminal_text(&c->terminal, bytes, len, &c->in, &ignored);
	buf_fini(&ignored);
}

/* Bytes gather until the dialect finds whole commands. A client that has
 * closed its side gets the replies that `after-close` kept for it; input that
 * exceeds the dialect's longest command ends the session. */
static void on_read(uv_stream_t *tcp, ssize_t n, const uv_buf_t *bytes)
{
	struct emu_client *c = tcp->data;
	size_t at = 0;
	int64_t used = 1;

	if (n <= 0) {
		if (n < 0 && c->late.len) {
			queue_piece(c, c->late.data, c->late.len, 0, true);
			buf_reset(&c->late);
			send_due(c);
		} else if (n < 0) {
			end_client(c);
		}
		return;
	}
	if (is_gone(c)) {
		return;
	}
	take_bytes(c, bytes->base, (size_t)n);
	while (!c->dying && used > 0 && at < c->in.len) {
		used = emu_input(c, (uint8_t *)c->in.data + at, c->in.len - at);
		at += used > 0 ? (size_t)used : 0;
	}
	if (c->dying) {
		return;
	}
	buf_consume(&c->in, at);
	if (used < 0 || c->in.len > c->e->dialect->max_input) {
		end_client(c);
	}
}

static void on_accept(uv_stream_t *server, int status)
{
	struct emu *e = server->data;
	struct emu_client *c = status < 0 ? NULL : x_new(1, sizeof(*c));

	if (!c) {
		return;
	}
	c->e = e;
	c->heard_ns = clk_now_ns();
	c->open_handles = 2;
	uv_tcp_init(&e->loop, &c->tcp);
	uv_timer_init(&e->loop, &c->timer);
	c->tcp.data = c->timer.data = c;
	c->next = e->clients;
	e->clients = c;
	if (uv_accept(server, (uv_stream_t *)&c->tcp)) {
		end_client(c);
		return;
	}
	e->n_sessions++;
	uv_tcp_nodelay(&c->tcp, 1);
	uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
	terminal_begin(&c->terminal, e->form->telnet ? TERMINAL_LINES : TERMINAL_NONE);
	if (e->form->greeting) {
		emu_send_event_to(c, e->form->greeting, strlen(e->form->greeting));
	}
}

/* ---- listening ----------------------------------------------------------- */

static void on_server_closed(uv_handle_t *h)
{
	free(h);
}

static void listen_stop(struct emu *e)
{
	if (e->server) {
		uv_close((uv_handle_t *)e->server, on_server_closed);
		e->server = NULL;
	}
}

/* Binds the address that was taken before, if any: port 0 is resolved once,
 * and a device comes back where it was. WEFT_EUNAVAIL. */
static int listen_start(struct emu *e, struct err *err)
{
	int len = sizeof(e->addr), rc;

	if (e->server) {
		return 0;
	}
	e->server = x_new(1, sizeof(*e->server));
	uv_tcp_init(&e->loop, e->server);
	e->server->data = e;
	rc = uv_tcp_bind(e->server, (struct sockaddr *)&e->addr, 0);
	if (rc == 0) {
		rc = uv_listen((uv_stream_t *)e->server, 16, on_accept);
	}
	if (rc == 0) {
		/* Keeps the kernel's port over a stop and start. */
		rc = uv_tcp_getsockname(e->server, (struct sockaddr *)&e->addr, &len);
	}
	return rc == 0 ? 0 : err_set(err, WEFT_EUNAVAIL, "listen %s: %s",
				     e->conf.listen, uv_strerror(rc));
}

/* A refused connection is a port that nothing listens on; sessions that are
 * open end too. While a restart's outage runs, its timer starts to listen. */
void emu_apply_refuse(struct emu *e)
{
	struct err err = { 0 };

	if (faults_hold(&e->faults, FAULT_REFUSE, NULL)) {
		listen_stop(e);
		end_clients(e);
	} else if (!uv_is_active((uv_handle_t *)&e->down) &&
		   listen_start(e, &err)) {
		log_error("emulators", "%s", err.msg);
	}
}

static void on_up_again(uv_timer_t *t)
{
	emu_apply_refuse(t->data);
}

/* Changes that wait to complete are lost with the restart, as they are in a
 * device whose controller dies while mirrors move. */
void emu_restart(struct emu *e, const char *map, int64_t down_ms)
{
	end_clients(e);
	uv_timer_stop(&e->lost);
	uv_timer_stop(&e->completion);
	emu_forget_later(e);
	e->mem.boots++;
	if (strcmp(map, "dark") == 0) {
		xc_map_clear(&e->mem);
	} else if (strcmp(map, "old") == 0) {
		xc_map_copy(&e->mem, &e->old);
	}
	e->dialect->refresh(e, EMU_RESTARTED);
	save(e);
	emu_log_changes(e, EMU_BY_RESTART);
	if (down_ms > 0) {
		listen_stop(e);
		uv_timer_start(&e->down, on_up_again, (uint64_t)down_ms, 0);
	}
}

/* Names are looked up once, at the start; nothing else runs yet. */
static int look_up(struct emu *e, const char *host, int port, struct err *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	uv_getaddrinfo_t req;
	char service[8];
	int rc;

	snprintf(service, sizeof(service), "%d", port);
	rc = uv_getaddrinfo(&e->loop, &req, NULL, host, service, &hints);
	if (rc) {
		return err_set(err, WEFT_EINVAL, "listen %s: %s", e->conf.listen, uv_strerror(rc));
	}
	memcpy(&e->addr, req.addrinfo->ai_addr, req.addrinfo->ai_addrlen);
	uv_freeaddrinfo(req.addrinfo);
	return 0;
}

/* An address as digits, or a name that is looked up. IPv6 in brackets. */
static int parse_listen(struct emu *e, struct err *err)
{
	char host[256];
	int port, rc = tcp_parse_address(e->conf.listen, true, host, sizeof(host), &port, err);

	if (rc) {
		return rc;
	}
	if (uv_ip4_addr(host, port, (struct sockaddr_in *)&e->addr) == 0 ||
	    uv_ip6_addr(host, port, (struct sockaddr_in6 *)&e->addr) == 0) {
		return 0;
	}
	return look_up(e, host, port, err);
}

static void address_text(const struct emu *e, char *text, size_t size)
{
	char host[64];
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&e->addr;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&e->addr;

	if (e->addr.ss_family == AF_INET6) {
		uv_ip6_name(v6, host, sizeof(host));
		snprintf(text, size, "[%s]:%d", host, ntohs(v6->sin6_port));
	} else {
		uv_ip4_name(v4, host, sizeof(host));
		snprintf(text, size, "%s:%d", host, ntohs(v4->sin_port));
	}
}

/* `listening ADDRESS` on standard output is what scripts wait for; the file is
 * for those that cannot read it. It is written atomically, so a reader never
 * sees half an address. */
static int announce(struct emu *e, struct err *err)
{
	char text[96];
	size_t len;

	address_text(e, text, sizeof(text) - 1);
	printf("listening %s\n", text);
	fflush(stdout);
	if (!e->conf.address_file) {
		return 0;
	}
	len = strlen(text);
	text[len++] = '\n';
	return file_write_atomic(e->conf.address_file, text, len, FILE_PUBLIC, err);
}

/* ---- life ---------------------------------------------------------------- */

/* TCP handles are closed by listen_stop() and end_clients(), which free
 * them. */
static void close_any(uv_handle_t *h, void *arg)
{
	struct emu *e = arg;

	if (uv_is_closing(h) || h->type == UV_TCP) {
		return;
	}
	if (h->type == UV_NAMED_PIPE && h != (uv_handle_t *)&e->control) {
		emu_control_end(h);
	} else {
		uv_close(h, NULL);
	}
}

/* The reply to `quit` may still be on its way, so this happens a moment
 * later. */
static void on_stop(uv_timer_t *t)
{
	struct emu *e = t->data;

	listen_stop(e);
	end_clients(e);
	uv_walk(&e->loop, close_any, e);
}

void emu_stop(struct emu *e)
{
	uv_timer_start(&e->stop, on_stop, 0, 0);
}

static void on_signal(uv_signal_t *s, int signum)
{
	(void)signum;
	emu_stop(s->data);
}

/* A missing state file is a new device; a broken one is an error, since a test
 * that restarts a device relies on what it kept. */
static int load_state(struct emu *e, struct err *err)
{
	int rc = 0;

	if (e->conf.state) {
		rc = xc_map_load(&e->mem, e->conf.state, err);
		if (rc == 0) {
			/* A program that starts is a device that starts. */
			e->mem.boots++;
			save(e);
		}
	}
	if (rc && rc != WEFT_ENOTFOUND) {
		return rc;
	}
	xc_map_copy(&e->old, &e->mem);
	return 0;
}

static void init_loop(struct emu *e)
{
	uv_loop_init(&e->loop);
	uv_pipe_init(&e->loop, &e->control, 0);
	uv_timer_init(&e->loop, &e->down);
	uv_timer_init(&e->loop, &e->lost);
	uv_timer_init(&e->loop, &e->completion);
	uv_timer_init(&e->loop, &e->stop);
	/* A session may end while answers are on their way. */
	signal(SIGPIPE, SIG_IGN);
	uv_signal_init(&e->loop, &e->sigterm);
	uv_signal_init(&e->loop, &e->sigint);
	e->control.data = e->down.data = e;
	e->lost.data = e->stop.data = e->completion.data = e;
	e->sigterm.data = e->sigint.data = e;
	uv_signal_start(&e->sigterm, on_signal, SIGTERM);
	uv_signal_start(&e->sigint, on_signal, SIGINT);
}

static int init_device(struct emu *e, struct err *err)
{
	const struct emu_conf *c = &e->conf;
	enum drv_kind kind = e->dialect->kind;
	int rc;

	xc_map_init(&e->mem, kind, c->n_in, c->n_out, c->any_to_any);
	xc_map_init(&e->old, kind, c->n_in, c->n_out, c->any_to_any);
	rc = load_state(e, err);
	if (rc) {
		return rc;
	}
	emu_change_log_init(e);
	return 0;
}

/* A wiring that cannot be read is an error at the start, not at the first
 * measurement. */
static int start_plant(struct emu *e, struct err *err)
{
	int32_t mdbm;
	int rc;

	if (!e->conf.plant) {
		return 0;
	}
	if (e->dialect->kind == DRV_RING || e->conf.any_to_any) {
		return err_set(err, WEFT_EUNSUPPORTED, "--plant is for switches "
			       "with two sides");
	}
	rc = plant_arriving_mdbm(e->conf.plant, "", &mdbm, err);
	if (rc) {
		return rc;
	}
	return plant_publish(e, err);
}

/* From an open dialect to the end of the loop. When a step fails the loop
 * still runs once, to close its handles. */
static int serve(struct emu *e, struct err *err)
{
	int rc;

	e->dialect->open(e);
	if ((rc = start_plant(e, err)) || (rc = parse_listen(e, err)) ||
	    (rc = listen_start(e, err)) || (rc = emu_control_start(e, err)) ||
	    (rc = announce(e, err))) {
		emu_stop(e);
	} else {
		emu_apply_refuse(e);
	}
	uv_run(&e->loop, UV_RUN_DEFAULT);
	e->dialect->close(e);
	if (e->conf.control) {
		unlink(e->conf.control);
	}
	return rc;
}

/* The dialect by the driver's name, and whether it can have the size.
 * WEFT_EUSAGE. */
static int find_dialect(struct emu *e, struct err *err)
{
	const char *wrong;

	for (int i = 0; i < N_DIALECTS; i++) {
		if (strcmp(dialects[i]->name, e->conf.driver) == 0) {
			e->dialect = dialects[i];
		}
	}
	if (!e->dialect) {
		return err_set(err, WEFT_EUSAGE, "no emulator of '%s'", e->conf.driver);
	}
	wrong = emu_set_form(e, e->conf.form);
	if (wrong) {
		return err_set(err, WEFT_EUSAGE, "%s, form '%s': %s", e->conf.driver, e->conf.form,
			       wrong);
	}
	if (e->conf.n_in > (e->dialect->kind == DRV_RING ? UINT16_MAX : 4096) ||
	    e->conf.n_out > (e->dialect->kind == DRV_RING ? UINT16_MAX : 4096) ||
	    e->conf.fibres < 1) {
		return err_set(err, WEFT_EUSAGE, "size %dx%d is not supported",
			       e->conf.n_in, e->conf.n_out);
	}
	return 0;
}

/* The faults of the command line are added when the device has its size, by
 * which their ports are checked, and before anything is served. */
static int run(struct emu *e, const struct emu_args *args, struct err *err)
{
	int rc = find_dialect(e, err);

	if (rc) {
		return rc;
	}
	e->faults.mem = &e->mem;
	rng_seed(&e->faults.rng, e->conf.seed);
	rc = init_device(e, err);
	for (int i = 0; rc == 0 && i < args->n_faults; i++) {
		rc = faults_add(&e->faults, args->faults[i], err);
	}
	if (rc == 0) {
		init_loop(e);
		rc = serve(e, err);
		uv_loop_close(&e->loop);
	}
	emu_forget_later(e);
	xc_map_fini(&e->mem);
	xc_map_fini(&e->old);
	emu_change_log_fini(e);
	faults_fini(&e->faults);
	return rc;
}

int emulator_main(int argc, char **argv)
{
	struct emu_args args = { 0 };
	struct emu *e = x_new(1, sizeof(*e));
	struct err err = { 0 };
	int rc = emu_args_parse(&args, argc, argv, &err);

	if (rc == 0 && args.help) {
		emu_usage(stdout);
	} else if (rc == 0 && args.version) {
		version_print("weft-emulator");
	} else if (rc == 0) {
		e->conf = args.conf;
		rc = run(e, &args, &err);
	}
	if (rc) {
		fprintf(stderr, "weft-emulator: %s\n", err.msg);
	}
	free(args.faults);
	free(e);
	return err_exit_code(rc);
}
