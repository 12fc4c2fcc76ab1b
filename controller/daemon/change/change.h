/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the fabric: apply, rollback, cancel and confirm, one at a time;
 * what is drained or frozen; maintenance of single ports and devices; changes
 * by others and their restoring; circuits that changes were committed without.
 */
#ifndef WEFT_DAEMON_CHANGE_CHANGE_H
#define WEFT_DAEMON_CHANGE_CHANGE_H

#include "controller/daemon/core/core.h"
#include "controller/daemon/core/plan_queue.h"
#include "controller/daemon/hosts/hosts.h"
#include "weft/v1/jobs.pb-c.h"

/* ---- drain.c: what gets no new circuits, and the frozen fabric ---- */

struct drain;

/* changed is called when something is drained or frozen, or no longer. */
struct drain *drain_new(struct daemon_env *env, void (*changed)(void *arg), void *arg);
void drain_free(struct drain *d);	/* NULL is fine */
/* Reads from the store what is drained or frozen; on error the list stays as it
 * was. */
int drain_load(struct drain *d, struct err *err);
/* How many entries there are: the frozen fabric is one, the others are drained
 * parts. */
int drain_count(const struct drain *d);
/* All of them as messages that borrow their strings until the loop runs, for
 * free(). */
Weft__V1__Hold **drain_messages(const struct drain *d, size_t *n);
/* WEFT_ESTALE while the fabric is frozen. */
int drain_check_frozen(const struct drain *d, struct err *err);
/* WEFT_ESTALE when a plan makes circuits on what is drained, or loads a program of a
 * job there that its ring does not play yet; what stays may stay. O(circuits x
 * entries). */
int drain_check_plan(const struct drain *d, const struct plan *p, struct err *err);
/* True when new jobs are to stay away from a host as a whole, or from a host's port: it, its host,
 * or what it reaches is drained. O(entries). */
bool drain_has_host(const struct drain *d, const struct model_fabric *f, int host);
bool drain_has_port(const struct drain *d, const struct model_fabric *f, int port);
/* WEFT_ESTALE where a host's port, or what it reaches, is drained. O(entries). */
int drain_check_port(const struct drain *d, const struct model_fabric *f, int port,
		     struct err *err);
/* Takes what is drained, and the part of the name evacuated ("": none), from what planning f may
 * use: ports without light are unusable ones of s, which is of f, and others held or to be
 * emptied. */
void drain_restrict(const struct drain *d, const struct model_fabric *f, const char *evacuated,
		    struct snapshot *s);
/* HOST, HOST.PORT, DEVICE or DEVICE.N of the present fabric; WEFT_ENOTFOUND: it is none, or there
 * is no fabric. O(names). */
int drain_check_name(const struct drain *d, const char *what, struct err *err);
/* Freezes the fabric, as Freeze does: durable, and told. out->holds is the caller's to
 * free, also on error. */
int drain_freeze(struct drain *d, const struct rpc_call *call, const char *reason,
		 Weft__V1__Holds *out, struct err *err);
/* A change that empties `what` is committed, and the store has it as drained: it is told. */
void drain_emptied(struct drain *d, const char *what, const struct change_order *order);
/* Drain, Undrain, Unfreeze; arg is the struct drain. Each is durable, in the
 * audit trail and an event before it is answered with all entries of now.
 * WEFT_ENOTFOUND for a name that the present fabric does not have. */
void handle_drain(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
void handle_undrain(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
void handle_unfreeze(struct rpc_call *call, const ProtobufCMessage *req, void *arg);

/* ---- change_requests.c, confirm.c ---- */

struct changes;

/* What happens to a change, for the parts above; all with arg, on the loop. For
 * each change begun comes first, then progress any number of times, then committed
 * if it was, then ended, then idle. */
struct change_hooks {
	void (*begun)(const char *who, const char *comment, void *arg);
	/* As the engine reports it; ev is valid during the call only. */
	void (*progress)(const struct apply_event *ev, void *arg);
	/* The jobs are those of the change now. */
	void (*committed)(void *arg);
	/* err: NULL when it went well. */
	void (*ended)(const struct apply_result *res, const struct err *err, void *arg);
	/* The next change may begin. */
	void (*idle)(void *arg);
	void *arg;
};

/* Everything is borrowed and outlives it; hooks are copied. */
struct changes *changes_new(struct daemon_env *env, struct plan_queue *queue,
			    struct job_status *jobs, struct drain *drain, struct hosts *hosts,
			    const struct change_hooks *hooks);
void changes_free(struct changes *c);	/* NULL is fine */
/* Reads from the store which change waits for its confirmation; without its
 * clock, which changes_watch_confirm starts. */
int changes_load(struct changes *c, struct err *err);
/* The one that waits for its confirmation; its change is 0: none does. */
const struct store_confirm *changes_confirm(const struct changes *c);
/* What waits is read from the store; its clock is started, stopped, or, when
 * going back has just failed, set to try again. */
void changes_watch_confirm(struct changes *c);

/* A change that weftd makes by itself. */
struct own_change {
	const char *who, *comment;	/* for the history; copied */
	/* No other jobs' circuits are touched; a NULL behind them; copied. NULL: any. */
	const char *const *jobs;
	bool update;		/* takes ports from circuits that weft did not make */
	bool partial;		/* what was made stays, though other circuits could not be */
	/* Called at its end, when the next change may begin. */
	void (*ended)(int rc, const struct err *err, void *arg);
	void *arg;
};

/* Begins a change of the present configuration with the jobs that are to have
 * circuits now. WEFT_ESTALE when another change runs or one waits for its
 * confirmation; WEFT_ENOTFOUND when nothing was ever applied. */
int changes_begin_jobs(struct changes *c, const struct own_change *own, struct err *err);

/* ---- changes in which others have parts (../joint) ---- */

/* A change of the configuration as all are asked for it. */
struct joint_request {
	struct change_order order;
	struct model_config config;	/* with the jobs of orchestrators: nothing is added */
	enum plan_mode mode;
	bool ignore_floor;		/* as in struct plan_request */
	char digest[65];		/* that the plan must have; "": any */
};

/* Those who lead the fabric together with this weftd; all with arg, on the loop. */
struct change_partners {
	/* A change is asked for here: begins it everywhere, here by changes_begin_part with the
	 * same call and own before it returns. */
	int (*ask)(const struct joint_request *q, struct rpc_call *call,
		   const struct own_change *own, void *arg, struct err *err);
	/* Of a part, in this order: as plan_request.prepare, which may wait; its plan is there;
	 * as apply_request.ready; its end, whatever came before. */
	void (*prepare)(struct plan_request *r, void *arg);
	void (*planned)(const struct plan *p, void *arg);
	void (*ready)(int stage, void *arg);
	/* Before `ended`: may the others know of the part? If not, it is to a client as if it had
	 * not begun: what was asked with the same id elsewhere may yet be done. */
	bool (*is_known)(void *arg);
	void (*ended)(const struct apply_result *res, int rc, const struct err *err, void *arg);
	/* The part is to be stopped, if it can still be. */
	void (*cancel)(void *arg);
	void *arg;
};

/* From now on changes of the configuration are asked of them; copied. */
void changes_set_partners(struct changes *c, const struct change_partners *partners);
/* Begins the part of this weftd, watched by call (may be NULL). own: NULL, or who is told of its
 * end. The errors of changes_begin_jobs, and of a configuration that cannot be. */
int changes_begin_part(struct changes *c, const struct joint_request *q, struct rpc_call *call,
		       const struct own_change *own, struct err *err);

/* Apply, Rollback, Cancel, Freeze, Confirm; SetPort and Recover (device_requests.c); arg is
 * the struct changes. */

/* Plans a configuration, or a plan file again, and carries the plan out; streams
 * progress and the result. WEFT_ESTALE: another change runs or waits, the state is
 * not the expected one, or the plan file's plan is no longer what would be made. */
void handle_apply(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* Applies an earlier configuration again: that of a generation, or the one before
 * the present. WEFT_ENOTFOUND: none is on record. */
void handle_rollback(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* Gives a job's hosts the light of a collective of its step: a change of the present configuration
 * in which no other job's circuits move. WEFT_ENOTFOUND, WEFT_EINVAL as plan_set_light;
 * WEFT_EUNSUPPORTED where others lead the fabric too. */
void changes_set_light(struct changes *all, struct rpc_call *call,
		       const Weft__V1__SetLightRequest *req);
/* Asks the change that runs to stop, and watches it to its end; or takes back the
 * one that waits for its confirmation. WEFT_ENOTFOUND: neither is there. */
void handle_cancel(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* Freezes the fabric, and with `now` asks the change that runs to stop. */
void handle_freeze(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* Keeps the change that waits. WEFT_ENOTFOUND: none does, or another one. */
void handle_confirm(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* Enables or disables one port. WEFT_ESTALE: a change runs or waits, or the port
 * has an intended circuit and the request does not force it. */
void handle_set_port(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* Homes a robot, locks a ring again, or clears a device's fault. */
void handle_recover_device(struct rpc_call *call, const ProtobufCMessage *req, void *arg);

/* ---- resume.c: an open change that hangs on devices that are away ---- */

struct change_wait {
	int64_t change;		/* 0: none hangs */
	char device[CONF_MAX_NAME + 1];	/* the first that is away; "": none any more */
	int64_t by_ns;		/* wall clock: it is ended by itself until then; 0: not at all */
};

/* As it was after the last slot of the queue. */
const struct change_wait *changes_wait(const struct changes *c);
/* One sentence about one that hangs; returns text. */
const char *change_wait_text(const struct change_wait *w, char *text, size_t size);
/* Looks at what is open and what of it can be ended now; that begins later, from the loop. Call
 * when a slot of the queue has ended. */
void changes_resume(struct changes *c);

/* ---- progress.c: the change under way, and the jobs meanwhile ---- */

/* Borrows what jobs and the change have; valid until the loop runs. */
struct progress_view {
	bool running;
	Weft__V1__ChangeProgress m;	/* if so */
	Weft__V1__PlanJob **jobs;	/* [n_jobs]: as they were before the
					 * change, with what it does to them,
					 * then those that it begins */
	const struct buf **packed;	/* [n_jobs], but for what the change does */
	size_t n_jobs;
	void *memory;		/* of them */
};

/* rows: of the jobs as last planned. A zeroed v is fine for fini. O(jobs^2) while a
 * change runs, else O(1). */
void progress_view_init(struct progress_view *v, const struct changes *c,
			const struct job_rows *rows);
void progress_view_fini(struct progress_view *v);

/* ---- external_changes.c: changes of circuits that weft did not make ---- */

/* Records, as messages; a zeroed v is fine for fini, also after an error. */
struct external_view {
	struct store_external_change *stored;	/* what list borrows from */
	int n_stored;
	Weft__V1__ExternalChange **list;	/* [n], the newest first */
	size_t n;
};

/* Those that q asks for. The errors of store_external_changes. */
int external_view_init(struct external_view *v, const struct daemon_env *env,
		       const struct store_external_query *q, struct err *err);
void external_view_fini(struct external_view *v);
/* They become events from now on: when one is found, and when it is over. */
void external_changes_watch(struct daemon_env *env);
/* ExternalChanges; arg is the struct daemon_env. */
void handle_external_changes(struct rpc_call *call, const ProtobufCMessage *req, void *arg);

/* ---- auto_restore.c: and they are undone, where the fabric says so ---- */

struct restore;

/* What weftd does about changes by others on a device. */
enum model_external external_policy(const struct model_fabric *f, const struct model_device *md,
				    const struct apply_device *a);
/* Remembers which restores failed; does nothing until restore_check. */
struct restore *restore_new(struct daemon_env *env, struct changes *changes);
void restore_free(struct restore *r);	/* NULL is fine */
/* Begins a change for what is due. Call when the slot of the queue is free. NULL is
 * fine: a standby restores nothing. */
void restore_check(struct restore *r);

/* ---- pending_repairs.c: circuits that changes were committed without ---- */

struct repairs_view {
	struct store_repair *stored;	/* what list borrows from */
	int n_stored;
	Weft__V1__PendingRepair **list;	/* those that are not there */
	size_t n;
};

/* By the last readings and the last probe of hosts. A zeroed v is fine for
 * fini, also after an error. */
int repairs_view_init(struct repairs_view *v, const struct daemon_env *env,
		      const struct hosts *hosts, struct err *err);
void repairs_view_fini(struct repairs_view *v);

#endif
