/* SPDX-License-Identifier: Apache-2.0 */
/* plan: the digraph of a job's ranks, through ports to what is inside hosts, and
 * plans of such jobs. */
#include "tests/unit/plan/fixture.h"
#include "tests/unit/world.h"

/* Two servers with four cards, and a host that is a rank; a card has 200 Gbps, a
 * port of the host 100 Gbps. */
#define POD                                                              \
	"weft: 1\n"                                                      \
	"fabric: pod\n"                                                  \
	"hosts:\n"                                                       \
	"  - { name: 'd[0-1]', ports: 'n[0-3]', rate: 200Gbps, inside: dgx-a100 }\n" \
	"  - { name: h, ports: 'p[0-3]', rate: 100Gbps }\n"              \
	"  - { name: s, ports: 'p[0-3]', rate: 100Gbps, inside: 'Cap(Star(3),50)', " \
	"port-at: [0, 1, 2, 0] }\n"                                       \
	"switches:\n"                                                    \
	"  - { name: ocs0, size: 16x16, driver: sim }\n"                 \
	"fibres:\n"                                                      \
	"  - { from: 'd[0-1].n[0-3]', to: 'ocs0.[1-8]' }\n"              \
	"  - { from: 'h.p[0-3]', to: 'ocs0.[9-12]' }\n"                  \
	"  - { from: 's.p[0-3]', to: 'ocs0.[13-16]' }\n"                 \
	"jobs:\n"

#define JOB(nodes, topology)                                             \
	POD "  - { name: j, nodes: [" nodes "], collective: allreduce, size: 1MiB, " \
	"topology: '" topology "' }\n"

static struct topo *digraph(const char *text, int64_t unit_bps)
{
	struct model_fabric *f = fabric_of(text);
	struct topo *t;
	int64_t unit;
	struct err err;

	if (plan_job_topo(f, 0, &t, &unit, &err)) {
		fail_msg("%s", err.msg);
	}
	assert_int_equal(unit, unit_bps);
	assert_int_equal(topo_check_order(t, NULL), 0);
	model_free(f);
	return t;
}

static int64_t cap_between(const struct topo *t, int u, int v)
{
	int a = topo_find_arc(t, u, v);

	return a < 0 ? 0 : topo_arc(t, a)->cap;
}

/* Two servers: 16 GPUs, 2 memories, and the NVSwitch, 4 PCIe switches and 8 cards of
 * each. Cards have number 18 + 13 * server + 5 + card. */
static void two_servers(void **state)
{
	/* 25, 32 and 300 GB/s, and 200 Gbps: a unit of 8 Gbps. */
	struct topo *t = digraph(JOB("d0, d1", "UniRing(4,2)"), 8000000000);
	int crossing = 0, used[2][4] = { { 0 } };

	(void)state;
	assert_int_equal(topo_ranks(t), 16);
	assert_int_equal(topo_holders(t), 18);
	assert_int_equal(topo_n(t), 18 + 2 * 13);
	assert_int_equal(topo_m(t), 2 * 56 + 8);
	assert_int_equal(topo_node_kind(t, 17), TOPO_MEMORY);
	/* GPU 9 is the second of server 1: its NVSwitch and PCIe switch. */
	assert_int_equal(cap_between(t, 9, 18 + 13), 300);
	assert_int_equal(cap_between(t, 9, 18 + 13 + 1), 32);
	assert_int_equal(cap_between(t, 9, 18), 0);
	assert_int_equal(cap_between(t, 17, 18 + 13 + 1), 32);
	assert_int_equal(cap_between(t, 18 + 13 + 1, 18 + 13 + 5), 25);
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		if (arc->src >= 18 && arc->dst >= 18 &&
		    (arc->src - 18) / 13 != (arc->dst - 18) / 13) {
			int card = (arc->src - 18) % 13 - 5;

			assert_in_range(card, 0, 3);
			assert_in_range((arc->dst - 18) % 13, 5, 8);
			assert_int_equal(arc->cap, 25);
			used[(arc->src - 18) / 13][card]++;
			crossing++;
		}
	}
	assert_int_equal(crossing, 8);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(used[i / 4][i % 4], 1);
	}
	topo_free(t);
}

/* A host without inside is its one node, ports of an expression are at terminals
 * in turn. */
static void mixed_hosts(void **state)
{
	struct topo *t = digraph(JOB("h, s", "UniRing(4,2)"), 100000000000);
	int64_t sent[4] = { 0 }, received[4] = { 0 };

	(void)state;
	/* 50 GB/s are 400 Gbps: capacity 4. */
	assert_int_equal(topo_ranks(t), 4);
	assert_int_equal(topo_n(t), 5);
	assert_int_equal(cap_between(t, 1, 4), 4);
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		if (arc->src < 4 && arc->dst < 4) {
			assert_int_equal(arc->cap, 1);
			assert_true((arc->src == 0) != (arc->dst == 0));
			sent[arc->src]++;
			received[arc->dst]++;
		}
	}
	assert_int_equal(sent[0], 4);
	assert_int_equal(received[0], 4);
	/* Four ports at three terminals. */
	assert_int_equal(sent[1], 2);
	assert_int_equal(received[1], 2);
	assert_int_equal(sent[2], 1);
	assert_int_equal(sent[3], 1);
	topo_free(t);
}

/* Hosts of one port each below leaf switches, which have the circuits. */
#define LEAVES(collective)                                               \
	"weft: 1\n"                                                      \
	"fabric: leaves\n"                                               \
	"hosts:\n"                                                       \
	"  - { name: 'tor[0-3]', ports: 'u[0-3]', rate: 400Gbps, "       \
	"inside: 'Cap(Star(8),50)', port-at: 8 }\n"                      \
	"switches:\n"                                                    \
	"  - { name: ocs, size: 16x16, driver: sim }\n"                  \
	"fibres:\n"                                                      \
	"  - { from: 'tor[0-3].u[0-3]', to: 'ocs.[1-16]' }\n"            \
	"jobs:\n"                                                        \
	"  - { name: j, nodes: 'tor[0-3]', collective: " collective ", "  \
	"size: 64MiB, topology: 'UniRing(4,4)' }\n"

/* All ranks below a leaf switch send over its circuits: in turn only half of them would. Of an
 * all-to-all their 8 times 8 parts for each leaf cross one, two and three circuits of the ring: the
 * 4 x 50 GB/s out of a leaf carry 8 x 8 x (1 + 2 + 3) / 32 M. */
static void leaf_switches(void **state)
{
	struct model_fabric *f = fabric_of(LEAVES("all-to-all"));
	struct plan *p = plan_of(f, NULL);
	const struct plan_job *j = &p->jobs[0];
	int64_t floor_ns = (int64_t)(12.0 * (64 << 20) / 200.0);

	(void)state;
	assert_int_equal(coll_ranks(j->sched), 32);
	assert_int_equal(j->n_circuits, 16);
	for (int c = 0; c < j->n_circuits; c++) {
		const struct topo *t = coll_physical(j->sched);
		const struct topo_arc *arc = topo_arc(t, j->circuits[c].arc);

		assert_in_range(arc->src, 32, 35);
		assert_in_range(arc->dst, 32, 35);
	}
	/* By the hops over circuits alone, which the links to the ranks do not relieve. */
	assert_true(j->bound_ns >= floor_ns);
	assert_true(j->time_ns < j->bound_ns + j->bound_ns / 10);
	plan_free(p);
	model_free(f);
}

/* Of hosts that are ranks it is the job's topology, in bits a second. */
static void ranks_only(void **state)
{
	struct topo *t = digraph(HOSTS_1 "jobs:\n"
				 "  - { name: j, nodes: 'h[0-7]', collective: allreduce, "
				 "size: 1MiB, topology: 'Torus(2,4)' }\n", 100000000000);

	(void)state;
	assert_true(topo_is_plain(t));
	assert_int_equal(topo_n(t), 8);
	assert_int_equal(topo_regular_degree(t), 3);
	assert_int_equal(topo_diameter(t), 3);
	topo_free(t);
}

static void assert_refused(const char *text, int code, const char *says)
{
	struct model_fabric *f = fabric_of(text);
	struct topo *t;
	int64_t unit;
	struct err err;

	assert_int_equal(plan_job_topo(f, 0, &t, &unit, &err), code);
	if (!strstr(err.msg, says)) {
		fail_msg("%s", err.msg);
	}
	model_free(f);
}

static void refused(void **state)
{
	(void)state;
	assert_refused(RING RING_JOB, WEFT_EUNSUPPORTED, "job g: it is on a ring");
	assert_refused(JOB("d0, d1", "Multi(Multi(Multi(K(2),2),2),2)"), WEFT_EINFEASIBLE,
		       "job j: ");
}

/* ---- plans ---- */

#define RANKS_JOB(collective)                                            \
	POD "  - { name: j, nodes: ['d[0-1]', h, s], collective: " collective ", " \
	"size: 1MiB, topology: 'K(4)', alpha: 10us }\n"

/* 16 GPUs, the host, and three ranks of the other server: 20 ranks, whose schedule
 * stands its replay through cards and switches, on arcs that circuits serve. */
static void check_schedule(const struct plan_job *j, const struct coll_sched *s, int lightpaths)
{
	const struct topo *t = coll_physical(s);
	struct coll_report rep;
	int served = 0;

	assert_true(coll_is_embedded(s));
	assert_int_equal(coll_ranks(s), 20);
	assert_int_equal(topo_ranks(t), 20);
	coll_report_init(&rep);
	assert_int_equal(coll_verify(s, &rep, NULL), 0);
	coll_report_fini(&rep);
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		bool from_h = arc->src == 16, to_h = arc->dst == 16;

		/* Host h has nothing but circuits. */
		served += from_h + to_h;
	}
	assert_int_equal(served, lightpaths);
	assert_int_equal(j->n_circuits, 12);
}

static void plans_have_the_ranks(void **state)
{
	static const char *const texts[] = {
		RANKS_JOB("allgather"), RANKS_JOB("reduce-scatter"), RANKS_JOB("allreduce"),
		RANKS_JOB("all-to-all"),
	};

	(void)state;
	for (size_t i = 0; i < ALL_OR_SOME(sizeof(texts) / sizeof(texts[0]), 1); i++) {
		struct model_fabric *f = fabric_of(texts[i]);
		struct plan *p = plan_of(f, NULL);
		const struct plan_job *j = &p->jobs[0];

		check_schedule(j, j->sched, 6);
		assert_true(j->time_ns >= j->bound_ns && j->bound_ns > 0);
		assert_string_equal(j->topology, "K(4)");
		for (int c = 0; c < j->n_circuits; c++) {
			const struct plan_circuit *x = &j->circuits[c];
			const struct topo_arc *arc = topo_arc(coll_physical(j->sched), x->arc);

			/* Ports of h are at rank 16; others' arcs do not touch it. */
			assert_int_equal(f->ports[x->tx_port].host == 2, arc->src == 16);
			assert_int_equal(f->ports[x->rx_port].host == 2, arc->dst == 16);
			assert_int_equal(arc->cap * j->unit_bps,
					 f->ports[x->tx_port].host < 2 &&
					 f->ports[x->rx_port].host < 2 ? 200000000000
								       : 100000000000);
		}
		plan_free(p);
		model_free(f);
	}
}

/* Without a circuit of host h, the schedule is made again and stays away from it. */
static void a_dead_circuit(void **state)
{
	struct model_fabric *f = fabric_of(RANKS_JOB("allgather"));
	struct plan *p = plan_of(f, NULL), *rest = NULL;
	struct plan_light *intent = light_after(p), *seen = light_after(p);
	struct plan_base base = { .intent = intent, .observed = seen };
	struct optics_xc *xcs = calloc((size_t)seen[0].n_xcs, sizeof(*xcs));
	const struct plan_job_loss *loss;
	int lost = 0, kept = 0;

	(void)state;
	assert_non_null(xcs);
	while (f->ports[p->jobs[0].circuits[lost].tx_port].host != 2) {
		lost++;
	}
	for (int i = 0; i < seen[0].n_xcs; i++) {
		if (memcmp(&seen[0].xcs[i], &p->jobs[0].circuits[lost].xc, sizeof(*xcs))) {
			xcs[kept++] = seen[0].xcs[i];
		}
	}
	assert_int_equal(kept, seen[0].n_xcs - 1);
	seen[0].n_xcs = kept;
	seen[0].xcs = xcs;
	assert_int_equal(plan_degraded(f, &base, &rest, NULL), 0);
	loss = rest->jobs[0].loss;
	assert_non_null(loss);
	assert_int_equal(loss->arcs, 12);
	assert_int_equal(loss->dead_arcs, 1);
	assert_non_null(loss->sched);
	check_schedule(&rest->jobs[0], loss->sched, 5);
	assert_true(loss->rate > 0 && loss->rate <= 1);
	plan_free(p);
	plan_free(rest);
	free(intent);
	free(seen);
	free(xcs);
	model_free(f);
}

/* Four servers choose their topology as hosts of one rank would, which has no slower schedule
 * than one that is given; those with a root stand their replay, too. */
static void servers_choose(void **state)
{
	static const char *const kinds[] = { "allreduce", "all-to-all", "broadcast", "reduce",
					     "gather", "scatter" };

	(void)state;
	for (size_t i = 0; i < ALL_OR_SOME(sizeof(kinds) / sizeof(kinds[0]), 1); i++) {
		int64_t ns[2];

		for (int given = 0; given < 2; given++) {
			struct buf text = { 0 };
			struct model_fabric *f;
			struct plan *p;

			buf_printf(&text, POD "  - { name: j, nodes: 'd[0-1]', size: 64MiB, "
				   "alpha: 10us, collective: %s, topology: '%s' }\n", kinds[i],
				   given ? "UniRing(1,2)" : "auto");
			f = fabric_of(buf_cstr(&text));
			p = plan_of(f, NULL);
			assert_int_equal(coll_ranks(p->jobs[0].sched), 16);
			assert_int_equal(coll_verify(p->jobs[0].sched, NULL, NULL), 0);
			assert_int_equal(p->jobs[0].n_circuits, given ? 2 : 8);
			ns[given] = p->jobs[0].time_ns;
			plan_free(p);
			model_free(f);
			buf_fini(&text);
		}
		assert_true(ns[0] * 2 < ns[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_servers),
		cmocka_unit_test(mixed_hosts),
		cmocka_unit_test(leaf_switches),
		cmocka_unit_test(ranks_only),
		cmocka_unit_test(refused),
		cmocka_unit_test(plans_have_the_ranks),
		cmocka_unit_test(a_dead_circuit),
		cmocka_unit_test(servers_choose),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
