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

/* ---- joint.c and say.c: the part of this weftd ---- */

enum part_phase { PART_NONE, PART_GATHERS, PART_PLANS, PART_WAITS, PART_RUNS, PART_ENDED };

struct joint {
	struct daemon_env *env;
	struct joint_config cfg;
	struct changes *changes;
	struct facts *facts;
	struct part_timer *timer;
	struct part_wait *wait;		/* for a key that changes, or NULL */
	char name[JOINT_NAME_MAX];
	bool joined;			/* the others know its domains */
	bool silent;			/* etcd did not answer the last time */
	struct joint_facts *now;	/* as last read */
	struct look {
		bool goes_on, again;	/* again: another follows at once */
		struct joint_facts *facts;	/* as it has read them; likewise: */
		struct etcd_pairs bases;	/* once all have said theirs; else empty */
		struct buf request;	/* of an open joint change; "": it was not needed */
		int fd;			/* is readable when a key changes; -1: none */
		int rc;
		struct err err;
	} look;
	bool stopped;			/* frees itself when no look is under way */
	char *open;			/* the request of a change of which the engine asks what is
					 * to become, or NULL */
	struct asked *asked;		/* a joint change that is to be opened, or NULL */
	/* Of the joint change that it has a part in: */
	int64_t id;			/* 0: it is not open yet */
	enum part_phase phase;
	struct joint_request request;	/* its id: of the part, in its history */
	struct plan_request *gathering;	/* while PART_GATHERS */
	struct buf base;		/* to be said while it has bytes */
	int stage, n_stages;		/* waits to begin it; of the plan */
	bool stage_said;
	char digest[65];
	bool all_ready, all_ended;	/* so commit is to be decided; it is over everywhere */
	struct err refused;		/* why the part ends before anything is planned */
	char undo[JOINT_TEXT_MAX];	/* to be decided while not "" */
	char ended[JOINT_TEXT_MAX];	/* to be said while not "" */
	int64_t gone_ns[JOINT_MAX];	/* since when no weftd leads it; 0: one does */
};

/* What this participant was asked for. */
struct asked {
	char uuid[JOINT_UUID_MAX];
	struct model_fabric *fabric;
	struct buf names;		/* of all participants; "": not known yet */
	struct buf request;
	bool tried;			/* it may be open */
};

/* ---- say.c: what it has to say, and does, on the coroutine of its look ---- */

/* Undo will be decided, because of this at a participant. */
void joint_want_undo(struct joint *j, const char *name, const char *why);
bool joint_has_to_say(const struct joint *j);
/* Says what etcd does not have yet. The errors of facts.c: it is said once more then. */
int joint_say(struct joint *j, struct err *err);

#endif
