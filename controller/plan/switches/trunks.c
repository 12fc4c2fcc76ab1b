/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The switches of jobs and the fibres between them, as a mesh for rwa.
 *
 * There is one mesh for all jobs whose light is looked for together, so that
 * what one of them is given is not in the way of another. Nodes are the switches.
 * Trunks between the same two switches are an arc. A trunk between multiplexers
 * passes one wavelength: the k-th of each wavelength are the k-th fibre of the
 * arc, and a wavelength that a fibre lacks is shut by a filter. Any other trunk
 * is a fibre for one lightpath, whatever its wavelength. Trunks that are taken,
 * dead or under a circuit of others are not there.
 *
 * A job's lightpaths begin and end at the switch of a host, and which of the ports
 * that it has there they use is decided afterwards: these are an end. A link of a
 * job of circuits has ends of one port. An end is a node of its own, with a fibre for
 * each port, where it is on several switches, where hosts do not send the same
 * wavelengths, and where the power at its ports counts.
 *
 * Ends, nodes and lightpaths go by their number in the fabric, so that the order
 * of its jobs makes no difference.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"

/* ---- what may be used ---- */

/* Ports under circuits that weft did not make; mode update takes them. */
static void shut_external(struct trunk_network *w, int device)
{
	const struct model_device *dev = &w->fabric->devices[device];
	const struct plan_light *seen = plan_observed(w->ctx, device);

	if (dev->kind == MODEL_RING || w->ctx->base->mode != PLAN_SAFE) {
		return;
	}
	for (int i = 0; i < seen->n_xcs; i++) {
		struct optics_xc xc = seen->xcs[i];

		if (xc.in >= 0 && xc.in < dev->n_in && xc.out >= 0 && xc.out < dev->n_out &&
		    plan_is_external(w->ctx, device, xc)) {
			w->in_shut[device][xc.in] = true;
			w->out_shut[device][xc.out] = true;
		}
	}
}

bool trunk_works(const struct trunk_network *w, int trunk)
{
	const struct model_trunk *t = &w->fabric->trunks[trunk];

	return plan_works(plan_observed(w->ctx, t->from_device), false, t->from_port) &&
	       plan_works(plan_observed(w->ctx, t->to_device), true, t->to_port);
}

/* No job that stays as it is has it, neither of its ports has failed or is held
 * by a circuit of others, and hosts send what it passes. */
static bool is_trunk_usable(const struct trunk_network *w, int trunk)
{
	const struct model_trunk *t = &w->fabric->trunks[trunk];

	return !w->taken[trunk] &&
	       !w->out_shut[t->from_device][t->from_port] &&
	       !w->in_shut[t->to_device][t->to_port] &&
	       (w->as_whole || trunk_works(w, trunk)) &&
	       (t->channel < 0 || trunk_channel(w, t->channel) >= 0);
}

/* A host port on a one-way switch, not under a circuit of others. */
static bool on_switch(const struct trunk_network *w, int device, bool **shut, int port)
{
	const struct model_device *d = &w->fabric->devices[device];

	return d->kind != MODEL_RING && !d->any_to_any && !shut[device][port];
}

static bool is_end(const struct trunk_network *w, int port)
{
	return w->end_of[port] == port;
}

/* The job of these whose light leaves (or arrives at) a port, NULL: none. */
static struct plan_job *job_at(const struct trunk_network *w, int port, bool tx)
{
	const struct model_port *p = &w->fabric->ports[port];
	int job = tx ? p->tx_job : p->rx_job;

	return job < 0 ? NULL : w->job_of[job];
}

/* Marks the ports that light of these jobs may use. */
static void mark_ports(struct trunk_network *w)
{
	for (int p = 0; p < w->fabric->n_ports; p++) {
		const struct model_port *x = &w->fabric->ports[p];

		w->tx_open[p] = job_at(w, p, true) && plan_tx_usable(w->ctx, p) &&
				!w->ctx->tx_shut[p] &&
				on_switch(w, x->tx_device, w->in_shut, x->tx_port);
		w->rx_open[p] = job_at(w, p, false) && plan_rx_usable(w->ctx, p) &&
				!w->ctx->rx_shut[p] &&
				on_switch(w, x->rx_device, w->out_shut, x->rx_port);
	}
}

/* ---- channels ---- */

int trunk_channel(const struct trunk_network *w, int wave)
{
	for (int c = 0; c < w->channels; c++) {
		if (w->wave[c] == wave) {
			return c;
		}
	}
	return -1;
}

bool trunk_sends(const struct trunk_network *w, int host, int channel)
{
	const struct model_host *h = &w->fabric->hosts[host];
	int wave = w->wave[channel];

	if (!w->is_filtered || h->n_channels == 0) {
		return !w->is_filtered || wave < 0;
	}
	for (int i = 0; i < h->n_channels; i++) {
		if (h->channels[i] == wave) {
			return true;
		}
	}
	return false;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Adds what a host sends to the channels; light that is not tuned is -1. */
static void add_waves(struct trunk_network *w, const struct model_host *h)
{
	int untuned = -1, n = h->n_channels ? h->n_channels : 1;
	const int *waves = h->n_channels ? h->channels : &untuned;

	for (int i = 0; i < n; i++) {
		w->wave = x_grow(w->wave, (size_t)w->channels + 1, sizeof(*w->wave));
		if (trunk_channel(w, waves[i]) < 0) {
			w->wave[w->channels++] = waves[i];
		}
	}
}

/* The channels are all that hosts of these jobs send, where a trunk filters; else
 * one will do. *alike: all of them send the same. */
static void find_channels(struct trunk_network *w, bool *alike)
{
	static const struct model_host untuned;
	const struct model_fabric *f = w->fabric;

	*alike = true;
	for (int t = 0; t < f->n_trunks; t++) {
		w->is_filtered |= f->trunks[t].channel >= 0;
	}
	if (!w->is_filtered) {
		add_waves(w, &untuned);
		return;
	}
	for (int p = 0; p < f->n_ports; p++) {
		if (is_end(w, p)) {
			add_waves(w, &f->hosts[f->ports[p].host]);
		}
	}
	for (int p = 0; p < f->n_ports; p++) {
		const struct model_host *h = &f->hosts[f->ports[p].host];

		*alike &= !is_end(w, p) || (h->n_channels ? h->n_channels : 1) == w->channels;
	}
	if (w->channels) {
		qsort(w->wave, (size_t)w->channels, sizeof(*w->wave), by_number);
	}
}

/* ---- nodes ---- */

/* The node of an end, one way: the switch that all its open ports are on, or (own, or
 * where they are on several) one of its own, the next; -1: none are open. */
static int node_of(const struct trunk_network *w, int end, bool tx, bool own, int *next)
{
	const struct model_host *h = &w->fabric->hosts[trunk_host(w, end)];
	int only = -1;

	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		const struct model_port *x = &w->fabric->ports[p];
		int device = tx ? x->tx_device : x->rx_device;

		if (w->end_of[p] != end || !(tx ? w->tx_open : w->rx_open)[p]) {
			continue;
		}
		own |= only >= 0 && only != device;
		only = device;
	}
	return only >= 0 && own ? (*next)++ : only;
}

/* Numbers the nodes, devices first. Returns how many. */
static int number_nodes(struct trunk_network *w, bool alike)
{
	int n = w->fabric->n_devices;

	for (int p = 0; p < w->fabric->n_ports; p++) {
		if (is_end(w, p)) {
			w->send_node[p] = node_of(w, p, true, !alike || w->by_power, &n);
			w->receive_node[p] = node_of(w, p, false, w->by_power, &n);
		}
	}
	return n;
}

/* Ranges of channels that an end with a node of its own sends. */
static int tune_end(struct trunk_network *w, int at, struct err *err)
{
	int rc = 0, host = trunk_host(w, at);

	for (int c = 0, end; c < w->channels && rc == 0; c = end + 1) {
		struct rwa_mesh_tuning t = { .node = w->send_node[at], .first = c };

		for (end = c; end < w->channels && trunk_sends(w, host, end); end++) {
		}
		t.last = end - 1;
		rc = end > c ? rwa_mesh_add_tuning(w->mesh, &t, err) : 0;
	}
	return rc;
}

/* ---- fibres ---- */

static void add_port(struct trunk_network *w, int port, bool tx)
{
	const struct model_port *p = &w->fabric->ports[port];
	int device = tx ? p->tx_device : p->rx_device;
	int node = (tx ? w->send_node : w->receive_node)[w->end_of[port]];
	struct trunk_fibre x = { .id = port, .is_port = true, .channel = -1,
				 .from = tx ? node : device, .to = tx ? device : node };
	int32_t mdbm;

	if (!(tx ? w->tx_open : w->rx_open)[port] || node < w->fabric->n_devices) {
		return;
	}
	if (w->by_power && tx && plan_power_in(w->ctx, port, &mdbm)) {
		x.loss_mdb = w->max_mdbm - mdbm;
	} else if (w->by_power && plan_power_needed(w->ctx, port, &mdbm)) {
		x.loss_mdb = mdbm - w->min_mdbm;
	}
	vec_push(&w->fibres, x);
}

/* Ports of hosts that are nodes, and trunks, in no order. */
static void list_fibres(struct trunk_network *w)
{
	const struct model_fabric *f = w->fabric;

	for (int p = 0; p < f->n_ports; p++) {
		if (w->end_of[p] >= 0) {
			add_port(w, p, true);
			add_port(w, p, false);
		}
	}
	for (int t = 0; t < f->n_trunks; t++) {
		const struct model_trunk *x = &f->trunks[t];
		struct trunk_fibre new = { .id = t, .from = x->from_device, .to = x->to_device,
					   .channel = x->channel };

		if (is_trunk_usable(w, t)) {
			new.channel = x->channel < 0 ? -1 : trunk_channel(w, x->channel);
			new.loss_mdb = w->by_power ? x->loss_mdb : 0;
			vec_push(&w->fibres, new);
		}
	}
}

/* Of one arc: same ends, same loss, and all filter or none does. */
static int by_arc(const struct trunk_fibre *x, const struct trunk_fibre *y)
{
	if (x->from != y->from) {
		return x->from - y->from;
	}
	if (x->to != y->to) {
		return x->to - y->to;
	}
	if ((x->channel < 0) != (y->channel < 0)) {
		return x->channel < 0 ? -1 : 1;
	}
	return (x->loss_mdb > y->loss_mdb) - (x->loss_mdb < y->loss_mdb);
}

static int by_fibre(const void *a, const void *b)
{
	const struct trunk_fibre *x = a, *y = b;
	int c = by_arc(x, y);

	c = c ? c : x->channel - y->channel;
	return c ? c : x->id - y->id;
}

/* Shuts on every fibre of an arc the channels that it lacks; count: fibres that
 * have each channel. */
static int shut_channels(struct trunk_network *w, int arc, const int *count, struct err *err)
{
	int fibres = w->mesh->arcs.v[arc].fibres, rc = 0;

	for (int c = 0; c < w->channels; c++) {
		for (int k = count[c]; k < fibres && rc == 0; k++) {
			struct rwa_mesh_block b = { arc, k, c, true };

			rc = rwa_mesh_add_block(w->mesh, &b, err);
		}
	}
	return rc;
}

/* An arc of the fibres from i to before end, which are of one arc. */
static int add_arc(struct trunk_network *w, size_t i, size_t end, struct err *err)
{
	struct trunk_fibre *v = w->fibres.v;
	struct rwa_mesh_arc arc = { .src = v[i].from, .dst = v[i].to, .loss_mdb = v[i].loss_mdb,
				    .is_single = v[i].channel < 0 };
	int *count = x_new((size_t)w->channels + 1, sizeof(*count));
	int rc;

	for (; i < end; i++) {
		v[i].arc = (int)w->mesh->arcs.n;
		v[i].fibre = count[v[i].channel < 0 ? 0 : v[i].channel]++;
		arc.fibres = v[i].fibre >= arc.fibres ? v[i].fibre + 1 : arc.fibres;
	}
	if ((rc = rwa_mesh_add_arc(w->mesh, &arc, err)) == 0 && !arc.is_single) {
		rc = shut_channels(w, (int)w->mesh->arcs.n - 1, count, err);
	}
	free(count);
	return rc;
}

/* Arcs of all fibres; of those for one lightpath no more than an arc may have. */
static int add_arcs(struct trunk_network *w, struct err *err)
{
	struct trunk_fibre *v = w->fibres.v;
	int rc = 0;

	if (w->fibres.n) {
		qsort(v, w->fibres.n, sizeof(*v), by_fibre);
	}
	for (size_t i = 0, end; i < w->fibres.n && rc == 0; i = end) {
		for (end = i + 1; end < w->fibres.n && by_arc(&v[i], &v[end]) == 0 &&
		     (v[i].channel >= 0 || end - i < RWA_MESH_MAX_FIBRES); end++) {
		}
		rc = add_arc(w, i, end, err);
	}
	for (size_t i = 0; i < w->fibres.n; i++) {
		const struct trunk_fibre *x = &v[i];

		(x->is_port ? x->from >= w->fabric->n_devices ? w->of_tx : w->of_rx
			    : w->of_trunk)[x->id] = (int)i + 1;
	}
	return rc;
}

const struct trunk_fibre *trunk_fibre_of(const struct trunk_network *w, const struct rwa_hop *h)
{
	bool single = w->mesh->arcs.v[h->arc].is_single;
	size_t low = 0, high = w->fibres.n;

	while (low < high) {
		size_t mid = (low + high) / 2;
		const struct trunk_fibre *x = &w->fibres.v[mid];
		int c = x->arc != h->arc ? x->arc - h->arc
			: !single && x->channel != h->channel ? x->channel - h->channel
			: x->fibre - h->fibre;

		if (c == 0) {
			return x;
		}
		low = c < 0 ? mid + 1 : low;
		high = c < 0 ? high : mid;
	}
	return NULL;
}

/* ---- lightpaths ---- */

int trunk_by_ends(const struct trunk_lightpath *x, const struct trunk_lightpath *y)
{
	if (x->src != y->src) {
		return x->src - y->src;
	}
	if (x->dst != y->dst) {
		return x->dst - y->dst;
	}
	return x->from != y->from ? x->from - y->from : x->to - y->to;
}

static int by_lightpath(const void *a, const void *b)
{
	const struct trunk_lightpath *x = a, *y = b;
	int c = trunk_by_ends(x, y);

	return c ? c : x->arc - y->arc;
}

/* The end at each node of a job's digraph: at a host, or at a port. */
static void list_ends(const struct trunk_network *w, const struct model_job *job, int *at)
{
	for (int i = 0, k = 0; i < job->n_ports; i++) {
		int end = w->end_of[job->ports[i]], host = trunk_host(w, end);

		if (job->kind == MODEL_CIRCUITS) {
			at[i] = end;
			continue;
		}
		for (k = 0; job->hosts[k] != host; k++) {
		}
		at[k] = end;
	}
}

/* The arcs of all jobs, but from a host to itself. */
static void list_lightpaths(struct trunk_network *w)
{
	for (int j = 0; j < w->n_jobs; j++) {
		struct plan_job *pj = w->jobs[j];
		const struct model_job *job = &w->fabric->jobs[pj->job];
		const struct topo *t = coll_physical(pj->sched);
		int *end = x_new((size_t)topo_n(t), sizeof(*end));

		list_ends(w, job, end);
		for (int a = 0; a < topo_m(t); a++) {
			const struct topo_arc *arc = topo_arc(t, a);
			int from = end[arc->src], to = end[arc->dst];
			struct trunk_lightpath p = {
				.pj = pj, .arc = a, .from = from, .to = to, .tx = -1, .rx = -1,
				.src = w->send_node[from], .dst = w->receive_node[to],
				.demand = -1,
			};

			if (from != to || job->kind == MODEL_CIRCUITS) {
				vec_push(&w->paths, p);
			}
		}
		free(end);
	}
	if (w->paths.n) {
		qsort(w->paths.v, w->paths.n, sizeof(*w->paths.v), by_lightpath);
	}
}

/* Lightpaths between the same two nodes are a demand; those whose ends are on one
 * switch need none. */
static int add_demands(struct trunk_network *w, struct err *err)
{
	int rc = 0;

	for (size_t i = 0, end; i < w->paths.n && rc == 0; i = end) {
		struct trunk_lightpath *v = w->paths.v;
		struct rwa_mesh_demand d = { .src = v[i].src, .dst = v[i].dst };

		for (end = i; end < w->paths.n && v[end].src == d.src && v[end].dst == d.dst;
		     end++) {
			v[end].demand = d.src == d.dst ? -1 : (int)w->mesh->demands.n;
		}
		d.count = (int32_t)(end - i);
		rc = d.src == d.dst ? 0 : rwa_mesh_add_demand(w->mesh, &d, err);
	}
	return rc;
}

static int too_few_ports(const struct trunk_network *w, int end, bool tx, int need, int open,
			 int n, struct err *err)
{
	struct plan_job *pj = job_at(w, end, tx);
	const char *side = tx ? "transmit" : "receive";
	int rc;

	if (w->fabric->jobs[pj->job].kind == MODEL_CIRCUITS) {
		rc = err_set(err, WEFT_EINFEASIBLE, "the %s port %s carries a circuit that weft "
			     "did not make", side, w->fabric->ports[end].name);
	} else {
		rc = err_set(err, WEFT_EINFEASIBLE, "topology %s needs %d %s ports at %s, "
			     "%d of %d are usable", pj->topology, need, side,
			     w->fabric->hosts[trunk_host(w, end)].name, open, n);
	}
	return w->n_jobs > 1 ? plan_in_job(w->ctx, pj, err) : rc;
}

/* An end must have a port for each of its lightpaths, either way. */
static int check_ports(const struct trunk_network *w, bool tx, struct err *err)
{
	const struct model_fabric *f = w->fabric;
	struct {
		int need, open, n;
	} *at = x_new((size_t)f->n_ports + 1, sizeof(*at));
	int rc = 0;

	for (size_t i = 0; i < w->paths.n; i++) {
		at[tx ? w->paths.v[i].from : w->paths.v[i].to].need++;
	}
	for (int p = 0; p < f->n_ports; p++) {
		if (w->end_of[p] >= 0) {
			at[w->end_of[p]].n++;
			at[w->end_of[p]].open += (tx ? w->tx_open : w->rx_open)[p];
		}
	}
	for (int p = 0; p < f->n_ports && rc == 0; p++) {
		if (at[p].need > at[p].open) {
			rc = too_few_ports(w, p, tx, at[p].need, at[p].open, at[p].n, err);
		}
	}
	free(at);
	return rc;
}

/* ---- all of it ---- */

static void find_ends(struct trunk_network *w, const struct model_job *job)
{
	for (int i = 0; i < job->n_ports; i++) {
		int p = job->ports[i], before = i > 0 ? job->ports[i - 1] : p;
		bool same = i > 0 && job->kind != MODEL_CIRCUITS &&
			    w->fabric->ports[p].host == w->fabric->ports[before].host;

		w->end_of[p] = same ? w->end_of[before] : p;
	}
}

static void make_tables(struct trunk_network *w)
{
	const struct model_fabric *f = w->fabric;
	size_t ports = (size_t)f->n_ports + 1;

	arrays_add(&w->arrays, w->job_of, f->n_jobs + 1);
	arrays_add(&w->arrays, w->end_of, ports);
	arrays_add(&w->arrays, w->send_node, ports);
	arrays_add(&w->arrays, w->receive_node, ports);
	arrays_add(&w->arrays, w->tx_open, ports);
	arrays_add(&w->arrays, w->rx_open, ports);
	arrays_add(&w->arrays, w->tx_used, ports);
	arrays_add(&w->arrays, w->rx_used, ports);
	arrays_add(&w->arrays, w->of_tx, ports);
	arrays_add(&w->arrays, w->of_rx, ports);
	arrays_add(&w->arrays, w->of_trunk, f->n_trunks + 1);
	arrays_add(&w->arrays, w->in_shut, f->n_devices + 1);
	arrays_add(&w->arrays, w->out_shut, f->n_devices + 1);
	for (int d = 0; d < f->n_devices; d++) {
		arrays_add(&w->arrays, w->in_shut[d], f->devices[d].n_in + 1);
		arrays_add(&w->arrays, w->out_shut[d], f->devices[d].n_out + 1);
	}
	memset(w->end_of, 0xff, ports * sizeof(*w->end_of));
	for (int j = 0; j < w->n_jobs; j++) {
		w->job_of[w->jobs[j]->job] = w->jobs[j];
		find_ends(w, &f->jobs[w->jobs[j]->job]);
	}
}

/* Names, losses and wavelengths of the nodes. */
static int describe_nodes(struct trunk_network *w, bool alike, struct err *err)
{
	const struct model_fabric *f = w->fabric;
	int rc = 0;

	for (int d = 0; d < f->n_devices; d++) {
		w->mesh->nodes.v[d].name = x_dup(f->devices[d].name);
		w->mesh->nodes.v[d].pass_mdb = w->by_power ? f->devices[d].loss_mdb : 0;
	}
	for (int p = 0; p < f->n_ports && rc == 0; p++) {
		int ends[2] = { w->send_node[p], w->receive_node[p] };

		for (int k = 0; k < 2 && is_end(w, p); k++) {
			if (ends[k] >= f->n_devices) {
				w->mesh->nodes.v[ends[k]].name =
					x_dup(f->hosts[f->ports[p].host].name);
			}
		}
		if (is_end(w, p) && w->send_node[p] >= 0 && !alike) {
			rc = tune_end(w, p, err);
		}
	}
	return rc;
}

int trunk_network_init(struct trunk_network *w, struct err *err)
{
	bool alike;
	int rc;

	make_tables(w);
	for (int d = 0; d < w->fabric->n_devices; d++) {
		shut_external(w, d);
	}
	mark_ports(w);
	find_channels(w, &alike);
	if ((rc = rwa_mesh_new(number_nodes(w, alike), &w->mesh, err))) {
		return err_wrap(err, "switches, and hosts that are nodes beside them");
	}
	list_lightpaths(w);
	if ((rc = check_ports(w, true, err)) || (rc = check_ports(w, false, err)) ||
	    (rc = describe_nodes(w, alike, err))) {
		return rc;
	}
	list_fibres(w);
	if ((rc = add_arcs(w, err))) {
		return rc;
	}
	if (w->by_power) {
		w->mesh->budget_mdb = w->max_mdbm - w->min_mdbm;
	}
	return add_demands(w, err);
}

void trunk_network_fini(struct trunk_network *w)
{
	arrays_fini(&w->arrays);
	free(w->wave);
	rwa_mesh_free(w->mesh);
	vec_fini(&w->fibres);
	vec_fini(&w->paths);
}
