/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What weftd shows: status and diff, history and audit trail, plans and
 * schedules on request, what devices report, metrics and the web page. Nothing
 * here changes a circuit.
 */
#ifndef WEFT_DAEMON_VIEWS_VIEWS_H
#define WEFT_DAEMON_VIEWS_VIEWS_H

#include "controller/daemon/change/change.h"
#include "controller/daemon/core/core.h"
#include "controller/daemon/core/plan_queue.h"
#include "controller/daemon/ha/ha.h"
#include "controller/daemon/hosts/hosts.h"
#include "controller/daemon/jobs/jobs.h"
#include "controller/daemon/joint/joint.h"


/* The parts that are shown; all are borrowed, and outlive every view. */
struct views {
	struct daemon_env *env;
	struct plan_queue *queue;
	struct job_status *job_status;
	struct drain *drain;
	struct changes *changes;
	struct hosts *hosts;
	struct jobs *jobs;
	const struct store_copier *copier;	/* NULL: a standby */
	const struct standby *standby;	/* NULL: this weftd leads */
	const struct election *election; /* NULL: there is only this one */
	const struct joint *joint;	/* NULL: it leads the whole fabric */
	struct kept_status *kept_status;	/* the last answer of Status */
};

/* ---- kept_status.c, status_view.c, query.c; arg is the struct views ---- */

struct kept_status;

/* Nothing is kept yet. */
struct kept_status *kept_status_new(void);
void kept_status_free(struct kept_status *k);	/* NULL is fine */

/* Status: everything that is known, without touching a device; with the circuits
 * of one device if they are asked for (WEFT_ENOTFOUND: there is no such device). */
void handle_status(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* Diff: intent against the last readings and the last probe of hosts. */
void handle_diff(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* Plan: streams a plan of the given or the present configuration, which is not
 * carried out. It waits for its slot, as the devices are read for it. */
void handle_plan(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* Verify: reads the devices and probes the hosts, then answers like Diff. */
void handle_verify(struct rpc_call *call, const ProtobufCMessage *req, void *arg);

/* ---- schedules.c ---- */

struct schedules;

/* Keeps schedules that were asked for while they hold; views outlives it. */
struct schedules *schedules_new(const struct views *views);
/* NULL is fine. Only when no plan is under way: calls that wait are not answered. */
void schedules_free(struct schedules *s);
/* GetSchedule; arg is the struct schedules. Streams a job's schedule, or one rank's
 * part, as protobuf; that on what remains when circuits are dead. WEFT_ENOTFOUND for an
 * unknown job, WEFT_EUNAVAIL when what remains does not do. Planned for the first call;
 * O(what is sent) for those after it, while configuration and dead circuits stay. */
void handle_schedule(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* GetPicture: streams the page's picture of the fabric. WEFT_EUNAVAIL while there is none. */
void handle_picture(struct rpc_call *call, const ProtobufCMessage *req, void *arg);

/* ---- history.c; arg is the struct daemon_env ---- */

/* History: changes, newest first, a page of at most `limit`. */
void handle_history(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* Audit: a page of what devices were sent and have answered, oldest line first,
 * with the changes that the lines are of. */
void handle_audit(struct rpc_call *call, const ProtobufCMessage *req, void *arg);

/* ---- device_events.c ---- */

struct device_events;

/* Listens to the devices from now on, until the engine has closed them: it may be
 * freed only then. */
struct device_events *device_events_new(struct daemon_env *env, struct plan_queue *queue);
void device_events_free(struct device_events *d);	/* NULL is fine */

/* ---- problem_events.c ---- */

struct problem_events;

struct metrics;

/* Compares what is wrong with what was when it was told last; metrics count repairs. */
struct problem_events *problem_events_new(const struct views *views, struct metrics *metrics);
void problem_events_free(struct problem_events *e);	/* NULL is fine */
/* Emits what the last readings and plans have shown: devices that are away, are
 * back, have restarted, are not as intended; ports, parts and jobs that failed, or
 * work again. O(devices + problems). */
void problem_events_tell(struct problem_events *e);
/* The same in the middle of a change, as far as it has nothing to do with it: devices that answer
 * no more or were restarted, and ports. */
void problem_events_meanwhile(struct problem_events *e);

/* ---- metrics.c: for Prometheus ---- */

/* methods: the table of the server, which outlives it. Counts from now on. */
struct metrics *metrics_new(const struct views *views, const struct rpc_method *methods);
void metrics_free(struct metrics *m);	/* NULL is fine */
/* A change has ended, whatever its verdict. O(1), like all that count. */
void metrics_count_change(struct metrics *m, const struct apply_result *res);
/* A call has begun; paths that are not in the table are not counted. */
void metrics_count_call(struct metrics *m, const char *path);
/* It has ended with this status; path may be NULL. */
void metrics_count_answer(struct metrics *m, const char *path, enum rpc_status status);
/* A plan was made or not (rc), in took_ns on a worker. */
void metrics_count_plan(struct metrics *m, int rc, int64_t took_ns);
/* A job has all of its rate again, took_ns after it was first seen to lack some. */
void metrics_count_repair(struct metrics *m, int64_t took_ns);
/* Serves them. WEFT_EINVAL for an address that is not loopback. */
int metrics_start(struct metrics *m, const char *host, int port, struct err *err);
/* Closes the listener; counting goes on. Fine when they are not served. */
void metrics_stop(struct metrics *m);
/* The port that they are served on, 0: none. */
int metrics_port(const struct metrics *m);

/* ---- webui.c: the page to look at, and its JSON ---- */

struct webui;

/* Also on a loopback address, if host is one; browsers with a certificate
 * come over the gRPC listener (webui_get). WEFT_EINVAL, WEFT_EIO. */
int webui_new(const struct views *views, const char *host, int port,
	      struct webui **out, struct err *err);
/* Answers all who wait, and takes no more. NULL is fine. */
void webui_free(struct webui *w);
/* Answers a GET over HTTP/2 from a caller that may look; w NULL: weftd is
 * stopping. */
void webui_get(struct webui *w, struct rpc_call *call);
/* Plain text with an HTTP status, for a GET that the page does not answer. */
void webui_answer_text(struct rpc_call *call, int status, const char *text);
/* What the page shows is no longer what it was. O(1). Here and below NULL is fine: a
 * standby has no page, nor has weftd while it stops. */
void webui_changed(struct webui *w);
/* How a change goes: it has begun, goes on, has ended (err NULL: well). Texts are
 * copied, and cut where they are long. O(1). */
void webui_begin_change(struct webui *w, const char *who, const char *comment);
void webui_progress(struct webui *w, const struct apply_event *ev);
void webui_end_change(struct webui *w, const char *verdict, const struct err *err);
/* The port of plain HTTP, 0 without one. */
int webui_port(const struct webui *w);

#endif
