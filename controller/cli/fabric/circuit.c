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
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/vec.h"
#include "weft/v1/jobs.pb-c.h"

#define JOBS_METHOD(name) "/weft.v1.JobsService/" name
#define MAX_FILE (4u << 20)

/* Circuits as they are read, with their names; all owned. */
struct ends_list {
	VEC(Weft__V1__CircuitEnds) v;
	Weft__V1__CircuitEnds **list;
};

static void ends_fini(struct ends_list *e)
{
	for (size_t i = 0; i < e->v.n; i++) {
		free(e->v.v[i].from);
		free(e->v.v[i].to);
	}
	vec_fini(&e->v);
	free(e->list);
}

/* ---- reading ------------------------------------------------------------- */

/* One name, or those of "dut.p[0-3]"; a label may hold anything but brackets. */
static int expand(const char *text, char ***names, int *n, struct err *err)
{
	if (strchr(text, '[')) {
		return model_expand(text, MODEL_MAX_SIDE, names, n, err);
	}
	*names = x_new(2, sizeof(**names));
	(*names)[0] = x_dup(text);
	*n = 1;
	return 0;
}

/* The circuits from one port, or several, to as many others. */
static int add_ends(struct ends_list *e, const char *from, const char *to, bool simplex,
		    struct err *err)
{
	char **a = NULL, **b = NULL;
	int n = 0, m = 0, r = expand(from, &a, &n, err);

	if (r == 0) {
		r = expand(to, &b, &m, err);
	}
	if (r == 0 && n != m) {
		r = err_set(err, WEFT_EINVAL, "%s are %d ports, and %s %d", from, n, to, m);
	}
	for (int i = 0; i < n && r == 0; i++) {
		Weft__V1__CircuitEnds c = WEFT__V1__CIRCUIT_ENDS__INIT;

		c.from = x_dup(a[i]);
		c.to = x_dup(b[i]);
		c.simplex = simplex;
		vec_push(&e->v, c);
	}
	model_names_free(a);
	model_names_free(b);
	return r;
}

/* "A B" or "A B one-way"; nothing is a line, too. */
static int read_line(struct ends_list *e, char *line, struct err *err)
{
	char *word[4] = { NULL }, *rest = line;
	int n = 0;

	line[strcspn(line, "#")] = '\0';
	while (n < 4 && (word[n] = strsep(&rest, " \t\r")) != NULL) {
		n += word[n][0] != '\0';
	}
	if (n == 0) {
		return 0;
	}
	if (n < 2 || n > 3 || (n == 3 && strcmp(word[2], "one-way") != 0)) {
		return err_set(err, WEFT_EINVAL, "expected two ports, and perhaps one-way");
	}
	return add_ends(e, word[0], word[1], n == 3, err);
}

static int read_file(struct ends_list *e, const char *path, struct err *err)
{
	char *text = NULL, *rest, *line;
	size_t len;
	int at = 0, r = file_read(path, MAX_FILE, &text, &len, err);

	rest = text;
	while (r == 0 && (line = strsep(&rest, "\n")) != NULL) {
		at++;
		r = read_line(e, line, err);
		if (r) {
			err_at(err, path, at, 1);
		}
	}
	free(text);
	return r;
}

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
	if (cli_opt(c, "request-id")) {
		q->request_id = (char *)cli_opt(c, "request-id");
	}
	return 0;
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

/* All jobs that live; rpc_free_message() *out. */
static int list_jobs(struct cli *c, Weft__V1__ListJobsResponse **out, struct err *err)
{
	Weft__V1__ListJobsRequest q = WEFT__V1__LIST_JOBS_REQUEST__INIT;
	ProtobufCMessage *answer = NULL;
	int r = cli_unary(c, JOBS_METHOD("ListJobs"), &q.base,
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
	if (list_jobs(c, &m, &ignored) == 0) {
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
	int r = print_group(c, j, err);

	return r == 0 && j->state == WEFT__V1__JOB_STATE__JOB_STATE_RUNNING && j->rate < 1
		? CLI_PENDING : r;
}

static int request(struct cli *c, struct ends_list *e, Weft__V1__RequestJobRequest *q,
		   struct err *err)
{
	Weft__V1__Job *last = NULL;
	bool there = false;
	int r;

	if (e->v.n == 0) {
		return err_set(err, WEFT_EINVAL, "there are no circuits");
	}
	e->list = x_new(e->v.n, sizeof(*e->list));
	for (size_t i = 0; i < e->v.n; i++) {
		e->list[i] = &e->v.v[i];
	}
	q->circuits = e->list;
	q->n_circuits = e->v.n;
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
	return r;
}

int cmd_circuit_add(struct cli *c, struct err *err)
{
	Weft__V1__RequestJobRequest q = WEFT__V1__REQUEST_JOB_REQUEST__INIT;
	struct ends_list e = { 0 };
	int r = read_options(c, &q, err);

	if (r == 0 && c->argc % 2) {
		r = err_set(err, WEFT_EUSAGE, "weft circuit add: %s has no other end",
			    c->argv[c->argc - 1]);
	}
	for (int i = 0; i + 1 < c->argc && r == 0; i += 2) {
		r = add_ends(&e, c->argv[i], c->argv[i + 1], cli_has(c, "one-way"), err);
	}
	if (cli_opt(c, "name")) {
		q.name = (char *)cli_opt(c, "name");
	}
	if (r == 0) {
		r = request(c, &e, &q, err);
	}
	ends_fini(&e);
	return r;
}

int cmd_circuit_set(struct cli *c, struct err *err)
{
	Weft__V1__RequestJobRequest q = WEFT__V1__REQUEST_JOB_REQUEST__INIT;
	struct ends_list e = { 0 };
	int r = read_options(c, &q, err);

	q.name = (char *)c->argv[0];
	q.replace = true;
	if (r == 0 && (r = read_file(&e, c->argv[1], err)) == 0) {
		r = request(c, &e, &q, err);
	}
	ends_fini(&e);
	return r;
}

/* By its name, or by a port of it. */
int cmd_circuit_remove(struct cli *c, struct err *err)
{
	Weft__V1__ReleaseJobRequest q = WEFT__V1__RELEASE_JOB_REQUEST__INIT;
	Weft__V1__ListJobsResponse *m = NULL;
	Weft__V1__Job *last = NULL;
	int r = list_jobs(c, &m, err);

	q.name = (char *)c->argv[0];
	for (size_t i = 0; r == 0 && i < m->n_jobs; i++) {
		if (has_port(m->jobs[i], c->argv[0])) {
			q.name = m->jobs[i]->name;
		}
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

static const char *own_name(void)
{
	const struct passwd *pw = getpwuid(geteuid());

	return pw ? pw->pw_name : "";
}

/* Circuits that are wanted; port, who NULL: any. How many there are. */
static int out_list(struct out *o, const Weft__V1__ListJobsResponse *m, const char *port,
		    const char *who)
{
	int n = 0;

	out_array(o, "circuits");
	for (size_t i = 0; i < m->n_jobs; i++) {
		const Weft__V1__Job *j = m->jobs[i];

		if (who && strcmp(j->who, who) != 0) {
			continue;
		}
		for (size_t k = 0; k < j->n_circuits; k++) {
			const Weft__V1__CircuitState *s = j->circuits[k];

			if (!port || strcmp(s->from, port) == 0 || strcmp(s->to, port) == 0) {
				out_circuit(o, j, s);
				n++;
			}
		}
	}
	out_end(o);
	return n;
}

static int print_list(struct cli *c, const char *port, const char *who, int *n, struct err *err)
{
	Weft__V1__ListJobsResponse *m = NULL;
	struct out *o;
	int r = list_jobs(c, &m, err);

	if (r) {
		return r;
	}
	o = out_new(c->format);
	*n = out_list(o, m, port, who);
	rpc_free_message(&m->base);
	return cli_print(o, err);
}

int cmd_circuit_list(struct cli *c, struct err *err)
{
	int n;

	return print_list(c, cli_opt(c, "port"), cli_has(c, "mine") ? own_name() : NULL, &n, err);
}

/* Status 2 when a circuit has it: a script asks whether it is free. */
int cmd_circuit_find(struct cli *c, struct err *err)
{
	int n = 0, r = print_list(c, c->argv[0], NULL, &n, err);

	return r == 0 && n > 0 ? CLI_PENDING : r;
}

static void show_renewed(const struct cli *c, struct out *o, const void *answer)
{
	const Weft__V1__Job *j = ((const Weft__V1__RenewJobResponse *)answer)->job;
	char text[40];

	(void)c;
	out_str(o, "group", j->name);
	out_str(o, "until", until_text(j, text, sizeof(text)));
}

int cmd_circuit_renew(struct cli *c, struct err *err)
{
	Weft__V1__RenewJobRequest q = WEFT__V1__RENEW_JOB_REQUEST__INIT;
	int r = read_lease(c->argv[1], &q.duration_ns, err);

	q.name = (char *)c->argv[0];
	return r ? r : cli_call(c, JOBS_METHOD("RenewJob"), &q.base,
				&weft__v1__renew_job_response__descriptor, CLI_CALL_MS,
				show_renewed, err);
}
