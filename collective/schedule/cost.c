/*
 * Loads, lower bounds and times of a schedule.
 *
 * One pass over the sorted transfers meters every arc in every step: chunks over
 * capacity, capacity in use at both ends against the ports. All sums are
 * rationals, compared by cross-multiplying 128-bit products, so that a schedule
 * that meets its bound is found to do so exactly. Times differ from loads where
 * arcs have latencies: then a step waits for the slowest of those of its arcs
 * that no other arc exceeds in both latency and load.
 */
#include <stdlib.h>

#include "collective/schedule/private.h"
#include "lib/base/rat.h"

/* The largest load of a step as a fraction, in chunks per unit capacity. */
struct coll_load {
	int64_t chunks, cap;
};

struct coll_meter {
	const struct coll_sched *s;
	int64_t *out, *in;	/* capacity in use this step, a node */
	int *seen;		/* step of that number, -1: none yet */
	int64_t xfer, light;	/* where the run at hand begins */
	int64_t hops;		/* chunks times arcs so far */
	struct coll_load top;	/* of the step at hand */
};

/* Capacity of the arc of x in its step: its own, times its lights. */
static int arc_cap(struct coll_meter *mt, const struct coll_xfer *x, int64_t *cap, struct err *err)
{
	const struct topo_arc *a = topo_arc(mt->s->topo, x->arc);
	struct coll_run lights;

	*cap = a->cap;
	if (mt->s->lights.n == 0) {
		return 0;
	}
	lights = coll_light_run(mt->s, mt->light, x->step, x->arc);
	mt->light = lights.first;
	*cap = a->cap * lights.n;
	if (lights.n == 0) {
		return err_set(err, WEFT_EVERIFY,
			       "step %d: arc %d (%d -> %d): shard %d chunk "
			       "%d: the arc has no light in this step",
			       x->step, x->arc, a->src, a->dst, x->origin,
			       x->first);
	}
	return 0;
}

static void use(struct coll_meter *mt, int node, int step, int64_t *side, int64_t cap)
{
	if (mt->seen[node] != step) {
		mt->seen[node] = step;
		mt->out[node] = mt->in[node] = 0;
	}
	side[node] += cap;
}

/* Counts the ports of both ends; fewer ports than that would make node
 * bandwidth, and with it every bound, a fiction. */
static int use_ports(struct coll_meter *mt, const struct coll_xfer *x, int64_t cap, struct err *err)
{
	const struct topo_arc *a = topo_arc(mt->s->topo, x->arc);
	int64_t ports = mt->s->ports;
	bool sends;

	use(mt, a->src, x->step, mt->out, cap);
	use(mt, a->dst, x->step, mt->in, cap);
	sends = mt->out[a->src] > ports;
	if (!sends && mt->in[a->dst] <= ports) {
		return 0;
	}
	return err_set(err, WEFT_EVERIFY,
		       "step %d: arc %d (%d -> %d): node %d %s %lld units of "
		       "capacity, more than its %lld ports", x->step, x->arc,
		       a->src, a->dst, sends ? a->src : a->dst,
		       sends ? "drives" : "receives",
		       (long long)(sends ? mt->out[a->src] : mt->in[a->dst]),
		       (long long)ports);
}

/* One arc in one step. */
static int measure_run(struct coll_meter *mt, struct err *err)
{
	struct coll_run run = coll_xfer_run(mt->s, mt->xfer);
	const struct coll_xfer *x = mt->s->xfers.v + run.first;
	int64_t chunks = 0, cap;
	int rc;

	if ((rc = arc_cap(mt, x, &cap, err)) || (rc = use_ports(mt, x, cap, err))) {
		return rc;
	}
	for (int64_t i = 0; i < run.n; i++) {
		chunks += x[i].last - x[i].first + 1;
	}
	if ((__int128)chunks * mt->top.cap > (__int128)mt->top.chunks * cap) {
		mt->top = (struct coll_load){ chunks, cap };
	}
	mt->hops += chunks;
	mt->xfer += run.n;
	return 0;
}

/* All steps; *total = sum of their largest loads, in chunks. */
static int measure_steps(struct coll_meter *mt, mpq_t total, struct err *err)
{
	const struct coll_xfer *x = mt->s->xfers.v;
	int64_t n = (int64_t)mt->s->xfers.n;
	mpq_t load;
	int rc = 0;

	mpq_init(load);
	while (mt->xfer < n && !rc) {
		int step = x[mt->xfer].step;

		mt->top = (struct coll_load){ 0, 1 };
		while (mt->xfer < n && x[mt->xfer].step == step && !rc) {
			rc = measure_run(mt, err);
		}
		rat_set(load, mt->top.chunks, mt->top.cap);
		mpq_add(total, total, load);
	}
	mpq_clear(load);
	return rc;
}

/* ---- bounds ---- */

static void mul_int(mpq_t q, int64_t num, int64_t den)
{
	mpq_t f;

	mpq_init(f);
	rat_set(f, num, den);
	mpq_mul(q, q, f);
	mpq_clear(f);
}

/* Sum of the distances between all pairs. */
static int total_distance(const struct topo *t, int64_t *sum, struct err *err)
{
	int n = topo_n(t);
	int32_t *dist = malloc((size_t)n * sizeof(*dist));

	if (!dist) {
		return err_nomem(err);
	}
	*sum = 0;
	for (int u = 0; u < n; u++) {
		topo_bfs(t, u, dist);
		for (int v = 0; v < n; v++) {
			if (dist[v] < 0) {
				free(dist);
				return err_set(err, WEFT_EINFEASIBLE,
					       "rank %d cannot reach rank %d",
					       u, v);
			}
			*sum += dist[v];
		}
	}
	free(dist);
	return 0;
}

/* What all arcs, or all ports, carry in a unit of time. Lit schedules may
 * light other arcs in every step, so only the ports bound them. */
static int64_t total_capacity(const struct coll_sched *s)
{
	const struct topo_arc *arcs = topo_arcs(s->topo);
	int64_t ports = (int64_t)s->ports * s->ranks, caps = 0;

	for (int a = 0; a < topo_m(s->topo); a++) {
		caps += arcs[a].src != arcs[a].dst ? arcs[a].cap : 0;
	}
	return s->lights.n == 0 && caps < ports ? caps : ports;
}

/* Every hop of every shard takes capacity: hops / capacity shard times. */
static int distance_bound(const struct coll_sched *s, mpq_t bound, struct err *err)
{
	int64_t hops = 0, cap = total_capacity(s);
	mpq_t by_hops;
	int rc;

	if (s->ranks < 2) {
		return 0;
	}
	rc = total_distance(s->topo, &hops, err);
	if (rc) {
		return rc;
	}
	mpq_init(by_hops);
	rat_set(by_hops, hops, cap);
	mul_int(by_hops, s->ports, s->ranks);
	if (mpq_cmp(by_hops, bound) > 0) {
		mpq_set(bound, by_hops);
	}
	mpq_clear(by_hops);
	return 0;
}

/* The lower bound of schedule.h for this collective, in M/B. */
static int bandwidth_bound(const struct coll_sched *s, mpq_t bound, struct err *err)
{
	int n = s->ranks;

	switch (s->kind) {
	case COLL_ALLREDUCE:
		rat_set(bound, 2 * ((int64_t)n - 1), n);
		return 0;
	case COLL_BROADCAST:
	case COLL_REDUCE:
		rat_set(bound, n > 1, 1);
		return 0;
	case COLL_ALLTOALL:
		rat_set(bound, n - 1, n);
		return distance_bound(s, bound, err);
	case COLL_ALLGATHER:
	case COLL_REDUCE_SCATTER:
	case COLL_GATHER:
	case COLL_SCATTER:
		break;
	}
	rat_set(bound, n - 1, n);
	return 0;
}

/* ---- the report ---- */

int coll_measure(const struct coll_sched *s, struct coll_report *r, struct err *err)
{
	struct coll_meter mt = { .s = s };
	struct arrays arrays = { 0 };
	int rc;

	arrays_add(&arrays, mt.out, s->ranks);
	arrays_add(&arrays, mt.in, s->ranks);
	arrays_add(&arrays, mt.seen, s->ranks);
	if (arrays.failed) {
		rc = err_nomem(err);
		goto out;
	}
	for (int u = 0; u < s->ranks; u++) {
		mt.seen[u] = -1;
	}
	mpq_set_ui(r->shard_times, 0, 1);
	rc = measure_steps(&mt, r->shard_times, err);
	if (rc) {
		goto out;
	}
	mul_int(r->shard_times, 1, s->chunks);
	r->nodes = s->ranks;
	r->steps = s->steps;
	r->transfers = (int64_t)s->xfers.n;
	r->chunk_hops = mt.hops;
	mpq_set(r->bandwidth_factor, r->shard_times);
	mul_int(r->bandwidth_factor, s->ports, s->ranks);
	rc = bandwidth_bound(s, r->bandwidth_bound, err);
	r->bandwidth_optimal = !rc && mpq_equal(r->bandwidth_factor, r->bandwidth_bound);
out:
	arrays_fini(&arrays);
	return rc;
}

/* ---- times ---- */

/* An arc that a step may wait for: none has both more latency and more load. */
struct coll_tip {
	int64_t latency_ns;
	struct coll_load load;
};

struct coll_tips {
	VEC(struct coll_tip) list;
};

static bool less_load(struct coll_load a, struct coll_load b)
{
	return (__int128)a.chunks * b.cap < (__int128)b.chunks * a.cap;
}

static int add_tip(struct coll_tips *t, struct coll_tip tip, struct err *err)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->list.n; i++) {
		const struct coll_tip *o = &t->list.v[i];

		if (o->latency_ns >= tip.latency_ns && !less_load(o->load, tip.load)) {
			return 0;
		}
	}
	for (size_t i = 0; i < t->list.n; i++) {
		struct coll_tip o = t->list.v[i];

		if (o.latency_ns > tip.latency_ns || less_load(tip.load, o.load)) {
			t->list.v[kept++] = o;
		}
	}
	t->list.n = kept;
	return vec_push(&t->list, tip) ? err_nomem(err) : 0;
}

/* sum += the largest time of the tips, each a latency and chunks of so many
 * ns. Empties t. */
static void add_step(struct coll_tips *t, const mpq_t chunk_ns, mpq_t sum)
{
	mpq_t top, time, latency;

	mpq_inits(top, time, latency, NULL);
	for (size_t i = 0; i < t->list.n; i++) {
		const struct coll_tip *tip = &t->list.v[i];

		rat_set(time, tip->load.chunks, tip->load.cap);
		mpq_mul(time, time, chunk_ns);
		rat_set(latency, tip->latency_ns, 1);
		mpq_add(time, time, latency);
		if (mpq_cmp(time, top) > 0) {
			mpq_set(top, time);
		}
	}
	mpq_add(sum, sum, top);
	mpq_clears(top, time, latency, NULL);
	t->list.n = 0;
}

/* What all steps wait for. */
static int step_times(const struct coll_sched *s, const mpq_t chunk_ns, mpq_t sum, struct err *err)
{
	struct coll_meter mt = { .s = s };
	struct coll_tips tips = { 0 };
	int64_t n = (int64_t)s->xfers.n;
	int rc = 0;

	while (mt.xfer < n && !rc) {
		struct coll_run run = coll_xfer_run(s, mt.xfer);
		const struct coll_xfer *x = s->xfers.v + run.first;
		struct coll_tip tip = { topo_arc(s->topo, x->arc)->latency_ns,
				   { 0, 1 } };

		if (mt.xfer > 0 && x[-1].step != x->step) {
			add_step(&tips, chunk_ns, sum);
		}
		for (int64_t i = 0; i < run.n; i++) {
			tip.load.chunks += x[i].last - x[i].first + 1;
		}
		rc = arc_cap(&mt, x, &tip.load.cap, err);
		if (!rc) {
			rc = add_tip(&tips, tip, err);
		}
		mt.xfer += run.n;
	}
	add_step(&tips, chunk_ns, sum);
	vec_fini(&tips.list);
	return rc;
}

static int64_t min_latency(const struct topo *t)
{
	const struct topo_arc *arcs = topo_arcs(t);
	int64_t least = INT64_MAX;

	for (int a = 0; a < topo_m(t); a++) {
		if (arcs[a].src != arcs[a].dst && arcs[a].latency_ns < least) {
			least = arcs[a].latency_ns;
		}
	}
	return least == INT64_MAX ? 0 : least;
}

/* The largest distance that the collective must cover, -1 when some rank
 * cannot be reached. */
static int farthest(const struct coll_sched *s, int *steps, struct err *err)
{
	bool towards = s->kind == COLL_REDUCE || s->kind == COLL_GATHER;
	struct topo *back = NULL;
	int32_t *dist;
	int rc;

	if (!coll_has_root(s->kind)) {
		*steps = topo_diameter(s->topo);
		return 0;
	}
	if (towards && (rc = topo_transpose(s->topo, &back, NULL, err))) {
		return rc;
	}
	dist = malloc((size_t)s->ranks * sizeof(*dist));
	if (!dist) {
		topo_free(back);
		return err_nomem(err);
	}
	topo_bfs(towards ? back : s->topo, s->root, dist);
	topo_free(back);
	*steps = 0;
	for (int v = 0; v < s->ranks && *steps >= 0; v++) {
		*steps = dist[v] < 0 ? -1
				     : dist[v] > *steps ? dist[v] : *steps;
	}
	free(dist);
	return 0;
}

static int round_up(const mpq_t t, int64_t *ns, struct err *err)
{
	mpz_t whole;
	int rc = 0;

	mpz_init(whole);
	mpz_cdiv_q(whole, mpq_numref(t), mpq_denref(t));
	if (mpz_fits_slong_p(whole)) {
		*ns = mpz_get_si(whole);
	} else {
		rc = err_set(err, WEFT_ELIMIT, "the time does not fit 64 bits of nanoseconds");
	}
	mpz_clear(whole);
	return rc;
}

/* *ns = ceil(fixed + per_step * steps + volume * size * 8 * 10^9 / bps),
 * where volume is in units of the vector. */
static int add_up(int64_t fixed, int64_t per_step, int steps, const mpq_t volume,
		  const struct coll_cost *c, int64_t *ns, struct err *err)
{
	mpq_t t, part;
	int rc;

	mpq_inits(t, part, NULL);
	mpq_set(t, volume);
	mul_int(t, c->size_bytes, 1);
	mul_int(t, INT64_C(8000000000), c->link_bps);
	rat_set(part, per_step, 1);
	mul_int(part, steps, 1);
	mpq_add(t, t, part);
	rat_set(part, fixed, 1);
	mpq_add(t, t, part);
	rc = round_up(t, ns, err);
	mpq_clears(t, part, NULL);
	return rc;
}

static int bound_time(const struct coll_sched *s, const struct coll_report *r,
		      const struct coll_cost *c, int64_t *ns, struct err *err)
{
	mpq_t volume;
	int steps = -1, rc = farthest(s, &steps, err);

	if (rc) {
		return rc;
	}
	if (steps < 0) {
		return err_set(err, WEFT_EINFEASIBLE, "the digraph does not connect all ranks");
	}
	mpq_init(volume);
	mpq_set(volume, r->bandwidth_bound);
	mul_int(volume, 1, s->ports);
	rc = add_up(steps * min_latency(s->topo), c->alpha_ns, steps, volume, c, ns, err);
	mpq_clear(volume);
	return rc;
}

int coll_time(const struct coll_sched *s, const struct coll_report *r, const struct coll_cost *c,
	      int64_t *time_ns, int64_t *bound_ns, struct err *err)
{
	mpq_t chunk_ns, sum;
	int rc;

	if (c->alpha_ns < 0 || c->size_bytes < 0 || c->link_bps < 1) {
		return err_set(err, WEFT_EINVAL,
			       "cost needs alpha >= 0, size >= 0 and a link "
			       "rate of at least 1 bps");
	}
	mpq_inits(chunk_ns, sum, NULL);
	rat_set(chunk_ns, c->size_bytes, s->ranks);
	mul_int(chunk_ns, INT64_C(8000000000), c->link_bps);
	mul_int(chunk_ns, 1, s->chunks);
	rc = step_times(s, chunk_ns, sum, err);
	rat_set(chunk_ns, c->alpha_ns, 1);
	mul_int(chunk_ns, s->steps, 1);
	mpq_add(sum, sum, chunk_ns);
	if (!rc) {
		rc = round_up(sum, time_ns, err);
	}
	mpq_clears(chunk_ns, sum, NULL);
	if (!rc && bound_ns) {
		rc = bound_time(s, r, c, bound_ns, err);
	}
	return rc;
}
