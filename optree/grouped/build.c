/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a shape to lightpaths with light. A stage of gathering sends what the
 * members of a group have to the one in their middle. The rounds that follow
 * are those of a composed all-gather, begun by the representatives: from each
 * of them the same offsets, so it takes a table of offsets only. How much goes
 * from which node over which length is counted, and lightpaths are coloured:
 * those of one length by blocks as in symmetric.c, or where that takes more
 * channels than the load and it matters, all of them by rwa_ring_colour().
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "optree/grouped/grouped.h"

/* ---- what goes where ---- */

/* Items by direction, kind and source, of one round. */
struct counter {
	const struct optree_groups *g;
	const struct grouped_stage *from;
	int64_t *items;		/* 2 * kinds * n */
	int32_t *len;
	int kinds;
};

static int count_hop(void *data, const struct grouped_hop *h)
{
	struct counter *c = data;
	size_t at = ((size_t)h->dir * c->kinds + h->kind) * c->g->n + h->src;

	c->items[at] += grouped_items(c->g, c->from, h);
	c->len[at] = h->len;
	return 0;
}

static int max_kind(void *data, const struct grouped_hop *h)
{
	int *most = data;

	*most = h->kind > *most ? h->kind : *most;
	return 0;
}

static void add_paths(struct optree_groups *g, struct grouped_round *r, const struct counter *c)
{
	r->path = g->paths.n;
	for (size_t at = 0; at < 2 * (size_t)c->kinds * g->n; at++) {
		size_t n = (size_t)g->n, row = at / n;
		struct grouped_path x = {
			.src = (int32_t)(at % n), .len = c->len[at], .items = c->items[at],
			.kind = (int)row % c->kinds, .dir = row >= (size_t)c->kinds };

		if (!x.items) {
			continue;
		}
		g->max_len = x.len > g->max_len ? x.len : g->max_len;
		vec_push(&g->paths, x);
	}
	r->n_paths = g->paths.n - r->path;
}

static void count_round(struct optree_groups *g, struct grouped_round *r)
{
	struct counter c = { .g = g };
	int most = 0;

	c.from = grouped_stage_of(g, r);
	grouped_each_hop(g, r, max_kind, &most);
	c.kinds = most + 1;
	c.items = x_new(2 * (size_t)c.kinds * g->n, sizeof(*c.items));
	c.len = x_alloc(2 * (size_t)c.kinds * g->n, sizeof(*c.len));
	grouped_each_hop(g, r, count_hop, &c);
	add_paths(g, r, &c);
	free(c.items);
	free(c.len);
}

/* ---- light ---- */

/* One direction of a round: a class of lightpaths that share no link each. */
struct painter {
	struct optree_groups *g;
	int n, room;
	struct grouped_path *path;
	size_t n_paths;
	int32_t *class;		/* of each path */
	int32_t *load;		/* n */
	struct rwa_arc *arc;
	int classes, min;	/* min: the most that cross a link */
	int64_t *items;		/* of each class: the most of a lightpath */
	int32_t *width, *first;
};

static int link_of(const struct painter *a, const struct grouped_path *x)
{
	return x->dir == RWA_CW ? x->src : (x->src - x->len + a->n) % a->n;
}

/* The most lightpaths that cross a link. */
static void count_load(struct painter *a)
{
	int32_t now = 0;

	memset(a->load, 0, (size_t)a->n * sizeof(*a->load));
	for (size_t i = 0; i < a->n_paths; i++) {
		int lo = link_of(a, &a->path[i]), end = lo + a->path[i].len;

		a->load[lo]++;
		a->load[end % a->n]--;
		now += end >= a->n;
	}
	a->min = 0;
	for (int v = 0; v < a->n; v++) {
		now += a->load[v];
		a->min = now > a->min ? now : a->min;
	}
}

/* The most of `count` lightpaths of a length, by source, that begin within
 * their length of each other. */
static size_t widest(const struct painter *a, const struct grouped_path *x, size_t count)
{
	size_t end = 0, most = 0;

	for (size_t i = 0; i < count; i++) {
		int stop = x[i].src + x[i].len;

		while (end < i + count &&
		       x[end % count].src + (end >= count ? a->n : 0) < stop) {
			end++;
		}
		most = end - i > most ? end - i : most;
	}
	return most;
}

/* Lightpaths of one length in as many blocks as go round; the class is the
 * place in the block, and blocks are no shorter than the load. */
static void paint_length(struct painter *a, size_t from, size_t count)
{
	size_t blocks = count / widest(a, a->path + from, count), begin = 0;
	int most = 0;

	for (size_t k = 0; k < blocks; k++) {
		size_t end = ((k + 1) * count + blocks - 1) / blocks;

		for (size_t i = begin; i < end; i++) {
			a->class[from + i] = a->classes + (int32_t)(i - begin);
		}
		most = (int)(end - begin) > most ? (int)(end - begin) : most;
		begin = end;
	}
	a->classes += most;
}

static void paint_lengths(struct painter *a)
{
	size_t from = 0;

	a->classes = 0;
	while (from < a->n_paths) {
		size_t end = from;

		while (end < a->n_paths && a->path[end].kind == a->path[from].kind) {
			end++;
		}
		paint_length(a, from, end - from);
		from = end;
	}
}

/* All lengths together, when it takes fewer classes. */
static int paint_together(struct painter *a, struct err *err)
{
	struct rwa_ring ring = { a->n, 1, a->classes };
	struct rwa_result res;
	int rc;

	for (size_t i = 0; i < a->n_paths; i++) {
		const struct grouped_path *x = &a->path[i];
		int to = x->dir == RWA_CW ? x->src + x->len : x->src - x->len + a->n;

		a->arc[i] = (struct rwa_arc){ .src = x->src, .dst = to % a->n, .dir = x->dir };
	}
	rc = rwa_ring_colour(&ring, a->arc, (int64_t)a->n_paths, &res, err);
	if (rc || res.colours >= a->classes) {
		return rc;
	}
	a->classes = res.colours;
	for (size_t i = 0; i < a->n_paths; i++) {
		a->class[i] = a->arc[i].channel;
	}
	return 0;
}

/* Whoever takes longest gets a channel more, while there are any. */
static void share_room(struct painter *a, int from, int to)
{
	int64_t sum = 0, room = a->room;

	for (int c = from; c < to; c++) {
		sum += a->items[c];
	}
	for (int c = from; c < to; c++) {
		int64_t share = a->items[c] * (a->room - (to - from)) / sum;

		a->width[c] = 1 + (int32_t)share;
		room -= a->width[c];
	}
	for (; room > 0; room--) {
		int worst = from;

		for (int c = from; c < to; c++) {
			if (a->items[c] * a->width[worst] > a->items[worst] * a->width[c]) {
				worst = c;
			}
		}
		a->width[worst]++;
	}
	for (int c = from, base = 0; c < to; c++) {
		a->first[c] = base;
		base += a->width[c];
	}
}

/* Classes that fit at once are a slot. */
static void light_direction(struct painter *a, int slots)
{
	int per = (a->classes + slots - 1) / slots;

	memset(a->items, 0, (size_t)a->classes * sizeof(*a->items));
	for (size_t i = 0; i < a->n_paths; i++) {
		int64_t *most = &a->items[a->class[i]];

		*most = a->path[i].items > *most ? a->path[i].items : *most;
	}
	for (int from = 0; from < a->classes; from += per) {
		share_room(a, from, from + per < a->classes ? from + per : a->classes);
	}
	for (size_t i = 0; i < a->n_paths; i++) {
		struct grouped_path *x = &a->path[i];

		x->slot = a->class[i] / per;
		x->first = a->first[a->class[i]];
		x->width = a->width[a->class[i]];
		a->g->lightpaths += x->width;
	}
}

static void painter_init(struct painter *a, struct arrays *arrays, struct optree_groups *g,
			 const struct grouped_round *r, int dir)
{
	*a = (struct painter){ .g = g, .n = g->n, .room = g->w,
			       .path = g->paths.v + r->path };
	while (a->path < g->paths.v + r->path + r->n_paths && a->path->dir != dir) {
		a->path++;
	}
	while (a->path + a->n_paths < g->paths.v + r->path + r->n_paths &&
	       a->path[a->n_paths].dir == dir) {
		a->n_paths++;
	}
	arrays_add(arrays, a->class, a->n_paths);
	arrays_add(arrays, a->load, a->n);
	arrays_add(arrays, a->arc, a->n_paths);
	arrays_add(arrays, a->items, a->n_paths);
	arrays_add(arrays, a->width, a->n_paths);
	arrays_add(arrays, a->first, a->n_paths);
}

#define TOGETHER_MAX 2048	/* lightpaths */

/* A better colouring could give every lightpath a channel more, or save a
 * step. */
static bool may_gain(const struct painter *a)
{
	return a->classes > a->min && a->n_paths <= TOGETHER_MAX &&
	       (a->classes > a->room || a->room / a->min > a->room / a->classes);
}

static int light_round(struct optree_groups *g, struct grouped_round *r, bool careful,
		       struct err *err)
{
	struct arrays arrays = { 0 };
	struct painter a[2];
	int rc = 0;

	r->slots = 1;
	for (int dir = 0; dir < 2 && !rc; dir++) {
		int need;

		painter_init(&a[dir], &arrays, g, r, dir);
		count_load(&a[dir]);
		paint_lengths(&a[dir]);
		if ((careful || g->shape.owners) && may_gain(&a[dir])) {
			rc = paint_together(&a[dir], err);
		}
		need = (a[dir].classes + a[dir].room - 1) / a[dir].room;
		r->slots = need > r->slots ? need : r->slots;
	}
	for (int dir = 0; dir < 2 && !rc; dir++) {
		if (a[dir].classes) {
			light_direction(&a[dir], r->slots);
		}
	}
	g->steps += r->slots;
	arrays_fini(&arrays);
	return rc;
}

/* As many chunks as make every channel's share a whole number, or the most
 * allowed; a multiple of units. */
static int choose_chunks(const struct optree_groups *g, int max)
{
	int64_t q = 1;

	for (size_t i = 0; i < g->paths.n; i++) {
		const struct grouped_path *x = &g->paths.v[i];
		int64_t need = x->width / rat_gcd(x->width, x->items);

		q = q / rat_gcd(q, need) * need;
		if (q > max / g->units) {
			return max / g->units * g->units;
		}
	}
	return (int)q * g->units;
}

/* Links that light crosses, where they take time; of some nodes with some light the most that
 * such light does, as its mirror begins elsewhere. */
static int links_of(const struct optree_params *p, const struct grouped_path *x)
{
	int to = x->dir == RWA_CW ? x->src + x->len : x->src - x->len + p->n;

	if (p->span_delay_ns && p->at && p->n_light) {
		return tree_span(p, x->len);
	}
	return p->span_delay_ns ? optree_links(p, x->src, to % p->n, x->dir) : 0;
}

/* Of each slot of a round, what its longest lightpath takes: into most, summed up. */
static __int128 round_time(const struct optree_params *p, const struct optree_groups *g,
			   const struct grouped_round *r, __int128 *most)
{
	__int128 unit = (__int128)p->channel_bps * g->chunks, sum = unit * p->alpha_ns * r->slots;
	__int128 chunk = (__int128)p->shard_bytes * 8000000000;

	memset(most, 0, (size_t)r->slots * sizeof(*most));
	for (size_t k = r->path; k < r->path + r->n_paths; k++) {
		const struct grouped_path *x = &g->paths.v[k];
		int64_t chunks = x->items * (g->chunks / g->units);
		__int128 t = (chunks + x->width - 1) / x->width * chunk +
			     links_of(p, x) * p->span_delay_ns * unit;

		most[x->slot] = t > most[x->slot] ? t : most[x->slot];
	}
	for (int slot = 0; slot < r->slots; slot++) {
		sum += most[slot];
	}
	return sum;
}

/* Times count in 1 / (channel_bps * chunks) ns, so they are whole. */
static int64_t time_of(const struct optree_params *p, const struct optree_groups *g)
{
	__int128 unit = (__int128)p->channel_bps * g->chunks, sum = 0;
	__int128 *most = x_alloc((size_t)g->steps, sizeof(*most));

	for (size_t i = 0; i < g->rounds.n; i++) {
		sum += round_time(p, g, &g->rounds.v[i], most);
	}
	free(most);
	sum = (sum + unit - 1) / unit;
	return sum > INT64_MAX ? -1 : (int64_t)sum;
}

int grouped_build(const struct optree_params *p, const struct grouped_shape *shape, bool careful,
		  struct optree_groups *out, struct err *err)
{
	int rc;

	grouped_rounds(p->n, shape, out);
	out->w = tree_ring(p).channels * tree_ring(p).fibres;
	for (size_t i = 0; i < out->rounds.n; i++) {
		count_round(out, &out->rounds.v[i]);
	}
	for (size_t i = 0; i < out->rounds.n; i++) {
		rc = light_round(out, &out->rounds.v[i], careful, err);
		if (rc) {
			return rc;
		}
		if (shape->sums && !shape->pieces && (int)i == shape->stages &&
		    out->rounds.v[i].slots > 1) {
			return err_set(err, WEFT_ELIMIT, "sums are exchanged in one step");
		}
		if (out->steps > COLL_MAX_STEPS) {
			return err_set(err, WEFT_ELIMIT, "more than %d steps", COLL_MAX_STEPS);
		}
	}
	out->chunks = choose_chunks(out, compose_max_chunks(p));
	out->time_ns = time_of(p, out);
	return 0;
}
