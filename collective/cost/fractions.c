/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fractions from a solved program.
 *
 * Weights: the columns that are used solve the rows that are full, a square system of whole
 * numbers; what comes out must be weights that keep all rows, else the values of the program are
 * rounded to weights that add up to one. Bound: prices of the rows that have one make all columns
 * that are used cheapest; with these prices, or rounded ones, in whole numbers, the cheapest
 * columns are searched for once more, and weak duality gives a bound that holds whatever was
 * guessed before.
 */
#include <math.h>
#include <stdlib.h>

#include "collective/cost/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/lp/exact.h"

#define TINY 1e-9
#define NEAR 1e-7
/* Rounded weights and prices are multiples of one over these powers of 2. */
#define WEIGHT_BITS 40
#define PRICE_BITS 30

/* A square system in whole numbers, and where its rows and columns come from. */
struct cost_system {
	struct exact_matrix matrix;
	VEC(int32_t) row_of, col_of;
	int32_t *row, *col;	/* the independent ones */
	int rank;
	mpz_t *rhs, *num;	/* by row of the matrix; by column found */
	size_t n_rhs, n_num;
	mpz_t den;
};

static void system_init(struct cost_system *s)
{
	*s = (struct cost_system){ 0 };
	mpz_init(s->den);
}

static void system_fini(struct cost_system *s)
{
	exact_fini(&s->matrix);
	vec_fini(&s->row_of);
	vec_fini(&s->col_of);
	numbers_free(s->rhs, s->n_rhs);
	numbers_free(s->num, s->n_num);
	free(s->row);
	free(s->col);
	mpz_clear(s->den);
}

/* Finds independent rows and columns. rhs of all rows is zero then. */
static void system_basis(struct cost_system *s)
{
	size_t most = s->row_of.n < s->col_of.n ? s->row_of.n : s->col_of.n;

	s->n_rhs = s->row_of.n + 1;
	s->n_num = most + 1;
	s->rhs = numbers_new(s->n_rhs);
	s->num = numbers_new(s->n_num);
	s->row = x_new(most + 1, sizeof(*s->row));
	s->col = x_new(most + 1, sizeof(*s->col));
	s->rank = exact_basis(&s->matrix, (int)most, s->row, s->col);
}

static int system_solve(struct cost_system *s, struct err *err)
{
	mpz_t *rhs = numbers_new((size_t)s->rank + 1);
	int rc;

	for (int i = 0; i < s->rank; i++) {
		mpz_set(rhs[i], s->rhs[s->row[i]]);
	}
	rc = exact_solve(&s->matrix, s->rank, s->row, s->col, false, rhs, s->num, s->den, err);
	numbers_free(rhs, (size_t)s->rank + 1);
	return rc;
}

static bool fits(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX;
}

static int64_t load_of(const struct cost_master *m, size_t j, int row)
{
	const struct cost_column *c = m->columns.v[j];

	return m->blocks.v[c->block].times * c->uses[row];
}

/* ---- weights ---- */

/* Rows whose load is all that they may have, those with a price first. */
static void list_full_rows(const struct cost_master *m, struct cost_system *s)
{
	double time = mpq_get_d(m->time), most = 0;
	double *load = x_new((size_t)m->net->n_rows + 1, sizeof(*load));

	for (int r = 0; r < m->net->n_rows; r++) {
		for (size_t j = 0; j < m->columns.n; j++) {
			load[r] += m->value[j] * (double)load_of(m, j, r);
		}
		load[r] /= (double)cost_row_cap(m->net, r);
		most = fmax(most, load[r]);
	}
	time = m->second ? time : most;
	for (int priced = 1; priced >= 0; priced--) {
		for (int r = 0; r < m->net->n_rows; r++) {
			if ((m->dual[r] < -TINY) == priced && load[r] > time * (1 - NEAR)) {
				vec_push(&s->row_of, r);
			}
		}
	}
	free(load);
}

/* A row of the system divided by what all its numbers have in common. *fit: they are small. */
static void put_row(const struct cost_master *m, struct cost_system *s, int r, bool *fit)
{
	int64_t common = cost_row_cap(m->net, r), cap;
	size_t used = s->col_of.n - !m->second;

	exact_row(&s->matrix);
	for (size_t i = 0; i < used; i++) {
		common = rat_gcd(common, load_of(m, (size_t)s->col_of.v[i], r));
	}
	for (size_t i = 0; i < used; i++) {
		int64_t v = load_of(m, (size_t)s->col_of.v[i], r) / common;

		*fit = *fit && fits(v);
		if (v && *fit) {
			exact_put(&s->matrix, (int)i, (int)v);
		}
	}
	cap = cost_row_cap(m->net, r) / common;
	*fit = *fit && fits(cap);
	if (!m->second && *fit) {
		exact_put(&s->matrix, (int)used, (int)-cap);
	}
}

/* After the basis: T times what a row carries, with T's denominator multiplied out. */
static void set_rhs(const struct cost_master *m, struct cost_system *s, size_t row, int r)
{
	int64_t common = cost_row_cap(m->net, r);

	for (size_t i = 0; i < s->col_of.n; i++) {
		common = rat_gcd(common, load_of(m, (size_t)s->col_of.v[i], r));
	}
	mpz_mul_si(s->rhs[row], mpq_numref(m->time), cost_row_cap(m->net, r) / common);
}

/* Blocks' rows, then the full ones; columns that are used, then the time. */
static void weight_system(const struct cost_master *m, struct cost_system *s, bool *fit)
{
	size_t used;

	*fit = true;
	for (size_t j = 0; j < m->columns.n; j++) {
		if (m->value[j] > TINY) {
			vec_push(&s->col_of, (int32_t)j);
		}
	}
	used = s->col_of.n;
	if (!m->second) {
		vec_push(&s->col_of, -1);
	}
	for (size_t b = 0; b < m->blocks.n; b++) {
		vec_push(&s->row_of, -1 - (int32_t)b);
	}
	list_full_rows(m, s);
	s->matrix.cols = (int)s->col_of.n;
	for (size_t i = 0; i < s->row_of.n && *fit; i++) {
		int r = s->row_of.v[i];

		if (r >= 0) {
			put_row(m, s, r, fit);
			continue;
		}
		exact_row(&s->matrix);
		for (size_t k = 0; k < used; k++) {
			if (m->columns.v[s->col_of.v[k]]->block == -1 - r) {
				exact_put(&s->matrix, (int)k, 1);
			}
		}
	}
	if (!*fit) {
		return;
	}
	system_basis(s);
	for (size_t i = 0; i < s->row_of.n; i++) {
		if (s->row_of.v[i] >= 0 && m->second) {
			set_rhs(m, s, i, s->row_of.v[i]);
		} else if (s->row_of.v[i] < 0) {
			mpz_set_ui(s->rhs[i], 1);
			if (m->second) {
				mpz_set(s->rhs[i], mpq_denref(m->time));
			}
		}
	}
}

/* Takes the solution over; false: it is no solution of the program. */
static bool take_weights(struct cost_master *m, const struct cost_system *s)
{
	mpq_t time, cost, sum;
	bool good = true;

	mpq_inits(time, cost, sum, NULL);
	for (size_t j = 0; j < m->columns.n; j++) {
		mpq_set_ui(m->weight[j], 0, 1);
	}
	for (int i = 0; i < s->rank; i++) {
		int32_t j = s->col_of.v[s->col[i]];
		mpq_t *to = j < 0 ? &time : &m->weight[j];

		mpq_set_num(*to, s->num[i]);
		mpq_set_den(*to, s->den);
		mpq_canonicalize(*to);
		if (j >= 0 && m->second) {
			mpq_set_z(sum, mpq_denref(m->time));
			mpq_div(*to, *to, sum);
		}
		good = good && mpq_sgn(*to) >= 0;
	}
	for (size_t b = 0; b < m->blocks.n && good; b++) {
		mpq_set_ui(sum, 0, 1);
		for (size_t j = 0; j < m->columns.n; j++) {
			if (m->columns.v[j]->block == (int)b) {
				mpq_add(sum, sum, m->weight[j]);
			}
		}
		good = mpq_cmp_ui(sum, 1, 1) == 0;
	}
	if (good) {
		mpq_set(sum, m->second ? m->time : time);
		cost_measure(m, time, cost);
		good = mpq_cmp(time, sum) <= 0;
	}
	mpq_clears(time, cost, sum, NULL);
	return good;
}

/* Where the program was stopped before it was solved, the first column of a block is all. */
static void round_weights(struct cost_master *m)
{
	for (size_t b = 0; b < m->blocks.n; b++) {
		int64_t sum = 0, left;

		for (int pass = 0; pass < 2; pass++) {
			for (size_t j = 0; j < m->columns.n; j++) {
				int64_t v = llround(ldexp(fmax(m->value[j], 0), WEIGHT_BITS));

				if (m->columns.v[j]->block != (int)b) {
					continue;
				}
				if (pass == 1) {
					rat_set(m->weight[j], sum > 0 ? v : left,
						sum > 0 ? sum : 1);
					left = 0;
				}
				sum += pass == 0 ? v : 0;
			}
			left = 1;
		}
	}
}

int cost_exact_weights(struct cost_master *m, bool *found, struct err *err)
{
	struct cost_system s;
	int rc = 0;

	system_init(&s);
	weight_system(m, &s, found);
	if (*found) {
		rc = system_solve(&s, err);
		*found = rc == 0 && take_weights(m, &s);
	}
	if (rc == WEFT_EINVAL) {
		err_clear(err);
		rc = 0;
	}
	if (rc == 0 && !*found) {
		round_weights(m);
	}
	system_fini(&s);
	return rc;
}

/* ---- bound ---- */

/* Equations of columns: those that are used, then those that are as cheap. */
static void price_system(const struct cost_master *m, struct cost_system *s, bool *fit)
{
	int rows = m->net->n_rows;

	*fit = true;
	for (int r = 0; r < rows; r++) {
		if (m->dual[r] < -TINY) {
			vec_push(&s->col_of, r);
		}
	}
	for (size_t b = 0; b < m->blocks.n; b++) {
		vec_push(&s->col_of, -1 - (int32_t)b);
	}
	if (!m->second) {
		vec_push(&s->row_of, -1);
	}
	for (int used = 1; used >= 0; used--) {
		for (size_t j = 0; j < m->columns.n; j++) {
			const struct cost_column *c = m->columns.v[j];
			double miss = m->second ? (double)m->blocks.v[c->block].times *
						  (double)c->cost / m->cost_unit : 0;

			for (int r = 0; r < rows; r++) {
				miss -= m->dual[r] * (double)load_of(m, j, r) /
					((double)cost_row_cap(m->net, r) * m->time_unit);
			}
			miss -= m->dual[rows + c->block];
			if ((m->value[j] > TINY) == used && fabs(miss) < NEAR) {
				vec_push(&s->row_of, (int32_t)j);
			}
		}
	}
	s->matrix.cols = (int)s->col_of.n;
	for (size_t i = 0; i < s->row_of.n; i++) {
		int32_t j = s->row_of.v[i];

		exact_row(&s->matrix);
		for (size_t k = 0; k < s->col_of.n; k++) {
			int32_t r = s->col_of.v[k];
			int64_t v = j < 0 ? (r < 0 ? 0 : cost_row_cap(m->net, r))
				    : r >= 0 ? m->columns.v[j]->uses[r]
				    : m->columns.v[j]->block == -1 - r ? -1 : 0;

			*fit = *fit && fits(v);
			if (v && *fit) {
				exact_put(&s->matrix, (int)k, (int)v);
			}
		}
	}
	if (!*fit) {
		return;
	}
	system_basis(s);
	for (size_t i = 0; i < s->row_of.n; i++) {
		int32_t j = s->row_of.v[i];

		mpz_set_si(s->rhs[i], j < 0 ? 1 : m->second ? -m->columns.v[j]->cost : 0);
	}
}

/* Prices of rows, and of a unit of cost, in whole numbers without a common divisor. */
static void take_prices(struct cost_master *m, const struct cost_system *s, mpz_t unit)
{
	mpz_t common;

	mpz_init(common);
	mpz_set(unit, s->den);
	mpz_set(common, m->second ? s->den : common);
	for (int r = 0; r < m->net->n_rows; r++) {
		mpz_set_ui(m->row_exact[r], 0);
	}
	for (int i = 0; i < s->rank; i++) {
		int32_t r = s->col_of.v[s->col[i]];

		if (r >= 0 && mpz_sgn(s->num[i]) > 0) {
			mpz_set(m->row_exact[r], s->num[i]);
			mpz_gcd(common, common, s->num[i]);
		}
	}
	for (int r = 0; r < m->net->n_rows && mpz_sgn(common) > 0; r++) {
		mpz_divexact(m->row_exact[r], m->row_exact[r], common);
	}
	if (m->second) {
		mpz_divexact(unit, unit, common);
	}
	mpz_clear(common);
}

/* Rounded ones; of all rows alike by capacity where there are none, or that is asked for. */
static void round_prices(struct cost_master *m, bool alike, mpz_t unit)
{
	const struct cost_net *net = m->net;
	double largest = m->second ? 1 : 0, cost = 1, scale;

	for (int r = 0; r < net->n_rows; r++) {
		m->row_price[r] = fmax(0, -m->dual[r]) /
				  ((double)cost_row_cap(net, r) * m->time_unit) *
				  (m->second ? m->cost_unit : 1);
		m->row_price[r] = alike ? 0 : m->row_price[r];
		largest = fmax(largest, m->row_price[r]);
	}
	for (int r = 0; r < net->n_rows && largest == 0; r++) {
		m->row_price[r] = 1 / (double)net->rows[r].cap;
	}
	largest = largest > 0 ? largest : 1;
	scale = fmin(ldexp(1, PRICE_BITS), (double)cost_max_price(m->search) / 64);
	for (int a = 0; a < net->m; a++) {
		cost = fmax(cost, (double)net->cost[a]);
	}
	/* Few limits are above an arc. */
	scale = m->second ? floor(scale / largest / cost) : scale / largest;
	scale = m->second && scale < 1 ? 1 : scale;
	for (int r = 0; r < net->n_rows; r++) {
		mpz_set_d(m->row_exact[r], floor(m->row_price[r] * scale));
	}
	mpz_set_d(unit, m->second ? scale : 0);
}

/* Sets the prices of arcs; false: too large. */
static bool price_arcs(struct cost_master *m, const mpz_t unit)
{
	const struct cost_net *net = m->net;
	bool good = true;
	mpz_t sum;

	mpz_init(sum);
	for (int a = 0; a < net->m && good; a++) {
		mpz_mul_si(sum, unit, m->second ? net->cost[a] : 0);
		for (int i = net->row_first[a]; i < net->row_first[a + 1]; i++) {
			mpz_add(sum, sum, m->row_exact[net->row[i]]);
		}
		good = mpz_cmp_si(sum, cost_max_price(m->search)) <= 0;
		m->price[a] = good ? mpz_get_si(sum) : 0;
	}
	mpz_clear(sum);
	if (good) {
		cost_set_prices(m->search, m->price);
	}
	return good;
}

/* Weak duality: what all blocks cost at least, less what time is worth. */
static int prove(struct cost_master *m, const mpz_t unit, mpq_t bound, struct err *err)
{
	mpq_t worth, x;
	int rc = 0;

	mpq_inits(worth, x, NULL);
	mpq_set_ui(bound, 0, 1);
	for (size_t b = 0; b < m->blocks.n && rc == 0; b++) {
		int64_t least = 0;

		rc = cost_price(m->search, &m->blocks.v[b], NULL, &least, err);
		mpz_set_si(mpq_numref(x), least);
		mpz_set_ui(mpq_denref(x), 1);
		mpz_mul_si(mpq_numref(x), mpq_numref(x), m->blocks.v[b].times);
		mpq_add(bound, bound, x);
	}
	for (int r = 0; r < m->net->n_rows; r++) {
		mpq_set_z(x, m->row_exact[r]);
		mpz_mul_si(mpq_numref(x), mpq_numref(x), cost_row_cap(m->net, r));
		mpq_add(worth, worth, x);
	}
	if (m->second) {
		mpq_mul(worth, worth, m->time);
		mpq_sub(bound, bound, worth);
		mpq_set_z(worth, unit);
	}
	/* Costs are not negative. */
	if (mpq_sgn(worth) > 0 && mpq_sgn(bound) > 0) {
		mpq_div(bound, bound, worth);
	} else {
		mpq_set_ui(bound, 0, 1);
	}
	mpq_clears(worth, x, NULL);
	return rc;
}

/* Rounded prices, where they prove more. */
static int improve_bound(struct cost_master *m, bool alike, mpq_t best, mpz_t unit,
			 struct err *err)
{
	mpq_t other;
	int rc = 0;

	mpq_init(other);
	round_prices(m, alike, unit);
	if (price_arcs(m, unit) && (rc = prove(m, unit, other, err)) == 0 &&
	    mpq_cmp(other, best) > 0) {
		mpq_set(best, other);
	}
	mpq_clear(other);
	return rc;
}

int cost_exact_bound(struct cost_master *m, struct err *err)
{
	mpq_t *best = m->second ? &m->cost_bound : &m->time_bound;
	struct cost_system s;
	bool exact;
	mpz_t unit;
	int rc = 0;

	mpz_init(unit);
	system_init(&s);
	price_system(m, &s, &exact);
	if (exact) {
		rc = system_solve(&s, err);
		exact = rc == 0;
		if (rc == WEFT_EINVAL) {
			err_clear(err);
			rc = 0;
		}
	}
	if (rc == 0 && exact) {
		take_prices(m, &s, unit);
		exact = price_arcs(m, unit);
		rc = exact ? prove(m, unit, *best, err) : 0;
	}
	if (rc == 0 && (!exact || mpq_cmp(*best, m->second ? m->cost : m->time) != 0)) {
		/* What was stopped early may have no good prices. */
		if (m->stopped && !m->second && (rc = improve_bound(m, true, *best, unit, err))) {
			goto out;
		}
		rc = improve_bound(m, false, *best, unit, err);
	}
out:
	system_fini(&s);
	mpz_clear(unit);
	return rc;
}
