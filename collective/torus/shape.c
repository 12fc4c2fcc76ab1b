/* Shapes: the coordinates of a digraph's terminals. */
#include <stdlib.h>

#include "collective/torus/net.h"

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
	*out = s;
	return 0;
}

void torus_shape_free(struct torus_shape *s)
{
	for (int e = 0; s && e < s->n_dims; e++) {
		torus_net_free(s->net[e]);
	}
	free(s);
}
