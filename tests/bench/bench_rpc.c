/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weftd under load, client and server on one machine: small unary calls from
 * 8 connections, one in flight on each; how long a status call takes while
 * plans of 1024 nodes are made one after the other.
 *
 * bench_rpc              a table on stdout
 * bench_rpc --json FILE  the same, and JSON lines appended to FILE
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/daemon/daemon.h"
#include "grpc/health/v1/health.pb-c.h"
#include "lib/base/clock.h"
#include "lib/rpc/rpc.h"
#include "tests/unit/daemon/plan_program.h"
#include "weft/v1/weft.pb-c.h"

#define CONNS 8
#define RUN_NS 3000000000LL
#define MAX_SAMPLES 20000
#define PACE_US 1000

static char dir[] = "/tmp/weft-bench-XXXXXX";
static char sock[64], state[64];
static _Atomic bool over;

static pid_t start_daemon(void)
{
	char *argv[] = { "weftd", "--socket", sock, "--state-dir", state,
			 "--log-level", "error", NULL };
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		_exit(daemon_main(7, argv));
	}
	return pid;
}

static struct rpc_client *dial(void)
{
	struct rpc_client *c = NULL;
	struct err err;

	for (int i = 0; i < 200 && rpc_client_open(sock, 1000, &c, &err);
	     i++) {
		usleep(20000);
	}
	if (!c) {
		fprintf(stderr, "weftd does not answer: %s\n", err.msg);
		exit(1);
	}
	return c;
}

static void *call_health(void *arg)
{
	Grpc__Health__V1__HealthCheckRequest req =
		GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
	struct rpc_client *c = dial();
	ProtobufCMessage *res;
	struct err err;
	long *n = arg;

	while (!over) {
		if (rpc_client_unary(
			    c, "/grpc.health.v1.Health/Check", &req.base,
			    &grpc__health__v1__health_check_response__descriptor,
			    10000, &res, &err)) {
			fprintf(stderr, "Check: %s\n", err.msg);
			exit(1);
		}
		protobuf_c_message_free_unpacked(res, NULL);
		(*n)++;
	}
	rpc_client_close(c);
	return NULL;
}

/* Calls a second over all connections. */
static double measure_calls(void)
{
	pthread_t t[CONNS];
	long n[CONNS] = { 0 }, sum = 0;
	int64_t start = clk_now_ns();

	over = false;
	for (int i = 0; i < CONNS; i++) {
		pthread_create(&t[i], NULL, call_health, &n[i]);
	}
	usleep(RUN_NS / 1000);
	over = true;
	for (int i = 0; i < CONNS; i++) {
		pthread_join(t[i], NULL);
		sum += n[i];
	}
	return (double)sum / ((double)(clk_now_ns() - start) / 1e9);
}

static int ignore(const ProtobufCMessage *msg, void *arg)
{
	(void)msg, (void)arg;
	return 0;
}

static void *plan_on(void *arg)
{
	static const char config[] =
		"weft: 1\nfabric: big\nhosts:\n  - { name: \"n[0-1023]\" }\n"
		"rings:\n  - { name: ring0, nodes: \"n[0-1023]\", channels: "
		"64, channel-rate: 40Gbps, retune: 25us, driver: mrr-reg, "
		"address: \"127.0.0.1:1\" }\n"
		"jobs:\n  - { name: gather, ring: ring0, nodes: all, "
		"collective: allgather, size: 1MiB }\n";
	Weft__V1__PlanRequest req = WEFT__V1__PLAN_REQUEST__INIT;
	struct rpc_client *c = dial();
	struct err err;
	int *n = arg;

	req.config.data = (uint8_t *)config;
	req.config.len = strlen(config);
	while (!over) {
		if (rpc_client_call(c, "/weft.v1.FabricService/Plan", &req.base,
				    &weft__v1__plan_response__descriptor, 60000,
				    ignore, NULL, NULL, &err)) {
			fprintf(stderr, "Plan: %s\n", err.msg);
			exit(1);
		}
		(*n)++;
	}
	rpc_client_close(c);
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Milliseconds that 50 % and 99 % of status calls stay under, while plans
 * are made (plans not NULL: how many). */
static void measure_status(double *p50, double *p99, int *plans)
{
	static int64_t took[MAX_SAMPLES];
	Weft__V1__StatusRequest req = WEFT__V1__STATUS_REQUEST__INIT;
	struct rpc_client *c = dial();
	int64_t start = clk_now_ns();
	ProtobufCMessage *res;
	struct err err;
	pthread_t t;
	int n = 0;

	over = false;
	if (plans) {
		pthread_create(&t, NULL, plan_on, plans);
	}
	while (clk_now_ns() - start < RUN_NS && n < MAX_SAMPLES) {
		int64_t at = clk_now_ns();

		if (rpc_client_unary(c, "/weft.v1.FabricService/Status", &req.base,
				     &weft__v1__status_response__descriptor,
				     10000, &res, &err)) {
			fprintf(stderr, "Status: %s\n", err.msg);
			exit(1);
		}
		took[n++] = clk_now_ns() - at;
		protobuf_c_message_free_unpacked(res, NULL);
		usleep(PACE_US);
	}
	over = true;
	if (plans) {
		pthread_join(t, NULL);
	}
	rpc_client_close(c);
	qsort(took, (size_t)n, sizeof(took[0]), by_size);
	*p50 = (double)took[n / 2] / 1e6;
	*p99 = (double)took[n * 99 / 100] / 1e6;
}

int main(int argc, char **argv)
{
	FILE *json = argc == 3 && strcmp(argv[1], "--json") == 0
			     ? fopen(argv[2], "a")
			     : NULL;
	double rate, p50, p99, idle_p50, idle_p99;
	char command[64];
	int plans = 0, status;
	pid_t pid;

	if (!mkdtemp(dir)) {
		perror(dir);
		return 1;
	}
	snprintf(sock, sizeof(sock), "%s/sock", dir);
	snprintf(state, sizeof(state), "%s/state", dir);
	pid = start_daemon();
	rate = measure_calls();
	measure_status(&idle_p50, &idle_p99, NULL);
	measure_status(&p50, &p99, &plans);
	kill(pid, SIGTERM);
	waitpid(pid, &status, 0);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command)) {
		return 1;
	}
	printf("%-44s %10s   %s\n", "figure", "value", "wanted");
	printf("%-44s %8.0f /s   %s\n", "unary calls, 8 connections", rate,
	       ">= 20000 /s");
	printf("%-44s %8.3f ms\n", "status alone, median", idle_p50);
	printf("%-44s %8.3f ms\n", "... 99 of 100", idle_p99);
	printf("%-44s %8.3f ms\n", "status while planning 1024 nodes, median",
	       p50);
	printf("%-44s %8.3f ms   %s\n", "... 99 of 100", p99, "< 10 ms");
	printf("%-44s %8d\n", "... plans made meanwhile", plans);
	if (json) {
		fprintf(json, "{\"bench\": \"rpc\", \"calls_per_s\": %.0f, "
			"\"status_p50_ms\": %.3f, \"status_p99_ms\": %.3f, "
			"\"idle_p99_ms\": %.3f, \"plans\": %d}\n",
			rate, p50, p99, idle_p99, plans);
		fclose(json);
	}
	return 0;
}
