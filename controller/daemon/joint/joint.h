/*
 * Changes of a fabric that several weftd divide among them by failure domain: each leads the
 * devices of its own domains, and is a participant. All plan the same change from the same
 * light, so that their plans are equal, and each carries out its part.
 */
#ifndef WEFT_DAEMON_JOINT_JOINT_H
#define WEFT_DAEMON_JOINT_JOINT_H

#include "controller/daemon/core/core.h"
#include "controller/daemon/core/plan_queue.h"
#include "controller/model/model.h"
#include "controller/plan/plan.h"
#include "lib/base/buf.h"

/* ---- request.c: what is to be changed ---- */

#define JOINT_MAX_PARTICIPANTS 64

/* Texts are owned, none NULL; "" where there is none. */
struct joint_request {
	char *id;			/* chosen by the client */
	struct model_config config;	/* with the jobs of orchestrators */
	enum plan_mode mode;
	bool ignore_floor;		/* as in struct plan_request */
	bool is_rollback;
	char digest[65];		/* that the plan must have; "": any */
	char *who, *comment;
	char arguments[65];		/* arguments_hash(); "": not known */
	char trace[TRACE_SIZE];
	int n_participants;
	char **participants;		/* each once */
	int64_t asked_at_ns;		/* wall clock of the one that was asked */
};

/* Appends its bytes. WEFT_ENOMEM. O(bytes). */
int joint_request_encode(const struct joint_request *r, struct buf *out, struct err *err);
/* WEFT_EINVAL and WEFT_ELIMIT say which field is wrong; *out is empty then. The text of the
 * configuration is not looked at. O(bytes + participants^2). */
int joint_request_decode(const void *data, size_t len, struct joint_request *out,
			 struct err *err);
/* Frees what it owns; empty afterwards. */
void joint_request_fini(struct joint_request *r);

/* ---- lights.c: what the plan starts from ---- */

/*
 * Appends what s has of the devices of f for which own() says so: intent and observed light,
 * and the learned times of these devices and of the transceivers that they feed. Left out are
 * rows that a device of its size cannot have, which an intent of before may hold. s is a copy
 * of a base of f with both intent and observed. WEFT_ENOMEM. O(bytes).
 */
int joint_lights_encode(const struct snapshot *s, const struct model_fabric *f,
			bool (*own)(const struct model_device *, void *), void *arg,
			struct buf *out, struct err *err);

/*
 * Puts what another participant, `from`, has encoded in the place of what s, of the same
 * fabric, has of these devices. WEFT_EINVAL names participant and device: one that f does not
 * have, or that is there twice, ports and parts that it does not have, lists that are not
 * sorted, programs that do not fit the ring; WEFT_ELIMIT, WEFT_ENOMEM. On an error some
 * devices may have been replaced; s is as well formed as before. O(bytes log bytes).
 */
int joint_lights_decode(struct snapshot *s, const struct model_fabric *f, const void *data,
			size_t len, const char *from, struct err *err);

#endif
