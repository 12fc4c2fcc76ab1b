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

#include "controller/daemon/core/private.h"
#include "controller/proto_convert/report.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define MAX_CLIENTS 64		/* connections; and those who wait */
#define PACE_MS 100		/* between two versions that are told */
#define HOLD_NS INT64_C(20000000000)	/* a question is kept no longer */
#define LINES 64		/* of a change, the newest */
#define EVENTS 50
#define NS_PER_MS INT64_C(1000000)

/* Who asks, whichever way. */
struct asker {
	TAILQ_ENTRY(asker) link;
	struct page *page;
	struct http_request *http;	/* this, */
	struct rpc_call *call;		/* or this */
	int64_t after, since_ns;
};

struct line {
	char phase[32], device[CONF_MAX_NAME + 1], text[160];
	bool is_problem;
};

/* The change that runs, or the last one since the start. */
struct progress {
	bool known, running;
	char who[128], comment[128], result[32], problem[ERR_MSG_MAX];
	int done, total;
	int64_t began_ns, ended_ns;
	int n_lines;		/* ever */
	struct line lines[LINES];
};

struct page {
	struct daemon *d;
	struct http_server *http;	/* NULL: only over gRPC's listener */
	uv_timer_t timer;		/* runs while somebody waits */
	TAILQ_HEAD(, asker) askers;
	int n_askers;
	int64_t version;	/* of what is known; grows over restarts */
	int64_t built_version, built_ns;
	struct buf built;	/* JSON without its last brace */
	struct progress progress;
};

/* ---- answers ------------------------------------------------------------- */

#define POLICY "default-src 'none'; script-src 'self'; style-src 'self'; " \
	"img-src 'self'; connect-src 'self'; base-uri 'none'; " \
	"form-action 'none'; frame-ancestors 'none'; " \
	"require-trusted-types-for 'script'; trusted-types 'none'"

/* Both kinds of listeners take the same fields. */
_Static_assert(sizeof(struct http_header) == sizeof(struct rpc_header),
	       "headers of both listeners");

static void answer(const struct asker *a, int status, const char *type,
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
		http_answer(a->http, status,
			    (const struct http_header *)headers, body, len);
	}
}

static void answer_text(const struct asker *a, int status, const char *text)
{
	answer(a, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* ---- what is told -------------------------------------------------------- */

static void out_line(struct out *o, const struct line *l)
{
	out_object(o, NULL);
	out_str(o, "phase", l->phase);
	out_str(o, "device", l->device);
	out_str(o, "text", l->text);
	out_bool(o, "is_problem", l->is_problem);
	out_end(o);
}

static void out_progress(struct out *o, const struct progress *p)
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
	wire_out_time(o, "began_at", p->began_ns);
	wire_out_time(o, "ended_at", p->ended_ns);
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

static int describe(struct page *page, struct out *o, struct err *err)
{
	struct daemon *d = page->d;
	struct daemon_status *s = NULL;
	int r = daemon_status_new(d, &s, err);

	if (r) {
		return r;
	}
	out_int(o, "version", page->version);
	out_int(o, "picture_id", d->jobs.picture_id);
	wire_out_time(o, "at", clk_wall_ns());
	out_object(o, "status");
	wire_out_status(o, OUT_JSON, true, daemon_status_message(s));
	out_end(o);
	daemon_status_free(s);
	out_progress(o, &page->progress);
	daemon_out_events(d, o, EVENTS);
	return jobs_out(d->orders, o, err);
}

static int build(struct page *page, struct err *err)
{
	struct buf *b = &page->built;
	struct out *o = out_new(OUT_JSON);
	int r = o ? describe(page, o, err) : err_nomem(err);

	buf_reset(b);
	if (r == 0) {
		r = out_render(o, b) ? err_nomem(err) : 0;
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

/* Answers with what is known now, and the picture if that is wanted. */
static void tell(struct page *page, const struct asker *a, bool with_picture)
{
	const struct job_rows *rows = &page->d->jobs;
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
	if (r || b.failed) {
		log_warn("weftd", "page: %s", r ? err.msg : "out of memory");
		page->built_version = 0;
		answer_text(a, 500, "the state cannot be told\n");
	} else {
		answer(a, 200, "application/json", b.data, b.len);
	}
	buf_fini(&b);
}

/* ---- those who wait ------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

static void leave(struct asker *a)
{
	struct page *page = a->page;

	TAILQ_REMOVE(&page->askers, a, link);
	free(a);
	if (--page->n_askers == 0) {
		uv_timer_stop(&page->timer);
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct page *page = timer->data;
	int64_t now = clk_now_ns();
	struct asker *a, *next;

	for (a = TAILQ_FIRST(&page->askers); a; a = next) {
		next = TAILQ_NEXT(a, link);
		if (page->version > a->after || now - a->since_ns > HOLD_NS) {
			tell(page, a, false);
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
	struct asker *a = arg;

	(void)q;
	answer_text(a, 503, "");
	leave(a);
}

static void wait_for_news(struct page *page, const struct asker *who)
{
	struct asker *a = page->n_askers < MAX_CLIENTS ? malloc(sizeof(*a))
						       : NULL;

	if (!a) {
		answer_text(who, 503, "too many wait\n");
		return;
	}
	*a = *who;
	a->page = page;
	a->since_ns = clk_now_ns();
	TAILQ_INSERT_TAIL(&page->askers, a, link);
	if (a->call) {
		rpc_call_on_cancel(a->call, on_call_gone, a);
	} else {
		http_on_gone(a->http, on_client_gone, a);
	}
	if (page->n_askers++ == 0) {
		uv_timer_start(&page->timer, on_timer, PACE_MS, PACE_MS);
	}
}

/* At once when it is known; but many changes in a row are told as one. */
static void news(struct page *page, const struct asker *a)
{
	int64_t age = clk_now_ns() - page->built_ns;

	if (a->after != page->version &&
	    (page->built_version == page->version ||
	     age > PACE_MS * NS_PER_MS)) {
		tell(page, a, false);
	} else {
		wait_for_news(page, a);
	}
}

/* ---- requests ------------------------------------------------------------ */

static void serve(struct daemon *d, struct asker *a, const char *path,
		  const char *after)
{
	const struct page_file *f = page_find(path);
	char *end;

	if (!d->page) {
		answer_text(a, 503, "weftd is stopping\n");
	} else if (f) {
		answer(a, 200, f->type, f->data, f->len);
	} else if (strcmp(path, "/state.json") == 0) {
		tell(d->page, a, true);
	} else if (strcmp(path, "/live.json") == 0) {
		a->after = after ? strtoll(after, &end, 10) : 0;
		news(d->page, a);
	} else {
		answer_text(a, 404, "there is no such page\n");
	}
}

static void on_http(struct http_request *q, void *arg)
{
	struct asker a = { .http = q };

	serve(arg, &a, http_path(q), http_query(q, "after"));
}

void daemon_page_get(struct rpc_call *call, void *arg)
{
	static const char key[] = "?after=";
	struct daemon *d = arg;
	struct asker a = { .call = call };
	struct err err = { 0 };
	const char *whole = rpc_call_path(call);
	size_t len = strcspn(whole, "?");
	char path[64] = "";

	if (len < sizeof(path)) {
		memcpy(path, whole, len);
		path[len] = '\0';
	}
	if (access_need(d->access, rpc_call_peer(call), ACCESS_VIEWER,
			"the page", &err)) {
		answer_text(&a, 403, err.msg);
		return;
	}
	if (d->standby) {
		standby_permit(d, whole, &err);
		answer_text(&a, 503, err.msg);
		return;
	}
	serve(d, &a, path, strncmp(whole + len, key, strlen(key)) == 0
				   ? whole + len + strlen(key) : NULL);
}

/* ---- what changes -------------------------------------------------------- */

void daemon_page_changed(struct daemon *d)
{
	if (d->page) {
		d->page->version++;
	}
}

void daemon_page_begins(struct daemon *d, const char *who, const char *comment)
{
	struct progress *p = d->page ? &d->page->progress : NULL;

	if (p) {
		*p = (struct progress){ .known = true, .running = true,
					.began_ns = clk_wall_ns() };
		snprintf(p->who, sizeof(p->who), "%s", who);
		snprintf(p->comment, sizeof(p->comment), "%s", comment);
		d->page->version++;
	}
}

void daemon_page_progress(struct daemon *d, const struct apply_event *ev)
{
	struct progress *p = d->page ? &d->page->progress : NULL;
	struct line *l;

	if (!p) {
		return;
	}
	l = &p->lines[p->n_lines++ % LINES];
	snprintf(l->phase, sizeof(l->phase), "%s", ev->phase);
	snprintf(l->device, sizeof(l->device), "%s", ev->device);
	snprintf(l->text, sizeof(l->text), "%s", ev->text);
	l->is_problem = ev->is_problem;
	p->done = ev->done;
	p->total = ev->total;
	d->page->version++;
}

void daemon_page_ended(struct daemon *d, const char *verdict,
		       const struct err *err)
{
	struct progress *p = d->page ? &d->page->progress : NULL;

	if (p) {
		p->running = false;
		p->ended_ns = clk_wall_ns();
		snprintf(p->result, sizeof(p->result), "%s", verdict);
		snprintf(p->problem, sizeof(p->problem), "%s",
			 err ? err->msg : "");
		d->page->version++;
	}
}

/* ---- life ---------------------------------------------------------------- */

int daemon_page_start(struct daemon *d, const char *host, int port,
		      struct err *err)
{
	const struct http_config cfg = {
		.option = "--page", .host = host, .port = port,
		.max_conns = MAX_CLIENTS, .handler = on_http, .arg = d,
	};
	struct page *page = calloc(1, sizeof(*page));

	if (!page) {
		return err_nomem(err);
	}
	page->d = d;
	page->version = clk_wall_ns() / 1000;
	TAILQ_INIT(&page->askers);
	uv_timer_init(d->loop, &page->timer);
	page->timer.data = page;
	d->page = page;
	return host ? http_server_new(d->loop, &cfg, &page->http, err) : 0;
}

static void on_timer_closed(uv_handle_t *h)
{
	struct page *page = h->data;

	buf_fini(&page->built);
	free(page);
}

void daemon_page_stop(struct daemon *d)
{
	struct page *page = d->page;
	struct asker *a;

	if (!page) {
		return;
	}
	d->page = NULL;
	while ((a = TAILQ_FIRST(&page->askers))) {
		answer_text(a, 503, "weftd is stopping\n");
		leave(a);
	}
	http_server_free(page->http);
	uv_close((uv_handle_t *)&page->timer, on_timer_closed);
}

int daemon_page_port(const struct daemon *d)
{
	return d->page && d->page->http ? http_server_port(d->page->http) : 0;
}
