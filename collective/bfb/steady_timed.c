/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-reduce by breadth-first sums and copies in few batches of unequal sizes, which overlap, from
 * roots that have more or less of the vector.
 *
 * Where a node has fewer links than others, shards of one size keep these busy and all others
 * waiting: it has to send all but its own shard while sums are made, and to take all while copies
 * are. In batches that begin one after the other it sends for one and takes for another; and what
 * it is the root of it only takes, and then sends. How large the batches are, what each root has of
 * them, and how shortest paths share it, are one linear program: the least sum over the steps of
 * the fullest link's load.
 *
 * That is a game. One player chooses a batch and a root, and for each node the link by which it
 * takes the copy, or sends its sum; the other a link in every step; what the first pays is what
 * of its choice is on these. Both play by regret matching, in turns, clipped at nothing (CFR+:
 * Tammelin, "Solving large imperfect information games using CFR+", 2014), and the averages over
 * the rounds, later ones counting more, come to the optimum: within a percent in some 200 rounds.
 * When batches begin is tried: one of them, then more and more steps between the first and the
 * last, each from what was learned before.
 *
 * Where every arc has its reverse the sums of a batch are the copies of its counterpart, backwards
 * in time: only these are played.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/private.h"
#include "lib/base/alloc.h"

/* Rounds with each begin of batches, the first time and later, and with the best. */
#define FIRST_ROUNDS 150
#define ROUNDS 60
#define LAST_ROUNDS 150

/* What the last rounds may gain, and more. */
#define LAST_GAIN 0.94

/* Begins that are tried, twice as many quarters of the diameter apart, and how many in a row may
 * be no better. */
#define MAX_TRIES 9
#define MAX_WORSE 2

/* Nodes times arcs, and steps times arcs, of which more are not played. */
#define MAX_SIZE (INT64_C(1) << 19)
#define MAX_PRICES (INT64_C(1) << 22)

/* Steps from the first batch to the last in a try: even, so that one may be in the middle. */
static int spread_of(const struct bfb_unequal *x, int try)
{
	return 2 * ((try * x->diameter + 3) / 4);
}

/* What steps of so many tries have prices. */
static int64_t n_prices(const struct bfb_unequal *x, int tries)
{
	return (int64_t)(2 * x->diameter + spread_of(x, tries - 1)) * x->m;
}

/* ---- shortest paths ---- */

/* The arc back for each, the k-th of parallel ones for the k-th; false: some have none. */
static bool pair_arcs(const struct topo *t, int32_t *back)
{
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		int first, n = topo_out(t, arc->src, &first), k = 0, b = -1;

		for (int i = first; i < a; i++) {
			k += topo_arc(t, i)->dst == arc->dst;
		}
		n = topo_out(t, arc->dst, &first);
		for (int i = first; i < first + n && b < 0; i++) {
			b = topo_arc(t, i)->dst == arc->src && k-- == 0 ? i : b;
		}
		if (b < 0 || topo_arc(t, b)->cap != arc->cap) {
			return false;
		}
		back[a] = b;
	}
	return true;
}

/* The last arcs of shortest paths in t from a root, as arcs of the digraph: `reversed` has those
 * into a node, which `back` takes there; NULL: it is the digraph. */
static int add_root(struct bfb_unequal *x, struct bfb_paths *p, const struct topo *t, int root,
		    const struct topo *reversed, const int32_t *back, int32_t *dist,
		    struct err *err)
{
	topo_bfs(t, root, dist);
	for (int v = 0; v < x->n; v++) {
		struct bfb_ending end = { .dist = dist[v], .first = p->uses.n };
		int first, n = topo_out(reversed, v, &first);

		if (dist[v] < 0) {
			return err_set(err, WEFT_EINFEASIBLE, "no path between ranks %d and %d",
				       root, v);
		}
		for (int i = first; i < first + n && v != root; i++) {
			if (dist[topo_arc(reversed, i)->dst] == dist[v] - 1) {
				vec_push(&p->uses, back ? back[i] : i);
				end.n++;
			}
		}
		if (v != root) {
			vec_push(&p->endings, end);
		}
		x->diameter = dist[v] > x->diameter ? dist[v] : x->diameter;
	}
	return 0;
}

static int load_paths(struct bfb_unequal *x, struct err *err)
{
	int32_t *dist = x_alloc((size_t)x->n, sizeof(*dist));
	int32_t *names = x_alloc((size_t)x->m + 1, sizeof(*names));
	struct topo *reversed = NULL;
	int rc = topo_transpose(x->t, &reversed, names, err);

	for (int root = 0; root < x->n && rc == 0; root++) {
		rc = add_root(x, &x->paths[0], x->t, root, reversed, names, dist, err);
		if (rc == 0 && !x->back) {
			rc = add_root(x, &x->paths[1], reversed, root, x->t, NULL, dist, err);
		}
	}
	topo_free(reversed);
	free(names);
	free(dist);
	return rc;
}

static int n_sides(const struct bfb_unequal *x)
{
	return x->back ? 1 : 2;
}

static int unequal_init(struct bfb_unequal *x, const struct topo *t, struct err *err)
{
	size_t pairs = (size_t)(x->most * topo_n(t)), most;
	int rc;

	x->t = t;
	x->n = topo_n(t);
	x->m = topo_m(t);
	arrays_add(&x->arrays, x->back, x->m);
	if (!pair_arcs(t, x->back)) {
		x->back = NULL;
	}
	if ((rc = load_paths(x, err))) {
		return rc;
	}
	for (x->tries = MAX_TRIES; x->tries > 0 && n_prices(x, x->tries) > MAX_PRICES;) {
		x->tries--;
	}
	for (int i = 0; i < n_sides(x); i++) {
		arrays_add(&x->arrays, x->regret[i], (size_t)x->most * x->paths[i].uses.n);
		arrays_add(&x->arrays, x->share[i], (size_t)x->most * x->paths[i].uses.n);
	}
	most = x->tries > 0 ? (size_t)n_prices(x, x->tries) : 0;
	arrays_add(&x->arrays, x->per, x->m);
	arrays_add(&x->arrays, x->price, most);
	arrays_add(&x->arrays, x->price_regret, most);
	arrays_add(&x->arrays, x->load, most);
	arrays_add(&x->arrays, x->load_sum, most);
	arrays_add(&x->arrays, x->part, pairs);
	arrays_add(&x->arrays, x->part_regret, pairs);
	arrays_add(&x->arrays, x->part_cost, pairs);
	arrays_add(&x->arrays, x->part_sum, pairs);
	for (int a = 0; a < x->m; a++) {
		x->per[a] = 1 / (double)topo_arc(t, a)->cap;
	}
	return 0;
}

static void unequal_fini(struct bfb_unequal *x)
{
	for (int i = 0; i < 2; i++) {
		vec_fini(&x->paths[i].endings);
		vec_fini(&x->paths[i].uses);
	}
	arrays_fini(&x->arrays);
}

/* ---- a round ---- */

/* Of the step in which a taker of a batch takes its copy, or sends its sum. */
static size_t row_of(const struct bfb_unequal *x, int side, int batch, const struct bfb_ending *k)
{
	return (size_t)(side ? x->begins[batch] - k->dist : x->begins[batch] + k->dist - 1) *
	       (size_t)x->m;
}

/* What a taker pays, and its regrets by it. */
static double pay(const struct bfb_ending *k, const int32_t *uses, const double *price,
		  float *regret)
{
	double sum = 0, mean = 0;

	if (k->n == 1) {
		return price[uses[0]];
	}
	for (int i = 0; i < k->n; i++) {
		sum += regret[i];
	}
	for (int i = 0; i < k->n; i++) {
		mean += (sum > 0 ? regret[i] / sum : 1.0 / k->n) * price[uses[i]];
	}
	for (int i = 0; i < k->n; i++) {
		regret[i] = fmaxf(0, regret[i] + (float)(mean - price[uses[i]]));
	}
	return mean;
}

static double pay_root(struct bfb_unequal *x, int side, int batch, int root)
{
	const struct bfb_paths *p = &x->paths[side];
	const struct bfb_ending *k = p->endings.v + (size_t)root * (size_t)(x->n - 1);
	float *regret = x->regret[side] + (size_t)batch * p->uses.n;
	double sum = 0;

	for (int i = 0; i < x->n - 1; i++, k++) {
		sum += pay(k, p->uses.v + k->first, x->price + row_of(x, side, batch, k),
			   regret + k->first);
	}
	return sum;
}

/* Parts by their regrets; all the same where none has any. */
static void match(double *part, const double *regret, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++) {
		sum += regret[i];
	}
	for (int i = 0; i < n; i++) {
		part[i] = sum > 0 ? regret[i] / sum : 1.0 / n;
	}
}

static void choose_parts(struct bfb_unequal *x)
{
	int pairs = x->batches * x->n;
	double mean = 0;

	memset(x->part_cost, 0, (size_t)pairs * sizeof(*x->part_cost));
	for (int i = 0; i < pairs; i++) {
		int batch = i / x->n, root = i % x->n;
		double out = pay_root(x, 0, batch, root);

		x->part_cost[i] += out;
		x->part_cost[x->back ? (x->batches - 1 - batch) * x->n + root : i] +=
			x->back ? out : pay_root(x, 1, batch, root);
	}
	for (int i = 0; i < pairs; i++) {
		mean += x->part[i] * x->part_cost[i];
	}
	for (int i = 0; i < pairs; i++) {
		x->part_regret[i] = fmax(0, x->part_regret[i] + mean - x->part_cost[i]);
	}
	match(x->part, x->part_regret, pairs);
}

static void load_root(struct bfb_unequal *x, int side, int batch, int root, double weight)
{
	const struct bfb_paths *p = &x->paths[side];
	const struct bfb_ending *k = p->endings.v + (size_t)root * (size_t)(x->n - 1);
	size_t base = (size_t)batch * p->uses.n;
	double part = x->part[batch * x->n + root];

	for (int i = 0; i < x->n - 1 && part > 0; i++, k++) {
		const float *regret = x->regret[side] + base + k->first;
		float *share = x->share[side] + base + k->first, sum = 0;
		double *load = x->load + row_of(x, side, batch, k);

		for (int j = 0; j < k->n; j++) {
			sum += regret[j];
		}
		for (int j = 0; j < k->n; j++) {
			double more = part * (sum > 0 ? regret[j] / sum : 1.0F / (float)k->n);
			int arc = p->uses.v[k->first + (size_t)j];

			share[j] += (float)(weight * more);
			load[arc] += more * x->per[arc];
		}
	}
}

/* Adds to what each arc carries what its reverse carries backwards in time. */
static void add_mirror(struct bfb_unequal *x)
{
	for (int s = 0; s < (x->steps + 1) / 2; s++) {
		double *a = x->load + (size_t)s * (size_t)x->m;
		double *b = x->load + (size_t)(x->steps - 1 - s) * (size_t)x->m;

		for (int i = 0; i < x->m; i++) {
			int j = x->back[i];

			if (a != b || i < j) {
				a[i] = b[j] = a[i] + b[j];
			}
		}
	}
}

/* The links of a step, by what is on them. Returns the load of the fullest by now. */
static double choose_links(struct bfb_unequal *x, int step, double weight)
{
	size_t row = (size_t)step * (size_t)x->m;
	double *price = x->price + row, *regret = x->price_regret + row;
	double *load = x->load + row, *sum = x->load_sum + row, mean = 0, most = 0;

	for (int a = 0; a < x->m; a++) {
		mean += price[a] / x->per[a] * load[a];
	}
	for (int a = 0; a < x->m; a++) {
		regret[a] = fmax(0, regret[a] + load[a] - mean);
		sum[a] += weight * load[a];
		most = sum[a] > most ? sum[a] : most;
	}
	match(price, regret, x->m);
	for (int a = 0; a < x->m; a++) {
		price[a] *= x->per[a];
	}
	return most / x->rounds;
}

/* So many rounds; the load of all steps. */
static double play(struct bfb_unequal *x, int rounds)
{
	double all = 0;

	for (int r = 1; r <= rounds; r++) {
		choose_parts(x);
		memset(x->load, 0, (size_t)x->steps * (size_t)x->m * sizeof(*x->load));
		for (int i = 0; i < x->batches * x->n; i++) {
			for (int side = 0; side < n_sides(x); side++) {
				load_root(x, side, i / x->n, i % x->n, r);
			}
			x->part_sum[i] += r * x->part[i];
		}
		if (x->back) {
			add_mirror(x);
		}
		x->rounds += r;
		all = 0;
		for (int s = 0; s < x->steps; s++) {
			all += choose_links(x, s, r);
		}
	}
	return all;
}

/* ---- when batches begin ---- */

/* The first begins when the farthest sums have come, the last so many steps later. What was learned
 * of paths and parts stays, if batches are as many. */
static void begin(struct bfb_unequal *x, int spread)
{
	int batches = spread + 1 < x->most ? spread + 1 : x->most;
	size_t row = (size_t)x->m * sizeof(*x->price);

	x->steps = 2 * x->diameter + spread;
	for (int k = 0; k <= batches / 2; k++) {
		int later = k * spread / (batches > 1 ? batches - 1 : 1);

		x->begins[k] = x->diameter + later;
		x->begins[batches - 1 - k] = x->diameter + spread - later;
	}
	if (batches != x->batches) {
		memset(x->part_regret, 0, (size_t)(batches * x->n) * sizeof(*x->part_regret));
		match(x->part, x->part_regret, batches * x->n);
	}
	x->batches = batches;
	x->rounds = 0;
	for (int i = 0; i < n_sides(x); i++) {
		memset(x->share[i], 0,
		       (size_t)x->most * x->paths[i].uses.n * sizeof(*x->share[i]));
	}
	memset(x->part_sum, 0, (size_t)(batches * x->n) * sizeof(*x->part_sum));
	memset(x->price_regret, 0, (size_t)x->steps * row);
	memset(x->load_sum, 0, (size_t)x->steps * row);
	for (int i = 0; i < x->steps * x->m; i++) {
		x->price[i] = x->per[i % x->m] / x->m;
	}
}

/* The least time of all begins that are tried, and the shares for it; where that will not be below
 * below_ns, not the least. */
static double search(struct bfb_unequal *x, const struct coll_cost *cost, double below_ns)
{
	double step = (double)(cost->alpha_ns + cost->hop_ns + cost->message_ns);
	double vector = (double)cost->size_bytes * 8e9 / (double)cost->link_bps;
	double least = HUGE_VAL;
	int best = 0, spread = 0;

	for (int try = 0, worse = 0; try < x->tries && worse < MAX_WORSE; try++) {
		double time;

		spread = spread_of(x, try);
		begin(x, spread);
		time = step * x->steps + vector * play(x, try < 2 ? FIRST_ROUNDS : ROUNDS);
		worse = time < least ? 0 : worse + 1;
		best = time < least ? spread : best;
		least = time < least ? time : least;
	}
	if (least * LAST_GAIN >= below_ns) {
		return least;
	}
	if (spread != best) {
		begin(x, best);
	}
	return step * x->steps + vector * play(x, LAST_ROUNDS);
}

/* Batches that make no more transfers, most of them in two for each node and phase: an odd number,
 * or none. */
static int max_batches(const struct topo *t, int64_t max_transfers)
{
	int64_t size = (int64_t)topo_n(t) * topo_m(t), fit = max_transfers / (size + 1);

	return topo_n(t) < 2 || size > MAX_SIZE || fit < 3 ? 0 : fit < 5 ? 3 : BFB_UNEQUAL_BATCHES;
}

int coll_steady_timed(struct topo *topo, const struct coll_cost *cost, double below_ns,
		      int64_t max_transfers, struct coll_sched **out, struct err *err)
{
	struct bfb_unequal x = { .most = max_batches(topo, max_transfers) };
	int rc = topo_check_plain(topo, "breadth-first broadcast", err);

	*out = NULL;
	if (rc || x.most == 0 || (rc = unequal_init(&x, topo, err))) {
		goto out;
	}
	if (x.tries > 0 && search(&x, cost, below_ns) < below_ns) {
		rc = bfb_unequal_cut(&x, topo, out, err);
		topo = NULL;
	}
out:
	unequal_fini(&x);
	topo_free(topo);
	return rc;
}
