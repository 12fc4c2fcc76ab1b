/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constructions of direct-connect-topologies section 5.
 *
 * Everything is an all-gather here. For a reduce-scatter all digraphs are
 * transposed, and the result is turned round. Nodes keep the numbers that
 * topo_parse gives them; arcs are found by their ends.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/bfb.h"
#include "collective/schedule/schedule.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

enum form { FORM_NONE, FORM_LINE, FORM_DEGREE, FORM_POWER, FORM_BOTH };

struct bfb_parsed {
	enum form form;
	char *inner;	/* owned */
	int k;
};

/* What a construction works with. */
struct bfb_expansion {
	const struct coll_sched *a;	/* all-gather of the inner digraph */
	const struct topo *g;		/* its digraph */
	const int32_t *node;		/* L: by arc of g, the node of it */
	int k;
	struct coll_sched *out;
};

/* ---- expressions ---- */

/* Where the argument that begins at s ends: at ',' or ')' of its level. */
static const char *argument_end(const char *s)
{
	int depth = 0;

	for (; *s && (depth > 0 || (*s != ',' && *s != ')')); s++) {
		depth += (*s == '(' || *s == '{') - (*s == ')' || *s == '}');
	}
	return s;
}

/* L3(X) is L(L2(X)), L1(X) is L(X). */
static char *inner_line(int times, const char *arg, size_t len)
{
	char *text = x_alloc(len + 32, 1);

	if (times > 2) {
		snprintf(text, len + 32, "L%d(%.*s)", times - 1, (int)len, arg);
	} else if (times == 2) {
		snprintf(text, len + 32, "L(%.*s)", (int)len, arg);
	} else {
		snprintf(text, len + 32, "%.*s", (int)len, arg);
	}
	return text;
}

/* The outermost operator of a canonical expression. */
static void parse(const char *expr, struct bfb_parsed *out)
{
	const char *open = strchr(expr, '('), *end;
	size_t len = open ? (size_t)(open - expr) : 0;
	int times = 1;

	*out = (struct bfb_parsed){ .form = FORM_NONE };
	if (!open) {
		return;
	}
	end = argument_end(open + 1);
	if (expr[0] == 'L' && (len == 1 || isdigit((unsigned char)expr[1]))) {
		times = len > 1 ? atoi(expr + 1) : 1;
		out->form = FORM_LINE;
	} else if (strncmp(expr, "Deg(", 4) == 0) {
		out->form = FORM_DEGREE;
	} else if (strncmp(expr, "Pow(", 4) == 0) {
		out->form = FORM_POWER;
	} else if (strncmp(expr, "Bi(", 3) == 0) {
		out->form = FORM_BOTH;
	} else {
		return;
	}
	out->k = *end == ',' ? atoi(end + 1) : times;
	out->inner = inner_line(times, open + 1, (size_t)(end - open - 1));
}

/* ---- transfers ---- */

/* Which of the arcs parallel to e it is, from 0. */
static int rank_of(const struct topo *g, int32_t e)
{
	int first, n = topo_out(g, topo_arc(g, e)->src, &first), rank = 0;

	for (int32_t a = first; a < first + n && a < e; a++) {
		rank += topo_arc(g, a)->dst == topo_arc(g, e)->dst;
	}
	return rank;
}

/* How many arcs go from u to v. */
static int parallels(const struct topo *g, int u, int v)
{
	int first, n = topo_out(g, u, &first), count = 0;

	for (int32_t a = first; a < first + n; a++) {
		count += topo_arc(g, a)->dst == v;
	}
	return count;
}

/* Arc number `rank` of those from u to v. */
static int32_t arc_at(const struct topo *t, int u, int v, int rank)
{
	int first, n = topo_out(t, u, &first);

	for (int32_t a = first; a < first + n; a++) {
		if (topo_arc(t, a)->dst == v && rank-- == 0) {
			return a;
		}
	}
	return -1;
}

static int add(struct bfb_expansion *x, int step, int32_t arc, int origin,
	       int64_t first, int64_t last, struct err *err)
{
	struct coll_xfer xfer = { step, arc, origin, COLL_NO_DEST,
				  (int32_t)first, (int32_t)last, COLL_OP_COPY, 0 };

	return coll_add(x->out, &xfer, err);
}

/* ---- line graph ---- */

/* From the node of arc e on to the nodes of all arcs after it, the chunks of
 * every node that is an arc into v. */
static int line_step(struct bfb_expansion *x, int step, int v, int32_t e,
		     int32_t first, int32_t last, struct err *err)
{
	const struct topo *t = coll_topo(x->out);
	int next, n = topo_out(x->g, topo_arc(x->g, e)->dst, &next), rc = 0;
	const int32_t *in;
	int n_in = topo_in(x->g, v, &in);

	for (int32_t f = next; f < next + n && !rc; f++) {
		int32_t arc = topo_find_arc(t, x->node[e], x->node[f]);

		for (int i = 0; i < n_in && !rc; i++) {
			if (in[i] != f) {
				rc = add(x, step, arc, x->node[in[i]], first, last, err);
			}
		}
	}
	return rc;
}

static int expand_line(struct bfb_expansion *x, struct err *err)
{
	const struct topo *t = coll_topo(x->out);
	int64_t n;
	const struct coll_xfer *v = coll_xfers(x->a, &n);
	int rc = 0;

	for (int a = 0; a < topo_m(t) && !rc; a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		rc = arc->src == arc->dst
			     ? 0 : add(x, 0, a, arc->src, 0, coll_chunks(x->a) - 1, err);
	}
	for (int64_t i = 0; i < n && !rc; i++) {
		rc = line_step(x, v[i].step + 1, v[i].origin, v[i].arc, v[i].first, v[i].last, err);
	}
	return rc;
}

/* ---- degree ---- */

/* Within copies, each transfer to all copies of where it goes. */
static int degree_copies(struct bfb_expansion *x, struct err *err)
{
	const struct topo *t = coll_topo(x->out);
	int64_t n, scale = coll_chunks(x->out) / coll_chunks(x->a);
	const struct coll_xfer *v = coll_xfers(x->a, &n);
	int nodes = topo_n(x->g), rc = 0;

	for (int64_t i = 0; i < n && !rc; i++) {
		const struct topo_arc *arc = topo_arc(x->g, v[i].arc);

		for (int j = 0; j < x->k * x->k && !rc; j++) {
			int from = j / x->k * nodes, to = j % x->k * nodes;
			int32_t a = arc_at(t, arc->src + from, arc->dst + to,
					   rank_of(x->g, v[i].arc));

			rc = add(x, v[i].step, a, v[i].origin + from, v[i].first * scale,
				 (v[i].last + 1) * scale - 1, err);
		}
	}
	return rc;
}

/* Then a node takes the shards of its own copies, a part from each side. */
static int expand_degree(struct bfb_expansion *x, struct err *err)
{
	const struct topo *t = coll_topo(x->out);
	int nodes = topo_n(x->g), steps = coll_steps(x->a);
	int rc = degree_copies(x, err);

	for (int w = 0; w < topo_n(t) && !rc; w++) {
		const int32_t *in;
		int n = topo_in(t, w, &in);
		int part = n > 0 ? coll_chunks(x->out) / n : 0;

		for (int i = 0; i < x->k * n && !rc; i++) {
			int origin = i / n * nodes + w % nodes, p = i % n;

			rc = origin == w ? 0
			     : add(x, steps, in[p], origin, p * part, (p + 1) * part - 1, err);
		}
	}
	return rc;
}

/* ---- power ---- */

/* Numbers of k digits in base n, written over the dimensions listed. */
static int spread(int digits, int n, const int *dims, int from, int to, const int *weight)
{
	int node = 0;

	for (int i = from; i < to; i++) {
		node += digits % n * weight[dims[i]];
		digits /= n;
	}
	return node;
}

struct bfb_gather_order {
	int *dims;	/* the order in which dimensions are gathered */
	int *weight;	/* of a digit, by dimension */
	int phase, first_chunk;
};

static int int_pow(int n, int k)
{
	int p = 1;

	while (k-- > 0) {
		p *= n;
	}
	return p;
}

/* One transfer of A in one phase of one slot: for all nodes that agree in
 * the dimensions to come, with all that was gathered in those before. */
static int power_xfer(struct bfb_expansion *x, const struct bfb_gather_order *u,
		      const struct coll_xfer *v, struct err *err)
{
	const struct topo *t = coll_topo(x->out);
	const struct topo_arc *arc = topo_arc(x->g, v->arc);
	int n = topo_n(x->g), done = int_pow(n, u->phase), rc = 0;
	int rest = int_pow(n, x->k - 1 - u->phase);
	int weight = u->weight[u->dims[u->phase]];

	for (int z = 0; z < rest && !rc; z++) {
		int later = spread(z, n, u->dims, u->phase + 1, x->k, u->weight);

		for (int y = 0; y < done && !rc; y++) {
			int at = later + spread(y, n, u->dims, 0, u->phase, u->weight);
			int32_t a = arc_at(t, at + arc->src * weight, at + arc->dst * weight,
					   rank_of(x->g, v->arc));

			for (int o = 0; o < done && !rc; o++) {
				int origin = later + v->origin * weight +
					     spread(o, n, u->dims, 0, u->phase, u->weight);

				rc = add(x, v->step + u->phase * coll_steps(x->a), a, origin,
					 u->first_chunk + v->first, u->first_chunk + v->last, err);
			}
		}
	}
	return rc;
}

static int expand_power(struct bfb_expansion *x, struct err *err)
{
	struct bfb_gather_order u = { .dims = x_new((size_t)x->k, sizeof(int)),
			  .weight = x_new((size_t)x->k, sizeof(int)) };
	int64_t n;
	const struct coll_xfer *v = coll_xfers(x->a, &n);
	int rc = 0;

	for (int i = 0; i < x->k; i++) {
		u.weight[i] = int_pow(topo_n(x->g), x->k - 1 - i);
	}
	for (int slot = 0; slot < x->k && !rc; slot++) {
		u.first_chunk = slot * coll_chunks(x->a);
		for (int i = 0; i < x->k; i++) {
			u.dims[i] = (slot + i) % x->k;
		}
		for (u.phase = 0; u.phase < x->k && !rc; u.phase++) {
			for (int64_t i = 0; i < n && !rc; i++) {
				rc = power_xfer(x, &u, &v[i], err);
			}
		}
	}
	free(u.dims);
	free(u.weight);
	return rc;
}

/* ---- both directions ---- */

/* All of s as the half of every shard that begins at chunk `base`. Of arcs
 * that X and its transpose share, the transpose has the later ones. */
static int add_half(struct bfb_expansion *x, const struct coll_sched *s, int base,
		    bool later, struct err *err)
{
	const struct topo *t = coll_topo(x->out), *g = coll_topo(s);
	int64_t n, scale = coll_chunks(x->out) / 2 / coll_chunks(s);
	const struct coll_xfer *v = coll_xfers(s, &n);
	int rc = 0;

	for (int64_t i = 0; i < n && !rc; i++) {
		const struct topo_arc *arc = topo_arc(g, v[i].arc);
		int rank = rank_of(g, v[i].arc) +
			   (later ? parallels(g, arc->dst, arc->src) : 0);
		int32_t a = arc_at(t, arc->src, arc->dst, rank);

		rc = add(x, v[i].step, a, v[i].origin, base + v[i].first * scale,
			 base + (v[i].last + 1) * scale - 1, err);
	}
	return rc;
}

/* ---- one level ---- */

/* The digraph of an expression or its transpose; back as topo_transpose. */
static int digraph(const char *expr, bool transposed, struct topo **out,
		   int32_t **back, struct err *err)
{
	struct topo *t;
	int rc = topo_parse(expr, &t, NULL, err);

	*back = NULL;
	if (rc) {
		return rc;
	}
	*back = x_alloc((size_t)topo_m(t) + 1, sizeof(**back));
	for (int a = 0; a < topo_m(t) && !transposed; a++) {
		(*back)[a] = a;
	}
	if (!transposed) {
		*out = t;
		return 0;
	}
	rc = topo_transpose(t, out, *back, err);
	topo_free(t);
	if (rc) {
		free(*back);
		*back = NULL;
		*out = NULL;
	}
	return rc;
}

static int64_t lcm(int64_t a, int64_t b)
{
	return a / rat_gcd(a, b) * b;
}

/* Chunks of a shard that the construction needs. */
static int64_t chunks_of(const struct bfb_parsed *p, const struct coll_sched *a,
			 const struct coll_sched *b, const struct topo *t)
{
	int64_t chunks = coll_chunks(a);

	switch (p->form) {
	case FORM_DEGREE:
		for (int v = 0; v < topo_n(t) && chunks <= COLL_MAX_CHUNKS; v++) {
			const int32_t *in;
			int n = topo_in(t, v, &in);

			chunks = n > 0 ? lcm(chunks, n) : chunks;
		}
		return chunks;
	case FORM_POWER:
		return chunks * p->k;
	case FORM_BOTH:
		return 2 * lcm(chunks, coll_chunks(b));
	case FORM_LINE:
	case FORM_NONE:
		break;
	}
	return chunks;
}

/* The construction on t, which it takes over. a, b: all-gathers of the inner
 * digraph and, for Bi, of its transpose. */
static int construct(const struct bfb_parsed *p, const struct coll_sched *a,
		     const struct coll_sched *b, const int32_t *node,
		     struct topo *t, struct coll_sched **out, struct err *err)
{
	int64_t chunks = chunks_of(p, a, b, t);
	struct bfb_expansion x = { .a = a, .g = coll_topo(a), .node = node,
			    .k = p->k };
	int rc;

	if (chunks > COLL_MAX_CHUNKS) {
		topo_free(t);
		return err_set(err, WEFT_ELIMIT,
			       "the construction needs %lld chunks a shard, "
			       "more than %d", (long long)chunks,
			       COLL_MAX_CHUNKS);
	}
	rc = coll_new(COLL_ALLGATHER, t, (int)chunks, 0, 0, &x.out, err);
	if (rc) {
		return rc;
	}
	switch (p->form) {
	case FORM_LINE:
		rc = expand_line(&x, err);
		break;
	case FORM_DEGREE:
		rc = expand_degree(&x, err);
		break;
	case FORM_POWER:
		rc = expand_power(&x, err);
		break;
	case FORM_BOTH:
		rc = add_half(&x, a, 0, false, err);
		if (!rc) {
			rc = add_half(&x, b, (int)chunks / 2, true, err);
		}
		break;
	case FORM_NONE:
		break;
	}
	if (rc || (rc = coll_finish(x.out, err))) {
		coll_free(x.out);
		return rc;
	}
	*out = x.out;
	return 0;
}

/* Every transfer of the breadth-first broadcast, which constructions copy. */
static int innermost(struct topo *t, struct coll_sched **out, struct err *err)
{
	struct coll_sched *compact;
	int rc = coll_bfb(COLL_ALLGATHER, t, &compact, err);

	if (!rc) {
		rc = coll_unfold(compact, out, err);
		coll_free(compact);
	}
	return rc;
}

static int allgather(const char *expr, bool transposed, struct coll_sched **out, struct err *err)
{
	struct coll_sched *a = NULL, *b = NULL;
	int32_t *back = NULL, *node = NULL;
	struct topo *t = NULL, *g = NULL;
	struct bfb_parsed p;
	int rc;

	parse(expr, &p);
	rc = digraph(expr, transposed, &t, &back, err);
	if (!rc && p.form == FORM_NONE) {
		free(back);
		return innermost(t, out, err);
	}
	if (!rc) {
		rc = allgather(p.inner, transposed, &a, err);
	}
	if (!rc && p.form == FORM_BOTH) {
		rc = allgather(p.inner, !transposed, &b, err);
	}
	if (!rc && p.form == FORM_LINE) {
		rc = digraph(p.inner, transposed, &g, &node, err);
	}
	if (!rc) {
		rc = construct(&p, a, b, node, t, out, err);
		t = NULL;
	}
	topo_free(t);
	topo_free(g);
	coll_free(a);
	coll_free(b);
	free(back);
	free(node);
	free(p.inner);
	return rc;
}

static int one_phase(enum coll_kind kind, const char *expr,
		     struct coll_sched **out, struct err *err)
{
	struct coll_sched *s = NULL;
	int rc = allgather(expr, kind == COLL_REDUCE_SCATTER, &s, err);

	if (rc || kind == COLL_ALLGATHER) {
		*out = s;
		return rc;
	}
	rc = coll_reverse(s, out, err);
	coll_free(s);
	return rc;
}

static int both_phases(const char *expr, struct coll_sched **out, struct err *err)
{
	struct coll_sched *first = NULL, *second = NULL;
	int rc;

	if ((rc = one_phase(COLL_REDUCE_SCATTER, expr, &first, err)) ||
	    (rc = one_phase(COLL_ALLGATHER, expr, &second, err))) {
		goto out;
	}
	rc = coll_sequence(first, second, out, err);
out:
	coll_free(first);
	coll_free(second);
	return rc;
}

int coll_expand(enum coll_kind kind, const char *expr, struct coll_sched **out, struct err *err)
{
	struct bfb_parsed p = { .form = FORM_NONE };
	char *name = NULL;
	struct topo *t = NULL;
	int rc = topo_parse(expr, &t, &name, err);

	*out = NULL;
	topo_free(t);
	if (!rc) {
		parse(name, &p);
	}
	if (!rc && (p.form == FORM_NONE || kind == COLL_ALLTOALL || coll_has_root(kind))) {
		rc = err_set(err, WEFT_EUNSUPPORTED,
			     "no construction of %s for %.64s: not supported",
			     coll_kind_name(kind), name);
		err_hint(err, "supported: allgather, reduce-scatter and "
			 "allreduce of L(X), Deg(X,k), Pow(X,k), Bi(X)");
	}
	if (!rc) {
		rc = kind == COLL_ALLREDUCE
			 ? both_phases(name, out, err) : one_phase(kind, name, out, err);
	}
	if (!rc) {
		rc = coll_prove(*out, NULL, err);
	}
	if (!rc) {
		coll_set_topo_name(*out, name);
	} else {
		coll_free(*out);
		*out = NULL;
	}
	free(p.inner);
	free(name);
	return rc;
}
