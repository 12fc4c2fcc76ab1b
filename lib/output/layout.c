/* SPDX-License-Identifier: Apache-2.0 */
/* Places for the nodes of any graph: stress majorization, node by node. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/output/canvas.h"

#define SWEEPS 120

struct svg_places {
	int n, m;
	const int32_t *ends;
	int32_t *first, *next;	/* neighbours of node v at first[v] .. first[v + 1] - 1 */
	int32_t *queue;
	int32_t *dist;		/* n by n, in edges */
	double *xy;
};

/* Neighbours of all nodes, by counting. */
static void make_lists(struct svg_places *p)
{
	for (int i = 0; i < 2 * p->m; i++) {
		p->first[p->ends[i] + 1]++;
	}
	for (int v = 0; v < p->n; v++) {
		p->first[v + 1] += p->first[v];
	}
	for (int i = 0; i < 2 * p->m; i++) {
		p->next[p->first[p->ends[i]]++] = p->ends[i ^ 1];
	}
	memmove(p->first + 1, p->first, (size_t)p->n * sizeof(*p->first));
	p->first[0] = 0;
}

/* Distances from a node; what it does not reach is as far as can be. */
static void search(struct svg_places *p, int from)
{
	int32_t *dist = p->dist + (size_t)from * (size_t)p->n, head = 0, tail = 0;

	for (int v = 0; v < p->n; v++) {
		dist[v] = -1;
	}
	dist[from] = 0;
	p->queue[tail++] = from;
	while (head < tail) {
		int32_t v = p->queue[head++];

		for (int32_t i = p->first[v]; i < p->first[v + 1]; i++) {
			if (dist[p->next[i]] < 0) {
				dist[p->next[i]] = dist[v] + 1;
				p->queue[tail++] = p->next[i];
			}
		}
	}
	for (int v = 0; v < p->n; v++) {
		dist[v] = dist[v] < 0 ? dist[p->queue[tail - 1]] + 2 : dist[v];
	}
}

/* One node to where all others want it. */
static void move(struct svg_places *p, int v)
{
	double x = 0, y = 0, weights = 0;

	for (int u = 0; u < p->n; u++) {
		double d = p->dist[(size_t)v * (size_t)p->n + (size_t)u];
		double dx = p->xy[2 * v] - p->xy[2 * u], dy = p->xy[2 * v + 1] - p->xy[2 * u + 1];
		double far = fmax(sqrt(dx * dx + dy * dy), 1e-6), w;

		if (u != v) {
			w = 1 / (d * d);
			x += w * (p->xy[2 * u] + d * dx / far);
			y += w * (p->xy[2 * u + 1] + d * dy / far);
			weights += w;
		}
	}
	if (weights > 0) {
		p->xy[2 * v] = x / weights;
		p->xy[2 * v + 1] = y / weights;
	}
}

/* Turns the longest direction across, and scales to the unit square. */
static void lay_across(struct svg_places *p)
{
	double mean[2] = { 0, 0 }, xx = 0, yy = 0, xy = 0, least[2] = { 1e9, 1e9 };
	double most[2] = { -1e9, -1e9 }, turn, size;

	for (int i = 0; i < 2 * p->n; i++) {
		mean[i & 1] += p->xy[i] / p->n;
	}
	for (int v = 0; v < p->n; v++) {
		double x = p->xy[2 * v] - mean[0], y = p->xy[2 * v + 1] - mean[1];

		xx += x * x;
		yy += y * y;
		xy += x * y;
	}
	turn = 0.5 * atan2(2 * xy, xx - yy);
	for (int v = 0; v < p->n; v++) {
		double x = p->xy[2 * v] - mean[0], y = p->xy[2 * v + 1] - mean[1];

		p->xy[2 * v] = x * cos(turn) + y * sin(turn);
		p->xy[2 * v + 1] = y * cos(turn) - x * sin(turn);
		for (int k = 0; k < 2; k++) {
			least[k] = fmin(least[k], p->xy[2 * v + k]);
			most[k] = fmax(most[k], p->xy[2 * v + k]);
		}
	}
	size = fmax(fmax(most[0] - least[0], most[1] - least[1]), 1e-6);
	for (int i = 0; i < 2 * p->n; i++) {
		p->xy[i] = (p->xy[i] - least[i & 1]) / size +
			   (1 - (most[i & 1] - least[i & 1]) / size) / 2;
	}
}

void svg_layout(int n, const int32_t *ends, int m, double *xy)
{
	struct svg_places p = { .n = n, .m = m, .ends = ends, .xy = xy };
	struct arrays a = { 0 };
	double step = 2 * acos(-1) / n;

	arrays_add(&a, p.first, n + 2);
	arrays_add(&a, p.next, 2 * m);
	arrays_add(&a, p.queue, n);
	arrays_add(&a, p.dist, (size_t)n * (size_t)n);
	make_lists(&p);
	for (int v = 0; v < n; v++) {
		search(&p, v);
		/* A circle that is not quite one: symmetric starts would stay so. */
		xy[2 * v] = n / 6.0 * (1 + 0.05 * (v % 7)) * sin(step * v);
		xy[2 * v + 1] = n / 6.0 * (1 + 0.03 * (v % 5)) * cos(step * v);
	}
	for (int i = 0; i < SWEEPS; i++) {
		for (int v = 0; v < n; v++) {
			move(&p, v);
		}
	}
	lay_across(&p);
	arrays_fini(&a);
}
