/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Light between the stages of a plan: what a stage takes away, and what it
 * brings; see plan.h.
 */
#include <stdlib.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"

/* Up to where a plan is done: the stages before `stage`, and of it the
 * deletes or all. */
enum part { BEFORE, DELETED, MADE };

/* A point in the order of change. */
struct moment {
	int stage;
	enum part part;
};

static bool is_in(int n, const struct optics_xc *list, struct optics_xc xc)
{
	return n && bsearch(&xc, list, (size_t)n, sizeof(xc), optics_xc_cmp);
}

/* At this moment the circuits that the stage deletes are gone. */
static bool is_deleted(int stage, const struct moment *at)
{
	return stage < at->stage || (stage == at->stage && at->part != BEFORE);
}

/* At this moment the circuits that the stage adds are there. */
static bool is_made(int stage, const struct moment *at)
{
	return stage < at->stage || (stage == at->stage && at->part == MADE);
}

/* The light of one device at a moment, sorted. xcs is the caller's. */
static void light_of(const struct plan_device *d, const struct moment *at, struct plan_light *out)
{
	size_t most = (size_t)d->n_want + (size_t)d->n_del + 1;
	struct optics_xc *v = x_new(most, sizeof(*v));

	*out = (struct plan_light){ .known = true, .xcs = v };
	for (int i = 0; i < d->n_want; i++) {
		if (!is_in(d->n_add, d->add, d->want[i]) &&
		    !is_in(d->n_leave, d->leave, d->want[i])) {
			v[out->n_xcs++] = d->want[i];
		}
	}
	for (int i = 0; i < d->n_del; i++) {
		if (!is_deleted(d->del_stage[i], at)) {
			v[out->n_xcs++] = d->del[i];
		}
	}
	for (int i = 0; i < d->n_add; i++) {
		if (is_made(d->add_stage[i], at)) {
			v[out->n_xcs++] = d->add[i];
		}
	}
	qsort(v, (size_t)out->n_xcs, sizeof(*v), optics_xc_cmp);
}

static void free_light(struct plan_light *v, int n)
{
	for (int i = 0; v && i < n; i++) {
		free((void *)v[i].xcs);
	}
	free(v);
}

/* Of these devices (NULL: all), by device of the fabric; free_light's. */
static struct plan_light *light_at(const struct plan *p, const struct moment *at,
				   const bool *devices)
{
	struct plan_light *light = x_new((size_t)p->fabric->n_devices + 1, sizeof(*light));

	for (int i = 0; i < p->n_devices; i++) {
		const struct plan_device *d = &p->devices[i];

		if (!devices || devices[d->device]) {
			light_of(d, at, &light[d->device]);
		}
	}
	return light;
}

/* Where the light of each port at these devices (NULL: all) arrives at that moment:
 * [n_ports], -1 nowhere. */
static int *trace_ports(const struct plan *p, const struct moment *at, const bool *devices)
{
	const struct model_fabric *f = p->fabric;
	struct plan_light *light = light_at(p, at, devices);
	int **trunk_at = plan_map_trunks(f);
	int *to = x_new((size_t)f->n_ports + 1, sizeof(*to));

	for (int i = 0; i < f->n_ports; i++) {
		const int device = f->ports[i].tx_device;

		to[i] = !devices || (device >= 0 && devices[device])
				? plan_trace_by(f, trunk_at, light, i) : -1;
	}
	free_light(light, f->n_devices);
	plan_trunks_free(f, trunk_at);
	return to;
}

static bool has_stage(const int *stages, int n, int stage)
{
	for (int i = 0; i < n; i++) {
		if (stages[i] == stage) {
			return true;
		}
	}
	return false;
}

/* The devices of a stage: a large fabric has as many stages as failure domains, and each
 * changes the light of few ports. NULL: all, as light goes through several devices. */
static bool *find_devices(const struct plan *p, int stage)
{
	bool *out;

	if (p->fabric->n_trunks > 0) {
		return NULL;
	}
	out = x_new((size_t)p->fabric->n_devices + 1, sizeof(*out));
	for (int i = 0; i < p->n_devices; i++) {
		const struct plan_device *d = &p->devices[i];

		out[d->device] = has_stage(d->del_stage, d->n_del, stage) ||
				 has_stage(d->add_stage, d->n_add, stage);
	}
	return out;
}

/* The light of one moment that is not that of another of the same stage (NULL: all). */
static void list_arcs(const struct plan *p, const struct moment *has, const struct moment *lacks,
		      struct plan_arc **arcs, int *n)
{
	VEC(struct plan_arc) v = { 0 };
	bool *devices = lacks ? find_devices(p, has->stage) : NULL;
	int *to = trace_ports(p, has, devices);
	int *other = lacks ? trace_ports(p, lacks, devices) : NULL;

	for (int i = 0; i < p->fabric->n_ports; i++) {
		const struct plan_arc a = { i, to[i] };

		if (to[i] >= 0 && !(other && other[i] == to[i])) {
			vec_push(&v, a);
		}
	}
	free(to);
	free(other);
	free(devices);
	*arcs = v.v;
	*n = (int)v.n;
}

static bool deletes_any(const struct plan *p, int stage)
{
	for (int i = 0; i < p->n_devices; i++) {
		if (has_stage(p->devices[i].del_stage, p->devices[i].n_del, stage)) {
			return true;
		}
	}
	return false;
}

void plan_stage_removes(const struct plan *p, int stage, struct plan_arc **arcs, int *n)
{
	if (!deletes_any(p, stage)) {
		*arcs = NULL;
		*n = 0;
		return;
	}
	list_arcs(p, &(struct moment){ stage, BEFORE }, &(struct moment){ stage, DELETED },
		  arcs, n);
}

void plan_stage_adds(const struct plan *p, int stage, struct plan_arc **arcs, int *n)
{
	list_arcs(p, &(struct moment){ stage, MADE }, &(struct moment){ stage, DELETED }, arcs, n);
}

void plan_arcs_after(const struct plan *p, int stage, struct plan_arc **arcs, int *n)
{
	list_arcs(p, &(struct moment){ stage, MADE }, NULL, arcs, n);
}

int plan_arc_hops(const struct plan *p, int stage, const struct plan_arc *arcs, int n_arcs,
		  struct plan_hop **hops, int **first, struct err *err)
{
	struct plan_light *light = light_at(p, &(struct moment){ stage, MADE }, NULL);
	int rx, n = 0, rc = 0;

	*hops = NULL;
	*first = x_new((size_t)n_arcs + 1, sizeof(**first));
	for (int i = 0; i < n_arcs && rc == 0; i++) {
		(*first)[i] = n;
		rc = plan_trace_hops(p->fabric, light, arcs[i].tx_port, hops, &n, &rx, err);
		(*first)[i + 1] = n;
	}
	free_light(light, p->fabric->n_devices);
	if (rc) {
		free(*hops);
		free(*first);
		*hops = NULL;
		*first = NULL;
	}
	return rc;
}
