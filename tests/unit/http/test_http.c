/* SPDX-License-Identifier: Apache-2.0 */
/* Whose name a request may use, and what is answered over a socket. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/http/http.h"

static void test_host(void **state)
{
	static const char *const local[] = {
		"localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:9100",
		"127.1.2.3:1", "[::1]", "[::1]:9100", "localhost:",
	};
	static const char *const other[] = {
		"", "example.com", "localhost.example.com", "127.0.0.1.nip.io",
		"10.0.0.1", "[::2]", "[::1", "::1", "127.0.0.1:80@example.com",
		"localhost:80:90", "[::1]x", "0.0.0.0", "127.0.1", ":80",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
		assert_true(http_host_is_local(local[i]));
	}
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		assert_false(http_host_is_local(other[i]));
	}
	assert_false(http_host_is_local(NULL));
}

/* ---- over a socket ------------------------------------------------------- */

struct fixture {
	uv_loop_t loop;
	struct http_server *server;
	uv_tcp_t client;
	uv_connect_t connect;
	uv_write_t write;
	const char *request;
	size_t request_len;
	char answer[4096];
	size_t n;
	struct http_request *held;	/* "/later": the last */
	struct http_request *ours;
	int n_held;			/* that are not ours */
	int gone;
};

static void on_gone(struct http_request *q, void *arg)
{
	struct fixture *f = arg;

	f->gone++;
	f->n_held--;
	f->held = NULL;
	http_answer(q, 204, NULL, "", 0);
}

static void handler(struct http_request *q, void *arg)
{
	const char *value = http_query(q, "key");
	struct fixture *f = arg;

	if (strcmp(http_path(q), "/later") == 0) {
		f->held = q;
		f->n_held += f->ours != NULL;
		http_on_gone(q, on_gone, f);
		return;
	}
	if (value == 0) {
		value = "nothing";
	}
	http_answer(q, 200, NULL, value, strlen(value));
}

static void on_alloc(uv_handle_t *h, size_t size, uv_buf_t *b)
{
	struct fixture *f = h->data;

	(void)size;
	*b = uv_buf_init(f->answer + f->n,
			 (unsigned)(sizeof(f->answer) - 1 - f->n));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
	struct fixture *f = stream->data;

	(void)b;
	f->n += n > 0 ? (size_t)n : 0;
	f->answer[f->n] = '\0';
	if (n < 0 || strstr(f->answer, "\r\n\r\n")) {
		uv_stop(&f->loop);
	}
}

static void on_connect(uv_connect_t *c, int status)
{
	struct fixture *f = c->data;
	uv_buf_t b = uv_buf_init((char *)f->request, (unsigned)f->request_len);

	assert_int_equal(status, 0);
	assert_int_equal(uv_write(&f->write, c->handle, &b, 1, NULL), 0);
	assert_int_equal(uv_read_start(c->handle, on_alloc, on_read), 0);
}

static void dial_bytes(struct fixture *f, const char *request, size_t len)
{
	struct sockaddr_in to;

	f->request = request;
	f->request_len = len;
	f->n = 0;
	f->answer[0] = '\0';
	f->client.data = f->connect.data = f;
	uv_ip4_addr("127.0.0.1", http_server_port(f->server), &to);
	assert_int_equal(uv_tcp_init(&f->loop, &f->client), 0);
	assert_int_equal(uv_tcp_connect(&f->connect, &f->client,
					(struct sockaddr *)&to, on_connect),
			 0);
}

static void dial(struct fixture *f, const char *request)
{
	dial_bytes(f, request, strlen(request));
}

static const char *ask_bytes(struct fixture *f, const char *request, size_t len)
{
	dial_bytes(f, request, len);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&f->client, NULL);
	uv_run(&f->loop, UV_RUN_NOWAIT);
	return f->answer;
}

static const char *ask(struct fixture *f, const char *request)
{
	return ask_bytes(f, request, strlen(request));
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct http_config cfg = { .option = "--test", .host = "127.0.0.1",
				   .max_conns = 4, .handler = handler };
	struct err err = { 0 };

	cfg.arg = f;
	*state = f;
	return uv_loop_init(&f->loop) ||
	       http_server_new(&f->loop, &cfg, &f->server, &err);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int r;

	http_server_free(f->server);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	r = uv_loop_close(&f->loop);
	free(f);
	return r;
}

#define HOST "Host: localhost\r\n\r\n"

static void test_answers(void **state)
{
	struct fixture *f = *state;

	assert_non_null(strstr(ask(f, "GET /a?key=v HTTP/1.1\r\n" HOST),
			       "200 OK"));
	assert_non_null(strstr(f->answer, "Content-Length: 1\r\n"));
	assert_non_null(strstr(ask(f, "POST /a HTTP/1.1\r\n" HOST), " 405 "));
	assert_non_null(strstr(f->answer, "Allow: GET\r\n"));
	assert_non_null(strstr(ask(f, "HEAD /a HTTP/1.1\r\n" HOST), " 405 "));
	assert_non_null(strstr(ask(f, "GET /a HTTP/1.1\r\n"
				      "Content-Length: 5\r\n" HOST), " 400 "));
	assert_non_null(strstr(ask(f, "GET /a HTTP/1.1\r\n"
				      "Transfer-Encoding: chunked\r\n" HOST),
			       " 400 "));
	assert_non_null(strstr(ask(f, "GET /a HTTP/1.1\r\n"
				      "Host: example.com\r\n\r\n"), " 421 "));
	assert_non_null(strstr(ask(f, "GET /a HTTP/1.1\r\n\r\n"), " 400 "));
}

/* What could be read in two ways is read in none. */
static void test_ambiguous(void **state)
{
	static const char nul[] = "GET /a\0b HTTP/1.1\r\nHost: localhost\r\n\r\n";
	static const char nul_key[] = "GET /a?key=v\0b HTTP/1.1\r\nHost: localhost\r\n\r\n";
	static const char *const bad[] = {
		"GET /a HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: localhost\r\nhost: example.com\r\n\r\n",
		"GET /a HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 0\r\n" HOST,
		"GET /a HTTP/1.1\r\nContent-Length: 0\r\ncontent-length: 5\r\n" HOST,
		"GET /a HTTP/1.1\r\nContent-Length: 5, 0\r\n" HOST,
		"POST /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n" HOST,
		"GET /a HTTP/1.0\r\n\r\n",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_non_null(strstr(ask(f, bad[i]), " 400 "));
	}
	assert_non_null(strstr(ask_bytes(f, nul, sizeof(nul) - 1), " 400 "));
	assert_non_null(strstr(ask_bytes(f, nul_key, sizeof(nul_key) - 1), " 400 "));
	assert_non_null(strstr(ask(f, "GET /a?b&key=v&c=d HTTP/1.1\r\n" HOST), "200 OK"));
	assert_non_null(strstr(ask(f, "GET /a?key HTTP/1.1\r\nContent-Length: 0\r\n" HOST),
			       "200 OK"));
}

/* ---- shares ---------------------------------------------------------------- */

/* A connection that sends this much, by plain calls. */
static int half(const struct fixture *f, const char *text)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in to;

	uv_ip4_addr("127.0.0.1", http_server_port(f->server), &to);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
	return fd;
}

static bool is_cut_off(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}

/* Of one user, the oldest that has sent no whole request goes; one that waits stays. */
static void test_half_requests(void **state)
{
	struct fixture *f = *state;
	int later = half(f, "GET /later HTTP/1.1\r\n" HOST), fds[12];

	while (!f->held) {
		uv_run(&f->loop, UV_RUN_ONCE);
	}
	for (int i = 0; i < 12; i++) {
		fds[i] = half(f, "GET /a HTTP/1.1\r\nHost: local");
		while (i >= 3 && !is_cut_off(fds[i - 3])) {
			uv_run(&f->loop, UV_RUN_ONCE);
		}
	}
	assert_non_null(strstr(ask(f, "GET /a HTTP/1.1\r\n" HOST), "200 OK"));
	assert_false(is_cut_off(fds[11]));
	assert_false(is_cut_off(later));
	assert_int_equal(f->gone, 0);
	http_answer(f->held, 200, NULL, "", 0);
	for (int i = 0; i < 12; i++) {
		close(fds[i]);
	}
	close(later);
}

/* Another user has all that are left, and takes none of ours. */
static void test_users(void **state)
{
	struct fixture *f = *state;
	int later, out[2], fds[8], n = 0;
	char byte;
	pid_t pid;

	if (geteuid() != 0) {
		skip();
	}
	later = half(f, "GET /later HTTP/1.1\r\n" HOST);
	while (!f->held) {
		uv_run(&f->loop, UV_RUN_ONCE);
	}
	assert_int_equal(pipe2(out, O_NONBLOCK), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setuid(4001)) {
			_exit(1);
		}
		for (int i = 0; i < 8; i++) {
			fds[i] = half(f, "GET /later HTTP/1.1\r\n" HOST);
		}
		/* Five of the eight have no place. */
		while (n < 5) {
			for (int i = n = 0; i < 8; i++) {
				n += is_cut_off(fds[i]);
			}
			usleep(1000);
		}
		assert_int_equal(write(out[1], "", 1), 1);
		pause();
		_exit(0);
	}
	f->ours = f->held;
	while (read(out[0], &byte, 1) != 1) {
		uv_run(&f->loop, UV_RUN_NOWAIT);
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	}
	assert_false(is_cut_off(later));
	assert_non_null(strstr(ask(f, "GET /a HTTP/1.1\r\n" HOST), "200 OK"));
	assert_false(is_cut_off(later));
	http_answer(f->ours, 200, NULL, "", 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	while (f->n_held > 0) {
		uv_run(&f->loop, UV_RUN_ONCE);
	}
	close(later);
	close(out[0]);
	close(out[1]);
}

/* An answer that comes later, and a client that does not wait for it. */
static void test_later(void **state)
{
	struct fixture *f = *state;

	dial(f, "GET /later HTTP/1.1\r\n" HOST);
	while (!f->held) {
		uv_run(&f->loop, UV_RUN_ONCE);
	}
	http_answer(f->held, 200, NULL, "now", 3);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	assert_non_null(strstr(f->answer, "200 OK"));
	uv_close((uv_handle_t *)&f->client, NULL);
	uv_run(&f->loop, UV_RUN_NOWAIT);

	f->held = NULL;
	dial(f, "GET /later HTTP/1.1\r\n" HOST);
	while (!f->held) {
		uv_run(&f->loop, UV_RUN_ONCE);
	}
	uv_close((uv_handle_t *)&f->client, NULL);
	while (!f->gone) {
		uv_run(&f->loop, UV_RUN_ONCE);
	}
	assert_int_equal(f->gone, 1);
	uv_run(&f->loop, UV_RUN_NOWAIT);
}

static void test_only_loopback(void **state)
{
	struct fixture *f = *state;
	struct http_config cfg = { .option = "--test", .host = "0.0.0.0",
				   .max_conns = 4, .handler = handler };
	struct http_server *s = NULL;
	struct err err = { 0 };

	assert_int_equal(http_server_new(&f->loop, &cfg, &s, &err),
			 WEFT_EINVAL);
	assert_string_equal(err.msg,
			    "--test: 0.0.0.0 is not a loopback address");
	cfg.host = "localhost";
	assert_int_equal(http_server_new(&f->loop, &cfg, &s, &err),
			 WEFT_EINVAL);
	cfg.host = "127.0.0.1";
	cfg.port = http_server_port(f->server);
	assert_int_equal(http_server_new(&f->loop, &cfg, &s, &err), WEFT_EIO);
	assert_null(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_host),
		cmocka_unit_test_setup_teardown(test_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ambiguous, setup, teardown),
		cmocka_unit_test_setup_teardown(test_half_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(test_users, setup, teardown),
		cmocka_unit_test_setup_teardown(test_only_loopback, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
