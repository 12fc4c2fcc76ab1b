/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step simulator of the ring, event by event, held against the closed forms.
 *
 * Every (direction, link, fibre, channel) is a slot that a lightpath holds
 * from when its resonators are tuned until its last flit has left the light,
 * which takes span_delay_ns a link.
 * A step begins when all of the one before has arrived. With ring.overlap a
 * slot is retuned as soon as the step that used it last is over, while others
 * carry data; a lightpath stays tuned until another takes one of its slots.
 */
#ifndef WEFT_TESTS_UNIT_OPTREE_RING_SIM_H
#define WEFT_TESTS_UNIT_OPTREE_RING_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "collective/schedule/schedule.h"
#include "lib/base/alloc.h"
#include "lib/base/err.h"
#include "optree/optree.h"

struct ring_sim_params {
	struct optree_params ring;	/* n, at, channels, fibres, shard_bytes,
					 * channel_bps, span_delay_ns */
	int64_t retune_ns;	/* of the resonators, before each step; with
				 * ring.overlap each step ends with
				 * ring.convert_ns, which is not in it */
	int64_t flit_bytes;	/* whole flits are sent (the paper: 32) */
	int64_t flit_cycle_ps;	/* to convert a flit (the paper: one cycle) */
};

struct ring_sim_result {
	int steps;
	int64_t time_ns;
};

/* One direction, link and colour. */
struct slot {
	int64_t free_at;	/* ps; until then it carries light */
	int32_t src, dst;	/* the lightpath it was tuned for last */
	int32_t step;		/* that used it last, from 1 */
};

struct ring_sim {
	const struct coll_sched *s;
	const struct ring_sim_params *p;
	struct slot *slots;
	int64_t *ends;		/* of steps; ends[0] is the beginning */
	int64_t *chunks;	/* per arc: this step's */
	int32_t *lights;	/* per arc */
	int n, width;
};

/* Time in ps of bytes as flits over one channel: whole flits. Packets of
 * whole flits change nothing, as the last one ends with its last flit. Each
 * flit is converted while the next arrives, so one conversion shows. */
static int64_t sending_ps(const struct ring_sim_params *p, int64_t bytes)
{
	int64_t flits = (bytes + p->flit_bytes - 1) / p->flit_bytes;
	__int128 bits = (__int128)flits * p->flit_bytes * 8;

	if (p->flit_cycle_ps * (__int128)p->ring.channel_bps >
	    (__int128)p->flit_bytes * 8 * 1000000000000) {
		/* The converter is slower than the light. */
		return flits * p->flit_cycle_ps +
		       (int64_t)((__int128)p->flit_bytes * 8 *
				 1000000000000 / p->ring.channel_bps);
	}
	return (int64_t)((bits * 1000000000000 + p->ring.channel_bps - 1) /
			 p->ring.channel_bps) + p->flit_cycle_ps;
}

static struct slot *slot(struct ring_sim *m, const struct coll_light *l,
			 int link)
{
	size_t colour = (size_t)l->fibre * m->p->ring.channels + l->channel;

	return &m->slots[((size_t)l->dir * m->n + link) * m->width + colour];
}

/* The links of a lightpath, one after the other. */
struct kind {
	int link, stop, by, n;
};

static struct kind kind_of(const struct ring_sim *m, const struct coll_light *l)
{
	const struct topo_arc *a = topo_arc(coll_topo(m->s), l->arc);
	bool cw = l->dir == RWA_CW;
	int src = m->p->ring.at ? m->p->ring.at[a->src] : a->src;
	int dst = m->p->ring.at ? m->p->ring.at[a->dst] : a->dst;

	return (struct kind){
		.link = cw ? src : (src + m->n - 1) % m->n,
		.stop = cw ? dst : (dst + m->n - 1) % m->n,
		.by = cw ? 1 : m->n - 1, .n = m->n };
}

static bool next_link(struct kind *w)
{
	w->link = (w->link + w->by) % w->n;
	return w->link != w->stop;
}

/* From when its first bit is sent until that arrives. */
static int64_t delay_ps(const struct ring_sim *m, const struct coll_light *l)
{
	struct kind w = kind_of(m, l);
	int64_t ps = 0;

	do {
		ps += m->p->ring.span_delay_ns * 1000;
	} while (next_link(&w));
	return ps;
}

/* When the lightpath is tuned, if its slots are not disturbed before. */
static int64_t tuned_at(struct ring_sim *m, const struct coll_light *l)
{
	const struct topo_arc *a = topo_arc(coll_topo(m->s), l->arc);
	struct kind w = kind_of(m, l);
	int64_t at = 0;

	do {
		const struct slot *x = slot(m, l, w.link);
		int64_t ready = m->ends[x->step] + m->p->retune_ns * 1000;

		if ((!x->step || x->src != a->src || x->dst != a->dst) &&
		    ready > at) {
			at = ready;
		}
	} while (next_link(&w));
	return at;
}

/* Holds the slots of a lightpath from `begin` until it has sent; WEFT_EVERIFY
 * when another lightpath still holds one. */
static int hold(struct ring_sim *m, const struct coll_light *l,
		int64_t begin, int64_t end, struct err *err)
{
	const struct topo_arc *a = topo_arc(coll_topo(m->s), l->arc);
	struct kind w = kind_of(m, l);

	do {
		struct slot *x = slot(m, l, w.link);

		if (x->free_at > begin || x->step == l->step + 1) {
			return err_set(err, WEFT_EVERIFY,
				       "step %d: channel %d of fibre %d, link "
				       "%d: two lightpaths at a time", l->step,
				       l->channel, l->fibre, w.link);
		}
		*x = (struct slot){ end, a->src, a->dst, l->step + 1 };
	} while (next_link(&w));
	return 0;
}

/* When a step whose lights are l may begin. */
static int64_t begin_of(struct ring_sim *m, const struct coll_light *l,
			int64_t n_l, int64_t now)
{
	int64_t begin = now;

	if (!m->p->ring.overlap) {
		return now + m->p->retune_ns * 1000;
	}
	for (int64_t k = 0; k < n_l; k++) {
		int64_t at = tuned_at(m, &l[k]);

		begin = at > begin ? at : begin;
	}
	return begin;
}

/* Bytes on the fullest of the channels that share an arc's chunks. */
static int64_t share_bytes(const struct ring_sim *m, int arc)
{
	int64_t chunks = (m->chunks[arc] + m->lights[arc] - 1) /
			 m->lights[arc];
	int64_t p = coll_chunks(m->s);
	__int128 bytes = (__int128)chunks * m->p->ring.shard_bytes;

	return (int64_t)((bytes + p - 1) / p);
}

/* A step begins when all of the one before has arrived; then resonators
 * retune, and all sends. *now moves to the end of the step. */
static int run_step(struct ring_sim *m, const struct coll_xfer *x,
		    int64_t n_x, const struct coll_light *l, int64_t n_l,
		    int64_t *now, struct err *err)
{
	int64_t begin = begin_of(m, l, n_l, *now);
	int64_t last = begin;
	int rc = 0;

	for (int64_t k = 0; k < n_l; k++) {
		m->chunks[l[k].arc] = 0;
		m->lights[l[k].arc] = 0;
	}
	for (int64_t k = 0; k < n_l; k++) {
		m->lights[l[k].arc]++;
	}
	for (int64_t k = 0; k < n_x; k++) {
		m->chunks[x[k].arc] += x[k].last - x[k].first + 1;
	}
	for (int64_t k = 0; k < n_l && !rc; k++) {
		int64_t end = begin + sending_ps(m->p,
						 share_bytes(m, l[k].arc)) +
			      delay_ps(m, &l[k]);

		last = end > last ? end : last;
		rc = hold(m, &l[k], begin, end, err);
	}
	*now = last;
	if (m->p->ring.overlap) {
		*now += m->p->ring.convert_ns * 1000;
	}
	return rc;
}

static int run(struct ring_sim *m, struct ring_sim_result *out, struct err *err)
{
	int64_t n_x, n_l, i = 0, j = 0, now = 0;
	const struct coll_xfer *x = coll_xfers(m->s, &n_x);
	const struct coll_light *l = coll_lights(m->s, &n_l);
	int rc = 0;

	for (int step = 0; step < coll_steps(m->s) && !rc; step++) {
		int64_t xi = i, lj = j;

		while (i < n_x && x[i].step == step) {
			i++;
		}
		while (j < n_l && l[j].step == step) {
			j++;
		}
		rc = run_step(m, x + xi, i - xi, l + lj, j - lj, &now, err);
		m->ends[step + 1] = now;
	}
	out->steps = coll_steps(m->s);
	out->time_ns = (now + 999) / 1000;
	return rc;
}

/*
 * Verifies the schedule (with light) and runs it. WEFT_EVERIFY when it does
 * not verify or two lightpaths would hold a slot at a time.
 * O(transfers + hops of all lights).
 */
static inline int ring_simulate(const struct coll_sched *s,
				const struct ring_sim_params *p,
				struct ring_sim_result *out, struct err *err)
{
	struct ring_sim m = { .s = s, .p = p,
			      .n = p->ring.ring_nodes ? p->ring.ring_nodes : p->ring.n,
			      .width = p->ring.channels * p->ring.fibres };
	size_t arcs = (size_t)topo_m(coll_topo(s)) + 1;
	int rc = coll_verify(s, NULL, err);

	*out = (struct ring_sim_result){ 0 };
	if (rc) {
		return rc;
	}
	m.slots = x_new(2 * (size_t)m.n * (size_t)m.width, sizeof(*m.slots));
	m.ends = x_new((size_t)coll_steps(s) + 1, sizeof(*m.ends));
	m.chunks = x_new(arcs, sizeof(*m.chunks));
	m.lights = x_new(arcs, sizeof(*m.lights));
	rc = run(&m, out, err);
	free(m.slots);
	free(m.ends);
	free(m.chunks);
	free(m.lights);
	return rc;
}

#endif
