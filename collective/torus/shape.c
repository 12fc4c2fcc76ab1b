/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: the coordinates of a digraph's terminals. */
#include <stdlib.h>

#include "collective/torus/net.h"
#include "lib/base/alloc.h"

/* Of the line through terminal 0, whose dimension is e. O(its arcs). */
static void find_joins(struct torus_shape *s, int e)
{
	int d = s->size[e], unit = s->unit[e];
	int *count = x_new((size_t)d, 2 * sizeof(*count)), *seen;

	s->joins[e] = x_new((size_t)d, sizeof(*s->joins[e]));
	seen = count + d;
	for (int x = 0; x < d; x++) {
		int first, n = topo_out(s->t, x * unit, &first);

		for (int a = first; a < first + n; a++) {
			int v = topo_arc(s->t, a)->dst, o = (v / unit + d - x) % d;

			if (v % unit == 0 && v / unit < d && seen[o] != x + 1) {
				seen[o] = x + 1;
				count[o]++;
			}
		}
	}
	for (int o = 1; o < d; o++) {
		s->joins[e][o] = count[o] == d;
	}
	free(count);
}

int torus_shape_new(const struct topo *t, const struct coll_fabric *f, bool forwards,
		    struct torus_shape **out, struct err *err)
{
	struct torus_shape *s = x_new(1, sizeof(*s));
	int radix[COLL_MAX_DIGITS];

	*out = NULL;
	s->t = f ? f->topo : t;
	s->fabric = f;
	s->forwards = forwards;
	coll_digits(s->t, radix, &s->n_dims);
	if (s->n_dims == 0) {
		torus_shape_free(s);
		return err_set(err, WEFT_EUNSUPPORTED, "one rank alone has no partners");
	}
	for (int e = s->n_dims - 1, unit = 1; e >= 0; unit *= s->size[e--]) {
		s->size[e] = radix[s->n_dims - 1 - e];
		s->unit[e] = unit;
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
