/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The evaluation in the Swing paper (De Sensi et al., NSDI 2024, section 5) again, figures 7 to 16
 * but for 10, which is a sketch: goodput and gain of all-reduces on tori, HammingMesh and HyperX,
 * with weft's own choice and the bound beside them; and the paper's sentences, each judged by what
 * was computed.
 *
 * bench_swing              the sentences on stdout
 * bench_swing --json FILE  and JSON lines appended to FILE, and swing_figure7.svg, ... beside it
 *
 * The paper's network: links of 400 Gbit/s and 400 ns a hop. What a step costs besides is
 * not in the paper; 500 ns is fitted (docs/swing.md), so
 * sentences are judged at 400 and 700 ns too.
 */
#include <stdarg.h>

#include "lib/base/parallel.h"
#include "tests/bench/draw.h"
#include "tests/bench/program.h"
#include "tests/bench/swing.h"

#define STEP_NS 500
#define HOP_NS 400
#define LINK_BPS 400000000000

/* The paper's sizes are powers of four: every second one. */
#define POINTS ((SIZES + 1) / 2)
#define SMALL 6			/* of them up to 32 KiB */

#define KIB 1024LL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static const char *json_path;
static FILE *json;

/* ---- networks ---- */

static const struct network {
	const char *name, *expr;
	int dimensions;
	int64_t link_bps;
} networks[] = {
	{ "8x8", "Torus(8,8)", 2, LINK_BPS },
	{ "16x16", "Torus(16,16)", 2, LINK_BPS },
	{ "32x32", "Torus(32,32)", 2, LINK_BPS },
	{ "64x64", "Torus(64,64)", 2, LINK_BPS },
	{ "128x128", "Torus(128,128)", 2, LINK_BPS },
	{ "64x16", "Torus(64,16)", 2, LINK_BPS },
	{ "128x8", "Torus(128,8)", 2, LINK_BPS },
	{ "256x4", "Torus(256,4)", 2, LINK_BPS },
	{ "8x8x8", "Torus(8,8,8)", 3, LINK_BPS },
	{ "8x8x8x8", "Torus(8,8,8,8)", 4, LINK_BPS },
	{ "Hx2Mesh", "HammingMesh(2,32,32)", 2, LINK_BPS },
	{ "Hx4Mesh", "HammingMesh(4,16,16)", 2, LINK_BPS },
	{ "HyperX", "HyperX(64,64)", 2, LINK_BPS },
	{ "8x8, 100 Gb/s", "Torus(8,8)", 2, LINK_BPS / 4 },
	{ "8x8, 200 Gb/s", "Torus(8,8)", 2, LINK_BPS / 2 },
	{ "8x8, 400 Gb/s", "Torus(8,8)", 2, LINK_BPS },
	{ "8x8, 800 Gb/s", "Torus(8,8)", 2, LINK_BPS * 2 },
	{ "8x8, 1.6 Tb/s", "Torus(8,8)", 2, LINK_BPS * 4 },
	{ "8x8, 3.2 Tb/s", "Torus(8,8)", 2, LINK_BPS * 8 },
};

#define NETWORKS ((int)(sizeof(networks) / sizeof(networks[0])))

/* Sets of them. */
enum {
	N8 = 1 << 0, N64 = 1 << 3, SQUARE = 0x1f, LARGE_SQUARE = 0x18,
	N64X16 = 1 << 5, N128X8 = 1 << 6, N256X4 = 1 << 7, RECTANGULAR = N64X16 | N128X8 | N256X4,
	N888 = 1 << 8, N8888 = 1 << 9,
	HX2 = 1 << 10, HX4 = 1 << 11, HYPERX = 1 << 12,
	BANDWIDTHS = 0x3f << 13, FASTEST = 1 << 18, ALL = (1 << 19) - 1,
};

static double times[NETWORKS][SWING_ALGORITHMS][SIZES];	/* ns; INFINITY: there is none */

static int failed[NETWORKS];

/* Times of the first algorithms, where a step costs so much. */
struct measurement {
	int64_t step_ns;
	int algorithms, parts;
};

static void measure(const struct measurement *m, int network)
{
	struct coll_cost cost = { .alpha_ns = m->step_ns, .hop_ns = HOP_NS,
				  .link_bps = networks[network].link_bps };
	struct swing_case c;

	failed[network] = swing_open(networks[network].expr, &c);
	for (int a = 0; a < m->algorithms && !failed[network]; a++) {
		for (int i = 0; i < SIZES; i++) {
			cost.size_bytes = swing_size(i);
			times[network][a][i] = swing_time(&c, (enum swing_algorithm)a, &cost);
		}
	}
	swing_close(&c);
}

static void measure_part(void *arg, int i)
{
	const struct measurement *m = arg;

	for (int n = i; n < NETWORKS; n += m->parts) {
		measure(m, n);
	}
}

/* 1: a network could not be measured. */
static int measure_all(int64_t step_ns, int algorithms)
{
	struct measurement m = { step_ns, algorithms, parallel_width() };
	int bad = 0;

	parallel_run(m.parts, measure_part, &m);
	for (int n = 0; n < NETWORKS; n++) {
		bad |= failed[n];
	}
	return bad;
}

/* ---- curves: what the paper draws a line for ---- */

enum curve { SWING, DOUBLING, MIRRORED, HAMILTON, BY_BUCKET, CHOSEN, LIMIT, CURVES };

static const struct {
	const char *letter, *name, *key;
	int algorithm[2];	/* the better one of them */
} curves[CURVES] = {
	{ "S", "Swing", "swing", { SWING_L, SWING_B } },
	{ "D", "doubling", "doubling", { DOUBLING_L, DOUBLING_B } },
	{ "M", "mirrored", "mirrored", { MIRRORED_L, MIRRORED_B } },
	{ "H", "ring", "ring", { RING, RING } },
	{ "B", "bucket", "bucket", { BUCKET, BUCKET } },
	{ "A", "weft auto", "auto", { AUTO, AUTO } },
	{ "", "bound", "bound", { BOUND, BOUND } },
};

static double ns_of(int network, enum curve c, int size)
{
	return fmin(times[network][curves[c].algorithm[0]][size],
		    times[network][curves[c].algorithm[1]][size]);
}

/* The best known algorithm: all that the paper compares with, which is not the mirrored one. */
static enum curve best_known(int network, int size)
{
	static const enum curve known[] = { HAMILTON, BY_BUCKET };
	enum curve best = DOUBLING;

	for (int k = 0; k < 2; k++) {
		if (ns_of(network, known[k], size) < ns_of(network, best, size)) {
			best = known[k];
		}
	}
	return best;
}

/* How many times faster than the best known: 1 is alike. */
static double speed_up(int network, enum curve c, int size)
{
	return ns_of(network, best_known(network, size), size) / ns_of(network, c, size);
}

static double goodput_gbps(int network, enum curve c, int size)
{
	double ns = ns_of(network, c, size);

	return isinf(ns) ? NAN : (double)swing_size(size) * 8 / ns;
}

/* All-reduces send at least two bytes for one, so half of what all ports inject. */
static double peak_gbps(int network)
{
	return networks[network].dimensions * (double)networks[network].link_bps / 1e9;
}

static void record_times(int figure, int network)
{
	for (int i = 0; json && i < SIZES; i++) {
		fprintf(json,
			"{\"bench\":\"swing\",\"figure\":%d,\"network\":\"%s\",\"topology\":\"%s\","
			"\"link_bps\":%lld,\"bytes\":%lld,\"gain\":%.6f,\"best_known\":\"%s\"",
			figure, networks[network].name, networks[network].expr,
			(long long)networks[network].link_bps, (long long)swing_size(i),
			speed_up(network, SWING, i) - 1, curves[best_known(network, i)].key);
		for (int c = 0; c < CURVES; c++) {
			if (isfinite(ns_of(network, (enum curve)c, i))) {
				fprintf(json, ",\"%s_ns\":%.3f", curves[c].key,
					ns_of(network, (enum curve)c, i));
			}
		}
		fprintf(json, "}\n");
	}
}

/* ---- drawing ---- */

#define LINES 8
#define PANELS 5

/* A chart and what it borrows. */
struct panel {
	char title[96], name[LINES][32];
	double value[LINES][POINTS];
	const char *letter[POINTS];
	struct svg_series series[LINES];
	struct svg_line line[LINES];
	struct svg_chart chart;
};

static const char *const size_names[POINTS] = {
	"32", "128", "512", "2K", "8K", "32K", "128K", "512K", "2M", "8M", "32M", "128M",
	"512M", "2G",
};

static void begin_panel(struct panel *p, int points, const char *y_label)
{
	memset(p, 0, sizeof(*p));
	p->chart = (struct svg_chart){
		.title = p->title, .x_label = "vector, bytes (K, M, G: powers of 1024)",
		.y_label = y_label, .group = size_names, .n_groups = points, .series = p->series,
		.lines = true, .line = p->line,
	};
}

/* The next line of a panel; its values are to be filled. */
static double *add_line(struct panel *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static double *add_line(struct panel *p, const char *format, ...)
{
	int k = p->chart.n_series++;
	va_list ap;

	va_start(ap, format);
	vsnprintf(p->name[k], sizeof(p->name[k]), format, ap);
	va_end(ap);
	p->series[k] = (struct svg_series){ p->name[k], p->value[k] };
	return p->value[k];
}

/* 1 + the point from which on Swing with the least volume is faster than with the fewest steps. */
static int point_of_change(int network)
{
	for (int i = 0; i < POINTS; i++) {
		if (times[network][SWING_B][2 * i] < times[network][SWING_L][2 * i]) {
			return i + 1;
		}
	}
	return 0;
}

static void goodput_panel(struct panel *p, int figure, int network)
{
	begin_panel(p, POINTS, "goodput, Gbit/s");
	snprintf(p->title, sizeof(p->title), "Figure %d: goodput on %s", figure,
		 networks[network].name);
	p->chart.note = "Large dot: from there on Swing is bandwidth-optimal. Doubling: recursive; "
			"mirrored: the same on all ports.";
	p->chart.negative = true;	/* for gaps */
	for (int c = 0; c < CURVES; c++) {
		double *value = add_line(p, "%s %s", curves[c].letter, curves[c].name);

		for (int i = 0; i < POINTS; i++) {
			value[i] = goodput_gbps(network, (enum curve)c, 2 * i);
		}
	}
	p->line[SWING].large = point_of_change(network);
	p->line[LIMIT].dashed = true;
}

static void runtime_panel(struct panel *p, int network)
{
	begin_panel(p, SMALL, "time, us");
	snprintf(p->title, sizeof(p->title), "Small vectors on %s", networks[network].name);
	p->chart.note = "Beside the letters: the time of 32 bytes.";
	p->chart.log = true;
	for (int c = 0; c < CURVES; c++) {
		double *value = add_line(p, "%s %.1f us", c == LIMIT ? "bound" : curves[c].letter,
					 ns_of(network, (enum curve)c, 0) / 1e3);

		for (int i = 0; i < SMALL; i++) {
			double ns = ns_of(network, (enum curve)c, 2 * i);

			value[i] = isfinite(ns) ? ns / 1e3 : -1;
		}
	}
	p->line[LIMIT].dashed = true;
}

static void add_gain(struct panel *p, int network, enum curve c, const char *name)
{
	double *value = add_line(p, "%s", name);

	for (int i = 0; i < POINTS; i++) {
		value[i] = 100 * (speed_up(network, c, 2 * i) - 1);
	}
}

/* Of one network: with the letters of the best known, and auto beside it. */
static void gain_panel(struct panel *p, int network)
{
	begin_panel(p, POINTS, "goodput gain, %");
	snprintf(p->title, sizeof(p->title), "Gain over the best known on %s",
		 networks[network].name);
	p->chart.note = "Letters: which algorithm is the best known at this size.";
	p->chart.negative = true;
	add_gain(p, network, SWING, "S Swing");
	add_gain(p, network, CHOSEN, "A weft auto");
	for (int i = 0; i < POINTS; i++) {
		p->letter[i] = curves[best_known(network, 2 * i)].letter;
	}
	p->line[0].mark = p->letter;
}

/* One of the paper's, of a set of networks. */
struct figure {
	int number, networks;
	bool goodput;		/* of each, before the gains */
};

static void gains_panel(struct panel *p, const struct figure *f, enum curve c)
{
	begin_panel(p, POINTS, "goodput gain, %");
	snprintf(p->title, sizeof(p->title), "Figure %d: gain of %s over the best known", f->number,
		 curves[c].name);
	p->chart.negative = true;
	for (int n = 0; n < NETWORKS; n++) {
		if (f->networks & 1 << n) {
			add_gain(p, n, c, networks[n].name);
		}
	}
}

/* ---- figures ---- */

static const struct figure figures[] = {
	{ 7, N64, true }, { 8, SQUARE, false }, { 9, BANDWIDTHS, false }, { 11, RECTANGULAR, true },
	{ 12, N8 | N888 | N8888, true }, { 13, HX2, true }, { 14, HX4, true }, { 15, HYPERX, true },
};

static int draw_figure(const struct figure *f)
{
	static struct panel panel[PANELS];
	struct svg_chart charts[PANELS];
	int first = __builtin_ctz((unsigned)f->networks), n_panels = 0;
	bool single = f->networks == 1 << first;
	char name[32];

	for (int n = 0; n < NETWORKS; n++) {
		if (f->networks & 1 << n) {
			record_times(f->number, n);
			if (f->goodput) {
				goodput_panel(&panel[n_panels++], f->number, n);
			}
		}
	}
	if (single) {
		gain_panel(&panel[n_panels++], first);
		runtime_panel(&panel[n_panels++], first);
	} else {
		gains_panel(&panel[n_panels++], f, SWING);
		gains_panel(&panel[n_panels++], f, CHOSEN);
	}
	for (int i = 0; i < n_panels; i++) {
		charts[i] = panel[i].chart;
	}
	snprintf(name, sizeof(name), "swing_figure%d", f->number);
	return draw_charts(json_path, name, charts, n_panels);
}

/* ---- figure 16: boxes ---- */

/* Of the gains of a network at the paper's sizes up to 512 MiB, in percent. */
struct spread {
	double value[POINTS];	/* ascending */
	int n;
	double quartile[5];	/* least, first, median, third, largest */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct spread spread_of(int network, enum curve c)
{
	struct spread s = { .n = POINTS - 1 };

	for (int i = 0; i < s.n; i++) {
		s.value[i] = 100 * (speed_up(network, c, 2 * i) - 1);
	}
	qsort(s.value, (size_t)s.n, sizeof(double), by_value);
	for (int q = 0; q < 5; q++) {
		double at = q * (s.n - 1) / 4.0;
		int low = (int)at, high = low + 1 < s.n ? low + 1 : low;

		s.quartile[q] = s.value[low] + (at - low) * (s.value[high] - s.value[low]);
	}
	return s;
}

#define BOX_LEFT 130.0
#define BOX_WIDTH 580.0
#define BOX_ROW 26.0
#define BOX_TOP 50.0

/* The scale of a drawing of boxes, in percent of gain. */
struct box_scale {
	double low, high;
};

static double box_x(const struct box_scale *s, double percent)
{
	return BOX_LEFT + BOX_WIDTH * (percent - s->low) / (s->high - s->low);
}

/* A box from the first to the third quartile, a triangle at the median, whiskers to the last points
 * within 1.5 boxes of it, and circles for those outside. */
static void draw_box(struct buf *b, const struct box_scale *scale, const struct spread *s,
		     const char *colour, double y)
{
	const double *q = s->quartile;
	double reach = 1.5 * (q[3] - q[1]), low = q[1], high = q[3], m = box_x(scale, q[2]);

	for (int i = 0; i < s->n; i++) {
		double v = s->value[i];

		if (v < q[1] - reach || v > q[3] + reach) {
			buf_printf(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"none\" "
				   "stroke=\"%s\"/>\n", box_x(scale, v), y, colour);
		} else {
			low = fmin(low, v);
			high = fmax(high, v);
		}
	}
	buf_printf(b, "<path d=\"M%.1f %.1fH%.1fM%.1f %.1fH%.1f\" stroke=\"%s\"/>\n",
		   box_x(scale, low), y, box_x(scale, q[1]), box_x(scale, q[3]), y,
		   box_x(scale, high), colour);
	buf_printf(b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"8\" fill=\"%s\" "
		   "fill-opacity=\"0.35\" stroke=\"%s\"/>\n", box_x(scale, q[1]), y - 4,
		   box_x(scale, q[3]) - box_x(scale, q[1]), colour, colour);
	buf_printf(b, "<path d=\"M%.1f %.1fl4 8h-8z\" fill=\"%s\"/>\n", m, y - 4, colour);
}

static void draw_box_axis(struct buf *b, const struct box_scale *s, double bottom)
{
	char text[16];

	for (double v = s->low; v <= s->high; v += 50) {
		buf_printf(b, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\"/>\n", box_x(s, v),
			   BOX_TOP - 14, bottom, v == 0 ? "#777777" : "#dddddd");
		snprintf(text, sizeof(text), "%.0f", v);
		svg_label(b, box_x(s, v), bottom + 16, 'm', text);
	}
	svg_label(b, BOX_LEFT + BOX_WIDTH / 2, bottom + 36, 'm',
		  "goodput gain over the best known, "
		  "%; upper box Swing, lower box weft auto");
	buf_str(b, "<g font-size=\"15\">");
	svg_label(b, BOX_LEFT, 22, 'b', "Figure 16: gains by topology, 32 bytes to 512 MiB");
	buf_str(b, "</g>\n");
}

static void record_spread(int network, const struct spread *swing, const struct spread *chosen)
{
	if (json) {
		fprintf(json, "{\"bench\":\"swing\",\"figure\":16,\"network\":\"%s\","
			"\"swing_median\":%.4f,\"swing_min\":%.4f,\"swing_max\":%.4f,"
			"\"auto_median\":%.4f,\"auto_min\":%.4f,\"auto_max\":%.4f}\n",
			networks[network].name, swing->quartile[2], swing->quartile[0],
			swing->quartile[4], chosen->quartile[2], chosen->quartile[0],
			chosen->quartile[4]);
	}
}

static int draw_summary(FILE *table)
{
	double bottom = BOX_TOP + NETWORKS * BOX_ROW;
	struct spread s[NETWORKS], a[NETWORKS];
	struct box_scale scale = { 0, 0 };
	struct buf b = { 0 };

	for (int n = 0; n < NETWORKS; n++) {
		s[n] = spread_of(n, SWING);
		a[n] = spread_of(n, CHOSEN);
		record_spread(n, &s[n], &a[n]);
		scale.low = fmin(scale.low, 50 * floor(s[n].quartile[0] / 50));
		scale.high = fmax(scale.high, 50 * ceil(fmax(s[n].quartile[4],
							     a[n].quartile[4]) / 50));
		if (table) {
			fprintf(table, "%-14s %8.0f %6.0f %6.0f %8.0f %6.0f %6.0f\n",
				networks[n].name, s[n].quartile[0], s[n].quartile[2],
				s[n].quartile[4], a[n].quartile[0], a[n].quartile[2],
				a[n].quartile[4]);
		}
	}
	svg_begin(&b, SVG_CHART_WIDTH, (int64_t)bottom + 50, 12);
	draw_box_axis(&b, &scale, bottom);
	for (int n = 0; n < NETWORKS; n++) {
		double y = BOX_TOP + n * BOX_ROW;

		svg_label(&b, BOX_LEFT - 10, y + 8, 'e', networks[n].name);
		draw_box(&b, &scale, &s[n], "#4477aa", y - 2);
		draw_box(&b, &scale, &a[n], "#aa3377", y + 9);
	}
	svg_end(&b);
	return write_drawing(json_path, "swing_figure16", &b);
}

/* ---- the paper's sentences ---- */

/* What a sentence speaks of: the first ones at each size, the others once a network. */
enum quantity {
	GAIN,			/* time of the best known over Swing's, and so on */
	OVER_DOUBLING, OVER_DOUBLING_L, OVER_MIRRORED, OVER_RING, OVER_BUCKET,
	RING_LEADS,		/* the better one of bucket and Swing over the ring */
	SHARE, BUCKET_SHARE,	/* of the peak goodput */
	SWING_US, DOUBLING_US, BUCKET_US,
	LARGEST, MEDIAN, LARGEST_AT,	/* gain; bytes where it is the largest */
};

static const char *const quantity_names[] = {
	"speed-up", "over recursive doubling", "over latency-optimal recursive doubling",
	"over mirrored recursive doubling", "over ring", "over bucket",
	"ring over the better of bucket and Swing", "share of the peak",
	"bucket's share of the peak",
	"us of Swing", "us of recursive doubling", "us of bucket", "largest speed-up",
	"median speed-up", "KiB of the largest speed-up",
};

enum relation {
	ABOUT,			/* the paper's number, to 7.5 %: it rounds */
	ABOVE, BELOW,
	GROWS, FALLS,		/* from each network to the next */
};

#define NEAR 0.075

/* One thing that a sentence says, at all of the paper's sizes in a range on all of the networks. */
struct check {
	enum quantity quantity;
	enum relation relation;
	double value;		/* of ABOUT, ABOVE and BELOW */
	int networks;
	int64_t from, to;	/* bytes */
};

#define CHECKS 4

static const struct sentence {
	int figure;
	const char *text;
	struct check check[CHECKS];	/* zero networks end them */
	bool fitted;		/* 500 ns a step were chosen so that it holds */
	const char *why;	/* a flow model says otherwise */
} sentences[] = {
	{ 7, "Swing outperforms all the other algorithms from 32 B to 32 MiB",
	  { { GAIN, ABOVE, 1, N64, 32, 32 * MIB } }, true, "" },
	{ 7, "More than 2x improvement over recursive doubling for 2 MiB",
	  { { OVER_DOUBLING, ABOVE, 2, N64, 2 * MIB, 2 * MIB } }, true, "" },
	{ 7, "The highest gains (around 120 %) are for 2 MiB",
	  { { LARGEST, ABOUT, 2.2, N64, 32, 512 * MIB },
	    { LARGEST_AT, ABOUT, 2048, N64, 32, 512 * MIB } }, true, "" },
	{ 7, "Bucket performs better than Swing from 128 MiB, ring does not",
	  { { OVER_BUCKET, BELOW, 1, N64, 128 * MIB, 512 * MIB },
	    { OVER_BUCKET, ABOVE, 1, N64, 32 * MIB, 32 * MIB },
	    { OVER_RING, ABOVE, 1, N64, 128 * MIB, 512 * MIB } }, true, "" },
	{ 7, "Around 77 % of the peak at 512 MiB; at most 81 % by the congestion deficiency of "
	     "1.19",
	  { { SHARE, ABOUT, 0.77, N64, 512 * MIB, 512 * MIB },
	    { SHARE, BELOW, 65 / 77.0, N64, 512 * MIB, 512 * MIB } }, false,
	  "headers and credits of the packet simulator are no flows; the exact deficiency is "
	  "77/65" },
	{ 7, "Up to 50 % improvement for small vectors (up to 32 KiB) over latency-optimal "
	     "recursive doubling",
	  { { OVER_DOUBLING_L, BELOW, 1.5, N64, 32, 2 * KIB },
	    { OVER_DOUBLING_L, BELOW, 1.5, N64, 8 * KIB, 32 * KIB } }, false,
	  "whole vectors of several KiB on shared links cost more than their hops" },
	{ 7, "Swing consistently outperforms mirrored recursive doubling at any size",
	  { { OVER_MIRRORED, ABOVE, 1, N64, 32, 512 * MIB } }, false, "" },
	{ 8, "Swing outperforms the others regardless of the network size, up to 32 MiB",
	  { { GAIN, ABOVE, 1, SQUARE, 32, 32 * MIB } }, false,
	  "on small tori bucket has few steps, and no congestion" },
	{ 8, "Up to 2.2x on square tori with 4096 to 16384 nodes",
	  { { LARGEST, ABOUT, 2.2, LARGE_SQUARE, 32, 512 * MIB } }, false, "" },
	{ 8, "The maximum gain increases with the network size",
	  { { LARGEST, GROWS, 0, SQUARE, 32, 512 * MIB } }, false,
	  "at the paper's sizes, powers of four, 128x128 is between two peaks" },
	{ 8, "Bucket outperforms Swing for large vectors (128 MiB and more)",
	  { { OVER_BUCKET, BELOW, 1, SQUARE, 128 * MIB, 512 * MIB } }, false,
	  "on 128x128 at 128 MiB the 1016 steps of bucket still count" },
	{ 8, "The gain is at worst around -20 %",
	  { { GAIN, ABOVE, 0.8, SQUARE, 32, 512 * MIB } }, false, "" },
	{ 9, "At lower bandwidths the gain for small vectors is larger",
	  { { GAIN, FALLS, 0, BANDWIDTHS, 32, 2 * KIB } }, false, "" },
	{ 9, "At 3.2 Tb/s Swing outperforms all the others even for 512 MiB",
	  { { GAIN, ABOVE, 1, FASTEST, 512 * MIB, 512 * MIB } }, false,
	  "only bytes count at this size, and Swing has 23/21 of bucket's on the fullest link" },
	{ 9, "The median gain stands around 25 % regardless of the bandwidth",
	  { { MEDIAN, ABOUT, 1.25, BANDWIDTHS, 32, 512 * MIB } }, false, "" },
	{ 11, "Ring outperforms bucket and Swing for more than 512 MiB",
	  { { RING_LEADS, ABOVE, 1, RECTANGULAR, 2 * GIB, 2 * GIB } }, false, "" },
	{ 11, "Bucket's goodput for large vectors decreases from 64x16 to 256x4",
	  { { BUCKET_SHARE, FALLS, 0, RECTANGULAR, 128 * MIB, 2 * GIB } }, false, "" },
	{ 11, "Swing outperforms the others up to 32 MiB regardless of the shape",
	  { { GAIN, ABOVE, 1, RECTANGULAR, 32, 32 * MIB } }, false, "" },
	{ 11, "Up to 3x on 128x8 and 256x4",
	  { { LARGEST, ABOUT, 3, N128X8 | N256X4, 32, 512 * MIB } }, false,
	  "the fitted cost of a step moves it" },
	{ 12, "8x8x8 and 8x8x8x8: up to 2x",
	  { { LARGEST, ABOUT, 2, N888 | N8888, 32, 2 * GIB } }, false, "" },
	{ 12, "8x8x8 and 8x8x8x8: outperforms all from 32 B to 2 GiB",
	  { { GAIN, ABOVE, 1, N888 | N8888, 32, 2 * GIB } }, false,
	  "its deficiency is above 1, bucket's is 1; 2 % are within the noise of packets" },
	{ 12, "The gain increases with the number of dimensions",
	  { { LARGEST, GROWS, 0, N8 | N888 | N8888, 32, 512 * MIB },
	    { MEDIAN, GROWS, 0, N8 | N888 | N8888, 32, 512 * MIB } }, false, "" },
	{ 13, "Hx2Mesh: Swing outperforms the others at any size",
	  { { GAIN, ABOVE, 1, HX2, 32, 512 * MIB } }, false,
	  "wires on boards and levels of trees have latencies that are not in the text" },
	{ 13, "Hx2Mesh: up to 2.5x, for 2 MiB",
	  { { LARGEST, ABOVE, 2.5, HX2, 32, 512 * MIB },
	    { GAIN, ABOUT, 2.5, HX2, 2 * MIB, 2 * MIB } }, false, "the same" },
	{ 13, "Hx2Mesh: the peak is higher than on a torus of as many nodes",
	  { { SHARE, GROWS, 0, N64 | HX2, 512 * MIB, 512 * MIB } }, false, "" },
	{ 13, "Hx2Mesh: all algorithms take less time for small vectors",
	  { { SWING_US, FALLS, 0, N64 | HX2, 32, 2 * KIB },
	    { DOUBLING_US, FALLS, 0, N64 | HX2, 32, 2 * KIB },
	    { BUCKET_US, FALLS, 0, N64 | HX2, 32, 2 * KIB } }, false,
	  "a hop on a board costs as much as any here, and one through a switch is two" },
	{ 14, "Hx4Mesh: lower gains than on Hx2Mesh from 128 MiB",
	  { { GAIN, FALLS, 0, HX2 | HX4, 128 * MIB, 512 * MIB } }, false, "" },
	{ 15, "HyperX: Swing outperforms all the others at any size",
	  { { GAIN, ABOVE, 1, HYPERX, 32, 512 * MIB } }, false, "" },
	{ 15, "The maximum gain increases from 2.5x (Hx2Mesh and Hx4Mesh) to 3x (HyperX)",
	  { { LARGEST, ABOUT, 2.5, HX2 | HX4, 32, 512 * MIB },
	    { LARGEST, ABOUT, 3, HYPERX, 32, 512 * MIB } }, false,
	  "parallel links to a switch are shared here by all messages, which helps recursive "
	  "doubling" },
	{ 16, "Median and maximum gain increase with the size of square tori",
	  { { MEDIAN, GROWS, 0, SQUARE, 32, 512 * MIB },
	    { LARGEST, GROWS, 0, SQUARE, 32, 512 * MIB } }, false, "see figure 8" },
	{ 16, "Median and maximum gain increase from 64x16 to 256x4",
	  { { MEDIAN, GROWS, 0, RECTANGULAR, 32, 512 * MIB },
	    { LARGEST, GROWS, 0, RECTANGULAR, 32, 512 * MIB } }, false,
	  "on 256x4 both pay for its long dimension, so recursive doubling stays the best known "
	  "for longer" },
	{ 16, "256x4: around 60 % worse than ring at 512 MiB",
	  { { OVER_RING, BELOW, 1, N256X4, 512 * MIB, 512 * MIB },
	    { OVER_RING, ABOUT, 0.4, N256X4, 512 * MIB, 512 * MIB } }, false,
	  "the ring's 2046 steps count at this size too" },
	{ 16, "The median gain is between 20 % and 50 %",
	  { { MEDIAN, ABOVE, 1.2, ALL, 32, 512 * MIB },
	    { MEDIAN, BELOW, 1.5, ALL, 32, 512 * MIB } },
	  false, "less through switches, as on HyperX; more on 64x16 and 128x8" },
};

#define SENTENCES ((int)(sizeof(sentences) / sizeof(sentences[0])))

static bool once_a_network(enum quantity q)
{
	return q >= LARGEST;
}

static double at_size(enum quantity q, int n, int size)
{
	double swing = ns_of(n, SWING, size), bucket = ns_of(n, BY_BUCKET, size);

	switch (q) {
	case OVER_DOUBLING:
		return ns_of(n, DOUBLING, size) / swing;
	case OVER_DOUBLING_L:
		return times[n][DOUBLING_L][size] / swing;
	case OVER_MIRRORED:
		return ns_of(n, MIRRORED, size) / swing;
	case OVER_RING:
		return ns_of(n, HAMILTON, size) / swing;
	case OVER_BUCKET:
		return bucket / swing;
	case RING_LEADS:
		return fmin(bucket, swing) / ns_of(n, HAMILTON, size);
	case SHARE:
		return goodput_gbps(n, SWING, size) / peak_gbps(n);
	case BUCKET_SHARE:
		return goodput_gbps(n, BY_BUCKET, size) / peak_gbps(n);
	case SWING_US:
		return swing / 1e3;
	case DOUBLING_US:
		return ns_of(n, DOUBLING, size) / 1e3;
	case BUCKET_US:
		return bucket / 1e3;
	default:
		return speed_up(n, SWING, size);
	}
}

/* A median is of the paper's sizes up to 512 MiB. */
static double of_network(enum quantity q, int n, int64_t from, int64_t to)
{
	double most = 0, at = 0;

	if (q == MEDIAN) {
		return 1 + spread_of(n, SWING).quartile[2] / 100;
	}
	for (int i = 0; i < SIZES; i += 2) {
		double v = speed_up(n, SWING, i);

		if (swing_size(i) >= from && swing_size(i) <= to && v > most) {
			most = v;
			at = (double)swing_size(i) / KIB;
		}
	}
	return q == LARGEST ? most : at;
}

static double quantity_of(const struct check *c, int n, int size)
{
	return once_a_network(c->quantity) ? of_network(c->quantity, n, c->from, c->to)
					   : at_size(c->quantity, n, size);
}

static bool holds(const struct check *c, double v, double before)
{
	switch (c->relation) {
	case ABOUT:
		return fabs(v / c->value - 1) <= NEAR;
	case ABOVE:
		return v > c->value;
	case BELOW:
		return v < c->value;
	case GROWS:
		return v > before;
	default:
		return v < before;
	}
}

/* How a sentence fared. */
struct verdict {
	int held, of;		/* points: sizes of networks */
	int is;			/* REPRODUCED, ... */
	char found[400];	/* what was computed */
};

static void add_found(struct verdict *v, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void add_found(struct verdict *v, const char *format, ...)
{
	size_t n = strlen(v->found);
	va_list ap;

	va_start(ap, format);
	vsnprintf(v->found + n, sizeof(v->found) - n, format, ap);
	va_end(ap);
}

/* One size of all networks of a check. */
static void judge_size(const struct check *c, int size, struct verdict *v, double range[2])
{
	bool compares = c->relation == GROWS || c->relation == FALLS, first = true;
	double before = 0;

	for (int n = 0; n < NETWORKS; n++) {
		if (c->networks & 1 << n) {
			double value = quantity_of(c, n, size);

			if (!compares || !first) {
				v->of++;
				v->held += holds(c, value, before);
			}
			if (once_a_network(c->quantity) && c->networks != ALL) {
				add_found(v, value < 1000 ? "%s%.3g" : "%s%.0f", first ? " " : ", ",
					  value);
			}
			range[0] = fmin(range[0], value);
			range[1] = fmax(range[1], value);
			before = value;
			first = false;
		}
	}
}

static void judge_check(const struct check *c, struct verdict *v)
{
	double range[2] = { INFINITY, 0 };
	int held = v->held, of = v->of;

	add_found(v, "%s%s", v->of ? "; " : "", quantity_names[c->quantity]);
	for (int i = 0; i < SIZES; i += 2) {
		if (swing_size(i) >= c->from && swing_size(i) <= c->to) {
			judge_size(c, i, v, range);
			if (once_a_network(c->quantity)) {
				break;
			}
		}
	}
	if (!once_a_network(c->quantity) || c->networks == ALL) {
		add_found(v, range[1] > range[0] ? " %.3g to %.3g" : " %.3g", range[0], range[1]);
	}
	if (v->of - of > 1 && v->held - held < v->of - of) {
		add_found(v, " (%d of %d hold)", v->held - held, v->of - of);
	}
}

enum { REPRODUCED, PARTLY, REFUTED };

static const char *const verdict_names[] = { "reproduced", "partly", "refuted by a flow model" };

static struct verdict judge(const struct sentence *s)
{
	struct verdict v = { 0 };

	for (int i = 0; i < CHECKS && s->check[i].networks; i++) {
		judge_check(&s->check[i], &v);
	}
	v.is = v.held == v.of ? REPRODUCED : 2 * v.held >= v.of ? PARTLY : REFUTED;
	return v;
}

/* Other costs of a step, for what the fitted one decides. */
static const int64_t other_steps_ns[] = { 400, 700 };

#define OTHERS ((int)(sizeof(other_steps_ns) / sizeof(other_steps_ns[0])))

static void show_sentence(FILE *table, const struct sentence *s, const struct verdict *v,
			  const int other[OTHERS])
{
	if (table) {
		fprintf(table, "%2d  %s\n    %s%s: %s%s%s\n", s->figure, s->text,
			verdict_names[v->is], s->fitted ? " (fitted)" : "", v->found,
			v->is != REPRODUCED && *s->why ? ": " : "",
			v->is != REPRODUCED ? s->why : "");
	}
	for (int i = 0; i < OTHERS && table; i++) {
		if (other[i] != v->is) {
			fprintf(table, "    at %lld ns a step: %s\n", (long long)other_steps_ns[i],
				verdict_names[other[i]]);
		}
	}
	if (json) {
		fprintf(json, "{\"bench\":\"swing\",\"table\":\"sentences\",\"figure\":%d,"
			"\"sentence\":\"%s\",\"verdict\":\"%s\",\"verdict_400\":\"%s\","
			"\"verdict_700\":\"%s\",\"fitted\":%s,\"held\":%d,\"of\":%d,"
			"\"found\":\"%s\"}\n", s->figure, s->text, verdict_names[v->is],
			verdict_names[other[0]], verdict_names[other[1]],
			s->fitted ? "true" : "false", v->held, v->of, v->found);
	}
}

/* Measures again, at the other costs. */
static int judge_all(FILE *table)
{
	static struct verdict verdict[SENTENCES];
	static int other[SENTENCES][OTHERS];
	int bad = 0;

	for (int i = 0; i < SENTENCES; i++) {
		verdict[i] = judge(&sentences[i]);
	}
	for (int k = 0; k < OTHERS && !bad; k++) {
		bad = measure_all(other_steps_ns[k], AUTO);
		for (int i = 0; i < SENTENCES; i++) {
			other[i][k] = judge(&sentences[i]).is;
		}
	}
	if (table) {
		fprintf(table,
			"\nThe paper's sentences by figure, at %d ns a step and %d ns a hop\n",
			STEP_NS, HOP_NS);
	}
	for (int i = 0; i < SENTENCES && !bad; i++) {
		show_sentence(table, &sentences[i], &verdict[i], other[i]);
	}
	return bad;
}

static int run(FILE *table, FILE *to)
{
	int bad = measure_all(STEP_NS, SWING_ALGORITHMS);

	json = to;
	if (bad) {
		return 1;
	}
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		bad |= draw_figure(&figures[i]);
	}
	if (table) {
		fprintf(table,
			"Figure 16: gain over the best known, %%\n%-14s %8s %6s %6s %8s %6s %6s\n",
			"", "Swing", "median", "most", "auto", "median", "most");
	}
	return bad | draw_summary(table) | judge_all(table);
}

int main(int argc, char **argv)
{
	json_path = argc > 2 ? argv[2] : NULL;
	return bench_main(argc, argv, "bench_swing", run);
}
