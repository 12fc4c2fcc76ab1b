/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that can lose power: SQLite's default file system in a simulation. Data is in real
 * files below the current folder, by relative names; the first folder of a name is the machine
 * whose disk it is on ("a/state/weft.db" is on that of "a"). Locks and shared memory are of
 * a simulated process and end with it; any may read beside it, also what is no process at all.
 * Each call is one of the kernel's (sim_call), so a process may be killed in it.
 *
 * Until a sync has ended, what was written may be lost with the power, sector by sector; also
 * that a file was made or deleted, until its folder is synced (by SQLite, with a new file's
 * first sync). A process that is killed loses nothing.
 *
 * Plain files (lib/base/file.c: written to another name, synced, renamed) are real and are never
 * lost, so they are not synced. So are lock files.
 */
#ifndef WEFT_TESTS_SIM_DISK_H
#define WEFT_TESTS_SIM_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct sim_process;

/* Once, after sim_begin. */
void disk_begin(void);

/* Its processes have ended (sim_power_off). A disk that several machines have, as "shared", is
 * named itself when all of them fall; what one of them had not synced goes with that one. */
void disk_power_loss(const char *machine);
/* What is by chance on this disk follows from the seed from now on. */
void disk_chance(const char *machine, uint64_t seed);
/* Another bit of a file, `which` of them; false: there is no such file, or nothing in it. */
bool disk_flip_bit(const char *path, uint64_t which);
/* No file grows. */
void disk_full(const char *machine, bool on);
/* After so many writes none finds room, wherever it is to go, until disk_full(machine, false). */
void disk_full_after(const char *machine, int64_t writes);
/* So many of a thousand reads, writes and syncs fail. */
void disk_errors(const char *machine, int permille);
/* All syncs fail. */
void disk_fail_syncs(const char *machine, bool on);
/* What a sync that failed has left is not written by the next one, which does not fail: as Linux
 * has it. Else the next one makes it good. */
void disk_drops(const char *machine, bool on);
/* A sync takes so long; 0: as usual, up to a millisecond. */
void disk_slow(const char *machine, int64_t ns);
/* The highest lock that it has of a file which is no log, as SQLITE_LOCK_... say; 0: none. */
int disk_lock(const struct sim_process *p);
/* How many syncs have ended, of all machines. */
int64_t disk_syncs(void);

#endif
