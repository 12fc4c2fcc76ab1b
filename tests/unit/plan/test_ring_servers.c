/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs on rings whose hosts have ranks inside, on random rings: data, light and times are counted
 * by a program of their own, which shares nothing with what plans and verifies.
 */
#include <math.h>
#include <stdio.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/world.h"

#define WORLDS ALL_OR_SOME(250, 20)
#define BPS 40e9
#define ALPHA_NS 25100.0	/* retune and conversion */

struct world {
	int nodes, hosts, fibres, channels;
	const char *inside;	/* NULL: one rank */
	enum coll_kind kind;
	long bytes;
	bool segment;
	char dead[96];
};

static const char *const insides[] = {
	"K(2)", "K(4)", "Cap(Star(3),25)", "Cap(Star(4),300)", "BiRing(2,3)", "Mesh(2,2)",
	"UniRing(1,3)",
};

static struct model_fabric *fabric(const struct world *w)
{
	struct model_fabric *f;
	struct buf b = { 0 };

	buf_printf(&b, "weft: 1\nfabric: t\nhosts:\n  - { name: 'n[0-%d]'%s%s%s }\n",
		   w->nodes - 1, w->inside ? ", inside: '" : "", w->inside ? w->inside : "",
		   w->inside ? "'" : "");
	buf_printf(&b, "rings:\n  - { name: r0, nodes: 'n[0-%d]', channels: %d, fibres: %d, "
		   "channel-rate: 40Gbps, retune: 25us, conversion: 100ns, driver: sim-ring }\n",
		   w->nodes - 1, w->channels, w->fibres);
	buf_printf(&b, "jobs:\n  - { name: g, ring: r0, nodes: 'n[%d-%d]', collective: %s, size: "
		   "%ldB%s }\n%s", w->nodes - w->hosts, w->nodes - 1, coll_kind_name(w->kind),
		   w->bytes, w->segment ? ", segment: true" : "", w->dead);
	f = fabric_of(buf_cstr(&b));
	buf_fini(&b);
	return f;
}

/* ---- data ---- */

/* What ranks hold, a bit for each contribution. */
struct replay {
	const struct coll_sched *s;
	int ranks, items, chunks;
	uint64_t *now, *before;
};

static uint64_t *held(const struct replay *r, uint64_t *of, int rank, int item)
{
	return of + ((size_t)rank * r->items + item) * r->chunks;
}

/* What a rank begins with of an item, and ends with; 0: it does not matter. */
static uint64_t begins(const struct replay *r, int rank, int item)
{
	switch (coll_kind_of(r->s)) {
	case COLL_ALLTOALL: return item / r->ranks == rank;
	case COLL_BROADCAST: return rank == 0;
	case COLL_ALLGATHER: return item == rank;
	default: return UINT64_C(1) << rank;
	}
}

static uint64_t ends(const struct replay *r, int rank, int item)
{
	uint64_t all = (UINT64_C(1) << r->ranks) - 1;

	switch (coll_kind_of(r->s)) {
	case COLL_ALLTOALL: return item % r->ranks == rank;
	case COLL_BROADCAST: case COLL_ALLGATHER: return 1;
	case COLL_REDUCE_SCATTER: return item == rank ? all : 0;
	default: return all;
	}
}

static void move(const struct replay *r, const struct coll_xfer *x)
{
	const struct topo_arc *a = topo_arc(coll_topo(r->s), x->arc);
	int item = x->dest < 0 ? x->origin : x->origin * r->ranks + x->dest;

	for (int c = x->first; c <= x->last; c++) {
		uint64_t from = held(r, r->before, a->src, item)[c];
		uint64_t *to = &held(r, r->now, a->dst, item)[c];

		assert_true(from != 0);
		if (x->op == COLL_OP_REDUCE) {
			assert_true((*to & from) == 0);
			*to |= from;
		} else {
			assert_true(coll_kind_of(r->s) != COLL_ALLREDUCE ||
				    from == ends(r, 0, item));
			*to = from;
		}
	}
}

static void replay(const struct coll_sched *s)
{
	int n = coll_ranks(s);
	struct replay r = { .s = s, .ranks = n, .chunks = coll_chunks(s),
			    .items = coll_kind_of(s) == COLL_ALLTOALL ? n * n : n };
	size_t size = (size_t)n * r.items * r.chunks;
	int64_t count;
	const struct coll_xfer *x = coll_xfers(s, &count);

	r.now = x_new(size, sizeof(*r.now));
	r.before = x_new(size, sizeof(*r.before));
	for (size_t i = 0; i < size; i++) {
		int item = (int)(i / r.chunks) % r.items;

		r.now[i] = begins(&r, (int)(i / r.chunks / r.items), item);
	}
	for (int64_t i = 0; i < count; i++) {
		if (i == 0 || x[i].step != x[i - 1].step) {
			memcpy(r.before, r.now, size * sizeof(*r.now));
		}
		move(&r, &x[i]);
	}
	for (size_t i = 0; i < size; i++) {
		uint64_t want = ends(&r, (int)(i / r.chunks / r.items),
				     (int)(i / r.chunks) % r.items);

		assert_true(want == 0 || r.now[i] == want);
	}
	free(r.now);
	free(r.before);
}

/* ---- light ---- */

/* A node of the digraph is on the ring at a place, -1: inside a host. */
static int place_of(const struct world *w, const struct coll_sched *s, int node)
{
	int behind = node - (topo_n(coll_physical(s)) - w->hosts);

	return behind < 0 ? -1 : w->nodes - w->hosts + behind;
}

/* No two lightpaths on one channel of a link; none beyond a segment, nor where the part is dead. */
static void check_light(const struct world *w, const struct coll_sched *s)
{
	int64_t n;
	const struct coll_light *l = coll_lights(s, &n);
	int32_t *step = x_new((size_t)2 * w->fibres * w->channels * w->nodes, sizeof(*step));

	assert_true(n > 0);
	for (int64_t i = 0; i < n; i++) {
		const struct topo_arc *a = topo_arc(coll_physical(s), l[i].arc);
		int at = place_of(w, s, a->src), end = place_of(w, s, a->dst);
		int lane = (l[i].dir * w->fibres + l[i].fibre) * w->channels + l[i].channel;

		assert_true(at >= 0 && end >= 0 && l[i].channel < w->channels);
		assert_false(strstr(w->dead, "channel: 0") && l[i].channel == 0 &&
			     l[i].dir == 0 && l[i].fibre == 0 &&
			     (at == w->nodes - 1 || end == w->nodes - 1));
		for (; at != end; at = (at + (l[i].dir ? w->nodes - 1 : 1)) % w->nodes) {
			int link = l[i].dir ? (at + w->nodes - 1) % w->nodes : at;

			assert_false(strstr(w->dead, "span") && link == w->nodes - 2);
			assert_true(!w->segment ||
				    (link >= w->nodes - w->hosts && link < w->nodes - 1));
			assert_true(step[lane * w->nodes + link] <= l[i].step);
			step[lane * w->nodes + link] = l[i].step + 1;
		}
	}
	free(step);
}

static int lights_of(const struct coll_sched *s, int step, int arc)
{
	int64_t n;
	const struct coll_light *l = coll_lights(s, &n);
	int count = 0;

	for (int64_t i = 0; i < n; i++) {
		count += l[i].step == step && l[i].arc == arc;
	}
	return count;
}

/* ---- time ---- */

/* What a step takes beside its start, in ns: the fullest arc. */
static double step_ns(const struct world *w, const struct coll_sched *s, int step, double *load,
		      double unit_bps)
{
	const struct topo *t = coll_physical(s);
	double chunk_bits = (double)w->bytes * 8 / coll_ranks(s) / coll_chunks(s), most = 0;

	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		bool lit = place_of(w, s, arc->src) >= 0 && place_of(w, s, arc->dst) >= 0;
		int lights = lit && load[a] > 0 ? lights_of(s, step, a) : 1;
		double ns = load[a] * chunk_bits / ((double)arc->cap * unit_bps * lights) * 1e9;

		assert_true(lights > 0);
		most = ns > most ? ns : most;
		load[a] = 0;
	}
	return most;
}

/* Adds a transfer's data to the arcs on its routes, all within a host or by one lightpath. */
static void add_load(const struct world *w, const struct coll_sched *s, const struct coll_xfer *x,
		     double *load)
{
	const struct coll_placement *p = coll_placement(s);
	double weight = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (int64_t i = 0; i < coll_n_arc_routes(s); i++) {
			struct coll_arc_route r = coll_arc_route(s, i);
			int crossed = 0;

			for (int k = 0; r.arc == x->arc && pass && k < r.n; k++) {
				const struct topo_arc *a = topo_arc(coll_physical(s), r.hops[k]);

				crossed += strcmp(p->hosts[a->src], p->hosts[a->dst]) != 0;
				assert_int_equal(strcmp(p->hosts[a->src], p->hosts[a->dst]) != 0,
						 place_of(w, s, a->src) >= 0 &&
							 place_of(w, s, a->dst) >= 0);
				load[r.hops[k]] += (x->last - x->first + 1) * r.weight / weight;
			}
			weight += r.arc == x->arc && !pass ? r.weight : 0;
			assert_true(crossed <= 1);
		}
	}
	assert_true(weight > 0);
}

static double count_time(const struct world *w, const struct coll_sched *s)
{
	const struct topo *t = coll_physical(s);
	double *load = x_new((size_t)topo_m(t), sizeof(*load)), ns = 0, unit_bps = 0;
	int64_t n;
	const struct coll_xfer *x = coll_xfers(s, &n);

	for (int a = 0; a < topo_m(t); a++) {
		if (place_of(w, s, topo_arc(t, a)->src) >= 0 &&
		    place_of(w, s, topo_arc(t, a)->dst) >= 0) {
			unit_bps = BPS / (double)topo_arc(t, a)->cap;
		}
	}
	for (int64_t i = 0; i < n; i++) {
		add_load(w, s, &x[i], load);
		if (i + 1 == n || x[i + 1].step != x[i].step) {
			ns += step_ns(w, s, x[i].step, load, unit_bps);
		}
	}
	free(load);
	return ns + coll_steps(s) * ALPHA_NS;
}

/* ---- worlds ---- */

static struct world random_world(struct rng *rng, int nth)
{
	struct world w = { .hosts = 2 + (int)rng_below(rng, 4),
			   .fibres = 1 + (int)rng_below(rng, 2),
			   .channels = 1 + (int)rng_below(rng, 6),
			   .inside = insides[rng_below(rng, sizeof(insides) / sizeof(*insides))],
			   .kind = (enum coll_kind)(nth % (COLL_BROADCAST + 1)) };

	w.nodes = w.hosts + (int)rng_below(rng, 3);
	w.bytes = 1L << (8 + rng_below(rng, 18));
	w.segment = w.hosts < w.nodes && rng_below(rng, 3) == 0;
	if (w.hosts > 2 && w.channels > 1 && !w.segment && nth % 4 == 0) {
		snprintf(w.dead, sizeof(w.dead), nth % 8 ? "dead:\n  - { ring: r0, node: %d, "
			 "direction: cw, fibre: 0, channel: 0 }\n"
			 : "dead:\n  - { ring: r0, span: %d }\n", w.nodes - (nth % 8 ? 1 : 2));
	}
	return w;
}

/* Written and read again it is the same; a rank's part has the light that its data takes. */
static void check_formats(const struct coll_sched *s)
{
	struct coll_sched *read, *part;
	struct buf text = { 0 }, again = { 0 };
	int64_t all, own;

	coll_to_json(s, &text);
	assert_int_equal(coll_from_json(text.data, text.len, &read, NULL), 0);
	coll_to_json(read, &again);
	assert_string_equal(buf_cstr(&text), buf_cstr(&again));
	assert_int_equal(coll_part_of(read, coll_ranks(s) - 1, &part, NULL), 0);
	coll_lights(s, &all);
	coll_lights(part, &own);
	assert_true(own > 0 && own <= all);
	coll_free(part);
	coll_free(read);
	buf_fini(&text);
	buf_fini(&again);
}

static void check_plan(const struct world *w)
{
	struct model_fabric *f = fabric(w);
	struct plan *p = plan_of(f, NULL);
	const struct plan_job *j = &p->jobs[0];
	struct ring_settings program;
	double ns;
	int64_t n;

	assert_int_equal(coll_ranks(j->sched), w->hosts * f->hosts[0].ranks);
	assert_int_equal(coll_verify(j->sched, NULL, NULL), 0);
	replay(j->sched);
	check_light(w, j->sched);
	ns = count_time(w, j->sched);
	if (fabs(ns - (double)j->time_ns) > 50 + ns / 1000 || j->time_ns < j->bound_ns) {
		fail_msg("%d of %d nodes, %s, %s, %ld bytes: %lld ns planned, %.0f counted, bound "
			 "%lld", w->hosts, w->nodes, w->inside, coll_kind_name(w->kind), w->bytes,
			 (long long)j->time_ns, ns, (long long)j->bound_ns);
	}
	coll_lights(j->sched, &n);
	assert_int_equal(ring_program_unpack(&p->devices[0].programs.v[0], &program, NULL), 0);
	for (size_t i = 0; i < program.n; i++) {
		n -= (program.v[i].mode & RESONATOR_ADD) != 0;
	}
	assert_int_equal(n, 0);
	assert_int_equal(program.steps, coll_steps(j->sched));
	ring_settings_fini(&program);
	check_formats(j->sched);
	plan_free(p);
	model_free(f);
}

static void random_servers(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 40);
	for (int i = 0; i < WORLDS; i++) {
		struct world w = random_world(&rng, i);

		check_plan(&w);
	}
}

/* Where what is inside is wide, servers take what hosts of one rank do and the steps inside. */
static void wide_inside(void **state)
{
	(void)state;
	for (int kind = 0; kind <= COLL_BROADCAST; kind++) {
		struct world one = { .nodes = 8, .hosts = 8, .fibres = 1, .channels = 16,
				     .kind = (enum coll_kind)kind, .bytes = 8 << 20 };
		struct world many = one;
		int more = kind == COLL_ALLREDUCE ? 2 : 1;
		struct model_fabric *f[2];
		struct plan *p[2];
		int64_t extra;

		many.inside = "Cap(Star(4),100000)";
		one.bytes *= kind == COLL_ALLTOALL ? 4 : 1;
		f[0] = fabric(&one);
		f[1] = fabric(&many);
		p[0] = plan_of(f[0], NULL);
		p[1] = plan_of(f[1], NULL);
		extra = p[1]->jobs[0].time_ns - p[0]->jobs[0].time_ns;
		assert_true(extra > 0 && extra < more * ALPHA_NS + 500);
		assert_true(p[1]->jobs[0].bound_ns >= p[0]->jobs[0].bound_ns);
		for (int i = 0; i < 2; i++) {
			plan_free(p[i]);
			model_free(f[i]);
		}
	}
}

/* The schedule without the light of one arc. */
static struct coll_sched *darken(const struct coll_sched *s, int arc)
{
	struct coll_sched *out;
	struct topo *t;
	int64_t n;
	const struct coll_xfer *x = coll_xfers(s, &n);
	const struct coll_light *l;

	topo_copy(coll_topo(s), &t, NULL);
	assert_int_equal(coll_new(coll_kind_of(s), t, coll_chunks(s), 0, 0, &out, NULL), 0);
	topo_copy(coll_physical(s), &t, NULL);
	assert_int_equal(coll_set_physical(out, t, COLL_ROUTING_EXPLICIT, 0, NULL), 0);
	assert_int_equal(coll_set_placement(out, coll_placement(s), NULL), 0);
	for (int64_t i = 0; i < coll_n_arc_routes(s); i++) {
		struct coll_arc_route r = coll_arc_route(s, i);

		coll_add_route(out, &r, NULL);
	}
	for (int64_t i = 0; i < n; i++) {
		coll_add(out, &x[i], NULL);
	}
	l = coll_lights(s, &n);
	for (int64_t i = 0; i < n; i++) {
		if (l[i].arc != arc) {
			coll_add_light(out, &l[i], NULL);
		}
	}
	assert_int_equal(coll_finish(out, NULL), 0);
	return out;
}

static void no_light_is_no_light(void **state)
{
	struct world w = { .nodes = 4, .hosts = 4, .fibres = 1, .channels = 4, .inside = "K(2)",
			   .kind = COLL_ALLGATHER, .bytes = 1 << 20 };
	struct model_fabric *f = fabric(&w);
	struct plan *p = plan_of(f, NULL);
	const struct coll_sched *s = p->jobs[0].sched;
	struct coll_sched *dark;
	struct err err = { 0 };
	int64_t n;

	(void)state;
	dark = darken(s, -1);
	assert_int_equal(coll_verify(dark, NULL, NULL), 0);
	coll_free(dark);
	dark = darken(s, coll_lights(s, &n)[0].arc);
	assert_int_equal(coll_verify(dark, NULL, &err), WEFT_EVERIFY);
	assert_non_null(strstr(err.msg, "no light"));
	coll_free(dark);
	plan_free(p);
	model_free(f);
}

static void unlike_hosts(void **state)
{
	static const char text[] =
		"weft: 1\nfabric: t\nhosts:\n  - { name: 'a[0-1]', inside: 'K(2)' }\n"
		"  - { name: b, inside: 'K(3)' }\n"
		"rings:\n  - { name: r0, nodes: 'a[0-1],b', channels: 4, channel-rate: 40Gbps, "
		"retune: 25us, driver: sim-ring }\n" RING_JOB;
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;

	(void)state;
	assert_int_equal(model_parse("t.yaml", text, strlen(text), &f, &errs), WEFT_EUNSUPPORTED);
	assert_int_equal(errs.n, 1);
	assert_non_null(strstr(errs.v[0].msg, "hosts a0 and b have 2 and 3 ranks inside: not "
			       "supported on rings"));
	err_list_fini(&errs);
	model_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_servers),
		cmocka_unit_test(wide_inside),
		cmocka_unit_test(no_light_is_no_light),
		cmocka_unit_test(unlike_hosts),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
