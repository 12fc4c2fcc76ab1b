/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads: what each step puts on the arcs that are there.
 *
 * One pass over the sorted transfers adds up the chunks of every logical arc in a
 * step, then follows its routes. All is counted by orbits: a transfer that is kept
 * stands for one on every arc of its orbit, and the hops of its routes' images are
 * dealt out equally over the orbits that they fall in. Where the group is none of the
 * physical digraph, what is kept is dealt out to the arcs of its orbit first, and then each
 * counts for itself. Loads are whole numbers over
 * one scale, and are compared by products of 128 bits: a schedule that meets
 * its bound is found to do so exactly.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

/* Of the weights of routes: keeps all loads within 64 bits. */
#define MAX_SCALE (INT64_C(1) << 31)

void coll_loads_fini(struct coll_loads *w)
{
	arrays_fini(&w->arrays);
}

static const struct coll_path *paths_of(const struct coll_loads *w, int orbit, int *n,
					int64_t *total)
{
	const struct coll_embedding *e = w->s->embedding;
	const struct coll_path *p = e->paths.v + w->path_of[orbit];

	*n = 0;
	*total = 0;
	while (p + *n < e->paths.v + e->paths.n && p[*n].arc == p->arc) {
		*total += p[(*n)++].weight;
	}
	return p;
}

/* Where the routes of each orbit begin, and the least common multiple of their
 * weights' sums. */
static int index_routes(struct coll_loads *w, struct err *err)
{
	const struct coll_embedding *e = w->s->embedding;

	for (size_t i = 0; i < e->paths.n;) {
		int orbit = coll_orbit(w->senders, e->paths.v[i].arc), n;
		int64_t total;

		w->path_of[orbit] = (int32_t)i;
		paths_of(w, orbit, &n, &total);
		if (__builtin_mul_overflow(w->scale, total / rat_gcd(total, w->scale),
					   &w->scale) || w->scale > MAX_SCALE) {
			return err_set(err, WEFT_ELIMIT, "the weights of the routes have no "
				       "common multiple up to %lld", (long long)MAX_SCALE);
		}
		i += (size_t)n;
	}
	return 0;
}

/* Capacities times the scale, and the loads of a shared limit together, must fit 64
 * bits. */
static int check_range(struct coll_loads *w, struct err *err)
{
	int64_t most = INT64_MAX / w->scale;
	int widest = 1;

	for (int a = 0; a < topo_m(w->physical); a++) {
		if (w->arcs[a].cap > most) {
			return err_set(err, WEFT_ELIMIT,
				       "physical arc %d: its capacity times %lld, "
				       "the common multiple of the weights of the routes, does not "
				       "fit 64 bits", a, (long long)w->scale);
		}
	}
	for (int l = 0; l < topo_n_limits(w->physical); l++) {
		const struct topo_limit *limit = topo_limit(w->physical, l);

		widest = limit->n > widest ? limit->n : widest;
		if (limit->cap > most) {
			return err_set(err, WEFT_ELIMIT,
				       "shared limit %d: its capacity times %lld, "
				       "the common multiple of the weights of the routes, does not "
				       "fit 64 bits", l, (long long)w->scale);
		}
	}
	w->most = INT64_MAX / widest;
	return 0;
}

/* What an arc carries is its load: nothing is counted twice then. */
static bool is_plain(const struct coll_loads *w)
{
	return !w->s->embedding && !w->action;
}

/* The arcs of each orbit in the order of their numbers. */
static void list_members(struct coll_loads *w)
{
	const struct topo_action *action = w->s->action;

	for (int o = 0; o < topo_action_orbits(action); o++) {
		w->first_member[o + 1] = w->first_member[o] + topo_action_size(action, o);
	}
	for (int a = 0; a < topo_m(w->s->topo); a++) {
		int orbit = topo_action_orbit(action, a), first = topo_action_first(action, orbit);

		/* The place of the first counts those that were listed, until it is due again. */
		w->place[a] = a == first ? 0 : ++w->place[first];
		w->members[w->first_member[orbit] + w->place[a]] = a;
	}
	for (int o = 0; o < topo_action_orbits(action); o++) {
		w->place[topo_action_first(action, o)] = 0;
	}
}

static void add_arrays(struct coll_loads *w)
{
	const struct coll_sched *s = w->s;
	size_t logical = (size_t)topo_m(s->topo), physical = (size_t)topo_m(w->physical);

	arrays_add(&w->arrays, w->used, logical);
	arrays_add(&w->arrays, w->chunks, logical);
	arrays_add(&w->arrays, w->cap, physical);
	arrays_add(&w->arrays, w->messages, physical);
	if (is_plain(w)) {
		w->loaded = w->used;
		w->load = w->chunks;
	} else {
		arrays_add(&w->arrays, w->loaded, physical);
		arrays_add(&w->arrays, w->load, physical);
	}
	arrays_add(&w->arrays, w->out, s->ranks);
	arrays_add(&w->arrays, w->in, s->ranks);
	if (s->embedding) {
		arrays_add(&w->arrays, w->path_of, logical);
		arrays_add(&w->arrays, w->lit, physical);
		if (s->kind != COLL_ALLTOALL && !coll_has_own_routes(s) && !s->merges &&
		    coll_switches_can(w->physical, TOPO_CAN_COPY | TOPO_CAN_REDUCE)) {
			arrays_add(&w->arrays, w->saved, s->embedding->hops.n);
		}
	}
	if (coll_has_own_routes(s)) {
		arrays_add(&w->arrays, w->members, logical);
		arrays_add(&w->arrays, w->place, logical);
		arrays_add(&w->arrays, w->first_member, coll_orbits(s) + 1);
	}
}

int coll_loads_init(struct coll_loads *w, const struct coll_sched *s, struct err *err)
{
	int rc;

	*w = (struct coll_loads){ .s = s, .scale = 1, .physical = coll_physical(s),
				  .action = s->embedding ? s->embedding->action : s->action,
				  .senders = coll_senders(s) };
	w->arcs = topo_arcs(w->physical);
	add_arrays(w);
	for (int a = 0; is_plain(w) && a < topo_m(w->physical); a++) {
		w->messages[a] = 1;
	}
	if (w->members) {
		list_members(w);
	}
	for (size_t i = 0; s->embedding && i < s->lights.n; i++) {
		w->lit[s->lights.v[i].arc] = true;
	}
	rc = s->embedding ? index_routes(w, err) : 0;
	return rc ? rc : check_range(w, err);
}

/* The first terminal of the orbit of a node, -1: it is none. */
static int port_node(const struct coll_loads *w, int node)
{
	if (node >= w->s->ranks) {
		return -1;
	}
	return w->s->group && !w->members ? topo_group_first(w->s->group, node) : node;
}

/* What was saved on the routes of an orbit. */
static void clear_saved(struct coll_loads *w, int orbit)
{
	int64_t total;
	int n;
	const struct coll_path *p = paths_of(w, orbit, &n, &total);

	for (int i = 0; i < n; i++) {
		memset(w->saved + p[i].first, 0, (size_t)p[i].n * sizeof(*w->saved));
	}
}

static void clear_step(struct coll_loads *w)
{
	for (int i = 0; i < w->n_used; i++) {
		w->chunks[w->used[i]] = 0;
		if (w->saved) {
			clear_saved(w, w->used[i]);
		}
	}
	for (int i = 0; i < w->n_loaded && !is_plain(w); i++) {
		int orbit = w->loaded[i];

		w->load[orbit] = w->cap[orbit] = w->messages[orbit] = 0;
	}
	w->n_used = w->n_loaded = 0;
	w->top = (struct coll_load){ 0, 1 };
}

/* What the first arcs of orbits have is dealt out to the others, which have the same: from
 * the back, as there are more and more of them. */
static void deal_out(struct coll_loads *w)
{
	const struct topo_action *action = w->s->action;
	int n = w->n_used, end = 0;

	for (int i = 0; i < n; i++) {
		end += topo_action_size(action, topo_action_orbit(action, w->used[i]));
	}
	w->n_used = end;
	for (int i = n - 1; i >= 0; i--) {
		int orbit = topo_action_orbit(action, w->used[i]);
		int64_t chunks = w->chunks[w->used[i]] * coll_orbit_share(w->s, action, orbit);

		for (int k = w->first_member[orbit + 1] - 1; k >= w->first_member[orbit]; k--) {
			w->used[--end] = w->members[k];
			w->chunks[w->members[k]] = chunks;
		}
	}
}

/* Chunks of a transfer that none before it of the same message has: these stand together, by their
 * first chunks. sent: where what was sent of it ends. */
static int64_t new_chunks(const struct coll_xfer *x, const struct coll_xfer *before, int32_t *sent)
{
	bool same = before && x->kept && x->kept == before->kept && x->arc == before->arc &&
		    x->step == before->step && x->origin == before->origin;
	int32_t from = same && *sent > x->first ? *sent : x->first;

	*sent = same && *sent > x->last + 1 ? *sent : x->last + 1;
	return x->last + 1 > from ? x->last + 1 - from : 0;
}

/* Adds up the transfers of the next step, those of an arc beside each other. */
static void add_transfers(struct coll_loads *w)
{
	const struct coll_sched *s = w->s;
	const struct coll_xfer *x = s->xfers.v, *end = x + s->xfers.n;
	int64_t sum = 0, first = (int64_t)w->xfer;

	for (x += w->xfer; x < end && x->step == w->step;) {
		int arc = x->arc, sender = coll_sender(s, arc);
		int64_t chunks = 0;
		int32_t sent = 0;

		for (; x < end && x->arc == arc && x->step == w->step; x++) {
			chunks += new_chunks(x, x > s->xfers.v ? x - 1 : NULL, &sent);
		}
		chunks *= s->alike ? s->ranks : 1;
		if (w->chunks[sender] == 0) {
			w->used[w->n_used++] = sender;
		}
		w->chunks[sender] += chunks;
		sum += chunks;
	}
	if (w->members) {
		deal_out(w);
	}
	w->hops += sum * topo_group_order(s->group);
	w->xfer = (size_t)(x - s->xfers.v);
	if (w->saved) {
		coll_save_loads(w, first);
	}
}

/* "step 3: arc 5 (0 -> 1)" and what is wrong there. */
static int fault(const struct coll_loads *w, int arc, struct err *err, const char *what)
{
	const struct topo_arc *a = topo_arc(w->physical, arc);

	return err_set(err, WEFT_EVERIFY, "step %d: arc %d (%d -> %d): %s", w->step, arc, a->src,
		       a->dst, what);
}

/* Of an embedded schedule with light: whether an arc is inside a host, and carries without. */
static bool is_inside(const struct coll_loads *w, int arc)
{
	const struct coll_placement *p = w->s->placement;
	const struct topo_arc *a = &w->arcs[arc];

	return w->lit && !w->lit[arc] && (!p || strcmp(p->hosts[a->src], p->hosts[a->dst]) == 0);
}

/* Capacity of an arc in this step: its own, times its lights. */
static int arc_cap(struct coll_loads *w, int arc, int64_t *cap, struct err *err)
{
	struct coll_run lights;

	*cap = w->arcs[arc].cap;
	if (w->s->lights.n == 0 || is_inside(w, arc)) {
		return 0;
	}
	lights = coll_light_run(w->s, w->lit ? 0 : w->light, w->step, arc);
	w->light = lights.first;
	*cap *= lights.n;
	return lights.n ? 0 : fault(w, arc, err, "the arc has no light in this step");
}

/* Fewer ports than a node uses would make its bandwidth, and with it every
 * bound, a fiction. */
static int use_port(const struct coll_loads *w, int arc, int node, struct coll_port *side,
		    int64_t cap, struct err *err)
{
	const struct topo_arc *a = &w->arcs[arc];
	int port = port_node(w, node);

	if (port < 0) {
		return 0;
	}
	side += port;
	side->used = side->step == w->step + 1 ? side->used + cap : cap;
	side->step = w->step + 1;
	if (side->used <= w->s->ports) {
		return 0;
	}
	return err_set(err, WEFT_EVERIFY, "step %d: arc %d (%d -> %d): node %d %s %lld units of "
		       "capacity, more than its %d ports", w->step, arc, a->src, a->dst, node,
		       side == w->out + port ? "drives" : "receives", (long long)side->used,
		       w->s->ports);
}

/* A physical orbit that carries for the first time in this step. */
static int open_orbit(struct coll_loads *w, int orbit, struct err *err)
{
	int arc = coll_orbit_first(w->action, orbit), rc;
	const struct topo_arc *a = &w->arcs[arc];
	int64_t *cap = &w->cap[orbit];

	w->loaded[w->n_loaded++] = orbit;
	if ((rc = arc_cap(w, arc, cap, err)) ||
	    (rc = use_port(w, arc, a->src, w->out, *cap, err))) {
		return rc;
	}
	return use_port(w, arc, a->dst, w->in, *cap, err);
}

static int add_load(struct coll_loads *w, int orbit, int64_t load, struct err *err)
{
	int rc = w->cap[orbit] ? 0 : open_orbit(w, orbit, err);

	if (!rc && (__builtin_add_overflow(w->load[orbit], load, &w->load[orbit]) ||
		    w->load[orbit] > w->most)) {
		rc = err_set(err, WEFT_ELIMIT, "step %d: a load does not fit 64 bits", w->step);
	}
	return rc;
}

/* part: of a chunk, in 1 / scale. */
static int follow_route(struct coll_loads *w, const struct coll_path *p, int64_t chunks,
			int64_t part, struct err *err)
{
	const int32_t *hops = w->s->embedding->hops.v + p->first;
	int rc = 0;

	for (int i = 0; i < p->n && !rc; i++) {
		int orbit = coll_orbit(w->action, hops[i]);
		int64_t share = coll_orbit_share(w->s, w->action, orbit), sum;
		int64_t carried = w->saved ? chunks - w->saved[p->first + i] : chunks;

		if (__builtin_mul_overflow(carried, part, &sum) ||
		    __builtin_mul_overflow(sum, share, &sum)) {
			return err_set(err, WEFT_ELIMIT, "step %d: a load does not fit 64 bits",
				       w->step);
		}
		rc = add_load(w, orbit, sum, err);
	}
	return rc;
}

static void raise(struct coll_load *top, struct coll_load load)
{
	if (coll_less_load(*top, load)) {
		*top = load;
	}
}

/* What the arcs of a logical orbit carry goes over their routes. */
static int load_arcs(struct coll_loads *w, int orbit, struct err *err)
{
	const struct coll_path *p;
	int64_t total;
	int n, rc = 0;

	if (is_plain(w)) {
		rc = open_orbit(w, orbit, err);
		raise(&w->top, (struct coll_load){ w->load[orbit], w->cap[orbit] });
		return rc;
	}
	if (!w->s->embedding) {
		w->messages[orbit] = 1;
		return add_load(w, orbit, w->chunks[orbit] *
				coll_orbit_share(w->s, w->action, orbit), err);
	}
	p = paths_of(w, orbit, &n, &total);
	for (int i = 0; i < n && !rc; i++) {
		int first = coll_orbit(w->action, w->s->embedding->hops.v[p[i].first]);

		w->messages[first] += coll_orbit_share(w->s, w->action, first);
		rc = follow_route(w, &p[i], w->chunks[orbit],
				  w->scale / total * p[i].weight, err);
	}
	return rc;
}

struct coll_load coll_limit_load(const struct coll_loads *w, int limit)
{
	const struct topo_limit *l = topo_limit(w->physical, limit);
	struct coll_load sum = { 0, l->cap * w->scale };

	for (int i = 0; i < l->n; i++) {
		sum.chunks += w->load[coll_orbit(w->action, l->arcs[i])];
	}
	return sum;
}

static void find_top(struct coll_loads *w)
{
	int n = topo_n_limits(w->physical);
	const int32_t *limits = NULL;

	if (w->action) {
		limits = topo_action_limits(w->action, &n);
	}
	for (int i = 0; i < w->n_loaded && !is_plain(w); i++) {
		int orbit = w->loaded[i];

		raise(&w->top, (struct coll_load){ w->load[orbit], w->cap[orbit] * w->scale });
	}
	for (int i = 0; i < n; i++) {
		raise(&w->top, coll_limit_load(w, limits ? limits[i] : i));
	}
}

int coll_loads_next(struct coll_loads *w, struct err *err)
{
	int rc = 0;

	clear_step(w);
	if (w->xfer >= w->s->xfers.n) {
		return 0;
	}
	w->step = w->s->xfers.v[w->xfer].step;
	add_transfers(w);
	for (int i = 0; i < w->n_used && !rc; i++) {
		rc = load_arcs(w, w->used[i], err);
	}
	find_top(w);
	return rc;
}

struct coll_load coll_loads_at(const struct coll_loads *w, int arc)
{
	int orbit = coll_orbit(w->action, arc), n;
	struct coll_load top = { w->load[orbit], w->cap[orbit] * w->scale };
	const int32_t *limits;

	n = topo_arc_limits(w->physical, arc, &limits);
	for (int i = 0; i < n; i++) {
		raise(&top, coll_limit_load(w, limits[i]));
	}
	return top;
}

int coll_each_step(const struct coll_sched *s, coll_step_fn *fn, void *arg, struct err *err)
{
	double *shards = x_new((size_t)topo_m(coll_physical(s)) + 1, sizeof(*shards));
	struct coll_loads w;
	int rc = coll_loads_init(&w, s, err);

	while (!rc && (rc = coll_loads_next(&w, err)) == 0 && w.n_used > 0) {
		for (int a = 0; a < topo_m(w.physical); a++) {
			shards[a] = (double)w.load[coll_orbit(w.action, a)] /
				    ((double)w.scale * coll_chunks(s));
		}
		fn(w.step, shards, arg);
	}
	coll_loads_fini(&w);
	free(shards);
	return rc;
}
