/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page to look at: its files, and what it shows as JSON. A browser asks
 * for everything once (/state.json) and then for the next thing that is new
 * (/live.json?after=VERSION), which is answered when there is one. Both come
 * over plain HTTP on loopback, or over the gRPC listener with a viewer's
 * certificate. Read-only: nothing here changes anything.
 */
#include "controller/webui/webui.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "controller/daemon/views/private.h"
#include "controller/proto_convert/report.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/http/http.h"

#define MAX_CLIENTS 64		/* connections; and those who wait */
#define PACE_MS 100		/* between two versions that are sent */
#define HOLD_NS INT64_C(20000000000)	/* a question is kept no longer */
#define LINES 64		/* of a change, the newest */
#define EVENTS 50
#define FAULTS 64	/* of a ring */
#define NS_PER_MS INT64_C(1000000)
#define SAMPLE_MS 1000	/* between two samples of the history */

/* A browser that has asked, over either listener; in the list while it waits. */
struct webui_client {
	TAILQ_ENTRY(webui_client) link;
	struct webui *page;
	struct http_request *http;	/* this, */
	struct rpc_call *call;		/* or this */
	int64_t after;		/* the version that it has */
	int64_t since_ns;	/* monotonic: since when it waits */
};

/* One event of a change; longer texts are cut. */
struct progress_line {
	char phase[32], device[CONF_MAX_NAME + 1], text[160];
	bool is_problem;
};

/* The change that runs, or the last one since the start. */
struct change_progress {
	bool known;		/* false: none since the start */
	bool running;
	char who[128], comment[128];
	char result[32], problem[ERR_MSG_MAX];	/* "" while it runs */
	int done, total;	/* as struct apply_event has them */
	int64_t began_ns, ended_ns;	/* wall clock; 0: not yet */
	int n_lines;		/* ever */
	struct progress_line lines[LINES];	/* line i is at i % LINES */
};

struct webui {
	const struct views *views;
	struct http_server *http;	/* NULL: only over gRPC's listener */
	uv_timer_t timer;		/* runs while a client waits */
	TAILQ_HEAD(, webui_client) clients;	/* that wait, n_clients */
	int n_clients;
	int64_t version;	/* of what is known; grows over restarts */
	int64_t built_version;	/* that `built` shows; 0: none */
	int64_t built_ns;	/* monotonic: when */
	struct buf built;	/* JSON without its last brace */
	struct change_progress progress;
	struct page_history *history;
	struct part_timer *sampler;	/* to the next sample */
	bool will_sample;	/* it runs */
	int64_t sampled_ns;	/* monotonic: the last one; 0: none */
};

/* ---- answers ------------------------------------------------------------- */

#define POLICY "default-src 'none'; script-src 'self'; style-src 'self'; " \
	"img-src 'self'; connect-src 'self'; base-uri 'none'; " \
	"form-action 'none'; frame-ancestors 'none'; " \
	"require-trusted-types-for 'script'; trusted-types 'none'"

/* Both kinds of listeners take the same fields, so that one list serves both. */
_Static_assert(sizeof(struct http_header) == sizeof(struct rpc_header),
	       "headers of both listeners");

/* Answers over the listener that the client came by, and forbids the browser
 * everything that the page does not need. */
static void answer(const struct webui_client *a, int status, const char *type,
		   const void *body, size_t len)
{
	const struct rpc_header headers[] = {
		{ "content-type", type },
		{ "content-security-policy", POLICY },
		{ "x-content-type-options", "nosniff" },
		{ "referrer-policy", "no-referrer" },
		{ "cross-origin-resource-policy", "same-origin" },
		{ "cross-origin-opener-policy", "same-origin" },
		{ "cache-control", "no-store" },
		{ NULL, NULL },
	};

	if (a->call) {
		rpc_answer(a->call, status, headers, body, len);
	} else {
		http_answer(a->http, status, (const struct http_header *)headers, body, len);
	}
}

static void answer_text(const struct webui_client *a, int status, const char *text)
{
	answer(a, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* ---- the state as JSON ---------------------------------------------------- */

static void out_line(struct out *o, const struct progress_line *l)
{
	out_object(o, NULL);
	out_str(o, "phase", l->phase);
	out_str(o, "device", l->device);
	out_str(o, "text", l->text);
	out_bool(o, "is_problem", l->is_problem);
	out_end(o);
}

/* The change and its newest lines, oldest first; null when there was none. */
static void out_progress(struct out *o, const struct change_progress *p)
{
	int first = p->n_lines > LINES ? p->n_lines - LINES : 0;

	if (!p->known) {
		out_null(o, "progress");
		return;
	}
	out_object(o, "progress");
	out_bool(o, "running", p->running);
	out_str(o, "who", p->who);
	out_str(o, "comment", p->comment);
	msg_out_time(o, "began_at", p->began_ns);
	msg_out_time(o, "ended_at", p->ended_ns);
	out_int(o, "done", p->done);
	out_int(o, "total", p->total);
	out_str(o, "result", p->result);
	out_str(o, "problem", p->problem);
	out_array(o, "lines");
	for (int i = first; i < p->n_lines; i++) {
		out_line(o, &p->lines[i % LINES]);
	}
	out_end(o);
	out_end(o);
}

/* [device, part, direction, fibre, node, channel] of what failed, for drawings; see enum
 * ring_part. Status says the same in words. */
static void out_fault(struct out *o, const char *device, const struct ring_fault *f)
{
	const int64_t fields[] = { f->part, f->dir, f->fibre, f->node, f->channel };

	out_array(o, NULL);
	out_str(o, NULL, device);
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		out_int(o, NULL, fields[i]);
	}
	out_end(o);
}

/* Of all rings, the first FAULTS each. */
static void out_faults(struct out *o, const struct daemon_env *env)
{
	const struct apply_device *a;
	int n;

	a = apply_devices(env->apply, &n);
	out_array(o, "faults");
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < a[i].snap.n_dead && k < FAULTS; k++) {
			out_fault(o, a[i].name, &a[i].snap.dead[k]);
		}
	}
	out_end(o);
}

/* Everything that the page shows, but the picture. */
static int describe(struct webui *page, struct out *o, struct err *err)
{
	const struct views *d = page->views;
	struct daemon_status *s = NULL;
	int r = daemon_status_new(d, &s, err);

	if (r) {
		return r;
	}
	out_int(o, "version", page->version);
	out_int(o, "picture_id", job_status_rows(d->job_status)->picture_id);
	out_int(o, "history", page_history_newest(page->history));
	msg_out_time(o, "at", clk_wall_ns());
	out_object(o, "status");
	msg_out_status(o, OUT_JSON, true, daemon_status_message(s));
	out_end(o);
	daemon_status_free(s);
	out_faults(o, d->env);
	out_progress(o, &page->progress);
	event_stream_out(d->env->events, o, EVENTS);
	jobs_out(d->jobs, o);
	return 0;
}

/* Renders it once for all clients of this version. The last brace is left off, as
 * each client may get the picture too, which is large and seldom wanted. */
static int build(struct webui *page, struct err *err)
{
	struct buf *b = &page->built;
	struct out *o = out_new(OUT_JSON);
	int r = describe(page, o, err);

	buf_reset(b);
	if (r == 0) {
		out_render(o, b);
	}
	out_free(o);
	while (r == 0 && b->len > 0 && b->data[b->len - 1] != '}') {
		b->len--;
	}
	b->len -= r == 0;
	page->built_version = page->version;
	page->built_ns = clk_now_ns();
	return r;
}

/* Answers with what is known now, and the picture if that is wanted: JSON, or 500 and
 * a line in the log. */
static void send_state(struct webui *page, const struct webui_client *a, bool with_picture)
{
	const struct job_rows *rows = job_status_rows(page->views->job_status);
	struct err err = { 0 };
	struct buf b = { 0 };
	int r = page->built_version == page->version ? 0 : build(page, &err);

	buf_add(&b, buf_cstr(&page->built), page->built.len);
	if (with_picture && rows->picture) {
		buf_str(&b, ",\"picture\":");
		buf_add(&b, rows->picture, rows->picture_len);
	} else if (with_picture) {
		buf_str(&b, ",\"picture\":null");
	}
	buf_str(&b, "}\n");
	if (r) {
		log_warn("weftd", "page: %s", err.msg);
		page->built_version = 0;
		answer_text(a, 500, "the state cannot be shown\n");
	} else {
		answer(a, 200, "application/json", b.data, b.len);
	}
	buf_fini(&b);
}

static void send_buf(const struct webui_client *a, struct buf *b)
{
	answer(a, 200, "application/json", buf_cstr(b), b->len);
	buf_fini(b);
}

static void send_history(const struct webui *page, const struct webui_client *a)
{
	struct buf b = { 0 };

	page_history_out(page->history, a->after, &b);
	send_buf(a, &b);
}

/* The schedules of the picture's jobs; without jobs there are none. */
static void send_steps(const struct webui *page, const struct webui_client *a)
{
	const struct job_rows *rows = job_status_rows(page->views->job_status);
	struct buf b = { 0 };

	buf_printf(&b, "{\"picture_id\":%lld,\"schedules\":", (long long)rows->picture_id);
	if (rows->steps) {
		buf_add(&b, rows->steps, rows->steps_len);
	} else {
		buf_str(&b, "{\"jobs\":[]}");
	}
	buf_str(&b, "}\n");
	send_buf(a, &b);
}

/* ---- those who wait ------------------------------------------------------ */

/* Its question was answered, or its client is gone. Frees a. */
static void leave(struct webui_client *a)
{
	struct webui *page = a->page;

	TAILQ_REMOVE(&page->clients, a, link);
	free(a);
	if (--page->n_clients == 0) {
		uv_timer_stop(&page->timer);
	}
}

/* Answers those for whom there is something new, and those who have waited for
 * HOLD_NS, with what they know already. */
static void on_timer(uv_timer_t *timer)
{
	struct webui *page = timer->data;
	int64_t now = clk_now_ns();
	struct webui_client *a, *next;

	for (a = TAILQ_FIRST(&page->clients); a; a = next) {
		next = TAILQ_NEXT(a, link);
		if (page->version > a->after || now - a->since_ns > HOLD_NS) {
			send_state(page, a, false);
			leave(a);
		}
	}
}

static void on_call_gone(struct rpc_call *call, void *arg)
{
	(void)call;
	leave(arg);
}

static void on_client_gone(struct http_request *q, void *arg)
{
	struct webui_client *a = arg;

	(void)q;
	answer_text(a, 503, "");
	leave(a);
}

/* Keeps a copy of who until there is something new; the timer runs meanwhile. */
static void wait_for_change(struct webui *page, const struct webui_client *who)
{
	struct webui_client *a;

	if (page->n_clients >= MAX_CLIENTS) {
		answer_text(who, 503, "too many wait\n");
		return;
	}
	a = x_alloc(1, sizeof(*a));
	*a = *who;
	a->page = page;
	a->since_ns = clk_now_ns();
	TAILQ_INSERT_TAIL(&page->clients, a, link);
	if (a->call) {
		rpc_call_on_cancel(a->call, on_call_gone, a);
	} else {
		http_on_gone(a->http, on_client_gone, a);
	}
	if (page->n_clients++ == 0) {
		uv_timer_start(&page->timer, on_timer, PACE_MS, PACE_MS);
	}
}

/* At once when it is known; but many changes in a row are sent as one: status is not
 * built again within PACE_MS. */
static void send_live(struct webui *page, const struct webui_client *a)
{
	int64_t age = clk_now_ns() - page->built_ns;

	if (a->after != page->version && (page->built_version == page->version ||
					  age > PACE_MS * NS_PER_MS)) {
		send_state(page, a, false);
	} else {
		wait_for_change(page, a);
	}
}

/* ---- requests ------------------------------------------------------------ */

/* A file of the page, its state, or what is new; after: the text of the query's
 * number, NULL without one. page NULL: weftd is stopping. */
static void serve(struct webui *page, struct webui_client *a, const char *path, const char *after)
{
	const struct page_file *f = page_find(path);

	a->after = after ? strtoll(after, NULL, 10) : 0;
	if (!page) {
		answer_text(a, 503, "weftd is stopping\n");
	} else if (f) {
		answer(a, 200, f->type, f->data, f->len);
	} else if (strcmp(path, "/state.json") == 0) {
		send_state(page, a, true);
	} else if (strcmp(path, "/live.json") == 0) {
		send_live(page, a);
	} else if (strcmp(path, "/history.json") == 0) {
		send_history(page, a);
	} else if (strcmp(path, "/steps.json") == 0) {
		send_steps(page, a);
	} else {
		answer_text(a, 404, "there is no such page\n");
	}
}

static void on_http(struct http_request *q, void *arg)
{
	struct webui_client a = { .http = q };

	serve(arg, &a, http_path(q), http_query(q, "after"));
}

void webui_get(struct webui *w, struct rpc_call *call)
{
	static const char key[] = "?after=";
	struct webui_client a = { .call = call };
	const char *whole = rpc_call_path(call);
	size_t len = strcspn(whole, "?");
	char path[64] = "";

	if (len < sizeof(path)) {
		memcpy(path, whole, len);
		path[len] = '\0';
	}
	serve(w, &a, path, strncmp(whole + len, key, strlen(key)) == 0
				   ? whole + len + strlen(key) : NULL);
}

void webui_answer_text(struct rpc_call *call, int status, const char *text)
{
	const struct webui_client a = { .call = call };

	answer_text(&a, status, text);
}

/* ---- what changes -------------------------------------------------------- */

static void on_sample(void *arg)
{
	struct webui *w = arg;

	w->will_sample = false;
	w->sampled_ns = clk_now_ns();
	page_history_take(w->history, w->views);
	w->version++;	/* whoever waits asks for the sample */
}

/* A sample of what has changed, once the parts are done with it; what comes within
 * SAMPLE_MS of the last one waits. */
void webui_changed(struct webui *w)
{
	int64_t age_ms;

	if (!w) {
		return;
	}
	w->version++;
	if (!w->will_sample) {
		age_ms = w->sampled_ns ? (clk_now_ns() - w->sampled_ns) / NS_PER_MS : SAMPLE_MS;
		w->will_sample = true;
		part_timer_start(w->sampler, age_ms < SAMPLE_MS ? SAMPLE_MS - age_ms : 0);
	}
}

void webui_begin_change(struct webui *w, const char *who, const char *comment)
{
	struct change_progress *p;

	if (!w) {
		return;
	}
	p = &w->progress;
	*p = (struct change_progress){ .known = true, .running = true,
				       .began_ns = clk_wall_ns() };
	snprintf(p->who, sizeof(p->who), "%s", who);
	snprintf(p->comment, sizeof(p->comment), "%s", comment);
	w->version++;
}

void webui_progress(struct webui *w, const struct apply_event *ev)
{
	struct change_progress *p;
	struct progress_line *l;

	if (!w) {
		return;
	}
	p = &w->progress;
	l = &p->lines[p->n_lines++ % LINES];
	snprintf(l->phase, sizeof(l->phase), "%s", ev->phase);
	snprintf(l->device, sizeof(l->device), "%s", ev->device);
	snprintf(l->text, sizeof(l->text), "%s", ev->text);
	l->is_problem = ev->is_problem;
	p->done = ev->done;
	p->total = ev->total;
	w->version++;
}

void webui_end_change(struct webui *w, const char *verdict, const struct err *err)
{
	struct change_progress *p;

	if (!w) {
		return;
	}
	p = &w->progress;
	p->running = false;
	p->ended_ns = clk_wall_ns();
	snprintf(p->result, sizeof(p->result), "%s", verdict);
	snprintf(p->problem, sizeof(p->problem), "%s", err ? err->msg : "");
	w->version++;
}

/* ---- life ---------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *h)
{
	struct webui *w = h->data;

	buf_fini(&w->built);
	free(w);
}

void webui_free(struct webui *w)
{
	struct webui_client *a;

	if (!w) {
		return;
	}
	while ((a = TAILQ_FIRST(&w->clients))) {
		answer_text(a, 503, "weftd is stopping\n");
		leave(a);
	}
	http_server_free(w->http);
	part_timer_free(w->sampler);
	page_history_free(w->history);
	uv_close((uv_handle_t *)&w->timer, on_timer_closed);
}

int webui_new(const struct views *views, const char *host, int port,
	      struct webui **out, struct err *err)
{
	struct webui *w = x_new(1, sizeof(*w));
	const struct http_config cfg = {
		.option = "--page", .host = host, .port = port,
		.max_conns = MAX_CLIENTS, .handler = on_http, .arg = w,
	};
	int r;

	w->views = views;
	w->version = clk_wall_ns() / 1000;
	TAILQ_INIT(&w->clients);
	uv_timer_init(views->env->loop, &w->timer);
	w->timer.data = w;
	w->history = page_history_new();
	w->sampler = part_timer_new(views->env, on_sample, w);
	if (host && (r = http_server_new(views->env->loop, &cfg, &w->http, err))) {
		webui_free(w);
		return r;
	}
	*out = w;
	return 0;
}

int webui_port(const struct webui *w)
{
	return w->http ? http_server_port(w->http) : 0;
}
