/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft schedule make --collective all-to-all: from options to a flow and its
 * schedule.
 *
 * An all-to-all is made from a multicommodity flow (collective/flow): the
 * flow gives the best rate with a proven bound, paths carry it, chunks make
 * it whole, and steps order it. The algorithms differ in how much of that
 * they do: mcf, link-mcf and grouped are forms of the same linear program,
 * pmcf, disjoint, single-path and shortest-path choose paths, and tsmcf
 * solves a flow over a number of steps. --rate stops after the flow, --exact
 * asks for the rate as a fraction with a proof, --demands reads a matrix of what
 * is sent. Time limit and Ctrl-C are not
 * errors: the best so far is used, and its gap is told.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/flow/flow.h"
#include "controller/cli/core/private.h"
#include "lib/base/file.h"

/* Bytes of a file of demands. */
#define MAX_DEMANDS (1 << 30)

/* Parts of a link that --host-bandwidth is rounded to. */
#define HOST_PARTS 1000

/* "0.001" or "0.1%": at least 0 and below 1. */
int cli_opt_share(const struct cli *c, const char *name, double *value, struct err *err)
{
	const char *text = cli_opt(c, name);
	char *end;
	double v;

	if (!text) {
		return 0;
	}
	v = strtod(text, &end);
	if (end != text && strcmp(end, "%") == 0) {
		v /= 100;
		end++;
	}
	if (end == text || *end || !(v >= 0 && v < 1)) {
		return err_set(err, WEFT_EUSAGE, "--%s %s: expected a share "
			       "such as 0.001 or 0.1%%, below 1", name, text);
	}
	*value = v;
	return 0;
}

/* Share of a time limit that goes to the exact optimum; the rest is for what
 * is made beside it. */
#define EXACT_TIME 0.5

/* Why a solver stopped short of what was asked. */
static const char *stopped_by(enum mcf_stop stop)
{
	return stop == MCF_TIME ? "time limit"
	       : stop == MCF_CANCELED ? "interrupted" : "no more passes";
}

/* The best rate as a fraction "p/q" in *rate (free() it), its proof checked
 * by other code than made it, and *res of the solution. *rate stays NULL, and
 * the bounds are said on stderr, when none is found in time. Capacities of t
 * are `scale` times what they are called. */
static int find_exact(const struct cli *c, const struct topo *t,
		      const struct coll_make_pairs *pairs, const struct mcf_options *opt,
		      int64_t scale, char **rate, struct mcf_result *res, struct err *err)
{
	struct mcf_proof *proof = NULL;
	struct mcf *p = NULL;
	mpq_t f;
	int r = mcf_new_demands(t, true, pairs->demands, &p, err);

	if (r == 0) {
		r = mcf_exact(p, t, opt, res, &proof, err);
	}
	if (r == 0 && proof) {
		mpq_init(f);
		mpq_inv(f, proof->congestion);
		mpz_mul_si(mpq_denref(f), mpq_denref(f), scale);
		mpq_canonicalize(f);
		*rate = mpq_get_str(NULL, 10, f);
		mpq_clear(f);
	} else if (r == 0) {
		cli_say(c, CLI_NORMAL, "%s: no exact optimum; the rate is "
			"between %.12g and %.12g", stopped_by(res->stop),
			1 / res->congestion / (double)scale,
			1 / res->bound / (double)scale);
	}
	mcf_proof_free(proof);
	mcf_free(p);
	return r;
}

int cli_read_demands(const struct cli *c, const struct topo *t, struct flow_demands *out,
		     struct err *err)
{
	const char *path = cli_opt(c, "demands");
	size_t len;
	char *text;
	int r;

	if (!path) {
		return 0;
	}
	r = file_read(path, MAX_DEMANDS, &text, &len, err);
	if (r) {
		return r;
	}
	r = flow_demands_parse(text, len, topo_ranks(t), out, err);
	free(text);
	return r ? err_wrap(err, "%s", path) : 0;
}

/* --host-bandwidth in whole parts of a link; *scale of them are a link. */
static int read_hosts(const struct cli *c, int64_t *cap, int64_t *scale, struct err *err)
{
	const char *text = cli_opt(c, "host-bandwidth");
	double v;
	char *end;

	*cap = *scale = 1;
	if (!text) {
		return cli_has(c, "nic-forwards")
			? err_set(err, WEFT_EUSAGE, "--nic-forwards needs "
				  "--host-bandwidth") : 0;
	}
	v = strtod(text, &end);
	if (end == text || *end || !(v >= 0.001 && v <= 1e6)) {
		return err_set(err, WEFT_EUSAGE, "--host-bandwidth %s: expected "
			       "a number of links such as 1.5", text);
	}
	if (!cli_has(c, "rate")) {
		return err_set(err, WEFT_EUSAGE, "--host-bandwidth needs "
			       "--rate");
	}
	*cap = (int64_t)(v * HOST_PARTS + 0.5);
	/* In lowest terms: smaller capacities keep the linear program's
	 * numbers small. */
	for (*scale = HOST_PARTS; *cap % 2 == 0 && *scale % 2 == 0;) {
		*cap /= 2;
		*scale /= 2;
	}
	while (*cap % 5 == 0 && *scale % 5 == 0) {
		*cap /= 5;
		*scale /= 5;
	}
	return 0;
}

/* The flow alone, solved with symmetry (--rate); with --host-bandwidth on a
 * digraph in which each host is split from its interface. Results are in
 * links, whatever the scale. */
static int solve_rate(const struct cli *c, const struct topo *t, enum mcf_form form,
		      const struct coll_make_pairs *pairs, struct cli_flow *flow, struct err *err)
{
	struct mcf_result *res = &flow->made.info.flow;
	struct topo *split = NULL;
	struct mcf *p = NULL;
	struct mcf_options exact = pairs->flow;
	int64_t cap, scale;
	int r = read_hosts(c, &cap, &scale, err);

	if (r == 0 && cli_has(c, "host-bandwidth")) {
		r = mcf_split_hosts(t, cap, scale, cli_has(c, "nic-forwards"), &split, err);
		t = split;
	}
	if (r == 0 && cli_has(c, "exact")) {
		exact.deadline = flow_share(&exact.deadline, EXACT_TIME);
		r = find_exact(c, t, pairs, &exact, scale, &flow->exact, res, err);
	}
	if (r == 0 && !flow->exact && form == MCF_FORM_FLOW) {
		r = mcf_rate(t, pairs->demands, &pairs->flow, res, err);
	} else if (!flow->exact) {
		(void)(r || (r = mcf_new_demands(t, true, pairs->demands, &p, err)) ||
		       (r = mcf_solve_form(p, form, &pairs->flow, res, err)));
	}
	res->congestion *= (double)scale;
	res->bound *= (double)scale;
	mcf_free(p);
	topo_free(split);
	return r;
}

int cli_solve_pairs(const struct cli *c, const struct coll_algorithm *algorithm,
		    const struct topo *t, const struct coll_make_pairs *p, struct cli_flow *flow,
		    struct err *err)
{
	struct mcf_options exact = p->flow;
	struct mcf_result of_exact;
	int r = 0;

	if (cli_has(c, "rate") || cli_has(c, "host-bandwidth") || cli_has(c, "nic-forwards")) {
		return solve_rate(c, t, algorithm ? algorithm->form : MCF_FORM_FLOW, p, flow, err);
	}
	if (cli_has(c, "exact")) {
		exact.deadline = flow_share(&exact.deadline, EXACT_TIME);
		r = find_exact(c, t, p, &exact, 1, &flow->exact, &of_exact, err);
	}
	return r;
}

void cli_say_flow(const struct cli *c, const struct cli_flow *flow)
{
	const struct mcf_sched_info *info = &flow->made.info;

	if (info->flow.stop != MCF_REACHED) {
		cli_say(c, CLI_NORMAL, "%s: the best flow so far is within "
			"%.3g %% of the best possible",
			stopped_by(info->flow.stop), info->flow.gap * 100);
	} else if (info->stop != MCF_REACHED) {
		cli_say(c, CLI_NORMAL, "%s: paths, chunks or steps are the "
			"best so far", stopped_by(info->stop));
	}
}

void cli_out_flow(const struct cli *c, struct out *o, const struct cli_flow *flow)
{
	const struct mcf_sched_info *info = &flow->made.info;
	const struct mcf_steps_info *steps = &flow->made.steps;
	double best = info->flow.congestion;

	if (flow->exact) {
		out_str(o, "flow_rate_exact", flow->exact);
	}
	out_real(o, "flow_rate", 1 / best);
	out_real(o, "flow_rate_bound", 1 / info->flow.bound);
	cli_out_gap(c, o, "flow_gap", info->flow.gap);
	if (info->flow.stop != MCF_REACHED || info->stop != MCF_REACHED) {
		out_str(o, "stopped_by", stopped_by(
			info->flow.stop != MCF_REACHED ? info->flow.stop
						       : info->stop));
	}
	cli_out_deadline(o);
	if (flow->made.stepped) {
		out_real(o, "steps_rate", 1 / steps->total);
		out_real(o, "steps_rate_bound", 1 / steps->bound);
		cli_out_gap(c, o, "loss_to_chunks", 1 - steps->total / steps->stepped);
	} else if (info->chunks > 0) {
		out_int(o, "paths", info->paths);
		if (info->routed > 0) {
			out_real(o, "paths_rate", 1 / info->routed);
			out_real(o, "paths_rate_bound", 1 / info->routed_bound);
			cli_out_gap(c, o, "paths_gap", info->routed / info->routed_bound - 1);
		}
		cli_out_gap(c, o, "loss_to_chunks", 1 - best / info->chunked);
		cli_out_gap(c, o, "loss_to_steps", 1 - info->chunked / info->stepped);
		out_int(o, "longest_path", info->longest);
		out_int(o, "steps_to_stagger", info->steps - info->longest);
	}
}
