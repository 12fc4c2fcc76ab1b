/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broadcast for short vectors: nodes that hold it cut the ring, or the line,
 * into gaps, and in each round a few nodes of every gap receive it from the
 * two ends. The more there are, the fewer rounds, but the fewer channels for
 * each lightpath. Gaps do not share links, so they are all filled at a time.
 *
 * m new holders of a gap share the channels by directions of which each takes
 * its part; where that cuts one in two, it receives a part from each end. What
 * is behind the last holder of a line has one end only.
 */
#include <math.h>
#include <stdlib.h>

#include "lib/base/number/rat.h"
#include "optree/broadcast/broadcast.h"

/* How m new holders of a gap receive. */
struct gap_share {
	int side[2];		/* whole, from the clockwise and the other end */
	bool split;		/* one more, from both */
	int64_t width[2];	/* channels of each of `side` */
	int64_t rest[2];	/* of the one that is split */
	double ns;		/* of the round's data, with its alpha; INFINITY:
				 * not enough channels */
};

struct gap_filling {
	const struct optree_params *p;
	int root, reach;
	int sides[2];		/* of the root, on a line */
	int most;		/* new holders of a gap in a round */
	struct arrays arrays;	/* owns what follows */
	struct gap_share *share;	/* by new holders, 1..most */
	double *ns;		/* to fill gaps of up to so many links */
	int32_t *choice;	/* new holders then; 0: light does not reach */
	int32_t *at, *next;	/* holders' offsets, ascending */
	int n_at, n_next;
};

/* ---- rounds ---- */

static void set_widths(const struct optree_params *p, struct gap_share *g, double cut)
{
	double longest = 0, vector = broadcast_vector_ns(p);
	double part[2] = { cut, 1 - cut };

	for (int dir = 0; dir < 2; dir++) {
		double parts = g->side[dir] + (g->split ? part[dir] : 0);
		int64_t w = tree_width(p, dir);

		g->width[dir] = parts > 0 ? (int64_t)((double)w / parts + 1e-9) : 0;
		g->width[dir] = g->width[dir] < w ? g->width[dir] : w;
		g->rest[dir] = g->split ? w - g->side[dir] * g->width[dir] : 0;
		if (g->side[dir] && g->width[dir] < 1) {
			longest = INFINITY;
		} else if (g->side[dir] && vector / (double)g->width[dir] > longest) {
			longest = vector / (double)g->width[dir];
		}
	}
	if (g->split && (g->rest[0] < 1 || g->rest[1] < 1)) {
		longest = INFINITY;
	} else if (g->split && vector / (double)(g->rest[0] + g->rest[1]) > longest) {
		longest = vector / (double)(g->rest[0] + g->rest[1]);
	}
	g->ns = (double)p->alpha_ns + longest;
}

static void make_share(const struct optree_params *p, int m, struct gap_share *g)
{
	int64_t cw = tree_width(p, RWA_CW), ccw = tree_width(p, RWA_CCW);
	int64_t over = m * cw % (cw + ccw);

	*g = (struct gap_share){ .split = over && !p->line };
	g->side[0] = (int)(m * cw / (cw + ccw));
	g->side[1] = p->line ? (int)(m * ccw / (cw + ccw)) : m - g->side[0] - g->split;
	set_widths(p, g, (double)over / (double)(cw + ccw));
}

/* New holders of a gap of so many links: from its ends, and whether one in
 * the middle is reached from both. `open`: it has no other end. */
struct gap_places {
	int side[2], stride, parts;
	bool split;
};

static struct gap_places places(const struct gap_filling *f, const struct gap_share *g, int gap,
				int open)
{
	int lacks = gap - 1, most;
	struct gap_places x;

	x.side[0] = open == RWA_CCW ? 0 : g->side[0];
	x.side[0] = x.side[0] < lacks ? x.side[0] : lacks;
	lacks -= x.side[0];
	x.side[1] = open == RWA_CW ? 0 : g->side[1];
	x.side[1] = x.side[1] < lacks ? x.side[1] : lacks;
	x.split = g->split && lacks > x.side[1];
	x.parts = x.side[0] + x.side[1] + x.split + 1;
	x.stride = (gap + x.parts - 1) / x.parts;
	most = (x.side[0] > x.side[1] ? x.side[0] : x.side[1]) + x.split;
	/* Rounded up, the middle one may be a link farther from one end. */
	if (most && most * x.stride > f->reach) {
		x.split = false;
		most = x.side[0] > x.side[1] ? x.side[0] : x.side[1];
		lacks = most ? (gap - 1) / (x.side[0] + x.side[1]) : 0;
		x.stride = most ? f->reach / most : 0;
		x.stride = x.stride < lacks ? x.stride : lacks;
		x.parts = 0;
	}
	return x;
}

/* The widest gap that a gap leaves. */
static int left_of(const struct gap_filling *f, const struct gap_share *g, int gap, int open)
{
	struct gap_places x = places(f, g, gap, open);
	int rest = gap - (x.side[0] + x.side[1]) * x.stride;

	if (x.parts) {
		return x.stride;
	}
	return rest > x.stride ? rest : x.stride;
}

static int left_of_all(const struct gap_filling *f, const struct gap_share *g, int gap)
{
	int left = left_of(f, g, gap, -1), side;

	for (int dir = 0; f->p->line && dir < 2; dir++) {
		if (f->sides[dir]) {
			side = left_of(f, g, gap, dir);
			left = side > left ? side : left;
		}
	}
	return left;
}

/* The best number of new holders for each width of gaps. */
static void choose(struct gap_filling *f)
{
	f->ns[1] = 0;
	for (int gap = 2; gap <= f->p->n; gap++) {
		f->ns[gap] = INFINITY;
		for (int m = 1; m <= f->most && m < gap; m++) {
			int left = isinf(f->share[m].ns)
					   ? gap : left_of_all(f, &f->share[m], gap);
			double ns = f->share[m].ns + f->ns[left < gap ? left : 1];

			if (f->p->span_delay_ns) {
				ns += (double)((m + 1) / 2) * left * (double)f->p->span_delay_ns;
			}
			if (left < gap && ns < f->ns[gap]) {
				f->ns[gap] = ns;
				f->choice[gap] = m;
			}
		}
	}
}

/* ---- sends ---- */

static void send(struct gap_filling *f, struct optree_broadcast *b, struct broadcast_send x)
{
	int n = f->p->n;

	x.step = b->send_steps;
	x.from = (x.from + n) % n;
	x.to = (x.to + n) % n;
	vec_push(&b->sends, x);
}

/* Holder number k from one end, `links` from it; part: of the chunks. */
static void from_end(struct gap_filling *f, struct optree_broadcast *b, const struct gap_share *g,
		     int end, int dir, int links, int k, const int64_t *part)
{
	send(f, b, (struct broadcast_send){
		.from = end, .to = dir == RWA_CW ? end + links : end - links,
		.dir = (uint8_t)dir, .colour = (int32_t)((k - 1) * g->width[dir]),
		.width = (int32_t)(part ? g->rest[dir] : g->width[dir]),
		.first = part ? part[0] : 0,
		.end = part ? part[1] : (int64_t)f->p->n * b->chunks });
}

/* The gap from holder x to y; open: only one of them is one. */
static void fill_gap(struct gap_filling *f, struct optree_broadcast *b, const struct gap_share *g,
		     int x, int y, int open)
{
	struct gap_places at = places(f, g, y - x, open);
	int64_t all = (int64_t)f->p->n * b->chunks, sum = g->rest[0] + g->rest[1];
	int64_t cut = sum ? (all * g->rest[0] + sum / 2) / sum : 0;
	int64_t parts[2][2] = { { 0, cut }, { cut, all } };

	for (int k = 1; k <= at.side[0] + at.split; k++) {
		int links = at.parts ? (int)((int64_t)k * (y - x) / at.parts) : k * at.stride;
		bool split = k > at.side[0];

		f->next[f->n_next++] = x + links;
		from_end(f, b, g, x, RWA_CW, links, split ? g->side[0] + 1 : k,
			      split ? parts[0] : NULL);
		if (split) {
			from_end(f, b, g, y, RWA_CCW, y - x - links, g->side[1] + 1, parts[1]);
		}
	}
	for (int k = at.side[1]; k >= 1; k--) {
		int links = at.parts ? y - x - (int)((int64_t)(at.parts - k) * (y - x) / at.parts)
				     : k * at.stride;

		f->next[f->n_next++] = y - links;
		from_end(f, b, g, y, RWA_CCW, links, k, NULL);
	}
}

static int widest(const struct gap_filling *f)
{
	int most = 1;

	for (int k = 0; k + 1 < f->n_at; k++) {
		int gap = f->at[k + 1] - f->at[k];

		most = gap > most ? gap : most;
	}
	return most;
}

/* Offsets run from -1 - sides[1] to sides[0] + 1 on a line, whose ends are no
 * holders; on a ring from the root to the root. */
static void fill_round(struct gap_filling *f, struct optree_broadcast *b, int m)
{
	const struct gap_share *g = &f->share[m];
	int32_t *swap = f->at;

	f->n_next = 0;
	for (int k = 0; k + 1 < f->n_at; k++) {
		int x = f->at[k], y = f->at[k + 1];
		int open = !f->p->line ? -1 : k == 0 ? RWA_CCW
			   : k + 2 == f->n_at ? RWA_CW : -1;

		f->next[f->n_next++] = x;
		if (y - x > 1) {
			fill_gap(f, b, g, x, y, open);
		}
	}
	f->next[f->n_next++] = f->at[f->n_at - 1];
	b->send_steps++;
	f->at = f->next;
	f->n_at = f->n_next;
	f->next = swap;
}

static void begin(struct gap_filling *f)
{
	f->n_at = 0;
	if (f->p->line) {
		f->at[f->n_at++] = -1 - f->sides[1];
	}
	f->at[f->n_at++] = 0;
	f->at[f->n_at++] = f->p->line ? f->sides[0] + 1 : f->p->n;
}

static void fill_all(struct gap_filling *f, struct optree_broadcast *b)
{
	int gap;

	begin(f);
	while ((gap = widest(f)) > 1) {
		fill_round(f, b, f->choice[gap]);
	}
}

/* ---- chunks ---- */

static int64_t lcm_within(int64_t a, int64_t b, int64_t limit)
{
	int64_t x = a / rat_gcd(a, b);

	return b && x <= limit / b ? x * b : a;
}

/* Every channel's share a whole number, if that is possible. */
static int even_chunks(const struct gap_filling *f)
{
	int64_t max = compose_max_chunks(f->p), q = 1;

	for (int gap = f->p->n; gap > 1 && f->choice[gap];) {
		const struct gap_share *g = &f->share[f->choice[gap]];
		int64_t need[3] = { g->width[0], g->width[1], g->rest[0] + g->rest[1] };

		for (int k = 0; k < 3; k++) {
			if (need[k]) {
				q = lcm_within(q, need[k] / rat_gcd(need[k], f->p->n), max);
			}
		}
		gap = left_of_all(f, g, gap);
	}
	return (int)(max / q * q);
}

static void try_chunks(struct gap_filling *f, int chunks, struct optree_broadcast *out)
{
	struct optree_broadcast b = { .method = BROADCAST_GAPS, .root = f->root, .chunks = chunks };

	fill_all(f, &b);
	broadcast_time(f->p, 0, &b);
	broadcast_keep(out, &b);
}

void broadcast_gaps(const struct optree_params *p, int root, int reach,
		    struct optree_broadcast *out)
{
	struct gap_filling f = { .p = p, .root = root, .reach = reach };
	int64_t most = tree_width(p, 0) + tree_width(p, 1);
	size_t n = (size_t)p->n + 3;

	f.most = (int)(most < p->n - 1 ? most : p->n - 1);
	broadcast_sides(p, root, f.sides);
	arrays_add(&f.arrays, f.share, f.most + 1);
	arrays_add(&f.arrays, f.ns, n);
	arrays_add(&f.arrays, f.choice, n);
	arrays_add(&f.arrays, f.at, n);
	arrays_add(&f.arrays, f.next, n);
	for (int m = 1; m <= f.most; m++) {
		make_share(p, m, &f.share[m]);
	}
	choose(&f);
	if (!isinf(f.ns[p->n])) {
		try_chunks(&f, even_chunks(&f), out);
	}
	if (!isinf(f.ns[p->n])) {
		try_chunks(&f, compose_max_chunks(p), out);
	}
	arrays_fini(&f.arrays);
}
