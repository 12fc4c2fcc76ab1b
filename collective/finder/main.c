/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft-frontiers FILE SETS SEED [FROM TO]: improves a table of frontiers.
 *
 * For every size that weft's table has (FROM to TO: only those nodes), a search of SETS
 * sets of generators, in a sequence that SEED numbers, begins from what the file has; what is
 * better is written back, every minute and at the end. Sizes and ports beyond the usual ones are
 * looked at where the file has a line of them, if only "294 9 both". The file may be new. Running
 * it again with another seed goes on looking: `make frontiers`.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collective/finder/finder.h"
#include "lib/base/alloc.h"
#include "lib/base/file.h"
#include "lib/base/parallel.h"

#define MAX_N 4096
#define MAX_TABLE (16 << 20)
#define SAVE_S 60		/* between two writes */

static const int degrees[] = { 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
#define CELLS (2 * (int)(sizeof(degrees) / sizeof(degrees[0])))

/* The table while it is being made. */
struct finder_making {
	const char *path;
	char *text;			/* as it was read */
	size_t len;
	char *line[MAX_N + 1][CELLS];	/* by nodes, degree and way; NULL: not there */
	struct coll_query query;	/* its sets and seed */
	int to;
	atomic_int next;		/* the nodes to take next */
	pthread_mutex_t lock;		/* of lines and what follows */
	int changed;
	time_t saved;
	int rc;
	struct err err;
};

/* All to 1024, then multiples of 100 and of 256, of 2, 3, 4, 6 and 8 ports. */
static bool is_usual(int n, int d)
{
	return (d <= 4 || d == 6 || d == 8) && (n <= 1024 || n % 100 == 0 || n % 256 == 0);
}

/* The lines of a text into their places; a line without one is dropped. */
static void read_lines(struct finder_making *m)
{
	char *save = NULL, *copy = x_ndup(m->text, m->len);

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		int n, d;
		char way[5];

		if (sscanf(line, "%d %d %4s", &n, &d, way) != 3 || n < 2 || n > MAX_N) {
			continue;
		}
		for (int i = 0; i < CELLS; i++) {
			if (degrees[i / 2] == d && i % 2 == (strcmp(way, "both") == 0)) {
				free(m->line[n][i]);
				m->line[n][i] = x_alloc(strlen(line) + 2, 1);
				sprintf(m->line[n][i], "%s\n", line);
			}
		}
	}
	free(copy);
}

static int save(struct finder_making *m, struct err *err)
{
	struct buf all = { 0 };
	int rc;

	for (int n = 0; n <= MAX_N; n++) {
		for (int i = 0; i < CELLS; i++) {
			buf_str(&all, m->line[n][i] ? m->line[n][i] : "");
		}
	}
	rc = file_write_atomic(m->path, all.data, all.len, FILE_PUBLIC, err);
	buf_fini(&all);
	m->saved = time(NULL);
	return rc;
}

/* A line that is as good as the one that is there takes its place. */
static int store(struct finder_making *m, int n, int i, struct buf *line, struct err *err)
{
	int rc = 0;

	pthread_mutex_lock(&m->lock);
	if (line->len > 0 && (!m->line[n][i] || strcmp(buf_cstr(line), m->line[n][i]) != 0)) {
		free(m->line[n][i]);
		m->line[n][i] = buf_steal(line);
		m->changed++;
	}
	if (time(NULL) - m->saved >= SAVE_S) {
		fprintf(stderr, "%d nodes: %d lines changed\n", n, m->changed);
		rc = save(m, err);
	}
	pthread_mutex_unlock(&m->lock);
	return rc;
}

/* One size and degree. Nothing known of it is no error. */
static int improve(struct finder_making *m, struct coll_finder *f, int n, int i, struct err *err)
{
	struct coll_query q = m->query;
	struct buf line = { 0 };
	int rc;

	q.n = n;
	q.degree = degrees[i / 2];
	q.bidirectional = i % 2;
	if (q.degree >= n - 1 || (!is_usual(n, q.degree) && !m->line[n][i])) {
		return 0;	/* known without a table, or not in it */
	}
	rc = coll_finder_improve(f, &q, &line, err);
	if (!rc || rc == WEFT_EINFEASIBLE) {
		rc = store(m, n, i, &line, err);
	}
	buf_fini(&line);
	return rc;
}

static void work(void *arg, int part)
{
	struct finder_making *m = arg;
	struct coll_finder *f;
	struct err err = { 0 };
	int rc = 0, n;

	coll_finder_new(&f);
	(void)part;
	coll_finder_set_table(f, m->text, m->len);
	while (!rc && (n = atomic_fetch_add(&m->next, 1)) <= m->to) {
		for (int i = 0; i < CELLS && !rc; i++) {
			rc = improve(m, f, n, i, &err);
		}
	}
	if (rc) {
		pthread_mutex_lock(&m->lock);
		m->rc = rc;
		m->err = err;
		pthread_mutex_unlock(&m->lock);
		atomic_store(&m->next, m->to + 1);
	}
	coll_finder_free(f);
}

static int read_table(struct finder_making *m)
{
	int rc = file_read(m->path, MAX_TABLE, &m->text, &m->len, &m->err);

	if (rc == WEFT_ENOTFOUND) {
		err_clear(&m->err);
		m->text = x_new(1, 1);
		rc = 0;
	}
	if (rc == 0) {
		read_lines(m);
	}
	return rc;
}

int main(int argc, char **argv)
{
	static struct finder_making m = { .lock = PTHREAD_MUTEX_INITIALIZER };

	if (argc != 4 && argc != 6) {
		fprintf(stderr, "usage: weft-frontiers FILE SETS SEED [FROM TO]\n");
		return 64;
	}
	m.path = argv[1];
	m.query = (struct coll_query){ .kind = COLL_ALLREDUCE, .sets = atoi(argv[2]),
				       .seed = (uint64_t)strtoull(argv[3], NULL, 10) };
	atomic_init(&m.next, argc > 4 ? atoi(argv[4]) : 2);
	m.to = argc > 4 && atoi(argv[5]) < MAX_N ? atoi(argv[5]) : MAX_N;
	m.saved = time(NULL);
	m.rc = read_table(&m);
	if (!m.rc) {
		parallel_run(parallel_width(), work, &m);
	}
	if (!m.rc) {
		m.rc = save(&m, &m.err);
	}
	if (m.rc) {
		fprintf(stderr, "weft-frontiers: %s\n", m.err.msg);
	}
	printf("%d lines changed\n", m.changed);
	free(m.text);
	return m.rc ? 1 : 0;
}
