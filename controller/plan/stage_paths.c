/*
 * Light between the stages of a plan: what a stage takes away, and what it
 * brings; see plan.h.
 */
#include <stdlib.h>

#include "controller/plan/private.h"
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
static int light_of(const struct plan_device *d, const struct moment *at,
		    struct plan_light *out, struct err *err)
{
	size_t most = (size_t)d->n_want + (size_t)d->n_del + 1;
	struct optics_xc *v = calloc(most, sizeof(*v));

	if (!v) {
		return err_nomem(err);
	}
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
	return 0;
}

static void free_light(struct plan_light *v, int n)
{
	for (int i = 0; v && i < n; i++) {
		free((void *)v[i].xcs);
	}
	free(v);
}

/* Of these devices (NULL: all), by device of the fabric; *out is free_light's. */
static int light_at(const struct plan *p, const struct moment *at, const bool *devices,
		    struct plan_light **out, struct err *err)
{
	struct plan_light *light = calloc((size_t)p->fabric->n_devices + 1, sizeof(*light));
	int rc = light ? 0 : err_nomem(err);

	for (int i = 0; i < p->n_devices && rc == 0; i++) {
		const struct plan_device *d = &p->devices[i];

		if (!devices || devices[d->device]) {
			rc = light_of(d, at, &light[d->device], err);
		}
	}
	*out = light;
	return rc;
}

/* Where the light of each port at these devices (NULL: all) arrives at that moment: *to is
 * [n_ports], -1 nowhere. */
static int trace_ports(const struct plan *p, const struct moment *at, const bool *devices,
		       int **to, struct err *err)
{
	const struct model_fabric *f = p->fabric;
	struct plan_light *light;
	int **trunk_at = NULL;
	int rc = light_at(p, at, devices, &light, err);

	if (rc == 0) {
		rc = plan_map_trunks(f, &trunk_at, err);
	}
	*to = calloc((size_t)f->n_ports + 1, sizeof(**to));
	if (rc == 0 && !*to) {
		rc = err_nomem(err);
	}
	for (int i = 0; i < f->n_ports && rc == 0; i++) {
		const int device = f->ports[i].tx_device;

		(*to)[i] = !devices || (device >= 0 && devices[device])
				   ? plan_trace_by(f, trunk_at, light, i) : -1;
	}
	free_light(light, f->n_devices);
	plan_trunks_free(f, trunk_at);
	if (rc) {
		free(*to);
		*to = NULL;
	}
	return rc;
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
 * changes the light of few ports. *out NULL: all, as light goes through several devices. */
static int find_devices(const struct plan *p, int stage, bool **out, struct err *err)
{
	*out = NULL;
	if (p->fabric->n_trunks > 0) {
		return 0;
	}
	*out = calloc((size_t)p->fabric->n_devices + 1, sizeof(**out));
	for (int i = 0; i < p->n_devices && *out; i++) {
		const struct plan_device *d = &p->devices[i];

		(*out)[d->device] = has_stage(d->del_stage, d->n_del, stage) ||
				    has_stage(d->add_stage, d->n_add, stage);
	}
	return *out ? 0 : err_nomem(err);
}

/* The light of one moment that is not that of another of the same stage (NULL: all). */
static int list_arcs(const struct plan *p, const struct moment *has, const struct moment *lacks,
		     struct plan_arc **arcs, int *n, struct err *err)
{
	VEC(struct plan_arc) v = { 0 };
	int *to = NULL, *other = NULL;
	bool *devices = NULL;
	int rc = lacks ? find_devices(p, has->stage, &devices, err) : 0;

	if (rc == 0) {
		rc = trace_ports(p, has, devices, &to, err);
	}
	if (rc == 0 && lacks) {
		rc = trace_ports(p, lacks, devices, &other, err);
	}
	for (int i = 0; i < p->fabric->n_ports && rc == 0; i++) {
		const struct plan_arc a = { i, to[i] };

		if (to[i] >= 0 && !(other && other[i] == to[i]) && vec_push(&v, a)) {
			rc = err_nomem(err);
		}
	}
	free(to);
	free(other);
	free(devices);
	if (rc) {
		vec_fini(&v);
	}
	*arcs = v.v;
	*n = (int)v.n;
	return rc;
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

int plan_stage_removes(const struct plan *p, int stage, struct plan_arc **arcs, int *n,
		       struct err *err)
{
	if (!deletes_any(p, stage)) {
		*arcs = NULL;
		*n = 0;
		return 0;
	}
	return list_arcs(p, &(struct moment){ stage, BEFORE },
			 &(struct moment){ stage, DELETED }, arcs, n, err);
}

int plan_stage_adds(const struct plan *p, int stage, struct plan_arc **arcs, int *n,
		    struct err *err)
{
	return list_arcs(p, &(struct moment){ stage, MADE },
			 &(struct moment){ stage, DELETED }, arcs, n, err);
}

int plan_arcs_after(const struct plan *p, int stage, struct plan_arc **arcs, int *n,
		    struct err *err)
{
	return list_arcs(p, &(struct moment){ stage, MADE }, NULL, arcs, n,
			 err);
}

int plan_arc_hops(const struct plan *p, int stage, const struct plan_arc *arcs, int n_arcs,
		  struct plan_hop **hops, int **first, struct err *err)
{
	struct plan_light *light;
	int rx, n = 0, rc = light_at(p, &(struct moment){ stage, MADE }, NULL,
				     &light, err);

	*hops = NULL;
	*first = calloc((size_t)n_arcs + 1, sizeof(**first));
	if (rc == 0 && !*first) {
		rc = err_nomem(err);
	}
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
