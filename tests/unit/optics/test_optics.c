/* SPDX-License-Identifier: Apache-2.0 */
/* drivers/light: order and merging of ring programs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/optics/optics.h"
#include "lib/base/number/rng.h"

static struct ring_settings program(uint32_t steps, size_t n,
				    const struct ring_setting *v)
{
	struct ring_settings p = { .steps = steps, .n = n };

	p.v = malloc((n ? n : 1) * sizeof(*v));
	assert_non_null(p.v);
	if (n) {
		memcpy(p.v, v, n * sizeof(*v));
	}
	return p;
}

static struct ring_setting tune(int step, int node, int dir, int fibre,
				int channel, int mode)
{
	return (struct ring_setting){
		.step = (uint16_t)step, .node = (uint16_t)node,
		.channel = (uint16_t)channel, .dir = (uint8_t)dir,
		.fibre = (uint8_t)fibre, .mode = (uint8_t)mode };
}

static void order_is_step_node_dir_fibre_channel(void **state)
{
	const struct ring_setting up[] = {
		tune(0, 9, 1, 9, 9, RESONATOR_ADD), tune(1, 0, 1, 9, 9, RESONATOR_ADD),
		tune(1, 1, 0, 9, 9, RESONATOR_ADD), tune(1, 1, 1, 0, 9, RESONATOR_ADD),
		tune(1, 1, 1, 1, 0, RESONATOR_ADD), tune(1, 1, 1, 1, 1, RESONATOR_ADD),
	};

	(void)state;
	for (int i = 0; i < 6; i++) {
		for (int j = 0; j < 6; j++) {
			int c = ring_setting_cmp(&up[i], &up[j]);

			assert_int_equal((c > 0) - (c < 0), (i > j) - (i < j));
		}
	}
}

static void normalise_sorts_any_order(void **state)
{
	enum { N = 5000 };
	struct ring_setting v[N];
	struct ring_settings p;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7);
	for (int i = 0; i < N; i++) {
		v[i] = tune(i % 300, i / 300, i & 1, i % 3, i % 777,
			    RESONATOR_DROP);
	}
	for (int i = N - 1; i > 0; i--) {
		int j = (int)rng_below(&rng, (uint64_t)i + 1);
		struct ring_setting t = v[i];

		v[i] = v[j];
		v[j] = t;
	}
	p = program(300, N, v);
	assert_int_equal(ring_settings_normalise(&p, NULL), 0);
	assert_int_equal(p.n, N);
	for (size_t i = 1; i < p.n; i++) {
		assert_true(ring_setting_cmp(&p.v[i - 1], &p.v[i]) < 0);
	}
	ring_settings_fini(&p);
}

static void normalise_merges_add_and_drop(void **state)
{
	const struct ring_setting v[] = {
		tune(1, 2, 0, 0, 3, RESONATOR_DROP), tune(0, 2, 0, 0, 3, RESONATOR_ADD),
		tune(1, 2, 0, 0, 3, RESONATOR_ADD),
	};
	struct ring_settings p = program(2, 3, v);

	(void)state;
	assert_int_equal(ring_settings_normalise(&p, NULL), 0);
	assert_int_equal(p.n, 2);
	assert_int_equal(p.v[0].mode, RESONATOR_ADD);
	assert_int_equal(p.v[1].mode, RESONATOR_ADD_DROP);
	ring_settings_fini(&p);
}

static void normalise_names_a_double_use(void **state)
{
	const struct ring_setting v[] = {
		tune(1, 2, 0, 0, 3, RESONATOR_DROP),
		tune(1, 2, 0, 0, 3, RESONATOR_ADD_DROP),
	};
	struct ring_settings p = program(2, 2, v);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(ring_settings_normalise(&p, &err), WEFT_EINVAL);
	assert_string_equal(err.msg, "step 1 node 2 channel 3 is dropped twice");
	ring_settings_fini(&p);
}

static void normalise_refuses_what_is_outside(void **state)
{
	const struct ring_setting bad[] = {
		tune(2, 0, 0, 0, 0, RESONATOR_ADD), tune(0, 0, 2, 0, 0, RESONATOR_ADD),
		tune(0, 0, 0, 0, 0, 0), tune(0, 0, 0, 0, 0, 4),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ring_settings p = program(2, 1, &bad[i]);

		assert_int_equal(ring_settings_normalise(&p, NULL),
				 WEFT_EINVAL);
		ring_settings_fini(&p);
	}
}

static void xcs_sort_by_in_then_out(void **state)
{
	struct optics_xc v[] = { { 2, 1 }, { 1, 9 }, { 1, 3 } };

	(void)state;
	qsort(v, 3, sizeof(v[0]), optics_xc_cmp);
	assert_int_equal(v[0].out, 3);
	assert_int_equal(v[1].out, 9);
	assert_int_equal(v[2].in, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_is_step_node_dir_fibre_channel),
		cmocka_unit_test(normalise_sorts_any_order),
		cmocka_unit_test(normalise_merges_add_and_drop),
		cmocka_unit_test(normalise_names_a_double_use),
		cmocka_unit_test(normalise_refuses_what_is_outside),
		cmocka_unit_test(xcs_sort_by_in_then_out),
	};

	return cmocka_run_group_tests_name("optics/optics", tests, NULL, NULL);
}
