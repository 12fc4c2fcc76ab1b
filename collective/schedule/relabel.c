/* A schedule whose nodes have other numbers. */
#include <stdlib.h>

#include "collective/schedule/schedule.h"

struct renamed_arc {
	int src, dst, old;
};

static int by_ends(const void *a, const void *b)
{
	const struct renamed_arc *x = a, *y = b;

	if (x->src != y->src) {
		return x->src - y->src;
	}
	return x->dst != y->dst ? x->dst - y->dst : x->old - y->old;
}

/* The digraph, and arcs[a], what arc a is in it. Arcs are added in the order
 * that they end up in. */
static int rename_topo(const struct topo *t, const int *to, int *arcs,
		       struct topo **out, struct err *err)
{
	int m = topo_m(t), rc = topo_new(topo_n(t), out, err);
	struct renamed_arc *v = calloc((size_t)m + 1, sizeof(*v));

	if (!v) {
		if (!rc) {
			rc = err_nomem(err);
		}
	}
	for (int a = 0; a < m && rc == 0; a++) {
		v[a] = (struct renamed_arc){ to[topo_arc(t, a)->src],
					     to[topo_arc(t, a)->dst], a };
	}
	if (rc == 0) {
		qsort(v, (size_t)m, sizeof(*v), by_ends);
	}
	for (int a = 0; a < m && rc == 0; a++) {
		const struct topo_arc *x = topo_arc(t, v[a].old);

		arcs[v[a].old] = a;
		rc = topo_add_arc(*out, v[a].src, v[a].dst, x->cap,
				  x->latency_ns, err);
	}
	if (!rc) {
		rc = topo_freeze(*out, err);
	}
	free(v);
	if (rc) {
		topo_free(*out);
		*out = NULL;
	}
	return rc;
}

static int rename_moves(const struct coll_sched *s, const int *to,
			const int *arcs, struct coll_sched *out,
			struct err *err)
{
	int64_t n, n_lights;
	const struct coll_xfer *x = coll_xfers(s, &n);
	const struct coll_light *l = coll_lights(s, &n_lights);
	int rc = 0;

	for (int64_t i = 0; i < n && rc == 0; i++) {
		struct coll_xfer y = x[i];

		y.arc = arcs[y.arc];
		y.origin = to[y.origin];
		y.dest = y.dest >= 0 ? to[y.dest] : y.dest;
		rc = coll_add(out, &y, err);
	}
	for (int64_t i = 0; i < n_lights && rc == 0; i++) {
		struct coll_light y = l[i];

		y.arc = arcs[y.arc];
		rc = coll_add_light(out, &y, err);
	}
	if (rc) {
		return rc;
	}
	return coll_finish(out, err);
}

int coll_rename(const struct coll_sched *s, const int *to,
		struct coll_sched **out, struct err *err)
{
	const struct topo *t = coll_topo(s);
	int *arcs = calloc((size_t)topo_m(t) + 1, sizeof(*arcs));
	struct coll_sched *renamed = NULL;
	struct topo *topo = NULL;
	int rc;

	*out = NULL;
	if (coll_kind_of(s) == COLL_BROADCAST) {
		free(arcs);
		return err_set(err, WEFT_EUNSUPPORTED, "other numbers for the "
			       "nodes of a broadcast: not supported");
	}
	if ((rc = arcs
		      ? rename_topo(t, to, arcs, &topo, err) : err_nomem(err)) ||
	    (rc = coll_new(coll_kind_of(s), topo, coll_chunks(s), coll_ports(s),
			   coll_root(s), &renamed, err))) {
		goto out;
	}
	rc = rename_moves(s, to, arcs, renamed, err);
out:
	free(arcs);
	if (rc) {
		coll_free(renamed);
		return rc;
	}
	coll_set_topo_name(renamed, coll_topo_name(s));
	*out = renamed;
	return 0;
}
