/* Shared by the files of the views. */
#ifndef WEFT_DAEMON_VIEWS_PRIVATE_H
#define WEFT_DAEMON_VIEWS_PRIVATE_H

#include "controller/daemon/views/views.h"

/* ---- status.c ---- */

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
/* Ends the call with intent against the last readings, all devices and hosts. */
void answer_diff(const struct views *views, struct rpc_call *call);

/* ---- circuit_status.c ---- */

/* The circuits of one device, with their loss. */
struct circuit_view {
	struct msg_circuits circuits;	/* in the order of the reading */
	void *memory;		/* of their signals */
};

/* Strings are those of `a`, which is apply_devices()[device]. A zeroed v is
 * fine for fini, also after an error. O(circuits log circuits). */
int circuit_view_init(struct circuit_view *v, const struct daemon_env *env, int device,
		      const struct apply_device *a, struct err *err);
void circuit_view_fini(struct circuit_view *v);

/* ---- history.c ---- */

/* A verdict as the API spells it; a constant, not to be changed. */
char *outcome_name(enum store_verdict v);
/* A change as a message, which is initialised here. Strings are those of c. */
void fill_change(Weft__V1__Change *m, const struct store_change *c);

#endif
