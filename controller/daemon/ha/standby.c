/*
 * Standing by while another weftd leads. The store is only read, and no device
 * is opened: many of them take one session at a time. What the store can tell
 * is answered; everything else names the leader.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/private.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define NS_PER_MS 1000000

struct standby {
	struct daemon *d;
	uv_timer_t timer;
	uv_signal_t term, intr;
	struct store_lease seen;
	int64_t seen_ns;	/* monotonic: when it was new; 0: never */
	char self[STORE_HOLDER_MAX];
	bool leads, stopped;
};

const char *standby_leader(const struct standby *s)
{
	return s->seen.holder[0] ? s->seen.holder : "nobody";
}

int standby_permit(struct daemon *d, const char *path, struct err *err)
{
	static const char *const answered[] = {
		"/weft.v1.Fabric/Status", "/weft.v1.Fabric/History",
		"/weft.v1.Fabric/Audit", "/weft.v1.Fabric/ExternalChanges",
		"/weft.v1.Jobs/ListJobs",
	};
	struct store_lease now;
	struct jobs *fresh;
	struct err ignored = { 0 };

	if (strncmp(path, "/grpc.", 6) == 0) {
		return 0;
	}
	for (size_t i = 0; i < sizeof(answered) / sizeof(*answered); i++) {
		if (strcmp(path, answered[i]) == 0) {
			/* As it is now; on_look finds out what it means. */
			store_lease(d->store, &now, &ignored);
			if (jobs_new(d, &fresh, &ignored) == 0) {
				jobs_free(d->orders);
				d->orders = fresh;
			}
			return 0;
		}
	}
	err_set(err, WEFT_EUNAVAIL, "this weftd stands by: %s leads",
		standby_leader(d->standby));
	err_hint(err, "ask the one that leads");
	return err->code;
}

/* ---- looking on ---------------------------------------------------------- */

static void close_all(struct standby *s)
{
	uv_close((uv_handle_t *)&s->timer, NULL);
	uv_close((uv_handle_t *)&s->term, NULL);
	uv_close((uv_handle_t *)&s->intr, NULL);
}

/* The engine has no device to close; the daemon goes once it has. */
static void on_apply_closed(void *arg)
{
	(void)arg;
}

static void on_server_stopped(void *arg)
{
	struct standby *s = arg;

	apply_free(s->d->apply, on_apply_closed, NULL);
	close_all(s);
}

static void end(struct standby *s)
{
	struct rpc_server *server = s->d->server;

	s->d->server = NULL;
	s->d->draining = true;
	daemon_health_changed(s->d);
	uv_timer_stop(&s->timer);
	if (server) {
		rpc_server_stop(server, 0, on_server_stopped, s);
	} else {
		on_server_stopped(s);
	}
}

static void take_over(struct standby *s)
{
	struct err err = { 0 };
	int r = store_lead(s->d->store, &s->seen, s->self, &err);

	if (r) {
		log_info("weftd", "%s", err.msg);
		s->seen_ns = 0;
		return;
	}
	log_warn("weftd", "%s%s; this one leads now (term %llu)",
		 s->seen.holder[0] ? s->seen.holder : "nobody",
		 s->seen.holder[0] ? " is silent" : " leads",
		 (unsigned long long)store_fence(s->d->store));
	s->leads = true;
	end(s);
}

static void look(struct standby *s)
{
	int64_t now = clk_now_ns();
	struct store_lease lease;
	struct err err = { 0 };

	if (store_lease(s->d->store, &lease, &err)) {
		log_warn("weftd", "%s", err.msg);
		s->seen_ns = 0;		/* what was not seen may have been */
		return;
	}
	if (!s->seen_ns || lease.beat != s->seen.beat ||
	    lease.term != s->seen.term) {
		if (strcmp(lease.holder, s->seen.holder) != 0) {
			log_info("weftd", "%s leads",
				 lease.holder[0] ? lease.holder : "nobody");
		}
		s->seen = lease;
		s->seen_ns = now;
	}
	if (!lease.holder[0] ||
	    now - s->seen_ns > s->d->cfg.lease_ms * NS_PER_MS) {
		take_over(s);
	}
}

static void on_look(uv_timer_t *timer)
{
	look(timer->data);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct standby *s = handle->data;

	(void)number;
	if (!s->stopped && !s->leads) {
		s->stopped = true;
		daemon_notify("STOPPING=1");
		end(s);
	}
}

/* ---- life ---------------------------------------------------------------- */

static int open_all(struct standby *s, struct daemon *d, struct err *err)
{
	const struct daemon_config *cfg = &d->cfg;
	struct store_config config;
	char path[512];
	int r;

	TAILQ_INIT(&d->watches);
	if ((r = daemon_events_init(d, err)) ||
	    (r = access_new(cfg->access, cfg->owner, &d->access, err)) ||
	    (r = daemon_store_path(cfg->state_dir, path, sizeof(path), err)) ||
	    (r = store_open_shared(path, &d->store, err)) ||
	    (r = daemon_holds_read(d, err)) ||
	    (r = jobs_new(d, &d->orders, err)) ||
	    (r = apply_new(d->loop, d->store, &d->apply, err))) {
		return r;
	}
	if (store_config(d->store, &config, NULL) == 0) {
		d->applied = true;
		store_config_fini(&config);
	}
	if (cfg->listen_host) {
		snprintf(s->self, sizeof(s->self), "%s:%d", cfg->listen_host,
			 cfg->listen_port);
	} else {
		snprintf(s->self, sizeof(s->self), "%s", cfg->socket);
	}
	return daemon_listen(d, cfg, err);
}

static void init_handles(struct standby *s, uv_loop_t *loop)
{
	uv_timer_init(loop, &s->timer);
	uv_signal_init(loop, &s->term);
	uv_signal_init(loop, &s->intr);
	s->timer.data = s->term.data = s->intr.data = s;
}

int standby_run(uv_loop_t *loop, const struct daemon_config *cfg,
		struct store **led, struct err *err)
{
	struct daemon *d = calloc(1, sizeof(*d));
	struct standby s = { .d = d };
	int r;

	if (!d) {
		return err_nomem(err);
	}
	d->loop = loop;
	d->cfg = *cfg;
	d->standby = &s;
	init_handles(&s, loop);
	r = open_all(&s, d, err);
	if (r) {
		if (d->apply) {
			apply_free(d->apply, on_apply_closed, NULL);
		}
		close_all(&s);
	} else {
		uv_signal_start(&s.term, on_signal, SIGTERM);
		uv_signal_start(&s.intr, on_signal, SIGINT);
		uv_timer_start(&s.timer, on_look, 0,
			       (uint64_t)cfg->lease_ms / 8);
		daemon_notify("READY=1\nSTATUS=standing by");
		log_info("weftd", "standing by on %s", cfg->socket);
	}
	uv_run(loop, UV_RUN_DEFAULT);
	if (r == 0 && s.leads) {
		*led = d->store;
		d->store = NULL;
	} else if (r == 0) {
		r = err_set(err, WEFT_ECANCELED, "stopped");
	}
	daemon_free(d);
	uv_run(loop, UV_RUN_DEFAULT);
	return r;
}
