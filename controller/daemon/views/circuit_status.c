/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All circuits of one device as last read, each with what is known of its signal:
 * state and loss as the device measures them, the loss it had when it was good, the
 * fabric's limit for the device; and its health, since when, and how far it is proven.
 */
#include <stdlib.h>

#include "controller/daemon/views/private.h"
#include "lib/base/alloc.h"

/* A message about a signal, and the numbers that it points to. */
struct circuit_signal {
	Weft__V1__Signal m;
	Weft__V1__Number loss, factory, good, limit;
};

static void fill(struct circuit_signal *l, const struct drv_xc *x,
		 const struct apply_loss *loss, struct apply_circuit c)
{
	static const char *const names[] = {
		[APPLY_UNKNOWN] = "unknown", [APPLY_UNEXPECTED] = "unexpected",
		[APPLY_MISSING] = "missing", [APPLY_PENDING] = "pending", [APPLY_DARK] = "dark",
		[APPLY_LOSSY] = "lossy", [APPLY_LIT] = "lit",
	};

	weft__v1__signal__init(&l->m);
	l->m.state = (char *)drv_state_name(x->state);
	l->m.loss_mdb = msg_number(&l->loss, x->has_loss, x->loss_mdb);
	l->m.factory_loss_mdb = msg_number(&l->factory, x->has_factory_loss, x->factory_loss_mdb);
	l->m.baseline_loss_mdb = msg_number(&l->good, loss->has_good, loss->good_mdb);
	l->m.limit_mdb = msg_number(&l->limit, loss->limit_mdb != 0, loss->limit_mdb);
	l->m.over_limit = loss->over;
	l->m.degraded = loss->worse;
	l->m.proof = msg_proof(c.level);
	l->m.health = (char *)names[c.health];
}

void circuit_view_init(struct circuit_view *v, const struct daemon_env *env, int device,
		       const struct apply_device *a)
{
	int n = a->snap.n_xcs;
	struct optics_xc *xcs = x_new((size_t)n + 1, sizeof(*xcs));
	struct circuit_signal *signals = x_new((size_t)n + 1, sizeof(*signals));
	struct apply_circuit circuit;
	struct apply_loss loss;

	v->memory = signals;
	for (int i = 0; i < n; i++) {
		xcs[i] = a->snap.xcs[i].xc;
	}
	msg_circuits_init(&v->circuits, apply_fabric(env->apply), device, xcs, n);
	for (int i = 0; i < n; i++) {
		const struct drv_xc *x = &a->snap.xcs[i];

		apply_loss(env->apply, device, x, &loss);
		circuit = apply_circuit(env->apply, device, x->xc);
		fill(&signals[i], x, &loss, circuit);
		v->circuits.v[i]->since_at_ns = circuit.since_ns;
		v->circuits.v[i]->owner = (char *)x->owner;
		v->circuits.v[i]->signal = &signals[i].m;
	}
	free(xcs);
}

void circuit_view_fini(struct circuit_view *v)
{
	msg_circuits_fini(&v->circuits);
	free(v->memory);
}
