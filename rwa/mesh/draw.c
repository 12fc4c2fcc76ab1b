/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lightpaths as a picture.
 *
 * A mesh is drawn as a map, each link as thick as the fullest of its fibres is, and below it
 * the fullest fibres as rows with a column for each channel, in the colour and pattern of
 * the source of the lightpath. Nodes stand where the network's file says, or as
 * their distances have it. A mesh that is one duplex ring is drawn as circles instead, one for
 * each channel, once for each direction.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/order.h"
#include "lib/output/canvas.h"
#include "rwa/mesh/private.h"

#define MAP_WIDTH 900.0
#define MAP_HIGH 560.0
#define MAP_RIM 90.0		/* for names */
#define MAP_LINKS 6000
#define LABELLED_LINKS 60
#define MAX_ROWS 64
#define ROW 13.0
#define NAMES 210.0		/* of rows */
#define GRID_WIDTH (MAP_WIDTH - NAMES - 20)
#define LEAST_CELL 1.3
#define MOST_CELL 36.0
#define TOLD_APART 4.0		/* narrower cells show use alone, not by whom */
#define SOURCES 64		/* that differ by colour and pattern */
#define NUMBERED 5		/* channels between two numbers, at least */
#define FIRST_RADIUS 50.0
#define RADIUS_STEP 7.0
#define RIM 56.0		/* for the nodes' names round a circle */
#define MAX_CIRCLES 48

/* One direction of a fibre. */
struct fibre_row {
	int32_t arc, fibre;
	int32_t used;		/* channels */
};

struct rwa_picture {
	const struct rwa_mesh *m;
	const struct rwa_assignment *a;
	int channels;
	struct svg_canvas c;
	struct arrays arrays;
	int64_t *first;		/* of an arc, in rows */
	struct fibre_row *rows;	/* by arc, then as they are drawn */
	int32_t *shown;		/* of a row as counted by arc: its place, -1: none */
	int64_t n_rows;
	double *xy;		/* of nodes on the map */
	double cell;
	int columns;
	struct buf paths[SOURCES];
	double y;
};

static const char *node_name(const struct rwa_picture *p, int node, char *buf, int size)
{
	return rwa_mesh_node_name(p->m, node, buf, size);
}

/* ---- rows ---- */

static void count_rows(struct rwa_picture *p)
{
	arrays_add(&p->arrays, p->first, p->m->arcs.n + 1);
	for (size_t e = 0; e < p->m->arcs.n; e++) {
		p->first[e + 1] = p->first[e] + p->m->arcs.v[e].fibres;
		p->n_rows = p->first[e + 1];
	}
	arrays_add(&p->arrays, p->rows, p->n_rows + 1);
	arrays_add(&p->arrays, p->shown, p->n_rows + 1);
	for (size_t e = 0; e < p->m->arcs.n; e++) {
		for (int32_t f = 0; f < p->m->arcs.v[e].fibres; f++) {
			p->rows[p->first[e] + f] = (struct fibre_row){ (int32_t)e, f, 0 };
		}
	}
	for (size_t i = 0; i < p->a->paths.n; i++) {
		const struct rwa_path *path = &p->a->paths.v[i];

		for (int32_t h = 0; h < path->hops; h++) {
			const struct rwa_hop *hop = &p->a->hops.v[path->first + h];

			p->rows[p->first[hop->arc] + hop->fibre].used++;
		}
	}
}

ORDER_BY(by_arc, struct fibre_row, arc, fibre)

static int by_use(const void *a, const void *b)
{
	const struct fibre_row *x = a, *y = b;

	return x->used != y->used ? (x->used > y->used ? -1 : 1) : by_arc(a, b);
}

/* The fullest rows, in the order of their arcs. How many. */
static int choose_rows(struct rwa_picture *p)
{
	int n = p->n_rows < MAX_ROWS ? (int)p->n_rows : MAX_ROWS;

	for (int64_t i = 0; i < p->n_rows; i++) {
		p->shown[i] = -1;
	}
	if (p->n_rows > MAX_ROWS) {
		qsort(p->rows, (size_t)p->n_rows, sizeof(*p->rows), by_use);
		qsort(p->rows, MAX_ROWS, sizeof(*p->rows), by_arc);
	}
	for (int i = 0; i < n; i++) {
		p->shown[p->first[p->rows[i].arc] + p->rows[i].fibre] = i;
	}
	return n;
}

/* ---- the map ---- */

/* Places from the file, if all nodes have one; else by distances. False: no map. */
static bool place_nodes(struct rwa_picture *p, bool *by_file)
{
	int n = (int)p->m->nodes.n, m = (int)p->m->arcs.n;
	double least[2] = { INFINITY, INFINITY }, most[2] = { -INFINITY, -INFINITY };
	int32_t *ends;

	arrays_add(&p->arrays, p->xy, 2 * n);
	arrays_add(&p->arrays, ends, 2 * m);
	*by_file = true;
	for (int v = 0; v < n; v++) {
		*by_file &= p->m->nodes.v[v].has_place;
		p->xy[2 * v] = p->m->nodes.v[v].x;
		p->xy[2 * v + 1] = -p->m->nodes.v[v].y;
	}
	for (int e = 0; e < m; e++) {
		ends[2 * e] = p->m->arcs.v[e].src;
		ends[2 * e + 1] = p->m->arcs.v[e].dst;
	}
	if (!*by_file && n > SVG_LAYOUT_NODES) {
		return false;
	}
	if (!*by_file) {
		svg_layout(n, ends, m, p->xy);
	}
	for (int i = 0; i < 2 * n; i++) {
		least[i & 1] = fmin(least[i & 1], p->xy[i]);
		most[i & 1] = fmax(most[i & 1], p->xy[i]);
	}
	for (int i = 0; i < 2 * n; i++) {
		double size = fmax(most[i & 1] - least[i & 1], 1e-9), from = i & 1 ? svg_top()
			: SVG_MARGIN;
		double rim = i & 1 ? 44 : MAP_RIM;

		p->xy[i] = from + rim + ((i & 1 ? MAP_HIGH : MAP_WIDTH) - 2 * rim) *
						(p->xy[i] - least[i & 1]) / size;
	}
	return true;
}

/* The channels in use on the fullest fibre of a link, either way. */
static int link_use(const struct rwa_picture *p, size_t arc)
{
	const struct rwa_mesh_arc *a = &p->m->arcs.v[arc];
	int most = 0;

	for (size_t e = 0; e < p->m->arcs.n; e++) {
		const struct rwa_mesh_arc *b = &p->m->arcs.v[e];

		if ((b->src == a->src && b->dst == a->dst) ||
		    (b->src == a->dst && b->dst == a->src)) {
			for (int64_t i = p->first[e]; i < p->first[e + 1]; i++) {
				most = p->rows[i].used > most ? p->rows[i].used : most;
			}
		}
	}
	return most;
}

static bool is_first_of_link(const struct rwa_picture *p, size_t arc)
{
	const struct rwa_mesh_arc *a = &p->m->arcs.v[arc];

	for (size_t e = 0; e < arc; e++) {
		const struct rwa_mesh_arc *b = &p->m->arcs.v[e];

		if ((b->src == a->src && b->dst == a->dst) ||
		    (b->src == a->dst && b->dst == a->src)) {
			return false;
		}
	}
	return true;
}

static const char *load_style(double share)
{
	return share >= 0.9 ? "accent broad" : share >= 0.6 ? "accent thick" : share > 0.3
		? "accent"
	     : share > 0 ? "accent thin" : "edge";
}

/* Links that are drawn once, and what their fullest fibre carries where there is room. */
static void put_links(struct rwa_picture *p, double *labels)
{
	int drawn = 0;

	for (size_t e = 0; e < p->m->arcs.n; e++) {
		const struct rwa_mesh_arc *a = &p->m->arcs.v[e];
		const double *from = &p->xy[2 * a->src], *to = &p->xy[2 * a->dst];
		int used;

		if (!is_first_of_link(p, e)) {
			continue;
		}
		used = link_use(p, e);
		svg_line(&p->c, load_style((double)used / (p->channels ? p->channels : 1)), from[0],
			 from[1],
			 to[0], to[1]);
		if (drawn < LABELLED_LINKS) {
			labels[3 * drawn] = (from[0] + to[0]) / 2;
			labels[3 * drawn + 1] = (from[1] + to[1]) / 2;
			labels[3 * drawn + 2] = used;
		}
		drawn++;
	}
	labels[3 * LABELLED_LINKS] = drawn <= LABELLED_LINKS ? drawn : 0;
}

static void put_map_nodes(struct rwa_picture *p)
{
	double r = p->m->nodes.n <= 60 ? 6 : 3.5;
	char buf[16];

	for (size_t v = 0; v < p->m->nodes.n; v++) {
		svg_circle(&p->c, "fill ink", p->xy[2 * v], p->xy[2 * v + 1], r);
		svg_keep_off(&p->c, p->xy[2 * v] - r, p->xy[2 * v + 1] - r, 2 * r, 2 * r);
	}
	for (size_t v = 0; v < p->m->nodes.n; v++) {
		const char *name = node_name(p, (int)v, buf, sizeof(buf));
		int dropped = p->c.dropped;

		/* Below its node, or above. */
		if (!svg_put(&p->c, p->xy[2 * v], p->xy[2 * v + 1] + r + 13, 'm', SVG_TEXT, 130,
			     name) &&
		    svg_put(&p->c, p->xy[2 * v], p->xy[2 * v + 1] - r - 5, 'm', SVG_TEXT, 130,
			    name)) {
			p->c.dropped = dropped;
		} else if (p->c.dropped > dropped) {
			p->c.dropped = dropped + 1;
		}
	}
}

static void put_map(struct rwa_picture *p)
{
	static const struct svg_key keys[] = {
		{ SVG_KEY_LINE, "accent thin", -1, NULL, "up to 30 % of the channels" },
		{ SVG_KEY_LINE, "accent", -1, NULL, "up to 60 %" },
		{ SVG_KEY_LINE, "accent thick", -1, NULL, "up to 90 %" },
		{ SVG_KEY_LINE, "accent broad", -1, NULL, "more, on the fullest fibre of a link" },
	};
	double labels[3 * LABELLED_LINKS + 1], y;
	bool by_file;
	int dropped;

	p->y = svg_top();
	if (p->m->arcs.n > MAP_LINKS || !place_nodes(p, &by_file)) {
		svg_putf(&p->c, SVG_MARGIN, p->y + 10, 'b', SVG_SOFT,
			 "The network is too large for a map.");
		p->y += 28;
		return;
	}
	svg_card(&p->c, SVG_MARGIN, p->y, MAP_WIDTH, MAP_HIGH);
	put_links(p, labels);
	svg_begin_group(&p->c, "halo", NULL);
	put_map_nodes(p);
	dropped = p->c.dropped;
	for (int i = 0; i < (int)labels[3 * LABELLED_LINKS]; i++) {
		svg_putf(&p->c, labels[3 * i], labels[3 * i + 1] + 3.5, 'm', SVG_SMALL, "%.0f",
			 labels[3 * i + 2]);
	}
	svg_end_group(&p->c);
	p->c.dropped = dropped;
	y = svg_legend(&p->c, SVG_MARGIN, p->y + MAP_HIGH + 8, MAP_WIDTH, keys, 4);
	svg_putf(&p->c, SVG_MARGIN, y + 12, 'b', SVG_SOFT,
		 "%s; numbers: channels in use on the fullest "
		 "fibre", by_file ? "Places as in the network's file"
			 : "Places by the number of links between nodes");
	p->y = svg_tell_dropped(&p->c, SVG_MARGIN, y + 32, "names") + 4;
}

/* ---- fibres by channels ---- */

static void add_cell(struct rwa_picture *p, struct buf *b, int row, int from, int n)
{
	double wide = n * p->cell - (p->cell > 4 ? 1 : 0.2);

	buf_printf(b, "M%.1f %.1fh%.1fv%.1fh-%.1fz", SVG_MARGIN + NAMES + from * p->cell,
		   p->y + row * ROW,
		   wide, ROW - 1.5, wide);
}

static void put_row_names(struct rwa_picture *p, int n)
{
	char text[160], from[16], to[16];

	for (int i = 0; i < n; i++) {
		const struct fibre_row *r = &p->rows[i];
		const struct rwa_mesh_arc *a = &p->m->arcs.v[r->arc];
		const char *src = node_name(p, a->src, from, sizeof(from));
		const char *dst = node_name(p, a->dst, to, sizeof(to));

		if (a->fibres > 1) {
			snprintf(text, sizeof(text), "%.60s \xe2\x86\x92 %.60s #%d", src, dst,
				 r->fibre);
		} else {
			snprintf(text, sizeof(text), "%.60s \xe2\x86\x92 %.60s", src, dst);
		}
		svg_put(&p->c, SVG_MARGIN + NAMES - 8, p->y + i * ROW + 9.5, 'e', SVG_SMALL,
			NAMES - 24, text);
	}
}

/* What others use or no one may, of the rows and channels drawn. */
static void put_blocks(struct rwa_picture *p)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < p->m->blocks.n; i++) {
		const struct rwa_mesh_block *k = &p->m->blocks.v[i];
		bool fibres = k->fibre == RWA_MESH_ALL, channels = k->channel == RWA_MESH_ALL;
		int32_t end = fibres ? p->m->arcs.v[k->arc].fibres : k->fibre + 1;

		for (int32_t f = fibres ? 0 : k->fibre; f < end; f++) {
			int row = p->shown[p->first[k->arc] + f];

			if (row >= 0 && (channels || k->channel < p->columns)) {
				add_cell(p, &b, row, channels ? 0 : k->channel, channels
					 ? p->columns : 1);
			}
		}
	}
	if (b.len) {
		svg_path(&p->c, "fill soft weak", "%s", buf_cstr(&b));
	}
	buf_fini(&b);
}

static void put_cells(struct rwa_picture *p)
{
	for (size_t i = 0; i < p->a->paths.n; i++) {
		const struct rwa_path *path = &p->a->paths.v[i];

		for (int32_t h = 0; h < path->hops; h++) {
			const struct rwa_hop *hop = &p->a->hops.v[path->first + h];
			int row = p->shown[p->first[hop->arc] + hop->fibre];

			if (row >= 0 && hop->channel < p->columns) {
				int k = p->m->demands.v[path->demand].src % SOURCES;

				add_cell(p, &p->paths[p->cell < TOLD_APART ? 0 : k], row,
					 hop->channel, 1);
			}
		}
	}
	for (int k = 0; k < SOURCES; k++) {
		if (p->paths[k].len) {
			svg_fill_path(&p->c, k, buf_cstr(&p->paths[k]));
		}
		buf_fini(&p->paths[k]);
	}
}

/* Which colour is which source, of the first nodes; lines: as lines. */
static double put_sources(struct rwa_picture *p, double y, bool lines)
{
	enum { MOST = 16 };
	bool apart = lines || p->cell >= TOLD_APART;
	struct svg_key keys[MOST + 2];
	char names[MOST][64], styles[MOST][16], buf[16];
	int n = 0;

	for (; apart && n < (int)p->m->nodes.n && n < MOST; n++) {
		snprintf(names[n], sizeof(names[n]), "%s%.40s", n ? "" : "from ",
			 node_name(p, n, buf, sizeof(buf)));
		snprintf(styles[n], sizeof(styles[n]), "thick %s", svg_colour_class(n));
		keys[n] = (struct svg_key){ lines ? SVG_KEY_LINE : SVG_KEY_FILL, styles[n], n, NULL,
					    names[n] };
	}
	if (!apart) {
		keys[n++] = (struct svg_key){ SVG_KEY_FILL, "c0", -1, NULL, "in use" };
	}
	if (p->m->blocks.n) {
		keys[n++] = (struct svg_key){ SVG_KEY_FILL, "soft weak", -1, NULL,
					     "not available" };
	}
	y = svg_legend(&p->c, SVG_MARGIN, y, MAP_WIDTH, keys, n);
	if (apart && p->m->nodes.n > MOST) {
		svg_putf(&p->c, SVG_MARGIN, y + 12, 'b', SVG_SOFT, "and %zu more sources",
			 p->m->nodes.n - MOST);
		y += 22;
	}
	return y;
}

static void put_channel_numbers(struct rwa_picture *p, double y)
{
	int every = NUMBERED;
	char number[16];

	while (every * p->cell < 26) {
		every *= 2;
	}
	svg_put(&p->c, SVG_MARGIN + NAMES - 8, y, 'e', SVG_SMALL, 0, "channel");
	for (int c = 0; c < p->columns; c += every) {
		snprintf(number, sizeof(number), "%d", c);
		svg_put(&p->c, SVG_MARGIN + NAMES + (c + 0.5) * p->cell, y, 'm', SVG_SMALL, 0,
			number);
	}
}

static void put_grid(struct rwa_picture *p)
{
	int n = choose_rows(p);
	double top = p->y, bottom;

	p->cell = fmin(MOST_CELL, fmax(LEAST_CELL, GRID_WIDTH / (p->channels ? p->channels : 1)));
	p->columns = (int)fmin(p->channels, GRID_WIDTH / p->cell);
	svg_card(&p->c, SVG_MARGIN, top, MAP_WIDTH, n * ROW + 56);
	put_channel_numbers(p, top + 28);
	p->y = top + 36;
	svg_rect(&p->c, "fill faint", SVG_MARGIN + NAMES, p->y, p->columns * p->cell,
		 n * ROW - 1.5);
	put_row_names(p, n);
	put_blocks(p);
	put_cells(p);
	bottom = put_sources(p, top + n * ROW + 64, false);
	if (p->n_rows > n || p->channels > p->columns) {
		svg_putf(&p->c, SVG_MARGIN, bottom + 12, 'b', SVG_SOFT,
			 "the fullest fibres; and %lld more fibres, "
			 "%d more channels", (long long)(p->n_rows - n), p->channels - p->columns);
	}
}

/* ---- circles of a ring ---- */

/* True when the arcs are i -> i+1 and i+1 -> i around all nodes, with one
 * fibre each. */
static bool is_ring(const struct rwa_mesh *m)
{
	int32_t n = (int32_t)m->nodes.n;

	if (n < 3 || m->arcs.n != 2 * m->nodes.n) {
		return false;
	}
	for (size_t e = 0; e < m->arcs.n; e++) {
		const struct rwa_mesh_arc *a = &m->arcs.v[e];
		int32_t step = (a->dst - a->src + n) % n;

		if ((step != 1 && step != n - 1) || a->fibres != 1) {
			return false;
		}
	}
	return true;
}

/* Hops of a lightpath, all on one channel, as an arc: clockwise channels in the left
 * drawing, counter-clockwise in the right. */
static void put_arc(struct rwa_picture *p, const struct rwa_path *path, const struct rwa_hop *hop,
		    int32_t hops, double radius)
{
	const struct rwa_mesh_arc *arc = &p->m->arcs.v[hop->arc];
	int32_t n = (int32_t)p->m->nodes.n;
	bool cw = (arc->dst - arc->src + n) % n == 1;
	double step = 2 * acos(-1) / n, r = FIRST_RADIUS + hop->channel * RADIUS_STEP;
	double gap = 3 / r;	/* pixels, between lightpaths end to end */
	double from = arc->src * step + (cw ? gap : -gap) / 2;
	double to = arc->src * step + (cw ? 1 : -1) * (hops * step - gap / 2);
	double x = SVG_MARGIN + radius + (cw ? 0 : 2 * radius + 12), y = p->y + radius + 30;
	char style[32];

	snprintf(style, sizeof(style), "line thick %s",
		 svg_colour_class(p->m->demands.v[path->demand].src));
	svg_path(&p->c, style, "M%.1f %.1fA%.1f %.1f 0 %d %d %.1f %.1f", x + r * sin(from),
		 y - r * cos(from), r, r, 2 * hops > n, cw, x + r * sin(to), y - r * cos(to));
}

/* A card with a heading and the names around it. */
static void put_rim(struct rwa_picture *p, double x, double radius, const char *title)
{
	size_t n = p->m->nodes.n, every = (n + 39) / 40;
	double rim = radius - RIM + 6, cx = x + radius, cy = p->y + radius + 30;
	char buf[16];

	svg_card(&p->c, x, p->y, 2 * radius, 2 * radius + 40);
	svg_put(&p->c, x + 16, p->y + 26, 'b', SVG_HEAD, 0, title);
	for (size_t v = 0; v < n; v++) {
		double angle = 2 * acos(-1) * (double)v / (double)n, dx = sin(angle),
			dy = -cos(angle);

		svg_line(&p->c, "edge", cx + (FIRST_RADIUS - RADIUS_STEP) * dx,
			 cy + (FIRST_RADIUS - RADIUS_STEP) * dy, cx + rim * dx, cy + rim * dy);
		if (v % every == 0) {
			svg_put(&p->c, cx + (rim + 5) * dx, cy + (rim + 9) * dy + 3.5,
				dx > 0.2 ? 'b' : dx < -0.2 ? 'e' : 'm', SVG_SMALL, RIM - 14,
				node_name(p, (int)v, buf, sizeof(buf)));
		}
	}
}

static void put_circles(struct rwa_picture *p)
{
	double radius = FIRST_RADIUS + fmax(p->channels, 6) * RADIUS_STEP + RIM;

	p->y = svg_top();
	put_rim(p, SVG_MARGIN, radius, "clockwise, channel 0 innermost");
	put_rim(p, SVG_MARGIN + 2 * radius + 12, radius, "counter-clockwise");
	for (size_t i = 0; i < p->a->paths.n; i++) {
		const struct rwa_path *path = &p->a->paths.v[i];
		const struct rwa_hop *hop = p->a->hops.v + path->first;

		/* Where a node converts, a new arc begins. */
		for (int32_t h = 0, k; h < path->hops; h = k) {
			for (k = h + 1; k < path->hops && hop[k].channel == hop[h].channel;) {
				k++;
			}
			put_arc(p, path, &hop[h], k - h, radius);
		}
	}
	p->y = put_sources(p, p->y + 2 * radius + 52, true);
	svg_tell_dropped(&p->c, SVG_MARGIN, p->y + 12, "names");
}

void rwa_mesh_draw(const struct rwa_mesh *m, const struct rwa_assignment *a, int channels,
		   struct buf *svg)
{
	struct rwa_picture p = { .m = m, .a = a, .channels = channels };
	char title[80], about[120];

	snprintf(title, sizeof(title), "Lightpaths in a network of %zu nodes", m->nodes.n);
	snprintf(about, sizeof(about), "%zu lightpaths over %zu arcs in %d channels", a->paths.n,
		 m->arcs.n,
		 channels);
	svg_open(&p.c, title, about);
	if (is_ring(m) && channels <= MAX_CIRCLES) {
		put_circles(&p);
	} else {
		count_rows(&p);
		put_map(&p);
		put_grid(&p);
	}
	svg_close(&p.c, svg);
	arrays_fini(&p.arrays);
}
