/* SPDX-License-Identifier: Apache-2.0 */
/* The balancing programs written out for lp_solve: what balance.h finds by
 * cuts and flows, found another way. Include after cmocka.h. */
#ifndef WEFT_TESTS_UNIT_BFB_BALANCE_LP_H
#define WEFT_TESTS_UNIT_BFB_BALANCE_LP_H

#include <math.h>

#include "collective/bfb/balance.h"
#include "lib/lp/lp.h"
#include "tests/unit/schedule/common.h"

/* The least load per unit of capacity of direct-connect-topologies eq. (13)
 * when every item is `chunks` equal parts, which only `whole` must stay
 * whole, eq. (12). */
static inline double min_by_lp(const struct bfb_program *b, int64_t chunks,
				 bool whole)
{
	struct lp_result res;
	struct err err = { 0 };
	struct lp *lp;
	int *rows = malloc((size_t)b->n_links * sizeof(*rows)), row;
	double *caps = malloc((size_t)b->n_links * sizeof(*caps));

	assert_true(rows && caps);
	lp = lp_new();
	must(0, &err);
	for (int w = 0; w < b->n_links; w++) {
		must(lp_add_row(lp, LP_GE, 0, &rows[w], &err), &err);
		caps[w] = (double)b->cap[w];
	}
	must(lp_add_col(lp, 1, 0, LP_INF, false, b->n_links, rows, caps, NULL,
			&err), &err);
	for (int g = 0; g < b->n_groups; g++) {
		const struct bfb_group *gr = &b->groups[g];

		must(lp_add_row(lp, LP_EQ, (double)(gr->items * chunks), &row,
				&err), &err);
		for (int i = gr->first; i < gr->first + gr->n; i++) {
			int of[2] = { rows[b->use[i]], row };
			double sign[2] = { -1, 1 };

			must(lp_add_col(lp, 0, 0, (double)gr->items * chunks,
					whole, 2, of, sign, NULL, &err), &err);
		}
	}
	must(lp_run(lp, NULL, &res, &err), &err);
	assert_int_equal(res.outcome, LP_OPTIMAL);
	lp_free(lp);
	free(rows);
	free(caps);
	return res.objective;
}

/* As far as the solver's numbers go; loads of these tests are fractions with
 * small denominators, so that unequal ones are further apart. */
static inline void assert_load(struct bfb_ratio load, double by_lp)
{
	double x = (double)load.num / (double)load.den;

	assert_true(fabs(x - by_lp) <= 1e-7 * (1 + x));
}

#endif
