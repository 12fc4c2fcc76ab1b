/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Circuits between ports that are given: nothing is to be chosen.
 *
 * The digraph of the job has a node for each of its ports and an arc for each link,
 * and its schedule is empty. So its circuits have arcs like those of any job, and
 * whoever reads a plan finds what they join as everywhere.
 */
#include <stdlib.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/order.h"

static int by_port(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* The node of the job's digraph that a port is. O(log ports). */
static int node_of(const struct model_job *job, int port)
{
	const int *at = bsearch(&port, job->ports, (size_t)job->n_ports, sizeof(port), by_port);

	return (int)(at - job->ports);
}

/* An empty schedule on the digraph of the links. */
static int make_digraph(const struct model_job *job, struct plan_job *pj, struct err *err)
{
	struct topo_arc *arcs = x_new((size_t)job->n_links, sizeof(*arcs));
	struct topo *topo = NULL;
	int rc;

	for (int i = 0; i < job->n_links; i++) {
		arcs[i] = (struct topo_arc){ .src = node_of(job, job->links[i].tx_port),
					     .dst = node_of(job, job->links[i].rx_port),
					     .cap = 1, .cost = 1 };
	}
	rc = topo_from_arcs(job->n_ports, arcs, (size_t)job->n_links, &topo, err);
	free(arcs);
	if (rc) {
		return err_wrap(err, "circuits of %d ports", job->n_ports);
	}
	pj->topology = x_dup("");
	pj->algorithm = "";
	rc = coll_new(COLL_ALLGATHER, topo, 1, 0, 0, &pj->sched, err);
	return rc ? rc : coll_finish(pj->sched, err);
}

int plan_check_link(const struct plan_ctx *ctx, const struct model_link *l, struct err *err)
{
	bool tx = plan_tx_usable(ctx, l->tx_port), rx = plan_rx_usable(ctx, l->rx_port);
	const struct model_port *p = &ctx->fabric->ports[tx ? l->rx_port : l->tx_port];

	if (tx && rx) {
		return 0;
	}
	return err_set(err, WEFT_EINFEASIBLE, "port %s has failed or is out of service (%s, %s %d)",
		       p->name, ctx->fabric->devices[tx ? p->rx_device : p->tx_device].name,
		       tx ? "out" : "in", (tx ? p->rx_port : p->tx_port) + 1);
}

struct plan_circuit plan_link_circuit(const struct plan_ctx *ctx, const struct model_link *l)
{
	const struct model_port *tx = &ctx->fabric->ports[l->tx_port];
	const struct model_port *rx = &ctx->fabric->ports[l->rx_port];
	const struct model_host *host = &ctx->fabric->hosts[tx->host];
	bool swap = ctx->fabric->devices[tx->tx_device].any_to_any && tx->tx_port > rx->rx_port;
	struct plan_circuit c = {
		.device = tx->tx_device, .tx_port = l->tx_port, .rx_port = l->rx_port,
		.xc = { swap ? rx->rx_port : tx->tx_port, swap ? tx->tx_port : rx->rx_port },
		.channel = host->n_channels ? host->channels[0] : -1,
	};

	c.moved = !plan_is_lit(plan_observed(ctx, c.device), c.xc);
	return c;
}

ORDER_BY(by_device_and_port, struct plan_circuit, device, xc.in, arc)

void plan_sort_circuits(struct plan_job *pj)
{
	qsort(pj->circuits, (size_t)pj->n_circuits, sizeof(*pj->circuits), by_device_and_port);
}

static void make_circuits(const struct plan_ctx *ctx, const struct model_job *job,
			  struct plan_job *pj)
{
	const struct topo *t = coll_physical(pj->sched);

	pj->circuits = x_new((size_t)job->n_links, sizeof(*pj->circuits));
	pj->n_circuits = job->n_links;
	pj->moves_bound = 0;
	for (int i = 0; i < job->n_links; i++) {
		struct plan_circuit *c = &pj->circuits[i];

		*c = plan_link_circuit(ctx, &job->links[i]);
		/* A port sends to one other. */
		topo_out(t, node_of(job, c->tx_port), &c->arc);
		pj->moves_bound += c->moved;
	}
	plan_sort_circuits(pj);
}

int plan_pinned_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_fabric *f = ctx->fabric;
	const struct model_job *job = &f->jobs[pj->job];
	bool crosses = false, turns = false;
	int rc = make_digraph(job, pj, err);

	for (int i = 0; i < job->n_links && rc == 0; i++) {
		int device = f->ports[job->links[i].tx_port].tx_device;

		crosses |= device != f->ports[job->links[i].rx_port].rx_device;
		turns |= f->devices[device].any_to_any;
		rc = plan_check_link(ctx, &job->links[i], err);
	}
	if (rc == 0 && crosses && turns) {
		return err_set(err, WEFT_EUNSUPPORTED, "circuits on an any-to-any switch beside "
			       "others over fibres between switches: not supported in one group");
	}
	if (rc == 0 && crosses) {
		vec_push(&ctx->trunk_jobs, pj);
	} else if (rc == 0) {
		make_circuits(ctx, job, pj);
	}
	return rc;
}
