/* SPDX-License-Identifier: Apache-2.0 */
/* lib/base: rat, rng, clk, log. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/number/rat.h"
#include "lib/base/number/rng.h"

static void rationals_are_canonical(void **state)
{
	static const struct {
		int64_t num, den;
		const char *text;
	} cases[] = {
		{ 682, 512, "341/256" }, { 4, 2, "2" }, { 0, -7, "0" },
		{ 3, -6, "-1/2" }, { -3, -6, "1/2" },
		{ INT64_MIN, 1, "-9223372036854775808" },
		{ INT64_MIN, INT64_MIN, "1" },
		{ 1, INT64_MIN, "-1/9223372036854775808" },
		{ INT64_MAX, 2, "9223372036854775807/2" },
	};
	char text[64];
	mpq_t q, back;

	(void)state;
	mpq_inits(q, back, NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rat_set(q, cases[i].num, cases[i].den);
		assert_string_equal(rat_str(q, text, sizeof(text)),
				    cases[i].text);
		assert_int_equal(rat_parse(back, text), 0);
		assert_true(mpq_equal(q, back));
	}
	rat_set(q, 341, 256);
	assert_string_equal(rat_str(q, text, 4), "341");
	assert_int_equal(rat_parse(q, "-10/4"), 0);
	assert_string_equal(rat_str(q, text, sizeof(text)), "-5/2");
	mpq_clears(q, back, NULL);
}

static void bad_rationals(void **state)
{
	static const char *const cases[] = {
		"", "-", "/", "1/", "/2", "1/0", "1/-2", "+1", " 1", "1 ",
		"1/2/3", "--1", "1-2", "0x10", "1.5", "1e3", "a", "1 /2",
		"-/2",
	};
	char big[1500];
	mpq_t q;

	(void)state;
	mpq_init(q);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mpq_set_ui(q, 7, 1);
		if (rat_parse(q, cases[i]) != WEFT_EINVAL) {
			fail_msg("'%s' was accepted", cases[i]);
		}
		assert_true(mpz_sgn(mpq_denref(q)) > 0);
	}
	memset(big, '1', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(rat_parse(q, big), WEFT_EINVAL);
	mpq_clear(q);
}

/* Published outputs of splitmix64: plans with a seed must not change. */
static void random_sequence_is_fixed(void **state)
{
	static const uint64_t want[] = {
		6457827717110365317u, 3203168211198807973u,
		9817491932198370423u, 4593380528125082431u,
		16408922859458223821u,
	};
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1234567);
	for (int i = 0; i < 5; i++) {
		assert_true(rng_u64(&rng) == want[i]);
	}
}

static void random_below_is_fair(void **state)
{
	int count[7] = { 0 };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1);
	for (int i = 0; i < 70000; i++) {
		count[rng_below(&rng, 7)]++;
	}
	for (int i = 0; i < 7; i++) {
		assert_in_range(count[i], 9500, 10500);
	}
	for (int i = 0; i < 100; i++) {
		assert_int_equal(rng_below(&rng, 1), 0);
		assert_true(rng_below(&rng, UINT64_MAX) < UINT64_MAX);
	}
}

static void clocks(void **state)
{
	char text[32];
	int64_t a = clk_now_ns(), b = clk_now_ns();

	(void)state;
	assert_true(b >= a);
	assert_true(clk_wall_ns() > 1700000000LL * 1000000000);
	assert_string_equal(clk_iso(1769860800123999999, text, sizeof(text)),
			    "2026-01-31T12:00:00.123Z");
	assert_string_equal(clk_iso(0, text, sizeof(text)),
			    "1970-01-01T00:00:00.000Z");
}

/* A part may pass before its whole or after it, and notes it in the same place. */
static void deadlines(void **state)
{
	const int64_t hour_ns = INT64_C(3600000000000);
	atomic_bool met = false;
	struct deadline never = deadline_in(0, &met), late = deadline_in(hour_ns, &met);
	struct deadline endless = deadline_in(INT64_MAX, NULL), part;

	(void)state;
	part = deadline_part(&never, 1);
	assert_false(deadline_passed(&never) || deadline_passed(&part));
	assert_int_equal(deadline_left_ns(&never), 0);
	assert_false(deadline_passed(&late) || deadline_passed(&endless));
	assert_in_range(deadline_left_ns(&late), 1, hour_ns);
	part = deadline_part(&late, 2 * hour_ns);
	assert_true(deadline_left_ns(&part) > hour_ns);
	assert_false(met);
	part = deadline_part(&late, 0);
	while (!deadline_passed(&part)) {
	}
	assert_true(met);
	assert_int_equal(deadline_left_ns(&part), 0);
}

static char last_line[2048];
static int lines;

static void sink(enum log_level level, const char *room, const char *line,
		 const struct log_field *fields, int n_fields)
{
	(void)level;
	assert_true((n_fields == 0) == (fields == NULL));
	if (n_fields > 0) {
		assert_int_equal(n_fields, 1);
		assert_string_equal(fields[0].name, "device");
		assert_string_equal(fields[0].value, "ocs0");
	}
	assert_string_equal(room, "test");
	strcpy(last_line, line);
	lines++;
}

static void log_levels_and_lines(void **state)
{
	char big[3000];

	(void)state;
	log_set_sink(sink);
	log_info("test", "dropped");
	assert_int_equal(lines, 0);
	log_warn("test", "kept %d", 1);
	assert_string_equal(last_line, "kept 1");
	log_set_level(LOG_DEBUG);
	log_debug("test", "a\nb\tc\x1b[31m\x7f");
	assert_string_equal(last_line, "a b c [31m ");
	log_set_level(LOG_ERROR);
	log_warn("test", "dropped");
	assert_int_equal(lines, 2);
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	log_error("test", "%s", big);
	assert_int_equal(strlen(last_line), 1023);
	log_with(LOG_ERROR, "test", &(struct log_field){ "device", "ocs0" }, 1,
		 "about %s", "it");
	assert_string_equal(last_line, "about it");
	log_set_level(LOG_WARN);
	log_set_sink(NULL);
}

static enum log_level level_of(const char *room)
{
	enum log_level level = LOG_ERROR;
	const char *name;

	for (int i = 0; (name = log_room(i, &level)); i++) {
		if (strcmp(name, room) == 0) {
			return level;
		}
	}
	fail_msg("no room is called %s", room);
	return level;
}

static void log_levels_of_rooms(void **state)
{
	static const char *const bad[] = {
		"", "loud", "apply=", "apply=loud", "=debug", "nowhere=debug",
		"debug,", ",debug", "debug,loud", "apply=debug,rpc", "Debug",
		"apply =debug", "apply=debug=debug",
	};
	struct err err = { 0 };

	(void)state;
	assert_int_equal(log_set_levels("info,apply=debug,rpc=error", &err), 0);
	assert_int_equal(level_of("apply"), LOG_DEBUG);
	assert_int_equal(level_of("rpc"), LOG_ERROR);
	assert_int_equal(level_of("weftd"), LOG_INFO);
	assert_int_equal(log_set_levels("apply=warn", &err), 0);
	assert_int_equal(level_of("apply"), LOG_WARN);
	assert_int_equal(level_of("rpc"), LOG_ERROR);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(log_set_levels(bad[i], &err), WEFT_EINVAL);
		assert_int_equal(level_of("apply"), LOG_WARN);
		assert_int_equal(level_of("weftd"), LOG_INFO);
	}
	lines = 0;
	log_set_sink(sink);
	assert_int_equal(log_set_levels("error,other=info", &err), 0);
	log_info("test", "other rooms are \"other\"");
	assert_int_equal(lines, 1);
	log_set_level(LOG_WARN);
	log_set_sink(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rationals_are_canonical),
		cmocka_unit_test(bad_rationals),
		cmocka_unit_test(random_sequence_is_fixed),
		cmocka_unit_test(random_below_is_fair),
		cmocka_unit_test(clocks),
		cmocka_unit_test(deadlines),
		cmocka_unit_test(log_levels_and_lines),
		cmocka_unit_test(log_levels_of_rooms),
	};

	return cmocka_run_group_tests_name("base/numbers", tests, NULL, NULL);
}
