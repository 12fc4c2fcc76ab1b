/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Switches exchange arcs, so that more circuits stay.
 *
 * One arc goes to another switch. Where its ranks have no port left there, an arc of theirs takes
 * its place at the switch that it came from, and so on along a path or a circle of arcs that are
 * at the one and at the other in turn (a Kempe chain of the edge colouring that a spread is).
 * Chains that cost nothing are taken, and at first some that cost few circuits (simulated
 * annealing); the best spread so far is kept. Work is limited by a count of moves and not by
 * time, and coins are whole numbers, so that the result is the same anywhere.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"

/* Arcs that chains have in all: so many of each, and at most. */
#define ARC_MOVES (1 << 15)
#define MAX_MOVES (1 << 26)

/* At the beginning, of 2^31: how often a chain of one circuit less is taken; of more, as many
 * coins have to fall so. */
#define FIRST_CHANCE (INT64_C(35) * (INT64_C(1) << 31) / 100)

/* What is in a slot without an arc. */
#define NO_ARC (-1)
#define NO_PORT (-2)

enum side { TX, RX, SIDES };

/* Circuits of a demand at a site. */
struct cell_count {
	int32_t given, have, with_lost;	/* now; that would stay; that would stay or be made again */
};

struct exchange {
	const struct plan_assignment *s;
	struct cell_count *cells;		/* [demand * n_sites + site] */
	int n, ports;			/* arcs; most ports of a rank at a site */
	int32_t *demand, *site;		/* of an arc */
	int32_t *port[SIDES];		/* likewise: rank * ports + its port there */
	int32_t *at[SIDES];		/* the arc at [port * n_sites + site] */
	int kept, with_lost;		/* circuits that stay; and those that are made again */
	int32_t *chain;			/* arcs that go to the site at which the next is */
	int n_chain, from, to;		/* the first goes so, the second back, and so on */
	int64_t moves;
	uint64_t seed;
	struct arrays arrays;
};

/* 0 to 2^31 - 1. */
static int64_t draw(struct exchange *x)
{
	x->seed = x->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (int64_t)(x->seed >> 33);
}

static int32_t *slot(const struct exchange *x, enum side side, int port, int site)
{
	return &x->at[side][(int64_t)port * x->s->n_sites + site];
}

/* One more circuit (n = 1) in a cell, or one less (-1). */
static void count_cell(struct exchange *x, struct cell_count *cell, int n)
{
	int one_of = cell->given + (n > 0);	/* the number of the one that comes or goes */

	x->kept += one_of <= cell->have ? n : 0;
	x->with_lost += one_of <= cell->with_lost ? n : 0;
	cell->given += n;
}

static void count_arc(struct exchange *x, int arc, int from, int to)
{
	struct cell_count *row = &x->cells[x->demand[arc] * x->s->n_sites];

	count_cell(x, &row[from], -1);
	count_cell(x, &row[to], 1);
}

/* The arcs that have to make room on this side of one that goes from a site to another. */
enum walk { ENDS, CLOSES, FAILS };

static enum walk walk(struct exchange *x, int arc, enum side side)
{
	int from = x->from, to = x->to;

	for (;;) {
		int other = *slot(x, side, x->port[side][arc], to), site = from;

		if (other < 0 || other == x->chain[0]) {
			return other == NO_PORT ? FAILS : other == NO_ARC ? ENDS : CLOSES;
		}
		count_arc(x, other, to, from);
		x->chain[x->n_chain++] = other;
		from = to;
		to = site;
		arc = other;
		side = side == TX ? RX : TX;
	}
}

/* The chain of an arc that goes to a site. False: there is none. */
static bool make_chain(struct exchange *x, int arc, int site)
{
	enum walk end;

	x->from = x->site[arc];
	x->to = site;
	x->chain[0] = arc;
	x->n_chain = 1;
	count_arc(x, arc, x->from, site);
	end = walk(x, arc, RX);
	return end == CLOSES || (end == ENDS && walk(x, arc, TX) == ENDS);
}

static int other_site(const struct exchange *x, int site)
{
	return site == x->from ? x->to : x->from;
}

static void drop_chain(struct exchange *x)
{
	for (int i = 0; i < x->n_chain; i++) {
		int site = x->site[x->chain[i]];

		count_arc(x, x->chain[i], other_site(x, site), site);
	}
}

static void apply_chain(struct exchange *x)
{
	for (int i = 0; i < x->n_chain; i++) {
		int arc = x->chain[i];

		for (int side = 0; side < SIDES; side++) {
			int32_t *old = slot(x, side, x->port[side][arc], x->site[arc]);

			*old = *old == arc ? NO_ARC : *old;
			*slot(x, side, x->port[side][arc], other_site(x, x->site[arc])) = arc;
		}
		x->site[arc] = other_site(x, x->site[arc]);
	}
}

/* Another port of its rank for an arc, at the same site: chains then go other paths. */
static void change_port(struct exchange *x, int arc, enum side side)
{
	int port = x->port[side][arc], other = port / x->ports * x->ports;
	int32_t *mine = slot(x, side, port, x->site[arc]), *its;

	other += (int)(draw(x) % x->ports);
	its = slot(x, side, other, x->site[arc]);
	if (*its != NO_PORT) {
		int32_t was = *its;

		*its = arc;
		*mine = was;
		if (was >= 0) {
			x->port[side][was] = port;
		}
		x->port[side][arc] = other;
	}
}

/* A site for an arc: mostly one where it would stay. -1: it had better stay where it is. */
static int choose_site(struct exchange *x, int arc)
{
	const struct cell_count *row = &x->cells[x->demand[arc] * x->s->n_sites];
	int at = x->site[arc], found = -1, n = 0;

	if (row[at].given <= row[at].have) {
		return -1;
	}
	for (int site = 0; site < x->s->n_sites; site++) {
		if (row[site].given < row[site].have && draw(x) % ++n == 0) {
			found = site;
		}
	}
	if (found < 0 || draw(x) % 4 == 0) {
		found = (int)(draw(x) % (x->s->n_sites - 1));
		found += found >= at;
	}
	return found;
}

/* Whether the chain that was made is taken. */
static bool is_taken(struct exchange *x, int kept, int with_lost, int64_t chance)
{
	int less = x->kept == kept ? with_lost - x->with_lost : kept - x->kept;

	while (less > 0 && draw(x) < chance) {
		less--;
	}
	return less <= 0;
}

static void try_chain(struct exchange *x, int64_t chance)
{
	int kept = x->kept, with_lost = x->with_lost, arc = (int)(draw(x) % x->n), site;

	x->moves++;
	if (x->ports > 1) {
		change_port(x, arc, TX);
		change_port(x, arc, RX);
	}
	site = choose_site(x, arc);
	if (site < 0) {
		return;
	}
	if (make_chain(x, arc, site) && is_taken(x, kept, with_lost, chance)) {
		apply_chain(x);
	} else {
		drop_chain(x);
	}
	x->moves += x->n_chain;
}

static void anneal(struct exchange *x, int most, int32_t *best)
{
	int64_t limit = (int64_t)x->n * ARC_MOVES < MAX_MOVES ? (int64_t)x->n * ARC_MOVES
							       : MAX_MOVES;
	int best_kept = -1, best_with_lost = -1;

	while (x->moves < limit && best_kept < most) {
		try_chain(x, FIRST_CHANCE * (limit - x->moves) / limit);
		if (x->kept > best_kept ||
		    (x->kept == best_kept && x->with_lost > best_with_lost)) {
			memcpy(best, x->site, (size_t)x->n * sizeof(*best));
			best_kept = x->kept;
			best_with_lost = x->with_lost;
		}
	}
}

/* Slots of the ports that ranks have. */
static void make_slots(struct exchange *x)
{
	const struct plan_assignment *s = x->s;

	for (int c = 0; c < s->n_ranks * s->n_sites; c++) {
		x->ports = s->tx[c] > x->ports ? s->tx[c] : x->ports;
		x->ports = s->rx[c] > x->ports ? s->rx[c] : x->ports;
	}
	for (int side = 0; side < SIDES; side++) {
		arrays_add(&x->arrays, x->port[side], x->n + 1);
		arrays_add(&x->arrays, x->at[side],
			   (int64_t)s->n_ranks * x->ports * s->n_sites + 1);
		for (int p = 0; p < s->n_ranks * x->ports; p++) {
			const int *n = &(side == TX ? s->tx : s->rx)[p / x->ports * s->n_sites];

			for (int site = 0; site < s->n_sites; site++) {
				*slot(x, side, p, site) = p % x->ports < n[site] ? NO_ARC : NO_PORT;
			}
		}
	}
}

/* An arc at a site, on ports that are free. */
static void add_arc(struct exchange *x, int arc, int demand, int site)
{
	x->demand[arc] = demand;
	x->site[arc] = site;
	for (int side = 0; side < SIDES; side++) {
		int port = x->s->ends[demand][side] * x->ports;

		while (*slot(x, side, port, site) != NO_ARC) {
			port++;
		}
		*slot(x, side, port, site) = arc;
		x->port[side][arc] = port;
	}
}

static void exchange_init(struct exchange *x, const struct plan_assignment *s, const int *give)
{
	int cells = s->n_demands * s->n_sites, arc = 0;

	*x = (struct exchange){ .s = s, .ports = 1, .seed = 1 };
	for (int c = 0; c < cells; c++) {
		x->n += give[c];
	}
	arrays_add(&x->arrays, x->cells, cells + 1);
	arrays_add(&x->arrays, x->demand, x->n + 1);
	arrays_add(&x->arrays, x->site, x->n + 1);
	arrays_add(&x->arrays, x->chain, x->n + 1);
	make_slots(x);
	for (int c = 0; c < cells; c++) {
		x->cells[c].have = s->have[c];
		x->cells[c].with_lost = s->have[c] + s->lost[c];
		for (int n = 0; n < give[c]; n++) {
			add_arc(x, arc++, c / s->n_sites, c % s->n_sites);
			count_cell(x, &x->cells[c], 1);
		}
	}
}

void plan_assignment_improve(const struct plan_assignment *s, int *give, int most)
{
	struct exchange x;
	int32_t *best;

	exchange_init(&x, s, give);
	arrays_add(&x.arrays, best, x.n + 1);
	if (x.kept < most) {
		anneal(&x, most, best);
		memset(give, 0, (size_t)s->n_demands * s->n_sites * sizeof(*give));
		for (int i = 0; i < x.n; i++) {
			give[x.demand[i] * s->n_sites + best[i]]++;
		}
	}
	arrays_fini(&x.arrays);
}
