/* SPDX-License-Identifier: Apache-2.0 */
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

/* The cost where none is given, whose rate is the narrowest link's, and its alpha where a step is
 * worth more than any T_B. */
#define DEFAULT_COST { .alpha_ns = 1000, .link_bps = INT64_C(100000000000), \
	.size_bytes = INT64_C(1) << 20 }
#define FEWEST_STEPS_ALPHA INT64_C(1000000000)

/* What the best is the best in: the words of --objective. */
enum objective { LEAST_TIME, LEAST_BANDWIDTH, FEWEST_STEPS };

static const char *const objectives[] = { "time", "bandwidth", "steps", NULL };

/* What is asked for and what was made. made is always initialised. */
struct make_command {
	struct coll_make_query q;	/* its pointers lead into what follows */
	enum objective objective;
	bool default_cost;
	struct topo *topo;		/* owned; the rest too */
	char *topology;			/* its name */
	struct coll_fabric fabric;
	struct coll_cost cost;
	struct flow_demands demands;
	struct coll_made made;		/* without a schedule with --rate */
	char *exact;			/* of struct cli_flow */
};

/* ---- options ---- */

/* --algorithm; NULL for "auto" and without one. WEFT_EUNSUPPORTED when it is not for this
 * collective. */
static int choose_algorithm(const struct cli *c, struct coll_make_query *q, struct err *err)
{
	struct buf names = { 0 };
	const struct coll_algorithm *a;
	const char *name = cli_opt(c, "algorithm");

	q->algorithm = name ? coll_algorithm_find(name, q->kind) : NULL;
	if (!name || q->algorithm || strcmp(name, "auto") == 0) {
		return 0;
	}
	for (int i = 0; (a = coll_algorithm(i)); i++) {
		if (a->kinds & COLL_KIND_BIT(q->kind)) {
			buf_printf(&names, ", %s", a->name);
		}
	}
	err_set(err, WEFT_EUNSUPPORTED, "--algorithm %s: not supported for %s in this version",
		name, coll_kind_name(q->kind));
	err_hint(err, "supported: auto%s", buf_cstr(&names));
	buf_fini(&names);
	return err->code;
}

static int refuse_option(const struct cli *c, const char *name, enum coll_kind kind,
			 struct err *err)
{
	struct buf why = { 0 };

	coll_option_explain(name, kind, &why);
	err_set(err, WEFT_EUSAGE, "weft %s: --%s %s", c->verb, name, buf_cstr(&why));
	buf_fini(&why);
	return err->code;
}

/* Options that are for an algorithm select it; those that would do nothing are refused. */
static int check_options(const struct cli *c, struct coll_make_query *q, struct err *err)
{
	static const char *const of_schedules[] = { "output", "pareto", "objective", NULL };
	static const char *const of_batches[] = { "batches", NULL };
	static const char *const of_one[] = {
		"output", "algorithm", "batches", "extra-steps", "chunks", "objective", NULL
	};

	for (int i = 0; i < COLL_OPTIONS && !q->algorithm; i++) {
		if (coll_options[i].selects && cli_has(c, coll_options[i].name)) {
			q->algorithm = coll_option_owner(coll_options[i].name, q->kind);
		}
	}
	for (int i = 0; i < COLL_OPTIONS; i++) {
		const char *name = coll_options[i].name;

		if (cli_has(c, name) && !coll_option_taken(name, q->kind, q->algorithm)) {
			return refuse_option(c, name, q->kind, err);
		}
	}
	if (cli_has(c, "pareto")) {
		return cli_refuse(c, of_one, "does not go with --pareto, which tries them all",
				  err);
	}
	if (cli_has(c, "chunks")) {
		return cli_refuse(c, of_batches, "does not go with --chunks", err);
	}
	return cli_has(c, "rate") ? cli_refuse(c, of_schedules, "does not go with --rate, which "
					       "makes no schedule", err) : 0;
}

/* The number, from 1, of the option's word among those that it takes. */
static int read_word(const struct cli *c, const struct coll_option *o, int *value, struct err *err)
{
	const char *text = cli_opt(c, o->name);
	size_t len = strlen(text);
	int n = 1;

	for (const char *at = o->words; *at; at += strcspn(at, " "), at += *at == ' ', n++) {
		if (strcspn(at, " ") == len && strncmp(at, text, len) == 0) {
			*value = n;
			return 0;
		}
	}
	return err_set(err, WEFT_EUSAGE, "--%s %s: expected one of %s", o->name, text, o->words);
}

/* The value of an option that is given, into its field of the query. */
static int read_option(const struct cli *c, const struct coll_option *o, struct coll_make_query *q,
		       struct err *err)
{
	char *field = (char *)q + o->offset;
	int64_t value = 0;
	int r = 0;

	switch (o->type) {
	case COLL_OPTION_INT:
		r = cli_opt_int(c, o->name, o->min, o->max ? o->max : topo_n(q->topo) - 1, &value,
				err);
		*(int *)field = (int)value;
		break;
	case COLL_OPTION_SHARE:
		r = cli_opt_share(c, o->name, (double *)field, err);
		break;
	case COLL_OPTION_DEADLINE:
		r = cli_opt_deadline(c, (struct deadline *)field, err);
		break;
	case COLL_OPTION_WORD:
		r = read_word(c, o, (int *)field, err);
		break;
	case COLL_OPTION_TEXT:
		*(const char **)field = cli_opt(c, o->name);
		break;
	case COLL_OPTION_FLAG:
		*(bool *)field = true;
		break;
	case COLL_OPTION_OTHER:
		break;
	}
	return r;
}

/* What is told of the algorithm, on a topology that is known. */
static int read_options(const struct cli *c, struct coll_make_query *q, struct err *err)
{
	int r = 0;

	if (q->kind == COLL_ALLTOALL) {
		q->pairs = (struct coll_make_pairs){
			.flow = { .gap = MCF_DEFAULT_GAP, .cancel = &cli_interrupted },
			.loss = MCF_SCHED_LOSS,
		};
	}
	for (int i = 0; i < COLL_OPTIONS && r == 0; i++) {
		const struct coll_option *o = &coll_options[i];

		if (cli_has(c, o->name) && o == coll_option_taken(o->name, q->kind, q->algorithm)) {
			r = read_option(c, o, q, err);
		}
	}
	q->torus.has_rounds = cli_has(c, "rounds");
	q->batches = q->chunks > 0 ? 1 : q->batches;
	return r;
}

/* --objective; "time" without it, but for tables of all of them. */
static int read_objective(const struct cli *c, struct make_command *m, struct err *err)
{
	static const char *const of_cost[] = {
		"alpha", "bandwidth", "link-bandwidth", "size", "hop", "message", NULL
	};
	const char *name = cli_opt(c, "objective");
	int i = 0;

	if (!name) {
		return 0;
	}
	while (objectives[i] && strcmp(objectives[i], name) != 0) {
		i++;
	}
	if (!objectives[i]) {
		return err_set(err, WEFT_EUSAGE, "--objective %s: expected bandwidth, steps or "
			       "time", name);
	}
	m->objective = (enum objective)i;
	return m->objective == LEAST_TIME
		       ? 0 : cli_refuse(c, of_cost, "is of a cost, which only --objective time "
					"looks at", err);
}

/* M, where the demands are sizes, else 0: as many shards of the largest as there are ranks. */
static int64_t demanded_size(const struct make_command *m)
{
	return m->demands.bytes * m->demands.largest * m->demands.n;
}

/* The narrowest arc's capacity; 1 without arcs. */
static int64_t narrowest(const struct topo *t)
{
	int64_t cap = topo_m(t) > 0 ? INT64_MAX : 1;

	for (int a = 0; a < topo_m(t); a++) {
		cap = topo_arc(t, a)->cap < cap ? topo_arc(t, a)->cap : cap;
	}
	return cap;
}

/* Where none is given: that of "time", or in which steps come first; none for T_B alone, and for
 * the table of all. */
static void take_default_cost(const struct cli *c, struct make_command *m)
{
	bool no;

	if (m->objective == LEAST_BANDWIDTH || cli_has(c, "pareto")) {
		return;
	}
	m->default_cost = true;
	m->cost = (struct coll_cost)DEFAULT_COST;
	m->cost.link_bps /= narrowest(m->fabric.topo ? m->fabric.topo : m->topo);
	m->cost.link_bps += m->cost.link_bps == 0;
	m->cost.size_bytes = demanded_size(m) > 0 ? demanded_size(m) : m->cost.size_bytes;
	(void)cli_opt_forward(c, &m->cost.forwards, &no, NULL);
	if (m->objective == FEWEST_STEPS) {
		m->cost.alpha_ns = FEWEST_STEPS_ALPHA;
		m->q.steps_first = true;
	}
	m->q.cost = &m->cost;
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
		take_default_cost(c, m);
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

/* From options to a query. */
static int read_query(const struct cli *c, struct make_command *m, struct err *err)
{
	struct coll_make_query *q = &m->q;
	bool yes, no;
	int r;

	if ((r = cli_need(c, "topology", err)) || (r = cli_need(c, "collective", err)) ||
	    (r = cli_opt_kind(c, &q->kind, err)) || (r = choose_algorithm(c, q, err)) ||
	    (r = check_options(c, q, err)) || (r = read_objective(c, m, err)) ||
	    (r = cli_opt_forward(c, &yes, &no, err)) ||
	    (r = cli_load_topology(cli_opt(c, "topology"), &m->topo, &m->topology, err)) ||
	    (r = cli_read_fabric(c, &m->topo, &m->topology, &m->fabric, err))) {
		return r;
	}
	q->topo = m->topo;
	q->links_only = no;
	if ((r = read_options(c, q, err))) {
		return r;
	}
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

	cli_stop_on_signals();
	if ((r = cli_read_demands(c, m->topo, &m->demands, err))) {
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
	const struct coll_algorithm *a = m->q.algorithm;

	out_str(o, "collective", coll_kind_name(COLL_ALLTOALL));
	out_str(o, "topology", m->topology);
	out_str(o, "algorithm", (a ? a : coll_algorithm_find("mcf", COLL_ALLTOALL))->name);
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

/* The trees that it is made of. */
static void out_trees(struct out *o, const struct coll_made *made)
{
	if (made->tree.trees == 0) {
		return;
	}
	out_int(o, "trees", made->tree.trees);
	out_int(o, "tree_depth", made->tree.deepest);
	/* Rates on the logical digraph say nothing about the physical one. */
	if (coll_has_root(coll_kind_of(made->sched)) && !made->logical) {
		out_int(o, "rate", made->tree.rate);
		out_int(o, "rate_bound", made->tree.rate_bound);
	}
}

/* What an algorithm on coordinates is made of. */
static void out_torus(struct out *o, const struct coll_made *made)
{
	if (made->torus.is_made && made->torus.levels[0]) {
		out_str(o, "levels", made->torus.levels);
	}
	if (made->torus.is_made && made->torus.rounds >= 0) {
		out_int(o, "rounds", made->torus.rounds);
	}
}

/* What it is the best in, and how near it comes to the bound of that. */
static int out_aim(const struct cli *c, struct out *o, const struct make_command *m,
		   struct err *err)
{
	const struct coll_made *made = &m->made;

	out_str(o, "objective", objectives[m->objective]);
	if (m->objective == LEAST_BANDWIDTH && coll_kind_of(made->sched) != COLL_ALLTOALL) {
		out_bandwidth_gap(c, o, &made->report);
	}
	if (m->objective != LEAST_TIME) {
		if (coll_through_ranks(made->sched)) {
			out_bool(o, "forward", true);
		}
		return 0;
	}
	out_str(o, "cost", m->default_cost ? "default" : "given");
	return cli_out_cost(c, o, made->sched, &made->report, m->q.cost, err);
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
 * figures, the flow's, the trees', the objective with its own, file}, each only where it
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
	cli_out_schedule(o, s);
	out_str(o, "algorithm", made->algorithm->name);
	out_batches(o, coll_has_root(m->q.kind) ? 0 : m->q.batches, made->batches);
	cli_out_replay(c, o, s, &made->report);
	/* Rates on the logical digraph say nothing about the physical one. */
	if (coll_kind_of(s) == COLL_ALLTOALL && !made->logical) {
		out_flow(c, o, m);
	}
	out_trees(o, made);
	out_torus(o, made);
	r = out_aim(c, o, m, err);
	if (made->bfb_bound_ns > 0 && made->batches <= 1 && m->objective == LEAST_TIME) {
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
