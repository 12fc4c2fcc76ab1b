/* SPDX-License-Identifier: Apache-2.0 */
/* checklist 16: changes of light that weft did not make are told from its own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/unit/apply/rig.h"

static void one_switch(struct rig *r)
{
	rig_fabric(r);
	rig_switch(r, "a", "east", "");
	rig_use(r);
	assert_int_equal(r->rc, 0);
}

static const struct want first[] = {
	{ "a", 3, { { 0, 1 }, { 1, 2 }, { 2, 3 } }, NULL },
};

static const struct want second[] = {
	{ "a", 3, { { 0, 1 }, { 1, 4 }, { 6, 6 } }, NULL },
};

/* The records, newest first; *n of them. */
static struct store_external_change *records(struct rig *r, bool open, int *n)
{
	const struct store_external_query q = { .device = "a", .open = open };
	struct store_external_change *v = NULL;
	struct err err = { 0 };

	assert_int_equal(store_external_changes(r->store, &q, &v, n, &err), 0);
	return v;
}

static int count(struct rig *r, bool open)
{
	int n;

	free(records(r, open, &n));
	return n;
}

static void own_changes_are_none(void **state)
{
	struct rig *r = *state;

	one_switch(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, first, 1), APPLY_COMMITTED);
	rig_read(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, second, 1), APPLY_COMMITTED);
	rig_read(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, first, 1), APPLY_COMMITTED);
	rig_read(r);
	assert_int_equal(count(r, false), 0);
}

/* What was there before weft looked for the first time is no external change. */
static void what_was_found_is_none(void **state)
{
	struct rig *r = *state;

	one_switch(r);
	rig_meddle(r, "a", DRV_ADD, 5, 5);
	rig_down(r);
	rig_fini(r);
	rig_init(r);
	rig_up(r);
	one_switch(r);
	rig_read(r);
	assert_int_equal(count(r, false), 0);
}

static void gone_and_back(void **state)
{
	struct rig *r = *state;
	struct store_external_change *v;
	int n;

	one_switch(r);
	rig_go(r, PLAN_SAFE, first, 1);
	rig_meddle(r, "a", DRV_DEL, 1, 2);
	apply_reading_for(r->apply, STORE_BY_VERIFY);
	rig_read(r);
	rig_read(r);
	v = records(r, true, &n);
	assert_int_equal(n, 1);
	assert_int_equal(v->kind, STORE_EXTERNAL_GONE);
	assert_int_equal(v->xc.in, 1);
	assert_int_equal(v->xc.out, 2);
	assert_int_equal(v->how, STORE_BY_VERIFY);
	assert_string_equal(v->who, "unknown");
	assert_true(v->right_ns > 0 && v->right_ns < v->noticed_ns);
	free(v);
	rig_meddle(r, "a", DRV_ADD, 1, 2);
	rig_read(r);
	v = records(r, false, &n);
	assert_int_equal(n, 1);
	assert_int_equal(v->outcome, STORE_EXTERNAL_BY_ITSELF);
	assert_true(v->resolved_ns >= v->noticed_ns);
	free(v);
}

/* It moved while no weftd was there: the window is from the last reading. */
static void noticed_after_a_restart(void **state)
{
	struct rig *r = *state;
	struct store_external_change *v;
	int n;

	one_switch(r);
	rig_go(r, PLAN_SAFE, first, 1);
	rig_meddle(r, "a", DRV_DEL, 2, 3);
	rig_down(r);
	rig_up(r);
	apply_reading_for(r->apply, STORE_BY_START);
	rig_use(r);
	v = records(r, true, &n);
	assert_int_equal(n, 1);
	assert_int_equal(v->how, STORE_BY_START);
	assert_int_equal(v->xc.in, 2);
	free(v);
}

/* A device may answer only long after weftd has started. */
static void noticed_by_a_late_first_reading(void **state)
{
	struct rig *r = *state;
	struct store_external_change *v;
	int n;

	one_switch(r);
	rig_go(r, PLAN_SAFE, first, 1);
	rig_meddle(r, "a", DRV_DEL, 2, 3);
	rig_down(r);
	rig_up(r);
	apply_reading_for(r->apply, STORE_BY_POLL);
	rig_use(r);
	rig_meddle(r, "a", DRV_DEL, 1, 2);
	rig_read(r);
	v = records(r, true, &n);
	assert_int_equal(n, 2);
	assert_int_equal(v[1].how, STORE_BY_START);
	assert_int_equal(v[1].xc.in, 2);
	assert_int_equal(v[0].how, STORE_BY_POLL);
	free(v);
}

static void repaired_by_a_change(void **state)
{
	struct rig *r = *state;
	struct store_external_change *v;
	int n;

	one_switch(r);
	rig_go(r, PLAN_SAFE, first, 1);
	rig_meddle(r, "a", DRV_DEL, 1, 2);
	rig_read(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, first, 1), APPLY_COMMITTED);
	v = records(r, false, &n);
	assert_int_equal(n, 1);
	assert_int_equal(v->outcome, STORE_EXTERNAL_REPAIRED);
	assert_int_equal(v->change, r->res.change);
	free(v);
}

/* The circuit that went is not wanted any more; the one that came is. */
static void accepted_by_a_change(void **state)
{
	struct rig *r = *state;
	struct store_external_change *v;
	int n;

	one_switch(r);
	rig_go(r, PLAN_SAFE, first, 1);
	rig_meddle(r, "a", DRV_DEL, 2, 3);
	rig_meddle(r, "a", DRV_ADD, 6, 6);
	rig_read(r);
	assert_int_equal(count(r, true), 2);
	assert_int_equal(rig_go(r, PLAN_UPDATE, second, 1), APPLY_COMMITTED);
	v = records(r, false, &n);
	assert_int_equal(n, 2);
	for (int i = 0; i < n; i++) {
		assert_int_equal(v[i].outcome, STORE_EXTERNAL_ACCEPTED);
		assert_int_equal(v[i].change, r->res.change);
	}
	free(v);
}

static void remember(const struct store_external_change *v, int n, void *arg)
{
	int *told = arg;

	told[v[0].outcome == STORE_EXTERNAL_OPEN ? 0 : 1] += n;
}

static void all_are_told_once(void **state)
{
	struct rig *r = *state;
	int told[2] = { 0, 0 };

	one_switch(r);
	rig_go(r, PLAN_SAFE, first, 1);
	apply_on_external(r->apply, remember, told);
	for (int i = 0; i < 3; i++) {
		rig_meddle(r, "a", DRV_DEL, i, i + 1);
	}
	rig_read(r);
	rig_read(r);
	assert_int_equal(told[0], 3);
	rig_meddle(r, "a", DRV_ADD, 0, 1);
	rig_read(r);
	rig_read(r);
	assert_int_equal(told[0], 3);
	assert_int_equal(told[1], 1);
	assert_int_equal(count(r, true), 2);
}

/* A device that is in no configuration any more is forgotten. */
static void devices_that_go(void **state)
{
	struct rig *r = *state;

	rig_fabric(r);
	rig_switch(r, "a", "east", "");
	rig_switch(r, "b", "west", "");
	rig_use(r);
	rig_meddle(r, "b", DRV_ADD, 5, 5);
	rig_read(r);
	rig_fabric(r);
	rig_switch(r, "a", "east", "");
	assert_int_equal(rig_go(r, PLAN_SAFE, first, 1), APPLY_COMMITTED);
	assert_int_equal(count(r, true), 0);
	{
		const struct store_external_query q = { .device = "b" };
		struct store_external_change *v = NULL;
		struct err err = { 0 };
		int n;

		assert_int_equal(store_external_changes(r->store, &q, &v, &n, &err), 0);
		assert_int_equal(n, 1);
		assert_int_equal(v->kind, STORE_EXTERNAL_APPEARED);
		assert_int_equal(v->outcome, STORE_EXTERNAL_ACCEPTED);
		free(v);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(own_changes_are_none), T(what_was_found_is_none),
		T(gone_and_back), T(noticed_after_a_restart),
		T(noticed_by_a_late_first_reading),
		T(repaired_by_a_change), T(accepted_by_a_change),
		T(all_are_told_once), T(devices_that_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
