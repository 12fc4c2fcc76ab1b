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
 * A host's lightpaths begin and end at its switch, and which of its ports they
 * use is decided afterwards. A host is a node of its own, with a fibre for each
 * port, where it is on several switches, where hosts do not send the same
 * wavelengths, and where the power at its ports counts.
 *
 * Hosts, nodes and lightpaths go by their number in the fabric, so that the order
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

static bool is_bad(const int *list, int n, int port)
{
	for (int i = 0; i < n; i++) {
		if (list[i] == port) {
			return true;
		}
	}
	return false;
}

/* No job that stays as it is has it, neither of its ports has failed or is held
 * by a circuit of others, and hosts send what it passes. */
static bool is_trunk_usable(const struct trunk_network *w, int trunk)
{
	const struct model_trunk *t = &w->fabric->trunks[trunk];
	const struct plan_light *from = plan_observed(w->ctx, t->from_device);
	const struct plan_light *to = plan_observed(w->ctx, t->to_device);

	return !w->taken[trunk] &&
	       !w->out_shut[t->from_device][t->from_port] &&
	       !w->in_shut[t->to_device][t->to_port] &&
	       !is_bad(from->bad_out, from->n_bad_out, t->from_port) &&
	       !is_bad(to->bad_in, to->n_bad_in, t->to_port) &&
	       (t->channel < 0 || trunk_channel(w, t->channel) >= 0);
}

/* A host port on a one-way switch, not under a circuit of others. */
static bool on_switch(const struct trunk_network *w, int device, bool **shut, int port)
{
	const struct model_device *d = &w->fabric->devices[device];

	return d->kind != MODEL_RING && !d->any_to_any && !shut[device][port];
}

/* Marks the ports of a host that its light may use. */
static void mark_ports(struct trunk_network *w, const struct model_host *h)
{
	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		const struct model_port *x = &w->fabric->ports[p];

		w->tx_open[p] = plan_tx_usable(w->ctx, p) &&
				on_switch(w, x->tx_device, w->in_shut, x->tx_port);
		w->rx_open[p] = plan_rx_usable(w->ctx, p) &&
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
	for (int h = 0; h < f->n_hosts; h++) {
		if (w->job_of[h]) {
			add_waves(w, &f->hosts[h]);
		}
	}
	for (int h = 0; h < f->n_hosts; h++) {
		int n = f->hosts[h].n_channels ? f->hosts[h].n_channels : 1;

		*alike &= !w->job_of[h] || n == w->channels;
	}
	if (w->channels) {
		qsort(w->wave, (size_t)w->channels, sizeof(*w->wave), by_number);
	}
}

/* ---- nodes ---- */

/* The switch that all open ports of a host are on, one way; -1: none are, or they
 * are on several. */
static int only_switch(const struct trunk_network *w, const struct model_host *h, bool tx)
{
	int only = -1;

	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		const struct model_port *x = &w->fabric->ports[p];
		int device = tx ? x->tx_device : x->rx_device;

		if (!(tx ? w->tx_open : w->rx_open)[p]) {
			continue;
		}
		if (only >= 0 && only != device) {
			return -1;
		}
		only = device;
	}
	return only;
}

/* Numbers the nodes, devices first. Returns how many. */
static int number_nodes(struct trunk_network *w, bool alike)
{
	const struct model_fabric *f = w->fabric;
	int n = f->n_devices;

	for (int h = 0; h < f->n_hosts; h++) {
		if (!w->job_of[h]) {
			continue;
		}
		mark_ports(w, &f->hosts[h]);
		w->send_node[h] = alike && !w->by_power ? only_switch(w, &f->hosts[h], true) : -1;
		w->receive_node[h] = w->by_power ? -1 : only_switch(w, &f->hosts[h], false);
		w->send_node[h] = w->send_node[h] < 0 ? n++ : w->send_node[h];
		w->receive_node[h] = w->receive_node[h] < 0 ? n++ : w->receive_node[h];
	}
	return n;
}

/* Ranges of channels that a host with a node of its own sends. */
static int tune_host(struct trunk_network *w, int host, struct err *err)
{
	int rc = 0;

	for (int c = 0, end; c < w->channels && rc == 0; c = end + 1) {
		struct rwa_mesh_tuning t = { .node = w->send_node[host], .first = c };

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
	int node = (tx ? w->send_node : w->receive_node)[p->host];
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
		if (w->job_of[f->ports[p].host]) {
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

/* The arcs of all jobs, but from a host to itself. */
static void list_lightpaths(struct trunk_network *w)
{
	for (int j = 0; j < w->n_jobs; j++) {
		struct plan_job *pj = w->jobs[j];
		const struct model_job *job = &w->fabric->jobs[pj->job];
		const struct topo *t = coll_physical(pj->sched);

		for (int a = 0; a < topo_m(t); a++) {
			const struct topo_arc *arc = topo_arc(t, a);
			int from = job->hosts[arc->src], to = job->hosts[arc->dst];
			struct trunk_lightpath p = {
				.pj = pj, .arc = a, .from = from, .to = to, .tx = -1, .rx = -1,
				.src = w->send_node[from], .dst = w->receive_node[to],
				.demand = -1,
			};

			if (from != to) {
				vec_push(&w->paths, p);
			}
		}
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

/* A host must have a port for each of its lightpaths, either way. */
static int check_ports(const struct trunk_network *w, bool tx, struct err *err)
{
	const struct model_fabric *f = w->fabric;
	int *need = x_new((size_t)f->n_hosts + 1, sizeof(*need)), rc = 0;

	for (size_t i = 0; i < w->paths.n; i++) {
		need[tx ? w->paths.v[i].from : w->paths.v[i].to]++;
	}
	for (int h = 0; h < f->n_hosts && rc == 0; h++) {
		const struct model_host *host = &f->hosts[h];
		int open = 0;

		for (int p = host->first_port; p < host->first_port + host->n_ports; p++) {
			open += (tx ? w->tx_open : w->rx_open)[p];
		}
		if (need[h] > open) {
			rc = err_set(err, WEFT_EINFEASIBLE, "topology %s needs %d %s ports at %s, "
				     "%d of %d are usable", w->job_of[h]->topology, need[h],
				     tx ? "transmit" : "receive", host->name, open, host->n_ports);
			rc = w->n_jobs > 1 ? plan_in_job(w->ctx, w->job_of[h], err) : rc;
		}
	}
	free(need);
	return rc;
}

/* ---- all of it ---- */

static void make_tables(struct trunk_network *w)
{
	const struct model_fabric *f = w->fabric;
	size_t hosts = (size_t)f->n_hosts + 1, ports = (size_t)f->n_ports + 1;

	arrays_add(&w->arrays, w->job_of, hosts);
	arrays_add(&w->arrays, w->send_node, hosts);
	arrays_add(&w->arrays, w->receive_node, hosts);
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
	for (int j = 0; j < w->n_jobs; j++) {
		const struct model_job *job = &f->jobs[w->jobs[j]->job];

		for (int r = 0; r < job->n_hosts; r++) {
			w->job_of[job->hosts[r]] = w->jobs[j];
		}
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
	for (int h = 0; h < f->n_hosts && rc == 0; h++) {
		int ends[2] = { w->send_node[h], w->receive_node[h] };

		for (int k = 0; k < 2 && w->job_of[h]; k++) {
			if (ends[k] >= f->n_devices) {
				w->mesh->nodes.v[ends[k]].name = x_dup(f->hosts[h].name);
			}
		}
		if (w->job_of[h] && !alike) {
			rc = tune_host(w, h, err);
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
