/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft schedule verify, cost and show, and what every command prints of a
 * schedule.
 *
 * A schedule from a file or from weftd is never believed: verify and cost
 * replay it (coll_verify), which measures its steps and its bandwidth factor
 * besides. verify prints a wrong schedule with its fault and then fails with
 * WEFT_EVERIFY, so that a script gets the reason from the JSON as well as
 * from the exit code.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/make/make.h"
#include "collective/tree/tree.h"
#include "controller/cli/core/private.h"
#include "controller/cli/schedules/programs.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/err.h"

/* Room for a fraction in digits; rat_str() cuts longer ones. */
#define FRACTION 256

/* Exact, as "p/q". */
static void out_fraction(struct out *o, const char *key, const mpq_t q)
{
	char text[FRACTION];

	out_str(o, key, rat_str(q, text, sizeof(text)));
}

void cli_out_schedule(struct out *o, const struct coll_sched *s)
{
	out_str(o, "collective", coll_kind_name(coll_kind_of(s)));
	out_str(o, "topology", coll_topo_name(s));
	if (coll_is_embedded(s)) {
		out_str(o, "physical", coll_physical_name(s));
		out_str(o, "routing", coll_routing_name(coll_routing(s)));
		out_int(o, "routes", coll_n_arc_routes(s));
	}
	out_int(o, "nodes", coll_ranks(s));
	out_int(o, "chunks", coll_chunks(s));
	out_int(o, "ports", coll_ports(s));
	if (coll_has_root(coll_kind_of(s))) {
		out_int(o, "root", coll_root(s));
	}
	out_int(o, "steps", coll_steps(s));
	if (coll_group(s)) {
		out_int(o, "group_order", topo_group_order(coll_group(s)));
	}
	if (coll_is_alike(s)) {
		out_bool(o, "alike", true);
	}
}

int cli_replay(const struct coll_sched *s, struct coll_report *r, struct err *err)
{
	int rc = coll_verify(s, r, err);

	if (rc == 0) {
		coll_raise_bound(s, r);
	}
	return rc;
}

void cli_out_replay(const struct cli *c, struct out *o, const struct coll_sched *s,
		    const struct coll_report *r)
{
	double loss = coll_uneven_loss(s, r);

	out_int(o, "transfers", r->transfers);
	out_int(o, "chunk_hops", r->chunk_hops);
	out_fraction(o, "bandwidth_factor", r->bandwidth_factor);
	out_fraction(o, "bandwidth_bound", r->bandwidth_bound);
	if (loss > 0) {
		cli_out_gap(c, o, "uneven_loss", loss);
	}
	out_bool(o, "bandwidth_optimal", r->bandwidth_optimal);
}

int cli_opt_kind(const struct cli *c, enum coll_kind *kind, struct err *err)
{
	const char *name = cli_opt(c, "collective");
	struct nearest near;

	if (!name || coll_kind_parse(name, kind, err) == 0) {
		return 0;
	}
	err_wrap(err, "--collective");
	nearest_init(&near, name);
	for (int k = 0; k < COLL_KINDS; k++) {
		nearest_try(&near, coll_kind_name(k));
	}
	nearest_hint(&near, err);
	return err->code = WEFT_EUSAGE;
}

/* ---- cost ---- */

int cli_opt_forward(const struct cli *c, bool *yes, bool *no, struct err *err)
{
	const char *text = cli_opt(c, "forward");

	*yes = text && strcmp(text, "yes") == 0;
	*no = text && strcmp(text, "no") == 0;
	if (text && !*yes && !*no) {
		return err_set(err, WEFT_EUSAGE, "--forward %s: expected no or yes", text);
	}
	return *no && cli_has(c, "hop")
		       ? err_set(err, WEFT_EUSAGE, "--forward no does not go with --hop, the time "
				 "of what passes a node") : 0;
}

int cli_read_latency(const struct cli *c, struct coll_cost *given, struct err *err)
{
	bool no;
	int r = cli_opt_forward(c, &given->forwards, &no, err);

	if (r || (r = cli_opt_unit(c, "alpha", UNIT_NS, &given->alpha_ns, err))) {
		return r;
	}
	return cli_opt_unit(c, "hop", UNIT_NS, &given->hop_ns, err);
}

int cli_read_cost(const struct cli *c, const struct coll_sched *s, int64_t size,
		  struct coll_cost *cost, struct err *err)
{
	int64_t node_bps = 0;
	int r = 0;

	memset(cost, 0, sizeof(*cost));
	cost->size_bytes = size;
	if (size > 0 && cli_has(c, "size")) {
		return err_set(err, WEFT_EUSAGE, "--size: the demands are sizes already");
	}
	if (cli_has(c, "bandwidth") == cli_has(c, "link-bandwidth")) {
		return err_set(err, WEFT_EUSAGE, cli_has(c, "bandwidth")
			       ? "weft %s: --bandwidth of a node and "
				 "--link-bandwidth: only one of them"
			       : "weft %s: for a time, --bandwidth of a node "
				 "or --link-bandwidth is missing", c->verb);
	}
	if ((r = cli_need(c, "alpha", err)) ||
	    (size == 0 && (r = cli_need(c, "size", err))) ||
	    (r = cli_read_latency(c, cost, err)) ||
	    (r = cli_opt_unit(c, "size", UNIT_BYTES, &cost->size_bytes,
			      err)) ||
	    (r = cli_opt_unit(c, "bandwidth", UNIT_BPS, &node_bps, err)) ||
	    (r = cli_opt_unit(c, "link-bandwidth", UNIT_BPS, &cost->link_bps, err)) ||
	    (r = cli_opt_unit(c, "message", UNIT_NS, &cost->message_ns, err))) {
		return r;
	}
	if (node_bps > 0) {
		cost->link_bps = node_bps / coll_ports(s);
	}
	if (cost->link_bps < 1) {
		return err_set(err, WEFT_EUSAGE,
			       "weft %s: the bandwidth is less than 1 bit/s a "
			       "port", c->verb);
	}
	if (coll_through_ranks(s) && cli_has(c, "forward") && !cost->forwards) {
		return err_set(err, WEFT_EUSAGE, "--forward no: messages of this schedule go "
			       "through other ranks");
	}
	*cost = coll_cost_of(*cost);
	return 0;
}

int cli_out_cost(const struct cli *c, struct out *o, const struct coll_sched *s,
		 const struct coll_report *rep, const struct coll_cost *cost, struct err *err)
{
	struct coll_light_change light;
	int64_t time_ns, bound_ns, fixed;
	int r;

	if ((r = coll_time(s, rep, cost, &time_ns, &bound_ns, err))) {
		return r;
	}
	coll_light_changes(s, &light);
	fixed = rep->steps * cost->alpha_ns + light.steps * cost->retune_ns;
	cli_out_ns(c, o, "alpha", cost->alpha_ns);
	cli_out_ns(c, o, "hop", cost->hop_ns);
	out_bool(o, "forward", cost->forwards || coll_through_ranks(s));
	cli_out_ns(c, o, "message", cost->message_ns);
	if (light.steps > 0) {
		out_int(o, "light_changes", light.steps);
		cli_out_ns(c, o, "retune", cost->retune_ns);
	}
	out_int(o, "link_bps", cost->link_bps);
	out_int(o, "size_bytes", cost->size_bytes);
	cli_out_ns(c, o, "time", time_ns);
	/* T_L of the papers, and T_B. */
	cli_out_ns(c, o, "latency_time", fixed);
	cli_out_ns(c, o, "bandwidth_time", time_ns - fixed);
	cli_out_ns(c, o, "bound", bound_ns);
	cli_out_gap(c, o, "gap", bound_ns > 0 ? (double)time_ns / (double)bound_ns - 1 : 0);
	return 0;
}

/* The schedule, its replay, and its time against the bound. */
int cmd_schedule_cost(struct cli *c, struct err *err)
{
	struct coll_sched *s = NULL;
	struct coll_report rep;
	struct coll_cost cost;
	struct out *o = NULL;
	int r = cli_load_schedule(c, &s, err);

	coll_report_init(&rep);
	if (r || (r = cli_read_cost(c, s, 0, &cost, err)) ||
	    (r = cli_opt_unit(c, "retune", UNIT_NS, &cost.retune_ns, err)) ||
	    (r = cli_replay(s, &rep, err))) {
		goto out;
	}
	o = out_new(c->format);
	cli_out_schedule(o, s);
	cli_out_replay(c, o, s, &rep);
	r = cli_out_cost(c, o, s, &rep, &cost, err);
	r = cli_print_unless(r, o, err);
out:
	coll_report_fini(&rep);
	coll_free(s);
	return r;
}

/* ---- verify ---- */

/* {valid, collective, ..., then fault or the replay's figures}. */
int cmd_schedule_verify(struct cli *c, struct err *err)
{
	struct coll_sched *s = NULL;
	struct coll_report rep;
	struct out *o;
	struct err fault = { 0 };
	int r, bad;

	if (c->argc == 1 && !cli_has(c, "job") && cli_is_folder(c->argv[0])) {
		return cli_verify_step(c, c->argv[0], err);
	}
	if ((r = cli_load_schedule(c, &s, err))) {
		return r;
	}
	coll_report_init(&rep);
	bad = cli_replay(s, &rep, &fault);
	if (bad && bad != WEFT_EVERIFY) {
		*err = fault;
		r = bad;
		goto out;
	}
	o = out_new(c->format);
	out_bool(o, "valid", bad == 0);
	cli_out_schedule(o, s);
	if (bad) {
		out_str(o, "fault", fault.msg);
	} else {
		cli_out_replay(c, o, s, &rep);
	}
	r = cli_print(o, err);
	if (r == 0 && bad) {
		*err = fault;
		r = bad;
	}
out:
	coll_report_fini(&rep);
	coll_free(s);
	return r;
}

/* ---- show ---- */

/* "transfers" of one step, counted from 1, or (0) of all: [{step, from, to,
 * arc, shard, destination, first_chunk, last_chunk, op, sum_of}]; destination only of
 * all-to-all, sum_of (null for a copy) only where sums are forwarded. */
static void out_transfers(struct out *o, const struct coll_sched *s, int64_t step)
{
	static const char *const ops[] = { "copy", "reduce", "forward" };
	const struct topo *t = coll_topo(s);
	const struct coll_xfer *x;
	int64_t n;

	x = coll_xfers(s, &n);
	out_array(o, "transfers");
	for (int64_t i = 0; i < n; i++) {
		const struct topo_arc *a = topo_arc(t, x[i].arc);

		if (step > 0 && x[i].step + 1 != step) {
			continue;
		}
		out_object(o, NULL);
		out_int(o, "step", x[i].step + 1);
		out_int(o, "from", a->src);
		out_int(o, "to", a->dst);
		out_int(o, "arc", x[i].arc);
		out_int(o, "shard", x[i].origin);
		if (coll_kind_of(s) == COLL_ALLTOALL) {
			out_int(o, "destination", x[i].dest);
		}
		out_int(o, "first_chunk", x[i].first);
		out_int(o, "last_chunk", x[i].last);
		out_str(o, "op", ops[x[i].op]);
		if (coll_forwards(s) && x[i].op == COLL_OP_COPY) {
			out_null(o, "sum_of");
		} else if (coll_forwards(s)) {
			out_int(o, "sum_of", x[i].op == COLL_OP_FORWARD ? x[i].dest : a->src);
		}
		if (coll_merges(s) && x[i].kept) {
			out_int(o, "kept_as", x[i].kept - 1);
		} else if (coll_merges(s)) {
			out_null(o, "kept_as");
		}
		out_end(o);
	}
	out_end(o);
}

/* The transfers x[0..n) of one step, all that they stand for; seen: by orbit of arcs,
 * the last step that used it. */
static void out_step(struct out *o, const struct coll_sched *s, const struct coll_xfer *x,
		     int64_t n, const struct topo_action *orbits, int32_t *seen)
{
	int64_t images = coll_is_alike(s) ? coll_ranks(s) : topo_group_order(coll_group(s));
	int64_t chunks = 0, arcs = 0;

	for (int64_t i = 0; i < n; i++) {
		int orbit = topo_action_orbit(orbits, x[i].arc);
		bool joined = i > 0 && x[i].kept && x[i].kept == x[i - 1].kept &&
			      x[i].arc == x[i - 1].arc && x[i].origin == x[i - 1].origin &&
			      x[i].first == x[i - 1].first;

		chunks += joined ? 0 : x[i].last - x[i].first + 1;
		arcs += seen[orbit] != x[i].step + 1 ? topo_action_size(orbits, orbit) : 0;
		seen[orbit] = x[i].step + 1;
	}
	out_object(o, NULL);
	out_int(o, "step", x[0].step + 1);
	out_int(o, "transfers", n * images);
	out_int(o, "chunks", chunks * images);
	out_int(o, "arcs", arcs);
	out_end(o);
}

/* "step_summary": a row a step, with its transfers, the chunks that it moves
 * and the arcs in use. */
static int out_steps(struct out *o, const struct coll_sched *s, struct err *err)
{
	struct topo_action *orbits;
	int32_t *seen = x_new((size_t)topo_m(coll_topo(s)) + 1, sizeof(*seen));
	int64_t n, end;
	const struct coll_xfer *x = coll_xfers(s, &n);
	int r = topo_action_new(coll_topo(s), coll_group(s), &orbits, err);

	if (r) {
		free(seen);
		return r;
	}
	out_array(o, "step_summary");
	for (int64_t i = 0; i < n; i = end) {
		for (end = i; end < n && x[end].step == x[i].step; end++) {
		}
		out_step(o, s, x + i, end - i, orbits, seen);
	}
	out_end(o);
	topo_action_free(orbits);
	free(seen);
	return 0;
}

/* Transfers of --step or, with --full, all, written out. */
static int out_wanted_transfers(const struct cli *c, struct out *o, const struct coll_sched *s,
				int64_t step, struct err *err)
{
	const struct coll_sched *flat;
	struct coll_sched *own = NULL;
	int r = 0;

	if (step == 0 && !cli_has(c, "full")) {
		return 0;
	}
	r = coll_flat(s, &flat, &own, err);
	if (r == 0) {
		out_transfers(o, flat, step);
	}
	coll_free(own);
	return r;
}

/* "ranks": where each is, and "arcs": the ports of their light. */
static void out_placement(struct out *o, const struct coll_sched *s)
{
	const struct coll_placement *p = coll_placement(s);
	const struct topo *t = coll_physical(s);

	out_array(o, "ranks");
	for (int r = 0; r < coll_ranks(s); r++) {
		out_object(o, NULL);
		out_int(o, "rank", r);
		out_str(o, "host", p->hosts[r]);
		if (p->netns) {
			out_str(o, "netns", p->netns[r]);
		}
		if (p->ring_nodes) {
			out_int(o, "ring_node", p->ring_nodes[r]);
		}
		out_end(o);
	}
	out_end(o);
	if (!p->tx_ports) {
		return;
	}
	out_array(o, "arcs");
	for (int a = 0; a < topo_m(t); a++) {
		if (p->tx_ports[a][0]) {
			out_object(o, NULL);
			out_int(o, "arc", a);
			out_int(o, "from", topo_arc(t, a)->src);
			out_int(o, "to", topo_arc(t, a)->dst);
			out_str(o, "tx_port", p->tx_ports[a]);
			out_str(o, "rx_port", p->rx_ports[a]);
			out_end(o);
		}
	}
	out_end(o);
}

/* The summary of steps; transfers only of --step or with --full, as there are
 * many. */
int cmd_schedule_show(struct cli *c, struct err *err)
{
	struct coll_sched *s = NULL;
	struct out *o = NULL;
	int64_t step = 0;
	int r = cli_load_schedule(c, &s, err);

	if (r || (r = cli_opt_int(c, "step", 1, coll_steps(s), &step, err))) {
		goto out;
	}
	o = out_new(c->format);
	cli_out_schedule(o, s);
	if (coll_placement(s)) {
		out_placement(o, s);
	}
	if ((r = out_steps(o, s, err)) == 0) {
		r = out_wanted_transfers(c, o, s, step, err);
	}
	r = cli_print_unless(r, o, err);
out:
	coll_free(s);
	return r;
}
