/*
 * What to aim for once the number of channels is known: as few lightpaths
 * moved as possible, or the longest loss as short as possible.
 *
 * Fewest moved: the search at that number of channels begins with every
 * lightpath of the assignment before that may stay where it is, its penalty
 * high, so that the others go around it. Then lightpaths that had to move are
 * put back where they were, one after the other, with whoever is in the way
 * ejected, and what comes out is kept when it is no worse.
 *
 * Bound: by the certificate's prices all lightpaths together pay at most what
 * the channels hold, and each at least its cheapest path. One that stays pays
 * its present path. So only so many can stay as the difference pays for,
 * those first whose path is hardly more expensive than the cheapest.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/graph/graph.h"
#include "rwa/mesh/private.h"

#define PENALTY_STAYS 64	/* at first; a quarter when that is too much */
#define PENALTY_BACK 256
#define EFFORT_FIRST 20		/* lightpaths placed, for each there is */
#define EFFORT_FIRST_LEAST 4000
#define EFFORT_BACK 4
#define EFFORT_BACK_LEAST 200
#define BACKS_MOST 2000		/* times that one is put back */

/* The state of one objective. `fits` and `stays` go by the paths of
 * `before`, of which `staying` stay; `res` holds a complete answer at any
 * time, so that the work may stop anywhere. */
struct target {
	const struct rwa_mesh *m;
	const struct rwa_assignment *before;	/* demands are m's */
	struct mesh_search *search;
	struct rwa_mesh_result *res;
	struct mesh_stop stop;
	int64_t size;		/* lightpaths to be served */
	bool *fits;		/* path of `before`: could stay by itself */
	bool *stays;		/* path of `before`: does, in res */
	int64_t staying;
	struct rng rng;
};

/* Same demand, same hops in the same order. */
static bool same_path(const struct rwa_assignment *a, size_t i,
		     const struct rwa_assignment *b, size_t k)
{
	const struct rwa_path *p = &a->paths.v[i], *q = &b->paths.v[k];

	return p->demand == q->demand && p->hops == q->hops &&
	       memcmp(a->hops.v + p->first, b->hops.v + q->first,
		      (size_t)p->hops * sizeof(struct rwa_hop)) == 0;
}

/* Which paths of `before` stay in `a`: both have their paths by demand, and
 * no two paths of one assignment are the same. */
static int64_t find_staying(const struct rwa_assignment *before,
			    const struct rwa_assignment *a, bool *stays)
{
	size_t k = 0;
	int64_t n = 0;

	for (size_t i = 0; i < before->paths.n; i++) {
		int32_t d = before->paths.v[i].demand;

		stays[i] = false;
		while (k < a->paths.n && a->paths.v[k].demand < d) {
			k++;
		}
		for (size_t j = k; j < a->paths.n && a->paths.v[j].demand == d; j++) {
			stays[i] |= same_path(before, i, a, j);
		}
		n += stays[i];
	}
	return n;
}

/* Appends a copy of path i and its hops. WEFT_ENOMEM. */
static int add_path(struct rwa_assignment *out, const struct rwa_assignment *a, size_t i)
{
	struct rwa_path p = a->paths.v[i];
	const struct rwa_hop *hop = a->hops.v + p.first;

	p.first = (int64_t)out->hops.n;
	if (vec_reserve(&out->hops, (size_t)p.hops)) {
		return WEFT_ENOMEM;
	}
	memcpy(out->hops.v + out->hops.n, hop, (size_t)p.hops * sizeof(*hop));
	out->hops.n += (size_t)p.hops;
	return vec_push(&out->paths, p);
}

/* Lightpaths that a demand wants. */
static int64_t wanted(const struct rwa_mesh_demand *d)
{
	return (int64_t)d->count * (d->protect ? 2 : 1);
}

/* True when the assignment keeps all rules at the answer's channels. */
static bool passes(const struct target *t, const struct rwa_assignment *a)
{
	return rwa_mesh_check(t->m, a, t->res->channels, false, NULL) == 0;
}

/* The mesh with halves of pairs as lightpaths of their own. Borrows all but
 * the demands; NULL demands when memory is short. */
static struct rwa_mesh without_pairs(const struct rwa_mesh *m)
{
	struct rwa_mesh loose = *m;
	size_t n = m->demands.n;

	loose.demands.v = calloc(n + 1, sizeof(*loose.demands.v));
	for (size_t d = 0; loose.demands.v && d < n; d++) {
		loose.demands.v[d] = m->demands.v[d];
		loose.demands.v[d].protect = false;
		loose.demands.v[d].count = (int32_t)wanted(&m->demands.v[d]);
	}
	return loose;
}

/* Which lightpaths could stay if they were alone. When all of them together
 * pass the check, as is usual, each does by itself; only otherwise is the
 * check run for each. Halves of pairs are looked at one by one. */
static int find_fitting(struct target *t)
{
	struct rwa_mesh loose = without_pairs(t->m);
	int channels = t->res->channels;
	bool all = loose.demands.v && !rwa_mesh_check(&loose, t->before, channels, false, NULL);
	int rc = loose.demands.v ? 0 : WEFT_ENOMEM;

	for (size_t i = 0; !rc && i < t->before->paths.n; i++) {
		struct rwa_assignment one = { 0 };

		rc = all ? 0 : add_path(&one, t->before, i);
		t->fits[i] = all || (!rc && !rwa_mesh_check(&loose, &one, channels, false, NULL));
		rwa_assignment_fini(&one);
	}
	free(loose.demands.v);
	return rc;
}

/* ---- bound ---- */

/* Paths of least cost: of arcs, and, when it is their loss, of nodes passed. */
struct min_paths {
	const struct rwa_mesh *m;
	const int64_t *prices;	/* of arcs; NULL: their loss */
	struct mesh_adjacency out;
	int64_t *dist;
	struct graph_queue queue;
};

/* Cost of an arc on a path from src: its price, or its loss and that of
 * passing the node before it. */
static int64_t step_cost(const struct min_paths *w, int32_t src, int32_t arc)
{
	const struct rwa_mesh_arc *a = &w->m->arcs.v[arc];

	if (w->prices) {
		return w->prices[arc];
	}
	return a->loss_mdb +
	       (a->src == src ? 0 : w->m->nodes.v[a->src].pass_mdb);
}

/* Distances from one node by Bellman-Ford with a queue; INT64_MAX where no
 * path leads. O(nodes * arcs). */
static void search_from_node(struct min_paths *w, int32_t src)
{
	int32_t v;

	for (size_t u = 0; u < w->m->nodes.n; u++) {
		w->dist[u] = INT64_MAX;
	}
	w->dist[src] = 0;
	graph_queue_put(&w->queue, src);
	while ((v = graph_queue_take(&w->queue)) >= 0) {
		for (int32_t k = w->out.first[v]; k < w->out.first[v + 1]; k++) {
			int32_t e = w->out.arc[k], to = w->m->arcs.v[e].dst;
			int64_t d = w->dist[v] + step_cost(w, src, e);

			if (d < w->dist[to]) {
				w->dist[to] = d;
				graph_queue_put(&w->queue, to);
			}
		}
	}
}

/* Cost of the cheapest path of every demand, INT64_MAX where there is none. */
static int cheapest_paths(const struct rwa_mesh *m, const int64_t *prices, int64_t *path)
{
	struct min_paths w = { .m = m, .prices = prices };
	int rc = 0;

	w.dist = calloc(m->nodes.n + 1, sizeof(*w.dist));
	if (adjacency_init(&w.out, m, false) || !w.dist ||
	    graph_queue_init(&w.queue, (int)m->nodes.n)) {
		rc = WEFT_ENOMEM;
		goto out;
	}
	for (int32_t v = 0; v < (int32_t)m->nodes.n; v++) {
		bool any = false;

		for (size_t d = 0; d < m->demands.n; d++) {
			if (m->demands.v[d].src == v) {
				if (!any) {
					search_from_node(&w, v);
				}
				any = true;
				path[d] = w.dist[m->demands.v[d].dst];
			}
		}
	}
out:
	adjacency_fini(&w.out);
	free(w.dist);
	graph_queue_fini(&w.queue);
	return rc;
}

static int ascending(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* What each that fits pays beyond the cheapest path, for every demand no more
 * of them than it wants, the least first. Returns how many. */
static size_t excesses(const struct target *t, const int64_t *path, int64_t *excess)
{
	const struct rwa_assignment *b = t->before;
	size_t n = 0, max;

	for (size_t i = 0, k; i < b->paths.n; i = k) {
		const struct rwa_mesh_demand *d = &t->m->demands.v[b->paths.v[i].demand];
		size_t first = n;

		for (k = i; k < b->paths.n && b->paths.v[k].demand == b->paths.v[i].demand; k++) {
			const struct rwa_path *p = &b->paths.v[k];

			excess[n] = -path[p->demand];
			for (int32_t h = 0; h < p->hops; h++) {
				int32_t e = b->hops.v[p->first + h].arc;

				excess[n] += t->res->certificate.prices[e];
			}
			n += t->fits[k];
		}
		qsort(excess + first, n - first, sizeof(*excess), ascending);
		max = (size_t)wanted(d);
		n = n - first > max ? first + max : n;
	}
	qsort(excess, n, sizeof(*excess), ascending);
	return n;
}

/* Lightpaths that the demands of both have. */
static int64_t common(const struct target *t)
{
	const struct rwa_assignment *b = t->before;
	int64_t n = 0;

	for (size_t i = 0, k; i < b->paths.n; i = k) {
		const struct rwa_mesh_demand *d = &t->m->demands.v[b->paths.v[i].demand];
		for (k = i; k < b->paths.n && b->paths.v[k].demand == b->paths.v[i].demand;) {
			k++;
		}
		n += (int64_t)(k - i) < wanted(d) ? (int64_t)(k - i)
						  : wanted(d);
	}
	return n;
}

/* The bound at the head of this file: slack is what the channels hold
 * beyond the cheapest paths of all demands, and is spent on the excesses of
 * those that stay, the least first. When not all are served, no one knows
 * whose cheapest paths are paid, and the prices say nothing. */
static int bound_moved(struct target *t)
{
	const struct rwa_certificate *c = &t->res->certificate;
	int64_t *path = calloc(t->m->demands.n + 1, sizeof(*path));
	int64_t *excess = calloc(t->before->paths.n + 1, sizeof(*excess));
	int64_t slack = c->denominator * t->res->channels;
	size_t n, stay = 0;
	int rc = path && excess ? cheapest_paths(t->m, c->prices, path)
			       : WEFT_ENOMEM;

	if (!rc) {
		for (size_t d = 0; d < t->m->demands.n; d++) {
			slack -= path[d] * wanted(&t->m->demands.v[d]);
		}
		if (t->size < t->m->lightpaths) {
			slack = INT64_MAX;	/* no one knows who is served */
		}
		n = excesses(t, path, excess);
		for (; stay < n && excess[stay] <= slack; stay++) {
			slack -= excess[stay];
		}
		t->res->moved_bound = common(t) - (int64_t)stay;
	}
	free(path);
	free(excess);
	return rc;
}

/* ---- channels ---- */

/* Weight of calling channel c of the answer c': lightpaths that then stay.
 * Only pairs that have any are edges. */
static int channel_weights(const struct target *t, struct u64map *weights)
{
	const struct rwa_assignment *b = t->before, *a = &t->res->assignment;
	size_t k = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < b->paths.n; i++) {
		const struct rwa_path *p = &b->paths.v[i];

		while (k < a->paths.n && a->paths.v[k].demand < p->demand) {
			k++;
		}
		for (size_t j = k; !rc && t->fits[i] && j < a->paths.n &&
				   a->paths.v[j].demand == p->demand; j++) {
			const struct rwa_path *q = &a->paths.v[j];
			const struct rwa_hop *x = b->hops.v + p->first;
			const struct rwa_hop *y = a->hops.v + q->first;
			uint64_t key = (uint64_t)y->channel << 32 |
				       (uint64_t)x->channel, w = 0;
			bool same = p->hops == q->hops;

			for (int32_t h = 0; same && h < p->hops; h++) {
				same = x[h].arc == y[h].arc && x[h].fibre == y[h].fibre &&
					x[h].channel == x->channel && y[h].channel == y->channel;
			}
			if (same) {
				u64map_get(weights, key, &w);
				rc = u64map_set(weights, key, w + 1);
			}
		}
	}
	return rc;
}

/* Channel `from` of the answer could be called `to`; number: of the arc in
 * the flow network, to ask for its flow. */
struct channel_edge {
	int from, to, number;
};

/* A matching of the answer's channels and names with the largest weight, as
 * a minimum-cost flow: source 2n, channels 0..n-1, names n..2n-1, sink
 * 2n+1. name[c] stays -1 where the matching says nothing. */
static int match_channels(struct u64map *weights, int n, int32_t *name, struct err *err)
{
	VEC(struct channel_edge) edges = { 0 };
	struct graph_flow *f;
	int rc = graph_flow_new(2 * n + 2, &f, err);

	for (int c = 0; !rc && c < n; c++) {
		if (!(rc = graph_flow_add(f, 2 * n, c, 1, 0, NULL, err))) {
			rc = graph_flow_add(f, n + c, 2 * n + 1, 1, 0, NULL, err);
		}
	}
	for (int c = 0; !rc && c < n; c++) {
		for (int d = 0; !rc && d < n; d++) {
			struct channel_edge e = { c, d, 0 };
			uint64_t w;

			if (!u64map_get(weights, (uint64_t)c << 32 | (uint64_t)d, &w)) {
				continue;
			}
			rc = graph_flow_add(f, c, n + d, 1, -(int64_t)w, &e.number, err);
			if (!rc && vec_push(&edges, e)) {
				rc = err_nomem(err);
			}
		}
	}
	if (!rc) {
		rc = graph_flow_run(f, 2 * n, 2 * n + 1, 0, NULL, NULL, err);
	}
	for (size_t k = 0; !rc && k < edges.n; k++) {
		if (graph_flow_on(f, edges.v[k].number)) {
			name[edges.v[k].from] = edges.v[k].to;
		}
	}
	vec_fini(&edges);
	graph_flow_free(f);
	return rc;
}

/* Channels without a partner take the names that are left, in order. */
static int name_rest(int n, int32_t *name)
{
	bool *taken = calloc((size_t)n + 1, sizeof(*taken));
	int next = 0;

	if (!taken) {
		return WEFT_ENOMEM;
	}
	for (int c = 0; c < n; c++) {
		if (name[c] >= 0) {
			taken[name[c]] = true;
		}
	}
	for (int c = 0; c < n; c++) {
		while (name[c] < 0 && taken[next]) {
			next++;
		}
		name[c] = name[c] < 0 ? next++ : name[c];
	}
	free(taken);
	return 0;
}

/* Gives the answer's channels the names with which most lightpaths stay.
 * The search has no reason to use the numbers of `before`, so that this
 * alone keeps many in place. Where blocks or tuning ranges make channels
 * differ the result may break a rule, and then is taken back. */
static int rename_channels(struct target *t, struct err *err)
{
	struct rwa_assignment *a = &t->res->assignment;
	int n = t->res->channels, rc;
	int32_t *name = malloc(((size_t)n + 1) * sizeof(*name));
	int32_t *was = malloc((a->hops.n + 1) * sizeof(*was));
	struct u64map weights = { 0 };

	rc = name && was && !channel_weights(t, &weights) ? 0 : err_nomem(err);
	for (int c = 0; !rc && c < n; c++) {
		name[c] = -1;
	}
	if (!rc) {
		rc = match_channels(&weights, n, name, err);
	}
	if (!rc && name_rest(n, name)) {
		rc = err_nomem(err);
	}
	for (size_t h = 0; !rc && h < a->hops.n; h++) {
		was[h] = a->hops.v[h].channel;
		a->hops.v[h].channel = name[was[h]];
	}
	if (!rc && !passes(t, a)) {
		for (size_t h = 0; h < a->hops.n; h++) {
			a->hops.v[h].channel = was[h];
		}
	}
	u64map_fini(&weights);
	free(name);
	free(was);
	return rc;
}

/* ---- search ---- */

/* Runs the search from a partial assignment without clashes. When *all are
 * served and no fewer stay than before, the answer is taken over; *better:
 * more do. */
static int search_from(struct target *t, const struct rwa_assignment *begin,
		       const int32_t *penalties, int64_t effort, bool *better,
		       bool *all, struct err *err)
{
	struct rwa_assignment now = { 0 };
	int64_t served = 0, staying;
	bool *stays = calloc(t->before->paths.n + 1, sizeof(*stays));
	int rc = stays ? search_begin(t->search, t->res->channels, begin, penalties, err)
		       : err_nomem(err);

	*better = false;
	if (!rc) {
		rc = search_run(t->search, t->size, effort, &t->stop, &served, err);
	}
	*all = !rc && served >= t->size;
	if (!*all) {
		goto out;
	}
	rc = search_best(t->search, &now, err);
	staying = rc ? -1 : find_staying(t->before, &now, stays);
	if (staying >= t->staying && passes(t, &now)) {
		rwa_assignment_fini(&t->res->assignment);
		t->res->assignment = now;
		now = (struct rwa_assignment){ 0 };
		memcpy(t->stays, stays, t->before->paths.n * sizeof(*stays));
		*better = staying > t->staying;
		t->staying = staying;
	}
out:
	rwa_assignment_fini(&now);
	free(stays);
	return rc;
}

/* Everything that may stay, as far as it fits together. */
static int begin_staying(struct target *t, int32_t penalty, bool *served, struct err *err)
{
	const struct rwa_assignment *b = t->before;
	struct rwa_assignment begin = { 0 };
	int32_t *penalties = calloc(b->paths.n + 1, sizeof(*penalties));
	int64_t effort = t->m->lightpaths * EFFORT_FIRST;
	int rc = penalties ? 0 : WEFT_ENOMEM;
	bool better;

	*served = false;
	for (size_t i = 0; !rc && i < b->paths.n; i++) {
		penalties[begin.paths.n] = penalty;
		rc = t->fits[i] ? add_path(&begin, b, i) : 0;
	}
	if (rc) {
		rc = err_nomem(err);
	}
	/* More of a demand than it wants now, or they clash: the search takes
	 * what it can. */
	if (!rc) {
		rc = search_from(t, &begin, penalties,
				 effort < EFFORT_FIRST_LEAST
					 ? EFFORT_FIRST_LEAST : effort,
				 &better, served, err);
	}
	rwa_assignment_fini(&begin);
	free(penalties);
	return rc;
}

/* The answer with path `back` of `before` first, so that whatever clashes with
 * it is left out. */
static int put_back(struct target *t, size_t back, bool *better, struct err *err)
{
	const struct rwa_assignment *a = &t->res->assignment;
	struct rwa_assignment begin = { 0 };
	int32_t *penalties = calloc(a->paths.n + 2, sizeof(*penalties));
	int64_t effort = t->m->lightpaths * EFFORT_BACK;
	bool *stays = calloc(a->paths.n + 1, sizeof(*stays)), all;
	int rc = penalties && stays ? 0 : WEFT_ENOMEM;

	if (!rc) {
		find_staying(a, t->before, stays);
		penalties[0] = PENALTY_BACK;
		rc = add_path(&begin, t->before, back);
	}
	/* Those that stay already come before those that give way. */
	for (int round = 1; round >= 0; round--) {
		for (size_t i = 0; !rc && i < a->paths.n; i++) {
			if (stays[i] == round) {
				penalties[begin.paths.n] = round ? PENALTY_STAYS : 1;
				rc = add_path(&begin, a, i);
			}
		}
	}
	if (rc) {
		rc = err_nomem(err);
	}
	if (!rc) {
		rc = search_from(t, &begin, penalties,
				 effort < EFFORT_BACK_LEAST ? EFFORT_BACK_LEAST
							    : effort,
				 better, &all, err);
	}
	rwa_assignment_fini(&begin);
	free(penalties);
	free(stays);
	return rc;
}

/* Puts back one after the other, until a whole round brought nothing. */
static int put_all_back(struct target *t, struct err *err)
{
	size_t n = t->before->paths.n, calm = 0;
	size_t at = n ? rng_below(&t->rng, n) : 0;
	int rc = 0;

	for (int k = 0; !rc && calm < n && k < BACKS_MOST &&
			common(t) - t->staying > t->res->moved_bound &&
			!stop_now(&t->stop);) {
		bool better = false;
		const struct rwa_path *p = &t->before->paths.v[at];

		/* A pair would have to go back together. */
		if (t->fits[at] && !t->stays[at] && !t->m->demands.v[p->demand].protect) {
			rc = put_back(t, at, &better, err);
			k++;
		}
		calm = better ? 0 : calm + 1;
		at = (at + 1) % n;
	}
	return rc;
}

int mesh_min_moved(const struct rwa_mesh *m, struct mesh_search *search,
		   const struct rwa_assignment *before, const struct mesh_stop *stop,
		   struct rwa_mesh_result *res, struct err *err)
{
	struct target t = { .m = m, .before = before, .search = search,
			    .res = res, .stop = *stop };
	size_t n = before->paths.n + 1;
	bool all = false;
	int rc;

	t.size = (int64_t)res->assignment.paths.n;
	t.fits = calloc(n, sizeof(*t.fits));
	t.stays = calloc(n, sizeof(*t.stays));
	rng_seed(&t.rng, (uint64_t)before->paths.n);
	if (!t.fits || !t.stays || find_fitting(&t) || bound_moved(&t)) {
		rc = err_nomem(err);
		goto out;
	}
	if (!(rc = rename_channels(&t, err))) {
		t.staying = find_staying(before, &res->assignment, t.stays);
	}
	/* With a high penalty what is in place stays there, but the search
	 * may find no room for the rest; then it may eject more easily. */
	for (int32_t p = PENALTY_STAYS; !rc && p && !all; p /= 4) {
		rc = begin_staying(&t, p, &all, err);
	}
	if (!rc && !(rc = put_all_back(&t, err))) {
		res->moved = common(&t) - t.staying;
	}
out:
	free(t.fits);
	free(t.stays);
	return rc;
}

/* ---- loss ---- */

/* The largest loss of any lightpath, 0 when there is none. */
static int64_t longest_loss(const struct rwa_mesh *m, const struct rwa_assignment *a)
{
	int64_t longest = 0;

	for (size_t i = 0; i < a->paths.n; i++) {
		const struct rwa_path *p = &a->paths.v[i];
		int64_t loss = rwa_mesh_loss_mdb(m, a->hops.v + p->first, p->hops);

		longest = loss > longest ? loss : longest;
	}
	return longest;
}

/* Loss of a demand's best path, without add and drop, and its lightpaths. */
struct demand_loss {
	int64_t loss;
	int64_t count;
};

static int by_loss(const void *a, const void *b)
{
	const struct demand_loss *x = a, *y = b;

	return x->loss < y->loss ? -1 : x->loss > y->loss;
}

/* Of as many lightpaths one at least loses this much: the least losses of all
 * demands, the shortest first. */
static int bound_loss(const struct rwa_mesh *m, int64_t lightpaths, int64_t *bound)
{
	size_t n = m->demands.n;
	struct demand_loss *v = calloc(n + 1, sizeof(*v));
	int64_t *path = calloc(n + 1, sizeof(*path));
	int rc = v && path ? cheapest_paths(m, NULL, path) : WEFT_ENOMEM;

	*bound = 0;
	for (size_t d = 0; !rc && d < n; d++) {
		const struct rwa_mesh_demand *x = &m->demands.v[d];

		v[d] = (struct demand_loss){
			path[d], wanted(x),
		};
	}
	if (!rc) {
		qsort(v, n, sizeof(*v), by_loss);
	}
	for (size_t d = 0; !rc && d < n && lightpaths > 0; d++) {
		lightpaths -= v[d].count;
		*bound = v[d].loss + m->add_mdb + m->drop_mdb;
	}
	free(v);
	free(path);
	return rc;
}

/* The search under a budget, at the channels of `res`. *done: as many are
 * served, and the answer has been taken over. */
static int within(const struct rwa_mesh *m, int64_t budget,
		  const struct rwa_mesh_options *opt, const struct mesh_stop *stop,
		  struct rwa_mesh_result *res, bool *done, struct err *err)
{
	struct rwa_mesh trial = *m;	/* borrows everything */
	int64_t effort = m->lightpaths * EFFORT_FIRST, served = 0;
	struct rwa_assignment now = { 0 };
	struct mesh_search *s;
	int rc;

	*done = false;
	trial.budget_mdb = budget;
	effort = effort < EFFORT_FIRST_LEAST ? EFFORT_FIRST_LEAST : effort;
	rc = search_new(&trial, res->certificate.prices, NULL, opt->seed, opt->channels > 0, &s, err);
	if (rc == WEFT_EINFEASIBLE) {
		return 0;	/* some demand has no path that short */
	}
	if (!rc && !(rc = search_set_channels(s, res->channels, err))) {
		rc = search_run(s, (int64_t)res->assignment.paths.n, effort, stop, &served, err);
	}
	if (!rc && served == (int64_t)res->assignment.paths.n) {
		rc = search_best(s, &now, err);
	}
	if (!rc && now.paths.n == res->assignment.paths.n &&
	    rwa_mesh_check(&trial, &now, res->channels, false, NULL) == 0) {
		rwa_assignment_fini(&res->assignment);
		res->assignment = now;
		now = (struct rwa_assignment){ 0 };
		*done = true;
	}
	rwa_assignment_fini(&now);
	search_free(s);
	return rc;
}

/* Bisection between the bound and the longest loss so far. A budget that
 * the search can keep lowers the top to what was reached; any other raises
 * the bottom, although a search that fails proves nothing: loss_bound_mdb
 * stays what bound_loss() says. */
int mesh_min_max_loss(const struct rwa_mesh *m, const struct rwa_mesh_options *opt,
		      const struct mesh_stop *stop, struct rwa_mesh_result *res, struct err *err)
{
	int64_t low = 0;
	int rc = bound_loss(m, (int64_t)res->assignment.paths.n, &low)
			 ? err_nomem(err) : 0;

	res->loss_bound_mdb = low;
	res->loss_mdb = longest_loss(m, &res->assignment);
	while (!rc && low < res->loss_mdb && !stop_now(stop)) {
		int64_t budget = low + (res->loss_mdb - low) / 2;
		bool done;

		rc = within(m, budget, opt, stop, res, &done, err);
		if (done) {
			res->loss_mdb = longest_loss(m, &res->assignment);
		} else {
			low = budget + 1;
		}
	}
	return rc;
}
