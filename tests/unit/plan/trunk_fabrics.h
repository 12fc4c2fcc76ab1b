/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random fabrics whose fibres between switches have just as many wavelengths as
 * rwa needs for the lightpaths of all jobs together.
 *
 * A switch a site, joined by a tree and some more fibres, one each way between
 * two sites; hosts with tuned transceivers; jobs of 3 to 8 hosts from anywhere,
 * each with a topology that is given.
 */
#ifndef TESTS_UNIT_PLAN_TRUNK_FABRICS_H
#define TESTS_UNIT_PLAN_TRUNK_FABRICS_H

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/buf.h"
#include "lib/base/number/rng.h"
#include "rwa/mesh/mesh.h"
#include "topology/topology.h"

#define TIGHT_SITES 40
#define TIGHT_JOBS 128
#define TIGHT_EDGES (3 * TIGHT_SITES)

struct tight_fabric {
	int sites, hosts_a_site, ports;
	int n_edges, edge[TIGHT_EDGES][2];
	int n_jobs, channels, bound;
	int64_t lightpaths;	/* between sites */
	char *job[TIGHT_JOBS];	/* entries of the file, owned */
};

static inline void tight_add_edge(struct tight_fabric *t, int a, int b)
{
	for (int e = 0; e < t->n_edges; e++) {
		if ((t->edge[e][0] == a && t->edge[e][1] == b) ||
		    (t->edge[e][0] == b && t->edge[e][1] == a)) {
			return;
		}
	}
	if (a != b && t->n_edges < TIGHT_EDGES) {
		t->edge[t->n_edges][0] = a;
		t->edge[t->n_edges++][1] = b;
	}
}

/* A topology of n nodes that hosts have the ports for. */
static inline void tight_topology(struct rng *rng, int ports, int n, char *out, size_t size)
{
	switch (rng_below(rng, 4)) {
	case 0:
		if (n - 1 <= ports) {
			snprintf(out, size, "K(%d)", n);
			return;
		}
		/* fall through */
	case 1:
		if (ports >= 4 && n >= 6) {
			snprintf(out, size, "C(%d,{1,2})", n);
			return;
		}
		/* fall through */
	case 2:
		snprintf(out, size, "UniRing(%d,%d)", 1 + (int)rng_below(rng, (uint64_t)ports), n);
		return;
	default:
		snprintf(out, size, "Ring(%d)", n);
	}
}

/* The job's entry, and its lightpaths between sites as demands. */
static inline void tight_add_job(struct tight_fabric *t, struct rng *rng, struct rwa_mesh *m,
				 const int *hosts, int n)
{
	struct buf b = { 0 };
	struct topo *topo = NULL;
	char expr[32], *name = NULL;

	tight_topology(rng, t->ports, n, expr, sizeof(expr));
	buf_printf(&b, "  - { name: j%d, nodes: '", t->n_jobs);
	for (int i = 0; i < n; i++) {
		buf_printf(&b, "%sh%d", i ? "," : "", hosts[i]);
	}
	buf_printf(&b, "', collective: allgather, size: 1MiB, topology: '%s', algorithm: bfb, "
		   "alpha: 5us }\n", expr);
	t->job[t->n_jobs++] = buf_steal(&b);
	if (topo_parse(expr, &topo, &name, NULL)) {
		abort();
	}
	for (int a = 0; a < topo_m(topo); a++) {
		const struct topo_arc *arc = topo_arc(topo, a);
		struct rwa_mesh_demand d = { .src = hosts[arc->src] / t->hosts_a_site,
					     .dst = hosts[arc->dst] / t->hosts_a_site, .count = 1 };

		if (d.src != d.dst && rwa_mesh_add_demand(m, &d, NULL)) {
			abort();
		}
	}
	topo_free(topo);
	free(name);
}

/* All hosts in random order, cut into jobs. */
static inline void tight_add_jobs(struct tight_fabric *t, struct rng *rng, struct rwa_mesh *m)
{
	int n = t->sites * t->hosts_a_site, hosts[8 * TIGHT_SITES];

	for (int i = 0; i < n; i++) {
		int k = (int)rng_below(rng, (uint64_t)i + 1);

		hosts[i] = hosts[k];
		hosts[k] = i;
	}
	for (int i = 0, size; i + 3 <= n && t->n_jobs < TIGHT_JOBS; i += size) {
		size = 3 + (int)rng_below(rng, 6);
		size = i + size + 3 > n ? n - i : size;
		tight_add_job(t, rng, m, hosts + i, size < 8 ? size : 8);
	}
}

/* As `rwa solve` sees it: sites, fibres and lightpaths. */
static inline void tight_solve(struct tight_fabric *t, const struct rwa_mesh *m)
{
	struct rwa_mesh_options opt = { .seed = 1 };
	struct rwa_mesh_result res;

	if (rwa_mesh_solve(m, &opt, &res, NULL)) {
		abort();
	}
	t->channels = res.channels > 0 ? res.channels : 1;
	t->bound = res.bound;
	t->lightpaths = m->lightpaths;
	rwa_mesh_result_fini(&res);
}

static inline void tight_make(struct tight_fabric *t, uint64_t seed, int sites, int hosts_a_site,
			      int ports)
{
	struct rwa_mesh *m = NULL;
	struct rng rng;

	rng_seed(&rng, seed);
	*t = (struct tight_fabric){ .sites = sites, .hosts_a_site = hosts_a_site,
				    .ports = ports };
	if (rwa_mesh_new(sites, &m, NULL)) {
		abort();
	}
	for (int s = 1; s < sites; s++) {
		tight_add_edge(t, (int)rng_below(&rng, (uint64_t)s), s);
	}
	for (int k = (int)rng_below(&rng, 2 * (uint64_t)sites); k > 0; k--) {
		tight_add_edge(t, (int)rng_below(&rng, (uint64_t)sites),
			       (int)rng_below(&rng, (uint64_t)sites));
	}
	for (int e = 0; e < 2 * t->n_edges; e++) {
		struct rwa_mesh_arc a = { .src = t->edge[e / 2][e % 2],
					  .dst = t->edge[e / 2][!(e % 2)], .fibres = 1 };

		if (rwa_mesh_add_arc(m, &a, NULL)) {
			abort();
		}
	}
	tight_add_jobs(t, &rng, m);
	tight_solve(t, m);
	rwa_mesh_free(m);
}

static inline void tight_free(struct tight_fabric *t)
{
	for (int j = 0; j < t->n_jobs; j++) {
		free(t->job[j]);
	}
}

/* The file with the jobs in this order and so many wavelengths. free() */
static inline char *tight_text(const struct tight_fabric *t, const int *order, int channels)
{
	int at[TIGHT_SITES], hosts = t->hosts_a_site * t->ports;
	struct buf b = { 0 };

	buf_printf(&b, "weft: 1\nfabric: t\nhosts:\n  - { name: 'h[0-%d]', ports: 'p[0-%d]', "
		   "rate: 100Gbps, channels: '0-%d' }\nswitches:\n",
		   t->sites * t->hosts_a_site - 1, t->ports - 1, channels - 1);
	for (int s = 0; s < t->sites; s++) {
		int size = hosts;

		for (int e = 0; e < t->n_edges; e++) {
			size += t->edge[e][0] == s || t->edge[e][1] == s ? channels : 0;
		}
		buf_printf(&b, "  - { name: s%d, size: %dx%d, driver: sim }\n", s, size, size);
		at[s] = hosts;
	}
	buf_str(&b, "fibres:\n");
	for (int s = 0; s < t->sites; s++) {
		buf_printf(&b, "  - { from: 'h[%d-%d].p[0-%d]', to: 's%d.[1-%d]' }\n",
			   s * t->hosts_a_site, (s + 1) * t->hosts_a_site - 1, t->ports - 1, s,
			   hosts);
	}
	for (int e = 0; e < t->n_edges; e++) {
		int x = t->edge[e][0], y = t->edge[e][1];

		buf_printf(&b, "  - { from: 's%d.[%d-%d]', to: 's%d.[%d-%d]', "
			   "channels: '0-%d' }\n", x, at[x] + 1, at[x] + channels, y, at[y] + 1,
			   at[y] + channels, channels - 1);
		at[x] += channels;
		at[y] += channels;
	}
	buf_str(&b, "jobs:\n");
	for (int j = 0; j < t->n_jobs; j++) {
		buf_str(&b, t->job[order ? order[j] : j]);
	}
	return buf_steal(&b);
}

#endif
