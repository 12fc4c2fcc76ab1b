/* SPDX-License-Identifier: Apache-2.0 */
/* Circuits from port to port: made as the file says, and no others. */
#include "tests/unit/plan/fixture.h"

#include "lib/base/buf.h"
#include "lib/base/number/rng.h"

#define HOSTS                                                                            \
	"weft: 1\nfabric: t\n"                                                           \
	"hosts:\n  - { name: 'h[0-3]', ports: 'p[0-3]', rate: 100Gbps }\n"

#define ONE_SWITCH                                                                       \
	HOSTS "switches:\n  - { name: ocs0, size: 16x16, driver: sim }\n"                \
	"fibres:\n  - { from: 'h[0-3].p[0-3]', to: 'ocs0.[1-16]' }\n"

#define ANY_TO_ANY                                                                       \
	HOSTS "switches:\n  - { name: ocs0, ports: 16, any-to-any: true, driver: sim }\n" \
	"fibres:\n  - { from: 'h[0-3].p[0-3]', to: 'ocs0.[1-16]' }\n"

/* h0 and h1 on one switch, h2 and h3 on the other, two fibres each way between these. */
#define TWO_SWITCHES                                                                     \
	HOSTS "switches:\n  - { name: 'o[0-1]', size: 10x10, driver: sim }\n"            \
	"fibres:\n"                                                                      \
	"  - { from: 'h[0-1].p[0-3]', to: 'o0.[1-8]' }\n"                                \
	"  - { from: 'h[2-3].p[0-3]', to: 'o1.[1-8]' }\n"                                \
	"  - { from: 'o0.[9-10]', to: 'o1.[9-10]' }\n"

static void check_adds(const struct plan *p, int device, const char *want)
{
	const struct plan_device *d = &p->devices[device];
	struct buf b = { 0 };

	for (int i = 0; i < d->n_add; i++) {
		buf_printf(&b, "%s%d-%d", i ? " " : "", d->add[i].in + 1, d->add[i].out + 1);
	}
	assert_string_equal(buf_cstr(&b), want);
	buf_fini(&b);
}

static void circuits_are_those_of_the_file(void **state)
{
	struct model_fabric *f = fabric_of(
		ONE_SWITCH "circuits:\n"
		"  - { name: up, from: h0.p0, to: h1.p1 }\n"
		"  - { name: tap, from: h2.p0, to: h3.p0, direction: one-way }\n"
		"  - { name: back, from: h3.p1, to: h2.p0, direction: one-way }\n"
		"  - { group: bed, from: 'h0.p[1-2]', to: 'h1.p[2-3]' }\n"
		"  - { name: loop, from: h0.p3, to: h1.p0, group: bed }\n"
		"  - { name: eye, from: h2.p3, to: h2.p3, direction: one-way }\n"
		"  - { name: snake, from: h3.p2, to: h3.p3 }\n");
	struct plan *p = plan_of(f, NULL);
	struct plan_light *light = light_after(p);
	struct plan_base base = { .intent = light, .observed = light };
	struct plan *again = plan_of(f, &base);

	(void)state;
	check_adds(p, 0, "1-6 2-7 3-8 4-5 5-4 6-1 7-2 8-3 9-13 12-12 14-9 15-16 16-15");
	assert_int_equal(p->n_jobs, 6);
	assert_int_equal(f->jobs[model_find_job(f, "bed")].n_links, 6);
	assert_int_equal(f->jobs[model_find_job(f, "eye")].n_hosts, 1);
	for (int j = 0; j < p->n_jobs; j++) {
		const struct plan_job *pj = &p->jobs[j];

		assert_int_equal(pj->time_ns, 0);
		assert_int_equal(pj->moves_bound, pj->n_moves);
		assert_int_equal(pj->n_circuits, f->jobs[j].n_links);
		for (int i = 0; i < pj->n_circuits; i++) {
			const struct plan_circuit *c = &pj->circuits[i];
			const struct topo_arc *a = topo_arc(coll_physical(pj->sched), c->arc);

			assert_int_equal(f->jobs[j].ports[a->src], c->tx_port);
			assert_int_equal(f->jobs[j].ports[a->dst], c->rx_port);
		}
	}
	assert_true(plan_is_empty(again));
	plan_free(again);
	free(light);
	plan_free(p);
	model_free(f);
}

static void one_circuit_of_an_any_to_any_switch_is_both(void **state)
{
	struct model_fabric *f = fabric_of(
		ANY_TO_ANY "circuits:\n  - { name: a, from: h3.p0, to: h0.p0 }\n"
		"  - { name: b, from: h0.p1, to: h0.p2 }\n"
		"jobs:\n  - { name: j, nodes: [h1, h2], ports: 2, collective: allgather, "
		"size: 1MB }\n");
	struct plan *p = plan_of(f, NULL);

	(void)state;
	assert_int_equal(p->n_add, 4);
	check_adds(p, 0, "1-13 2-3 5-9 6-10");
	assert_int_equal(p->jobs[model_find_job(f, "a")].n_circuits, 2);
	plan_free(p);
	model_free(f);
}

static int refusal_of(const char *text, const struct plan_base *base, struct err *err)
{
	struct model_fabric *f = fabric_of(text);
	struct plan *p = NULL;
	int rc;

	err_clear(err);
	rc = plan_make(f, base, &p, err);
	plan_free(p);
	model_free(f);
	return rc;
}

static void a_port_that_is_out_of_service_is_refused(void **state)
{
	static const int bad[] = { 5 };
	struct plan_light seen = { .known = true, .n_bad_out = 1, .bad_out = bad };
	struct plan_base base = { .observed = &seen, .intent = &seen };
	struct err err;

	(void)state;
	assert_int_equal(refusal_of(ONE_SWITCH "circuits:\n"
				    "  - { name: up, from: h0.p0, to: h1.p1 }\n", &base, &err),
			 WEFT_EINFEASIBLE);
	assert_string_equal(err.msg, "job up: port h1.p1 has failed or is out of service (ocs0, "
			    "out 6)");
	assert_int_equal(err.line, 10);
}

/* What others made on the very ports is taken as it is; in the way it is refused. */
static void circuits_of_others_are_adopted_or_in_the_way(void **state)
{
	static const struct optics_xc same[] = { { 0, 5 }, { 5, 0 } };
	static const struct optics_xc other[] = { { 0, 7 } };
	const char *text = ONE_SWITCH "circuits:\n  - { name: up, from: h0.p0, to: h1.p1 }\n";
	struct model_fabric *f = fabric_of(text);
	struct plan_light dark = { .known = true };
	struct plan_light seen = { .known = true, .n_xcs = 2, .xcs = same };
	struct plan_base base = { .observed = &seen, .intent = &dark };
	struct plan *p = plan_of(f, &base);
	struct err err;

	(void)state;
	assert_true(plan_is_empty(p));
	assert_int_equal(p->devices[0].n_want, 2);
	plan_free(p);
	seen = (struct plan_light){ .known = true, .n_xcs = 1, .xcs = other };
	assert_int_equal(refusal_of(text, &base, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "was not made by weft"));
	base.mode = PLAN_UPDATE;
	p = plan_of(f, &base);
	assert_int_equal(p->devices[0].n_displaced, 1);
	plan_free(p);
	model_free(f);
}

/* A link that is dark costs its share, and the rest is as it was. */
static void what_is_lost_is_a_share(void **state)
{
	struct model_fabric *f = fabric_of(
		ONE_SWITCH "circuits:\n  - { group: bed, from: 'h0.p[0-3]', to: 'h1.p[0-3]' }\n");
	struct plan *p = plan_of(f, NULL), *now = NULL;
	struct plan_light *light = light_after(p), seen = light[0];
	struct plan_base base = { .intent = light, .observed = &seen };
	struct err err = { 0 };

	(void)state;
	seen.n_xcs -= 2;
	assert_int_equal(plan_degraded(f, &base, &now, &err), 0);
	assert_int_equal(now->jobs[0].loss->dead_arcs, 2);
	assert_true(now->jobs[0].loss->rate == 0.75);
	assert_null(now->jobs[0].loss->sched);
	plan_free(now);
	free(light);
	plan_free(p);
	model_free(f);
}

/* ---- over fibres between switches ---- */

static void check_ends(const struct plan *p)
{
	struct plan_light *light = light_after(p);

	for (int j = 0; j < p->n_jobs; j++) {
		const struct model_job *job = &p->fabric->jobs[j];

		for (int i = 0; i < job->n_links; i++) {
			assert_int_equal(plan_trace(p->fabric, light, job->links[i].tx_port),
					 job->links[i].rx_port);
		}
		for (int i = 0; i < p->jobs[j].n_circuits; i++) {
			const struct plan_circuit *c = &p->jobs[j].circuits[i];

			assert_int_equal(plan_trace(p->fabric, light, c->tx_port), c->rx_port);
		}
	}
	free(light);
}

static void both_ports_stay_over_trunks(void **state)
{
	struct model_fabric *f = fabric_of(
		TWO_SWITCHES "circuits:\n"
		"  - { name: far, from: h0.p3, to: h3.p1 }\n"
		"  - { name: near, from: h1.p2, to: h0.p1, group: bed }\n"
		"  - { name: over, from: h2.p2, to: h1.p3, direction: one-way, group: bed }\n"
		"jobs:\n  - { name: j, nodes: [h0, h2], ports: [p0], collective: allgather, "
		"size: 1MB, topology: 'UniRing(1,2)' }\n");
	struct err err;
	struct plan *p;

	(void)state;
	/* Three lightpaths from o1 to o0, and two fibres. */
	assert_int_equal(refusal_of(f->config.text, NULL, &err), WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "3 lightpaths must lead out of {o1}"));
	model_free(f);
	f = fabric_of(TWO_SWITCHES "circuits:\n"
		"  - { name: far, from: h0.p3, to: h3.p1 }\n"
		"  - { name: near, from: h1.p2, to: h0.p1, group: bed }\n"
		"  - { name: over, from: h1.p3, to: h2.p2, direction: one-way, group: bed }\n"
		"  - { name: eye, from: h2.p0, to: h2.p0, direction: one-way, group: bed }\n"
		"jobs:\n  - { name: j, nodes: [h0, h1], ports: [p0], collective: allgather, "
		"size: 1MB, topology: 'UniRing(1,2)' }\n");
	p = plan_of(f, NULL);
	check_ends(p);
	plan_free(p);
	model_free(f);
}

/* Random pairs of ports of four switches in a ring, as many as fit. */
static void any_pairs_over_trunks(void **state)
{
	struct rng r;
	int made = 0;

	(void)state;
	rng_seed(&r, 4);
	for (int i = 0; i < 100; i++) {
		struct buf b = { 0 };
		int tx[16], rx[16], n = 1 + (int)rng_below(&r, 8);
		struct model_fabric *f;
		struct plan *p = NULL;
		struct err err = { 0 };
		int rc;

		buf_str(&b, HOSTS "switches:\n  - { name: 'o[0-3]', size: 8x8, driver: sim }\n"
			"fibres:\n");
		for (int k = 0; k < 4; k++) {
			buf_printf(&b, "  - { from: 'h%d.p[0-3]', to: 'o%d.[1-4]' }\n"
				   "  - { from: 'o%d.[5-6]', to: 'o%d.[7-8]' }\n", k, k, k,
				   (k + 1) % 4);
		}
		buf_str(&b, "circuits:\n");
		for (int k = 0; k < 16; k++) {
			int at = (int)rng_below(&r, (uint64_t)k + 1), to;

			tx[k] = tx[at];
			tx[at] = k;
			to = (int)rng_below(&r, (uint64_t)k + 1);
			rx[k] = rx[to];
			rx[to] = k;
		}
		for (int k = 0; k < n; k++) {
			buf_printf(&b, "  - { group: g%d, direction: one-way, from: h%d.p%d, to: "
				   "h%d.p%d }\n", k / 2, tx[k] / 4, tx[k] % 4, rx[k] / 4,
				   rx[k] % 4);
		}
		f = fabric_of(buf_cstr(&b));
		rc = plan_make(f, NULL, &p, &err);
		if (rc == 0) {
			check_ends(p);
			made++;
		} else {
			assert_int_equal(rc, WEFT_EINFEASIBLE);
		}
		plan_free(p);
		model_free(f);
		buf_fini(&b);
	}
	assert_in_range(made, 50, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(circuits_are_those_of_the_file),
		cmocka_unit_test(one_circuit_of_an_any_to_any_switch_is_both),
		cmocka_unit_test(a_port_that_is_out_of_service_is_refused),
		cmocka_unit_test(circuits_of_others_are_adopted_or_in_the_way),
		cmocka_unit_test(what_is_lost_is_a_share),
		cmocka_unit_test(both_ports_stay_over_trunks),
		cmocka_unit_test(any_pairs_over_trunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
