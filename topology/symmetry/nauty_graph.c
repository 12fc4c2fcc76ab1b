/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs for nauty; see nauty_graph.h. */
#include "topology/symmetry/nauty_graph.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/alloc.h"

void nauty_graph_init(struct nauty_graph *g, int nv, size_t arcs)
{
	*g = (struct nauty_graph){ .sg = { .nv = nv, .nde = arcs } };
	g->sg.vlen = g->sg.dlen = (size_t)nv;
	g->sg.elen = arcs;
	g->sg.v = x_new((size_t)nv, sizeof(*g->sg.v));
	g->sg.d = x_new((size_t)nv, sizeof(*g->sg.d));
	g->sg.e = x_new(arcs + 1, sizeof(*g->sg.e));
	g->lab = x_new((size_t)nv, sizeof(*g->lab));
	g->ptn = x_new((size_t)nv, sizeof(*g->ptn));
	g->orbits = x_new((size_t)nv, sizeof(*g->orbits));
}

void nauty_graph_fini(struct nauty_graph *g)
{
	free(g->sg.v);
	free(g->sg.d);
	free(g->sg.e);
	free(g->lab);
	free(g->ptn);
	free(g->orbits);
}

/* Of the run of this thread: nauty's hooks have no argument of their own. */
static _Thread_local struct {
	int degree;	/* the largest */
	int depth;	/* that the invariant looks to */
	int root_cells;	/* into which nodes fall at the root of the search tree */
	int64_t left;	/* of NAUTY_GRAPH_WORK */
} run;

/* nauty_kill_request is all threads'. */
static pthread_mutex_t one_run = PTHREAD_MUTEX_INITIALIZER;

/* A node of the search tree costs what refining it touches: about the arcs of the cells that it
 * has beyond those of the root and the vertices fixed on its way. */
static void on_node(graph *g, int *lab, int *ptn, int level, int cells, int target, int code,
		    int m, int n)
{
	(void)g, (void)lab, (void)ptn, (void)target, (void)code, (void)m, (void)n;
	if (level == 1) {
		run.root_cells = cells;
	}
	run.left -= 1 + (int64_t)(cells - run.root_cells - (level - 1)) * run.degree;
	if (run.left < 0) {
		nauty_kill_request = 1;
	}
}

/* How many vertices of which cells are how far away tells most vertices of a graph without
 * symmetries apart; without it, each would be tried as the image of each. Further down the arcs
 * of digraphs are looked at from their heads too. */
static void invariant(graph *g, int *lab, int *ptn, int level, int cells, int at, int *out,
		      int arg, boolean digraph, int m, int n)
{
	if (level <= 1) {
		distances_sg(g, lab, ptn, level, cells, at, out, run.depth, digraph, m, n);
	} else {
		adjacencies_sg(g, lab, ptn, level, cells, at, out, arg, digraph, m, n);
	}
}

/* As far as some multiple of the square root of all vertices may be reached: two such sets
 * meet, and differ, where there is no symmetry. */
static int depth_of(const struct nauty_graph *g)
{
	int64_t reached = 1, wanted = 16 * (int64_t)g->sg.nv;
	int depth = 0, branches = run.degree > 3 ? run.degree - 1 : 2;

	for (; reached * reached < wanted; depth++) {
		reached *= branches;
	}
	return depth;
}

static void begin_run(const struct nauty_graph *g)
{
	run.degree = 1;
	for (int u = 0; u < g->sg.nv; u++) {
		run.degree = g->sg.d[u] > run.degree ? g->sg.d[u] : run.degree;
	}
	run.depth = depth_of(g);
	run.root_cells = 0;
	run.left = NAUTY_GRAPH_WORK;
}

bool nauty_graph_run(struct nauty_graph *g, bool undirected, nauty_on_generator *on_generator)
{
	DEFAULTOPTIONS_SPARSEDIGRAPH(options);
	statsblk stats;

	options.defaultptn = FALSE;
	options.userautomproc = on_generator;
	options.usernodeproc = on_node;
	options.invarproc = invariant;
	if (undirected) {
		options.digraph = FALSE;
		options.maxinvarlevel = 1;
	}
	begin_run(g);
	pthread_mutex_lock(&one_run);
	sparsenauty(&g->sg, g->lab, g->ptn, g->orbits, &options, &stats, NULL);
	nauty_kill_request = 0;
	pthread_mutex_unlock(&one_run);
	/* Its workspaces belong to the thread and would leak with it. */
	nausparse_freedyn();
	nauty_freedyn();
	nautil_freedyn();
	return stats.errstatus == 0;
}
