/* SPDX-License-Identifier: Apache-2.0 */
/* weft explain, version, complete: about the command line itself. */
#include <stdlib.h>
#include <string.h>

#include "collective/routing/routes.h"
#include "controller/cli/core/private.h"
#include "controller/plan/plan.h"
#include "controller/store/store.h"
#include "lib/base/version.h"

/* Every error code of lib/base/err.h in plain words; the exit code follows
 * from err_exit_code(). */
static const struct {
	enum weft_err code;
	const char *meaning;
} errors[] = {
	{ WEFT_EINVAL, "a configuration or data file is wrong" },
	{ WEFT_EUSAGE, "the command line is wrong" },
	{ WEFT_EIO, "a file or socket failed" },
	{ WEFT_ENOTFOUND, "the named thing does not exist" },
	{ WEFT_ESTALE, "made from an older state, or locked by a change that "
		       "runs" },
	{ WEFT_EDENIED, "not permitted" },
	{ WEFT_EUNAVAIL, "a device or weftd does not answer" },
	{ WEFT_ETIMEOUT, "a deadline passed" },
	{ WEFT_ECANCELED, "stopped on request" },
	{ WEFT_EUNSUPPORTED, "valid, but weft cannot do it" },
	{ WEFT_EINFEASIBLE, "proven to have no solution" },
	{ WEFT_EVERIFY, "what was read back or replayed is wrong" },
	{ WEFT_ELIMIT, "a limit of size, depth or number was hit" },
	{ WEFT_EDEVICE, "a device answered with an error" },
	{ WEFT_EINTERNAL, "a fault in weft; please report it" },
	{ WEFT_EHELD, "another job has what is asked for: a port of a circuit, or hosts, when the "
		      "request is not to wait (weft circuit add without --wait). \"weft circuit "
		      "find PORT\" shows who has it and until when" },
};

#define N_ERRORS (sizeof(errors) / sizeof(errors[0]))

/* NULL: no such exit code. */
static const struct cli_exit *find_exit(int code)
{
	for (const struct cli_exit *e = cli_exits; e->name; e++) {
		if (e->code == code) {
			return e;
		}
	}
	return NULL;
}

static void out_exit(struct out *o, const struct cli_exit *e)
{
	out_int(o, "exit", e->code);
	out_str(o, "name", e->name);
	out_str(o, "meaning", e->meaning);
	out_str(o, "advice", e->advice);
}

/* {exit_codes: [{exit, name, meaning}], error_codes: [{code, exit,
 * meaning}]} */
static int explain_all(struct cli *c, struct err *err)
{
	struct out *o = out_new(c->format);

	out_array(o, "exit_codes");
	for (const struct cli_exit *e = cli_exits; e->name; e++) {
		out_object(o, NULL);
		out_int(o, "exit", e->code);
		out_str(o, "name", e->name);
		out_str(o, "meaning", e->meaning);
		out_end(o);
	}
	out_end(o);
	out_array(o, "error_codes");
	for (size_t i = 0; i < N_ERRORS; i++) {
		out_object(o, NULL);
		out_str(o, "code", err_name(errors[i].code));
		out_int(o, "exit", err_exit_code(errors[i].code));
		out_str(o, "meaning", errors[i].meaning);
		out_end(o);
	}
	out_end(o);
	return cli_print(o, err);
}

/* An exit code by number or an error code by name, in any case: {code, error,
 * exit, name, meaning, advice}; the first two of error codes only. */
int cmd_explain(struct cli *c, struct err *err)
{
	const struct cli_exit *e = NULL;
	const char *what = c->argc ? c->argv[0] : NULL, *meaning = NULL;
	struct out *o;
	char *end;
	long number;

	if (!what) {
		return explain_all(c, err);
	}
	number = strtol(what, &end, 10);
	if (end != what && *end == '\0') {
		e = find_exit((int)number);
	}
	for (size_t i = 0; i < N_ERRORS && !e; i++) {
		const char *name = err_name(errors[i].code);

		if (strcasecmp(what, name) == 0 || strcasecmp(what, name + 1) == 0) {
			meaning = errors[i].meaning;
			e = find_exit(err_exit_code(errors[i].code));
		}
	}
	if (!e) {
		err_set(err, WEFT_ENOTFOUND, "\"%s\" is neither an exit code nor an error code",
			what);
		err_hint(err, "\"weft explain\" lists both");
		return err->code;
	}
	o = out_new(c->format);
	if (meaning) {
		out_str(o, "code", what);
		out_str(o, "error", meaning);
	}
	out_exit(o, e);
	return cli_print(o, err);
}

/* weftd and the store_format of its files, if it answers: null, with a remark, if it does not. */
static void out_weftd_version(struct cli *c, struct out *o)
{
	Weft__V1__StatusRequest req = WEFT__V1__STATUS_REQUEST__INIT;
	ProtobufCMessage *msg = NULL;
	const Weft__V1__StatusResponse *s;
	struct err err = { 0 };

	req.brief = true;
	if (cli_unary(c, CLI_METHOD("Status"), &req.base, &weft__v1__status_response__descriptor,
		      CLI_CONNECT_MS, &msg, &err)) {
		out_null(o, "weftd");
		out_note(o, "weftd: %s", err.msg);
		return;
	}
	s = (const Weft__V1__StatusResponse *)msg;
	out_str(o, "weftd", s->version);
	out_int(o, "weftd_store_format", s->store_format);
	rpc_free_message(msg);
}

/* {weft, weftd, weftd_store_format, api, store_format, fabric_file, plan_file, schedule_file,
 * routes_file, features, without}: of this program what it reads and writes, and what a small
 * build leaves out. */
int cmd_version(struct cli *c, struct err *err)
{
	struct out *o = out_new(c->format);

	out_str(o, "weft", build_version);
	out_weftd_version(c, o);
	out_str(o, "api", "weft.v1");
	out_int(o, "store_format", STORE_VERSION);
	out_int(o, "fabric_file", MODEL_FORMAT_VERSION);
	out_str(o, "plan_file", PLAN_FORMAT);
	out_int(o, "schedule_file", COLL_FORMAT_VERSION);
	out_int(o, "routes_file", ROUTES_VERSION);
	out_str(o, "features", build_features);
	if (build_without[0]) {
		out_str(o, "without", build_without);
	}
	return cli_print(o, err);
}

/* Called by the shell's completion with the words after "weft"; --all lists
 * every verb, for tests and documentation. */
int cmd_complete(struct cli *c, struct err *err)
{
	struct buf words = { 0 }, b = { 0 };
	int r;

	if (c->argc == 1 && strcmp(c->argv[0], "--all") == 0) {
		cli_list_verbs(cli_root, &b);
	} else {
		cli_complete(cli_root, c->argc, c->argv, &words);
		cli_complete_names(c, buf_cstr(&words), &b);
		buf_fini(&words);
	}
	r = cli_print_bytes(buf_cstr(&b), b.len, err);
	buf_fini(&b);
	return r;
}
