/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best rate of an all-gather or broadcast, and how much each arc may pass at it.
 *
 * T* by Newton's method: while a node gets less than all shards within the time, the least cut
 * around it is a fuller set. Within T* a share of k units a root gives arc e the capacity
 * floor(b_e T* k). Trees need whole numbers, and k = the denominator of T* gives them everywhere,
 * but it is enough that arcs into full sets have them, which smaller k may do as well. With a
 * k that is given, the time grows until sets that lack something have it, again by Newton.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/cut_bound.h"
#include "collective/tree/pack/pack_private.h"
#include "lib/base/number/rat.h"

#define SHARE_TRIES 16

/* ---- the digraph ---- */

int pack_net_init(struct pack_net *net, const struct topo *t, enum coll_kind kind, int root,
		  struct err *err)
{
	bool one = coll_has_root(kind);
	int64_t unit;

	*net = (struct pack_net){
		.n = topo_n(t), .m = topo_m(t), .ranks = topo_ranks(t),
		.holders = topo_holders(t),
		.n_roots = one ? 1 : topo_ranks(t),
	};
	arrays_add(&net->arrays, net->arcs, net->m);
	arrays_add(&net->arrays, net->roots, net->n_roots);
	for (int i = 0; i < net->n_roots; i++) {
		net->roots[i] = one ? root : i;
	}
	return coll_cut_arcs(t, net->arcs, &unit, err);
}

void pack_net_fini(struct pack_net *net)
{
	arrays_fini(&net->arrays);
}

/* ---- cuts ---- */

/* floor(cap num / den). */
static int64_t scale(int64_t cap, int64_t num, int64_t den)
{
	__int128 wide = (__int128)cap * num / den;

	return wide > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)wide;
}

/* What arcs may pass within num / den times their capacity, and rate->share from each root. */
static int fill_arcs(const struct pack_net *net, struct pack_rate *rate, int64_t num, int64_t den,
		     struct err *err)
{
	int64_t sum = 0, all = rate->share * net->n_roots;

	for (int a = 0; a < net->m + net->n_roots; a++) {
		struct graph_arc *arc = &rate->arcs[a];
		int64_t cap = a < net->m ? scale(net->arcs[a].cap, num, den) : rate->share;

		*arc = a < net->m ? net->arcs[a]
				  : (struct graph_arc){ .from = net->n,
							.to = net->roots[a - net->m] };
		arc->cap = cap < all ? cap : all;
		if (arc->cap > INT64_MAX / 4 - sum) {
			return err_set(err, WEFT_ELIMIT, "a share of %lld units: arcs would pass "
				       "more than 2^61", (long long)rate->share);
		}
		sum += arc->cap;
	}
	return 0;
}

/* Whether all terminals get rate->share from every root while arcs pass num / den times their
 * capacity; else *ok false, and rate->side becomes a set that lacks something. */
static int is_enough(const struct pack_net *net, struct pack_rate *rate, int64_t num,
		     int64_t den, bool *ok, struct err *err)
{
	int64_t value, all = rate->share * net->n_roots;
	int rc = fill_arcs(net, rate, num, den, err);

	if (rc == 0) {
		rc = graph_root_cut_side(net->n + 1, rate->arcs, net->m + net->n_roots, net->n,
					 net->ranks, all, &value, rate->least, err);
	}
	*ok = rc == 0 && value >= all;
	if (rc == 0 && !*ok) {
		memcpy(rate->side, rate->least, (size_t)net->n * sizeof(*rate->side));
	}
	return rc;
}

static bool enters(const struct pack_net *net, const struct pack_rate *rate, int a)
{
	return !rate->side[net->arcs[a].from] && rate->side[net->arcs[a].to];
}

static int64_t roots_outside(const struct pack_net *net, const struct pack_rate *rate)
{
	int64_t n = 0;

	for (int i = 0; i < net->n_roots; i++) {
		n += !rate->side[net->roots[i]];
	}
	return n;
}

/* The time that the set takes: roots outside over capacity into it. */
static int time_of_side(const struct pack_net *net, const struct pack_rate *rate, int64_t *num,
			int64_t *den, struct err *err)
{
	int64_t into = 0, outside = roots_outside(net, rate), gcd;
	int node = 0;

	for (int a = 0; a < net->m; a++) {
		into += enters(net, rate, a) ? net->arcs[a].cap : 0;
	}
	while (!rate->side[node]) {
		node++;
	}
	if (into == 0) {
		return err_set(err, WEFT_EINFEASIBLE, "rank %d cannot be reached from all others",
			       node);
	}
	gcd = rat_gcd(outside, into);
	*num = outside / gcd;
	*den = into / gcd;
	return 0;
}

/* The fullest terminal. */
static int find_first_side(const struct pack_net *net, struct pack_rate *rate, struct err *err)
{
	int fullest = 0;

	for (int a = 0; a < net->m; a++) {
		rate->surplus[net->arcs[a].to] += net->arcs[a].cap;
	}
	for (int v = 1; v < net->ranks; v++) {
		if (net->n_roots == 1 && net->roots[0] == v) {
			continue;
		}
		if (rate->surplus[v] < rate->surplus[fullest] ||
		    (net->n_roots == 1 && net->roots[0] == fullest)) {
			fullest = v;
		}
	}
	memset(rate->surplus, 0, (size_t)net->n * sizeof(*rate->surplus));
	rate->side[fullest] = true;
	return time_of_side(net, rate, &rate->num, &rate->den, err);
}

/* T*, from the fullest terminal on. */
static int find_time(const struct pack_net *net, struct pack_rate *rate, struct err *err)
{
	bool ok = false;
	int rc;

	rate->num = 0;
	rate->den = 1;
	if (net->ranks > 1 && (rc = find_first_side(net, rate, err))) {
		return rc;
	}
	while (!ok) {
		rate->share = rate->den;
		rc = is_enough(net, rate, rate->num, 1, &ok, err);
		if (rc || (!ok && (rc = time_of_side(net, rate, &rate->num, &rate->den, err)))) {
			return rc;
		}
	}
	return 0;
}

/* ---- shares ---- */

/* Less than this share gives an arc into the fullest set no whole number. */
static int64_t share_grain(const struct pack_net *net, const struct pack_rate *rate)
{
	int64_t grain = 1;

	for (int a = 0; a < net->m; a++) {
		if (enters(net, rate, a)) {
			int64_t need = rate->den / rat_gcd(rate->den, net->arcs[a].cap);

			grain *= need / rat_gcd(grain, need);
		}
	}
	return grain;
}

/* The time num / den in units grows until enough gets into the set. */
static void give_side_more(const struct pack_net *net, const struct pack_rate *rate,
			   int64_t share, int64_t *num, int64_t *den)
{
	int64_t lack = 1;

	while (lack > 0) {
		int64_t best_num = 0, best_den = 1;

		lack = share * roots_outside(net, rate);
		for (int a = 0; a < net->m; a++) {
			int64_t cap = net->arcs[a].cap, units = scale(cap, *num, *den) + 1;

			if (cap == 0 || !enters(net, rate, a)) {
				continue;
			}
			lack -= units - 1;
			if (best_num == 0 ||
			    (__int128)units * best_den < (__int128)best_num * cap) {
				best_num = units;
				best_den = cap;
			}
		}
		if (lack > 0) {
			*num = best_num;
			*den = best_den;
		}
	}
}

/* The least time, and capacities, for a share that is given. */
static int fit_share(const struct pack_net *net, struct pack_rate *rate, int64_t share,
		     struct err *err)
{
	int64_t gcd = rat_gcd(share, rate->den);
	int64_t num = rate->num * (share / gcd), den = rate->den / gcd;
	bool ok = false;

	rate->share = share;
	while (!ok) {
		int rc = is_enough(net, rate, num, den, &ok, err);

		if (rc) {
			return rc;
		}
		if (!ok) {
			give_side_more(net, rate, share, &num, &den);
		}
	}
	return 0;
}

/* No switch got more out than in by rounding down. */
static bool keeps_balance(const struct pack_net *net, const struct pack_rate *rate)
{
	bool balanced = true;

	for (int a = 0; a < net->m; a++) {
		rate->surplus[net->arcs[a].from] += rate->arcs[a].cap;
		rate->surplus[net->arcs[a].to] -= rate->arcs[a].cap;
	}
	for (int v = 0; v < net->n; v++) {
		balanced &= v < net->ranks || rate->surplus[v] <= 0;
		rate->surplus[v] = 0;
	}
	return balanced;
}

/* The least share at which rounding down takes nothing that is needed. */
static int find_share(const struct pack_net *net, struct pack_rate *rate, struct err *err)
{
	int64_t grain = share_grain(net, rate);
	bool ok = false;

	for (int i = 1; i <= SHARE_TRIES && grain * i < rate->den && !ok; i++) {
		int rc;

		rate->share = grain * i;
		rc = is_enough(net, rate, rate->num * rate->share, rate->den, &ok, err);
		if (rc) {
			return rc;
		}
		ok = ok && keeps_balance(net, rate);
	}
	if (ok) {
		return 0;
	}
	rate->share = rate->den;
	return fill_arcs(net, rate, rate->num, 1, err);
}

/* Arcs may pass more, by so many thousandths. */
static void widen(const struct pack_net *net, struct pack_rate *rate, int loss)
{
	for (int a = 0; a < net->m; a++) {
		rate->arcs[a].cap += scale(rate->arcs[a].cap, loss, 1000);
	}
}

int pack_rate_find(const struct pack_net *net, const struct coll_pack_options *opt,
		   struct pack_rate *rate, struct err *err)
{
	int rc;

	*rate = (struct pack_rate){ 0 };
	arrays_add(&rate->arrays, rate->arcs, net->m + net->n_roots);
	arrays_add(&rate->arrays, rate->side, net->n);
	arrays_add(&rate->arrays, rate->least, net->n + 1);
	arrays_add(&rate->arrays, rate->surplus, net->n);
	if ((rc = find_time(net, rate, err))) {
		return rc;
	}
	rc = opt->share > 0 ? fit_share(net, rate, opt->share, err) : find_share(net, rate, err);
	widen(net, rate, opt->loss);
	return rc;
}

void pack_rate_fini(struct pack_rate *rate)
{
	arrays_fini(&rate->arrays);
}
