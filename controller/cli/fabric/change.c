/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft apply, rollback, confirm, cancel: what changes devices, with progress
 * and result.
 *
 * A change is one streaming call: weftd sends events until a verdict, which
 * decides the exit code (cli_exit_verdict). Every request has an id, made up
 * here unless --request-id names one, for two reasons: Ctrl-C can cancel this
 * change and no other, and a retry with the same id does not start a second
 * change. After Ctrl-C the command does not just leave: it asks weftd to
 * cancel and shows how the change is rolled back; a second Ctrl-C leaves, and
 * weftd goes on by itself.
 *
 * On stdout stands only the result: {verdict, change, generation, proof and
 * left (of committed changes), took_ns}.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "controller/cli/core/private.h"
#include "controller/plan/plan.h"
#include "lib/base/file.h"
#include "weft/v1/jobs.pb-c.h"

/* Bytes of a plan or fabric file that are read at most. */
#define MAX_SOURCE ((size_t)64 << 20)
#define ID_BYTES 16

/* 32 hexadecimal digits. WEFT_EIO without random numbers of the kernel. */
static int new_request_id(char id[2 * ID_BYTES + 1], struct err *err)
{
	unsigned char random[ID_BYTES];

	if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
		return err_set(err, WEFT_EIO, "no random numbers");
	}
	for (int i = 0; i < ID_BYTES; i++) {
		snprintf(id + 2 * i, 3, "%02x", random[i]);
	}
	return 0;
}

/* Of Apply, Rollback and Cancel: their responses are alike. */
static int on_event(const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__ChangeEvent *ev = ((const Weft__V1__ApplyResponse *)msg)->event;

	if (ev) {
		progress_event(arg, ev);
	}
	return 0;
}

/* Runs a call that sends events of a change to its end; p gets them. WEFT_ECANCELED
 * when cli_interrupted became true meanwhile. No time limit: robots take
 * hours. */
static int stream(struct cli *c, const char *method, const ProtobufCMessage *req,
		  struct progress *p, struct err *err)
{
	struct rpc_client *client = NULL;
	int r = cli_connect(c, &client, err);

	if (r == 0) {
		r = rpc_client_call(client, method, req, &weft__v1__apply_response__descriptor, 0,
				    on_event, p, &cli_interrupted, err);
	}
	rpc_client_close(client);
	progress_end(p);
	return r;
}

/* After Ctrl-C: weftd takes back what was done; its events go on here. */
static int cancel(struct cli *c, const char *id, struct progress *p, struct err *err)
{
	Weft__V1__CancelRequest req = WEFT__V1__CANCEL_REQUEST__INIT;
	int r;

	cli_interrupted = false;
	cli_say(c, CLI_NORMAL, "stopping; what was done is taken back");
	err_clear(err);
	req.request_id = (char *)id;
	r = stream(c, CLI_METHOD("Cancel"), &req.base, p, err);
	if (r == WEFT_ECANCELED && cli_interrupted) {
		err_set(err, WEFT_ECANCELED, "no longer waiting; weftd goes "
					     "on rolling back");
		err_hint(err, "\"weft status\" shows how it ended");
	}
	return r;
}

/* The shape is told above; the generation is the one in force afterwards. */
static int print_result(struct cli *c, const struct progress *p, struct err *err)
{
	struct out *o = out_new(c->format);
	char text[32];

	out_str(o, "verdict", msg_enum(&weft__v1__verdict__descriptor, (int)p->verdict,
				       text, sizeof(text)));
	out_int(o, "change", p->change);
	out_int(o, "generation", p->generation);
	if (p->verdict == WEFT__V1__VERDICT__VERDICT_COMMITTED) {
		out_str(o, "proof", msg_enum(&weft__v1__proof__descriptor, (int)p->level,
					     text, sizeof(text)));
		if (p->left > 0 || c->format != OUT_TABLE) {
			out_int(o, "left", p->left);
		}
	}
	cli_out_ns(c, o, "took", p->took_ns);
	if (p->left > 0) {
		out_note(o, "left: circuits to be repaired; \"weft status\" says which and why");
	}
	return cli_print(o, err);
}

/* Runs a change to its end, cancelling it on Ctrl-C. Returns an exit code of
 * its own once there is a verdict, whatever it says; errors are then printed
 * here, since what is returned is no error. Without a verdict, the error. */
static int run_change(struct cli *c, const char *method, const ProtobufCMessage *req,
		      const char *id, struct err *err)
{
	struct progress p;
	struct err print = { 0 };
	int r;

	progress_init(&p, c);
	cli_catch_signals();
	r = stream(c, method, req, &p, err);
	if (r == WEFT_ECANCELED && cli_interrupted) {
		r = cancel(c, id, &p, err);
	}
	if (!p.has_result) {
		if (r) {
			return r;
		}
		return err_set(err, WEFT_EUNAVAIL,
			       "weftd ended the call without a "
			       "result");
	}
	if (r) {
		cli_report(err);
	}
	if (print_result(c, &p, &print)) {
		cli_report(&print);
	}
	return cli_exit_verdict(p.verdict, r);
}

/* ---- apply ---- */

/* Sets *field to n when --expect-generation is given; absent means any
 * generation. */
static int expected_generation(const struct cli *c, Weft__V1__Number *n,
			       Weft__V1__Number **field, struct err *err)
{
	if (!cli_has(c, "expect-generation")) {
		return 0;
	}
	weft__v1__number__init(n);
	*field = n;
	return cli_opt_int(c, "expect-generation", 0, INT64_MAX, &n->value, err);
}

/* The options that all changes share. id: room for a new request id. */
static int common(const struct cli *c, char **comment, char **request_id, char id[2 * ID_BYTES + 1],
		  int64_t *confirm_within_ns, struct err *err)
{
	int r = new_request_id(id, err);

	if (cli_opt(c, "comment")) {
		*comment = (char *)cli_opt(c, "comment");
	}
	*request_id = cli_opt(c, "request-id")
			      ? (char *)cli_opt(c, "request-id")
			      : id;
	if (r) {
		return r;
	}
	return cli_opt_unit(c, "confirm-within", UNIT_NS, confirm_within_ns, err);
}

/* Without a file: a plan of the configuration in force, which makes what is
 * missing of it. */
static int read_present(struct cli *c, Weft__V1__ApplyRequest *req, char **data, struct err *err)
{
	struct buf file = { 0 };
	int r = cli_fetch_plan(c, req->mode, 0, &file, err);

	if (r) {
		buf_fini(&file);
		return r;
	}
	req->name = (char *)"";
	req->source_case = WEFT__V1__APPLY_REQUEST__SOURCE_PLAN_FILE;
	req->plan_file.len = file.len;
	*data = buf_steal(&file);
	req->plan_file.data = (uint8_t *)*data;
	return 0;
}

/* A plan file, or a fabric file from -f or in the place of the plan: what it
 * is follows from its content. *data holds it and is freed by the caller,
 * also after an error; req points into it. */
static int read_source(struct cli *c, Weft__V1__ApplyRequest *req, char **data, struct err *err)
{
	const char *path = cli_opt(c, "file");
	struct model_fabric *f = NULL;
	size_t len;
	int r;

	if (path && c->argc == 1) {
		return err_set(err, WEFT_EUSAGE,
			       "weft apply: give a plan file or -f "
			       "FABRIC.yaml, and not both");
	}
	if (!path && c->argc == 0) {
		return read_present(c, req, data, err);
	}
	path = path ? path : c->argv[0];
	r = file_read(path, MAX_SOURCE, data, &len, err);
	if (r) {
		return r;
	}
	req->name = (char *)path;
	if (plan_file_is(*data, len)) {
		req->source_case = WEFT__V1__APPLY_REQUEST__SOURCE_PLAN_FILE;
		req->plan_file.data = (uint8_t *)*data;
		req->plan_file.len = len;
		return 0;
	}
	/* Read here as well: all mistakes at once, and none sent. */
	if ((r = model_splice(path, data, &len, err)) == 0) {
		r = cli_parse_config(&(struct model_config){ .name = (char *)path, .text = *data,
							     .len = len }, &f, err);
	}
	model_free(f);
	req->source_case = WEFT__V1__APPLY_REQUEST__SOURCE_CONFIG;
	req->config.data = (uint8_t *)*data;
	req->config.len = len;
	return r;
}

/* With --optimise: a plan of the file, or of the configuration in force, that may choose
 * topologies again. */
static int read_optimised(struct cli *c, Weft__V1__ApplyRequest *to, char **data, struct err *err)
{
	Weft__V1__PlanRequest req = WEFT__V1__PLAN_REQUEST__INIT;
	const char *path = cli_opt(c, "file");
	struct model_fabric *f = NULL;
	struct plan_view v = { 0 };
	int r;

	path = path || c->argc == 0 ? path : c->argv[0];
	if (path && (r = cli_load_fabric(path, &f, err))) {
		return r;
	}
	req.mode = to->mode;
	req.want_file = req.optimise = true;
	r = cli_plan(c, f, &req, &v, err);
	model_free(f);
	if (r == 0) {
		to->source_case = WEFT__V1__APPLY_REQUEST__SOURCE_PLAN_FILE;
		to->plan_file.len = v.file.len;
		*data = buf_steal(&v.file);
		to->plan_file.data = (uint8_t *)*data;
	}
	plan_view_fini(&v);
	return r;
}

int cli_apply_plan(struct cli *c, const struct buf *file, const char *comment, struct err *err)
{
	char id[2 * ID_BYTES + 1];
	Weft__V1__ApplyRequest req;
	int r = new_request_id(id, err);

	if (r) {
		return r;
	}
	weft__v1__apply_request__init(&req);
	req.request_id = id;
	req.comment = (char *)comment;
	req.source_case = WEFT__V1__APPLY_REQUEST__SOURCE_PLAN_FILE;
	req.plan_file = (ProtobufCBinaryData){ file->len, (uint8_t *)file->data };
	return run_change(c, CLI_METHOD("Apply"), &req.base, req.request_id, err);
}

int cmd_apply(struct cli *c, struct err *err)
{
	char id[2 * ID_BYTES + 1];
	Weft__V1__ApplyRequest req;
	Weft__V1__Number generation;
	char *data = NULL;
	int r;

	weft__v1__apply_request__init(&req);
	if ((r = cli_read_mode(c, &req.mode, err)) ||
	    (r = expected_generation(c, &generation, &req.expected_generation,
				     err)) ||
	    (r = common(c, &req.comment, &req.request_id, id,
			&req.confirm_within_ns, err)) ||
	    (r = cli_has(c, "optimise") ? read_optimised(c, &req, &data, err)
					: read_source(c, &req, &data, err))) {
		free(data);
		return r;
	}
	r = run_change(c, CLI_METHOD("Apply"), &req.base, req.request_id, err);
	free(data);
	return r;
}

/* ---- rollback ---- */

/* Without an argument weftd goes to the generation before. 78 when that is
 * not on record. */
int cmd_rollback(struct cli *c, struct err *err)
{
	char id[2 * ID_BYTES + 1];
	Weft__V1__RollbackRequest req = WEFT__V1__ROLLBACK_REQUEST__INIT;
	Weft__V1__Number generation, to = WEFT__V1__NUMBER__INIT;
	int r;

	if (c->argc == 1) {
		char *end;

		to.value = strtoll(c->argv[0], &end, 10);
		if (end == c->argv[0] || *end || to.value < 0) {
			return err_set(err, WEFT_EUSAGE,
				       "weft rollback: \"%s\" is not a "
				       "generation", c->argv[0]);
		}
		req.to = &to;
	}
	if ((r = expected_generation(c, &generation, &req.expected_generation, err)) ||
	    (r = common(c, &req.comment, &req.request_id, id, &req.confirm_within_ns, err))) {
		return r;
	}
	r = run_change(c, CLI_METHOD("Rollback"), &req.base, req.request_id, err);
	if (r == WEFT_ENOTFOUND) {
		cli_report(err);
		return CLI_NOT_REVERTABLE;
	}
	return r;
}

/* ---- light of a step ---- */

int cmd_job_light(struct cli *c, struct err *err)
{
	char id[2 * ID_BYTES + 1];
	Weft__V1__SetLightRequest req = WEFT__V1__SET_LIGHT_REQUEST__INIT;
	int r = new_request_id(id, err);

	req.job = c->argv[0];
	req.collective = c->argv[1];
	req.request_id = id;
	return r ? r : run_change(c, "/weft.v1.JobsService/SetLight", &req.base, id, err);
}

/* ---- confirm ---- */

/* {"confirmed": CHANGE}. Change 0 means whichever awaits confirmation. */
int cmd_confirm(struct cli *c, struct err *err)
{
	Weft__V1__ConfirmRequest req = WEFT__V1__CONFIRM_REQUEST__INIT;
	ProtobufCMessage *res;
	struct out *o;
	int r;

	if (c->argc == 1) {
		char *end;

		req.change = strtoll(c->argv[0], &end, 10);
		if (*end || req.change <= 0) {
			return err_set(err, WEFT_EUSAGE, "weft confirm: \"%s\" "
				       "is not the number of a change",
				       c->argv[0]);
		}
	}
	r = cli_unary(c, CLI_METHOD("Confirm"), &req.base, &weft__v1__confirm_response__descriptor,
		      CLI_CALL_MS, &res, err);
	if (r) {
		return r;
	}
	o = out_new(c->format);
	out_int(o, "confirmed", ((Weft__V1__ConfirmResponse *)res)->change);
	rpc_free_message(res);
	return cli_print(o, err);
}

/* ---- cancel ---- */

/* Nothing to cancel is success, unless a request was named. */
int cmd_cancel(struct cli *c, struct err *err)
{
	Weft__V1__CancelRequest req = WEFT__V1__CANCEL_REQUEST__INIT;
	struct err print = { 0 };
	struct progress p;
	int r;

	if (cli_opt(c, "request-id")) {
		req.request_id = (char *)cli_opt(c, "request-id");
	}
	progress_init(&p, c);
	r = stream(c, CLI_METHOD("Cancel"), &req.base, &p, err);
	if (r == WEFT_ENOTFOUND && !cli_has(c, "request-id")) {
		cli_say(c, CLI_NORMAL, "no change is under way");
		return 0;
	}
	if (!p.has_result) {
		return r;
	}
	/* What was asked for is that the change stops: rolled back is fine,
	 * but not that going back failed. */
	if (r == WEFT_ECANCELED && p.verdict != WEFT__V1__VERDICT__VERDICT_STUCK) {
		r = 0;
	}
	if (r) {
		cli_report(err);
	}
	if (print_result(c, &p, &print)) {
		cli_report(&print);
	}
	return r ? cli_exit_verdict(p.verdict, r) : 0;
}

/* ---- freeze --now ---- */

int cli_follow_stopped(struct cli *c, const char *who, struct err *err)
{
	Weft__V1__CancelRequest req = WEFT__V1__CANCEL_REQUEST__INIT;
	struct progress p;
	char text[32];
	int r;

	cli_say(c, CLI_NORMAL, "stopping the change of %s; what was done is taken back", who);
	progress_init(&p, c);
	r = stream(c, CLI_METHOD("Cancel"), &req.base, &p, err);
	if (!p.has_result) {
		/* It ended before anyone could look: nothing begins any more. */
		cli_say(c, CLI_NORMAL, "it has ended: \"weft history\" says how");
		err_clear(err);
		return 0;
	}
	cli_say(c, CLI_NORMAL, "change %lld: %s", (long long)p.change,
		msg_enum(&weft__v1__verdict__descriptor, (int)p.verdict, text, sizeof(text)));
	if (p.verdict != WEFT__V1__VERDICT__VERDICT_STUCK) {
		err_clear(err);
		return 0;
	}
	cli_report(err);
	return cli_exit_verdict(p.verdict, r);
}
