/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules, together: those that are looked at every few seconds, how weftd's loops wait, what an
 * orderly stop leaves, and what has to hold when all has settled. The others are looked at when
 * something happens: oracle_devices.c, oracle_stores.c, oracle_jobs.c.
 */
#include "tests/sim/oracle/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/daemon.h"
#include "lib/base/vec.h"
#include "tests/sim/cluster/client.h"
#include "tests/sim/cluster/cluster.h"
#include "tests/sim/oracle/oracle_parts.h"
#include "tests/sim/oracle/wraps.h"

#define EVERY (5 * SIM_S)
#define COMPARE_EACH 5		/* of these times, as it reads whole stores; less when calm */
#define AWAY_MAX (50 * SIM_MS)
#define READ_S 40		/* readings so often have seen the end of the last fault */
#define CALLS_MAX 200000	/* of the kernel, in a second */

/* ---- loops --------------------------------------------------------------- */

/* A weftd that runs; calls: of the kernel, when last looked at. */
struct loop {
	struct sim_process *process;
	int64_t calls;
};

static VEC(struct loop) loops;

/* -1: it is no weftd. */
static int find_loop(const struct sim_process *p)
{
	for (size_t i = 0; i < loops.n; i++) {
		if (loops.v[i].process == p) {
			return (int)i;
		}
	}
	return -1;
}

static void on_late(const struct sim_process *p, int64_t ns, const char *call)
{
	if (find_loop(p) >= 0 && strcmp(call, SIM_SYNC_IN_COMMIT) != 0) {
		sim_fail(strcmp(call, SIM_SYNC) == 0 ? "loop syncs" : "loop waits",
			 "the loop of %s was away for %lld ms, most of it in %s", sim_machine(p),
			 (long long)(ns / SIM_MS), call);
	}
}

/* A loop that goes round and round. */
static void check_busy(struct loop *l)
{
	int64_t calls = sim_calls(l->process);

	if (calls - l->calls > EVERY / SIM_S * CALLS_MAX) {
		sim_fail("busy", "weftd of %s made %lld calls in %d s",
			 sim_machine(l->process), (long long)(calls - l->calls),
			 (int)(EVERY / SIM_S));
	}
	l->calls = calls;
}

/* ---- orderly stops ------------------------------------------------------- */

WRAP(int, daemon_main, int argc, char **argv)
{
	int rc, at;

	vec_push(&loops, (struct loop){ .process = sim_self() });
	rc = __real_daemon_main(argc, argv);
	at = find_loop(sim_self());
	loops.v[at] = loops.v[--loops.n];
	if (rc == 0 && sim_open_count(sim_self()) > 0) {
		sim_fail("left open", "weftd has stopped in order, and %d sockets or pipes are "
			 "open", sim_open_count(sim_self()));
	}
	return rc;
}

/* ---- every few seconds --------------------------------------------------- */

static int watch(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (int n = 1;; n++) {
		sim_sleep(EVERY);
		oracle_check_devices();
		if (n % (COMPARE_EACH * (1 + cluster_scenario()->calm)) == 0) {
			oracle_compare_copies();
		}
		for (size_t i = loops.n; i-- > 0;) {
			if (sim_ended(loops.v[i].process, NULL)) {
				loops.v[i] = loops.v[--loops.n];
			} else {
				check_busy(&loops.v[i]);
			}
		}
	}
	return 0;
}

void oracle_begin(const struct scenario *sc)
{
	(void)sc;
	sim_watch_loops(AWAY_MAX, on_late);
	sim_start("oracle", watch, (const char *const[]){ "oracle", NULL });
}

/* ---- when all has settled ------------------------------------------------ */

bool oracle_reads_often(void)
{
	return cluster_scenario()->poll_s > 0 && cluster_scenario()->poll_s <= READ_S;
}

/* What faults, others' hands or the scenario explain. */
static bool is_explained(const Weft__V1__Problem *p)
{
	int device = cluster_device_of(p->device);
	struct optics_xc other;

	switch (p->kind) {
	case WEFT__V1__PROBLEM_KIND__PROBLEM_KIND_CIRCUITS_PENDING:
	case WEFT__V1__PROBLEM_KIND__PROBLEM_KIND_JOBS_NOT_PLANNED:
		return false;
	case WEFT__V1__PROBLEM_KIND__PROBLEM_KIND_DEVICE_UNREACHABLE:
		/* It was, when it was last asked. */
		return !oracle_reads_often();
	case WEFT__V1__PROBLEM_KIND__PROBLEM_KIND_CIRCUITS_UNEXPECTED:
		return oracle_find_other(p->device, &other) || oracle_is_disturbed(p->device, 0);
	default:
		return device < 0 || cluster_scenario()->devices[device].faults[0] ||
		       oracle_is_disturbed(p->device, 0);
	}
}

static void check_problems(const char *machine, const Weft__V1__StatusResponse *s)
{
	const Weft__V1__Leadership *l = s->leadership;

	for (size_t i = 0; i < s->n_problems; i++) {
		if (!is_explained(s->problems[i])) {
			sim_fail("problem", "%s says: %s", machine, s->problems[i]->text);
		}
	}
	if (l && l->problem[0]) {
		sim_fail(strstr(l->problem, "no copy") ? "no copy" : "problem", "%s says: %s",
			 machine, l->problem);
	}
	if (l && l->behind > 0) {
		sim_fail("behind", "%s says that it is %lld behind", machine,
			 (long long)l->behind);
	}
}

/* Whether it leads. */
static bool check_status(struct client *c, int weftd)
{
	Weft__V1__StatusResponse *s = NULL;
	struct err err = { 0 };
	bool leads;

	for (int i = 0; i < 10 && !cluster_weftd(weftd); i++) {
		sim_sleep(SIM_S);
	}
	if (!cluster_weftd(weftd)) {
		sim_fail("gone", "%s does not run; it ended %d times, last with %d",
			 cluster_machine(weftd), cluster_starts(weftd),
			 cluster_last_status(weftd));
		return false;
	}
	if (client_status(c, weftd, &s, &err)) {
		sim_fail("status", "%s: its status cannot be read: %s", cluster_machine(weftd),
			 err.msg);
		return false;
	}
	leads = s->state != WEFT__V1__STATE__STATE_STANDBY;
	check_problems(cluster_machine(weftd), s);
	rpc_free_message(&s->base);
	return leads;
}

static void check_leaders(void)
{
	struct client c;
	int leaders[CLUSTER_WEFTDS] = { 0 };

	client_init(&c, "oracle");
	c.silent = true;
	for (int i = 0; i < cluster_scenario()->n_weftds; i++) {
		leaders[cluster_domain_of(i)] += check_status(&c, i);
	}
	for (int d = 0; d < cluster_domains(); d++) {
		if (leaders[d] != 1) {
			sim_fail("leader", "domain %d is led by %d weftd", d, leaders[d]);
		}
	}
}

static bool is_interrupted(struct client *c)
{
	Weft__V1__StatusResponse *s = NULL;
	struct err err;
	bool is_open = false;

	for (int i = 0; i < cluster_scenario()->n_weftds; i++) {
		if (cluster_weftd(i) && client_status(c, i, &s, &err) == 0) {
			is_open |= s->state == WEFT__V1__STATE__STATE_INTERRUPTED;
			rpc_free_message(&s->base);
		}
	}
	return is_open;
}

/* Drains and jobs may be in the way of any configuration. */
static void clear_fabric(struct client *c, int weftd)
{
	Weft__V1__StatusResponse *s = NULL;
	Weft__V1__ListJobsResponse *jobs = NULL;
	struct client_answer a;
	struct err err;

	if (client_status(c, weftd, &s, &err) == 0) {
		for (size_t i = 0; i < s->n_holds; i++) {
			client_undrain(c, cluster_domain_of(weftd), s->holds[i]->target, &a);
		}
		rpc_free_message(&s->base);
	}
	if (client_jobs(c, weftd, false, &jobs, &err) == 0) {
		for (size_t i = 0; i < jobs->n_jobs; i++) {
			client_release_job(c, jobs->jobs[i]->name, &a);
		}
		rpc_free_message(&jobs->base);
	}
}

/* A change that was found half done waits for an operator, who is told to apply again. */
static void follow_advice(void)
{
	struct client c;
	struct client_answer a;

	client_init(&c, "operator");
	if (!is_interrupted(&c)) {
		return;
	}
	for (int d = 0; d < cluster_domains(); d++) {
		int leader = client_leader(&c, d, EVERY);

		if (leader >= 0) {
			clear_fabric(&c, leader);
		}
	}
	for (int i = 0; i < cluster_scenario()->n_fabrics && is_interrupted(&c); i++) {
		client_apply(&c, i, 0, &a);
		sim_sleep(EVERY);
	}
}

void oracle_settled(void)
{
	follow_advice();
	check_leaders();
	oracle_check_devices();
	oracle_check_files();
}
