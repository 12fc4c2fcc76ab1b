/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files about joint changes. */
#ifndef WEFT_DAEMON_JOINT_PRIVATE_H
#define WEFT_DAEMON_JOINT_PRIVATE_H

#include "controller/daemon/joint/joint.h"
#include "lib/base/buf.h"
#include "lib/etcd/etcd.h"
#include "weft/joint/v1/joint.pb-c.h"

/* Appends a message. */
void joint_pack(const ProtobufCMessage *msg, struct buf *out);
/* rpc_decode() with memory by the length of the input. */
int joint_unpack(const ProtobufCMessageDescriptor *type, const void *data, size_t len,
		 ProtobufCMessage **out, struct err *err);

/* ---- facts.c: what is known of a joint change, in etcd ---- */

enum joint_decision { JOINT_UNDECIDED, JOINT_COMMIT, JOINT_UNDO };

/* A participant, and what it has said of the open joint change. */
struct joint_said {
	char name[JOINT_NAME_MAX];
	char domains[JOINT_DOMAINS_MAX];	/* that it leads, "row1,row2" */
	char leader[STORE_HOLDER_MAX];	/* its weftd; "": none leads it now */
	bool has_part;		/* in the open joint change */
	int stage;		/* its own stages before are done; -1: not prepared yet */
	char digest[65];	/* of its plan, once it is prepared */
	char ended[JOINT_TEXT_MAX];	/* how its part ended, or "" */
};

struct joint_facts {
	int n;			/* participants, by name */
	struct joint_said v[JOINT_MAX];
	int64_t id;		/* of the open joint change; 0: none is */
	char uuid[JOINT_UUID_MAX];
	char asked[JOINT_NAME_MAX];	/* the participant that was asked for it */
	int n_parts;		/* of v, that have one; of these: */
	int n_bases, n_ended;	/* have said what their devices hold; have ended */
	enum joint_decision decision;
	char why[JOINT_TEXT_MAX];	/* of undo */
	int64_t closed;		/* revision at which one was closed last; 0: none yet */
};

/* NULL: there is none of this name. */
struct joint_said *facts_find(struct joint_facts *of, const char *name);

struct facts;

/* Connects to nothing yet. Strings and files of cfg, and the election, outlive it. The errors
 * of etcd_new. */
int facts_new(const struct joint_config *cfg, const struct election *election,
	      struct facts **out, struct err *err);
void facts_free(struct facts *f);	/* NULL is fine */

/* All calls end with WEFT_ECANCELED from now on, and the one that waits as soon as it can: all
 * that their caller knew may be gone then. */
void facts_stop(struct facts *f);

/*
 * All calls are for coroutines, one at a time, and wait for etcd, a second each at most. Their
 * errors are those of etcd_transact: after one of a writing call it is not known whether it has
 * happened, and writing the same once more is fine. What is written is guarded: nothing is when
 * this weftd leads its participant no more, or the joint change is no longer open, or it was
 * decided, as facts_read tells then.
 */

/* Names the failure domains of this participant ("row1,row2") to the others. WEFT_ESTALE: it is
 * led no more. */
int facts_join(struct facts *f, const char *domains, struct err *err);
/* What is known. WEFT_ELIMIT: more than JOINT_MAX participants. */
int facts_read(struct facts *f, struct joint_facts *out, struct err *err);
/* Opens a joint change of these participants ("NAME,NAME"), if none is open and none was closed
 * after the facts were read that have this as closed. */
int facts_open(struct facts *f, int64_t closed, const char *uuid, const char *names,
	       const struct buf *request, struct err *err);
/* The request of the open one; *out is reset, and stays empty where that is over. */
int facts_request(struct facts *f, struct buf *out, struct err *err);
/* What was said of the devices so far: keys are names. */
int facts_bases(struct facts *f, struct etcd_pairs *out, struct err *err);
int facts_put_base(struct facts *f, int64_t id, const struct buf *base, struct err *err);
int facts_put_stage(struct facts *f, int64_t id, int stage, const char *digest, struct err *err);
int facts_put_ended(struct facts *f, int64_t id, const char *how, struct err *err);
/* Decides, unless that was done already. why: of undo. */
int facts_decide(struct facts *f, int64_t id, enum joint_decision decision, const char *why,
		 struct err *err);
/* It is over everywhere. */
int facts_close(struct facts *f, int64_t id, struct err *err);
/* As etcd_watch, of all that facts_read reads; -1: none now. */
int facts_wait_fd(struct facts *f);

#endif
