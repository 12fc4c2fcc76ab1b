/*
 * The engine: life, fabric, readings.
 *
 * The engine owns the devices of the present fabric and what was read of them;
 * whoever asks gets views, never handles. Closing is asynchronous, for handles
 * of drivers and timers are: finish_free() runs when the last is gone, and
 * only then are a change or a recovery that ran given up, so that no callback
 * of theirs can come later. Readings reach the store in one transaction, after
 * all of a round are there: one flush to disk however many devices there are.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/log.h"

const char *apply_verdict_name(enum apply_verdict v)
{
	static const char *const names[] = {
		"nothing to do", "committed", "refused", "rolled back",
		"stuck",
	};

	return names[v];
}

/* ---- life ---------------------------------------------------------------- */

int apply_refresh(struct apply *a, struct err *err)
{
	struct store_journal *v;
	int n;
	int rc = store_open_changes(a->store, &v, &n, err);

	if (rc) {
		return rc;
	}
	store_journals_free(a->open, a->n_open);
	a->open = v;
	a->n_open = n;
	for (int i = 0; a->set && i < a->set->n; i++) {
		device_assess(a->set->v[i]);
	}
	return 0;
}

const struct store_journal *apply_journal(const struct apply *a, int i)
{
	const struct change *c = change_running(a);
	const struct store_journal *running = c && c->journal.change.id ? &c->journal : NULL;

	if (running && i-- == 0) {
		return running;
	}
	return i < a->n_open ? &a->open[i] : NULL;
}

int apply_new(uv_loop_t *loop, struct store *store, struct apply **out, struct err *err)
{
	struct apply *a = calloc(1, sizeof(*a));
	int rc;

	if (!a) {
		return err_nomem(err);
	}
	a->loop = loop;
	a->store = store;
	if ((rc = timings_load(a, err)) || (rc = apply_refresh(a, err)) ||
	    (rc = store_defer_syncs(store, err))) {
		timings_free(a);
		free(a);
		return rc;
	}
	uv_timer_init(loop, &a->timer);
	a->timer.data = a;
	*out = a;
	return 0;
}

static void finish_free(struct apply *a)
{
	void (*done)(void *) = a->closed_cb;
	void *arg = a->closed_arg;

	if (!a->timer_closed || a->n_devices || a->syncs.running || a->n_freeing) {
		return;
	}
	if (a->change) {
		change_abandon(a->change);
	}
	if (a->recovery) {
		recovery_abandon(a->recovery);
	}
	device_set_free(a->set);
	store_journals_free(a->open, a->n_open);
	plan_input_free(a->plan_input);
	timings_free(a);
	model_names_free(a->domains);
	free(a);
	if (done) {
		done(arg);
	}
}

void apply_work_ended(struct apply *a)
{
	finish_free(a);
}

void apply_device_closed(struct apply *a)
{
	a->n_devices--;
	if (a->closing) {
		finish_free(a);
	}
}

static void on_timer_closed(uv_handle_t *h)
{
	struct apply *a = h->data;

	a->timer_closed = true;
	finish_free(a);
}

void apply_free(struct apply *a, void (*done)(void *), void *arg)
{
	assert(!a->closing);
	a->closing = true;
	if (a->hosts.withdraw) {
		a->hosts.withdraw(a->hosts.arg);
	}
	a->closed_cb = done;
	a->closed_arg = arg;
	uv_close((uv_handle_t *)&a->timer, on_timer_closed);
	for (struct device *d = a->devices; d; d = d->next) {
		device_close(d);
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct apply *a = timer->data;

	a->on_timer(a->timer_arg);
}

void apply_later(struct apply *a, int64_t after_us, void (*fn)(void *arg), void *arg)
{
	if (a->closing) {
		return;
	}
	a->on_timer = fn;
	a->timer_arg = arg;
	/* From now, not from when the loop woke up: else it would be due at once. */
	uv_update_time(a->loop);
	uv_timer_start(&a->timer, on_timer, (uint64_t)(after_us + 999) / 1000, 0);
}

/* ---- fabric -------------------------------------------------------------- */

int apply_lead_domains(struct apply *a, const char *const *domains, int n, struct err *err)
{
	a->domains = calloc((size_t)n + 1, sizeof(*a->domains));
	for (int i = 0; a->domains && i < n; i++) {
		a->domains[i] = strdup(domains[i]);
		if (!a->domains[i]) {
			return err_nomem(err);
		}
	}
	return a->domains ? 0 : err_nomem(err);
}

/* Devices that both have belong to another fabric now. */
void apply_switch(struct apply *a, struct device_set *set)
{
	a->set = set;
	a->version++;
	for (int i = 0; set && i < set->n; i++) {
		set->v[i]->now.version = ++a->version;
	}
}

void apply_use(struct apply *a, struct device_set *set)
{
	struct device_set *old = a->set;

	apply_switch(a, set);
	device_set_free(old);
}

int apply_set_fabric(struct apply *a, struct model_fabric *fabric, struct err *err)
{
	struct device_set *set;
	int rc;

	if (apply_busy(a)) {
		model_free(fabric);
		return err_set(err, WEFT_ESTALE, "a change is under way");
	}
	rc = device_set_new(a, fabric, a->set, &set, err);
	if (rc) {
		model_free(fabric);
		return rc;
	}
	apply_use(a, set);
	return 0;
}

const struct model_fabric *apply_fabric(const struct apply *a)
{
	return a->set ? a->set->fabric : NULL;
}

uint64_t apply_version(const struct apply *a)
{
	return a->version;
}

const struct apply_device *apply_devices(const struct apply *a, int *n)
{
	*n = a->set ? a->set->n : 0;
	for (int i = 0; i < *n; i++) {
		const struct device *d = a->set->v[i];

		a->set->view[i] = d->now;
		if (d->drv) {
			memcpy(a->set->view[i].use, d->drv->use, sizeof(d->drv->use));
		}
	}
	return *n ? a->set->view : NULL;
}

bool apply_is_read(const struct apply_device *d)
{
	return d->driver && d->driver[0] && !d->elsewhere;
}

void apply_loss(const struct apply *a, int device, const struct drv_xc *x, struct apply_loss *out)
{
	loss_judge(a->set->v[device], x, out);
}

/* ---- readings ------------------------------------------------------------ */

static void observe(const struct device *d, struct store_observed *o, struct optics_xc *xcs)
{
	const struct drv_snapshot *s = &d->now.snap;

	*o = (struct store_observed){
		.device = d->name, .read_at_ns = d->now.read_at_ns,
		.epoch = (char *)s->epoch, .identity = (char *)s->identity,
		.xcs = xcs, .n_xcs = s->n_xcs,
		.has_program = s->programs.n > 0,
	};
	for (int i = 0; i < s->n_xcs; i++) {
		xcs[i] = s->xcs[i].xc;
	}
	if (s->programs.n) {
		ring_programs_digest(&s->programs, o->program_digest);
	}
}

/* All unsaved readings in one transaction. */
static int save_readings(struct apply *a, struct err *err)
{
	size_t n = 0, n_xcs = 0;
	struct store_observed *v;
	struct optics_xc *xcs;
	int rc = 0;

	for (struct device *d = a->devices; d; d = d->next) {
		n += d->unsaved;
		n_xcs += d->unsaved ? d->now.snap.n_xcs : 0;
	}
	if (n == 0) {
		return 0;
	}
	v = calloc(n, sizeof(*v));
	xcs = calloc(n_xcs + 1, sizeof(*xcs));
	if (!v || !xcs) {
		rc = err_nomem(err);
		goto out;
	}
	n = n_xcs = 0;
	for (struct device *d = a->devices; d; d = d->next) {
		if (d->unsaved) {
			observe(d, &v[n++], xcs + n_xcs);
			n_xcs += d->now.snap.n_xcs;
		}
	}
	rc = store_observed_put(a->store, v, (int)n, err);
	for (struct device *d = a->devices; d && rc == 0; d = d->next) {
		d->unsaved = false;
	}
out:
	free(v);
	free(xcs);
	return rc;
}

void apply_save_readings(struct apply *a)
{
	struct err err = { 0 };

	if (save_readings(a, &err)) {
		log_error("apply", "readings are not saved: %s", err.msg);
	}
	for (struct device *d = a->devices; d; d = d->next) {
		if (loss_save(d, &err)) {
			log_error("apply", "losses are not saved: %s", err.msg);
		}
	}
	timings_save(a);
	apply_sync_later(a);
}

/* One round of readings; outlives the engine if that is closed meanwhile. */
struct read_all {
	struct apply *a;
	void (*done)(int rc, const struct err *err, void *arg);
	void *arg;
	int waiting;			/* answers, and the timer */
	int rc;				/* the first error */
	struct err err;
	uv_timer_t timer;		/* the later turn of the loop */
	struct device_op ops[];		/* one for each device of the set */
};

static void on_read_closed(uv_handle_t *h)
{
	free(h->data);
}

static void one_read(struct read_all *r)
{
	if (--r->waiting) {
		return;
	}
	if (!r->a->closing) {
		apply_save_readings(r->a);
	}
	r->done(r->rc, &r->err, r->arg);
	uv_close((uv_handle_t *)&r->timer, on_read_closed);
}

static void on_read(struct device *d, int rc, const struct err *err, void *arg)
{
	struct read_all *r = arg;

	(void)d;
	if (rc && !r->rc) {
		r->rc = rc;
		r->err = *err;
	}
	one_read(r);
}

static void on_read_empty(uv_timer_t *timer)
{
	one_read(timer->data);
}

static bool is_named(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(names[i], name) == 0) {
			return true;
		}
	}
	return !names;
}

void apply_read_some(struct apply *a, const char *const *names, int n_names,
		     void (*done)(int rc, const struct err *err, void *arg),
		     void *arg)
{
	int n = a->set ? a->set->n : 0;
	struct read_all *r = calloc(1, sizeof(*r) + n * sizeof(r->ops[0]));
	struct err err = { 0 };

	if (!r) {
		done(err_nomem(&err), &err, arg);
		return;
	}
	r->a = a;
	r->done = done;
	r->arg = arg;
	r->waiting = 1;
	uv_timer_init(a->loop, &r->timer);
	r->timer.data = r;
	uv_timer_start(&r->timer, on_read_empty, 0, 0);
	for (int i = 0; i < n; i++) {
		if (!a->set->v[i]->now.elsewhere && is_named(names, n_names, a->set->v[i]->name)) {
			r->waiting++;
			device_read(a->set->v[i], &r->ops[i], on_read, r);
		}
	}
}

void apply_read(struct apply *a, void (*done)(int rc, const struct err *err, void *arg), void *arg)
{
	apply_read_some(a, NULL, 0, done, arg);
}

void apply_on_device_event(struct apply *a, apply_device_event_cb fn, void *arg)
{
	a->on_device_event = fn;
	a->device_event_arg = arg;
}

void apply_set_hosts(struct apply *a, const struct apply_hosts *hosts)
{
	a->hosts = *hosts;
}

void apply_on_external(struct apply *a, apply_external_cb fn, void *arg)
{
	a->on_external = fn;
	a->external_arg = arg;
}

void apply_reading_for(struct apply *a, enum store_external_how how)
{
	a->how = how;
}

void apply_before_command(struct apply *a, void (*fn)(void *arg), void *arg)
{
	a->before_command = fn;
	a->before_arg = arg;
}
