/* SPDX-License-Identifier: Apache-2.0 */
/* lib/base/units: exact parsing, refusals, shortest text, round trips. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "lib/base/number/units.h"

static void parse_good(void **state)
{
	static const struct {
		enum unit_kind kind;
		const char *text;
		int64_t value;
	} cases[] = {
		{ UNIT_BYTES, "0B", 0 },
		{ UNIT_BYTES, "1.5MB", 1500000 },
		{ UNIT_BYTES, "4KB", 4000 },
		{ UNIT_BYTES, "1MiB", 1048576 },
		{ UNIT_BYTES, "0.5KiB", 512 },
		{ UNIT_BYTES, " 4 GB ", 4000000000 },
		{ UNIT_BYTES, "9223372036854775807B", INT64_MAX },
		{ UNIT_BYTES, "1.0000000000000000000000000000000TB",
		  1000000000000 },
		{ UNIT_BPS, "100Gbps", 100000000000 },
		{ UNIT_BPS, ".5Tbps", 500000000000 },
		{ UNIT_BPS, "50GB/s", 400000000000 },
		{ UNIT_BPS, "400Gb/s", 400000000000 },
		{ UNIT_BPS, "0.125 B/s", 1 },
		{ UNIT_BPS, "12.5 MB/s", 100000000 },
		{ UNIT_BPS, "1KB/s", 8000 },
		{ UNIT_BPS, "1kB/s", 8000 },
		{ UNIT_BPS, "1.5KiB/s", 12288 },
		{ UNIT_BPS, "1TiB/s", 8796093022208 },
		{ UNIT_BPS, "1b/s", 1 },
		{ UNIT_NS, "25 us", 25000 },
		{ UNIT_NS, "0.001us", 1 },
		{ UNIT_NS, "1.5min", 90000000000 },
		{ UNIT_NS, "2h", 7200000000000 },
		{ UNIT_MDB, "3.25dB", 3250 },
		{ UNIT_MDB, "-0.5 dB", -500 },
		{ UNIT_MDBM, "-3dBm", -3000 },
		{ UNIT_PPM, "75%", 750000 },
		{ UNIT_PPM, "0.0001 %", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t value = -1;

		assert_int_equal(unit_parse(cases[i].kind, cases[i].text,
					    &value, NULL), 0);
		assert_int_equal(value, cases[i].value);
	}
}

static void parse_bad(void **state)
{
	static const struct {
		enum unit_kind kind;
		const char *text, *says;
	} cases[] = {
		{ UNIT_BYTES, "5", "no unit" },
		{ UNIT_BYTES, "", "not a size" },
		{ UNIT_BYTES, "MB", "not a size" },
		{ UNIT_BYTES, "-1B", "negative" },
		{ UNIT_BYTES, "1Kb", "kB" },
		{ UNIT_NS, "1KB", "ns" },
		{ UNIT_BYTES, "1mb", "unknown unit" },
		{ UNIT_BYTES, "1.5B", "whole" },
		{ UNIT_BYTES, "1..5kB", "unknown unit" },
		{ UNIT_BYTES, "1e3B", "unknown unit" },
		{ UNIT_BYTES, "0x10B", "unknown unit" },
		{ UNIT_BYTES, "1 B B", "unknown unit" },
		{ UNIT_BYTES, "9223372036854775808B", "too large" },
		{ UNIT_BYTES, "99999999999999999999999B", "not a size" },
		{ UNIT_BYTES, "9000000000000TiB", "too large" },
		{ UNIT_BYTES, "8388607.999999TiB", "whole" },
		{ UNIT_BPS, "10G", "bps" },
		{ UNIT_BPS, "10GB", "GB/s" },
		{ UNIT_BPS, "1KB", "unknown unit" },
		{ UNIT_BPS, "1KB/", "unknown unit" },
		{ UNIT_BPS, "1KB/sec", "unknown unit" },
		{ UNIT_BPS, "1Kb/s", "unknown unit" },
		{ UNIT_BPS, "0.1B/s", "whole number of bps" },
		{ UNIT_BPS, "1048576TiB/s", "too large" },
		{ UNIT_BYTES, "1B/s", "unknown unit" },
		{ UNIT_NS, "0.5ns", "whole" },
		{ UNIT_NS, "1d", "min or h" },
		{ UNIT_MDB, "0.0001dB", "thousandths" },
		{ UNIT_MDB, "3dBm", "expected dB" },
		{ UNIT_MDBM, "3dB", "expected dBm" },
		{ UNIT_NS, "--1s", "not a time" },
		{ UNIT_NS, ".s", "not a time" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { 0 };
		int64_t value;

		assert_int_equal(unit_parse(cases[i].kind, cases[i].text,
					    &value, &err), WEFT_EINVAL);
		if (!strstr(err.msg, cases[i].says)) {
			fail_msg("%s: %s", cases[i].text, err.msg);
		}
	}
}

static void text(void **state)
{
	static const struct {
		enum unit_kind kind;
		int64_t value;
		const char *text;
	} cases[] = {
		{ UNIT_BYTES, 0, "0B" },
		{ UNIT_BYTES, 1000, "1kB" },
		{ UNIT_BYTES, 1048576, "1MiB" },
		{ UNIT_BYTES, 65536, "64KiB" },
		{ UNIT_BYTES, 1536, "1536B" },
		{ UNIT_BYTES, 1024000, "1024kB" },
		{ UNIT_BYTES, 1500000, "1.5MB" },
		{ UNIT_BPS, 100000000000, "100Gbps" },
		{ UNIT_BPS, 8000, "8kbps" },
		{ UNIT_BPS, 8 << 20, "8388608bps" },
		{ UNIT_NS, 25000, "25us" },
		{ UNIT_NS, 100000000, "100ms" },
		{ UNIT_NS, 1, "1ns" },
		{ UNIT_NS, 60000000000, "60s" },
		{ UNIT_NS, 3600000000000, "1h" },
		{ UNIT_NS, INT64_MAX, "9223372036854775807ns" },
		{ UNIT_MDB, 250, "0.25dB" },
		{ UNIT_MDB, -3000, "-3dB" },
		{ UNIT_MDBM, 1, "0.001dBm" },
		{ UNIT_MDBM, INT64_MIN, "-9223372036854775.808dBm" },
	};
	char buf[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_string_equal(unit_str(cases[i].kind, cases[i].value,
					     buf, sizeof(buf)), cases[i].text);
	}
	unit_str(UNIT_BYTES, 1048576, buf, 3);
	assert_string_equal(buf, "1M");
}

static void text_reads_back(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 4);
	for (int i = 0; i < 20000; i++) {
		enum unit_kind kind = (enum unit_kind)rng_below(&rng, 5);
		int64_t value = (int64_t)(rng_u64(&rng) >>
					  (1 + rng_below(&rng, 63)));
		int64_t back = -1;
		struct err err;
		char buf[64];

		for (int k = (int)rng_below(&rng, 6); k > 0; k--) {
			if (value < INT64_MAX / 1000) {
				value *= rng_below(&rng, 2) ? 10 : 60;
			}
		}
		unit_str(kind, value, buf, sizeof(buf));
		if (unit_parse(kind, buf, &back, &err)) {
			fail_msg("%s", err.msg);
		}
		assert_int_equal(back, value);
	}
}

static void human(void **state)
{
	static const struct {
		enum unit_kind kind;
		double value;
		const char *text;
	} cases[] = {
		{ UNIT_NS, 13.2e6, "13.2 ms" },
		{ UNIT_BYTES, 4194304, "4.19 MB" },
		{ UNIT_BYTES, 0, "0 B" },
		{ UNIT_BYTES, 999, "999 B" },
		{ UNIT_BYTES, 999.6, "1 kB" },
		{ UNIT_BYTES, 1e15, "1000 TB" },
		{ UNIT_NS, 0.123, "0.12 ns" },
		{ UNIT_NS, 217e6, "217 ms" },
		{ UNIT_NS, 9.996e6, "10 ms" },
		{ UNIT_NS, 90e9, "1.5 min" },
		{ UNIT_BPS, 100e9, "100 Gbps" },
		{ UNIT_MDB, -1500, "-1.5 dB" },
		{ UNIT_MDBM, 30000, "30 dBm" },
	};
	char buf[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_string_equal(unit_human(cases[i].kind, cases[i].value,
					       buf, sizeof(buf)),
				    cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_good),
		cmocka_unit_test(parse_bad),
		cmocka_unit_test(text),
		cmocka_unit_test(text_reads_back),
		cmocka_unit_test(human),
	};

	return cmocka_run_group_tests_name("base/units", tests, NULL, NULL);
}
