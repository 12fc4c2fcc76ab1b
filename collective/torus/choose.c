/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which algorithm is the fastest: a search by torus_time.
 *
 * Of Swing, recursive doubling, buckets and rings all forms are tried. Of mixed radices there are
 * too many where dimensions differ: one size after the other gets the best levels while those of
 * the others stay, from a few beginnings, until nothing is gained. Where lines are unlike, formulas
 * speak for those that most are like, and no schedule is faster than they say: in the order of what
 * they say the first few are made.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/torus/net.h"

/* Rounds that are looked for beyond. */
#define MAX_ROUNDS (TORUS_MAX_LEVELS * COLL_MAX_DIGITS)
#define MAX_LEVELS 4		/* of more than three partners, in a dimension: more are never
				 * best */
/* Arcs and hops that are looked at before a search ends with the best so far: about a second. */
#define MAX_WORK (INT64_C(1) << 26)

#define MAX_FEW 8		/* algorithms that are made where lines are unlike */

/* Those of the least time by formula, in order; of some that take the same the first. */
struct torus_few {
	int n;
	double ns[MAX_FEW];
	struct torus_spec spec[MAX_FEW];
};

struct torus_search {
	struct torus_shape *shape;
	enum coll_kind kind;
	const struct coll_cost *cost;
	const struct torus_spec *fixed;
	int64_t max_work;
	bool one_port;		/* of mixed radices */
	bool costs_paths;	/* fewer may be faster */
	bool passes_on;		/* exchanges with levels that pass on sums */
	struct torus_spec best;
	double best_ns;
	struct torus_few *few;		/* of the whole search, where lines are unlike; else NULL */
};

static int64_t work_so_far(const struct torus_shape *s)
{
	int64_t work = 0;

	for (int e = 0; e < s->n_dims; e++) {
		work += s->net[e] ? s->net[e]->work : 0;
	}
	return work;
}

static void keep_few(struct torus_few *few, const struct torus_spec *spec, double ns)
{
	int at = few->n, last;

	for (int i = 0; i < few->n; i++) {
		if (few->ns[i] == ns && few->spec[i].one_port == spec->one_port) {
			return;
		}
	}
	while (at > 0 && few->ns[at - 1] > ns) {
		at--;
	}
	if (at == MAX_FEW) {
		return;
	}
	few->n += few->n < MAX_FEW;
	last = few->n - 1;
	memmove(few->ns + at + 1, few->ns + at, (size_t)(last - at) * sizeof(few->ns[0]));
	memmove(few->spec + at + 1, few->spec + at, (size_t)(last - at) * sizeof(few->spec[0]));
	few->ns[at] = ns;
	few->spec[at] = *spec;
}

/* What takes as long is of no interest. */
static double interesting_ns(const struct torus_search *k)
{
	const struct torus_few *few = k->few;

	if (!few) {
		return k->best_ns;
	}
	return few->n < MAX_FEW ? HUGE_VAL : fmax(k->best_ns, few->ns[MAX_FEW - 1]);
}

/* Tries one; that it does not exist, or has no time without its schedule, is no error, nor that it
 * has too many routes. */
static int try_one(struct torus_search *k, const struct torus_spec *spec, bool *too_many,
		   struct err *err)
{
	double ns;
	int rc;

	if (k->best_ns < HUGE_VAL && work_so_far(k->shape) > k->max_work) {
		return 0;
	}
	rc = torus_time_below(k->shape, spec, k->kind, k->cost, interesting_ns(k), &ns, err);
	*too_many |= rc == WEFT_ELIMIT;
	if (rc == WEFT_EUNSUPPORTED || rc == WEFT_EINFEASIBLE || rc == WEFT_ELIMIT) {
		err_clear(err);
		return 0;
	}
	if (rc == 0 && k->few) {
		keep_few(k->few, spec, ns);
	}
	if (rc == 0 && ns < k->best_ns) {
		k->best_ns = ns;
		k->best = *spec;
	}
	return rc;
}

/* Over all paths, and over fewer, where each of them is a message or they are too many. */
static int try(struct torus_search *k, const struct torus_spec *spec, struct err *err)
{
	bool fewer = k->costs_paths && spec->lines == TORUS_LEVELS;
	struct torus_spec one = *spec;
	int rc = 0;

	for (int i = TORUS_SPLIT; i <= (fewer ? TORUS_SINGLE : TORUS_SPLIT) && rc == 0; i++) {
		one.paths = (enum torus_paths)i;
		rc = try_one(k, &one, &fewer, err);
	}
	return rc;
}

/* With every number of rounds of reduce-scatter that is asked for. */
static int try_rounds(struct torus_search *k, struct torus_spec spec, int levels, struct err *err)
{
	int rc = 0;

	if (k->fixed && k->fixed->rounds != TORUS_ANY_ROUNDS) {
		spec.rounds = k->fixed->rounds;
		return try(k, &spec, err);
	}
	spec.rounds = -1;
	rc = k->passes_on ? 0 : try(k, &spec, err);
	for (spec.rounds = 0; spec.rounds < levels && rc == 0 && k->kind == COLL_ALLREDUCE;
	     spec.rounds++) {
		rc = try(k, &spec, err);
	}
	return rc;
}

static bool wants(const struct torus_search *k, enum torus_lines lines)
{
	return !k->fixed || k->fixed->lines == lines;
}

/* ---- algorithms without radices ---- */

static int levels_of_two(const struct torus_shape *s)
{
	int sum = 0;

	for (int e = 0; e < s->n_dims; e++) {
		for (int d = s->size[e]; d > 1; d = (d + 1) / 2) {
			sum++;
		}
	}
	return sum;
}

static int try_plain(struct torus_search *k, struct err *err)
{
	int levels = levels_of_two(k->shape), rc = 0;

	for (int i = 0; i < TORUS_LINES && rc == 0; i++) {
		struct torus_spec spec = { .lines = (enum torus_lines)i, .rounds = -1 };
		bool exchanges = i == TORUS_SWING || i == TORUS_DOUBLING;
		int rounds = i == TORUS_SWING || k->fixed ? levels : 1;
		/* Ports: all, or one, as is fixed; else doubling tries both. */
		int one = k->fixed && k->fixed->one_port;
		int last = k->fixed ? one : i == TORUS_DOUBLING;

		if (!wants(k, spec.lines) || i == TORUS_LEVELS) {
			continue;
		}
		for (; one <= last && rc == 0; one++) {
			spec.one_port = one;
			spec.in_step = k->fixed && k->fixed->in_step;
			rc = exchanges ? try_rounds(k, spec, rounds, err) : try(k, &spec, err);
			spec.in_step = true;
			if (rc == 0 && i == TORUS_BUCKET) {
				rc = try(k, &spec, err);
			}
		}
	}
	return rc;
}

/* ---- mixed radices ---- */

/* All lists of levels of a size, in one array. */
struct torus_lists {
	VEC(struct torus_radices) all;
};

/* Whether all dimensions of a size have the links of a level, both ways; as far as only links
 * count. */
static bool has_links(const struct torus_shape *s, int size, int stride,
		      const struct torus_level *level)
{
	int far = level->chain ? 1 : level->radix / 2;

	for (int e = 0; e < s->n_dims; e++) {
		for (int t = 1; t <= far && s->size[e] == size && s->joins[e]; t++) {
			int o = t * stride % size;

			if (!s->joins[e][o] || !s->joins[e][size - o]) {
				return false;
			}
		}
	}
	return true;
}

static int add_lists(const struct torus_shape *s, struct torus_lists *l, struct torus_radices *r,
		     int size, int rest, int large, struct err *err)
{
	int rc = 0;

	if (rest == 1) {
		vec_push(&l->all, *r);
		return 0;
	}
	if (r->n == TORUS_MAX_LEVELS) {
		return 0;
	}
	for (int m = 2; m <= rest && rc == 0; m++) {
		if (rest % m || (m > 3 && large == MAX_LEVELS)) {
			continue;
		}
		for (int chain = 0; chain <= (m > 3) && rc == 0; chain++) {
			r->level[r->n] = (struct torus_level){ m, chain, 0 };
			if (has_links(s, size, size / rest, &r->level[r->n])) {
				r->n++;
				rc = add_lists(s, l, r, size, rest / m, large + (m > 3), err);
				r->n--;
			}
		}
	}
	return rc;
}

/* Nodes that are left after a level of uneven radices. */
static int rest_after(int size, int radix)
{
	return size / 2 / radix + (size - 1) / 2 / radix + 1;
}

static int largest_prime(int n)
{
	int m = 2;

	while (m < n) {
		if (n % m) {
			m++;
		} else {
			n /= m;
		}
	}
	return m;
}

/* Two and three uneven levels: 3x3 for 8 has shorter ways than 8, and fewer steps than 2x2x2. */
#define MIN_UNEVEN 5		/* nodes */
#define MAX_UNEVEN 16		/* radix of the first level, the second has half */
#define MIN_PRIME 7		/* factor of a size for levels that pass on sums */

/* Steps of a chain as the first of uneven levels: half of its radix, or what the ends of the line
 * have beyond the last multiple of it. */
static int chain_steps(int size, int radix)
{
	int up = size / 2 % radix, down = (size - 1) / 2 % radix, far = up > down ? up : down;

	return far > radix / 2 ? far : radix / 2;
}

/* A chain first, the shortest for each number of nodes that it leaves, which is few. */
static void add_chain_first(struct torus_lists *l, int size)
{
	for (int rest = 2; rest <= MAX_UNEVEN; rest++) {
		int best = 0;

		for (int m = size / 2 / rest; 2 * m < size; m++) {
			if (m > 3 && rest_after(size, m) == rest &&
			    (!best || chain_steps(size, m) <= chain_steps(size, best))) {
				best = m;
			}
		}
		for (int chain = 0; chain < 2 && best; chain++) {
			vec_push(&l->all, ((struct torus_radices){
				2, { { best, true, 0 }, { rest, chain, 0 } } }));
		}
	}
}

static void add_uneven(struct torus_lists *l, int size)
{
	add_chain_first(l, size);
	for (int m = 2; m <= MAX_UNEVEN && 2 * m < size; m++) {
		int rest = rest_after(size, m);

		for (int second = 1; second <= MAX_UNEVEN / 2 && 2 * second < rest; second++) {
			int last = second > 1 ? rest_after(rest, second) : rest;

			for (int chain = 0; chain < 2; chain++) {
				struct torus_radices r = { 1 + (second > 1), { { m, false, 0 },
							   { second, false, 0 } } };

				r.level[r.n++] = (struct torus_level){ last, chain, 0 };
				vec_push(&l->all, r);
			}
		}
	}
}

/* Levels that join m nodes, then n >= m that are made up of those, then all; false: there are none
 * such. n = m: two levels. */
static bool passing_levels(int size, int m, int n, struct torus_radices *out, int *sends)
{
	struct torus_level second = { n / m, false, n % m };
	struct torus_level last = { size / n, false, size % n / (n > m ? m : 1) };

	*out = (struct torus_radices){ .level[0] = { m, false, 0 }, .n = 1 };
	if (n > m) {
		out->level[out->n++] = second;
	}
	out->level[out->n++] = last;
	*sends = m + (n > m ? second.radix + second.more : 0) + last.radix + last.more;
	return last.radix > 1 && (n == m || size % n % m == 0);
}

/* Two levels, and three of the fewest partners, of each first radix. */
static void add_passing(struct torus_lists *l, int size)
{
	for (int m = 2; m <= MAX_UNEVEN && 2 * m <= size; m++) {
		struct torus_radices r, best;
		int fewest = INT_MAX, sends;

		if (passing_levels(size, m, m, &r, &sends)) {
			vec_push(&l->all, r);
		}
		for (int n = 2 * m; 2 * n <= size; n++) {
			if (passing_levels(size, m, n, &r, &sends) && sends < fewest) {
				fewest = sends;
				best = r;
			}
		}
		if (fewest < INT_MAX) {
			vec_push(&l->all, best);
		}
	}
}

static int count_levels(const struct torus_shape *s, const struct torus_spec *spec)
{
	int sum = 0;

	for (int e = 0; e < s->n_dims; e++) {
		sum += spec->radices[e].n;
	}
	return sum;
}

/* Dimensions of a size, of those from first to last, get the best of its lists. */
static int improve_some(struct torus_search *k, int first, int last, bool passes_on,
			struct err *err)
{
	int size = k->shape->size[first], rc;
	struct torus_lists lists = { 0 };
	struct torus_radices r = { 0 };
	struct torus_spec spec = k->best;

	rc = add_lists(k->shape, &lists, &r, size, size, 0, err);
	if (rc == 0 && passes_on && largest_prime(size) >= MIN_PRIME) {
		add_passing(&lists, size);
	} else if (rc == 0 && !passes_on && size >= MIN_UNEVEN) {
		add_uneven(&lists, size);
	}
	for (size_t i = 0; i < lists.all.n && rc == 0; i++) {
		for (int e = first; e <= last; e++) {
			if (k->shape->size[e] == size) {
				spec.radices[e] = lists.all.v[i];
			}
		}
		rc = try_rounds(k, spec, count_levels(k->shape, &spec), err);
	}
	vec_fini(&lists.all);
	return rc;
}

/* Whether an earlier dimension has the same size. */
static bool is_seen(const struct torus_shape *s, int e)
{
	for (int i = 0; i < e; i++) {
		if (s->size[i] == s->size[e]) {
			return true;
		}
	}
	return false;
}

/* All dimensions of one size: any order is the same, and so is any beginning. */
static bool is_square(const struct torus_shape *s)
{
	for (int e = 1; e < s->n_dims; e++) {
		if (s->size[e] != s->size[0]) {
			return false;
		}
	}
	return true;
}

/* All of the size of a dimension. */
static int improve_all(struct torus_search *k, int e, struct err *err)
{
	int first = 0;

	while (k->shape->size[first] != k->shape->size[e]) {
		first++;
	}
	return improve_some(k, first, k->shape->n_dims - 1, k->passes_on, err);
}

/* Where levels of all dimensions pass on sums: the first one by others, whose reduce-scatter leaves
 * less for all that follows. */
static int improve_first(struct torus_search *k, struct err *err)
{
	int last = k->shape->n_dims - 1, rc;

	if (!k->passes_on || !is_square(k->shape) || last == 0) {
		return 0;
	}
	rc = improve_some(k, 0, 0, false, err);
	return rc ? rc : improve_some(k, 1, last, true, err);
}

/* Size by size, from the first dimension or from the last, until nothing is gained. */
static int improve(struct torus_search *k, bool from_last, struct err *err)
{
	const struct torus_shape *s = k->shape;
	double before;
	int rc = 0;

	do {
		before = k->best_ns;
		for (int i = 0; i < s->n_dims && rc == 0; i++) {
			int e = from_last ? s->n_dims - 1 - i : i;

			rc = is_seen(s, e) ? 0 : improve_all(k, e, err);
		}
	} while (rc == 0 && k->best_ns < before && !is_square(s));
	return rc;
}

/* The first divisor above 1. */
static int lowest_divisor(int n)
{
	int m = 2;

	while (n % m) {
		m++;
	}
	return m;
}

/* Where a search begins: one level, direct or a chain, or as many as can be. */
static struct torus_radices beginning(int size, int way)
{
	struct torus_radices r = { 0 };

	while (size > 1) {
		int m = way < 2 ? size : lowest_divisor(size);

		r.level[r.n++] = (struct torus_level){ m, way == 0 && m > 3, 0 };
		size /= m;
	}
	return r;
}

static int try_radices(struct torus_search *k, struct err *err)
{
	struct torus_search all;
	int rc = 0;

	k->max_work = work_so_far(k->shape) + MAX_WORK;
	all = *k;
	for (int i = 0; i < 6 && rc == 0; i++) {
		struct torus_search from = *k;
		struct torus_spec spec = { .lines = TORUS_LEVELS };

		from.best_ns = HUGE_VAL;
		spec.one_port = k->one_port;
		if (is_square(k->shape) && (i % 2 || all.best_ns < k->best_ns)) {
			continue;
		}
		for (int e = 0; e < k->shape->n_dims; e++) {
			spec.radices[e] = beginning(k->shape->size[e], i / 2);
		}
		rc = try_rounds(&from, spec, count_levels(k->shape, &spec), err);
		if (rc == 0 && from.best_ns < HUGE_VAL) {
			(void)((rc = improve(&from, i % 2, err)) ||
			       (rc = improve_first(&from, err)));
		}
		if (from.best_ns < all.best_ns) {
			all = from;
		}
	}
	*k = all;
	return rc;
}

/* The least capacity of an arc. */
static int64_t narrowest(const struct topo *t)
{
	int64_t least = topo_arc(t, 0)->cap;

	for (int a = 1; a < topo_m(t); a++) {
		least = topo_arc(t, a)->cap < least ? topo_arc(t, a)->cap : least;
	}
	return least;
}

/* Of all ports, and of one, by which what one link would pass of the vector is in one collective,
 * of fewer messages: for short vectors only. */
static int try_ports(struct torus_search *k, struct err *err)
{
	double unit_ns = (double)k->cost->size_bytes * 8e9 / (double)k->cost->link_bps;
	int rc = try_radices(k, err);

	if (rc || k->fixed || unit_ns > k->best_ns * (double)narrowest(k->shape->t)) {
		return rc;
	}
	k->one_port = true;
	rc = try_radices(k, err);
	k->one_port = false;
	return rc;
}

/* Exchanges of any size, where all may be partners and no even levels will do. */
static int try_passing(struct torus_search *k, struct err *err)
{
	bool any = false;

	for (int e = 0; e < k->shape->n_dims; e++) {
		any |= largest_prime(k->shape->size[e]) >= MIN_PRIME;
		if (k->shape->joins[e]) {
			return 0;
		}
	}
	if (!any || k->fixed || k->kind != COLL_ALLREDUCE) {
		return 0;
	}
	k->passes_on = true;
	return try_ports(k, err);
}

/* Radices that are given, with the best number of rounds. */
static int try_given(struct torus_search *k, struct err *err)
{
	return try_rounds(k, *k->fixed, count_levels(k->shape, k->fixed), err);
}

/* Whether every dimension has links that its lines could be made of. */
static bool may_exist(const struct torus_shape *s)
{
	for (int e = 0; e < s->n_dims; e++) {
		bool any = !s->joins[e];

		for (int o = 1; o < s->size[e] && !any; o++) {
			any = s->joins[e][o] && s->joins[e][s->size[e] - o];
		}
		if (!any) {
			return false;
		}
	}
	return true;
}

/* All have coordinates beside each other as partners: where no message may go between them there is
 * nothing to look for. */
static int check_neighbours(struct torus_shape *s, struct err *err)
{
	const struct torus_route *r;
	int periods[COLL_MAX_DIGITS], rc;

	if (!may_exist(s)) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "a dimension without links between neighbours, "
			       "and nothing is forwarded");
	}
	rc = torus_nets(s, periods, err);
	for (int e = 0; e < s->n_dims && rc == 0; e++) {
		rc = torus_net_route(s->net[e], 0, 1, NET_ALL, &r, err);
	}
	return rc;
}

/* Where there are several paths, and no other rule for them is given. */
static bool costs_paths(const struct torus_shape *s, const struct coll_cost *cost)
{
	bool any = false;

	for (int e = 0; e < s->n_dims; e++) {
		any |= s->net[e]->has_choice;
	}
	return any && cost->message_ns > 0 &&
	       (!s->fabric || s->fabric->routing == COLL_ROUTING_MINIMAL_SPLIT);
}

/* The fastest of the few as they are made. */
static void choose_made(struct torus_search *k)
{
	double made_ns = HUGE_VAL, ns;

	for (int i = 0; i < k->few->n && k->few->ns[i] < made_ns; i++) {
		const struct torus_spec *spec = &k->few->spec[i];

		if (torus_time(k->shape, spec, k->kind, k->cost, &ns, NULL) == 0 && ns < made_ns) {
			made_ns = ns;
			k->best = *spec;
		}
	}
}

int torus_choose(struct torus_shape *s, enum coll_kind kind, const struct coll_cost *cost,
		 const struct torus_spec *fixed, struct torus_spec *out, struct err *err)
{
	struct torus_search k = { .shape = s, .kind = kind, .cost = cost, .fixed = fixed,
				  .best_ns = HUGE_VAL, .max_work = work_so_far(s) + MAX_WORK,
				  .one_port = fixed && fixed->one_port };
	struct torus_few few = { 0 };
	bool given = fixed && fixed->lines == TORUS_LEVELS && fixed->radices[0].n > 0;
	int rc = check_neighbours(s, err);

	k.costs_paths = rc == 0 && costs_paths(s, cost);
	k.few = s->has_unlike ? &few : NULL;
	if (rc == 0) {
		rc = given ? try_given(&k, err) : try_plain(&k, err);
	}
	if (rc == 0 && !given && wants(&k, TORUS_LEVELS)) {
		(void)((rc = try_ports(&k, err)) || (rc = try_passing(&k, err)));
	}
	if (rc == 0 && k.few) {
		choose_made(&k);
	}
	*out = k.best;
	if (rc == 0 && k.best_ns == HUGE_VAL) {
		rc = err_set(err, WEFT_EUNSUPPORTED,
			     "no algorithm of this kind for these dimensions "
			     "whose time is known without its schedule");
	}
	return rc;
}
