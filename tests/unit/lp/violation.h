/* SPDX-License-Identifier: Apache-2.0 */
/* How far the values of a program that was solved miss its rows and bounds,
 * summed row by row and not as the solver does it. Include after cmocka.h. */
#ifndef WEFT_TESTS_UNIT_LP_VIOLATION_H
#define WEFT_TESTS_UNIT_LP_VIOLATION_H

#include <math.h>

#include "lib/lp/private.h"

static inline double row_activity(const struct lp *lp, int row)
{
	double sum = 0;

	for (size_t j = 0; j < lp->cols.n; j++) {
		const struct lp_col *c = &lp->cols.v[j];

		for (size_t k = c->first; k < c->first + c->n; k++) {
			if (lp->entries.v[k].row == row) {
				sum += lp->entries.v[k].value *
				       lp_value(lp, (int)j);
			}
		}
	}
	return sum;
}

/* The largest miss, in absolute terms. O(rows * non-zeros). */
static inline double violation(const struct lp *lp)
{
	double worst = 0;

	for (size_t j = 0; j < lp->cols.n; j++) {
		double x = lp_value(lp, (int)j);

		assert_false(isnan(x));
		worst = fmax(worst, lp->cols.v[j].lower - x);
		worst = fmax(worst, x - lp->cols.v[j].upper);
	}
	for (size_t i = 0; i < lp->rows.n; i++) {
		double over = row_activity(lp, (int)i) - lp->rows.v[i].rhs;

		if (lp->rows.v[i].sense != LP_GE) {
			worst = fmax(worst, over);
		}
		if (lp->rows.v[i].sense != LP_LE) {
			worst = fmax(worst, -over);
		}
	}
	return worst;
}

#endif
