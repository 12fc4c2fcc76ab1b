/* SPDX-License-Identifier: Apache-2.0 */
/* Bring-up over devices that measure nothing: which circuits are tried, in
 * what order, and what follows. The wiring is a table here, and no robot
 * has to be waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controller/testbed/bringup_private.h"
#include "lib/base/number/rng.h"

#define N 8
#define LIMIT 2000

enum { SWITCH, PANEL };

/* Hosts, panel, switch: outputs 1 to N lead to the switch, N + 1 to a host. */
static const char text[] =
	"weft: 1\nfabric: t\n"
	"hosts:\n  - { name: \"h[0-7]\", ports: p0, rate: 1Gbps }\n"
	"switches:\n  - { name: s, size: 8x8, driver: sim }\n"
	"panels:\n  - { name: p, size: 9x9, driver: sim }\n"
	"fibres:\n"
	"  - { from: \"h[0-7].p0.tx\", to: \"p.in[1-8]\" }\n"
	"  - { from: \"p.out[1-8]\", to: \"s.in[1-8]\" }\n"
	"  - { from: \"p.out9\", to: \"h0.p0.rx\" }\n"
	"jobs: []\n";

/* What is really there. */
struct world {
	int32_t in_loss[N];	/* over what is to be, NO_LIGHT_MDB: dark */
	int32_t out_loss[N];
	int to[N];		/* input of the switch */
	bool reversed[N];	/* ends at an output */
};

struct rig {
	struct model_fabric *f;
	struct bringup *p;
	struct world w;
};

static void begin(struct rig *r)
{
	struct err_list errs = { 0 };

	memset(r, 0, sizeof(*r));
	assert_int_equal(model_parse("t", text, sizeof(text) - 1, &r->f, &errs),
			 0);
	assert_int_equal(bringup_new(r->f, &r->p, NULL), 0);
	r->p->devices[PANEL].unmonitored = r->p->devices[PANEL].robot = true;
	for (int i = 0; i <= N; i++) {
		r->p->devices[PANEL].in[i].mdbm = r->p->devices[PANEL].out[i].mdbm =
			DARK_MDBM;
	}
	for (int i = 0; i < N; i++) {
		r->w.to[i] = i;
		r->p->devices[SWITCH].in[i].mdbm = -60000;
		r->p->devices[SWITCH].out[i].mdbm = -60000;
		r->p->devices[SWITCH].far[i] = (struct bringup_far){
					.reach = REACH_NOTHING, .device = -1,
					.port = -1, .path_mdb = 500 };
	}
	r->p->devices[SWITCH].source = 0;	/* it needs no feed */
	bringup_settle(r->p);
}

static void end(struct rig *r)
{
	bringup_free(r->p);
	model_free(r->f);
}

static void try_one(struct rig *r, struct optics_xc xc)
{
	const struct world *w = &r->w;
	struct bringup_try t = { .device = PANEL, .xc = xc, .from_device = -1,
			       .from_out = -1, .reach = REACH_NOTHING,
			       .to_device = -1, .to_port = -1,
			       .loss_mdb = UNKNOWN_LOSS_MDB,
			       .limit_mdb = UNKNOWN_LOSS_MDB };

	assert_in_range(xc.in, 0, N - 1);
	assert_in_range(xc.out, 0, N - 1);
	if (w->in_loss[xc.in] != NO_LIGHT_MDB &&
	    w->out_loss[xc.out] != NO_LIGHT_MDB) {
		t.reach = w->reversed[xc.out] ? REACH_OUTPUT : REACH_INPUT;
		t.to_device = SWITCH;
		t.to_port = w->to[xc.out];
		t.loss_mdb = LIMIT + w->in_loss[xc.in] + w->out_loss[xc.out];
		t.limit_mdb = LIMIT;
	}
	vec_push(&r->p->tries, t);
	bringup_settle(r->p);
}

static int run(struct rig *r)
{
	struct optics_xc xc;
	int device, n = 0;

	while (bringup_next_pair(r->p, &device, &xc)) {
		assert_int_equal(device, PANEL);
		try_one(r, xc);
		assert_true(++n <= 4 * N);
	}
	return n;
}

static void two_moves_for_a_pair(void **state)
{
	struct rig r;
	struct bringup_finding *v;
	int n;

	(void)state;
	begin(&r);
	assert_int_equal(bringup_moves_left(r.p), 2 * N);
	assert_int_equal(run(&r), N);
	assert_int_equal(bringup_moves_left(r.p), 0);
	bringup_findings(r.p, &v, &n);
	assert_int_equal(n, 0);
	free(v);
	end(&r);
}

/* One more try if it is the output's, two if it is the input's: then the output
 * has to be cleared too. */
static void a_dark_pair_is_told_apart(void **state)
{
	struct rig r;

	(void)state;
	for (int out = 0; out < 2; out++) {
		begin(&r);
		(out ? r.w.out_loss : r.w.in_loss)[3] = NO_LIGHT_MDB;
		assert_int_equal(run(&r), N + (out ? 1 : 2));
		assert_int_equal(r.p->devices[PANEL].in[3].seen,
				 out ? INPUT_LIT : INPUT_DARK);
		assert_int_equal(r.p->devices[PANEL].far[3].reach,
				 out ? REACH_NOTHING : REACH_INPUT);
		end(&r);
	}
}

static void worn_ports_are_left_alone(void **state)
{
	struct rig r;

	(void)state;
	begin(&r);
	r.p->devices[PANEL].in[2].blocked = true;
	r.p->devices[PANEL].out[5].blocked = true;
	assert_int_equal(run(&r), N - 1);
	for (size_t k = 0; k < r.p->tries.n; k++) {
		assert_int_not_equal(r.p->tries.v[k].xc.in, 2);
		assert_int_not_equal(r.p->tries.v[k].xc.out, 5);
	}
	assert_int_equal(r.p->devices[PANEL].in[2].seen, INPUT_UNSEEN);
	end(&r);
}

static void what_nothing_measures_is_unseen(void **state)
{
	char (*v)[BRINGUP_NAME_MAX];
	struct rig r;
	int n;

	(void)state;
	begin(&r);
	r.p->devices[PANEL].in[2].blocked = true;
	run(&r);
	bringup_unseen(r.p, &v, &n);
	assert_int_equal(n, 2);
	assert_string_equal(v[0], "h0.p0.rx");
	assert_string_equal(v[1], "h2.p0.tx");
	free(v);
	end(&r);
}

/* The circuit that a killed run left is what the next one looks at. */
static void a_pair_that_is_made_comes_first(void **state)
{
	struct rig r;
	struct optics_xc xc;
	int device;

	(void)state;
	begin(&r);
	r.p->lit[0] = (struct bringup_circuit){ PANEL, { 6, 2 }, .made = true };
	r.p->n_lit = 1;
	assert_int_equal(bringup_moves_left(r.p), 2 * N - 1);
	assert_true(bringup_next_pair(r.p, &device, &xc));
	assert_int_equal(xc.in, 6);
	assert_int_equal(xc.out, 2);
	try_one(&r, xc);
	assert_true(bringup_next_pair(r.p, &device, &xc));
	assert_int_not_equal(xc.in, 6);
	end(&r);
}

/* ---- any wiring ---- */

static int n_bad(const struct rig *r)
{
	int n = 0;

	for (int i = 0; i < N; i++) {
		n += r->w.in_loss[i] != 0;
		n += r->w.out_loss[i] != 0;
	}
	return n;
}

static void wire(struct rig *r, struct rng *rng)
{
	struct world *w = &r->w;

	for (int i = N - 1; i > 0; i--) {
		int k = (int)rng_below(rng, (uint64_t)i + 1), t = w->to[i];

		w->to[i] = w->to[k];
		w->to[k] = t;
	}
	for (int i = 0; i < N; i++) {
		int fate = (int)rng_below(rng, 12);

		w->in_loss[i] = fate == 0 ? NO_LIGHT_MDB : fate == 1 ? 3000 :
				0;
		fate = (int)rng_below(rng, 12);
		w->out_loss[i] = fate == 0 ? NO_LIGHT_MDB : fate == 1 ?
				 3000 : 0;
		w->reversed[i] = fate == 2;
	}
}

static bool has_good_pair(const struct world *w)
{
	bool in = false, out = false;

	for (int i = 0; i < N; i++) {
		in = in || w->in_loss[i] == 0;
		out = out || (w->out_loss[i] == 0 && !w->reversed[i]);
	}
	return in && out;
}

/* What is called lossy is, at the port that it is called at. */
static void check_lossy(const struct rig *r)
{
	const struct world *w = &r->w;

	for (size_t k = 0; k < r->p->tries.n; k++) {
		const struct bringup_try *t = &r->p->tries.v[k];
		enum bringup_fault fault = bringup_judge(r->p, t);

		assert_int_not_equal(fault, FAULT_PATH);
		if (fault == FAULT_INPUT) {
			assert_int_equal(w->in_loss[t->xc.in], 3000);
		} else if (fault == FAULT_OUTPUT) {
			assert_int_equal(w->out_loss[t->xc.out], 3000);
		}
	}
}

static void check_found(const struct rig *r)
{
	const struct bringup_device *dev = &r->p->devices[PANEL];
	const struct world *w = &r->w;

	for (int i = 0; i < N; i++) {
		enum bringup_reach way = w->out_loss[i] == NO_LIGHT_MDB ?
				     REACH_NOTHING : w->reversed[i] ?
				     REACH_OUTPUT : REACH_INPUT;

		assert_int_equal(dev->in[i].seen, w->in_loss[i] ==
				 NO_LIGHT_MDB ? INPUT_DARK : INPUT_LIT);
		assert_int_equal(dev->far[i].reach, way);
		assert_true(way == REACH_NOTHING ||
			    dev->far[i].port == w->to[i]);
	}
}

/* If one pair of fibres is good, everything is found out, with at most two
 * more tries for each that is not. */
static void every_wiring_is_found_out(void **state)
{
	struct rng rng;
	int n = 0;

	(void)state;
	rng_seed(&rng, 7);
	for (int round = 0; round < 300; round++) {
		struct rig r;
		int tries;

		begin(&r);
		wire(&r, &rng);
		tries = run(&r);
		if (has_good_pair(&r.w)) {
			assert_in_range(tries, N, N + 2 * n_bad(&r));
			check_found(&r);
			check_lossy(&r);
			n++;
		}
		end(&r);
	}
	assert_true(n > 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_moves_for_a_pair),
		cmocka_unit_test(a_dark_pair_is_told_apart),
		cmocka_unit_test(worn_ports_are_left_alone),
		cmocka_unit_test(what_nothing_measures_is_unseen),
		cmocka_unit_test(a_pair_that_is_made_comes_first),
		cmocka_unit_test(every_wiring_is_found_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
