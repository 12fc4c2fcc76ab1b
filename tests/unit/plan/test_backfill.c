/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backfilling, by itself: queues of jobs of so many hosts, or of named ones, played from event to
 * event, beside the rule that the first that fits starts.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "controller/plan/backfill.h"

#define HOSTS 16
#define JOBS 64

/* A job of a trace. */
struct traced {
	int64_t arrives, lease, runs;
	int hosts;		/* any; 0: those of `named` */
	unsigned named;		/* a bit a host */
	int priority;
	/* What has become of it. */
	enum { AWAY, WAITS, RUNS, OVER } state;
	int64_t told, first_told, started;
	bool *units;
	unsigned on;
};

#define ANY(arrives, lease, hosts) { arrives, lease, lease, hosts, 0, 0, AWAY, 0, 0, 0, NULL, 0 }
#define NAMED(arrives, lease, hosts, priority) \
	{ arrives, lease, lease, 0, hosts, priority, AWAY, 0, 0, 0, NULL, 0 }

struct play {
	struct traced *v;
	int n, n_hosts;
	bool first_that_fits;	/* the other rule */
	int64_t now;
	int order[JOBS];	/* of the queue */
	int n_told, n_later;	/* reservations; those that moved later */
};

static bool fits(void *arg, int job, const bool *free, bool *takes)
{
	const struct play *p = arg;
	const struct traced *t = &p->v[p->order[job]];
	int left = t->hosts;

	for (int h = 0; h < p->n_hosts; h++) {
		if (t->hosts ? free[h] && left > 0 : t->named >> h & 1) {
			takes[h] = true;
			left--;
			if (!free[h]) {
				return false;
			}
		}
	}
	return left <= 0;
}

static void set_held(const struct play *p, int64_t *held)
{
	memset(held, 0, HOSTS * sizeof(*held));
	for (int i = 0; i < p->n; i++) {
		for (int h = 0; h < p->n_hosts && p->v[i].state == RUNS; h++) {
			if (p->v[i].on >> h & 1) {
				assert_int_equal(held[h], 0);	/* one has it */
				held[h] = p->v[i].lease == BACKFILL_NEVER ? BACKFILL_NEVER :
					  p->v[i].started + p->v[i].lease;
				held[h] = held[h] > p->now ? held[h] : p->now + 1;
			}
		}
	}
}

/* Higher priorities first, then those that came first. */
static int queue_of(struct play *p)
{
	int n = 0;

	for (int i = 0; i < p->n; i++) {
		int at = n;

		if (p->v[i].state != WAITS) {
			continue;
		}
		while (at > 0 && p->v[p->order[at - 1]].priority < p->v[i].priority) {
			p->order[at] = p->order[at - 1];
			at--;
		}
		p->order[at] = i;
		n++;
	}
	return n;
}

static void start(struct traced *t, const struct play *p, const bool *units)
{
	t->state = RUNS;
	t->started = p->now;
	for (int h = 0; h < p->n_hosts; h++) {
		t->on |= units[h] ? 1U << h : 0;
	}
}

static void note_told(struct play *p, struct traced *t, const struct backfill_job *j)
{
	if (j->kind == BACKFILL_EXACT) {
		p->n_later += t->told && j->start_ns > t->told;
		p->n_told += !t->told;
		t->told = j->start_ns;
		t->first_told = t->first_told ? t->first_told : t->told;
	} else {
		p->n_later += t->told != 0;
		t->told = 0;
	}
}

static void decide(struct play *p)
{
	struct backfill_job jobs[JOBS] = { 0 };
	int64_t held[HOSTS];
	struct backfill b = { .now_ns = p->now, .n = queue_of(p), .n_units = p->n_hosts,
			      .jobs = jobs, .held_until = held, .fits = fits, .arg = p };

	set_held(p, held);
	for (int k = 0; k < b.n; k++) {
		const struct traced *t = &p->v[p->order[k]];

		jobs[k] = (struct backfill_job){ .priority = t->priority, .lease_ns = t->lease,
			.kind = t->told ? BACKFILL_EXACT : BACKFILL_UNKNOWN, .start_ns = t->told,
			.units = t->units };
	}
	backfill_init(&b);
	for (int k = 0; k < b.n; k++) {
		struct traced *t = &p->v[p->order[k]];
		bool free[HOSTS], takes[HOSTS] = { 0 };

		if (!p->first_that_fits) {
			backfill_place(&b, k);
			continue;
		}
		set_held(p, held);
		for (int h = 0; h < p->n_hosts; h++) {
			free[h] = held[h] == 0;
		}
		if (fits(p, k, free, takes)) {
			start(t, p, takes);
		}
	}
	backfill_foresee(&b);
	for (int k = 0; k < b.n && !p->first_that_fits; k++) {
		struct traced *t = &p->v[p->order[k]];

		t->units = jobs[k].units;
		if (jobs[k].starts) {
			start(t, p, t->units);
			free(t->units);
			t->units = NULL;
		} else {
			note_told(p, t, &jobs[k]);
		}
	}
	backfill_fini(&b);
}

/* To the end of all jobs. */
static void play(struct play *p)
{
	for (;;) {
		int64_t next = BACKFILL_NEVER;

		for (int i = 0; i < p->n; i++) {
			struct traced *t = &p->v[i];

			if (t->state == AWAY && t->arrives <= p->now) {
				t->state = WAITS;
			}
			if (t->state == RUNS && t->started + t->runs <= p->now) {
				t->state = OVER;
			}
		}
		decide(p);
		for (int i = 0; i < p->n; i++) {
			const struct traced *t = &p->v[i];
			const int64_t at = t->state == AWAY ? t->arrives :
					   t->state == RUNS ? t->started + t->runs : BACKFILL_NEVER;

			next = at < next ? at : next;
		}
		if (next == BACKFILL_NEVER) {
			break;
		}
		p->now = next;
	}
	for (int i = 0; i < p->n; i++) {
		assert_int_equal(p->v[i].state, OVER);
		assert_null(p->v[i].units);
	}
}

/* Four hosts; jobs of two that come every five and last ten pass one of four for ever, as far as
 * they come, where the first that fits starts. */
static void test_starvation(void **state)
{
	static const int64_t easy[] = { 0, 1, 15, 25, 25, 35, 35, 45, 45, 55, 55 };
	static const int64_t greedy[] = { 0, 1, 55, 10, 15, 20, 25, 30, 35, 40, 45 };

	(void)state;
	for (int rule = 0; rule < 2; rule++) {
		struct traced v[11] = { ANY(0, 10, 2), ANY(1, 14, 2), ANY(2, 10, 4) };
		struct play p = { .v = v, .n = 11, .n_hosts = 4, .first_that_fits = rule };

		for (int k = 0; k < 8; k++) {
			v[3 + k] = (struct traced)ANY(3 + 5 * k, 10, 2);
		}
		play(&p);
		for (int i = 0; i < p.n; i++) {
			assert_int_equal(v[i].started, rule ? greedy[i] : easy[i]);
		}
		assert_int_equal(p.n_later, 0);
		assert_int_equal(v[2].first_told, rule ? 0 : 15);
	}
}

/* A later job starts where it is over before, or where it leaves what is needed: on a count of
 * hosts also where the reservation has to take others for it. */
static void test_extra(void **state)
{
	struct traced v[] = {
		ANY(0, 10, 4), ANY(1, 10, 5), ANY(2, 30, 3), ANY(2, 30, 1), ANY(3, 7, 1),
	};
	struct play p = { .v = v, .n = 5, .n_hosts = 8 };

	(void)state;
	play(&p);
	assert_int_equal(v[1].started, 10);
	assert_int_equal(v[2].started, 2);	/* 8 - 5 are left at 10 */
	assert_int_equal(v[3].started, 20);	/* and none more */
	assert_int_equal(v[4].started, 3);
}

/* Nothing says when a job without a lease ends, so none is held up for what waits for it. */
static void test_no_lease(void **state)
{
	struct traced v[] = {
		ANY(0, BACKFILL_NEVER, 4), ANY(1, 10, 6), ANY(2, BACKFILL_NEVER, 4),
	};
	struct play p = { .v = v, .n = 3, .n_hosts = 8 };

	(void)state;
	v[0].runs = 50;
	v[2].runs = 9;
	play(&p);
	assert_int_equal(v[2].started, 2);
	assert_int_equal(v[1].started, 50);
	assert_int_equal(p.n_told, 0);
}

/* A higher priority goes first, also if another was told a start; named hosts are kept. */
static void test_priority(void **state)
{
	struct traced v[] = {
		NAMED(0, 10, 0x3, 0), NAMED(1, 10, 0x3, 0), NAMED(2, 10, 0x2, 5),
		NAMED(3, 40, 0x1, 0), NAMED(4, 40, 0xc, 0),
	};
	struct play p = { .v = v, .n = 5, .n_hosts = 4 };

	(void)state;
	play(&p);
	assert_int_equal(v[2].started, 10);
	assert_int_equal(v[1].first_told, 10);
	assert_int_equal(v[1].started, 20);
	assert_int_equal(p.n_later, 1);
	assert_int_equal(v[3].started, 30);
	assert_int_equal(v[4].started, 4);
}

/* One that ends late makes those that wait for it late, each by no more, and in their order. */
static void test_late(void **state)
{
	struct traced v[] = {
		ANY(0, 10, 2), ANY(1, 10, 4), ANY(2, 10, 2), ANY(3, 10, 4), ANY(4, 8, 2),
		ANY(10, 10, 1),
	};
	struct play p = { .v = v, .n = 6, .n_hosts = 4 };

	(void)state;
	v[0].runs = 12;
	play(&p);
	assert_int_equal(v[1].first_told, 10);
	assert_int_equal(v[1].started, 12);
	assert_int_equal(v[2].started, 22);
	assert_int_equal(v[3].started, 32);
	assert_int_equal(v[4].started, 22);
	assert_int_equal(v[5].started, 42);
}

/* Whether a lease may be longer than what was told to others allows. */
static void test_renewal(void **state)
{
	struct traced v[] = { ANY(0, 10, 2), ANY(0, 20, 2), ANY(1, 10, 3) };
	struct play p = { .v = v, .n = 3, .n_hosts = 4, .now = 1, .order = { 2 } };
	struct backfill_job j = { .lease_ns = 10, .kind = BACKFILL_EXACT, .start_ns = 20 };
	const int64_t held[] = { 10, 10, 20, 20 };
	struct backfill b = { .now_ns = 1, .n = 1, .n_units = 4, .jobs = &j, .held_until = held,
			      .fits = fits, .arg = &p };
	const bool first[] = { true, true, false, false }, second[] = { false, false, true, true };
	int64_t until = 20;

	(void)state;
	backfill_init(&b);
	assert_true(backfill_may_hold(&b, first, &until));
	until = 21;
	assert_false(backfill_may_hold(&b, second, &until));
	assert_int_equal(until, 20);
	assert_int_equal(j.start_ns, 20);
	backfill_drop(&b, 0);
	backfill_fini(&b);
}

/* Random traces, with jobs that end before their time: what was told never moves later but for
 * higher priorities, of which one half of the traces has none. */
static void test_told(void **state)
{
	int told = 0;

	(void)state;
	srand(7);
	for (int round = 0; round < 120; round++) {
		struct traced v[40] = { 0 };
		struct play p = { .v = v, .n = 40, .n_hosts = 5 + rand() % 8 };
		int64_t at = 0;

		for (int i = 0; i < p.n; i++) {
			const bool named = rand() % 3 == 0;

			at += rand() % 8;
			v[i].arrives = at;
			v[i].lease = rand() % 12 ? 1 + rand() % 40 : BACKFILL_NEVER;
			v[i].runs = v[i].lease == BACKFILL_NEVER || rand() % 2 ?
				    1 + rand() % (v[i].lease < 40 ? (int)v[i].lease : 40) :
				    v[i].lease;
			v[i].hosts = named ? 0 : 1 + rand() % p.n_hosts;
			v[i].named = named ? 1U + (unsigned)rand() % ((1U << p.n_hosts) - 1) : 0;
			v[i].priority = round % 2 ? rand() % 3 : 0;
		}
		play(&p);
		told += p.n_told;
		if (round % 2 == 0) {
			assert_int_equal(p.n_later, 0);
			for (int i = 0; i < p.n; i++) {
				assert_true(!v[i].first_told || v[i].started <= v[i].first_told);
			}
		}
	}
	assert_true(told > 1200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_starvation), cmocka_unit_test(test_extra),
		cmocka_unit_test(test_no_lease), cmocka_unit_test(test_priority),
		cmocka_unit_test(test_late), cmocka_unit_test(test_renewal),
		cmocka_unit_test(test_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
