/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What weft adds to a device's own time: every driver of a switch against its
 * emulator of 384 x 384, which answers at once. Circuits made one by one, each
 * with the map read before it and what else the driver does to be sure; and 384
 * circuits replaced by 384 others in one batch, then read back. "cpu" is this
 * process alone, "wall" has the emulator's work and the kernel's in it.
 *
 * bench_drivers              a table on stdout
 * bench_drivers --json FILE  the same, and JSON lines appended to FILE
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/core/driver.h"
#include "drivers/emulators/core/emulator.h"
#include "lib/base/clock.h"
#include "tests/bench/program.h"

#define PORTS 384
#define ONE_BY_ONE 100

static const struct {
	const char *driver, *option, *value;	/* to wait for nothing */
	const char *fault;
} switches[] = {
	{ "calient-tl1", "settle_ms", "0", NULL },
	{ "glimmerglass-tl1", "settle_ms", "0", NULL },
	{ "polatis-scpi", "settle_ms", "0", NULL },
	{ "polatis-tl1", "settle_ms", "0", NULL },
	{ "sonic-ocs", "settle_ms", "1", NULL },
	{ "rome-cli", "poll_ms", "1", "move=0" },
	{ "telescent-cli", "poll_ms", "1", "move=0" },
};

struct bench {
	uv_loop_t loop;
	struct drv *dev;
	pid_t emulator;
	char address[96];
	bool answered;
	int rc, n_xcs, n_commands;
	struct err err;
};

static void start_emulator(struct bench *b, const char *driver,
			   const char *fault)
{
	char *argv[] = { "weft-emulator", "--driver", (char *)driver,
			 "--listen", "127.0.0.1:0", "--size", "384x384",
			 fault ? "--fault" : NULL, (char *)fault, NULL };
	char line[128] = "";
	int out[2];
	FILE *f;

	if (pipe(out) || (fflush(NULL), b->emulator = fork()) < 0) {
		perror("emulator");
		exit(1);
	}
	if (b->emulator == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		_exit(emulator_main(fault ? 9 : 7, argv));
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	if (!f || !fgets(line, sizeof(line), f) ||
	    sscanf(line, "listening %90s", b->address) != 1) {
		fprintf(stderr, "%s: the emulator does not start\n", driver);
		exit(1);
	}
	fclose(f);
}

static void open_device(struct bench *b, int k)
{
	const struct drv_option options[] = {
		{ switches[k].option, switches[k].value }, { "gap_ms", "0" } };
	const struct drv_config cfg = {
		.name = "ocs", .address = b->address, .n_in = PORTS,
		.n_out = PORTS, .timeout_ms = 60000, .options = options,
		.n_options = 2 };

	uv_loop_init(&b->loop);
	if (drv_open(&b->loop, switches[k].driver, &cfg, &b->dev, &b->err)) {
		fprintf(stderr, "%s\n", b->err.msg);
		exit(1);
	}
}

static void finish(struct bench *b, int rc, const struct err *err)
{
	b->answered = true;
	b->rc = rc;
	b->err = *err;
}

static void on_snapshot(struct drv *dev, int rc, struct drv_snapshot *snap,
			const struct err *err, void *arg)
{
	struct bench *b = arg;

	(void)dev;
	b->n_xcs = snap ? snap->n_xcs : -1;
	finish(b, rc, err);
}

static void on_submit(struct drv *dev, int rc, int n,
		      const struct drv_outcome *outcomes, const struct err *err,
		      void *arg)
{
	(void)dev;
	(void)n;
	(void)outcomes;
	finish(arg, rc, err);
}

static void wait_for_it(struct bench *b)
{
	while (!b->answered) {
		uv_run(&b->loop, UV_RUN_ONCE);
	}
	b->answered = false;
	if (b->rc) {
		fprintf(stderr, "%s\n", b->err.msg);
		exit(1);
	}
}

static void submit(struct bench *b, enum drv_mode mode, int n,
		   const struct drv_item *items)
{
	const struct drv_batch batch = { .mode = mode, .n_items = n,
					 .items = items };

	drv_submit(b->dev, &batch, on_submit, b);
	wait_for_it(b);
}

static void read_back(struct bench *b, int want)
{
	drv_snapshot(b->dev, on_snapshot, b);
	wait_for_it(b);
	if (b->n_xcs != want) {
		fprintf(stderr, "%d circuits, expected %d\n", b->n_xcs, want);
		exit(1);
	}
}

static void count_line(const char *device, const char *line, bool is_reply,
		       void *arg)
{
	struct bench *b = arg;

	(void)device;
	(void)line;
	b->n_commands += !is_reply;
}

static void on_closed(void *arg)
{
	((struct bench *)arg)->answered = true;
}

static void tear_down(struct bench *b)
{
	drv_close(b->dev, on_closed, b);
	wait_for_it(b);
	uv_run(&b->loop, UV_RUN_DEFAULT);
	uv_loop_close(&b->loop);
	kill(b->emulator, SIGTERM);
	waitpid(b->emulator, NULL, 0);
}

struct took {
	double wall_ms, cpu_ms;
};

static struct took begin(void)
{
	return (struct took){ (double)clk_now_ns() / 1e6,
			      cpu_seconds() * 1e3 };
}

static struct took since(struct took t)
{
	struct took now = begin();

	return (struct took){ now.wall_ms - t.wall_ms, now.cpu_ms - t.cpu_ms };
}

static void report(FILE *table, FILE *json, const char *driver,
		   struct took one, struct took all, int commands)
{
	if (table) {
		fprintf(table, "%-18s %8.2f %8.2f %10d %8.0f %8.1f\n", driver,
			one.wall_ms, one.cpu_ms, commands, all.wall_ms,
			all.cpu_ms);
	}
	if (json) {
		fprintf(json, "{\"bench\": \"drivers\", \"driver\": \"%s\", "
			"\"one_wall_ms\": %.3f, \"one_cpu_ms\": %.3f, "
			"\"replace_384_commands\": %d, "
			"\"replace_384_wall_ms\": %.1f, "
			"\"replace_384_cpu_ms\": %.1f}\n", driver,
			one.wall_ms, one.cpu_ms, commands, all.wall_ms,
			all.cpu_ms);
	}
}

static void measure(FILE *table, FILE *json, int k)
{
	struct drv_item items[PORTS];
	struct bench b = { 0 };
	struct took t, one, all;

	start_emulator(&b, switches[k].driver, switches[k].fault);
	open_device(&b, k);
	read_back(&b, 0);
	for (int i = 0; i < PORTS; i++) {
		items[i] = (struct drv_item){ DRV_ADD, { i, i } };
	}
	t = begin();
	for (int i = 0; i < ONE_BY_ONE; i++) {
		submit(&b, DRV_SAFE, 1, &items[i]);
	}
	one = since(t);
	one.wall_ms /= ONE_BY_ONE;
	one.cpu_ms /= ONE_BY_ONE;
	submit(&b, DRV_SAFE, PORTS, items);
	for (int i = 0; i < PORTS; i++) {
		items[i].xc.out = (i + 1) % PORTS;
	}
	drv_set_trace(b.dev, count_line, &b);
	t = begin();
	submit(&b, DRV_REPLACE, PORTS, items);
	read_back(&b, PORTS);
	all = since(t);
	report(table, json, switches[k].driver, one, all, b.n_commands);
	tear_down(&b);
}

static int run(FILE *table, FILE *json)
{
	if (table) {
		fprintf(table, "%-18s %17s %28s\n%-18s %8s %8s %10s %8s %8s\n",
			"", "one circuit, ms", "384 replaced, read back, ms",
			"driver", "wall", "cpu", "commands", "wall", "cpu");
	}
	for (size_t k = 0; k < sizeof(switches) / sizeof(switches[0]); k++) {
		measure(table, json, (int)k);
	}
	if (table) {
		fprintf(table, "asked of weft: under 1 ms for a circuit, under "
			"300 ms for 384, besides the device's own time\n");
	}
	return 0;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, "drivers", run);
}
