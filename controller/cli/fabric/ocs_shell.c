/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft ocs-shell: commands of a SONiC optical switch, answered by weftd, as the forced command of
 * an SSH login. Scripts that manage such a switch keep their words, and no longer take the ports of
 * others.
 *
 * A command is cut into words and looked up; no shell sees it. A cross-connect 29A-1B is a group of
 * circuits of its own, GROUP-29A-SWITCH with one circuit one-way, so that any number of scripts add
 * and delete at once, on several switches, and none undoes another's. What a group of another name
 * has stays.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"
#include "lib/base/alloc.h"
#include "lib/conf/conf.h"
#include "weft/v1/jobs.pb-c.h"

#define JOBS_METHOD(name) "/weft.v1.JobsService/" name
#define MAX_WORDS 8
#define MAX_PORT 65536
#define MAX_GROUP (CONF_MAX_NAME - 8)	/* with the switch, beside "-65536A-" */

struct ocs_shell {
	struct cli *c;
	const char *name, *group;	/* of the switch, of the login's circuits */
	char line[512];			/* the words point into it */
	char *word[MAX_WORDS + 1];
	int n;
};

/* Cuts at blanks; `sudo` before a command is passed over. */
static int cut(struct ocs_shell *s, const char *command, struct err *err)
{
	char *rest = s->line, *word;

	if (strlen(command) >= sizeof(s->line)) {
		return err_set(err, WEFT_EUSAGE, "the command has more than %zu bytes",
			       sizeof(s->line) - 1);
	}
	snprintf(s->line, sizeof(s->line), "%s", command);
	while (s->n <= MAX_WORDS && (word = strsep(&rest, " \t"))) {
		if (word[0] && (s->n > 0 || strcmp(word, "sudo") != 0)) {
			s->word[s->n++] = word;
		}
	}
	return 0;
}

/* ---- show ---------------------------------------------------------------- */

/* All circuits of the switch as last read; rpc_free_message(). WEFT_EUNAVAIL: they are not known,
 * so that no script takes an empty table for an empty switch. */
static int read_switch(struct ocs_shell *s, Weft__V1__StatusResponse **out,
		       const Weft__V1__DeviceState **device, struct err *err)
{
	Weft__V1__StatusRequest q = WEFT__V1__STATUS_REQUEST__INIT;
	ProtobufCMessage *answer = NULL;
	int r;

	q.circuits_of = (char *)s->name;
	r = cli_unary(s->c, CLI_METHOD("Status"), &q.base, &weft__v1__status_response__descriptor,
		      CLI_CALL_MS, &answer, err);
	*out = (Weft__V1__StatusResponse *)answer;
	for (size_t i = 0; r == 0 && i < (*out)->n_devices; i++) {
		if (strcmp((*out)->devices[i]->name, s->name) == 0) {
			*device = (*out)->devices[i];
		}
	}
	if (r == 0 && (!(*device)->ever_read || !(*device)->reachable)) {
		r = err_set(err, WEFT_EUNAVAIL, "%s was not read: %s", s->name,
			    (*device)->problem[0] ? (*device)->problem : "weftd has just started");
	}
	return r;
}

static bool has(Weft__V1__Circuit *const *v, size_t n, int in, int out)
{
	bool found = false;

	for (size_t i = 0; i < n && !found; i++) {
		found = v[i]->in == in && v[i]->out == out;
	}
	return found;
}

static void put_row(struct buf *b, int in, int out, const char *state)
{
	buf_printf(b, "%dA-%dB  %dA  %dB", in, out, in, out);
	buf_printf(b, state ? "  %s  %s\n" : "\n", state, state);
}

static int list_jobs(struct ocs_shell *s, const char *name, const char *port,
		     Weft__V1__ListJobsResponse **out, struct err *err)
{
	Weft__V1__ListJobsRequest q = WEFT__V1__LIST_JOBS_REQUEST__INIT;
	ProtobufCMessage *answer = NULL;
	int r;

	q.name = (char *)name;
	q.port = (char *)port;
	r = cli_unary(s->c, JOBS_METHOD("ListJobs"), &q.base,
		      &weft__v1__list_jobs_response__descriptor, CLI_CALL_MS, &answer, err);
	*out = (Weft__V1__ListJobsResponse *)answer;
	return r;
}

static int show_status(struct ocs_shell *s, struct err *err)
{
	Weft__V1__StatusResponse *m = NULL;
	const Weft__V1__DeviceState *d = NULL;
	struct buf b = { 0 };
	int r = read_switch(s, &m, &d, err);

	buf_str(&b, "id  a_side  b_side  a_side_status  b_side_status\n"
		    "--  ------  ------  -------------  -------------\n");
	for (size_t i = 0; r == 0 && i < d->n_read; i++) {
		const Weft__V1__Circuit *x = d->read[i];
		const char *state = x->signal && x->signal->state[0] ? x->signal->state : "tuned";

		state = has(d->dark, d->n_dark, x->in, x->out) ? "failed" : state;
		put_row(&b, x->in, x->out, state);
	}
	rpc_free_message(m ? &m->base : NULL);
	r = r == 0 ? cli_print_bytes(buf_cstr(&b), b.len, err) : r;
	buf_fini(&b);
	return r;
}

static bool is_own(const struct ocs_shell *s, const char *name)
{
	const size_t len = strlen(s->group);

	return strncmp(name, s->group, len) == 0 && name[len] == '-';
}

/* A job that has its circuits soon: what the login asked for while weftd was away, too. */
static bool begins(const struct ocs_shell *s, const Weft__V1__Job *j)
{
	return j->state == WEFT__V1__JOB_STATE__JOB_STATE_STARTING ||
	       (j->state == WEFT__V1__JOB_STATE__JOB_STATE_QUEUED && is_own(s, j->name));
}

/* Whether the circuit goes: it is not configured any more. */
static bool is_going(const struct ocs_shell *s, const Weft__V1__ListJobsResponse *m, int in,
		     int out)
{
	bool ends = false, stays = false;

	for (size_t i = 0; i < m->n_jobs; i++) {
		const Weft__V1__Job *j = m->jobs[i];

		for (size_t k = 0; k < j->n_circuits; k++) {
			const Weft__V1__CircuitState *x = j->circuits[k];
			const bool is = x->in == in && x->out == out &&
					strcmp(x->device, s->name) == 0;

			ends = ends || (is && j->state == WEFT__V1__JOB_STATE__JOB_STATE_ENDING);
			stays = stays || (is && begins(s, j));
		}
	}
	return ends && !stays;
}

static void put_beginning(const struct ocs_shell *s, const Weft__V1__Job *j,
			  const Weft__V1__DeviceState *d, struct buf *b)
{
	for (size_t k = 0; k < j->n_circuits && begins(s, j); k++) {
		const Weft__V1__CircuitState *x = j->circuits[k];

		if (strcmp(x->device, s->name) == 0 && !has(d->read, d->n_read, x->in, x->out) &&
		    !has(d->missing, d->n_missing, x->in, x->out)) {
			put_row(b, x->in, x->out, NULL);
		}
	}
}

/* What is there and what is meant to be, as soon as it is asked for and no longer than that: a
 * script that sees a circuit in the other table only takes it for stale, and deletes it. */
static int show_config(struct ocs_shell *s, struct err *err)
{
	Weft__V1__StatusResponse *m = NULL;
	Weft__V1__ListJobsResponse *jobs = NULL;
	const Weft__V1__DeviceState *d = NULL;
	struct buf b = { 0 };
	int r = read_switch(s, &m, &d, err);

	r = r == 0 ? list_jobs(s, "", "", &jobs, err) : r;
	buf_str(&b, "id  a_side  b_side\n--  ------  ------\n");
	for (size_t i = 0; r == 0 && i < d->n_read; i++) {
		if (!is_going(s, jobs, d->read[i]->in, d->read[i]->out)) {
			put_row(&b, d->read[i]->in, d->read[i]->out, NULL);
		}
	}
	for (size_t i = 0; r == 0 && i < d->n_missing; i++) {
		const int in = d->missing[i]->in, out = d->missing[i]->out;

		if (!has(d->read, d->n_read, in, out) && !is_going(s, jobs, in, out)) {
			put_row(&b, in, out, NULL);
		}
	}
	for (size_t i = 0; r == 0 && i < jobs->n_jobs; i++) {
		put_beginning(s, jobs->jobs[i], d, &b);
	}
	rpc_free_message(jobs ? &jobs->base : NULL);
	rpc_free_message(m ? &m->base : NULL);
	r = r == 0 ? cli_print_bytes(buf_cstr(&b), b.len, err) : r;
	buf_fini(&b);
	return r;
}

/* ---- config -------------------------------------------------------------- */

/* "29A-1B": light that enters at 29 and leaves at 1; the other side may come first. */
static int read_pair(const char *text, int *in, int *out, struct err *err)
{
	char a = 0, b = 0, rest;
	int first = 0, second = 0;

	if (sscanf(text, "%6d%c-%6d%c%c", &first, &a, &second, &b, &rest) != 4 || first < 1 ||
	    second < 1 || first > MAX_PORT || second > MAX_PORT || a + b != 'A' + 'B' ||
	    (a != 'A' && a != 'B')) {
		return err_set(err, WEFT_EUSAGE, "\"%.40s\" is no cross-connect such as 29A-1B",
			       text);
	}
	*in = a == 'A' ? first : second;
	*out = a == 'A' ? second : first;
	return 0;
}

static int release(struct ocs_shell *s, const char *name, struct err *err)
{
	Weft__V1__ReleaseJobRequest q = WEFT__V1__RELEASE_JOB_REQUEST__INIT;
	Weft__V1__Job *last = NULL;
	int r;

	q.name = (char *)name;
	r = cli_follow_job(s->c, JOBS_METHOD("ReleaseJob"), &q.base, &last, NULL, err);
	weft__v1__job__free_unpacked(last, NULL);
	return r;
}

/* GROUP-29A-SWITCH, of which there is one circuit: another output for it is one change. */
static const char *name_of(const struct ocs_shell *s, int in, char name[CONF_MAX_NAME + 1])
{
	snprintf(name, CONF_MAX_NAME + 1, "%s-%dA-%s", s->group, in, s->name);
	return name;
}

/* "ocs0.out1". */
static const char *end_of(const struct ocs_shell *s, const char *side, int port,
			  char end[2 * CONF_MAX_NAME])
{
	snprintf(end, 2 * CONF_MAX_NAME, "%.*s.%s%d", CONF_MAX_NAME, s->name, side, port);
	return end;
}

static bool leads_to(const Weft__V1__Job *j, const char *port)
{
	return j->n_circuits == 1 && strcmp(j->circuits[0]->to, port) == 0;
}

/* The circuit of the login that leads to the output; "": none. */
static void find_own(struct ocs_shell *s, int out, char found[CONF_MAX_NAME + 1])
{
	Weft__V1__ListJobsResponse *m = NULL;
	char end[2 * CONF_MAX_NAME];
	const int r = list_jobs(s, "", end_of(s, "out", out, end), &m, &(struct err){ 0 });

	found[0] = '\0';
	for (size_t i = 0; r == 0 && i < m->n_jobs && !found[0]; i++) {
		const char *name = m->jobs[i]->name;
		char own[CONF_MAX_NAME + 1];

		if (is_own(s, name) &&
		    strcmp(name, name_of(s, atoi(name + strlen(s->group) + 1), own)) == 0 &&
		    leads_to(m->jobs[i], m->port)) {
			snprintf(found, CONF_MAX_NAME + 1, "%s", name);
		}
	}
	rpc_free_message(m ? &m->base : NULL);
}

/* Done only when the switch was seen to have it. */
static int request(struct ocs_shell *s, int in, int out, bool update, char *own, struct err *err)
{
	Weft__V1__RequestJobRequest q = WEFT__V1__REQUEST_JOB_REQUEST__INIT;
	Weft__V1__CircuitEnds ends = WEFT__V1__CIRCUIT_ENDS__INIT, *list = &ends;
	Weft__V1__Job *last = NULL;
	char name[CONF_MAX_NAME + 1], from[2 * CONF_MAX_NAME], to[2 * CONF_MAX_NAME];
	int r;

	ends.from = (char *)end_of(s, "in", in, from);
	ends.to = (char *)end_of(s, "out", out, to);
	ends.simplex = true;
	q.name = (char *)name_of(s, in, name);
	q.circuits = &list;
	q.n_circuits = 1;
	q.replace = update;
	q.replaces = &own;
	q.n_replaces = own[0] != '\0' && strcmp(own, name) != 0;
	q.no_queue = true;
	r = cli_follow_job(s->c, JOBS_METHOD("RequestJob"), &q.base, &last, NULL, err);
	if (r == 0 && (!last || last->state != WEFT__V1__JOB_STATE__JOB_STATE_RUNNING ||
		       last->n_circuits != 1 ||
		       last->circuits[0]->proof == WEFT__V1__PROOF__PROOF_UNVERIFIED)) {
		r = err_set(err, WEFT_EVERIFY, "%dA-%dB: not seen yet", in, out);
	}
	weft__v1__job__free_unpacked(last, NULL);
	return r;
}

static int say(const char *what, struct err *err)
{
	return cli_print_bytes(what, strlen(what), err);
}

/* With `update`, as at the switch, circuits of the login make way, of the input and of the output:
 * in one change, so that they stay if it cannot be made. */
static int add(struct ocs_shell *s, struct err *err)
{
	const char *mode = s->n > 5 ? s->word[5] : "update";
	const bool update = strcmp(mode, "update") == 0;
	char own[CONF_MAX_NAME + 1] = "";
	int in, out, r = read_pair(s->word[4], &in, &out, err);

	if (r == 0 && !update && strcmp(mode, "safe") != 0) {
		r = err_set(err, WEFT_EUNSUPPORTED, "mode %.40s would take the ports of others",
			    mode);
	}
	if (r == 0 && update) {
		find_own(s, out, own);
	}
	if (r == 0) {
		r = request(s, in, out, update, own, err);
	}
	return r ? r : say("Add cross-connect succeeded\n", err);
}

/* Why a cross-connect that is not the login's is not deleted. */
static int refuse(struct ocs_shell *s, int in, int out, struct err *err)
{
	Weft__V1__StatusResponse *m = NULL;
	Weft__V1__ListJobsResponse *who = NULL;
	const Weft__V1__DeviceState *d = NULL;
	char port[2 * CONF_MAX_NAME];
	int r = read_switch(s, &m, &d, err);

	end_of(s, "in", in, port);
	if (r == 0 && !has(d->read, d->n_read, in, out)) {
		r = err_set(err, WEFT_ENOTFOUND, "no such cross-connect %dA-%dB", in, out);
	} else if (r == 0 && list_jobs(s, "", port, &who, &(struct err){ 0 }) == 0) {
		r = err_set(err, WEFT_EDENIED, "%dA-%dB: %s", in, out, who->held[0] ? who->held :
			    "weft did not make it");
	} else if (r == 0) {
		r = err_set(err, WEFT_EDENIED, "%dA-%dB: weft did not make it", in, out);
	}
	rpc_free_message(who ? &who->base : NULL);
	rpc_free_message(m ? &m->base : NULL);
	return r;
}

static int delete(struct ocs_shell *s, struct err *err)
{
	Weft__V1__ListJobsResponse *m = NULL;
	char name[CONF_MAX_NAME + 1], end[2 * CONF_MAX_NAME];
	int in, out, r = read_pair(s->word[4], &in, &out, err);

	if (r) {
		return r;
	}
	name_of(s, in, name);
	r = list_jobs(s, name, end_of(s, "out", out, end), &m, err);
	if (r == 0 && (m->n_jobs == 0 || !leads_to(m->jobs[m->n_jobs - 1], m->port))) {
		r = refuse(s, in, out, err);
	} else if (r == 0) {
		r = release(s, name, err);
	}
	rpc_free_message(m ? &m->base : NULL);
	return r ? r : say("Delete cross-connect succeeded\n", err);
}

static int save(struct ocs_shell *s, struct err *err)
{
	(void)s;
	return say("weftd keeps what is configured: there is nothing to save\n", err);
}

/* ---- commands ------------------------------------------------------------ */

/* "*": any word; "?": any or none. */
static const struct {
	const char *words[MAX_WORDS];
	int (*run)(struct ocs_shell *s, struct err *err);
} commands[] = {
	{ { "show", "ocs", "cross-connect", "config" }, show_config },
	{ { "show", "ocs", "cross-connect", "status" }, show_status },
	{ { "config", "ocs", "cross-connect", "add", "*", "?" }, add },
	{ { "config", "ocs", "cross-connect", "delete", "*" }, delete },
	{ { "config", "save" }, save },
	{ { "config", "save", "-y" }, save },
};

static bool matches(const struct ocs_shell *s, const char *const *words)
{
	int i = 0;

	while (i < s->n && words[i] && (strchr("*?", words[i][0]) ||
					strcmp(words[i], s->word[i]) == 0)) {
		i++;
	}
	return i == s->n && (!words[i] || words[i][0] == '?');
}

static int run(struct ocs_shell *s, struct err *err)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (matches(s, commands[i].words)) {
			return commands[i].run(s, err);
		}
	}
	err_set(err, WEFT_EUSAGE, "no command of this switch");
	err_hint(err, "show ocs cross-connect config|status, config ocs cross-connect "
		      "add|delete 29A-1B, config save -y");
	return err->code;
}

/* A refusal is status 1, as the switch's; what says that weftd is away is weft's own. */
int cmd_ocs_shell(struct cli *c, struct err *err)
{
	struct ocs_shell s = { .c = c, .name = cli_opt(c, "switch"),
			       .group = cli_opt(c, "group") };
	const char *command = getenv("SSH_ORIGINAL_COMMAND");
	struct buf words = { 0 };
	int r = cli_need(c, "switch", err);

	s.group = s.group ? s.group : cli_own_name();
	for (int i = 0; i < c->argc; i++) {
		buf_printf(&words, "%s%s", i ? " " : "", c->argv[i]);
	}
	if (r == 0 && (!conf_is_name(s.group) || strlen(s.group) + strlen(s.name) > MAX_GROUP)) {
		r = err_set(err, WEFT_EUSAGE, "--group: \"%.80s\" is no name, of up to %d bytes "
			    "with the switch's", s.group, MAX_GROUP);
	}
	if (r == 0 && c->argc == 0 && !command) {
		r = err_set(err, WEFT_EUSAGE, "there is no command: this login has no shell");
	}
	c->talk = CLI_QUIET;
	if (r == 0 && (r = cut(&s, words.len ? words.data : command, err)) == 0) {
		r = run(&s, err);
	}
	buf_fini(&words);
	if (r == WEFT_EHELD || r == WEFT_EDENIED || r == WEFT_ENOTFOUND || r == WEFT_EINVAL) {
		cli_report(err);
		return CLI_AS_IT_WAS;
	}
	return r;
}
