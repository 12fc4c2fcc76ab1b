/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule as flows over the arcs, run in lockstep or asynchronously.
 *
 * What a logical arc carries in a step is one message, with a path for each of its
 * routes. All is by orbits, as coll_loads has it: one message stands for its
 * images, and uses an arc as often as these together do. Where arcs have their own routes, of an
 * orbit each has its own message, numbered one after the other. In lockstep every step
 * is a net of flows of its own, which begins where the one before ended; so
 * only one step is in memory. Asynchronously all steps are one net, whose
 * messages wait for one another. Work is counted in ns on an arc of
 * capacity 1, so capacities are those of the digraph.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/simulation/simulate.h"
#include "lib/base/alloc.h"
#include "lib/base/order.h"

#define MAX_TIME_NS 9.2e18	/* below 2^63, after rounding too */

/* ---- what carries ---- */

int sim_number(const struct sim_run *r, int carrier)
{
	int i = carrier - r->n_orbits;

	return i < 0 ? coll_orbit_first(r->loads.action, carrier) : r->limits ? r->limits[i] : i;
}

int64_t sim_capacity(const struct sim_run *r, int carrier)
{
	int number = sim_number(r, carrier);

	return carrier < r->n_orbits ? topo_arc(r->loads.physical, number)->cap
				     : topo_limit(r->loads.physical, number)->cap;
}

int64_t sim_images(const struct sim_run *r, int carrier)
{
	return r->loads.action && carrier < r->n_orbits
		       ? topo_action_size(r->loads.action, carrier)
		       : 1;
}

/* Adds a use of a carrier to the last path; more than one of them add up. */
static int add_use(struct sim_run *r, int carrier, double capacity, double weight, struct err *err)
{
	struct maxmin_net *net = &r->net;
	int32_t path = (int32_t)net->paths.n - 1;

	if (r->resource[carrier] < 0) {
		r->resource[carrier] = (int32_t)net->capacity.n;
		vec_push(&net->capacity, capacity);
		vec_push(&r->carriers, carrier);
	}
	for (size_t u = (size_t)net->paths.v[path].first_use; u < net->uses.n; u++) {
		if (net->uses.v[u].resource == r->resource[carrier]) {
			net->uses.v[u].weight += weight;
			return 0;
		}
	}
	if (net->uses.n == INT32_MAX) {
		return err_set(err, WEFT_ELIMIT, "too many messages for a simulation");
	}
	vec_push(&net->uses, (struct maxmin_use){ path, r->resource[carrier], weight });
	return 0;
}

/* A path crosses an arc with this part of its data: each arc of its orbit, and each limit with so
 * many of them, carries as much of the path's images. */
static int cross(struct sim_run *r, int arc, double part, struct err *err)
{
	int orbit = coll_orbit(r->loads.action, arc);
	double share = part * coll_orbit_share(r->s, r->loads.action, orbit);
	int rc = add_use(r, orbit, (double)r->loads.cap[orbit], share, err);

	for (int i = r->first_limit[orbit]; i < r->first_limit[orbit + 1] && !rc; i++) {
		const struct sim_limit_arcs *l = &r->in_limits.v[i];
		int carrier = r->n_orbits + l->limit;

		rc = add_use(r, carrier, (double)sim_capacity(r, carrier), share * l->arcs, err);
	}
	return rc;
}

/* ---- messages ---- */

/* Adds a part of the last message, over these arcs; saved: of a sender's chunks on each, by
 * switches, or NULL. */
static int add_path(struct sim_run *r, double work, const int32_t *hops, int n,
		    const int64_t *saved, int64_t chunks, struct err *err)
{
	const struct coll_cost *c = &r->o->cost;
	int first = coll_orbit(r->loads.action, hops[0]), rc = 0;
	struct maxmin_path path = {
		.message = (int32_t)r->net.messages.n - 1,
		.first_use = (int32_t)r->net.uses.n,
		.work = work,
		.latency_ns = (double)c->message_ns * r->loads.messages[first] +
			      (double)c->hop_ns * n,
	};

	for (int i = 0; i < n; i++) {
		path.latency_ns += (double)topo_arc(r->loads.physical, hops[i])->latency_ns;
	}
	if (r->net.paths.n == INT32_MAX) {
		return err_set(err, WEFT_ELIMIT, "too many messages for a simulation");
	}
	vec_push(&r->net.paths, path);
	for (int i = 0; i < n && !rc; i++) {
		double part = saved ? 1 - (double)saved[i] / (double)chunks : 1;

		rc = part > 0 ? cross(r, hops[i], part, err) : 0;
	}
	if ((size_t)path.first_use == r->net.uses.n) {
		r->net.paths.v[r->net.paths.n - 1].work = 0;
	}
	return rc;
}

/* What a sender's arc carries in the step at hand, in parts over its routes. */
static int add_paths(struct sim_run *r, int sender, struct err *err)
{
	const struct coll_sched *s = r->s;
	int32_t arc = coll_orbit_first(r->loads.senders, sender);
	double work = (double)r->loads.chunks[sender] * r->chunk_ns;
	int64_t first, end, total = 0;
	int rc = 0;

	if (!s->embedding) {
		return add_path(r, work, &arc, 1, NULL, 0, err);
	}
	first = end = r->loads.path_of[sender];
	while (end < coll_n_arc_routes(s) && coll_arc_route(s, end).arc == arc) {
		total += coll_arc_route(s, end++).weight;
	}
	for (int64_t k = first; k < end && !rc; k++) {
		struct coll_arc_route route = coll_arc_route(s, k);
		const int64_t *saved = r->loads.saved;

		saved = saved ? saved + (route.hops - s->embedding->hops.v) : NULL;
		rc = add_path(r, work * route.weight / (double)total, route.hops, route.n, saved,
			      r->loads.chunks[sender], err);
	}
	return rc;
}

static int add_message(struct sim_run *r, int sender, struct err *err)
{
	const struct coll_cost *c = &r->o->cost;
	struct maxmin_message m = {
		.first_path = (int32_t)r->net.paths.n,
		.delay_ns = (double)c->alpha_ns +
			    (r->retunes[r->loads.step] ? (double)c->retune_ns : 0),
	};

	r->message_at[sender] = (int32_t)r->net.messages.n;
	vec_push(&r->net.messages, m);
	vec_push(&r->messages, (struct sim_message){ r->loads.step, sender, false });
	return add_paths(r, sender, err);
}

/* Messages from `from` on are what the first of their orbits is. */
static void spread_operations(struct sim_run *r, size_t from)
{
	for (size_t m = from; r->loads.place && m < r->messages.n; m++) {
		int32_t place = r->loads.place[r->messages.v[m].sender];

		r->messages.v[m].reduces = r->messages.v[m - (size_t)place].reduces;
	}
}

/* Appends the messages of the next step; *any: there was one. */
static int add_step(struct sim_run *r, bool *any, struct err *err)
{
	size_t first = r->loads.xfer, message = r->messages.n;
	int rc = coll_loads_next(&r->loads, err);

	*any = r->loads.n_used > 0;
	for (int i = 0; i < r->loads.n_used && !rc; i++) {
		rc = add_message(r, r->loads.used[i], err);
	}
	for (size_t i = first; i < r->loads.xfer && !rc; i++) {
		const struct coll_xfer *x = &r->s->xfers.v[i];
		int32_t m = r->message_at[coll_sender(r->s, x->arc)];

		r->messages.v[m].reduces |= x->op != COLL_OP_COPY;
		if (r->message_of) {
			r->message_of[i] = m;
		}
	}
	spread_operations(r, message);
	return rc;
}

/* ---- results ---- */

/* Work that was done keeps its carriers busy, each by its own capacity. */
static void add_busy(struct sim_run *r)
{
	const struct maxmin_net *net = &r->net;

	for (size_t u = 0; u < net->uses.n; u++) {
		const struct maxmin_use *use = &net->uses.v[u];

		r->busy_ns[r->carriers.v[use->resource]] +=
			use->weight * net->paths.v[use->flow].work /
			net->capacity.v[use->resource];
	}
}

/* Steps begin with their first message and end with their last. */
static void note_messages(struct sim_run *r)
{
	const struct topo_action *action = r->loads.senders;

	for (size_t m = 0; m < r->net.messages.n; m++) {
		struct coll_sim_step *step = &r->out->steps[r->messages.v[m].step];
		const struct maxmin_message *msg = &r->net.messages.v[m];

		if (step->messages == 0 || msg->begin_ns < step->begin_ns) {
			step->begin_ns = msg->begin_ns;
		}
		step->end_ns = fmax(step->end_ns, msg->end_ns);
		step->messages += action ? topo_action_size(action, r->messages.v[m].sender) : 1;
	}
}

static void reset(struct sim_run *r)
{
	for (size_t i = 0; i < r->carriers.n; i++) {
		r->resource[r->carriers.v[i]] = -1;
	}
	r->carriers.n = r->messages.n = 0;
	maxmin_net_reset(&r->net);
}

/* The step at hand, and those without transfers before it, which take alpha
 * too. */
static void run_step(struct sim_run *r)
{
	double end;

	for (; r->out->n_steps < r->loads.step; r->out->n_steps++) {
		r->out->steps[r->out->n_steps].begin_ns = r->out->time_ns;
		r->out->time_ns += (double)r->o->cost.alpha_ns;
		r->out->steps[r->out->n_steps].end_ns = r->out->time_ns;
	}
	end = maxmin_run(&r->net, r->out->time_ns, r->ran, r->ran_arg);
	note_messages(r);
	add_busy(r);
	r->out->time_ns = end;
	r->out->n_steps++;
}

static int run_lockstep(struct sim_run *r, struct err *err)
{
	bool any;
	int rc;

	do {
		reset(r);
		rc = add_step(r, &any, err);
		if (!rc && any) {
			run_step(r);
		}
	} while (!rc && any);
	return rc;
}

/* The net stays for a second run. */
static int run_asynchronous(struct sim_run *r, struct err *err)
{
	bool any = r->net.messages.n == 0;
	int rc = 0;

	while (!rc && any) {
		rc = add_step(r, &any, err);
	}
	if (!rc && r->net.needs.n == 0) {
		rc = sim_find_needs(r, err);
	}
	if (!rc) {
		r->out->time_ns = maxmin_run(&r->net, 0, r->ran, r->ran_arg);
	}
	note_messages(r);
	add_busy(r);
	r->out->n_steps = r->s->steps;
	return rc;
}

int sim_run_all(struct sim_run *r, struct err *err)
{
	int rc = coll_loads_init(&r->loads, r->s, err);

	memset(r->out->steps, 0, (size_t)r->s->steps * sizeof(*r->out->steps));
	memset(r->busy_ns, 0, (size_t)r->n_carriers * sizeof(*r->busy_ns));
	r->out->time_ns = 0;
	r->out->n_steps = 0;
	if (!rc) {
		rc = r->o->asynchronous ? run_asynchronous(r, err) : run_lockstep(r, err);
	}
	coll_loads_fini(&r->loads);
	if (!rc && r->out->time_ns > MAX_TIME_NS) {
		rc = err_set(err, WEFT_ELIMIT, "the time does not fit 64 bits of nanoseconds");
	}
	return rc;
}

/* By share, then arcs before limits, then by number. */
static int compare_loads(const void *pa, const void *pb)
{
	const struct coll_sim_load *a = pa, *b = pb;

	if (a->share != b->share) {
		return a->share < b->share ? 1 : -1;
	}
	return a->is_limit != b->is_limit ? a->is_limit - b->is_limit : a->number - b->number;
}

static void list_loads(struct sim_run *r)
{
	double capacity = 0, busy = 0, time = r->out->time_ns;

	r->out->loads = x_new((size_t)r->n_carriers + 1, sizeof(*r->out->loads));
	for (int i = 0; i < r->n_carriers; i++) {
		double all = (double)sim_capacity(r, i) * (double)sim_images(r, i);
		int number = sim_number(r, i);
		const struct topo_arc *a = topo_arc(r->loads.physical, number);

		if (i < r->n_orbits && a->src != a->dst) {
			capacity += all;
			busy += all * r->busy_ns[i];
		}
		if (r->busy_ns[i] > 0) {
			r->out->loads[r->out->n_loads++] = (struct coll_sim_load){
				number, i >= r->n_orbits, sim_images(r, i), r->busy_ns[i] / time };
		}
	}
	r->out->utilisation = busy > 0 ? busy / capacity / time : 0;
	qsort(r->out->loads, (size_t)r->out->n_loads, sizeof(*r->out->loads), compare_loads);
}

/* ---- all of it ---- */

static int check(const struct coll_sched *s, const struct coll_sim_options *o, struct err *err)
{
	const struct coll_cost *c = &o->cost;

	if (c->alpha_ns < 0 || c->size_bytes < 0 || c->link_bps < 1 || c->hop_ns < 0 ||
	    c->message_ns < 0 || c->retune_ns < 0) {
		return err_set(err, WEFT_EINVAL,
			       "a simulation needs times and a size of at least 0 "
			       "and a link rate of at least 1 bps");
	}
	if (coll_part(s) >= 0) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "simulation of the part of a rank: not supported, only of whole "
			       "schedules");
	}
	if (o->asynchronous && s->lights.n) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "asynchronous simulation of a schedule with light: not supported, "
			       "as light changes from step to step");
	}
	return o->asynchronous ? coll_refuse_switches(s, "asynchronous simulation", err) : 0;
}

ORDER_BY(compare_in_limits, struct sim_limit_arcs, orbit, limit)

/* How many arcs of each orbit are in each limit. */
static void index_limits(struct sim_run *r)
{
	size_t kept = 0;

	for (int l = 0; l < r->n_carriers - r->n_orbits; l++) {
		const struct topo_limit *limit =
			topo_limit(r->loads.physical, sim_number(r, r->n_orbits + l));

		for (int i = 0; i < limit->n; i++) {
			struct sim_limit_arcs in = { coll_orbit(r->loads.action, limit->arcs[i]),
						     l, 1 };

			vec_push(&r->in_limits, in);
		}
	}
	if (r->in_limits.n) {
		qsort(r->in_limits.v, r->in_limits.n, sizeof(*r->in_limits.v), compare_in_limits);
	}
	for (size_t i = 0; i < r->in_limits.n; i++) {
		struct sim_limit_arcs *v = r->in_limits.v;

		if (kept > 0 && compare_in_limits(&v[kept - 1], &v[i]) == 0) {
			v[kept - 1].arcs++;
			continue;
		}
		v[kept++] = v[i];
		r->first_limit[v[i].orbit + 1]++;
	}
	for (int i = 0; i < r->n_orbits; i++) {
		r->first_limit[i + 1] += r->first_limit[i];
	}
}

static void set_up(struct sim_run *r)
{
	const struct coll_sched *s = r->s;
	int n_limits = topo_n_limits(coll_physical(s));
	struct coll_light_change light;

	r->loads.physical = coll_physical(s);
	r->loads.action = s->embedding ? s->embedding->action : s->action;
	r->n_orbits = r->loads.action ? topo_action_orbits(r->loads.action)
				      : topo_m(r->loads.physical);
	r->limits = r->loads.action ? topo_action_limits(r->loads.action, &n_limits) : NULL;
	r->n_carriers = r->n_orbits + n_limits;
	r->chunk_ns = (double)r->o->cost.size_bytes * 8e9 / (double)r->o->cost.link_bps /
		      (double)s->ranks / (double)s->chunks;
	arrays_add(&r->arrays, r->first_limit, r->n_orbits + 1);
	arrays_add(&r->arrays, r->resource, r->n_carriers);
	arrays_add(&r->arrays, r->busy_ns, r->n_carriers);
	arrays_add(&r->arrays, r->retunes, s->steps);
	arrays_add(&r->arrays, r->message_at, topo_m(s->topo));
	if (r->o->asynchronous) {
		arrays_add(&r->arrays, r->message_of, s->xfers.n);
	}
	r->out->steps = x_new((size_t)s->steps + 1, sizeof(*r->out->steps));
	memset(r->resource, -1, (size_t)r->n_carriers * sizeof(*r->resource));
	coll_light_changes_at(s, r->retunes, &light);
	index_limits(r);
}

int coll_simulate(const struct coll_sched *s, const struct coll_sim_options *o,
		  struct coll_sim *out, struct buf *svg, struct err *err)
{
	struct sim_run r = { .s = s, .o = o, .out = out };
	int rc = check(s, o, err);

	if (!rc) {
		set_up(&r);
		rc = sim_run_all(&r, err);
	}
	if (!rc) {
		list_loads(&r);
		rc = svg ? sim_draw(&r, svg, err) : 0;
	}
	vec_fini(&r.messages);
	vec_fini(&r.carriers);
	vec_fini(&r.in_limits);
	maxmin_net_fini(&r.net);
	arrays_fini(&r.arrays);
	return rc;
}

void coll_sim_fini(struct coll_sim *r)
{
	free(r->steps);
	free(r->loads);
	memset(r, 0, sizeof(*r));
}
