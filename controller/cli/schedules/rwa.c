/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft rwa solve: routing and wavelength assignment for instances from files
 * (--ring is in ring_command.c).
 *
 * An instance is a .net file of the literature, with demands from a .trf file
 * or all pairs, or a YAML file with its own. The solver (rwa/mesh) stops at
 * the optimum, when its budget or the time is used up or on Ctrl-C, and says how
 * far from its bound it is. With --channels the lightpaths served are what is maximised,
 * otherwise the channels needed are what is minimised; --objective chooses
 * among equally good answers. -o writes the lightpaths as --previous and "rwa
 * change" read them.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/parallel.h"
#include "rwa/mesh/mesh.h"

#define MAX_SEED INT64_MAX

/* By the end of the name: .net, .yaml. */
static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && strcmp(s + n - k, end) == 0;
}

/* All but the last of a file's mistakes are printed here; the last one is left in
 * err, for the edge to print. Frees the list and returns rc. */
static int report_all(int rc, struct err_list *errs, struct err *err)
{
	if (rc) {
		err_list_sort(errs);
		cli_report_list(errs, err);
	}
	err_list_fini(errs);
	return rc;
}

/* Demands from a .trf file, or "all"; a .net file has none of its own. */
static int read_demands(const struct cli *c, struct rwa_mesh *m, struct err *err)
{
	const char *path = cli_opt(c, "demands");
	struct err_list errs = { 0 };
	char *text;
	size_t len;
	int r;

	if (!path && m->demands.n) {
		return 0;
	}
	if (!path) {
		err_set(err, WEFT_EUSAGE, "%s has no demands", c->argv[0]);
		err_hint(err, "name them: --demands FILE.trf, or --demands "
			      "all");
		return err->code;
	}
	if (m->demands.n) {
		return err_set(err, WEFT_EUSAGE,
			       "%s has demands of its own beside --demands",
			       c->argv[0]);
	}
	if (strcmp(path, "all") == 0) {
		return rwa_mesh_all_to_all(m, err);
	}
	r = file_read(path, RWA_MESH_MAX_FILE, &text, &len, err);
	if (r == 0) {
		r = report_all(rwa_mesh_read_trf(m, path, text, &errs), &errs, err);
		free(text);
	}
	return r;
}

int cli_read_network(const char *path, double unit, struct rwa_mesh **out, struct err *err)
{
	struct err_list errs = { 0 };
	char *text;
	size_t len;
	int r = file_read(path, RWA_MESH_MAX_FILE, &text, &len, err);

	*out = NULL;
	if (r) {
		return r;
	}
	r = rwa_mesh_is_sndlib(text) ? rwa_mesh_read_sndlib(path, text, unit, out, &errs)
	    : ends_with(path, ".net") ? rwa_mesh_read_net(path, text, out, &errs)
				      : rwa_mesh_read_yaml(path, text, len, out, &errs);
	free(text);
	return report_all(r, &errs, err);
}

int cli_read_lightpaths(struct rwa_mesh *m, const char *path, bool add, struct rwa_assignment *out,
			struct rwa_ids *ids, int64_t *dark, struct err *err)
{
	char *text;
	size_t len;
	int r = file_read(path, RWA_MESH_MAX_FILE, &text, &len, err);

	if (r) {
		return r;
	}
	r = rwa_mesh_read_lightpaths(m, path, text, len, add, out, ids, dark, err);
	free(text);
	return r;
}

/* --unit, 0 without it. */
static int read_unit(const struct cli *c, double *unit, struct err *err)
{
	const char *text = cli_opt(c, "unit");
	char *end = NULL;

	*unit = text ? strtod(text, &end) : 0;
	if (text && (!*text || *end || !(*unit > 0) || *unit > 1e15)) {
		return err_set(err, WEFT_EUSAGE, "--unit: \"%s\" is not a number above 0", text);
	}
	return 0;
}

static int read_instance(const struct cli *c, struct rwa_mesh **out, struct err *err)
{
	double unit;
	int r;

	*out = NULL;

	if ((r = read_unit(c, &unit, err)) || (r = cli_read_network(c->argv[0], unit, out, err)) ||
	    (r = read_demands(c, *out, err))) {
		rwa_mesh_free(*out);
		*out = NULL;
	}
	return r;
}

/* The instance may have a number of channels; the option wins. Seed and budget
 * make runs repeatable, as far as the time limit does not cut them. */
static int read_options(const struct cli *c, const struct rwa_mesh *m,
			struct rwa_mesh_options *opt, struct err *err)
{
	int64_t channels = m->channels, seed = 1, work = 0;
	struct deadline deadline;
	int r;

	if ((r = cli_opt_int(c, "channels", 1, RWA_MESH_MAX_CHANNELS,
			     &channels, err)) ||
	    (r = cli_opt_int(c, "seed", 0, MAX_SEED, &seed, err)) ||
	    (r = cli_opt_int(c, "work", 1, INT64_MAX / 4, &work, err)) ||
	    (r = cli_opt_deadline(c, &deadline, err))) {
		return r;
	}
	*opt = (struct rwa_mesh_options){
		.channels = (int)channels, .seed = (uint64_t)seed,
		.work = work, .deadline = deadline,
		.threads = parallel_width() > 1 ? 2 : 1,
		.cancel = &cli_interrupted,
	};
	return 0;
}

/* --objective and --previous; the lightpaths of the latter go to *before. */
static int read_objective(const struct cli *c, struct rwa_mesh *m, struct rwa_mesh_options *opt,
			  struct rwa_assignment *before, struct err *err)
{
	const char *name = cli_opt(c, "objective");
	const char *path = cli_opt(c, "previous");
	int64_t dark = 0;
	int r;

	if (!name || strcmp(name, "min-channels") == 0) {
		opt->objective = path && !name ? RWA_MIN_MOVED : RWA_ANY;
	} else if (strcmp(name, "min-moved") == 0) {
		opt->objective = RWA_MIN_MOVED;
	} else if (strcmp(name, "min-max-loss") == 0) {
		opt->objective = RWA_MIN_MAX_LOSS;
	} else {
		return err_set(err, WEFT_EUSAGE, "--objective %s: min-channels, "
			       "min-moved or min-max-loss", name);
	}
	if ((opt->objective == RWA_MIN_MOVED) != (path != NULL)) {
		err_set(err, WEFT_EUSAGE, path ? "--previous is for --objective "
			"min-moved" : "fewest moved since what?");
		err_hint(err, "--previous FILE names the lightpaths before, as "
			      "-o wrote them");
		return err->code;
	}
	opt->before = path ? before : NULL;
	r = path ? cli_read_lightpaths(m, path, false, before, NULL, &dark, err) : 0;
	if (!r && dark) {
		cli_say(c, CLI_NORMAL, "%s: lightpaths over fibres that are cut: %lld", path,
			(long long)dark);
	}
	return r;
}

void cli_out_hops(struct out *o, const char *key, const struct rwa_mesh *m,
		  const struct rwa_hop *hops, int32_t n)
{
	char name[16];

	out_array(o, key);
	for (int32_t k = 0; k < n; k++) {
		out_object(o, NULL);
		out_str(o, "to", rwa_mesh_node_name(m, m->arcs.v[hops[k].arc].dst, name,
						    sizeof(name)));
		out_int(o, "fibre", hops[k].fibre);
		out_int(o, "channel", hops[k].channel);
		out_end(o);
	}
	out_end(o);
}

/* "lightpaths": [{id, from, to, role, hops: [{to, fibre, channel}]}]; the id
 * is the position; role only of protected demands, whose two paths follow each
 * other. */
static void out_paths(struct out *o, const struct rwa_mesh *m, const struct rwa_assignment *a)
{
	bool pair = false;	/* the first of two */
	char name[16];

	out_array(o, "lightpaths");
	for (size_t i = 0; i < a->paths.n; i++) {
		const struct rwa_path *p = &a->paths.v[i];
		const struct rwa_mesh_demand *d = &m->demands.v[p->demand];

		out_object(o, NULL);
		out_fmt(o, "id", "%zu", i);
		out_str(o, "from", rwa_mesh_node_name(m, d->src, name, sizeof(name)));
		out_str(o, "to", rwa_mesh_node_name(m, d->dst, name, sizeof(name)));
		if (d->protect) {
			pair = !pair || a->paths.v[i - 1].demand != p->demand;
			out_str(o, "role", pair ? "working" : "backup");
		}
		cli_out_hops(o, "hops", m, a->hops.v + p->first, p->hops);
		out_end(o);
	}
	out_end(o);
}

/* {channels, bound, lightpaths}, in the format of the file's name. */
static int write_assignment(const struct rwa_mesh *m, const struct rwa_mesh_result *res,
			    const char *path, struct err *err)
{
	struct out *o = out_new(ends_with(path, ".yaml") ? OUT_YAML : OUT_JSON);
	struct buf b = { 0 };
	int r;

	out_int(o, "channels", res->channels);
	out_int(o, "bound", res->bound);
	out_paths(o, m, &res->assignment);
	out_render(o, &b);
	r = file_write_atomic(path, b.data, b.len, FILE_PUBLIC, err);
	out_free(o);
	buf_fini(&b);
	return r;
}

/* --svg: the map, and fibres by channels. */
static int write_drawing(const struct rwa_mesh *m, const struct rwa_mesh_result *res,
			 const char *path, struct err *err)
{
	struct buf b = { 0 };
	int r;

	rwa_mesh_draw(m, &res->assignment, res->channels, &b);
	r = cli_write_svg(path, &b, err);
	buf_fini(&b);
	return r;
}

/* What the second objective came to, with its own bound and gap. */
static void out_objective(struct out *o, const struct rwa_mesh_options *opt,
			  const struct rwa_mesh_result *res)
{
	if (opt->objective == RWA_MIN_MOVED) {
		out_int(o, "moved", res->moved);
		out_int(o, "moved_bound", res->moved_bound);
		out_int(o, "moved_gap", res->moved - res->moved_bound);
	} else if (opt->objective == RWA_MIN_MAX_LOSS) {
		out_real(o, "longest_loss_db", (double)res->loss_mdb / 1e3);
		out_real(o, "longest_loss_bound_db", (double)res->loss_bound_mdb / 1e3);
		out_real(o, "longest_loss_gap_db",
			 (double)(res->loss_mdb - res->loss_bound_mdb) / 1e3);
	}
}

/* {nodes, arcs, demands, channels, bound, gap, method, proof, deadline_met, seconds}
 * and, with --channels, served and served_bound. The gap is of what was
 * optimised. */
static int print_result(const struct cli *c, const struct rwa_mesh *m,
			const struct rwa_mesh_options *opt, const struct rwa_mesh_result *res,
			int64_t took_ns, struct err *err)
{
	struct out *o = out_new(c->format);
	int64_t bound = opt->channels ? res->lightpaths_bound : res->bound;
	int64_t got = opt->channels ? res->lightpaths : res->channels;
	int64_t miss = opt->channels ? bound - got : got - bound;

	out_int(o, "nodes", (int64_t)m->nodes.n);
	out_int(o, "arcs", (int64_t)m->arcs.n);
	out_int(o, "demands", m->lightpaths);
	out_int(o, "channels", res->channels);
	out_int(o, "bound", res->bound);
	if (opt->channels) {
		out_int(o, "served", res->lightpaths);
		out_int(o, "served_bound", res->lightpaths_bound);
	}
	cli_out_gap(c, o, "gap", bound ? (double)miss / (double)bound : 0);
	out_objective(o, opt, res);
	if (res->slots) {
		out_int(o, "working_slots", res->working_slots);
		out_int(o, "backup_slots", res->slots - res->working_slots);
	}
	out_str(o, "method", res->method);
	out_str(o, "proof", res->proof);
	cli_out_deadline(o);
	out_real(o, "seconds", (double)(took_ns / 1000000) / 1e3);
	return cli_print(o, err);
}

/* Writes files first and prints then: what is printed was achieved. */
static int solve(const struct cli *c, struct rwa_mesh *m, struct err *err)
{
	const char *path = cli_opt(c, "output"), *svg = cli_opt(c, "svg");
	int64_t start = clk_now_ns();
	struct rwa_mesh_options opt;
	struct rwa_assignment before = { 0 };
	struct rwa_mesh_result res;
	int r;

	(void)((r = read_options(c, m, &opt, err)) ||
	       (r = read_objective(c, m, &opt, &before, err)) ||
	       (r = rwa_mesh_solve(m, &opt, &res, err)));
	rwa_assignment_fini(&before);
	if (r) {
		return r;
	}
	start = clk_now_ns() - start;
	if (path) {
		r = write_assignment(m, &res, path, err);
	}
	if (r == 0 && svg) {
		r = write_drawing(m, &res, svg, err);
	}
	if (r == 0 && !(path && strcmp(path, "-") == 0)) {
		r = print_result(c, m, &opt, &res, start, err);
	}
	rwa_mesh_result_fini(&res);
	return r;
}

/* "rwa solve" with a file, or else by --ring. */
int cmd_rwa_instance(struct cli *c, struct err *err)
{
	struct rwa_mesh *m;
	int r;

	if (c->argc == 0) {
		return cmd_rwa_solve(c, err);
	}
	if (cli_has(c, "ring")) {
		return err_set(err, WEFT_EUSAGE, "weft rwa solve: --ring beside a file");
	}
	r = cli_check_svg(cli_opt(c, "svg"), err);
	if (r) {
		return r;
	}
	cli_stop_on_signals();
	r = read_instance(c, &m, err);
	if (r == 0) {
		r = solve(c, m, err);
		rwa_mesh_free(m);
	}
	return r;
}
