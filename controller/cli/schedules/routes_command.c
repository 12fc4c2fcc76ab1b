/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft routes: route tables of all-to-all for networks that forward packets
 * by themselves.
 *
 * A table has one route for every pair of nodes and a virtual layer for each
 * route, such that no layer has a cycle of channel dependencies, which keeps
 * lossless networks free of deadlock (collective/routing). "make" chooses
 * both at once; "schedule export --to routes-..." takes the routes from a
 * schedule. Either way a table is verified by other code than made it before
 * it is written.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/flow/flow.h"
#include "collective/routing/routes.h"
#include "controller/cli/core/private.h"
#include "lib/base/file.h"

/* As text, JSON or protobuf, by the value of --to. */
static void write_table(const struct coll_routes *r, const struct topo *t,
			const char *to, struct buf *b)
{
	if (strcmp(to, "routes-proto") == 0) {
		coll_routes_to_proto(r, t, b);
	} else {
		coll_routes_to_json(r, t, b);
	}
}

bool cli_is_route_table(const char *to)
{
	return strcmp(to, "routes-json") == 0 || strcmp(to, "routes-proto") == 0;
}

int cli_write_routes(const struct coll_sched *s, const char *to,
		     int max_layers, struct buf *b, struct err *err)
{
	struct coll_routes routes;
	int r;

	/* What leaves weft was proven by code that did not make it. */
	if ((r = coll_routes_of(s, max_layers, &routes, err)) == 0 &&
	    (r = coll_routes_verify(&routes, coll_topo(s), err)) == 0) {
		write_table(&routes, coll_topo(s), to, b);
	}
	coll_routes_fini(&routes);
	return r;
}

/* ---- make ---- */

/* Without a time limit the search has no integer program, so that it ends by
 * itself and gives the same table each time. */
static int read_making(const struct cli *c, struct single_options *opt, struct err *err)
{
	const char *name = cli_opt(c, "algorithm");
	const struct coll_algorithm *a = name ? coll_algorithm_find(name, COLL_ALLTOALL) : NULL;
	int64_t layers = 0, seed = 0;
	int r;

	*opt = (struct single_options){ .cancel = &cli_interrupted,
					.tolerance = MCF_SCHED_LOSS };
	if ((r = cli_opt_int(c, "layers", 1, CLI_MAX_LAYERS, &layers, err)) ||
	    (r = cli_opt_int(c, "seed", 0, INT64_MAX, &seed, err)) ||
	    (r = cli_opt_share(c, "gap", &opt->flow_gap, err)) ||
	    (r = cli_opt_deadline(c, &opt->deadline, err))) {
		return r;
	}
	opt->layers = (int)layers;
	opt->seed = (uint64_t)seed;
	/* Without a limit the integer program may never end. */
	opt->effort = opt->deadline.at_ns ? SINGLE_INTEGER : SINGLE_SEARCH;
	if (a && a->paths == MCF_PATHS_SHORTEST) {
		opt->effort = SINGLE_SHORTEST;
	} else if (name && !(a && a->paths == MCF_PATHS_SINGLE)) {
		return err_set(err, WEFT_EUSAGE, "--algorithm %s: expected "
			       "single-path or shortest-path", name);
	}
	return 0;
}

static const char *making_name(const struct single_options *opt)
{
	return opt->effort == SINGLE_SHORTEST ? "shortest-path"
					      : "single-path";
}

/* The summary on stdout, unless the table itself goes there. */
static int print_making(struct cli *c, const struct coll_routes *routes,
			const struct single_options *opt, const struct single_result *res,
			const char *topology, const char *path, struct err *err)
{
	struct out *o = out_new(c->format);

	out_str(o, "topology", topology);
	out_str(o, "algorithm", making_name(opt));
	out_int(o, "nodes", routes->nodes);
	out_int(o, "routes", routes->table.n);
	out_int(o, "layers", routes->n_layers);
	out_str(o, "rate", routes->rate);
	out_real(o, "load", res->congestion);
	out_real(o, "bound", res->bound);
	cli_out_gap(c, o, "gap", res->congestion / res->bound - 1);
	if (opt->layers) {
		out_real(o, "load_unlimited", res->unlimited);
		out_int(o, "rerouted", res->unplaced);
	}
	cli_out_deadline(o);
	out_str(o, "file", path);
	return cli_print(o, err);
}

/* Chooses, verifies and writes to --output or stdout. */
static int make_table(struct cli *c, const struct topo *t, const char *name, struct err *err)
{
	const char *path = cli_opt(c, "output");
	const char *to = cli_opt(c, "to") ? cli_opt(c, "to") : "routes-json";
	bool whole = !path || strcmp(path, "-") == 0;
	struct coll_routes routes = { 0 };
	struct single_options opt;
	struct single_result res;
	struct buf b = { 0 };
	int r = read_making(c, &opt, err);

	if (r || (r = cli_check_format(to, true, err))) {
		return r;
	}
	cli_stop_on_signals();
	if ((r = coll_routes_choose(t, &opt, &routes, &res, err)) ||
	    (r = coll_routes_verify(&routes, t, err))) {
		goto out;
	}
	write_table(&routes, t, to, &b);
	r = cli_write_data(path, &b, err);
	if (r == 0 && !whole) {
		r = print_making(c, &routes, &opt, &res, name, path, err);
	}
out:
	buf_fini(&b);
	coll_routes_fini(&routes);
	return r;
}

int cmd_routes_make(struct cli *c, struct err *err)
{
	struct topo *t = NULL;
	char *name = NULL;
	int r;

	(void)((r = cli_need(c, "topology", err)) ||
	       (r = cli_load_topology(cli_opt(c, "topology"), &t, &name, err)) ||
	       (r = make_table(c, t, name, err)));
	if (r == WEFT_EINFEASIBLE) {
		err_wrap(err, "%s", name);
	}
	topo_free(t);
	free(name);
	return r;
}

/* ---- verify ---- */

/* Any of the three formats. coll_routes_fini() *out, also after an error. */
static int load_table(const char *path, const struct topo *t,
		      struct coll_routes *out, struct err *err)
{
	char *data = NULL;
	size_t len;
	int r = file_read(path, CLI_MAX_SCHEDULE, &data, &len, err);

	*out = (struct coll_routes){ 0 };
	if (r == 0) {
		r = coll_routes_read(data, len, t, out, err);
		if (r) {
			err_at(err, path, err->line, err->col);
		}
	}
	free(data);
	return r;
}

/* {valid, topology, nodes, chunks, layers, routes, rate, fault}; fault only
 * of a table that is wrong. */
static int print_verdict(struct cli *c, const struct coll_routes *routes, const char *topology,
			 const struct err *fault, struct err *err)
{
	struct out *o = out_new(c->format);

	out_bool(o, "valid", fault->code == 0);
	out_str(o, "topology", topology);
	out_int(o, "nodes", routes->nodes);
	out_int(o, "chunks", routes->chunks);
	out_int(o, "layers", routes->n_layers);
	out_int(o, "routes", routes->table.n);
	out_str(o, "rate", routes->rate);
	if (fault->code) {
		out_str(o, "fault", fault->msg);
	}
	return cli_print(o, err);
}

/* A table that is wrong is printed as such, and is WEFT_EVERIFY. */
static int verify(struct cli *c, const struct topo *t, const char *name, struct err *err)
{
	struct coll_routes routes;
	struct err fault = { 0 };
	int r = load_table(c->argv[0], t, &routes, err), bad;

	if (r) {
		goto out;
	}
	bad = coll_routes_verify(&routes, t, &fault);
	if (bad == 0 || bad == WEFT_EVERIFY) {
		r = print_verdict(c, &routes, name, &fault, err);
	}
	if (r == 0 && bad) {
		*err = fault;
		r = bad;
	}
out:
	coll_routes_fini(&routes);
	return r;
}

/* On the topology named, or on that of a job's schedule. */
int cmd_routes_verify(struct cli *c, struct err *err)
{
	const char *expr = cli_opt(c, "topology");
	const char *job = cli_opt(c, "job");
	struct coll_sched *s = NULL;
	struct topo *t = NULL;
	char *name = NULL;
	int r;

	if ((expr != NULL) == (job != NULL)) {
		return err_set(err, WEFT_EUSAGE, "weft %s: give --topology or "
			       "--job, and not both", c->verb);
	}
	if (job) {
		r = cli_load_job_schedule(c, job, &s, err);
		if (r == 0) {
			r = verify(c, coll_topo(s), job, err);
		}
	} else {
		r = cli_load_topology(expr, &t, &name, err);
		if (r == 0) {
			r = verify(c, t, name, err);
		}
	}
	coll_free(s);
	topo_free(t);
	free(name);
	return r;
}
