/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All circuits of one device as last read, each with what is known of its signal:
 * state and loss as the device measures them, the loss it had when it was good, the
 * fabric's limit for the device, and how far it was proven when it was made.
 */
#include <stdlib.h>

#include "controller/daemon/views/private.h"
#include "lib/base/alloc.h"

/* A message about a signal, and the numbers that it points to. */
struct circuit_signal {
	Weft__V1__Signal m;
	Weft__V1__Number loss, factory, good, limit;
};

/* proof: an enum apply_level, from the store. */
static void fill(struct circuit_signal *l, const struct drv_xc *x,
		 const struct apply_loss *loss, int proof)
{
	weft__v1__signal__init(&l->m);
	l->m.state = (char *)drv_state_name(x->state);
	l->m.loss_mdb = msg_number(&l->loss, x->has_loss, x->loss_mdb);
	l->m.factory_loss_mdb = msg_number(&l->factory, x->has_factory_loss, x->factory_loss_mdb);
	l->m.baseline_loss_mdb = msg_number(&l->good, loss->has_good, loss->good_mdb);
	l->m.limit_mdb = msg_number(&l->limit, loss->limit_mdb != 0, loss->limit_mdb);
	l->m.over_limit = loss->over;
	l->m.degraded = loss->worse;
	l->m.proof = msg_proof(proof);
}

/* APPLY_UNVERIFIED for one that is not intended. */
static int proof_of(const struct store_light *intent, struct optics_xc xc)
{
	const struct optics_xc *at = intent->n_xcs ?
		bsearch(&xc, intent->xcs, (size_t)intent->n_xcs, sizeof(xc), optics_xc_cmp) : NULL;

	return at ? intent->proofs[at - intent->xcs] : APPLY_UNVERIFIED;
}

int circuit_view_init(struct circuit_view *v, const struct daemon_env *env,
		      int device, const struct apply_device *a, struct err *err)
{
	int n = a->snap.n_xcs, r = 0;
	struct optics_xc *xcs = x_new((size_t)n + 1, sizeof(*xcs));
	struct circuit_signal *signals = x_new((size_t)n + 1, sizeof(*signals));
	struct store_light intent = { 0 };
	struct apply_loss loss;

	v->memory = signals;
	for (int i = 0; i < n; i++) {
		xcs[i] = a->snap.xcs[i].xc;
	}
	r = store_intent(env->store, a->name, &intent, err);
	if (r == 0) {
		msg_circuits_init(&v->circuits, apply_fabric(env->apply), device, xcs, n);
	}
	for (int i = 0; r == 0 && i < n; i++) {
		const struct drv_xc *x = &a->snap.xcs[i];

		apply_loss(env->apply, device, x, &loss);
		fill(&signals[i], x, &loss, proof_of(&intent, x->xc));
		v->circuits.v[i]->owner = (char *)x->owner;
		v->circuits.v[i]->signal = &signals[i].m;
	}
	store_light_fini(&intent);
	free(xcs);
	return r;
}

void circuit_view_fini(struct circuit_view *v)
{
	msg_circuits_fini(&v->circuits);
	free(v->memory);
}
