/* SPDX-License-Identifier: Apache-2.0 */
/* Planning: circuits, device steps, purity, and the plan file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/finder/finder.h"
#include "controller/plan/plan.h"
#include "controller/plan/private.h"
#include "lib/base/number/rng.h"
#include "tests/unit/plan/fixture.h"

#define HOSTS_2X2                                                       \
	"weft: 1\n"                                                     \
	"fabric: t\n"                                                   \
	"hosts:\n"                                                      \
	"  - { name: 'h[0-7]', ports: 'p[0-3]', rate: 100Gbps }\n"      \
	"switches:\n"                                                   \
	"  - { name: ocs0, size: 16x16, driver: sim }\n"                \
	"  - { name: ocs1, size: 16x16, driver: sim }\n"                \
	"fibres:\n"                                                     \
	"  - { from: 'h[0-7].p[0-1]', to: 'ocs0.[1-16]' }\n"            \
	"  - { from: 'h[0-7].p[2-3]', to: 'ocs1.[1-16]' }\n"

#define JOB(topology)                                                   \
	"jobs:\n"                                                       \
	"  - { name: j, nodes: 'h[0-7]', collective: allreduce, "       \
	"size: 1MiB, topology: '" topology "', alpha: 10us }\n"

#define DUPLEX                                                          \
	"weft: 1\n"                                                     \
	"fabric: t\n"                                                   \
	"hosts:\n"                                                      \
	"  - { name: 'h[0-7]', ports: 'p[0-3]', rate: 100Gbps }\n"      \
	"switches:\n"                                                   \
	"  - { name: ocs0, ports: 32, any-to-any: true, driver: sim }\n" \
	"fibres:\n"                                                     \
	"  - { from: 'h[0-7].p[0-3]', to: 'ocs0.[1-32]' }\n"

/* ---- helpers ---- */

static const struct plan_device *steps_of(const struct plan *p, int device)
{
	for (int i = 0; i < p->n_devices; i++) {
		if (p->devices[i].device == device) {
			return &p->devices[i];
		}
	}
	fail();
	return NULL;
}

/* Every arc has one circuit between ports of the right hosts, no port is in
 * two circuits. */
static void check_circuits(const struct plan *p, const struct plan_job *pj)
{
	const struct model_fabric *f = p->fabric;
	const struct model_job *job = &f->jobs[pj->job];
	const struct topo *topo = coll_topo(pj->sched);
	bool *tx = calloc(f->n_ports, sizeof(*tx));
	bool *rx = calloc(f->n_ports, sizeof(*rx));
	bool *arc = calloc(topo_m(topo), sizeof(*arc));
	int n_arcs = 0;

	for (int i = 0; i < pj->n_circuits; i++) {
		const struct plan_circuit *c = &pj->circuits[i];
		const struct topo_arc *a = topo_arc(topo, c->arc);
		const struct model_port *t = &f->ports[c->tx_port];
		const struct model_port *r = &f->ports[c->rx_port];

		assert_int_equal(t->host, job->hosts[a->src]);
		assert_int_equal(r->host, job->hosts[a->dst]);
		assert_int_equal(t->tx_device, c->device);
		assert_int_equal(r->rx_device, c->device);
		if (f->devices[c->device].any_to_any) {
			assert_true(c->xc.in < c->xc.out);
			assert_int_equal(c->xc.in + c->xc.out,
					 t->tx_port + r->rx_port);
		} else {
			assert_int_equal(c->xc.in, t->tx_port);
			assert_int_equal(c->xc.out, r->rx_port);
		}
		assert_false(tx[c->tx_port] || rx[c->rx_port] || arc[c->arc]);
		tx[c->tx_port] = rx[c->rx_port] = arc[c->arc] = true;
	}
	for (int a = 0; a < topo_m(topo); a++) {
		n_arcs += topo_arc(topo, a)->src != topo_arc(topo, a)->dst;
	}
	assert_int_equal(pj->n_circuits, n_arcs);
	free(tx);
	free(rx);
	free(arc);
}

/* ---- switches ---- */

static void every_arc_gets_its_circuit(void **state)
{
	static const char *const topologies[] = {
		"C(8,{1,2})", "C(8,{1,3})", "Torus(2,4)", "Ring(8)", "K(4,4)",
		"Hypercube(3)", "GenKautz(4,8)", "UniRing(4,8)", "auto",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(topologies) / sizeof(*topologies); i++) {
		char text[2048];
		struct model_fabric *f;
		struct plan *p;

		snprintf(text, sizeof(text), HOSTS_2X2
			 "jobs:\n"
			 "  - { name: j, nodes: 'h[0-7]', "
			 "collective: allreduce, size: 1MiB, "
			 "topology: '%s', alpha: 10us }\n",
			 topologies[i]);
		f = fabric_of(text);
		p = plan_of(f, NULL);
		assert_int_equal(p->n_jobs, 1);
		check_circuits(p, &p->jobs[0]);
		assert_true(p->jobs[0].time_ns >= p->jobs[0].bound_ns);
		assert_int_equal(p->n_del, 0);
		assert_true(p->n_add > 0);
		plan_free(p);
		model_free(f);
	}
}

static void nothing_to_do_after_it_was_done(void **state)
{
	struct model_fabric *f = fabric_of(HOSTS_2X2 JOB("C(8,{1,3})"));
	struct plan *first = plan_of(f, NULL), *second;
	struct plan_light *light = light_after(first);
	struct plan_base base = { .intent = light, .observed = light };

	(void)state;
	second = plan_of(f, &base);
	assert_true(plan_is_empty(second));
	assert_int_equal(second->n_keep, first->n_add);
	for (int i = 0; i < second->jobs[0].n_circuits; i++) {
		assert_false(second->jobs[0].circuits[i].moved);
	}
	plan_free(second);
	free(light);
	plan_free(first);
	model_free(f);
}

static void another_topology_keeps_what_it_shares(void **state)
{
	struct model_fabric *f = fabric_of(HOSTS_1 JOB("C(8,{1,3})"));
	struct model_fabric *g = fabric_of(HOSTS_1 JOB("C(8,{1,2})"));
	struct plan *first = plan_of(f, NULL), *second;
	struct plan_light *light = light_after(first);
	struct plan_base base = { .intent = light, .observed = light };

	(void)state;
	second = plan_of(g, &base);
	check_circuits(second, &second->jobs[0]);
	/* Sixteen arcs of offset one are common to both. */
	assert_int_equal(second->n_keep, 16);
	assert_int_equal(second->n_del, 16);
	assert_int_equal(second->n_add, 16);
	plan_free(second);
	free(light);
	plan_free(first);
	model_free(g);
	model_free(f);
}

/* Circuits of a random part go missing, or lose their light while they stay in
 * the list: just those are made again. Those of
 * `more` came first, so what `text` has is not on the ports of its first
 * choice. */
static void check_repair(const char *more, const char *text, uint64_t seed)
{
	struct model_fabric *g = fabric_of(more), *f = fabric_of(text);
	struct plan *before = plan_of(g, NULL);
	struct plan_light *old = light_after(before);
	struct plan_base start = { .intent = old, .observed = old };
	struct plan *first = plan_of(f, &start), *second;
	struct plan_light *intent = light_after(first);
	struct plan_light *seen = light_after(first);
	struct plan_base base = { .intent = intent, .observed = seen };
	int n_gone = 0;

	for (int d = 0; d < f->n_devices; d++) {
		struct optics_xc *left = calloc((size_t)intent[d].n_xcs + 1,
						sizeof(*left));
		struct optics_xc *dark = calloc((size_t)intent[d].n_xcs + 1,
						sizeof(*dark));
		int n = 0;

		assert_non_null(left);
		assert_non_null(dark);
		for (int i = 0; i < intent[d].n_xcs; i++) {
			uint64_t what = rng_mix(seed + (uint64_t)(d * 100 + i)) %
					4;

			if (what > 0) {
				left[n++] = intent[d].xcs[i];
			}
			if (what == 1) {
				dark[seen[d].n_dark++] = intent[d].xcs[i];
			}
		}
		n_gone += intent[d].n_xcs - n + seen[d].n_dark;
		seen[d].xcs = left;
		seen[d].dark = dark;
		seen[d].n_xcs = n;
	}
	second = plan_of(f, &base);
	check_circuits(second, &second->jobs[0]);
	assert_int_equal(second->n_add, n_gone);
	assert_int_equal(second->n_del, 0);
	for (int d = 0; d < second->n_devices; d++) {
		const struct plan_device *pd = &second->devices[d];

		assert_int_equal(pd->n_want, intent[pd->device].n_xcs);
		for (int i = 0; i < pd->n_want; i++) {
			assert_int_equal(optics_xc_cmp(&pd->want[i],
					 &intent[pd->device].xcs[i]), 0);
		}
	}
	plan_free(second);
	for (int d = 0; d < f->n_devices; d++) {
		free((void *)seen[d].xcs);
		free((void *)seen[d].dark);
	}
	free(seen);
	free(intent);
	plan_free(first);
	free(old);
	plan_free(before);
	model_free(g);
	model_free(f);
}

static void what_is_missing_is_repaired_where_it_was(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		check_repair(HOSTS_1 JOB("C(8,{2,3})"),
			     HOSTS_1 JOB("Ring(8)"), seed);
		check_repair(HOSTS_1 JOB("C(8,{1,2})"),
			     HOSTS_1 JOB("C(8,{2,3})"), seed);
		check_repair(HOSTS_2X2 JOB("C(8,{2,3})"),
			     HOSTS_2X2 JOB("Ring(8)"), seed);
		check_repair(HOSTS_2X2 JOB("C(8,{1,2})"),
			     HOSTS_2X2 JOB("C(8,{1,3})"), seed);
	}
}

static void a_job_that_is_gone_is_cleared(void **state)
{
	struct model_fabric *f = fabric_of(HOSTS_2X2 JOB("C(8,{1,3})"));
	struct model_fabric *g = fabric_of(HOSTS_2X2);
	struct plan *first = plan_of(f, NULL), *second;
	struct plan_light *light = light_after(first);
	struct plan_base base = { .intent = light, .observed = light };

	(void)state;
	second = plan_of(g, &base);
	assert_int_equal(second->n_del, first->n_add);
	assert_int_equal(second->n_add, 0);
	plan_free(second);
	free(light);
	plan_free(first);
	model_free(g);
	model_free(f);
}

/* Random old light on both switches; the number kept must be the best that
 * any spread of the arcs over the two switches allows. */
struct spread {
	int n_pairs, n;
	int u[64], v[64], mult[64];
	int have[2][64];
	int out[2][8], in[2][8];	/* free ports left */
};

static int best_kept(struct spread *s, int i, int unit)
{
	int best = -1;

	if (i == s->n_pairs) {
		return 0;
	}
	if (unit > s->mult[i]) {
		return best_kept(s, i + 1, 0);
	}
	/* `unit` arcs of pair i go to switch 0, the others to switch 1. */
	for (; unit <= s->mult[i]; unit++) {
		int a = unit, b = s->mult[i] - unit, sub;
		int kept = (a < s->have[0][i] ? a : s->have[0][i]) +
			   (b < s->have[1][i] ? b : s->have[1][i]);

		s->out[0][s->u[i]] -= a;
		s->in[0][s->v[i]] -= a;
		s->out[1][s->u[i]] -= b;
		s->in[1][s->v[i]] -= b;
		if (s->out[0][s->u[i]] >= 0 && s->in[0][s->v[i]] >= 0 &&
		    s->out[1][s->u[i]] >= 0 && s->in[1][s->v[i]] >= 0) {
			sub = best_kept(s, i + 1, 0);
			if (sub >= 0 && sub + kept > best) {
				best = sub + kept;
			}
		}
		s->out[0][s->u[i]] += a;
		s->in[0][s->v[i]] += a;
		s->out[1][s->u[i]] += b;
		s->in[1][s->v[i]] += b;
	}
	return best;
}

static int find_pair(const struct spread *s, int u, int v)
{
	for (int i = 0; i < s->n_pairs; i++) {
		if (s->u[i] == u && s->v[i] == v) {
			return i;
		}
	}
	return -1;
}

static void fill_spread(struct spread *s, const struct topo *t, int per_switch)
{
	memset(s, 0, sizeof(*s));
	s->n = topo_n(t);
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		int i = find_pair(s, arc->src, arc->dst);

		if (arc->src == arc->dst) {
			continue;
		}
		if (i < 0) {
			i = s->n_pairs++;
			s->u[i] = arc->src;
			s->v[i] = arc->dst;
		}
		s->mult[i]++;
	}
	for (int k = 0; k < 2; k++) {
		for (int r = 0; r < s->n; r++) {
			s->out[k][r] = s->in[k][r] = per_switch;
		}
	}
}

/* A random partial permutation of the first `ports` ports. */
static int random_light(struct rng *r, struct optics_xc *xcs, int ports)
{
	int out[64], n = 0;

	for (int i = 0; i < ports; i++) {
		out[i] = i;
	}
	for (int i = ports - 1; i > 0; i--) {
		int j = (int)rng_below(r, i + 1), t = out[i];

		out[i] = out[j];
		out[j] = t;
	}
	for (int i = 0; i < ports; i++) {
		if (rng_below(r, 4) != 0) {
			xcs[n++] = (struct optics_xc){ .in = i, .out = out[i] };
		}
	}
	return n;
}

/* checklist 25: against every assignment there is. */
static void moves_are_the_fewest_possible(void **state)
{
	static const char text[] =
		"weft: 1\n"
		"fabric: t\n"
		"hosts:\n"
		"  - { name: 'h[0-4]', ports: 'p[0-3]', rate: 100Gbps }\n"
		"switches:\n"
		"  - { name: ocs0, size: 10x10, driver: sim }\n"
		"  - { name: ocs1, size: 10x10, driver: sim }\n"
		"fibres:\n"
		"  - { from: 'h[0-4].p[0-1]', to: 'ocs0.[1-10]' }\n"
		"  - { from: 'h[0-4].p[2-3]', to: 'ocs1.[1-10]' }\n"
		"jobs:\n"
		"  - { name: j, nodes: 'h[0-4]', collective: allgather, "
		"size: 1MiB, topology: 'UniRing(3,5)', alpha: 10us }\n";
	struct model_fabric *f = fabric_of(text);
	struct rng r;

	(void)state;
	rng_seed(&r, 11);
	for (int round = 0; round < 60; round++) {
		struct optics_xc xcs[2][16];
		struct plan_light light[2] = { 0 };
		struct plan_base base = { .intent = light, .observed = light };
		struct spread s;
		struct plan *p;

		for (int k = 0; k < 2; k++) {
			light[k].known = true;
			light[k].xcs = xcs[k];
			light[k].n_xcs = random_light(&r, xcs[k], 10);
		}
		p = plan_of(f, &base);
		check_circuits(p, &p->jobs[0]);
		fill_spread(&s, coll_topo(p->jobs[0].sched), 2);
		for (int k = 0; k < 2; k++) {
			for (int i = 0; i < light[k].n_xcs; i++) {
				int pair = find_pair(&s, xcs[k][i].in / 2,
						     xcs[k][i].out / 2);

				s.have[k][pair < 0 ? 63 : pair] += pair >= 0;
			}
		}
		assert_int_equal(p->n_keep, best_kept(&s, 0, 0));
		assert_int_equal(p->n_add, 15 - p->n_keep);
		plan_free(p);
	}
	model_free(f);
}

/* ---- what others have put there ---- */

static void external_light_is_left_alone_or_named(void **state)
{
	struct model_fabric *f = fabric_of(HOSTS_2X2 JOB("C(8,{1,3})"));
	struct optics_xc there[] = { { .in = 0, .out = 0 } };
	struct plan_light observed[2] = {
		{ .known = true, .n_xcs = 1, .xcs = there },
		{ .known = true },
	};
	struct plan_base base = { .observed = observed };
	struct plan *p = NULL;
	struct err err = { 0 };

	(void)state;
	/* All four ports of h0 are needed, one carries an external circuit. */
	assert_int_equal(plan_make(f, &base, &p, &err), WEFT_EINFEASIBLE);
	assert_null(p);
	assert_non_null(strstr(err.msg, "job j"));
	assert_non_null(strstr(err.msg, "h0"));
	assert_true(err.line > 0);
	assert_non_null(strstr(err.hint, "update"));

	base.mode = PLAN_UPDATE;
	p = plan_of(f, &base);
	assert_int_equal(steps_of(p, 0)->n_displaced, 1);
	assert_int_equal(steps_of(p, 0)->n_del, 1);
	assert_int_equal(steps_of(p, 0)->del[0].in, 0);
	plan_free(p);
	model_free(f);
}

static void external_light_out_of_the_way_stays(void **state)
{
	struct model_fabric *f = fabric_of(HOSTS_2X2 JOB("Ring(8)"));
	struct optics_xc there[] = { { .in = 1, .out = 9 } };
	struct plan_light observed[2] = {
		{ .known = true, .n_xcs = 1, .xcs = there },
		{ .known = true },
	};
	struct plan_base base = { .observed = observed };
	struct plan *p = plan_of(f, &base);

	(void)state;
	check_circuits(p, &p->jobs[0]);
	assert_int_equal(p->n_del, 0);
	assert_int_equal(steps_of(p, 0)->n_external, 1);
	for (int i = 0; i < steps_of(p, 0)->n_add; i++) {
		assert_int_not_equal(steps_of(p, 0)->add[i].in, 1);
		assert_int_not_equal(steps_of(p, 0)->add[i].out, 9);
	}
	plan_free(p);
	model_free(f);
}

static void external_light_that_is_wanted_is_adopted(void **state)
{
	struct model_fabric *f = fabric_of(HOSTS_2X2 JOB("C(8,{1,3})"));
	struct optics_xc there[] = { { .in = 0, .out = 2 } };	/* h0 -> h1 */
	struct plan_light observed[2] = {
		{ .known = true, .n_xcs = 1, .xcs = there },
		{ .known = true },
	};
	struct plan_base base = { .observed = observed };
	struct plan *p = plan_of(f, &base);

	(void)state;
	check_circuits(p, &p->jobs[0]);
	assert_int_equal(p->n_keep, 1);
	assert_int_equal(p->n_del, 0);
	assert_int_equal(p->n_add, 31);
	plan_free(p);
	model_free(f);
}

/* checklist 21: failed, disabled and worn ports are left out of plans. */
static void failed_ports_are_not_used(void **state)
{
	struct model_fabric *f = fabric_of(HOSTS_2X2 JOB("Ring(8)"));
	struct model_fabric *g = fabric_of(HOSTS_2X2 JOB("C(8,{1,3})"));
	int bad[] = { 0, 5 };
	struct plan_light observed[2] = {
		{ .known = true, .n_bad_in = 2, .bad_in = bad },
		{ .known = true },
	};
	struct plan_base base = { .observed = observed };
	struct plan *p = plan_of(f, &base);
	struct err err = { 0 };

	(void)state;
	check_circuits(p, &p->jobs[0]);
	for (int i = 0; i < steps_of(p, 0)->n_add; i++) {
		assert_int_not_equal(steps_of(p, 0)->add[i].in, 0);
		assert_int_not_equal(steps_of(p, 0)->add[i].in, 5);
	}
	plan_free(p);
	p = NULL;
	assert_int_equal(plan_make(g, &base, &p, &err), WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "transmit ports at h0"));
	model_free(g);
	model_free(f);
}

/* ---- one job's light only ---- */

/* Eight hosts with four ports each, two by two on two switches; jobs on four
 * hosts each. */
#define TWO_HALVES(text)                                                \
	"weft: 1\nfabric: t\nhosts:\n"                                  \
	"  - { name: 'h[0-7]', ports: 'p[0-3]', rate: 100Gbps }\n"      \
	"switches:\n"                                                   \
	"  - { name: ocs0, size: 16x16, driver: sim }\n"                \
	"  - { name: ocs1, size: 16x16, driver: sim }\n"                \
	"fibres:\n"                                                     \
	"  - { from: 'h[0-7].p[0-1]', to: 'ocs0.[1-16]' }\n"            \
	"  - { from: 'h[0-7].p[2-3]', to: 'ocs1.[1-16]' }\n"            \
	"jobs:\n"                                                       \
	"  - { name: a, nodes: 'h[0-3]', collective: allreduce, "       \
	"size: 1MiB, topology: auto }\n" text
#define SECOND_HALF(topology)                                           \
	"  - { name: b, nodes: 'h[4-7]', collective: allgather, "       \
	"size: 1MiB, topology: '" topology "' }\n"

/* Of job a's circuits some are gone and some are at failed ports; b's are in
 * the upper half of the ports. */
static void let_die(struct plan_light *seen, int (*bad)[16], struct optics_xc (*dark)[16],
		    uint64_t seed)
{
	for (int d = 0; d < 2; d++) {
		struct optics_xc *left = calloc(64, sizeof(*left));
		int n = 0, n_bad = 0;

		assert_non_null(left);
		for (int i = 0; i < seen[d].n_xcs; i++) {
			struct optics_xc xc = seen[d].xcs[i];
			uint64_t dice = rng_mix(seed + (uint64_t)(99 * d + i));

			if (xc.in >= 8 || dice % 3) {
				left[n++] = xc;
			}
			if (xc.in < 8 && dice % 5 == 0) {
				bad[d][n_bad++] = xc.in;
			}
		}
		seen[d].xcs = left;
		seen[d].n_xcs = n;
		ports_fail(&seen[d], dark[d], n_bad, bad[d], 0, NULL);
	}
}

static void expect_untouched(const struct plan *p, const struct plan_light *was)
{
	for (int i = 0; i < p->n_devices; i++) {
		const struct plan_device *d = &p->devices[i];
		const struct plan_light *l = &was[d->device];
		int n = 0;

		for (int k = 0; k < d->n_del; k++) {
			assert_true(d->del[k].in >= 8 && d->del[k].out >= 8);
		}
		for (int k = 0; k < d->n_add; k++) {
			assert_true(d->add[k].in >= 8 && d->add[k].out >= 8);
		}
		/* What a is meant to have it is still meant to have. */
		for (int k = 0; k < l->n_xcs; k++) {
			n += l->xcs[k].in < 8;
		}
		for (int k = 0; k < d->n_want; k++) {
			n -= d->want[k].in < 8;
		}
		assert_int_equal(n, 0);
	}
}

static void light_of_other_jobs_stays_dead_or_alive(void **state)
{
	static const char *const texts[] = {
		TWO_HALVES(""), TWO_HALVES(SECOND_HALF("Ring(4)")),
		TWO_HALVES(SECOND_HALF("K(4)")),
		TWO_HALVES(SECOND_HALF("auto")),
	};
	int n_left = 0;

	(void)state;
	for (uint64_t round = 0; round < 32; round++) {
		struct model_fabric *f = fabric_of(texts[round % 4]);
		struct model_fabric *g = fabric_of(texts[round / 4 % 4]);
		struct plan *first = plan_of(f, NULL), *second;
		struct plan_light *intent = light_after(first);
		struct plan_light *seen = light_after(first);
		struct plan_base base = { .intent = intent, .observed = seen,
					  .only = (const char *const[]){ "b", NULL } };
		struct optics_xc dark[2][16];
		int bad[2][16];

		let_die(seen, bad, dark, round);
		second = plan_of(g, &base);
		expect_untouched(second, intent);
		n_left += second->devices[0].n_leave;
		plan_free(second);
		free((void *)seen[0].xcs);
		free((void *)seen[1].xcs);
		free(seen);
		free(intent);
		plan_free(first);
		model_free(g);
		model_free(f);
	}
	assert_true(n_left > 0);
}

/* ---- circuits that another user removed ---- */

/* Exactly what is asked for is made, what is in its way goes, and nothing else
 * moves: neither other dead circuits nor circuits of others. */
static void only_what_is_restored_moves(void **state)
{
	struct model_fabric *f = fabric_of(HOSTS_2X2 JOB("C(8,{1,2})"));
	struct plan *first = plan_of(f, NULL), *p;
	struct plan_light *intent = light_after(first);

	(void)state;
	for (uint64_t seed = 0; seed < 64; seed++) {
		struct plan_light *seen = light_after(first);
		size_t bytes = (size_t)seen[0].n_xcs * sizeof(*seen[0].xcs);
		struct optics_xc *xcs = memcpy(malloc(bytes), seen[0].xcs,
					       bytes);
		struct plan_restore back = { .device = 0, .n_xcs = 1 };
		struct plan_base base = { .intent = intent, .observed = seen,
					  .mode = PLAN_UPDATE,
					  .restore = &back, .n_restore = 1 };
		int gone = (int)(rng_mix(seed) % (uint64_t)seen[0].n_xcs);
		struct optics_xc lost = xcs[gone], thief;
		const struct plan_device *d;

		/* Somebody moved it: its input now lights another output, and
		 * one more circuit is gone without being asked for. */
		thief = (struct optics_xc){ lost.in, xcs[(gone + 1) %
					   seen[0].n_xcs].out };
		memmove(xcs + gone, xcs + gone + 1,
			(size_t)(seen[0].n_xcs - gone - 1) * sizeof(*xcs));
		seen[0].n_xcs--;
		xcs[gone % seen[0].n_xcs] = thief;
		qsort(xcs, (size_t)seen[0].n_xcs, sizeof(*xcs), optics_xc_cmp);
		seen[0].xcs = xcs;
		back.xcs = &lost;
		p = plan_of(f, &base);
		d = steps_of(p, 0);
		assert_int_equal(p->n_jobs, 0);
		assert_int_equal(d->n_add, 1);
		assert_int_equal(optics_xc_cmp(d->add, &lost), 0);
		assert_int_equal(d->n_del, 1);
		assert_int_equal(optics_xc_cmp(d->del, &thief), 0);
		assert_int_equal(d->n_displaced, 1);
		assert_int_equal(d->n_want, intent[0].n_xcs);
		assert_int_equal(d->n_leave, 1);
		assert_int_equal(steps_of(p, 1)->n_add, 0);
		assert_int_equal(steps_of(p, 1)->n_del, 0);
		assert_int_equal(steps_of(p, 1)->n_want, intent[1].n_xcs);
		plan_free(p);
		free(xcs);
		free(seen);
	}
	free(intent);
	plan_free(first);
	model_free(f);
}

/* ---- topology: auto ---- */

#define ANY(ports, n, switch_keys, size)                                \
	ASKED(ports, n, switch_keys, size, "auto", "auto")

#define ASKED(ports, n, switch_keys, size, topology, algorithm)         \
	"weft: 1\n"                                                     \
	"fabric: t\n"                                                   \
	"hosts:\n"                                                      \
	"  - { name: 'h[0-15]', ports: 'p[0-" ports "]', rate: 100Gbps }\n" \
	"switches:\n"                                                   \
	"  - { name: ocs0, " switch_keys ", driver: sim }\n"            \
	"fibres:\n"                                                     \
	"  - { from: 'h[0-15].p[0-" ports "]', to: 'ocs0.[1-" n "]' }\n" \
	"jobs:\n"                                                       \
	"  - { name: j, nodes: 'h[0-15]', collective: allreduce, "      \
	"size: " size ", topology: '" topology "', algorithm: " algorithm \
	", alpha: 10us }\n"

/* As many ports as there are, odd or even; arcs both ways where circuits
 * are. */
static void auto_keeps_to_the_ports(void **state)
{
	static const struct {
		const char *text;
		int ports;
		bool both;
	} rows[] = {
		{ ANY("0", "16", "size: 16x16", "1MiB"), 1, false },
		{ ANY("1", "32", "size: 32x32", "1MiB"), 2, false },
		{ ANY("2", "48", "size: 48x48", "1MiB"), 3, false },
		{ ANY("3", "64", "size: 64x64", "1MiB"), 4, false },
		{ ANY("1", "32", "ports: 32, any-to-any: true", "1MiB"), 2,
		  true },
		{ ANY("2", "48", "ports: 48, any-to-any: true", "1MiB"), 3,
		  true },
		{ ANY("3", "64", "ports: 64, any-to-any: true", "1MiB"), 4,
		  true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct model_fabric *f = fabric_of(rows[i].text);
		struct plan *p = plan_of(f, NULL);
		const struct topo *t = coll_topo(p->jobs[0].sched);

		check_circuits(p, &p->jobs[0]);
		assert_true(topo_max_degree(t) <= rows[i].ports);
		assert_true(!rows[i].both || topo_is_symmetric(t));
		assert_true(p->jobs[0].time_ns >= p->jobs[0].bound_ns);
		plan_free(p);
		model_free(f);
	}
}

/* What the finder promises for n nodes of so many ports of 100 Gbit/s, 10 us a
 * step and 1 MiB. */
static double best_of_frontier(int n, int ports, bool both)
{
	struct coll_query q = { n, ports, both, COLL_ALLREDUCE, 0, 0 };
	struct coll_frontier f;
	double best = -1;

	assert_int_equal(coll_find(&q, true, &f, NULL), 0);
	for (size_t i = 0; i < f.points.n; i++) {
		const struct coll_point *x = &f.points.v[i];
		double ns = x->steps * 1e4 + (double)x->num / (double)x->den *
					     1048576 * 8 / (1e2 * ports);

		best = best < 0 || ns < best ? ns : best;
	}
	coll_frontier_fini(&f);
	return best;
}

/* Sizes that no family is made for: what the finder knows is reached, wired
 * through the switch, and needs no more ports than there are. */
static void auto_reaches_the_frontier(void **state)
{
	static const struct {
		int n, ports;
		bool both;
	} rows[] = {
		{ 7, 2, false }, { 11, 4, false }, { 13, 4, true },
		{ 14, 3, false }, { 15, 4, true }, { 17, 5, false },
		{ 19, 3, false }, { 21, 4, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int n = rows[i].n, ports = rows[i].ports, all = n * ports;
		char text[2048], size[64];
		struct model_fabric *f;
		struct plan *p;

		snprintf(size, sizeof(size), rows[i].both
			 ? "ports: %d, any-to-any: true" : "size: %dx%d",
			 all, all);
		snprintf(text, sizeof(text), "weft: 1\nfabric: t\nhosts:\n"
			 "  - { name: 'h[1-%d]', ports: 'p[1-%d]', rate: "
			 "100Gbps }\nswitches:\n  - { name: ocs0, %s, "
			 "driver: sim }\nfibres:\n  - { from: 'h[1-%d].p[1-"
			 "%d]', to: 'ocs0.[1-%d]' }\njobs:\n  - { name: j, "
			 "nodes: 'h[1-%d]', collective: allreduce, size: 1MiB, "
			 "topology: auto, alpha: 10us }\n", n, ports, size, n,
			 ports, all, n);
		f = fabric_of(text);
		p = plan_of(f, NULL);
		check_circuits(p, &p->jobs[0]);
		assert_true(topo_max_degree(coll_topo(p->jobs[0].sched)) <=
			    ports);
		assert_true(!rows[i].both ||
			    topo_is_symmetric(coll_topo(p->jobs[0].sched)));
		assert_true((double)p->jobs[0].time_ns <=
			    best_of_frontier(n, ports, rows[i].both) + 1);
		plan_free(p);
		model_free(f);
	}
}

/* Fewer steps for a small message, T_B at the bound for a large
 * one; never slower than what one could have asked for. */
static void auto_picks_by_size(void **state)
{
	static const char *const sizes[] = { "4KiB", "1GiB" };
	static const char *const asked[] = {
		"auto", "GenKautz(4,16)", "C(16,{3,4})", "UniRing(4,16)",
	};
	int steps[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		int64_t time = 0;

		for (size_t k = 0; k < sizeof(asked) / sizeof(*asked); k++) {
			char text[2048];
			struct model_fabric *f;
			struct plan *p;

			snprintf(text, sizeof(text),
				 ASKED("3", "64", "size: 64x64", "%s", "%s",
				       "auto"), sizes[i], asked[k]);
			f = fabric_of(text);
			p = plan_of(f, NULL);
			if (k == 0) {
				time = p->jobs[0].time_ns;
				steps[i] = p->jobs[0].report.steps;
			}
			if (p->jobs[0].time_ns < time) {
				fail_msg("%s: %s is faster than auto",
					 sizes[i], asked[k]);
			}
			plan_free(p);
			model_free(f);
		}
	}
	assert_true(steps[0] < steps[1]);
}

/* Batches go along trees where links would be idle. */
static void auto_overlaps_batches(void **state)
{
	struct model_fabric *f = fabric_of(
		ASKED("1", "32", "size: 32x32", "1GiB", "GenKautz(2,16)",
		      "auto"));
	struct model_fabric *g = fabric_of(
		ASKED("1", "32", "size: 32x32", "1GiB", "GenKautz(2,16)",
		      "bfb"));
	struct plan *any = plan_of(f, NULL), *plain = plan_of(g, NULL);

	(void)state;
	assert_true(any->jobs[0].time_ns < plain->jobs[0].time_ns);
	assert_true(any->jobs[0].report.steps > plain->jobs[0].report.steps);
	assert_true(mpq_cmp(any->jobs[0].report.bandwidth_factor,
			    plain->jobs[0].report.bandwidth_factor) < 0);
	assert_string_equal(any->jobs[0].algorithm, "trees");
	plan_free(any);
	plan_free(plain);
	model_free(g);
	model_free(f);
}

/* Half of the hosts have a port on a switch of their own. The fastest digraphs
 * have no arcs among them alone that would use it: the next is taken. */
#define UNEVEN(topology)                                                \
	"weft: 1\n"                                                     \
	"fabric: t\n"                                                   \
	"hosts:\n"                                                      \
	"  - { name: 'h[0-7]', ports: 'p[0-1]', rate: 100Gbps }\n"      \
	"switches:\n"                                                   \
	"  - { name: ocs0, size: 12x12, driver: sim }\n"                \
	"  - { name: ocs1, size: 4x4, driver: sim }\n"                  \
	"fibres:\n"                                                     \
	"  - { from: 'h[0-3].p[0-1]', to: 'ocs0.[1-8]' }\n"             \
	"  - { from: 'h[4-7].p0', to: 'ocs0.[9-12]' }\n"                \
	"  - { from: 'h[4-7].p1', to: 'ocs1.[1-4]' }\n"                 \
	"jobs:\n"                                                       \
	"  - { name: j, nodes: 'h[0-7]', collective: allreduce, "       \
	"size: 4KiB, topology: '" topology "', alpha: 10us }\n"

static void auto_keeps_to_the_switches(void **state)
{
	struct model_fabric *f = fabric_of(UNEVEN("Diamond"));
	struct plan *p = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(plan_make(f, NULL, &p, &err), WEFT_EINFEASIBLE);
	model_free(f);
	f = fabric_of(UNEVEN("auto"));
	p = plan_of(f, NULL);
	check_circuits(p, &p->jobs[0]);
	plan_free(p);
	model_free(f);
}

/* ---- all-to-all ---- */

static void every_all_to_all_is_planned(void **state)
{
	static const struct {
		const char *text, *algorithm;
	} all[] = {
		{ ALL_TO_ALL("K(4,4)", "auto"), "mcf" },
		{ ALL_TO_ALL("K(4,4)", "mcf"), "mcf" },
		{ ALL_TO_ALL("K(4,4)", "pmcf"), "pmcf" },
		{ ALL_TO_ALL("K(4,4)", "tsmcf"), "tsmcf" },
		{ ALL_TO_ALL("K(4,4)", "single-path"), "single-path" },
		{ ALL_TO_ALL("K(4,4)", "shortest-path"), "shortest-path" },
		{ ALL_TO_ALL("K(4,4)", "disjoint"), "disjoint" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct model_fabric *f = fabric_of(all[i].text);
		struct plan *p = plan_of(f, NULL);
		const struct plan_job *j = &p->jobs[0];

		assert_string_equal(j->algorithm, all[i].algorithm);
		assert_int_equal(coll_kind_of(j->sched), COLL_ALLTOALL);
		assert_true(coll_chunks(j->sched) == 1 || i < 4 || i == 6);
		/* 1 / F = 5/2 shards on four links of each of eight nodes
		 * (all-to-all-mcf): no schedule has less than 5/4. */
		assert_true(mpq_cmp_ui(j->report.bandwidth_factor, 5, 4) >=
			    0);
		check_circuits(p, j);
		plan_free(p);
		model_free(f);
	}
}

/* With a port gone, the flow is that of a digraph the other ports can make,
 * and takes longer. */
static void an_all_to_all_goes_on_without_a_port(void **state)
{
	struct model_fabric *f = fabric_of(ALL_TO_ALL("auto", "auto"));
	int bad = 6;
	struct plan_light observed = { .known = true, .n_bad_in = 1,
				       .bad_in = &bad };
	struct plan_base base = { .observed = &observed };
	struct plan *whole = plan_of(f, NULL), *less = plan_of(f, &base);

	(void)state;
	check_circuits(less, &less->jobs[0]);
	for (int i = 0; i < steps_of(less, 0)->n_add; i++) {
		assert_int_not_equal(steps_of(less, 0)->add[i].in, bad);
	}
	assert_string_not_equal(less->jobs[0].topology,
				whole->jobs[0].topology);
	assert_true(less->jobs[0].time_ns > whole->jobs[0].time_ns);
	plan_free(less);
	plan_free(whole);
	model_free(f);
}

/* ---- duplex ---- */

static void duplex_circuits_carry_both_directions(void **state)
{
	char text[2048];
	struct model_fabric *f;
	struct plan *p;
	struct err err = { 0 };

	(void)state;
	snprintf(text, sizeof(text), "%s%s", DUPLEX, JOB("C(8,{1,3})"));
	f = fabric_of(text);
	p = plan_of(f, NULL);
	check_circuits(p, &p->jobs[0]);
	assert_int_equal(p->n_add, 16);
	assert_int_equal(p->jobs[0].n_circuits, 32);
	plan_free(p);
	model_free(f);

	snprintf(text, sizeof(text), "%s%s", DUPLEX, JOB("UniRing(2,8)"));
	f = fabric_of(text);
	p = NULL;
	assert_int_equal(plan_make(f, NULL, &p, &err), WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "one-way"));
	model_free(f);
}

/* Balanced orientations of random multigraphs. */
static void orientations_are_balanced(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 3);
	for (int round = 0; round < 500; round++) {
		int n = 2 + (int)rng_below(&r, 9), m = (int)rng_below(&r, 40);
		int ends[40][2], net[11] = { 0 }, degree[11] = { 0 };
		bool flip[40] = { false };

		for (int e = 0; e < m; e++) {
			ends[e][0] = (int)rng_below(&r, n);
			ends[e][1] = (ends[e][0] + 1 +
				      (int)rng_below(&r, n - 1)) % n;
		}
		plan_orient(n, m, (const int (*)[2])ends, flip);
		for (int e = 0; e < m; e++) {
			net[ends[e][flip[e]]]++;
			net[ends[e][!flip[e]]]--;
			degree[ends[e][0]]++;
			degree[ends[e][1]]++;
		}
		for (int u = 0; u < n; u++) {
			assert_int_equal(abs(net[u]), degree[u] % 2);
		}
	}
}

static void several_duplex_switches(void **state)
{
	static const char *const topologies[] = {
		"C(8,{1,3})", "Torus(2,4)", "K(4,4)", "Ring(8)", "auto",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(topologies) / sizeof(*topologies); i++) {
		char text[2048];
		struct model_fabric *f;
		struct plan *p, *again;
		struct plan_light *light;
		struct plan_base base = { 0 };

		snprintf(text, sizeof(text),
			 "weft: 1\nfabric: t\nhosts:\n"
			 "  - { name: 'h[0-7]', ports: 'p[0-3]', "
			 "rate: 100Gbps }\nswitches:\n"
			 "  - { name: 'ocs[0-1]', ports: 16, any-to-any: true,"
			 " driver: sim }\nfibres:\n"
			 "  - { from: 'h[0-7].p[0-1]', to: 'ocs0.[1-16]' }\n"
			 "  - { from: 'h[0-7].p[2-3]', to: 'ocs1.[1-16]' }\n"
			 "jobs:\n"
			 "  - { name: j, nodes: 'h[0-7]', "
			 "collective: allgather, size: 1MiB, "
			 "topology: '%s' }\n", topologies[i]);
		f = fabric_of(text);
		p = plan_of(f, NULL);
		check_circuits(p, &p->jobs[0]);
		assert_int_equal(2 * p->n_add, p->jobs[0].n_circuits);
		light = light_after(p);
		base.intent = base.observed = light;
		again = plan_of(f, &base);
		assert_true(plan_is_empty(again));
		plan_free(again);
		free(light);
		plan_free(p);
		model_free(f);
	}
}

/* ---- rings ---- */

/* Where light added at a node on a channel is dropped, by the program. */
static int dropped_at(const struct ring_settings *prog, int n,
		      const struct ring_setting *add)
{
	for (int hop = 1; hop < n; hop++) {
		int at = (add->node + (add->dir ? n - hop : hop)) % n;

		for (size_t i = 0; i < prog->n; i++) {
			const struct ring_setting *t = &prog->v[i];

			if (t->step == add->step && t->node == at &&
			    t->channel == add->channel &&
			    t->dir == add->dir && t->fibre == add->fibre) {
				assert_true(t->mode & RESONATOR_DROP);
				return at;
			}
		}
	}
	fail_msg("light of node %d is never dropped", add->node);
	return -1;
}

/* The settings of a ring's one program. */
static struct ring_settings only_program(const struct plan_device *d)
{
	struct ring_settings p;

	assert_int_equal(d->programs.n, 1);
	assert_int_equal(ring_program_unpack(&d->programs.v[0], &p, NULL), 0);
	return p;
}

/* Lightpaths from one node to another in a step. */
static int paths_of(const struct ring_settings *prog, int n, int step,
		    int from, int to)
{
	int paths = 0;

	for (size_t i = 0; i < prog->n; i++) {
		const struct ring_setting *t = &prog->v[i];

		if (t->step == step && t->node == from &&
		    (t->mode & RESONATOR_ADD)) {
			paths += dropped_at(prog, n, t) == to;
		}
	}
	return paths;
}

/* Replays the schedule over nothing but the light that the program makes:
 * every node ends with every chunk of every shard. */
static void replay_program(const struct ring_settings *prog,
			   const struct coll_sched *s)
{
	int n = coll_ranks(s), chunks = coll_chunks(s);
	size_t bytes = (size_t)n * n * chunks;
	uint8_t *have = calloc(1, bytes), *before = malloc(bytes);
	int64_t count;
	const struct coll_xfer *x = coll_xfers(s, &count);

	for (int v = 0; v < n; v++) {
		memset(have + (size_t)(v * n + v) * chunks, 1, chunks);
	}
	for (int64_t i = 0; i < count; i++) {
		const struct topo_arc *a = topo_arc(coll_topo(s), x[i].arc);

		if (i == 0 || x[i].step != x[i - 1].step) {
			memcpy(before, have, bytes);
		}
		assert_true(paths_of(prog, n, x[i].step, a->src, a->dst) > 0);
		for (int c = x[i].first; c <= x[i].last; c++) {
			size_t to = (size_t)(a->dst * n + x[i].origin);
			size_t from = (size_t)(a->src * n + x[i].origin);

			assert_true(before[from * chunks + c]);
			have[to * chunks + c] = 1;
		}
	}
	for (size_t k = 0; k < bytes; k++) {
		assert_true(have[k]);
	}
	free(have);
	free(before);
}

static void a_ring_program_adds_and_drops_every_item(void **state)
{
	static const char *const sizes[] = { "8KiB", "1MiB", "400MB" };

	(void)state;
	for (int k = 0; k < 3; k++) {
		char text[1024];
		struct model_fabric *f;
		struct plan *p, *again;
		const struct plan_device *d;
		struct plan_light *light;
		struct plan_base base = { 0 };
		struct ring_settings prog;

		snprintf(text, sizeof(text), RING "jobs:\n"
			 "  - { name: g, ring: r0, nodes: all, collective: "
			 "allgather, size: %s }\n", sizes[k]);
		f = fabric_of(text);
		p = plan_of(f, NULL);
		d = steps_of(p, 0);
		light = light_after(p);
		base.intent = base.observed = light;
		assert_true(d->load_program);
		assert_int_equal(p->n_loads, 1);
		prog = only_program(d);
		assert_int_equal(prog.steps, p->jobs[0].ring.steps);
		replay_program(&prog, p->jobs[0].sched);
		ring_settings_fini(&prog);
		assert_true(p->jobs[0].time_ns <=
			    p->jobs[0].ring.optree_time_ns);
		again = plan_of(f, &base);
		assert_true(plan_is_empty(again));
		plan_free(again);
		free(light);
		plan_free(p);
		model_free(f);
	}
}

/* All transfers of every collective have light in the program. */
static void every_collective_runs_on_a_ring(void **state)
{
	(void)state;
	for (int kind = COLL_ALLGATHER; kind <= COLL_BROADCAST; kind++) {
		char text[1024];
		struct model_fabric *f;
		struct plan *p;
		const struct coll_sched *s;
		const struct coll_xfer *x;
		struct ring_settings prog;
		struct err err = { 0 };
		int64_t n;

		snprintf(text, sizeof(text), RING "jobs:\n"
			 "  - { name: g, ring: r0, nodes: all, collective: %s, "
			 "size: 1MiB }\n",
			 coll_kind_name((enum coll_kind)kind));
		f = fabric_of(text);
		p = plan_of(f, NULL);
		s = p->jobs[0].sched;
		assert_int_equal(coll_kind_of(s), kind);
		assert_int_equal(coll_verify(s, NULL, &err), 0);
		assert_true(p->jobs[0].time_ns >= p->jobs[0].bound_ns);
		x = coll_xfers(s, &n);
		prog = only_program(steps_of(p, 0));
		for (int64_t i = 0; i < n; i++) {
			const struct topo_arc *a =
				topo_arc(coll_topo(s), x[i].arc);

			assert_true(paths_of(&prog, 8, x[i].step, a->src,
					     a->dst) > 0);
		}
		ring_settings_fini(&prog);
		plan_free(p);
		model_free(f);
	}
}

static void a_ring_that_no_job_wants_is_emptied_only_if_ours(void **state)
{
	struct model_fabric *f = fabric_of(RING RING_JOB);
	struct model_fabric *g = fabric_of(RING);
	struct plan *p = plan_of(f, NULL), *q;
	struct plan_light *light = light_after(p);
	struct plan_base ours = { .intent = light, .observed = light };
	struct plan_base external = { .observed = light };
	struct model_fabric *other;
	struct err err = { 0 };

	(void)state;
	q = plan_of(g, &ours);
	assert_int_equal(q->n_loads, 1);
	assert_int_equal(steps_of(q, 0)->programs.n, 0);
	assert_true(steps_of(q, 0)->had_program);
	plan_free(q);
	q = plan_of(g, &external);
	assert_true(plan_is_empty(q));
	plan_free(q);

	/* Nor is an external program replaced unless that is requested. */
	other = fabric_of(RING
		"jobs:\n"
		"  - { name: g, ring: r0, nodes: all, collective: allgather, "
		"size: 1MiB, depth: 3 }\n");
	q = NULL;
	assert_int_equal(plan_make(other, &external, &q, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "r0: holds a program"));
	external.mode = PLAN_UPDATE;
	q = plan_of(other, &external);
	assert_int_equal(q->n_loads, 1);
	plan_free(q);
	model_free(other);
	free(light);
	plan_free(p);
	model_free(g);
	model_free(f);
}

/* ---- purity and the plan file ---- */

static void same_input_same_bytes(void **state)
{
	struct buf a = { 0 }, b = { 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct model_fabric *f = fabric_of(HOSTS_2X2 JOB("auto"));
		struct plan *p = plan_of(f, NULL);

		plan_file_write(p, i ? &b : &a);
		plan_free(p);
		model_free(f);
	}
	assert_string_equal(buf_cstr(&a), buf_cstr(&b));
	buf_fini(&a);
	buf_fini(&b);
}

static void a_plan_file_comes_back(void **state)
{
	struct model_fabric *f = fabric_of(HOSTS_2X2 JOB("Ring(8)"));
	struct plan_base base = { .generation = 41, .mode = PLAN_UPDATE,
				  .state_uuid = "0-1-2" };
	struct plan *p = plan_of(f, &base);
	struct plan_file file;
	struct buf b = { 0 };
	struct err err = { 0 };

	(void)state;
	plan_file_write(p, &b);
	assert_true(plan_file_is(b.data, b.len));
	assert_false(plan_file_is("weft: 1\n", 8));
	assert_int_equal(plan_file_read(b.data, b.len, &file, &err), 0);
	assert_int_equal(file.generation, 41);
	assert_int_equal(file.mode, PLAN_UPDATE);
	assert_string_equal(file.state_uuid, "0-1-2");
	assert_string_equal(file.digest, p->digest);
	assert_string_equal(file.config.text, f->config.text);
	plan_file_fini(&file);

	/* Cut anywhere, it is refused with a reason. */
	for (size_t len = 0; len + 2 < b.len; len += 7) {
		assert_true(plan_file_read(b.data, len, &file, &err) < 0);
		assert_true(err.msg[0] != '\0');
	}
	buf_fini(&b);
	plan_free(p);
	model_free(f);
}

/* ---- fibres between switches ---- */

#define TRUNKS(n)                                                       \
	"weft: 1\n"                                                     \
	"fabric: t\n"                                                   \
	"hosts:\n"                                                      \
	"  - { name: 'h[0-7]', ports: 'p[0-1]', rate: 100Gbps }\n"      \
	"switches:\n"                                                   \
	"  - { name: ocs0, size: 12x12, loss: 1dB, driver: sim }\n"     \
	"  - { name: ocs1, size: 12x12, loss: 1dB, driver: sim }\n"     \
	"  - { name: ocs2, size: 12x12, loss: 1dB, driver: sim }\n"     \
	"fibres:\n"                                                     \
	"  - { from: 'h[0-3].p[0-1]', to: 'ocs0.[1-8]' }\n"             \
	"  - { from: 'h[4-7].p[0-1]', to: 'ocs2.[1-8]' }\n"             \
	"  - { from: 'ocs0.[9-" n "]', to: 'ocs1.[9-" n "]', loss: 2dB }\n" \
	"  - { from: 'ocs1.[1-4]', to: 'ocs2.[9-12]' }\n"

/* Where the light of a port ends, by the circuits wanted; -1: nowhere. */
static int light_of(const struct plan *p, int tx)
{
	const struct model_fabric *f = p->fabric;
	int device = f->ports[tx].tx_device, in = f->ports[tx].tx_port;

	for (int k = 0; k < f->n_devices; k++) {
		const struct plan_device *d = steps_of(p, device);
		int out = -1, t = 0;

		for (int i = 0; i < d->n_want; i++) {
			out = d->want[i].in == in ? d->want[i].out : out;
		}
		if (out < 0 || f->devices[device].out_port[out] >= 0) {
			return out < 0 ? -1 : f->devices[device].out_port[out];
		}
		while (t < f->n_trunks &&
		       (f->trunks[t].from_device != device ||
			f->trunks[t].from_port != out)) {
			t++;
		}
		if (t == f->n_trunks) {
			return -1;
		}
		device = f->trunks[t].to_device;
		in = f->trunks[t].to_port;
	}
	return -1;
}

/* A ring over two halves joined by a switch without hosts: two lightpaths
 * each way cross three switches, and a second plan moves nothing. */
static void arcs_cross_switches(void **state)
{
	struct model_fabric *f = fabric_of(TRUNKS("10") JOB("Ring(8)"));
	struct plan_light light[3] = { 0 };
	struct plan_base base = { .intent = light, .observed = light };
	struct plan *p = plan_of(f, NULL), *again;
	int far = 0;

	(void)state;
	assert_int_equal(f->n_trunks, 12);
	assert_int_equal(p->n_add, 12 + 4 * 3);
	for (int i = 0; i < p->jobs[0].n_circuits; i++) {
		const struct plan_circuit *c = &p->jobs[0].circuits[i];
		const struct topo_arc *arc = topo_arc(
			coll_topo(p->jobs[0].sched), c->arc);

		assert_int_equal(light_of(p, c->tx_port), c->rx_port);
		assert_int_equal(f->ports[c->tx_port].host, arc->src);
		assert_int_equal(f->ports[c->rx_port].host, arc->dst);
	}
	for (int i = 0; i < p->jobs[0].n_paths; i++) {
		far += p->jobs[0].paths[i].loss_mdb == 5000;
	}
	assert_int_equal(far, 4);
	for (int d = 0; d < 3; d++) {
		light[d].n_xcs = steps_of(p, d)->n_want;
		light[d].xcs = steps_of(p, d)->want;
	}
	again = plan_of(f, &base);
	assert_true(plan_is_empty(again));
	assert_int_equal(again->n_keep, p->n_add);
	plan_free(again);
	plan_free(p);
	model_free(f);
}

/* The same three switches with multiplexers between them. */
#define WDM(tuned, near, far)                                           \
	"weft: 1\n"                                                     \
	"fabric: t\n"                                                   \
	"hosts:\n"                                                      \
	"  - { name: 'h[0-7]', ports: 'p[0-1]', rate: 100Gbps" tuned " }\n" \
	"switches:\n"                                                   \
	"  - { name: ocs0, size: 12x12, loss: 1dB, driver: sim }\n"     \
	"  - { name: ocs1, size: 12x12, loss: 1dB, driver: sim }\n"     \
	"  - { name: ocs2, size: 12x12, loss: 1dB, driver: sim }\n"     \
	"fibres:\n"                                                     \
	"  - { from: 'h[0-3].p[0-1]', to: 'ocs0.[1-8]' }\n"             \
	"  - { from: 'h[4-7].p[0-1]', to: 'ocs2.[1-8]' }\n"             \
	"  - { from: 'ocs0.[9-12]', to: 'ocs1.[9-12]', channels: '" near \
	"' }\n"                                                         \
	"  - { from: 'ocs1.[1-4]', to: 'ocs2.[9-12]', channels: '" far    \
	"' }\n"

static const struct model_trunk *trunk_from(const struct model_fabric *f,
					    int device, int out)
{
	for (int t = 0; t < f->n_trunks; t++) {
		if (f->trunks[t].from_device == device &&
		    f->trunks[t].from_port == out) {
			return &f->trunks[t];
		}
	}
	return NULL;
}

/* Only channels 2 and 5 pass both multiplexers. */
static void wavelengths_go_through_filters(void **state)
{
	struct model_fabric *f = fabric_of(WDM(", channels: '0-1,5,2'",
					       "0,1,2,5", "5,2,7,8")
					   JOB("Ring(8)"));
	struct plan_light light[3] = { 0 };
	struct plan_base base = { .intent = light, .observed = light };
	struct plan *p = plan_of(f, NULL), *again;
	int filtered = 0;

	(void)state;
	for (int i = 0; i < p->jobs[0].n_circuits; i++) {
		const struct plan_circuit *c = &p->jobs[0].circuits[i];
		const struct model_trunk *t = trunk_from(f, c->device,
							 c->xc.out);

		assert_int_equal(light_of(p, c->tx_port), c->rx_port);
		if (t) {
			assert_int_equal(t->channel, c->channel);
			assert_true(c->channel == 2 || c->channel == 5);
			filtered++;
		} else {
			assert_in_range(c->channel, 0, 5);
		}
	}
	assert_int_equal(filtered, 4 * 2);
	for (int d = 0; d < 3; d++) {
		light[d].n_xcs = steps_of(p, d)->n_want;
		light[d].xcs = steps_of(p, d)->want;
	}
	again = plan_of(f, &base);
	assert_true(plan_is_empty(again));
	plan_free(again);
	plan_free(p);
	model_free(f);
}

/* No wavelength goes all the way, then only one does, then hosts send none
 * that a filter passes. */
static void filters_that_nothing_passes(void **state)
{
	static const char *const texts[][2] = {
		{ WDM(", channels: 0-9", "0-3", "4-7") JOB("Ring(8)"),
		  "no light leads from ocs0 to ocs2 on one wavelength" },
		{ WDM(", channels: 0-9", "0-3", "3-6") JOB("Ring(8)"),
		  "the filters pass too few wavelengths all the way for the 4" },
		{ WDM(", channels: 4-9", "0-3", "0-3") JOB("Ring(8)"),
		  "2 lightpaths must lead out of {ocs0}, and the 0 fibres there carry 0" },
		{ WDM("", "0-3", "0-3") JOB("Ring(8)"),
		  "2 lightpaths must lead out of {ocs0}, and the 0 fibres there carry 0" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct model_fabric *f = fabric_of(texts[i][0]);
		struct plan *p = NULL;
		struct err err = { 0 };

		assert_int_equal(plan_make(f, NULL, &p, &err),
				 WEFT_EINFEASIBLE);
		if (!strstr(err.msg, texts[i][1])) {
			fail_msg("%s", err.msg);
		}
		assert_non_null(strstr(err.hint, "channels"));
		model_free(f);
	}
}

static void too_few_trunks_are_named(void **state)
{
	struct model_fabric *f = fabric_of(TRUNKS("9") JOB("Ring(8)"));
	struct plan *p = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(plan_make(f, NULL, &p, &err), WEFT_EINFEASIBLE);
	if (!strstr(err.msg, "job j: topology Ring(8): 2 lightpaths must lead out of "
			     "{ocs0}, and the 1 fibre there carries 1")) {
		fail_msg("%s", err.msg);
	}
	model_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_arc_gets_its_circuit),
		cmocka_unit_test(nothing_to_do_after_it_was_done),
		cmocka_unit_test(another_topology_keeps_what_it_shares),
		cmocka_unit_test(what_is_missing_is_repaired_where_it_was),
		cmocka_unit_test(a_job_that_is_gone_is_cleared),
		cmocka_unit_test(light_of_other_jobs_stays_dead_or_alive),
		cmocka_unit_test(only_what_is_restored_moves),
		cmocka_unit_test(moves_are_the_fewest_possible),
		cmocka_unit_test(external_light_is_left_alone_or_named),
		cmocka_unit_test(external_light_out_of_the_way_stays),
		cmocka_unit_test(external_light_that_is_wanted_is_adopted),
		cmocka_unit_test(failed_ports_are_not_used),
		cmocka_unit_test(auto_keeps_to_the_ports),
		cmocka_unit_test(auto_reaches_the_frontier),
		cmocka_unit_test(auto_picks_by_size),
		cmocka_unit_test(auto_overlaps_batches),
		cmocka_unit_test(auto_keeps_to_the_switches),
		cmocka_unit_test(every_all_to_all_is_planned),
		cmocka_unit_test(an_all_to_all_goes_on_without_a_port),
		cmocka_unit_test(duplex_circuits_carry_both_directions),
		cmocka_unit_test(orientations_are_balanced),
		cmocka_unit_test(several_duplex_switches),
		cmocka_unit_test(a_ring_program_adds_and_drops_every_item),
		cmocka_unit_test(every_collective_runs_on_a_ring),
		cmocka_unit_test(
			a_ring_that_no_job_wants_is_emptied_only_if_ours),
		cmocka_unit_test(same_input_same_bytes),
		cmocka_unit_test(a_plan_file_comes_back),
		cmocka_unit_test(arcs_cross_switches),
		cmocka_unit_test(wavelengths_go_through_filters),
		cmocka_unit_test(filters_that_nothing_passes),
		cmocka_unit_test(too_few_trunks_are_named),
	};

	return cmocka_run_group_tests_name("plan/plan", tests, NULL, NULL);
}
