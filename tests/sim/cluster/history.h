/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients asked, and what came of it: the record that acknowledged changes are held
 * against. A target has one value at a time ("hold h3": "yes" or "no"), as if each call took
 * effect at one moment between its begin and its end. Done has happened, refused has not, and
 * unknown may have happened at any time since it began, or not at all.
 *
 * Each value that was read must be explained: by a write of it, not refused and begun before the
 * read ended, after which nothing else is known to have been there before the read began. That
 * takes one look at the target's calls a read, and no search.
 */
#ifndef WEFT_TESTS_SIM_HISTORY_H
#define WEFT_TESTS_SIM_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_ANY "*"		/* as a value that was written: not known which */

enum history_outcome {
	HISTORY_OPEN,		/* no answer yet; counts as unknown */
	HISTORY_DONE,
	HISTORY_REFUSED,	/* surely not happened */
	HISTORY_UNKNOWN,	/* sent, and no answer, or one that says so */
};

const char *history_outcome_name(enum history_outcome outcome);

/* A call that makes the target have the value begins now; its number. */
int history_begin(const char *client, const char *target, const char *value);
/* It ends now. value NULL: as it was begun; else it is only now known which. */
void history_end(int call, enum history_outcome outcome, const char *value);
/* Read by a call that began at begin_ns and ends now. */
void history_read(const char *client, const char *target, const char *value, int64_t begin_ns);
/* Without being asked for, it may have become so at some time from from_ns to to_ns
 * (INT64_MAX: any later time): a job that ended, a change that was not confirmed. Its number, by
 * which that time may be ended sooner. */
int history_by_itself(const char *target, const char *value, int64_t from_ns, int64_t to_ns);
void history_end_by_itself(int number, int64_t to_ns);
/* What holds at the beginning, before any call; again: nothing. */
void history_initial(const char *target, const char *value);
/* Targets so far, by number; NULL: no more. */
const char *history_target(size_t i);

/* A weftd of a domain said at some time from begin_ns to now that this generation has a
 * configuration (digest in hex; "": none; NULL: not told). Two that differ are two truths; an
 * older one after a newer one was told is lost state. Fails at once. */
void history_generation(const char *client, int domain, int64_t generation, const char *digest,
			int64_t begin_ns);
/* Its configuration, "" if it was never told. */
const char *history_configuration(int domain, int64_t generation);

/* ---- events ---- */

/* Something that watches sees event `sequence` of weftd; resync: it was told that it has missed
 * some. Fails at once where one is missing, comes twice, or two see different ones. change: id of
 * a change that ended, or 0. */
void history_event(const char *watcher, int weftd, int64_t sequence, bool resync,
		   int64_t change, const char *text);
/* Its connection is gone, or a new one begins with `after`, or 0 for from now on. */
void history_watch_begin(const char *watcher, int weftd, int64_t after);
void history_watch_end(const char *watcher);
/* A change that was acknowledged now: all who watch this weftd and have since begin_ns hear of
 * its end within two seconds. */
void history_change_ended(int weftd, int64_t change, int64_t begin_ns);

/* ---- other people's light ---- */

enum history_others {
	HISTORY_NOT_OTHERS,	/* not there by other people */
	HISTORY_MAYBE_OTHERS,	/* it comes or goes, or its device has lost power since */
	HISTORY_OTHERS,		/* they made it, and it is there until they say so */
};

/* Another user's circuit at a device, that is none of weft's: ports from 0. */
void history_others_set(int device, int in, int out, enum history_others state);
enum history_others history_others(int device, int in, int out);
/* A device has forgotten its map, or may have. */
void history_others_lost(int device);

/* ---- judgement ---- */

/* Checks all that was read against all that was written; sim_fail "lost hold", "lost job"
 * or "lost configuration" names the target, what was read and by whom, and what it contradicts.
 * Once, at the end. */
void history_check(void);
/* Of one target, so far; fails nothing. */
bool history_is_explained(const char *target);
/* Calls by outcome, for a last line. */
void history_count(int *done, int *refused, int *unknown);
/* Forgets everything. */
void history_clear(void);

/* The parts of these two that are in history_events.c. */
void history_check_events(void);
void history_clear_events(void);

#endif
