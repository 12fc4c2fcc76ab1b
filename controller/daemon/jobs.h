/*
 * Jobs that orchestrators ask for: a list that outlives weftd, and the one at
 * a time that is being started or ended. The light of a job is made and taken
 * away by changes like any other, of a configuration that weftd writes: the
 * operator's text, and behind it the jobs that are to have light.
 *
 *   jobs.c       the list, calls, and who waits for what
 *   jobs_run.c   placing, starting, ending, time
 *   jobs_text.c  jobs as text
 */
#ifndef WEFT_DAEMON_JOBS_H
#define WEFT_DAEMON_JOBS_H

#include "controller/daemon/private.h"
#include "lib/base/buf.h"
#include "lib/base/vec.h"
#include "weft/v1/jobs.pb-c.h"

struct job_call {
	struct rpc_call *call;
	bool release;		/* waits for the end, not for the start */
};

struct job {
	struct jobs *jobs;
	struct store_job s;
	Weft__V1__RequestJobRequest *req;
	VEC(struct job_call) calls;
};

struct jobs {
	struct daemon *d;
	VEC(struct job *) v;	/* oldest first */
	struct job *busy;	/* the change under way is for it, or NULL */
	struct job_clock *clock;
	int64_t retry_ns;	/* monotonic; 0: nothing to be tried again */
};

static inline bool job_lives(const struct job *j)
{
	return j->s.state != STORE_JOB_ENDED && j->s.state != STORE_JOB_FAILED;
}

/* It has light, or is being given some. */
static inline bool job_has_light(const struct job *j)
{
	return j->s.state == STORE_JOB_RUNNING ||
	       j->s.state == STORE_JOB_STARTING;
}

/* ---- jobs.c ---- */

/* The living job of this name, or NULL. */
struct job *jobs_find(const struct jobs *jobs, const char *name);
/* Moves a job on: makes it durable and tells those who wait. problem: why,
 * "" for no reason. */
void job_move(struct job *j, enum store_job_state state, const char *problem);
/* In the queue, from 1; 0 when it is not in it. */
int job_position(const struct job *j);

/* ---- jobs_run.c ---- */

void jobs_clock_fini(struct jobs *jobs);

/* ---- jobs_text.c ---- */

/* A request as text for the store, and back. */
int job_pack(const Weft__V1__RequestJobRequest *req, char **out,
	     struct err *err);
int job_unpack(const char *text, Weft__V1__RequestJobRequest **out,
	       struct err *err);
/* The job's entry in the configuration. WEFT_EINVAL: a text holds what cannot
 * be written. */
int job_entry(const struct job *j, struct buf *out, struct err *err);

#endif
