/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No lock of a shared store is held for ever. A process that is stopped while it has
 * one - a leader in the middle of a write, anyone in the middle of a reading -
 * would keep all others from leading. So before it takes a lock it sets a timer
 * with which the kernel ends it, stopped or not, and it stops the timer when the
 * lock is given back. What was half written is taken back by the next one who
 * reads, as after a crash.
 *
 * SQLite locks its file through a table of functions, which begins each open
 * file. The file gets a copy of it here, in which these two are ours.
 */
#include <errno.h>
#include <signal.h>

#include "controller/store/private.h"

#define NS_PER_S 1000000000

static struct store_hold *hold_of(sqlite3_file *file)
{
	/* The table is the first of its fields. */
	return (struct store_hold *)(void *)file->pMethods;
}

/* In ns from now on; 0: never. */
static void end_process_in(struct store_hold *h, int64_t ns)
{
	const struct itimerspec when = {
		.it_value = { .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S },
	};

	timer_settime(h->timer, 0, &when, NULL);
}

static int lock_file(sqlite3_file *file, int level)
{
	struct store_hold *h = hold_of(file);
	int rc;

	if (!h->held) {
		end_process_in(h, h->limit_ns);
	}
	rc = h->real->xLock(file, level);
	if (rc == SQLITE_OK) {
		h->held = true;
	} else if (!h->held) {
		end_process_in(h, 0);
	}
	return rc;
}

static int unlock_file(sqlite3_file *file, int level)
{
	struct store_hold *h = hold_of(file);
	int rc = h->real->xUnlock(file, level);

	if (rc == SQLITE_OK && level == SQLITE_LOCK_NONE) {
		h->held = false;
		end_process_in(h, 0);
	}
	return rc;
}

int store_limit_hold(struct store *s, int64_t ns, struct err *err)
{
	struct sigevent kill_us = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	struct store_hold *h = &s->hold;
	sqlite3_file *file = NULL;

	if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &file)) {
		return db_fail(s, err, "locks");
	}
	if (timer_create(CLOCK_MONOTONIC, &kill_us, &h->timer)) {
		return err_errno(err, WEFT_EIO, errno, "store %s: a timer for its locks", s->path);
	}
	h->limit_ns = ns;
	h->real = file->pMethods;
	h->methods = *h->real;
	h->methods.xLock = lock_file;
	h->methods.xUnlock = unlock_file;
	file->pMethods = &h->methods;
	return 0;
}

void store_hold_fini(struct store_hold *h)
{
	if (h->real) {
		timer_delete(h->timer);
	}
}
