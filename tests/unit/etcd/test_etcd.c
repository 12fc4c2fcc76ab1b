/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of cases.h against real members, on ports of their own: one, and three of another
 * cluster; and what needs none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/etcd/cases.h"

#define MEMBERS_MAX 3
#define FULL_BYTES "16777216"

static struct {
	int n;
	char dir[64], urls[256], cluster[256];
	struct {
		char name[8], url[64], peer[64], dir[80];
		pid_t pid;
	} members[MEMBERS_MAX];
} f;

/* Ports that are free now; sockets keep them apart until all are known. */
static void find_ports(int n, int ports[])
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	int fds[2 * MEMBERS_MAX];

	for (int i = 0; i < n; i++) {
		a = (struct sockaddr_in){ .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(bind(fds[i], (struct sockaddr *)&a, sizeof(a)), 0);
		assert_int_equal(getsockname(fds[i], (struct sockaddr *)&a, &len), 0);
		ports[i] = ntohs(a.sin_port);
	}
	for (int i = 0; i < n; i++) {
		close(fds[i]);
	}
}

static void start_member(int i)
{
	f.members[i].pid = fork();
	if (f.members[i].pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 1);
		dup2(null, 2);
		execlp("etcd", "etcd", "--name", f.members[i].name, "--data-dir",
		       f.members[i].dir, "--listen-client-urls", f.members[i].url,
		       "--advertise-client-urls", f.members[i].url, "--listen-peer-urls",
		       f.members[i].peer, "--initial-advertise-peer-urls", f.members[i].peer,
		       "--initial-cluster", f.cluster, "--quota-backend-bytes", FULL_BYTES,
		       (char *)NULL);
		_exit(127);
	}
}

static void kill_member(int i)
{
	kill(f.members[i].pid, SIGKILL);
	waitpid(f.members[i].pid, NULL, 0);
	f.members[i].pid = 0;
}

static void start_members(int n)
{
	int ports[2 * MEMBERS_MAX];
	size_t urls = 0, cluster = 0;

	memset(&f, 0, sizeof(f));
	f.n = n;
	strcpy(f.dir, "/tmp/weft-etcd-XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	find_ports(2 * n, ports);
	for (int i = 0; i < n; i++) {
		snprintf(f.members[i].name, sizeof(f.members[i].name), "m%d", i);
		snprintf(f.members[i].dir, sizeof(f.members[i].dir), "%s/%d", f.dir, i);
		snprintf(f.members[i].url, 64, "http://127.0.0.1:%d", ports[2 * i]);
		snprintf(f.members[i].peer, 64, "http://127.0.0.1:%d", ports[2 * i + 1]);
		urls += (size_t)snprintf(f.urls + urls, sizeof(f.urls) - urls, "%s%s",
					 i ? "," : "", f.members[i].url);
		cluster += (size_t)snprintf(f.cluster + cluster, sizeof(f.cluster) - cluster,
					    "%s%s=%s", i ? "," : "", f.members[i].name,
					    f.members[i].peer);
	}
	for (int i = 0; i < n; i++) {
		start_member(i);
	}
}

static int start_one(void **state)
{
	(void)state;
	start_members(1);
	return 0;
}

static int start_three(void **state)
{
	(void)state;
	start_members(3);
	return 0;
}

static int end_members(void **state)
{
	char command[128];

	(void)state;
	for (int i = 0; i < f.n; i++) {
		if (f.members[i].pid) {
			kill_member(i);
		}
	}
	snprintf(command, sizeof(command), "rm -rf %s", f.dir);
	return system(command);
}

/* ---- what cases ask for ---- */

static void sleep_ms(int ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

struct job {
	void (*work)(void *arg);
	void *arg;
};

static void *run_job(void *arg)
{
	struct job *j = arg;

	j->work(j->arg);
	return NULL;
}

static void run_both(void (*work)(void *arg), void *a, void *b)
{
	struct job jobs[2] = { { work, a }, { work, b } };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
	}
}

static void fill(void)
{
	char *big = calloc(1, ETCD_MAX_VALUE), key[16];
	const struct etcd_op op = { .kind = ETCD_PUT, .key = key, .value = big,
				    .len = ETCD_MAX_VALUE };
	bool done;

	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "/fill/%02d", i);
		if (try_all(NULL, 0, &op, 1, WAIT_MS, &done)) {
			break;
		}
	}
	free(big);
}

static void wrong(const char *file, int line, const char *what, const char *error)
{
	fail_msg("%s:%d: %s (%s)", file, line, what, error);
}

static void run_case(void **state)
{
	const struct etcd_place at = {
		f.urls, f.n, kill_member, start_member, sleep_ms, run_both, fill, wrong,
	};

	run_etcd_case(*state, &at);
}

/* ---- what needs no members ---- */

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
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(etcd_new(bad[i][0], &none, &e, &err), WEFT_EINVAL);
		assert_null(e);
		assert_non_null(strstr(err.msg, bad[i][1]));
	}
	assert_int_equal(etcd_new("http://[::1]:2379,http://localhost:1/", &none, &e, &err), 0);
	etcd_free(e);
}

int main(void)
{
	struct CMUnitTest one[N_ETCD_CASES + 1] = { cmocka_unit_test(test_members) };
	struct CMUnitTest three[N_ETCD_CASES];
	int n_one = 1, n_three = 0, failed;

	for (int i = 0; i < N_ETCD_CASES; i++) {
		const struct CMUnitTest test = { etcd_cases[i].name, run_case, NULL, NULL,
						 (void *)(uintptr_t)&etcd_cases[i] };

		if (etcd_cases[i].members == 1) {
			one[n_one++] = test;
		} else {
			three[n_three++] = test;
		}
	}
	failed = _cmocka_run_group_tests("one", one, (size_t)n_one, start_one, end_members);
	return failed + _cmocka_run_group_tests("three", three, (size_t)n_three, start_three,
						end_members);
}
