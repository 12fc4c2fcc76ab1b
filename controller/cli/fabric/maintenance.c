/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maintenance: parts drained and emptied, the fabric frozen, ports set and devices recovered by
 * hand.
 *
 * What is to be emptied is drained by weftd with the change that empties it: what is not
 * committed leaves nothing drained.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"

#define RECOVER_MS (40 * 60 * 1000)	/* a robot's homing run takes minutes */

/* ---- drain, freeze ---- */

/* All that is drained or frozen after the call: target ("" for the whole
 * fabric), since, who, reason. */
static void show_holds(const struct cli *c, struct out *o, const void *answer)
{
	const Weft__V1__Holds *h = ((const Weft__V1__DrainResponse *)answer)->held;

	if (c->format == OUT_TABLE) {
		msg_out_table(o, "holds", msg_hold_columns, (void *const *)h->holds, h->n_holds);
	} else {
		msg_out_fields(o, h, NULL);
	}
}

/* The answers are alike. */
static int call_hold(struct cli *c, const char *method, const ProtobufCMessage *req,
		     struct err *err)
{
	return cli_call(c, method, req, &weft__v1__drain_response__descriptor, CLI_CALL_MS,
			show_holds, err);
}

/* What the command ends with when light is left at the part, with a word about it. */
static int end_evacuation(struct cli *c, const Weft__V1__PlanSummary *s)
{
	if (s->left == 0) {
		return 0;
	}
	cli_say(c, CLI_NORMAL, "%s %s empty: %d circuit%s or job%s on a ring stay%s lit there",
		c->argv[0], cli_has(c, "dry-run") ? "would not be" : "is not", s->left,
		s->left == 1 ? "" : "s", s->left == 1 ? "" : "s", s->left == 1 ? "s" : "");
	return s->nothing_to_do ? CLI_AS_IT_WAS : CLI_PENDING;
}

/* What moves away from the part, and what that costs; then it does. */
static int evacuate(struct cli *c, const char *reason, struct err *err)
{
	Weft__V1__PlanRequest req = WEFT__V1__PLAN_REQUEST__INIT;
	bool dry = cli_has(c, "dry-run");
	struct plan_view v = { 0 };
	int r;

	req.evacuate = c->argv[0];
	req.want_file = !dry;
	if ((r = cli_plan(c, NULL, &req, &v, err))) {
		goto out;
	}
	cli_warn_plan(c, &v);
	if (dry || c->format == OUT_TABLE) {
		r = plan_view_print(c, &v, err);
	}
	if (r == 0 && !dry) {
		r = cli_apply_plan(c, &v.file, reason[0] ? reason : "evacuated", err);
	}
	if (r == 0) {
		r = end_evacuation(c, v.summary);
	}
	if (r == 0 && dry && !v.summary->nothing_to_do) {
		r = CLI_PENDING;
	}
out:
	plan_view_fini(&v);
	return r;
}

int cmd_drain(struct cli *c, struct err *err)
{
	Weft__V1__DrainRequest req = WEFT__V1__DRAIN_REQUEST__INIT;
	const char *reason = cli_opt(c, "comment");

	req.target = c->argv[0];
	req.reason = (char *)(reason ? reason : "");
	if (cli_has(c, "dry-run") && !cli_has(c, "evacuate")) {
		return err_set(err, WEFT_EUSAGE, "weft drain: --dry-run is of --evacuate: a drain "
			       "alone moves nothing");
	}
	return cli_has(c, "evacuate") ? evacuate(c, req.reason, err) :
		call_hold(c, CLI_METHOD("Drain"), &req.base, err);
}

/* Also says what an apply would bring back: that it is not known is no error. */
int cmd_undrain(struct cli *c, struct err *err)
{
	Weft__V1__UndrainRequest req = WEFT__V1__UNDRAIN_REQUEST__INIT;
	Weft__V1__PlanRequest plan = WEFT__V1__PLAN_REQUEST__INIT;
	struct plan_view v = { 0 };
	int r;

	req.target = c->argv[0];
	r = call_hold(c, CLI_METHOD("Undrain"), &req.base, err);
	if (r == 0 && cli_plan(c, NULL, &plan, &v, &(struct err){ 0 }) == 0 && v.summary) {
		cli_say(c, CLI_NORMAL, "weft apply would make %d circuit%s", v.summary->add,
			v.summary->add == 1 ? "" : "s");
	}
	plan_view_fini(&v);
	return r;
}

/* With --now it ends when the change that ran has been taken back. */
int cmd_freeze(struct cli *c, struct err *err)
{
	Weft__V1__FreezeRequest req = WEFT__V1__FREEZE_REQUEST__INIT;
	const char *reason = cli_opt(c, "comment");
	Weft__V1__FreezeResponse *res;
	ProtobufCMessage *msg = NULL;
	struct out *o;
	int r;

	req.reason = (char *)(reason ? reason : "");
	req.now = cli_has(c, "now");
	r = cli_unary(c, CLI_METHOD("Freeze"), &req.base, &weft__v1__freeze_response__descriptor,
		      CLI_CALL_MS, &msg, err);
	if (r) {
		return r;
	}
	res = (Weft__V1__FreezeResponse *)msg;
	o = out_new(c->format);
	show_holds(c, o, res);
	r = cli_print(o, err);
	if (r == 0 && res->stopping[0]) {
		r = cli_follow_stopped(c, res->stopping, err);
	}
	rpc_free_message(msg);
	return r;
}

int cmd_unfreeze(struct cli *c, struct err *err)
{
	Weft__V1__UnfreezeRequest req = WEFT__V1__UNFREEZE_REQUEST__INIT;

	return call_hold(c, CLI_METHOD("Unfreeze"), &req.base, err);
}

/* ---- device port, device recover ---- */

static void show_done(const struct cli *c, struct out *o, const void *answer)
{
	(void)c;
	msg_out_fields(o, ((const Weft__V1__SetPortResponse *)answer)->maintenance, NULL);
}

/* By hand on one device (the answers of both methods are alike), which may be a robot: hence the
 * long deadline. */
static int call(struct cli *c, const char *method, const ProtobufCMessage *req, struct err *err)
{
	return cli_call(c, method, req, &weft__v1__set_port_response__descriptor, RECOVER_MS,
			show_done, err);
}

/* "in3" or "out12": side and number from 1, as everywhere in the command
 * line. Leading zeros and signs are refused. */
static int parse_port(const char *word, Weft__V1__SetPortRequest *req, struct err *err)
{
	const char *number = NULL;
	char *end = NULL;
	long n = 0;

	req->is_out = strncmp(word, "out", 3) == 0;
	if (req->is_out || strncmp(word, "in", 2) == 0) {
		number = word + (req->is_out ? 3 : 2);
		n = strtol(number, &end, 10);
	}
	if (!number || *number < '1' || *number > '9' || *end || n > MODEL_MAX_SIDE) {
		return err_set(err, WEFT_EUSAGE, "port \"%s\": expected in1, "
			       "in2, ... or out1, out2, ...", word);
	}
	req->port = (int32_t)n;
	return 0;
}

/* A reason is needed to disable a port: whoever finds it so will ask. */
int cmd_device_port(struct cli *c, struct err *err)
{
	Weft__V1__SetPortRequest req = WEFT__V1__SET_PORT_REQUEST__INIT;
	const char *reason = cli_opt(c, "reason"), *verb = c->argv[2];
	int r = parse_port(c->argv[1], &req, err);

	if (r) {
		return r;
	}
	req.enable = strcmp(verb, "enable") == 0;
	if (!req.enable && strcmp(verb, "disable") != 0) {
		return err_set(err, WEFT_EUSAGE, "\"%s\": expected enable or "
			       "disable", verb);
	}
	if (!req.enable && !reason) {
		return err_set(err, WEFT_EUSAGE, "why is it disabled? --reason "
			       "says so");
	}
	req.device = c->argv[0];
	req.reason = (char *)(reason ? reason : "");
	req.force = cli_has(c, "force");
	return call(c, CLI_METHOD("SetPort"), &req.base, err);
}

/* One recovery a call, so that the audit trail names what was done. */
int cmd_device_recover(struct cli *c, struct err *err)
{
	static const struct {
		const char *option;
		Weft__V1__Recovery what;
	} kinds[] = {
		{ "homing", WEFT__V1__RECOVERY__RECOVERY_HOMING },
		{ "relock", WEFT__V1__RECOVERY__RECOVERY_RELOCK },
		{ "clear", WEFT__V1__RECOVERY__RECOVERY_CLEAR },
	};
	Weft__V1__RecoverRequest req = WEFT__V1__RECOVER_REQUEST__INIT;
	const char *reason = cli_opt(c, "reason");
	int n = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (cli_has(c, kinds[i].option)) {
			req.what = kinds[i].what;
			n++;
		}
	}
	if (n != 1) {
		return err_set(err, WEFT_EUSAGE, "expected one of --homing, "
			       "--relock and --clear");
	}
	req.device = c->argv[0];
	req.reason = (char *)(reason ? reason : "");
	return call(c, CLI_METHOD("Recover"), &req.base, err);
}
