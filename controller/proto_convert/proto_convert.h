/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans and light as messages of weft.v1: what weftd sends, and what the
 * command line shows when it plans by itself. One direction only.
 */
#ifndef WEFT_PROTO_CONVERT_PROTO_CONVERT_H
#define WEFT_PROTO_CONVERT_PROTO_CONVERT_H

#include <stdbool.h>
#include <stddef.h>

#include "controller/dry_run/dry_run.h"
#include "controller/model/model.h"
#include "controller/plan/plan.h"
#include "drivers/optics/optics.h"
#include "lib/base/err.h"
#include "weft/v1/weft.pb-c.h"

/* Bytes of a plan file or a schedule in one message. */
#define MSG_PIECE ((size_t)256 << 10)

/* The numbers of enum apply_verdict, apply_level, store_job_state and model_kind as those
 * of the interface, which has 0 for "not told". */
#define msg_verdict(v) ((Weft__V1__Verdict)((int)(v) + 1))
#define msg_proof(v) ((Weft__V1__Proof)((int)(v) + 1))
#define msg_job_state(v) ((Weft__V1__JobState)((int)(v) + 1))
#define msg_device_kind(v) ((Weft__V1__DeviceKind)((int)(v) + 1))

/* *at holding value, or NULL when that is not known. */
Weft__V1__Number *msg_number(Weft__V1__Number *at, bool is_known, int64_t value);

/* Cross-connects as messages; names are borrowed from the fabric. v is one
 * block with all messages in it. */
struct msg_circuits {
	size_t n;
	Weft__V1__Circuit **v;
};

/* The n cross-connects of fabric->devices[device], with the names of the
 * host ports on their fibres and ports counted from 1. O(n).
 * msg_circuits_fini frees what is inside (a zeroed one is fine). */
void msg_circuits_init(struct msg_circuits *c, const struct model_fabric *fabric, int device,
		       const struct optics_xc *xcs, int n);
void msg_circuits_fini(struct msg_circuits *c);

/* Takes one part; the message lives during the call only. Called from within
 * msg_send_plan() and its like, in order. Non-zero stops them and is what
 * they return; err is filled then. */
typedef int (*msg_part_fn)(const Weft__V1__PlanResponse *part, void *arg, struct err *err);

/* Tells a plan in parts: summary, every device in order of change, every job,
 * and the plan file in pieces if wanted. base: what the plan was made from
 * (NULL: no device was read). Errors are fn's. O(plan). */
int msg_send_plan(const struct plan *p, const struct plan_base *base,
	      bool want_file, msg_part_fn fn, void *arg, struct err *err);

/* A batch of a dry run (dry_run_explain). Errors are fn's. */
int msg_send_batch(const struct model_fabric *fabric, const struct dry_run_batch *o, msg_part_fn fn,
		   void *arg, struct err *err);

/* The lightpaths that a plan makes, one part each, then one part with all
 * links that it interrupts and the downtime of hosts and jobs. Errors are fn's.
 * circuit_parts.c */
int msg_send_lightpaths(const struct plan *p, msg_part_fn fn, void *arg, struct err *err);

/* Failed parts of a device as texts; list points into text, as a message
 * wants. */
struct msg_parts {
	char (*text)[RING_FAULT_TEXT];
	char **list;
};

/* Words for n parts of a ring, also as a message's field in
 * *n_out and *out, which lives as long as w. */
void msg_parts_init(struct msg_parts *w, const struct model_device *ring,
		    const struct ring_fault *dead, int n, size_t *n_out, char ***out);
void msg_parts_fini(struct msg_parts *w);

/* The same for the first parts that the fabric marks as dead, of any device:
 * ports count from 1. Returns how many there are in all in *count. */
#define MSG_PARTS_SHOWN 64
void msg_parts_admin_down(struct msg_parts *w, const struct model_device *dev,
			  size_t *n_out, char ***out, int *count);

/* What a plan means for a job, and the numbers that it points to. */
struct msg_gain {
	Weft__V1__JobGain m;
	Weft__V1__Number before, before_whole, after, after_whole, payback;
};

/* Fills g->m, which borrows the name and points into *g. gain.c */
void msg_gain_init(struct msg_gain *g, const struct plan_gain *from);

/* The row of one job. Strings are borrowed from the plan and its fabric. row
 * points into the rest, so it must not be copied. */
struct msg_topology {
	Weft__V1__PlanTopology m;
	char factor[64];
};

/* The plan of a step, and what it points to. */
struct msg_step {
	Weft__V1__StepPlan m;
	Weft__V1__Number still;
	struct arrays arrays;
	Weft__V1__StepLight *lights, **light;
	Weft__V1__StepShare *shares, **share;
	Weft__V1__StepUse *uses, **use;
	char **axes;
	size_t n_axes;
	double *weights;
};

/* Fills s->m, which borrows from both, of a zeroed s. step.c */
void msg_step_init(struct msg_step *s, const struct workload *w, const struct workload_plan *plan);
void msg_step_fini(struct msg_step *s);

struct msg_job {
	Weft__V1__PlanJob row;
	Weft__V1__JobDegradation loss;
	Weft__V1__Number moves_bound, moves_gap, rounds;
	struct msg_gain gain;
	struct msg_step step;
	char factor[64], loss_factor[64], bound[64];
	char **devices;
	Weft__V1__PlanTuning *tunings, **tuning;
	Weft__V1__PlanRank *ranks, **rank;
	Weft__V1__Number *ring_nodes;
	Weft__V1__PlanArc *arcs, **arc;
	struct msg_topology *topologies;
	Weft__V1__PlanTopology **considered;
	Weft__V1__PlanRange *ranges, **fastest;
	struct msg_parts without;
	Weft__V1__PlanBackup *backups, **backup;
	Weft__V1__LostLightpath *losses, **lost;
	char reason[512];
};

/* Fills j->row for job number `job` of p->jobs. msg_job_fini frees what is inside. */
void msg_job_init(struct msg_job *j, const struct plan *p, int job);
void msg_job_fini(struct msg_job *j);

#endif
