/* SPDX-License-Identifier: Apache-2.0 */
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

/* The short way loses 20 dB, the one over s2 6 dB: that is taken where receivers
 * need it, and the fewest switches where they say nothing. */
static void a_route_within_reach_is_found(void **state)
{
	static const char *const receivers[] = { "", ", launch: 0dBm, receive-min: -15dBm" };
	static const int switches[] = { 2, 3 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct err_list errs = { 0 };
		struct model_fabric *f = NULL;
		struct plan *p = NULL;
		struct err err = { 0 };
		char text[2048];

		snprintf(text, sizeof(text), "weft: 1\nfabric: t\nhosts:\n"
			 "  - { name: 'n[0-1]', ports: p0, rate: 100Gbps%s }\nswitches:\n"
			 "  - { name: 's[0-2]', size: 4x4, driver: sim, loss: 2dB }\nfibres:\n"
			 "  - { from: 'n0.p0', to: 's0.1', loss: 1dB }\n"
			 "  - { from: 'n1.p0', to: 's1.1', loss: 1dB }\n"
			 "  - { from: 's0.2', to: 's1.2', loss: 20dB }\n"
			 "  - { from: 's0.3', to: 's2.1', loss: 3dB }\n"
			 "  - { from: 's2.2', to: 's1.3', loss: 3dB }\n"
			 "jobs:\n  - { name: j, nodes: all, collective: allgather, "
			 "size: 1MiB, topology: 'UniRing(1,2)' }\n", receivers[i]);
		assert_int_equal(model_parse("t.yaml", text, strlen(text), &f, &errs), 0);
		if (plan_make(f, NULL, &p, &err)) {
			fail_msg("%s", err.msg);
		}
		assert_int_equal(p->jobs[0].n_circuits, 2 * switches[i]);
		plan_free(p);
		model_free(f);
	}
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

/* A plan of the fabric above on dark switches of which this is known. */
static struct plan *plan_with(const char *host,
			      const struct plan_known_loss *losses, int n_losses,
			      const struct plan_known_power *powers,
			      int n_powers, const char *words)
{
	struct model_fabric *f = fabric(host, "");
	struct plan_light seen[2] = {
		{ .known = true, .losses = losses, .n_losses = n_losses,
		  .powers = powers, .n_powers = n_powers },
		{ .known = true },
	};
	struct plan_base base = { .observed = seen };
	struct plan *p = NULL;
	struct err err = { 0 };
	int rc = plan_make(f, &base, &p, &err);

	if ((rc != 0) != (words != NULL) ||
	    (words && !strstr(err.msg, words))) {
		fail_msg("%s", err.msg);
	}
	if (rc) {
		model_free(f);
	}
	return p;
}

static void release(struct plan *p)
{
	const struct model_fabric *f = p->fabric;

	plan_free(p);
	model_free((struct model_fabric *)f);
}

/* The path from n0.p0, which goes over s0 first. */
static const struct plan_path *path_of(const struct plan *p)
{
	assert_int_equal(p->jobs[0].n_paths, 2);
	return &p->jobs[0].paths[p->jobs[0].paths[0].tx_port != 0];
}

static void every_element_is_named(void **state)
{
	static const struct plan_known_loss known[] = {
		{ { 0, 1 }, 1200, PLAN_LEARNED },
		{ { 1, 0 }, 700, PLAN_FACTORY },
	};
	struct plan *p = plan_with(", launch: 0dBm", known, 2, NULL, 0, NULL);
	const struct plan_path *path = path_of(p);
	static const struct plan_element want[] = {
		{ -1, { 0, 0 }, 1000, PLAN_CONFIGURED },
		{ 0, { 0, 1 }, 1200, PLAN_LEARNED },
		{ -1, { 0, 0 }, 3000, PLAN_CONFIGURED },
		{ 1, { 1, 0 }, 2000, PLAN_CONFIGURED },
		{ -1, { 0, 0 }, 1000, PLAN_CONFIGURED },
	};

	(void)state;
	assert_int_equal(path->n_elements, 5);
	for (int i = 0; i < 5; i++) {
		const struct plan_element *e = &path->elements[i];

		assert_int_equal(e->device, want[i].device);
		assert_int_equal(e->loss_mdb, want[i].loss_mdb);
		assert_int_equal(e->source, want[i].source);
		if (e->device >= 0) {
			assert_int_equal(optics_xc_cmp(&e->xc, &want[i].xc), 0);
		}
	}
	assert_int_equal(path->loss_mdb, 8200);
	assert_true(path->has_power && path->has_launch);
	assert_int_equal(path->min_mdbm, -8200);
	assert_int_equal(path->max_mdbm, -8200);
	assert_int_equal(path->launched_mdbm, -1000);
	release(p);
	/* The way back goes over the circuit whose maker measured it. */
	p = plan_with("", known, 2, NULL, 0, NULL);
	path = &p->jobs[0].paths[p->jobs[0].paths[0].tx_port == 0];
	assert_false(path->has_power);
	assert_int_equal(path->loss_mdb, 7700);
	assert_int_equal(path->elements[3].source, PLAN_FACTORY);
	release(p);
}

/* True when it is planned. */
static bool going_back(const char *host, const struct plan_known_power *power)
{
	struct model_fabric *f = fabric(host, "");
	struct plan_light seen[2] = {
		{ .known = true, .powers = power, .n_powers = 1 },
	};
	struct plan_base base = { .observed = seen, .is_rollback = true };
	struct plan *p = NULL;
	struct err err = { 0 };
	bool planned = plan_make(f, &base, &p, &err) == 0;

	plan_free(p);
	model_free(f);
	return planned;
}

/* checklist 19: measured light counts, the worse of both. */
static void measured_power_counts(void **state)
{
	static const struct plan_known_power weak[] = { { 0, -5000 } };
	static const struct plan_known_power strong[] = { { 0, 3000 } };
	struct plan *p;

	(void)state;
	p = plan_with(", launch: 0dBm", NULL, 0, weak, 1, NULL);
	assert_int_equal(path_of(p)->min_mdbm, -13000);
	assert_int_equal(path_of(p)->max_mdbm, -9000);
	release(p);
	plan_with(", launch: 0dBm, receive-min: -12dBm", NULL, 0, weak, 1,
		  "n0.p0 -> n1.p0: -5dBm measured at s0 in 1 (0dBm launched), "
		  "8dB lost from there on: -13dBm would reach the receiver, "
		  "-12dBm is the least");
	plan_with(", launch: 0dBm, receive-max: -6dBm", NULL, 0, strong, 1,
		  "3dBm measured at s0 in 1 (0dBm launched), 8dB lost from "
		  "there on: -5dBm would reach the receiver, -6dBm is the most");
	/* What is worse by launch is refused by launch. */
	plan_with(", launch: -4dBm, receive-min: -12dBm", NULL, 0, strong, 1,
		  "-4dBm launched (3dBm measured at s0 in 1), 9dB lost on the "
		  "way: -13dBm would reach");
	/* Light that goes back to what it was is not held up by it. */
	assert_true(going_back(", launch: 0dBm, receive-min: -12dBm", weak));
	assert_false(going_back(", launch: 0dBm, receive-max: -6dBm", strong));
	/* Measured alone is enough. */
	plan_with(", receive-min: -12dBm", NULL, 0, weak, 1,
		  "-5dBm measured at s0 in 1, 8dB lost from there on: -13dBm");
}

/* checklist 19: launch and measurement that do not go together are told. */
static void doubts_are_told(void **state)
{
	static const struct plan_known_power off[] = { { 0, -4100 } };
	static const struct plan_known_power near[] = { { 0, -4000 } };
	static const struct plan_known_power dark[] = { { 0, -60000 } };
	struct plan *p = plan_with(", launch: 0dBm", NULL, 0, off, 1, NULL);

	(void)state;
	assert_int_equal(p->n_warnings, 1);
	assert_string_equal(p->warnings[0], "n0.p0: -1dBm should arrive at s0 "
			    "in 1, -4.1dBm is measured");
	release(p);
	p = plan_with(", launch: 0dBm", NULL, 0, near, 1, NULL);
	assert_int_equal(p->n_warnings, 0);
	release(p);
	/* A laser that is off says nothing of its power. */
	p = plan_with(", launch: 0dBm, receive-min: -12dBm", NULL, 0, dark, 1,
		      NULL);
	assert_true(path_of(p)->is_dark);
	assert_int_equal(path_of(p)->min_mdbm, -9000);
	assert_int_equal(p->n_warnings, 1);
	assert_string_equal(p->warnings[0], "n0.p0: -1dBm should arrive at s0 "
			    "in 1, and no light does");
	release(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(power_is_within_the_receivers_limits),
		cmocka_unit_test(amplified_light_needs_a_known_receiver),
		cmocka_unit_test(a_route_within_reach_is_found),
		cmocka_unit_test(light_that_stays_is_let_be),
		cmocka_unit_test(every_element_is_named),
		cmocka_unit_test(measured_power_counts),
		cmocka_unit_test(doubts_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
