/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optical power at receivers, before anything is connected.
 *
 * A lightpath loses what its fibres and circuits lose: as measured by the maker
 * of the device, as learned from the same circuit while it was well, or as the
 * fabric says. What arrives is computed from the power that is measured at the
 * first switch and from what the host launches; the worse of both must be
 * within what the receiver needs and stands. Paths with an amplifier are
 * checked only where both ends are known.
 */
#include <stdio.h>
#include <stdlib.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/units.h"

const char *plan_source_name(enum plan_source s)
{
	static const char *const names[] = { "configured", "learned",
					     "factory" };

	return names[s];
}

/* ---- the path of the light ------------------------------------------------ */

static int by_loss(const void *xc, const void *known)
{
	return optics_xc_cmp(xc, &((const struct plan_known_loss *)known)->xc);
}

/* What is known best: measured here, else by the maker, else as written. */
static struct plan_element circuit(const struct plan_ctx *ctx, int device, struct optics_xc xc)
{
	const struct plan_light *seen = plan_observed(ctx, device);
	const struct plan_known_loss *l = seen->n_losses ?
		bsearch(&xc, seen->losses, (size_t)seen->n_losses,
			sizeof(*l), by_loss) : NULL;

	return (struct plan_element){
		.device = device, .xc = xc,
		.loss_mdb = l ? l->mdb : ctx->fabric->devices[device].loss_mdb,
		.source = l ? l->source : PLAN_CONFIGURED,
	};
}

/* The fibre from an output to another switch, or NULL. O(trunks). */
static const struct model_trunk *trunk_from(const struct model_fabric *f, int device, int port)
{
	for (int i = 0; i < f->n_trunks; i++) {
		if (f->trunks[i].from_device == device && f->trunks[i].from_port == port) {
			return &f->trunks[i];
		}
	}
	return NULL;
}

/* The next element of the path; elements has room for 2n + 1. */
static void put(struct plan_path *p, struct plan_element e)
{
	p->elements[p->n_elements++] = e;
	p->loss_mdb += e.loss_mdb;
}

static void put_fibre(struct plan_path *p, int32_t loss_mdb, bool amplified)
{
	put(p, (struct plan_element){ .device = -1, .loss_mdb = loss_mdb });
	p->amplified |= amplified;
}

/* Of the n circuits of an arc, the one that light enters here. An any-to-any
 * switch is the only one of its arcs. */
static const struct plan_circuit *enters(const struct plan_circuit *const *v,
					 int n, int device, int port)
{
	for (int i = 0; i < n; i++) {
		if (n == 1 || (v[i]->device == device && v[i]->xc.in == port)) {
			return v[i];
		}
	}
	return NULL;
}

/* All that a signal passes, in order: of n circuits there are n + 1 fibres
 * around them. */
static void find_elements(const struct plan_ctx *ctx, const struct plan_circuit *const *v, int n,
			  struct plan_path *p)
{
	const struct model_fabric *f = ctx->fabric;
	const struct model_port *tx = &f->ports[p->tx_port];
	const struct model_port *rx = &f->ports[p->rx_port];
	int device = tx->tx_device, port = tx->tx_port;

	p->elements = x_new(2 * (size_t)n + 1, sizeof(*p->elements));
	put_fibre(p, tx->tx_loss_mdb, tx->tx_amplified);
	for (int i = 0; i < n; i++) {
		const struct plan_circuit *c = enters(v, n, device, port);
		const struct model_trunk *t = NULL;

		if (c) {
			put(p, circuit(ctx, device, c->xc));
			t = trunk_from(f, device, c->xc.out);
		}
		if (t && i + 1 < n) {
			put_fibre(p, t->loss_mdb, t->amplified);
			device = t->to_device;
			port = t->to_port;
		}
	}
	put_fibre(p, rx->rx_loss_mdb, rx->rx_amplified);
}

/* ---- the power ----------------------------------------------------------- */

static int by_input(const void *in, const void *known)
{
	return *(const int *)in - ((const struct plan_known_power *)known)->in;
}

static const struct plan_known_power *measured_at(const struct plan_ctx *ctx,
						  const struct model_port *tx)
{
	const struct plan_light *seen = plan_observed(ctx, tx->tx_device);

	return seen->n_powers ? bsearch(&tx->tx_port, seen->powers, (size_t)seen->n_powers,
					sizeof(*seen->powers), by_input) : NULL;
}

bool plan_power_in(const struct plan_ctx *ctx, int port, int32_t *mdbm)
{
	const struct model_port *tx = &ctx->fabric->ports[port];
	const struct model_host *host = &ctx->fabric->hosts[tx->host];
	const struct plan_known_power *m = tx->tx_device < 0 ? NULL : measured_at(ctx, tx);
	bool is_lit = m && m->mdbm > PLAN_DARK_MDBM;

	*mdbm = host->has_launch ? host->launch_mdbm - tx->tx_loss_mdb : INT32_MAX;
	*mdbm = is_lit && m->mdbm < *mdbm ? m->mdbm : *mdbm;
	return host->has_launch || is_lit;
}

bool plan_power_needed(const struct plan_ctx *ctx, int port, int32_t *mdbm)
{
	const struct model_port *rx = &ctx->fabric->ports[port];
	const struct model_host *host = &ctx->fabric->hosts[rx->host];

	*mdbm = host->receive_min_mdbm + rx->rx_loss_mdb;
	return host->has_receive_min;
}

/* The least and the most power at the receiver, by the launch and by the
 * measurement, as far as they are known. A dark input tells nothing of either.
 * */
static void find_power(const struct plan_ctx *ctx, struct plan_path *p)
{
	const struct model_port *tx = &ctx->fabric->ports[p->tx_port];
	const struct model_host *host = &ctx->fabric->hosts[tx->host];
	const struct plan_known_power *m = measured_at(ctx, tx);
	int64_t rest = p->loss_mdb - tx->tx_loss_mdb;
	int64_t least = INT64_MAX, most = INT64_MIN;

	if (host->has_launch) {
		p->has_launch = true;
		p->launched_mdbm = host->launch_mdbm - tx->tx_loss_mdb;
		least = most = p->launched_mdbm - rest;
	}
	if (m) {
		p->has_measured = true;
		p->measured_mdbm = m->mdbm;
		p->is_dark = m->mdbm <= PLAN_DARK_MDBM;
	}
	if (m && !p->is_dark) {
		int64_t power = m->mdbm - rest;

		least = power < least ? power : least;
		most = power > most ? power : most;
	}
	p->has_power = least <= most;
	if (p->has_power) {
		p->min_mdbm = least;
		p->max_mdbm = most;
	}
}

/* ---- the check ----------------------------------------------------------- */

static int refuse_unknown(const struct model_fabric *f, const struct plan_path *p, struct err *err)
{
	const struct model_port *tx = &f->ports[p->tx_port];
	const struct model_port *rx = &f->ports[p->rx_port];

	err_set(err, WEFT_EINFEASIBLE, "%s -> %s: an amplifier leads into a "
		"receiver, and %s is not known", tx->name, rx->name,
		p->has_power ? "the most power that it stands" :
			       "what is launched");
	err_hint(err, "%s of host %s says it",
		 p->has_power ? "receive-max" : "launch",
		 f->hosts[p->has_power ? rx->host : tx->host].name);
	return WEFT_EINFEASIBLE;
}

/* What is known of the light as it enters: first what `by_measure` says. */
static void describe_power(const struct model_fabric *f, const struct plan_path *p, bool by_measure,
			   char *out, size_t size)
{
	const struct model_port *tx = &f->ports[p->tx_port];
	char sent[40], found[CONF_MAX_NAME + 60], dbm[32];
	bool both = p->has_launch && p->has_measured && !p->is_dark;

	unit_str(UNIT_MDBM, f->hosts[tx->host].launch_mdbm, dbm, sizeof(dbm));
	snprintf(sent, sizeof(sent), "%s launched", dbm);
	unit_str(UNIT_MDBM, p->measured_mdbm, dbm, sizeof(dbm));
	snprintf(found, sizeof(found), "%s measured at %s in %d", dbm,
		 f->devices[tx->tx_device].name, tx->tx_port + 1);
	snprintf(out, size, "%s%s%s%s", by_measure ? found : sent,
		 both ? " (" : "", !both ? "" : by_measure ? sent : found,
		 both ? ")" : "");
}

static int refuse_power(const struct model_fabric *f, const struct plan_path *p, int64_t power,
			int64_t limit, const char *bound, struct err *err)
{
	int64_t loss = p->loss_mdb;
	int64_t rest = loss - f->ports[p->tx_port].tx_loss_mdb;
	bool by_measure = p->has_measured && !p->is_dark && power == p->measured_mdbm - rest;
	char source[200], change[32], got[32], lim[32];

	loss = by_measure ? rest : loss;
	describe_power(f, p, by_measure, source, sizeof(source));
	unit_str(UNIT_MDB, loss < 0 ? -loss : loss, change, sizeof(change));
	unit_str(UNIT_MDBM, power, got, sizeof(got));
	unit_str(UNIT_MDBM, limit, lim, sizeof(lim));
	return err_set(err, WEFT_EINFEASIBLE, "%s -> %s: %s, %s %s %s: %s "
		       "would reach the receiver, %s is the %s",
		       f->ports[p->tx_port].name, f->ports[p->rx_port].name,
		       source, change, loss < 0 ? "gained" : "lost",
		       by_measure ? "from there on" : "on the way", got, lim,
		       bound);
}

/* Against what the receiver needs and stands. A rollback goes back to what once
 * was, even if that is too little by now. */
static int check_path(const struct plan_ctx *ctx, const struct plan_path *p, struct err *err)
{
	const struct model_fabric *f = ctx->fabric;
	const struct model_host *to = &f->hosts[f->ports[p->rx_port].host];

	if (p->amplified && !(p->has_power && to->has_receive_max)) {
		return refuse_unknown(f, p, err);
	}
	if (!p->has_power) {
		return 0;
	}
	if (to->has_receive_max && p->max_mdbm > to->receive_max_mdbm) {
		return refuse_power(f, p, p->max_mdbm, to->receive_max_mdbm, "most", err);
	}
	if (to->has_receive_min && p->min_mdbm < to->receive_min_mdbm && !ctx->base->is_rollback) {
		return refuse_power(f, p, p->min_mdbm, to->receive_min_mdbm, "least", err);
	}
	return 0;
}

/* ---- all of a job -------------------------------------------------------- */

static int by_arc(const void *a, const void *b)
{
	const struct plan_circuit *x = *(const struct plan_circuit *const *)a;
	const struct plan_circuit *y = *(const struct plan_circuit *const *)b;

	return x->arc != y->arc ? (x->arc > y->arc) - (x->arc < y->arc) : (x > y) - (x < y);
}

/* Paths all of whose circuits stay have light already and are not checked. */
static bool any_moved(const struct plan_circuit *const *v, int n)
{
	for (int i = 0; i < n; i++) {
		if (v[i]->moved) {
			return true;
		}
	}
	return false;
}

/* One lightpath, from the n circuits of its arc. */
static int add_path(const struct plan_ctx *ctx, struct plan_job *pj,
		    const struct plan_circuit *const *v, int n, struct err *err)
{
	struct plan_path *p = &pj->paths[pj->n_paths++];

	*p = (struct plan_path){ .arc = v[0]->arc, .tx_port = v[0]->tx_port,
				 .rx_port = v[0]->rx_port };
	find_elements(ctx, v, n, p);
	find_power(ctx, p);
	return check_path(ctx, p, err);
}

int plan_check_power(const struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	size_t n = (size_t)pj->n_circuits;
	const struct plan_circuit **v = x_new(n + 1, sizeof(*v));
	int rc = 0;

	plan_paths_free(pj);
	pj->paths = x_new(n + 1, sizeof(*pj->paths));
	for (size_t i = 0; i < n; i++) {
		v[i] = &pj->circuits[i];
	}
	qsort(v, n, sizeof(*v), by_arc);
	for (size_t i = 0, end; i < n && rc == 0; i = end) {
		for (end = i + 1; end < n && v[end]->arc == v[i]->arc; end++) {
		}
		if (any_moved(v + i, (int)(end - i))) {
			rc = add_path(ctx, pj, v + i, (int)(end - i), err);
		}
	}
	free(v);
	return rc;
}

/* ---- doubts -------------------------------------------------------------- */

bool plan_power_doubt(const struct model_fabric *f, const struct plan_path *p,
		      char *text, size_t size)
{
	const struct model_port *tx = &f->ports[p->tx_port];
	int64_t more = (int64_t)p->launched_mdbm - p->measured_mdbm;
	char said[32], found[32];

	if (!p->has_launch || !p->has_measured || (llabs(more) <= PLAN_DOUBT_MDB && !p->is_dark)) {
		return false;
	}
	unit_str(UNIT_MDBM, p->launched_mdbm, said, sizeof(said));
	unit_str(UNIT_MDBM, p->measured_mdbm, found, sizeof(found));
	snprintf(text, size, "%s: %s should arrive at %s in %d, %s%s", tx->name,
		 said, f->devices[tx->tx_device].name, tx->tx_port + 1,
		 p->is_dark ? "and no light does" : found,
		 p->is_dark ? "" : " is measured");
	return true;
}

void plan_warn_power(struct plan *p)
{
	char text[PLAN_DOUBT_TEXT];

	for (int i = 0; i < p->n_jobs; i++) {
		const struct plan_job *pj = &p->jobs[i];

		for (int k = 0; k < pj->n_paths; k++) {
			if (plan_power_doubt(p->fabric, &pj->paths[k], text, sizeof(text))) {
				plan_warn(p, "%s", text);
			}
		}
	}
}

/* ---- again --------------------------------------------------------------- */

static int recheck_path(const struct plan_ctx *ctx, struct plan_path *p, struct err *err)
{
	p->has_launch = p->has_measured = p->is_dark = false;
	find_power(ctx, p);
	return check_path(ctx, p, err);
}

int plan_recheck_power(struct plan *p, const struct plan_base *base, struct err *err)
{
	const struct plan_ctx ctx = { .fabric = p->fabric, .base = base };
	int rc = 0;

	for (int i = 0; i < p->n_jobs; i++) {
		struct plan_job *pj = &p->jobs[i];

		for (int k = 0; k < pj->n_paths && rc == 0; k++) {
			rc = recheck_path(&ctx, &pj->paths[k], err);
			if (rc) {
				err_wrap(err, "job %s", p->fabric->jobs[pj->job].name);
			}
		}
	}
	return rc;
}
