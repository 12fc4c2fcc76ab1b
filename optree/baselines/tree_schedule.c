/* SPDX-License-Identifier: Apache-2.0 */
/* Lightpaths as a schedule: one arc for each ordered pair that ever talks,
 * and as many beside it as the pair has lightpaths in one step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "optree/baselines/baselines.h"

struct tree_layout {
	const struct tree_light *light;
	int n;
	int32_t *order;		/* lightpaths by (step, src, dst) */
	int32_t *spare;
	int32_t *first;		/* n * n + 1: first arc of each pair */
};

static void layout_fini(struct tree_layout *l)
{
	free(l->order);
	free(l->spare);
	free(l->first);
}

enum sort_key { BY_DST, BY_SRC, BY_STEP };

static int32_t key_of(const struct rwa_arc *a, enum sort_key key)
{
	return key == BY_DST ? a->dst : key == BY_SRC ? a->src : a->slot;
}

/* One stable counting pass from order[] into spare[], which change places. */
static void sort_by(struct tree_layout *l, enum sort_key key, int range)
{
	const struct tree_light *t = l->light;
	int32_t *at = x_new((size_t)range + 1, sizeof(*at)), *swap = l->order;

	for (int64_t k = 0; k < t->n_arcs; k++) {
		at[key_of(&t->arcs[k], key) + 1]++;
	}
	for (int v = 0; v < range; v++) {
		at[v + 1] += at[v];
	}
	for (int64_t k = 0; k < t->n_arcs; k++) {
		int32_t i = l->order[k];

		l->spare[at[key_of(&t->arcs[i], key)]++] = i;
	}
	l->order = l->spare;
	l->spare = swap;
	free(at);
}

static const struct rwa_arc *arc_at(const struct tree_layout *l, int64_t k)
{
	return &l->light->arcs[l->order[k]];
}

/* Lightpath k in order is the how-manieth (from 0) of its step and pair, when
 * the one before it was the `before`th. */
static int32_t beside(const struct tree_layout *l, int64_t k, int32_t before)
{
	const struct rwa_arc *a, *b;

	if (k == 0) {
		return 0;
	}
	a = arc_at(l, k);
	b = arc_at(l, k - 1);
	return a->slot == b->slot && a->src == b->src && a->dst == b->dst
		       ? before + 1 : 0;
}

static size_t pair_of(const struct tree_layout *l, const struct rwa_arc *a)
{
	return (size_t)a->src * l->n + a->dst;
}

/* first[]: at first the arcs each pair needs, then their numbers. */
static void number_arcs(struct tree_layout *l)
{
	size_t pairs = (size_t)l->n * l->n;
	int32_t run = 0, sum = 0;

	for (int64_t k = 0; k < l->light->n_arcs; k++) {
		int32_t *need = &l->first[pair_of(l, arc_at(l, k))];

		run = beside(l, k, run);
		*need = run >= *need ? run + 1 : *need;
	}
	for (size_t p = 0; p <= pairs; p++) {
		int32_t need = l->first[p];

		l->first[p] = sum;
		sum += need;
	}
}

static void layout_init(struct tree_layout *l, const struct tree_light *t)
{
	size_t count = (size_t)t->n_arcs + 1;
	int n = t->ring.n;

	*l = (struct tree_layout){ .light = t, .n = n };
	l->order = x_alloc(count, sizeof(*l->order));
	l->spare = x_alloc(count, sizeof(*l->spare));
	l->first = x_new((size_t)n * n + 1, sizeof(*l->first));
	for (int64_t k = 0; k < t->n_arcs; k++) {
		l->order[k] = (int32_t)k;
	}
	sort_by(l, BY_DST, n);
	sort_by(l, BY_SRC, n);
	sort_by(l, BY_STEP, t->steps);
	number_arcs(l);
}

static int make_topo(const struct tree_layout *l, struct topo **out, struct err *err)
{
	int rc = topo_new(l->n, out, err);

	for (size_t p = 0; !rc && p < (size_t)l->n * l->n; p++) {
		for (int32_t k = l->first[p]; !rc && k < l->first[p + 1]; k++) {
			rc = topo_add_arc(*out, (int)(p / (size_t)l->n),
					  (int)(p % (size_t)l->n), 1, 0, err);
		}
	}
	if (rc) {
		return rc;
	}
	topo_freeze(*out);
	return 0;
}

static int fill(const struct tree_layout *l, const struct optree_params *p,
		struct coll_sched *s, struct err *err)
{
	const struct tree_light *t = l->light;
	struct rwa_ring ring = { p->at && p->ring_nodes ? p->ring_nodes : p->n,
				 p->fibres, p->channels };
	int32_t run = 0;
	int rc;

	for (int64_t k = 0; k < t->n_arcs; k++) {
		const struct rwa_arc *a = arc_at(l, k);
		int links = optree_links(p, a->src, a->dst, a->dir);
		int64_t lost = p->loss ? rwa_path_loss_mdb(&ring, p->loss, links) : 0;
		struct coll_xfer x = {
			.step = a->slot, .origin = t->item[l->order[k]],
			.dest = COLL_NO_DEST, .op = COLL_OP_COPY };
		struct coll_light light = {
			.step = a->slot, .channel = a->channel, .dir = a->dir,
			.fibre = a->fibre, .loss_mdb = (int32_t)lost };

		run = beside(l, k, run);
		x.arc = light.arc = l->first[pair_of(l, a)] + run;
		if ((rc = coll_add(s, &x, err)) || (rc = coll_add_light(s, &light, err))) {
			return rc;
		}
	}
	return coll_finish(s, err);
}

/* From colours of the ring that they were given on to channels of this one. */
static int place_light(const struct optree_params *p, struct tree_light *t, struct err *err)
{
	int wide = t->ring.channels;

	t->ring.fibres = p->fibres;
	t->ring.channels = p->channels;
	for (int64_t k = 0; k < t->n_arcs && p->n_light; k++) {
		struct rwa_arc *a = &t->arcs[k];

		part_colour(p->light, (size_t)p->n_light, p->channels, a->dir,
			    a->fibre * wide + a->channel, &a->fibre, &a->channel);
	}
	return rwa_ring_check(&t->ring, t->arcs, t->n_arcs, err);
}

int tree_schedule(const struct optree_params *p, struct tree_light *t,
		  struct coll_sched **out, struct err *err)
{
	int ports = (int)(tree_width(p, RWA_CW) + tree_width(p, RWA_CCW));
	struct tree_layout l = { 0 };
	struct topo *topo = NULL;
	struct coll_sched *s = NULL;
	char name[64];
	int rc = place_light(p, t, err);

	*out = NULL;
	if (rc) {
		goto out;
	}
	layout_init(&l, t);
	if ((rc = make_topo(&l, &topo, err))) {
		topo_free(topo);
		goto out;
	}
	if ((rc = coll_new(COLL_ALLGATHER, topo, 1, ports, 0, &s, err)) ||
	    (rc = fill(&l, p, s, err)) || (rc = coll_verify(s, NULL, err))) {
		coll_free(s);
		goto out;
	}
	snprintf(name, sizeof(name), p->line ? "segment of %d nodes"
					     : "WDM ring of %d nodes", t->ring.n);
	coll_set_topo_name(s, name);
	*out = s;
out:
	layout_fini(&l);
	return rc;
}
