/*
 * The part of this weftd in joint changes.
 *
 * There is no coordinator: whoever sees in etcd that all have said what is needed goes on, and
 * whoever cannot go on decides "undo", which holds unless "commit" was decided before. Every
 * look reads all facts; what this participant has to say is kept until etcd has it, so a look
 * may fail at any point and be done once more.
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

#define LOOK_OPEN_MS 500	/* between looks that no watch asked for */
#define LOOK_IDLE_MS 2000
#define GONE_LEASES 3		/* a participant without a leader for as long is given up */
#define NS_PER_MS 1000000

enum part_phase { PART_NONE, PART_GATHERS, PART_PLANS, PART_WAITS, PART_RUNS, PART_ENDED };

struct joint {
	struct daemon_env *env;
	struct joint_config cfg;
	struct changes *changes;
	struct facts *facts;
	struct part_timer *timer;
	struct part_wait *wait;		/* for a key that changes, or NULL */
	char name[JOINT_NAME_MAX];
	bool joined;			/* the others know its domains */
	bool silent;			/* etcd did not answer the last time */
	struct joint_facts *now;	/* as last read */
	/* Of the joint change that it has a part in: */
	int64_t id;
	enum part_phase phase;
	struct joint_request request;	/* its id: of the part, in its history */
	struct plan_request *gathering;	/* while PART_GATHERS */
	struct buf base;		/* to be said while it has bytes */
	int stage, n_stages;		/* waits to begin it; of the plan */
	bool stage_said;
	char digest[65];
	char undo[JOINT_TEXT_MAX];	/* to be decided while not "" */
	char ended[JOINT_TEXT_MAX];	/* to be said while not "" */
	int64_t gone_ns[JOINT_MAX];	/* since when no weftd leads it; 0: one does */
};

static void look(void *arg);

/* ---- what is said -------------------------------------------------------- */

/* Undo will be decided, because of this at a participant. */
static void want_undo(struct joint *j, const char *name, const char *why)
{
	if (!j->undo[0]) {
		snprintf(j->undo, sizeof(j->undo), "%s: %s", name, why);
	}
}

/* What is too much for etcd will be so every time. */
static int say_base(struct joint *j, struct err *err)
{
	int r = facts_put_base(j->facts, j->id, &j->base, err);

	if (r == WEFT_ELIMIT || r == WEFT_EINVAL) {
		want_undo(j, j->name, err->msg);
		err_clear(err);
		r = 0;
	}
	if (r == 0) {
		buf_reset(&j->base);
	}
	return r;
}

/* Says what etcd does not have yet. A fact that is too late is none. */
static int say(struct joint *j, struct err *err)
{
	enum joint_decision decision;
	int r = 0;

	if (j->undo[0] && (r = facts_decide(j->facts, j->id, JOINT_UNDO, j->undo, &decision,
					    err)) == 0) {
		j->undo[0] = '\0';
	}
	if (r == 0 && j->base.len) {
		r = say_base(j, err);
	}
	if (r == 0 && j->phase == PART_WAITS && !j->stage_said) {
		r = facts_put_stage(j->facts, j->id, j->stage, j->digest, err);
		j->stage_said = r == 0;
	}
	if (r == 0 && j->ended[0] && (r = facts_put_ended(j->facts, j->id, j->ended, err)) == 0) {
		j->ended[0] = '\0';
	}
	return r;
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
			want_undo(j, s->name, "no weftd leads it");
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
		if (!s->has_part || j->now->decision) {
			continue;
		}
		if (s->ended[0]) {
			want_undo(j, s->name, s->ended);
		} else if (s->stage >= 0 && strcmp(s->digest, j->digest) != 0) {
			want_undo(j, s->name, "has made another plan");
		}
	}
	return all;
}

static bool all_ended(const struct joint *j)
{
	for (int i = 0; i < j->now->n; i++) {
		if (j->now->v[i].has_part && !j->now->v[i].ended[0]) {
			return false;
		}
	}
	return true;
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

/* Once all have said what their devices hold, the plan starts from that. */
static int gather(struct joint *j, struct err *err)
{
	struct etcd_pairs bases = { 0 };
	struct plan_request *pr = j->gathering;
	struct err bad = { 0 };
	int r, rc = 0;

	for (int i = 0; i < j->now->n; i++) {
		if (j->now->v[i].has_part && !j->now->v[i].has_base) {
			return 0;
		}
	}
	r = facts_bases(j->facts, &bases, err);

	for (int i = 0; i < bases.n && r == 0 && bases.n == j->now->n_parts && rc == 0; i++) {
		rc = joint_lights_decode(&pr->snap, pr->fabric, bases.v[i].value, bases.v[i].len,
					 bases.v[i].key, &bad);
	}
	if (r == 0 && bases.n == j->now->n_parts) {
		end_gathering(j, rc, &bad);
	}
	etcd_pairs_fini(&bases);
	return r;
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
	part_timer_start(j->timer, 0);
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
	part_timer_start(j->timer, 0);
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
static int wait_for_others(struct joint *j, struct err *err)
{
	enum joint_decision decision = j->now->decision;
	bool all = all_before(j);
	int r = 0;

	if (j->undo[0]) {
		return 0;	/* the next look says so */
	}
	if (decision == JOINT_UNDECIDED && all && j->stage == j->n_stages) {
		r = facts_decide(j->facts, j->id, JOINT_COMMIT, "", &decision, err);
	}
	if (r) {
		return r;
	}
	if (decision == JOINT_COMMIT || (decision == JOINT_UNDECIDED && all)) {
		go_on(j);
	} else if (j->now->decision == JOINT_UNDO) {	/* and its reason is known */
		take_back(j, j->now->why);
	}
	return 0;
}

/* The next step of the part by what is known; may be done any number of times. */
static int step(struct joint *j, struct err *err)
{
	bool undo = j->now->decision == JOINT_UNDO;
	struct err why = { 0 };

	watch_leaders(j);
	switch (j->phase) {
	case PART_GATHERS:
		if (undo) {
			err_set(&why, WEFT_ECANCELED, "nothing was sent: %s", j->now->why);
			end_gathering(j, why.code, &why);
			return 0;
		}
		return gather(j, err);
	case PART_WAITS:
		return wait_for_others(j, err);
	case PART_RUNS:
		if (undo) {
			take_back(j, j->now->why);
		}
		return 0;
	case PART_ENDED:
		return all_ended(j) ? facts_close(j->facts, j->id, err) : 0;
	case PART_PLANS:	/* it waits once it is planned */
	case PART_NONE:
		break;
	}
	return 0;
}

/* ---- the end ------------------------------------------------------------- */

static const char *verdict_text(enum apply_verdict v)
{
	return v == APPLY_NOTHING_TO_DO ? "nothing to do" : apply_verdict_name(v);
}

/* The part is over here. A failure is everybody's. */
static void ended(const struct apply_result *res, int rc, const struct err *err, void *arg)
{
	struct joint *j = arg;

	if (rc) {
		want_undo(j, j->name, err->msg);
	}
	snprintf(j->ended, sizeof(j->ended), "%s%s%s", verdict_text(res->verdict),
		 rc ? ": " : "", rc ? err->msg : "");
	j->gathering = NULL;
	j->phase = PART_ENDED;
	part_timer_start(j->timer, 0);
}

static void cancel(void *arg)
{
	struct joint *j = arg;

	want_undo(j, j->name, "stopped on request");
	part_timer_start(j->timer, 0);
}

/* ---- the beginning ------------------------------------------------------- */

static void forget(struct joint *j)
{
	joint_request_fini(&j->request);
	buf_reset(&j->base);
	j->id = 0;
	j->phase = PART_NONE;
	j->undo[0] = j->ended[0] = j->digest[0] = '\0';
	j->stage_said = false;
	j->gathering = NULL;
	memset(j->gone_ns, 0, sizeof(j->gone_ns));
}

/* Reads what was asked for, and how this participant's history calls it: the client's own id
 * means something only where it has asked. */
static int take_request(struct joint *j, const struct joint_facts *facts, struct err *err)
{
	struct change_order *o = &j->request.order;
	struct buf data = { 0 };
	int r = facts_request(j->facts, &data, err);

	if (r == 0) {
		joint_request_fini(&j->request);
		r = joint_request_decode(data.data, data.len, &j->request, err);
	}
	if (r == 0 && (strcmp(facts->asked, j->name) != 0 || !o->request_id[0])) {
		free((char *)o->request_id);
		o->request_id = x_dup(facts->uuid);
	}
	buf_fini(&data);
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
			want_undo(j, j->name, "its weftd ended in the change");
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
static int join(struct joint *j, struct rpc_call *call, const struct own_change *own,
		struct err *err)
{
	int r = take_request(j, j->now, err);
	bool has_part = false;

	if (r) {
		return r;
	}
	for (int i = 0; i < j->now->n; i++) {
		has_part = has_part || (j->now->v[i].has_part &&
					strcmp(j->now->v[i].name, j->name) == 0);
	}
	if (!has_part || (is_on_record(j) && j->phase != PART_ENDED)) {
		return 0;	/* or it is being recovered */
	}
	j->id = j->now->id;
	if (j->phase == PART_ENDED) {
		return 0;
	}
	log_info("weftd", "joint change %s, which %s was asked for", j->now->uuid, j->now->asked);
	return begin_part(j, call, own, err);
}

/* ---- looking ------------------------------------------------------------- */

/* The keys of the joint change are gone: it is over everywhere, or they were taken away. */
static void end_without_keys(struct joint *j)
{
	static const char why[] = "its keys are gone from etcd";
	struct err err = { 0 };

	if (j->phase == PART_ENDED) {
		forget(j);
	} else if (j->phase == PART_GATHERS) {
		end_gathering(j, err_set(&err, WEFT_ECANCELED, "nothing was sent: %s", why), &err);
	} else if (j->phase == PART_WAITS) {
		take_back(j, why);
	}
}

static void on_change_of_keys(void *arg)
{
	look(arg);
}

static int look_once(struct joint *j, struct err *err)
{
	struct err refused = { 0 };
	int r = 0;

	if (!j->joined) {
		r = facts_join(j->facts, j->cfg.domains, err);
		j->joined = r == 0;
	}
	if (r == 0 && j->id && (r = say(j, err)) == WEFT_ESTALE) {
		r = 0;		/* it is over, as is seen now */
	}
	if (r == 0) {
		r = facts_read(j->facts, j->now, err);
	}
	if (r == 0 && j->id && j->now->id != j->id) {
		end_without_keys(j);
	}
	if (r == 0 && !j->id && j->now->id && !j->env->reading && !j->env->draining) {
		/* Why it cannot begin goes to all of them. */
		r = join(j, NULL, NULL, &refused);
		r = r && j->id ? 0 : r;
		if (r) {
			*err = refused;
		}
	}
	return r ? r : j->id && j->id == j->now->id ? step(j, err) : 0;
}

static void look(void *arg)
{
	struct joint *j = arg;
	struct err err = { 0 };
	int r = look_once(j, &err);
	bool due = j->undo[0] || j->ended[0] || j->base.len ||
		   (j->phase == PART_WAITS && !j->stage_said);

	if (r && !j->silent) {
		log_warn("weftd", "joint changes: %s", err.msg);
	}
	j->silent = r != 0;
	part_wait_start(j->env, facts_wait_fd(j->facts), on_change_of_keys, j, &j->wait);
	part_timer_start(j->timer, due && r == 0 ? 0 : j->id || j->now->id ? LOOK_OPEN_MS
									    : LOOK_IDLE_MS);
}

/* ---- asking -------------------------------------------------------------- */

static void make_uuid(char uuid[JOINT_UUID_MAX])
{
	uint64_t v[2] = { 0, 0 };

	if (getrandom(v, sizeof(v), 0) != sizeof(v)) {
		v[0] = (uint64_t)clk_wall_ns();
	}
	snprintf(uuid, JOINT_UUID_MAX, "joint-%016" PRIx64 "%016" PRIx64, v[0], v[1]);
}

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

/* Asks all others as well, and begins the part of this one. */
static int ask(const struct joint_request *q, struct rpc_call *call, const struct own_change *own,
	       void *arg, struct err *err)
{
	struct joint *j = arg;
	struct model_fabric *f = NULL;
	struct buf names = { 0 }, request = { 0 };
	char uuid[JOINT_UUID_MAX];
	int r = parse_config(&q->config, &f, err);

	make_uuid(uuid);
	if (r == 0 && j->id) {
		r = err_set(err, WEFT_ESTALE, "the joint change before is not over everywhere yet");
		err_hint(err,
			 "\"weft status\" says who has not ended; most often that is a moment");
	}
	if (r == 0 && (r = facts_read(j->facts, j->now, err)) == 0 &&
	    (r = list_participants(j->now, f, &names, err)) == 0) {
		joint_request_encode(q, &request);
		r = facts_open(j->facts, uuid, buf_cstr(&names), &request, err);
	}
	if (r == 0 && (r = facts_read(j->facts, j->now, err)) == 0) {
		r = join(j, call, own, err);
		if (r == 0 && !j->id) {
			r = err_set(err, WEFT_EUNAVAIL, "%s is no participant yet", j->name);
		}
	}
	model_free(f);
	buf_fini(&names);
	buf_fini(&request);
	part_timer_start(j->timer, 0);
	return r;
}

/* ---- after a start ------------------------------------------------------- */

/* The engine has found an open change: what was decided, if it is a part of a joint one.
 * Without a decision it is undone, as what the weftd before was doing is not known. */
static int on_open(const struct store_change *ch, enum apply_outcome *out, void *arg,
		   struct err *err)
{
	struct joint *j = arg;
	enum joint_decision decision;
	char why[JOINT_TEXT_MAX];
	int r = facts_read(j->facts, j->now, err);

	*out = APPLY_BY_READING;
	if (r || !j->now->id) {
		return r;
	}
	r = take_request(j, j->now, err);
	if (r || strcmp(ch->order.request_id, j->request.order.request_id) != 0) {
		return r == WEFT_ESTALE ? 0 : r;
	}
	decision = j->now->decision;
	snprintf(why, sizeof(why), "%s: its weftd ended in the change", j->name);
	if (decision == JOINT_UNDECIDED) {
		r = facts_decide(j->facts, j->now->id, JOINT_UNDO, why, &decision, err);
	}
	*out = decision == JOINT_COMMIT ? APPLY_COMMIT : APPLY_UNDO;
	if (r == 0 && decision == JOINT_UNDO) {
		err_set(err, WEFT_ECANCELED, "undone: %s", j->now->why[0] ? j->now->why : why);
	}
	return r;
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
		.cancel = cancel, .ended = ended, .arg = j,
	};
	int r;

	*out = NULL;
	j->env = env;
	j->cfg = *cfg;
	j->changes = changes;
	j->now = x_new(1, sizeof(*j->now));
	r = joint_name(cfg->domains, j->name, err);
	if (r || (r = facts_new(cfg, election, &j->facts, err))) {
		facts_free(j->facts);
		free(j->now);
		free(j);
		return r;
	}
	j->timer = part_timer_new(env, look, j);
	env->divided = true;
	changes_set_partners(changes, &partners);
	apply_on_open(env->apply, on_open, j);
	part_timer_start(j->timer, 0);
	*out = j;
	return 0;
}

void joint_free(struct joint *j)
{
	if (!j) {
		return;
	}
	part_wait_stop(&j->wait);
	part_timer_free(j->timer);
	facts_free(j->facts);
	forget(j);
	buf_fini(&j->base);
	free(j->now);
	free(j);
}
