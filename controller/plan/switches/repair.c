/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that cannot have all of its light back, circuit by circuit.
 *
 * It was planned as it was made, so that each arc has the circuits of the intent. What is
 * dead and can be made is made again, where it was or at a spare port of the same host on the
 * same switch. What cannot be stays wanted, and dark: so the design is known as long as the
 * job runs, and is whole again once the port is. So it is with a new job of a given topology,
 * and with another light of a step, where ports have failed. Of an arc over several switches
 * nothing is made while a part of it cannot be.
 */
#include <stdlib.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"

struct repair {
	const struct plan_ctx *ctx;
	struct plan_job *pj;
	bool *tx_used, *rx_used;	/* [ports of the fabric] by circuits of the job */
	bool *hopeless;			/* [arcs] a circuit of it cannot be made */
	bool is_new;			/* nothing of it was ever made */
	bool refused;			/* and more than failed ports stands against it */
};

/* Whether a port of the device may get a circuit now; failed: or would if it worked. */
static bool is_open(const struct plan_ctx *ctx, int device, bool in, int port, bool failed)
{
	struct plan_light works = *plan_observed(ctx, device);
	const struct plan_light *seen = &works;
	bool either = ctx->fabric->devices[device].any_to_any;

	for (int i = 0; i < seen->n_xcs && ctx->base->mode == PLAN_SAFE; i++) {
		struct optics_xc xc = seen->xcs[i];

		if (((in || either) && xc.in == port) || ((!in || either) && xc.out == port)) {
			if (plan_is_external(ctx, device, xc)) {
				return false;
			}
		}
	}
	if (failed) {
		works.n_bad_in = works.n_bad_out = 0;
	}
	return plan_may_light(seen, either, in, port);
}

/* Another port of the host than that at one end, on the same switch and without a circuit of
 * the job; -1: none. */
static int find_spare(const struct repair *r, const struct plan_circuit *c, bool tx)
{
	const struct model_fabric *f = r->ctx->fabric;
	const struct model_job *job = &f->jobs[r->pj->job];
	const struct model_host *h = &f->hosts[f->ports[tx ? c->tx_port : c->rx_port].host];
	bool either = f->devices[c->device].any_to_any;

	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		const struct model_port *port = &f->ports[p];

		if ((tx ? port->tx_device : port->rx_device) == c->device &&
		    plan_has_port(f, job, p) && !((tx || either) && r->tx_used[p]) &&
		    !((!tx || either) && r->rx_used[p]) &&
		    is_open(r->ctx, c->device, tx, tx ? port->tx_port : port->rx_port, false)) {
			return p;
		}
	}
	return -1;
}

/* Whether an end of the circuit is the port of the host that its arc begins or ends at. */
static bool at_host(const struct repair *r, const struct plan_circuit *c, bool tx)
{
	const struct model_port *p = &r->ctx->fabric->ports[tx ? c->tx_port : c->rx_port];
	bool either = r->ctx->fabric->devices[c->device].any_to_any;

	return tx ? p->tx_device == c->device && (either || p->tx_port == c->xc.in)
		  : p->rx_device == c->device && (either || p->rx_port == c->xc.out);
}

/* The circuit of those of the same device that carries the arc back, or NULL. */
static struct plan_circuit *reverse_of(const struct repair *r, const struct plan_circuit *c)
{
	for (int i = 0; i < r->pj->n_circuits; i++) {
		struct plan_circuit *b = &r->pj->circuits[i];

		if (b != c && b->device == c->device && optics_xc_cmp(&b->xc, &c->xc) == 0) {
			return b;
		}
	}
	return NULL;
}

/* Puts the circuit, and its way back, on these ports. */
static void move_to(struct repair *r, struct plan_circuit *c, int tx, int rx)
{
	const struct model_port *ports = r->ctx->fabric->ports;
	struct plan_circuit *back = reverse_of(r, c);
	int a = ports[tx].tx_port, b = ports[rx].rx_port;
	bool swap = r->ctx->fabric->devices[c->device].any_to_any && a > b;

	c->tx_port = tx;
	c->rx_port = rx;
	c->xc = swap ? (struct optics_xc){ b, a } : (struct optics_xc){ a, b };
	r->tx_used[tx] = r->rx_used[rx] = true;
	if (back) {
		back->tx_port = rx;
		back->rx_port = tx;
		back->xc = c->xc;
		r->tx_used[rx] = r->rx_used[tx] = true;
	}
}

/* Its ends that cannot have it move to spare ports. False: an end has none, or it is no end at a
 * host; or both are open, and another port would be no better. */
static bool use_spares(struct repair *r, struct plan_circuit *c, bool in_open, bool out_open)
{
	int tx = c->tx_port, rx = c->rx_port;

	if ((in_open && out_open) || !at_host(r, c, true) || !at_host(r, c, false) ||
	    r->ctx->fabric->jobs[r->pj->job].kind == MODEL_CIRCUITS ||
	    r->ctx->fabric->jobs[r->pj->job].shape[0]) {
		return false;
	}
	tx = in_open ? tx : find_spare(r, c, true);
	rx = out_open ? rx : find_spare(r, c, false);
	if (tx < 0 || rx < 0) {
		return false;
	}
	move_to(r, c, tx, rx);
	return true;
}

/* What is lit at an evacuated port, and has no spare, stays as it is. */
static void mark(struct repair *r, struct plan_circuit *c)
{
	const struct plan_light *seen = plan_observed(r->ctx, c->device);
	const struct model_port *ports = r->ctx->fabric->ports;
	bool either = r->ctx->fabric->devices[c->device].any_to_any;
	bool forth = !either || ports[c->tx_port].tx_port == c->xc.in;
	int in_port, out_port;
	bool in, out, died = plan_has_died(seen, c->xc);

	if (!died && !plan_must_go(seen, either, c->xc)) {
		return;
	}
	in_port = forth ? c->xc.in : c->xc.out;
	out_port = forth ? c->xc.out : c->xc.in;
	if (r->is_new && !(is_open(r->ctx, c->device, true, in_port, true) &&
			   is_open(r->ctx, c->device, false, out_port, true))) {
		r->refused = true;
	}
	in = is_open(r->ctx, c->device, true, in_port, false);
	out = is_open(r->ctx, c->device, false, out_port, false);
	if (!(in && out && !plan_is_lit(seen, c->xc)) && !use_spares(r, c, in, out) && died) {
		r->hopeless[c->arc] = true;
	}
}

static void settle(struct repair *r, struct plan_circuit *c)
{
	const struct plan_light *seen = plan_observed(r->ctx, c->device);

	c->dark = r->hopeless[c->arc];
	c->moved = !c->dark && !plan_is_lit(seen, c->xc);
}

/* All of its circuits are intended; or none is, of a job whose topology is given; or not all are,
 * of the next light of a step. */
static bool may_keep(struct repair *r)
{
	const struct model_job *job = &r->ctx->fabric->jobs[r->pj->job];
	int n = 0;

	for (int i = 0; i < r->pj->n_circuits; i++) {
		const struct plan_circuit *c = &r->pj->circuits[i];

		r->tx_used[c->tx_port] = r->rx_used[c->rx_port] = true;
		n += plan_light_has(plan_intent(r->ctx, c->device), c->xc);
	}
	r->is_new = (n == 0 && job->kind == MODEL_COLLECTIVE && job->topo) ||
		    (n < r->pj->n_circuits && job->kind == MODEL_STEP);
	return n == r->pj->n_circuits || r->is_new;
}

bool plan_keep_circuits(const struct plan_ctx *ctx, struct plan_job *pj)
{
	size_t n_ports = (size_t)ctx->fabric->n_ports + 1;
	size_t m = (size_t)topo_m(coll_physical(pj->sched)) + 1;
	struct repair r = { .ctx = ctx, .pj = pj, .tx_used = x_new(n_ports, 1),
			    .rx_used = x_new(n_ports, 1), .hopeless = x_new(m, 1) };
	bool keeps = may_keep(&r), any = false;

	for (int i = 0; i < pj->n_circuits && keeps; i++) {
		mark(&r, &pj->circuits[i]);
	}
	for (int i = 0; i < pj->n_circuits && keeps; i++) {
		settle(&r, &pj->circuits[i]);
		any = any || !pj->circuits[i].dark;
	}
	free(r.tx_used);
	free(r.rx_used);
	free(r.hopeless);
	return keeps && !(r.is_new && (r.refused || !any));
}
