/* SPDX-License-Identifier: Apache-2.0 */
/* Wiring as found against wiring as written, without any namespace. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/plan.h"
#include "controller/testbed/bringup_private.h"

static const char text[] =
	"weft: 1\n"
	"fabric: t\n"
	"hosts:\n"
	"  - { name: \"h[0-3]\", ports: p0, rate: 1Gbps }\n"
	"fibres:\n"
	"  - { from: \"h[0-3].p0\", to: \"s.[1-4]\", loss: 0.25dB }\n"
	"\n"
	"switches:   # after the fibres\n"
	"  - { name: s, size: 6x6, driver: linux-tc, options: { fabric: t } }\n";

static struct model_fabric *parse(const char *of)
{
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;

	if (model_parse("t.yaml", of, strlen(of), &f, &errs)) {
		fail_msg("%s", errs.v[0].msg);
	}
	return f;
}

/* All as written. */
static struct bringup *found(const struct model_fabric *f)
{
	struct bringup *b;

	assert_int_equal(bringup_new(f, &b, NULL), 0);
	for (int i = 0; i < 6; i++) {
		int port = i < 4 ? i : -1;

		b->devices[0].in[i].end = b->devices[0].out[i].end =
			(struct bringup_end){ .port = port, .sent = 10, .received = 10 };
	}
	return b;
}

static struct bringup_finding *differences(struct bringup *b, int want)
{
	struct bringup_finding *v;
	int n;

	bringup_findings(b, &v, &n);
	assert_int_equal(n, want);
	return v;
}

static void as_written_nothing_differs(void **state)
{
	struct model_fabric *f = parse(text);
	struct bringup *b = found(f);

	(void)state;
	free(differences(b, 0));
	bringup_free(b);
	model_free(f);
}

static void a_swap_is_told_once(void **state)
{
	struct model_fabric *f = parse(text);
	struct bringup *b = found(f);
	struct bringup_finding *v;

	(void)state;
	b->devices[0].in[1].end.port = 2;
	b->devices[0].in[2].end.port = 1;
	v = differences(b, 1);
	assert_int_equal(v[0].kind, BRINGUP_SWAPPED);
	assert_string_equal(v[0].fibre, "h1.p0.tx");
	assert_string_equal(v[0].with, "h2.p0.tx");
	free(v);
	bringup_free(b);
	model_free(f);
}

/* The first one's place has the last one. */
static void a_circle_of_three_is_three_moves(void **state)
{
	struct model_fabric *f = parse(text);
	struct bringup *b = found(f);
	struct bringup_finding *v;

	(void)state;
	for (int i = 0; i < 3; i++) {
		b->devices[0].out[i].end.port = (i + 1) % 3;
	}
	v = differences(b, 3);
	for (int i = 0; i < 3; i++) {
		char fibre[16], written[16], at[16];

		snprintf(fibre, sizeof(fibre), "h%d.p0.rx", 2 - i);
		snprintf(written, sizeof(written), "s.out%d", 3 - i);
		snprintf(at, sizeof(at), "s.out%d", (4 - i) % 3 + 1);
		assert_int_equal(v[i].kind, BRINGUP_MOVED);
		assert_string_equal(v[i].fibre, fibre);
		assert_string_equal(v[i].written, written);
		assert_string_equal(v[i].found, at);
	}
	free(v);
	bringup_free(b);
	model_free(f);
}

static void broken_moved_and_lossy_are_told_apart(void **state)
{
	struct model_fabric *f = parse(text);
	struct bringup *b = found(f);
	struct bringup_finding *v;

	(void)state;
	b->devices[0].in[0].end.port = -1;
	b->devices[0].out[1].end.port = -1;
	b->devices[0].out[5].end.port = 1;
	b->devices[0].in[3].end.received = 7;
	v = differences(b, 3);
	assert_int_equal(v[0].kind, BRINGUP_MISSING);
	assert_string_equal(v[0].fibre, "h0.p0.tx");
	assert_string_equal(v[0].found, "");
	assert_int_equal(v[1].kind, BRINGUP_MOVED);
	assert_string_equal(v[1].fibre, "h1.p0.rx");
	assert_string_equal(v[1].found, "s.out6");
	assert_string_equal(v[1].with, "");
	assert_int_equal(v[2].kind, BRINGUP_LOSSY);
	assert_int_equal(v[2].received, 7);
	free(v);
	bringup_free(b);
	model_free(f);
}

static void a_reversed_pair_is_one_finding(void **state)
{
	struct model_fabric *f = parse(text);
	struct bringup *b = found(f);
	struct bringup_finding *v;

	(void)state;
	b->devices[0].in[2].end.port = -1;
	b->devices[0].out[2].end.reversed = true;
	v = differences(b, 1);
	assert_int_equal(v[0].kind, BRINGUP_REVERSED);
	assert_string_equal(v[0].fibre, "h2.p0");
	free(v);
	bringup_free(b);
	model_free(f);
}

static void the_corrected_file_says_what_was_found(void **state)
{
	struct model_fabric *f = parse(text), *g;
	struct bringup *b = found(f);
	struct buf out = { 0 };

	(void)state;
	b->devices[0].in[0].end.port = 3;
	b->devices[0].in[3].end.port = 0;
	b->devices[0].out[1].end.port = -1;
	assert_int_equal(bringup_yaml(b, &out, NULL), 0);
	g = parse(out.data);
	assert_int_equal(g->ports[0].tx_port, 3);
	assert_int_equal(g->ports[3].tx_port, 0);
	assert_int_equal(g->ports[0].rx_port, 0);
	assert_int_equal(g->ports[0].tx_loss_mdb, 250);
	assert_int_equal(g->ports[1].rx_device, -1);
	assert_int_equal(g->devices[0].n_in, 6);
	assert_non_null(strstr(out.data, "# after the fibres"));
	model_free(g);
	buf_fini(&out);
	bringup_free(b);
	model_free(f);
}

/* What a fibre between switches has beside its ends stays as well. */
static void channels_and_gain_stay(void **state)
{
	static const char wdm[] =
		"weft: 1\nfabric: f\n"
		"hosts:\n  - { name: \"h[0-1]\", ports: \"p[0-1]\", rate: 1Gbps, "
		"channels: 0-3 }\n"
		"switches:\n  - { name: \"s[0-1]\", size: 6x6, driver: linux-tc, "
		"options: { fabric: f } }\n"
		"fibres:\n"
		"  - { from: \"h0.p[0-1]\", to: \"s0.[1-2]\" }\n"
		"  - { from: \"h1.p[0-1]\", to: \"s1.[1-2]\" }\n"
		"  - { from: \"s0.[3-4]\", to: \"s1.[3-4]\", channels: 2-3 }\n"
		"  - { from: \"s0.out5\", to: \"s1.in5\", loss: 2dB, "
		"gain: 5dB }\n"
		"jobs: []\n";
	struct model_fabric *f = parse(wdm), *again;
	struct buf out = { 0 };
	struct bringup *b;

	(void)state;
	assert_int_equal(bringup_new(f, &b, NULL), 0);
	assert_int_equal(bringup_yaml(b, &out, NULL), 0);
	again = parse(out.data);
	assert_int_equal(again->n_trunks, 5);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(again->trunks[i].channel, f->trunks[i].channel);
		assert_int_equal(again->trunks[i].loss_mdb,
				 f->trunks[i].loss_mdb);
		assert_int_equal(again->trunks[i].amplified,
				 f->trunks[i].amplified);
	}
	assert_int_equal(again->trunks[4].loss_mdb, -3000);
	model_free(again);
	bringup_free(b);
	model_free(f);
	buf_fini(&out);
}

static void fibres_between_switches_are_told_apart(void **state)
{
	static const char two[] =
		"weft: 1\nfabric: f\n"
		"hosts:\n  - { name: \"h[0-1]\", ports: p0, rate: 1Gbps }\n"
		"switches:\n  - { name: \"s[0-1]\", size: 6x6, driver: linux-tc, "
		"options: { fabric: f } }\n"
		"fibres:\n"
		"  - { from: \"h[0-1].p0\", to: \"s0.1,s1.1\" }\n"
		"  - { from: \"s0.out[2-4]\", to: \"s1.in[2-4]\" }\n"
		"jobs: []\n";
	struct model_fabric *f = parse(two), *again;
	struct bringup_finding *v;
	struct buf out = { 0 };
	struct bringup_far *far;
	struct bringup *b;

	(void)state;
	assert_int_equal(bringup_new(f, &b, NULL), 0);
	for (int i = 0; i < 2; i++) {
		b->devices[i].in[0].end = b->devices[i].out[0].end =
			(struct bringup_end){ .port = i, .sent = 10, .received = 10 };
	}
	far = b->devices[0].far;
	v = differences(b, 3);
	assert_int_equal(v[0].kind, BRINGUP_UNTESTED);
	free(v);
	for (int i = 1; i < 4; i++) {
		far[i] = (struct bringup_far){
			.reach = REACH_INPUT, .device = 1, .port = i,
			.fibre_mdb = UNKNOWN_LOSS_MDB, .sent = 10,
			.received = 10 };
	}
	free(differences(b, 0));
	far[1].port = 2;
	far[2].port = 1;
	far[3].received = 9;
	v = differences(b, 2);
	assert_int_equal(v[0].kind, BRINGUP_SWAPPED);
	assert_string_equal(v[0].fibre, "s0.out2");
	assert_string_equal(v[0].with, "s0.out3");
	assert_string_equal(v[0].found, "s1.in3");
	assert_int_equal(v[1].kind, BRINGUP_LOSSY);
	free(v);
	far[1].reach = REACH_NOTHING;
	v = differences(b, 3);
	assert_int_equal(v[0].kind, BRINGUP_MISSING);
	assert_int_equal(v[1].kind, BRINGUP_MOVED);
	assert_string_equal(v[1].with, "s0.out2");
	free(v);
	assert_int_equal(bringup_yaml(b, &out, NULL), 0);
	again = parse(out.data);
	assert_int_equal(again->n_trunks, 2);
	assert_int_equal(again->trunks[0].from_port, 2);
	assert_int_equal(again->trunks[0].to_port, 1);
	model_free(again);
	buf_fini(&out);
	bringup_free(b);
	model_free(f);
}

static void the_state_is_kept_for_one_text(void **state)
{
	struct model_fabric *f = parse(text), *g = parse(text);
	struct bringup *b = found(f), *c;
	struct buf out = { 0 }, again = { 0 };
	const struct bringup_try seen = {
		.xc = { 1, 3 }, .from_device = -1, .from_out = 2,
		.reach = REACH_INPUT, .to_device = -1, .to_port = 0,
		.sent = 10, .received = 9 };

	(void)state;
	b->n_lit = 1;
	b->lit[0] = (struct bringup_circuit){ .device = 0, .xc = { 4, 5 } };
	vec_push(&b->tries, seen);
	assert_int_equal(bringup_save(b, &out, NULL), 0);
	assert_int_equal(bringup_new(g, &c, NULL), 0);
	assert_int_equal(bringup_load(c, out.data, out.len, NULL), 0);
	assert_int_equal(c->n_lit, 1);
	assert_int_equal(c->lit[0].xc.out, 5);
	assert_int_equal(c->devices[0].in[1].end.port, 2);
	assert_int_equal(c->devices[0].out[3].end.port, 0);
	assert_int_equal(c->devices[0].out[3].end.received, 9);
	assert_int_equal(c->devices[0].in[0].end.port, -1);
	assert_int_equal(bringup_save(c, &again, NULL), 0);
	assert_string_equal(out.data, again.data);
	g->hash[0] ^= 1;
	assert_int_equal(bringup_load(c, out.data, out.len, NULL),
			 WEFT_ESTALE);
	assert_int_equal(bringup_load(c, "[]", 2, NULL), WEFT_EINVAL);
	buf_fini(&out);
	buf_fini(&again);
	bringup_free(b);
	bringup_free(c);
	model_free(f);
	model_free(g);
}

static void light_is_traced_through_circuits_and_fibres(void **state)
{
	static const struct optics_xc xcs[] = { { 0, 2 }, { 1, 5 } };
	struct plan_light light = { .known = true, .n_xcs = 2, .xcs = xcs };
	struct model_fabric *f = parse(text);

	(void)state;
	assert_int_equal(plan_trace(f, &light, 0), 2);
	assert_int_equal(plan_trace(f, &light, 1), -1);
	assert_int_equal(plan_trace(f, &light, 2), -1);
	model_free(f);
}

/* Two ports of each host to one switch, another to each of two: whichever order they are cabled
 * in, and over a number that gets a digit more. */
static void ranges_stay(void **state)
{
	static const char ranges[] =
		"weft: 1\nfabric: f\n"
		"hosts:\n  - { name: \"h[08-11]\", ports: \"p[9-12]\", rate: 1Gbps }\n"
		"switches:\n  - { name: \"s[0-2]\", size: 9x9, driver: linux-tc, "
		"options: { fabric: f } }\n"
		"fibres:\n";
	static const char fibres[] =
		"  - { from: \"h[08-11].p[9-10].tx\", to: \"s0.in[1-8]\", loss: 0.500dB }\n"
		"  - { from: \"h[08-11].p11.tx\", to: \"s1.in[1-4]\" }\n"
		"  - { from: \"h08.p12.tx\", to: \"s2.in2\" }\n"
		"  - { from: \"h[10-11].p12.tx\", to: \"s2.in[3-4]\" }\n"
		"  - { from: \"s0.out[1-8]\", to: \"h[08-11].p[9-10].rx\" }\n"
		"  - { from: \"s1.out[1-4]\", to: \"h[08-11].p11.rx\" }\n"
		"  - { from: \"s1.out[8-9]\", to: \"s2.in[8-9]\" }\n";
	struct buf out = { 0 }, in = { 0 };
	struct model_fabric *f;
	struct bringup *b;

	(void)state;
	buf_printf(&in, "%s%s", ranges, fibres);
	f = parse(buf_cstr(&in));
	assert_int_equal(bringup_new(f, &b, NULL), 0);
	assert_int_equal(bringup_yaml(b, &out, NULL), 0);
	assert_string_equal(buf_cstr(&out), buf_cstr(&in));
	bringup_free(b);
	model_free(f);
	buf_fini(&out);
	buf_fini(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_written_nothing_differs),
		cmocka_unit_test(a_swap_is_told_once),
		cmocka_unit_test(a_circle_of_three_is_three_moves),
		cmocka_unit_test(broken_moved_and_lossy_are_told_apart),
		cmocka_unit_test(a_reversed_pair_is_one_finding),
		cmocka_unit_test(the_corrected_file_says_what_was_found),
		cmocka_unit_test(channels_and_gain_stay),
		cmocka_unit_test(ranges_stay),
		cmocka_unit_test(fibres_between_switches_are_told_apart),
		cmocka_unit_test(the_state_is_kept_for_one_text),
		cmocka_unit_test(light_is_traced_through_circuits_and_fibres),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
