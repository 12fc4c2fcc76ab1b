/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement of requested jobs: which hosts a job of n hosts or ranks gets.
 *
 * Hosts of as many ranks whose ports reach the same devices form a group; within a group any
 * topology fits as well as another. A job goes into the smallest group that
 * has room, so that large groups stay whole; if none has, it takes hosts from
 * the largest groups on. On a ring it takes the stretch of neighbours that leaves
 * the fewest unused nodes between them.
 */
#include "controller/plan/plan.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "topology/topology.h"

/* ---- hosts on switches --------------------------------------------------- */

/* A host and the group it belongs to. */
struct place_candidate {
	int host;
	int group;	/* a host's number that stands for the group */
	int size;	/* of the group, free hosts only */
};

struct place_search {
	const struct model_fabric *f;
	struct place_request *demand;
	const bool *usable, *busy;
	int n;
	struct place_candidate *v;	/* in order of hosts */
};

static int ports_with_light(const struct model_fabric *f, int host)
{
	const struct model_host *h = &f->hosts[host];
	int n = 0;

	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		n += f->ports[p].tx_device >= 0 && f->ports[p].rx_device >= 0;
	}
	return n;
}

static bool may_run(const struct model_fabric *f, const struct place_request *w, int host)
{
	int ports = ports_with_light(f, host);

	return ports > 0 && ports >= w->min_ports;
}

bool place_alike(const struct model_fabric *f, int a, int b)
{
	const struct model_host *x = &f->hosts[a], *y = &f->hosts[b];

	if (x->n_ports != y->n_ports || x->ranks != y->ranks) {
		return false;
	}
	for (int i = 0; i < x->n_ports; i++) {
		const struct model_port *p = &f->ports[x->first_port + i];
		const struct model_port *q = &f->ports[y->first_port + i];

		if (p->tx_device != q->tx_device || p->rx_device != q->rx_device) {
			return false;
		}
	}
	return true;
}

static bool is_free(const struct place_search *s, int host)
{
	return (!s->usable || s->usable[host]) && (!s->busy || !s->busy[host]);
}

/* Groups are few: each is found by its first host. */
static void find_groups(struct place_search *s)
{
	int *heads = x_new((size_t)s->n + 1, sizeof(*heads));
	int n_heads = 0;

	for (int i = 0; i < s->n; i++) {
		int k = 0;

		while (k < n_heads && !place_alike(s->f, s->v[heads[k]].host, s->v[i].host)) {
			k++;
		}
		if (k == n_heads) {
			heads[n_heads++] = i;
		}
		s->v[i].group = heads[k];
		s->v[heads[k]].size++;
	}
	for (int i = 0; i < s->n; i++) {
		s->v[i].size = s->v[s->v[i].group].size;
	}
	free(heads);
}

static int larger_first(const void *a, const void *b)
{
	const struct place_candidate *x = a, *y = b;

	if (x->size != y->size) {
		return x->size > y->size ? -1 : 1;
	}
	if (x->group != y->group) {
		return x->group < y->group ? -1 : 1;
	}
	return (x->host > y->host) - (x->host < y->host);
}

/* The smallest group that is large enough, or -1. */
static int best_group(const struct place_search *s)
{
	int best = -1;

	for (int i = 0; i < s->n; i++) {
		const struct place_candidate *c = &s->v[i];

		if (c->size >= s->demand->n && (best < 0 || c->size < s->v[best].size)) {
			best = i;
		}
	}
	return best < 0 ? -1 : s->v[best].group;
}

static int compare_ints(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static void choose(struct place_search *s, int *out)
{
	int group = best_group(s), n = 0;

	if (group < 0) {
		qsort(s->v, (size_t)s->n, sizeof(*s->v), larger_first);
	}
	for (int i = 0; i < s->n && n < s->demand->n; i++) {
		if (group < 0 || s->v[i].group == group) {
			out[n++] = s->v[i].host;
		}
	}
	qsort(out, (size_t)n, sizeof(*out), compare_ints);
}

static int too_few(const struct place_request *w, int have, int ever, const char *what,
		   struct err *err)
{
	const char *wanted = w->n == 1 ? "host is wanted" : "hosts are wanted";

	if (ever < w->n) {
		return err_set(err, WEFT_EINVAL, "%d %s, and there are %d %s", w->n, wanted, ever,
			       what);
	}
	return err_set(err, WEFT_EINFEASIBLE, "%d %s, and %d of %d %s are free", w->n, wanted, have,
		       ever, what);
}

/* min_ports becomes at least what any node of the topology needs. Its size bounds what building
 * it costs. *fits: it has a node a host; else WEFT_EINVAL where hosts are counted. */
static int need_degree(struct place_request *w, bool *fits, struct err *err)
{
	struct topo *t = NULL;
	int64_t nodes = w->n, arcs = 0;
	int rc = 0, *degree;

	*fits = true;
	if (!w->topology || !w->topology[0] || strcmp(w->topology, "auto") == 0) {
		return 0;
	}
	if (!model_is_arcs(w->topology)) {
		rc = topo_parse_size(w->topology, &nodes, &arcs, err);
	}
	if (rc == 0 && nodes == w->n && arcs <= MODEL_MAX_PORTS) {
		rc = model_topology(w->topology, &t, NULL, err);
	}
	nodes = t ? topo_n(t) : nodes;
	*fits = nodes == w->n;
	if (rc == 0 && !*fits && !w->ranks) {
		rc = err_set(err, WEFT_EINVAL, "topology: %.80s has %" PRId64 " nodes, the job "
			     "has %d hosts", w->topology, nodes, w->n);
	}
	if (rc || !*fits || !t) {
		topo_free(t);
		return rc;
	}
	degree = x_new(2 * (size_t)topo_n(t), sizeof(*degree));
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *x = topo_arc(t, a);

		degree[2 * x->src] += x->src != x->dst;
		degree[2 * x->dst + 1] += x->src != x->dst;
	}
	for (int i = 0; i < 2 * topo_n(t); i++) {
		w->min_ports = degree[i] > w->min_ports ? degree[i] : w->min_ports;
	}
	free(degree);
	topo_free(t);
	return 0;
}

/* Free hosts of so many ranks into s->v. Returns how many there are in all. */
static int collect(struct place_search *s, int ranks)
{
	int ever = 0;

	s->n = 0;
	for (int h = 0; h < s->f->n_hosts; h++) {
		/* Cubes have slices only. */
		if (s->f->hosts[h].ranks == ranks && !s->f->hosts[h].side[0] &&
		    may_run(s->f, s->demand, h)) {
			ever++;
			if (is_free(s, h)) {
				s->v[s->n++] = (struct place_candidate){ .host = h };
			}
		}
	}
	return ever;
}

/* The next number of ranks that hosts have, more than `after`, or fewer; 0: none. */
static int next_ranks(const struct model_fabric *f, int after, bool fewer)
{
	int next = 0;

	for (int h = 0; h < f->n_hosts; h++) {
		int r = f->hosts[h].ranks;

		if (fewer ? r < after && r > next : r > after && (!next || r < next)) {
			next = r;
		}
	}
	return next;
}

/* Hosts of equally many ranks, as few where hosts are counted, else as many as there are ever
 * enough hosts of. */
static int place_any(struct place_search *s, int *out, struct err *err)
{
	struct place_request *w = s->demand;
	const int ranks = w->ranks, n = w->n, ports = w->min_ports;
	int most = -1, rc = 0, r = ranks ? INT_MAX : 0;

	s->v = x_new((size_t)s->f->n_hosts + 1, sizeof(*s->v));
	while ((r = next_ranks(s->f, r, ranks > 0)) > 0) {
		int ever, wrong;
		bool fits;

		if (ranks && (ranks % r || ranks / r < 2)) {
			continue;
		}
		w->n = ranks ? ranks / r : n;
		w->min_ports = ports;
		if ((wrong = need_degree(w, &fits, err))) {
			rc = wrong;
			break;
		}
		if (ranks && !fits) {
			continue;
		}
		ever = collect(s, r);
		if (ever > most) {
			most = ever;
			rc = s->n < w->n ? too_few(w, s->n, ever, "with enough ports", err) : 0;
		}
		if (ever >= w->n) {
			break;
		}
	}
	if (rc == 0 && most < 0) {
		rc = err_set(err, WEFT_EINVAL, "%d ranks are not those of two or more hosts of "
			     "equally many%s", ranks,
			     w->topology && w->topology[0] ? ", nodes of the topology" : "");
	} else if (rc == 0) {
		find_groups(s);
		choose(s, out);
	}
	free(s->v);
	return rc;
}

/* ---- hosts that were named ----------------------------------------------- */

static int place_named(const struct place_search *s, int *out, struct err *err)
{
	const struct place_request *w = s->demand;
	int ranks = 0;

	for (int i = 0; i < w->n; i++) {
		ranks += s->f->hosts[w->hosts[i]].ranks;
	}
	if (w->ranks && w->ranks != ranks) {
		return err_set(err, WEFT_EINVAL, "%d ranks are wanted, and the hosts have %d",
			       w->ranks, ranks);
	}
	for (int i = 0; i < w->n; i++) {
		int h = w->hosts[i];

		if (w->ring < 0 && !may_run(s->f, w, h)) {
			return err_set(err, WEFT_EINVAL, "host %s has too few "
				       "ports with fibres", s->f->hosts[h].name);
		}
		if (s->usable && !s->usable[h]) {
			return err_set(err, WEFT_EINFEASIBLE, "host %s is not "
				       "usable now", s->f->hosts[h].name);
		}
		if (w->ring < 0 && s->busy && s->busy[h]) {
			return err_set(err, WEFT_EINFEASIBLE, "host %s is in "
				       "use", s->f->hosts[h].name);
		}
		out[i] = h;
	}
	return 0;
}

/* ---- slices -------------------------------------------------------------- */

/* How many cubes like this one the slice has, with its spares; 0: none such. */
static int64_t cubes_of(const struct place_request *w, const int side[3])
{
	int64_t n = 1;

	for (int axis = 0; axis < 3; axis++) {
		n *= side[axis] && w->shape[axis] % side[axis] == 0 && w->shape[axis] > 2
			     ? w->shape[axis] / side[axis] : 0;
	}
	return n > 0 ? n + w->spares : 0;
}

/* The first cubes that a shape is made of, and all that are like these: free ones into v, *n of
 * them. Returns how many there are in all. */
static int collect_cubes(const struct place_search *s, int *v, int *n, const int **side)
{
	int ever = 0;

	for (int h = 0; h < s->f->n_hosts; h++) {
		const struct model_host *host = &s->f->hosts[h];

		*side = !*side && cubes_of(s->demand, host->side) > 0 ? host->side : *side;
		if (*side && memcmp(host->side, *side, sizeof(host->side)) == 0) {
			ever++;
			v[*n] = h;
			*n += is_free(s, h);
		}
	}
	return ever;
}

/* Those that were named are as many as there must be; which is where is planned. */
static int place_cubes(struct place_search *s, int *out, struct err *err)
{
	struct place_request *w = s->demand;
	int *v = x_new((size_t)s->f->n_hosts + 1, sizeof(*v)), free_ones = 0, twist[3] = { 0 };
	int named = w->n, rc = 0, ever;
	const int *side = NULL;

	ever = collect_cubes(s, v, &free_ones, &side);
	/* The first are enough to choose from. */
	free_ones = free_ones < MODEL_MAX_CUBES ? free_ones : MODEL_MAX_CUBES;
	if (!side) {
		rc = err_set(err, WEFT_EINVAL, "shape: there are no cubes that %dx%dx%d is made "
			     "of", w->shape[0], w->shape[1], w->shape[2]);
	} else if (w->is_twisted) {
		rc = model_twist(w->shape, side, twist, err);
	}
	if (rc == 0 && cubes_of(w, side) > MODEL_MAX_CUBES) {
		rc = err_set(err, WEFT_ELIMIT, "shape: more than %d cubes with its spares",
			     MODEL_MAX_CUBES);
	}
	if (rc == 0) {
		w->n = (int)cubes_of(w, side);
		if (w->hosts && named != w->n) {
			rc = err_set(err, WEFT_EINVAL, "shape: %d cubes with its spares, and %d "
				     "are named", w->n, named);
		} else if (w->hosts) {
			rc = place_named(s, out, err);
		} else if (free_ones < w->n) {
			rc = too_few(w, free_ones, ever, "cubes", err);
		}
	}
	if (rc == 0 && !w->hosts) {
		place_slice(s->f, w, twist, v, free_ones, out);
	}
	free(v);
	return rc;
}

/* ---- rings --------------------------------------------------------------- */

/* Usable nodes in ring order, twice around, and the tightest stretch. */
static int place_on_ring(const struct place_search *s, int *out, struct err *err)
{
	const struct model_device *ring = &s->f->devices[s->demand->ring];
	int n = s->demand->n, m = 0, best = -1, width = 0;
	int *at = x_new((size_t)ring->n_members + 1, sizeof(*at));

	for (int i = 0; i < ring->n_members; i++) {
		if (!s->usable || s->usable[ring->members[i]]) {
			at[m++] = i;
		}
	}
	if (m < n) {
		free(at);
		return too_few(s->demand, m, ring->n_members, "on the ring", err);
	}
	for (int i = 0; i < m; i++) {
		int last = at[(i + n - 1) % m] + (i + n - 1 >= m ? ring->n_members : 0);

		if (best < 0 || last - at[i] < width) {
			best = i;
			width = last - at[i];
		}
	}
	for (int i = 0; i < n; i++) {
		out[i] = ring->members[at[(best + i) % m]];
	}
	free(at);
	return 0;
}

int place_job(const struct model_fabric *f, const struct place_request *demand, const bool *usable,
	      const bool *busy, int **out, int *n, struct err *err)
{
	struct place_request want = *demand;
	struct place_search s = { .f = f, .demand = &want, .usable = usable, .busy = busy };
	bool fits;
	int rc;

	*out = NULL;
	if (demand->n < 2 && !demand->shape[0] && (demand->hosts || !demand->ranks)) {
		return err_set(err, WEFT_EINVAL, "a collective needs at least two hosts");
	}
	if (demand->hosts && demand->ring < 0 && !demand->shape[0] &&
	    (rc = need_degree(&want, &fits, err))) {
		return rc;
	}
	*out = x_new((size_t)f->n_hosts + 1, sizeof(**out));
	rc = demand->shape[0] ? place_cubes(&s, *out, err)
	     : demand->hosts ? place_named(&s, *out, err)
	     : demand->ring >= 0 ? place_on_ring(&s, *out, err) : place_any(&s, *out, err);
	*n = want.n;
	if (rc) {
		free(*out);
		*out = NULL;
	}
	return rc;
}

/* ---- spares -------------------------------------------------------------- */

/* The free host that stands in for `gone`, or -1. */
static int find_spare(const struct place_search *s, const bool *taken, int gone)
{
	int best = -1;

	for (int h = 0; h < s->f->n_hosts; h++) {
		if (taken[h] || !is_free(s, h) || !may_run(s->f, s->demand, h)) {
			continue;
		}
		if (place_alike(s->f, h, gone)) {
			return h;
		}
		if (best < 0 && s->f->hosts[h].ranks == s->f->hosts[gone].ranks &&
		    ports_with_light(s->f, h) >= ports_with_light(s->f, gone)) {
			best = h;
		}
	}
	return best;
}

int place_spare(const struct model_fabric *f, const struct place_request *demand, const int *now,
		const bool *usable, const bool *busy, int *out, struct err *err)
{
	struct place_request want = *demand;
	const struct place_search s = { .f = f, .demand = &want, .usable = usable, .busy = busy };
	bool *taken = x_new((size_t)f->n_hosts + 1, sizeof(*taken));
	int rc = 0;

	for (int i = 0; i < demand->n; i++) {
		taken[now[i]] = true;
	}
	for (int i = 0; i < demand->n && rc == 0; i++) {
		int h = now[i];

		if (!usable[h] && (h = find_spare(&s, taken, now[i])) < 0) {
			rc = err_set(err, WEFT_EINFEASIBLE, "no host is free "
				     "in the place of %s",
				     f->hosts[now[i]].name);
		} else {
			taken[h] = true;
			out[i] = h;
		}
	}
	free(taken);
	return rc;
}
