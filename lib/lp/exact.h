/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact integer linear algebra: independent rows of a sparse matrix, and
 * solutions of square systems as fractions. It turns an optimum that is
 * known to some digits into one that is proven.
 */
#ifndef WEFT_LIB_LP_EXACT_H
#define WEFT_LIB_LP_EXACT_H

#include <gmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/vec.h"

struct exact_entry {
	int32_t col, value;
};

/* Rows one after the other; zeroed it is empty. */
struct exact_matrix {
	int cols;
	VEC(int64_t) first;	/* of each row, in entries */
	VEC(struct exact_entry) entries;
};

void exact_fini(struct exact_matrix *m);

/* Begins a new last row; entries follow with exact_put, a column once a
 * row. */
void exact_row(struct exact_matrix *m);
void exact_put(struct exact_matrix *m, int col, int value);
/* One past the entries of row i. */
int64_t exact_row_end(const struct exact_matrix *m, int i);

/*
 * The first rows that are independent of the rows before them, and as many
 * columns on which they are independent, in row[] and col[]; at most `most`
 * of them (room for as many). The first k rows named are independent on the
 * first k columns named, for each k. The computation is modulo a prime, so a row may,
 * very rarely, be left out wrongly; those named are independent. Returns how many.
 * O(rows * rank * cols).
 */
int exact_basis(const struct exact_matrix *m, int most, int32_t *row, int32_t *col);

/*
 * Solves the square system of the named rows and columns, which must be
 * independent modulo the prime as exact_basis finds them: A x = rhs, or
 * A^T x = rhs when transposed; x[i] = num[i] / den, den > 0, over the
 * initialised numbers of the caller. The solution is checked exactly before
 * it is returned. p-adic lifting (Dixon 1982): O(n^3 + n^2 digits), n
 * numbers of as many digits. WEFT_EINVAL when singular modulo the prime.
 */
int exact_solve(const struct exact_matrix *m, int n, const int32_t *row, const int32_t *col,
		bool transposed, mpz_t *rhs, mpz_t *num, mpz_t den, struct err *err);

#endif
