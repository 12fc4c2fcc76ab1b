/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning in a process of its own: weftd again (exec), in a mode of its own, with limits of
 * memory, CPU, time and bytes, and without descriptors, capabilities or children. What a client's
 * configuration does to it ends there; weftd goes on.
 *
 * It is told a configuration first, and answers whether that can be read; then what to plan
 * from, and answers the plan. Then it may be told another configuration, of the same user. Weftd
 * reads no text that did not come through there, and takes what comes back for anybody's bytes.
 */
#ifndef WEFT_DAEMON_CORE_PLAN_PROCESS_H
#define WEFT_DAEMON_CORE_PLAN_PROCESS_H

#include <uv.h>

#include "controller/daemon/core/plan_queue.h"

/* ---- what it is told, and answers (snapshot.c) ---- */

/* To plan the configuration that it was told first. Owned. */
struct plan_task {
	struct snapshot snap;
	int n_only;		/* of plan_base.only, and its end; 0: NULL */
	char **only;
	char *step;		/* plan_base.step, "": none */
	bool restores;		/* plan_base.restore is not NULL */
	int n_restore;
	struct plan_restore *restore;
	bool degraded;		/* plan_degraded, else plan_make */
	bool assess;		/* what jobs gain against what they have by the snapshot */
	bool ignore_floor, has_keep;	/* as in plan_request */
	int64_t keep_ppm;
};

struct plan_answer {
	struct err err;		/* no code: it is done */
	struct err_list errs;	/* all mistakes of a configuration */
	int64_t took_ns;	/* of its CPU for a configuration; in all for a plan */
	size_t len;
	char *plan;		/* plan_to_bytes; of a configuration none */
};

struct layout;

/* Of struct model_config, plan_task, plan_answer. */
extern const struct layout plan_config_layout, plan_task_layout, plan_answer_layout;

/* Of one that was read: its base has its lists. */
void daemon_snapshot_settle(struct snapshot *s);

/* ---- plan_process_main.c: the process itself ---- */

/* The fabric of a configuration; the first of its errors, and how many more there are; errs gets
 * all. */
int plan_parse(const struct model_config *config, struct model_fabric **out,
	       struct err_list *errs, struct err *err);

/* argv[1] of weftd; then its memory in MiB (0: no limit), its seconds of CPU, and its niceness. */
#define PLAN_PROCESS_MODE "--plan-process"

/* The whole process: serves descriptor 0 until it is closed. Its exit status. */
int plan_process_main(int argc, char **argv);

struct plan_child;

/* It has no configuration. plan_child_free: NULL is fine. */
struct plan_child *plan_child_new(void);
void plan_child_free(struct plan_child *c);
/* Appends a struct plan_answer to a question: a configuration, and a task once that was read, in
 * turn. */
void plan_child_answer(struct plan_child *c, const void *question, size_t len, struct buf *answer);

/* ---- plan_process.c: weftd's side ---- */

struct plan_limits {
	int64_t memory_mib;	/* address space; 0: none */
	int64_t time_s;		/* of one answer, and CPU in all */
	int nice;
};

struct plan_process;

/* Called once a question, on the loop: with 0 and the answer's bytes, which are anybody's, valid
 * within; or with an error that says which limit was met, or how the process ended. */
typedef void plan_answered(int rc, const struct buf *answer, const struct err *err, void *arg);

/* Begins one. WEFT_EUNAVAIL: there is none to be had. */
int plan_process_new(uv_loop_t *loop, const struct plan_limits *limits, struct plan_process **out,
		     struct err *err);
/* Asks the question, whose memory is taken over; one at a time. */
void plan_process_ask(struct plan_process *p, struct buf *question, plan_answered *answered,
		      void *arg);
/* Ends it, at once if it is at work: whoever waits for an answer hears nothing more. NULL is
 * fine. */
void plan_process_free(struct plan_process *p);
/* One that has answered its last question may be asked again, within seconds and only so often:
 * it is in *place until it is taken from there, plan_process_free says otherwise, or it ends
 * (*place is NULL then). The loop does not run for it. */
void plan_process_rest(struct plan_process *p, struct plan_process **place);
/* Takes it out of *place; NULL: there is none. */
struct plan_process *plan_process_wake(struct plan_process **place);

#endif
