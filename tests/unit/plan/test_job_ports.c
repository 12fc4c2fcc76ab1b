/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that divide the ports of hosts: each is planned as though it were alone on a
 * fabric of its ports, whatever the order of the file, and traffic of one never
 * crosses light of another.
 */
#include "tests/unit/plan/fixture.h"

#include <stdio.h>

#include "lib/base/buf.h"
#include "lib/base/number/rng.h"
#include "tests/unit/world.h"

#define SPLITS ALL_OR_SOME(60, 10)
#define MOST_PORTS 8

/* Hosts, of which each port goes to a switch, and the job that has it. */
struct split {
	int hosts, ports, switches;
	int job_of[MOST_PORTS];
	const char *job[2];	/* keys of each, but for ports */
};

/* The fabric with the ports of one job, or (job -1) of both. */
static char *text_of(const struct split *s, int job)
{
	struct buf b = { 0 };
	const char *comma = "";

	buf_printf(&b, "weft: 1\nfabric: t\nhosts:\n  - { name: 'h[0-%d]', rate: 100Gbps, ports: [",
		   s->hosts - 1);
	for (int p = 0; p < s->ports; p++) {
		if (job < 0 || s->job_of[p] == job) {
			buf_printf(&b, "%sp%d", comma, p);
			comma = ", ";
		}
	}
	buf_printf(&b, "] }\nswitches:\n  - { name: 'o[0-%d]', size: 64x64, driver: sim }\n"
		   "fibres:\n", s->switches - 1);
	for (int h = 0; h < s->hosts; h++) {
		for (int p = 0; p < s->ports; p++) {
			if (job < 0 || s->job_of[p] == job) {
				buf_printf(&b, "  - { from: h%d.p%d, to: o%d.%d }\n", h, p,
					   p % s->switches, h * s->ports + p + 1);
			}
		}
	}
	buf_str(&b, "jobs:\n");
	for (int k = 0; k < 2; k++) {
		if (job >= 0 && k != job) {
			continue;
		}
		buf_printf(&b, "  - { name: j%d, %s, ports: [", k, s->job[k]);
		comma = "";
		for (int p = 0; p < s->ports; p++) {
			if (s->job_of[p] == k) {
				buf_printf(&b, "%sp%d", comma, p);
				comma = ", ";
			}
		}
		buf_str(&b, "] }\n");
	}
	return buf_steal(&b);
}

static void random_split(struct rng *r, struct split *s)
{
	static const char *const jobs[] = {
		"collective: allreduce, size: 1MiB", "collective: allgather, size: 64KiB",
		"collective: allreduce, size: 16MiB, topology: 'UniRing(2,",
		"collective: all-to-all, size: 1MiB, topology: 'BiRing(2,",
	};
	static char text[2][160];

	s->hosts = 4 + (int)rng_below(r, 4);
	s->ports = 4 + (int)rng_below(r, MOST_PORTS - 3);
	s->switches = 1 + (int)rng_below(r, 2);
	for (int p = 0; p < s->ports; p++) {
		s->job_of[p] = p < 4 ? p / 2 : (int)rng_below(r, 2);
	}
	/* Two ports of each job come first, and are mixed with the rest. */
	for (int p = s->ports - 1; p > 0; p--) {
		int k = (int)rng_below(r, (uint64_t)p + 1), job = s->job_of[p];

		s->job_of[p] = s->job_of[k];
		s->job_of[k] = job;
	}
	for (int k = 0; k < 2; k++) {
		size_t which = rng_below(r, 4);

		snprintf(text[k], sizeof(text[k]), "%s", jobs[which]);
		if (which >= 2) {
			size_t n = strlen(text[k]);

			snprintf(text[k] + n, sizeof(text[k]) - n, "%d)'", s->hosts);
		}
		s->job[k] = text[k];
	}
}

static void check_same_job(const struct plan *both, int job, const struct plan *alone)
{
	const struct plan_job *x = &both->jobs[job], *y = &alone->jobs[0];

	assert_string_equal(both->fabric->jobs[job].name, alone->fabric->jobs[0].name);
	assert_string_equal(x->topology, y->topology);
	assert_int_equal(x->time_ns, y->time_ns);
	assert_int_equal(x->bound_ns, y->bound_ns);
	assert_int_equal(x->n_circuits, y->n_circuits);
	for (int i = 0; i < x->n_circuits; i++) {
		const struct plan_circuit *c = &x->circuits[i], *d = &y->circuits[i];

		assert_int_equal(c->arc, d->arc);
		assert_int_equal(c->device, d->device);
		assert_int_equal(optics_xc_cmp(&c->xc, &d->xc), 0);
		assert_string_equal(both->fabric->ports[c->tx_port].name,
				    alone->fabric->ports[d->tx_port].name);
	}
}

static void each_is_planned_as_alone(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 36);
	for (int i = 0; i < SPLITS; i++) {
		struct split s;
		struct model_fabric *f;
		struct plan *both;
		char *text;

		random_split(&r, &s);
		text = text_of(&s, -1);
		f = fabric_of(text);
		both = plan_of(f, NULL);
		free(text);
		for (int job = 0; job < 2; job++) {
			struct model_fabric *g;
			struct plan *alone;

			text = text_of(&s, job);
			g = fabric_of(text);
			alone = plan_of(g, NULL);
			check_same_job(both, job, alone);
			plan_free(alone);
			model_free(g);
			free(text);
		}
		plan_free(both);
		model_free(f);
	}
}

/* ---- whose they are ---- */

#define SHARED                                                                           \
	"weft: 1\nfabric: t\n"                                                           \
	"hosts:\n  - { name: 'h[0-3]', ports: 'p[0-7]', rate: 100Gbps }\n"               \
	"switches:\n  - { name: 'o[0-1]', size: 32x32, driver: sim }\n"                  \
	"fibres:\n"                                                                      \
	"  - { from: 'h[0-3].p[0,2,4,6]', to: 'o0.[1-16]' }\n"                           \
	"  - { from: 'h[0-3].p[1,3,5,7]', to: 'o1.[1-16]' }\n"

#define KEYS "nodes: 'h[0-3]', collective: allgather, size: 1MB"

/* Circuits, names, numbers and the rest. */
static const char *const entries[] = {
	"  - { name: zoe, " KEYS ", ports: p2 }\n",
	"  - { name: bob, " KEYS ", ports: 2 }\n",
	"  - { name: ann, " KEYS ", ports: 1 }\n",
	"  - { name: rest, " KEYS " }\n",
};

/* "ann bob - ...": whose each port of a host is. */
static void owners_of(const struct model_fabric *f, int host, struct buf *out)
{
	const struct model_host *h = &f->hosts[host];

	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		int job = f->ports[p].tx_job;

		buf_printf(out, "%s%s", p > h->first_port ? " " : "",
			   job < 0 ? "-" : f->jobs[job].name);
		for (int j = 0; j < f->n_jobs; j++) {
			assert_int_equal(plan_has_port(f, &f->jobs[j], p), j == job);
		}
	}
}

static void the_order_of_the_file_makes_no_difference(void **state)
{
	static const int orders[][4] = { { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 3, 0, 2 },
					 { 2, 0, 3, 1 } };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct buf text = { 0 };
		struct model_fabric *f;

		buf_str(&text, SHARED "circuits:\n"
			"  - { name: c, from: h0.p0, to: h1.p0 }\n"
			"  - { name: d, from: h2.p0, to: h3.p0 }\njobs:\n");
		for (int k = 0; k < 4; k++) {
			buf_str(&text, entries[orders[i][k]]);
		}
		f = fabric_of(buf_cstr(&text));
		for (int h = 0; h < 4; h++) {
			struct buf owners = { 0 };

			owners_of(f, h, &owners);
			/* Two at one switch for bob: o1 is the first that has them. */
			assert_string_equal(buf_cstr(&owners), h < 2 ?
					    "c bob zoe bob ann rest rest rest" :
					    "d bob zoe bob ann rest rest rest");
			buf_fini(&owners);
		}
		model_free(f);
		buf_fini(&text);
	}
}

/* ---- paths ---- */

/* Paths of two jobs on the same hosts, and circuits beside them. */
static void traffic_keeps_to_its_job(void **state)
{
	struct model_fabric *f = fabric_of(
		SHARED "circuits:\n  - { name: c, from: h0.p7, to: h2.p7 }\n"
		"jobs:\n  - { name: tp, " KEYS ", ports: 'p[0-1]', topology: 'BiRing(2,4)' }\n"
		"  - { name: dp, " KEYS ", ports: 'p[2-3]', topology: 'UniRing(2,4)' }\n");
	struct plan *p = plan_of(f, NULL);
	struct plan_arc *arcs;
	int n, reached = 0;

	(void)state;
	plan_arcs(p, &arcs, &n);
	assert_int_equal(n, 2 * 4 + 2 * 4 + 2);
	/* p2 is the first port of the second job. */
	assert_int_equal(plan_host_addresses(f, arcs, n), 6);
	for (int h = 0; h < 4; h++) {
		struct plan_host_path *paths;
		int n_paths;

		plan_host_paths(f, arcs, n, h, &paths, &n_paths);
		for (int i = 0; i < n_paths; i++) {
			int to = f->hosts[paths[i].to].first_port + paths[i].to_address / 2;
			const struct model_job *job = &f->jobs[f->ports[to].tx_job];

			assert_true(plan_has_port(f, job, paths[i].tx_port));
			assert_true(plan_has_port(f, job, paths[i].rx_port));
			assert_int_equal(job->kind, MODEL_COLLECTIVE);
			reached++;
		}
		free(paths);
	}
	/* Every host, every other one, and six addresses: p0 and p1 of tp, p2 of dp. */
	assert_int_equal(reached, 4 * 3 * 6);
	free(arcs);
	plan_free(p);
	model_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_planned_as_alone),
		cmocka_unit_test(the_order_of_the_file_makes_no_difference),
		cmocka_unit_test(traffic_keeps_to_its_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
