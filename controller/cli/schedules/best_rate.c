/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft schedule make --rate: the best rate of any collective, the least cost at it, and what the
 * rate hangs on.
 *
 * No schedule is made: the rate is that of fluid data, by linear programs over trees
 * (collective/cost), an exact fraction with a proof. All-to-alls alone without --least-cost keep to
 * the flow of all_to_all_command.c, whose options they share. Collectives of --also run at
 * the same time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/cost/cost.h"
#include "controller/cli/core/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

#define MAX_DEMANDS 16
#define MAX_TEXT 4096

struct rate_command {
	struct coll_rate_demand demand[MAX_DEMANDS];
	int n;
	struct topo *topo;
	char *name;
	struct coll_rate rate;
};

bool cli_wants_best_rate(const struct cli *c)
{
	const char *kind = cli_opt(c, "collective");
	bool pairs = kind && strcmp(kind, coll_kind_name(COLL_ALLTOALL)) == 0;

	return cli_has(c, "also") || cli_has(c, "sensitivity") ||
	       (cli_has(c, "rate") && (cli_has(c, "least-cost") || !pairs));
}

/* ---- options ---- */

static int check_options(const struct cli *c, struct err *err)
{
	static const char *const of_schedules[] = {
		"on", "routing", "algorithm", "batches", "extra-steps", "chunks", "gap", "exact",
		"host-bandwidth", "nic-forwards", "steps", "loss", "output", "alpha", "bandwidth",
		"link-bandwidth", "size", "hop", "forward", "message", "demands", "pareto",
		"objective", NULL
	};

	if (!cli_has(c, "rate")) {
		return err_set(err, WEFT_EUSAGE, "--%s is for --rate: no schedule is made of it "
			       "in this version", cli_has(c, "also") ? "also" : "sensitivity");
	}
	return cli_refuse(c, of_schedules, "does not go with --rate, which makes no schedule",
			  err);
}

/* "KIND" or "KIND:SIZE". */
static int read_demand(const char *text, struct coll_rate_demand *d, struct err *err)
{
	char kind[32];
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);
	char *end;

	d->size = 1;
	if (colon) {
		d->size = strtoll(colon + 1, &end, 10);
		if (end == colon + 1 || *end || d->size < 1 || d->size > 1000000) {
			return err_set(err, WEFT_EUSAGE, "--also %s: expected a size of 1 to "
				       "1000000 after the colon", text);
		}
	}
	if (len >= sizeof(kind)) {
		return err_set(err, WEFT_EUSAGE, "--also %s: expected a collective", text);
	}
	memcpy(kind, text, len);
	kind[len] = '\0';
	return coll_kind_parse(kind, &d->kind, err);
}

/* --also KIND[:SIZE],... */
static int read_also(const struct cli *c, struct rate_command *m, struct err *err)
{
	char *copy, *save = NULL;
	int r = 0;

	if (!cli_has(c, "also")) {
		return 0;
	}
	copy = x_dup(cli_opt(c, "also"));
	for (char *w = strtok_r(copy, ",", &save); w && r == 0; w = strtok_r(NULL, ",", &save)) {
		r = m->n == MAX_DEMANDS
			    ? err_set(err, WEFT_EUSAGE, "--also: more than %d collectives",
				      MAX_DEMANDS - 1)
			    : read_demand(w, &m->demand[m->n], err);
		m->n++;
	}
	free(copy);
	return r;
}

static int read_roots(const struct cli *c, struct rate_command *m, struct err *err)
{
	static const char *const of_roots[] = { "root", NULL };
	bool any = false;
	int64_t root = 0;
	int r;

	for (int i = 0; i < m->n; i++) {
		any = any || coll_has_root(m->demand[i].kind);
	}
	if (!any && (r = cli_refuse(c, of_roots, "is for broadcast, reduce, gather and scatter",
				    err))) {
		return r;
	}
	r = cli_opt_int(c, "root", 0, topo_ranks(m->topo) - 1, &root, err);
	for (int i = 0; i < m->n; i++) {
		m->demand[i].root = coll_has_root(m->demand[i].kind) ? (int)root : 0;
	}
	return r;
}

static int read_command(const struct cli *c, struct rate_command *m, struct err *err)
{
	int r;

	m->n = 1;
	m->demand[0] = (struct coll_rate_demand){ COLL_ALLGATHER, 0, 1 };
	if ((r = cli_need(c, "topology", err)) || (r = cli_need(c, "collective", err)) ||
	    (r = cli_opt_kind(c, &m->demand[0].kind, err)) || (r = check_options(c, err)) ||
	    (r = read_also(c, m, err)) ||
	    (r = cli_load_topology(cli_opt(c, "topology"), &m->topo, &m->name, err))) {
		return r;
	}
	return read_roots(c, m, err);
}

/* ---- what is printed ---- */

static void out_fraction(struct out *o, const char *key, const mpq_t value)
{
	char text[MAX_TEXT];

	out_str(o, key, rat_str(value, text, sizeof(text)));
}

/* By how much a value is above its bound. */
static void out_gap(const struct cli *c, struct out *o, const char *key, const mpq_t value,
		    const mpq_t bound)
{
	mpq_t gap;

	mpq_init(gap);
	if (mpq_sgn(bound) > 0) {
		mpq_div(gap, value, bound);
		cli_out_gap(c, o, key, mpq_get_d(gap) - 1);
	} else {
		cli_out_gap(c, o, key, mpq_sgn(value) > 0 ? HUGE_VAL : 0);
	}
	mpq_clear(gap);
}

static void out_parts(struct out *o, const struct rate_command *m)
{
	out_array(o, "sensitivity");
	for (size_t i = 0; i < m->rate.parts.n; i++) {
		const struct coll_rate_part *p = &m->rate.parts.v[i];
		const struct topo_arc *a = p->arc < 0 ? NULL : topo_arc(m->topo, p->arc);

		out_object(o, NULL);
		if (a) {
			out_fmt(o, "link", "%d -> %d", a->src, a->dst);
			out_int(o, "capacity", a->cap);
		} else {
			out_fmt(o, "link", "limit %d", p->limit);
			out_int(o, "capacity", topo_limit(m->topo, p->limit)->cap);
		}
		out_int(o, "alike", p->alike);
		out_real(o, "share", p->share);
		out_end(o);
	}
	out_end(o);
}

static void out_also(struct out *o, const struct rate_command *m)
{
	if (m->n == 1) {
		return;
	}
	out_array(o, "also");
	for (int i = 1; i < m->n; i++) {
		out_object(o, NULL);
		out_str(o, "collective", coll_kind_name(m->demand[i].kind));
		out_int(o, "size", m->demand[i].size);
		out_end(o);
	}
	out_end(o);
}

/* {collective, topology, also, rate, shard_time, bound, gap, cost, cost_bound,
 * cost_gap, stopped_by, deadline_met, sensitivity: [{link, capacity, alike, share}]}, each where
 * it applies. */
static int print_rate(struct cli *c, const struct rate_command *m, struct err *err)
{
	const struct coll_rate *rate = &m->rate;
	struct out *o = out_new(c->format);
	mpq_t inverse;

	mpq_init(inverse);
	out_str(o, "collective", coll_kind_name(m->demand[0].kind));
	out_str(o, "topology", m->name);
	out_also(o, m);
	if (mpq_sgn(rate->time) > 0) {
		mpq_inv(inverse, rate->time);
		out_fraction(o, "rate", inverse);
	}
	out_fraction(o, "shard_time", rate->time);
	out_fraction(o, "bound", rate->time_bound);
	out_gap(c, o, "gap", rate->time, rate->time_bound);
	if (rate->has_cost) {
		out_fraction(o, "cost", rate->cost);
		out_fraction(o, "cost_bound", rate->cost_bound);
		out_gap(c, o, "cost_gap", rate->cost, rate->cost_bound);
	}
	if (rate->stopped) {
		out_str(o, "stopped_by", cli_interrupted ? "interrupted" : "time limit");
	}
	cli_out_deadline(o);
	if (cli_has(c, "sensitivity")) {
		out_parts(o, m);
	}
	mpq_clear(inverse);
	return cli_print(o, err);
}

int cli_best_rate(struct cli *c, struct err *err)
{
	struct rate_command m = { .n = 0 };
	struct coll_rate_options opt = {
		.min_cost = cli_has(c, "least-cost"), .cancel = &cli_interrupted,
		.sensitivity = cli_has(c, "sensitivity"),
	};
	int r;

	coll_rate_init(&m.rate);
	if ((r = read_command(c, &m, err)) ||
	    (r = cli_opt_deadline(c, &opt.deadline, err))) {
		goto out;
	}
	cli_say(c, CLI_VERBOSE, "%s on %s: %d nodes, %d arcs", coll_kind_name(m.demand[0].kind),
		m.name, topo_n(m.topo), topo_m(m.topo));
	cli_catch_signals();
	r = coll_rate_find(m.topo, m.demand, m.n, &opt, &m.rate, err);
	if (r == WEFT_EINFEASIBLE) {
		err_wrap(err, "%s", m.name);
	}
	if (r == 0) {
		cli_say(c, CLI_VERBOSE, "%d rounds, %d trees, of %d nodes and %d arcs",
			m.rate.rounds, m.rate.columns, m.rate.n, m.rate.m);
		r = print_rate(c, &m, err);
	}
out:
	coll_rate_fini(&m.rate);
	topo_free(m.topo);
	free(m.name);
	return r;
}
