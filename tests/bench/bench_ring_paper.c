/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paper's evaluation of OpTree again: Table I, the depths of figure 4,
 * the times of figures 5 and 6 and the average reductions that the text
 * states, from the closed forms and from the schedules that are really built;
 * then the composed plans against both.
 *
 * bench_ring_paper                 tables on stdout
 * bench_ring_paper --json FILE     and JSON lines appended to FILE, and the
 *                                  table and figures drawn beside it as
 *                                  ring_table1.svg, ring_figure4.svg, ...
 */
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "optree/baselines/baselines.h"
#include "tests/bench/draw.h"

#define CHANNEL_BPS 40000000000
#define ALPHA_NS 25000
#define MEGA 1000000

static FILE *json;
static const char *json_path;
static int failed;

static void draw(const char *name, const struct svg_chart *c, int n)
{
	failed |= draw_charts(json_path, name, c, n);
}

static struct optree_params params(int n, int w, int64_t bytes)
{
	return (struct optree_params){
		.n = n, .channels = w, .fibres = 1, .shard_bytes = bytes,
		.channel_bps = CHANNEL_BPS, .alpha_ns = ALPHA_NS,
	};
}

static int64_t optree_steps(int n, int w)
{
	return optree_closed_form(n, w, optree_best_depth(n));
}

static double step_ms(int64_t bytes)
{
	return (double)bytes * 8e3 / CHANNEL_BPS + ALPHA_NS / 1e6;
}

/* Steps of the schedule that is built, -1 when there is none. */
static int built_steps(int n, int w, enum optree_algorithm how)
{
	struct optree_params p = params(n, w, 4 * MEGA);
	struct optree_plan plan;
	struct err err;
	int steps;

	if (optree_make(&p, how, &plan, &err)) {
		fprintf(stderr, "n=%d w=%d: %s\n", n, w, err.msg);
		return -1;
	}
	steps = plan.steps;
	optree_plan_fini(&plan);
	return steps;
}

static void draw_table_one(const double paper[5], const double closed[5],
			   const double built[5])
{
	static const char *const names[] = { "Ring", "NE", "Wrht",
					     "One-stage", "OpTree" };
	const struct svg_series series[] = {
		{ "paper", paper }, { "closed form", closed },
		{ "built, with light", built },
	};
	const struct svg_chart chart = {
		.title = "Table I: steps of an all-gather, N = 1024, w = 64",
		.note = "One-stage: the paper prints 128, its own Lemma 1 "
			"gives 2048. Wrht: 4w+3 needs one light for many "
			"receivers.",
		.x_label = "algorithm", .y_label = "steps", .group = names,
		.n_groups = 5, .series = series, .n_series = 3, .log = true,
		.values = true,
	};

	draw("ring_table1", &chart, 1);
}

static void table_one(void)
{
	static const struct {
		const char *name;
		int closed;	/* enum optree_baseline, -1: OpTree */
		enum optree_algorithm how;
	} rows[] = {
		{ "Ring", OPTREE_RING, OPTREE_BY_RING },
		{ "NE", OPTREE_NE, OPTREE_BY_NE },
		{ "Wrht", OPTREE_WRHT, OPTREE_BY_WRHT },
		{ "One-stage", OPTREE_ONE_STAGE, OPTREE_BY_ONE_STAGE },
		{ "OpTree", -1, OPTREE_TREE },
	};
	static const double paper[] = { 1023, 512, 259, 128, 70 };
	double closed[5], built[5];

	printf("Table I: steps, N=1024, w=64\n%-10s %6s %7s %6s\n",
	       "algorithm", "paper", "closed", "built");
	for (int k = 0; k < 5; k++) {
		closed[k] = (double)(rows[k].closed < 0
			? optree_steps(1024, 64)
			: optree_baseline_steps(
				(enum optree_baseline)rows[k].closed, 1024,
				64));
		built[k] = built_steps(1024, 64, rows[k].how);
		printf("%-10s %6.0f %7.0f %6.0f\n", rows[k].name, paper[k],
		       closed[k], built[k]);
		if (json) {
			fprintf(json, "{\"bench\":\"ring_table1\","
				"\"algorithm\":\"%s\",\"paper\":%.0f,"
				"\"closed_form_steps\":%.0f,"
				"\"steps\":%.0f}\n", rows[k].name, paper[k],
				closed[k], built[k]);
		}
	}
	printf("(One-stage: the paper's own Lemma 1 gives 2048. Wrht: 4w+3 "
	       "steps need one light\n for many receivers; with a lightpath "
	       "for each it takes what is built here.)\n");
	draw_table_one(paper, closed, built);
}

static void draw_figure_four(const double steps[4][10], double reduction)
{
	static const char *const depth[] = { "1", "2", "3", "4", "5", "6",
					     "7", "8", "9", "10" };
	const struct svg_series series[] = {
		{ "512 nodes", steps[0] }, { "1024 nodes", steps[1] },
		{ "2048 nodes", steps[2] }, { "4096 nodes", steps[3] },
	};
	char note[128];
	const struct svg_chart chart = {
		.title = "Figure 4: steps of OpTree by depth, w = 64", .note = note,
		.x_label = "depth k", .y_label = "steps (Theorem 1)",
		.group = depth, .n_groups = 10, .series = series,
		.n_series = 4, .lines = true, .log = true, .values = true,
	};

	snprintf(note, sizeof(note), "Best depths 6, 6, 7, 8 (Theorem 2); "
		 "average reduction against k = 1: %.2f %%, the paper prints "
		 "96.85 %%", reduction);
	draw("ring_figure4", &chart, 1);
}

static void figure_four(void)
{
	static const int n[] = { 512, 1024, 2048, 4096 };
	double steps[4][10], sum = 0;

	printf("\nFigure 4: steps by depth (closed form), w=64\n    n  best");
	for (int k = 1; k <= 10; k++) {
		printf(" %6d", k);
	}
	for (int i = 0; i < 4; i++) {
		int best = optree_best_depth(n[i]);

		printf("\n%5d %5d", n[i], best);
		for (int k = 1; k <= 10; k++) {
			long long s = optree_closed_form(n[i], 64, k);

			steps[i][k - 1] = (double)s;
			printf(" %6lld", s);
			if (json) {
				fprintf(json, "{\"bench\":\"ring_figure4\","
					"\"nodes\":%d,\"depth\":%d,"
					"\"closed_form_steps\":%lld}\n",
					n[i], k, s);
			}
		}
		sum += 1 - steps[i][best - 1] / steps[i][0];
	}
	printf("\naverage reduction against one-stage: %.2f %% (paper: "
	       "96.85 %%)\n", 25 * sum);
	draw_figure_four((const double (*)[10])steps, 25 * sum);
}

/* Times in ms of one ring, by size: 4, 8, ..., 128 MB. */
#define SIZES 6

enum { BY_RING, BY_NE, BY_WRHT, BY_OPTREE, BY_COMPOSED, BOUND, KINDS };

struct panel {
	int n, w;
	double ms[KINDS][SIZES];
};

/* Average reductions in per cent against Wrht, Ring and NE. */
struct reductions {
	double optree[3], composed[3];
};

static void row_json(int figure, const struct panel *p, long long mb, int k)
{
	if (json) {
		fprintf(json, "{\"bench\":\"ring_figure%d\",\"nodes\":%d,"
			"\"channels\":%d,\"mb\":%lld,\"ring_ms\":%.3f,"
			"\"ne_ms\":%.3f,\"wrht_ms\":%.3f,"
			"\"optree_ms\":%.3f,\"composed_ms\":%.3f,"
			"\"bound_ms\":%.3f}\n", figure, p->n, p->w, mb,
			p->ms[BY_RING][k], p->ms[BY_NE][k],
			p->ms[BY_WRHT][k], p->ms[BY_OPTREE][k],
			p->ms[BY_COMPOSED][k], p->ms[BOUND][k]);
	}
}

static void one_ring(int figure, struct panel *out)
{
	static const enum optree_baseline other[] = {
		[BY_RING] = OPTREE_RING, [BY_NE] = OPTREE_NE,
		[BY_WRHT] = OPTREE_WRHT };

	for (int k = 0; k < SIZES; k++) {
		int64_t mb = INT64_C(4) << k;
		struct optree_params p = params(out->n, out->w, mb * MEGA);
		struct optree_plan plan;
		struct err err;
		double unit = step_ms(mb * MEGA);

		for (int a = BY_RING; a <= BY_WRHT; a++) {
			out->ms[a][k] = unit * (double)optree_baseline_steps(
						       other[a], p.n, out->w);
		}
		out->ms[BY_OPTREE][k] = unit *
					(double)optree_steps(p.n, out->w);
		if (optree_make(&p, OPTREE_COMPOSED, &plan, &err)) {
			fprintf(stderr, "%s\n", err.msg);
			failed = 1;
			continue;
		}
		out->ms[BY_COMPOSED][k] = (double)plan.time_ns / 1e6;
		out->ms[BOUND][k] = (double)plan.bound_ns / 1e6;
		optree_plan_fini(&plan);
		printf("%5d %4d %6lld", p.n, out->w, (long long)mb);
		for (int a = 0; a < KINDS; a++) {
			printf(" %9.1f", out->ms[a][k]);
		}
		printf("\n");
		row_json(figure, out, mb, k);
	}
}

static struct reductions average(const struct panel *panels, int n)
{
	static const int other[] = { BY_WRHT, BY_RING, BY_NE };
	struct reductions r = { { 0 }, { 0 } };

	for (int i = 0; i < n * SIZES * 3; i++) {
		const struct panel *p = &panels[i / (SIZES * 3)];
		int k = i / 3 % SIZES, a = i % 3;
		double share = 100.0 / (n * SIZES), t = p->ms[other[a]][k];

		r.optree[a] += share * (1 - p->ms[BY_OPTREE][k] / t);
		r.composed[a] += share * (1 - p->ms[BY_COMPOSED][k] / t);
	}
	return r;
}

static void draw_panels(const char *name, const char *figure,
			const struct panel *panels)
{
	static const char *const sizes[] = { "4 MB", "8 MB", "16 MB", "32 MB",
					     "64 MB", "128 MB" };
	static const char *const names[] = { "Ring", "NE", "Wrht (4w+3)",
					     "OpTree", "composed", "bound" };
	struct svg_series series[2][KINDS];
	struct svg_chart charts[2];
	char title[2][96];

	for (int i = 0; i < 2; i++) {
		for (int a = 0; a < KINDS; a++) {
			series[i][a] = (struct svg_series){
				names[a], panels[i].ms[a] };
		}
		snprintf(title[i], sizeof(title[i]), "%s: time of an "
			 "all-gather, N = %d, w = %d", figure, panels[i].n,
			 panels[i].w);
		charts[i] = (struct svg_chart){
			.title = title[i],
			.note = "Ring, NE, Wrht and OpTree by the paper's "
				"formulas; composed as built and verified; "
				"bound for any all-gather.",
			.x_label = "item of one node",
			.y_label = "milliseconds", .group = sizes,
			.n_groups = SIZES, .series = series[i],
			.n_series = KINDS, .log = true, .values = true,
		};
	}
	draw(name, charts, 2);
}

static const double stated[3][3] = {	/* the paper's */
	{ 56.36, 92.76, 85.54 }, { 88.06, 95.84, 91.69 },
	{ 72.21, 94.30, 88.58 },
};

static void draw_reductions(const struct reductions r[3])
{
	static const char *const groups[] = {
		"5: Wrht", "5: Ring", "5: NE", "6: Wrht", "6: Ring", "6: NE",
		"all: Wrht", "all: Ring", "all: NE" };
	double ours[9], built[9];
	const struct svg_series series[] = {
		{ "paper's text", stated[0] }, { "its formulas", ours },
		{ "composed", built },
	};
	const struct svg_chart chart = {
		.title = "Average reductions of time by OpTree and by "
			 "composed plans, per cent",
		.note = "Over 4 to 128 MB. Figure 5: 1024 and 2048 nodes, "
			"w = 64. Figure 6: 1024 nodes, w = 96 and 128.",
		.x_label = "figure: against", .y_label = "per cent",
		.group = groups, .n_groups = 9, .series = series,
		.n_series = 3, .values = true,
	};

	for (int k = 0; k < 9; k++) {
		ours[k] = r[k / 3].optree[k % 3];
		built[k] = r[k / 3].composed[k % 3];
	}
	draw("ring_reductions", &chart, 1);
}

static void print_average(const char *what, const struct reductions *r,
			  const double paper[3])
{
	printf("%s against Wrht, Ring, NE: %.2f %.2f %.2f %% (paper: %.2f "
	       "%.2f %.2f %%)\n", what, r->optree[0], r->optree[1],
	       r->optree[2], paper[0], paper[1], paper[2]);
	if (json) {
		fprintf(json, "{\"bench\":\"ring_reductions\","
			"\"what\":\"%s\",\"wrht\":%.2f,\"ring\":%.2f,"
			"\"ne\":%.2f,\"paper_wrht\":%.2f,"
			"\"paper_ring\":%.2f,\"paper_ne\":%.2f}\n", what,
			r->optree[0], r->optree[1], r->optree[2], paper[0],
			paper[1], paper[2]);
	}
}

static void figures_five_and_six(void)
{
	struct panel panels[] = { { 1024, 64, { { 0 } } },
				  { 2048, 64, { { 0 } } },
				  { 1024, 96, { { 0 } } },
				  { 1024, 128, { { 0 } } } };
	struct reductions r[3];
	static const char *const head = "    n    w     MB   ring_ms     ne_ms"
		"   wrht_ms optree_ms  composed  bound_ms";

	printf("\nFigure 5: time by size and nodes\n%s\n", head);
	one_ring(5, &panels[0]);
	one_ring(5, &panels[1]);
	r[0] = average(panels, 2);
	print_average("average reduction", &r[0], stated[0]);
	printf("\nFigure 6: time by size and channels\n%s\n", head);
	one_ring(6, &panels[2]);
	one_ring(6, &panels[3]);
	r[1] = average(panels + 2, 2);
	print_average("average reduction", &r[1], stated[1]);
	r[2] = average(panels, 4);
	print_average("in all", &r[2], stated[2]);
	printf("(A step lasts as long in all four algorithms, so reductions "
	       "do not depend on the size.\n The paper's are up to 2.5 "
	       "points lower than its own formulas, most where steps are "
	       "few.)\n");
	draw_panels("ring_figure5", "Figure 5", panels);
	draw_panels("ring_figure6", "Figure 6", panels + 2);
	draw_reductions(r);
}

static void composed(void)
{
	static const struct {
		int n, w;
		int64_t bytes;
	} rows[] = {
		{ 1024, 64, 64000 }, { 1024, 64, 4 * MEGA },
		{ 1024, 64, 128 * MEGA }, { 2048, 64, 4 * MEGA },
		{ 4096, 64, 128 * MEGA }, { 4096, 128, 4000 },
		{ 1000, 64, 4 * MEGA }, { 1021, 64, 4 * MEGA },
	};

	printf("\nComposed plans\n    n    w      bytes optree_ms  auto_ms "
	       "bound_ms   gain    gap rounds steps plan_s\n");
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct optree_params p = params(rows[k].n, rows[k].w,
						rows[k].bytes);
		struct optree_plan plan;
		struct err err;
		int64_t start = clk_now_ns();

		if (optree_make(&p, OPTREE_AUTO, &plan, &err)) {
			fprintf(stderr, "%s\n", err.msg);
			failed = 1;
			continue;
		}
		printf("%5d %4d %10lld %9.3f %8.3f %8.3f %6.2f %6.3f %6d %5d "
		       "%.3f\n", p.n, p.channels, (long long)p.shard_bytes,
		       (double)plan.optree_time_ns / 1e6,
		       (double)plan.time_ns / 1e6, (double)plan.bound_ns / 1e6,
		       (double)plan.optree_time_ns / (double)plan.time_ns,
		       plan.gap, plan.rounds, plan.steps,
		       (double)(clk_now_ns() - start) / 1e9);
		if (json) {
			fprintf(json, "{\"bench\":\"ring_composed\","
				"\"nodes\":%d,\"channels\":%d,"
				"\"bytes\":%lld,\"time_ns\":%lld,"
				"\"bound_ns\":%lld,\"optree_time_ns\":%lld}\n",
				p.n, p.channels, (long long)p.shard_bytes,
				(long long)plan.time_ns,
				(long long)plan.bound_ns,
				(long long)plan.optree_time_ns);
		}
		optree_plan_fini(&plan);
	}
}

/* Retuning behind others' data, by what of 25 us cannot be hidden. */
#define CONVERSIONS 4

struct overlapped {
	double ms[CONVERSIONS + 1], bound_ms[CONVERSIONS + 1];
};

static const int64_t conversions_ns[CONVERSIONS] = { 0, 500, 2000, 5000 };

static void one_overlap(int n, int w, int64_t bytes, struct overlapped *out)
{
	for (int k = 0; k <= CONVERSIONS; k++) {
		struct optree_params p = params(n, w, bytes);
		struct optree_plan plan;
		struct err err;

		p.overlap = k > 0;
		p.convert_ns = k ? conversions_ns[k - 1] : 0;
		if (optree_make(&p, OPTREE_COMPOSED, &plan, &err)) {
			fprintf(stderr, "%s\n", err.msg);
			failed = 1;
			continue;
		}
		out->ms[k] = (double)plan.time_ns / 1e6;
		out->bound_ms[k] = (double)plan.bound_ns / 1e6;
		printf(k ? " %9.3f %9.3f" : " %9.3f", out->ms[k],
		       out->bound_ms[k]);
		if (json) {
			fprintf(json, "{\"bench\":\"ring_overlap\","
				"\"nodes\":%d,\"channels\":%d,"
				"\"bytes\":%lld,\"overlap\":%s,"
				"\"conversion_ns\":%lld,\"time_ns\":%lld,"
				"\"bound_ns\":%lld,\"retune_hidden_ns\":%lld,"
				"\"rounds\":%d,\"levels\":%d}\n", n, w,
				(long long)bytes, k ? "true" : "false",
				(long long)p.convert_ns,
				(long long)plan.time_ns,
				(long long)plan.bound_ns,
				(long long)plan.retune_hidden_ns, plan.rounds,
				plan.n_levels);
		}
		optree_plan_fini(&plan);
	}
}

static void overlap(void)
{
	static const int64_t bytes[] = { 4000, 64000, 1000000, 4000000,
					 32000000, 128000000 };
	static const char *const sizes[] = { "4 kB", "64 kB", "1 MB", "4 MB",
					     "32 MB", "128 MB" };
	static const char *const names[] = { "no overlap", "c = 0",
					     "c = 0.5 us", "c = 2 us",
					     "c = 5 us" };
	static const struct { int n, w; } rings[] = { { 1024, 64 },
						      { 4096, 128 } };
	double ms[2][CONVERSIONS + 1][6];
	struct svg_series series[2][CONVERSIONS + 1];
	struct svg_chart charts[2];
	char title[2][96];

	printf("\nOverlap of retuning (a = 25 us; c of it in every step): ms "
	       "and bound\n    n    w  size       none");
	for (int k = 1; k <= CONVERSIONS; k++) {
		printf("%11s     bound", names[k]);
	}
	for (int i = 0; i < 2; i++) {
		for (int j = 0; j < 6; j++) {
			struct overlapped o = { { 0 }, { 0 } };

			printf("\n%5d %4d %6s", rings[i].n, rings[i].w,
			       sizes[j]);
			one_overlap(rings[i].n, rings[i].w, bytes[j], &o);
			for (int k = 0; k <= CONVERSIONS; k++) {
				ms[i][k][j] = o.ms[k];
				series[i][k] = (struct svg_series){
					names[k], ms[i][k] };
			}
		}
		snprintf(title[i], sizeof(title[i]), "Composed all-gather "
			 "with overlap, N = %d, w = %d", rings[i].n,
			 rings[i].w);
		charts[i] = (struct svg_chart){
			.title = title[i],
			.note = "A step costs 25 us, of which c cannot be "
				"hidden behind others' data.",
			.x_label = "item of one node",
			.y_label = "milliseconds", .group = sizes,
			.n_groups = 6, .series = series[i],
			.n_series = CONVERSIONS + 1, .log = true,
			.values = true };
	}
	printf("\n");
	draw("ring_overlap", charts, 2);
}

/* Directions and fibres that differ, and segments: how close to the bound. */
static void parts(void)
{
	static const struct optree_fibre light[] = {
		{ RWA_CW, 0, 0, 64 }, { RWA_CCW, 0, 0, 32 },
		{ RWA_CW, 1, 0, 32 }, { RWA_CCW, 1, 0, 16 } };
	static const struct {
		const char *name;
		int n_light;
		bool line;
	} rows[] = {
		{ "64 one way", 1, false }, { "64/32", 2, false },
		{ "64,32/32,16", 4, false }, { "64 segment", 0, true },
		{ "64,32/32,16 segment", 4, true },
	};

	printf("\nParts of a ring, N=1024\n%-20s %8s %10s %10s %7s\n",
	       "channels", "MB", "time_ms", "bound_ms", "gap");
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t mb = i % 2 ? 128 : 4;
		struct optree_params p = params(1024, 64, mb * MEGA);
		struct optree_plan plan;
		struct err err;

		p.fibres = rows[i / 2].n_light > 2 ? 2 : 1;
		p.light = light;
		p.n_light = rows[i / 2].n_light;
		p.line = rows[i / 2].line;
		if (optree_make(&p, OPTREE_AUTO, &plan, &err)) {
			fprintf(stderr, "%s\n", err.msg);
			failed = 1;
			continue;
		}
		printf("%-20s %8lld %10.3f %10.3f %7.3f\n", rows[i / 2].name,
		       (long long)mb, (double)plan.time_ns / 1e6,
		       (double)plan.bound_ns / 1e6, plan.gap);
		if (json) {
			fprintf(json, "{\"bench\":\"ring_parts\","
				"\"channels\":\"%s\",\"mb\":%lld,"
				"\"time_ns\":%lld,\"bound_ns\":%lld}\n",
				rows[i / 2].name, (long long)mb,
				(long long)plan.time_ns,
				(long long)plan.bound_ns);
		}
		optree_plan_fini(&plan);
	}
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "--json") == 0) {
		json_path = argv[2];
		json = fopen(json_path, "a");
		if (!json) {
			perror(json_path);
			return 1;
		}
	}
	table_one();
	figure_four();
	figures_five_and_six();
	composed();
	overlap();
	parts();
	if (json && fclose(json) != 0) {
		perror("bench_ring_paper");
		return 1;
	}
	return failed;
}
