/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths between hosts over the circuits of a plan, for routes and for traffic
 * that has to leave a circuit before it goes.
 *
 * A port's signal is followed from its fibre through the circuit of each device
 * and the fibres between devices until it arrives at a host port. Fibres
 * between switches are looked up in a map by egress (plan_map_trunks), made
 * once when many ports are traced.
 *
 * Where jobs share a host, traffic to an address of it keeps to the light of the job
 * that has the address's port, so that none crosses another's. Circuits carry what
 * their owner sends over them, and no paths.
 */
#include "controller/plan/private.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/order.h"

uint32_t plan_host_address(int host, int which)
{
	return htonl((10u << 24 | (119u + (uint32_t)which) << 16) + (uint32_t)host + 1);
}

/* ---- arcs ---- */

ORDER_BY(by_ports, struct plan_arc, tx_port, rx_port)

void plan_arcs(const struct plan *p, struct plan_arc **arcs, int *n)
{
	size_t total = 1;

	*n = 0;
	for (int j = 0; j < p->n_jobs; j++) {
		total += (size_t)p->jobs[j].n_circuits;
	}
	*arcs = x_new(total, sizeof(**arcs));
	total = 0;
	for (int j = 0; j < p->n_jobs; j++) {
		for (int i = 0; i < p->jobs[j].n_circuits; i++) {
			const struct plan_circuit *c = &p->jobs[j].circuits[i];

			(*arcs)[total++] = (struct plan_arc){
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
}

/* ---- paths ---- */

/* The job that a port is of, or -1. Arcs are of the job of their sender. */
static int job_of(const struct model_fabric *f, int port)
{
	const struct model_port *p = &f->ports[port];

	return p->tx_job >= 0 ? p->tx_job : p->rx_job;
}

/* Whether paths of a job (-1: of all) may lead over an arc. */
static bool may_carry(const struct model_fabric *f, const struct plan_arc *a, int job)
{
	int owner = job_of(f, a->tx_port);

	return (job < 0 || owner == job) &&
	       (owner < 0 || f->jobs[owner].kind != MODEL_CIRCUITS);
}

/* Whether the k-th port of a host is the first of a job there. */
static bool begins_job(const struct model_fabric *f, const struct model_host *h, int k)
{
	int job = job_of(f, h->first_port + k);

	for (int p = h->first_port; p < h->first_port + k; p++) {
		if (job_of(f, p) == job) {
			return false;
		}
	}
	return job >= 0 && f->jobs[job].kind == MODEL_COLLECTIVE;
}

/* The last port, of those of a host, that begins a job beside others: 0 where no host is
 * shared. O(ports^2 of a host). */
static int last_shared(const struct model_fabric *f)
{
	int last = 0;

	for (int i = 0; i < f->n_hosts; i++) {
		int n = 0;

		for (int k = 0; k < f->hosts[i].n_ports && k < PLAN_MAX_ADDRESSES; k++) {
			n += begins_job(f, &f->hosts[i], k);
			last = n > 1 && begins_job(f, &f->hosts[i], k) && k > last ? k : last;
		}
	}
	return last;
}

/* Breadth first, arcs of the job (-1: all) in order: the fewest arcs, then the lowest ports.
 * first[to]: the arc that leaves the host, -1: none. */
static void find_paths(const struct model_fabric *f, const struct plan_arc *arcs, int n, int host,
		       int job, int *first, int *queue)
{
	int head = 0, tail = 0;

	memset(first, 0xff, (size_t)f->n_hosts * sizeof(*first));
	queue[tail++] = host;
	while (head < tail) {
		int at = queue[head++];

		for (int i = 0; i < n; i++) {
			int to = f->ports[arcs[i].rx_port].host;

			if (f->ports[arcs[i].tx_port].host == at && to != host && first[to] < 0 &&
			    may_carry(f, &arcs[i], job)) {
				first[to] = at == host ? i : first[at];
				queue[tail++] = to;
			}
		}
	}
}

/* Arcs are sorted by the port that sends, so those of a host lie together. */
static bool is_parallel(const struct model_fabric *f, const struct plan_arc *a,
			const struct plan_arc *b)
{
	return job_of(f, a->tx_port) == job_of(f, b->tx_port) &&
	       f->ports[a->tx_port].host == f->ports[b->tx_port].host &&
	       f->ports[a->rx_port].host == f->ports[b->rx_port].host;
}

/* Arcs that are parallel to this one, in order; *found: the k-th, if there are so many. */
static int count_parallel(const struct model_fabric *f, const struct plan_arc *arcs, int n_arcs,
			  int arc, int k, int *found)
{
	int n = 0, first = arc;

	while (first > 0 && f->ports[arcs[first - 1].tx_port].host ==
			    f->ports[arcs[arc].tx_port].host) {
		first--;
	}
	for (int i = first; i < n_arcs && f->ports[arcs[i].tx_port].host ==
					  f->ports[arcs[arc].tx_port].host; i++) {
		if (is_parallel(f, &arcs[i], &arcs[arc])) {
			*found = n == k ? i : *found;
			n++;
		}
	}
	return n;
}

int plan_host_addresses(const struct model_fabric *f, const struct plan_arc *arcs, int n_arcs)
{
	int most = last_shared(f) + 1, at;

	for (int i = 0; i < n_arcs; i++) {
		int n = count_parallel(f, arcs, n_arcs, i, 0, &at);
		bool loop = f->ports[arcs[i].tx_port].host == f->ports[arcs[i].rx_port].host;

		most = n > most && !loop && may_carry(f, &arcs[i], -1) ? n : most;
	}
	if (most == 1) {
		return 1;
	}
	return 2 * most < PLAN_MAX_ADDRESSES ? 2 * most : PLAN_MAX_ADDRESSES;
}

/* The path to one address, of which `first` is the path to the host. */
static struct plan_host_path path_to(const struct model_fabric *f, const struct plan_arc *arcs,
				     int n_arcs, int to, int address, int first)
{
	int arc = first, m = count_parallel(f, arcs, n_arcs, first, 0, &arc), k = address / 2 % m;

	count_parallel(f, arcs, n_arcs, first, k, &arc);
	return (struct plan_host_path){ to, address, f->ports[arcs[arc].rx_port].host, 2 * k,
					arcs[arc].tx_port, arcs[arc].rx_port };
}

ORDER_BY(by_address, struct plan_host_path, to_address, to)

void plan_host_paths(const struct model_fabric *f, const struct plan_arc *arcs, int n_arcs,
		     int host, struct plan_host_path **paths, int *n)
{
	int addresses = plan_host_addresses(f, arcs, n_arcs);
	const struct model_host *h = &f->hosts[host];
	bool shared = last_shared(f) > 0;
	size_t hosts = (size_t)f->n_hosts + 1;
	int *first = x_new(hosts, sizeof(*first));
	int *queue = x_new(hosts, sizeof(*queue));

	*n = 0;
	*paths = x_new(hosts * (size_t)addresses, sizeof(**paths));
	for (int k = 0; k < (shared ? h->n_ports : 1); k++) {
		int job = shared ? job_of(f, h->first_port + k) : -1;

		if (shared && !begins_job(f, h, k)) {
			continue;
		}
		find_paths(f, arcs, n_arcs, host, job, first, queue);
		for (int i = 0; i < addresses * f->n_hosts; i++) {
			int to = i % f->n_hosts, address = i / f->n_hosts;
			int port = f->hosts[to].first_port + address / 2;

			if (first[to] >= 0 &&
			    (address == 0 || address < 2 * f->hosts[to].n_ports) &&
			    (!shared || job_of(f, port) == job)) {
				(*paths)[(*n)++] = path_to(f, arcs, n_arcs, to, address, first[to]);
			}
		}
	}
	if (shared) {
		qsort(*paths, (size_t)*n, sizeof(**paths), by_address);
	}
	free(first);
	free(queue);
}

/* ---- light ---- */

/* The first circuit at this in-port or behind it. */
static int lower_bound(const struct plan_light *l, int in)
{
	int low = 0, high = l->n_xcs;

	while (low < high) {
		int mid = low + (high - low) / 2;

		if (l->xcs[mid].in < in) {
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	return low;
}

/* The circuit that light at this in-port goes through; on an any-to-any switch
 * it goes both ways. */
static const struct optics_xc *circuit_at(const struct plan_light *l, int in, bool any_to_any)
{
	int at = lower_bound(l, in);

	if (at < l->n_xcs && l->xcs[at].in == in) {
		return &l->xcs[at];
	}
	for (int i = 0; i < l->n_xcs && any_to_any; i++) {
		if (l->xcs[i].out == in) {
			return &l->xcs[i];
		}
	}
	return NULL;
}

int **plan_map_trunks(const struct model_fabric *f)
{
	int **map = x_new((size_t)f->n_devices + 1, sizeof(*map));

	for (int i = 0; i < f->n_trunks; i++) {
		const struct model_trunk *t = &f->trunks[i];
		int **row = &map[t->from_device];

		if (!*row) {
			*row = x_new((size_t)f->devices[t->from_device].n_out + 1, sizeof(**row));
		}
		(*row)[t->from_port] = i;
	}
	return map;
}

void plan_trunks_free(const struct model_fabric *f, int **at)
{
	for (int d = 0; d < f->n_devices && at; d++) {
		free(at[d]);
	}
	free(at);
}

/* The fibre between switches at an out-port that has one. */
static const struct model_trunk *trunk_of(const struct model_fabric *f, int *const *trunk_at,
					  int device, int port)
{
	for (int i = 0; i < f->n_trunks && !trunk_at; i++) {
		const struct model_trunk *t = &f->trunks[i];

		if (t->from_device == device && t->from_port == port) {
			return t;
		}
	}
	return trunk_at ? &f->trunks[trunk_at[device][port]] : NULL;
}

/* Where a fibre from this out-port leads: a host port, or the next switch. */
static int follow(const struct model_fabric *f, int *const *trunk_at, int *device, int *port)
{
	int host_port = f->devices[*device].out_port[*port];
	const struct model_trunk *t;

	if (host_port != MODEL_AT_TRUNK) {
		return host_port;
	}
	t = trunk_of(f, trunk_at, *device, *port);
	if (!t) {
		return -1;
	}
	*device = t->to_device;
	*port = t->to_port;
	return MODEL_AT_TRUNK;
}

/* Circuits on the path are reported to fn, unless that is NULL. */
typedef void (*hop_fn)(const struct plan_hop *hop, void *arg);

static int walk(const struct model_fabric *f, int *const *trunk_at, const struct plan_light *light,
		int tx_port, hop_fn fn, void *arg)
{
	int device = f->ports[tx_port].tx_device;
	int port = f->ports[tx_port].tx_port;
	int found = device < 0 ? -1 : MODEL_AT_TRUNK;

	/* Circuits may run in a circle; no path is longer than all trunks. */
	for (int hops = 0; found == MODEL_AT_TRUNK && hops <= f->n_trunks; hops++) {
		const struct optics_xc *xc = circuit_at(&light[device], port,
							f->devices[device].any_to_any);

		if (!xc) {
			return -1;
		}
		if (fn) {
			fn(&(struct plan_hop){ device, *xc }, arg);
		}
		port = xc->in == port ? xc->out : xc->in;
		found = follow(f, trunk_at, &device, &port);
	}
	return found < 0 ? -1 : found;
}

int plan_trace(const struct model_fabric *f, const struct plan_light *light, int tx_port)
{
	return walk(f, NULL, light, tx_port, NULL, NULL);
}

int plan_trace_by(const struct model_fabric *f, int *const *trunk_at,
		  const struct plan_light *light, int tx_port)
{
	return walk(f, trunk_at, light, tx_port, NULL, NULL);
}

struct hop_list {
	struct plan_hop **v;
	int *n;
};

static void add_hop(const struct plan_hop *hop, void *arg)
{
	struct hop_list *l = arg;

	*l->v = x_grow(*l->v, (size_t)*l->n + 1, sizeof(**l->v));
	(*l->v)[(*l->n)++] = *hop;
}

int plan_trace_hops(const struct model_fabric *f, const struct plan_light *light, int tx_port,
		    struct plan_hop **hops, int *n, int *rx_port, struct err *err)
{
	struct hop_list l = { hops, n };

	*rx_port = walk(f, NULL, light, tx_port, add_hop, &l);
	return *rx_port >= 0 ? 0 :
	       err_set(err, WEFT_ENOTFOUND, "the light of %s reaches no port",
		       f->ports[tx_port].name);
}
