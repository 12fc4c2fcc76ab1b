/*
 * Planning a change: the order of moves, temporary rerouting, and what must be
 * interrupted. A table says which lightpath holds each slot now; a lightpath
 * can move when all slots of its new route, and those within the guard
 * channels, are free; its own old slots count as taken. Rounds over all that wait go on while any of
 * them could move; what is left then waits in cycles, and one lightpath a
 * cycle leaves its slots, to a spare route where there is one.
 */
#include <stdlib.h>
#include <string.h>

#include "rwa/reconfigure/private.h"

/* Where a lightpath is: on its old route (or nowhere yet), on a spare one,
 * dark after a CUT, or where the new assignment has it. */
enum place { OLD, REROUTED, INTERRUPTED, DONE };

/* Planning so far. `owner` says which lightpath holds each slot after the
 * steps in out->steps, and changes with each step. `freed` and `tried`
 * spare searches: a lightpath without a spare route gains one only on a
 * channel where something was given back since. */
struct planner {
	const struct rwa_mesh *m;
	const struct rwa_assignment *from, *to;
	const struct rwa_change_options *opt;
	struct rwa_change *out;
	struct u64map owner;	/* slot to lightpath + 1, 0: free */
	struct u64map shut;
	struct mesh_adjacency adj;
	struct arrays arrays;	/* owns those that follow */
	int32_t *link;		/* of an arc */
	int32_t *risk;		/* of a link: stamp when the partner is on it */
	int32_t risk_stamp;
	enum place *at;		/* of each lightpath */
	int32_t *domain;	/* of each lightpath */
	int64_t *cut_step;	/* step of its CUT */
	int64_t *park_first;	/* its spare route, in out->hops */
	int32_t *park_hops;
	/* spare routes: what was freed when, in steps of a clock of their own */
	int64_t clock;
	int64_t *freed;		/* channel: when a slot of it was last freed */
	int64_t *tried;		/* lightpath: when it had no spare route */
	int64_t *cost;
	struct rwa_hop *enter;
	int32_t *queue;
	bool *queued;
};

void rwa_change_fini(struct rwa_change *c)
{
	vec_fini(&c->lightpaths);
	vec_fini(&c->steps);
	vec_fini(&c->hops);
	vec_fini(&c->phases);
	vec_fini(&c->cuts);
}

/* ---- routes ---- */

struct change_route {			/* hops that follow each other */
	const struct rwa_hop *hop;
	int32_t n;
};

/* The hops of a path, borrowed. */
static struct change_route path_of(const struct rwa_assignment *a, int32_t path)
{
	const struct rwa_path *p = &a->paths.v[path];

	return (struct change_route){ a->hops.v + p->first, p->hops };
}

/* None when it is to be dropped. */
static struct change_route new_route(const struct planner *p, int32_t i)
{
	if (p->out->lightpaths.v[i].new_path < 0) {
		return (struct change_route){ NULL, 0 };
	}
	return path_of(p->to, p->out->lightpaths.v[i].new_path);
}

/* The route that a lightpath has not left yet, empty for one that is new or
 * interrupted; borrowed, until out->hops grows. */
static struct change_route present_route(const struct planner *p, int32_t i)
{
	if (p->at[i] == REROUTED) {
		return (struct change_route){ p->out->hops.v + p->park_first[i],
				     p->park_hops[i] };
	}
	if (p->at[i] == OLD && p->out->lightpaths.v[i].old_path >= 0) {
		return path_of(p->from, p->out->lightpaths.v[i].old_path);
	}
	return (struct change_route){ NULL, 0 };
}

/* What is active of a lightpath at this moment. */
static struct change_route active_route(const struct planner *p, int32_t i)
{
	return p->at[i] == DONE ? new_route(p, i) : present_route(p, i);
}

/* First and last channel that a slot's guard channels reach. */
static int32_t guard_first(const struct planner *p, int32_t channel)
{
	int32_t between = p->m->guard.between;

	return channel > between ? channel - between : 0;
}

static int32_t guard_last(const struct planner *p, int32_t channel)
{
	int32_t last = channel + p->m->guard.between;

	return last < p->opt->channels ? last : p->opt->channels - 1;
}

/* Who holds a slot. */
static uint64_t owner_of(const struct planner *p, struct rwa_hop h, int32_t channel)
{
	uint64_t who = 0;

	u64map_get(&p->owner, mesh_slot_key(h.arc, h.fibre, channel), &who);
	return who;
}

/* Neither a slot nor its guard channels are active. */
static bool is_slot_free(const struct planner *p, const struct rwa_hop *h)
{
	for (int32_t c = guard_first(p, h->channel); c <= guard_last(p, h->channel); c++) {
		if (owner_of(p, *h, c)) {
			return false;
		}
	}
	return true;
}

/* A lightpath's route becomes that of `who`; 0: it is given back, which may be
 * news for whoever waits on these channels, and for its partner. */
static int give(struct planner *p, struct change_route route, uint64_t who)
{
	int rc = 0;

	p->clock++;
	for (int32_t k = 0; !rc && k < route.n; k++) {
		const struct rwa_hop *h = &route.hop[k];

		for (int32_t c = guard_first(p, h->channel);
		     !who && c <= guard_last(p, h->channel); c++) {
			p->freed[c] = p->clock;
		}
		rc = u64map_set(&p->owner, mesh_slot_key(h->arc, h->fibre, h->channel), who);
	}
	return rc;
}

/* Frees a lightpath's present route. Its partner may have a spare route
 * now. */
static int give_back(struct planner *p, int32_t i)
{
	int32_t partner = p->out->lightpaths.v[i].partner;

	if (partner >= 0) {
		p->tried[partner] = 0;
	}
	return give(p, present_route(p, i), 0);
}

/* O(a.n * b.n). */
static bool share_link(const struct planner *p, struct change_route a, struct change_route b)
{
	for (int32_t i = 0; i < a.n; i++) {
		for (int32_t k = 0; k < b.n; k++) {
			if (p->link[a.hop[i].arc] == p->link[b.hop[k].arc]) {
				return true;
			}
		}
	}
	return false;
}

/* True when the new route of a lightpath runs where its partner is active. */
static bool meets_partner(const struct planner *p, int32_t i)
{
	int32_t partner = p->out->lightpaths.v[i].partner;

	return partner >= 0 && share_link(p, new_route(p, i), active_route(p, partner));
}

/* May the new route of a lightpath be active now? */
static bool is_free(const struct planner *p, int32_t i)
{
	struct change_route route = new_route(p, i);

	for (int32_t k = 0; k < route.n; k++) {
		if (!is_slot_free(p, &route.hop[k])) {
			return false;
		}
	}
	return !meets_partner(p, i);
}

/* ---- steps ---- */

/* The phase that a step of lightpath i belongs to: the last one, or a new
 * one. */
static int count_in_phase(struct planner *p, int32_t i)
{
	struct rwa_change *c = p->out;
	struct rwa_phase fresh = { p->domain[i], (int64_t)c->steps.n, 1 };

	if (!p->opt->by_domain) {
		return 0;
	}
	if (c->phases.n && c->phases.v[c->phases.n - 1].domain == fresh.domain) {
		c->phases.v[c->phases.n - 1].steps++;
		return 0;
	}
	return vec_push(&c->phases, fresh);
}

/* Appends a step, with a copy of the route's hops. WEFT_ENOMEM. */
static int add_step(struct planner *p, enum rwa_step_kind kind, int32_t i,
		    struct change_route route)
{
	struct rwa_change *c = p->out;
	struct rwa_step step = { kind, i, route.n, (int64_t)c->hops.n };

	if (count_in_phase(p, i) || vec_reserve(&c->hops, (size_t)route.n)) {
		return WEFT_ENOMEM;
	}
	if (route.n) {
		memcpy(c->hops.v + c->hops.n, route.hop, (size_t)route.n * sizeof(*route.hop));
		c->hops.n += (size_t)route.n;
	}
	return vec_push(&c->steps, step);
}

/* Lights the new route, which is free, and gives back the present one. */
static int arrive(struct planner *p, int32_t i)
{
	struct change_route present = present_route(p, i), route = new_route(p, i);
	int rc = give_back(p, i);

	if (!rc) {
		rc = give(p, route, (uint64_t)i + 1);
	}
	if (p->at[i] == INTERRUPTED) {
		struct rwa_cut cut = { i, p->cut_step[i],
				       (int64_t)p->out->steps.n -
					       p->cut_step[i] };

		p->out->longest_cut = cut.steps > p->out->longest_cut
					      ? cut.steps
					      : p->out->longest_cut;
		if (!rc) {
			rc = vec_push(&p->out->cuts, cut);
		}
	}
	if (!rc) {
		rc = add_step(p,
			      !route.n	  ? RWA_STEP_DROP
			      : present.n ? RWA_STEP_MOVE
					  : RWA_STEP_ADD,
			      i, route);
	}
	p->at[i] = DONE;
	return rc;
}

/* True when a lightpath's steps belong to the domain at work. */
static bool is_of(const struct planner *p, int32_t i, int32_t domain)
{
	return !p->opt->by_domain || p->domain[i] == domain;
}

/* Drops and then moves whatever can be within a domain (all, when there are
 * none), until nothing can. */
static int settle_domain(struct planner *p, int32_t domain)
{
	int32_t n = (int32_t)p->out->lightpaths.n;
	bool moved = true;
	int rc = 0;

	for (int32_t i = 0; !rc && i < n; i++) {
		if (p->at[i] != DONE && is_of(p, i, domain) &&
		    p->out->lightpaths.v[i].new_path < 0) {
			rc = arrive(p, i);
		}
	}
	while (!rc && moved) {
		moved = false;
		for (int32_t i = 0; !rc && i < n; i++) {
			if (p->at[i] != DONE && is_of(p, i, domain) && is_free(p, i)) {
				rc = arrive(p, i);
				moved = true;
			}
		}
	}
	return rc;
}

/* The domain in which most can be done, the present one before others; false
 * when nothing can. count: scratch, domains + 1. */
static bool next_domain(const struct planner *p, int64_t *count, int32_t *domain)
{
	size_t n = p->m->domains.n + 1;
	size_t best = 0;

	memset(count, 0, n * sizeof(*count));
	for (int32_t i = 0; i < (int32_t)p->out->lightpaths.n; i++) {
		count[p->domain[i] + 1] += p->at[i] != DONE && is_free(p, i);
	}
	if (p->out->phases.n) {
		*domain = p->out->phases.v[p->out->phases.n - 1].domain;
		if (count[*domain + 1]) {
			return true;
		}
	}
	for (size_t d = 1; d < n; d++) {
		best = count[d] > count[best] ? d : best;
	}
	*domain = (int32_t)best - 1;
	return count[best] > 0;
}

/* Domain after domain until nothing can be dropped or moved. *left: that
 * wait. */
static int settle(struct planner *p, int64_t *left)
{
	int64_t *count = calloc(p->m->domains.n + 1, sizeof(*count));
	int32_t domain;
	int rc = count ? 0 : WEFT_ENOMEM;

	while (!rc && next_domain(p, count, &domain)) {
		rc = settle_domain(p, domain);
	}
	*left = 0;
	for (int32_t i = 0; i < (int32_t)p->out->lightpaths.n; i++) {
		*left += p->at[i] != DONE;
	}
	free(count);
	return rc;
}

/* ---- spare routes ---- */

/* Nothing is active there or in use by others, guard channels included. */
static bool is_open(const struct planner *p, const struct rwa_hop *h)
{
	return is_slot_free(p, h) && !mesh_is_shut_near(p->m, &p->shut, *h);
}

/* Sets h->fibre to the first that is free on the hop's channel; false when
 * none is, or when the partner is active on the link. */
static bool free_fibre(const struct planner *p, struct rwa_hop *h)
{
	if (p->risk[p->link[h->arc]] == p->risk_stamp) {
		return false;
	}
	for (h->fibre = 0; h->fibre < p->m->arcs.v[h->arc].fibres; h->fibre++) {
		if (is_open(p, h)) {
			return true;
		}
	}
	return false;
}

/* Routes of least loss (and then fewest hops) from src over what is free of one
 * channel. */
static void spread(struct planner *p, int32_t src, int32_t channel)
{
	int32_t n = (int32_t)p->m->nodes.n, head = 0, tail = 0;

	for (int32_t v = 0; v < n; v++) {
		p->cost[v] = INT64_MAX;
	}
	p->cost[src] = 0;
	p->queue[tail++] = src;
	while (head != tail) {
		int32_t v = p->queue[head];
		int64_t pass = v == src ? 0 : p->m->nodes.v[v].pass_mdb;

		head = (head + 1) % (n + 1);
		p->queued[v] = false;
		for (int32_t k = p->adj.first[v]; k < p->adj.first[v + 1]; k++) {
			struct rwa_hop h = { p->adj.arc[k], 0, channel };
			int32_t w = p->m->arcs.v[h.arc].dst;
			int64_t cost = p->cost[v] + 1 +
				       ((pass + p->m->arcs.v[h.arc].loss_mdb) << 16);

			if (cost >= p->cost[w] || !free_fibre(p, &h)) {
				continue;
			}
			p->cost[w] = cost;
			p->enter[w] = h;
			if (!p->queued[w]) {
				p->queued[w] = true;
				p->queue[tail] = w;
				tail = (tail + 1) % (n + 1);
			}
		}
	}
}

/* Reads the route that spread() found, from its end, behind out->hops. */
static int take_spare(struct planner *p, int32_t src, int32_t dst, struct change_route *route)
{
	struct rwa_change *c = p->out;
	int32_t n = 0, v;

	for (v = dst; v != src; v = p->m->arcs.v[p->enter[v].arc].src) {
		n++;
	}
	if (vec_reserve(&c->hops, 2 * (size_t)n)) {
		return WEFT_ENOMEM;
	}
	*route = (struct change_route){ c->hops.v + c->hops.n + n, n };
	for (v = dst; v != src; v = p->m->arcs.v[p->enter[v].arc].src) {
		c->hops.v[c->hops.n + (size_t)n + (size_t)--route->n] = p->enter[v];
	}
	route->n = n;
	return 0;
}

/* Links of the partner are none for a spare route. */
static void mark_partner(struct planner *p, int32_t i)
{
	int32_t partner = p->out->lightpaths.v[i].partner;
	struct change_route route = partner < 0 ? (struct change_route){ NULL, 0 }
				     : active_route(p, partner);

	p->risk_stamp++;
	for (int32_t k = 0; k < route.n; k++) {
		p->risk[p->link[route.hop[k].arc]] = p->risk_stamp;
	}
}

/* A spare route between the ends of a lightpath on the lowest channel that
 * has one, behind out->hops; empty without one, which is remembered. */
static int find_spare(struct planner *p, int32_t i, struct change_route *route)
{
	const struct rwa_path *old = &p->from->paths.v[p->out->lightpaths.v[i].old_path];
	const struct rwa_mesh_demand *d = &p->m->demands.v[old->demand];
	int64_t budget = p->m->budget_mdb == RWA_MESH_NO_LIMIT
				 ? INT64_MAX >> 16
				 : p->m->budget_mdb - p->m->add_mdb -
					   p->m->drop_mdb;

	route->n = 0;
	mark_partner(p, i);
	for (int32_t c = p->m->guard.below; c < p->opt->channels - p->m->guard.above; c++) {
		if (p->freed[c] < p->tried[i] ||
		    !mesh_tunes(p->m, d->src, c) ||
		    !mesh_tunes(p->m, d->dst, c)) {
			continue;	/* or nothing new since it had none */
		}
		spread(p, d->src, c);
		if (p->cost[d->dst] < INT64_MAX && p->cost[d->dst] >> 16 <= budget) {
			return take_spare(p, d->src, d->dst, route);
		}
	}
	p->tried[i] = p->clock + 1;
	return 0;
}

/* ---- who is in the way ---- */

struct blocker {
	int32_t lightpath;
	int64_t wanted;		/* slots of it that others wait for */
};

/* By slots wanted, then by number. */
static int by_demand_desc(const void *a, const void *b)
{
	const struct blocker *x = a, *y = b;

	if (x->wanted != y->wanted) {
		return x->wanted > y->wanted ? -1 : 1;
	}
	return x->lightpath < y->lightpath ? -1 : x->lightpath > y->lightpath;
}

/* Counts at whoever is in the way of a lightpath that waits. */
static void count_blockers(const struct planner *p, int32_t i, struct blocker *v)
{
	struct change_route route = new_route(p, i);

	for (int32_t k = 0; k < route.n; k++) {
		int32_t c = guard_first(p, route.hop[k].channel);
		int32_t last = guard_last(p, route.hop[k].channel);

		for (; c <= last; c++) {
			uint64_t who = owner_of(p, route.hop[k], c);

			if (who && who != (uint64_t)i + 1) {
				v[who - 1].wanted++;
			}
		}
	}
	if (meets_partner(p, i)) {
		v[p->out->lightpaths.v[i].partner].wanted++;
	}
}

/* Active lightpaths that wait, those first that most others wait for. v: room
 * for all. Returns how many. */
static int32_t find_blockers(const struct planner *p, struct blocker *v)
{
	int32_t n = (int32_t)p->out->lightpaths.n, count = 0;

	for (int32_t i = 0; i < n; i++) {
		v[i] = (struct blocker){ i, 0 };
	}
	for (int32_t i = 0; i < n; i++) {
		if (p->at[i] != DONE) {
			count_blockers(p, i, v);
		}
	}
	for (int32_t i = 0; i < n; i++) {
		if ((p->at[i] == OLD || p->at[i] == REROUTED) && present_route(p, i).n) {
			v[count++] = v[i];
		}
	}
	qsort(v, (size_t)count, sizeof(*v), by_demand_desc);
	return count;
}

/* Reroutes a lightpath to a spare route, until its new one is free. */
static int park_on(struct planner *p, int32_t i, struct change_route route)
{
	int64_t first = (int64_t)p->out->hops.n;

	p->out->rerouted++;
	if (give_back(p, i) || give(p, route, (uint64_t)i + 1) ||
	    add_step(p, RWA_STEP_REROUTE, i, route)) {
		return WEFT_ENOMEM;
	}
	p->at[i] = REROUTED;
	p->park_first[i] = first;
	p->park_hops[i] = route.n;
	return 0;
}

/* Interrupts a lightpath: its route is free for others until it can be
 * added again. */
static int cut(struct planner *p, int32_t i)
{
	p->cut_step[i] = (int64_t)p->out->steps.n;
	if (give_back(p, i)) {
		return WEFT_ENOMEM;
	}
	p->at[i] = INTERRUPTED;
	return add_step(p, RWA_STEP_CUT, i, (struct change_route){ NULL, 0 });
}

/* Reroutes the lightpath most in the way of the others, of those that were not
 * rerouted before and have a spare route; interrupts the one most in the way
 * when none has. */
static int break_cycle(struct planner *p)
{
	struct blocker *v = calloc(p->out->lightpaths.n + 1, sizeof(*v));
	int32_t n = v ? find_blockers(p, v) : 0;
	int rc = v ? 0 : WEFT_ENOMEM;
	struct change_route route = { NULL, 0 };

	for (int32_t k = 0; !rc && !route.n && k < n; k++) {
		int32_t i = v[k].lightpath;

		if (p->at[i] == OLD) {
			rc = find_spare(p, i, &route);
			if (!rc && route.n) {
				rc = park_on(p, i, route);
			}
		}
	}
	if (!rc && !route.n) {
		rc = cut(p, v[0].lightpath);
	}
	free(v);
	return rc;
}

/* ---- the whole ---- */

static bool has_hop(struct change_route route, const struct rwa_hop *h)
{
	for (int32_t k = 0; k < route.n; k++) {
		if (memcmp(&route.hop[k], h, sizeof(*h)) == 0) {
			return true;
		}
	}
	return false;
}

/* Domain of the first hop that a lightpath takes, or else gives up. */
static int32_t domain_of(const struct planner *p, int32_t i)
{
	struct change_route old = present_route(p, i), new = new_route(p, i);

	for (int32_t k = 0; k < new.n; k++) {
		if (!has_hop(old, &new.hop[k])) {
			return rwa_mesh_domain_of(p->m, new.hop[k].arc);
		}
	}
	for (int32_t k = 0; k < old.n; k++) {
		if (!has_hop(new, &old.hop[k])) {
			return rwa_mesh_domain_of(p->m, old.hop[k].arc);
		}
	}
	return RWA_MESH_NO_DOMAIN;
}

/* Takes the old routes' slots, and counts what is to be done. */
static int begin(struct planner *p)
{
	int rc = 0;

	for (int32_t i = 0; !rc && i < (int32_t)p->out->lightpaths.n; i++) {
		const struct rwa_changed *c = &p->out->lightpaths.v[i];

		p->at[i] = OLD;
		p->domain[i] = domain_of(p, i);
		rc = give(p, present_route(p, i), (uint64_t)i + 1);
		if (c->kept) {
			p->at[i] = DONE;
		}
		p->out->kept += c->kept;
		p->out->added += c->old_path < 0;
		p->out->dropped += c->new_path < 0;
		p->out->moved += c->old_path >= 0 && c->new_path >= 0 && !c->kept;
	}
	return rc;
}

/* Every round of break_cycle() frees the slots of one lightpath. Each is rerouted
 * once and interrupted once at most, so that the rounds end. */
static int order(struct planner *p)
{
	int64_t left = 0;
	int rc = settle(p, &left);

	while (!rc && left) {
		if (!(rc = break_cycle(p))) {
			rc = settle(p, &left);
		}
	}
	return rc;
}

static int planner_init(struct planner *p)
{
	size_t n = p->out->lightpaths.n + 1, v = p->m->nodes.n + 1;

	arrays_add(&p->arrays, p->at, n);
	arrays_add(&p->arrays, p->domain, n);
	arrays_add(&p->arrays, p->cut_step, n);
	arrays_add(&p->arrays, p->park_first, n);
	arrays_add(&p->arrays, p->park_hops, n);
	arrays_add(&p->arrays, p->freed, (size_t)p->opt->channels + 1);
	arrays_add(&p->arrays, p->tried, n);
	arrays_add(&p->arrays, p->cost, v);
	arrays_add(&p->arrays, p->enter, v);
	arrays_add(&p->arrays, p->queue, v + 1);
	arrays_add(&p->arrays, p->queued, v);
	arrays_add(&p->arrays, p->link, p->m->arcs.n + 1);
	arrays_add(&p->arrays, p->risk, p->m->arcs.n + 1);
	if (p->arrays.failed || mesh_links(p->m, p->link) || adjacency_init(&p->adj, p->m, false) ||
	    mesh_shut_init(p->m, &p->shut)) {
		return WEFT_ENOMEM;
	}
	return 0;
}

static void planner_fini(struct planner *p)
{
	u64map_fini(&p->owner);
	u64map_fini(&p->shut);
	adjacency_fini(&p->adj);
	arrays_fini(&p->arrays);
}

int rwa_change_plan(const struct rwa_mesh *m, const struct rwa_assignment *from,
		    const struct rwa_assignment *to, const struct rwa_change_options *opt,
		    struct rwa_change *out, struct err *err)
{
	struct planner p = { .m = m, .from = from, .to = to,
			     .opt = opt, .out = out };
	int rc;

	*out = (struct rwa_change){ 0 };
	if ((rc = rwa_mesh_check(m, from, opt->channels, false, err)) ||
	    (rc = rwa_mesh_check(m, to, opt->channels, false, err))) {
		return rc;
	}
	if (!(rc = change_match(m, from, to, out)) &&
	    !(rc = planner_init(&p)) && !(rc = begin(&p))) {
		rc = order(&p);
	}
	planner_fini(&p);
	if (rc) {
		rwa_change_fini(out);
		return err_nomem(err);
	}
	rc = rwa_change_check(m, from, to, opt, out, err);
	if (rc) {
		rwa_change_fini(out);
		err_wrap(err, "the change fails its check");
	}
	return rc;
}
