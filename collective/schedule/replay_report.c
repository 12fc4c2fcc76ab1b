/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a schedule's replay reports: loads, and lower bounds of them.
 *
 * The loads of all steps are added up as rationals; the bounds are theorems about
 * any schedule of the collective on the digraph, from what nodes must take in and from
 * the hops that shards must make. By symmetry one terminal of an orbit stands
 * for all of them.
 */
#include <stdlib.h>

#include "collective/schedule/cut_bound.h"
#include "collective/schedule/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

void coll_scale(mpq_t q, int64_t num, int64_t den)
{
	mpq_t f;

	mpq_init(f);
	rat_set(f, num, den);
	mpq_mul(q, q, f);
	mpq_clear(f);
}

static bool is_counted(const struct topo *t, const struct topo_arc *arc,
		       const struct coll_hop_class *class)
{
	return arc->cap <= class->cap && arc->src != arc->dst &&
	       (!class->ranks || arc->dst < topo_ranks(t)) &&
	       (!class->switches || (topo_node_kind(t, arc->src) == TOPO_SWITCH &&
				     topo_node_kind(t, arc->dst) == TOPO_SWITCH));
}

void coll_count_arcs(const struct topo *t, int u, const struct coll_hop_class *class, int32_t *dist)
{
	VEC(int32_t) at[2] = { { 0 } };

	for (int v = 0; v < topo_n(t); v++) {
		dist[v] = -1;
	}
	vec_push(&at[0], u);
	for (int d = 0; at[d % 2].n > 0; d++) {
		while (at[d % 2].n > 0) {
			int v = at[d % 2].v[--at[d % 2].n], first = 0;
			int degree = dist[v] < 0 ? topo_out(t, v, &first) : 0;

			dist[v] = dist[v] < 0 ? d : dist[v];
			for (int a = first; degree > 0 && a < first + degree; a++) {
				const struct topo_arc *arc = topo_arc(t, a);

				if (dist[arc->dst] < 0) {
					vec_push(&at[(d + is_counted(t, arc, class)) % 2],
						 arc->dst);
				}
			}
		}
	}
	vec_fini(&at[0]);
	vec_fini(&at[1]);
}

/* Sum of the distances between all pairs of ranks; with demands, times the chunks. class: in arcs
 * of it, NULL: in all. */
static int total_distance(const struct coll_sched *s, const struct coll_hop_class *class,
			  int64_t *sum, struct err *err)
{
	const struct topo *t = coll_physical(s);
	const struct topo_group *g = coll_pair_symmetry(s);
	int32_t *dist = x_alloc((size_t)topo_n(t), sizeof(*dist));

	*sum = 0;
	for (int u = 0; u < s->ranks; u++) {
		if (topo_group_first(g, u) != u) {
			continue;
		}
		if (class) {
			coll_count_arcs(t, u, class, dist);
		} else {
			topo_bfs(t, u, dist);
		}
		for (int v = 0; v < s->ranks; v++) {
			int64_t times = s->demands ? coll_chunks_of(s, u, v) : 1;

			if (dist[v] < 0 && times > 0) {
				free(dist);
				return err_set(err, WEFT_EINFEASIBLE,
					       "rank %d cannot reach rank %d",
					       u, v);
			}
			*sum += times * (int64_t)dist[v] * topo_group_order(g);
		}
	}
	free(dist);
	return 0;
}

/* What all arcs, or where all nodes are ranks all ports, carry in a unit of time.
 * Lit schedules may light other arcs in every step, so only the ports bound them, and nothing where
 * they are embedded. */
static int64_t total_capacity(const struct coll_sched *s)
{
	const struct topo *t = coll_physical(s);
	const struct topo_arc *arcs = topo_arcs(t);
	int64_t ports = (int64_t)s->ports * s->ranks, caps = 0;

	for (int a = 0; a < topo_m(t); a++) {
		caps += arcs[a].src != arcs[a].dst ? arcs[a].cap : 0;
	}
	return s->lights.n == 0 && (caps < ports || s->ranks < topo_n(t)) ? caps : ports;
}

static int64_t class_capacity(const struct topo *t, const struct coll_hop_class *class)
{
	int64_t caps = 0;

	for (int a = 0; a < topo_m(t); a++) {
		caps += is_counted(t, topo_arc(t, a), class) ? topo_arc(t, a)->cap : 0;
	}
	return caps;
}

/* Every hop of every shard takes capacity: hops / capacity shard times. Of all arcs, or (class) of
 * those, which others do not relieve. */
static int raise_by_hops(const struct coll_sched *s, const struct coll_hop_class *class,
			 mpq_t bound, struct err *err)
{
	int64_t hops = 0;
	int64_t cap = class ? class_capacity(coll_physical(s), class) : total_capacity(s);
	mpq_t by_hops;
	int rc = class && cap == 0 ? 0 : total_distance(s, class, &hops, err);

	if (rc || hops == 0) {
		return rc;
	}
	mpq_init(by_hops);
	rat_set(by_hops, hops, cap);
	coll_scale(by_hops, s->ports, s->ranks);
	coll_scale(by_hops, 1, s->demands ? s->chunks : 1);
	if (mpq_cmp(by_hops, bound) > 0) {
		mpq_set(bound, by_hops);
	}
	mpq_clear(by_hops);
	return 0;
}

/* Capacities whose classes are looked at, from the least. */
#define MAX_CLASSES 4

/* By all arcs, by thin ones, and by those between switches: what servers send each other crosses
 * the circuits that join them, however wide they are inside. */
static int distance_bound(const struct coll_sched *s, mpq_t bound, struct err *err)
{
	const struct topo *t = coll_physical(s);
	struct coll_hop_class class = { 0 };
	int rc = s->ranks < 2 || (s->lights.n && s->embedding) ? 0
							       : raise_by_hops(s, NULL, bound, err);

	for (int i = 0; i < MAX_CLASSES && !rc && s->ranks > 1 && s->lights.n == 0; i++) {
		int64_t next = INT64_MAX, most = 0;

		for (int a = 0; a < topo_m(t); a++) {
			int64_t cap = topo_arc(t, a)->cap;

			next = cap > class.cap && cap < next ? cap : next;
			most = cap > most ? cap : most;
		}
		if (next > most) {
			break;
		}
		class.cap = next;
		for (int k = next == most; k < 1 + (topo_holders(t) < topo_n(t)) && !rc; k++) {
			class.switches = k > 0;
			rc = raise_by_hops(s, &class, bound, err);
		}
	}
	return rc;
}

/* The most that a node sends or takes in, in chunks. */
static int64_t max_node_chunks(const struct coll_sched *s)
{
	int64_t most = 0;

	for (int u = 0; u < s->ranks; u++) {
		int64_t out = 0, in = 0;

		for (int v = 0; v < s->ranks; v++) {
			out += coll_chunks_of(s, u, v);
			in += coll_chunks_of(s, v, u);
		}
		most = out > most ? out : most;
		most = in > most ? in : most;
	}
	return most;
}

/* The lower bound of schedule.h for this collective, in M/B. Where cuts ask for too large
 * numbers only what a node takes in counts. */
static int bandwidth_bound(const struct coll_sched *s, mpq_t bound, struct err *err)
{
	int rc = 0;

	coll_node_bound(s->kind, coll_physical(s), bound);
	if (s->demands) {
		rat_set(bound, max_node_chunks(s), (int64_t)s->ranks * s->chunks);
	}
	if (s->kind == COLL_ALLTOALL) {
		return distance_bound(s, bound, err);
	}
	if (s->lights.n == 0) {
		rc = coll_bound(coll_physical(s), coll_symmetry(s), s->kind, s->root, s->ports,
				bound,
				err);
	}
	if (rc == WEFT_ELIMIT) {
		err_clear(err);
		rc = 0;
	}
	return rc;
}

double coll_uneven_loss(const struct coll_sched *s, const struct coll_report *r)
{
	double loss = 0;
	mpq_t even;

	mpq_init(even);
	coll_node_bound(s->kind, coll_physical(s), even);
	if ((s->kind == COLL_ALLGATHER || s->kind == COLL_REDUCE_SCATTER ||
	     s->kind == COLL_ALLREDUCE) && mpq_cmp(r->bandwidth_bound, even) > 0) {
		mpq_div(even, r->bandwidth_bound, even);
		loss = mpq_get_d(even) - 1;
	}
	mpq_clear(even);
	return loss;
}

/* ---- the report ---- */

/* Sums of the steps' largest loads, in chunks, and of the hops. */
static int add_loads(const struct coll_sched *s, mpq_t total, int64_t *hops, struct err *err)
{
	struct coll_loads w;
	mpq_t load;
	int rc = coll_loads_init(&w, s, err);

	mpq_init(load);
	while (!rc && (rc = coll_loads_next(&w, err)) == 0 && w.n_used > 0) {
		rat_set(load, w.top.chunks, w.top.cap);
		mpq_add(total, total, load);
	}
	*hops = w.hops;
	mpq_clear(load);
	coll_loads_fini(&w);
	return rc;
}

int coll_measure(const struct coll_sched *s, struct coll_report *r, struct err *err)
{
	int rc;

	mpq_set_ui(r->shard_times, 0, 1);
	rc = add_loads(s, r->shard_times, &r->chunk_hops, err);
	if (rc) {
		return rc;
	}
	coll_scale(r->shard_times, 1, s->chunks);
	r->nodes = s->ranks;
	r->steps = s->steps;
	r->transfers = (int64_t)s->xfers.n * coll_images(s);
	mpq_set(r->bandwidth_factor, r->shard_times);
	coll_scale(r->bandwidth_factor, s->ports, s->ranks);
	rc = r->has_bound ? 0 : bandwidth_bound(s, r->bandwidth_bound, err);
	if (rc == 0 && mpq_cmp(r->bandwidth_factor, r->bandwidth_bound) < 0) {
		rc = err_set(err, WEFT_EINTERNAL, "T_B below its bound: one of them is wrong");
	}
	r->bandwidth_optimal = !rc && mpq_equal(r->bandwidth_factor, r->bandwidth_bound);
	return rc;
}
