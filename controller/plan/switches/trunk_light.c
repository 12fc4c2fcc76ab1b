/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Light for all jobs whose switches are joined by fibres, at once.
 *
 * Jobs whose topologies are chosen wait in plan_ctx.trunk_jobs. Their lightpaths
 * are the demands of one mesh (trunks.c), and what is lit already, or was before a
 * circuit of it was lost, is its assignment before: if that serves all, nothing is
 * asked of rwa, else it is to move as few of them as it can. Every job may be moved for another,
 * but those that are kept, whose light is found before that of the others and taken out of
 * the mesh.
 *
 * Power is checked as everywhere (power.c). Only where a route does not reach its
 * receiver is the light looked for again, with hosts as nodes, the losses of all
 * parts, and a budget: so what is lit and weak does not move while it need not.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/order.h"

/* ---- what is lit already ---- */

static int out_of(const struct plan_light *light, int in)
{
	for (int i = 0; i < light->n_xcs; i++) {
		if (light->xcs[i].in == in) {
			return light->xcs[i].out;
		}
	}
	return -1;
}

/* The output that an input is connected to, or (lost) is meant to be where it is not
 * connected; -1: none. O(circuits). */
static int output_of(const struct trunk_network *w, int device, int in, bool lost)
{
	int out = out_of(plan_observed(w->ctx, device), in);

	return out < 0 && lost ? out_of(plan_intent(w->ctx, device), in) : out;
}

/* Adds the hop over fibre number i - 1 to what is followed, with the one channel
 * that a filter passes. */
static void push_hop(struct trunk_network *w, int i)
{
	const struct trunk_fibre *x = &w->fibres.v[i - 1];

	vec_push(&w->lit.hops, (struct rwa_hop){ x->arc, x->fibre, x->channel });
}

/* Follows the light of a port over trunks that may be used. *rx: the port of
 * these jobs that it ends at, -1: none. */
static void follow(struct trunk_network *w, int tx, bool lost, int *rx)
{
	const struct model_fabric *f = w->fabric;
	int device = f->ports[tx].tx_device, in = f->ports[tx].tx_port;

	if (w->of_tx[tx]) {
		push_hop(w, w->of_tx[tx]);
	}
	*rx = -1;
	for (int k = 0; k <= f->n_devices; k++) {
		int out = output_of(w, device, in, lost), port, trunk;

		if (out < 0 || out >= f->devices[device].n_out) {
			break;
		}
		port = f->devices[device].out_port[out];
		if (port != MODEL_AT_TRUNK) {
			*rx = port >= 0 && w->rx_open[port] ? port : -1;
			if (*rx >= 0 && w->of_rx[port]) {
				push_hop(w, w->of_rx[port]);
			}
			return;
		}
		trunk = w->trunk_at[device][out];
		if (!w->of_trunk[trunk]) {
			break;
		}
		push_hop(w, w->of_trunk[trunk]);
		device = f->trunks[trunk].to_device;
		in = f->trunks[trunk].to_port;
	}
}

/* The channel of the filters on hops that its host sends, else the first that it
 * does; -1: no light comes through. */
static int channel_of(const struct trunk_network *w, int host, const struct rwa_hop *hops, size_t n)
{
	int channel = -1, first = 0;

	for (size_t i = 0; i < n; i++) {
		int c = hops[i].channel;

		if (c >= 0 && channel >= 0 && c != channel) {
			return -1;
		}
		channel = c >= 0 ? c : channel;
	}
	while (first < w->channels && !trunk_sends(w, host, first)) {
		first++;
	}
	channel = channel < 0 ? first : channel;
	return channel < w->channels && trunk_sends(w, host, channel) ? channel : -1;
}

/* A lightpath between the ends of two ports that has no light yet, or NULL. */
static struct trunk_lightpath *find_wanted(struct trunk_network *w, int tx, int rx)
{
	int from = w->end_of[tx], to = w->end_of[rx];
	struct trunk_lightpath key = { .from = from, .to = to, .src = w->send_node[from],
				       .dst = w->receive_node[to] };
	size_t low = 0, high = w->paths.n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (trunk_by_ends(&w->paths.v[mid], &key) < 0) {
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	for (; low < w->paths.n && trunk_by_ends(&w->paths.v[low], &key) == 0; low++) {
		if (w->paths.v[low].tx < 0) {
			return &w->paths.v[low];
		}
	}
	return NULL;
}

/* Gives the light of a port to a lightpath that wants it, if there is one. */
static void find_lit(struct trunk_network *w, int tx, bool lost)
{
	struct trunk_lightpath *p = NULL;
	size_t first = w->lit.hops.n, n;
	int rx, channel = -1;

	follow(w, tx, lost, &rx);
	n = w->lit.hops.n - first;
	if (rx >= 0 && !w->rx_used[rx]) {
		channel = channel_of(w, w->fabric->ports[tx].host, w->lit.hops.v + first, n);
		p = channel < 0 ? NULL : find_wanted(w, tx, rx);
	}
	if (!p) {
		w->lit.hops.n = first;
		return;
	}
	p->tx = tx;
	p->rx = rx;
	w->tx_used[tx] = w->rx_used[rx] = true;
	p->lit = (struct rwa_path){ p->demand, (int32_t)n, (int64_t)first };
	for (size_t i = first; i < w->lit.hops.n; i++) {
		w->lit.hops.v[i].channel = channel;
	}
}

/* Light that is there and goes between hosts that want it; then what was there before
 * a circuit of it was lost, so that the rest of it stays. */
static void find_all_lit(struct trunk_network *w)
{
	w->trunk_at = plan_map_trunks(w->fabric);
	for (int lost = 0; lost <= 1; lost++) {
		for (int p = 0; p < w->fabric->n_ports; p++) {
			if (w->tx_open[p] && !w->tx_used[p]) {
				find_lit(w, p, lost);
			}
		}
	}
	for (size_t i = 0; i < w->paths.n; i++) {
		if (w->paths.v[i].lit.hops) {
			vec_push(&w->lit.paths, w->paths.v[i].lit);
		}
	}
}

/* ---- routes ---- */

static bool is_same(const struct trunk_network *w, const struct rwa_path *lit,
		    const struct rwa_assignment *a, const struct rwa_path *p)
{
	return lit->hops == p->hops &&
	       memcmp(w->lit.hops.v + lit->first, a->hops.v + p->first,
		      (size_t)p->hops * sizeof(struct rwa_hop)) == 0;
}

/* The routes of one demand, answer[0 .. n - 1], for its lightpaths: one that was
 * lit on a route keeps it, the others take what is left in order. */
static void share_routes(struct trunk_network *w, const struct rwa_assignment *a,
			 const struct rwa_path *answer, int n, struct trunk_lightpath *paths,
			 bool *given)
{
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < n && paths[i].lit.hops && !paths[i].route; k++) {
			if (!given[k] && is_same(w, &paths[i].lit, a, &answer[k])) {
				given[k] = true;
				paths[i].route = a->hops.v + answer[k].first;
				paths[i].hops = answer[k].hops;
			}
		}
	}
	for (int i = 0, k = 0; i < n; i++) {
		while (!paths[i].route && given[k]) {
			k++;
		}
		if (!paths[i].route) {
			given[k] = true;
			paths[i].route = a->hops.v + answer[k].first;
			paths[i].hops = answer[k].hops;
		}
	}
}

static void take_routes(struct trunk_network *w, const struct rwa_assignment *a)
{
	bool *given = x_new(a->paths.n + 1, sizeof(*given));
	size_t next = 0;

	for (size_t i = 0; i < w->paths.n;) {
		int d = w->paths.v[i].demand;
		int n = d < 0 ? 1 : w->mesh->demands.v[d].count;

		if (d >= 0) {
			share_routes(w, a, a->paths.v + next, n, &w->paths.v[i], given + next);
			next += (size_t)n;
		}
		i += (size_t)n;
	}
	free(given);
}

/* Where neither all have a route nor anything proves that they cannot: how many channels are enough
 * is another search, and its answer may fit. */
static int min_channels(struct trunk_network *w, const struct rwa_mesh_options *opt,
		      struct rwa_mesh_result *out, struct err *err)
{
	struct rwa_mesh_options any = *opt;
	struct rwa_mesh_result least = { 0 };
	int rc;

	any.channels = 0;
	if (out->lightpaths_bound == w->mesh->lightpaths &&
	    rwa_mesh_solve(w->mesh, &any, &least, NULL)) {
		least = (struct rwa_mesh_result){ 0 };
	}
	if (least.channels && least.channels <= w->channels) {
		rwa_mesh_result_fini(out);
		*out = least;
		return 0;
	}
	rc = trunk_refuse(w, out, &least, err);
	rwa_mesh_result_fini(&least);
	return rc;
}

/* The route of every lightpath: as it is lit, if all are, else by rwa, moving as
 * few as it can. What *out has lives as long as the routes. */
static int find_routes(struct trunk_network *w, struct rwa_mesh_result *out, struct err *err)
{
	struct rwa_mesh_options opt = {
		.channels = w->channels, .seed = 1, .objective = RWA_MIN_MOVED,
		.before = w->lit.paths.n ? &w->lit : NULL,
	};
	int rc;

	if (rwa_mesh_check(w->mesh, &w->lit, w->channels, true, NULL) == 0) {
		take_routes(w, &w->lit);
		return 0;
	}
	rc = rwa_mesh_solve(w->mesh, &opt, out, err);
	if (rc == WEFT_EINFEASIBLE) {
		return trunk_refuse(w, NULL, NULL, err);
	}
	if (rc == 0 && out->lightpaths < w->mesh->lightpaths) {
		rc = min_channels(w, &opt, out, err);
	}
	if (rc == 0) {
		take_routes(w, &out->assignment);
	}
	return rc;
}

/* ---- ports and circuits ---- */

/* A port of an end for light that has none: the first that is open and free. */
static int free_port(const struct trunk_network *w, int end, const bool *open, bool *used)
{
	const struct model_host *h = &w->fabric->hosts[trunk_host(w, end)];

	for (int p = end; p < h->first_port + h->n_ports; p++) {
		if (w->end_of[p] == end && open[p] && !used[p]) {
			used[p] = true;
			return p;
		}
	}
	return -1;
}

/* Ports of every lightpath: those of its route where it has them, else those that
 * it has light from and to, else free ones. */
static void choose_ports(struct trunk_network *w)
{
	size_t ports = (size_t)w->fabric->n_ports;

	memset(w->tx_used, 0, ports * sizeof(*w->tx_used));
	memset(w->rx_used, 0, ports * sizeof(*w->rx_used));
	for (size_t i = 0; i < w->paths.n; i++) {
		struct trunk_lightpath *p = &w->paths.v[i];

		if (p->src >= w->fabric->n_devices) {
			p->tx = trunk_fibre_of(w, &p->route[0])->id;
		}
		if (p->dst >= w->fabric->n_devices) {
			p->rx = trunk_fibre_of(w, &p->route[p->hops - 1])->id;
		}
		if (p->tx >= 0) {
			w->tx_used[p->tx] = true;
		}
		if (p->rx >= 0) {
			w->rx_used[p->rx] = true;
		}
	}
	for (size_t i = 0; i < w->paths.n; i++) {
		struct trunk_lightpath *p = &w->paths.v[i];

		p->tx = p->tx < 0 ? free_port(w, p->from, w->tx_open, w->tx_used) : p->tx;
		p->rx = p->rx < 0 ? free_port(w, p->to, w->rx_open, w->rx_used) : p->rx;
	}
}

/* What the transmitter of a lightpath is tuned to, -1: it is not. */
static int tuned_to(const struct trunk_network *w, const struct trunk_lightpath *p)
{
	const struct model_host *h = &w->fabric->hosts[trunk_host(w, p->from)];
	int wave = -1;

	for (int i = 0; i < p->hops; i++) {
		const struct rwa_hop *hop = &p->route[i];

		wave = w->mesh->arcs.v[hop->arc].is_single ? wave : w->wave[hop->channel];
	}
	return h->n_channels == 0 ? -1 : wave >= 0 ? wave : h->channels[0];
}

/* The circuits of a lightpath, one on each switch, into v; returns how many. v may
 * be NULL. */
static int circuits_of(struct trunk_network *w, const struct trunk_lightpath *p,
		       struct plan_circuit *v)
{
	const struct model_fabric *f = w->fabric;
	struct plan_circuit c = {
		.arc = p->arc, .device = f->ports[p->tx].tx_device,
		.xc.in = f->ports[p->tx].tx_port, .tx_port = p->tx, .rx_port = p->rx,
		.channel = tuned_to(w, p),
	};
	int n = 0;

	for (int i = 0; i <= p->hops; i++) {
		const struct trunk_fibre *x = i < p->hops ? trunk_fibre_of(w, &p->route[i]) : NULL;
		const struct model_trunk *t = x && !x->is_port ? &f->trunks[x->id] : NULL;

		if (x && x->is_port) {
			continue;
		}
		c.xc.out = t ? t->from_port : f->ports[p->rx].rx_port;
		c.moved = !plan_is_lit(plan_observed(w->ctx, c.device), c.xc);
		if (v) {
			v[n] = c;
		}
		n++;
		if (t) {
			w->taken[x->id] |= p->pj->kept;
			c.device = t->to_device;
			c.xc.in = t->to_port;
		}
	}
	return n;
}

ORDER_BY(by_device_and_port, struct plan_circuit, device, xc.in)

/* Circuits that would light the backups of all jobs. */
static void list_backups(struct trunk_network *w)
{
	for (size_t i = 0; i < w->paths.n; i++) {
		struct trunk_lightpath p = w->paths.v[i];
		struct plan_job *pj = p.pj;

		pj->n_protected += p.backup != NULL;
		pj->n_unprotected += !p.backup && p.protect != RWA_UNPROTECTED;
		if (p.backup) {
			p.route = p.backup;
			p.hops = p.n_backup;
			pj->backups = x_grow(pj->backups, (size_t)(pj->n_backups + p.hops) + 1,
					     sizeof(*pj->backups));
			pj->n_backups += circuits_of(w, &p, pj->backups + pj->n_backups);
		}
	}
}

/* The circuits of all jobs, in place of those that they had. */
static void make_circuits(struct trunk_network *w)
{
	for (int j = 0; j < w->n_jobs; j++) {
		free(w->jobs[j]->circuits);
		free(w->jobs[j]->backups);
		w->jobs[j]->circuits = w->jobs[j]->backups = NULL;
		w->jobs[j]->n_circuits = w->jobs[j]->n_backups = 0;
		w->jobs[j]->n_protected = w->jobs[j]->n_unprotected = 0;
	}
	for (size_t i = 0; i < w->paths.n; i++) {
		w->paths.v[i].pj->n_circuits += circuits_of(w, &w->paths.v[i], NULL);
	}
	for (int j = 0; j < w->n_jobs; j++) {
		struct plan_job *pj = w->jobs[j];

		pj->circuits = x_new((size_t)pj->n_circuits + 1, sizeof(*pj->circuits));
		pj->n_circuits = 0;
	}
	for (size_t i = 0; i < w->paths.n; i++) {
		struct plan_job *pj = w->paths.v[i].pj;

		pj->n_circuits += circuits_of(w, &w->paths.v[i], pj->circuits + pj->n_circuits);
	}
	for (int j = 0; j < w->n_jobs; j++) {
		struct plan_job *pj = w->jobs[j];

		qsort(pj->circuits, (size_t)pj->n_circuits, sizeof(*pj->circuits),
		      by_device_and_port);
	}
	list_backups(w);
}

/* ---- power ---- */

/* The most that enters a switch and the least that a receiver needs, of all ports
 * of the jobs' hosts. False where one of them is not known, or a trunk gains: then
 * there is no budget that says what reaches. */
static bool find_budget(const struct plan_ctx *ctx, struct trunk_network *w)
{
	const struct model_fabric *f = ctx->fabric;
	bool known = !ctx->base->is_rollback;

	w->max_mdbm = INT32_MIN;
	w->min_mdbm = INT32_MAX;
	for (size_t j = 0; j < ctx->trunk_jobs.n; j++) {
		const struct model_job *job = &f->jobs[ctx->trunk_jobs.v[j]->job];

		for (int i = 0; i < job->n_ports; i++) {
			int32_t in = 0, need = 0;

			known &= plan_power_in(ctx, job->ports[i], &in);
			known &= plan_power_needed(ctx, job->ports[i], &need);
			w->max_mdbm = in > w->max_mdbm ? in : w->max_mdbm;
			w->min_mdbm = need < w->min_mdbm ? need : w->min_mdbm;
		}
	}
	for (int t = 0; t < f->n_trunks; t++) {
		known &= f->trunks[t].loss_mdb >= 0;
	}
	return known && w->max_mdbm >= w->min_mdbm;
}

/* ---- all of it ---- */

/* Ports and circuits of all routes. *weak: the power is not as receivers need it. */
static int light_routes(struct trunk_network *w, bool *weak, struct err *err)
{
	int rc = 0;

	choose_ports(w);
	make_circuits(w);
	for (int j = 0; j < w->n_jobs && rc == 0; j++) {
		rc = plan_check_power(w->ctx, w->jobs[j], err);
		*weak = rc == WEFT_EINFEASIBLE;
		if (rc && w->n_jobs > 1) {
			plan_in_job(w->ctx, w->jobs[j], err);
		}
	}
	return rc;
}

/* Switches lightpaths whose trunks have failed to their backups, and leaves all else as it is.
 * False: not to be done so. */
static bool switch_over(struct plan_ctx *ctx)
{
	struct trunk_network w = { .ctx = ctx, .fabric = ctx->fabric,
				   .jobs = ctx->trunk_jobs.v, .n_jobs = (int)ctx->trunk_jobs.n,
				   .taken = ctx->trunk_taken, .as_whole = true };
	struct rwa_mesh_result backups = { 0 };
	struct err err = { 0 };
	bool done = false, weak;

	if (trunk_network_init(&w, &err) == 0) {
		find_all_lit(&w);
		done = trunk_switch_over(&w, &backups) && light_routes(&w, &weak, &err) == 0;
		rwa_assignment_fini(&w.lit);
		plan_trunks_free(ctx->fabric, w.trunk_at);
	}
	err_clear(&err);
	rwa_mesh_result_fini(&backups);
	trunk_network_fini(&w);
	return done;
}

static bool any_protected(const struct plan_ctx *ctx)
{
	bool any = false;

	for (size_t j = 0; j < ctx->trunk_jobs.n; j++) {
		any |= ctx->fabric->jobs[ctx->trunk_jobs.v[j]->job].protect != MODEL_UNPROTECTED;
	}
	for (int t = 0; t < ctx->fabric->n_trunks && ctx->trunk_jobs.n; t++) {
		any |= ctx->fabric->trunks[t].protect != MODEL_UNPROTECTED;
	}
	return any;
}

/* Light for all jobs that wait for it, within the power budget or whatever its
 * loss; then the power is checked: *weak, it is not as receivers need it. */
static int find_light(struct plan_ctx *ctx, bool by_power, bool *weak, struct err *err)
{
	struct trunk_network w = { .ctx = ctx, .fabric = ctx->fabric,
				   .jobs = ctx->trunk_jobs.v, .n_jobs = (int)ctx->trunk_jobs.n,
				   .taken = ctx->trunk_taken, .by_power = by_power };
	struct rwa_mesh_result found = { 0 }, backups = { 0 };
	int rc;

	*weak = false;
	if (by_power && !find_budget(ctx, &w)) {
		return err_set(err, WEFT_EINFEASIBLE, "no power budget");
	}
	/* Kept jobs come first, and are the only ones that take trunks. */
	if (w.jobs[0]->kept) {
		memset(w.taken, 0, (size_t)ctx->fabric->n_trunks * sizeof(*w.taken));
	}
	if ((rc = trunk_network_init(&w, err))) {
		goto out;
	}
	find_all_lit(&w);
	if ((rc = find_routes(&w, &found, err)) || (rc = trunk_protect(&w, &backups, err))) {
		goto out;
	}
	rc = light_routes(&w, weak, err);
out:
	rwa_mesh_result_fini(&found);
	rwa_mesh_result_fini(&backups);
	rwa_assignment_fini(&w.lit);
	plan_trunks_free(ctx->fabric, w.trunk_at);
	trunk_network_fini(&w);
	return rc;
}

/* Whether the plan makes a circuit at a drained end, of a trunk or at a host, whose light of now
 * may only stay: then that is shut from now on. */
static bool makes_at_held(struct plan_ctx *ctx, const struct plan_circuit *c)
{
	const struct model_device *dev = &ctx->fabric->devices[c->device];
	const struct plan_light *seen = plan_observed(ctx, c->device);
	int in = dev->in_port[c->xc.in], out = dev->out_port[c->xc.out];
	bool found = false, in_held = c->moved && !plan_may_light(seen, false, true, c->xc.in),
	     out_held = c->moved && !plan_may_light(seen, false, false, c->xc.out);

	for (int t = 0; t < ctx->fabric->n_trunks; t++) {
		const struct model_trunk *x = &ctx->fabric->trunks[t];

		if ((out_held && x->from_device == c->device && x->from_port == c->xc.out) ||
		    (in_held && x->to_device == c->device && x->to_port == c->xc.in)) {
			ctx->trunk_taken[t] = found = true;
		}
	}
	if (in_held && in >= 0) {
		ctx->tx_shut[in] = found = true;
	}
	if (out_held && out >= 0) {
		ctx->rx_shut[out] = found = true;
	}
	return found;
}

static bool shut_held(struct plan_ctx *ctx)
{
	bool found = false;

	for (size_t j = 0; j < ctx->trunk_jobs.n; j++) {
		const struct plan_job *pj = ctx->trunk_jobs.v[j];

		for (int i = 0; i < pj->n_circuits; i++) {
			found |= makes_at_held(ctx, &pj->circuits[i]);
		}
	}
	return found;
}

int plan_trunk_light(struct plan_ctx *ctx, struct err *err)
{
	struct err again = { 0 };
	bool weak = false, done = any_protected(ctx) && switch_over(ctx);
	int rc = ctx->trunk_jobs.n && !done ? find_light(ctx, false, &weak, err) : 0;

	/* Each round shuts a trunk or a port, or more. */
	while (rc == 0 && shut_held(ctx)) {
		rc = find_light(ctx, false, &weak, err);
	}
	if (!weak || done || find_light(ctx, true, &weak, &again)) {
		return rc;
	}
	err_clear(err);
	return 0;
}
