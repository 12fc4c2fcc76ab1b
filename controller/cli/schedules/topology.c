/* SPDX-License-Identifier: Apache-2.0 */
/* weft topology: what a graph is like, and the graph itself: its nodes' kinds, its
 * arcs, and the limits they share, as the formats for output or as the file that
 * --topology reads; and the same of a fabric's job. */
#include <stdlib.h>
#include <string.h>

#include <gmp.h>

#include "collective/bfb/bfb.h"
#include "controller/cli/core/private.h"
#include "controller/plan/plan.h"
#include "lib/base/file.h"
#include "lib/base/number/rat.h"
#include "lib/base/number/units.h"

/* Above these sizes transitivity (nodes, for arcs with these) and girth are not looked for, nor,
 * unless all nodes are alike, what breadth-first broadcast takes (nodes; where they are alike nodes
 * times ports squared): they are null. */
#define TRANSITIVE_MAX_NODES 4096
#define TRANSITIVE_MAX_ARCS 16384
#define SOLVED_MAX_NODES 256
#define SOLVED_MAX_EFFORT (1 << 22)
/* Searches times arcs from which on the diameter shows its progress. */
#define TOLD_EFFORT ((int64_t)1 << 30)
#define HELP_COLUMN 28

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
		bool fits = strlen(form) <= HELP_COLUMN - 1;

		/* A long form has a line of its own. */
		buf_printf(&b, "%s%s%*s%s\n", form, fits ? "" : "\n",
			   HELP_COLUMN - (fits ? (int)strlen(form) : 0), "", help);
	}
	r = cli_print_bytes(buf_cstr(&b), b.len, err);
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

/* What info knows of a digraph, to know the rest. */
struct info {
	struct cli *c;
	const struct topo *t;
	bool quick;		/* nothing that takes long */
	int diameter;		/* -1: none, or not known */
	int order, arc_orbits;	/* of the group that weft knows */
	struct progress progress;
	int told;		/* tenths of the diameter's searches */
};

static void out_answer(struct out *o, const char *key, enum topo_answer answer)
{
	if (answer == TOPO_NOT_KNOWN) {
		out_null(o, key);
	} else {
		out_bool(o, key, answer == TOPO_YES);
	}
}

/* The symmetries that weft knows: by them schedules are compact. */
static int find_group(struct info *x, struct err *err)
{
	struct topo_action *action = NULL;
	struct topo_group *g = NULL;
	int rc;

	if ((rc = topo_group_find(x->t, &g, err)) ||
	    (rc = topo_action_new(x->t, g, &action, err))) {
		goto out;
	}
	x->order = topo_group_order(g);
	x->arc_orbits = topo_action_orbits(action);
out:
	topo_action_free(action);
	topo_group_free(g);
	return rc;
}

/* The known group proves it, or the search for all automorphisms, which of a huge graph
 * may take very long. */
static enum topo_answer vertex_transitive(const struct info *x)
{
	if (x->order == topo_n(x->t)) {
		return TOPO_YES;
	}
	if (topo_is_plain(x->t) && topo_regular_degree(x->t) == 0) {
		return TOPO_NO;
	}
	if (x->quick || topo_n(x->t) > TRANSITIVE_MAX_NODES) {
		return TOPO_NOT_KNOWN;
	}
	return topo_vertex_transitive(x->t);
}

static enum topo_answer arc_transitive(const struct info *x)
{
	if (x->arc_orbits == 1) {
		return TOPO_YES;
	}
	if (!topo_is_plain(x->t) || x->quick || topo_n(x->t) > TRANSITIVE_MAX_NODES ||
	    topo_m(x->t) > TRANSITIVE_MAX_ARCS) {
		return TOPO_NOT_KNOWN;
	}
	return topo_arc_transitive(x->t);
}

/* T_B by breadth-first broadcast meets the bound in both phases. Of a symmetric digraph both are
 * the same. */
static enum topo_answer bandwidth_optimal(const struct info *x)
{
	int64_t n = topo_n(x->t), ports = topo_max_degree(x->t);
	bool both = !topo_is_symmetric(x->t), met = false;
	mpq_t factor, bound;
	int steps, rc;

	if (x->quick || !topo_is_plain(x->t) || x->diameter <= 0 ||
	    (x->order == n ? n * ports * ports > SOLVED_MAX_EFFORT : n > SOLVED_MAX_NODES)) {
		return TOPO_NOT_KNOWN;
	}
	mpq_inits(factor, bound, NULL);
	rc = coll_bfb_factor(both ? COLL_ALLREDUCE : COLL_ALLGATHER, x->t, &steps, factor, NULL);
	if (!rc) {
		rat_set(bound, (1 + both) * (n - 1), n);
		met = mpq_cmp(factor, bound) <= 0;
	}
	mpq_clears(factor, bound, NULL);
	return rc ? TOPO_NOT_KNOWN : met ? TOPO_YES : TOPO_NO;
}

static int out_symmetry(struct out *o, struct info *x, struct err *err)
{
	int rc = find_group(x, err);

	if (rc) {
		return rc;
	}
	out_answer(o, "vertex_transitive", vertex_transitive(x));
	out_answer(o, "arc_transitive", arc_transitive(x));
	out_int(o, "group_order", x->order);
	out_int(o, "arc_orbits", x->arc_orbits);
	if (!x->quick && (topo_n(x->t) <= TRANSITIVE_MAX_NODES || x->order == topo_n(x->t))) {
		out_int(o, "girth", topo_girth(x->t));
	} else {
		out_null(o, "girth");
	}
	out_answer(o, "bandwidth_optimal", bandwidth_optimal(x));
	return 0;
}

/* Ten times, where there are many searches. */
static void tell_diameter(void *arg, int done, int sources)
{
	struct info *x = arg;
	int tenth = (int)((int64_t)done * 10 / sources);
	Weft__V1__ChangeEvent event = WEFT__V1__CHANGE_EVENT__INIT;

	if ((int64_t)sources * topo_m(x->t) < TOLD_EFFORT || tenth == x->told) {
		return;
	}
	x->told = tenth;
	event.text = "diameter";
	event.done = done;
	event.total = sources;
	progress_event(&x->progress, &event);
}

/* -1 also where it is left out. */
static int find_diameter(struct info *x)
{
	int diameter = -1;

	if (!x->quick) {
		progress_init(&x->progress, x->c);
		diameter = topo_diameter_told(x->t, tell_diameter, x);
		progress_end(&x->progress);
	}
	return diameter;
}

/* {topology, nodes, terminals, memories, switches, arcs, limits, degree,
 * switch_degree, regular, symmetric, diameter, vertex_transitive, arc_transitive, group_order,
 * arc_orbits, girth, bandwidth_optimal}. degree is that
 * of terminals, switch_degree that of the others, null without them; diameter is
 * between terminals, null when some cannot be reached. */
static int describe(struct out *o, struct info *x, const char *name, struct err *err)
{
	const struct topo *t = x->t;
	int ranks = topo_ranks(t);

	x->diameter = find_diameter(x);
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
	if (x->diameter < 0) {
		out_null(o, "diameter");
	} else {
		out_int(o, "diameter", x->diameter);
	}
	return out_symmetry(o, x, err);
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
	r = describe(o, &(struct info){ .c = c, .t = t, .quick = cli_has(c, "quick") }, name, err);
	r = cli_print_unless(r, o, err);
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

/* {topology, nodes, arcs: [{src, dst, capacity, latency_ns}]}, where it is not 1 with
 * the cost, and where nodes or limits are not as usual {kinds, limits}. */
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
		if (a->cost != 1) {
			out_int(o, "cost", a->cost);
		}
		out_end(o);
	}
	out_end(o);
}

/* The file that --topology and cli_load_topology() read. */
static int write_topology(const struct topo *t, const char *name, const char *path, struct err *err)
{
	struct buf b = { 0 };
	int r;

	topo_to_json(t, name, &b);
	r = file_write_atomic(path, b.data, b.len, FILE_PUBLIC, err);
	buf_fini(&b);
	return r;
}

/* "JOB on FABRIC, capacities in 4 Gbps" */
static char *name_of_job(const struct model_fabric *f, const char *job, int64_t unit_bps)
{
	char unit[32];
	struct buf b = { 0 };

	buf_printf(&b, "%s on %s, capacities in %s", job, f->name,
		   unit_str(UNIT_BPS, unit_bps, unit, sizeof(unit)));
	return buf_steal(&b);
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
	if (!r) {
		*name = name_of_job(f, job, unit_bps);
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
		list_graph(o, t, name);
		r = cli_print(o, err);
	}
	topo_free(t);
	free(name);
	return r;
}

/* Of the same graphs as build; the picture goes to -o, or standard output. */
int cmd_topology_draw(struct cli *c, struct err *err)
{
	struct buf svg = { 0 };
	struct topo *t = NULL;
	char *name = NULL;
	int r = load_graph(c, &t, &name, err);

	if (r) {
		return r;
	}
	topo_draw(t, name, &svg);
	r = cli_write_svg(cli_opt(c, "output"), &svg, err);
	buf_fini(&svg);
	topo_free(t);
	free(name);
	return r;
}
