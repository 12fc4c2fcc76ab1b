/* SPDX-License-Identifier: Apache-2.0 */
/* `mrr-reg`: several programs on one ring, its memory, and the emulated
 * resonators at work. */
#include "tests/unit/drivers/rig.h"

static struct ring_setting low_tunes[] = {
	{ 0, 0, 0, OPTICS_CW, 0, RESONATOR_ADD }, { 0, 2, 0, OPTICS_CW, 0, RESONATOR_DROP },
	{ 1, 2, 1, OPTICS_CCW, 1, RESONATOR_ADD },
	{ 1, 5, 1, OPTICS_CCW, 1, RESONATOR_DROP },
};
static struct ring_setting high_tunes[] = {
	{ 0, 1, 3, OPTICS_CW, 0, RESONATOR_ADD }, { 0, 3, 3, OPTICS_CW, 0, RESONATOR_DROP },
};
static struct ring_setting other_tunes[] = {
	{ 0, 4, 2, OPTICS_CW, 0, RESONATOR_ADD }, { 0, 5, 2, OPTICS_CW, 0, RESONATOR_DROP },
};
static const struct ring_settings low = { 2, 4, low_tunes };
static const struct ring_settings high = { 1, 2, high_tunes };
static const struct ring_settings other = { 1, 2, other_tunes };
static const struct ring_window low_half = { 0, 6, 0, 2 };
static const struct ring_window high_half = { 0, 6, 2, 2 };

static struct rig *set_up(const char *option, const char *value)
{
	struct rig *r = test_calloc(1, sizeof(*r));

	rig_init(r, "mrr-reg", 6, 4, false);
	r->extra[0] = option;
	r->extra[1] = value;
	rig_start_emulator(r, "6x4", NULL);
	rig_open(r);
	return r;
}

static void tear_down(struct rig *r)
{
	rig_fini(r);
	test_free(r);
}

static struct ring_programs two(const struct ring_settings *a,
				const struct ring_settings *b)
{
	struct ring_programs all = { 0 };

	if (a) {
		pack_into(&all, "a", 6, 4, 2, low_half, a);
	}
	if (b) {
		pack_into(&all, "b", 6, 4, 2, high_half, b);
	}
	return all;
}

static void load(struct rig *r, const struct ring_settings *a,
		 const struct ring_settings *b)
{
	struct ring_programs all = two(a, b);

	assert_int_equal(rig_programs(r, &all), 0);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	assert_int_equal(rig_snapshot(r), 0);
	assert_true(ring_programs_equal(&r->snap.programs, &all));
	ring_programs_fini(&all);
}

/* "generation G writes W" of a program's slot. */
static void touched(struct rig *r, const char *name, char *text)
{
	char all[1024], want[64], *at;

	rig_control(r, "slots", all, sizeof(all));
	snprintf(want, sizeof(want), "program %s generation", name);
	at = strstr(all, want);
	assert_non_null(at);
	*strstr(at, " step") = '\0';
	strcpy(text, at);
}

static void programs_do_not_touch_each_other(void **state)
{
	struct rig *r = set_up(NULL, NULL);
	char before[64], after[64];

	(void)state;
	load(r, NULL, &high);
	touched(r, "b", before);
	load(r, &low, &high);
	load(r, NULL, &high);
	load(r, &low, &high);
	touched(r, "b", after);
	assert_string_equal(before, after);
	assert_int_equal(rig_stat(r, "sets"), 4);
	load(r, &low, &high);
	assert_int_equal(rig_stat(r, "sets"), 4);
	load(r, &low, &other);
	touched(r, "b", after);
	assert_string_not_equal(before, after);
	tear_down(r);
}

static void refused(struct rig *r, const struct ring_programs *all,
		    const char *text)
{
	assert_int_equal(rig_programs(r, all), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_REFUSED);
	if (!strstr(r->outcomes[0].text, text)) {
		fail_msg("%s", r->outcomes[0].text);
	}
}

static void programs_that_meet_are_refused(void **state)
{
	struct rig *r = set_up(NULL, NULL);
	struct ring_programs all = two(&low, NULL);
	const struct ring_window wide = { 5, 2, 1, 2 };
	const struct ring_settings empty = { .steps = 1 };

	(void)state;
	pack_into(&all, "c", 6, 4, 2, wide, &empty);
	refused(r, &all, "programs a and c share");
	assert_int_equal(rig_stat(r, "sets"), 0);
	ring_programs_fini(&all);
	tear_down(r);
}

static void memory_is_a_limit(void **state)
{
	struct rig *r = set_up("--memory", "40");
	struct ring_programs all = two(&low, &high);

	(void)state;
	assert_true(ring_programs_bytes(&all) > 40);
	refused(r, &all, "the device stores 40");
	ring_programs_fini(&all);
	load(r, NULL, &high);
	assert_int_equal(r->snap.caps.memory, 40);
	tear_down(r);
}

static void slots_are_a_limit(void **state)
{
	struct rig *r = set_up("--slots", "1");
	struct ring_programs all = two(&low, &high);

	(void)state;
	refused(r, &all, "2 programs: the device has 1 slots");
	ring_programs_fini(&all);
	/* The one slot changes hands in one commit. */
	load(r, &low, NULL);
	load(r, NULL, &high);
	assert_int_equal(r->snap.caps.max_programs, 1);
	tear_down(r);
}

static void programs_step_by_themselves(void **state)
{
	struct rig *r = set_up(NULL, NULL);
	char text[512];

	(void)state;
	load(r, &low, &high);
	rig_control(r, "light a", text, sizeof(text));
	assert_string_equal(text, "step 0 of 2\n"
		"drop 0 node 2 cw fibre 0 channel 0 from 0\n");
	rig_control(r, "step a", text, sizeof(text));
	assert_string_equal(text, "step 1 of 2\n"
		"drop 1 node 5 ccw fibre 1 channel 1 from 2\n");
	rig_control(r, "light b", text, sizeof(text));
	assert_string_equal(text, "step 0 of 1\n"
		"drop 0 node 3 cw fibre 0 channel 3 from 1\n");
	rig_control(r, "step a", text, sizeof(text));
	assert_non_null(strstr(text, "step 0 of 2\ndrop 0 node 2"));
	tear_down(r);
}

static void light_that_goes_wrong_is_seen(void **state)
{
	static struct ring_setting lost[] = {
		{ 0, 0, 2, OPTICS_CW, 0, RESONATOR_ADD },
		{ 0, 1, 2, OPTICS_CW, 0, RESONATOR_ADD },
		{ 0, 2, 2, OPTICS_CW, 0, RESONATOR_DROP },
		{ 0, 3, 2, OPTICS_CW, 0, RESONATOR_DROP },
	};
	static struct ring_setting misrouted[] = {
		{ 0, 1, 0, OPTICS_CCW, 0, RESONATOR_ADD },
		{ 0, 2, 0, OPTICS_CCW, 0, RESONATOR_DROP },
	};
	const struct ring_settings p = { 1, 4, lost }, q = { 1, 2, misrouted };
	const struct ring_window part = { 1, 2, 0, 1 };
	struct rig *r = set_up(NULL, NULL);
	struct ring_programs all = two(NULL, &p);
	char text[512];

	(void)state;
	pack_into(&all, "s", 6, 4, 2, part, &q);
	assert_int_equal(rig_programs(r, &all), 0);
	rig_control(r, "light b", text, sizeof(text));
	assert_non_null(strstr(text, "lost 0 node 0 cw fibre 0 channel 2 "
			       "meets 1\n"));
	assert_non_null(strstr(text, "drop 0 node 2 cw fibre 0 channel 2 "
			       "from 1\n"));
	assert_non_null(strstr(text, "dark 0 node 3 cw fibre 0 channel 2\n"));
	rig_control(r, "light s", text, sizeof(text));
	assert_non_null(strstr(text, "misrouted 0 node 1 ccw fibre 0 channel 0 "
			       "to 2\n"));
	ring_programs_fini(&all);
	tear_down(r);
}

static void a_flipped_setting_is_read_back(void **state)
{
	struct rig *r = set_up(NULL, NULL);
	struct ring_programs all = two(&low, &high);

	(void)state;
	load(r, &low, &high);
	rig_control(r, "flip b", NULL, 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_false(ring_programs_equal(&r->snap.programs, &all));
	assert_true(ring_program_equal(&r->snap.programs.v[0], &all.v[0]));
	ring_programs_fini(&all);
	load(r, &low, &high);
	tear_down(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_do_not_touch_each_other),
		cmocka_unit_test(programs_that_meet_are_refused),
		cmocka_unit_test(memory_is_a_limit),
		cmocka_unit_test(slots_are_a_limit),
		cmocka_unit_test(programs_step_by_themselves),
		cmocka_unit_test(light_that_goes_wrong_is_seen),
		cmocka_unit_test(a_flipped_setting_is_read_back),
	};

	return cmocka_run_group_tests_name("drivers/slots", tests,
					   NULL, NULL);
}
