/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searching digraphs for n nodes of d ports.
 *
 * Bottom up by table 3 of the direct-connect topologies paper: digraphs with
 * bandwidth-optimal schedules and what stays so (Cartesian products, degree
 * expansion, parallel arcs), circulants, line graphs of smaller ones,
 * generalized Kautz graphs, Cayley graphs. Theorems give the figures, so only what may end on
 * the frontier is ever built. What the table has is not searched for.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/finder/private.h"
#include "lib/base/alloc.h"

/* What a search for a Cayley graph may take: neighbours looked up. So many times more where
 * more than the usual sets are asked for. */
#define CAYLEY_VISITS 300000000
#define LARGE 4096		/* nodes above which groups are only known after three times as
				 * many */
#define LEAST_WORK 500		/* nodes times ports that sets are counted as, at least */

void finder_add_circulants(struct coll_finder *f, struct finder_candidates *set, int n, int d,
			   bool both)
{
	struct finder_circulant found[FINDER_CIRCULANT_KEPT];
	int count = finder_circulant_search(n, d, both, found);

	for (int i = 0; i < count; i++) {
		struct finder_candidate c = finder_at_bound(n, found[i].steps);
		bool beaten = false;

		for (size_t k = 0; k < set->list.n; k++) {
			beaten |= finder_beats(f, &set->list.v[k], &c);
		}
		if (!beaten && finder_name_circulant(&c, &found[i])) {
			c.gather = c.scatter = finder_circulant_factor(&found[i]);
			finder_keep(f, set, &c);
		}
	}
}

int coll_moore_steps(int64_t n, int64_t d, bool both)
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

/* Of the nodes that Moore's bound allows within k hops, what no digraph has more of. */
static int64_t largest_order(int64_t d, int k, bool both, int64_t moore)
{
	static const struct {
		int d, k, n;
	} known[] = { { 3, 2, 10 }, { 3, 3, 20 }, { 3, 4, 38 }, { 4, 2, 15 }, { 5, 2, 24 },
		      { 6, 2, 32 }, { 7, 2, 50 } };

	if (k < 2 || d < (both ? 3 : 2)) {
		return moore;
	}
	for (size_t i = 0; both && i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].d == d && known[i].k == k) {
			return known[i].n;
		}
	}
	if (both) {
		return d == 57 && k == 2 ? moore : moore - 2;
	}
	return k == 2 ? moore - 1 : d == 2 ? moore - 3 : d == 3 || k < 5 ? moore - 2 : moore - 1;
}

int coll_min_hops(int64_t n, int64_t d, bool both)
{
	int k = coll_moore_steps(n, d, both);
	int64_t moore = 1, level = d;

	for (int i = 0; i < k; i++) {
		moore += level;
		level *= both ? d - 1 : d;
	}
	return n > largest_order(d, k, both, moore) ? k + 1 : k;
}

/* The fewest steps at the bandwidth bound; INT_MAX without any. */
static int steps_at_bound(const struct finder_candidates *set, int n)
{
	struct bfb_ratio bound = { n - 1, n };
	int least = INT_MAX;

	for (size_t i = 0; i < set->list.n; i++) {
		const struct finder_candidate *c = &set->list.v[i];

		if (c->steps < least && bfb_ratio_cmp(c->gather, bound) <= 0 &&
		    bfb_ratio_cmp(c->scatter, bound) <= 0) {
			least = c->steps;
		}
	}
	return least;
}

/* The same of what the search for n nodes and d ports is to beat: in the set or in the table. */
static int steps_to_beat(const struct coll_finder *f, const struct finder_candidates *set, int n,
			 int d, bool both)
{
	const struct coll_query *q = f->q;
	int least = steps_at_bound(set, n);

	return n == q->n && d == q->degree && both == q->bidirectional && f->below < least
		       ? f->below : least;
}

/* Loads of (n - 1 + excess) / n at most: its figures are proven like those of bounds. */
static void keep_cayley(struct coll_finder *f, struct finder_candidates *set, int n,
			const struct finder_cayley *found)
{
	struct finder_candidate c = finder_at_bound(n, found->steps);
	struct buf text = { 0 };

	c.exact = false;
	c.gather = c.scatter = finder_ratio(n - 1 + found->excess, n);
	topo_cayley_write(&found->g, found->both, found->letter, found->n_letters, &text);
	if (finder_name(&c, "%s", buf_cstr(&text))) {
		finder_keep(f, set, &c);
	}
	buf_fini(&text);
}

/* The best Cayley graph of a search, of fewer steps than `below`; for the nodes that are asked for
 * one of fewer steps still, not at the bound. */
static void add_cayley(struct coll_finder *f, struct finder_candidates *set, int n, int d,
		       enum finder_cayley_aim aim, int below)
{
	bool both = aim == FINDER_CAYLEY_BOTH;
	int64_t work = (int64_t)n * d > LEAST_WORK ? (int64_t)n * d : LEAST_WORK;
	int sets = f->q->sets ? f->q->sets : f->sets;
	int times = (sets > COLL_FINDER_SETS ? sets / COLL_FINDER_SETS : 1) *
		    (f->q->n > LARGE ? 3 : 1);
	int64_t most = (int64_t)CAYLEY_VISITS * times / f->q->n * n;
	int64_t visits = sets * work * 16;
	struct finder_cayley found = { .steps = below }, near = { .steps = below };

	/* Bases of expansions, of which there may be many, get their share. */
	visits = visits < most ? visits : most;
	finder_cayley_search(n, d, aim, coll_moore_steps(n, d, both), f->q->seed, visits, &found,
			     &near);
	if (found.steps < below) {
		keep_cayley(f, set, n, &found);
	}
	if (near.steps < found.steps && n == f->q->n && d == f->q->degree) {
		keep_cayley(f, set, n, &near);
	}
}

static void add_optimal(struct coll_finder *f, struct finder_candidates *set, int n, int d,
			bool both)
{
	size_t from;

	finder_optimal_set(f, n, d, both, &from);
	for (size_t i = 0; i < f->optimal.v[from].list.n; i++) {
		finder_keep(f, set, &f->optimal.v[from].list.v[i]);
	}
	/* Of two offsets theorem 22 knows the best. */
	if (d > 2 && d != 4 && n > d + 1) {
		finder_add_circulants(f, set, n, d, true);
	}
	if (d > 1 && !both && n > d + 1) {
		finder_add_circulants(f, set, n, d, false);
	}
	add_cayley(f, set, n, d, both ? FINDER_CAYLEY_BOTH : FINDER_CAYLEY_ONE_WAY,
		   steps_to_beat(f, set, n, d, both));
}

/* With the figures that it has. */
static int add_computed(struct coll_finder *f, struct finder_candidates *set,
			struct finder_candidate *c)
{
	int rc = finder_compute(f, c);

	if (rc) {
		return rc == WEFT_ELIMIT ? 0 : rc;
	}
	finder_keep(f, set, c);
	return 0;
}

static int add_kautz(struct coll_finder *f, struct finder_candidates *set, int n, int d)
{
	struct finder_candidate c = { .steps = 0 };

	/* Of degree one they are not connected. */
	if (d < 2 || n < d + 1 || !finder_name(&c, "GenKautz(%d,%d)", d, n)) {
		return 0;
	}
	return add_computed(f, set, &c);
}

/* Of diameter 3 or more they are less loaded than generalized Kautz graphs of the same steps. */
static int add_cycle_prefix(struct coll_finder *f, struct finder_candidates *set, int n, int d)
{
	struct finder_candidate c = { .steps = 0 };
	int64_t words = d + 1;
	int k = 1;

	while (words < n && k < d) {
		words *= d + 1 - k++;
	}
	if (words != n || k < 3 || !finder_name(&c, "CyclePrefix(%d,%d)", d, k)) {
		return 0;
	}
	return add_computed(f, set, &c);
}

/* Of diameter 2: of 2 q^2 nodes, some half of Moore's bound, near the bound of bandwidth; of
 * q^2 + q + 1, near Moore's bound. */
static int add_of_two_hops(struct coll_finder *f, struct finder_candidates *set, int n, int d)
{
	struct finder_candidate c = { .steps = 0 };
	int ports, q = finder_slim_fly(n, &ports);

	if (q && ports == d && finder_name(&c, "SlimFly(%d)", q)) {
		return add_computed(f, set, &c);
	}
	q = finder_polarity(n);
	return q && q + 1 == d && finder_name(&c, "Polarity(%d)", q) ? add_computed(f, set, &c) : 0;
}

/* `times` line graphs of c, which load `more` in a phase. */
static void add_line(struct coll_finder *f, struct finder_candidates *set,
		     const struct finder_candidate *c, int times, struct bfb_ratio more)
{
	struct finder_candidate made = *c;

	made.steps += times;
	made.gather = finder_plus(c->gather, more);
	made.scatter = finder_plus(c->scatter, more);
	made.exact = false;
	if (times == 1 ? finder_name(&made, "L(%s)", c->expr)
		       : finder_name(&made, "L%d(%s)", times, c->expr)) {
		finder_keep(f, set, &made);
	}
}

/* Corollary 10.1 (corollary 1.2 as a bound): `times` line graphs of what has
 * `base` nodes. */
static void add_lines(struct coll_finder *f, struct finder_candidates *set, int base, int d,
		      int times)
{
	int below = steps_to_beat(f, set, f->q->n, d, false);
	struct finder_candidates from = { 0 }, balanced = { 0 };
	struct bfb_ratio more = { 0, 1 };
	int64_t n = base;

	add_optimal(f, &from, base, d, false);
	below -= below == INT_MAX ? 0 : times;
	add_cayley(f, &balanced, base, d, FINDER_CAYLEY_LINES, below);
	/* The line graph of a generalized Kautz graph is the next larger. */
	for (int i = 0; i < times; i++, n *= d) {
		more = finder_plus(more, (struct bfb_ratio){ 1, n });
	}
	for (size_t i = 0; i < from.list.n; i++) {
		add_line(f, set, &from.list.v[i], times, more);
	}
	/* These lose nothing by the first line graph. */
	more = finder_plus(more, (struct bfb_ratio){ -1, (int64_t)base * d });
	for (size_t i = 0; i < balanced.list.n; i++) {
		add_line(f, set, &balanced.list.v[i], times, more);
	}
	vec_fini(&from.list);
	vec_fini(&balanced.list);
}

/* All that is known or searched of digraphs that need not be the same both ways. */
static int unidirectional(struct coll_finder *f, struct finder_candidates *set, int n, int d)
{
	int64_t base = n;
	int rc;

	add_optimal(f, set, n, d, false);
	rc = add_kautz(f, set, n, d);
	(void)(rc || (rc = add_cycle_prefix(f, set, n, d)) || (rc = add_of_two_hops(f, set, n, d)));
	for (int k = 1; d > 1 && base % d == 0 && base / d >= 2 && !rc; k++) {
		base /= d;
		add_lines(f, set, (int)base, d, k);
	}
	return rc;
}

/* Appendix F: a one-way digraph and its transpose. */
static int bidirectional(struct coll_finder *f, struct finder_candidates *set, int n, int d)
{
	struct finder_candidates half = { 0 };
	int rc = 0;

	add_optimal(f, set, n, d, true);
	if ((rc = add_of_two_hops(f, set, n, d))) {
		return rc;
	}
	if (d % 2 == 0 && !finder_table_read(f, n, d / 2, false, &half)) {
		rc = unidirectional(f, &half, n, d / 2);
	}
	for (size_t i = 0; i < half.list.n && !rc; i++) {
		struct finder_candidate c = half.list.v[i];

		c.exact = false;
		c.gather = finder_plus(half.list.v[i].gather, half.list.v[i].scatter);
		c.gather = finder_ratio(c.gather.num, (__int128)c.gather.den * 2);
		c.scatter = c.gather;
		if (finder_name(&c, "Bi(%s)", half.list.v[i].expr)) {
			finder_keep(f, set, &c);
		}
	}
	vec_fini(&half.list);
	return rc;
}

/* Replaces upper bounds by what the digraphs have. Those that lose their place
 * are dropped, and those that are too large. */
static int prove_all(struct coll_finder *f, struct finder_candidates *set)
{
	struct finder_candidates proven = { 0 };
	int rc = 0;

	for (size_t i = 0; i < set->list.n && !rc; i++) {
		struct finder_candidate c = set->list.v[i];
		int ports = c.ports;

		rc = c.exact ? 0 : finder_compute(f, &c);
		rc = rc == WEFT_ELIMIT ? 0 : rc;
		if (!rc && c.exact) {
			if (ports && !set->list.v[i].exact) {
				finder_use_ports(&c, ports, f->q->degree);
			}
			finder_keep(f, &proven, &c);
		}
	}
	vec_fini(&set->list);
	*set = proven;
	return rc;
}

/* ---- results ---- */

static int compare(const void *a, const void *b)
{
	const struct finder_candidate *x = a, *y = b;

	if (x->steps != y->steps) {
		return x->steps - y->steps;
	}
	if (strlen(x->expr) != strlen(y->expr)) {
		return strlen(x->expr) < strlen(y->expr) ? -1 : 1;
	}
	return strcmp(x->expr, y->expr);
}

/* What nothing in `all` beats for the collective of the query, in order; of equals the shortest
 * expression. */
static void make_frontier(struct coll_finder *f, const struct finder_candidates *all,
			  struct finder_candidates *out)
{
	size_t kept = 0;

	for (size_t i = 0; i < all->list.n; i++) {
		finder_keep(f, out, &all->list.v[i]);
	}
	if (out->list.n > 0) {
		qsort(out->list.v, out->list.n, sizeof(*out->list.v), compare);
	}
	for (size_t i = 0; i < out->list.n; i++) {
		if (kept == 0 || out->list.v[kept - 1].steps != out->list.v[i].steps) {
			out->list.v[kept++] = out->list.v[i];
		}
	}
	out->list.n = kept;
}

static void publish(struct coll_finder *f, const struct finder_candidates *all,
		    struct coll_frontier *out)
{
	int phases = f->q->kind == COLL_ALLREDUCE ? 2 : 1;
	struct bfb_ratio bound = finder_ratio((__int128)phases * (f->q->n - 1), f->q->n);
	struct finder_candidates set = { 0 };

	make_frontier(f, all, &set);
	out->steps_bound = coll_min_hops(f->q->n, f->q->degree, f->q->bidirectional);
	out->bound_num = bound.num;
	out->bound_den = bound.den;
	out->groups = finder_groups_of(f->q->n);
	for (size_t i = 0; i < set.list.n; i++) {
		const struct finder_candidate *c = &set.list.v[i];
		struct bfb_ratio load = finder_worth(f, c);
		struct coll_point p = { x_dup(c->expr), phases * c->steps,
					load.num, load.den,
					c->ports ? c->ports : f->q->degree,
					c->exact && !c->believed };

		vec_push(&out->points, p);
	}
	vec_fini(&set.list);
}

void coll_point_proven(const struct coll_query *q, const struct coll_frontier *f,
		       const struct coll_point *p, bool *steps, bool *bandwidth)
{
	int phases = q->kind == COLL_ALLREDUCE ? 2 : 1;

	*steps = p->steps == phases * f->steps_bound;
	*bandwidth = finder_is_min(q->n, q->degree, q->bidirectional, p->steps / phases,
				     finder_ratio(p->num, (__int128)p->den * phases));
}

static int check_query(const struct coll_query *q, struct err *err)
{
	if (q->n < 2 || q->n > COLL_FINDER_MAX_NODES) {
		return err_set(err, WEFT_EINVAL, "%d nodes: expected 2 to %d", q->n,
			       COLL_FINDER_MAX_NODES);
	}
	if (q->degree < 1 || q->degree >= COLL_FINDER_MAX_NODES) {
		return err_set(err, WEFT_EINVAL, "degree %d: expected 1 to %d",
			       q->degree, COLL_FINDER_MAX_NODES - 1);
	}
	if (q->kind == COLL_ALLTOALL || coll_has_root(q->kind)) {
		return err_set(err, WEFT_EUNSUPPORTED, "topologies for %s are "
			       "not searched: only for allgather, "
			       "reduce-scatter and allreduce",
			       coll_kind_name(q->kind));
	}
	return 0;
}

void coll_finder_new(struct coll_finder **out)
{
	*out = x_new(1, sizeof(**out));
	(*out)->sets = COLL_FINDER_SETS;
	(*out)->table = finder_table_shipped(&(*out)->table_len);
}

void coll_finder_set_default(struct coll_finder *f, int sets)
{
	f->sets = sets;
}

void coll_finder_set_table(struct coll_finder *f, const char *text, size_t len)
{
	f->table = text;
	f->table_len = len;
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
	if (f->computed_n != q->n) {
		f->computed.n = 0;
		f->computed_n = q->n;
	}
	f->q = q;
	f->below = INT_MAX;
	f->err = err;
}

static int search(struct coll_finder *f, bool prove, struct finder_candidates *set)
{
	const struct coll_query *q = f->q;
	int rc = 0;

	if (q->degree >= q->n - 1) {
		finder_add_parallel(f, set, q->n, q->degree, q->bidirectional);
	} else if (!q->bidirectional) {
		rc = unidirectional(f, set, q->n, q->degree);
	} else if ((int64_t)q->n * q->degree % 2 == 0) {
		rc = bidirectional(f, set, q->n, q->degree);
	} else {
		rc = add_of_two_hops(f, set, q->n, q->degree);
	}
	return rc || !prove ? rc : prove_all(f, set);
}

/* The table has what is best for each collective. */
static bool look_up(struct coll_finder *f, struct finder_candidates *set)
{
	const struct coll_query *q = f->q;
	bool found;

	f->all_kinds = true;
	found = finder_table_read(f, q->n, q->degree, q->bidirectional, set);
	f->all_kinds = false;
	return found;
}

static int nothing_known(const struct coll_query *q, struct err *err)
{
	return err_set(err, WEFT_EINFEASIBLE, "no topology known for %d nodes of %d ports%s", q->n,
		       q->degree, q->bidirectional ? " with arcs in both directions" : "");
}

/* Of as many of q's ports as anything is known of; of one less too where not all nodes can use
 * all. */
static int search_fewer(struct coll_finder *f, const struct coll_query *q, bool prove,
			struct finder_candidates *set, struct err *err)
{
	struct coll_query fewer = *q;
	int least = q->bidirectional && q->n % 2 && q->degree % 2 ? q->degree - 1 : q->degree;
	int rc = 0;

	for (; fewer.degree > 0 && (set->list.n == 0 || fewer.degree >= least) && rc == 0;
	     fewer.degree--) {
		struct finder_candidates found = { 0 };

		begin(f, &fewer, err);
		if (q->sets > 0 || !look_up(f, &found)) {
			rc = search(f, prove, &found);
		}
		for (size_t i = 0; i < found.list.n && !rc; i++) {
			if (fewer.degree < q->degree) {
				finder_use_ports(&found.list.v[i], fewer.degree, q->degree);
			}
			finder_keep(f, set, &found.list.v[i]);
		}
		vec_fini(&found.list);
	}
	return rc;
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
	rc = search_fewer(f, q, prove, &set, err);
	if (!rc) {
		f->q = q;
		publish(f, &set, out);
		rc = out->points.n ? 0 : nothing_known(q, err);
	}
	vec_fini(&set.list);
	return rc;
}

/* Adds to `out` what is on the frontier of one kind of collective and not there yet. */
static void add_frontier(struct coll_finder *f, const struct finder_candidates *all,
			 struct finder_candidates *out)
{
	struct finder_candidates set = { 0 };

	make_frontier(f, all, &set);
	for (size_t i = 0; i < set.list.n; i++) {
		bool there = false;

		for (size_t k = 0; k < out->list.n; k++) {
			there |= strcmp(out->list.v[k].expr, set.list.v[i].expr) == 0;
		}
		if (!there) {
			vec_push(&out->list, set.list.v[i]);
		}
	}
	vec_fini(&set.list);
}

int coll_finder_improve(struct coll_finder *f, const struct coll_query *query, struct buf *line,
			struct err *err)
{
	static const enum coll_kind kinds[] = { COLL_ALLREDUCE, COLL_ALLGATHER,
						COLL_REDUCE_SCATTER };
	struct finder_candidates all = { 0 }, there = { 0 }, best = { 0 };
	struct coll_query q = *query;
	int rc = check_query(&q, err);

	if (rc) {
		return rc;
	}
	begin(f, &q, err);
	look_up(f, &there);
	f->below = steps_at_bound(&there, q.n);
	f->all_kinds = true;
	rc = search(f, true, &all);
	/* What is to be beaten guides a search: without it others are found. */
	f->below = INT_MAX;
	if (!rc) {
		rc = search(f, true, &all);
	}
	/* Only now: what is promised is not to lose against what is known already. */
	for (size_t i = 0; i < there.list.n && !rc; i++) {
		finder_keep(f, &all, &there.list.v[i]);
	}
	f->all_kinds = false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !rc; i++) {
		q.kind = kinds[i];
		add_frontier(f, &all, &best);
	}
	if (!rc && best.list.n == 0) {
		rc = nothing_known(&q, err);
	} else if (!rc) {
		qsort(best.list.v, best.list.n, sizeof(*best.list.v), compare);
		finder_table_write(q.n, q.degree, q.bidirectional, &best, line);
	}
	vec_fini(&all.list);
	vec_fini(&there.list);
	vec_fini(&best.list);
	return rc;
}

int coll_find(const struct coll_query *q, bool prove, struct coll_frontier *out, struct err *err)
{
	struct coll_finder *f;
	int rc;

	memset(out, 0, sizeof(*out));
	coll_finder_new(&f);
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
