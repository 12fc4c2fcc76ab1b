/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps: order, ties, room made before, items whose order changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/heap.h"
#include "lib/base/number/rng.h"

struct item {
	int key, id;
};

static bool is_less(struct item a, struct item b)
{
	return a.key < b.key;
}

HEAP(item_heap, struct item);
HEAP_FUNCTIONS(item_heap, struct item, is_less)

static void test_order(void **state)
{
	static const int keys[] = { 5, 3, 8, 3, 1, 9, 2 };
	static const int sorted[] = { 1, 2, 3, 3, 5, 8, 9 };
	struct item_heap h = { 0 };

	(void)state;
	for (int i = 0; i < 7; i++) {
		item_heap_push(&h, (struct item){ keys[i], i });
	}
	for (int i = 0; i < 7; i++) {
		assert_int_equal(h.n, 7 - i);
		assert_int_equal(h.v[0].key, sorted[i]);
		assert_int_equal(item_heap_pop(&h).key, sorted[i]);
	}
	assert_int_equal(h.n, 0);
	vec_fini(&h);
	assert_null(h.v);
}

/* The same items taken out of an array by looking at all of them. */
static struct item take_smallest(struct item *v, size_t *n)
{
	size_t least = 0;
	struct item got;

	for (size_t i = 1; i < *n; i++) {
		least = v[i].key < v[least].key ? i : least;
	}
	got = v[least];
	v[least] = v[--*n];
	return got;
}

/* Pushes and pops at random: always a least key, and every item once. */
static void test_like_an_array(void **state)
{
	enum { STEPS = 4000 };
	static struct item array[STEPS];
	static bool out[STEPS];
	struct item_heap h = { 0 };
	struct rng rng;
	size_t n = 0;
	int next = 0;

	(void)state;
	rng_seed(&rng, 7);
	memset(out, 0, sizeof(out));
	for (int i = 0; i < STEPS; i++) {
		if (n == 0 || rng_below(&rng, 5) < 3) {
			struct item it = { (int)rng_below(&rng, 50), next++ };

			array[n++] = it;
			item_heap_push(&h, it);
		} else {
			struct item got = item_heap_pop(&h);

			assert_int_equal(got.key, take_smallest(array, &n).key);
			assert_false(out[got.id]);
			out[got.id] = true;
		}
		assert_int_equal(h.n, n);
	}
	while (h.n) {
		struct item got = item_heap_pop(&h);

		assert_int_equal(got.key, take_smallest(array, &n).key);
		assert_false(out[got.id]);
		out[got.id] = true;
	}
	for (int i = 0; i < next; i++) {
		assert_true(out[i]);
	}
	vec_fini(&h);
}

/* Ties: what is pushed in one order is popped in one order. */
static void test_same_calls_same_order(void **state)
{
	int order[2][200];

	(void)state;
	for (int run = 0; run < 2; run++) {
		struct item_heap h = { 0 };
		struct rng rng;

		rng_seed(&rng, 11);
		/* In the second run with room from before. */
		vec_reserve(&h, run ? 200 : 1);
		for (int i = 0; i < 200; i++) {
			item_heap_push(&h, (struct item){ (int)rng_below(&rng, 4), i });
		}
		for (int i = 0; i < 200; i++) {
			order[run][i] = item_heap_pop(&h).id;
		}
		vec_fini(&h);
	}
	assert_memory_equal(order[0], order[1], sizeof(order[0]));
}

static void test_room_made_before(void **state)
{
	struct item_heap h = { 0 };
	struct item *room;

	(void)state;
	vec_reserve(&h, 100);
	room = h.v;
	for (int i = 0; i < 100; i++) {
		item_heap_add(&h, (struct item){ 100 - i, i });
		assert_int_equal(h.v[0].id, i);
	}
	assert_ptr_equal(h.v, room);
	vec_fini(&h);
}

/* ---- items with a place ---- */

enum { NODES = 60 };

struct keyed {
	int64_t key[NODES];
	int place[NODES];
};

static bool comes_first(int a, int b, const struct keyed *by)
{
	return by->key[a] < by->key[b] || (by->key[a] == by->key[b] && a < b);
}

static void put(int node, size_t at, struct keyed *by)
{
	by->place[node] = (int)at;
}

HEAP(node_heap, int);
HEAP_FUNCTIONS_BY(node_heap, int, struct keyed *, comes_first, put)

static void check_places(const struct node_heap *h, const struct keyed *k)
{
	for (size_t i = 0; i < h->n; i++) {
		assert_int_equal(k->place[h->v[i]], i);
		assert_false(i && comes_first(h->v[i], h->v[(i - 1) / 2], k));
	}
}

static int first_of(const struct keyed *k, const bool *in)
{
	int first = -1;

	for (int v = 0; v < NODES; v++) {
		if (in[v] && (first < 0 || comes_first(v, first, k))) {
			first = v;
		}
	}
	return first;
}

/* Keys that fall while in, against looking at all nodes. */
static void test_rise(void **state)
{
	struct keyed k = { { 0 }, { 0 } };
	bool in[NODES] = { false };
	struct node_heap h = { 0 };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 3);
	for (int i = 0; i < 3000; i++) {
		int v = (int)rng_below(&rng, NODES);

		if (!in[v]) {
			k.key[v] = (int64_t)rng_below(&rng, 1000);
			in[v] = true;
			node_heap_push(&h, &k, v);
		} else if (rng_below(&rng, 3)) {
			k.key[v] -= (int64_t)rng_below(&rng, 200);
			node_heap_rise(&h, &k, (size_t)k.place[v]);
		} else {
			int first = first_of(&k, in);

			assert_int_equal(h.v[0], first);
			assert_int_equal(node_heap_pop(&h, &k), first);
			in[first] = false;
		}
		check_places(&h, &k);
	}
	vec_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_like_an_array),
		cmocka_unit_test(test_same_calls_same_order),
		cmocka_unit_test(test_room_made_before),
		cmocka_unit_test(test_rise),
	};

	return cmocka_run_group_tests_name("base/heap", tests, NULL, NULL);
}
