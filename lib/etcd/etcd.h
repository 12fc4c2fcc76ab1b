/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of etcd (version 3): guarded transactions, leases, watches. Each call waits, within
 * a time that its caller gives, while its loop goes on: for coroutines (lib/coroutine; anywhere
 * else it blocks), one call at a time. What a call needs is asked of one member after the other.
 *
 * Errors of all calls: WEFT_EUNAVAIL, WEFT_ETIMEOUT (no member answered, or none that has a
 * leader: of a writing call it is not known then whether it has happened), WEFT_EDENIED (a
 * certificate, or etcd's own roles), WEFT_EINVAL, WEFT_ELIMIT (larger than etcd takes).
 */
#ifndef WEFT_LIB_ETCD_ETCD_H
#define WEFT_LIB_ETCD_ETCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/rpc/rpc.h"

/* What one value may hold: with its key and the rest of the transaction it stays below the
 * 1.5 MiB that etcd takes by default. */
#define ETCD_MAX_VALUE ((size_t)1 << 20)

struct etcd;

/*
 * members: "https://HOST:PORT,https://HOST:PORT"; all with TLS, or none; without TLS only on
 * loopback addresses, as etcd would believe anyone there. files: of this side, for https.
 * Strings are copied, the files' names not. Connects to none of them yet. WEFT_EINVAL names the
 * member that is wrong.
 */
int etcd_new(const char *members, const struct rpc_tls_files *files, struct etcd **out,
	     struct err *err);
/* Leases live on until they run out. NULL is fine. */
void etcd_free(struct etcd *e);

/* ---- keys ---- */

struct etcd_pair {
	char *key;		/* as text */
	int64_t created, modified;	/* revisions */
	int64_t lease;		/* that it goes with; 0: it stays */
	size_t len;
	char *value;
};

/* Sorted by key; owned. */
struct etcd_pairs {
	int n;
	struct etcd_pair *v;
};

void etcd_pairs_fini(struct etcd_pairs *p);

/* A condition: the revision that made the key, or that wrote it last, is this one;
 * 0: there is no such key. */
struct etcd_guard {
	const char *key;
	bool written;		/* last written; else made */
	int64_t revision;
};

enum etcd_op_kind { ETCD_PUT, ETCD_DELETE, ETCD_GET };

struct etcd_op {
	enum etcd_op_kind kind;
	const char *key;
	const char *end;	/* DELETE, GET: all keys from key to before end; NULL: key */
	const void *value;	/* PUT */
	size_t len;
	int64_t lease;		/* PUT: the key goes with it; 0: it stays */
	struct etcd_pairs *got;	/* GET: is filled */
};

/* All of it at one moment, if all conditions hold; *done says whether they did. *revision:
 * of the cluster, then. timeout_ms > 0. */
int etcd_transact(struct etcd *e, const struct etcd_guard *guards, int n_guards,
		  const struct etcd_op *ops, int n_ops, int timeout_ms,
		  bool *done, int64_t *revision, struct err *err);

/* Versions of keys before this revision are forgotten. */
int etcd_compact(struct etcd *e, int64_t revision, int timeout_ms, struct err *err);

/* ---- leases ---- */

/* A lease of so many seconds (at least one and a half times etcd's election time-out). */
int etcd_lease_new(struct etcd *e, int64_t seconds, int timeout_ms, int64_t *lease,
		   struct err *err);
/* Asks for the lease's whole time from now on, and waits for the answer at most timeout_ms: a
 * later call takes it then. *asked_ns (clk_boot_ns): when that was asked for which the last
 * answer came; 0: none new. WEFT_ESTALE: the lease has run out. */
int etcd_lease_keep(struct etcd *e, int64_t lease, int timeout_ms, int64_t *asked_ns,
		    struct err *err);
/* Ends it now, and its keys. */
int etcd_lease_end(struct etcd *e, int64_t lease, int timeout_ms, struct err *err);

/* ---- watching ---- */

/* A descriptor that is readable when a key that begins with prefix may have changed since;
 * -1 with err when none can be had now. Until the next etcd_watch_take. */
int etcd_watch(struct etcd *e, const char *prefix, int timeout_ms, struct err *err);
/* Takes what has come; *changed: a key is not as it was. On an error the watch has ended:
 * begin another. */
int etcd_watch_take(struct etcd *e, bool *changed, struct err *err);

#endif
