/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The independent checks: an assignment against the mesh, and a certificate
 * by shortest paths in integers. Nothing here knows how either was found.
 *
 * An assignment is replayed one lightpath after the other on a hash table of
 * the slots that are taken, so that memory follows the hops in use and not
 * arcs times channels. The order of the checks only decides which fault is
 * named.
 *
 * A certificate is checked by working it out again: of what it says only the
 * prices are believed. They are integers of at most MAX_PRICE, so that no sum
 * overflows and nothing depends on rounding; paths within a budget and pairs
 * are priced in doubles, which hold such sums exactly.
 */
#include <math.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "rwa/mesh/private.h"

/* ---- assignments ---- */

#define SHARERS (UINT64_C(1) << 62)

/* A backup that shares a slot with those from `next` on; -1: none. */
struct sharer {
	int64_t path;
	int64_t next;
};

/* One replay. `taken` has the slots of all hops replayed so far, by
 * mesh_slot_key(); `shut` the blocks, see mesh_shut_init(). */
struct mesh_replay {
	const struct rwa_mesh *m;
	const struct rwa_assignment *a;
	int channels;
	int top;		/* channels below the guard at the edge */
	struct u64map taken;	/* slot to path, or to the last of `sharers` there and SHARERS */
	VEC(struct sharer) sharers;
	bool is_shared;		/* the path at work is a backup that may share */
	struct u64map shut;
};

/* Puts number and ends of the lightpath before the message. Returns its
 * code. */
static int path_error(const struct mesh_replay *r, int64_t path, struct err *err)
{
	const struct rwa_mesh_demand *d = &r->m->demands.v[r->a->paths.v[path].demand];
	char from[16], to[16];

	return err_wrap(err, "lightpath %lld, %s -> %s", (long long)path,
			rwa_mesh_node_name(r->m, d->src, from, sizeof(from)),
			rwa_mesh_node_name(r->m, d->dst, to, sizeof(to)));
}

/* The value of a slot is 1 when others use it, so that guard channels are
 * kept beside it, and 0 when every block of it is a filter. */
void mesh_shut_init(const struct rwa_mesh *m, struct u64map *shut)
{
	for (size_t i = 0; i < m->blocks.n; i++) {
		const struct rwa_mesh_block *b = &m->blocks.v[i];

		uint64_t key = mesh_slot_key(b->arc, b->fibre, b->channel);
		uint64_t active = 0;

		u64map_get(shut, key, &active);
		u64map_set(shut, key, active || !b->filter);
	}
}

/* True when others use exactly this slot; fibre or channel may be all. */
static bool is_in_use(const struct u64map *shut, int32_t arc, int32_t fibre, int32_t channel)
{
	uint64_t active = 0;

	u64map_get(shut, mesh_slot_key(arc, fibre, channel), &active);
	return active;
}

bool mesh_is_shut_near(const struct rwa_mesh *m, const struct u64map *shut, struct rwa_hop h)
{
	int32_t between = m->guard.between;
	int32_t c = h.channel > between ? h.channel - between : 0;

	if (!shut->n || mesh_is_shut(shut, &h)) {
		return shut->n;
	}
	for (; c <= h.channel + between; c++) {
		if (is_in_use(shut, h.arc, h.fibre, c) || is_in_use(shut, h.arc, RWA_MESH_ALL, c)) {
			return true;
		}
	}
	return false;
}

bool mesh_is_shut(const struct u64map *shut, const struct rwa_hop *h)
{
	const int32_t all = RWA_MESH_ALL;

	return shut->n &&
	       (u64map_get(shut, mesh_slot_key(h->arc, h->fibre, h->channel),
			   NULL) ||
		u64map_get(shut, mesh_slot_key(h->arc, h->fibre, all), NULL) ||
		u64map_get(shut, mesh_slot_key(h->arc, all, h->channel),
			   NULL) ||
		u64map_get(shut, mesh_slot_key(h->arc, all, all), NULL));
}

/* The slot that a hop takes: of a fibre for one lightpath the whole. */
static uint64_t slot_of(const struct mesh_replay *r, const struct rwa_hop *h)
{
	bool whole = r->m->arcs.v[h->arc].is_single;

	return mesh_slot_key(h->arc, h->fibre, whole ? RWA_MESH_ALL : h->channel);
}

/* Who holds a slot within the guard channels of a hop, its own included. */
static bool find_clash(const struct mesh_replay *r, const struct rwa_hop *h, uint64_t *who)
{
	if (r->m->arcs.v[h->arc].is_single) {
		return u64map_get(&r->taken, slot_of(r, h), who);
	}
	for (int32_t k = -r->m->guard.between; k <= r->m->guard.between; k++) {
		if (h->channel + k >= 0 &&
		    u64map_get(&r->taken, mesh_slot_key(h->arc, h->fibre,
							h->channel + k), who)) {
			return true;
		}
	}
	return false;
}

static bool share_link(const struct mesh_replay *r, const struct rwa_path *p,
		       const struct rwa_path *q);

/* Takes a slot for a backup that may share it: of those that are there no working lightpath, the
 * path before, has a link in common with its own. *other: one that has, or that shares nothing. */
static bool take_shared(struct mesh_replay *r, int64_t path, const struct rwa_hop *h,
			uint64_t *other)
{
	struct sharer one = { path, -1 };
	bool held = u64map_get(&r->taken, slot_of(r, h), other);

	if (held && !(*other & SHARERS)) {
		return false;
	}
	one.next = held ? (int64_t)(*other - SHARERS) : -1;
	for (int64_t k = one.next; k >= 0; k = r->sharers.v[k].next) {
		*other = (uint64_t)r->sharers.v[k].path;
		if (share_link(r, &r->a->paths.v[path - 1], &r->a->paths.v[*other - 1])) {
			return false;
		}
	}
	vec_push(&r->sharers, one);
	u64map_set(&r->taken, slot_of(r, h), (r->sharers.n - 1) | SHARERS);
	return true;
}

/* Takes a hop's slot for a lightpath. It must exist, be open to use, and be
 * further than the guard channels from every slot taken before, those of
 * the same lightpath included. */
static int take_hop(struct mesh_replay *r, int64_t path, const struct rwa_hop *h, struct err *err)
{
	uint64_t other;

	if (h->arc < 0 || (size_t)h->arc >= r->m->arcs.n) {
		return err_set(err, WEFT_EVERIFY, "arc %d does not exist", h->arc);
	}
	if (h->fibre < 0 || h->fibre >= r->m->arcs.v[h->arc].fibres ||
	    h->channel < 0 || h->channel >= r->channels) {
		return err_set(err, WEFT_EVERIFY,
			       "arc %d: fibre %d channel %d does not exist",
			       h->arc, h->fibre, h->channel);
	}
	if (mesh_is_shut_near(r->m, &r->shut, *h) || h->channel < r->m->guard.below ||
	    h->channel >= r->top) {
		return err_set(err, WEFT_EVERIFY,
			       "arc %d: fibre %d channel %d must not be used",
			       h->arc, h->fibre, h->channel);
	}
	if (r->is_shared ? !take_shared(r, path, h, &other) : find_clash(r, h, &other)) {
		other = other & SHARERS ? (uint64_t)r->sharers.v[other - SHARERS].path : other;
		return err_set(err, WEFT_EVERIFY,
			       "arc %d: fibre %d channel %d is lightpath %llu's",
			       h->arc, h->fibre, h->channel,
			       (unsigned long long)other);
	}
	if (!r->is_shared) {
		u64map_set(&r->taken, slot_of(r, h), (uint64_t)path);
	}
	return 0;
}

/* One lightpath from its source on: its hops follow each other, the channel
 * changes only where a node converts, both ends tune to it, and the loss is
 * within the budget. Takes its slots. */
static int check_path(struct mesh_replay *r, int64_t path, struct err *err)
{
	const struct rwa_path *p = &r->a->paths.v[path];
	const struct rwa_hop *hops = r->a->hops.v + p->first;
	const struct rwa_mesh_demand *d = &r->m->demands.v[p->demand];
	int32_t at = d->src;

	for (int32_t i = 0; i < p->hops; i++) {
		int rc = take_hop(r, path, &hops[i], err);

		if (rc) {
			return rc;
		}
		if (r->m->arcs.v[hops[i].arc].src != at) {
			return err_set(err, WEFT_EVERIFY,
				       "hop %d does not begin where the one "
				       "before ends", i);
		}
		if (i && hops[i].channel != hops[i - 1].channel && !r->m->nodes.v[at].convert) {
			return err_set(err, WEFT_EVERIFY,
				       "the channel changes at node %d, which "
				       "does not convert", at);
		}
		at = r->m->arcs.v[hops[i].arc].dst;
	}
	if (at != d->dst) {
		return err_set(err, WEFT_EVERIFY, "ends at node %d", at);
	}
	if (!mesh_tunes(r->m, d->src, hops[0].channel) ||
	    !mesh_tunes(r->m, d->dst, hops[p->hops - 1].channel)) {
		return err_set(err, WEFT_EVERIFY, "a channel that the transceivers do not reach");
	}
	if (r->m->budget_mdb != RWA_MESH_NO_LIMIT &&
	    rwa_mesh_loss_mdb(r->m, hops, p->hops) > r->m->budget_mdb) {
		return err_set(err, WEFT_EVERIFY, "loses more light than the budget allows");
	}
	return 0;
}

/* True when two paths have a link in common. Arcs are compared by their
 * ends and not by mesh_links(), by which the search goes: a mistake there
 * would show here. O(hops^2). */
static bool share_link(const struct mesh_replay *r, const struct rwa_path *p,
		       const struct rwa_path *q)
{
	for (int32_t i = 0; i < p->hops; i++) {
		const struct rwa_mesh_arc *a = &r->m->arcs.v[r->a->hops.v[p->first + i].arc];

		for (int32_t k = 0; k < q->hops; k++) {
			const struct rwa_mesh_arc *b =
				&r->m->arcs.v[r->a->hops.v[q->first + k].arc];

			if ((a->src == b->src && a->dst == b->dst) ||
			    (a->src == b->dst && a->dst == b->src)) {
				return true;
			}
		}
	}
	return false;
}

/* Lightpaths of a protected demand stand in pairs without common link. */
static int check_pairs(const struct mesh_replay *r, struct err *err)
{
	const struct rwa_path *p = r->a->paths.v;

	for (size_t i = 0; i < r->a->paths.n; i++) {
		if (!r->m->demands.v[p[i].demand].protect) {
			continue;
		}
		if (i + 1 == r->a->paths.n || p[i + 1].demand != p[i].demand) {
			err_set(err, WEFT_EVERIFY, "has no backup");
			return path_error(r, (int64_t)i, err);
		}
		if (share_link(r, &p[i], &p[i + 1])) {
			err_set(err, WEFT_EVERIFY, "shares a link with its backup");
			return path_error(r, (int64_t)i, err);
		}
		i++;
	}
	return 0;
}

/* Lightpaths of every demand, and of every node's ends. */
static int check_counts(const struct mesh_replay *r, bool all, struct err *err)
{
	const struct rwa_mesh *m = r->m;
	int64_t *n = x_new(m->demands.n + 2 * m->nodes.n + 1, sizeof(*n));
	int64_t *adds = n + m->demands.n;
	int64_t *drops = adds + m->nodes.n;
	int rc = 0;

	for (size_t i = 0; i < r->a->paths.n; i++) {
		int32_t d = r->a->paths.v[i].demand;

		n[d]++;
		adds[m->demands.v[d].src]++;
		drops[m->demands.v[d].dst]++;
	}
	for (size_t d = 0; !rc && d < m->demands.n; d++) {
		int64_t want = (int64_t)m->demands.v[d].count *
			       (m->demands.v[d].protect ? 2 : 1);

		if (n[d] > want || (all && n[d] < want)) {
			rc = err_set(err, WEFT_EVERIFY, "demand %zu: %lld lightpaths for %lld", d,
				     (long long)n[d], (long long)want);
		}
	}
	for (size_t v = 0; !rc && v < m->nodes.n; v++) {
		const struct rwa_mesh_node *node = &m->nodes.v[v];

		if ((node->add_limit >= 0 && adds[v] > node->add_limit) ||
		    (node->drop_limit >= 0 && drops[v] > node->drop_limit)) {
			rc = err_set(err, WEFT_EVERIFY,
				     "node %zu: more lightpaths begin or end "
				     "than it can hold", v);
		}
	}
	free(n);
	return rc;
}

/* Indices within their arrays: everything after this relies on it. */
static int check_shape(const struct mesh_replay *r, int64_t path, struct err *err)
{
	const struct rwa_path *p = &r->a->paths.v[path];

	if (p->demand < 0 || (size_t)p->demand >= r->m->demands.n || p->hops < 1 || p->first < 0 ||
	    (size_t)p->first + (size_t)p->hops > r->a->hops.n) {
		return err_set(err, WEFT_EVERIFY, "lightpath %lld is malformed", (long long)path);
	}
	return 0;
}

int rwa_mesh_check(const struct rwa_mesh *m, const struct rwa_assignment *a,
		   int channels, bool all, struct err *err)
{
	struct mesh_replay r = { .m = m, .a = a, .channels = channels,
			    .top = channels - m->guard.above };
	int rc = 0;

	mesh_shut_init(m, &r.shut);
	for (int64_t i = 0; !rc && i < (int64_t)a->paths.n; i++) {
		rc = check_shape(&r, i, err);
		r.is_shared = !rc && i && !r.is_shared &&
			      a->paths.v[i - 1].demand == a->paths.v[i].demand &&
			      m->demands.v[a->paths.v[i].demand].protect == RWA_SHARED;
		if (!rc && check_path(&r, i, err)) {
			rc = path_error(&r, i, err);
		}
	}
	if (!rc && !(rc = check_counts(&r, all, err))) {
		rc = check_pairs(&r, err);
	}
	u64map_fini(&r.taken);
	u64map_fini(&r.shut);
	vec_fini(&r.sharers);
	return rc;
}

/* ---- certificates ---- */

/* Lightpaths of a demand, in ones or in pairs, and what they pay at least. */
struct priced {
	int64_t price, count;	/* of one, or of a pair */
	int64_t each;		/* 1 or 2 lightpaths */
};

/* What the prices are worth. Shortest paths are recomputed for each source
 * and hold for the source last given to distances(); `paths` grows by one
 * entry for each demand, in their order. */
struct sums {
	const struct rwa_mesh *m;
	const int64_t *prices;
	struct mesh_adjacency out;
	struct arrays arrays;	/* owns those that follow */
	int32_t *fibres;	/* open */
	int64_t *dist;
	int32_t *via;		/* arc that enters the node */
	int32_t *queue;		/* ring of nodes + 1 */
	bool *queued;
	struct mesh_slots used;	/* by channel */
	bool special;		/* loss budget or pairs: paths and real */
	struct mesh_paths router;
	double *real;		/* prices */
	VEC(struct priced) paths;	/* by demand */
};

/* Cheapest paths from a source over arcs with an open fibre, by
 * Bellman-Ford with a queue. Each node is queued at most once, so that the
 * ring has room. */
static void distances(struct sums *s, int32_t source)
{
	int32_t n = (int32_t)s->m->nodes.n, head = 0, tail = 0;

	for (int32_t v = 0; v < n; v++) {
		s->dist[v] = INT64_MAX;
	}
	s->dist[source] = 0;
	s->queue[tail++] = source;
	while (head != tail) {
		int32_t v = s->queue[head];

		head = (head + 1) % (n + 1);
		s->queued[v] = false;
		for (int32_t k = s->out.first[v]; k < s->out.first[v + 1]; k++) {
			int32_t e = s->out.arc[k], w = s->m->arcs.v[e].dst;
			int64_t d = s->dist[v] + s->prices[e];

			if (!s->fibres[e] || d >= s->dist[w]) {
				continue;
			}
			s->dist[w] = d;
			s->via[w] = e;
			if (!s->queued[w]) {
				s->queued[w] = true;
				s->queue[tail] = w;
				tail = (tail + 1) % (n + 1);
			}
		}
	}
}

/* plain, within the budget, pair: which kind of path is missing. */
static int unreachable(const struct rwa_mesh *m, size_t d, int kind, struct err *err)
{
	static const char *const none[] = {
		"no path leads", "no path leads",
		"no two paths without a common link lead",
	};
	char from[16], to[16];
	const struct rwa_mesh_demand *x = &m->demands.v[d];

	return err_set(err, WEFT_EINFEASIBLE, "demand %zu: %s from %s to %s%s",
		       d, none[kind],
		       rwa_mesh_node_name(m, x->src, from, sizeof(from)),
		       rwa_mesh_node_name(m, x->dst, to, sizeof(to)),
		       kind == 1 ? " within the loss budget" : "");
}

/* True when the cheapest path is within the budget as it is. */
static bool tree_path_fits(const struct sums *s, int32_t src, int32_t dst)
{
	int64_t loss = 0;

	for (int32_t v = dst; v != src; v = s->m->arcs.v[s->via[v]].src) {
		loss += s->m->arcs.v[s->via[v]].loss_mdb;
		loss += v == dst ? 0 : s->m->nodes.v[v].pass_mdb;
	}
	return loss <= s->router.budget;
}

/* Price of a lightpath, or of a pair: the plain distance, and more where the
 * budget or the disjointness of a pair is known to cost more. */
static int price_demand(struct sums *s, size_t i, int64_t *price, struct err *err)
{
	const struct rwa_mesh_demand *d = &s->m->demands.v[i];
	double cost = 0;
	int rc;

	*price = s->dist[d->dst];
	if (*price == INT64_MAX) {
		return unreachable(s->m, i, 0, err);
	}
	if (s->special && !tree_path_fits(s, d->src, d->dst)) {
		rc = mesh_path_within(&s->router, s->real, d->src, d->dst, &cost);
		if (!rc && cost == INFINITY) {
			return unreachable(s->m, i, 1, err);
		}
		*price = rc ? *price : (int64_t)cost;
	}
	if (d->protect) {
		cost = mesh_path_pair(&s->router, s->real, d->src, d->dst);
		if (cost == INFINITY) {
			return unreachable(s->m, i, 2, err);
		}
		*price = 2 * *price > (int64_t)cost ? 2 * *price
						    : (int64_t)cost;
	}
	return 0;
}

/* Prices of the cheapest paths of all demands; demands come in any order, so
 * that sources are recomputed only when they change. */
static int price_demands(struct sums *s, struct rwa_certificate *c, struct err *err)
{
	int32_t source = -1;
	int64_t price;
	int rc;

	c->numerator = 0;
	for (size_t i = 0; i < s->m->demands.n; i++) {
		const struct rwa_mesh_demand *d = &s->m->demands.v[i];

		if (d->src != source) {
			source = d->src;
			distances(s, source);
		}
		rc = price_demand(s, i, &price, err);
		if (rc) {
			return rc;
		}
		c->numerator += d->count * price;
		vec_push(&s->paths, (struct priced){ price, d->count, d->protect ? 2 : 1 });
	}
	return 0;
}

/* True when plain distances are not all: there is a budget, or a pair. */
static bool needs_paths(const struct rwa_mesh *m)
{
	bool special = m->budget_mdb != RWA_MESH_NO_LIMIT;

	for (size_t i = 0; !special && i < m->demands.n; i++) {
		special = m->demands.v[i].protect;
	}
	return special;
}

/* Makes the router for paths within a budget and for pairs. */
static void special_init(struct sums *s)
{
	s->special = true;
	arrays_add(&s->arrays, s->real, s->m->arcs.n + 1);
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		s->real[e] = (double)s->prices[e];
	}
	mesh_paths_init(&s->router, s->m);
}

static void sums_init(struct sums *s, const struct rwa_mesh *m, const int64_t *prices)
{
	size_t n = m->nodes.n + 1;

	*s = (struct sums){ .m = m, .prices = prices };
	arrays_add(&s->arrays, s->fibres, m->arcs.n + 1);
	arrays_add(&s->arrays, s->dist, n);
	arrays_add(&s->arrays, s->queue, n + 1);
	arrays_add(&s->arrays, s->queued, n);
	arrays_add(&s->arrays, s->via, n);
	adjacency_init(&s->out, m, false);
	mesh_open_fibres(m, s->fibres);
	mesh_used_slots(m, &s->used);
	if (needs_paths(m)) {
		special_init(s);
	}
}

static void sums_fini(struct sums *s)
{
	if (s->special) {
		mesh_paths_fini(&s->router);
	}
	arrays_fini(&s->arrays);
	vec_fini(&s->used);
	vec_fini(&s->paths);
	adjacency_fini(&s->out);
}

/* Largest price that keeps every sum below 2^62 in any mesh allowed. */
#define MAX_PRICE 1000000

/* The denominator: what one channel on all open fibres pays, or 1 when that
 * is nothing, so that no prices prove no channels. */
static int sum_capacity(const struct sums *s, struct rwa_certificate *c, struct err *err)
{
	c->denominator = 0;
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		if (c->prices[e] < 0 || c->prices[e] > MAX_PRICE) {
			return err_set(err, WEFT_EVERIFY,
				       "arc %zu: price %lld is not within 0 "
				       "to %d", e, (long long)c->prices[e],
				       MAX_PRICE);
		}
		c->denominator += c->prices[e] * s->fibres[e];
	}
	c->denominator = c->denominator ? c->denominator : 1;
	return 0;
}

/* What so many channels can pay for; *next: the first of the slots in use,
 * which are by channel, that is not below them. */
static int64_t capacity(const struct sums *s, int64_t denominator,
			int64_t channels, size_t *next, int64_t *used)
{
	const struct rwa_mesh_guard *g = &s->m->guard;

	if (g->between) {
		return denominator * mesh_band_slots(s->m, channels);
	}
	for (; *next < s->used.n && s->used.v[*next].channel < channels - g->above; ++*next) {
		*used += s->used.v[*next].channel < g->below
				 ? 0 : s->prices[s->used.v[*next].arc];
	}
	return denominator * mesh_band_slots(s->m, channels) - *used;
}

/* The fewest channels that can pay for the numerator. What others use pays
 * for nothing, so that more are added until it is enough; a channel pays
 * the denominator at most, so that no number that is enough is passed over. */
static int64_t channels_for(const struct sums *s, const struct rwa_certificate *c)
{
	int64_t slots = (c->numerator + c->denominator - 1) / c->denominator;
	int64_t channels = mesh_band_min_channels(s->m, slots), used = 0, have;
	size_t next = 0;

	while ((have = capacity(s, c->denominator, channels, &next, &used)) < c->numerator) {
		channels += (c->numerator - have + c->denominator - 1) /
			    c->denominator;
	}
	slots = s->m->demands.n > 0;
	return channels > mesh_band_min_channels(s->m, slots)
		       ? channels : mesh_band_min_channels(s->m, slots);
}

int certificate_sum(const struct rwa_mesh *m, struct rwa_certificate *c, struct err *err)
{
	struct sums s;
	int64_t bound = 0;
	int rc;

	sums_init(&s, m, c->prices);
	if (!(rc = sum_capacity(&s, c, err)) && !(rc = price_demands(&s, c, err))) {
		bound = channels_for(&s, c);
	}
	if (bound > RWA_MESH_MAX_CHANNELS) {
		rc = err_set(err, WEFT_EINFEASIBLE,
			     "the demands need %lld channels: %d are supported",
			     (long long)bound, RWA_MESH_MAX_CHANNELS);
	}
	c->bound = (int)bound;
	sums_fini(&s);
	return rc;
}

int rwa_certificate_check(const struct rwa_mesh *m,
			  const struct rwa_certificate *c, struct err *err)
{
	struct rwa_certificate again = { .prices = c->prices };
	int32_t node;
	int rc = certificate_sum(m, &again, err);

	if (!rc && (again.numerator != c->numerator || again.denominator != c->denominator ||
		    again.bound != c->bound)) {
		rc = err_set(err, WEFT_EVERIFY,
			     "the prices prove %d channels (%lld / %lld), not "
			     "%d", again.bound, (long long)again.numerator,
			     (long long)again.denominator, c->bound);
	}
	if (!rc) {
		mesh_ends_bound(m, &again.ends, &node);
	}
	if (!rc && again.ends != c->ends) {
		rc = err_set(err, WEFT_EVERIFY, "the slots at the nodes prove %d channels, not %d",
			     again.ends, c->ends);
	}
	return rc;
}

/* By the price of one lightpath, cross-multiplied to stay in integers. */
static int by_price(const void *a, const void *b)
{
	const struct priced *x = a, *y = b;
	int64_t p = x->price * y->each, q = y->price * x->each;

	return p < q ? -1 : p > q;
}

/* Served by the cheapest first, no set of lightpaths pays less for as many,
 * so that where the slots are used up the most that can fit has been
 * counted. */
int rwa_certificate_fit(const struct rwa_mesh *m, const struct rwa_certificate *c, int channels,
			int64_t *fit, struct err *err)
{
	struct rwa_certificate copy = { .prices = c->prices };
	struct sums s;
	int64_t room, used = 0;
	size_t next = 0;
	int rc;

	*fit = 0;
	sums_init(&s, m, c->prices);
	if (!(rc = sum_capacity(&s, &copy, err))) {
		rc = price_demands(&s, &copy, err);
	}
	room = rc ? 0 : capacity(&s, copy.denominator, channels, &next, &used);
	room = room > 0 ? room : 0;
	if (!rc && s.paths.n) {
		qsort(s.paths.v, s.paths.n, sizeof(*s.paths.v), by_price);
	}
	for (size_t i = 0; !rc && i < s.paths.n; i++) {
		const struct priced *w = &s.paths.v[i];

		if (w->price && room / w->price < w->count) {
			/* Half of a pair may be paid for, and no more. */
			*fit += room * w->each / w->price;
			break;
		}
		*fit += w->count * w->each;
		room -= w->count * w->price;
	}
	sums_fini(&s);
	return rc;
}
