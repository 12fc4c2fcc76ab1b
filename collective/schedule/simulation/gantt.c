/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulation as a Gantt picture: a row for each arc, time to the right, in
 * each row how much of the capacity is in use, in the colours of the steps.
 *
 * There are at most MAX_ROWS rows. What is alike by symmetry is one row; where that
 * is still too much, a row is all arcs out of a node, then out of several
 * nodes of consecutive numbers. Time is cut into columns finer than a pixel; the
 * simulation is run a second time, and what flows is added to the columns, so
 * that the picture does not grow with the schedule.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/simulation/simulate.h"
#include "lib/base/number/units.h"
#include "lib/output/canvas.h"

#define MAX_ROWS 128
#define LEFT 170.0
#define RIGHT 24.0
#define TOP (svg_top() + 40)
#define WIDTH 900
#define FINE 4			/* columns a pixel, so that edges look sharp */
#define COLUMNS (WIDTH * FINE)	/* of time */
#define MAX_MARKS 12		/* of time */
#define LEVELS 50		/* shares are drawn in such parts of a row */

/* Steps in turn, to tell neighbours apart: those that copy, those that sum. */
static const char *const colours[] = {
	"fill c1", "fill c1 weaker", "fill c1 weak", "fill c0", "fill c0 weaker", "fill c0 weak",
};

#define COLOURS ((int)(sizeof(colours) / sizeof(colours[0])))

/* Capacity in use, a colour. */
struct gantt_cell {
	float used[COLOURS];
};

struct gantt {
	struct sim_run *r;
	struct svg_canvas c;
	int n_rows;
	int32_t *row;		/* of a carrier, -1: has none */
	double *capacity;	/* of a row */
	char (*label)[48];
	double height;		/* of a row, pixels */
	double column_ns;
	struct gantt_cell *cells;	/* row by row, COLUMNS each */
	bool sums, copies;	/* colours that are in use */
	struct arrays arrays;
};

/* ---- rows ---- */

/* Something flows there. */
static bool carries(const struct gantt *g, int carrier)
{
	return g->r->busy_ns[carrier] > 0;
}

static void add_to_row(struct gantt *g, int row, int carrier)
{
	g->row[carrier] = row;
	g->capacity[row] += (double)sim_capacity(g->r, carrier) *
			    (double)sim_images(g->r, carrier);
	g->n_rows = row + 1 > g->n_rows ? row + 1 : g->n_rows;
}

/* A row for each arc, or all its images, and each limit. */
static void rows_of_carriers(struct gantt *g)
{
	const struct topo *t = g->r->loads.physical;

	for (int i = 0; i < g->r->n_carriers; i++) {
		int number = sim_number(g->r, i);
		int64_t images = sim_images(g->r, i);
		char *label = g->label[g->n_rows];
		int used;

		if (!carries(g, i)) {
			continue;
		}
		used = i < g->r->n_orbits
			       ? snprintf(label, sizeof(*g->label), "%d \xe2\x86\x92 %d",
					  topo_arc(t, number)->src, topo_arc(t, number)->dst)
			       : snprintf(label, sizeof(*g->label), "limit %d", number);
		if (images > 1) {
			snprintf(label + used, sizeof(*g->label) - (size_t)used,
				 " and %lld alike", (long long)images - 1);
		}
		add_to_row(g, g->n_rows, i);
	}
}

/* A row for the arcs out of so many nodes. */
static void rows_of_nodes(struct gantt *g, int nodes)
{
	const struct topo *t = g->r->loads.physical;

	for (int i = 0; i < g->r->n_orbits; i++) {
		if (carries(g, i)) {
			add_to_row(g, topo_arc(t, sim_number(g->r, i))->src / nodes, i);
		}
	}
	for (int row = 0; row < g->n_rows; row++) {
		int last = (row + 1) * nodes < topo_n(t) ? (row + 1) * nodes : topo_n(t);

		if (nodes == 1) {
			snprintf(g->label[row], sizeof(*g->label), "out of %d", row);
		} else {
			snprintf(g->label[row], sizeof(*g->label), "out of %d to %d",
				 row * nodes, last - 1);
		}
	}
}

static void make_rows(struct gantt *g)
{
	int n = topo_n(g->r->loads.physical), used = 0;

	for (int i = 0; i < g->r->n_carriers; i++) {
		g->row[i] = -1;
		used += carries(g, i);
	}
	if (used <= MAX_ROWS) {
		rows_of_carriers(g);
	} else {
		rows_of_nodes(g, (n + MAX_ROWS - 1) / MAX_ROWS);
	}
	g->height = fmin(24, fmax(13, 600.0 / (g->n_rows + 1)));
}

/* ---- what flows ---- */

static int colour_of(const struct sim_message *m)
{
	return m->step % 3 + (m->reduces ? 3 : 0);
}

/* Adds capacity that is in use from..to to the columns it covers. */
static void add_span(struct gantt_cell *cells, int colour, double from, double to, double used)
{
	int first = (int)fmin(from, COLUMNS - 1), last = (int)fmin(to, COLUMNS - 1);

	for (int c = first; c <= last; c++) {
		double part = fmin(to, c + 1) - fmax(from, c);

		if (part > 0) {
			cells[c].used[colour] += (float)(used * part);
		}
	}
}

static void add_flow(void *arg, int32_t path, double from_ns, double to_ns, double rate)
{
	struct gantt *g = arg;
	const struct maxmin_net *net = &g->r->net;
	const struct sim_message *m = &g->r->messages.v[net->paths.v[path].message];
	int32_t end = (size_t)path + 1 < net->paths.n ? net->paths.v[path + 1].first_use
						      : (int32_t)net->uses.n;

	g->sums |= m->reduces;
	g->copies |= !m->reduces;
	for (int32_t u = net->paths.v[path].first_use; u < end; u++) {
		int32_t resource = net->uses.v[u].resource, carrier = g->r->carriers.v[resource];
		double share = rate * net->uses.v[u].weight / net->capacity.v[resource];

		if (g->row[carrier] >= 0) {
			add_span(g->cells + (size_t)g->row[carrier] * COLUMNS, colour_of(m),
				 from_ns / g->column_ns, to_ns / g->column_ns,
				 share * (double)sim_capacity(g->r, carrier) *
				 (double)sim_images(g->r, carrier));
		}
	}
}

/* ---- drawing ---- */

static double x_of(const struct gantt *g, double ns)
{
	return LEFT + ns / g->column_ns / FINE;
}

static double bottom(const struct gantt *g)
{
	return TOP + g->height * g->n_rows;
}

/* The levels at which the colours of a cell end, one upon the other. */
static void stack(const struct gantt *g, int row, int column, int *tops)
{
	const struct gantt_cell *cell = g->cells + (size_t)row * COLUMNS + column;
	double sum = 0;

	for (int k = 0; k < COLOURS; k++) {
		sum += cell->used[k] / g->capacity[row];
		tops[k] = (int)lround(fmin(sum, 1) * LEVELS);
	}
}

/* Equal columns from..to of a row, into the path of each colour. */
static void put_columns(struct gantt *g, int row, int from, int to, const int *tops,
			struct buf *paths)
{
	double tall = (g->height - 1.5) / LEVELS, base = TOP + g->height * (row + 1) - 0.5;

	for (int k = 0, below = 0; k < COLOURS; below = tops[k++]) {
		if (tops[k] > below) {
			buf_printf(&paths[k], "M%g %.2fh%gv%.2fh-%gz", LEFT + (double)from / FINE,
				   base - tall * tops[k], (double)(to - from) / FINE,
				   tall * (tops[k] - below), (double)(to - from) / FINE);
		}
	}
}

/* The paths of a row; sums are hatched, which tells them from copies in grey. */
static void put_paths(struct gantt *g, struct buf *paths)
{
	for (int k = 0; k < COLOURS; k++) {
		if (paths[k].len) {
			svg_path(&g->c, colours[k], "%s", buf_cstr(&paths[k]));
		}
		if (paths[k].len && k >= COLOURS / 2) {
			svg_path(&g->c, "hatched", "%s", buf_cstr(&paths[k]));
		}
		buf_fini(&paths[k]);
	}
}

static void put_row(struct gantt *g, int row)
{
	int tops[COLOURS], next[COLOURS], from = 0;
	struct buf paths[COLOURS] = { 0 };

	svg_put(&g->c, LEFT - 8, TOP + g->height * (row + 0.5) + 3.5, 'e', SVG_SMALL,
		LEFT - 8 - SVG_MARGIN, g->label[row]);
	stack(g, row, 0, tops);
	for (int c = 1; c <= COLUMNS; c++) {
		if (c < COLUMNS) {
			stack(g, row, c, next);
			if (memcmp(next, tops, sizeof(tops)) == 0) {
				continue;
			}
		}
		put_columns(g, row, from, c, tops, paths);
		from = c;
		memcpy(tops, next, sizeof(tops));
	}
	put_paths(g, paths);
}

/* 1, 2 or 5 times a power of ten, so that there are at most MAX_MARKS. */
static double mark_every(double time)
{
	double unit = pow(10, floor(log10(time / MAX_MARKS)));

	for (int i = 0; unit * MAX_MARKS < time; i++) {
		unit *= i % 3 == 1 ? 2.5 : 2;
	}
	return unit;
}

static void put_time_axis(struct gantt *g)
{
	double time = g->r->out->time_ns, every = time > 0 ? mark_every(time) : 1;
	char text[32];

	for (double t = 0; t <= time * (1 + 1e-9) && !g->r->o->untimed; t += every) {
		svg_line(&g->c, "edge", x_of(g, t), TOP, x_of(g, t), bottom(g) + 5);
		svg_put(&g->c, x_of(g, t), bottom(g) + 18, 'm', SVG_SMALL, 0,
			unit_human(UNIT_NS, t, text, sizeof(text)));
	}
}

/* In lockstep: where steps begin, and their numbers where there is room. */
static void put_steps(struct gantt *g)
{
	const struct coll_sim *out = g->r->out;
	char text[16];

	if (g->r->o->asynchronous) {
		return;
	}
	svg_put(&g->c, LEFT - 8, TOP - 7, 'e', SVG_SMALL, 0, "step");
	for (int i = 0; i < out->n_steps; i++) {
		double x = x_of(g, out->steps[i].begin_ns), to = x_of(g, out->steps[i].end_ns);

		if (out->n_steps <= WIDTH / 8) {
			svg_line(&g->c, "ink thin", to, TOP - 5, to, bottom(g));
		}
		snprintf(text, sizeof(text), "%d", i + 1);
		svg_put(&g->c, (x + to) / 2, TOP - 7, 'm', SVG_SMALL, 0, text);
	}
	/* Numbers that are left out are no loss. */
	g->c.dropped = 0;
}

static void put_legend(struct gantt *g)
{
	struct svg_key keys[3];
	int n = 0;

	if (g->sums) {
		keys[n++] = (struct svg_key){ SVG_KEY_FILL, "c0", -1, "hatched",
					      "sums, in shades by step" };
	}
	if (g->copies) {
		keys[n++] = (struct svg_key){ SVG_KEY_FILL, "c1", -1, NULL,
					      "copies, in shades by step" };
	}
	keys[n++] = (struct svg_key){ SVG_KEY_FILL, "faint", -1, NULL,
				      "a row's height is the capacity of its links" };
	svg_legend(&g->c, LEFT, bottom(g) + 30, WIDTH, keys, n);
}

static void put_title(struct gantt *g)
{
	const struct coll_sched *s = g->r->s;
	const char *name = coll_is_embedded(s) ? coll_physical_name(s) : coll_topo_name(s);
	const char *how = g->r->o->asynchronous ? "asynchronous" : "in lockstep";
	char title[320], about[200], time[32];

	snprintf(title, sizeof(title), "%s of %d ranks%s%.80s", coll_kind_name(s->kind), s->ranks,
		 *name ? " on " : "", name);
	if (g->r->o->untimed) {
		snprintf(about, sizeof(about), "%d steps, each as wide as its data takes, without "
			 "latency; %.1f %% of the capacity used", g->r->out->n_steps,
			 100 * g->r->out->utilisation);
	} else {
		snprintf(about, sizeof(about), "%s in %d steps, %s; %.1f %% of the capacity used",
			 unit_human(UNIT_NS, g->r->out->time_ns, time, sizeof(time)),
			 g->r->out->n_steps, how, 100 * g->r->out->utilisation);
	}
	svg_open(&g->c, title, about);
}

static void put_all(struct gantt *g)
{
	put_title(g);
	svg_card(&g->c, SVG_MARGIN, svg_top(), LEFT + WIDTH + RIGHT - SVG_MARGIN,
		 bottom(g) - svg_top() + 28);
	svg_rect(&g->c, "fill faint", LEFT, TOP, WIDTH, bottom(g) - TOP);
	put_time_axis(g);
	for (int row = 0; row < g->n_rows; row++) {
		svg_rect(&g->c, "fill card", LEFT, TOP + g->height * (row + 1) - 0.5, WIDTH, 1);
		put_row(g, row);
	}
	put_steps(g);
	put_legend(g);
}

int sim_draw(struct sim_run *r, struct buf *svg, struct err *err)
{
	struct gantt g = { .r = r };
	int rc = 0;

	g.column_ns = fmax(r->out->time_ns, 1) / COLUMNS;
	arrays_add(&g.arrays, g.row, r->n_carriers);
	arrays_add(&g.arrays, g.capacity, MAX_ROWS + 1);
	arrays_add(&g.arrays, g.label, MAX_ROWS + 1);
	arrays_add(&g.arrays, g.cells, (MAX_ROWS + 1) * COLUMNS);
	make_rows(&g);
	r->ran = add_flow;
	r->ran_arg = &g;
	rc = sim_run_all(r, err);
	r->ran = NULL;
	if (!rc) {
		put_all(&g);
		svg_close(&g.c, svg);
	}
	arrays_fini(&g.arrays);
	return rc;
}
