/*
 * Shared by the files of the daemon.
 *
 *   daemon.c    life: start, background reading, drain
 *   plan_queue.c      planning: the queue, the worker, the steps of one request
 *   snapshot.c  a copy of what a plan starts from
 *   change.c    apply, rollback, cancel: one change and who watches it
 *   confirm.c   committed changes that go back unless confirmed
 *   poll.c      devices are read now and then
 *   device_events.c      and when they say something of their own accord
 *   lease.c     leading others who share the store
 *   standby.c   while another one leads
 *   jobs*.c     jobs that orchestrators ask for; see jobs.h
 *   query.c     plan, verify, schedule
 *   status.c     status, diff
 *   history.c   changes, and what was said to devices
 *   external_changes.c   changes of light by others, told
 *   restore*.c  and brought back, where the fabric says so
 *   circuit_status.c     the circuits of one device, with what they lose
 *   access.c    roles: who may call what
 *   hosts.c     hosts of this machine: links, neighbours, routes; see hosts.h
 *   maintenance.c      ports set and devices recovered by hand
 *   drain.c      drained parts, the frozen fabric
 *   metrics.c   for Prometheus
 *   webui.c      the page to look at, and its JSON
 *   event_stream.c     what happens, told to those who watch
 *   health.c    grpc.health.v1
 *   reflection.c  grpc.reflection
 *   notify.c    the service manager
 *   privileges.c  becoming a user without any
 *   trace.c     traceparent
 *   log_sinks.c      sinks and levels of the log
 *   journald.c   the journal of systemd
 *   weftd.c     the command line
 */
#ifndef WEFT_DAEMON_CORE_PRIVATE_H
#define WEFT_DAEMON_CORE_PRIVATE_H

#include <sys/queue.h>

#include "controller/apply/apply.h"
#include "controller/daemon/core/daemon.h"
#include "controller/model/model.h"
#include "controller/plan/plan.h"
#include "controller/proto_convert/proto_convert.h"
#include "controller/store/store.h"
#include "lib/base/buf.h"
#include "lib/http/http.h"
#include "lib/output/writer.h"
#include "lib/rpc/rpc.h"
#include "weft/v1/weft.pb-c.h"

#define DAEMON_MAX_METHODS 40
#define MAX_FINISHED 32		/* results kept for repeated request ids */

/* ---- snapshot.c ---- */

/* A deep copy of a plan base, so that workers see a state that stays. */
struct snapshot {
	struct plan_base base;
	int n;
	struct plan_light *intent, *observed;
	struct ring_programs *programs;	/* [2 n] */
	int64_t *port_ns, *device_ns;	/* base.times */
};

int daemon_snapshot_init(struct snapshot *s, const struct plan_base *base,
			 int n, struct err *err);
void daemon_snapshot_fini(struct snapshot *s);

/* ---- plan_queue.c ---- */

/*
 * One request on its way: parse (worker) -> its turn in the queue -> open and
 * read its devices -> copy the base -> plan (worker) -> done on the loop.
 * `done` must end in daemon_work_free, at once or later; until then nothing
 * else gets its turn.
 */
struct work {
	struct work *next;
	struct daemon *d;
	bool queued;		/* has or waits for its turn */
	bool pure;		/* the present configuration as applied, and
				 * what remains of it; no turn, no reading */
	bool must;		/* without the floor of capacity, if it cannot
				 * be kept */
	char *name, *text;	/* the configuration; owned */
	size_t len;
	enum plan_mode mode;
	bool has_keep;		/* in place of the configuration's; only for */
	int64_t keep_ppm;	/* what is not applied */
	char *only;		/* as plan_base.only; owned */
	struct restoring *restoring;	/* instead of jobs; owned, or NULL */
	struct model_fabric *fabric;
	struct snapshot snap;
	struct plan *plan;
	struct buf picture;	/* see page.h; with the plan's light */
	bool with_picture;	/* wanted */
	bool unlit;		/* it is to show no light: nothing is applied */
	int rc;
	struct err err;
	void (*done)(struct work *w);
	void *arg;
	/* private to plan_queue.c */
	int64_t plan_ns;
	struct model_fabric *probe;
	bool probed;		/* other devices than the present ones */
	uv_work_t req;
};

/* A request to plan this configuration (copied; NULL: the present one).
 * WEFT_ENOTFOUND when there is no present one. */
int daemon_work_new(struct daemon *d, const char *name, const void *text,
		    size_t len, struct work **out, struct err *err);
void daemon_work_start(struct work *w);
/* Ends a request's turn and frees it; the next one gets its turn. */
void daemon_work_free(struct work *w);

/* A turn in the queue for something else than planning: run is called when
 * it comes; it must end in daemon_work_free. */
int daemon_turn(struct daemon *d, void (*run)(struct work *w), void *arg,
		struct err *err);

/* Makes the fabric of the open change, or of the store, the present one.
 * While nothing was ever applied, what is there stays. Happens by itself
 * after a request that looked at other devices. */
int daemon_settle_fabric(struct daemon *d, struct err *err);
/* The same after apply_recover, which has found (rc, text). */
void daemon_recovered(struct daemon *d, int rc, const char *text);

/* ---- change.c ---- */

struct change;

/* A change that has ended, for those who ask again. */
struct finished {
	char *request_id;
	struct apply_result res;
	int rc;
	struct err err;
};

void handle_apply(struct rpc_call *call, const ProtobufCMessage *req,
		  void *arg);
void handle_rollback(struct rpc_call *call, const ProtobufCMessage *req,
		     void *arg);
void handle_cancel(struct rpc_call *call, const ProtobufCMessage *req,
		   void *arg);
void daemon_finished_fini(struct daemon *d);
/* Starts a change of weftd's own, back to the configuration of an earlier
 * one; call (may be NULL) watches it. WEFT_ESTALE when a change runs. */
int daemon_go_back(struct daemon *d, struct rpc_call *call, int64_t to,
		   const char *comment, struct err *err);

struct own_change {
	const char *who, *comment;
	const char *job;	/* no other job's light is touched */
	struct restoring *restoring;	/* daemon_change_restore */
	/* Called at its end, when the next change may begin. */
	void (*ended)(struct daemon *d, const struct apply_result *res, int rc,
		      const struct err *err);
};

/* Starts a change of weftd's own: the present configuration with the jobs
 * that are to have light now. WEFT_ESTALE when another change runs or one
 * waits for its confirmation; WEFT_ENOTFOUND when nothing was ever applied. */
int daemon_change_jobs(struct daemon *d, const struct own_change *own,
		       struct err *err);

/* Starts a change of weftd's own that brings back own->restoring (taken over,
 * also on error) and nothing else. The same errors. */
int daemon_change_restore(struct daemon *d, const struct own_change *own,
			  struct err *err);

/* ---- external_changes.c ---- */

/* Records, as messages; a zeroed v is fine for fini, also after an error. */
struct foreign_view {
	struct store_foreign *stored;
	int n_stored;
	Weft__V1__ExternalChange *rows, **list;
	size_t n;
};

int foreign_view_init(struct foreign_view *v, struct daemon *d,
		      const struct store_foreign_query *q, struct err *err);
void foreign_view_fini(struct foreign_view *v);
/* Changes by others are told from now on. */
void daemon_foreign_init(struct daemon *d);
void handle_foreign(struct rpc_call *call, const ProtobufCMessage *req,
		    void *arg);

/* ---- auto_restore.c ---- */

struct restoring;
struct restore;

/* What weftd does about changes by others on a device. */
enum model_foreign daemon_foreign_policy(const struct model_fabric *f,
					 const struct model_device *md,
					 const struct apply_device *a);
int daemon_restore_init(struct daemon *d, struct err *err);
void daemon_restore_fini(struct daemon *d);
/* Begins a change for what is due. A turn has ended. */
void daemon_restore_look(struct daemon *d);
void daemon_restore_due(uv_timer_t *timer);
/* What of it may be done now goes to the base of s. WEFT_ESTALE: nothing,
 * and why. */
int restoring_base(struct restoring *r, struct daemon *d,
		   const struct model_fabric *f, struct snapshot *s,
		   struct err *err);
/* NULL is fine. */
void restoring_free(struct restoring *r);

/* ---- jobs.c ---- */

struct jobs;

int jobs_new(struct daemon *d, struct jobs **out, struct err *err);
void jobs_free(struct jobs *jobs);
/* The present configuration has changed, or was found at the start: jobs
 * that are in it run, those that are no longer in it have ended. */
void jobs_settle(struct jobs *jobs);
/* How many there are in each state; those that are over as far as they are
 * remembered. */
void jobs_count(const struct jobs *jobs, int n[STORE_JOB_FAILED + 1]);
/* A change has ended, or the devices are known: what waits may go on. */
void jobs_tick(struct jobs *jobs);
/* Somebody has looked at the devices: when all answer, what failed for a
 * device's sake is tried again now and not when its time comes. */
void jobs_looked(struct jobs *jobs);
/* What is left of running jobs is known anew. */
void jobs_look(struct jobs *jobs);
/* True for a job that has no schedule unless all its light is there. */
bool jobs_wants_whole(const struct jobs *jobs, const char *name);
/* The configuration `text` without the jobs that it may hold, and behind it
 * those that are to have light now. */
int jobs_compose(const struct jobs *jobs, const char *text, size_t len,
		 struct buf *out, struct err *err);
void handle_request_job(struct rpc_call *call, const ProtobufCMessage *req,
			void *arg);
void handle_release_job(struct rpc_call *call, const ProtobufCMessage *req,
			void *arg);
/* Jobs that live, as an array of o. */
int jobs_out(const struct jobs *jobs, struct out *o, struct err *err);
void handle_list_jobs(struct rpc_call *call, const ProtobufCMessage *req,
		      void *arg);

/* ---- confirm.c ---- */

void handle_confirm(struct rpc_call *call, const ProtobufCMessage *req,
		    void *arg);
/* What waits is read from the store; its clock is started, stopped, or, when
 * going back has just failed, set to try again. */
void daemon_confirm_watch(struct daemon *d);
void daemon_confirm_fini(struct daemon *d);

/* ---- maintenance.c ---- */

void handle_set_port(struct rpc_call *call, const ProtobufCMessage *req,
		     void *arg);
void handle_recover_device(struct rpc_call *call, const ProtobufCMessage *req,
			   void *arg);

/* ---- poll.c ---- */

/* Reads all devices every so often from now on; 0: never. */
int daemon_poll_init(struct daemon *d, int64_t every_ms, struct err *err);
void daemon_poll_fini(struct daemon *d);

/* ---- device_events.c ---- */

/* Listens to the devices from now on. */
int daemon_news_init(struct daemon *d, struct err *err);
void daemon_news_fini(struct daemon *d);

/* ---- lease.c ---- */

/* The weftd that leads proves that it lives, and ends at once, with its light
 * as it is, when it cannot or when another leads: it looks before every
 * command to a device, and its store refuses what it writes. */
int daemon_lease_init(struct daemon *d, struct err *err);
/* The next one may lead at once. */
void daemon_lease_fini(struct daemon *d);

/* ---- standby.c ---- */

struct standby;

/* Looks on while another leads, and answers what the store can tell, until
 * this process leads: *led is the store. WEFT_ECANCELED: stopped by a signal.
 * Runs the loop. */
int standby_run(uv_loop_t *loop, const struct daemon_config *cfg,
		struct store **led, struct err *err);
/* Who leads. */
const char *standby_leader(const struct standby *s);
/* 0 for what a standby answers; WEFT_EUNAVAIL names the leader. */
int standby_permit(struct daemon *d, const char *path, struct err *err);

/* ---- daemon.c ---- */

/* The store's file in the state folder, which is made when missing. */
int daemon_store_path(const char *dir, char *path, size_t size,
		      struct err *err);
int daemon_listen(struct daemon *d, const struct daemon_config *cfg,
		  struct err *err);
/* What is left once server and engine have stopped. */
void daemon_free(struct daemon *d);

/* ---- query.c ---- */

void handle_plan(struct rpc_call *call, const ProtobufCMessage *req,
		 void *arg);
void handle_verify(struct rpc_call *call, const ProtobufCMessage *req,
		   void *arg);
void handle_schedule(struct rpc_call *call, const ProtobufCMessage *req,
		     void *arg);

/* ---- status.c ---- */

struct daemon_status;

/* What a loss of power leaves of a device's map, as the API says it. */
const char *daemon_power_loss(const struct apply_device *a);
/* All that is known now, as a message that is valid until the state changes.
 * Touches no device. daemon_status_free(NULL) is fine. */
int daemon_status_new(struct daemon *d, struct daemon_status **out,
		      struct err *err);
void daemon_status_free(struct daemon_status *s);
/* What was learned of a port or device, in out; NULL when that is nothing. */
Weft__V1__Timing *daemon_timing(const struct daemon *d,
				enum store_timing_kind kind, const char *name,
				Weft__V1__Timing *out);
const Weft__V1__StatusResponse *
daemon_status_message(const struct daemon_status *s);
void handle_status(struct rpc_call *call, const ProtobufCMessage *req,
		   void *arg);
void handle_diff(struct rpc_call *call, const ProtobufCMessage *req,
		 void *arg);
/* Answers with intent against the last readings. */
void daemon_finish_diff(struct daemon *d, struct rpc_call *call);

/* ---- history.c ---- */

/* As the API calls it. */
char *daemon_outcome_name(enum store_verdict v);
/* Strings are borrowed. */
void daemon_fill_change(Weft__V1__Change *m, const struct store_change *c);
void handle_history(struct rpc_call *call, const ProtobufCMessage *req,
		    void *arg);
/* What a caller did, for the audit trail: "WHAT by user 0, process 7". */
void daemon_audit_call(struct daemon *d, const struct rpc_call *call,
		       int64_t change, const char *what);
void handle_audit(struct rpc_call *call, const ProtobufCMessage *req,
		  void *arg);

/* ---- circuit_status.c ---- */

struct light_view {
	struct wire_circuits circuits;
	void *memory;
};

/* Strings are those of `a`, which is apply_devices()[device]. A zeroed v is
 * fine for fini, also after an error. O(circuits log circuits). */
int daemon_light_init(struct light_view *v, struct daemon *d, int device,
		      const struct apply_device *a, struct err *err);
void daemon_light_fini(struct light_view *v);

/* ---- access.c ---- */

/* Each may what the ones before it may. */
enum access_role {
	ACCESS_NONE,		/* only health and reflection */
	ACCESS_VIEWER,		/* looks */
	ACCESS_ORCHESTRATOR,	/* and has jobs of its own */
	ACCESS_OPERATOR,	/* and changes the fabric */
};

struct access;

/* The roles that a file grants (format: weftd(8)); without one, root and the
 * owner are operators and other local users viewers. WEFT_EINVAL with the
 * line; the errors of file_read. */
int access_new(const char *file, uid_t owner, struct access **out,
	       struct err *err);
int access_parse(const char *file, const char *text, size_t len, uid_t owner,
		 struct access **out, struct err *err);
/* NULL is fine. */
void access_free(struct access *a);
/* The same for something that a method alone does not tell. */
int access_need(const struct access *a, const struct rpc_peer *peer,
		enum access_role needs, const char *what, struct err *err);
/* 0, or WEFT_EDENIED and a line in the log. O(grants). */
int access_permit(const struct access *a, const struct rpc_peer *peer,
		  const char *path, struct err *err);

/* ---- drain.c ---- */

/* Reads from the store what is held. */
int daemon_holds_read(struct daemon *d, struct err *err);
/* WEFT_ESTALE while the fabric is frozen. */
int daemon_check_frozen(const struct daemon *d, struct err *err);
/* WEFT_ESTALE when a plan makes light on what is drained. */
int daemon_check_holds(const struct daemon *d, const struct plan *p,
		       struct err *err);
/* True when new jobs are to stay away from this host: it, one of its ports, or
 * what they reach is drained. */
bool daemon_host_is_held(const struct daemon *d, const struct model_fabric *f,
			 int host);
/* Takes drained ports that are dark from what planning `f` may use. */
int daemon_steer(const struct daemon *d, const struct model_fabric *f,
		 struct snapshot *s, struct err *err);
/* Strings are borrowed. */
void daemon_fill_hold(Weft__V1__Hold *m, const struct store_hold *h);
void handle_drain(struct rpc_call *call, const ProtobufCMessage *req,
		  void *arg);
void handle_undrain(struct rpc_call *call, const ProtobufCMessage *req,
		    void *arg);
void handle_freeze(struct rpc_call *call, const ProtobufCMessage *req,
		   void *arg);
void handle_unfreeze(struct rpc_call *call, const ProtobufCMessage *req,
		     void *arg);

/* ---- pending_repairs.c ---- */

struct repairs {
	struct store_repair *stored;
	int n_stored;
	Weft__V1__PendingRepair *rows, **list;	/* of those that are not there */
	size_t n;
};

int daemon_repairs(struct daemon *d, struct repairs *r, struct err *err);
void daemon_repairs_fini(struct repairs *r);

/* ---- metrics.c ---- */

#define DAEMON_BUCKETS 7

/* What is counted since the start. */
struct counts {
	int64_t changes[APPLY_STUCK + 1];	/* by verdict */
	int64_t buckets[DAEMON_BUCKETS];	/* of their duration */
	double change_seconds;
	int64_t calls[DAEMON_MAX_METHODS];	/* like daemon.methods */
	int64_t handled[DAEMON_MAX_METHODS][RPC_UNAUTHENTICATED + 1];
	int64_t plans, plans_failed, plan_ns;
};

void daemon_count_change(struct daemon *d, const struct apply_result *res);
void daemon_count_call(struct daemon *d, const char *path);
void daemon_count_answer(struct daemon *d, const char *path,
			 enum rpc_status status);
void daemon_count_plan(struct daemon *d, int rc, int64_t took_ns);
/* Serves them. WEFT_EINVAL for an address that is not loopback. */
int daemon_metrics_start(struct daemon *d, const char *host, int port,
			 struct err *err);
void daemon_metrics_stop(struct daemon *d);

/* ---- webui.c ---- */

struct page;

/* Also on a loopback address, if host is one; browsers with a certificate
 * come over the gRPC listener (daemon_page_get). WEFT_EINVAL, WEFT_EIO. */
int daemon_page_start(struct daemon *d, const char *host, int port,
		      struct err *err);
/* Answers all who wait, and takes no more. */
void daemon_page_stop(struct daemon *d);
/* A GET over HTTP/2: needs a viewer. */
void daemon_page_get(struct rpc_call *call, void *arg);
/* What the page shows is no longer what it was. O(1). */
void daemon_page_changed(struct daemon *d);
/* How a change goes: it has begun, goes on, has ended. */
void daemon_page_begins(struct daemon *d, const char *who,
			const char *comment);
void daemon_page_progress(struct daemon *d, const struct apply_event *ev);
void daemon_page_ended(struct daemon *d, const char *verdict,
		       const struct err *err);

/* ---- event_stream.c ---- */

struct events;

/* What an event is about. */
struct daemon_event {
	Weft__V1__EventKind kind;
	const char *device;	/* NULL: none */
	const char *port;	/* NULL: none */
	int64_t change;		/* 0: none */
	Weft__V1__Verdict verdict;
	const char *trace;	/* NULL: none */
};

int daemon_events_init(struct daemon *d, struct err *err);
void daemon_events_fini(struct daemon *d);
/* Tells it, with one sentence, to all who watch. O(watchers). */
void daemon_event(struct daemon *d, const struct daemon_event *what,
		  const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The newest `most` events as an array of o, newest first. */
void daemon_out_events(const struct daemon *d, struct out *o, int most);
/* Tells what the last readings have shown: devices that are away, are back,
 * have restarted, are not as intended. O(devices). */
void daemon_observe(struct daemon *d);
void handle_watch(struct rpc_call *call, const ProtobufCMessage *req,
		  void *arg);
/* Ends the calls, which would never end by themselves. */
void daemon_watch_end(struct daemon *d);

/* ---- health.c ---- */

void handle_health_check(struct rpc_call *call, const ProtobufCMessage *req,
			 void *arg);
void handle_health_watch(struct rpc_call *call, const ProtobufCMessage *req,
			 void *arg);
/* Tells those who watch what has changed; ends their calls once the daemon
 * is draining, as they would never end by themselves. O(watchers). */
void daemon_health_changed(struct daemon *d);

/* ---- reflection.c ---- */

struct reflection;

void handle_reflection(struct rpc_call *call, const ProtobufCMessage *req,
		       void *arg);
void reflection_free(struct reflection *r);

/* ---- privileges.c ---- */

/* Root becomes this user for good, in a process of one thread; of root's
 * capabilities those for network namespaces stay if asked for. Folders of the
 * store and the socket that are missing are made, and are the user's. WEFT_EUSAGE
 * for an unknown user; WEFT_EDENIED without root; WEFT_EIO. */
int daemon_become(const struct daemon_config *cfg, const char *user,
		  bool netlink, struct err *err);

/* ---- notify.c ---- */

/* Tells the service manager ("READY=1"), when there is one. */
void daemon_notify(const char *state);
/* Sends signs of life twice as often as the service manager wants them
 * (WATCHDOG_USEC, WATCHDOG_PID); false when it wants none. */
bool daemon_watchdog_start(uv_loop_t *loop, uv_timer_t *timer);

/* ---- trace.c ---- */

#define DAEMON_TRACE_SIZE 33

/* The trace id of a W3C traceparent header, 32 hexadecimal digits; false and ""
 * when it is none, which is as good as no header. */
bool daemon_trace_parse(const char *header, char id[DAEMON_TRACE_SIZE]);
/* That of a call (NULL: weftd itself), or "". */
void daemon_trace_of(const struct rpc_call *call, char id[DAEMON_TRACE_SIZE]);

/* ---- log_sinks.c, journald.c ---- */

/* Log lines become objects of JSON; or entries of the journal, if that is what
 * standard error is. */
void daemon_log_init(bool json);
void handle_log(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* One entry of fields "NAME=value". */
void daemon_journal(char *const *fields, int n);

/* ---- the rows of jobs that status shows ---- */

struct job_rows {
	bool known;
	char hash[65];		/* of the configuration they are of */
	size_t n;
	Weft__V1__PlanJob **v;
	char *picture;		/* of the fabric with their light, JSON */
	size_t picture_len;
	int64_t picture_id;	/* grows, also over restarts */
	struct err err;		/* why they are not known */
};

/* Copies the rows of the request's plan, and takes its picture over. */
int job_rows_take(struct job_rows *rows, struct work *w, struct err *err);
void job_rows_fini(struct job_rows *rows);

/* ---- the daemon ---- */

struct daemon {
	uv_loop_t *loop;
	struct daemon_config cfg;
	struct access *access;
	struct store *store;
	struct apply *apply;
	struct rpc_server *server;
	bool reading;			/* devices are not known (again) */
	bool was_read;			/* all were asked once */
	TAILQ_HEAD(, health_watch) watches;
	struct events *events;
	struct counts counts;
	struct page *page;
	struct http_server *metrics;	/* NULL: not served */
	struct store_hold *holds;	/* as in the store */
	int n_holds;
	bool applied;			/* a configuration is on record */
	bool draining;
	char *fabric_name, *fabric_text; /* of --fabric, or NULL */
	size_t fabric_len;

	struct work *turn, *last;	/* the queue; its head is running */
	int n_pure;			/* planning without a turn */
	int n_refresh;			/* of these, the jobs for status */
	struct change *change;		/* running or waiting, or NULL */
	struct store_confirm confirm;	/* what waits, change 0: nothing */
	struct confirm_clock *clock;	/* for it, or NULL */
	struct poll *poll;		/* the slow round, or NULL */
	struct news *news;		/* what devices said */
	struct restore *restore;	/* of what others changed */
	struct lease *lease;		/* while leading others, or NULL */
	struct standby *standby;	/* while another leads, or NULL */
	struct jobs *orders;		/* jobs of orchestrators */
	struct finished finished[MAX_FINISHED];
	int n_finished;			/* ever; the newest are kept */
	struct job_rows jobs;
	uint64_t dead_light;	/* plan_dead_light when they were planned */

	struct hosts *hosts;		/* of this machine, or NULL */
	struct prover *prover;		/* asks them during changes */
	struct host_wait *host_waits;	/* for a look at them */

	void (*stopped)(void *arg);
	void *stopped_arg;
	struct reflection *reflection;	/* once somebody has asked */
	struct rpc_method methods[DAEMON_MAX_METHODS];
};

/* True unless weftd is stopping; then the call was answered. */
bool daemon_may_change(struct daemon *d, struct rpc_call *call);
/* Plans the jobs of the present configuration anew, for status. */
void daemon_refresh_jobs(struct daemon *d);
/* Goes on stopping when nothing is under way any more. */
void daemon_drained(struct daemon *d);

#endif
