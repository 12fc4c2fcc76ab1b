/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cayley graphs of the groups of cayley_group.c, from their expressions. An arc leads from x
 * to x g for every generator g, so that multiplying from the left is an automorphism:
 * the graph is vertex-transitive, and topo_group_find returns that group.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "topology/private.h"

#define MAX_J TOPO_CAYLEY_MAX_J

struct topo_cayley {
	struct topo_cayley_group g;
	int col;
	bool by_matrix;			/* written as n^j */
	int letters;			/* generators as written, ascending by number */
	int64_t letter[TOPO_MAX_ARGS];
	int letter_col[TOPO_MAX_ARGS];
	struct topo_permutation permutation[TOPO_MAX_ARGS];	/* the letters, where they are */
};

/* ---- reading ---- */

/* Numbers up to a closing character, exactly n of them; below limit. */
static int read_row(struct topo_parser *p, int n, int64_t limit, char close, int64_t *out)
{
	for (int i = 0; i < n; i++) {
		struct topo_arg arg;
		int rc = topo_read_number(p, "a number", &arg);

		if (rc) {
			return rc;
		}
		if (arg.value >= limit) {
			return topo_err_at(p->err, arg.col, "%lld: expected a number below %lld",
					   (long long)arg.value, (long long)limit);
		}
		out[i] = arg.value;
		if (!topo_accept(p, i + 1 < n ? ',' : close)) {
			const char wanted[] = { '\'', i + 1 < n ? ',' : close, '\'', '\0' };

			return topo_expected(p, wanted);
		}
	}
	return 0;
}

static int read_size(struct topo_parser *p, int64_t least, int64_t *out)
{
	struct topo_arg arg;
	int rc = topo_read_number(p, "a number", &arg);

	if (rc) {
		return rc;
	}
	*out = arg.value;
	return arg.value < least || arg.value > TOPO_MAX_NODES
		? topo_err_at(p->err, arg.col, "%lld: expected a number from %lld to %d",
			      (long long)arg.value, (long long)least, TOPO_MAX_NODES) : 0;
}

static int want(struct topo_parser *p, char c)
{
	const char wanted[] = { '\'', c, '\'', '\0' };

	return topo_accept(p, c) ? 0 : topo_expected(p, wanted);
}

/* n, or n^j; then ':' k, or ':' (k x l). */
static int read_orders(struct topo_parser *p, struct topo_cayley *x)
{
	int64_t j = 1;
	int rc;

	x->g.k = x->g.l = 1;
	if ((rc = read_size(p, 1, &x->g.n))) {
		return rc;
	}
	x->by_matrix = topo_accept(p, '^');
	if ((x->by_matrix && (rc = read_size(p, 1, &j))) || (rc = want(p, ':'))) {
		return rc;
	}
	x->g.j = j > MAX_J ? MAX_J : (int)j;
	x->g.vectors = topo_power(x->g.n, j, TOPO_MAX_NODES);
	if (!x->by_matrix && topo_accept(p, '(')) {
		if ((rc = read_size(p, 1, &x->g.k)) || (rc = want(p, 'x')) ||
		    (rc = read_size(p, 1, &x->g.l)) || (rc = want(p, ')'))) {
			return rc;
		}
	} else if ((rc = read_size(p, 1, &x->g.k))) {
		return rc;
	}
	return j > MAX_J || topo_cayley_order(&x->g) > TOPO_MAX_NODES
		? topo_err_at(p->err, x->col, "a group of more than %d elements", TOPO_MAX_NODES)
		: want(p, ',');
}

/* "r=" and a number; *found false where another letter stands there. */
static int read_named(struct topo_parser *p, const struct topo_cayley *x, char name, bool *found,
		      int64_t *out)
{
	int rc;

	*found = topo_accept(p, name);
	if (!*found) {
		return 0;
	}
	rc = want(p, '=');
	return rc ? rc : read_row(p, 1, x->g.n > 1 ? x->g.n : 2, ',', out);
}

/* [a,b;c,d], then +(w) where b carries. */
static int read_matrix(struct topo_parser *p, struct topo_cayley *x)
{
	int rc = want(p, '[');

	for (int i = 0; i < x->g.j && !rc; i++) {
		rc = read_row(p, x->g.j, x->g.n, i + 1 < x->g.j ? ';' : ']', x->g.a + i * x->g.j);
	}
	if (rc) {
		return rc;
	}
	if (topo_accept(p, '+') &&
	    ((rc = want(p, '(')) || (rc = read_row(p, x->g.j, x->g.n, ')', x->g.w)))) {
		return rc;
	}
	return want(p, ',');
}

static int read_action(struct topo_parser *p, struct topo_cayley *x)
{
	bool found;
	int rc;

	for (int i = 0; i < x->g.j; i++) {
		x->g.q[i * x->g.j + i] = 1 % x->g.n;
	}
	if (x->by_matrix) {
		return read_matrix(p, x);
	}
	rc = read_named(p, x, 'r', &found, x->g.a);
	if (rc || !found) {
		return rc ? rc : topo_expected(p, "'r='");
	}
	if (x->g.l == 1) {
		return read_named(p, x, 's', &found, x->g.w);
	}
	rc = read_named(p, x, 'q', &found, x->g.q);
	return rc || found ? rc : topo_expected(p, "'q='");
}

/* Another letter begins here. */
static int begin_letter(struct topo_parser *p, struct topo_cayley *x)
{
	if (x->letters == TOPO_MAX_ARGS) {
		return topo_err_at(p->err, topo_column(p), "more than %d generators",
				   TOPO_MAX_ARGS);
	}
	x->letter_col[x->letters] = topo_column(p);
	return 0;
}

/* (a,b), (a,b,c) or (u,v,..;b). */
static int read_letter(struct topo_parser *p, struct topo_cayley *x)
{
	struct topo_cayley_element e = { .c = 0 };
	int rc;

	if ((rc = begin_letter(p, x)) || (rc = want(p, '(')) ||
	    (rc = read_row(p, x->g.j, x->g.n, x->by_matrix ? ';' : ',', e.v)) ||
	    (rc = read_row(p, 1, x->g.k, x->g.l > 1 ? ',' : ')', &e.b)) ||
	    (x->g.l > 1 && (rc = read_row(p, 1, x->g.l, ')', &e.c)))) {
		return rc;
	}
	x->letter[x->letters++] = topo_cayley_number(&x->g, &e);
	return 0;
}

static int read_letters(struct topo_parser *p, struct topo_cayley *x)
{
	int rc = want(p, '{');

	while (!rc) {
		rc = read_letter(p, x);
		if (!rc && topo_accept(p, '}')) {
			return want(p, ')');
		}
		if (!rc) {
			rc = want(p, ',');
		}
	}
	return rc;
}

/* Permutations, whose numbers depend on their order, by their images. */
static bool in_order(const struct topo_cayley *x, int k)
{
	int order = memcmp(&x->permutation[k - 1], &x->permutation[k], sizeof(*x->permutation));

	return order ? order < 0 : x->letter[k - 1] <= x->letter[k];
}

/* Ascending: one graph has one name. */
static void sort_letters(struct topo_cayley *x)
{
	for (int i = 1; i < x->letters; i++) {
		for (int k = i; k > 0 && !in_order(x, k); k--) {
			struct topo_permutation permutation = x->permutation[k];
			int64_t letter = x->letter[k];
			int col = x->letter_col[k];

			x->permutation[k] = x->permutation[k - 1];
			x->letter[k] = x->letter[k - 1];
			x->letter_col[k] = x->letter_col[k - 1];
			x->permutation[k - 1] = permutation;
			x->letter[k - 1] = letter;
			x->letter_col[k - 1] = col;
		}
	}
}

/* (1,2,3) or (1 2 3), after its '(': points from one, that this permutation did not have before. */
static int read_cycle(struct topo_parser *p, bool *had, uint8_t *image, int *points)
{
	int first = -1, last = -1;

	do {
		struct topo_arg arg;
		int rc = topo_read_number(p, "a point", &arg), at = (int)arg.value - 1;

		if (rc) {
			return rc;
		}
		if (at < 0 || at >= TOPO_CAYLEY_MAX_POINTS) {
			return topo_err_at(p->err, arg.col, "point %lld: expected 1 to %d",
					   (long long)arg.value, TOPO_CAYLEY_MAX_POINTS);
		}
		if (had[at]) {
			return topo_err_at(p->err, arg.col, "point %d stands twice in a "
					   "permutation", at + 1);
		}
		had[at] = true;
		*points = at < *points ? *points : at + 1;
		if (last >= 0) {
			image[last] = (uint8_t)at;
		}
		first = last < 0 ? at : first;
		last = at;
		image[at] = (uint8_t)first;
	} while (topo_accept(p, ',') || !topo_accept(p, ')'));
	return 0;
}

/* (1,2,3)(4,5): a letter in cycles. */
static int read_permutation(struct topo_parser *p, struct topo_cayley *x, int *points)
{
	uint8_t *image = x->permutation[x->letters].image;
	bool had[TOPO_CAYLEY_MAX_POINTS] = { false };
	int rc = begin_letter(p, x);

	if (rc) {
		return rc;
	}
	for (int i = 0; i < TOPO_CAYLEY_MAX_POINTS; i++) {
		image[i] = (uint8_t)i;
	}
	rc = want(p, '(');
	if (rc) {
		return rc;
	}
	do {
		rc = read_cycle(p, had, image, points);
		if (rc) {
			return rc;
		}
	} while (topo_accept(p, '('));
	x->letters++;
	return 0;
}

/* Permutations separated by commas, up to ')', and the group that they generate. */
static int read_permutations(struct topo_parser *p, struct topo_cayley *x)
{
	int points = 1, rc;

	do {
		rc = read_permutation(p, x, &points);
		if (rc) {
			return rc;
		}
	} while (topo_accept(p, ','));
	if (!topo_accept(p, ')')) {
		return topo_expected(p, "',', '(' or ')'");
	}
	sort_letters(x);
	rc = topo_cayley_generate(&x->g, points, x->permutation, x->letters);
	for (int i = 0; i < x->letters && !rc; i++) {
		struct topo_cayley_element e = { .permutation = x->permutation[i] };

		x->letter[i] = topo_cayley_number(&x->g, &e);
	}
	return rc == WEFT_ELIMIT ? topo_err_at(p->err, x->col, "a group of more than %d elements",
					       TOPO_MAX_NODES)
	     : 0;
}

int topo_read_cayley(struct topo_parser *p, struct topo_call *call)
{
	struct topo_cayley *x = x_new(1, sizeof(*x));
	int rc;

	call->cayley = x;
	x->col = topo_column(p);
	if (*p->at == '(') {
		return read_permutations(p, x);
	}
	if ((rc = read_orders(p, x)) || (rc = read_action(p, x)) || (rc = read_letters(p, x))) {
		return rc;
	}
	sort_letters(x);
	return 0;
}

/* ---- writing ---- */

static bool closes(const struct topo_call *call)
{
	return strcmp(call->family->name, "Cay") == 0;
}

void topo_write_cayley(const struct topo_call *call, struct buf *b)
{
	const struct topo_cayley *x = call->cayley;

	topo_cayley_write(&x->g, closes(call), x->letter, x->letters, b);
}

/* ---- what generates the group ---- */

/* All generators in the order of their arcs: an inverse behind its letter. */
static int generators(const struct topo_make *mk, int64_t *out)
{
	const struct topo_cayley *x = mk->call->cayley;
	int n = 0;

	for (int i = 0; i < x->letters; i++) {
		int64_t inverse = topo_cayley_inverse(&x->g, x->letter[i]);

		out[n++] = x->letter[i];
		if (closes(mk->call) && inverse != x->letter[i]) {
			out[n++] = inverse;
		}
	}
	return n;
}

static void check_letters(struct topo_make *mk)
{
	const struct topo_cayley *x = mk->call->cayley;

	for (int i = 0; i < x->letters; i++) {
		if (x->letter[i] == 0) {
			topo_refuse(mk, x->letter_col[i], "the identity is no generator");
		}
		if (i > 0 && x->letter[i - 1] == x->letter[i]) {
			topo_refuse(mk, x->letter_col[i], "a generator stands there twice");
		}
		for (int k = 0; k < i && closes(mk->call) && !mk->rc; k++) {
			if (topo_cayley_inverse(&x->g, x->letter[i]) == x->letter[k]) {
				topo_refuse(mk, x->letter_col[i], "a generator and its inverse: "
					    "one of them is enough");
			}
		}
	}
}

/* next[u d + i]: u times generator i; the caller's. */
static int32_t *neighbours(const struct topo_cayley *x, const int64_t *letters, int d)
{
	size_t n = (size_t)topo_cayley_order(&x->g);
	int32_t *next = x_alloc(n * (size_t)d, sizeof(*next)), *one = x_alloc(n, sizeof(*one));

	for (int i = 0; i < d; i++) {
		topo_cayley_times(&x->g, letters[i], one);
		for (size_t u = 0; u < n; u++) {
			next[u * (size_t)d + (size_t)i] = one[u];
		}
	}
	free(one);
	return next;
}

static void check_reach(struct topo_make *mk)
{
	const struct topo_cayley *x = mk->call->cayley;
	int64_t letters[2 * TOPO_MAX_ARGS], n = topo_cayley_order(&x->g);
	int d = generators(mk, letters), reached;
	int32_t *next = neighbours(x, letters, d);
	int32_t *queue = x_alloc((size_t)n, sizeof(*queue));
	bool *seen = x_new((size_t)n, sizeof(*seen));

	reached = topo_count_reached(next, (int)n, d, queue, seen);
	if (reached < n) {
		topo_refuse(mk, x->letter_col[0], "the generators reach %d of %d nodes",
			    reached, (int)n);
	}
	free(next);
	free(queue);
	free(seen);
}

static void measure_cayley(struct topo_make *mk)
{
	const struct topo_cayley *x = mk->call->cayley;
	const char *fault = topo_cayley_fault(&x->g);
	int64_t letters[2 * TOPO_MAX_ARGS];

	if (fault) {
		topo_refuse(mk, x->col, "%s", fault);
	}
	check_letters(mk);
	if (topo_cayley_order(&x->g) < 2) {
		topo_refuse(mk, x->col, "a group of one element");
	}
	if (mk->rc) {
		return;
	}
	mk->size = topo_group_size(topo_cayley_order(&x->g), generators(mk, letters));
	if (mk->size.m <= TOPO_MAX_ARCS) {
		check_reach(mk);
	}
}

/* ---- the group by which it is transitive ---- */

/* One in a digit of v, or in b, or c. */
static void unit_factors(const struct topo_cayley *x, struct topo_cayley_factors *f)
{
	for (int i = 0; i < x->g.j + 2; i++) {
		struct topo_cayley_element one = { .b = i == x->g.j, .c = i > x->g.j };
		int64_t order = i < x->g.j ? x->g.n : i == x->g.j ? x->g.k : x->g.l;

		if (order == 1) {
			continue;
		}
		if (i < x->g.j) {
			one.v[i] = 1;
		}
		f->number[f->n] = topo_cayley_number(&x->g, &one);
		f->order[f->n++] = (int)order;
	}
}

/* image[u]: g u, which is the inverse of u^-1 g^-1. room: n. */
static void multiply_left(const struct topo_cayley *x, int64_t g, const int32_t *inverse,
			  int32_t *room, int32_t *image)
{
	int64_t n = topo_cayley_order(&x->g);

	topo_cayley_times(&x->g, inverse[g], room);
	for (int64_t u = 0; u < n; u++) {
		image[u] = inverse[room[inverse[u]]];
	}
}

/* Multiplying from the left. Where no factors are found the digraph has no group, which makes
 * what is asked of it slower. */
static void attach_group(struct topo_make *mk)
{
	const struct topo_cayley *x = mk->call->cayley;
	struct topo_cayley_factors f = { .n = 0 };
	size_t n = (size_t)topo_cayley_order(&x->g);
	int32_t *inverse, *room, *images;

	if (!x->g.chain.points) {
		unit_factors(x, &f);
	} else if (!topo_chain_factors(&x->g.chain, &f)) {
		return;
	}
	inverse = x_alloc((2 + (size_t)f.n) * n, sizeof(*inverse));
	room = inverse + n;
	images = room + n;
	for (size_t u = 0; u < n; u++) {
		inverse[u] = (int32_t)topo_cayley_inverse(&x->g, (int64_t)u);
	}
	for (int i = 0; i < f.n; i++) {
		multiply_left(x, f.number[i], inverse, room, images + (size_t)i * n);
	}
	mk->rc = topo_group_new((int)n, (int)n, f.n, f.order, images, &mk->t->group, mk->err);
	free(inverse);
}

static void build_cayley(struct topo_make *mk)
{
	const struct topo_cayley *x = mk->call->cayley;
	int64_t letters[2 * TOPO_MAX_ARGS];
	int d = generators(mk, letters);
	int32_t *next = neighbours(x, letters, d);

	for (int64_t a = 0; a < mk->size.m; a++) {
		topo_link(mk, a / d, next[a]);
	}
	free(next);
	if (!mk->rc) {
		attach_group(mk);
	}
}

/* One row a form, for help; the first one reads them all. */
const struct topo_family topo_cayley[] = {
	{ "Cay", "c", "Cay((1,2,3)(4,5),...)", "Cayley graph of what permutations generate, a port "
	  "for each of them and its inverse", measure_cayley, build_cayley },
	{ "Cay", "c", "Cay(n:k,r=R[,s=S],{(a,b),...})", "of Z_n : Z_k", measure_cayley,
	  build_cayley },
	{ "Cay", "c", "Cay(n:(kxl),r=R,q=Q,{(a,b,c),...})", "of Z_n : (Z_k x Z_l)",
	  measure_cayley, build_cayley },
	{ "Cay", "c", "Cay(n^j:k,[A][+(w)],{(v,...;b),...})", "of Z_n^j : Z_k, A by rows",
	  measure_cayley, build_cayley },
	{ "DiCay", "c", "DiCay(...)", "as Cay(...) without inverses, 1 port a generator",
	  measure_cayley, build_cayley },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
