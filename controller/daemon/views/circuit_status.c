/* All circuits of one device as last read, each with what is known of its
 * light. */
#include <stdlib.h>

#include "controller/daemon/core/private.h"

/* The numbers that a message of light points to. */
struct lit {
	Weft__V1__Signal m;
	Weft__V1__Number loss, factory, good;
};

static Weft__V1__Number *number(Weft__V1__Number *at, bool known,
				int64_t value)
{
	weft__v1__number__init(at);
	at->value = value;
	return known ? at : NULL;
}

static void fill(struct lit *l, const struct drv_xc *x,
		 const struct apply_loss *loss, int proof)
{
	weft__v1__signal__init(&l->m);
	l->m.state = (char *)drv_state_name(x->state);
	l->m.loss_mdb = number(&l->loss, x->has_loss, x->loss_mdb);
	l->m.factory_loss_mdb = number(&l->factory, x->has_factory_loss,
				       x->factory_loss_mdb);
	l->m.baseline_loss_mdb = number(&l->good, loss->has_good, loss->good_mdb);
	l->m.limit_mdb = loss->limit_mdb;
	l->m.over_limit = loss->over;
	l->m.degraded = loss->worse;
	l->m.proof = (Weft__V1__Proof)proof;
}

int daemon_light_init(struct light_view *v, struct daemon *d, int device,
		      const struct apply_device *a, struct err *err)
{
	int n = a->snap.n_xcs, r = 0;
	struct optics_xc *xcs = calloc((size_t)n + 1, sizeof(*xcs));
	struct lit *lit = calloc((size_t)n + 1, sizeof(*lit));
	struct apply_loss loss;
	int proof;

	v->memory = lit;
	if (!xcs || !lit) {
		r = err_nomem(err);
		goto out;
	}
	for (int i = 0; i < n; i++) {
		xcs[i] = a->snap.xcs[i].xc;
	}
	r = wire_circuits_init(&v->circuits, apply_fabric(d->apply), device,
			       xcs, n, err);
	for (int i = 0; r == 0 && i < n; i++) {
		const struct drv_xc *x = &a->snap.xcs[i];

		apply_loss(d->apply, device, x, &loss);
		proof = APPLY_UNVERIFIED;
		store_circuit_proof(d->store, a->name, x->xc, &proof, NULL);
		fill(&lit[i], x, &loss, proof);
		v->circuits.v[i]->owner = (char *)x->owner;
		v->circuits.v[i]->signal = &lit[i].m;
	}
out:
	free(xcs);
	return r;
}

void daemon_light_fini(struct light_view *v)
{
	wire_circuits_fini(&v->circuits);
	free(v->memory);
}
