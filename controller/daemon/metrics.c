/*
 * Prometheus metrics: GET /metrics over HTTP/1 on a loopback address, one
 * answer a connection. Labels are devices, methods and outcomes, never
 * circuits or hosts, so their number stays small; nothing secret is told.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/private.h"
#include "lib/base/buf.h"
#include "lib/base/log.h"

#define MAX_CLIENTS 16
#define MAX_REQUEST 4096
#define TIMEOUT_MS 5000
#define NS_PER_S 1e9

/* Lives until the loop has closed all handles, which may be after the
 * daemon. */
struct metrics {
	uv_tcp_t listener;
	struct daemon *d;	/* NULL: closing */
	int n_clients, n_open;	/* clients; the listener and clients */
	LIST_HEAD(, client) clients;
};

struct client {
	LIST_ENTRY(client) link;
	struct metrics *m;
	uv_tcp_t tcp;
	uv_timer_t timer;
	uv_write_t write;
	int n_handles;
	size_t n_in;
	char in[MAX_REQUEST + 1];
	struct buf out;
	bool answered;
};

/* ---- what is told -------------------------------------------------------- */

static const double bounds[DAEMON_BUCKETS] = { 0.1, 0.5, 1, 5, 10, 30, 60 };

void daemon_count_change(struct daemon *d, const struct apply_result *res)
{
	struct counts *c = &d->counts;
	double seconds = (double)res->took_ns / NS_PER_S;

	c->changes[res->verdict]++;
	c->change_seconds += seconds;
	for (int i = 0; i < DAEMON_BUCKETS; i++) {
		c->buckets[i] += seconds <= bounds[i];
	}
}

void daemon_count_call(struct daemon *d, const char *path)
{
	for (int i = 0; i < DAEMON_MAX_METHODS && d->methods[i].path; i++) {
		if (strcmp(d->methods[i].path, path) == 0) {
			d->counts.calls[i]++;
			return;
		}
	}
}

static void head(struct buf *b, const char *name, const char *type,
		 const char *help)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void gauge(struct buf *b, const char *name, const char *help, int64_t v)
{
	head(b, name, "gauge", help);
	buf_printf(b, "%s %" PRId64 "\n", name, v);
}

static void tell_devices(struct daemon *d, struct buf *b)
{
	const struct apply_device *a;
	int n;

	a = apply_devices(d->apply, &n);
	head(b, "weft_device_up", "gauge",
	     "Whether the device answered when it was last asked.");
	for (int i = 0; i < n; i++) {
		if (a[i].driver && a[i].driver[0]) {
			buf_printf(b, "weft_device_up{device=\"%s\","
				   "driver=\"%s\"} %d\n", a[i].name,
				   a[i].driver, a[i].reachable);
		}
	}
	head(b, "weft_device_last_read_seconds", "gauge",
	     "Unix time of the device's last reading.");
	for (int i = 0; i < n; i++) {
		if (a[i].ever_read) {
			buf_printf(b, "weft_device_last_read_seconds{device="
				   "\"%s\"} %.3f\n", a[i].name,
				   (double)a[i].read_at_ns / NS_PER_S);
		}
	}
	head(b, "weft_drift_circuits", "gauge",
	     "Circuits that are not as intended.");
	for (int i = 0; i < n; i++) {
		buf_printf(b, "weft_drift_circuits{device=\"%s\",kind="
			   "\"missing\"} %d\nweft_drift_circuits{device=\"%s\""
			   ",kind=\"unexpected\"} %d\n", a[i].name,
			   a[i].n_missing, a[i].name, a[i].n_unexpected);
	}
}

static void tell_changes(const struct counts *c, struct buf *b)
{
	int64_t n = 0;

	head(b, "weft_apply_total", "counter",
	     "Changes that have ended, by outcome.");
	for (int v = 0; v <= APPLY_STUCK; v++) {
		buf_printf(b, "weft_apply_total{outcome=\"%s\"} %" PRId64 "\n",
			   apply_verdict_name((enum apply_verdict)v),
			   c->changes[v]);
		n += c->changes[v];
	}
	head(b, "weft_apply_duration_seconds", "histogram",
	     "How long changes took, from the journal to the proof.");
	for (int i = 0; i < DAEMON_BUCKETS; i++) {
		buf_printf(b, "weft_apply_duration_seconds_bucket{le=\"%g\"} "
			   "%" PRId64 "\n", bounds[i], c->buckets[i]);
	}
	buf_printf(b, "weft_apply_duration_seconds_bucket{le=\"+Inf\"} %" PRId64
		   "\nweft_apply_duration_seconds_sum %.9g\n"
		   "weft_apply_duration_seconds_count %" PRId64 "\n",
		   n, c->change_seconds, n);
}

static void tell_calls(const struct daemon *d, struct buf *b)
{
	head(b, "grpc_server_started_total", "counter",
	     "Calls that were begun, refused ones as well.");
	for (int i = 0; i < DAEMON_MAX_METHODS && d->methods[i].path; i++) {
		const char *service = d->methods[i].path + 1;
		const char *slash = strchr(service, '/');

		buf_printf(b, "grpc_server_started_total{grpc_service=\"%.*s\","
			   "grpc_method=\"%s\"} %" PRId64 "\n",
			   (int)(slash - service), service, slash + 1,
			   d->counts.calls[i]);
	}
}

static void tell(struct daemon *d, struct buf *b)
{
	struct err err;

	head(b, "weft_build_info", "gauge", "The version that runs.");
	buf_str(b, "weft_build_info{version=\"" DAEMON_VERSION "\"} 1\n");
	gauge(b, "weft_generation", "Generation of the fabric.",
	      store_generation(d->store));
	gauge(b, "weft_reading", "1 while devices are not known.", d->reading);
	gauge(b, "weft_changing", "1 while a change runs.", d->change != NULL);
	gauge(b, "weft_confirm_waiting",
	      "1 while a change waits for its confirmation.",
	      d->confirm.change != 0);
	gauge(b, "weft_frozen", "1 while every change is refused.",
	      daemon_check_frozen(d, &err) != 0);
	gauge(b, "weft_holds", "Drained parts of the fabric.",
	      d->n_holds - (daemon_check_frozen(d, &err) != 0));
	tell_devices(d, b);
	tell_changes(&d->counts, b);
	tell_calls(d, b);
}

/* ---- HTTP ---------------------------------------------------------------- */

static void one_closed(struct metrics *m)
{
	if (--m->n_open == 0) {
		free(m);
	}
}

static void on_client_closed(uv_handle_t *h)
{
	struct client *c = h->data;

	if (--c->n_handles == 0) {
		struct metrics *m = c->m;

		m->n_clients--;
		LIST_REMOVE(c, link);
		buf_fini(&c->out);
		free(c);
		one_closed(m);
	}
}

static void drop(struct client *c)
{
	if (!uv_is_closing((uv_handle_t *)&c->tcp)) {
		uv_close((uv_handle_t *)&c->tcp, on_client_closed);
		uv_close((uv_handle_t *)&c->timer, on_client_closed);
	}
}

static void on_timeout(uv_timer_t *timer)
{
	drop(timer->data);
}

static void on_written(uv_write_t *w, int status)
{
	(void)status;
	drop(w->data);
}

static void answer(struct client *c, const char *status, bool with_metrics)
{
	struct buf body = { 0 };
	uv_buf_t bytes;

	if (with_metrics) {
		tell(c->m->d, &body);
	} else {
		buf_printf(&body, "%s\n", status);
	}
	buf_printf(&c->out, "HTTP/1.1 %s\r\nContent-Type: text/plain; "
		   "version=0.0.4; charset=utf-8\r\nContent-Length: %zu\r\n"
		   "Connection: close\r\n\r\n", status, body.len);
	buf_add(&c->out, buf_cstr(&body), body.len);
	c->out.failed |= body.failed;
	buf_fini(&body);
	c->answered = true;
	bytes = uv_buf_init(c->out.data, (unsigned)c->out.len);
	if (c->out.failed ||
	    uv_write(&c->write, (uv_stream_t *)&c->tcp, &bytes, 1,
		     on_written)) {
		drop(c);
	}
}

/* Answers once the request's headers are complete; they are not looked at. */
static void look(struct client *c)
{
	static const char path[] = "/metrics";
	const char *rest = c->in + 4 + strlen(path);

	if (!strstr(c->in, "\r\n\r\n")) {
		if (c->n_in == MAX_REQUEST) {
			answer(c, "431 Request Header Fields Too Large",
			       false);
		}
		return;
	}
	if (strncmp(c->in, "GET ", 4) != 0) {
		answer(c, "405 Method Not Allowed", false);
	} else if (strncmp(c->in + 4, path, strlen(path)) != 0 ||
		   (*rest != ' ' && *rest != '?')) {
		answer(c, "404 Not Found", false);
	} else {
		answer(c, "200 OK", true);
	}
}

static void on_alloc(uv_handle_t *h, size_t size, uv_buf_t *b)
{
	struct client *c = h->data;

	(void)size;
	*b = uv_buf_init(c->in + c->n_in, (unsigned)(MAX_REQUEST - c->n_in));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
	struct client *c = stream->data;

	(void)b;
	if (n < 0) {
		drop(c);
		return;
	}
	c->n_in += (size_t)n;
	c->in[c->n_in] = '\0';
	look(c);
	if (c->answered) {
		uv_read_stop(stream);
	}
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct metrics *m = listener->data;
	struct client *c = status ? NULL : calloc(1, sizeof(*c));

	if (!c) {
		return;
	}
	c->m = m;
	c->tcp.data = c->timer.data = c->write.data = c;
	uv_tcp_init(listener->loop, &c->tcp);
	uv_timer_init(listener->loop, &c->timer);
	c->n_handles = 2;
	m->n_clients++;
	m->n_open++;
	LIST_INSERT_HEAD(&m->clients, c, link);
	if (uv_accept(listener, (uv_stream_t *)&c->tcp) ||
	    m->n_clients > MAX_CLIENTS || !m->d ||
	    uv_timer_start(&c->timer, on_timeout, TIMEOUT_MS, 0) ||
	    uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read)) {
		drop(c);
	}
}

/* ---- life ---------------------------------------------------------------- */

static void on_listener_closed(uv_handle_t *h)
{
	one_closed(h->data);
}

static bool is_loopback(const struct sockaddr_storage *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;

	return a->ss_family == AF_INET
		       ? ntohl(v4->sin_addr.s_addr) >> 24 == 127
		       : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

int daemon_metrics_start(struct daemon *d, const char *host, int port,
			 struct err *err)
{
	struct sockaddr_storage addr;
	struct metrics *m;
	int r;

	if (uv_ip4_addr(host, port, (struct sockaddr_in *)&addr) &&
	    uv_ip6_addr(host, port, (struct sockaddr_in6 *)&addr)) {
		return err_set(err, WEFT_EINVAL, "--metrics: \"%s\" is not an "
			       "address", host);
	}
	if (!is_loopback(&addr)) {
		return err_set(err, WEFT_EINVAL, "--metrics: %s is not a "
			       "loopback address", host);
	}
	m = calloc(1, sizeof(*m));
	if (!m) {
		return err_nomem(err);
	}
	m->d = d;
	m->n_open = 1;
	LIST_INIT(&m->clients);
	m->listener.data = m;
	uv_tcp_init(d->loop, &m->listener);
	d->metrics = m;
	r = uv_tcp_bind(&m->listener, (struct sockaddr *)&addr, 0);
	r = r ? r : uv_listen((uv_stream_t *)&m->listener, MAX_CLIENTS,
			      on_connection);
	if (r) {
		daemon_metrics_stop(d);
		return err_set(err, WEFT_EIO, "--metrics: %s port %d: %s", host,
			       port, uv_strerror(r));
	}
	return 0;
}

void daemon_metrics_stop(struct daemon *d)
{
	struct metrics *m = d->metrics;
	struct client *c;

	if (!m) {
		return;
	}
	d->metrics = NULL;
	m->d = NULL;
	uv_close((uv_handle_t *)&m->listener, on_listener_closed);
	LIST_FOREACH(c, &m->clients, link) {
		drop(c);
	}
}

int daemon_metrics_port(const struct daemon *d)
{
	struct sockaddr_storage addr;
	int len = sizeof(addr);

	if (!d->metrics || uv_tcp_getsockname(&d->metrics->listener,
					      (struct sockaddr *)&addr, &len)) {
		return 0;
	}
	return addr.ss_family == AF_INET
		       ? ntohs(((struct sockaddr_in *)&addr)->sin_port)
		       : ntohs(((struct sockaddr_in6 *)&addr)->sin6_port);
}
