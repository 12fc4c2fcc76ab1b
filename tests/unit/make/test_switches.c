/* SPDX-License-Identifier: Apache-2.0 */
/* Switches that copy or sum: loads counted again from every chunk, and what "auto" makes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "collective/make/make.h"
#include "collective/schedule/cut_bound.h"
#include "lib/base/alloc.h"
#include "tests/unit/schedule/common.h"

#define BPS INT64_C(8000000000)

/* What is made on a text, an expression or lines of arcs, of this size at 1 us a step. */
static struct coll_made make(const char *text, enum coll_kind kind, const char *name,
			     int64_t bytes, int batches)
{
	struct coll_cost cost = { .alpha_ns = 1000, .link_bps = BPS, .size_bytes = bytes };
	struct coll_fabric f = { .name = "f" };
	struct err err = { 0 };
	struct coll_made m;
	struct topo *seen;

	if (strchr(text, '\n')) {
		must(topo_from_edges(text, strlen(text), &f.topo, &err), &err);
	} else {
		f.topo = graph_of(text);
	}
	must(coll_terminals_see(f.topo, &seen, &err), &err);
	struct coll_make_query q = { .kind = kind, .topo = seen, .cost = &cost, .fabric = &f,
				     .physical = f.topo, .extra_steps = -1, .batches = batches };

	q.algorithm = name ? coll_algorithm_find(name, kind) : NULL;
	must(coll_make(&q, &m, &err), &err);
	topo_free(seen);
	topo_free(f.topo);
	return m;
}

/* ---- one switch ---- */

enum { PLAIN, NVLS, SHARP };

struct star {
	int ranks, chunks, can;
	int64_t up[16], down[16];
	int32_t *sent, *got;	/* stamp of (rank, shard, chunk) */
};

/* A chunk from rank u to v, in step `stamp` - 1. */
static void count(struct star *c, int u, int v, int chunk, enum coll_op op, int32_t stamp)
{
	int32_t *sent = &c->sent[u * c->ranks * c->chunks + chunk];
	int32_t *got = &c->got[v * c->ranks * c->chunks + chunk];
	bool copied = op == COLL_OP_COPY ? c->can != PLAIN : c->can == SHARP;

	c->up[u] += !copied || *sent != stamp;
	c->down[v] += op == COLL_OP_COPY || c->can == PLAIN || *got != stamp;
	*sent = *got = stamp;
}

static int64_t top(struct star *c)
{
	int64_t most = 0;

	for (int u = 0; u < c->ranks; u++) {
		most = c->up[u] > most ? c->up[u] : most;
		most = c->down[u] > most ? c->down[u] : most;
		c->up[u] = c->down[u] = 0;
	}
	return most;
}

/* The sum over the steps of the fullest arc's chunks. */
static int64_t count_all(const struct coll_sched *s, int can)
{
	size_t cells = (size_t)coll_ranks(s) * (size_t)coll_ranks(s) * (size_t)coll_chunks(s);
	struct star c = { .ranks = coll_ranks(s), .chunks = coll_chunks(s), .can = can };
	struct coll_sched *own;
	const struct coll_sched *flat;
	int64_t n, sum = 0;

	assert_int_equal(coll_flat(s, &flat, &own, NULL), 0);
	c.sent = x_new(cells, sizeof(*c.sent));
	c.got = x_new(cells, sizeof(*c.got));
	const struct coll_xfer *x = coll_xfers(flat, &n);

	for (int64_t i = 0; i < n; i++) {
		const struct topo_arc *a = topo_arc(coll_topo(flat), x[i].arc);

		for (int k = x[i].first; k <= x[i].last; k++) {
			count(&c, a->src, a->dst, x[i].origin * c.chunks + k,
			      (enum coll_op)x[i].op, x[i].step + 1);
		}
		sum += i + 1 == n || x[i + 1].step != x[i].step ? top(&c) : 0;
	}
	free(c.sent);
	free(c.got);
	coll_free(own);
	return sum;
}

static void check_star(const char *text, int can, enum coll_kind kind, const char *name,
		       int batches)
{
	struct coll_made m = make(text, kind, name, 1 << 20, batches);
	struct coll_sched *flat;
	struct coll_report r;
	mpq_t times;

	mpq_init(times);
	rat_set(times, count_all(m.sched, can), coll_chunks(m.sched));
	assert_true(mpq_equal(m.report.shard_times, times));
	assert_int_equal(coll_unfold(m.sched, &flat, NULL), 0);
	coll_report_init(&r);
	assert_int_equal(coll_verify(flat, &r, NULL), 0);
	assert_true(mpq_equal(r.shard_times, times));
	assert_true(mpq_cmp(r.bandwidth_factor, r.bandwidth_bound) >= 0);
	coll_report_fini(&r);
	coll_free(flat);
	mpq_clear(times);
	coll_made_fini(&m);
}

static void test_star(void **state)
{
	static const char *const text[] = { "Star(5)", "Nvls(Star(5))", "Sharp(Star(5))" };

	(void)state;
	for (int can = PLAIN; can <= SHARP; can++) {
		for (int batches = 1; batches <= 3; batches += 2) {
			check_star(text[can], can, COLL_ALLGATHER, "bfb", batches);
			check_star(text[can], can, COLL_REDUCE_SCATTER, "bfb", batches);
			check_star(text[can], can, COLL_ALLREDUCE, "bfb", batches);
			check_star(text[can], can, COLL_BROADCAST, "trees", batches);
			check_star(text[can], can, COLL_REDUCE, "trees", batches);
		}
		check_star(text[can], can, COLL_ALLREDUCE, "one-shot", 1);
		check_star(text[can], can, COLL_ALLREDUCE, "flood", 1);
		check_star(text[can], can, COLL_GATHER, "paths", 1);
	}
}

/* ---- what "auto" makes ---- */

/* Steps, T_B, and gap 0 or not. */
static void check(const char *text, enum coll_kind kind, int64_t bytes, int steps, int64_t num,
		  int64_t den)
{
	struct coll_made m = make(text, kind, NULL, bytes, 0);

	assert_int_equal(m.report.steps, steps);
	assert_int_equal(mpq_cmp_si(m.report.bandwidth_factor, num, (unsigned long)den), 0);
	assert_true(m.time_ns >= m.bound_ns);
	coll_made_fini(&m);
}

/* Two leaves of four, two spines; and a box of eight on three switches. */
static const char leaves[] = "undirected\nswitch 8-11 copy reduce store\n0 8 4\n1 8 4\n2 8 4\n"
			     "3 8 4\n4 9 4\n5 9 4\n6 9 4\n7 9 4\n8 10 8\n8 11 8\n9 10 8\n9 11 8\n";
static const char three[] = "undirected\nswitch 4-6 copy reduce\n0 4\n0 5\n0 6\n1 4\n1 5\n1 6\n"
			    "2 4\n2 5\n2 6\n3 4\n3 5\n3 6\n";

static void test_auto(void **state)
{
	(void)state;
	check("Sharp(Star(8))", COLL_ALLREDUCE, 1 << 20, 1, 1, 1);
	check("Nvls(Star(8))", COLL_BROADCAST, 1 << 20, 1, 1, 1);
	check("Nvls(Star(8))", COLL_REDUCE, 1 << 20, 1, 1, 1);
	check("Nvls(Star(8))", COLL_ALLGATHER, 1 << 20, 1, 7, 8);
	/* Sums of a batch beside copies of the one before: (b + 7/8) / b. */
	check("Cap(Nvls(Star(8)),450)", COLL_ALLREDUCE, 1 << 26, 12, 47, 44);
	check("Star(8)", COLL_ALLREDUCE, 1 << 26, 2, 7, 4);
	check(leaves, COLL_ALLREDUCE, 1 << 20, 1, 1, 1);
	check(leaves, COLL_BROADCAST, 1 << 20, 1, 1, 1);
	check(three, COLL_BROADCAST, 1 << 20, 1, 1, 1);
}

/* With switches that help none is slower, and none is below its bound (coll_verify). */
static void test_never_worse(void **state)
{
	static const char *const text[] = { "HyperX(2,3)", "Star(6)" };

	(void)state;
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		int last = i > 0 ? COLL_REDUCE : COLL_ALLGATHER;

		for (int kind = COLL_ALLGATHER; kind <= last; kind++) {
			struct coll_made plain = make(text[i], (enum coll_kind)kind, NULL,
						      1 << 20, 0);

			for (int sharp = 0; sharp < 2; sharp++) {
				char helped[64];
				struct coll_made m;

				snprintf(helped, sizeof(helped), "%s(%s)",
					 sharp ? "Sharp" : "Nvls", text[i]);
				m = make(helped, (enum coll_kind)kind, NULL, 1 << 20, 0);
				assert_true(m.time_ns <= plain.time_ns);
				coll_made_fini(&m);
			}
			coll_made_fini(&plain);
		}
	}
}

/* A switch that sums among its own ranks changes no bound between boxes. */
static void test_bound(void **state)
{
	static const char boxes[] = "undirected\nswitch 6-7 %s\n0 6 9\n1 6 9\n2 6 9\n3 7 9\n4 7 9\n"
				    "5 7 9\n0 3\n1 4\n2 5\n";
	static const char *const can[] = { "", "copy", "copy reduce" };
	mpq_t bound;

	(void)state;
	mpq_init(bound);
	for (int i = 0; i < 3; i++) {
		struct topo *t = NULL;
		char text[256];

		snprintf(text, sizeof(text), boxes, can[i]);
		assert_int_equal(topo_from_edges(text, strlen(text), &t, NULL), 0);
		assert_int_equal(coll_bound(t, NULL, COLL_ALLREDUCE, 0, 10, bound, NULL), 0);
		/* A vector each way over three links. */
		assert_int_equal(mpq_cmp_si(bound, 10, 3), 0);
		topo_free(t);
	}
	mpq_clear(bound);
}

/* Programs and an asynchronous simulation know nothing of it. */
static void test_refused(void **state)
{
	struct coll_made m = make("Nvls(Star(4))", COLL_ALLREDUCE, "bfb", 1 << 20, 1);
	struct coll_sim_options o = { .cost = { .alpha_ns = 1000, .link_bps = BPS,
						.size_bytes = 1 << 20 } };
	struct err err = { 0 };
	struct coll_sim sim = { 0 };

	(void)state;
	assert_int_equal(coll_refuse_switches(m.sched, "programs", &err), WEFT_EUNSUPPORTED);
	assert_string_equal(err.msg, "programs of a schedule in which switches copy or sum "
			    "(step 0): not supported");
	assert_int_equal(coll_simulate(m.sched, &o, &sim, NULL, NULL), 0);
	assert_int_equal((int64_t)(sim.time_ns + 0.5), m.time_ns);
	coll_sim_fini(&sim);
	o.asynchronous = true;
	assert_int_equal(coll_simulate(m.sched, &o, &sim, NULL, NULL), WEFT_EUNSUPPORTED);
	coll_sim_fini(&sim);
	coll_made_fini(&m);
	m = make("Star(4)", COLL_ALLREDUCE, "bfb", 1 << 20, 1);
	assert_int_equal(coll_refuse_switches(m.sched, "programs", NULL), 0);
	coll_made_fini(&m);
}

/* An all-reduce is no slower than sums, then copies, on two servers of four and rails: a search for
 * both at a time begins with as many batches as one for either. */
static void test_halves(void **state)
{
	static const char boxes[] = "undirected\nswitch 8-13\n0 8 12\n1 8 12\n2 8 12\n3 8 12\n"
				    "4 9 12\n5 9 12\n6 9 12\n7 9 12\n0 10\n1 11\n2 12\n3 13\n"
				    "4 10\n5 11\n6 12\n7 13\n";
	struct coll_made copies = make(boxes, COLL_ALLGATHER, NULL, 1 << 17, 0);
	struct coll_made all = make(boxes, COLL_ALLREDUCE, NULL, 1 << 17, 0);

	(void)state;
	assert_in_range(all.time_ns, 1, 2 * copies.time_ns);
	coll_made_fini(&copies);
	coll_made_fini(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_star),
		cmocka_unit_test(test_halves), cmocka_unit_test(test_auto),
		cmocka_unit_test(test_never_worse),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
