/*
 * The occupancy as a drawing: links by channels, one colour for each source;
 * a mesh that is one duplex ring as circles, one for each channel.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/output/svg.h"
#include "rwa/mesh/private.h"

#define CELL 10
#define FONT 9
#define TOP 34
#define LETTER 6		/* at most as wide, on the average */
#define NUMBERED 5		/* channels between two numbers */
#define EMPTY "#eeeeee"
#define SHUT "#999999"		/* in use by others, or not to be used */
#define FIRST_RADIUS 50
#define RADIUS_STEP 7
#define RIM 40			/* for the nodes' names */
#define MAX_CELLS 4000000	/* beyond this no one can look at it */

/* What a browser shows for a lightpath under the pointer. */
static void put_path_title(struct buf *b, const struct rwa_mesh *m,
			   const struct rwa_path *p, int32_t channel)
{
	const struct rwa_mesh_demand *d = &m->demands.v[p->demand];
	char from[16], to[16];

	buf_str(b, "<title>");
	svg_text(b, rwa_mesh_node_name(m, d->src, from, sizeof(from)));
	buf_str(b, " to ");
	svg_text(b, rwa_mesh_node_name(m, d->dst, to, sizeof(to)));
	buf_printf(b, ", channel %d</title>", channel);
}

/* ---- rows of links ---- */

struct slot_grid {
	const struct rwa_mesh *m;
	int64_t *row;		/* first row of an arc */
	int64_t rows;
	int channels;
	int left;		/* of channel 0 */
};

/* As wide as the longest name of a link. */
static int names_width(const struct rwa_mesh *m)
{
	size_t longest = 0;
	char buf[16];

	for (size_t v = 0; v < m->nodes.n; v++) {
		size_t n = strlen(rwa_mesh_node_name(m, (int)v, buf, sizeof(buf)));

		longest = n > longest ? n : longest;
	}
	return (int)(2 * longest + 7) * LETTER;
}

static void put_row_name(struct buf *b, const struct slot_grid *g, size_t arc, int32_t fibre)
{
	const struct rwa_mesh_arc *a = &g->m->arcs.v[arc];
	char from[16], to[16];

	buf_printf(b, "<text x=\"%d\" y=\"%lld\" text-anchor=\"end\">", g->left - 6,
		   (long long)(TOP + (g->row[arc] + fibre) * CELL + CELL - 2));
	svg_text(b, rwa_mesh_node_name(g->m, a->src, from, sizeof(from)));
	buf_str(b, " &#8594; ");
	svg_text(b, rwa_mesh_node_name(g->m, a->dst, to, sizeof(to)));
	if (a->fibres > 1) {
		buf_printf(b, " #%d", fibre);
	}
	buf_str(b, "</text>\n");
}

/* Numbers of channels, and every slot empty. */
static void put_ground(struct buf *b, const struct slot_grid *g)
{
	char number[16];

	svg_label(b, g->left - 6, TOP - 6, 'e', "channel");
	for (int c = 0; c < g->channels; c += NUMBERED) {
		snprintf(number, sizeof(number), "%d", c);
		svg_label(b, g->left + c * CELL + CELL / 2, TOP - 6, 'm', number);
	}
	buf_printf(b, "<defs><pattern id=\"slot\" x=\"%d\" y=\"%d\" "
		      "width=\"%d\" height=\"%d\" "
		      "patternUnits=\"userSpaceOnUse\">"
		      "<rect width=\"%d\" height=\"%d\" fill=\"" EMPTY
		      "\"/></pattern></defs>\n"
		      "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%lld\" "
		      "fill=\"url(#slot)\"/>\n",
		   g->left, TOP, CELL, CELL, CELL - 1, CELL - 1, g->left, TOP,
		   g->channels * CELL, (long long)g->rows * CELL);
}

/* One slot, or with n all n from it on. */
static void put_slots(struct buf *b, const struct slot_grid *g, int32_t arc,
		      int32_t fibre, int32_t channel, int32_t n)
{
	buf_printf(b, "<rect x=\"%d\" y=\"%lld\" width=\"%d\" "
		      "height=\"%d\"/>",
		   g->left + channel * CELL,
		   (long long)(TOP + (g->row[arc] + fibre) * CELL),
		   n * CELL - 1, CELL - 1);
}

/* What others use or no one may, clipped to the channels drawn. */
static void put_blocks(struct buf *b, const struct slot_grid *g)
{
	buf_str(b, "<g fill=\"" SHUT "\">");
	for (size_t i = 0; i < g->m->blocks.n; i++) {
		const struct rwa_mesh_block *k = &g->m->blocks.v[i];
		bool fibres = k->fibre == RWA_MESH_ALL;
		bool channels = k->channel == RWA_MESH_ALL;
		int32_t end = fibres ? g->m->arcs.v[k->arc].fibres
				     : k->fibre + 1;

		for (int32_t f = fibres ? 0 : k->fibre; f < end; f++) {
			if (channels || k->channel < g->channels) {
				put_slots(b, g, k->arc, f,
					  channels ? 0 : k->channel,
					  channels ? g->channels : 1);
			}
		}
	}
	buf_str(b, "</g>\n");
}

/* Each lightpath's slots, coloured by its source. */
static void put_rows(struct buf *b, const struct slot_grid *g, const struct rwa_assignment *a)
{
	for (size_t i = 0; i < a->paths.n; i++) {
		const struct rwa_path *p = &a->paths.v[i];

		buf_str(b, "<g fill=\"");
		svg_colour(b, g->m->demands.v[p->demand].src);
		buf_str(b, "\">");
		put_path_title(b, g->m, p, a->hops.v[p->first].channel);
		for (int32_t h = 0; h < p->hops; h++) {
			const struct rwa_hop *hop = &a->hops.v[p->first + h];

			put_slots(b, g, hop->arc, hop->fibre, hop->channel, 1);
		}
		buf_str(b, "</g>\n");
	}
}

static int draw_links(const struct rwa_mesh *m, const struct rwa_assignment *a,
		      int channels, struct buf *b, struct err *err)
{
	struct slot_grid g = { .m = m, .channels = channels };

	g.row = calloc(m->arcs.n + 1, sizeof(*g.row));
	g.left = names_width(m);
	if (!g.row) {
		return err_nomem(err);
	}
	for (size_t e = 0; e < m->arcs.n; e++) {
		g.row[e] = g.rows;
		g.rows += m->arcs.v[e].fibres;
	}
	if (g.rows * channels > MAX_CELLS) {
		free(g.row);
		return err_set(err, WEFT_ELIMIT,
			       "%lld fibres by %d channels: too large to draw",
			       (long long)g.rows, channels);
	}
	svg_begin(b, g.left + (int64_t)channels * CELL + CELL, TOP + g.rows * CELL + CELL, FONT);
	put_ground(b, &g);
	for (size_t e = 0; e < m->arcs.n; e++) {
		for (int32_t f = 0; f < m->arcs.v[e].fibres; f++) {
			put_row_name(b, &g, e, f);
		}
	}
	put_blocks(b, &g);
	put_rows(b, &g, a);
	svg_end(b);
	free(g.row);
	return 0;
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

struct circles {
	const struct rwa_mesh *m;
	double step;		/* angle between nodes */
	double radius;		/* half of one drawing's side */
};

/* Hops [from, to) of a lightpath, all on one channel, as an arc: clockwise
 * channels in the left drawing, counter-clockwise in the right. */
static void put_arc(struct buf *b, const struct circles *c, const struct rwa_path *p,
		    const struct rwa_hop *hop, int32_t hops)
{
	const struct rwa_mesh_arc *arc = &c->m->arcs.v[hop->arc];
	int32_t n = (int32_t)c->m->nodes.n;
	bool cw = (arc->dst - arc->src + n) % n == 1;
	double r = FIRST_RADIUS + hop->channel * RADIUS_STEP;
	double gap = 3 / r;	/* pixels, between lightpaths end to end */
	double from = arc->src * c->step + (cw ? gap : -gap) / 2;
	double to = arc->src * c->step +
		    (cw ? 1 : -1) * (hops * c->step - gap / 2);
	double x = c->radius * (cw ? 1 : 3), y = c->radius + TOP;

	buf_printf(b, "<path fill=\"none\" stroke-width=\"%d\" d=\"M "
		      "%.2f %.2f A %.1f %.1f 0 %d %d %.2f %.2f\" stroke=\"",
		   RADIUS_STEP - 2, x + r * sin(from), y - r * cos(from), r, r,
		   2 * hops > n, cw, x + r * sin(to), y - r * cos(to));
	svg_colour(b, c->m->demands.v[p->demand].src);
	buf_str(b, "\">");
	put_path_title(b, c->m, p, hop->channel);
	buf_str(b, "</path>\n");
}

static void put_circles(struct buf *b, const struct circles *c, const struct rwa_assignment *a)
{
	for (size_t i = 0; i < a->paths.n; i++) {
		const struct rwa_path *p = &a->paths.v[i];
		const struct rwa_hop *hop = a->hops.v + p->first;

		/* Where a node converts, a new arc begins. */
		for (int32_t h = 0, k; h < p->hops; h = k) {
			for (k = h + 1; k < p->hops && hop[k].channel == hop[h].channel;) {
				k++;
			}
			put_arc(b, c, p, &hop[h], k - h);
		}
	}
}

/* Names around one drawing, and where its circles may be active. */
static void put_frame(struct buf *b, const struct circles *c, double x, const char *title)
{
	double y = c->radius + TOP, rim = c->radius - RIM + 8;
	char buf[16];

	svg_label(b, x, TOP / 2 + FONT, 'm', title);
	for (size_t v = 0; v < c->m->nodes.n; v++) {
		double angle = (double)v * c->step;
		double dx = sin(angle), dy = -cos(angle);

		buf_printf(b, "<path stroke=\"#bbbbbb\" stroke-width=\"1\" "
			      "d=\"M %.2f %.2f L %.2f %.2f\"/>\n",
			   x + (FIRST_RADIUS - RADIUS_STEP) * dx,
			   y + (FIRST_RADIUS - RADIUS_STEP) * dy, x + rim * dx,
			   y + rim * dy);
		svg_label(b, x + (rim + 4) * dx, y + (rim + 4) * dy + 3,
			  dx > 0.1 ? 'b' : dx < -0.1 ? 'e' : 'm',
			  rwa_mesh_node_name(c->m, (int)v, buf, sizeof(buf)));
	}
}

static void draw_ring(const struct rwa_mesh *m, const struct rwa_assignment *a,
		      int channels, struct buf *b)
{
	struct circles c = { .m = m };
	int64_t radius = FIRST_RADIUS + (int64_t)channels * RADIUS_STEP + RIM;

	c.step = 2 * acos(-1) / (double)m->nodes.n;
	c.radius = (double)radius;
	svg_begin(b, 4 * radius, 2 * radius + TOP, FONT);
	put_frame(b, &c, c.radius, "clockwise, channel 0 innermost");
	put_frame(b, &c, 3 * c.radius, "counter-clockwise");
	put_circles(b, &c, a);
	svg_end(b);
}

int rwa_mesh_draw(const struct rwa_mesh *m, const struct rwa_assignment *a,
		  int channels, struct buf *svg, struct err *err)
{
	if (is_ring(m)) {
		draw_ring(m, a, channels, svg);
	} else if (draw_links(m, a, channels, svg, err)) {
		return err->code;
	}
	return svg->failed ? err_nomem(err) : 0;
}
