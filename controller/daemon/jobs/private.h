/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files about jobs of orchestrators.
 *
 * the value
 *   jobs.c            the list, and the state of each
 *   jobs_encode.c     jobs as text of the store and as values of a fabric
 *   jobs_rows.c       jobs as messages, and who waits for them
 * what they may have
 *   jobs_place.c      which hosts
 *   jobs_circuits.c   which ports
 *   jobs_backfill.c   which of the queue, and when the others
 * changes
 *   jobs_lifecycle.c  time, and what the configuration says of them
 *   jobs_change.c     which of them start and end in one change
 *   jobs_repair.c     what is left when circuits fail, and spares
 * requests
 *   jobs_requests.c   the calls
 *
 * Each part uses those above it.
 *
 * A job is QUEUED until hosts for it are free, STARTING and ENDING while the
 * change that makes or takes away its circuits runs, RUNNING between them, and
 * ENDED or FAILED for good. At most one change is under way, for as many jobs as
 * could go on when it began; all the others wait in their states, and jobs_advance
 * looks what may go on.
 */
#ifndef WEFT_DAEMON_JOBS_PRIVATE_H
#define WEFT_DAEMON_JOBS_PRIVATE_H

#include "controller/daemon/jobs/jobs.h"
#include "controller/plan/backfill.h"
#include "controller/plan/plan.h"
#include "lib/base/buf.h"
#include "lib/base/vec.h"
#include "weft/v1/jobs.pb-c.h"

/* A call that waits for a job and is sent each of its states. */
struct job_call {
	struct rpc_call *call;
	bool release;		/* waits for the end, not for the start */
};

struct job {
	struct jobs *jobs;	/* the list that it is in */
	struct store_job s;	/* as the store has it; owned */
	Weft__V1__RequestJobRequest *req;	/* s.spec, decoded; owned */
	char *circuits, *ports;	/* of req, as struct model_request has them, with the ports
				 * of a number once it has them; owned */
	char *topology;		/* likewise */
	enum weft_err code;	/* with which it failed; 0: as what was impossible */
	VEC(struct job_call) calls;
	double rate;		/* part of its rate that is left, 0 to 1 */
	int64_t failed_ns;	/* monotonic: circuits are known to have failed
				 * since then; 0: all are there */
	char *moving;		/* hosts of the repair under way, or NULL */
	bool no_spare;		/* it would be repaired, but has no room */
	bool stands_in;		/* a spare of its own, whatever is left of it */
	bool busy;		/* the change under way is for it */
	/* Of a change that failed for one of several jobs: those of a part are tried
	 * together next, the lowest part first. 0: of none. */
	int part;
	int64_t retry_ns;	/* monotonic: not tried again before; 0: at once */
	bool moved;		/* not yet durable, nor sent to those who wait */
	/* In the queue: the units that were reserved for the start that it was told, owned, or
	 * NULL; the start that is foreseen otherwise, 0: none. */
	bool *reserved;
	int n_reserved;
	int64_t foreseen_ns;
	int64_t moves_ns;	/* of panels, that its circuits take as was last expected */
	/* The start that it was told is another, which is not yet durable. */
	bool retold;
	int64_t told_before_ns;	/* 0: none */
	char *why_later;	/* owned, or NULL */
	bool end_told;		/* that it ends soon */
};

typedef VEC(struct job *) job_list;

struct jobs {
	struct daemon_env *env;		/* borrowed, like the next four */
	struct plan_queue *queue;
	struct job_status *status;
	struct drain *drain;
	struct changes *changes;
	job_list v;		/* by id, oldest first; owned */
	int n_busy;		/* jobs that the change under way is for */
	int n_parts;		/* as job.part; grows */
	struct job *suspect;	/* devices are read to see whether it is to
				 * be repaired, or NULL */
	bool refused;		/* by the store: what has moved last */
	struct part_timer *clock;	/* for what is due by itself */
	int64_t retry_ns;	/* monotonic: no change begins before; 0: at once */
	int64_t change_ns;	/* that the change of a job takes at most, as seen so far, beside
				 * moves of panels */
	int64_t began_ns;	/* monotonic: the one under way */
	int64_t n_started, waited_ns;	/* as struct jobs_figures has them */
};

#define JOB_RETRY_NS ((int64_t)10 * 1000000000)	/* after what may pass by itself */
#define JOB_CHANGE_NS ((int64_t)2 * 1000000000)	/* change_ns, before any was seen */

/* A duration, ns, of a job that was released while it started: it ends as soon as it
 * has started, also when weftd is restarted in between. */
#define JOB_RELEASED 1

static inline bool job_lives(const struct job *j)
{
	return j->s.state != STORE_JOB_ENDED && j->s.state != STORE_JOB_FAILED;
}

/* It has circuits, or is being given some. */
static inline bool job_has_circuits(const struct job *j)
{
	return j->s.state == STORE_JOB_RUNNING ||
	       (j->s.state == STORE_JOB_STARTING && (j->busy || !j->part));
}

/* Given back while it was starting. */
static inline bool job_was_released(const struct job *j)
{
	return j->s.duration_ns == JOB_RELEASED;
}

/* It must not share its change with other jobs that start: what it may do they may not, or
 * whether it fits is known by planning only. */
static inline bool job_goes_alone(const struct job *j)
{
	return j->req->ring[0] || j->req->partial ||
	       j->req->mode == WEFT__V1__MODE__MODE_UPDATE;
}

/* That making or removing its circuits takes at most. */
static inline int64_t job_change_ns(const struct job *j)
{
	return j->jobs->change_ns + j->moves_ns;
}

/* Where a change that waits may find what another has. */
static inline bool job_may_wait(int rc)
{
	return rc == WEFT_EINFEASIBLE || rc == WEFT_EHELD;
}

/* ---- jobs.c ---- */

/* The oldest living job of this name, or NULL: one that is to replace it has it too. */
struct job *jobs_find(const struct jobs *jobs, const char *name);
/* Whether a request of this name takes the place of circuits of that one. */
bool replaces_job(const Weft__V1__RequestJobRequest *q, const char *name, const char *other);
/* The one in its place that has its change under way or is to have it, or NULL. */
struct job *job_replacement(const struct job *j);
/* Adds a job at the end of the list, as one that has all its circuits until planning
 * says otherwise. Takes s over, also on error. */
int jobs_add(struct jobs *jobs, struct store_job *s, struct job **out, struct err *err);
/* Takes the newest off the list. */
void jobs_drop_last(struct jobs *jobs);
/* Moves a job on, which jobs_flush makes durable and sends to those who wait. problem:
 * why, "" for no reason. */
void job_move(struct job *j, enum store_job_state state, const char *problem);
/* In the queue, from 1; 0 when it is not in it. */
int job_position(const struct job *j);
/* When its time is over, or it makes room, wall clock; 0: when it is released. A duration may be
 * any number. */
int64_t job_ends_ns(const struct job *j);
/* Reads the list of the store. The errors of store_jobs; WEFT_EINVAL: one cannot be read. */
int jobs_load(struct jobs *jobs, struct err *err);
void jobs_forget_all(struct jobs *jobs);
/* Forgets the oldest of those that are over, as the store does. */
void jobs_forget_over(struct jobs *jobs);

/* ---- jobs_encode.c ---- */

/* A request as text for the store, and back: its protobuf bytes in hexadecimal, as
 * the store keeps text. Both results are the caller's. WEFT_EINVAL for a text that is
 * none. */
char *job_pack(const Weft__V1__RequestJobRequest *req);
int job_unpack(const char *text, Weft__V1__RequestJobRequest **out, struct err *err);
/* The job as a fabric takes it; borrows from j. While it is being repaired, on
 * the hosts that it moves to. */
struct model_request job_value(const struct job *j);
/* "a b c", in this order; owned by the caller. */
char *job_node_names(const struct model_fabric *f, const int *hosts, int n);
/* A request with the fabric's names of its ports; the rest is that of another, which stays. */
struct named_request {
	Weft__V1__RequestJobRequest q;
	Weft__V1__CircuitEnds *ends;
};

/* A port by its names, from names or labels; owned by the caller. WEFT_EINVAL: there is none. */
int port_by_names(const struct model_fabric *f, const char *text, char **name, int *port,
		  int *lanes, struct err *err);
/* WEFT_EINVAL: there is no such port. Fini also on error. */
int named_request_init(struct named_request *n, const struct model_fabric *f,
		       const Weft__V1__RequestJobRequest *q, struct err *err);
void named_request_fini(struct named_request *n);
/* As struct model_request has them; owned by the caller. */
char *job_circuits_text(const Weft__V1__RequestJobRequest *q);
char *job_ports_text(const Weft__V1__RequestJobRequest *q);
char *job_topology_text(const Weft__V1__RequestJobRequest *q);
/* Whether both ask for the same circuits, in whatever order. O(n log n). */
bool same_circuits(const Weft__V1__RequestJobRequest *a, const Weft__V1__RequestJobRequest *b);

/* ---- jobs_rows.c ---- */

/* Sends the call where the job is; keeps it while there is more to come. */
void job_attach(struct job *j, struct rpc_call *call, bool release);
/* A job as a message, with what it borrows beside the job's own strings. */
struct job_row;
struct job_row *job_row_new(const struct job *j, Weft__V1__Job **m);
void job_row_free(struct job_row *row);
/* All that have moved, in one transaction, and tells them then. False: the store refuses them,
 * and jobs_advance tries again; a crash would take back what was told. */
bool jobs_flush(struct jobs *jobs);
/* What it has come to, which is durable, as an event and to those who wait. */
void job_tell(struct job *j);
void job_send_to_all(struct job *j);

/* ---- jobs_place.c ---- */

/* Everything that placing looks at; arrays over hosts. */
struct job_view {
	const struct model_fabric *f;	/* the present one */
	const struct drain *drain;	/* borrowed */
	bool *busy;		/* a job on a switch has it */
	bool *silent;		/* it has a port on a device that did not answer */
	bool *good;		/* over ports: not failed, nor it or what it reaches drained */
	const char **tx, **rx;	/* over ports: the job that has this side; NULL: none */
	struct plan_times times;	/* that were learned; borrowed */
};

/* From the last readings; no host is busy yet. */
void job_view_init(struct job_view *v, const struct jobs *jobs);
void job_view_fini(struct job_view *v);
/* Marks hosts of jobs on switches that have circuits now, but for the n jobs of the
 * names in `except`, and of those that start. */
void job_view_mark(struct job_view *v, const struct jobs *jobs, const char *const *except, int n);
/* And the ports of groups of circuits that wait. */
void job_view_mark_queued(struct job_view *v, const struct jobs *jobs);
/* A side of a port is the job's, unless it is another's already: who waits for it, or may have any
 * of its host's, does not hold it. */
void job_view_mark_side(struct job_view *v, int port, bool tx, const char *name);
/* Marks the hosts, of these names, and ports of one that starts. */
void job_view_mark_job(struct job_view *v, const struct job *j, const char *nodes);
/* Whether a device that hosts of these names have ports on did not answer. O(ports). */
bool job_is_silent(const struct job_view *v, const char *nodes);
/* Over hosts, as place_job and place_spare want them: those whose ports that the job has, or would
 * have, are good, and that are not drained; free(). O(ports x ports that it names). */
bool *job_usable_hosts(const struct job_view *v, const struct job *j);
/* The names of hosts for the job, as place_job finds them, or of its circuits; owned by the caller.
 * NULL on error. WEFT_EINFEASIBLE, WEFT_EHELD: not now; WEFT_EINVAL: the fabric lacks what it
 * names. */
char *job_find_place(struct job_view *v, const struct job *j, struct err *err);
/* Whether it has a place where all is free and works. WEFT_EINVAL. */
int job_check_ever(const struct job *j, struct err *err);

/* ---- jobs_circuits.c ---- */

/* Calls fn for each side of a port that its circuits have, until it fails. WEFT_EINVAL: there is
 * no such port any more. */
int job_each_side(const struct model_fabric *f, const Weft__V1__RequestJobRequest *q,
		  int (*fn)(int port, bool tx, void *arg, struct err *err), void *arg,
		  struct err *err);
void job_mark_circuits(struct job_view *v, const struct job *j);
/* Whether a job of this name may have them now. WEFT_EHELD: another has a port, and who;
 * WEFT_EINFEASIBLE: it is drained; WEFT_EINVAL: never. */
int circuits_check(struct job_view *v, const struct jobs *jobs, const char *name,
		   const Weft__V1__RequestJobRequest *q, struct err *err);
/* Who has a port or a lane of it, jobs that wait too, in a sentence: WEFT_EHELD. 0: it is free. */
int circuits_held(const struct jobs *jobs, int port, int lanes, struct err *err);
/* Ends jobs on request that have its ports. True when there are some. */
bool circuits_take_ports(struct job_view *v, const struct job *j);
/* The hosts of its ports as names, each once; owned by the caller. */
char *circuits_hosts(struct job_view *v, const struct job *j);

/* ---- jobs_backfill.c ---- */

/* Those that wait, and what may be told to them. */
struct job_queue {
	job_list list;		/* the first in front, those that are tried later too */
	struct jobs *jobs;
	struct job_view *v;	/* borrowed: as it is now, with those that start marked */
	struct job_view then;	/* as it would be: its tx, rx and busy are its own */
	int64_t *held;		/* over units */
	struct backfill b;
};

/* v: marked, and borrowed until job_queue_fini. */
void job_queue_init(struct job_queue *q, struct jobs *jobs, struct job_view *v);
void job_queue_fini(struct job_queue *q);
/* The names of the hosts of the ith if it starts now, owned by the caller; they are to be asked
 * about in their order. NULL: the errors of job_find_place; WEFT_EHELD also for what is reserved.
 * The costs of backfill_place. */
char *job_queue_place(struct job_queue *q, int i, struct err *err);
/* It does not start after all, and is told nothing. */
void job_queue_drop(struct job_queue *q, int i);
/* Each that still waits is told when it starts, as far as that is known; jobs_flush makes it
 * durable. Only job_queue_fini may follow. */
void job_queue_tell(struct job_queue *q);
/* The starts of those that were told none, into foreseen_ns: for who looks. The costs of
 * backfill_foresee. */
void jobs_foresee(struct jobs *jobs);

/* Whether a job that has circuits may have them until then. WEFT_EINFEASIBLE: it would make others
 * late that were told a start; the text says until when. */
int job_check_longer(const struct job *j, int64_t end_ns, struct err *err);

/* ---- jobs_repair.c ---- */

/* Until its circuits are to be made again; negative: never. */
int64_t job_repair_wait_ns(const struct job *j);
/* Begins to repair one whose time has come. True when that is under way. */
bool jobs_repair_one(struct jobs *jobs);
/* Whether one's time has come, and it had room when that was looked at. */
bool jobs_repair_due(const struct jobs *jobs);
/* Jobs that run without some of their circuits say so, by what is known of them now: to be called
 * after what changed their states, before that is told. */
void jobs_keep_loss(struct jobs *jobs);
/* The change that was to repair it has ended. */
void job_end_repair(struct job *j, int rc, const struct err *err);

/* ---- jobs_lifecycle.c ---- */

/* True when nothing else is under way. */
bool jobs_may_begin(const struct jobs *jobs);

/* ---- jobs_change.c ---- */

/* Begins the change that makes a job's circuits what they are to be now, for its repair. */
void job_begin_repair(struct job *j);
/* Begins one for all that may go on: jobs that end, then one that is to be repaired, then those
 * of the queue that fit. */
void jobs_begin_next(struct jobs *jobs);

#endif
