/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: life, fabric, who is told.
 *
 * The engine owns the devices of the present fabric and what was read of them;
 * whoever asks gets views, never handles. Closing is asynchronous, for handles
 * of drivers and timers are: finish_free() runs when the last is gone, and
 * only then are a change or a recovery that ran given up, so that no callback
 * of theirs can come later.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"

const char *apply_verdict_name(enum apply_verdict v)
{
	static const char *const names[] = {
		"nothing to do", "committed", "refused", "rolled back",
		"stuck",
	};

	return names[v];
}

/* ---- life ---------------------------------------------------------------- */

static void finish_free(struct apply *a)
{
	void (*done)(void *) = a->closed_cb;
	void *arg = a->closed_arg;

	if (!a->closing || !a->timer_closed || a->n_devices || a->syncs.running || a->n_working) {
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

static void sync_later(void *arg)
{
	apply_sync_later(arg);
}

int apply_new(uv_loop_t *loop, struct store *store, struct apply **out, struct err *err)
{
	struct apply *a = x_new(1, sizeof(*a));
	int rc;

	a->loop = loop;
	a->store = store;
	a->ended = finish_free;
	if ((rc = timings_load(a, err)) || (rc = apply_refresh(a, err)) ||
	    (rc = store_defer_syncs(store, err))) {
		timings_free(a);
		free(a);
		return rc;
	}
	store_on_written(store, sync_later, a);
	uv_timer_init(loop, &a->timer);
	a->timer.data = a;
	*out = a;
	return 0;
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
	store_on_written(a->store, NULL, NULL);
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

/* ---- fabric -------------------------------------------------------------- */

void apply_lead_domains(struct apply *a, const char *const *domains, int n)
{
	a->domains = x_new((size_t)n + 1, sizeof(*a->domains));
	for (int i = 0; i < n; i++) {
		a->domains[i] = x_dup(domains[i]);
	}
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

/* ---- who is told ---------------------------------------------------------- */

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
