/*
 * The independent checks: an assignment against the mesh, and a certificate
 * by shortest paths in integers. Nothing here knows how either was found.
 */
#include <stdlib.h>

#include "rwa/mesh_private.h"

/* ---- assignments ---- */

struct replay {
	const struct rwa_mesh *m;
	const struct rwa_assignment *a;
	int channels;
	struct u64map taken;	/* slot to path */
	struct u64map shut;
};

static int path_error(const struct replay *r, int64_t path, struct err *err)
{
	const struct rwa_mesh_demand *d =
		&r->m->demands.v[r->a->paths.v[path].demand];
	char from[16], to[16];

	return err_wrap(err, "lightpath %lld, %s -> %s", (long long)path,
			rwa_mesh_node_name(r->m, d->src, from, sizeof(from)),
			rwa_mesh_node_name(r->m, d->dst, to, sizeof(to)));
}

int mesh_shut_init(const struct rwa_mesh *m, struct u64map *shut)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < m->blocks.n; i++) {
		const struct rwa_mesh_block *b = &m->blocks.v[i];

		rc = u64map_set(shut, mesh_slot_key(b->arc, b->fibre,
						    b->channel), 1);
	}
	return rc;
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

static int take_hop(struct replay *r, int64_t path, const struct rwa_hop *h,
		    struct err *err)
{
	uint64_t key, other;

	if (h->arc < 0 || (size_t)h->arc >= r->m->arcs.n) {
		return err_set(err, WEFT_EVERIFY, "arc %d does not exist",
			       h->arc);
	}
	if (h->fibre < 0 || h->fibre >= r->m->arcs.v[h->arc].fibres ||
	    h->channel < 0 || h->channel >= r->channels) {
		return err_set(err, WEFT_EVERIFY,
			       "arc %d: fibre %d channel %d does not exist",
			       h->arc, h->fibre, h->channel);
	}
	if (mesh_is_shut(&r->shut, h)) {
		return err_set(err, WEFT_EVERIFY,
			       "arc %d: fibre %d channel %d must not be used",
			       h->arc, h->fibre, h->channel);
	}
	key = mesh_slot_key(h->arc, h->fibre, h->channel);
	if (u64map_get(&r->taken, key, &other)) {
		return err_set(err, WEFT_EVERIFY,
			       "arc %d: fibre %d channel %d is lightpath %llu's",
			       h->arc, h->fibre, h->channel,
			       (unsigned long long)other);
	}
	return u64map_set(&r->taken, key, (uint64_t)path) ? err_nomem(err) : 0;
}

static int check_path(struct replay *r, int64_t path, struct err *err)
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
		if (i && hops[i].channel != hops[i - 1].channel &&
		    !r->m->nodes.v[at].convert) {
			return err_set(err, WEFT_EVERIFY,
				       "the channel changes at node %d, which "
				       "does not convert", at);
		}
		at = r->m->arcs.v[hops[i].arc].dst;
	}
	if (at != d->dst) {
		return err_set(err, WEFT_EVERIFY, "ends at node %d", at);
	}
	if (r->m->budget_mdb != RWA_MESH_NO_LIMIT &&
	    rwa_mesh_loss_mdb(r->m, hops, p->hops) > r->m->budget_mdb) {
		return err_set(err, WEFT_EVERIFY,
			       "loses more light than the budget allows");
	}
	return 0;
}

/* Lightpaths of every demand, and of every node's ends. */
static int check_counts(const struct replay *r, bool all, struct err *err)
{
	const struct rwa_mesh *m = r->m;
	int64_t *n = calloc(m->demands.n + 2 * m->nodes.n + 1, sizeof(*n));
	int64_t *adds = n ? n + m->demands.n : NULL;
	int64_t *drops = n ? adds + m->nodes.n : NULL;
	int rc = n ? 0 : err_nomem(err);

	for (size_t i = 0; !rc && i < r->a->paths.n; i++) {
		int32_t d = r->a->paths.v[i].demand;

		n[d]++;
		adds[m->demands.v[d].src]++;
		drops[m->demands.v[d].dst]++;
	}
	for (size_t d = 0; !rc && d < m->demands.n; d++) {
		int32_t want = m->demands.v[d].count;

		if (n[d] > want || (all && n[d] < want)) {
			rc = err_set(err, WEFT_EVERIFY,
				     "demand %zu: %lld lightpaths for %d", d,
				     (long long)n[d], want);
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

static int check_shape(const struct replay *r, int64_t path, struct err *err)
{
	const struct rwa_path *p = &r->a->paths.v[path];

	if (p->demand < 0 || (size_t)p->demand >= r->m->demands.n ||
	    p->hops < 1 || p->first < 0 ||
	    (size_t)p->first + (size_t)p->hops > r->a->hops.n) {
		return err_set(err, WEFT_EVERIFY,
			       "lightpath %lld is malformed", (long long)path);
	}
	return 0;
}

int rwa_mesh_check(const struct rwa_mesh *m, const struct rwa_assignment *a,
		   int channels, bool all, struct err *err)
{
	struct replay r = { .m = m, .a = a, .channels = channels };
	int rc = mesh_shut_init(m, &r.shut) ? err_nomem(err) : 0;

	for (int64_t i = 0; !rc && i < (int64_t)a->paths.n; i++) {
		rc = check_shape(&r, i, err);
		if (!rc && check_path(&r, i, err)) {
			rc = path_error(&r, i, err);
		}
	}
	rc = rc ? rc : check_counts(&r, all, err);
	u64map_fini(&r.taken);
	u64map_fini(&r.shut);
	return rc;
}

/* ---- certificates ---- */

struct sums {
	const struct rwa_mesh *m;
	const int64_t *prices;
	struct adjacency out;
	int32_t *fibres;	/* open */
	int64_t *dist;
	int32_t *queue;		/* ring of nodes + 1 */
	bool *queued;
	VEC(int64_t) ways;	/* price of every lightpath's cheapest way, for
				 * each demand: price, count */
};

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
			if (!s->queued[w]) {
				s->queued[w] = true;
				s->queue[tail] = w;
				tail = (tail + 1) % (n + 1);
			}
		}
	}
}

static int unreachable(const struct rwa_mesh *m, int32_t d, struct err *err)
{
	char from[16], to[16];
	const struct rwa_mesh_demand *x = &m->demands.v[d];

	return err_set(err, WEFT_EINFEASIBLE,
		       "demand %d: no way leads from %s to %s", d,
		       rwa_mesh_node_name(m, x->src, from, sizeof(from)),
		       rwa_mesh_node_name(m, x->dst, to, sizeof(to)));
}

/* Prices of the cheapest ways of all demands; demands come in any order, so
 * that sources are recomputed only when they change. */
static int price_demands(struct sums *s, struct rwa_certificate *c,
			 struct err *err)
{
	int32_t source = -1;

	c->numerator = 0;
	for (size_t i = 0; i < s->m->demands.n; i++) {
		const struct rwa_mesh_demand *d = &s->m->demands.v[i];

		if (d->src != source) {
			source = d->src;
			distances(s, source);
		}
		if (s->dist[d->dst] == INT64_MAX) {
			return unreachable(s->m, (int32_t)i, err);
		}
		c->numerator += d->count * s->dist[d->dst];
		if (vec_push(&s->ways, s->dist[d->dst]) ||
		    vec_push(&s->ways, (int64_t)d->count)) {
			return err_nomem(err);
		}
	}
	return 0;
}

static int sums_init(struct sums *s, const struct rwa_mesh *m,
		     const int64_t *prices, struct err *err)
{
	size_t n = m->nodes.n + 1;

	*s = (struct sums){ .m = m, .prices = prices };
	s->fibres = calloc(m->arcs.n + 1, sizeof(*s->fibres));
	s->dist = calloc(n, sizeof(*s->dist));
	s->queue = calloc(n + 1, sizeof(*s->queue));
	s->queued = calloc(n, sizeof(*s->queued));
	if (!s->fibres || !s->dist || !s->queue || !s->queued ||
	    adjacency_init(&s->out, m, false)) {
		return err_nomem(err);
	}
	return mesh_open_fibres(m, s->fibres, err);
}

static void sums_fini(struct sums *s)
{
	free(s->fibres);
	free(s->dist);
	free(s->queue);
	free(s->queued);
	vec_fini(&s->ways);
	adjacency_fini(&s->out);
}

/* Largest price that keeps every sum below 2^62 in any mesh allowed. */
#define MAX_PRICE 1000000

static int sum_capacity(const struct sums *s, struct rwa_certificate *c,
			struct err *err)
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

int certificate_sum(const struct rwa_mesh *m, struct rwa_certificate *c,
		    struct err *err)
{
	struct sums s;
	int64_t bound;
	int rc = sums_init(&s, m, c->prices, err);

	rc = rc ? rc : sum_capacity(&s, c, err);
	rc = rc ? rc : price_demands(&s, c, err);
	if (!rc) {
		bound = (c->numerator + c->denominator - 1) / c->denominator;
		c->bound = (int)(bound ? bound : m->demands.n > 0);
	}
	sums_fini(&s);
	return rc;
}

int rwa_certificate_check(const struct rwa_mesh *m,
			  const struct rwa_certificate *c, struct err *err)
{
	struct rwa_certificate again = { .prices = c->prices };
	int rc = certificate_sum(m, &again, err);

	if (!rc && (again.numerator != c->numerator ||
		    again.denominator != c->denominator ||
		    again.bound != c->bound)) {
		rc = err_set(err, WEFT_EVERIFY,
			     "the prices prove %d channels (%lld / %lld), not "
			     "%d", again.bound, (long long)again.numerator,
			     (long long)again.denominator, c->bound);
	}
	return rc;
}

static int by_price(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int rwa_certificate_fit(const struct rwa_mesh *m,
			const struct rwa_certificate *c, int channels,
			int64_t *fit, struct err *err)
{
	struct rwa_certificate copy = { .prices = c->prices };
	struct sums s;
	int64_t room;
	int rc = sums_init(&s, m, c->prices, err);

	*fit = 0;
	rc = rc ? rc : sum_capacity(&s, &copy, err);
	rc = rc ? rc : price_demands(&s, &copy, err);
	room = rc ? 0 : copy.denominator * channels;
	if (!rc && s.ways.n) {
		qsort(s.ways.v, s.ways.n / 2, 2 * sizeof(*s.ways.v), by_price);
	}
	for (size_t i = 0; !rc && i < s.ways.n; i += 2) {
		int64_t price = s.ways.v[i], count = s.ways.v[i + 1];
		int64_t take = price && room / price < count ? room / price
							     : count;

		*fit += take;
		room -= take * price;
	}
	sums_fini(&s);
	return rc;
}
