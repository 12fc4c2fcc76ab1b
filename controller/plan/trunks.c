/*
 * Circuits of a job whose switches are joined by fibres.
 *
 * Ports, switches and trunks become a mesh for rwa: a node that sends and one
 * that receives for each rank, a node for each switch, and as many fibres on
 * an arc as there are ports or trunks that may be used. Every fibre carries one
 * lightpath, for which guard channels as wide as the band stand. What is
 * observed is given as the assignment before, so that few circuits move.
 *
 * A trunk may lie between multiplexers that pass one wavelength; only hosts
 * with tuned transmitters can use it. The channels of the mesh are those
 * wavelengths and, as the last one, light that is not tuned: what a trunk or
 * a transmitter does not pass is shut on its fibre. Switches change no
 * wavelength and receivers take any. Without such trunks there is one
 * channel.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "rwa/mesh/mesh.h"

/* What a fibre of the mesh stands for. */
enum kind { SENDS, TRUNK, RECEIVES };

/* What a fibre of an arc is: a host port, or a trunk. */
struct fibre {
	int32_t arc, index;	/* in the mesh */
	int id;
};

struct trunk_work {
	struct plan_ctx *ctx;
	const struct model_fabric *fabric;
	const struct model_job *job;
	const struct topo *topo;
	struct plan_job *pj;
	int n;				/* ranks */
	int *rank_of;			/* [hosts] or -1 */
	int channels;			/* of the mesh; the last is untuned */
	struct rwa_mesh *mesh;
	struct u64map arcs;		/* (node, node) to arc */
	VEC(enum kind) kind;		/* of arcs */
	VEC(struct fibre) fibres;	/* by arc, index once sorted */
	int *tx_fibre, *rx_fibre, *trunk_fibre;	/* in fibres, -1: none */
	bool **in_shut, **out_shut;	/* [devices] port held by others */
	VEC(int) demand_arcs;		/* arcs of the digraph, by demand */
	int *first_arc;			/* of a demand, in demand_arcs */
	struct rwa_assignment before;
	VEC(struct plan_circuit) out;
};

bool plan_has_trunks(const struct plan_ctx *ctx, const struct model_job *job)
{
	const struct model_fabric *f = ctx->fabric;

	for (int r = 0; r < job->n_hosts; r++) {
		const struct model_host *h = &f->hosts[job->hosts[r]];

		for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
			int d = f->ports[p].tx_device;

			for (int t = 0; d >= 0 && t < f->n_trunks; t++) {
				if (f->trunks[t].from_device == d) {
					return true;
				}
			}
		}
	}
	return false;
}

/* ---- the mesh ---- */

/* Nodes of the mesh: n ranks that send, n that receive, then the devices. */
static int switch_node(const struct trunk_work *w, int device)
{
	return 2 * w->n + device;
}

/* Whether a transmitter can send on a channel of the mesh, the last of which
 * stands for light that is not tuned. */
static bool sends(const struct trunk_work *w, int port, int channel)
{
	const struct model_host *h = &w->fabric->hosts[w->fabric->ports[port].host];

	for (int i = 0; i < h->n_channels; i++) {
		if (h->channels[i] == channel) {
			return true;
		}
	}
	return h->n_channels == 0 && channel == w->channels - 1;
}

/* Whether a fibre carries a channel. Receivers take any. */
static bool passes(const struct trunk_work *w, enum kind kind, int id, int channel)
{
	if (kind == TRUNK) {
		const struct model_trunk *t = &w->fabric->trunks[id];

		return t->channel < 0 || t->channel == channel;
	}
	return kind == RECEIVES || sends(w, id, channel);
}

/* What the newest fibre does not carry. */
static int shut_channels(struct trunk_work *w, enum kind kind, int id, struct err *err)
{
	const struct fibre *f = &w->fibres.v[w->fibres.n - 1];
	int rc = 0;

	for (int c = 0; !rc && w->channels > 1 && c < w->channels; c++) {
		struct rwa_mesh_block b = { f->arc, f->index, c, true };

		rc = passes(w, kind, id, c)
			     ? 0 : rwa_mesh_add_block(w->mesh, &b, err);
	}
	return rc;
}

/* Wavelengths of trunks and transmitters, and untuned light; only the latter
 * when no trunk filters. */
static int count_channels(const struct trunk_work *w)
{
	bool filtered = false;
	int last = -1;

	for (int t = 0; t < w->fabric->n_trunks; t++) {
		int c = w->fabric->trunks[t].channel;

		filtered |= c >= 0;
		last = c > last ? c : last;
	}
	for (int r = 0; filtered && r < w->n; r++) {
		const struct model_host *h = &w->fabric->hosts[w->job->hosts[r]];

		for (int i = 0; i < h->n_channels; i++) {
			last = h->channels[i] > last ? h->channels[i] : last;
		}
	}
	return filtered ? last + 2 : 1;
}

/* One more fibre on the arc between two nodes. */
static int add_fibre(struct trunk_work *w, int from, int to, enum kind kind, int id,
		     struct err *err)
{
	uint64_t key = (uint64_t)from << 32 | (uint32_t)to, arc;
	struct rwa_mesh_arc new = { from, to, 1, 0 };
	int rc = 0;

	if (!u64map_get(&w->arcs, key, &arc)) {
		arc = w->mesh->arcs.n;
		rc = rwa_mesh_add_arc(w->mesh, &new, err);
		if (!rc && (u64map_set(&w->arcs, key, arc) || vec_push(&w->kind, kind))) {
			rc = err_nomem(err);
		}
	} else {
		w->mesh->arcs.v[arc].fibres++;
	}
	if (!rc && vec_push(&w->fibres,
			    (struct fibre){ (int32_t)arc,
					    w->mesh->arcs.v[arc].fibres - 1,
					    id })) {
		rc = err_nomem(err);
	}
	if (rc) {
		return rc;
	}
	return shut_channels(w, kind, id, err);
}

static bool is_bad(const int *list, int n, int port)
{
	for (int i = 0; i < n; i++) {
		if (list[i] == port) {
			return true;
		}
	}
	return false;
}

/* No job before has it, and neither of its ports has failed or is held by a
 * circuit of others. */
static bool trunk_usable(const struct trunk_work *w, int trunk)
{
	const struct model_trunk *t = &w->fabric->trunks[trunk];
	const struct plan_light *from = plan_observed(w->ctx, t->from_device);
	const struct plan_light *to = plan_observed(w->ctx, t->to_device);

	return !w->ctx->trunk_taken[trunk] &&
	       !w->out_shut[t->from_device][t->from_port] &&
	       !w->in_shut[t->to_device][t->to_port] &&
	       !is_bad(from->bad_out, from->n_bad_out, t->from_port) &&
	       !is_bad(to->bad_in, to->n_bad_in, t->to_port);
}

/* A host port on a one-way switch, not under a circuit of others. */
static bool on_switch(const struct trunk_work *w, int device, bool **shut, int port)
{
	const struct model_device *d = &w->fabric->devices[device];

	return d->kind != MODEL_RING && !d->any_to_any && !shut[device][port];
}

/* The rank's usable ports, as fibres to and from the nodes of their switches.
 * */
static int add_ports(struct trunk_work *w, int rank, struct err *err)
{
	const struct model_host *h = &w->fabric->hosts[w->job->hosts[rank]];
	int rc = 0;

	for (int p = h->first_port; !rc && p < h->first_port + h->n_ports; p++) {
		const struct model_port *port = &w->fabric->ports[p];

		if (plan_tx_usable(w->ctx, p) &&
		    on_switch(w, port->tx_device, w->in_shut, port->tx_port)) {
			w->tx_fibre[p] = (int)w->fibres.n;
			rc = add_fibre(w, rank, switch_node(w, port->tx_device), SENDS, p, err);
		}
		if (!rc && plan_rx_usable(w->ctx, p) &&
		    on_switch(w, port->rx_device, w->out_shut, port->rx_port)) {
			w->rx_fibre[p] = (int)w->fibres.n;
			rc = add_fibre(w, switch_node(w, port->rx_device),
				       w->n + rank, RECEIVES, p, err);
		}
	}
	return rc;
}

static int add_trunks(struct trunk_work *w, struct err *err)
{
	int rc = 0;

	for (int t = 0; !rc && t < w->fabric->n_trunks; t++) {
		const struct model_trunk *x = &w->fabric->trunks[t];

		w->trunk_fibre[t] = -1;
		if (trunk_usable(w, t)) {
			w->trunk_fibre[t] = (int)w->fibres.n;
			rc = add_fibre(w, switch_node(w, x->from_device),
				       switch_node(w, x->to_device), TRUNK, t,
				       err);
		}
	}
	return rc;
}

/* Names of hosts and devices, for the messages of rwa. */
static int name_nodes(struct trunk_work *w, struct err *err)
{
	for (size_t v = 0; v < w->mesh->nodes.n; v++) {
		int k = (int)v;
		const char *name = k >= 2 * w->n
				? w->fabric->devices[k - 2 * w->n].name
				: w->fabric->hosts[w->job->hosts[k % w->n]]
					  .name;

		w->mesh->nodes.v[v].name = strdup(name);
		if (!w->mesh->nodes.v[v].name) {
			return err_nomem(err);
		}
	}
	return 0;
}

/* Ports held by circuits that weft did not make; mode update takes them. */
static int shut_external(struct trunk_work *w, struct err *err)
{
	for (int d = 0; d < w->fabric->n_devices; d++) {
		const struct model_device *dev = &w->fabric->devices[d];
		const struct plan_light *seen = plan_observed(w->ctx, d);

		w->in_shut[d] = calloc((size_t)dev->n_in + 1, sizeof(bool));
		w->out_shut[d] = calloc((size_t)dev->n_out + 1, sizeof(bool));
		if (!w->in_shut[d] || !w->out_shut[d]) {
			return err_nomem(err);
		}
		for (int i = 0; dev->kind != MODEL_RING && i < seen->n_xcs &&
				w->ctx->base->mode == PLAN_SAFE; i++) {
			struct optics_xc xc = seen->xcs[i];

			if (xc.in >= 0 && xc.in < dev->n_in && xc.out >= 0 && xc.out < dev->n_out &&
			    plan_is_external(w->ctx, d, xc)) {
				w->in_shut[d][xc.in] = true;
				w->out_shut[d][xc.out] = true;
			}
		}
	}
	return 0;
}

/* ---- demands ---- */

static int by_ends(const void *a, const void *b, void *topo)
{
	const struct topo_arc *x = topo_arc(topo, *(const int *)a);
	const struct topo_arc *y = topo_arc(topo, *(const int *)b);

	if (x->src != y->src) {
		return x->src - y->src;
	}
	return x->dst != y->dst ? x->dst - y->dst
				: *(const int *)a - *(const int *)b;
}

/* A demand for each pair of ranks, of as many lightpaths as there are arcs;
 * first_arc tells which arcs they are. */
static int add_demands(struct trunk_work *w, struct err *err)
{
	int m = topo_m(w->topo), rc = 0;

	w->first_arc = calloc((size_t)m + 2, sizeof(*w->first_arc));
	if (!w->first_arc || vec_reserve(&w->demand_arcs, (size_t)m + 1)) {
		return err_nomem(err);
	}
	for (int a = 0; a < m; a++) {
		if (topo_arc(w->topo, a)->src != topo_arc(w->topo, a)->dst) {
			w->demand_arcs.v[w->demand_arcs.n++] = a;
		}
	}
	qsort_r(w->demand_arcs.v, w->demand_arcs.n, sizeof(int), by_ends, (void *)w->topo);
	for (int i = 0, end; !rc && i < (int)w->demand_arcs.n; i = end) {
		const struct topo_arc *arc = topo_arc(w->topo, w->demand_arcs.v[i]);
		struct rwa_mesh_demand d = { .src = arc->src,
					     .dst = w->n + arc->dst };

		for (end = i; end < (int)w->demand_arcs.n; end++) {
			const struct topo_arc *x = topo_arc(w->topo, w->demand_arcs.v[end]);

			if (x->src != arc->src || x->dst != arc->dst) {
				break;
			}
		}
		d.count = end - i;
		w->first_arc[w->mesh->demands.n] = i;
		rc = rwa_mesh_add_demand(w->mesh, &d, err);
	}
	return rc;
}

static int work_init(struct trunk_work *w, struct err *err)
{
	const struct model_fabric *f = w->fabric;
	int rc;

	w->rank_of = malloc(((size_t)f->n_hosts + 1) * sizeof(int));
	w->tx_fibre = malloc(((size_t)f->n_ports + 1) * sizeof(int));
	w->rx_fibre = malloc(((size_t)f->n_ports + 1) * sizeof(int));
	w->trunk_fibre = malloc(((size_t)f->n_trunks + 1) * sizeof(int));
	w->in_shut = calloc((size_t)f->n_devices + 1, sizeof(bool *));
	w->out_shut = calloc((size_t)f->n_devices + 1, sizeof(bool *));
	if (!w->rank_of || !w->tx_fibre || !w->rx_fibre || !w->trunk_fibre ||
	    !w->in_shut || !w->out_shut) {
		return err_nomem(err);
	}
	memset(w->rank_of, -1, (size_t)f->n_hosts * sizeof(int));
	memset(w->tx_fibre, -1, (size_t)f->n_ports * sizeof(int));
	memset(w->rx_fibre, -1, (size_t)f->n_ports * sizeof(int));
	rc = rwa_mesh_new(2 * w->n + f->n_devices, &w->mesh, err);
	if (!rc) {
		w->channels = count_channels(w);
		w->mesh->guard.between = w->channels - 1;
	}
	if (rc == 0 && (rc = name_nodes(w, err)) == 0) {
		rc = shut_external(w, err);
	}
	for (int r = 0; !rc && r < w->n; r++) {
		w->rank_of[w->job->hosts[r]] = r;
		rc = add_ports(w, r, err);
	}
	if (rc || (rc = add_trunks(w, err))) {
		return rc;
	}
	return add_demands(w, err);
}

static void work_fini(struct trunk_work *w)
{
	for (int d = 0; d < w->fabric->n_devices; d++) {
		free(w->in_shut ? w->in_shut[d] : NULL);
		free(w->out_shut ? w->out_shut[d] : NULL);
	}
	free(w->rank_of);
	free(w->tx_fibre);
	free(w->rx_fibre);
	free(w->trunk_fibre);
	free(w->in_shut);
	free(w->out_shut);
	free(w->first_arc);
	rwa_mesh_free(w->mesh);
	u64map_fini(&w->arcs);
	vec_fini(&w->kind);
	vec_fini(&w->fibres);
	vec_fini(&w->demand_arcs);
	vec_fini(&w->out);
	rwa_assignment_fini(&w->before);
}

/* ---- channels of paths ---- */

/* The port or trunk that the fibre of a hop stands for. O(fibres). */
static int id_of(const struct trunk_work *w, const struct rwa_hop *h)
{
	for (size_t i = 0; i < w->fibres.n; i++) {
		if (w->fibres.v[i].arc == h->arc && w->fibres.v[i].index == h->fibre) {
			return w->fibres.v[i].id;
		}
	}
	return -1;
}

/* The wavelength of a path: that of its filters, else the first one that its
 * transmitter has, else untuned; -1: no light comes through. */
static int channel_of(const struct trunk_work *w, const struct rwa_hop *hops, int32_t n)
{
	int tx = id_of(w, &hops[0]), channel = -1;
	const struct model_host *h = &w->fabric->hosts[w->fabric->ports[tx].host];

	for (int32_t k = 1; k < n; k++) {
		int c = w->kind.v[hops[k].arc] == TRUNK
			? w->fabric->trunks[id_of(w, &hops[k])].channel : -1;

		if (c >= 0 && channel >= 0 && c != channel) {
			return -1;
		}
		channel = c >= 0 ? c : channel;
	}
	if (channel >= 0) {
		return sends(w, tx, channel) ? channel : -1;
	}
	return h->n_channels && w->channels > 1 ? h->channels[0]
						 : w->channels - 1;
}

/* ---- what is lit already ---- */

/* The output that an input is connected to, -1: none. O(circuits). */
static int observed_out(const struct trunk_work *w, int device, int in)
{
	const struct plan_light *seen = plan_observed(w->ctx, device);

	for (int i = 0; i < seen->n_xcs; i++) {
		if (seen->xcs[i].in == in) {
			return seen->xcs[i].out;
		}
	}
	return -1;
}

static int trunk_at(const struct trunk_work *w, int device, int out)
{
	for (int t = 0; t < w->fabric->n_trunks; t++) {
		if (w->fabric->trunks[t].from_device == device &&
		    w->fabric->trunks[t].from_port == out) {
			return t;
		}
	}
	return -1;
}

/* Adds a hop to the path that is followed; tune_path sets its channel. */
static int push_hop(struct trunk_work *w, int fibre)
{
	const struct fibre *f = &w->fibres.v[fibre];

	return vec_push(&w->before.hops,
			(struct rwa_hop){ f->arc, f->index, 0 });
}

/* Follows the light of a port. *rx: the port that it ends at, -1: none that
 * may be used. */
static int follow(struct trunk_work *w, int tx, int *rx)
{
	const struct model_fabric *f = w->fabric;
	int device = f->ports[tx].tx_device, in = f->ports[tx].tx_port;
	int rc = push_hop(w, w->tx_fibre[tx]);

	*rx = -1;
	for (int k = 0; !rc && k <= f->n_devices; k++) {
		int out = observed_out(w, device, in), port, trunk;

		if (out < 0 || out >= f->devices[device].n_out) {
			break;
		}
		port = f->devices[device].out_port[out];
		trunk = port == MODEL_AT_TRUNK ? trunk_at(w, device, out) : -1;
		if (trunk < 0) {
			*rx = port >= 0 && w->rx_fibre[port] >= 0 ? port : -1;
			return *rx < 0 ? 0 : push_hop(w, w->rx_fibre[port]);
		}
		if (w->trunk_fibre[trunk] < 0) {
			break;
		}
		rc = push_hop(w, w->trunk_fibre[trunk]);
		device = f->trunks[trunk].to_device;
		in = f->trunks[trunk].to_port;
	}
	return rc;
}

/* Gives the hops from `first` on their channel; false when none gets
 * through. */
static bool tune_path(struct trunk_work *w, size_t first)
{
	struct rwa_hop *hops = w->before.hops.v + first;
	int32_t n = (int32_t)(w->before.hops.n - first);
	int channel = channel_of(w, hops, n);

	for (int32_t k = 0; k < n; k++) {
		hops[k].channel = channel;
	}
	return channel >= 0;
}

static int demand_of(const struct trunk_work *w, int src, int dst)
{
	for (size_t d = 0; d < w->mesh->demands.n; d++) {
		if (w->mesh->demands.v[d].src == src && w->mesh->demands.v[d].dst == w->n + dst) {
			return (int)d;
		}
	}
	return -1;
}

/* Paths as rwa wants the assignment before: by demand, else as they were found.
 * */
static int by_demand(const void *a, const void *b)
{
	const struct rwa_path *x = a, *y = b;

	if (x->demand != y->demand) {
		return x->demand - y->demand;
	}
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Light that is there and goes between ranks that want it. */
static int find_before(struct trunk_work *w, struct err *err)
{
	int *left = calloc(w->mesh->demands.n + 1, sizeof(*left));
	int rc = left ? 0 : WEFT_ENOMEM;

	for (size_t d = 0; !rc && d < w->mesh->demands.n; d++) {
		left[d] = w->mesh->demands.v[d].count;
	}
	for (int p = 0; !rc && p < w->fabric->n_ports; p++) {
		size_t first = w->before.hops.n;
		int rx, d = -1;

		if (w->tx_fibre[p] < 0) {
			continue;
		}
		rc = follow(w, p, &rx);
		if (!rc && rx >= 0) {
			d = demand_of(w, w->rank_of[w->fabric->ports[p].host],
				      w->rank_of[w->fabric->ports[rx].host]);
		}
		if (d < 0 || left[d] == 0 || !tune_path(w, first)) {
			w->before.hops.n = first;
			continue;
		}
		left[d]--;
		rc = vec_push(&w->before.paths, (struct rwa_path){
				      d, (int32_t)(w->before.hops.n - first),
				      (int64_t)first });
	}
	if (!rc && w->before.paths.n) {
		qsort(w->before.paths.v, w->before.paths.n, sizeof(*w->before.paths.v), by_demand);
	}
	free(left);
	return rc ? err_nomem(err) : 0;
}

/* ---- the answer ---- */

/* What the transmitter of a path is tuned to, -1: it is not. */
static int tuned_to(const struct trunk_work *w, const struct rwa_hop *hops, int32_t n)
{
	int tx = id_of(w, &hops[0]);
	const struct model_host *h = &w->fabric->hosts[w->fabric->ports[tx].host];

	if (h->n_channels == 0) {
		return -1;
	}
	return w->channels > 1 ? channel_of(w, hops, n) : h->channels[0];
}

/* A circuit on every switch of a path. */
static int emit_path(struct trunk_work *w, const struct rwa_path *p,
		     const struct rwa_hop *hops, struct err *err)
{
	const struct model_fabric *f = w->fabric;
	int tx = id_of(w, &hops[0]), rx = id_of(w, &hops[p->hops - 1]);
	struct plan_circuit c = {
		.arc = w->demand_arcs.v[w->first_arc[p->demand]++],
		.device = f->ports[tx].tx_device,
		.xc.in = f->ports[tx].tx_port,
		.tx_port = tx, .rx_port = rx,
		.channel = tuned_to(w, hops, p->hops),
	};

	w->ctx->tx_taken[tx] = w->ctx->rx_taken[rx] = true;
	for (int32_t h = 1; h < p->hops; h++) {
		int id = id_of(w, &hops[h]);
		const struct model_trunk *t =
			w->kind.v[hops[h].arc] == TRUNK ? &f->trunks[id] : NULL;

		c.xc.out = t ? t->from_port : f->ports[rx].rx_port;
		c.moved = !plan_is_lit(plan_observed(w->ctx, c.device), c.xc);
		if (vec_push(&w->out, c)) {
			return err_nomem(err);
		}
		if (t) {
			w->ctx->trunk_taken[id] = true;
			c.device = t->to_device;
			c.xc.in = t->to_port;
		}
	}
	return 0;
}

static int by_device_and_port(const void *a, const void *b)
{
	const struct plan_circuit *x = a, *y = b;

	return x->device != y->device ? x->device - y->device
				      : x->xc.in - y->xc.in;
}

/* Says whether it is proven that no more fit, or only that no more routes were
 * found. */
static int too_few(const struct trunk_work *w, const struct rwa_mesh_result *res, struct err *err)
{
	bool proven = res->lightpaths_bound < w->mesh->lightpaths;

	err_set(err, WEFT_EINFEASIBLE,
		"topology %s needs %lld lightpaths over the switches and their "
		"trunks, %s %lld fit", w->pj->topology,
		(long long)w->mesh->lightpaths,
		proven ? "at most" : "routes were found for only",
		(long long)(proven ? res->lightpaths_bound
				   : res->lightpaths));
	err_hint(err, w->channels > 1
		 ? "more fibres between switches, or more 'channels' of hosts: "
		   "a fibre with a channel carries no other"
		 : "more fibres between switches, or a topology with fewer "
		   "arcs between their hosts");
	return err->code;
}

/* Solves the mesh for the fewest circuits that move, and gives each lightpath
 * its circuits. */
static int route(struct trunk_work *w, struct err *err)
{
	struct rwa_mesh_options opt = {
		.channels = w->channels, .seed = 1,
		.objective = RWA_MIN_MOVED,
		.before = w->before.paths.n ? &w->before : NULL,
	};
	struct rwa_mesh_result res;
	int rc = rwa_mesh_solve(w->mesh, &opt, &res, err);

	if (rc) {
		return err_wrap(err, "topology %s", w->pj->topology);
	}
	if (res.lightpaths < w->mesh->lightpaths) {
		rc = too_few(w, &res, err);
	}
	for (size_t i = 0; !rc && i < res.assignment.paths.n; i++) {
		const struct rwa_path *p = &res.assignment.paths.v[i];

		rc = emit_path(w, p, res.assignment.hops.v + p->first, err);
	}
	rwa_mesh_result_fini(&res);
	return rc;
}

int plan_trunk_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	struct trunk_work w = {
		.ctx = ctx, .fabric = ctx->fabric,
		.job = &ctx->fabric->jobs[pj->job], .pj = pj,
		.topo = coll_topo(pj->sched), .n = coll_ranks(pj->sched),
	};
	int rc = work_init(&w, err);

	if (rc == 0 && (rc = find_before(&w, err)) == 0) {
		rc = route(&w, err);
	}
	if (!rc) {
		qsort(w.out.v, w.out.n, sizeof(*w.out.v), by_device_and_port);
		pj->n_circuits = (int)w.out.n;
		pj->circuits = w.out.v;
		w.out.v = NULL;
	}
	work_fini(&w);
	return rc;
}
