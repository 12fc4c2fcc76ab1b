/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Talking to weftd: one connection a call, by its socket or by TLS, with the
 * deadlines of private.h; what is fetched in parts, schedules and the fabric
 * in force, is put together here.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/cli/core/private.h"
#include "lib/base/alloc.h"

volatile bool cli_interrupted;
static atomic_bool deadline_met;

/* Only sets the flag: calls and solvers look at it and end by themselves. */
static void on_signal(int number)
{
	(void)number;
	cli_interrupted = true;
}

void cli_catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

int cli_opt_deadline(const struct cli *c, struct deadline *d, struct err *err)
{
	int64_t limit_ns = 0;
	int r = cli_opt_unit(c, "time-limit", UNIT_NS, &limit_ns, err);

	*d = deadline_in(r ? 0 : limit_ns, &deadline_met);
	return r;
}

void cli_out_deadline(struct out *o)
{
	if (deadline_met) {
		out_bool(o, "deadline_met", true);
	}
}

/* By then a solver would have seen the flag. */
static void on_alarm(int number)
{
	(void)number;
	raise(SIGTERM);
}

static void on_stop(int number)
{
	on_signal(number);
	signal(SIGTERM, SIG_DFL);
	alarm(CLI_STOP_S);
}

void cli_stop_on_signals(void)
{
	struct sigaction stop = { .sa_handler = on_stop, .sa_flags = SA_RESETHAND };
	struct sigaction late = { .sa_handler = on_alarm };

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGALRM, &late, NULL);
}

/* Over TCP, to HOST:PORT or [V6]:PORT. */
static int connect_server(struct cli *c, struct rpc_client **out, struct err *err)
{
	const struct rpc_tls_files files = { .cert = c->tls_cert,
					     .key = c->tls_key,
					     .ca = c->tls_ca };
	const char *colon = strrchr(c->server, ':');
	const char *host = c->server + (c->server[0] == '[');
	char name[256], *end = NULL;
	size_t len = colon ? (size_t)(colon - host) : 0;
	long port = colon ? strtol(colon + 1, &end, 10) : 0;

	len -= host > c->server && len > 0;	/* the other bracket */
	/* *end is read only when there is a colon, as len is 0 otherwise. */
	if (len == 0 || len >= sizeof(name) || *end || port <= 0 || port > 65535) {
		return err_set(err, WEFT_EUSAGE, "--server: \"%s\" is not HOST:PORT", c->server);
	}
	if (!files.cert || !files.key || !files.ca) {
		return err_set(err, WEFT_EUSAGE, "--server needs --tls-cert, "
			       "--tls-key and --tls-ca");
	}
	memcpy(name, host, len);
	name[len] = '\0';
	return rpc_client_open_tcp(name, (int)port, &files, CLI_CONNECT_MS, out, err);
}

/* Over the Unix socket, whose file's mode decides who may connect. */
static int connect_socket(struct cli *c, struct rpc_client **out, struct err *err)
{
	int r;

	r = rpc_client_open(c->socket, CLI_CONNECT_MS, out, err);
	if (r == WEFT_EUNAVAIL && !err->hint[0]) {
		err_hint(err, "--socket or WEFT_SOCKET names another socket");
	} else if (r == WEFT_EDENIED) {
		err_hint(err, "the mode of the socket file says who may "
			      "connect");
	}
	return r;
}

/* The trace of the caller, if it has one, is passed on to weftd. */
static const char *trace_parent(void)
{
	const char *text = getenv("TRACEPARENT");

	return text && strlen(text) == 55 && strspn(text, "0123456789abcdef-") == 55 ? text : NULL;
}

/* --server (or WEFT_SERVER) wins over the socket. */
int cli_connect(struct cli *c, struct rpc_client **out, struct err *err)
{
	int r = c->server ? connect_server(c, out, err)
			  : connect_socket(c, out, err);

	if (r == 0) {
		rpc_client_header(*out, "traceparent", trace_parent());
	}
	return r;
}

int cli_unary(struct cli *c, const char *method, const ProtobufCMessage *request,
	      const ProtobufCMessageDescriptor *response, int timeout_ms, ProtobufCMessage **out,
	      struct err *err)
{
	struct rpc_client *client = NULL;
	int r = cli_connect(c, &client, err);

	if (r == 0) {
		r = rpc_client_unary(client, method, request, response, timeout_ms, out, err);
	}
	rpc_client_close(client);
	return r;
}

int cli_call(struct cli *c, const char *method, const ProtobufCMessage *request,
	     const ProtobufCMessageDescriptor *response, int timeout_ms, cli_show_fn show,
	     struct err *err)
{
	ProtobufCMessage *answer = NULL;
	int r = cli_unary(c, method, request, response, timeout_ms, &answer, err);
	struct out *o;

	if (r) {
		return r;
	}
	o = out_new(c->format);
	show(c, o, answer);
	rpc_free_message(answer);
	return cli_print(o, err);
}

/* ---- schedules ---- */

/* A schedule comes in pieces of MSG_PIECE bytes; each says whether it is one
 * on what remains of a degraded job. */
struct pieces {
	struct buf *bytes;
	bool degraded;
};

/* Non-zero, which cancels the call, when memory or the limit is exceeded. */
static int on_piece(const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__GetScheduleResponse *p = (const Weft__V1__GetScheduleResponse *)msg;
	struct pieces *to = arg;

	buf_add(to->bytes, p->data.data, p->data.len);
	to->degraded = p->degraded;
	return to->bytes->len > CLI_MAX_SCHEDULE;
}

int cli_fetch_schedule(struct cli *c, const char *job, struct buf *bytes, struct err *err)
{
	Weft__V1__GetScheduleRequest req = WEFT__V1__GET_SCHEDULE_REQUEST__INIT;
	struct pieces to = { .bytes = bytes };
	struct rpc_client *client = NULL;
	int r = cli_connect(c, &client, err);

	req.job = x_ndup(job, strcspn(job, "/"));
	req.collective = (char *)job + strlen(req.job) + (job[strlen(req.job)] == '/');
	req.step = job[0] && job[strlen(job) - 1] == '/';
	if (r == 0) {
		r = rpc_client_call(client, CLI_METHOD("GetSchedule"), &req.base,
				    &weft__v1__get_schedule_response__descriptor, 0, on_piece, &to,
					    NULL,
				    err);
	}
	free(req.job);
	if (r == 0 && to.degraded) {
		cli_say(c, CLI_NORMAL, "job %s: some of its light is dead; "
			"this is the schedule on what remains (weft status)",
			job);
	}
	if (r == WEFT_ECANCELED) {
		r = err_set(err, WEFT_ELIMIT, "job %s: its schedule does not fit", job);
	}
	rpc_client_close(client);
	return r;
}

/* ---- the fabric ---- */

/* Only the plan file of a plan's parts is of interest. */
static int on_part(const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__PlanResponse *part = (const Weft__V1__PlanResponse *)msg;
	struct buf *file = arg;

	if (part->part_case == WEFT__V1__PLAN_RESPONSE__PART_FILE) {
		buf_add(file, part->file.data, part->file.len);
	}
	return 0;
}

int cli_fetch_plan(struct cli *c, Weft__V1__Mode mode, int timeout_ms, struct buf *out,
		   struct err *err)
{
	Weft__V1__PlanRequest req = WEFT__V1__PLAN_REQUEST__INIT;
	struct rpc_client *client = NULL;
	int r = cli_connect(c, &client, err);

	req.want_file = true;
	req.mode = mode;
	if (r == 0) {
		r = rpc_client_call(client, CLI_METHOD("Plan"), &req.base,
				    &weft__v1__plan_response__descriptor, timeout_ms, on_part,
				    out, NULL, err);
	}
	rpc_client_close(client);
	return r;
}

int cli_fetch_fabric(struct cli *c, int timeout_ms, struct model_fabric **out, struct err *err)
{
	struct plan_file file;
	struct buf bytes = { 0 };
	int r;

	if ((r = cli_fetch_plan(c, WEFT__V1__MODE__MODE_SAFE, timeout_ms, &bytes, err)) == 0 &&
	    (r = plan_file_read(buf_cstr(&bytes), bytes.len, &file, err)) == 0) {
		r = cli_parse_config(&file.config, out, err);
		plan_file_fini(&file);
	}
	buf_fini(&bytes);
	return r;
}
