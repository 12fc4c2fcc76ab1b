/* Apply, rollback, cancel: one change and all who watch it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/private.h"
#include "controller/daemon/hosts/hosts.h"
#include "lib/base/log.h"
#include "lib/base/vec.h"

#define HISTORY_PAGE 64
#define CONFIRM_MAX_NS (INT64_C(365) * 24 * 3600 * 1000000000)

_Static_assert((int)APPLY_STUCK == (int)WEFT__V1__VERDICT__VERDICT_STUCK &&
	       (int)APPLY_ERROR_FREE ==
		       (int)WEFT__V1__PROOF__PROOF_ERROR_FREE,
	       "the API's enumerations are those of apply.h");

struct change {
	struct daemon *d;
	struct work *w;		/* NULL once the engine has it */
	char *request_id, *who, *comment;
	int64_t confirm_within_ns;
	char digest[65];	/* the plan must have it; "": any */
	char trace[DAEMON_TRACE_SIZE];
	char peer[RPC_PEER_TEXT_MAX];
	bool started;		/* the engine has it */
	bool cancelled;		/* before that */
	struct job_rows rows;	/* for status, once committed */
	struct host_routes *routes;	/* for hosts of this machine, then */
	bool restores;		/* jobs stay as they are */
	VEC(struct rpc_call *) watchers;
	void (*ended)(struct daemon *d, const struct apply_result *res, int rc,
		      const struct err *err);	/* or NULL */
};

/* What a request says of the change it wants. */
struct wish {
	const char *request_id, *comment;
	const Weft__V1__Number *expected;
	int64_t confirm_within_ns;
	const struct own_change *own;	/* weftd's own, or NULL */
	bool must;			/* nobody may be there to help */
};

/* ---- watching ------------------------------------------------------------ */

static void on_watcher_gone(struct rpc_call *call, void *arg)
{
	struct change *c = arg;

	for (size_t i = 0; i < c->watchers.n; i++) {
		if (c->watchers.v[i] == call) {
			c->watchers.v[i] = c->watchers.v[--c->watchers.n];
			return;
		}
	}
}

static int watch(struct change *c, struct rpc_call *call, struct err *err)
{
	if (vec_push(&c->watchers, call)) {
		return err_nomem(err);
	}
	rpc_call_on_cancel(call, on_watcher_gone, c);
	return 0;
}

/* A watcher that reads too slowly misses events, never the result. */
static void send_all(struct change *c, const Weft__V1__ApplyEvent *ev)
{
	for (size_t i = 0; i < c->watchers.n; i++) {
		rpc_send(c->watchers.v[i], &ev->base, NULL);
	}
}

static void on_event(const struct apply_event *ev, void *arg)
{
	Weft__V1__ApplyEvent m = WEFT__V1__APPLY_EVENT__INIT;

	m.phase = (char *)ev->phase;
	m.device = (char *)ev->device;
	m.text = (char *)ev->text;
	m.is_problem = ev->is_problem;
	m.done = ev->done;
	m.total = ev->total;
	m.eta_ns = ev->eta_ns;
	send_all(arg, &m);
	daemon_page_progress(((struct change *)arg)->d, ev);
	if (ev->is_problem) {
		log_warn("apply", "%s%s%s: %s", ev->device,
			 ev->device[0] ? ": " : "", ev->phase, ev->text);
	}
}

static void tell_result(struct rpc_call *call, const struct apply_result *res,
			int rc, const struct err *err)
{
	Weft__V1__ApplyEvent ev = WEFT__V1__APPLY_EVENT__INIT;
	Weft__V1__ChangeResult m = WEFT__V1__CHANGE_RESULT__INIT;
	struct err send_err = { 0 };

	m.verdict = (Weft__V1__Verdict)res->verdict;
	m.change = res->change;
	m.generation = res->generation;
	m.proof = (Weft__V1__Proof)res->level;
	m.took_ns = res->took_ns;
	ev.result = &m;
	for (int i = 0; i < res->n_failed && rc; i++) {
		rpc_call_add_resource(call, "circuit", res->failed[i].name,
				      res->failed[i].why);
	}
	if (rpc_send(call, &ev.base, &send_err)) {
		rpc_finish_err(call, &send_err);
	} else if (rc) {
		rpc_finish_err(call, err);
	} else {
		rpc_finish(call, RPC_OK, NULL);
	}
}

static void tell_all_started(const struct change *c)
{
	const struct daemon_event ev = {
		.kind = WEFT__V1__EVENT_KIND__EVENT_KIND_CHANGE_STARTED,
		.trace = c->trace,
	};

	daemon_page_begins(c->d, c->who, c->comment);
	daemon_event(c->d, &ev, "change of %s begins%s%s", c->who,
		     c->comment[0] ? ": " : "", c->comment);
}

static void tell_all_ended(const struct change *c,
			   const struct apply_result *res, int rc,
			   const struct err *err)
{
	const struct daemon_event ev = {
		.kind = WEFT__V1__EVENT_KIND__EVENT_KIND_CHANGE_ENDED,
		.change = res->change,
		.verdict = (Weft__V1__Verdict)res->verdict,
		.trace = c->trace,
	};

	daemon_count_change(c->d, res);
	daemon_page_ended(c->d, apply_verdict_name(res->verdict),
			  rc ? err : NULL);
	daemon_event(c->d, &ev, "change of %s: %s%s%s", c->who,
		     apply_verdict_name(res->verdict), rc ? ": " : "",
		     rc ? err->msg : "");
}

/* ---- the end of a change ------------------------------------------------- */

static void remember(struct daemon *d, const char *request_id,
		     const struct apply_result *res, int rc,
		     const struct err *err)
{
	struct finished *f = &d->finished[d->n_finished++ % MAX_FINISHED];

	free(f->request_id);
	f->request_id = strdup(request_id);
	f->res = *res;
	f->rc = rc;
	f->err = *err;
}

void daemon_finished_fini(struct daemon *d)
{
	for (int i = 0; i < MAX_FINISHED; i++) {
		free(d->finished[i].request_id);
	}
}

/* The newest first. */
static const struct finished *find_finished(const struct daemon *d,
					    const char *request_id)
{
	int kept = d->n_finished < MAX_FINISHED ? d->n_finished
						: MAX_FINISHED;

	for (int i = 1; i <= kept; i++) {
		const struct finished *f =
			&d->finished[(d->n_finished - i) % MAX_FINISHED];

		if (f->request_id && strcmp(f->request_id, request_id) == 0) {
			return f;
		}
	}
	return NULL;
}

static void change_free(struct change *c)
{
	struct daemon *d = c->d;
	struct work *w = c->w;

	d->change = NULL;
	free(c->request_id);
	free(c->who);
	free(c->comment);
	vec_fini(&c->watchers);
	job_rows_fini(&c->rows);
	host_routes_free(c->routes);
	free(c);
	if (w) {
		daemon_work_free(w);
	}
}

static void log_end(const struct change *c, const struct apply_result *res,
		    int rc, const struct err *err)
{
	char id[24], generation[24];
	const struct log_field fields[] = {
		{ "change", id }, { "generation", generation },
		{ "outcome", apply_verdict_name(res->verdict) },
		{ "trace", c->trace },
	};

	snprintf(id, sizeof(id), "%" PRId64, res->change);
	snprintf(generation, sizeof(generation), "%" PRId64, res->generation);
	log_with(LOG_INFO, "weftd", fields, c->trace[0] ? 4 : 3,
		 "change of %s: %s%s%s", c->who,
		 apply_verdict_name(res->verdict), rc ? ": " : "",
		 rc ? err->msg : "");
}

/* res NULL: it never came to a plan, and devices were not touched. */
static void end_change(struct change *c, const struct apply_result *res,
		       int rc, const struct err *err)
{
	struct daemon *d = c->d;
	struct apply_result none = {
		.verdict = APPLY_REFUSED,
		.generation = store_generation(d->store),
	};
	void (*ended)(struct daemon *d, const struct apply_result *res, int rc,
		      const struct err *err);
	bool moved = c->started && daemon_prover_moved(d);

	res = res ? res : &none;
	log_end(c, res, rc, err);
	if (c->request_id[0]) {
		remember(d, c->request_id, res, rc, err);
	}
	for (size_t i = 0; i < c->watchers.n; i++) {
		tell_result(c->watchers.v[i], res, rc, err);
	}
	c->watchers.n = 0;
	tell_all_ended(c, res, rc, err);
	ended = c->ended;
	change_free(c);
	if (!d->draining) {
		daemon_confirm_watch(d);
	}
	if (moved && rc && !d->draining) {
		daemon_refresh_jobs(d);	/* gives the hosts their ways again */
	}
	if (ended) {
		ended(d, res, rc, err);
	}
	jobs_tick(d->orders);
}

/* The jobs are now those of the change. */
static void take_jobs(struct change *c)
{
	struct daemon *d = c->d;

	d->applied = true;
	if (c->restores) {
		return;
	}
	job_rows_fini(&d->jobs);
	d->jobs = c->rows;
	d->dead_light = 0;
	memset(&c->rows, 0, sizeof(c->rows));
	daemon_hosts_route(d, c->routes);
	c->routes = NULL;
	jobs_settle(d->orders);
}

static void on_applied(int rc, const struct apply_result *res,
		       const struct err *err, void *arg)
{
	struct change *c = arg;

	if (res->verdict == APPLY_COMMITTED ||
	    res->verdict == APPLY_NOTHING_TO_DO) {
		take_jobs(c);
	}
	end_change(c, res, rc, err);
}

static int check_digest(const struct change *c, const struct plan *p,
			struct err *err)
{
	if (!c->digest[0] || strcmp(c->digest, p->digest) == 0) {
		return 0;
	}
	err_set(err, WEFT_ESTALE, "the devices are no longer as they were "
				  "when the plan was made");
	err_hint(err, "plan again: weft plan -f FABRIC.yaml -o PLAN");
	return err->code;
}

static void on_planned(struct work *w)
{
	struct change *c = w->arg;
	const struct apply_request req = {
		.who = c->who, .comment = c->comment, .id = c->request_id,
		.trace = c->trace, .peer = c->peer,
		.confirm_within_ns = c->confirm_within_ns,
		.must = w->must,
		.restores = c->restores,
	};
	struct err err = w->err;
	int r = w->rc;

	if (c->cancelled) {
		r = err_set(&err, WEFT_ECANCELED, "stopped on request, before "
						  "anything was sent");
	}
	if (r || (r = check_digest(c, w->plan, &err)) ||
	    (!c->restores && (r = job_rows_take(&c->rows, w, &err)))) {
		end_change(c, NULL, r, &err);
		return;
	}
	c->started = true;
	c->routes = c->restores ? NULL : host_routes_of(w->plan);
	r = apply_start(c->d->apply, w->plan, w->fabric, &req, on_event,
			on_applied, c, &err);
	w->plan = NULL;
	w->fabric = NULL;
	if (r) {
		end_change(c, NULL, r, &err);
		return;
	}
	daemon_prover_begin(c->d);
}

/* ---- the start of a change ----------------------------------------------- */

/* The verdict that a change on record has come to. */
static enum apply_verdict verdict_of(const struct store_change *ch)
{
	switch (ch->verdict) {
	case STORE_COMMITTED:
		return APPLY_COMMITTED;
	case STORE_REFUSED:
	case STORE_ABORTED:
		return APPLY_REFUSED;
	case STORE_ROLLED_BACK:
		return APPLY_ROLLED_BACK;
	default:
		return APPLY_STUCK;
	}
}

/* A request that an earlier weftd has begun: the store knows how it ended. */
static bool is_on_record(struct daemon *d, struct rpc_call *call,
			 const char *request_id)
{
	struct store_change ch;
	struct apply_result res;
	struct err err = { 0 };
	int r = store_change_by_request(d->store, request_id, &ch, &err);

	if (r == WEFT_ENOTFOUND) {
		return false;
	}
	if (r) {
		rpc_finish_err(call, &err);
		return true;
	}
	res = (struct apply_result){
		.verdict = verdict_of(&ch), .change = ch.id,
		.generation = ch.generation,
		.level = (enum apply_level)ch.proof,
		.took_ns = ch.ended_ns > ch.started_ns ?
				   ch.ended_ns - ch.started_ns : 0,
	};
	if (res.verdict != APPLY_COMMITTED) {
		r = err_set(&err, WEFT_EDEVICE, "change %lld: %s",
			    (long long)ch.id, ch.summary);
	}
	tell_result(call, &res, r, &err);
	store_change_fini(&ch);
	return true;
}

/* True when this request was made before, and is answered with that. */
static bool is_repeated(struct daemon *d, struct rpc_call *call,
			const char *request_id)
{
	const struct finished *f;
	struct err err = { 0 };

	if (!request_id[0]) {
		return false;
	}
	if (d->change && strcmp(d->change->request_id, request_id) == 0) {
		if (watch(d->change, call, &err)) {
			rpc_finish_err(call, &err);
		}
		return true;
	}
	f = find_finished(d, request_id);
	if (f) {
		tell_result(call, &f->res, f->rc, &f->err);
	}
	return f != NULL || is_on_record(d, call, request_id);
}

static int check_free(const struct daemon *d, const struct wish *wish,
		      struct err *err)
{
	int64_t now = store_generation(d->store);

	if (d->change) {
		err_set(err, WEFT_ESTALE, "a change of %s is under way",
			d->change->who);
		err_hint(err, "wait for it, or \"weft cancel\"");
		return err->code;
	}
	if (d->confirm.change) {
		err_set(err, WEFT_ESTALE, "change %" PRId64 " waits for its "
			"confirmation", d->confirm.change);
		err_hint(err, "\"weft confirm\" keeps it, \"weft cancel\" goes "
			      "back");
		return err->code;
	}
	if (wish->confirm_within_ns > 0 && !d->applied) {
		return err_set(err, WEFT_ENOTFOUND, "there is no earlier "
			       "configuration to go back to");
	}
	if (wish->confirm_within_ns < 0 ||
	    wish->confirm_within_ns > CONFIRM_MAX_NS) {
		return err_set(err, WEFT_EINVAL, "confirm_within_ns is %" PRId64
			       ", and may be 0 to %" PRId64 " (a year)",
			       wish->confirm_within_ns, CONFIRM_MAX_NS);
	}
	if (wish->expected && wish->expected->value != now) {
		return err_set(err, WEFT_ESTALE,
			       "the generation is %" PRId64 ", not %" PRId64,
			       now, wish->expected->value);
	}
	return 0;
}

/* Without a call it is weftd itself. */
static char *name_of(const struct rpc_call *call)
{
	const struct rpc_peer *peer = call ? rpc_call_peer(call) : NULL;
	char text[32];

	if (!peer || peer->remote) {
		return strdup(peer ? peer->name : "weftd");
	}
	if (peer->uid == 0) {
		return strdup("root");
	}
	snprintf(text, sizeof(text), "uid %u", (unsigned)peer->uid);
	return strdup(text);
}

/* Takes w over, also on error. */
static int start_change(struct daemon *d, struct rpc_call *call,
			const struct wish *wish, struct work *w,
			const char *digest, struct err *err)
{
	struct change *c = calloc(1, sizeof(*c));
	int r = c ? 0 : err_nomem(err);

	if (r == 0) {
		c->d = d;
		c->request_id = strdup(wish->request_id);
		c->comment = strdup(wish->comment);
		c->confirm_within_ns = wish->confirm_within_ns;
		c->who = wish->own ? strdup(wish->own->who) : name_of(call);
		c->ended = wish->own ? wish->own->ended : NULL;
		snprintf(c->digest, sizeof(c->digest), "%s", digest);
		daemon_trace_of(call, c->trace);
		if (call) {
			rpc_peer_text(rpc_call_peer(call), c->peer,
				      sizeof(c->peer));
		}
		r = c->request_id && c->comment && c->who ? 0 : err_nomem(err);
	}
	r = r ? r : daemon_check_frozen(d, err);
	if (r == 0 && call) {
		r = watch(c, call, err);
	}
	if (r) {
		if (c) {
			change_free(c);
		}
		daemon_work_free(w);
		return r;
	}
	c->w = w;
	w->arg = c;
	c->restores = w->restoring != NULL;
	w->with_picture = !c->restores;
	w->done = on_planned;
	d->change = c;
	tell_all_started(c);
	daemon_work_start(w);
	return 0;
}

/* ---- apply --------------------------------------------------------------- */

/* A plan file says which state it was made from; another one has moved on. */
static int check_plan_file(const struct daemon *d, const struct plan_file *f,
			   struct err *err)
{
	int64_t now = store_generation(d->store);

	if (!f->state_uuid[0]) {
		err_set(err, WEFT_ESTALE, "the plan was made without weftd, "
					  "from no state at all");
	} else if (strcmp(f->state_uuid, store_uuid(d->store)) != 0) {
		err_set(err, WEFT_ESTALE, "the plan is for another fabric's "
					  "state (%s)", f->state_uuid);
	} else if (f->generation != now) {
		err_set(err, WEFT_ESTALE,
			"the plan was made from generation %" PRId64
			", the present one is %" PRId64,
			f->generation, now);
	} else {
		return 0;
	}
	err_hint(err, "plan again: weft plan -f FABRIC.yaml -o PLAN");
	return err->code;
}

static int apply_plan_file(struct daemon *d, struct rpc_call *call,
			   const struct wish *wish,
			   const Weft__V1__ApplyRequest *req, struct err *err)
{
	struct plan_file f;
	struct work *w;
	int r = plan_file_read(req->plan_file.data, req->plan_file.len, &f,
			       err);

	if (r) {
		err_wrap(err, "%s", req->name);
		return r;
	}
	r = check_plan_file(d, &f, err);
	if (r == 0) {
		r = daemon_work_new(d, f.config_name, f.config, f.config_len,
				    &w, err);
	}
	if (r == 0) {
		w->mode = f.mode;
		r = start_change(d, call, wish, w, f.digest, err);
	}
	plan_file_fini(&f);
	return r;
}

static int apply_config(struct daemon *d, struct rpc_call *call,
			const struct wish *wish,
			const Weft__V1__ApplyRequest *req, struct err *err)
{
	struct work *w;
	int r;

	if (req->source_case != WEFT__V1__APPLY_REQUEST__SOURCE_CONFIG) {
		return err_set(err, WEFT_EINVAL,
			       "neither a configuration nor a plan file");
	}
	r = daemon_work_new(d, req->name,
			    req->config.data ? (char *)req->config.data : "",
			    req->config.len, &w, err);
	if (r) {
		return r;
	}
	w->mode = req->mode == WEFT__V1__MODE__MODE_UPDATE ? PLAN_UPDATE
							   : PLAN_SAFE;
	return start_change(d, call, wish, w, "", err);
}

void handle_apply(struct rpc_call *call, const ProtobufCMessage *msg,
		  void *arg)
{
	const Weft__V1__ApplyRequest *req =
		(const Weft__V1__ApplyRequest *)msg;
	const struct wish wish = {
		.request_id = req->request_id, .comment = req->comment,
		.expected = req->expected_generation,
		.confirm_within_ns = req->confirm_within_ns,
	};
	struct daemon *d = arg;
	struct err err = { 0 };
	int r;

	if (!daemon_may_change(d, call) ||
	    is_repeated(d, call, wish.request_id)) {
		return;
	}
	r = check_free(d, &wish, &err);
	if (r == 0 && req->source_case ==
			      WEFT__V1__APPLY_REQUEST__SOURCE_PLAN_FILE) {
		r = apply_plan_file(d, call, &wish, req, &err);
	} else if (r == 0) {
		r = apply_config(d, call, &wish, req, &err);
	}
	if (r) {
		rpc_finish_err(call, &err);
	}
}

/* ---- rollback ------------------------------------------------------------ */

struct search {
	bool exact;
	int64_t generation;	/* wanted, if exact */
	int skip;		/* committed changes to pass, if not */
	int64_t found;		/* change id, 0: none */
};

static bool search_page(struct search *s, const struct store_change *v, int n)
{
	for (int i = 0; i < n && !s->found; i++) {
		if (v[i].verdict != STORE_COMMITTED) {
			continue;
		}
		if (s->exact ? v[i].generation == s->generation
			     : s->skip-- == 0) {
			s->found = v[i].id;
		}
	}
	return s->found != 0;
}

/* The committed change to go back to: the one that made a generation; or the
 * present one while a change is open, as that is what was meant before it;
 * or the one before. */
static int find_target(struct daemon *d, const Weft__V1__Number *to,
		       int64_t *change, struct err *err)
{
	struct search s = { .exact = to != NULL,
			    .generation = to ? to->value : 0 };
	struct store_journal *open = NULL;
	struct store_change *v;
	int64_t before = 0;
	int n, n_open, r = store_open_changes(d->store, &open, &n_open, err);

	s.skip = r == 0 && n_open > 0 ? 0 : 1;
	store_journals_free(open, r ? 0 : n_open);
	while (r == 0 && !s.found) {
		r = store_history(d->store, before, HISTORY_PAGE, &v, &n, err);
		if (r || n == 0) {
			break;
		}
		before = v[n - 1].id;
		search_page(&s, v, n);
		store_history_free(v, n);
	}
	*change = s.found;
	if (r || s.found) {
		return r;
	}
	if (to) {
		err_set(err, WEFT_ENOTFOUND, "no configuration of generation "
			"%" PRId64 " is on record", to->value);
	} else {
		err_set(err, WEFT_ENOTFOUND, "there is no earlier "
					     "configuration to go back to");
	}
	err_hint(err, "\"weft history\" lists what is");
	return err->code;
}

/* Applies the configuration of change `to` once more. */
static int start_earlier(struct daemon *d, struct rpc_call *call,
			 const struct wish *wish, int64_t to, struct err *err)
{
	struct store_config cfg;
	struct work *w;
	int r = store_change_config(d->store, to, &cfg, err);

	if (r) {
		return r;
	}
	r = daemon_work_new(d, cfg.name, cfg.text, cfg.len, &w, err);
	store_config_fini(&cfg);
	if (r == 0 && wish->own && !(w->only = strdup(wish->own->job))) {
		daemon_work_free(w);
		return err_nomem(err);
	}
	if (r) {
		return r;
	}
	w->must = wish->must;
	return start_change(d, call, wish, w, "", err);
}

int daemon_change_jobs(struct daemon *d, const struct own_change *own,
		       struct err *err)
{
	const struct wish wish = { .request_id = "", .own = own,
				   .comment = own->comment };
	struct store_config cfg;
	int r = check_free(d, &wish, err);

	r = r ? r : store_config(d->store, &cfg, err);
	if (r) {
		return r;
	}
	r = start_earlier(d, NULL, &wish, cfg.change, err);
	store_config_fini(&cfg);
	return r;
}

int daemon_change_restore(struct daemon *d, const struct own_change *own,
			  struct err *err)
{
	const struct wish wish = { .request_id = "", .own = own,
				   .comment = own->comment };
	struct work *w;
	int r = check_free(d, &wish, err);

	r = r ? r : daemon_work_new(d, NULL, NULL, 0, &w, err);
	if (r) {
		restoring_free(own->restoring);
		return r;
	}
	w->restoring = own->restoring;
	w->mode = PLAN_UPDATE;
	return start_change(d, NULL, &wish, w, "", err);
}

int daemon_go_back(struct daemon *d, struct rpc_call *call, int64_t to,
		   const char *comment, struct err *err)
{
	const struct wish wish = { .request_id = "", .comment = comment,
				   .must = true };

	return d->change ? err_set(err, WEFT_ESTALE, "a change of %s is under "
				   "way", d->change->who)
			 : start_earlier(d, call, &wish, to, err);
}

static int rollback(struct daemon *d, struct rpc_call *call,
		    const struct wish *wish,
		    const Weft__V1__RollbackRequest *req, struct err *err)
{
	struct wish named = *wish;
	char comment[64];
	int64_t change;
	int r = check_free(d, wish, err);

	if (r || (r = find_target(d, req->to, &change, err))) {
		return r;
	}
	snprintf(comment, sizeof(comment), "rollback to change %" PRId64,
		 change);
	if (!named.comment[0]) {
		named.comment = comment;
	}
	return start_earlier(d, call, &named, change, err);
}

void handle_rollback(struct rpc_call *call, const ProtobufCMessage *msg,
		     void *arg)
{
	const Weft__V1__RollbackRequest *req =
		(const Weft__V1__RollbackRequest *)msg;
	const struct wish wish = {
		.request_id = req->request_id, .comment = req->comment,
		.expected = req->expected_generation,
		.confirm_within_ns = req->confirm_within_ns,
	};
	struct daemon *d = arg;
	struct err err = { 0 };

	if (!daemon_may_change(d, call) ||
	    is_repeated(d, call, wish.request_id)) {
		return;
	}
	if (rollback(d, call, &wish, req, &err)) {
		rpc_finish_err(call, &err);
	}
}

/* ---- cancel -------------------------------------------------------------- */

/* True when it is this change that waits for its confirmation. */
static bool waits(const struct daemon *d, const struct finished *f,
		  const char *id)
{
	return d->confirm.change &&
	       (!id[0] || (f && f->res.change == d->confirm.change));
}

void handle_cancel(struct rpc_call *call, const ProtobufCMessage *msg,
		   void *arg)
{
	const char *id = ((const Weft__V1__CancelRequest *)msg)->request_id;
	struct daemon *d = arg;
	struct change *c = d->change;
	const struct finished *f;
	struct err err = { 0 };

	if (!daemon_may_change(d, call)) {
		return;
	}
	if (c && (!id[0] || strcmp(c->request_id, id) == 0)) {
		if (watch(c, call, &err)) {
			rpc_finish_err(call, &err);
		}
		c->cancelled = true;
		daemon_audit_call(d, call, apply_running(d->apply),
				  "asked to stop");
		if (c->started) {
			apply_cancel(d->apply);
		}
		return;
	}
	f = id[0] ? find_finished(d, id) : NULL;
	if (waits(d, f, id)) {
		daemon_audit_call(d, call, d->confirm.change, "cancelled");
		if (daemon_go_back(d, call, d->confirm.back_to,
				   "cancelled instead of confirmed", &err)) {
			rpc_finish_err(call, &err);
		}
		return;
	}
	if (f) {
		tell_result(call, &f->res, f->rc, &f->err);
		return;
	}
	err_set(&err, WEFT_ENOTFOUND, "no such change is under way");
	rpc_finish_err(call, &err);
}
