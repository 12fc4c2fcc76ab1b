/* The line core's addresses and frames; its sessions are tested through the
 * drivers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "drivers/core/tcp_session.h"

static void splits_addresses(void **state)
{
	static const struct {
		const char *text, *host;
		int port;
	} good[] = {
		{ "127.0.0.1:5025", "127.0.0.1", 5025 },
		{ "ocs0.example:1", "ocs0.example", 1 },
		{ "[::1]:65535", "::1", 65535 },
	};
	char host[32];
	int port;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(line_parse_address(good[i].text, false, host,
						    sizeof(host), &port, NULL),
				 0);
		assert_string_equal(host, good[i].host);
		assert_int_equal(port, good[i].port);
	}
	assert_int_equal(line_parse_address("h:0", true, host, sizeof(host),
					    &port, NULL), 0);
	assert_int_equal(line_parse_address("h:0", false, host, sizeof(host),
					    &port, NULL), WEFT_EINVAL);
	assert_int_equal(line_parse_address("a-name-that-is-too-long-for-it:1",
					    false, host, 16, &port, NULL),
			 WEFT_EINVAL);
}

static void frames_end_in_a_line_feed(void **state)
{
	(void)state;
	assert_int_equal(line_frame_text((const uint8_t *)"ab", 2, 0, NULL), 0);
	assert_int_equal(line_frame_text((const uint8_t *)"ab\r\ncd", 6, 0, NULL), 4);
	assert_int_equal(line_frame_text((const uint8_t *)"\n", 1, 0, NULL), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits_addresses),
		cmocka_unit_test(frames_end_in_a_line_feed),
	};

	return cmocka_run_group_tests_name("drivers/line", tests, NULL, NULL);
}
