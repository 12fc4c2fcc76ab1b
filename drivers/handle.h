/*
 * What all drivers do alike: one operation at a time, begun from the loop,
 * answered exactly once, cancelled by close. Private to drivers.
 *
 * A driver embeds struct handle as its first member, points `ops` at three
 * functions and puts handle_close(), handle_snapshot() and handle_submit()
 * into its class. Every operation begins in a later turn of the loop, so
 * whatever the driver does from there on is outside the caller's call.
 */
#ifndef WEFT_DRIVERS_HANDLE_H
#define WEFT_DRIVERS_HANDLE_H

#include "drivers/driver.h"

#define DRV_ADDRESS_MAX 256
#define DRV_MAX_PORTS 4096

struct handle;

struct handle_ops {
	/* Begins to read; ends in handle_snapshot_done(). h->snap is empty. */
	void (*snapshot)(struct handle *h);
	/* Begins to send h->batch; ends in handle_submit_done(). All of
	 * h->outcomes say SKIPPED; the driver marks an item UNKNOWN before
	 * it sends it and the true result when it knows, so that a close in
	 * between tells the truth. */
	void (*submit)(struct handle *h);
	/* Ends the session; no operation is under way and none may call
	 * back any more. Ends in handle_stopped(). */
	void (*stop)(struct handle *h);
	/* Frees what the driver's struct owns, not the struct. */
	void (*fini)(struct handle *h);
};

enum handle_op { HANDLE_IDLE, HANDLE_SNAPSHOT, HANDLE_SUBMIT };

struct handle {
	struct drv drv;
	const struct handle_ops *ops;
	char address[DRV_ADDRESS_MAX];
	int n_in, n_out, ring_fibres;	/* what the fabric says */
	bool any_to_any;
	int64_t timeout_ms;
	uint64_t fence;

	uv_timer_t tick;		/* the later turn of the loop */
	enum handle_op op;
	int64_t begun_ns;	/* monotonic */
	bool closing;
	drv_snapshot_cb snapshot_cb;
	drv_submit_cb submit_cb;
	void *arg;
	struct drv_snapshot snap;
	const struct drv_batch *batch;
	struct drv_outcome *outcomes;
	int n_outcomes;
	drv_close_cb close_cb;
	void *close_arg;
};

/* Checks what every driver checks: sizes, lengths, option names. WEFT_EINVAL
 * names what is wrong. */
int handle_check(const struct drv_class *cls, const struct drv_config *cfg,
		 struct err *err);
/* Fills a zeroed handle from a checked cfg. Nothing may fail between this
 * and the return of open(): from here on only drv_close() ends it. */
void handle_init(struct handle *h, const struct drv_class *cls,
		 const struct handle_ops *ops, uv_loop_t *loop,
		 const struct drv_config *cfg);

void handle_close(struct drv *dev, drv_close_cb cb, void *arg);
void handle_snapshot(struct drv *dev, drv_snapshot_cb cb, void *arg);
void handle_submit(struct drv *dev, const struct drv_batch *batch,
		   drv_submit_cb cb, void *arg);

/* Answers the snapshot under way: h->snap when rc is 0, else err. */
void handle_snapshot_done(struct handle *h, int rc, const struct err *err);
/* Answers the submit under way from h->outcomes. rc 0 asks for the verdict
 * to be made from them: WEFT_EDEVICE with the first bad item's text when one
 * is not DONE. */
void handle_submit_done(struct handle *h, int rc, const struct err *err);
/* Answers whatever is under way; nothing when that is nothing. */
void handle_end(struct handle *h, int rc, const struct err *err);
void handle_stopped(struct handle *h);

/* Sets outcomes first..last-1 alike. code and text may be NULL. */
void handle_mark(struct handle *h, int first, int last, enum drv_result r,
		 enum drv_evidence e, enum drv_class_of_error c,
		 const char *code, const char *text);

/* Gives those that are UNKNOWN, since their command is out, this result and
 * text; they were SENT at most, and the trouble is the transport's. */
void handle_settle_unknown(struct handle *h, enum drv_result r,
			   const char *text);

void handle_trace(struct handle *h, const char *line, bool is_reply);

/* Tells an event, unless the handle is being closed. */
void handle_event(struct handle *h, const struct drv_event *ev);

/* Value of an option, or its default from the class's table. */
const char *handle_option(const struct drv_class *cls,
			  const struct drv_config *cfg, const char *key);
/* The same as a whole number from min to max. WEFT_EINVAL. */
int handle_option_int(const struct drv_class *cls,
		      const struct drv_config *cfg, const char *key,
		      int64_t min, int64_t max, int64_t *out, struct err *err);

/* Name of the namespace that a driver of this machine's kernel works in, by
 * its options `fabric` (weft.FABRIC.DEVICE) or `netns`; one must be given.
 * WEFT_EINVAL. */
int handle_netns(const struct drv_class *cls, const struct drv_config *cfg,
		 char *buf, size_t size, struct err *err);

#endif
