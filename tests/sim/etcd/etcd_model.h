/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An etcd of one member or three, behind its sockets: each member is a process of its own machine,
 * "etcd0" to "etcd2", that speaks gRPC by lib/rpc's server on 127.0.0.1:2379, 2381, 2383. They
 * share one state, as three whose disks and network are good do; a member that is cut off from
 * the others, away or stopped, and the time until another leads, are as with a real one
 * (tests/unit/etcd/cases.h runs against both). Not modelled: a follower that lags behind, links
 * between members (etcd_model_cut instead of sim_link_stall), roles, TLS.
 *
 * It breaks the rule "two truths" itself: a position of weft's log that its head has reached is
 * written with another value, or the head goes back.
 */
#ifndef WEFT_TESTS_SIM_ETCD_MODEL_H
#define WEFT_TESTS_SIM_ETCD_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An empty one. */
void etcd_model_begin(int members);
/* Starts a member that does not run; what it had on its disk is there. Ended by sim_signal,
 * sim_power_off. */
void etcd_model_start(int member);
struct sim_process *etcd_model_process(int member);	/* NULL: does not run */
const char *etcd_model_machine(int member);
const char *etcd_model_urls(void);	/* of all, as --etcd takes them */

/* ---- troubles that stay until they are ended ---- */

/* A member reaches no other one; its clients reach it. */
void etcd_model_cut(int member, bool cut);
/* Each request takes effect so much later, and is answered so much after that, as with a slow
 * disk; signs of life, which need none, are as fast as ever. */
void etcd_model_slow(int64_t before_ns, int64_t after_ns);
/* Leases that are not kept end so much later. */
void etcd_model_leases_late(int64_t ns);
/* Out of space. */
void etcd_model_full(bool full);

/* ---- at once ---- */

/* All versions of keys but the newest are forgotten. */
void etcd_model_compact(void);
/* What restore puts back: all members end, and those that ran start again with that state. */
void etcd_model_save(void);
void etcd_model_restore(void);

/* ---- troubles of one request ---- */

enum etcd_call {
	ETCD_ANY,
	ETCD_READ,	/* a transaction that only reads */
	ETCD_WRITE,	/* one that puts or deletes */
	ETCD_COMPACT, ETCD_GRANT, ETCD_REVOKE, ETCD_KEEP,
	ETCD_WATCH,	/* the beginning of one */
};

enum etcd_trouble {
	ETCD_LATE_ANSWER,	/* it takes effect at once, and is answered after ns */
	ETCD_NO_ANSWER,		/* likewise, and is not answered; the connection stays */
	ETCD_RESET,		/* likewise, and the client's connections to etcd are reset */
	ETCD_STALL,		/* likewise, and nothing of etcd's arrives at the client for ns */
	ETCD_SLOW_DISK,		/* likewise, and it and all that the client asks then is answered
				 * when ns are over; but for signs of life, as they need no disk */
	ETCD_LATE_REQUEST,	/* it takes effect after ns, also when no one waits any more */
	ETCD_LOST,		/* it never takes effect, and is not answered */
};

struct etcd_fault {
	const char *client;	/* machine; NULL: any */
	enum etcd_call call;
	const char *key;	/* some key of the transaction contains this; NULL: any */
	int nth;		/* of those that fit, from now on; 1: the next; 0 is 1 */
	enum etcd_trouble what;
	int64_t ns;
	/* Called when it happens, by the member's process; NULL: none. */
	void (*happened)(void *arg);
	void *arg;
};

/* Copied, but for the strings. Told in a line when it happens, and gone then. */
void etcd_model_fault(const struct etcd_fault *f);
/* Those that have not happened yet. */
int etcd_model_faults_left(void);
void etcd_model_forget_faults(void);
const char *etcd_call_name(enum etcd_call call);
const char *etcd_trouble_name(enum etcd_trouble what);

/* ---- for judges ---- */

/* The value of a key now, a text, valid until the next change; NULL: there is none. Who leads
 * is in "/weft/leader" ("since_ns holder"), of a domain in "/weft/NAME/leader". */
const char *etcd_model_get(const char *key);
/* Called for each change of a key at its moment, in order; value NULL: it goes. Before the first
 * member is started. */
void etcd_model_on_change(void (*changed)(const char *key, const char *value, size_t len));
/* Of writes so far. */
int64_t etcd_model_revision(void);

#endif
