/* SPDX-License-Identifier: Apache-2.0 */
/* SSH without a server of it: options, files that are not used, and peers that
 * are none; integration/ssh.sh has OpenSSH's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/core/driver.h"
#include "drivers/core/tcp_session.h"

static void options_are_checked(void **state)
{
	static const struct {
		struct drv_option options[4];
		int n;
		const char *says;
	} bad[] = {
		{ { { "key", "/k" } }, 1, "'key' needs ssh=yes" },
		{ { { "ssh", "maybe" } }, 1, "expected yes or no" },
		{ { { "ssh", "yes" }, { "key", "/k" } }, 2, "whom to log in as" },
		{ { { "ssh", "yes" }, { "user", "u" } }, 2, "one of the options key and" },
		{ { { "ssh", "yes" }, { "user", "u" }, { "key", "id" } }, 3, "absolute path" },
	};
	static const char *const drivers[] = { "sonic-ocs", "rome-cli", "telescent-cli" };
	uv_loop_t loop;

	(void)state;
	uv_loop_init(&loop);
	for (size_t i = 0; i < 3 * sizeof(bad) / sizeof(bad[0]); i++) {
		struct drv_config cfg = { .name = "d", .address = "127.0.0.1:22", .n_in = 4,
					  .n_out = 4, .options = bad[i / 3].options,
					  .n_options = bad[i / 3].n };
		struct err err = { 0 };
		struct drv *dev = NULL;

		assert_int_equal(drv_open(&loop, drivers[i % 3], &cfg, &dev, &err), WEFT_EINVAL);
		assert_non_null(strstr(err.msg, bad[i / 3].says));
	}
	assert_int_equal(uv_loop_close(&loop), 0);
}

/* What listens says `speech` to each who comes, then ends or says no more. */
struct bench {
	uv_loop_t loop;
	uv_tcp_t listener, peer;
	const char *speech;
	size_t len;
	int silent_ms;		/* says no more, and is waited for so long; 0: ends */
	int n_peers, failures, rc;
	char text[512];
};

static void on_peer(uv_stream_t *listener, int status)
{
	struct bench *b = listener->data;
	uv_buf_t out = uv_buf_init((char *)b->speech, (unsigned)b->len);

	assert_int_equal(status, 0);
	b->n_peers++;
	uv_tcp_init(&b->loop, &b->peer);
	assert_int_equal(uv_accept(listener, (uv_stream_t *)&b->peer), 0);
	if (b->len) {
		assert_true(uv_try_write((uv_stream_t *)&b->peer, &out, 1) > 0);
	}
	if (b->silent_ms == 0) {
		uv_close((uv_handle_t *)&b->peer, NULL);
	}
}

static void on_failed(int rc, const struct err *err, bool sent, void *arg)
{
	struct bench *b = arg;

	assert_false(sent);
	b->rc = rc;
	b->failures++;
	snprintf(b->text, sizeof(b->text), "%s", err->msg);
	uv_stop(&b->loop);
}

static void on_closed(void *arg)
{
	struct bench *b = arg;

	uv_close((uv_handle_t *)&b->listener, NULL);
	if (b->silent_ms && b->n_peers) {
		uv_close((uv_handle_t *)&b->peer, NULL);
	}
}

/* Asks `times`, with a password in a file of this mode. */
static void ask(struct bench *b, int mode, int times)
{
	struct ssh_conf ssh = { .user = "u" };
	struct sockaddr_storage at;
	struct tcp_session *session;
	struct tcp_conf conf = { .device = "d", .timeout_ms = b->silent_ms ? b->silent_ms : 20000,
				 .window = 1, .max_frame = 1 << 16, .ssh = &ssh,
				 .frame = tcp_frame_text, .failed = on_failed, .arg = b };
	char dir[] = "/tmp/weft-ssh-XXXXXX", address[64];
	int len = sizeof(at);
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(ssh.password_file, sizeof(ssh.password_file), "%s/p", dir);
	snprintf(ssh.known_hosts, sizeof(ssh.known_hosts), "%s/none", dir);
	f = fopen(ssh.password_file, "w");
	assert_non_null(f);
	fputs("hidden\n", f);
	fclose(f);
	assert_int_equal(chmod(ssh.password_file, (mode_t)mode), 0);
	uv_loop_init(&b->loop);
	uv_tcp_init(&b->loop, &b->listener);
	b->listener.data = b;
	uv_ip4_addr("127.0.0.1", 0, (struct sockaddr_in *)&at);
	assert_int_equal(uv_tcp_bind(&b->listener, (struct sockaddr *)&at, 0), 0);
	assert_int_equal(uv_listen((uv_stream_t *)&b->listener, 8, on_peer), 0);
	uv_tcp_getsockname(&b->listener, (struct sockaddr *)&at, &len);
	snprintf(address, sizeof(address), "127.0.0.1:%d",
		 ntohs(((struct sockaddr_in *)&at)->sin_port));
	conf.address = address;
	assert_int_equal(tcp_new(&b->loop, &conf, &session, NULL), 0);
	for (int i = 0; i < times; i++) {
		tcp_ask(session, "x\n", 2, 1);
		uv_run(&b->loop, UV_RUN_DEFAULT);
		assert_int_equal(b->failures, i + 1);
	}
	tcp_close(session, on_closed, b);
	uv_run(&b->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&b->loop), 0);
	assert_null(strstr(b->text, "hidden"));
	unlink(ssh.password_file);
	rmdir(dir);
}

static void what_is_no_server_of_ssh_is_unavailable(void **state)
{
	static char flood[32 << 10];
	const struct {
		const char *speech;
		size_t len;
	} speeches[] = {
		{ "", 0 },
		{ "SSH-2.0-x\r\n", 11 },
		{ "SSH-2.0-x\r\n\xff\xff\xff\xff garbage that is no packet", 41 },
		{ "HTTP/1.0 400 Bad Request\r\n\r\n", 28 },
		{ flood, sizeof(flood) },
	};

	(void)state;
	memset(flood, 'A', sizeof(flood));
	for (size_t i = 0; i < sizeof(speeches) / sizeof(speeches[0]); i++) {
		struct bench b = { .speech = speeches[i].speech, .len = speeches[i].len };

		ask(&b, 0600, 1);
		assert_int_equal(b.rc, WEFT_EUNAVAIL);
	}
}

/* On a slow machine, time may already end while it connects: then it has more. */
static void a_silent_one_is_given_up(void **state)
{
	bool at_keys = false;

	(void)state;
	for (int ms = 200; !at_keys; ms *= 2) {
		struct bench b = { .speech = "SSH-2.0-x\r\n", .len = 11, .silent_ms = ms };

		assert_true(ms < 60000);
		ask(&b, 0600, 1);
		assert_int_equal(b.rc, WEFT_EUNAVAIL);
		assert_non_null(strstr(b.text, " took too long"));
		at_keys = strstr(b.text, "exchanging keys") != NULL;
	}
}

static void a_secret_that_others_may_read_is_not_used(void **state)
{
	struct bench b = { .speech = "" };

	(void)state;
	ask(&b, 0640, 2);
	assert_int_equal(b.rc, WEFT_EDENIED);
	assert_non_null(strstr(b.text, "others may read it"));
	assert_true(b.n_peers <= 1);	/* the second is refused at once */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(what_is_no_server_of_ssh_is_unavailable),
		cmocka_unit_test(a_silent_one_is_given_up),
		cmocka_unit_test(a_secret_that_others_may_read_is_not_used),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
