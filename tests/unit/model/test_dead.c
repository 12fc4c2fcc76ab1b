/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that the file marks as dead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controller/model/model.h"

#define FABRIC                                                              \
	"weft: 1\nfabric: t\nhosts:\n"                                      \
	"  - { name: 'h[0-3]', ports: 'p[0-1]', rate: 100Gbps }\n"          \
	"  - { name: 'n[0-3]' }\n"                                          \
	"switches:\n"                                                       \
	"  - { name: s, size: 8x8, driver: sim }\n"                         \
	"  - { name: any, ports: 4, any-to-any: true, driver: sim }\n"      \
	"rings:\n"                                                          \
	"  - { name: r, nodes: 'n[0-3]', channels: 3, fibres: 2, "          \
	"channel-rate: 40Gbps, retune: 25us, driver: sim-ring }\n"          \
	"fibres:\n"                                                         \
	"  - { from: 'h[0-3].p0', to: 's.[3-6]' }\n"                        \
	"jobs: []\ndead:\n"

static struct model_fabric *read_marks(const char *marks)
{
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;
	char text[4096];

	snprintf(text, sizeof(text), FABRIC "%s", marks);
	if (model_parse("t.yaml", text, strlen(text), &f, &errs)) {
		fail_msg("%s", errs.v[0].msg);
	}
	return f;
}

static void expect_ints(const int *v, int n, const char *want)
{
	char text[200] = "";

	for (int i = 0; i < n; i++) {
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%d ", v[i]);
	}
	assert_string_equal(text, want);
}

static void ports_are_marked_on_their_devices(void **state)
{
	struct model_fabric *f = read_marks(
		"  - { port: 's.in[1-2]' }\n"
		"  - { port: [s.out8, s.7, s.in2] }\n"
		"  - { port: h2.p0 }\n"
		"  - { port: h0.p0.tx }\n"
		"  - { port: h0.p1 }\n"
		"  - { port: any.3 }\n");
	const struct model_device *s = &f->devices[0], *any = &f->devices[1];

	(void)state;
	/* h2's fibres are at 5, h0's transmitter at 3, h0.p1 has none. */
	expect_ints(s->dead_in, s->n_dead_in, "0 1 2 4 6 ");
	expect_ints(s->dead_out, s->n_dead_out, "4 6 7 ");
	expect_ints(any->dead_in, any->n_dead_in, "2 ");
	expect_ints(any->dead_out, any->n_dead_out, "2 ");
	model_free(f);
}

/* The parts of ring r, as many as are given. */
static void expect_parts(const char *marks, int n,
			 const struct ring_fault *want)
{
	struct model_fabric *f = read_marks(marks);
	const struct model_device *r = &f->devices[2];

	assert_int_equal(r->n_dead, n);
	for (int i = 0; want && i < n; i++) {
		assert_int_equal(ring_fault_cmp(&r->dead[i], &want[i]), 0);
	}
	for (int i = 1; i < n; i++) {
		assert_true(ring_fault_cmp(&r->dead[i - 1], &r->dead[i]) < 0);
	}
	model_free(f);
}

static void parts_of_rings(void **state)
{
	static const struct ring_fault node = { .part = RING_NODE, .node = 2 };
	static const struct ring_fault span = {
		.part = RING_SPAN, .node = 3, .dir = OPTICS_CCW, .fibre = 1 };
	static const struct ring_fault one = {
		.part = RING_RESONATOR, .node = 1, .dir = OPTICS_CW,
		.fibre = 0, .channel = 2 };

	(void)state;
	expect_parts("  - { ring: r, node: 2 }\n  - { ring: r, node: 2 }\n", 1,
		     &node);
	expect_parts("  - { ring: r, span: 3, direction: ccw, fibre: 1 }\n", 1,
		     &span);
	expect_parts("  - { ring: r, node: 1, direction: cw, fibre: 0, "
		     "channel: 2 }\n", 1, &one);
	/* What is left open stands for all. */
	expect_parts("  - { ring: r, span: 0 }\n", 4, NULL);
	expect_parts("  - { ring: r, channel: 1 }\n", 4 * 2 * 2, NULL);
	expect_parts("  - { ring: r, fibre: 1, direction: cw }\n", 4 * 3, NULL);
	expect_parts("  - { ring: r, node: 1, direction: cw }\n", 2 * 3, NULL);
	expect_parts("  - { ring: r, channel: 0 }\n"
		     "  - { ring: r, node: 1 }\n"
		     "  - { ring: r, node: 1, channel: 0 }\n", 17, NULL);
}

static void refused(const char *marks, const char *words)
{
	struct err_list errs = { .max = 4 };
	struct model_fabric *f = NULL;
	char text[4096];

	snprintf(text, sizeof(text), FABRIC "%s", marks);
	assert_int_not_equal(model_parse("t.yaml", text, strlen(text), &f,
					 &errs), 0);
	assert_true(errs.n > 0);
	if (!strstr(errs.v[0].msg, words)) {
		fail_msg("\"%s\" is not in \"%s\"", words, errs.v[0].msg);
	}
	assert_int_equal(errs.v[0].line, 15);
	err_list_fini(&errs);
}

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	refused("  - { }\n", "either 'port' or 'ring' says where it is");
	refused("  - { port: s.1, ring: r, node: 1 }\n", "either 'port' or");
	refused("  - { port: s.1, node: 1 }\n", "a port has no parts");
	refused("  - { ring: r }\n", "says which part of the ring it is");
	refused("  - { ring: r, span: 1, channel: 0 }\n",
		"a span has neither 'node' nor 'channel'");
	refused("  - { ring: s, node: 1 }\n", "there is no ring 's'");
	refused("  - { ring: r, node: 4 }\n", "node 4: ring r has 0 to 3");
	refused("  - { ring: r, span: 4 }\n", "span 4: ring r has 0 to 3");
	refused("  - { ring: r, channel: 3 }\n", "channel 3: ring r has 0 to 2");
	refused("  - { ring: r, fibre: 2, node: 0 }\n",
		"fibre 2: ring r has 0 to 1");
	refused("  - { port: s.9 }\n", "port 9: s has inputs 1 to 8");
	refused("  - { port: h9.p0 }\n", "there is no host or device 'h9'");
	refused("  - { ring: r, node: 1, direction: up }\n", "direction");
}

/* Entries that each stand for much are not made before they are counted. */
static void too_many_are_refused(void **state)
{
	static const char head[] =
		"weft: 1\nfabric: t\nhosts: [{ name: 'n[0-99]' }]\nrings:\n"
		"  - { name: r, nodes: 'n[0-99]', channels: 4096, fibres: 64, "
		"channel-rate: 40Gbps, retune: 25us, driver: sim-ring }\n"
		"jobs: []\ndead:\n  - { ring: r, direction: cw }\n"
		"  - { ring: r, direction: ccw }\n";
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;

	(void)state;
	assert_int_equal(model_parse("t.yaml", head, sizeof(head) - 1, &f,
				     &errs), WEFT_ELIMIT);
	assert_int_equal(errs.n, 1);
	assert_non_null(strstr(errs.v[0].msg, "more than 65536 dead parts"));
	assert_int_equal(errs.v[0].line, 8);
	err_list_fini(&errs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports_are_marked_on_their_devices),
		cmocka_unit_test(parts_of_rings),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(too_many_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
