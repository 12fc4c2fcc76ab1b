/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this participant has to say in a joint change: it stands in struct joint until etcd has it.
 */
#include <stdio.h>

#include "controller/daemon/joint/private.h"

void joint_want_undo(struct joint *j, const char *name, const char *why)
{
	if (!j->undo[0]) {
		snprintf(j->undo, sizeof(j->undo), "%s: %s", name, why);
	}
}

/* What is too much for etcd will be so every time. */
static int say_base(struct joint *j, struct err *err)
{
	int r = facts_put_base(j->facts, j->id, &j->base, err);

	if (r == WEFT_ELIMIT || r == WEFT_EINVAL) {
		joint_want_undo(j, j->name, err->msg);
		err_clear(err);
		r = 0;
	}
	if (r == 0) {
		buf_reset(&j->base);
	}
	return r;
}

static int say_stage(struct joint *j, struct err *err)
{
	const int stage = j->stage;
	int r = facts_put_stage(j->facts, j->id, stage, j->digest, err);

	j->stage_said = r == 0 && j->stage == stage;
	return r;
}

static int say_decision(struct joint *j, struct err *err)
{
	int r;

	if (!j->undo[0]) {
		r = facts_decide(j->facts, j->id, JOINT_COMMIT, "", err);
		j->all_ready = r != 0;
	} else if ((r = facts_decide(j->facts, j->id, JOINT_UNDO, j->undo, err)) == 0) {
		j->undo[0] = '\0';
	}
	return r;
}

bool joint_has_to_say(const struct joint *j)
{
	return j->id ? j->undo[0] || j->all_ready || j->all_ended || j->base.len || j->ended[0] ||
		       (j->phase == PART_WAITS && !j->stage_said)
		     : j->asked && j->asked->names.len && !j->asked->tried;
}

/* Opens the joint change that was asked for; more than once, if an answer is late. */
static int say_request(struct joint *j, struct err *err)
{
	struct asked *a = j->asked;

	if (!a || !a->names.len) {
		return 0;
	}
	a->tried = true;
	return facts_open(j->facts, j->now->closed, a->uuid, buf_cstr(&a->names), &a->request, err);
}

int joint_say(struct joint *j, struct err *err)
{
	int r = 0;

	if (!j->id) {
		return say_request(j, err);
	}
	if (j->undo[0] || j->all_ready) {
		r = say_decision(j, err);
	}
	if (r == 0 && j->base.len) {
		r = say_base(j, err);
	}
	if (r == 0 && j->phase == PART_WAITS && !j->stage_said) {
		r = say_stage(j, err);
	}
	if (r == 0 && j->ended[0] && (r = facts_put_ended(j->facts, j->id, j->ended, err)) == 0) {
		j->ended[0] = '\0';
	}
	return r == 0 && j->all_ended ? facts_close(j->facts, j->id, err) : r;
}
