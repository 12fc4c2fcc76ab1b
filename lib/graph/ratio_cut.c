/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts with the most behind them for their capacity.
 *
 * Newton's method: a maximum flow tells whether all that is wanted passes within a
 * time; where it does not, the minimum cut is a set that needs longer, exactly so
 * long, and the next flow asks with that. Every step's time is larger than the one
 * before, so it ends, in practice after a few steps (Radzik 1992).
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/graph/private.h"

/* Capacity of the arcs into a set. */
static int64_t cap_into(const struct graph_arc *arcs, int m, const bool *set)
{
	int64_t cap = 0;

	for (int a = 0; a < m; a++) {
		cap += !set[arcs[a].from] && set[arcs[a].to] ? arcs[a].cap : 0;
	}
	return cap;
}

static int64_t count(const bool *set, int n)
{
	int64_t held = 0;

	for (int v = 0; v < n; v++) {
		held += set[v];
	}
	return held;
}

static int no_path(struct err *err)
{
	return err_set(err, WEFT_EINFEASIBLE, "not all ranks can reach each other");
}

/* A network of the arcs, num times as large, and the node n. */
static int scaled_flow(int n, const struct graph_arc *arcs, int m, int64_t num,
		       struct graph_flow **out, struct err *err)
{
	int rc = 0;

	*out = graph_flow_new(n + 1);
	for (int a = 0; a < m && rc == 0; a++) {
		rc = graph_flow_add(*out, arcs[a].from, arcs[a].to, arcs[a].cap * num, 0, NULL,
				    err);
	}
	return rc;
}

/* ---- from one node to all ---- */

/* Whether each rank gets its item within the time; else the set that needs longest. */
static int scatter_within(int n, const struct graph_arc *arcs, int m, int root, int ranks,
			  const struct graph_time *time, bool *set, bool *done, struct err *err)
{
	struct graph_flow *f = NULL;
	int64_t value = 0;
	int rc = scaled_flow(n, arcs, m, time->num, &f, err);

	for (int v = 0; v < ranks && rc == 0; v++) {
		rc = v == root ? 0 : graph_flow_add(f, v, n, time->den, 0, NULL, err);
	}
	if (rc == 0) {
		value = graph_flow_max(f, root, n, INT64_MAX);
	}
	*done = value == (ranks - 1) * time->den;
	if (rc == 0 && !*done) {
		graph_flow_cut(f, n, set);
	}
	graph_flow_free(f);
	return rc;
}

int graph_scatter_time(int n, const struct graph_arc *arcs, int m, int root, int ranks,
		       struct graph_time *time, struct err *err)
{
	bool *set = x_new((size_t)n + 1, sizeof(*set)), done = ranks < 2;
	int rc = 0;

	*time = (struct graph_time){ 0, 1 };
	for (int v = 0; v < n; v++) {
		set[v] = v != root;
	}
	while (rc == 0 && !done) {
		int64_t cap = cap_into(arcs, m, set);

		if (cap == 0) {
			rc = no_path(err);
		} else {
			*time = graph_time_of(count(set, ranks), cap);
			rc = scatter_within(n, arcs, m, root, ranks, time, set, &done, err);
		}
	}
	free(set);
	return rc;
}

/* ---- from all nodes to all ---- */

/* The largest time that a single rank needs for what all others have. */
static int time_of_one(int n, const struct graph_arc *arcs, int m, int ranks,
		       struct graph_time *time, struct err *err)
{
	int64_t *into = x_new((size_t)n, sizeof(*into)), least = INT64_MAX;

	for (int a = 0; a < m; a++) {
		into[arcs[a].to] += arcs[a].from != arcs[a].to ? arcs[a].cap : 0;
	}
	for (int v = 0; v < ranks; v++) {
		least = into[v] < least ? into[v] : least;
	}
	free(into);
	if (least == 0) {
		return no_path(err);
	}
	*time = graph_time_of(ranks - 1, least);
	return 0;
}

/* Sinks in turn, from `at` on, as long as each gets an item of every rank. One that does
 * may serve as a source for the others, as in graph_root_cut. The first that does not stops
 * it: set becomes a set that holds it and needs longer. */
static void run_sinks(struct flow_phases *s, struct graph_flow *f, const int *sinks, int n_sinks,
		      int64_t wanted, int *at, bool *set)
{
	for (int i = 0; i < *at; i++) {
		s->source[sinks[i]] = true;
	}
	while (*at < n_sinks) {
		if (flow_phases_run(s, sinks[*at], wanted) < wanted) {
			graph_flow_cut(f, sinks[*at], set);
			return;
		}
		flow_phases_undo(s);
		s->source[sinks[(*at)++]] = true;
	}
}

static int gather_within(int n, const struct graph_arc *arcs, int m, int ranks,
			 const struct graph_time *time, const int *sinks, int n_sinks, int *at,
			 bool *set, struct err *err)
{
	struct flow_phases s;
	struct graph_flow *f = NULL;
	int rc = scaled_flow(n, arcs, m, time->num, &f, err);

	for (int v = 0; v < ranks && rc == 0; v++) {
		rc = graph_flow_add(f, n, v, time->den, 0, NULL, err);
	}
	if (rc == 0) {
		flow_phases_init(&s, f);
		s.source[n] = true;
		run_sinks(&s, f, sinks, n_sinks, ranks * time->den, at, set);
		flow_phases_fini(&s);
	}
	graph_flow_free(f);
	return rc;
}

int graph_allgather_time(int n, const struct graph_arc *arcs, int m, int ranks, const int *sinks,
			 int n_sinks, struct graph_time *time, struct err *err)
{
	bool *set;
	int at = 0, rc = 0;

	*time = (struct graph_time){ 0, 1 };
	if (ranks < 2 || (rc = time_of_one(n, arcs, m, ranks, time, err))) {
		return rc;
	}
	set = x_new((size_t)n + 1, sizeof(*set));
	rc = gather_within(n, arcs, m, ranks, time, sinks, n_sinks, &at, set, err);
	while (rc == 0 && at < n_sinks) {
		int64_t cap = cap_into(arcs, m, set);

		if (cap == 0) {
			rc = no_path(err);
		} else {
			*time = graph_time_of(ranks - count(set, ranks), cap);
			rc = gather_within(n, arcs, m, ranks, time, sinks, n_sinks, &at, set, err);
		}
	}
	free(set);
	return rc;
}
