/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can go wrong in a run: links between machines, weftd and its machine, its disk, devices.
 * What is wrong with etcd is in fault_etcd.c. Each is drawn, told in words, begun and ended here.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/faults/chance.h"
#include "tests/sim/disk/disk.h"
#include "tests/sim/cluster/fabrics.h"
#include "tests/sim/faults/fault_draws.h"

#define N(v) ((int64_t)(sizeof(v) / sizeof(*(v))))
#define SECONDS(ns) ((double)(ns) / SIM_S)
/* A link that nothing was said of; sim.h's own range. */
#define USUAL_LOW (SIM_MS / 20)
#define USUAL_HIGH (SIM_MS / 4)

#define FAULT_SAY(f, ...) snprintf((f)->words, sizeof((f)->words), __VA_ARGS__)

static bool always(const struct scenario *s)
{
	(void)s;
	return true;
}

int64_t fault_between(struct planned_fault *f, int64_t low, int64_t high)
{
	return chance_between(&f->chance, low, high);
}

/* As likely short as long: of a range of several powers. */
int64_t fault_of_any_size(struct planned_fault *f, int64_t low, int64_t high)
{
	const double share = (double)fault_between(f, 0, 1000000) / 1e6;

	return (int64_t)((double)low * pow((double)high / (double)low, share));
}

void fault_draw_weftd(const struct scenario *s, struct planned_fault *f)
{
	f->weftd = (int)fault_between(f, 0, s->n_weftds);
	f->from = cluster_machine(f->weftd);
}

static void draw_device(const struct scenario *s, struct planned_fault *f)
{
	f->device = (int)fault_between(f, 0, s->n_devices);
}

/* ---- links ---- */

/* A weftd and what it asks, in either order. */
static void draw_link(const struct scenario *s, struct planned_fault *f)
{
	static const char *const members[] = { "etcd0", "etcd1", "etcd2" };
	const bool etcd = s->etcd_members > 0 && fault_between(f, 0, 3) > 0;

	fault_draw_weftd(s, f);
	draw_device(s, f);
	f->to = etcd ? members[fault_between(f, 0, s->etcd_members)] :
		cluster_device_name(f->device);
	if (fault_between(f, 0, 2)) {
		const char *from = f->from;

		f->from = f->to;
		f->to = from;
	}
}

static void draw_stall(const struct scenario *s, struct planned_fault *f)
{
	draw_link(s, f);
	f->length_ns = fault_of_any_size(f, 50 * SIM_MS, 2 * s->lease_s * SIM_S);
	FAULT_SAY(f, "from %s to %s all stands still for %.3f s", f->from, f->to,
		  SECONDS(f->length_ns));
}

static void begin_stall(struct planned_fault *f)
{
	sim_link_stall(f->from, f->to, sim_now() + f->length_ns);
}

static void draw_cut(const struct scenario *s, struct planned_fault *f)
{
	draw_link(s, f);
	f->length_ns = fault_of_any_size(f, SIM_S / 2, 30 * SIM_S);
	FAULT_SAY(f, "%s and %s do not hear each other for %.3f s", f->from, f->to,
		  SECONDS(f->length_ns));
}

static void begin_cut(struct planned_fault *f)
{
	sim_link_stall(f->from, f->to, sim_now() + f->length_ns);
	sim_link_stall(f->to, f->from, sim_now() + f->length_ns);
}

static void draw_reset(const struct scenario *s, struct planned_fault *f)
{
	draw_link(s, f);
	FAULT_SAY(f, "connections of %s and %s are reset", f->from, f->to);
}

static void begin_reset(struct planned_fault *f)
{
	sim_link_reset(f->from, f->to);
}

static void draw_slow(const struct scenario *s, struct planned_fault *f)
{
	draw_link(s, f);
	f->amount = fault_of_any_size(f, 2 * SIM_MS, 400 * SIM_MS);
	f->length_ns = fault_between(f, 5 * SIM_S, 30 * SIM_S);
	FAULT_SAY(f, "from %s to %s takes %.0f ms for %.1f s", f->from, f->to,
		  (double)f->amount / SIM_MS, SECONDS(f->length_ns));
}

static void begin_slow(struct planned_fault *f)
{
	sim_link_delay(f->from, f->to, f->amount, f->amount + f->amount / 4);
}

static void end_slow(struct planned_fault *f)
{
	sim_link_delay(f->from, f->to, USUAL_LOW, USUAL_HIGH);
}

/* ---- weftd and its machine ---- */

static void draw_kill(const struct scenario *s, struct planned_fault *f)
{
	fault_draw_weftd(s, f);
	f->amount = fault_of_any_size(f, 1, 5000);
	f->length_ns = 10 * SIM_S;
	FAULT_SAY(f, "weftd of %s is killed in its %lld. call from then on", f->from,
		  (long long)f->amount);
}

static void begin_kill(struct planned_fault *f)
{
	f->met = cluster_weftd(f->weftd);
	if (f->met) {
		sim_kill_at(f->met, f->amount);
	}
}

/* One that makes so few calls lives on: faults have an end. */
static void end_kill(struct planned_fault *f)
{
	if (f->met && f->met == cluster_weftd(f->weftd)) {
		sim_kill_at(f->met, 0);
	}
}

static void draw_pause(const struct scenario *s, struct planned_fault *f)
{
	fault_draw_weftd(s, f);
	f->length_ns = fault_of_any_size(f, SIM_S / 10, 4 * s->lease_s * SIM_S);
	FAULT_SAY(f, "weftd of %s is stopped for %.3f s, and goes on", f->from,
		  SECONDS(f->length_ns));
}

static void begin_pause(struct planned_fault *f)
{
	struct sim_process *p = cluster_weftd(f->weftd);

	if (p) {
		sim_pause(p, sim_now() + f->length_ns);
	}
}

static void draw_stop(const struct scenario *s, struct planned_fault *f)
{
	fault_draw_weftd(s, f);
	f->length_ns = fault_of_any_size(f, SIM_S / 10, 20 * SIM_S);
	FAULT_SAY(f, "weftd of %s is told to end, and started %.3f s later", f->from,
		  SECONDS(f->length_ns));
}

static void begin_stop(struct planned_fault *f)
{
	f->met = cluster_weftd(f->weftd);
	cluster_stop(f->weftd);
}

/* Another such fault may have started it again. */
static void end_stop(struct planned_fault *f)
{
	if (f->met && f->met == cluster_weftd(f->weftd)) {
		cluster_wait_stopped(f->weftd);
	}
	while (!cluster_is_on(f->from)) {
		sim_sleep(SIM_S);
	}
	cluster_start(f->weftd);
}

static void draw_power(const struct scenario *s, struct planned_fault *f)
{
	fault_draw_weftd(s, f);
	f->length_ns = fault_of_any_size(f, SIM_S / 10, 30 * SIM_S);
	FAULT_SAY(f, "%s is without power for %.3f s", f->from, SECONDS(f->length_ns));
}

static void begin_power(struct planned_fault *f)
{
	disk_chance(f->from, f->chance);
	cluster_power_off(f->from);
}

static void end_power(struct planned_fault *f)
{
	cluster_power_on(f->from);
}

static void draw_dark(const struct scenario *s, struct planned_fault *f)
{
	f->amount = s->n_weftds;
	f->length_ns = fault_of_any_size(f, SIM_S, 30 * SIM_S);
	FAULT_SAY(f, "all machines of weftd are without power for %.3f s", SECONDS(f->length_ns));
}

static void begin_dark(struct planned_fault *f)
{
	for (int i = 0; i < f->amount; i++) {
		disk_chance(cluster_machine(i), chance_next(&f->chance));
		cluster_power_off(cluster_machine(i));
	}
	disk_chance("shared", f->chance);
	disk_power_loss("shared");
}

static void end_dark(struct planned_fault *f)
{
	for (int i = 0; i < f->amount; i++) {
		cluster_power_on(cluster_machine(i));
	}
}

static void draw_clock(const struct scenario *s, struct planned_fault *f)
{
	fault_draw_weftd(s, f);
	f->amount = fault_of_any_size(f, SIM_S / 10, 600 * SIM_S);
	if (fault_between(f, 0, 2)) {
		f->amount = -f->amount;
	}
	FAULT_SAY(f, "the clock of %s jumps by %.1f s", f->from, SECONDS(f->amount));
}

static void begin_clock(struct planned_fault *f)
{
	sim_shift_clock(f->from, f->amount);
}

/* ---- its disk ---- */

static void draw_disk(const struct scenario *s, struct planned_fault *f)
{
	fault_draw_weftd(s, f);
	if (s->turns == CLUSTER_SHARED) {
		f->from = "shared";
	}
	f->length_ns = fault_of_any_size(f, SIM_S / 10, 20 * SIM_S);
}

static void draw_full(const struct scenario *s, struct planned_fault *f)
{
	draw_disk(s, f);
	FAULT_SAY(f, "the disk of %s is full for %.3f s", f->from, SECONDS(f->length_ns));
}

static void begin_full(struct planned_fault *f)
{
	disk_full(f->from, true);
}

static void end_full(struct planned_fault *f)
{
	disk_full(f->from, false);
}

static void draw_errors(const struct scenario *s, struct planned_fault *f)
{
	draw_disk(s, f);
	f->amount = fault_of_any_size(f, 1, 1001);
	FAULT_SAY(f, "the disk of %s fails in %lld of 1000 calls for %.3f s", f->from,
		  (long long)f->amount, SECONDS(f->length_ns));
}

static void begin_errors(struct planned_fault *f)
{
	disk_chance(f->from, f->chance);
	disk_errors(f->from, (int)f->amount);
}

static void end_errors(struct planned_fault *f)
{
	disk_errors(f->from, 0);
}

static void draw_slow_disk(const struct scenario *s, struct planned_fault *f)
{
	draw_disk(s, f);
	f->amount = fault_of_any_size(f, 5 * SIM_MS, 2 * s->lease_s * SIM_S);
	FAULT_SAY(f, "a sync of the disk of %s takes %.3f s, for %.3f s", f->from,
		  SECONDS(f->amount), SECONDS(f->length_ns));
}

static void begin_slow_disk(struct planned_fault *f)
{
	disk_slow(f->from, f->amount);
}

static void end_slow_disk(struct planned_fault *f)
{
	disk_slow(f->from, 0);
}

/* ---- devices ---- */

/* Of any dialect; the range of what follows, 0, 0: nothing does. */
static const struct device_fault {
	const char *name;
	int low, high;
} device_faults[] = {
	{ "refuse", 0, 0 }, { "silence", 0, 0 }, { "silence-set=", 1, 6 }, { "eat-set=", 1, 6 },
	{ "drop-set=", 1, 6 }, { "drop-reply=", 1, 10 }, { "garbage=", 1, 10 },
	{ "duplicate=", 1, 10 }, { "late=", 10, 20000 }, { "slow=", 10, 3000 },
	{ "bytewise", 0, 0 }, { "idle-dead=", 500, 5000 }, { "idle-end=", 500, 5000 },
};

/* Devices that say that they have done what they have not, or not yet, or not for long; rings
 * refuse the first two. */
static const struct device_fault lies[] = {
	{ "ignore-port=i", 1, 8 }, { "half=", 1, 4 }, { "complete=", 10, 1000 },
	{ "lost=", 10, 2000 },
};

static void draw_device_fault(const struct scenario *s, struct planned_fault *f,
			      const struct device_fault *list, int64_t n_list)
{
	const struct device_fault *d = &list[fault_between(f, 0, n_list)];
	int n;

	draw_device(s, f);
	n = snprintf(f->spec, sizeof(f->spec), "fault %s", d->name);
	if (d->high > 0) {
		f->amount = fault_of_any_size(f, d->low, d->high);
		snprintf(f->spec + n, sizeof(f->spec) - (size_t)n, "%lld", (long long)f->amount);
	}
	f->length_ns = fault_of_any_size(f, SIM_S / 2, 20 * SIM_S);
	FAULT_SAY(f, "device %s: %s, for %.3f s", cluster_device_name(f->device), f->spec,
		  SECONDS(f->length_ns));
}

static void draw_spec(const struct scenario *s, struct planned_fault *f)
{
	draw_device_fault(s, f, device_faults, N(device_faults));
}

static void draw_lie(const struct scenario *s, struct planned_fault *f)
{
	draw_device_fault(s, f, lies, N(lies));
}

static void begin_spec(struct planned_fault *f)
{
	if (cluster_control(f->device, f->spec, NULL, 0)) {
		sim_tell("%s does not take it", cluster_device_name(f->device));
	}
}

/* All faults of the device end by it: those that it has from the start begin again. */
static void end_spec(struct planned_fault *f)
{
	const struct cluster_device *d = &cluster_scenario()->devices[f->device];
	char line[100];

	cluster_control(f->device, "clear", NULL, 0);
	if (fabrics_is_robot(d->dialect)) {
		cluster_control(f->device, "fault move=300", NULL, 0);
	}
	for (int i = 0; i < N(d->faults) && d->faults[i]; i++) {
		snprintf(line, sizeof(line), "fault %s", d->faults[i]);
		cluster_control(f->device, line, NULL, 0);
	}
}

static void draw_boot(const struct scenario *s, struct planned_fault *f)
{
	draw_device(s, f);
	f->length_ns = fault_of_any_size(f, SIM_S / 10, 20 * SIM_S);
	FAULT_SAY(f, "device %s boots, for %.3f s", cluster_device_name(f->device),
		  SECONDS(f->length_ns));
}

static void begin_boot(struct planned_fault *f)
{
	cluster_reboot(f->device, f->length_ns);
}

const struct fault_kind fault_kinds_other[] = {
	{ "stall", always, draw_stall, begin_stall, NULL },
	{ "cut", always, draw_cut, begin_cut, NULL },
	{ "reset", always, draw_reset, begin_reset, NULL },
	{ "slow", always, draw_slow, begin_slow, end_slow },
	{ "kill", always, draw_kill, begin_kill, end_kill },
	{ "pause", always, draw_pause, begin_pause, NULL },
	{ "stop", always, draw_stop, begin_stop, end_stop },
	{ "power", always, draw_power, begin_power, end_power },
	{ "dark", always, draw_dark, begin_dark, end_dark },
	{ "clock", always, draw_clock, begin_clock, NULL },
	{ "disk-full", always, draw_full, begin_full, end_full },
	{ "disk-errors", always, draw_errors, begin_errors, end_errors },
	{ "disk-slow", always, draw_slow_disk, begin_slow_disk, end_slow_disk },
	{ "device", always, draw_spec, begin_spec, end_spec },
	{ "lie", always, draw_lie, begin_spec, end_spec },
	{ "boot", always, draw_boot, begin_boot, NULL },
	{ 0 },
};
