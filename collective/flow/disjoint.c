/* Link-disjoint paths by the cheapest maximum flow; see disjoint.h. */
#include "collective/flow/disjoint.h"

#include <stdlib.h>

#include "lib/graph/graph.h"

/* Marks the arcs of the largest flow from s to t, of these one of the fewest
 * hops; *n paths. */
static int find_flow(const struct flow_net *net, int s, int t, bool *used,
		     int64_t *n, struct err *err)
{
	struct graph_flow *f;
	int rc = graph_flow_new(net->n, &f, err);

	if (rc) {
		return rc;
	}
	for (int a = 0; a < net->m && rc == 0; a++) {
		rc = graph_flow_add(f, net->src[a], net->dst[a], 1, 1, NULL, err);
	}
	rc = rc ? rc : graph_flow_run(f, s, t, INT64_MAX, n, NULL, err);
	for (int a = 0; a < net->m && rc == 0; a++) {
		used[a] = graph_flow_on(f, a) > 0;
	}
	graph_flow_free(f);
	return rc;
}

/* Follows used arcs from s to t and frees them. A set of least hops has no
 * circles. */
static int cut_path(const struct flow_net *net, int s, int t, bool *used,
		    double share, struct flow_paths *out)
{
	int64_t first = (int64_t)out->arcs.n;

	for (int v = s; v != t;) {
		int a = net->out_first[v];

		while (!used[a]) {
			a++;
		}
		used[a] = false;
		if (vec_push(&out->arcs, a)) {
			return WEFT_ENOMEM;
		}
		v = net->dst[a];
	}
	return vec_push(&out->v, (struct flow_path){
		s * net->n + t, 0, first,
		(int32_t)((int64_t)out->arcs.n - first), 0, share });
}

/* The shortest path of a pair first: insertion, as there are few. */
static void sort_pair(struct flow_path *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct flow_path q = v[i];
		size_t k = i;

		for (; k > 0 && v[k - 1].n_arcs > q.n_arcs; k--) {
			v[k] = v[k - 1];
		}
		v[k] = q;
	}
}

static int find_pair(const struct flow_net *net, int s, int t, bool *used,
		     struct flow_paths *out, struct err *err)
{
	size_t begin = out->v.n;
	int64_t n = 0;
	int rc = find_flow(net, s, t, used, &n, err);

	if (rc == 0 && n == 0) {
		rc = err_set(err, WEFT_EINFEASIBLE, "no path from node %d to "
			     "node %d", s, t);
	}
	for (int64_t i = 0; i < n && rc == 0; i++) {
		if (cut_path(net, s, t, used, 1.0 / (double)n, out)) {
			rc = err_nomem(err);
		}
	}
	sort_pair(out->v.v + begin, out->v.n - begin);
	return rc;
}

int disjoint_paths(const struct flow_net *net, struct flow_paths *out,
		   struct err *err)
{
	bool *used = calloc((size_t)net->m + 1, sizeof(*used));
	int rc = used ? 0 : err_nomem(err);

	for (int s = 0; s < net->n && rc == 0; s++) {
		for (int t = 0; t < net->n && rc == 0; t++) {
			if (s != t && net->terminal[s] && net->terminal[t]) {
				rc = find_pair(net, s, t, used, out, err);
			}
		}
	}
	free(used);
	return rc;
}
