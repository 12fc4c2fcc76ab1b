/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digraphs for a group of ranks: the finder's frontier for collectives that gather and sum, and its
 * list by flow for all-to-all. Where a share serves both kinds, each digraph gets both figures.
 */
#include <stdlib.h>

#include "collective/bfb/bfb.h"
#include "collective/workload/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

/* Of an all-to-all, nodes by arcs up to which the frontier's digraphs are solved as well. */
#define FLOW_SIZE (1 << 16)

static const struct mcf_options coarse = { .gap = COLL_WANT_GAP, .max_passes = COLL_WANT_PASSES };

void digraphs_fini(struct workload_planner *pl)
{
	for (size_t i = 0; i < pl->digraphs.n; i++) {
		for (size_t k = 0; k < pl->digraphs.v[i].list.n; k++) {
			free(pl->digraphs.v[i].list.v[k].expr);
		}
		vec_fini(&pl->digraphs.v[i].list);
	}
	vec_fini(&pl->digraphs);
}

/* Nothing known of a size is no error. */
static int passed_over(int rc, struct err *err)
{
	if (rc == WEFT_EINFEASIBLE || rc == WEFT_ELIMIT) {
		err_clear(err);
		return 0;
	}
	return rc;
}

static int add_frontier(struct workload_planner *pl, struct digraphs *d, struct err *err)
{
	struct coll_query q = { .n = d->ranks, .degree = d->ports, .kind = COLL_ALLGATHER,
				.bidirectional = pl->p->both };
	struct coll_frontier f;
	int rc = coll_finder_run(pl->finder, &q, false, &f, err);

	for (size_t i = 0; !rc && i < f.points.n; i++) {
		const struct coll_point *p = &f.points.v[i];

		vec_push(&d->list, (struct workload_share){ .expr = x_dup(p->expr),
				   .steps = p->steps, .num = p->num, .den = p->den });
	}
	coll_frontier_fini(&f);
	return passed_over(rc, err);
}

static int add_flows(struct workload_planner *pl, struct digraphs *d, struct err *err)
{
	struct coll_flow_query q = { .n = d->ranks, .degree = d->ports, .flow = coarse,
				     .bidirectional = pl->p->both, .most = COLL_WANT_FLOWS };
	struct coll_flow_list l;
	int rc = coll_find_flow(&q, &l, err);

	for (size_t i = 0; !rc && i < l.points.n; i++) {
		const struct coll_flow_point *p = &l.points.v[i];

		vec_push(&d->list, (struct workload_share){ .expr = x_dup(p->expr),
				   .diameter = p->diameter, .congestion = p->flow.congestion });
	}
	coll_flow_list_fini(&l);
	return passed_over(rc, err);
}

static int solve_flow(const struct topo *t, struct workload_share *s, struct err *err)
{
	struct mcf_result res;
	int rc = mcf_rate(t, NULL, &coarse, &res, err);

	s->congestion = res.congestion;
	s->diameter = topo_diameter(t);
	return rc;
}

static int solve_gather(const struct topo *t, int ports, struct workload_share *s, struct err *err)
{
	mpq_t factor, all;
	int rc;

	mpq_init(factor);
	mpq_init(all);
	rc = coll_bfb_factor(COLL_ALLGATHER, t, &s->steps, factor, err);
	rat_set(all, ports, topo_max_degree(t));
	mpq_mul(factor, factor, all);
	if (!rc && mpz_fits_slong_p(mpq_numref(factor)) && mpz_fits_slong_p(mpq_denref(factor))) {
		s->num = mpz_get_si(mpq_numref(factor));
		s->den = mpz_get_si(mpq_denref(factor));
	}
	mpq_clear(factor);
	mpq_clear(all);
	return rc;
}

/* What the digraph does not have yet; it keeps a figure of 0 where that cannot be found. */
static int complete(const struct digraphs *d, struct workload_share *s, struct err *err)
{
	bool gather = d->gathers && s->den == 0, flow = d->pairs && s->congestion <= 0;
	struct topo *t;
	int rc;

	if (!gather && !flow) {
		return 0;
	}
	rc = topo_parse(s->expr, &t, NULL, err);
	if (rc) {
		return rc;
	}
	if (gather) {
		rc = solve_gather(t, d->ports, s, err);
	}
	if (!rc && flow && (int64_t)d->ranks * topo_m(t) <= FLOW_SIZE) {
		rc = solve_flow(t, s, err);
	}
	topo_free(t);
	return passed_over(rc, err);
}

int digraphs_of(struct workload_planner *pl, int ranks, int ports, bool gathers, bool pairs,
		const struct digraphs **out, struct err *err)
{
	struct digraphs *d = NULL;
	int rc = 0;

	for (size_t i = 0; i < pl->digraphs.n && !d; i++) {
		d = &pl->digraphs.v[i];
		d = d->ranks == ranks && d->ports == ports ? d : NULL;
	}
	if (!d) {
		vec_push(&pl->digraphs, (struct digraphs){ .ranks = ranks, .ports = ports });
		d = &pl->digraphs.v[pl->digraphs.n - 1];
		rc = add_frontier(pl, d, err);
	}
	if (!rc && pairs && !d->pairs) {
		rc = add_flows(pl, d, err);
	}
	d->gathers |= gathers;
	d->pairs |= pairs;
	for (size_t i = 0; i < d->list.n && !rc; i++) {
		rc = complete(d, &d->list.v[i], err);
	}
	*out = d;
	return rc;
}
