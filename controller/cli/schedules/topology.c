/* weft topology: what a graph is like, and the graph itself. */
#include <stdlib.h>

#include "controller/cli/core/private.h"
#include "lib/base/file.h"

/* Above this size vertex transitivity is not looked for, and is null. */
#define TRANSITIVE_MAX_NODES 4096

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
		buf_printf(&b, "%-24s %s\n", form, help);
	}
	r = b.failed ? err_nomem(err)
		     : cli_print_bytes(buf_cstr(&b), b.len, err);
	buf_fini(&b);
	return r;
}

/* {topology, nodes, arcs, degree, regular, symmetric, diameter,
 * vertex_transitive}; diameter is null when some node cannot be reached. */
static void describe(struct out *o, const struct topo *t, const char *name)
{
	int diameter = topo_diameter(t);

	out_str(o, "topology", name);
	out_int(o, "nodes", topo_n(t));
	out_int(o, "arcs", topo_m(t));
	out_int(o, "degree", topo_max_degree(t));
	out_bool(o, "regular", topo_regular_degree(t) > 0);
	out_bool(o, "symmetric", topo_is_symmetric(t));
	if (diameter < 0) {
		out_null(o, "diameter");
	} else {
		out_int(o, "diameter", diameter);
	}
	/* The symmetry search of a huge graph may take very long. */
	if (topo_n(t) <= TRANSITIVE_MAX_NODES) {
		out_bool(o, "vertex_transitive", topo_vertex_transitive(t));
	} else {
		out_null(o, "vertex_transitive");
	}
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
		describe(o, t, name);
	}
	r = cli_print(o, err);
	topo_free(t);
	free(name);
	return r;
}

/* {topology, nodes, arcs: [{src, dst, capacity, latency_ns}]} */
static void list_arcs(struct out *o, const struct topo *t, const char *name)
{
	out_str(o, "topology", name);
	out_int(o, "nodes", topo_n(t));
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
	int r = cli_topology_json(t, name, &b, err);

	if (r == 0) {
		r = file_write_atomic(path, b.data, b.len, FILE_PUBLIC, err);
	}
	buf_fini(&b);
	return r;
}

int cmd_topology_build(struct cli *c, struct err *err)
{
	const char *path = cli_opt(c, "output");
	struct topo *t = NULL;
	struct out *o;
	char *name = NULL;
	int r = cli_load_topology(c->argv[0], &t, &name, err);

	if (r) {
		return r;
	}
	if (path) {
		r = write_topology(t, name, path, err);
	} else {
		o = out_new(c->format);
		if (o) {
			list_arcs(o, t, name);
		}
		r = cli_print(o, err);
	}
	topo_free(t);
	free(name);
	return r;
}
