/* SPDX-License-Identifier: Apache-2.0 */
/* Several weftd for one fabric: one leads, the others stand by. */
#ifndef WEFT_DAEMON_HA_HA_H
#define WEFT_DAEMON_HA_HA_H

#include "controller/daemon/core/core.h"
#include "lib/rpc/rpc.h"

/* ---- where they take turns: shared_store.c, replica.c ---- */

#define HA_MAX_STANDBYS 16

/* One that stands by, and how many transactions it does not have yet. */
struct ha_standby {
	char name[STORE_HOLDER_MAX];
	int64_t behind;
};

/* What is known of those who share a fabric. */
struct ha_status {
	struct store_lease leader;
	int64_t behind;			/* of a standby itself */
	/* Why nothing newer is known, or, of a leader, nothing can be recorded; "" */
	char problem[ERR_MSG_MAX];
	bool is_refused;		/* of a leader: etcd answers, and takes no transaction */
	int n_standbys;			/* known to the leader, with etcd */
	struct ha_standby standbys[HA_MAX_STANDBYS];
};

/*
 * Where one of several is made the leader. Calls may wait for others, in a coroutine while the
 * loop goes on (lib/coroutine), one at a time. Made by shared_store_election or replica_election,
 * ended by free.
 */
struct election {
	struct ha_status status;	/* as of the last look or beat */
	int64_t proven_ns;	/* clk_boot_ns: no other leads until a lease after that */
	bool stops;		/* whoever leads was asked to end: set from outside */
	void (*on_problem)(void *arg);	/* status.problem has come or gone; or NULL */
	void *on_problem_arg;
	bool is_local;		/* look waits for no other */
	/* Who leads now; brings the store up to date. */
	int (*look)(struct election *e, struct err *err);
	/* Leads from now on, if all is still as it was seen. WEFT_ESTALE: it is not. */
	int (*lead)(struct election *e, const struct store_lease *seen, struct err *err);
	/* Proof that the leader lives, in proven_ns if it is one. WEFT_ESTALE: it leads no more. */
	int (*beat)(struct election *e, struct err *err);
	/* The leader goes, once all others have what it has, and the next one need not wait. */
	int (*yield)(struct election *e, struct err *err);
	/* A descriptor, until the next call: when it is readable there may be something to look
	 * at. -1: none. NULL: never one. */
	int (*wait_fd)(struct election *e);
	void (*free)(struct election *e);
};

/* A store that all of them open, with the lease in it. self: how to reach this one. */
struct election *shared_store_election(struct store *store, const char *self);

/* An etcd whose members agree on the leader and on each transaction of its store; each weftd
 * has a store of its own, which is kept a copy. Keys begin with prefix. Strings and files must
 * outlive it. WEFT_EINVAL: members, or files, that cannot be used. */
struct replica_config {
	const char *members, *prefix, *self;
	struct rpc_tls_files tls;
	int64_t lease_ms;
};
int replica_election(uv_loop_t *loop, struct store *store, const struct replica_config *cfg,
		     struct election **out, struct err *err);

/* ---- lease.c: the one that leads ---- */

struct lease;

/* It proves from now on that it lives, and ends the process at once, with its
 * circuits as they are, when it cannot or when another leads: it checks before
 * every command to a device, and what it writes is refused. */
struct lease *lease_new(struct daemon_env *env, struct election *election, int64_t lease_ms);
/* Ends the process of one that led: circuits and store stay as they are. 75, or 0 if it was to
 * end anyway. */
void lease_end_process(const struct election *e, const char *why) __attribute__((noreturn));
/* Yields: the next one may lead at once. Then done, at once for NULL. */
void lease_yield(struct lease *l, void (*done)(void *arg), void *arg);
/* Of one that has yielded, if it could. NULL is fine. */
void lease_free(struct lease *l);

/* ---- standby.c: one that waits ---- */

struct standby;

/* Watches who leads, and stops on a signal. ended is called once, when it leads
 * or was stopped; nothing is watched any more then. */
struct standby *standby_new(struct daemon_env *env, struct election *election, int64_t lease_ms,
			    void (*ended)(bool leads, void *arg), void *arg);
void standby_free(struct standby *s);	/* NULL is fine */
/* Who leads; "no weftd" when none does. */
const char *standby_leader(const struct standby *s);
/* 0 for a method that a standby answers; WEFT_EUNAVAIL names the leader. What
 * the store has then is read as it is now. */
int standby_permit(struct standby *s, const char *path, struct err *err);

#endif
