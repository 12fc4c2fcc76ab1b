/*
 * Why lightpaths over trunks are refused, in words that can be checked by hand.
 *
 * A cut proves it: switches out of which more lightpaths must lead than their
 * fibres to the rest carry. A set grows from each node by the node that makes the
 * cut worst, both ways round. Then a lightpath of which no wavelength passes all
 * filters, and what the prices of rwa prove: so many lightpaths at most, or so
 * many channels at least. Where nothing is proven the message says that.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/buf.h"

#define NODES_MOST 1024		/* in which sets are grown; beyond, nodes alone */
#define NAMES_MOST 8

/* The worst cut so far: nodes on one side, and what leads out of (or into) them. */
struct trunk_cut {
	bool *in_set;
	bool into;
	int64_t excess;		/* lightpaths beyond what the fibres carry */
};

/* Lightpaths that the fibres of an arc carry. */
static int64_t room_of(const struct trunk_network *w, int arc)
{
	const struct rwa_mesh_arc *a = &w->mesh->arcs.v[arc];

	return (int64_t)a->fibres * (a->is_single ? 1 : w->channels);
}

/* weight[u * n + v]: lightpaths wanted from u to v, less those that fibres from u
 * to v carry. What filters shut carries nothing. */
static int64_t *weights(const struct trunk_network *w)
{
	const struct rwa_mesh *m = w->mesh;
	size_t n = m->nodes.n;
	int64_t *weight = calloc(n * n + 1, sizeof(*weight));

	for (size_t i = 0; weight && i < m->demands.n; i++) {
		weight[m->demands.v[i].src * n + m->demands.v[i].dst] += m->demands.v[i].count;
	}
	for (size_t e = 0; weight && e < m->arcs.n; e++) {
		weight[m->arcs.v[e].src * n + m->arcs.v[e].dst] -= room_of(w, (int)e);
	}
	for (size_t i = 0; weight && i < m->blocks.n; i++) {
		const struct rwa_mesh_arc *a = &m->arcs.v[m->blocks.v[i].arc];

		weight[a->src * n + a->dst]++;
	}
	return weight;
}

/* What taking a node into the set adds to the excess, once u is in it. */
static void update_gains(const int64_t *weight, size_t n, size_t u, int64_t *gain)
{
	for (size_t v = 0; v < n; v++) {
		gain[v] -= weight[u * n + v] + weight[v * n + u];
	}
}

/* Grows a set from one node, and keeps the worst cut on the way. into: of what
 * leads into the set. O(nodes^2). */
static void grow(const int64_t *weight, size_t n, size_t root, bool into, int64_t *gain, bool *set,
		 struct trunk_cut *worst)
{
	int64_t excess = 0;

	memset(set, 0, n * sizeof(*set));
	for (size_t v = 0; v < n; v++) {
		gain[v] = 0;
		for (size_t u = 0; u < n; u++) {
			gain[v] += into ? weight[u * n + v] : weight[v * n + u];
		}
	}
	for (size_t k = 0, next = root; k + 1 < n; k++) {
		set[next] = true;
		excess += gain[next];
		update_gains(weight, n, next, gain);
		if (excess > worst->excess) {
			worst->excess = excess;
			worst->into = into;
			memcpy(worst->in_set, set, n * sizeof(*set));
		}
		if (n > NODES_MOST) {
			return;
		}
		next = n;
		for (size_t v = 0; v < n; v++) {
			next = !set[v] && (next == n || gain[v] > gain[next]) ? v : next;
		}
	}
}

/* The worst cut of all that are tried; excess 0: none is too small. */
static int find_cut(const struct trunk_network *w, struct trunk_cut *worst, struct err *err)
{
	size_t n = w->mesh->nodes.n;
	int64_t *weight = weights(w), *gain = calloc(n + 1, sizeof(*gain));
	bool *set = calloc(n + 1, sizeof(*set));
	int rc = weight && gain && set ? 0 : err_nomem(err);

	for (size_t v = 0; v < 2 * n && rc == 0; v++) {
		grow(weight, n, v % n, v >= n, gain, set, worst);
	}
	free(weight);
	free(gain);
	free(set);
	return rc;
}

/* Whether something from a node to another leads over the cut. */
static bool crosses(const struct trunk_cut *c, int src, int dst)
{
	return c->in_set[src] != c->into && c->in_set[dst] == c->into;
}

/* Names of the nodes of the set. */
static void put_names(const struct trunk_network *w, const struct trunk_cut *c, struct buf *out)
{
	int n = 0;

	for (size_t v = 0; v < w->mesh->nodes.n; v++) {
		if (c->in_set[v] && n++ < NAMES_MOST) {
			buf_printf(out, "%s%s", n > 1 ? ", " : "", w->mesh->nodes.v[v].name);
		}
	}
	if (n > NAMES_MOST) {
		buf_printf(out, " and %d more", n - NAMES_MOST);
	}
}

static void describe_cut(const struct trunk_network *w, const struct trunk_cut *c, struct buf *out)
{
	const struct rwa_mesh *m = w->mesh;
	int64_t fibres = 0, room = 0, wanted = 0;

	for (size_t i = 0; i < m->demands.n; i++) {
		const struct rwa_mesh_demand *d = &m->demands.v[i];

		wanted += crosses(c, d->src, d->dst) ? d->count : 0;
	}
	for (size_t e = 0; e < m->arcs.n; e++) {
		bool over = crosses(c, m->arcs.v[e].src, m->arcs.v[e].dst);

		fibres += over ? m->arcs.v[e].fibres : 0;
		room += over ? room_of(w, (int)e) : 0;
	}
	for (size_t i = 0; i < m->blocks.n; i++) {
		const struct rwa_mesh_arc *a = &m->arcs.v[m->blocks.v[i].arc];

		room -= crosses(c, a->src, a->dst);
	}
	buf_printf(out, "%lld lightpaths must lead %s {", (long long)wanted,
		   c->into ? "into" : "out of");
	put_names(w, c, out);
	buf_printf(out, "}, and the %lld fibre%s there carr%s %lld", (long long)fibres,
		   fibres == 1 ? "" : "s", fibres == 1 ? "ies" : "y", (long long)room);
}

/* The nodes that a channel leads to from one, marked in seen. O(nodes * arcs). */
static void reach_on(const struct trunk_network *w, int src, int channel, bool *seen)
{
	const struct rwa_mesh *m = w->mesh;
	bool more = true;

	memset(seen, 0, m->nodes.n * sizeof(*seen));
	seen[src] = true;
	while (more) {
		more = false;
		for (size_t i = 0; i < w->fibres.n; i++) {
			const struct trunk_fibre *x = &w->fibres.v[i];

			if (seen[x->from] && !seen[x->to] &&
			    (x->channel < 0 || x->channel == channel)) {
				more = seen[x->to] = true;
			}
		}
	}
}

/* The first demand without a wavelength that goes all the way, -1: none. */
static int find_unreached(const struct trunk_network *w, struct err *err)
{
	const struct rwa_mesh *m = w->mesh;
	bool *seen = calloc(m->nodes.n + 1, sizeof(*seen));
	bool *served = calloc(m->demands.n + 1, sizeof(*served));
	int found = seen && served ? -1 : err_nomem(err);

	for (size_t i = 0, end; found == -1 && i < m->demands.n; i = end) {
		int src = m->demands.v[i].src;

		for (end = i; end < m->demands.n && m->demands.v[end].src == src; end++) {
		}
		for (int c = 0; c < w->channels; c++) {
			reach_on(w, src, c, seen);
			for (size_t k = i; k < end; k++) {
				served[k] |= seen[m->demands.v[k].dst];
			}
		}
		for (size_t k = i; k < end && found == -1; k++) {
			found = served[k] ? -1 : (int)k;
		}
	}
	free(seen);
	free(served);
	return found;
}

/* What rwa proves, or that it found no more. Where filters lack wavelengths the mesh
 * has more of them beyond those that hosts send, and how many are needed says
 * nothing but that these are too few. */
static void describe_result(const struct trunk_network *w, const struct rwa_mesh_result *res,
			    struct buf *out)
{
	struct rwa_mesh_options opt = { .seed = 1 };
	struct rwa_mesh_result least = { 0 };
	bool proven;

	if (res->lightpaths_bound < w->mesh->lightpaths) {
		buf_printf(out, "of %lld lightpaths between switches at most %lld fit",
			   (long long)w->mesh->lightpaths, (long long)res->lightpaths_bound);
		return;
	}
	proven = rwa_mesh_solve(w->mesh, &opt, &least, NULL) == 0 && least.bound > w->channels;
	if (proven && w->mesh->blocks.n) {
		buf_printf(out, "the filters pass too few wavelengths all the way for the %lld "
			   "lightpaths between switches", (long long)w->mesh->lightpaths);
	} else if (proven) {
		buf_printf(out, "%lld lightpaths between switches need %d wavelengths at least, "
			   "hosts send %d", (long long)w->mesh->lightpaths, least.bound,
			   w->channels);
	} else {
		buf_printf(out, "routes were found for only %lld of %lld lightpaths between "
			   "switches, and nothing proves that no more fit",
			   (long long)res->lightpaths, (long long)w->mesh->lightpaths);
	}
	rwa_mesh_result_fini(&least);
}

/* Names of the jobs that a refusal is about, and the first of them: those with
 * lightpaths over the cut, else all. */
static const struct plan_job *put_jobs(const struct trunk_network *w, const struct trunk_cut *c,
				       struct buf *out, int *count)
{
	const struct plan_job *first = NULL;
	int n = 0;

	for (int j = 0; j < w->fabric->n_jobs; j++) {
		const struct plan_job *pj = NULL;

		for (size_t i = 0; i < w->paths.n && !pj; i++) {
			const struct trunk_lightpath *p = &w->paths.v[i];

			if (p->pj->job == j && p->demand >= 0 &&
			    (!c->excess || crosses(c, p->src, p->dst))) {
				pj = p->pj;
			}
		}
		first = first ? first : pj;
		if (pj && n++ < NAMES_MOST) {
			buf_printf(out, "%s%s", n > 1 ? ", " : "", w->fabric->jobs[j].name);
		}
	}
	if (n > NAMES_MOST) {
		buf_printf(out, " and %d more", n - NAMES_MOST);
	}
	*count = n;
	return first;
}

/* The proof, or that there is none, into out. */
static int describe(const struct trunk_network *w, const struct rwa_mesh_result *res,
		    const struct trunk_cut *cut, struct buf *out, struct err *err)
{
	int demand;

	if (cut->excess > 0) {
		describe_cut(w, cut, out);
		return 0;
	}
	demand = find_unreached(w, err);
	if (demand < -1) {
		return demand;
	}
	if (demand >= 0) {
		const struct rwa_mesh_demand *d = &w->mesh->demands.v[demand];

		buf_printf(out, "no light leads from %s to %s%s", w->mesh->nodes.v[d->src].name,
			   w->mesh->nodes.v[d->dst].name,
			   w->is_filtered ? " on one wavelength" : "");
	} else if (res) {
		describe_result(w, res, out);
	} else {
		buf_str(out, "no routes are within their power budget");
	}
	return 0;
}

int trunk_refuse(const struct trunk_network *w, const struct rwa_mesh_result *res, struct err *err)
{
	struct trunk_cut cut = { .in_set = calloc(w->mesh->nodes.n + 1, sizeof(bool)) };
	struct buf text = { 0 }, jobs = { 0 };
	const struct plan_job *first;
	const struct model_job *job;
	int n_jobs, rc = cut.in_set ? find_cut(w, &cut, err) : err_nomem(err);

	if (rc || (rc = describe(w, res, &cut, &text, err))) {
		goto out;
	}
	first = put_jobs(w, &cut, &jobs, &n_jobs);
	job = &w->fabric->jobs[first->job];
	rc = err_set(err, WEFT_EINFEASIBLE, "%s%s: %s", n_jobs > 1 ? "jobs " : "topology ",
		     n_jobs > 1 ? buf_cstr(&jobs) : first->topology, buf_cstr(&text));
	err_at(err, w->fabric->config.name, job->place.line, job->place.col);
	err_hint(err, w->is_filtered
		 ? "more fibres between switches, more 'channels' of hosts and fibres, or "
		   "topologies with fewer arcs between their hosts"
		 : "more fibres between switches, or topologies with fewer arcs between "
		   "their hosts");
out:
	free(cut.in_set);
	buf_fini(&text);
	buf_fini(&jobs);
	return rc;
}
