/* Programs of this process, by schedule and rank: made once, however many
 * communicators the user makes. They stay until the end, as their executors need them. */
#include "runtime/preload/private.h"

#include <stdlib.h>

static struct preload_program *find_locked(int entry, int rank)
{
	for (size_t i = 0; i < preload.programs.n; i++) {
		struct preload_program *p = preload.programs.v[i];

		if (p->entry == entry && p->rank == rank) {
			return p;
		}
	}
	return NULL;
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

/* Keeps p, or what another thread made of the same meanwhile. NULL: no memory. */
static struct preload_program *keep(struct preload_program *p)
{
	struct preload_program *kept;
	int rc = 0;

	pthread_mutex_lock(&preload.lock);
	kept = find_locked(p->entry, p->rank);
	if (!kept) {
		rc = vec_push(&preload.programs, p);
	}
	pthread_mutex_unlock(&preload.lock);
	if (kept || rc) {
		free_program(p);
		return kept;
	}
	return p;
}

int preload_program_make(int entry, int rank, const char *data, size_t len,
			 struct preload_program **out, struct err *err)
{
	const struct preload_entry *e = &preload.entries[entry];
	struct preload_program *p = calloc(1, sizeof(*p));
	struct coll_sched *s = NULL;
	int rc = p ? preload_entry_schedule(e, rank, data, len, &s, err) : err_nomem(err);

	*out = NULL;
	if (!rc && (rc = rank_program_make(s, rank, &p->program, err))) {
		err_wrap(err, "%s", e->file);
	}
	if (rc) {
		free_program(p);
		coll_free(s);
		return rc;
	}
	p->entry = entry;
	p->rank = rank;
	p->identity = e->per_rank ? preload_identity(s) : 0;
	p->balance = e->per_rank ? preload_balance(s, rank) : 0;
	coll_free(s);
	*out = keep(p);
	return *out ? 0 : err_nomem(err);
}

void preload_programs_free(void)
{
	for (size_t i = 0; i < preload.programs.n; i++) {
		free_program(preload.programs.v[i]);
	}
	vec_fini(&preload.programs);
}
