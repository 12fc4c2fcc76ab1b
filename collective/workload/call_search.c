/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which circuits a collective has in each of its steps.
 *
 * A gather by digits of radices q_1, q_2, ...: with light at w, 2w, ... d w (w the product of the
 * radices before) a rank that has what the w ranks before it sent has, after m steps, what the
 * (m d + 1) w before it sent. So a radix takes (q - 1) / d steps, and one change of light; radices
 * whose product is at least the number of ranks do, and the best are found by a table over what is
 * left. Each rank gets each shard once, so the volume is the least there is.
 *
 * An all-reduce is such a reduce-scatter and an all-gather in the mirror, and between them, where
 * the ranks divide, exchanges: all of a few ranks add up what the others of them have, passed on
 * from each to the next, in half of the steps. Of two ranks that moves no more than the two steps
 * do, and where the vector is short the sum is made of nothing but exchanges.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/workload/call_private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"

#define ROUNDS 12000		/* of annealing, */
#define MAX_WORK (INT64_C(1) << 29)	/* and ranks times steps of all of them */
#define MAX_STEPS (2 * CALL_MAX_RANKS)

int call_steps(const struct call_sequence *s)
{
	int steps = 0;

	for (int i = 0; i < s->n_runs; i++) {
		steps += s->runs[i].steps;
	}
	return steps;
}

static double shard_ns(const struct call_query *q)
{
	return (double)q->cost.size_bytes / q->ranks * 8e9 / (double)q->cost.link_bps;
}

/* ---- radices ---- */

static int steps_of_radix(int radix, int ports)
{
	return (radix - 2 + ports) / ports;
}

int call_alike(const struct call_sequence *s, int k)
{
	int n = 1;

	for (int i = 0; i < k; i++) {
		n *= s->radix[i];
	}
	return n;
}

/* The run of the digit of weight w. */
static struct call_run run_of(const struct call_query *q, int w, int steps)
{
	struct call_run run = { .steps = steps };

	for (int i = 0; i < q->ports; i++) {
		int64_t g = (int64_t)w * (i + 1);

		run.generators[i] = g < q->ranks ? (int)g : 0;
	}
	return run;
}

struct call_run call_exchange(const struct call_query *q, const struct call_sequence *s, int k)
{
	int radix = s->radix[k - 1], g = q->ranks / call_alike(s, k);
	struct call_run run = run_of(q, g, steps_of_radix(radix, q->ports));

	for (int i = radix - 1; i < q->ports; i++) {
		run.generators[i] = 0;
	}
	return run;
}

/* least[k]: of digits that count to k, radix[k] the first of them; the last has no change behind
 * it. */
static void weigh_radices(const struct call_query *q, double *least, int *radix)
{
	for (int k = 2; k <= q->ranks; k++) {
		radix[k] = k;
		least[k] = steps_of_radix(k, q->ports) * (double)q->cost.alpha_ns;
		for (int r = 2; r < k; r++) {
			double ns = steps_of_radix(r, q->ports) * (double)q->cost.alpha_ns +
				    (double)q->cost.retune_ns + least[(k + r - 1) / r];

			if (ns < least[k]) {
				least[k] = ns;
				radix[k] = r;
			}
		}
	}
}

/* The exchanges after which so many ranks are alike, into s; their ns. */
static double weigh_exchanges(const struct call_query *q, int alike, struct call_sequence *s)
{
	double step = (double)q->cost.alpha_ns + alike * shard_ns(q);
	double *least = x_new((size_t)alike + 1, sizeof(*least)), ns;
	int *radix = x_new((size_t)alike + 1, sizeof(*radix));

	for (int k = 2; k <= alike; k++) {
		least[k] = HUGE_VAL;
		for (int r = 2; r <= k; r++) {
			ns = steps_of_radix(r, q->ports) * step +
			     (r < k ? (double)q->cost.retune_ns + least[k / r] : 0);
			if (alike % k == 0 && k % r == 0 && ns < least[k]) {
				least[k] = ns;
				radix[k] = r;
			}
		}
	}
	s->exchanges = 0;
	for (int left = alike; left > 1; left /= radix[left]) {
		s->radix[s->exchanges++] = radix[left];
	}
	ns = least[alike];
	free(least);
	free(radix);
	return ns;
}

/* ns of an all-reduce whose exchanges, in s, make so many ranks alike. */
static double weigh_sum(const struct call_query *q, int alike, const double *least,
			struct call_sequence *s)
{
	int rest = q->ranks / alike;

	/* One light goes on from the runs to their mirror where nothing is between them. */
	return weigh_exchanges(q, alike, s) + 2 * least[rest] +
	       (alike > 1 && rest > 1 ? 2 * (double)q->cost.retune_ns : 0) +
	       2.0 * (rest - 1) * alike * shard_ns(q) / q->ports;
}

void call_radices(const struct call_query *q, struct call_sequence *out)
{
	int *radix = x_new((size_t)q->ranks + 1, sizeof(*radix)), rest = q->ranks;
	double *least = x_new((size_t)q->ranks + 1, sizeof(*least)), best = HUGE_VAL;

	weigh_radices(q, least, radix);
	*out = (struct call_sequence){ 0 };
	for (int alike = 1; alike <= (q->kind == COLL_ALLREDUCE ? q->ranks : 1); alike++) {
		struct call_sequence s = { 0 };
		double ns = q->ranks % alike ? HUGE_VAL : weigh_sum(q, alike, least, &s);

		if (ns < best) {
			best = ns;
			*out = s;
			rest = q->ranks / alike;
		}
	}
	for (int w = 1, r; rest > 1; w *= r, rest = (rest + r - 1) / r) {
		r = radix[rest];
		out->runs = x_grow(out->runs, (size_t)out->n_runs + 1, sizeof(*out->runs));
		out->runs[out->n_runs++] = run_of(q, w, steps_of_radix(r, q->ports));
	}
	free(radix);
	free(least);
}

/* ---- all-to-all ---- */

struct pairs_table {
	int16_t *hops;		/* [steps + 1][ranks] steps that move what goes so far, by then; -1:
				 * it cannot be there */
	double *load;		/* [steps][ports] shards */
};

/* One step: what is at s stays, or goes on to s + g. */
static void relax(const struct call_query *q, const struct call_run *run, const int16_t *before,
		  int16_t *after)
{
	memcpy(after, before, (size_t)q->ranks * sizeof(*after));
	for (int i = 0; i < q->ports; i++) {
		int g = run->generators[i];

		for (int s = 0; g && s < q->ranks; s++) {
			int to = s + g < q->ranks ? s + g : s + g - q->ranks;

			if (before[s] >= 0 && (after[to] < 0 || before[s] + 1 < after[to])) {
				after[to] = (int16_t)(before[s] + 1);
			}
		}
	}
}

/* The port of a step that what is at *at behind it came by, the least loaded of those on a path of
 * the fewest steps; -1: it waited. *at becomes where it was before. */
static int step_back(const struct call_query *q, const struct call_run *run, const int16_t *before,
		     int hops, const double *load, int *at)
{
	int best = -1, from = *at;

	if (before[*at] == hops) {
		return -1;
	}
	for (int i = 0; i < q->ports; i++) {
		int g = run->generators[i], s = *at - g < 0 ? *at - g + q->ranks : *at - g;

		if (g && before[s] == hops - 1 && (best < 0 || load[i] < load[best])) {
			best = i;
			from = s;
		}
	}
	*at = from;
	return best;
}

/* What is for s goes back along its path, and loads the ports. */
static void trace(const struct call_query *q, const struct call_run *const *step, int steps, int s,
		  struct pairs_table *t, int8_t *via)
{
	const size_t n = (size_t)q->ranks;
	int at = s, hops = t->hops[(size_t)steps * n + (size_t)s];

	for (int k = steps; k-- > 0;) {
		double *load = t->load + k * q->ports;
		int port = step_back(q, step[k], t->hops + (size_t)k * n, hops, load, &at);

		if (via) {
			via[(size_t)s * (size_t)steps + (size_t)k] = (int8_t)port;
		}
		if (port >= 0) {
			load[port]++;
			hops--;
		}
	}
}

double call_paths(const struct call_query *q, const struct call_sequence *seq, int8_t *via)
{
	size_t n = (size_t)q->ranks, steps = (size_t)call_steps(seq), k = 0;
	struct pairs_table t = { x_new((steps + 1) * n, sizeof(*t.hops)),
				 x_new(steps * (size_t)q->ports + 1, sizeof(*t.load)) };
	const struct call_run **step = x_new(steps + 1, sizeof(struct call_run *));
	double ns = (double)q->cost.alpha_ns * (double)steps +
		    (double)q->cost.retune_ns * (seq->n_runs - 1);

	for (int i = 0; i < seq->n_runs; i++) {
		for (int r = 0; r < seq->runs[i].steps; r++) {
			step[k++] = &seq->runs[i];
		}
	}
	memset(t.hops + 1, -1, (n - 1) * sizeof(*t.hops));
	for (k = 0; k < steps; k++) {
		relax(q, step[k], t.hops + k * n, t.hops + (k + 1) * n);
	}
	for (size_t s = 1; s < n && ns < HUGE_VAL; s++) {
		if (t.hops[steps * n + s] < 0) {
			ns = HUGE_VAL;
		} else {
			trace(q, step, (int)steps, (int)s, &t, via);
		}
	}
	for (k = 0; k < steps; k++) {
		double most = 0;

		for (int i = 0; i < q->ports; i++) {
			most = fmax(most, t.load[k * (size_t)q->ports + (size_t)i]);
		}
		ns += most * shard_ns(q);
	}
	free(t.hops);
	free(t.load);
	free(step);
	return ns;
}

/* ---- the search ---- */

static void copy_sequence(const struct call_sequence *from, struct call_sequence *to)
{
	to->n_runs = from->n_runs;
	to->runs = x_grow(to->runs, (size_t)from->n_runs + 1, sizeof(*to->runs));
	memcpy(to->runs, from->runs, (size_t)from->n_runs * sizeof(*to->runs));
}

/* A light for every `ports` ranks, each reached at once. */
static void direct(const struct call_query *q, struct call_sequence *out)
{
	*out = (struct call_sequence){ 0 };
	for (int g = 1; g < q->ranks;) {
		struct call_run run = { .steps = 1 };

		for (int i = 0; i < q->ports && g < q->ranks; i++) {
			run.generators[i] = g++;
		}
		out->runs = x_grow(out->runs, (size_t)out->n_runs + 1, sizeof(*out->runs));
		out->runs[out->n_runs++] = run;
	}
}

/* Changes one thing: a generator, the steps of a run, a run more or less. */
static void vary(const struct call_query *q, struct rng *rng, struct call_sequence *s)
{
	int at = (int)rng_below(rng, (uint64_t)s->n_runs);
	struct call_run *run = &s->runs[at];
	int *g = &run->generators[rng_below(rng, (uint64_t)q->ports)];

	switch (rng_below(rng, 8)) {
	case 0:
		run->steps += call_steps(s) < MAX_STEPS;
		break;
	case 1:
		run->steps -= run->steps > 1;
		break;
	case 2:
		if (s->n_runs > 1) {
			s->runs[at] = s->runs[--s->n_runs];
		}
		break;
	case 3:
		if (call_steps(s) < MAX_STEPS) {
			s->runs = x_grow(s->runs, (size_t)s->n_runs + 1, sizeof(*s->runs));
			s->runs[s->n_runs] = s->runs[at];
			s->runs[s->n_runs].steps = 1;
			g = &s->runs[s->n_runs++].generators[rng_below(rng, (uint64_t)q->ports)];
			*g = 1 + (int)rng_below(rng, (uint64_t)q->ranks - 1);
		}
		break;
	default:
		*g = 1 + (int)rng_below(rng, (uint64_t)q->ranks - 1);
	}
}

/* From *best on, which becomes the best that was met. */
static void anneal(const struct call_query *q, struct rng *rng, struct call_sequence *best)
{
	struct call_sequence now = { 0 }, next = { 0 };
	double least = call_paths(q, best, NULL), cur = least;
	int64_t rounds = MAX_WORK / ((int64_t)q->ranks * call_steps(best));

	rounds = rounds < ROUNDS ? rounds : ROUNDS;
	copy_sequence(best, &now);
	for (int64_t i = 0; i < rounds; i++) {
		double heat = 0.02 * least * (1 - (double)i / (double)rounds), ns;

		copy_sequence(&now, &next);
		vary(q, rng, &next);
		ns = call_paths(q, &next, NULL);
		if (ns < cur ||
		    ldexp((double)rng_below(rng, 1 << 20), -20) < exp((cur - ns) / heat)) {
			copy_sequence(&next, &now);
			cur = ns;
		}
		if (cur < least) {
			copy_sequence(&now, best);
			least = cur;
		}
	}
	free(now.runs);
	free(next.runs);
}

/* Light that stays still, ports at the weights of a number with as many digits. */
static void still(const struct call_query *q, struct call_sequence *out)
{
	int radix = 2, weight = 1;
	struct call_run run = { 0 };

	while (pow(radix, q->ports) < q->ranks) {
		radix++;
	}
	for (int i = 0; i < q->ports && weight < q->ranks; i++, weight *= radix) {
		run.generators[i] = weight;
		run.steps += radix - 1;
	}
	*out = (struct call_sequence){ .n_runs = 1, .runs = x_new(1, sizeof(run)) };
	out->runs[0] = run;
}

/* The better of *best and one more that is begun with, which is freed. */
static void take_better(const struct call_query *q, struct call_sequence *s,
			struct call_sequence *best)
{
	if (call_paths(q, s, NULL) < call_paths(q, best, NULL)) {
		copy_sequence(s, best);
	}
	free(s->runs);
}

/* From the best of radices alike and a light for every few ranks, and from light that stays. */
void call_search(const struct call_query *q, struct call_sequence *out)
{
	struct call_sequence s;
	struct rng rng;

	rng_seed(&rng, q->seed);
	direct(q, out);
	for (int radix = 2; radix <= q->ranks; radix = radix < 8 ? radix + 1 : 2 * radix) {
		s = (struct call_sequence){ 0 };
		for (int w = 1; w < q->ranks; w *= radix) {
			s.runs = x_grow(s.runs, (size_t)s.n_runs + 1, sizeof(*s.runs));
			s.runs[s.n_runs++] = run_of(q, w, steps_of_radix(radix, q->ports));
		}
		take_better(q, &s, out);
	}
	still(q, &s);
	anneal(q, &rng, &s);
	anneal(q, &rng, out);
	take_better(q, &s, out);
}
