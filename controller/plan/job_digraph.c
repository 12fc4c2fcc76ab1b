/*
 * The digraph of a job's ranks: the insides of its hosts, joined by circuits.
 *
 * A job's topology has a node for each host, and its arcs are given circuits as
 * in any plan; which ports they have says which nodes inside the hosts they
 * join. The nodes of all hosts are numbered kind by kind, as schedules expect.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/rat.h"
#include "lib/base/vec.h"

/* A host, with the number of its first node of each kind. */
struct digraph_host {
	const struct model_host *model;
	struct topo *inside;
	int *port_node;
	int first[TOPO_KINDS];	/* by enum topo_kind */
};

struct job_digraph {
	const struct model_fabric *f;
	const struct model_job *job;
	struct digraph_host *hosts;	/* [job->n_hosts] */
	int nodes;
	int64_t unit_bps;
	struct topo *t;
};

const struct model_host *plan_host_with_ranks(const struct model_fabric *f,
					      const struct model_job *job)
{
	for (int i = 0; i < job->n_hosts; i++) {
		if (f->hosts[job->hosts[i]].inside) {
			return &f->hosts[job->hosts[i]];
		}
	}
	return NULL;
}

/* Circuits for a topology that is given: its schedule has no transfers. */
static int place_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	struct topo *topo;
	int rc = topo_parse(job->topology, &topo, NULL, err);

	if (rc || (rc = coll_new(COLL_ALLGATHER, topo, 1, 0, 0, &pj->sched, err))) {
		return rc;
	}
	return plan_find_circuits(ctx, pj, err);
}

static int plan_alone(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];

	if (job->device >= 0) {
		return err_set(err, WEFT_EUNSUPPORTED, "it is on a ring: only jobs on switches "
			       "have a topology");
	}
	if (strcmp(job->topology, "auto") != 0) {
		return place_circuits(ctx, pj, err);
	}
	if (plan_host_with_ranks(ctx->fabric, job)) {
		return err_set(err, WEFT_EUNSUPPORTED, "topology: auto: not supported with ranks "
			       "inside hosts");
	}
	return plan_switched_job(ctx, pj, err);
}

/* The insides of the hosts, and the first numbers of their nodes. */
static int load_hosts(struct job_digraph *d, struct err *err)
{
	static const enum topo_kind order[] = { TOPO_TERMINAL, TOPO_MEMORY, TOPO_SWITCH };

	for (int i = 0; i < d->job->n_hosts; i++) {
		struct digraph_host *h = &d->hosts[i];
		int rc;

		h->model = &d->f->hosts[d->job->hosts[i]];
		h->port_node = calloc((size_t)h->model->n_ports + 1, sizeof(*h->port_node));
		rc = h->port_node ? model_inside(h->model->inside, h->model->n_ports, &h->inside,
						 h->port_node, err) : err_nomem(err);
		if (rc) {
			return rc;
		}
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

static int add_inside(struct job_digraph *d, const struct digraph_host *h, struct err *err)
{
	int rc = 0;

	for (int u = 0; u < topo_n(h->inside); u++) {
		topo_set_node(d->t, node_of(h, u), topo_node_kind(h->inside, u),
			      topo_node_flags(h->inside, u));
	}
	for (int a = 0; a < topo_m(h->inside) && !rc; a++) {
		const struct topo_arc *arc = topo_arc(h->inside, a);

		rc = topo_add_arc(d->t, node_of(h, arc->src), node_of(h, arc->dst),
				  arc->cap * MODEL_INSIDE_BPS / d->unit_bps, arc->latency_ns, err);
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

/* The node that has a port: `rank` is its host's among the job's. */
static int node_at(const struct job_digraph *d, int rank, int port)
{
	const struct digraph_host *h = &d->hosts[rank];

	return node_of(h, h->port_node[port - h->model->first_port]);
}

/* One arc for each lightpath, which may have circuits on several switches. */
static int add_circuits(struct job_digraph *d, const struct plan_job *pj, struct err *err)
{
	const struct topo *outer = coll_topo(pj->sched);
	bool *done = calloc((size_t)topo_m(outer) + 1, sizeof(*done));
	int rc = done ? 0 : err_nomem(err);

	for (int i = 0; i < pj->n_circuits && !rc; i++) {
		const struct plan_circuit *c = &pj->circuits[i];
		const struct topo_arc *arc = topo_arc(outer, c->arc);

		if (!done[c->arc]) {
			done[c->arc] = true;
			rc = topo_add_arc(d->t, node_at(d, arc->src, c->tx_port),
					  node_at(d, arc->dst, c->rx_port),
					  rate_of(d, c) / d->unit_bps, arc->latency_ns, err);
		}
	}
	free(done);
	return rc;
}

static int join(struct job_digraph *d, const struct plan_job *pj, struct err *err)
{
	int rc = load_hosts(d, err);

	if (rc || (rc = topo_new(d->nodes, &d->t, err))) {
		return rc;
	}
	find_unit(d, pj);
	for (int i = 0; i < d->job->n_hosts && !rc; i++) {
		rc = add_inside(d, &d->hosts[i], err);
	}
	if (rc || (rc = add_circuits(d, pj, err))) {
		return rc;
	}
	return topo_freeze(d->t, err);
}

static int joined(const struct model_fabric *f, const struct plan_job *pj, struct topo **out,
		  int64_t *unit_bps, struct err *err)
{
	struct job_digraph d = { .f = f, .job = &f->jobs[pj->job] };
	int rc;

	d.hosts = calloc((size_t)d.job->n_hosts + 1, sizeof(*d.hosts));
	rc = d.hosts ? join(&d, pj, err) : err_nomem(err);
	for (int i = 0; d.hosts && i < d.job->n_hosts; i++) {
		topo_free(d.hosts[i].inside);
		free(d.hosts[i].port_node);
	}
	free(d.hosts);
	if (rc) {
		topo_free(d.t);
		return rc;
	}
	*out = d.t;
	*unit_bps = d.unit_bps;
	return 0;
}

int plan_job_topo(const struct model_fabric *fabric, int job, struct topo **out,
		  int64_t *unit_bps, struct err *err)
{
	static const struct plan_base dark;
	struct plan_job pj = { .job = job, .moves_bound = -1 };
	struct plan_admin_down marks;
	struct plan_ctx ctx = { 0 };
	int rc = plan_admin_down_init(&marks, fabric, &dark, err);

	coll_report_init(&pj.report);
	if (!rc && (rc = plan_ctx_init(&ctx, fabric, &marks.base, err)) == 0 &&
	    (rc = plan_alone(&ctx, &pj, err)) == 0) {
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
