/* SPDX-License-Identifier: Apache-2.0 */
/* Files: bounded reading, atomic durable writing, advisory locks. */
#ifndef WEFT_LIB_BASE_FILE_H
#define WEFT_LIB_BASE_FILE_H

#include <stddef.h>

#include "lib/base/err.h"

/* To be called first in main(): opens what of standard input, output and
 * error is closed, so that no socket or file gets its number and the lines
 * meant for it. Reading from and writing to them goes on failing. WEFT_EIO,
 * without a message: there may be nowhere to print it. */
int file_open_standard(void);

/* Reads a whole regular file (or pipe; "-" is standard input) of at most
 * `max` bytes. *data is terminated and freed by the caller.
 * WEFT_ENOTFOUND, WEFT_EIO, WEFT_ELIMIT. */
int file_read(const char *path, size_t max, char **data, size_t *len, struct err *err);

/* Who may at most use a file that is written, besides what umask says. */
#define FILE_PUBLIC 0777	/* all whom the umask leaves */
#define FILE_PRIVATE 0600	/* its owner */

/* The ceiling for what is made from the file `source` and says what that does: its mode, without
 * the group's bits when our group is another. FILE_PRIVATE when there is no such regular file. */
int file_ceiling(const char *source);

/*
 * Writes a temporary file beside path, syncs it, renames it over path and
 * syncs the directory: afterwards path holds the old or the new bytes,
 * whatever crashes when. A symbolic link stays, and the file it leads to is
 * replaced; device files and pipes are written to. A link that another user has made in a
 * folder where everybody may, as /tmp is one, is not followed: WEFT_EDENIED. "-" is
 * standard output.
 * A new file's mode is 0666 less the umask, an existing one keeps its mode and
 * (if we may) its group; both only within `ceiling`, which no bit exceeds.
 * WEFT_EINVAL for a path that is empty or too long, WEFT_EIO.
 */
int file_write_atomic(const char *path, const void *data, size_t len, int ceiling, struct err *err);

/* Takes an exclusive lock on path (created when absent) and writes the
 * process id into it. *fd holds the lock until closed. WEFT_ESTALE when
 * another process holds it; the message names its process id. */
int file_lock(const char *path, int *fd, struct err *err);
/* The same beside others who lock it so; keeps file_lock out, and is kept out
 * by it. No process id is written. */
int file_lock_shared(const char *path, int *fd, struct err *err);

#endif
