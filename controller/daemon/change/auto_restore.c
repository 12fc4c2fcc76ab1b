/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Circuits that another user took away are brought back where the fabric says
 * so (`external-changes: restore`): by a change like any other, journalled, read back, in
 * the history, that makes exactly the circuits that went and moves nothing
 * else. Circuits of others go only where they hold ports of the intent, and
 * stay where the device names an owner. While the fabric is frozen, another
 * change runs, is open or waits for its confirmation, and on what is drained,
 * nothing is restored. Whoever undoes it each time wins: then it is only
 * reported, until an operator's change has put it right.
 *
 * A device that lost its map with its power is the same case, and the one that
 * the policy is for. What went while weftd did not run may have a policy of its
 * own (`at-boot`), for fabrics that lose their power as a whole: then circuits
 * of others are not touched at all, as weftd has not seen which came first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/change/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/vec.h"

#define RETRY_MS 1000		/* while something is in the way */
#define ROBOT_US 1000000	/* what takes so long for a circuit is one */

/* Restores of a device that failed. */
struct restore_attempt {
	char name[CONF_MAX_NAME + 1];
	int tries;		/* that failed one after the other */
	int64_t last_ns;	/* wall clock, of the last that ended */
	bool running;		/* the change under way is about it */
};

struct restore {
	struct part_timer *timer;	/* for what may be restored later */
	struct daemon_env *env;
	struct changes *changes;
	VEC(struct restore_attempt) attempts;	/* a device each, made when due */
};

/* What of one device a change is to bring back. */
struct restore_wanted {
	char name[CONF_MAX_NAME + 1];
	bool program;		/* the ring program is to be loaded again */
	bool others_stay;	/* circuits of others also where they are in the way */
	VEC(struct optics_xc) xcs;	/* sorted */
};

/* One change may be about several devices. */
struct restore_request {
	VEC(struct restore_wanted) wanted;
	VEC(struct plan_restore) plan;	/* points into wanted */
	char comment[160];	/* of the change: each device, and how much is gone */
};

void restore_request_free(struct restore_request *r)
{
	if (!r) {
		return;
	}
	for (size_t i = 0; i < r->wanted.n; i++) {
		vec_fini(&r->wanted.v[i].xcs);
	}
	vec_fini(&r->wanted);
	vec_fini(&r->plan);
	free(r);
}

/* ---- policy -------------------------------------------------------------- */

/* Robots wear and take minutes: each of them is configured by itself. */
enum model_external external_policy(const struct model_fabric *f, const struct model_device *md,
				    const struct apply_device *a)
{
	if (md->external != MODEL_EXTERNAL_UNSET) {
		return md->external;
	}
	return md->kind == MODEL_PANEL || a->snap.caps.typ_switch_us >= ROBOT_US
		       ? MODEL_EXTERNAL_REPORT : f->changes.external;
}

/* What is done about one record of a device. */
static enum model_external record_policy(const struct model_fabric *f,
					 const struct model_device *md,
					 const struct apply_device *a,
					 const struct store_external_change *record)
{
	return record->how == STORE_BY_START && md->at_boot != MODEL_EXTERNAL_UNSET
		       ? md->at_boot : external_policy(f, md, a);
}

/* Whether any device has the policy. */
static bool is_wanted(struct apply *apply)
{
	const struct model_fabric *f = apply_fabric(apply);
	const struct apply_device *a;
	bool wanted = false;
	int n;

	a = apply_devices(apply, &n);
	for (int i = 0; i < n && !wanted; i++) {
		wanted = f->devices[i].at_boot == MODEL_EXTERNAL_RESTORE ||
			 external_policy(f, &f->devices[i], &a[i]) == MODEL_EXTERNAL_RESTORE;
	}
	return wanted;
}

/* Nothing else is changing the fabric, or waits to; an open change is an
 * operator's to settle. */
static bool may_restore(const struct restore *r)
{
	const struct daemon_env *env = r->env;
	struct err err = { 0 };
	struct store_journal *open = NULL;
	int n = 0;
	bool may = env->was_read && env->applied && !env->reading &&
		   !env->changing && !changes_confirm(r->changes)->change &&
		   !drain_check_frozen(r->changes->drain, &err) &&
		   !apply_unresolved(env->apply);

	if (may) {
		may = store_open_changes(env->store, &open, &n, &err) == 0 && n == 0;
		store_journals_free(open, n);
	}
	return may;
}

/* Made when missing. */
static struct restore_attempt *find_attempt(struct restore *r, const char *name)
{
	struct restore_attempt a = { .tries = 0 };

	for (size_t i = 0; i < r->attempts.n; i++) {
		if (strcmp(r->attempts.v[i].name, name) == 0) {
			return &r->attempts.v[i];
		}
	}
	snprintf(a.name, sizeof(a.name), "%s", name);
	vec_push(&r->attempts, a);
	return &r->attempts.v[r->attempts.n - 1];
}

/* ---- when ---------------------------------------------------------------- */

/* Only what went can be brought back; what came is an operator's to judge. */
static bool is_restorable(const struct store_external_change *f)
{
	return f->outcome == STORE_EXTERNAL_OPEN &&
	       (f->kind == STORE_EXTERNAL_GONE ||
		f->kind == STORE_EXTERNAL_PROGRAM);
}

/* base, doubled n - 1 times, within bounds. */
static int64_t back_off(int64_t base, int n)
{
	while (--n > 0 && base < RESTORE_BACK_OFF_MAX_NS) {
		base *= 2;
	}
	return base < RESTORE_BACK_OFF_MAX_NS ? base : RESTORE_BACK_OFF_MAX_NS;
}

/* Since an operator's change last put something right. */
static int64_t operator_ns(const struct store_external_change *v, int n)
{
	int64_t at = 0;

	for (int i = 0; i < n; i++) {
		if ((v[i].outcome == STORE_EXTERNAL_REPAIRED ||
		     v[i].outcome == STORE_EXTERNAL_ACCEPTED) && v[i].resolved_ns > at) {
			at = v[i].resolved_ns;
		}
	}
	return at;
}

/* The restores that count, each a change that may have several records. */
static int count_restores(const struct store_external_change *v, int n,
			  int64_t since_ns, int64_t *last_ns)
{
	int count = 0;

	*last_ns = 0;
	for (int i = 0; i < n; i++) {
		bool seen = v[i].outcome != STORE_EXTERNAL_RESTORED || v[i].resolved_ns <= since_ns;

		for (int k = 0; k < i && !seen; k++) {
			seen = v[k].outcome == STORE_EXTERNAL_RESTORED &&
			       v[k].change == v[i].change;
		}
		if (!seen) {
			count++;
			*last_ns = v[i].resolved_ns > *last_ns
					   ? v[i].resolved_ns : *last_ns;
		}
	}
	return count;
}

enum restore_verdict restore_decide(const struct store_external_change *v, int n, int64_t after_ns,
				    int tries, int64_t last_try_ns, int64_t now_ns, int64_t *at_ns)
{
	int64_t first_ns = INT64_MAX, since_ns, last_ns;
	int restores;

	for (int i = 0; i < n; i++) {
		if (v[i].outcome == STORE_EXTERNAL_OPEN && v[i].given_up) {
			return RESTORE_NOTHING;
		}
		if (is_restorable(&v[i]) && v[i].noticed_ns < first_ns) {
			first_ns = v[i].noticed_ns;
		}
	}
	if (first_ns == INT64_MAX) {
		return RESTORE_NOTHING;
	}
	since_ns = operator_ns(v, n);
	since_ns = since_ns > now_ns - RESTORE_WINDOW_NS
			   ? since_ns : now_ns - RESTORE_WINDOW_NS;
	restores = count_restores(v, n, since_ns, &last_ns);
	if (restores >= RESTORE_MAX) {
		return RESTORE_GIVE_UP;
	}
	*at_ns = first_ns + after_ns;
	if (restores && last_ns + back_off(10 * after_ns, restores) > *at_ns) {
		*at_ns = last_ns + back_off(10 * after_ns, restores);
	}
	if (tries && last_try_ns + back_off(10 * after_ns, tries) > *at_ns) {
		*at_ns = last_try_ns + back_off(10 * after_ns, tries);
	}
	return *at_ns <= now_ns ? RESTORE_NOW : RESTORE_WAIT;
}

/* ---- giving up ----------------------------------------------------------- */

/* Marks the open records of a device, so that this outlives a restart. */
static void give_up(struct daemon_env *env, const char *device,
		    struct store_external_change *v, int n)
{
	const struct daemon_event ev = { .kind = EVENT_KIND(RESTORE_GIVEN_UP),
					 .device = device };
	struct err err = { 0 };
	int kept = 0;

	for (int i = 0; i < n; i++) {
		if (v[i].outcome == STORE_EXTERNAL_OPEN) {
			v[kept] = v[i];
			v[kept++].given_up = true;
		}
	}
	if (store_external_changes_put(env->store, v, kept, &err)) {
		log_error("weftd", "restore: %s", err.msg);
	}
	log_error("weftd", "%s: restored %d times, and changed again each time "
		  "(%s): it is only reported from now on", device,
		  RESTORE_MAX, v[0].who);
	event_emit(env->events, &ev, "%s: restored %d times, and changed again each "
		     "time: it is only reported until a user's change has "
		     "corrected it", device, RESTORE_MAX);
}

/* ---- what is due --------------------------------------------------------- */

/* Leaves out open records that are only to be reported; returns how many are left. */
static int keep_restored(const struct model_fabric *f, const struct model_device *md,
			 const struct apply_device *a, struct store_external_change *v, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		if (v[i].outcome != STORE_EXTERNAL_OPEN ||
		    record_policy(f, md, a, &v[i]) == MODEL_EXTERNAL_RESTORE) {
			v[kept++] = v[i];
		}
	}
	return kept;
}

/* Adds what a device has lost, and names it in the comment of the change. at_boot: it
 * has been lost while weftd did not run, and is restored only for that. */
static void want(struct restore_request *r, const char *device, bool at_boot,
		 const struct store_external_change *v, int n)
{
	struct restore_wanted w = { .others_stay = at_boot };
	size_t len = strlen(r->comment);
	int count = 0;

	snprintf(w.name, sizeof(w.name), "%s", device);
	for (int i = 0; i < n; i++) {
		if (v[i].outcome != STORE_EXTERNAL_OPEN) {
			continue;
		}
		w.program = w.program || v[i].kind == STORE_EXTERNAL_PROGRAM;
		if (v[i].kind == STORE_EXTERNAL_GONE) {
			vec_push(&w.xcs, v[i].xc);
		}
		count += is_restorable(&v[i]);
	}
	snprintf(r->comment + len, sizeof(r->comment) - len,
		 at_boot ? "%s%s restored at boot: %d gone" : "%srestores %s: %d gone",
		 len ? ", " : "", device, count);
	if (w.xcs.n) {
		qsort(w.xcs.v, w.xcs.n, sizeof(*w.xcs.v), optics_xc_cmp);
	}
	vec_push(&r->wanted, w);
}

/* Adds what is due of one device; *next_ns is when to look again. */
static int consider(struct restore *all, struct restore_request *r, const struct model_device *md,
		    const struct apply_device *a, int64_t *next_ns, struct err *err)
{
	const struct model_fabric *f = apply_fabric(all->env->apply);
	const struct store_external_query q = { .device = a->name };
	bool at_boot = external_policy(f, md, a) != MODEL_EXTERNAL_RESTORE;
	struct restore_attempt *attempt = find_attempt(all, a->name);
	struct store_external_change *v = NULL;
	int64_t at_ns = 0;
	int n = 0, rc = store_external_changes(all->env->store, &q, &v, &n, err);

	if (rc) {
		return rc;
	}
	n = keep_restored(f, md, a, v, n);
	switch (restore_decide(v, n, f->changes.restore_after_ns, attempt->tries,
			       attempt->last_ns, clk_wall_ns(), &at_ns)) {
	case RESTORE_NOW:
		want(r, a->name, at_boot, v, n);
		attempt->running = true;
		break;
	case RESTORE_WAIT:
		*next_ns = at_ns < *next_ns ? at_ns : *next_ns;
		break;
	case RESTORE_GIVE_UP:
		give_up(all->env, a->name, v, n);
		break;
	default:
		break;
	}
	free(v);
	return 0;
}

/* Whether any of these records is of the device. */
static bool has_record(const struct store_external_change *v, int n, const char *name)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(v[i].device, name) == 0) {
			return true;
		}
	}
	return false;
}

/* All devices that answer and have an open record. */
static int consider_all(struct restore *all, struct restore_request *r,
			const struct store_external_change *v, int n, int64_t *next_ns,
			struct err *err)
{
	const struct model_fabric *f = apply_fabric(all->env->apply);
	const struct apply_device *a;
	int n_devices, rc = 0;

	a = apply_devices(all->env->apply, &n_devices);
	for (int i = 0; i < n_devices && rc == 0; i++) {
		if (a[i].reachable && has_record(v, n, a[i].name)) {
			rc = consider(all, r, &f->devices[i], &a[i], next_ns, err);
		}
	}
	return rc;
}

/* ---- doing it ------------------------------------------------------------ */

/* A failed restore counts for each device that it was about. */
static void after_restore(int rc, const struct err *err, void *arg)
{
	struct restore *r = arg;

	for (size_t i = 0; i < r->attempts.n; i++) {
		struct restore_attempt *a = &r->attempts.v[i];

		if (a->running) {
			a->running = false;
			a->tries = rc ? a->tries + 1 : 0;
			a->last_ns = clk_wall_ns();
		}
	}
	if (rc) {
		log_warn("weftd", "restore: %s", err->msg);
	}
}

static void check_later(struct restore *r, int64_t at_ns)
{
	int64_t ms = (at_ns - clk_wall_ns() + 999999) / 1000000;

	part_timer_start(r->timer, ms > 1 ? ms : 1);
}

/* Takes req over. What could not begin counts as a restore that failed. */
static void begin_restore(struct restore *r, struct restore_request *req)
{
	const struct own_change own = {
		.who = "weftd", .comment = req->comment,
		.ended = after_restore, .arg = r,
	};
	struct err err = { 0 };
	int rc = changes_begin_restore(r->changes, &own, req, &err);

	if (rc) {
		after_restore(rc, &err, r);
	}
}

void restore_check(struct restore *r)
{
	const struct store_external_query q = { .open = true };
	struct restore_request *req = NULL;
	struct store_external_change *v = NULL;
	struct err err = { 0 };
	int64_t next_ns = INT64_MAX;
	int n = 0, rc;

	if (!r || r->env->draining || r->env->standby || r->env->read_only ||
	    !is_wanted(r->env->apply)) {
		return;
	}
	part_timer_stop(r->timer);
	rc = store_external_changes(r->env->store, &q, &v, &n, &err);
	if (rc == 0 && n > 0 && !may_restore(r)) {
		next_ns = clk_wall_ns() + RETRY_MS * INT64_C(1000000);
	} else if (rc == 0 && n > 0) {
		req = x_new(1, sizeof(*req));
		rc = consider_all(r, req, v, n, &next_ns, &err);
	}
	free(v);
	if (rc) {
		log_warn("weftd", "restore: %s", err.msg);
	}
	if (rc == 0 && req && req->wanted.n) {
		begin_restore(r, req);		/* it goes with the change */
	} else {
		restore_request_free(req);
	}
	if (next_ns < INT64_MAX) {
		check_later(r, next_ns);
	}
}

static void on_time(void *arg)
{
	restore_check(arg);
}

/* ---- what of it may be done now ------------------------------------------ */

/* Whether one of the two circuits excludes the other. */
static bool shares_port(const struct model_device *md, struct optics_xc a, struct optics_xc b)
{
	return a.in == b.in || a.out == b.out ||
	       (md->any_to_any && (a.in == b.out || a.out == b.in));
}

static bool is_listed(const int *list, int n, int port)
{
	for (int i = 0; i < n; i++) {
		if (list[i] == port) {
			return true;
		}
	}
	return false;
}

/* A circuit that nothing may be made in the place of. */
static bool stays(const struct drv_xc *x, const struct restore_wanted *w)
{
	return w->others_stay || (x->owner[0] && strcmp(x->owner, "stale") != 0);
}

/* Whether a circuit may be made; why not goes to err. */
static bool may_make(const struct restore_wanted *w, const struct model_device *md,
		     const struct plan_light *has, const struct apply_device *a,
		     struct optics_xc xc, struct err *err)
{
	if (is_listed(has->bad_in, has->n_bad_in, xc.in) ||
	    is_listed(has->bad_out, has->n_bad_out, xc.out)) {
		err_set(err, WEFT_ESTALE, "%s: a port of in %d -> out %d has "
			"failed, is disabled or is drained", md->name,
			xc.in + 1, xc.out + 1);
		return false;
	}
	for (int i = 0; i < a->snap.n_xcs; i++) {
		const struct drv_xc *x = &a->snap.xcs[i];

		if (shares_port(md, x->xc, xc) && stays(x, w)) {
			err_set(err, WEFT_ESTALE, "%s: in %d -> out %d is in "
				"the way of in %d -> out %d and belongs to %s",
				md->name, x->xc.in + 1, x->xc.out + 1,
				xc.in + 1, xc.out + 1, x->owner[0] ? x->owner : "others");
			return false;
		}
	}
	return true;
}

/* By binary search: circuits of a plan base are sorted. */
static bool is_in(const struct plan_light *l, struct optics_xc xc)
{
	return l->n_xcs && bsearch(&xc, l->xcs, (size_t)l->n_xcs, sizeof(xc), optics_xc_cmp);
}

/* Drops circuits that are intended no longer, are back, or may not be made. */
static void keep_possible(struct restore_wanted *w, const struct model_device *md,
			  const struct snapshot *s, int device,
			  const struct apply_device *a, struct err *why)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->xcs.n; i++) {
		struct optics_xc xc = w->xcs.v[i];

		if (is_in(&s->intent[device], xc) && !is_in(&s->observed[device], xc) &&
		    may_make(w, md, &s->observed[device], a, xc, why)) {
			w->xcs.v[kept++] = xc;
		}
	}
	w->xcs.n = kept;
}

/* Whether the ring's program is to be loaded; why not goes to err. */
static bool may_load(const struct restore_wanted *w, const struct apply_device *a, struct err *err)
{
	if (w->program && w->others_stay && a->snap.programs.n) {
		err_set(err, WEFT_ESTALE, "%s: a program of others is loaded", a->name);
		return false;
	}
	return w->program;
}

int restore_request_prepare(struct restore_request *r, const struct daemon_env *env,
			    const struct model_fabric *f, struct snapshot *s, struct err *err)
{
	const struct apply_device *a;
	struct err why = { 0 };
	int n;

	a = apply_devices(env->apply, &n);
	for (size_t i = 0; i < r->wanted.n; i++) {
		struct restore_wanted *w = &r->wanted.v[i];
		int at = model_find_device(f, w->name);
		struct plan_restore p = { .device = at };

		if (at < 0 || at >= n || !a[at].reachable) {
			continue;
		}
		keep_possible(w, &f->devices[at], s, at, &a[at], &why);
		p.program = may_load(w, &a[at], &why);
		p.xcs = w->xcs.v;
		p.n_xcs = (int)w->xcs.n;
		if (p.n_xcs || p.program) {
			vec_push(&r->plan, p);
		}
	}
	s->base.restore = r->plan.v;
	s->base.n_restore = (int)r->plan.n;
	if (r->plan.n) {
		return 0;
	}
	if (why.code) {
		*err = why;
		return why.code;
	}
	return err_set(err, WEFT_ESTALE, "what was to be restored is there "
					 "again, or its device does not answer");
}

/* ---- life ---------------------------------------------------------------- */

struct restore *restore_new(struct daemon_env *env, struct changes *changes)
{
	struct restore *r = x_new(1, sizeof(*r));

	r->env = env;
	r->changes = changes;
	r->timer = part_timer_new(env, on_time, r);
	return r;
}

void restore_free(struct restore *r)
{
	if (r) {
		part_timer_free(r->timer);
		vec_fini(&r->attempts);
		free(r);
	}
}
