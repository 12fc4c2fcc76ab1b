/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of this process, by schedule and rank: made once, however many
 * communicators the user makes. They stay until the end, as their executors need them. */
#include "runtime/preload/private.h"

#include <stdlib.h>

#include "lib/base/alloc.h"

static struct preload_program *find_locked(int entry, int rank)
{
	struct preload_program *p = preload.programs;

	while (p && (p->entry != entry || p->rank != rank)) {
		p = p->next;
	}
	return p;
}

struct preload_program *preload_program_find(int entry, int rank)
{
	struct preload_program *p;

	pthread_mutex_lock(&preload.lock);
	p = find_locked(entry, rank);
	pthread_mutex_unlock(&preload.lock);
	return p;
}

static void free_program(struct preload_program *p)
{
	if (p) {
		rank_program_fini(&p->program);
		free(p);
	}
}

/* Keeps p, or what another thread made of the same meanwhile. */
static struct preload_program *keep(struct preload_program *p)
{
	struct preload_program *kept;

	pthread_mutex_lock(&preload.lock);
	kept = find_locked(p->entry, p->rank);
	if (!kept) {
		p->next = preload.programs;
		preload.programs = p;
	}
	pthread_mutex_unlock(&preload.lock);
	if (kept) {
		free_program(p);
		return kept;
	}
	return p;
}

int preload_no_memory(struct err *err)
{
	return err_set(err, WEFT_ELIMIT, "out of memory");
}

struct making {
	int entry, rank;
	const char *data;
	size_t len;
	struct preload_program *p;
	int rc;
	struct err *err;
};

static int make(struct making *m)
{
	const struct preload_entry *e = &preload.entries[m->entry];
	struct coll_sched *s = NULL;
	int rc = preload_entry_schedule(e, m->rank, m->data, m->len, &s, m->err);

	if (rc) {
		return rc;
	}
	m->p = x_new(1, sizeof(*m->p));
	rc = rank_program_make(s, m->rank, &m->p->program, m->err);
	m->p->entry = m->entry;
	m->p->rank = m->rank;
	m->p->identity = e->per_rank ? preload_identity(s) : 0;
	m->p->balance = e->per_rank ? preload_balance(s, m->rank) : 0;
	coll_free(s);
	return rc ? err_wrap(m->err, "%s", e->file) : 0;
}

static void try_make(void *arg)
{
	struct making *m = arg;

	m->rc = make(m);
}

int preload_program_make(int entry, int rank, const char *data, size_t len,
			 struct preload_program **out, struct err *err)
{
	struct making m = { .entry = entry, .rank = rank, .data = data, .len = len, .err = err };

	*out = NULL;
	if (!alloc_try(try_make, &m)) {
		return preload_no_memory(err);
	}
	if (m.rc) {
		free_program(m.p);
		return m.rc;
	}
	*out = keep(m.p);
	return 0;
}

void preload_programs_free(void)
{
	struct preload_program *next;

	for (struct preload_program *p = preload.programs; p; p = next) {
		next = p->next;
		free_program(p);
	}
	preload.programs = NULL;
}
