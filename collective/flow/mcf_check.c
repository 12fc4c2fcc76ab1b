/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks exact proofs of all-to-all optima. Nothing of the
 * solver's is used: capacities are read from the topology, orbits are built
 * from the generators again.
 *
 * Why the averages suffice: the flow of source g(s) is the image under g of
 * that of s; averaged over the whole group every arc of an orbit carries the
 * mean, sum over representatives s of |orbit of s| times the mean over the
 * orbit of arcs of the flow of s.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

struct proof_check {
	const struct topo *t;
	const struct flow_demands *demands;	/* NULL: one unit a pair */
	const struct mcf_proof *proof;
	int64_t *cap;		/* m */
	int32_t *out_first;	/* n + 1: arcs by tail */
	int32_t *node_root;	/* n: orbits */
	int32_t *arc_root;	/* m */
	int64_t *orbit_size;	/* n: at the root */
	mpz_t *number;		/* n: balances, then distances */
	mpz_t *load;		/* m: at the roots */
	struct arrays arrays;	/* all but the GMP numbers */
};

static int wrong(struct err *err, const char *what, int u, int v)
{
	return err_set(err, WEFT_EVERIFY, "all-to-all proof: %s (%d, %d)", what, u, v);
}

static bool is_terminal(const struct proof_check *c, int u)
{
	return topo_node_kind(c->t, u) == TOPO_TERMINAL;
}

/* What s sends to v, in parts of which the unit has largest(). */
static int64_t demand(const struct proof_check *c, int s, int v)
{
	if (s == v || !is_terminal(c, v)) {
		return 0;
	}
	return c->demands ? flow_demand(c->demands, s, v) : 1;
}

static int64_t largest(const struct proof_check *c)
{
	return c->demands ? c->demands->largest : 1;
}

/* Arcs are sorted by tail, then head; the arc (u, v) or -1. */
static int find_arc(const struct proof_check *c, int u, int v)
{
	for (int a = c->out_first[u]; a < c->out_first[u + 1]; a++) {
		if (c->proof->head[a] == v) {
			return a;
		}
	}
	return -1;
}

/* ---- the digraph ---- */

/* The arcs of the proof in order, without loops; capacities of the topology
 * summed onto them, all of them met. */
static int check_arcs(struct proof_check *c, struct err *err)
{
	const struct mcf_proof *q = c->proof;

	if (q->n != topo_n(c->t)) {
		return wrong(err, "nodes of proof and digraph", q->n, topo_n(c->t));
	}
	for (int a = 0; a < q->m; a++) {
		int u = q->tail[a], v = q->head[a];
		bool sorted = a == 0 || q->tail[a - 1] <= u;

		if (u < 0 || u >= q->n || v < 0 || v >= q->n || u == v || !sorted) {
			return wrong(err, "bad arc", u, v);
		}
		c->out_first[u + 1]++;
	}
	for (int u = 0; u < q->n; u++) {
		c->out_first[u + 1] += c->out_first[u];
	}
	for (int i = 0; i < topo_m(c->t); i++) {
		const struct topo_arc *arc = topo_arc(c->t, i);
		int a = arc->src == arc->dst
				? -1 : find_arc(c, arc->src, arc->dst);

		if (a >= 0) {
			c->cap[a] += arc->cap;
		} else if (arc->src != arc->dst && arc->cap > 0) {
			/* Its price would count as zero and prove less. */
			return wrong(err, "arc is missing", arc->src, arc->dst);
		}
	}
	return 0;
}

/* ---- symmetry ---- */

static int32_t root_of(const int32_t *root, int32_t x)
{
	while (root[x] != x) {
		x = root[x];
	}
	return x;
}

static void join(int32_t *root, int32_t a, int32_t b)
{
	a = root_of(root, a);
	b = root_of(root, b);
	root[a > b ? a : b] = a > b ? b : a;
}

static int check_generator(struct proof_check *c, const int32_t *g, bool *seen, struct err *err)
{
	const struct mcf_proof *q = c->proof;

	memset(seen, 0, (size_t)q->n * sizeof(*seen));
	for (int u = 0; u < q->n; u++) {
		if (g[u] < 0 || g[u] >= q->n || seen[g[u]] ||
		    is_terminal(c, u) != is_terminal(c, g[u])) {
			return wrong(err, "no automorphism", u, g[u]);
		}
		seen[g[u]] = true;
		join(c->node_root, u, g[u]);
	}
	if (!flow_demands_kept(c->demands, g)) {
		return wrong(err, "demands are not kept", q->n, q->n);
	}
	for (int a = 0; a < q->m; a++) {
		int b = find_arc(c, g[q->tail[a]], g[q->head[a]]);

		if (b < 0 || c->cap[a] != c->cap[b] || mpz_cmp(q->price[a], q->price[b]) != 0) {
			return wrong(err, "no automorphism at arc", q->tail[a], q->head[a]);
		}
		join(c->arc_root, a, b);
	}
	return 0;
}

static int check_symmetry(struct proof_check *c, struct err *err)
{
	const struct mcf_proof *q = c->proof;
	bool *seen = x_alloc((size_t)q->n, sizeof(*seen));
	int rc = 0;

	for (int u = 0; u < q->n; u++) {
		c->node_root[u] = u;
	}
	for (int a = 0; a < q->m; a++) {
		c->arc_root[a] = a;
	}
	for (int i = 0; i < q->n_gens && rc == 0; i++) {
		rc = check_generator(c, q->gens[i], seen, err);
	}
	free(seen);
	for (int u = 0; u < q->n && rc == 0; u++) {
		c->orbit_size[root_of(c->node_root, u)]++;
	}
	return rc;
}

static bool sends(const struct proof_check *c, int u)
{
	bool any = false;

	for (int v = 0; v < c->proof->n && !any; v++) {
		any = is_terminal(c, u) && demand(c, u, v) > 0;
	}
	return any;
}

/* One source an orbit of terminals, no orbit that sends without. */
static int check_sources(struct proof_check *c, struct err *err)
{
	const struct mcf_proof *q = c->proof;
	int64_t met = 0, terminals = 0;
	bool *done = x_new((size_t)q->n, sizeof(*done));
	int rc = 0;

	for (int i = 0; i < q->n_sources && rc == 0; i++) {
		int s = q->source[i], root;

		if (s < 0 || s >= q->n || !sends(c, s)) {
			rc = wrong(err, "bad source", i, s);
			break;
		}
		root = root_of(c->node_root, s);
		if (done[root]) {
			rc = wrong(err, "two sources of an orbit", i, s);
		}
		done[root] = true;
		met += c->orbit_size[root];
	}
	free(done);
	for (int u = 0; u < q->n; u++) {
		terminals += sends(c, u);
	}
	if (rc == 0 && met != terminals) {
		rc = wrong(err, "orbit without a source", (int)met, (int)terminals);
	}
	return rc;
}

/* ---- the flow ---- */

static int64_t weight_of(const struct proof_check *c, int i)
{
	return c->orbit_size[root_of(c->node_root, c->proof->source[i])];
}

/* Every node has what s sends to it, and nothing else. */
static int check_sinks(const struct proof_check *c, int s, struct err *err)
{
	mpz_t has, due;
	int bad = -1;

	mpz_inits(has, due, NULL);
	for (int u = 0; u < c->proof->n && bad < 0; u++) {
		mpz_mul_si(has, c->number[u], largest(c));
		mpz_mul_si(due, c->proof->flow_den, demand(c, s, u));
		bad = u != s && mpz_cmp(has, due) != 0 ? u : bad;
	}
	mpz_clears(has, due, NULL);
	return bad < 0 ? 0 : wrong(err, "source does not reach sink with its demand", s, bad);
}

static int check_source(struct proof_check *c, int i, struct err *err)
{
	const struct mcf_proof *q = c->proof;
	int s = q->source[i];

	for (int u = 0; u < q->n; u++) {
		mpz_set_ui(c->number[u], 0);
	}
	for (int64_t k = q->first[i]; k < q->first[i + 1]; k++) {
		const struct mcf_proof_flow *f = &q->flow[k];

		if (f->arc < 0 || f->arc >= q->m || mpz_sgn(f->amount) < 0) {
			return wrong(err, "bad flow of source on arc", s, f->arc);
		}
		mpz_sub(c->number[q->tail[f->arc]], c->number[q->tail[f->arc]], f->amount);
		mpz_add(c->number[q->head[f->arc]], c->number[q->head[f->arc]], f->amount);
		mpz_addmul_ui(c->load[root_of(c->arc_root, f->arc)], f->amount,
			      (unsigned long)weight_of(c, i));
	}
	return check_sinks(c, s, err);
}

/* Loads of whole orbits against U times their capacity. */
static int check_loads(struct proof_check *c, struct err *err)
{
	const struct mcf_proof *q = c->proof;
	mpz_t *room = c->load;
	mpz_t t;
	int rc = 0;

	mpz_init(t);
	for (int a = 0; a < q->m; a++) {
		mpz_mul(room[a], room[a], mpq_denref(q->congestion));
	}
	for (int a = 0; a < q->m; a++) {
		mpz_mul_si(t, mpq_numref(q->congestion), c->cap[a]);
		mpz_mul(t, t, q->flow_den);
		mpz_sub(room[root_of(c->arc_root, a)], room[root_of(c->arc_root, a)], t);
	}
	for (int a = 0; a < q->m && rc == 0; a++) {
		if (c->arc_root[a] == a && mpz_sgn(room[a]) > 0) {
			rc = wrong(err, "arc is over the congestion", q->tail[a], q->head[a]);
		}
	}
	mpz_clear(t);
	return rc;
}

static int check_flow(struct proof_check *c, struct err *err)
{
	if (mpz_sgn(c->proof->flow_den) <= 0) {
		return wrong(err, "denominator of flows", 0, 0);
	}
	for (int i = 0; i < c->proof->n_sources; i++) {
		int rc = check_source(c, i, err);

		if (rc) {
			return rc;
		}
	}
	return check_loads(c, err);
}

/* ---- the prices ---- */

/* Distances from s by label correction in rounds; every terminal that gets something is
 * reached, as its flow shows. Those of others may be what the source before had, which
 * counts by a demand of 0. */
static void measure(struct proof_check *c, int s, bool *known)
{
	const struct mcf_proof *q = c->proof;
	bool changed = true;
	mpz_t d;

	mpz_init(d);
	memset(known, 0, (size_t)q->n * sizeof(*known));
	known[s] = true;
	mpz_set_ui(c->number[s], 0);
	while (changed) {
		changed = false;
		for (int a = 0; a < q->m; a++) {
			int u = q->tail[a], v = q->head[a];

			if (!known[u]) {
				continue;
			}
			mpz_add(d, c->number[u], q->price[a]);
			if (!known[v] || mpz_cmp(d, c->number[v]) < 0) {
				mpz_set(c->number[v], d);
				known[v] = changed = true;
			}
		}
	}
	mpz_clear(d);
}

static int check_prices(struct proof_check *c, struct err *err)
{
	const struct mcf_proof *q = c->proof;
	bool *known = x_alloc((size_t)q->n, sizeof(*known));
	mpz_t sum, scale, t, one;
	int rc = 0;

	mpz_inits(sum, scale, t, one, NULL);
	for (int a = 0; a < q->m && rc == 0; a++) {
		if (mpz_sgn(q->price[a]) < 0) {
			rc = wrong(err, "negative price on arc", q->tail[a], q->head[a]);
		}
		mpz_mul_si(t, q->price[a], c->cap[a]);
		mpz_add(scale, scale, t);
	}
	for (int i = 0; i < q->n_sources && rc == 0; i++) {
		measure(c, q->source[i], known);
		mpz_set_ui(t, 0);
		for (int u = 0; u < q->n; u++) {
			mpz_mul_si(one, c->number[u], demand(c, q->source[i], u));
			mpz_add(t, t, one);
		}
		mpz_addmul_ui(sum, t, (unsigned long)weight_of(c, i));
	}
	mpz_mul_si(scale, scale, largest(c));
	if (rc == 0) {
		/* sum / scale >= U, so no flow is below U. */
		mpz_mul(sum, sum, mpq_denref(q->congestion));
		mpz_mul(scale, scale, mpq_numref(q->congestion));
		if (mpz_sgn(scale) <= 0 || mpz_cmp(sum, scale) < 0) {
			rc = wrong(err, "prices do not prove the congestion", 0, 0);
		}
	}
	mpz_clears(sum, scale, t, one, NULL);
	free(known);
	return rc;
}

int mcf_proof_check(const struct topo *t, const struct flow_demands *demands,
		    const struct mcf_proof *proof, struct err *err)
{
	size_t n = (size_t)proof->n + 2, m = (size_t)proof->m + 1;
	struct proof_check c = {
		.t = t, .demands = demands, .proof = proof,
		.number = numbers_new(proof->n),
		.load = numbers_new(proof->m),
	};
	int rc;

	arrays_add(&c.arrays, c.cap, m);
	arrays_add(&c.arrays, c.out_first, n);
	arrays_add(&c.arrays, c.node_root, n);
	arrays_add(&c.arrays, c.arc_root, m);
	arrays_add(&c.arrays, c.orbit_size, n);
	rc = demands && demands->n != topo_ranks(t)
		     ? wrong(err, "ranks of demands and digraph", demands->n, topo_ranks(t))
		     : check_arcs(&c, err);
	if (rc == 0 && (rc = check_symmetry(&c, err)) == 0 && (rc = check_sources(&c, err)) == 0 &&
	    (rc = check_flow(&c, err)) == 0) {
		rc = check_prices(&c, err);
	}
	arrays_fini(&c.arrays);
	numbers_free(c.number, proof->n);
	numbers_free(c.load, proof->m);
	return rc;
}
