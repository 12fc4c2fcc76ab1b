/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning a change: the order of moves, temporary rerouting, and what must be
 * interrupted. A table says which lightpath holds each slot now; a lightpath
 * can move when all slots of its new route, and those within the guard
 * channels, are free; its own old slots count as taken. Rounds over all that
 * wait go on while any of them could move; what is left then waits in cycles,
 * and one lightpath a cycle leaves its slots, to a spare route where there is
 * one.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "rwa/reconfigure/private.h"

#define ATTEMPTS 16		/* plans that are made while something is interrupted */
#define ATTEMPTS_FEW 256	/* where few lightpaths move, and more for each */
#define ATTEMPTS_A_MOVE 64
#define FEW 60
#define REROUTES_FEW 8		/* then, of a lightpath */
#define REROUTES_MORE 30	/* and in those for each */
#define ATTEMPTS_LIGHTPATHS 2000	/* of more, only one */

void rwa_change_fini(struct rwa_change *c)
{
	vec_fini(&c->lightpaths);
	vec_fini(&c->steps);
	vec_fini(&c->hops);
	vec_fini(&c->phases);
	vec_fini(&c->cuts);
}

/* ---- slots ---- */

/* Hop k of a place. */
static const struct rwa_hop *hop_of(const struct planner *p, struct rwa_place at, int32_t k)
{
	return &p->out->hops.v[at.first + k];
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
static uint64_t owner_of(const struct planner *p, const struct rwa_hop *h, int32_t channel)
{
	uint64_t who = 0;

	u64map_get(&p->owner, mesh_slot_key(h->arc, h->fibre, channel), &who);
	return who;
}

bool change_slot_free(const struct planner *p, const struct rwa_hop *h)
{
	for (int32_t c = guard_first(p, h->channel); c <= guard_last(p, h->channel); c++) {
		if (owner_of(p, h, c)) {
			return false;
		}
	}
	return true;
}

/* A place becomes that of `who`; 0: it is given back, which may be news for
 * whoever waits on these channels. */
static void give(struct planner *p, struct rwa_place at, uint64_t who)
{
	p->clock++;
	for (int32_t k = 0; k < at.n; k++) {
		const struct rwa_hop *h = hop_of(p, at, k);

		for (int32_t c = guard_first(p, h->channel);
		     !who && c <= guard_last(p, h->channel); c++) {
			p->freed[c] = p->clock;
		}
		u64map_set(&p->owner, mesh_slot_key(h->arc, h->fibre, h->channel), who);
	}
}

/* O(a.n * b.n). */
static bool share_link(const struct planner *p, struct rwa_place a, struct rwa_place b)
{
	for (int32_t i = 0; i < a.n; i++) {
		for (int32_t k = 0; k < b.n; k++) {
			if (p->link[hop_of(p, a, i)->arc] == p->link[hop_of(p, b, k)->arc]) {
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

	return partner >= 0 && share_link(p, p->goal[i], p->now[partner]);
}

/* The demand that a lightpath serves. */
static const struct rwa_mesh_demand *demand_of(const struct planner *p, int32_t i)
{
	const struct rwa_changed *c = &p->out->lightpaths.v[i];

	return &p->m->demands.v[c->old_path < 0 ? p->to->paths.v[c->new_path].demand
						: p->from->paths.v[c->old_path].demand];
}

/* True when a new lightpath would be one too many at one of its ends. */
static bool is_over_limit(const struct planner *p, int32_t i)
{
	const struct rwa_mesh_demand *d = demand_of(p, i);
	int32_t add = p->m->nodes.v[d->src].add_limit, drop = p->m->nodes.v[d->dst].drop_limit;

	return p->out->lightpaths.v[i].old_path < 0 &&
	       ((add != RWA_MESH_NO_LIMIT && p->adds[d->src] >= add) ||
		(drop != RWA_MESH_NO_LIMIT && p->drops[d->dst] >= drop));
}

/* May the new route of a lightpath be active now? */
static bool is_free(const struct planner *p, int32_t i)
{
	for (int32_t k = 0; k < p->goal[i].n; k++) {
		if (!change_slot_free(p, hop_of(p, p->goal[i], k))) {
			return false;
		}
	}
	return !meets_partner(p, i) && !is_over_limit(p, i);
}

/* ---- steps ---- */

/* The phase that a step of lightpath i belongs to: the last one, or a new
 * one. */
static void count_in_phase(struct planner *p, int32_t i)
{
	struct rwa_change *c = p->out;
	struct rwa_phase fresh = { p->domain[i], (int64_t)c->steps.n, 1 };

	if (!p->opt->by_domain) {
		return;
	}
	if (c->phases.n && c->phases.v[c->phases.n - 1].domain == fresh.domain) {
		c->phases.v[c->phases.n - 1].steps++;
		return;
	}
	vec_push(&c->phases, fresh);
}

/* A step that takes lightpath i from where it is to a place that is free. Its
 * partner may have a spare route then. */
static void add_step(struct planner *p, enum rwa_step_kind kind, int32_t i, struct rwa_place to)
{
	struct rwa_step step = { kind, i, p->now[i], to };
	int32_t partner = p->out->lightpaths.v[i].partner;

	count_in_phase(p, i);
	vec_push(&p->out->steps, step);
	give(p, p->now[i], 0);
	give(p, to, (uint64_t)i + 1);
	p->now[i] = to;
	if (partner >= 0) {
		p->tried[partner] = 0;
	}
}

/* Counts a lightpath that begins (1) or is dropped (-1). */
static void count_ends(struct planner *p, int32_t i, int32_t n)
{
	p->adds[demand_of(p, i)->src] += n;
	p->drops[demand_of(p, i)->dst] += n;
}

/* The interruption of lightpath i ends with the next step. */
static void end_cut(struct planner *p, int32_t i)
{
	struct rwa_change *c = p->out;
	struct rwa_cut cut = { i, p->cut_step[i], (int64_t)c->steps.n - p->cut_step[i] };

	if (p->cut_step[i] < 0) {
		return;
	}
	c->longest_cut = cut.steps > c->longest_cut ? cut.steps : c->longest_cut;
	vec_push(&c->cuts, cut);
}

/* Lights the new route, which is free, and gives back the present one. */
static void arrive(struct planner *p, int32_t i)
{
	const struct rwa_changed *c = &p->out->lightpaths.v[i];
	enum rwa_step_kind kind = c->new_path < 0 ? RWA_STEP_DROP
				  : p->now[i].n	  ? RWA_STEP_MOVE
						  : RWA_STEP_ADD;

	if (c->old_path < 0 || c->new_path < 0) {
		count_ends(p, i, c->old_path < 0 ? 1 : -1);
	}
	p->done[i] = true;
	end_cut(p, i);
	add_step(p, kind, i, p->goal[i]);
}

/* True when a lightpath waits and its steps belong to the domain at work. */
static bool waits_in(const struct planner *p, int32_t i, int32_t domain)
{
	return !p->done[i] && (!p->opt->by_domain || p->domain[i] == domain);
}

/* True when a lightpath is to be moved or dropped, or lit again. New ones only take
 * what could be a spare route, and no one waits for them. */
static bool was_there(const struct planner *p, int32_t i)
{
	return !p->done[i] && p->out->lightpaths.v[i].old_path >= 0;
}

/* May it move as soon as it can? By domain, everything does. */
static bool is_due(const struct planner *p, int32_t i)
{
	const struct rwa_changed *c = &p->out->lightpaths.v[i];

	return p->opt->by_domain || c->new_path < 0 ||
	       (was_there(p, i) && (p->hurry || !p->late[i]));
}

/* Drops and then moves whatever can be within a domain (all, when there are
 * none), until nothing can. */
static void settle_domain(struct planner *p, int32_t domain)
{
	int32_t n = (int32_t)p->out->lightpaths.n;
	bool moved = true;

	for (int32_t i = 0; i < n; i++) {
		if (waits_in(p, i, domain) && p->out->lightpaths.v[i].new_path < 0) {
			arrive(p, i);
		}
	}
	while (moved) {
		moved = false;
		for (int32_t i = 0; i < n; i++) {
			if (waits_in(p, i, domain) && is_due(p, i) && is_free(p, i)) {
				arrive(p, i);
				moved = true;
			}
		}
	}
}

/* Lights what is new, when all else is done. */
static void add_new(struct planner *p)
{
	for (int32_t i = 0; i < (int32_t)p->out->lightpaths.n; i++) {
		if (!p->done[i]) {
			arrive(p, i);
		}
	}
}

/* The domain in which most can be done, the present one before others; false
 * when nothing can. count: scratch, domains + 1. */
static bool next_domain(const struct planner *p, int64_t *count, int32_t *domain)
{
	size_t n = p->m->domains.n + 1;
	size_t best = 0;

	memset(count, 0, n * sizeof(*count));
	for (int32_t i = 0; i < (int32_t)p->out->lightpaths.n; i++) {
		count[p->domain[i] + 1] += !p->done[i] && is_due(p, i) && is_free(p, i);
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
static void settle(struct planner *p, int64_t *left)
{
	int64_t *count = x_new(p->m->domains.n + 1, sizeof(*count));
	int32_t domain;

	while (next_domain(p, count, &domain)) {
		settle_domain(p, domain);
	}
	*left = 0;
	for (int32_t i = 0; i < (int32_t)p->out->lightpaths.n; i++) {
		*left += p->opt->by_domain ? !p->done[i] : was_there(p, i);
	}
	free(count);
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
	for (int32_t k = 0; k < p->goal[i].n; k++) {
		const struct rwa_hop *h = hop_of(p, p->goal[i], k);

		for (int32_t c = guard_first(p, h->channel); c <= guard_last(p, h->channel); c++) {
			uint64_t who = owner_of(p, h, c);

			if (who && who != (uint64_t)i + 1) {
				v[who - 1].wanted++;
			}
		}
	}
	if (meets_partner(p, i)) {
		v[p->out->lightpaths.v[i].partner].wanted++;
	}
}

/* One that is where it is to be may give way for a while, in some attempts: who is in the way of
 * others, or now and then anyone, as it may be in the way of a spare route. */
static bool may_leave(struct planner *p, int32_t i, int64_t wanted)
{
	return p->out->lightpaths.v[i].old_path >= 0 && !p->opt->by_domain &&
	       p->attempt > ATTEMPTS && p->attempt % 2 && (wanted || rng_below(&p->rng, 8) == 0);
}

/* Active lightpaths that wait, or may give way, those first that most others wait for. v: room
 * for all. Returns how many. */
static int32_t find_blockers(struct planner *p, struct blocker *v)
{
	int32_t n = (int32_t)p->out->lightpaths.n, count = 0;

	for (int32_t i = 0; i < n; i++) {
		v[i] = (struct blocker){ i, 0 };
	}
	for (int32_t i = 0; i < n; i++) {
		if (!p->done[i]) {
			count_blockers(p, i, v);
		}
	}
	for (int32_t i = 0; i < n; i++) {
		if (p->now[i].n && (!p->done[i] || may_leave(p, i, v[i].wanted))) {
			v[count++] = v[i];
		}
	}
	qsort(v, (size_t)count, sizeof(*v), by_demand_desc);
	return count;
}

/* Reroutes the lightpath most in the way of the others, of those that were not
 * rerouted before and have a spare route; when none has, those that are late may
 * move, and when that was so, the one most in the way is interrupted. */
static void break_cycle(struct planner *p)
{
	struct blocker *v = x_new(p->out->lightpaths.n + 1, sizeof(*v));
	int32_t n = find_blockers(p, v), i = 0;
	int32_t first = p->attempt ? (int32_t)rng_below(&p->rng, (uint64_t)n) : 0;
	struct rwa_place route = { 0 };
	uint8_t most = p->attempt >= ATTEMPTS_FEW ? REROUTES_MORE
		       : p->attempt > ATTEMPTS ? REROUTES_FEW : 1;

	/* Better where no one else will be. */
	for (int32_t k = 0; !route.n && k < 2 * n; k++) {
		i = v[(first + k) % n].lightpath;
		if (p->rerouted[i] < most) {
			change_find_spare(p, i, p->attempt % 2 == 0 && k < n, &route);
		}
	}
	if (!route.n && !p->hurry) {
		p->hurry = true;	/* those that are late first */
	} else if (route.n) {
		p->hurry = p->attempt == 0;
		p->rerouted[i]++;
		p->late[i] |= p->done[i];
		p->done[i] = false;
		p->out->rerouted++;
		add_step(p, RWA_STEP_REROUTE, i, route);
	} else {
		while (p->done[v[first].lightpath]) {
			first = (first + 1) % n;
		}
		i = v[first].lightpath;
		p->cut_step[i] = (int64_t)p->out->steps.n;
		add_step(p, RWA_STEP_CUT, i, route);
	}
	free(v);
}

/* ---- the whole ---- */

/* Domain of the first hop of a that b does not have, if any. */
static bool first_change(const struct planner *p, struct rwa_place a, struct rwa_place b,
			 int32_t *domain)
{
	for (int32_t k = 0; k < a.n; k++) {
		const struct rwa_hop *h = hop_of(p, a, k);
		bool found = false;

		for (int32_t l = 0; l < b.n; l++) {
			found |= memcmp(h, hop_of(p, b, l), sizeof(*h)) == 0;
		}
		if (!found) {
			*domain = rwa_mesh_domain_of(p->m, h->arc);
			return true;
		}
	}
	return false;
}

/* Appends the hops of an assignment. */
static void add_hops(struct rwa_change *c, const struct rwa_assignment *a)
{
	vec_reserve(&c->hops, a->hops.n);
	if (a->hops.n) {
		memcpy(c->hops.v + c->hops.n, a->hops.v, a->hops.n * sizeof(*a->hops.v));
	}
	c->hops.n += a->hops.n;
}

/* Takes the old routes' slots, and counts what is to be done. The domain is that
 * of the first hop that a lightpath takes, or else gives up. */
static void begin(struct planner *p)
{
	struct rwa_change *out = p->out;

	add_hops(out, p->from);
	add_hops(out, p->to);
	for (int32_t i = 0; i < (int32_t)out->lightpaths.n; i++) {
		const struct rwa_changed *c = &out->lightpaths.v[i];

		if (c->old_path >= 0) {
			const struct rwa_path *old = &p->from->paths.v[c->old_path];

			p->now[i] = (struct rwa_place){ old->first, old->hops };
			count_ends(p, i, 1);
		}
		if (c->new_path >= 0) {
			const struct rwa_path *new = &p->to->paths.v[c->new_path];

			p->goal[i] = (struct rwa_place){ (int64_t)p->from->hops.n + new->first,
							 new->hops };
		}
		p->cut_step[i] = -1;
		p->domain[i] = RWA_MESH_NO_DOMAIN;
		(void)(first_change(p, p->goal[i], p->now[i], &p->domain[i]) ||
		       first_change(p, p->now[i], p->goal[i], &p->domain[i]));
		give(p, p->now[i], (uint64_t)i + 1);
		for (int32_t k = 0; k < p->goal[i].n; k++) {
			const struct rwa_hop *h = hop_of(p, p->goal[i], k);

			u64map_set(&p->goals, mesh_slot_key(h->arc, h->fibre, h->channel), 1);
		}
		p->done[i] = c->kept;
		out->kept += c->kept;
		out->added += c->old_path < 0;
		out->dropped += c->new_path < 0;
		out->moved += c->old_path >= 0 && c->new_path >= 0 && !c->kept;
	}
}

/* Every round of break_cycle() frees the slots of one lightpath. Each is
 * rerouted a few times and interrupted once at most, so that the rounds end. */
static void order(struct planner *p)
{
	int64_t left = 0;

	settle(p, &left);
	while (left) {
		break_cycle(p);
		settle(p, &left);
	}
	add_new(p);
}

static void planner_init(struct planner *p)
{
	size_t n = p->out->lightpaths.n + 1;

	arrays_add(&p->arrays, p->link, p->m->arcs.n + 1);
	arrays_add(&p->arrays, p->adds, p->m->nodes.n);
	arrays_add(&p->arrays, p->drops, p->m->nodes.n);
	arrays_add(&p->arrays, p->now, n);
	arrays_add(&p->arrays, p->goal, n);
	arrays_add(&p->arrays, p->done, n);
	arrays_add(&p->arrays, p->rerouted, n);
	arrays_add(&p->arrays, p->cut_step, n);
	arrays_add(&p->arrays, p->domain, n);
	arrays_add(&p->arrays, p->tried, n);
	arrays_add(&p->arrays, p->late, n);
	change_spare_init(p);
	for (size_t i = 0; p->attempt && i < n; i++) {
		p->late[i] = rng_below(&p->rng, 2);
	}
	mesh_links(p->m, p->link);
	adjacency_init(&p->adj, p->m, false);
	mesh_shut_init(p->m, &p->shut);
}

static void planner_fini(struct planner *p)
{
	u64map_fini(&p->owner);
	u64map_fini(&p->shut);
	u64map_fini(&p->goals);
	adjacency_fini(&p->adj);
	arrays_fini(&p->arrays);
}

/* One plan. With another attempt another lightpath leaves first where some wait for
 * each other, and some do not move as soon as they can: what they would take may be
 * the spare route of another. */
static void plan_once(const struct rwa_mesh *m, const struct rwa_assignment *from,
		      const struct rwa_assignment *to, const struct rwa_change_options *opt,
		      uint64_t attempt, struct rwa_change *out)
{
	struct planner p = { .m = m, .from = from, .to = to, .opt = opt, .out = out,
			     .attempt = attempt };

	rwa_mesh_match(m, from, to, &out->lightpaths);
	p.hurry = attempt == 0;
	rng_seed(&p.rng, attempt);
	planner_init(&p);
	begin(&p);
	order(&p);
	planner_fini(&p);
}

/* Fewer interruptions, or as many with fewer temporary routes. */
static bool is_better(const struct rwa_change *a, const struct rwa_change *b)
{
	return a->cuts.n != b->cuts.n ? a->cuts.n < b->cuts.n : a->rerouted < b->rerouted;
}

/* The best of a few plans, while something is interrupted and it is not too
 * large. */
static void plan_best(const struct rwa_mesh *m, const struct rwa_assignment *from,
		      const struct rwa_assignment *to, const struct rwa_change_options *opt,
		      struct rwa_change *out)
{
	bool found = false;
	uint64_t most;

	plan_once(m, from, to, opt, 0, out);
	most = !out->cuts.n || out->lightpaths.n > ATTEMPTS_LIGHTPATHS ? 1
	     : out->moved > FEW ? ATTEMPTS
	     : ATTEMPTS_FEW + ATTEMPTS_A_MOVE * (uint64_t)out->moved;
	for (uint64_t k = 1; k < most; k++) {
		struct rwa_change other = { 0 }, worse = *out;

		plan_once(m, from, to, opt, k, &other);
		if (is_better(&other, out)) {
			*out = other;
			other = worse;
		}
		rwa_change_fini(&other);
		if (!out->cuts.n && !found) {
			/* The next ones may need fewer temporary routes. */
			found = true;
			most = most < k + 4 * ATTEMPTS ? most : k + 4 * ATTEMPTS;
		}
	}
}

int rwa_change_plan(const struct rwa_mesh *m, const struct rwa_assignment *from,
		    const struct rwa_assignment *to, const struct rwa_change_options *opt,
		    struct rwa_change *out, struct err *err)
{
	int rc;

	*out = (struct rwa_change){ 0 };
	if ((rc = rwa_mesh_check(m, from, opt->channels, false, err)) ||
	    (rc = rwa_mesh_check(m, to, opt->channels, false, err))) {
		return rc;
	}
	plan_best(m, from, to, opt, out);
	rc = rwa_change_check(m, from, to, opt, out, err);
	if (rc) {
		rwa_change_fini(out);
		err_wrap(err, "the change fails its check");
	}
	return rc;
}
