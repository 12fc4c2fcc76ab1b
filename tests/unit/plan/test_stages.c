/* SPDX-License-Identifier: Apache-2.0 */
/* Stages that keep a floor of capacity (line 10 of the list in
 * docs/drivers.md): every plan is replayed stage by stage, and what each host
 * and pair has left is counted from the ports alone, as is whose light each
 * stage takes away (checklist 6). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/plan.h"
#include "lib/base/number/rng.h"

#define HEAD "weft: 1\nfabric: t\n"
#define HOSTS                                                           \
	"hosts:\n"                                                      \
	"  - { name: 'h[0-7]', ports: 'p[0-3]', rate: 100Gbps }\n"
#define ONE                                                             \
	"switches:\n"                                                   \
	"  - { name: ocs0, size: 32x32, driver: sim }\n"                \
	"fibres:\n"                                                     \
	"  - { from: 'h[0-7].p[0-3]', to: 'ocs0.[1-32]' }\n"
#define TWO                                                             \
	"switches:\n"                                                   \
	"  - { name: 'ocs[0-1]', size: 16x16, driver: sim }\n"          \
	"fibres:\n"                                                     \
	"  - { from: 'h[0-7].p[0-1]', to: 'ocs0.[1-16]' }\n"            \
	"  - { from: 'h[0-7].p[2-3]', to: 'ocs1.[1-16]' }\n"
#define DUPLEX                                                          \
	"switches:\n"                                                   \
	"  - { name: ocs0, ports: 32, any-to-any: true, driver: sim }\n" \
	"fibres:\n"                                                     \
	"  - { from: 'h[0-7].p[0-3]', to: 'ocs0.[1-32]' }\n"
#define TRUNKS                                                          \
	"switches:\n"                                                   \
	"  - { name: 'ocs[0-1]', size: 32x32, driver: sim, domain: d }\n" \
	"fibres:\n"                                                     \
	"  - { from: 'h[0-3].p[0-3]', to: 'ocs0.[1-16]' }\n"            \
	"  - { from: 'h[4-7].p[0-3]', to: 'ocs1.[1-16]' }\n"            \
	"  - { from: 'ocs0.[17-32]', to: 'ocs1.[17-32]' }\n"

/* Three switches with two wavelengths on each fibre, from s2 to s1 one way only:
 * what goes from s0 to s2 has no other way, what goes from s0 to s1 has. */
#define TRIANGLE                                                        \
	"hosts:\n"                                                      \
	"  - { name: 'a[0-1],b[0-1]', ports: 'p[0-1]', rate: 100Gbps, " \
	"channels: 0-1 }\n"                                             \
	"switches:\n"                                                   \
	"  - { name: 's[0-2]', size: 8x8, driver: sim }\n"              \
	"fibres:\n"                                                     \
	"  - { from: 'a0.p[0-1]', to: 's0.[1-2]' }\n"                   \
	"  - { from: 'b0.p[0-1]', to: 's0.[3-4]' }\n"                   \
	"  - { from: 'a1.p[0-1]', to: 's1.[1-2]' }\n"                   \
	"  - { from: 'b1.p[0-1]', to: 's2.[1-2]' }\n"                   \
	"  - { from: 's0.[5-6]', to: 's1.[5-6]', channels: 0-1 }\n"     \
	"  - { from: 's0.[7-8]', to: 's2.[7-8]', channels: 0-1 }\n"     \
	"  - { from: 's2.out[5-6]', to: 's1.in[7-8]', channels: 0-1 }\n"
#define PAIR(name)                                                      \
	"  - { name: " name ", nodes: '" name "[0-1]', collective: "     \
	"allgather, size: 1MiB, topology: 'UniRing(2,2)' }\n"

static struct model_fabric *parse(const char *text)
{
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;
	char line[1024];

	if (model_parse("t.yaml", text, strlen(text), &f, &errs)) {
		print_error("%s\n", err_str(&errs.v[0], line, sizeof(line)));
		fail();
	}
	return f;
}

static struct model_fabric *fabric_of(const char *devices, const char *topology,
				      const char *changes)
{
	char text[4096];

	snprintf(text, sizeof(text), "%s%s%sjobs:\n  - { name: j, nodes: all, "
		 "collective: allreduce, size: 1MiB, topology: '%s' }\n%s",
		 HEAD, HOSTS, devices, topology, changes);
	return parse(text);
}

static struct plan *plan_of(const struct model_fabric *f,
			    const struct plan_base *base)
{
	struct plan *p = NULL;
	struct err err = { 0 };
	char line[1024];

	if (plan_make(f, base, &p, &err)) {
		print_error("%s\n", err_str(&err, line, sizeof(line)));
		fail();
	}
	return p;
}

static struct plan_light *light_after(const struct plan *p)
{
	struct plan_light *l = calloc(p->n_devices + 1, sizeof(*l));

	for (int i = 0; i < p->n_devices; i++) {
		const struct plan_device *d = &p->devices[i];

		l[d->device] = (struct plan_light){
			.known = true, .n_xcs = d->n_want, .xcs = d->want };
	}
	return l;
}

/* ---- an independent replay ----------------------------------------------- */

#define MAX_HOSTS 8
#define MAX_DEVICES 3
#define MAX_PORTS 32

/* Where light that enters a device leaves it, -1: nowhere. */
struct maps {
	int to[MAX_DEVICES][MAX_PORTS];
};

struct capacity {
	int tx[MAX_HOSTS], rx[MAX_HOSTS], pair[MAX_HOSTS][MAX_HOSTS];
};

static void set_xc(const struct model_fabric *f, struct maps *m, int device,
		   struct optics_xc xc, bool present)
{
	assert_int_equal(m->to[device][xc.in], present ? -1 : xc.out);
	if (present) {
		for (int i = 0; i < MAX_PORTS; i++) {
			assert_int_not_equal(m->to[device][i], xc.out);
		}
	}
	m->to[device][xc.in] = present ? xc.out : -1;
	if (f->devices[device].any_to_any) {
		m->to[device][xc.out] = present ? xc.in : -1;
	}
}

/* The host port that a port's light reaches, or -1. */
static int reached(const struct model_fabric *f, const struct maps *m, int p)
{
	int d = f->ports[p].tx_device, in = f->ports[p].tx_port;

	for (int hop = 0; hop < 4; hop++) {
		int out = m->to[d][in];

		if (out < 0 || f->devices[d].out_port[out] >= 0) {
			return out < 0 ? -1 : f->devices[d].out_port[out];
		}
		for (int t = 0; t < f->n_trunks; t++) {
			if (f->trunks[t].from_device == d &&
			    f->trunks[t].from_port == out) {
				in = f->trunks[t].to_port;
				d = f->trunks[t].to_device;
				break;
			}
		}
	}
	return -1;
}

/* Counts lightpaths of 100 Gbit/s that are wanted before or in the end: what
 * old and new circuits of two switches happen to join is none. */
static struct capacity count(const struct model_fabric *f,
			     const struct maps *m, const struct maps *from,
			     const struct maps *to)
{
	struct capacity c;

	memset(&c, 0, sizeof(c));
	for (int p = 0; p < f->n_ports; p++) {
		int rx = reached(f, m, p);

		if (rx >= 0 && (rx == reached(f, from, p) ||
				rx == reached(f, to, p))) {
			c.tx[f->ports[p].host]++;
			c.rx[f->ports[rx].host]++;
			c.pair[f->ports[p].host][f->ports[rx].host]++;
		}
	}
	return c;
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

static void check_floor(int now, int before, int after, int64_t keep_ppm)
{
	assert_true((int64_t)now * MODEL_PPM >=
		    least(before, after) * keep_ppm);
}

static void check_floors(const struct model_fabric *f,
			 const struct capacity *now,
			 const struct capacity *before,
			 const struct capacity *after)
{
	for (int h = 0; h < f->n_hosts; h++) {
		check_floor(now->tx[h], before->tx[h], after->tx[h],
			    f->changes.keep_ppm);
		check_floor(now->rx[h], before->rx[h], after->rx[h],
			    f->changes.keep_ppm);
		for (int k = 0; k < f->n_hosts; k++) {
			check_floor(now->pair[h][k], before->pair[h][k],
				    after->pair[h][k],
				    f->changes.keep_pair_ppm);
		}
	}
}

static int do_steps(const struct plan *p, int stage, bool add, struct maps *m)
{
	int n = 0;

	for (int i = 0; i < p->n_devices; i++) {
		const struct plan_device *d = &p->devices[i];
		const int *at = add ? d->add_stage : d->del_stage;

		for (int k = 0; k < (add ? d->n_add : d->n_del); k++) {
			if (at[k] == stage) {
				assert_string_equal(
					p->stages[stage].domain,
					p->fabric->devices[d->device].domain);
				set_xc(p->fabric, m, d->device,
				       add ? d->add[k] : d->del[k], add);
				n++;
			}
		}
	}
	return n;
}

static void fill(const struct model_fabric *f, const struct plan_light *l,
		 struct maps *m)
{
	memset(m, -1, sizeof(*m));
	for (int d = 0; l && d < f->n_devices; d++) {
		for (int i = 0; i < l[d].n_xcs; i++) {
			set_xc(f, m, d, l[d].xcs[i], true);
		}
	}
}

/* These arcs are the light of `has` that `lacks` (NULL: nothing) has not. */
static void check_arcs(const struct model_fabric *f, const struct maps *has,
		       const struct maps *lacks, struct plan_arc *arcs, int n)
{
	int k = 0;

	for (int p = 0; p < f->n_ports; p++) {
		int rx = reached(f, has, p);

		if (rx >= 0 && !(lacks && reached(f, lacks, p) == rx)) {
			assert_true(k < n);
			assert_int_equal(arcs[k].tx_port, p);
			assert_int_equal(arcs[k++].rx_port, rx);
		}
	}
	assert_int_equal(k, n);
	free(arcs);
}

/* What a stage takes away and brings, against what the replay has seen. */
static void check_light(const struct plan *p, int stage,
			const struct maps *before, const struct maps *deleted,
			const struct maps *made)
{
	const struct model_fabric *f = p->fabric;
	struct plan_arc *arcs;
	int n;

	plan_arcs_after(p, stage - 1, &arcs, &n);
	check_arcs(f, before, NULL, arcs, n);
	plan_stage_removes(p, stage, &arcs, &n);
	check_arcs(f, before, deleted, arcs, n);
	plan_stage_adds(p, stage, &arcs, &n);
	check_arcs(f, made, deleted, arcs, n);
	plan_arcs_after(p, stage, &arcs, &n);
	check_arcs(f, made, NULL, arcs, n);
}

/* Every circuit once, in no stage less than the floor, in the end what was
 * wanted; each domain's stages follow each other. */
static void replay(const struct plan *p, const struct plan_light *from)
{
	const struct model_fabric *f = p->fabric;
	struct plan_light *to = light_after(p);
	struct maps begin, end, m, earlier, deleted;
	struct capacity before, after, now;
	int n = 0;

	fill(f, to, &end);
	fill(f, from, &begin);
	m = begin;
	before = count(f, &begin, &begin, &end);
	after = count(f, &end, &begin, &end);
	for (int s = 0; s < p->n_stages; s++) {
		const struct plan_stage *st = &p->stages[s];
		int n_del, n_add;

		earlier = m;
		n_del = do_steps(p, s, false, &m);
		deleted = m;
		now = count(f, &m, &begin, &end);
		check_floors(f, &now, &before, &after);
		if (st->host >= 0) {
			const int *at = st->is_rx ? now.rx : now.tx;

			assert_int_equal(st->bps / 100000000000,
					 at[st->host]);
		}
		n_add = do_steps(p, s, true, &m);
		check_light(p, s, &earlier, &deleted, &m);
		assert_int_equal(n_del, st->n_del);
		assert_int_equal(n_add, st->n_add);
		assert_true(n_del + n_add > 0);
		for (int k = s + 2; k < p->n_stages; k++) {
			assert_true(strcmp(p->stages[s + 1].domain,
					   st->domain) == 0 ||
				    strcmp(p->stages[k].domain,
					   st->domain) != 0);
		}
		n += n_del + n_add;
	}
	assert_int_equal(n, p->n_add + p->n_del);
	assert_memory_equal(&m, &end, sizeof(m));
	free(to);
}

/* ---- tests --------------------------------------------------------------- */

/* Plans from one topology to the next, replays, and returns the stages; -1:
 * refused. */
static int change(const char *devices, const char *from, const char *to,
		  const char *changes)
{
	struct model_fabric *f = fabric_of(devices, from, "");
	struct model_fabric *g = fabric_of(devices, to, changes);
	struct plan *p = plan_of(f, NULL), *q = NULL;
	struct plan_light *light = light_after(p);
	struct plan_base base = { .intent = light, .observed = light };
	struct err err = { 0 };
	int n = -1;

	replay(p, NULL);
	if (plan_make(g, &base, &q, &err) == 0) {
		replay(q, light);
		n = q->n_stages;
	} else {
		assert_int_equal(err.code, WEFT_EINFEASIBLE);
		assert_non_null(strstr(err.msg, "floor cannot be kept"));
	}
	plan_free(q);
	plan_free(p);
	model_free(f);
	model_free(g);
	free(light);
	return n;
}

static void without_a_floor_a_domain_is_a_stage(void **state)
{
	(void)state;
	assert_int_equal(change(ONE, "C(8,{1,2})", "C(8,{1,3})", ""), 1);
	assert_int_equal(change(TWO, "C(8,{1,2})", "K(4,4)", ""), 2);
	assert_int_equal(change(TRUNKS, "C(8,{1,2})", "C(8,{1,3})", ""), 1);
	assert_int_equal(change(DUPLEX, "C(8,{1,2})", "C(8,{1,2})", ""), 0);
}

static void a_floor_cuts_a_domain_into_stages(void **state)
{
	static const char *const changes[] = {
		"changes: { keep: 25% }\n", "changes: { keep: 50% }\n",
		"changes: { keep: 75% }\n",
	};
	int fewest = 1;

	(void)state;
	for (int i = 0; i < 3; i++) {
		int n = change(ONE, "C(8,{1,2})", "C(8,{2,3})", changes[i]);

		assert_true(n >= fewest);
		fewest = n;
	}
	assert_true(fewest > 2);
	assert_true(change(TWO, "C(8,{1,2})", "C(8,{2,3})",
			   "changes: { keep: 50% }\n") >= 2);
}

static void a_floor_that_cannot_be_kept_is_refused(void **state)
{
	struct model_fabric *f = fabric_of(ONE, "C(8,{1,2})", "");
	struct model_fabric *g = fabric_of(ONE, "C(8,{2,3})",
					   "changes: { keep: 76% }\n");
	struct plan *p = plan_of(f, NULL), *q = NULL;
	struct plan_light *light = light_after(p);
	struct plan_base base = { .intent = light, .observed = light };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(plan_make(g, &base, &q, &err), WEFT_EINFEASIBLE);
	assert_null(q);
	assert_non_null(strstr(err.msg, "domain ocs0: keep: what h"));
	assert_non_null(strstr(err.msg, "300Gbps of 400Gbps, at least 304Gbps "
			       "must stay"));
	assert_int_equal(err.line, 11);
	base.no_floor = true;
	q = plan_of(g, &base);
	assert_int_equal(q->n_stages, 1);
	plan_free(q);
	plan_free(p);
	model_free(f);
	model_free(g);
	free(light);
}

static void a_pair_has_a_floor_of_its_own(void **state)
{
	/* Neighbours at distance 1 stay connected; their circuits do. */
	(void)state;
	assert_true(change(ONE, "C(8,{1,2})", "C(8,{1,3})",
			   "changes: { keep-pair: 100% }\n") == 1);
	assert_true(change(ONE, "C(8,{1,2})", "C(8,{1,3})",
			   "changes: { keep: 75%, keep-pair: 100% }\n") > 1);
}

static void the_floor_holds_for_any_change(void **state)
{
	static const char *const devices[] = { ONE, TWO, DUPLEX, TRUNKS };
	static const char *const topologies[] = {
		"C(8,{1,2})", "C(8,{1,3})", "C(8,{2,3})", "K(4,4)",
		"Torus(2,4)", "Hypercube(3)", "Ring(8)", "UniRing(1,8)",
		"UniRing(2,8)",
	};
	struct rng rng;
	int n_cut = 0, n_refused = 0, n_topologies =
		(int)(sizeof(topologies) / sizeof(*topologies));

	(void)state;
	rng_seed(&rng, 7);
	for (int i = 0; i < 150; i++) {
		int d = (int)rng_below(&rng, 4);
		int a = (int)rng_below(&rng, n_topologies - (d == 2 ? 2 : 0));
		int b = (int)rng_below(&rng, n_topologies - (d == 2 ? 2 : 0));
		char text[80];
		int n;

		snprintf(text, sizeof(text),
			 "changes: { keep: %d%%, keep-pair: %d%% }\n",
			 (int)rng_below(&rng, 90),
			 (int)rng_below(&rng, 2) * 50);
		n = change(devices[d], topologies[a], topologies[b], text);
		n_cut += n > 2;
		n_refused += n < 0;
	}
	assert_true(n_cut > 20);
	assert_true(n_refused > 5 && n_refused < 75);
}

/* Circuits of others that are taken over were no capacity of weft's. */
static void what_others_had_needs_no_floor(void **state)
{
	struct model_fabric *f = fabric_of(ONE, "C(8,{1,2})", "");
	struct model_fabric *g = fabric_of(ONE, "C(8,{2,3})",
					   "changes: { keep: 100% }\n");
	struct plan *p = plan_of(f, NULL), *q;
	struct plan_light *light = light_after(p), none = { .known = true };
	struct plan_base base = { .mode = PLAN_UPDATE, .intent = &none,
				  .observed = light };

	(void)state;
	q = plan_of(g, &base);
	assert_true(q->devices[0].n_displaced > 0);
	assert_int_equal(q->n_stages, 1);
	plan_free(p);
	plan_free(q);
	model_free(f);
	model_free(g);
	free(light);
}

/* Job a's second lightpath was lit through s2 while the fibre to s1 lacked a
 * wavelength. Job b needs both from s0 to s2: that lightpath moves and no other, and
 * its hosts keep half of what they have. More cannot be kept, as it ends at the same
 * ports. */
static void light_that_moves_for_another_job_keeps_the_floor(void **state)
{
	struct model_fabric *f = parse(HEAD TRIANGLE "jobs:\n" PAIR("a")
				       "dead: [ { port: 's0.out[6]' } ]\n");
	struct model_fabric *g = parse(HEAD TRIANGLE "jobs:\n" PAIR("b") PAIR("a")
				       "changes: { keep: 50%, keep-pair: 50% }\n");
	struct model_fabric *h = parse(HEAD TRIANGLE "jobs:\n" PAIR("b") PAIR("a")
				       "changes: { keep: 60% }\n");
	struct plan *p = plan_of(f, NULL), *q, *none = NULL;
	struct plan_light *light = light_after(p);
	struct plan_base base = { .intent = light, .observed = light };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(p->jobs[0].n_circuits, 4 * 2 + 1);
	q = plan_of(g, &base);
	replay(q, light);
	assert_int_equal(q->jobs[1].n_circuits, 4 * 2);
	assert_int_equal(q->jobs[1].n_moves, 2);
	assert_int_equal(plan_make(h, &base, &none, &err), WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "must stay"));
	base.only = (const char *const[]){ "b", NULL };
	assert_int_equal(plan_make(g, &base, &none, &err), WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "and the 1 fibre there carries 1"));
	assert_non_null(strstr(err.hint, "a plan of all jobs may move it"));
	plan_free(p);
	plan_free(q);
	model_free(f);
	model_free(g);
	model_free(h);
	free(light);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_floor_a_domain_is_a_stage),
		cmocka_unit_test(a_floor_cuts_a_domain_into_stages),
		cmocka_unit_test(a_floor_that_cannot_be_kept_is_refused),
		cmocka_unit_test(a_pair_has_a_floor_of_its_own),
		cmocka_unit_test(the_floor_holds_for_any_change),
		cmocka_unit_test(what_others_had_needs_no_floor),
		cmocka_unit_test(light_that_moves_for_another_job_keeps_the_floor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
