/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When resonators are set: each as soon as the light that touched it last is
 * gone. A step then begins when the last of its resonators is ready.
 */
#include "optree/private.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

struct tuned_resonator {
	int32_t last;		/* step with light on it; -1: none yet */
	bool on, wanted;
	bool touched;		/* in this step */
};

struct tuner {
	const struct optree_params *p;
	const struct coll_sched *s;
	struct tuned_resonator *all;
	VEC(int64_t) touched;
	int64_t *load;		/* per arc: chunks, then lights */
	int ring;		/* its nodes */
	__int128 chunk, link, retune, convert;
	struct retune_timeline *out;
};

static void touch(struct tuner *t, int64_t which, bool on)
{
	struct tuned_resonator *x = &t->all[which];

	x->wanted |= on;
	if (x->touched) {
		return;
	}
	x->touched = true;
	vec_push(&t->touched, which);
}

/* All resonators on the path of a lightpath. */
static void touch_route(struct tuner *t, const struct coll_light *l)
{
	const struct topo_arc *a = topo_arc(coll_topo(t->s), l->arc);
	int at = t->p->at ? t->p->at[a->src] : a->src;
	int by = l->dir == RWA_CW ? 1 : t->ring - 1;
	int links = optree_links(t->p, a->src, a->dst, l->dir);
	int64_t row = ((int64_t)(l->dir * t->p->fibres + l->fibre) *
		       t->p->channels + l->channel) * t->ring;

	touch(t, 2 * (row + at) + 1, true);
	for (int k = 1; k < links; k++) {
		at = (at + by) % t->ring;
		touch(t, 2 * (row + at), false);
		touch(t, 2 * (row + at) + 1, false);
	}
	touch(t, 2 * (row + (at + by) % t->ring), true);
}

/* What is touched must be as it is wanted; when the step can begin. */
static void set_touched(struct tuner *t, int step, __int128 *begin)
{
	for (size_t i = 0; i < t->touched.n; i++) {
		struct tuned_resonator *x = &t->all[t->touched.v[i]];
		__int128 ready = t->retune +
				 (x->last < 0 ? 0 : t->out->end[x->last]);

		/* What it is before the first step, no one knows. */
		if (x->last < 0 || x->on != x->wanted) {
			*begin = ready > *begin ? ready : *begin;
			vec_push(&t->out->changes, (struct retune_change){
				step, x->last, t->touched.v[i], x->wanted });
		}
		x->on = x->wanted;
		x->last = step;
		x->wanted = x->touched = false;
	}
	t->touched.n = 0;
}

/* The most that a lightpath takes for its data and its links. */
static __int128 longest(const struct tuner *t, const struct coll_light *l, int64_t n_l)
{
	size_t m = (size_t)topo_m(coll_topo(t->s));
	__int128 max = 0;

	for (int64_t k = 0; k < n_l; k++) {
		const struct topo_arc *a = topo_arc(coll_topo(t->s), l[k].arc);
		int64_t lights = t->load[m + (size_t)l[k].arc];
		int64_t share = (t->load[l[k].arc] + lights - 1) / lights;
		__int128 lasts = share * t->chunk +
				 optree_links(t->p, a->src, a->dst, l[k].dir) * t->link;

		max = lasts > max ? lasts : max;
	}
	for (int64_t k = 0; k < n_l; k++) {
		t->load[l[k].arc] = t->load[m + (size_t)l[k].arc] = 0;
	}
	return max;
}

static void run_step(struct tuner *t, int step, const struct coll_light *l, int64_t n_l)
{
	size_t m = (size_t)topo_m(coll_topo(t->s));
	__int128 begin = step ? t->out->end[step - 1] : 0;

	for (int64_t k = 0; k < n_l; k++) {
		t->load[m + (size_t)l[k].arc]++;
		touch_route(t, &l[k]);
	}
	set_touched(t, step, &begin);
	t->out->begin[step] = begin;
	t->out->end[step] = begin + longest(t, l, n_l) + t->convert;
}

static void run(struct tuner *t)
{
	int64_t n_x, n_l, i = 0, j = 0;
	const struct coll_xfer *x = coll_xfers(t->s, &n_x);
	const struct coll_light *l = coll_lights(t->s, &n_l);

	for (int step = 0; step < t->out->steps; step++) {
		int64_t from = j;

		for (; i < n_x && x[i].step == step; i++) {
			t->load[x[i].arc] += x[i].last - x[i].first + 1;
		}
		while (j < n_l && l[j].step == step) {
			j++;
		}
		run_step(t, step, l + from, j - from);
	}
}

void retune_timeline(const struct optree_params *p, const struct coll_sched *s,
		     struct retune_timeline *out)
{
	int ring = p->at && p->ring_nodes ? p->ring_nodes : p->n;
	size_t n = (size_t)4 * (size_t)p->fibres * (size_t)p->channels *
		   (size_t)ring;
	size_t steps = (size_t)coll_steps(s);
	__int128 unit = (__int128)p->channel_bps * coll_chunks(s);
	int64_t convert = p->overlap ? p->convert_ns : 0;
	struct tuner t = {
		.p = p, .s = s, .ring = ring, .out = out,
		.chunk = (__int128)p->shard_bytes * 8000000000,
		.link = p->span_delay_ns * unit,
		.retune = (p->alpha_ns - convert) * unit,
		.convert = convert * unit,
		.all = x_new(n, sizeof(*t.all)),
		.load = x_new(2 * (size_t)topo_m(coll_topo(s)) + 1, sizeof(*t.load)),
	};

	*out = (struct retune_timeline){
		.steps = (int)steps,
		.begin = x_new(steps + 1, sizeof(*out->begin)),
		.end = x_new(steps + 1, sizeof(*out->end)),
	};
	for (size_t k = 0; k < n; k++) {
		t.all[k].last = -1;
	}
	run(&t);
	free(t.all);
	free(t.load);
	vec_fini(&t.touched);
}

void retune_fini(struct retune_timeline *t)
{
	free(t->begin);
	free(t->end);
	vec_fini(&t->changes);
	memset(t, 0, sizeof(*t));
}
