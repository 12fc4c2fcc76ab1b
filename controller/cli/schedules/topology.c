/* weft topology: what a graph is like, and the graph itself: its nodes' kinds, its
 * arcs, and the limits they share, as the formats for output or as the file that
 * --topology reads; and the same of a fabric's job. */
#include <stdlib.h>

#include <gmp.h>

#include "collective/bfb/bfb.h"
#include "controller/cli/core/private.h"
#include "controller/plan/plan.h"
#include "lib/base/file.h"
#include "lib/base/rat.h"
#include "lib/base/units.h"

/* Above these sizes vertex transitivity and girth are not looked for, nor, unless all nodes are
 * alike, what breadth-first broadcast takes: they are null. */
#define TRANSITIVE_MAX_NODES 4096
#define SOLVED_MAX_NODES 256

/* {families: [{form, help}]} */
static int out_families(struct out *o, struct err *err)
{
	const char *form, *help;

	if (o) {
		out_array(o, "families");
		for (int i = 0; (form = topo_family_help(i, &help)); i++) {
			out_object(o, NULL);
			out_str(o, "form", form);
			out_str(o, "help", help);
			out_end(o);
		}
		out_end(o);
	}
	return cli_print(o, err);
}

/* Rows for programs, lines for people. */
static int families(const struct cli *c, struct err *err)
{
	const char *form, *help;
	struct buf b = { 0 };
	int r;

	if (c->format != OUT_TABLE) {
		return out_families(out_new(c->format), err);
	}

	for (int i = 0; (form = topo_family_help(i, &help)); i++) {
		buf_printf(&b, "%-27s %s\n", form, help);
	}
	r = b.failed ? err_nomem(err)
		     : cli_print_bytes(buf_cstr(&b), b.len, err);
	buf_fini(&b);
	return r;
}

/* Most arcs out of or into one of the nodes from `first` to before `end`. */
static int degree_of(const struct topo *t, int first, int end)
{
	int most = 0;

	for (int u = first; u < end; u++) {
		const int32_t *arcs;
		int unused, out = topo_out(t, u, &unused), in = topo_in(t, u, &arcs);

		most = out > most ? out : most;
		most = in > most ? in : most;
	}
	return most;
}

/* The symmetries that weft knows: by them schedules are compact. */
static int out_group(struct out *o, const struct topo *t, int *order, struct err *err)
{
	struct topo_action *action = NULL;
	struct topo_group *g = NULL;
	int rc;

	if ((rc = topo_group_find(t, &g, err)) || (rc = topo_action_new(t, g, &action, err))) {
		goto out;
	}
	*order = topo_group_order(g);
	out_int(o, "group_order", *order);
	out_int(o, "arc_orbits", topo_action_orbits(action));
out:
	topo_action_free(action);
	topo_group_free(g);
	return rc;
}

/* T_B of an all-reduce by breadth-first broadcast, in M/B, beside its bound. */
static int out_breadth_first(struct out *o, const struct topo *t, bool solve, struct err *err)
{
	mpq_t factor, bound;
	int steps, rc = 0;

	mpq_inits(factor, bound, NULL);
	if (solve) {
		rc = coll_bfb_factor(COLL_ALLREDUCE, t, &steps, factor, err);
		rat_set(bound, 2 * (topo_n(t) - 1), topo_n(t));
	}
	if (solve && !rc) {
		out_bool(o, "bandwidth_optimal", mpq_cmp(factor, bound) <= 0);
	} else {
		out_null(o, "bandwidth_optimal");
	}
	mpq_clears(factor, bound, NULL);
	return rc == WEFT_ENOMEM ? rc : 0;
}

static int out_symmetry(struct out *o, const struct topo *t, int diameter, struct err *err)
{
	bool small = topo_n(t) <= TRANSITIVE_MAX_NODES;
	int order = 1, rc;

	/* The symmetry search of a huge graph may take very long. */
	if (small) {
		out_bool(o, "vertex_transitive", topo_vertex_transitive(t));
	} else {
		out_null(o, "vertex_transitive");
	}
	rc = out_group(o, t, &order, err);
	if (rc) {
		return rc;
	}
	if (small) {
		out_int(o, "girth", topo_girth(t));
	} else {
		out_null(o, "girth");
	}
	return out_breadth_first(o, t, topo_is_plain(t) && diameter > 0 &&
				 (order == topo_n(t) || topo_n(t) <= SOLVED_MAX_NODES), err);
}

/* {topology, nodes, terminals, memories, switches, arcs, limits, degree,
 * switch_degree, regular, symmetric, diameter, vertex_transitive, group_order,
 * arc_orbits, girth, bandwidth_optimal}. degree is that
 * of terminals, switch_degree that of the others, null without them; diameter is
 * between terminals, null when some cannot be reached. */
static int describe(struct out *o, const struct topo *t, const char *name, struct err *err)
{
	int diameter = topo_diameter(t), ranks = topo_ranks(t);

	out_str(o, "topology", name);
	out_int(o, "nodes", topo_n(t));
	out_int(o, "terminals", ranks);
	out_int(o, "memories", topo_holders(t) - ranks);
	out_int(o, "switches", topo_n(t) - topo_holders(t));
	out_int(o, "arcs", topo_m(t));
	out_int(o, "limits", topo_n_limits(t));
	out_int(o, "degree", degree_of(t, 0, ranks));
	if (ranks < topo_n(t)) {
		out_int(o, "switch_degree", degree_of(t, ranks, topo_n(t)));
	} else {
		out_null(o, "switch_degree");
	}
	out_bool(o, "regular", topo_regular_degree(t) > 0);
	out_bool(o, "symmetric", topo_is_symmetric(t));
	if (diameter < 0) {
		out_null(o, "diameter");
	} else {
		out_int(o, "diameter", diameter);
	}
	return out_symmetry(o, t, diameter, err);
}

int cmd_topology_info(struct cli *c, struct err *err)
{
	struct topo *t = NULL;
	struct out *o;
	char *name = NULL;
	int r;

	if (c->argc == 0) {
		return families(c, err);
	}
	r = cli_load_topology(c->argv[0], &t, &name, err);
	if (r) {
		return r;
	}
	o = out_new(c->format);
	if (o) {
		r = describe(o, t, name, err);
	}
	if (r) {
		out_free(o);
	} else {
		r = cli_print(o, err);
	}
	topo_free(t);
	free(name);
	return r;
}

/* {node, kind, copy, reduce, store} of nodes that are no usual terminals. */
static void list_kinds(struct out *o, const struct topo *t)
{
	out_array(o, "kinds");
	for (int u = 0; u < topo_n(t); u++) {
		if (topo_node_kind(t, u) == TOPO_TERMINAL &&
		    topo_node_flags(t, u) == topo_usual_flags(TOPO_TERMINAL)) {
			continue;
		}
		out_object(o, NULL);
		out_int(o, "node", u);
		out_str(o, "kind", topo_kind_name(topo_node_kind(t, u)));
		for (int i = 0; i < TOPO_ABILITIES; i++) {
			out_bool(o, topo_ability_name(i), topo_node_flags(t, u) & 1U << i);
		}
		out_end(o);
	}
	out_end(o);
}

/* {capacity, arcs: [number]} */
static void list_limits(struct out *o, const struct topo *t)
{
	out_array(o, "limits");
	for (int i = 0; i < topo_n_limits(t); i++) {
		const struct topo_limit *l = topo_limit(t, i);

		out_object(o, NULL);
		out_int(o, "capacity", l->cap);
		out_array(o, "arcs");
		for (int k = 0; k < l->n; k++) {
			out_int(o, NULL, l->arcs[k]);
		}
		out_end(o);
		out_end(o);
	}
	out_end(o);
}

/* {topology, nodes, arcs: [{src, dst, capacity, latency_ns}]}, and where nodes or
 * limits are not as usual {kinds, limits}. */
static void list_graph(struct out *o, const struct topo *t, const char *name)
{
	out_str(o, "topology", name);
	out_int(o, "nodes", topo_n(t));
	if (!topo_is_plain(t)) {
		list_kinds(o, t);
		list_limits(o, t);
	}
	out_array(o, "arcs");
	for (int i = 0; i < topo_m(t); i++) {
		const struct topo_arc *a = topo_arc(t, i);

		out_object(o, NULL);
		out_int(o, "src", a->src);
		out_int(o, "dst", a->dst);
		out_int(o, "capacity", a->cap);
		out_int(o, "latency_ns", a->latency_ns);
		out_end(o);
	}
	out_end(o);
}

/* The file that --topology and cli_load_topology() read. */
static int write_topology(const struct topo *t, const char *name, const char *path, struct err *err)
{
	struct buf b = { 0 };
	int r = topo_to_json(t, name, &b, err);

	if (r == 0) {
		r = file_write_atomic(path, b.data, b.len, FILE_PUBLIC, err);
	}
	buf_fini(&b);
	return r;
}

/* "JOB on FABRIC, capacities in 4 Gbps" */
static int name_of_job(const struct model_fabric *f, const char *job, int64_t unit_bps,
		       char **name, struct err *err)
{
	char unit[32];
	struct buf b = { 0 };

	buf_printf(&b, "%s on %s, capacities in %s", job, f->name,
		   unit_str(UNIT_BPS, unit_bps, unit, sizeof(unit)));
	*name = buf_steal(&b);
	return *name ? 0 : err_nomem(err);
}

/* The digraph of a job's ranks. */
static int load_job(const char *path, const char *job, struct topo **t, char **name,
		    struct err *err)
{
	struct model_fabric *f = NULL;
	int64_t unit_bps;
	int i, r = cli_load_fabric(path, &f, err);

	if (r) {
		return r;
	}
	i = model_find_job(f, job);
	if (i < 0) {
		r = err_set(err, WEFT_ENOTFOUND, "%s: there is no job '%s'", path, job);
	} else {
		r = plan_job_topo(f, i, t, &unit_bps, err);
	}
	if (!r && (r = name_of_job(f, job, unit_bps, name, err))) {
		topo_free(*t);
	}
	model_free(f);
	return r;
}

/* Of an expression or file, or of a job with -f. */
static int load_graph(const struct cli *c, struct topo **t, char **name, struct err *err)
{
	const char *fabric = cli_opt(c, "file"), *job = cli_opt(c, "job");
	bool of_job = fabric && job;

	if ((fabric != NULL) != (job != NULL) || of_job == (c->argc == 1)) {
		return err_set(err, WEFT_EUSAGE, "weft %s: give a topology, or -f FABRIC and "
			       "--job NAME, and not both", c->verb);
	}
	return of_job ? load_job(fabric, job, t, name, err)
		      : cli_load_topology(c->argv[0], t, name, err);
}

int cmd_topology_build(struct cli *c, struct err *err)
{
	const char *path = cli_opt(c, "output");
	struct topo *t = NULL;
	struct out *o;
	char *name = NULL;
	int r = load_graph(c, &t, &name, err);

	if (r) {
		return r;
	}
	if (path) {
		r = write_topology(t, name, path, err);
	} else {
		o = out_new(c->format);
		if (o) {
			list_graph(o, t, name);
		}
		r = cli_print(o, err);
	}
	topo_free(t);
	free(name);
	return r;
}
