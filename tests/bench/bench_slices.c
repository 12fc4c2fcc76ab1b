/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 64 cubes and traces of the kind of shuoshuc/RFold: slices that come at random, of sizes as of
 * TPUs, whose times have a long tail. Utilisation and waiting by the order of the queue (strictly
 * first come first, the first that fits, weftd's backfilling), and what circuits are made where
 * cubes are taken first fit, or where light is (place_job).
 *
 * bench_slices                     a table on stdout
 * bench_slices --json FILE         the same, and JSON lines appended to FILE
 * bench_slices --trace LOAD SEED   one trace, in RFold's form
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/backfill.h"
#include "controller/plan/plan.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/number/rng.h"

#define CUBES 64
#define JOBS 400
#define NS INT64_C(1000000000)

static FILE *json_out;

static const struct {
	int size[3], share;	/* cubes along each axis; in 100 */
} kinds[] = {
	{ { 1, 1, 1 }, 40 }, { { 1, 1, 2 }, 15 }, { { 1, 2, 2 }, 15 }, { { 2, 2, 2 }, 12 },
	{ { 2, 2, 4 }, 10 }, { { 2, 4, 4 }, 5 }, { { 3, 4, 4 }, 1 }, { { 4, 4, 4 }, 2 },
};

enum order { STRICT, FIRST_THAT_FITS, BACKFILL };

struct trace_job {
	int64_t arrives_ns, takes_ns, starts_ns, ends_ns;
	const int *size;
	int n, cubes[CUBES];
	bool runs, is_over;
};

struct machine {
	struct model_fabric *f;
	struct trace_job jobs[JOBS];
	bool busy[CUBES], by_light;
	int next[3][CUBES], prev[3][CUBES];	/* light between cubes, -1: none */
	int waiting[JOBS], n_waiting;		/* in order */
	int64_t made, unchanged, slowest_ns;
	double used;				/* cubes x s */
};

/* Uniform in (0, 1). */
static double any(struct rng *r)
{
	return ((double)(rng_u64(r) >> 11) + 0.5) / 9007199254740992.0;
}

static void make_trace(struct trace_job *jobs, double load, uint64_t seed)
{
	const double log_mean = 7.5, spread = 1.6;
	double mean = exp(log_mean + spread * spread / 2), cubes = 0;
	struct rng r;
	int64_t at = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		cubes += kinds[i].size[0] * kinds[i].size[1] * kinds[i].size[2] *
			 kinds[i].share / 100.0;
	}
	rng_seed(&r, seed);
	for (int i = 0; i < JOBS; i++) {
		int pick = (int)rng_below(&r, 100), k = 0;
		double normal = sqrt(-2 * log(any(&r))) * cos(2 * M_PI * any(&r));

		while (pick >= kinds[k].share) {
			pick -= kinds[k++].share;
		}
		at += (int64_t)(-log(any(&r)) * cubes * mean / (CUBES * load)) * NS;
		jobs[i] = (struct trace_job){
			.arrives_ns = at, .size = kinds[k].size,
			.takes_ns = (1 + (int64_t)exp(log_mean + spread * normal)) * NS,
			.n = kinds[k].size[0] * kinds[k].size[1] * kinds[k].size[2],
		};
	}
}

static struct model_fabric *make_fabric(void)
{
	struct buf b = { 0 };
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;

	buf_printf(&b, "weft: 1\nfabric: bench\ncubes:\n  - { name: 'c[00-%d]', rate: 400Gbps, "
		   "switches: 'x[00-15],y[00-15],z[00-15]' }\nswitches:\n  - { name: "
		   "'x[00-15],y[00-15],z[00-15]', size: %dx%d, driver: sim }\n", CUBES - 1,
		   2 * CUBES, 2 * CUBES);
	if (model_parse("bench", buf_cstr(&b), b.len, &f, &errs)) {
		fprintf(stderr, "%s\n", errs.v[0].msg);
		exit(1);
	}
	buf_fini(&b);
	return f;
}

/* The light as switches have it, those of an axis all the same. */
static void find_light(const struct machine *m, struct optics_xc xcs[3][2 * CUBES],
		       struct plan_light *light)
{
	int n[3] = { 0 };

	for (int axis = 0; axis < 3; axis++) {
		for (int in = 0; in < 2 * CUBES; in++) {
			int other = in < CUBES ? m->next[axis][in] : m->prev[axis][in - CUBES];

			if (other >= 0) {
				xcs[axis][n[axis]++] = (struct optics_xc){
					in, other + (in < CUBES ? CUBES : 0) };
			}
		}
	}
	for (int d = 0; d < m->f->n_devices; d++) {
		int axis = m->f->devices[d].name[0] - 'x';

		light[d] = (struct plan_light){ .known = true, .n_xcs = n[axis],
						.xcs = xcs[axis] };
	}
}

/* Cubes for a job, of those that are not busy. */
static void choose(struct machine *m, const struct trace_job *j, const bool *busy, int *out)
{
	static struct optics_xc xcs[3][2 * CUBES];
	static struct plan_light light[48];
	const struct plan_base base = { .observed = light, .intent = light };
	struct place_request w = { .ring = -1, .base = &base };
	int64_t began = clk_now_ns(), took;
	int *hosts, n = 0;

	for (int c = 0; c < CUBES && !m->by_light; c++) {
		if (!busy[c] && n < j->n) {
			out[n++] = c;
		}
	}
	if (!m->by_light) {
		return;
	}
	for (int i = 0; i < 3; i++) {
		w.shape[i] = 4 * j->size[i];
	}
	find_light(m, xcs, light);
	began = clk_now_ns();
	if (place_job(m->f, &w, NULL, busy, &hosts, &n, NULL)) {
		exit(1);
	}
	took = clk_now_ns() - began;
	m->slowest_ns = took > m->slowest_ns ? took : m->slowest_ns;
	memcpy(out, hosts, (size_t)n * sizeof(*out));
	free(hosts);
}

/* Joins a cube's plus face to another's minus face; what was there goes. */
static int join(struct machine *m, int axis, int u, int v)
{
	if (m->next[axis][u] == v) {
		return 0;
	}
	if (m->next[axis][u] >= 0) {
		m->prev[axis][m->next[axis][u]] = -1;
	}
	if (m->prev[axis][v] >= 0) {
		m->next[axis][m->prev[axis][v]] = -1;
	}
	m->next[axis][u] = v;
	m->prev[axis][v] = u;
	return 16;
}

static void start(struct machine *m, struct trace_job *j, int64_t now)
{
	int made = 0;

	choose(m, j, m->busy, j->cubes);
	for (int i = 0; i < j->n; i++) {
		m->busy[j->cubes[i]] = true;
		for (int axis = 0; axis < 3; axis++) {
			int at[3] = { i / j->size[2] / j->size[1], i / j->size[2] % j->size[1],
				      i % j->size[2] };

			at[axis] = (at[axis] + 1) % j->size[axis];
			made += join(m, axis, j->cubes[i],
				     j->cubes[(at[0] * j->size[1] + at[1]) * j->size[2] + at[2]]);
		}
	}
	m->made += made;
	m->unchanged += made == 0;
	j->runs = true;
	j->starts_ns = now;
	j->ends_ns = now + j->takes_ns;
}

static int count_free(const bool *busy)
{
	int n = 0;

	for (int c = 0; c < CUBES; c++) {
		n += !busy[c];
	}
	return n;
}

static bool fits(void *arg, int job, const bool *is_free, bool *takes)
{
	struct machine *m = arg;
	const struct trace_job *j = &m->jobs[m->waiting[job]];
	bool busy[CUBES];
	int out[CUBES];

	for (int c = 0; c < CUBES; c++) {
		busy[c] = !is_free[c];
	}
	if (count_free(busy) < j->n) {
		return false;
	}
	choose(m, j, busy, out);
	for (int i = 0; i < j->n; i++) {
		takes[out[i]] = true;
	}
	return true;
}

/* Which of those that wait start now, by reservations; durations are known. */
static void backfill(struct machine *m, int64_t now, bool *starts)
{
	int64_t held[CUBES] = { 0 };
	struct backfill b = { .now_ns = now, .n = m->n_waiting, .n_units = CUBES,
			      .jobs = x_new(JOBS, sizeof(*b.jobs)), .held_until = held,
			      .fits = fits, .arg = m };

	for (int i = 0; i < JOBS; i++) {
		for (int k = 0; m->jobs[i].runs && k < m->jobs[i].n; k++) {
			held[m->jobs[i].cubes[k]] = m->jobs[i].ends_ns;
		}
	}
	for (int i = 0; i < b.n; i++) {
		b.jobs[i].lease_ns = m->jobs[m->waiting[i]].takes_ns;
	}
	backfill_init(&b);
	for (int i = 0; i < b.n; i++) {
		starts[i] = backfill_place(&b, i);
	}
	for (int i = 0; i < b.n; i++) {
		backfill_drop(&b, i);
	}
	backfill_fini(&b);
	free(b.jobs);
}

static void advance(struct machine *m, enum order order, int64_t now)
{
	bool starts[JOBS] = { false }, blocked = false;
	int n = 0;

	if (order == BACKFILL) {
		backfill(m, now, starts);
	}
	for (int i = 0; i < m->n_waiting; i++) {
		struct trace_job *j = &m->jobs[m->waiting[i]];

		if (order == BACKFILL ? starts[i] : !blocked && count_free(m->busy) >= j->n) {
			start(m, j, now);
		} else {
			blocked |= order == STRICT;
			m->waiting[n++] = m->waiting[i];
		}
	}
	m->n_waiting = n;
}

/* Event after event: ends, then arrivals. */
static void run(struct machine *m, enum order order)
{
	int64_t now = 0;

	for (int next = 0, over = 0; over < JOBS;) {
		int64_t then = next < JOBS ? m->jobs[next].arrives_ns : INT64_MAX;
		int busy = CUBES - count_free(m->busy);

		for (int i = 0; i < JOBS; i++) {
			then = m->jobs[i].runs && m->jobs[i].ends_ns < then ? m->jobs[i].ends_ns
									    : then;
		}
		m->used += next < JOBS ? (double)busy * (double)(then - now) / NS : 0;
		now = then;
		for (int i = 0; i < JOBS; i++) {
			struct trace_job *j = &m->jobs[i];

			if (j->runs && j->ends_ns == now) {
				j->runs = false;
				over++;
				for (int k = 0; k < j->n; k++) {
					m->busy[j->cubes[k]] = false;
				}
			}
		}
		while (next < JOBS && m->jobs[next].arrives_ns == now) {
			m->waiting[m->n_waiting++] = next++;
		}
		advance(m, order, now);
	}
}

static void row(struct model_fabric *f, double load, uint64_t seed, enum order order, bool by_light)
{
	static const char *const names[] = { "strict", "that fits", "backfill" };
	struct machine *m = x_new(1, sizeof(*m));
	double sum = 0, most = 0, large = 0, last;
	int n_large = 0;

	m->f = f;
	m->by_light = by_light;
	memset(m->next, 0xff, sizeof(m->next));
	memset(m->prev, 0xff, sizeof(m->prev));
	make_trace(m->jobs, load, seed);
	run(m, order);
	for (int i = 0; i < JOBS; i++) {
		double wait = (double)(m->jobs[i].starts_ns - m->jobs[i].arrives_ns) / NS;

		sum += wait;
		most = wait > most ? wait : most;
		large += m->jobs[i].n >= 48 ? wait : 0;
		n_large += m->jobs[i].n >= 48;
	}
	last = (double)m->jobs[JOBS - 1].arrives_ns / NS;
	printf("%.1f  %4llu  %-9s  %-9s  %5.1f %%  %8.0f  %8.0f  %8.0f  %6.1f  %5.1f %%  "
	       "%7.2f ms\n",
	       load, (unsigned long long)seed, names[order], by_light ? "light" : "first fit",
	       100 * m->used / (CUBES * last), sum / JOBS, most, n_large ? large / n_large : 0,
	       (double)m->made / JOBS, 100.0 * (double)m->unchanged / JOBS,
	       (double)m->slowest_ns / 1e6);
	if (json_out) {
		fprintf(json_out, "{\"bench\": \"slices\", \"load\": %.1f, \"seed\": %llu, "
			"\"queue\": \"%s\", \"by_light\": %s, "
			"\"mean_wait_s\": %.0f, \"made\": %.1f, "
			"\"slowest_ms\": %.2f}\n", load, (unsigned long long)seed, names[order],
			by_light ? "true" : "false", sum / JOBS, (double)m->made / JOBS,
			(double)m->slowest_ns / 1e6);
	}
	free(m);
}

static int print_trace(double load, uint64_t seed)
{
	static struct trace_job jobs[JOBS];

	make_trace(jobs, load, seed);
	printf("#job id,arrival time (sec),topology,shape,size,duration (sec)\n");
	for (int i = 0; i < JOBS; i++) {
		printf("%d,%lld,T3D_NT,%dx%dx%d,%d,%lld\n", i,
		       (long long)(jobs[i].arrives_ns / NS), 4 * jobs[i].size[0],
		       4 * jobs[i].size[1], 4 * jobs[i].size[2], 64 * jobs[i].n,
		       (long long)(jobs[i].takes_ns / NS));
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct model_fabric *f;

	if (argc == 4 && strcmp(argv[1], "--trace") == 0) {
		return print_trace(atof(argv[2]), strtoull(argv[3], NULL, 10));
	}
	if (argc == 3 && strcmp(argv[1], "--json") == 0) {
		json_out = fopen(argv[2], "a");
	}
	f = make_fabric();
	printf("load seed  queue      cubes      in use  mean wait   longest  >= 48      made a  "
	       "none    slowest\n%*ss         s         s         job     "
	       "made    choice\n", 47, "");
	for (int trace = 0; trace < 6; trace++) {
		double load = trace < 3 ? 0.8 : 1.1;
		uint64_t seed = 1 + (uint64_t)trace % 3;

		row(f, load, seed, STRICT, false);
		row(f, load, seed, FIRST_THAT_FITS, false);
		row(f, load, seed, FIRST_THAT_FITS, true);
		row(f, load, seed, BACKFILL, true);
	}
	model_free(f);
	if (json_out) {
		fclose(json_out);
	}
	return 0;
}
