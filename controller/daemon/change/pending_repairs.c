/* Circuits that changes were committed without, while they are not there, or
 * not what they should be. */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/private.h"
#include "controller/daemon/hosts/hosts.h"

static const struct drv_xc *find_circuit(const struct apply_device *a,
					 struct optics_xc xc)
{
	/* drv_xc begins with its optics_xc. */
	return a->snap.n_xcs ? bsearch(&xc, a->snap.xcs,
				       (size_t)a->snap.n_xcs,
				       sizeof(*a->snap.xcs),
				       optics_xc_cmp) : NULL;
}

/* The layer that it failed is passed by now, as far as the last readings and
 * the last look at hosts tell. */
static bool is_proven(struct daemon *d, int device, const struct drv_xc *x,
		      int layer)
{
	struct apply_loss loss;

	if (layer >= APPLY_NEIGHBOUR) {
		return daemon_hosts_hear(d, device, x->xc);
	}
	apply_loss(d->apply, device, x, &loss);
	return !loss.over && !loss.worse;
}

static bool is_repaired(struct daemon *d, const struct store_repair *r)
{
	int n;
	const struct apply_device *v = apply_devices(d->apply, &n);

	for (int i = 0; i < n; i++) {
		const struct drv_xc *x =
			strcmp(v[i].name, r->device) == 0 ?
			find_circuit(&v[i], r->xc) : NULL;

		if (x && x->state == DRV_TUNED) {
			return r->layer == 0 || is_proven(d, i, x, r->layer);
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
		Weft__V1__PendingRepair *m = &r->rows[r->n];

		if (is_repaired(d, s)) {
			continue;
		}
		weft__v1__pending_repair__init(m);
		m->device = s->device;
		m->in = s->xc.in + 1;
		m->out = s->xc.out + 1;
		m->change = s->change;
		m->since_at_ns = s->since_ns;
		m->why = s->why;
		r->list[r->n++] = m;
	}
	return 0;
}
