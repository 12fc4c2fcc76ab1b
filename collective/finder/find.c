/*
 * Searching digraphs for n nodes of d ports.
 *
 * Bottom up by table 3 of the direct-connect topologies paper: digraphs with
 * bandwidth-optimal schedules and what stays so (Cartesian products, degree
 * expansion, parallel arcs), circulants, line graphs of smaller ones,
 * generalized Kautz graphs. Theorems give the figures, so only what may end on the frontier is
 * ever built.
 */
#include "collective/bfb/bfb.h"
#include "collective/finder/finder.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/balance.h"
#include "collective/finder/private.h"
#include "collective/schedule/schedule.h"
#include "lib/base/buf.h"
#include "lib/base/map.h"
#include "lib/base/rat.h"

#define MAX_EXPR 512
#define MAX_TIES 3	/* equals kept: building them may tell them apart */
#define MAX_NODES 8192
/* What a search for a Cayley graph may take, whatever sets are asked for: neighbours looked
 * up. */
#define CAYLEY_VISITS 150000000

/* A digraph that may serve. Loads are those of one all-gather and one
 * reduce-scatter, in M/B. */
struct finder_candidate {
	char expr[MAX_EXPR];
	int steps;		/* of one phase */
	struct bfb_ratio gather, scatter;
	bool exact;
};

struct finder_candidates {
	VEC(struct finder_candidate) list;
};

struct coll_finder {
	const struct coll_query *q;
	struct u64map known;	/* n, d, bidirectional -> index into optimal */
	VEC(struct finder_candidates) optimal;
	VEC(struct finder_candidate) computed;	/* those of the nodes and collective
					 * asked for last */
	int computed_n;
	enum coll_kind computed_kind;
	struct err *err;
};

/* ---- fractions ---- */

static struct bfb_ratio reduced(__int128 num, __int128 den)
{
	__int128 a = num, b = den;

	while (b) {
		__int128 r = a % b;

		a = b;
		b = r;
	}
	return (struct bfb_ratio){ (int64_t)(num / a), (int64_t)(den / a) };
}

static struct bfb_ratio plus(struct bfb_ratio a, struct bfb_ratio b)
{
	return reduced((__int128)a.num * b.den + (__int128)b.num * a.den, (__int128)a.den * b.den);
}

static struct bfb_ratio bound_of(int64_t n)
{
	return (struct bfb_ratio){ n - 1, n };
}

/* T_B of what is asked for. */
static struct bfb_ratio worth(const struct coll_finder *f, const struct finder_candidate *c)
{
	switch (f->q->kind) {
	case COLL_ALLGATHER:
		return c->gather;
	case COLL_REDUCE_SCATTER:
		return c->scatter;
	default:
		return plus(c->gather, c->scatter);
	}
}

/* ---- sets of candidates ---- */

/* a makes b superfluous; equals do not. */
static bool beats(const struct coll_finder *f, const struct finder_candidate *a,
		  const struct finder_candidate *b)
{
	int c = bfb_ratio_cmp(worth(f, a), worth(f, b));

	return a->steps <= b->steps && c <= 0 && (a->steps < b->steps || c);
}

/* Adds c unless beaten or one of too many equals; drops what it beats, but nothing exact for
 * what is only promised. */
static int keep(struct coll_finder *f, struct finder_candidates *set, const struct finder_candidate *c)
{
	size_t kept = 0, ties = 0;

	for (size_t i = 0; i < set->list.n; i++) {
		const struct finder_candidate *o = &set->list.v[i];

		if (beats(f, o, c) || strcmp(o->expr, c->expr) == 0) {
			return 0;
		}
		ties += o->steps == c->steps && !beats(f, c, o);
	}
	if (ties >= MAX_TIES) {
		return 0;
	}
	for (size_t i = 0; i < set->list.n; i++) {
		const struct finder_candidate *o = &set->list.v[i];

		if (!beats(f, c, o) || (o->exact && !c->exact)) {
			set->list.v[kept++] = *o;
		}
	}
	set->list.n = kept;
	return vec_push(&set->list, *c) ? err_nomem(f->err) : 0;
}

/* Writes an expression; one that is too long is no candidate (false). */
static bool name(struct finder_candidate *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static bool name(struct finder_candidate *c, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(c->expr, sizeof(c->expr), fmt, ap);
	va_end(ap);
	return len < MAX_EXPR;
}

static struct finder_candidate optimal(int64_t n, int steps)
{
	struct finder_candidate c = { .steps = steps, .gather = bound_of(n),
			  .scatter = bound_of(n), .exact = true };

	return c;
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

/* Fills the figures of c->expr by building it. A digraph that equals its own
 * reverse, as far as is known without search, is computed once. */
static int compute(struct coll_finder *f, struct finder_candidate *c)
{
	struct topo *t = NULL;
	int rc;

	if (recall(f, c)) {
		return 0;
	}
	rc = topo_parse(c->expr, &t, NULL, f->err);

	if (!rc) {
		rc = phase(COLL_ALLGATHER, t, &c->steps, &c->gather, f->err);
	}
	c->scatter = c->gather;
	if (!rc && f->q->kind != COLL_ALLGATHER && !topo_is_symmetric(t)) {
		rc = phase(COLL_REDUCE_SCATTER, t, &c->steps, &c->scatter, f->err);
	}
	c->exact = true;
	topo_free(t);
	if (!rc && vec_push(&f->computed, *c)) {
		rc = err_nomem(f->err);
	}
	return rc;
}

/* ---- bandwidth-optimal digraphs ---- */

/* Small ones that no formula makes: distance-regular graphs (theorem 18) and
 * digraphs found by search. */
static const struct {
	const char *expr;
	int16_t n, d, steps;
	bool directed;
} special[] = {
	{ "Diamond", 8, 2, 3, true },
	{ "TwistedHypercube(3)", 8, 3, 2, false },
	{ "Johnson(4,2)", 6, 4, 2, false },
	{ "Paley(9)", 9, 4, 2, false },
	{ "Crown(5)", 10, 4, 3, false },
	{ "Dist(PG(2),3)", 14, 4, 3, false },
	{ "UL(Odd(3))", 15, 4, 3, false },
	{ "UL(PG(2))", 21, 4, 3, false },
	{ "PG(3)", 26, 4, 3, false },
	{ "AG(4)", 32, 4, 4, false },
	{ "Odd(4)", 35, 4, 3, false },
	{ "UL(GQ(2))", 45, 4, 4, false },
	{ "GQ(3)", 80, 4, 4, false },
	{ "UL(GH(2))", 189, 4, 6, false },
	{ "GH(3)", 728, 4, 6, false },
	{ "Odd(3)", 10, 3, 2, false },
	{ "PG(2)", 14, 3, 3, false },
	{ "GQ(2)", 30, 3, 4, false },
	{ "GH(2)", 126, 3, 6, false },
	{ "AG(8)", 128, 8, 4, false },
	{ "PG(7)", 114, 8, 3, false },
	{ "GQ(7)", 800, 8, 4, false },
	{ "Paley(17)", 17, 8, 2, false },
	{ "AG(16)", 512, 16, 4, false },
	{ "Odd(8)", 6435, 8, 7, false },
	{ "Johnson(8,4)", 70, 16, 4, false },
};

static int add_special(struct coll_finder *f, struct finder_candidates *set, int n, int d,
		       bool both)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]) && !rc; i++) {
		struct finder_candidate c = optimal(n, special[i].steps);

		if (special[i].n == n && special[i].d == d && !(both && special[i].directed)) {
			name(&c, "%s", special[i].expr);
			rc = keep(f, set, &c);
		}
	}
	return rc;
}

/* Theorem 22: C(n,{m,m+1}) has the least diameter of all with two offsets,
 * m, and is bandwidth-optimal. */
static int add_circulant(struct coll_finder *f, struct finder_candidates *set, int n)
{
	struct finder_candidate c;
	int m = 1;

	while (2 * m * m + 2 * m + 1 < n) {
		m++;
	}
	c = optimal(n, m);
	name(&c, "C(%d,{%d,%d})", n, m, m + 1);
	return keep(f, set, &c);
}

static int add_bases(struct coll_finder *f, struct finder_candidates *set, int n, int d, bool both)
{
	struct finder_candidate c = optimal(n, 1);
	int rc = 0;

	if (d == n - 1 && name(&c, "K(%d)", n)) {
		rc = keep(f, set, &c);
	}
	c = optimal(n, 2);
	if (!rc && n == 2 * d && name(&c, "K(%d,%d)", d, d)) {
		rc = keep(f, set, &c);
	}
	c = optimal(n, n / 2);
	if (!rc && d == 2 && n > 2 && name(&c, "Ring(%d)", n)) {
		rc = keep(f, set, &c);
	}
	c = optimal(n, n - 1);
	if (!rc && d == 1 && !both && name(&c, "UniRing(1,%d)", n)) {
		rc = keep(f, set, &c);
	}
	if (!rc && d == 4 && n > 6) {
		rc = add_circulant(f, set, n);
	}
	if (rc) {
		return rc;
	}
	return add_special(f, set, n, d, both);
}

static int optimal_set(struct coll_finder *f, int n, int d, bool both, size_t *index);

/* Parallel arcs: every load and the bandwidth of a node grow alike. */
static int add_multiples(struct coll_finder *f, struct finder_candidates *set, int n, int d,
			 bool both)
{
	int rc = 0;

	for (int k = 2; k <= d && !rc; k++) {
		size_t from;

		if (d % k) {
			continue;
		}
		rc = optimal_set(f, n, d / k, both, &from);
		for (size_t i = 0; !rc && i < f->optimal.v[from].list.n; i++) {
			struct finder_candidate c = f->optimal.v[from].list.v[i];
			struct finder_candidate m = c;

			if (name(&m, "Multi(%s,%d)", c.expr, k)) {
				rc = keep(f, set, &m);
			}
		}
	}
	return rc;
}

/* Theorem 11 and corollary 11.1. The step it adds is often not needed. */
static int add_copies(struct coll_finder *f, struct finder_candidates *set, int n, int d, bool both)
{
	int rc = 0;

	for (int k = 2; k <= d && !rc; k++) {
		size_t from;

		if (d % k || n % k || n / k < 2) {
			continue;
		}
		rc = optimal_set(f, n / k, d / k, both, &from);
		for (size_t i = 0; !rc && i < f->optimal.v[from].list.n; i++) {
			struct finder_candidate c = optimal(n, f->optimal.v[from].list.v[i]
							   .steps + 1);

			c.exact = false;
			if (name(&c, "Deg(%s,%d)", f->optimal.v[from].list.v[i].expr, k)) {
				rc = keep(f, set, &c);
			}
		}
	}
	return rc;
}

static bool join(struct finder_candidate *c, const char *a, const char *b)
{
	return strcmp(a, b) == 0 ? name(c, "Pow(%s,2)", a)
				 : name(c, "Prod(%s,%s)", a, b);
}

/* Theorem 13 for simple digraphs with bandwidth-optimal schedules. */
static int add_products(struct coll_finder *f, struct finder_candidates *set, int n, int d,
			bool both)
{
	int rc = 0;

	for (int a = 2; a <= n / a && !rc; a++) {
		for (int e = 1; n % a == 0 && e < d && !rc; e++) {
			size_t x, y;

			rc = optimal_set(f, a, e, both, &x);
			if (!rc) {
				rc = optimal_set(f, n / a, d - e, both, &y);
			}
			if (rc || f->optimal.v[x].list.n == 0) {
				continue;
			}
			for (size_t i = 0; i < f->optimal.v[y].list.n && !rc; i++) {
				const struct finder_candidate *p = f->optimal.v[x].list.v;
				const struct finder_candidate *q = &f->optimal.v[y].list.v[i];
				struct finder_candidate c = optimal(n, p->steps + q->steps);

				c.exact = p->exact && q->exact;
				if (!strstr(p->expr, "Multi") && !strstr(q->expr, "Multi") &&
				    join(&c, p->expr, q->expr)) {
					rc = keep(f, set, &c);
				}
			}
		}
	}
	return rc;
}

/* The fastest bandwidth-optimal digraphs of n nodes and d ports, made once
 * each. *index may be looked up in f->optimal until the next call. */
static int optimal_set(struct coll_finder *f, int n, int d, bool both, size_t *index)
{
	uint64_t key = (uint64_t)n << 32 | (uint64_t)d << 1 | both, value;
	struct finder_candidates set = { 0 };
	int rc;

	if (u64map_get(&f->known, key, &value)) {
		*index = (size_t)value;
		return 0;
	}
	rc = add_bases(f, &set, n, d, both);
	if (!rc) {
		rc = add_multiples(f, &set, n, d, both);
	}
	if (!rc) {
		rc = add_copies(f, &set, n, d, both);
	}
	if (!rc) {
		rc = add_products(f, &set, n, d, both);
	}
	if (!rc && (u64map_set(&f->known, key, f->optimal.n) || vec_push(&f->optimal, set))) {
		rc = err_nomem(f->err);
	}
	if (rc) {
		vec_fini(&set.list);
		return rc;
	}
	*index = f->optimal.n - 1;
	return 0;
}

/* ---- everything of a size ---- */

/* DiC(n,{1,2}) or C(n,{1,2}). */
static bool name_circulant(struct finder_candidate *k, const struct finder_circulant *c)
{
	size_t len;

	if (!name(k, "%sC(%d,{", c->both ? "" : "Di", c->n)) {
		return false;
	}
	for (int i = 0; i < c->n_offsets; i++) {
		len = strlen(k->expr);
		snprintf(k->expr + len, sizeof(k->expr) - len, "%d%s",
			 c->offset[i], i + 1 < c->n_offsets ? "," : "})");
	}
	return strlen(k->expr) < MAX_EXPR - 1;
}

/* The best of a search, unless something else takes no more steps at the
 * bandwidth bound. */
static int add_found(struct coll_finder *f, struct finder_candidates *set, int n, int d, bool both)
{
	struct finder_circulant found[FINDER_CIRCULANT_KEPT];
	int rc, count = finder_circulant_search(n, d, both, found, &rc);

	if (rc) {
		return err_nomem(f->err);
	}
	for (int i = 0; i < count && !rc; i++) {
		struct finder_candidate c = optimal(n, found[i].steps);
		bool beaten = false;

		for (size_t k = 0; k < set->list.n; k++) {
			beaten |= beats(f, &set->list.v[k], &c);
		}
		if (!beaten && name_circulant(&c, &found[i])) {
			rc = finder_circulant_factor(&found[i], &c.gather, f->err);
			c.scatter = c.gather;
			if (!rc) {
				rc = keep(f, set, &c);
			}
		}
	}
	return rc;
}

/* The least k with so many nodes within k hops; definition 11. */
static int moore_steps(int64_t n, int64_t d, bool both)
{
	int64_t reached = 1, level = d;
	int k = 0;

	while (reached < n) {
		reached += level;
		level *= both ? d - 1 : d;
		k++;
		if (level == 0 && reached < n) {
			return 1;	/* nothing reaches them all */
		}
		if (level > n) {
			level = n;
		}
	}
	return k;
}

/* The best Cayley graph of a search. Its figures are proven like those of bounds. */
static int add_cayley(struct coll_finder *f, struct finder_candidates *set, int n, int d,
		      enum finder_cayley_aim aim)
{
	bool both = aim == FINDER_CAYLEY_BOTH;
	int64_t visits = (int64_t)(f->q->sets ? f->q->sets : COLL_FINDER_SETS) * n * d;
	struct finder_cayley found = { .steps = INT_MAX };
	struct finder_candidate c;
	struct buf text = { 0 };
	int rc;

	visits = visits < CAYLEY_VISITS ? visits : CAYLEY_VISITS;
	/* Lookups take longer where tables do not fit the caches. */
	visits /= n > 2000 ? 3 : 1;
	rc = finder_cayley_search(n, d, aim, moore_steps(n, d, both), 0, visits, &found,
				  f->err);
	if (rc || found.steps == INT_MAX) {
		return rc;
	}
	c = optimal(n, found.steps);
	c.exact = false;
	topo_cayley_write(&found.g, both, found.letter, found.n_letters, &text);
	if (text.failed) {
		rc = err_nomem(f->err);
	} else if (name(&c, "%s", buf_cstr(&text))) {
		rc = keep(f, set, &c);
	}
	buf_fini(&text);
	return rc;
}

static int add_optimal(struct coll_finder *f, struct finder_candidates *set, int n, int d,
		       bool both)
{
	size_t from;
	int rc = optimal_set(f, n, d, both, &from);

	for (size_t i = 0; !rc && i < f->optimal.v[from].list.n; i++) {
		rc = keep(f, set, &f->optimal.v[from].list.v[i]);
	}
	/* Of two offsets theorem 22 knows the best. */
	if (!rc && d > 2 && d != 4 && n > d + 1) {
		rc = add_found(f, set, n, d, true);
	}
	if (!rc && d > 1 && !both && n > d + 1) {
		rc = add_found(f, set, n, d, false);
	}
	if (!rc) {
		rc = add_cayley(f, set, n, d, both ? FINDER_CAYLEY_BOTH : FINDER_CAYLEY_ONE_WAY);
	}
	return rc;
}

static int add_kautz(struct coll_finder *f, struct finder_candidates *set, int n, int d)
{
	struct finder_candidate c = { .exact = true };
	int rc;

	/* Of degree one they are not connected. */
	if (d < 2 || n < d + 1 || !name(&c, "GenKautz(%d,%d)", d, n)) {
		return 0;
	}
	rc = compute(f, &c);
	if (rc) {
		return rc;
	}
	return keep(f, set, &c);
}

/* Corollary 10.1 (corollary 1.2 as a bound): `times` line graphs of what has
 * `base` nodes. */
static int add_lines(struct coll_finder *f, struct finder_candidates *set, int base, int d,
		     int times)
{
	struct finder_candidates from = { 0 };
	struct bfb_ratio more = { 0, 1 };
	int64_t n = base;
	int rc = add_optimal(f, &from, base, d, false);

	if (!rc) {
		rc = add_cayley(f, &from, base, d, FINDER_CAYLEY_LINES);
	}
	/* The line graph of a generalized Kautz graph is the next larger. */
	for (int i = 0; i < times; i++, n *= d) {
		more = plus(more, (struct bfb_ratio){ 1, n });
	}
	for (size_t i = 0; i < from.list.n && !rc; i++) {
		struct finder_candidate c = from.list.v[i], made = c;

		made.steps += times;
		made.gather = plus(c.gather, more);
		made.scatter = plus(c.scatter, more);
		made.exact = false;
		if (times == 1 ? name(&made, "L(%s)", c.expr)
			       : name(&made, "L%d(%s)", times, c.expr)) {
			rc = keep(f, set, &made);
		}
	}
	vec_fini(&from.list);
	return rc;
}

static int unidirectional(struct coll_finder *f, struct finder_candidates *set, int n, int d)
{
	int rc = add_optimal(f, set, n, d, false);
	int64_t base = n;

	if (!rc) {
		rc = add_kautz(f, set, n, d);
	}
	for (int k = 1; d > 1 && base % d == 0 && base / d >= 2 && !rc; k++) {
		base /= d;
		rc = add_lines(f, set, (int)base, d, k);
	}
	return rc;
}

/* Appendix F: a one-way digraph and its transpose. */
static int bidirectional(struct coll_finder *f, struct finder_candidates *set, int n, int d)
{
	struct finder_candidates half = { 0 };
	int rc = add_optimal(f, set, n, d, true);

	if (!rc && d % 2 == 0) {
		rc = unidirectional(f, &half, n, d / 2);
	}
	for (size_t i = 0; i < half.list.n && !rc; i++) {
		struct finder_candidate c = half.list.v[i];

		c.exact = false;
		c.gather = plus(half.list.v[i].gather, half.list.v[i].scatter);
		c.gather = reduced(c.gather.num, (__int128)c.gather.den * 2);
		c.scatter = c.gather;
		if (name(&c, "Bi(%s)", half.list.v[i].expr)) {
			rc = keep(f, set, &c);
		}
	}
	vec_fini(&half.list);
	return rc;
}

/* Replaces upper bounds by what the digraphs have. Those that lose their place
 * are dropped. */
static int prove_all(struct coll_finder *f, struct finder_candidates *set)
{
	struct finder_candidates proven = { 0 };
	int rc = 0;

	for (size_t i = 0; i < set->list.n && !rc; i++) {
		struct finder_candidate c = set->list.v[i];

		rc = c.exact ? 0 : compute(f, &c);
		if (!rc) {
			rc = keep(f, &proven, &c);
		}
	}
	vec_fini(&set->list);
	*set = proven;
	return rc;
}

/* ---- results ---- */

static int compare_points(const void *a, const void *b)
{
	const struct coll_point *x = a, *y = b;

	if (x->steps != y->steps) {
		return x->steps - y->steps;
	}
	if (strlen(x->expr) != strlen(y->expr)) {
		return strlen(x->expr) < strlen(y->expr) ? -1 : 1;
	}
	return strcmp(x->expr, y->expr);
}

/* Of equals the shortest expression stays. */
static void drop_equals(struct coll_frontier *out)
{
	size_t kept = 0;

	for (size_t i = 0; i < out->points.n; i++) {
		struct coll_point *p = &out->points.v[i];

		if (kept > 0 && out->points.v[kept - 1].steps == p->steps) {
			free(p->expr);
		} else {
			out->points.v[kept++] = *p;
		}
	}
	out->points.n = kept;
}

static int publish(const struct coll_finder *f, const struct finder_candidates *set,
		   struct coll_frontier *out)
{
	int phases = f->q->kind == COLL_ALLREDUCE ? 2 : 1;
	struct bfb_ratio bound = reduced((__int128)phases * (f->q->n - 1), f->q->n);

	out->steps_bound = phases * moore_steps(f->q->n, f->q->degree, f->q->bidirectional);
	out->bound_num = bound.num;
	out->bound_den = bound.den;
	out->groups = finder_groups_of(f->q->n);
	for (size_t i = 0; i < set->list.n; i++) {
		const struct finder_candidate *c = &set->list.v[i];
		struct bfb_ratio load = worth(f, c);
		struct coll_point p = { strdup(c->expr), phases * c->steps,
					load.num, load.den, c->exact };

		if (!p.expr || vec_push(&out->points, p)) {
			free(p.expr);
			return err_nomem(f->err);
		}
	}
	if (out->points.n > 0) {
		qsort(out->points.v, out->points.n, sizeof(*out->points.v), compare_points);
	}
	drop_equals(out);
	return 0;
}

static int check_query(const struct coll_query *q, struct err *err)
{
	if (q->n < 2 || q->n > MAX_NODES) {
		return err_set(err, WEFT_EINVAL, "%d nodes: expected 2 to %d", q->n, MAX_NODES);
	}
	if (q->degree < 1 || q->degree >= MAX_NODES) {
		return err_set(err, WEFT_EINVAL, "degree %d: expected 1 to %d",
			       q->degree, MAX_NODES - 1);
	}
	if (q->kind == COLL_ALLTOALL || coll_has_root(q->kind)) {
		return err_set(err, WEFT_EUNSUPPORTED, "topologies for %s are "
			       "not searched: only for allgather, "
			       "reduce-scatter and allreduce",
			       coll_kind_name(q->kind));
	}
	return 0;
}

int coll_finder_new(struct coll_finder **out, struct err *err)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : err_nomem(err);
}

void coll_finder_free(struct coll_finder *f)
{
	if (!f) {
		return;
	}
	for (size_t i = 0; i < f->optimal.n; i++) {
		vec_fini(&f->optimal.v[i].list);
	}
	vec_fini(&f->optimal);
	vec_fini(&f->computed);
	u64map_fini(&f->known);
	free(f);
}

static void begin(struct coll_finder *f, const struct coll_query *q, struct err *err)
{
	if (f->computed_n != q->n || f->computed_kind != q->kind) {
		f->computed.n = 0;
		f->computed_n = q->n;
		f->computed_kind = q->kind;
	}
	f->q = q;
	f->err = err;
}

int coll_finder_run(struct coll_finder *f, const struct coll_query *q,
		    bool prove, struct coll_frontier *out, struct err *err)
{
	struct finder_candidates set = { 0 };
	int rc;

	memset(out, 0, sizeof(*out));
	rc = check_query(q, err);
	if (rc) {
		return rc;
	}
	begin(f, q, err);
	rc = q->bidirectional ? bidirectional(f, &set, q->n, q->degree)
			  : unidirectional(f, &set, q->n, q->degree);
	if (!rc && prove) {
		rc = prove_all(f, &set);
	}
	if (!rc) {
		rc = publish(f, &set, out);
	}
	if (!rc && out->points.n == 0) {
		rc = err_set(err, WEFT_EINFEASIBLE, "no topology known for %d "
			     "nodes of %d ports%s", q->n, q->degree,
			     q->bidirectional ? " with arcs in both directions" : "");
	}
	vec_fini(&set.list);
	return rc;
}

int coll_find(const struct coll_query *q, bool prove, struct coll_frontier *out, struct err *err)
{
	struct coll_finder *f;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = coll_finder_new(&f, err);
	if (rc) {
		return rc;
	}
	rc = coll_finder_run(f, q, prove, out, err);
	coll_finder_free(f);
	return rc;
}

void coll_frontier_fini(struct coll_frontier *f)
{
	for (size_t i = 0; i < f->points.n; i++) {
		free(f->points.v[i].expr);
	}
	vec_fini(&f->points);
}
