/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for every fabric that was accepted. Ends the program when not:
 * for unit tests and for the fuzz target. */
#ifndef WEFT_TESTS_UNIT_MODEL_INVARIANTS_H
#define WEFT_TESTS_UNIT_MODEL_INVARIANTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/model.h"
#include "topology/topology.h"

#define HOLDS(x)                                                           \
	do {                                                               \
		if (!(x)) {                                                \
			fprintf(stderr, "%s:%d: does not hold: %s\n",      \
				__FILE__, __LINE__, #x);                   \
			abort();                                           \
		}                                                          \
	} while (0)

static inline void check_ports(const struct model_fabric *f)
{
	for (int i = 0; i < f->n_ports; i++) {
		const struct model_port *p = &f->ports[i];
		const struct model_host *h = &f->hosts[p->host];

		HOLDS(p->host >= 0 && p->host < f->n_hosts);
		HOLDS(i >= h->first_port && i < h->first_port + h->n_ports);
		HOLDS(strncmp(p->name, h->name, strlen(h->name)) == 0);
		HOLDS(p->name[strlen(h->name)] == '.');
		HOLDS(p->rate_bps > 0);
		HOLDS(p->lane >= 0 && p->lane < p->lanes && p->lanes <= MODEL_MAX_LANES);
		HOLDS(i - p->lane >= h->first_port);
		HOLDS(p->tx_device < f->n_devices);
		HOLDS(p->rx_device < f->n_devices);
		HOLDS(p->tx_device < 0 ||
		      f->devices[p->tx_device].in_port[p->tx_port] == i);
		HOLDS(p->rx_device < 0 ||
		      f->devices[p->rx_device].out_port[p->rx_port] == i);
		HOLDS(p->tx_loss_mdb >= 0 || p->tx_amplified);
		HOLDS(p->rx_loss_mdb >= 0 || p->rx_amplified);
	}
}

static inline void check_space(const struct model_fabric *f, int d)
{
	const struct model_device *dev = &f->devices[d];

	HOLDS(dev->n_in > 0 && dev->n_out > 0);
	HOLDS(!dev->any_to_any || dev->n_in == dev->n_out);
	for (int i = 0; i < dev->n_in; i++) {
		int p = dev->in_port[i];

		HOLDS(p >= MODEL_AT_TRUNK && p < f->n_ports);
		HOLDS(p < 0 || (f->ports[p].tx_device == d &&
				f->ports[p].tx_port == i));
		HOLDS(!dev->any_to_any || dev->out_port[i] == p);
	}
	for (int i = 0; i < dev->n_out; i++) {
		int p = dev->out_port[i];

		HOLDS(p >= MODEL_AT_TRUNK && p < f->n_ports);
		HOLDS(p < 0 || (f->ports[p].rx_device == d &&
				f->ports[p].rx_port == i));
	}
}

static inline void check_trunks(const struct model_fabric *f)
{
	for (int i = 0; i < f->n_trunks; i++) {
		const struct model_trunk *t = &f->trunks[i];

		HOLDS(t->from_device != t->to_device);
		HOLDS(f->devices[t->from_device].out_port[t->from_port] ==
		      MODEL_AT_TRUNK);
		HOLDS(f->devices[t->to_device].in_port[t->to_port] ==
		      MODEL_AT_TRUNK);
		HOLDS(t->loss_mdb >= 0 || t->amplified);
	}
}

static inline void check_devices(const struct model_fabric *f)
{
	for (int d = 0; d < f->n_devices; d++) {
		const struct model_device *dev = &f->devices[d];

		HOLDS(model_find_device(f, dev->name) == d);
		HOLDS(model_find_host(f, dev->name) < 0);
		HOLDS(dev->driver && dev->address && dev->domain);
		for (int i = 0; i < dev->n_options; i++) {
			HOLDS(dev->options[i].key && dev->options[i].value);
		}
		if (dev->kind != MODEL_RING) {
			check_space(f, d);
			continue;
		}
		HOLDS(dev->n_members >= 2);
		HOLDS(dev->ring.n == dev->n_members);
		HOLDS(dev->ring.fibres >= 1 && dev->ring.channels >= 1);
		HOLDS(dev->channel_bps > 0);
		for (int i = 0; i < dev->n_members; i++) {
			HOLDS(dev->members[i] >= 0);
			HOLDS(dev->members[i] < f->n_hosts);
		}
	}
}

/* The lists of jobs and the jobs of ports say the same. */
static inline void check_job_ports(const struct model_fabric *f)
{
	int listed = 0, named = 0;

	for (int j = 0; j < f->n_jobs; j++) {
		const struct model_job *job = &f->jobs[j];

		HOLDS(job->n_ports > 0 || job->device >= 0);
		listed += job->n_ports;
		for (int i = 0; i < job->n_ports; i++) {
			const struct model_port *p = &f->ports[job->ports[i]];

			HOLDS(p->tx_job == j || p->rx_job == j);
			HOLDS(i == 0 || job->ports[i] > job->ports[i - 1]);
		}
	}
	for (int i = 0; i < f->n_ports; i++) {
		const struct model_port *p = &f->ports[i];

		HOLDS(p->tx_job < f->n_jobs && p->rx_job < f->n_jobs);
		named += (p->tx_job >= 0) + (p->rx_job >= 0 && p->rx_job != p->tx_job);
	}
	HOLDS(listed == named);
}

/* Each link has the sides of its ports to itself, and its host is listed. */
static inline void check_links(const struct model_fabric *f, const struct model_job *job, int j)
{
	HOLDS(job->n_links > 0 && job->n_hosts > 0 && job->device < 0 && !job->topo);
	for (int i = 0; i < job->n_links; i++) {
		const struct model_link *l = &job->links[i];
		const struct model_port *tx = &f->ports[l->tx_port], *rx = &f->ports[l->rx_port];

		HOLDS(tx->tx_job == j && rx->rx_job == j);
		HOLDS(tx->tx_device >= 0 && rx->rx_device >= 0);
		HOLDS(!l->is_back || (i > 0 && l->tx_port == job->links[i - 1].rx_port &&
				      l->rx_port == job->links[i - 1].tx_port));
		HOLDS(!f->devices[tx->tx_device].any_to_any || tx->rx_job == j);
	}
	for (int i = 1; i < job->n_hosts; i++) {
		HOLDS(job->hosts[i - 1] < job->hosts[i]);
	}
}

/* All that it counts is of its tables: units of ops that there are, each called, and as many
 * followers as calls. */
static inline void check_step(const struct model_job *job)
{
	const struct workload *w = job->workload;

	HOLDS(job->device < 0 && !job->topo && w && w->units.n > 0);
	HOLDS(workload_ranks(w, WORKLOAD_ALL_AXES) == job->n_hosts);
	for (size_t i = 0; i < w->ops.n; i++) {
		const struct workload_op *op = &w->ops.v[i];

		HOLDS(op->bytes > 0 && op->axes && !(op->axes >> w->axes.n));
		HOLDS(abs(op->shift) < job->n_hosts);
	}
	for (size_t u = 0; u < w->units.n; u++) {
		int64_t after = 0;

		HOLDS(w->units.v[u].ops && (w->ops.n == 32 || !(w->units.v[u].ops >> w->ops.n)));
		for (size_t v = 0; v < w->units.n; v++) {
			after += w->next[u * w->units.n + v];
		}
		HOLDS(after == w->units.v[u].calls && after > 0);
	}
}

static inline void check_jobs(const struct model_fabric *f)
{
	for (int j = 0; j < f->n_jobs; j++) {
		const struct model_job *job = &f->jobs[j];

		HOLDS(model_find_job(f, job->name) == j);
		if (job->kind == MODEL_CIRCUITS) {
			check_links(f, job, j);
			continue;
		}
		if (job->kind == MODEL_STEP) {
			check_step(job);
			continue;
		}
		HOLDS(job->n_hosts >= 2 && job->size_bytes > 0);
		HOLDS(job->algorithm[0] && job->topology[0]);
		HOLDS(!job->topo == (job->device >= 0 || strcmp(job->topology, "auto") == 0));
		HOLDS(!job->topo || topo_n(job->topo) == job->n_hosts);
		HOLDS(job->device < f->n_devices);
		HOLDS(job->device < 0 ||
		      f->devices[job->device].kind == MODEL_RING);
		HOLDS(job->alpha_ns >= (job->device < 0 ? 0 : -1));
		for (int i = 0; i < job->n_hosts; i++) {
			HOLDS(job->hosts[i] >= 0);
			HOLDS(job->hosts[i] < f->n_hosts);
		}
	}
}

static inline void check_invariants(const struct model_fabric *f)
{
	HOLDS(f->name[0] && strlen(f->hash) == 64);
	HOLDS(f->n_hosts > 0);
	for (int h = 0; h < f->n_hosts; h++) {
		HOLDS(model_find_host(f, f->hosts[h].name) == h);
		HOLDS(f->hosts[h].place.line > 0);
	}
	check_ports(f);
	check_devices(f);
	check_trunks(f);
	check_jobs(f);
	check_job_ports(f);
}

#endif
