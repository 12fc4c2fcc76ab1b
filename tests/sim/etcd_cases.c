/* The cases of tests/unit/etcd against the model of etcd: a story for each. */
#include "tests/sim/etcd_model.h"
#include "tests/sim/sim.h"
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
	sim_stop();
	return 0;
}

static void run_case(const char *name)
{
	for (int i = 0; i < N_ETCD_CASES; i++) {
		if (strcmp(etcd_cases[i].name, name) == 0) {
			current = &etcd_cases[i];
		}
	}
	etcd_model_begin(current->members);
	for (int i = 0; i < current->members; i++) {
		etcd_model_start(i);
	}
	sim_start("a", run_current, (const char *const[]){ "case", NULL });
	sim_run(sim_now() + 1000 * SIM_S);
}
