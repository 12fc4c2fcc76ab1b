/*
 * Routes without deadlock: every route is given to a layer (virtual channel)
 * such that in no layer the channels wait for each other in a circle
 * (all-to-all-mcf, appendix D.1). A route that holds arc a while it asks for
 * arc b is a dependency a -> b; a layer is free of deadlock when its
 * dependencies have no cycle.
 */
#ifndef WEFT_COLLECTIVE_FLOW_VIRTUAL_LANES_H
#define WEFT_COLLECTIVE_FLOW_VIRTUAL_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

/* Route i: arcs[first[i]] .. arcs[first[i + 1] - 1], numbers below n_arcs. */
struct layer_routes {
	int n_arcs;
	int64_t n;
	const int64_t *first;	/* n + 1 */
	const int32_t *arcs;
};

/*
 * Assigns each route, in order, to the first layer that it closes no cycle
 * in; a new layer is opened when there is none. layer[n] is filled. rank, of
 * *n_layers x n_arcs (free()), is the proof: in each layer every dependency
 * leads from a lower to a higher rank. WEFT_EINFEASIBLE when max_layers (0:
 * no limit) do not suffice, WEFT_EINVAL for a route that uses an arc twice,
 * which no layer can take, or an arc out of range. Time: an insertion costs
 * what the order of the layer changes by (Pearce and Kelly), mostly little.
 */
int layers_assign(const struct layer_routes *routes, int max_layers,
		  int32_t *layer, int *n_layers, int32_t **rank,
		  struct err *err);

/* Checks the proof: every dependency of every route rises in its layer's
 * rank. O(arcs of all routes). */
bool layers_proven(const struct layer_routes *routes, const int32_t *layer,
		   int n_layers, const int32_t *rank);

/* The same proof for layers that are given: rank, of n_layers x n_arcs
 * (free()). WEFT_EVERIFY names a route that closes a cycle. As long as
 * layers_assign. */
int layers_prove(const struct layer_routes *routes, const int32_t *layer,
		 int n_layers, int32_t **rank, struct err *err);

/*
 * Layers that routes come to and go from. Each keeps an order of its arcs
 * that all its dependencies follow (Pearce and Kelly), and counts the routes
 * behind every dependency.
 */
struct layer_set;

int layer_set_new(int n_arcs, int n_layers, struct layer_set **out,
		  struct err *err);
void layer_set_free(struct layer_set *this);

/* Adds the route over arcs[0..n) to layer k. 0; 1 when it closes a cycle,
 * and then no dependency has been added, and the one that does leads to arc
 * number *at (NULL: not asked); WEFT_ENOMEM. */
int layer_set_add(struct layer_set *this, int k, const int32_t *arcs,
		  int64_t n, int64_t *at);
/* Takes back a route that was added. O(n degree). */
void layer_set_remove(struct layer_set *this, int k, const int32_t *arcs,
		      int64_t n);
/* The order of layer k: a rank of each arc. A route on which it rises closes
 * no cycle. Valid until the next route is added. */
const int32_t *layer_set_rank(const struct layer_set *this, int k);

#endif
