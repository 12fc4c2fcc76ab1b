/* SPDX-License-Identifier: Apache-2.0 */
/* Bring-up with power: what differs, the corrected file, the state file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controller/testbed/bringup_private.h"

#define LIT (-3000)

static const char text[] =
	"weft: 1\nfabric: t\n"
	"hosts:\n  - { name: \"h[0-3]\", ports: p0, rate: 1Gbps }\n"
	"switches:\n  - { name: \"s[0-1]\", size: 4x4, loss: 1dB, "
	"driver: sim }\n"
	"fibres:\n"
	"  - { from: \"h[0-1].p0\", to: \"s0.[1-2]\" }\n"
	"  - { from: \"h[2-3].p0\", to: \"s1.[1-2]\" }\n"
	"  - { from: \"s0.out[3-4]\", to: \"s1.in[3-4]\", loss: 0.5dB }\n"
	"  - { from: \"s1.out[3-4]\", to: \"s0.in[3-4]\", loss: 0.5dB }\n"
	"jobs: []\n";

static struct bringup_far far_in(int device, int port, int32_t fibre_mdb)
{
	return (struct bringup_far){ .reach = REACH_INPUT, .device = device,
				     .port = port, .path_mdb = 800,
				     .fibre_mdb = fibre_mdb };
}

/* As the file says. */
static struct bringup *found(struct model_fabric **f)
{
	struct err_list errs = { 0 };
	struct bringup *p;

	assert_int_equal(model_parse("t", text, sizeof(text) - 1, f, &errs), 0);
	assert_int_equal(bringup_new(*f, &p, NULL), 0);
	for (int d = 0; d < 2; d++) {
		for (int i = 0; i < 4; i++) {
			p->devices[d].in[i].mdbm = i < 2 ? LIT : -60000;
			p->devices[d].out[i].mdbm = -60000;
			p->devices[d].far[i] = i >= 2 ?
				far_in(!d, i, 600) :
				(struct bringup_far){
					.reach = REACH_NOTHING, .device = -1,
					.port = -1, .path_mdb = 800 };
		}
	}
	return p;
}

static struct bringup_finding *differences(struct bringup *p, int want)
{
	struct bringup_finding *v;
	int n;

	bringup_findings(p, &v, &n);
	assert_int_equal(n, want);
	return v;
}

static void done(struct bringup *p, struct model_fabric *f)
{
	bringup_free(p);
	model_free(f);
}

static void as_written(void **state)
{
	struct model_fabric *f;
	struct bringup *p = found(&f);

	(void)state;
	free(differences(p, 0));
	done(p, f);
}

static void elsewhere(void **state)
{
	struct model_fabric *f;
	struct bringup *p = found(&f);
	struct bringup_finding *v;

	(void)state;
	p->devices[0].far[2] = far_in(1, 3, 600);
	p->devices[0].far[3] = far_in(1, 2, 600);
	v = differences(p, 1);
	assert_int_equal(v[0].kind, BRINGUP_SWAPPED);
	assert_string_equal(v[0].fibre, "s0.out3");
	assert_string_equal(v[0].with, "s0.out4");
	assert_string_equal(v[0].written, "s1.in3");
	assert_string_equal(v[0].found, "s1.in4");
	free(v);
	p->devices[0].far[3].reach = REACH_NOTHING;
	p->devices[0].far[3].device = -1;
	v = differences(p, 2);
	assert_int_equal(v[0].kind, BRINGUP_MOVED);
	assert_int_equal(v[1].kind, BRINGUP_MISSING);
	free(v);
	done(p, f);
}

/* One milli-dB decides. */
static void limits(void **state)
{
	struct model_fabric *f;
	struct bringup *p = found(&f);
	struct bringup_finding *v;

	(void)state;
	p->devices[0].far[2].fibre_mdb = 1500;
	p->devices[0].far[0].path_mdb = 2000;
	free(differences(p, 0));
	p->devices[0].far[2].fibre_mdb = 1501;
	p->devices[0].far[0].path_mdb = 2001;
	p->devices[0].far[1].path_mdb = NO_LIGHT_MDB;
	v = differences(p, 3);
	assert_int_equal(v[0].kind, BRINGUP_LOSSY);
	assert_string_equal(v[0].fibre, "s0.out3");
	assert_int_equal(v[0].loss_mdb, 1501);
	assert_int_equal(v[1].kind, BRINGUP_LOSSY);
	assert_string_equal(v[1].fibre, "s0.in1 -> out1");
	assert_int_equal(v[2].kind, BRINGUP_MISSING);
	assert_string_equal(v[2].fibre, "s0.in1 -> out2");
	free(v);
	done(p, f);
}

static void light_without_fibre(void **state)
{
	struct model_fabric *f;
	struct bringup *p = found(&f);
	struct bringup_finding *v;

	(void)state;
	p->devices[1].in[2].mdbm = LIT;		/* a laser at a trunk */
	p->devices[1].far[0] = far_in(0, 0, 600);	/* h2's fibre */
	p->devices[0].in[0].mdbm = -60000;
	v = differences(p, 4);
	assert_string_equal(v[0].fibre, "h0.p0.tx");
	assert_string_equal(v[1].fibre, "h2.p0.rx");
	assert_int_equal(v[2].kind, BRINGUP_UNWRITTEN);
	assert_string_equal(v[2].found, "s1.in3");
	assert_int_equal(v[3].kind, BRINGUP_UNWRITTEN);
	assert_string_equal(v[3].fibre, "s1.out1");
	free(v);
	done(p, f);
}

static void corrected_file_reads_as_found(void **state)
{
	struct model_fabric *f, *g = NULL;
	struct bringup *p = found(&f);
	struct err_list errs = { 0 };
	struct buf out = { 0 };

	(void)state;
	p->devices[0].far[2] = far_in(1, 3, 600);
	p->devices[0].far[3] = far_in(1, 2, 2750);
	p->devices[1].far[3].reach = REACH_UNKNOWN;
	p->devices[0].in[1].mdbm = -60000;
	assert_int_equal(bringup_yaml(p, &out, NULL), 0);
	assert_int_equal(model_parse("found", out.data, out.len, &g, &errs), 0);
	assert_int_equal(g->n_trunks, 4);
	assert_int_equal(g->trunks[0].to_port, 3);
	assert_int_equal(g->trunks[0].loss_mdb, 600);
	assert_int_equal(g->trunks[1].to_port, 2);
	assert_int_equal(g->trunks[1].loss_mdb, 2750);
	assert_int_equal(g->trunks[2].loss_mdb, 500);
	assert_int_equal(g->ports[1].tx_device, -1);
	assert_int_equal(g->ports[1].rx_device, 0);
	model_free(g);
	buf_fini(&out);
	done(p, f);
}

static void state_file_comes_back(void **state)
{
	struct model_fabric *f;
	struct bringup *p = found(&f), *q;
	struct buf out = { 0 }, again = { 0 };
	const struct bringup_try seen = { 0, { 1, 2 }, 1, 3, REACH_INPUT, 1, 2, 4000,
					  UNKNOWN_LOSS_MDB, 0, 0, true, 1, 3 };

	(void)state;
	p->n_lit = 1;
	p->lit[0] = (struct bringup_circuit){ 1, { 2, 3 }, true, true };
	p->has_levels = true;
	vec_push(&p->tries, seen);
	assert_int_equal(bringup_save(p, &out, NULL), 0);
	assert_int_equal(bringup_new(f, &q, NULL), 0);
	assert_int_equal(bringup_load(q, out.data, out.len, NULL), 0);
	assert_int_equal(q->n_lit, 1);
	assert_int_equal(q->lit[0].xc.out, 3);
	assert_false(q->lit[0].made);	/* the switch is asked */
	assert_true(q->lit[0].removing);
	assert_true(q->has_levels);
	assert_int_equal(q->devices[1].in[1].mdbm, LIT);
	assert_int_equal(q->tries.n, 1);
	assert_true(q->tries.v[0].is_split);
	assert_int_equal(q->tries.v[0].split_port, 3);
	assert_int_equal(bringup_save(q, &again, NULL), 0);
	assert_string_equal(out.data, again.data);
	f->hash[0] ^= 1;
	assert_int_equal(bringup_load(q, out.data, out.len, NULL), WEFT_ESTALE);
	assert_int_equal(bringup_load(q, "{}", 2, NULL), WEFT_EINVAL);
	buf_fini(&out);
	buf_fini(&again);
	bringup_free(q);
	done(p, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_written),
		cmocka_unit_test(elsewhere),
		cmocka_unit_test(limits),
		cmocka_unit_test(light_without_fibre),
		cmocka_unit_test(corrected_file_reads_as_found),
		cmocka_unit_test(state_file_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
