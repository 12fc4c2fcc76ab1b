/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the apply room.
 *
 *   apply.c            the engine: life, fabric, who is told
 *   device.c           one device: its session, its queue of operations, its
 *                      state; device_set.c: those of one fabric
 *   readings.c         readings of all devices, and what follows from them
 *   circuit_loss.c     what its circuits lose
 *   durable.c          what waits for the disk
 *   learned_times.c    how long ports and devices take to come back
 *   external_scan.c    changes of its circuits that weft did not make
 *   expected.c         what weft itself wants of a device, or is doing to it
 *   plan_input.c       what a plan starts from, and what it would send
 *   compare.c          readings against plans and intent (pure)
 *   plan_journal.c     a plan as a journal (pure)
 *   maintenance.c      an operator's requests to a device beside its circuits
 *   recover.c          changes that were open when the process ended
 *
 * A change:
 *
 *   change_value.c     what all of it share: events, failure, the stage in scope
 *   change_start.c     a plan becomes one; change_end.c: and what is left of it
 *   phases.c           the table of phases, and the way from one to the next
 *   phases/            what they do, in their order:
 *     journal_commit.c   the beginning and the commit in the store
 *     precheck.c         is all as its plan found it?
 *     wait.c             others are to be as far
 *     ask_hosts.c        traffic leaves circuits before they go
 *     execute.c          commands
 *     readback.c         read back, settled, read again
 *     verify_external.c  loss, neighbours, errors: what decides beyond that
 *     tolerance.c        what it goes on without
 *     undo.c             taking a change back
 */
#ifndef WEFT_APPLY_PRIVATE_H
#define WEFT_APPLY_PRIVATE_H

#include "controller/apply/apply.h"
#include "lib/base/buf.h"
#include "lib/base/vec.h"

/* Lines of a reading in a change, or of loading programs, that reach the audit
 * trail; the rest is counted. */
#define AUDIT_LINES_PER_OP 64

/* ---- devices ------------------------------------------------------------- */

struct device;

typedef void (*device_read_cb)(struct device *d, int rc, const struct err *err, void *arg);
typedef void (*device_submit_cb)(struct device *d, int rc, int n,
				 const struct drv_outcome *outcomes,
				 const struct err *err, void *arg);

/* A request to a device; owned by the caller, in use until its callback. A
 * batch, or maintenance, or with both NULL a reading. */
struct device_op {
	const struct drv_batch *batch;
	const struct apply_maintenance *maintenance;
	device_read_cb read_cb;
	device_submit_cb submit_cb;
	void *arg;
	struct device_op *next;
};

/* What a device reported of its own accord: the last ones, which may tell who
 * changed a circuit. */
#define REPORTS_KEPT 16

struct device_report {
	int64_t at_ns;			/* wall clock */
	bool has_port, is_out;
	int index;
	char text[DRV_TEXT_MAX];
};

typedef VEC(struct store_external_change) external_list;

struct device {
	struct apply *a;
	struct device *next;		/* of all devices of the engine */
	int refs;			/* of sets, and one an operation; at 0
					 * the session is closed */
	char *name, *driver;
	char *signature;		/* same text: same session will do */
	bool any_to_any;
	struct drv *drv;		/* NULL: it could not be opened */
	bool closing, closed;		/* no operation is taken; drv is gone */
	struct device_op *head, *tail;	/* head is running; NULL: idle */
	int lines, lines_dropped;	/* audit of the running one */
	struct apply_device now;	/* strings are name and driver above */
	struct store_light intent;	/* committed; circuits sorted */
	struct apply_circuit *circuits;	/* [intent.n_xcs] */
	int n_silent;			/* by hosts: apply_set_silent(); sorted */
	struct optics_xc *silent;
	unsigned char *program_proofs;	/* [intent.programs.n] enum apply_level, as `proof` */
	enum apply_level proof;		/* by the last change, as far as later
					 * readings have not refuted it */
	bool unsaved;			/* now.snap is not in the store yet */
	const struct model_device *file;	/* its marks and limits, of the set in force last;
						 * NULL: none yet, or that is gone */
	int n_losses;
	struct store_insertion_loss *losses;	/* learned, sorted by xc; the lowest
					 * seen of each */
	bool losses_unsaved;
	bool from_store;		/* the reading is an earlier process's */
	struct device_report reports[REPORTS_KEPT];
	unsigned int n_reports;		/* ever; the next one's place is this,
					 * modulo REPORTS_KEPT */
	external_list external;		/* that the store has not got */
};

/* Opens a handle for a fabric's device; nothing is sent. refs is 1. What the
 * store knows of it is there when this returns: its last reading by an earlier
 * process, its intent, its losses. The errors of dry_run_open(). */
int device_open(struct apply *a, const struct model_fabric *f, int index,
		struct device **out, struct err *err);
struct device *device_ref(struct device *d);
void device_unref(struct device *d);
/* Ends the session at once; running and queued operations fail with
 * WEFT_ECANCELED, from the loop. */
void device_close(struct device *d);

/* Whether a fabric's device means the session of d. */
bool device_is_same(const struct device *d, const struct model_device *m);

/* Operations of one device run one after the other, in the order asked for.
 * The reading is d->now.snap. Callbacks come from the loop only. Never for a device
 * elsewhere. */
void device_read(struct device *d, struct device_op *op, device_read_cb cb, void *arg);
void device_submit(struct device *d, struct device_op *op, const struct drv_batch *batch,
		   device_submit_cb cb, void *arg);

/* `what` lives until the callback, and the driver can do it. */
void device_maintain(struct device *d, struct device_op *op, const struct apply_maintenance *what,
		     device_submit_cb cb, void *arg);
/* The batch that runs is to end soon. */
void device_cancel(struct device *d);

/* Takes the committed intent from the store again; on an error it stays. */
int device_load_intent(struct device *d, struct err *err);
/* Makes the light of l (taken over) the intent, and assesses it; what stays the same stays proven.
 * health.c */
void device_take_intent(struct device *d, struct store_light *l);
/* Compares the last reading with intent and open changes: counts circuits by their health and
 * those that are unexpected, and lowers the level to what still holds. health.c
 * O((circuits + steps of open changes) log circuits). */
void device_assess(struct device *d);
/* True when a circuit that the device lists has no light: by the health of one that is intended;
 * another is blocked or failed, a port of it failed or is disabled, its monitors see no power, or
 * its host hears nothing. health.c O(log circuits), of another O(ports that the device tells of)
 * more. */
bool device_is_dark(const struct device *d, const struct drv_xc *x);
/* How the circuits of its intent were for an earlier process, and since when. health.c */
int device_load_ages(struct device *d, struct err *err);

/* ---- what weft itself wants of it (expected.c) --------------------------- */

bool device_intends(const struct device *d, struct optics_xc xc);
/* True while an operator sets a port of the circuit. */
bool maintenance_explains(const struct device *d, struct optics_xc xc);
/* Goes through what the change under way and those open have to do on a device;
 * begins as zero. NULL after the last. at->journal: the change's. */
struct work_cursor {
	const struct store_journal *journal;
	int k, w;
};
const struct store_work *device_next_work(const struct device *d, struct work_cursor *at);

/* ---- changes by others (external_scan.c) ---------------------------------- */

/* Compares a fresh reading with the one before (NULL: none), records what
 * weft did not change, and what of earlier records is right again. */
void external_compare(struct device *d, const struct drv_snapshot *before, int64_t before_ns);
/* The same of earlier records when a change was committed; restores: it was
 * made for that. */
void external_committed(struct device *d, int64_t change, bool restores);
/* Records of devices that the change has done away with are over. */
void external_retire(struct apply *a, int64_t change);
/* Keeps a device's report, which may tell who it was. */
void external_note_report(struct device *d, const struct drv_event *ev);

/* ---- losses (circuit_loss.c) --------------------------------------------- */

/* Takes from the last reading what circuits lose that are well: the lowest of
 * each is kept. */
void loss_learn(struct device *d);
/* x: of the last reading. O(log circuits). */
void loss_judge(const struct device *d, const struct drv_xc *x, struct apply_loss *out);
/* "in 3 -> out 7 loses 4.20 dB, was 1.10 dB": of one that loses too much. */
void loss_text(const struct drv_xc *x, const struct apply_loss *l, char *text, int size);
/* What was learned from the store, and what it has not got yet to it. */
int loss_load(struct device *d, struct err *err);
int loss_save(struct device *d, struct err *err);

/* ---- times (learned_times.c) --------------------------------------------- */

#define TIMING_KINDS 2
struct timings;

/* On an error timings_free() is still to be called. */
int timings_load(struct apply *a, struct err *err);
void timings_free(struct apply *a);
/* Writes what was learned to the store; a failure is logged. */
void timings_save(struct apply *a);

/* ---- the devices of a fabric --------------------------------------------- */

struct device_set {
	struct model_fabric *fabric;	/* owned */
	struct device **v;		/* [fabric->n_devices] */
	struct apply_device *view;	/* copies for apply_devices() */
	int n;
};

/* Sessions that are the same are shared with `from` (may be NULL). The
 * fabric is taken over only on success. */
int device_set_new(struct apply *a, struct model_fabric *fabric, const struct device_set *from,
		   struct device_set **out, struct err *err);
void device_set_free(struct device_set *s);
struct device *device_set_find(const struct device_set *s, const char *name);

/* ---- comparing ----------------------------------------------------------- */

/* A circuit of a reading, NULL: not listed. O(log circuits). */
const struct drv_xc *snap_find(const struct drv_snapshot *s, struct optics_xc xc);
/* The next circuit from *at (begin with 0) on one of xc's ports, which may
 * be xc itself; NULL after the last. */
const struct drv_xc *snap_holder(const struct drv_snapshot *s, bool any_to_any, struct optics_xc xc,
				 int *at);
/* The loaded program, NULL when none or one without steps. */
const struct ring_programs *snap_program(const struct drv_snapshot *s);
/* Equality where NULL and "no steps" are the same. */
bool program_same(const struct ring_programs *a, const struct ring_programs *b);
/* What a ring held before the change, and is to hold; NULL: no program. */
const struct ring_programs *work_old(const struct store_work *w);
const struct ring_programs *work_new(const struct store_work *w);

/* True when the fresh reading is what the stage was planned from, on every
 * port it touches. WEFT_ESTALE names device, circuit and what changed;
 * WEFT_EDEVICE a failed port; WEFT_ELIMIT a program that does not fit. */
int compare_before(const struct store_work *w, int stage, const struct device *d, struct err *err);
/* WEFT_EVERIFY names the first circuit that is not as planned; *at is its
 * step, -1 for none. *settling: the map is right, but light is still moving,
 * of the step *at. */
int compare_after(const struct store_work *w, int stage, const struct device *d, bool *settling,
		  int *at, struct err *err);
/* True when a step's circuit is missing, failed or not settled and nothing
 * else is on its ports. */
bool compare_gap(const struct store_step *st, const struct device *d);
/* Where one step stands by the last reading. */
enum store_step_state compare_step(const struct store_work *w, const struct store_step *step,
				   const struct drv_snapshot *snap);
/* It was sent, and what became of it is not known. */
bool step_is_unknown(const struct store_step *st);
/* "in 3 -> out 7" (ports counted from 1, as in the fabric). */
const char *xc_text(struct optics_xc xc, char *buf, int size);
/* The first port of a circuit that failed or is disabled, or NULL. O(ports that are told of). */
const struct drv_port *find_bad_port(const struct drv_snapshot *s, bool any_to_any,
				     struct optics_xc xc);
/* The same for a step; "the program" for a ring. */
const char *step_text(const struct store_step *st, char *buf, int size);

/* ---- the journal --------------------------------------------------------- */

/* Writes the plan as a journal; takes the plan's programs over. */
void journal_from_plan(struct plan *p, const struct change_order *order,
		       struct store_journal *out);
/* What a step is to a stage of the change: its own op, STORE_KEEP for light
 * that an earlier stage made or a later one deletes, or nothing. */
#define STAGE_ALL (-1)		/* to the change as a whole */
#define STEP_NONE (-1)
int step_op(const struct store_step *st, int stage);

/* The step of a circuit in a stage, or -1. O(log steps). */
int step_find(const struct store_work *w, int stage, enum store_op op, struct optics_xc xc);

/* Steps of one kind, over all stages. */
int work_count(const struct store_work *w, enum store_op op);
/* Steps that send something. */
int work_moves(const struct store_work *w);

/* ---- a change ------------------------------------------------------------ */

enum phase {
	PHASE_PREPARE, PHASE_CHECK, PHASE_WAIT, PHASE_DRAIN, PHASE_DELETE,
	PHASE_ADD, PHASE_LOAD, PHASE_READ_BACK, PHASE_SETTLE, PHASE_READ_AGAIN,
	PHASE_VERIFY, PHASE_COMMIT, PHASE_UNDO, PHASE_STOP, PHASE_END,
	/* What a phase returns instead of the one that comes next: */
	PHASE_WAITS,		/* change.walk is called when that is known */
	PHASE_OVER,		/* as the table has it, or undo if the change failed */
};

/* Owned by the caller, in use until its callback. */
typedef void (*durable_cb)(int rc, const struct err *err, void *arg);
struct durable_wait {
	int64_t position;	/* of the store: others are to have it up to here */
	durable_cb done;
	void *arg;
	struct durable_wait *next;
};

/* Calls done from a later iteration of the loop, once what the store was told before this
 * call is durable, and those who have the store too have it; or is not durable. Not at all once
 * the engine is being closed. */
void apply_when_durable(struct apply *a, struct durable_wait *w, durable_cb done, void *arg);

/* A stage of a change on one device that has something to send. Its steps are
 * marked in the journal before anything is sent of them. */
struct apply_run {
	struct change *c;
	struct store_work *w;		/* of c->journal */
	int index;			/* of w there */
	struct device *dev;
	int stage;			/* of c->plan */
	int begin, end;			/* its steps in w; begin < end */
	bool is_first;			/* of its device */
	struct device_op op;		/* one at a time */
	struct durable_wait marked;	/* what is sent next is in the journal */
	struct drv_batch batch;
	struct drv_item *items;		/* [w->n_steps] */
	int *item_step;			/* [n_sent]: the step each item is */
	int first, n_sent;		/* steps of the batch under way */
	int in_batch;			/* of the batch under way, as its device tells */
	int64_t each_ns, end_ns;	/* what a step takes by that, and when all of
					 * the device's are expected to be over */
	bool sent;			/* something may have reached it: undo
					 * is to read it */
	int n_sends, n_moves;		/* commands, circuits that they were
					 * for, not learned from yet */
	int64_t since_ns, took_ns;	/* when the command or reading under
					 * way began; how long all took */
	bool replace;			/* the whole map in one command */
	int clear_at;			/* steps before it are cleared: what was
					 * listed as failed is deleted before it
					 * is made again */
	bool clearing;			/* the batch under way does that */
	bool settling;			/* by the last reading */
	bool unmeasured;		/* the device said so of an item */
	enum apply_level proof;		/* least of its circuits */
	char epoch[DRV_NAME_MAX];	/* at the check; "": it tells none */
	bool restarted;			/* since the check */
	int n_before;			/* the map at the check, sorted */
	struct optics_xc *before;
	struct ring_programs dark;	/* no program at all */
	/* undo */
	unsigned char *tries;		/* [w->n_steps] */
	int rounds, n_unread;		/* batches; readings that failed in a
					 * row */
	bool confirmed;			/* one reading was as before */
};

struct change {
	struct apply *a;
	struct plan *plan;		/* NULL: an earlier process made the
					 * journal, and it is undone */
	struct device_set *set, *before;	/* the plan's; the one that
						 * comes back when it fails */
	struct store_journal journal;
	apply_event_cb on_event;
	apply_done_cb on_done;
	void *arg;
	char peer[APPLY_PEER_MAX];
	bool restores;
	void (*ready)(int stage, void *arg);	/* or NULL */
	int next;			/* run that the stage after PHASE_WAIT
					 * begins with; n_runs: the commit */
	bool decided;			/* to commit: it cannot fail any more */
	enum phase phase;
	/* change_walk(), for callbacks of phases: from the loop, when the phase has returned
	 * PHASE_WAITS. */
	void (*walk)(struct change *c, enum phase next);
	int n_runs;
	struct apply_run *runs;
	int first, end;			/* runs in scope: a stage, or all */
	bool whole;			/* all stages are in scope */
	int waiting;			/* operations the phase waits for */
	bool cancel;
	int rc;				/* the first failure */
	struct err err;
	int settle_rounds;
	int n_stage_adds, n_stragglers;	/* of the stage in scope */
	bool stop;			/* too much failed, and the fabric wants
					 * it left as it is: no undo */
	bool ignore_traffic;			/* as asked for */
	struct apply_question question;	/* to hosts; paths are owned */
	int64_t began_ns, lit_ns;	/* of the stage in scope: its first
					 * command, and that all is made */
	const char *lost;		/* device that could not be read in undo, or NULL */
	int undo_at;			/* run; they go backwards */
	int undo_stage;			/* that was drained last; -1: none */
	void (*undo_drained)(struct change *c);	/* what follows on that */
	int n_external;			/* changes by others while it ran, and */
	char external[ERR_MSG_MAX / 2];	/* the first of them */
	int n_unrecovered;			/* circuits that undo could not move */
	struct buf unrecovered;		/* their names */
	struct durable_wait recorded;	/* that it begins, its commit, that it goes back */
	char summary[200];		/* of a commit */
	struct apply_result res;
	int64_t started_ns;
	int done, total;		/* steps, for events */
	int told;			/* the most that were told to be done */
};

/* The change fails with this, if it has not failed yet; what is under way is
 * still waited for. */
void change_fail(struct change *c, int rc, const struct err *err);
/* Others changed light of the device while the change ran: the first such is an event, and
 * if the change fails, its error names that one and counts the rest. */
void change_note_external(struct change *c, const struct device *d,
			  const struct store_external_change *f);
/* The change under way; NULL: none, or one whose end is known. */
struct change *change_running(const struct apply *a);
/* Reports to on_event, and to the audit trail once the change has an id. */
void change_event(struct change *c, const struct device *d, bool is_problem,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* A device's batch is under way. */
void change_progress(struct change *c, const struct device *d, const struct drv_event *ev);
const char *change_phase_name(enum phase phase);
/* One of the operations that the phase waits for has been answered; after the
 * last one the change walks on. */
void change_op_done(struct change *c);
void change_op_failed(struct apply_run *r, int rc, const struct err *err);

/* Steps that are `op` to the run's stage. */
int run_count(const struct apply_run *r, enum store_op op);

/* Narrows the scope to the stage that begins at run `first`. */
void change_scope(struct change *c, int first);

/* ---- its start and its end ----------------------------------------------- */

/* Undoes what an earlier process left open: journal and set are taken over. why: becomes
 * the change's. on_event gets arg as well. */
void change_undo_open(struct apply *a, struct store_journal *j, struct device_set *set,
		      const struct err *why, apply_event_cb on_event, apply_done_cb on_done,
		      void *arg);
/* Ends the change with what is in c->res.verdict, c->rc and c->err; c is freed soon. */
void change_end(struct change *c);
/* The engine is closed in the middle: light and journal stay. */
void change_abandon(struct change *c);
/* With its runs, its plan and its journal. */
void change_free(struct change *c);

/* ---- the phases ---------------------------------------------------------- */

/* From phase to phase until one waits, or the engine is being closed. */
void change_walk(struct change *c, enum phase next);

/* Those of a change as a whole return what comes next. */

/* Durable before anything is sent; ends the change if nothing is to do. */
enum phase journal_prepare(struct change *c);
/* True now; what is to be repaired is put on the list with it. */
enum phase journal_commit(struct change *c);
/* Too much failed, and the fabric wants an operator to look at it: the journal
 * stays open and explains every circuit. */
enum phase journal_stop(struct change *c);
enum phase wait_begin(struct change *c);
enum phase drain_begin(struct change *c);
enum phase readback_settle(struct change *c);
enum phase verify_begin(struct change *c);
/* Takes back everything that was sent. */
enum phase undo_begin(struct change *c);

/* Each begins an operation on its run's device, or more, and calls
 * change_op_done() or change_op_failed() after the last. */
void precheck_begin(struct apply_run *r);
/* True when something that the stage makes is listed as failed. */
bool execute_clears(const struct apply_run *r);
void execute_begin(struct apply_run *r);
void readback_begin(struct apply_run *r);

/* The phase after one where that is not always the same. The first check is of all devices, so
 * that a plan that cannot be carried through moves nothing at all. */
enum phase precheck_next(struct change *c);
enum phase wait_next(struct change *c);
enum phase readback_next(struct change *c);
enum phase verify_next(struct change *c);
/* The phase that the stage which begins at run `first` begins with, or after the last one the
 * commit; `phase` is the stage's where nothing waits. */
enum phase wait_or(struct change *c, int first, enum phase phase);

/* Asks hosts about these arcs, which are taken over. done calls change_op_done(). */
enum phase ask_hosts(struct change *c, struct plan_arc *arcs, int n,
		     void (*done)(struct apply_question *q),
		     void (*ask)(struct apply_question *q, void *arg));
/* Traffic leaves what a stage has made before that is taken back; then next, at once
 * where nothing is to be asked. Nothing stops it. */
void drain_undo(struct change *c, int stage, void (*next)(struct change *c));

/* Whether the change goes on without one more circuit of the stage in scope:
 * if so the circuit is left to be repaired, else err is what stops it. layer:
 * the one that it failed although it was made, or 0. */
bool tolerance_allows(struct apply_run *r, int step, enum apply_level layer, const struct err *err);
/* Puts the circuits that the change was carried out without on the list. */
int tolerance_record(struct change *c, int *n, struct err *err);

/* ---- maintenance --------------------------------------------------------- */

struct maintenance {
	struct apply *a;
	struct device *d;		/* referenced */
	struct device_op op;		/* reading, request, reading */
	struct apply_maintenance what;
	apply_maintenance_cb cb;
	void *arg;
	int rc;				/* of the first reading, or the request;
					 * the last reading decides nothing */
	struct err err;
	struct drv_outcome outcome;	/* SKIPPED until the device answered */
};

/* ---- recovering ---------------------------------------------------------- */

struct recovery;
void recovery_abandon(struct recovery *r);

/* ---- what a plan starts from (plan_input.c) ------------------------------ */

struct plan_input;
void plan_input_free(struct plan_input *b);
/* The device in the present set that m means, NULL when none does: one of
 * another fabric is the same one only if its session is. */
const struct device *plan_input_device(const struct apply *a, const struct model_device *m);

/* ---- the engine ---------------------------------------------------------- */

struct apply_syncs {
	struct apply *a;
	uv_work_t req;
	bool running, again;	/* something was written since it began */
	int64_t last;		/* that the store had then */
	struct durable_wait *served, *waiting;	/* by the one that runs, by the next */
	struct durable_wait *unpublished;	/* durable here, and others do not have it */
	int rc;
	int64_t took_ns;
	struct err err;
};

struct apply {
	uv_loop_t *loop;
	struct store *store;
	char **domains;			/* NULL: all devices are led here */
	struct device_set *set;		/* NULL: no fabric yet */
	struct device *devices;		/* all with a handle, any set */
	int n_devices;
	uint64_t version;		/* grows with what is known of them */
	uv_timer_t timer;		/* of the change or the recovery */
	void (*on_timer)(void *arg);	/* see apply_later() */
	void *timer_arg;
	struct change *change;		/* under way, or NULL */
	struct recovery *recovery;
	bool resume;			/* the next one may take back */
	void (*on_open)(const struct store_change *ch, void *arg);	/* or NULL */
	void *on_open_arg;
	struct maintenance *maintenance;	/* under way, or NULL */
	struct store_journal *open;	/* open changes, newest first */
	int n_open;
	struct apply_syncs syncs;
	int n_working;			/* what is freed or copied on a worker */
	struct timings *timings[TIMING_KINDS];
	struct plan_input *plan_input;	/* memory of the last plan base */
	apply_device_event_cb on_device_event;	/* may be NULL */
	void *device_event_arg;
	apply_external_cb on_external;	/* may be NULL */
	void *external_arg;
	enum store_external_how how;	/* what the present readings are for */
	void (*before_command)(void *arg);	/* or NULL */
	void *before_arg;
	struct apply_hosts hosts;		/* zero: none can be asked */
	bool closing, timer_closed;
	/* Something that closing waits for has ended: a device's session, work of a worker. */
	void (*ended)(struct apply *a);
	void (*closed_cb)(void *arg);
	void *closed_arg;
};

/* After so long the loop has answered those who waited. */
#define YIELD_US 1000

/* Calls fn once, from a later iteration of the loop; not at all once the engine
 * is being closed. One caller at a time, change or recovery: a second call takes
 * the place of the first. */
void apply_later(struct apply *a, int64_t after_us, void (*fn)(void *arg), void *arg);
/* Writes readings to the store; a failure is logged. */
void apply_save_readings(struct apply *a);
/* Makes a set the present one, by whose file the light of its devices is judged from now on; the
 * former is left to the caller. */
void apply_switch(struct apply *a, struct device_set *set);
/* Puts a set in the place of the present one, which is freed. */
void apply_use(struct apply *a, struct device_set *set);

#endif
