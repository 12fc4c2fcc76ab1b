/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change with a memory: takes a plan to the devices and verifies it, or takes
 * it back. Everything runs on the loop; one change at a time.
 *
 *   prepare (journal durable, with undo) -> per stage: re-read and compare
 *   with what the plan was made from -> drain -> deletes -> adds -> read back
 *   -> settle -> read again -> verify -> next stage -> commit, or undo in
 *   reverse.
 *
 * Nothing is sent for an empty plan. Unknown outcomes are re-read before
 * anything else is sent. Loss of this process changes no light.
 *
 * Callbacks. All are called in the thread that runs the loop given to
 * apply_new(). Those that answer a call (a `done`, apply_done_cb,
 * apply_maintenance_cb, apply_free()'s) come exactly once, from a later
 * iteration of the loop and never from inside the call, but for the cases named
 * at each function; not at all if the call itself returned an error. When the
 * engine is freed meanwhile they come with WEFT_ECANCELED before apply_free()'s
 * own, and may then call nothing of this room.
 *
 *   callback                 comes                         may call here
 *   done of a reading,       when it is over; the engine   everything
 *   apply_done_cb,           is idle again as far as that
 *   apply_maintenance_cb,    goes
 *   done of apply_recover
 *   apply_event_cb           within a phase of a change,   what only tells (const
 *                            any number of times           struct apply *),
 *                                                          apply_cancel, apply_free
 *   apply_device_event_cb,   while a device's word or      what only tells
 *   apply_external_cb        reading is taken in
 *   before_command           before each command           nothing
 *   apply_request.ready      within the phase "wait"       what only tells,
 *                                                          apply_go_on,
 *                                                          apply_take_back,
 *                                                          apply_cancel, apply_free
 *   fn of apply_on_open      while an open change is       what only tells,
 *                            looked at                     apply_set_outcome
 *   apply_hosts.verify,      within a phase; *_verified    question->progress and
 *   .drain, .withdraw,       before the next stage,        ->done, at once or later;
 *   .report_verified         withdraw within apply_free()  what only tells
 *   question->progress,      when the asked side calls     (this room's own)
 *   question->done           them
 */
#ifndef WEFT_APPLY_APPLY_H
#define WEFT_APPLY_APPLY_H

#include <uv.h>

#include "controller/dry_run/dry_run.h"
#include "controller/model/model.h"
#include "controller/plan/plan.h"
#include "controller/store/store.h"
#include "drivers/core/driver.h"

struct apply;

/* How far a circuit is verified; of a device the least of its circuits. Each
 * level includes those before it. */
enum apply_level {
	APPLY_UNVERIFIED,
	APPLY_ACKED,		/* the device accepted the command */
	APPLY_READ_BACK,	/* it lists the circuit */
	APPLY_SETTLED,		/* it lists it again after its settling time */
	APPLY_MEASURED,		/* it measures no loss beyond the limit */
	APPLY_NEIGHBOUR,	/* the receiving host hears the right sender */
	APPLY_ERROR_FREE,	/* and counts no errors */
};

/* What became of a change. Maps to exit codes 0, 0, 1, 3, 4. */
enum apply_verdict {
	APPLY_NOTHING_TO_DO,
	APPLY_COMMITTED,
	APPLY_REFUSED,		/* nothing was sent */
	APPLY_ROLLED_BACK,	/* all is as before, read back twice */
	APPLY_STUCK,		/* not fully rolled back, or not recorded: the
				 * journal explains every circuit */
};

/* "committed", "rolled back", ... */
const char *apply_verdict_name(enum apply_verdict v);

/* One thing that happened; strings live during the callback. */
struct apply_event {
	const char *phase;	/* prepare, check, wait, drain, delete, add,
				 * load, read back, settle, read again,
				 * verify, commit, undo, ... */
	const char *device;	/* "" for the change as a whole */
	const char *text;	/* one sentence */
	bool is_problem;
	int done, total;	/* steps over all devices; done <= total */
	int64_t eta_ns;		/* the device's batch still takes about so
				 * long; 0: unknown */
};

/* A circuit that a device did not make or delete. */
struct apply_failed {
	char name[CONF_MAX_NAME + 49];	/* "ocs0: in 3 -> out 4" */
	char why[96];
};

#define APPLY_MAX_FAILED 16

struct apply_result {
	enum apply_verdict verdict;
	int64_t change;		/* id in history, 0 when nothing was to do */
	int64_t generation;	/* after */
	enum apply_level level; /* least over all devices changed */
	int64_t took_ns;	/* from apply_start() to the verdict */
	int n_left;		/* circuits that it was committed without, to be repaired */
	int n_failed;		/* the first ones, whatever the verdict;
				 * <= APPLY_MAX_FAILED */
	struct apply_failed failed[APPLY_MAX_FAILED];
};

typedef void (*apply_event_cb)(const struct apply_event *ev, void *arg);
/* rc 0 or the error that stopped the change (err names device and circuit;
 * the verdict says what is left on the devices). After the last event; another
 * change may be started here. res and err live during the call. */
typedef void (*apply_done_cb)(int rc, const struct apply_result *res,
			      const struct err *err, void *arg);

/* What is known of one device now. Strings and snapshot are the room's. */
/* What others changed on a device while a change of weft's own ran. */
struct apply_disturbance {
	int n;			/* circuits and programs since then, 0: none */
	int64_t since_ns;	/* wall clock; of the first */
	int64_t last_ns;	/* clk_boot_ns() of the last */
	char who[STORE_NOTE_MAX];	/* of the last, as the device tells */
};

struct apply_device {
	const char *name, *driver;
	uint64_t version;		/* not 0, and another one whenever more is
					 * known of it or of its fabric */
	bool elsewhere;			/* another weftd leads it: nothing is read
					 * or counted of it here */
	bool reachable;			/* the last reading succeeded */
	bool ever_read;			/* by this or an earlier process */
	char problem[DRV_TEXT_MAX];	/* why not reachable, or a warning; "":
					 * none */
	int64_t read_at_ns;		/* wall clock of the last reading */
	bool restarted;			/* epoch changed since the one before */
	enum apply_level level;		/* of its intended circuits */
	struct drv_snapshot snap;	/* last reading (zero if never) */
	/* Circuits, a ring's programs counting as one, by the last reading: */
	int n_missing, n_unexpected;	/* against intent; one that is listed
					 * and blocked is missing */
	int n_pending;			/* explained by an open change, and in
					 * neither of the above */
	int n_dark;			/* intended and listed, and without
					 * light all the same */
	const struct store_light *intent;	/* committed; circuits sorted */
	const struct apply_circuit *circuits;	/* [intent->n_xcs] how each is */
	int n_bad_ports;		/* of snap.ports: failed, or disabled */
	struct drv_use use[DRV_N_WORKS];	/* of the present session */
	int n_lossy;			/* intended and lit, and they lose too much, or more
					 * than they did; the first as a text, "": none */
	char lossy[DRV_TEXT_MAX];
	struct apply_disturbance disturbed;
};

#define APPLY_DISTURBED_NS (INT64_C(900) * 1000000000)

/* That others were seen at it within the last quarter of an hour, while weft changed
 * it: another controller of the same device. now_ns: clk_boot_ns(). */
bool apply_is_disturbed(const struct apply_device *d, int64_t now_ns);

/* What a circuit's loss is measured by. */
struct apply_loss {
	int32_t limit_mdb;	/* the fabric's figure for the device, 0: none */
	bool has_good;
	int32_t good_mdb;	/* the lowest seen while all was well */
	bool over;		/* above the limit, less the meter's error */
	bool worse;		/* more than half a dB above good_mdb */
};

/* An engine over an open store, which must outlive it. No device is touched. */
int apply_new(uv_loop_t *loop, struct store *store, struct apply **out, struct err *err);
/* fn is called right before each command to a device, in a reading too. Where
 * none may be sent any more it ends the process instead of returning (a leader
 * that lost its lease). NULL: none. */
void apply_before_command(struct apply *a, void (*fn)(void *arg), void *arg);
/*
 * Only devices of these failure domains (copied) are led here, in every fabric set from now on;
 * without this call all are. The others are elsewhere: they are never read or sent
 * anything, their intent is kept, and plans take them to hold it. Before the first fabric.
 */
void apply_lead_domains(struct apply *a, const char *const *domains, int n);
/* Goes on with what has waited until others have the store (store_published). */
void apply_published(struct apply *a);
/* Makes the store durable as it is now, on a worker (store_sync). */
void apply_sync_later(struct apply *a);

/* Makes the store's copy (store_copy) on a worker; done is called unless the engine is closed
 * meanwhile, which waits for the worker. One at a time. */
void apply_copy_store(struct apply *a, void (*done)(int rc, const struct err *err, void *arg),
		      void *arg);
/* How long something recently took to come back. */
struct apply_timing {
	int n;			/* times kept, <= STORE_TIMINGS_MAX */
	int64_t median_ns, max_ns;	/* expected; how long to wait */
};

/* Keeps one time more; it reaches the store with the next readings. */
void apply_learn(struct apply *a, enum store_timing_kind kind, const char *name, int64_t ns);
/* False: nothing is known of it. O(log names). */
bool apply_learned(const struct apply *a, enum store_timing_kind kind,
		   const char *name, struct apply_timing *out);

/* ---- hosts that are asked ---- */

/* A lightpath from one host port to another, and what hosts answer of it. */
struct apply_path {
	struct plan_arc arc;
	/* answers: */
	enum apply_level level;	/* reached; APPLY_UNVERIFIED: no host could be
				 * asked */
	enum apply_level failed;	/* the layer that it failed, or 0 */
	int64_t up_ns;		/* clk_now_ns of link and neighbour, 0: not
				 * seen */
	char why[STORE_NOTE_MAX];	/* of a failure, or why not asked */
};

/* What is asked of hosts; all of it is apply's and lives until done, or until
 * apply_hosts.withdraw. */
struct apply_question {
	const struct plan *plan;
	int stage;
	enum apply_level want;	/* as far as the fabric wants it verified */
	int n;
	struct apply_path *paths;
	int64_t began_ns;	/* clk_now_ns of the stage's first command */
	int64_t lit_ns;		/* when devices had made it all */
	/* One sentence of how it goes (NULL: none); true: the change is being
	 * stopped, answer now with what is known. */
	bool (*progress)(const struct apply_question *q, const char *text);
	void (*done)(struct apply_question *q);	/* once, also at once */
	void *arg;
};

/*
 * Asks hosts, as this room knows no network. All but withdraw may be NULL.
 * verify is called once each stage has settled, whatever is wanted: it may wait
 * only for what question->want asks. drain is called before a stage's first
 * delete with the paths that go: each that still carries traffic in the end is
 * failed. report_verified tells what was accepted, before the next stage.
 * withdraw: the question is forgotten, done must not be called any more.
 */
struct apply_hosts {
	void (*verify)(struct apply_question *q, void *arg);
	void (*drain)(struct apply_question *q, void *arg);
	void (*report_verified)(const struct apply_question *q, void *arg);
	void (*withdraw)(void *arg);
	void *arg;
};

/* From now on these are asked; copied. Not while a change runs. */
void apply_set_hosts(struct apply *a, const struct apply_hosts *hosts);

/* Closes all devices (light stays), then calls done. What runs is given up:
 * its callbacks come first. a must not be used after this call; once only. */
void apply_free(struct apply *a, void (*done)(void *), void *arg);

/* Makes `fabric` (taken over, also on error) the one whose devices are open:
 * opens what is new, closes what is gone, keeps sessions that are the same.
 * WEFT_EINVAL for an unknown driver or option with the place in the file;
 * WEFT_ESTALE while a change runs. On failure the old fabric stays. */
int apply_set_fabric(struct apply *a, struct model_fabric *fabric, struct err *err);
const struct model_fabric *apply_fabric(const struct apply *a);
/* Journals that explain light that is not as intended: the change under way
 * and those open, the newest first. NULL after the last. Valid until the loop runs. */
const struct store_journal *apply_journal(const struct apply *a, int i);
/* Grows whenever what apply_fabric and apply_devices say may have changed; what was
 * derived from them at the same number still holds. O(1). */
uint64_t apply_version(const struct apply *a);
/* Takes the open changes from the store again, as where another process writes it, and assesses
 * all devices. On an error those known stay. */
int apply_refresh(struct apply *a, struct err *err);

/* Snapshots all devices (one after the other per device, devices in
 * parallel), stores what was observed, then done(rc): 0 when every device
 * answered, else the first error; apply_devices tells each. Allowed at any time,
 * also while a change runs. */
void apply_read(struct apply *a, void (*done)(int rc, const struct err *err, void *arg), void *arg);

/* The same for some of the devices, by name; those that the fabric has not
 * (any more) are left out. */
void apply_read_some(struct apply *a, const char *const *names, int n,
		     void (*done)(int rc, const struct err *err, void *arg),
		     void *arg);

/* What devices report of their own accord, all but the progress of changes.
 * ev lives during the call. NULL: no more. */
typedef void (*apply_device_event_cb)(const char *device, const struct drv_event *ev, void *arg);
void apply_on_device_event(struct apply *a, apply_device_event_cb fn, void *arg);

/* Changes that weft did not make, of one device: those just noticed (outcome
 * open) and those that are over. They are in the store already. */
typedef void (*apply_external_cb)(const struct store_external_change *v, int n, void *arg);
void apply_on_external(struct apply *a, apply_external_cb fn, void *arg);
/* What the next readings are for: goes to the records of what they find. */
void apply_reading_for(struct apply *a, enum store_external_how how);

/* One per device of the fabric, in its order. Valid until the loop runs or
 * the fabric changes. */
const struct apply_device *apply_devices(const struct apply *a, int *n);
/* False of a device that no reading can tell of here: a panel that is moved by hand, or one
 * that another weftd leads. */
bool apply_is_read(const struct apply_device *d);

/* How the light of a circuit is, by all that is known of it. */
enum apply_health {
	APPLY_UNKNOWN,		/* its device was never read */
	APPLY_UNEXPECTED,	/* listed, and not intended */
	APPLY_MISSING,		/* its device does not list it, or calls it blocked */
	APPLY_PENDING,		/* one of both, and an open change explains that */
	APPLY_DARK,		/* listed, and without light: it failed, a port of it failed or is
				 * disabled, monitors see no power, or its host hears nothing */
	APPLY_LOSSY,		/* lit, and it loses too much, or more than it did */
	APPLY_LIT,
};

struct apply_circuit {
	enum apply_health health;
	enum apply_level level;	/* how far it is proven now, whatever others of its device are:
				 * UNVERIFIED without an answer or without light, READ_BACK at
				 * most since it was last so */
	int64_t since_ns;	/* wall clock: that it is known to be so, to this process or
				 * one before. 0: not intended, or never read */
};

/* A circuit of apply_devices(a)[device]. Each who tells of light asks this, or what that device
 * has of its intent. O(log circuits), O(steps of open changes) more for one that is not intended.
 */
struct apply_circuit apply_circuit(const struct apply *a, int device, struct optics_xc xc);
/* How far a job's program on apply_devices(a)[device] is proven now, whatever others of the ring
 * are; UNVERIFIED without an answer, unless it is loaded and its resonators hold their waves.
 * O(log programs). */
enum apply_level apply_program_level(const struct apply *a, int device, const char *job);
/* What hosts say of a device's circuits: those of which nothing arrives, or what another
 * sends; whole new, sorted, copied. Circuits that are not intended are of no account. False:
 * it is known already. O(circuits). */
bool apply_set_silent(struct apply *a, int device, const struct optics_xc *xcs, int n);

/* For a circuit of apply_devices(a)[device].snap. O(log circuits). */
void apply_loss(const struct apply *a, int device, const struct drv_xc *x, struct apply_loss *out);

/* Measured power is planned with while it is no older. */
#define APPLY_POWER_AGE_NS ((int64_t)300 * 1000000000)

/* A base for planning `fabric` (which may be another than the present) from
 * intent and last readings. Valid until the next call or change of state. */
void apply_plan_base(struct apply *a, const struct model_fabric *fabric, enum plan_mode mode,
		     struct plan_base *out);

/* What carrying out a plan made from apply_plan_base would send; fn is called
 * inside this call, and may call nothing of this room. Devices that
 * are not open are opened for the time, without a connection. The errors of
 * dry_run_open and dry_run_explain. */
int apply_explain(struct apply *a, const struct plan *p, dry_run_fn fn, void *arg, struct err *err);

/* An operator's request to a device beside its circuits. */
struct apply_maintenance {
	enum drv_recovery recovery;	/* 0: port is enabled or disabled */
	struct drv_port_id port;
	bool enable;
};

/* rc 0: done, and all is well. Otherwise err says what is not; outcome tells
 * what became of it in any case (SKIPPED: nothing was sent). Both live during
 * the call. */
typedef void (*apply_maintenance_cb)(int rc, const struct drv_outcome *outcome,
			      const struct err *err, void *arg);

/* WEFT_ENOTFOUND: no such device; WEFT_EUNSUPPORTED: its driver cannot;
 * WEFT_EUNAVAIL: another weftd leads it. */
int apply_maintenance_check(const struct apply *a, const char *device,
		     const struct apply_maintenance *what, struct err *err);
/* Reads the device, does it, reads again. Its commands and their answers go to
 * the audit trail. WEFT_ESTALE while a change runs, and none starts meanwhile;
 * relocking also wants the programs to be as intended. On an error here cb is
 * not called. */
int apply_maintain(struct apply *a, const char *device, const struct apply_maintenance *what,
		   apply_maintenance_cb cb, void *arg, struct err *err);

/* The change of which the store could not be told how it ended, or whose
 * process ended first, or 0: apply_recover() must come before another. */
int64_t apply_unresolved(const struct apply *a);

/* Resolves a change that is open and does not run, by reading the devices
 * first: all as before -> aborted; all as planned -> committed;
 * mixed -> stays open as "interrupted", every circuit explained, nothing
 * sent. apply_on_open and apply_resume may decide otherwise. done(rc, text): one sentence for log
 * and status; at once with WEFT_ESTALE while a change runs. */
void apply_recover(struct apply *a, void (*done)(int rc, const char *text, void *arg), void *arg);

/* Devices that the newest open change moves and that did not answer when they were last asked, or
 * may yet do what they were sent (drv_snapshot.late); names gets at most max of them, which are
 * valid until the loop runs. O(devices^2). */
int apply_hangs_on(const struct apply *a, const char **names, int max);
/* The next apply_recover(), which comes before the next request, also takes back what was half
 * done when a device was lost, or was being taken back already, if it reads all its devices. */
void apply_resume(struct apply *a);

/* What is to become of a change that its process did not end. */
enum apply_outcome {
	APPLY_BY_READING,	/* as the devices say */
	APPLY_COMMIT,		/* it happened; what differs is missing or unexpected then */
	APPLY_UNDO,		/* the devices led here are brought back to what the journal has
				 * as before. It ends rolled back, refused where nothing had been
				 * sent, or stuck */
};

/* fn is asked of each such change before anything is read, and apply_set_outcome() answers, at
 * once or later. NULL: APPLY_BY_READING of all. */
void apply_on_open(struct apply *a, void (*fn)(const struct store_change *ch, void *arg),
		   void *arg);
/* err: why it is undone (may be empty); or, with rc, why that is not known: the change stays as it
 * is then, and apply_recover() fails with that. Without effect when no fn has been asked. */
void apply_set_outcome(struct apply *a, enum apply_outcome outcome, int rc,
		       const struct err *err);

#define APPLY_PEER_MAX 280

/* What goes to history with a change. */
struct apply_request {
	struct change_order order;
	const char *peer;		/* the client as the transport knows it,
					 * for the audit trail, or NULL */
	bool ignore_traffic;		/* no operator is there to help: traffic
					 * that does not stop is reported, and
					 * stops nothing */
	bool restores;			/* brings back what others changed */
	/*
	 * Others carry out parts of the change at the same time: called with the arg of
	 * apply_start() whenever all steps here that come before `stage`, the next stage with steps
	 * for a device led here, are done and verified; before the first such stage as well (the
	 * journal is durable then and all devices were checked), and with plan->n_stages before
	 * the commit. The change waits then. Not called when there is nothing to do at all.
	 * NULL: nothing waits.
	 */
	void (*ready)(int stage, void *arg);
};

/* Runs a plan made from apply_plan_base. The plan and its fabric are taken
 * over (also on error); strings of req are copied. WEFT_ESTALE: another change
 * runs, or the plan's generation is not the present. */
int apply_start(struct apply *a, struct plan *plan, struct model_fabric *fabric,
		const struct apply_request *req, apply_event_cb on_event, apply_done_cb on_done,
		void *arg, struct err *err);

/* True while a change or maintenance runs, or apply_recover() reads. */
bool apply_busy(const struct apply *a);
/* The id of the change that runs; 0: none, or not in the journal yet. */
int64_t apply_running(const struct apply *a);

/* Asks the running change to stop after the present atomic step and to roll
 * back. Nothing happens if none runs, or it is being rolled back already. One that waits in
 * `ready` goes on waiting, and stops once it goes on, unless that is to the commit. */
void apply_cancel(struct apply *a);

/* A change that waits in `ready` goes on from a later iteration of the loop: with the stage, which
 * is checked again before, or with the commit. That can not be taken back any more. Nothing
 * happens if none waits. */
void apply_go_on(struct apply *a);
/* The running change fails with this, as if it had been cancelled, also while it waits; events come
 * within this call. Nothing happens if none runs, it has failed already, or it
 * commits. */
void apply_take_back(struct apply *a, int rc, const struct err *err);

#endif
