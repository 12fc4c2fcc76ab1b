/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files about changes. */
#ifndef WEFT_DAEMON_CHANGE_PRIVATE_H
#define WEFT_DAEMON_CHANGE_PRIVATE_H

#include "controller/daemon/change/change.h"
#include "lib/base/vec.h"

#define MAX_FINISHED 32		/* results kept for repeated request ids */

/* A change that has ended, for those who ask again. */
struct finished_change {
	char *request_id;	/* owned; NULL: none is here */
	char arguments[65];	/* arguments_hash() of it */
	struct apply_result res;
	int rc;
	struct err err;
};

/* From the request that begins it to its end; there is one at most. */
struct running_change {
	struct changes *of;
	struct plan_request *plan;	/* has the slot until the end */
	struct change_order order;	/* a copy; without request_id it cannot be asked
					 * for again */
	char digest[65];	/* the plan must have it; "": any */
	char peer[RPC_PEER_TEXT_MAX];	/* for the audit trail; "": weftd */
	bool started;		/* the engine has it: end comes by on_applied */
	bool cancelled;		/* before that */
	bool is_part;		/* of a change in which others have parts */
	struct job_rows rows;	/* for status, once committed */
	struct host_routes *routes;	/* for hosts of this machine, then */
	struct restore_request *restore;	/* jobs stay as they are; owned,
						 * or NULL */
	VEC(struct rpc_call *) watchers;
	void (*ended)(int rc, const struct err *err, void *arg);	/* or NULL */
	void *ended_arg;
};

/* The change that a request asks for. */
struct change_request {
	struct change_order order;	/* who and trace are those of the call, but of a
					 * part; request_id is not NULL */
	const Weft__V1__Number *expected;	/* generation, NULL: any */
	const struct own_change *own;	/* weftd's own, or NULL */
	struct restore_request *restore;	/* instead of jobs, or NULL */
	bool ignore_floor;		/* no operator may be there to help */
	bool is_part;		/* of a change in which others have parts */
};

/* The change under way as it was last heard of. Longer texts are cut. */
struct change_latest {
	const char *who, *comment;	/* of the running change */
	const struct job_rows *rows;	/* of its plan; NULL: there is none yet */
	int64_t started_at_ns;	/* wall clock */
	char phase[32], device[CONF_MAX_NAME + 1], text[160];
	int done, total;	/* as struct apply_event has them */
	int64_t end_ns;		/* monotonic: all is expected to be over;
				 * 0: not known */
};

/* When what waits for its confirmation goes back. */
struct confirm_clock {
	struct part_timer *timer;
	int64_t change;		/* whose time it is */
	int64_t due_ns;		/* monotonic: who sets the clock moves nothing */
	int64_t tried;		/* the change whose going back was begun */
};

/* The open change that hangs on devices. */
struct resume {
	struct part_timer *timer;
	struct change_wait wait;	/* as last looked at and told */
	int64_t clock_of, due_ns;	/* the change; monotonic, when its time is over */
	int64_t tried;		/* the change that was not ended though all devices answered */
	int64_t delay_ms;	/* before devices are asked again */
	bool reading;
};

struct changes {
	struct daemon_env *env;		/* borrowed, like the next four */
	struct plan_queue *queue;
	struct job_status *jobs;
	struct drain *drain;
	struct hosts *hosts;
	struct change_hooks hooks;
	struct change_partners partners;	/* ask is NULL: none */
	struct running_change *now;		/* running or being planned, or NULL;
					 * env->changing says the same */
	struct change_latest latest;	/* of it */
	struct store_confirm confirm;	/* what waits, change 0: nothing */
	struct confirm_clock clock;	/* for it */
	struct resume resume;
	struct finished_change finished[MAX_FINISHED];
	int n_finished;			/* ever; the newest are kept */
};

/* ---- change_requests.c ---- */

/* Begins a change back to the configuration of an earlier one; call (may be
 * NULL) watches it. The floor of capacity does not stop it. WEFT_ESTALE when a
 * change runs. */
int changes_begin_back(struct changes *c, struct rpc_call *call, int64_t to,
		       const char *comment, struct err *err);
/* Begins a change that brings back what is asked for (taken over, also on
 * error) and nothing else. The errors of changes_begin_jobs. */
struct restore_request;
int changes_begin_restore(struct changes *c, const struct own_change *own,
			  struct restore_request *restore, struct err *err);

/* ---- running_change.c ---- */

/* A call with an id: its hash is in *q. True when there is nothing more to do for it. */
bool changes_is_answered(struct changes *all, struct rpc_call *call, const ProtobufCMessage *msg,
			 struct change_request *q);
/* Whether a change may begin, before anything is planned. WEFT_ESTALE: not now, or
 * the generation is not the expected one; WEFT_EINVAL: confirm_within_ns cannot be. */
int changes_check_free(const struct changes *all, const struct change_request *q, struct err *err);
/* Begins it: pr and q->restore are taken over, also on error; call (may be NULL) watches it.
 * digest: the plan must have it; "": any. WEFT_ESTALE while the fabric is frozen. */
int changes_start(struct changes *all, struct rpc_call *call, const struct change_request *q,
		  struct plan_request *pr, const char *digest, struct err *err);
/* From now on the call is sent the events of the change, and its result, which ends it. */
void changes_watch(struct running_change *c, struct rpc_call *call);
/* The last message of a watcher, and with it the end of its call: a change that was not
 * committed ends it with the error, and names the circuits that failed. */
void changes_send_result(struct rpc_call *call, const struct apply_result *res, int rc,
			 const struct err *err);
/* Stops the change that runs: after its present step it is taken back. c may be freed. */
void changes_stop_running(struct running_change *c, struct rpc_call *call);
/* One that has ended, the newest first; NULL: none of those kept. */
const struct finished_change *changes_find_finished(const struct changes *all,
						    const char *request_id);
/* The verdict that a change on record has come to. */
enum apply_verdict verdict_of(const struct store_change *ch);

/* ---- resume.c ---- */

/* Its timer: asks devices that are away, or has the change ended; arg is the struct changes. */
void changes_resume_due(void *arg);
/* A change has ended: one that got stuck though its devices answer is not tried again. */
void changes_resume_ended(struct changes *c, const struct apply_result *res);

/* ---- progress.c ---- */

/* The engine's event becomes the latest. */
void change_latest_note(struct change_latest *l, const struct apply_event *ev);

/* ---- confirm.c ---- */

/* The time of what waits is over; arg is the struct changes. */
void changes_confirm_expired(void *arg);

/* ---- auto_restore.c ---- */

/* What of it may be done now goes to the base of s. WEFT_ESTALE: nothing,
 * and why. */
int restore_request_prepare(struct restore_request *r, const struct daemon_env *env,
			    const struct model_fabric *f, struct snapshot *s, struct err *err);
void restore_request_free(struct restore_request *r);	/* NULL is fine */

#define RESTORE_MAX 3		/* restores of a device ... */
#define RESTORE_WINDOW_NS (INT64_C(600) * 1000000000)	/* ... in this time */
#define RESTORE_BACK_OFF_MAX_NS (INT64_C(600) * 1000000000)

enum restore_verdict {
	RESTORE_NOTHING,	/* there is nothing that may be */
	RESTORE_WAIT,		/* at *at_ns */
	RESTORE_NOW,
	RESTORE_GIVE_UP,	/* another user undoes each: no more */
};

/*
 * What is due for one device whose policy is to restore. v: its records, open
 * and over, any order; after_ns: as the fabric says; tries: restores that
 * failed one after the other, the last at last_try_ns; all wall clock. The
 * first restore waits after_ns, the next ten times that, then twice as long
 * each, and after RESTORE_MAX of them within RESTORE_WINDOW_NS, with no
 * change of an operator's between, it is given up. Pure. O(n^2).
 */
enum restore_verdict restore_decide(const struct store_external_change *v, int n, int64_t after_ns,
				    int tries, int64_t last_try_ns, int64_t now_ns, int64_t *at_ns);

#endif
