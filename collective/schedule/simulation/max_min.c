/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Max-min fair flows over time, by events: a flow begins when its latency is
 * over, and ends when its work is done at the rates that it got.
 *
 * Rates change only where something begins or ends, and there only for flows
 * that are connected with it over shared resources: those are found by a
 * search from the resources concerned, and solved by progressive filling. Where
 * flows only end, those that were slower are left as they are. Events less
 * than a relative 1e-12 apart are one: flows that are equal by symmetry end together, and
 * rounding makes no events of its own. Ties are broken by number, so the same
 * net gives the same times.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/simulation/max_min.h"
#include "lib/base/heap.h"

#define SAME 1e-12		/* relative: times and levels this near are equal */
#define SLOWER 1e-9		/* relative: by so much at least */
#define NONE (-1)

/* A flow begins to share (stamp 0) or ends, unless its rate changed since. */
struct maxmin_event {
	double time;
	int32_t path;
	uint32_t stamp;
};

static inline bool is_earlier(struct maxmin_event a, struct maxmin_event b)
{
	return a.time != b.time ? a.time < b.time : a.path < b.path;
}

HEAP(maxmin_events, struct maxmin_event);
HEAP_FUNCTIONS(maxmin_events, struct maxmin_event, is_earlier)

/* The rate at which a resource is full, of its flows that have no rate yet. */
struct fill_level {
	double level;
	int32_t resource;
};

static inline bool is_lower(struct fill_level a, struct fill_level b)
{
	return a.level != b.level ? a.level < b.level : a.resource < b.resource;
}

HEAP(fill_levels, struct fill_level);
HEAP_FUNCTIONS(fill_levels, struct fill_level, is_lower)

struct maxmin_state {
	double left;		/* work, at `since` */
	double since, rate;
	double solved;		/* rate found by the solve at hand, < 0: none yet */
	uint32_t stamp;		/* of its valid end event; 0: not begun */
	uint32_t seen;		/* solve that it was reached by */
};

struct resource_state {
	int32_t head;		/* its first use by a running flow */
	uint32_t seen;
	int32_t open;		/* uses without a rate in this solve */
	double free, sum;	/* capacity left, and weight of those uses */
};

/* A running flow in the list of its resource. */
struct use_link {
	int32_t next, prev;
};

struct maxmin_runner {
	struct maxmin_net *net;
	struct maxmin_state *flow;
	struct resource_state *res;
	struct use_link *link;		/* a use */
	int32_t *pending;		/* of a message: paths not ended */
	int32_t *missing;		/* of a message: needs not ended */
	int32_t *first_user, *users;	/* messages that need a message */
	int32_t *reached, n_reached;	/* flows of the component at hand */
	int32_t *touched, n_touched;	/* its resources */
	int32_t *dirty, n_dirty;	/* where flows began or ended */
	struct maxmin_events events;
	struct fill_levels levels;
	uint32_t solve;
	double floor;			/* rates below it stay in the next solve */
	double now, end;
	maxmin_ran_fn ran;
	void *arg;
	struct arrays arrays;
};

static int32_t path_end(const struct maxmin_net *net, int32_t message)
{
	return (size_t)message + 1 < net->messages.n ? net->messages.v[message + 1].first_path
						     : (int32_t)net->paths.n;
}

static int32_t need_end(const struct maxmin_net *net, int32_t message)
{
	return (size_t)message + 1 < net->messages.n ? net->messages.v[message + 1].first_need
						     : (int32_t)net->needs.n;
}

static int32_t use_end(const struct maxmin_net *net, int32_t path)
{
	return (size_t)path + 1 < net->paths.n ? net->paths.v[path + 1].first_use
					       : (int32_t)net->uses.n;
}

/* ---- flows in the lists of their resources ---- */

/* What happened on this resource changes the rates around it. */
static void mark(struct maxmin_runner *r, int32_t resource)
{
	if (r->res[resource].open != NONE) {
		r->res[resource].open = NONE;
		r->dirty[r->n_dirty++] = resource;
	}
}

static void join(struct maxmin_runner *r, int32_t path)
{
	for (int32_t u = r->net->paths.v[path].first_use; u < use_end(r->net, path); u++) {
		struct resource_state *res = &r->res[r->net->uses.v[u].resource];

		r->link[u] = (struct use_link){ res->head, NONE };
		if (res->head != NONE) {
			r->link[res->head].prev = u;
		}
		res->head = u;
		mark(r, r->net->uses.v[u].resource);
	}
}

static void leave(struct maxmin_runner *r, int32_t path)
{
	for (int32_t u = r->net->paths.v[path].first_use; u < use_end(r->net, path); u++) {
		struct use_link l = r->link[u];

		if (l.prev != NONE) {
			r->link[l.prev].next = l.next;
		} else {
			r->res[r->net->uses.v[u].resource].head = l.next;
		}
		if (l.next != NONE) {
			r->link[l.next].prev = l.prev;
		}
		mark(r, r->net->uses.v[u].resource);
	}
}

/* ---- rates ---- */

static void reach_resource(struct maxmin_runner *r, int32_t resource)
{
	struct resource_state *res = &r->res[resource];

	if (res->seen != r->solve) {
		res->seen = r->solve;
		res->open = 0;
		res->sum = 0;
		res->free = r->net->capacity.v[resource];
		r->touched[r->n_touched++] = resource;
	}
}

static void reach_flow(struct maxmin_runner *r, int32_t path)
{
	struct maxmin_state *f = &r->flow[path];

	if (f->seen == r->solve) {
		return;
	}
	f->seen = r->solve;
	f->solved = -1;
	r->reached[r->n_reached++] = path;
	for (int32_t u = r->net->paths.v[path].first_use; u < use_end(r->net, path); u++) {
		const struct maxmin_use *use = &r->net->uses.v[u];

		reach_resource(r, use->resource);
		r->res[use->resource].open++;
		r->res[use->resource].sum += use->weight;
	}
}

/* What flows over a resource is to be solved, but for flows that are slower than all
 * that ended: each has a resource that is full at its rate, where all others are as
 * slow, so none of them ended, and nothing changes there. */
static void reach_flows(struct maxmin_runner *r, int32_t resource)
{
	for (int32_t u = r->res[resource].head; u != NONE; u = r->link[u].next) {
		const struct maxmin_use *use = &r->net->uses.v[u];
		double rate = r->flow[use->flow].rate;

		if (rate < r->floor * (1 - SLOWER)) {
			r->res[resource].free -= use->weight * rate;
		} else {
			reach_flow(r, use->flow);
		}
	}
}

/* Everything that is connected with the dirty resources over flows that may
 * change. */
static void reach(struct maxmin_runner *r)
{
	r->solve++;
	r->n_reached = r->n_touched = 0;
	for (int32_t i = 0; i < r->n_dirty; i++) {
		reach_resource(r, r->dirty[i]);
	}
	r->n_dirty = 0;
	for (int32_t i = 0; i < r->n_touched; i++) {
		reach_flows(r, r->touched[i]);
	}
	r->floor = INFINITY;
}

/* A rate for a flow; what it takes is gone for the others. */
static void settle(struct maxmin_runner *r, int32_t path, double rate)
{
	r->flow[path].solved = rate;
	for (int32_t u = r->net->paths.v[path].first_use; u < use_end(r->net, path); u++) {
		const struct maxmin_use *use = &r->net->uses.v[u];
		struct resource_state *res = &r->res[use->resource];

		res->open--;
		res->sum = res->open ? res->sum - use->weight : 0;
		res->free = fmax(res->free - use->weight * rate, 0);
	}
}

/* Progressive filling: the resource that is full first gives its flows their
 * rate. Levels only rise while others are settled, so one that is found too
 * low goes back. */
static void fill(struct maxmin_runner *r)
{
	r->levels.n = 0;
	for (int32_t i = 0; i < r->n_touched; i++) {
		struct resource_state *res = &r->res[r->touched[i]];

		if (res->open) {
			fill_levels_add(&r->levels, (struct fill_level){ res->free / res->sum,
									 r->touched[i] });
		}
	}
	while (r->levels.n) {
		struct fill_level top = fill_levels_pop(&r->levels);
		struct resource_state *res = &r->res[top.resource];
		double level = res->open ? res->free / res->sum : 0;

		if (level > top.level * (1 + SAME)) {
			top.level = level;
			fill_levels_add(&r->levels, top);
			continue;
		}
		for (int32_t u = res->head; u != NONE && res->open; u = r->link[u].next) {
			int32_t path = r->net->uses.v[u].flow;

			if (r->flow[path].solved < 0) {
				settle(r, path, top.level);
			}
		}
	}
}

/* The flow goes on at another rate from now on. */
static void change_rate(struct maxmin_runner *r, int32_t path)
{
	struct maxmin_state *f = &r->flow[path];

	if (r->ran && f->rate > 0 && r->now > f->since) {
		r->ran(r->arg, path, f->since, r->now, f->rate);
	}
	f->left = fmax(f->left - f->rate * (r->now - f->since), 0);
	f->since = r->now;
	f->rate = f->solved;
	f->stamp++;
	maxmin_events_push(&r->events,
			   (struct maxmin_event){ r->now + f->left / f->rate, path, f->stamp });
}

static void solve(struct maxmin_runner *r)
{
	reach(r);
	fill(r);
	for (int32_t i = 0; i < r->n_reached; i++) {
		struct maxmin_state *f = &r->flow[r->reached[i]];

		if (fabs(f->solved - f->rate) > SAME * f->rate) {
			change_rate(r, r->reached[i]);
		}
	}
	for (int32_t i = 0; i < r->n_touched; i++) {
		r->res[r->touched[i]].open = 0;
	}
}

/* ---- events ---- */

/* The message leaves: each of its flows begins after its latency. */
static void release(struct maxmin_runner *r, int32_t message)
{
	struct maxmin_message *m = &r->net->messages.v[message];

	m->begin_ns = m->end_ns = r->now;
	for (int32_t p = m->first_path; p < path_end(r->net, message); p++) {
		double time = r->now + m->delay_ns + r->net->paths.v[p].latency_ns;

		maxmin_events_push(&r->events, (struct maxmin_event){ time, p, 0 });
	}
}

static void end_path(struct maxmin_runner *r, int32_t path)
{
	int32_t message = r->net->paths.v[path].message;

	r->end = r->now;
	if (--r->pending[message] > 0) {
		return;
	}
	r->net->messages.v[message].end_ns = r->now;
	for (int32_t i = r->first_user[message]; i < r->first_user[message + 1]; i++) {
		if (--r->missing[r->users[i]] == 0) {
			release(r, r->users[i]);
		}
	}
}

static void take(struct maxmin_runner *r, struct maxmin_event e)
{
	struct maxmin_state *f = &r->flow[e.path];

	if (e.stamp != f->stamp) {
		return;
	}
	if (e.stamp == 0 && f->left > 0) {
		f->stamp = 1;
		f->since = r->now;
		r->floor = 0;
		join(r, e.path);
		return;
	}
	if (e.stamp > 0) {
		if (r->ran && r->now > f->since) {
			r->ran(r->arg, e.path, f->since, r->now, f->rate);
		}
		r->floor = fmin(r->floor, f->rate);
		leave(r, e.path);
	}
	f->stamp = UINT32_MAX;
	end_path(r, e.path);
}

static void run_all(struct maxmin_runner *r)
{
	for (int32_t m = 0; m < (int32_t)r->net->messages.n; m++) {
		if (!r->missing[m]) {
			release(r, m);
		}
	}
	while (r->events.n) {
		double now = r->events.v[0].time, until = now + SAME * fabs(now);

		r->now = now;
		while (r->events.n && r->events.v[0].time <= until) {
			take(r, maxmin_events_pop(&r->events));
		}
		if (r->n_dirty) {
			solve(r);
		}
	}
}

/* ---- set-up ---- */

/* For every message those that need it, by counting sort. */
static void find_users(struct maxmin_runner *r)
{
	const struct maxmin_net *net = r->net;
	int32_t n = (int32_t)net->messages.n;

	for (size_t i = 0; i < net->needs.n; i++) {
		r->first_user[net->needs.v[i] + 1]++;
	}
	for (int32_t m = 0; m < n; m++) {
		r->first_user[m + 1] += r->first_user[m];
	}
	for (int32_t m = n - 1; m >= 0; m--) {
		r->missing[m] = need_end(net, m) - net->messages.v[m].first_need;
		for (int32_t i = net->messages.v[m].first_need; i < need_end(net, m); i++) {
			int32_t need = net->needs.v[i];

			/* From the back; the loop below restores the beginnings. */
			r->users[--r->first_user[need + 1]] = m;
		}
	}
	memmove(r->first_user, r->first_user + 1, (size_t)n * sizeof(*r->first_user));
	r->first_user[n] = (int32_t)net->needs.n;
}

static void set_up(struct maxmin_runner *r)
{
	const struct maxmin_net *net = r->net;
	size_t n = net->messages.n, paths = net->paths.n, resources = net->capacity.n;

	arrays_add(&r->arrays, r->flow, paths);
	arrays_add(&r->arrays, r->reached, paths);
	arrays_add(&r->arrays, r->res, resources);
	arrays_add(&r->arrays, r->touched, resources);
	arrays_add(&r->arrays, r->dirty, resources);
	arrays_add(&r->arrays, r->link, net->uses.n);
	arrays_add(&r->arrays, r->pending, n);
	arrays_add(&r->arrays, r->missing, n);
	arrays_add(&r->arrays, r->first_user, n + 1);
	arrays_add(&r->arrays, r->users, net->needs.n);
	vec_reserve(&r->levels, resources);
	vec_reserve(&r->events, paths);
	for (size_t p = 0; p < paths; p++) {
		r->flow[p].left = net->paths.v[p].work;
		r->pending[net->paths.v[p].message]++;
	}
	for (size_t i = 0; i < resources; i++) {
		r->res[i].head = NONE;
	}
	find_users(r);
}

double maxmin_run(struct maxmin_net *net, double from_ns, maxmin_ran_fn ran, void *arg)
{
	struct maxmin_runner r = { .net = net, .now = from_ns, .end = from_ns, .floor = INFINITY,
				   .ran = ran, .arg = arg };

	set_up(&r);
	run_all(&r);
	vec_fini(&r.events);
	vec_fini(&r.levels);
	arrays_fini(&r.arrays);
	return r.end;
}

void maxmin_net_reset(struct maxmin_net *net)
{
	net->capacity.n = net->messages.n = net->paths.n = net->uses.n = net->needs.n = 0;
}

void maxmin_net_fini(struct maxmin_net *net)
{
	vec_fini(&net->capacity);
	vec_fini(&net->messages);
	vec_fini(&net->paths);
	vec_fini(&net->uses);
	vec_fini(&net->needs);
}
