/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds: in which order each collective goes through the levels of the dimensions, and when.
 *
 * Section 4: collective c begins with dimension c and takes them in turn, one level at a time;
 * those that have none left are passed over (section 4.2). Folds come first. Collectives go on by
 * themselves, or wait for each other after every round (section 5.2, of buckets on rectangles).
 */
#include <stdlib.h>
#include <string.h>

#include "collective/torus/private.h"

/* Of rounds of all collectives that may wait for each other. */
#define MAX_SLOTS ((TORUS_MAX_LEVELS + 1) * COLL_MAX_DIGITS)

static bool has_fold(const struct torus_line *l)
{
	return l->n_levels > 0 && l->level[0].is_fold;
}

/* Beyond these no dimension has a level. */
static int n_slots(const struct torus_work *w)
{
	return (TORUS_MAX_LEVELS + 1) * w->shape->n_dims;
}

static bool passes_on(const struct torus_work *w)
{
	bool any = false;

	for (int e = 0; e < w->shape->n_dims; e++) {
		any |= w->line[0][e]->passes_on;
	}
	return any;
}

/* What comes earlier is less: dimensions whose levels pass on sums are the last, then long before
 * short ones, so that all collectives have their long ways at the same time. */
static int place_of(const struct torus_work *w, int e)
{
	return w->line[0][e]->passes_on * 2 * TORUS_MAX_SIZE - w->shape->size[e];
}

/* Sums are passed on as they were sent last, so that a dimension is done before the next begins.
 * Collectives differ in the order of those of one size. */
static int nth_dimension(const struct torus_work *w, int begin, int n)
{
	int dims = w->shape->n_dims, e = -1;

	for (int place = -1; place != n;) {
		int before = 0, alike = 0, earlier = 0;

		e++;
		for (int i = 0; i < dims; i++) {
			before += place_of(w, i) < place_of(w, e);
			alike += place_of(w, i) == place_of(w, e);
			earlier += i < e && place_of(w, i) == place_of(w, e);
		}
		place = before + (earlier + alike - begin % alike) % alike;
	}
	return e;
}

/* The round in a slot of the collective that begins with this dimension; false: none. */
static bool find_round(const struct torus_work *w, const struct torus_collective *c, int begin,
		       int slot, struct torus_round *r)
{
	int dims = w->shape->n_dims, e = (begin + slot) % dims, level = slot / dims - 1;
	const struct torus_line *l;

	if (slot >= dims && passes_on(w)) {
		e = nth_dimension(w, begin, (slot - dims) / TORUS_MAX_LEVELS);
		level = (slot - dims) % TORUS_MAX_LEVELS;
	}
	l = c->line[e];

	if (slot < dims) {
		*r = (struct torus_round){ .dimension = e, .steps = 1 };
		return has_fold(l);
	}
	level += has_fold(l);
	if (level >= l->n_levels) {
		return false;
	}
	*r = (struct torus_round){ .dimension = e, .level = level,
				   .steps = l->level[level].steps };
	return true;
}

/* How long each slot is where collectives wait for each other. */
static void measure_slots(const struct torus_work *w, int *length)
{
	memset(length, 0, MAX_SLOTS * sizeof(*length));
	for (int c = 0; c < w->n_collectives; c++) {
		for (int slot = 0; slot < n_slots(w); slot++) {
			struct torus_round r;

			if (find_round(w, &w->collective[c], c % w->shape->n_dims, slot, &r) &&
			    r.steps > length[slot]) {
				length[slot] = r.steps;
			}
		}
	}
}

/* Times of the rounds; length NULL: it waits for none. */
static void set_rounds(const struct torus_work *w, int begin, const int *length,
		       struct torus_collective *c)
{
	int now = 0, levels = 0, given = w->spec->rounds;

	for (int slot = 0; slot < n_slots(w); slot++) {
		struct torus_round *r = &c->round[c->n_rounds];
		bool is_fold = slot < w->shape->n_dims;

		if (find_round(w, c, begin, slot, r)) {
			r->begin = now;
			r->exchange = !is_fold && given >= 0 && levels >= given;
			levels += !is_fold;
			c->reduced = r->exchange ? c->reduced
				: now + (length ? length[slot] : r->steps);
			c->n_rounds++;
			now += length ? 0 : r->steps;
		}
		now += length ? length[slot] : 0;
	}
	c->steps = now;
}

static void make_collective(struct torus_work *w, int number, const int *length)
{
	struct torus_collective *c = &w->collective[number];

	arrays_add(&w->arrays, c->round, MAX_SLOTS + 1);
	for (int e = 0; e < w->shape->n_dims; e++) {
		arrays_add(&w->arrays, c->when[e], c->line[e]->steps);
	}
	set_rounds(w, number % w->shape->n_dims, length, c);
	for (int i = 0; i < c->n_rounds; i++) {
		const struct torus_round *r = &c->round[i];
		int first = c->line[r->dimension]->level[r->level].first;

		for (int k = 0; k < r->steps; k++) {
			c->when[r->dimension][first + k] = r->exchange ? -1 : r->begin + k;
		}
	}
}

/* ---- what there is ---- */

static int check_kind(const struct torus_work *w, enum coll_kind kind, struct err *err)
{
	int even = 0;	/* levels that do not */

	if (kind == COLL_ALLTOALL || kind == COLL_GATHER || kind == COLL_SCATTER) {
		return err_set(err, WEFT_EUNSUPPORTED, "%s by this algorithm: not supported",
			       coll_kind_name(kind));
	}
	for (int e = 0; e < w->shape->n_dims; e++) {
		even += w->line[0][e]->passes_on ? 0 : w->line[0][e]->n_levels;
	}
	if (passes_on(w) && (w->spec->rounds < 0 || w->spec->rounds > even)) {
		return err_set(err, WEFT_EUNSUPPORTED, "a reduce-scatter by levels that pass on "
			       "sums beside others: not supported, only exchanges (--rounds up to "
			       "%d)", even);
	}
	if (kind == COLL_ALLREDUCE) {
		return 0;
	}
	if (w->spec->rounds >= 0) {
		return err_set(err, WEFT_EUNSUPPORTED, "%s with exchanges: not supported, only "
			       "all-reduces have them", coll_kind_name(kind));
	}
	for (int e = 0; e < w->shape->n_dims; e++) {
		if (has_fold(w->line[0][e])) {
			return err_set(err, WEFT_EUNSUPPORTED, "%s by recursive doubling on a "
				       "dimension of %d: not supported, it is no power of two",
				       coll_kind_name(kind), w->shape->size[e]);
		}
	}
	return 0;
}

static bool is_same(const struct torus_radices *a, const struct torus_radices *b)
{
	bool same = a->n == b->n;

	for (int i = 0; same && i < a->n; i++) {
		same = a->level[i].radix == b->level[i].radix &&
		       a->level[i].chain == b->level[i].chain &&
		       a->level[i].more == b->level[i].more;
	}
	return same;
}

/* The line that the shape keeps, made again unless it is the one. */
static int keep_line(struct torus_work *w, int mirrored, int e, int rows, struct err *err)
{
	struct torus_line **kept = &w->shape->kept[mirrored][e];
	struct torus_radices *of = &w->shape->kept_radices[mirrored][e];
	int rc = 0;

	if (!*kept || !is_same(of, &w->spec->radices[e])) {
		torus_line_free(*kept);
		rc = torus_line_make(w->spec, e, w->shape->size[e], mirrored, rows, kept, err);
		*of = w->spec->radices[e];
	}
	w->line[mirrored][e] = *kept;
	return rc;
}

static int make_lines(struct torus_work *w, const int *rows, struct err *err)
{
	bool keeps = rows && w->spec->lines == TORUS_LEVELS;
	int rc = 0;

	for (int mirrored = 0; mirrored < (w->spec->one_port ? 1 : 2); mirrored++) {
		for (int e = 0; e < w->shape->n_dims && rc == 0; e++) {
			rc = keeps ? keep_line(w, mirrored, e, rows[e], err)
				   : torus_line_make(w->spec, e, w->shape->size[e], mirrored,
						     rows ? rows[e] : 0, &w->line[mirrored][e],
						     err);
		}
	}
	return rc;
}

/* Of uneven levels the last can be one, where it is direct and its stride does not divide the
 * size. */
static int check_exchanges(const struct torus_collective *c, struct err *err)
{
	for (int i = 0; i < c->n_rounds; i++) {
		const struct torus_line *l = c->line[c->round[i].dimension];

		if (c->round[i].exchange && l->is_uneven &&
		    (c->round[i].level < l->n_levels - 1 || l->sends.n == 0)) {
			return err_set(err, WEFT_EUNSUPPORTED, "exchanges on a dimension of %d "
				       "with levels that do not multiply to that: not supported, "
				       "but for the last, if it is no chain", l->d);
		}
	}
	return 0;
}

int torus_work_begin(struct torus_work *w, struct torus_shape *s, const struct torus_spec *spec,
		     enum coll_kind kind, const int *rows, struct err *err)
{
	int length[MAX_SLOTS], rc = 0;

	*w = (struct torus_work){ .shape = s, .spec = spec,
				  .n_collectives = spec->one_port ? 1 : 2 * s->n_dims };
	arrays_add(&w->arrays, w->collective, w->n_collectives);
	if ((rc = make_lines(w, rows, err)) || (rc = check_kind(w, kind, err))) {
		return rc;
	}
	for (int c = 0; c < w->n_collectives; c++) {
		for (int e = 0; e < s->n_dims; e++) {
			w->collective[c].line[e] = w->line[c >= s->n_dims][e];
		}
	}
	measure_slots(w, length);
	for (int c = 0; c < w->n_collectives && rc == 0; c++) {
		make_collective(w, c, spec->in_step ? length : NULL);
		rc = check_exchanges(&w->collective[c], err);
	}
	return rc;
}

void torus_work_turns(const struct torus_work *w, int dimension, int16_t *turn)
{
	int16_t n = 0;

	memset(turn, 0, (size_t)w->shape->size[dimension] * sizeof(*turn));
	for (int m = 0; m < 2 && w->line[m][dimension]; m++) {
		const struct torus_line *l = w->line[m][dimension];

		for (int i = 0; i < l->first[l->steps]; i++) {
			turn[l->partners.v[i].to] = turn[l->d - l->partners.v[i].to] = 1;
		}
		for (size_t i = 0; i < l->sends.n; i++) {
			turn[l->sends.v[i].to] = turn[l->d - l->sends.v[i].to] = 1;
		}
	}
	for (int o = 1; o < w->shape->size[dimension]; o++) {
		turn[o] = turn[o] ? n++ : 0;
	}
}

void torus_work_end(struct torus_work *w)
{
	for (int i = 0; i < 2 * COLL_MAX_DIGITS; i++) {
		struct torus_line *l = w->line[i / COLL_MAX_DIGITS][i % COLL_MAX_DIGITS];

		if (l != w->shape->kept[i / COLL_MAX_DIGITS][i % COLL_MAX_DIGITS]) {
			torus_line_free(l);
		}
	}
	arrays_fini(&w->arrays);
}
