/* Requests that plan: the queue, the worker, the steps of one of them. */
#include <assert.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/private.h"
#include "controller/webui/webui.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

/* ---- life ---------------------------------------------------------------- */

static int set_config(struct work *w, const char *name, const void *text,
		      size_t len, struct err *err)
{
	w->name = strdup(name && *name ? name : "<configuration>");
	w->text = malloc(len + 1);
	if (!w->name || !w->text) {
		return err_nomem(err);
	}
	memcpy(w->text, text, len);
	w->text[len] = '\0';
	w->len = len;
	return 0;
}

/* The jobs of orchestrators go with every configuration. */
static int compose(struct work *w, const char *name, const char *text,
		   size_t len, struct err *err)
{
	struct buf b = { 0 };
	int r = jobs_compose(w->d->orders, text, len, &b, err);

	r = r ? r : set_config(w, name, buf_cstr(&b), b.len, err);
	buf_fini(&b);
	return r;
}

int daemon_work_new(struct daemon *d, const char *name, const void *text,
		    size_t len, struct work **out, struct err *err)
{
	const struct model_fabric *f = apply_fabric(d->apply);
	struct work *w;
	int r;

	if (!text && !f) {
		err_set(err, WEFT_ENOTFOUND,
			"no configuration was ever applied");
		err_hint(err, "give one: weft plan -f FABRIC.yaml");
		return err->code;
	}
	w = calloc(1, sizeof(*w));
	if (!w) {
		return err_nomem(err);
	}
	w->d = d;
	w->req.data = w;
	r = text ? compose(w, name, text, len, err)
		 : set_config(w, f->file, f->text, f->text_len, err);
	if (r) {
		free(w->name);
		free(w->text);
		free(w);
		return r;
	}
	*out = w;
	return 0;
}

static void begin_turn(struct work *w);

/* Puts at the end of the queue; an empty queue means its turn is now. */
static void enqueue(struct work *w)
{
	struct daemon *d = w->d;

	w->queued = true;
	if (d->turn) {
		d->last->next = w;
		d->last = w;
		return;
	}
	d->turn = d->last = w;
	begin_turn(w);
}

static void after_reading_again(int rc, const struct err *err, void *arg)
{
	struct work *w = arg;

	if (rc) {
		log_info("weftd", "%s", err->msg);
	}
	w->d->reading = false;
	daemon_work_free(w);
}

static void read_again(struct work *w)
{
	apply_reading_for(w->d->apply, STORE_BY_START);
	apply_read(w->d->apply, after_reading_again, w);
}

static bool all_read(struct daemon *d)
{
	const struct apply_device *a;
	bool known = true;
	int n;

	a = apply_devices(d->apply, &n);
	for (int i = 0; i < n; i++) {
		known = known && a[i].reachable;
	}
	return known;
}

/* Back to the fabric that is looked after. Those of its devices that were
 * closed meanwhile are not known any more. */
static void settle(struct daemon *d)
{
	const struct model_fabric *before = apply_fabric(d->apply);
	struct err err = { 0 };
	int r = daemon_settle_fabric(d, &err);

	if (r == 0 && apply_fabric(d->apply) != before && !all_read(d)) {
		d->reading = true;
		r = daemon_turn(d, read_again, NULL, &err);
	}
	if (r) {
		d->reading = false;
		log_warn("weftd", "%s", err.msg);
	}
}

/* Light that has died, or has come back, since the jobs were planned. */
static void watch_light(struct daemon *d)
{
	const struct model_fabric *f = apply_fabric(d->apply);
	struct plan_base base;
	uint64_t dead;

	if (!f || !d->applied || d->reading || d->draining ||
	    apply_plan_base(d->apply, f, PLAN_SAFE, &base, NULL)) {
		return;
	}
	dead = plan_dead_light(f, &base);
	if (dead != d->dead_light) {
		d->dead_light = dead;
		log_info("weftd", "%s: the jobs are planned anew",
			 dead ? "light has died" : "all light is back");
		daemon_refresh_jobs(d);
	} else if (!dead && d->n_refresh == 0) {
		jobs_look(d->orders);
	}
}

void daemon_work_free(struct work *w)
{
	struct daemon *d = w->d;
	bool had_turn = w->queued;

	assert(!had_turn || d->turn == w);
	if (w->probed && !d->draining) {
		settle(d);
	}
	if (had_turn && !d->reading && !d->draining) {
		daemon_observe(d);
	}
	if (had_turn) {
		watch_light(d);
	}
	if (had_turn) {
		d->turn = w->next;
	} else if (w->pure) {
		d->n_pure--;
	}
	plan_free(w->plan);
	model_free(w->fabric);
	model_free(w->probe);
	daemon_snapshot_fini(&w->snap);
	buf_fini(&w->picture);
	free(w->name);
	free(w->text);
	free(w->only);
	restoring_free(w->restoring);
	free(w);
	/* A plan may have been large, and the daemon is small. */
	malloc_trim(0);
	if (had_turn) {
		daemon_restore_look(d);
	}
	if (had_turn && d->turn) {
		begin_turn(d->turn);
	} else if (!d->turn && d->draining) {
		daemon_drained(d);
	}
}

/* ---- a turn without planning --------------------------------------------- */

int daemon_turn(struct daemon *d, void (*run)(struct work *w), void *arg,
		struct err *err)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w) {
		return err_nomem(err);
	}
	w->d = d;
	w->done = run;
	w->arg = arg;
	enqueue(w);
	return 0;
}

/* ---- the worker ---------------------------------------------------------- */

static int parse(const struct work *w, struct model_fabric **out,
		 struct err *err)
{
	struct err_list errs = { .max = 1 };
	int r = model_parse(w->name, w->text, w->len, out, &errs);

	if (r && errs.n > 0) {
		*err = errs.v[0];
	} else if (r) {
		err_set(err, r, "%s: cannot be read", w->name);
	}
	if (r && errs.dropped > 0) {
		err_hint(err, "and %d more: \"weft check\" shows all",
			 errs.dropped);
	}
	err_list_fini(&errs);
	return r;
}

static void run_parse(uv_work_t *req)
{
	struct work *w = req->data;

	w->rc = parse(w, &w->fabric, &w->err);
}

/* Without a picture there is still a plan. */
static void draw(struct work *w)
{
	struct err err = { 0 };

	if (page_picture(w->fabric, w->unlit ? NULL : w->plan, &w->picture,
			 &err)) {
		log_warn("weftd", "the page has no picture: %s", err.msg);
		buf_fini(&w->picture);
	}
}

static void run_plan(uv_work_t *req)
{
	struct work *w = req->data;
	int64_t begun_ns = clk_now_ns();

	if (w->has_keep) {
		w->fabric->changes.keep_ppm = w->keep_ppm;
	}
	w->snap.base.go_back = w->must;
	w->rc = w->pure ? plan_remains(w->fabric, &w->snap.base, &w->plan,
				       &w->err)
			: plan_make(w->fabric, &w->snap.base, &w->plan,
				    &w->err);
	if (w->rc == WEFT_EINFEASIBLE && w->must) {
		w->snap.base.no_floor = true;
		w->rc = plan_make(w->fabric, &w->snap.base, &w->plan,
				  &w->err);
	}
	w->plan_ns = clk_now_ns() - begun_ns;
	if (w->with_picture && (w->rc == 0 || w->pure)) {
		draw(w);
	}
}

static void hint_row(const Weft__V1__PlanJob *row, struct err *err)
{
	const Weft__V1__JobDegradation *l = row->degradation;

	if (l->part[0]) {
		err_hint(err, "job %s needs %s, which has failed", row->name,
			 l->part);
	} else if (l->rate > 0) {
		err_hint(err, "%d of %d circuits of job %s are dead; "
			 "until they are repaired its schedule is the "
			 "one on what remains, at %.1f %% of the rate",
			 l->failed, row->circuits, row->name, 100 * l->rate);
	} else {
		err_hint(err, "%d of %d circuits of job %s are dead, "
			 "and what remains is cut off", l->failed,
			 row->circuits, row->name);
	}
}

/* Light that died is often why there is no plan: what it costs until it is
 * repaired. */
static void hint_loss(const struct daemon *d, struct err *err)
{
	for (size_t i = 0; i < d->jobs.n && !err->hint[0]; i++) {
		const Weft__V1__PlanJob *row = d->jobs.v[i];

		if (row->degradation) {
			hint_row(row, err);
		}
	}
}

static void after_plan(uv_work_t *req, int status)
{
	struct work *w = req->data;

	(void)status;
	daemon_count_plan(w->d, w->rc, w->plan_ns);
	if (w->rc == 0 && !w->pure) {
		w->rc = daemon_check_holds(w->d, w->plan, &w->err);
	} else if (w->rc && w->d->n_holds > 0 && !w->err.hint[0]) {
		err_hint(&w->err, "parts of the fabric are drained: \"weft "
				  "status\" names them");
	} else if (w->rc) {
		hint_loss(w->d, &w->err);
	}
	w->done(w);
}

static void start_plan(struct work *w)
{
	uv_queue_work(w->d->loop, &w->req, run_plan, after_plan);
}

static void copy_base(struct work *w)
{
	struct plan_base base;

	w->rc = apply_plan_base(w->d->apply, w->fabric, w->mode, &base,
				&w->err);
	if (w->rc == 0) {
		w->rc = daemon_snapshot_init(&w->snap, &base,
					     w->fabric->n_devices, &w->err);
	}
	w->snap.base.only = w->only;
	if (w->rc == 0) {
		w->rc = daemon_steer(w->d, w->fabric, &w->snap, &w->err);
	}
	if (w->rc == 0 && w->restoring) {
		w->rc = restoring_base(w->restoring, w->d, w->fabric, &w->snap,
				       &w->err);
	}
	if (w->rc) {
		w->done(w);
	} else {
		start_plan(w);
	}
}

static void after_parse(uv_work_t *req, int status)
{
	struct work *w = req->data;

	(void)status;
	if (w->rc) {
		w->done(w);
	} else if (w->pure) {
		copy_base(w);
	} else {
		enqueue(w);
	}
}

void daemon_work_start(struct work *w)
{
	if (w->pure) {
		w->d->n_pure++;
	}
	uv_queue_work(w->d->loop, &w->req, run_parse, after_parse);
}

/* ---- a turn that plans --------------------------------------------------- */

/* A device that does not answer is no reason not to plan: what was last
 * read of it stands, and applying will find out. */
static void after_read(int rc, const struct err *err, void *arg)
{
	if (rc) {
		log_info("weftd", "planning without a fresh reading: %s",
			 err->msg);
	}
	copy_base(arg);
}

/* Opens the devices of a configuration that is not the present one. */
static int probe(struct work *w)
{
	const struct model_fabric *f = apply_fabric(w->d->apply);
	int r;

	if (f && strcmp(f->hash, w->fabric->hash) == 0) {
		return 0;
	}
	r = parse(w, &w->probe, &w->err);
	if (r == 0) {
		r = apply_set_fabric(w->d->apply, w->probe, &w->err);
		w->probe = NULL;
		w->probed = r == 0;
	}
	return r;
}

static void take_turn(struct work *w)
{
	if (!w->text) {
		w->done(w);
		return;
	}
	w->rc = probe(w);
	if (w->rc) {
		w->done(w);
		return;
	}
	apply_reading_for(w->d->apply, STORE_BY_PLAN);
	apply_read(w->d->apply, after_read, w);
}

/* Asked as if weftd had just started: what was found may be the commit. */
static void after_settling(int rc, const char *text, void *arg)
{
	struct work *w = arg;
	struct daemon *d = w->d;

	daemon_recovered(d, rc, text);
	daemon_refresh_jobs(d);
	daemon_confirm_watch(d);
	jobs_settle(d->orders);
	take_turn(w);
}

/* A change whose end could not be recorded is settled before anything else,
 * as at a start. */
static void begin_turn(struct work *w)
{
	if (apply_unsettled(w->d->apply) && !w->d->reading &&
	    !w->d->standby) {
		apply_recover(w->d->apply, after_settling, w);
	} else {
		take_turn(w);
	}
}

/* ---- the present fabric -------------------------------------------------- */

/* The configuration whose devices are to be looked after. */
static int wanted_config(struct daemon *d, struct store_config *out,
			 struct err *err)
{
	struct store_journal *open = NULL;
	int n = 0, r = store_open_changes(d->store, &open, &n, err);

	if (r == 0 && n > 0) {
		r = store_change_config(d->store, open[0].change.id, out,
					err);
	} else if (r == 0) {
		r = store_config(d->store, out, err);
	}
	store_journals_free(open, n);
	return r;
}

static int use_config(struct daemon *d, char *name, char *text, size_t len,
		      struct err *err)
{
	struct work w = { .d = d, .name = name, .text = text, .len = len };
	struct model_fabric *f = NULL;
	int r = parse(&w, &f, err);

	return r ? r : apply_set_fabric(d->apply, f, err);
}

int daemon_settle_fabric(struct daemon *d, struct err *err)
{
	const struct model_fabric *f = apply_fabric(d->apply);
	struct store_config cfg;
	int r = wanted_config(d, &cfg, err);

	d->applied = r != WEFT_ENOTFOUND;
	if (r == WEFT_ENOTFOUND) {
		err_clear(err);
		if (f || !d->fabric_text) {
			return 0;
		}
		return use_config(d, d->fabric_name, d->fabric_text,
				  d->fabric_len, err);
	}
	if (r) {
		return r;
	}
	if (!f || strcmp(f->hash, cfg.hash) != 0) {
		r = use_config(d, cfg.name, cfg.text, cfg.len, err);
	}
	store_config_fini(&cfg);
	return r;
}

void daemon_recovered(struct daemon *d, int rc, const char *text)
{
	struct err err = { 0 };

	if (rc) {
		log_warn("weftd", "%s", text);
	} else {
		log_info("weftd", "%s", text);
	}
	if (daemon_settle_fabric(d, &err)) {
		log_warn("weftd", "%s", err.msg);
	}
}
