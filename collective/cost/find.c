/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best rate and the least cost: from collectives to blocks of a program, and its result.
 *
 * Each terminal, or one of each orbit, is the root of a block; collectives that run at once put
 * their blocks into one program. Automorphisms keep the root of a collective that has one;
 * collectives with different roots leave none that helps.
 */
#include <math.h>
#include <stdlib.h>

#include "collective/cost/private.h"
#include "collective/schedule/cut_bound.h"
#include "collective/tree/pack/pack.h"
#include "lib/base/number/rat.h"

void coll_rate_init(struct coll_rate *r)
{
	*r = (struct coll_rate){ 0 };
	mpq_inits(r->time, r->time_bound, r->cost, r->cost_bound, NULL);
}

void coll_rate_fini(struct coll_rate *r)
{
	mpq_clears(r->time, r->time_bound, r->cost, r->cost_bound, NULL);
	vec_fini(&r->parts);
}

/* ---- blocks ---- */

static enum cost_shape shape_of(enum coll_kind kind)
{
	switch (kind) {
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE:
		return COST_IN;
	case COLL_ALLREDUCE:
		return COST_BOTH;
	case COLL_ALLTOALL:
	case COLL_SCATTER:
		return COST_PATHS_OUT;
	case COLL_GATHER:
		return COST_PATHS_IN;
	case COLL_ALLGATHER:
	case COLL_BROADCAST:
		break;
	}
	return COST_OUT;
}

static void add_blocks(struct cost_master *m, const struct coll_rate_demand *d)
{
	const struct cost_net *net = m->net;
	struct cost_block b = { shape_of(d->kind), 0, 1, d->size };

	if (d->kind == COLL_ALLREDUCE) {
		b.n_roots = net->n_roots;
		vec_push(&m->blocks, b);
		return;
	}
	for (int r = 0; r < net->n_roots; r++) {
		if (coll_has_root(d->kind) && net->node[net->roots[r]] != d->root) {
			continue;
		}
		b.first_root = r;
		b.times = d->size * (coll_has_root(d->kind) ? 1 : net->orbit[r]);
		vec_push(&m->blocks, b);
	}
}

/* The root that all have, -1: none has one, -2: not the same. */
static int common_root(const struct coll_rate_demand *d, int n)
{
	int root = coll_has_root(d[0].kind) ? d[0].root : -1;

	for (int i = 1; i < n; i++) {
		if (root != (coll_has_root(d[i].kind) ? d[i].root : -1)) {
			return -2;
		}
	}
	return root;
}

static int check(const struct topo *t, const struct coll_rate_demand *d, int n, struct err *err)
{
	const unsigned all = TOPO_CAN_COPY | TOPO_CAN_REDUCE | TOPO_CAN_STORE;
	int rc = topo_check_order(t, err);

	for (int u = 0; u < topo_ranks(t) && rc == 0; u++) {
		if ((topo_node_flags(t, u) & all) != all) {
			rc = err_set(err, WEFT_EUNSUPPORTED, "the best rate with terminals that "
				     "cannot copy, reduce and store, as node %d", u);
		}
	}
	for (int i = 0; i < n && rc == 0; i++) {
		for (int u = topo_ranks(t); u < topo_n(t) && d[i].kind == COLL_ALLREDUCE; u++) {
			if (topo_node_flags(t, u) & TOPO_CAN_REDUCE) {
				return err_set(err, WEFT_EUNSUPPORTED,
					       "the best rate of all-reduces "
					       "where nodes beside terminals reduce, as node %d",
					       u);
			}
		}
		if (coll_has_root(d[i].kind) && (d[i].root < 0 || d[i].root >= topo_ranks(t))) {
			rc = err_set(err, WEFT_EINVAL, "root %d is none of the %d ranks",
				     d[i].root, topo_ranks(t));
		}
	}
	/* A sum of capacities times nodes must not overflow. */
	for (int a = 0; a < topo_m(t) && rc == 0; a++) {
		if (topo_arc(t, a)->cap > INT64_MAX / 4 / topo_m(t)) {
			rc = err_set(err, WEFT_ELIMIT, "arc %d has capacity %lld: too large to "
				     "find the best rate", a, (long long)topo_arc(t, a)->cap);
		}
	}
	return rc;
}

/* ---- result ---- */

static int by_share(const void *a, const void *b)
{
	const struct coll_rate_part *x = a, *y = b;

	if (x->share != y->share) {
		return x->share > y->share ? -1 : 1;
	}
	return x->arc != y->arc ? x->arc - y->arc : x->limit - y->limit;
}

/* How the bound on the time divides among the rows. */
static void fill_parts(const struct cost_master *m, struct coll_rate *r)
{
	const struct cost_net *net = m->net;
	double sum = 0;

	for (int i = 0; i < net->n_rows; i++) {
		sum += mpz_get_d(m->row_exact[i]) * (double)cost_row_cap(net, i);
	}
	for (int i = 0; i < net->n_rows && sum > 0; i++) {
		const struct cost_row *row = &net->rows[i];
		struct coll_rate_part part = {
			row->arc, row->limit, row->alike,
			mpz_get_d(m->row_exact[i]) * (double)cost_row_cap(net, i) / sum,
		};

		if (part.share > 0) {
			vec_push(&r->parts, part);
		}
	}
	if (r->parts.n > 1) {
		qsort(r->parts.v, r->parts.n, sizeof(*r->parts.v), by_share);
	}
}

/* ---- cuts ---- */

/* On digraphs of terminals without limits a cut says how fast what is copied or summed can be, and
 * trees attain it; of all-reduces where each arc has its reverse. */
static bool is_cut_attained(const struct topo *t, enum coll_kind kind)
{
	return topo_is_plain(t) && kind != COLL_ALLTOALL &&
	       (kind != COLL_ALLREDUCE || topo_is_symmetric(t));
}

/* The time of the cut: with as many ports as this, it is above what a node takes in. */
static int time_of_cut(const struct topo *t, const struct coll_rate_demand *d, mpq_t time,
		       struct err *err)
{
	bool shards = d->kind != COLL_ALLREDUCE && d->kind != COLL_BROADCAST &&
		      d->kind != COLL_REDUCE;
	mpq_t scale;
	int rc = coll_bound(t, NULL, d->kind, d->root, 1 << 30, time, err);

	mpq_init(scale);
	rat_set(scale, d->size * (shards ? topo_ranks(t) : 1), 1 << 30);
	mpq_mul(time, time, scale);
	mpq_clear(scale);
	return rc;
}

/* No node takes in more than the ports above. */
static bool are_ports_enough(const struct topo *t)
{
	int64_t sum = 0;

	for (int a = 0; a < topo_m(t) && sum <= 1 << 30; a++) {
		sum += topo_arc(t, a)->cap;
	}
	return sum <= 1 << 30;
}

/* Begins with packed trees where each root has a block of its own; *done: m->time is attained and
 * the columns are there. */
static int begin_packed(const struct topo *t, const struct coll_rate_demand *d,
			struct cost_master *m, bool *done, struct err *err)
{
	struct coll_pack_options pack = { .kind = d->kind, .root = d->root };
	struct err why = { 0 };
	struct coll_forest f;
	int rc = 0;

	coll_forest_init(&f);
	*done = shape_of(d->kind) != COST_BOTH &&
		shape_of(d->kind) != COST_PATHS_OUT && shape_of(d->kind) != COST_PATHS_IN &&
		(coll_has_root(d->kind) || m->net->n_roots == topo_ranks(t)) &&
		coll_forest_pack(t, &pack, &f, &why) == 0 && !f.group;
	if (*done) {
		rc = time_of_cut(t, d, m->time, err);
		mpq_set_si(m->time_bound, d->size, 1);
		mpq_mul(m->time_bound, m->time_bound, f.time);
		*done = rc == 0 && mpq_equal(m->time_bound, m->time);
	}
	if (*done) {
		cost_take_forest(m, &f);
	}
	coll_forest_fini(&f);
	return rc;
}

/* The first stage, or what a cut and packed trees tell of it. */
static int first_stage(const struct topo *t, const struct coll_rate_demand *d, int n,
		       struct cost_master *m, const struct coll_rate_options *opt,
		       struct coll_rate *r, struct err *err)
{
	bool done = false;
	int rc = 0;

	if (n == 1 && opt->min_cost && !opt->sensitivity && !opt->alone &&
	    is_cut_attained(t, d->kind) && are_ports_enough(t)) {
		rc = begin_packed(t, d, m, &done, err);
	}
	if (rc || done) {
		return rc;
	}
	rc = cost_run_stage(m, false, opt, err);
	if (rc == 0 && opt->sensitivity) {
		fill_parts(m, r);
	}
	return rc;
}

/* Both stages. */
static int solve(const struct topo *t, const struct coll_rate_demand *d, int n,
		 struct cost_master *m, const struct coll_rate_options *opt, struct coll_rate *r,
		 struct err *err)
{
	int rc = first_stage(t, d, n, m, opt, r, err);

	if (rc) {
		return rc;
	}
	mpq_set(r->time, m->time);
	mpq_set(r->time_bound, m->time_bound);
	if (opt->min_cost && !m->stopped) {
		rc = cost_run_stage(m, true, opt, err);
		mpq_set(r->time, m->time);
		mpq_set(r->cost, m->cost);
		mpq_set(r->cost_bound, m->cost_bound);
		r->has_cost = rc == 0;
	}
	r->stopped = m->stopped;
	r->rounds = m->rounds;
	r->columns = (int)m->columns.n;
	r->n = m->net->n;
	r->m = m->net->m;
	return rc;
}

/* Solves on a net, and where f is not NULL makes the forest of it. */
static int run_on(const struct topo *t, const struct cost_net *net,
		  const struct coll_rate_demand *demands, int n,
		  const struct coll_rate_options *opt, struct coll_rate *r, struct coll_forest *f,
		  struct err *err)
{
	struct cost_master m = { 0 };
	int rc;

	cost_master_init(&m, net);
	for (int i = 0; i < n; i++) {
		add_blocks(&m, &demands[i]);
	}
	rc = solve(t, demands, n, &m, opt, r, err);
	if (rc == 0 && f) {
		rc = cost_make_forest(t, &m, demands[0].kind, f, err);
	}
	cost_master_fini(&m);
	return rc;
}

int coll_rate_find(const struct topo *t, const struct coll_rate_demand *demands, int n,
		   const struct coll_rate_options *opt, struct coll_rate *r, struct err *err)
{
	int root = common_root(demands, n);
	bool none = opt->alone || root == -2;
	struct cost_net *net = NULL;
	int rc = check(t, demands, n, err);

	if (rc || topo_ranks(t) == 1) {
		return rc;
	}
	if (n == 1 && !opt->min_cost && !opt->sensitivity && !opt->alone &&
	    is_cut_attained(t, demands->kind) && are_ports_enough(t)) {
		rc = time_of_cut(t, demands, r->time, err);
		mpq_set(r->time_bound, r->time);
		return rc;
	}
	rc = cost_net_new(t, none ? COST_NONE : COST_ALL, none ? -1 : root, &net, err);
	if (rc == 0) {
		rc = run_on(t, net, demands, n, opt, r, NULL, err);
	}
	cost_net_free(net);
	return rc;
}

int coll_rate_forest(const struct topo *t, const struct coll_rate_demand *demand,
		     const struct coll_rate_options *opt, struct coll_rate *r,
		     struct coll_forest *f, struct err *err)
{
	enum cost_shape shape = shape_of(demand->kind);
	bool rooted = coll_has_root(demand->kind), same = false;
	struct cost_net *net = NULL;
	int rc = check(t, demand, 1, err);

	if (rc) {
		return rc;
	}
	if (shape == COST_PATHS_OUT || shape == COST_PATHS_IN || topo_ranks(t) == 1) {
		return err_set(err, WEFT_EUNSUPPORTED, "trees of least cost for %s on %d ranks",
			       coll_kind_name(demand->kind), topo_ranks(t));
	}
	/* All symmetry, where images under a group of those that trees can have are as good. */
	if (!opt->alone && !rooted &&
	    (rc = cost_net_new(t, COST_ALL, -1, &net, err)) == 0) {
		rc = cost_net_set_group(net, t, &same, err);
	}
	if (rc == 0 && !same) {
		cost_net_free(net);
		net = NULL;
		rc = cost_net_new(t, opt->alone ? COST_NONE : COST_FREE,
				  rooted && !opt->alone ? demand->root : -1, &net, err);
	}
	if (rc == 0 && opt->max_work > 0 &&
	    (int64_t)net->n_roots * net->n * net->m > opt->max_work) {
		rc = err_set(err, WEFT_ELIMIT, "trees of least cost: too large a digraph");
	}
	if (rc == 0) {
		rc = run_on(t, net, demand, 1, opt, r, f, err);
	}
	cost_net_free(net);
	return rc;
}
