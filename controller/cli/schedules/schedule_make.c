/*
 * weft schedule make: from options to a query, and what was made of it.
 *
 * Which schedules are tried and which of them is the best is one list for the command line and
 * for jobs (collective/make). Here the options are checked and read, and the figures of
 * what came out are printed. The cost is known before anything is made: a bandwidth of
 * nodes (--bandwidth) is divided by the ports of an empty schedule.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/bfb.h"
#include "collective/make/make.h"
#include "collective/schedule/schedule.h"
#include "controller/cli/core/private.h"
#include "lib/base/buf.h"

/* What is asked for and what was made. made is always initialised. */
struct make_command {
	struct coll_make_query q;	/* its pointers lead into what follows */
	struct topo *topo;		/* owned; the rest too */
	char *topology;			/* its name */
	struct coll_fabric fabric;
	struct coll_cost cost;
	struct flow_demands demands;
	struct coll_made made;		/* without a schedule with --rate */
	char *exact;			/* of struct cli_flow */
};

/* ---- options ---- */

/* --algorithm, "auto" without one. WEFT_EUNSUPPORTED when it is not for this
 * collective. */
static int choose_algorithm(const struct cli *c, struct coll_make_query *q, struct err *err)
{
	struct buf names = { 0 };
	const char *name = cli_opt(c, "algorithm"), *one;

	q->algorithm = "auto";
	if (!name || strcmp(name, "auto") == 0) {
		return 0;
	}
	for (int i = 0; (one = coll_make_algorithm(q->kind, i)); i++) {
		if (strcmp(name, one) == 0) {
			q->algorithm = one;
			buf_fini(&names);
			return 0;
		}
		buf_printf(&names, ", %s", one);
	}
	err_set(err, WEFT_EUNSUPPORTED, "--algorithm %s: not supported for %s in this version",
		name, coll_kind_name(q->kind));
	err_hint(err, "supported: auto%s", buf_cstr(&names));
	buf_fini(&names);
	return err->code;
}

/* --chunks: breadth-first broadcast in one batch, and nothing else. */
static int read_chunks(const struct cli *c, struct coll_make_query *q, struct err *err)
{
	int64_t chunks = 0;
	int r;

	if (!cli_has(c, "chunks")) {
		return 0;
	}
	if (q->kind == COLL_ALLTOALL || coll_has_root(q->kind) ||
	    (strcmp(q->algorithm, "auto") != 0 && strcmp(q->algorithm, "bfb") != 0) ||
	    cli_has(c, "batches") || cli_has(c, "extra-steps")) {
		return err_set(err, WEFT_EUSAGE, "--chunks: only for "
			       "--algorithm bfb, without --batches and --extra-steps");
	}
	r = cli_opt_int(c, "chunks", 1, COLL_MAX_CHUNKS, &chunks, err);
	q->algorithm = "bfb";
	q->batches = 1;
	q->chunks = (int)chunks;
	return r;
}

/* --least-cost without --rate: along trees, of what is copied or summed. */
static int read_min_cost(const struct cli *c, struct coll_make_query *q, struct err *err)
{
	static const char *const of_others[] = { "chunks", "extra-steps", NULL };
	const char *one = "";
	int r;

	if (!cli_has(c, "least-cost")) {
		return 0;
	}
	if (q->kind == COLL_ALLTOALL || q->kind == COLL_GATHER || q->kind == COLL_SCATTER) {
		return err_set(err, WEFT_EUNSUPPORTED, "--least-cost: schedules of %s are not "
			       "supported, only --rate", coll_kind_name(q->kind));
	}
	for (int i = 0; one && strcmp(one, "trees") != 0; i++) {
		one = coll_make_algorithm(q->kind, i);
	}
	if (!one || (strcmp(q->algorithm, "auto") != 0 && strcmp(q->algorithm, one) != 0)) {
		return err_set(err, WEFT_EUSAGE, "--least-cost is for --algorithm trees");
	}
	r = cli_refuse(c, of_others, "does not go with --least-cost", err);
	q->algorithm = one;
	q->min_cost = true;
	return r;
}

/* --batches, --extra-steps and --root. */
static int read_counts(const struct cli *c, struct coll_make_query *q, const struct topo *t,
		       struct err *err)
{
	int64_t batches = q->batches, extra = -1, root = 0;
	int r;

	if ((r = cli_opt_int(c, "root", 0, topo_n(t) - 1, &root, err)) ||
	    (r = cli_opt_int(c, "batches", 1, coll_has_root(q->kind) ? COLL_TREE_MAX_BATCHES
								     : COLL_MAX_BATCHES,
			     &batches, err)) ||
	    (r = cli_opt_int(c, "extra-steps", 0, COLL_LATE_MAX_EXTRA, &extra, err))) {
		return r;
	}
	q->root = (int)root;
	q->batches = (int)batches;
	q->extra_steps = (int)extra;
	return 0;
}

/* --levels, --rounds and --ports: what is fixed of an algorithm on coordinates. */
static int read_torus(const struct cli *c, struct coll_make_query *q, struct err *err)
{
	static const char *const of_levels[] = { "levels", NULL };
	static const char *const of_rounds[] = { "rounds", NULL };
	static const char *const of_torus[] = { "ports", NULL };
	bool radices = strcmp(q->algorithm, "mixed-radix") == 0;
	const char *ports = cli_opt(c, "ports");
	int64_t rounds = 0;
	int r = radices ? 0 : cli_refuse(c, of_levels, "is for --algorithm mixed-radix", err);

	if (r == 0 && !radices && strcmp(q->algorithm, "hybrid") != 0) {
		r = cli_refuse(c, of_rounds, "is for --algorithm hybrid and mixed-radix", err);
	}
	if (r == 0 && !coll_make_is_torus(q->algorithm)) {
		r = cli_refuse(c, of_torus, "is for --algorithm swing and its relatives", err);
	}
	if (r || (r = cli_opt_int(c, "rounds", 0, TORUS_MAX_LEVELS * COLL_MAX_DIGITS, &rounds,
				  err))) {
		return r;
	}
	if (ports && strcmp(ports, "one") != 0 && strcmp(ports, "all") != 0) {
		return err_set(err, WEFT_EUSAGE, "--ports %s: expected one or all", ports);
	}
	q->torus = (struct coll_make_torus){
		.levels = cli_opt(c, "levels"), .has_rounds = cli_has(c, "rounds"),
		.rounds = (int)rounds,
		.ports = !ports ? COLL_USUAL_PORTS
			 : strcmp(ports, "one") == 0 ? COLL_ONE_PORT : COLL_ALL_PORTS,
	};
	return 0;
}

/* M, where the demands are sizes, else 0: as many shards of the largest as there are ranks. */
static int64_t demanded_size(const struct make_command *m)
{
	return m->demands.bytes * m->demands.largest * m->demands.n;
}

/* The cost, whose node bandwidth needs the ports of some schedule on the topology, or on what
 * that is embedded in. */
static int read_cost(const struct cli *c, struct make_command *m, struct err *err)
{
	struct topo *copy = NULL, *physical = NULL;
	struct coll_sched *s = NULL;
	int r;

	if (!cli_has(c, "alpha") && !cli_has(c, "bandwidth") && !cli_has(c, "link-bandwidth") &&
	    !cli_has(c, "size") && !cli_has(c, "hop") && !cli_has(c, "message")) {
		return 0;
	}
	if ((r = topo_copy(m->topo, &copy, err)) ||
	    (r = coll_new(m->q.kind, copy, 1, 0, 0, &s, err))) {
		return r;
	}
	if (m->fabric.topo && (r = topo_copy(m->fabric.topo, &physical, err)) == 0) {
		r = coll_set_physical(s, physical, m->fabric.routing, 0, err);
	}
	if (r == 0) {
		r = cli_read_cost(c, s, demanded_size(m), &m->cost, err);
		m->q.cost = &m->cost;
	}
	coll_free(s);
	return r;
}

/* Options that would do nothing for this collective are refused. */
static int check_options(const struct cli *c, enum coll_kind kind, struct err *err)
{
	static const char *const of_pairs[] = {
		"gap", "exact", "host-bandwidth", "nic-forwards",
		"steps", "loss", "time-limit", "demands", NULL
	};
	static const char *const of_batches[] = { "batches", NULL };
	static const char *const of_schedules[] = { "output", "pareto", NULL };
	static const char *const of_roots[] = { "root", NULL };
	static const char *const of_late[] = { "extra-steps", NULL };
	static const char *const of_one[] = {
		"output", "algorithm", "batches", "extra-steps", "chunks", NULL
	};
	const char *algorithm = cli_opt(c, "algorithm");
	int r = 0;

	if (kind != COLL_ALLTOALL) {
		r = cli_refuse(c, of_pairs, "is for all-to-all", err);
	}
	if (r == 0 && !coll_has_root(kind)) {
		r = cli_refuse(c, of_roots, "is for broadcast, reduce, gather and scatter", err);
	}
	if (r == 0 && kind == COLL_ALLTOALL) {
		r = cli_refuse(c, of_batches, "is not for all-to-all", err);
	}
	if (r == 0 && (kind == COLL_GATHER || kind == COLL_SCATTER)) {
		r = cli_refuse(c, of_batches, "is not for gather and scatter", err);
	}
	if (r == 0 && (kind == COLL_ALLTOALL || coll_has_root(kind))) {
		r = cli_refuse(c, of_late, "is for allgather, reduce-scatter and allreduce", err);
	}
	if (r == 0 && algorithm && strcmp(algorithm, "late") != 0 &&
	    strcmp(algorithm, "auto") != 0) {
		r = cli_refuse(c, of_late, "is for --algorithm late and auto", err);
	}
	if (r == 0 && cli_has(c, "pareto")) {
		r = cli_refuse(c, of_one, "does not go with --pareto, which tries them all", err);
	}
	return r || !cli_has(c, "rate")
		       ? r : cli_refuse(c, of_schedules, "does not go with "
					"--rate, which makes no schedule", err);
}

/* From options to a query. */
static int read_query(const struct cli *c, struct make_command *m, struct err *err)
{
	struct coll_make_query *q = &m->q;
	int r;

	if ((r = cli_need(c, "topology", err)) || (r = cli_need(c, "collective", err)) ||
	    (r = cli_opt_kind(c, &q->kind, err)) || (r = check_options(c, q->kind, err)) ||
	    (r = choose_algorithm(c, q, err)) || (r = read_min_cost(c, q, err)) ||
	    (r = read_chunks(c, q, err)) || (r = read_torus(c, q, err)) ||
	    (r = cli_load_topology(cli_opt(c, "topology"), &m->topo, &m->topology, err)) ||
	    (r = cli_read_fabric(c, &m->topo, &m->topology, &m->fabric, err)) ||
	    (r = read_counts(c, q, m->topo, err))) {
		return r;
	}
	q->topo = m->topo;
	q->expr = cli_opt(c, "topology");
	q->fabric = m->fabric.topo ? &m->fabric : NULL;
	q->physical = cli_has(c, "on") ? NULL : m->fabric.topo;
	return 0;
}

/* With --rate there is no schedule. */
static int make_pairs(const struct cli *c, struct make_command *m, struct err *err)
{
	struct cli_flow flow = { .exact = NULL };
	int r;

	if ((r = cli_read_pairs(c, m->q.algorithm, &m->q.pairs, err)) ||
	    (r = cli_read_demands(c, m->q.algorithm, m->topo, &m->demands, err))) {
		goto out;
	}
	m->q.pairs.demands = m->demands.n ? &m->demands : NULL;
	if ((r = cli_solve_pairs(c, m->q.algorithm, m->topo, &m->q.pairs, &flow, err))) {
		goto out;
	}
	if (cli_has(c, "rate")) {
		m->made.pairs = flow.made;
	} else if ((r = read_cost(c, m, err)) == 0) {
		r = coll_make(&m->q, &m->made, err);
		flow.made = m->made.pairs;
	}
	if (r == 0) {
		cli_say_flow(c, &flow);
	}
out:
	m->exact = flow.exact;
	return r;
}

/* From options to what was made. What m owns is freed by the caller, also after an error. */
static int synthesise(const struct cli *c, struct make_command *m, struct err *err)
{
	int r = read_query(c, m, err);

	if (r) {
		return r;
	}
	cli_say(c, CLI_VERBOSE, "%s on %s: %d nodes, %d arcs",
		coll_kind_name(m->q.kind), m->topology, topo_n(m->topo), topo_m(m->topo));
	if (cli_has(c, "pareto")) {
		return read_cost(c, m, err);
	}
	if (m->q.kind == COLL_ALLTOALL) {
		r = make_pairs(c, m, err);
	} else if ((r = read_cost(c, m, err)) == 0) {
		r = coll_make(&m->q, &m->made, err);
	}
	if (r == WEFT_EINFEASIBLE) {
		err_wrap(err, "%s", m->topology);
	}
	if (r == 0 && m->made.sched) {
		coll_set_topo_name(m->made.sched, m->topology);
	}
	return r;
}

/* ---- what is printed ---- */

static void out_flow(const struct cli *c, struct out *o, const struct make_command *m)
{
	struct cli_flow flow = { m->made.pairs, m->exact };

	cli_out_flow(c, o, &flow);
}

/* {collective, topology, algorithm, flow_rate, flow_rate_bound, flow_gap,
 * ...}: the flow without a schedule. */
static int print_rate(struct cli *c, const struct make_command *m, struct err *err)
{
	struct out *o = out_new(c->format);
	bool any = strcmp(m->q.algorithm, "auto") == 0;

	if (!o) {
		return err_nomem(err);
	}
	out_str(o, "collective", coll_kind_name(COLL_ALLTOALL));
	out_str(o, "topology", m->topology);
	out_str(o, "algorithm", any ? coll_make_algorithm(COLL_ALLTOALL, 0) : m->q.algorithm);
	out_flow(c, o, m);
	return cli_print(o, err);
}

/* How far T_B is above its bound. */
static void out_bandwidth_gap(const struct cli *c, struct out *o, const struct coll_report *r)
{
	mpq_t gap;

	mpq_init(gap);
	if (mpq_sgn(r->bandwidth_bound) > 0) {
		mpq_div(gap, r->bandwidth_factor, r->bandwidth_bound);
	}
	cli_out_gap(c, o, "bandwidth_gap", mpq_sgn(gap) > 0 ? mpq_get_d(gap) - 1 : 0);
	mpq_clear(gap);
}

/* What a collective with a root is made of. */
static void out_rooted(const struct cli *c, struct out *o, const struct coll_made *made)
{
	out_bandwidth_gap(c, o, &made->report);
	if (made->tree.trees > 0) {
		out_int(o, "trees", made->tree.trees);
		out_int(o, "tree_depth", made->tree.deepest);
	}
	/* Rates on the logical digraph say nothing about the physical one. */
	if (made->tree.trees > 0 && !made->logical) {
		out_int(o, "rate", made->tree.rate);
		out_int(o, "rate_bound", made->tree.rate_bound);
	}
}

/* What a collective without a root is made of. */
static void out_forest(const struct cli *c, struct out *o, const struct coll_made *made)
{
	out_bandwidth_gap(c, o, &made->report);
	out_int(o, "trees", made->tree.trees);
	out_int(o, "tree_depth", made->tree.deepest);
}

/* What an algorithm on coordinates is made of. */
static void out_torus(const struct cli *c, struct out *o, const struct coll_made *made)
{
	out_bandwidth_gap(c, o, &made->report);
	if (made->torus.levels[0]) {
		out_str(o, "levels", made->torus.levels);
	}
	if (made->torus.rounds >= 0) {
		out_int(o, "rounds", made->torus.rounds);
	}
}

/* How many batches there are, and why not as many as were asked for. */
static void out_batches(struct out *o, int asked, int made_in)
{
	char note[128];

	if (made_in > 1 || asked > 1) {
		out_int(o, "batches", made_in);
	}
	if (made_in == 1 && asked > 1) {
		snprintf(note, sizeof(note), "%d batches gain nothing: made in one", asked);
		out_str(o, "batches_note", note);
	} else if (made_in < asked) {
		snprintf(note, sizeof(note), "%d batches gain as much as %d", made_in, asked);
		out_str(o, "batches_note", note);
	}
}

/* The summary on stdout, unless the schedule itself goes there: {collective,
 * topology, nodes, chunks, ports, steps, algorithm, batches and a note on them, the replay's
 * figures, the flow's, the trees', the cost's, file}, each only where it
 * applies. */
static int print_made(struct cli *c, const struct make_command *m, struct err *err)
{
	const struct coll_made *made = &m->made;
	const struct coll_sched *s = made->sched;
	const char *path = cli_opt(c, "output");
	struct out *o;
	int r = 0;

	if (path && strcmp(path, "-") == 0) {
		return 0;
	}
	o = out_new(c->format);
	if (!o) {
		return err_nomem(err);
	}
	cli_out_schedule(o, s);
	out_str(o, "algorithm", made->algorithm);
	out_batches(o, coll_has_root(m->q.kind) ? 0 : m->q.batches, made->batches);
	cli_out_replay(o, &made->report);
	/* Rates on the logical digraph say nothing about the physical one. */
	if (coll_kind_of(s) == COLL_ALLTOALL && !made->logical) {
		out_flow(c, o, m);
	}
	if (coll_has_root(coll_kind_of(s))) {
		out_rooted(c, o, made);
	} else if (made->torus.is_made) {
		out_torus(c, o, made);
	} else if (strcmp(made->algorithm, "trees") == 0) {
		out_forest(c, o, made);
	} else if (strcmp(made->algorithm, "late") == 0) {
		out_bandwidth_gap(c, o, &made->report);
	}
	if (m->q.cost) {
		r = cli_out_cost(c, o, s, &made->report, m->q.cost, err);
	}
	if (made->bfb_bound_ns > 0 && made->batches <= 1) {
		cli_out_ns(c, o, "breadth_first_bound", made->bfb_bound_ns);
	}
	if (path) {
		out_str(o, "file", path);
	}
	return cli_print_unless(r, o, err);
}

int cmd_schedule_make(struct cli *c, struct err *err)
{
	const char *path = cli_opt(c, "output");
	struct make_command m = { .q.extra_steps = -1 };
	int r;

	if (cli_wants_best_rate(c)) {
		return cli_best_rate(c, err);
	}
	r = synthesise(c, &m, err);
	if (r == 0 && cli_has(c, "pareto")) {
		r = cli_print_pareto(c, &m.q, m.topology, err);
		goto out;
	}
	if (r == 0 && !m.made.sched) {
		r = print_rate(c, &m, err);
		goto out;
	}
	if (r == 0 && path) {
		r = cli_write_schedule(m.made.sched, path, err);
	}
	if (r == 0) {
		r = print_made(c, &m, err);
	}
out:
	coll_made_fini(&m.made);
	flow_demands_fini(&m.demands);
	cli_free_fabric(&m.fabric);
	topo_free(m.topo);
	free(m.exact);
	free(m.topology);
	return r;
}
