/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology: figures 2.1 to 2.7 of the thesis on optimal collectives, which show
 * what steps, trees of GPUs and changed capacities get wrong about memories. The
 * files are in tests/golden/thesis; GPU i of the text is node i - 1. A broadcast is
 * written as hops, each of which forwards what an earlier one brought.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/number/rat.h"
#include "tests/unit/topology/flows.h"

struct hop {
	int from, to;
	int after;	/* the hop that brought it to `from`; -1: the root has it */
};

enum { MOST_HOPS = 6 };

static const struct hop over_ring[6] = {
	{ 0, 4, -1 }, { 4, 1, 0 }, { 1, 4, 1 }, { 4, 2, 2 }, { 2, 4, 3 }, { 4, 3, 4 },
};
static const struct hop past_memory[5] = {
	{ 0, 4, -1 }, { 4, 1, 0 }, { 1, 4, 1 }, { 4, 2, 2 }, { 1, 3, 1 },
};

static char *text_of(const char *figure)
{
	char path[64], *text;
	size_t len;

	snprintf(path, sizeof(path), "tests/golden/thesis/figure-%s.txt", figure);
	assert_int_equal(file_read(path, 10000, &text, &len, NULL), 0);
	return text;
}

static struct topo *read_text(const char *text)
{
	struct topo *t;
	struct err err = { 0 };

	if (topo_from_edges(text, strlen(text), &t, &err)) {
		fail_msg("line %d: %s", err.line, err.msg);
	}
	return t;
}

static struct topo *figure(const char *name)
{
	char *text = text_of(name);
	struct topo *t = read_text(text);

	free(text);
	return t;
}

/* The figure with another capacity of its memory; `kind` instead of "switch". */
static struct topo *figure_with(const char *name, int64_t y, const char *kind)
{
	static const char limit[] = "limit memory 24\n", node[] = "switch 4\n";
	char *text = text_of(name), *at = strstr(text, node), changed[1000];
	char *second = strstr(text, limit);
	struct topo *t;

	assert_non_null(at);
	assert_true(second == at + strlen(node));
	*at = '\0';
	snprintf(changed, sizeof(changed), "%s%s 4\nlimit memory %lld\n%s", text, kind,
		 (long long)y, second + strlen(limit));
	t = read_text(changed);
	free(text);
	return t;
}

/* Each hop takes an arc, forwards what is there, and no node forwards twice what
 * it cannot copy. */
static void assert_possible(const struct topo *t, const struct hop *hops, int n)
{
	for (int i = 0; i < n; i++) {
		assert_true(topo_find_arc(t, hops[i].from, hops[i].to) >= 0);
		assert_true(hops[i].after < i);
		assert_int_equal(hops[i].after < 0 ? 0 : hops[hops[i].after].to, hops[i].from);
		for (int k = 0; k < i; k++) {
			assert_true(hops[k].after != hops[i].after ||
				    topo_node_flags(t, hops[i].from) & TOPO_CAN_COPY);
		}
	}
}

static void lower(mpq_t least, int64_t cap, int uses)
{
	mpq_t here;

	mpq_init(here);
	if (uses > 0) {
		rat_set(here, cap, uses);
		if (mpq_cmp(here, least) < 0) {
			mpq_set(least, here);
		}
	}
	mpq_clear(here);
}

/* The largest flow along all hops at once that arcs and shared limits take is
 * num / den. */
static void assert_throughput(const struct topo *t, const struct hop *hops, int n,
			      int64_t num, int64_t den)
{
	mpq_t least, want;

	assert_possible(t, hops, n);
	mpq_inits(least, want, NULL);
	rat_set(least, INT32_MAX, 1);
	rat_set(want, num, den);
	for (int a = 0; a < topo_m(t); a++) {
		int uses = 0;

		for (int i = 0; i < n; i++) {
			uses += topo_find_arc(t, hops[i].from, hops[i].to) == a;
		}
		lower(least, topo_arc(t, a)->cap, uses);
	}
	for (int l = 0; l < topo_n_limits(t); l++) {
		int uses = 0;

		for (int i = 0; i < n; i++) {
			const int32_t *limits;
			int a = topo_find_arc(t, hops[i].from, hops[i].to);
			int count = topo_arc_limits(t, a, &limits);

			for (int k = 0; k < count; k++) {
				uses += limits[k] == l;
			}
		}
		lower(least, topo_limit(t, l)->cap, uses);
	}
	assert_int_equal(mpq_cmp(least, want), 0);
	mpq_clears(least, want, NULL);
}

/* Steps in which one chunk goes all the way. */
static int steps(const struct topo *t, const struct hop *hops, int n)
{
	int at[MOST_HOPS], most = 0;

	assert_possible(t, hops, n);
	for (int i = 0; i < n; i++) {
		at[i] = 1 + (hops[i].after < 0 ? 0 : at[hops[i].after]);
		most = at[i] > most ? at[i] : most;
	}
	return most;
}

/* As a flow a unit takes one unit of time, in K chunks (K + 1)/K: the second link
 * waits for the first chunk. */
static void pipelining(void **state)
{
	static const struct hop chain[] = { { 0, 1, -1 }, { 1, 2, 0 } };
	struct topo *t = figure("2.1");

	(void)state;
	assert_int_equal(broadcast_rate(t, 0, 3), 1);
	assert_throughput(t, chain, 2, 1, 1);
	assert_int_equal(steps(t, chain, 2), 2);
	topo_free(t);
}

/* A memory that copies saves two of four steps, and a write. */
static void memory_that_copies(void **state)
{
	static const struct hop chain[] = {
		{ 0, 3, -1 }, { 3, 1, 0 }, { 1, 3, 1 }, { 3, 2, 2 },
	};
	static const struct hop tree[] = { { 0, 3, -1 }, { 3, 1, 0 }, { 3, 2, 0 } };
	struct topo *t = figure("2.2");

	(void)state;
	assert_int_equal(topo_ranks(t), 3);
	assert_int_equal(topo_holders(t), 4);
	assert_int_equal(steps(t, chain, 4), 4);
	assert_int_equal(steps(t, tree, 3), 2);
	assert_int_equal(topo_diameter(t), 2);
	assert_int_equal(broadcast_rate(t, 0, 3), 1);
	topo_free(t);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Arcs alone promise x. The memory takes each of three GPUs' data in and out: y/6,
 * and no broadcast does better that does not copy there; y/4 where it copies. */
static void shared_memory(void **state)
{
	static const struct hop star[] = {
		{ 0, 4, -1 }, { 4, 1, 0 }, { 4, 2, 0 }, { 4, 3, 0 },
	};

	(void)state;
	for (int64_t y = 1; y <= 48; y++) {
		struct topo *t = figure_with("2.3", y, "switch");
		struct topo *copying = figure_with("2.3", y, "memory");

		assert_int_equal(broadcast_rate(t, 0, 4), 6);
		assert_throughput(t, over_ring, 6, least(6 * 6, y), 6);
		assert_throughput(copying, star, 4, least(6 * 4, y), 4);
		topo_free(t);
		topo_free(copying);
	}
}

/* Past the memory on one hop: min(x, y/4), where the ring has min(x, y/6). */
static void link_past_memory(void **state)
{
	(void)state;
	for (int64_t y = 1; y <= 48; y++) {
		struct topo *t = figure_with("2.4", y, "switch");

		assert_throughput(t, over_ring, 6, least(6 * 6, y), 6);
		assert_throughput(t, past_memory, 5, least(6 * 4, y), 4);
		topo_free(t);
	}
}

/* Links of min(x, y/6) in place of the memory tell the truth about figure 2.3, but
 * of figure 2.4 they say 4 as well, where 6 can be had. */
static void changed_links(void **state)
{
	struct topo *ring = figure("2.5"), *more = figure("2.6");
	struct topo *before = figure("2.3"), *before_more = figure("2.4");

	(void)state;
	assert_throughput(before, over_ring, 6, 4, 1);
	assert_int_equal(broadcast_rate(ring, 0, 4), 4);
	assert_throughput(before_more, past_memory, 5, 6, 1);
	assert_int_equal(broadcast_rate(more, 0, 4), 4);
	topo_free(ring);
	topo_free(more);
	topo_free(before);
	topo_free(before_more);
}

/* A memory that must be reached, as a GPU must, halves the rate. */
static void memory_as_gpu(void **state)
{
	struct topo *t = figure("2.7");

	(void)state;
	assert_int_equal(broadcast_rate(t, 0, topo_ranks(t)), 2);
	assert_int_equal(broadcast_rate(t, 0, topo_holders(t)), 1);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipelining),
		cmocka_unit_test(memory_that_copies),
		cmocka_unit_test(shared_memory),
		cmocka_unit_test(link_past_memory),
		cmocka_unit_test(changed_links),
		cmocka_unit_test(memory_as_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
