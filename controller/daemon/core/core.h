/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all parts of weftd stand on: the loop with its store and devices, events
 * for those who watch, who may do what, the log and the service manager.
 *
 * A part keeps its state in a struct of its own and is given the environment
 * when it is made. It calls parts below it; what is above it learns of changes
 * through callbacks that the composition (daemon.c) registers.
 */
#ifndef WEFT_DAEMON_CORE_CORE_H
#define WEFT_DAEMON_CORE_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "controller/apply/apply.h"
#include "controller/store/store.h"
#include "lib/base/err.h"
#include "lib/output/writer.h"
#include "lib/rpc/rpc.h"
#include "weft/v1/weft.pb-c.h"

struct access;
struct event_stream;

/* Shared by all parts, who only read the flags but for those that are named.
 * It outlives them. */
struct daemon_env {
	uv_loop_t *loop;
	struct store *store;
	struct apply *apply;
	struct access *access;		/* exchanged when it is read again */
	struct event_stream *events;
	bool draining;		/* weftd is stopping: nothing new begins */
	bool standby;		/* another weftd leads */
	bool divided;		/* others lead parts of the fabric; joint */
	bool read_only;		/* a newer weftd wrote the store: nothing begins */
	bool reading;		/* the devices are not known (again);
				 * plan_queue */
	bool was_read;		/* all were asked once */
	bool applied;		/* a configuration is on record; plan_queue,
				 * change */
	const bool *is_refused;	/* others take nothing that is recorded; NULL: there are none */
	bool changing;		/* a change runs or is being planned; change */
	int64_t plan_memory_mib, plan_time_s;	/* limits of planning; 0: no memory's */
	uint64_t changes;	/* calls of env_changed */
	/* What status shows is no longer what it was; may be NULL. Called often,
	 * and must call nothing of the parts. */
	void (*on_changed)(void *arg);
	void *on_changed_arg;
};

/* Counts it, and calls env->on_changed. */
void env_changed(struct daemon_env *env);

/* True unless weftd is stopping, or cannot record; then the call was answered. */
bool env_may_change(const struct daemon_env *env, struct rpc_call *call);

/* What a caller did, for the audit trail: "WHAT by root (weft, process 7)". */
void env_audit_call(const struct daemon_env *env, const struct rpc_call *call,
		    int64_t change, const char *what);

/* How many entries a request asks for: 0 stands for `usual`, and there are at most `most`.
 * WEFT_EINVAL for less. */
int call_limit(int32_t limit, int usual, int most, int *out, struct err *err);
/* Ends a unary call: with the error when r is one, else with the message. */
void call_answer(struct rpc_call *call, int r, const ProtobufCMessage *m, struct err *err);
/* Ends a call (NULL: its client is gone, nothing happens): with err when r is
 * one, else well. */
void call_end(struct rpc_call *call, int r, const struct err *err);
/* For rpc_call_on_cancel of work that goes on without its client: arg is the
 * place that holds the call, a struct rpc_call **, which becomes NULL. */
void call_forget(struct rpc_call *call, void *arg);
/* Who calls, as the store has him, whom jobs belong to: of a certificate, "root", or
 * "uid N" in text; NULL (no call) is "weftd" itself. */
const char *call_user(const struct rpc_call *call, char *text, size_t size);
/* What people call him: for "uid N" the user's name, in text, if he has one; else who. */
const char *user_name(const char *who, char *text, size_t size);

/* arguments.c: SHA-256 in hex of user, method and all fields of a call's request.
 * O(msg). */
void arguments_hash(struct rpc_call *call, const ProtobufCMessage *msg, char hash[65]);
/* WEFT_EINVAL: the id came before, with other arguments. arguments_check: only unless `before`
 * ("": not known), the hash that came with it then, is that of now. */
int arguments_refused(const char *id, struct err *err);
int arguments_check(const char *id, const char *before, const char *now, struct err *err);

/* n messages of a kind, initialised, as the list of pointers that a message
 * carries them in; one block, for free(). O(n). */
void *message_list(const ProtobufCMessageDescriptor *kind, size_t n);

/* A timer that calls fn(arg) once each time it is started. It may be freed, and
 * its part with it, before the loop has closed its handle. */
struct part_timer;

/* Made stopped. */
struct part_timer *part_timer_new(struct daemon_env *env, void (*fn)(void *arg), void *arg);
void part_timer_free(struct part_timer *t);	/* NULL is fine */
/* Starts it, or starts it again: fn is called in ms milliseconds from now, in the
 * next round of the loop for 0 or less. */
void part_timer_start(struct part_timer *t, int64_t ms);
/* fn is not called until it is started again; fine when it is stopped. */
void part_timer_stop(struct part_timer *t);

/* Waits for a descriptor, of which it has a copy, and calls fn(arg) once when there is something
 * to read. */
struct part_wait;

/* *w waits for fd from now on (-1: for nothing), instead of what it has waited for; it goes on
 * waiting if that is the same, and fn has not been called. NULL is fine for *w. */
void part_wait_start(struct daemon_env *env, int fd, void (*fn)(void *arg), void *arg,
		     struct part_wait **w);
void part_wait_stop(struct part_wait **w);

/* Keeps the store's copy new, while this weftd leads. store_copy.c */
struct store_copier;

/* The store was opened like this; makes the first copy: at once, which waits for the disk, or on a
 * worker. */
struct store_copier *store_copier_new(struct daemon_env *env, const struct store_taken *taken,
				      bool at_once);
void store_copier_free(struct store_copier *c);	/* NULL is fine */
/* A change has ended. */
void store_copier_note(struct store_copier *c);
/* A sentence, or "". NULL is fine. */
const char *store_copier_problem(const struct store_copier *c);

/* What was learned of how long a port or device takes, in out; NULL when that
 * is nothing. */
Weft__V1__Timing *env_timing(const struct daemon_env *env, enum store_timing_kind kind,
			     const char *name, Weft__V1__Timing *out);

/* ---- event_stream.c: what happens, for those who watch ---- */

/* What an event is about. */
struct daemon_event {
	Weft__V1__EventKind kind;
	const char *device;	/* NULL: none */
	const char *port;	/* NULL: none */
	const char *job;	/* NULL: none */
	int64_t change;		/* 0: none */
	Weft__V1__Verdict verdict;
	const char *trace;	/* NULL: none */
};

#define EVENT_KIND(k) WEFT__V1__EVENT_KIND__EVENT_KIND_##k

/* With room for the newest 1024 events, and none yet. */
struct event_stream *event_stream_new(struct daemon_env *env);
void event_stream_free(struct event_stream *e);	/* NULL is fine */
/* Sends an event with one sentence to all who watch, and keeps it for those
 * who come later. O(watchers). */
void event_emit(struct event_stream *e, const struct daemon_event *what,
		const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Writes the newest `max` events as an array of o, newest first. */
void event_stream_out(const struct event_stream *e, struct out *o, int max);
/* Watch; arg is the stream. */
void handle_watch(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* Ends the calls, which would never end by themselves. */
void event_stream_end_calls(struct event_stream *e);

/* ---- access.c: roles ---- */

/* Each may what the ones before it may. */
enum access_role {
	ACCESS_NONE,		/* only health and reflection */
	ACCESS_VIEWER,		/* looks */
	ACCESS_ORCHESTRATOR,	/* and has jobs of its own */
	ACCESS_OPERATOR,	/* and changes the fabric */
};

/* The roles that a file grants (format: weftd(8)); without one, root and the
 * owner are operators and other local users viewers. WEFT_EINVAL with the
 * line; the errors of file_read. */
int access_new(const char *file, uid_t owner, struct access **out, struct err *err);
/* The same from a text; file is the name that errors give. */
int access_parse(const char *file, const char *text, size_t len, uid_t owner,
		 struct access **out, struct err *err);
void access_free(struct access *a);	/* NULL is fine */
/* 0 when the peer has this role, else WEFT_EDENIED and a line in the log that
 * names `what`. O(grants). */
int access_need(const struct access *a, const struct rpc_peer *peer,
		enum access_role needs, const char *what, struct err *err);
/* The same for the role that the method at `path` needs. */
int access_permit(const struct access *a, const struct rpc_peer *peer,
		  const char *path, struct err *err);
/* The peer is an operator. O(grants); nothing is logged. */
bool access_is_operator(const struct access *a, const struct rpc_peer *peer);

/* ---- health_service.c: grpc.health.v1 ---- */

struct health;

/* Reads the flags of env, which outlives it. */
struct health *health_new(const struct daemon_env *env);
void health_free(struct health *h);	/* NULL is fine */
/* Check and Watch; arg is the struct health. */
void handle_health_check(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
void handle_health_watch(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* Sends those who watch what has changed; ends their calls once weftd is
 * stopping, as they would never end by themselves. O(watchers). */
void health_changed(struct health *h);

/* ---- reflection.c: grpc.reflection ---- */

struct reflection;

/* Small: the files are read when a client asks for the first time. */
struct reflection *reflection_new(void);
void reflection_free(struct reflection *r);	/* NULL is fine */
/* ServerReflectionInfo; arg is the struct reflection. */
void handle_reflection(struct rpc_call *call, const ProtobufCMessage *req, void *arg);

/* ---- privileges.c ---- */

/* Root becomes this user for good, in a process of one thread; of root's
 * capabilities those for network namespaces stay if asked for. The folders of
 * the store and of the socket are made when missing, and are the user's then.
 * WEFT_EUSAGE for an unknown user; WEFT_EDENIED without root; WEFT_EIO. */
int privileges_drop(const char *user, bool netlink, const char *state_dir,
		    const char *socket, struct err *err);
/* This process has no capabilities any more, if it had any, and gets none back. */
void privileges_give_up(void);

/* ---- notify.c: the service manager ---- */

/* The one listening socket that a service manager passed on, with its path; *out 0: none. Its
 * variables are taken out of the environment. It stays open as long as the process, so that a
 * server that ends refuses no client. WEFT_EUSAGE: there is something else. */
int inherited_socket(int *out, char *path, size_t size, struct err *err);
/* Closes all descriptors but the standard ones and those that the service manager passed on: what
 * whoever started weftd had open, a lock perhaps, is not to be held as long as it runs. Before any
 * is opened. */
void inherited_close_others(void);

/* Sends it a state ("READY=1"), when there is one. */
void notify_send(const char *state);
/* Sends signs of life twice as often as the service manager wants them
 * (WATCHDOG_USEC, WATCHDOG_PID); false when it wants none. The timer alone does not
 * keep the loop running; it is closed before the loop. */
bool notify_watchdog_start(uv_loop_t *loop, uv_timer_t *timer);

/* ---- trace.c: W3C trace context ---- */

#define TRACE_SIZE 33		/* with the zero at the end */

/* The trace id of a traceparent header, 32 hexadecimal digits; false and ""
 * when it is none, which is as good as no header. */
bool trace_parse(const char *header, char id[TRACE_SIZE]);
/* That of a call (NULL: weftd itself), or "". */
void trace_of(const struct rpc_call *call, char id[TRACE_SIZE]);

/* ---- log_sinks.c, journald.c ---- */

/* Log lines become objects of JSON; or entries of the journal, if that is what
 * standard error is. */
void log_sinks_init(bool json);
/* Writes the last line of a process to where log_sinks_init said, or to standard error, without
 * memory and without a lock; plain text of at most 100 bytes. */
void log_sinks_last(const char *line);
/* Log: reads and sets levels; arg is not used. */
void handle_log(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* Writes one entry of fields "NAME=value". */
void journald_send(char *const *fields, int n);

#endif
