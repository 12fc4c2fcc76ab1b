/* SPDX-License-Identifier: Apache-2.0 */
/* Faults: their text, when they strike, and the same again for one seed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "drivers/emulators/core/fault.h"

static void set_up(struct faults *f, struct xc_map *m, enum drv_kind kind)
{
	memset(f, 0, sizeof(*f));
	xc_map_init(m, kind, 8, 4, false);
	f->mem = m;
	rng_seed(&f->rng, 1);
}

static void tear_down(struct faults *f, struct xc_map *m)
{
	faults_fini(f);
	xc_map_fini(m);
}

static void refuses_what_it_does_not_know(void **state)
{
	static const char *const bad[] = {
		"", "foo", "silence=1", "drop-set=0", "drop-set=x", "slow",
		"slow=1x", "port-failed", "port-failed=i8", "port-failed=o4",
		"port-failed=x1", "port-failed=i", "no-wave=1:1",
		"silence~1001", "silence~", "drop-set=1=2",
	};
	struct faults f;
	struct xc_map m;

	(void)state;
	set_up(&f, &m, DRV_SPACE);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err err = { 0 };

		if (faults_add(&f, bad[i], &err) != WEFT_EINVAL) {
			fail_msg("'%s' was taken", bad[i]);
		}
		assert_true(err.msg[0] != '\0');
	}
	assert_int_equal(f.n, 0);
	tear_down(&f, &m);
}

static void an_event_strikes_once(void **state)
{
	struct faults f;
	struct xc_map m;

	(void)state;
	set_up(&f, &m, DRV_SPACE);
	assert_int_equal(faults_add(&f, "drop-set=3", NULL), 0);
	assert_false(faults_strike(&f, FAULT_DROP_SET, NULL));
	assert_false(faults_strike(&f, FAULT_EAT_SET, NULL));
	assert_false(faults_strike(&f, FAULT_DROP_SET, NULL));
	assert_true(faults_strike(&f, FAULT_DROP_SET, NULL));
	assert_false(faults_strike(&f, FAULT_DROP_SET, NULL));
	tear_down(&f, &m);
}

static void a_level_holds_until_cleared(void **state)
{
	struct faults f;
	struct xc_map m;
	int64_t ms;

	(void)state;
	set_up(&f, &m, DRV_SPACE);
	assert_int_equal(faults_add(&f, "slow=25", NULL), 0);
	assert_int_equal(faults_add(&f, "port-failed=o1", NULL), 0);
	for (int i = 0; i < 3; i++) {
		assert_true(faults_hold(&f, FAULT_SLOW, &ms));
		assert_int_equal(ms, 25);
		assert_true(faults_hold_port(&f, FAULT_PORT_FAILED, 9));
		assert_false(faults_hold_port(&f, FAULT_PORT_FAILED, 1));
	}
	faults_clear(&f);
	assert_false(faults_hold(&f, FAULT_SLOW, &ms));
	assert_false(faults_hold_port(&f, FAULT_PORT_FAILED, 9));
	tear_down(&f, &m);
}

static void places_are_of_rings(void **state)
{
	struct faults f;
	struct xc_map m;

	(void)state;
	set_up(&f, &m, DRV_RING);
	assert_int_equal(faults_add(&f, "no-wave=7:3", NULL), 0);
	assert_int_equal(faults_add(&f, "no-wave=8:3", NULL), WEFT_EINVAL);
	assert_int_equal(faults_add(&f, "no-wave=7:4", NULL), WEFT_EINVAL);
	assert_int_equal(faults_add(&f, "port-failed=i0", NULL), WEFT_EINVAL);
	assert_true(faults_hold_place(&f, FAULT_NO_WAVE, 7, 3));
	assert_false(faults_hold_place(&f, FAULT_NO_WAVE, 3, 3));
	tear_down(&f, &m);
}

static void a_path_is_an_input_and_an_output(void **state)
{
	static const char *const wrong[] = {
		"misrouted", "misrouted=i1", "misrouted=i8:o0", "misrouted=i0:o8",
		"misrouted=o1:i2", "misrouted=1:2",
	};
	struct faults f;
	struct xc_map m;

	(void)state;
	set_up(&f, &m, DRV_SPACE);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(faults_add(&f, wrong[i], NULL), WEFT_EINVAL);
	}
	assert_int_equal(faults_add(&f, "misrouted=i1:o3", NULL), 0);
	assert_int_equal(faults_hold_path(&f, FAULT_MISROUTED, 1), 3);
	assert_int_equal(faults_hold_path(&f, FAULT_MISROUTED, 3), -1);
	tear_down(&f, &m);
}

static void chance_follows_the_seed(void **state)
{
	struct faults a, b;
	struct xc_map m, m2;
	int hits = 0;

	(void)state;
	set_up(&a, &m, DRV_SPACE);
	set_up(&b, &m2, DRV_SPACE);
	assert_int_equal(faults_add(&a, "drop-set~250", NULL), 0);
	assert_int_equal(faults_add(&b, "drop-set~250", NULL), 0);
	for (int i = 0; i < 1000; i++) {
		bool hit = faults_strike(&a, FAULT_DROP_SET, NULL);

		assert_int_equal(hit, faults_strike(&b, FAULT_DROP_SET, NULL));
		hits += hit;
	}
	assert_in_range(hits, 150, 350);
	tear_down(&a, &m);
	tear_down(&b, &m2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_it_does_not_know),
		cmocka_unit_test(an_event_strikes_once),
		cmocka_unit_test(a_level_holds_until_cleared),
		cmocka_unit_test(places_are_of_rings),
		cmocka_unit_test(a_path_is_an_input_and_an_output),
		cmocka_unit_test(chance_follows_the_seed),
	};

	return cmocka_run_group_tests_name("emulators/fault", tests, NULL,
					   NULL);
}
