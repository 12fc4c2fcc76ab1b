/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving flow from detours to cheapest paths, one detour at a time.
 *
 * A detour is an arc (u, v) that carries flow of the source and whose head is
 * reached more cheaply through the tree. Walking back from u along the
 * largest flow until the tree path of v is met gives a segment that flow can
 * leave for the tree's segment between the same two nodes. The penalised
 * objective is a convex quadratic along that exchange, so the amount is one
 * Newton step, capped by the flow that is there.
 */
#include <math.h>
#include <string.h>

#include "collective/flow/private.h"

/* An arc that carries less than this share of a unit demand is empty. */
#define DUST 1e-13
/* Newton steps on one detour before the next is looked at. */
#define TRIES 3

void flow_price(struct mcf *p)
{
	int n = p->orbits.n_classes;
	double u = HUGE_VAL;

	/* sum of cap * price falls with the level and is convex in it: Newton
	 * from the left never passes the root. */
	for (int k = 0; k < n; k++) {
		double at = p->load[k] / p->class_cap[k] +
			    (p->mult[k] - 1 / p->class_cap[k]) / p->rho;

		/* There this class alone reaches the sum of 1. */
		u = k == 0 || at > u ? at : u;
	}
	for (int i = 0; i < 100; i++) {
		double sum = -1, slope = 0, step;

		for (int k = 0; k < n; k++) {
			double c = p->class_cap[k];
			double q = p->mult[k] + p->rho * (p->load[k] / c - u);

			if (q > 0) {
				sum += c * q;
				slope += c * p->rho;
			}
		}
		step = slope > 0 ? sum / slope : 0;
		if (!(step > fabs(u) * 1e-15)) {
			break;
		}
		u += step;
	}
	p->level = u;
	for (int k = 0; k < n; k++) {
		double q = p->mult[k] +
			   p->rho * (p->load[k] / p->class_cap[k] - u);

		p->price[k] = q > 0 ? q : 0;
	}
}

void flow_measure(struct mcf *p)
{
	const int32_t *class = p->orbits.arc_class;

	memset(p->load, 0, (size_t)p->orbits.n_classes * sizeof(*p->load));
	for (int s = 0; s < p->n_sources; s++) {
		const double *flow = mcf_flow_of(p, s);

		for (int a = 0; a < p->net.m; a++) {
			p->load[class[a]] += p->weight[s] * flow[a];
		}
	}
}

static void add_load(struct mcf *p, int k, double by)
{
	double q;

	p->load[k] += by;
	q = p->mult[k] + p->rho * (p->load[k] / p->class_cap[k] - p->level);
	p->price[k] = q > 0 ? q : 0;
}

/* The arc with the largest flow into u, or -1 when all are empty. */
static int fullest_in(const struct mcf *p, const double *flow, int u)
{
	const struct flow_net *net = &p->net;
	double best = 0;
	int arc = -1;

	for (int i = net->in_first[u]; i < net->in_first[u + 1]; i++) {
		int a = net->in_arcs[i];

		if (flow[a] > best) {
			best = flow[a];
			arc = a;
		}
	}
	return arc;
}

/* Takes `amount` off an arc; what rounding leaves is nothing. */
static void take(struct mcf *p, double *flow, double weight, int a, double amount)
{
	flow[a] -= amount;
	if (flow[a] < DUST) {
		amount += flow[a];
		flow[a] = 0;
	}
	add_load(p, p->orbits.arc_class[a], -weight * amount);
}

/* The walk p->walk[from..len) is a cycle: removes what goes around. */
static void cancel_cycle(struct mcf *p, double *flow, double weight, int from, int len)
{
	double least = HUGE_VAL;

	for (int i = from; i < len; i++) {
		least = fmin(least, flow[p->walk[i]]);
	}
	for (int i = from; i < len; i++) {
		take(p, flow, weight, p->walk[i], least);
	}
}

/* Stamps the nodes of v's tree path; returns the stamp. */
static uint32_t stamp_path(struct mcf *p, const int32_t *parent, int v)
{
	uint32_t stamp = ++p->stamp;

	p->on_tree[v] = stamp;
	while (parent[v] >= 0) {
		v = p->net.src[parent[v]];
		p->on_tree[v] = stamp;
	}
	return stamp;
}

/*
 * Walks back along the fullest arcs from u until a node with this stamp is
 * met, putting the arcs at p->walk[len...]. Returns the number of arcs there
 * then, 0 when there is no such walk: the flow was around a cycle, which is
 * cancelled, or nothing but rounding.
 */
static int walk_back(struct mcf *p, double *flow, double weight, int u, int len, uint32_t stamp)
{
	while (p->on_tree[u] != stamp) {
		int a;

		if (p->on_walk[u] == stamp) {
			cancel_cycle(p, flow, weight, p->walk_pos[u], len);
			return 0;
		}
		p->on_walk[u] = stamp;
		p->walk_pos[u] = len;
		a = fullest_in(p, flow, u);
		if (a < 0) {
			return 0;
		}
		p->walk[len++] = a;
		u = p->net.src[a];
	}
	return len;
}

/* Counts arcs of a class gained (+1) and lost (-1). */
static void count(struct mcf *p, int *n_touched, int a, double by)
{
	int k = p->orbits.arc_class[a];

	/* A class may be listed twice; exchange_step reads it as 0 then. */
	if (p->coef[k] == 0) {
		p->touched[(*n_touched)++] = k;
	}
	p->coef[k] += by;
}

/* Newton step of the exchange; 0 or less when it does not pay. Clears the
 * coefficients. */
static double exchange_step(struct mcf *p, double weight, int n_touched)
{
	double gain = 0, curve = 0;

	for (int i = 0; i < n_touched; i++) {
		int k = p->touched[i];
		double c = p->coef[k];

		gain -= c * p->price[k];
		curve += c * c / p->class_cap[k];
		p->coef[k] = 0;
	}
	return curve > 0 ? gain / (p->rho * weight * curve) : 0;
}

/* One exchange; true when the detour is worth another look. */
static bool exchange(struct mcf *p, int s, const int32_t *parent, int arc)
{
	const struct flow_net *net = &p->net;
	double *flow = mcf_flow_of(p, s), weight = p->weight[s];
	double amount = HUGE_VAL, step;
	uint32_t stamp = stamp_path(p, parent, net->dst[arc]);
	int touched = 0, junction, len;

	p->walk[0] = arc;
	len = walk_back(p, flow, weight, net->src[arc], 1, stamp);
	if (len == 0) {
		return true;
	}
	junction = net->src[p->walk[len - 1]];
	for (int i = 0; i < len; i++) {
		amount = fmin(amount, flow[p->walk[i]]);
		count(p, &touched, p->walk[i], -1);
	}
	for (int v = net->dst[arc]; v != junction; v = net->src[parent[v]]) {
		count(p, &touched, parent[v], 1);
	}
	step = exchange_step(p, weight, touched);
	if (!(step > DUST)) {
		return false;
	}
	amount = fmin(amount, step);
	for (int i = 0; i < len; i++) {
		take(p, flow, weight, p->walk[i], amount);
	}
	for (int v = net->dst[arc]; v != junction; v = net->src[parent[v]]) {
		flow[parent[v]] += amount;
		add_load(p, p->orbits.arc_class[parent[v]], weight * amount);
	}
	return amount < step;
}

static void expand_prices(struct mcf *p)
{
	const int32_t *class = p->orbits.arc_class;

	for (int a = 0; a < p->net.m; a++) {
		p->arc_price[a] = p->price[class[a]];
	}
}

void flow_improve(struct mcf *p, int s)
{
	const struct flow_net *net = &p->net;
	const int32_t *parent = mcf_parent_of(p, s);
	const double *flow = mcf_flow_of(p, s), *dist = p->dist;

	expand_prices(p);
	flow_tree_update(p, s);
	for (int u = 0; u < net->n; u++) {
		for (int a = net->out_first[u]; a < net->out_first[u + 1]; a++) {
			int v = net->dst[a], tries = TRIES;

			if (flow[a] <= 0 || parent[v] == a ||
			    !(dist[u] + p->arc_price[a] > dist[v])) {
				continue;
			}
			while (tries-- > 0 && flow[a] > 0 && exchange(p, s, parent, a)) {
			}
		}
	}
}

void flow_send(struct mcf *p, int s, int v, double amount)
{
	const int32_t *parent = mcf_parent_of(p, s);
	double *flow = mcf_flow_of(p, s);

	for (; parent[v] >= 0; v = p->net.src[parent[v]]) {
		flow[parent[v]] += amount;
	}
}

void flow_withdraw(struct mcf *p, int s, int u, double amount)
{
	const int32_t *parent = mcf_parent_of(p, s);
	double *flow = mcf_flow_of(p, s);

	while (amount > DUST && u != p->source[s] && fullest_in(p, flow, u) >= 0) {
		uint32_t stamp = stamp_path(p, parent, p->source[s]);
		int len = walk_back(p, flow, p->weight[s], u, 0, stamp);
		double part = amount;

		for (int i = 0; i < len; i++) {
			part = fmin(part, flow[p->walk[i]]);
		}
		for (int i = 0; i < len; i++) {
			take(p, flow, p->weight[s], p->walk[i], part);
		}
		amount -= len > 0 ? part : 0;
	}
}
