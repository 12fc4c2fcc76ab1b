/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of an algorithm, without its schedule.
 *
 * Where all nodes of a line send as many blocks in a step, what a node holds is a product over the
 * dimensions, and one line tells what all others of its dimension do. So a step is: what each
 * collective that is there puts on the links of its dimension's line; the time of a step is what
 * its slowest message waits for, as coll_time has it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/torus/net.h"
#include "lib/base/order.h"

enum torus_phase { REDUCING, EXCHANGING, GATHERING };

/* A round of a collective in a step of all. */
struct torus_event {
	int step;
	int collective;
	int dimension, line_step;
	enum torus_phase phase;
	double held;		/* of the vector, times the size of the dimension where blocks move:
				 * one block of a line's, or all */
};

/* A message of a step, with those of all its images. */
struct torus_message {
	int dimension, from, to;
	double size;		/* of the vector */
};

struct torus_clock {
	const struct torus_work *w;
	const struct torus_shape *shape;
	const struct coll_cost *cost;
	enum coll_kind kind;
	double vector_ns;	/* of all of it on an arc of capacity 1 */
	double below_ns;	/* what takes as long is of no interest */
	int period[COLL_MAX_DIGITS];
	int16_t *turn[COLL_MAX_DIGITS];	/* by offset: which path messages take; NULL: all */
	struct arrays arrays;
	VEC(struct torus_event) events;
	VEC(struct torus_message) messages;
};

/* ---- what happens when ---- */

static void add_event(struct torus_clock *k, const struct torus_event *e)
{
	vec_push(&k->events, *e);
}

/* The blocks that any node of a line sends in a step. */
static int blocks_sent(const struct torus_line *l, int step)
{
	int sum = 0;

	for (int i = l->first[step]; i < l->first[step + 1]; i++) {
		sum += l->partners.v[i].blocks;
	}
	return sum;
}

static void add_reduction(struct torus_clock *k, const struct torus_event *e, int steps)
{
	struct torus_event back = *e;
	bool reduces = k->kind != COLL_ALLGATHER, gathers = k->kind != COLL_REDUCE_SCATTER;

	if (reduces) {
		add_event(k, e);
	}
	back.phase = GATHERING;
	back.step = steps - 1 - e->step;
	if (gathers) {
		add_event(k, &back);
	}
}

/* All rounds of a collective. left: blocks of a line that a node still has. */
static void add_collective(struct torus_clock *k, int number)
{
	const struct torus_collective *c = &k->w->collective[number];
	int left[COLL_MAX_DIGITS];
	int steps = c->reduced + (k->kind == COLL_ALLREDUCE ? c->steps : 0);

	for (int e = 0; e < k->shape->n_dims; e++) {
		left[e] = k->shape->size[e];
	}
	for (int i = 0; i < c->n_rounds; i++) {
		const struct torus_round *r = &c->round[i];
		const struct torus_line *l = c->line[r->dimension];
		struct torus_event e = { .collective = number, .dimension = r->dimension };

		for (int n = 0; n < r->steps; n++) {
			e.step = r->begin + n;
			e.line_step = l->level[r->level].first + n;
			e.phase = r->exchange ? EXCHANGING : REDUCING;
			e.held = 1.0 / k->w->n_collectives;
			for (int d = 0; d < k->shape->n_dims; d++) {
				int blocks = d == r->dimension && !r->exchange ? 1 : left[d];

				e.held *= (double)blocks / k->shape->size[d];
			}
			if (r->exchange) {
				add_event(k, &e);
			} else {
				add_reduction(k, &e, steps);
			}
			left[r->dimension] -= r->exchange ? 0 : blocks_sent(l, e.line_step);
		}
	}
}

ORDER_BY(by_step, struct torus_event, step, dimension)

/* ---- messages ---- */

/* Moves a message to the image whose sender is in the first period; what goes the same way is one.
 * */
static void add_message(struct torus_clock *k, int e, int from, int to, double size)
{
	int d = k->shape->size[e], back = from - from % k->period[e];
	struct torus_message m = { e, from - back, (to - back + d) % d, size };
	int32_t *number = &k->shape->net[e]->message[m.from * d + m.to];

	if (*number > 0) {
		k->messages.v[*number - 1].size += size;
		return;
	}
	vec_push(&k->messages, m);
	*number = (int32_t)k->messages.n;
}

static void forget_messages(struct torus_clock *k)
{
	for (size_t i = 0; i < k->messages.n; i++) {
		const struct torus_message *m = &k->messages.v[i];
		struct torus_net *n = k->shape->net[m->dimension];

		n->message[m->from * n->d + m->to] = 0;
	}
	k->messages.n = 0;
}

/* What node x sends in an exchange of levels. */
static void add_exchange(struct torus_clock *k, const struct torus_event *e,
			 const struct torus_line *l, int x)
{
	for (size_t i = 0; i < l->sends.n; i++) {
		struct torus_send m = l->sends.v[i];
		double part = m.blocks ? (double)m.blocks / l->level[l->n_levels - 1].radix : 1;

		if (m.step == e->line_step) {
			add_message(k, e->dimension, x, (x + m.to) % l->d, e->held * part);
		}
	}
}

static void add_messages(struct torus_clock *k, const struct torus_event *e)
{
	const struct torus_line *l = k->w->collective[e->collective].line[e->dimension];
	bool listed = e->phase == EXCHANGING && l->sends.n > 0;

	for (int x = 0; x < k->period[e->dimension]; x++) {
		int at = x * l->steps + e->line_step;

		if (listed) {
			add_exchange(k, e, l, x);
		}
		for (int i = l->first[at]; i < l->first[at + 1] && !listed; i++) {
			const struct torus_partner *p = &l->partners.v[i];
			double size = e->held * (e->phase == EXCHANGING ? 1 : p->blocks);

			if (e->phase == GATHERING) {
				add_message(k, e->dimension, p->to, x, size);
			} else {
				add_message(k, e->dimension, x, p->to, size);
			}
		}
	}
}

/* ---- the time of a step ---- */

static const struct torus_hop *hops_of(const struct torus_net *n, const struct torus_route *r)
{
	return n->hops.v + r->first;
}

/* Of a message: over all paths, or one. */
static int find_route(struct torus_clock *k, const struct torus_message *m,
		      const struct torus_route **r, struct err *err)
{
	const int16_t *turn = k->turn[m->dimension];
	struct torus_net *n = k->shape->net[m->dimension];
	int paths = turn ? turn[(m->to - m->from + n->d) % n->d] % NET_TURNS
		    : k->w->spec->paths == TORUS_PARALLEL ? NET_PARALLEL : NET_ALL;

	return torus_net_route(n, m->from, m->to, paths, r, err);
}

static int load_links(struct torus_clock *k, const struct torus_message *m, struct err *err)
{
	struct torus_net *n = k->shape->net[m->dimension];
	const struct torus_route *r;
	int rc = find_route(k, m, &r, err);

	for (int i = 0; rc == 0 && i < r->n; i++) {
		const struct torus_hop *h = hops_of(n, r) + i;
		int class = n->class[h->arc];
		double images = (double)n->d / k->period[m->dimension] / n->images[class];

		n->load[class] += m->size * h->share * images;
		n->messages[class] += images * h->begins;
	}
	return rc;
}

static void clear_links(struct torus_clock *k)
{
	for (int e = 0; e < k->shape->n_dims; e++) {
		struct torus_net *n = k->shape->net[e];

		memset(n->load, 0, (size_t)n->n_classes * sizeof(*n->load));
		memset(n->messages, 0, (size_t)n->n_classes * sizeof(*n->messages));
	}
}

static double message_ns(struct torus_clock *k, const struct torus_message *m)
{
	struct torus_net *n = k->shape->net[m->dimension];
	const struct torus_route *r = NULL;
	double load = 0, messages = 0;

	(void)find_route(k, m, &r, NULL);	/* it is kept */
	for (int i = 0; i < r->n; i++) {
		const struct torus_hop *h = hops_of(n, r) + i;
		int class = n->class[h->arc];

		load = fmax(load, n->load[class] / (double)topo_arc(n->line, h->arc)->cap);
		messages = h->begins ? fmax(messages, n->messages[class]) : messages;
	}
	return (double)r->latency_ns + (double)k->cost->hop_ns * r->length +
	       (double)k->cost->message_ns * messages + load * k->vector_ns;
}

/* Of the messages at hand, which it forgets. */
static int step_ns(struct torus_clock *k, double *ns, struct err *err)
{
	double slowest = 0;
	int rc = 0;

	clear_links(k);
	for (size_t i = 0; i < k->messages.n && rc == 0; i++) {
		rc = load_links(k, &k->messages.v[i], err);
	}
	for (size_t i = 0; i < k->messages.n && rc == 0; i++) {
		slowest = fmax(slowest, message_ns(k, &k->messages.v[i]));
	}
	forget_messages(k);
	*ns += slowest;
	return rc;
}

static int run(struct torus_clock *k, double *time_ns, struct err *err)
{
	/* Of a step to come. */
	double min_ns = (double)(k->cost->hop_ns + k->cost->message_ns);
	int rc = 0, steps = 0;

	for (int c = 0; c < k->w->n_collectives; c++) {
		add_collective(k, c);
	}
	for (size_t i = 0; i < k->events.n; i++) {
		steps = k->events.v[i].step >= steps ? k->events.v[i].step + 1 : steps;
	}
	*time_ns = steps * ((double)k->cost->alpha_ns + min_ns);
	if (*time_ns < k->below_ns) {
		qsort(k->events.v, k->events.n, sizeof(*k->events.v), by_step);
	}
	for (size_t i = 0; i < k->events.n && rc == 0 && *time_ns < k->below_ns; i++) {
		add_messages(k, &k->events.v[i]);
		if (i + 1 == k->events.n || k->events.v[i + 1].step > k->events.v[i].step) {
			*time_ns -= min_ns;
			rc = step_ns(k, time_ns, err);
		}
	}
	return rc;
}

/* ---- all of it ---- */

static int made_time(struct torus_shape *s, const struct torus_spec *spec, enum coll_kind kind,
		     const struct coll_cost *cost, double *time_ns, struct err *err)
{
	struct coll_sched *sched;
	int64_t ns = 0;
	int rc = torus_make(s, spec, kind, 0, &sched, err);

	if (rc == 0) {
		rc = coll_time(sched, NULL, cost, &ns, NULL, err);
	}
	coll_free(sched);
	*time_ns = (double)ns;
	return rc;
}

/* Links and lines together repeat after more. */
static int set_periods(struct torus_clock *k, struct err *err)
{
	for (int e = 0; e < k->shape->n_dims; e++) {
		const struct torus_line *l = k->w->line[0][e];
		struct torus_net *net = k->shape->net[e];

		if (!l->is_alike) {
			return err_set(err, WEFT_EUNSUPPORTED,
				       "the time of an algorithm whose nodes "
				       "send unlike parts, but by its schedule: not supported");
		}
		k->period[e] = net->period;
		while (k->period[e] % l->period) {
			k->period[e] += net->period;
		}
		torus_net_classes(net, k->period[e]);
	}
	return 0;
}

static void set_turns(struct torus_clock *k)
{
	for (int e = 0; e < k->shape->n_dims && k->w->spec->paths == TORUS_SINGLE; e++) {
		arrays_add(&k->arrays, k->turn[e], k->shape->size[e]);
		torus_work_turns(k->w, e, k->turn[e]);
	}
}

/* Hamiltonian rings: every step brings each node a block on each of its links. */
static int ring_time(struct torus_shape *s, const struct torus_spec *spec, enum coll_kind kind,
		     const struct coll_cost *c, double *time_ns, struct err *err)
{
	int n = topo_ranks(s->t), parts = spec->one_port ? 1 : 4;
	double vector_ns = (double)c->size_bytes * 8e9 / (double)c->link_bps;
	int rows, periods[COLL_MAX_DIGITS], rc = torus_rings_exist(s, &rows, err);

	if (rc == 0) {
		rc = torus_nets(s, periods, err);
	}
	for (int e = 0; e < s->n_dims && rc == 0; e++) {
		if (periods[e] > 1 || topo_m(s->net[e]->line) != 2 * s->size[e]) {
			rc = err_set(err, WEFT_EUNSUPPORTED, "Hamiltonian rings on other than "
				     "tori: their time is known by their schedule only");
		}
	}
	*time_ns = (kind == COLL_ALLREDUCE ? 2 : 1) * (n - 1.0) *
		   ((double)(c->alpha_ns + c->hop_ns + c->message_ns) + vector_ns / n / parts);
	return rc;
}

int torus_time(struct torus_shape *s, const struct torus_spec *spec, enum coll_kind kind,
	       const struct coll_cost *cost, double *time_ns, struct err *err)
{
	int periods[COLL_MAX_DIGITS], rc = torus_nets(s, periods, err);

	if (rc) {
		return rc;
	}
	return s->has_unlike && !coll_has_root(kind)
		       ? made_time(s, spec, kind, cost, time_ns, err)
		       : torus_time_below(s, spec, kind, cost, HUGE_VAL, time_ns, err);
}

int torus_time_below(struct torus_shape *s, const struct torus_spec *spec, enum coll_kind kind,
		     const struct coll_cost *cost, double below_ns, double *time_ns,
		     struct err *err)
{
	struct torus_work w;
	struct torus_clock k = { .w = &w, .shape = s, .cost = cost, .kind = kind,
				 .below_ns = below_ns };
	int rc, periods[COLL_MAX_DIGITS];

	*time_ns = 0;
	if (coll_has_root(kind)) {
		return err_set(err, WEFT_EUNSUPPORTED, "the time of a %s, but by its schedule: not "
			       "supported", coll_kind_name(kind));
	}
	if (spec->lines == TORUS_RING && s->n_dims > 1) {
		return ring_time(s, spec, kind, cost, time_ns, err);
	}
	k.vector_ns = (double)cost->size_bytes * 8e9 / (double)cost->link_bps;
	rc = torus_nets(s, periods, err);
	if (rc) {
		return rc;
	}
	rc = torus_work_begin(&w, s, spec, kind, periods, err);
	if (rc == 0 && (rc = set_periods(&k, err)) == 0) {
		set_turns(&k);
		rc = run(&k, time_ns, err);
	}
	forget_messages(&k);
	arrays_fini(&k.arrays);
	vec_fini(&k.events);
	vec_fini(&k.messages);
	torus_work_end(&w);
	return rc;
}
