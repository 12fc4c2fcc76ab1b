/*
 * Guided ejection search at a fixed number of channels.
 *
 * A partial assignment without clashes is kept at all times. A lightpath that
 * has no place is routed on the cheapest way of any channel, where a taken
 * slot costs the penalty of the lightpath that holds it; whoever is in the
 * way is ejected and waits in turn. The penalty of a lightpath grows whenever
 * it finds no free way, so that what is hard to place stays once placed.
 *
 * States of the path search are (channel, node); it is A* with the plain
 * distances of the arcs' base costs, which penalties only add to.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "rwa/mesh_private.h"

#define MAX_STATES ((int64_t)1 << 26)
#define MAX_SLOTS ((int64_t)1 << 28)
#define COST_MAX ((uint32_t)1 << 28)
#define BASE 16			/* base cost of an arc without price */
#define SCALE_FILL 3000
#define CALM_LEAST 5000		/* without progress, before a new scale */
#define PENALTY_MAX (1 << 18)
#define FREE (-1)
#define SHUT (-2)

struct unit {			/* one lightpath */
	int32_t demand;
	int32_t hops;		/* 0: waits */
	int32_t cap;
	struct rwa_hop *hop;
	int32_t penalty;
};

struct label {
	uint32_t cost, stamp;
	int64_t loss;
	int32_t from;		/* state before, -1 at the start */
	int32_t arc, fibre;	/* entered by; arc -1: channel changed */
};

struct search {
	const struct rwa_mesh *m;
	struct adjacency out, in;
	struct rng rng;
	int channels, width;	/* width: channels there is memory for */
	int32_t *cost;		/* base cost of an arc */
	int64_t *slot;		/* first slot of an arc: (fibre, channel) */
	int32_t *owner;		/* of a slot */
	struct unit *units;
	int32_t n_units;
	int32_t *wait;		/* units without a place */
	int32_t waiting;
	int32_t **dist;		/* by destination: base cost from each node */
	int64_t **least;	/* by destination: least loss from each node */
	struct label *labels;
	uint32_t stamp;
	uint64_t *heap;
	size_t heap_n, heap_cap;
	bool *changed;		/* node's channels were all reached */
	int32_t filled;		/* lightpaths placed at first */
	int32_t scale;		/* cost of a taken slot at penalty 1 */
	int64_t most;		/* served at once */
	struct rwa_assignment best;
};

/* ---- plain distances ---- */

static int by_units(const void *a, const void *b, void *arg)
{
	const struct search *s = arg;
	const struct unit *x = a, *y = b;
	const struct rwa_mesh_demand *p = &s->m->demands.v[x->demand];
	const struct rwa_mesh_demand *q = &s->m->demands.v[y->demand];
	int32_t d = s->dist[p->dst][p->src], e = s->dist[q->dst][q->src];

	if (d != e) {
		return d < e ? -1 : 1;
	}
	return x->demand < y->demand ? -1 : x->demand > y->demand;
}

static void relax_in(const struct search *s, int32_t v, const bool *open,
		     int32_t *dist, int64_t *least, int32_t dst, bool *again)
{
	for (int32_t k = s->in.first[v]; k < s->in.first[v + 1]; k++) {
		int32_t e = s->in.arc[k], u = s->m->arcs.v[e].src;
		int64_t pass = v == dst ? 0 : s->m->nodes.v[v].pass_mdb;

		if (!open[e]) {
			continue;
		}
		if (dist[v] < INT_MAX && dist[v] + s->cost[e] < dist[u]) {
			dist[u] = dist[v] + s->cost[e];
			again[u] = true;
		}
		if (least[v] < INT64_MAX &&
		    least[v] + pass + s->m->arcs.v[e].loss_mdb < least[u]) {
			least[u] = least[v] + pass + s->m->arcs.v[e].loss_mdb;
			again[u] = true;
		}
	}
}

/* Both distances to dst, by rounds of relaxation. */
static int distances_to(struct search *s, int32_t dst, const bool *open,
			bool *again)
{
	int32_t n = (int32_t)s->m->nodes.n;
	bool any = true;

	s->dist[dst] = malloc((size_t)n * sizeof(**s->dist));
	s->least[dst] = malloc((size_t)n * sizeof(**s->least));
	if (!s->dist[dst] || !s->least[dst]) {
		return WEFT_ENOMEM;
	}
	for (int32_t v = 0; v < n; v++) {
		s->dist[dst][v] = INT_MAX;
		s->least[dst][v] = INT64_MAX;
		again[v] = false;
	}
	s->dist[dst][dst] = 0;
	s->least[dst][dst] = 0;
	again[dst] = true;
	while (any) {
		any = false;
		for (int32_t v = 0; v < n; v++) {
			if (again[v]) {
				again[v] = false;
				any = true;
				relax_in(s, v, open, s->dist[dst],
					 s->least[dst], dst, again);
			}
		}
	}
	return 0;
}

/* ---- slots ---- */

static int32_t *slot_at(const struct search *s, int32_t arc, int32_t fibre,
			int32_t channel)
{
	return &s->owner[s->slot[arc] + (int64_t)fibre * s->width + channel];
}

static void put_unit(struct search *s, int32_t unit, int32_t who)
{
	struct unit *u = &s->units[unit];

	for (int32_t i = 0; i < u->hops; i++) {
		*slot_at(s, u->hop[i].arc, u->hop[i].fibre,
			 u->hop[i].channel) = who;
	}
}

static void eject(struct search *s, int32_t unit)
{
	put_unit(s, unit, FREE);
	s->units[unit].hops = 0;
	s->wait[s->waiting++] = unit;
}

/* ---- cheapest way ---- */

/* Of equal costs the state nearer to the end comes first, then chance. */
static int heap_push(struct search *s, uint32_t cost, uint32_t to_go,
		     int32_t state)
{
	uint64_t near = to_go / BASE < 63 ? to_go / BASE : 63;
	uint64_t key = (uint64_t)(cost + to_go) << 36 | near << 30 |
		       (rng_u64(&s->rng) & 0xf) << 26 | (uint32_t)state;
	size_t i = s->heap_n++;

	if (s->heap_n > s->heap_cap) {
		size_t cap = s->heap_cap ? 2 * s->heap_cap : 1024;
		uint64_t *heap = realloc(s->heap, cap * sizeof(*heap));

		if (!heap) {
			s->heap_n--;
			return WEFT_ENOMEM;
		}
		s->heap = heap;
		s->heap_cap = cap;
	}
	while (i && s->heap[(i - 1) / 2] > key) {
		s->heap[i] = s->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->heap[i] = key;
	return 0;
}

static uint64_t heap_pop(struct search *s)
{
	uint64_t top = s->heap[0], key = s->heap[--s->heap_n];
	size_t i = 0;

	for (;;) {
		size_t c = 2 * i + 1;

		if (c >= s->heap_n) {
			break;
		}
		c += c + 1 < s->heap_n && s->heap[c + 1] < s->heap[c];
		if (s->heap[c] >= key) {
			break;
		}
		s->heap[i] = s->heap[c];
		i = c;
	}
	s->heap[i] = key;
	return top;
}

/* Cost of the cheapest fibre of an arc on a channel; -1: none. */
static int32_t slot_cost(const struct search *s, int32_t arc, int32_t channel,
			 int32_t before, int32_t *fibre)
{
	int32_t best = -1, fibres = s->m->arcs.v[arc].fibres;

	for (int32_t f = 0; f < fibres; f++) {
		int32_t who = *slot_at(s, arc, f, channel);

		if (who == FREE) {
			*fibre = f;
			return s->cost[arc];
		}
		if (who >= 0 && who == before) {
			*fibre = f;
			return s->cost[arc];
		}
		if (who >= 0 && (best < 0 || s->units[who].penalty < best)) {
			best = s->units[who].penalty;
			*fibre = f;
		}
	}
	return best < 0 ? -1 : s->cost[arc] + best * s->scale;
}

struct want {			/* what a path search is about */
	int32_t src, dst;
	const int32_t *dist;
	const int64_t *least;
	int64_t budget;		/* of arcs and nodes passed */
	bool by_loss;		/* the loss is the cost: finds a way within
				 * the budget where the cheapest has none */
};

static uint32_t still_to_go(const struct want *w, int32_t v)
{
	return w->by_loss ? 0 : (uint32_t)w->dist[v];
}

static int reach(struct search *s, const struct want *w, int32_t state,
		 const struct label *l)
{
	struct label *old = &s->labels[state];
	int32_t v = state % (int32_t)s->m->nodes.n;
	uint32_t cost = l->cost < COST_MAX / 2 ? l->cost : COST_MAX / 2;

	if (w->dist[v] == INT_MAX || l->loss + w->least[v] > w->budget ||
	    (old->stamp == s->stamp && old->cost <= cost)) {
		return 0;
	}
	*old = *l;
	old->cost = cost;
	old->stamp = s->stamp;
	return heap_push(s, cost, still_to_go(w, v), state);
}

static int expand_arcs(struct search *s, const struct want *w, int32_t state)
{
	int32_t n = (int32_t)s->m->nodes.n, v = state % n, c = state / n;
	const struct label *at = &s->labels[state];
	int64_t pass = v == w->src ? 0 : s->m->nodes.v[v].pass_mdb;
	int32_t before = at->arc < 0 ? FREE
				     : *slot_at(s, at->arc, at->fibre, c);
	int rc = 0;

	for (int32_t k = s->out.first[v]; !rc && k < s->out.first[v + 1]; k++) {
		struct label l = { .from = state, .arc = s->out.arc[k] };
		int32_t cost = slot_cost(s, l.arc, c, before,
					 &l.fibre);

		if (cost >= 0) {
			l.loss = at->loss + pass +
				 s->m->arcs.v[l.arc].loss_mdb;
			l.cost = w->by_loss ? (uint32_t)l.loss
					    : at->cost + (uint32_t)cost;
			rc = reach(s, w, c * n + s->m->arcs.v[l.arc].dst, &l);
		}
	}
	return rc;
}

/* A node that converts passes its cost on to all its channels, once. */
static int expand_channels(struct search *s, const struct want *w,
			   int32_t state)
{
	int32_t n = (int32_t)s->m->nodes.n, v = state % n;
	struct label l = s->labels[state];
	int rc = 0;

	if (!s->m->nodes.v[v].convert || v == w->src || s->changed[v]) {
		return 0;
	}
	s->changed[v] = true;
	l.from = state;
	l.arc = -1;
	for (int32_t c = 0; !rc && c < s->channels; c++) {
		rc = reach(s, w, c * n + v, &l);
	}
	return rc;
}

static int32_t take_top(struct search *s, const struct want *w)
{
	while (s->heap_n) {
		uint64_t key = heap_pop(s);
		int32_t state = (int32_t)(key & 0x3ffffff);
		int32_t v = state % (int32_t)s->m->nodes.n;

		if ((uint32_t)(key >> 36) ==
		    s->labels[state].cost + still_to_go(w, v)) {
			return state;
		}
	}
	return -1;
}

/* The state at dst of the cheapest way, -1 when there is none, or an error. */
static int cheapest(struct search *s, const struct want *w, int32_t *goal)
{
	int32_t n = (int32_t)s->m->nodes.n;
	struct label start = { .from = -1, .arc = -1 };
	int rc = 0;

	s->heap_n = 0;
	s->stamp++;
	memset(s->changed, 0, (size_t)n);
	for (int32_t c = 0; !rc && c < s->channels; c++) {
		rc = reach(s, w, c * n + w->src, &start);
	}
	while (!rc) {
		*goal = take_top(s, w);
		if (*goal < 0 || *goal % n == w->dst) {
			break;
		}
		rc = expand_arcs(s, w, *goal);
		rc = rc ? rc : expand_channels(s, w, *goal);
	}
	return rc;
}

static int store_way(struct search *s, int32_t unit, int32_t goal)
{
	struct unit *u = &s->units[unit];
	int32_t n = (int32_t)s->m->nodes.n, hops = 0, i;

	for (int32_t st = goal; st >= 0; st = s->labels[st].from) {
		hops += s->labels[st].arc >= 0;
	}
	if (hops > u->cap) {
		struct rwa_hop *hop = realloc(u->hop,
					      (size_t)hops * sizeof(*hop));

		if (!hop) {
			return WEFT_ENOMEM;
		}
		u->hop = hop;
		u->cap = hops;
	}
	i = hops;
	for (int32_t st = goal; st >= 0; st = s->labels[st].from) {
		const struct label *l = &s->labels[st];

		if (l->arc >= 0) {
			u->hop[--i] = (struct rwa_hop){ l->arc, l->fibre,
							st / n };
		}
	}
	u->hops = hops;
	return 0;
}

/* ---- the search ---- */

/* Ejects whoever holds the unit's slots and takes them. */
static void occupy(struct search *s, int32_t unit)
{
	struct unit *u = &s->units[unit];
	bool ejected = false;

	for (int32_t i = 0; i < u->hops; i++) {
		int32_t who = *slot_at(s, u->hop[i].arc, u->hop[i].fibre,
				       u->hop[i].channel);

		if (who >= 0) {
			eject(s, who);
			ejected = true;
		}
	}
	put_unit(s, unit, unit);
	if (ejected && u->penalty < PENALTY_MAX) {
		u->penalty++;
	}
}

static int place(struct search *s, int32_t unit, bool *placed)
{
	const struct rwa_mesh_demand *d =
		&s->m->demands.v[s->units[unit].demand];
	struct want w = { d->src, d->dst, s->dist[d->dst], s->least[d->dst],
			  INT64_MAX, false };
	int32_t goal = -1;
	int rc;

	if (s->m->budget_mdb != RWA_MESH_NO_LIMIT) {
		w.budget = s->m->budget_mdb - s->m->add_mdb - s->m->drop_mdb;
	}
	rc = cheapest(s, &w, &goal);
	if (!rc && goal < 0 && w.budget < INT64_MAX) {
		w.by_loss = true;
		rc = cheapest(s, &w, &goal);
	}
	*placed = false;
	if (rc || goal < 0) {
		return rc;
	}
	rc = store_way(s, unit, goal);
	if (!rc) {
		occupy(s, unit);
		*placed = true;
	}
	return rc;
}

static int remember(struct search *s)
{
	s->most = s->n_units - s->waiting;
	s->best.paths.n = 0;
	s->best.hops.n = 0;
	for (int32_t i = 0; i < s->n_units; i++) {
		const struct unit *u = &s->units[i];
		struct rwa_path p = { u->demand, u->hops,
				      (int64_t)s->best.hops.n };

		if (!u->hops) {
			continue;
		}
		if (vec_push(&s->best.paths, p) ||
		    vec_reserve(&s->best.hops, (size_t)u->hops)) {
			return WEFT_ENOMEM;
		}
		memcpy(s->best.hops.v + s->best.hops.n, u->hop,
		       (size_t)u->hops * sizeof(*u->hop));
		s->best.hops.n += (size_t)u->hops;
	}
	return 0;
}

/*
 * What a taken slot costs beside the way itself. At first much, so that what
 * is free is filled; then little, so that ways stay short. Which little is
 * best differs, so that they take turns when nothing gets better.
 */
static void choose_scale(struct search *s, int64_t *calm, int32_t *turn)
{
	static const int32_t scales[] = { 16, 100, 6, 32 };

	if (s->filled < s->n_units) {
		s->filled++;
		s->scale = SCALE_FILL;
		return;
	}
	if (++*calm > CALM_LEAST + s->n_units) {
		*calm = 0;
		*turn = (*turn + 1) % 4;
	}
	s->scale = scales[*turn];
}

int search_run(struct search *s, int64_t effort, const struct stop *stop,
	       int64_t *served, struct err *err)
{
	int32_t stuck = 0, turn = 0;
	int64_t calm = 0;
	int rc = 0;

	for (int64_t k = 0; !rc && s->waiting > stuck && k < effort; k++) {
		int32_t unit, at = stuck + (int32_t)rng_below(
					&s->rng, (uint64_t)(s->waiting - stuck));
		bool placed = false;

		if (k % 16 == 0 && stop_now(stop)) {
			break;
		}
		choose_scale(s, &calm, &turn);
		unit = s->wait[at];
		s->wait[at] = s->wait[--s->waiting];
		rc = place(s, unit, &placed);
		if (!rc && !placed) {
			s->wait[s->waiting++] = s->wait[stuck];
			s->wait[stuck++] = unit;
		}
		if (!rc && s->n_units - s->waiting > s->most &&
		    (s->waiting == 0 || k % 64 == 0)) {
			rc = remember(s);
			calm = 0;
		}
	}
	if (!rc && s->n_units - s->waiting > s->most) {
		rc = remember(s);
	}
	*served = s->most;
	return rc ? err_nomem(err) : 0;
}

static int by_demand(const void *a, const void *b)
{
	const struct rwa_path *x = a, *y = b;

	if (x->demand != y->demand) {
		return x->demand < y->demand ? -1 : 1;
	}
	return x->first < y->first ? -1 : x->first > y->first;
}

int search_best(const struct search *s, struct rwa_assignment *out,
		struct err *err)
{
	*out = (struct rwa_assignment){ 0 };
	if (vec_reserve(&out->paths, s->best.paths.n + 1) ||
	    vec_reserve(&out->hops, s->best.hops.n + 1)) {
		rwa_assignment_fini(out);
		return err_nomem(err);
	}
	out->paths.n = s->best.paths.n;
	out->hops.n = s->best.hops.n;
	if (out->paths.n) {
		memcpy(out->paths.v, s->best.paths.v,
		       out->paths.n * sizeof(*out->paths.v));
		memcpy(out->hops.v, s->best.hops.v,
		       out->hops.n * sizeof(*out->hops.v));
		qsort(out->paths.v, out->paths.n, sizeof(*out->paths.v),
		      by_demand);
	}
	return 0;
}

/* ---- number of channels ---- */

/* Marks what must not be used, in channels 0..width-1. */
static void shut_slots(struct search *s)
{
	for (size_t i = 0; i < s->m->blocks.n; i++) {
		const struct rwa_mesh_block *b = &s->m->blocks.v[i];
		bool fibres = b->fibre == RWA_MESH_ALL;
		bool channels = b->channel == RWA_MESH_ALL;
		int32_t f_end = fibres ? s->m->arcs.v[b->arc].fibres
				       : b->fibre + 1;
		int32_t c_end = channels ? s->width : b->channel + 1;

		c_end = c_end < s->width ? c_end : s->width;
		for (int32_t f = fibres ? 0 : b->fibre; f < f_end; f++) {
			for (int32_t c = channels ? 0 : b->channel; c < c_end;
			     c++) {
				*slot_at(s, b->arc, f, c) = SHUT;
			}
		}
	}
}

static int make_room(struct search *s, int width, struct err *err)
{
	int64_t slots = 0;

	for (size_t e = 0; e < s->m->arcs.n; e++) {
		s->slot[e] = slots;
		slots += (int64_t)s->m->arcs.v[e].fibres * width;
	}
	s->slot[s->m->arcs.n] = slots;
	if (slots > MAX_SLOTS || (int64_t)width * s->m->nodes.n > MAX_STATES) {
		return err_set(err, WEFT_ELIMIT,
			       "%d channels on %zu arcs: too large to search",
			       width, s->m->arcs.n);
	}
	free(s->owner);
	free(s->labels);
	s->width = width;
	s->owner = malloc(((size_t)slots + 1) * sizeof(*s->owner));
	s->labels = calloc((size_t)width * s->m->nodes.n + 1,
			   sizeof(*s->labels));
	return s->owner && s->labels ? 0 : err_nomem(err);
}

static int by_use(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x > *y ? -1 : *x < *y;
}

/* New number of every channel, -1 when it is given up: the emptiest first,
 * unless what is blocked makes channels differ. */
static int renumber(const struct search *s, int channels, int32_t *number)
{
	int64_t *use = calloc((size_t)s->channels + 1, sizeof(*use));

	if (!use) {
		return WEFT_ENOMEM;
	}
	for (int32_t i = 0; i < s->n_units; i++) {
		for (int32_t h = 0; h < s->units[i].hops; h++) {
			use[s->units[i].hop[h].channel]++;
		}
	}
	for (int32_t c = 0; c < s->channels; c++) {
		use[c] = use[c] << 24 | c;
	}
	if (s->m->blocks.n == 0 && channels < s->channels) {
		qsort(use, (size_t)s->channels, sizeof(*use), by_use);
	}
	for (int32_t c = 0; c < s->channels; c++) {
		number[use[c] & 0xffffff] = c < channels ? c : -1;
	}
	free(use);
	return 0;
}

static void move_units(struct search *s, const int32_t *number)
{
	s->waiting = 0;
	for (int32_t i = 0; i < s->n_units; i++) {
		struct unit *u = &s->units[i];

		u->penalty = 1;
		for (int32_t h = 0; h < u->hops; h++) {
			int32_t c = number[u->hop[h].channel];

			if (c < 0) {
				u->hops = 0;
				break;
			}
			u->hop[h].channel = c;
		}
		if (!u->hops) {
			s->wait[s->waiting++] = i;
		}
	}
}

int search_set_channels(struct search *s, int channels, struct err *err)
{
	int32_t *number = calloc((size_t)s->channels + 1, sizeof(*number));
	int rc = 0;

	if (!number || renumber(s, channels, number)) {
		free(number);
		return err_nomem(err);
	}
	move_units(s, number);
	free(number);
	if (channels > s->width || !s->owner) {
		rc = make_room(s, channels, err);
	}
	if (rc) {
		return rc;
	}
	s->channels = channels;
	s->most = -1;
	s->filled = s->n_units - s->waiting;
	memset(s->owner, 0xff, ((size_t)s->slot[s->m->arcs.n]) *
				       sizeof(*s->owner));
	shut_slots(s);
	for (int32_t i = 0; i < s->n_units; i++) {
		put_unit(s, i, i);
	}
	return 0;
}

/* ---- beginning with lightpaths in place ---- */

static bool is_clear(const struct search *s, const struct rwa_hop *h)
{
	return h->channel < s->channels &&
	       *slot_at(s, h->arc, h->fibre, h->channel) == FREE;
}

static int copy_way(struct unit *u, const struct rwa_hop *hop, int32_t hops)
{
	if (hops > u->cap) {
		struct rwa_hop *room = realloc(u->hop,
					       (size_t)hops * sizeof(*room));

		if (!room) {
			return WEFT_ENOMEM;
		}
		u->hop = room;
		u->cap = hops;
	}
	memcpy(u->hop, hop, (size_t)hops * sizeof(*hop));
	u->hops = hops;
	return 0;
}

/* Units as lists by demand: first[], then next[]. */
static void list_units(const struct search *s, int32_t *first, int32_t *next)
{
	for (size_t d = 0; d < s->m->demands.n; d++) {
		first[d] = -1;
	}
	for (int32_t i = s->n_units - 1; i >= 0; i--) {
		next[i] = first[s->units[i].demand];
		first[s->units[i].demand] = i;
	}
}

/* Gives paths their units; unit[]: of each path, or -1. */
static int seat(struct search *s, const struct rwa_assignment *begin,
		int32_t *first, const int32_t *next, int32_t *unit)
{
	for (size_t i = 0; i < begin->paths.n; i++) {
		const struct rwa_path *p = &begin->paths.v[i];
		const struct rwa_hop *hop = begin->hops.v + p->first;
		int32_t u = first[p->demand], h = 0;

		unit[i] = -1;
		while (h < p->hops && is_clear(s, &hop[h])) {
			h++;
		}
		if (h < p->hops || u < 0) {
			continue;
		}
		if (copy_way(&s->units[u], hop, p->hops)) {
			return WEFT_ENOMEM;
		}
		put_unit(s, u, u);
		unit[i] = u;
		first[p->demand] = next[u];
	}
	return 0;
}

int search_begin(struct search *s, int channels,
		 const struct rwa_assignment *begin, const int32_t *penalties,
		 struct err *err)
{
	size_t n = (size_t)s->n_units + 1;
	int32_t *first = calloc(s->m->demands.n + 1, sizeof(*first));
	int32_t *next = calloc(n, sizeof(*next));
	int32_t *unit = calloc(begin->paths.n + 1, sizeof(*unit));
	int rc = first && next && unit ? 0 : err_nomem(err);

	for (int32_t i = 0; i < s->n_units; i++) {
		s->units[i].hops = 0;
	}
	rc = rc ? rc : search_set_channels(s, channels, err);
	if (!rc) {
		list_units(s, first, next);
		rc = seat(s, begin, first, next, unit) ? err_nomem(err) : 0;
	}
	/* Counts again, now with what is in place. */
	rc = rc ? rc : search_set_channels(s, channels, err);
	for (size_t i = 0; !rc && i < begin->paths.n; i++) {
		if (unit[i] >= 0) {
			s->units[unit[i]].penalty = penalties[i];
		}
	}
	free(first);
	free(next);
	free(unit);
	return rc;
}

/* ---- beginning and end ---- */

/* Arcs that the bound prices high are dear, as everybody needs them. */
static void set_costs(struct search *s, const int64_t *prices)
{
	double sum = 0, mean;

	for (size_t e = 0; e < s->m->arcs.n; e++) {
		sum += (double)prices[e];
	}
	mean = sum > 0 ? sum / (double)s->m->arcs.n : 1;
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		double dear = (double)prices[e] / mean;

		s->cost[e] = (int32_t)(BASE * (1 + (dear < 8 ? dear : 8)));
	}
}

static int all_distances(struct search *s, struct err *err)
{
	size_t n = s->m->nodes.n;
	bool *again = calloc(n + 1, sizeof(*again));
	int32_t *fibres = calloc(s->m->arcs.n + 1, sizeof(*fibres));
	bool *open = calloc(s->m->arcs.n + 1, sizeof(*open));
	int rc = again && fibres && open ? 0 : err_nomem(err);

	rc = rc ? rc : mesh_open_fibres(s->m, fibres, err);
	for (size_t e = 0; !rc && e < s->m->arcs.n; e++) {
		open[e] = fibres[e] > 0;
	}
	for (size_t i = 0; !rc && i < s->m->demands.n; i++) {
		int32_t dst = s->m->demands.v[i].dst;

		if (!s->dist[dst] && distances_to(s, dst, open, again)) {
			rc = err_nomem(err);
		}
	}
	free(again);
	free(fibres);
	free(open);
	return rc;
}

/* Every demand must have a way, within the loss budget. */
static int check_ways(const struct search *s, struct err *err)
{
	const struct rwa_mesh *m = s->m;
	int64_t budget = m->budget_mdb == RWA_MESH_NO_LIMIT
				 ? INT64_MAX
				 : m->budget_mdb - m->add_mdb - m->drop_mdb;

	for (size_t i = 0; i < m->demands.n; i++) {
		const struct rwa_mesh_demand *d = &m->demands.v[i];
		bool way = s->dist[d->dst][d->src] < INT_MAX;
		char from[16], to[16];

		if (!way || s->least[d->dst][d->src] > budget) {
			return err_set(err, WEFT_EINFEASIBLE,
				"demand %zu: no way leads from %s to %s%s", i,
				rwa_mesh_node_name(m, d->src, from,
						   sizeof(from)),
				rwa_mesh_node_name(m, d->dst, to, sizeof(to)),
				way ? " within the loss budget" : "");
		}
	}
	return 0;
}

/* How many lightpaths of a demand its ends can still hold. */
static int32_t room_at_ends(const struct search *s, int64_t *adds,
			    int64_t *drops, const struct rwa_mesh_demand *d)
{
	const struct rwa_mesh_node *src = &s->m->nodes.v[d->src];
	const struct rwa_mesh_node *dst = &s->m->nodes.v[d->dst];
	int64_t n = d->count;

	if (src->add_limit >= 0 && src->add_limit - adds[d->src] < n) {
		n = src->add_limit - adds[d->src];
	}
	if (dst->drop_limit >= 0 && dst->drop_limit - drops[d->dst] < n) {
		n = dst->drop_limit - drops[d->dst];
	}
	adds[d->src] += n;
	drops[d->dst] += n;
	return (int32_t)n;
}

/* One unit for each lightpath, the longest last, where waiting begins. */
static int make_units(struct search *s)
{
	size_t n = (size_t)s->m->lightpaths + 1, nodes = s->m->nodes.n;
	int64_t *ends = calloc(2 * nodes, sizeof(*ends));

	s->units = calloc(n, sizeof(*s->units));
	s->wait = calloc(n, sizeof(*s->wait));
	if (!ends || !s->units || !s->wait) {
		free(ends);
		return WEFT_ENOMEM;
	}
	for (size_t i = 0; i < s->m->demands.n; i++) {
		int32_t count = room_at_ends(s, ends, ends + nodes,
					     &s->m->demands.v[i]);

		for (int32_t k = 0; k < count; k++) {
			s->units[s->n_units++] = (struct unit){
				.demand = (int32_t)i,
			};
		}
	}
	qsort_r(s->units, (size_t)s->n_units, sizeof(*s->units), by_units, s);
	free(ends);
	return 0;
}

int search_new(const struct rwa_mesh *m, const int64_t *prices, uint64_t seed,
	       struct search **out, struct err *err)
{
	struct search *s = calloc(1, sizeof(*s));
	size_t n = m->nodes.n, e = m->arcs.n + 1;
	int rc = WEFT_ENOMEM;

	*out = NULL;
	if (!s) {
		return err_nomem(err);
	}
	s->m = m;
	rng_seed(&s->rng, seed);
	s->cost = calloc(e, sizeof(*s->cost));
	s->slot = calloc(e, sizeof(*s->slot));
	s->dist = calloc(n, sizeof(*s->dist));
	s->least = calloc(n, sizeof(*s->least));
	s->changed = calloc(n, sizeof(*s->changed));
	if (!s->cost || !s->slot || !s->dist || !s->least || !s->changed ||
	    adjacency_init(&s->out, m, false) ||
	    adjacency_init(&s->in, m, true)) {
		err_nomem(err);
		goto out;
	}
	set_costs(s, prices);
	rc = all_distances(s, err);
	rc = rc ? rc : check_ways(s, err);
	if (!rc && make_units(s)) {
		rc = err_nomem(err);
	}
out:
	if (rc) {
		search_free(s);
		s = NULL;
	}
	*out = s;
	return rc;
}

int64_t search_units(const struct search *s)
{
	return s->n_units;
}

void search_free(struct search *s)
{
	if (!s) {
		return;
	}
	for (size_t v = 0; v < s->m->nodes.n; v++) {
		free(s->dist ? s->dist[v] : NULL);
		free(s->least ? s->least[v] : NULL);
	}
	for (int32_t i = 0; i < s->n_units; i++) {
		free(s->units[i].hop);
	}
	rwa_assignment_fini(&s->best);
	adjacency_fini(&s->out);
	adjacency_fini(&s->in);
	free(s->cost);
	free(s->slot);
	free(s->owner);
	free(s->units);
	free(s->wait);
	free(s->dist);
	free(s->least);
	free(s->labels);
	free(s->heap);
	free(s->changed);
	free(s);
}
