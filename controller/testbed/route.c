/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes along the arcs of a plan. The plan is not kept anywhere: it is made
 * again from the fabric with what the switches hold as intent, and is the one
 * that is in effect if it changes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/testbed.h"
#include "lib/base/alloc.h"

/* Jobs with several lights have whichever of them the circuits are of: each job's is the one with
 * the fewest changes left. */
static int find_lights(const struct model_fabric *f, struct plan_base *base, struct plan **p,
		       struct err *err)
{
	int rc = 0;

	for (int j = 0; j < (*p)->n_jobs && !plan_is_empty(*p); j++) {
		const struct model_job *job = &f->jobs[(*p)->jobs[j].job];
		const struct workload_plan *step = (*p)->jobs[j].step;

		for (size_t u = 0; step && step->lights.n > 1 && u < step->uses.n && !rc; u++) {
			const char *op = job->workload->ops.v[step->uses.v[u].op].name;
			char *topologies;
			struct plan *q = NULL;

			if (step->uses.v[u].light == (*p)->jobs[j].light) {
				continue;
			}
			topologies = x_dup((*p)->topologies);
			base->topologies = topologies;
			rc = plan_set_light(f, job->name, op, &topologies, err);
			base->topologies = topologies;
			if (!rc && (rc = plan_make(f, base, &q, err)) == 0 &&
			    q->n_add + q->n_del < (*p)->n_add + (*p)->n_del) {
				plan_free(*p);
				*p = q;
				q = NULL;
				step = (*p)->jobs[j].step;
			}
			plan_free(q);
			free(topologies);
			base->topologies = NULL;
		}
	}
	return rc;
}

int testbed_plan(const struct model_fabric *f, struct plan **out, struct err *err)
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
	if ((rc = plan_make(f, &base, &p, err)) == 0) {
		rc = find_lights(f, &base, &p, err);
	}
	if (rc == 0 && !plan_is_empty(p)) {
		rc = err_set(err, WEFT_ESTALE, "the switches do not hold this "
			     "plan: %d circuits to add, %d to delete",
			     p->n_add, p->n_del);
		err_hint(err, "weft apply -f %s", f->config.name);
	}
	testbed_light_free(f, light);
	if (rc) {
		plan_free(p);
		return rc;
	}
	*out = p;
	return 0;
}

/* ---- installing ---- */

/* Next hops by address of their host. The neighbour's MAC is known from the
 * testbed, so that no ARP has to find its way. */
static int set_paths(struct testbed *t, int host, const struct plan_host_path *paths, int n,
		     struct err *err)
{
	const struct model_host *h = &t->fabric->hosts[host];
	struct host_route *v = x_new((size_t)n + 1, sizeof(*v));
	struct host_address own[PLAN_MAX_ADDRESSES];
	int n_own = 0, rc;

	for (int i = 0; i < n; i++) {
		const struct plan_host_path *w = &paths[i];

		v[i].dst = plan_host_address(w->to, w->to_address);
		v[i].via = w->via == w->to ? 0 : plan_host_address(w->via, w->via_address);
		v[i].ifindex = t->tx[w->tx_port].ifindex;
		memcpy(v[i].mac, t->rx[w->rx_port].mac, sizeof(v[i].mac));
	}
	/* All at once: a netdev that loses its last address loses its routes. */
	for (int i = 0; i < PLAN_MAX_ADDRESSES && (i < 2 * h->n_ports || i == 0); i++) {
		const struct host_link *links = i % 2 ? t->rx : t->tx;
		int ifindex = h->n_ports ? links[h->first_port + i / 2].ifindex : 0;

		own[n_own++] = (struct host_address){ plan_host_address(host, i),
						      ifindex ? ifindex : HOST_LOOPBACK };
	}
	rc = host_routes_set(t->hosts[host], own, n_own, v, n, NULL, err);
	free(v);
	return rc;
}

int testbed_route(struct testbed *t, const struct plan_arc *arcs, int n,
		  int *routes, struct err *err)
{
	int rc = 0;

	*routes = 0;
	for (int i = 0; rc == 0 && i < t->fabric->n_hosts; i++) {
		struct plan_host_path *paths;
		int n_paths;

		plan_host_paths(t->fabric, arcs, n, i, &paths, &n_paths);
		rc = set_paths(t, i, paths, n_paths, err);
		free(paths);
		*routes += n_paths;
	}
	return rc;
}
