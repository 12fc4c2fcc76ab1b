/* SPDX-License-Identifier: Apache-2.0 */
/* plan: training steps: circuits are those of the light, a plan of what is there moves nothing, a
 * port that fails takes its circuit and no other, and what is refused. */
#include "tests/unit/plan/fixture.h"

#define STEP(hosts, keys, collectives)                                   \
	"jobs:\n"                                                        \
	"  - name: j\n"                                                  \
	"    nodes: " hosts "\n"                                         \
	"    mesh: { a: 2, b: 4 }\n" keys                                \
	"    collectives:\n" collectives

#define TWO \
	"      - { name: x, collective: allreduce, size: 1GiB, over: a }\n" \
	"      - { name: y, collective: all-to-all, size: 1GiB, over: b }\n"

static void refused(const char *text, const struct plan_base *base, int code, const char *fact)
{
	struct model_fabric *f = fabric_of(text);
	struct err err = { 0 };
	struct plan *p;

	assert_int_equal(plan_make(f, base, &p, &err), code);
	assert_string_equal(err.msg, fact);
	model_free(f);
}

/* Each arc of the light has a circuit from one of its source's ports to one of its target's, no
 * port has two, and the light is all of them. */
static void circuits_are_the_light(void **state)
{
	struct model_fabric *f = fabric_of(HOSTS_1 STEP("'h[0-7]'", "", TWO));
	struct plan *p = plan_of(f, NULL);
	const struct plan_job *pj = &p->jobs[0];
	int tx[32] = { 0 }, rx[32] = { 0 };
	struct topo *light;
	struct err err;

	(void)state;
	assert_int_equal(pj->step->lights.n, 1);
	assert_int_equal(pj->step->changes, 0);
	assert_int_equal(pj->time_ns, pj->step->still_ns);
	assert_true(pj->bound_ns > 0 && pj->bound_ns <= pj->time_ns);
	assert_int_equal(workload_light_topo(f->jobs[0].workload, &pj->step->lights.v[0], &light,
					     &err), 0);
	assert_int_equal(pj->n_circuits, topo_m(light));
	for (int i = 0; i < pj->n_circuits; i++) {
		const struct plan_circuit *c = &pj->circuits[i];
		const struct topo_arc *arc = topo_arc(light, c->arc);

		assert_int_equal(f->ports[c->tx_port].host, arc->src);
		assert_int_equal(f->ports[c->rx_port].host, arc->dst);
		assert_int_equal(tx[c->tx_port]++, 0);
		assert_int_equal(rx[c->rx_port]++, 0);
	}
	topo_free(light);
	plan_free(p);
	model_free(f);
}

static void what_is_there_stays(void **state)
{
	struct model_fabric *f = fabric_of(HOSTS_1 STEP("'h[0-7]'", "", TWO));
	struct plan *p = plan_of(f, NULL), *again;
	struct plan_light *lit = light_after(p), *seen = light_after(p);
	struct plan_base base = { .intent = lit, .observed = lit };
	struct optics_xc dark;
	int bad = 0;

	(void)state;
	again = plan_of(f, &base);
	assert_true(plan_is_empty(again));
	plan_free(again);
	/* The output of h0's first port fails: nothing else moves. */
	ports_fail(&seen[0], &dark, 1, &bad, 0, NULL);
	base.observed = seen;
	again = plan_of(f, &base);
	assert_int_equal(again->n_add, 0);
	assert_int_equal(again->n_del, 0);
	assert_non_null(again->jobs[0].loss);
	assert_int_equal(again->jobs[0].loss->dead, 1);
	plan_free(again);
	free(seen);
	free(lit);
	plan_free(p);
	model_free(f);
}

/* The collective of the last use, whose light is not the first one. */
static const char *last_of(const struct model_fabric *f, const struct plan *p)
{
	const struct workload_plan *step = p->jobs[0].step;

	return f->jobs[0].workload->ops.v[step->uses.v[step->uses.n - 1].op].name;
}

/* Light that the job has asked for stays, and all lights stay what they were, although a change is
 * now known to take 1,000 times as long. */
static void light_on_request(const struct model_fabric *f, const struct plan *first)
{
	const int64_t slow[] = { 1000 * first->jobs[0].step->change_ns };
	struct plan_base base = { .times = { .n_devices = 1, .device_ns = slow } };
	struct err err = { 0 };
	char *kept = strdup(first->topologies);
	struct plan *p;

	assert_int_equal(plan_set_light(f, "k", "u", &kept, &err), WEFT_ENOTFOUND);
	assert_int_equal(plan_set_light(f, "j", "sink", &kept, &err), WEFT_ENOTFOUND);
	assert_string_equal(kept, first->topologies);
	assert_int_equal(plan_set_light(f, "j", last_of(f, first), &kept, &err), 0);
	base.topologies = kept;
	p = plan_of(f, &base);
	assert_int_equal(first->jobs[0].light, 0);
	assert_int_equal(p->jobs[0].light, first->jobs[0].step->lights.n - 1);
	assert_string_not_equal(p->jobs[0].topology, first->jobs[0].topology);
	assert_int_equal(p->jobs[0].time_ns, first->jobs[0].time_ns);
	assert_int_equal(p->jobs[0].step->changes, first->jobs[0].step->changes);
	plan_free(p);
	free(kept);
}

/* Without light that may change more kinds of circuits than ports are refused; with it a light has
 * all ports, and the job has one of them. */
static void lights(void **state)
{
	const char *five = HOSTS_1 STEP("'h[0-7]'", "",
		TWO "      - { name: u, collective: send, size: 1MB, over: a }\n"
		"      - { name: v, collective: send, size: 1MB, over: b }\n"
		"      - { name: w, collective: send, size: 1MB, over: b, shift: -1 }\n");
	const char *changes = HOSTS_1 STEP("'h[0-7]'", "    light: by-collective\n",
		TWO "      - { name: u, collective: send, size: 1MB, over: a }\n"
		"      - { name: v, collective: send, size: 1MB, over: b }\n"
		"      - { name: w, collective: send, size: 1MB, over: b, shift: -1 }\n");
	struct model_fabric *f = fabric_of(changes);
	struct plan *p = plan_of(f, NULL);

	(void)state;
	refused(five, NULL, WEFT_EINFEASIBLE, "job j: circuits along 5 kinds of axes, where ranks "
		"have 4 ports and light stays still");
	assert_int_equal(p->jobs[0].step->lights.n, 2);
	assert_int_equal(p->jobs[0].step->still_ns, -1);
	light_on_request(f, p);
	plan_free(p);
	model_free(f);
}

static void unlike_hosts(void **state)
{
	(void)state;
	refused("weft: 1\nfabric: t\nhosts:\n"
		"  - { name: 'h[0-6]', ports: 'p[0-3]', rate: 100Gbps }\n"
		"  - { name: s, ports: 'p[0-2]', rate: 100Gbps }\n"
		"switches:\n  - { name: ocs0, size: 32x32, driver: sim }\n"
		"fibres:\n  - { from: 'h[0-6].p[0-3]', to: 'ocs0.[1-28]' }\n"
		"  - { from: 's.p[0-2]', to: 'ocs0.[29-31]' }\n" STEP("all", "", TWO), NULL,
		WEFT_EUNSUPPORTED, "job j: a step, where s has 3 ports and h0 4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(circuits_are_the_light), cmocka_unit_test(what_is_there_stays),
		cmocka_unit_test(lights), cmocka_unit_test(unlike_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
