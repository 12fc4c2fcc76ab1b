/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's file system in a simulation; disk.h says what it is. Below it is SQLite's own one
 * for bytes, names and sizes. Locks cannot be left to that: it keeps them in one table of the
 * real process, so one that was killed would hold them for ever. Nor is anything ever really
 * synced.
 *
 * From the ground up: a disk a machine, with its troubles; a node a name, with what is not
 * durable of it (undo.h) and the files that are open on it; names that were deleted and may
 * come back; then what SQLite calls.
 */
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "tests/sim/faults/chance.h"
#include "tests/sim/disk/disk.h"
#include "tests/sim/kernel/sim.h"
#include "tests/sim/disk/undo.h"

#define USUAL_SYNC_NS SIM_MS

struct disk {
	struct disk *next;
	char *machine;
	bool full, drops, no_syncs;
	bool counts;		/* writes that there is still room for */
	int64_t room;
	int errors;		/* of a thousand calls */
	uint64_t chance;	/* which of them, and what is lost with the power */
	int64_t sync_ns;	/* 0: as usual */
};

struct node {
	struct node *next;
	char *path;
	struct disk *disk;
	struct open_file *files;
	char **regions;		/* of shared memory, as long as a file has it */
	int n_regions;
	int64_t size;
	ino_t inode;
	const char *writer;	/* the machine that has written last; NULL: none */
	bool named;		/* durably; else the file itself may be gone */
	bool begun;		/* its first bytes were written last */
	struct undo undo;
};

struct open_file {
	sqlite3_file base;
	struct open_file *next;	/* of the same node */
	struct node *node;	/* NULL: a temporary one */
	struct sim_process *owner;
	int level;		/* SQLITE_LOCK_... */
	bool maps;		/* has the shared memory */
	unsigned int shared, exclusive;	/* its locks there, a bit each */
	sqlite3_file real[];
};

/* It was deleted, and may be there again when the power is lost: as it was then. */
struct deleted {
	struct deleted *next;
	char *path;
	char *bytes;
	size_t size;
};

static struct {
	sqlite3_vfs vfs, *real;
	char folder[PATH_MAX];	/* with a slash at its end */
	struct disk *disks;
	struct node *nodes;
	struct deleted *deleted;
	int64_t syncs;
} d;

/* ---- disks ---- */

static struct disk *disk_of(const char *machine, size_t n)
{
	struct disk *k;

	for (k = d.disks; k; k = k->next) {
		if (strlen(k->machine) == n && strncmp(k->machine, machine, n) == 0) {
			return k;
		}
	}
	k = x_new(1, sizeof(*k));
	k->machine = x_ndup(machine, n);
	k->next = d.disks;
	d.disks = k;
	return k;
}

/* SQLite has names from the root. */
static const char *in_folder(const char *path)
{
	const size_t n = strlen(d.folder);

	return strncmp(path, d.folder, n) == 0 ? path + n : path;
}

/* A call of SQLite: counts, may end the process, and fails by chance. */
static int enter(const struct node *n, int error)
{
	sim_call();
	if (n && n->disk->errors &&
	    chance_between(&n->disk->chance, 0, 1000) < n->disk->errors) {
		sim_tell("disk %s: an error of %s", n->disk->machine, in_folder(n->path));
		return error;
	}
	return SQLITE_OK;
}

/* ---- nodes ---- */

static struct node *find_node(const char *path)
{
	struct node *n;

	for (n = d.nodes; n && strcmp(n->path, path) != 0; n = n->next) {
	}
	return n;
}

/* The file is opened: what is known of it holds as long as it is the same one. */
static struct node *open_node(const char *path, bool existed)
{
	struct node *n = find_node(path);
	const char *name = in_folder(path);
	struct stat st = { 0 };

	stat(path, &st);
	if (!n) {
		n = x_new(1, sizeof(*n));
		n->path = x_dup(path);
		n->disk = disk_of(name, strcspn(name, "/"));
		n->next = d.nodes;
		d.nodes = n;
	}
	if (!n->files) {
		if (n->inode != st.st_ino || n->size != st.st_size || !existed) {
			undo_reset(&n->undo, st.st_size);
			n->named = existed;
		}
		n->inode = st.st_ino;
		n->size = st.st_size;
	}
	return n;
}

static void unmap(struct open_file *f)
{
	struct node *n = f->node;

	f->maps = false;
	f->shared = f->exclusive = 0;
	for (struct open_file *o = n->files; o; o = o->next) {
		if (o->maps) {
			return;
		}
	}
	for (int i = 0; i < n->n_regions; i++) {
		free(n->regions[i]);
	}
	free(n->regions);
	n->regions = NULL;
	n->n_regions = 0;
}

static void leave_node(struct open_file *f)
{
	struct open_file **at = &f->node->files;

	unmap(f);
	while (*at != f) {
		at = &(*at)->next;
	}
	*at = f->next;
}

/* A process has ended; the descriptors are closed by the kernel. */
static void leave_all(struct sim_process *p)
{
	for (struct node *n = d.nodes; n; n = n->next) {
		for (struct open_file *f = n->files, *next; f; f = next) {
			next = f->next;
			if (f->owner == p) {
				leave_node(f);
			}
		}
	}
}

/* ---- names that may come back ---- */

static bool same_folder(const char *a, const char *b)
{
	const size_t n = (size_t)(strrchr(a, '/') - a), m = (size_t)(strrchr(b, '/') - b);

	return n == m && strncmp(a, b, n) == 0;
}

static void free_deleted(struct deleted *x)
{
	free(x->path);
	free(x->bytes);
	free(x);
}

/* What was made and deleted in the folder of a file is durable. */
static void sync_folder(const char *path)
{
	for (struct node *n = d.nodes; n; n = n->next) {
		n->named |= same_folder(n->path, path);
	}
	for (struct deleted **at = &d.deleted, *x; (x = *at);) {
		if (same_folder(x->path, path)) {
			*at = x->next;
			free_deleted(x);
		} else {
			at = &x->next;
		}
	}
}

static bool is_deleted(const char *path)
{
	for (const struct deleted *x = d.deleted; x; x = x->next) {
		if (strcmp(x->path, path) == 0) {
			return true;
		}
	}
	return false;
}

/* Of more of one name, the first is the one that is on the disk. */
static void keep_deleted(const struct node *n)
{
	struct deleted *x;
	FILE *f;

	if (!n || !n->named || is_deleted(n->path) || !(f = fopen(n->path, "r"))) {
		return;
	}
	x = x_new(1, sizeof(*x));
	x->path = x_dup(n->path);
	x->bytes = x_alloc((size_t)n->size, 1);
	x->size = fread(x->bytes, 1, (size_t)n->size, f);
	fclose(f);
	x->next = d.deleted;
	d.deleted = x;
}

static void put_back(const struct deleted *x)
{
	FILE *f = fopen(x->path, "w");

	if (!f || fwrite(x->bytes, 1, x->size, f) != x->size || fclose(f)) {
		abort();	/* the machine's own disk */
	}
	sim_tell("disk: %s is there again", in_folder(x->path));
}

/* ---- what SQLite calls: bytes ---- */

#define OPEN_FILE(f) ((struct open_file *)(void *)(f))
#define REAL(f, method, ...) (OPEN_FILE(f)->real->pMethods->method(OPEN_FILE(f)->real, \
								  ##__VA_ARGS__))

static int x_close(sqlite3_file *f)
{
	if (OPEN_FILE(f)->node) {
		leave_node(OPEN_FILE(f));
	}
	return REAL(f, xClose);
}

static int x_read(sqlite3_file *f, void *bytes, int n, sqlite3_int64 at)
{
	const int rc = enter(OPEN_FILE(f)->node, SQLITE_IOERR_READ);

	return rc ? rc : REAL(f, xRead, bytes, n, at);
}

/* Notes what is there now, of the sectors from one byte to another. */
static void keep_old(struct open_file *f, int64_t from, int64_t to)
{
	struct node *n = f->node;
	char old[SECTOR_BYTES];

	for (int64_t s = from / SECTOR_BYTES; s * SECTOR_BYTES < to; s++) {
		if (undo_has(&n->undo, s)) {
			continue;
		}
		if (s * SECTOR_BYTES < n->size) {
			REAL(&f->base, xRead, old, SECTOR_BYTES, s * SECTOR_BYTES);
		}
		undo_keep(&n->undo, s, s * SECTOR_BYTES < n->size ? old : NULL);
	}
}

static int x_write(sqlite3_file *f, const void *bytes, int len, sqlite3_int64 at)
{
	struct node *n = OPEN_FILE(f)->node;
	int rc = enter(n, SQLITE_IOERR_WRITE);

	if (rc || !n) {
		return rc ? rc : REAL(f, xWrite, bytes, len, at);
	}
	if ((n->disk->full && at + len > n->size) || (n->disk->counts && n->disk->room-- <= 0)) {
		return SQLITE_FULL;
	}
	keep_old(OPEN_FILE(f), at, at + len);
	n->writer = sim_machine(sim_self());
	n->begun = at == 0;
	if (at + len > n->size) {
		n->size = at + len;
	}
	return REAL(f, xWrite, bytes, len, at);
}

static int x_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	struct node *n = OPEN_FILE(f)->node;
	int rc = enter(n, SQLITE_IOERR_TRUNCATE);

	if (!rc && n) {
		keep_old(OPEN_FILE(f), size, n->size);
		n->writer = sim_machine(sim_self());
		n->size = size;
	}
	return rc ? rc : REAL(f, xTruncate, size);
}

/* A log's new head is to be durable before what follows it; a store that machines share, before its
 * lock is given back. */
static const char *sync_name(const struct node *n)
{
	const bool new_log = n->begun && strstr(n->path, "-wal");

	return new_log || strcmp(n->disk->machine, "shared") == 0 ? SIM_SYNC_IN_COMMIT : SIM_SYNC;
}

/* What is written while it lasts is not part of it. */
static int x_sync(sqlite3_file *f, int flags)
{
	struct node *n = OPEN_FILE(f)->node;
	int rc = enter(n, SQLITE_IOERR_FSYNC);
	int64_t size;
	int sync;

	(void)flags;
	rc = n && n->disk->no_syncs ? SQLITE_IOERR_FSYNC : rc;
	if (rc && n && n->disk->drops) {
		undo_failed(&n->undo);
	}
	if (rc || !n) {
		return rc;
	}
	size = n->size;
	sync = undo_sync(&n->undo);
	if (sim_self()) {
		const int64_t ns = n->disk->sync_ns ? n->disk->sync_ns :
			sim_between(SIM_SCHEDULE, USUAL_SYNC_NS / 10, USUAL_SYNC_NS);

		sim_sleep_in(sync_name(n), ns);
	}
	undo_synced(&n->undo, sync, size);
	if (!n->named) {
		sync_folder(n->path);
	}
	d.syncs++;
	sim_call();
	return SQLITE_OK;
}

static int x_size(sqlite3_file *f, sqlite3_int64 *size)
{
	return REAL(f, xFileSize, size);
}

static int x_control(sqlite3_file *f, int op, void *arg)
{
	return REAL(f, xFileControl, op, arg);
}

static int x_sector(sqlite3_file *f)
{
	return REAL(f, xSectorSize);
}

static int x_traits(sqlite3_file *f)
{
	return REAL(f, xDeviceCharacteristics);
}

/* ---- locks of a file ---- */

/* The highest of others. */
static int level_of_others(const struct open_file *f)
{
	int level = SQLITE_LOCK_NONE;

	for (const struct open_file *o = f->node->files; o; o = o->next) {
		if (o != f && o->level > level) {
			level = o->level;
		}
	}
	return level;
}

/* As SQLite's own locks: any read until one is about to write, which waits for them. */
static int x_lock(sqlite3_file *file, int level)
{
	struct open_file *f = OPEN_FILE(file);
	int others;

	sim_call();
	if (f->level >= level || !f->node) {
		return SQLITE_OK;
	}
	others = level_of_others(f);
	if (others >= SQLITE_LOCK_PENDING ||
	    (level == SQLITE_LOCK_RESERVED && others >= SQLITE_LOCK_RESERVED)) {
		return SQLITE_BUSY;
	}
	if (level == SQLITE_LOCK_EXCLUSIVE && others >= SQLITE_LOCK_SHARED) {
		f->level = SQLITE_LOCK_PENDING;
		return SQLITE_BUSY;
	}
	f->level = level;
	return SQLITE_OK;
}

static int x_unlock(sqlite3_file *file, int level)
{
	struct open_file *f = OPEN_FILE(file);

	sim_call();
	if (f->level > level) {
		f->level = level;
	}
	return SQLITE_OK;
}

int disk_lock(const struct sim_process *p)
{
	int level = SQLITE_LOCK_NONE;

	for (const struct node *n = d.nodes; n; n = n->next) {
		for (const struct open_file *f = n->files; f; f = f->next) {
			if (f->owner == p && f->level > level) {
				level = f->level;
			}
		}
	}
	return level;
}

static int x_reserved(sqlite3_file *file, int *out)
{
	struct open_file *f = OPEN_FILE(file);

	*out = f->node && (f->level > SQLITE_LOCK_SHARED ||
			   level_of_others(f) > SQLITE_LOCK_SHARED);
	return SQLITE_OK;
}

/* ---- shared memory of a log ---- */

static int x_map(sqlite3_file *file, int i, int size, int extend, void volatile **out)
{
	struct open_file *f = OPEN_FILE(file);
	struct node *n = f->node;

	f->maps = true;
	*out = NULL;
	if (i >= n->n_regions && !extend) {
		return SQLITE_OK;
	}
	for (; n->n_regions <= i; n->n_regions++) {
		n->regions = x_grow(n->regions, (size_t)n->n_regions + 1, sizeof(*n->regions));
		n->regions[n->n_regions] = x_new(1, (size_t)size);
	}
	*out = n->regions[i];
	return SQLITE_OK;
}

static int x_map_lock(sqlite3_file *file, int at, int n, int flags)
{
	struct open_file *f = OPEN_FILE(file);
	const unsigned int mask = ((1U << n) - 1) << at;

	sim_call();
	if (flags & SQLITE_SHM_UNLOCK) {
		f->shared &= ~mask;
		f->exclusive &= ~mask;
		return SQLITE_OK;
	}
	for (const struct open_file *o = f->node->files; o; o = o->next) {
		if (o != f && ((o->exclusive & mask) ||
			       (flags & SQLITE_SHM_EXCLUSIVE && o->shared & mask))) {
			return SQLITE_BUSY;
		}
	}
	if (flags & SQLITE_SHM_EXCLUSIVE) {
		f->exclusive |= mask;
	} else {
		f->shared |= mask;
	}
	return SQLITE_OK;
}

static void x_barrier(sqlite3_file *file)
{
	(void)file;
}

static int x_unmap(sqlite3_file *file, int delete)
{
	(void)delete;
	unmap(OPEN_FILE(file));
	return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
	2, x_close, x_read, x_write, x_truncate, x_sync, x_size, x_lock, x_unlock, x_reserved,
	x_control, x_sector, x_traits, x_map, x_map_lock, x_barrier, x_unmap, NULL, NULL,
};

/* ---- what SQLite calls: names ---- */

static int v_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *out)
{
	const bool lasts = name && !(flags & SQLITE_OPEN_DELETEONCLOSE);
	const bool existed = lasts && access(name, F_OK) == 0;
	struct open_file *f = OPEN_FILE(file);
	int rc;

	(void)vfs;
	memset(f, 0, sizeof(*f));
	rc = enter(lasts ? find_node(name) : NULL, SQLITE_CANTOPEN);
	if (rc || (rc = d.real->xOpen(d.real, name, f->real, flags, out))) {
		return rc;
	}
	f->base.pMethods = &methods;
	f->owner = sim_self();
	if (lasts) {
		f->node = open_node(name, existed);
		f->next = f->node->files;
		f->node->files = f;
	}
	return SQLITE_OK;
}

static int v_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	struct node *n = find_node(name);
	int rc = enter(n, SQLITE_IOERR_DELETE);

	(void)vfs;
	if (rc) {
		return rc;
	}
	if (!sync) {
		keep_deleted(n);
	}
	rc = d.real->xDelete(d.real, name, 0);
	if (n && !rc) {
		n->inode = 0;
	}
	if (sync && !rc) {
		sync_folder(name);
	}
	return rc;
}

static int v_random(sqlite3_vfs *vfs, int n, char *out)
{
	(void)vfs;
	for (int i = 0; i < n; i++) {
		out[i] = (char)sim_random(SIM_BYTES);
	}
	return n;
}

static int v_sleep(sqlite3_vfs *vfs, int us)
{
	(void)vfs;
	if (sim_self()) {
		sim_sleep((int64_t)us * 1000);
	}
	return us;
}

/* Of plain files, which are never lost. */
int fsync(int fd)
{
	(void)fd;
	sim_call();
	return 0;
}

int fdatasync(int fd)
{
	return fsync(fd);
}

void disk_begin(void)
{
	d.real = sqlite3_vfs_find(NULL);
	d.vfs = *d.real;
	d.vfs.zName = "sim";
	d.vfs.szOsFile = (int)sizeof(struct open_file) + d.real->szOsFile;
	d.vfs.xOpen = v_open;
	d.vfs.xDelete = v_delete;
	d.vfs.xRandomness = v_random;
	d.vfs.xSleep = v_sleep;
	if (!getcwd(d.folder, sizeof(d.folder) - 1)) {
		abort();
	}
	strcat(d.folder, "/");
	sqlite3_vfs_register(&d.vfs, 1);
	sim_on_end(leave_all);
}

/* ---- troubles ---- */

static void lose_node(struct node *n, uint64_t *chance)
{
	const bool gone = !n->named && !n->files && chance_next(chance) % 2;
	int fd, lost = 0;

	n->named = true;
	if (gone) {
		unlink(n->path);
		sim_tell("disk: %s is gone", in_folder(n->path));
		return;
	}
	if ((n->undo.n == 0 && n->undo.size == n->size) || (fd = open(n->path, O_RDWR)) < 0) {
		return;
	}
	lost = undo_lose(&n->undo, fd, n->size, chance);
	close(fd);
	n->size = n->undo.size;
	sim_tell("disk: %s lost %d sectors, has %lld bytes", in_folder(n->path), lost,
		 (long long)n->size);
}

static void lose_names(const struct disk *disk, uint64_t *chance)
{
	for (struct deleted **at = &d.deleted, *x; (x = *at);) {
		const char *name = in_folder(x->path);

		if (disk_of(name, strcspn(name, "/")) != disk) {
			at = &x->next;
			continue;
		}
		if (chance_next(chance) % 2) {
			put_back(x);
		}
		*at = x->next;
		free_deleted(x);
	}
}

/* What a machine had not synced of a disk that others have too goes with it as well; they had
 * no lock to see it. */
void disk_power_loss(const char *machine)
{
	struct disk *disk = disk_of(machine, strlen(machine));

	for (struct node *n = d.nodes; n; n = n->next) {
		if (n->inode && (n->disk == disk ? !n->files : n->writer &&
				 strcmp(n->writer, machine) == 0)) {
			lose_node(n, &disk->chance);
		}
	}
	lose_names(disk, &disk->chance);
}

bool disk_flip_bit(const char *path, uint64_t which)
{
	int fd = open(path, O_RDWR), byte;
	const off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	const off_t at = size > 0 ? (off_t)(which / 8 % (uint64_t)size) : 0;
	unsigned char c;
	bool done = size > 0 && pread(fd, &c, 1, at) == 1;

	if (done) {
		byte = c ^ 1 << which % 8;
		c = (unsigned char)byte;
		done = pwrite(fd, &c, 1, at) == 1;
		sim_tell("disk: bit %d of byte %lld of %s", (int)(which % 8), (long long)at, path);
	}
	if (fd >= 0) {
		close(fd);
	}
	return done;
}

void disk_full(const char *machine, bool on)
{
	struct disk *disk = disk_of(machine, strlen(machine));

	disk->full = on;
	disk->counts = false;
}

void disk_full_after(const char *machine, int64_t writes)
{
	struct disk *disk = disk_of(machine, strlen(machine));

	disk->counts = true;
	disk->room = writes;
}

void disk_errors(const char *machine, int permille)
{
	disk_of(machine, strlen(machine))->errors = permille;
}

void disk_fail_syncs(const char *machine, bool on)
{
	disk_of(machine, strlen(machine))->no_syncs = on;
}

void disk_drops(const char *machine, bool on)
{
	disk_of(machine, strlen(machine))->drops = on;
}

void disk_chance(const char *machine, uint64_t seed)
{
	disk_of(machine, strlen(machine))->chance = seed;
}

void disk_slow(const char *machine, int64_t ns)
{
	disk_of(machine, strlen(machine))->sync_ns = ns;
}

int64_t disk_syncs(void)
{
	return d.syncs;
}
