/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digraph of a job's ranks: the insides of its hosts, joined by circuits.
 *
 * A job's topology has a node for each host, and its arcs are given circuits as
 * in any plan; which ports they have says which nodes inside the hosts they
 * join. The nodes of all hosts are numbered kind by kind, as schedules expect.
 * A schedule is made on what the ranks see of each other, and embedded in it.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/embedding/embedding.h"
#include "collective/flow/flow.h"
#include "collective/schedule/cut_bound.h"
#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/vec.h"

/* Of capacities, so that parts of lightpaths are whole. */
#define MAX_SCALE 5040

/* A host, with the number of its first node of each kind. */
struct digraph_host {
	const struct model_host *model;
	struct topo *inside;
	VEC(int32_t) ranks;	/* terminals that send and receive at each port */
	size_t *first_rank;	/* [n_ports + 1] its first one there */
	int first[TOPO_KINDS];	/* by enum topo_kind */
};

struct job_digraph {
	const struct model_fabric *f;
	const struct model_job *job;
	struct digraph_host *hosts;	/* [job->n_hosts] */
	int *rank_of;			/* [f->n_hosts] place in it */
	int nodes;
	int64_t unit_bps, scale;	/* of capacities: what 1 is, times what */
	struct topo *t;
};

const struct model_host *plan_host_with_ranks(const struct model_fabric *f,
					      const struct model_job *job)
{
	for (int i = 0; i < job->n_hosts && job->kind != MODEL_CIRCUITS && !job->shape[0]; i++) {
		if (f->hosts[job->hosts[i]].inside) {
			return &f->hosts[job->hosts[i]];
		}
	}
	return NULL;
}

int plan_ranks_each(const struct model_job *job)
{
	return job->workload && job->workload->server ? topo_ranks(job->workload->server) : 1;
}

int plan_port_rank(const struct model_fabric *f, const struct model_job *job, int port)
{
	const struct model_host *h = &f->hosts[f->ports[port].host];
	int32_t *near;
	int n, rank;

	if (plan_ranks_each(job) == 1) {
		return 0;
	}
	near = x_alloc((size_t)plan_ranks_each(job), sizeof(*near));
	n = model_nearest_ranks(job->workload->server, h->port_at[port - h->first_port], near);
	rank = near[(port - h->first_port) % n];
	free(near);
	return rank;
}

/* Circuits for a topology that is given: its schedule has no transfers. */
static int place_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	struct topo *topo;
	int rc = topo_copy(job->topo, &topo, err);

	if (rc || (rc = coll_new(COLL_ALLGATHER, topo, 1, 0, 0, &pj->sched, err))) {
		return rc;
	}
	pj->topology = x_dup(job->topology);
	return plan_find_circuits(ctx, pj, err);
}

/* Circuits for what is best where each host is one rank with all its ports: what leaves hosts is
 * the same then, and may leave by any port. The schedule is not that of the ranks, and goes. */
static int choose_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	struct coll_sched *s = NULL;
	struct topo *topo;
	int rc = plan_choose_topology(ctx, pj, err);

	if (rc || (rc = topo_copy(coll_physical(pj->sched), &topo, err)) ||
	    (rc = coll_new(COLL_ALLGATHER, topo, 1, 0, 0, &s, err))) {
		return rc;
	}
	coll_free(pj->sched);
	mcf_free(pj->flow);
	pj->sched = s;
	pj->flow = NULL;
	pj->torus = (struct coll_made_torus){ 0 };
	coll_report_fini(&pj->report);
	coll_report_init(&pj->report);
	return 0;
}

int plan_server_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];

	if (job->kind == MODEL_CIRCUITS) {
		return err_set(err, WEFT_EUNSUPPORTED, "it has circuits and no collective");
	}
	if (job->device >= 0) {
		return err_set(err, WEFT_EUNSUPPORTED, "it is on a ring: only jobs on switches "
			       "have a topology");
	}
	if (job->topo) {
		return place_circuits(ctx, pj, err);
	}
	return plan_host_with_ranks(ctx->fabric, job) ? choose_circuits(ctx, pj, err)
						      : plan_switched_job(ctx, pj, err);
}

/* The node inside the host that has its port. */
static int port_node(const struct digraph_host *h, int port)
{
	return h->model->port_at ? h->model->port_at[port] : 0;
}

/* Of the terminals that are nearest to a port, port k has the k-th, from the first again after
 * the last: so the two GPUs on a PCIe switch have a card each. Where they are more than such
 * ports, all share each of these, as hosts behind a leaf switch do. */
static void find_port_ranks(struct digraph_host *h)
{
	int n = topo_n(h->inside), n_ports = h->model->n_ports;
	int32_t *near = x_alloc((size_t)n, sizeof(*near));
	int *ports = x_new((size_t)n, sizeof(*ports));	/* by their first terminal */

	for (int p = 0; p < n_ports; p++) {
		model_nearest_ranks(h->inside, port_node(h, p), near);
		ports[near[0]]++;
	}
	for (int p = 0; p < n_ports; p++) {
		int count = model_nearest_ranks(h->inside, port_node(h, p), near);
		int shared = count > ports[near[0]];

		for (int i = 0; i < (shared ? count : 1); i++) {
			vec_push(&h->ranks, near[shared ? i : p % count]);
		}
		h->first_rank[p + 1] = h->ranks.n;
	}
	free(near);
	free(ports);
}

static int load_host(struct digraph_host *h, const struct model_host *model, struct err *err)
{
	int rc;

	h->model = model;
	h->first_rank = x_new((size_t)model->n_ports + 1, sizeof(*h->first_rank));
	rc = model_inside(model->inside, &h->inside, err);
	if (rc == 0) {
		find_port_ranks(h);
	}
	return rc;
}

/* The insides of the hosts, and the first numbers of their nodes. */
static int load_hosts(struct job_digraph *d, struct err *err)
{
	static const enum topo_kind order[] = { TOPO_TERMINAL, TOPO_MEMORY, TOPO_SWITCH };

	for (int i = 0; i < d->job->n_hosts; i++) {
		int rc = load_host(&d->hosts[i], &d->f->hosts[d->job->hosts[i]], err);

		if (rc) {
			return rc;
		}
		d->rank_of[d->job->hosts[i]] = i;
	}
	for (int k = 0; k < TOPO_KINDS; k++) {
		for (int i = 0; i < d->job->n_hosts; i++) {
			const struct topo *t = d->hosts[i].inside;
			int ranks = topo_ranks(t), holders = topo_holders(t);

			d->hosts[i].first[order[k]] = d->nodes;
			d->nodes += order[k] == TOPO_TERMINAL ? ranks
				    : order[k] == TOPO_MEMORY ? holders - ranks
							      : topo_n(t) - holders;
			if (d->nodes > TOPO_MAX_NODES) {
				return err_set(err, WEFT_ELIMIT, "more than %d ranks, memories and "
					       "switches in its hosts", TOPO_MAX_NODES);
			}
		}
	}
	return 0;
}

/* The number of a host's node. */
static int node_of(const struct digraph_host *h, int node)
{
	enum topo_kind kind = topo_node_kind(h->inside, node);
	int before = kind == TOPO_TERMINAL ? 0
		     : kind == TOPO_MEMORY ? topo_ranks(h->inside) : topo_holders(h->inside);

	return h->first[kind] + node - before;
}

static int add_inside(const struct job_digraph *d, const struct digraph_host *h, struct topo *t,
		      struct err *err)
{
	int rc = 0;

	for (int u = 0; u < topo_n(h->inside); u++) {
		topo_set_node(t, node_of(h, u), topo_node_kind(h->inside, u),
			      topo_node_flags(h->inside, u));
	}
	for (int a = 0; a < topo_m(h->inside) && !rc; a++) {
		const struct topo_arc *arc = topo_arc(h->inside, a);

		rc = topo_add_arc(t, node_of(h, arc->src), node_of(h, arc->dst),
				  arc->cap * MODEL_INSIDE_BPS / d->unit_bps * d->scale,
				  arc->latency_ns, err);
	}
	return rc;
}

static int64_t rate_of(const struct job_digraph *d, const struct plan_circuit *c)
{
	int64_t tx = d->f->ports[c->tx_port].rate_bps, rx = d->f->ports[c->rx_port].rate_bps;

	return tx < rx ? tx : rx;
}

static void find_unit(struct job_digraph *d, const struct plan_job *pj)
{
	for (int i = 0; i < d->job->n_hosts; i++) {
		const struct topo *t = d->hosts[i].inside;

		for (int a = 0; a < topo_m(t); a++) {
			d->unit_bps = rat_gcd(topo_arc(t, a)->cap * MODEL_INSIDE_BPS, d->unit_bps);
		}
	}
	for (int i = 0; i < pj->n_circuits; i++) {
		d->unit_bps = rat_gcd(rate_of(d, &pj->circuits[i]), d->unit_bps);
	}
}

static const struct digraph_host *host_of(const struct job_digraph *d, int port)
{
	return &d->hosts[d->rank_of[d->f->ports[port].host]];
}

/* The node that has a port. */
static int node_at(const struct job_digraph *d, int port)
{
	const struct digraph_host *h = host_of(d, port);

	return node_of(h, port_node(h, port - h->model->first_port));
}

/* The terminals that send and receive at a port, places in its host; *n: how many. */
static const int32_t *ranks_at(const struct job_digraph *d, int port, int *n)
{
	const struct digraph_host *h = host_of(d, port);
	const size_t *first = &h->first_rank[port - h->model->first_port];

	*n = (int)(first[1] - first[0]);
	return &h->ranks.v[first[0]];
}

/* One arc for each lightpath, which may have circuits on several switches.
 * place[arc of the job's topology]: its place among those out of its node, which
 * come after the arcs inside the host. degree: of every node, so far. */
static int add_circuits(struct job_digraph *d, const struct plan_job *pj, int *degree, int *place,
			struct err *err)
{
	const struct topo *outer = coll_topo(pj->sched);
	int rc = 0;

	for (int a = 0; a < topo_m(outer); a++) {
		place[a] = -1;
	}
	for (int i = 0; i < pj->n_circuits && !rc; i++) {
		const struct plan_circuit *c = &pj->circuits[i];
		const struct topo_arc *arc = topo_arc(outer, c->arc);
		int from = node_at(d, c->tx_port), to = node_at(d, c->rx_port);

		if (place[c->arc] < 0) {
			place[c->arc] = degree[from]++;
			rc = topo_add_arc(d->t, from, to, rate_of(d, c) / d->unit_bps,
					  arc->latency_ns, err);
		}
	}
	return rc;
}

/* The circuits serve arcs of the new digraph from now on. */
static void rename_arcs(const struct job_digraph *d, struct plan_job *pj, const int *place)
{
	for (int i = 0; i < pj->n_circuits; i++) {
		struct plan_circuit *c = &pj->circuits[i];
		int first;

		topo_out(d->t, node_at(d, c->tx_port), &first);
		c->arc = first + place[c->arc];
	}
}

static int fill_digraph(struct job_digraph *d, struct plan_job *pj, struct err *err)
{
	int *degree = x_new((size_t)d->nodes + 1, sizeof(*degree));
	int *place = x_new((size_t)topo_m(coll_topo(pj->sched)) + 1, sizeof(*place));
	int rc = 0;

	for (int i = 0; i < d->job->n_hosts && !rc; i++) {
		const struct digraph_host *h = &d->hosts[i];
		int first;

		for (int u = 0; u < topo_n(h->inside); u++) {
			degree[node_of(h, u)] = topo_out(h->inside, u, &first);
		}
		rc = add_inside(d, h, d->t, err);
	}
	if (!rc && (rc = add_circuits(d, pj, degree, place, err)) == 0) {
		topo_freeze(d->t);
		rename_arcs(d, pj, place);
	}
	free(degree);
	free(place);
	return rc;
}

static int digraph_init(struct job_digraph *d, const struct model_fabric *f, int job,
			struct err *err)
{
	*d = (struct job_digraph){ .f = f, .job = &f->jobs[job], .scale = 1 };
	d->hosts = x_new((size_t)d->job->n_hosts + 1, sizeof(*d->hosts));
	d->rank_of = x_new((size_t)f->n_hosts + 1, sizeof(*d->rank_of));
	return load_hosts(d, err);
}

static void digraph_fini(struct job_digraph *d)
{
	for (int i = 0; d->hosts && i < d->job->n_hosts; i++) {
		topo_free(d->hosts[i].inside);
		vec_fini(&d->hosts[i].ranks);
		free(d->hosts[i].first_rank);
	}
	free(d->hosts);
	free(d->rank_of);
	topo_free(d->t);
}

/* ---- on a ring ---- */

/* Each host has its node of the ring, a switch, behind the nodes inside all hosts; its ranks are
 * joined to it, last of their arcs and in their order. */
static int join_ring(const struct job_digraph *d, const struct topo *outer, int64_t cap,
		     int lights, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < d->job->n_hosts && !rc; i++) {
		topo_set_node(d->t, d->nodes + i, TOPO_SWITCH, 0);
		rc = add_inside(d, &d->hosts[i], d->t, err);
		for (int r = 0; r < topo_ranks(d->hosts[i].inside) && !rc; r++) {
			int rank = node_of(&d->hosts[i], r);

			(void)((rc = topo_add_arc(d->t, rank, d->nodes + i, cap * lights, 0,
						  err)) ||
			       (rc = topo_add_arc(d->t, d->nodes + i, rank, cap * lights, 0,
						  err)));
		}
	}
	for (int a = 0; a < topo_m(outer) && !rc; a++) {
		const struct topo_arc *arc = topo_arc(outer, a);

		rc = topo_add_arc(d->t, d->nodes + arc->src, d->nodes + arc->dst, cap,
				  arc->latency_ns, err);
	}
	topo_freeze(d->t);
	return rc;
}

int plan_ring_digraph(const struct model_fabric *f, const struct plan_job *pj,
		      const struct topo *outer, int64_t channel_bps, int lights,
		      struct job_digraph **out, struct err *err)
{
	struct job_digraph *d = *out = x_new(1, sizeof(*d));
	int rc = digraph_init(d, f, pj->job, err);

	if (rc || (rc = topo_new(d->nodes + d->job->n_hosts, &d->t, err))) {
		return rc;
	}
	find_unit(d, pj);
	d->unit_bps = rat_gcd(d->unit_bps, channel_bps);
	return join_ring(d, outer, channel_bps / d->unit_bps, lights, err);
}

const struct topo *plan_digraph_topo(const struct job_digraph *d, int64_t *unit_bps)
{
	*unit_bps = d->unit_bps;
	return d->t;
}

const struct topo *plan_digraph_inside(const struct job_digraph *d, int place)
{
	return d->hosts[place].inside;
}

int plan_digraph_node(const struct job_digraph *d, int place, int node)
{
	return node < 0 ? d->nodes + place : node_of(&d->hosts[place], node);
}

void plan_digraph_free(struct job_digraph *d)
{
	if (d) {
		digraph_fini(d);
		free(d);
	}
}

/* The digraph of the ranks; the circuits of pj are of its arcs then. */
static int joined(const struct model_fabric *f, struct plan_job *pj, struct topo **out,
		  int64_t *unit_bps, struct err *err)
{
	struct job_digraph d;
	int rc = digraph_init(&d, f, pj->job, err);

	if (!rc && (rc = topo_new(d.nodes, &d.t, err)) == 0) {
		find_unit(&d, pj);
		rc = fill_digraph(&d, pj, err);
	}
	if (!rc) {
		*out = d.t;
		*unit_bps = d.unit_bps;
		d.t = NULL;
	}
	digraph_fini(&d);
	return rc;
}

int plan_node_hosts(const struct model_fabric *f, int job, int *host, struct err *err)
{
	struct job_digraph d;
	int rc = digraph_init(&d, f, job, err);

	for (int i = 0; i < d.job->n_hosts && !rc; i++) {
		for (int u = 0; u < topo_n(d.hosts[i].inside); u++) {
			host[node_of(&d.hosts[i], u)] = d.job->hosts[i];
		}
	}
	digraph_fini(&d);
	return rc;
}

int plan_copy_alive(const struct topo *t, const bool *dead, struct topo **out, struct err *err)
{
	struct topo *copy = NULL;
	int32_t *place = x_alloc((size_t)topo_m(t) + 1, sizeof(*place));
	int alive = 0, rc = topo_new(topo_n(t), &copy, err);

	for (int u = 0; u < topo_n(t) && rc == 0; u++) {
		topo_set_node(copy, u, topo_node_kind(t, u), topo_node_flags(t, u));
	}
	for (int a = 0; a < topo_m(t) && rc == 0; a++) {
		const struct topo_arc *x = topo_arc(t, a);

		bool gone = dead && dead[a];

		place[a] = gone ? -1 : alive++;
		rc = gone ? 0 : topo_add_arc_like(copy, x->src, x->dst, x, err);
	}
	if (rc == 0) {
		rc = topo_copy_limits(t, place, copy, err);
	}
	if (rc == 0) {
		topo_freeze(copy);
	}
	free(place);
	if (rc) {
		topo_free(copy);
		return rc;
	}
	*out = copy;
	return 0;
}

/* ---- schedules ---- */

/* A lightpath as arcs between the ranks at its ports, which share it alike. */
static int share_lightpath(const struct job_digraph *d, const struct plan_circuit *c,
			   const struct topo_arc *arc, struct topo *t, struct err *err)
{
	int senders, receivers, rc = 0;
	const int32_t *from = ranks_at(d, c->tx_port, &senders);
	const int32_t *to = ranks_at(d, c->rx_port, &receivers);
	int n = senders > receivers ? senders : receivers;
	int64_t cap = arc->cap * d->scale / n;

	for (int i = 0; i < n && !rc; i++) {
		rc = topo_add_arc(t, node_of(host_of(d, c->tx_port), from[i % senders]),
				  node_of(host_of(d, c->rx_port), to[i % receivers]),
				  cap > 0 ? cap : 1, arc->latency_ns, err);
	}
	return rc;
}

/* Each lightpath of pj whose arc is not dropped. */
static int add_lightpaths(const struct job_digraph *d, const struct plan_job *pj,
			  const struct topo *whole, const bool *dropped, struct topo *t,
			  struct err *err)
{
	bool *done = x_new((size_t)topo_m(whole) + 1, sizeof(*done));
	int rc = 0;

	for (int i = 0; i < pj->n_circuits && !rc; i++) {
		const struct plan_circuit *c = &pj->circuits[i];

		if (!done[c->arc] && !(dropped && dropped[c->arc])) {
			rc = share_lightpath(d, c, topo_arc(whole, c->arc), t, err);
		}
		done[c->arc] = true;
	}
	free(done);
	return rc;
}

/* Capacities times what lightpaths are divided by are whole, where that is not too much. */
static void find_scale(struct job_digraph *d, const struct plan_job *pj)
{
	for (int i = 0; i < 2 * pj->n_circuits && d->scale < MAX_SCALE; i++) {
		const struct plan_circuit *c = &pj->circuits[i / 2];
		int n;

		ranks_at(d, i % 2 ? c->rx_port : c->tx_port, &n);
		d->scale = d->scale / rat_gcd(d->scale, n) * n;
	}
}

/* The places in the job of all ranks' hosts; the caller's. */
static int32_t *group_ranks(const struct job_digraph *d)
{
	int32_t *groups = x_alloc((size_t)d->nodes + 1, sizeof(*groups));

	for (int i = 0; i < d->job->n_hosts; i++) {
		for (int r = 0; r < topo_ranks(d->hosts[i].inside); r++) {
			groups[node_of(&d->hosts[i], r)] = i;
		}
	}
	return groups;
}

/* The digraph on which ranks plan: what they see of each other within their host,
 * and lightpaths between the ranks at their ports, so that hosts are left by
 * what is to leave them once, and not by each rank for each. *groups: ranks by host. */
static int see_ranks(const struct model_fabric *f, const struct plan_job *pj,
		     const struct topo *whole, const bool *dropped, struct topo **out,
		     int32_t **groups, struct err *err)
{
	struct job_digraph d;
	int rc = digraph_init(&d, f, pj->job, err);

	d.unit_bps = pj->unit_bps;
	if (!rc) {
		find_scale(&d, pj);
		rc = topo_new(d.nodes, &d.t, err);
	}
	for (int i = 0; i < d.job->n_hosts && !rc; i++) {
		rc = add_inside(&d, &d.hosts[i], d.t, err);
	}
	if (!rc && (rc = add_lightpaths(&d, pj, whole, dropped, d.t, err)) == 0) {
		topo_freeze(d.t);
		rc = coll_terminals_see(d.t, out, err);
	}
	*groups = rc ? NULL : group_ranks(&d);
	digraph_fini(&d);
	return rc;
}

void plan_name_schedule(struct coll_sched *s, const char *job, const char *fabric)
{
	struct buf name = { 0 };

	/* Where all nodes are ranks a schedule may be on their links themselves. */
	buf_printf(&name, "%s on %s", job, fabric);
	if (!coll_is_embedded(s)) {
		coll_set_topo_name(s, buf_cstr(&name));
		buf_fini(&name);
		return;
	}
	coll_set_physical_name(s, buf_cstr(&name));
	buf_fini(&name);
	buf_printf(&name, "ranks of %s", job);
	coll_set_topo_name(s, buf_cstr(&name));
	buf_fini(&name);
}

int plan_embed(const struct model_fabric *f, const struct plan_job *pj, const struct topo *whole,
	       const bool *dropped, struct coll_sched **out, const char **algorithm,
	       struct err *err)
{
	struct coll_fabric inside = { .name = f->name, .routing = COLL_ROUTING_MINIMAL_SPLIT };
	struct topo *seen = NULL;
	int32_t *groups;
	int rc = see_ranks(f, pj, whole, dropped, &seen, &groups, err);

	*out = NULL;
	if (rc == 0 && (rc = plan_copy_alive(whole, dropped, &inside.topo, err)) == 0 &&
	    (rc = plan_make_inside(f, pj, seen, groups, &inside, out, algorithm, err)) ==
		    0) {
		plan_name_schedule(*out, f->jobs[pj->job].name, f->name);
	}
	topo_free(inside.topo);
	topo_free(seen);
	free(groups);
	return rc;
}

/* Whether what comes in at a port may leave again without a rank: it is at a node that forwards. */
static bool passes_ranks(const struct digraph_host *h)
{
	bool passes = false;

	for (int p = 0; p < h->model->n_ports; p++) {
		passes |= port_node(h, p) >= topo_ranks(h->inside);
	}
	return passes;
}

/* What hosts of one rank each do not do faster over the same circuits: nor do their ranks, to which
 * all that is inside them would be free then. 0 of all-to-alls, whose data is not that of hosts. */
static int hosts_bound(const struct plan_ctx *ctx, const struct plan_job *pj, int64_t *bound_ns,
		       struct err *err)
{
	enum coll_kind kind = ctx->fabric->jobs[pj->job].collective;
	struct coll_cost cost = plan_job_cost(ctx->fabric, pj);
	struct coll_sched *s = NULL;
	struct job_digraph d;
	struct coll_report r;
	struct topo *t;
	int64_t none;
	int rc;

	*bound_ns = 0;
	if (kind == COLL_ALLTOALL) {
		return 0;
	}
	rc = digraph_init(&d, ctx->fabric, pj->job, err);
	for (int i = 0; i < d.job->n_hosts && !rc; i++) {
		cost.forwards |= passes_ranks(&d.hosts[i]);
	}
	for (int i = 0; i < pj->n_circuits; i++) {
		int64_t bps = rate_of(&d, &pj->circuits[i]);

		cost.link_bps = bps > cost.link_bps ? bps : cost.link_bps;
	}
	digraph_fini(&d);
	if (rc || (rc = topo_copy(coll_topo(pj->sched), &t, err))) {
		return rc;
	}
	coll_report_init(&r);
	(void)((rc = coll_new(kind, t, 1, 0, 0, &s, err)) || (rc = coll_finish(s, err)) ||
	       (rc = coll_bound(coll_topo(s), NULL, kind, 0, coll_ports(s), r.bandwidth_bound,
				err)) ||
	       (rc = coll_time(s, &r, &cost, &none, bound_ns, err)));
	coll_report_fini(&r);
	coll_free(s);
	return rc;
}

int plan_server_schedule(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	struct coll_sched *s = NULL;
	struct topo *t;
	int64_t bound_ns;
	int rc = hosts_bound(ctx, pj, &bound_ns, err);

	if (rc || (rc = joined(ctx->fabric, pj, &t, &pj->unit_bps, err))) {
		return rc;
	}
	rc = plan_embed(ctx->fabric, pj, t, NULL, &s, &pj->algorithm, err);
	if (!rc) {
		coll_free(pj->sched);
		pj->sched = s;
		rc = plan_time_job(ctx, pj, err);
	}
	if (!rc && pj->bound_ns < bound_ns) {
		pj->bound_ns = bound_ns;
		pj->gap = (double)pj->time_ns / (double)bound_ns - 1;
	}
	topo_free(t);
	return rc;
}

int plan_job_topo(const struct model_fabric *fabric, int job, struct topo **out,
		  int64_t *unit_bps, struct err *err)
{
	static const struct plan_base dark;
	struct plan_job pj = { .job = job, .moves_bound = -1 };
	struct plan_admin_down marks;
	struct plan_ctx ctx;
	int rc;

	if (fabric->jobs[job].shape[0]) {
		*unit_bps = fabric->ports[fabric->jobs[job].ports[0]].rate_bps;
		return topo_copy(fabric->jobs[job].topo, out, err);
	}
	plan_admin_down_init(&marks, fabric, &dark);
	plan_ctx_init(&ctx, fabric, &marks.base);
	coll_report_init(&pj.report);
	if ((rc = plan_server_circuits(&ctx, &pj, err)) == 0 &&
	    (rc = plan_trunk_light(&ctx, err)) == 0) {
		rc = joined(fabric, &pj, out, unit_bps, err);
	}
	if (rc) {
		err_wrap(err, "job %s", fabric->jobs[job].name);
	}
	plan_ctx_fini(&ctx);
	plan_admin_down_fini(&marks);
	plan_job_fini(&pj);
	return rc;
}

/* ---- where the ranks and arcs of a schedule are ---------------------------- */

/* The hosts of the schedule's nodes, and what is known of them. */
static int place_nodes(const struct model_fabric *f, const struct plan_job *pj, int n,
		       struct coll_placement *p, struct err *err)
{
	const struct model_job *job = &f->jobs[pj->job];
	int *host = x_new((size_t)n, sizeof(*host));
	int *at = x_new((size_t)f->n_hosts, sizeof(*at));	/* places on the ring */
	int rc = 0;

	for (int i = 0; pj->is_ring && i < job->n_hosts; i++) {
		host[n - job->n_hosts + i] = job->hosts[i];
		at[job->hosts[i]] = pj->share.at[i];
	}
	if (job->kind == MODEL_STEP) {
		for (int i = 0; i < n; i++) {
			host[i] = job->hosts[i / plan_ranks_each(job)];
		}
	} else if (job->shape[0]) {
		plan_slice_hosts(f, pj, host);
	} else if (plan_host_with_ranks(f, job)) {
		rc = plan_node_hosts(f, pj->job, host, err);
	} else if (job->kind == MODEL_CIRCUITS) {
		for (int i = 0; i < n; i++) {
			host[i] = f->ports[job->ports[i]].host;
		}
	} else if (!pj->is_ring) {
		memcpy(host, job->hosts, (size_t)n * sizeof(*host));
	}
	for (int u = 0; u < n && !rc; u++) {
		const struct model_host *h = &f->hosts[host[u]];

		p->hosts[u] = h->name;
		p->netns[u] = h->netns ? h->netns : (char *)"";
		if (pj->is_ring) {
			p->ring_nodes[u] = at[host[u]];
		}
	}
	free(host);
	free(at);
	return rc;
}

/* number[a]: what arc a of the whole job is in this schedule, -1 if it is not there. */
static void place_arcs(const struct model_fabric *f, const struct plan_job *pj,
		       const int32_t *number, int m, struct coll_placement *p)
{
	for (int a = 0; a < m; a++) {
		p->tx_ports[a] = p->rx_ports[a] = (char *)"";
	}
	for (int i = 0; i < pj->n_circuits; i++) {
		const struct plan_circuit *c = &pj->circuits[i];
		int a = number[c->arc];

		if (a >= 0) {
			p->tx_ports[a] = f->ports[c->tx_port].name;
			p->rx_ports[a] = f->ports[c->rx_port].name;
		}
	}
}

int plan_place_job(const struct model_fabric *f, const struct plan_job *pj, const bool *dead,
		   struct coll_sched *s, struct err *err)
{
	int n = topo_n(coll_physical(s)), m = topo_m(coll_physical(s));
	int whole = topo_m(coll_physical(pj->sched)), alive = 0, rc;
	struct coll_placement p = { 0 };
	struct arrays arrays = { 0 };
	int32_t *number;

	arrays_add(&arrays, number, whole);
	arrays_add(&arrays, p.hosts, n);
	arrays_add(&arrays, p.netns, n);
	if (pj->is_ring) {
		arrays_add(&arrays, p.ring_nodes, n);
	} else {
		arrays_add(&arrays, p.tx_ports, m);
		arrays_add(&arrays, p.rx_ports, m);
	}
	rc = place_nodes(f, pj, n, &p, err);
	for (int a = 0; a < whole && !rc; a++) {
		number[a] = dead && dead[a] ? -1 : alive++;
	}
	if (!rc && !pj->is_ring) {
		place_arcs(f, pj, number, m, &p);
	}
	if (!rc) {
		rc = coll_set_placement(s, &p, err);
	}
	arrays_fini(&arrays);
	return rc;
}
