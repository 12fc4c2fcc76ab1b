/* Life of the daemon: start, background reading, drain. */
#include "controller/daemon/core/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "controller/daemon/core/private.h"
#include "controller/daemon/hosts/hosts.h"
#include "grpc/health/v1/health.pb-c.h"
#include "grpc/reflection/v1/reflection.pb-c.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "weft/v1/jobs.pb-c.h"

#define STORE_FILE "weft.db"
#define GRACE_MS 2000
#define MIB ((size_t)1 << 20)

/* ---- who may do what ----------------------------------------------------- */

bool daemon_may_change(struct daemon *d, struct rpc_call *call)
{
	struct err err = { 0 };

	if (!d->draining) {
		return true;
	}
	err_set(&err, WEFT_EUNAVAIL, "weftd is stopping");
	rpc_finish_err(call, &err);
	return false;
}

static int permit(struct rpc_call *call, void *arg, struct err *err)
{
	struct daemon *d = arg;
	int r = access_permit(d->access, rpc_call_peer(call),
			      rpc_call_path(call), err);

	daemon_count_call(d, rpc_call_path(call));
	return r || !d->standby ? r : standby_permit(d, rpc_call_path(call),
						     err);
}

static void count_answer(const char *path, enum rpc_status status, void *arg)
{
	daemon_count_answer(arg, path, status);
}

/* ---- jobs ---------------------------------------------------------------- */

static void *copy_message(const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = malloc(len + 1);
	ProtobufCMessage *out = NULL;

	if (bytes) {
		protobuf_c_message_pack(m, bytes);
		out = protobuf_c_message_unpack(m->descriptor, NULL, len,
						bytes);
	}
	free(bytes);
	return out;
}

static void job_rows_draw(struct job_rows *rows, struct work *w)
{
	rows->picture_id = clk_wall_ns() / 1000;
	rows->picture_len = w->picture.len;
	rows->picture = w->picture.len ? buf_steal(&w->picture) : NULL;
}

int job_rows_take(struct job_rows *rows, struct work *w, struct err *err)
{
	const struct plan *p = w->plan;
	int r = 0;

	job_rows_fini(rows);
	rows->v = calloc((size_t)p->n_jobs + 1, sizeof(*rows->v));
	if (!rows->v) {
		return err_nomem(err);
	}
	for (int i = 0; i < p->n_jobs && r == 0; i++) {
		struct wire_job j;

		r = wire_job_init(&j, p, i, err);
		if (r == 0) {
			rows->v[rows->n] = copy_message(&j.row.base);
			r = rows->v[rows->n] ? 0 : err_nomem(err);
			rows->n += r == 0;
		}
		wire_job_fini(&j);
	}
	job_rows_draw(rows, w);
	memcpy(rows->hash, p->fabric->hash, sizeof(rows->hash));
	rows->known = r == 0;
	return r;
}

void job_rows_fini(struct job_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		weft__v1__plan_job__free_unpacked(rows->v[i], NULL);
	}
	free(rows->v);
	free(rows->picture);
	memset(rows, 0, sizeof(*rows));
}

static void on_jobs_planned(struct work *w)
{
	struct daemon *d = w->d;
	const struct model_fabric *f = apply_fabric(d->apply);
	struct err err = w->err;
	bool old = --d->n_refresh > 0 ||	/* a newer one is on its way */
		   (w->fabric && f && strcmp(w->fabric->hash, f->hash) != 0);

	if (old) {
		daemon_work_free(w);
		return;
	}
	if (w->rc || job_rows_take(&d->jobs, w, &err)) {
		log_warn("weftd", "the jobs cannot be planned: %s", err.msg);
		job_rows_fini(&d->jobs);
		d->jobs.err = err;
		job_rows_draw(&d->jobs, w);
	} else {
		daemon_hosts_route(d, host_routes_of(w->plan));
	}
	daemon_page_changed(d);
	daemon_work_free(w);
	if (!d->draining) {
		jobs_look(d->orders);
		jobs_tick(d->orders);
	}
}

void daemon_refresh_jobs(struct daemon *d)
{
	struct err err = { 0 };
	struct work *w;
	int r = daemon_work_new(d, NULL, NULL, 0, &w, &err);

	if (r) {
		return;		/* no configuration, no jobs */
	}
	w->pure = w->with_picture = true;
	w->unlit = !d->applied;
	d->n_refresh++;
	w->done = on_jobs_planned;
	daemon_work_start(w);
}

/* ---- start --------------------------------------------------------------- */

static void after_first_reading(int rc, const struct err *err, void *arg)
{
	struct work *w = arg;
	struct daemon *d = w->d;

	if (rc) {
		log_warn("weftd", "%s", err->msg);
	}
	d->reading = false;
	d->was_read = true;
	daemon_health_changed(d);
	log_info("weftd", "devices are read; generation %lld",
		 (long long)store_generation(d->store));
	daemon_work_free(w);
	if (!d->draining) {
		daemon_event(d, &(struct daemon_event){
				.kind = WEFT__V1__EVENT_KIND__EVENT_KIND_READ },
			     "all devices were asked");
		daemon_refresh_jobs(d);
		daemon_confirm_watch(d);
		jobs_settle(d->orders);
		jobs_tick(d->orders);
	}
}

static void after_recovery(int rc, const char *text, void *arg)
{
	struct work *w = arg;

	daemon_recovered(w->d, rc, text);
	apply_read(w->d->apply, after_first_reading, w);
}

static void begin_reading(struct work *w)
{
	apply_reading_for(w->d->apply, STORE_BY_START);
	apply_recover(w->d->apply, after_recovery, w);
}

int daemon_store_path(const char *dir, char *path, size_t size,
		      struct err *err)
{

	if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
		return err_errno(err, WEFT_EIO, errno, "%s", dir);
	}
	if (snprintf(path, size, "%s/" STORE_FILE, dir) >= (int)size) {
		return err_set(err, WEFT_EINVAL, "--state-dir: too long");
	}
	return 0;
}

static int open_store(struct daemon *d, const struct daemon_config *cfg,
		      struct err *err)
{
	char path[512];
	int r;

	if (d->store) {
		return 0;	/* led already */
	}
	r = daemon_store_path(cfg->state_dir, path, sizeof(path), err);
	return r ? r : store_open(path, &d->store, err);
}

static int read_fabric(struct daemon *d, const char *path, struct err *err)
{
	if (!path) {
		return 0;
	}
	d->fabric_name = strdup(path);
	if (!d->fabric_name) {
		return err_nomem(err);
	}
	return file_read(path, MODEL_MAX_TEXT, &d->fabric_text,
			 &d->fabric_len, err);
}

int daemon_listen(struct daemon *d, const struct daemon_config *cfg,
		  struct err *err)
{
#define METHOD(name, req, res, streams, fn) \
	{ "/weft.v1.Fabric/" name, &weft__v1__##req##__descriptor, \
	  &weft__v1__##res##__descriptor, streams, fn }
#define JOBS(name, req, res, streams, fn) \
	{ "/weft.v1.Jobs/" name, &weft__v1__##req##__descriptor, \
	  &weft__v1__##res##__descriptor, streams, fn }
#define HEALTH(name, streams, fn) \
	{ "/grpc.health.v1.Health/" name, \
	  &grpc__health__v1__health_check_request__descriptor, \
	  &grpc__health__v1__health_check_response__descriptor, streams, fn }
#define REFLECTION(v) \
	{ "/grpc.reflection." v ".ServerReflection/ServerReflectionInfo", \
	  &grpc__reflection__v1__server_reflection_request__descriptor, \
	  &grpc__reflection__v1__server_reflection_response__descriptor, \
	  RPC_BIDI_STREAMING, handle_reflection }
	const struct rpc_method methods[] = {
		METHOD("Plan", plan_request, plan_part, RPC_SERVER_STREAMING,
		       handle_plan),
		METHOD("Apply", apply_request, apply_event,
		       RPC_SERVER_STREAMING, handle_apply),
		METHOD("Rollback", rollback_request, apply_event,
		       RPC_SERVER_STREAMING, handle_rollback),
		METHOD("Confirm", confirm_request, confirm_response, RPC_UNARY,
		       handle_confirm),
		METHOD("Cancel", cancel_request, apply_event,
		       RPC_SERVER_STREAMING, handle_cancel),
		METHOD("Status", status_request, status_response, RPC_UNARY,
		       handle_status),
		METHOD("Diff", diff_request, diff_response, RPC_UNARY,
		       handle_diff),
		METHOD("Verify", verify_request, diff_response, RPC_UNARY,
		       handle_verify),
		METHOD("History", history_request, history_response, RPC_UNARY,
		       handle_history),
		METHOD("Audit", audit_request, audit_response, RPC_UNARY,
		       handle_audit),
		METHOD("ExternalChanges", external_changes_request,
		       external_changes_response, RPC_UNARY,
		       handle_foreign),
		METHOD("Drain", hold_request, hold_response, RPC_UNARY,
		       handle_drain),
		METHOD("Undrain", hold_request, hold_response, RPC_UNARY,
		       handle_undrain),
		METHOD("Freeze", hold_request, hold_response, RPC_UNARY,
		       handle_freeze),
		METHOD("Unfreeze", hold_request, hold_response, RPC_UNARY,
		       handle_unfreeze),
		METHOD("SetPort", set_port_request, maintenance_response, RPC_UNARY,
		       handle_set_port),
		METHOD("Recover", recover_request, maintenance_response, RPC_UNARY,
		       handle_recover_device),
		METHOD("Watch", watch_request, watch_event,
		       RPC_SERVER_STREAMING, handle_watch),
		METHOD("Log", log_request, log_response, RPC_UNARY, handle_log),
		METHOD("GetSchedule", get_schedule_request, schedule_piece,
		       RPC_SERVER_STREAMING, handle_schedule),
		JOBS("RequestJob", request_job_request, job,
		     RPC_SERVER_STREAMING, handle_request_job),
		JOBS("ReleaseJob", release_job_request, job,
		     RPC_SERVER_STREAMING, handle_release_job),
		JOBS("ListJobs", list_jobs_request, list_jobs_response,
		     RPC_UNARY, handle_list_jobs),
		HEALTH("Check", RPC_UNARY, handle_health_check),
		HEALTH("Watch", RPC_SERVER_STREAMING, handle_health_watch),
		REFLECTION("v1"), REFLECTION("v1alpha"),
		{ NULL, NULL, NULL, RPC_UNARY, NULL },
	};
#undef HEALTH
#undef REFLECTION
#undef JOBS
#undef METHOD
	struct rpc_server_config rpc = {
		.unix_path = cfg->socket,
		.mode = cfg->socket_mode,
		.tcp_host = cfg->listen_host,
		.tcp_port = cfg->listen_port,
		.tls = cfg->tls,
		.permit = permit,
		.ended = count_answer,
		.get = daemon_page_get,
		/* A plan file quotes a whole configuration. */
		.limits = { .max_request = 2 * MODEL_MAX_TEXT + MIB,
			    .max_decoded = 4 * (size_t)MODEL_MAX_TEXT,
			    .max_queued = 4 * (size_t)MODEL_MAX_TEXT,
			    .max_conn_queued = 5 * (size_t)MODEL_MAX_TEXT,
			    .max_conn_held = 8 * (size_t)MODEL_MAX_TEXT },
		.methods = d->methods,
		.arg = d,
	};

	_Static_assert(sizeof(methods) <= sizeof(d->methods),
		       "room for every method");
	memcpy(d->methods, methods, sizeof(methods));
	return rpc_server_new(d->loop, &rpc, &d->server, err);
}

void daemon_free(struct daemon *d)
{
	daemon_lease_fini(d);
	store_free(d->store);
	job_rows_fini(&d->jobs);
	daemon_finished_fini(d);
	daemon_events_fini(d);
	store_holds_free(d->holds, d->n_holds);
	daemon_confirm_fini(d);
	daemon_poll_fini(d);
	daemon_news_fini(d);
	daemon_prover_fini(d);
	daemon_restore_fini(d);
	daemon_hosts_fini(d);
	jobs_free(d->orders);
	reflection_free(d->reflection);
	access_free(d->access);
	free(d->fabric_name);
	free(d->fabric_text);
	free(d);
}

/* After a failed start: the engine closes its handles on the loop. */
static void on_failed_closed(void *arg)
{
	daemon_free(arg);
}

int daemon_new(uv_loop_t *loop, const struct daemon_config *cfg,
	       struct daemon **out, struct err *err)
{
	struct daemon *d = calloc(1, sizeof(*d));
	struct err fabric_err = { 0 };
	int r;

	if (!d) {
		return err_nomem(err);
	}
	d->loop = loop;
	d->cfg = *cfg;
	d->store = cfg->led;
	d->reading = true;
	TAILQ_INIT(&d->watches);
	if ((r = daemon_events_init(d, err)) ||
	    (r = access_new(cfg->access, cfg->owner, &d->access, err)) ||
	    (r = open_store(d, cfg, err)) ||
	    (r = store_confirming(d->store, &d->confirm, err)) ||
	    (r = daemon_holds_read(d, err)) ||
	    (r = jobs_new(d, &d->orders, err)) ||
	    (r = read_fabric(d, cfg->fabric, err)) ||
	    (r = apply_new(loop, d->store, &d->apply, err))) {
		daemon_free(d);
		return r;
	}
	daemon_foreign_init(d);
	/* A configuration that can no longer be read must not keep the
	 * operator from looking, and from applying a better one. */
	if (daemon_settle_fabric(d, &fabric_err)) {
		log_error("weftd", "the configuration: %s", fabric_err.msg);
	}
	r = daemon_lease_init(d, err);
	r = r ? r : daemon_prover_init(d, err);
	r = r ? r : daemon_listen(d, cfg, err);
	if (r == 0 && cfg->metrics_host) {
		r = daemon_metrics_start(d, cfg->metrics_host,
					 cfg->metrics_port, err);
	}
	if (r == 0) {
		r = daemon_page_start(d, cfg->page_host, cfg->page_port, err);
	}
	if (r == 0) {
		r = daemon_poll_init(d, cfg->poll_ms, err);
	}
	if (r == 0) {
		r = daemon_news_init(d, err);
	}
	if (r == 0) {
		r = daemon_restore_init(d, err);
	}
	if (r == 0) {
		r = daemon_turn(d, begin_reading, NULL, err);
	}
	if (r) {
		daemon_metrics_stop(d);
		daemon_page_stop(d);
		if (d->server) {
			rpc_server_stop(d->server, 0, NULL, NULL);
		}
		apply_free(d->apply, on_failed_closed, d);
		uv_run(loop, UV_RUN_DEFAULT);
		return r;
	}
	*out = d;
	return 0;
}

static void stays(const char *what, const struct err *err)
{
	char text[ERR_MSG_MAX + ERR_FILE_MAX + 32];

	log_error("weftd", "%s: %s; what was read before stays in use", what,
		  err_str(err, text, sizeof(text)));
}

void daemon_reload(struct daemon *d)
{
	struct access *fresh;
	struct err err = { 0 };

	if (access_new(d->cfg.access, d->cfg.owner, &fresh, &err)) {
		stays("access", &err);
	} else {
		access_free(d->access);
		d->access = fresh;
	}
	if (d->server && rpc_server_reload_tls(d->server, &err)) {
		stays("certificates", &err);
	}
	log_info("weftd", "SIGHUP: access and certificates read again");
}

int daemon_port(const struct daemon *d)
{
	return rpc_server_port(d->server);
}

/* ---- stop ---------------------------------------------------------------- */

static void on_apply_closed(void *arg)
{
	struct daemon *d = arg;
	void (*stopped)(void *) = d->stopped;
	void *stopped_arg = d->stopped_arg;

	daemon_free(d);
	if (stopped) {
		stopped(stopped_arg);
	}
}

static void on_server_stopped(void *arg)
{
	struct daemon *d = arg;

	apply_free(d->apply, on_apply_closed, d);
}

void daemon_drained(struct daemon *d)
{
	struct rpc_server *server = d->server;

	if (d->turn || d->n_pure > 0 || !server) {
		return;
	}
	d->server = NULL;
	rpc_server_stop(server, GRACE_MS, on_server_stopped, d);
}

void daemon_stop(struct daemon *d, void (*done)(void *), void *arg)
{
	d->draining = true;
	daemon_metrics_stop(d);
	daemon_page_stop(d);
	daemon_health_changed(d);
	daemon_watch_end(d);
	d->stopped = done;
	d->stopped_arg = arg;
	if (d->change) {
		log_warn("weftd", "stopping once the change of the moment has "
				  "ended");
	}
	daemon_drained(d);
}
