/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Switches that copy or sum (in-network collectives: NVLink SHARP, InfiniBand SHARP): what they
 * save of the loads of a step.
 *
 * Transfers stay from rank to rank. Those of a step that take the same chunks from the same rank
 * need an arc once, as far as their routes are the same and every arc so far leads to a switch
 * that copies; those that add the same chunks to the same rank need an arc once from where their
 * routes are the same up to the end, behind a switch that reduces. The k-th routes of logical
 * arcs carry the same part of a chunk where the weights of all their routes are the same; of
 * others only an arc is compared that is the first, or the last, of all routes. A sum that is
 * forwarded later has to come by itself: then switches sum nothing.
 *
 * A switch of NVLink sums for one rank, or copies what a rank sends; one that also stores, as in
 * the aggregation trees of SHARP, copies the sums that it made: there all ranks can add all that
 * the others have in one step. Of what is reduced copies save the first arc only, and sums the
 * others, so that none is saved twice.
 *
 * Two neighbours in the order of their arcs are compared at a time, so that a tree of switches
 * counts each of its arcs once. Where every arc has its own routes nothing is saved.
 */
#include <stdlib.h>

#include "collective/schedule/private.h"
#include "lib/base/alloc.h"

/* A transfer of the step at hand, by the rank that has its data, or that gets it. */
struct coll_carried {
	const struct coll_xfer *x;
	const struct coll_path *path;	/* the first route of its orbit */
	int32_t end;
	int by;				/* takes that to its own */
};

static bool can(const struct topo *t, int node, unsigned ability)
{
	return topo_node_kind(t, node) == TOPO_SWITCH && (topo_node_flags(t, node) & ability);
}

/* Whether a switch copies what goes on to be summed: one that reduces has to keep its sums. */
static bool copies(const struct topo *t, int node, enum coll_op op)
{
	return can(t, node, TOPO_CAN_COPY) &&
	       (op != COLL_OP_REDUCE || !can(t, node, TOPO_CAN_REDUCE) ||
		can(t, node, TOPO_CAN_STORE));
}

bool coll_switches_can(const struct topo *t, unsigned abilities)
{
	for (int u = topo_ranks(t); u < topo_n(t); u++) {
		if (can(t, u, abilities)) {
			return true;
		}
	}
	return false;
}

static int cmp(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* 0: the same data from, or to, the same rank. */
static int compare_data(const struct coll_carried *a, const struct coll_carried *b)
{
	const struct coll_xfer *x = a->x, *y = b->x;
	int c = cmp(a->end, b->end);

	c = c ? c : cmp(x->op, y->op);
	c = c ? c : cmp(x->origin, y->origin);
	c = c ? c : cmp(x->dest, y->dest);
	c = c ? c : cmp(x->first, y->first);
	return c ? c : cmp(x->last, y->last);
}

static int compare(const void *pa, const void *pb)
{
	const struct coll_carried *a = pa, *b = pb;
	int c = compare_data(a, b);

	return c ? c : cmp(a->x->arc, b->x->arc);
}

/* The routes of the arc of f. */
static int count_routes(const struct coll_loads *w, const struct coll_carried *f)
{
	const struct coll_embedding *e = w->s->embedding;
	int n = 0;

	while (f->path + n < e->paths.v + e->paths.n && f->path[n].arc == f->path->arc) {
		n++;
	}
	return n;
}

/* Where hop j of a route is, from its begin on, or of sums from its end on. */
static int64_t place(const struct coll_path *p, int j, bool sums)
{
	return p->first + (sums ? p->n - 1 - j : j);
}

/* Hop j of the k-th route of a transfer's arc. */
static int hop(const struct coll_loads *w, const struct coll_carried *f, int k, int j, bool sums)
{
	const struct coll_embedding *e = w->s->embedding;
	int arc = e->hops.v[place(&f->path[k], j, sums)];

	return f->by ? topo_action_move(e->action, f->by, arc) : arc;
}

/* Whether both have the same hop j there, which is not the last, and at a switch that helps; then
 * f need not carry it. */
static bool save(struct coll_loads *w, const struct coll_carried *f, const struct coll_carried *g,
		 int k, int j, bool sums)
{
	int n = f->path[k].n < g->path[k].n ? f->path[k].n : g->path[k].n;
	int arc = j < n - 1 ? hop(w, f, k, j, sums) : -1;

	if (arc < 0 || arc != hop(w, g, k, j, sums) ||
	    !(sums ? can(w->physical, w->arcs[arc].src, TOPO_CAN_REDUCE)
		   : copies(w->physical, w->arcs[arc].dst, (enum coll_op)f->x->op))) {
		return false;
	}
	w->saved[place(&f->path[k], j, sums)] += f->x->last - f->x->first + 1;
	return true;
}

/* Whether the k-th routes of both carry the same part, for all k. */
static bool are_alike(const struct coll_carried *f, const struct coll_carried *g, int n, int m)
{
	for (int k = 0; k < n && n == m; k++) {
		if (f->path[k].weight != g->path[k].weight) {
			return false;
		}
	}
	return n == m;
}

/* Whether all n and m routes have the same first hop. */
static bool begin_alike(const struct coll_loads *w, const struct coll_carried *f,
			const struct coll_carried *g, int n, int m, bool sums)
{
	int arc = hop(w, f, 0, 0, sums);

	for (int k = 0; k < n; k++) {
		if (hop(w, f, k, 0, sums) != arc) {
			return false;
		}
	}
	for (int k = 0; k < m; k++) {
		if (hop(w, g, k, 0, sums) != arc) {
			return false;
		}
	}
	return true;
}

/* What the same data of f need not load where that of g goes, too. */
static void save_routes(struct coll_loads *w, const struct coll_carried *f,
			const struct coll_carried *g, bool sums)
{
	int n = count_routes(w, f), m = count_routes(w, g);
	bool alike = are_alike(f, g, n, m);

	for (int k = 0; k < n && (alike || begin_alike(w, f, g, n, m, sums)); k++) {
		bool once = !alike || (!sums && f->x->op == COLL_OP_REDUCE);

		for (int j = 0; save(w, f, alike ? g : f, k, j, sums) && !once; j++) {
		}
	}
}

/* The transfers of the step, each with its route; sums: those that are added only, by where. */
static int list_flows(struct coll_loads *w, int64_t first, bool sums, struct coll_carried *flow)
{
	const struct coll_sched *s = w->s;
	int n = 0;

	for (int64_t i = first; i < (int64_t)w->xfer; i++) {
		const struct coll_xfer *x = &s->xfers.v[i];
		const struct topo_arc *arc = topo_arc(s->topo, x->arc);
		int orbit = coll_orbit(w->senders, x->arc);
		int from = coll_orbit_first(w->senders, orbit);

		if (sums && x->op != COLL_OP_REDUCE) {
			continue;
		}
		flow[n++] = (struct coll_carried){
			x, s->embedding->paths.v + w->path_of[orbit], sums ? arc->dst : arc->src,
			from == x->arc ? 0 : coll_element_to(s, from, x->arc),
		};
	}
	qsort(flow, (size_t)n, sizeof(*flow), compare);
	return n;
}

static void save_all(struct coll_loads *w, int64_t first, bool sums, struct coll_carried *flow)
{
	int n = list_flows(w, first, sums, flow);

	for (int i = 1; i < n; i++) {
		if (compare_data(&flow[i], &flow[i - 1]) == 0) {
			save_routes(w, &flow[i], &flow[i - 1], sums);
		}
	}
}

void coll_save_loads(struct coll_loads *w, int64_t first)
{
	struct coll_carried *flow = x_alloc(w->xfer - (size_t)first + 1, sizeof(*flow));

	save_all(w, first, false, flow);
	if (coll_is_sum(w->s->kind) && !w->s->forwards) {
		save_all(w, first, true, flow);
	}
	free(flow);
}

static bool saves(const struct coll_loads *w)
{
	for (size_t i = 0; w->saved && i < w->s->embedding->hops.n; i++) {
		if (w->saved[i] > 0) {
			return true;
		}
	}
	return false;
}

int coll_refuse_switches(const struct coll_sched *s, const char *output, struct err *err)
{
	struct coll_loads w;
	int rc = coll_loads_init(&w, s, err);

	while (!rc && w.saved && (rc = coll_loads_next(&w, err)) == 0 && w.n_used > 0) {
		if (saves(&w)) {
			rc = err_set(err, WEFT_EUNSUPPORTED, "%s of a schedule in which switches "
				     "copy or sum (step %d): not supported", output, w.step);
		}
	}
	coll_loads_fini(&w);
	return rc;
}
