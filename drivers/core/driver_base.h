/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all drivers do alike: one operation at a time, begun from the loop,
 * answered exactly once, cancelled by close. Private to drivers.
 *
 * A driver embeds struct driver_base as its first member, gives its functions in
 * a struct base_ops, and makes its class by BASE_CLASS(). Every
 * operation begins in a later turn of the loop, so whatever the driver does
 * from there on is outside the caller's call.
 */
#ifndef WEFT_DRIVERS_CORE_DRIVER_BASE_H
#define WEFT_DRIVERS_CORE_DRIVER_BASE_H

#include "drivers/core/driver.h"
#include "drivers/core/tcp_session.h"
#include "lib/base/buf.h"

#define DRV_ADDRESS_MAX 256
#define DRV_MAX_PORTS 4096
/* So many different notes; one more says that there are others. */
#define DRV_MAX_NOTES 64

struct driver_base;

struct base_ops {
	/* For base_open(): what the session's dialect is, where the driver
	 * talks over TCP; base_open() sees to device, address and arg,
	 * which is the handle. No window is one question at a time, no
	 * time-out 5 s, and no `failed` is base_lost(). */
	const struct tcp_conf *session;
	/* Reads the options of a checked cfg into a handle that is zero but
	 * for its class, ops, name and sizes; conf, a copy of *session, may be
	 * changed. After a failure there is only fini. */
	int (*init)(struct driver_base *h, const struct drv_config *cfg,
		    struct tcp_conf *conf, struct err *err);
	/* Begins to read; ends in base_snapshot_done(). h->snap is empty. */
	void (*snapshot)(struct driver_base *h);
	/* Begins to send h->batch; ends in base_submit_done(). All of
	 * h->outcomes say SKIPPED; the driver marks an item UNKNOWN before
	 * it sends it and the true result when it knows, so that a close in
	 * between leaves true outcomes. */
	void (*submit)(struct driver_base *h);
	/* The same for h->port and h->enable, and for h->recovery, with one
	 * outcome; NULL when the class has none. */
	void (*port_set)(struct driver_base *h);
	void (*recover)(struct driver_base *h);
	/* What must be done while session and timer are still there; no
	 * operation is under way and none may call back any more. Ends in
	 * base_stopped(). NULL: nothing. */
	void (*stop)(struct driver_base *h);
	/* Frees what the driver's struct owns, not the struct; NULL:
	 * nothing. */
	void (*fini)(struct driver_base *h);
};

enum base_op {
	BASE_IDLE, BASE_SNAPSHOT, BASE_SUBMIT, BASE_PORT,
	BASE_RECOVER,
};

/* What every open device has; a driver's own struct begins with it. Drivers read
 * all of it, and write snap, outcomes (by base_mark()) and timer. */
struct driver_base {
	struct drv drv;
	const struct base_ops *ops;
	char address[DRV_ADDRESS_MAX];	/* "" where the driver needs none */
	int n_in, n_out, ring_fibres;	/* what the fabric says */
	bool any_to_any;
	int64_t timeout_ms;	/* as configured; 0: the driver's own */
	uint64_t fence;		/* epoch of the writer, as configured */
	struct tcp_session *session;	/* or NULL: none is needed */
	uv_timer_t timer;	/* what the driver waits for; data: h */

	/* The operation under way. One at a time: these are valid while op is
	 * not BASE_IDLE. */
	uv_timer_t tick;	/* the later turn of the loop, where it begins */
	enum base_op op;
	int64_t begun_ns;	/* monotonic */
	bool asked;		/* its first question is out, or was */
	bool closing;		/* base_close() was called: nothing new begins */
	drv_snapshot_cb snapshot_cb;	/* of BASE_SNAPSHOT */
	drv_submit_cb submit_cb;	/* of all others */
	void *arg;			/* of either */
	struct drv_snapshot snap;	/* what was read so far; the caller's
					 * when a snapshot ends well */
	const struct drv_batch *batch;	/* BASE_SUBMIT: borrowed until the end */
	struct drv_port_id port;	/* BASE_PORT; is_out only where the
					 * device has two sides */
	bool enable;			/* BASE_PORT */
	enum drv_recovery recovery;	/* BASE_RECOVER */
	bool cancelled;		/* the submit under way is to end soon */
	struct drv_outcome *outcomes;	/* true at every moment: see submit
					 * in base_ops */
	int n_outcomes;			/* items of a batch; else 1 */
	drv_close_cb close_cb;
	void *close_arg;
	uint64_t notes[DRV_MAX_NOTES];	/* hashes of what was said by base_note() */
	int n_notes;
};

/* Checks what every driver checks: sizes, lengths, option names. WEFT_EINVAL
 * names what is wrong. */
int base_check(const struct drv_class *cls, const struct drv_config *cfg, struct err *err);
/* What every class that rests on base_ops has alike, for its initialiser: `type`
 * is the driver's own struct (its first member a struct driver_base), operations
 * its base_ops. */
#define BASE_CLASS(type, operations) \
	.abi = DRV_ABI, .size = sizeof(type), .ops = (operations), \
	.open = base_open, .close = base_close, .snapshot = base_snapshot, \
	.submit = base_submit

/* For the option tables of classes whose devices may be reached by SSH: with these
 * base_open() makes the session one over SSH when `ssh` is yes. */
#define BASE_SSH_OPTIONS \
	{ "ssh", "reach the command line by SSH: yes or no", "no" }, \
	{ "user", "with ssh: whom to log in as", "" }, \
	{ "key", "with ssh: file of the private key", "" }, \
	{ "password_file", "with ssh: file of the password", "" }, \
	{ "known_hosts", "with ssh: file of the devices' public keys", \
	  "/etc/ssh/ssh_known_hosts" }

/* A class's open(): makes a zeroed struct of cls->size bytes, checks cfg, runs
 * ops.init, makes the session. After a failure nothing is left; else only
 * drv_close() ends it. WEFT_EINVAL, and what ops.init says. */
int base_open(const struct drv_class *cls, uv_loop_t *loop,
	      const struct drv_config *cfg, struct drv **out, struct err *err);
/* The class's functions of these names; BASE_CLASS() fills the first three in, a
 * driver that can do more adds the others. Each begins an operation in a later
 * turn of the loop, by the function of base_ops. */
void base_close(struct drv *dev, drv_close_cb cb, void *arg);
void base_snapshot(struct drv *dev, drv_snapshot_cb cb, void *arg);
void base_submit(struct drv *dev, const struct drv_batch *batch, drv_submit_cb cb, void *arg);
void base_port_set(struct drv *dev, struct drv_port_id port, bool enable,
		   drv_submit_cb cb, void *arg);
void base_recover(struct drv *dev, enum drv_recovery what, drv_submit_cb cb, void *arg);
/* Only says so: the driver looks at h->cancelled before it sends more. */
void base_cancel_submit(struct drv *dev);

/* What is under way has outcomes: it is no reading. */
bool base_acts(const struct driver_base *h);

/* Answers the snapshot under way: h->snap when rc is 0, else err. */
void base_snapshot_done(struct driver_base *h, int rc, const struct err *err);
/* Answers the submit, or what else has outcomes, from h->outcomes. rc 0 asks for the verdict
 * to be made from them: WEFT_EDEVICE with the first bad item's text when one
 * is not DONE. */
void base_submit_done(struct driver_base *h, int rc, const struct err *err);
/* Answers whatever is under way; nothing when that is nothing. */
void base_end(struct driver_base *h, int rc, const struct err *err);
/* Ends the session, if there is one, and the timer, then frees the handle. */
void base_stopped(struct driver_base *h);

/* Sets outcomes first..last-1 alike. code and text may be NULL. */
void base_mark(struct driver_base *h, int first, int last, enum drv_result r, enum drv_evidence e,
	       enum drv_class_of_error c, const char *code, const char *text);

/* Gives those that are UNKNOWN, since their command is out, this result and
 * text; they were SENT at most, and the trouble is the transport's. */
void base_settle_unknown(struct driver_base *h, enum drv_result r, const char *text);

/* A line sent or received, to the trace if one is set. */
void base_trace(struct driver_base *h, const char *line, bool is_reply);

/* The answer cannot be used and the session may be out of step: it ends, and
 * so does the operation, with rc; what was sent stays unknown. err gets the
 * device's name before it. */
void base_misunderstood(struct driver_base *h, int rc, struct err *err);
/* The session ended: so does the operation. Items that are out are unknown if
 * `sent`, else they were never sent. */
void base_lost(struct driver_base *h, int rc, const struct err *err, bool sent);
/* Puts the bytes of b, which it frees, to the device as the question `tag`.
 * The first question of an operation must be one that changes nothing: it is
 * asked again when the session was dead (see tcp_session.h). */
void base_ask(struct driver_base *h, struct buf *b, uint64_t tag);
/* The question just put, which changes nothing, is answered once more, as `tag`. */
void base_expect(struct driver_base *h, uint64_t tag);

/* Traces the batch under way as the class explains it, for devices without
 * a wire. */
void base_trace_batch(struct driver_base *h);

/* Adds words to the identity in the snapshot under way, behind a comma. */
void base_identify(struct driver_base *h, const char *words);
/* WEFT_EVERIFY unless the device's size is the fabric's. */
int base_check_size(const struct driver_base *h, int n_in, int n_out, struct err *err);
/* The same in words, for a device that may be any-to-any. */
int base_wrong_size(const struct driver_base *h, int n_in, int n_out, bool any_to_any,
		    struct err *err);
/* Ends port_set: by what h->snap, just read, lists of the port (a port that it
 * does not list is enabled). code and text, which may be NULL, are what the
 * device said if the port is not as asked. */
void base_judge_port(struct driver_base *h, const char *code, const char *text);
/* The entry of a port in the snapshot under way, made (enabled) when there is
 * none. NULL, with WEFT_EVERIFY, for a port that the fabric's size has no room
 * for. O(ports entered). */
struct drv_port *base_port(struct driver_base *h, bool is_out, int index, struct err *err);

/* Reports an event to the caller, unless the handle is being closed. */
void base_event(struct driver_base *h, const struct drv_event *ev);

/* Says by an event, once, what of the device's answers was passed over and where;
 * in the log when there is no listener for events. What stays the same from reading to reading
 * has to be worded alike. */
void base_note(struct driver_base *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Value of an option, or its default from the class's table; NULL when the
 * class has no such option. */
const char *base_option(const struct drv_class *cls, const struct drv_config *cfg, const char *key);
/* The same as a whole number from min to max. WEFT_EINVAL. */
int base_option_int(const struct drv_class *cls, const struct drv_config *cfg, const char *key,
		    int64_t min, int64_t max, int64_t *out, struct err *err);

/* A table of such options. */
struct base_number {
	const char *key;	/* one that the class lacks is passed over */
	int64_t min, max, *out;
};

/* Reads numbers[0..n-1] as base_option_int() does, and stops at the first that
 * is wrong. WEFT_EINVAL. */
int base_option_ints(const struct drv_class *cls, const struct drv_config *cfg,
		     const struct base_number *numbers, size_t n, struct err *err);
/* An option that is one of two words, the second of which may be empty:
 * whether it is the first. WEFT_EINVAL. */
int base_option_choice(const struct drv_class *cls, const struct drv_config *cfg, const char *key,
		       const char *first, const char *second, bool *is_first, struct err *err);
/* An option that names a file, or is empty. The path is absolute: a fabric's text comes to weftd
 * without the folder that it was written in. WEFT_EINVAL. */
int base_option_path(const struct drv_class *cls, const struct drv_config *cfg, const char *key,
		     char path[SECRET_PATH_MAX], struct err *err);
/* Reads what BASE_SSH_OPTIONS lists; *use is false, too, for a class without
 * them. The files are not looked at. WEFT_EINVAL. */
int base_option_ssh(const struct drv_class *cls, const struct drv_config *cfg,
		    struct ssh_conf *ssh, bool *use, struct err *err);
/* WEFT_EUNSUPPORTED when cfg is about an any-to-any device; `why` may be
 * empty. */
int base_two_sides(const struct drv_class *cls, const struct drv_config *cfg,
		   const char *why, struct err *err);

/* Name of the namespace that a driver of this machine's kernel works in, by
 * its options `fabric` (weft.FABRIC.DEVICE) or `netns`; one must be given.
 * WEFT_EINVAL. */
int base_netns(const struct drv_class *cls, const struct drv_config *cfg,
	       char *buf, size_t size, struct err *err);

/* Every class that is built in; the table in registry.c lists them by name. */
extern const struct drv_class drv_calient_tl1;
extern const struct drv_class drv_glimmerglass_tl1;
extern const struct drv_class drv_linux_ring;
extern const struct drv_class drv_linux_tc;
extern const struct drv_class drv_mrr_reg;
extern const struct drv_class drv_polatis_restconf;
extern const struct drv_class drv_polatis_scpi;
extern const struct drv_class drv_polatis_tl1;
extern const struct drv_class drv_rome_cli;
extern const struct drv_class drv_sim;
extern const struct drv_class drv_sim_ring;
extern const struct drv_class drv_sonic_ocs;
extern const struct drv_class drv_telescent_cli;

#endif
