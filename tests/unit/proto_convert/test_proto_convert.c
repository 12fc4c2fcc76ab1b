/* SPDX-License-Identifier: Apache-2.0 */
/* A plan told in parts, and circuits with the names of their ends. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "controller/proto_convert/proto_convert.h"
#include "controller/proto_convert/report.h"
#include "lib/output/writer.h"

static const char text[] =
	"weft: 1\n"
	"fabric: small\n"
	"hosts:\n"
	"  - { name: \"gpu[0-3]\", ports: \"p[0-1]\", rate: 100Gbps }\n"
	"  - name: \"node[0-7]\"\n"
	"switches:\n"
	"  - { name: ocs0, size: 10x10, driver: sim, loss: 1dB }\n"
	"rings:\n"
	"  - name: ring0\n"
	"    nodes: \"node[0-7]\"\n"
	"    fibres: 1\n"
	"    channels: 4\n"
	"    channel-rate: 25Gbps\n"
	"    retune: 25us\n"
	"    driver: sim-ring\n"
	"fibres:\n"
	"  - { from: \"gpu[0-3].p[0-1]\", to: \"ocs0.[1-8]\" }\n"
	"jobs:\n"
	"  - name: reduce\n"
	"    nodes: gpu[0-3]\n"
	"    collective: allreduce\n"
	"    size: 1MiB\n"
	"    topology: \"Ring(4)\"\n"
	"    alpha: 10us\n"
	"  - name: gather\n"
	"    ring: ring0\n"
	"    nodes: all\n"
	"    collective: allgather\n"
	"    size: 1MiB\n";

static struct model_fabric *parse(void)
{
	struct model_fabric *f = NULL;
	struct err_list errs = { 0 };

	if (model_parse("small.yaml", text, strlen(text), &f, &errs)) {
		fail_msg("%s", errs.v[0].msg);
	}
	err_list_fini(&errs);
	return f;
}

static void test_circuits_name_their_ends(void **state)
{
	const struct optics_xc xcs[] = { { 0, 3 }, { 8, 9 } };
	struct model_fabric *f = parse();
	struct msg_circuits c;

	(void)state;
	msg_circuits_init(&c, f, model_find_device(f, "ocs0"), xcs, 2);
	assert_int_equal(c.n, 2);
	assert_int_equal(c.v[0]->in, 1);
	assert_int_equal(c.v[0]->out, 4);
	assert_string_equal(c.v[0]->from, "gpu0.p0");
	assert_string_equal(c.v[0]->to, "gpu1.p1");
	assert_string_equal(c.v[1]->from, "");	/* no fibre there */
	assert_string_equal(c.v[1]->to, "");
	msg_circuits_fini(&c);
	msg_circuits_init(&c, f, 0, NULL, 0);
	assert_int_equal(c.n, 0);
	msg_circuits_fini(&c);
	model_free(f);
}

struct told {
	int summaries, devices, jobs, order;
	int add, loads, delete;
	bool empty;
	char jobs_of[128];
	struct buf file;
	int stop_at;		/* fail at this part, 0: never */
};

static void take_device(struct told *t, const Weft__V1__PlanDevice *d)
{
	t->devices++;
	t->add += (int)d->n_add;
	t->loads += d->load_program;
	t->delete += (int)d->n_delete_;
}

static void take_job(struct told *t, const Weft__V1__PlanJob *j)
{
	t->jobs++;
	assert_int_equal(j->n_devices, 1);
	strcat(t->jobs_of, j->name);
	strcat(t->jobs_of, "@");
	strcat(t->jobs_of, j->devices[0]);
	strcat(t->jobs_of, " ");
	assert_true(j->steps > 0 && j->time_ns >= j->bound_ns);
	assert_true(strlen(j->bandwidth_factor) > 0);
}

static int take(const Weft__V1__PlanResponse *part, void *arg, struct err *err)
{
	struct told *t = arg;

	/* summary, devices, jobs, file: the numbers only grow */
	assert_true((int)part->part_case >= t->order);
	t->order = (int)part->part_case;
	if (t->stop_at && --t->stop_at == 0) {
		return err_set(err, WEFT_ELIMIT, "enough");
	}
	switch (part->part_case) {
	case WEFT__V1__PLAN_RESPONSE__PART_SUMMARY:
		t->summaries++;
		t->empty = part->summary->nothing_to_do;
		assert_int_equal(part->summary->unread, 2);
		break;
	case WEFT__V1__PLAN_RESPONSE__PART_DEVICE:
		take_device(t, part->device);
		break;
	case WEFT__V1__PLAN_RESPONSE__PART_JOB:
		take_job(t, part->job);
		break;
	default:
		assert_true(part->file.len <= MSG_PIECE);
		buf_add(&t->file, part->file.data, part->file.len);
	}
	return 0;
}

static void test_plan_in_parts(void **state)
{
	struct model_fabric *f = parse();
	struct plan_file file;
	struct plan *p = NULL;
	struct told t = { .order = 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(plan_make(f, NULL, &p, &err), 0);
	assert_int_equal(msg_send_plan(p, NULL, true, take, &t, &err), 0);
	assert_int_equal(t.summaries, 1);
	assert_false(t.empty);
	assert_int_equal(t.devices, 2);
	assert_int_equal(t.add, 8);
	assert_int_equal(t.delete, 0);
	assert_int_equal(t.loads, 1);
	assert_int_equal(t.jobs, 2);
	assert_string_equal(t.jobs_of, "reduce@ocs0 gather@ring0 ");
	assert_int_equal(plan_file_read(t.file.data, t.file.len, &file, &err),
			 0);
	assert_string_equal(file.digest, p->digest);
	plan_file_fini(&file);
	buf_fini(&t.file);
	plan_free(p);
	model_free(f);
}

/* NAME_at_ns is NAME_at, an ISO time; so is one that has no other name. */
static void test_times_are_iso(void **state)
{
	Weft__V1__WatchResponse ev = WEFT__V1__WATCH_RESPONSE__INIT;
	struct out *o = out_new(OUT_JSON_LINE);
	struct buf b = { 0 };

	(void)state;
	ev.at_ns = INT64_C(1800000000) * 1000000000;
	msg_out_event(o, &ev);
	out_render(o, &b);
	assert_non_null(strstr(buf_cstr(&b), "\"at\":\"2027-01-15T08:00:00"));
	assert_null(strstr(buf_cstr(&b), "at_ns"));
	buf_fini(&b);
	out_free(o);
}

/* Wherever the taker has enough, that is what msg_send_plan says. */
static void test_stops_when_told(void **state)
{
	struct model_fabric *f = parse();
	struct plan *p = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(plan_make(f, NULL, &p, &err), 0);
	for (int at = 1; at <= 6; at++) {
		struct told t = { .stop_at = at };

		assert_int_equal(msg_send_plan(p, NULL, true, take, &t, &err),
				 WEFT_ELIMIT);
		buf_fini(&t.file);
	}
	plan_free(p);
	model_free(f);
}

/* What is said of several devices is said once, of names in ranges. */
static void test_alike(void **state)
{
	static const struct msg_saying v[] = {
		{ "ocs8", "dark" }, { "ocs9", "dark" }, { "ocs10", "dark" }, { "panel", "" },
		{ "ocs11", "saved" }, { "r08", "dark" }, { "r09", "dark" }, { "r10", "dark" },
		{ "r011", "dark" }, { "x", "dark" }, { "7", "dark" }, { "ocs12", "saved" },
		{ "r99", "saved" }, { "r100", "saved" },
	};
	size_t n = sizeof(v) / sizeof(v[0]);
	struct buf names = { 0 };

	(void)state;
	assert_true(msg_alike(v, n, 0, &names));
	assert_string_equal(buf_cstr(&names), "ocs[8-10],r[08-10],r011,x,7: each");
	assert_true(msg_alike(v, n, 4, &names));
	assert_string_equal(buf_cstr(&names), "ocs[11-12],r[99-100]: each");
	for (size_t i = 1; i < n; i++) {
		assert_true(i == 4 || !msg_alike(v, n, i, &names));
	}
	buf_fini(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_circuits_name_their_ends),
		cmocka_unit_test(test_plan_in_parts),
		cmocka_unit_test(test_alike),
		cmocka_unit_test(test_times_are_iso),
		cmocka_unit_test(test_stops_when_told),
	};

	return cmocka_run_group_tests_name("proto_convert/proto_convert", tests, NULL, NULL);
}
