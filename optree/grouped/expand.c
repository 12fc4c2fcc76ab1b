/*
 * A grouped plan written out: every item's transfers and every lightpath, on a
 * digraph with one arc for each source, sink and direction. What is sent to a
 * node that has part of it, which is the node's own item or what it gathered, is
 * sent without that part.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "optree/grouped/grouped.h"

struct writer {
	const struct optree_groups *g;
	const struct optree_params *p;
	bool mirror;
	struct arrays arrays;	/* owns all that follow */
	uint64_t *keys;		/* of arcs, ascending */
	int32_t *arc;		/* of each lightpath */
	int n_arcs;
	struct coll_sched *out;
	const struct grouped_round *round;
	int32_t step;
	struct err *err;
};

static int place(const struct writer *w, int v)
{
	return w->mirror ? (w->g->n - v) % w->g->n : v;
}

static int sink_of(const struct writer *w, int src, int dir, int len)
{
	int n = w->g->n;

	return dir == RWA_CW ? (src + len) % n : (src - len + n) % n;
}

static uint64_t key_of(const struct writer *w, const struct grouped_path *x)
{
	uint64_t src = (uint64_t)place(w, x->src);
	uint64_t dst = (uint64_t)place(w, sink_of(w, x->src, x->dir, x->len));

	return (src << 32 | dst << 1) | (uint64_t)(x->dir ^ w->mirror);
}

static int by_key(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int writer_init(struct writer *w, struct err *err)
{
	const struct optree_groups *g = w->g;
	arrays_add(&w->arrays, w->keys, g->paths.n);
	arrays_add(&w->arrays, w->arc, g->paths.n);
	return w->arrays.failed ? err_nomem(err) : 0;
}

/* Arcs in the digraph's own order, so their numbers are known. */
static int make_topo(struct writer *w, struct topo **out, struct err *err)
{
	const struct optree_groups *g = w->g;
	int rc = topo_new(g->n, out, err);

	for (size_t i = 0; i < g->paths.n; i++) {
		w->keys[i] = key_of(w, &g->paths.v[i]);
	}
	qsort(w->keys, g->paths.n, sizeof(*w->keys), by_key);
	for (size_t i = 0; i < g->paths.n && !rc; i++) {
		uint64_t key = w->keys[i];

		if (i && key == w->keys[w->n_arcs - 1]) {
			continue;
		}
		w->keys[w->n_arcs++] = key;
		rc = topo_add_arc(*out, (int)(key >> 32), (int)((uint32_t)key >> 1), 1, 0, err);
	}
	for (size_t i = 0; i < g->paths.n; i++) {
		uint64_t key = key_of(w, &g->paths.v[i]);
		uint64_t *at = bsearch(&key, w->keys, (size_t)w->n_arcs, sizeof(key), by_key);

		w->arc[i] = (int32_t)(at - w->keys);
	}
	return rc ? rc : topo_freeze(*out, err);
}

/* A group's items, but for those that the sink has, or the whole vector. */
static int write_hop(void *data, const struct grouped_hop *h)
{
	struct writer *w = data;
	const struct grouped_stage *s = grouped_stage_of(w->g, w->round);
	const struct grouped_path *x = grouped_path_of(w->g, w->round, h);
	int to = sink_of(w, x->src, x->dir, x->len);
	bool sums = w->g->shape.sums;
	struct coll_xfer t = { .step = w->step + x->slot, .arc = w->arc[x - w->g->paths.v],
			       .dest = COLL_NO_DEST, .last = w->g->chunks - 1,
			       .op = sums && w->round->level <= w->g->shape.stages
					     ? COLL_OP_REDUCE : COLL_OP_COPY };
	int rc = 0;

	for (t.origin = 0; t.origin < w->g->n && sums && !rc; t.origin++) {
		rc = coll_add(w->out, &t, w->err);
	}
	for (int32_t i = sums ? 0 : s->first[h->group];
	     !sums && i < s->first[h->group + 1] && !rc; i++) {
		if (i < s->own[to] || i >= s->own_end[to]) {
			t.origin = place(w, i);
			rc = coll_add(w->out, &t, w->err);
		}
	}
	return rc;
}

static int write_lights(struct writer *w)
{
	struct rwa_ring ring = { w->p->n, w->p->fibres, w->p->channels };
	int rc = 0;

	for (size_t i = w->round->path; i < w->round->path + w->round->n_paths && !rc; i++) {
		const struct grouped_path *x = &w->g->paths.v[i];
		int to = sink_of(w, x->src, x->dir, x->len);
		struct coll_light l = { .step = w->step + x->slot, .arc = w->arc[i],
					.dir = x->dir ^ w->mirror };

		l.loss_mdb = w->p->loss ? (int32_t)rwa_path_loss_mdb(&ring, w->p->loss,
				optree_links(w->p, place(w, x->src), place(w, to), l.dir)) : 0;
		for (int k = 0; k < x->width && !rc; k++) {
			part_colour(w->p->light, (size_t)w->p->n_light, w->p->channels, x->dir,
				    x->first + k, &l.fibre, &l.channel);
			rc = coll_add_light(w->out, &l, w->err);
		}
	}
	return rc;
}

static int write_rounds(struct writer *w)
{
	const struct optree_groups *g = w->g;
	int rc = 0;

	for (size_t i = 0; i < g->rounds.n && !rc; i++) {
		w->round = &g->rounds.v[i];
		rc = grouped_each_hop(g, w->round, write_hop, w);
		if (!rc) {
			rc = write_lights(w);
		}
		w->step += w->round->slots;
	}
	return rc;
}

static int check_size(const struct optree_groups *g, struct err *err)
{
	int64_t groups = g->stage[g->shape.stages].count;
	int64_t transfers = (int64_t)g->n * (g->shape.sums ? 2 * g->n + groups * groups
							   : g->n + g->shape.stages);

	if (g->lightpaths > COLL_MAX_LIGHTS || transfers > COLL_MAX_XFERS) {
		return err_set(err, WEFT_ELIMIT, "%lld lights and %lld transfers: a written "
			       "schedule holds at most %d and %d", (long long)g->lightpaths,
			       (long long)transfers, COLL_MAX_LIGHTS, COLL_MAX_XFERS);
	}
	return 0;
}

int grouped_expand(const struct optree_groups *g, const struct optree_params *p, bool mirror,
		   struct coll_sched **out, struct err *err)
{
	struct writer w = { .g = g, .p = p, .mirror = mirror, .err = err };
	struct topo *topo = NULL;
	char name[64];
	int rc = check_size(g, err);

	*out = NULL;
	if (rc || (rc = writer_init(&w, err)) || (rc = make_topo(&w, &topo, err))) {
		topo_free(topo);
		goto out;
	}
	rc = coll_new(g->shape.sums ? COLL_ALLREDUCE : COLL_ALLGATHER, topo, g->chunks, 2 * g->w, 0, &w.out, err);
	if (rc || (rc = write_rounds(&w)) || (rc = coll_finish(w.out, err)) ||
	    (rc = coll_verify(w.out, NULL, err)) ||
	    (rc = collectives_check_light(p, w.out, err))) {
		coll_free(w.out);
		goto out;
	}
	snprintf(name, sizeof(name), "WDM ring of %d nodes", g->n);
	coll_set_topo_name(w.out, name);
	*out = w.out;
out:
	arrays_fini(&w.arrays);
	return rc;
}
