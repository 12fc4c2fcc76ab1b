/*
 * Shared by the files of the apply room.
 *
 *   apply.c    the engine: life, fabric, readings, base for planning
 *   device.c   one device: its session, its queue of operations, its state
 *   loss.c     what its circuits lose
 *   timing.c   how long ports and devices take to come back
 *   foreign.c  changes of its light that weft did not make
 *   set.c      the devices of one fabric
 *   base.c     what a plan starts from
 *   dry_run.c  what a plan would send
 *   compare.c  readings against plans and intent (pure)
 *   journal.c  a plan as a journal (pure)
 *   change.c   a change on its way through the phases
 *   record.c   its beginning and its commit in the store
 *   check.c    is all as its plan found it?
 *   send.c     its commands
 *   proof.c    read back, settled, read again
 *   prove.c    loss, neighbours, errors: what decides beyond that
 *   drain.c    traffic leaves light before it goes
 *   gate.c     what it goes on without
 *   undo.c     taking a change back
 *   care.c     what is asked of a device beside its light
 *   recover.c  changes that were open when the process ended
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

typedef void (*device_read_cb)(struct device *d, int rc,
			       const struct err *err, void *arg);
typedef void (*device_submit_cb)(struct device *d, int rc, int n,
				 const struct drv_outcome *outcomes,
				 const struct err *err, void *arg);

/* A request to a device; owned by who asks, in use until its callback. */
struct device_op {
	const struct drv_batch *batch;	/* NULL: read, or */
	const struct apply_care *care;
	device_read_cb read_cb;
	device_submit_cb submit_cb;
	void *arg;
	struct device_op *next;
};

/* What a device said of its own accord, for a while. */
#define SAID_KEPT 16

struct said {
	int64_t at_ns;			/* wall clock */
	bool has_port, is_out;
	int index;
	char text[DRV_TEXT_MAX];
};

typedef VEC(struct store_foreign) foreign_list;

struct device {
	struct apply *a;
	struct device *next;		/* of all devices of the engine */
	int refs;
	char *name, *driver;
	char *signature;		/* same text: same session will do */
	bool any_to_any;
	struct drv *drv;
	bool closing, closed;
	struct device_op *head, *tail;	/* head is running */
	int lines, lines_dropped;	/* audit of the running one */
	struct apply_device now;	/* strings are name and driver above */
	struct store_light intent;
	enum apply_level proof;		/* of the last change */
	bool unsaved;			/* a reading the store has not got */
	int32_t limit_mdb;		/* of a circuit's loss; 0: none */
	int n_losses;
	struct store_loss *losses;	/* learned, by xc */
	bool losses_unsaved;
	bool from_store;		/* the reading is an earlier process's */
	struct said said[SAID_KEPT];
	unsigned int n_said;
	foreign_list foreign;		/* that the store has not got */
};

/* Opens a handle for a fabric's device; nothing is sent. refs is 1. */
int device_open(struct apply *a, const struct model_fabric *f, int index,
		struct device **out, struct err *err);
struct device *device_ref(struct device *d);
void device_unref(struct device *d);
/* Ends the session at once; running and queued operations fail. */
void device_close(struct device *d);

/* Text that tells whether two fabrics mean the same session. */
char *device_signature(const struct model_device *m);

/* Operations of one device run one after the other, in the order asked for.
 * The reading is d->now.snap. Callbacks come from the loop only. */
void device_read(struct device *d, struct device_op *op, device_read_cb cb,
		 void *arg);
void device_submit(struct device *d, struct device_op *op,
		   const struct drv_batch *batch, device_submit_cb cb,
		   void *arg);

/* `what` lives until the callback, and the driver can do it. */
void device_care(struct device *d, struct device_op *op,
		 const struct apply_care *what, device_submit_cb cb,
		 void *arg);
/* The batch that runs is to end soon. */
void device_cancel(struct device *d);
/* True while an operator sets a port of the circuit. care.c */
bool care_explains(const struct device *d, struct optics_xc xc);

/* Takes the committed intent from the store again. */
int device_load_intent(struct device *d, struct err *err);
/* Compares the last reading with intent and open changes. */
void device_assess(struct device *d);
bool device_intends(const struct device *d, struct optics_xc xc);

/* ---- changes by others (foreign.c) --------------------------------------- */

/* Compares a fresh reading with the one before (NULL: none), records what
 * weft did not change, and what of earlier records is right again. */
void foreign_look(struct device *d, const struct drv_snapshot *before,
		  int64_t before_ns);
/* The same of earlier records when a change was committed; restores: it was
 * made for that. */
void foreign_committed(struct device *d, int64_t change, bool restores);
/* Records of devices that the change has done away with are over. */
void foreign_retire(struct apply *a, int64_t change);
/* Remembers words of the device, which may tell who it was. */
void foreign_said(struct device *d, const struct drv_event *ev);

/* ---- losses (loss.c) ----------------------------------------------------- */

/* Takes from the last reading what circuits lose that are well. */
void loss_learn(struct device *d);
void loss_judge(const struct device *d, const struct drv_xc *x,
		struct apply_loss *out);
/* How many circuits of the last reading lose too much; the first of them goes
 * to an empty text, in words. O(circuits log circuits). */
int loss_assess(const struct device *d, char *text, int size);
/* "in 3 -> out 7 loses 4.20 dB, was 1.10 dB": of one that loses too much. */
void loss_text(const struct drv_xc *x, const struct apply_loss *l, char *text,
	       int size);
int loss_load(struct device *d, struct err *err);
int loss_save(struct device *d, struct err *err);

/* ---- times (timing.c) ---------------------------------------------------- */

#define TIMING_KINDS 2
struct timings;

int timings_load(struct apply *a, struct err *err);
void timings_free(struct apply *a);
/* Writes what was learned to the store; a failure is logged. */
void timings_save(struct apply *a);

/* ---- the devices of a fabric --------------------------------------------- */

struct devset {
	struct model_fabric *fabric;	/* owned */
	struct device **v;		/* [fabric->n_devices] */
	struct apply_device *view;	/* copies for apply_devices() */
	int n;
};

/* Sessions that are the same are shared with `from` (may be NULL). The
 * fabric is taken over only on success. */
int devset_new(struct apply *a, struct model_fabric *fabric,
	       const struct devset *from, struct devset **out,
	       struct err *err);
void devset_free(struct devset *s);
struct device *devset_find(const struct devset *s, const char *name);

/* ---- comparing ----------------------------------------------------------- */

const struct drv_xc *snap_find(const struct drv_snapshot *s,
			       struct optics_xc xc);
/* The next circuit from *at (begin with 0) on one of xc's ports, which may
 * be xc itself; NULL after the last. */
const struct drv_xc *snap_holder(const struct drv_snapshot *s,
				 bool any_to_any, struct optics_xc xc,
				 int *at);
/* The loaded program, NULL when none or one without steps. */
const struct ring_programs *snap_program(const struct drv_snapshot *s);
/* Equality where NULL and "no steps" are the same. */
bool program_same(const struct ring_programs *a,
		  const struct ring_programs *b);
const struct ring_programs *work_old(const struct store_work *w);
const struct ring_programs *work_new(const struct store_work *w);

/* True when the fresh reading is what the stage was planned from, on every
 * port it touches. WEFT_ESTALE names device, circuit and what changed;
 * WEFT_EDEVICE a failed port; WEFT_ELIMIT a program that does not fit. */
int compare_before(const struct store_work *w, int stage,
		   const struct device *d, struct err *err);
/* WEFT_EVERIFY names the first circuit that is not as planned; *at is its
 * step, -1 for none. *settling: the map is right, but light is still moving,
 * of the step *at. */
int compare_after(const struct store_work *w, int stage,
		  const struct device *d, bool *settling, int *at,
		  struct err *err);
/* True when a step's circuit is missing, failed or not settled and nothing
 * else is on its ports. */
bool compare_gap(const struct store_step *st, const struct device *d);
/* Where one step stands by the last reading. */
enum store_step_state compare_step(const struct store_work *w,
				   const struct store_step *step,
				   const struct drv_snapshot *snap);
/* "in 3 -> out 7" (ports counted from 1, as in the fabric). */
const char *xc_text(struct optics_xc xc, char *buf, int size);
/* The same for a step; "the program" for a ring. */
const char *step_text(const struct store_step *st, char *buf, int size);

/* ---- the journal --------------------------------------------------------- */

/* Writes the plan as a journal; takes the plan's programs over. */
int journal_from_plan(struct plan *p, const struct apply_request *req,
		      struct store_journal *out, struct err *err);
/* What a step is to a stage of the change: its own op, STORE_KEEP for light
 * that an earlier stage made or a later one deletes, or nothing. */
#define STAGE_ALL (-1)		/* to the change as a whole */
#define STEP_NONE (-1)
int step_op(const struct store_step *st, int stage);

/* The step of a circuit in a stage, or -1. O(log steps). */
int step_find(const struct store_work *w, int stage, enum store_op op,
	      struct optics_xc xc);

int work_count(const struct store_work *w, enum store_op op);
/* Steps that send something. */
int work_moves(const struct store_work *w);

/* ---- a change ------------------------------------------------------------ */

enum phase {
	PHASE_PREPARE, PHASE_CHECK, PHASE_DRAIN, PHASE_DELETE, PHASE_ADD,
	PHASE_LOAD, PHASE_READ_BACK, PHASE_SETTLE, PHASE_READ_AGAIN,
	PHASE_PROVE, PHASE_COMMIT, PHASE_UNDO, PHASE_STOP, PHASE_END,
};

/* A stage of a change on one device that has something to send. */
struct run {
	struct change *c;
	struct store_work *w;
	int index;			/* of w in the journal */
	struct device *dev;
	int stage;
	int begin, end;			/* its steps in w */
	bool is_first;			/* of its device */
	struct device_op op;
	struct drv_batch batch;
	struct drv_item *items;		/* [w->n_steps] */
	int *item_step;			/* the step each item is */
	int first, n_sent;		/* steps of the batch under way */
	int n_done;			/* for progress */
	bool sent;			/* something may have reached it */
	int n_sends, n_moves;		/* commands, circuits that they were
					 * for, not learned from yet */
	int64_t since_ns, took_ns;	/* when the command or reading under
					 * way began; how long all took */
	bool replace;			/* the whole map in one command */
	bool settling;
	bool unmeasured;
	enum apply_level proof;
	char epoch[DRV_NAME_MAX];
	bool restarted;			/* since the check */
	int n_before;			/* the map at the check */
	struct optics_xc *before;
	struct ring_programs dark;		/* no program at all */
	/* undo */
	unsigned char *tries;		/* [w->n_steps] */
	int rounds, n_unread;
	bool confirmed, restored;
};

struct change {
	struct apply *a;
	struct plan *plan;
	struct devset *set, *before;
	struct store_journal journal;
	apply_event_cb on_event;
	apply_done_cb on_done;
	void *arg;
	char peer[APPLY_PEER_MAX];
	bool restores;
	enum phase phase;
	int n_runs;
	struct run *runs;
	int first, end;			/* runs in scope: a stage, or all */
	bool whole;			/* all stages are in scope */
	int waiting;			/* operations the phase waits for */
	bool cancel;
	int rc;				/* the first failure */
	struct err err;
	int settle_rounds;
	int n_stage_adds, n_stragglers;	/* of the stage in scope */
	bool stop;			/* under the gate: nothing is undone */
	bool must;			/* as asked for */
	struct apply_question question;	/* to hosts; paths are owned */
	int64_t began_ns, lit_ns;	/* of the stage in scope: its first
					 * command, and that all is made */
	int undo_at;
	int n_left;			/* circuits that undo could not move */
	struct buf left;		/* their names */
	struct apply_result res;
	int64_t started_ns;
	int done, total;
};

/* The change fails with this, if it has not failed yet. */
void change_fail(struct change *c, int rc, const struct err *err);
void change_event(struct change *c, const struct device *d, bool is_problem,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* A device's batch is under way. */
void change_progress(struct change *c, const struct device *d,
		     const struct drv_event *ev);
/* Ends the change with what is in c->res.verdict, c->rc and c->err. */
void change_end(struct change *c);
/* The engine is closed in the middle: light and journal stay. */
void change_abandon(struct change *c);

/* The change goes on with this phase, unless the engine is being closed. */
void change_enter(struct change *c, enum phase phase);
const char *change_phase_name(enum phase phase);
/* One of the operations that the phase waits for has been answered; after the
 * last one the next phase begins. */
void change_op_done(struct change *c);
void change_op_failed(struct run *r, int rc, const struct err *err);

/* Steps that are `op` to the run's stage. */
int run_count(const struct run *r, enum store_op op);

/* ---- the phases ---------------------------------------------------------- */

/* Durable before anything is sent; nothing to do ends the change. */
void record_prepare(struct change *c);
/* True now; what is to be repaired is put on the list with it. */
void record_commit(struct change *c);
/* Under the gate, where the fabric says that somebody is to look at it: the
 * journal stays open and explains every circuit. */
void record_stop(struct change *c);

void check_begin(struct run *r);
/* Once all is read: does the power suit the receivers? */
int check_power(struct change *c, struct err *err);
void send_begin(struct run *r);
void proof_read(struct run *r);
void proof_settle(struct change *c);
/* The phase after a reading that was the second. */
enum phase proof_next(struct change *c);
/* A question to hosts about these arcs, which are taken over. */
int question_set(struct change *c, struct plan_arc *arcs, int n,
		 void (*done)(struct apply_question *q), struct err *err);
void drain_begin(struct change *c);
void prove_begin(struct change *c);
/* The phase after all that could be asked. */
enum phase prove_next(struct change *c);

/* Whether the change goes on without one more circuit of the stage in scope:
 * if so the circuit is left to be repaired, else err is what stops it. layer:
 * the one that it failed although it was made, or 0. */
bool gate_pass(struct run *r, int step, enum apply_level layer,
	       const struct err *err);
/* Puts the circuits that the change was carried out without on the list. */
int gate_record(struct change *c, int *n, struct err *err);

/* Narrows the scope to the stage that begins at run `first`. */
void change_scope(struct change *c, int first);

/* Takes back everything that was sent; ends in change_end(). */
void undo_begin(struct change *c);

/* ---- recovering ---------------------------------------------------------- */

struct recovery;
void recovery_abandon(struct recovery *r);

/* ---- the base for planning (base.c) -------------------------------------- */

struct base;
void base_free(struct base *b);
/* The device in the present set that m means, NULL when none does: one of
 * another fabric is the same one only if its session is. */
const struct device *base_device(const struct apply *a,
				 const struct model_device *m);

/* ---- the engine ---------------------------------------------------------- */

struct apply {
	uv_loop_t *loop;
	struct store *store;
	struct devset *set;		/* NULL: no fabric yet */
	struct device *devices;		/* all with a handle, any set */
	int n_devices;
	uv_timer_t timer;		/* of the change or the recovery */
	void (*on_timer)(void *arg);
	void *timer_arg;
	struct change *change;		/* under way, or NULL */
	struct recovery *recovery;
	struct care *care;		/* under way, or NULL */
	struct store_journal *open;	/* open changes, newest first */
	int n_open;
	struct timings *timings[TIMING_KINDS];
	struct base *base;		/* memory of the last plan base */
	apply_news_cb news;		/* may be NULL */
	void *news_arg;
	apply_foreign_cb foreign;	/* may be NULL */
	void *foreign_arg;
	enum store_foreign_how how;	/* what the present readings are for */
	void (*before_command)(void *arg);	/* or NULL */
	void *before_arg;
	struct apply_hosts hosts;		/* zero: nobody can be asked */
	bool closing, timer_closed;
	void (*closed_cb)(void *arg);
	void *closed_arg;
};

/* Calls fn later, once. One caller at a time: change or recovery. */
void apply_later(struct apply *a, int64_t after_us, void (*fn)(void *arg),
		 void *arg);
/* Takes the open changes from the store again and assesses all devices. */
int apply_refresh(struct apply *a, struct err *err);
/* Writes readings to the store; a failure is logged. */
void apply_save_readings(struct apply *a);
/* Puts a set in the place of the present one, which is freed. */
void apply_use(struct apply *a, struct devset *set);
/* Called when a device's handle is gone. */
void apply_device_closed(struct apply *a);
/* Journals that explain light that is not as intended: the change under way
 * and those open. NULL after the last. */
const struct store_journal *apply_journal(const struct apply *a, int i);

#endif
