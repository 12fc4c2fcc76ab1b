/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that are slower than their links: rates in closed form, exactly. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/flow/flow.h"
#include "tests/unit/schedule/common.h"

/* The congestion must be p/q exactly. */
static void assert_congestion(const char *expr, int64_t host, int64_t scale,
			      bool nic, unsigned long p, unsigned long q)
{
	struct mcf_options opt = { .gap = 0 };
	struct topo *t = graph_of(expr), *split;
	struct mcf_proof *proof;
	struct mcf_result res;
	struct err err = { 0 };
	struct mcf *flow;
	mpq_t want;

	mpq_init(want);
	mpq_set_ui(want, p, q);
	mpq_canonicalize(want);
	must(mcf_split_hosts(t, host, scale, nic, &split, &err), &err);
	must(mcf_new(split, true, &flow, &err), &err);
	assert_int_equal(topo_ranks(split), topo_n(t));
	must(mcf_exact(flow, split, &opt, &res, &proof, &err), &err);
	assert_non_null(proof);
	if (mpq_cmp(proof->congestion, want) != 0) {
		fail_msg("%s, hosts %lld/%lld: %g, not %lu/%lu", expr,
			 (long long)host, (long long)scale,
			 mpq_get_d(proof->congestion), p, q);
	}
	mpq_clear(want);
	mcf_proof_free(proof);
	mcf_free(flow);
	topo_free(split);
	topo_free(t);
}

/* Hypercube(3): 7 shards leave a host, 12 hops a node, links alone U = 4. */
static void test_forwarding(void **state)
{
	(void)state;
	assert_congestion("Hypercube(3)", 3, 1, false, 4, 1);
	assert_congestion("Hypercube(3)", 1, 1, false, 12, 1);
	assert_congestion("Hypercube(3)", 1, 1, true, 7, 1);
	assert_congestion("Hypercube(3)", 2, 1, true, 4, 1);
	/* Half a link: capacities doubled. */
	assert_congestion("Hypercube(3)", 1, 2, false, 12, 1);
	assert_congestion("Hypercube(3)", 3, 2, true, 7, 3);
}

/* Nothing is forwarded where every pair has a link. */
static void test_complete(void **state)
{
	(void)state;
	for (int nic = 0; nic < 2; nic++) {
		assert_congestion("K(6)", 5, 1, nic, 1, 1);
		assert_congestion("K(6)", 2, 1, nic, 5, 2);
	}
}

static void test_switches_stay(void **state)
{
	struct err err = { 0 };
	struct topo *t, *split;

	(void)state;
	must(topo_new(3, &t, &err), &err);
	topo_set_node(t, 2, TOPO_SWITCH, 0);
	for (int u = 0; u < 2; u++) {
		must(topo_add_arc(t, u, 2, 4, 0, &err), &err);
		must(topo_add_arc(t, 2, u, 4, 0, &err), &err);
	}
	topo_freeze(t);
	must(mcf_split_hosts(t, 1, 1, false, &split, &err), &err);
	assert_true(topo_find_arc(split, 3, 2) >= 0);
	assert_true(topo_find_arc(split, 2, 6) >= 0);
	assert_int_equal(topo_node_kind(split, 2), TOPO_SWITCH);
	topo_free(split);
	assert_int_equal(mcf_split_hosts(t, 0, 1, false, &split, &err),
			 WEFT_EINVAL);
	assert_null(split);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forwarding),
		cmocka_unit_test(test_complete),
		cmocka_unit_test(test_switches_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
