/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the server's socket: which of several servers gets it, and who
 * removes it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/rpc/rpc.h"

#define N_STARTS 16
#define ROUNDS 12

struct place {
	char dir[32], path[64];
};

static int set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	log_set_level(LOG_ERROR);
	snprintf(p->dir, sizeof(p->dir), "/tmp/weft-socket-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->path, sizeof(p->path), "%s/sock", p->dir);
	*state = p;
	return 0;
}

/* The folder is empty again: the servers have removed their files. */
static int tear_down(void **state)
{
	struct place *p = *state;

	assert_int_equal(rmdir(p->dir), 0);
	free(p);
	return 0;
}

/* A server without methods, on a loop of its own. */
struct server {
	uv_loop_t loop;
	struct rpc_server *rpc;
};

static int server_start(struct server *s, const char *path, struct err *err)
{
	static const struct rpc_method none[] = { { 0 } };
	const struct rpc_server_config cfg = { .unix_path = path, .mode = 0600,
					       .methods = none };
	int r;

	uv_loop_init(&s->loop);
	r = rpc_server_new(&s->loop, &cfg, &s->rpc, err);
	if (r) {
		uv_run(&s->loop, UV_RUN_DEFAULT);
		assert_int_equal(uv_loop_close(&s->loop), 0);
	}
	return r;
}

static void server_stop(struct server *s)
{
	rpc_server_stop(s->rpc, 0, NULL, NULL);
	uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&s->loop), 0);
}

static int bound(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static ino_t inode_of(const char *path)
{
	struct stat st = { 0 };

	return stat(path, &st) ? 0 : st.st_ino;
}

static void is_refused(const char *path)
{
	ino_t before = inode_of(path);
	struct server s;
	struct err err = { 0 };
	char process[32];

	snprintf(process, sizeof(process), "process %d", (int)getpid());
	assert_int_equal(server_start(&s, path, &err), WEFT_ESTALE);
	assert_non_null(strstr(err.msg, path));
	assert_non_null(strstr(err.msg, process));
	assert_true(before && inode_of(path) == before);
}

static void test_second_is_refused(void **state)
{
	const struct place *p = *state;
	struct server first;
	struct err err = { 0 };

	assert_int_equal(server_start(&first, p->path, &err), 0);
	is_refused(p->path);
	is_refused(p->path);
	server_stop(&first);
	assert_int_equal(server_start(&first, p->path, &err), 0);
	server_stop(&first);
}

/* A server that takes no lock: an inherited socket, or another program's. */
static void test_any_server_counts(void **state)
{
	const struct place *p = *state;
	int fd = bound(p->path);

	assert_int_equal(listen(fd, 4), 0);
	is_refused(p->path);
	close(fd);
	unlink(p->path);
}

/* One that accepts no more connections is there all the same. */
static void test_full_backlog(void **state)
{
	const struct place *p = *state;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = bound(p->path), clients[2] = { -1, -1 };
	struct server s;
	struct err err = { 0 };

	assert_int_equal(listen(fd, 0), 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", p->path);
	for (int i = 0; i < 2; i++) {
		clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(clients[i], (struct sockaddr *)&addr, sizeof(addr));
	}
	assert_int_equal(server_start(&s, p->path, &err), WEFT_ESTALE);
	assert_non_null(strstr(err.msg, "another process"));
	assert_int_not_equal(inode_of(p->path), 0);
	close(clients[0]);
	close(clients[1]);
	close(fd);
	unlink(p->path);
}

static void test_stale_is_replaced(void **state)
{
	const struct place *p = *state;
	struct server s;
	struct err err = { 0 };

	close(bound(p->path));
	assert_int_equal(server_start(&s, p->path, &err), 0);
	is_refused(p->path);
	server_stop(&s);
	assert_int_equal(inode_of(p->path), 0);
}

static void test_removes_only_its_own(void **state)
{
	const struct place *p = *state;
	struct server s;
	struct err err = { 0 };

	assert_int_equal(server_start(&s, p->path, &err), 0);
	/* It is kept under another name, so that its number is not used again. */
	char kept[80];
	snprintf(kept, sizeof(kept), "%s.kept", p->path);
	assert_int_equal(rename(p->path, kept), 0);
	close(bound(p->path));
	server_stop(&s);
	assert_int_not_equal(inode_of(p->path), 0);
	unlink(p->path);
	unlink(kept);
}

/* Tries once `go` is closed, tells by its exit code, and serves until `end` is closed. */
static pid_t start_child(const char *path, const int go[2], const int end[2], const int told[2])
{
	pid_t pid = fork();
	struct server s;
	struct err err = { 0 };
	char c;

	if (pid) {
		return pid;
	}
	close(go[1]);
	close(end[1]);
	while (read(go[0], &c, 1) > 0) {
	}
	c = server_start(&s, path, &err) == 0 ? '+' : err.code == WEFT_ESTALE ? '-' : '?';
	if (write(told[1], &c, 1) != 1) {
		_exit(1);
	}
	while (read(end[0], &c, 1) > 0) {
	}
	_exit(0);	/* as if killed: the file stays */
}

/* Each round begins with the stale file of the one before. */
static void test_many_at_once(void **state)
{
	const struct place *p = *state;
	char lock[80], answers[N_STARTS];

	close(bound(p->path));
	for (int round = 0; round < ROUNDS; round++) {
		int go[2], end[2], told[2], served = 0, refused = 0;
		pid_t pids[N_STARTS];

		assert_int_equal(pipe(go) | pipe(end) | pipe(told), 0);
		for (int i = 0; i < N_STARTS; i++) {
			pids[i] = start_child(p->path, go, end, told);
		}
		close(go[1]);
		for (int i = 0; i < N_STARTS; i++) {
			assert_int_equal(read(told[0], &answers[i], 1), 1);
			served += answers[i] == '+';
			refused += answers[i] == '-';
		}
		assert_int_equal(served, 1);
		assert_int_equal(refused, N_STARTS - 1);
		close(end[1]);
		for (int i = 0; i < N_STARTS; i++) {
			assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		}
		close(go[0]);
		close(end[0]);
		close(told[0]);
		close(told[1]);
	}
	snprintf(lock, sizeof(lock), "%s.lock", p->path);
	unlink(lock);
	unlink(p->path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_many_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_second_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_any_server_counts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_full_backlog, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stale_is_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_removes_only_its_own, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
