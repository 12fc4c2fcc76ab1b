/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SQLite VFS that stands before the real one and counts what reaches the
 * disk: writes, syncs, truncations, deletes. At the chosen operation it
 * fails (once, or from then on), or ends the process.
 */
#ifndef WEFT_TESTS_UNIT_STORE_FAULT_VFS_H
#define WEFT_TESTS_UNIT_STORE_FAULT_VFS_H

#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* FAULT_WATCH: every operation is announced, and none fails. */
enum fault_what {
	FAULT_NONE, FAULT_IOERR, FAULT_FULL, FAULT_KILL, FAULT_WATCH,
};

static struct {
	enum fault_what what;
	int at;			/* the N-th operation, from 1 */
	bool for_ever;		/* all from the N-th on */
	bool syncs_only;	/* count syncs, not writes */
	bool read_only;		/* open everything read-only */
	int count;
	bool hit;
	void (*watch)(void *arg);
	void *arg;
} fault;

struct fault_file {
	sqlite3_file base;
	sqlite3_file *real;
};

static sqlite3_vfs *fault_real;

/* The operation fails with the code returned, or goes through with 0. */
static int fault_strike(bool is_sync)
{
	if (fault.what == FAULT_NONE || (fault.syncs_only && !is_sync)) {
		return 0;
	}
	fault.count++;
	if (fault.what == FAULT_WATCH) {
		fault.watch(fault.arg);
		return 0;
	}
	if (fault.count != fault.at &&
	    !(fault.for_ever && fault.count > fault.at)) {
		return 0;
	}
	fault.hit = true;
	if (fault.what == FAULT_KILL) {
		kill(getpid(), SIGKILL);
	}
	if (fault.what == FAULT_FULL && !is_sync) {
		return SQLITE_FULL;
	}
	return is_sync ? SQLITE_IOERR_FSYNC : SQLITE_IOERR_WRITE;
}

static sqlite3_file *real_of(sqlite3_file *f)
{
	return ((struct fault_file *)f)->real;
}

static int f_close(sqlite3_file *f)
{
	sqlite3_file *r = real_of(f);
	int rc = r->pMethods ? r->pMethods->xClose(r) : SQLITE_OK;

	sqlite3_free(r);
	return rc;
}

static int f_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	return real_of(f)->pMethods->xRead(real_of(f), p, n, at);
}

static int f_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	int rc = fault_strike(false);

	return rc ? rc : real_of(f)->pMethods->xWrite(real_of(f), p, n, at);
}

static int f_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	int rc = fault_strike(false);

	return rc ? rc : real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int f_sync(sqlite3_file *f, int flags)
{
	int rc = fault_strike(true);

	return rc ? rc : real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int f_size(sqlite3_file *f, sqlite3_int64 *size)
{
	return real_of(f)->pMethods->xFileSize(real_of(f), size);
}

static int f_lock(sqlite3_file *f, int how)
{
	return real_of(f)->pMethods->xLock(real_of(f), how);
}

static int f_unlock(sqlite3_file *f, int how)
{
	return real_of(f)->pMethods->xUnlock(real_of(f), how);
}

static int f_reserved(sqlite3_file *f, int *out)
{
	return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out);
}

static int f_control(sqlite3_file *f, int op, void *arg)
{
	return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int f_sector(sqlite3_file *f)
{
	return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int f_traits(sqlite3_file *f)
{
	return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int f_shm_map(sqlite3_file *f, int page, int size, int extend,
		     void volatile **out)
{
	return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend,
					     out);
}

static int f_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
	return real_of(f)->pMethods->xShmLock(real_of(f), at, n, flags);
}

static void f_shm_barrier(sqlite3_file *f)
{
	real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int f_shm_unmap(sqlite3_file *f, int del)
{
	return real_of(f)->pMethods->xShmUnmap(real_of(f), del);
}

static const sqlite3_io_methods fault_methods = {
	.iVersion = 2,
	.xClose = f_close, .xRead = f_read, .xWrite = f_write,
	.xTruncate = f_truncate, .xSync = f_sync, .xFileSize = f_size,
	.xLock = f_lock, .xUnlock = f_unlock,
	.xCheckReservedLock = f_reserved, .xFileControl = f_control,
	.xSectorSize = f_sector, .xDeviceCharacteristics = f_traits,
	.xShmMap = f_shm_map, .xShmLock = f_shm_lock,
	.xShmBarrier = f_shm_barrier, .xShmUnmap = f_shm_unmap,
};

static int v_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *f,
		  int flags, int *out_flags)
{
	struct fault_file *ff = (struct fault_file *)f;
	int rc;

	(void)vfs;
	if (fault.read_only && (flags & SQLITE_OPEN_MAIN_DB)) {
		flags &= ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
		flags |= SQLITE_OPEN_READONLY;
	}
	ff->base.pMethods = NULL;
	ff->real = sqlite3_malloc(fault_real->szOsFile);
	if (!ff->real) {
		return SQLITE_NOMEM;
	}
	memset(ff->real, 0, fault_real->szOsFile);
	rc = fault_real->xOpen(fault_real, name, ff->real, flags, out_flags);
	if (rc) {
		sqlite3_free(ff->real);
		return rc;
	}
	ff->base.pMethods = &fault_methods;
	return SQLITE_OK;
}

static int v_delete(sqlite3_vfs *vfs, const char *name, int sync_dir)
{
	int rc = fault_strike(false);

	(void)vfs;
	return rc ? rc : fault_real->xDelete(fault_real, name, sync_dir);
}

/* Makes the VFS the default one; call once. */
static void fault_install(void)
{
	static sqlite3_vfs vfs;

	fault_real = sqlite3_vfs_find(NULL);
	vfs = *fault_real;
	vfs.zName = "fault";
	vfs.szOsFile = sizeof(struct fault_file);
	vfs.xOpen = v_open;
	vfs.xDelete = v_delete;
	sqlite3_vfs_register(&vfs, 1);
}

static inline void fault_arm(enum fault_what what, int at, bool for_ever)
{
	memset(&fault, 0, sizeof(fault));
	fault.what = what;
	fault.at = at;
	fault.for_ever = for_ever;
}

static inline void fault_clear(void)
{
	memset(&fault, 0, sizeof(fault));
}

#endif
