/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backfilling. The units of a job that starts, and of one that has a reservation, are in its
 * `units`, held from its start for its lease; those of jobs that run are in held_until. Whether a
 * job fits at a time is asked of the caller, with what is free from then on for as long as it has
 * its lease.
 */
#include "controller/plan/backfill.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

/* Which of the others' units a job does not get. */
enum see {
	SEE_NONE,
	SEE_STARTED,	/* of those that start now */
	SEE_AHEAD,	/* and of reservations of those ahead of it */
	SEE_HIGHER,	/* and of all of its priority */
	SEE_ALL,
};

static int64_t end_of(const struct backfill_job *j)
{
	int64_t end;

	return __builtin_add_overflow(j->start_ns, j->lease_ns, &end) ? BACKFILL_NEVER : end;
}

static bool sees(const struct backfill *b, int i, int other, enum see see)
{
	const struct backfill_job *o = &b->jobs[other], *mine = &b->jobs[i];

	return o->units && other != i &&
	       (see == SEE_ALL || (see >= SEE_STARTED && o->starts) ||
		(see >= SEE_AHEAD && o->priority > mine->priority) ||
		(see >= SEE_AHEAD && o->priority == mine->priority &&
		 (other < i || see == SEE_HIGHER)));
}

/* Whether job i fits from t on, of these units only if some are given; b->takes says on which. */
static bool fits_at(struct backfill *b, int i, int64_t t, enum see see, const bool *only)
{
	const struct backfill_job mine = { .lease_ns = b->jobs[i].lease_ns, .start_ns = t };

	for (int u = 0; u < b->n_units; u++) {
		b->free[u] = b->held_until[u] <= t && (!only || only[u]);
	}
	for (int k = 0; k < b->n; k++) {
		const struct backfill_job *o = &b->jobs[k];

		for (int u = 0; sees(b, i, k, see) && o->start_ns < end_of(&mine) &&
				end_of(o) > t && u < b->n_units; u++) {
			b->free[u] = b->free[u] && !o->units[u];
		}
	}
	memset(b->takes, 0, (size_t)b->n_units * sizeof(*b->takes));
	return b->fits(b->arg, i, b->free, b->takes);
}

void backfill_drop(struct backfill *b, int i)
{
	free(b->jobs[i].units);
	b->jobs[i].units = NULL;
	b->jobs[i].starts = false;
}

/* What the last fits_at said. */
static void take(struct backfill *b, int i, int64_t t)
{
	struct backfill_job *j = &b->jobs[i];

	backfill_drop(b, i);
	j->units = x_new((size_t)b->n_units + 1, sizeof(*j->units));
	memcpy(j->units, b->takes, (size_t)b->n_units * sizeof(*j->units));
	j->start_ns = t;
	j->kind = BACKFILL_EXACT;
}

/* ---- what was told before ------------------------------------------------ */

static int compare_times(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void find_times(struct backfill *b)
{
	int n = 0;

	b->times = x_new((size_t)b->n_units + 1, sizeof(*b->times));
	for (int u = 0; u < b->n_units; u++) {
		if (b->held_until[u] > b->now_ns && b->held_until[u] != BACKFILL_NEVER) {
			b->times[n++] = b->held_until[u];
		}
	}
	qsort(b->times, (size_t)n, sizeof(*b->times), compare_times);
	b->n_times = 0;
	for (int i = 0; i < n; i++) {
		if (i == 0 || b->times[i] != b->times[i - 1]) {
			b->times[b->n_times++] = b->times[i];
		}
	}
}

/* Each reservation again, at its time: on the units that it has while they can be had, else on
 * others. False, where all is as it was before: one cannot be. */
static bool fit_again(struct backfill *b, bool keep)
{
	bool **was = x_new((size_t)b->n + 1, sizeof(*was)), good = true;

	for (int k = 0; k < b->n; k++) {
		if (!b->jobs[k].starts) {
			was[k] = b->jobs[k].units;
			b->jobs[k].units = NULL;
		}
	}
	for (int k = 0; k < b->n && good; k++) {
		good = !was[k] || fits_at(b, k, b->jobs[k].start_ns, SEE_ALL,
					  keep ? was[k] : NULL);
		if (good && was[k]) {
			take(b, k, b->jobs[k].start_ns);
		}
	}
	for (int k = 0; k < b->n; k++) {
		if (was[k] && !good) {
			backfill_drop(b, k);
			b->jobs[k].units = was[k];
		} else {
			free(was[k]);
		}
	}
	free(was);
	return good;
}

/* Of each that was told a start, as far as it can still be. */
static void seed(struct backfill *b)
{
	if (fit_again(b, true)) {
		goto others;
	}
	for (int k = 0; k < b->n; k++) {
		bool *own = b->jobs[k].units;

		b->jobs[k].units = NULL;
		if (own && fits_at(b, k, b->jobs[k].start_ns, SEE_ALL, own)) {
			take(b, k, b->jobs[k].start_ns);
		}
		free(own);
	}
others:
	for (int k = 0; k < b->n; k++) {
		if (b->jobs[k].kind == BACKFILL_EXACT && !b->jobs[k].units &&
		    fits_at(b, k, b->jobs[k].start_ns, SEE_ALL, NULL)) {
			take(b, k, b->jobs[k].start_ns);
		}
	}
}

void backfill_init(struct backfill *b)
{
	b->free = x_new((size_t)b->n_units + 1, sizeof(*b->free));
	b->takes = x_new((size_t)b->n_units + 1, sizeof(*b->takes));
	find_times(b);
	for (int i = 0; i < b->n; i++) {
		b->jobs[i].was_told = b->jobs[i].kind == BACKFILL_EXACT;
	}
	seed(b);
}

void backfill_fini(struct backfill *b)
{
	free(b->free);
	free(b->takes);
	free(b->times);
}

/* ---- one job ------------------------------------------------------------- */

/* Beside all others; where reservations can do with other units than they have; or at the cost of
 * those of lower priority. */
static bool can_start(struct backfill *b, int i)
{
	if (!fits_at(b, i, b->now_ns, SEE_STARTED, NULL)) {
		return false;
	}
	take(b, i, b->now_ns);
	b->jobs[i].starts = true;
	if (fit_again(b, false)) {
		return true;
	}
	backfill_drop(b, i);
	for (int see = SEE_ALL; see >= SEE_HIGHER; see--) {
		if (fits_at(b, i, b->now_ns, (enum see)see, NULL)) {
			take(b, i, b->now_ns);
			return b->jobs[i].starts = true;
		}
	}
	return false;
}

/* Where there is room at last if there is no other in the queue: an index of times. */
static int first_room(struct backfill *b, int i)
{
	int low = 0, high = b->n_times;

	while (low < high) {
		const int mid = (low + high) / 2;

		if (fits_at(b, i, b->times[mid], SEE_NONE, NULL)) {
			high = mid;
		} else {
			low = mid + 1;
		}
	}
	return low;
}

/* The next time after t at which something becomes free. */
static int64_t next_time(const struct backfill *b, int64_t t, int *at)
{
	int64_t next;

	while (*at < b->n_times && b->times[*at] <= t) {
		(*at)++;
	}
	next = *at < b->n_times ? b->times[*at] : BACKFILL_NEVER;
	for (int k = 0; k < b->n; k++) {
		if (b->jobs[k].units && end_of(&b->jobs[k]) > t && end_of(&b->jobs[k]) < next) {
			next = end_of(&b->jobs[k]);
		}
	}
	return next;
}

/* The first time up to `last` from which on it fits; BACKFILL_NEVER: none. b->takes as fits_at. */
static int64_t first_time(struct backfill *b, int i, enum see see, int64_t last)
{
	int at = 0;
	int64_t t = b->now_ns;

	if (!fits_at(b, i, t, SEE_NONE, NULL)) {
		at = first_room(b, i);
		t = at < b->n_times ? b->times[at] : BACKFILL_NEVER;
	}
	for (; t < last && t != BACKFILL_NEVER; t = next_time(b, t, &at)) {
		if (fits_at(b, i, t, see, NULL)) {
			return t;
		}
	}
	return last >= b->now_ns && last != BACKFILL_NEVER && fits_at(b, i, last, see, NULL) ?
	       last : BACKFILL_NEVER;
}

static void reserve(struct backfill *b, int i, int64_t told)
{
	int64_t t = told ? first_time(b, i, SEE_ALL, told) : BACKFILL_NEVER;

	if (t == BACKFILL_NEVER) {	/* what it waits for is late: those behind it are, too */
		t = first_time(b, i, told ? SEE_AHEAD : SEE_HIGHER, BACKFILL_NEVER);
	}
	if (t != BACKFILL_NEVER) {
		take(b, i, t);
		b->jobs[i].starts = t == b->now_ns;
	}
}

bool backfill_place(struct backfill *b, int i)
{
	struct backfill_job *j = &b->jobs[i];
	const int64_t told = j->was_told ? j->start_ns : 0;
	int reserved = 0;

	for (int k = 0; k < i; k++) {
		reserved += b->jobs[k].units && !b->jobs[k].starts;
	}
	backfill_drop(b, i);
	j->kind = BACKFILL_UNKNOWN;
	j->start_ns = 0;
	if (can_start(b, i)) {
		return true;
	}
	j->start_ns = 0;
	j->kind = BACKFILL_UNKNOWN;
	if (told || reserved < BACKFILL_RESERVED) {
		reserve(b, i, told);
	}
	return j->starts;
}

void backfill_foresee(struct backfill *b)
{
	for (int i = 0; i < b->n && i < BACKFILL_FORESEEN; i++) {
		int64_t t;

		if (b->jobs[i].kind != BACKFILL_UNKNOWN ||
		    (t = first_time(b, i, SEE_ALL, BACKFILL_NEVER)) == BACKFILL_NEVER) {
			continue;
		}
		take(b, i, t);
		b->jobs[i].kind = BACKFILL_PROFILE;
	}
	for (int i = 0; i < b->n; i++) {
		if (b->jobs[i].kind == BACKFILL_PROFILE) {
			backfill_drop(b, i);
		}
	}
}

/* ---- renewal ------------------------------------------------------------- */

static bool may_hold(struct backfill *b, const bool *units, int64_t until)
{
	const int64_t *was = b->held_until;
	int64_t *longer = x_new((size_t)b->n_units + 1, sizeof(*longer));
	bool good;

	for (int u = 0; u < b->n_units; u++) {
		longer[u] = units[u] && was[u] < until ? until : was[u];
	}
	b->held_until = longer;
	good = fit_again(b, false);
	b->held_until = was;
	free(longer);
	return good;
}

bool backfill_may_hold(struct backfill *b, const bool *units, int64_t *until)
{
	int64_t best = 0;

	if (may_hold(b, units, *until)) {
		return true;
	}
	for (int k = 0; k < b->n; k++) {
		const int64_t t = b->jobs[k].start_ns;

		if (b->jobs[k].units && t > best && may_hold(b, units, t)) {
			best = t;
		}
	}
	*until = best;
	return false;
}
