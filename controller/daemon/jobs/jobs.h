/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that orchestrators ask for: a list that outlives weftd, and the one at
 * a time that is being started or ended. The circuits of a job are made and
 * taken away by changes like any other, of the operator's configuration and
 * beside it the jobs that are to have circuits.
 */
#ifndef WEFT_DAEMON_JOBS_JOBS_H
#define WEFT_DAEMON_JOBS_JOBS_H

#include "controller/daemon/change/change.h"
#include "controller/daemon/core/core.h"
#include "controller/daemon/core/plan_queue.h"

struct jobs;

/* Reads the list from the store; everything else is borrowed, and outlives it.
 * The errors of store_jobs; WEFT_EINVAL: a job in the store cannot be read. */
int jobs_new(struct daemon_env *env, struct plan_queue *queue, struct job_status *status,
	     struct drain *drain, struct changes *changes, struct jobs **out, struct err *err);
void jobs_free(struct jobs *jobs);	/* NULL is fine */
/* Reads the list from the store again, while another weftd leads; what is there
 * stays on error. */
void jobs_reload(struct jobs *jobs);
/* The present configuration has changed, or was found at the start: jobs
 * that are in it run, those that are no longer in it have ended. */
void jobs_settle(struct jobs *jobs);
struct jobs_figures {
	int n[STORE_JOB_FAILED + 1];	/* in each state; of those that are over what is kept */
	int64_t started, waited_ns;	/* by this process, and how long they had waited in all */
	int64_t longest_ns;		/* that one in the queue waits already; 0: none does */
};

/* As it is now. O(jobs). */
void jobs_count(const struct jobs *jobs, struct jobs_figures *out);
/* A change has ended, the devices are known, or there is a request: what waits may go on, once the
 * loop has read all that has come by now. So requests that come together go together, and none
 * waits for company. */
void jobs_advance(struct jobs *jobs);
/* All devices were asked for the first time: jobs are settled, whoever asked for circuits that
 * were there before hears how they are, and what waits may go on. */
void jobs_first_read(struct jobs *jobs);
/* Devices were read on request or by the slow round: when all answer, what
 * failed for a device's sake is tried again now and not when its time comes. */
void jobs_devices_read(struct jobs *jobs);
/* Other circuits have failed than before: jobs with good spares of their own are repaired while
 * what is left of them is planned. O(ports x jobs with spares). */
void jobs_stand_in(struct jobs *jobs);
/* What is left of running jobs was planned again. */
void jobs_update_loss(struct jobs *jobs);
/* True for a job that has no schedule unless all its circuits are there. */
bool jobs_needs_all(const struct jobs *jobs, const char *name);
/* Appends the jobs that are to have circuits now to a configuration: those that run
 * or start. */
void jobs_add_requests(const struct jobs *jobs, struct model_config *config);
/* Writes living jobs as the array "requests" of o. */
void jobs_out(const struct jobs *jobs, struct out *o);
/* RequestJob, ReleaseJob, RenewJob, SetLight, ListJobs; arg is the struct jobs. */

/* Adds a job, or finds the one that this request id has made or that has just the circuits that
 * are asked for, and streams its states until it runs. WEFT_EINVAL, WEFT_EUNSUPPORTED, WEFT_ELIMIT
 * for what can never be; WEFT_EHELD for what cannot be now, if it is not to wait in the queue. */
void handle_request_job(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* Ends a job, and streams its states until it has ended. WEFT_ENOTFOUND;
 * WEFT_EDENIED for a job of another user, unless an operator asks. */
void handle_release_job(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* A job ends no sooner than so long from now. WEFT_ENOTFOUND; WEFT_EDENIED; WEFT_EINFEASIBLE: it
 * ends already, or others were told that they run then. */
void handle_renew_job(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* The light of a collective for a job's hosts (changes_set_light). WEFT_EDENIED for a job that
 * another user has requested, unless an operator asks. */
void handle_set_light(struct rpc_call *call, const ProtobufCMessage *req, void *arg);
/* All jobs that live, or one of them; and those that are over if asked for. */
void handle_list_jobs(struct rpc_call *call, const ProtobufCMessage *req, void *arg);

#endif
