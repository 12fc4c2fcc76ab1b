/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaying a change step by step on a table of its own; nothing here knows
 * how the order was found.
 *
 * Each step is checked against all rules at its moment. Whether an
 * interruption was needed is checked by looking for what the plan would have
 * had to miss: a lightpath that could move, or a spare route, by plain
 * relaxation over all arcs.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "rwa/reconfigure/private.h"

/* What is active after the steps so far. route[i][0 .. hops[i] - 1] are the
 * hops of lightpath i, borrowed from `from` or the change; hops[i] is 0
 * while it is dark. */
struct change_replay {
	const struct rwa_mesh *m;
	const struct rwa_assignment *from, *to;
	const struct rwa_change *c;
	int channels;
	bool by_domain;
	size_t phase;		/* of the present step */
	size_t cut;		/* of c->cuts, ended so far */
	struct u64map active;	/* slot to lightpath + 1, 0: dark */
	struct u64map shut;
	struct arrays arrays;	/* owns those that follow */
	const struct rwa_hop **route;	/* of each lightpath now */
	int32_t *hops;			/* 0: dark */
	bool *rerouted;
	int64_t *dark_at;		/* step of its CUT, + 1 */
	int32_t *adds, *drops;	/* lightpaths that begin and end at a node */
	int32_t width;		/* channels that a spare route may have */
	int64_t *loss;		/* of the nearest route to (node, channel) */
	int64_t *best;		/* to a node on any channel */
	/* A lightpath without a spare route gains one only on a channel of
	 * which a slot went dark since. */
	int64_t clock;
	int64_t *released;	/* channel: when last */
	int64_t *hopeless;	/* lightpath: since when */
};

/* True when a slot or one of its guard channels is active. */
static bool is_active(const struct change_replay *r, const struct rwa_hop *h)
{
	int32_t between = r->m->guard.between;
	uint64_t who = 0;

	for (int32_t k = -between; !who && k <= between; k++) {
		if (h->channel + k >= 0) {
			u64map_get(&r->active, mesh_slot_key(h->arc, h->fibre, h->channel + k),
				   &who);
		}
	}
	return who != 0;
}

/* May a lightpath begin (or end) at a node on this channel? */
static bool may_end(const struct change_replay *r, int32_t node, int32_t channel)
{
	return channel >= r->m->guard.below &&
	       channel < r->channels - r->m->guard.above &&
	       mesh_tunes(r->m, node, channel);
}

/* True when the partner of lightpath i is active on the arc's link. */
static bool is_partners(const struct change_replay *r, int32_t i, int32_t arc)
{
	int32_t p = r->c->lightpaths.v[i].partner;

	for (int32_t k = 0; p >= 0 && k < r->hops[p]; k++) {
		if (mesh_same_link(r->m, arc, r->route[p][k].arc)) {
			return true;
		}
	}
	return false;
}

/* WEFT_EVERIFY with the step and its lightpath. */
static int fault(const struct change_replay *r, int64_t step, const char *what, struct err *err)
{
	return err_set(err, WEFT_EVERIFY, "step %lld, lightpath %d: %s",
		       (long long)step,
		       step < (int64_t)r->c->steps.n
			       ? r->c->steps.v[step].lightpath : -1, what);
}

/* Source and destination that a lightpath serves. */
static const struct rwa_mesh_demand *ends(const struct change_replay *r, int32_t i)
{
	const struct rwa_changed *c = &r->c->lightpaths.v[i];
	int32_t d = c->old_path >= 0 ? r->from->paths.v[c->old_path].demand
				     : r->to->paths.v[c->new_path].demand;

	return &r->m->demands.v[d];
}

/* Counts a lightpath that begins (1) or is dropped (-1). */
static void count_ends(struct change_replay *r, int32_t i, int32_t n)
{
	r->adds[ends(r, i)->src] += n;
	r->drops[ends(r, i)->dst] += n;
}

/* True when hops form a route that lightpath i may have: connected from its
 * source to its destination, open to use, on one channel between
 * converters, within the budget, and on no link of its partner. */
static bool joins(const struct change_replay *r, int32_t i, const struct rwa_hop *hop, int32_t n)
{
	int32_t at = ends(r, i)->src;

	for (int32_t k = 0; k < n; k++) {
		if (hop[k].arc < 0 || (size_t)hop[k].arc >= r->m->arcs.n ||
		    r->m->arcs.v[hop[k].arc].src != at || hop[k].fibre < 0 ||
		    hop[k].fibre >= r->m->arcs.v[hop[k].arc].fibres ||
		    hop[k].channel < r->m->guard.below ||
		    hop[k].channel >= r->channels - r->m->guard.above ||
		    mesh_is_shut_near(r->m, &r->shut, hop[k]) ||
		    is_partners(r, i, hop[k].arc)) {
			return false;
		}
		if (k && hop[k].channel != hop[k - 1].channel && !r->m->nodes.v[at].convert) {
			return false;
		}
		at = r->m->arcs.v[hop[k].arc].dst;
	}
	return n > 0 && at == ends(r, i)->dst &&
	       may_end(r, ends(r, i)->src, hop[0].channel) &&
	       may_end(r, at, hop[n - 1].channel) &&
	       (r->m->budget_mdb == RWA_MESH_NO_LIMIT ||
		rwa_mesh_loss_mdb(r->m, hop, n) <= r->m->budget_mdb);
}

/* A slot goes dark: that is news for all channels it kept dark. */
static void release_slot(struct change_replay *r, const struct rwa_hop *h)
{
	int32_t c = h->channel - r->m->guard.between;
	int32_t last = h->channel + r->m->guard.between;

	for (; c <= last; c++) {
		if (c >= 0 && c < r->channels) {
			r->released[c] = r->clock;
		}
	}
	u64map_set(&r->active, mesh_slot_key(h->arc, h->fibre, h->channel), 0);
}

/* Gives back whatever is active of a lightpath. */
static void release_route(struct change_replay *r, int32_t i)
{
	int32_t partner = r->c->lightpaths.v[i].partner;

	r->clock++;
	for (int32_t k = 0; k < r->hops[i]; k++) {
		release_slot(r, &r->route[i][k]);
	}
	if (partner >= 0) {
		r->hopeless[partner] = 0;
	}
	r->hops[i] = 0;
}

/* Lights hops that are dark with all their guard channels; *taken when one is
 * not. */
static void activate_route(struct change_replay *r, const struct rwa_hop *hop, int32_t n,
			   uint64_t who, bool *taken)
{
	*taken = false;
	for (int32_t k = 0; !*taken && k < n; k++) {
		*taken = is_active(r, &hop[k]);
		u64map_set(&r->active,
			   mesh_slot_key(hop[k].arc, hop[k].fibre, hop[k].channel), who);
	}
}

/* ---- was a cut needed? ---- */

/* True when a slot is too near to the new route of lightpath i. */
static bool is_near_goal(const struct change_replay *r, int32_t i, const struct rwa_hop *h)
{
	int32_t new = r->c->lightpaths.v[i].new_path;
	const struct rwa_path *p = &r->to->paths.v[new];

	for (int32_t k = 0; k < p->hops; k++) {
		const struct rwa_hop *g = &r->to->hops.v[p->first + k];

		if (g->arc == h->arc && g->fibre == h->fibre &&
		    abs(g->channel - h->channel) <= r->m->guard.between) {
			return true;
		}
	}
	return false;
}

/* True when any fibre of an arc is free for lightpath i on the channel. */
static bool fits_fibre(const struct change_replay *r, int32_t i, int32_t arc, int32_t channel)
{
	struct rwa_hop h = { arc, 0, channel };

	for (; h.fibre < r->m->arcs.v[arc].fibres; h.fibre++) {
		if (!is_active(r, &h) && !mesh_is_shut_near(r->m, &r->shut, h) &&
		    !is_near_goal(r, i, &h)) {
			return true;
		}
	}
	return false;
}

/* Lowers the loss at an arc's end on one channel of those from `first` on; true
 * when it did. */
static bool lower(struct change_replay *r, int32_t i, int32_t arc, int32_t first, int32_t channel)
{
	const struct rwa_mesh_arc *a = &r->m->arcs.v[arc];
	bool begins = a->src == ends(r, i)->src, leads = a->dst == ends(r, i)->dst;
	int64_t *to = &r->loss[(int64_t)a->dst * r->width + channel - first];
	int64_t loss = begins				? 0
		       : r->m->nodes.v[a->src].convert	? r->best[a->src]
			       : r->loss[(int64_t)a->src * r->width + channel - first];

	if (loss == INT64_MAX || (begins && !may_end(r, a->src, channel)) ||
	    (leads && !may_end(r, a->dst, channel)) || channel < r->m->guard.below ||
	    channel >= r->channels - r->m->guard.above) {
		return false;
	}
	loss += a->loss_mdb + (begins ? 0 : r->m->nodes.v[a->src].pass_mdb);
	if (loss >= *to || is_partners(r, i, arc) || !fits_fibre(r, i, arc, channel)) {
		return false;
	}
	*to = loss;
	r->best[a->dst] = loss < r->best[a->dst] ? loss : r->best[a->dst];
	return true;
}

/* Least loss to the end of lightpath i over what is free of r->width channels,
 * its partner's links and its own new route left out: plain rounds over all
 * arcs until nothing changes. */
static bool spare_on(struct change_replay *r, int32_t i, int32_t first)
{
	int64_t budget = r->m->budget_mdb == RWA_MESH_NO_LIMIT
				 ? INT64_MAX - 1
				 : r->m->budget_mdb - r->m->add_mdb - r->m->drop_mdb;
	bool changed = true;

	for (int64_t k = 0; k < (int64_t)r->m->nodes.n * r->width; k++) {
		r->loss[k] = r->best[k / r->width] = INT64_MAX;
	}
	while (changed) {
		changed = false;
		for (int32_t e = 0; e < (int32_t)r->m->arcs.n; e++) {
			for (int32_t c = first; c < first + r->width; c++) {
				changed |= lower(r, i, e, first, c);
			}
		}
	}
	return r->best[ends(r, i)->dst] <= budget;
}

/* True when a search for a spare route found none before, and no slot of the
 * channels went dark since. */
static bool is_hopeless(const struct change_replay *r, int32_t i, int32_t first)
{
	for (int32_t c = first; c < first + r->width; c++) {
		if (r->released[c] >= r->hopeless[i]) {
			return false;
		}
	}
	return true;
}

/* True when a new lightpath would exceed a limit of one of its ends. */
static bool is_one_too_many(const struct change_replay *r, int32_t i)
{
	const struct rwa_mesh_demand *d = ends(r, i);
	int32_t add = r->m->nodes.v[d->src].add_limit;
	int32_t drop = r->m->nodes.v[d->dst].drop_limit;

	return r->c->lightpaths.v[i].old_path < 0 &&
	       ((add >= 0 && r->adds[d->src] >= add) || (drop >= 0 && r->drops[d->dst] >= drop));
}

/* Could it be dropped, moved or active now? */
static bool new_route_free(const struct change_replay *r, int32_t i)
{
	int32_t new = r->c->lightpaths.v[i].new_path;
	const struct rwa_path *p;

	if (new < 0) {
		return true;
	}
	p = &r->to->paths.v[new];

	for (int32_t k = 0; k < p->hops; k++) {
		const struct rwa_hop *h = &r->to->hops.v[p->first + k];

		if (is_active(r, h) || is_partners(r, i, h->arc)) {
			return false;
		}
	}
	return !is_one_too_many(r, i);
}

/* Is lightpath i where it must be in the end? */
static bool arrived(const struct change_replay *r, int32_t i)
{
	const struct rwa_changed *c = &r->c->lightpaths.v[i];
	const struct rwa_path *p;

	if (c->new_path < 0) {
		return r->hops[i] == 0;
	}
	p = &r->to->paths.v[c->new_path];
	return r->hops[i] == p->hops &&
	       memcmp(r->route[i], r->to->hops.v + p->first,
		      (size_t)p->hops * sizeof(struct rwa_hop)) == 0;
}

/* False when any lightpath that waits, and is in the way of others, could be moved, or rerouted for
 * the first time. A search that found nothing is not repeated until a slot of
 * the channel went dark. */
static bool cut_was_needed(struct change_replay *r)
{
	for (int32_t i = 0; i < (int32_t)r->c->lightpaths.n; i++) {
		if (arrived(r, i) || r->c->lightpaths.v[i].old_path < 0) {
			continue;
		}
		if (new_route_free(r, i)) {
			return false;
		}
		for (int32_t c = 0; r->hops[i] && !r->rerouted[i] && c < r->channels;
		     c += r->width) {
			if (!is_hopeless(r, i, c) && spare_on(r, i, c)) {
				return false;
			}
		}
		r->hopeless[i] = r->clock + 1;
	}
	return true;
}

/* ---- phases and cuts ---- */

/* True when hop h is among these. */
static bool uses(const struct rwa_hop *hop, int32_t n, const struct rwa_hop *h)
{
	bool found = false;

	for (int32_t k = 0; k < n; k++) {
		found |= hop[k].arc == h->arc && hop[k].fibre == h->fibre &&
			 hop[k].channel == h->channel;
	}
	return found;
}

/* Domain of the first hop of a that b does not have. */
static int32_t first_change(const struct change_replay *r, const struct rwa_assignment *a,
			    int32_t path, const struct rwa_assignment *b, int32_t other)
{
	const struct rwa_path *p = path < 0 ? NULL : &a->paths.v[path];
	const struct rwa_path *q = other < 0 ? NULL : &b->paths.v[other];

	for (int32_t k = 0; p && k < p->hops; k++) {
		const struct rwa_hop *h = &a->hops.v[p->first + k];

		if (!q || !uses(b->hops.v + q->first, q->hops, h)) {
			return rwa_mesh_domain_of(r->m, h->arc);
		}
	}
	return INT32_MIN;
}

/* The domain of a lightpath: of the first hop that it takes, or else gives
 * up. */
static int32_t domain_of(const struct change_replay *r, int32_t i)
{
	const struct rwa_changed *c = &r->c->lightpaths.v[i];
	int32_t d = first_change(r, r->to, c->new_path, r->from, c->old_path);

	return d != INT32_MIN ? d : first_change(r, r->from, c->old_path, r->to, c->new_path);
}

/* Nothing of the domain may be left that could be done. */
static bool is_exhausted(const struct change_replay *r, int32_t domain)
{
	for (int32_t i = 0; i < (int32_t)r->c->lightpaths.n; i++) {
		if (!arrived(r, i) && domain_of(r, i) == domain && new_route_free(r, i)) {
			return false;
		}
	}
	return true;
}

/* The step belongs to the present phase, or begins the next one when
 * nothing of the present one could be done any more. */
static int check_phase(struct change_replay *r, int64_t at, struct err *err)
{
	const struct rwa_phase *p = &r->c->phases.v[r->phase];
	int32_t i = r->c->steps.v[at].lightpath;

	if (!r->by_domain || i < 0 || (size_t)i >= r->c->lightpaths.n) {
		return 0;
	}
	if (r->phase < r->c->phases.n && at == p->first + p->steps) {
		if (!is_exhausted(r, p->domain)) {
			return fault(r, at, "another domain begins before all "
				     "is done in the last", err);
		}
		r->phase++;
		p++;
	}
	if (r->phase >= r->c->phases.n || at < p->first ||
	    at >= p->first + p->steps || domain_of(r, i) != p->domain) {
		return fault(r, at, "is not of the domain at work", err);
	}
	return 0;
}

/* Is the interruption that ends now the next one listed? */
static bool ends_cut(struct change_replay *r, int64_t at, int32_t i)
{
	const struct rwa_cut *cut = &r->c->cuts.v[r->cut];
	int64_t first = r->dark_at[i] - 1;

	r->dark_at[i] = 0;
	return r->cut++ < r->c->cuts.n && cut->lightpath == i &&
	       cut->first == first && cut->steps == at - first;
}

/* ---- steps ---- */

/* The hops of a place, NULL when it is none. */
static const struct rwa_hop *hops_at(const struct change_replay *r, struct rwa_place at)
{
	return at.first >= 0 && at.n >= 0 && (size_t)at.first + (size_t)at.n <= r->c->hops.n
		       ? r->c->hops.v + at.first : NULL;
}

/* A spare route stays clear of the new one, which it is to be left for. */
static bool is_clear_of_goal(const struct change_replay *r, int32_t i, const struct rwa_hop *hop,
			     int32_t n)
{
	for (int32_t k = 0; k < n; k++) {
		if (is_near_goal(r, i, &hop[k])) {
			return false;
		}
	}
	return true;
}

/* A step that takes a route: ADD, MOVE or REROUTE. The old route is given
 * back only after the new one was taken, as both are active for a moment. */
static int take_route(struct change_replay *r, int64_t at, const struct rwa_step *s,
		    struct err *err)
{
	const struct rwa_hop *hop = hops_at(r, s->new);
	int32_t i = s->lightpath;
	bool taken;

	if (!joins(r, i, hop, hop ? s->new.n : 0)) {
		return fault(r, at, "its route is not connected", err);
	}
	if ((s->kind == RWA_STEP_ADD) != (r->hops[i] == 0)) {
		return fault(r, at, "is in use, or not in use, when it should not be", err);
	}
	if (s->kind == RWA_STEP_REROUTE && !is_clear_of_goal(r, i, hop, s->new.n)) {
		return fault(r, at, "its spare route is in the way of its new one", err);
	}
	if (s->kind == RWA_STEP_ADD && is_one_too_many(r, i)) {
		return fault(r, at, "is one too many at one of its ends", err);
	}
	if (r->dark_at[i] && !ends_cut(r, at, i)) {
		return fault(r, at, "its interruption is not listed", err);
	}
	r->rerouted[i] |= s->kind == RWA_STEP_REROUTE;
	activate_route(r, hop, s->new.n, (uint64_t)i + 1, &taken);
	release_route(r, i);
	if (taken) {
		return fault(r, at, "its route is taken", err);
	}
	r->route[i] = hop;
	r->hops[i] = s->new.n;
	if (r->c->lightpaths.v[i].old_path < 0) {
		count_ends(r, i, 1);
	}
	return 0;
}

/* A step that makes dark: DROP or CUT. */
static int leave_dark(struct change_replay *r, int64_t at, const struct rwa_step *s,
		      struct err *err)
{
	int32_t i = s->lightpath;

	if (r->hops[i] == 0 || s->new.n) {
		return fault(r, at, "is dark already, or not after it", err);
	}
	if (s->kind == RWA_STEP_DROP && r->c->lightpaths.v[i].new_path >= 0) {
		return fault(r, at, "is dropped but wanted", err);
	}
	if (s->kind == RWA_STEP_CUT && !cut_was_needed(r)) {
		return fault(r, at, "is cut though there is a route without", err);
	}
	if (s->kind == RWA_STEP_CUT) {
		r->dark_at[i] = at + 1;
	} else {
		count_ends(r, i, -1);
	}
	release_route(r, i);
	return 0;
}

/* One step of the change, which begins where the lightpath is. */
static int replay_step(struct change_replay *r, int64_t at, struct err *err)
{
	const struct rwa_step *s = &r->c->steps.v[at];
	const struct rwa_hop *old = hops_at(r, s->old);
	int32_t i = s->lightpath;

	if (i < 0 || (size_t)i >= r->c->lightpaths.n) {
		return fault(r, at, "does not exist", err);
	}
	if (!old || s->old.n != r->hops[i] ||
	    (s->old.n && memcmp(old, r->route[i], (size_t)s->old.n * sizeof(*old)) != 0)) {
		return fault(r, at, "is not where the step begins", err);
	}
	return s->kind == RWA_STEP_DROP || s->kind == RWA_STEP_CUT ? leave_dark(r, at, s, err)
								   : take_route(r, at, s, err);
}

/* Lightpath of each path of an assignment; false unless every path belongs to
 * one. */
static bool list_lightpaths(const struct rwa_change *c, bool old, size_t n, int32_t *of)
{
	size_t count = 0;

	for (size_t k = 0; k < n; k++) {
		of[k] = -1;
	}
	for (size_t i = 0; i < c->lightpaths.n; i++) {
		int32_t at = old ? c->lightpaths.v[i].old_path
				 : c->lightpaths.v[i].new_path;

		if (at >= (int64_t)n || (at >= 0 && of[at] >= 0)) {
			return false;
		}
		if (at >= 0) {
			of[at] = (int32_t)i;
			count++;
		}
	}
	return count == n;
}

/* Partners are those, and only those, that stand together in the assignment
 * as a pair. */
static bool are_partners(const struct change_replay *r, const struct rwa_assignment *a,
			 const int32_t *of)
{
	const struct rwa_changed *v = r->c->lightpaths.v;
	bool good = true;

	for (size_t k = 0; good && k < a->paths.n; k++) {
		if (!r->m->demands.v[a->paths.v[k].demand].protect) {
			good = v[of[k]].partner == -1;
		} else {
			good = k + 1 < a->paths.n && v[of[k]].partner == of[k + 1] &&
				v[of[k + 1]].partner == of[k];
			k++;
		}
	}
	return good;
}

/* Every path of both assignments belongs to one lightpath of the same
 * demand, every pair to partners. */
static int check_matching(const struct change_replay *r, struct err *err)
{
	size_t n = r->from->paths.n, k = r->to->paths.n;
	int32_t *of = x_new(n + k + 1, sizeof(*of));
	bool good = list_lightpaths(r->c, true, n, of) &&
		    list_lightpaths(r->c, false, k, of + n) && are_partners(r, r->from, of) &&
		    are_partners(r, r->to, of + n);

	for (size_t i = 0; good && i < r->c->lightpaths.n; i++) {
		const struct rwa_changed *c = &r->c->lightpaths.v[i];

		good = (c->old_path >= 0 || c->new_path >= 0) &&
		       (c->old_path < 0 || c->new_path < 0 ||
			r->from->paths.v[c->old_path].demand ==
				r->to->paths.v[c->new_path].demand);
	}
	free(of);
	return good ? 0
		    : err_set(err, WEFT_EVERIFY,
			      "the lightpaths are not those of the two "
			      "assignments");
}

/* The state before the first step. */
static void take_old_routes(struct change_replay *r)
{
	bool taken;	/* no two clash in an assignment that was checked */

	for (int32_t i = 0; i < (int32_t)r->c->lightpaths.n; i++) {
		int32_t old = r->c->lightpaths.v[i].old_path;
		const struct rwa_path *p = old < 0 ? NULL
						   : &r->from->paths.v[old];

		if (p) {
			r->route[i] = r->from->hops.v + p->first;
			r->hops[i] = p->hops;
			count_ends(r, i, 1);
			activate_route(r, r->route[i], p->hops, (uint64_t)i + 1, &taken);
		}
	}
}

static int replay_init(struct change_replay *r, struct err *err)
{
	size_t n = r->c->lightpaths.n + 1;
	int rc = check_matching(r, err);

	if (rc) {
		return rc;
	}
	arrays_add(&r->arrays, r->route, n);
	arrays_add(&r->arrays, r->hops, n);
	arrays_add(&r->arrays, r->rerouted, n);
	arrays_add(&r->arrays, r->dark_at, n);
	r->width = change_spare_converts(r->m, r->channels) ? r->channels : 1;
	arrays_add(&r->arrays, r->adds, r->m->nodes.n);
	arrays_add(&r->arrays, r->drops, r->m->nodes.n);
	arrays_add(&r->arrays, r->loss, r->m->nodes.n * (size_t)r->width);
	arrays_add(&r->arrays, r->best, r->m->nodes.n);
	arrays_add(&r->arrays, r->released, (size_t)r->channels + 1);
	arrays_add(&r->arrays, r->hopeless, n);
	mesh_shut_init(r->m, &r->shut);
	take_old_routes(r);
	return 0;
}

int rwa_change_check(const struct rwa_mesh *m, const struct rwa_assignment *from,
		     const struct rwa_assignment *to, const struct rwa_change_options *opt,
		     const struct rwa_change *c, struct err *err)
{
	struct change_replay r = { .m = m, .from = from, .to = to, .c = c,
			    .channels = opt->channels,
			    .by_domain = opt->by_domain };
	int rc = replay_init(&r, err);

	for (int64_t s = 0; !rc && s < (int64_t)c->steps.n; s++) {
		if (!(rc = check_phase(&r, s, err))) {
			rc = replay_step(&r, s, err);
		}
	}
	if (!rc && (r.cut != c->cuts.n || (r.by_domain && c->phases.n &&
					   r.phase != c->phases.n - 1))) {
		rc = err_set(err, WEFT_EVERIFY, "cuts or phases are listed that are none");
	}
	for (int32_t i = 0; !rc && i < (int32_t)c->lightpaths.n; i++) {
		if (!arrived(&r, i)) {
			rc = err_set(err, WEFT_EVERIFY, "lightpath %d does not arrive", i);
		}
	}
	u64map_fini(&r.active);
	u64map_fini(&r.shut);
	arrays_fini(&r.arrays);
	return rc;
}
