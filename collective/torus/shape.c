/* Shapes: the coordinates of a digraph's terminals. */
#include <stdlib.h>

#include "collective/torus/net.h"

/* Of the line through terminal 0, whose dimension is e. O(its arcs). */
static int find_joins(struct torus_shape *s, int e, struct err *err)
{
	int d = s->size[e], unit = s->unit[e];
	int *count = calloc((size_t)d, 2 * sizeof(*count)), *seen;

	s->joins[e] = calloc((size_t)d, sizeof(*s->joins[e]));
	if (!count || !s->joins[e]) {
		free(count);
		return err_nomem(err);
	}
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
	return 0;
}

int torus_shape_new(const struct topo *t, const struct coll_fabric *f, bool forwards,
		    struct torus_shape **out, struct err *err)
{
	struct torus_shape *s = calloc(1, sizeof(*s));
	int radix[COLL_MAX_DIGITS], rc;

	*out = NULL;
	if (!s) {
		return err_nomem(err);
	}
	s->t = f ? f->topo : t;
	s->fabric = f;
	s->forwards = forwards;
	rc = coll_digits(s->t, radix, &s->n_dims, err);
	if (rc == 0 && s->n_dims == 0) {
		rc = err_set(err, WEFT_EUNSUPPORTED, "one rank alone has no partners");
	}
	if (rc) {
		torus_shape_free(s);
		return rc;
	}
	for (int e = s->n_dims - 1, unit = 1; e >= 0; unit *= s->size[e--]) {
		s->size[e] = radix[s->n_dims - 1 - e];
		s->unit[e] = unit;
	}
	for (int e = 0; e < s->n_dims && rc == 0 && !forwards && topo_n(s->t) == topo_ranks(s->t);
	     e++) {
		rc = find_joins(s, e, err);
	}
	if (rc) {
		torus_shape_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void torus_shape_free(struct torus_shape *s)
{
	for (int e = 0; s && e < s->n_dims; e++) {
		torus_net_free(s->net[e]);
		free(s->joins[e]);
	}
	free(s);
}
