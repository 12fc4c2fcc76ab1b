/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the views. */
#ifndef WEFT_DAEMON_VIEWS_PRIVATE_H
#define WEFT_DAEMON_VIEWS_PRIVATE_H

#include "controller/daemon/views/views.h"
#include "lib/base/buf.h"
#include "lib/base/vec.h"

/* ---- problems.c: what is wrong, for all who tell of it ---- */

#define PROBLEM_TEXT 512

/* One message of the list, and its sentence. */
struct problem_entry {
	Weft__V1__Problem m;
	char text[PROBLEM_TEXT];
};

/* What is wrong with one device by its last reading; all zero of a device that is
 * moved by hand, or was never read. Ports and parts that the configuration marks as
 * dead do not count. */
struct problem_device {
	const char *name;
	VEC(struct drv_port_id) failed;	/* ports, in the order of the reading */
	int n_failed;			/* of them; for metrics */
	int n_disabled;			/* ports that did not fail */
	int n_dead;			/* parts of a ring that failed */
	int n_unlocked;			/* settings of its programs */
	int n_dark;			/* intended circuits without light, also
					 * those that are not listed */
	int n_lossy;
	uint64_t parts;			/* a mark of those that failed or lost their
					 * wave; 0: none */
};

/* All of it, valid until the state changes. */
struct problems {
	size_t n;
	Weft__V1__Problem **list;	/* [n] for a response: of devices in the
					 * fabric's order, of hosts, of jobs */
	bool differs;			/* some of them are of what was read */
	VEC(struct problem_entry) v;		/* behind list */
	int n_devices;
	struct problem_device *devices;	/* as apply_devices() has them */
	struct hosts_view hosts;
};

/* Finds them. A zeroed one is fine for fini. O(devices x ports they tell of + jobs + ports
 * of hosts). */
void problems_init(struct problems *p, const struct views *views);
void problems_fini(struct problems *p);
/* "in 3", or "port 3" of a device whose ports have no sides. Into text; returns it. */
const char *problem_port_text(const struct model_device *md, struct drv_port_id port,
			      char *text, size_t size);
/* The jobs that are shown, while a change runs as they were before it; NULL while they
 * are not known. */
const struct job_rows *shown_jobs(const struct views *views);

/* ---- device_circuits.c: circuits that are not as they should be ---- */

/* What status lists of one device, kept while nothing new is known of it. */
struct device_circuits {
	uint64_t version;	/* of the device, by which it was made; 0: not yet */
	struct msg_circuits missing, unexpected, pending, dark;
	struct buf packed;	/* these four, as fields of a DeviceState */
};

/* Makes it again if more is known of the device a, which is apply_devices()[device]. A
 * zeroed c is fine, also for fini. O(1), or O(circuits log circuits), times the steps of open
 * changes for those that are not intended. */
void device_circuits_renew(struct device_circuits *c, const struct apply *apply, int device,
			   const struct apply_device *a);
/* The four lists of a message. */
void device_circuits_list(const struct device_circuits *c, Weft__V1__DeviceState *m);
void device_circuits_fini(struct device_circuits *c);

/* ---- status_view.c ---- */

struct daemon_status;

/* What a loss of power leaves of a device's map, as the API names it. */
const char *power_loss_name(const struct apply_device *a);
/* All that is known now, as a message that is valid until the state changes.
 * Touches no device. */
int daemon_status_new(const struct views *views, struct daemon_status **out, struct err *err);
void daemon_status_free(struct daemon_status *s);	/* NULL is fine */
/* The message; it points into s, and to what the parts own. */
const Weft__V1__StatusResponse *
daemon_status_message(const struct daemon_status *s);
/* Appends it to out, packed: what is kept packed is copied; brief: without what
 * StatusRequest.brief leaves out. */
void daemon_status_pack(const struct daemon_status *s, bool brief, struct buf *out);
/* Ends the call with intent against the last readings, all devices and hosts. */
void answer_diff(const struct views *views, struct rpc_call *call);

/* ---- kept_status.c ---- */

/* Ends the call with the status, as it was packed for an earlier call if nothing has
 * changed since. O(bytes) then. */
void answer_kept_status(const struct views *views, struct rpc_call *call, bool brief);

/* What is kept of n devices, in the order of apply_devices. */
struct device_circuits *kept_circuits(struct kept_status *k, int n);

/* ---- circuit_status.c ---- */

/* The circuits of one device, with their loss. */
struct circuit_view {
	struct msg_circuits circuits;	/* in the order of the reading */
	void *memory;		/* of their signals */
};

/* Strings are those of `a`, which is apply_devices()[device]. A zeroed v is fine for fini.
 * O(circuits log circuits). */
void circuit_view_init(struct circuit_view *v, const struct daemon_env *env, int device,
		       const struct apply_device *a);
void circuit_view_fini(struct circuit_view *v);

/* ---- page_history.c: what the page draws over time ---- */

struct page_history;

/* Empty. */
struct page_history *page_history_new(void);
void page_history_free(struct page_history *h);	/* NULL is fine */
/* Takes a sample of what is known now. Touches no device. O(jobs + circuits + ports +
 * series). */
void page_history_take(struct page_history *h, const struct views *d);
/* The two steps of it: a sample in which nothing is known yet, and one number of it; what: a
 * constant, by its address. Too many series are left out. O(series). */
void page_history_begin(struct page_history *h);
void page_history_put(struct page_history *h, const char *what, const char *name, int64_t value);
/* Number of the newest sample, 0: none. */
int64_t page_history_newest(const struct page_history *h);
/* Appends the samples after that number as JSON (docs/api.md). O(samples * series). */
void page_history_out(const struct page_history *h, int64_t after, struct buf *b);

/* ---- history.c ---- */

/* A verdict as the API spells it; a constant, not to be changed. */
char *outcome_name(enum store_verdict v);
/* A change as a message, which is initialised here. Strings are those of c. */
void fill_change(Weft__V1__Change *m, const struct store_change *c);

#endif
