/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a shape to rounds: which group's items go from where to where. Far
 * levels count copies around the ring and know no nodes; only where a copy is
 * gets rounded. Near levels are small programs, one for each length of a gap
 * between two copies; gaps that lack an odd number of holders give the one in
 * the middle to the left and to the right alternately.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/order.h"
#include "optree/grouped/grouped.h"

void grouped_fini(struct optree_groups *g)
{
	for (int k = 0; k <= GROUPED_STAGES; k++) {
		free(g->stage[k].rep);
		free(g->stage[k].first);
		free(g->stage[k].own);
		free(g->stage[k].own_end);
	}
	for (int k = 0; k < 4; k++) {
		vec_fini(&g->gap[k / 2][k % 2].hops);
	}
	vec_fini(&g->paths);
	vec_fini(&g->rounds);
}

int32_t grouped_member(const struct optree_groups *g, int stage, int b)
{
	return (int32_t)((int64_t)b * g->stage[stage - 1].count / g->stage[stage].count);
}

static int groups_of(const struct optree_groups *g)
{
	return g->stage[g->shape.stages].count;
}

/* Where copy c of `copies` is, of group b; in the middle of its group for c = 0. */
static int32_t node_of(const struct optree_groups *g, int b, int64_t c, int copies)
{
	int64_t groups = groups_of(g), all = groups * copies;
	int64_t at = (b * (int64_t)copies + c * groups) % all;
	int64_t node = (at < 0 ? at + all : at) * g->n / all + g->n / (2 * groups);

	return (int32_t)(node % g->n);
}

/* ---- gathering ---- */

static void stage_init(struct optree_groups *g, int k, int count)
{
	struct grouped_stage *s = &g->stage[k];
	const struct grouped_stage *before = s - 1;

	s->count = count;
	s->rep = x_alloc((size_t)count, sizeof(*s->rep));
	s->first = x_alloc((size_t)count + 1, sizeof(*s->first));
	s->own = x_alloc((size_t)g->n, sizeof(*s->own));
	s->own_end = x_alloc((size_t)g->n, sizeof(*s->own_end));
	for (int v = 0; v < g->n; v++) {
		s->own[v] = k ? before->own[v] : v;
		s->own_end[v] = k ? before->own_end[v] : v + 1;
	}
	s->first[count] = g->n;
	for (int b = 0; b < count; b++) {
		int32_t lo = k ? grouped_member(g, k, b) : b;
		int32_t end = k ? grouped_member(g, k, b + 1) : b + 1;

		s->first[b] = k ? before->first[lo] : b;
		s->rep[b] = k == g->shape.stages && !g->shape.sums ? node_of(g, b, 0, 1)
			  : k ? before->rep[lo + (end - lo) / 2] : b;
	}
	for (int b = 0; b < count; b++) {
		s->own[s->rep[b]] = s->first[b];
		s->own_end[s->rep[b]] = s->first[b + 1];
	}
}

const struct grouped_stage *grouped_stage_of(const struct optree_groups *g,
					     const struct grouped_round *r)
{
	int stages = g->shape.stages;

	return &g->stage[r->level < stages ? r->level
			 : g->shape.sums ? 2 * stages - r->level : stages];
}

int64_t grouped_items(const struct optree_groups *g, const struct grouped_stage *s,
		      const struct grouped_hop *h)
{
	int to = (h->dir == RWA_CW ? h->src + h->len : h->src - h->len + g->n) % g->n;
	int32_t first, end;

	if (g->shape.owners) {
		struct grouped_part part = grouped_part(g, h->group);

		return part.end - part.first;
	}
	if (g->shape.sums && !g->shape.pieces) {
		return g->n;
	}
	first = s->first[h->group];
	end = s->first[h->group + 1];
	if (g->shape.pieces) {
		return (int64_t)(end - first) * (s == &g->stage[g->shape.stages]
				? s->own_end[to] - s->own[to] : g->n - (end - first));
	}
	return end - first - (to >= first && to < end ? s->own_end[to] - s->own[to] : 0);
}

/* All members of the groups of a stage. */
static int gather(const struct optree_groups *g, int k, grouped_hop_fn *f, void *data)
{
	const struct grouped_stage *from = &g->stage[k - 1], *to = &g->stage[k];

	for (int j = 0, b = 0; j < from->count; j++) {
		struct grouped_hop h = { .group = j, .src = from->rep[j] };
		int rc;

		b += j >= grouped_member(g, k, b + 1);
		h.len = to->rep[b] - h.src;
		h.dir = h.len > 0 ? RWA_CW : RWA_CCW;
		h.kind = h.len = abs(h.len);
		if (h.len && (rc = f(data, &h))) {
			return rc;
		}
	}
	return 0;
}

/* ---- far levels ---- */

/* New copies on each side of the `times` - 1 that each one makes: where these are
 * odd, one more clockwise for every second group. */
static int side_of(int times, int dir, int b)
{
	return (times - 1) / 2 + (times % 2 == 0 && b % 2 == dir);
}

static int far_hops(const struct optree_groups *g, const struct grouped_level *l, int before,
		    int nth, grouped_hop_fn *f, void *data)
{
	int copies = before * l->times, from = nth * l->jump;
	int groups = groups_of(g);

	for (int64_t i = 0; i < 2 * (int64_t)groups * before; i++) {
		int b = (int)(i / 2 / before), c = (int)(i / 2 % before);
		int dir = i % 2 ? RWA_CCW : RWA_CW, sign = dir == RWA_CW ? 1 : -1;
		int to = side_of(l->times, dir, b);

		to = to < from + l->jump ? to : from + l->jump;
		for (int k = from + 1; k <= to; k++) {
			int64_t at = (int64_t)c * l->times + (int64_t)sign * from;
			struct grouped_hop h = {
				.group = b, .kind = k - from, .dir = dir,
				.src = node_of(g, b, at, copies) };
			int32_t end = node_of(g, b, at + sign * (k - from), copies);
			int rc;

			h.len = (sign * (end - h.src) + g->n) % g->n;
			rc = f(data, &h);
			if (rc) {
				return rc;
			}
		}
	}
	return 0;
}

/* ---- sums of whole vectors ---- */

/* Every group's sum to all others. */
static int exchange(const struct optree_groups *g, grouped_hop_fn *f, void *data)
{
	int groups = groups_of(g), rc = 0;
	const int32_t *rep = g->stage[g->shape.stages].rep;

	for (int i = 0; i < 2 * groups && !rc; i++) {
		int b = i / 2, dir = i % 2 ? RWA_CCW : RWA_CW, sign = i % 2 ? -1 : 1;

		for (int k = 1; k <= side_of(groups, dir, b) && !rc; k++) {
			int to = rep[(b + sign * k + groups) % groups];
			struct grouped_hop h = {
				.group = b, .kind = k, .dir = dir, .src = rep[b],
				.len = (sign * (to - rep[b]) + g->n) % g->n };

			rc = f(data, &h);
		}
	}
	return rc;
}

int grouped_turn(void *turned, const struct grouped_hop *h)
{
	const struct grouped_turned *t = turned;
	struct grouped_hop back = *h;

	back.src = (h->dir == RWA_CW ? h->src + h->len : h->src - h->len + t->n) % t->n;
	back.dir = !h->dir;
	return t->f(t->data, &back);
}

static int sum_hops(const struct optree_groups *g, int level, grouped_hop_fn *f, void *data)
{
	struct grouped_turned t = { g->n, f, data };
	int stages = g->shape.stages;

	return level < stages  ? gather(g, level + 1, f, data)
	     : level == stages ? exchange(g, f, data)
			       : gather(g, 2 * stages + 1 - level, grouped_turn, &t);
}

/* ---- near levels ---- */

/* Holders in a gap, by place. */
struct gap_fill {
	struct gap_program *to;
	const struct grouped_level *level;
	int32_t *at, *next;
	int n_at, n_next;
	int round, parity;
};

static void from_end(struct gap_fill *w, int end, int dir, int count)
{
	int sign = dir == RWA_CW ? 1 : -1, stride = w->level->stride, jump = w->level->jump;

	for (int p = 1; p <= count; p++) {
		int nth = (p - 1) / jump, from = nth * jump;
		struct gap_hop h = {
			.round = w->round + nth, .at = end + sign * from * stride,
			.len = (p - from) * stride, .dir = (uint8_t)dir };

		vec_push(&w->to->hops, h);
	}
}

static void fill_between(struct gap_fill *w, int k, int x, int y)
{
	int stride = w->level->stride, lacks = (y - x + stride - 1) / stride - 1;
	int left = (lacks + (lacks % 2 && (k + w->parity) % 2 == 0)) / 2, right = lacks - left;

	for (int i = 1; i <= left; i++) {
		w->next[w->n_next++] = x + i * stride;
	}
	for (int i = right; i >= 1; i--) {
		w->next[w->n_next++] = y - i * stride;
	}
	w->next[w->n_next++] = y;
	from_end(w, x, RWA_CW, left);
	from_end(w, y, RWA_CCW, right);
}

static void fill_level(struct gap_fill *w)
{
	int32_t *swap = w->at;

	w->n_next = 1;
	w->next[0] = 0;
	for (int k = 0; k + 1 < w->n_at; k++) {
		fill_between(w, k, w->at[k], w->at[k + 1]);
	}
	w->at = w->next;
	w->n_at = w->n_next;
	w->next = swap;
}

static int rounds_of(const struct grouped_level *l)
{
	int lacks = l->times ? l->times - 1 : (l->gap + l->stride - 1) / l->stride - 1;

	return ((lacks + 1) / 2 + l->jump - 1) / l->jump;
}

ORDER_BY(by_round, struct gap_hop, round, at, dir)

static void make_program(const struct optree_groups *g, int gap, int parity, struct gap_program *to)
{
	size_t bytes = ((size_t)gap + 1) * sizeof(int32_t);
	struct gap_fill w = { .to = to, .parity = parity, .at = x_alloc(bytes, 1),
			      .next = x_alloc(bytes, 1), .n_at = 2 };

	w.at[0] = 0;
	w.at[1] = gap;
	for (int j = g->far; j < g->shape.levels; j++) {
		w.level = &g->shape.level[j];
		fill_level(&w);
		w.round += rounds_of(w.level);
	}
	if (to->hops.n) {
		qsort(to->hops.v, to->hops.n, sizeof(*to->hops.v), by_round);
	}
	free(w.at);
	free(w.next);
}

static int near_hops(const struct optree_groups *g, int round, grouped_hop_fn *f, void *data)
{
	size_t from[2][2] = { { 0 } };
	int groups = groups_of(g), shortest = g->n / g->copies;

	for (int k = 0; k < 4; k++) {
		const struct gap_program *p = &g->gap[k / 2][k % 2];
		size_t *at = &from[k / 2][k % 2];

		while (*at < p->hops.n && p->hops.v[*at].round < round) {
			++*at;
		}
	}
	for (int b = 0; b < groups; b++) {
		int32_t u = node_of(g, b, 0, g->copies), v;

		for (int c = 0; c < g->copies; c++, u = v) {
			const struct gap_program *p;
			int longer, rc;

			v = node_of(g, b, c + 1, g->copies);
			longer = (v - u + g->n - 1) % g->n + 1 - shortest;
			p = &g->gap[longer][(b + c) % 2];
			for (size_t i = from[longer][(b + c) % 2];
			     i < p->hops.n && p->hops.v[i].round == round; i++) {
				const struct gap_hop *x = &p->hops.v[i];
				struct grouped_hop h = {
					.group = b, .kind = x->len, .dir = x->dir,
					.src = (u + x->at) % g->n, .len = x->len };

				rc = f(data, &h);
				if (rc) {
					return rc;
				}
			}
		}
	}
	return 0;
}

/* ---- all of it ---- */

int grouped_each_hop(const struct optree_groups *g, const struct grouped_round *r,
		     grouped_hop_fn *f, void *data)
{
	int level = r->level - g->shape.stages, near = r->nth, copies = 1;

	if (g->shape.owners) {
		return grouped_owner_hops(g, r->level, f, data);
	}
	if (g->shape.sums) {
		return sum_hops(g, r->level, f, data);
	}
	if (level < 0) {
		return gather(g, r->level + 1, f, data);
	}
	for (int j = 0; j < level && j < g->far; j++) {
		copies *= g->shape.level[j].times;
	}
	if (level < g->far) {
		return far_hops(g, &g->shape.level[level], copies, r->nth, f, data);
	}
	for (int j = g->far; j < level; j++) {
		near += rounds_of(&g->shape.level[j]);
	}
	return near_hops(g, near, f, data);
}

static void add_rounds(struct optree_groups *g)
{
	const struct grouped_shape *s = &g->shape;
	bool gather = !s->sums && !s->owners;
	int all = s->owners ? 2 * s->owners
			    : s->stages + (s->sums ? s->stages + 1 : s->levels);

	for (int k = 0; k < all; k++) {
		int level = k - s->stages;
		int n = level < 0 || !gather ? 1 : rounds_of(&s->level[level]);

		for (int nth = 0; nth < n; nth++) {
			struct grouped_round r = { .level = k, .nth = nth };

			vec_push(&g->rounds, r);
		}
	}
}

void grouped_rounds(int n, const struct grouped_shape *shape, struct optree_groups *out)
{
	*out = (struct optree_groups){ .n = n, .shape = *shape, .copies = 1, .units = 1 };
	if (shape->owners) {
		int pieces = grouped_pieces(out);

		out->units = pieces / (int)rat_gcd(pieces, n);
	}
	while (out->far < shape->levels && shape->level[out->far].times) {
		out->copies *= shape->level[out->far++].times;
	}
	stage_init(out, 0, n);
	for (int k = 1; k <= shape->stages; k++) {
		stage_init(out, k, shape->groups[k - 1]);
	}
	for (int k = 0; k < 4 && !shape->sums && !shape->owners; k++) {
		make_program(out, n / out->copies + k / 2, k % 2, &out->gap[k / 2][k % 2]);
	}
	add_rounds(out);
}
