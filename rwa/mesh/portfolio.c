/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two searches side by side, with seeds of their own: what is hard for one
 * may be easy for the other. They work in rounds of a fixed number of
 * lightpaths placed, and who won is decided between rounds, so that the
 * answer does not depend on how many threads there were.
 */
#include "lib/base/parallel.h"
#include "rwa/mesh/private.h"

#define ROUND 2048	/* lightpaths placed */

struct round {
	struct mesh_search *const *searches;
	int64_t target, effort;
	const struct mesh_stop *stop;
	int64_t served[PORTFOLIO];
};

static void run_one(void *arg, int i)
{
	struct round *r = arg;

	r->served[i] = search_run(r->searches[i], r->target, r->effort, r->stop);
}

static void run_round(struct round *r, int threads)
{
	if (threads > 1) {
		parallel_run(PORTFOLIO, run_one, r);
		return;
	}
	for (int i = 0; i < PORTFOLIO; i++) {
		run_one(r, i);
	}
}

int64_t portfolio_run(struct mesh_search *const searches[PORTFOLIO], int threads, int64_t target,
		      int64_t effort, const struct mesh_stop *stop, int *winner)
{
	struct round r = { .searches = searches, .target = target,
			   .stop = stop };
	int64_t served = -1;
	bool idle = false;

	for (int64_t k = 0; k < effort && served < target && !idle &&
			    !(k && stop_now(stop)); k += ROUND) {
		r.effort = effort - k < ROUND ? effort - k : ROUND;
		run_round(&r, threads);
		idle = true;
		served = -1;
		for (int i = 0; i < PORTFOLIO; i++) {
			if (r.served[i] > served) {
				served = r.served[i];
				*winner = i;
			}
			idle &= search_is_idle(searches[i]);
		}
	}
	return served;
}
