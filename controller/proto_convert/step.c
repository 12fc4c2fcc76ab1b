/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a training step as messages, and as people read it. */
#include <stdlib.h>

#include "controller/proto_convert/proto_convert.h"
#include "controller/proto_convert/report.h"
#include "lib/base/alloc.h"
#include "lib/base/number/units.h"

/* ---- messages ---- */

static void fill_light(struct msg_step *s, const struct workload *w, const struct workload_light *l,
		       size_t light, size_t *at)
{
	Weft__V1__StepLight *m = &s->lights[light];

	weft__v1__step_light__init(m);
	m->shares = &s->share[*at];
	m->n_shares = l->shares.n;
	for (size_t i = 0; i < l->shares.n; i++, ++*at) {
		const struct workload_share *from = &l->shares.v[i];
		Weft__V1__StepShare *to = &s->shares[*at];
		struct buf axes = { 0 };

		weft__v1__step_share__init(to);
		workload_share_name(w, from, &axes);
		s->axes[*at] = buf_steal(&axes);
		to->axes = s->axes[*at];
		to->ports = from->ports;
		to->topology = from->expr ? from->expr : to->topology;
		s->share[*at] = to;
	}
	s->light[light] = m;
}

static void fill_use(Weft__V1__StepUse *m, const struct workload *w,
		     const struct workload_plan *plan, const struct workload_use *use)
{
	const struct workload_op *op = &w->ops.v[use->op];

	weft__v1__step_use__init(m);
	m->name = op->name;
	m->collective = (char *)(op->shift ? "send" : coll_kind_name(op->kind));
	m->size_bytes = use->max_bytes;
	m->min_bytes = op->min_bytes < op->bytes ? use->min_bytes : 0;
	m->ranks = workload_ranks(w, op->axes);
	m->light = use->light + 1;
	m->time_ns = (int64_t)(use->time_ns + 0.5);
	m->bound_ns = (int64_t)use->bound_ns;
	for (size_t u = 0; u < w->units.n; u++) {
		bool runs = (plan->lights.v[use->light].units >> u & 1) &&
			    (w->units.v[u].ops >> use->op & 1);

		m->calls += runs ? w->units.v[u].calls : 0;
	}
	m->share = use->max_bytes < op->bytes
			   ? 0 : use->time_ns * (double)m->calls / (double)plan->time_ns;
}

void msg_step_init(struct msg_step *s, const struct workload *w, const struct workload_plan *plan)
{
	size_t shares = 0, at = 0;

	for (size_t i = 0; i < plan->lights.n; i++) {
		shares += plan->lights.v[i].shares.n;
	}
	arrays_add(&s->arrays, s->lights, plan->lights.n);
	arrays_add(&s->arrays, s->light, plan->lights.n);
	arrays_add(&s->arrays, s->shares, shares);
	arrays_add(&s->arrays, s->share, shares);
	arrays_add(&s->arrays, s->axes, shares);
	arrays_add(&s->arrays, s->uses, plan->uses.n);
	arrays_add(&s->arrays, s->use, plan->uses.n);
	arrays_add(&s->arrays, s->weights, plan->bound.weights.n);
	weft__v1__step_plan__init(&s->m);
	for (size_t i = 0; i < plan->lights.n; i++) {
		fill_light(s, w, &plan->lights.v[i], i, &at);
	}
	for (size_t i = 0; i < plan->uses.n; i++) {
		fill_use(&s->uses[i], w, plan, &plan->uses.v[i]);
		s->use[i] = &s->uses[i];
	}
	for (size_t i = 0; i < plan->bound.weights.n; i++) {
		s->weights[i] = plan->bound.weights.v[i].y;
	}
	s->n_axes = at;
	s->m.lights = s->light;
	s->m.n_lights = plan->lights.n;
	s->m.uses = s->use;
	s->m.n_uses = plan->uses.n;
	s->m.certificate = s->weights;
	s->m.n_certificate = plan->bound.weights.n;
	s->m.changes = plan->changes;
	s->m.change_ns = plan->change_ns;
	s->m.still_ns = msg_number(&s->still, plan->still_ns >= 0, plan->still_ns);
	s->m.bound_still_ns = plan->bound.still_ns;
	s->m.bound_changes_ns = plan->bound.classes_ns;
	s->m.bound_any_ns = plan->bound.any_ns;
	s->m.exhaustive = plan->exhaustive;
}

void msg_step_fini(struct msg_step *s)
{
	for (size_t i = 0; i < s->n_axes; i++) {
		free(s->axes[i]);
	}
	arrays_fini(&s->arrays);
}

/* ---- for people ---- */

/* A use, and its light for the first of it. */
struct use_row {
	const Weft__V1__StepUse *use;
	const Weft__V1__StepLight *light;
};

static void put_light(struct out *o, const struct use_row *r, const Weft__V1__StepLight *before)
{
	struct buf b = { 0 };

	for (size_t i = 0; r->light != before && i < r->light->n_shares; i++) {
		const Weft__V1__StepShare *s = r->light->shares[i];

		buf_printf(&b, "%s%s %d", i ? ", " : "", s->axes, s->ports);
	}
	out_str(o, "axes and ports", buf_cstr(&b));
	buf_fini(&b);
}

static void put_use(struct out *o, const Weft__V1__StepUse *u)
{
	char text[64], from[64];

	out_str(o, "collective", u->name);
	out_fmt(o, "kind", "%s of %d", u->collective, u->ranks);
	unit_human(UNIT_BYTES, (double)u->min_bytes, from, sizeof(from));
	out_fmt(o, "size", "%s%s%s", u->min_bytes ? from : "", u->min_bytes ? " to " : "",
		unit_human(UNIT_BYTES, (double)u->size_bytes, text, sizeof(text)));
	out_str(o, "time", unit_human(UNIT_NS, (double)u->time_ns, text, sizeof(text)));
	out_int(o, "calls", u->calls);
	out_fmt(o, "share", "%.1f %%", 100 * u->share);
}

/* What still light takes, what changes take, and how near the bounds are. */
static void note_step(struct out *o, const char *job, const Weft__V1__PlanJob *j)
{
	const Weft__V1__StepPlan *s = j->step;
	char step[64], other[64], each[64];

	unit_human(UNIT_NS, (double)j->time_ns, step, sizeof(step));
	if (s->changes > 0) {
		out_note(o, "job %s: a step takes %s, of which %lld changes of light of %s each",
			 job, step, (long long)s->changes,
			 unit_human(UNIT_NS, (double)s->change_ns, each, sizeof(each)));
		out_note(o, "job %s: its circuits are those of light %d", job, s->lit);
	}
	if (s->changes > 0 && s->still_ns) {
		out_note(o, "job %s: light that stays still takes %s", job,
			 unit_human(UNIT_NS, (double)s->still_ns->value, other, sizeof(other)));
	} else if (s->changes > 0) {
		out_note(o, "job %s: hosts have too few ports for light that stays still", job);
	}
	out_note(o, "job %s: no still light takes less than %s, none that changes by collective "
		 "less than %s, none at all less than %s", job,
		 unit_human(UNIT_NS, (double)s->bound_still_ns, step, sizeof(step)),
		 unit_human(UNIT_NS, (double)s->bound_changes_ns, other, sizeof(other)),
		 unit_human(UNIT_NS, (double)s->bound_any_ns, each, sizeof(each)));
	if (!s->exhaustive) {
		out_note(o, "job %s: not all ways to share lights were tried", job);
	}
}

void msg_out_step(struct out *o, const Weft__V1__PlanJob *j)
{
	const Weft__V1__StepPlan *s = j->step;
	const Weft__V1__StepLight *before = NULL;
	char title[96];

	snprintf(title, sizeof(title), "step of job %s", j->name);
	out_array(o, title);
	for (size_t i = 0; i < s->n_uses; i++) {
		struct use_row r = { s->uses[i], s->lights[s->uses[i]->light - 1] };

		out_object(o, NULL);
		out_int(o, "light", r.use->light);
		put_light(o, &r, before);
		put_use(o, r.use);
		out_end(o);
		before = r.light;
	}
	out_end(o);
	note_step(o, j->name, j);
}
