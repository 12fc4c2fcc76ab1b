/* Optical power at receivers, before anything is connected. */
#include <stdlib.h>

#include "controller/plan/plan_private.h"
#include "lib/base/units.h"

/* The circuit's light goes on into an amplified fibre between switches. */
static bool leaves_amplified(const struct model_fabric *f,
			     const struct plan_circuit *c)
{
	if (f->devices[c->device].out_port[c->xc.out] != MODEL_AT_TRUNK) {
		return false;
	}
	for (int i = 0; i < f->n_trunks; i++) {
		const struct model_trunk *t = &f->trunks[i];

		if (t->from_device == c->device && t->from_port == c->xc.out) {
			return t->amplified;
		}
	}
	return false;
}

static int refuse_unknown(const struct model_fabric *f,
			  const struct plan_circuit *c, struct err *err)
{
	const struct model_port *tx = &f->ports[c->tx_port];
	const struct model_port *rx = &f->ports[c->rx_port];
	bool launch = f->hosts[tx->host].has_launch;

	err_set(err, WEFT_EINFEASIBLE, "%s -> %s: an amplifier leads into a "
		"receiver, and %s is not known", tx->name, rx->name,
		launch ? "the most power that it stands" : "what is launched");
	err_hint(err, "%s of host %s says it", launch ? "receive-max" : "launch",
		 f->hosts[launch ? rx->host : tx->host].name);
	return WEFT_EINFEASIBLE;
}

static int refuse_power(const struct model_fabric *f,
			const struct plan_circuit *c, int64_t limit,
			const char *bound, struct err *err)
{
	const struct model_port *tx = &f->ports[c->tx_port];
	const struct model_port *rx = &f->ports[c->rx_port];
	int64_t launch = f->hosts[tx->host].launch_mdbm, loss = c->loss_mdb;
	char sent[32], way[32], got[32], lim[32];

	unit_str(UNIT_MDBM, launch, sent, sizeof(sent));
	unit_str(UNIT_MDB, loss < 0 ? -loss : loss, way, sizeof(way));
	unit_str(UNIT_MDBM, launch - loss, got, sizeof(got));
	unit_str(UNIT_MDBM, limit, lim, sizeof(lim));
	return err_set(err, WEFT_EINFEASIBLE, "%s -> %s: %s launched, %s %s on "
		       "the way: %s would reach the receiver, %s is the %s",
		       tx->name, rx->name, sent, way,
		       loss < 0 ? "gained" : "lost", got, lim, bound);
}

static int check_circuit(const struct model_fabric *f,
			 const struct plan_circuit *c, bool amplified,
			 struct err *err)
{
	const struct model_host *from = &f->hosts[f->ports[c->tx_port].host];
	const struct model_host *to = &f->hosts[f->ports[c->rx_port].host];
	int64_t power = (int64_t)from->launch_mdbm - c->loss_mdb;

	if (amplified && !(from->has_launch && to->has_receive_max)) {
		return refuse_unknown(f, c, err);
	}
	if (!from->has_launch) {
		return 0;
	}
	if (to->has_receive_max && power > to->receive_max_mdbm) {
		return refuse_power(f, c, to->receive_max_mdbm, "most", err);
	}
	if (to->has_receive_min && power < to->receive_min_mdbm) {
		return refuse_power(f, c, to->receive_min_mdbm, "least", err);
	}
	return 0;
}

static int count_arcs(const struct plan_job *pj)
{
	int n = 0;

	for (int i = 0; i < pj->n_circuits; i++) {
		n = pj->circuits[i].arc >= n ? pj->circuits[i].arc + 1 : n;
	}
	return n;
}

int plan_check_power(const struct plan_ctx *ctx, const struct plan_job *pj,
		     struct err *err)
{
	const struct model_fabric *f = ctx->fabric;
	bool *amplified = calloc((size_t)count_arcs(pj) + 1,
				 sizeof(*amplified));
	int rc = amplified ? 0 : err_nomem(err);

	for (int i = 0; i < pj->n_circuits && rc == 0; i++) {
		const struct plan_circuit *c = &pj->circuits[i];

		amplified[c->arc] |= f->ports[c->tx_port].tx_amplified ||
				     f->ports[c->rx_port].rx_amplified ||
				     leaves_amplified(f, c);
	}
	for (int i = 0; i < pj->n_circuits && rc == 0; i++) {
		const struct plan_circuit *c = &pj->circuits[i];

		if (c->moved) {
			rc = check_circuit(f, c, amplified[c->arc], err);
		}
	}
	free(amplified);
	return rc;
}
