/*
 * The occupancy as a drawing: links by channels, one colour for each source;
 * a mesh that is one duplex ring as circles, one for each channel.
 */
#include <math.h>
#include <stdlib.h>

#include "lib/base/svg.h"
#include "rwa/mesh_private.h"

#define CELL 8
#define FONT 7
#define LEFT 120
#define TOP 20
#define FIRST_RADIUS 40
#define RADIUS_STEP 6
#define MAX_CELLS 4000000	/* beyond this nobody can look at it */

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

static void put_row_name(struct buf *b, const struct rwa_mesh *m, size_t arc,
			 int32_t fibre, int64_t row)
{
	const struct rwa_mesh_arc *a = &m->arcs.v[arc];
	char from[16], to[16];

	buf_printf(b, "<text x=\"2\" y=\"%lld\">",
		   (long long)(TOP + row * CELL + CELL - 1));
	svg_text(b, rwa_mesh_node_name(m, a->src, from, sizeof(from)));
	buf_str(b, " &#8594; ");
	svg_text(b, rwa_mesh_node_name(m, a->dst, to, sizeof(to)));
	if (a->fibres > 1) {
		buf_printf(b, " #%d", fibre);
	}
	buf_str(b, "</text>\n");
}

static void put_rows(struct buf *b, const struct rwa_mesh *m,
		     const struct rwa_assignment *a, const int64_t *row)
{
	for (size_t i = 0; i < a->paths.n; i++) {
		const struct rwa_path *p = &a->paths.v[i];

		buf_str(b, "<g fill=\"");
		svg_colour(b, m->demands.v[p->demand].src);
		buf_str(b, "\">");
		put_path_title(b, m, p, a->hops.v[p->first].channel);
		for (int32_t h = 0; h < p->hops; h++) {
			const struct rwa_hop *hop = &a->hops.v[p->first + h];

			buf_printf(b, "<rect x=\"%d\" y=\"%lld\" width=\"%d\" "
				      "height=\"%d\"/>",
				   LEFT + hop->channel * CELL,
				   (long long)(TOP + (row[hop->arc] +
						      hop->fibre) * CELL),
				   CELL - 1, CELL - 1);
		}
		buf_str(b, "</g>\n");
	}
}

static int draw_links(const struct rwa_mesh *m, const struct rwa_assignment *a,
		      int channels, struct buf *b, struct err *err)
{
	int64_t *row = calloc(m->arcs.n + 1, sizeof(*row));
	int64_t rows = 0;

	if (!row) {
		return err_nomem(err);
	}
	for (size_t e = 0; e < m->arcs.n; e++) {
		row[e] = rows;
		rows += m->arcs.v[e].fibres;
	}
	if (rows * channels > MAX_CELLS) {
		free(row);
		return err_set(err, WEFT_ELIMIT,
			       "%lld fibres by %d channels: too large to draw",
			       (long long)rows, channels);
	}
	svg_begin(b, LEFT + (int64_t)channels * CELL + CELL,
	      TOP + rows * CELL + CELL, FONT);
	for (size_t e = 0; e < m->arcs.n; e++) {
		for (int32_t f = 0; f < m->arcs.v[e].fibres; f++) {
			put_row_name(b, m, e, f, row[e] + f);
		}
	}
	put_rows(b, m, a, row);
	svg_end(b);
	free(row);
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

/* One turn inside the other: clockwise channels in the left drawing,
 * counter-clockwise in the right. */
static void put_circles(struct buf *b, const struct rwa_mesh *m,
			const struct rwa_assignment *a, int64_t radius)
{
	double step = 2 * acos(-1) / (double)m->nodes.n;

	for (size_t i = 0; i < a->paths.n; i++) {
		const struct rwa_path *p = &a->paths.v[i];
		const struct rwa_hop *hop = &a->hops.v[p->first];
		const struct rwa_mesh_arc *arc = &m->arcs.v[hop->arc];
		int32_t n = (int32_t)m->nodes.n;
		bool cw = (arc->dst - arc->src + n) % n == 1;
		double r = FIRST_RADIUS + hop->channel * RADIUS_STEP;
		double from = arc->src * step, to;
		double x = (double)radius * (cw ? 1 : 3), y = (double)radius;

		to = from + (cw ? 1 : -1) * p->hops * step * 0.995;
		buf_printf(b, "<path fill=\"none\" stroke-width=\"%d\" d=\"M "
			      "%.2f %.2f A %.1f %.1f 0 %d %d %.2f %.2f\" "
			      "stroke=\"",
			   RADIUS_STEP - 2, x + r * sin(from),
			   y - r * cos(from), r, r, 2 * p->hops > n, cw,
			   x + r * sin(to), y - r * cos(to));
		svg_colour(b, m->demands.v[p->demand].src);
		buf_str(b, "\">");
		put_path_title(b, m, p, hop->channel);
		buf_str(b, "</path>\n");
	}
}

static void draw_ring(const struct rwa_mesh *m, const struct rwa_assignment *a,
		      int channels, struct buf *b)
{
	int64_t radius = FIRST_RADIUS + (int64_t)channels * RADIUS_STEP + 20;

	svg_begin(b, 4 * radius, 2 * radius, FONT);
	put_circles(b, m, a, radius);
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
