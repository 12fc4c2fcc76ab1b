/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines: what each node of a dimension sends in each step of a reduce-scatter.
 *
 * Every block has an in-tree: a node sends its sum of the block once, to one node, after all that
 * it gets. For Swing and recursive doubling trees come from the partners of each step, for levels
 * from the digits of the offset between node and block, each between -(m-1)/2 and m/2: every offset
 * has exactly one such string of digits, whatever the size. Sizes that are no powers of two fold
 * for recursive doubling, and for Swing by exchanges: nodes beyond a power of two give all to a
 * neighbour.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/torus/private.h"
#include "lib/base/alloc.h"
#include "lib/base/bits.h"

static bool is_power_of_two(int n)
{
	return (n & (n - 1)) == 0;
}

static int modulo(int a, int d)
{
	return (a % d + d) % d;
}

static void set_send(struct torus_line *l, int x, int block, int step, int to)
{
	l->step[(size_t)x * (size_t)l->d + (size_t)block] = (int16_t)step;
	l->to[(size_t)x * (size_t)l->d + (size_t)block] = (int16_t)to;
}

/* One level a step. */
static void set_steps(struct torus_line *l, int steps)
{
	l->steps = l->n_levels = steps;
	for (int i = 0; i < steps; i++) {
		l->level[i] = (struct torus_line_level){ .first = i, .steps = 1 };
	}
}

static int log2_up(int n)
{
	int s = 0;

	while (1 << s < n) {
		s++;
	}
	return s;
}

/* ---- Swing ---- */

/* Section 3.1, eq. 2: rho(s) = 1 - 2 + 4 - ... (s + 1 terms). */
static int swing_partner(int x, int step, int d, bool mirrored)
{
	int rho = (1 - (1 << (step + 1)) * (step % 2 ? 1 : -1)) / 3;

	return modulo((x % 2 == 0) != mirrored ? x + rho : x - rho, d);
}

/* reach: by step and node, the blocks that node hands on from that step on. */
static void find_reach(int d, int steps, bool mirrored, uint64_t *reach)
{
	size_t words = ((size_t)d + 63) / 64;

	for (int s = steps - 1; s >= 0; s--) {
		for (int x = 0; x < d; x++) {
			uint64_t *mine = reach + ((size_t)s * (size_t)d + (size_t)x) * words;
			const uint64_t *later = mine + (size_t)d * words;
			int q = swing_partner(x, s, d, mirrored);
			const uint64_t *there =
				reach + ((size_t)(s + 1) * (size_t)d + (size_t)q) * words;

			bits_or(mine, later, (int)words);
			bits_or(mine, there, (int)words);
			bits_add(mine, q);
		}
	}
}

/* Even sizes (section 3.2, appendix A.2): a block that is planned in several steps goes in the last
 * of them. d: nodes that take part, the first ones of the line. */
static void swing_even(struct torus_line *l, int d, bool mirrored)
{
	size_t words = ((size_t)d + 63) / 64;
	uint64_t *reach = x_new((size_t)(l->steps + 1) * (size_t)d * words, sizeof(*reach));

	find_reach(d, l->steps, mirrored, reach);
	for (int s = 0; s < l->steps; s++) {
		for (int x = 0; x < d && x < l->tables; x++) {
			int q = swing_partner(x, s, d, mirrored);
			const uint64_t *there =
				reach + ((size_t)(s + 1) * (size_t)d + (size_t)q) * words;

			for (int o = 0; o < d; o++) {
				if (o != x && (o == q || bits_has(there, o))) {
					set_send(l, x, o, s, q);
				}
			}
		}
	}
	free(reach);
}

/* Odd sizes: the last node deals with the others directly, with half of those that are left in each
 * step (the paper's (p-1)/2^s is a slip). Mirrored it begins at the other end. */
static void swing_last(struct torus_line *l, bool mirrored)
{
	int last = l->d - 1, o = 0;

	for (int s = 0; s < l->steps; s++) {
		int share = (last + (1 << (s + 1)) - 1) >> (s + 1);

		for (int k = 0; o < last && (k < share || s == l->steps - 1); k++, o++) {
			int x = mirrored ? last - 1 - o : o;

			set_send(l, last, x, s, x);
			set_send(l, x, last, s, last);
		}
	}
}

static void swing(struct torus_line *l, bool mirrored)
{
	int even = l->d & ~1;

	set_steps(l, log2_up(l->d));
	swing_even(l, even, mirrored);
	if (even < l->d) {
		swing_last(l, mirrored);
	}
}

/* ---- recursive doubling ---- */

/* Mirrored on the other side of each node, which is -x here. */
static void doubling(struct torus_line *l, bool mirrored)
{
	set_steps(l, log2_up(l->d));
	for (int x = 0; x < l->d; x++) {
		for (int o = 0; o < l->d; o++) {
			int a = mirrored ? modulo(-x, l->d) : x;
			int b = mirrored ? modulo(-o, l->d) : o;
			int s = a == b ? 0 : __builtin_ctz((unsigned)(a ^ b)), to = a ^ 1 << s;

			if (a != b) {
				set_send(l, x, o, s, mirrored ? modulo(-to, l->d) : to);
			}
		}
	}
}

/* ---- levels, buckets ---- */

/* The digit of an offset at a level, 0 when it ends in zeros there. */
static int digit_of(const struct torus_line_level *v, int offset)
{
	int radix = v->up + v->down + 1, t = offset / v->stride % radix;

	return t > v->up ? t - radix : t;
}

/* Of uneven levels, by an offset in strides, ahead or behind: it leaves the nearest multiple of the
 * radix that the line has, so what is left is met again with zeros here. */
static int uneven_digit(const struct torus_line_level *v, int offset)
{
	int k = (offset + v->radix * v->left_down + (v->radix - 1) / 2) / v->radix - v->left_down;

	k = k > v->left_up ? v->left_up : k < -v->left_down ? -v->left_down : k;
	return offset - k * v->radix;
}

/* The first level at which an offset is not 0, and its digit there. */
static const struct torus_line_level *first_level(const struct torus_line *l, int offset,
						  int *digit)
{
	const struct torus_line_level *v = l->level;
	int rest = offset <= l->d / 2 ? offset : offset - l->d;

	if (!l->is_uneven) {
		while ((*digit = digit_of(v, offset)) == 0) {
			v++;
		}
		return v;
	}
	while ((*digit = uneven_digit(v, rest)) == 0) {
		rest /= v++->radix;
	}
	return v;
}

static void levels(struct torus_line *l, bool mirrored)
{
	for (int offset = 1; offset < l->d; offset++) {
		int t, hop, step;
		const struct torus_line_level *v = first_level(l, offset, &t);

		hop = (v->chain ? (t > 0 ? 1 : -1) : t) * v->stride * (mirrored ? -1 : 1);
		step = v->first + (v->chain ? v->steps - abs(t) : 0);
		for (int x = 0; x < l->tables; x++) {
			int o = modulo(mirrored ? x - offset : x + offset, l->d);

			set_send(l, x, o, step, modulo(x + hop, l->d));
		}
	}
}

/* Adds a level of nodes up to `up` ahead and `down` behind. */
static struct torus_line_level *add_level(struct torus_line *l, int stride, int up, int down,
					  bool chain)
{
	struct torus_line_level *v = &l->level[l->n_levels++];
	int far = up > down ? up : down;

	*v = (struct torus_line_level){ .first = l->steps, .stride = stride, .up = up,
					.down = down, .chain = chain && far > 1, .steps = 1 };
	v->steps = v->chain ? far : 1;
	l->steps += v->steps;
	return v;
}

/*
 * Exchanges that join any number of nodes. A node has the sum of an interval around it, and gets
 * those of the nodes whose intervals come next to its own on both sides. What is still to be joined
 * on one side is less than an interval: the sums of the level before that make it up have come to
 * a node whose own is beside them, and that passes them on.
 */
struct interval {
	int down, up, n;	/* nodes behind, ahead, and with the node itself */
};

static struct torus_send *add_send(struct torus_line *l, int step, int to, int of, bool mirrored)
{
	struct torus_send s = { (int16_t)step, (int16_t)modulo(mirrored ? -to : to, l->d),
				(int16_t)modulo(mirrored ? -of : of, l->d), 0 };

	vec_push(&l->sends, s);
	return &l->sends.v[l->sends.n - 1];
}

/* first: the middle of the first of the sums of m nodes each that are passed on; reach: of how
 * many ahead a node has those of the level before. */
static void pass_more(struct torus_line *l, int more, int first, int m, int reach, bool mirrored)
{
	for (int j = 0; j < more; j++) {
		int from = first + (j - j % reach - 1) * m;

		add_send(l, l->steps - 1, -from, first + j * m - from, mirrored);
	}
}

static int passing_radices(struct torus_line *l, const struct torus_radices *r, bool mirrored,
			   struct err *err)
{
	struct interval before = { 0, 0, 0 }, now = { 0, 0, 1 };
	int reach = 0;

	l->passes_on = true;
	for (int i = 0; i < r->n && now.n < l->d; i++) {
		int m = r->level[i].radix, more = r->level[i].more, up = m / 2;
		struct interval next = { now.down + (m - 1) / 2 * now.n,
					 now.up + up * now.n + more * before.n,
					 m * now.n + more * before.n };

		if (r->level[i].chain || (more > 0 && i == 0) || next.n > l->d) {
			return err_set(err, WEFT_EINVAL, "a dimension of %d: level %d of %d is not "
				       "one that passes on sums", l->d, i + 1, r->n);
		}
		add_level(l, now.n, up, m - 1 - up, false);
		for (int t = -(m - 1) / 2; t <= up; t++) {
			if (t != 0) {
				add_send(l, l->steps - 1, -t * now.n, 0, mirrored);
			}
		}
		pass_more(l, more, now.up + up * now.n + 1 + before.down, before.n, reach,
			  mirrored);
		reach = up;
		before = now;
		now = next;
	}
	return now.n == l->d ? 0 : err_set(err, WEFT_EINVAL, "a dimension of %d: levels that join "
					   "%d", l->d, now.n);
}

/* Exchanges of levels whose radices multiply to the size: a node to all its partners at once, or
 * what came from behind and ahead goes on, as long as others lack it. */
static void list_exchanges(struct torus_line *l, bool mirrored)
{
	for (const struct torus_line_level *v = l->level; v < l->level + l->n_levels; v++) {
		for (int t = v->up; t >= -v->down; t--) {
			int way = t > 0 ? v->stride : -v->stride, behind = abs(t) - 1;

			if (t != 0 && v->chain) {
				add_send(l, v->first + behind, way, -behind * way, mirrored);
			} else if (t != 0) {
				add_send(l, v->first, t * v->stride, 0, mirrored);
			}
		}
	}
}

/* Of uneven levels only the last can be one: those that have a block send their sums to each other.
 * How many nodes have it is the radix, and they are a stride apart. */
static void list_last_exchange(struct torus_line *l, bool mirrored)
{
	const struct torus_line_level *v = &l->level[l->n_levels - 1];

	for (int j = 1 - v->radix; j < v->radix && !v->chain && l->d % v->stride; j++) {
		if (j != 0) {
			add_send(l, v->first, j * v->stride, 0, mirrored)->blocks =
				(int16_t)(v->radix - abs(j));
		}
	}
}

static bool has_more(const struct torus_radices *r)
{
	bool any = false;

	for (int i = 0; i < r->n; i++) {
		any |= r->level[i].more > 0;
	}
	return any;
}

/* Whether the radices multiply to the size: then every offset has one string of digits. */
static bool is_even(const struct torus_radices *r, int d)
{
	for (int i = 0; i < r->n; d /= r->level[i++].radix) {
		if (r->level[i].radix < 2 || d % r->level[i].radix) {
			return false;
		}
	}
	return d == 1;
}

/* Else the ends of the line, which is cut open opposite the node, belong to the last multiples of
 * each radix: a reduce-scatter on any size, with no exchange. */
static int uneven_radices(struct torus_line *l, const struct torus_radices *r, struct err *err)
{
	int up = l->d / 2, down = (l->d - 1) / 2, stride = 1;

	l->is_uneven = true;
	for (int i = 0; i < r->n; i++) {
		int m = r->level[i].radix, left_up = up / m, left_down = down / m;
		bool last = i == r->n - 1;
		struct torus_line_level *v;

		if (last ? m != up + down + 1 : m > up + down) {
			return err_set(err, WEFT_EINVAL, "a dimension of %d: level %d of %d has %d "
				       "nodes to join, not %d", l->d, i + 1, r->n, up + down + 1,
					       m);
		}
		left_up = last ? 0 : left_up;
		left_down = last ? 0 : left_down;
		v = add_level(l, stride, up - left_up * m > m / 2 || left_up == 0 ? up - left_up * m
										  : m / 2,
			      down - left_down * m > (m - 1) / 2 || left_down == 0
				      ? down - left_down * m : (m - 1) / 2,
			      r->level[i].chain);
		v->radix = m;
		v->left_up = up = left_up;
		v->left_down = down = left_down;
		stride *= m;
	}
	return up + down == 0 ? 0 : err_set(err, WEFT_EINVAL, "a dimension of %d: no levels", l->d);
}

static int mixed_radices(struct torus_line *l, const struct torus_radices *r, bool mirrored,
			 struct err *err)
{
	int stride = 1;

	if (has_more(r)) {
		return passing_radices(l, r, mirrored, err);
	}
	if (!is_even(r, l->d)) {
		return uneven_radices(l, r, err);
	}
	for (int i = 0; i < r->n; i++) {
		int m = r->level[i].radix;

		add_level(l, stride, m / 2, (m - 1) / 2, r->level[i].chain);
		stride *= m;
	}
	return 0;
}

/* All one way round. */
static void bucket(struct torus_line *l)
{
	add_level(l, 1, l->d - 1, 0, true);
}

/* ---- folds ---- */

/* Node of the i-th of those that go on, when `extra` nodes of the line do not: each second of the
 * first ones, beside its neighbour. */
static int kept_node(int i, int extra)
{
	return i < extra ? 2 * i : i + extra;
}

/* The number of a node, or of its neighbour, among those that go on. */
static int kept_number(int node, int extra)
{
	return node < 2 * extra ? node / 2 : node - extra;
}

static void fold(struct torus_line *l, const struct torus_line *inner)
{
	int extra = l->d - inner->d;

	l->n_levels = inner->n_levels + 1;
	l->steps = inner->steps + 1;
	l->level[0] = (struct torus_line_level){ .steps = 1, .is_fold = true };
	for (int i = 0; i < inner->n_levels; i++) {
		l->level[i + 1] = inner->level[i];
		l->level[i + 1].first++;
	}
	for (int x = 0; x < l->d; x++) {
		int i = kept_number(x, extra);

		for (int o = 0; o < l->d; o++) {
			int at = i * inner->d + kept_number(o, extra);

			if (kept_node(i, extra) != x) {
				set_send(l, x, o, 0, x - 1);
			} else if (inner->step[at] >= 0) {
				set_send(l, x, o, inner->step[at] + 1,
					 kept_node(inner->to[at], extra));
			}
		}
	}
}

/* ---- what all have ---- */

/* Steps of 2 and the reflection that takes even nodes to odd ones. */
static void swing_group(struct torus_line *l)
{
	int n = 0;

	for (int reflect = l->d == 2; reflect < 2; reflect++) {
		l->order[n] = reflect ? 2 : l->d / 2;
		for (int x = 0; x < l->d; x++) {
			l->image[n * l->d + x] = (int16_t)modulo(reflect ? 1 - x : x + 2, l->d);
		}
		n++;
	}
	l->n_generators = n;
}

static void doubling_group(struct torus_line *l)
{
	for (int s = 0; 1 << s < l->d; s++) {
		l->order[s] = 2;
		for (int x = 0; x < l->d; x++) {
			l->image[s * l->d + x] = (int16_t)(x ^ 1 << s);
		}
		l->n_generators++;
	}
}

static void shift_group(struct torus_line *l, int by)
{
	l->order[0] = l->d / by;
	l->n_generators = by < l->d;
	for (int x = 0; x < l->d; x++) {
		l->image[x] = (int16_t)modulo(x + by, l->d);
	}
}

/* Of both lines of a dimension: mirrored doubling has another one, and only half a turn in common.
 * */
static void set_group(struct torus_line *l, const struct torus_spec *spec)
{
	switch (spec->lines) {
	case TORUS_SWING:
		l->period = 2;
		swing_group(l);
		return;
	case TORUS_DOUBLING:
		l->period = l->d;
		if (spec->one_port) {
			doubling_group(l);
		} else {
			shift_group(l, l->d / 2);
		}
		return;
	default:
		l->period = 1;
		shift_group(l, 1);
	}
}

static int ascending(const void *a, const void *b)
{
	return *(const int32_t *)a - *(const int32_t *)b;
}

/* What node x sends: step and partner of every block, in order. Returns how many. */
static int list_sends(const struct torus_line *l, int x, int32_t *sends)
{
	const int16_t *step = l->step + (size_t)x * (size_t)l->d, *to = l->to + (step - l->step);
	int n = 0;

	for (int o = 0; o < l->d; o++) {
		if (step[o] >= 0) {
			sends[n++] = step[o] << 16 | to[o];
		}
	}
	qsort(sends, (size_t)n, sizeof(*sends), ascending);
	return n;
}

/* Whom node x sends to, by step, with the blocks that each gets. */
static void list_partners_of(struct torus_line *l, int x, int32_t *sends)
{
	int n = list_sends(l, x, sends), s = 0;

	for (int i = 0, end; i < n; i = end) {
		struct torus_partner p = { .to = (int16_t)(sends[i] & 0xffff) };

		for (end = i; end < n && sends[end] == sends[i]; end++) {
			p.blocks++;
		}
		for (; s <= sends[i] >> 16; s++) {
			l->first[x * l->steps + s] = (int32_t)l->partners.n;
		}
		vec_push(&l->partners, p);
	}
	for (; s < l->steps; s++) {
		l->first[x * l->steps + s] = (int32_t)l->partners.n;
	}
}

/* Node x sends as node 0 does. */
static void shift_partners(struct torus_line *l, int x)
{
	int n = l->first[l->steps];

	for (int s = 0; s <= l->steps; s++) {
		l->first[x * l->steps + s] = x * n + l->first[s];
	}
	for (int i = 0; i < n; i++) {
		struct torus_partner p = l->partners.v[i];

		p.to = (int16_t)((p.to + x) % l->d);
		vec_push(&l->partners, p);
	}
}

static void list_partners(struct torus_line *l, bool shifts)
{
	int32_t *sends;

	arrays_add(&l->arrays, l->first, l->rows * l->steps + 1);
	arrays_add(&l->arrays, sends, l->d);
	for (int x = 0; x < l->rows; x++) {
		if (x > 0 && shifts) {
			shift_partners(l, x);
		} else {
			list_partners_of(l, x, sends);
		}
		l->first[(x + 1) * l->steps] = (int32_t)l->partners.n;
	}
}

void torus_line_free(struct torus_line *l)
{
	if (l) {
		vec_fini(&l->partners);
		vec_fini(&l->sends);
		arrays_fini(&l->arrays);
		free(l);
	}
}

static void line_new(int d, int rows, int tables, struct torus_line **out)
{
	struct torus_line *l = x_new(1, sizeof(*l));
	size_t size = (size_t)tables * (size_t)d;

	*out = l;
	l->d = d;
	l->rows = rows;
	l->tables = tables;
	arrays_add(&l->arrays, l->step, size);
	arrays_add(&l->arrays, l->to, size);
	arrays_add(&l->arrays, l->image, (size_t)d * COLL_MAX_DIGITS);
	memset(l->step, 0xff, size * sizeof(*l->step));
}

/* A line of those that go on, and of all. */
static int make_fold(struct torus_line *l, const struct torus_spec *spec, int dimension,
		     bool mirrored, struct err *err)
{
	struct torus_line *inner = NULL;
	int rc = torus_line_make(spec, dimension, 1 << (log2_up(l->d) - 1), mirrored, 0,
				 &inner, err);

	if (rc == 0) {
		fold(l, inner);
	}
	torus_line_free(inner);
	return rc;
}

/* Trees, and the group. */
static int fill(struct torus_line *l, const struct torus_spec *spec, int dimension, bool mirrored,
		struct err *err)
{
	bool needs_two = spec->lines == TORUS_DOUBLING ||
			 (spec->lines == TORUS_SWING && spec->rounds >= 0);
	int rc = 0;

	if (needs_two && !is_power_of_two(l->d)) {
		return make_fold(l, spec, dimension, mirrored, err);
	}
	if (spec->lines == TORUS_SWING) {
		swing(l, mirrored);
	}
	if (spec->lines == TORUS_DOUBLING) {
		doubling(l, mirrored);
	} else if (spec->lines == TORUS_LEVELS) {
		rc = mixed_radices(l, &spec->radices[dimension], mirrored, err);
	} else if (spec->lines != TORUS_SWING) {
		bucket(l);
	}
	if (rc == 0 && spec->lines != TORUS_SWING && spec->lines != TORUS_DOUBLING &&
	    !l->passes_on) {
		levels(l, mirrored);
		(l->is_uneven ? list_last_exchange : list_exchanges)(l, mirrored);
	}
	l->is_alike = spec->lines != TORUS_SWING || l->d % 2 == 0;
	if (l->is_alike) {
		set_group(l, spec);
	}
	return rc;
}

/* Swing whose nodes do the same in turns of two. */
static bool is_even_swing(const struct torus_spec *spec, int d)
{
	return spec->lines == TORUS_SWING &&
	       (spec->rounds < 0 ? d % 2 == 0 : is_power_of_two(d));
}

int torus_line_make(const struct torus_spec *spec, int dimension, int d, bool mirrored,
		    int rows, struct torus_line **out, struct err *err)
{
	bool shifts = spec->lines != TORUS_SWING && spec->lines != TORUS_DOUBLING;
	int tables = d, rc;	/* of each node, or of those that do not do the same */

	*out = NULL;
	if (d > TORUS_MAX_SIZE) {
		return err_set(err, WEFT_EUNSUPPORTED, "a dimension of %d: not supported beyond "
			       "%d", d, TORUS_MAX_SIZE);
	}
	if (rows > 0 && shifts) {
		tables = 1;
	} else if (rows > 0 && is_even_swing(spec, d)) {
		rows = tables = 2 * rows < d ? 2 * rows : d;
	} else {
		rows = d;
	}
	line_new(d, rows, tables, out);
	if ((rc = fill(*out, spec, dimension, mirrored, err)) == 0) {
		list_partners(*out, shifts);
	}
	if (rc) {
		torus_line_free(*out);
		*out = NULL;
	}
	return rc;
}
