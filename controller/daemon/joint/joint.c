/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of this weftd in joint changes.
 *
 * There is no coordinator: whoever sees in etcd that all have said what is needed goes on, and
 * whoever cannot go on decides "undo", which holds unless "commit" was decided before.
 *
 * etcd is asked by a coroutine, a look at a time: it says what this participant has to say, which
 * is kept until etcd has it, and reads all facts. Nothing but that: what follows from them is
 * done on the loop once the look is over (follow), by what the part is then, and may be more to
 * say. So a look may take long, or fail at any point and be done once more.
 *
 *	PART_NONE      no part in any
 *	PART_GATHERS   has read its devices; waits for what the others' hold
 *	PART_PLANS     its plan is being made, checked and journaled
 *	PART_WAITS     before a stage of its own, or the commit: for the others
 *	PART_RUNS      a stage of its own is under way, or the undoing
 *	PART_ENDED     its part is over; waits for the others' end
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "controller/daemon/joint/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/coroutine/coroutine.h"

#define LOOK_NEXT_MS 10		/* what was seen is more to say */
#define LOOK_OPEN_MS 500	/* between looks that no watch asked for */
#define LOOK_IDLE_MS 2000
#define GONE_LEASES 3		/* a participant without a leader for as long is given up */
#define NS_PER_MS 1000000
#define ENDED_IN_CHANGE "its weftd ended in the change"

/* In the next round of the loop, or when the look under way is over. */
static void look_soon(struct joint *j)
{
	j->look.again = true;
	part_timer_start(j->timer, 0);
}

/* ---- what the others have said ------------------------------------------- */

/* A participant that has no leader for long is given up, unless it has ended. */
static void watch_leaders(struct joint *j)
{
	int64_t now = clk_boot_ns();

	for (int i = 0; i < j->now->n; i++) {
		const struct joint_said *s = &j->now->v[i];

		if (s->leader[0] || s->ended[0] || !s->has_part) {
			j->gone_ns[i] = 0;
		} else if (!j->gone_ns[i]) {
			j->gone_ns[i] = now;
		} else if (!j->now->decision &&
			   now - j->gone_ns[i] > GONE_LEASES * j->cfg.lease_ms * NS_PER_MS) {
			joint_want_undo(j, s->name, "no weftd leads it");
		}
	}
}

/* Have all others done what comes before the stage that this one waits for? One of them may have
 * another plan, or found nothing to do: then it is to be undone. */
static bool all_before(struct joint *j)
{
	bool all = true;

	for (int i = 0; i < j->now->n; i++) {
		const struct joint_said *s = &j->now->v[i];

		all = all && (s->stage >= j->stage || !s->has_part);
		if (s->stage < j->stage && strcmp(s->name, j->name) == 0) {
			j->stage_said = false;	/* or what was said before it came late */
		}
		if (!s->has_part || j->now->decision) {
			continue;
		}
		if (s->ended[0]) {
			joint_want_undo(j, s->name, s->ended);
		} else if (s->stage >= 0 && strcmp(s->digest, j->digest) != 0) {
			joint_want_undo(j, s->name, "has made another plan");
		}
	}
	return all;
}

/* ---- gathering ----------------------------------------------------------- */

/* Ends the wait for the others' devices. */
static void end_gathering(struct joint *j, int rc, const struct err *err)
{
	struct plan_request *pr = j->gathering;

	j->gathering = NULL;
	j->phase = PART_PLANS;
	plan_request_go_on(pr, rc, err);
}

/* Have all said what their devices hold? */
static bool all_have_bases(const struct joint_facts *now)
{
	return now->n_parts > 0 && now->n_bases == now->n_parts;
}

/* Once that was read too, the plan starts from it. */
static void gather(struct joint *j)
{
	const struct etcd_pairs *bases = &j->look.bases;
	struct plan_request *pr = j->gathering;
	struct err err = { 0 };
	int r = 0;

	if (bases->n == 0 || bases->n != j->now->n_parts) {
		return;
	}
	for (int i = 0; i < bases->n && r == 0; i++) {
		r = joint_lights_decode(&pr->snap, pr->fabric, bases->v[i].value,
					bases->v[i].len, bases->v[i].key, &err);
	}
	end_gathering(j, r, &err);
}

static bool is_own(const struct model_device *d, void *arg)
{
	return joint_has_domain(((struct joint *)arg)->cfg.domains, d->domain);
}

/* The queue has read the devices of the part. */
static void prepare(struct plan_request *pr, void *arg)
{
	struct joint *j = arg;

	buf_reset(&j->base);
	joint_lights_encode(&pr->snap, pr->fabric, is_own, j, &j->base);
	j->gathering = pr;
	j->phase = PART_GATHERS;
	pr->waits = true;
	look_soon(j);
}

static void planned(const struct plan *p, void *arg)
{
	struct joint *j = arg;

	snprintf(j->digest, sizeof(j->digest), "%s", p->digest);
	j->n_stages = p->n_stages;
}

/* ---- under way ----------------------------------------------------------- */

/* The engine waits before this stage. */
static void ready(int stage, void *arg)
{
	struct joint *j = arg;

	j->stage = stage;
	j->stage_said = false;
	j->phase = PART_WAITS;
	look_soon(j);
}

static void go_on(struct joint *j)
{
	j->phase = PART_RUNS;
	apply_go_on(j->env->apply);
}

static void take_back(struct joint *j, const char *why)
{
	struct err err = { 0 };

	j->phase = PART_RUNS;
	err_set(&err, WEFT_ECANCELED, "undone: %s", why);
	apply_take_back(j->env->apply, err.code, &err);
}

/* All have come as far: the next stage, or the commit. */
static void wait_for_others(struct joint *j)
{
	const enum joint_decision decision = j->now->decision;
	const bool all = all_before(j);

	if (j->undo[0]) {
		return;			/* is said next */
	}
	if (decision == JOINT_UNDO) {
		take_back(j, j->now->why);
	} else if (decision == JOINT_COMMIT || (all && j->stage < j->n_stages)) {
		go_on(j);
	} else {
		j->all_ready = all;
	}
}

/* The next step of the part by what is known; may be done any number of times. */
static void step(struct joint *j)
{
	const bool undo = j->now->decision == JOINT_UNDO;
	struct err why = { 0 };

	watch_leaders(j);
	switch (j->phase) {
	case PART_GATHERS:
		if (undo) {
			err_set(&why, WEFT_ECANCELED, "nothing was sent: %s", j->now->why);
			end_gathering(j, why.code, &why);
		} else {
			gather(j);
		}
		return;
	case PART_WAITS:
		wait_for_others(j);
		return;
	case PART_RUNS:
		if (undo) {
			take_back(j, j->now->why);
		}
		return;
	case PART_ENDED:
		j->all_ended = j->now->n_ended == j->now->n_parts;
		return;
	case PART_PLANS:	/* it waits once it is planned */
	case PART_NONE:
		return;
	}
}

/* ---- the end ------------------------------------------------------------- */

static const char *verdict_text(enum apply_verdict v)
{
	return v == APPLY_NOTHING_TO_DO ? "nothing to do" : apply_verdict_name(v);
}

static void drop_asked(struct joint *j)
{
	if (j->asked) {
		model_free(j->asked->fabric);
		buf_fini(&j->asked->names);
		buf_fini(&j->asked->request);
		free(j->asked);
		j->asked = NULL;
	}
}

static void forget(struct joint *j)
{
	drop_asked(j);
	joint_request_fini(&j->request);
	buf_reset(&j->base);
	j->id = 0;
	j->phase = PART_NONE;
	j->undo[0] = j->ended[0] = j->digest[0] = '\0';
	j->stage_said = j->all_ready = j->all_ended = false;
	j->refused = (struct err){ 0 };
	j->gathering = NULL;
	memset(j->gone_ns, 0, sizeof(j->gone_ns));
}

static bool is_known(void *arg)
{
	const struct joint *j = arg;

	return j->id || (j->asked && j->asked->tried);
}

/* The part is over here. A failure is everybody's, unless no other has been asked. */
static void ended(const struct apply_result *res, int rc, const struct err *err, void *arg)
{
	struct joint *j = arg;

	if (!is_known(j)) {
		forget(j);
		return;
	}
	if (rc) {
		joint_want_undo(j, j->name, err->msg);
	}
	snprintf(j->ended, sizeof(j->ended), "%s%s%s", verdict_text(res->verdict),
		 rc ? ": " : "", rc ? err->msg : "");
	j->gathering = NULL;
	j->phase = PART_ENDED;
	look_soon(j);
}

static void cancel(void *arg)
{
	struct joint *j = arg;

	joint_want_undo(j, j->name, "stopped on request");
	look_soon(j);
}

/* ---- the beginning ------------------------------------------------------- */

/* How this participant's history calls it: the client's own id means something only where it has
 * asked. */
static void name_part(struct joint_request *q, bool asked_here, const char *uuid)
{
	struct change_order *o = &q->order;

	if (!asked_here || !o->request_id[0]) {
		free((char *)o->request_id);
		o->request_id = x_dup(uuid);
	}
}

/* What was asked for in the open joint change, as the look has read it. */
static int take_request(const struct joint *j, struct joint_request *out, struct err *err)
{
	int r = joint_request_decode(j->look.request.data, j->look.request.len, out, err);

	if (r == 0) {
		name_part(out, strcmp(j->now->asked, j->name) == 0, j->now->uuid);
	}
	return r;
}

/* What a weftd before this one had done of it, if it had begun. False: it had not. */
static bool is_on_record(struct joint *j)
{
	struct store_change ch;
	bool open;

	if (store_change_by_request(j->env->store, j->request.order.request_id, &ch, NULL)) {
		return false;
	}
	open = ch.verdict == STORE_RUNNING;
	if (!open) {
		snprintf(j->ended, sizeof(j->ended), "%s: %s", store_verdict_name(ch.verdict),
			 ch.summary);
		if (ch.verdict != STORE_COMMITTED) {
			joint_want_undo(j, j->name, ENDED_IN_CHANGE);
		}
		j->phase = PART_ENDED;
	}
	store_change_fini(&ch);
	return true;
}

/* Begins the part of this participant, watched by call if it is the one that asked. */
static int begin_part(struct joint *j, struct rpc_call *call, const struct own_change *own,
		      struct err *err)
{
	int r;

	j->phase = PART_PLANS;
	r = changes_begin_part(j->changes, &j->request, call, own, err);
	if (r) {
		ended(&(struct apply_result){ .verdict = APPLY_REFUSED }, r, err, j);
	}
	return r;
}

/* A joint change is open in which this participant has not begun its part. */
static int join(struct joint *j, struct err *err)
{
	const struct joint_said *self = facts_find(j->now, j->name);
	struct err refused = { 0 };
	struct joint_request request;
	int r;

	if (!self || !self->has_part || !j->look.request.len) {
		return 0;
	}
	r = take_request(j, &request, err);
	if (r) {
		return r;
	}
	joint_request_fini(&j->request);
	j->request = request;
	if (is_on_record(j) && j->phase != PART_ENDED) {
		return 0;		/* it is being recovered */
	}
	j->id = j->now->id;
	if (j->phase == PART_NONE) {
		log_info("weftd", "joint change %s, which %s was asked for", j->now->uuid,
			 j->now->asked);
		begin_part(j, NULL, NULL, &refused);	/* why it cannot goes to all of them */
	}
	return 0;
}

/* ---- asking -------------------------------------------------------------- */

/* Every failure domain of the fabric has one participant; all participants have a part, as all
 * keep the intent of the whole fabric. Their names go to names. */
static int list_participants(const struct joint_facts *now, const struct model_fabric *f,
			     struct buf *names, struct err *err)
{
	for (int i = 0; i < f->n_devices; i++) {
		const char *domain = f->devices[i].domain;
		int n = 0;

		for (int k = 0; k < now->n; k++) {
			n += joint_has_domain(now->v[k].domains, domain);
		}
		if (n != 1) {
			err_set(err, WEFT_EUNAVAIL, "%s: %s leads its failure domain %s",
				f->devices[i].name, n ? "more than one weftd" : "no weftd", domain);
			err_hint(err, "\"weftd --domains\" says which ones a weftd leads");
			return err->code;
		}
	}
	for (int k = 0; k < now->n; k++) {
		buf_printf(names, "%s%s", k ? "," : "", now->v[k].name);
	}
	return 0;
}

/* The part that has begun here ends with this: no other has one. */
static void refuse(struct joint *j, const struct err *why)
{
	drop_asked(j);
	if (j->phase == PART_ENDED) {
		forget(j);
		return;
	}
	j->refused = *why;
}

/* rc, err: of the look, in which it may have been opened. */
static void follow_asked(struct joint *j, int rc, const struct err *err)
{
	struct asked *a = j->asked;
	struct err why = { 0 };

	if (rc && (!a->tried || (rc != WEFT_EUNAVAIL && rc != WEFT_ETIMEOUT))) {
		refuse(j, err);
	} else if (rc == 0 && strcmp(j->now->uuid, a->uuid) == 0) {
		j->id = j->now->id;
		drop_asked(j);
	} else if (rc == 0 && j->now->id) {
		err_set(&why, WEFT_ESTALE,
			"a joint change that %s was asked for is under way", j->now->asked);
		refuse(j, &why);
	} else if (rc == 0 && !a->names.len &&
		   list_participants(j->now, a->fabric, &a->names, &why)) {
		refuse(j, &why);
	}
}

static void make_uuid(char uuid[JOINT_UUID_MAX])
{
	uint64_t v[2] = { 0, 0 };

	if (getrandom(v, sizeof(v), 0) != sizeof(v)) {
		v[0] = (uint64_t)clk_wall_ns();
	}
	snprintf(uuid, JOINT_UUID_MAX, "joint-%016" PRIx64 "%016" PRIx64, v[0], v[1]);
}

static int parse_config(const struct model_config *config, struct model_fabric **out,
			struct err *err)
{
	struct err_list errs = { .max = 1 };
	int r = model_parse_config(config, out, &errs);

	if (r && errs.n > 0) {
		*err = errs.v[0];
	} else if (r) {
		err_set(err, r, "%s: cannot be read", config->name);
	}
	err_list_fini(&errs);
	return r;
}

/* Begins the part of this one; looks open it for all others as well. */
static int ask(const struct joint_request *q, struct rpc_call *call, const struct own_change *own,
	       void *arg, struct err *err)
{
	struct joint *j = arg;
	struct model_fabric *f = NULL;
	int r;

	if (j->phase != PART_NONE || j->id) {
		err_set(err, WEFT_ESTALE, "the joint change before is not over everywhere yet");
		err_hint(err,
			 "\"weft status\" says who has not ended; most often that is a moment");
		return err->code;
	}
	r = parse_config(&q->config, &f, err);
	if (r) {
		return r;
	}
	forget(j);
	j->asked = x_new(1, sizeof(*j->asked));
	j->asked->fabric = f;
	make_uuid(j->asked->uuid);
	joint_request_encode(q, &j->asked->request);
	r = joint_request_decode(j->asked->request.data, j->asked->request.len, &j->request, err);
	if (r) {
		forget(j);
		return r;
	}
	name_part(&j->request, true, j->asked->uuid);
	look_soon(j);
	return begin_part(j, call, own, err);
}

/* ---- after a start ------------------------------------------------------- */

static void answer_open(struct joint *j, enum apply_outcome outcome, int rc, const struct err *err)
{
	free(j->open);
	j->open = NULL;
	apply_set_outcome(j->env->apply, outcome, rc, err);
}

/* What is to become of the change that the engine has found. Without a decision it is to be
 * undone, as what the weftd before was doing is not known. */
static void follow_open(struct joint *j)
{
	struct joint_request request = { 0 };
	struct err err = { 0 };
	int r = j->look.request.len ? take_request(j, &request, &err) : 0;
	bool is_part = r == 0 && j->look.request.len &&
		       strcmp(j->open, request.order.request_id) == 0;

	joint_request_fini(&request);
	if (r || !is_part) {
		if (r == 0 && j->now->id && !j->look.request.len) {
			return;			/* it was found while the look went on */
		}
		answer_open(j, APPLY_BY_READING, r, &err);
	} else if (j->now->decision == JOINT_UNDECIDED) {
		j->id = j->now->id;
		joint_want_undo(j, j->name, ENDED_IN_CHANGE);
	} else if (j->now->decision == JOINT_COMMIT) {
		answer_open(j, APPLY_COMMIT, 0, &err);
	} else {
		err_set(&err, WEFT_ECANCELED, "undone: %s", j->now->why);
		answer_open(j, APPLY_UNDO, 0, &err);
	}
}

/* The engine has found an open change: what was decided, if it is a part of a joint one. */
static void on_open(const struct store_change *ch, void *arg)
{
	struct joint *j = arg;

	j->open = x_dup(ch->order.request_id);
	look_soon(j);
}

/* ---- looking ------------------------------------------------------------- */

/* The keys of the joint change are gone: it is over everywhere, or they were taken away. */
static void end_without_keys(struct joint *j)
{
	static const char why[] = "its keys are gone from etcd";
	struct err err = { 0 };

	if (j->phase == PART_ENDED || j->phase == PART_NONE) {
		forget(j);
	} else if (j->phase == PART_GATHERS) {
		end_gathering(j, err_set(&err, WEFT_ECANCELED, "nothing was sent: %s", why), &err);
	} else if (j->phase == PART_WAITS) {
		take_back(j, why);
	}
}

/* Says, and reads into the look; on its coroutine. */
static int look_once(struct joint *j, struct err *err)
{
	struct look *l = &j->look;
	int r;

	if (!j->joined) {
		r = facts_join(j->facts, j->cfg.domains, err);
		if (r) {
			return r;
		}
		j->joined = true;
	}
	if ((r = joint_say(j, err)) || (r = facts_read(j->facts, l->facts, err))) {
		return r;
	}
	if (j->phase == PART_GATHERS && all_have_bases(l->facts)) {
		return facts_bases(j->facts, &l->bases, err);
	}
	if (l->facts->id && (j->open || j->phase == PART_NONE)) {
		return facts_request(j->facts, &l->request, err);
	}
	return 0;
}

static void run_look(void *arg)
{
	struct joint *j = arg;

	j->look.rc = look_once(j, &j->look.err);
	j->look.fd = facts_wait_fd(j->facts);
}

/* What follows from a look that has read all. */
static int follow(struct joint *j, struct err *err)
{
	struct joint_facts *before = j->now;
	int r = 0;

	j->now = j->look.facts;
	j->look.facts = before;
	if (j->asked) {
		follow_asked(j, 0, err);
	}
	if (j->open) {
		follow_open(j);
	}
	if (j->id && j->now->id != j->id) {
		end_without_keys(j);
	}
	if (j->phase == PART_NONE && j->now->id && !j->env->reading && !j->env->draining) {
		r = join(j, err);
	}
	if (j->id && j->id == j->now->id) {
		step(j);
	}
	return r;
}

static void look(void *arg);

static void end_look(void *arg)
{
	struct joint *j = arg;
	struct look *l = &j->look;
	struct err err = l->err;
	int r = l->rc;

	l->goes_on = false;
	if (j->stopped) {
		joint_free(j);
		return;
	}
	if (r == 0) {
		r = follow(j, &err);
	} else if (j->asked) {
		follow_asked(j, r, &err);
	} else if (j->open) {
		answer_open(j, APPLY_BY_READING, r, &err);
	}
	if (r && !j->silent) {
		log_warn("weftd", "joint changes: %s", err.msg);
	}
	j->silent = r != 0;
	if (j->refused.code && j->phase == PART_GATHERS) {
		err = j->refused;
		end_gathering(j, err.code, &err);
	}
	etcd_pairs_fini(&l->bases);
	buf_reset(&l->request);
	part_wait_start(j->env, l->fd, look, j, &j->wait);
	part_timer_start(j->timer, l->again ? 0 : r == 0 && joint_has_to_say(j) ? LOOK_NEXT_MS
			 : j->id || j->now->id || j->asked ? LOOK_OPEN_MS : LOOK_IDLE_MS);
}

static void look(void *arg)
{
	struct joint *j = arg;

	if (j->look.goes_on) {
		j->look.again = true;
		return;
	}
	j->look.goes_on = true;
	j->look.again = false;
	j->look.err = (struct err){ 0 };
	co_start(j->env->loop, run_look, end_look, j);
}

/* ---- who they are -------------------------------------------------------- */

/* What a participant does in the open joint change. */
static void describe(const struct joint_facts *now, const struct joint_said *s, char *text,
		     size_t size)
{
	if (!s->has_part) {
		text[0] = '\0';
	} else if (s->ended[0]) {
		snprintf(text, size, "%s", s->ended);
	} else if (s->stage < 0) {
		snprintf(text, size, "has a part in a joint change, not prepared yet");
	} else {
		snprintf(text, size, "has a part in a joint change%s; ready for stage %d",
			 now->decision == JOINT_UNDO ? " that is undone"
			 : now->decision == JOINT_COMMIT ? " that is committed" : "",
			 s->stage + 1);
	}
}

int joint_participants(const struct joint *j, struct joint_participant v[JOINT_MAX])
{
	for (int i = 0; i < j->now->n; i++) {
		const struct joint_said *s = &j->now->v[i];

		v[i] = (struct joint_participant){
			.name = s->name, .domains = s->domains, .leader = s->leader,
		};
		describe(j->now, s, v[i].state, sizeof(v[i].state));
	}
	return j->now->n;
}

/* ---- life ---------------------------------------------------------------- */

int joint_new(struct daemon_env *env, const struct joint_config *cfg,
	      const struct election *election, struct changes *changes, struct joint **out,
	      struct err *err)
{
	struct joint *j = x_new(1, sizeof(*j));
	const struct change_partners partners = {
		.ask = ask, .prepare = prepare, .planned = planned, .ready = ready,
		.cancel = cancel, .is_known = is_known, .ended = ended, .arg = j,
	};
	int r;

	*out = NULL;
	j->env = env;
	j->cfg = *cfg;
	j->changes = changes;
	r = joint_name(cfg->domains, j->name, err);
	if (r || (r = facts_new(cfg, election, &j->facts, err))) {
		free(j);
		return r;
	}
	j->now = x_new(1, sizeof(*j->now));
	j->look.facts = x_new(1, sizeof(*j->look.facts));
	j->timer = part_timer_new(env, look, j);
	env->divided = true;
	changes_set_partners(changes, &partners);
	apply_on_open(env->apply, on_open, j);
	look_soon(j);
	*out = j;
	return 0;
}

void joint_free(struct joint *j)
{
	if (!j) {
		return;
	}
	if (!j->stopped) {
		j->stopped = true;
		part_wait_stop(&j->wait);
		part_timer_free(j->timer);
		facts_stop(j->facts);
	}
	if (j->look.goes_on) {
		return;			/* end_look comes back */
	}
	facts_free(j->facts);
	forget(j);
	buf_fini(&j->base);
	etcd_pairs_fini(&j->look.bases);
	buf_fini(&j->look.request);
	free(j->look.facts);
	free(j->now);
	free(j->open);
	free(j);
}
