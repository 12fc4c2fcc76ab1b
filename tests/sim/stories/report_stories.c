/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checklist 16: devices that send events unasked: what another user did to them is found at once,
 * without a round of readings; watchers hear their words; and a robot tells how far it is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "tests/sim/story.h"
#include "tests/sim/stories/tell.h"

#define SWITCH "ocs0"
#define FLOOD 60

static const struct {
	const char *dialect, *words;	/* of a circuit that is gone */
} devices[] = {
	{ "polatis-tl1", "REPT EVT.*noc" },
	{ "rome-cli", "OP:disconnect" },
	{ "telescent-cli", "unallocate -in [0-9]+: completed" },
};

#define N_DEVICES (int)(sizeof(devices) / sizeof(*devices))

static struct command *watch;

static void write_fabric(void)
{
	struct buf b = { 0 };

	for (int i = 0; i < N_DEVICES; i++) {
		buf_printf(&b, "%s  - { name: ocs%d, size: 8x8, driver: %s, address: "
			   "'127.0.0.1:%d', timeout: 10s, options: { gap_ms: 0%s } }\n",
			   i == 0 ? "switches:\n" : i == 1 ? "panels:\n" : "", i,
			   devices[i].dialect, 5000 + i, i > 0 ? ", poll_ms: 20" : "");
	}
	for (int i = 0; i < N_DEVICES; i++) {
		buf_printf(&b, "%s  - { from: 'd%d-[0-3].p[0-1]', to: 'ocs%d.[1-8]' }\n",
			   i == 0 ? "fibres:\n" : "", i, i);
	}
	for (int i = 0; i < N_DEVICES; i++) {
		buf_printf(&b, "%s  - { name: j%d, nodes: 'd%d-[0-3]', collective: allreduce, "
			   "size: 1MiB, topology: 'UniRing(1,4)' }\n", i == 0 ? "jobs:\n" : "", i,
			   i);
	}
	write_file("f.yaml", "weft: 1\nfabric: talkative\nhosts:\n"
		   "  - { name: 'd[0-2]-[0-3]', ports: 'p[0-1]', rate: 100Gbps }\n%s",
		   buf_cstr(&b));
	buf_fini(&b);
}

/* An event of this kind and device, with these words and a port. */
static bool heard(const char *kind, const char *words, const char *device, const char *port)
{
	char pattern[300];

	snprintf(pattern, sizeof(pattern), "\"kind\":\"%s\".*%s.*\"device\":\"%s\".*"
		 "\"port\":\"%s\"", kind, words, device, port);
	return matches(output_of(watch), pattern);
}

static void begin_watch(void)
{
	write_fabric();
	control("ocs1", "fault move=120");
	control("ocs2", "fault move=120");
	expect(0, "two robots and a switch are patched", "apply -f f.yaml");
	/* Of the second one, of another kind, nothing is known yet. */
	has_error("the first robot tells how far it is",
		  "ocs1: .*[1-3] of 4 moves are over, about [0-9]+ min left");
	has_error("the second too", "ocs2: .*[1-3] of 4 moves are over, about [0-9]+ s left");
	watch = begin("watch --format json");
	await(10, "a client watches", matches(output_of(watch), "resync"));
}

static void gone_and_back(int i)
{
	const char *device = cluster_device_name(i), *circuit = first_circuit(device);
	const int before = sets_of(device);

	control(device, "unset %s", circuit);
	await(20, "its words reach those who watch, with the port",
	      heard("device-report", devices[i].words, device, "in [0-9]+"));
	await(20, "the missing circuit is found without a round of readings",
	      heard("drift-found", "1 missing", device, ""));
	control(device, "set %s", circuit);
	await(20, "and so is its return",
	      heard("drift-resolved", "", device, ""));
	check_of(devices[i].dialect, sets_of(device) == before, "nothing was sent");
}

static void tell_report(void)
{
	begin_watch();
	for (int i = 0; i < N_DEVICES; i++) {
		gone_and_back(i);
	}
	/* A port that fails is an alarm. */
	control(SWITCH, "fault port-failed=o7");
	await(20, "an alarm names its port",
	      heard("device-report", SWITCH ": alarm out 8: REPT ALM", SWITCH, "out 8"));
}

/* How many of the lines name the device. */
static int lines_with(const char *text, const char *word)
{
	int n = 0;

	for (const char *at = text; (at = strstr(at, word)); at += strcspn(at, "\n")) {
		n++;
	}
	return n;
}

/* Robots move for minutes: a port of which the change has read that it failed is told meanwhile. */
static void tell_meanwhile(void)
{
	write_fabric();
	control("ocs1", "fault move=120");
	control(SWITCH, "fault port-failed=o7");
	watch = begin("watch --format json");
	begin("apply -f f.yaml");
	await(20, "the robots are asked", same(ask("state", "status"), "changing"));
	await(20, "a port that failed is told",
	      heard("port-failed", SWITCH ": out 8 failed", SWITCH, "out 8"));
	check(same(ask("state", "status"), "changing"), "while the change runs");
	await(1200, "which ends", same(ask("state", "status"), "ready"));
	check(lines_with(output_of(watch), "\"port-failed\"") == 1, "and it is told once");
}

/* A device that never stops talking is told in part. */
static void tell_flood(void)
{
	int n;

	begin_watch();
	for (int i = 0; i < FLOOD; i++) {
		control(SWITCH, "set 5,6");
		control(SWITCH, "unset 5,6");
	}
	await(20, "a flood of reports begins to be told",
	      matches(output_of(watch), SWITCH ": changed in 6"));
	expect(0, "and weftd answers", "status");
	sim_sleep(20 * SIM_S);
	n = lines_with(output_of(watch), "\"device\":\"" SWITCH "\"");
	check(n > 0 && n < 80, "but not all 120 of them are told");
}

/* A weftd that was given a fabric knows its jobs before anything is lit: they have no past. */
static void tell_first(void)
{
	await(20, "weftd has read its devices", same(ask("state", "status"), "empty"));
	sim_sleep(5 * SIM_S);	/* and has planned its jobs */
	expect(0, "the fabric is applied", "apply -f fabric0.yaml");
	check(same(ask("changes.0.jobs.0.effect", "history"), "begins"), "a job begins by it");
	check(!matches(value("changes.0.jobs.0.before_ns"), "[0-9]"), "and has no past");
}

static void begin_story(void (*words)(void))
{
	struct scenario s;

	scenario_simple(&s);
	s.poll_s = 0;
	s.n_devices = N_DEVICES;
	for (int i = 0; i < N_DEVICES; i++) {
		s.devices[i] = (struct cluster_device){ .dialect = devices[i].dialect,
							.size = "8x8" };
	}
	tell(&s, words);
}

static void run_report(void)
{
	begin_story(tell_report);
}

static void run_meanwhile(void)
{
	begin_story(tell_meanwhile);
}

static void run_flood(void)
{
	begin_story(tell_flood);
}

static void run_first(void)
{
	struct scenario s;

	scenario_simple(&s);
	s.weftd_options[0] = "--fabric";
	s.weftd_options[1] = "fabric0.yaml";
	tell(&s, tell_first);
}

const struct story report_stories[] = {
	{ "report-first", "the first change of a weftd with a fabric", run_first },
	{ "report-words", "what devices say unasked is heard at once", run_report },
	{ "report-meanwhile", "what a long change reads is told while it runs", run_meanwhile },
	{ "report-flood", "a device that never stops talking is told in part", run_flood },
	{ 0 },
};
