/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft job: request light for a job, release it, list jobs.
 *
 * Requesting and releasing are calls that stream the job each time it moves
 * on, until it runs, has failed or has ended; each step is a line on stderr,
 * and the last state is printed. Ctrl-C only stops waiting: a job is not
 * cancelled by it.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"
#include "lib/base/alloc.h"
#include "lib/base/file.h"
#include "weft/v1/jobs.pb-c.h"

#define JOBS_METHOD(name) "/weft.v1.JobsService/" name

/* ---- calls that stream the job ------------------------------------------- */

/* last: the newest state, owned; NULL before the first. */
struct follow {
	struct cli *c;
	Weft__V1__Job *last;
	bool there;	/* the first state was that it runs: it did before */
};

/* Keeps a copy, as the message goes. The responses of RequestJob and ReleaseJob are alike. */
static int on_job(const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__Job *j = ((const Weft__V1__RequestJobResponse *)msg)->job;
	struct follow *f = arg;
	char state[32];
	uint8_t *data;
	size_t len;

	if (!j) {
		return 0;
	}
	cli_say(f->c, CLI_NORMAL, "job %s: %s%s%s", j->name,
		msg_enum(&weft__v1__job_state__descriptor, (int)j->state,
			 state, sizeof(state)),
		j->problem[0] ? ": " : "", j->problem);
	f->there = !f->last && j->state == WEFT__V1__JOB_STATE__JOB_STATE_RUNNING;
	len = weft__v1__job__get_packed_size(j);
	data = x_alloc(len, 1);
	weft__v1__job__pack(j, data);
	weft__v1__job__free_unpacked(f->last, NULL);
	f->last = x_have(weft__v1__job__unpack(NULL, len, data));
	free(data);
	return 0;
}

/* The job as one row, or its message for programs (state, nodes, rate,
 * problem, ...; docs/api.md). */
static int print_job(struct cli *c, const Weft__V1__Job *j, struct err *err)
{
	struct out *o = out_new(c->format);

	if (c->format == OUT_TABLE) {
		msg_out_requests(o, c->format, (Weft__V1__Job *const *)&j, 1);
	} else {
		msg_out_fields(o, j, NULL);
	}
	return cli_print(o, err);
}

int cli_follow_job(struct cli *c, const char *method, const ProtobufCMessage *req,
		   Weft__V1__Job **last, bool *there, struct err *err)
{
	struct follow f = { .c = c };
	struct rpc_client *client = NULL;
	int r = cli_connect(c, &client, err);

	cli_catch_signals();
	if (r == 0) {
		r = rpc_client_call(client, method, req,
				    &weft__v1__request_job_response__descriptor, 0, on_job, &f,
				    &cli_interrupted, err);
	}
	rpc_client_close(client);
	if (r == WEFT_ECANCELED && cli_interrupted) {
		err_set(err, WEFT_ECANCELED, "no longer waiting; the job stays "
					     "as it is");
		err_hint(err, "\"weft job list\" shows it, \"weft job "
			      "release\" gives it back");
	}
	*last = f.last;
	if (there) {
		*there = f.there;
	}
	return r;
}

/* Runs a call that streams Jobs, and prints the last one. */
static int follow_job(struct cli *c, const char *method,
		      const ProtobufCMessage *req, struct err *err)
{
	Weft__V1__Job *last = NULL;
	int r = cli_follow_job(c, method, req, &last, NULL, err);

	if (r == 0 && last) {
		r = print_job(c, last, err);
	}
	weft__v1__job__free_unpacked(last, NULL);
	return r;
}

/* ---- verbs --------------------------------------------------------------- */

/* --repair; *out stays (degraded) without it. */
static int read_repair(const char *word, Weft__V1__JobRepair *out, struct err *err)
{
	static const char *const words[] = {
		[WEFT__V1__JOB_REPAIR__JOB_REPAIR_DEGRADED] = "degraded",
		[WEFT__V1__JOB_REPAIR__JOB_REPAIR_NONE] = "none",
		[WEFT__V1__JOB_REPAIR__JOB_REPAIR_SPARE] = "spare",
	};

	for (size_t i = 0; word && i < sizeof(words) / sizeof(*words); i++) {
		if (words[i] && strcmp(word, words[i]) == 0) {
			*out = (Weft__V1__JobRepair)i;
			return 0;
		}
	}
	return word ? err_set(err, WEFT_EUSAGE, "--repair: \"%s\" is not "
			      "none, degraded or spare", word)
		    : 0;
}

/* Numbers of the request that options give. */
static int read_numbers(const struct cli *c, Weft__V1__RequestJobRequest *q, struct err *err)
{
	int64_t count = 0, ranks = 0, ports = 0, channels = 0, priority = 0;
	int r;

	if ((r = cli_opt_int(c, "count", 2, MODEL_MAX_HOSTS, &count, err)) ||
	    (r = cli_opt_int(c, "ranks", 2, MODEL_MAX_HOSTS, &ranks, err)) ||
	    (r = cli_opt_int(c, "min-ports", 1, MODEL_MAX_PORTS, &ports,
			     err)) ||
	    (r = cli_opt_int(c, "channels", 1, MODEL_MAX_CHANNELS, &channels,
			     err)) ||
	    (r = cli_opt_int(c, "priority", INT32_MIN, INT32_MAX, &priority,
			     err)) ||
	    (r = cli_opt_unit(c, "size", UNIT_BYTES, &q->size_bytes, err)) ||
	    (r = cli_opt_unit(c, "duration", UNIT_NS, &q->duration_ns,
			      err)) ||
	    (r = cli_opt_unit(c, "grace", UNIT_NS, &q->grace_ns, err)) ||
	    (r = read_repair(cli_opt(c, "repair"), &q->repair, err))) {
		return r;
	}
	q->count = (int32_t)count;
	q->ranks = (int32_t)ranks;
	q->min_ports = (int32_t)ports;
	q->channels = (int32_t)channels;
	q->priority = (int32_t)priority;
	q->preemptible = cli_has(c, "preemptible");
	q->no_wait = cli_has(c, "no-wait");
	return 0;
}

/* Sets a field to an option's text when it was given: protobuf-c's "" stands
 * otherwise. */
static void read_text(const struct cli *c, const char *option, char **field)
{
	if (cli_opt(c, option)) {
		*field = (char *)cli_opt(c, option);
	}
}

/* An expression, arcs, or a file of these, which are kept in `arcs`. */
static int read_topology(const struct cli *c, Weft__V1__RequestJobRequest *q, struct buf *arcs,
			 struct err *err)
{
	const char *text = cli_opt(c, "topology");
	int r;

	if (!text || !model_is_file(text)) {
		read_text(c, "topology", &q->topology);
		return 0;
	}
	r = model_edge_list(text, arcs, err);
	q->topology = (char *)buf_cstr(arcs);
	return r ? err_wrap(err, "--topology") : 0;
}

/* --ports: a number, or names, which are the caller's to free. */
static int read_ports(const struct cli *c, Weft__V1__RequestJobRequest *q, char ***names,
		      struct err *err)
{
	const char *text = cli_opt(c, "ports");
	int64_t count = 0;
	int n = 0, r;

	if (text && strspn(text, "0123456789") == strlen(text)) {
		r = cli_opt_int(c, "ports", 1, MODEL_MAX_PORTS, &count, err);
		q->port_count = (int32_t)count;
		return r;
	}
	r = text ? model_expand(text, MODEL_MAX_PORTS, names, &n, err) : 0;
	q->ports = *names;
	q->n_ports = (size_t)n;
	return r ? err_wrap(err, "--ports") : 0;
}

/* --shape 8x8x16, into the three numbers of q. */
static int read_shape(const struct cli *c, Weft__V1__RequestJobRequest *q, int32_t shape[3],
		      struct err *err)
{
	const char *text = cli_opt(c, "shape");
	int64_t spares = 0;
	int len = 0, r;

	if (text && (sscanf(text, "%6dx%6dx%6d%n", &shape[0], &shape[1], &shape[2], &len) != 3 ||
		     text[len])) {
		return err_set(err, WEFT_EUSAGE, "--shape: \"%.40s\" is not like 8x8x16", text);
	}
	q->shape = shape;
	q->n_shape = text ? 3 : 0;
	q->twist = cli_has(c, "twist");
	r = cli_opt_int(c, "spares", 0, MODEL_MAX_HOSTS, &spares, err);
	q->spares = (int32_t)spares;
	return r;
}

/* --step: a file, whose mesh says how many ranks unless options do. *text: the caller's. */
static int read_step(const struct cli *c, Weft__V1__RequestJobRequest *q, char **text,
		     struct err *err)
{
	int ranks = q->ranks, r;
	size_t len;

	if (!cli_has(c, "step")) {
		return (r = cli_need(c, "collective", err)) ? r : cli_need(c, "size", err);
	}
	r = file_read(cli_opt(c, "step"), MODEL_MAX_TEXT, text, &len, err);
	if (r == 0 && !cli_has(c, "nodes") && q->count == 0) {
		r = model_check_step(*text, &ranks, err);
	}
	q->step = r ? q->step : *text;
	q->ranks = ranks;
	return r;
}

/* The hosts are named (--nodes, expanded here from gpu[00-03]) or counted
 * (--count, --ranks), never both. A name is made up by weftd without one. */
int cmd_job_request(struct cli *c, struct err *err)
{
	Weft__V1__RequestJobRequest q = WEFT__V1__REQUEST_JOB_REQUEST__INIT;
	char **names = NULL, **ports = NULL, *step = NULL;
	struct buf arcs = { 0 };
	int32_t shape[3];
	int n = 0, r;

	if (cli_has(c, "nodes") &&
	    (r = model_expand(cli_opt(c, "nodes"), MODEL_MAX_HOSTS, &names, &n, err))) {
		err_wrap(err, "--nodes");
		goto out;
	}
	if ((r = read_numbers(c, &q, err)) || (r = read_shape(c, &q, shape, err)) ||
	    (r = read_step(c, &q, &step, err))) {
		goto out;
	}
	if (q.n_shape == 0 && cli_has(c, "nodes") + (q.count > 0) + (q.ranks > 0) != 1) {
		r = err_set(err, WEFT_EUSAGE, "weft job request: give one of --nodes, --count, "
			    "--ranks and --shape");
		goto out;
	}
	if ((r = read_ports(c, &q, &ports, err)) || (r = read_topology(c, &q, &arcs, err))) {
		goto out;
	}
	q.nodes = names;
	q.n_nodes = (size_t)n;
	if (c->argc == 1) {
		q.name = (char *)c->argv[0];
	}
	read_text(c, "collective", &q.collective);
	read_text(c, "algorithm", &q.algorithm);
	read_text(c, "ring", &q.ring);
	read_text(c, "protect", &q.protect);
	read_text(c, "request-id", &q.request_id);
	r = follow_job(c, JOBS_METHOD("RequestJob"), &q.base, err);
out:
	model_names_free(names);
	model_names_free(ports);
	buf_fini(&arcs);
	free(step);
	return r;
}

int cmd_job_release(struct cli *c, struct err *err)
{
	Weft__V1__ReleaseJobRequest q = WEFT__V1__RELEASE_JOB_REQUEST__INIT;

	q.name = (char *)c->argv[0];
	return follow_job(c, JOBS_METHOD("ReleaseJob"), &q.base, err);
}

static void show_jobs(const struct cli *c, struct out *o, const void *answer)
{
	const Weft__V1__ListJobsResponse *m = answer;

	msg_out_requests(o, c->format, m->jobs, m->n_jobs);
}

/* "jobs": the queued and running ones, with --all also those that ended. */
int cmd_job_list(struct cli *c, struct err *err)
{
	Weft__V1__ListJobsRequest q = WEFT__V1__LIST_JOBS_REQUEST__INIT;

	q.include_ended = cli_has(c, "all");
	if (c->argc == 1) {
		q.name = (char *)c->argv[0];
	}
	return cli_call(c, JOBS_METHOD("ListJobs"), &q.base,
			&weft__v1__list_jobs_response__descriptor, CLI_CALL_MS, show_jobs, err);
}
