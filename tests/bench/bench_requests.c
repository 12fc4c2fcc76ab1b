/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many requests at once: 20 clients ask for 100 jobs of two hosts on simulated switches and give
 * them back, each client one after the other. What they wait for is weftd's own time, that of its
 * store's disk, and how many changes their jobs go into.
 *
 * bench_requests              a table on stdout
 * bench_requests --json FILE  the same, and a JSON line appended to FILE
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/daemon/daemon.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/rpc/rpc.h"
#include "tests/unit/daemon/plan_program.h"
#include "weft/v1/jobs.pb-c.h"
#include "weft/v1/weft.pb-c.h"

#define CLIENTS 20
#define EACH 5				/* requests of a client */
#define WAIT_MS 60000

static const char fabric[] =
	"weft: 1\nfabric: asked\nhosts:\n"
	"  - { name: 'h[000-199]', ports: p0, rate: 100Gbps, reactivation: 0ms }\n"
	"switches:\n  - { name: ocs0, size: 200x200, driver: sim }\n"
	"fibres:\n  - { from: 'h[000-199].p0', to: 'ocs0.[1-200]' }\n";

static char dir[] = "/tmp/weft-bench-XXXXXX";
static char sock[64], state[64];
static const char *method;		/* that clients call */
static pid_t weftd;

static void start_daemon(void)
{
	char *argv[] = { "weftd", "--socket", sock, "--state-dir", state, "--poll", "0",
			 "--log-level", "error", NULL };

	weftd = fork();
	if (weftd == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		_exit(daemon_main(9, argv));
	}
}

static struct rpc_client *dial(void)
{
	struct rpc_client *c = NULL;
	struct err err;

	for (int i = 0; i < 200 && rpc_client_open(sock, 1000, &c, &err); i++) {
		usleep(20000);
	}
	if (!c) {
		fprintf(stderr, "weftd does not answer: %s\n", err.msg);
		exit(1);
	}
	return c;
}

static int ignore(const ProtobufCMessage *msg, void *arg)
{
	(void)msg, (void)arg;
	return 0;
}

static void call(struct rpc_client *c, const char *path, const ProtobufCMessage *req,
		 const ProtobufCMessageDescriptor *response)
{
	struct err err;

	if (rpc_client_call(c, path, req, response, WAIT_MS, ignore, NULL, NULL, &err)) {
		fprintf(stderr, "%s: %s\n", path, err.msg);
		exit(1);
	}
}

static void apply_fabric_file(void)
{
	Weft__V1__ApplyRequest req;
	struct rpc_client *c = dial();

	weft__v1__apply_request__init(&req);
	req.source_case = WEFT__V1__APPLY_REQUEST__SOURCE_CONFIG;
	req.config.data = (uint8_t *)fabric;
	req.config.len = strlen(fabric);
	call(c, "/weft.v1.FabricService/Apply", &req.base,
	     &weft__v1__apply_response__descriptor);
	rpc_client_close(c);
}

/* Its requests, or what gives them back. */
static void *be_client(void *arg)
{
	struct rpc_client *c = dial();
	const int first = *(const int *)arg;

	for (int i = first; i < first + EACH; i++) {
		Weft__V1__RequestJobRequest ask = WEFT__V1__REQUEST_JOB_REQUEST__INIT;
		Weft__V1__ReleaseJobRequest release = WEFT__V1__RELEASE_JOB_REQUEST__INIT;
		char name[16], a[16], b[16], *nodes[] = { a, b };

		snprintf(name, sizeof(name), "j%d", i);
		snprintf(a, sizeof(a), "h%03d", 2 * i);
		snprintf(b, sizeof(b), "h%03d", 2 * i + 1);
		ask.name = release.name = name;
		ask.nodes = nodes;
		ask.n_nodes = 2;
		ask.collective = "allreduce";
		ask.size_bytes = 1 << 20;
		call(c, method, strstr(method, "Request") ? &ask.base : &release.base,
		     &weft__v1__request_job_response__descriptor);
	}
	rpc_client_close(c);
	return NULL;
}

/* CPU time of weftd so far, ms: what is left of the time on a machine that does nothing else. */
static double cpu_ms(void)
{
	struct timespec at;
	clockid_t clock;

	if (clock_getcpuclockid(weftd, &clock) || clock_gettime(clock, &at)) {
		return 0;
	}
	return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

/* Milliseconds until all clients are done. */
static double measure(const char *path)
{
	pthread_t t[CLIENTS];
	int first[CLIENTS];
	int64_t start = clk_now_ns();

	method = path;
	for (int i = 0; i < CLIENTS; i++) {
		first[i] = i * EACH;
		pthread_create(&t[i], NULL, be_client, &first[i]);
	}
	for (int i = 0; i < CLIENTS; i++) {
		pthread_join(t[i], NULL);
	}
	return (double)(clk_now_ns() - start) / 1e6;
}

static int count_changes(void)
{
	Weft__V1__HistoryRequest req = WEFT__V1__HISTORY_REQUEST__INIT;
	struct rpc_client *c = dial();
	ProtobufCMessage *res;
	struct err err;
	int n;

	req.limit = 1000;
	if (rpc_client_unary(c, "/weft.v1.FabricService/History", &req.base,
			     &weft__v1__history_response__descriptor, WAIT_MS, &res, &err)) {
		fprintf(stderr, "History: %s\n", err.msg);
		exit(1);
	}
	n = (int)((Weft__V1__HistoryResponse *)res)->n_changes;
	protobuf_c_message_free_unpacked(res, NULL);
	rpc_client_close(c);
	return n;
}

int main(int argc, char **argv)
{
	FILE *json = argc == 3 && strcmp(argv[1], "--json") == 0 ? fopen(argv[2], "a") : NULL;
	double asked, released, cpu;
	char command[64];
	int before, started, ended, status;

	if (!mkdtemp(dir)) {
		perror(dir);
		return 1;
	}
	snprintf(sock, sizeof(sock), "%s/sock", dir);
	snprintf(state, sizeof(state), "%s/state", dir);
	start_daemon();
	apply_fabric_file();
	before = count_changes();
	cpu = cpu_ms();
	asked = measure("/weft.v1.JobsService/RequestJob");
	cpu = cpu_ms() - cpu;
	started = count_changes() - before;
	released = measure("/weft.v1.JobsService/ReleaseJob");
	ended = count_changes() - before - started;
	kill(weftd, SIGTERM);
	waitpid(weftd, &status, 0);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command)) {
		return 1;
	}
	printf("%-40s %9s %9s   %s\n", "figure", "ms", "changes", "wanted");
	printf("%-40s %9.0f %9d   %s\n", "100 requests of 20 clients", asked, started, "< 300 ms");
	printf("%-40s %9.0f\n", "... CPU of weftd meanwhile", cpu);
	printf("%-40s %9.0f %9d\n", "100 releases of 20 clients", released, ended);
	if (json) {
		fprintf(json, "{\"bench\": \"requests\", \"request_ms\": %.1f, "
			"\"release_ms\": %.1f, \"cpu_ms\": %.1f, \"changes\": %d}\n",
			asked, released, cpu, started + ended);
		fclose(json);
	}
	return 0;
}
