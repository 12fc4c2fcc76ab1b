/*
 * A job on optical switches: which digraph, which schedule, which circuits.
 *
 * A topology that is given is built and scheduled by the algorithm that is
 * asked for. With "auto" it is the fastest of the finder's candidates that the
 * switches can wire: the best digraph is of no use when its circuits cannot be
 * made. When none of the first few can be, the error is that of the fastest.
 * Every schedule is verified before its time is compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/bfb.h"
#include "collective/finder/finder.h"
#include "collective/flow/flow.h"
#include "controller/plan/private.h"
#include "lib/base/buf.h"
#include "lib/base/vec.h"

/* How many candidates are scheduled in full; the rest is ranked by distance
 * only. */
#define AUTO_SCHEDULED 6
/* How near an all-to-all's flow comes to its bound, or when it stops. */
#define FLOW_GAP 1e-3
#define FLOW_PASSES 500
/* How many of the finder's frontier are scheduled: those that promise the
 * least time. */
#define AUTO_FOUND 2
/* Of how many digraphs an all-to-all's rate is proven. */
#define AUTO_SOLVED 6
/* How many digraphs that the switches cannot wire are given up before the job
 * is. */
#define AUTO_REFUSED 8
/* Batches that overlap multiply transfers: up to so many in all. */
#define BATCH_TRANSFERS (1 << 18)

/* A digraph that could serve, with its rank among the others. */
struct topology_candidate {
	char *expr;
	int diameter;
	int64_t distance_sum;
};

struct candidates {
	VEC(struct topology_candidate) list;
	int n, degree;
	bool symmetric;		/* duplex circuits need both directions */
	VEC(char *) refused;	/* names of those that the switches cannot
				 * wire */
};

/* The sum of all distances, and the diameter: the measure by which candidates
 * are ordered before any is scheduled. O(n * m). */
static int sum_distances(const struct topo *t, struct topology_candidate *c, struct err *err)
{
	int n = topo_n(t);
	int32_t *dist = malloc(n * sizeof(*dist));

	if (!dist) {
		return err_nomem(err);
	}
	for (int s = 0; s < n; s++) {
		topo_bfs(t, s, dist);
		for (int v = 0; v < n; v++) {
			c->distance_sum += dist[v];
			c->diameter = dist[v] > c->diameter ? dist[v]
							    : c->diameter;
		}
	}
	free(dist);
	return 0;
}

/* Parses and ranks an expression; drops it when it is not for n nodes of
 * this degree, not connected, or one-way where both ways are needed. */
static int consider(struct candidates *all, struct err *err, const char *fmt,
		    ...) __attribute__((format(printf, 3, 4)));

static int consider(struct candidates *all, struct err *err, const char *fmt, ...)
{
	struct topology_candidate c = { 0 };
	struct buf text = { 0 };
	struct topo *t = NULL;
	va_list ap;
	int rc = 0;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	c.expr = buf_steal(&text);
	if (!c.expr) {
		return err_nomem(err);
	}
	if (topo_parse(c.expr, &t, NULL, NULL) || topo_n(t) != all->n ||
	    topo_max_degree(t) > all->degree || topo_diameter(t) < 0 ||
	    (all->symmetric && !topo_is_symmetric(t))) {
		free(c.expr);
	} else {
		rc = sum_distances(t, &c, err);
		if (rc == 0 && vec_push(&all->list, c)) {
			rc = err_nomem(err);
		}
		if (rc) {
			free(c.expr);
		}
	}
	topo_free(t);
	return rc;
}

static int consider_circulants(struct candidates *all, struct err *err)
{
	int half = all->n / 2, rc = 0;

	if (all->degree < 4) {
		return 0;
	}
	/* Offset 1 or two coprime offsets span the ring; the best known
	 * diameters of degree four appear among these. */
	for (int a = 1; a <= half && a <= 8 && rc == 0; a++) {
		for (int b = a + 1; b <= half && b <= 64 && rc == 0; b++) {
			rc = consider(all, err, "C(%d,{%d,%d})", all->n, a, b);
		}
	}
	return rc;
}

/* Tori of two and three dimensions with n nodes, each once. */
static int consider_tori(struct candidates *all, struct err *err)
{
	int n = all->n, rc = 0;

	for (int a = 2; a * a <= n && rc == 0; a++) {
		if (n % a) {
			continue;
		}
		rc = consider(all, err, "Torus(%d,%d)", a, n / a);
		for (int b = a; b * b <= n / a && rc == 0; b++) {
			if (n / a % b == 0) {
				rc = consider(all, err, "Torus(%d,%d,%d)", a, b, n / a / b);
			}
		}
	}
	return rc;
}

/* Families in which a digraph of this size may be found; consider() drops what
 * does not fit, such as a hypercube unless n is a power of two. */
static int gather_candidates(struct candidates *all, struct err *err)
{
	int n = all->n, rc, k = 0;

	while ((1 << k) < n) {
		k++;
	}
	if ((rc = consider(all, err, "K(%d)", n)) || (rc = consider(all, err, "K(%d,%d)", n / 2,
								    n - n / 2)) ||
	    (rc = consider(all, err, "Hypercube(%d)", k)) || (rc = consider(all, err, "Ring(%d)",
									    n)) ||
	    (rc = consider_tori(all, err)) || (rc = consider_circulants(all, err)) ||
	    (rc = consider(all, err, "GenKautz(%d,%d)", all->degree, n))) {
		return rc;
	}
	return consider(all, err, "UniRing(%d,%d)", all->degree, n);
}

/* The shortest distances first; between equals the text decides, so that the
 * order is always the same. */
static int by_distance(const void *a, const void *b)
{
	const struct topology_candidate *x = a, *y = b;

	if (x->distance_sum != y->distance_sum) {
		return x->distance_sum < y->distance_sum ? -1 : 1;
	}
	if (x->diameter != y->diameter) {
		return x->diameter - y->diameter;
	}
	return strcmp(x->expr, y->expr);
}

/* Of the ports that have a fibre. A step takes as long as its slowest link. */
static int64_t slowest_port_bps(const struct model_fabric *f, const struct model_job *job)
{
	int64_t least = INT64_MAX;

	for (int r = 0; r < job->n_hosts; r++) {
		const struct model_host *h = &f->hosts[job->hosts[r]];

		for (int p = 0; p < h->n_ports; p++) {
			const struct model_port *port = &f->ports[h->first_port + p];

			if (port->tx_device >= 0 && port->rate_bps < least) {
				least = port->rate_bps;
			}
		}
	}
	return least;
}

int64_t plan_job_link_bps(const struct model_fabric *f, const struct plan_job *pj)
{
	return pj->unit_bps > 0 ? pj->unit_bps : slowest_port_bps(f, &f->jobs[pj->job]);
}

static struct coll_cost cost_of(const struct plan_ctx *ctx, const struct plan_job *pj)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];

	return (struct coll_cost){
		.alpha_ns = job->alpha_ns > 0 ? job->alpha_ns : 0,
		.retune_ns = plan_light_change_ns(ctx, job),
		.link_bps = plan_job_link_bps(ctx->fabric, pj),
		.size_bytes = job->size_bytes,
	};
}

int plan_time(const struct plan_ctx *ctx, const struct plan_job *pj,
	      const struct coll_sched *sched, struct coll_report *report,
	      int64_t *time_ns, int64_t *bound_ns, struct err *err)
{
	struct coll_cost cost = cost_of(ctx, pj);
	int rc = coll_verify(sched, report, err);

	if (rc) {
		return rc;
	}
	return coll_time(sched, report, &cost, time_ns, bound_ns, err);
}

int plan_time_job(const struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	int rc = plan_time(ctx, pj, pj->sched, &pj->report, &pj->time_ns, &pj->bound_ns, err);

	if (rc) {
		return rc;
	}
	pj->gap = pj->bound_ns > 0
			  ? (double)pj->time_ns / (double)pj->bound_ns - 1
			  : 0;
	return 0;
}

/* A count of passes is the only limit: the same plan anywhere. */
static int synthesise_all_to_all(const struct topo *topo, const struct plan_job *pj,
				 const struct topo *before, const bool *dropped,
				 struct mcf **flow_out, struct coll_sched **out, struct err *err)
{
	struct mcf_options flow = { .gap = FLOW_GAP,
				    .max_passes = FLOW_PASSES };
	struct mcf_sched_options opt = {
		.flow = flow, .loss = MCF_SCHED_LOSS,
		.before = before ? pj->flow : NULL, .before_topo = before,
		.dropped = dropped, .kept = flow_out,
	};
	struct mcf_steps_options steps = { .flow = flow,
					   .loss = MCF_SCHED_LOSS };
	struct mcf_steps_info info;

	if (strcmp(pj->algorithm, "tsmcf") == 0) {
		return mcf_steps(topo, &steps, out, &info, err);
	}
	mcf_form_parse(pj->algorithm, &opt.form);
	mcf_paths_parse(pj->algorithm, &opt.paths);
	opt.max_chunks = opt.paths == MCF_PATHS_SINGLE || opt.paths == MCF_PATHS_SHORTEST;
	return mcf_schedule(topo, &opt, out, NULL, err);
}

/* All-to-all from a flow, the others breadth first. */
int plan_synthesise(const struct model_job *job, struct plan_job *pj, struct topo *topo,
		    struct err *err)
{
	int rc;

	pj->algorithm = job->algorithm;
	if (strcmp(pj->algorithm, "auto") == 0) {
		pj->algorithm = job->collective == COLL_ALLTOALL ? "mcf"
								 : "bfb";
	}
	if (job->collective != COLL_ALLTOALL) {
		return coll_bfb(job->collective, topo, &pj->sched, err);
	}
	rc = synthesise_all_to_all(topo, pj, NULL, NULL, &pj->flow, &pj->sched, err);
	topo_free(topo);
	return rc;
}

/* *to becomes *from, which is not to be used again; what *to owned is freed. */
static void move_result(struct plan_job *to, struct plan_job *from)
{
	coll_free(to->sched);
	mcf_free(to->flow);
	free(to->topology);
	coll_report_fini(&to->report);
	*to = *from;
}

/* Takes s over; it becomes the schedule of pj when it is faster. */
static int offer(const struct plan_ctx *ctx, struct plan_job *pj,
		 struct coll_sched *s, const char *algorithm, struct err *err)
{
	struct plan_job one = { .job = pj->job, .kept = pj->kept, .sched = s,
				.algorithm = algorithm };
	int rc;

	coll_report_init(&one.report);
	rc = plan_time_job(ctx, &one, err);
	if (!rc && one.time_ns < pj->time_ns) {
		coll_set_topo_name(s, pj->topology);
		one.topology = pj->topology;
		pj->topology = NULL;
		move_result(pj, &one);
	} else {
		coll_free(s);
		coll_report_fini(&one.report);
	}
	return rc;
}

/* The construction, where the digraph is an expansion that has one. */
static int try_expansion(const struct plan_ctx *ctx, struct plan_job *pj,
			 const char *expr, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	struct coll_sched *s = NULL;
	int rc = coll_expand(job->collective, expr, &s, NULL);

	if (rc) {
		return rc == WEFT_ENOMEM ? err_nomem(err) : 0;
	}
	return offer(ctx, pj, s, "expand", err);
}

/* Batches that overlap, where links are idle and a step has its price: with
 * steps for nothing, more batches would always be better. */
static int try_batches(const struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	struct coll_cost cost = cost_of(ctx, pj);
	struct coll_sched *s = NULL, *moved = NULL;
	int64_t n = 0, most;
	int batches, rc;

	coll_xfers(pj->sched, &n);
	n *= topo_group_order(coll_group(pj->sched));
	most = n > 0 ? BATCH_TRANSFERS / n : 0;
	if (cost.alpha_ns == 0 || pj->report.bandwidth_optimal || most < 2) {
		return 0;
	}
	rc = coll_pipeline_best(pj->sched, &cost,
				most < COLL_MAX_BATCHES ? (int)most
							: COLL_MAX_BATCHES,
				&batches, err);
	if (!rc && batches > 1) {
		rc = coll_pipeline(pj->sched, batches, &s, err);
		if (rc == 0 && (rc = coll_tighten_steps(s, &moved, err)) == 0) {
			rc = offer(ctx, pj, moved, pj->algorithm, err);
		}
		coll_free(s);
	}
	/* Never an error of its own, but for memory. */
	return rc == WEFT_ENOMEM ? rc : 0;
}

/* What `auto` tries beside plain breadth-first broadcast. */
static int try_others(const struct plan_ctx *ctx, struct plan_job *pj,
		      const char *expr, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	int rc;

	if (strcmp(job->algorithm, "auto") != 0 || job->collective == COLL_ALLTOALL) {
		return 0;
	}
	rc = try_expansion(ctx, pj, expr, err);
	if (rc) {
		return rc;
	}
	return try_batches(ctx, pj, err);
}

int plan_reschedule(const struct model_fabric *f, const struct plan_job *pj, const bool *dropped,
		    struct coll_sched **out, struct err *err)
{
	const struct model_job *job = &f->jobs[pj->job];
	const char *algorithm;
	struct topo *t;
	int rc;

	if (coll_is_embedded(pj->sched)) {
		return plan_embed(f, pj, coll_physical(pj->sched), dropped, out, &algorithm, err);
	}
	rc = plan_copy_alive(coll_topo(pj->sched), dropped, &t, err);
	if (rc) {
		return rc;
	}
	if (job->collective != COLL_ALLTOALL) {
		return coll_bfb(job->collective, t, out, err);
	}
	rc = synthesise_all_to_all(t, pj, coll_topo(pj->sched), dropped, NULL, out, err);
	topo_free(t);
	return rc;
}

/* Schedules the job on one digraph. On failure pj holds no schedule. */
static int schedule_on(const struct plan_ctx *ctx, struct plan_job *pj,
		       const char *expr, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	struct topo *topo = NULL;
	char *name = NULL;
	int rc = topo_parse(expr, &topo, &name, err);

	if (rc) {
		return rc;
	}
	if (topo_n(topo) != job->n_hosts) {
		rc = err_set(err, WEFT_EINVAL, "topology %s has %d nodes, "
			     "the job has %d", name, topo_n(topo),
			     job->n_hosts);
		topo_free(topo);
		free(name);
		return rc;
	}
	rc = plan_synthesise(job, pj, topo, err);
	if (rc) {
		free(name);
		return err_wrap(err, "topology %s", expr);
	}
	coll_set_topo_name(pj->sched, name);
	pj->topology = name;
	rc = plan_time_job(ctx, pj, err);
	if (rc == 0) {
		rc = try_others(ctx, pj, expr, err);
	}
	if (rc) {
		coll_free(pj->sched);
		mcf_free(pj->flow);
		free(pj->topology);
		pj->sched = NULL;
		pj->flow = NULL;
		pj->topology = NULL;
	}
	return rc;
}

/* Ports of the job's poorest rank, and whether any circuit is duplex. */
static void port_budget(const struct plan_ctx *ctx, const struct model_job *job, int *degree,
			bool *duplex)
{
	const struct model_fabric *f = ctx->fabric;

	*degree = INT32_MAX;
	*duplex = false;
	for (int r = 0; r < job->n_hosts; r++) {
		const struct model_host *h = &f->hosts[job->hosts[r]];
		int tx, rx;

		plan_usable_ports(ctx, job, r, &tx, &rx);
		tx = rx < tx ? rx : tx;
		*degree = tx < *degree ? tx : *degree;
		for (int p = 0; p < h->n_ports; p++) {
			int dev = f->ports[h->first_port + p].tx_device;

			*duplex |= dev >= 0 && f->devices[dev].any_to_any;
		}
	}
}

static bool is_refused(const struct candidates *all, const char *name)
{
	for (size_t i = 0; i < all->refused.n; i++) {
		if (strcmp(all->refused.v[i], name) == 0) {
			return true;
		}
	}
	return false;
}

/* Schedules one digraph and keeps it when it is the fastest so far. */
static int try_expression(const struct plan_ctx *ctx, struct plan_job *pj,
			  const struct candidates *all, const char *expr, struct err *err)
{
	struct plan_job one = { .job = pj->job, .kept = pj->kept };
	int rc;

	coll_report_init(&one.report);
	rc = schedule_on(ctx, &one, expr, err);
	if (rc) {
		coll_report_fini(&one.report);
		return rc;
	}
	if (!is_refused(all, one.topology) && (!pj->sched || one.time_ns < pj->time_ns)) {
		move_result(pj, &one);
	} else {
		coll_free(one.sched);
		mcf_free(one.flow);
		free(one.topology);
		coll_report_fini(&one.report);
	}
	return 0;
}

/* Schedules the first few of the ordered families and keeps the fastest. */
static int try_candidates(const struct plan_ctx *ctx, struct plan_job *pj,
			  const struct candidates *all, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < all->list.n && i < AUTO_SCHEDULED && rc == 0; i++) {
		rc = try_expression(ctx, pj, all, all->list.v[i].expr, err);
	}
	return rc;
}

/* What the finder promises for a point, in ns. */
static double promised_ns(const struct plan_ctx *ctx, const struct model_job *job, int degree,
			  const struct coll_point *p)
{
	double alpha = job->alpha_ns > 0 ? (double)job->alpha_ns : 0;
	double bps = (double)slowest_port_bps(ctx->fabric, job) * degree;

	return p->steps * alpha + (double)p->num / (double)p->den *
				  (double)job->size_bytes * 8e9 / bps;
}

/* The points of the finder's frontier that promise most, when that is less
 * than what is scheduled already takes. Never an error of its own: where the
 * finder knows nothing, the families stand. */
static int try_frontier(const struct plan_ctx *ctx, struct plan_job *pj,
			const struct candidates *all, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	struct coll_query q = { .n = all->n, .degree = all->degree,
				.bidirectional = all->symmetric, .kind = job->collective };
	struct coll_frontier f;
	int rc = coll_find(&q, true, &f, NULL);

	if (rc) {
		coll_frontier_fini(&f);
		return rc == WEFT_ENOMEM ? err_nomem(err) : 0;
	}
	for (int k = 0; k < AUTO_FOUND && rc == 0 && f.points.n > 0; k++) {
		struct coll_point *best = f.points.v;

		for (size_t i = 1; i < f.points.n; i++) {
			if (promised_ns(ctx, job, q.degree, &f.points.v[i]) <
			    promised_ns(ctx, job, q.degree, best)) {
				best = &f.points.v[i];
			}
		}
		if (pj->sched && promised_ns(ctx, job, q.degree, best) >= (double)pj->time_ns) {
			break;
		}
		rc = try_expression(ctx, pj, all, best->expr, err);
		free(best->expr);
		*best = f.points.v[--f.points.n];
	}
	coll_frontier_fini(&f);
	return rc;
}

/* The same for all-to-all: the digraphs of the best proven rates. */
static int try_rates(const struct plan_ctx *ctx, struct plan_job *pj,
		     const struct candidates *all, struct err *err)
{
	struct coll_flow_query q = {
		.n = all->n, .degree = all->degree,
		.bidirectional = all->symmetric, .most = AUTO_SOLVED,
		.flow = { .gap = FLOW_GAP, .max_passes = FLOW_PASSES },
	};
	struct coll_flow_list l;
	int rc = coll_find_flow(&q, &l, NULL), left = AUTO_FOUND;

	if (rc) {
		rc = rc == WEFT_ENOMEM ? err_nomem(err) : 0;
	}
	for (size_t i = 0; i < l.points.n && left > 0 && rc == 0; i++) {
		if (!is_refused(all, l.points.v[i].expr)) {
			/* One that cannot be scheduled is passed over. */
			rc = try_expression(ctx, pj, all, l.points.v[i].expr, NULL);
			rc = rc == WEFT_ENOMEM ? err_nomem(err) : 0;
			left--;
		}
	}
	coll_flow_list_fini(&l);
	return rc;
}

/* The fastest schedule among the families that the ports allow, less those
 * refused. */
static int choose_topology(const struct plan_ctx *ctx, struct plan_job *pj,
			   const struct candidates *all, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	int rc = try_candidates(ctx, pj, all, err);

	if (rc == 0) {
		rc = job->collective == COLL_ALLTOALL
			     ? try_rates(ctx, pj, all, err)
			     : try_frontier(ctx, pj, all, err);
	}
	if (rc == 0 && !pj->sched) {
		rc = err_set(err, WEFT_EINFEASIBLE,
			     "no topology for %d hosts with %d usable ports "
			     "each", all->n, all->degree);
	}
	return rc;
}

int plan_find_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];

	return plan_has_trunks(ctx, job) ? plan_trunk_circuits(ctx, pj, err)
					 : plan_circuits(ctx, pj, err);
}

/* Gives the digraph of pj up, which has no circuits. */
static int refuse(struct candidates *all, struct plan_job *pj, struct err *err)
{
	struct plan_job none = { .job = pj->job, .kept = pj->kept };

	if (vec_push(&all->refused, pj->topology)) {
		return err_nomem(err);
	}
	pj->topology = NULL;
	coll_report_init(&none.report);
	move_result(pj, &none);
	return 0;
}

/* What a search for circuits may have taken before it failed is given back. */
static int try_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	size_t ports = (size_t)ctx->fabric->n_ports + 1;
	size_t trunks = (size_t)ctx->fabric->n_trunks + 1;
	struct plan_ctx old = { .tx_taken = malloc(ports),
				.rx_taken = malloc(ports),
				.trunk_taken = malloc(trunks) };
	int rc = old.tx_taken && old.rx_taken && old.trunk_taken
			 ? 0 : err_nomem(err);

	if (!rc) {
		memcpy(old.tx_taken, ctx->tx_taken, ports);
		memcpy(old.rx_taken, ctx->rx_taken, ports);
		memcpy(old.trunk_taken, ctx->trunk_taken, trunks);
		rc = plan_find_circuits(ctx, pj, err);
		if (rc) {
			memcpy(ctx->tx_taken, old.tx_taken, ports);
			memcpy(ctx->rx_taken, old.rx_taken, ports);
			memcpy(ctx->trunk_taken, old.trunk_taken, trunks);
		}
	}
	free(old.tx_taken);
	free(old.rx_taken);
	free(old.trunk_taken);
	return rc;
}

/* The fastest that the switches can wire. When they can wire none of the first
 * few, the error is that of the fastest. */
static int plan_auto(struct plan_ctx *ctx, struct plan_job *pj,
		     struct candidates *all, struct err *err)
{
	struct err first = { 0 }, why;
	int rc = WEFT_EINFEASIBLE;

	for (int k = 0; k < AUTO_REFUSED && rc == WEFT_EINFEASIBLE; k++) {
		err_clear(&why);
		rc = choose_topology(ctx, pj, all, &why);
		if (rc == 0) {
			rc = try_circuits(ctx, pj, &why);
		}
		first = k == 0 ? why : first;
		if (rc == WEFT_EINFEASIBLE && !pj->sched) {
			break;
		}
		if (rc == WEFT_EINFEASIBLE && refuse(all, pj, &why)) {
			rc = WEFT_ENOMEM;
		}
	}
	if (rc && err) {
		*err = rc == WEFT_EINFEASIBLE ? first : why;
	}
	return rc;
}

/* `topology: auto`: gathers and orders the families, then plans the fastest
 * that the switches can wire. */
static int plan_any_topology(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	struct candidates all = { .n = job->n_hosts };
	int rc;

	port_budget(ctx, job, &all.degree, &all.symmetric);
	rc = gather_candidates(&all, err);
	if (!rc && all.list.n > 0) {
		qsort(all.list.v, all.list.n, sizeof(*all.list.v), by_distance);
	}
	if (rc == 0) {
		rc = plan_auto(ctx, pj, &all, err);
	}
	for (size_t i = 0; i < all.list.n; i++) {
		free(all.list.v[i].expr);
	}
	for (size_t i = 0; i < all.refused.n; i++) {
		free(all.refused.v[i]);
	}
	vec_fini(&all.list);
	vec_fini(&all.refused);
	return rc;
}

int plan_switched_job(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	int rc;

	if (coll_has_root(job->collective)) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "%s on switches: not supported, only allgather, "
			       "reduce-scatter, allreduce and all-to-all",
			       coll_kind_name(job->collective));
	}
	if (plan_host_with_ranks(ctx->fabric, job)) {
		return plan_server_job(ctx, pj, err);
	}
	if (strcmp(job->topology, "auto") == 0) {
		return plan_any_topology(ctx, pj, err);
	}
	rc = schedule_on(ctx, pj, job->topology, err);
	if (rc) {
		return rc;
	}
	return plan_find_circuits(ctx, pj, err);
}
