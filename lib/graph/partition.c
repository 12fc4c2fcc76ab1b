/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The partition that holds an exchange of all with all up the longest.
 *
 * Capacity into the sets that hold a rank is submodular, and so is what a time lets pass less
 * 2 for each part. The least sum of such a function over the parts of a partition comes from a
 * greedy algorithm (Dilworth truncation; Edmonds 1970, Lovasz 1983; of graphs Cunningham 1985,
 * Barahona 1995): ranks in turn get the largest number y that keeps y(S) <= f(S) for all sets of
 * ranks so far, each by one minimum cut; sets where it is tight and that meet are joined. Newton's
 * method asks with ever longer times, as in ratio_cut.c.
 */
#include <stdlib.h>

#include "lib/graph/private.h"

struct partition {
	int n, m, ranks;
	const struct graph_arc *arcs;
	struct graph_time time;
	int64_t *y;		/* by rank, times the time's denominator */
	int *part;		/* by rank: one rank of its part */
	bool *set;		/* n + 1 */
	struct arrays arrays;
};

/* Edges for the choice of ranks: those behind `last` stay out, and the gain or loss of the others.
 * */
static int add_choices(const struct partition *p, struct graph_flow *f, int last, int64_t *gains,
		       struct err *err)
{
	int rc = 0;

	*gains = 0;
	for (int u = 0; u < p->ranks && rc == 0; u++) {
		int64_t y = u < last ? p->y[u] : -INT64_MAX / 4;

		if (u != last && y < 0) {
			rc = graph_flow_add(f, p->n, u, -y, 0, NULL, err);
		} else if (u != last && y > 0) {
			rc = graph_flow_add(f, u, last, y, 0, NULL, err);
			*gains += y;
		}
	}
	return rc;
}

/* y of rank `last`, and the set that keeps it so. */
static int place(struct partition *p, int last, struct err *err)
{
	struct graph_flow *f = graph_flow_new(p->n + 1);
	int64_t gains = 0, value;
	int rc = 0;

	for (int a = 0; a < p->m && rc == 0; a++) {
		rc = graph_flow_add(f, p->arcs[a].from, p->arcs[a].to,
				    p->arcs[a].cap * p->time.num, 0, NULL, err);
	}
	if (rc || (rc = add_choices(p, f, last, &gains, err))) {
		goto out;
	}
	value = graph_flow_max(f, p->n, last, INT64_MAX);
	graph_flow_cut(f, last, p->set);
	p->y[last] = value - gains - 2 * p->time.den;
out:
	graph_flow_free(f);
	return rc;
}

/* Parts that meet the set become one. */
static void join(struct partition *p, int last)
{
	p->part[last] = last;
	for (int u = 0; u < last; u++) {
		int old = p->part[u];

		for (int v = 0; p->set[u] && old != p->part[last] && v < last; v++) {
			p->part[v] = p->part[v] == old ? p->part[last] : p->part[v];
		}
	}
}

/* The partition of the least sum; *parts, and the capacity into them. */
static int min_partition(struct partition *p, int *parts, int64_t *cap, struct err *err)
{
	int64_t sum = 0;
	int rc = 0;

	for (int v = 0; v < p->ranks && rc == 0; v++) {
		rc = place(p, v, err);
		join(p, v);
	}
	*parts = 0;
	for (int v = 0; v < p->ranks; v++) {
		*parts += p->part[v] == v;
		sum += p->y[v];
	}
	/* Tight parts: the sum is that of num * capacity - 2 den. */
	*cap = (sum + 2 * (int64_t)*parts * p->time.den) / p->time.num;
	return rc;
}

static int64_t total_into_ranks(const struct partition *p)
{
	int64_t cap = 0;

	for (int a = 0; a < p->m; a++) {
		const struct graph_arc *arc = &p->arcs[a];

		cap += arc->from != arc->to && arc->to < p->ranks ? arc->cap : 0;
	}
	return cap;
}

int graph_partition_time(int n, const struct graph_arc *arcs, int m, int ranks,
			 struct graph_time *time, struct err *err)
{
	struct partition p = { .n = n, .m = m, .ranks = ranks, .arcs = arcs };
	int64_t cap;
	int parts, rc = 0;

	*time = (struct graph_time){ 0, 1 };
	arrays_add(&p.arrays, p.y, ranks);
	arrays_add(&p.arrays, p.part, ranks);
	arrays_add(&p.arrays, p.set, n + 1);
	cap = total_into_ranks(&p);
	if (ranks > 1 && cap == 0) {
		rc = err_set(err, WEFT_EINFEASIBLE, "not all ranks can reach each other");
	}
	parts = rc || ranks < 2 ? 1 : ranks;
	while (parts > 1 && rc == 0) {
		p.time = graph_time_of(2 * ((int64_t)parts - 1), cap);
		*time = p.time;
		rc = min_partition(&p, &parts, &cap, err);
		/* As long as before: no partition takes longer. */
		if (rc == 0 && 2 * ((int64_t)parts - 1) * p.time.den <= p.time.num * cap) {
			break;
		}
	}
	arrays_fini(&p.arrays);
	return rc;
}
