/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact integer linear algebra. Ranks and inverses are computed modulo one
 * prime of 31 bits; a solution is lifted from there digit by digit (Dixon
 * 1982) and turned into fractions, which are checked in integers.
 */
#include "lib/lp/exact.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

/* Below 2^31, so that a product of residues plus one fits 64 bits. */
#define PRIME UINT64_C(2147483629)

void exact_fini(struct exact_matrix *m)
{
	vec_fini(&m->first);
	vec_fini(&m->entries);
}

void exact_row(struct exact_matrix *m)
{
	vec_push(&m->first, (int64_t)m->entries.n);
}

void exact_put(struct exact_matrix *m, int col, int value)
{
	vec_push(&m->entries, (struct exact_entry){ col, value });
}

static int exact_rows(const struct exact_matrix *m)
{
	return (int)m->first.n;
}

int64_t exact_row_end(const struct exact_matrix *m, int i)
{
	return i + 1 < exact_rows(m) ? m->first.v[i + 1]
				     : (int64_t)m->entries.n;
}

static uint64_t residue(int64_t v)
{
	int64_t r = v % (int64_t)PRIME;

	return (uint64_t)(r < 0 ? r + (int64_t)PRIME : r);
}

static uint64_t inverse(uint64_t a)
{
	uint64_t result = 1, e = PRIME - 2;

	for (; e; e >>= 1) {
		if (e & 1) {
			result = result * a % PRIME;
		}
		a = a * a % PRIME;
	}
	return result;
}

/* to -= factor * from */
static void subtract(uint64_t *to, const uint64_t *from, uint64_t factor, int n)
{
	uint64_t minus = PRIME - factor;

	for (int j = 0; j < n; j++) {
		to[j] = (to[j] + minus * from[j]) % PRIME;
	}
}

static void scale(uint64_t *row, uint64_t factor, int n)
{
	for (int j = 0; j < n; j++) {
		row[j] = row[j] * factor % PRIME;
	}
}

/* ---- independent rows ---- */

int exact_basis(const struct exact_matrix *m, int most, int32_t *row, int32_t *col)
{
	int rows = exact_rows(m), n = m->cols, room = rows < n ? rows : n, rank = 0;
	uint64_t *pivots = x_alloc((size_t)room * n + 1, sizeof(*pivots));
	uint64_t *line = x_new((size_t)n + 1, sizeof(*line));

	most = most < room ? most : room;
	for (int i = 0; i < rows && rank < most; i++) {
		int at = 0;

		memset(line, 0, (size_t)n * sizeof(*line));
		for (int64_t e = m->first.v[i]; e < exact_row_end(m, i); e++) {
			line[m->entries.v[e].col] = residue(m->entries.v[e].value);
		}
		for (int k = 0; k < rank; k++) {
			if (line[col[k]]) {
				subtract(line, pivots + (size_t)k * n, line[col[k]], n);
			}
		}
		while (at < n && !line[at]) {
			at++;
		}
		if (at < n) {
			scale(line, inverse(line[at]), n);
			memcpy(pivots + (size_t)rank * n, line, (size_t)n * sizeof(*line));
			row[rank] = i;
			col[rank++] = at;
		}
	}
	free(pivots);
	free(line);
	return rank;
}

/* ---- square systems ---- */

struct exact_system {
	int n;
	int32_t *a;		/* n x n */
	uint64_t *inv;		/* its inverse modulo the prime, n x n */
	mpz_t *rhs;		/* the caller's */
	mpz_t *residual;	/* n */
	mpz_t *x;		/* n: the solution modulo `modulus` */
	uint64_t *digit;	/* n */
	uint64_t *reduced;	/* n */
	mpz_t modulus;
};

static void system_fini(struct exact_system *s)
{
	free(s->a);
	free(s->inv);
	free(s->digit);
	free(s->reduced);
	numbers_free(s->residual, s->n);
	numbers_free(s->x, s->n);
	mpz_clear(s->modulus);
}

static void gather(struct exact_system *s, const struct exact_matrix *m, const int32_t *row,
		   const int32_t *col, bool transposed)
{
	int32_t *at = x_alloc((size_t)m->cols + 1, sizeof(*at));
	size_t n = (size_t)s->n;

	s->a = x_new(n * n + 1, sizeof(*s->a));
	for (int j = 0; j < m->cols; j++) {
		at[j] = -1;
	}
	for (int j = 0; j < s->n; j++) {
		at[col[j]] = j;
	}
	for (size_t i = 0; i < n; i++) {
		for (int64_t e = m->first.v[row[i]]; e < exact_row_end(m, row[i]); e++) {
			int j = at[m->entries.v[e].col];

			if (j >= 0) {
				s->a[transposed ? (size_t)j * n + i
						: i * n + (size_t)j] =
					m->entries.v[e].value;
			}
		}
	}
	free(at);
}

/* Gauss and Jordan on a copy; false when singular. */
static bool eliminate(uint64_t *w, uint64_t *inv, int n)
{
	for (int k = 0; k < n; k++) {
		uint64_t *wk = w + (size_t)k * n, *ik = inv + (size_t)k * n;
		uint64_t factor;
		int p = k;

		while (p < n && !w[(size_t)p * n + k]) {
			p++;
		}
		if (p == n) {
			return false;
		}
		/* Adding the pivot's row does for exchanging them. */
		if (p != k) {
			subtract(wk, w + (size_t)p * n, PRIME - 1, n);
			subtract(ik, inv + (size_t)p * n, PRIME - 1, n);
		}
		factor = inverse(wk[k]);
		scale(wk, factor, n);
		scale(ik, factor, n);
		for (int i = 0; i < n; i++) {
			uint64_t f = w[(size_t)i * n + k];

			if (i != k && f) {
				subtract(w + (size_t)i * n, wk, f, n);
				subtract(inv + (size_t)i * n, ik, f, n);
			}
		}
	}
	return true;
}

static int invert(struct exact_system *s, struct err *err)
{
	size_t n = (size_t)s->n;
	uint64_t *w = x_alloc(n * n + 1, sizeof(*w));
	bool good;

	s->inv = x_new(n * n + 1, sizeof(*s->inv));
	for (size_t i = 0; i < n * n; i++) {
		w[i] = residue(s->a[i]);
	}
	for (size_t i = 0; i < n; i++) {
		s->inv[i * n + i] = 1;
	}
	good = eliminate(w, s->inv, s->n);
	free(w);
	return good ? 0 : err_set(err, WEFT_EINVAL, "exact system of %d rows "
				  "is singular", s->n);
}

/* One digit more of the solution. */
static void lift(struct exact_system *s)
{
	size_t n = (size_t)s->n;
	mpz_t t;

	mpz_init(t);
	for (size_t i = 0; i < n; i++) {
		s->reduced[i] = mpz_fdiv_ui(s->residual[i], PRIME);
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t sum = 0;

		for (size_t j = 0; j < n; j++) {
			sum = (sum + s->inv[i * n + j] * s->reduced[j]) %
			      PRIME;
		}
		s->digit[i] = sum;
		mpz_addmul_ui(s->x[i], s->modulus, sum);
	}
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < n; j++) {
			int32_t a = s->a[i * n + j];

			if (a) {
				mpz_set_si(t, a);
				mpz_submul_ui(s->residual[i], t, s->digit[j]);
			}
		}
		mpz_divexact_ui(s->residual[i], s->residual[i], PRIME);
	}
	mpz_mul_ui(s->modulus, s->modulus, PRIME);
	mpz_clear(t);
}

/* num / den = v modulo the modulus with both below its root; false when
 * there is none. */
static bool reconstruct(const struct exact_system *s, const mpz_t v, mpz_t num, mpz_t den)
{
	mpz_t r, s0, s1, q, limit;
	bool good;

	mpz_inits(r, s0, s1, q, limit, NULL);
	mpz_fdiv_q_2exp(limit, s->modulus, 1);
	mpz_sqrt(limit, limit);
	mpz_set(r, s->modulus);
	mpz_set(num, v);
	mpz_set_ui(s1, 1);
	while (mpz_cmp(num, limit) > 0) {
		mpz_fdiv_qr(q, r, r, num);
		mpz_swap(r, num);
		mpz_submul(s0, q, s1);
		mpz_swap(s0, s1);
	}
	mpz_set(den, s1);
	if (mpz_sgn(den) < 0) {
		mpz_neg(den, den);
		mpz_neg(num, num);
	}
	good = mpz_sgn(den) > 0 && mpz_cmp(den, limit) <= 0;
	mpz_clears(r, s0, s1, q, limit, NULL);
	return good;
}

/* All components over one denominator, which grows on the way. */
static bool read_solution(const struct exact_system *s, mpz_t *num, mpz_t den)
{
	mpz_t top, d, half;
	bool good = true;

	mpz_inits(top, d, half, NULL);
	mpz_fdiv_q_2exp(half, s->modulus, 1);
	mpz_set_ui(den, 1);
	for (int i = 0; i < s->n && good; i++) {
		mpz_mul(num[i], s->x[i], den);
		mpz_mod(num[i], num[i], s->modulus);
		good = reconstruct(s, num[i], top, d);
		if (good && mpz_cmp_ui(d, 1) != 0) {
			mpz_mul(den, den, d);
		}
	}
	for (int i = 0; i < s->n && good; i++) {
		mpz_mul(num[i], s->x[i], den);
		mpz_mod(num[i], num[i], s->modulus);
		if (mpz_cmp(num[i], half) > 0) {
			mpz_sub(num[i], num[i], s->modulus);
		}
	}
	mpz_clears(top, d, half, NULL);
	return good;
}

static bool is_solution(const struct exact_system *s, mpz_t *num, const mpz_t den)
{
	size_t n = (size_t)s->n;
	bool good = true;
	mpz_t sum, t;

	mpz_inits(sum, t, NULL);
	for (size_t i = 0; i < n && good; i++) {
		mpz_mul(sum, s->rhs[i], den);
		for (size_t j = 0; j < n; j++) {
			if (s->a[i * n + j]) {
				mpz_mul_si(t, num[j], s->a[i * n + j]);
				mpz_sub(sum, sum, t);
			}
		}
		good = mpz_sgn(sum) == 0;
	}
	mpz_clears(sum, t, NULL);
	return good;
}

/* Bits that numerator and denominator of a solution stay below together:
 * twice Hadamard's bound and the right-hand side. */
static size_t max_bits(const struct exact_system *s)
{
	size_t bits = 64, widest = 0;

	for (int i = 0; i < s->n; i++) {
		size_t width = mpz_sizeinbase(s->rhs[i], 2);
		int64_t sum = 1;

		for (int j = 0; j < s->n; j++) {
			sum += llabs((long long)s->a[(size_t)i * s->n + j]);
		}
		while (sum) {
			bits += 2;
			sum >>= 1;
		}
		widest = width > widest ? width : widest;
	}
	return bits + 2 * widest;
}

static int solve(struct exact_system *s, mpz_t *num, mpz_t den, struct err *err)
{
	size_t bits = max_bits(s);
	int next = 4;

	for (int digits = 1; ; digits++) {
		bool last = mpz_sizeinbase(s->modulus, 2) > bits;

		lift(s);
		if (digits < next && !last) {
			continue;
		}
		if (read_solution(s, num, den) && is_solution(s, num, den)) {
			return 0;
		}
		if (last) {
			return err_set(err, WEFT_EINTERNAL, "exact system of "
				       "%d rows: no fraction fits", s->n);
		}
		next = digits + digits / 2 + 1;
	}
}

int exact_solve(const struct exact_matrix *m, int n, const int32_t *row, const int32_t *col,
		bool transposed, mpz_t *rhs, mpz_t *num, mpz_t den, struct err *err)
{
	struct exact_system s = { .n = n, .rhs = rhs };
	int rc;

	mpz_init_set_ui(s.modulus, 1);
	s.digit = x_new((size_t)n + 1, sizeof(*s.digit));
	s.reduced = x_new((size_t)n + 1, sizeof(*s.reduced));
	s.residual = numbers_new(n);
	s.x = numbers_new(n);
	gather(&s, m, row, col, transposed);
	for (int i = 0; i < n; i++) {
		mpz_set(s.residual[i], rhs[i]);
	}
	rc = invert(&s, err);
	if (rc == 0) {
		rc = solve(&s, num, den, err);
	}
	system_fini(&s);
	return rc;
}
