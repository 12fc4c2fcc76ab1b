/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a rig at every write of its store, so that a process can be killed at each of
 * these moments.
 */
#ifndef WEFT_TESTS_UNIT_APPLY_MOMENTS_H
#define WEFT_TESTS_UNIT_APPLY_MOMENTS_H

#include <pthread.h>

#include "rig.h"
#include "tests/unit/store/fault_vfs.h"
#include "tests/unit/world.h"

/* Of the moments at which the process may end or the disk fail, one of so many. */
#define STRIDE ALL_OR_SOME(1, 7)

/* A process that is killed leaves what it wrote: the files as they are before
 * a write are those of a process that ended there. */
static const char *const kept_files[] = {
	"a.map", "b.map", "state", "state-wal",
};

#define N_KEPT (sizeof(kept_files) / sizeof(kept_files[0]))
#define MAX_MOMENTS 400

struct moments {
	struct rig *rig;
	int n;
	struct buf files[MAX_MOMENTS][N_KEPT];	/* empty: missing, or as in */
	int same[MAX_MOMENTS][N_KEPT];		/* the moment it changed */
};

static inline FILE *open_kept(const struct rig *r, size_t file, const char *mode)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", r->dir, kept_files[file]);
	if (mode[0] == 'w') {
		unlink(path);
	}
	return fopen(path, mode);
}

static inline void read_kept(const struct rig *r, size_t file, struct buf *out)
{
	FILE *f = open_kept(r, file, "rb");
	char part[16384];
	size_t n;

	while (f && (n = fread(part, 1, sizeof(part), f)) > 0) {
		buf_add(out, part, n);
	}
	if (f) {
		fclose(f);
	}
}

/* Of one write at a time: a sync is on a worker, while the loop writes. */
static inline void keep_moment(void *arg)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct moments *m = arg;

	pthread_mutex_lock(&lock);
	assert_true(m->n < MAX_MOMENTS);
	for (size_t i = 0; i < N_KEPT; i++) {
		struct buf *now = &m->files[m->n][i];
		int same = m->n ? m->same[m->n - 1][i] : 0;
		const struct buf *last = &m->files[same][i];

		m->same[m->n][i] = m->n;
		read_kept(m->rig, i, now);
		if (m->n && last->len == now->len &&
		    (!now->len || !memcmp(last->data, now->data, now->len))) {
			buf_fini(now);
			m->same[m->n][i] = same;
		}
	}
	m->n++;
	pthread_mutex_unlock(&lock);
}

static inline void restore_moment(const struct moments *m, int at)
{
	struct rig *r = m->rig;

	rig_wipe(r);
	for (size_t i = 0; i < N_KEPT; i++) {
		const struct buf *b = &m->files[m->same[at][i]][i];
		FILE *f = b->len ? open_kept(r, i, "wb") : NULL;

		if (f) {
			assert_int_equal(fwrite(b->data, 1, b->len, f),
					 b->len);
			assert_int_equal(fclose(f), 0);
		}
	}
}

static inline struct moments *new_moments(struct rig *r)
{
	struct moments *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->rig = r;
	return m;
}

/* From now on, until fault_clear(). */
static inline void watch_moments(struct moments *m)
{
	fault_arm(FAULT_WATCH, 0, false);
	fault.watch = keep_moment;
	fault.arg = m;
}

static inline void free_moments(struct moments *m)
{
	for (int k = 0; k < m->n; k++) {
		for (size_t i = 0; i < N_KEPT; i++) {
			buf_fini(&m->files[k][i]);
		}
	}
	free(m);
}

#endif
