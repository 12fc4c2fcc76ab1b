/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates for a frontier: sets that keep what nothing else beats, and the
 * exact figures of one, computed on its digraph.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "collective/bfb/bfb.h"
#include "collective/finder/private.h"

#define MAX_EFFORT (1 << 29)	/* some ten seconds */
#define MAX_TIES 3	/* equals kept: building them may tell them apart */

/* ---- fractions ---- */

struct bfb_ratio finder_ratio(__int128 num, __int128 den)
{
	__int128 a = num, b = den;

	while (b) {
		__int128 r = a % b;

		a = b;
		b = r;
	}
	return (struct bfb_ratio){ (int64_t)(num / a), (int64_t)(den / a) };
}

struct bfb_ratio finder_plus(struct bfb_ratio a, struct bfb_ratio b)
{
	return finder_ratio((__int128)a.num * b.den + (__int128)b.num * a.den,
			    (__int128)a.den * b.den);
}

struct bfb_ratio finder_worth(const struct coll_finder *f, const struct finder_candidate *c)
{
	switch (f->q->kind) {
	case COLL_ALLGATHER:
		return c->gather;
	case COLL_REDUCE_SCATTER:
		return c->scatter;
	default:
		return finder_plus(c->gather, c->scatter);
	}
}

/* ---- sets of candidates ---- */

/* The same for every collective that frontiers are made for. */
static bool beats_always(const struct finder_candidate *a, const struct finder_candidate *b)
{
	int gather = bfb_ratio_cmp(a->gather, b->gather);
	int scatter = bfb_ratio_cmp(a->scatter, b->scatter);

	return a->steps <= b->steps && gather <= 0 && scatter <= 0 &&
	       (a->steps < b->steps || gather || scatter);
}

bool finder_beats(const struct coll_finder *f, const struct finder_candidate *a,
		  const struct finder_candidate *b)
{
	int c;

	if (f->all_kinds) {
		return beats_always(a, b);
	}
	c = bfb_ratio_cmp(finder_worth(f, a), finder_worth(f, b));
	return a->steps <= b->steps && c <= 0 && (a->steps < b->steps || c);
}

void finder_keep(struct coll_finder *f, struct finder_candidates *set,
		 const struct finder_candidate *c)
{
	size_t kept = 0, ties = 0;

	for (size_t i = 0; i < set->list.n; i++) {
		const struct finder_candidate *o = &set->list.v[i];

		if (finder_beats(f, o, c) || strcmp(o->expr, c->expr) == 0) {
			return;
		}
		ties += o->steps == c->steps && !finder_beats(f, c, o);
	}
	if (ties >= MAX_TIES) {
		return;
	}
	for (size_t i = 0; i < set->list.n; i++) {
		const struct finder_candidate *o = &set->list.v[i];

		if (!finder_beats(f, c, o) || (o->exact && !c->exact)) {
			set->list.v[kept++] = *o;
		}
	}
	set->list.n = kept;
	vec_push(&set->list, *c);
}

bool finder_name(struct finder_candidate *c, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(c->expr, sizeof(c->expr), fmt, ap);
	va_end(ap);
	return len < FINDER_MAX_EXPR;
}

struct finder_candidate finder_at_bound(int64_t n, int steps)
{
	struct bfb_ratio bound = { n - 1, n };

	return (struct finder_candidate){ .steps = steps, .gather = bound, .scatter = bound,
					  .exact = true };
}

void finder_use_ports(struct finder_candidate *c, int ports, int all)
{
	c->ports = ports;
	c->gather = finder_ratio((__int128)c->gather.num * all, (__int128)c->gather.den * ports);
	c->scatter = finder_ratio((__int128)c->scatter.num * all,
				  (__int128)c->scatter.den * ports);
}

/* ---- figures computed on the digraph ---- */

static int phase(enum coll_kind kind, const struct topo *t, int *steps,
		 struct bfb_ratio *load, struct err *err)
{
	mpq_t factor;
	int rc;

	mpq_init(factor);
	rc = coll_bfb_factor(kind, t, steps, factor, err);
	if (!rc && (!mpz_fits_slong_p(mpq_numref(factor)) ||
		    !mpz_fits_slong_p(mpq_denref(factor)))) {
		rc = err_set(err, WEFT_ELIMIT, "T_B has too many digits");
	}
	if (!rc) {
		*load = (struct bfb_ratio){ mpz_get_si(mpq_numref(factor)),
					mpz_get_si(mpq_denref(factor)) };
	}
	mpq_clear(factor);
	return rc;
}

/* Takes the figures of c->expr from before. */
static bool recall(const struct coll_finder *f, struct finder_candidate *c)
{
	for (size_t i = 0; i < f->computed.n; i++) {
		if (strcmp(f->computed.v[i].expr, c->expr) == 0) {
			*c = f->computed.v[i];
			return true;
		}
	}
	return false;
}

int64_t finder_effort(const struct topo *t)
{
	struct topo_group *g = NULL;
	int64_t orbits = topo_n(t);

	if (topo_group_find(t, &g, NULL) == 0 && g) {
		orbits = topo_group_orbits(g);
	}
	topo_group_free(g);
	return orbits * topo_m(t);
}

int finder_compute(struct coll_finder *f, struct finder_candidate *c)
{
	struct topo *t = NULL;
	int rc;

	if (recall(f, c)) {
		return 0;
	}
	rc = topo_parse(c->expr, &t, NULL, f->err);
	if (!rc && finder_effort(t) > MAX_EFFORT) {
		rc = err_set(f->err, WEFT_ELIMIT, "%s is too large to be computed", c->expr);
	}
	if (!rc) {
		rc = phase(COLL_ALLGATHER, t, &c->steps, &c->gather, f->err);
	}
	c->scatter = c->gather;
	if (!rc && !topo_is_symmetric(t)) {
		rc = phase(COLL_REDUCE_SCATTER, t, &c->steps, &c->scatter, f->err);
	}
	c->exact = true;
	topo_free(t);
	if (!rc) {
		vec_push(&f->computed, *c);
	}
	return rc;
}

