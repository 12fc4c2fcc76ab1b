/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of requested jobs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/plan.h"

/* a0-a3 on s0 only, b0-b5 on s1 only, c0-c1 with two ports on both, d0
 * without fibres, e0-e1 on s0 with two ranks inside; r0-r5 on a ring. */
static const char text[] =
	"weft: 1\n"
	"fabric: small\n"
	"hosts:\n"
	"  - { name: 'a[0-3]', ports: p0, rate: 100Gbps, reactivation: 1s }\n"
	"  - { name: 'b[0-5]', ports: p0, rate: 100Gbps, reactivation: 1s }\n"
	"  - { name: 'c[0-1]', ports: 'p[0-1]', rate: 100Gbps, reactivation: 1s }\n"
	"  - { name: d0, ports: p0, rate: 100Gbps, reactivation: 1s }\n"
	"  - { name: 'e[0-1]', ports: p0, rate: 100Gbps, inside: 'Star(2)' }\n"
	"  - { name: 'r[0-5]' }\n"
	"switches:\n"
	"  - { name: s0, size: 8x8, driver: sim }\n"
	"  - { name: s1, size: 8x8, driver: sim }\n"
	"rings:\n"
	"  - { name: ring, nodes: 'r[0-5]', fibres: 1, channels: 4, "
	"channel-rate: 10Gbps, retune: 1us, driver: sim }\n"
	"fibres:\n"
	"  - { from: 'a[0-3].p0', to: 's0.[1-4]' }\n"
	"  - { from: 'b[0-5].p0', to: 's1.[1-6]' }\n"
	"  - { from: 'c[0-1].p0', to: 's0.[5-6]' }\n"
	"  - { from: 'c[0-1].p1', to: 's1.[7-8]' }\n"
	"  - { from: 'e[0-1].p0', to: 's0.[7-8]' }\n";

static int setup(void **state)
{
	struct err_list errs = { .max = 1 };
	struct model_fabric *f;

	if (model_parse("small", text, strlen(text), &f, &errs)) {
		fail_msg("%s", errs.v[0].msg);
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	model_free(*state);
	return 0;
}

/* Hosts that are named, as flags. */
static bool *flags(const struct model_fabric *f, const char *names,
		   bool otherwise)
{
	static bool v[2][64];
	static int at;
	bool *out = v[at++ % 2];
	char *copy = strdup(names), *rest = copy, *name;

	for (int i = 0; i < 64; i++) {
		out[i] = otherwise;
	}
	while ((name = strsep(&rest, " ")) != NULL) {
		if (*name) {
			out[model_find_host(f, name)] = !otherwise;
		}
	}
	free(copy);
	return out;
}

static void expect(const struct model_fabric *f, struct place_request w,
		   const char *down, const char *busy, const char *want)
{
	int *out, n;
	char got[128] = "";
	struct err err = { 0 };

	if (place_job(f, &w, flags(f, down, true), flags(f, busy, false), &out,
		      &n, &err)) {
		snprintf(got, sizeof(got), "%s", err.msg);
		assert_null(out);
	} else {
		for (int i = 0; i < n; i++) {
			snprintf(got + strlen(got), sizeof(got) - strlen(got),
				 "%s%s", i ? " " : "", f->hosts[out[i]].name);
		}
	}
	free(out);
	assert_string_equal(got, want);
}

#define SWITCHED(n_) (struct place_request){ .n = n_, .ring = -1 }

static void test_smallest_group(void **state)
{
	const struct model_fabric *f = *state;

	expect(f, SWITCHED(2), "", "", "c0 c1");
	expect(f, SWITCHED(3), "", "", "a0 a1 a2");
	expect(f, SWITCHED(3), "", "a1", "a0 a2 a3");
	expect(f, SWITCHED(3), "a0", "a1", "b0 b1 b2");
	expect(f, SWITCHED(6), "", "", "b0 b1 b2 b3 b4 b5");
	expect(f, SWITCHED(2), "", "c0", "a0 a1");
}

/* No group is large enough: the largest first. */
static void test_across_groups(void **state)
{
	expect(*state, SWITCHED(8), "", "", "a0 a1 b0 b1 b2 b3 b4 b5");
	expect(*state, SWITCHED(12), "", "",
	       "a0 a1 a2 a3 b0 b1 b2 b3 b4 b5 c0 c1");
}

static void test_ports(void **state)
{
	struct place_request w = SWITCHED(2);

	w.min_ports = 2;
	expect(*state, w, "", "", "c0 c1");
	expect(*state, w, "", "c1",
	       "2 hosts are wanted, and 1 of 2 with enough ports are free");
	w.n = 3;
	expect(*state, w, "", "",
	       "3 hosts are wanted, and there are 2 with enough ports");
	/* What the topology needs goes without saying. */
	w = SWITCHED(2);
	w.topology = "Multi(K(2),2)";
	expect(*state, w, "", "", "c0 c1");
	w.topology = "0 1, 1 0, 0 1, 1 0, 0 0";
	expect(*state, w, "", "", "c0 c1");
	w.topology = "0 1, 1 0";
	expect(*state, w, "c0", "", "a0 a1");
	w.topology = "K(3)";
	expect(*state, w, "", "", "topology: K(3) has 3 nodes, the job has 2 hosts");
	w.topology = "0 1, 1 2, 2 0";
	expect(*state, w, "", "", "topology: 0 1, 1 2, 2 0 has 3 nodes, the job has 2 hosts");
	w.topology = "K(x)";
	expect(*state, w, "", "", "topology 'K(x)': column 3: expected a number, found 'x'");
}

/* now, down and busy are names; the job itself is among the busy. */
static void expect_spare(const struct model_fabric *f, const char *now,
			 const char *down, const char *busy, const char *want)
{
	int hosts[16], out[16];
	char *copy = strdup(now), *rest = copy, *name, got[128] = "";
	struct place_request w = SWITCHED(0);
	struct err err = { 0 };

	while ((name = strsep(&rest, " ")) != NULL) {
		hosts[w.n++] = model_find_host(f, name);
	}
	free(copy);
	if (place_spare(f, &w, hosts, flags(f, down, true),
			flags(f, busy, false), out, &err)) {
		assert_int_equal(err.code, WEFT_EINFEASIBLE);
		snprintf(got, sizeof(got), "%s", err.msg);
	}
	for (int i = 0; i < w.n && !err.code; i++) {
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s",
			 i ? " " : "", f->hosts[out[i]].name);
	}
	assert_string_equal(got, want);
}

static void test_spares(void **state)
{
	const struct model_fabric *f = *state;

	expect_spare(f, "a2 a0", "", "a0 a2", "a2 a0");
	expect_spare(f, "a2 a0 a1", "a0", "a0 a1 a2", "a2 a3 a1");
	expect_spare(f, "a0 a1", "a0 a1", "a0 a1", "a2 a3");
	expect_spare(f, "a0 a1", "a0 a2", "a0 a1", "a3 a1");
	/* Of another group only when its own is used up; with the ports. */
	expect_spare(f, "a0 a1 a2", "a1", "a0 a1 a2 a3", "a0 b0 a2");
	expect_spare(f, "c0 b1", "c0", "c0 b1", "c1 b1");
	expect_spare(f, "c0 b1", "c0", "c0 b1 c1",
		     "no host is free in the place of c0");
}

/* Servers where ranks are counted, or named; where hosts are counted those of one rank, unless
 * there are never enough of these. */
static void test_ranks(void **state)
{
	const struct model_fabric *f = *state;
	const int named[] = { model_find_host(f, "e1"), model_find_host(f, "a0") };
	struct place_request w = { .ranks = 4, .ring = -1 };

	expect(f, w, "", "", "e0 e1");
	expect(f, w, "", "e1", "2 hosts are wanted, and 1 of 2 with enough ports are free");
	w.topology = "K(2)";
	expect(f, w, "", "", "e0 e1");
	w.topology = "Multi(K(2),2)";
	expect(f, w, "", "", "2 hosts are wanted, and there are 0 with enough ports");
	w.topology = "K(3)";
	expect(f, w, "", "", "4 ranks are not those of two or more hosts of equally many, "
	       "nodes of the topology");
	w = (struct place_request){ .ranks = 6, .ring = -1 };
	expect(f, w, "", "", "b0 b1 b2 b3 b4 b5");
	w.ranks = 3;
	expect(f, w, "", "", "a0 a1 a2");
	w.ranks = 1;
	expect(f, w, "", "", "1 ranks are not those of two or more hosts of equally many");
	w = SWITCHED(2);
	w.hosts = named;
	expect(f, w, "", "", "e1 a0");
	w.ranks = 3;
	expect(f, w, "", "", "e1 a0");
	w.ranks = 4;
	expect(f, w, "", "", "4 ranks are wanted, and the hosts have 3");
	expect_spare(f, "e0 e1", "e1", "e0 e1", "no host is free in the place of e1");
}

static void test_named(void **state)
{
	const struct model_fabric *f = *state;
	const int hosts[] = { model_find_host(f, "b1"),
			      model_find_host(f, "a0") };
	const int dark[] = { model_find_host(f, "b1"),
			     model_find_host(f, "d0") };
	struct place_request w = SWITCHED(2);

	w.hosts = hosts;
	expect(f, w, "", "", "b1 a0");
	expect(f, w, "", "a0", "host a0 is in use");
	expect(f, w, "b1", "", "host b1 is not usable now");
	w.hosts = dark;
	expect(f, w, "", "", "host d0 has too few ports with fibres");
}

static void test_ring(void **state)
{
	const struct model_fabric *f = *state;
	struct place_request w = { .n = 3,
				.ring = model_find_device(f, "ring") };

	expect(f, w, "", "", "r0 r1 r2");
	/* The tightest stretch goes around the end. */
	expect(f, w, "r1 r3", "", "r4 r5 r0");
	w.n = 5;
	expect(f, w, "r1 r3", "",
	       "5 hosts are wanted, and 4 of 6 on the ring are free");
	w.n = 7;
	expect(f, w, "", "",
	       "7 hosts are wanted, and there are 6 on the ring");
	w.n = 1;
	expect(f, w, "", "", "a collective needs at least two hosts");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_smallest_group),
		cmocka_unit_test(test_across_groups),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_named),
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_spares),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
