/* Distance-regular graphs from sets and finite geometry; see topology.h. */
#include <stdlib.h>
#include <string.h>

#include "topology/private.h"

/* ---- finite fields ---- */

#define MAX_FIELD 127

/* GF(q): elements 0..q-1 are polynomials over GF(p), digits base p. */
struct field {
	int q, p, k;
	uint8_t mul[MAX_FIELD + 1][MAX_FIELD + 1];
};

static int add(const struct field *f, int a, int b)
{
	int sum = 0;

	for (int unit = 1; unit < f->q; unit *= f->p) {
		sum += (a / unit + b / unit) % f->p * unit;
	}
	return sum;
}

static int negative(const struct field *f, int a)
{
	int out = 0;

	for (int unit = 1; unit < f->q; unit *= f->p) {
		out += (f->p - a / unit % f->p) % f->p * unit;
	}
	return out;
}

static int scale(const struct field *f, int a, int by)
{
	int out = 0;

	for (int unit = 1; unit < f->q; unit *= f->p) {
		out += a / unit % f->p * by % f->p * unit;
	}
	return out;
}

/* a * b modulo x^k - low. */
static int product(const struct field *f, int a, int b, int low)
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
static bool try_polynomial(struct field *f, int low)
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
static bool field_init(struct field *f, int q)
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

static int check_field(const struct topo_arg *q, int64_t most,
		       struct err *err)
{
	int rc = topo_check_arg(q, "order", 2, most, err);

	if (rc == 0 && !is_prime_power(q->value)) {
		rc = topo_err_at(err, q->col, "order is %lld: expected a power "
				 "of a prime", (long long)q->value);
	}
	return rc;
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

static int measure_johnson(const struct topo_call *c, struct topo_size *s,
			   struct err *err)
{
	int64_t n = c->number[0].value, k = c->number[1].value;
	int rc = topo_check_arg(&c->number[0], "size of the set", 2, 16, err);

	rc = rc ? rc : topo_check_arg(&c->number[1], "size of the subsets", 1,
				      n - 1, err);
	if (rc == 0) {
		s->n = choose((int)n, (int)k);
		s->degree = k * (n - k);
		s->m = s->n * s->degree;
		s->transitive = s->loopless = true;
	}
	return rc;
}

/* Joins the subsets u of v[0..n-1] and w of v[from..to-1] that have `common`
 * elements in common. */
static int join_subsets(struct topo *t, const uint32_t *v, int n, int from,
			int to, int common, struct err *err)
{
	int rc = 0;

	for (int u = 0; u < n && rc == 0; u++) {
		for (int w = u < from ? from : u + 1; w < to && rc == 0; w++) {
			if (__builtin_popcount(v[u] & v[w]) == common) {
				rc = topo_edge(t, u, w, err);
			}
		}
	}
	return rc;
}

static int build_johnson(const struct topo_call *c,
			 const struct topo *const *parts, struct topo *t,
			 struct err *err)
{
	int n = topo_n(t), k = (int)c->number[1].value, rc;
	uint32_t *v = malloc((size_t)n * sizeof(*v));

	(void)parts;
	if (!v) {
		return err_nomem(err);
	}
	list_subsets((int)c->number[0].value, k, v);
	rc = join_subsets(t, v, n, 0, n, k - 1, err);
	free(v);
	return rc;
}

static bool is_doubled(const struct topo_call *c)
{
	return strcmp(c->family->name, "Odd") != 0;
}

static int measure_odd(const struct topo_call *c, struct topo_size *s,
		       struct err *err)
{
	int64_t k = c->number[0].value;
	int rc = topo_check_arg(&c->number[0], "degree", 2, 8, err);

	if (rc == 0) {
		s->n = choose((int)(2 * k - 1), (int)k) * (is_doubled(c) ? 2 : 1);
		s->degree = k;
		s->m = s->n * k;
		s->transitive = s->loopless = true;
	}
	return rc;
}

/* Odd: (k-1)-subsets of 2k-1 elements, disjoint ones joined. Doubled: those
 * and the k-subsets, joined when one holds the other. */
static int build_odd(const struct topo_call *c,
		     const struct topo *const *parts, struct topo *t,
		     struct err *err)
{
	int n = topo_n(t), k = (int)c->number[0].value, rc;
	uint32_t *v = malloc((size_t)n * sizeof(*v));

	(void)parts;
	if (!v) {
		return err_nomem(err);
	}
	list_subsets(2 * k - 1, k - 1, v);
	if (is_doubled(c)) {
		list_subsets(2 * k - 1, k, v + n / 2);
		rc = join_subsets(t, v, n / 2, n / 2, n, k - 1, err);
	} else {
		rc = join_subsets(t, v, n, 0, n, 0, err);
	}
	free(v);
	return rc;
}

/* ---- crown and Paley graphs ---- */

static int measure_crown(const struct topo_call *c, struct topo_size *s,
			 struct err *err)
{
	int64_t n = c->number[0].value;

	*s = (struct topo_size){ 2 * n, 2 * n * (n - 1), n - 1, true, true };
	return topo_check_nodes(&c->number[0], 3, err);
}

static int build_crown(const struct topo_call *c,
		       const struct topo *const *parts, struct topo *t,
		       struct err *err)
{
	int64_t n = c->number[0].value;
	int rc = 0;

	(void)parts;
	for (int64_t u = 0; u < n && rc == 0; u++) {
		for (int64_t v = 0; v < n && rc == 0; v++) {
			rc = u == v ? 0 : topo_edge(t, u, n + v, err);
		}
	}
	return rc;
}

static int measure_paley(const struct topo_call *c, struct topo_size *s,
			 struct err *err)
{
	int64_t q = c->number[0].value;
	int rc = check_field(&c->number[0], MAX_FIELD, err);

	if (rc == 0 && q % 4 != 1) {
		rc = topo_err_at(err, c->number[0].col, "order is %lld: "
				 "expected one more than a multiple of 4",
				 (long long)q);
	}
	*s = (struct topo_size){ q, q * (q - 1) / 2, (q - 1) / 2, true, true };
	return rc;
}

/* u and v are joined when their difference is a square. */
static int build_paley(const struct topo_call *c,
		       const struct topo *const *parts, struct topo *t,
		       struct err *err)
{
	struct field f;
	bool square[MAX_FIELD + 1] = { false };
	int rc = 0;

	(void)parts;
	field_init(&f, (int)c->number[0].value);
	for (int a = 1; a < f.q; a++) {
		square[f.mul[a][a]] = true;
	}
	for (int u = 0; u < f.q && rc == 0; u++) {
		for (int s = 1; s < f.q && rc == 0; s++) {
			if (square[s]) {
				rc = topo_link(t, u, add(&f, u, s), err);
			}
		}
	}
	return rc;
}

/* ---- points and lines ---- */

#define MAX_COORDINATES 7

/* Points of a projective space: vectors whose first non-zero number is 1. */
struct points {
	struct field f;
	int dim, n;			/* coordinates, points */
	uint8_t (*at)[MAX_COORDINATES];
	int32_t *index;			/* of a vector read as a number, or -1 */
};

static void points_fini(struct points *p)
{
	free(p->at);
	free(p->index);
}

static int number_of(const struct points *p, const uint8_t *x)
{
	int v = 0;

	for (int i = 0; i < p->dim; i++) {
		v = v * p->f.q + x[i];
	}
	return v;
}

/* All points that `keep` (may be NULL) accepts. points_fini also after an
 * error. */
static int points_init(struct points *p, int q, int dim,
		       bool (*keep)(const struct points *, const uint8_t *),
		       struct err *err)
{
	int vectors = (int)topo_power(q, dim, INT32_MAX - 1);

	memset(p, 0, sizeof(*p));
	field_init(&p->f, q);
	p->dim = dim;
	p->index = malloc((size_t)vectors * sizeof(*p->index));
	p->at = malloc((size_t)(vectors / (q - 1) + 1) * sizeof(*p->at));
	if (!p->index || !p->at) {
		return err_nomem(err);
	}
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
	return 0;
}

/* The number of a + s b, brought to a leading 1. */
static int point_on_line(const struct points *p, int a, int b, int s)
{
	const struct field *f = &p->f;
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

static int minor(const struct points *p, int a, int b, int i, int j)
{
	const struct field *f = &p->f;
	const uint8_t *x = p->at[a], *y = p->at[b];

	return add(f, f->mul[x[i]][y[j]], negative(f, f->mul[x[j]][y[i]]));
}

/* Joins points 0..n-1 with their lines n...: every pair that `on_line`
 * accepts spans one; a line is made by its two first points. */
static int link_lines(const struct points *p, struct topo *t,
		      bool (*on_line)(const struct points *, int, int),
		      struct err *err)
{
	int line = p->n, rc = 0;

	for (int a = 0; a < p->n && rc == 0; a++) {
		for (int b = a + 1; b < p->n && rc == 0; b++) {
			bool first = on_line(p, a, b);

			for (int s = 1; s < p->f.q && first; s++) {
				int c = point_on_line(p, a, b, s);

				first = c > b;
			}
			if (!first) {
				continue;
			}
			rc = topo_edge(t, b, line, err);
			for (int s = 0; s < p->f.q && rc == 0; s++) {
				rc = topo_edge(t, point_on_line(p, a, b, s),
					       line, err);
			}
			line++;
		}
	}
	return rc;
}

/* Points of the plane PG(2,q) and its lines, which are points again: they
 * meet when the product is zero. */
static int measure_plane(const struct topo_call *c, struct topo_size *s,
			 struct err *err)
{
	int64_t q = c->number[0].value, n = 2 * (q * q + q + 1);

	*s = (struct topo_size){ n, n * (q + 1), q + 1, true, true };
	return check_field(&c->number[0], 64, err);
}

static int build_plane(const struct topo_call *c,
		       const struct topo *const *parts, struct topo *t,
		       struct err *err)
{
	struct points p;
	int rc = points_init(&p, (int)c->number[0].value, 3, NULL, err);

	(void)parts;
	for (int a = 0; a < p.n && rc == 0; a++) {
		for (int b = 0; b < p.n && rc == 0; b++) {
			int sum = 0;

			for (int i = 0; i < 3; i++) {
				sum = add(&p.f, sum,
					  p.f.mul[p.at[a][i]][p.at[b][i]]);
			}
			rc = sum ? 0 : topo_edge(t, a, p.n + b, err);
		}
	}
	points_fini(&p);
	return rc;
}

/* Points (x, y) of the affine plane and its lines y = m x + b. */
static int measure_affine(const struct topo_call *c, struct topo_size *s,
			  struct err *err)
{
	int64_t q = c->number[0].value, n = 2 * q * q;

	*s = (struct topo_size){ n, n * q, q, true, true };
	return check_field(&c->number[0], 64, err);
}

static int build_affine(const struct topo_call *c,
			const struct topo *const *parts, struct topo *t,
			struct err *err)
{
	struct field f;
	int q = (int)c->number[0].value, rc = 0;

	(void)parts;
	field_init(&f, q);
	for (int x = 0; x < q && rc == 0; x++) {
		for (int m = 0; m < q && rc == 0; m++) {
			for (int b = 0; b < q && rc == 0; b++) {
				int y = add(&f, f.mul[m][x], b);

				rc = topo_edge(t, x * q + y,
					       q * q + m * q + b, err);
			}
		}
	}
	return rc;
}

/* The generalized quadrangle W(q): points of PG(3,q), and the lines on which
 * a symplectic form vanishes. */
static bool is_isotropic(const struct points *p, int a, int b)
{
	return add(&p->f, minor(p, a, b, 0, 1), minor(p, a, b, 2, 3)) == 0;
}

static int measure_quadrangle(const struct topo_call *c, struct topo_size *s,
			      struct err *err)
{
	int64_t q = c->number[0].value, n = 2 * (q + 1) * (q * q + 1);

	/* Points and lines are alike only when q is even. */
	*s = (struct topo_size){ n, n * (q + 1), q + 1, q % 2 == 0, true };
	return check_field(&c->number[0], 16, err);
}

static int build_quadrangle(const struct topo_call *c,
			    const struct topo *const *parts, struct topo *t,
			    struct err *err)
{
	struct points p;
	int rc = points_init(&p, (int)c->number[0].value, 4, NULL, err);

	(void)parts;
	rc = rc ? rc : link_lines(&p, t, is_isotropic, err);
	points_fini(&p);
	return rc;
}

/* The split Cayley hexagon H(q) in Tits' coordinates: points of the quadric
 * x0 x4 + x1 x5 + x2 x6 = x3^2, and the lines on it that satisfy six
 * equations in their Grassmann coordinates. */
static bool is_on_quadric(const struct points *p, const uint8_t *x)
{
	const struct field *f = &p->f;
	int sum = negative(f, f->mul[x[3]][x[3]]);

	for (int i = 0; i < 3; i++) {
		sum = add(f, sum, f->mul[x[i]][x[i + 4]]);
	}
	return sum == 0;
}

static bool is_hexagon_line(const struct points *p, int a, int b)
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

static int measure_hexagon(const struct topo_call *c, struct topo_size *s,
			   struct err *err)
{
	int64_t q = c->number[0].value;
	int rc = check_field(&c->number[0], 5, err);
	int64_t n = rc ? 0 : 2 * (topo_power(q, 6, 1 << 20) - 1) / (q - 1);

	/* Points and lines are alike only when q is a power of 3. */
	*s = (struct topo_size){ n, n * (q + 1), q + 1, q == 3, true };
	return rc;
}

static int build_hexagon(const struct topo_call *c,
			 const struct topo *const *parts, struct topo *t,
			 struct err *err)
{
	struct points p;
	int rc = points_init(&p, (int)c->number[0].value, 7, is_on_quadric,
			     err);

	(void)parts;
	rc = rc ? rc : link_lines(&p, t, is_hexagon_line, err);
	points_fini(&p);
	return rc;
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
	{ "PG", "n", "PG(q)", "points and lines of the projective plane, q+1 "
	  "ports; PG(2) is Heawood's graph", measure_plane, build_plane },
	{ "AG", "n", "AG(q)", "points and lines of the affine plane less a "
	  "parallel class, q ports", measure_affine, build_affine },
	{ "GQ", "n", "GQ(q)", "generalized quadrangle, q+1 ports; GQ(2) is "
	  "Tutte's 8-cage", measure_quadrangle, build_quadrangle },
	{ "GH", "n", "GH(q)", "generalized hexagon, q+1 ports; GH(2) is "
	  "Tutte's 12-cage", measure_hexagon, build_hexagon },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
