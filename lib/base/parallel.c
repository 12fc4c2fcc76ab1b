/* SPDX-License-Identifier: Apache-2.0 */
/* Work in independent parts; see parallel.h. */
#include "lib/base/parallel.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

struct parallel_part {
	void (*work)(void *arg, int i);
	void *arg;
	int i;
	pthread_t thread;
	bool started;
};

int parallel_width(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > PARALLEL_MAX ? PARALLEL_MAX : (int)n;
}

static void *run_part(void *arg)
{
	const struct parallel_part *p = arg;

	p->work(p->arg, p->i);
	return NULL;
}

void parallel_run(int n, void (*work)(void *arg, int i), void *arg)
{
	struct parallel_part parts[PARALLEL_MAX];

	assert(n <= PARALLEL_MAX);
	for (int i = 1; i < n; i++) {
		struct parallel_part *p = &parts[i];

		*p = (struct parallel_part){ .work = work, .arg = arg, .i = i };
		p->started = !pthread_create(&p->thread, NULL, run_part, p);
	}
	if (n > 0) {
		work(arg, 0);
	}
	for (int i = 1; i < n; i++) {
		if (parts[i].started) {
			pthread_join(parts[i].thread, NULL);
		} else {
			run_part(&parts[i]);
		}
	}
}

void parallel_cut(int items, int n, int i, int *from, int *to)
{
	*from = (int)((int64_t)items * i / n);
	*to = (int)((int64_t)items * (i + 1) / n);
}
