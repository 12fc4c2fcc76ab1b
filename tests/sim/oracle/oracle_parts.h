/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the oracle. */
#ifndef WEFT_TESTS_SIM_ORACLE_PARTS_H
#define WEFT_TESTS_SIM_ORACLE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/store/store.h"
#include "drivers/core/driver.h"
#include "tests/sim/oracle/oracle.h"
#include "tests/sim/kernel/sim.h"

/* A command that was sent may move light so long after its change is over: a stalled link, a
 * device that completes late. */
#define ORACLE_GRACE (30 * SIM_S)

/* By the end weftd has read all devices since the last fault. */
bool oracle_reads_often(void);

/* ---- oracle_stores.c: what the stores of weftd were told ---- */

/* The store that the running process has opened; NULL: none. */
const struct store *oracle_store(void);
/* The newest place in a log at which two stand who live; 0: no two do. */
int64_t oracle_common_position(void);
/* That process leads no more: another term has begun. */
bool oracle_is_deposed(const struct store *s);

/* A change on record names the circuit, so that weft may make it (or else take it away): one that
 * is open, or was so within ORACLE_GRACE. */
bool oracle_is_on_record(const char *device, struct optics_xc xc, bool made);
/* The same for the program of a ring. */
bool oracle_is_load_on_record(const char *device);
/* Before the command is sent: the record says durably, in this store, that it is. */
bool oracle_is_marked(const struct store *s, const char *device, struct optics_xc xc,
		      enum drv_op op);
bool oracle_is_load_marked(const struct store *s, const char *device);
/* The last change that was committed wants it so. */
bool oracle_is_intended(const char *device, struct optics_xc xc);
/* And has left it as it was: dark perhaps. */
bool oracle_is_left(const char *device, struct optics_xc xc);

/* ---- oracle_copies.c: what is in the files ---- */

/* The path of a store that was opened. */
void oracle_note_file(const char *path);
/* Compares the stores that stand at the same place of the same log. */
void oracle_compare_copies(void);
/* Every intent of every store is on its device, nothing is open, and all copies are as far. */
void oracle_check_files(void);

/* ---- oracle_devices.c: what devices have ---- */

/* Each circuit that weft has made is explained. */
void oracle_check_devices(void);
bool oracle_device_has(const char *device, struct optics_xc xc);
bool oracle_ring_has(const char *device, const uint8_t digest[RING_DIGEST_LEN]);
/* Another user, a fault or a restart has moved light of it since then. */
bool oracle_is_disturbed(const char *device, int64_t since);
/* The configuration has it no more: what it holds is no longer weft's. */
void oracle_forget_device(const char *device);
/* A circuit of another user that is there; false: there is none. */
bool oracle_find_other(const char *device, struct optics_xc *out);

/* ---- what planted faults are above of (planted.c) ---- */

int watched_store_mark(struct store *s, const struct store_journal *j, int work, struct err *err);
int watched_store_sync(struct store *s, struct err *err);
void watched_drv_submit(struct drv *dev, const struct drv_batch *batch, drv_submit_cb cb,
			void *arg);

#endif
