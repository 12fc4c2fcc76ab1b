/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Light over trunks for all jobs at once: found whenever rwa finds it for the
 * union of their lightpaths, and the same in any order of the jobs.
 */
#include "tests/unit/plan/fixture.h"
#include "tests/unit/plan/trunk_fabrics.h"
#include "tests/unit/world.h"

/* The wavelength that the light of a circuit goes on with, -1: its output is not
 * filtered. */
static int filter_after(const struct model_fabric *f, const struct plan_circuit *c)
{
	for (int t = 0; t < f->n_trunks; t++) {
		if (f->trunks[t].from_device == c->device &&
		    f->trunks[t].from_port == c->xc.out) {
			return f->trunks[t].channel;
		}
	}
	return -1;
}

/* Every arc has light from a port of its source to one of its sink, on a
 * wavelength that all filters pass; no port is used twice. */
static void check_light(const struct plan *p)
{
	const struct model_fabric *f = p->fabric;
	struct plan_light *light = light_after(p);
	int *used = calloc((size_t)f->n_ports + 1, sizeof(*used));

	for (int j = 0; j < p->n_jobs; j++) {
		const struct plan_job *pj = &p->jobs[j];
		const struct topo *t = coll_topo(pj->sched);
		int *tx = calloc((size_t)topo_m(t) + 1, sizeof(*tx));

		for (int i = 0; i < pj->n_circuits; i++) {
			const struct plan_circuit *c = &pj->circuits[i];
			int wave = filter_after(f, c);

			if (wave >= 0) {
				assert_int_equal(wave, c->channel);
			}
			assert_int_equal(plan_trace(f, light, c->tx_port), c->rx_port);
			assert_true(tx[c->arc] == 0 || tx[c->arc] == c->tx_port + 1);
			tx[c->arc] = c->tx_port + 1;
		}
		for (int a = 0; a < topo_m(t); a++) {
			const struct topo_arc *arc = topo_arc(t, a);
			int to;

			assert_true(tx[a] > 0);
			to = plan_trace(f, light, tx[a] - 1);
			assert_int_equal(used[tx[a] - 1]++, 0);
			assert_int_equal(f->ports[tx[a] - 1].host, f->jobs[j].hosts[arc->src]);
			assert_int_equal(f->ports[to].host, f->jobs[j].hosts[arc->dst]);
		}
		free(tx);
	}
	free(used);
	free(light);
}

static const struct plan_job *job_named(const struct plan *p, const char *name)
{
	for (int j = 0; j < p->n_jobs; j++) {
		if (strcmp(p->fabric->jobs[p->jobs[j].job].name, name) == 0) {
			return &p->jobs[j];
		}
	}
	fail_msg("no job %s", name);
	return NULL;
}

/* Both plans give every job the same circuits, in whatever order the jobs are. */
static void check_same(const struct plan *p, const struct plan *q)
{
	for (int j = 0; j < p->n_jobs; j++) {
		const struct plan_job *x = &p->jobs[j];
		const struct plan_job *y = job_named(q, p->fabric->jobs[x->job].name);

		assert_int_equal(x->n_circuits, y->n_circuits);
		for (int i = 0; i < x->n_circuits; i++) {
			assert_int_equal(x->circuits[i].arc, y->circuits[i].arc);
			assert_int_equal(x->circuits[i].device, y->circuits[i].device);
			assert_int_equal(x->circuits[i].xc.in, y->circuits[i].xc.in);
			assert_int_equal(x->circuits[i].xc.out, y->circuits[i].xc.out);
			assert_int_equal(x->circuits[i].channel, y->circuits[i].channel);
		}
	}
}

static void shuffle(struct rng *rng, int *order, int n)
{
	for (int i = 0; i < n; i++) {
		int k = (int)rng_below(rng, (uint64_t)i + 1);

		order[i] = order[k];
		order[k] = i;
	}
}

/* Circuits that a plan makes or deletes for jobs that are there already. */
static int moved(const struct plan *p, const char *but)
{
	int n = 0;

	for (int j = 0; j < p->n_jobs; j++) {
		if (strcmp(p->fabric->jobs[p->jobs[j].job].name, but) != 0) {
			n += p->jobs[j].n_moves;
		}
	}
	return n;
}

/* A circuit that is lost is made again, and no other. */
static void check_repair(const struct model_fabric *f, const struct plan_light *light,
			 struct rng *rng)
{
	struct plan_light *seen = calloc((size_t)f->n_devices + 1, sizeof(*seen));
	struct plan_base base = { .intent = light, .observed = seen };
	int d = (int)rng_below(rng, (uint64_t)f->n_devices), n = light[d].n_xcs;
	struct optics_xc *left = calloc((size_t)n + 1, sizeof(*left));
	int gone = n ? (int)rng_below(rng, (uint64_t)n) : 0;
	struct plan *p;

	memcpy(seen, light, (size_t)f->n_devices * sizeof(*seen));
	for (int i = 0; i < n; i++) {
		left[i > gone ? i - 1 : i] = light[d].xcs[i];
	}
	seen[d].xcs = left;
	seen[d].n_xcs = n ? n - 1 : 0;
	p = plan_of(f, &base);
	assert_int_equal(p->n_add, n > 0);
	assert_int_equal(p->n_del, 0);
	plan_free(p);
	free(left);
	free(seen);
}

/* Light of all jobs but one, then of all: with wavelengths to spare none of it moves,
 * and none when nothing changes, for all jobs or for one while the others are kept. */
static void check_stays(const struct tight_fabric *t)
{
	struct tight_fabric fewer = *t;
	char *text = tight_text(t, NULL, 4 * t->channels);
	struct model_fabric *f = fabric_of(text), *g;
	struct plan *p, *q, *again;
	struct plan_light *light;
	struct plan_base base = { 0 };

	free(text);
	if (t->n_jobs < 2) {
		model_free(f);
		return;
	}
	fewer.n_jobs--;
	text = tight_text(&fewer, NULL, 4 * t->channels);
	g = fabric_of(text);
	free(text);
	p = plan_of(g, NULL);
	light = light_after(p);
	base.intent = base.observed = light;
	q = plan_of(f, &base);
	check_light(q);
	assert_int_equal(moved(q, f->jobs[f->n_jobs - 1].name), 0);
	free(light);
	light = light_after(q);
	base.intent = base.observed = light;
	again = plan_of(f, &base);
	assert_true(plan_is_empty(again));
	plan_free(again);
	for (uint64_t k = 0; k < 3; k++) {
		struct rng rng;

		rng_seed(&rng, k);
		check_repair(f, light, &rng);
	}
	base.only = (const char *const[]){ f->jobs[0].name, NULL };
	again = plan_of(f, &base);
	assert_true(plan_is_empty(again));
	check_light(again);
	plan_free(again);
	plan_free(q);
	plan_free(p);
	model_free(f);
	model_free(g);
	free(light);
}

#define TWO_TRUNKS(job)                                                         \
	"weft: 1\nfabric: trunks\nhosts:\n"                                      \
	"  - { name: 'a[0-1]', ports: p0, rate: 100Gbps }\n"                     \
	"  - { name: 'b[0-1]', ports: p0, rate: 100Gbps }\n"                     \
	"switches:\n"                                                            \
	"  - { name: left, size: 4x4, driver: sim }\n"                           \
	"  - { name: right, size: 4x4, driver: sim }\n"                          \
	"fibres:\n"                                                              \
	"  - { from: 'a[0-1].p0', to: 'left.[1-2]' }\n"                          \
	"  - { from: 'b[0-1].p0', to: 'right.[1-2]' }\n"                         \
	"  - { from: 'left.[3-4]', to: 'right.[3-4]' }\n"                        \
	"jobs:\n  - { name: " #job ", nodes: 'a" #job ",b" #job                  \
	"', collective: allreduce, size: 1MiB, topology: 'UniRing(1,2)' }\n"

static int makes_at(const struct plan *p, int device, int in)
{
	int n = 0;

	for (int i = 0; i < p->n_devices; i++) {
		for (int k = 0; p->devices[i].device == device && k < p->devices[i].n_add; k++) {
			n += p->devices[i].add[k].in == in;
		}
	}
	return n;
}

/* The light of a job that ends leaves a drained trunk, and that of another does not take it. */
static void nothing_is_made_at_a_drained_trunk(void **state)
{
	struct model_fabric *f = fabric_of(TWO_TRUNKS(0)), *g = fabric_of(TWO_TRUNKS(1));
	struct plan *p = plan_of(f, NULL), *q;
	struct plan_light *light = light_after(p), seen[2];
	struct plan_base base = { .intent = light, .observed = seen };
	int held = -1;

	(void)state;
	memcpy(seen, light, sizeof(seen));
	for (int i = 0; i < light[1].n_xcs; i++) {
		held = light[1].xcs[i].in >= 2 ? light[1].xcs[i].in : held;
	}
	assert_true(held >= 2);
	q = plan_of(g, &base);
	assert_int_equal(makes_at(q, 1, held), 1);
	plan_free(q);
	seen[1].held_in = &held;
	seen[1].n_held_in = 1;
	q = plan_of(g, &base);
	assert_int_equal(makes_at(q, 1, held), 0);
	check_light(q);
	plan_free(q);
	/* What it was lit for stays there. */
	q = plan_of(f, &base);
	assert_true(plan_is_empty(q));
	plan_free(q);
	free(light);
	plan_free(p);
	model_free(f);
	model_free(g);
}

#define RING_OVER_A_TRUNK(nodes)                                                \
	"weft: 1\nfabric: trunks\nhosts:\n"                                      \
	"  - { name: 'a[0-1]', ports: 'p[0-1]', rate: 100Gbps }\n"                \
	"  - { name: b0, ports: p0, rate: 100Gbps }\n"                            \
	"switches:\n"                                                            \
	"  - { name: left, size: 6x6, driver: sim }\n"                           \
	"  - { name: right, size: 4x4, driver: sim }\n"                          \
	"fibres:\n"                                                              \
	"  - { from: 'a[0-1].p[0-1]', to: 'left.[1-4]' }\n"                      \
	"  - { from: b0.p0, to: right.1 }\n"                                      \
	"  - { from: 'left.[5-6]', to: 'right.[3-4]' }\n"                        \
	"jobs:\n  - { name: j, nodes: '" nodes                                   \
	"', collective: allreduce, size: 1MiB, topology: 'UniRing(1,3)' }\n"

/* Nor does the job itself get other circuits at a drained port of a host; the others are free. */
static void nothing_is_made_at_a_drained_host(void **state)
{
	struct model_fabric *f = fabric_of(RING_OVER_A_TRUNK("a[0-1],b0"));
	struct model_fabric *g = fabric_of(RING_OVER_A_TRUNK("a1,a0,b0"));
	struct plan *p = plan_of(f, NULL), *q;
	struct plan_light *light = light_after(p), seen[2];
	struct plan_base base = { .intent = light, .observed = seen };
	int held = light[0].xcs[0].in, out = light[0].xcs[0].out;

	(void)state;
	memcpy(seen, light, sizeof(seen));
	q = plan_of(g, &base);
	assert_int_equal(makes_at(q, 0, held), 1);
	plan_free(q);
	seen[0].held_in = &held;
	seen[0].held_out = &out;
	seen[0].n_held_in = seen[0].n_held_out = 1;
	q = plan_of(g, &base);
	assert_int_equal(makes_at(q, 0, held), 0);
	check_light(q);
	plan_free(q);
	free(light);
	plan_free(p);
	model_free(f);
	model_free(g);
}

/* Planned in three orders of the jobs; with one wavelength less it is refused where
 * rwa proves that they do not fit. */
static void check_tight(uint64_t seed, int sites)
{
	struct tight_fabric t;
	struct plan *p = NULL, *first = NULL;
	struct model_fabric *f = NULL, *first_fabric = NULL;
	struct err err = { 0 };
	struct rng rng;
	char *text;

	rng_seed(&rng, seed);
	tight_make(&t, seed, sites, 1 + (int)rng_below(&rng, 3), 4);
	for (int k = 0; k < 3; k++) {
		int order[TIGHT_JOBS];

		shuffle(&rng, order, t.n_jobs);
		text = tight_text(&t, order, t.channels);
		f = fabric_of(text);
		free(text);
		p = plan_of(f, NULL);
		check_light(p);
		if (first) {
			check_same(first, p);
			plan_free(p);
			model_free(f);
		} else {
			first = p;
			first_fabric = f;
		}
	}
	plan_free(first);
	model_free(first_fabric);
	check_stays(&t);
	if (t.bound == t.channels && t.channels > 1) {
		text = tight_text(&t, NULL, t.channels - 1);
		f = fabric_of(text);
		free(text);
		p = NULL;
		assert_int_equal(plan_make(f, NULL, &p, &err), WEFT_EINFEASIBLE);
		assert_null(strstr(err.msg, "nothing proves"));
		model_free(f);
	}
	tight_free(&t);
}

/* The ports of an edge at one of its sites are first..first+channels-1. */
static int first_port(const struct tight_fabric *t, int edge, int site, int channels)
{
	int first = t->hosts_a_site * t->ports + 1;

	for (int e = 0; e < edge; e++) {
		first += t->edge[e][0] == site || t->edge[e][1] == site ? channels : 0;
	}
	return first;
}

/* The circuits of arcs in a plan of a job that are not in another; hit: of arcs that pass a
 * device at one of the ports, which do not count. */
static int not_in(const struct plan_job *x, const struct plan_job *y, int device, int first,
		  int ports, bool *hit)
{
	int n = 0;

	for (int i = 0; i < x->n_circuits; i++) {
		const struct plan_circuit *a = &x->circuits[i];
		bool found = false;

		for (int k = 0; k < y->n_circuits && !found; k++) {
			const struct plan_circuit *b = &y->circuits[k];

			found = a->device == b->device && a->xc.in == b->xc.in &&
				a->xc.out == b->xc.out;
		}
		for (int k = 0; k < x->n_circuits; k++) {
			const struct plan_circuit *b = &x->circuits[k];

			hit[i] |= b->arc == a->arc && b->device == device &&
				  ((b->xc.in >= first && b->xc.in < first + ports) ||
				   (b->xc.out >= first && b->xc.out < first + ports));
		}
		n += !found && !hit[i];
	}
	return n;
}

/* All fibres between two sites are cut: what was on them moves, and nothing else. */
static int check_cut(const struct tight_fabric *t, int edge)
{
	int channels = 4 * t->channels, x = t->edge[edge][0], y = t->edge[edge][1], moved = 0;
	int first = first_port(t, edge, x, channels), there = first_port(t, edge, y, channels);
	char *text = tight_text(t, NULL, channels);
	struct model_fabric *f = fabric_of(text), *g;
	struct plan *p = plan_of(f, NULL), *q = NULL;
	struct plan_light *light = light_after(p);
	struct plan_base base = { .intent = light, .observed = light };
	struct buf cut = { 0 };
	struct err err = { 0 };
	int rc;

	buf_printf(&cut, "%sdead:\n  - { port: 's%d.[%d-%d]' }\n  - { port: 's%d.[%d-%d]' }\n",
		   text, x, first, first + channels - 1, y, there, there + channels - 1);
	g = fabric_of(buf_cstr(&cut));
	rc = plan_make(g, &base, &q, &err);
	for (int j = 0; rc == 0 && j < p->n_jobs; j++) {
		const struct plan_job *before = &p->jobs[j];
		const struct plan_job *after = job_named(q, f->jobs[before->job].name);
		bool *hit = calloc((size_t)before->n_circuits + 1, sizeof(*hit));

		assert_int_equal(not_in(before, after, x, first - 1, channels, hit), 0);
		for (int i = 0; i < before->n_circuits; i++) {
			moved += hit[i];
		}
		free(hit);
	}
	if (rc == 0) {
		check_light(q);
	}
	assert_true(rc == 0 || rc == WEFT_EINFEASIBLE);
	free(text);
	buf_fini(&cut);
	free(light);
	plan_free(q);
	plan_free(p);
	model_free(g);
	model_free(f);
	return rc ? 0 : moved;
}

static void cuts_move_what_they_hit(void **state)
{
	int moved = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct tight_fabric t;

		tight_make(&t, seed, 6 + (int)(seed % 3), 1 + (int)(seed % 2), 4);
		for (int e = 0; e < t.n_edges; e++) {
			moved += check_cut(&t, e);
		}
		tight_free(&t);
	}
	print_message("# %d circuits moved\n", moved);
	assert_true(moved > 50);
}

static void found_whenever_rwa_finds_it(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= ALL_OR_SOME(12, 4); seed++) {
		check_tight(seed, 6 + (int)(seed % 4) * 2);
	}
}

/* One way round three switches every two lightpaths over two of them share a fibre,
 * though no fibre has more of them than wavelengths; of two wavelengths of which hosts
 * send one a fibre carries one. */
static void refusals_say_what_proves_them(void **state)
{
	static const char *const said[] = {
		"6 lightpaths, any two of which share a fibre on all their routes, need as many "
		"wavelengths, and hosts send 4: s0 -> s2, s1 -> s0, s2 -> s1",
		"2 lightpaths must lead out of {s0}, and the 1 fibre there carries 1",
	};

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct buf b = { 0 };
		struct model_fabric *f;
		struct plan *p = NULL;
		struct err err = { 0 };

		buf_str(&b, "weft: 1\nfabric: t\nhosts:\n  - { name: 'h[0-2]', ports: "
			"'p[0-1]', rate: 100Gbps, channels: 0-3 }\nswitches:\n"
			"  - { name: 's[0-2]', size: 16x16, driver: sim }\nfibres:\n");
		for (int s = 0; s < 3; s++) {
			buf_printf(&b, "  - { from: 'h%d.p[0-1]', to: 's%d.[1-2]' }\n", s, s);
			buf_printf(&b, "  - { from: 's%d.out[5-%d]', to: 's%d.in[9-%d]', "
				   "channels: '%s' }\n", s, k ? 6 : 8, (s + 1) % 3, k ? 10 : 12,
				   k ? "4,3" : "0-3");
		}
		buf_str(&b, "jobs:\n  - { name: j, nodes: 'h0,h2,h1', collective: allgather, "
			"size: 1MiB, topology: 'UniRing(2,3)' }\n");
		f = fabric_of(buf_cstr(&b));
		assert_int_equal(plan_make(f, NULL, &p, &err), WEFT_EINFEASIBLE);
		if (!strstr(err.msg, said[k])) {
			fail_msg("%s", err.msg);
		}
		model_free(f);
		buf_fini(&b);
	}
}

/* Four switches in a ring, between neighbours a fibre of three wavelengths and one
 * without filters; a host at each with all its ports there, sending 0 to 2, and one
 * with half of them at the next, sending what comes out of the dice; some ports dead. */
static char *mixed_text(struct rng *rng, const char *const *jobs, bool turned)
{
	static const char *const sends[] = { "", ", channels: 0-2", ", channels: '1,2'",
					     ", channels: 0" };
	struct buf b = { 0 };
	int mix = (int)rng_below(rng, 3);

	buf_str(&b, "weft: 1\nfabric: t\nhosts:\n");
	for (int s = 0; s < 4; s++) {
		int other = mix == 0 ? 1 : (int)rng_below(rng, 4);

		buf_printf(&b, "  - { name: a%d, ports: 'p[0-3]', rate: 100Gbps%s }\n", s,
			   sends[1]);
		buf_printf(&b, "  - { name: b%d, ports: 'p[0-3]', rate: 100Gbps%s }\n", s,
			   sends[other]);
	}
	buf_str(&b, "switches:\n  - { name: 's[0-3]', size: 16x16, driver: sim }\nfibres:\n");
	for (int s = 0; s < 4; s++) {
		int next = (s + 1) % 4;

		buf_printf(&b, "  - { from: 'a%d.p[0-3]', to: 's%d.[1-4]' }\n", s, s);
		buf_printf(&b, "  - { from: 'b%d.p[0-1]', to: 's%d.[5-6]' }\n", s, s);
		buf_printf(&b, "  - { from: 'b%d.p[2-3]', to: 's%d.[7-8]' }\n", s,
			   mix == 1 ? s : next);
		buf_printf(&b, "  - { from: 's%d.[9-11]', to: 's%d.[13-15]', channels: 0-2 }\n",
			   s, next);
		buf_printf(&b, "  - { from: 's%d.12', to: 's%d.16' }\n", s, next);
	}
	buf_printf(&b, "dead: [ { port: 's%d.out[%d]' } ]\njobs:\n", (int)rng_below(rng, 4),
		   9 + (int)rng_below(rng, 8));
	buf_str(&b, jobs[turned]);
	buf_str(&b, jobs[!turned]);
	return buf_steal(&b);
}

/* Every kind of host and fibre: what is planned has light, is the same whatever the
 * order of jobs, and stays; what is refused is so in both orders. */
static void any_mix_of_hosts_and_fibres(void **state)
{
	static const char *const shapes[] = { "UniRing(1,4)", "UniRing(2,4)", "Ring(4)", "K(4)" };
	int planned = 0, refused = 0;
	struct rng rng, again;

	(void)state;
	rng_seed(&rng, 3);
	for (int k = 0; k < ALL_OR_SOME(60, 15); k++) {
		const char *jobs[2];
		char text[2][200];
		struct plan *p[2] = { NULL, NULL };
		struct model_fabric *f[2];
		struct err err = { 0 };

		for (int j = 0; j < 2; j++) {
			snprintf(text[j], sizeof(text[j]), "  - { name: j%d, nodes: '%c[0-3]', "
				 "collective: allgather, size: 1MiB, topology: '%s', "
				 "algorithm: bfb }\n", j, 'a' + j, shapes[rng_below(&rng, 4)]);
			jobs[j] = text[j];
		}
		again = rng;
		for (int i = 0; i < 2; i++) {
			char *whole = mixed_text(i ? &again : &rng, jobs, i == 1);

			f[i] = fabric_of(whole);
			free(whole);
			err_clear(&err);
			if (plan_make(f[i], NULL, &p[i], &err)) {
				assert_int_equal(err.code, WEFT_EINFEASIBLE);
			}
		}
		assert_true((p[0] == NULL) == (p[1] == NULL));
		if (p[0]) {
			struct plan_light *light = light_after(p[0]);
			struct plan_base base = { .intent = light, .observed = light };
			struct plan *same;

			check_light(p[0]);
			check_same(p[0], p[1]);
			same = plan_of(f[0], &base);
			assert_true(plan_is_empty(same));
			plan_free(same);
			free(light);
		}
		planned += p[0] != NULL;
		refused += p[0] == NULL;
		for (int i = 0; i < 2; i++) {
			plan_free(p[i]);
			model_free(f[i]);
		}
	}
	assert_true(planned > ALL_OR_SOME(40, 8) && refused > ALL_OR_SOME(2, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_made_at_a_drained_trunk),
		cmocka_unit_test(nothing_is_made_at_a_drained_host),
		cmocka_unit_test(found_whenever_rwa_finds_it),
		cmocka_unit_test(cuts_move_what_they_hit),
		cmocka_unit_test(refusals_say_what_proves_them),
		cmocka_unit_test(any_mix_of_hosts_and_fibres),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
