/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distance-regular graphs from sets and finite geometry: few hops for their
 * ports, and all nodes alike, so that one node's schedule serves all. Those of
 * geometry join points of a space over GF(q) with the lines through them; the
 * field is a table of products made once per graph.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "topology/private.h"

/* ---- finite fields ---- */

/* GF(q): elements 0..q-1 are polynomials over GF(p), digits base p. */
struct topo_field {
	int q, p, k;
	uint8_t mul[TOPO_MAX_FIELD + 1][TOPO_MAX_FIELD + 1];
};

static int add(const struct topo_field *f, int a, int b)
{
	int sum = 0;

	for (int unit = 1; unit < f->q; unit *= f->p) {
		sum += (a / unit + b / unit) % f->p * unit;
	}
	return sum;
}

static int negative(const struct topo_field *f, int a)
{
	int out = 0;

	for (int unit = 1; unit < f->q; unit *= f->p) {
		out += (f->p - a / unit % f->p) % f->p * unit;
	}
	return out;
}

static int scale(const struct topo_field *f, int a, int by)
{
	int out = 0;

	for (int unit = 1; unit < f->q; unit *= f->p) {
		out += a / unit % f->p * by % f->p * unit;
	}
	return out;
}

/* a * b modulo x^k - low. */
static int product(const struct topo_field *f, int a, int b, int low)
{
	int out = 0, top = f->q / f->p;

	for (int unit = top; unit >= 1; unit /= f->p) {
		int carry = out / top;

		out = add(f, out % top * f->p, scale(f, low, carry));
		out = add(f, out, scale(f, a, b / unit % f->p));
	}
	return out;
}

/* The first x^k - low without zero divisors makes the field. */
static bool try_polynomial(struct topo_field *f, int low)
{
	for (int a = 0; a < f->q; a++) {
		for (int b = 0; b < f->q; b++) {
			int c = product(f, a, b, low);

			if (c == 0 && a > 0 && b > 0) {
				return false;
			}
			f->mul[a][b] = (uint8_t)c;
		}
	}
	return true;
}

/* False unless q is a power of a prime. */
static bool field_init(struct topo_field *f, int q)
{
	f->q = q;
	f->p = 2;
	f->k = 0;
	while (f->p < q && q % f->p) {
		f->p++;
	}
	for (; q > 1 && q % f->p == 0; q /= f->p) {
		f->k++;
	}
	for (int low = 0; q == 1 && low < f->q; low++) {
		if (try_polynomial(f, f->k == 1 ? 0 : low)) {
			return true;
		}
	}
	return false;
}

static bool is_prime_power(int64_t q)
{
	int64_t p = 2;

	while (p < q && q % p) {
		p++;
	}
	while (q > 1 && q % p == 0) {
		q /= p;
	}
	return q == 1;
}

/* The one argument is a power of a prime, at most max. */
static void check_field(struct topo_make *mk, int64_t max)
{
	int64_t q = topo_number(mk, 0);

	topo_check_number(mk, 0, "order", 2, max);
	if (!mk->rc && !is_prime_power(q)) {
		topo_refuse(mk, mk->call->number[0].col, "order is %lld: "
			    "expected a power of a prime", (long long)q);
	}
}

/* ---- subsets ---- */

static int64_t choose(int n, int k)
{
	int64_t c = 1;

	for (int i = 1; i <= k; i++) {
		c = c * (n - k + i) / i;
	}
	return c;
}

/* All k-subsets of 0..n-1 as bits, ascending. */
static void list_subsets(int n, int k, uint32_t *out)
{
	for (uint32_t s = 0; s < UINT32_C(1) << n; s++) {
		if (__builtin_popcount(s) == k) {
			*out++ = s;
		}
	}
}

static void measure_johnson(struct topo_make *mk)
{
	int64_t n = topo_number(mk, 0), k = topo_number(mk, 1);

	topo_check_number(mk, 0, "size of the set", 2, 16);
	topo_check_number(mk, 1, "size of the subsets", 1, n - 1);
	if (!mk->rc) {
		mk->size = topo_group_size(choose((int)n, (int)k), k * (n - k));
	}
}

/* Joins the subsets u of v[0..n-1] and w of v[from..to-1] that have `common`
 * elements in common. */
static void join_subsets(struct topo_make *mk, const uint32_t *v, int n,
			 int from, int to, int common)
{
	for (int u = 0; u < n; u++) {
		for (int w = u < from ? from : u + 1; w < to; w++) {
			if (__builtin_popcount(v[u] & v[w]) == common) {
				topo_edge(mk, u, w);
			}
		}
	}
}

static void build_johnson(struct topo_make *mk)
{
	int n = topo_n(mk->t), k = (int)topo_number(mk, 1);
	uint32_t *v = x_alloc((size_t)n, sizeof(*v));

	list_subsets((int)topo_number(mk, 0), k, v);
	join_subsets(mk, v, n, 0, n, k - 1);
	free(v);
}

static bool is_doubled(const struct topo_call *c)
{
	return strcmp(c->family->name, "Odd") != 0;
}

static void measure_odd(struct topo_make *mk)
{
	int64_t k = topo_number(mk, 0), n;

	topo_check_number(mk, 0, "degree", 2, 8);
	if (!mk->rc) {
		n = choose((int)(2 * k - 1), (int)k);
		mk->size = topo_group_size(is_doubled(mk->call) ? 2 * n : n, k);
	}
}

/* Odd: (k-1)-subsets of 2k-1 elements, disjoint ones joined. Doubled: those
 * and the k-subsets, joined when one holds the other. */
static void build_odd(struct topo_make *mk)
{
	int n = topo_n(mk->t), k = (int)topo_number(mk, 0);
	uint32_t *v = x_alloc((size_t)n, sizeof(*v));

	list_subsets(2 * k - 1, k - 1, v);
	if (is_doubled(mk->call)) {
		list_subsets(2 * k - 1, k, v + n / 2);
		join_subsets(mk, v, n / 2, n / 2, n, k - 1);
	} else {
		join_subsets(mk, v, n, 0, n, 0);
	}
	free(v);
}

/* ---- crown and Paley graphs ---- */

static void measure_crown(struct topo_make *mk)
{
	int64_t n = topo_number(mk, 0);

	mk->size = topo_group_size(2 * n, n - 1);
	topo_check_nodes(mk, 0, 3);
}

static void build_crown(struct topo_make *mk)
{
	int64_t n = topo_number(mk, 0);

	for (int64_t u = 0; u < n; u++) {
		for (int64_t v = 0; v < n; v++) {
			if (u != v) {
				topo_edge(mk, u, n + v);
			}
		}
	}
}

static void measure_paley(struct topo_make *mk)
{
	int64_t q = topo_number(mk, 0);

	check_field(mk, TOPO_MAX_FIELD);
	if (!mk->rc && q % 4 != 1) {
		topo_refuse(mk, mk->call->number[0].col, "order is %lld: "
			    "expected one more than a multiple of 4",
			    (long long)q);
	}
	mk->size = topo_group_size(q, (q - 1) / 2);
}

/* u and v are joined when their difference is a square. */
static void build_paley(struct topo_make *mk)
{
	struct topo_field f;
	bool square[TOPO_MAX_FIELD + 1] = { false };

	field_init(&f, (int)topo_number(mk, 0));
	for (int a = 1; a < f.q; a++) {
		square[f.mul[a][a]] = true;
	}
	for (int u = 0; u < f.q; u++) {
		for (int s = 1; s < f.q; s++) {
			if (square[s]) {
				topo_link(mk, u, add(&f, u, s));
			}
		}
	}
}

/* ---- graphs of McKay, Miller and Siran ---- */

/* Powers of a primitive element x: of the first set the even ones, of the other x times those;
 * where q is one less than a multiple of 4 both are half of that and its negatives. */
static void find_differences(const struct topo_field *f, bool set[2][TOPO_MAX_FIELD + 1])
{
	int x = 1, order = 0, power = 1, last = f->q % 4 == 3 ? (f->q + 1) / 4 : f->q / 2;

	while (order < f->q - 1) {
		x++;
		for (order = 1, power = x; power != 1; order++) {
			power = f->mul[power][x];
		}
	}
	for (int i = 0; i < last; i++) {
		for (int side = 0; side < 2; side++) {
			int a = side ? f->mul[power][x] : power;

			set[side][a] = true;
			set[side][f->q % 4 == 3 ? negative(f, a) : a] = true;
		}
		power = f->mul[f->mul[power][x]][x];
	}
}

static void measure_slim_fly(struct topo_make *mk)
{
	int64_t q = topo_number(mk, 0);

	check_field(mk, TOPO_MAX_FIELD);
	if (!mk->rc && q < 4) {
		topo_refuse(mk, mk->call->number[0].col, "order is %lld: expected 4 or more",
			    (long long)q);
	}
	mk->size = topo_group_size(2 * q * q, q % 4 == 3 ? (3 * q + 1) / 2 : (3 * q) / 2);
	mk->size.transitive = false;
}

/* Nodes (0, x, y) and (1, m, c): joined within a column by differences of its side, and
 * where y = m x + c. B. D. McKay, M. Miller, J. Siran, J. Combin. Theory B 74 (1998). */
static void build_slim_fly(struct topo_make *mk)
{
	struct topo_field f;
	bool set[2][TOPO_MAX_FIELD + 1] = { { false } };
	int q;

	field_init(&f, (int)topo_number(mk, 0));
	q = f.q;
	find_differences(&f, set);
	for (int v = 0; v < 2 * q * q; v++) {
		int side = v / (q * q), x = v / q % q, y = v % q;

		for (int s = 1; s < q; s++) {
			if (set[side][s]) {
				topo_link(mk, v, v - y + add(&f, y, s));
			}
		}
		for (int m = 0; m < q; m++) {
			int mx = side ? f.mul[x][m] : negative(&f, f.mul[m][x]);

			topo_link(mk, v, (1 - side) * q * q + m * q + add(&f, y, mx));
		}
	}
}

/* ---- points and lines ---- */

#define MAX_COORDINATES 7

/* Points of a projective space: vectors whose first non-zero number is 1. */
struct topo_points {
	struct topo_field f;
	int dim, n;			/* coordinates, points */
	uint8_t (*at)[MAX_COORDINATES];
	int32_t *index;			/* of a vector read as a number, or -1 */
};

static void points_fini(struct topo_points *p)
{
	free(p->at);
	free(p->index);
}

static int number_of(const struct topo_points *p, const uint8_t *x)
{
	int v = 0;

	for (int i = 0; i < p->dim; i++) {
		v = v * p->f.q + x[i];
	}
	return v;
}

/* All points over GF(q), q the one argument, that `keep` (may be NULL) accepts;
 * for points_fini. */
static void points_init(struct topo_points *p, struct topo_make *mk, int dim,
			bool (*keep)(const struct topo_points *, const uint8_t *))
{
	int q = (int)topo_number(mk, 0);
	int vectors = (int)topo_power(q, dim, INT32_MAX - 1);

	memset(p, 0, sizeof(*p));
	field_init(&p->f, q);
	p->dim = dim;
	p->index = x_alloc((size_t)vectors, sizeof(*p->index));
	p->at = x_alloc((size_t)(vectors / (q - 1) + 1), sizeof(*p->at));
	for (int v = 0; v < vectors; v++) {
		uint8_t *x = p->at[p->n];
		int rest = v, lead = 0;

		for (int i = dim - 1; i >= 0; i--, rest /= q) {
			x[i] = (uint8_t)(rest % q);
			lead = x[i] ? x[i] : lead;
		}
		p->index[v] = -1;
		if (lead == 1 && (!keep || keep(p, x))) {
			p->index[v] = p->n++;
		}
	}
}

/* The number of a + s b, brought to a leading 1. */
static int point_on_line(const struct topo_points *p, int a, int b, int s)
{
	const struct topo_field *f = &p->f;
	uint8_t x[MAX_COORDINATES];
	int lead = 0, inverse = 1;

	for (int i = p->dim - 1; i >= 0; i--) {
		x[i] = (uint8_t)add(f, p->at[a][i], f->mul[s][p->at[b][i]]);
		lead = x[i] ? x[i] : lead;
	}
	while (f->mul[lead][inverse] != 1) {
		inverse++;
	}
	for (int i = 0; i < p->dim; i++) {
		x[i] = f->mul[inverse][x[i]];
	}
	return p->index[number_of(p, x)];
}

static int minor(const struct topo_points *p, int a, int b, int i, int j)
{
	const struct topo_field *f = &p->f;
	const uint8_t *x = p->at[a], *y = p->at[b];

	return add(f, f->mul[x[i]][y[j]], negative(f, f->mul[x[j]][y[i]]));
}

/* Joins points 0..n-1 with their lines n...: every pair that `on_line`
 * accepts spans one; a line is made by its two first points. */
static void link_lines(const struct topo_points *p, struct topo_make *mk,
		       bool (*on_line)(const struct topo_points *, int, int))
{
	int line = p->n;

	for (int a = 0; a < p->n; a++) {
		for (int b = a + 1; b < p->n; b++) {
			bool first = on_line(p, a, b);

			for (int s = 1; s < p->f.q && first; s++) {
				first = point_on_line(p, a, b, s) > b;
			}
			if (!first) {
				continue;
			}
			topo_edge(mk, b, line);
			for (int s = 0; s < p->f.q; s++) {
				topo_edge(mk, point_on_line(p, a, b, s), line);
			}
			line++;
		}
	}
}

/* Points of the plane PG(2,q) and its lines, which are points again: they
 * meet when the product is zero. */
static void measure_plane(struct topo_make *mk)
{
	int64_t q = topo_number(mk, 0), n = 2 * (q * q + q + 1);

	mk->size = topo_group_size(n, q + 1);
	check_field(mk, 64);
}

/* Whether a point of the plane is on the line of another, its dual. */
static bool is_on_dual(const struct topo_points *p, int a, int b)
{
	int sum = 0;

	for (int i = 0; i < 3; i++) {
		sum = add(&p->f, sum, p->f.mul[p->at[a][i]][p->at[b][i]]);
	}
	return sum == 0;
}

static void build_plane(struct topo_make *mk)
{
	struct topo_points p;

	points_init(&p, mk, 3, NULL);
	for (int a = 0; a < p.n; a++) {
		for (int b = 0; b < p.n; b++) {
			if (is_on_dual(&p, a, b)) {
				topo_edge(mk, a, p.n + b);
			}
		}
	}
	points_fini(&p);
}

static void measure_polarity(struct topo_make *mk)
{
	int64_t q = topo_number(mk, 0), n = q * q + q + 1;

	mk->size = (struct topo_size){ n, (n - 1) * (q + 1), 0, false, true };
	check_field(mk, 64);
}

/* Each point is joined to those on its own line but itself: q + 1 points, that are on theirs, have
 * a port less. W. G. Brown, Canad. Math. Bull. 9 (1966). */
static void build_polarity(struct topo_make *mk)
{
	struct topo_points p;

	points_init(&p, mk, 3, NULL);
	for (int a = 0; a < p.n; a++) {
		for (int b = 0; b < a; b++) {
			if (is_on_dual(&p, a, b)) {
				topo_edge(mk, a, b);
			}
		}
	}
	points_fini(&p);
}

/* Points (x, y) of the affine plane and its lines y = m x + b. */
static void measure_affine(struct topo_make *mk)
{
	int64_t q = topo_number(mk, 0), n = 2 * q * q;

	mk->size = topo_group_size(n, q);
	check_field(mk, 64);
}

static void build_affine(struct topo_make *mk)
{
	struct topo_field f;
	int q = (int)topo_number(mk, 0);

	field_init(&f, q);
	for (int x = 0; x < q; x++) {
		for (int m = 0; m < q; m++) {
			for (int b = 0; b < q; b++) {
				int y = add(&f, f.mul[m][x], b);

				topo_edge(mk, x * q + y, q * q + m * q + b);
			}
		}
	}
}

/* The generalized quadrangle W(q): points of PG(3,q), and the lines on which
 * a symplectic form vanishes. */
static bool is_isotropic(const struct topo_points *p, int a, int b)
{
	return add(&p->f, minor(p, a, b, 0, 1), minor(p, a, b, 2, 3)) == 0;
}

static void measure_quadrangle(struct topo_make *mk)
{
	int64_t q = topo_number(mk, 0), n = 2 * (q + 1) * (q * q + 1);

	/* Points and lines are alike only when q is even. */
	mk->size = (struct topo_size){ n, n * (q + 1), q + 1, q % 2 == 0, true };
	check_field(mk, 16);
}

static void build_quadrangle(struct topo_make *mk)
{
	struct topo_points p;

	points_init(&p, mk, 4, NULL);
	link_lines(&p, mk, is_isotropic);
	points_fini(&p);
}

/* The split Cayley hexagon H(q) in Tits' coordinates: points of the quadric
 * x0 x4 + x1 x5 + x2 x6 = x3^2, and the lines on it that satisfy six
 * equations in their Grassmann coordinates. */
static bool is_on_quadric(const struct topo_points *p, const uint8_t *x)
{
	const struct topo_field *f = &p->f;
	int sum = negative(f, f->mul[x[3]][x[3]]);

	for (int i = 0; i < 3; i++) {
		sum = add(f, sum, f->mul[x[i]][x[i + 4]]);
	}
	return sum == 0;
}

static bool is_hexagon_line(const struct topo_points *p, int a, int b)
{
	static const uint8_t equal[6][4] = {
		{ 1, 2, 3, 4 }, { 5, 4, 3, 2 }, { 2, 0, 3, 5 },
		{ 6, 5, 3, 0 }, { 0, 1, 3, 6 }, { 4, 6, 3, 1 },
	};

	for (int i = 0; i < 6; i++) {
		if (minor(p, a, b, equal[i][0], equal[i][1]) !=
		    minor(p, a, b, equal[i][2], equal[i][3])) {
			return false;
		}
	}
	return true;
}

static void measure_hexagon(struct topo_make *mk)
{
	int64_t q = topo_number(mk, 0), n;

	check_field(mk, 5);
	n = mk->rc ? 0 : 2 * (topo_power(q, 6, 1 << 20) - 1) / (q - 1);
	/* Points and lines are alike only when q is a power of 3. */
	mk->size = (struct topo_size){ n, n * (q + 1), q + 1, q == 3, true };
}

static void build_hexagon(struct topo_make *mk)
{
	struct topo_points p;

	points_init(&p, mk, 7, is_on_quadric);
	link_lines(&p, mk, is_hexagon_line);
	points_fini(&p);
}

const struct topo_family topo_regular[] = {
	{ "Johnson", "nn", "Johnson(n,k)", "k-subsets of n, one element "
	  "apart; Johnson(4,2) is the octahedron", measure_johnson,
	  build_johnson },
	{ "Odd", "n", "Odd(k)", "disjoint (k-1)-subsets of 2k-1, k ports; "
	  "Odd(3) is Petersen's graph", measure_odd, build_odd },
	{ "DoubledOdd", "n", "DoubledOdd(k)", "(k-1)- and k-subsets of 2k-1, "
	  "k ports", measure_odd, build_odd },
	{ "Crown", "n", "Crown(n)", "K(n,n) without a perfect matching, n-1 "
	  "ports", measure_crown, build_crown },
	{ "Paley", "n", "Paley(q)", "differences that are squares in GF(q), "
	  "(q-1)/2 ports", measure_paley, build_paley },
	{ "SlimFly", "n", "SlimFly(q)", "2 q^2 nodes of diameter 2, of McKay, Miller and Siran; "
	  "SlimFly(5) is Hoffman and Singleton's", measure_slim_fly, build_slim_fly },
	{ "PG", "n", "PG(q)", "points and lines of the projective plane, q+1 "
	  "ports; PG(2) is Heawood's graph", measure_plane, build_plane },
	{ "Polarity", "n", "Polarity(q)", "points of the projective plane, joined to those on "
	  "their line: q^2+q+1 nodes of diameter 2, q or q+1 ports", measure_polarity,
	  build_polarity },
	{ "AG", "n", "AG(q)", "points and lines of the affine plane less a "
	  "parallel class, q ports", measure_affine, build_affine },
	{ "GQ", "n", "GQ(q)", "generalized quadrangle, q+1 ports; GQ(2) is "
	  "Tutte's 8-cage", measure_quadrangle, build_quadrangle },
	{ "GH", "n", "GH(q)", "generalized hexagon, q+1 ports; GH(2) is "
	  "Tutte's 12-cage", measure_hexagon, build_hexagon },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
