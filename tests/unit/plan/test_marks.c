/* SPDX-License-Identifier: Apache-2.0 */
/* checklist 21: plans do without what the file marks as dead. */
#include "tests/unit/plan/fixture.h"

#include <stdio.h>

#define JOB                                                             \
	"jobs:\n"                                                       \
	"  - { name: j, nodes: 'h[0-7]', collective: allreduce, "       \
	"size: 1MiB, topology: 'Ring(8)' }\n"
#define MARKED(text) "dead:\n" text

static bool uses(const struct plan *p, int in, int out)
{
	for (int d = 0; d < p->n_devices; d++) {
		for (int i = 0; i < p->devices[d].n_want; i++) {
			const struct optics_xc *xc = &p->devices[d].want[i];

			if (xc->in == in || xc->out == out) {
				return true;
			}
		}
	}
	return false;
}

static void marked_ports_are_not_used(void **state)
{
	struct model_fabric *f = fabric_of(HOSTS_1 JOB
		MARKED("  - { port: h0.p0 }\n  - { port: ocs0.in6 }\n"));
	struct plan *p = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(plan_make(f, NULL, &p, &err), 0);
	assert_false(uses(p, 0, 0));
	assert_false(uses(p, 5, -1));
	assert_true(uses(p, 1, 1));
	plan_free(p);
	model_free(f);
}

/* Light of the same configuration without marks, then with them. */
static void light_at_marked_ports_moves(void **state)
{
	struct model_fabric *f = fabric_of(HOSTS_1 JOB);
	struct model_fabric *g = fabric_of(HOSTS_1 JOB
		MARKED("  - { port: h0.p0 }\n"));
	struct plan *p = NULL, *q = NULL;
	struct plan_light light = { .known = true };
	struct plan_base base = { .intent = &light, .observed = &light };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(plan_make(f, NULL, &p, &err), 0);
	assert_true(uses(p, 0, 0));
	light.xcs = p->devices[0].want;
	light.n_xcs = p->devices[0].n_want;
	assert_int_equal(plan_make(g, &base, &q, &err), 0);
	assert_false(uses(q, 0, 0));
	assert_int_equal(q->n_del, 2);
	assert_int_equal(q->n_add, 2);
	plan_free(q);
	/* Until then it counts as lost. */
	assert_int_not_equal(plan_failed_circuits(g, &base), 0);
	assert_int_equal(plan_failed_circuits(f, &base), 0);
	plan_free(p);
	model_free(f);
	model_free(g);
}

static void too_few_ports_are_left(void **state)
{
	struct model_fabric *f = fabric_of(HOSTS_1 JOB
		MARKED("  - { port: 'h0.p[0-2]' }\n"));
	struct plan *p = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(plan_make(f, NULL, &p, &err), WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "h0"));
	model_free(f);
}

/* The plan of a ring of which `marks` are in the file and `seen` is told by
 * the device; the job. */
static struct plan *ring_plan(const char *marks, struct ring_fault *seen,
			      int n_seen)
{
	char text[2048];
	struct model_fabric *f;
	struct plan_light light = { .known = true, .dead = seen,
				    .n_dead = n_seen };
	struct plan_base base = { .observed = &light };
	struct plan *p = NULL;
	struct err err = { 0 };

	snprintf(text, sizeof(text), "%s%s", RING RING_JOB, marks);
	f = fabric_of(text);
	if (plan_make(f, &base, &p, &err)) {
		fail_msg("%s", err.msg);
	}
	return p;
}

static void end(struct plan *p)
{
	const struct model_fabric *f = p->fabric;

	plan_free(p);
	model_free((struct model_fabric *)f);
}

/* A mark has the same effect as the device's own word. */
static void marked_parts_are_as_failed_ones(void **state)
{
	static struct ring_fault span = { .part = RING_SPAN, .node = 2 };
	static struct ring_fault other = { .part = RING_SPAN, .node = 2,
					   .dir = OPTICS_CCW };
	static const char *const both =
		MARKED("  - { ring: r0, span: 2 }\n");
	struct plan *whole = ring_plan("", NULL, 0);
	struct plan *told = ring_plan("", (struct ring_fault[]){ span, other },
				      2);
	struct plan *marked = ring_plan(both, NULL, 0);
	struct plan *mixed = ring_plan(both, &other, 1);

	(void)state;
	assert_int_equal(marked->jobs[0].n_without, 2);
	assert_int_equal(mixed->jobs[0].n_without, 2);
	assert_true(marked->jobs[0].time_ns > whole->jobs[0].time_ns);
	assert_int_equal(marked->jobs[0].time_ns, told->jobs[0].time_ns);
	assert_string_equal(marked->digest, told->digest);
	assert_string_equal(mixed->digest, told->digest);
	assert_string_not_equal(whole->digest, told->digest);
	end(whole);
	end(told);
	end(marked);
	end(mixed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marked_ports_are_not_used),
		cmocka_unit_test(light_at_marked_ports_moves),
		cmocka_unit_test(too_few_ports_are_left),
		cmocka_unit_test(marked_parts_are_as_failed_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
