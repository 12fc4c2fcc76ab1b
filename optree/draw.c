/*
 * A symmetric schedule as a drawing. Above: colours over time, a box for each
 * move of each step, from when its data begins to when it ends; what lies
 * between is retuning and conversion. Below: for the first round of each
 * level, which links of the ring (from node 0 on) its lightpaths take.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/output/svg.h"
#include "optree/private.h"

#define LEFT 110.0
#define WIDTH 760.0
#define TOP 56.0
#define GAP 30.0
#define BAND 170.0		/* height of the colours of one direction */
#define SEGMENT 110.0		/* of the links of one level */
#define MAX_BOXES 40000
#define MAX_LINKS 256		/* drawn of the ring */

struct drawing {
	const struct optree_params *p;
	const struct optree_plan *plan;
	const struct optree_sym *s;
	struct buf *b;
	double *times;		/* begin and end of each step, ns */
	double y;		/* where the next panel begins */
	int used;		/* directions that have any light */
};

static void put_box(struct drawing *d, double x, double y, double width, double height, int32_t len)
{
	buf_printf(d->b, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
		   "height=\"%.2f\" fill=\"", x, y, width, height);
	svg_colour(d->b, len);
	buf_str(d->b, "\"/>\n");
}

static void put_frame(struct drawing *d, double y, double height)
{
	buf_printf(d->b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
		   "height=\"%.1f\" fill=\"#f4f4f4\" stroke=\"#999999\"/>\n",
		   LEFT, y, WIDTH, height);
}

static void put_time(char *text, size_t size, double ns)
{
	const char *unit = ns < 1e3 ? "ns" : ns < 1e6 ? "us"
			 : ns < 1e9 ? "ms" : "s";
	double by = ns < 1e3 ? 1 : ns < 1e6 ? 1e3 : ns < 1e9 ? 1e6 : 1e9;

	snprintf(text, size, "%.3g %s", ns / by, unit);
}

/* ---- time ---- */

static void put_step(struct drawing *d, const struct sym_round *r, int slot,
		     const double *time, double y, int dir)
{
	double all = d->times[2 * d->s->steps - 1];
	double x = LEFT + WIDTH * time[0] / all;
	double wide = WIDTH * (time[1] - time[0]) / all;
	double unit = BAND / d->s->w[dir];

	for (size_t i = r->move; i < r->move + r->n_moves; i++) {
		const struct sym_move *m = &d->s->moves.v[i];
		int32_t class, first;
		int32_t n = m->dir == dir
				    ? overlap_active(r, m, slot, &class, &first)
				    : 0;

		if (n > 0) {
			put_box(d, x, y + first * unit,
				wide < 0.3 ? 0.3 : wide,
				unit * n * m->width, m->len);
		}
	}
}

static void put_band(struct drawing *d, int dir)
{
	const double *time = d->times;
	char text[64];

	put_frame(d, d->y, BAND);
	for (size_t i = 0; i < d->s->rounds.n; i++) {
		const struct sym_round *r = &d->s->rounds.v[i];

		for (int slot = 0; slot < r->slots; slot++, time += 2) {
			put_step(d, r, slot, time, d->y, dir);
		}
	}
	svg_label(d->b, LEFT - 8, d->y + BAND / 2, 'e',
		  dir == RWA_CW ? "clockwise" : "counter-clockw.");
	snprintf(text, sizeof(text), "%d channels", d->s->w[dir]);
	svg_label(d->b, LEFT - 8, d->y + BAND / 2 + 15, 'e', text);
	d->y += BAND + 8;
}

static void put_time_axis(struct drawing *d)
{
	double all = d->times[2 * d->s->steps - 1];
	char text[32];

	for (int k = 0; k <= 4; k++) {
		double x = LEFT + WIDTH * k / 4;

		put_time(text, sizeof(text), all * k / 4);
		svg_label(d->b, x, d->y + 10, k == 4 ? 'e' : k ? 'm' : 'b', text);
	}
	d->y += GAP;
}

/* ---- links ---- */

static int links_shown(const struct drawing *d, const struct sym_round *r)
{
	int max = 0, n = d->s->ring.n;

	for (size_t i = r->move; i < r->move + r->n_moves; i++) {
		int len = d->s->moves.v[i].len;

		max = len > max ? len : max;
	}
	max = 4 * max < 16 ? 16 : 4 * max;
	max = max > MAX_LINKS ? MAX_LINKS : max;
	return max < n ? max : n;
}

/* Lightpaths of a move that cross the links 0..links-1. */
static void put_paths(struct drawing *d, const struct sym_round *r,
		      const struct sym_move *m, int links)
{
	double unit = SEGMENT / d->s->w[m->dir], step = WIDTH / links;
	int n = d->s->ring.n;
	int32_t class0, first;
	int32_t active = overlap_active(r, m, 0, &class0, &first);

	for (int v = d->s->line ? 0 : 1 - m->len; v < links; v++) {
		int class = optree_sym_class_of(d->s, m->len, (v + n) % n);
		double from = v < 0 ? 0 : v;
		double to = v + m->len > links ? links : v + m->len;

		if (class < class0 || class >= class0 + active || (d->s->line && v + m->len >= n)) {
			continue;
		}
		put_box(d, LEFT + from * step + 0.6,
			d->y + unit * (first + (class - class0) * m->width) + 0.2,
			(to - from) * step - 1.2, unit * m->width - 0.4, m->len);
	}
}

static void put_segment(struct drawing *d, const struct sym_round *r)
{
	const struct optree_level *l = &d->plan->level[r->level];
	int links = links_shown(d, r);
	char text[160];

	snprintf(text, sizeof(text), "Level %d: %d rounds in %d steps, "
		 "lightpaths of up to %d x %d links; first step, clockwise, "
		 "links 0 to %d", r->level + 1, l->rounds, l->steps, l->jump,
		 l->stride, links - 1);
	svg_label(d->b, LEFT, d->y - 5, 'b', text);
	put_frame(d, d->y, SEGMENT);
	for (size_t i = r->move; i < r->move + r->n_moves; i++) {
		if (d->s->moves.v[i].dir == RWA_CW) {
			put_paths(d, r, &d->s->moves.v[i], links);
		}
	}
	svg_label(d->b, LEFT - 8, d->y + SEGMENT / 2, 'e', "channels");
	d->y += SEGMENT + GAP;
}

/* ---- all of it ---- */

static int count_boxes(const struct optree_sym *s, struct err *err)
{
	int64_t boxes = 0;

	for (size_t i = 0; i < s->rounds.n; i++) {
		boxes += (int64_t)s->rounds.v[i].slots *
			 (int64_t)s->rounds.v[i].n_moves;
	}
	return boxes <= MAX_BOXES
		       ? 0
		       : err_set(err, WEFT_ELIMIT,
				 "%lld lightpaths in all steps: too many to "
				 "draw", (long long)boxes);
}

static void put_title(struct drawing *d)
{
	char text[200], time[32], bound[32];

	put_time(time, sizeof(time), (double)d->plan->time_ns);
	put_time(bound, sizeof(bound), (double)d->plan->bound_ns);
	snprintf(text, sizeof(text), "%s of %d nodes: %d rounds, %d steps, %s "
		 "(bound %s)", coll_kind_name(d->plan->kind), d->s->ring.n,
		 d->plan->rounds, d->plan->steps, time, bound);
	buf_str(d->b, "<g font-size=\"15\">");
	svg_label(d->b, LEFT, 22, 'b', text);
	buf_str(d->b, "</g>\n");
	svg_label(d->b, LEFT, 42, 'b', "Channels over time; a colour is a "
		  "length of lightpaths, blank is retuning and conversion");
}

static void put_all(struct drawing *d)
{
	int level = -1;

	svg_begin(d->b, (int64_t)(LEFT + WIDTH + 20),
		  (int64_t)(TOP + d->used * (BAND + 8) + 2 * GAP +
			    d->plan->n_levels * (SEGMENT + GAP)), 12);
	put_title(d);
	d->y = TOP;
	for (int dir = 0; dir < 2; dir++) {
		if (d->s->w[dir]) {
			put_band(d, dir);
		}
	}
	put_time_axis(d);
	d->y += GAP / 2;
	for (size_t i = 0; i < d->s->rounds.n && d->plan->n_levels; i++) {
		if (d->s->rounds.v[i].level != level) {
			level = d->s->rounds.v[i].level;
			put_segment(d, &d->s->rounds.v[i]);
		}
	}
	svg_end(d->b);
}

int optree_draw(const struct optree_params *p, const struct optree_plan *plan,
		struct buf *svg, struct err *err)
{
	struct drawing d = { .p = p, .plan = plan, .s = plan->sym, .b = svg };
	int64_t ns;
	int rc;

	if (!plan->sym || (plan->kind != COLL_ALLGATHER && plan->kind != COLL_ALLTOALL)) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "a drawing of %s by %s: not supported, only "
			       "all-gathers and all-to-alls that look alike "
			       "from all nodes", coll_kind_name(plan->kind),
			       optree_algorithm_name(plan->algorithm));
	}
	rc = count_boxes(plan->sym, err);
	if (rc) {
		return rc;
	}
	d.times = calloc(2 * (size_t)plan->sym->steps + 2, sizeof(*d.times));
	rc = d.times ? overlap_time_ns(p, plan->sym, COLL_ALLGATHER, d.times, &ns, err)
		     : err_nomem(err);
	d.used = (plan->sym->w[0] > 0) + (plan->sym->w[1] > 0);
	if (!rc) {
		put_all(&d);
		rc = svg->failed ? err_nomem(err) : 0;
	}
	free(d.times);
	return rc;
}
