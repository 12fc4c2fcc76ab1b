/* Graphs for nauty; see nauty_graph.h. */
#include "topology/nauty_graph.h"

#include <stdlib.h>

int nauty_graph_init(struct nauty_graph *g, int nv, size_t arcs)
{
	*g = (struct nauty_graph){ .sg = { .nv = nv, .nde = arcs } };
	g->sg.vlen = g->sg.dlen = (size_t)nv;
	g->sg.elen = arcs;
	g->sg.v = calloc((size_t)nv, sizeof(*g->sg.v));
	g->sg.d = calloc((size_t)nv, sizeof(*g->sg.d));
	g->sg.e = calloc(arcs + 1, sizeof(*g->sg.e));
	g->lab = calloc((size_t)nv, sizeof(*g->lab));
	g->ptn = calloc((size_t)nv, sizeof(*g->ptn));
	g->orbits = calloc((size_t)nv, sizeof(*g->orbits));
	return g->sg.v && g->sg.d && g->sg.e && g->lab && g->ptn && g->orbits
		       ? 0 : WEFT_ENOMEM;
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

void nauty_graph_run(struct nauty_graph *g, bool undirected, nauty_on_generator *on_generator)
{
	DEFAULTOPTIONS_SPARSEDIGRAPH(options);
	statsblk stats;

	options.defaultptn = FALSE;
	options.userautomproc = on_generator;
	if (undirected) {
		options.digraph = FALSE;
		options.invarproc = NULL;
	}
	sparsenauty(&g->sg, g->lab, g->ptn, g->orbits, &options, &stats, NULL);
	/* Its workspaces belong to the thread and would leak with it. */
	nausparse_freedyn();
	nauty_freedyn();
	nautil_freedyn();
}
