/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers that decide over a change beyond what devices say (checklist 7, 8,
 * 11), and traffic that leaves light before it goes (checklist 6): hosts are
 * made up here.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "rig.h"

/* What the hosts say. */
static struct hosts {
	enum apply_level level;		/* of what does not fail */
	int bad_tx;			/* the port whose light fails, -1: none */
	enum apply_level layer;		/* that it fails */
	bool busy;			/* traffic does not stop */
	bool late;			/* the answer waits */
	bool silent;			/* there is none */
	struct apply_question *asked;
	uv_timer_t timer;
	int n_withdrawn;
	struct buf calls;		/* "drain 0>1 1>2;verify 0>1;" */
} hosts;

static void note_call(const char *what, const struct apply_question *q)
{
	buf_printf(&hosts.calls, "%s", what);
	for (int i = 0; i < q->n; i++) {
		buf_printf(&hosts.calls, " %d>%d", q->paths[i].arc.tx_port,
			   q->paths[i].arc.rx_port);
	}
	buf_str(&hosts.calls, ";");
}

static void on_late(uv_timer_t *timer)
{
	struct apply_question *q = timer->data;

	if (q->progress(q, "waiting")) {
		hosts.asked = NULL;
		uv_timer_stop(timer);
		q->done(q);
	}
}

static void verify(struct apply_question *q, void *arg)
{
	struct rig *r = arg;

	note_call("verify", q);
	assert_true(q->lit_ns > 0 && q->lit_ns <= clk_now_ns());
	if (hosts.late || hosts.silent) {
		hosts.asked = q;
	}
	if (hosts.late) {
		uv_timer_init(&r->loop, &hosts.timer);
		hosts.timer.data = q;
		uv_timer_start(&hosts.timer, on_late, 1, 1);
	}
	for (int i = 0; i < q->n; i++) {
		struct apply_path *p = &q->paths[i];

		p->level = hosts.level;
		snprintf(p->why, sizeof(p->why), "n0 is another machine");
		if (p->arc.tx_port == hosts.bad_tx) {
			p->level = APPLY_UNVERIFIED;
			p->failed = hosts.layer;
			snprintf(p->why, sizeof(p->why), "n%d.p0 hears n3.p0 "
				 "instead of n%d.p0", p->arc.rx_port,
				 p->arc.tx_port);
		} else if (p->level) {
			p->up_ns = q->lit_ns + 1000000;
		}
	}
	if (!hosts.late && !hosts.silent) {
		q->done(q);
	}
}

static void drain(struct apply_question *q, void *arg)
{
	struct rig *r = arg;

	note_call("drain", q);
	for (int i = 0; i < q->n && hosts.busy; i++) {
		q->paths[i].failed = APPLY_SETTLED;
		snprintf(q->paths[i].why, sizeof(q->paths[i].why),
			 "n%d.p0 still sends", q->paths[i].arc.tx_port);
	}
	buf_printf(&hosts.calls, "(%d sent)", r->n_commands);
	q->done(q);
}

static void report_verified(const struct apply_question *q, void *arg)
{
	(void)arg;
	note_call("report", q);
}

static void withdraw(void *arg)
{
	(void)arg;
	hosts.n_withdrawn += hosts.asked != NULL;
	hosts.asked = NULL;
}

static int setup(void **state)
{
	memset(&hosts, 0, sizeof(hosts));
	hosts.bad_tx = -1;
	hosts.level = APPLY_NEIGHBOUR;
	hosts.layer = APPLY_NEIGHBOUR;
	return rig_setup(state);
}

static int teardown(void **state)
{
	buf_fini(&hosts.calls);
	return rig_teardown(state);
}

/* n0..n3 on the inputs and outputs 0 to 3 of switch a. */
static void one_switch(struct rig *r, const char *changes)
{
	const struct apply_hosts ask = { verify, drain, report_verified,
					  withdraw, r };

	rig_fabric(r);
	rig_switch(r, "a", "east", "");
	buf_printf(&r->yaml, "changes: { %s }\n", changes);
	rig_use(r);
	apply_set_hosts(r->apply, &ask);
}

static const struct want chain[] = {
	{ "a", 3, { { 0, 1 }, { 1, 2 }, { 2, 3 } }, NULL },
};
static const struct want other[] = {
	{ "a", 3, { { 0, 2 }, { 1, 3 }, { 2, 1 } }, NULL },
};

static int proof_of(struct rig *r, const char *device, int in, int out)
{
	const struct optics_xc xc = { in, out }, *at;
	struct store_light l;
	struct err err = { 0 };
	int proof;

	assert_int_equal(store_intent(r->store, device, &l, &err), 0);
	at = bsearch(&xc, l.xcs, (size_t)l.n_xcs, sizeof(xc), optics_xc_cmp);
	assert_non_null(at);
	proof = l.proofs[at - l.xcs];
	store_light_fini(&l);
	return proof;
}

/* All that receive hear their neighbours: so far the change is proven, and
 * each circuit of it. */
static void test_proven(void **state)
{
	struct rig *r = *state;

	one_switch(r, "verify: neighbour");
	assert_int_equal(rig_go(r, PLAN_SAFE, chain, 1), APPLY_COMMITTED);
	assert_int_equal(r->res.level, APPLY_NEIGHBOUR);
	assert_int_equal(rig_device(r, "a")->level, APPLY_NEIGHBOUR);
	assert_int_equal(proof_of(r, "a", 1, 2), APPLY_NEIGHBOUR);
	assert_says(buf_cstr(&r->events), "verify  3 of 3 lightpaths proven by "
		    "their neighbours\n");
	assert_string_equal(buf_cstr(&hosts.calls),
			    "verify 0>1 1>2 2>3;report 0>1 1>2 2>3;");
	hosts.level = APPLY_ERROR_FREE;
	assert_int_equal(rig_go(r, PLAN_SAFE, other, 1), APPLY_COMMITTED);
	assert_int_equal(r->res.level, APPLY_ERROR_FREE);
	assert_int_equal(proof_of(r, "a", 1, 3), APPLY_ERROR_FREE);
}

/* One of three fails: rolled back, left to be repaired, or left as it is, as
 * the gate says. */
static void test_gate(void **state)
{
	struct rig *r = *state;
	struct store_repair *v;
	int n;

	hosts.bad_tx = 1;
	one_switch(r, "verify: neighbour");
	assert_int_equal(rig_go(r, PLAN_SAFE, chain, 1), APPLY_ROLLED_BACK);
	assert_int_equal(r->rc, WEFT_EVERIFY);
	assert_says(r->err.msg, "a: in 2 -> out 3: n2.p0 hears n3.p0 instead "
		    "of n1.p0");
	assert_int_equal(rig_device(r, "a")->snap.n_xcs, 0);

	one_switch(r, "verify: neighbour, below-gate: stop");
	assert_int_equal(rig_go(r, PLAN_SAFE, chain, 1), APPLY_STUCK);
	assert_says(r->err.msg, "stopped under the gate of 90%: a: in 2");
	assert_int_equal(rig_device(r, "a")->snap.n_xcs, 3);

	one_switch(r, "verify: neighbour, gate: 60%");
	hosts.bad_tx = 0;
	assert_int_equal(rig_go(r, PLAN_SAFE, other, 1), APPLY_COMMITTED);
	assert_int_equal(r->res.level, APPLY_SETTLED);
	assert_int_equal(proof_of(r, "a", 1, 3), APPLY_NEIGHBOUR);
	assert_int_equal(proof_of(r, "a", 0, 2), APPLY_SETTLED);
	assert_int_equal(store_repairs(r->store, &v, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(v[0].xc.in, 0);
	assert_int_equal(v[0].layer, APPLY_NEIGHBOUR);
	assert_says(v[0].why, "n2.p0 hears n3.p0 instead of n0.p0");
	store_repairs_free(v, n);
	assert_int_equal(rig_device(r, "a")->snap.n_xcs, 3);
}

/* A layer above the one that is wanted is told, and decides nothing; what
 * no host can be asked about is never claimed. */
static void test_degrades(void **state)
{
	struct rig *r = *state;

	hosts.bad_tx = 1;
	one_switch(r, "verify: settled");
	assert_int_equal(rig_go(r, PLAN_SAFE, chain, 1), APPLY_COMMITTED);
	assert_says(buf_cstr(&r->events), "verify  n2.p0 hears n3.p0");
	assert_int_equal(r->res.level, APPLY_SETTLED);
	hosts.layer = APPLY_ERROR_FREE;
	one_switch(r, "verify: neighbour");
	assert_int_equal(rig_go(r, PLAN_SAFE, other, 1), APPLY_COMMITTED);
	assert_int_equal(r->res.level, APPLY_SETTLED);
	hosts.bad_tx = -1;
	hosts.level = APPLY_UNVERIFIED;
	assert_int_equal(rig_go(r, PLAN_SAFE, chain, 1), APPLY_COMMITTED);
	assert_int_equal(r->res.level, APPLY_SETTLED);
	assert_says(buf_cstr(&r->events), "0 of 3 lightpaths proven");
	assert_says(buf_cstr(&r->events), "3 cannot be asked: n0 is another "
		    "machine");
}

/* Light over two switches can be asked about once both have made their part,
 * and then what the last stage made is to blame. */
static void test_two_devices(void **state)
{
	static const struct want both[] = {
		{ "a", 2, { { 0, 2 }, { 1, 0 } }, NULL },
		{ "b", 1, { { 2, 0 } }, NULL },
	};
	struct rig *r = *state;
	const struct apply_hosts ask = { verify, drain, report_verified,
					  withdraw, r };

	buf_str(&r->yaml, "weft: 1\nfabric: test\nhosts:\n"
		"  - { name: 'n[0-3]', ports: p0, rate: 100Gbps }\n"
		"fibres:\n"
		"  - { from: 'n[0-1].p0', to: 'a.[1-2]' }\n"
		"  - { from: 'n[2-3].p0', to: 'b.[1-2]' }\n"
		"  - { from: 'a.3', to: 'b.3' }\n"
		"changes: { verify: neighbour }\nswitches:\n");
	rig_switch(r, "a", "east", "");
	rig_switch(r, "b", "west", "");
	rig_use(r);
	apply_set_hosts(r->apply, &ask);
	assert_int_equal(rig_go(r, PLAN_SAFE, both, 2), APPLY_COMMITTED);
	assert_string_equal(buf_cstr(&hosts.calls),
			    "verify 1>0;report 1>0;verify 0>2;report 0>2;");
	assert_int_equal(rig_device(r, "b")->level, APPLY_NEIGHBOUR);
	assert_int_equal(proof_of(r, "a", 0, 2), APPLY_NEIGHBOUR);
	assert_int_equal(rig_device(r, "a")->level, APPLY_NEIGHBOUR);

	assert_int_equal(rig_go(r, PLAN_SAFE, NULL, 0), APPLY_COMMITTED);
	hosts.bad_tx = 0;
	assert_int_equal(rig_go(r, PLAN_SAFE, both, 2), APPLY_ROLLED_BACK);
	assert_says(r->err.msg, "b: in 3 -> out 1: n2.p0 hears n3.p0 instead "
		    "of n0.p0");
	assert_int_equal(rig_device(r, "a")->snap.n_xcs, 0);
	assert_int_equal(rig_device(r, "b")->snap.n_xcs, 0);
}

/* Before the first delete of each stage, of the light that it takes away;
 * traffic that does not stop stops the change, if it is to. */
static void test_drain(void **state)
{
	struct rig *r = *state;
	char *calls;

	one_switch(r, "drain: require");
	rig_go(r, PLAN_SAFE, chain, 1);
	rig_watch(r);
	buf_reset(&hosts.calls);
	r->in_stages = true;
	assert_int_equal(rig_go(r, PLAN_SAFE, other, 1), APPLY_COMMITTED);
	calls = strdup(buf_cstr(&hosts.calls));
	assert_int_equal(strncmp(calls, "drain 0>1;(0 sent)", 18), 0);
	assert_non_null(strstr(calls, "drain 1>2;"));
	assert_non_null(strstr(calls, "drain 2>3;"));
	assert_true(strstr(calls, "drain 2>3;") >
		    strstr(calls, "report 0>2;"));
	free(calls);

	hosts.busy = true;
	r->in_stages = false;
	rig_watch(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, chain, 1), APPLY_REFUSED);
	assert_int_equal(r->n_commands, 0);
	assert_says(r->err.msg, "not drained: n0.p0 still sends");
	assert_says(r->err.hint, "drain: try");
	one_switch(r, "drain: try");
	assert_int_equal(rig_go(r, PLAN_SAFE, chain, 1), APPLY_COMMITTED);
	assert_says(buf_cstr(&r->events), "drain  goes all the same: n0.p0 "
		    "still sends");
	buf_reset(&hosts.calls);
	one_switch(r, "drain: off");
	assert_int_equal(rig_go(r, PLAN_SAFE, other, 1), APPLY_COMMITTED);
	assert_null(strstr(buf_cstr(&hosts.calls), "drain"));
}

/* What a stage has made is drained before it is taken back, over what it leaves; what
 * does not fall silent stops nothing. */
static void test_undo_drains(void **state)
{
	struct rig *r = *state;
	const char *last, *first;

	one_switch(r, "drain: require, verify: neighbour");
	rig_go(r, PLAN_SAFE, chain, 1);
	rig_watch(r);
	buf_reset(&hosts.calls);
	r->in_stages = true;
	hosts.bad_tx = 1;
	assert_int_equal(rig_go(r, PLAN_SAFE, other, 1), APPLY_ROLLED_BACK);
	last = strstr(buf_cstr(&hosts.calls), "verify 1>3 2>1;drain 1>3 2>1;(");
	assert_non_null(last);
	first = strstr(last, ")drain 0>2;(");
	assert_non_null(first);
	/* The last stage was taken back before the first one was drained. */
	assert_true(atoi(first + strlen(")drain 0>2;(")) >
		    atoi(last + strlen("verify 1>3 2>1;drain 1>3 2>1;(")));
	hosts.busy = true;
	one_switch(r, "drain: try, verify: neighbour");
	buf_reset(&r->events);
	assert_int_equal(rig_go(r, PLAN_SAFE, other, 1), APPLY_ROLLED_BACK);
	assert_says(buf_cstr(&r->events), "taken back all the same: n1.p0 still sends");
}

/* How long light was away, by those who receive it or else by commands
 * (checklist 26). */
static void test_outage(void **state)
{
	struct rig *r = *state;
	struct store_change *h;
	int n;

	one_switch(r, "");
	rig_go(r, PLAN_SAFE, chain, 1);
	assert_int_equal(store_history(r->store, 0, 1, &h, &n, NULL), 0);
	assert_true(h[0].down_ns >= 1000000);
	assert_int_equal(h[0].downtime_source, APPLY_NEIGHBOUR);
	store_history_free(h, n);
	hosts.level = APPLY_UNVERIFIED;
	rig_go(r, PLAN_SAFE, other, 1);
	assert_int_equal(store_history(r->store, 0, 1, &h, &n, NULL), 0);
	assert_true(h[0].down_ns > 0);
	assert_int_equal(h[0].downtime_source, APPLY_ACKED);
	store_history_free(h, n);
}

/* The last nine times of each are kept over restarts; one slow start moves what
 * is waited for, and not what is expected (checklist 26). */
static void test_learned(void **state)
{
	struct rig *r = *state;
	struct apply_timing t;
	struct plan_base base;

	one_switch(r, "");
	assert_false(apply_learned(r->apply, STORE_SWITCHING, "a", &t));
	rig_go(r, PLAN_SAFE, chain, 1);
	assert_true(apply_learned(r->apply, STORE_SWITCHING, "a", &t));
	assert_int_equal(t.n, 1);
	assert_true(t.median_ns > 0);
	for (int i = 0; i < 12; i++) {
		apply_learn(r->apply, STORE_REACTIVATION, "n1.p0",
			    i == 5 ? 5000 : 100 + i);
		apply_learn(r->apply, STORE_REACTIVATION, "n0.p0", 7);
	}
	rig_read(r);
	rig_down(r);
	rig_up(r);
	one_switch(r, "");
	assert_true(apply_learned(r->apply, STORE_REACTIVATION, "n1.p0", &t));
	assert_int_equal(t.n, STORE_TIMINGS_MAX);
	assert_int_equal(t.median_ns, 108);
	assert_int_equal(t.max_ns, 5000);
	apply_plan_base(r->apply, apply_fabric(r->apply), PLAN_SAFE, &base);
	assert_int_equal(base.times.port_ns[0], 7);
	assert_int_equal(base.times.port_ns[1], 108);
	assert_int_equal(base.times.port_ns[2], 0);
	assert_true(base.times.device_ns[0] > 0);
}

/* Who waits for hosts is stopped on request, and forgotten at the end. */
static void test_stopped(void **state)
{
	struct rig *r = *state;
	struct model_fabric *f;

	hosts.late = true;
	one_switch(r, "verify: neighbour");
	f = rig_parse(r);
	rig_start(r, rig_plan(r, f, PLAN_SAFE, chain, 1), f);
	while (!strstr(buf_cstr(&r->events), "waiting")) {
		uv_run(&r->loop, UV_RUN_ONCE);
	}
	apply_cancel(r->apply);
	rig_run(r);
	assert_int_equal(r->res.verdict, APPLY_ROLLED_BACK);
	assert_int_equal(r->rc, WEFT_ECANCELED);
	uv_close((uv_handle_t *)&hosts.timer, NULL);

	hosts.late = false;
	hosts.silent = true;
	f = rig_parse(r);
	rig_start(r, rig_plan(r, f, PLAN_SAFE, chain, 1), f);
	while (!hosts.asked) {
		uv_run(&r->loop, UV_RUN_ONCE);
	}
	rig_down(r);
	assert_int_equal(hosts.n_withdrawn, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_proven), T(test_gate), T(test_degrades),
		T(test_two_devices), T(test_drain), T(test_undo_drains), T(test_outage),
		T(test_learned), T(test_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
