/* SPDX-License-Identifier: Apache-2.0 */
/* Plans go through bytes and stay what they are, in all that is told of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/plan_layout.h"
#include "controller/proto_convert/proto_convert.h"
#include "lib/base/file.h"

static int take_part(const Weft__V1__PlanResponse *part, void *arg, struct err *err)
{
	struct buf *b = arg;
	size_t n = protobuf_c_message_get_packed_size(&part->base);

	(void)err;
	protobuf_c_message_pack(&part->base, (uint8_t *)buf_extend(b, n));
	return 0;
}

/* All that clients are told. */
static struct buf told(const struct plan *p, const struct plan_base *base)
{
	struct buf b = { 0 };

	assert_int_equal(msg_send_plan(p, base, true, take_part, &b, NULL), 0);
	assert_int_equal(msg_send_lightpaths(p, take_part, &b, NULL), 0);
	return b;
}

static void assert_same(struct buf a, struct buf b)
{
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	buf_fini(&a);
	buf_fini(&b);
}

static void assert_arrives(const struct plan *p, const struct plan_base *base)
{
	struct buf bytes = { 0 }, again = { 0 };
	struct err err = { 0 };
	struct plan *q;

	plan_to_bytes(p, &bytes);
	if (plan_from_bytes(p->fabric, bytes.data, bytes.len, &q, &err)) {
		fail_msg("%s", err.msg);
	}
	plan_to_bytes(q, &again);
	assert_same(told(p, base), told(q, base));
	/* What has come through comes through again, and nothing less is enough. */
	for (size_t i = 1; i <= 64; i++) {
		struct plan *none = NULL;
		size_t len = bytes.len - bytes.len * i / 64;

		assert_int_not_equal(plan_from_bytes(p->fabric, bytes.data, len, &none, &err), 0);
		assert_null(none);
	}
	assert_same(bytes, again);
	plan_free(q);
}

static void assert_refused(const struct plan *p, const char *why)
{
	struct buf bytes = { 0 };
	struct err err = { 0 };
	struct plan *none = NULL;

	plan_to_bytes(p, &bytes);
	assert_int_equal(plan_from_bytes(p->fabric, bytes.data, bytes.len, &none, &err),
			 WEFT_EINVAL);
	if (!strstr(err.msg, why)) {
		fail_msg("%s", err.msg);
	}
	buf_fini(&bytes);
}

/* From nothing, and when half of its circuits have gone. */
static void plan_twice(const struct model_fabric *f)
{
	size_t n = (size_t)f->n_devices;
	struct plan_light *intent = calloc(n, sizeof(*intent)), *seen = calloc(n, sizeof(*seen));
	struct plan_base base = { .intent = intent, .observed = seen };
	struct err err = { 0 };
	struct plan *p, *less;

	if (plan_make(f, NULL, &p, &err)) {
		fail_msg("%s", err.msg);
	}
	assert_arrives(p, NULL);
	for (int i = 0; i < p->n_devices; i++) {
		const struct plan_device *d = &p->devices[i];

		intent[d->device] = seen[d->device] = (struct plan_light){
			.known = true, .n_xcs = d->n_want, .xcs = d->want,
			.programs = d->has_program ? &d->programs : NULL };
		seen[d->device].n_xcs /= 2;
	}
	if (plan_degraded(f, &base, &less, &err)) {
		fail_msg("%s", err.msg);
	}
	plan_gains(p, &(struct plan_before){ "before", "allgather", 2, 1, 2, 2 }, 1);
	assert_arrives(p, &base);
	assert_arrives(less, &base);
	plan_free(less);
	plan_free(p);
	free(intent);
	free(seen);
}

static void test_all_fabrics(void **state)
{
	DIR *dir = opendir("configs/fabrics");
	struct dirent *e;
	int n = 0;

	(void)state;
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		struct err_list errs = { 0 };
		struct model_fabric *f;
		char path[512];

		/* Slices have nothing that others have not, and their flows take long here. */
		if (e->d_name[0] == '.' || strcmp(e->d_name, "cubes.yaml") == 0) {
			continue;
		}
		snprintf(path, sizeof(path), "configs/fabrics/%s", e->d_name);
		if (model_load(path, &f, &errs)) {
			fail_msg("%s: %s", path, errs.v[0].msg);
		}
		plan_twice(f);
		model_free(f);
		n++;
	}
	closedir(dir);
	assert_true(n > 8);
}

/* What no planner makes: two circuits on a port, one that goes and is wanted. */
static void test_impossible(void **state)
{
	struct err_list errs = { 0 };
	struct err err = { 0 };
	struct model_fabric *f;
	struct plan *p;

	(void)state;
	assert_int_equal(model_load("configs/fabrics/two-switches.yaml", &f, &errs), 0);
	assert_int_equal(plan_make(f, NULL, &p, &err), 0);
	for (int what = 0; what < 2; what++) {
		struct plan_device bad = p->devices[0], good = bad;
		struct optics_xc *want = calloc((size_t)bad.n_want, sizeof(*want));
		int stage = 0;

		assert_true(bad.n_want > 1);
		memcpy(want, bad.want, (size_t)bad.n_want * sizeof(*want));
		bad.want = want;
		bad.n_add = 0;
		if (what == 0) {
			const bool up = want[0].out < want[1].out;
			const int low = want[!up].out, high = want[up].out;

			want[1] = (struct optics_xc){ want[0].in, high };
			want[0].out = low;
			bad.n_want = 2;
		} else {
			bad.del = want;
			bad.n_del = 1;
			bad.del_stage = &stage;
		}
		p->devices[0] = bad;
		assert_refused(p, "that cannot be together");
		p->devices[0] = good;
		free(want);
	}
	plan_free(p);
	model_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_fabrics), cmocka_unit_test(test_impossible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
