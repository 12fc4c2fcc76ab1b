/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The times and steps that the paper and what it compares with state, exactly
 * rounded: Theorems 1 to 3 and the baselines' counts.
 */
#include <gmp.h>
#include <math.h>

#include "optree/baselines/baselines.h"

/* (8 w s)^k >= (2k-1)^k n^(k+1), that is s >= (2k-1) n^(1+1/k) / (8w). */
static int enough(int64_t s, int n, int w, int k)
{
	mpz_t left, right, t;
	int result;

	mpz_inits(left, right, t, NULL);
	mpz_set_si(left, s);
	mpz_mul_si(left, left, 8);
	mpz_mul_si(left, left, w);
	mpz_pow_ui(left, left, (unsigned long)k);
	mpz_ui_pow_ui(right, (unsigned long)(2 * k - 1), (unsigned long)k);
	mpz_ui_pow_ui(t, (unsigned long)n, (unsigned long)k + 1);
	mpz_mul(right, right, t);
	result = mpz_cmp(left, right) >= 0;
	mpz_clears(left, right, t, NULL);
	return result;
}

int64_t optree_closed_form(int n, int w, int k)
{
	double x = (2 * k - 1) * pow(n, 1 + 1.0 / k) / (8.0 * w);
	int64_t s = (int64_t)x;

	/* The estimate is good to a few units in the last place; the integers
	 * decide. */
	while (s > 0 && enough(s - 1, n, w, k)) {
		s--;
	}
	while (!enough(s, n, w, k)) {
		s++;
	}
	return s;
}

int64_t optree_baseline_steps(enum optree_baseline what, int n, int w)
{
	switch (what) {
	case OPTREE_RING:
		return n - 1;
	case OPTREE_NE:
		return (n + 1) / 2;
	case OPTREE_WRHT:
		return 4 * (int64_t)w + 3;
	case OPTREE_ONE_STAGE:
		break;
	}
	return optree_closed_form(n, w, 1);
}

int optree_best_depth(int n)
{
	double l = log(n);
	double root = l * l - 2 * l;
	double k = (l + sqrt(root > 0 ? root : 0)) / 2;

	return k < 1 ? 1 : (int)lround(k);
}

int64_t tree_ceil_muldiv(int64_t a, int64_t b, int64_t c)
{
	unsigned __int128 q = (unsigned __int128)a * (unsigned __int128)b;

	q = (q + (unsigned __int128)c - 1) / (unsigned __int128)c;
	return q > INT64_MAX ? -1 : (int64_t)q;
}

int64_t tree_published_ns(const struct optree_params *p)
{
	int w = p->channels * p->fibres, depth = optree_best_depth(p->n);
	int64_t steps = optree_closed_form(p->n, w, depth), sending;

	steps = steps < depth ? depth : steps;
	sending = tree_ceil_muldiv(p->shard_bytes, steps * 8000000000, p->channel_bps);
	if (sending < 0 || p->alpha_ns > (INT64_MAX - sending) / steps) {
		return INT64_MAX;
	}
	return sending + steps * p->alpha_ns;
}

void make_published(const struct optree_params *p, int depth, struct optree_plan *out)
{
	struct optree_params q = *p;

	if (p->line || tree_width(p, RWA_CW) != tree_width(p, RWA_CCW)) {
		return;
	}
	q.channels = (int)tree_width(p, RWA_CW);
	q.fibres = 1;
	out->optree_time_ns = tree_published_ns(&q);
	out->depth = depth;
	out->closed_form_steps = optree_closed_form(p->n, q.channels, depth);
}
