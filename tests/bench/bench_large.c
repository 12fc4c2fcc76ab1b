/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fabric of 60 switches of 384 ports and 20,160 circuits (tests/large_fabric.sh),
 * on emulators that answer at once: wall time of each request to weftd, processor
 * time of weftd for it, and meanwhile the slowest and the 99th percentile of Status
 * and of a health check, each called all the time on a connection of its own, which
 * tells how long weftd's loop was busy with one thing; the most memory it ever had.
 *
 * bench_large              a table on stdout
 * bench_large --json FILE  the same, and JSON lines appended to FILE
 *
 * Status is asked for as "weft status" does (brief); with WEFT_LARGE_WHOLE set all of it, of
 * which a client takes most of the time to unpack it.
 *
 * WEFT_LARGE gives another size, as the first words of large_fabric.sh: PODS HOSTS
 * SWITCHES PORTS. Runs in the top folder; weft is in $B.
 */
#include <pthread.h>
#include <signal.h>
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

#define TIMEOUT_MS 300000
#define MAX_SAMPLES 200000
#define PACE_US 1000
#define FIRST_ADDRESS "127.0.0.1:17000"

static char dir[] = "/tmp/weft-large-XXXXXX";
static char sock[64], state[64], config_path[64];
static char *config, *other;	/* other circuits for the jobs of eight */
static pid_t weftd, emulators;
static FILE *table_out, *json_out;

/* What one connection asks, again and again while a step is under way. */
struct prober {
	const char *path;
	const ProtobufCMessage *req;
	const ProtobufCMessageDescriptor *response;
	pthread_t thread;
	int64_t *took;
	int n;
};

static _Atomic bool over;

static void fail(const char *what, const struct err *err)
{
	fprintf(stderr, "bench_large: %s: %s\n", what, err->msg);
	exit(1);
}

static struct rpc_client *dial(void)
{
	struct rpc_client *c = NULL;
	struct err err = { 0 };

	for (int i = 0; i < 1000 && rpc_client_open(sock, 1000, &c, &err); i++) {
		usleep(10000);
	}
	if (!c) {
		fail("weftd does not answer", &err);
	}
	return c;
}

/* Reads all of f, which has at most 16 MiB. */
static char *read_all(FILE *f)
{
	char *text = calloc(1, 16 << 20);

	if (!f || !text || fread(text, 1, (16 << 20) - 1, f) == 0) {
		perror("large_fabric.sh");
		exit(1);
	}
	return text;
}

static char *generate(const char *options)
{
	const char *size = getenv("WEFT_LARGE");
	char command[256];
	FILE *f;
	char *text;

	snprintf(command, sizeof(command), "%s tests/large_fabric.sh %s " FIRST_ADDRESS, options,
		 size ? size : "15 168 4 384");
	f = popen(command, "r");
	text = read_all(f);
	pclose(f);
	return text;
}

static void start_emulators(void)
{
	const char *bin = getenv("B");
	char program[4096], line[256];
	int pipes[2];
	FILE *f;

	snprintf(program, sizeof(program), "%s/weft", bin ? bin : "build/release");
	if (pipe(pipes) != 0) {
		perror("pipe");
		exit(1);
	}
	emulators = fork();
	if (emulators == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(pipes[1], STDOUT_FILENO);
		dup2(pipes[1], STDERR_FILENO);
		execl(program, program, "emulate", config_path, (char *)NULL);
		perror(program);
		_exit(127);
	}
	close(pipes[1]);
	f = fdopen(pipes[0], "r");
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "ready;", 6) == 0) {
			return;
		}
	}
	fprintf(stderr, "bench_large: the emulators did not start\n");
	exit(1);
}

static void start_weftd(void)
{
	char *argv[] = { "weftd", "--socket", sock, "--state-dir", state,
			 "--log-level", "error", NULL };

	weftd = fork();
	if (weftd == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		_exit(daemon_main(7, argv));
	}
}

static void stop(pid_t pid)
{
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
}

/* Seconds of processor that weftd and its threads have used, to 1/100 s. */
static double used_s(void)
{
	unsigned long user = 0, system = 0;
	char path[64], line[1024];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)weftd);
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
static double peak_mib(void)
{
	char path[64], line[256];
	long kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)weftd);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "VmHWM: %ld", &kib);
	}
	if (f) {
		fclose(f);
	}
	return (double)kib / 1024;
}

/* ---- one step and its probers ---------------------------------------------- */

static void *probe(void *arg)
{
	struct prober *p = arg;
	struct rpc_client *c = dial();
	ProtobufCMessage *res;
	struct err err = { 0 };

	while (!over && p->n < MAX_SAMPLES) {
		int64_t at = clk_now_ns();

		if (rpc_client_unary(c, p->path, p->req, p->response, TIMEOUT_MS, &res, &err)) {
			fail(p->path, &err);
		}
		p->took[p->n++] = clk_now_ns() - at;
		protobuf_c_message_free_unpacked(res, NULL);
		usleep(PACE_US);
	}
	rpc_client_close(c);
	return NULL;
}

static void begin(struct prober *p)
{
	p->n = 0;
	p->took = calloc(MAX_SAMPLES, sizeof(*p->took));
	pthread_create(&p->thread, NULL, probe, p);
}

static int by_size(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Milliseconds that 99 % of calls took at most, and the longest. */
static void end(struct prober *p, double *p99, double *max)
{
	pthread_join(p->thread, NULL);
	qsort(p->took, (size_t)p->n, sizeof(*p->took), by_size);
	*p99 = p->n ? (double)p->took[p->n * 99 / 100] / 1e6 : 0;
	*max = p->n ? (double)p->took[p->n - 1] / 1e6 : 0;
	free(p->took);
}

static int ignore(const ProtobufCMessage *msg, void *arg)
{
	(void)msg, (void)arg;
	return 0;
}

/* What a step does; c is a connection of its own. */
typedef void step_fn(struct rpc_client *c);

static void measure(const char *what, step_fn *step)
{
	Weft__V1__StatusRequest status = WEFT__V1__STATUS_REQUEST__INIT;
	Grpc__Health__V1__HealthCheckRequest health =
		GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
	struct prober probers[2] = {
		{ .path = "/weft.v1.FabricService/Status", .req = &status.base,
		  .response = &weft__v1__status_response__descriptor },
		{ .path = "/grpc.health.v1.Health/Check", .req = &health.base,
		  .response = &grpc__health__v1__health_check_response__descriptor },
	};
	struct rpc_client *c = dial();
	double cpu = used_s(), wall, p99[2], max[2];
	int64_t at;

	status.brief = !getenv("WEFT_LARGE_WHOLE");
	over = false;
	for (int i = 0; i < 2; i++) {
		begin(&probers[i]);
	}
	at = clk_now_ns();
	step(c);
	wall = (double)(clk_now_ns() - at) / 1e9;
	over = true;
	for (int i = 0; i < 2; i++) {
		end(&probers[i], &p99[i], &max[i]);
	}
	cpu = used_s() - cpu;
	rpc_client_close(c);
	if (table_out) {
		fprintf(table_out,
			"%-22s %7.2f s %7.2f s %8.1f %8.1f ms %8.1f %8.1f ms %6.0f MiB\n", what,
			wall, cpu, p99[0], max[0], p99[1], max[1], peak_mib());
	}
	if (json_out) {
		fprintf(json_out, "{\"bench\": \"large\", \"step\": \"%s\", \"wall_s\": %.3f, "
			"\"cpu_s\": %.2f, \"status_p99_ms\": %.2f, \"status_max_ms\": %.2f, "
			"\"health_p99_ms\": %.2f, \"health_max_ms\": %.2f, \"peak_mib\": %.1f}\n",
			what, wall, cpu, p99[0], max[0], p99[1], max[1], peak_mib());
	}
}

/* ---- the steps --------------------------------------------------------------- */

static void plan(struct rpc_client *c)
{
	Weft__V1__PlanRequest req = WEFT__V1__PLAN_REQUEST__INIT;
	struct err err = { 0 };

	req.config.data = (uint8_t *)config;
	req.config.len = strlen(config);
	if (rpc_client_call(c, "/weft.v1.FabricService/Plan", &req.base,
			    &weft__v1__plan_response__descriptor, TIMEOUT_MS, ignore, NULL, NULL,
			    &err)) {
		fail("Plan", &err);
	}
}

static void apply_text(struct rpc_client *c, char *text)
{
	Weft__V1__ApplyRequest req;
	struct err err = { 0 };

	weft__v1__apply_request__init(&req);
	req.name = "large.yaml";
	req.source_case = WEFT__V1__APPLY_REQUEST__SOURCE_CONFIG;
	req.config.data = (uint8_t *)text;
	req.config.len = strlen(text);
	if (rpc_client_call(c, "/weft.v1.FabricService/Apply", &req.base,
			    &weft__v1__apply_response__descriptor, TIMEOUT_MS, ignore, NULL, NULL,
			    &err)) {
		fail("Apply", &err);
	}
}

static void apply(struct rpc_client *c)
{
	apply_text(c, config);
}

static void apply_other(struct rpc_client *c)
{
	apply_text(c, other);
}

static void call(struct rpc_client *c, const char *path, const ProtobufCMessage *req,
		 const ProtobufCMessageDescriptor *response)
{
	ProtobufCMessage *res;
	struct err err = { 0 };

	if (rpc_client_unary(c, path, req, response, TIMEOUT_MS, &res, &err)) {
		fail(path, &err);
	}
	protobuf_c_message_free_unpacked(res, NULL);
}

static void diff(struct rpc_client *c)
{
	Weft__V1__DiffRequest req = WEFT__V1__DIFF_REQUEST__INIT;

	call(c, "/weft.v1.FabricService/Diff", &req.base, &weft__v1__diff_response__descriptor);
}

static void verify(struct rpc_client *c)
{
	Weft__V1__VerifyRequest req = WEFT__V1__VERIFY_REQUEST__INIT;

	call(c, "/weft.v1.FabricService/Verify", &req.base,
	     &weft__v1__verify_response__descriptor);
}

/* Three rounds of polling fit into it. */
static void idle(struct rpc_client *c)
{
	(void)c;
	sleep(3);
}

static void setup(void)
{
	FILE *f;

	if (!mkdtemp(dir)) {
		perror(dir);
		exit(1);
	}
	snprintf(sock, sizeof(sock), "%s/sock", dir);
	snprintf(state, sizeof(state), "%s/state", dir);
	snprintf(config_path, sizeof(config_path), "%s/large.yaml", dir);
	config = generate("env");
	other = generate("env OTHER_SMALL_JOBS=yes");
	f = fopen(config_path, "w");
	if (!f || fputs(config, f) < 0 || fclose(f) != 0) {
		perror(config_path);
		exit(1);
	}
}

static int run(FILE *table, FILE *json)
{
	char command[96];
	struct rpc_client *c;

	table_out = table, json_out = json;
	setup();
	start_emulators();
	start_weftd();
	rpc_client_close(dial());
	if (table) {
		fprintf(table, "%-22s %9s %9s %20s %20s %10s\n", "step", "wall", "weftd CPU",
			"status p99, max", "health p99, max", "peak");
	}
	measure("plan", plan);
	measure("apply", apply);
	measure("idle", idle);
	measure("plan, nothing to do", plan);
	measure("apply, nothing to do", apply);
	measure("diff", diff);
	measure("verify", verify);
	measure("change of small jobs", apply_other);
	measure("and back", apply);
	stop(weftd);
	start_weftd();
	c = dial();
	rpc_client_close(c);
	measure("after a restart", idle);
	stop(weftd);
	stop(emulators);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) != 0;
}

int main(int argc, char **argv)
{
	setlinebuf(stdout);
	return bench_main(argc, argv, "bench_large", run);
}
