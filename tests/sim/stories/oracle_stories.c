/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules say of one weftd with one switch, each at a named moment. */
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>

#include "tests/sim/cluster/client.h"
#include "tests/sim/cluster/cluster.h"
#include "tests/sim/cluster/history.h"
#include "tests/sim/cluster/load.h"
#include "tests/sim/oracle/oracle.h"
#include "tests/sim/story.h"

#define ROUNDS 12
#define FIRST_ROUNDS 2		/* fill caches of libraries */
#define ROUND_BYTES 16000	/* that the simulation itself may keep: a process, calls noted */

static struct {
	void (*tell)(struct client *c);
	bool ended;
} story;

static int tell(int argc, char **argv)
{
	struct client c;
	struct client_answer a;

	(void)argc, (void)argv;
	client_init(&c, "client");
	if (!client_wait_ready(&c, 30 * SIM_S) || client_apply(&c, 0, 0, &a) != HISTORY_DONE) {
		sim_fail("story", "it does not begin: %s", a.err.msg);
	}
	story.tell(&c);
	load_settle(0);
	history_check();
	oracle_settled();
	story.ended = true;
	sim_stop();
	return 0;
}

static void run(void (*words)(struct client *c))
{
	struct scenario s;

	scenario_simple(&s);
	s.n_fabrics = 4;
	oracle_begin(&s);
	cluster_begin(&s);
	story.tell = words;
	sim_start("story", tell, (const char *const[]){ "story", NULL });
	sim_run(sim_now() + 1000 * SIM_S);
	if (!story.ended) {
		sim_fail("story", "it does not end");
	}
}

/* ---- an orderly stop leaves nothing ---- */

static void stop_often(struct client *c)
{
	size_t had = 0, grown;
	struct client_answer a;

	for (int i = 0; i < ROUNDS; i++) {
		client_apply(c, i % 4, 0, &a);
		cluster_stop(0);
		if (cluster_wait_stopped(0) != 0) {
			sim_fail("story", "an orderly stop ends with %d", cluster_last_status(0));
		}
		had = i == FIRST_ROUNDS ? mallinfo2().uordblks : had;
		cluster_start(0);
		client_wait_ready(c, 30 * SIM_S);
	}
	cluster_stop(0);
	cluster_wait_stopped(0);
	grown = mallinfo2().uordblks - had;
	sim_tell("%zu bytes more than %d starts before", grown, ROUNDS - FIRST_ROUNDS);
	if ((int64_t)grown > (ROUNDS - FIRST_ROUNDS) * ROUND_BYTES) {
		sim_fail("left in memory", "%zu bytes more after %d starts and stops", grown,
			 ROUNDS - FIRST_ROUNDS);
	}
	cluster_start(0);
}

static void stops_leave_nothing(void)
{
	run(stop_often);
}

/* ---- a device that says it has done what it has not ---- */

static void lie(struct client *c)
{
	struct client_answer a;

	cluster_control(0, "fault ignore-port=o7", NULL, 0);
	client_apply(c, 1, 0, &a);
	cluster_control(0, "clear", NULL, 0);
	client_apply(c, 1, 0, &a);
}

static void ignored_port(void)
{
	run(lie);
}

const struct story oracle_stories[] = {
	{ "stops-leave-nothing", "weftd is started and stopped in order, again and again",
	  stops_leave_nothing },
	{ "ignored-port", "a switch says that it has made a circuit, and has not", ignored_port },
	{ 0 },
};
