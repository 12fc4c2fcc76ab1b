/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches that overlap.
 *
 * With k batches, step t of the pipeline carries the steps t - k + 1 .. t of the
 * schedule, one of each batch: the load of an arc is a window of k steps that
 * slides over its loads, and the time of the pipeline is the sum over t of the
 * fullest window. So the best number of batches is found from the loads alone,
 * without making any schedule, and only that one is made and replayed.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

#define MAX_SCALE (INT64_C(1) << 31)

/* What each arc carries in each step, in time units of a chunk over a link of
 * capacity `scale`. */
struct coll_batch_loads {
	int steps, arcs;	/* arcs: orbits of them */
	int64_t scale;
	int64_t *load;		/* step * arcs + orbit */
	int64_t *window;	/* by orbit: the batches that are under way */
};

int coll_common_scale(const struct topo *t, int64_t *scale, struct err *err)
{
	*scale = 1;
	for (int a = 0; a < topo_m(t); a++) {
		int64_t cap = topo_arc(t, a)->cap;

		*scale = *scale / rat_gcd(*scale, cap) * cap;
		if (*scale > MAX_SCALE) {
			return err_set(err, WEFT_ELIMIT, "capacities have no "
				       "common multiple below 2^31");
		}
	}
	return 0;
}

static int refuse_batches(const struct coll_sched *s, struct err *err)
{
	if (s->lights.n > 0) {
		return err_set(err, WEFT_EUNSUPPORTED, "a schedule with light "
			       "in batches: not supported");
	}
	return coll_refuse_embedded(s, "making batches of", err);
}

static void loads_fini(struct coll_batch_loads *l)
{
	free(l->load);
	free(l->window);
}

static int loads_init(const struct coll_sched *s, struct coll_batch_loads *l, struct err *err)
{
	const struct topo *t = s->topo;
	int rc;

	*l = (struct coll_batch_loads){ .steps = s->steps, .arcs = coll_orbits(s) };
	if ((rc = refuse_batches(s, err)) || (rc = coll_common_scale(t, &l->scale, err))) {
		return rc;
	}
	l->load = x_new((size_t)l->steps * (size_t)l->arcs + 1, sizeof(*l->load));
	l->window = x_new((size_t)l->arcs + 1, sizeof(*l->window));
	for (size_t i = 0; i < s->xfers.n; i++) {
		const struct coll_xfer *x = &s->xfers.v[i];
		int64_t unit = l->scale / topo_arc(t, x->arc)->cap;

		l->load[(int64_t)x->step * l->arcs + coll_orbit(s->action, x->arc)] +=
			(x->last - x->first + 1) * unit;
	}
	return 0;
}

/* Sum over the steps of the pipeline of the fullest arc, in units of loads a
 * batch. */
static int64_t total(struct coll_batch_loads *l, int batches)
{
	int64_t sum = 0;

	memset(l->window, 0, (size_t)l->arcs * sizeof(*l->window));
	for (int t = 0; t < l->steps + batches - 1; t++) {
		int64_t most = 0;

		for (int a = 0; a < l->arcs; a++) {
			int64_t *w = &l->window[a];

			*w += t < l->steps
				? l->load[(int64_t)t * l->arcs + a] : 0;
			*w -= t >= batches
				? l->load[(int64_t)(t - batches) * l->arcs + a]
				: 0;
			most = *w > most ? *w : most;
		}
		sum += most;
	}
	return sum;
}

/* total / (scale * P * batches) shards; times ports / N in M/B. */
static void to_factor(const struct coll_sched *s, const struct coll_batch_loads *l,
		      int64_t sum, int batches, mpq_t factor)
{
	mpz_set_si(mpq_numref(factor), sum);
	mpz_mul_si(mpq_numref(factor), mpq_numref(factor), s->ports);
	mpz_set_si(mpq_denref(factor), l->scale);
	mpz_mul_si(mpq_denref(factor), mpq_denref(factor), s->chunks);
	mpz_mul_si(mpq_denref(factor), mpq_denref(factor), batches);
	mpz_mul_si(mpq_denref(factor), mpq_denref(factor), s->ranks);
	mpq_canonicalize(factor);
}

static int check_batches(int batches, struct err *err)
{
	return batches >= 1 && batches <= COLL_MAX_BATCHES
		       ? 0 : err_set(err, WEFT_EINVAL,
				     "%d batches: expected 1 to %d", batches,
				     COLL_MAX_BATCHES);
}

/* Time in ns, exactly: (steps + batches - 1) (alpha + hop + message) + T_B M ports / rate. */
static void time_of(const struct coll_sched *s, const struct coll_cost *c,
		    int steps, const mpq_t factor, mpq_t time)
{
	mpq_t x;

	mpq_init(x);
	mpz_set_si(mpq_numref(x), c->size_bytes);
	mpz_mul_ui(mpq_numref(x), mpq_numref(x), 8000000000u);
	mpz_set_si(mpq_denref(x), c->link_bps);
	mpz_mul_si(mpq_denref(x), mpq_denref(x), s->ports);
	mpq_canonicalize(x);
	mpq_mul(time, factor, x);
	mpz_set_si(mpq_numref(x), c->alpha_ns);
	mpz_add_ui(mpq_numref(x), mpq_numref(x), (unsigned long)c->hop_ns);
	mpz_add_ui(mpq_numref(x), mpq_numref(x), (unsigned long)c->message_ns);
	mpz_mul_si(mpq_numref(x), mpq_numref(x), steps);
	mpz_set_ui(mpq_denref(x), 1);
	mpq_add(time, time, x);
	mpq_clear(x);
}

int coll_pipeline_best(const struct coll_sched *s, const struct coll_cost *c,
		       int most, int *batches, struct err *err)
{
	struct coll_batch_loads l = { 0 };
	mpq_t factor, time, best;
	int rc = loads_init(s, &l, err);

	*batches = 1;
	if (rc) {
		return rc;
	}
	mpq_init(factor);
	mpq_init(time);
	mpq_init(best);
	for (int k = 1; k <= most && k <= COLL_MAX_BATCHES &&
	     (int64_t)k * s->chunks <= COLL_MAX_CHUNKS &&
	     (int64_t)k * (int64_t)s->xfers.n <= COLL_MAX_XFERS; k++) {
		to_factor(s, &l, total(&l, k), k, factor);
		time_of(s, c, l.steps + k - 1, factor, time);
		if (k == 1 || mpq_cmp(time, best) < 0) {
			mpq_set(best, time);
			*batches = k;
		}
	}
	mpq_clear(factor);
	mpq_clear(time);
	mpq_clear(best);
	loads_fini(&l);
	return 0;
}

int coll_pipeline_fewest(const struct coll_sched *s, int most, int *batches, struct err *err)
{
	struct coll_batch_loads l = { 0 };
	mpq_t asked, factor;
	int rc;

	*batches = 1;
	if ((rc = check_batches(most, err)) || (rc = loads_init(s, &l, err))) {
		return rc;
	}
	mpq_inits(asked, factor, NULL);
	to_factor(s, &l, total(&l, most), most, asked);
	for (; *batches < most; (*batches)++) {
		to_factor(s, &l, total(&l, *batches), *batches, factor);
		if (mpq_cmp(factor, asked) <= 0) {
			break;
		}
	}
	mpq_clears(asked, factor, NULL);
	loads_fini(&l);
	return 0;
}

static int add_batches(const struct coll_sched *s, int batches,
		       struct coll_sched *p, struct err *err)
{
	int rc = 0;

	for (int b = 0; b < batches; b++) {
		for (size_t i = 0; i < s->xfers.n && !rc; i++) {
			struct coll_xfer x = s->xfers.v[i];

			x.step += b;
			x.first += b * s->chunks;
			x.last += b * s->chunks;
			rc = coll_add(p, &x, err);
		}
	}
	return rc;
}

int coll_pipeline(const struct coll_sched *s, int batches, struct coll_sched **out, struct err *err)
{
	struct coll_sched *p = NULL;
	int rc;

	*out = NULL;
	if ((rc = check_batches(batches, err)) || (rc = refuse_batches(s, err)) ||
	    (rc = coll_refuse_demands(s, "batches", err))) {
		return rc;
	}
	if ((int64_t)batches * s->chunks > COLL_MAX_CHUNKS) {
		return err_set(err, WEFT_ELIMIT,
			       "%d batches of %d chunks: more than %d chunks a "
			       "shard", batches, s->chunks, COLL_MAX_CHUNKS);
	}
	if ((rc = coll_new_with_group(s, s->kind, NULL, batches * s->chunks, &p, err)) ||
	    (rc = add_batches(s, batches, p, err)) || (rc = coll_finish(p, err)) ||
	    (rc = coll_prove(p, NULL, err))) {
		coll_free(p);
		return rc;
	}
	*out = p;
	return 0;
}
