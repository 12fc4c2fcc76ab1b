/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-reduce in as many steps as the digraph is wide, for vectors that are short beside a step.
 *
 * What every rank contributes, its whole vector, goes to all others as shards do in an all-gather
 * by breadth-first broadcast, and is summed wherever it comes by: a rank sends its own in the first
 * step and forwards those of others after that. That is half of the steps of a reduce-scatter and
 * an all-gather, and N times the T_B of the all-gather.
 *
 * The all-gather of a group's first terminals is moved by all of its elements, and of the sums
 * those of the first terminals are kept: so the schedule is compact where the all-gather is.
 *
 * Where nodes forward one step is enough: every rank sends its vector to each other over all
 * shortest paths, or where these are too many over one.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "collective/bfb/bfb.h"
#include "collective/make/private.h"
#include "lib/base/alloc.h"

/* Transfers that are kept: of one by name, and of one that "auto", a job or the finder makes. */
#define MAX_NAMED (INT64_C(1) << 24)
#define MAX_AUTO (INT64_C(1) << 22)
#define MAX_AUTO_DIRECT (INT64_C(1) << 20)	/* its arcs are as many */

/* An empty all-reduce on what the all-gather is on, compact by the same group. */
static int make_empty(const struct coll_sched *gather, struct coll_sched **out, struct err *err)
{
	struct topo_group *group = NULL;
	struct topo *copy = NULL;
	int rc = topo_copy(coll_topo(gather), &copy, err);

	if (rc || (rc = coll_new(COLL_ALLREDUCE, copy, coll_chunks(gather), coll_ports(gather), 0,
				 out, err)) ||
	    (rc = topo_group_copy(coll_group(gather), &group, err))) {
		return rc;
	}
	return coll_set_group(*out, group, err);
}

/* The transfers of sum `shard` that those of the all-gather become. */
static int add_sum(const struct coll_sched *all, int shard, struct coll_sched *out,
		   struct err *err)
{
	const struct topo_arc *arcs = topo_arcs(coll_topo(all));
	int64_t n;
	const struct coll_xfer *gather = coll_xfers(all, &n);
	int rc = 0;

	for (int64_t i = 0; i < n && rc == 0; i++) {
		struct coll_xfer x = gather[i];
		bool own = arcs[x.arc].src == x.origin;

		x.op = own ? COLL_OP_REDUCE : COLL_OP_FORWARD;
		x.dest = own ? COLL_NO_DEST : x.origin;
		x.origin = shard;
		rc = coll_add(out, &x, err);
	}
	return rc;
}

static int add_sums(const struct coll_sched *gather, struct coll_sched *out, struct err *err)
{
	struct coll_sched *all;
	int rc = coll_unfold(gather, &all, err);

	if (rc) {
		return rc;
	}
	for (int shard = 0; shard < coll_ranks(out) && rc == 0; shard++) {
		if (topo_group_first(coll_group(out), shard) == shard) {
			rc = add_sum(all, shard, out, err);
		}
	}
	coll_free(all);
	return rc ? rc : coll_finish(out, err);
}

/* Transfers that may be kept. */
static int64_t max_kept(const struct coll_make_query *q, int64_t by_auto)
{
	return q->algorithm && q->max_transfers == 0 ? MAX_NAMED : by_auto;
}

/* kept: transfers of a schedule. */
static int check_size(const struct coll_make_query *q, int64_t kept, int64_t by_auto,
		      struct err *err)
{
	int64_t most = max_kept(q, by_auto);

	return kept <= most ? 0 : err_set(err, WEFT_ELIMIT, "algorithm one-shot: %lld transfers "
					  "are too many: at most %lld", (long long)kept,
					  (long long)most);
}

/* Each vector by itself. */
static int predict_plain(const struct coll_make_query *q, struct coll_prediction *out,
			 struct err *err)
{
	mpq_t factor;
	int rc;

	mpq_init(factor);
	rc = coll_bfb_factor(COLL_ALLGATHER, q->topo, &out->steps, factor, err);
	if (rc == 0) {
		out->num = mpz_get_si(mpq_numref(factor)) * topo_ranks(q->topo);
		out->den = mpz_get_si(mpq_denref(factor));
		out->ports = make_ports(q->topo);
		make_time_prediction(q->cost, out);
	}
	mpq_clear(factor);
	return rc;
}

/* Jobs have late takers in no extra steps, and sums in any. */
static struct merged_aim aim_of(const struct coll_make_query *q, double below_ns)
{
	int extra = q->extra_steps > 0 ? q->extra_steps : 0;

	if (q->cost && (q->extra_steps < 0 || q->max_transfers > 0)) {
		extra = INT_MAX;
	}
	return (struct merged_aim){ .cost = q->cost, .no_loops = q->fabric, .below_ns = below_ns,
				    .extra = extra, .max_rows = max_kept(q, MAX_AUTO) };
}

int coll_make_sums_time(const struct coll_make_query *q, double below_ns, double *time_ns,
			struct err *err)
{
	struct merged_aim aim = aim_of(q, below_ns);

	return make_merged_ns(q->topo, &aim, time_ns, err);
}

int coll_make_sums_min(const struct coll_make_query *q, double *time_ns, struct err *err)
{
	struct merged_aim aim = aim_of(q, 0);

	return make_merged_min_ns(q->topo, &aim, time_ns, err);
}

int make_predict_one_shot(const struct coll_make_query *q, struct coll_prediction *out,
			  struct err *err)
{
	int rc = predict_plain(q, out, err);
	double ns;

	if (!rc && q->cost && !q->no_merge &&
	    !coll_make_sums_time(q, out->time_ns, &ns, NULL) && ns < out->time_ns) {
		*out = (struct coll_prediction){ .time_ns = ns };
	}
	return rc;
}

/* Whether what takes so many steps and vectors over all links may take less time than the best so
 * far: of what switches copy or sum nothing is predicted. */
static bool may_gain_by(const struct coll_make_query *q, const struct coll_made *best,
			struct coll_prediction p)
{
	if (!q->cost || q->batches > 1) {
		return false;
	}
	if (q->fabric && coll_switches_can(q->fabric->topo, TOPO_CAN_COPY | TOPO_CAN_REDUCE)) {
		return make_is_above(q, best);
	}
	make_time_prediction(q->cost, &p);
	return p.time_ns < (double)best->time_ns &&
	       (double)best->time_ns > (double)best->bound_ns * MET(q);
}

static bool may_gain_plain(const struct coll_make_query *q, const struct coll_made *best)
{
	struct coll_prediction p;

	return predict_plain(q, &p, NULL) == 0 && may_gain_by(q, best, p);
}

/* Whether vectors by themselves load links no more: then they need no engine that merges. */
static bool is_plain_as_good(const struct coll_make_query *q, struct coll_sched *merged)
{
	struct coll_prediction p;
	struct coll_report r;
	bool as_good;

	coll_report_init(&r);
	as_good = coll_prove(merged, &r, NULL) == 0 && predict_plain(q, &p, NULL) == 0 &&
		  p.den > 0 && mpq_cmp_si(r.bandwidth_factor, p.num, (unsigned long)p.den) >= 0;
	coll_report_fini(&r);
	return as_good;
}

/* What merged sums have to be below: the best so far, and an algorithm on coordinates that comes
 * later. 0: nothing is known, or all that is offered is weighed elsewhere. */
static double below(const struct coll_make_query *q, const struct coll_made *best)
{
	double on_coordinates = HUGE_VAL;

	if (!q->cost || !best->sched ||
	    (q->fabric && coll_switches_can(q->fabric->topo,
					    TOPO_CAN_COPY | TOPO_CAN_REDUCE))) {
		return 0;
	}
	if (!q->algorithm && !q->fabric) {
		(void)coll_make_torus_time(q, &on_coordinates, NULL);
	}
	return fmin((double)best->time_ns, on_coordinates);
}

/* Step by step, over links, what goes the same way as one sum. */
static int offer_merged(const struct coll_make_query *q, const struct coll_algorithm *self,
			struct coll_made *best, struct err *err)
{
	struct merged_aim aim = aim_of(q, below(q, best));
	struct coll_made one = { .algorithm = self };
	int rc = make_merged(q->topo, &aim, &one.sched, err);

	if (!rc && !one.sched) {
		return 0;
	}
	if (!rc && is_plain_as_good(q, one.sched)) {
		rc = WEFT_EUNSUPPORTED;
	}
	if (rc) {
		coll_free(one.sched);
		return rc;
	}
	return make_offer(q, &one, best, err);
}

/* Step by step, over links, each vector by itself. */
static int offer_plain(const struct coll_make_query *q, const struct coll_algorithm *self,
			  struct coll_made *best, struct err *err)
{
	struct coll_made one = { .algorithm = self };
	struct coll_sched *gather = NULL;
	struct topo *copy = NULL;
	int64_t kept = 0;
	int rc;

	if (best->sched && !may_gain_plain(q, best)) {
		return 0;
	}
	if ((rc = topo_copy(q->topo, &copy, err)) == 0 &&
	    (rc = coll_bfb_cut(COLL_ALLGATHER, copy, 0, &gather, err)) == 0) {
		/* Each of the all-gather's stands for one of every sum. */
		coll_xfers(gather, &kept);
		(void)((rc = check_size(q, kept * coll_ranks(gather), MAX_AUTO, err)) ||
		       (rc = make_empty(gather, &one.sched, err)) ||
		       (rc = add_sums(gather, one.sched, err)));
	}
	coll_free(gather);
	if (rc) {
		coll_free(one.sched);
		return rc;
	}
	return make_offer(q, &one, best, err);
}

/* Merged, and each vector by itself where that may take less time, as where capacities differ. */
static int offer_links(const struct coll_make_query *q, const struct coll_algorithm *self,
		       struct coll_made *best, struct err *err)
{
	struct err why = { 0 };
	int merged, rc;

	if (!q->algorithm && best->sched &&
	    (!q->cost || q->batches > 1 ||
	     (double)best->time_ns <= (double)best->bound_ns * MET(q))) {
		return 0;
	}
	merged = q->no_merge ? WEFT_EUNSUPPORTED
		 : offer_merged(q, self, best, &why);
	if (merged && merged != WEFT_ELIMIT && merged != WEFT_EUNSUPPORTED) {
		if (err) {
			*err = why;
		}
		return merged;
	}
	rc = offer_plain(q, self, best, err);
	if (rc == WEFT_ELIMIT && !merged) {
		err_clear(err);
		return 0;
	}
	return rc;
}

/* ---- in one step --------------------------------------------------------- */

/* What it takes at least: all loads alike. HUGE_VAL: a rank cannot be reached. */
static double min_direct_ns(const struct coll_make_query *q, const struct topo_group *g)
{
	const struct topo *t = q->topo;
	const struct coll_cost *c = q->cost;
	int n = topo_n(t), far = 0;
	int32_t *dist = x_alloc((size_t)n, sizeof(*dist));
	double hops = 0, cap = 0, links = topo_m(t);

	for (int u = 0; u < n; u++) {
		if (topo_group_first(g, u) != u) {
			continue;
		}
		topo_bfs(t, u, dist);
		for (int v = 0; v < n; v++) {
			hops += dist[v] < 0 ? HUGE_VAL : (double)dist[v] * topo_group_order(g);
			far = dist[v] > far ? dist[v] : far;
		}
	}
	for (int a = 0; a < topo_m(t); a++) {
		cap += (double)topo_arc(t, a)->cap;
	}
	free(dist);
	return (double)c->alpha_ns + (double)c->hop_ns * far +
	       (double)c->message_ns * n * (n - 1.0) / links +
	       hops / cap * (double)c->size_bytes * 8e9 / (double)c->link_bps;
}

/* All to all, kinds of nodes as they are. */
static int make_complete(const struct topo *like, struct topo **out, struct err *err)
{
	int n = topo_n(like), rc = topo_new(n, out, err);

	for (int u = 0; u < n && rc == 0; u++) {
		topo_set_node(*out, u, TOPO_TERMINAL, topo_node_flags(like, u));
		for (int v = 0; v < n && rc == 0; v++) {
			rc = u == v ? 0 : topo_add_arc(*out, u, v, 1, 0, err);
		}
	}
	if (rc == 0) {
		topo_freeze(*out);
	}
	return rc;
}

/* ---- one shortest path a pair ---- */

/* Paths to all nodes from one, as the arcs that have carried least: those of an orbit carry the
 * same. */
struct direct_paths {
	const struct topo *t;
	struct topo *back;
	struct topo_action *orbits;
	int32_t *arc;		/* of t, by arc of back */
	int32_t *dist, *hops;	/* from the node at hand; a path */
	double *load;		/* by orbit, of an arc of it over its capacity */
	struct arrays arrays;
};

static int paths_init(struct direct_paths *p, const struct topo *t, const struct topo_group *g,
		      struct err *err)
{
	int rc;

	*p = (struct direct_paths){ .t = t };
	arrays_add(&p->arrays, p->arc, topo_m(t));
	arrays_add(&p->arrays, p->load, topo_m(t));
	arrays_add(&p->arrays, p->dist, topo_n(t));
	arrays_add(&p->arrays, p->hops, topo_n(t));
	rc = topo_transpose(t, &p->back, p->arc, err);
	return rc ? rc : topo_action_new(t, g, &p->orbits, err);
}

static void paths_fini(struct direct_paths *p)
{
	topo_action_free(p->orbits);
	topo_free(p->back);
	arrays_fini(&p->arrays);
}

/* The last arc of a shortest path to v. */
static int last_arc(const struct direct_paths *p, int v)
{
	int first, n = topo_out(p->back, v, &first), best = -1;

	for (int b = first; b < first + n; b++) {
		int a = p->arc[b], orbit = topo_action_orbit(p->orbits, a);

		if (p->dist[topo_arc(p->t, a)->src] == p->dist[v] - 1 &&
		    (best < 0 || p->load[orbit] <
					 p->load[topo_action_orbit(p->orbits, best)])) {
			best = a;
		}
	}
	return best;
}

/* Of a logical arc to v. */
static int add_path(struct direct_paths *p, int logical, int v, struct coll_sched *out,
		    struct err *err)
{
	int n = p->dist[v];

	for (int i = n - 1, at = v; i >= 0; i--) {
		int a = last_arc(p, at), orbit = topo_action_orbit(p->orbits, a);

		p->hops[i] = a;
		p->load[orbit] += 1 / ((double)topo_action_size(p->orbits, orbit) *
				       (double)topo_arc(p->t, a)->cap);
		at = topo_arc(p->t, a)->src;
	}
	return coll_add_route(out, &(struct coll_arc_route){ logical, 1, p->hops, n }, err);
}

static int route_paths(const struct topo *t, struct coll_sched *out, struct err *err)
{
	const struct topo *all = coll_topo(out);
	const struct topo_group *g = coll_group(out);
	struct topo *copy = NULL;
	struct direct_paths p;
	int rc = paths_init(&p, t, g, err);

	(void)(rc || (rc = topo_copy(t, &copy, err)) ||
	       (rc = coll_set_physical(out, copy, COLL_ROUTING_EXPLICIT, 0, err)));
	for (int u = 0; u < topo_n(t) && rc == 0; u++) {
		int first, n = topo_out(all, u, &first);

		topo_bfs(t, u, p.dist);
		for (int a = first; topo_group_first(g, u) == u && a < first + n && !rc; a++) {
			rc = add_path(&p, a, topo_arc(all, a)->dst, out, err);
		}
	}
	paths_fini(&p);
	return rc;
}

/* ---- in one step, all of it ---- */

/* On the complete digraph, which has routes over t where a path each is enough; g is taken
 * over. */
static int make_at_once(const struct topo *t, struct topo_group *g, bool paths,
			struct coll_sched **out, struct err *err)
{
	struct topo *all = NULL;
	int rc = make_complete(t, &all, err);

	if (rc || (rc = coll_new(COLL_ALLREDUCE, all, 1, 0, 0, out, err))) {
		topo_group_free(g);
		return rc;
	}
	rc = coll_set_group(*out, g, err);
	if (rc == 0 && paths) {
		rc = route_paths(t, *out, err);
	}
	for (int u = 0; u < topo_n(t) && rc == 0; u++) {
		for (int a = 0; topo_group_first(g, u) == u && a < topo_m(all) && rc == 0; a++) {
			rc = coll_add(*out, &(struct coll_xfer){ .arc = a, .origin = u,
								.dest = COLL_NO_DEST,
								.op = COLL_OP_REDUCE }, err);
		}
	}
	return rc ? rc : coll_finish(*out, err);
}

/* By all shortest paths, or by one a pair where these are too many, or each message costs. g is
 * taken over. */
static int embed_direct(const struct coll_make_query *q, struct topo_group *g,
			struct coll_sched **out, struct err *err)
{
	struct coll_sched *all = NULL;
	struct topo_group *again = NULL;
	struct topo *copy = NULL;
	int rc = WEFT_ELIMIT;

	if (q->cost->message_ns == 0) {
		(void)((rc = topo_group_copy(g, &again, err)) ||
		       (rc = make_at_once(q->topo, again, false, &all, err)) ||
		       (rc = topo_copy(q->topo, &copy, err)) ||
		       (rc = coll_embed(all, copy, COLL_ROUTING_MINIMAL_SPLIT, 0, out, err)));
		coll_free(all);
	}
	if (rc != WEFT_ELIMIT) {
		topo_group_free(g);
		return rc;
	}
	err_clear(err);
	rc = make_at_once(q->topo, g, true, out, err);
	if (rc) {
		coll_free(*out);
		*out = NULL;
	}
	return rc;
}

/* Where nodes forward. */
static int offer_direct(const struct coll_make_query *q, const struct coll_algorithm *self,
			struct coll_made *best, struct err *err)
{
	struct coll_made one = { .algorithm = self, .is_physical = true };
	struct topo_group *g = NULL;
	int64_t n = topo_n(q->topo), kept = n * (n - 1);
	int rc;

	if (!q->cost || !q->cost->forwards || q->links_only || q->fabric || q->batches > 1 ||
	    n != topo_ranks(q->topo)) {
		return 0;
	}
	if ((rc = topo_group_find(q->topo, &g, err))) {
		return rc;
	}
	kept *= g ? topo_group_orbits(g) : n;
	rc = check_size(q, kept, MAX_AUTO_DIRECT, err);
	if (rc || (best->sched && min_direct_ns(q, g) >= (double)best->time_ns)) {
		topo_group_free(g);
		return rc;
	}
	if ((rc = embed_direct(q, g, &one.sched, err))) {
		return rc;
	}
	coll_set_physical_name(one.sched, q->expr ? q->expr : "");
	return make_offer(q, &one, best, err);
}

int make_by_one_shot(const struct coll_make_query *q, const struct coll_algorithm *self,
		     struct coll_made *best, struct err *err)
{
	int links, rc;

	links = offer_links(q, self, best, err);
	if (links && links != WEFT_ELIMIT) {
		return links;
	}
	rc = offer_direct(q, self, best, links ? NULL : err);
	/* Where one of the two is too large, the other does. */
	if (best->sched && (rc == WEFT_ELIMIT || (links && !rc))) {
		err_clear(err);
		return 0;
	}
	return links ? links : rc;
}
