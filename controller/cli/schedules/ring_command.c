/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft ring plan, and weft rwa solve --ring: collectives and lightpaths on
 * WDM rings, without a fabric.
 *
 * "ring plan" turns options into struct optree_params, has optree make the
 * plan, and prints what it costs against its bound; the schedule itself is
 * expanded only when -o wants it. Channels are given in one of two ways: -w
 * and --fibres F for equal fibres, or a list of the channels of every fibre
 * by direction, to which --use adds a window of channels. Defaults are those
 * of the OpTree papers' ring: 40 Gbit/s a channel and 25 us a step.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"
#include "lib/base/alloc.h"
#include "lib/base/file.h"
#include "lib/base/number/units.h"
#include "optree/optree.h"
#include "rwa/mesh/mesh.h"
#include "rwa/ring/ring.h"

/* Limits: nodes of a ring, fibres of a direction, nodes of --ring. */
#define MAX_RING 65536
#define MAX_FIBRES 255
#define MAX_SOLVE 4096
#define DEFAULT_ALPHA_NS 25000
#define DEFAULT_RATE_BPS INT64_C(40000000000)

/* ---- ring plan ---- */

/* The terms of --loss, apart by commas: "launch=0dBm,span=0.2dB". Each sets a
 * field of struct rwa_loss; names and units are those of fabric files. */
static const struct loss_name {
	const char *name;
	size_t offset;
	enum unit_kind unit;
} loss_names[] = {
	{ "launch", offsetof(struct rwa_loss, launch_mdbm), UNIT_MDBM },
	{ "sensitivity", offsetof(struct rwa_loss, sensitivity_mdbm),
	  UNIT_MDBM },
	{ "margin", offsetof(struct rwa_loss, margin_mdb), UNIT_MDB },
	{ "add", offsetof(struct rwa_loss, add_mdb), UNIT_MDB },
	{ "drop", offsetof(struct rwa_loss, drop_mdb), UNIT_MDB },
	{ "pass-by", offsetof(struct rwa_loss, pass_mdb), UNIT_MDB },
	{ "span", offsetof(struct rwa_loss, span_mdb), UNIT_MDB },
};

/* "span=0.2dB" into its field. Losses are not negative, powers may be. */
static int read_loss_term(const char *term, struct rwa_loss *loss, struct err *err)
{
	const char *value = strchr(term, '=');

	for (size_t k = 0; value && k < sizeof(loss_names) / sizeof(loss_names[0]); k++) {
		const struct loss_name *l = &loss_names[k];
		int64_t v;
		int r;

		if (strncmp(term, l->name, strlen(l->name)) != 0 ||
		    term + strlen(l->name) != value) {
			continue;
		}
		r = unit_parse(l->unit, value + 1, &v, err);
		if (r == 0 && (v > INT32_MAX || v < (l->unit == UNIT_MDB ? 0 : INT32_MIN))) {
			r = err_set(err, WEFT_ELIMIT, "out of range");
		}
		if (r) {
			err_wrap(err, "--loss: %s", term);
			return err->code = WEFT_EUSAGE;
		}
		*(int32_t *)((char *)loss + l->offset) = (int32_t)v;
		return 0;
	}
	err_set(err, WEFT_EUSAGE, "--loss: '%s' is none of launch, "
		"sensitivity, margin, add, drop, pass-by, span", term);
	err_hint(err, "for example --loss launch=0dBm,span=0.2dB");
	return err->code;
}

/* All terms of --loss; what is not named has the default of fabric files, and
 * launch is 0 dBm. */
static int read_loss(const char *text, struct rwa_loss *loss, struct err *err)
{
	char *copy = x_dup(text), *save = NULL, *term;
	int r = 0;

	*loss = (struct rwa_loss){
		.sensitivity_mdbm = -17000, .margin_mdb = 3000,
		.add_mdb = 500, .drop_mdb = 500, .pass_mdb = 100,
		.span_mdb = 100,
	};
	term = strtok_r(copy, ",", &save);
	for (; term && r == 0; term = strtok_r(NULL, ",", &save)) {
		r = read_loss_term(term, loss, err);
	}
	free(copy);
	return r;
}

/* Channels of the fibres of one direction: "64,32" up to `end`. */
static int read_fibres(const char *text, const char *end, int dir, struct optree_params *p,
		       struct optree_fibre *out, struct err *err)
{
	int fibres = 0;

	while (text < end) {
		char *after;
		long channels = strtol(text, &after, 10);

		if (after == text || channels < 0 || channels > UINT16_MAX ||
		    fibres >= MAX_FIBRES || after > end || (after < end && *after != ',')) {
			return err_set(err, WEFT_EUSAGE,
				       "--fibres: '%s' is no list of channels "
				       "such as 64,32 or 64,32/48", text);
		}
		if (channels) {
			out[p->n_light++] = (struct optree_fibre){
				.dir = (uint8_t)dir,
				.fibre = (uint8_t)fibres,
				.channels = (int32_t)channels };
		}
		fibres++;
		p->channels = channels > p->channels ? (int)channels
						     : p->channels;
		p->fibres = fibres > p->fibres ? fibres : p->fibres;
		text = after + (after < end);
	}
	return 0;
}

/* Channels and fibres: -w and --fibres F, or the list of --fibres. */
static int read_light(const struct cli *c, struct optree_params *p,
		      struct optree_fibre *light, struct err *err)
{
	const char *list = cli_opt(c, "fibres");
	const char *slash = list ? strchr(list, '/') : NULL;
	const char *end = list ? list + strlen(list) : NULL;
	int64_t channels = 0, fibres = 1;
	int r;

	if (list && (slash || strchr(list, ','))) {
		if (cli_opt(c, "channels")) {
			return err_set(err, WEFT_EUSAGE,
				       "weft %s: --fibres %s says how many "
				       "channels there are, -w does not go "
				       "with it", c->verb, list);
		}
		r = read_fibres(list, slash ? slash : end, RWA_CW, p, light, err);
		if (r) {
			return r;
		}
		return read_fibres(slash ? slash + 1 : list, end, RWA_CCW, p, light, err);
	}
	if ((r = cli_need(c, "channels", err)) ||
	    (r = cli_opt_int(c, "channels", 1, UINT16_MAX, &channels, err)) ||
	    (r = cli_opt_int(c, "fibres", 1, UINT8_MAX, &fibres, err))) {
		return r;
	}
	p->channels = (int)channels;
	p->fibres = (int)fibres;
	return 0;
}

/* --use FIRST-LAST: what there is, cut to these channels of each fibre. */
static int read_use(const struct cli *c, struct optree_params *p,
		    struct optree_fibre *light, struct err *err)
{
	const char *text = cli_opt(c, "use");
	int first, last, end = 0, n = 0;

	if (!text) {
		return 0;
	}
	if (sscanf(text, "%d-%d%n", &first, &last, &end) != 2 || text[end] ||
	    first < 0 || last < first || last >= p->channels) {
		return err_set(err, WEFT_EUSAGE,
			       "--use %s: FIRST-LAST of channels 0 to %d",
			       text, p->channels - 1);
	}
	for (int f = 0; !p->n_light && f < 2 * p->fibres; f++) {
		light[f] = (struct optree_fibre){ .dir = f & 1,
						  .fibre = (uint8_t)(f / 2),
						  .channels = p->channels };
	}
	p->n_light = p->n_light ? p->n_light : 2 * p->fibres;
	for (int k = 0; k < p->n_light; k++) {
		int stop = light[k].channels;

		if (first < stop) {
			stop = last + 1 < stop ? last + 1 : stop;
			light[n] = light[k];
			light[n].first = first;
			light[n++].channels = stop - first;
		}
	}
	p->n_light = n;
	return 0;
}

/* Sizes and rates; p->overlap is set before, as --conversion depends on
 * it. */
static int read_times(const struct cli *c, struct optree_params *p, struct err *err)
{
	int r;

	if ((r = cli_opt_unit(c, "size", UNIT_BYTES, &p->shard_bytes, err)) ||
	    (r = cli_opt_unit(c, "alpha", UNIT_NS, &p->alpha_ns, err)) ||
	    (r = cli_opt_unit(c, "conversion", UNIT_NS, &p->convert_ns,
			      err)) ||
	    (r = cli_opt_unit(c, "span-delay", UNIT_NS, &p->span_delay_ns, err)) ||
	    (r = cli_opt_unit(c, "rate", UNIT_BPS, &p->channel_bps, err))) {
		return r;
	}
	if (p->channel_bps < 1 || p->alpha_ns < 0) {
		return err_set(err, WEFT_EUSAGE,
			       "weft %s: --rate must be positive and --alpha "
			       "not negative", c->verb);
	}
	if (p->convert_ns && !p->overlap) {
		return err_set(err, WEFT_EUSAGE, "weft %s: --conversion is of --overlap", c->verb);
	}
	return 0;
}

/* All options into *p, which borrows loss and light: those must outlive
 * it. */
static int read_ring(const struct cli *c, struct optree_params *p, enum optree_algorithm *how,
		     struct rwa_loss *loss, struct optree_fibre *light, struct err *err)
{
	const char *name = cli_opt(c, "algorithm"), *text = cli_opt(c, "loss");
	int64_t n = 0, depth = 0;
	int r;

	*p = (struct optree_params){
		.channel_bps = DEFAULT_RATE_BPS, .alpha_ns = DEFAULT_ALPHA_NS,
		.loss = text ? loss : NULL, .light = light,
		.overlap = cli_has(c, "overlap"),
		.line = cli_has(c, "segment"),
	};
	if ((r = cli_need(c, "nodes", err)) ||
	    (r = read_light(c, p, light, err)) ||
	    (r = read_use(c, p, light, err)) ||
	    (r = cli_need(c, "size", err)) ||
	    (r = cli_opt_int(c, "nodes", 2, MAX_RING, &n, err)) ||
	    (r = cli_opt_int(c, "depth", 1, OPTREE_MAX_DEPTH, &depth, err)) ||
	    (text && (r = read_loss(text, loss, err)))) {
		return r;
	}
	if (name && optree_algorithm_parse(name, how, err)) {
		return err->code = WEFT_EUSAGE;
	}
	if (depth && *how != OPTREE_AUTO && *how != OPTREE_TREE) {
		return err_set(err, WEFT_EUSAGE,
			       "weft %s: --depth is of OpTree, not of %s",
			       c->verb, optree_algorithm_name(*how));
	}
	p->n = (int)n;
	p->depth = (int)depth;
	return read_times(c, p, err);
}

/* How data moves in a level: "gather" to one of each subset, "tree" of OpTree,
 * "direct" to every member, "relay" from neighbour to neighbour, "mixed" in jumps
 * between, "uneven" into gaps of several sizes. */
static const char *level_kind(const struct optree_plan *plan, const struct optree_level *l)
{
	if (l->gathers) {
		return "gather";
	}
	if (l->stride == 0) {
		return plan->algorithm == OPTREE_TREE ? "tree" : "direct";
	}
	if (l->uneven) {
		return "uneven";
	}
	return l->jump >= l->members / 2 ? "direct"
	       : l->jump == 1            ? "relay"
					 : "mixed";
}

/* "levels": [{level, kind, subsets, members, items, stride, jump, rounds,
 * steps}]; stride to rounds only of rings of rings. */
static void out_levels(struct out *o, const struct optree_plan *plan)
{
	out_array(o, "levels");
	for (int i = 0; i < plan->n_levels; i++) {
		const struct optree_level *l = &plan->level[i];

		out_object(o, NULL);
		out_int(o, "level", i + 1);
		out_str(o, "kind", level_kind(plan, l));
		out_int(o, "subsets", l->subsets);
		out_int(o, "members", l->members);
		out_int(o, "items", l->items);
		if (l->stride) {
			out_int(o, "stride", l->stride);
			out_int(o, "jump", l->jump);
			out_int(o, "rounds", l->rounds);
		}
		out_int(o, "steps", l->steps);
		out_end(o);
	}
	out_end(o);
}

/* Channels a direction, where fibres differ. */
static void out_light(struct out *o, const struct optree_params *p)
{
	int64_t sum[2] = { 0, 0 };

	for (int k = 0; k < p->n_light; k++) {
		sum[p->light[k].dir] += p->light[k].channels;
	}
	out_int(o, "clockwise_channels", sum[RWA_CW]);
	out_int(o, "counter_clockwise_channels", sum[RWA_CCW]);
}

/* {algorithm, collective, nodes, channels, fibres, rounds, steps,
 * closed_form_steps, lightpaths, time_ns, bound_ns, gap, ..., levels}. What
 * does not apply is left out; colours_over_bound counts the wavelengths that
 * the assignment takes above its bound. */
static void out_ring(const struct cli *c, struct out *o, const struct optree_params *p,
		     const struct optree_plan *plan)
{
	out_str(o, "algorithm", optree_algorithm_name(plan->algorithm));
	out_str(o, "collective", coll_kind_name(plan->kind));
	out_int(o, "nodes", p->n);
	out_int(o, "channels", p->channels);
	out_int(o, "fibres", p->fibres);
	if (p->n_light) {
		out_light(o, p);
	}
	if (p->line) {
		out_bool(o, "segment", true);
	}
	if (plan->algorithm == OPTREE_TREE) {
		out_int(o, "depth", plan->depth);
		out_int(o, "radix", plan->radix);
	}
	out_int(o, "chunks", plan->chunks);
	/* What arrived in one round is sent on in the next. */
	out_int(o, "rounds", plan->rounds);
	out_int(o, "steps", plan->steps);
	if (plan->closed_form_steps) {
		out_int(o, "closed_form_steps", plan->closed_form_steps);
	}
	out_int(o, "lightpaths", plan->lightpaths);
	out_int(o, "colours_over_bound", plan->colours_over_bound);
	out_int(o, "worst_loss_mdb", plan->worst_loss_mdb);
	cli_out_ns(c, o, "time", plan->time_ns);
	cli_out_ns(c, o, "bound", plan->bound_ns);
	cli_out_gap(c, o, "gap", plan->gap);
	if (p->overlap) {
		cli_out_ns(c, o, "retune_hidden", plan->retune_hidden_ns);
	}
	if (plan->optree_time_ns) {
		cli_out_ns(c, o, "optree_time", plan->optree_time_ns);
	}
	out_levels(o, plan);
}

static int draw_ring(const char *path, const struct optree_params *p,
		     struct optree_plan *plan, struct err *err)
{
	struct buf svg = { 0 };
	int r = optree_draw(p, plan, &svg, err);

	if (r == 0) {
		r = cli_write_svg(path, &svg, err);
	}
	buf_fini(&svg);
	return r;
}

/* With -o - the schedule stands alone on stdout. */
int cmd_ring_plan(struct cli *c, struct err *err)
{
	struct optree_fibre light[2 * MAX_FIBRES];
	const char *svg = cli_opt(c, "svg");
	const char *path = cli_opt(c, "output");
	enum optree_algorithm how = OPTREE_AUTO;
	struct optree_params p;
	struct optree_plan plan;
	struct rwa_loss loss;
	enum coll_kind kind = COLL_ALLGATHER;
	struct out *o;
	int r = cli_check_svg(svg, err);

	if (r || (r = read_ring(c, &p, &how, &loss, light, err)) ||
	    (r = cli_opt_kind(c, &kind, err)) ||
	    (r = optree_collective(&p, kind, 0, how, &plan, err))) {
		return r;
	}
	if (svg) {
		r = draw_ring(svg, &p, &plan, err);
	}
	if (path && r == 0) {
		r = optree_plan_expand(&p, &plan, err);
		if (r == 0) {
			r = cli_write_schedule(plan.sched, path, err);
		}
	}
	if (r == 0 && !(path && strcmp(path, "-") == 0)) {
		o = out_new(c->format);
		out_ring(c, o, &p, &plan);
		r = cli_print(o, err);
	}
	optree_plan_fini(&plan);
	return r;
}

/* ---- rwa solve ---- */

/* As many channels as an all-to-all of n can need on one fibre, n * n / 8 and
 * what is rounded, within what a channel number holds. */
static int enough_channels(int64_t n)
{
	return n * n / 8 + 1 > UINT16_MAX ? UINT16_MAX : (int)(n * n / 8 + 1);
}

/* The arcs as lightpaths of a mesh, which rwa_mesh_draw() knows as a ring: circles, one a channel;
 * those of later slots are further out. */
static int draw_arcs(const struct rwa_ring *ring, const struct rwa_arc *arcs, int64_t n_arcs,
		     int colours, const char *path, struct err *err)
{
	struct rwa_assignment a = { 0 };
	struct rwa_mesh *m = NULL;
	struct buf svg = { 0 };
	int r = rwa_mesh_new_ring(ring->n, 1, &m, err);

	for (int64_t i = 0; i < n_arcs && r == 0; i++) {
		const struct rwa_arc *x = &arcs[i];
		const struct rwa_mesh_demand d = { .src = x->src, .dst = x->dst, .count = 1 };
		struct rwa_path p = { .demand = (int32_t)i, .first = (int64_t)a.hops.n };

		r = rwa_mesh_add_demand(m, &d, err);
		for (int at = x->src; at != x->dst; p.hops++) {
			int back = (at + ring->n - 1) % ring->n, cw = x->dir == RWA_CW;
			const struct rwa_hop hop = { cw ? at : ring->n + back, 0,
						     x->slot * ring->channels + x->channel };

			vec_push(&a.hops, hop);
			at = cw ? (at + 1) % ring->n : back;
		}
		vec_push(&a.paths, p);
	}
	if (r == 0) {
		rwa_mesh_draw(m, &a, colours, &svg);
		r = cli_write_svg(path, &svg, err);
	}
	buf_fini(&svg);
	rwa_assignment_fini(&a);
	rwa_mesh_free(m);
	return r;
}

/* All-to-all among n nodes, drawn to svg unless that is NULL; the colouring is checked by other
 * code than made it. O(n^2) memory. */
static int solve_ring(int64_t n, int64_t channels, const char *svg, struct rwa_result *res,
		      struct err *err)
{
	struct rwa_ring ring = {
		.n = (int)n, .fibres = 1,
		.channels = channels ? (int)channels : enough_channels(n),
	};
	struct rwa_arc *arcs = x_new((size_t)(n * (n - 1)), sizeof(*arcs));
	int32_t *members = x_new((size_t)n, sizeof(*members));
	int r;

	for (int i = 0; i < ring.n; i++) {
		members[i] = i;
	}
	r = rwa_all_to_all(&ring, members, ring.n, false, arcs, res, err);
	if (r == 0) {
		r = rwa_ring_check(&ring, arcs, n * (n - 1), err);
	}
	if (r == 0 && svg) {
		r = draw_arcs(&ring, arcs, n * (n - 1), res->colours, svg, err);
	}
	free(arcs);
	free(members);
	return r;
}

/* {nodes, channels, bound, gap, method} and, when --channels limits them, the
 * slots that it takes. */
int cmd_rwa_solve(struct cli *c, struct err *err)
{
	static const char *const of_files[] = {
		"demands", "unit", "work", "time-limit", "seed", "objective",
		"previous", "output", NULL
	};
	int64_t n = 0, channels = 0;
	struct rwa_result res;
	struct out *o;
	int r;

	if (!cli_has(c, "ring")) {
		return err_set(err, WEFT_EUSAGE, "weft rwa solve: give a file "
			       "of demands or --ring N");
	}
	if ((r = cli_refuse(c, of_files, "goes with a file, not with --ring",
			    err)) ||
	    (r = cli_check_svg(cli_opt(c, "svg"), err)) ||
	    (r = cli_opt_int(c, "ring", 2, MAX_SOLVE, &n, err)) ||
	    (r = cli_opt_int(c, "channels", 1, UINT16_MAX, &channels, err)) ||
	    (r = solve_ring(n, channels, cli_opt(c, "svg"), &res, err))) {
		return r;
	}
	o = out_new(c->format);
	out_int(o, "nodes", n);
	out_int(o, "channels", res.colours);
	out_int(o, "bound", res.bound);
	cli_out_gap(c, o, "gap", (double)(res.colours - res.bound) / res.bound);
	out_str(o, "method", res.method);
	if (channels) {
		out_int(o, "slots", res.slots);
	}
	return cli_print(o, err);
}
