/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft explain, version, complete: about the command line itself. What is explained are the
 * exit codes (exit.c), the error codes and the kinds of problems, each of which has its row in a
 * table here: a test goes through all of the API's kinds, so that none is without a word on
 * what it means and what to do. version is the one command that works with and without weftd.
 */
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
#define KIND(k) [WEFT__V1__PROBLEM_KIND__PROBLEM_KIND_##k]

/* Every kind of problem that status lists. */
static const struct problem_help {
	const char *meaning, *advice;
} problem_kinds[] = {
	KIND(DEVICE_UNREACHABLE) = { "a device did not answer when it was asked last",
		"Its light is assumed to be as it was read last. Its power, its network, its "
		"address; changes that need it are refused until it answers." },
	KIND(DEVICE_ALARM) = { "a device reports an alarm of its own",
		"Look at the device: the text is what it says." },
	KIND(PORTS_FAILED) = { "a device reports ports that failed",
		"Replace them; list them under \"dead\" in the file until then, and jobs avoid "
		"them." },
	KIND(PARTS_FAILED) = { "fibres or resonators of a ring failed",
		"\"weft apply\" loads programs that do without; list under \"dead\" what stays "
		"broken." },
	KIND(SETTINGS_UNLOCKED) = { "resonators of a ring hold no wave",
		"\"weft device recover NAME --relock\" has them search again." },
	KIND(CIRCUITS_DARK) = { "intended circuits are missing, or there without light",
		"\"weft diff\" names them, \"weft apply\" makes them again where it can." },
	KIND(CIRCUITS_UNEXPECTED) = { "circuits are there that weft did not make",
		"They are their owner's; \"weft apply --mode update\" takes away what is in the "
		"way." },
	KIND(PROGRAM_WRONG) = { "a ring's program is missing, or another is loaded",
		"\"weft apply\" loads what is intended." },
	KIND(CIRCUITS_PENDING) = { "circuits belong to a change that was interrupted",
		"\"weft apply\" or \"weft rollback\": either ends it." },
	KIND(CIRCUITS_LOSSY) = { "circuits lose more than the configuration says, or than they did",
		"Clean or replace the fibre; \"weft device show DEVICE\" has the loss of each." },
	KIND(LINKS_WRONG) = { "hosts do not receive the light that is meant for them",
		"The links and transceivers of the ports that \"weft status\" lists; how they are "
		"cabled (\"weft bringup\")." },
	KIND(HOSTS_SILENT) = { "hosts cannot be asked what they receive",
		"Their network namespaces: do they exist, and may weftd enter them?" },
	KIND(JOB_DEGRADED) = { "a job has lost light, and uses what remains",
		"\"weft apply\" makes the fewest circuits that bring back what can be." },
	KIND(JOB_DOWN) = { "no schedule of a job works on what remains of its light",
		"\"weft apply\", or repair what its reason names." },
	KIND(JOBS_NOT_PLANNED) = { "the jobs cannot be planned, so what they have is not known",
		"The text tells why; \"weft plan\" has all of it." },
	KIND(CHANGED_BY_OTHERS) = { "others changed circuits of a device while weft changed it",
		"Let one controller change it. The problem ends 15 minutes after the last such "
		"change." },
	KIND(CHANGE_WAITS) = { "a change hangs on a device that does not answer",
		"Bring the device back and it ends by itself; or, after the time that is told, "
		"\"weft apply\" or \"weft rollback\"." },
	KIND(STORE) = { "the store's copy took its place, or no copy can be made",
		"Look at the disk; see what differs (\"weft diff\"), and apply what is wanted." },
	KIND(ETCD) = { "etcd does not answer the leader, or takes no transaction",
		"Its space and its members; weftd goes on by itself once it answers." },
};

#undef KIND
#define N_KINDS (int)(sizeof(problem_kinds) / sizeof(problem_kinds[0]))

/* "circuits-dark", as status writes it. */
static const char *kind_name(int kind, char *buf, int size)
{
	return msg_enum(&weft__v1__problem_kind__descriptor, kind, buf, size);
}

/* The table's row of that kind, NULL: none is called so. */
static const struct problem_help *find_problem(const char *what)
{
	char name[64];

	for (int k = 1; k < N_KINDS; k++) {
		if (strcasecmp(what, kind_name(k, name, sizeof(name))) == 0) {
			return problem_kinds[k].meaning ? &problem_kinds[k] : NULL;
		}
	}
	return NULL;
}

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

static void out_problems(struct out *o)
{
	char name[64];

	out_array(o, "problems");
	for (int k = 1; k < N_KINDS; k++) {
		out_object(o, NULL);
		out_str(o, "kind", kind_name(k, name, sizeof(name)));
		out_str(o, "meaning", problem_kinds[k].meaning);
		out_end(o);
	}
	out_end(o);
}

/* {exit_codes: [{exit, name, meaning}], error_codes: [{code, exit,
 * meaning}], problems: [{kind, meaning}]} */
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
	out_problems(o);
	return cli_print(o, err);
}

/* {problem, meaning, advice} */
static int explain_problem(struct cli *c, const struct problem_help *p, struct err *err)
{
	struct out *o = out_new(c->format);
	char name[64];

	out_str(o, "problem", kind_name((int)(p - problem_kinds), name, sizeof(name)));
	out_str(o, "meaning", p->meaning);
	out_str(o, "advice", p->advice);
	return cli_print(o, err);
}

/* An exit code by number, an error code or a kind of problem by name, in any case: {code, error,
 * exit, name, meaning, advice}; the first two of error codes only. */
int cmd_explain(struct cli *c, struct err *err)
{
	const struct cli_exit *e = NULL;
	const char *what = c->argc ? c->argv[0] : NULL, *meaning = NULL;
	const struct problem_help *problem = what ? find_problem(what) : NULL;
	struct out *o;
	char *end;
	long number;

	if (!what) {
		return explain_all(c, err);
	}
	if (problem) {
		return explain_problem(c, problem, err);
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
		err_set(err, WEFT_ENOTFOUND, "\"%s\" is no exit code, error code or kind "
			"of problem", what);
		err_hint(err, "\"weft explain\" lists them");
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
