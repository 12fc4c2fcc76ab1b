/*
 * Light that somebody else took away is brought back where the fabric says so
 * (`foreign: restore`): by a change like any other, journalled, read back, in
 * the history, that makes exactly the circuits that went and moves nothing
 * else. Circuits of others go only where they hold ports of the intent, and
 * stay where the device names an owner. While the fabric is frozen, another
 * change runs, is open or waits for its confirmation, and on what is drained,
 * nothing is restored. Whoever undoes it each time wins: then it is only
 * reported, until an operator's change has put it right.
 *
 * A device that lost its map with its power is the same case, and the one that
 * the policy is for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/change/auto_restore.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/vec.h"

#define RETRY_MS 1000		/* while something is in the way */
#define ROBOT_US 1000000	/* what takes so long to move light is one */
#define KIND(k) WEFT__V1__EVENT_KIND__EVENT_KIND_##k

/* Restores of a device that failed. */
struct attempt {
	char name[CONF_MAX_NAME + 1];
	int tries;
	int64_t last_ns;	/* wall clock */
	bool running;
};

/* Lives until the loop has closed its timer, which may be after the daemon. */
struct restore {
	uv_timer_t timer;
	struct daemon *d;
	VEC(struct attempt) attempts;
};

/* What of one device a change is to bring back. */
struct wanted {
	char name[CONF_MAX_NAME + 1];
	bool program;
	VEC(struct optics_xc) xcs;
};

struct restoring {
	VEC(struct wanted) wanted;
	VEC(struct plan_restore) plan;	/* points into wanted */
	char comment[160];
};

void restoring_free(struct restoring *r)
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

/* Robots wear and take minutes: they are told one by one. */
enum model_foreign daemon_foreign_policy(const struct model_fabric *f,
					 const struct model_device *md,
					 const struct apply_device *a)
{
	if (md->foreign != MODEL_FOREIGN_UNSET) {
		return md->foreign;
	}
	return md->kind == MODEL_PANEL ||
			       a->snap.caps.typ_switch_us >= ROBOT_US
		       ? MODEL_FOREIGN_REPORT : f->changes.foreign;
}

/* Whether any device has the policy. */
static bool is_wanted(struct daemon *d)
{
	const struct model_fabric *f = apply_fabric(d->apply);
	const struct apply_device *a;
	bool wanted = false;
	int n;

	a = apply_devices(d->apply, &n);
	for (int i = 0; i < n && !wanted; i++) {
		wanted = daemon_foreign_policy(f, &f->devices[i], &a[i]) ==
			 MODEL_FOREIGN_RESTORE;
	}
	return wanted;
}

static bool may_restore(struct daemon *d)
{
	struct err err = { 0 };
	struct store_journal *open = NULL;
	int n = 0;
	bool may = d->was_read && d->applied && !d->reading && !d->change &&
		   !d->confirm.change && !daemon_check_frozen(d, &err) &&
		   !apply_unsettled(d->apply);

	if (may) {
		may = store_open_changes(d->store, &open, &n, &err) == 0 &&
		      n == 0;
		store_journals_free(open, n);
	}
	return may;
}

static struct attempt *find_attempt(struct restore *r, const char *name)
{
	struct attempt a = { .tries = 0 };

	for (size_t i = 0; i < r->attempts.n; i++) {
		if (strcmp(r->attempts.v[i].name, name) == 0) {
			return &r->attempts.v[i];
		}
	}
	snprintf(a.name, sizeof(a.name), "%s", name);
	return vec_push(&r->attempts, a) ? NULL :
	       &r->attempts.v[r->attempts.n - 1];
}

/* ---- a fight ------------------------------------------------------------- */

static void give_up(struct daemon *d, const char *device,
		    struct store_foreign *v, int n)
{
	const struct daemon_event ev = { .kind = KIND(RESTORE_GIVEN_UP),
					 .device = device };
	struct err err = { 0 };
	int kept = 0;

	for (int i = 0; i < n; i++) {
		if (v[i].outcome == STORE_FOREIGN_OPEN) {
			v[kept] = v[i];
			v[kept++].given_up = true;
		}
	}
	if (store_foreign_put(d->store, v, kept, &err)) {
		log_error("weftd", "restore: %s", err.msg);
	}
	log_error("weftd", "%s: restored %d times, and changed again each time "
		  "(%s): it is only reported from now on", device,
		  RESTORE_FIGHT, v[0].who);
	daemon_event(d, &ev, "%s: restored %d times, and changed again each "
		     "time: it is only reported until somebody's change has "
		     "put it right", device, RESTORE_FIGHT);
}

/* ---- what is due --------------------------------------------------------- */

static int want(struct restoring *r, const char *device,
		const struct store_foreign *v, int n)
{
	struct wanted w = { .program = false };
	size_t len = strlen(r->comment);
	int count = 0;

	snprintf(w.name, sizeof(w.name), "%s", device);
	for (int i = 0; i < n; i++) {
		if (v[i].outcome != STORE_FOREIGN_OPEN) {
			continue;
		}
		w.program = w.program || v[i].kind == STORE_FOREIGN_PROGRAM;
		if (v[i].kind == STORE_FOREIGN_GONE &&
		    vec_push(&w.xcs, v[i].xc)) {
			vec_fini(&w.xcs);
			return WEFT_ENOMEM;
		}
		count += v[i].kind == STORE_FOREIGN_GONE ||
			 v[i].kind == STORE_FOREIGN_PROGRAM;
	}
	snprintf(r->comment + len, sizeof(r->comment) - len, "%s%s: %d gone",
		 len ? ", " : "restores ", device, count);
	if (w.xcs.n) {
		qsort(w.xcs.v, w.xcs.n, sizeof(*w.xcs.v), optics_xc_cmp);
	}
	if (vec_push(&r->wanted, w)) {
		vec_fini(&w.xcs);
		return WEFT_ENOMEM;
	}
	return 0;
}

/* Adds what is due of one device; *next_ns is when to look again. */
static int consider(struct daemon *d, struct restoring *r, const char *device,
		    int64_t *next_ns, struct err *err)
{
	const struct model_fabric *f = apply_fabric(d->apply);
	const struct store_foreign_query q = { .device = device };
	struct attempt *a = find_attempt(d->restore, device);
	struct store_foreign *v = NULL;
	int64_t at_ns = 0;
	int n = 0, rc = a ? store_foreign(d->store, &q, &v, &n, err)
			  : err_nomem(err);

	if (rc) {
		return rc;
	}
	switch (restore_decide(v, n, f->changes.restore_after_ns, a->tries,
			       a->last_ns, clk_wall_ns(), &at_ns)) {
	case RESTORE_NOW:
		rc = want(r, device, v, n) ? err_nomem(err) : 0;
		a->running = rc == 0;
		break;
	case RESTORE_WAIT:
		*next_ns = at_ns < *next_ns ? at_ns : *next_ns;
		break;
	case RESTORE_FIGHT_ON:
		give_up(d, device, v, n);
		break;
	default:
		break;
	}
	free(v);
	return rc;
}

static bool has_record(const struct store_foreign *v, int n, const char *name)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(v[i].device, name) == 0) {
			return true;
		}
	}
	return false;
}

static int consider_all(struct daemon *d, struct restoring *r,
			const struct store_foreign *v, int n, int64_t *next_ns,
			struct err *err)
{
	const struct model_fabric *f = apply_fabric(d->apply);
	const struct apply_device *a;
	int n_devices, rc = 0;

	a = apply_devices(d->apply, &n_devices);
	for (int i = 0; i < n_devices && rc == 0; i++) {
		if (a[i].reachable && has_record(v, n, a[i].name) &&
		    daemon_foreign_policy(f, &f->devices[i], &a[i]) ==
			    MODEL_FOREIGN_RESTORE) {
			rc = consider(d, r, a[i].name, next_ns, err);
		}
	}
	return rc;
}

/* ---- doing it ------------------------------------------------------------ */

static void after_restore(struct daemon *d, const struct apply_result *res,
			  int rc, const struct err *err)
{
	struct restore *r = d->restore;

	(void)res;
	for (size_t i = 0; r && i < r->attempts.n; i++) {
		struct attempt *a = &r->attempts.v[i];

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

static void look_again(struct restore *r, int64_t at_ns)
{
	int64_t ms = (at_ns - clk_wall_ns() + 999999) / 1000000;

	uv_timer_start(&r->timer, daemon_restore_due,
		       (uint64_t)(ms > 1 ? ms : 1), 0);
}

void daemon_restore_look(struct daemon *d)
{
	const struct store_foreign_query q = { .open = true };
	struct restoring *r = NULL;
	struct store_foreign *v = NULL;
	struct err err = { 0 };
	int64_t next_ns = INT64_MAX;
	int n = 0, rc;

	if (d->draining || d->standby || !d->restore || !is_wanted(d)) {
		return;
	}
	uv_timer_stop(&d->restore->timer);
	rc = store_foreign(d->store, &q, &v, &n, &err);
	if (rc == 0 && n > 0 && !may_restore(d)) {
		next_ns = clk_wall_ns() + RETRY_MS * INT64_C(1000000);
	} else if (rc == 0 && n > 0) {
		r = calloc(1, sizeof(*r));
		rc = r ? consider_all(d, r, v, n, &next_ns, &err)
		       : err_nomem(&err);
	}
	free(v);
	if (rc == 0 && r && r->wanted.n) {
		const struct own_change own = {
			.who = "weftd", .comment = r->comment,
			.restoring = r, .ended = after_restore,
		};

		r = NULL;		/* it goes with the change */
		rc = daemon_change_restore(d, &own, &err);
		if (rc) {
			after_restore(d, NULL, rc, &err);
		}
	} else if (rc) {
		log_warn("weftd", "restore: %s", err.msg);
	}
	restoring_free(r);
	if (next_ns < INT64_MAX) {
		look_again(d->restore, next_ns);
	}
}

void daemon_restore_due(uv_timer_t *timer)
{
	struct restore *r = timer->data;

	daemon_restore_look(r->d);
}

/* ---- what of it may be done now ------------------------------------------ */

static bool shares_port(const struct model_device *md, struct optics_xc a,
			struct optics_xc b)
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

/* Whether a circuit may be made; why not goes to err. */
static bool may_make(const struct model_device *md, const struct plan_light *has,
		     const struct apply_device *a, struct optics_xc xc,
		     struct err *err)
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

		if (shares_port(md, x->xc, xc) && x->owner[0] &&
		    strcmp(x->owner, "stale") != 0) {
			err_set(err, WEFT_ESTALE, "%s: in %d -> out %d is in "
				"the way of in %d -> out %d and belongs to %s",
				md->name, x->xc.in + 1, x->xc.out + 1,
				xc.in + 1, xc.out + 1, x->owner);
			return false;
		}
	}
	return true;
}

static bool is_in(const struct plan_light *l, struct optics_xc xc)
{
	return l->n_xcs && bsearch(&xc, l->xcs, (size_t)l->n_xcs, sizeof(xc),
				   optics_xc_cmp);
}

static void keep_possible(struct wanted *w, const struct model_device *md,
			  const struct snapshot *s, int device,
			  const struct apply_device *a, struct err *why)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->xcs.n; i++) {
		struct optics_xc xc = w->xcs.v[i];

		if (is_in(&s->intent[device], xc) &&
		    !is_in(&s->observed[device], xc) &&
		    may_make(md, &s->observed[device], a, xc, why)) {
			w->xcs.v[kept++] = xc;
		}
	}
	w->xcs.n = kept;
}

int restoring_base(struct restoring *r, struct daemon *d,
		   const struct model_fabric *f, struct snapshot *s,
		   struct err *err)
{
	const struct apply_device *a;
	struct err why = { 0 };
	int n;

	a = apply_devices(d->apply, &n);
	for (size_t i = 0; i < r->wanted.n; i++) {
		struct wanted *w = &r->wanted.v[i];
		int at = model_find_device(f, w->name);
		struct plan_restore p = { .device = at, .program = w->program };

		if (at < 0 || at >= n || !a[at].reachable) {
			continue;
		}
		keep_possible(w, &f->devices[at], s, at, &a[at], &why);
		p.xcs = w->xcs.v;
		p.n_xcs = (int)w->xcs.n;
		if ((p.n_xcs || p.program) && vec_push(&r->plan, p)) {
			return err_nomem(err);
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

int daemon_restore_init(struct daemon *d, struct err *err)
{
	d->restore = calloc(1, sizeof(*d->restore));
	if (!d->restore) {
		return err_nomem(err);
	}
	d->restore->d = d;
	uv_timer_init(d->loop, &d->restore->timer);
	d->restore->timer.data = d->restore;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct restore *r = handle->data;

	vec_fini(&r->attempts);
	free(r);
}

void daemon_restore_fini(struct daemon *d)
{
	if (d->restore) {
		uv_close((uv_handle_t *)&d->restore->timer, on_closed);
		d->restore = NULL;
	}
}
