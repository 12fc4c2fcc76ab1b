/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof of a timeline of retuning: a replay of the ring, one state for each
 * resonator. It shares nothing with retune.c but the timeline.
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "optree/private.h"

struct resonator_state {
	bool on;
	bool set;		/* at least once */
	__int128 idle_since;	/* end of the last light on it */
	__int128 set_since;	/* it is as it is from then on */
};

struct retune_replay {
	const struct optree_params *p;
	const struct coll_sched *s;
	const struct retune_timeline *t;
	struct resonator_state *all;
	int64_t n;
	int ring;
	__int128 unit;		/* of a ns */
};

static int fault(const struct retune_replay *r, int step, int64_t which,
		 const char *what, struct err *err)
{
	int64_t row = which / 2 / r->ring, line = row / r->p->channels;

	return err_set(err, WEFT_EVERIFY, "step %d, position %d, %s fibre %d, "
		       "channel %d: %s", step, (int)(which / 2 % r->ring),
		       line / r->p->fibres ? "counter-clockwise" : "clockwise",
		       (int)(line % r->p->fibres),
		       (int)(row % r->p->channels), what);
}

static int apply(struct retune_replay *r, const struct retune_change *c, int step, struct err *err)
{
	__int128 retune = (r->p->alpha_ns - r->p->convert_ns) * r->unit;
	__int128 from;
	struct resonator_state *x;

	if (c->step != step || c->after < -1 || c->after >= step ||
	    c->resonator < 0 || c->resonator >= r->n) {
		return err_set(err, WEFT_EVERIFY, "a change for step %d after "
			       "step %d in step %d means nothing", c->step,
			       c->after, step);
	}
	x = &r->all[c->resonator];
	from = c->after < 0 ? 0 : r->t->end[c->after];
	if (from < x->idle_since) {
		return fault(r, step, c->resonator, "set while light is on it", err);
	}
	if (x->set && from < x->set_since) {
		return fault(r, step, c->resonator, "set twice at a time", err);
	}
	x->on = c->on;
	x->set = true;
	x->set_since = from + retune;
	return 0;
}

/* The resonator is as light of this step wants it. */
static int carry(struct retune_replay *r, int step, int64_t which, bool on, struct err *err)
{
	struct resonator_state *x = &r->all[which];

	if (!x->set || x->on != on) {
		return fault(r, step, which, !on ? "does not let light pass"
			     : which % 2 ? "does not add" : "does not drop",
			     err);
	}
	if (x->set_since > r->t->begin[step]) {
		return fault(r, step, which, "light before it is tuned", err);
	}
	x->idle_since = r->t->end[step];
	return 0;
}

static int carry_light(struct retune_replay *r, const struct coll_light *l, struct err *err)
{
	const struct topo_arc *a = topo_arc(coll_topo(r->s), l->arc);
	int from = r->p->at ? r->p->at[a->src] : a->src;
	int to = r->p->at ? r->p->at[a->dst] : a->dst;
	int64_t row = ((int64_t)(l->dir * r->p->fibres + l->fibre) *
		       r->p->channels + l->channel) * r->ring;
	int rc = carry(r, l->step, 2 * (row + from) + 1, true, err);
	int at = from;

	while (!rc) {
		at = l->dir == RWA_CW ? at + 1 : at - 1;
		at = at < 0 ? r->ring - 1 : at == r->ring ? 0 : at;
		if (at == to) {
			return carry(r, l->step, 2 * (row + at), true, err);
		}
		if (!(rc = carry(r, l->step, 2 * (row + at), false, err))) {
			rc = carry(r, l->step, 2 * (row + at) + 1, false, err);
		}
	}
	return rc;
}

/* Links of the ring that a lightpath passes. */
static int links_of(const struct retune_replay *r, const struct coll_light *l)
{
	const struct topo_arc *a = topo_arc(coll_topo(r->s), l->arc);
	int from = r->p->at ? r->p->at[a->src] : a->src;
	int to = r->p->at ? r->p->at[a->dst] : a->dst;

	return ((l->dir == RWA_CW ? to - from : from - to) + r->ring) % r->ring;
}

/* Begins after the step before, and is long enough for what arc x[0] .. and
 * its lights carry, and to arrive. */
static int check_length(const struct retune_replay *r, int step, const struct coll_xfer *x,
			int64_t n_x, const struct coll_light *l, int64_t n_l, struct err *err)
{
	const struct retune_timeline *t = r->t;
	__int128 room = t->end[step] - t->begin[step] -
			r->p->convert_ns * r->unit;
	int64_t k = 0;

	if (t->begin[step] < (step ? t->end[step - 1] : 0)) {
		return err_set(err, WEFT_EVERIFY, "step %d begins before its data is there", step);
	}
	/* Both are sorted by arc. */
	for (int64_t i = 0; i < n_x;) {
		int64_t chunks = 0, lights = 0, links = 0;
		int32_t arc = x[i].arc;

		for (; i < n_x && x[i].arc == arc; i++) {
			chunks += x[i].last - x[i].first + 1;
		}
		for (; k < n_l && l[k].arc <= arc; k++) {
			lights += l[k].arc == arc;
			links = l[k].arc == arc && links_of(r, &l[k]) > links
					? links_of(r, &l[k]) : links;
		}
		chunks = lights ? (chunks + lights - 1) / lights : 0;
		if (!lights || chunks * (__int128)r->p->shard_bytes * 8000000000 +
			       links * r->p->span_delay_ns * r->unit > room) {
			return err_set(err, WEFT_EVERIFY, "step %d is shorter "
				       "than its data on arc %d", step, arc);
		}
	}
	return 0;
}

static int replay(struct retune_replay *r, struct err *err)
{
	int64_t n_x, n_l, i = 0, j = 0;
	const struct coll_xfer *x = coll_xfers(r->s, &n_x);
	const struct coll_light *l = coll_lights(r->s, &n_l);
	size_t c = 0;
	int rc = 0;

	for (int step = 0; step < r->t->steps && !rc; step++) {
		int64_t xi = i, lj = j;

		while (i < n_x && x[i].step == step) {
			i++;
		}
		while (j < n_l && l[j].step == step) {
			j++;
		}
		rc = check_length(r, step, x + xi, i - xi, l + lj, j - lj, err);
		while (!rc && c < r->t->changes.n && r->t->changes.v[c].step <= step) {
			rc = apply(r, &r->t->changes.v[c++], step, err);
		}
		for (; lj < j && !rc; lj++) {
			rc = carry_light(r, &l[lj], err);
		}
	}
	return rc;
}

int retune_check(const struct optree_params *p, const struct coll_sched *s,
		 const struct retune_timeline *t, struct err *err)
{
	struct retune_replay r = {
		.p = p, .s = s, .t = t,
		.ring = p->at && p->ring_nodes ? p->ring_nodes : p->n,
		.unit = (__int128)p->channel_bps * coll_chunks(s),
	};
	int rc;

	if (t->steps != coll_steps(s)) {
		return err_set(err, WEFT_EVERIFY, "times of %d steps, the "
			       "schedule has %d", t->steps, coll_steps(s));
	}
	r.n = (int64_t)4 * p->fibres * p->channels * r.ring;
	r.all = x_new((size_t)r.n, sizeof(*r.all));
	rc = replay(&r, err);
	free(r.all);
	return rc;
}
