/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A digraph as a picture. Up to DRAWN_NODES nodes are drawn with their arcs: in
 * layers where some nodes are switches or memories, as a lattice where a group of
 * two or three generators makes them (tori, meshes of rings), on a circle where all nodes have the
 * same degree (what is a circulant looks like one), else where the distances put them.
 * Larger ones are drawn as their adjacency matrix, whose cells stand for blocks of nodes.
 * Beside it stands how many nodes are how far from the first one.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/output/canvas.h"
#include "topology/private.h"

#define DRAWN_NODES 160
#define DRAWN_ARCS 6000
#define NUMBERED 48		/* nodes that have their number inside */
#define NODE_RADIUS 12.0
#define DOT_RADIUS 4.0
#define AROUND 17.0		/* pixels between dots on a circle, at least */
#define LABEL_ROOM 30.0		/* of a number beside a dot */
#define LATTICE 58.0		/* pixels between neighbours */
#define LAYER 130.0
#define SIDE 250.0		/* the panel of hops */
#define CELLS 128		/* of the matrix, a side */
#define CELL 4.0
#define MAX_BARS 24

struct topo_picture {
	const struct topo *t;
	struct svg_canvas c;
	struct arrays a;
	double *xy;		/* of nodes, pixels */
	int32_t *dist;		/* from node 0 */
	double right, bottom;	/* of the panel */
	bool numbered;
	int every;		/* of dots: each so many-th has its number */
	double centre_x, centre_y;	/* of a circle; numbers stand outside */
	double bent;		/* arcs along a row that are longer bend; 0: none do */
	bool circle, layers;
	int64_t least, most;	/* capacity */
};

/* ---- places of nodes ---- */

static void place_circle(struct topo_picture *p)
{
	int n = topo_n(p->t);
	double apart = p->numbered ? 2.6 * NODE_RADIUS : AROUND;
	double r = fmax(n * apart / (2 * acos(-1)), 130);
	double middle = r + NODE_RADIUS + 44;

	p->circle = true;
	p->centre_x = SVG_MARGIN + middle;
	p->centre_y = svg_top() + middle;
	for (int v = 0; v < n; v++) {
		p->xy[2 * v] = p->centre_x + r * sin(2 * acos(-1) * v / n);
		p->xy[2 * v + 1] = p->centre_y - r * cos(2 * acos(-1) * v / n);
	}
	p->every = (int)ceil(LABEL_ROOM / (2 * acos(-1) * r / n));
	p->right = p->centre_x + middle;
	p->bottom = p->centre_y + middle;
}

/* The orders of two or three generators that make all nodes of one, else none. */
static int lattice_orders(const struct topo *t, int *orders)
{
	struct topo_group *g = NULL;
	int n = 0;

	if (!topo_is_plain(t) || topo_group_find(t, &g, NULL) || !g) {
		return 0;
	}
	if (topo_group_order(g) == topo_n(t) && topo_group_generators(g) <= 3) {
		n = topo_group_generators(g);
	}
	for (int i = 0; i < n; i++) {
		topo_group_generator(g, i, &orders[i]);
		n = orders[i] < 3 && n < 3 ? 0 : n;
	}
	topo_group_free(g);
	return n >= 2 ? n : 0;
}

/* Digits of node numbers: the last one across, the one before down, a third askew. */
static void place_lattice(struct topo_picture *p, const int *orders, int n_orders)
{
	double askew = n_orders == 3 ? 0.36 * LATTICE : 0;
	double step = n_orders == 3 ? LATTICE + askew * orders[2] * 0.6 : LATTICE;
	double left = SVG_MARGIN + 60, top = svg_top() + 60 + (n_orders == 3 ? askew * orders[2]
							       : 0);

	for (int v = 0; v < topo_n(p->t); v++) {
		int across = v % orders[0], down = v / orders[0] % orders[1];
		int deep = v / (orders[0] * orders[1]);

		p->xy[2 * v] = left + across * step + deep * askew;
		p->xy[2 * v + 1] = top + down * step - deep * askew;
		p->right = fmax(p->right, p->xy[2 * v] + 60);
		p->bottom = fmax(p->bottom, p->xy[2 * v + 1] + 60);
	}
	p->bent = 1.5 * step;
}

/* Nodes by the number of links that are between them and the nearest terminal. */
static int find_layers(struct topo_picture *p, int32_t *layer)
{
	const struct topo *t = p->t;
	int n = topo_n(t), top = 0;

	for (int v = 0; v < n; v++) {
		layer[v] = topo_node_kind(t, v) == TOPO_TERMINAL ? 0 : n;
	}
	for (bool more = true; more;) {
		more = false;
		for (int i = 0; i < topo_m(t); i++) {
			const struct topo_arc *a = topo_arc(t, i);

			if (layer[a->dst] > layer[a->src] + 1) {
				layer[a->dst] = layer[a->src] + 1;
				more = true;
			}
		}
	}
	for (int v = 0; v < n; v++) {
		layer[v] = layer[v] == n ? 1 : layer[v];
		top = layer[v] > top ? layer[v] : top;
	}
	return top + 1;
}

/* The mean place across of a node's neighbours below, so that arcs cross little. */
static double wanted(const struct topo_picture *p, const int32_t *layer, int v)
{
	const int32_t *in;
	int n = topo_in(p->t, v, &in), seen = 0;
	double sum = 0;

	for (int i = 0; i < n; i++) {
		int u = topo_arc(p->t, in[i])->src;

		if (layer[u] < layer[v]) {
			sum += p->xy[2 * u];
			seen++;
		}
	}
	return seen ? sum / seen : 0;
}

static void sort_layer(const struct topo_picture *p, const int32_t *layer, int32_t *order, int n)
{
	/* By insertion, which keeps equal ones in the order of their numbers. */
	for (int i = 1; i < n; i++) {
		int32_t v = order[i];
		double x = wanted(p, layer, v);
		int k = i;

		for (; k > 0 && wanted(p, layer, order[k - 1]) > x + 1e-9; k--) {
			order[k] = order[k - 1];
		}
		order[k] = v;
	}
}

static void place_layers(struct topo_picture *p)
{
	int n = topo_n(p->t), layers, widest = 1, *counts;
	int32_t *layer, *order;
	double apart, left = SVG_MARGIN + 30;

	arrays_add(&p->a, layer, n);
	arrays_add(&p->a, order, n);
	arrays_add(&p->a, counts, n + 1);
	layers = find_layers(p, layer);
	for (int v = 0; v < n; v++) {
		counts[layer[v]]++;
		widest = counts[layer[v]] > widest ? counts[layer[v]] : widest;
	}
	apart = p->numbered ? 2.9 * NODE_RADIUS : AROUND;
	p->right = left + fmax(widest * apart, 330) + 30;
	p->bottom = svg_top() + 60 + (layers - 1) * LAYER + 60;
	for (int k = 0; k < layers; k++) {
		int row = 0;

		for (int v = 0; v < n; v++) {
			if (layer[v] == k) {
				order[row++] = v;
			}
		}
		sort_layer(p, layer, order, k ? row : 0);
		for (int i = 0; i < row; i++) {
			p->xy[2 * order[i]] = left + (p->right - 30 - left) * (i + 0.5) / row;
			p->xy[2 * order[i] + 1] = p->bottom - 60 - k * LAYER;
		}
	}
	p->every = (int)ceil(LABEL_ROOM / apart);
	p->bent = 1.5 * LATTICE;
	p->layers = true;
}

/* As the distances are. */
static void place_free(struct topo_picture *p)
{
	int n = topo_n(p->t), m = topo_m(p->t);
	double size = fmax(420, sqrt(n) * 70);
	int32_t *ends;

	arrays_add(&p->a, ends, 2 * m);
	for (int i = 0; i < m; i++) {
		ends[2 * i] = topo_arc(p->t, i)->src;
		ends[2 * i + 1] = topo_arc(p->t, i)->dst;
	}
	for (int v = 0; v < 2 * n; v++) {
		p->xy[v] = 0;
	}
	svg_layout(n, ends, m, p->xy);
	for (int v = 0; v < n; v++) {
		p->xy[2 * v] = SVG_MARGIN + 40 + size * p->xy[2 * v];
		p->xy[2 * v + 1] = svg_top() + 40 + size * p->xy[2 * v + 1];
	}
	p->right = SVG_MARGIN + size + 80;
	p->bottom = svg_top() + size + 80;
	p->every = 1;
}

static void place(struct topo_picture *p)
{
	int orders[3], n_orders;

	if (topo_ranks(p->t) < topo_n(p->t)) {
		place_layers(p);
		return;
	}
	n_orders = lattice_orders(p->t, orders);
	if (n_orders) {
		place_lattice(p, orders, n_orders);
		p->every = (int)ceil(LABEL_ROOM / LATTICE);
	} else if (topo_regular_degree(p->t) > 0) {
		place_circle(p);
	} else {
		place_free(p);
	}
}

/* ---- arcs ---- */

/* A head where light goes one way only, two thirds of the way. */
static void put_head(struct topo_picture *p, double x, double y, double dx, double dy)
{
	double size = p->numbered ? 5 : 3.5, far = fmax(hypot(dx, dy), 1e-6);

	dx *= size / far;
	dy *= size / far;
	svg_path(&p->c, "fill soft", "M%.1f %.1fL%.1f %.1fL%.1f %.1fz", x + dx, y + dy,
		 x - dx - dy * 0.8, y - dy + dx * 0.8, x - dx + dy * 0.8, y - dy - dx * 0.8);
}

static const char *arc_style(const struct topo_picture *p, int64_t cap)
{
	bool many = topo_m(p->t) > 400;

	if (p->least < p->most && cap == p->most) {
		return "line soft thick weak";
	}
	return cap == p->least && (p->least < p->most || many) ? "line soft thin"
		: "line soft weak";
}

/* How far an arc bends: round what lies between its ends in its row. */
static double bend_of(const struct topo_picture *p, double dx, double dy)
{
	double far = hypot(dx, dy);
	bool level = fabs(dy) < 1, upright = fabs(dx) < 1 && !p->layers;

	return p->bent > 0 && (level || upright) && far > p->bent ? 0.16 * far : 0;
}

/* The arcs from u to v and back, as one line; only: there is none back. */
static void put_arc(struct topo_picture *p, const struct topo_arc *a, bool only)
{
	double x = p->xy[2 * a->src], y = p->xy[2 * a->src + 1];
	double dx = p->xy[2 * a->dst] - x, dy = p->xy[2 * a->dst + 1] - y;
	double far = fmax(hypot(dx, dy), 1e-6), bend = bend_of(p, dx, dy);
	double cx = x + dx / 2 - bend * dy / far, cy = y + dy / 2 + bend * dx / far;
	double t = 0.66, s = 1 - t;

	if (a->src == a->dst) {
		svg_path(&p->c, arc_style(p, a->cap), "M%.1f %.1fa9 9 0 1 1 1 0", x, y);
		return;
	}
	svg_path(&p->c, arc_style(p, a->cap), "M%.1f %.1fQ%.1f %.1f %.1f %.1f", x, y, cx, cy,
		 x + dx,
		 y + dy);
	if (only) {
		put_head(p, s * s * x + 2 * s * t * cx + t * t * (x + dx),
			 s * s * y + 2 * s * t * cy + t * t * (y + dy),
			 s * (cx - x) + t * (x + dx - cx), s * (cy - y) + t * (y + dy - cy));
	}
}

static void put_arcs(struct topo_picture *p)
{
	for (int i = 0; i < topo_m(p->t); i++) {
		const struct topo_arc *a = topo_arc(p->t, i);
		int back = topo_find_arc(p->t, a->dst, a->src);

		/* Parallel ones lie on the first, and it on the one back. */
		if (topo_find_arc(p->t, a->src, a->dst) == i && (back < 0 || a->src <= a->dst)) {
			put_arc(p, a, back < 0);
		}
	}
}

/* ---- nodes ---- */

static const char *node_style(enum topo_kind kind)
{
	return kind == TOPO_TERMINAL ? "c0" : kind == TOPO_SWITCH ? "c1" : "c2";
}

/* Terminals are round, switches square, memories stand on a corner. */
static void put_shape(struct svg_canvas *c, enum topo_kind kind, double x, double y, double r)
{
	char style[16];

	snprintf(style, sizeof(style), "fill %s", node_style(kind));
	if (kind == TOPO_TERMINAL) {
		svg_circle(c, style, x, y, r);
	} else if (kind == TOPO_SWITCH) {
		svg_rect(c, style, x - r * 0.9, y - r * 0.9, 1.8 * r, 1.8 * r);
	} else {
		r *= 1.15;
		svg_path(c, style, "M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fz", x, y - r, x + r, y,
			 x, y + r, x - r, y);
	}
}

static void put_number(struct topo_picture *p, int v)
{
	double x = p->xy[2 * v], y = p->xy[2 * v + 1];

	if (p->numbered) {
		svg_putf(&p->c, x, y + 3.5, 'm', SVG_INSIDE, "%d", v);
	} else if (v % p->every == 0 && p->circle) {
		double dx = x - p->centre_x, dy = y - p->centre_y, far = hypot(dx, dy);

		x += 10 * dx / far;
		y += (10 + 6 * fabs(dy) / far) * dy / far + 3.5;
		svg_putf(&p->c, x, y, dx > 0.25 * far ? 'b' : dx < -0.25 * far ? 'e' : 'm',
			 SVG_SMALL,
			 "%d", v);
	} else if (v % p->every == 0) {
		svg_putf(&p->c, x, y + 15, 'm', SVG_SMALL, "%d", v);
	}
}

static void put_nodes(struct topo_picture *p)
{
	double r = p->numbered ? NODE_RADIUS : DOT_RADIUS;

	for (int v = 0; v < topo_n(p->t); v++) {
		if (!p->numbered) {
			svg_keep_off(&p->c, p->xy[2 * v] - r, p->xy[2 * v + 1] - r, 2 * r, 2 * r);
		}
		put_shape(&p->c, topo_node_kind(p->t, v), p->xy[2 * v], p->xy[2 * v + 1], r);
	}
}

/* Those beside their nodes stand out from arcs that pass there. */
static void put_numbers(struct topo_picture *p)
{
	if (!p->numbered) {
		svg_begin_group(&p->c, "halo", NULL);
	}
	for (int v = 0; v < topo_n(p->t); v++) {
		put_number(p, v);
	}
	if (!p->numbered) {
		svg_end_group(&p->c);
	}
}

/* ---- the matrix ---- */

/* Full cells of a row as runs of the same shade. */
static void put_matrix_row(struct topo_picture *p, const int32_t *count, int n, int32_t most,
			   int row,
			   double left, double top)
{
	static const char *const shades[] = { "fill accent weaker", "fill accent weak",
					     "fill accent" };

	for (int col = 0, end; col < n; col = end) {
		int shade = 3 * (count[col] - 1) / (most > 0 ? most : 1);

		for (end = col + 1; end < n && (count[col] > 0) == (count[end] > 0) &&
		     (!count[col] || 3 * (count[end] - 1) / most == shade); end++) {
		}
		if (count[col]) {
			svg_rect(&p->c, shades[shade], left + col * CELL, top + row * CELL,
				 (end - col) * CELL, CELL - 0.4);
		}
	}
}

static void put_matrix(struct topo_picture *p)
{
	int n = topo_n(p->t), size = (n + CELLS - 1) / CELLS, cells = (n + size - 1) / size;
	double left = SVG_MARGIN + 56, top = svg_top() + 44;
	int32_t *count, most = 0;

	arrays_add(&p->a, count, cells * cells);
	for (int i = 0; i < topo_m(p->t); i++) {
		const struct topo_arc *a = topo_arc(p->t, i);
		int32_t *k = &count[a->src / size * cells + a->dst / size];

		++*k;
		most = *k > most ? *k : most;
	}
	p->right = left + cells * CELL + 20;
	p->bottom = top + cells * CELL + 20;
	svg_card(&p->c, SVG_MARGIN, svg_top(), p->right - SVG_MARGIN, p->bottom - svg_top());
	svg_rect(&p->c, "fill faint", left, top, cells * CELL, cells * CELL);
	for (int i = 0; i < cells; i++) {
		put_matrix_row(p, count + i * cells, cells, most, i, left, top);
	}
	for (int i = 0; i < cells; i += 16) {
		svg_putf(&p->c, left + i * CELL, top - 6, i ? 'm' : 'b', SVG_SMALL, "%d", i * size);
		svg_putf(&p->c, left - 6, top + i * CELL + 8, 'e', SVG_SMALL, "%d", i * size);
	}
	svg_put(&p->c, left, top - 22, 'b', SVG_SOFT, 0,
		"arcs from the node of a row to that of a column");
	p->bottom += 8;
}

/* ---- all of it ---- */

/* Nodes by their distance from node 0, as bars. The y below. */
static void put_hops(struct topo_picture *p)
{
	int n = topo_n(p->t), counts[MAX_BARS + 1] = { 0 }, most = 1, last = 0, beyond = 0;
	double x = p->right + 16, y = svg_top();

	topo_bfs(p->t, 0, p->dist);
	for (int v = 0; v < n; v++) {
		int d = p->dist[v] < 0 ? -1 : p->dist[v] > MAX_BARS ? MAX_BARS : p->dist[v];

		if (d < 0) {
			beyond++;
			continue;
		}
		counts[d]++;
		last = d > last ? d : last;
		most = counts[d] > most ? counts[d] : most;
	}
	svg_card(&p->c, x, y, SIDE, 48 + 20 * last + (beyond ? 20 : 0));
	svg_put(&p->c, x + 14, y + 24, 'b', SVG_HEAD, 0, "Hops from node 0");
	for (int d = 1; d <= last; d++) {
		double wide = 120.0 * counts[d] / most;

		svg_putf(&p->c, x + 44, y + 28 + 20 * d, 'e', SVG_TEXT, "%s%d",
			 d == MAX_BARS ? ">=" : "", d);
		svg_rect(&p->c, "fill accent", x + 52, y + 18 + 20 * d, wide, 12);
		svg_putf(&p->c, x + 58 + wide, y + 28 + 20 * d, 'b', SVG_SOFT, "%d", counts[d]);
	}
	if (beyond) {
		svg_putf(&p->c, x + 14, y + 48 + 20 * last, 'b', SVG_SOFT, "%d not reached",
			 beyond);
	}
}

static void put_legend(struct topo_picture *p, bool matrix)
{
	static const char *const names[] = { "terminal", "switch", "memory" };
	struct svg_key keys[8];
	char least[48], most[48];
	int n = 0;

	for (int k = 0; k < TOPO_KINDS && !matrix; k++) {
		bool any = k == TOPO_TERMINAL;

		for (int v = 0; v < topo_n(p->t); v++) {
			any |= (int)topo_node_kind(p->t, v) == k;
		}
		if (any && topo_ranks(p->t) < topo_n(p->t)) {
			keys[n++] = (struct svg_key){ k ? SVG_KEY_FILL : SVG_KEY_DOT,
						      node_style((enum topo_kind)k), -1, NULL,
						      names[k] };
		}
	}
	if (matrix) {
		keys[n++] = (struct svg_key){ SVG_KEY_FILL, "accent weaker", -1, NULL, "few arcs" };
		keys[n++] = (struct svg_key){ SVG_KEY_FILL, "accent", -1, NULL,
					      "most arcs of a cell" };
	} else if (p->least < p->most) {
		snprintf(least, sizeof(least), "capacity %lld", (long long)p->least);
		snprintf(most, sizeof(most), "capacity %lld", (long long)p->most);
		keys[n++] = (struct svg_key){ SVG_KEY_LINE, "soft thin", -1, NULL, least };
		keys[n++] = (struct svg_key){ SVG_KEY_LINE, "soft thick weak", -1, NULL, most };
	}
	if (!matrix && p->every > 1 && !p->numbered) {
		snprintf(least, sizeof(least), "every %d%s node has its number", p->every,
			 p->every == 2 ? "nd" : p->every == 3 ? "rd" : "th");
		keys[n++] = (struct svg_key){ SVG_KEY_DOT, "soft", -1, NULL, least };
	}
	svg_tell_dropped(&p->c, SVG_MARGIN,
			 svg_legend(&p->c, SVG_MARGIN, p->bottom + 8, p->right - SVG_MARGIN, keys,
				    n) + 12,
			 "numbers");
}

static void put_title(struct topo_picture *p, const char *name)
{
	const struct topo *t = p->t;
	char title[240], about[240];
	int others = topo_n(t) - topo_ranks(t), used;

	snprintf(title, sizeof(title), "%.200s%s", *name ? name : "Topology",
		 strlen(name) > 200 ? "..." : "");
	used = snprintf(about, sizeof(about), "%d nodes, %d arcs, at most %d a node each way",
			topo_n(t),
			topo_m(t), topo_max_degree(t));
	if (others) {
		used += snprintf(about + used, sizeof(about) - (size_t)used, ", %d of the nodes %s",
				 others, "are switches or memories");
	}
	if (topo_n_limits(t)) {
		snprintf(about + used, sizeof(about) - (size_t)used, ", %d shared limits",
			 topo_n_limits(t));
	}
	svg_open(&p->c, title, about);
	p->least = p->most = topo_m(t) ? topo_arc(t, 0)->cap : 1;
	for (int i = 0; i < topo_m(t); i++) {
		p->least = topo_arc(t, i)->cap < p->least ? topo_arc(t, i)->cap : p->least;
		p->most = topo_arc(t, i)->cap > p->most ? topo_arc(t, i)->cap : p->most;
	}
}

void topo_draw(const struct topo *t, const char *name, struct buf *svg)
{
	struct topo_picture p = { .t = t, .every = 1, .numbered = topo_n(t) <= NUMBERED };
	bool matrix = topo_n(t) > DRAWN_NODES || topo_m(t) > DRAWN_ARCS;

	arrays_add(&p.a, p.xy, 2 * topo_n(t));
	arrays_add(&p.a, p.dist, topo_n(t));
	put_title(&p, name);
	if (matrix) {
		put_matrix(&p);
	} else {
		place(&p);
		svg_card(&p.c, SVG_MARGIN, svg_top(), p.right - SVG_MARGIN, p.bottom - svg_top());
		put_arcs(&p);
		put_nodes(&p);
		put_numbers(&p);
	}
	put_hops(&p);
	put_legend(&p, matrix);
	svg_close(&p.c, svg);
	arrays_fini(&p.a);
}
