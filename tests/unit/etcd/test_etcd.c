/* A client of etcd against a real one of one member, on a port of its own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/etcd/etcd.h"

#define WAIT_MS 30000

static struct {
	char dir[64], url[64], peer[64];
	pid_t pid;
	struct etcd *e;
	struct err err;
} f;

static int free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	close(fd);
	return ntohs(a.sin_port);
}

static void start(void)
{
	char cluster[96];

	snprintf(cluster, sizeof(cluster), "one=%s", f.peer);
	f.pid = fork();
	if (f.pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 1);
		dup2(null, 2);
		execlp("etcd", "etcd", "--name", "one", "--data-dir", f.dir, "--listen-client-urls",
		       f.url, "--advertise-client-urls", f.url, "--listen-peer-urls", f.peer,
		       "--initial-advertise-peer-urls", f.peer, "--initial-cluster", cluster,
		       (char *)NULL);
		_exit(127);
	}
}

static int setup(void **state)
{
	const struct rpc_tls_files none = { 0 };

	(void)state;
	strcpy(f.dir, "/tmp/weft-etcd-XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	snprintf(f.url, sizeof(f.url), "http://127.0.0.1:%d", free_port());
	snprintf(f.peer, sizeof(f.peer), "http://127.0.0.1:%d", free_port());
	start();
	return etcd_new(f.url, &none, &f.e, &f.err);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	etcd_free(f.e);
	kill(f.pid, SIGKILL);
	waitpid(f.pid, NULL, 0);
	snprintf(command, sizeof(command), "rm -rf %s", f.dir);
	return system(command);
}

static bool transact(const struct etcd_guard *g, int n_g, const struct etcd_op *ops, int n_ops)
{
	int64_t revision;
	bool done;

	if (etcd_transact(f.e, g, n_g, ops, n_ops, WAIT_MS, &done, &revision, &f.err)) {
		fail_msg("%s", f.err.msg);
	}
	return done;
}

static void test_guards(void **state)
{
	const struct etcd_guard none = { .key = "/a" };
	const struct etcd_op put = { .kind = ETCD_PUT, .key = "/a", .value = "1\0002", .len = 3 };
	struct etcd_pairs got = { 0 };
	const struct etcd_op get = { .kind = ETCD_GET, .key = "/a", .got = &got };

	(void)state;
	assert_true(transact(&none, 1, &put, 1));
	assert_false(transact(&none, 1, &put, 1));
	assert_true(transact(NULL, 0, &get, 1));
	assert_int_equal(got.n, 1);
	assert_string_equal(got.v[0].key, "/a");
	assert_int_equal(got.v[0].len, 3);
	assert_memory_equal(got.v[0].value, "1\0002", 3);
	const struct etcd_guard made = { .key = "/a", .revision = got.v[0].created };
	const struct etcd_guard written = { .key = "/a", .written = true,
					    .revision = got.v[0].modified };
	etcd_pairs_fini(&got);
	assert_true(transact(&made, 1, &put, 1));
	assert_false(transact(&written, 1, &put, 1));
	assert_true(transact(&made, 1, &put, 1));
	/* A range, and several at once. */
	const struct etcd_op more[] = {
		{ .kind = ETCD_PUT, .key = "/b/1" }, { .kind = ETCD_PUT, .key = "/b/2" },
		{ .kind = ETCD_DELETE, .key = "/a" },
	};
	assert_true(transact(&made, 1, more, 3));
	assert_true(transact(&none, 1, &(struct etcd_op){ .kind = ETCD_GET, .key = "/b/",
							   .end = "/b0", .got = &got }, 1));
	assert_int_equal(got.n, 2);
	assert_string_equal(got.v[1].key, "/b/2");
	etcd_pairs_fini(&got);
}

static void test_too_large(void **state)
{
	size_t len = 4 << 20;
	char *big = calloc(1, len);
	const struct etcd_op put = { .kind = ETCD_PUT, .key = "/big", .value = big, .len = len };
	int64_t revision;
	bool done;

	(void)state;
	assert_int_not_equal(etcd_transact(f.e, NULL, 0, &put, 1, 2000, &done, &revision, &f.err),
			     0);
	assert_false(done);
	free(big);
}

static void await_change(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	bool changed = false;

	while (!changed) {
		assert_int_equal(poll(&p, 1, WAIT_MS), 1);
		assert_int_equal(etcd_watch_take(f.e, &changed, &f.err), 0);
	}
}

/* A key goes with its lease, and whoever watches hears of both. */
static void test_lease_and_watch(void **state)
{
	int64_t lease, asked_ns = 0;
	int fd;

	(void)state;
	assert_int_equal(etcd_lease_new(f.e, 2, WAIT_MS, &lease, &f.err), 0);
	for (int i = 0; i < 100 && !asked_ns; i++) {
		assert_int_equal(etcd_lease_keep(f.e, lease, 1000, &asked_ns, &f.err), 0);
	}
	assert_true(asked_ns > 0);
	fd = etcd_watch(f.e, "/w/", 1000, &f.err);
	assert_true(fd >= 0);
	await_change(fd);	/* the first word: it watches */
	assert_true(transact(NULL, 0, &(struct etcd_op){ .kind = ETCD_PUT, .key = "/w/1",
							 .lease = lease }, 1));
	for (int i = 0; i < 2; i++) {
		await_change(fd);
		if (i == 0) {
			assert_int_equal(etcd_lease_end(f.e, lease, WAIT_MS, &f.err), 0);
		}
	}
	assert_int_equal(etcd_lease_keep(f.e, lease, 1000, &asked_ns, &f.err), WEFT_ESTALE);
}

#define N_FACTS 20

/* A client of its own that writes its name into each key where there is none. */
struct rival {
	const char *name;
	pthread_t thread;
	bool wrote[N_FACTS];
	int failed;
};

static void *write_facts(void *arg)
{
	const struct rpc_tls_files none = { 0 };
	struct rival *r = arg;
	struct etcd *e = NULL;
	struct err err;

	r->failed = etcd_new(f.url, &none, &e, &err);
	for (int i = 0; i < N_FACTS && !r->failed; i++) {
		char key[16];
		const struct etcd_guard absent = { .key = key };
		const struct etcd_op put = { .kind = ETCD_PUT, .key = key, .value = r->name,
					     .len = 1 };
		int64_t revision;

		snprintf(key, sizeof(key), "/f/%02d", i);
		r->failed = etcd_transact(e, &absent, 1, &put, 1, WAIT_MS, &r->wrote[i],
					  &revision, &err);
	}
	etcd_free(e);
	return NULL;
}

/* What is guarded by its absence is written once, whoever else tries at the same time; one
 * that watches the keys' beginning hears of it. */
static void test_one_writes(void **state)
{
	struct rival rivals[2] = { { .name = "a" }, { .name = "b" } };
	struct etcd_pairs got = { 0 };
	const struct etcd_op get = { .kind = ETCD_GET, .key = "/f/", .end = "/f0", .got = &got };
	int fd = etcd_watch(f.e, "/f/", 1000, &f.err);

	(void)state;
	assert_true(fd >= 0);
	await_change(fd);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&rivals[i].thread, NULL, write_facts, &rivals[i]),
				 0);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(rivals[i].thread, NULL);
		assert_int_equal(rivals[i].failed, 0);
	}
	assert_true(transact(NULL, 0, &get, 1));
	assert_int_equal(got.n, N_FACTS);
	for (int i = 0; i < N_FACTS; i++) {
		assert_int_equal(rivals[0].wrote[i] + rivals[1].wrote[i], 1);
		assert_int_equal(got.v[i].value[0], rivals[0].wrote[i] ? 'a' : 'b');
	}
	etcd_pairs_fini(&got);
	await_change(fd);
}

/* It dies and comes back: what was written is there, calls go on. */
static void test_restart(void **state)
{
	struct etcd_pairs got = { 0 };
	const struct etcd_op get = { .kind = ETCD_GET, .key = "/kept", .got = &got };
	int64_t revision;
	bool done;
	int r;

	(void)state;
	assert_true(transact(NULL, 0, &(struct etcd_op){ .kind = ETCD_PUT, .key = "/kept" }, 1));
	kill(f.pid, SIGKILL);
	waitpid(f.pid, NULL, 0);
	r = etcd_transact(f.e, NULL, 0, &get, 1, 300, &done, &revision, &f.err);
	assert_true(r == WEFT_EUNAVAIL || r == WEFT_ETIMEOUT);
	assert_non_null(strstr(f.err.msg, "etcd"));
	start();
	assert_true(transact(NULL, 0, &get, 1));
	assert_int_equal(got.n, 1);
	etcd_pairs_fini(&got);
}

static void test_members(void **state)
{
	static const char *const bad[][2] = {
		{ "", "not https://" }, { "a:1", "not https://" }, { "https://a", "not https://" },
		{ "https://a:0", "not https://" }, { "https://:1", "not https://" },
		{ "https://a:1x", "not https://" }, { "http://10.0.0.1:1", "without TLS" },
		{ "http://127.0.0.1:1,https://127.0.0.1:2", "do not go together" },
		{ "https://a:1", "needs a certificate" }, { "http://127.0.0.1:1,", "not https://" },
	};
	const struct rpc_tls_files none = { 0 };
	struct etcd *e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(etcd_new(bad[i][0], &none, &e, &f.err), WEFT_EINVAL);
		assert_null(e);
		assert_non_null(strstr(f.err.msg, bad[i][1]));
	}
	assert_int_equal(etcd_new("http://[::1]:2379,http://localhost:1/", &none, &e, &f.err), 0);
	etcd_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_guards),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_lease_and_watch),
		cmocka_unit_test(test_one_writes),
		cmocka_unit_test(test_restart),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
