/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft rwa change: the order in which lightpaths move. Each step names its
 * lightpath as both files do, and has its routes before and after it, so that
 * whoever carries it out needs nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"
#include "rwa/reconfigure/reconfigure.h"

/* Two assignments of one network, and the order of moves between them.
 * step_ns: what a step takes, in ns. */
struct moves {
	struct rwa_mesh *m;
	struct rwa_assignment from, to;
	struct rwa_ids old_ids, new_ids;
	struct rwa_change_options opt;
	struct rwa_change change;
	int64_t dark;		/* of the old ones, over fibres that are cut */
	int64_t step_ns;	/* 0: not given */
};

static void moves_fini(struct moves *v)
{
	rwa_mesh_free(v->m);
	rwa_assignment_fini(&v->from);
	rwa_assignment_fini(&v->to);
	rwa_ids_fini(&v->old_ids);
	rwa_ids_fini(&v->new_ids);
	rwa_change_fini(&v->change);
}

/* One more than the highest channel in use, at least `least`. */
static int64_t channels_of(const struct rwa_assignment *a, int64_t least)
{
	for (size_t h = 0; h < a->hops.n; h++) {
		if (a->hops.v[h].channel >= least) {
			least = a->hops.v[h].channel + 1;
		}
	}
	return least;
}

/* Backups that share channels are not all lit at a time, and in the steps of a change all are. */
static int refuse_shared(const struct rwa_mesh *m, struct err *err)
{
	char from[64], to[64];

	for (size_t d = 0; d < m->demands.n; d++) {
		const struct rwa_mesh_demand *x = &m->demands.v[d];

		if (x->protect == RWA_SHARED) {
			return err_set(err, WEFT_EUNSUPPORTED, "demand %s -> %s: changes of shared "
				       "backups are not supported",
				       rwa_mesh_node_name(m, x->src, from, sizeof(from)),
				       rwa_mesh_node_name(m, x->dst, to, sizeof(to)));
		}
	}
	return 0;
}

/* --channels is at least what both assignments use, with the guard band. */
static int read_moves(const struct cli *c, struct moves *v, struct err *err)
{
	int64_t channels = 1;
	int r = cli_read_network(c->argv[0], 0, &v->m, err);

	if (r || (r = refuse_shared(v->m, err))) {
		return r;
	}
	/* The lightpaths alone say who wants what. */
	rwa_mesh_clear_demands(v->m);
	if ((r = cli_read_lightpaths(v->m, c->argv[1], true, &v->from, &v->old_ids,
				     &v->dark, err)) ||
	    (r = cli_read_lightpaths(v->m, c->argv[2], true, &v->to, &v->new_ids, NULL,
				     err))) {
		return r;
	}
	channels = channels_of(&v->to, channels_of(&v->from, channels)) +
		   v->m->guard.above;
	if ((r = cli_opt_int(c, "channels", channels, RWA_MESH_MAX_CHANNELS, &channels, err)) ||
	    (r = cli_opt_unit(c, "switch-time", UNIT_NS, &v->step_ns, err))) {
		return r;
	}
	v->opt = (struct rwa_change_options){
		.channels = (int)channels,
		.by_domain = cli_has(c, "by-domain"),
	};
	return rwa_change_plan(v->m, &v->from, &v->to, &v->opt, &v->change, err);
}

/* The demand of lightpath i, which is in the old assignment or in the new
 * one. */
static const struct rwa_mesh_demand *ends(const struct moves *v, int32_t i)
{
	const struct rwa_changed *l = &v->change.lightpaths.v[i];
	int32_t d = l->old_path >= 0 ? v->from.paths.v[l->old_path].demand
				     : v->to.paths.v[l->new_path].demand;

	return &v->m->demands.v[d];
}

/* {old_id, new_id, from, to}: the ids are those of the two files, null where a
 * lightpath is in one of them only. */
static void out_ends(struct out *o, const struct moves *v, int32_t i)
{
	const struct rwa_changed *l = &v->change.lightpaths.v[i];
	const struct rwa_mesh_demand *d = ends(v, i);
	char name[16];

	out_str(o, "old_id", l->old_path < 0 ? NULL : v->old_ids.v.v[l->old_path]);
	out_str(o, "new_id", l->new_path < 0 ? NULL : v->new_ids.v.v[l->new_path]);
	out_str(o, "from", rwa_mesh_node_name(v->m, d->src, name, sizeof(name)));
	out_str(o, "to", rwa_mesh_node_name(v->m, d->dst, name, sizeof(name)));
}

/* As the files have it, [{to, fibre, channel}]; in tables "b/0:3 c/0:3". Dark:
 * no hops. */
static void out_route(const struct cli *c, struct out *o, const char *key, const struct moves *v,
		      struct rwa_place at)
{
	const struct rwa_hop *h = v->change.hops.v + at.first;
	struct buf b = { 0 };
	char name[16];

	if (c->format != OUT_TABLE) {
		cli_out_hops(o, key, v->m, h, at.n);
		return;
	}
	for (int32_t k = 0; k < at.n; k++) {
		buf_printf(&b, "%s%s/%d:%d", k ? " " : "",
			   rwa_mesh_node_name(v->m, v->m->arcs.v[h[k].arc].dst, name,
					      sizeof(name)),
			   h[k].fibre, h[k].channel);
	}
	out_str(o, key, at.n ? buf_cstr(&b) : "dark");
	buf_fini(&b);
}

static const char *domain_name(const struct moves *v, int32_t domain)
{
	return domain < 0 ? "-" : v->m->domains.v[domain];
}

/* "steps": [{step, domain, do, old_id, new_id, from, to, old_route, new_route}],
 * the routes before and after it. Steps of a phase follow one another; the
 * domain is told with --by-domain. */
static void out_steps(const struct cli *c, struct out *o, const struct moves *v)
{
	static const char *const kinds[] = { "add", "drop", "move", "reroute",
					     "cut" };
	size_t phase = 0;

	out_array(o, "steps");
	for (int64_t k = 0; k < (int64_t)v->change.steps.n; k++) {
		const struct rwa_step *s = &v->change.steps.v[k];
		const struct rwa_phase *p = v->change.phases.v + phase;

		out_object(o, NULL);
		out_int(o, "step", k);
		if (v->opt.by_domain) {
			phase += k == p->first + p->steps;
			p = v->change.phases.v + phase;
			out_str(o, "domain", domain_name(v, p->domain));
		}
		out_str(o, "do", kinds[s->kind]);
		out_ends(o, v, s->lightpath);
		out_route(c, o, "old_route", v, s->old);
		out_route(c, o, "new_route", v, s->new);
		out_end(o);
	}
	out_end(o);
}

/* "interruptions": lightpaths that no order keeps up, after which step they
 * go dark and for how many. */
static void out_interruptions(const struct cli *c, struct out *o, const struct moves *v)
{
	out_array(o, "interruptions");
	for (size_t k = 0; k < v->change.cuts.n; k++) {
		const struct rwa_cut *cut = &v->change.cuts.v[k];

		out_object(o, NULL);
		out_ends(o, v, cut->lightpath);
		out_int(o, "after_step", cut->first);
		out_int(o, "steps", cut->steps);
		if (v->step_ns) {
			cli_out_ns(c, o, "time", cut->steps * v->step_ns);
		}
		out_end(o);
	}
	out_end(o);
}

/* "renamed": [{old_id, new_id, from, to}], the lightpaths that stay where they are
 * and are called something else in the new file. */
static void out_renamed(struct out *o, const struct moves *v)
{
	out_array(o, "renamed");
	for (int32_t i = 0; i < (int32_t)v->change.lightpaths.n; i++) {
		const struct rwa_changed *l = &v->change.lightpaths.v[i];

		if (l->kept && strcmp(v->old_ids.v.v[l->old_path], v->new_ids.v.v[l->new_path])) {
			out_object(o, NULL);
			out_ends(o, v, i);
			out_end(o);
		}
	}
	out_end(o);
}

/* Counts of lightpaths (kept, moved, added, dropped, rerouted, interrupted),
 * phases, the channels that are used at any moment, old ones over fibres that are cut,
 * interruptions, steps, lightpaths renamed. */
int cmd_rwa_change(struct cli *c, struct err *err)
{
	struct moves v = { 0 };
	int r = read_moves(c, &v, err);

	if (r == 0) {
		struct out *o = out_new(c->format);

		out_int(o, "kept", v.change.kept);
		out_int(o, "moved", v.change.moved);
		out_int(o, "added", v.change.added);
		out_int(o, "dropped", v.change.dropped);
		out_int(o, "rerouted", v.change.rerouted);
		out_int(o, "interrupted", (int64_t)v.change.cuts.n);
		out_int(o, "phases", (int64_t)v.change.phases.n);
		out_int(o, "channels", v.opt.channels);
		out_int(o, "dark_before", v.dark);
		out_interruptions(c, o, &v);
		out_steps(c, o, &v);
		out_renamed(o, &v);
		r = cli_print(o, err);
	}
	moves_fini(&v);
	return r;
}
