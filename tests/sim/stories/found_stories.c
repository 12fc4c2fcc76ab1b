/* SPDX-License-Identifier: Apache-2.0 */
/* What seeds of weft-sim have found in weft, each made a story. */
#include <stdio.h>

#include "lib/rpc/rpc.h"
#include "tests/sim/cluster/client.h"
#include "tests/sim/cluster/cluster.h"
#include "tests/sim/cluster/history.h"
#include "tests/sim/cluster/load.h"
#include "tests/sim/oracle/oracle.h"
#include "tests/sim/story.h"

static struct {
	void (*tell)(void);
	struct client client;
	struct client_answer answer;
	bool ended;
} story;

static int tell(int argc, char **argv)
{
	(void)argc, (void)argv;
	client_init(&story.client, "client");
	story.tell();
	load_settle(0);
	history_check();
	oracle_settled();
	story.ended = true;
	sim_stop();
	return 0;
}

static void run(void (*words)(void))
{
	struct scenario s;

	scenario_simple(&s);
	s.n_devices = 2;
	s.devices[1].dialect = "telescent-cli";	/* one circuit after the other, 0.3 s each */
	s.devices[1].domain = 1;		/* after all of the other's */
	oracle_begin(&s);
	cluster_begin(&s);
	story.tell = words;
	sim_start("story", tell, (const char *const[]){ "story", NULL });
	sim_run(sim_now() + 1000 * SIM_S);
	if (!story.ended) {
		sim_fail("story", "it does not end");
	}
}

/* ---- jobs while a change is half done ---- */

static int kill_soon(int argc, char **argv)
{
	(void)argc, (void)argv;
	sim_sleep(700 * SIM_MS);
	cluster_kill(0);
	return 0;
}

/* The operator's apply is left half done when weftd is killed. */
static void leave_half_done(void)
{
	sim_start("killer", kill_soon, (const char *const[]){ "killer", NULL });
	story.client.asks_again = false;
	client_apply(&story.client, 1, 0, &story.answer);
}

/* A job that has its light is given back then: it waits until the apply is finished. */
static void tell_release(void)
{
	client_apply(&story.client, 0, 0, &story.answer);
	client_request_job(&story.client, "early", 2, 0, true, &story.answer);
	leave_half_done();
	client_wait_ready(&story.client, 2 * SIM_S);
	client_release_job(&story.client, "early", &story.answer);
}

static void release_half_done(void)
{
	run(tell_release);
}

/* ---- jobs while a plan is made for another file ---- */

static int ask_soon(int argc, char **argv)
{
	Weft__V1__StatusResponse *s = NULL;
	struct client_answer a;
	struct client c;
	struct err err;

	(void)argc, (void)argv;
	sim_sleep(300 * SIM_MS);
	client_init(&c, "asker");
	/* What it tells as the configuration is a rule. */
	if (client_status(&c, 0, &s, &err) == 0) {
		rpc_free_message(&s->base);
	}
	client_request_job(&c, "meanwhile", 4, 0, true, &a);
	if (a.outcome != HISTORY_DONE || a.err.code) {
		sim_fail("story", "the job is refused: %s", a.err.msg);
	}
	return 0;
}

/* Reading the devices for the plan takes a while, as one of them does not answer. In the other file
 * the four hosts that are free have a job. */
static void tell_plan(void)
{
	client_apply(&story.client, 0, 0, &story.answer);
	sim_start("asker", ask_soon, (const char *const[]){ "asker", NULL });
	sim_pause(cluster_device(1), sim_now() + SIM_S);
	client_plan(&story.client, 3, &story.answer);
	sim_sleep(5 * SIM_S);
}

static void job_and_plan(void)
{
	run(tell_plan);
}

/* ---- a device that is away when a change is committed over one that was left there ---- */

static int boot_soon(int argc, char **argv)
{
	(void)argc, (void)argv;
	sim_sleep(1100 * SIM_MS);
	cluster_reboot(1, 15 * SIM_S);
	return 0;
}

/* What was in force is applied once more, and by the last reading nothing is to be sent. */
static void tell_away(void)
{
	client_apply(&story.client, 0, 0, &story.answer);
	sim_start("booter", boot_soon, (const char *const[]){ "booter", NULL });
	client_apply(&story.client, 1, 0, &story.answer);
	for (int i = 0; i < 4; i++) {
		client_apply(&story.client, i, 0, &story.answer);
	}
	sim_sleep(20 * SIM_S);
}

static void away_half_done(void)
{
	run(tell_away);
}

const struct story found_stories[] = {
	{ "half-done-release", "a job is released while an apply is half done", release_half_done },
	{ "job-and-plan", "a job and the status are asked for while a plan is made for another "
	  "file", job_and_plan },
	{ "half-done-away", "a device is away when an apply is to cover one half done there",
	  away_half_done },
	{ 0 },
};
