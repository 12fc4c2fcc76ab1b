/* SPDX-License-Identifier: Apache-2.0 */
/* The page's files, and what its picture tells of a fabric: light counted by
 * following each photon, segment by segment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "controller/webui/occupancy.h"
#include "controller/webui/webui.h"
#include "lib/base/number/rng.h"
#include "tests/ring_settings.h"

static void test_files(void **state)
{
	const struct page_file *f = page_find("/");

	(void)state;
	assert_non_null(f);
	assert_string_equal(f->path, "/index.html");
	assert_string_equal(f->type, "text/html; charset=utf-8");
	assert_ptr_equal(f, page_find("/index.html"));
	assert_string_equal(page_find("/page.js")->type,
			    "text/javascript; charset=utf-8");
	assert_null(page_find("/page"));
	assert_null(page_find(""));
	assert_null(page_find("/../page.js"));
	for (f = page_files; f->path; f++) {
		assert_true(f->len > 0);
		assert_ptr_equal(page_find(f->path), f);
		/* What a policy without exceptions would not run. */
		assert_null(memmem(f->data, f->len, "onclick=", 8));
		assert_null(memmem(f->data, f->len, "innerHTML", 9));
		assert_null(memmem(f->data, f->len, " style=", 7));
		assert_null(memmem(f->data, f->len, "https:", 6));
	}
}

/* ---- occupancy ----------------------------------------------------------- */

#define NODES 9
#define CHANNELS 3
#define STEPS 4

/* A few lightpaths a step that share nothing: what an all-pass ring carries.
 * lit is counted while they are made. */
static void random_program(struct rng *r, const struct ring_geometry *g,
			   struct ring_settings *p, int64_t *lit)
{
	int rows = 2 * g->fibres * g->channels;

	p->steps = STEPS;
	p->v = calloc((size_t)STEPS * (size_t)rows * NODES * 2, sizeof(*p->v));
	for (uint16_t step = 0; step < STEPS; step++) {
		for (int row = 0; row < rows; row++) {
			int line = row / g->channels;
			bool cw = line < g->fibres;
			int from = (int)rng_below(r, NODES);
			int left = NODES;

			while (rng_below(r, 3) && left > 0) {
				int n = 1 + (int)rng_below(r, (uint64_t)left);
				struct ring_setting t = {
					.step = step, .node = (uint16_t)from,
					.channel = (uint16_t)(row % g->channels),
					.dir = cw ? OPTICS_CW : OPTICS_CCW,
					.fibre = (uint8_t)(line % g->fibres),
					.mode = RESONATOR_ADD,
				};

				p->v[p->n++] = t;
				for (int i = 0; i < n; i++) {
					int seg = cw ? from
						     : (from + NODES - 1) % NODES;

					lit[row * NODES + seg]++;
					from = (from + (cw ? 1 : NODES - 1)) %
					       NODES;
				}
				t.node = (uint16_t)from;
				t.mode = RESONATOR_DROP;
				p->v[p->n++] = t;
				left -= n;
			}
		}
	}
}

static void check_program(struct rng *r)
{
	const struct ring_geometry g = { .nodes = NODES, .channels = CHANNELS,
					  .fibres = 2 };
	const struct ring_window whole = whole_ring(&g);
	int64_t lit[2 * 2 * CHANNELS * NODES] = { 0 }, cells = 1 << 20;
	struct ring_settings p = { 0 };
	struct ring_program pack = { 0 };
	struct occupancy o;
	struct err err = { 0 };

	random_program(r, &g, &p, lit);
	assert_int_equal(ring_settings_normalise(&p, &err), 0);
	assert_int_equal(ring_program_pack(&pack, "j", &whole, &g, &p, &err), 0);
	occupancy_init(&o, &g);
	assert_int_equal(o.rows, 2 * 2 * CHANNELS);
	assert_int_equal(o.cols, NODES);
	assert_int_equal(occupancy_of(&o, &pack, &cells, &err), 0);
	assert_int_equal(o.seen, STEPS);
	for (int i = 0; i < o.rows * o.cols; i++) {
		assert_int_equal(o.lit[i], lit[i]);
		assert_int_equal(occupancy_share(&o, i / NODES, i % NODES),
				 lit[i] * 1000 / STEPS);
	}
	occupancy_fini(&o);
	ring_program_fini(&pack);
	ring_settings_fini(&p);
}

static void test_occupancy(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 20261121);
	for (int i = 0; i < 200; i++) {
		check_program(&r);
	}
}

/* A ring of more segments and channels than there are bins: one lightpath all
 * the way round on one channel. */
static void test_bins(void **state)
{
	const struct ring_geometry g = { .nodes = 1000, .channels = 300,
					  .fibres = 1 };
	const struct ring_window whole = whole_ring(&g);
	const struct ring_setting v[] = {
		{ .node = 1, .channel = 299, .mode = RESONATOR_ADD },
		{ .node = 0, .channel = 299, .mode = RESONATOR_DROP },
	};
	struct ring_settings p = { .steps = 1, .n = 2,
				   .v = malloc(sizeof(v)) };
	struct ring_program pack = { 0 };
	int64_t cells = 1 << 20, sum = 0;
	struct occupancy o;
	struct err err = { 0 };

	(void)state;
	memcpy(p.v, v, sizeof(v));
	assert_int_equal(ring_settings_normalise(&p, &err), 0);
	assert_int_equal(ring_program_pack(&pack, "j", &whole, &g, &p, &err), 0);
	ring_settings_fini(&p);
	occupancy_init(&o, &g);
	assert_in_range(o.rows, 1, PAGE_BINS);
	assert_in_range(o.cols, 1, PAGE_BINS);
	assert_true(o.rows * o.row_size >= 2 * 300);
	assert_true(o.cols * o.col_size >= 1000);
	assert_int_equal(occupancy_of(&o, &pack, &cells, &err), 0);
	for (int i = 0; i < o.rows * o.cols; i++) {
		int share = occupancy_share(&o, i / o.cols, i % o.cols);

		sum += o.lit[i];
		assert_int_equal(share > 0, o.lit[i] > 0);
		assert_in_range(share, 0, 1000);
	}
	assert_int_equal(sum, 999);
	cells = 0;
	assert_int_equal(occupancy_of(&o, &pack, &cells, &err), 0);
	assert_int_equal(o.seen, 0);
	occupancy_fini(&o);
	ring_program_fini(&pack);
}

/* ---- the picture --------------------------------------------------------- */

static const char fabric[] =
	"weft: 1\n"
	"fabric: small\n"
	"hosts:\n"
	"  - { name: 'h[0-3]', ports: 'p[0-1]', rate: 100Gbps }\n"
	"  - { name: 'n[0-7]' }\n"
	"switches:\n"
	"  - { name: ocs0, size: 10x10, driver: sim }\n"
	"rings:\n"
	"  - { name: ring0, nodes: 'n[0-7]', channels: 4, channel-rate: 40Gbps,"
	" driver: sim }\n"
	"fibres:\n"
	"  - { from: 'h[0-3].p[0-1]', to: 'ocs0.[1-8]' }\n"
	"jobs:\n"
	"  - { name: reduce, nodes: 'h[0-3]', collective: allreduce, size: 1MiB,"
	" topology: 'UniRing(2,4)', alpha: 10us }\n"
	"  - { name: gather, ring: ring0, nodes: all, collective: allgather,"
	" size: 1MiB }\n";

static json_t *drawn(const struct model_fabric *f, const struct plan *p)
{
	struct err err = { 0 };
	struct buf b = { 0 };
	json_t *j;

	assert_int_equal(page_picture(f, p, &b, &err), 0);
	j = json_loadb(b.data, b.len, 0, NULL);
	assert_non_null(j);
	buf_fini(&b);
	return j;
}

static int64_t at(const json_t *row, size_t i)
{
	return json_integer_value(json_array_get(row, i));
}

static void check_circuits(const json_t *picture, const struct plan *p)
{
	const json_t *rows = json_object_get(picture, "circuits");
	size_t n = 0;

	for (int i = 0; i < p->n_jobs; i++) {
		for (int k = 0; k < p->jobs[i].n_circuits; k++) {
			const struct plan_circuit *c = &p->jobs[i].circuits[k];
			const json_t *row = json_array_get(rows, n++);

			assert_int_equal(at(row, 0), c->device);
			assert_int_equal(at(row, 1), c->xc.in + 1);
			assert_int_equal(at(row, 2), c->xc.out + 1);
			assert_int_equal(at(row, 3), c->tx_port);
			assert_int_equal(at(row, 4), c->rx_port);
			assert_int_equal(at(row, 5), i);
		}
	}
	assert_int_equal(json_array_size(rows), n);
	assert_int_equal(n, 8);
}

static void test_picture(void **state)
{
	struct model_fabric *f = NULL;
	struct err_list errs = { .max = 1 };
	struct err err = { 0 };
	struct plan *p = NULL;
	const json_t *device, *lit;
	json_t *j;

	(void)state;
	assert_int_equal(model_parse("f", fabric, strlen(fabric), &f, &errs),
			 0);
	j = drawn(f, NULL);
	assert_int_equal(json_array_size(json_object_get(j, "hosts")), 12);
	assert_int_equal(json_array_size(json_object_get(j, "ports")), 8);
	assert_null(json_object_get(j, "circuits"));
	json_decref(j);
	assert_int_equal(plan_make(f, NULL, &p, &err), 0);
	j = drawn(f, p);
	check_circuits(j, p);
	device = json_array_get(json_object_get(j, "devices"), 0);
	assert_int_equal(at(json_object_get(device, "in"), 3), 3);
	assert_int_equal(at(json_object_get(device, "in"), 9), -1);
	device = json_array_get(json_object_get(j, "devices"), 1);
	lit = json_object_get(device, "lit");
	assert_true(json_array_size(lit) > 0);
	assert_int_equal(at(json_array_get(lit, 0), 3), 1);
	json_decref(j);
	plan_free(p);
	model_free(f);
	err_list_fini(&errs);
}

/* ---- schedules step by step ------------------------------------------------ */

static json_t *stepped(const struct plan *p)
{
	struct err err = { 0 };
	struct buf b = { 0 };
	json_t *j;

	assert_int_equal(page_steps(p, &b, &err), 0);
	j = json_loadb(b.data, b.len, 0, NULL);
	assert_non_null(j);
	buf_fini(&b);
	return j;
}

static int64_t number(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

/* What each arc carries in the steps of a frame, in chunks, transfer by transfer. */
static int64_t count_loads(const struct coll_sched *s, int first, int end, int64_t *load)
{
	const struct coll_sched *flat;
	struct coll_sched *own;
	const struct coll_xfer *x;
	int64_t n, most = 0;

	assert_int_equal(coll_flat(s, &flat, &own, NULL), 0);
	memset(load, 0, (size_t)topo_m(coll_topo(s)) * sizeof(*load));
	x = coll_xfers(flat, &n);
	for (int64_t i = 0; i < n; i++) {
		if (x[i].step >= first && x[i].step < end) {
			load[x[i].arc] += x[i].last - x[i].first + 1;
			most = load[x[i].arc] > most ? load[x[i].arc] : most;
		}
	}
	coll_free(own);
	return most;
}

/* Every circuit of a frame is told as it is counted, those that carry nothing are not told. */
static void check_frame(const struct plan_job *j, const json_t *frame)
{
	int first = (int)number(frame, "first"), steps = (int)number(frame, "steps");
	int64_t *load = calloc((size_t)topo_m(coll_topo(j->sched)), sizeof(*load));
	int64_t most = count_loads(j->sched, first, first + steps, load);
	const json_t *runs = json_object_get(frame, "lit"), *run;
	double told = json_number_value(json_object_get(frame, "most"));
	int64_t n_told = 0, n_carry = 0;
	size_t i;

	assert_true(most > 0);
	assert_float_equal(told, (double)most / coll_chunks(j->sched), 1e-4 * told);
	json_array_foreach((json_t *)runs, i, run) {
		for (int64_t c = at(run, 0); c < at(run, 0) + at(run, 1); c++) {
			int64_t share = load[j->circuits[c].arc] * 1000 / most;

			assert_in_range(at(run, 2), share > 2 ? share - 1 : 1, share + 1);
			n_told++;
		}
	}
	for (int c = 0; c < j->n_circuits; c++) {
		n_carry += load[j->circuits[c].arc] > 0;
	}
	assert_int_equal(n_told, n_carry);
	free(load);
}

/* Returns the steps of all frames, which follow each other. */
static int64_t check_frames(const struct plan_job *j, const json_t *job)
{
	const json_t *frames = json_object_get(job, "frames"), *frame;
	int64_t steps = 0;
	size_t i;

	assert_true(json_is_true(json_object_get(job, "whole")));
	assert_in_range(json_array_size(frames), 1, PAGE_MAX_FRAMES);
	json_array_foreach((json_t *)frames, i, frame) {
		assert_int_equal(number(frame, "first"), steps);
		if (!j->is_ring) {
			check_frame(j, frame);
		}
		steps += number(frame, "steps");
	}
	assert_int_equal(number(job, "steps"), steps);
	return steps;
}

/* Columns times share of a list of runs. */
static int64_t light_of(const json_t *runs)
{
	const json_t *run;
	int64_t sum = 0;
	size_t i;

	json_array_foreach((json_t *)runs, i, run) {
		sum += at(run, 2) * at(run, 4);
	}
	return sum;
}

/* A frame of one step has a run for each lightpath, or two where it goes over the end of
 * the row. */
static void check_lightpaths(const struct plan_job *j, const json_t *frame, int64_t rows)
{
	int64_t n, paths = 0, runs = (int64_t)json_array_size(json_object_get(frame, "lit"));
	const struct coll_light *v = coll_lights(j->sched, &n);

	for (int64_t i = 0; i < n; i++) {
		paths += v[i].step == number(frame, "first");
	}
	assert_int_equal(number(frame, "steps"), 1);
	assert_in_range(runs, paths, paths + rows);
}

/* The light of all steps together is that of the picture. */
static void check_ring(const struct plan_job *j, const json_t *job, const json_t *picture)
{
	const json_t *device = json_array_get(json_object_get(picture, "devices"), 1), *frame;
	int64_t whole = light_of(json_object_get(device, "lit")), sum = 0;
	size_t i;

	json_array_foreach(json_object_get(job, "frames"), i, frame) {
		check_lightpaths(j, frame, number(device, "rows"));
		sum += number(frame, "steps") * light_of(json_object_get(frame, "lit"));
	}
	whole *= number(job, "steps");
	assert_true(sum > 0);
	assert_in_range(sum, whole - whole / 50, whole + whole / 50);
}

static struct plan *plan_of(const char *text, struct model_fabric **f)
{
	struct err_list errs = { .max = 1 };
	struct err err = { 0 };
	struct plan *p = NULL;

	assert_int_equal(model_parse("f", text, strlen(text), f, &errs), 0);
	assert_int_equal(plan_make(*f, NULL, &p, &err), 0);
	err_list_fini(&errs);
	return p;
}

static void test_steps(void **state)
{
	struct model_fabric *f;
	struct plan *p = plan_of(fabric, &f);
	json_t *j = stepped(p), *picture = drawn(f, p);
	const json_t *jobs = json_object_get(j, "jobs");

	(void)state;
	assert_int_equal(json_array_size(jobs), 2);
	assert_int_equal(check_frames(&p->jobs[0], json_array_get(jobs, 0)),
			 coll_steps(p->jobs[0].sched));
	assert_int_equal(number(json_array_get(jobs, 0), "device"), -1);
	check_frames(&p->jobs[1], json_array_get(jobs, 1));
	assert_int_equal(number(json_array_get(jobs, 1), "device"), 1);
	check_ring(&p->jobs[1], json_array_get(jobs, 1), picture);
	json_decref(picture);
	json_decref(j);
	plan_free(p);
	model_free(f);
}

/* More steps than frames: several a frame. */
static void test_many_steps(void **state)
{
	static const char text[] =
		"weft: 1\nfabric: long\n"
		"hosts: [{ name: 'h[00-79]', ports: p, rate: 100Gbps }]\n"
		"switches: [{ name: ocs0, size: 80x80, driver: sim }]\n"
		"fibres: [{ from: 'h[00-79].p', to: 'ocs0.[1-80]' }]\n"
		"jobs: [{ name: j, nodes: 'h[00-79]', collective: allreduce, size: 1MiB,"
		" topology: 'UniRing(1,80)', alpha: 10us }]\n";
	struct model_fabric *f;
	struct plan *p = plan_of(text, &f);
	json_t *j = stepped(p);

	(void)state;
	assert_true(coll_steps(p->jobs[0].sched) > PAGE_MAX_FRAMES);
	assert_int_equal(check_frames(&p->jobs[0], json_array_get(json_object_get(j, "jobs"), 0)),
			 coll_steps(p->jobs[0].sched));
	json_decref(j);
	plan_free(p);
	model_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_occupancy),
		cmocka_unit_test(test_bins),
		cmocka_unit_test(test_picture),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_many_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
