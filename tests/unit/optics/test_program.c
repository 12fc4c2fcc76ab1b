/* SPDX-License-Identifier: Apache-2.0 */
/* Packed programs: format, round trips, what is refused; windows; rings. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "tests/ring_settings.h"

static const struct ring_geometry small = { .nodes = 8, .channels = 4,
					     .fibres = 2 };

static struct ring_program pack(const struct ring_geometry *g,
				const struct ring_settings *p)
{
	struct ring_window w = whole_ring(g);
	struct ring_program out;
	struct err err = { 0 };

	if (ring_program_pack(&out, "job", &w, g, p, &err)) {
		fail_msg("%s", err.msg);
	}
	return out;
}

static void comes_back(const struct ring_geometry *g,
		       const struct ring_settings *p)
{
	struct ring_program a = pack(g, p), b = a;
	struct ring_settings back;
	uint8_t *bytes = malloc(a.len);

	assert_int_equal(ring_program_unpack(&a, &back, NULL), 0);
	assert_true(same_program(p, &back));
	ring_settings_fini(&back);
	memcpy(bytes, a.bytes, a.len);
	assert_int_equal(ring_program_read(&b, bytes, a.len, NULL), 0);
	assert_true(ring_program_equal(&a, &b));
	assert_int_equal(b.steps, p->steps);
	assert_int_equal(b.settings, p->n);
	ring_program_fini(&a);
	ring_program_fini(&b);
}

/* Some settings stay from step to step, as in schedules. */
static struct ring_settings random_program(const struct ring_geometry *g,
					   struct rng *rng)
{
	uint32_t steps = (uint32_t)rng_below(rng, 6);
	int dense = (int)rng_below(rng, 100), keep = (int)rng_below(rng, 100);
	size_t cells = 2u * g->nodes * g->channels * g->fibres;
	uint8_t *mode = calloc(1, cells);
	struct ring_settings p = { .steps = steps };

	p.v = malloc((steps * cells + 1) * sizeof(*p.v));
	for (uint32_t s = 0; s < steps; s++) {
		for (size_t i = 0; i < cells; i++) {
			if ((int)rng_below(rng, 100) >= keep) {
				mode[i] = (int)rng_below(rng, 100) < dense ?
					  (uint8_t)(1 + rng_below(rng, 3)) : 0;
			}
			if (mode[i]) {
				size_t row = i / g->nodes;

				p.v[p.n++] = (struct ring_setting){
					(uint16_t)s, (uint16_t)(i % g->nodes),
					(uint16_t)(row % g->channels),
					(uint8_t)(row / g->channels /
						  g->fibres),
					(uint8_t)(row / g->channels %
						  g->fibres), mode[i] };
			}
		}
	}
	free(mode);
	assert_int_equal(ring_settings_normalise(&p, NULL), 0);
	return p;
}

static void random_programs_come_back(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7);
	for (int i = 0; i < 400; i++) {
		const struct ring_geometry g = {
			.nodes = (uint16_t)(2 + rng_below(&rng, 20)),
			.channels = (uint16_t)(1 + rng_below(&rng, 9)),
			.fibres = (uint8_t)(1 + rng_below(&rng, 3)) };
		struct ring_settings p = random_program(&g, &rng);

		comes_back(&g, &p);
		ring_settings_fini(&p);
	}
}

/* Byte by byte what docs/drivers.md says. */
static void the_format_is_as_documented(void **state)
{
	/* Step 0: nodes 0, 2, 4, 6 add and drop channel 1 clockwise on fibre
	 * 0. Step 1: the same. Step 2: node 2 only adds, node 4 passes. */
	struct ring_setting v[11];
	struct ring_settings p = { .steps = 3, .v = v };
	static const uint8_t want[] = {
		1, 2, 8, 0, 4, 0, 3, 0, 0, 0, 11, 0, 0, 0,
		0x20, 1, 8, 6, 2,	/* both; 1 run: from 8, 4 of it, 2 on */
		0x00,			/* nothing changes */
		0x0c, 1, 12, 0, 1, 10, 0,	/* passes: 12; adds: 10 */
	};
	struct ring_program a;

	(void)state;
	for (int s = 0; s < 3; s++) {
		for (int node = 0; node < 8; node += 2) {
			if (s == 2 && node == 4) {
				continue;
			}
			v[p.n++] = (struct ring_setting){
				.step = (uint16_t)s, .node = (uint16_t)node,
				.channel = 1,
				.mode = s == 2 && node == 2 ? RESONATOR_ADD :
							      RESONATOR_ADD_DROP };
		}
	}
	a = pack(&small, &p);
	assert_int_equal(a.len, sizeof(want));
	assert_memory_equal(a.bytes, want, sizeof(want));
	ring_program_fini(&a);
}

/* Runs of runs: a step of a whole ring is a handful of bytes. */
static void regular_programs_are_short(void **state)
{
	const struct ring_geometry g = { 1024, 64, 1 };
	struct ring_settings p = { .steps = 16, .n = 16u * 1024 * 64 };
	struct ring_program a;

	(void)state;
	p.v = malloc(p.n * sizeof(*p.v));
	for (size_t i = 0; i < p.n; i++) {
		p.v[i] = (struct ring_setting){
			(uint16_t)(i >> 16), (uint16_t)(i >> 6 & 1023),
			(uint16_t)(i & 63), OPTICS_CCW, 0, RESONATOR_ADD_DROP };
	}
	a = pack(&g, &p);
	assert_true(a.len < 64);
	ring_program_fini(&a);
	ring_settings_fini(&p);
}

/* What is cut is refused; what has another bit is refused or another
 * program. */
static void damage_is_never_overlooked(void **state)
{
	struct rng rng;
	struct ring_settings p;
	struct ring_program a;

	(void)state;
	rng_seed(&rng, 3);
	do {
		p = random_program(&small, &rng);
		if (p.n > 40) {
			break;
		}
		ring_settings_fini(&p);
	} while (true);
	a = pack(&small, &p);
	for (size_t len = 0; len < a.len; len++) {
		struct ring_program b = { .window = a.window };
		uint8_t *bytes = malloc(len + 1);

		memcpy(bytes, a.bytes, len);
		assert_int_equal(ring_program_read(&b, bytes, len, NULL),
				 WEFT_EINVAL);
	}
	for (size_t bit = 0; bit < 8 * a.len; bit++) {
		struct ring_program b = { .window = a.window };
		struct ring_settings back;
		uint8_t *bytes = malloc(a.len);

		memcpy(bytes, a.bytes, a.len);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (ring_program_read(&b, bytes, a.len, NULL) == 0) {
			assert_int_equal(ring_program_unpack(&b, &back, NULL), 0);
			/* From dark rings "full" makes no difference. */
			assert_false(bit % 8 != 0 &&
				     same_program(&p, &back) &&
				     memcmp(&a.ring, &b.ring,
					    sizeof(a.ring)) == 0);
			ring_settings_fini(&back);
			ring_program_fini(&b);
		}
	}
	ring_program_fini(&a);
	ring_settings_fini(&p);
}

static void settings_outside_are_refused(void **state)
{
	static const struct ring_window w = { 6, 4, 1, 2 };
	static const struct {
		struct ring_setting t;
		bool fits;
	} cases[] = {
		{ { 0, 6, 1, 0, 0, RESONATOR_ADD }, true },
		{ { 0, 1, 2, 0, 1, RESONATOR_ADD }, true },	/* over the seam */
		{ { 0, 2, 1, 0, 0, RESONATOR_ADD }, false },
		{ { 0, 5, 1, 0, 0, RESONATOR_ADD }, false },
		{ { 0, 6, 0, 0, 0, RESONATOR_ADD }, false },
		{ { 0, 6, 3, 0, 0, RESONATOR_ADD }, false },
		{ { 0, 8, 1, 0, 0, RESONATOR_ADD }, false },
		{ { 0, 6, 1, 0, 2, RESONATOR_ADD }, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ring_setting t = cases[i].t;
		const struct ring_settings p = { 1, 1, &t };
		struct ring_program a;
		struct err err = { 0 };
		int rc = ring_program_pack(&a, "j", &w, &small, &p, &err);

		assert_int_equal(rc, cases[i].fits ? 0 : WEFT_EINVAL);
		if (rc == 0) {
			ring_program_fini(&a);
		} else {
			assert_non_null(strstr(err.msg, "is outside the"));
		}
	}
}

/* In any order, ADD and DROP apart, a step at a time: the same bytes. */
static void steps_pack_as_whole_programs_do(void **state)
{
	static const struct ring_window w = { 0, 8, 0, 4 };
	static const struct ring_setting v[] = {
		{ 0, 1, 2, 0, 1, RESONATOR_ADD }, { 0, 3, 2, 0, 1, RESONATOR_ADD_DROP },
		{ 2, 3, 2, 0, 1, RESONATOR_ADD_DROP },
	}, loose[] = {
		{ 0, 3, 2, 0, 1, RESONATOR_DROP }, { 0, 1, 2, 0, 1, RESONATOR_ADD },
		{ 0, 3, 2, 0, 1, RESONATOR_ADD },
	}, twice[] = { { 3, 1, 2, 0, 1, RESONATOR_DROP },
		       { 3, 1, 2, 0, 1, RESONATOR_DROP } };
	const struct ring_settings p = { 3, 3, (struct ring_setting *)v };
	struct ring_program a, b;
	struct ring_program_packer *packer;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(ring_program_pack(&a, "j", &w, &small, &p, NULL), 0);
	assert_int_equal(ring_program_packer_new(&w, &small, &packer, NULL), 0);
	assert_int_equal(ring_program_packer_step(packer, loose, 3, NULL), 0);
	assert_int_equal(ring_program_packer_step(packer, NULL, 0, NULL), 0);
	assert_int_equal(ring_program_packer_step(packer, &v[2], 1, NULL), 0);
	assert_int_equal(ring_program_packer_end(packer, "j", &b, NULL), 0);
	ring_program_packer_free(packer);
	assert_true(ring_program_equal(&a, &b));
	ring_program_fini(&a);
	ring_program_fini(&b);
	assert_int_equal(ring_program_packer_new(&w, &small, &packer, NULL), 0);
	for (int step = 0; step < 3; step++) {
		assert_int_equal(ring_program_packer_step(packer, NULL, 0, NULL), 0);
	}
	assert_int_equal(ring_program_packer_step(packer, twice, 2, &err),
			 WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "node 1 channel 2 is dropped twice"));
	ring_program_packer_free(packer);
}

static void windows_meet_where_a_resonator_is_in_both(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 11);
	for (int i = 0; i < 3000; i++) {
		struct ring_window w[2];
		bool meet = false;

		for (int k = 0; k < 2; k++) {
			w[k].first_node = (uint16_t)rng_below(&rng, 8);
			w[k].nodes = (uint16_t)(1 + rng_below(&rng, 8));
			w[k].first_channel = (uint16_t)rng_below(&rng, 4);
			w[k].channels = (uint16_t)(1 + rng_below(&rng,
				4u - w[k].first_channel));
		}
		for (int c = 0; c < 32; c++) {
			meet |= ring_window_contains(&w[0], 8, c / 4, c % 4) &&
				ring_window_contains(&w[1], 8, c / 4, c % 4);
		}
		assert_int_equal(ring_windows_overlap(&w[0], &w[1], 8), meet);
		assert_int_equal(ring_windows_overlap(&w[1], &w[0], 8), meet);
	}
}

static struct ring_program part(const char *name, struct ring_window w,
				uint16_t channel)
{
	struct ring_setting t = { 0, w.first_node, channel, 0, 0, RESONATOR_ADD };
	const struct ring_settings p = { 1, 1, &t };
	struct ring_program a;

	assert_int_equal(ring_program_pack(&a, name, &w, &small, &p, NULL), 0);
	return a;
}

static void rings_are_sorted_saved_and_checked(void **state)
{
	const struct ring_window low = { 0, 8, 0, 2 }, high = { 0, 8, 2, 2 },
				  wide = { 3, 1, 1, 2 };
	struct ring_program a = part("a", low, 0), b = part("b", high, 3),
			  c = part("c", wide, 1), again = part("a", high, 2);
	struct ring_programs r = { 0 }, back;
	uint8_t one[RING_DIGEST_LEN], two[RING_DIGEST_LEN], *bytes;
	struct err err = { 0 };
	size_t len;

	(void)state;
	assert_int_equal(ring_programs_add(&r, &b, NULL), 0);
	assert_int_equal(ring_programs_add(&r, &a, NULL), 0);
	assert_int_equal(ring_programs_add(&r, &again, &err), WEFT_EINVAL);
	assert_string_equal(r.v[0].name, "a");
	assert_int_equal(ring_programs_check(&r, &small, NULL), 0);
	ring_programs_digest(&r, one);
	ring_programs_save(&r, &bytes, &len);
	assert_int_equal(ring_programs_load(&back, bytes, len, NULL), 0);
	assert_true(ring_programs_equal(&r, &back));
	ring_programs_digest(&back, two);
	assert_memory_equal(one, two, sizeof(one));
	ring_programs_fini(&back);
	/* Between the two programs a cut cannot be told from an end. */
	for (size_t n = 1, whole = 0; n < len; n++) {
		int rc = ring_programs_load(&back, bytes, n, NULL);

		assert_true(rc == WEFT_EINVAL || whole++ == 0);
		ring_programs_fini(&back);
	}
	free(bytes);
	assert_int_equal(ring_programs_add(&r, &c, NULL), 0);
	assert_int_equal(ring_programs_check(&r, &small, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "programs a and c share"));
	ring_programs_digest(&r, two);
	assert_memory_not_equal(one, two, sizeof(one));
	assert_non_null(ring_programs_find(&r, "b"));
	assert_null(ring_programs_find(&r, "d"));
	ring_programs_fini(&r);
}

/* What a plan did without is kept with its program, and is no part of it. */
static void what_it_did_without_is_kept(void **state)
{
	static const struct ring_fault dead[] = {
		{ .part = RING_RESONATOR, .dir = OPTICS_CCW, .fibre = 1,
		  .node = 300, .channel = 513, .why = RESONATOR_ZERO },
		{ .part = RING_SPAN, .node = 7 },
		{ .part = RING_NODE, .node = 9 },
	};
	const struct ring_window low = { 0, 8, 0, 2 };
	struct ring_program a = part("a", low, 0), plain = part("a", low, 0);
	struct ring_programs r = { 0 }, back;
	uint8_t one[RING_DIGEST_LEN], two[RING_DIGEST_LEN], *bytes;
	size_t len, whole;

	(void)state;
	ring_program_set_without(&a, dead, 3);
	assert_true(ring_program_equal(&a, &plain));
	whole = a.len;
	assert_int_equal(ring_programs_add(&r, &a, NULL), 0);
	ring_programs_digest(&r, one);
	ring_programs_save(&r, &bytes, &len);
	assert_true(len > whole);
	for (size_t n = 1; n < len; n++) {
		assert_int_equal(ring_programs_load(&back, bytes, n, NULL),
				 WEFT_EINVAL);
	}
	assert_int_equal(ring_programs_load(&back, bytes, len, NULL), 0);
	ring_programs_digest(&back, two);
	assert_memory_equal(one, two, sizeof(one));
	assert_int_equal(back.v[0].n_without, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ring_fault_cmp(&back.v[0].without[i],
						&dead[i]), 0);
		assert_int_equal(back.v[0].without[i].why, dead[i].why);
	}
	ring_programs_fini(&back);
	bytes[len - 8] = RING_RESONATOR;	/* the node before the span */
	assert_int_equal(ring_programs_load(&back, bytes, len, NULL),
			 WEFT_EINVAL);
	free(bytes);
	ring_programs_fini(&r);
	ring_program_fini(&plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_programs_come_back),
		cmocka_unit_test(the_format_is_as_documented),
		cmocka_unit_test(regular_programs_are_short),
		cmocka_unit_test(damage_is_never_overlooked),
		cmocka_unit_test(settings_outside_are_refused),
		cmocka_unit_test(steps_pack_as_whole_programs_do),
		cmocka_unit_test(windows_meet_where_a_resonator_is_in_both),
		cmocka_unit_test(rings_are_sorted_saved_and_checked),
		cmocka_unit_test(what_it_did_without_is_kept),
	};

	return cmocka_run_group_tests_name("optics/program", tests, NULL, NULL);
}
