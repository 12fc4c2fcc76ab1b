/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a table: read, compared with what the table says, and proven.
 *
 * One rank checks a file when the program begins; whoever reads it again finds by the
 * digest whether it is still the one that was proven. A part of a schedule cannot be proven by
 * itself: the ranks find out whether their parts are of one schedule and go together.
 */
#include "runtime/preload/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/map.h"
#include "lib/base/number/rng.h"
#include "runtime/rank/rank.h"

int preload_file_name(const struct preload_entry *e, int rank, char out[PRELOAD_MAX_FILE],
		      struct err *err)
{
	const char *mark = e->per_rank ? strchr(e->file, '%') : NULL;
	int n = mark ? snprintf(out, PRELOAD_MAX_FILE, "%.*s%d%s", (int)(mark - e->file), e->file,
				rank, mark + 2)
		     : snprintf(out, PRELOAD_MAX_FILE, "%s", e->file);

	if (n >= PRELOAD_MAX_FILE) {
		return err_set(err, WEFT_ELIMIT, "%s: the name for rank %d is longer than %d bytes",
			       e->file, rank, PRELOAD_MAX_FILE - 1);
	}
	return 0;
}

/* Every rank's part is another file: their digests say nothing. */
static uint64_t digest_of(const struct preload_entry *e, const char *data, size_t len)
{
	return e->per_rank ? 0 : rng_mix(hash_bytes(data, len) + len);
}

static int read_file(const struct preload_entry *e, int rank, char **data, size_t *len,
		     struct err *err)
{
	char name[PRELOAD_MAX_FILE];
	int rc = preload_file_name(e, rank, name, err);

	return rc ? rc : file_read(name, PRELOAD_MAX_SCHEDULE, data, len, err);
}

int preload_entry_read(const struct preload_entry *e, int rank, char **data, size_t *len,
		       struct err *err)
{
	int rc = read_file(e, rank, data, len, err);

	if (rc) {
		return rc;
	}
	if (digest_of(e, *data, *len) != e->digest) {
		free(*data);
		*data = NULL;
		return err_set(err, WEFT_ESTALE, "%s: the file has changed since it was checked",
			       e->file);
	}
	return 0;
}

/* ---- what the entry says ---- */

static int compare(const struct preload_entry *e, const struct coll_sched *s, struct err *err)
{
	enum coll_kind kind = coll_kind_of(s);

	if (e->kind >= 0 && e->kind != (int)kind) {
		return err_set(err, WEFT_EINVAL, "%s: the schedule is of %s, not of %s", e->file,
			       coll_kind_name(kind), coll_kind_name((enum coll_kind)e->kind));
	}
	if (e->ranks >= 0 && e->ranks != coll_ranks(s)) {
		return err_set(err, WEFT_EINVAL, "%s: the schedule is for %d ranks, not for %d",
			       e->file, coll_ranks(s), e->ranks);
	}
	if (e->root >= 0 && coll_has_root(kind) && e->root != coll_root(s)) {
		return err_set(err, WEFT_EINVAL, "%s: the schedule's root is %d, not %d", e->file,
			       coll_root(s), e->root);
	}
	return 0;
}

static int compare_part(const struct preload_entry *e, const struct coll_sched *s, int rank,
			struct err *err)
{
	int part = coll_part(s);

	if (!e->per_rank && part >= 0) {
		return err_set(err, WEFT_EINVAL, "%s: the part of rank %d; parts have %%r in the "
			       "name of their files", e->file, part);
	}
	if (e->per_rank && part < 0) {
		return err_set(err, WEFT_EINVAL, "%s: for rank %d, a whole schedule and not its "
			       "part", e->file, rank);
	}
	if (e->per_rank && part != rank) {
		return err_set(err, WEFT_EINVAL, "%s: for rank %d, the part of rank %d", e->file,
			       rank, part);
	}
	return 0;
}

int preload_entry_schedule(const struct preload_entry *e, int rank, const char *data, size_t len,
			   struct coll_sched **out, struct err *err)
{
	struct coll_sched *s = NULL;
	int rc = coll_from_bytes(data, len, &s, err);

	*out = NULL;
	if (rc) {
		return err_wrap(err, "%s", e->file);
	}
	if ((rc = compare(e, s, err)) || (rc = compare_part(e, s, rank, err))) {
		coll_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

/* ---- checking ---- */

/* What a call can be run by: proven, and with a program for rank 0. */
static int prove(const struct preload_entry *e, const struct coll_sched *s, struct err *err)
{
	struct rank_program p = { 0 };
	int rc = e->per_rank ? 0 : coll_verify(s, NULL, err);

	if (!rc) {
		rc = rank_program_make(s, 0, &p, err);
		rank_program_fini(&p);
	}
	return rc ? err_wrap(err, "%s", e->file) : 0;
}

static int check_schedule(struct preload_entry *e, const struct coll_sched *s, int ranks,
			  struct err *err)
{
	enum coll_kind kind = coll_kind_of(s);
	int rc = 0;

	if (!preload_takes(kind)) {
		return err_set(err, WEFT_EUNSUPPORTED, "%s: calls of %s are not taken", e->file,
			       coll_kind_name(kind));
	}
	if (coll_ranks(s) <= ranks && (rc = prove(e, s, err))) {
		return rc;
	}
	e->usable = coll_ranks(s) <= ranks;
	e->kind = kind;
	e->ranks = coll_ranks(s);
	e->root = coll_has_root(kind) ? coll_root(s) : 0;
	return 0;
}

int preload_entry_check(struct preload_entry *e, const char *name, int ranks, struct err *err)
{
	struct coll_sched *s = NULL;
	char *data = NULL;
	size_t len = 0;
	int rc;

	if (e->ranks > ranks) {
		return 0;
	}
	if (!(rc = read_file(e, 0, &data, &len, err)) &&
	    !(rc = preload_entry_schedule(e, 0, data, len, &s, err)) &&
	    !(rc = check_schedule(e, s, ranks, err))) {
		e->digest = digest_of(e, data, len);
	}
	if (rc) {
		err_at(err, name, e->line, e->col);
	}
	coll_free(s);
	free(data);
	return rc;
}

/* ---- parts ---- */

static uint64_t mixed(uint64_t h, int64_t value)
{
	return rng_mix(h ^ (uint64_t)value) * 3 + 1;
}

uint64_t preload_identity(const struct coll_sched *part)
{
	const struct topo *t = coll_topo(part);
	uint64_t h = mixed(0, coll_kind_of(part));

	h = mixed(h, coll_ranks(part));
	h = mixed(h, coll_chunks(part));
	h = mixed(h, coll_root(part));
	for (int i = 0; i < topo_m(t); i++) {
		h = mixed(h, topo_arc(t, i)->src);
		h = mixed(h, topo_arc(t, i)->dst);
	}
	return h;
}

static uint64_t transfer_hash(const struct coll_xfer *x)
{
	uint64_t h = mixed(x->op, x->step);

	h = mixed(h, x->arc);
	h = mixed(h, x->origin);
	h = mixed(h, x->dest);
	h = mixed(h, x->first);
	return mixed(h, x->last);
}

uint64_t preload_balance(const struct coll_sched *part, int rank)
{
	uint64_t sum = 0;
	int64_t n;
	const struct coll_xfer *x = coll_xfers(part, &n);

	for (int64_t i = 0; i < n; i++) {
		const struct topo_arc *a = topo_arc(coll_topo(part), x[i].arc);

		sum += a->src == rank ? transfer_hash(&x[i]) : 0;
		sum -= a->dst == rank ? transfer_hash(&x[i]) : 0;
	}
	return sum;
}
