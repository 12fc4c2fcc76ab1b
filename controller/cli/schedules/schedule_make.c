/*
 * weft schedule make: the algorithms, and the best of what they make.
 *
 * Algorithms offer their schedules one after the other. Each offer is
 * replayed, and the better one stays: by time in the alpha-beta model when
 * the command line gives the cost (--alpha, --size and a bandwidth), else by
 * bandwidth factor T_B and then by steps. "auto" offers breadth-first
 * broadcast, the same weighted by latencies where they differ, late takers where
 * links are not full, the construction of the topology where it has one, and the best of those in
 * batches that overlap. All-to-alls come from one flow (all_to_all.c), and
 * collectives with a root choose for themselves, so there is one offer only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/bfb.h"
#include "collective/schedule/schedule.h"
#include "collective/tree/tree.h"
#include "controller/cli/core/private.h"

/* Beyond these a construction is not tried where a compact schedule is there. */
#define EXPAND_MAX_TRANSFERS (4 << 20)

/* Extra steps for late takers that are tried when the cost is given. */
#define TIMED_EXTRA_STEPS 2

/* The best schedule so far, and what is printed of it. report is always
 * initialised. */
struct made {
	struct coll_sched *sched;
	struct coll_report report;	/* of sched */
	struct cli_physical physical;	/* what sched is embedded in, if it is */
	struct coll_sched *logical;	/* sched before; NULL: is not embedded */
	const char *algorithm;
	int64_t batches, chunks;	/* chunks: a shard, 0 as needed */
	int64_t batches_asked;		/* by --batches, 0 without */
	bool wants_time;
	struct coll_cost cost;		/* when it does */
	int64_t bfb_bound;		/* ns, with unequal latencies; else 0 */
	struct cli_flow flow;		/* of an all-to-all */
	struct coll_tree_info tree;	/* of a collective with a root */
	char *topology;			/* owned */
};

/* ---- one candidate ---- */

/* What --algorithm takes for a collective beside auto. */
static const char *algorithms_of(enum coll_kind kind)
{
	switch (kind) {
	case COLL_ALLTOALL:
		return CLI_ALL_TO_ALL;
	case COLL_BROADCAST:
	case COLL_REDUCE:
		return "trees";
	case COLL_GATHER:
	case COLL_SCATTER:
		return "paths";
	case COLL_ALLGATHER:
	case COLL_REDUCE_SCATTER:
	case COLL_ALLREDUCE:
		break;
	}
	return "bfb, late, expand";
}

/* --algorithm, "auto" without one. WEFT_EUNSUPPORTED when it is not for this
 * collective. */
static int choose_algorithm(const struct cli *c, enum coll_kind kind,
			    const char **algorithm, struct err *err)
{
	const char *name = cli_opt(c, "algorithm");
	bool fits;

	*algorithm = name ? name : "auto";
	if (strcmp(*algorithm, "auto") == 0) {
		return 0;
	}
	fits = kind == COLL_ALLTOALL ? cli_is_all_to_all(name)
	       : coll_has_root(kind) ? strcmp(name, algorithms_of(kind)) == 0
				     : strcmp(name, "bfb") == 0 || strcmp(name, "late") == 0 ||
					       strcmp(name, "expand") == 0;
	if (fits) {
		return 0;
	}
	err_set(err, WEFT_EUNSUPPORTED, "--algorithm %s: not supported for %s in this version",
		name, coll_kind_name(kind));
	err_hint(err, "supported: auto, %s", algorithms_of(kind));
	return err->code;
}

/* --chunks: breadth-first broadcast in one batch, and nothing else. */
static int read_chunks(const struct cli *c, enum coll_kind kind, const char **algorithm,
		       int64_t *chunks, struct err *err)
{
	if (!cli_has(c, "chunks")) {
		return 0;
	}
	if (kind == COLL_ALLTOALL || coll_has_root(kind) || strcmp(*algorithm, "expand") == 0 ||
	    strcmp(*algorithm, "late") == 0 || cli_has(c, "batches") ||
	    cli_has(c, "extra-steps")) {
		return err_set(err, WEFT_EUSAGE, "--chunks: only for "
			       "--algorithm bfb, without --batches and --extra-steps");
	}
	*algorithm = "bfb";
	return cli_opt_int(c, "chunks", 1, COLL_MAX_CHUNKS, chunks, err);
}

/* Compares s, whose replay is r, with what m holds: by time when the cost is
 * known, else by T_B and then steps. *better is false after an error. */
static int is_better(const struct made *m, const struct coll_sched *s, const struct coll_report *r,
		     bool *better, struct err *err)
{
	int64_t mine, other;
	int cmp = mpq_cmp(r->bandwidth_factor, m->report.bandwidth_factor);
	int rc;

	*better = cmp ? cmp < 0 : r->steps < m->report.steps;
	if (m->wants_time) {
		if ((rc = coll_time(m->sched, &m->report, &m->cost, &mine, NULL, err)) ||
		    (rc = coll_time(s, r, &m->cost, &other, NULL, err))) {
			*better = false;
			return rc;
		}
		*better = other < mine;
	}
	return 0;
}

/* Embeds *s where there is a physical digraph; *logical is what it was, else
 * NULL. */
static int embed(const struct made *m, struct coll_sched **s, struct coll_sched **logical,
		 struct err *err)
{
	*logical = NULL;
	if (!m->physical.topo) {
		return 0;
	}
	*logical = *s;
	return cli_embed(&m->physical, *logical, s, err);
}

/* Takes s over; it becomes the schedule made when it is the better one. */
static int offer(struct made *m, struct coll_sched *s, const char *algorithm,
		 int64_t batches, struct err *err)
{
	struct coll_sched *logical;
	struct coll_report r;
	bool better = true;
	int rc;

	coll_report_init(&r);
	rc = embed(m, &s, &logical, err);
	if (!rc) {
		rc = coll_verify(s, &r, err);
	}
	if (!rc && m->sched) {
		rc = is_better(m, s, &r, &better, err);
	}
	if (!rc && better) {
		/* The reports change places, so that the loser's is freed
		 * below. */
		struct coll_report old = m->report;

		coll_free(m->sched);
		coll_free(m->logical);
		m->sched = s;
		m->logical = logical;
		m->report = r;
		m->algorithm = algorithm;
		m->batches = batches;
		r = old;
		s = logical = NULL;
	}
	coll_report_fini(&r);
	coll_free(s);
	coll_free(logical);
	return rc;
}

/* What the command line says of cost; its node bandwidth needs the ports of
 * a schedule. */
static int read_cost(const struct cli *c, struct made *m, struct err *err)
{
	m->wants_time = cli_has(c, "alpha") || cli_has(c, "bandwidth") ||
			cli_has(c, "link-bandwidth") || cli_has(c, "size") ||
			cli_has(c, "hop") || cli_has(c, "message");
	return m->wants_time ? cli_read_cost(c, m->sched, &m->cost, err) : 0;
}

/* ---- all-gather, reduce-scatter, all-reduce ---- */

/* The construction, where the topology has one; with `must`, else an
 * error. */
static int try_expand(struct made *m, enum coll_kind kind, const char *expr,
		      bool must, struct err *err)
{
	struct coll_sched *s = NULL;
	struct err why = { 0 };
	int rc = coll_expand(kind, expr, &s, &why);

	if (rc && (must || rc == WEFT_ENOMEM)) {
		*err = why;
		return rc;
	}
	return rc ? 0 : offer(m, s, "expand", 1, err);
}

/* In batches, and then what can move to idle links. */
static int overlap_batches(const struct coll_sched *s, int batches,
			   struct coll_sched **out, struct err *err)
{
	struct coll_sched *p = NULL;
	int rc = coll_pipeline(s, batches, &p, err);

	if (rc == 0) {
		rc = coll_tighten_steps(p, out, err);
	}
	coll_free(p);
	return rc;
}

/* In the batches asked for, or the fewest that gain as much where arcs are links; or in
 * those that take the least time. */
static int try_batches(const struct cli *c, struct made *m, struct err *err)
{
	const struct coll_sched *whole = m->logical ? m->logical : m->sched;
	struct coll_sched *s = NULL;
	int batches = 1, rc = 0;

	if (cli_has(c, "batches")) {
		rc = cli_opt_int(c, "batches", 1, COLL_MAX_BATCHES, &m->batches_asked, err);
		batches = (int)m->batches_asked;
		if (!rc && batches > 1 && !m->logical) {
			rc = coll_pipeline_fewest(whole, batches, &batches, err);
		}
	} else if (m->wants_time) {
		rc = coll_pipeline_best(whole, &m->cost, COLL_MAX_BATCHES, &batches, err);
	}
	if (rc || batches == 1) {
		return rc;
	}
	rc = cli_has(c, "batches")
		     ? coll_pipeline(whole, batches, &s, err)
		     : overlap_batches(whole, batches, &s, err);
	if (rc) {
		return rc;
	}
	if (cli_has(c, "batches")) {
		coll_free(m->sched);
		coll_free(m->logical);
		m->sched = m->logical = NULL;
	}
	return offer(m, s, m->algorithm, batches, err);
}

/* O(arcs). */
static bool latencies_differ(const struct topo *t)
{
	const struct topo_arc *arcs = topo_arcs(t);

	for (int a = 1; a < topo_m(t); a++) {
		if (arcs[a].latency_ns != arcs[0].latency_ns) {
			return true;
		}
	}
	return false;
}

/* Shares by latency and capacity, where latencies differ and the cost is
 * known. */
static int try_timed(const struct cli *c, struct made *m, enum coll_kind kind, struct err *err)
{
	struct coll_sched *s = NULL;
	struct topo *t = NULL;
	char *name = NULL;
	int rc;

	if (!m->wants_time || m->cost.size_bytes < 1 || m->logical ||
	    !latencies_differ(coll_topo(m->sched))) {
		return 0;
	}
	rc = cli_load_topology(cli_opt(c, "topology"), &t, &name, err);
	free(name);
	if (rc || (rc = coll_bfb_timed(kind, t, (int)m->chunks, &m->cost, &s,
				       &m->bfb_bound, err))) {
		return rc;
	}
	return offer(m, s, "bfb", 1, err);
}

/* No construction is of use beside breadth-first broadcast, whose steps are the fewest: it meets
 * the bandwidth bound, or is compact where the transfers of another would be millions. */
static bool is_good_enough(const struct made *m)
{
	return (m->report.bandwidth_optimal && !m->logical) ||
	       (coll_group(m->sched) && m->report.transfers > EXPAND_MAX_TRANSFERS);
}

/* One with late takers; with `must`, too large a digraph is an error. */
static int offer_late(const struct cli *c, struct made *m, enum coll_kind kind,
		      const struct topo *t, int extra, bool must, struct err *err)
{
	struct coll_sched *s = NULL;
	struct topo *copy = NULL;
	struct err why = { 0 };
	int rc = topo_copy(t, &copy, err);

	if (rc) {
		return rc;
	}
	rc = coll_late(kind, copy, extra, &s, &why);
	if (rc == WEFT_ELIMIT && !must) {
		cli_say(c, CLI_VERBOSE, "late: %s", why.msg);
		return 0;
	}
	if (rc) {
		*err = why;
		return rc;
	}
	return offer(m, s, "late", 1, err);
}

/* Late takers, with more and more extra steps while links into nodes are not full. */
static int try_late(const struct cli *c, struct made *m, enum coll_kind kind,
		    const struct topo *t, bool must, struct err *err)
{
	int64_t most = m->wants_time ? TIMED_EXTRA_STEPS : 0;
	mpq_t bound;
	int rc = 0;

	if ((m->logical && !must) || (rc = cli_opt_int(c, "extra-steps", 0, COLL_LATE_MAX_EXTRA,
						       &most, err))) {
		return rc;
	}
	mpq_init(bound);
	coll_late_bound(kind, t, bound);
	for (int extra = must; extra <= most && !rc; extra++) {
		if (!m->logical && mpq_cmp(m->report.bandwidth_factor, bound) <= 0) {
			break;
		}
		rc = offer_late(c, m, kind, t, extra, must, err);
	}
	mpq_clear(bound);
	return rc;
}

/* All-gather, reduce-scatter and all-reduce. The cost is read after the first
 * offer, since a node's bandwidth is divided by the ports of a schedule. t is
 * taken over. */
static int make_gather(const struct cli *c, struct made *m, enum coll_kind kind,
		       const char *algorithm, struct topo *t, struct err *err)
{
	const char *expr = cli_opt(c, "topology");
	bool any = strcmp(algorithm, "auto") == 0, late = strcmp(algorithm, "late") == 0;
	bool expand = strcmp(algorithm, "expand") == 0;
	struct coll_sched *s = NULL;
	struct topo *copy = NULL;
	int rc = 0;

	if (any || strcmp(algorithm, "bfb") == 0) {
		(void)((rc = topo_copy(t, &copy, err)) ||
		       (rc = coll_bfb_cut(kind, copy, (int)m->chunks, &s, err)) ||
		       (rc = offer(m, s, "bfb", 1, err)) ||
		       (rc = read_cost(c, m, err)) ||
		       (rc = try_timed(c, m, kind, err)));
	} else if (late) {
		(void)((rc = offer_late(c, m, kind, t, 0, true, err)) ||
		       (rc = read_cost(c, m, err)));
	}
	if (!rc && (any || late)) {
		rc = try_late(c, m, kind, t, late, err);
	}
	topo_free(t);
	if (!rc && (expand || (any && !is_good_enough(m)))) {
		rc = try_expand(m, kind, expr, !any, err);
	}
	if (!rc && expand) {
		rc = read_cost(c, m, err);
	}
	return rc || m->chunks ? rc : try_batches(c, m, err);
}

/* ---- all-to-all ---- */

/* All-to-all; with --rate there is no schedule, and m->sched stays NULL. t is
 * taken over. */
static int make_pairs(const struct cli *c, struct made *m,
		      const char *algorithm, struct topo *t, struct err *err)
{
	struct coll_sched *s = NULL;
	int rc;

	algorithm = strcmp(algorithm, "auto") == 0 ? "mcf" : algorithm;
	m->algorithm = algorithm;
	rc = cli_make_all_to_all(c, algorithm, t, &s, &m->flow, err);
	if (rc || !s) {
		return rc;
	}
	rc = offer(m, s, algorithm, 1, err);
	if (rc) {
		return rc;
	}
	return read_cost(c, m, err);
}

/* ---- broadcast, reduce, gather, scatter ---- */

/* The cost, whose node bandwidth needs the ports of some schedule on t, or on
 * what that is embedded in. */
static int read_rooted_cost(const struct cli *c, struct made *m, enum coll_kind kind,
			    const struct topo *t, struct err *err)
{
	struct topo *copy = NULL, *physical = NULL;
	int rc = topo_copy(t, &copy, err);

	if (rc || (rc = coll_new(kind, copy, 1, 0, 0, &m->sched, err))) {
		return rc;
	}
	if (m->physical.topo && (rc = topo_copy(m->physical.topo, &physical, err)) == 0) {
		rc = coll_set_physical(m->sched, physical, m->physical.routing, 0, err);
	}
	if (!rc) {
		rc = read_cost(c, m, err);
	}
	coll_free(m->sched);
	m->sched = NULL;
	return rc;
}

/* Makes one schedule and offers it. */
static int offer_rooted(struct made *m, const struct topo *t, const struct coll_tree_options *opt,
			struct err *err)
{
	const struct coll_sched *before = m->sched;
	struct coll_tree_info info;
	struct coll_sched *s = NULL;
	int rc = coll_tree_make(t, opt, &s, &info, err);

	if (rc || (rc = offer(m, s, algorithms_of(opt->kind), info.batches, err))) {
		return rc;
	}
	if (m->sched != before) {
		m->tree = info;
	}
	return 0;
}

/* The schedule was chosen for links of the logical digraph, and embedded they
 * have other rates: once more with the rate that they came to. */
static int offer_embedded(struct made *m, const struct topo *t, struct coll_tree_options opt,
			  struct err *err)
{
	struct coll_cost cost = m->cost;
	struct coll_report r;
	mpq_t rate;
	int rc;

	coll_report_init(&r);
	mpq_init(rate);
	rc = coll_verify(m->logical, &r, err);
	if (rc == 0 && mpq_sgn(m->report.shard_times) > 0) {
		mpq_div(rate, r.shard_times, m->report.shard_times);
		cost.link_bps = (int64_t)(mpq_get_d(rate) * (double)cost.link_bps);
		cost.link_bps = cost.link_bps > 0 ? cost.link_bps : 1;
		opt.cost = &cost;
		rc = offer_rooted(m, t, &opt, err);
	}
	mpq_clear(rate);
	coll_report_fini(&r);
	return rc;
}

/* The best of its kind. t is taken over. */
static int make_rooted(const struct cli *c, struct made *m, enum coll_kind kind,
		       struct topo *t, struct err *err)
{
	struct coll_tree_options opt = { .kind = kind };
	int64_t root = 0, batches = 0;
	int rc;

	(void)((rc = cli_opt_int(c, "root", 0, topo_n(t) - 1, &root, err)) ||
	       (rc = cli_opt_int(c, "batches", 1, COLL_TREE_MAX_BATCHES, &batches, err)) ||
	       (rc = read_rooted_cost(c, m, kind, t, err)));
	if (rc == 0) {
		opt.root = (int)root;
		opt.batches = (int)batches;
		opt.cost = m->wants_time ? &m->cost : NULL;
		rc = offer_rooted(m, t, &opt, err);
	}
	if (rc == 0 && m->logical && m->wants_time) {
		rc = offer_embedded(m, t, opt, err);
	}
	topo_free(t);
	return rc ? rc : cli_tighten_bound(m->sched, &m->report, err);
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
static void out_rooted(const struct cli *c, struct out *o, const struct made *made)
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

/* ---- the command ---- */

/* Options that would do nothing for this collective are refused. */
static int check_options(const struct cli *c, enum coll_kind kind, struct err *err)
{
	static const char *const of_pairs[] = {
		"gap", "exact", "rate", "host-bandwidth", "nic-forwards",
		"steps", "loss", "time-limit", NULL
	};
	static const char *const of_batches[] = { "batches", NULL };
	static const char *const of_schedules[] = { "output", NULL };
	static const char *const of_roots[] = { "root", NULL };
	static const char *const of_late[] = { "extra-steps", NULL };
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
	return r || !cli_has(c, "rate")
		       ? r : cli_refuse(c, of_schedules, "does not go with "
					"--rate, which makes no schedule", err);
}

/* From options to m->sched (NULL with --rate), replayed. What made owns is
 * freed by the caller, also after an error. */
static int synthesise(const struct cli *c, struct made *made, struct err *err)
{
	const char *algorithm;
	enum coll_kind kind = COLL_ALLGATHER;
	struct topo *t = NULL;
	int r;

	if ((r = cli_need(c, "topology", err)) || (r = cli_need(c, "collective", err)) ||
	    (r = cli_opt_kind(c, &kind, err)) || (r = check_options(c, kind, err)) ||
	    (r = choose_algorithm(c, kind, &algorithm, err)) || (r = read_chunks(c, kind,
										 &algorithm,
										 &made->chunks,
										 err)) ||
	    (r = cli_load_topology(cli_opt(c, "topology"), &t, &made->topology, err))) {
		return r;
	}
	if ((r = cli_read_physical(c, &t, &made->topology, &made->physical, err))) {
		topo_free(t);
		return r;
	}
	cli_say(c, CLI_VERBOSE, "%s on %s: %d nodes, %d arcs",
		coll_kind_name(kind), made->topology, topo_n(t), topo_m(t));
	r = kind == COLL_ALLTOALL ? make_pairs(c, made, algorithm, t, err)
	    : coll_has_root(kind) ? make_rooted(c, made, kind, t, err)
				  : make_gather(c, made, kind, algorithm, t, err);
	if (r == WEFT_EINFEASIBLE) {
		err_wrap(err, "%s", made->topology);
	}
	if (r == 0 && made->sched) {
		coll_set_topo_name(made->sched, made->topology);
	}
	return r;
}

/* {collective, topology, algorithm, flow_rate, flow_rate_bound, flow_gap,
 * ...}: the flow without a schedule. */
static int print_rate(struct cli *c, const struct made *made, struct err *err)
{
	struct out *o = out_new(c->format);

	if (!o) {
		return err_nomem(err);
	}
	out_str(o, "collective", coll_kind_name(COLL_ALLTOALL));
	out_str(o, "topology", made->topology);
	out_str(o, "algorithm", made->algorithm);
	cli_out_flow(c, o, &made->flow);
	return cli_print(o, err);
}

/* How many batches there are, and why not as many as were asked for. */
static void out_batches(struct out *o, const struct made *made)
{
	long long asked = made->batches_asked, made_in = made->batches;
	char note[128];

	if (made_in > 1 || asked > 1) {
		out_int(o, "batches", made_in);
	}
	if (made_in == 1 && asked > 1) {
		snprintf(note, sizeof(note), "%lld batches gain nothing: made in one", asked);
		out_str(o, "batches_note", note);
	} else if (made_in < asked) {
		snprintf(note, sizeof(note), "%lld batches gain as much as %lld", made_in, asked);
		out_str(o, "batches_note", note);
	}
}

/* The summary on stdout, unless the schedule itself goes there: {collective,
 * topology, nodes, chunks, ports, steps, algorithm, batches and a note on them, the replay's
 * figures, the flow's, the trees', the cost's, file}, each only where it
 * applies. */
static int print_made(struct cli *c, const struct made *made, struct err *err)
{
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
	out_batches(o, made);
	cli_out_replay(o, &made->report);
	/* Rates on the logical digraph say nothing about the physical one. */
	if (coll_kind_of(s) == COLL_ALLTOALL && !made->logical) {
		cli_out_flow(c, o, &made->flow);
	}
	if (coll_has_root(coll_kind_of(s))) {
		out_rooted(c, o, made);
	} else if (strcmp(made->algorithm, "late") == 0) {
		out_bandwidth_gap(c, o, &made->report);
	}
	if (made->wants_time) {
		r = cli_out_cost(c, o, s, &made->report, &made->cost, err);
	}
	if (made->bfb_bound > 0 && made->batches <= 1) {
		cli_out_ns(c, o, "breadth_first_bound", made->bfb_bound);
	}
	if (path) {
		out_str(o, "file", path);
	}
	if (r) {
		out_free(o);
		return r;
	}
	return cli_print(o, err);
}

int cmd_schedule_make(struct cli *c, struct err *err)
{
	const char *path = cli_opt(c, "output");
	struct made made = { .batches = 1 };
	int r;

	coll_report_init(&made.report);
	r = synthesise(c, &made, err);
	if (r == 0 && !made.sched) {
		r = print_rate(c, &made, err);
		goto out;
	}
	if (r == 0 && path) {
		r = cli_write_schedule(made.sched, path, err);
	}
	if (r == 0) {
		r = print_made(c, &made, err);
	}
out:
	coll_report_fini(&made.report);
	coll_free(made.sched);
	coll_free(made.logical);
	cli_free_physical(&made.physical);
	free(made.flow.exact);
	free(made.topology);
	return r;
}
