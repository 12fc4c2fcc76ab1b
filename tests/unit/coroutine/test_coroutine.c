/* SPDX-License-Identifier: Apache-2.0 */
/* Coroutines wait while their loop goes on, and elsewhere as poll() does. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/coroutine/coroutine.h"

static struct {
	uv_loop_t loop;
	int pipe[2];
	char told[256];
} f;

static int setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	assert_int_equal(pipe(f.pipe), 0);
	return uv_loop_init(&f.loop);
}

/* Nothing is left on the loop. */
static int teardown(void **state)
{
	(void)state;
	close(f.pipe[0]);
	close(f.pipe[1]);
	return uv_loop_close(&f.loop);
}

static void tell(const char *what)
{
	strcat(strcat(f.told, what), ";");
}

static void read_one(void *arg)
{
	struct pollfd p = { .fd = f.pipe[0], .events = POLLIN };
	char c = 0;

	tell(arg);
	assert_int_equal(co_poll(&p, 20000), 1);
	assert_int_equal(p.revents, POLLIN);
	assert_int_equal(read(f.pipe[0], &c, 1), 1);
	tell("read");
}

static void write_one(void *arg)
{
	(void)arg;
	co_poll(NULL, 1);
	tell("write");
	assert_int_equal(write(f.pipe[1], "x", 1), 1);
}

static void end(void *arg)
{
	(void)arg;
	tell("end");
}

static void test_waits(void **state)
{
	(void)state;
	co_start(&f.loop, read_one, end, (void *)"wait");
	tell("goes on");
	co_start(&f.loop, write_one, end, NULL);
	uv_run(&f.loop, UV_RUN_DEFAULT);
	assert_string_equal(f.told, "wait;goes on;write;end;read;end;");
}

static void wait_in_vain(void *arg)
{
	struct pollfd p = { .fd = f.pipe[0], .events = POLLIN };

	(void)arg;
	assert_int_equal(co_poll(&p, 1), 0);
	assert_int_equal(co_poll(&p, 0), 0);
	tell("nothing");
}

static void test_times_out(void **state)
{
	(void)state;
	co_start(&f.loop, wait_in_vain, end, NULL);
	assert_string_equal(f.told, "");
	uv_run(&f.loop, UV_RUN_DEFAULT);
	assert_string_equal(f.told, "nothing;end;");
	wait_in_vain(NULL);	/* no coroutine */
	assert_string_equal(f.told, "nothing;end;nothing;");
}

static void start_another(void *arg)
{
	(void)arg;
	co_start(&f.loop, write_one, end, NULL);
	read_one((void *)"outer");
}

/* One that starts another, and several at a time. */
static void test_nested(void **state)
{
	(void)state;
	co_start(&f.loop, start_another, end, NULL);
	uv_run(&f.loop, UV_RUN_DEFAULT);
	assert_string_equal(f.told, "outer;write;end;read;end;");
}

static void look_up(void *arg)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;

	assert_int_equal(co_getaddrinfo(arg, "80", &hints, &list), 0);
	assert_int_equal(((struct sockaddr_in *)(void *)list->ai_addr)->sin_addr.s_addr,
			 htonl(INADDR_LOOPBACK));
	freeaddrinfo(list);
	assert_int_not_equal(co_getaddrinfo("no.such.host.invalid", "80", &hints, &list), 0);
	tell(arg);
}

static void test_names(void **state)
{
	(void)state;
	co_start(&f.loop, look_up, end, (void *)"127.0.0.1");
	co_start(&f.loop, look_up, end, (void *)"localhost");
	uv_run(&f.loop, UV_RUN_DEFAULT);
	assert_non_null(strstr(f.told, "127.0.0.1;"));
	assert_non_null(strstr(f.told, "localhost;"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_times_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nested, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
