/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arcs of a job's digraph to circuits.
 *
 * A site is a switch or panel that the job's hosts reach. First every pair of
 * ranks gets its arcs spread over the sites (bipartite edge colouring with
 * one colour class a site: a minimum-cost flow a site, since every class is
 * a bipartite degree-constrained subgraph), then within a site any transmit
 * port can be joined to any receive port. A circuit that is already there
 * and joins a wanted pair is kept; the flow's costs count the others, so for
 * one or two sites the number of moved circuits is the least possible; for
 * more, switch_assignment.c or exchange.c look for fewer. The first circuits of a Cayley graph go
 * to sites by generators. One that is intended and missing is made
 * again where it was.
 *
 * A circuit of an any-to-any (duplex) switch serves an arc and its way back.
 * Each such pair is treated as one arc with a direction of its own; where
 * there are several switches the directions are balanced, so that half of a
 * host's ports at a switch are enough for either.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "lib/base/vec.h"
#include "lib/graph/graph.h"

/* Lower bounds of the flow are units at this negative cost, which outweighs all
 * others together: they are filled first. */
#define FORCED_COST ((int64_t)1 << 40)

/* All arcs from rank u to rank v. */
struct demand {
	int u, v;
	int first, n;	/* in work.arcs */
	int used;	/* arcs that have a circuit */
	int open;	/* circuits still to be given this way round */
};

struct circuit_work {
	struct plan_ctx *ctx;
	const struct model_fabric *fabric;
	const struct model_job *job;
	const struct plan_job *pj;
	const struct topo *topo;
	int n;			/* ranks */
	int *rank_at;		/* [ports] or -1 */
	int each;		/* ranks of a host */
	int n_sites;
	int *site_device;
	int *site_of;		/* [devices] or -1 */
	bool duplex;
	bool *tx_free, *rx_free;	/* [ports] */
	bool *tx_external, *rx_external;	/* [ports] under an external circuit */
	int32_t *arcs;		/* sorted by source, destination */
	int n_demands;
	struct demand *demands;
	int *have;		/* [demand * n_sites + site] circuits to keep */
	int *lost;		/* same shape: intended ones that are gone */
	int *give;		/* same shape: arcs this site carries */
	VEC(struct plan_circuit) out;
};

bool plan_tx_usable(const struct plan_ctx *ctx, int port)
{
	const struct model_port *p = &ctx->fabric->ports[port];

	return p->tx_device >= 0 &&
	       plan_works(plan_observed(ctx, p->tx_device), true, p->tx_port);
}

bool plan_rx_usable(const struct plan_ctx *ctx, int port)
{
	const struct model_port *p = &ctx->fabric->ports[port];

	return p->rx_device >= 0 &&
	       plan_works(plan_observed(ctx, p->rx_device), false, p->rx_port);
}

void plan_usable_ports(const struct plan_ctx *ctx, const struct model_job *job,
		       int rank, int *n_tx, int *n_rx)
{
	const struct model_host *h = &ctx->fabric->hosts[job->hosts[rank]];

	*n_tx = *n_rx = 0;
	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		bool ours = plan_has_port(ctx->fabric, job, p);

		*n_tx += ours && plan_tx_usable(ctx, p);
		*n_rx += ours && plan_rx_usable(ctx, p);
	}
}

/* ---- what there is ---- */

/* Numbers a device that a port of the job reaches, once. */
static void add_site(struct circuit_work *w, int device)
{
	if (device >= 0 && w->site_of[device] < 0) {
		w->site_of[device] = w->n_sites;
		w->site_device[w->n_sites++] = device;
	}
}

/* Sites are numbered as the ranks' ports reach them: an order that depends on
 * the job alone, as the plan must. */
static void find_ports_and_sites(struct circuit_work *w)
{
	for (int i = 0; i < w->n / w->each; i++) {
		const struct model_host *h = &w->fabric->hosts[w->job->hosts[i]];

		for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
			w->rank_at[p] = i * w->each + plan_port_rank(w->fabric, w->job, p);
			if (!plan_has_port(w->fabric, w->job, p)) {
				continue;
			}
			w->tx_free[p] = plan_tx_usable(w->ctx, p);
			w->rx_free[p] = plan_rx_usable(w->ctx, p);
			add_site(w, w->fabric->ports[p].tx_device);
			add_site(w, w->fabric->ports[p].rx_device);
		}
	}
}

/* All sites one-way, or all duplex. */
static int check_sites(struct circuit_work *w, struct err *err)
{
	int n_duplex = 0;

	for (int s = 0; s < w->n_sites; s++) {
		n_duplex += w->fabric->devices[w->site_device[s]].any_to_any;
	}
	w->duplex = n_duplex > 0;
	if (w->duplex && n_duplex < w->n_sites) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "ports on %d switches of which %d are "
			       "any-to-any: not supported, all or none",
			       w->n_sites, n_duplex);
	}
	return 0;
}

/* Calls fn for every observed circuit of a site with the host ports that it
 * joins (-1: no host's). */
typedef void (*circuit_fn)(struct circuit_work *w, int site, struct optics_xc xc,
			   int tx_port, int rx_port);

static void each_observed(struct circuit_work *w, circuit_fn fn)
{
	for (int s = 0; s < w->n_sites; s++) {
		int d = w->site_device[s];
		const struct model_device *dev = &w->fabric->devices[d];
		const struct plan_light *seen = plan_observed(w->ctx, d);

		for (int i = 0; i < seen->n_xcs; i++) {
			struct optics_xc xc = seen->xcs[i];

			if (xc.in < 0 || xc.in >= dev->n_in || xc.out < 0 || xc.out >= dev->n_out) {
				continue;
			}
			fn(w, s, xc, dev->in_port[xc.in],
			   dev->any_to_any ? dev->in_port[xc.out]
					   : dev->out_port[xc.out]);
		}
	}
}

/* Notes the host ports that an external circuit holds; at a duplex site a port
 * is held both ways. */
static void mark_external(struct circuit_work *w, int site, struct optics_xc xc, int tx, int rx)
{
	if (!plan_is_external(w->ctx, w->site_device[site], xc)) {
		return;
	}
	if (tx >= 0) {
		w->tx_external[tx] = true;
		w->rx_external[tx] |= w->duplex;
	}
	if (rx >= 0) {
		w->rx_external[rx] = true;
		w->tx_external[rx] |= w->duplex;
	}
}

/* ---- what is wanted ---- */

static int by_ends(const void *a, const void *b, void *topo)
{
	const struct topo_arc *x = topo_arc(topo, *(const int32_t *)a);
	const struct topo_arc *y = topo_arc(topo, *(const int32_t *)b);

	if (x->src != y->src) {
		return x->src - y->src;
	}
	if (x->dst != y->dst) {
		return x->dst - y->dst;
	}
	return *(const int32_t *)a - *(const int32_t *)b;
}

/* Makes a demand of all arcs with the same ends. Self-loops need no circuit.
 * O(m log m). */
static void group_arcs(struct circuit_work *w)
{
	int m = topo_m(w->topo), n_arcs = 0;

	w->arcs = x_alloc(m + 1, sizeof(*w->arcs));
	w->demands = x_new(m + 1, sizeof(*w->demands));
	for (int a = 0; a < m; a++) {
		if (topo_arc(w->topo, a)->src != topo_arc(w->topo, a)->dst) {
			w->arcs[n_arcs++] = a;
		}
	}
	qsort_r(w->arcs, n_arcs, sizeof(*w->arcs), by_ends, (void *)w->topo);
	for (int i = 0; i < n_arcs; i++) {
		const struct topo_arc *arc = topo_arc(w->topo, w->arcs[i]);
		struct demand *last = &w->demands[w->n_demands - 1];

		if (w->n_demands == 0 || last->u != arc->src || last->v != arc->dst) {
			w->demands[w->n_demands++] = (struct demand){
				.u = arc->src,
				.v = arc->dst,
				.first = i,
			};
		}
		w->demands[w->n_demands - 1].n++;
	}
}

/* Demands are sorted by u, then v. O(log demands). */
static struct demand *find_demand(const struct circuit_work *w, int u, int v)
{
	int lo = 0, hi = w->n_demands - 1;

	while (lo <= hi) {
		int mid = (lo + hi) / 2;
		struct demand *x = &w->demands[mid];

		if (x->u == u && x->v == v) {
			return x;
		}
		if (x->u < u || (x->u == u && x->v < v)) {
			lo = mid + 1;
		} else {
			hi = mid - 1;
		}
	}
	return NULL;
}

/* The demand that a present circuit could serve, or NULL. */
static struct demand *demand_of(const struct circuit_work *w, int tx, int rx)
{
	int u, v;

	if (tx < 0 || rx < 0 || !w->tx_free[tx] || !w->rx_free[rx]) {
		return NULL;
	}
	u = w->rank_at[tx];
	v = w->rank_at[rx];
	return u < 0 || v < 0 ? NULL : find_demand(w, u, v);
}

/* The entry of a demand and a site in one of the tables have, lost and give. */
static int *cell(const struct circuit_work *w, int *table, const struct demand *demand, int site)
{
	return &table[(demand - w->demands) * w->n_sites + site];
}

/* ---- giving circuits out ---- */

/* Gives a circuit to the demand's next arc and takes its ports. There is room for
 * a circuit an arc. */
static void emit(struct circuit_work *w, struct demand *demand, int site, struct optics_xc xc,
		 int tx,
		 int rx)
{
	const struct model_port *ports = w->fabric->ports;
	const struct model_host *host = &w->fabric->hosts[ports[tx].host];

	w->tx_free[tx] = w->rx_free[rx] = false;
	w->out.v[w->out.n++] = (struct plan_circuit){
		.arc = w->arcs[demand->first + demand->used++],
		.device = w->site_device[site],
		.xc = xc,
		.tx_port = tx,
		.rx_port = rx,
		.channel = host->n_channels ? host->channels[0] : -1,
		.moved = !plan_is_lit(plan_observed(w->ctx, w->site_device[site]), xc),
	};
}

/* Emits a circuit, and on a duplex site its way back. */
static void emit_both(struct circuit_work *w, struct demand *demand, int site, struct optics_xc xc,
		      int tx,
		      int rx)
{
	emit(w, demand, site, xc, tx, rx);
	if (w->duplex) {
		emit(w, find_demand(w, demand->v, demand->u), site, xc, rx, tx);
	}
}

/* What is lit at a drained port stays, before anything else is given out. */
static void keep_held(struct circuit_work *w, int site, struct optics_xc xc, int tx, int rx)
{
	const struct plan_light *seen = plan_observed(w->ctx, w->site_device[site]);
	struct demand *demand;

	if ((plan_may_light(seen, w->duplex, true, xc.in) &&
	     plan_may_light(seen, w->duplex, false, xc.out)) ||
	    plan_has_died(seen, xc)) {
		return;
	}
	demand = demand_of(w, tx, rx);
	if (demand && demand->used < demand->n) {
		emit_both(w, demand, site, xc, tx, rx);
	}
}

/* Nothing new comes to a drained port. */
static void close_held(struct circuit_work *w)
{
	for (int p = 0; p < w->fabric->n_ports; p++) {
		const struct model_port *port = &w->fabric->ports[p];

		w->tx_free[p] = w->tx_free[p] &&
				plan_may_light(plan_observed(w->ctx, port->tx_device), w->duplex,
					       true, port->tx_port);
		w->rx_free[p] = w->rx_free[p] &&
				plan_may_light(plan_observed(w->ctx, port->rx_device), w->duplex,
					       false, port->rx_port);
	}
}

/* An external circuit that serves an arc of the job is taken as it is. */
static void adopt_external(struct circuit_work *w, int site, struct optics_xc xc, int tx, int rx)
{
	struct demand *demand;

	if (!plan_is_external(w->ctx, w->site_device[site], xc)) {
		return;
	}
	demand = demand_of(w, tx, rx);
	if (demand && demand->used < demand->n) {
		emit_both(w, demand, site, xc, tx, rx);
	}
}

/* A present circuit as a way to serve an open demand; a duplex one may be
 * turned round. */
static struct demand *open_demand_of(const struct circuit_work *w, int *tx, int *rx)
{
	struct demand *demand = demand_of(w, *tx, *rx);

	if (w->duplex && (!demand || demand->open == 0)) {
		int t = *tx;

		*tx = *rx;
		*rx = t;
		demand = demand_of(w, *tx, *rx);
	}
	return demand;
}

/* Counts what could stay, by demand and site: the flow's costs come from it. */
static void count_have(struct circuit_work *w, int site, struct optics_xc xc, int tx, int rx)
{
	struct demand *demand = open_demand_of(w, &tx, &rx);

	(void)xc;
	if (demand) {
		++*cell(w, w->have, demand, site);
	}
}

/* Once arcs are spread: a present circuit stays while its site has an arc of
 * its demand left. */
static void keep_present(struct circuit_work *w, int site, struct optics_xc xc, int tx, int rx)
{
	struct demand *demand = open_demand_of(w, &tx, &rx);
	int *give = demand ? cell(w, w->give, demand, site) : NULL;

	if (give && *give > 0) {
		--*give;
		emit_both(w, demand, site, xc, tx, rx);
	}
}

/* Calls fn for every circuit of a site that is intended and not there, unless
 * an external one has a port of it. */
static void each_missing(struct circuit_work *w, int site, circuit_fn fn)
{
	int d = w->site_device[site];
	const struct model_device *dev = &w->fabric->devices[d];
	const struct plan_light *want = plan_intent(w->ctx, d);
	const struct plan_light *seen = plan_observed(w->ctx, d);

	for (int i = 0; i < want->n_xcs; i++) {
		struct optics_xc xc = want->xcs[i];
		int tx, rx;

		if (xc.in < 0 || xc.in >= dev->n_in || xc.out < 0 ||
		    xc.out >= dev->n_out || plan_light_has(seen, xc)) {
			continue;
		}
		tx = dev->in_port[xc.in];
		rx = dev->any_to_any ? dev->in_port[xc.out]
				     : dev->out_port[xc.out];
		if (tx >= 0 && rx >= 0 && !w->tx_external[tx] && !w->rx_external[rx]) {
			fn(w, site, xc, tx, rx);
		}
	}
}

/* The same count for circuits that are intended and not there. */
static void count_lost(struct circuit_work *w, int site, struct optics_xc xc, int tx, int rx)
{
	struct demand *demand = open_demand_of(w, &tx, &rx);

	(void)xc;
	if (demand) {
		++*cell(w, w->lost, demand, site);
	}
}

/* What is intended and missing is made again on the ports that it had: then
 * the light is as it was written down, and no other port is lit. */
static void restore_missing(struct circuit_work *w, int site, struct optics_xc xc, int tx, int rx)
{
	struct demand *demand = open_demand_of(w, &tx, &rx);
	int *give = demand ? cell(w, w->give, demand, site) : NULL;

	if (give && *give > 0) {
		--*give;
		emit_both(w, demand, site, xc, tx, rx);
	}
}

/* First free port of a rank at a device, one without an external circuit if
 * there is one; -1 when all are in use. */
static int pick_port(const struct circuit_work *w, int rank, int device, bool tx)
{
	const struct model_host *h = &w->fabric->hosts[w->job->hosts[rank / w->each]];
	const bool *is_free = tx ? w->tx_free : w->rx_free;
	const bool *external = tx ? w->tx_external : w->rx_external;
	int found = -1;

	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		const struct model_port *port = &w->fabric->ports[p];

		if (!is_free[p] || w->rank_at[p] != rank ||
		    device != (tx ? port->tx_device : port->rx_device)) {
			continue;
		}
		if (!external[p]) {
			return p;
		}
		found = found < 0 ? p : found;
	}
	return found;
}

/* The circuit between two host ports. A duplex one has its lower port first, so
 * that the same circuit always compares equal. */
static struct optics_xc xc_between(const struct circuit_work *w, int tx, int rx)
{
	int a = w->fabric->ports[tx].tx_port;
	int b = w->fabric->ports[rx].rx_port;

	if (w->duplex && a > b) {
		return (struct optics_xc){ .in = b, .out = a };
	}
	return (struct optics_xc){ .in = a, .out = b };
}

/* New circuits for the arcs that are left to a site, on its lowest free ports.
 * That there are none is a bug here: the spread has counted them. */
static int fill_site(struct circuit_work *w, int site, struct err *err)
{
	int device = w->site_device[site];

	for (int i = 0; i < w->n_demands; i++) {
		struct demand *demand = &w->demands[i];

		while (*cell(w, w->give, demand, site) > 0) {
			int tx = pick_port(w, demand->u, device, true);
			int rx = pick_port(w, demand->v, device, false);

			if (tx < 0 || rx < 0) {
				return err_set(err, WEFT_EINTERNAL,
					       "no port left for rank %d to %d "
					       "at %s",
					       demand->u, demand->v,
					       w->fabric->devices[device].name);
			}
			--*cell(w, w->give, demand, site);
			emit_both(w, demand, site, xc_between(w, tx, rx), tx, rx);
		}
	}
	return 0;
}

/* ---- spreading arcs over sites ---- */

/* Free ports of a rank at a site, one way. */
static int count_ports(const struct circuit_work *w, int rank, int site, bool tx)
{
	const struct model_host *h = &w->fabric->hosts[w->job->hosts[rank / w->each]];
	const bool *is_free = tx ? w->tx_free : w->rx_free;
	int n = 0;

	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		const struct model_port *port = &w->fabric->ports[p];
		int device = tx ? port->tx_device : port->rx_device;

		n += is_free[p] && w->rank_at[p] == rank && device == w->site_device[site];
	}
	return n;
}

/* Ports for one direction; of a duplex switch's, half. */
static int count_free(const struct circuit_work *w, int rank, int site, bool tx)
{
	int n = count_ports(w, rank, site, tx);

	return w->duplex && w->n_sites > 1 ? n / 2 : n;
}

/* Ports that this site and all later ones have for a rank, one way. */
static int free_from(const struct circuit_work *w, int rank, int site, bool tx)
{
	int n = 0;

	for (int s = site; s < w->n_sites; s++) {
		n += count_free(w, rank, s, tx);
	}
	return n;
}

/* Arcs of a demand that no earlier site carries. */
static int still_open(const struct circuit_work *w, const struct demand *demand, int site)
{
	int n = demand->open;

	for (int s = 0; s < site; s++) {
		n -= *cell(w, w->give, demand, s);
	}
	return n;
}

static int too_few_at_site(const struct circuit_work *w, int rank, int site, int need,
			   int have, struct err *err)
{
	const char *device = w->fabric->devices[w->site_device[site]].name;

	err_set(err, WEFT_EINFEASIBLE,
		"%s needs %d circuits each way at %s, its ports there allow %d",
		w->fabric->hosts[w->job->hosts[rank / w->each]].name, need, device, have);
	if (w->duplex) {
		err_hint(err, "of an odd number of ports at one of several "
			      "any-to-any switches one stays unused");
	}
	return err->code;
}

/* Edges from the source to a rank (or from a rank to the sink): at least
 * what the later sites cannot take, at most what this one can. */
static int add_side(struct circuit_work *w, struct graph_flow *f, int site, bool tx,
		    const int *degree, struct err *err)
{
	int source = 2 * w->n, sink = 2 * w->n + 1, rc = 0;

	for (int r = 0; r < w->n && rc == 0; r++) {
		int most = count_free(w, r, site, tx);
		int least = degree[r] - free_from(w, r, site + 1, tx);
		int a = tx ? source : w->n + r, b = tx ? r : sink;

		least = least < 0 ? 0 : least;
		if (least > most) {
			return too_few_at_site(w, r, site, least, most, err);
		}
		rc = graph_flow_add(f, a, b, least, -FORCED_COST, NULL, err);
		if (rc == 0) {
			rc = graph_flow_add(f, a, b, most - least, 0, NULL, err);
		}
	}
	return rc;
}

/* Of a table of demands by sites: what the sites after this one have. */
static int count_later(const struct circuit_work *w, const struct demand *demand, int site,
		       int *table)
{
	int n = 0;

	for (int s = site + 1; s < w->n_sites; s++) {
		n += *cell(w, table, demand, s);
	}
	return n;
}

/* A demand's units at this site: those that keep a circuit here gain one,
 * those that rob a later site of a kept circuit cost one. Between equals, the
 * same for circuits that are intended and gone, at so small a weight that all
 * of them together are less than one that is kept. */
static int add_demand(struct circuit_work *w, struct graph_flow *f, int site, int i, int *edge,
		      struct err *err)
{
	struct demand *demand = &w->demands[i];
	int64_t weight = 2 * (int64_t)topo_m(w->topo) + 1;
	int open = still_open(w, demand, site), rc = 0;
	int here = *cell(w, w->have, demand, site);
	int gone = here + *cell(w, w->lost, demand, site);
	int later = count_later(w, demand, site, w->have);
	int later_gone = later + count_later(w, demand, site, w->lost);

	for (int unit = 1; unit <= open && rc == 0; unit++) {
		int64_t cost = weight * ((unit > open - later) - (unit <= here)) +
			       (unit > open - later_gone) - (unit <= gone);
		int e;

		rc = graph_flow_add(f, demand->u, w->n + demand->v, 1, cost, &e, err);
		if (unit == 1) {
			*edge = e;
		}
	}
	return rc;
}

/* A demand's units are consecutive edges from edges[i] on; those with flow are
 * the site's share of it. */
static void read_split(struct circuit_work *w, const struct graph_flow *f, int site,
		       const int *edges)
{
	for (int i = 0; i < w->n_demands; i++) {
		int open = still_open(w, &w->demands[i], site), give = 0;

		for (int k = 0; k < open; k++) {
			give += (int)graph_flow_on(f, edges[i] + k);
		}
		*cell(w, w->give, &w->demands[i], site) = give;
	}
}

/* Arcs that leave and enter each rank and that no site before this one carries.
 * */
static void open_degrees(const struct circuit_work *w, int site, int *out, int *in)
{
	memset(out, 0, w->n * sizeof(*out));
	memset(in, 0, w->n * sizeof(*in));
	for (int i = 0; i < w->n_demands; i++) {
		int open = still_open(w, &w->demands[i], site);

		out[w->demands[i].u] += open;
		in[w->demands[i].v] += open;
	}
}

/* After a site is given its arcs, every rank's rest must fit later ones. */
static int check_rest(const struct circuit_work *w, int site, int *out, int *in, struct err *err)
{
	open_degrees(w, site + 1, out, in);
	for (int r = 0; r < w->n; r++) {
		if (out[r] > free_from(w, r, site + 1, true) ||
		    in[r] > free_from(w, r, site + 1, false)) {
			return err_set(err, WEFT_EINFEASIBLE,
				       "the topology's arcs at %s cannot be "
				       "spread over its %d switches",
				       w->fabric->hosts[w->job->hosts[r / w->each]].name,
				       w->n_sites);
		}
	}
	return 0;
}

/* Gives a site its arcs by a flow from ranks as senders to ranks as receivers,
 * with an edge for each unit of a demand, at least cost in circuits that would
 * have to move. */
static int split_site(struct circuit_work *w, int site, struct err *err)
{
	int *out = x_alloc(w->n, sizeof(*out)), *in = x_alloc(w->n, sizeof(*in));
	int *edges = x_new(w->n_demands + 1, sizeof(*edges));
	struct graph_flow *f = NULL;
	int rc;

	open_degrees(w, site, out, in);
	f = graph_flow_new(2 * w->n + 2);
	if ((rc = add_side(w, f, site, true, out, err)) ||
	    (rc = add_side(w, f, site, false, in, err))) {
		goto done;
	}
	for (int i = 0; i < w->n_demands && rc == 0; i++) {
		rc = add_demand(w, f, site, i, &edges[i], err);
	}
	if (rc == 0) {
		graph_flow_run(f, 2 * w->n, 2 * w->n + 1, 0, NULL, NULL);
		read_split(w, f, site, edges);
		rc = check_rest(w, site, out, in, err);
	}
done:
	graph_flow_free(f);
	free(out);
	free(in);
	free(edges);
	return rc;
}

/* The first site with a port each way of every rank for one more permutation, or -1. */
static int site_for_all(const struct plan_assignment *s, const int *used)
{
	for (int site = 0; site < s->n_sites; site++) {
		bool room = true;

		for (int r = 0; r < s->n_ranks && room; r++) {
			int cell = r * s->n_sites + site;

			room = used[site] < s->tx[cell] && used[site] < s->rx[cell];
		}
		if (room) {
			return site;
		}
	}
	return -1;
}

/* Where nothing is lit and a group takes each rank to each other, as that of a Cayley graph does:
 * whole orbits of arcs to sites. Such an orbit is a permutation of the ranks, and another topology
 * that has it leaves its site as it is. False: there is no group, or no room. */
static bool split_by_orbits(struct circuit_work *w, const struct plan_assignment *s)
{
	struct topo_group *group = NULL;
	struct topo_action *action = NULL;
	int *used = x_new((size_t)s->n_sites + 1, sizeof(*used)), *site, n;
	bool fits = topo_group_find(w->topo, &group, NULL) == 0 && group &&
		    topo_group_orbits(group) == 1 &&
		    topo_action_new(w->topo, group, &action, NULL) == 0;

	n = fits ? topo_action_orbits(action) : 0;
	site = x_new((size_t)n + 1, sizeof(*site));
	for (int o = 0; o < n && fits; o++) {
		const struct topo_arc *arc = topo_arc(w->topo, topo_action_first(action, o));

		site[o] = arc->src == arc->dst ? s->n_sites : site_for_all(s, used);
		fits = site[o] >= 0;
		used[fits ? site[o] : 0]++;
	}
	for (int a = 0; a < topo_m(w->topo) && fits; a++) {
		const struct topo_arc *arc = topo_arc(w->topo, a);
		int at = site[topo_action_orbit(action, a)];

		if (at < s->n_sites) {
			++*cell(w, w->give, find_demand(w, arc->src, arc->dst), at);
		}
	}
	topo_action_free(action);
	topo_group_free(group);
	free(used);
	free(site);
	return fits;
}

/* Nothing of the job is there, nor intended. */
static bool is_new(const struct circuit_work *w)
{
	bool any = w->out.n > 0;

	for (int c = 0; c < w->n_demands * w->n_sites && !any; c++) {
		any = w->have[c] || w->lost[c];
	}
	return !any;
}

/* One site after the other. */
static int split_in_turn(struct circuit_work *w, struct err *err)
{
	int rc = 0;

	if (w->n_sites == 1) {
		for (int i = 0; i < w->n_demands; i++) {
			w->give[i] = still_open(w, &w->demands[i], 0);
		}
		return 0;
	}
	for (int s = 0; s < w->n_sites && rc == 0; s++) {
		rc = split_site(w, s, err);
	}
	return rc;
}

/* Every demand has all of its circuits. */
static bool is_spread(const struct circuit_work *w)
{
	for (int i = 0; i < w->n_demands; i++) {
		if (still_open(w, &w->demands[i], w->n_sites) != 0) {
			return false;
		}
	}
	return true;
}

/* The tables of a spread, beside those that w has. */
struct circuit_tables {
	struct plan_assignment s;
	int (*ends)[2];
	int *open, *tx, *rx;
};

/* The work's numbers as plain tables: switch_assignment.c knows neither ports
 * nor devices. */
static void tables_init(struct circuit_tables *t, const struct circuit_work *w)
{
	size_t sides = (size_t)w->n * w->n_sites + 1;

	t->ends = x_alloc((size_t)w->n_demands + 1, sizeof(*t->ends));
	t->open = x_alloc((size_t)w->n_demands + 1, sizeof(*t->open));
	t->tx = x_alloc(sides, sizeof(*t->tx));
	t->rx = x_alloc(sides, sizeof(*t->rx));
	for (int i = 0; i < w->n_demands; i++) {
		t->ends[i][0] = w->demands[i].u;
		t->ends[i][1] = w->demands[i].v;
		t->open[i] = w->demands[i].open;
	}
	for (int i = 0; i < w->n * w->n_sites; i++) {
		t->tx[i] = count_free(w, i / w->n_sites, i % w->n_sites, true);
		t->rx[i] = count_free(w, i / w->n_sites, i % w->n_sites, false);
	}
	t->s = (struct plan_assignment){ .n_ranks = w->n,
					 .n_demands = w->n_demands,
					 .n_sites = w->n_sites,
					 .ends = (const int(*)[2])t->ends,
					 .open = t->open,
					 .have = w->have,
					 .lost = w->lost,
					 .tx = t->tx,
					 .rx = t->rx };
}

static void tables_fini(struct circuit_tables *t)
{
	free(t->ends);
	free(t->open);
	free(t->tx);
	free(t->rx);
}

/* A duplex circuit serves its pair of ranks whichever way round. */
static int max_pairs(const struct circuit_work *w)
{
	int n = 0;

	for (int i = 0; i < w->n_demands; i++) {
		const struct demand *x = &w->demands[i];
		const struct demand *back = find_demand(w, x->v, x->u);
		int open = x->open + back->open, have = 0;

		for (int s = 0; s < w->n_sites; s++) {
			have += *cell(w, w->have, x, s) +
				*cell(w, w->have, back, s);
		}
		n += x->u > x->v ? 0 : have < open ? have : open;
	}
	return n;
}

int plan_assignment_kept(const struct plan_assignment *s, const int *give)
{
	int n = 0;

	for (int c = 0; c < s->n_demands * s->n_sites; c++) {
		n += give[c] < s->have[c] ? give[c] : s->have[c];
	}
	return n;
}

int plan_assignment_bound(const struct plan_assignment *s)
{
	int n = 0;

	for (int w = 0; w < s->n_demands; w++) {
		int have = 0;

		for (int i = 0; i < s->n_sites; i++) {
			have += s->have[w * s->n_sites + i];
		}
		n += have < s->open[w] ? have : s->open[w];
	}
	return n;
}

/* Beyond this what was found in turn stands, with the bound that it has. */
#define MAX_EXACT 2000

static bool may_be_exact(const struct circuit_work *w)
{
	return (int64_t)w->n_demands * w->n_sites <= MAX_EXACT;
}

/* Of very many circuits of a step, where all of those that can stay may stay at once. Its lights
 * have few in common; to other topologies one that was spread so would lose more than by turns. */
static bool keep_all(struct circuit_work *w, const struct plan_assignment *s)
{
	if (!w->pj->step || may_be_exact(w) || !plan_assignment_direct(s, w->give)) {
		return false;
	}
	if (plan_assignment_kept(s, w->give) < plan_assignment_bound(s)) {
		memset(w->give, 0, (size_t)w->n_demands * w->n_sites * sizeof(*w->give));
		return false;
	}
	return true;
}

/* *most: no spread keeps more circuits. */
static int split(struct circuit_work *w, int *most, struct err *err)
{
	struct circuit_tables t;
	struct err own = { 0 };
	int rc = 0, r = 0;
	bool exact = w->n_sites < 3 && !w->duplex, many = w->n_sites > 2 && !w->duplex;

	tables_init(&t, w);
	if (!(many && is_new(w) && split_by_orbits(w, &t.s)) &&
	    !(many && keep_all(w, &t.s))) {
		rc = split_in_turn(w, &own);
	}
	*most = w->duplex ? max_pairs(w) : plan_assignment_bound(&t.s);
	if (rc == 0 && exact) {
		*most = plan_assignment_kept(&t.s, w->give);
	} else if (many && may_be_exact(w) &&
		   (rc ? rc == WEFT_EINFEASIBLE : plan_assignment_kept(&t.s, w->give) < *most)) {
		r = plan_assignment_exact(&t.s, rc == 0, w->give, most, err);
	} else if (rc == 0 && many) {
		plan_assignment_improve(&t.s, w->give, *most);
	}
	/* In turn is no proof that there is none. */
	if (r == 0 && rc && !(rc == WEFT_EINFEASIBLE && is_spread(w))) {
		*err = own;
		r = rc;
	}
	tables_fini(&t);
	return r;
}

/* ---- one way or the other ---- */

/* Every pair of ranks once, as often as it still wants a circuit. */
static int list_pairs(const struct circuit_work *w, int (*ends)[2])
{
	int m = 0;

	for (int i = 0; i < w->n_demands; i++) {
		const struct demand *x = &w->demands[i];

		for (int k = x->used; x->u < x->v && k < x->n; k++) {
			ends[m][0] = x->u;
			ends[m++][1] = x->v;
		}
	}
	return m;
}

/* A direction for each circuit that a pair of ranks still wants. At several
 * sites they are balanced, because a rank's ports at a site serve both
 * directions. */
static void orient_pairs(struct circuit_work *w)
{
	int (*ends)[2] = x_alloc(topo_m(w->topo) + 1, sizeof(*ends));
	bool *flip = x_new(topo_m(w->topo) + 1, sizeof(*flip));
	int m = list_pairs(w, ends);

	if (w->n_sites > 1) {
		plan_orient(w->n, m, (const int (*)[2])ends, flip);
	}
	for (int e = 0; e < m; e++) {
		find_demand(w, ends[e][flip[e]], ends[e][!flip[e]])->open++;
	}
	free(ends);
	free(flip);
}

/* What is still to be given, once what is adopted is out of the way. */
static void open_demands(struct circuit_work *w)
{
	if (w->duplex) {
		orient_pairs(w);
		return;
	}
	for (int i = 0; i < w->n_demands; i++) {
		w->demands[i].open = w->demands[i].n - w->demands[i].used;
	}
}

/* ---- checks before, order after ---- */

static int too_few_ports(const struct circuit_work *w, int rank, bool tx, int need,
			 int free_ports, struct err *err)
{
	const struct model_host *h = &w->fabric->hosts[w->job->hosts[rank / w->each]];
	const bool *external = tx ? w->tx_external : w->rx_external;
	int held = 0, n = 0;

	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		bool ours = w->rank_at[p] == rank && plan_has_port(w->fabric, w->job, p);

		n += ours;
		held += ours && external[p];
	}
	err_set(err, WEFT_EINFEASIBLE,
		"topology %s needs %d %sports at %s, %d of %d are usable",
		w->pj->topology, need,
		w->duplex ? "" : tx ? "transmit " : "receive ", h->name,
		free_ports, n);
	if (held > 0) {
		err_hint(err, "%d carry circuits that weft did not make; mode "
			      "update takes such ports over", held);
	}
	return err->code;
}

/* The degree of a rank against its usable ports. At duplex sites arcs of both
 * directions use the same ports. */
static int check_ports(const struct circuit_work *w, int rank, int out, int in, struct err *err)
{
	int tx = 0, rx = 0;

	for (int s = 0; s < w->n_sites; s++) {
		tx += count_ports(w, rank, s, true);
		rx += count_ports(w, rank, s, false);
	}
	if (w->duplex) {
		out += in;
		in = 0;
	}
	if (out > tx) {
		return too_few_ports(w, rank, true, out, tx, err);
	}
	return in > rx ? too_few_ports(w, rank, false, in, rx, err) : 0;
}

static int check_degrees(const struct circuit_work *w, struct err *err)
{
	int *out = x_alloc(w->n, sizeof(*out)), *in = x_alloc(w->n, sizeof(*in));
	int rc = 0;

	open_degrees(w, 0, out, in);
	for (int r = 0; r < w->n && rc == 0; r++) {
		rc = check_ports(w, r, out[r], in[r], err);
	}
	free(out);
	free(in);
	return rc;
}

/* A duplex circuit has light both ways, so the digraph must have as many arcs
 * back. */
static int check_both_paths(const struct circuit_work *w, struct err *err)
{
	for (int i = 0; w->duplex && i < w->n_demands; i++) {
		const struct demand *x = &w->demands[i];
		const struct demand *back = find_demand(w, x->v, x->u);

		if (!back || back->n != x->n) {
			return err_set(err, WEFT_EINFEASIBLE,
				       "topology %s is one-way between ranks "
				       "%d and %d, switch %s joins ports both "
				       "ways", w->pj->topology, x->u, x->v,
				       w->fabric->devices[w->site_device[0]]
					       .name);
		}
	}
	return 0;
}

ORDER_BY(by_device_and_port, struct plan_circuit, device, xc.in, arc)

static void work_init(struct circuit_work *w)
{
	const struct model_fabric *f = w->fabric;

	w->rank_at = x_alloc(f->n_ports + 1, sizeof(int));
	w->site_of = x_alloc(f->n_devices + 1, sizeof(int));
	w->site_device = x_alloc(f->n_devices + 1, sizeof(int));
	w->tx_free = x_new(f->n_ports + 1, sizeof(bool));
	w->rx_free = x_new(f->n_ports + 1, sizeof(bool));
	w->tx_external = x_new(f->n_ports + 1, sizeof(bool));
	w->rx_external = x_new(f->n_ports + 1, sizeof(bool));
	memset(w->rank_at, -1, f->n_ports * sizeof(int));
	memset(w->site_of, -1, f->n_devices * sizeof(int));
	find_ports_and_sites(w);
}

/* Tables of demands by sites, zeroed, and room for a circuit an arc. */
static void work_tables(struct circuit_work *w)
{
	size_t cells = (size_t)w->n_demands * w->n_sites + 1;

	w->have = x_new(cells, sizeof(int));
	w->lost = x_new(cells, sizeof(int));
	w->give = x_new(cells, sizeof(int));
	vec_reserve(&w->out, topo_m(w->topo) + 1);
}

static void work_fini(struct circuit_work *w)
{
	free(w->rank_at);
	free(w->site_of);
	free(w->site_device);
	free(w->tx_free);
	free(w->rx_free);
	free(w->tx_external);
	free(w->rx_external);
	free(w->arcs);
	free(w->demands);
	free(w->have);
	free(w->lost);
	free(w->give);
	vec_fini(&w->out);
}

/* In SAFE mode an external circuit is adopted when it is just what the job
 * wants, and its ports are out of reach when it is not. */
static void respect_external(struct circuit_work *w)
{
	each_observed(w, mark_external);
	if (w->ctx->base->mode != PLAN_SAFE) {
		return;
	}
	each_observed(w, adopt_external);
	for (int p = 0; p < w->fabric->n_ports; p++) {
		w->tx_free[p] &= !w->tx_external[p];
		w->rx_free[p] &= !w->rx_external[p];
	}
}

int plan_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	struct circuit_work w = {
		.ctx = ctx,
		.fabric = ctx->fabric,
		.job = &ctx->fabric->jobs[pj->job],
		.pj = pj,
		.topo = coll_physical(pj->sched),
		.n = coll_ranks(pj->sched),
		.each = plan_ranks_each(&ctx->fabric->jobs[pj->job]),
	};
	int rc, most, n_adopted;

	work_init(&w);
	if ((rc = check_sites(&w, err))) {
		goto out;
	}
	group_arcs(&w);
	if ((rc = check_both_paths(&w, err))) {
		goto out;
	}
	work_tables(&w);
	each_observed(&w, keep_held);
	close_held(&w);
	respect_external(&w);
	open_demands(&w);
	if ((rc = check_degrees(&w, err))) {
		goto out;
	}
	each_observed(&w, count_have);
	for (int s = 0; s < w.n_sites; s++) {
		each_missing(&w, s, count_lost);
	}
	n_adopted = (int)w.out.n;
	if ((rc = split(&w, &most, err))) {
		goto out;
	}
	each_observed(&w, keep_present);
	for (int s = 0; s < w.n_sites && rc == 0; s++) {
		each_missing(&w, s, restore_missing);
		rc = fill_site(&w, s, err);
	}
	if (rc) {
		goto out;
	}
	qsort(w.out.v, w.out.n, sizeof(*w.out.v), by_device_and_port);
	pj->n_circuits = (int)w.out.n;
	pj->circuits = w.out.v;
	w.out.v = NULL;
	pj->moves_bound = pj->n_circuits - n_adopted -
			  (w.duplex ? 2 : 1) * most;
out:
	work_fini(&w);
	return rc;
}
