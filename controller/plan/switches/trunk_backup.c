/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backups of lightpaths over trunks, for jobs and trunks that ask for them (`protect`).
 *
 * A backup is a route that is free and stays so: it is dark until its lightpath needs it, and
 * begins and ends at the same ports. With routes for all lightpaths in hand, backups are looked
 * for beside them by rwa (rwa_mesh_options.pinned), each lightpath a demand of its own; where
 * not all find one, once more with only what is lit in its place. Which they are follows from
 * what is lit, so that nothing has to be remembered: when trunks fail, the backups that were
 * there before are found again, in the network as though nothing had failed, and those whose
 * lightpath is hit are switched to, without looking at the others.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"

#define WORK_A_LIGHTPATH 20
#define WORK_LEAST 4000

/* What its job asks for, else the most that a trunk on the route does. */
static enum rwa_protect protect_of(const struct trunk_network *w, const struct trunk_lightpath *p,
				   const struct rwa_hop *route, int hops)
{
	static const int strict[] = { 0, 2, 1 };	/* 1+1 before shared */
	enum model_protect most = w->fabric->jobs[p->pj->job].protect;
	bool own = most != MODEL_UNPROTECTED;

	for (int i = 0; i < hops && !own; i++) {
		const struct trunk_fibre *x = trunk_fibre_of(w, &route[i]);

		if (x && !x->is_port && strict[w->fabric->trunks[x->id].protect] > strict[most]) {
			most = w->fabric->trunks[x->id].protect;
		}
	}
	return (enum rwa_protect)most;
}

/* By the routes that lightpaths have, or (lit) by those that are lit; returns how many are
 * protected. */
static int set_protect(struct trunk_network *w, bool lit)
{
	int n = 0;

	for (size_t i = 0; i < w->paths.n; i++) {
		struct trunk_lightpath *p = &w->paths.v[i];
		const struct rwa_hop *route = lit ? w->lit.hops.v + p->lit.first : p->route;

		p->protect = p->demand < 0 ? RWA_UNPROTECTED :
			     protect_of(w, p, route, lit ? p->lit.hops : p->hops);
		n += p->protect != RWA_UNPROTECTED;
	}
	return n;
}

/* ---- what rwa is asked ---- */

/* The mesh with a demand for each lightpath over trunks; borrows all else. */
static struct rwa_mesh mesh_of_paths(const struct trunk_network *w)
{
	struct rwa_mesh m = *w->mesh;

	memset(&m.demands, 0, sizeof(m.demands));
	m.lightpaths = 0;
	for (size_t i = 0; i < w->paths.n; i++) {
		const struct trunk_lightpath *p = &w->paths.v[i];
		struct rwa_mesh_demand d = { p->src, p->dst, 1, p->protect };

		if (p->demand >= 0) {
			vec_push(&m.demands, d);
			m.lightpaths += d.protect ? 2 : 1;
		}
	}
	return m;
}

/* Routes that stay: of all lightpaths, or (lit) where that is how they are lit. */
static void pin(const struct trunk_network *w, bool lit, struct rwa_assignment *out)
{
	int32_t demand = 0;

	for (size_t i = 0; i < w->paths.n; i++) {
		const struct trunk_lightpath *p = &w->paths.v[i];
		const struct rwa_hop *route = lit ? w->lit.hops.v + p->lit.first : p->route;
		struct rwa_path one = { demand, lit ? p->lit.hops : p->hops,
					(int64_t)out->hops.n };

		if (p->demand < 0) {
			continue;
		}
		demand++;
		if (one.hops > 0) {
			vec_push(&out->paths, one);
		}
		for (int32_t h = 0; h < one.hops; h++) {
			vec_push(&out->hops, route[h]);
		}
	}
}

/* Backups beside what stays, of as many as are found; *missing: lightpaths without one. */
static int find_backups(const struct trunk_network *w, bool lit, struct rwa_mesh_result *out,
			int *missing, struct err *err)
{
	struct rwa_mesh m = mesh_of_paths(w);
	struct rwa_assignment stays = { 0 };
	struct rwa_mesh_options opt = {
		.channels = w->channels, .seed = 1, .objective = RWA_MIN_MOVED, .before = &stays,
		.pinned = true, .work = WORK_LEAST + WORK_A_LIGHTPATH * m.lightpaths,
	};
	int rc;

	pin(w, lit, &stays);
	rc = rwa_mesh_solve(&m, &opt, out, err);
	*missing = rc ? 0 : (int)(m.lightpaths - out->lightpaths);
	vec_fini(&m.demands);
	rwa_assignment_fini(&stays);
	return rc;
}

/* Gives lightpaths the routes and backups that were found. The answer outlives them. */
static void take_backups(struct trunk_network *w, const struct rwa_assignment *a)
{
	int32_t demand = 0;
	size_t k = 0;

	for (size_t i = 0; i < w->paths.n; i++) {
		struct trunk_lightpath *p = &w->paths.v[i];

		if (p->demand < 0) {
			continue;
		}
		if (k < a->paths.n && a->paths.v[k].demand == demand) {
			p->route = a->hops.v + a->paths.v[k].first;
			p->hops = a->paths.v[k++].hops;
			p->backup = NULL;
			p->n_backup = 0;
		}
		if (k < a->paths.n && a->paths.v[k].demand == demand) {
			p->backup = a->hops.v + a->paths.v[k].first;
			p->n_backup = a->paths.v[k++].hops;
		}
		demand++;
	}
}

/* ---- for a plan ---- */

static bool hop_works(const struct trunk_network *w, const struct rwa_hop *h)
{
	const struct trunk_fibre *x = trunk_fibre_of(w, h);

	return x && (x->is_port || trunk_works(w, x->id));
}

static bool route_works(const struct trunk_network *w, const struct rwa_hop *route, int hops)
{
	bool works = true;

	for (int i = 0; i < hops; i++) {
		works &= hop_works(w, &route[i]);
	}
	return works;
}

static bool has_failed_trunk(const struct trunk_network *w)
{
	bool any = false;

	for (int t = 0; t < w->fabric->n_trunks; t++) {
		any |= !trunk_works(w, t);
	}
	return any;
}

/* Whether there is a way between two nodes without this arc. O(nodes arcs). */
static bool leads_without(const struct rwa_mesh *m, int src, int dst, int arc)
{
	bool *reached = x_new(m->nodes.n, sizeof(*reached)), more = true, leads;

	reached[src] = true;
	while (more) {
		more = false;
		for (size_t a = 0; a < m->arcs.n; a++) {
			const struct rwa_mesh_arc *x = &m->arcs.v[a];

			if ((int)a != arc && reached[x->src] && !reached[x->dst]) {
				reached[x->dst] = more = true;
			}
		}
	}
	leads = reached[dst];
	free(reached);
	return leads;
}

/* The first link that all ways between the ends of a protected lightpath pass: it can have no
 * backup. NULL: there is none. */
static const struct rwa_mesh_arc *only_link(const struct trunk_network *w,
					   const struct trunk_lightpath **path)
{
	for (size_t i = 0; i < w->paths.n; i++) {
		const struct trunk_lightpath *p = &w->paths.v[i];

		for (int h = 0; h < p->hops && p->protect; h++) {
			if (!leads_without(w->mesh, p->src, p->dst, p->route[h].arc)) {
				*path = p;
				return &w->mesh->arcs.v[p->route[h].arc];
			}
		}
	}
	return NULL;
}

static int refuse_missing(const struct trunk_network *w, int missing, int of, struct err *err)
{
	const struct model_device *d = w->fabric->devices;
	const struct trunk_lightpath *p = NULL;
	const struct rwa_mesh_arc *link = only_link(w, &p);

	if (link) {
		return err_set(err, WEFT_EINFEASIBLE, "protect: all ways from %s to %s pass the "
			       "link %s -> %s, so no backup of that light exists", d[p->src].name,
			       d[p->dst].name, d[link->src].name, d[link->dst].name);
	}
	err_set(err, WEFT_EINFEASIBLE, "%d of %d protected lightpaths find no backup beside the "
		"light of all", missing, of);
	err_hint(err, "more fibres or channels between switches; protect: shared needs fewer of "
		      "them than 1+1; nothing proves that there is none");
	return err->code;
}

/* Hosts that are nodes of their own would have their ports among the links that a pair does not
 * share. */
static bool has_end_nodes(const struct trunk_network *w)
{
	return (int)w->mesh->nodes.n > w->fabric->n_devices;
}

/* Says why hosts are nodes, and which is the first. */
static int refuse_end_nodes(const struct trunk_network *w, struct err *err)
{
	const struct model_fabric *f = w->fabric;

	for (int p = 0; p < f->n_ports; p++) {
		int end = w->end_of[p];

		if (end >= 0 && (f->ports[p].tx_device != f->ports[end].tx_device ||
				 f->ports[p].rx_device != f->ports[end].tx_device)) {
			return err_set(err, WEFT_EUNSUPPORTED, "protect: %s is on several "
				       "switches, which backups do not support",
				       f->hosts[f->ports[p].host].name);
		}
	}
	return err_set(err, WEFT_EUNSUPPORTED, "protect: hosts do not all send the same "
		       "wavelengths, which backups do not support");
}

/* Other routes for what is not lit, so that all have backups, if that is found; then backups beside
 * these routes, as they are found again when all is lit, also for what came to trunks that ask
 * for them. */
static int move_dark(struct trunk_network *w, struct rwa_mesh_result *out, int *missing,
		     struct err *err)
{
	struct rwa_mesh_result moved = { 0 }, again = { 0 };
	int others, left = 1, lack = 0, rc = find_backups(w, true, &moved, &others, err);

	if (rc == 0 && others == 0) {
		take_backups(w, &moved.assignment);
		set_protect(w, false);
		for (size_t i = 0; i < w->paths.n; i++) {
			lack += w->paths.v[i].protect && !w->paths.v[i].backup;
		}
		rc = find_backups(w, false, &again, &left, err);
		rwa_mesh_result_fini(out);
		*out = left ? moved : again;
		*missing = left ? 2 * lack : 0;
		moved = left ? again : moved;
	}
	rwa_mesh_result_fini(&moved);
	return rc;
}

int trunk_protect(struct trunk_network *w, struct rwa_mesh_result *out, struct err *err)
{
	int rc, missing;

	if (set_protect(w, false) == 0) {
		return 0;
	}
	if (has_end_nodes(w)) {
		return refuse_end_nodes(w, err);
	}
	rc = find_backups(w, false, out, &missing, err);
	if (rc == 0 && missing) {
		rc = move_dark(w, out, &missing, err);
	}
	/* What has failed is no reason to leave others without light. */
	if (rc == 0 && missing && !has_failed_trunk(w)) {
		rc = refuse_missing(w, missing / 2, set_protect(w, false), err);
	}
	if (rc == 0) {
		take_backups(w, &out->assignment);
	}
	return rc;
}

bool trunk_switch_over(struct trunk_network *w, struct rwa_mesh_result *out)
{
	bool hit = false, good = set_protect(w, true) > 0 && !has_end_nodes(w);
	int missing;

	for (size_t i = 0; i < w->paths.n && good; i++) {
		const struct trunk_lightpath *p = &w->paths.v[i];

		good &= p->demand < 0 || p->lit.hops > 0;
		hit |= p->lit.hops > 0 &&
		       !route_works(w, w->lit.hops.v + p->lit.first, p->lit.hops);
	}
	if (!good || !hit || find_backups(w, true, out, &missing, NULL)) {
		return false;
	}
	for (size_t i = 0; i < w->paths.n; i++) {
		struct trunk_lightpath *p = &w->paths.v[i];

		p->route = p->lit.hops ? w->lit.hops.v + p->lit.first : NULL;
		p->hops = p->lit.hops;
	}
	take_backups(w, &out->assignment);
	for (size_t i = 0; i < w->paths.n && good; i++) {
		struct trunk_lightpath *p = &w->paths.v[i];

		if (!route_works(w, p->route, p->hops)) {
			p->route = p->backup;
			p->hops = p->n_backup;
			good &= p->hops > 0 && route_works(w, p->route, p->hops);
		}
		p->backup = NULL;
		p->n_backup = 0;
	}
	return good;
}
