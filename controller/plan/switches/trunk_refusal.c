/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why lightpaths over trunks are refused, in words that can be checked by hand.
 *
 * A cut proves it: switches out of which more lightpaths must lead than their
 * fibres to the rest carry, on all wavelengths or on those that some hosts send. A
 * set grows from each node by the node that makes the cut worst, both ways round.
 * Then come a lightpath of which no wavelength passes all filters; what the prices of
 * rwa prove, with the fibres that have one; a clique, lightpaths of which any two
 * share a fibre on all their routes; and how many channels rwa proves to be needed.
 * Where nothing is proven the message says that.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"

#define CUT_NODES 512		/* larger networks are not searched for cuts */
#define CUT_SENDERS 8		/* kinds of hosts, by what they send */
#define CLIQUE_DEMANDS 256	/* larger ones not for cliques */
#define CLIQUE_ARCS 256
#define NAMES_MOST 8

/* The worst cut so far: nodes on one side, and what leads out of (or into) them. */
struct trunk_cut {
	bool *in_set;
	bool into;
	int sender;		/* only what is sent on channels of this host counts */
	int64_t excess;		/* lightpaths beyond what the fibres carry */
};

/* Whether everything that a host sends another one sends as well. */
static bool sends_within(const struct trunk_network *w, int host, int sender)
{
	for (int c = 0; c < w->channels; c++) {
		if (trunk_sends(w, host, c) && !trunk_sends(w, sender, c)) {
			return false;
		}
	}
	return true;
}

/* A lightpath that must cross switches on channels of a host; and a trunk or port
 * that can carry one of them. */
static bool is_wanted(const struct trunk_network *w, const struct trunk_lightpath *p, int sender)
{
	return p->demand >= 0 && sends_within(w, trunk_host(w, p->from), sender);
}

static bool carries(const struct trunk_network *w, const struct trunk_fibre *x, int sender)
{
	return x->channel < 0 || trunk_sends(w, sender, x->channel);
}

/* weight[u * n + v]: lightpaths wanted from u to v, less those that fibres from u
 * to v carry. */
static void set_weights(const struct trunk_network *w, int sender, int64_t *weight)
{
	size_t n = w->mesh->nodes.n;

	memset(weight, 0, n * n * sizeof(*weight));
	for (size_t i = 0; i < w->paths.n; i++) {
		const struct trunk_lightpath *p = &w->paths.v[i];

		weight[p->src * n + p->dst] += is_wanted(w, p, sender);
	}
	for (size_t i = 0; i < w->fibres.n; i++) {
		const struct trunk_fibre *x = &w->fibres.v[i];

		weight[x->from * n + x->to] -= carries(w, x, sender);
	}
}

/* What leads out of (or into) a set beyond what fibres there carry. O(nodes^2). */
static int64_t excess_of(const int64_t *weight, size_t n, const bool *set, bool into)
{
	int64_t sum = 0;

	for (size_t u = 0; u < n; u++) {
		for (size_t v = 0; v < n && set[u] != into; v++) {
			sum += set[v] == into ? weight[u * n + v] : 0;
		}
	}
	return sum;
}

/* What one node adds to the excess as the first of a set. */
static void set_gains(const int64_t *weight, size_t n, bool into, int64_t *gain)
{
	for (size_t v = 0; v < n; v++) {
		gain[v] = 0;
		for (size_t u = 0; u < n; u++) {
			gain[v] += into ? weight[u * n + v] : weight[v * n + u];
		}
	}
}

/* Grows a set from one node by the one that makes the excess largest, and keeps the
 * worst cut on the way. O(nodes^2). */
static void grow(const int64_t *weight, size_t n, size_t root, int64_t *gain, bool *set,
		 struct trunk_cut *now, struct trunk_cut *worst)
{
	now->excess = 0;
	memset(set, 0, n * sizeof(*set));
	set_gains(weight, n, now->into, gain);
	for (size_t k = 0, next = root; k + 1 < n; k++) {
		set[next] = true;
		now->excess += gain[next];
		if (now->excess > worst->excess) {
			*worst = (struct trunk_cut){ worst->in_set, now->into, now->sender,
						     now->excess };
			memcpy(worst->in_set, set, n * sizeof(*set));
		}
		for (size_t v = 0; v < n; v++) {
			gain[v] -= weight[next * n + v] + weight[v * n + next];
		}
		next = n;
		for (size_t v = 0; v < n; v++) {
			next = !set[v] && (next == n || gain[v] > gain[next]) ? v : next;
		}
	}
}

/* Takes nodes out of the set that do not make it worse. */
static void prune(const int64_t *weight, size_t n, struct trunk_cut *cut)
{
	for (size_t v = 0; v < n; v++) {
		int64_t without;

		if (!cut->in_set[v]) {
			continue;
		}
		cut->in_set[v] = false;
		without = excess_of(weight, n, cut->in_set, cut->into);
		cut->in_set[v] = without < cut->excess;
		cut->excess = cut->in_set[v] ? cut->excess : without;
	}
}

/* One host of each kind of those that send, by what they send. Returns how many. */
static int list_senders(const struct trunk_network *w, int senders[CUT_SENDERS])
{
	int n = 0;

	for (int p = 0; p < w->fabric->n_ports && n < CUT_SENDERS; p++) {
		bool is_new = w->end_of[p] == p;
		int h = trunk_host(w, p);

		for (int k = 0; k < n && is_new; k++) {
			is_new = !sends_within(w, h, senders[k]) ||
				 !sends_within(w, senders[k], h);
		}
		if (is_new) {
			senders[n++] = h;
		}
	}
	return n;
}

/* The worst cut of all that are tried, for any kind of senders; excess 0: there is
 * room in all. */
static void find_cut(const struct trunk_network *w, struct trunk_cut *worst)
{
	size_t n = w->mesh->nodes.n;
	int64_t *weight = NULL, *gain = NULL;
	bool *set = x_new(n + 1, sizeof(*set));
	int senders[CUT_SENDERS], kinds = n > CUT_NODES ? 0 : list_senders(w, senders);

	if (kinds) {
		weight = x_alloc(n * n, sizeof(*weight));
		gain = x_alloc(n, sizeof(*gain));
	}
	for (int k = 0; k < kinds; k++) {
		struct trunk_cut now = { .sender = senders[k] };

		set_weights(w, now.sender, weight);
		for (size_t v = 0; v < 2 * n; v++) {
			now.into = v >= n;
			grow(weight, n, v % n, gain, set, &now, worst);
		}
	}
	if (worst->excess) {
		set_weights(w, worst->sender, weight);
		prune(weight, n, worst);
	}
	free(weight);
	free(gain);
	free(set);
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
	bool all = true;

	for (size_t i = 0; i < w->paths.n; i++) {
		const struct trunk_lightpath *p = &w->paths.v[i];

		wanted += is_wanted(w, p, c->sender) && crosses(c, p->src, p->dst);
		all &= sends_within(w, trunk_host(w, p->from), c->sender);
	}
	for (size_t i = 0; i < w->fibres.n; i++) {
		const struct trunk_fibre *x = &w->fibres.v[i];

		room += carries(w, x, c->sender) && crosses(c, x->from, x->to);
	}
	for (size_t e = 0; e < m->arcs.n; e++) {
		fibres += crosses(c, m->arcs.v[e].src, m->arcs.v[e].dst) ? m->arcs.v[e].fibres : 0;
	}
	buf_printf(out, "%lld lightpaths%s%s must lead %s {", (long long)wanted,
		   all ? "" : " on wavelengths of ",
		   all ? "" : w->fabric->hosts[c->sender].name, c->into ? "into" : "out of");
	put_names(w, c, out);
	buf_printf(out, "}, and the %lld fibre%s there carr%s %lld%s", (long long)fibres,
		   fibres == 1 ? "" : "s", fibres == 1 ? "ies" : "y", (long long)room,
		   all ? "" : " of them");
}

/* The ends of demands that are marked. */
static void put_demands(const struct trunk_network *w, const bool *in, struct buf *out)
{
	int n = 0;

	for (size_t i = 0; i < w->mesh->demands.n; i++) {
		const struct rwa_mesh_demand *d = &w->mesh->demands.v[i];

		if (in[i] && n++ < NAMES_MOST) {
			buf_printf(out, "%s%s -> %s", n > 1 ? ", " : " ",
				   w->mesh->nodes.v[d->src].name, w->mesh->nodes.v[d->dst].name);
		}
	}
	if (n > NAMES_MOST) {
		buf_printf(out, " and %d more", n - NAMES_MOST);
	}
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
static int find_unreached(const struct trunk_network *w)
{
	const struct rwa_mesh *m = w->mesh;
	bool *seen = x_new(m->nodes.n + 1, sizeof(*seen));
	bool *served = x_new(m->demands.n + 1, sizeof(*served));
	int found = -1;

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

/* ---- a clique ---- */

/* Whether a route leads from one node to another without an arc (-1: with all).
 * O(nodes * arcs). */
static bool leads(const struct rwa_mesh *m, int src, int dst, int without, bool *seen)
{
	bool more = true;

	memset(seen, 0, m->nodes.n * sizeof(*seen));
	seen[src] = true;
	while (more && !seen[dst]) {
		more = false;
		for (size_t e = 0; e < m->arcs.n; e++) {
			const struct rwa_mesh_arc *a = &m->arcs.v[e];

			if ((int)e != without && seen[a->src] && !seen[a->dst]) {
				more = seen[a->dst] = true;
			}
		}
	}
	return seen[dst];
}

/* forced[d * arcs + e]: arc e is one fibre and on all routes of demand d. */
static void find_forced(const struct rwa_mesh *m, bool *seen, bool *forced)
{
	for (size_t d = 0; d < m->demands.n; d++) {
		for (size_t e = 0; e < m->arcs.n; e++) {
			forced[d * m->arcs.n + e] =
				m->arcs.v[e].fibres == 1 &&
				!leads(m, m->demands.v[d].src, m->demands.v[d].dst, (int)e, seen);
		}
	}
}

static bool share_fibre(const struct rwa_mesh *m, const bool *forced, size_t a, size_t b)
{
	for (size_t e = 0; e < m->arcs.n; e++) {
		if (forced[a * m->arcs.n + e] && forced[b * m->arcs.n + e]) {
			return true;
		}
	}
	return false;
}

/* The demands, from one on, of which any two share a fibre on all their routes: as
 * many as are met in order. Returns their lightpaths. */
static int64_t grow_clique(const struct rwa_mesh *m, const bool *forced, size_t from, bool *in)
{
	int64_t lightpaths = 0;

	memset(in, 0, m->demands.n * sizeof(*in));
	for (size_t k = 0; k < m->demands.n; k++) {
		size_t d = (from + k) % m->demands.n;
		bool all = share_fibre(m, forced, d, d);

		for (size_t other = 0; other < m->demands.n && all; other++) {
			all = !in[other] || share_fibre(m, forced, d, other);
		}
		in[d] = all;
		lightpaths += all ? m->demands.v[d].count : 0;
	}
	return lightpaths;
}

/* Lightpaths that need a wavelength each, if there are more than wavelengths, into
 * out. */
static void describe_clique(const struct trunk_network *w, struct buf *out)
{
	const struct rwa_mesh *m = w->mesh;
	bool *seen = x_new(m->nodes.n + 1, sizeof(*seen));
	bool *in = x_new(m->demands.n + 1, sizeof(*in));
	bool *forced = NULL;
	size_t n = 0;
	int64_t found = 0;

	if (m->demands.n <= CLIQUE_DEMANDS && m->arcs.n <= CLIQUE_ARCS) {
		n = m->demands.n;
		forced = x_new(n * m->arcs.n + 1, sizeof(*forced));
		find_forced(m, seen, forced);
	}
	for (size_t d = 0; d < n && found <= w->channels; d++) {
		found = grow_clique(m, forced, d, in);
	}
	if (found > w->channels) {
		buf_printf(out, "%lld lightpaths, any two of which share a fibre on all their "
			   "routes, need as many wavelengths, and hosts send %d:",
			   (long long)found, w->channels);
		put_demands(w, in, out);
	}
	free(seen);
	free(in);
	free(forced);
}

/* ---- what rwa proves ---- */

/* Fibres that have a price, the most expensive first: those of which there are too few. */
static void put_priced(const struct trunk_network *w, const int64_t *prices, struct buf *out)
{
	const struct rwa_mesh *m = w->mesh;
	int64_t below = INT64_MAX;

	for (int n = 0; n < NAMES_MOST;) {
		int64_t next = 0;

		for (size_t e = 0; e < m->arcs.n; e++) {
			next = prices[e] < below && prices[e] > next ? prices[e] : next;
		}
		if (next == 0) {
			return;
		}
		for (size_t e = 0; e < m->arcs.n && n < NAMES_MOST; e++) {
			if (prices[e] == next) {
				buf_printf(out, "%s%s -> %s", n++ ? ", " : " ",
					   m->nodes.v[m->arcs.v[e].src].name,
					   m->nodes.v[m->arcs.v[e].dst].name);
			}
		}
		below = next;
	}
	buf_str(out, " and others");
}

/* What rwa proves, or that it found no more. Where filters lack wavelengths the mesh
 * has more of them beyond those that hosts send, and how many are needed says
 * nothing but that these are too few. */
static void describe_result(const struct trunk_network *w, const struct rwa_mesh_result *res,
			    const struct rwa_mesh_result *least, struct buf *out)
{
	long long all = w->mesh->lightpaths;
	bool proven, by_lp;

	if (res->lightpaths_bound < all && res->bound <= w->channels) {
		buf_printf(out, "of %lld lightpaths between switches at most %lld fit, for want of "
			   "fibres", all, (long long)res->lightpaths_bound);
		put_priced(w, res->fit.prices, out);
		return;
	}
	describe_clique(w, out);
	if (out->len) {
		return;
	}
	by_lp = res->lightpaths_bound < all;
	proven = by_lp || least->bound > w->channels;
	if (proven && (by_lp || w->mesh->blocks.n)) {
		buf_printf(out, "the filters pass too few wavelengths all the way for the %lld "
			   "lightpaths between switches%s", all, by_lp ? " (proof: lp_solve)" : "");
	} else if (proven) {
		buf_printf(out, "%lld lightpaths between switches need %d wavelengths at least, "
			   "hosts send %d (proof: %s)", all, least->bound, w->channels,
			   least->proof);
	} else {
		buf_printf(out, "routes were found for only %lld of %lld lightpaths between "
			   "switches, and nothing proves that no more fit",
			   (long long)res->lightpaths, all);
	}
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
			    (!c->excess || (is_wanted(w, p, c->sender) &&
					    crosses(c, p->src, p->dst)))) {
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
static void describe(const struct trunk_network *w, const struct rwa_mesh_result *res,
		     const struct rwa_mesh_result *least, const struct trunk_cut *cut,
		     struct buf *out)
{
	int demand;

	if (cut->excess > 0) {
		describe_cut(w, cut, out);
		return;
	}
	demand = find_unreached(w);
	if (demand >= 0) {
		const struct rwa_mesh_demand *d = &w->mesh->demands.v[demand];

		buf_printf(out, "no light leads from %s to %s%s", w->mesh->nodes.v[d->src].name,
			   w->mesh->nodes.v[d->dst].name,
			   w->is_filtered ? " on one wavelength" : "");
	} else if (res) {
		describe_result(w, res, least, out);
	} else {
		buf_str(out, "no routes are within their power budget");
	}
}

int trunk_refuse(const struct trunk_network *w, const struct rwa_mesh_result *res,
		 const struct rwa_mesh_result *least, struct err *err)
{
	struct trunk_cut cut = { .in_set = x_new(w->mesh->nodes.n + 1, sizeof(bool)) };
	struct buf text = { 0 }, jobs = { 0 };
	const struct plan_job *first;
	const struct model_job *job;
	int n_jobs;

	find_cut(w, &cut);
	describe(w, res, least, &cut, &text);
	first = put_jobs(w, &cut, &jobs, &n_jobs);
	job = &w->fabric->jobs[first->job];
	err_set(err, WEFT_EINFEASIBLE, "%s%s: %s",
		n_jobs > 1 ? "jobs " : job->kind == MODEL_CIRCUITS ? "circuits" : "topology ",
		n_jobs > 1 ? buf_cstr(&jobs) : first->topology, buf_cstr(&text));
	err_at(err, w->fabric->config.name, job->place.line, job->place.col);
	err_hint(err, w->ctx->base->only
		 ? "the light of other jobs stays as it is: a plan of all jobs may move it"
		 : w->is_filtered
		 ? "more fibres between switches, more 'channels' of hosts and fibres, or "
		   "topologies with fewer arcs between their hosts"
		 : "more fibres between switches, or topologies with fewer arcs between "
		   "their hosts");
	free(cut.in_set);
	buf_fini(&text);
	buf_fini(&jobs);
	return WEFT_EINFEASIBLE;
}
