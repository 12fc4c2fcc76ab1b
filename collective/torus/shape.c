/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: the coordinates of a digraph's terminals. */
#include <stdlib.h>

#include "collective/torus/net.h"
#include "lib/base/alloc.h"

/* Of all lines of dimension e. O(m). */
static void find_joins(struct torus_shape *s, int e)
{
	int d = s->size[e], ranks = topo_ranks(s->t);
	int *count = x_new((size_t)d, 2 * sizeof(*count)), *seen;

	s->joins[e] = x_new((size_t)d, sizeof(*s->joins[e]));
	seen = count + d;
	for (int u = 0; u < ranks; u++) {
		int first, n = topo_out(s->t, u, &first), x = torus_digit(s, u, e);

		for (int a = first; a < first + n; a++) {
			int v = topo_arc(s->t, a)->dst, to = torus_digit(s, v, e);
			int o = (to + d - x) % d;

			if (v == torus_at(s, u, e, to) && seen[o] != u + 1) {
				seen[o] = u + 1;
				count[o]++;
			}
		}
	}
	for (int o = 1; o < d; o++) {
		s->joins[e][o] = count[o] == ranks;
	}
	free(count);
}

/* Whether the digit's line through terminal 0 is a ring of 4 links that are alike. */
static bool is_ring_of_four(const struct topo *t, int unit)
{
	int64_t cap = 0;

	for (int i = 0; i < 8; i++) {
		int from = i / 2, to = (from + (i % 2 ? 3 : 1)) % 4;
		int a = topo_find_arc(t, from * unit, to * unit);

		cap = i == 0 && a >= 0 ? topo_arc(t, a)->cap : cap;
		if (a < 0 || topo_arc(t, a)->cap != cap) {
			return false;
		}
	}
	return true;
}

static void add_dimension(struct torus_shape *s, int size, int unit, bool is_gray, int bit)
{
	int e = s->n_dims++;

	s->size[e] = size;
	s->unit[e] = unit;
	s->is_gray[e] = is_gray;
	s->bit[e] = bit;
}

/* Its dimensions, the highest digit first. Returns how many are not digits. */
static int set_dimensions(struct torus_shape *s, enum torus_digits digits)
{
	int radix[COLL_MAX_DIGITS], n, unit = topo_ranks(s->t), n_gray = 0;

	coll_digits(s->t, radix, &n);
	for (int i = n - 1; i >= 0; i--) {
		bool four = digits == TORUS_FOURS && i > 0 && radix[i] == 2 && radix[i - 1] == 2;

		unit /= four ? 4 : radix[i];
		i -= four;
		n_gray += four;
		if (digits == TORUS_TWOS && radix[i] == 4 && is_ring_of_four(s->t, unit)) {
			add_dimension(s, 2, unit, true, 1);
			add_dimension(s, 2, unit, true, 0);
			n_gray++;
		} else {
			add_dimension(s, four ? 4 : radix[i], unit, four, 0);
		}
	}
	return n_gray;
}

int torus_shape_new(const struct topo *t, const struct coll_fabric *f, enum torus_digits digits,
		    bool forwards, struct torus_shape **out, struct err *err)
{
	struct torus_shape *s = x_new(1, sizeof(*s));
	int n_gray;

	*out = NULL;
	s->t = f ? f->topo : t;
	s->fabric = f;
	s->forwards = forwards;
	n_gray = set_dimensions(s, digits);
	if (s->n_dims == 0 || (digits != TORUS_PLAIN && n_gray == 0)) {
		torus_shape_free(s);
		return err_set(err, WEFT_EUNSUPPORTED, "%s", digits == TORUS_PLAIN
			       ? "one rank alone has no partners" : "no rings of 4");
	}
	for (int e = 0; e < s->n_dims && !forwards && topo_n(s->t) == topo_ranks(s->t); e++) {
		find_joins(s, e);
	}
	*out = s;
	return 0;
}

void torus_shape_free(struct torus_shape *s)
{
	for (int e = 0; s && e < s->n_dims; e++) {
		torus_net_free(s->net[e]);
		torus_line_free(s->kept[0][e]);
		torus_line_free(s->kept[1][e]);
		free(s->joins[e]);
	}
	free(s);
}
