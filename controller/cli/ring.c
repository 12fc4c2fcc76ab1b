/* weft ring plan, weft rwa solve: light on WDM rings, without a fabric. */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/private.h"
#include "optree/optree.h"
#include "rwa/rwa.h"

#define MAX_RING 65536
#define MAX_SOLVE 4096
#define DEFAULT_ALPHA_NS 25000
#define DEFAULT_RATE_BPS INT64_C(40000000000)
#define NS_PER_S INT64_C(1000000000)

/* ---- ring plan ---- */

static int read_ring(const struct cli *c, struct optree_params *p,
		     struct err *err)
{
	const char *name = cli_opt(c, "algorithm");
	int64_t n = 0, channels = 0, fibres = 1, depth = 0;
	int r;

	if ((r = cli_need(c, "nodes", err)) ||
	    (r = cli_need(c, "channels", err)) ||
	    (r = cli_need(c, "size", err)) ||
	    (r = cli_opt_int(c, "nodes", 2, MAX_RING, &n, err)) ||
	    (r = cli_opt_int(c, "channels", 1, UINT16_MAX, &channels, err)) ||
	    (r = cli_opt_int(c, "fibres", 1, UINT8_MAX, &fibres, err)) ||
	    (r = cli_opt_int(c, "depth", 1, OPTREE_MAX_DEPTH, &depth, err))) {
		return r;
	}
	if (name && strcmp(name, "auto") != 0 && strcmp(name, "optree") != 0) {
		err_set(err, WEFT_EUNSUPPORTED,
			"--algorithm %s: not supported in this version", name);
		err_hint(err, "supported: auto, optree");
		return err->code;
	}
	*p = (struct optree_params){
		.n = (int)n, .channels = (int)channels, .fibres = (int)fibres,
		.depth = (int)depth, .channel_bps = DEFAULT_RATE_BPS,
		.alpha_ns = DEFAULT_ALPHA_NS,
	};
	if ((r = cli_opt_unit(c, "size", UNIT_BYTES, &p->shard_bytes, err)) ||
	    (r = cli_opt_unit(c, "alpha", UNIT_NS, &p->alpha_ns, err)) ||
	    (r = cli_opt_unit(c, "rate", UNIT_BPS, &p->channel_bps, err))) {
		return r;
	}
	if (p->channel_bps < 1 || p->alpha_ns < 0) {
		return err_set(err, WEFT_EUSAGE,
			       "weft %s: --rate must be positive and --alpha "
			       "not negative", c->verb);
	}
	return 0;
}

/* OpTree as published: theorems 1 to 3, at the depth of theorem 2. */
static int64_t published_time_ns(const struct optree_params *p)
{
	int w = p->channels * p->fibres;
	__int128 steps = optree_closed_form(p->n, w, optree_best_depth(p->n));
	__int128 bits = (__int128)p->shard_bytes * 8 * NS_PER_S * steps;

	bits = (bits + p->channel_bps - 1) / p->channel_bps;
	bits += steps * p->alpha_ns;
	return bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
}

static void out_levels(struct out *o, const struct optree_plan *plan)
{
	out_array(o, "levels");
	for (int i = 0; i < plan->n_levels; i++) {
		const struct optree_level *l = &plan->level[i];

		out_object(o, NULL);
		out_int(o, "level", i + 1);
		out_int(o, "subsets", l->subsets);
		out_int(o, "members", l->members);
		out_int(o, "items", l->items);
		out_int(o, "steps", l->steps);
		out_end(o);
	}
	out_end(o);
}

static void out_ring(const struct cli *c, struct out *o,
		     const struct optree_params *p,
		     const struct optree_plan *plan)
{
	out_str(o, "algorithm", "optree");
	out_int(o, "nodes", p->n);
	out_int(o, "channels", p->channels);
	out_int(o, "fibres", p->fibres);
	out_int(o, "depth", plan->depth);
	out_int(o, "radix", plan->radix);
	/* What arrived in one level is sent on in the next. */
	out_int(o, "rounds", plan->n_levels);
	out_int(o, "steps", plan->steps);
	out_int(o, "closed_form_steps", plan->closed_form_steps);
	out_int(o, "lightpaths", plan->lightpaths);
	out_int(o, "colours_over_bound", plan->colours_over_bound);
	cli_out_ns(c, o, "time", plan->time_ns);
	cli_out_ns(c, o, "bound", plan->bound_ns);
	cli_out_gap(c, o, "gap", plan->gap);
	cli_out_ns(c, o, "optree_time", published_time_ns(p));
	out_levels(o, plan);
}

int cmd_ring_plan(struct cli *c, struct err *err)
{
	const char *path = cli_opt(c, "output");
	struct optree_params p;
	struct optree_plan plan;
	struct out *o;
	int r = read_ring(c, &p, err);

	if (r || (r = optree_plan(&p, &plan, err))) {
		return r;
	}
	if (path) {
		r = cli_write_schedule(plan.sched, NULL, path, err);
	}
	if (r == 0 && !(path && strcmp(path, "-") == 0)) {
		o = out_new(c->format);
		if (o) {
			out_ring(c, o, &p, &plan);
		}
		r = cli_print(o, err);
	}
	optree_plan_fini(&plan);
	return r;
}

/* ---- rwa solve ---- */

/* As many channels as any all-to-all of n can need, within what a channel
 * number holds. */
static int enough_channels(int64_t n)
{
	return n * n / 8 + 1 > UINT16_MAX ? UINT16_MAX : (int)(n * n / 8 + 1);
}

static int solve_ring(int64_t n, int64_t channels, struct rwa_result *res,
		      struct err *err)
{
	struct rwa_ring ring = {
		.n = (int)n, .fibres = 1,
		.channels = channels ? (int)channels : enough_channels(n),
	};
	struct rwa_arc *arcs = calloc((size_t)(n * (n - 1)), sizeof(*arcs));
	int32_t *members = calloc((size_t)n, sizeof(*members));
	int r;

	if (!arcs || !members) {
		r = err_nomem(err);
		goto out;
	}
	for (int i = 0; i < ring.n; i++) {
		members[i] = i;
	}
	r = rwa_all_to_all(&ring, members, ring.n, false, arcs, res, err);
	if (r == 0) {
		r = rwa_ring_check(&ring, arcs, n * (n - 1), err);
	}
out:
	free(arcs);
	free(members);
	return r;
}

int cmd_rwa_solve(struct cli *c, struct err *err)
{
	int64_t n = 0, channels = 0;
	struct rwa_result res;
	struct out *o;
	int r;

	if (c->argc > 0) {
		err_set(err, WEFT_EUNSUPPORTED,
			"%s: instances from files are not supported in this "
			"version", c->argv[0]);
		err_hint(err, "supported: weft rwa solve --ring N "
			      "[--channels W]");
		return err->code;
	}
	if ((r = cli_need(c, "ring", err)) ||
	    (r = cli_opt_int(c, "ring", 2, MAX_SOLVE, &n, err)) ||
	    (r = cli_opt_int(c, "channels", 1, UINT16_MAX, &channels, err)) ||
	    (r = solve_ring(n, channels, &res, err))) {
		return r;
	}
	o = out_new(c->format);
	if (o) {
		out_int(o, "nodes", n);
		out_int(o, "channels", res.colours);
		out_int(o, "bound", res.bound);
		cli_out_gap(c, o, "gap",
			    (double)(res.colours - res.bound) / res.bound);
		out_str(o, "method", res.method);
		if (channels) {
			out_int(o, "slots", res.slots);
		}
	}
	return cli_print(o, err);
}
