/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mesh of groups of ranks. Where an axis of a row-major mesh starts and ends, in ranks, is
 * seen in the group of rank 0 of whatever runs along it and not along the next: so all these places
 * are places of any mesh that has the groups, each divides the next, and the mesh that has no
 * others is the one with the fewest axes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/workload/groups.h"
#include "lib/base/alloc.h"

/* Pairs of groups that are compared, times ranks, before no more are looked for. */
#define COMPARED (INT64_C(1) << 28)

/* Where axes start and end, in rising order, from 1 to the ranks of the mesh. */
struct mesh_cuts {
	VEC(int) v;
};

static void add_cut(struct mesh_cuts *c, int at)
{
	size_t i = c->v.n;

	for (size_t k = 0; k < c->v.n; k++) {
		if (c->v.v[k] == at) {
			return;
		}
	}
	vec_push(&c->v, at);
	for (; i > 0 && c->v.v[i - 1] > at; i--) {
		c->v.v[i] = c->v.v[i - 1];
	}
	c->v.v[i] = at;
}

/* By the group of rank 0: runs of equal distances, of what was found so far. */
static void add_cuts(const int32_t *of, int n, struct mesh_cuts *c)
{
	int *member = x_new((size_t)n, sizeof(*member)), size = 0;

	for (int r = 0; r < n; r++) {
		if (of[r] == 0) {
			member[size++] = r;
		}
	}
	for (int len = 1, times; len < size; len *= times) {
		int64_t stride = member[len];

		for (times = 2; times * (int64_t)len < size &&
				member[times * len] == times * stride; times++) {
		}
		add_cut(c, (int)stride);
		add_cut(c, (int)(stride * times));
	}
	free(member);
}

static bool is_mesh(const struct mesh_cuts *c)
{
	for (size_t i = 1; i < c->v.n; i++) {
		if (c->v.v[i] % c->v.v[i - 1]) {
			return false;
		}
	}
	return true;
}

static uint32_t axes_of(const struct workload *w, const int32_t *of)
{
	uint32_t axes = 0;
	int stride = 1;

	for (size_t i = w->axes.n; i-- > 0; stride *= w->axes.v[i].size) {
		axes |= of[stride] == 0 ? UINT32_C(1) << i : 0;
	}
	return axes;
}

/* The first rank of r's group along the axes. */
static int first_of(const struct workload *w, uint32_t axes, int r)
{
	int first = r, stride = 1;

	for (size_t i = w->axes.n; i-- > 0; stride *= w->axes.v[i].size) {
		first -= axes >> i & 1 ? r / stride % w->axes.v[i].size * stride : 0;
	}
	return first;
}

/* A mesh of these axes. */
static int add_axes(struct workload *w, const struct mesh_cuts *c, struct err *err)
{
	int rc = 0;

	for (size_t i = c->v.n - 1; i-- > 0 && !rc;) {
		char name[32];

		snprintf(name, sizeof(name), "stride-%d", c->v.v[i]);
		rc = workload_add_axis(w, name, c->v.v[i + 1] / c->v.v[i], err);
	}
	return rc;
}

/* One collective's groups alone. */
static int check_own(const struct workload_groups *g, int n, struct err *err)
{
	struct mesh_cuts c = { 0 };
	struct workload *w;
	int bad = 0, rc = 0;

	workload_new(&w);
	add_cut(&c, 1);
	add_cut(&c, n);
	add_cuts(g->of, n, &c);
	if (is_mesh(&c) && c.v.v[c.v.n - 1] == n && (rc = add_axes(w, &c, err)) == 0) {
		uint32_t axes = axes_of(w, g->of);

		for (; bad < n && first_of(w, axes, bad) == g->of[bad]; bad++) {
		}
	}
	if (!rc && bad < n) {
		rc = err_set(err, WEFT_EINVAL, "%s: the group of rank %d is along no axes of a "
			     "mesh of %d ranks in their order", g->name, bad, n);
	}
	workload_free(w);
	vec_fini(&c.v);
	return rc;
}

/* Ranks that are in both groups, of r and of s. */
static int meet(const struct workload_groups *a, int r, const struct workload_groups *b, int s,
		int n)
{
	int both = 0;

	for (int i = 0; i < n; i++) {
		both += a->of[i] == a->of[r] && b->of[i] == b->of[s];
	}
	return both;
}

/* Of a mesh, groups of a that meet one of b meet all of b that any of them meets, in as many
 * ranks. */
static int check_both(const struct workload_groups *a, const struct workload_groups *b, int n,
		      struct err *err)
{
	int64_t left = COMPARED / n;
	int want = meet(a, 0, b, 0, n);

	for (int r = 0; r < n && left > 0; r++) {
		for (int s = 0; b->of[r] == 0 && s < n && left > 0; s++) {
			int both = a->of[s] == 0 ? meet(a, r, b, s, n) : want;

			if (both != want) {
				return err_set(err, WEFT_EINVAL, "no mesh has the groups of %s and "
					       "of %s: those of rank 0 share %d, those of ranks %d "
					       "and %d share %d", a->name, b->name, want, r, s,
					       both);
			}
			left -= a->of[s] == 0;
		}
	}
	return err_set(err, WEFT_EINVAL, "no mesh of %d ranks in their order has the groups of %s "
		       "and of %s", n, a->name, b->name);
}

/* Two that have no mesh together. */
static int refuse(const struct workload_groups *groups, size_t n_groups, int n, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < n_groups && !rc; i++) {
		for (size_t k = 0; k < i && !rc; k++) {
			struct mesh_cuts c = { 0 };

			add_cuts(groups[k].of, n, &c);
			add_cuts(groups[i].of, n, &c);
			rc = is_mesh(&c) ? 0 : check_both(&groups[k], &groups[i], n, err);
			vec_fini(&c.v);
		}
	}
	return rc;
}

int workload_add_groups(struct workload *w, int n, struct workload_groups *groups, size_t n_groups,
			struct err *err)
{
	struct mesh_cuts c = { 0 };
	int rc = 0;

	add_cut(&c, 1);
	add_cut(&c, n);
	for (size_t i = 0; i < n_groups && !rc; i++) {
		rc = check_own(&groups[i], n, err);
		add_cuts(groups[i].of, n, &c);
	}
	if (!rc) {
		rc = is_mesh(&c) ? add_axes(w, &c, err) : refuse(groups, n_groups, n, err);
	}
	for (size_t i = 0; i < n_groups && !rc; i++) {
		groups[i].axes = axes_of(w, groups[i].of);
	}
	vec_fini(&c.v);
	return rc;
}
