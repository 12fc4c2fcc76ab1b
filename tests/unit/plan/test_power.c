/* Power at receivers, checked before connecting (line 19 of the list in
 * docs/drivers.md). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/plan.h"

/* Two hosts on a switch each, 2 dB a switch, 1 dB to and from it, and a trunk
 * of 3 dB: 9 dB in all. */
static struct model_fabric *fabric(const char *host, const char *trunk)
{
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;
	char text[2048];

	snprintf(text, sizeof(text), "weft: 1\nfabric: t\nhosts:\n"
		 "  - { name: 'n[0-1]', ports: p0, rate: 100Gbps%s }\n"
		 "switches:\n"
		 "  - { name: 's[0-1]', size: 4x4, driver: sim, loss: 2dB }\n"
		 "fibres:\n"
		 "  - { from: 'n0.p0', to: 's0.1', loss: 1dB }\n"
		 "  - { from: 'n1.p0', to: 's1.1', loss: 1dB }\n"
		 "  - { from: 's0.2', to: 's1.2', loss: 3dB%s }\n"
		 "jobs:\n  - { name: j, nodes: all, collective: allreduce, "
		 "size: 1MiB, topology: 'UniRing(1,2)' }\n", host, trunk);
	if (model_parse("t.yaml", text, strlen(text), &f, &errs)) {
		fail_msg("%s", errs.v[0].msg);
	}
	return f;
}

/* NULL words: planned; else refused with them. */
static void check(const char *host, const char *trunk, const char *words)
{
	struct model_fabric *f = fabric(host, trunk);
	struct plan *p = NULL;
	struct err err = { 0 };
	int rc = plan_make(f, NULL, &p, &err);

	if (!words && rc) {
		fail_msg("%s", err.msg);
	}
	if (words) {
		assert_int_equal(rc, WEFT_EINFEASIBLE);
		if (!strstr(err.msg, words)) {
			fail_msg("\"%s\" is not in \"%s\"", words, err.msg);
		}
	}
	plan_free(p);
	model_free(f);
}

static void power_is_within_the_receivers_limits(void **state)
{
	(void)state;
	check("", "", NULL);
	check(", launch: 0dBm", "", NULL);
	check(", receive-min: 50dBm", "", NULL);
	check(", launch: 0dBm, receive-min: -9dBm, receive-max: -9dBm", "",
	      NULL);
	check(", launch: 0dBm, receive-min: -8.999dBm", "",
	      "0dBm launched, 9dB lost on the way: -9dBm would reach the "
	      "receiver, -8.999dBm is the least");
	check(", launch: 10dBm, receive-max: 0.5dBm", "",
	      "10dBm launched, 9dB lost on the way: 1dBm would reach the "
	      "receiver, 0.5dBm is the most");
}

static void amplified_light_needs_a_known_receiver(void **state)
{
	(void)state;
	check("", ", gain: 15dB", "an amplifier leads into a receiver, and "
	      "what is launched is not known");
	check(", launch: 0dBm", ", gain: 15dB",
	      "the most power that it stands is not known");
	check(", launch: 0dBm, receive-max: 5dBm", ", gain: 15dB",
	      "0dBm launched, 6dB gained on the way: 6dBm would reach");
	check(", launch: 0dBm, receive-max: 6dBm", ", gain: 15dB", NULL);
}

/* What is connected already is not touched for it. */
static void light_that_stays_is_let_be(void **state)
{
	struct model_fabric *f = fabric("", "");
	struct model_fabric *g = fabric(", launch: 10dBm, receive-max: 0dBm",
					"");
	struct plan *p = NULL, *q = NULL;
	struct err err = { 0 };
	struct plan_light light[2];
	struct plan_base base = { .intent = light, .observed = light };

	(void)state;
	assert_int_equal(plan_make(f, NULL, &p, &err), 0);
	for (int i = 0; i < 2; i++) {
		light[p->devices[i].device] = (struct plan_light){
			.known = true, .n_xcs = p->devices[i].n_want,
			.xcs = p->devices[i].want };
	}
	assert_int_equal(plan_make(g, &base, &q, &err), 0);
	assert_true(plan_is_empty(q));
	plan_free(q);
	q = NULL;
	assert_int_equal(plan_make(g, NULL, &q, &err), WEFT_EINFEASIBLE);
	plan_free(p);
	model_free(f);
	model_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(power_is_within_the_receivers_limits),
		cmocka_unit_test(amplified_light_needs_a_known_receiver),
		cmocka_unit_test(light_that_stays_is_let_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
