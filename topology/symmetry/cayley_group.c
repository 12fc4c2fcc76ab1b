/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic in the groups of Cayley graphs, see topology.h: here Z_n^j : (Z_k x Z_l), among them
 * cyclic, dihedral, dicyclic, metacyclic, affine and lamplighter groups; those of
 * permutations are in permutations.c. Elements are numbers; products with one element are
 * made for all others at once.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "topology/private.h"

#define MAX_J TOPO_CAYLEY_MAX_J

int64_t topo_cayley_order(const struct topo_cayley_group *x)
{
	return x->chain.points ? x->chain.size[0] : x->vectors * x->k * x->l;
}

struct topo_cayley_element topo_cayley_element(const struct topo_cayley_group *x, int64_t number)
{
	struct topo_cayley_element e = { .b = 0 };

	if (x->chain.points) {
		topo_chain_element(&x->chain, number, e.permutation.image);
		return e;
	}
	for (int i = 0; i < x->j; i++) {
		e.v[i] = number % x->n;
		number /= x->n;
	}
	e.b = number % x->k;
	e.c = number / x->k;
	return e;
}

int64_t topo_cayley_number(const struct topo_cayley_group *x, const struct topo_cayley_element *e)
{
	int64_t number = e->c * x->k + e->b;

	if (x->chain.points) {
		return topo_chain_number(&x->chain, e->permutation.image);
	}
	for (int i = x->j; i-- > 0;) {
		number = number * x->n + e->v[i];
	}
	return number;
}

/* v becomes m v. */
static void apply(const struct topo_cayley_group *x, const int64_t *m, int64_t *v)
{
	int64_t old[MAX_J];

	memcpy(old, v, sizeof(old));
	for (int i = 0; i < x->j; i++) {
		v[i] = 0;
		for (int k = 0; k < x->j; k++) {
			v[i] += m[i * x->j + k] * old[k];
		}
		v[i] %= x->n;
	}
}

/* m becomes by m. */
void topo_cayley_multiply(const struct topo_cayley_group *x, const int64_t *by, int64_t *m)
{
	int64_t matrix[MAX_J * MAX_J], column[MAX_J];
	int j = x->j;

	memcpy(matrix, by, sizeof(matrix));
	for (int c = 0; c < j; c++) {
		for (int i = 0; i < j; i++) {
			column[i] = m[i * j + c];
		}
		apply(x, matrix, column);
		for (int i = 0; i < j; i++) {
			m[i * j + c] = column[i];
		}
	}
}

/* out = m^times. O(log times). */
void topo_cayley_power(const struct topo_cayley_group *x, const int64_t *m, int64_t times,
		       int64_t *out)
{
	int64_t square[MAX_J * MAX_J];

	memcpy(square, m, sizeof(square));
	for (int i = 0; i < x->j * x->j; i++) {
		out[i] = i % (x->j + 1) == 0 ? 1 % x->n : 0;
	}
	for (; times > 0; times /= 2) {
		if (times % 2) {
			topo_cayley_multiply(x, square, out);
		}
		topo_cayley_multiply(x, square, square);
	}
}

/* The product of u and an element whose vector, moved by A^b Q^c of u, is `by`. */
static int64_t join(const struct topo_cayley_group *x, const struct topo_cayley_element *u,
		       const struct topo_cayley_element *e, const int64_t *by)
{
	struct topo_cayley_element p = { .b = u->b + e->b, .c = (u->c + e->c) % x->l };
	bool carry = p.b >= x->k;

	p.b -= carry ? x->k : 0;
	for (int i = 0; i < x->j; i++) {
		p.v[i] = u->v[i] + by[i];
		p.v[i] -= p.v[i] >= x->n ? x->n : 0;
		if (carry) {
			p.v[i] = (p.v[i] + x->w[i]) % x->n;
		}
	}
	return topo_cayley_number(x, &p);
}

int64_t topo_cayley_product(const struct topo_cayley_group *x, int64_t a, int64_t b)
{
	struct topo_cayley_element u, e;

	if (x->chain.points) {
		return topo_chain_product(&x->chain, a, b);
	}
	u = topo_cayley_element(x, a);
	e = topo_cayley_element(x, b);
	for (int64_t i = 0; i < u.b; i++) {
		apply(x, x->a, e.v);
	}
	for (int64_t i = 0; i < u.c; i++) {
		apply(x, x->q, e.v);
	}
	return join(x, &u, &e, e.v);
}

/* to[v] = base + the number of v + by, for all vectors v: for those of the first digit, then
 * of the first two, ... */
static void add_vector(const struct topo_cayley_group *x, const int64_t *by, int64_t base,
		       int32_t *to)
{
	int32_t n = (int32_t)x->n, size = 1;

	to[0] = (int32_t)base;
	for (int i = 0; i < x->j; i++, size *= n) {
		for (int32_t digit = n; digit-- > 0;) {
			int32_t high = (int32_t)((digit + by[i]) % n) * size;

			for (int32_t low = 0; low < size; low++) {
				to[digit * size + low] = to[low] + high;
			}
		}
	}
}

void topo_cayley_times(const struct topo_cayley_group *x, int64_t number, int32_t *next)
{
	struct topo_cayley_element e;

	if (x->chain.points) {
		topo_chain_times(&x->chain, number, next);
		return;
	}
	e = topo_cayley_element(x, number);
	for (int64_t c = 0; c < x->l; c++) {
		int64_t by[MAX_J], sum[MAX_J];

		memcpy(by, e.v, sizeof(by));
		for (int64_t b = 0; b < x->k; b++, next += x->vectors) {
			int64_t lower = (c + e.c) % x->l * x->k + (b + e.b) % x->k;

			for (int i = 0; i < x->j; i++) {
				sum[i] = by[i] + (b + e.b >= x->k ? x->w[i] : 0);
			}
			add_vector(x, sum, lower * x->vectors, next);
			apply(x, x->a, by);
		}
		apply(x, x->q, e.v);
	}
}

/* x^-1 = (-A^-b Q^-c (v + [b > 0] w); -b, -c): what x is taken to 1 by. */
int64_t topo_cayley_inverse(const struct topo_cayley_group *x, int64_t number)
{
	struct topo_cayley_element e;
	int64_t m[MAX_J * MAX_J];

	if (x->chain.points) {
		return topo_chain_inverse(&x->chain, number);
	}
	e = topo_cayley_element(x, number);
	for (int i = 0; i < x->j; i++) {
		e.v[i] = (2 * x->n - e.v[i] - (e.b > 0 ? x->w[i] : 0)) % x->n;
	}
	e.b = (x->k - e.b) % x->k;
	e.c = (x->l - e.c) % x->l;
	topo_cayley_power(x, x->a, e.b, m);
	apply(x, m, e.v);
	topo_cayley_power(x, x->q, e.c, m);
	apply(x, m, e.v);
	return topo_cayley_number(x, &e);
}


/* ---- what is a group ---- */

static bool is_one(const struct topo_cayley_group *x, const int64_t *m)
{
	for (int i = 0; i < x->j * x->j; i++) {
		if (m[i] != (i % (x->j + 1) == 0 ? 1 % x->n : 0)) {
			return false;
		}
	}
	return true;
}

const char *topo_cayley_fault(const struct topo_cayley_group *x)
{
	int64_t m[MAX_J * MAX_J], w[MAX_J];
	bool matrix = x->j > 1;

	if (x->chain.points) {
		return NULL;
	}
	topo_cayley_power(x, x->a, x->k, m);
	if (!is_one(x, m)) {
		return matrix ? "the matrix to the power k is not 1 modulo n"
			      : "r to the power k is not 1 modulo n";
	}
	topo_cayley_power(x, x->q, x->l, m);
	if (!is_one(x, m)) {
		return "q to the power l is not 1 modulo n";
	}
	memcpy(w, x->w, sizeof(w));
	apply(x, x->a, w);
	if (memcmp(w, x->w, (size_t)x->j * sizeof(*w)) != 0) {
		return matrix ? "the matrix moves the vector that is carried"
			      : "s is not r s modulo n";
	}
	return NULL;
}

/* ---- writing ---- */

static void write_row(struct buf *b, const int64_t *v, int n)
{
	for (int i = 0; i < n; i++) {
		buf_printf(b, "%s%" PRId64, i ? "," : "", v[i]);
	}
}

static bool carries(const struct topo_cayley_group *x)
{
	int64_t any = 0;

	for (int i = 0; i < x->j; i++) {
		any |= x->w[i];
	}
	return any != 0;
}

static void write_matrix(const struct topo_cayley_group *x, struct buf *b)
{
	buf_printf(b, "%" PRId64 "^%d:%" PRId64 ",[", x->n, x->j, x->k);
	for (int i = 0; i < x->j; i++) {
		buf_str(b, i ? ";" : "");
		write_row(b, x->a + i * x->j, x->j);
	}
	buf_char(b, ']');
	if (carries(x)) {
		buf_str(b, "+(");
		write_row(b, x->w, x->j);
		buf_char(b, ')');
	}
}

static void write_numbers(const struct topo_cayley_group *x, struct buf *b)
{
	if (x->l > 1) {
		buf_printf(b, "%" PRId64 ":(%" PRId64 "x%" PRId64 "),r=%" PRId64 ",q=%" PRId64,
			   x->n, x->k, x->l, x->a[0], x->q[0]);
		return;
	}
	buf_printf(b, "%" PRId64 ":%" PRId64 ",r=%" PRId64, x->n, x->k, x->a[0]);
	if (carries(x)) {
		buf_printf(b, ",s=%" PRId64, x->w[0]);
	}
}

static int by_image(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct topo_permutation));
}

/* (1,2,3)(4,5): points count from one. */
static void write_cycles(const struct topo_permutation *p, struct buf *b)
{
	bool seen[TOPO_CAYLEY_MAX_POINTS] = { false };

	for (int from = 0; from < TOPO_CAYLEY_MAX_POINTS; from++) {
		if (seen[from] || p->image[from] == from) {
			continue;
		}
		for (int at = from; !seen[at]; at = p->image[at]) {
			buf_printf(b, "%c%d", at == from ? '(' : ',', at + 1);
			seen[at] = true;
		}
		buf_char(b, ')');
	}
}

/* In the order of their images, so that they do not depend on how elements are numbered. */
static void write_permutations(const struct topo_cayley_group *x, const int64_t *letters, int n,
			       struct buf *b)
{
	struct topo_permutation sorted[TOPO_MAX_ARGS];

	for (int i = 0; i < n; i++) {
		sorted[i] = topo_cayley_element(x, letters[i]).permutation;
	}
	qsort(sorted, (size_t)n, sizeof(*sorted), by_image);
	for (int i = 0; i < n; i++) {
		buf_str(b, i ? "," : "");
		write_cycles(&sorted[i], b);
	}
}

/* A cyclic group's graph by the name that everybody knows: C(n,{1,2}) or DiC. */
static void write_circulant(const struct topo_cayley_group *x, bool inverses,
			    const int64_t *letters, int n_letters, struct buf *b)
{
	int64_t n = x->vectors, before = 0, next;

	buf_printf(b, "%s(%" PRId64 ",{", inverses ? "C" : "DiC", n);
	for (int i = 0; i < n_letters; i++, before = next) {
		next = n;
		for (int k = 0; k < n_letters; k++) {
			bool back = inverses && 2 * letters[k] > n;
			int64_t offset = back ? n - letters[k] : letters[k];

			next = offset > before && offset < next ? offset : next;
		}
		buf_printf(b, i ? ",%" PRId64 : "%" PRId64, next);
	}
	buf_str(b, "})");
}

void topo_cayley_write(const struct topo_cayley_group *x, bool inverses, const int64_t *letters,
		       int n_letters, struct buf *b)
{
	if (!x->chain.points && x->j == 1 && x->k == 1 && x->l == 1) {
		write_circulant(x, inverses, letters, n_letters, b);
		return;
	}
	buf_str(b, inverses ? "Cay(" : "DiCay(");
	if (x->chain.points) {
		write_permutations(x, letters, n_letters, b);
		buf_char(b, ')');
		return;
	}
	if (x->j > 1) {
		write_matrix(x, b);
	} else {
		write_numbers(x, b);
	}
	for (int i = 0; i < n_letters; i++) {
		struct topo_cayley_element e = topo_cayley_element(x, letters[i]);

		buf_str(b, i ? ",(" : ",{(");
		write_row(b, e.v, x->j);
		buf_printf(b, "%c%" PRId64, x->j > 1 ? ';' : ',', e.b);
		if (x->l > 1) {
			buf_printf(b, ",%" PRId64, e.c);
		}
		buf_char(b, ')');
	}
	buf_str(b, "})");
}
