/* SPDX-License-Identifier: Apache-2.0 */
/* What can go wrong with etcd in a run; etcd_model.h says what each is. */
#include <stdio.h>

#include "tests/sim/faults/chance.h"
#include "tests/sim/etcd/etcd_model.h"
#include "tests/sim/faults/fault_draws.h"

#define CALLS_WITHIN (20 * SIM_S)	/* one that has not happened by then does not */

static bool has_etcd(const struct scenario *s)
{
	return s->turns == CLUSTER_ETCD;
}

static bool has_members(const struct scenario *s)
{
	return s->turns == CLUSTER_ETCD && s->etcd_members == 3;
}

/* ---- one request ---- */

static int pending;	/* faults of this sort whose time it is */

static void draw_call(const struct scenario *s, struct planned_fault *f)
{
	static const char *const keys[] = { NULL, NULL, "/log/", "/head", "/leader" };
	struct etcd_fault *e = &f->etcd;

	fault_draw_weftd(s, f);
	e->client = f->from;
	e->call = (enum etcd_call)fault_between(f, ETCD_ANY, ETCD_WATCH + 1);
	if (e->call == ETCD_READ || e->call == ETCD_WRITE) {
		e->key = keys[fault_between(f, 0, 5)];
	}
	e->nth = (int)fault_of_any_size(f, 1, 20);
	e->what = (enum etcd_trouble)fault_between(f, ETCD_LATE_ANSWER, ETCD_LOST + 1);
	e->ns = fault_of_any_size(f, 50 * SIM_MS, 3 * s->lease_s * SIM_S);
	f->length_ns = CALLS_WITHIN + e->ns;
	FAULT_SAY(f, "%s of %s%s%s, the %d. from then on: %s, %.3f s", etcd_call_name(e->call),
		  f->from, e->key ? " of a key with " : "", e->key ? e->key : "", e->nth,
		  etcd_trouble_name(e->what), (double)e->ns / SIM_S);
}

static void begin_call(struct planned_fault *f)
{
	pending++;
	etcd_model_fault(&f->etcd);
}

static void end_call(struct planned_fault *f)
{
	(void)f;
	if (--pending == 0) {
		etcd_model_forget_faults();
	}
}

/* ---- members ---- */

static void draw_member(const struct scenario *s, struct planned_fault *f)
{
	f->amount = fault_between(f, 0, s->etcd_members);
	f->from = etcd_model_machine((int)f->amount);
	f->length_ns = fault_of_any_size(f, SIM_S / 10, 30 * SIM_S);
}

static void draw_cut(const struct scenario *s, struct planned_fault *f)
{
	draw_member(s, f);
	FAULT_SAY(f, "%s reaches no other member for %.3f s", f->from,
		  (double)f->length_ns / SIM_S);
}

static void begin_cut(struct planned_fault *f)
{
	etcd_model_cut((int)f->amount, true);
}

static void end_cut(struct planned_fault *f)
{
	etcd_model_cut((int)f->amount, false);
}

static void draw_away(const struct scenario *s, struct planned_fault *f)
{
	draw_member(s, f);
	FAULT_SAY(f, "%s is without power for %.3f s", f->from, (double)f->length_ns / SIM_S);
}

static void begin_away(struct planned_fault *f)
{
	cluster_power_off(f->from);
}

static void end_away(struct planned_fault *f)
{
	cluster_power_on(f->from);
}

static void draw_all_away(const struct scenario *s, struct planned_fault *f)
{
	draw_member(s, f);
	f->amount = s->etcd_members;
	FAULT_SAY(f, "all members of etcd are without power for %.3f s",
		  (double)f->length_ns / SIM_S);
}

static void begin_all_away(struct planned_fault *f)
{
	for (int i = 0; i < f->amount; i++) {
		cluster_power_off(etcd_model_machine(i));
	}
}

static void end_all_away(struct planned_fault *f)
{
	for (int i = 0; i < f->amount; i++) {
		cluster_power_on(etcd_model_machine(i));
	}
}

/* ---- all of it ---- */

static void draw_slow(const struct scenario *s, struct planned_fault *f)
{
	f->amount = fault_of_any_size(f, 5 * SIM_MS, s->lease_s * SIM_S);
	f->length_ns = fault_of_any_size(f, SIM_S, 30 * SIM_S);
	FAULT_SAY(f, "etcd takes %.0f ms more for each request, half of it after it is done, "
		  "for %.1f s", (double)f->amount / SIM_MS, (double)f->length_ns / SIM_S);
}

static void begin_slow(struct planned_fault *f)
{
	etcd_model_slow(f->amount / 2, f->amount / 2);
}

static void end_slow(struct planned_fault *f)
{
	(void)f;
	etcd_model_slow(0, 0);
}

static void draw_leases(const struct scenario *s, struct planned_fault *f)
{
	f->amount = fault_of_any_size(f, SIM_S / 10, 3 * s->lease_s * SIM_S);
	f->length_ns = fault_of_any_size(f, SIM_S, 30 * SIM_S);
	FAULT_SAY(f, "leases of etcd end %.3f s late, for %.1f s", (double)f->amount / SIM_S,
		  (double)f->length_ns / SIM_S);
}

static void begin_leases(struct planned_fault *f)
{
	etcd_model_leases_late(f->amount);
}

static void end_leases(struct planned_fault *f)
{
	(void)f;
	etcd_model_leases_late(0);
}

static void draw_full(const struct scenario *s, struct planned_fault *f)
{
	(void)s;
	f->length_ns = fault_of_any_size(f, SIM_S / 10, 20 * SIM_S);
	FAULT_SAY(f, "etcd is out of space for %.3f s", (double)f->length_ns / SIM_S);
}

static void begin_full(struct planned_fault *f)
{
	(void)f;
	etcd_model_full(true);
}

static void end_full(struct planned_fault *f)
{
	(void)f;
	etcd_model_full(false);
}

static void draw_compact(const struct scenario *s, struct planned_fault *f)
{
	(void)s;
	FAULT_SAY(f, "etcd forgets all but the newest versions of keys");
}

static void begin_compact(struct planned_fault *f)
{
	(void)f;
	etcd_model_compact();
}

const struct fault_kind fault_kinds_etcd[] = {
	{ "etcd-call", has_etcd, draw_call, begin_call, end_call },
	{ "etcd-cut", has_members, draw_cut, begin_cut, end_cut },
	{ "etcd-away", has_etcd, draw_away, begin_away, end_away },
	{ "etcd-all-away", has_etcd, draw_all_away, begin_all_away, end_all_away },
	{ "etcd-slow", has_etcd, draw_slow, begin_slow, end_slow },
	{ "etcd-leases", has_etcd, draw_leases, begin_leases, end_leases },
	{ "etcd-full", has_etcd, draw_full, begin_full, end_full },
	{ "etcd-compact", has_etcd, draw_compact, begin_compact, NULL },
	{ 0 },
};
