/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches that overlap.
 *
 * With k batches, step t of the pipeline carries the steps t - k + 1 .. t of the
 * schedule, one of each batch: the load of an arc is a window of k steps that
 * slides over its loads, and the time of the pipeline is the sum over t of the
 * fullest window. So the best number of batches is found from the loads alone,
 * without making any schedule, and only that one is made and replayed. Loads are those of the
 * physical arcs: of a schedule that is embedded what its routes carry.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

#define MAX_SCALE (INT64_C(1) << 31)

/* What each arc or shared limit carries in each step, in time units of a chunk over a link of
 * capacity `scale`. */
struct coll_batch_loads {
	int steps, arcs;	/* arcs: orbits of them, and limits */
	int64_t scale;
	int64_t *load;		/* step * arcs + orbit */
	int64_t *window;	/* by orbit: the batches that are under way */
};

/* The least common multiple of the capacities: a chunk on an arc takes scale / capacity units of
 * time, all whole. WEFT_ELIMIT above 2^31. */
static int common_scale(const struct topo *t, int64_t *scale, struct err *err)
{
	int limits = topo_n_limits(t);

	*scale = 1;
	for (int a = 0; a < topo_m(t) + limits; a++) {
		int64_t cap = a < limits ? topo_limit(t, a)->cap : topo_arc(t, a - limits)->cap;

		*scale = *scale / rat_gcd(*scale, cap) * cap;
		if (*scale > MAX_SCALE) {
			return err_set(err, WEFT_ELIMIT, "capacities have no "
				       "common multiple below 2^31");
		}
	}
	return 0;
}

static int refuse_light(const struct coll_sched *s, struct err *err)
{
	return s->lights.n == 0 ? 0 : err_set(err, WEFT_EUNSUPPORTED, "a schedule with light "
					      "in batches: not supported");
}

static void loads_fini(struct coll_batch_loads *l)
{
	free(l->load);
	free(l->window);
}

/* Of a load that still fits with those of all steps and batches. */
#define MAX_LOAD (INT64_MAX >> 20)

/* The loads of the step at hand, times what makes capacities whole. */
static int add_loads(struct coll_batch_loads *l, const struct coll_loads *w, int64_t common,
		     struct err *err)
{
	int64_t *load = l->load + (int64_t)w->step * l->arcs, *limits = load + l->arcs;
	bool fits = true;

	for (int i = 0; i < w->n_loaded; i++) {
		int64_t *at = &load[w->loaded[i]], unit = common / w->cap[w->loaded[i]];

		*at = w->load[w->loaded[i]] * unit;
		fits &= w->load[w->loaded[i]] <= MAX_LOAD / unit;
	}
	for (int i = 0; i < topo_n_limits(w->physical); i++) {
		struct coll_load sum = coll_limit_load(w, i);
		int64_t unit = common / topo_limit(w->physical, i)->cap;

		*--limits = sum.chunks * unit;
		fits &= sum.chunks <= MAX_LOAD / unit;
	}
	return fits ? 0 : err_set(err, WEFT_ELIMIT, "step %d: a load does not fit 64 bits",
				  w->step);
}

static int loads_init(const struct coll_sched *s, struct coll_batch_loads *l, struct err *err)
{
	const struct topo *t = coll_physical(s);
	struct coll_loads w;
	int64_t common;
	int rc;

	*l = (struct coll_batch_loads){ .steps = s->steps };
	if ((rc = refuse_light(s, err)) || (rc = common_scale(t, &common, err))) {
		return rc;
	}
	rc = coll_loads_init(&w, s, err);
	l->arcs = (w.action ? topo_action_orbits(w.action) : topo_m(t)) + topo_n_limits(t);
	l->load = x_new((size_t)l->steps * (size_t)l->arcs + 1, sizeof(*l->load));
	l->window = x_new((size_t)l->arcs + 1, sizeof(*l->window));
	while (!rc && (rc = coll_loads_next(&w, err)) == 0 && w.n_used > 0) {
		rc = add_loads(l, &w, common, err);
	}
	l->scale = common * w.scale;	/* both of at most 31 bits */
	coll_loads_fini(&w);
	return rc;
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

/* Time in ns, exactly: steps (alpha + hop + message) + T_B M ports / rate, of loads that sum up to
 * this. */
static void time_of(const struct coll_sched *s, const struct coll_batch_loads *l,
		    const struct coll_cost *c, int64_t sum, int batches, int steps, mpq_t time)
{
	mpq_t x;

	mpq_init(x);
	to_factor(s, l, sum, batches, time);
	rat_set(x, c->size_bytes, c->link_bps);
	mpq_mul(time, time, x);
	rat_set(x, 8000000000, s->ports);
	mpq_mul(time, time, x);
	rat_set(x, (c->alpha_ns + c->hop_ns + c->message_ns) * steps, 1);
	mpq_add(time, time, x);
	mpq_clear(x);
}

/* What no number of batches falls below: the load of the fullest arc over all steps of one. */
static int64_t fullest(const struct coll_batch_loads *l)
{
	int64_t most = 0;

	for (int a = 0; a < l->arcs; a++) {
		int64_t sum = 0;

		for (int t = 0; t < l->steps; t++) {
			sum += l->load[(int64_t)t * l->arcs + a];
		}
		most = sum > most ? sum : most;
	}
	return most;
}

int coll_pipeline_best(const struct coll_sched *s, const struct coll_cost *c,
		       int most, int *batches, double *ns, struct err *err)
{
	struct coll_batch_loads l = { 0 };
	mpq_t time, best;
	int rc = loads_init(s, &l, err);
	int64_t least;

	*batches = 1;
	if (rc) {
		loads_fini(&l);
		return rc;
	}
	mpq_inits(time, best, NULL);
	least = fullest(&l);
	for (int k = 1; k == 1 || (k <= most && k <= COLL_MAX_BATCHES &&
				   (int64_t)k * s->chunks <= COLL_MAX_CHUNKS &&
				   (int64_t)k * (int64_t)s->xfers.n <= COLL_MAX_XFERS); k++) {
		time_of(s, &l, c, least, 1, l.steps + k - 1, time);
		if (k > 1 && mpq_cmp(time, best) >= 0) {
			break;
		}
		time_of(s, &l, c, total(&l, k), k, l.steps + k - 1, time);
		if (k == 1 || mpq_cmp(time, best) < 0) {
			mpq_set(best, time);
			*batches = k;
		}
	}
	*ns = mpq_get_d(best);
	mpq_clears(time, best, NULL);
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
		loads_fini(&l);
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
	if ((rc = check_batches(batches, err)) || (rc = refuse_light(s, err)) ||
	    (rc = coll_refuse_embedded(s, "making batches of", err)) ||
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
