/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spare routes: where a lightpath can be for a while so that others get its
 * slots. One is of least loss (and then fewest hops) over what is free, apart
 * from the lightpath's own new route, because both are active when it leaves.
 *
 * Where nodes do not convert, each channel is searched by itself, the lowest
 * first, and only when something of it was freed since the last time. Where
 * some do, one search goes over all channels: a node that converts, and the
 * ends, have one state for all of them.
 */
#include <stdlib.h>

#include "rwa/reconfigure/private.h"

/* Loss, then hops. */
#define COST_LOSS_SHIFT 16

bool change_spare_converts(const struct rwa_mesh *m, int channels)
{
	bool any = false;

	for (size_t v = 0; v < m->nodes.n; v++) {
		any |= m->nodes.v[v].convert;
	}
	return any && !m->guard.between &&
	       (int64_t)m->nodes.n * channels <= RWA_CHANGE_MAX_STATES;
}

void change_spare_init(struct planner *p)
{
	size_t n;

	p->width = change_spare_converts(p->m, p->opt->channels) ? p->opt->channels : 1;
	n = p->m->nodes.n * (size_t)p->width + 1;
	arrays_add(&p->arrays, p->freed, (size_t)p->opt->channels + 1);
	arrays_add(&p->arrays, p->risk, p->m->arcs.n + 1);
	arrays_add(&p->arrays, p->cost, n);
	arrays_add(&p->arrays, p->enter, n);
	arrays_add(&p->arrays, p->before, n);
	arrays_add(&p->arrays, p->queue, n);
	arrays_add(&p->arrays, p->queued, n);
}

/* What one search is for. */
struct spare_search {
	int32_t lightpath;
	int32_t src, dst;
	int32_t first;		/* of p->width channels */
	bool apart;		/* from all new routes */
};

/* True when a slot is, or is too near to, one of the lightpath's new route. */
static bool meets_goal(const struct planner *p, int32_t i, const struct rwa_hop *h)
{
	const struct rwa_hop *goal = p->out->hops.v + p->goal[i].first;

	for (int32_t k = 0; k < p->goal[i].n; k++) {
		if (goal[k].arc == h->arc && goal[k].fibre == h->fibre &&
		    abs(goal[k].channel - h->channel) <= p->m->guard.between) {
			return true;
		}
	}
	return false;
}

/* Sets h->fibre to the first that is free on the hop's channel; false when
 * none is, or when the partner is active on the link. */
static bool free_fibre(const struct planner *p, const struct spare_search *s, struct rwa_hop *h)
{
	if (p->risk[p->link[h->arc]] == p->risk_stamp) {
		return false;
	}
	for (h->fibre = 0; h->fibre < p->m->arcs.v[h->arc].fibres; h->fibre++) {
		if (change_slot_free(p, h) && !mesh_is_shut_near(p->m, &p->shut, *h) &&
		    !meets_goal(p, s->lightpath, h) &&
		    !(s->apart && u64map_get(&p->goals, mesh_slot_key(h->arc, h->fibre, h->channel),
					     NULL))) {
			return true;
		}
	}
	return false;
}

/* True when the node has one state for all channels. */
static bool is_any_channel(const struct planner *p, const struct spare_search *s, int32_t v)
{
	return v == s->src || v == s->dst || (p->width > 1 && p->m->nodes.v[v].convert);
}

/* Goes over one arc on one channel, when that is better; *entered is the state
 * then. */
static bool relax(struct planner *p, const struct spare_search *s, int32_t state, struct rwa_hop h,
		  int32_t *entered)
{
	const struct rwa_mesh_arc *a = &p->m->arcs.v[h.arc];
	int64_t pass = a->src == s->src ? 0 : p->m->nodes.v[a->src].pass_mdb;
	int64_t cost = p->cost[state] + 1 + ((pass + a->loss_mdb) << COST_LOSS_SHIFT);
	int32_t n = (int32_t)p->m->nodes.n;
	int32_t to = is_any_channel(p, s, a->dst) ? a->dst : (h.channel - s->first) * n + a->dst;

	if ((a->src == s->src && !mesh_tunes(p->m, s->src, h.channel)) ||
	    (a->dst == s->dst && !mesh_tunes(p->m, s->dst, h.channel)) ||
	    cost >= p->cost[to] || !free_fibre(p, s, &h)) {
		return false;
	}
	p->cost[to] = cost;
	p->enter[to] = h;
	p->before[to] = state;
	*entered = to;
	return true;
}

/* Goes over all arcs from a state; those entered are queued up to *tail. */
static void leave(struct planner *p, const struct spare_search *s, int32_t state, int32_t *tail)
{
	int32_t n = (int32_t)p->m->nodes.n, v = state % n, to;
	int32_t top = p->opt->channels - p->m->guard.above;
	bool any = is_any_channel(p, s, v);
	int32_t c = any ? s->first : s->first + state / n;
	int32_t last = any ? s->first + p->width - 1 : c;

	for (c = c > p->m->guard.below ? c : p->m->guard.below; c <= last && c < top; c++) {
		for (int32_t k = p->adj.first[v]; k < p->adj.first[v + 1]; k++) {
			struct rwa_hop h = { p->adj.arc[k], 0, c };

			if (relax(p, s, state, h, &to) && !p->queued[to]) {
				p->queued[to] = true;
				p->queue[*tail] = to;
				*tail = (*tail + 1) % (n * p->width + 1);
			}
		}
	}
}

/* Cheapest routes from s->src, by Bellman-Ford with a queue. */
static void spread(struct planner *p, const struct spare_search *s)
{
	int32_t states = (int32_t)p->m->nodes.n * p->width, head = 0, tail = 0;

	for (int32_t v = 0; v < states; v++) {
		p->cost[v] = INT64_MAX;
	}
	p->cost[s->src] = 0;
	p->queue[tail++] = s->src;
	while (head != tail) {
		int32_t state = p->queue[head];

		head = (head + 1) % (states + 1);
		p->queued[state] = false;
		if (state != s->dst) {
			leave(p, s, state, &tail);
		}
	}
}

/* Reads the route that spread() found, from its end, behind out->hops. */
static void take_spare(struct planner *p, const struct spare_search *s, struct rwa_place *route)
{
	struct rwa_change *c = p->out;
	int32_t at;

	for (at = s->dst; at != s->src; at = p->before[at]) {
		route->n++;
	}
	route->first = (int64_t)c->hops.n;
	vec_reserve(&c->hops, (size_t)route->n);
	c->hops.n += (size_t)route->n;
	for (int32_t k = route->n, v = s->dst; k-- > 0; v = p->before[v]) {
		c->hops.v[route->first + k] = p->enter[v];
	}
}

/* Links of the partner are none for a spare route. */
static void mark_partner(struct planner *p, int32_t i)
{
	int32_t partner = p->out->lightpaths.v[i].partner;
	struct rwa_place at = partner < 0 ? (struct rwa_place){ 0 } : p->now[partner];

	p->risk_stamp++;
	for (int32_t k = 0; k < at.n; k++) {
		p->risk[p->link[p->out->hops.v[at.first + k].arc]] = p->risk_stamp;
	}
}

/* True when something of the channels was freed since lightpath i had no spare
 * route on them. */
static bool has_freed(const struct planner *p, int32_t i, int32_t first)
{
	for (int32_t c = first; c < first + p->width; c++) {
		if (p->freed[c] >= p->tried[i]) {
			return true;
		}
	}
	return false;
}

void change_find_spare(struct planner *p, int32_t i, bool apart, struct rwa_place *route)
{
	const struct rwa_path *old = &p->from->paths.v[p->out->lightpaths.v[i].old_path];
	const struct rwa_mesh_demand *d = &p->m->demands.v[old->demand];
	struct spare_search s = { .lightpath = i, .src = d->src, .dst = d->dst,
				  .apart = apart };
	int64_t budget = p->m->budget_mdb == RWA_MESH_NO_LIMIT
				 ? INT64_MAX >> COST_LOSS_SHIFT
				 : p->m->budget_mdb - p->m->add_mdb - p->m->drop_mdb;

	int32_t from = p->attempt && p->width == 1
			       ? (int32_t)rng_below(&p->rng, (uint64_t)p->opt->channels) : 0;

	*route = (struct rwa_place){ 0 };
	mark_partner(p, i);
	for (int32_t k = 0; k < p->opt->channels; k += p->width) {
		s.first = (k + from) % p->opt->channels;
		if (!has_freed(p, i, s.first)) {
			continue;
		}
		spread(p, &s);
		if (p->cost[s.dst] < INT64_MAX && p->cost[s.dst] >> COST_LOSS_SHIFT <= budget) {
			take_spare(p, &s, route);
			return;
		}
	}
	p->tried[i] = apart ? p->tried[i] : p->clock + 1;
}
