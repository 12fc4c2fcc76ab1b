/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What weftd pays for those who ask, client and server on one machine: processor
 * time of weftd, as the kernel counts it, for 1,000 calls of GetSchedule by rank of
 * a 128-node ring's job and of a job of 1,024 hosts, from the first call on (what
 * is planned for it counts); for a job that there is not; for Status of an empty
 * weftd and of one with 32 hosts, beside health checks; the most memory it ever had.
 *
 * bench_serve              a table on stdout
 * bench_serve --json FILE  the same, and JSON lines appended to FILE
 */
#include <signal.h>
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
#include "tests/bench/program.h"
#include "tests/unit/daemon/plan_program.h"
#include "weft/v1/weft.pb-c.h"

#define CALLS 1000
#define TIMEOUT_MS 60000

static const char ring_fabric[] =
	"weft: 1\nfabric: ring128\nhosts:\n  - name: node[0-127]\n"
	"rings:\n  - { name: ring0, nodes: \"node[0-127]\", fibres: 2, channels: 64,\n"
	"      channel-rate: 25Gbps, retune: 25us, driver: sim-ring }\n"
	"jobs:\n  - { name: train, ring: ring0, nodes: all, collective: allreduce,\n"
	"      size: 16MiB }\n";
static const char hosts_fabric[] =
	"weft: 1\nfabric: h1024\nhosts:\n"
	"  - { name: \"n[0-1023]\", ports: \"p[0-3]\", rate: 200Gbps }\n"
	"switches:\n  - { name: \"ocs[0-3]\", size: 1024x1024, driver: sim }\n"
	"fibres:\n"
	"  - { from: \"n[0-1023].p0\", to: \"ocs0.[1-1024]\" }\n"
	"  - { from: \"n[0-1023].p1\", to: \"ocs1.[1-1024]\" }\n"
	"  - { from: \"n[0-1023].p2\", to: \"ocs2.[1-1024]\" }\n"
	"  - { from: \"n[0-1023].p3\", to: \"ocs3.[1-1024]\" }\n"
	"jobs:\n  - { name: train, nodes: \"n[0-1023]\", collective: allreduce,\n"
	"      size: 1GiB, topology: \"Torus(32,32)\", alpha: 5us }\n";
static const char small_fabric[] =
	"weft: 1\nfabric: h32\nhosts:\n"
	"  - { name: \"n[0-31]\", ports: \"p[0-1]\", rate: 200Gbps }\n"
	"switches:\n  - { name: \"ocs[0-1]\", size: 32x32, driver: sim }\n"
	"fibres:\n"
	"  - { from: \"n[0-31].p0\", to: \"ocs0.[1-32]\" }\n"
	"  - { from: \"n[0-31].p1\", to: \"ocs1.[1-32]\" }\n"
	"jobs:\n  - { name: train, nodes: \"n[0-31]\", collective: allreduce, size: 1MiB,\n"
	"      topology: \"BiRing(2,32)\", alpha: 5us }\n";

/* One weftd, and a connection to it. */
struct served {
	char dir[64], sock[80], state[80];
	pid_t pid;
	struct rpc_client *client;
};

static void fail(const char *what, const struct err *err)
{
	fprintf(stderr, "bench_serve: %s: %s\n", what, err->msg);
	exit(1);
}

static void start(struct served *s)
{
	char *argv[] = { "weftd", "--socket", s->sock, "--state-dir", s->state,
			 "--log-level", "error", NULL };
	struct err err = { 0 };

	snprintf(s->dir, sizeof(s->dir), "/tmp/weft-bench-XXXXXX");
	if (!mkdtemp(s->dir)) {
		perror(s->dir);
		exit(1);
	}
	snprintf(s->sock, sizeof(s->sock), "%s/sock", s->dir);
	snprintf(s->state, sizeof(s->state), "%s/state", s->dir);
	s->pid = fork();
	if (s->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		_exit(daemon_main(7, argv));
	}
	for (int i = 0; i < 200 && rpc_client_open(s->sock, 1000, &s->client, &err); i++) {
		usleep(20000);
	}
	if (!s->client) {
		fail("weftd does not answer", &err);
	}
}

static void end(struct served *s)
{
	char command[96];
	int status;

	rpc_client_close(s->client);
	kill(s->pid, SIGTERM);
	waitpid(s->pid, &status, 0);
	snprintf(command, sizeof(command), "rm -rf %s", s->dir);
	if (system(command)) {
		perror(command);
	}
}

/* Seconds of processor that weftd and its threads have used, to 1/100 s. */
static double used_s(const struct served *s)
{
	unsigned long user = 0, system = 0;
	char path[64], line[1024];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)s->pid);
	f = fopen(path, "r");
	if (!f || !fgets(line, sizeof(line), f) ||
	    sscanf(strrchr(line, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
		   &user, &system) != 2) {
		perror(path);
		exit(1);
	}
	fclose(f);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* The most memory it has ever had, in MiB. */
static double peak_mib(const struct served *s)
{
	char path[64], line[256];
	long kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)s->pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "VmHWM: %ld", &kib);
	}
	if (f) {
		fclose(f);
	}
	return (double)kib / 1024;
}

static int add_bytes(const ProtobufCMessage *msg, void *arg)
{
	*(size_t *)arg += ((const Weft__V1__GetScheduleResponse *)msg)->data.len;
	return 0;
}

static int ignore(const ProtobufCMessage *msg, void *arg)
{
	(void)msg, (void)arg;
	return 0;
}

static void apply(struct served *s, const char *config)
{
	Weft__V1__ApplyRequest req;
	struct err err = { 0 };

	weft__v1__apply_request__init(&req);
	req.name = "bench.yaml";
	req.source_case = WEFT__V1__APPLY_REQUEST__SOURCE_CONFIG;
	req.config.data = (uint8_t *)config;
	req.config.len = strlen(config);
	if (rpc_client_call(s->client, "/weft.v1.FabricService/Apply", &req.base,
			    &weft__v1__apply_response__descriptor, TIMEOUT_MS, ignore, NULL, NULL,
			    &err)) {
		fail("Apply", &err);
	}
}

/* One call; the bytes that came are added to *bytes. */
static int get_schedule(struct served *s, const char *job, int rank, size_t *bytes,
			struct err *err)
{
	Weft__V1__GetScheduleRequest req = WEFT__V1__GET_SCHEDULE_REQUEST__INIT;
	Weft__V1__Number number = WEFT__V1__NUMBER__INIT;

	number.value = rank;
	req.job = (char *)job;
	req.rank = &number;
	return rpc_client_call(s->client, "/weft.v1.FabricService/GetSchedule", &req.base,
			       &weft__v1__get_schedule_response__descriptor, TIMEOUT_MS, add_bytes,
			       bytes, NULL, err);
}

/* Seconds for CALLS of them, rank after rank. */
static double measure_ranks(struct served *s, int ranks, size_t *bytes)
{
	double before = used_s(s);
	struct err err = { 0 };

	*bytes = 0;
	for (int i = 0; i < CALLS; i++) {
		if (get_schedule(s, "train", i % ranks, bytes, &err)) {
			fail("GetSchedule", &err);
		}
	}
	return used_s(s) - before;
}

static double measure_unknown(struct served *s)
{
	double before = used_s(s);
	struct err err = { 0 };
	size_t bytes = 0;

	for (int i = 0; i < CALLS; i++) {
		if (get_schedule(s, "other", 0, &bytes, &err) != WEFT_ENOTFOUND) {
			fail("an unknown job", &err);
		}
	}
	return used_s(s) - before;
}

/* Microseconds of weftd's processor that one call costs. */
static double measure_unary(struct served *s, const char *path, const ProtobufCMessage *req,
			    const ProtobufCMessageDescriptor *response, int calls)
{
	double before = used_s(s);
	ProtobufCMessage *res;
	struct err err = { 0 };

	for (int i = 0; i < calls; i++) {
		if (rpc_client_unary(s->client, path, req, response, TIMEOUT_MS, &res, &err)) {
			fail(path, &err);
		}
		protobuf_c_message_free_unpacked(res, NULL);
	}
	return (used_s(s) - before) * 1e6 / calls;
}

static double measure_status(struct served *s, int calls)
{
	Weft__V1__StatusRequest req = WEFT__V1__STATUS_REQUEST__INIT;

	return measure_unary(s, "/weft.v1.FabricService/Status", &req.base,
			     &weft__v1__status_response__descriptor, calls);
}

static double measure_health(struct served *s, int calls)
{
	Grpc__Health__V1__HealthCheckRequest req = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;

	return measure_unary(s, "/grpc.health.v1.Health/Check", &req.base,
			     &grpc__health__v1__health_check_response__descriptor, calls);
}

static void bench_schedules(FILE *table, FILE *json, const char *what, const char *config,
			    int ranks)
{
	double ranks_s, unknown_s, mib;
	struct served s = { 0 };
	size_t bytes;

	start(&s);
	apply(&s, config);
	ranks_s = measure_ranks(&s, ranks, &bytes);
	unknown_s = measure_unknown(&s);
	mib = peak_mib(&s);
	end(&s);
	if (table) {
		fprintf(table, "%-16s %10.2f s %10zu B %12.2f s %10.1f MiB\n", what, ranks_s,
			bytes / CALLS, unknown_s, mib);
	}
	if (json) {
		fprintf(json,
			"{\"bench\": \"serve\", \"job\": \"%s\", \"calls\": %d, "
			"\"cpu_s\": %.2f, \"bytes\": %zu, \"unknown_cpu_s\": %.2f, "
			"\"peak_mib\": %.1f}\n",
			what, CALLS, ranks_s, bytes / CALLS, unknown_s, mib);
	}
}

static void bench_status(FILE *table, FILE *json)
{
	double empty, small, health;
	struct served s = { 0 };

	start(&s);
	health = measure_health(&s, 50000);
	empty = measure_status(&s, 20000);
	apply(&s, small_fabric);
	small = measure_status(&s, 10000);
	end(&s);
	if (table) {
		fprintf(table, "\n%-36s %8.1f us\n%-36s %8.1f us\n%-36s %8.1f us\n",
			"health check", health, "Status of an empty weftd", empty,
			"Status of 32 hosts", small);
	}
	if (json) {
		fprintf(json, "{\"bench\": \"serve_status\", \"health_us\": %.1f, "
			"\"empty_us\": %.1f, \"hosts32_us\": %.1f}\n", health, empty, small);
	}
}

static int run(FILE *table, FILE *json)
{
	if (table) {
		fprintf(table, "%-16s %12s %12s %14s %14s\n", "GetSchedule", "1000 ranks",
			"a rank", "1000 unknown", "peak memory");
	}
	bench_schedules(table, json, "ring of 128", ring_fabric, 128);
	bench_schedules(table, json, "1024 hosts", hosts_fabric, 1024);
	bench_status(table, json);
	return 0;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, "bench_serve", run);
}
