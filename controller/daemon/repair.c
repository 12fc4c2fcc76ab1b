/* Circuits that changes were committed without, while they are not there. */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/private.h"

static bool is_there(const struct daemon *d, const struct store_repair *r)
{
	int n;
	const struct apply_device *v = apply_devices(d->apply, &n);

	for (int i = 0; i < n; i++) {
		const struct drv_xc *x = NULL;

		if (strcmp(v[i].name, r->device) == 0 && v[i].snap.n_xcs) {
			/* drv_xc begins with its light_xc. */
			x = bsearch(&r->xc, v[i].snap.xcs, v[i].snap.n_xcs,
				    sizeof(*x), light_xc_cmp);
		}
		if (x && x->state == DRV_TUNED) {
			return true;
		}
	}
	return false;
}

void daemon_repairs_fini(struct repairs *r)
{
	store_repairs_free(r->stored, r->n_stored);
	free(r->rows);
	free(r->list);
	*r = (struct repairs){ 0 };
}

int daemon_repairs(struct daemon *d, struct repairs *r, struct err *err)
{
	int rc;

	*r = (struct repairs){ 0 };
	rc = store_repairs(d->store, &r->stored, &r->n_stored, err);
	if (rc) {
		return rc;
	}
	r->rows = calloc((size_t)r->n_stored + 1, sizeof(*r->rows));
	r->list = calloc((size_t)r->n_stored + 1, sizeof(*r->list));
	if (!r->rows || !r->list) {
		daemon_repairs_fini(r);
		return err_nomem(err);
	}
	for (int i = 0; i < r->n_stored; i++) {
		const struct store_repair *s = &r->stored[i];
		Weft__V1__Repair *m = &r->rows[r->n];

		if (is_there(d, s)) {
			continue;
		}
		weft__v1__repair__init(m);
		m->device = s->device;
		m->in = s->xc.in + 1;
		m->out = s->xc.out + 1;
		m->change = s->change;
		m->since_ns = s->since_ns;
		m->why = s->why;
		r->list[r->n++] = m;
	}
	return 0;
}
