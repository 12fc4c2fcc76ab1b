/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning in weftd. Whatever concerns the devices goes through one queue, so
 * that one thing happens to the circuits at a time; planning itself runs in
 * processes of its own (plan_process.h), over copies.
 */
#ifndef WEFT_DAEMON_CORE_PLAN_QUEUE_H
#define WEFT_DAEMON_CORE_PLAN_QUEUE_H

#include "controller/daemon/core/core.h"
#include "controller/model/model.h"
#include "controller/plan/plan.h"
#include "controller/proto_convert/proto_convert.h"
#include "lib/base/buf.h"

/* ---- snapshot.c ---- */

/* A deep copy of a plan base, so that a plan is made from a state that stays. */
struct snapshot {
	struct plan_base base;	/* its arrays are the ones below; `only` and `restore` are
				 * others' */
	int n;			/* devices: length of the two below */
	struct plan_light *intent, *observed;	/* with programs of their own */
	int64_t *port_ns, *device_ns;	/* base.times */
	char *topologies;	/* base.topologies */
};

/* Copies base, which is of n devices, with intent and observed. O(bytes of base). */
void daemon_snapshot_init(struct snapshot *s, const struct plan_base *base, int n);
/* Another light for a device of it, taken over with its programs (NULL: it has none), which
 * are empty afterwards; light->programs does not count. What was there is freed. s has both
 * intent and observed. */
void daemon_snapshot_replace(struct snapshot *s, bool observed, int device,
			     const struct plan_light *light, struct ring_programs *programs);
/* Frees the arrays of a light whose arrays are its own, but for its programs. */
void daemon_light_fini(struct plan_light *light);
/* Frees it and zeroes *s; a zeroed one is fine. */
void daemon_snapshot_fini(struct snapshot *s);

/* ---- plan_queue.c ---- */

struct plan_queue;

/* The circuits of a job on switches, and the device of one on a ring. */
struct row_circuits {
	int n, ring;		/* ring: -1: none */
	struct plan_hop *v;
	char *light;		/* of a step whose light changes, plan_light_record; NULL */
	struct buf step;	/* and its plan as JSON, unless it is degraded */
};

/* The rows of jobs that status shows. */
struct job_rows {
	bool known;
	char hash[65];		/* of the configuration they are of */
	size_t n;
	Weft__V1__PlanJob **v;	/* [n] unpacked messages, owned */
	struct buf *packed;	/* [n] the same packed, but for gains, proofs, advice */
	struct row_circuits *circuits;	/* [n] by which the proofs are found */
	char *picture;		/* of the fabric with their circuits, JSON */
	size_t picture_len;
	char *steps;		/* of their schedules, JSON; NULL: none */
	size_t steps_len;
	int64_t picture_id;	/* grows, also over restarts */
	struct err err;		/* why they are not known */
};

/* Who asks, which decides what planning may cost the others: weftd itself, for a change and for
 * what it shows, begins at once; of operators and of all others only so many plan at a time, and
 * the first wait for none of the second. */
enum plan_by { PLAN_BY_WEFTD, PLAN_BY_OPERATOR, PLAN_BY_OTHER };

#define PLAN_USER_MAX 96	/* bytes of who asks */

/*
 * One request on its way: its share of processes -> parse (process, then worker) -> its slot in
 * the queue -> open and read its devices -> copy the base -> plan (process) -> read the plan,
 * rows of its jobs (worker) -> done on the loop.
 * `done` must end in plan_request_free, at once or later; until then no other
 * request gets the slot, unless it is brief. An offline one needs no slot and reads no device: it
 * plans the present configuration as applied on what works of it. Nor does one of PLAN_BY_OTHER:
 * it plans on what was read last, and holds up no other.
 */
struct plan_request {
	struct plan_request *next;	/* behind it in the queue */
	struct plan_queue *queue;
	bool queued;		/* has or waits for the slot */
	bool offline;		/* see above; set before the start */
	bool brief;		/* its slot ends when the base is copied; likewise */
	enum plan_by by;	/* likewise */
	char user[PLAN_USER_MAX];	/* likewise; "": weftd */
	bool ignore_floor;	/* plans without the floor of capacity, if it
				 * cannot be kept */
	struct model_config config;	/* no text: nothing is planned */
	enum plan_mode mode;
	enum plan_aim aim;
	int64_t back_to;	/* the change whose topologies return; 0: those of now stay */
	char evacuated[PLAN_PART_MAX];	/* a part to be drained and emptied; "": none */
	bool has_keep;		/* in place of the configuration's; only for */
	int64_t keep_ppm;	/* what is not applied */
	const char **only;	/* as plan_base.only; owned, as one block */
	char *light_job, *light_of;	/* this step gets the light of this collective; owned; NULL:
					 * lights stay */
	char *light_step;	/* plan_base.step for that; owned; NULL: not known */
	/* What it has come to; fabric and plan are owned, and may be taken out
	 * (and set NULL) by done, as a change does. */
	struct model_fabric *fabric;	/* the parsed configuration */
	struct snapshot snap;	/* what the plan starts from */
	struct plan *plan;	/* NULL: rc and err say why */
	bool assess;		/* status does not know what jobs have now: the process finds
				 * out, and what they gain */
	struct buf picture;	/* see page.h; with the plan's circuits */
	struct buf steps;	/* and with its schedules */
	bool with_picture;	/* wanted */
	bool with_rows;		/* wanted, which take the picture over */
	struct job_rows rows;	/* may be taken out, and zeroed */
	bool bare_picture;	/* of the fabric alone: nothing is applied */
	int rc;			/* 0, or the WEFT_E... of err */
	struct err err;
	struct err_list errs;	/* all mistakes of the configuration */
	/* Last change to the base before planning; NULL: none. On the loop. It
	 * may set `waits`: planning begins with plan_request_go_on then. */
	int (*prepare)(struct plan_request *r, struct err *err);
	bool waits;
	void (*done)(struct plan_request *r);
	void *arg;		/* of both */
	int64_t plan_ns;	/* time in the process, for hooks.planned */
	/* private to plan_queue.c */
	struct plan_request *next_waiting;	/* for its share */
	bool admitted, asks;	/* has its share; its process is at work */
	bool cancelled;
	struct plan_process *process;
	struct buf answer;
	struct model_fabric *probe;
	bool probed;		/* other devices than the present ones */
	uv_work_t req;
};

/* What the queue asks and tells of the parts above it; all are called on the
 * loop, with arg. */
struct plan_queue_hooks {
	/* Appends the jobs that orchestrators ask for to a configuration. */
	void (*add_jobs)(struct model_config *config, void *arg);
	/* Takes out of the snapshot what planning may not use. */
	void (*restrict_base)(struct plan_request *r, void *arg);
	/* Whether jobs are not as status shows them, by the base of r->fabric. */
	bool (*outdated)(const struct plan_request *r, void *arg);
	/* A plan was made or not (r->rc), and took r->plan_ns: may refuse it,
	 * or add a hint to the error. */
	void (*planned)(struct plan_request *r, void *arg);
	/* The outcome of a change that was open is known. */
	void (*recovered)(void *arg);
	/* The slot is about to become free: devices may have been read. */
	void (*slot_ends)(void *arg);
	/* It is free, before the next request gets it. */
	void (*slot_ended)(void *arg);
	/* Nothing is under way while weftd is stopping. */
	void (*drained)(void *arg);
	void *arg;
};

/* An empty queue; hooks are copied, and called from the first request on. */
struct plan_queue *plan_queue_new(struct daemon_env *env, const struct plan_queue_hooks *hooks);
void plan_queue_free(struct plan_queue *q);	/* NULL is fine */
/* Reads the configuration that is the present one while none was ever applied.
 * The errors of file_read and model_splice. */
int plan_queue_set_default(struct plan_queue *q, const char *path, struct err *err);
/* True while a request has the slot, a change is under way, or the devices are
 * not known: what reads them now and then waits. */
bool plan_queue_busy(const struct plan_queue *q);
/* True when no request is on its way, on a worker or in the queue. */
bool plan_queue_drained(const struct plan_queue *q);
/* Weftd stops: plans that clients have asked for, and nothing is done for, end. */
void plan_queue_stop(struct plan_queue *q);

/* A request to plan this configuration (copied; NULL: the present one).
 * WEFT_ENOTFOUND when there is no present one. */
int plan_request_new(struct plan_queue *q, const char *name, const void *text,
		     size_t len, struct plan_request **out, struct err *err);
/* A request to plan this configuration (copied) with the jobs that are requested
 * in it and no others. */
struct plan_request *plan_request_new_config(struct plan_queue *q,
					     const struct model_config *config);
/* WEFT_EUNSUPPORTED: weftd leads a part of the fabric, and only repairs are made by all who lead
 * one. */
int plan_request_check_aim(const struct plan_request *r, struct err *err);
/* Begins it; its done is called later, never from within. WEFT_ELIMIT is told to whom too many
 * wait already; what planning meets (plan_process.h). */
void plan_request_start(struct plan_request *r);
/* No client waits for the plan any more: done comes with WEFT_ECANCELED, maybe from within, and no
 * later than what is under way on a device or a worker. Fine at any time before done. */
void plan_request_cancel(struct plan_request *r);
/* Plans what waits, from the snapshot as it is now; with rc other than 0 it ends with that
 * and err (copied): its done is called from within then. Once, on the loop, after prepare
 * has returned, also while weftd is stopping: it keeps the slot, and weftd, until then. */
void plan_request_go_on(struct plan_request *r, int rc, const struct err *err);
/* Ends a request and frees it; the next one gets the slot, and may begin before
 * this returns: nothing of the request may be used afterwards. */
void plan_request_free(struct plan_request *r);

/* The slot for something else than planning: run is called when it comes, maybe
 * at once; it must end in plan_request_free. */
void plan_queue_slot(struct plan_queue *q, void (*run)(struct plan_request *r), void *arg);

/* Makes the fabric of the open change, or of the store, the present one; while
 * nothing was ever applied, the default one. Happens by itself after a request
 * that looked at other devices. */
int plan_queue_settle(struct plan_queue *q, struct err *err);
/* The same after apply_recover, which has found (rc, text). */
void plan_queue_recovered(struct plan_queue *q, int rc, const char *text);

/* ---- job_status.c: what the jobs of the present configuration have ---- */

/* Makes the rows of the request's plan, NULL: none, with its picture, which is taken over.
 * Touches nothing but the request. O(arcs of jobs). */
void job_rows_make(struct plan_request *r);
/* Frees them and zeroes *rows, which are then not known. */
void job_rows_fini(struct job_rows *rows);

struct job_status;

struct job_status_hooks {
	/* The jobs were planned: these are their circuits. */
	void (*planned)(const struct plan *p, void *arg);
	/* Other circuits have failed: what is left of the jobs is going to be planned. */
	void (*failed)(void *arg);
	/* What is left of the jobs is known; fresh: it was just planned. */
	void (*known)(bool fresh, void *arg);
	void *arg;
};

/* Knows nothing until job_status_refresh or job_status_set; hooks are copied. */
struct job_status *job_status_new(struct daemon_env *env, struct plan_queue *q,
				  const struct job_status_hooks *hooks);
void job_status_free(struct job_status *s);	/* NULL is fine */
/* Plans the jobs of the present configuration again. */
void job_status_refresh(struct job_status *s);
/* True while that is under way. */
bool job_status_refreshing(const struct job_status *s);
/* Compares the failed circuits with those when the jobs were planned, and plans
 * them again if they differ. Call when devices were read. */
void job_status_check(struct job_status *s);
/* Another part of the fabric is drained, or no longer: what an apply would gain may be another. */
void job_status_drained(struct job_status *s);
/* A mark of the failed circuits; 0: none. */
uint64_t job_status_failed(const struct job_status *s);
/* The rows as last planned; valid until the loop runs. */
const struct job_rows *job_status_rows(const struct job_status *s);
/* plan_base.step of a job of the present configuration, borrowed until the rows are others; NULL:
 * not known. O(jobs). */
const char *job_status_step(const struct job_status *s, const char *job);
/* Puts how far its light is proven now into each row, by its own circuits; while another
 * configuration is looked at proofs stay. O(circuits log circuits). */
void job_status_prove(struct job_status *s);
/* The rows of a change that was committed; taken over, and zeroed. */
void job_status_set(struct job_status *s, struct job_rows *rows);
/* True when the base of the request, which plans the configuration that the rows
 * are of, shows other failed circuits than those that they were planned with. */
bool job_status_outdated(const struct job_status *s, const struct plan_request *r);
/* Tells the request's plan what its jobs had before (plan_gains), by the rows; nothing when these
 * are not known, or it was told already (r->assess). */
void job_status_compare(const struct job_status *s, struct plan_request *r);
/* Hints at the first job that has lost circuits, unless err has a hint. */
void job_status_hint(const struct job_status *s, struct err *err);

/* ---- poll.c: all devices are read every so often ---- */

struct poll;

/* Begins to read every so often (0: never, and NULL). When a round has
 * read the devices, after_read is called and must end in poll_round_end. */
struct poll *poll_new(struct daemon_env *env, struct plan_queue *q, int64_t every_ms,
		      void (*after_read)(void *arg), void *arg);
/* Gives the slot of the round back, and sets the time of the next. */
void poll_round_end(struct poll *p);
void poll_free(struct poll *p);	/* NULL is fine */

#endif
