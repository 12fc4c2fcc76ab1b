/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft circuit: light from port to port.
 *
 * A group of circuits is a job, so each verb is a call about jobs: added and set groups are
 * requested and followed until they run. What runs is printed as the devices say it is, a row a
 * circuit with its proof. A port that another job has is told apart from all other failures, so
 * that a script can wait for it alone.
 */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/cli/core/private.h"
#include "controller/cli/fabric/circuit_file.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "weft/v1/jobs.pb-c.h"

#define JOBS_METHOD(name) "/weft.v1.JobsService/" name

/* ---- reading ------------------------------------------------------------- */

/* --lease: nothing, or longer than none. */
static int read_lease(const char *text, int64_t *out, struct err *err)
{
	int r = text ? unit_parse(UNIT_NS, text, out, err) : 0;

	if (r) {
		return err_wrap(err, "lease");
	}
	return text && *out <= 0 ? err_set(err, WEFT_EINVAL, "lease: %s: a lease lasts longer than "
					   "that; without one it lasts until it is removed", text)
				 : 0;
}

static int read_options(const struct cli *c, Weft__V1__RequestJobRequest *q, struct err *err)
{
	Weft__V1__Mode mode = WEFT__V1__MODE__MODE_UNSPECIFIED;
	int r;

	if ((r = read_lease(cli_opt(c, "lease"), &q->duration_ns, err)) ||
	    (r = cli_has(c, "mode") ? cli_read_mode(c, &mode, err) : 0)) {
		return r;
	}
	q->mode = mode == WEFT__V1__MODE__MODE_UPDATE ? mode : WEFT__V1__MODE__MODE_UNSPECIFIED;
	q->partial = cli_has(c, "partial");
	q->no_queue = !cli_has(c, "wait");
	return 0;
}

static void read_id(const struct cli *c, Weft__V1__RequestJobRequest *q)
{
	if (cli_opt(c, "request-id")) {
		q->request_id = (char *)cli_opt(c, "request-id");
	}
}

/* ---- printing ------------------------------------------------------------ */

static const char *until_text(const Weft__V1__Job *j, char *buf, int size)
{
	if (!j->duration_ns) {
		return "released";
	}
	if (!j->started_at_ns) {
		return "-";
	}
	return clk_iso(j->started_at_ns + j->duration_ns, buf, size);
}

static void out_circuit(struct out *o, const Weft__V1__Job *j, const Weft__V1__CircuitState *s)
{
	char text[40];

	out_object(o, NULL);
	out_str(o, "group", j->name);
	out_str(o, "from", s->from);
	out_str(o, "to", s->to);
	out_str(o, "direction", s->simplex ? "one-way" : "both");
	out_str(o, "state", msg_enum(&weft__v1__job_state__descriptor, (int)j->state, text,
				     sizeof(text)));
	out_str(o, "proof", j->state == WEFT__V1__JOB_STATE__JOB_STATE_RUNNING ?
		msg_enum(&weft__v1__proof__descriptor, (int)s->proof, text, sizeof(text)) : "-");
	out_str(o, "device", s->device);
	out_int(o, "in", s->in);
	out_int(o, "out", s->out);
	out_str(o, "who", j->who);
	out_str(o, "until", until_text(j, text, sizeof(text)));
	out_str(o, "problem", s->problem[0] ? s->problem : j->problem);
	out_end(o);
}

/* A group: rows for people, its message for programs. */
static int print_group(struct cli *c, const Weft__V1__Job *j, struct err *err)
{
	struct out *o = out_new(c->format);

	if (c->format != OUT_TABLE) {
		msg_out_fields(o, j, NULL);
		return cli_print(o, err);
	}
	out_array(o, "circuits");
	for (size_t i = 0; i < j->n_circuits; i++) {
		out_circuit(o, j, j->circuits[i]);
	}
	out_end(o);
	return cli_print(o, err);
}

/* ---- who has a port ------------------------------------------------------ */

static bool has_port(const Weft__V1__Job *j, const char *port)
{
	bool has = false;

	for (size_t i = 0; i < j->n_circuits && !has; i++) {
		has = strcmp(j->circuits[i]->from, port) == 0 ||
		      strcmp(j->circuits[i]->to, port) == 0;
	}
	return has;
}

/* All jobs that live, and who has a port (NULL: none is asked for); rpc_free_message() *out. */
static int list_jobs(struct cli *c, const char *port, Weft__V1__ListJobsResponse **out,
		     struct err *err)
{
	Weft__V1__ListJobsRequest q = WEFT__V1__LIST_JOBS_REQUEST__INIT;
	ProtobufCMessage *answer = NULL;
	int r;

	q.port = port ? (char *)port : q.port;
	r = cli_unary(c, JOBS_METHOD("ListJobs"), &q.base,
			  &weft__v1__list_jobs_response__descriptor, CLI_CALL_MS, &answer, err);

	*out = (Weft__V1__ListJobsResponse *)answer;
	return r;
}

/* For programs: {reason, message, port, group, who, until}, beside the error. The message begins
 * with the port. */
static void print_held(struct cli *c, const struct err *held)
{
	Weft__V1__ListJobsResponse *m = NULL;
	const size_t len = strcspn(held->msg, " ");
	char *port = x_dup(held->msg), text[40];
	struct err ignored = { 0 };
	struct out *o = out_new(c->format);

	port[len] = '\0';
	out_str(o, "reason", "held");
	out_str(o, "message", held->msg);
	out_str(o, "port", port);
	if (list_jobs(c, NULL, &m, &ignored) == 0) {
		for (size_t i = 0; i < m->n_jobs; i++) {
			if (has_port(m->jobs[i], port)) {
				out_str(o, "group", m->jobs[i]->name);
				out_str(o, "who", m->jobs[i]->who);
				out_str(o, "until", until_text(m->jobs[i], text, sizeof(text)));
				break;
			}
		}
		rpc_free_message(&m->base);
	}
	cli_print(o, &ignored);
	free(port);
}

/* ---- verbs --------------------------------------------------------------- */

/* Success only if each circuit was seen. */
static int finish(struct cli *c, const Weft__V1__Job *j, struct err *err)
{
	bool seen = j->state != WEFT__V1__JOB_STATE__JOB_STATE_RUNNING || j->rate >= 1;
	int r = print_group(c, j, err);

	for (size_t i = 0; i < j->n_circuits &&
			   j->state == WEFT__V1__JOB_STATE__JOB_STATE_RUNNING; i++) {
		seen = seen && j->circuits[i]->proof != WEFT__V1__PROOF__PROOF_UNVERIFIED;
	}
	return r == 0 && !seen ? CLI_PENDING : r;
}

static int request(struct cli *c, struct circuit_group *g, Weft__V1__RequestJobRequest *q,
		   struct err *err)
{
	Weft__V1__CircuitEnds **list = x_new(g->v.n + 1, sizeof(*list));
	Weft__V1__Job *last = NULL;
	bool there = false;
	int r;

	for (size_t i = 0; i < g->v.n; i++) {
		list[i] = &g->v.v[i];
	}
	q->circuits = list;
	q->n_circuits = g->v.n;
	r = cli_follow_job(c, JOBS_METHOD("RequestJob"), &q->base, &last, &there, err);
	if (r == WEFT_EHELD && c->format != OUT_TABLE) {
		print_held(c, err);
	}
	if (r == 0 && there) {
		cli_say(c, CLI_NORMAL, "nothing changed: group %s has them already", last->name);
	}
	if (r == 0 && last) {
		r = finish(c, last, err);
	}
	weft__v1__job__free_unpacked(last, NULL);
	free(list);
	return r;
}

int cmd_circuit_add(struct cli *c, struct err *err)
{
	Weft__V1__RequestJobRequest q = WEFT__V1__REQUEST_JOB_REQUEST__INIT;
	struct circuit_group g = { 0 };
	int r = read_options(c, &q, err);

	if (r == 0 && c->argc % 2) {
		r = err_set(err, WEFT_EUSAGE, "weft circuit add: %s has no other end",
			    c->argv[c->argc - 1]);
	}
	for (int i = 0; i + 1 < c->argc && r == 0; i += 2) {
		r = circuit_group_add(&g, c->argv[i], c->argv[i + 1], cli_has(c, "one-way"), err);
	}
	read_id(c, &q);
	if (cli_opt(c, "name")) {
		q.name = (char *)cli_opt(c, "name");
	}
	if (r == 0) {
		r = request(c, &g, &q, err);
	}
	circuit_group_fini(&g);
	return r;
}

/* WEFT_EINVAL: it is of several groups, or another one. */
static int check_only(const struct circuit_file *f, const char *path, const char *group,
		      struct err *err)
{
	for (size_t i = 0; i < f->groups.n; i++) {
		const char *name = f->groups.v[i].name;

		if (name && strcmp(name, group) != 0) {
			err_set(err, WEFT_EINVAL, "%s has circuits of group %s, not of %s", path,
				name, group);
			err_hint(err, "weft circuit import makes all groups of a file");
			return err->code;
		}
	}
	return f->groups.n > 1 ? err_set(err, WEFT_EINVAL, "%s has circuits of group %s, and of "
					 "none", path, group) : 0;
}

int cmd_circuit_set(struct cli *c, struct err *err)
{
	Weft__V1__RequestJobRequest q = WEFT__V1__REQUEST_JOB_REQUEST__INIT;
	struct circuit_file f = { 0 };
	int r = read_options(c, &q, err);

	read_id(c, &q);
	q.name = (char *)c->argv[0];
	q.replace = true;
	if (r == 0 && (r = circuit_file_read(c->argv[1], &f, err)) == 0 &&
	    (r = check_only(&f, c->argv[1], c->argv[0], err)) == 0) {
		r = request(c, &f.groups.v[0], &q, err);
	}
	circuit_file_fini(&f);
	return r;
}

/* One after the other: what was made before one that cannot be stays. */
static int import_all(struct cli *c, struct circuit_file *f, struct err *err)
{
	Weft__V1__RequestJobRequest q;
	int r = 0, part = 0;

	for (size_t i = 0; i < f->groups.n && r == 0; i++) {
		weft__v1__request_job_request__init(&q);
		q.name = f->groups.v[i].name;
		q.replace = true;
		if ((r = read_options(c, &q, err)) == 0) {
			r = request(c, &f->groups.v[i], &q, err);
		}
		if (r < 0) {
			err_wrap(err, "group %s, the %zu before it are there", q.name, i);
		}
		part = r == CLI_PENDING ? r : part;
		r = r == CLI_PENDING ? 0 : r;
	}
	return r == 0 ? part : r;
}

int cmd_circuit_import(struct cli *c, struct err *err)
{
	struct circuit_file f = { 0 };
	int r = circuit_file_read(c->argv[0], &f, err);

	for (size_t i = 0; i < f.groups.n && r == 0; i++) {
		if (!f.groups.v[i].name) {
			r = err_set(err, WEFT_EINVAL, "%s: circuits %s and %s are of no group",
				    c->argv[0], f.groups.v[i].v.v[0].from,
				    f.groups.v[i].v.v[0].to);
			err_hint(err, "a line \"group NAME\" above them says of which");
		}
	}
	if (r == 0) {
		r = import_all(c, &f, err);
	}
	circuit_file_fini(&f);
	return r;
}

/* Groups on request that live, all of them or one. */
int cmd_circuit_export(struct cli *c, struct err *err)
{
	Weft__V1__ListJobsResponse *m = NULL;
	struct buf b = { 0 };
	int r = list_jobs(c, NULL, &m, err);

	for (size_t i = 0; r == 0 && i < m->n_jobs; i++) {
		const Weft__V1__Job *j = m->jobs[i];

		if (j->n_circuits > 0 && (c->argc == 0 || strcmp(j->name, c->argv[0]) == 0)) {
			circuit_file_put(j, &b);
		}
	}
	if (r == 0 && c->argc > 0 && b.len == 0) {
		r = err_set(err, WEFT_ENOTFOUND, "there is no group \"%s\" of circuits",
			    c->argv[0]);
	}
	if (r == 0) {
		r = cli_write_data(cli_opt(c, "output"), &b, err);
	}
	buf_fini(&b);
	rpc_free_message(m ? &m->base : NULL);
	return r;
}

/* By its name, or by a port of it. */
int cmd_circuit_remove(struct cli *c, struct err *err)
{
	Weft__V1__ReleaseJobRequest q = WEFT__V1__RELEASE_JOB_REQUEST__INIT;
	Weft__V1__ListJobsResponse *m = NULL;
	Weft__V1__Job *last = NULL;
	/* No name of a group has a dot. */
	const bool by_port = strchr(c->argv[0], '.') != NULL;
	int r = by_port ? list_jobs(c, c->argv[0], &m, err) : 0;

	q.name = by_port ? NULL : (char *)c->argv[0];
	for (size_t i = 0; r == 0 && m && i < m->n_jobs; i++) {
		if (has_port(m->jobs[i], m->port)) {
			q.name = m->jobs[i]->name;
		}
	}
	if (r == 0 && !q.name) {
		r = err_set(err, WEFT_ENOTFOUND, "no group that was requested has %s", m->port);
	}
	if (r == 0) {
		r = cli_follow_job(c, JOBS_METHOD("ReleaseJob"), &q.base, &last, NULL, err);
	}
	if (r == 0 && last) {
		r = print_group(c, last, err);
	}
	weft__v1__job__free_unpacked(last, NULL);
	rpc_free_message(m ? &m->base : NULL);
	return r;
}

const char *cli_own_name(void)
{
	const struct passwd *pw = getpwuid(geteuid());

	return pw ? pw->pw_name : "";
}

/* Circuits that are wanted; port: its names, or ""; who NULL: any. */
static void out_list(struct out *o, const Weft__V1__ListJobsResponse *m, const char *port,
		     const char *who)
{
	out_array(o, "circuits");
	for (size_t i = 0; i < m->n_jobs; i++) {
		const Weft__V1__Job *j = m->jobs[i];

		if (who && strcmp(j->who, who) != 0) {
			continue;
		}
		for (size_t k = 0; k < j->n_circuits; k++) {
			const Weft__V1__CircuitState *s = j->circuits[k];

			if (!port[0] || strcmp(s->from, port) == 0 || strcmp(s->to, port) == 0) {
				out_circuit(o, j, s);
			}
		}
	}
	out_end(o);
}

/* held: beside the circuits, who has the port. */
static int print_list(struct cli *c, const char *port, const char *who, bool *held,
		      struct err *err)
{
	Weft__V1__ListJobsResponse *m = NULL;
	struct out *o;
	int r = list_jobs(c, port, &m, err);

	if (r) {
		return r;
	}
	o = out_new(c->format);
	if (held) {
		*held = m->held[0] != '\0';
		out_str(o, "held", m->held);
	}
	out_list(o, m, m->port, who);
	rpc_free_message(&m->base);
	return cli_print(o, err);
}

int cmd_circuit_list(struct cli *c, struct err *err)
{
	return print_list(c, cli_opt(c, "port"), cli_has(c, "mine") ? cli_own_name() : NULL,
			  NULL, err);
}

/* Status 2 when anybody has it: a script asks whether it is free. */
int cmd_circuit_find(struct cli *c, struct err *err)
{
	bool held = false;
	int r = print_list(c, c->argv[0], NULL, &held, err);

	return r == 0 && held ? CLI_PENDING : r;
}

static void show_renewed(const struct cli *c, struct out *o, const void *answer)
{
	const Weft__V1__Job *j = ((const Weft__V1__RenewJobResponse *)answer)->job;
	char text[40];

	(void)c;
	out_str(o, j->n_circuits > 0 ? "group" : "job", j->name);
	out_str(o, "until", until_text(j, text, sizeof(text)));
}

/* A group, or a job. */
int cmd_job_renew(struct cli *c, struct err *err)
{
	Weft__V1__RenewJobRequest q = WEFT__V1__RENEW_JOB_REQUEST__INIT;
	int r = read_lease(c->argv[1], &q.duration_ns, err);

	q.name = (char *)c->argv[0];
	return r ? r : cli_call(c, JOBS_METHOD("RenewJob"), &q.base,
				&weft__v1__renew_job_response__descriptor, CLI_CALL_MS,
				show_renewed, err);
}
