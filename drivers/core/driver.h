/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver contract.
 *
 * A driver speaks one device dialect and decides nothing: displacing circuits,
 * retrying and rolling back are the business of controller/apply.
 *
 * Evidence is always kept apart: a command the device acknowledged is not a
 * map that was read back, and neither is light that was measured. "Unknown"
 * is a first-class outcome: after a time-out or a lost session the caller
 * must take a snapshot before it acts on those items again.
 *
 * Who calls which callback, when, and what may be called from it:
 *
 * - Everything happens on the thread that runs the uv_loop_t given to
 *   drv_open(): calls come from there, and callbacks go there. A driver starts
 *   no threads and never blocks, so a handle needs no lock.
 * - A handle runs one operation (snapshot, submit, port_set, recover) at a time.
 *   To begin one while another runs, or after drv_close(), is a bug of the
 *   caller (assertion).
 * - drv_snapshot_cb and drv_submit_cb: exactly once for each operation begun,
 *   from a later turn of the loop, never from inside the call that began it. The
 *   handle is idle again by then: from inside, the next operation may begin,
 *   and drv_close() may be called. Where drv_port_set() or drv_recover() return
 *   an error, nothing was begun and nothing is called.
 * - drv_event_fn: any number of times between open and close, with or without
 *   an operation under way, never from inside a call. It must not call the
 *   driver; a caller that wants to read the device does so from a later turn.
 * - drv_trace_fn: from the loop while requests go out and replies come in; for
 *   drv_explain(), from inside that call. It must not call the driver.
 * - drv_cancel(): calls nothing itself. The submit under way ends by its own
 *   drv_submit_cb, as soon as the device lets it, with WEFT_ECANCELED if
 *   anything was not sent, else with its true result. Without a submit under
 *   way it does nothing.
 * - drv_close(): may be called at any time, once. An operation under way is
 *   answered first, WEFT_ECANCELED, its items that were out DRV_UNKNOWN; no
 *   operation may begin from inside that callback. There are no events after
 *   drv_close(). drv_close_cb is the last of all, from a later turn; when it is
 *   called the handle is freed already.
 *
 * States use SONiC's words blocked | tuning | tuned | failed.
 */
#ifndef WEFT_DRIVERS_CORE_DRIVER_H
#define WEFT_DRIVERS_CORE_DRIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "drivers/optics/optics.h"
#include "lib/base/err.h"

#define DRV_ABI 2
#define DRV_NAME_MAX 64
#define DRV_TEXT_MAX 128

struct drv;	/* one open device; each driver embeds it as first member */

enum drv_kind { DRV_SPACE, DRV_RING };

/* How a device numbers its ports. */
enum drv_numbering { DRV_SPLIT, DRV_ANY_TO_ANY };

enum drv_persistence {
	DRV_PERSIST_UNKNOWN,
	DRV_PERSIST_DARK,	/* forgets its map on power loss */
	DRV_PERSIST_RESTORE,	/* restores a saved map */
	DRV_PERSIST_AUTOSAVE,	/* restores the last map */
};

enum drv_power { DRV_POWER_NONE, DRV_POWER_IN, DRV_POWER_OUT, DRV_POWER_BOTH };

/* What a device can do; valid after the first successful snapshot. */
struct drv_caps {
	enum drv_kind kind;
	enum drv_numbering numbering;
	int n_in, n_out;	 /* space: ports; ring: nodes, channels */
	bool atomic_replace;	 /* REPLACE changes the whole map at once */
	bool acks_silently;	 /* a set command answers nothing */
	int max_batch;		 /* items a batch may hold, 0: no limit */
	enum drv_persistence persistence;
	enum drv_power power;
	int64_t min_gap_us;	 /* pacing kept between commands */
	int64_t typ_switch_us;	 /* typical time to move light */
	int64_t settle_us;	 /* wait before a read-back means anything */
	uint32_t max_steps;	 /* ring: program steps it stores */
	uint32_t max_tunes;	 /* ring: settings of one program */
	uint64_t memory;	 /* ring: bytes of packed programs, 0: no
				  * limit */
	int max_programs;	 /* ring: 0: no limit */
	bool overlap;		 /* ring: sets channels for later steps while
				  * others carry data */
	bool reloads;		 /* ring: submitting the programs it runs brings
				  * back settings that were lost, and touches
				  * no other */
};

struct drv_option {
	const char *key, *value;
};

/* How to reach a device. Strings are copied by open(). */
struct drv_config {
	const char *name;	/* the fabric's name for it */
	const char *address;	/* "HOST:PORT" ("" for sim) */
	int n_in, n_out;	/* what the fabric says; checked by snapshot */
	bool any_to_any;
	int ring_fibres;	/* ring: fibres per direction */
	int64_t timeout_ms;	/* for one exchange; 0: the driver's default */
	uint64_t fence;		/* epoch of the writer, stale ones are refused
				 * where the device reports it */
	const struct drv_option *options;
	int n_options;
};

/* One option a driver accepts; an unknown one is refused by open(). */
struct drv_option_spec {
	const char *key;	/* NULL ends the table */
	const char *help;
	const char *def;
};

enum drv_state { DRV_BLOCKED, DRV_TUNING, DRV_TUNED, DRV_FAILED };

struct drv_xc {
	struct optics_xc xc;
	enum drv_state state;
	char owner[DRV_NAME_MAX];	/* "" when the device knows none */
	bool has_loss;
	int32_t loss_mdb;		/* of this light path, as the device
					 * measures it, or its monitors */
	int32_t loss_error_mdb;		/* it may be so much more or less;
					 * 0: the device does not say */
	bool no_signal;			/* tuned, and a monitor at either of its ports sees no
					 * light */
	bool has_factory_loss;
	int32_t factory_loss_mdb;	/* as its maker measured it */
};

struct drv_port {
	bool is_out;
	int index;
	bool enabled, failed;
	bool has_power;
	int32_t power_mdbm;
	bool has_moves;
	int64_t moves;		/* a robot's, of this port so far: its wear */
	bool worn;		/* so many that it is moved no more */
};

/* What a device says it holds. */
struct drv_snapshot {
	char identity[DRV_TEXT_MAX];	/* vendor, model, serial, firmware */
	char epoch[DRV_NAME_MAX];	/* changes when the device restarted,
					 * "" when it reports none */
	struct drv_caps caps;
	int n_xcs;
	struct drv_xc *xcs;		/* sorted by in, out */
	bool late;			/* moves that it was sent before may still be
					 * made: what it does not list may yet come */
	int n_ports;
	struct drv_port *ports;		/* those not plainly enabled, or with
					 * power when asked for */
	struct ring_programs programs;	/* ring: as read back */
	int n_unlocked;			/* ring: settings of active programs
					 * whose resonators are not locked */
	char lock_detail[DRV_TEXT_MAX];	/* ring: the first of them, as text */
	int n_dead;			/* ring: parts that failed, in use or */
	struct ring_fault *dead;	/* not; sorted, none twice */
	int n_lost;			/* ring: resonators that programs use */
	struct ring_fault *lost;	/* and that hold no wave, likewise; a
					 * device may not report all */
	char alarm[DRV_TEXT_MAX];	/* what is wrong with all of it, in
					 * words, or "" */
};

void drv_snapshot_fini(struct drv_snapshot *s);

enum drv_op { DRV_ADD, DRV_DEL };

/* SAFE: an add on a busy port fails. UPDATE: it takes the port over.
 * REPLACE: the items (all DRV_ADD) become the whole map. An add of a circuit
 * that is listed and BLOCKED brings it to light. */
enum drv_mode { DRV_SAFE, DRV_UPDATE, DRV_REPLACE };

struct drv_item {
	enum drv_op op;
	struct optics_xc xc;
};

struct drv_batch {
	enum drv_mode mode;
	int n_items;
	const struct drv_item *items;		/* space; order is kept */
	const struct ring_programs *programs;	/* ring: become all that it
						 * runs; those it runs already
						 * are not touched */
};

/* FAILED: the device refused and the item is as before. UNKNOWN: only the
 * next snapshot can show. SKIPPED: never sent. */
enum drv_result { DRV_DONE, DRV_REFUSED, DRV_UNKNOWN, DRV_SKIPPED };

enum drv_evidence { DRV_SENT, DRV_ACKED, DRV_READ_BACK, DRV_MEASURED };

enum drv_class_of_error {
	DRV_ERR_NONE,
	DRV_ERR_CONFIGURATION,	/* the device finds the request wrong */
	DRV_ERR_STATE,		/* busy, locked, failed port */
	DRV_ERR_TRAFFIC,	/* light or loss not as it should be */
	DRV_ERR_TRANSPORT,	/* session, time-out, garbage */
};

struct drv_outcome {
	enum drv_result result;
	enum drv_evidence evidence;
	enum drv_class_of_error error;
	char code[16];			/* the device's own code, or "" */
	char text[DRV_TEXT_MAX];	/* the device's own words, or ours */
};

/* rc 0 or a negative enum weft_err with err filled. The snapshot is the
 * callback's to read; it is freed afterwards unless moved out (zero it). */
typedef void (*drv_snapshot_cb)(struct drv *dev, int rc, struct drv_snapshot *snap,
				const struct err *err, void *arg);

/* outcomes[i] belongs to items[i] (one outcome for a program). rc is 0 only
 * if all are DRV_DONE. */
typedef void (*drv_submit_cb)(struct drv *dev, int rc, int n, const struct drv_outcome *outcomes,
			      const struct err *err, void *arg);

typedef void (*drv_close_cb)(void *arg);

/* What people ask of a device beside its light, a bit each. HOMING: a robot
 * finds its place again, and goes on. RELOCK: resonators that hold no wave
 * search again; those that do are left alone. CLEAR: errors that wait in the
 * device are read and forgotten. */
enum drv_recovery { DRV_HOMING = 1, DRV_RELOCK = 2, DRV_CLEAR = 4 };

struct drv_port_id {
	bool is_out;
	int index;
};

/* One exact command as it would go over the wire, for dry runs and audit. */
typedef void (*drv_trace_fn)(const char *device, const char *line, bool is_reply, void *arg);

/* What a device, or the kernel, says of its own accord. */
enum drv_event_kind {
	DRV_EVENT_NOTE,		/* words, nothing follows from them */
	DRV_EVENT_CHANGED,	/* circuits may not be as last read */
	DRV_EVENT_ALARM,	/* a port, or the device, is not well */
	DRV_EVENT_PROGRESS,	/* of the operation under way */
};

struct drv_event {
	enum drv_event_kind kind;
	bool has_port, is_out;
	int index;		/* of the port, when has_port */
	const struct ring_fault *part;	/* of a ring, that the text is about; NULL: none */
	int done, total;	/* PROGRESS: commands of the batch that are
				 * over, of how many */
	int64_t eta_ms;		/* PROGRESS: the rest takes about so long;
				 * -1: not known */
	const char *text;	/* one line, the device's words if it has any;
				 * lives during the call */
};

/* From the loop, at any time between open and close, also while an operation
 * runs; never from inside a call. It must not call the driver. Drivers whose
 * devices say nothing never call it. */
typedef void (*drv_event_fn)(struct drv *dev, const struct drv_event *ev, void *arg);

struct drv_class {
	const char *name;	/* "polatis-scpi" */
	const char *summary;	/* one line for `weft device drivers` */
	uint32_t abi;		/* DRV_ABI */
	enum drv_kind kind;
	const struct drv_option_spec *options;

	/* For base_open(), see driver_base.h: bytes of the driver's own
	 * struct, its operations, and what distinguishes this class from others of
	 * the same operations (a vendor's table), or NULL. */
	size_t size;
	const struct base_ops *ops;
	const void *dialect;

	/* Makes a handle; checks options and address text, connects nothing
	 * yet (the first operation does). WEFT_EINVAL names the option. */
	int (*open)(const struct drv_class *cls, uv_loop_t *loop, const struct drv_config *cfg,
		    struct drv **out, struct err *err);

	/* Ends the session, leaves all light as it is (fail static), frees
	 * the handle, then calls cb. An operation under way is answered
	 * first with WEFT_ECANCELED (unknown items). */
	void (*close)(struct drv *dev, drv_close_cb cb, void *arg);

	/* Reads identity, caps, the whole map or program, port states.
	 * WEFT_EUNAVAIL, WEFT_ETIMEOUT, WEFT_EDEVICE, WEFT_EVERIFY (another
	 * size than the fabric says). Also clears "unknown". */
	void (*snapshot)(struct drv *dev, drv_snapshot_cb cb, void *arg);

	/* Sends the items in order, at most caps.max_batch. Stops at the
	 * first item that is refused or unknown: the rest are SKIPPED. The
	 * batch must live until cb. */
	void (*submit)(struct drv *dev, const struct drv_batch *batch, drv_submit_cb cb, void *arg);

	/* The commands submit() would send, one trace call a line, without a
	 * connection; caps default to the fabric's sizes. */
	void (*explain)(struct drv *dev, const struct drv_batch *batch, drv_trace_fn fn, void *arg);

	/* The rest may be missing: the device, or what is known of its
	 * dialect, cannot do it. */

	/* Enables or disables a port, then reads its state back; one outcome.
	 * What becomes of a circuit on it is the device's: read. */
	void (*port_set)(struct drv *dev, struct drv_port_id port, bool enable,
			 drv_submit_cb cb, void *arg);
	/* What recover() knows, enum drv_recovery. */
	unsigned recoveries;
	/* One outcome; its text says what was found. DONE with class TRAFFIC:
	 * tried, and not all is well. */
	void (*recover)(struct drv *dev, enum drv_recovery what, drv_submit_cb cb, void *arg);
	/* Of the submit under way nothing more is sent, and what waits in the
	 * device's queue is withdrawn where the dialect can. It ends as soon
	 * as it can, WEFT_ECANCELED if anything was not sent. */
	void (*cancel)(struct drv *dev);
};

/* What was asked of a device since it was opened. */
enum drv_work { DRV_WORK_SNAPSHOT, DRV_WORK_SUBMIT, DRV_N_WORKS };

struct drv_use {
	int64_t n, failed;	/* operations that have ended */
	int64_t ns;		/* how long they took in all */
};

/* The common head of every handle; private to drivers. */
struct drv {
	const struct drv_class *cls;
	uv_loop_t *loop;
	char name[DRV_NAME_MAX];
	drv_trace_fn trace;	/* may be NULL */
	void *trace_arg;
	drv_event_fn event;	/* may be NULL */
	void *event_arg;
	bool busy;
	struct drv_use use[DRV_N_WORKS];
};

/* Class by name, or NULL. */
const struct drv_class *drv_find(const char *name);

/* All classes, NULL-terminated, sorted by name. */
const struct drv_class *const *drv_all(void);

/* Finds the class and opens. WEFT_ENOTFOUND lists the known drivers. */
int drv_open(uv_loop_t *loop, const char *driver, const struct drv_config *cfg,
	     struct drv **out, struct err *err);

/* The class's functions of the same names. */
void drv_close(struct drv *dev, drv_close_cb cb, void *arg);
void drv_snapshot(struct drv *dev, drv_snapshot_cb cb, void *arg);
void drv_submit(struct drv *dev, const struct drv_batch *batch, drv_submit_cb cb, void *arg);
/* WEFT_EUNSUPPORTED when the driver cannot, WEFT_EINVAL when there is no such
 * port; then cb is not called. */
int drv_port_set(struct drv *dev, struct drv_port_id port, bool enable,
		 drv_submit_cb cb, void *arg, struct err *err);
int drv_recover(struct drv *dev, enum drv_recovery what, drv_submit_cb cb,
		void *arg, struct err *err);
/* Does nothing when nothing runs, or what runs cannot be cancelled. */
void drv_cancel(struct drv *dev);
void drv_explain(struct drv *dev, const struct drv_batch *batch, drv_trace_fn fn, void *arg);
/* Every line sent and received from now on goes to fn as well. */
void drv_set_trace(struct drv *dev, drv_trace_fn fn, void *arg);
/* What the device says from now on goes to fn. */
void drv_set_events(struct drv *dev, drv_event_fn fn, void *arg);

/* "done", "read-back", "tuned", "changed", ... */
const char *drv_result_name(enum drv_result r);
const char *drv_evidence_name(enum drv_evidence e);
const char *drv_state_name(enum drv_state s);
const char *drv_event_name(enum drv_event_kind k);
/* "homing", "relock", "clear" */
const char *drv_recovery_name(enum drv_recovery r);

#endif
