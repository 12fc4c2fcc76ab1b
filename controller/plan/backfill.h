/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backfilling: which jobs of a queue start now, and when the next ones do.
 *
 * EASY backfilling (Lifka 1995) with a reservation for each of the first few jobs that wait, on
 * named resources: a *unit* is what one job has at a time, as a side of a port, or a host. A job
 * behind a reservation starts now if it is over before that begins, or leaves it what it needs.
 * Which units a job takes of those that are free is the caller's to say.
 *
 * A start that a job was told moves later only where the caller's units went, or where a job of
 * higher priority comes.
 *
 * No clock, no files: the same jobs and units give the same answer.
 */
#ifndef WEFT_PLAN_BACKFILL_H
#define WEFT_PLAN_BACKFILL_H

#include <stdbool.h>
#include <stdint.h>

#define BACKFILL_NEVER INT64_MAX	/* ns: nothing says when */
#define BACKFILL_RESERVED 4		/* jobs that wait and have a reservation */
#define BACKFILL_FORESEEN 32		/* and whose start is foreseen at all */

enum backfill_kind {
	BACKFILL_UNKNOWN,	/* start_ns is 0 */
	BACKFILL_PROFILE,	/* if all those ahead use their whole time, and none comes */
	BACKFILL_EXACT,		/* reserved */
};

/* In the order of the queue: higher priorities first. */
struct backfill_job {
	int priority;
	int64_t lease_ns;	/* from its start; BACKFILL_NEVER: until it is released */
	/* In: what it was told, or BACKFILL_UNKNOWN and 0. Out: when its units are to be free. */
	enum backfill_kind kind;
	int64_t start_ns;
	bool *units;		/* [n_units] those of its reservation, or NULL; owned */
	bool starts;		/* out */
	bool was_told;		/* backfill_init sets it */
};

/* Whether a job fits on what is free, and which units it would take; both [n_units], takes all
 * false before. It may call nothing of what is below. */
typedef bool backfill_fits(void *arg, int job, const bool *free, bool *takes);

struct backfill {
	int64_t now_ns;
	int n, n_units;
	struct backfill_job *jobs;	/* [n], borrowed, with their units */
	const int64_t *held_until;	/* [n_units] by jobs that run, borrowed; BACKFILL_NEVER */
	backfill_fits *fits;
	void *arg;
	bool *free, *takes;		/* scratch */
	int64_t *times;			/* at which units become free, sorted; owned */
	int n_times;
};

/* From now_ns to arg are the caller's. Reservations of jobs that were told a start are there
 * already, where they still can be. */
void backfill_init(struct backfill *b);
void backfill_fini(struct backfill *b);
/* Whether job i starts now, as jobs[i].starts and units say then; else it has a reservation if it
 * is one of the first of those that were asked about, and a start can be told. Jobs are asked
 * about in their order; one that is passed over keeps its reservation.
 * O(times x (units + fits)). */
bool backfill_place(struct backfill *b, int i);
/* What job i was given is free for those behind it. */
void backfill_drop(struct backfill *b, int i);
/* The starts of the first of those that have none yet, once all were asked about: as
 * BACKFILL_PROFILE. Holds up none: its reservations are gone afterwards. */
void backfill_foresee(struct backfill *b);
/* Whether these units may be held until then: each reservation can still be as it was told.
 * *until: the latest end that could be, for as long as it may not. */
bool backfill_may_hold(struct backfill *b, const bool *units, int64_t *until);

#endif
