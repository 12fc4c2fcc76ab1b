/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs on rings whose hosts have ranks inside, such as servers of eight GPUs.
 *
 * Light is planned for hosts as though each were one rank: its node of the ring serves all of its
 * ranks, and what leaves a host may come from any. What a host owns is cut among its ranks: rank j
 * sends and receives on the ring what the ranks j of all hosts own, over the lightpaths of its
 * host, so each of them carries a part for each rank, and the ring's steps and light are those of
 * hosts of one rank. Within a host, by schedules for what is inside it,
 *
 *   - sums are made before they first leave, and pieces of an all-to-all are brought to the rank
 *     that has the number of their receiver: as late as can be, so that steps share that work,
 *   - what came spreads, as soon as it has come, while the ring goes on.
 *
 * So with D steps on the ring and d inside a host it takes D + d steps, or D + 2 d where data
 * is collected and spreads. The root of a broadcast sends all itself. What a host takes in and
 * gives out is what it would as one rank, so the ring's bound holds for its ranks, too; and what
 * all ranks together take in comes over the arcs inside and all light.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/make/make.h"
#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/vec.h"

/* Chunks of a schedule inside a host; transfers of all. */
#define MAX_INSIDE_CHUNKS 128
#define MAX_TRANSFERS (1 << 25)

/* What runs inside a host before its data leaves, and when other data has come. */
enum { COLLECT, SPREAD, PHASES };

/* A schedule inside hosts that are alike. */
struct inside_part {
	struct coll_sched *sched;
	bool shared;		/* it is an earlier host's */
	int first_arc;		/* number of its first logical arc, as they were added */
};

struct ring_servers {
	const struct plan_ctx *ctx;
	const struct plan_job *pj;
	const struct model_job *job;
	const struct coll_sched *hosts;	/* the schedule of hosts */
	int n, each, chunks;		/* hosts, ranks of each, chunks of hosts' shards */
	int64_t unit;			/* chunks of ranks' shards in each of these */
	int begin;			/* the step in which the ring begins */
	struct job_digraph *digraph;
	const struct topo *physical;
	int64_t unit_bps;
	struct inside_part *parts[PHASES];	/* [n], sched NULL: there is none */
	int first_arc;			/* number of the first logical arc on the ring */
	int32_t *arcs;			/* logical arcs by these numbers */
	struct coll_sched *out;
	/* Of the shard at hand, by host and chunk: the step in which the ring first takes it there,
	 * or behind the last one, and that behind which it has brought it. */
	int32_t *leaves, *comes;
	struct arrays arrays;
};

/* ---- inside ---- */

/* The collective inside a host, below 0: none. */
static int kind_inside(const struct ring_servers *s, int phase, int host)
{
	switch (s->job->collective) {
	case COLL_REDUCE_SCATTER: return phase == COLLECT ? COLL_REDUCE_SCATTER : -1;
	case COLL_ALLREDUCE: return phase == COLLECT ? COLL_REDUCE_SCATTER : COLL_ALLGATHER;
	case COLL_ALLTOALL: return phase == COLLECT ? COLL_ALLTOALL : -1;
	case COLL_BROADCAST:
		return phase == COLLECT ? -1 : host == 0 ? COLL_BROADCAST : COLL_ALLGATHER;
	default: return phase == COLLECT ? -1 : COLL_ALLGATHER;
	}
}

/* The best one, or one of few chunks. */
static int make_inside(const struct ring_servers *s, const struct topo *inside,
		       const struct optree_params *p, enum coll_kind kind,
		       struct coll_sched **out, struct err *err)
{
	struct coll_cost cost = { .alpha_ns = p->alpha_ns, .link_bps = MODEL_INSIDE_BPS,
				  .size_bytes = s->job->size_bytes };
	struct coll_fabric fabric = { .topo = (struct topo *)inside, .name = (char *)"",
				      .routing = COLL_ROUTING_MINIMAL_SPLIT };
	struct coll_make_query q;
	struct coll_made made;
	struct topo *seen;
	int rc = coll_terminals_see(inside, &seen, err);

	if (rc) {
		return rc;
	}
	q = coll_make_job(kind, NULL, seen, &cost);
	q.fabric = &fabric;
	q.physical = inside;
	q.batches = 1;
	rc = coll_make(&q, &made, err);
	if (!rc && coll_chunks(made.sched) > MAX_INSIDE_CHUNKS) {
		q.algorithm = coll_algorithm_find(kind == COLL_ALLTOALL ? "single-path" : "bfb",
						  kind);
		q.chunks = kind == COLL_ALLTOALL ? 0 : MAX_INSIDE_CHUNKS;
		coll_made_fini(&made);
		rc = coll_make(&q, &made, err);
	}
	if (!rc) {
		rc = coll_unfold(made.sched, out, err);
	}
	coll_made_fini(&made);
	topo_free(seen);
	return rc;
}

/* The part of an earlier host that has the same inside, or NULL. */
static const struct inside_part *find_alike(const struct ring_servers *s, int phase, int host)
{
	const struct model_host *hosts = s->ctx->fabric->hosts;
	const char *inside = hosts[s->job->hosts[host]].inside;

	for (int i = 0; i < host; i++) {
		if (kind_inside(s, phase, i) == kind_inside(s, phase, host) &&
		    strcmp(hosts[s->job->hosts[i]].inside, inside) == 0) {
			return &s->parts[phase][i];
		}
	}
	return NULL;
}

static int too_large(const struct ring_servers *s, struct err *err)
{
	return err_set(err, WEFT_ELIMIT, "%d hosts of %d ranks on a ring: more than %d transfers "
		       "or %d chunks", s->n, s->each, MAX_TRANSFERS, COLL_MAX_CHUNKS);
}

static int make_parts(struct ring_servers *s, const struct optree_params *p, struct err *err)
{
	int rc = 0;

	s->unit = 1;
	for (int i = 0; i < PHASES * s->n && !rc; i++) {
		int phase = i / s->n, host = i % s->n, kind = kind_inside(s, phase, host);
		struct inside_part *part = &s->parts[phase][host];
		const struct inside_part *alike = find_alike(s, phase, host);

		if (kind < 0 || s->each < 2) {
			continue;
		}
		part->shared = alike != NULL;
		if (alike) {
			part->sched = alike->sched;
		} else {
			rc = make_inside(s, plan_digraph_inside(s->digraph, host), p,
					 (enum coll_kind)kind, &part->sched, err);
		}
		if (!rc) {
			int chunks = coll_chunks(part->sched), steps = coll_steps(part->sched);

			s->unit *= chunks / rat_gcd(s->unit, chunks);
			s->begin = phase == COLLECT && steps > s->begin ? steps : s->begin;
			rc = s->chunks * s->unit > COLL_MAX_CHUNKS ? too_large(s, err) : 0;
		}
	}
	return rc;
}

/* ---- digraphs and routes ---- */

/* The rank that sends on the ring what the ranks j own: the root of a broadcast sends all. */
static int sender(const struct ring_servers *s, int host, int j)
{
	bool root = host == 0 && s->job->collective == COLL_BROADCAST;

	return plan_digraph_node(s->digraph, host, root ? 0 : j);
}

/* Logical arcs in the order in which they are added: by phase and host, then of each arc between
 * hosts those of its ranks. */
static int add_arcs(struct ring_servers *s, struct topo *t, struct err *err)
{
	const struct topo *outer = coll_topo(s->hosts);
	int n = 0, rc = 0;

	for (int i = 0; i < PHASES * s->n; i++) {
		struct inside_part *part = &s->parts[i / s->n][i % s->n];
		const struct topo *own = part->sched ? coll_topo(part->sched) : NULL;

		part->first_arc = n;
		for (int a = 0; own && a < topo_m(own) && !rc; a++, n++) {
			rc = topo_add_arc(t, plan_digraph_node(s->digraph, i % s->n,
							       topo_arc(own, a)->src),
					  plan_digraph_node(s->digraph, i % s->n,
							    topo_arc(own, a)->dst), 1, 0, err);
		}
	}
	s->first_arc = n;
	for (int a = 0; a < topo_m(outer) * s->each && !rc; a++) {
		const struct topo_arc *arc = topo_arc(outer, a / s->each);

		rc = topo_add_arc(t, sender(s, arc->src, a % s->each),
				  plan_digraph_node(s->digraph, arc->dst, a % s->each), 1, 0, err);
	}
	return rc;
}

/* Their numbers once they are sorted: by tail, and then as they were added. */
static void number_arcs(struct ring_servers *s, const int32_t *tails, const struct topo *t)
{
	int *next = x_new((size_t)topo_n(t), sizeof(*next));

	for (int u = 0; u < topo_n(t); u++) {
		topo_out(t, u, &next[u]);
	}
	arrays_add(&s->arrays, s->arcs, topo_m(t) + 1);
	for (int a = 0; a < topo_m(t); a++) {
		s->arcs[a] = next[tails[a]]++;
	}
	free(next);
}

static int make_logical(struct ring_servers *s, struct topo **out, struct err *err)
{
	struct topo *t;
	int32_t *tails;
	int rc = topo_new(s->n * s->each, &t, err);

	if (rc) {
		return rc;
	}
	rc = add_arcs(s, t, err);
	if (rc) {
		topo_free(t);
		return rc;
	}
	tails = x_alloc((size_t)topo_m(t) + 1, sizeof(*tails));
	for (int a = 0; a < topo_m(t); a++) {
		tails[a] = topo_arc(t, a)->src;
	}
	topo_freeze(t);
	number_arcs(s, tails, t);
	free(tails);
	*out = t;
	return 0;
}

/* The physical arc of one inside a host. */
static int arc_inside(const struct ring_servers *s, int host, int arc)
{
	const struct topo *inside = plan_digraph_inside(s->digraph, host);
	int tail = topo_arc(inside, arc)->src, own, first;

	topo_out(inside, tail, &own);
	topo_out(s->physical, plan_digraph_node(s->digraph, host, tail), &first);
	return first + arc - own;
}

/* A schedule inside a host has the routes that it was made with. */
static int route_inside(struct ring_servers *s, int phase, int host, struct err *err)
{
	const struct inside_part *part = &s->parts[phase][host];
	bool embedded = part->sched && coll_is_embedded(part->sched);
	int64_t n = !part->sched ? 0 : embedded ? coll_n_arc_routes(part->sched)
						: topo_m(coll_topo(part->sched));
	VEC(int32_t) hops = { 0 };
	int rc = 0;

	for (int64_t i = 0; i < n && !rc; i++) {
		int32_t arc = (int32_t)i;
		struct coll_arc_route r = embedded ? coll_arc_route(part->sched, i)
						   : (struct coll_arc_route){ arc, 1, &arc, 1 };

		hops.n = 0;
		for (int k = 0; k < r.n; k++) {
			vec_push(&hops, arc_inside(s, host, r.hops[k]));
		}
		r.arc = s->arcs[part->first_arc + r.arc];
		r.hops = hops.v;
		rc = coll_add_route(s->out, &r, err);
	}
	vec_fini(&hops);
	return rc;
}

/* The physical arc that follows those inside a host at a rank, and of an arc between hosts. */
static int arc_up(const struct ring_servers *s, int rank)
{
	int first, degree = topo_out(s->physical, rank, &first);

	return first + degree - 1;
}

static int arc_between(const struct ring_servers *s, int arc)
{
	const struct topo *outer = coll_topo(s->hosts);
	int tail = topo_arc(outer, arc)->src, own, first;

	topo_out(outer, tail, &own);
	topo_out(s->physical, plan_digraph_node(s->digraph, tail, -1), &first);
	return first + s->each + arc - own;
}

static int route_between(struct ring_servers *s, int arc, int j, struct err *err)
{
	const struct topo_arc *outer = topo_arc(coll_topo(s->hosts), arc);
	int down;
	int32_t hops[3] = { arc_up(s, sender(s, outer->src, j)), arc_between(s, arc) };

	topo_out(s->physical, plan_digraph_node(s->digraph, outer->dst, -1), &down);
	hops[2] = down + j;
	return coll_add_route(s->out, &(struct coll_arc_route){
		s->arcs[s->first_arc + arc * s->each + j], 1, hops, 3 }, err);
}

static int add_routes(struct ring_servers *s, struct err *err)
{
	int m = topo_m(coll_topo(s->hosts)), rc = 0;

	for (int i = 0; i < PHASES * s->n && !rc; i++) {
		rc = route_inside(s, i / s->n, i % s->n, err);
	}
	for (int i = 0; i < m * s->each && !rc; i++) {
		rc = route_between(s, i / s->each, i % s->each, err);
	}
	return rc;
}

/* ---- transfers ---- */

/* A shard of hosts: of origin, in an all-to-all for dest. */
struct host_shard {
	int origin, dest;
	const struct coll_xfer *const *xfers;
	int64_t n;
};

static int rank_of(const struct ring_servers *s, int host, int j)
{
	return host < 0 ? COLL_NO_DEST : plan_digraph_node(s->digraph, host, j);
}

/* When the ring takes the chunks of the shard from each host, and brings them there; of an
 * all-to-all only the first host matters. */
static void note_steps(struct ring_servers *s, const struct host_shard *h)
{
	const struct topo *outer = coll_topo(s->hosts);
	int begin = h->dest < 0 ? 0 : h->origin, end = h->dest < 0 ? s->n : h->origin + 1;

	for (int i = begin * s->chunks; i < end * s->chunks; i++) {
		s->leaves[i] = coll_steps(s->hosts);
		s->comes[i] = -1;
	}
	for (int64_t i = 0; i < h->n; i++) {
		const struct coll_xfer *x = h->xfers[i];
		int from = topo_arc(outer, x->arc)->src, to = topo_arc(outer, x->arc)->dst;

		for (int c = x->first; c <= x->last; c++) {
			int32_t *leaves = &s->leaves[from * s->chunks + c];

			*leaves = x->step < *leaves ? x->step : *leaves;
			s->comes[to * s->chunks + c] = x->step;	/* they ascend */
		}
	}
}

/* Chunks first to end - 1 of the shard go as the part inside the host says, from a step on. */
static int add_part(struct ring_servers *s, const struct host_shard *h,
		    const struct inside_part *part, int step, int first, int end, struct err *err)
{
	int64_t n;
	const struct coll_xfer *own = coll_xfers(part->sched, &n);
	int unit = (int)s->unit, piece = (end - first) * unit / coll_chunks(part->sched), rc = 0;

	for (int64_t i = 0; i < n && !rc; i++) {
		struct coll_xfer x = own[i];

		x.step += step;
		x.arc = s->arcs[part->first_arc + x.arc];
		x.origin = rank_of(s, h->origin, own[i].origin);
		x.dest = rank_of(s, h->dest, own[i].dest);
		x.first = first * unit + own[i].first * piece;
		x.last = first * unit + (own[i].last + 1) * piece - 1;
		rc = coll_add(s->out, &x, err);
	}
	return rc;
}

/* Chunks of like steps together. */
static int add_inside(struct ring_servers *s, const struct host_shard *h, int phase, int host,
		      struct err *err)
{
	const struct inside_part *part = &s->parts[phase][host];
	bool sends = phase == COLLECT || kind_inside(s, phase, host) == COLL_BROADCAST;
	const int32_t *at = (sends ? s->leaves : s->comes) + (size_t)host * s->chunks;
	int rc = 0;

	for (int c = 0, first; c < s->chunks && part->sched && !rc;) {
		int step;

		for (first = c; c < s->chunks && at[c] == at[first]; c++) {
		}
		step = s->begin + at[first] + (phase == COLLECT ? -coll_steps(part->sched)
								: sends ? 0 : 1);
		rc = add_part(s, h, part, step, first, c, err);
	}
	return rc;
}

/* A transfer between hosts, by those of their ranks. Those of an all-to-all are of all ranks of
 * the host that sends. */
static int add_between(struct ring_servers *s, const struct coll_xfer *between, struct err *err)
{
	int origins = between->dest < 0 ? 1 : s->each, rc = 0;

	for (int i = 0; i < s->each * origins && !rc; i++) {
		int j = i / origins;
		struct coll_xfer x = *between;

		x.step += s->begin;
		x.arc = s->arcs[s->first_arc + between->arc * s->each + j];
		x.origin = rank_of(s, between->origin, between->dest < 0 ? j : i % origins);
		x.dest = rank_of(s, between->dest, j);
		x.first *= (int)s->unit;
		x.last = (x.last + 1) * (int)s->unit - 1;
		rc = coll_add(s->out, &x, err);
	}
	return rc;
}

static int add_shard(struct ring_servers *s, const struct host_shard *h, struct err *err)
{
	int rc = 0;

	note_steps(s, h);
	for (int64_t i = 0; i < h->n && !rc; i++) {
		rc = add_between(s, h->xfers[i], err);
	}
	for (int i = 0; i < PHASES * s->n && !rc; i++) {
		int host = i % s->n;

		rc = h->dest < 0 || h->origin == host ? add_inside(s, h, i / s->n, host, err) : 0;
	}
	return rc;
}

/* Shards one after the other, with the transfers of each in the order of their steps. */
static int add_shards(struct ring_servers *s, struct err *err)
{
	bool pairs = s->job->collective == COLL_ALLTOALL;
	size_t n_shards = (size_t)s->n * (size_t)(pairs ? s->n : 1), k;
	const struct coll_xfer *x, **sorted;
	int64_t n, *end;
	int rc = 0;

	x = coll_xfers(s->hosts, &n);
	arrays_add(&s->arrays, sorted, n + 1);
	arrays_add(&s->arrays, end, n_shards + 1);
	for (int64_t i = 0; i < n; i++) {
		end[(pairs ? x[i].origin * s->n + x[i].dest : x[i].origin) + 1]++;
	}
	for (k = 0; k < n_shards; k++) {
		end[k + 1] += end[k];
	}
	for (int64_t i = 0; i < n; i++) {
		sorted[end[pairs ? x[i].origin * s->n + x[i].dest : x[i].origin]++] = &x[i];
	}
	for (k = 0; k < n_shards && !rc; k++) {
		int64_t first = k ? end[k - 1] : 0;
		struct host_shard h = { (int)(pairs ? k / (size_t)s->n : k),
					pairs ? (int)(k % (size_t)s->n) : COLL_NO_DEST,
					&sorted[first], end[k] - first };

		rc = add_shard(s, &h, err);
	}
	return rc;
}

/* The light of the hosts, on the arcs between their nodes of the ring. */
static int add_light(struct ring_servers *s, struct err *err)
{
	int64_t n;
	const struct coll_light *l = coll_lights(s->hosts, &n);
	int rc = 0;

	for (int64_t i = 0; i < n && !rc; i++) {
		struct coll_light light = l[i];

		light.step += s->begin;
		light.arc = arc_between(s, light.arc);
		rc = coll_add_light(s->out, &light, err);
	}
	return rc;
}

/* ---- all ---- */

static int check_size(const struct ring_servers *s, struct err *err)
{
	__int128 inside = 0, between;
	int64_t n;

	coll_xfers(s->hosts, &n);
	between = (__int128)n * s->each * (s->job->collective == COLL_ALLTOALL ? s->each : 1);
	for (int i = 0; i < PHASES; i++) {
		const struct coll_sched *part = s->parts[i][s->n - 1].sched;

		if (part) {
			coll_xfers(part, &n);
			inside += (__int128)n * s->n * s->n;
		}
	}
	return inside + between <= MAX_TRANSFERS ? 0 : too_large(s, err);
}

/* The schedule without transfers, in its digraphs. */
static int make_empty(struct ring_servers *s, struct err *err)
{
	struct topo *logical, *physical;
	int rc = make_logical(s, &logical, err);

	if (rc || (rc = coll_new(s->job->collective, logical, s->chunks * (int)s->unit, 0, 0,
				 &s->out, err)) ||
	    (rc = topo_copy(s->physical, &physical, err)) ||
	    (rc = coll_set_physical(s->out, physical, COLL_ROUTING_EXPLICIT, 0, err))) {
		return rc;
	}
	plan_name_schedule(s->out, s->job->name, s->ctx->fabric->name);
	return add_routes(s, err);
}

static int make_ranks(struct ring_servers *s, const struct optree_params *p, struct err *err)
{
	int rc = plan_ring_digraph(s->ctx->fabric, s->pj, coll_topo(s->hosts), p->channel_bps,
				   2 * p->channels * p->fibres, &s->digraph, err);

	if (rc) {
		return rc;
	}
	s->physical = plan_digraph_topo(s->digraph, &s->unit_bps);
	if ((rc = make_parts(s, p, err)) || (rc = check_size(s, err)) ||
	    (rc = make_empty(s, err))) {
		return rc;
	}
	arrays_add(&s->arrays, s->leaves, s->n * s->chunks);
	arrays_add(&s->arrays, s->comes, s->n * s->chunks);
	if ((rc = add_shards(s, err)) || (rc = add_light(s, err))) {
		return rc;
	}
	return coll_finish(s->out, err);
}

static int sum_steps(const struct coll_sched *s, const struct coll_cost *c, double *ns,
		     struct err *err)
{
	double *step = x_new((size_t)coll_steps(s) + 1, sizeof(*step));
	int rc = coll_step_times(s, c, step, err);

	*ns = 0;
	for (int i = 0; i < coll_steps(s); i++) {
		*ns += step[i];
	}
	free(step);
	return rc;
}

/* What its steps take longer, and those take that it has more, is added to the ring's time: in
 * that retuning may be hidden, and light on its way counted. */
static int add_time(const struct ring_servers *s, const struct optree_params *p,
		    int64_t *time_ns, struct err *err)
{
	struct coll_cost cost = { .alpha_ns = p->alpha_ns, .link_bps = s->unit_bps,
				  .size_bytes = s->job->size_bytes };
	double all, ring;
	int rc = sum_steps(s->out, &cost, &all, err);

	cost.link_bps = p->channel_bps;
	cost.size_bytes = p->shard_bytes * s->n;
	if (rc || (rc = sum_steps(s->hosts, &cost, &ring, err))) {
		return rc;
	}
	*time_ns += all > ring ? (int64_t)(all - ring) + 1 : 0;
	return 0;
}

/* What ranks take in over arcs inside and by all light at once, and the start of a step. */
static int64_t intake_bound(const struct ring_servers *s, const struct optree_params *p,
			    const struct coll_report *r)
{
	double rate = 2.0 * s->n * p->channels * p->fibres * (double)p->channel_bps;
	double all = mpq_get_d(r->bandwidth_bound) * s->n * s->each *
		     (double)s->job->size_bytes * 8;

	for (int a = 0; a < topo_m(s->physical); a++) {
		const struct topo_arc *arc = topo_arc(s->physical, a);
		bool from_ring = arc->src >= topo_n(s->physical) - s->n;

		rate += arc->dst < s->n * s->each && !from_ring
				? (double)arc->cap * (double)s->unit_bps : 0;
	}
	return p->alpha_ns + (int64_t)(all / rate * 1e9);
}

int plan_ring_servers(const struct plan_ctx *ctx, struct plan_job *pj,
		      const struct optree_params *p, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	struct ring_servers s = { .ctx = ctx, .pj = pj, .job = job, .hosts = pj->ring.sched,
				  .n = job->n_hosts,
				  .each = ctx->fabric->hosts[job->hosts[0]].ranks,
				  .chunks = coll_chunks(pj->ring.sched) };
	struct coll_report report;
	int rc;

	coll_report_init(&report);
	arrays_add(&s.arrays, s.parts[COLLECT], s.n);
	arrays_add(&s.arrays, s.parts[SPREAD], s.n);
	rc = make_ranks(&s, p, err);
	if (rc == 0 && (rc = coll_prove(s.out, &report, err)) == 0 &&
	    (rc = add_time(&s, p, &pj->ring.time_ns, err)) == 0) {
		int64_t bound_ns = intake_bound(&s, p, &report);

		coll_free(pj->ring.sched);
		pj->ring.bound_ns = bound_ns > pj->ring.bound_ns ? bound_ns : pj->ring.bound_ns;
		pj->sched = pj->ring.sched = s.out;
		s.out = NULL;
		pj->ring.steps = coll_steps(pj->sched);
		pj->ring.gap = (double)pj->ring.time_ns / (double)pj->ring.bound_ns - 1;
		rc = plan_place_job(ctx->fabric, pj, NULL, pj->sched, err);
	}
	for (int i = 0; i < PHASES * s.n; i++) {
		struct inside_part *part = &s.parts[i / s.n][i % s.n];

		if (!part->shared) {
			coll_free(part->sched);
		}
	}
	coll_report_fini(&report);
	coll_free(s.out);
	plan_digraph_free(s.digraph);
	arrays_fini(&s.arrays);
	return rc;
}
