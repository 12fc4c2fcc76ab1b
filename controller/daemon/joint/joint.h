/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fabric that several weftd lead together, each the devices of its failure domains. A change
 * of its configuration is a joint change: all make the same plan of it, each carries out its
 * part, and it is committed everywhere or undone everywhere.
 */
#ifndef WEFT_DAEMON_JOINT_JOINT_H
#define WEFT_DAEMON_JOINT_JOINT_H

#include "controller/daemon/change/change.h"
#include "controller/daemon/core/core.h"
#include "controller/daemon/core/plan_queue.h"
#include "controller/daemon/ha/ha.h"
#include "lib/base/buf.h"

#define JOINT_MAX 32		/* participants */
#define JOINT_NAME_MAX (CONF_MAX_NAME + 1)
#define JOINT_DOMAINS_MAX 512
#define JOINT_TEXT_MAX 400
#define JOINT_UUID_MAX 40

/* Borrowed; outlives what is made of it. */
struct joint_config {
	const char *members, *prefix;	/* etcd's, the fabric's keys */
	struct rpc_tls_files tls;
	const char *domains;		/* "row1,row2"; the first is the participant's name */
	int64_t lease_ms;
};

/* ---- domains.c: "row1,row2" ---- */

/* The first is the name of who leads them. WEFT_EUSAGE: empty, too long, or one twice. */
int joint_name(const char *domains, char name[JOINT_NAME_MAX], struct err *err);
/* True when domain is one of them. */
bool joint_has_domain(const char *domains, const char *domain);
/* The devices of these, and no others, are led here. WEFT_EUSAGE: more than can be. */
int joint_lead_domains(struct apply *apply, const char *domains, struct err *err);

/* ---- request.c: what is to be changed ---- */

/* Appends its bytes. O(bytes). */
void joint_request_encode(const struct joint_request *r, struct buf *out);
/* *out owns its texts. WEFT_EINVAL and WEFT_ELIMIT say which field is wrong; *out is empty
 * then. The text of the configuration is not looked at. O(bytes). */
int joint_request_decode(const void *data, size_t len, struct joint_request *out,
			 struct err *err);
/* Frees what it owns; empty afterwards. */
void joint_request_fini(struct joint_request *r);

/* ---- lights.c: what the plan starts from ---- */

/*
 * Appends what s has of the devices of f for which own() says so: intent and observed light,
 * and the learned times of these devices and of the transceivers that they feed. Left out are
 * rows that a device of its size cannot have, which an intent of before may hold. s is a copy
 * of a base of f with both intent and observed. O(bytes).
 */
void joint_lights_encode(const struct snapshot *s, const struct model_fabric *f,
			 bool (*own)(const struct model_device *, void *), void *arg,
			 struct buf *out);

/*
 * Puts what another participant, `from`, has encoded in the place of what s, of the same
 * fabric, has of these devices. WEFT_EINVAL names participant and device: one that f does not
 * have, or that is there twice, ports and parts that it does not have, lists that are not
 * sorted, programs that do not fit the ring; WEFT_ELIMIT. On an error some
 * devices may have been replaced; s is as well formed as before. O(bytes log bytes).
 */
int joint_lights_decode(struct snapshot *s, const struct model_fabric *f, const void *data,
			size_t len, const char *from, struct err *err);

/* ---- joint.c ---- */

struct joint;

/* From now on changes of the configuration are joint ones, and parts of those that others ask for
 * are begun, and those that were open are brought to their end. Everything is borrowed and
 * outlives it; before the first slot of the queue. */
int joint_new(struct daemon_env *env, const struct joint_config *cfg,
	      const struct election *election, struct changes *changes, struct joint **out,
	      struct err *err);
void joint_free(struct joint *j);	/* NULL is fine */

/* One of those who lead the fabric, as last heard of. */
struct joint_participant {
	const char *name, *domains;
	const char *leader;	/* how to reach its weftd; "": none leads */
	char state[JOINT_TEXT_MAX];	/* what it does in a joint change; "": none is open */
};

/* How many; texts are valid until the loop runs. */
int joint_participants(const struct joint *j, struct joint_participant v[JOINT_MAX]);

#endif
