/* SPDX-License-Identifier: Apache-2.0 */
/* Frontiers of many queries on several threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "collective/finder/finder.h"

#define MAX_THREADS 64

struct finder_sweep {
	const struct coll_query *qs;
	size_t n;
	bool prove;
	struct coll_frontier *out;
	atomic_size_t next;		/* the first query not taken yet */
	pthread_mutex_t lock;		/* of what follows */
	size_t failed;			/* the first query that failed, or n */
	int rc;
	struct err *err;
};

/* Takes the next queries of equal nodes; false when there are none. */
static bool take(struct finder_sweep *s, size_t *from, size_t *to)
{
	*from = atomic_load(&s->next);
	do {
		*to = *from;
		while (*to < s->n && s->qs[*to].n == s->qs[*from].n) {
			++*to;
		}
	} while (*from < s->n &&
		 !atomic_compare_exchange_weak(&s->next, from, *to));
	return *from < s->n;
}

/* Keeps the error of the query that comes first. */
static void fail(struct finder_sweep *s, size_t query, int rc, const struct err *err)
{
	pthread_mutex_lock(&s->lock);
	if (query < s->failed) {
		s->failed = query;
		s->rc = rc;
		if (s->err) {
			*s->err = *err;
		}
	}
	pthread_mutex_unlock(&s->lock);
}

static void *work(void *arg)
{
	struct finder_sweep *s = arg;
	struct coll_finder *f;
	struct err err = { 0 };
	size_t i, to;
	int rc;

	coll_finder_new(&f);
	coll_finder_set_default(f, COLL_FINDER_SWEEP_SETS);
	while (take(s, &i, &to)) {
		for (; i < to; i++) {
			err_clear(&err);
			rc = coll_finder_run(f, &s->qs[i], s->prove, &s->out[i], &err);
			if (rc && rc != WEFT_EINFEASIBLE) {
				fail(s, i, rc, &err);
			}
		}
	}
	coll_finder_free(f);
	return NULL;
}

int coll_sweep(const struct coll_query *qs, size_t n, bool prove, int threads,
	       struct coll_frontier *out, struct err *err)
{
	struct finder_sweep s = { .qs = qs, .n = n, .prove = prove, .out = out,
			   .failed = n, .err = err };
	pthread_t thread[MAX_THREADS];
	int started = 0;

	memset(out, 0, n * sizeof(*out));
	atomic_init(&s.next, 0);
	pthread_mutex_init(&s.lock, NULL);
	threads = threads > MAX_THREADS ? MAX_THREADS : threads;
	/* The caller's thread works too: fewer helpers are only slower. */
	while (started < threads - 1 && !pthread_create(&thread[started], NULL, work, &s)) {
		started++;
	}
	work(&s);
	for (int i = 0; i < started; i++) {
		pthread_join(thread[i], NULL);
	}
	pthread_mutex_destroy(&s.lock);
	return s.rc;
}
