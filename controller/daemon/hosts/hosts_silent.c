/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Circuits that devices have lit, and of which nothing arrives: a host has no carrier where
 * light ends or begins, or hears another. The engine keeps them beside its readings, so
 * that plans, jobs and all who tell of dark circuits know of them from one place.
 *
 * What devices say themselves goes before: where their maps do not lead the light to the port,
 * silence tells nothing. Nor does it while a change runs, or before a link can be up.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/hosts/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

#define MARGIN_NS INT64_C(1000000000)	/* of waiting, beside half of the time */
#define LEARNED_ENOUGH 3	/* times seen before they replace the file's */

/* The longest that it took recently, or what the file says. */
int64_t hosts_max_wait_ns(const struct hosts *hosts, const struct model_fabric *f, int port)
{
	struct apply_timing t;
	int64_t ns = f->hosts[f->ports[port].host].reactivation_ns;

	if (apply_learned(hosts->env->apply, STORE_REACTIVATION, f->ports[port].name, &t)) {
		ns = t.n >= LEARNED_ENOUGH || t.max_ns > ns ? t.max_ns : ns;
	}
	return ns + ns / 2 + MARGIN_NS;
}

static bool can_tell(const struct host_set *h, int port)
{
	const struct host_port *v = &h->ports[port];

	return v->local >= 0 && h->v[v->local].frame_fd >= 0;
}

bool hosts_cannot_send(const struct host_set *h, int port)
{
	const struct host_link *tx = &h->ports[port].tx;

	return can_tell(h, port) && tx->ifindex && !tx->carrier;
}

/* Whether light on its way to this port is known not to arrive; false while that is not known, and
 * while the link may still come up. */
static bool is_silent(const struct host_set *h, const struct model_fabric *f, int port)
{
	const struct host_port *v = &h->ports[port];

	if (v->from < 0) {
		return false;
	}
	if (hosts_cannot_send(h, v->from)) {
		return true;
	}
	if (!can_tell(h, port) || !v->rx.ifindex) {
		return false;
	}
	if (!v->rx.carrier) {
		return !v->lit_ns ||
		       clk_now_ns() - v->lit_ns > hosts_max_wait_ns(h->hosts, f, port);
	}
	return v->mute;
}

/* All circuits on the way to silent ports, by device; sorted, each once. */
typedef VEC(struct optics_xc) xc_list;

static void collect(const struct host_set *h, const struct model_fabric *f,
		    const struct plan_base *base, xc_list *to)
{
	struct plan_hop *hops = NULL;

	for (int i = 0; i < h->n_ports; i++) {
		int n = 0, rx = -1;

		if (!is_silent(h, f, i) ||
		    plan_trace(f, base->observed, h->ports[i].from) != i ||
		    plan_trace_hops(f, base->intent, h->ports[i].from, &hops, &n, &rx, NULL) ||
		    rx != i) {
			continue;
		}
		for (int k = 0; k < n; k++) {
			vec_push(&to[hops[k].device], hops[k].xc);
		}
	}
	free(hops);
}

static void sort_once(xc_list *list)
{
	size_t n = 0;

	if (list->n) {
		qsort(list->v, list->n, sizeof(*list->v), optics_xc_cmp);
	}
	for (size_t i = 0; i < list->n; i++) {
		if (n == 0 || optics_xc_cmp(&list->v[n - 1], &list->v[i])) {
			list->v[n++] = list->v[i];
		}
	}
	list->n = n;
}

void hosts_note_silent(struct hosts *hosts)
{
	const struct model_fabric *f = apply_fabric(hosts->env->apply);
	const struct host_set *h = hosts->set;
	struct plan_base base;
	bool others = false;
	xc_list *silent;

	if (!f || hosts->env->changing) {
		return;
	}
	silent = x_new((size_t)f->n_devices + 1, sizeof(*silent));
	if (h && strcmp(h->hash, f->hash) == 0) {
		apply_plan_base(hosts->env->apply, f, PLAN_SAFE, &base);
		collect(h, f, &base, silent);
	}
	for (int i = 0; i < f->n_devices; i++) {
		sort_once(&silent[i]);
		others |= apply_set_silent(hosts->env->apply, i, silent[i].v, (int)silent[i].n);
		vec_fini(&silent[i]);
	}
	free(silent);
	if (others) {
		hosts->heard(hosts->arg);
	}
}
