/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an etcd keeps: keys with revisions, the changes since the last compaction, leases. All
 * at once, without waiting; who may ask, and when an answer goes out, is etcd_model.c's.
 */
#ifndef WEFT_TESTS_SIM_ETCD_KEYS_H
#define WEFT_TESTS_SIM_ETCD_KEYS_H

#include "etcd/etcd.pb-c.h"
#include "lib/rpc/rpc.h"

/* What a caller is told; of status RPC_OK the bytes of a message, else a text. */
struct etcd_answer {
	enum rpc_status status;
	const char *text;
	void *bytes;		/* owned */
	size_t len;
};

/* Empty, at revision 1. */
void etcd_keys_begin(void);
/* Keeps a copy of all of it, in place of the last; takes that copy back. */
void etcd_keys_save(void);
void etcd_keys_restore(void);

int64_t etcd_keys_revision(void);
/* With a NUL behind it, valid until the next change; NULL: there is no such key. */
const char *etcd_keys_get(const char *key, size_t *len);
/* Called for each change of a key, in order; value NULL: it goes. */
void etcd_keys_on_change(void (*changed)(const char *key, const char *value, size_t len));
/* Called when an older state has taken the place of what was there. */
void etcd_keys_on_restore(void (*restored)(void));

/* Out of space: nothing can be put, no lease be had. */
void etcd_keys_full(bool full);

bool etcd_keys_writes(const Etcd__TxnRequest *q);
void etcd_keys_transact(const Etcd__TxnRequest *q, struct etcd_answer *out);
void etcd_keys_compact(int64_t revision, struct etcd_answer *out);

void etcd_keys_grant(int64_t seconds, struct etcd_answer *out);
void etcd_keys_revoke(int64_t lease, struct etcd_answer *out);
/* Its seconds; 0: there is no such lease; -1: it has run out, and its keys will go. */
int64_t etcd_keys_renew(int64_t lease);
int64_t etcd_keys_seconds(int64_t lease);
/* Ends those that ran out before `at`. */
void etcd_keys_expire(int64_t at);
/* Another member leads: all have their whole time again, and this longer. */
void etcd_keys_extend(int64_t ns);

/* Changes from this revision on of keys from key to before end (NULL: of key), to be sent; false
 * when there are none. */
bool etcd_keys_changes(int64_t from, const char *key, const char *end, struct etcd_answer *out);
/* Changes before this revision are forgotten. */
int64_t etcd_keys_compacted(void);

/* A message, packed. */
void etcd_answer_pack(struct etcd_answer *out, const ProtobufCMessage *m);

#endif
