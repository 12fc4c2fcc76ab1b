/* SPDX-License-Identifier: Apache-2.0 */
/* Exit codes: verdicts and errors to numbers, and names of enumerations. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "controller/cli/core/private.h"

static void test_errors(void **state)
{
	(void)state;
	assert_int_equal(cli_exit_code(0), 0);
	assert_int_equal(cli_exit_code(CLI_PENDING), 2);
	assert_int_equal(cli_exit_code(WEFT_EUSAGE), 64);
	assert_int_equal(cli_exit_code(WEFT_EINVAL), 65);
	assert_int_equal(cli_exit_code(WEFT_EUNSUPPORTED), 65);
	assert_int_equal(cli_exit_code(WEFT_EUNAVAIL), 69);
	assert_int_equal(cli_exit_code(WEFT_ESTALE), 75);
	assert_int_equal(cli_exit_code(WEFT_EDENIED), 77);
	assert_int_equal(cli_exit_code(WEFT_ETIMEOUT), 124);
	assert_int_equal(cli_exit_code(WEFT_EINTERNAL), 1);
}

static void test_verdicts(void **state)
{
	(void)state;
	assert_int_equal(cli_exit_verdict(
		WEFT__V1__VERDICT__VERDICT_NOTHING_TO_DO, 0), 0);
	assert_int_equal(cli_exit_verdict(
		WEFT__V1__VERDICT__VERDICT_COMMITTED, 0), 0);
	assert_int_equal(cli_exit_verdict(
		WEFT__V1__VERDICT__VERDICT_REFUSED, WEFT_EDEVICE), 1);
	assert_int_equal(cli_exit_verdict(
		WEFT__V1__VERDICT__VERDICT_REFUSED, WEFT_EUNAVAIL), 69);
	assert_int_equal(cli_exit_verdict(
		WEFT__V1__VERDICT__VERDICT_REFUSED, 0), 1);
	assert_int_equal(cli_exit_verdict(
		WEFT__V1__VERDICT__VERDICT_ROLLED_BACK, WEFT_ETIMEOUT), 3);
	assert_int_equal(cli_exit_verdict(
		WEFT__V1__VERDICT__VERDICT_STUCK, WEFT_EUNAVAIL), 4);
	/* a verdict from a newer weftd is never taken for success */
	assert_int_equal(cli_exit_verdict((Weft__V1__Verdict)99, 0), 1);
}

static void test_table_explains_every_code(void **state)
{
	static const int codes[] = {
		WEFT_EINVAL, WEFT_EUSAGE, WEFT_EIO,
		WEFT_ENOTFOUND, WEFT_ESTALE, WEFT_EDENIED, WEFT_EUNAVAIL,
		WEFT_ETIMEOUT, WEFT_ECANCELED, WEFT_EUNSUPPORTED,
		WEFT_EINFEASIBLE, WEFT_EVERIFY, WEFT_ELIMIT, WEFT_EDEVICE,
		WEFT_EINTERNAL,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		bool found = false;

		for (const struct cli_exit *e = cli_exits; e->name; e++) {
			found |= e->code == err_exit_code(codes[i]);
		}
		if (!found) {
			fail_msg("%s", err_name(codes[i]));
		}
	}
}

static void test_enum_names(void **state)
{
	char text[32];

	(void)state;
	assert_string_equal(msg_enum(&weft__v1__device_kind__descriptor,
				     WEFT__V1__DEVICE_KIND__DEVICE_KIND_RING,
				     text, sizeof(text)), "ring");
	assert_string_equal(msg_enum(&weft__v1__proof__descriptor,
				     WEFT__V1__PROOF__PROOF_READ_BACK, text,
				     sizeof(text)), "read-back");
	assert_string_equal(msg_enum(&weft__v1__verdict__descriptor,
				     WEFT__V1__VERDICT__VERDICT_ROLLED_BACK,
				     text, sizeof(text)), "rolled-back");
	assert_string_equal(msg_enum(&weft__v1__proof__descriptor, 77, text,
				     sizeof(text)), "77");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_table_explains_every_code),
		cmocka_unit_test(test_enum_names),
	};

	return cmocka_run_group_tests_name("cli/exit", tests, NULL, NULL);
}
