/*
 * Prometheus metrics: GET /metrics over HTTP/1 on a loopback address. Labels are devices, methods and outcomes, never
 * circuits or hosts, so their number stays small; nothing secret is told.
 */
#include <inttypes.h>
#include <string.h>

#include "controller/daemon/private.h"
#include "lib/base/buf.h"
#include "lib/http/http.h"

#define MAX_CLIENTS 16
#define NS_PER_S 1e9

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

static void answer(struct http_request *q, void *arg)
{
	static const struct http_header headers[] = {
		{ "Content-Type", "text/plain; version=0.0.4; charset=utf-8" },
		{ NULL, NULL },
	};
	struct buf b = { 0 };
	int status = 200;

	if (strcmp(http_path(q), "/metrics") == 0) {
		tell(arg, &b);
	} else {
		status = 404;
		buf_str(&b, "Not Found\n");
	}
	http_answer(q, b.failed ? 500 : status, headers, buf_cstr(&b), b.len);
	buf_fini(&b);
}

int daemon_metrics_start(struct daemon *d, const char *host, int port,
			 struct err *err)
{
	const struct http_config cfg = {
		.option = "--metrics", .host = host, .port = port,
		.max_conns = MAX_CLIENTS, .handler = answer, .arg = d,
	};

	return http_server_new(d->loop, &cfg, &d->metrics, err);
}

void daemon_metrics_stop(struct daemon *d)
{
	http_server_free(d->metrics);
	d->metrics = NULL;
}

int daemon_metrics_port(const struct daemon *d)
{
	return d->metrics ? http_server_port(d->metrics) : 0;
}
