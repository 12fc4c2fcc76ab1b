/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan as a picture: a symmetric schedule by its form, another by its lights. Above:
 * channels over time, for each direction, a box for each move of each step, from when its
 * data begins to when it ends; what lies between is retuning and conversion. Below: the ring
 * in single steps, its lightpaths as arcs, clockwise ones outside the nodes, the others inside,
 * each at the radius of its channel. Steps that have the same light after each other are one,
 * and of many some are shown. Of large rings a step shows a stretch of links. A colour is a
 * length of lightpaths, in all parts.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/units.h"
#include "lib/output/canvas.h"
#include "optree/private.h"

#define LEFT 150.0
#define WIDTH 820.0		/* of time */
#define RIGHT (LEFT + WIDTH + 24)
#define BAND 150.0		/* height of the channels of one direction */
#define MAX_LINKS 64		/* of a stretch */
#define RING_NODES 128		/* more: a stretch */
#define RING_PATHS 3000
#define MAX_STEPS 12		/* that are shown one by one */
#define ACROSS 3		/* of them in a row */
#define PANEL 310.0		/* width of one */
#define PANEL_HIGH 352.0
#define NODES_AT 84.0		/* radius */
#define OUTSIDE 34.0		/* pixels for the channels of a direction */
#define MAX_LENGTHS 16		/* lengths of lightpaths that have a key */

/* A step, and how far those that follow it have the same light. */
struct shown_step {
	const struct sym_round *round;	/* NULL: what it has is in lights */
	int slot, first, last;
	const struct step_light *light;
	size_t n_light;
};

/* A lightpath over the links v .. v + len - 1 of a plan that has no symmetric form. */
struct step_light {
	int32_t v, len, channel;
	uint8_t dir;
};

struct drawing {
	const struct optree_params *p;
	const struct optree_plan *plan;
	const struct optree_sym *s;	/* NULL: by lights */
	struct svg_canvas c;
	int n, n_steps;
	int32_t w[2];		/* channels of each direction, 0: none */
	bool line;
	double *times;		/* begin and end of each step, ns */
	VEC(struct step_light) lights;	/* by step */
	double x, y;		/* where the next panel begins, or the centre of a ring */
	int links;		/* of a stretch */
	VEC(struct shown_step) steps;
	VEC(int32_t) lengths;	/* of lightpaths, ascending */
	struct buf *paths;	/* boxes of each length; used by one panel at a time */
};


/* ---- lengths and their colours ---- */

static int length_number(const struct drawing *d, int32_t len)
{
	int k = 0;

	while (d->lengths.v[k] != len) {
		k++;
	}
	return k;
}

static int by_value(const void *a, const void *b)
{
	return *(const int32_t *)a - *(const int32_t *)b;
}

static void find_lengths(struct drawing *d)
{
	size_t n = 0;

	for (size_t i = 0; d->s && i < d->s->moves.n; i++) {
		vec_push(&d->lengths, d->s->moves.v[i].len);
	}
	for (size_t i = 0; i < d->lights.n; i++) {
		vec_push(&d->lengths, d->lights.v[i].len);
	}
	if (!d->lengths.n) {
		return;
	}
	qsort(d->lengths.v, d->lengths.n, sizeof(*d->lengths.v), by_value);
	for (size_t i = 0; i < d->lengths.n; i++) {
		if (i == 0 || d->lengths.v[i] != d->lengths.v[n - 1]) {
			d->lengths.v[n++] = d->lengths.v[i];
		}
	}
	d->lengths.n = n;
	d->paths = x_new(n, sizeof(*d->paths));
}

static void add_box(struct drawing *d, double x, double y, double width, double height, int32_t len)
{
	buf_printf(&d->paths[length_number(d, len)], "M%.1f %.1fh%.1fv%.1fh-%.1fz", x, y, width,
		   height, width);
}

/* All boxes so far, with the colours and patterns of their lengths. */
static void put_boxes(struct drawing *d)
{
	for (size_t k = 0; k < d->lengths.n; k++) {
		if (d->paths[k].len) {
			svg_fill_path(&d->c, (int64_t)k, buf_cstr(&d->paths[k]));
		}
		buf_fini(&d->paths[k]);
	}
}

static void put_time(char *text, size_t size, double ns)
{
	unit_human(UNIT_NS, ns, text, (int)size);
}

/* ---- channels over time ---- */

/* Of channels that several lightpaths of a step use, the last one's length. */
static void add_lights(struct drawing *d, const struct shown_step *at, double x, double wide,
		       int dir)
{
	double unit = BAND / d->w[dir];
	int32_t *len = x_new((size_t)d->w[dir] + 1, sizeof(*len));
	int32_t first = 0;

	for (size_t i = 0; i < at->n_light; i++) {
		if (at->light[i].dir == dir) {
			len[at->light[i].channel] = at->light[i].len;
		}
	}
	for (int32_t c = 1; c <= d->w[dir]; c++) {
		if (len[c] != len[first]) {
			if (len[first]) {
				add_box(d, x, d->y + first * unit, wide, unit * (c - first),
					len[first]);
			}
			first = c;
		}
	}
	free(len);
}

/* Lightpaths that share channels have the part of these that they are of the links. */
static void add_step(struct drawing *d, const struct shown_step *at, const double *time, int dir)
{
	const struct sym_round *r = at->round;
	double all = d->times[2 * d->n_steps - 1];
	double x = LEFT + WIDTH * time[0] / all;
	double wide = WIDTH * (time[1] - time[0]) / all;
	double unit = BAND / d->w[dir];

	if (!r) {
		add_lights(d, at, x, fmax(wide, 0.3), dir);
		return;
	}
	for (size_t i = r->move; i < r->move + r->n_moves; i++) {
		const struct sym_move *m = &d->s->moves.v[i];

		for (size_t k = m->band; k < m->band + m->n_bands && m->dir == dir; k++) {
			const struct sym_band *b = &d->s->bands.v[k];
			int32_t class, first;
			double all_of = overlap_active(d->s, r, m, b, at->slot, &class, &first) *
					unit * b->width / b->tile;

			if (all_of > 0) {
				add_box(d, x, d->y + first * unit + b->at * all_of,
					fmax(wide, 0.3), m->len * all_of, m->len);
			}
		}
	}
}

/* Of steps that begin within half a pixel the first is drawn. */
static void put_band(struct drawing *d, int dir)
{
	double all = d->times[2 * d->n_steps - 1], drawn = -1;

	svg_rect(&d->c, "fill faint", LEFT, d->y, WIDTH, BAND);
	for (size_t i = 0; i < d->steps.n; i++) {
		const struct shown_step *at = &d->steps.v[i];

		for (int k = at->first; k <= at->last; k++) {
			const double *time = d->times + 2 * k;

			if (WIDTH * time[0] / all >= drawn + 0.5 || drawn < 0) {
				add_step(d, at, time, dir);
				drawn = WIDTH * time[0] / all;
			}
		}
	}
	put_boxes(d);
	svg_put(&d->c, LEFT - 10, d->y + BAND / 2, 'e', SVG_TEXT, 0,
		dir == RWA_CW ? "clockwise" : "counter-clockwise");
	svg_putf(&d->c, LEFT - 10, d->y + BAND / 2 + 18, 'e', SVG_SOFT, "%d channels",
		 d->w[dir]);
	d->y += BAND + 10;
}

static void put_time_axis(struct drawing *d)
{
	double all = d->times[2 * d->n_steps - 1];
	char text[32];

	for (int k = 0; k <= 4; k++) {
		double x = LEFT + WIDTH * k / 4;

		put_time(text, sizeof(text), all * k / 4);
		svg_line(&d->c, "soft", x, d->y - 10, x, d->y - 5);
		svg_put(&d->c, x, d->y + 8, k == 4 ? 'e' : k ? 'm' : 'b', SVG_SMALL, 0, text);
	}
	d->y += 24;
}

/* ---- single steps ---- */

typedef void path_fn(struct drawing *d, const struct sym_move *m, int v, int32_t channel);

/* The same of a step that is given by its lights: on a stretch also those from before its left
 * edge. */
static void each_light(struct drawing *d, const struct shown_step *at, int from, int to,
		       path_fn *fn)
{
	for (size_t i = 0; i < at->n_light; i++) {
		const struct step_light *l = &at->light[i];
		const struct sym_move m = { .len = l->len, .dir = l->dir, .width = 1 };

		if (l->v < to) {
			fn(d, &m, l->v, l->channel);
		} else if (l->v - d->n >= from) {
			fn(d, &m, l->v - d->n, l->channel);
		}
	}
}

static void each_band_path(struct drawing *d, const struct shown_step *at,
			   const struct sym_move *m, const struct sym_band *b, int from, int to,
			   path_fn *fn)
{
	const struct sym_move part = { .len = m->len, .dir = m->dir, .width = b->width };
	int n = d->n;
	int32_t class0, first;
	int32_t active = overlap_active(d->s, at->round, m, b, at->slot, &class0, &first);

	for (int v = d->line && from < 0 ? 0 : from; v < to && active > 0; v++) {
		int class = optree_sym_band_class(d->s, b, (v + n) % n);

		if (class >= class0 && class < class0 + active && !(d->line && v + m->len >= n)) {
			fn(d, &part, v, first + (class - class0) * b->width);
		}
	}
}

/* Calls fn with each lightpath of a step over links v .. v + len - 1, and its first channel. */
static void each_path(struct drawing *d, const struct shown_step *at, int from, int to,
		      path_fn *fn)
{
	if (!at->round) {
		each_light(d, at, from, to, fn);
		return;
	}
	for (size_t i = at->round->move; i < at->round->move + at->round->n_moves; i++) {
		const struct sym_move *m = &d->s->moves.v[i];

		for (size_t k = m->band; k < m->band + m->n_bands; k++) {
			each_band_path(d, at, m, &d->s->bands.v[k], from, to, fn);
		}
	}
}

/* Lightpath as an arc of the ring; the channels of the inner direction go inwards. */
static void put_arc(struct drawing *d, const struct sym_move *m, int v, int32_t channel)
{
	double unit = OUTSIDE / d->w[m->dir], step = 2 * acos(-1) / d->n;
	double away = 9 + unit * (channel + m->width / 2.0);
	double r = m->dir == RWA_CW ? NODES_AT + away : NODES_AT - away;
	double gap = fmin(2.5 / r, step * 0.2), from = v * step + gap;
	double to = (v + m->len) * step - gap;
	double wide = unit * m->width;
	char style[32];

	snprintf(style, sizeof(style), "line %s%s", svg_colour_class(length_number(d, m->len)),
		 wide >= 7 ? " broad" : wide >= 4 ? " thick" : wide < 1.6 ? " thin" : "");
	svg_path(&d->c, style, "M%.1f %.1fA%.1f %.1f 0 %d 1 %.1f %.1f", d->x + r * sin(from),
		 d->y - r * cos(from), r, r, to - from > acos(-1), d->x + r * sin(to),
		 d->y - r * cos(to));
}

/* The nodes round the centre (x, y), some with their number. */
static void put_nodes(struct drawing *d)
{
	int n = d->n, every = n <= 16 ? 1 : (n + 15) / 16;
	double out = NODES_AT + 9 + OUTSIDE + 10;

	svg_begin_group(&d->c, "soft", NULL);
	buf_printf(&d->c.body, "<circle class=\"line edge\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n",
		   d->x, d->y, NODES_AT);
	for (int v = 0; v < n; v++) {
		double angle = 2 * acos(-1) * v / n, dx = sin(angle), dy = -cos(angle);

		svg_circle(&d->c, "fill", d->x + NODES_AT * dx, d->y + NODES_AT * dy,
			   n <= 32 ? 3 : 1.6);
		if (v % every == 0 && v + (every + 1) / 2 <= n) {
			svg_putf(&d->c, d->x + out * dx, d->y + out * dy + 3.5, 'm', SVG_SMALL,
				 "%d", v);
		}
	}
	svg_end_group(&d->c);
}

static void put_ring(struct drawing *d, const struct shown_step *at)
{
	double x = d->x, y = d->y;

	d->x += PANEL / 2;
	d->y += 60 + NODES_AT + 9 + OUTSIDE + 10;
	each_path(d, at, 0, d->n, put_arc);
	put_nodes(d);
	d->x = x;
	d->y = y;
}

/* Lightpath as a box over links and channels, from the left edge of the stretch on. */
static void add_stretch(struct drawing *d, const struct sym_move *m, int v, int32_t channel)
{
	double step = (PANEL - 40) / d->links, tall = PANEL_HIGH / 2 - 56;
	double unit = tall / d->w[m->dir];
	double from = v < 0 ? 0 : v, to = v + m->len > d->links ? d->links : v + m->len;

	add_box(d, d->x + 20 + from * step + 0.5,
		d->y + 70 + (m->dir == RWA_CW ? 0 : tall + 8) + unit * channel + 0.1,
		(to - from) * step - 1, fmax(unit * m->width - 0.2, 0.3), m->len);
}

/* Lightpaths, and their lengths. */
struct step_lengths {
	int64_t paths;
	int least, most;
};

static void count_length(struct step_lengths *x, int len)
{
	x->paths++;
	x->least = x->least && x->least < len ? x->least : len;
	x->most = len > x->most ? len : x->most;
}

/* Of each active move of a symmetric step one; all lights of another. */
static struct step_lengths measure_step(const struct drawing *d, const struct shown_step *at)
{
	struct step_lengths x = { 0 };
	int32_t class, first;

	for (size_t i = 0; at->round && i < at->round->n_moves; i++) {
		const struct sym_move *m = &d->s->moves.v[at->round->move + i];

		if (overlap_active(d->s, at->round, m, &d->s->bands.v[m->band], at->slot,
				   &class, &first) > 0) {
			count_length(&x, m->len);
		}
	}
	for (size_t i = 0; i < at->n_light; i++) {
		count_length(&x, at->light[i].len);
	}
	return x;
}

static void put_stretch(struct drawing *d, const struct shown_step *at)
{
	double tall = PANEL_HIGH / 2 - 56;
	int longest = (int)fmax(1, measure_step(d, at).most);

	d->links = 4 * longest < MAX_LINKS ? MAX_LINKS : 4 * longest;
	d->links = d->links < d->n ? d->links : d->n;
	svg_putf(&d->c, d->x + 20, d->y + 62, 'b', SVG_SMALL, "links 0 to %d, channels downwards",
		 d->links - 1);
	for (int dir = 0; dir < 2; dir++) {
		if (d->w[dir]) {
			svg_rect(&d->c, "fill faint", d->x + 20,
				 d->y + 70 + (dir == RWA_CW ? 0 : tall + 8),
				 PANEL - 40, tall);
		}
	}
	each_path(d, at, 1 - longest, d->links, add_stretch);
	put_boxes(d);
}

/* What goes in a step, in a few words. */
static void describe_step(const struct drawing *d, const struct shown_step *at, char *text,
			  size_t size)
{
	const struct step_lengths x = measure_step(d, at);

	if (x.least == x.most) {
		snprintf(text, size, "lightpaths of %d link%s", x.most, x.most == 1 ? "" : "s");
	} else {
		snprintf(text, size, "lightpaths of %d to %d links", x.least, x.most);
	}
}

static void put_step(struct drawing *d, const struct shown_step *at)
{
	int64_t paths = at->round ? (int64_t)at->round->n_moves * d->n : (int64_t)at->n_light;
	bool ring = d->n <= RING_NODES && paths <= RING_PATHS;
	char text[96];

	svg_card(&d->c, d->x, d->y, PANEL, PANEL_HIGH);
	if (at->first == at->last) {
		svg_putf(&d->c, d->x + 16, d->y + 24, 'b', SVG_HEAD, "Step %d", at->first + 1);
	} else {
		svg_putf(&d->c, d->x + 16, d->y + 24, 'b', SVG_HEAD, "Steps %d to %d",
			 at->first + 1,
			 at->last + 1);
	}
	if (at->round) {
		svg_putf(&d->c, d->x + PANEL - 16, d->y + 24, 'e', SVG_SOFT, "level %d",
			 at->round->level + 1);
	}
	describe_step(d, at, text, sizeof(text));
	svg_put(&d->c, d->x + 16, d->y + 43, 'b', SVG_SOFT, PANEL - 32, text);
	if (ring) {
		put_ring(d, at);
	} else {
		put_stretch(d, at);
	}
}

/* The same lightpaths on the same channels. */
static bool same_light(const struct drawing *d, const struct shown_step *a,
		       const struct shown_step *b)
{
	if (!a->round) {
		return a->n_light == b->n_light &&
		       (!a->n_light ||
			memcmp(a->light, b->light, a->n_light * sizeof(*a->light)) == 0);
	}
	if (a->round->level != b->round->level || a->round->n_moves != b->round->n_moves) {
		return false;
	}
	for (size_t i = 0; i < a->round->n_moves; i++) {
		const struct sym_move *m = &d->s->moves.v[a->round->move + i];
		const struct sym_move *k = &d->s->moves.v[b->round->move + i];
		const struct sym_band *ba = &d->s->bands.v[m->band], *bb = &d->s->bands.v[k->band];
		int32_t class_a, class_b, first_a, first_b;
		int32_t of_a = overlap_active(d->s, a->round, m, ba, a->slot, &class_a, &first_a);
		int32_t of_b = overlap_active(d->s, b->round, k, bb, b->slot, &class_b, &first_b);

		if (m->len != k->len || m->dir != k->dir || m->n_bands != k->n_bands ||
		    memcmp(ba, bb, m->n_bands * sizeof(*ba)) != 0 || of_a != of_b ||
		    (of_a > 0 && (class_a != class_b || first_a != first_b))) {
			return false;
		}
	}
	return true;
}

/* Those of the same light that follow each other are one. */
static void add_shown(struct drawing *d, const struct shown_step *at)
{
	struct shown_step *last = d->steps.n ? &d->steps.v[d->steps.n - 1] : NULL;

	if (last && same_light(d, last, at)) {
		last->last = at->last;
	} else {
		vec_push(&d->steps, *at);
	}
}

static void find_steps(struct drawing *d)
{
	int step = 0;

	for (size_t i = 0; i < d->s->rounds.n; i++) {
		for (int slot = 0; slot < d->s->rounds.v[i].slots; slot++, step++) {
			add_shown(d, &(struct shown_step){ &d->s->rounds.v[i], slot, step, step,
							   NULL, 0 });
		}
	}
}

/* The light of a schedule, step by step. Nodes are ranks. */
static void find_lights(struct drawing *d, const struct coll_sched *sched)
{
	int64_t n, from = 0;
	const struct coll_light *l = coll_lights(sched, &n);

	for (int64_t i = 0; i < n; i++) {
		const struct topo_arc *a = topo_arc(coll_topo(sched), l[i].arc);
		int begin = l[i].dir == RWA_CW ? a->src : a->dst;
		int end = l[i].dir == RWA_CW ? a->dst : a->src;

		vec_push(&d->lights, ((struct step_light){
			.v = begin, .len = (end - begin + d->n) % d->n, .dir = l[i].dir,
			.channel = l[i].fibre * d->p->channels + l[i].channel }));
	}
	for (int step = 0; step < d->n_steps; step++) {
		int64_t to = from;

		while (to < n && l[to].step == step) {
			to++;
		}
		add_shown(d, &(struct shown_step){ NULL, 0, step, step, d->lights.v + from,
						   (size_t)(to - from) });
		from = to;
	}
}

/* Without overlap each step is retuned before it begins. */
static void find_times(struct drawing *d, const struct coll_sched *sched)
{
	double unit = (double)d->p->channel_bps * coll_chunks(sched), at = 0;
	struct retune_timeline t;

	retune_timeline(d->p, sched, &t);
	for (int i = 0; i < d->n_steps; i++) {
		double begin = (double)t.begin[i] / unit, end = (double)t.end[i] / unit;

		d->times[2 * i] = d->p->overlap ? begin : at + (double)d->p->alpha_ns;
		at = d->times[2 * i + 1] = d->times[2 * i] + end - begin;
	}
	retune_fini(&t);
}

static void put_steps(struct drawing *d)
{
	size_t every = (d->steps.n + MAX_STEPS - 1) / MAX_STEPS, shown = 0;
	double top = d->y + 26;

	svg_putf(&d->c, SVG_MARGIN, d->y + 14, 'b', SVG_HEAD, "%s; clockwise light %s",
		 d->steps.n == 1 ? "Every step" : "Steps",
		 d->n <= RING_NODES ? "is outside the nodes, the other inside"
					    : "is above, the other below");
	for (size_t i = 0; i < d->steps.n; i += every, shown++) {
		d->x = SVG_MARGIN + (double)(shown % ACROSS) * (PANEL + 12);
		d->y = top + (double)(shown / ACROSS) * (PANEL_HIGH + 12);
		put_step(d, &d->steps.v[i]);
	}
	d->c.dropped = 0;
	if (every > 1) {
		svg_putf(&d->c, SVG_MARGIN, d->y + PANEL_HIGH + 24, 'b', SVG_SOFT,
			 "and %d more steps of other light", (int)(d->steps.n - shown));
	}
}

/* ---- all of it ---- */

static void put_title(struct drawing *d)
{
	char title[120], about[240], time[32], bound[32];

	put_time(time, sizeof(time), (double)d->plan->time_ns);
	put_time(bound, sizeof(bound), (double)d->plan->bound_ns);
	snprintf(title, sizeof(title), "%s on a %s of %d nodes", coll_kind_name(d->plan->kind),
		 d->line ? "line" : "ring", d->n);
	snprintf(about, sizeof(about), "%s: %d level%s, %d rounds, %d steps, %s (no plan is faster "
		 "than %s)", optree_algorithm_name(d->plan->algorithm), d->plan->n_levels,
		 d->plan->n_levels == 1 ? "" : "s", d->plan->rounds, d->plan->steps, time, bound);
	svg_open(&d->c, title, about);
}

static void put_legend(struct drawing *d)
{
	struct svg_key keys[MAX_LENGTHS + 1];
	char text[MAX_LENGTHS + 1][48];
	int n = 0;

	for (; n < (int)d->lengths.n && n < MAX_LENGTHS; n++) {
		snprintf(text[n], sizeof(text[n]), n ? "of %d links" : "lightpaths of %d link%s",
			 d->lengths.v[n], d->lengths.v[n] == 1 ? "" : "s");
		keys[n] = (struct svg_key){ SVG_KEY_FILL, NULL, n, NULL, text[n] };
	}
	snprintf(text[n], sizeof(text[n]), "%sretuning and conversion",
		 (int)d->lengths.n > n ? "(other lengths too) " : "");
	keys[n] = (struct svg_key){ SVG_KEY_FILL, "faint", -1, NULL, text[n] };
	d->y = svg_legend(&d->c, SVG_MARGIN, d->y, RIGHT - SVG_MARGIN, keys, n + 1);
}

static void put_all(struct drawing *d)
{
	int bands = (d->w[0] > 0) + (d->w[1] > 0);

	put_title(d);
	svg_card(&d->c, SVG_MARGIN, svg_top(), RIGHT - SVG_MARGIN, bands * (BAND + 10) + 44);
	d->y = svg_top() + 16;
	for (int dir = 0; dir < 2; dir++) {
		if (d->w[dir]) {
			put_band(d, dir);
		}
	}
	put_time_axis(d);
	d->y += 8;
	put_legend(d);
	put_steps(d);
}

/* Its own form tells all of a plan only where every round is as it is written there. */
static bool is_drawn_by_form(const struct optree_plan *plan)
{
	return plan->sym && (plan->kind == COLL_ALLGATHER || plan->kind == COLL_ALLTOALL);
}

int optree_draw(const struct optree_params *p, struct optree_plan *plan, struct buf *svg,
		struct err *err)
{
	struct drawing d = { .p = p, .plan = plan, .n = p->n, .line = p->line,
			     .s = is_drawn_by_form(plan) ? plan->sym : NULL };
	int rc = d.s ? 0 : optree_plan_expand(p, plan, err);

	if (rc) {
		return rc;
	}
	d.n_steps = d.s ? (int)d.s->steps : coll_steps(plan->sched);
	d.times = x_new(2 * (size_t)d.n_steps + 2, sizeof(*d.times));
	if (d.s) {
		memcpy(d.w, d.s->w, sizeof(d.w));
		find_steps(&d);
		overlap_time_ns(p, d.s, COLL_ALLGATHER, d.times);
	} else {
		d.w[0] = d.w[1] = p->channels * p->fibres;
		find_lights(&d, plan->sched);
		find_times(&d, plan->sched);
	}
	find_lengths(&d);
	put_all(&d);
	svg_close(&d.c, svg);
	vec_fini(&d.steps);
	vec_fini(&d.lengths);
	vec_fini(&d.lights);
	free(d.paths);
	free(d.times);
	return 0;
}
