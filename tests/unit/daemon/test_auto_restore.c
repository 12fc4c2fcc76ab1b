/* SPDX-License-Identifier: Apache-2.0 */
/* checklist 16: when a circuit that another user removed is restored. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "controller/daemon/change/private.h"
#include "lib/base/number/rng.h"

#define S INT64_C(1000000000)
#define NOW (1000000 * S)

static struct store_external_change gone(int64_t ago_ns)
{
	return (struct store_external_change){ .id = 1, .kind = STORE_EXTERNAL_GONE,
				       .noticed_ns = NOW - ago_ns };
}

static struct store_external_change ended(enum store_external_outcome outcome,
				  int64_t change, int64_t ago_ns)
{
	struct store_external_change f = gone(ago_ns + S);

	f.outcome = outcome;
	f.change = change;
	f.resolved_ns = NOW - ago_ns;
	return f;
}

static void nothing_is_due(void **state)
{
	struct store_external_change v[] = { gone(S), ended(STORE_EXTERNAL_RESTORED, 3,
						    20 * S) };
	int64_t at;

	(void)state;
	assert_int_equal(restore_decide(NULL, 0, S, 0, 0, NOW, &at),
			 RESTORE_NOTHING);
	assert_int_equal(restore_decide(v + 1, 1, S, 0, 0, NOW, &at),
			 RESTORE_NOTHING);
	/* Neither a circuit that appeared, nor one that is only dark, nor a
	 * port. */
	v[0].kind = STORE_EXTERNAL_APPEARED;
	assert_int_equal(restore_decide(v, 1, S, 0, 0, NOW, &at),
			 RESTORE_NOTHING);
	v[0].kind = STORE_EXTERNAL_DARK;
	assert_int_equal(restore_decide(v, 1, S, 0, 0, NOW, &at),
			 RESTORE_NOTHING);
	v[0].kind = STORE_EXTERNAL_DISABLED;
	assert_int_equal(restore_decide(v, 1, S, 0, 0, NOW, &at),
			 RESTORE_NOTHING);
	v[0].kind = STORE_EXTERNAL_PROGRAM;
	assert_int_equal(restore_decide(v, 1, S, 0, 0, NOW, &at), RESTORE_NOW);
}

static void it_waits_first(void **state)
{
	struct store_external_change v[] = { gone(S / 2), gone(S / 4) };
	int64_t at;

	(void)state;
	assert_int_equal(restore_decide(v, 2, S, 0, 0, NOW, &at),
			 RESTORE_WAIT);
	assert_int_equal(at, NOW + S / 2);
	assert_int_equal(restore_decide(v, 2, S, 0, 0, NOW + S / 2, &at),
			 RESTORE_NOW);
}

static void it_waits_longer_each_time(void **state)
{
	struct store_external_change v[] = {
		gone(5 * S), ended(STORE_EXTERNAL_RESTORED, 7, 6 * S),
		ended(STORE_EXTERNAL_RESTORED, 7, 6 * S),
		ended(STORE_EXTERNAL_RESTORED, 6, 17 * S),
	};
	int64_t at;

	(void)state;
	/* Two records of change 7 are one restore. */
	assert_int_equal(restore_decide(v, 3, S, 0, 0, NOW, &at),
			 RESTORE_WAIT);
	assert_int_equal(at, NOW - 6 * S + 10 * S);
	assert_int_equal(restore_decide(v, 4, S, 0, 0, NOW, &at),
			 RESTORE_WAIT);
	assert_int_equal(at, NOW - 6 * S + 20 * S);
	assert_int_equal(restore_decide(v, 4, S, 0, 0, NOW + 14 * S, &at),
			 RESTORE_NOW);
}

static void a_fight_is_left(void **state)
{
	struct store_external_change v[] = {
		gone(500 * S), ended(STORE_EXTERNAL_RESTORED, 7, 510 * S),
		ended(STORE_EXTERNAL_RESTORED, 6, 530 * S),
		ended(STORE_EXTERNAL_RESTORED, 5, 590 * S),
		ended(STORE_EXTERNAL_REPAIRED, 9, 520 * S),
	};
	int64_t at;

	(void)state;
	assert_int_equal(restore_decide(v, 4, S, 0, 0, NOW, &at),
			 RESTORE_GIVE_UP);
	/* The oldest is too long ago. */
	assert_int_equal(restore_decide(v, 4, S, 0, 0, NOW + 11 * S, &at),
			 RESTORE_NOW);
	/* An operator's change began it again. */
	assert_int_equal(restore_decide(v, 5, S, 0, 0, NOW, &at), RESTORE_NOW);
	/* What was given up stays so. */
	v[0].given_up = true;
	assert_int_equal(restore_decide(v, 5, S, 0, 0, NOW, &at),
			 RESTORE_NOTHING);
}

static void what_fails_backs_off(void **state)
{
	struct store_external_change v[] = { gone(5000 * S) };
	int64_t at, last = 0;

	(void)state;
	for (int tries = 1; tries < 100; tries++) {
		enum restore_verdict r = restore_decide(v, 1, S, tries, NOW,
							NOW, &at);

		assert_int_equal(r, RESTORE_WAIT);
		assert_true(at >= last);
		assert_true(at - NOW <= RESTORE_BACK_OFF_MAX_NS);
		last = at;
	}
	assert_int_equal(last - NOW, RESTORE_BACK_OFF_MAX_NS);
}

/* The order of the records says nothing. */
static void order_is_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct rng r;
		struct store_external_change v[8], w[8];
		int64_t at_v = 0, at_w = 0;
		int n = 8;

		rng_seed(&r, seed);
		for (int i = 0; i < n; i++) {
			int64_t ago = (int64_t)rng_below(&r, 700) * S;
			int what = (int)rng_below(&r, 5);

			v[i] = what ? ended((enum store_external_outcome)what,
					    (int64_t)rng_below(&r, 5) + 1, ago)
				    : gone(ago);
			w[n - 1 - i] = v[i];
		}
		/* A change has one time. */
		for (int i = 0; i < n; i++) {
			v[i].resolved_ns = v[i].change ?
				NOW - v[i].change * 60 * S : 0;
			w[n - 1 - i] = v[i];
		}
		assert_int_equal(restore_decide(v, n, S, 0, 0, NOW, &at_v),
				 restore_decide(w, n, S, 0, 0, NOW, &at_w));
		assert_int_equal(at_v, at_w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_due),
		cmocka_unit_test(it_waits_first),
		cmocka_unit_test(it_waits_longer_each_time),
		cmocka_unit_test(a_fight_is_left),
		cmocka_unit_test(what_fails_backs_off),
		cmocka_unit_test(order_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
