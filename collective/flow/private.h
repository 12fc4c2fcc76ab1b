/* What the files of the flow solver share. */
#ifndef WEFT_COLLECTIVE_FLOW_PRIVATE_H
#define WEFT_COLLECTIVE_FLOW_PRIVATE_H

#include <stddef.h>

#include "collective/flow/mcf.h"
#include "lib/base/vec.h"

/* A digraph without loops or parallel arcs, arcs in CSR order. */
struct flow_net {
	int n, m;
	int32_t *src, *dst;	/* m */
	int64_t *units;		/* m: capacity */
	int32_t *out_first;	/* n + 1 */
	int32_t *in_first;	/* n + 1 */
	int32_t *in_arcs;	/* m, by target */
	bool *terminal;		/* n */
	int terminals;
	int topo_arcs;
	int32_t *arc_of;	/* arc of the topology -> arc here, or -1 */
};

int flow_net_from(const struct topo *t, const bool *dropped,
		  struct flow_net *out, struct err *err);
void flow_net_fini(struct flow_net *net);
int flow_net_arc(const struct flow_net *net, int u, int v);

/* A copy of a digraph of terminals, for a schedule to keep. */
int mcf_copy_topo(const struct topo *t, struct topo **out, struct err *err);

/* Orbits under a group given by generators (permutations of the nodes). */
struct flow_orbits {
	VEC(int32_t *) gens;
	int32_t *arc_class;	/* m */
	int n_classes;
	int32_t *orbit_of;	/* n: smallest node of the orbit */
};

/* symmetry false: the trivial group. */
int flow_orbits_find(const struct flow_net *net, bool symmetry,
		     struct flow_orbits *out, struct err *err);
void flow_orbits_fini(struct flow_orbits *o);
/* True when every generator is an automorphism and the classes and orbits
 * are closed under it; also false without memory. O(generators m log d). */
bool flow_orbits_check(const struct flow_net *net,
		       const struct flow_orbits *o);

struct mcf {
	struct flow_net net;
	struct flow_orbits orbits;
	int n_sources;
	int32_t *source;	/* representatives */
	double *weight;		/* size of the orbit */
	double *class_cap;	/* capacity of all arcs of a class */

	double *flow;		/* n_sources x m, owned */
	int32_t *parent;	/* n_sources x n: tree arc into a node */
	int32_t *order;		/* n_sources x n: a node after its parent */

	double *load;		/* a class: of all its arcs and all sources */
	double *mult;		/* multipliers of the classes */
	double *price;		/* the penalised prices */
	double level;		/* the U that the prices are based on */
	double rho;
	double last_bound;	/* that the present prices prove */
	double best_bound;	/* with best_price */
	double *best_price;
	bool started;
	int passes;
	int warm_passes;	/* the first ones after a failure */
	double *mean;		/* n_sources x m, or NULL: no means */
	double *mean_load;	/* a class: of mean */
	bool averages;		/* mean holds something */

	/* scratch of one source */
	double *dist;		/* n */
	double *arc_price;	/* m: present price, expanded */
	int32_t *queue;		/* n + 1 */
	bool *queued;		/* n */
	int32_t *walk;		/* arcs of the present walk, m */
	uint32_t *on_tree, *on_walk;	/* n: stamps */
	int32_t *walk_pos;	/* n */
	uint32_t stamp;
	double *coef;		/* a class: arcs gained less arcs lost */
	int32_t *touched;	/* classes with a coef */
};

static inline double *mcf_flow_of(const struct mcf *p, int s)
{
	return p->flow + (size_t)s * p->net.m;
}

static inline int32_t *mcf_parent_of(const struct mcf *p, int s)
{
	return p->parent + (size_t)s * p->net.n;
}

static inline int32_t *mcf_order_of(const struct mcf *p, int s)
{
	return p->order + (size_t)s * p->net.n;
}

/* Hop tree of source number s. Nodes that it does not reach have parent -2
 * (the source itself -1) and are last in the order. Returns the number of
 * nodes reached. */
int flow_tree_init(struct mcf *p, int s);
/* Makes the tree one of cheapest paths for arc_price; dist is filled. */
void flow_tree_update(struct mcf *p, int s);
/* Sends all demands of source s along its tree, replacing its flow. */
void flow_tree_route(struct mcf *p, int s);

/* Loads of the classes from the flows. */
void flow_measure(struct mcf *p);
/* max over classes of load over capacity. */
double flow_congestion(const struct mcf *p);
/* One visit to source number s. */
void flow_improve(struct mcf *p, int s);
/* Sends an amount more from source s to v along its tree. */
void flow_send(struct mcf *p, int s, int v, double amount);
/* Takes back an amount that reaches u from source s. */
void flow_withdraw(struct mcf *p, int s, int u, double amount);
/* Lower bound that prices prove; the best is kept. */
void mcf_prove(struct mcf *p, const double *price);
/* Best congestion, present or told before, against the best bound. */
void mcf_set_gap(struct mcf *p, struct mcf_result *res);
/* Level and prices from loads and multipliers. */
void flow_price(struct mcf *p);

#endif
