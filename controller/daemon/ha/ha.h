/* Several weftd that share a store: one leads, the others stand by. */
#ifndef WEFT_DAEMON_HA_HA_H
#define WEFT_DAEMON_HA_HA_H

#include "controller/daemon/core/core.h"

/* ---- lease.c: the one that leads ---- */

struct lease;

/* It proves from now on that it lives, and ends the process at once, with its
 * circuits as they are, when it cannot or when another leads: it checks before
 * every command to a device, and its store refuses what it writes. */
int lease_new(struct daemon_env *env, int64_t lease_ms, struct lease **out, struct err *err);
/* Yields: the next one may lead at once. NULL is fine. */
void lease_free(struct lease *l);

/* ---- standby.c: one that waits ---- */

struct standby;

/* Watches the lease in the store of env under the name `self`, and stops on a
 * signal. ended is called once, when it has the lease (leads) or was stopped;
 * nothing is watched any more then. */
int standby_new(struct daemon_env *env, int64_t lease_ms, const char *self,
		void (*ended)(bool leads, void *arg), void *arg,
		struct standby **out, struct err *err);
void standby_free(struct standby *s);	/* NULL is fine */
/* Who leads; "no weftd" when none does. */
const char *standby_leader(const struct standby *s);
/* 0 for a method that a standby answers; WEFT_EUNAVAIL names the leader. What
 * the store has then is read as it is now. */
int standby_permit(struct standby *s, const char *path, struct err *err);

#endif
