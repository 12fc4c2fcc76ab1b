/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that change something. Each is asked of one weftd after the other, until one says
 * anything else than that it stands by; what it says, or that it says nothing, is the outcome
 * (outcome_of), which the history gets with the time at which it became known.
 */
#include "tests/sim/cluster/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/vec.h"
#include "lib/rpc/rpc.h"
#include "tests/sim/cluster/client_parts.h"

#define OPEN_MS 2000
#define PAUSE_NS (200 * SIM_MS)		/* before all are asked again */
#define PATIENCE_NS (30 * SIM_S)
#define TIMEOUT_MS 5000
#define LONGER 10			/* changes, and jobs that wait until they run */
/* Beyond the time to confirm: weftd may be away, and robots are slow. */
#define GOES_BACK_NS (120 * SIM_S)

#define FABRIC(method) "/weft.v1.FabricService/" method
#define JOBS(method) "/weft.v1.JobsService/" method

/* Changes that wait for their confirmation, by id: what they may become by themselves. */
static VEC(struct waiting { int64_t change; int number; }) waiting;

void client_init(struct client *c, const char *name)
{
	*c = (struct client){ .name = name, .patience_ns = PATIENCE_NS, .timeout_ms = TIMEOUT_MS,
			      .asks_again = true };
}

const char *client_target(char buf[CLIENT_TARGET], const char *kind, const char *name, int domain)
{
	char of[32] = "";

	if (domain > 0) {
		snprintf(of, sizeof(of), " of domain %d", domain);
	}
	snprintf(buf, CLIENT_TARGET, "%s%s%.40s%s", kind, name[0] ? " " : "", name, of);
	return buf;
}

/* ---- one try ---- */

/* Errors of the connection begin with its name; others came from weftd. */
static bool is_lost(int weftd, const struct err *err)
{
	const char *name = cluster_socket(weftd);

	return err->code == WEFT_ETIMEOUT || err->code == WEFT_ECANCELED ||
	       strncmp(err->msg, name, strlen(name)) == 0 ||
	       strncmp(err->msg, "the server ended the call", 25) == 0;
}

/* It did nothing, and says that another may. */
static bool is_elsewhere(const struct err *err)
{
	return err->code == WEFT_EUNAVAIL && (strstr(err->msg, "stands by") ||
					      strstr(err->msg, "is stopping"));
}

enum try client_try(struct client *c, int weftd, const struct request *q, struct err *err)
{
	struct rpc_client *conn = NULL;
	int r;

	*err = (struct err){ 0 };
	if (rpc_client_open(cluster_socket(weftd), OPEN_MS, &conn, err)) {
		return TRY_NOT_SENT;
	}
	r = rpc_client_call(conn, q->path, q->message, q->response, q->timeout_ms, q->on_message,
			    q->arg, NULL, err);
	rpc_client_close(conn);
	if (r == 0) {
		c->weftd = weftd;
		return TRY_ANSWERED;
	}
	if (is_lost(weftd, err)) {
		return TRY_LOST;
	}
	if (is_elsewhere(err)) {
		return TRY_ELSEWHERE;
	}
	c->weftd = weftd;
	return TRY_ANSWERED;
}

/* What weftd says for sure has not happened, but where the words leave that open. */
static enum history_outcome outcome_of(const struct err *err)
{
	switch (err->code) {
	case 0:
		return HISTORY_DONE;
	case WEFT_EIO:
	case WEFT_EINTERNAL:
	case WEFT_EUNAVAIL:	/* of devices, which a verdict makes sure, or of etcd */
		return HISTORY_UNKNOWN;
	default:
		return HISTORY_REFUSED;
	}
}

/* ---- until one answers ---- */

/* Asks those of a domain (-1: all) in turn once. False: go on; else a->outcome is known. */
static bool ask_round(struct client *c, int domain, const struct request *q, bool *maybe,
		      struct client_answer *a)
{
	const int n = cluster_scenario()->n_weftds, first = c->weftd;

	for (int i = 0; i < n; i++) {
		int weftd = (first + i) % n;
		enum try t;

		if (domain >= 0 && cluster_domain_of(weftd) != domain) {
			continue;
		}
		t = client_try(c, weftd, q, &a->err);
		if (t == TRY_ANSWERED) {
			a->weftd = weftd;
			a->outcome = outcome_of(&a->err);
			if (*maybe && a->outcome == HISTORY_REFUSED) {
				a->outcome = HISTORY_UNKNOWN;	/* the try before may have been */
			}
			return true;
		}
		*maybe |= t == TRY_LOST;
		if (t == TRY_LOST && q->acknowledged && *q->acknowledged) {
			a->outcome = HISTORY_DONE;
			return true;
		}
		if (t == TRY_LOST && !c->asks_again) {
			a->outcome = HISTORY_UNKNOWN;
			return true;
		}
	}
	return false;
}

static void ask(struct client *c, int domain, const struct request *q, struct client_answer *a)
{
	const int64_t end = sim_now() + c->patience_ns;
	bool maybe = false;

	*a = (struct client_answer){ .weftd = -1, .begin_ns = sim_now() };
	while (!ask_round(c, domain, q, &maybe, a)) {
		if (sim_now() >= end) {
			a->outcome = maybe ? HISTORY_UNKNOWN : HISTORY_REFUSED;
			break;
		}
		sim_sleep(PAUSE_NS);
	}
	a->end_ns = sim_now();
}

static void tell(const struct client *c, const struct client_answer *a, const char *what,
		 const char *name)
{
	if (!c->silent) {
		sim_tell("%s: %s%s%s: %s%s%s%s%s", c->name, what, name[0] ? " " : "", name,
			 history_outcome_name(a->outcome), a->weftd < 0 ? "" : " by ",
			 a->weftd < 0 ? "" : cluster_machine(a->weftd), a->err.code ? ": " : "",
			 a->err.code ? a->err.msg : "");
	}
}

static int note_begin(const struct client *c, const char *target, const char *initial,
		      const char *value)
{
	if (c->silent) {
		return -1;
	}
	history_initial(target, initial);
	return history_begin(c->name, target, value);
}

static void note_end(int call, enum history_outcome outcome, const char *value)
{
	if (call >= 0) {
		history_end(call, outcome, value);
	}
}

static char *new_id(struct client *c, char buf[64])
{
	snprintf(buf, 64, "%s-%d", c->name, ++c->n_ids);
	return buf;
}

/* ---- changes ---- */

/* Of Apply, Rollback and Cancel, whose responses are alike: the last event has the result. */
static int on_event(const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__ChangeEvent *ev = ((const Weft__V1__ApplyResponse *)msg)->event;
	struct client_answer *a = arg;

	if (ev && ev->result) {
		a->verdict = ev->result->verdict;
		a->change = ev->result->change;
		a->generation = ev->result->generation;
	}
	return 0;
}

/* A verdict says more than a status. */
static void judge(struct client_answer *a)
{
	switch (a->verdict) {
	case WEFT__V1__VERDICT__VERDICT_NOTHING_TO_DO:
	case WEFT__V1__VERDICT__VERDICT_COMMITTED:
		a->outcome = HISTORY_DONE;
		break;
	case WEFT__V1__VERDICT__VERDICT_STUCK:
		a->outcome = HISTORY_UNKNOWN;
		break;
	case WEFT__V1__VERDICT__VERDICT_REFUSED:
	case WEFT__V1__VERDICT__VERDICT_ROLLED_BACK:
		a->outcome = HISTORY_REFUSED;
		break;
	default:
		if (a->outcome == HISTORY_DONE) {
			a->outcome = HISTORY_UNKNOWN;	/* it ended without a result */
		}
	}
}

static void run_change(struct client *c, const char *path, const ProtobufCMessage *message,
		       struct client_answer *a)
{
	/* Before ask() clears the answer. */
	struct client_answer result = { 0 };
	const struct request q = {
		.path = path, .message = message, .on_message = on_event, .arg = &result,
		.response = &weft__v1__apply_response__descriptor,
		.timeout_ms = c->timeout_ms * LONGER,
	};

	ask(c, -1, &q, a);
	a->verdict = result.verdict;
	a->change = result.change;
	a->generation = result.generation;
	judge(a);
}

/* Each domain has the configuration, and all have the same one some time after a change: what
 * was acknowledged holds for the domain that was asked, and is to come to the others. */
struct change_note {
	int calls[CLUSTER_WEFTDS];	/* by domain */
};

static void begin_change(const struct client *c, const char *value, struct change_note *n)
{
	char target[CLIENT_TARGET];

	for (int i = 0; i < cluster_domains(); i++) {
		client_target(target, "configuration", "", i);
		n->calls[i] = note_begin(c, target, "", value);
	}
}

static void end_change(const struct client *c, const struct change_note *n,
		       const struct client_answer *a)
{
	for (int i = 0; i < cluster_domains(); i++) {
		bool asked = a->weftd >= 0 && cluster_domain_of(a->weftd) == i;

		note_end(n->calls[i], asked || a->outcome == HISTORY_REFUSED ? a->outcome
									     : HISTORY_UNKNOWN,
			 NULL);
	}
	if (!c->silent && a->outcome == HISTORY_DONE && a->weftd >= 0 && a->change > 0) {
		history_change_ended(a->weftd, a->change, a->begin_ns);
	}
}

/* Until it is confirmed it may go back to what was before. */
static void note_waiting(const struct client *c, int64_t within_ns, const struct client_answer *a)
{
	char target[CLIENT_TARGET];
	int number;

	if (c->silent || within_ns == 0 || a->outcome == HISTORY_REFUSED) {
		return;
	}
	number = history_by_itself(client_target(target, "configuration", "", 0), HISTORY_ANY,
				   a->begin_ns, a->end_ns + within_ns + GOES_BACK_NS);
	vec_push(&waiting, (struct waiting){ a->change, number });
}

enum history_outcome client_apply(struct client *c, int variant, int64_t confirm_within_ns,
				  struct client_answer *a)
{
	const char *text = cluster_fabric(variant);
	Weft__V1__ApplyRequest req;
	struct change_note note;
	char id[64], name[32];

	weft__v1__apply_request__init(&req);
	begin_change(c, cluster_fabric_digest(variant), &note);
	snprintf(name, sizeof(name), "fabric%d.yaml", variant);
	req.name = name;
	req.source_case = WEFT__V1__APPLY_REQUEST__SOURCE_CONFIG;
	req.config.data = (uint8_t *)text;
	req.config.len = strlen(text);
	req.request_id = req.comment = new_id(c, id);
	req.confirm_within_ns = confirm_within_ns;
	run_change(c, FABRIC("Apply"), &req.base, a);
	end_change(c, &note, a);
	note_waiting(c, confirm_within_ns, a);
	tell(c, a, confirm_within_ns ? "apply, to be confirmed," : "apply", name);
	return a->outcome;
}

enum history_outcome client_rollback(struct client *c, int64_t generation,
				     struct client_answer *a)
{
	Weft__V1__RollbackRequest req = WEFT__V1__ROLLBACK_REQUEST__INIT;
	Weft__V1__Number to = WEFT__V1__NUMBER__INIT;
	/* Generations are numbers of one domain. */
	const char *value = generation && cluster_domains() == 1 ?
			    history_configuration(0, generation) : "";
	struct change_note note;
	char id[64], name[32] = "";

	begin_change(c, value[0] ? value : HISTORY_ANY, &note);
	if (generation) {
		to.value = generation;
		req.to = &to;
		snprintf(name, sizeof(name), "to %" PRId64, generation);
	}
	req.request_id = req.comment = new_id(c, id);
	run_change(c, FABRIC("Rollback"), &req.base, a);
	end_change(c, &note, a);
	tell(c, a, "rollback", name);
	return a->outcome;
}

enum history_outcome client_cancel(struct client *c, struct client_answer *a)
{
	Weft__V1__CancelRequest req = WEFT__V1__CANCEL_REQUEST__INIT;

	/* What it stops has its own client; what goes back does so as if it was not confirmed. */
	run_change(c, FABRIC("Cancel"), &req.base, a);
	tell(c, a, "cancel", "");
	return a->outcome;
}

static int on_confirmed(const ProtobufCMessage *msg, void *arg)
{
	*(int64_t *)arg = ((const Weft__V1__ConfirmResponse *)msg)->change;
	return 0;
}

enum history_outcome client_confirm(struct client *c, int64_t change, struct client_answer *a)
{
	Weft__V1__ConfirmRequest req = WEFT__V1__CONFIRM_REQUEST__INIT;
	int64_t confirmed = 0;
	const struct request q = {
		.path = FABRIC("Confirm"), .message = &req.base, .on_message = on_confirmed,
		.arg = &confirmed, .response = &weft__v1__confirm_response__descriptor,
		.timeout_ms = c->timeout_ms,
	};

	req.change = change;
	ask(c, -1, &q, a);
	a->change = confirmed;
	for (size_t i = 0; i < waiting.n && a->outcome == HISTORY_DONE; i++) {
		if (waiting.v[i].change == confirmed && !c->silent) {
			history_end_by_itself(waiting.v[i].number, a->end_ns);
		}
	}
	tell(c, a, "confirm", "");
	return a->outcome;
}

/* ---- holds ---- */

enum history_outcome client_drain(struct client *c, int domain, const char *target,
				  struct client_answer *a)
{
	Weft__V1__DrainRequest req = WEFT__V1__DRAIN_REQUEST__INIT;
	char name[CLIENT_TARGET];
	int call = note_begin(c, client_target(name, "hold", target, domain), "no", "yes");
	const struct request q = {
		.path = FABRIC("Drain"), .message = &req.base, .timeout_ms = c->timeout_ms,
		.response = &weft__v1__drain_response__descriptor,
	};

	req.target = (char *)target;
	req.reason = (char *)c->name;
	ask(c, cluster_scenario()->domains > 0 ? domain : -1, &q, a);
	note_end(call, a->outcome, NULL);
	tell(c, a, "drain", name + strlen("hold "));
	return a->outcome;
}

enum history_outcome client_undrain(struct client *c, int domain, const char *target,
				    struct client_answer *a)
{
	Weft__V1__UndrainRequest req = WEFT__V1__UNDRAIN_REQUEST__INIT;
	char name[CLIENT_TARGET];
	int call = note_begin(c, client_target(name, "hold", target, domain), "no", "no");
	const struct request q = {
		.path = FABRIC("Undrain"), .message = &req.base, .timeout_ms = c->timeout_ms,
		.response = &weft__v1__undrain_response__descriptor,
	};

	req.target = (char *)target;
	ask(c, cluster_scenario()->domains > 0 ? domain : -1, &q, a);
	note_end(call, a->outcome, NULL);
	if (call >= 0 && a->weftd >= 0 && a->err.code == WEFT_ENOTFOUND) {
		history_read(c->name, name, "no", a->begin_ns);
	}
	tell(c, a, "undrain", name + strlen("hold "));
	return a->outcome;
}

/* ---- jobs ---- */

/* What weftd has said of a job, of which the first word is how it was. */
struct job_words {
	bool any;
	bool goes;		/* it is ending, or over */
};

static int on_job(const ProtobufCMessage *msg, void *arg)
{
	/* Of both calls the responses are alike. */
	const Weft__V1__Job *j = ((const Weft__V1__RequestJobResponse *)msg)->job;
	struct job_words *w = arg;

	w->any = true;
	w->goes = j && (j->state == WEFT__V1__JOB_STATE__JOB_STATE_ENDING ||
			j->state == WEFT__V1__JOB_STATE__JOB_STATE_ENDED);
	return 0;
}

/* With a name and an id. */
static enum history_outcome request_job(struct client *c, const char *name,
					Weft__V1__RequestJobRequest *req, struct client_answer *a)
{
	char id[64], target[CLIENT_TARGET];
	int call = note_begin(c, client_target(target, "job", name, 0), "gone", "there");
	struct job_words words = { 0 };
	const struct request q = {
		.path = JOBS("RequestJob"), .message = &req->base, .on_message = on_job,
		.arg = &words, .response = &weft__v1__request_job_response__descriptor,
		.timeout_ms = c->timeout_ms, .acknowledged = &words.any,
	};

	req->name = (char *)name;
	req->request_id = new_id(c, id);
	ask(c, -1, &q, a);
	if (words.any && a->outcome == HISTORY_REFUSED) {
		a->outcome = HISTORY_UNKNOWN;	/* it was there, and has failed, say */
	}
	note_end(call, a->outcome, NULL);
	if (call >= 0 && (req->duration_ns || a->outcome == HISTORY_UNKNOWN)) {
		history_by_itself(target, "gone", a->begin_ns, INT64_MAX);
	}
	tell(c, a, req->n_circuits ? "request circuits" : "request job", name);
	return a->outcome;
}

enum history_outcome client_request_job(struct client *c, const char *name, int hosts,
					int64_t duration_ns, bool wait, struct client_answer *a)
{
	Weft__V1__RequestJobRequest req = WEFT__V1__REQUEST_JOB_REQUEST__INIT;

	req.count = hosts;
	req.collective = (char *)"allreduce";
	req.size_bytes = 1 << 20;
	req.duration_ns = duration_ns;
	req.no_wait = !wait;
	return request_job(c, name, &req, a);
}

enum history_outcome client_request_circuit(struct client *c, const char *name,
					    const struct client_circuit *q,
					    struct client_answer *a)
{
	Weft__V1__RequestJobRequest req = WEFT__V1__REQUEST_JOB_REQUEST__INIT;
	Weft__V1__CircuitEnds ends = WEFT__V1__CIRCUIT_ENDS__INIT, *list = &ends;

	ends.from = (char *)q->from;
	ends.to = (char *)q->to;
	ends.simplex = q->simplex;
	req.circuits = &list;
	req.n_circuits = 1;
	req.replace = q->replace;
	req.no_queue = q->no_queue;
	req.no_wait = !q->wait;
	req.duration_ns = q->duration_ns;
	return request_job(c, name, &req, a);
}

enum history_outcome client_renew_job(struct client *c, const char *name, int64_t duration_ns,
				      struct client_answer *a)
{
	Weft__V1__RenewJobRequest req = WEFT__V1__RENEW_JOB_REQUEST__INIT;
	const struct request q = {
		.path = JOBS("RenewJob"), .message = &req.base, .timeout_ms = c->timeout_ms,
		.response = &weft__v1__renew_job_response__descriptor,
	};

	req.name = (char *)name;
	req.duration_ns = duration_ns;
	ask(c, -1, &q, a);
	tell(c, a, "renew job", name);
	return a->outcome;
}

enum history_outcome client_release_job(struct client *c, const char *name,
					struct client_answer *a)
{
	Weft__V1__ReleaseJobRequest req = WEFT__V1__RELEASE_JOB_REQUEST__INIT;
	char target[CLIENT_TARGET];
	int call = note_begin(c, client_target(target, "job", name, 0), "gone", "gone");
	struct job_words words = { 0 };
	const struct request q = {
		.path = JOBS("ReleaseJob"), .message = &req.base, .on_message = on_job,
		.arg = &words, .response = &weft__v1__release_job_response__descriptor,
		.timeout_ms = c->timeout_ms * LONGER, .acknowledged = &words.goes,
	};

	req.name = (char *)name;
	ask(c, -1, &q, a);
	if (words.any && a->outcome == HISTORY_REFUSED) {
		a->outcome = HISTORY_UNKNOWN;
	}
	note_end(call, a->outcome, NULL);
	if (call >= 0 && a->weftd >= 0 && a->err.code == WEFT_ENOTFOUND) {
		history_read(c->name, target, "gone", a->begin_ns);
	}
	tell(c, a, "release job", name);
	return a->outcome;
}

/* ---- what changes nothing ---- */

static int on_nothing(const ProtobufCMessage *msg, void *arg)
{
	(void)msg, (void)arg;
	return 0;
}

enum history_outcome client_plan(struct client *c, int variant, struct client_answer *a)
{
	Weft__V1__PlanRequest req = WEFT__V1__PLAN_REQUEST__INIT;
	const char *text = cluster_fabric(variant);
	const struct request q = {
		.path = FABRIC("Plan"), .message = &req.base, .on_message = on_nothing,
		.response = &weft__v1__plan_response__descriptor,
		.timeout_ms = c->timeout_ms * LONGER,
	};

	req.name = (char *)"fabric";
	req.config.data = (uint8_t *)text;
	req.config.len = strlen(text);
	ask(c, -1, &q, a);
	tell(c, a, "plan", "");
	return a->outcome;
}
