/* Routes along the arcs of a plan; see testbed.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/testbed.h"

int testbed_plan(const struct model_fabric *f, struct plan **out,
		 struct err *err)
{
	struct plan_light *light;
	struct plan_base base = { .mode = PLAN_SAFE };
	struct plan *p = NULL;
	int rc = testbed_read(f, &light, err);

	*out = NULL;
	if (rc) {
		return rc;
	}
	/* What is lit is taken for intended: a plan that is applied keeps all
	 * of it. */
	base.intent = light;
	base.observed = light;
	rc = plan_make(f, &base, &p, err);
	if (rc == 0 && !plan_is_empty(p)) {
		rc = err_set(err, WEFT_ESTALE, "the switches do not hold this "
			     "plan: %d circuits to add, %d to delete",
			     p->n_add, p->n_del);
		err_hint(err, "weft apply -f %s", f->file);
	}
	testbed_light_free(f, light);
	if (rc) {
		plan_free(p);
		return rc;
	}
	*out = p;
	return 0;
}

static int by_ports(const void *a, const void *b)
{
	const struct testbed_arc *x = a, *y = b;

	if (x->tx_port != y->tx_port) {
		return x->tx_port < y->tx_port ? -1 : 1;
	}
	return (x->rx_port > y->rx_port) - (x->rx_port < y->rx_port);
}

int testbed_arcs(const struct plan *p, struct testbed_arc **arcs, int *n,
		 struct err *err)
{
	size_t total = 1;

	*n = 0;
	for (int j = 0; j < p->n_jobs; j++) {
		total += (size_t)p->jobs[j].n_circuits;
	}
	*arcs = calloc(total, sizeof(**arcs));
	if (!*arcs) {
		return err_nomem(err);
	}
	total = 0;
	for (int j = 0; j < p->n_jobs; j++) {
		for (int i = 0; i < p->jobs[j].n_circuits; i++) {
			const struct plan_circuit *c = &p->jobs[j].circuits[i];

			(*arcs)[total++] = (struct testbed_arc){
				c->tx_port, c->rx_port };
		}
	}
	qsort(*arcs, total, sizeof(**arcs), by_ports);
	/* An arc over several switches has a circuit on each. */
	for (size_t i = 0; i < total; i++) {
		if (i == 0 || by_ports(&(*arcs)[i - 1], &(*arcs)[i]) != 0) {
			(*arcs)[(*n)++] = (*arcs)[i];
		}
	}
	return 0;
}

/* ---- installing ---- */

/* Ways from one host to all others. */
struct ways {
	int *first;	/* [n_hosts] the arc that leaves the host, -1: none */
	int *queue;	/* [n_hosts] */
};

/* Breadth first, arcs in order: the fewest arcs, then the lowest ports.
 * O(hosts x arcs) at most, for hosts of few ports. */
static void find_ways(const struct model_fabric *f,
		      const struct testbed_arc *arcs, int n, int host,
		      struct ways *w)
{
	int head = 0, tail = 0;

	memset(w->first, 0xff, (size_t)f->n_hosts * sizeof(*w->first));
	w->queue[tail++] = host;
	while (head < tail) {
		int at = w->queue[head++];

		for (int i = 0; i < n; i++) {
			int to = f->ports[arcs[i].rx_port].host;

			if (f->ports[arcs[i].tx_port].host == at &&
			    to != host && w->first[to] < 0) {
				w->first[to] = at == host ? i : w->first[at];
				w->queue[tail++] = to;
			}
		}
	}
}

static int install(struct testbed *t, const struct testbed_arc *arcs,
		   int host, const struct ways *w, int *routes,
		   struct err *err)
{
	const struct model_fabric *f = t->fabric;
	int rc = 0;

	for (int to = 0; rc == 0 && to < f->n_hosts; to++) {
		const struct testbed_arc *a;
		int next, out;

		if (w->first[to] < 0) {
			continue;
		}
		a = &arcs[w->first[to]];
		next = f->ports[a->rx_port].host;
		out = t->tx[a->tx_port].ifindex;
		if (next == to) {
			rc = host_neigh_set(t->hosts[host], out,
					    testbed_addr(to),
					    t->rx[a->rx_port].mac, err);
		}
		if (rc == 0) {
			rc = host_route_set(t->hosts[host], testbed_addr(to),
					    out, next == to ? 0 :
					    testbed_addr(next), err);
		}
		*routes += rc == 0;
	}
	return rc;
}

int testbed_route(struct testbed *t, const struct testbed_arc *arcs, int n,
		  int *routes, struct err *err)
{
	size_t hosts = (size_t)t->fabric->n_hosts;
	struct ways w = { calloc(hosts + 1, sizeof(*w.first)),
			  calloc(hosts + 1, sizeof(*w.queue)) };
	int rc = w.first && w.queue ? 0 : err_nomem(err);

	*routes = 0;
	for (int i = 0; rc == 0 && i < t->fabric->n_hosts; i++) {
		find_ways(t->fabric, arcs, n, i, &w);
		rc = host_routes_flush(t->hosts[i], err);
		if (rc == 0) {
			rc = install(t, arcs, i, &w, routes, err);
		}
	}
	free(w.first);
	free(w.queue);
	return rc;
}
