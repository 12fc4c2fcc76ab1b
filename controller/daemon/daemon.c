/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The composition of weftd: makes all parts, connects them, routes calls to
 * them, and stops them. This is the only file that knows all parts: what one of
 * them reports to those above it arrives in a hook here.
 *
 * A start opens the store first, then makes the parts, then listens; calls are
 * served from there on, while the devices are read in the first slot of the
 * queue. A stop refuses new changes, lets the queue run empty, closes the
 * server, then the devices, and frees the parts last, as the engine may call
 * them until its devices are closed. A standby is the same composition over a
 * store that is only read, without devices.
 */
#include "controller/daemon/daemon.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/daemon/change/change.h"
#include "controller/daemon/core/core.h"
#include "controller/daemon/core/plan_queue.h"
#include "controller/daemon/ha/ha.h"
#include "controller/daemon/hosts/hosts.h"
#include "controller/daemon/jobs/jobs.h"
#include "controller/daemon/joint/joint.h"
#include "controller/daemon/views/views.h"
#include "grpc/health/v1/health.pb-c.h"
#include "grpc/reflection/v1/reflection.pb-c.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "weft/v1/jobs.pb-c.h"

#define STORE_FILE "weft.db"
#define NS_PER_MS 1000000
#define GRACE_MS 2000
#define MIB ((size_t)1 << 20)
#define N_ROUTES 30
#define MAX_CONNECTIONS 512

struct daemon {
	struct daemon_env env;		/* first: routes without a part */
	struct daemon_config cfg;
	struct rpc_server *server;	/* NULL once it is being stopped */
	struct rpc_method methods[N_ROUTES + 1];
	struct health *health;
	struct reflection *reflection;
	struct plan_queue *queue;
	struct job_status *job_status;
	struct drain *drain;
	struct hosts *hosts;
	struct changes *changes;
	struct jobs *jobs;
	struct views views;		/* the parts above, for those who look */
	struct metrics *metrics;
	struct schedules *schedules;
	struct webui *webui;		/* NULL: a standby, or stopping */
	struct problem_events *problem_events;
	struct device_events *device_events;
	struct poll *poll;		/* NULL: no slow round */
	struct store_taken taken;	/* by open_store */
	struct store_copier *copier;	/* NULL: another leads */
	struct restore *restore;
	struct election *election;	/* several take turns, or NULL */
	struct lease *lease;		/* while leading others, or NULL */
	struct standby *standby;	/* while another leads, or NULL */
	struct joint *joint;		/* others lead parts of the fabric, or NULL */
	bool leads;			/* a standby has become the leader */
	struct part_timer *safe;	/* the disk and others have more of the store */
	struct part_timer *etcd_problem;	/* it has come or gone */
	struct part_timer *meanwhile;	/* what a change has read is told */
	bool tells_meanwhile;		/* that runs */
	struct rpc_server *holds;	/* answers until then; NULL: none */
	void (*stopped)(void *arg);
	void *stopped_arg;
};

/* ---- calls --------------------------------------------------------------- */

/* A method with the part that answers it: every handler is called by dispatch,
 * with that part as its argument. */
static const struct route {
	const char *path;
	const ProtobufCMessageDescriptor *request, *response;
	enum rpc_streaming streaming;
	rpc_handler handler;
	size_t part;		/* offset of its pointer in struct daemon */
	bool embedded;		/* the part itself is there */
} routes[] = {
#define PART(field) offsetof(struct daemon, field), false
#define ENV offsetof(struct daemon, env), true
#define VIEWS offsetof(struct daemon, views), true
#define ROUTE(service, name, req, res, streams, fn, ...) \
	{ "/" service "/" name, &req##__descriptor, &res##__descriptor, \
	  RPC_##streams, handle_##fn, __VA_ARGS__ }
#define FABRIC(name, req, res, streams, fn, ...) \
	ROUTE("weft.v1.FabricService", name, weft__v1__##req, weft__v1__##res, \
	      streams, fn, __VA_ARGS__)
#define JOBS(name, req, res, streams, fn, ...) \
	ROUTE("weft.v1.JobsService", name, weft__v1__##req, weft__v1__##res, \
	      streams, fn, __VA_ARGS__)
#define HEALTH(name, streams, fn) \
	ROUTE("grpc.health.v1.Health", name, \
	      grpc__health__v1__health_check_request, \
	      grpc__health__v1__health_check_response, streams, fn, \
	      PART(health))
#define REFLECTION(v) \
	ROUTE("grpc.reflection." v ".ServerReflection", \
	      "ServerReflectionInfo", \
	      grpc__reflection__v1__server_reflection_request, \
	      grpc__reflection__v1__server_reflection_response, \
	      BIDI_STREAMING, reflection, PART(reflection))
	FABRIC("Plan", plan_request, plan_response, SERVER_STREAMING, plan, VIEWS),
	FABRIC("Apply", apply_request, apply_response, SERVER_STREAMING, apply, PART(changes)),
	FABRIC("Rollback", rollback_request, rollback_response, SERVER_STREAMING,
	       rollback, PART(changes)),
	FABRIC("Confirm", confirm_request, confirm_response, UNARY, confirm, PART(changes)),
	FABRIC("Cancel", cancel_request, cancel_response, SERVER_STREAMING, cancel, PART(changes)),
	FABRIC("Status", status_request, status_response, UNARY, status, VIEWS),
	FABRIC("Diff", diff_request, diff_response, UNARY, diff, VIEWS),
	FABRIC("Verify", verify_request, verify_response, UNARY, verify, VIEWS),
	FABRIC("History", history_request, history_response, UNARY, history, ENV),
	FABRIC("Audit", audit_request, audit_response, UNARY, audit, ENV),
	FABRIC("ExternalChanges", external_changes_request,
	       external_changes_response, UNARY, external_changes, ENV),
	FABRIC("Drain", drain_request, drain_response, UNARY, drain, PART(drain)),
	FABRIC("Undrain", undrain_request, undrain_response, UNARY, undrain, PART(drain)),
	FABRIC("Freeze", freeze_request, freeze_response, UNARY, freeze, PART(changes)),
	FABRIC("Unfreeze", unfreeze_request, unfreeze_response, UNARY, unfreeze,
	       PART(drain)),
	FABRIC("SetPort", set_port_request, set_port_response, UNARY, set_port, PART(changes)),
	FABRIC("Recover", recover_request, recover_response, UNARY,
	       recover_device, PART(changes)),
	FABRIC("Watch", watch_request, watch_response, SERVER_STREAMING, watch,
	       PART(env.events)),
	FABRIC("Log", log_request, log_response, UNARY, log, ENV),
	FABRIC("GetSchedule", get_schedule_request, get_schedule_response,
	       SERVER_STREAMING, schedule, PART(schedules)),
	FABRIC("GetPicture", get_picture_request, get_picture_response, SERVER_STREAMING, picture,
	       VIEWS),
	JOBS("RequestJob", request_job_request, request_job_response, SERVER_STREAMING,
	     request_job, PART(jobs)),
	JOBS("ReleaseJob", release_job_request, release_job_response, SERVER_STREAMING,
	     release_job, PART(jobs)),
	JOBS("ListJobs", list_jobs_request, list_jobs_response, UNARY, list_jobs, PART(jobs)),
	JOBS("RenewJob", renew_job_request, renew_job_response, UNARY, renew_job, PART(jobs)),
	JOBS("SetLight", set_light_request, set_light_response, SERVER_STREAMING, set_light,
	     PART(jobs)),
	HEALTH("Check", UNARY, health_check),
	HEALTH("Watch", SERVER_STREAMING, health_watch),
	REFLECTION("v1"), REFLECTION("v1alpha"),
#undef REFLECTION
#undef HEALTH
#undef JOBS
#undef FABRIC
#undef ROUTE
#undef VIEWS
#undef ENV
#undef PART
};

_Static_assert(sizeof(routes) / sizeof(*routes) == N_ROUTES, "room for every method");

static void dispatch(struct rpc_call *call, const ProtobufCMessage *req, void *arg)
{
	const char *path = rpc_call_path(call);
	const struct route *r = routes;
	void *part;

	while (strcmp(r->path, path) != 0) {
		r++;	/* the server has found the path in this table */
	}
	part = (char *)arg + r->part;
	r->handler(call, req, r->embedded ? part : *(void **)part);
}

/* Over a store of a newer weftd: what it knows and what the devices hold is answered. */
static int permit_reading(const char *path, const struct store *s, struct err *err)
{
	static const char *const answered[] = {
		"Status", "Diff", "History", "Audit", "ExternalChanges", "Watch", "Log",
	};
	static const char service[] = "/weft.v1.FabricService/";
	bool may = strncmp(path, "/grpc.", 6) == 0 ||
		   strcmp(path, "/weft.v1.JobsService/ListJobs") == 0;

	for (size_t i = 0; i < sizeof(answered) / sizeof(*answered) && !may; i++) {
		may = strncmp(path, service, strlen(service)) == 0 &&
		      strcmp(path + strlen(service), answered[i]) == 0;
	}
	return may ? 0 : store_newer_error(s, err);
}

/* Asked by the server before it reads the request of a call. */
static int permit(struct rpc_call *call, void *arg, struct err *err)
{
	struct daemon *d = arg;
	const char *path = rpc_call_path(call);
	int r = access_permit(d->env.access, rpc_call_peer(call), path, err);

	metrics_count_call(d->metrics, path);
	if (r == 0 && d->env.read_only) {
		r = permit_reading(path, d->env.store, err);
	}
	if (r == 0 && d->standby) {
		r = standby_permit(d->standby, path, err);
		if (r == 0 && strncmp(path, "/weft.", 6) == 0) {
			jobs_reload(d->jobs);
		}
	}
	return r;
}

/* Operators are served also when others have every connection. */
static bool is_privileged(const struct rpc_peer *peer, void *arg)
{
	return access_is_operator(((struct daemon *)arg)->env.access, peer);
}

static void on_answer(const char *path, enum rpc_status status, void *arg)
{
	metrics_count_answer(((struct daemon *)arg)->metrics, path, status);
}

/* What a call was told rests on the store as it is now: that is to be on the disk, and others are
 * to have it, before. Who only looks does not wait, and is told how much they do not have yet. */
static int64_t hold(struct rpc_call *call, void *arg)
{
	static const char *const free_of_it[] = {
		"/weft.v1.FabricService/Status", "/weft.v1.FabricService/Watch",
		"/weft.v1.FabricService/Log",
	};
	const struct daemon *d = arg;
	const char *path = rpc_call_path(call);
	const int64_t last = store_last(d->env.store);

	if (d->env.standby || last <= store_safe(d->env.store) ||
	    strncmp(path, "/weft.", 6) != 0) {
		return 0;
	}
	for (size_t i = 0; i < sizeof(free_of_it) / sizeof(*free_of_it); i++) {
		if (strcmp(path, free_of_it[i]) == 0) {
			return 0;
		}
	}
	apply_sync_later(d->env.apply);
	return last;
}

static void on_safe(void *arg)
{
	part_timer_start(((struct daemon *)arg)->safe, 0);
}

static void take_safe(void *arg)
{
	struct daemon *d = arg;
	struct err err = { 0 };

	apply_published(d->env.apply);
	if (d->holds) {
		rpc_server_release(d->holds, store_safe(d->env.store));
	}
	if (d->holds && store_sync_failed(d->env.store)) {
		err_set(&err, WEFT_EIO, "it is not known whether the disk keeps it: %s",
			store_trouble(d->env.store));
		err_hint(&err, "check the disk and its free space, then what \"weft status\" "
			 "says");
		rpc_server_refuse(d->holds, &err);
	}
}

static void on_etcd_problem(void *arg)
{
	part_timer_start(((struct daemon *)arg)->etcd_problem, 0);
}

static void tell_etcd_problem(void *arg)
{
	problem_events_tell(((struct daemon *)arg)->problem_events);
}

/* A browser with a client certificate on the gRPC listener. */
static void on_get(struct rpc_call *call, void *arg)
{
	struct daemon *d = arg;
	struct err err = { 0 };

	if (access_need(d->env.access, rpc_call_peer(call), ACCESS_VIEWER, "the page", &err)) {
		webui_answer_text(call, 403, err.msg);
	} else if (d->standby) {
		standby_permit(d->standby, rpc_call_path(call), &err);
		webui_answer_text(call, 503, err.msg);
	} else {
		webui_get(d->webui, call);
	}
}

/* As many as there are descriptors for: devices, hosts, and connections that are about
 * to end need some as well. */
static int max_connections(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files)) {
		return MAX_CONNECTIONS / 4;
	}
	if (files.rlim_cur < 4 * MAX_CONNECTIONS && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max < 4 * MAX_CONNECTIONS ? files.rlim_max
								     : 4 * MAX_CONNECTIONS;
		if (setrlimit(RLIMIT_NOFILE, &files)) {
			log_warn("weftd", "descriptors: %s", strerror(errno));
		}
		getrlimit(RLIMIT_NOFILE, &files);
	}
	return files.rlim_cur < 4 * MAX_CONNECTIONS ? (int)files.rlim_cur / 4 : MAX_CONNECTIONS;
}

static int start_server(struct daemon *d, struct err *err)
{
	const struct daemon_config *cfg = &d->cfg;
	const int conns = max_connections();
	const struct rpc_server_config rpc = {
		.unix_path = cfg->socket,
		.mode = cfg->socket_mode,
		.unix_fd = cfg->socket_fd,
		.tcp_host = cfg->listen_host,
		.tcp_port = cfg->listen_port,
		.tls = cfg->tls,
		.privileged = is_privileged,
		.permit = permit,
		.hold = hold,
		.ended = on_answer,
		.get = on_get,
		/* A plan file quotes a whole configuration. */
		.limits = { .max_request = 2 * MODEL_MAX_TEXT + MIB,
			    .max_decoded = 4 * (size_t)MODEL_MAX_TEXT,
			    .max_queued = 4 * (size_t)MODEL_MAX_TEXT,
			    .max_conn_queued = 5 * (size_t)MODEL_MAX_TEXT,
			    .max_conn_held = 8 * (size_t)MODEL_MAX_TEXT,
			    .max_conns = conns,
			    .max_reserved = 1 + conns / 8,
			    .max_greeting = 1 + conns / 4 },
		.methods = d->methods,
		.arg = d,
	};

	int r = rpc_server_new(d->env.loop, &rpc, &d->server, err);

	d->holds = d->server;
	return r;
}

/* ---- what parts report to those above them ------------------------------- */

static void on_changed(void *arg)
{
	webui_changed(((struct daemon *)arg)->webui);
}

static void on_drain_changed(void *arg)
{
	job_status_drained(((struct daemon *)arg)->job_status);
	jobs_advance(((struct daemon *)arg)->jobs);
}

static void on_add_jobs(struct model_config *config, void *arg)
{
	jobs_add_requests(((struct daemon *)arg)->jobs, config);
}

static void on_restrict_base(struct plan_request *r, void *arg)
{
	drain_restrict(((struct daemon *)arg)->drain, r->fabric, r->evacuated, &r->snap);
}

static bool on_outdated(const struct plan_request *r, void *arg)
{
	return job_status_outdated(((struct daemon *)arg)->job_status, r);
}

/* A plan that was made from a slot's reading is checked against the drained parts;
 * where there is none, the hint says what may be the cause. */
static void on_planned(struct plan_request *r, void *arg)
{
	struct daemon *d = arg;

	metrics_count_plan(d->metrics, r->rc, r->plan_ns);
	if (r->rc == 0 && !r->offline) {
		r->rc = drain_check_plan(d->drain, r->plan, &r->err);
		if (r->rc == 0) {
			job_status_compare(d->job_status, r);
		}
	} else if (r->rc && drain_count(d->drain) > 0 && !r->err.hint[0]) {
		err_hint(&r->err, "parts of the fabric are drained: \"weft "
				  "status\" names them");
	} else if (r->rc) {
		job_status_hint(d->job_status, &r->err);
	}
}

static void on_recovered(void *arg)
{
	struct daemon *d = arg;
	struct err err = { 0 };

	if (drain_load(d->drain, &err)) {	/* it may have emptied a part */
		log_error("weftd", "%s", err.msg);
	}
	job_status_refresh(d->job_status);
	changes_watch_confirm(d->changes);
	jobs_settle(d->jobs);
}

/* Devices may have been read, or hosts heard: what that has shown is reported, and costs jobs. */
static void on_slot_ends(void *arg)
{
	struct daemon *d = arg;

	if (!d->env.reading && !d->env.draining) {
		problem_events_tell(d->problem_events);
	}
	job_status_check(d->job_status);
}

static void on_slot_ended(void *arg)
{
	struct daemon *d = arg;

	changes_resume(d->changes);
	restore_check(d->restore);
}

/* Goes on stopping when nothing is under way any more. */
static void stop_server(void *arg);

static void on_jobs_planned(const struct plan *p, void *arg)
{
	hosts_route(((struct daemon *)arg)->hosts, host_routes_of(p));
}

static void on_circuits_failed(void *arg)
{
	jobs_stand_in(((struct daemon *)arg)->jobs);
}

static void on_jobs_known(bool fresh, void *arg)
{
	struct daemon *d = arg;

	jobs_update_loss(d->jobs);
	if (fresh) {
		problem_events_tell(d->problem_events);
		jobs_advance(d->jobs);
	}
}

static void on_change_begun(const char *who, const char *comment, void *arg)
{
	webui_begin_change(((struct daemon *)arg)->webui, who, comment);
}

/* Events of devices wait for a moment: progress comes often. */
#define MEANWHILE_MS 500

static void tell_meanwhile(void *arg)
{
	struct daemon *d = arg;

	d->tells_meanwhile = false;
	if (d->env.changing) {
		problem_events_meanwhile(d->problem_events);
	}
}

static void on_change_progress(const struct apply_event *ev, void *arg)
{
	struct daemon *d = arg;

	webui_progress(d->webui, ev);
	if (!d->tells_meanwhile) {
		d->tells_meanwhile = true;
		part_timer_start(d->meanwhile, MEANWHILE_MS);
	}
}

static void on_change_committed(void *arg)
{
	jobs_settle(((struct daemon *)arg)->jobs);
}

static void on_change_ended(const struct apply_result *res, const struct err *err, void *arg)
{
	struct daemon *d = arg;

	metrics_count_change(d->metrics, res);
	webui_end_change(d->webui, apply_verdict_name(res->verdict), err);
	store_copier_note(d->copier);
}

static void on_change_idle(void *arg)
{
	jobs_advance(((struct daemon *)arg)->jobs);
}

static void on_poll_probed(void *arg)
{
	struct daemon *d = arg;

	poll_round_end(d->poll);
	jobs_devices_read(d->jobs);
}

static void on_poll_read(void *arg)
{
	hosts_probe(((struct daemon *)arg)->hosts, on_poll_probed, arg);
}

/* ---- the first reading --------------------------------------------------- */

/* From here on the devices are known: what waited for that goes on. */
static void after_first_reading(int rc, const struct err *err, void *arg)
{
	struct plan_request *slot = arg;
	struct daemon *d = slot->arg;

	if (rc) {
		log_warn("weftd", "%s", err->msg);
	}
	d->env.reading = false;
	d->env.was_read = true;
	health_changed(d->health);
	log_info("weftd", "devices are read; generation %lld",
		 (long long)store_generation(d->env.store));
	plan_request_free(slot);
	if (!d->env.draining) {
		event_emit(d->env.events, &(struct daemon_event){
				.kind = EVENT_KIND(READ) },
			   "all devices were asked");
		job_status_refresh(d->job_status);
		changes_watch_confirm(d->changes);
		jobs_first_read(d->jobs);
	}
}

static void after_recovery(int rc, const char *text, void *arg)
{
	struct plan_request *slot = arg;
	struct daemon *d = slot->arg;

	plan_queue_recovered(d->queue, rc, text);
	apply_read(d->env.apply, after_first_reading, slot);
}

/* The first slot: a change that was open when weftd ended is settled, then all
 * devices are read. Nothing is changed. */
static void begin_reading(struct plan_request *slot)
{
	struct daemon *d = slot->arg;

	apply_reading_for(d->env.apply, STORE_BY_START);
	if (d->env.read_only) {
		apply_read(d->env.apply, after_first_reading, slot);
		return;
	}
	apply_recover(d->env.apply, after_recovery, slot);
}

/* ---- start --------------------------------------------------------------- */

/* The store's file in the state folder, which is made when missing. */
static int open_store(struct daemon *d, struct err *err)
{
	const char *dir = d->cfg.state_dir;
	char path[512];
	int r;

	if (d->env.store) {
		return 0;	/* led already */
	}
	if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
		return err_errno(err, WEFT_EIO, errno, "%s", dir);
	}
	if (snprintf(path, sizeof(path), "%s/" STORE_FILE, dir) >= (int)sizeof(path)) {
		return err_set(err, WEFT_EINVAL, "--state-dir: too long");
	}
	if (!d->env.standby || d->cfg.etcd) {
		r = store_open_or_copy(path, d->env.standby ? store_open_replica : store_open,
				       &d->env.store, &d->taken, err);
		if (r == 0 && d->env.standby && d->taken.why[0]) {
			log_warn("weftd", "%s: what others have is taken from them", d->taken.why);
		}
		return r;
	}
	r = store_open_shared(path, &d->env.store, err);
	/* Others wait for the lock, and then for the lease: together soon enough. */
	return r ? r : store_limit_hold(d->env.store, d->cfg.lease_ms * NS_PER_MS / 2, err);
}

/* The queue, and what the jobs have; both report to parts that are made later. */
static void make_planning(struct daemon *d)
{
	const struct plan_queue_hooks queue_hooks = {
		.add_jobs = on_add_jobs, .restrict_base = on_restrict_base,
		.outdated = on_outdated, .planned = on_planned, .recovered = on_recovered,
		.slot_ends = on_slot_ends, .slot_ended = on_slot_ended,
		.drained = stop_server, .arg = d,
	};
	const struct job_status_hooks status_hooks = {
		.planned = on_jobs_planned, .failed = on_circuits_failed,
		.known = on_jobs_known, .arg = d,
	};

	d->queue = plan_queue_new(&d->env, &queue_hooks);
	d->job_status = job_status_new(&d->env, d->queue, &status_hooks);
}

static int make_changes(struct daemon *d, struct err *err)
{
	const struct change_hooks hooks = {
		.begun = on_change_begun, .progress = on_change_progress,
		.committed = on_change_committed, .ended = on_change_ended,
		.idle = on_change_idle, .arg = d,
	};
	int r;

	d->drain = drain_new(&d->env, on_drain_changed, d);
	r = drain_load(d->drain, err);
	if (r) {
		return r;
	}
	d->changes = changes_new(&d->env, d->queue, d->job_status, d->drain, d->hosts, &hooks);
	return 0;
}

/* What a standby has as well. */
static int make_parts(struct daemon *d, struct err *err)
{
	struct daemon_env *env = &d->env;
	int r;

	env->events = event_stream_new(env);
	if ((r = access_new(d->cfg.access, d->cfg.owner, &env->access, err)) ||
	    (r = open_store(d, err)) || (r = apply_new(env->loop, env->store, &env->apply, err)) ||
	    (d->cfg.domains && (r = joint_lead_domains(env->apply, d->cfg.domains, err)))) {
		return r;
	}
	d->health = health_new(env);
	d->reflection = reflection_new();
	make_planning(d);
	d->hosts = hosts_new(env, on_slot_ends, d);
	if ((r = make_changes(d, err)) ||
	    (r = jobs_new(env, d->queue, d->job_status, d->drain, d->changes, &d->jobs, err))) {
		return r;
	}
	d->views = (struct views){
		.env = env, .queue = d->queue, .job_status = d->job_status,
		.drain = d->drain, .changes = d->changes, .hosts = d->hosts,
		.jobs = d->jobs, .election = d->election,
	};
	d->metrics = metrics_new(&d->views, d->methods);
	d->problem_events = problem_events_new(&d->views, d->metrics);
	d->schedules = schedules_new(&d->views);
	d->views.kept_status = kept_status_new();
	return 0;
}

static struct daemon *new_daemon(uv_loop_t *loop, const struct daemon_config *cfg)
{
	struct daemon *d = x_new(1, sizeof(*d));

	d->env.loop = loop;
	d->env.on_changed = on_changed;
	d->env.on_changed_arg = d;
	d->env.plan_memory_mib = cfg->plan_memory_mib;
	d->env.plan_time_s = cfg->plan_time_s;
	d->cfg = *cfg;
	for (int i = 0; i < N_ROUTES; i++) {
		d->methods[i] = (struct rpc_method){
			routes[i].path, routes[i].request, routes[i].response,
			routes[i].streaming, dispatch };
	}
	return d;
}

/* What is left once the server and the engine have stopped. */
static void free_daemon(void *arg)
{
	struct daemon *d = arg;

	joint_free(d->joint);
	lease_free(d->lease);
	part_timer_free(d->safe);
	part_timer_free(d->etcd_problem);
	part_timer_free(d->meanwhile);
	if (d->env.store) {
		store_on_safe(d->env.store, NULL, NULL);
	}
	if (d->election) {
		d->election->free(d->election);
	}
	store_free(d->env.store);
	poll_free(d->poll);
	store_copier_free(d->copier);
	device_events_free(d->device_events);
	restore_free(d->restore);
	hosts_free(d->hosts);
	kept_status_free(d->views.kept_status);
	schedules_free(d->schedules);
	metrics_free(d->metrics);
	problem_events_free(d->problem_events);
	jobs_free(d->jobs);
	changes_free(d->changes);
	drain_free(d->drain);
	job_status_free(d->job_status);
	plan_queue_free(d->queue);
	reflection_free(d->reflection);
	health_free(d->health);
	event_stream_free(d->env.events);
	access_free(d->env.access);
	free(d);
}

/* Before the first slot: a change that was open may be a part of a joint one. */
static int start_joint(struct daemon *d, struct err *err)
{
	const struct daemon_config *cfg = &d->cfg;
	const struct joint_config joint = {
		.members = cfg->etcd, .prefix = cfg->etcd_prefix, .tls = cfg->etcd_tls,
		.domains = cfg->domains, .lease_ms = cfg->lease_ms,
	};
	int r = joint_new(&d->env, &joint, d->election, d->changes, &d->joint, err);

	d->views.joint = d->joint;
	return r;
}

/* What a standby does not have: shows and answers, and reads the devices. */
static int start_parts(struct daemon *d, struct err *err)
{
	const struct daemon_config *cfg = &d->cfg;
	struct daemon_env *env = &d->env;
	int r;

	if (cfg->led) {
		d->lease = lease_new(env, d->election, cfg->lease_ms);
	}
	if ((cfg->domains && (r = start_joint(d, err))) ||
	    (r = start_server(d, err)) ||
	    (cfg->metrics_host && (r = metrics_start(d->metrics,
						     cfg->metrics_host,
						     cfg->metrics_port, err))) ||
	    (r = webui_new(&d->views, cfg->page_host, cfg->page_port,
			   &d->webui, err))) {
		return r;
	}
	d->poll = poll_new(env, d->queue, cfg->poll_ms, on_poll_read, d);
	d->device_events = device_events_new(env, d->queue);
	d->restore = restore_new(env, d->changes);
	plan_queue_slot(d->queue, begin_reading, d);
	return 0;
}

/* Those who look hold no slot, and would never go by themselves. */
static void stop_views(struct daemon *d)
{
	struct webui *webui = d->webui;

	if (d->metrics) {
		metrics_stop(d->metrics);
	}
	d->webui = NULL;
	webui_free(webui);
}

static void on_failed_closed(void *arg)
{
	lease_yield(((struct daemon *)arg)->lease, free_daemon, arg);
}

/* After a failed start: the engine closes its handles on the loop. */
static void abandon(struct daemon *d)
{
	uv_loop_t *loop = d->env.loop;

	stop_views(d);
	if (d->server) {
		rpc_server_stop(d->server, 0, NULL, NULL);
	}
	if (d->env.apply) {
		apply_free(d->env.apply, on_failed_closed, d);
	} else {
		free_daemon(d);
	}
	uv_run(loop, UV_RUN_DEFAULT);
}

int daemon_new(uv_loop_t *loop, const struct daemon_config *cfg,
	       struct daemon **out, struct err *err)
{
	struct daemon *d = new_daemon(loop, cfg);
	struct err fabric_err = { 0 };
	int r;

	d->env.store = cfg->led;
	d->election = cfg->election;
	d->etcd_problem = part_timer_new(&d->env, tell_etcd_problem, d);
	d->meanwhile = part_timer_new(&d->env, tell_meanwhile, d);
	if (d->election) {
		d->env.is_refused = &d->election->status.is_refused;
		d->election->on_problem = on_etcd_problem;
		d->election->on_problem_arg = d;
	}
	d->safe = part_timer_new(&d->env, take_safe, d);
	d->env.reading = true;
	if ((r = make_parts(d, err)) ||
	    (r = changes_load(d->changes, err)) ||
	    (cfg->fabric &&
	     (r = plan_queue_set_default(d->queue, cfg->fabric, err)))) {
		abandon(d);
		return r;
	}
	store_on_safe(d->env.store, on_safe, d);
	d->env.read_only = store_newer(d->env.store) != 0;
	if (d->env.read_only) {
		store_newer_error(d->env.store, &fabric_err);
		log_warn("weftd", "%s", fabric_err.msg);
	}
	d->copier = store_copier_new(&d->env, &d->taken, !cfg->led);
	d->views.copier = d->copier;
	external_changes_watch(&d->env);
	/* A configuration that can no longer be read must not keep the
	 * operator from looking, and from applying a better one. */
	if (plan_queue_settle(d->queue, &fabric_err)) {
		log_error("weftd", "the configuration: %s", fabric_err.msg);
	}
	r = start_parts(d, err);
	if (r) {
		abandon(d);
		return r;
	}
	*out = d;
	return 0;
}

/* ---- while it runs ------------------------------------------------------- */

static void log_kept(const char *what, const struct err *err)
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
		log_kept("access", &err);
	} else {
		access_free(d->env.access);
		d->env.access = fresh;
	}
	if (d->server && rpc_server_reload_tls(d->server, &err)) {
		log_kept("certificates", &err);
	}
	log_info("weftd", "SIGHUP: access and certificates read again");
}

int daemon_port(const struct daemon *d)
{
	return rpc_server_port(d->server);
}

int daemon_metrics_port(const struct daemon *d)
{
	return metrics_port(d->metrics);
}

int daemon_page_port(const struct daemon *d)
{
	return d->webui ? webui_port(d->webui) : 0;
}

/* ---- stop ---------------------------------------------------------------- */

static void after_yield(void *arg)
{
	struct daemon *d = arg;
	void (*stopped)(void *) = d->stopped;
	void *stopped_arg = d->stopped_arg;

	free_daemon(d);
	if (stopped) {
		stopped(stopped_arg);
	}
}

static void on_apply_closed(void *arg)
{
	lease_yield(((struct daemon *)arg)->lease, after_yield, arg);
}

static void on_server_stopped(void *arg)
{
	struct daemon *d = arg;

	d->holds = NULL;

	apply_free(d->env.apply, on_apply_closed, d);
}

static void stop_server(void *arg)
{
	struct daemon *d = arg;
	struct rpc_server *server = d->server;

	if (plan_queue_drained(d->queue) && server) {
		d->server = NULL;
		rpc_server_stop(server, GRACE_MS, on_server_stopped, d);
	}
}

void daemon_stop(struct daemon *d, void (*done)(void *), void *arg)
{
	d->env.draining = true;
	if (d->election) {
		d->election->stops = true;
	}
	stop_views(d);
	health_changed(d->health);
	event_stream_end_calls(d->env.events);
	d->stopped = done;
	d->stopped_arg = arg;
	if (d->env.changing) {
		log_warn("weftd", "stopping once the change under way has "
				  "ended");
	}
	plan_queue_stop(d->queue);
	stop_server(d);
}

/* ---- standing by --------------------------------------------------------- */

static void on_standby_closed(void *arg)
{
	(void)arg;	/* the daemon goes when the loop has run empty */
}

static void on_standby_stopped(void *arg)
{
	struct daemon *d = arg;

	apply_free(d->env.apply, on_standby_closed, NULL);
	standby_free(d->standby);
	d->standby = NULL;
}

/* The process goes on as the leader, or ends: daemon_standby returns either way
 * when the loop has run empty. */
static void on_standby_ended(bool leads, void *arg)
{
	struct daemon *d = arg;
	struct rpc_server *server = d->server;

	d->leads = leads;
	d->server = d->holds = NULL;
	d->env.draining = true;
	health_changed(d->health);
	rpc_server_stop(server, 0, on_standby_stopped, d);
}

/* As others name it: where it listens; with etcd they are on other machines. */
static void name_self(const struct daemon_config *cfg, char self[STORE_HOLDER_MAX])
{
	char host[64] = "";

	if (cfg->listen_host) {
		snprintf(self, STORE_HOLDER_MAX, "%s:%d", cfg->listen_host, cfg->listen_port);
	} else if (cfg->etcd && gethostname(host, sizeof(host) - 1) == 0) {
		snprintf(self, STORE_HOLDER_MAX, "%s:%s", host, cfg->socket);
	} else {
		snprintf(self, STORE_HOLDER_MAX, "%s", cfg->socket);
	}
}

static int make_election(struct daemon *d, struct err *err)
{
	const struct daemon_config *cfg = &d->cfg;
	char self[STORE_HOLDER_MAX], name[JOINT_NAME_MAX], prefix[512];
	struct replica_config replica = {
		.members = cfg->etcd, .prefix = cfg->etcd_prefix, .self = self,
		.tls = cfg->etcd_tls, .lease_ms = cfg->lease_ms,
	};
	int r = cfg->domains ? joint_name(cfg->domains, name, err) : 0;

	if (r) {
		return r;
	}
	if (cfg->domains) {
		snprintf(prefix, sizeof(prefix), "%s%s/", cfg->etcd_prefix, name);
		replica.prefix = prefix;
	}
	name_self(cfg, self);
	if (cfg->etcd) {
		return replica_election(d->env.loop, d->env.store, &replica, &d->election, err);
	}
	d->election = shared_store_election(d->env.store, self);
	return 0;
}

/* The parts over a store that is only read, and the clock that watches the leader. */
static int start_standby(struct daemon *d, struct err *err)
{
	const struct daemon_config *cfg = &d->cfg;
	struct store_config config;
	int r = make_parts(d, err);

	if (r) {
		return r;
	}
	if (store_config(d->env.store, &config, NULL) == 0) {
		d->env.applied = true;
		store_config_fini(&config);
	}
	if ((r = make_election(d, err)) || (r = start_server(d, err))) {
		return r;
	}
	d->standby = standby_new(&d->env, d->election, cfg->lease_ms, on_standby_ended, d);
	d->views.election = d->election;
	d->views.standby = d->standby;
	notify_send("READY=1\nSTATUS=standing by");
	log_info("weftd", "standing by on %s", cfg->socket);
	return 0;
}

int daemon_standby(uv_loop_t *loop, struct daemon_config *cfg, struct err *err)
{
	struct daemon *d = new_daemon(loop, cfg);
	int r;

	d->env.standby = true;
	r = start_standby(d, err);
	if (r) {
		abandon(d);
		return r;
	}
	uv_run(loop, UV_RUN_DEFAULT);
	if (d->leads) {
		cfg->led = d->env.store;
		cfg->election = d->election;
		d->env.store = NULL;
		d->election = NULL;
	} else {
		r = err_set(err, WEFT_ECANCELED, "stopped");
	}
	free_daemon(d);
	uv_run(loop, UV_RUN_DEFAULT);
	return r;
}

void daemon_give_up(struct daemon_config *cfg)
{
	struct err err = { 0 };

	if (!cfg->led) {
		return;
	}
	if (cfg->election->yield(cfg->election, &err)) {
		log_warn("weftd", "%s", err.msg);
	}
	cfg->election->free(cfg->election);
	store_free(cfg->led);
	cfg->election = NULL;
	cfg->led = NULL;
}
