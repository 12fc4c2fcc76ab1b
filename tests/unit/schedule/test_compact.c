/* SPDX-License-Identifier: Apache-2.0 */
/* Compact schedules against what they stand for: verified, costed, cut into
 * parts, written and read alike, on random digraphs with a group; and what is no
 * automorphism, or no schedule, is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "collective/flow/flow.h"
#include "lib/base/number/rng.h"
#include "tests/unit/schedule/common.h"

#define GRAPHS 200
#define MUTATIONS 5000

/* A random connected circulant, torus-like product or line graph. */
static void random_expr(struct rng *rng, char *text, size_t size)
{
	int n = 5 + (int)rng_below(rng, 28), a = 1 + (int)rng_below(rng, 3);
	int b = a + 1 + (int)rng_below(rng, 3), k = 2 + (int)rng_below(rng, 4);

	static const char *const cayley[] = {
		"Cay(7:3,r=2,{(1,0),(0,1)})", "DiCay(5:4,r=2,{(1,1),(0,1)})",
		"Cay(6:2,r=5,s=3,{(1,0),(0,1)})",
		"DiCay(3:(2x4),r=2,q=1,{(1,1,0),(0,0,1),(2,1,3)})",
		"DiCay(2^3:7,[0,0,1;1,0,1;0,1,0],{(1,0,0;1),(0,0,0;3)})",
		"Cay(3^2:4,[0,2;1,0],{(1,0;0),(0,0;1)})",
		"Cay((1,2),(1,2,3,4))", "DiCay((1,2,3),(1,2,3,4,5))",
		"DiCay(4^2:2,[0,1;1,0]+(1,1),{(1,0;0),(2,1;1)})",
		"L(DiCay((1,2,3),(2,3,4)))", "Bi(DiCay(5:4,r=2,{(1,1),(0,1)}))",
		"Prod(Cay((1,2),(1,2,3)),K(3))", "Deg(Cay((1,2),(1,2,3,4)),2)",
		"L2(Cay((1,2),(2,3)))", "Multi(L(DiCay(7:3,r=2,{(1,0),(0,1)})),2)",
	};

	n = n < 2 * b + 2 ? 2 * b + 2 : n;
	switch (rng_below(rng, 10)) {
	case 0:
		snprintf(text, size, "C(%d,{1,%d})", n, b);
		return;
	case 1:
		snprintf(text, size, "DiC(%d,{1,%d})", n, b);
		return;
	case 2:
		snprintf(text, size, "Torus(%d,%d)", k + 1, b);
		return;
	case 3:
		snprintf(text, size, "L(C(%d,{1,%d}))", n / 2 + 4, 2);
		return;
	case 4:
		snprintf(text, size, "Prod(Cap(Ring(%d),%d),Lat(Ring(%d),%d))", k + 1, a, b + 2,
			 100 * a);
		return;
	case 5:
		snprintf(text, size, "Multi(C(%d,{1,%d}),%d)", n, b, a);
		return;
	case 6:
		snprintf(text, size, "GenKautz(%d,%d)", k, 6 * k);
		return;
	case 7:
		snprintf(text, size, "Hypercube(%d)", k);
		return;
	default:
		snprintf(text, size, "%s",
			 cayley[rng_below(rng, sizeof(cayley) / sizeof(*cayley))]);
	}
}

static struct coll_sched *all_to_all(const char *expr)
{
	struct mcf_steps_options opt = { .flow = { .gap = 0.01 }, .loss = 0.1, .max_chunks = 4 };
	struct coll_sched *s;
	struct topo *t = graph_of(expr);
	struct err err = { 0 };

	must(mcf_steps(t, &opt, &s, NULL, &err), &err);
	topo_free(t);
	return s;
}

static void assert_same_parts(const struct coll_sched *a, const struct coll_sched *b, int rank)
{
	struct coll_sched *pa, *pb;
	struct err err = { 0 };

	must(coll_part_of(a, rank, &pa, &err), &err);
	must(coll_part_of(b, rank, &pb, &err), &err);
	assert_same_flat(pa, pb);
	coll_free(pa);
	coll_free(pb);
}

static struct coll_sched *reread(const struct coll_sched *s, bool json)
{
	struct coll_sched *out;
	struct err err = { 0 };
	struct buf b = { 0 };

	(json ? coll_to_json : coll_to_proto)(s, &b);
	must(coll_from_bytes(b.data, b.len, &out, &err), &err);
	buf_fini(&b);
	return out;
}

static void check_compact(struct coll_sched *s, struct rng *rng)
{
	struct coll_sched *flat = unfolded(s);

	assert_same_reports(s, flat);
	for (int k = 0; k < 3; k++) {
		assert_same_parts(s, flat, (int)rng_below(rng, (uint64_t)coll_ranks(s)));
	}
	for (int json = 0; json < 2; json++) {
		struct coll_sched *again = reread(s, json);

		assert_true(topo_group_equal(coll_group(s), coll_group(again)));
		assert_same_flat(again, s);
		assert_same_reports(again, flat);
		coll_free(again);
	}
	coll_free(flat);
	coll_free(s);
}

static void test_random_graphs(void **state)
{
	static const enum coll_kind kinds[] = { COLL_ALLGATHER, COLL_REDUCE_SCATTER,
						COLL_ALLREDUCE };
	struct rng rng;
	char expr[64];
	int compact = 0;

	(void)state;
	rng_seed(&rng, 15);
	for (int i = 0; i < GRAPHS; i++) {
		struct coll_sched *s;

		random_expr(&rng, expr, sizeof(expr));
		s = bfb(kinds[i % 3], expr);
		compact += coll_group(s) != NULL;
		check_compact(s, &rng);
	}
	assert_true(compact > GRAPHS * 3 / 4);
}

static void test_all_to_all(void **state)
{
	static const char *const exprs[] = { "Ring(6)", "Torus(3,3)", "C(8,{1,3})", "K(4)",
					     "Multi(Ring(5),2)" };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 16);
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		struct coll_sched *s = all_to_all(exprs[i]);

		assert_non_null(coll_group(s));
		check_compact(s, &rng);
	}
}

/* ---- what comes of them ---- */

static void test_transforms(void **state)
{
	static const char *const exprs[] = { "Ring(7)", "Torus(3,4)", "C(9,{1,2})",
					     "L(C(8,{1,3}))" };
	struct rng rng;
	struct err err = { 0 };

	(void)state;
	rng_seed(&rng, 17);
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		struct coll_sched *s = bfb(COLL_ALLGATHER, exprs[i]), *back, *batches;
		struct coll_sched *other;
		int to[64], n = coll_ranks(s);

		must(coll_reverse(s, &back, &err), &err);
		must(coll_pipeline(s, 3, &batches, &err), &err);
		for (int u = 0; u < n; u++) {
			to[u] = (u * 5 + 3) % n;
		}
		if (n % 5) {
			must(coll_rename(s, to, &other, &err), &err);
			assert_non_null(coll_group(other));
			check_compact(other, &rng);
		}
		assert_non_null(coll_group(back));
		assert_non_null(coll_group(batches));
		check_compact(back, &rng);
		check_compact(batches, &rng);
		coll_free(s);
	}
}

/* ---- refusals ---- */

static int group_of(int n, int n_free, int k, const int *orders, const int32_t *images)
{
	struct topo_group *g;
	struct err err = { 0 };
	int rc = topo_group_new(n, n_free, k, orders, images, &g, &err);

	topo_group_free(g);
	return rc;
}

static void test_groups_refused(void **state)
{
	static const int32_t turn[] = { 1, 2, 3, 0 }, swap[] = { 1, 0, 2, 3 };
	static const int32_t twice[] = { 1, 1, 2, 3 }, flip[] = { 1, 0, 3, 2 };
	static const int32_t pair[] = { 1, 0, 3, 2, 3, 2, 1, 0 };
	static const int32_t rings[] = { 1, 0, 3, 4, 2 };
	static const int32_t mixed[] = { 1, 2, 3, 0, 1, 0, 3, 2 };

	(void)state;
	assert_int_equal(group_of(4, 4, 1, (int[]){ 4 }, turn), 0);
	assert_int_equal(group_of(4, 4, 1, (int[]){ 2 }, flip), 0);
	assert_int_equal(group_of(4, 4, 2, (int[]){ 2, 2 }, pair), 0);
	assert_int_equal(group_of(4, 4, 1, (int[]){ 2 }, turn), WEFT_EINVAL);
	assert_int_equal(group_of(4, 4, 1, (int[]){ 3 }, turn), WEFT_EINVAL);
	assert_int_equal(group_of(4, 4, 1, (int[]){ 2 }, swap), WEFT_EINVAL);
	assert_int_equal(group_of(4, 2, 1, (int[]){ 2 }, swap), 0);
	assert_int_equal(group_of(5, 2, 1, (int[]){ 2 }, rings), WEFT_EINVAL);
	assert_int_equal(group_of(4, 2, 1, (int[]){ 2 }, flip), 0);
	assert_int_equal(group_of(4, 4, 1, (int[]){ 2 }, twice), WEFT_EINVAL);
	assert_int_equal(group_of(4, 3, 1, (int[]){ 2 }, turn), WEFT_EINVAL);
	assert_int_equal(group_of(4, 4, 2, (int[]){ 2, 2 }, mixed), WEFT_EINVAL);
}

static void test_no_automorphism(void **state)
{
	static const int32_t turn[] = { 1, 2, 3, 0 };
	struct coll_sched *s;
	struct topo_group *g;
	struct err err = { 0 };

	(void)state;
	must(topo_group_new(4, 4, 1, (int[]){ 4 }, turn, &g, &err), &err);
	must(coll_new(COLL_ALLGATHER, graph_of("Mesh(4)"), 1, 0, 0, &s, &err), &err);
	assert_int_equal(coll_set_group(s, g, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "has no image"));
	coll_free(s);
}

/* ---- memories ---- */

/* Two ranks that exchange shards through memories; the group exchanges the ranks. rest:
 * generators, routes and transfers. */
static void check_memories(const char *kinds, int nodes, const char *arcs, const char *rest)
{
	struct coll_sched *s;
	struct err err = { 0 };
	struct buf b = { 0 };
	struct rng rng;

	rng_seed(&rng, 5);
	buf_printf(&b, "{\"format\": \"weft-schedule\", \"version\": 2, \"chunks\": 1, "
		   "\"collective\": \"allgather\", \"nodes\": %d, \"physical_nodes\": %d, "
		   "\"node_kinds_columns\": [\"node\", \"kind\", \"abilities\"], "
		   "\"node_kinds\": %s, \"arcs\": %s, \"physical_arcs\": %s, "
		   "\"generators\": [[2]], %s}", nodes, nodes, kinds, arcs, arcs, rest);
	must(coll_from_json(b.data, b.len, &s, &err), &err);
	check_compact(s, &rng);
	buf_fini(&b);
}

/* Routes are given for arcs that are not the first of their orbits, which the ends of
 * an arc between memories do not tell. */
static void test_routes_from_memories(void **state)
{
	(void)state;
	check_memories("[[2, 2, 5], [3, 2, 5]]", 4, "[[0,2], [1,3], [2,1], [3,0]]",
		       "\"images\": [[1], [0], [3], [2]], "
		       "\"routes\": [[1, 1], [3, 1]], \"hops\": [[1], [3]], "
		       "\"transfers\": [[0, 0, 0, 0, 0], [1, 2, 0, 0, 0]]");
	check_memories("[[2, 2, 5], [3, 2, 5]]", 4, "[[0,2], [1,3], [2,0], [2,3], [3,1], [3,2]]",
		       "\"images\": [[1], [0], [3], [2]], "
		       "\"routes\": [[0, 1], [5, 1], [4, 1]], \"hops\": [[0], [5], [4]], "
		       "\"transfers\": [[0, 0, 0, 0, 0], [1, 3, 0, 0, 0], [2, 4, 0, 0, 0]]");
	check_memories("[[2, 2, 5]]", 3, "[[0,2], [1,2], [2,0], [2,1]]",
		       "\"images\": [[1], [0], [2]], "
		       "\"routes\": [[0, 1], [3, 1]], \"hops\": [[0], [3]], "
		       "\"transfers\": [[0, 0, 0, 0, 0], [1, 3, 0, 0, 0]]");
}

/* A number of a JSON text becomes another. */
static void mutate(struct rng *rng, char *text, size_t len)
{
	for (int tries = 0; tries < 1000; tries++) {
		size_t i = rng_below(rng, len);

		if (text[i] >= '0' && text[i] <= '9') {
			text[i] = (char)('0' + rng_below(rng, 10));
			return;
		}
	}
}

/* A compact file with a number changed is refused with a reason, or what it says
 * then is as true as its flat form. */
static void test_mutations(void **state)
{
	static const char *const exprs[] = { "Ring(6)", "Torus(3,3)", "L(C(6,{1,2}))" };
	struct rng rng;
	int refused = 0, valid = 0;

	(void)state;
	rng_seed(&rng, 18);
	for (int i = 0; i < MUTATIONS; i++) {
		struct coll_sched *s = bfb(i % 2 ? COLL_ALLREDUCE : COLL_ALLGATHER, exprs[i % 3]);
		struct coll_sched *changed = NULL, *flat;
		struct err err = { 0 };
		struct buf b = { 0 };

		coll_to_json(s, &b);
		mutate(&rng, b.data, b.len);
		if (coll_from_bytes(b.data, b.len, &changed, &err)) {
			assert_true(err.msg[0] != '\0');
			refused++;
		} else if (!coll_unfold(changed, &flat, &err)) {
			int rc = coll_verify(changed, NULL, &err);

			assert_int_equal(rc, coll_verify(flat, NULL, NULL));
			refused += rc != 0;
			valid += rc == 0;
			coll_free(flat);
		}
		buf_fini(&b);
		coll_free(changed);
		coll_free(s);
	}
	assert_true(refused > MUTATIONS / 2);
	assert_true(valid > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_graphs),
		cmocka_unit_test(test_all_to_all),
		cmocka_unit_test(test_transforms),
		cmocka_unit_test(test_groups_refused),
		cmocka_unit_test(test_no_automorphism),
		cmocka_unit_test(test_routes_from_memories),
		cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
