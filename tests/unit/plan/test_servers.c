/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs on servers of several ranks: times against their bounds and against the same circuits on
 * hosts of one rank, and laws that hold of any servers.
 *
 * With SERVERS_TABLE=1 in the environment each plan is printed, with its time in ms and what it is
 * of its bound.
 */
#include <stdio.h>

#include "lib/base/alloc.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/world.h"

#define SMALL ALL_OR_SOME(false, true)
#define ALPHA_NS 10000

/* Hosts a, and b behind them, which have what is inside them (NULL: one rank). */
struct servers {
	int n, ports;
	const char *inside;
	int n_others, other_ports;
	const char *other_inside;
};

static void add_hosts(struct buf *b, char name, int n, int ports, const char *inside)
{
	if (n > 0) {
		buf_printf(b, "  - { name: '%c[00-%02d]', ports: 'p[0-%d]', rate: 200Gbps%s%s%s "
			   "}\n", name, n - 1, ports - 1, inside ? ", inside: '" : "",
			   inside ? inside : "", inside ? "'" : "");
	}
}

static void add_fibres(struct buf *b, char name, int n, int ports, int first)
{
	if (n > 0) {
		buf_printf(b, "  - { from: '%c[00-%02d].p[0-%d]', to: 'ocs.[%d-%d]' }\n", name,
			   n - 1, ports - 1, first, first + n * ports - 1);
	}
}

static struct model_fabric *fabric(const struct servers *s, const char *topology, const char *kind,
				   int64_t mib)
{
	int all = s->n * s->ports, others = s->n_others * s->other_ports;
	struct buf b = { 0 };
	struct model_fabric *f;

	buf_printf(&b, "weft: 1\nfabric: t\nhosts:\n");
	add_hosts(&b, 'a', s->n, s->ports, s->inside);
	add_hosts(&b, 'b', s->n_others, s->other_ports, s->other_inside);
	buf_printf(&b, "switches:\n  - { name: ocs, size: %dx%d, driver: sim }\nfibres:\n",
		   all + others, all + others);
	add_fibres(&b, 'a', s->n, s->ports, 1);
	add_fibres(&b, 'b', s->n_others, s->other_ports, 1 + all);
	buf_printf(&b, "jobs:\n  - { name: j, nodes: all, collective: %s, size: %lldMiB, "
		   "topology: '%s', alpha: 10us }\n", kind, (long long)mib, topology);
	f = fabric_of(buf_cstr(&b));
	buf_fini(&b);
	return f;
}

struct planned {
	int64_t ns, bound_ns;
	char topology[64];
};

/* The job's times; its schedule is replayed. */
static struct planned plan_servers(const struct servers *s, const char *topology, const char *kind,
				   int64_t mib)
{
	struct model_fabric *f = fabric(s, topology, kind, mib);
	struct plan *p = plan_of(f, NULL);
	const struct plan_job *j = &p->jobs[0];
	struct planned out = { .ns = j->time_ns, .bound_ns = j->bound_ns };

	snprintf(out.topology, sizeof(out.topology), "%s", j->topology);
	assert_int_equal(coll_verify(j->sched, NULL, NULL), 0);
	assert_true(out.ns >= out.bound_ns);
	if (getenv("SERVERS_TABLE")) {
		printf("%2d x %d %-20s %-20s %-14s %4lld MiB %-13s %8.3f ms, %.3f of the bound\n",
		       s->n + s->n_others, s->ports, s->inside ? s->inside : "1", j->topology, kind,
		       (long long)mib, j->algorithm, (double)out.ns / 1e6,
		       (double)out.ns / (double)out.bound_ns);
	}
	plan_free(p);
	model_free(f);
	return out;
}

#define DGX "dgx-a100-nvlink"

/* What servers of eight GPUs take, in thousandths of their bound. */
static const struct {
	int n, ports;
	const char *topology;
	int64_t mib;
	int most;
} alike[] = {
	{ 4, 6, "Multi(K(4),2)", 1024, 1150 }, { 4, 8, "auto", 1024, 1150 },
	{ 4, 8, "auto", 64, 1500 },
	{ 16, 8, "C(16,{1,2,4,7})", 1024, 1150 }, { 16, 8, "Multi(Torus(4,4),2)", 1024, 1150 },
	{ 16, 8, "C(16,{1,2,4,7})", 64, 1500 }, { 16, 8, "auto", 1024, 1150 },
	{ 16, 8, "auto", 64, 1500 },
	{ 64, 8, "C(64,{1,4,10,27})", 1024, 1150 }, { 64, 8, "C(64,{1,4,10,27})", 64, 1500 },
	{ 64, 8, "Multi(Torus(8,8),2)", 1024, 1150 }, { 64, 8, "auto", 1024, 1150 },
	{ 64, 8, "auto", 64, 1500 },
};

static void near_their_bound(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++) {
		struct servers s = { .n = alike[i].n, .ports = alike[i].ports, .inside = DGX };
		struct planned p;

		if (SMALL ? i != 2 : !in_turn(i, 3)) {
			continue;
		}
		p = plan_servers(&s, alike[i].topology, "allreduce", alike[i].mib);
		if (p.ns * 1000 > p.bound_ns * alike[i].most) {
			fail_msg("%d servers, %s, %lld MiB: %lld ns of %lld", s.n,
				 alike[i].topology, (long long)alike[i].mib, (long long)p.ns,
				 (long long)p.bound_ns);
		}
	}
}

/* The bound of a broadcast counts its few steps as of hosts, not of their ranks: 1.85 before. */
static void broadcasts(void **state)
{
	struct servers s = { .n = 16, .ports = 8, .inside = DGX };
	struct servers wide = { .n = 5, .ports = 4, .inside = "Cap(Star(4),30000)" };
	struct servers one = { .n = 5, .ports = 4 };

	(void)state;
	if (!SMALL) {
		struct planned p = plan_servers(&s, "C(16,{1,2,4,7})", "broadcast", 64);

		assert_true(p.ns * 1000 <= p.bound_ns * 1500);
	}
	for (int kind = 0; kind < COLL_KINDS; kind++) {
		const char *name = coll_kind_name((enum coll_kind)kind);

		assert_true(plan_servers(&wide, "C(5,{1,2})", name, 8).bound_ns >=
			    plan_servers(&one, "C(5,{1,2})", name, 8).bound_ns);
	}
}

/* What is said of a topology that is chosen is what is said of it where it is given. */
static void chosen_as_given(void **state)
{
	static const char *const kinds[] = { "allgather", "gather", "allreduce", "scatter",
					     "reduce-scatter", "broadcast", "reduce" };

	(void)state;
	for (size_t i = 0; i < (SMALL ? 2 : 3 * sizeof(kinds) / sizeof(kinds[0])); i++) {
		struct servers s = { .n = i < 7 ? 4 : i < 14 ? 9 : 3, .ports = i < 14 ? 7 : 5,
				     .inside = DGX };
		struct planned chosen, given;

		if (!in_turn(i, SMALL ? 1 : 5)) {
			continue;
		}
		chosen = plan_servers(&s, "auto", kinds[i % 7], 64);
		given = plan_servers(&s, chosen.topology, kinds[i % 7], 64);
		assert_int_equal(chosen.ns, given.ns);
		assert_int_equal(chosen.bound_ns, given.bound_ns);
	}
}

/* Servers that differ; thousandths of the bound at 1 GiB. */
static const struct {
	struct servers s;
	const char *topology, *kind;
	int most;
} unlike[] = {
	{ { 4, 4, "Cap(Star(8),300)", 4, 4, "Cap(Star(4),300)" }, "C(8,{1,2})", "allreduce", 1090 },
	{ { 4, 8, DGX, 4, 4, "Cap(Star(4),300)" }, "C(8,{1,2})", "allreduce", 1090 },
	{ { 4, 8, DGX, 4, 8, "dgx-a100-pcie" }, "C(8,{1,2,3})", "allgather", 1050 },
	{ { 4, 8, DGX, 4, 4, DGX }, "C(8,{1,2})", "allreduce", 1040 },
	{ { 2, 6, DGX, 2, 6, "dgx-a100-pcie" }, "Multi(K(4),2)", "allreduce", 1100 },
};

static void unlike_servers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(unlike) / sizeof(unlike[0]) && !SMALL; i++) {
		struct planned p = plan_servers(&unlike[i].s, unlike[i].topology, unlike[i].kind,
						1024);

		if (p.ns * 1000 > p.bound_ns * unlike[i].most) {
			fail_msg("%zu: %lld ns of %lld", i, (long long)p.ns, (long long)p.bound_ns);
		}
	}
}

/* What is lit without its last circuit, or (card) without what ends at the first port of the one
 * switch: the caller's. */
static struct optics_xc *dim(struct plan_light *light, bool card)
{
	struct optics_xc *left = x_alloc((size_t)light->n_xcs, sizeof(*left));
	int n = 0;

	for (int i = 0; i < light->n_xcs; i++) {
		const struct optics_xc *xc = &light->xcs[i];

		if (card ? xc->in != 0 && xc->out != 0 : i + 1 < light->n_xcs) {
			left[n++] = *xc;
		}
	}
	light->xcs = left;
	light->n_xcs = n;
	return left;
}

/* Without a circuit, or (card) without those of a port, the job goes on, on all that are left:
 * thousandths of their bound. */
static void lose(const struct servers *s, const char *topology, const char *kind, int64_t mib,
		 bool card, int most)
{
	struct model_fabric *f = fabric(s, topology, kind, mib);
	struct plan *p = plan_of(f, NULL), *rest = NULL;
	struct plan_light *intent = light_after(p), *seen = light_after(p);
	struct plan_base base = { .intent = intent, .observed = seen };
	struct optics_xc *lit = dim(&seen[0], card);
	const struct plan_job_loss *loss;

	assert_int_equal(plan_degraded(f, &base, &rest, NULL), 0);
	loss = rest->jobs[0].loss;
	assert_non_null(loss);
	assert_int_equal(loss->dead_arcs, card ? 2 : 1);
	assert_non_null(loss->sched);
	assert_int_equal(coll_verify(loss->sched, NULL, NULL), 0);
	if (getenv("SERVERS_TABLE")) {
		printf("%s, %d of %d circuits dark: %.3f -> %.3f ms, %.3f of the bound\n", kind,
		       loss->dead_arcs, loss->arcs, (double)p->jobs[0].time_ns / 1e6,
		       (double)loss->time_ns / 1e6,
		       (double)loss->time_ns / (double)loss->bound_ns);
	}
	assert_true(loss->time_ns >= loss->bound_ns);
	if (loss->time_ns * 1000 > loss->bound_ns * most) {
		fail_msg("%s: %lld ns of %lld", kind, (long long)loss->time_ns,
			 (long long)loss->bound_ns);
	}
	plan_free(p);
	plan_free(rest);
	free(lit);
	free(intent);
	free(seen);
	model_free(f);
}

static void a_dark_circuit(void **state)
{
	static const struct {
		struct servers s;
		const char *topology;
	} cases[] = {
		{ { .n = 4, .ports = 6, .inside = DGX }, "Multi(K(4),2)" },
		{ { .n = 16, .ports = 8, .inside = DGX }, "C(16,{1,2,4,7})" },
		{ { 4, 4, "Cap(Star(8),300)", 4, 4, "Cap(Star(4),300)" }, "C(8,{1,2})" },
	};

	(void)state;
	for (size_t i = 0; i < (SMALL ? 1 : sizeof(cases) / sizeof(cases[0])); i++) {
		lose(&cases[i].s, cases[i].topology, "allreduce", 1024, false, 1300);
	}
}

static void a_lost_card(void **state)
{
	static const struct servers s = { .n = 4, .ports = 6, .inside = DGX };

	(void)state;
	for (int kind = SMALL ? COLL_GATHER : 0; kind < COLL_KINDS; kind++) {
		lose(&s, "Multi(K(4),2)", coll_kind_name((enum coll_kind)kind), 1024, true, 1200);
	}
}

/* Circuits, and how many steps an all-gather on hosts of one rank takes. */
static const struct {
	int n, ports;
	const char *topology;
	int steps;
} circuits[] = {
	{ 3, 2, "K(3)", 1 }, { 8, 4, "K(4,4)", 2 }, { 8, 6, "C(8,{1,2,3})", 2 },
	{ 9, 4, "Torus(3,3)", 2 }, { 12, 4, "C(12,{2,3})", 3 }, { 8, 2, "Ring(8)", 4 },
	{ 5, 4, "K(5)", 1 }, { 16, 4, "Torus(4,4)", 4 }, { 16, 8, "C(16,{1,2,4,7})", 2 },
};

#define CIRCUITS (SMALL ? 1 : sizeof(circuits) / sizeof(circuits[0]))

static const char *const kinds[] = { "allreduce", "allgather", "reduce-scatter", "broadcast" };

/* Where what is inside is no limit, servers are as fast as hosts of one rank but for the steps
 * inside: one behind each step between them, and those before and after. */
static void as_hosts_of_one_rank(void **state)
{
	static const int64_t mib[] = { 1, 64, 1024 };

	(void)state;
	for (size_t i = 0; i < CIRCUITS * 9; i++) {
		int c = (int)(i / 9), kind = (int)(i % 3), ranks = circuits[c].ports < 4 ? 2 : 8;
		int64_t size = mib[i / 3 % 3];
		int more = (circuits[c].steps + 2) * (kind == 0 ? 2 : 1);
		char inside[64];
		struct servers one = { .n = circuits[c].n, .ports = circuits[c].ports }, s = one;
		struct planned host, p;

		if (!in_turn(i, SMALL ? 1 : 4)) {
			continue;
		}
		snprintf(inside, sizeof(inside), "Cap(Star(%d),30000000)", ranks);
		s.inside = inside;
		host = plan_servers(&one, circuits[c].topology, kinds[kind], size);
		p = plan_servers(&s, circuits[c].topology, kinds[kind], size);
		if (p.ns > host.ns * 106 / 100 + more * ALPHA_NS) {
			fail_msg("%s of %s, %lld MiB: %lld ns, hosts of one rank %lld", kinds[kind],
				 circuits[c].topology, (long long)size, (long long)p.ns,
				 (long long)host.ns);
		}
	}
}

/* More inside is never slower, within half a percent. */
static void more_inside(void **state)
{
	static const int caps[] = { 25, 50, 100, 300, 1000, 30000 };

	(void)state;
	for (size_t i = 0; i < (SMALL ? 1 : CIRCUITS * 2); i++) {
		int c = (int)(i / 2), kind = (int)(i + i / 4) % 4;
		int64_t size = i % 2 ? 64 : 1, before = INT64_MAX / 201;

		if (!in_turn(i, SMALL ? 1 : 5)) {
			continue;
		}
		for (size_t k = 0; k < sizeof(caps) / sizeof(caps[0]); k += SMALL ? 3 : 1) {
			char inside[64];
			struct servers s = { .n = circuits[c].n, .ports = circuits[c].ports,
					     .inside = inside };
			struct planned p;

			snprintf(inside, sizeof(inside), "Cap(Star(8),%d)", caps[k]);
			p = plan_servers(&s, circuits[c].topology, kinds[kind], size);
			if (p.ns * 200 > before * 201) {
				fail_msg("%s of %s, %lld MiB, %d inside: %lld ns, with less %lld",
					 kinds[kind], circuits[c].topology, (long long)size,
					 caps[k], (long long)p.ns, (long long)before);
			}
			before = p.ns;
		}
	}
}

/* Twice the circuits are never slower, and where these are all that takes time, they take half of
 * it within a tenth. */
static void twice_the_circuits(void **state)
{
	(void)state;
	for (size_t i = 0; i < CIRCUITS * 3; i++) {
		int c = (int)(i / 3), kind = (int)(i % 2);
		int64_t size = (int64_t[]){ 1, 64, 1024 }[i % 3];
		char doubled[64];
		struct servers s = { .n = circuits[c].n, .ports = circuits[c].ports,
				     .inside = "Cap(Star(16),30000000)" };
		struct planned once, twice;

		if (!in_turn(i, 5)) {
			continue;
		}
		once = plan_servers(&s, circuits[c].topology, kinds[kind], size);
		s.ports *= 2;
		snprintf(doubled, sizeof(doubled), "Multi(%s,2)", circuits[c].topology);
		twice = plan_servers(&s, doubled, kinds[kind], size);
		if (twice.ns > once.ns || (size == 1024 && twice.ns > once.ns * 55 / 100)) {
			fail_msg("%s of %s, %lld MiB: %lld ns, once %lld", kinds[kind], doubled,
				 (long long)size, (long long)twice.ns, (long long)once.ns);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(near_their_bound), cmocka_unit_test(broadcasts),
		cmocka_unit_test(chosen_as_given),
		cmocka_unit_test(unlike_servers),
		cmocka_unit_test(a_dark_circuit), cmocka_unit_test(a_lost_card),
		cmocka_unit_test(as_hosts_of_one_rank), cmocka_unit_test(more_inside),
		cmocka_unit_test(twice_the_circuits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
