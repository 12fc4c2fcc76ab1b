/* Where the ranks and arcs of a job's schedule are: names of hosts, ports and ring nodes. */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/vec.h"

/* The hosts of the schedule's nodes, and what is known of them. */
static int place_nodes(const struct model_fabric *f, const struct plan_job *pj, int n,
		       struct coll_placement *p, struct err *err)
{
	const struct model_job *job = &f->jobs[pj->job];
	int *host = calloc((size_t)n, sizeof(*host));
	int rc = host ? 0 : err_nomem(err);

	if (!rc && plan_host_with_ranks(f, job)) {
		rc = plan_node_hosts(f, pj->job, host, err);
	} else if (!rc) {
		memcpy(host, job->hosts, (size_t)n * sizeof(*host));
	}
	for (int u = 0; u < n && !rc; u++) {
		const struct model_host *h = &f->hosts[host[u]];

		p->hosts[u] = h->name;
		p->netns[u] = h->netns ? h->netns : (char *)"";
		if (pj->is_ring) {
			p->ring_nodes[u] = pj->share.at[u];
		}
	}
	free(host);
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
	rc = arrays.failed ? err_nomem(err) : place_nodes(f, pj, n, &p, err);
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
