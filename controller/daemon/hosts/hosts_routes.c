/* Ways that hosts of this machine are given over the light of a plan. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/hosts/hosts_private.h"
#include "lib/base/log.h"

static void set_ways(struct hosts *h, struct local *l,
		     const struct model_fabric *f,
		     const struct plan_arc *arcs, int n_arcs)
{
	struct plan_way *ways = NULL;
	struct host_route *v = NULL;
	struct err err = { 0 };
	int n = 0, k = 0, rc = plan_ways(f, arcs, n_arcs, l->host, &ways, &n,
					 &err);

	if (rc == 0) {
		v = calloc((size_t)n + 1, sizeof(*v));
		rc = v ? 0 : err_nomem(&err);
	}
	/* Where a neighbour is another machine nobody here knows its address
	 * on the wire. */
	for (int i = 0; rc == 0 && i < n; i++) {
		const struct plan_way *w = &ways[i];
		const struct view *tx = &h->views[w->tx_port];
		const struct view *rx = &h->views[w->rx_port];

		if (!tx->tx.ifindex || !rx->rx.ifindex) {
			continue;
		}
		v[k] = (struct host_route){
			.dst = plan_host_address(w->to),
			.via = w->via == w->to ? 0 :
			       plan_host_address(w->via),
			.ifindex = tx->tx.ifindex };
		memcpy(v[k++].mac, rx->rx.mac, sizeof(v->mac));
	}
	if (rc == 0) {
		rc = host_routes_set(l->net, k ? plan_host_address(l->host) : 0,
				     v, k, NULL, &err);
		l->n_ways = k;
	}
	l->problem[0] = '\0';
	if (rc) {
		snprintf(l->problem, sizeof(l->problem), "%s", err.msg);
		log_warn("weftd", "%s: %s", f->hosts[l->host].name, err.msg);
	}
	free(v);
	free(ways);
}

/* Called with a look that is no older than the plan. */
void hosts_install(struct hosts *h, const struct model_fabric *f,
		   const struct plan_arc *arcs, int n)
{
	for (int i = 0; i < h->n; i++) {
		if (h->v[i].frame_fd >= 0) {
			set_ways(h, &h->v[i], f, arcs, n);
		}
	}
}

struct host_routes {
	char hash[65];
	struct plan_arc *arcs;
	int n;
};

struct host_routes *host_routes_of(const struct plan *p)
{
	struct host_routes *r = calloc(1, sizeof(*r));

	if (!r || plan_arcs(p, &r->arcs, &r->n, NULL)) {
		log_warn("weftd", "hosts: out of memory");
		free(r);
		return NULL;
	}
	memcpy(r->hash, p->fabric->hash, sizeof(r->hash));
	return r;
}

void host_routes_free(struct host_routes *r)
{
	if (r) {
		free(r->arcs);
		free(r);
	}
}

static void on_looked(struct daemon *d, void *arg)
{
	const struct model_fabric *f = NULL;
	struct host_routes *r = arg;

	if (d->hosts) {		/* weftd is not ending */
		f = apply_fabric(d->apply);
	}
	if (f && strcmp(f->hash, r->hash) == 0) {
		hosts_install(d->hosts, f, r->arcs, r->n);
	}
	host_routes_free(r);
}

void daemon_hosts_route(struct daemon *d, struct host_routes *r)
{
	const struct model_fabric *f = apply_fabric(d->apply);

	/* Another fabric is open for a question: the next planning of the
	 * jobs is of the present one. */
	if (!r || !f || strcmp(f->hash, r->hash) != 0 ||
	    (!d->hosts && hosts_local(f) == 0)) {
		host_routes_free(r);
	} else {
		daemon_hosts_look(d, on_looked, r);
	}
}
