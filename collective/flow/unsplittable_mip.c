/* One path a pair as an integer program over a pool; see unsplittable.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/flow/unsplittable.h"
#include "lib/lp/lp.h"

/* Rows: an arc each (paths - cap U <= 0), then a pair each (= 1). Columns: U
 * and then the pool. */
static int make_program(const struct flow_net *net,
			const struct flow_paths *pool, struct lp *lp,
			struct err *err)
{
	int *rows = malloc(((size_t)net->m + 1) * sizeof(*rows));
	double *values = malloc(((size_t)net->m + 1) * sizeof(*values));
	bool unit = true;
	int rc = rows && values ? 0 : err_nomem(err), pair = -1;

	for (int a = 0; a < net->m && rc == 0; a++) {
		rows[a] = a;
		values[a] = -(double)net->units[a];
		unit = unit && net->units[a] == 1;
		rc = lp_add_row(lp, LP_LE, 0, NULL, err);
	}
	rc = rc ? rc : lp_add_col(lp, 1, 0, LP_INF, unit, net->m, rows, values,
				  NULL, err);
	for (size_t i = 0; i < pool->v.n && rc == 0; i++) {
		const struct flow_path *q = &pool->v.v[i];

		if (q->pair != pair) {
			pair = q->pair;
			rc = lp_add_row(lp, LP_EQ, 1, NULL, err);
		}
		for (int k = 0; k < q->n_arcs; k++) {
			rows[k] = pool->arcs.v[q->first + k];
			values[k] = 1;
		}
		rows[q->n_arcs] = lp_rows(lp) - 1;
		values[q->n_arcs] = 1;
		rc = rc ? rc : lp_add_col(lp, 0, 0, 1, true, q->n_arcs + 1,
					  rows, values, NULL, err);
	}
	free(rows);
	free(values);
	return rc;
}

/* The path that each pair has the most of. */
static void choose(const struct lp *lp, const struct flow_paths *pool,
		   int64_t *chosen)
{
	int64_t at = -1;

	for (size_t i = 0; i < pool->v.n; i++) {
		if (i == 0 || pool->v.v[i].pair != pool->v.v[i - 1].pair) {
			chosen[++at] = (int64_t)i;
		} else if (lp_value(lp, (int)i + 1) >
			   lp_value(lp, (int)chosen[at] + 1)) {
			chosen[at] = (int64_t)i;
		}
	}
}

int single_integer(const struct flow_net *net, const struct flow_paths *pool,
		   const struct single_options *opt, double time_limit_s,
		   double *congestion, bool *better, int64_t *chosen,
		   struct err *err)
{
	struct lp_options lopt = {
		.time_limit_s = time_limit_s, .mip_gap = opt->tolerance,
		.cancel = opt->cancel,
	};
	struct lp_result res;
	struct lp *lp = NULL;
	int rc = lp_new(&lp, err);

	*better = false;
	rc = rc ? rc : make_program(net, pool, lp, err);
	rc = rc ? rc : lp_run(lp, &lopt, &res, err);
	if (rc == 0 && (res.outcome == LP_OPTIMAL ||
			res.outcome == LP_FEASIBLE) &&
	    res.objective < *congestion * (1 - 1e-9)) {
		*better = true;
		*congestion = res.objective;
		choose(lp, pool, chosen);
	}
	lp_free(lp);
	return rc;
}
