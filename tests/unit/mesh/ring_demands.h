/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random demands on rings, for tests and benchmarks. Set k of a family draws,
 * from seed k alone,
 *
 *   nodes n between 16 and the family's most, uniform on a logarithmic scale;
 *   d = 1, 2, 4 or 8 lightpaths a node, d * n in all;
 *   k mod 4 = 0, uniform: source uniform, destination uniform among the rest;
 *   k mod 4 = 1, hot spots: the destination is, with probability one half,
 *     one of max(1, n / 32) nodes drawn before, otherwise uniform;
 *   k mod 4 = 2, permutations: d random permutations without fixed points
 *     (a node that maps to itself takes its successor's image);
 *   k mod 4 = 3, local: destination within max(2, n / 8) hops either way.
 */
#ifndef WEFT_TESTS_UNIT_MESH_RING_DEMANDS_H
#define WEFT_TESTS_UNIT_MESH_RING_DEMANDS_H

#include <math.h>
#include <stdint.h>

#include "lib/base/number/rng.h"
#include "rwa/ring/ring.h"

#define DEMANDS_LEAST_NODES 16
#define DEMANDS_MOST_NODES 1024
#define DEMANDS_MOST_ARCS (8 * DEMANDS_MOST_NODES)

static inline void draw_permutation(struct rng *rng, int n, struct rwa_arc *arcs)
{
	for (int i = 0; i < n; i++) {
		arcs[i] = (struct rwa_arc){ .src = i, .dst = i };
	}
	for (int i = n - 1; i > 0; i--) {
		int j = (int)rng_below(rng, (uint64_t)i + 1);
		int32_t dst = arcs[i].dst;

		arcs[i].dst = arcs[j].dst;
		arcs[j].dst = dst;
	}
	for (int i = 0; i < n; i++) {
		int j = (i + 1) % n;

		if (arcs[i].dst == i) {
			arcs[i].dst = arcs[j].dst;
			arcs[j].dst = i;
		}
	}
}

static inline int32_t draw_end(struct rng *rng, int n, int kind, int32_t src,
			const int32_t *hot, int n_hot)
{
	int reach = n / 8 > 2 ? n / 8 : 2, hops;

	if (kind == 1 && rng_below(rng, 2)) {
		int32_t dst = hot[rng_below(rng, (uint64_t)n_hot)];

		if (dst != src) {
			return dst;
		}
	}
	if (kind == 3) {
		hops = 1 + (int)rng_below(rng, (uint64_t)reach);
		return (src + (rng_below(rng, 2) ? hops : n - hops)) % n;
	}
	return (src + 1 + (int32_t)rng_below(rng, (uint64_t)n - 1)) % n;
}

/* The demands of set k on at most `most` nodes, into arcs, which has room for
 * 8 * most. Returns how many; *n: nodes. */
static inline int64_t draw_demands(int k, int max, struct rwa_arc *arcs,
				   int *n)
{
	int kind = k % 4, n_hot, a_node;
	int32_t hot[32];
	struct rng rng;

	rng_seed(&rng, (uint64_t)k);
	*n = (int)(DEMANDS_LEAST_NODES *
		   pow((double)max / DEMANDS_LEAST_NODES,
		       (double)rng_below(&rng, 1 << 20) /
			       (double)((1 << 20) - 1)) + 0.5);
	a_node = 1 << rng_below(&rng, 4);
	n_hot = *n / 32 > 1 ? *n / 32 : 1;
	for (int h = 0; h < n_hot; h++) {
		hot[h] = (int32_t)rng_below(&rng, (uint64_t)*n);
	}
	for (int r = 0; r < a_node; r++) {
		struct rwa_arc *row = arcs + (int64_t)r * *n;

		if (kind == 2) {
			draw_permutation(&rng, *n, row);
			continue;
		}
		for (int i = 0; i < *n; i++) {
			row[i] = (struct rwa_arc){
				.src = (int32_t)rng_below(&rng, (uint64_t)*n) };
			row[i].dst = draw_end(&rng, *n, kind, row[i].src, hot,
					      n_hot);
		}
	}
	return (int64_t)a_node * *n;
}

#endif
