/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent for a plan: batches, their order, whole maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controller/dry_run/dry_run.h"

/* A driver that tells the batch it is given in a line. */
static void explain(struct drv *dev, const struct drv_batch *b,
		    drv_trace_fn fn, void *arg)
{
	char line[200];
	int n = snprintf(line, sizeof(line), "%s", b->programs ? "ring" :
			 b->mode == DRV_REPLACE ? "map" : "");

	for (int i = 0; i < b->n_items; i++) {
		n += snprintf(line + n, sizeof(line) - (size_t)n, "%c%d-%d",
			      b->items[i].op == DRV_ADD ? '+' : '-',
			      b->items[i].xc.in, b->items[i].xc.out);
	}
	fn(dev->name, line, false, arg);
}

static const struct drv_class cls = { .name = "told", .explain = explain };

static struct model_device devices[] = { { .name = "a" }, { .name = "b" } };
static const struct model_fabric fabric = { .n_devices = 2,
					    .devices = devices };
static struct drv drvs[] = { { .cls = &cls, .name = "a" },
			     { .cls = &cls, .name = "b" } };

struct heard {
	char text[1000];
	int stop_after;
};

static int hear(const struct dry_run_batch *o, void *arg, struct err *err)
{
	struct heard *h = arg;
	size_t n = strlen(h->text);

	assert_int_equal(o->n_lines, 1);
	snprintf(h->text + n, sizeof(h->text) - n, "%d %s %s %d%s: %s\n",
		 o->stage, fabric.devices[o->device].name,
		 batch_phase_name(o->phase), o->n_items,
		 o->guessed ? "?" : "", o->lines[0]);
	return h->stop_after && --h->stop_after == 0 ?
		err_set(err, WEFT_ECANCELED, "enough") : 0;
}

static void expect(const struct plan *p, const struct drv_snapshot *a,
		   const char *text)
{
	const struct dry_run_device v[] = { { &drvs[0], a },
					     { &drvs[1], NULL } };
	struct heard h = { 0 };
	struct err err = { 0 };

	assert_int_equal(dry_run_explain(p, v, hear, &h, &err), 0);
	assert_string_equal(h.text, text);
}

static struct optics_xc olds[] = { { 0, 0 }, { 1, 1 }, { 2, 2 } };
static struct optics_xc news[] = { { 0, 1 }, { 1, 2 }, { 2, 0 } };
static int first[] = { 0, 0, 0 }, second[] = { 1, 1, 1 };

static void batches_are_cut_and_in_order(void **state)
{
	struct plan_device d[] = {
		{ .device = 0, .n_del = 3, .del = olds, .del_stage = first,
		  .n_add = 3, .add = news, .add_stage = first,
		  .n_want = 3, .want = news },
		{ .device = 1, .n_add = 3, .add = news, .add_stage = first,
		  .n_want = 3, .want = news },
	};
	const struct plan p = { .fabric = &fabric, .n_devices = 2,
				.devices = d, .n_stages = 1 };
	const struct drv_snapshot two = { .caps.max_batch = 2, .n_xcs = 3 };

	(void)state;
	expect(&p, &two,
	       "0 a delete 2: -0-0-1-1\n"
	       "0 a delete 1: -2-2\n"
	       "0 a add 2: +0-1+1-2\n"
	       "0 a add 1: +2-0\n"
	       "0 b add 3?: +0-1+1-2+2-0\n");
}

/* Only where nothing else is on the device, and the list fits a command. */
static void a_map_is_set_at_once(void **state)
{
	struct plan_device d = {
		.n_del = 3, .del = olds, .del_stage = first,
		.n_add = 3, .add = news, .add_stage = first,
		.n_want = 3, .want = news,
	};
	const struct plan p = { .fabric = &fabric, .n_devices = 1,
				.devices = &d, .n_stages = 1 };
	struct drv_snapshot s = { .caps.atomic_replace = true, .n_xcs = 3 };

	(void)state;
	expect(&p, &s, "0 a map 3: map+0-1+1-2+2-0\n");
	s.n_xcs = 4;		/* another user's */
	expect(&p, &s, "0 a delete 3: -0-0-1-1-2-2\n"
		       "0 a add 3: +0-1+1-2+2-0\n");
	s.n_xcs = 3;
	s.caps.max_batch = 2;
	expect(&p, &s, "0 a delete 2: -0-0-1-1\n0 a delete 1: -2-2\n"
		       "0 a add 2: +0-1+1-2\n0 a add 1: +2-0\n");
}

/* What the first stage made is there, and to be kept, in the second. */
static void later_stages_find_what_earlier_ones_left(void **state)
{
	static int halves[] = { 0, 1, 1 };
	struct plan_device d = {
		.n_del = 3, .del = olds, .del_stage = halves,
		.n_add = 3, .add = news, .add_stage = halves,
		.n_want = 3, .want = news,
	};
	const struct plan p = { .fabric = &fabric, .n_devices = 1,
				.devices = &d, .n_stages = 2 };
	const struct drv_snapshot s = { .caps.atomic_replace = true,
					.n_xcs = 3 };

	(void)state;
	expect(&p, &s, "0 a delete 1: -0-0\n0 a add 1: +0-1\n"
		       "1 a delete 2: -1-1-2-2\n1 a add 2: +1-2+2-0\n");
	/* All gone in the first: the second is no replacement. */
	d.del_stage = first;
	d.add_stage = second;
	expect(&p, &s, "0 a delete 3: -0-0-1-1-2-2\n"
		       "1 a add 3: +0-1+1-2+2-0\n");
}

static void programs_are_loaded_last(void **state)
{
	struct plan_device d[] = {
		{ .device = 1, .has_program = true, .load_program = true,
		  .load_stage = 0 },
		{ .device = 0, .n_add = 3, .add = news, .add_stage = first,
		  .n_want = 3, .want = news },
	};
	const struct plan p = { .fabric = &fabric, .n_devices = 2,
				.devices = d, .n_stages = 1 };
	const struct dry_run_device v[] = { { &drvs[0], NULL },
					     { &drvs[1], NULL } };
	struct heard h = { .stop_after = 1 };
	struct err err = { 0 };

	(void)state;
	expect(&p, NULL, "0 a add 3?: +0-1+1-2+2-0\n0 b load 0?: ring\n");
	assert_int_equal(dry_run_explain(&p, v, hear, &h, &err),
			 WEFT_ECANCELED);
	assert_string_equal(h.text, "0 a add 3?: +0-1+1-2+2-0\n");
}

static void a_driver_of_another_kind_is_refused(void **state)
{
	struct model_device ring = { .name = "r", .kind = MODEL_RING,
				     .driver = "polatis-scpi",
				     .address = "localhost:1",
				     .place = { 7, 3 } };
	const struct model_fabric f = { .config.name = (char *)"f.yaml",
					.n_devices = 1,
					.devices = &ring };
	struct err err = { 0 };
	struct drv *drv;
	uv_loop_t loop;

	(void)state;
	uv_loop_init(&loop);
	assert_int_equal(dry_run_open(&loop, &f, 0, 0, &drv, &err),
			 WEFT_EINVAL);
	assert_null(drv);
	assert_int_equal(err.line, 7);
	assert_non_null(strstr(err.msg, "is not for a ring"));
	ring.driver = "nonesuch";
	assert_int_equal(dry_run_open(&loop, &f, 0, 0, &drv, &err),
			 WEFT_EINVAL);
	assert_int_equal(err.code, WEFT_EINVAL);
	assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_are_cut_and_in_order),
		cmocka_unit_test(a_map_is_set_at_once),
		cmocka_unit_test(later_stages_find_what_earlier_ones_left),
		cmocka_unit_test(programs_are_loaded_last),
		cmocka_unit_test(a_driver_of_another_kind_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
