/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, frames, and connecting to a name of several addresses; sessions
 * as such are tested through the drivers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
		assert_int_equal(tcp_parse_address(good[i].text, false, host,
						   sizeof(host), &port, NULL),
				 0);
		assert_string_equal(host, good[i].host);
		assert_int_equal(port, good[i].port);
	}
	assert_int_equal(tcp_parse_address("h:0", true, host, sizeof(host),
					   &port, NULL), 0);
	assert_int_equal(tcp_parse_address("h:0", false, host, sizeof(host),
					   &port, NULL), WEFT_EINVAL);
	assert_int_equal(tcp_parse_address("a-name-that-is-too-long-for-it:1",
					   false, host, 16, &port, NULL),
			 WEFT_EINVAL);
}

static void frames_end_in_a_line_feed(void **state)
{
	(void)state;
	assert_int_equal(tcp_frame_text((const uint8_t *)"ab", 2, 0, NULL), 0);
	assert_int_equal(tcp_frame_text((const uint8_t *)"ab\r\ncd", 6, 0, NULL), 4);
	assert_int_equal(tcp_frame_text((const uint8_t *)"\n", 1, 0, NULL), 1);
}

/* ---- names of several addresses ------------------------------------------ */

/* The resolver of this program: "A,B" is a name with the addresses A and B in
 * this order, as localhost has ::1 (here "v6", a name holds no colons) and
 * 127.0.0.1 on many machines. libuv calls it; the list is the real resolver's,
 * so the real one frees it. Objects hide their symbols: this one must be seen by libuv. */
__attribute__((visibility("default")))
int getaddrinfo(const char *node, const char *service,
		const struct addrinfo *hints, struct addrinfo **res)
{
	int (*real)(const char *, const char *, const struct addrinfo *,
		    struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
	struct addrinfo **end = res;
	char names[128], *rest = NULL;
	int rc = EAI_NONAME;

	*res = NULL;
	snprintf(names, sizeof(names), "%s", node);
	for (char *name = strtok_r(names, ",", &rest); name;
	     name = strtok_r(NULL, ",", &rest)) {
		rc = real(strcmp(name, "v6") == 0 ? "::1" : name, service,
			  hints, end);
		assert_int_equal(rc, 0);
		end = &(*end)->ai_next;
	}
	return rc;
}

/* A device that answers the first line with its own, and a session to it. */
struct bench {
	uv_loop_t loop;
	uv_tcp_t listener, peer;
	int n_peers;
	struct tcp_session *session;
	int answers, failures, rc;
	char text[512];
};

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *out)
{
	static char bytes[256];

	(void)h;
	(void)hint;
	*out = uv_buf_init(bytes, sizeof(bytes));
}

static void on_read(uv_stream_t *peer, ssize_t n, const uv_buf_t *bytes)
{
	uv_buf_t out = uv_buf_init("yes\n", 4);

	(void)bytes;
	if (n > 0) {
		assert_int_equal(uv_try_write(peer, &out, 1), 4);
	}
}

static void on_peer(uv_stream_t *listener, int status)
{
	struct bench *b = listener->data;

	assert_int_equal(status, 0);
	b->n_peers++;
	uv_tcp_init(&b->loop, &b->peer);
	assert_int_equal(uv_accept(listener, (uv_stream_t *)&b->peer), 0);
	uv_read_start((uv_stream_t *)&b->peer, on_alloc, on_read);
}

static void on_closed(void *arg)
{
	struct bench *b = arg;

	b->session = NULL;
	uv_close((uv_handle_t *)&b->listener, NULL);
	if (b->n_peers) {
		uv_close((uv_handle_t *)&b->peer, NULL);
	}
}

static void on_reply(const uint8_t *frame, size_t len, uint64_t tag, void *arg)
{
	struct bench *b = arg;

	(void)frame;
	assert_int_equal(len, 4);
	assert_int_equal(tag, 7);
	b->answers++;
	tcp_close(b->session, on_closed, b);
}

static void on_failed(int rc, const struct err *err, bool sent, void *arg)
{
	struct bench *b = arg;

	assert_false(sent);
	b->failures++;
	b->rc = rc;
	snprintf(b->text, sizeof(b->text), "%s", err->msg);
	tcp_close(b->session, on_closed, b);
}

/* Listens on `at` alone (not at all when `deaf`), then asks a device of these
 * addresses one question and waits for what becomes of it. */
static void ask(struct bench *b, const char *at, bool deaf, const char *names)
{
	struct sockaddr_in addr;
	int len = sizeof(addr);
	char address[160];
	struct tcp_conf conf = {
		.device = "ocs0", .address = address, .timeout_ms = 5000,
		.window = 1, .max_frame = 1024, .arg = b,
		.frame = tcp_frame_text, .reply = on_reply,
		.failed = on_failed,
	};
	struct err err = { 0 };

	memset(b, 0, sizeof(*b));
	assert_int_equal(uv_loop_init(&b->loop), 0);
	uv_tcp_init(&b->loop, &b->listener);
	b->listener.data = b;
	uv_ip4_addr(at, 0, &addr);
	assert_int_equal(uv_tcp_bind(&b->listener, (struct sockaddr *)&addr,
				     0), 0);
	uv_tcp_getsockname(&b->listener, (struct sockaddr *)&addr, &len);
	if (!deaf) {
		assert_int_equal(uv_listen((uv_stream_t *)&b->listener, 4,
					   on_peer), 0);
	}
	snprintf(address, sizeof(address), "%s:%d", names,
		 ntohs(addr.sin_port));
	assert_int_equal(tcp_new(&b->loop, &conf, &b->session, &err), 0);
	tcp_ask(b->session, "is anyone there?\n", 17, 7);
	assert_int_equal(uv_run(&b->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&b->loop), 0);
}

static void the_second_address_answers(void **state)
{
	struct bench b;

	(void)state;
	ask(&b, "127.0.0.1", false, "127.0.0.2,127.0.0.1");
	assert_string_equal(b.text, "");
	assert_int_equal(b.answers, 1);
	assert_int_equal(b.n_peers, 1);
	assert_int_equal(b.failures, 0);
	ask(&b, "127.0.0.3", false, "127.0.0.2,127.0.0.1,127.0.0.3");
	assert_int_equal(b.answers, 1);
}

/* As localhost often is. Where the machine has no IPv6, ::1 cannot even be
 * tried, and the next address is, all the same. */
static void the_second_family_answers(void **state)
{
	struct bench b;

	(void)state;
	ask(&b, "127.0.0.1", false, "v6,127.0.0.1");
	assert_string_equal(b.text, "");
	assert_int_equal(b.answers, 1);
}

static void every_address_is_named_when_none_answers(void **state)
{
	struct bench b;

	(void)state;
	ask(&b, "127.0.0.1", true, "127.0.0.2,127.0.0.1");
	assert_int_equal(b.answers, 0);
	assert_int_equal(b.failures, 1);
	assert_int_equal(b.rc, WEFT_EUNAVAIL);
	assert_non_null(strstr(b.text, "): 127.0.0.2: connection refused, "
			       "127.0.0.1: connection refused"));
	/* A number says just what happened. */
	ask(&b, "127.0.0.1", true, "127.0.0.1");
	assert_non_null(strstr(b.text, "): connection refused"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits_addresses),
		cmocka_unit_test(frames_end_in_a_line_feed),
		cmocka_unit_test(the_second_address_answers),
		cmocka_unit_test(the_second_family_answers),
		cmocka_unit_test(every_address_is_named_when_none_answers),
	};

	return cmocka_run_group_tests_name("drivers/tcp_session", tests, NULL,
					   NULL);
}
