/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Balanced orientations: every edge of a multigraph gets a direction so that
 * at each node as many leave as arrive, give or take one. Walking along
 * unused edges until the walk closes uses up all of them; nodes of odd degree
 * are joined to one extra node first (Euler).
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"

struct walk {
	int n, m;		/* with the extra node and its edges */
	int (*ends)[2];
	int *first;		/* [n + 1] into list */
	int *list;		/* edges by node, each twice */
	int *next;		/* [n] first edge not yet looked at */
	bool *used;
};

/* Copies the edges and joins odd nodes to the extra one. */
static void add_edges(struct walk *w, const int (*ends)[2])
{
	int extra = w->n - 1, *degree = w->next;

	memset(degree, 0, w->n * sizeof(*degree));
	for (int e = 0; e < w->m; e++) {
		w->ends[e][0] = ends[e][0];
		w->ends[e][1] = ends[e][1];
		degree[ends[e][0]]++;
		degree[ends[e][1]]++;
	}
	for (int u = 0; u < extra; u++) {
		if (degree[u] % 2) {
			w->ends[w->m][0] = u;
			w->ends[w->m++][1] = extra;
		}
	}
}

static void index_edges(struct walk *w)
{
	for (int e = 0; e < w->m; e++) {
		w->first[w->ends[e][0] + 1]++;
		w->first[w->ends[e][1] + 1]++;
	}
	for (int u = 0; u < w->n; u++) {
		w->first[u + 1] += w->first[u];
		w->next[u] = w->first[u];
	}
	for (int e = 0; e < w->m; e++) {
		w->list[w->next[w->ends[e][0]]++] = e;
		w->list[w->next[w->ends[e][1]]++] = e;
	}
	memcpy(w->next, w->first, w->n * sizeof(*w->next));
}

/* An unused edge at u, or -1. */
static int take_edge(struct walk *w, int u)
{
	while (w->next[u] < w->first[u + 1]) {
		int e = w->list[w->next[u]++];

		if (!w->used[e]) {
			w->used[e] = true;
			return e;
		}
	}
	return -1;
}

void plan_orient(int n, int m, const int (*ends)[2], bool *flip)
{
	struct walk w = { .n = n + 1, .m = m };

	w.ends = x_alloc(m + n + 1, sizeof(*w.ends));
	w.first = x_new(n + 2, sizeof(*w.first));
	w.list = x_alloc(2 * (size_t)(m + n + 1), sizeof(*w.list));
	w.next = x_alloc(n + 1, sizeof(*w.next));
	w.used = x_new(m + n + 1, sizeof(*w.used));
	add_edges(&w, ends);
	index_edges(&w);
	for (int start = 0; start < w.n; start++) {
		int u = start, e;

		while ((e = take_edge(&w, u)) >= 0) {
			bool turned = w.ends[e][0] != u;

			if (e < m) {
				flip[e] = turned;
			}
			u = w.ends[e][turned ? 0 : 1];
		}
	}
	free(w.ends);
	free(w.first);
	free(w.list);
	free(w.next);
	free(w.used);
}
