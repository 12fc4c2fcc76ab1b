/*
 * Cayley graphs of the groups Z_n^j : (Z_k x Z_l), from their expressions.
 *
 * An element is (v; b, c): v in Z_n^j, b below k, c below l. The lower part moves the
 * upper one by matrices A and Q over Z_n, and b carries a fixed vector w into v when it
 * passes k:
 *
 *	(v; b, c) (v'; b', c') = (v + A^b Q^c v' + [b + b' >= k] w; b + b', c + c')
 *
 * This is a group where A^k = Q^l = 1, A Q = Q A and A w = w. With j = 1 the matrices are
 * numbers, r and q, and w is s. Cyclic, dihedral, dicyclic, metacyclic groups, affine and
 * lamplighter groups are among them. An arc leads from x to x g for every generator g, so that
 * multiplying from the left is an automorphism: the graph is vertex-transitive, and
 * topo_group_find returns that group.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "topology/private.h"

#define MAX_J 16		/* 2^16 = TOPO_MAX_NODES */

struct topo_cayley {
	int64_t n, k, l, vectors;	/* vectors: n^j */
	int j, col;
	int64_t a[MAX_J * MAX_J], q[MAX_J * MAX_J], w[MAX_J];
	bool by_matrix, carries;	/* how it was written */
	int letters;			/* generators as written, ascending by number */
	int64_t letter[TOPO_MAX_ARGS];
	int letter_col[TOPO_MAX_ARGS];
};

/* An element, read from its number: v of the lowest digits, then b, then c. */
struct topo_element {
	int64_t v[MAX_J], b, c;
};

/* ---- arithmetic ---- */

static int64_t order_of(const struct topo_cayley *x)
{
	return x->vectors * x->k * x->l;
}

static struct topo_element element_of(const struct topo_cayley *x, int64_t number)
{
	struct topo_element e;

	for (int i = 0; i < x->j; i++) {
		e.v[i] = number % x->n;
		number /= x->n;
	}
	e.b = number % x->k;
	e.c = number / x->k;
	return e;
}

static int64_t number_of(const struct topo_cayley *x, const struct topo_element *e)
{
	int64_t number = e->c * x->k + e->b;

	for (int i = x->j; i-- > 0;) {
		number = number * x->n + e->v[i];
	}
	return number;
}

/* v becomes m v. */
static void apply(const struct topo_cayley *x, const int64_t *m, int64_t *v)
{
	int64_t old[MAX_J];

	memcpy(old, v, sizeof(old));
	for (int i = 0; i < x->j; i++) {
		v[i] = 0;
		for (int k = 0; k < x->j; k++) {
			v[i] = (v[i] + m[i * x->j + k] * old[k]) % x->n;
		}
	}
}

/* m becomes by m. */
static void multiply(const struct topo_cayley *x, const int64_t *by, int64_t *m)
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
static void power_of(const struct topo_cayley *x, const int64_t *m, int64_t times, int64_t *out)
{
	int64_t square[MAX_J * MAX_J];

	memcpy(square, m, sizeof(square));
	for (int i = 0; i < x->j * x->j; i++) {
		out[i] = i % (x->j + 1) == 0 ? 1 % x->n : 0;
	}
	for (; times > 0; times /= 2) {
		if (times % 2) {
			multiply(x, square, out);
		}
		multiply(x, square, square);
	}
}

/* The product of x and a generator whose vector was moved by every A^b Q^c: moved[c k + b]. */
static int64_t times_letter(const struct topo_cayley *x, int64_t number, int64_t letter,
			    const int64_t (*moved)[MAX_J])
{
	struct topo_element e = element_of(x, number), g = element_of(x, letter);
	const int64_t *v = moved[e.c * x->k + e.b];
	bool carry = e.b + g.b >= x->k;

	for (int i = 0; i < x->j; i++) {
		e.v[i] = (e.v[i] + v[i] + (carry ? x->w[i] : 0)) % x->n;
	}
	e.b = (e.b + g.b) % x->k;
	e.c = (e.c + g.c) % x->l;
	return number_of(x, &e);
}

/* The vector of a letter under all A^b Q^c. */
static void move_letter(const struct topo_cayley *x, int64_t letter, int64_t (*moved)[MAX_J])
{
	struct topo_element g = element_of(x, letter);

	for (int64_t c = 0; c < x->l; c++) {
		int64_t v[MAX_J];

		memcpy(v, g.v, sizeof(v));
		for (int64_t b = 0; b < x->k; b++) {
			memcpy(moved[c * x->k + b], v, sizeof(v));
			apply(x, x->a, v);
		}
		apply(x, x->q, g.v);
	}
}

/* x^-1 = (-A^-b Q^-c (v + [b > 0] w); -b, -c): what x is taken to 1 by. */
static int64_t inverse_of(const struct topo_cayley *x, int64_t number)
{
	struct topo_element e = element_of(x, number);
	int64_t m[MAX_J * MAX_J];

	for (int i = 0; i < x->j; i++) {
		e.v[i] = (2 * x->n - e.v[i] - (e.b > 0 ? x->w[i] : 0)) % x->n;
	}
	e.b = (x->k - e.b) % x->k;
	e.c = (x->l - e.c) % x->l;
	power_of(x, x->a, e.b, m);
	apply(x, m, e.v);
	power_of(x, x->q, e.c, m);
	apply(x, m, e.v);
	return number_of(x, &e);
}

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

	x->k = x->l = 1;
	if ((rc = read_size(p, 1, &x->n))) {
		return rc;
	}
	x->by_matrix = topo_accept(p, '^');
	if ((x->by_matrix && (rc = read_size(p, 1, &j))) || (rc = want(p, ':'))) {
		return rc;
	}
	x->j = j > MAX_J ? MAX_J : (int)j;
	x->vectors = topo_power(x->n, j, TOPO_MAX_NODES);
	if (!x->by_matrix && topo_accept(p, '(')) {
		if ((rc = read_size(p, 1, &x->k)) || (rc = want(p, 'x')) ||
		    (rc = read_size(p, 1, &x->l)) || (rc = want(p, ')'))) {
			return rc;
		}
	} else if ((rc = read_size(p, 1, &x->k))) {
		return rc;
	}
	return j > MAX_J || order_of(x) > TOPO_MAX_NODES
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
	return rc ? rc : read_row(p, 1, x->n > 1 ? x->n : 2, ',', out);
}

/* [a,b;c,d], then +(w) where b carries. */
static int read_matrix(struct topo_parser *p, struct topo_cayley *x)
{
	int rc = want(p, '[');

	for (int i = 0; i < x->j && !rc; i++) {
		rc = read_row(p, x->j, x->n, i + 1 < x->j ? ';' : ']', x->a + i * x->j);
	}
	if (rc) {
		return rc;
	}
	x->carries = topo_accept(p, '+');
	if (x->carries && ((rc = want(p, '(')) || (rc = read_row(p, x->j, x->n, ')', x->w)))) {
		return rc;
	}
	return want(p, ',');
}

static int read_action(struct topo_parser *p, struct topo_cayley *x)
{
	bool found;
	int rc;

	for (int i = 0; i < x->j; i++) {
		x->q[i * x->j + i] = 1 % x->n;
	}
	if (x->by_matrix) {
		return read_matrix(p, x);
	}
	rc = read_named(p, x, 'r', &found, x->a);
	if (rc || !found) {
		return rc ? rc : topo_expected(p, "'r='");
	}
	if (x->l == 1) {
		return read_named(p, x, 's', &x->carries, x->w);
	}
	rc = read_named(p, x, 'q', &found, x->q);
	return rc || found ? rc : topo_expected(p, "'q='");
}

/* (a,b), (a,b,c) or (u,v,..;b). */
static int read_letter(struct topo_parser *p, struct topo_cayley *x)
{
	struct topo_element e = { .c = 0 };
	int rc;

	if (x->letters == TOPO_MAX_ARGS) {
		return topo_err_at(p->err, topo_column(p), "more than %d generators",
				   TOPO_MAX_ARGS);
	}
	x->letter_col[x->letters] = topo_column(p);
	if ((rc = want(p, '(')) ||
	    (rc = read_row(p, x->j, x->n, x->by_matrix ? ';' : ',', e.v)) ||
	    (rc = read_row(p, 1, x->k, x->l > 1 ? ',' : ')', &e.b)) ||
	    (x->l > 1 && (rc = read_row(p, 1, x->l, ')', &e.c)))) {
		return rc;
	}
	x->letter[x->letters++] = number_of(x, &e);
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

/* Ascending: one graph has one name. */
static void sort_letters(struct topo_cayley *x)
{
	for (int i = 1; i < x->letters; i++) {
		for (int k = i; k > 0 && x->letter[k - 1] > x->letter[k]; k--) {
			int64_t letter = x->letter[k];
			int col = x->letter_col[k];

			x->letter[k] = x->letter[k - 1];
			x->letter_col[k] = x->letter_col[k - 1];
			x->letter[k - 1] = letter;
			x->letter_col[k - 1] = col;
		}
	}
}

int topo_read_cayley(struct topo_parser *p, struct topo_call *call)
{
	struct topo_cayley *x = calloc(1, sizeof(*x));
	int rc;

	if (!x) {
		return err_nomem(p->err);
	}
	call->cayley = x;
	x->col = topo_column(p);
	if ((rc = read_orders(p, x)) || (rc = read_action(p, x)) || (rc = read_letters(p, x))) {
		return rc;
	}
	sort_letters(x);
	return 0;
}

/* ---- writing ---- */

static void write_row(struct buf *b, const int64_t *v, int n)
{
	for (int i = 0; i < n; i++) {
		buf_printf(b, "%s%" PRId64, i ? "," : "", v[i]);
	}
}

static void write_matrix(struct buf *b, const struct topo_cayley *x)
{
	buf_printf(b, "%" PRId64 "^%d:%" PRId64 ",[", x->n, x->j, x->k);
	for (int i = 0; i < x->j; i++) {
		buf_str(b, i ? ";" : "");
		write_row(b, x->a + i * x->j, x->j);
	}
	buf_char(b, ']');
	if (x->carries) {
		buf_str(b, "+(");
		write_row(b, x->w, x->j);
		buf_char(b, ')');
	}
}

static void write_numbers(struct buf *b, const struct topo_cayley *x)
{
	if (x->l > 1) {
		buf_printf(b, "%" PRId64 ":(%" PRId64 "x%" PRId64 "),r=%" PRId64 ",q=%" PRId64,
			   x->n, x->k, x->l, x->a[0], x->q[0]);
		return;
	}
	buf_printf(b, "%" PRId64 ":%" PRId64 ",r=%" PRId64, x->n, x->k, x->a[0]);
	if (x->carries) {
		buf_printf(b, ",s=%" PRId64, x->w[0]);
	}
}

void topo_write_cayley(const struct topo_call *call, struct buf *b)
{
	const struct topo_cayley *x = call->cayley;

	if (x->by_matrix) {
		write_matrix(b, x);
	} else {
		write_numbers(b, x);
	}
	for (int i = 0; i < x->letters; i++) {
		struct topo_element e = element_of(x, x->letter[i]);

		buf_str(b, i ? ",(" : ",{(");
		write_row(b, e.v, x->j);
		buf_printf(b, "%c%" PRId64, x->by_matrix ? ';' : ',', e.b);
		if (x->l > 1) {
			buf_printf(b, ",%" PRId64, e.c);
		}
		buf_char(b, ')');
	}
	buf_char(b, '}');
}

/* ---- what is a group, and what generates it ---- */

static bool is_one(const struct topo_cayley *x, const int64_t *m)
{
	for (int i = 0; i < x->j * x->j; i++) {
		if (m[i] != (i % (x->j + 1) == 0 ? 1 % x->n : 0)) {
			return false;
		}
	}
	return true;
}

static void check_action(struct topo_make *mk)
{
	const struct topo_cayley *x = mk->call->cayley;
	int64_t m[MAX_J * MAX_J], w[MAX_J];

	power_of(x, x->a, x->k, m);
	if (!is_one(x, m)) {
		topo_refuse(mk, x->col, "%s to the power %" PRId64 " is not 1 modulo %" PRId64,
			    x->by_matrix ? "the matrix" : "r", x->k, x->n);
	}
	power_of(x, x->q, x->l, m);
	if (!is_one(x, m)) {
		topo_refuse(mk, x->col, "q to the power %" PRId64 " is not 1 modulo %" PRId64,
			    x->l, x->n);
	}
	memcpy(w, x->w, sizeof(w));
	apply(x, x->a, w);
	if (memcmp(w, x->w, (size_t)x->j * sizeof(*w)) != 0) {
		topo_refuse(mk, x->col, x->by_matrix ? "the matrix moves the vector that is carried"
			    : "s is not r s modulo %" PRId64, x->n);
	}
}

static bool closes(const struct topo_make *mk)
{
	return strcmp(mk->call->family->name, "Cay") == 0;
}

/* All generators in the order of their arcs: an inverse behind its letter. */
static int generators(const struct topo_make *mk, int64_t *out)
{
	const struct topo_cayley *x = mk->call->cayley;
	int n = 0;

	for (int i = 0; i < x->letters; i++) {
		int64_t inverse = inverse_of(x, x->letter[i]);

		out[n++] = x->letter[i];
		if (closes(mk) && inverse != x->letter[i]) {
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
		for (int k = 0; k < i && closes(mk) && !mk->rc; k++) {
			if (inverse_of(x, x->letter[i]) == x->letter[k]) {
				topo_refuse(mk, x->letter_col[i], "a generator and its inverse: "
					    "one of them is enough");
			}
		}
	}
}

/* next[u d + i]: u times generator i. */
static int32_t *neighbours(const struct topo_cayley *x, const int64_t *letters, int d)
{
	int64_t n = order_of(x);
	int64_t (*moved)[MAX_J] = malloc((size_t)(x->k * x->l) * sizeof(*moved));
	int32_t *next = malloc((size_t)n * (size_t)d * sizeof(*next));

	for (int i = 0; i < d && moved && next; i++) {
		move_letter(x, letters[i], moved);
		for (int64_t u = 0; u < n; u++) {
			next[u * d + i] = (int32_t)times_letter(x, u, letters[i],
							(const int64_t (*)[MAX_J])moved);
		}
	}
	if (!moved) {
		free(next);
		next = NULL;
	}
	free(moved);
	return next;
}

static void check_reach(struct topo_make *mk)
{
	const struct topo_cayley *x = mk->call->cayley;
	int64_t letters[2 * TOPO_MAX_ARGS], n = order_of(x);
	int d = generators(mk, letters), reached;
	int32_t *next = neighbours(x, letters, d);
	int32_t *queue = malloc((size_t)n * sizeof(*queue));
	bool *seen = calloc((size_t)n, sizeof(*seen));

	if (!next || !queue || !seen) {
		mk->rc = err_nomem(mk->err);
		goto out;
	}
	reached = topo_count_reached(next, (int)n, d, queue, seen);
	if (reached < n) {
		topo_refuse(mk, x->letter_col[0], "the generators reach %d of %" PRId64 " nodes",
			    reached, n);
	}
out:
	free(next);
	free(queue);
	free(seen);
}

static void measure_cayley(struct topo_make *mk)
{
	const struct topo_cayley *x = mk->call->cayley;
	int64_t letters[2 * TOPO_MAX_ARGS];

	check_action(mk);
	check_letters(mk);
	if (order_of(x) < 2) {
		topo_refuse(mk, x->col, "a group of one element");
	}
	if (mk->rc) {
		return;
	}
	mk->size = topo_group_size(order_of(x), generators(mk, letters));
	if (mk->size.m <= TOPO_MAX_ARCS) {
		check_reach(mk);
	}
}

/* ---- the group by which it is transitive ---- */

/* What multiplying from the left does: adding one to digit i of v, or A and one more of b,
 * or Q and one more of c. */
static int64_t move_left(const struct topo_cayley *x, int i, int64_t number)
{
	struct topo_element e = element_of(x, number);

	if (i < x->j) {
		e.v[i] = (e.v[i] + 1) % x->n;
		return number_of(x, &e);
	}
	apply(x, i == x->j ? x->a : x->q, e.v);
	if (i > x->j) {
		e.c = (e.c + 1) % x->l;
		return number_of(x, &e);
	}
	for (int k = 0; k < x->j && e.b + 1 == x->k; k++) {
		e.v[k] = (e.v[k] + x->w[k]) % x->n;
	}
	e.b = (e.b + 1) % x->k;
	return number_of(x, &e);
}

static void attach_group(struct topo_make *mk)
{
	const struct topo_cayley *x = mk->call->cayley;
	int64_t n = order_of(x);
	int32_t *images = malloc((size_t)(x->j + 2) * (size_t)n * sizeof(*images)), *image = images;
	int orders[MAX_J + 2], count = 0;

	if (!images) {
		mk->rc = err_nomem(mk->err);
		return;
	}
	for (int i = 0; i < x->j + 2; i++) {
		int64_t order = i < x->j ? x->n : i == x->j ? x->k : x->l;

		for (int64_t u = 0; u < n && order > 1; u++) {
			*image++ = (int32_t)move_left(x, i, u);
		}
		if (order > 1) {
			orders[count++] = (int)order;
		}
	}
	mk->rc = topo_group_new((int)n, (int)n, count, orders, images, &mk->t->group, mk->err);
	free(images);
}

static void build_cayley(struct topo_make *mk)
{
	const struct topo_cayley *x = mk->call->cayley;
	int64_t letters[2 * TOPO_MAX_ARGS];
	int d = generators(mk, letters);
	int32_t *next = neighbours(x, letters, d);

	if (!next) {
		mk->rc = err_nomem(mk->err);
		return;
	}
	for (int64_t a = 0; a < mk->size.m; a++) {
		topo_link(mk, a / d, next[a]);
	}
	free(next);
	if (!mk->rc) {
		attach_group(mk);
	}
}

#define FORMS "(n:k,r=R[,s=S],{(a,b),...}), (n:(kxl),r=R,q=Q,{(a,b,c),...}) or " \
	"(n^j:k,[A][+(w)],{(v,...;b),...})"

const struct topo_family topo_cayley[] = {
	{ "Cay", "c", "Cay" FORMS, "Cayley graph of Z_n^j : (Z_k x Z_l), a port for each generator "
	  "and its inverse", measure_cayley, build_cayley },
	{ "DiCay", "c", "DiCay" FORMS, "the same without inverses, 1 port a generator",
	  measure_cayley, build_cayley },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
