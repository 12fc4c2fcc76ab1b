/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of a schedule in the alpha-beta model, with costs of hops and messages.
 *
 * A step waits for the slowest of its routes. Latency and load are of different
 * kinds, of which the size of the data decides, so of all routes those are kept that no
 * other exceeds in both; few are, and only their times are rationals.
 */
#include <stdlib.h>

#include "collective/schedule/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

/* A route that a step may wait for: none has both more latency and more load. */
struct coll_tip {
	int64_t latency_ns;
	struct coll_load load;
};

struct coll_tips {
	VEC(struct coll_tip) list;
};

static void add_tip(struct coll_tips *t, struct coll_tip tip)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->list.n; i++) {
		const struct coll_tip *o = &t->list.v[i];

		if (o->latency_ns >= tip.latency_ns && !coll_less_load(o->load, tip.load)) {
			return;
		}
	}
	for (size_t i = 0; i < t->list.n; i++) {
		struct coll_tip o = t->list.v[i];

		if (o.latency_ns > tip.latency_ns || coll_less_load(tip.load, o.load)) {
			t->list.v[kept++] = o;
		}
	}
	t->list.n = kept;
	vec_push(&t->list, tip);
}

/* sum += the largest time of the tips, each a latency and chunks of so many
 * ns. Empties t. */
static void add_step(struct coll_tips *t, const mpq_t chunk_ns, mpq_t sum)
{
	mpq_t top, time, latency;

	mpq_inits(top, time, latency, NULL);
	for (size_t i = 0; i < t->list.n; i++) {
		const struct coll_tip *tip = &t->list.v[i];

		rat_set(time, tip->load.chunks, tip->load.cap);
		mpq_mul(time, time, chunk_ns);
		rat_set(latency, tip->latency_ns, 1);
		mpq_add(time, time, latency);
		if (mpq_cmp(time, top) > 0) {
			mpq_set(top, time);
		}
	}
	mpq_add(sum, sum, top);
	mpq_clears(top, time, latency, NULL);
	t->list.n = 0;
}

static int too_long(struct err *err)
{
	return err_set(err, WEFT_ELIMIT, "the time does not fit 64 bits of nanoseconds");
}

/* The latency of a route in the step at hand, and its fullest arc. */
static int add_route(const struct coll_loads *w, const struct coll_cost *c, const int32_t *hops,
		     int n, struct coll_tips *tips, struct err *err)
{
	int first = coll_orbit(w->action, hops[0]);
	__int128 latency = (__int128)c->hop_ns * n + (__int128)c->message_ns * w->messages[first];
	struct coll_tip tip = { 0, { 0, 1 } };

	for (int i = 0; i < n; i++) {
		struct coll_load load = coll_loads_at(w, hops[i]);

		latency += topo_arc(w->physical, hops[i])->latency_ns;
		if (coll_less_load(tip.load, load)) {
			tip.load = load;
		}
	}
	if (latency > INT64_MAX) {
		return too_long(err);
	}
	tip.latency_ns = (int64_t)latency;
	add_tip(tips, tip);
	return 0;
}

/* The routes of the arcs that carry in the step at hand. */
static int add_tips(const struct coll_loads *w, const struct coll_cost *c, struct coll_tips *tips,
		    struct err *err)
{
	const struct coll_sched *s = w->s;
	int rc = 0;

	for (int i = 0; i < w->n_used && !rc; i++) {
		int32_t arc = coll_orbit_first(w->senders, w->used[i]);
		int64_t k = s->embedding ? w->path_of[w->used[i]] : 0;

		if (!s->embedding) {
			rc = add_route(w, c, &arc, 1, tips, err);
			continue;
		}
		for (; k < coll_n_arc_routes(s) && coll_arc_route(s, k).arc == arc && !rc; k++) {
			struct coll_arc_route r = coll_arc_route(s, k);

			rc = add_route(w, c, r.hops, r.n, tips, err);
		}
	}
	return rc;
}

/* What all steps wait for; and each (step_ns not NULL). */
static int step_times(const struct coll_sched *s, const struct coll_cost *c, mpq_t sum,
		      double *step_ns, struct err *err)
{
	struct coll_loads w;
	struct coll_tips tips = { 0 };
	mpq_t chunk_ns, step;
	int rc = coll_loads_init(&w, s, err);

	mpq_inits(chunk_ns, step, NULL);
	rat_set(chunk_ns, c->size_bytes, s->ranks);
	coll_scale(chunk_ns, INT64_C(8000000000), c->link_bps);
	coll_scale(chunk_ns, 1, s->chunks);
	while (!rc && (rc = coll_loads_next(&w, err)) == 0 && w.n_used > 0) {
		rc = add_tips(&w, c, &tips, err);
		mpq_set_si(step, 0, 1);
		add_step(&tips, chunk_ns, step);
		mpq_add(sum, sum, step);
		if (step_ns) {
			step_ns[w.step] += mpq_get_d(step);
		}
	}
	mpq_clears(chunk_ns, step, NULL);
	vec_fini(&tips.list);
	coll_loads_fini(&w);
	return rc;
}

static int64_t min_latency(const struct topo *t)
{
	const struct topo_arc *arcs = topo_arcs(t);
	int64_t least = INT64_MAX;

	for (int a = 0; a < topo_m(t); a++) {
		if (arcs[a].src != arcs[a].dst && arcs[a].latency_ns < least) {
			least = arcs[a].latency_ns;
		}
	}
	return least == INT64_MAX ? 0 : least;
}

/* Capacities of the arcs out of nodes, and from n on of those into them. */
static int64_t *find_ports(const struct topo *t)
{
	int64_t *port = x_new(2 * (size_t)topo_n(t), sizeof(*port));

	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		if (arc->src != arc->dst) {
			port[arc->src] += arc->cap;
			port[topo_n(t) + arc->dst] += arc->cap;
		}
	}
	return port;
}

/* hops: from u to v. */
static void note_far(struct coll_far *far, int u, int hops, int64_t out, int64_t in)
{
	int64_t port = out > in ? out : in;

	if (hops < 0 || hops > far->hops || (hops == far->hops && port < far->port)) {
		*far = (struct coll_far){ .hops = hops, .from = u, .steps = far->steps,
					  .port = port };
	}
}

/* hops -1 when a rank cannot be reached. steps: of messages that end at each rank on their way. */
static int farthest(const struct coll_sched *s, struct coll_far *far, struct err *err)
{
	static const struct coll_hop_class into_ranks = { .cap = INT64_MAX, .ranks = true };
	bool towards = s->kind == COLL_REDUCE || s->kind == COLL_GATHER;
	const struct topo *t = coll_physical(s);
	const struct topo_group *g = coll_pair_symmetry(s);
	int32_t *dist = x_alloc((size_t)topo_n(t), sizeof(*dist));
	int32_t *steps = x_alloc((size_t)topo_n(t), sizeof(*steps));
	int64_t *port = find_ports(t), n = topo_n(t);
	struct topo *back = NULL;
	int rc = 0;

	*far = (struct coll_far){ .from = s->root, .port = INT64_MAX };
	if (towards) {
		rc = topo_transpose(t, &back, NULL, err);
	}
	for (int u = 0; u < s->ranks && !rc && far->hops >= 0; u++) {
		if (coll_has_root(s->kind) ? u != s->root : topo_group_first(g, u) != u) {
			continue;
		}
		topo_bfs(towards ? back : t, u, dist);
		coll_count_arcs(towards ? back : t, u, &into_ranks, steps);
		for (int v = 0; v < s->ranks && far->hops >= 0; v++) {
			if (s->demands && coll_chunks_of(s, u, v) == 0) {
				continue;
			}
			note_far(far, u, dist[v], port[towards ? n + u : u],
				 port[towards ? v : n + v]);
			far->steps = steps[v] > far->steps ? steps[v] : far->steps;
		}
	}
	topo_free(back);
	free(port);
	free(steps);
	free(dist);
	return rc;
}

static int round_up(const mpq_t t, int64_t *ns, struct err *err)
{
	mpz_t whole;
	int rc = 0;

	mpz_init(whole);
	mpz_cdiv_q(whole, mpq_numref(t), mpq_denref(t));
	if (mpz_fits_slong_p(whole)) {
		*ns = mpz_get_si(whole);
	} else {
		rc = too_long(err);
	}
	mpz_clear(whole);
	return rc;
}

/* *ns = ceil(fixed + volume * size * 8 * 10^9 / bps), where volume is in units of
 * the vector. */
static int add_up(const mpq_t fixed, const mpq_t volume, const struct coll_cost *c, int64_t *ns,
		  struct err *err)
{
	mpq_t t;
	int rc;

	mpq_init(t);
	mpq_set(t, volume);
	coll_scale(t, c->size_bytes, 1);
	coll_scale(t, INT64_C(8000000000), c->link_bps);
	mpq_add(t, t, fixed);
	rc = round_up(t, ns, err);
	mpq_clear(t);
	return rc;
}

/* fixed = steps * alpha + hops * (hop + the least latency) + messages. */
static void latency_bound(const struct coll_sched *s, const struct coll_cost *c, int steps,
			  int hops, mpq_t fixed)
{
	mpq_t part;

	mpq_init(part);
	rat_set(fixed, c->alpha_ns, 1);
	rat_set(part, c->message_ns, 1);
	mpq_add(fixed, fixed, part);
	coll_scale(fixed, steps, 1);
	rat_set(part, c->hop_ns, 1);
	coll_scale(part, hops, 1);
	mpq_add(fixed, fixed, part);
	rat_set(part, min_latency(coll_physical(s)), 1);
	coll_scale(part, hops, 1);
	mpq_add(fixed, fixed, part);
	mpq_clear(part);
}

bool coll_may_route(const struct coll_sched *s, const struct coll_cost *c)
{
	return s->embedding || (c->forwards && s->lights.n == 0);
}

/* Over neighbours every hop of the farthest takes a step, and every step at least
 * one hop beside its load. Over routes so many steps may do as lead from rank to rank, or one
 * where ranks pass on messages, and where steps overlap the load of
 * one arc may pass while other arcs take the hops: then it is the hops of the
 * farthest or the load, whichever takes longer, and what few steps cost (coll_steps_bound), as it
 * is over neighbours, too, where a rank's vector goes to all or to one. */
static int min_time(const struct coll_sched *s, const struct coll_report *r,
		      const struct coll_cost *c, int64_t *ns, struct err *err)
{
	mpq_t volume, none, fixed;
	int64_t far_ns = 0, steps_ns = 0;
	bool routed = coll_may_route(s, c), few = routed || c->steps_overlap;
	struct coll_far far;
	int hops, rc = farthest(s, &far, err);

	if (rc) {
		return rc;
	}
	if (far.hops < 0) {
		return err_set(err, WEFT_EINFEASIBLE, "the digraph does not connect all ranks");
	}
	far.steps = !routed ? far.hops : c->forwards || coll_through_ranks(s) ? far.hops > 0
									      : far.steps;
	hops = !few ? far.hops : c->steps_overlap ? far.hops > 0 : far.steps;
	mpq_inits(volume, none, fixed, NULL);
	mpq_set(volume, r->bandwidth_bound);
	coll_scale(volume, 1, s->ports);
	if (few || s->kind == COLL_BROADCAST || s->kind == COLL_REDUCE ||
	    s->kind == COLL_ALLREDUCE) {
		rc = coll_steps_bound(s, &far, min_latency(coll_physical(s)), volume, c, &steps_ns,
				      err);
	}
	if (!rc && few) {
		latency_bound(s, c, far.steps, far.hops, fixed);
		rc = add_up(fixed, none, c, &far_ns, err);
	}
	latency_bound(s, c, hops, hops, fixed);
	if (!rc) {
		rc = add_up(fixed, volume, c, ns, err);
	}
	if (!rc) {
		far_ns = far_ns > steps_ns ? far_ns : steps_ns;
		*ns = *ns > far_ns ? *ns : far_ns;
	}
	mpq_clears(volume, none, fixed, NULL);
	return rc;
}

/* sum += steps * alpha + changes of light * retune. */
static void add_fixed(const struct coll_sched *s, const struct coll_cost *c, mpq_t sum)
{
	struct coll_light_change light = { 0 };
	mpq_t part;

	if (c->retune_ns) {
		coll_light_changes(s, &light);
	}
	mpq_init(part);
	rat_set(part, c->alpha_ns, 1);
	coll_scale(part, s->steps, 1);
	mpq_add(sum, sum, part);
	rat_set(part, c->retune_ns, 1);
	coll_scale(part, light.steps, 1);
	mpq_add(sum, sum, part);
	mpq_clear(part);
}

struct coll_cost coll_cost_of(struct coll_cost given)
{
	given.forwards = given.forwards || given.hop_ns > 0;
	return given;
}

static int check_cost(const struct coll_cost *c, struct err *err)
{
	if (c->alpha_ns < 0 || c->hop_ns < 0 || c->message_ns < 0 || c->retune_ns < 0 ||
	    c->size_bytes < 0 || c->link_bps < 1) {
		return err_set(err, WEFT_EINVAL,
			       "cost needs alpha, hop, message, retune and size >= 0 and a link "
			       "rate of at least 1 bps");
	}
	return 0;
}

int coll_step_times(const struct coll_sched *s, const struct coll_cost *c, double *step_ns,
		    struct err *err)
{
	mpq_t sum;
	int rc = check_cost(c, err);

	if (rc) {
		return rc;
	}
	for (int i = 0; i < s->steps; i++) {
		step_ns[i] = (double)c->alpha_ns;
	}
	mpq_init(sum);
	rc = step_times(s, c, sum, step_ns, err);
	mpq_clear(sum);
	return rc;
}

int coll_time(const struct coll_sched *s, const struct coll_report *r, const struct coll_cost *c,
	      int64_t *time_ns, int64_t *bound_ns, struct err *err)
{
	mpq_t sum;
	int rc = check_cost(c, err);

	if (rc) {
		return rc;
	}
	mpq_init(sum);
	rc = step_times(s, c, sum, NULL, err);
	if (!rc) {
		add_fixed(s, c, sum);
		rc = round_up(sum, time_ns, err);
	}
	mpq_clear(sum);
	if (!rc && bound_ns) {
		rc = min_time(s, r, c, bound_ns, err);
	}
	return rc;
}
