/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of tests/unit/etcd against the model of etcd: a story for each. */
#include "tests/sim/etcd/etcd_model.h"
#include "tests/sim/kernel/sim.h"
#include "tests/sim/story.h"
#include "tests/unit/etcd/cases.h"

#include <signal.h>

static const struct etcd_case *current;

static void kill_member(int i)
{
	sim_signal(etcd_model_process(i), SIGKILL);
}

static void sleep_ms(int ms)
{
	sim_sleep(ms * SIM_MS);
}

struct job {
	void (*work)(void *arg);
	void *arg;
};

static struct job jobs[2];

static int run_job(int argc, char **argv)
{
	struct job *j = &jobs[argc - 1];

	(void)argv;
	j->work(j->arg);
	return 0;
}

static void run_both(void (*work)(void *arg), void *a, void *b)
{
	struct sim_process *p[2];

	jobs[0] = (struct job){ work, a };
	jobs[1] = (struct job){ work, b };
	p[0] = sim_start("a", run_job, (const char *const[]){ "one", NULL });
	p[1] = sim_start("b", run_job, (const char *const[]){ "two", "more", NULL });
	sim_wait(p[0]);
	sim_wait(p[1]);
}

static void fill(void)
{
	etcd_model_full(true);
}

static void wrong(const char *file, int line, const char *what, const char *error)
{
	sim_fail("the model of etcd", "%s:%d: %s (%s)", file, line, what, error);
}

static int run_current(int argc, char **argv)
{
	const struct etcd_place at = {
		etcd_model_urls(), current->members, kill_member, etcd_model_start, sleep_ms,
		run_both, fill, wrong,
	};

	(void)argc, (void)argv;
	run_etcd_case(current, &at);
	return 0;
}

/* One after the other, each with members that are new. */
static int run_cases(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (int i = 0; i < N_ETCD_CASES; i++) {
		current = &etcd_cases[i];
		sim_tell("case %s", current->name);
		etcd_model_begin(current->members);
		for (int k = 0; k < current->members; k++) {
			etcd_model_start(k);
		}
		sim_sleep(SIM_S);	/* they listen */
		sim_wait(sim_start("a", run_current, (const char *const[]){ "case", NULL }));
		for (int k = 0; k < current->members; k++) {
			if (etcd_model_process(k)) {
				kill_member(k);
			}
		}
	}
	sim_stop();
	return 0;
}

static void run_all(void)
{
	sim_start("room", run_cases, (const char *const[]){ "cases", NULL });
	sim_run(sim_now() + 10000 * SIM_S);
	if (current != &etcd_cases[N_ETCD_CASES - 1]) {
		sim_fail("the model of etcd", "only came to the case %s", current->name);
	}
}

const struct story etcd_cases_stories[] = {
	{ "etcd-cases", "the model of etcd does as a real one does", run_all },
	{ 0 },
};
