/* SPDX-License-Identifier: Apache-2.0 */
/* checklist 25: as few circuits are moved as can be, held against all spreads
 * of small fabrics. */
#include "tests/unit/plan/fixture.h"

#include <stdio.h>

#include "collective/schedule/schedule.h"
#include "controller/plan/private.h"
#include "tests/unit/world.h"
#include "topology/topology.h"

#define HOSTS 5
#define MOST_SITES 3

/* Every host has a port on every switch, so that a switch carries a part of
 * the digraph in which every host sends and receives at most once. */
static struct model_fabric *fabric(int sites, const char *ranks,
				   const char *topology)
{
	char text[2048];

	snprintf(text, sizeof(text), "weft: 1\nfabric: t\nhosts:\n"
		 "  - { name: 'h[0-%d]', ports: 'p[0-%d]', rate: 100Gbps }\n"
		 "switches:\n"
		 "  - { name: 's[0-%d]', size: 8x8, driver: sim }\nfibres:\n",
		 HOSTS - 1, sites - 1, sites - 1);
	for (int s = 0; s < sites; s++) {
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "  - { from: 'h[0-%d].p%d', to: 's%d.[1-%d]' }\n",
			 HOSTS - 1, s, s, HOSTS);
	}
	snprintf(text + strlen(text), sizeof(text) - strlen(text),
		 "jobs:\n  - { name: j, nodes: [%s], collective: allreduce, "
		 "size: 1MiB, topology: '%s' }\n", ranks, topology);
	return fabric_of(text);
}

struct search {
	int sites, n_arcs;
	int from[HOSTS * MOST_SITES], to[HOSTS * MOST_SITES];
	bool there[MOST_SITES][HOSTS][HOSTS];
	bool sends[MOST_SITES][HOSTS], receives[MOST_SITES][HOSTS];
	int best;
};

static void search(struct search *s, int arc, int kept)
{
	if (arc == s->n_arcs) {
		s->best = kept > s->best ? kept : s->best;
		return;
	}
	for (int i = 0; i < s->sites; i++) {
		bool *tx = &s->sends[i][s->from[arc]];
		bool *rx = &s->receives[i][s->to[arc]];

		if (!*tx && !*rx) {
			*tx = *rx = true;
			search(s, arc + 1, kept + s->there[i][s->from[arc]]
							  [s->to[arc]]);
			*tx = *rx = false;
		}
	}
}

/* The most circuits that can stay, by trying everything. */
static int max_kept(const struct plan *p, int sites,
		     const struct plan_light *light)
{
	struct search s = { .sites = sites, .best = -1 };
	const struct topo *t = coll_topo(p->jobs[0].sched);
	const struct model_job *job = &p->fabric->jobs[0];

	for (int i = 0; i < sites; i++) {
		for (int k = 0; k < light[i].n_xcs; k++) {
			s.there[i][light[i].xcs[k].in][light[i].xcs[k].out] =
				true;
		}
	}
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		s.from[s.n_arcs] = job->hosts[arc->src];
		s.to[s.n_arcs++] = job->hosts[arc->dst];
	}
	search(&s, 0, 0);
	return s.best;
}

static void shuffle(unsigned *seed, char text[64])
{
	int order[HOSTS];

	text[0] = '\0';
	for (int i = 0; i < HOSTS; i++) {
		int k = (int)((*seed = *seed * 1103515245 + 12345) >> 16) %
			(i + 1);

		order[i] = order[k];
		order[k] = i;
	}
	for (int i = 0; i < HOSTS; i++) {
		snprintf(text + strlen(text), 64 - strlen(text), "%sh%d",
			 i ? ", " : "", order[i]);
	}
}

/* From the light of one arrangement of the ranks to another. */
static void compare(int sites, const char *before, const char *after,
		    unsigned *seed)
{
	char ranks[64];
	struct model_fabric *f, *g;
	struct plan *p = NULL, *q = NULL;
	struct plan_light light[MOST_SITES] = { 0 };
	struct plan_base base = { .intent = light, .observed = light };
	struct err err = { 0 };
	int kept;

	shuffle(seed, ranks);
	f = fabric(sites, ranks, before);
	shuffle(seed, ranks);
	g = fabric(sites, ranks, after);
	assert_int_equal(plan_make(f, NULL, &p, &err), 0);
	for (int i = 0; i < p->n_devices; i++) {
		light[p->devices[i].device] = (struct plan_light){
			.known = true, .xcs = p->devices[i].want,
			.n_xcs = p->devices[i].n_want };
	}
	assert_int_equal(plan_make(g, &base, &q, &err), 0);
	kept = max_kept(q, sites, light);
	assert_int_equal(q->jobs[0].n_circuits - q->jobs[0].n_moves, kept);
	assert_int_equal(q->jobs[0].moves_bound, q->jobs[0].n_moves);
	assert_int_equal(q->n_add, q->jobs[0].n_moves);
	plan_free(p);
	plan_free(q);
	model_free(f);
	model_free(g);
}

static void moves_are_the_fewest(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int i = 0; i < 12; i++) {
		compare(2, "DiC(5,{1,2})", "C(5,{1})", &seed);
		compare(2, "C(5,{1})", "DiC(5,{1,3})", &seed);
		compare(3, "DiC(5,{1,2,3})", "DiC(5,{1,2,4})", &seed);
		compare(3, "C(5,{1})", "DiC(5,{1,2,3})", &seed);
		compare(3, "DiC(5,{1,2,3})", "C(5,{2})", &seed);
		compare(3, "UniRing(3,5)", "DiC(5,{1,2,4})", &seed);
	}
}

/* The smallest case in which switches in turn are far off: of 15 circuits 10 could stay by
 * themselves and 8 together, by 24 spreads that were listed; in turn it is 5. */
static void the_smallest_case(void **state)
{
	struct optics_xc there[3][HOSTS] = {
		{ { 0, 2 }, { 1, 4 }, { 2, 3 }, { 3, 1 }, { 4, 0 } },
		{ { 0, 4 }, { 1, 3 }, { 2, 1 }, { 3, 0 }, { 4, 2 } },
		{ { 0, 1 }, { 1, 2 }, { 2, 0 }, { 3, 4 }, { 4, 3 } },
	};
	struct model_fabric *f = fabric(3, "h0, h1, h2, h3, h4", "0 2, 0 3, 0 4, 1 0, 1 3, 1 4, "
					"2 0, 2 1, 2 1, 3 0, 3 2, 3 4, 4 1, 4 2, 4 3");
	struct plan_light light[3];
	struct plan_base base = { .intent = light, .observed = light };
	struct plan *p;

	(void)state;
	for (int s = 0; s < 3; s++) {
		light[s] = (struct plan_light){ .known = true, .xcs = there[s], .n_xcs = HOSTS };
	}
	p = plan_of(f, &base);
	assert_int_equal(p->jobs[0].n_circuits, 15);
	assert_int_equal(p->jobs[0].n_moves, 15 - 8);
	assert_int_equal(p->jobs[0].moves_bound, 15 - 8);
	plan_free(p);
	model_free(f);
}

/* ---- more than a program is for ---- */

#define MAX_SITES 16

/* Ranks with a port at each of so many switches. */
static struct model_fabric *wide(int ranks, int sites, const char *topology)
{
	struct buf b = { 0 };
	struct model_fabric *f;

	buf_printf(&b, "weft: 1\nfabric: t\nhosts:\n"
		   "  - { name: 'h[0-%d]', ports: 'p[0-%d]', rate: 100Gbps }\n"
		   "switches:\n  - { name: 's[0-%d]', size: %dx%d, driver: sim }\nfibres:\n",
		   ranks - 1, sites - 1, sites - 1, ranks, ranks);
	for (int s = 0; s < sites; s++) {
		buf_printf(&b, "  - { from: 'h[0-%d].p%d', to: 's%d.[1-%d]' }\n", ranks - 1, s, s,
			   ranks);
	}
	buf_printf(&b, "jobs:\n  - { name: j, nodes: 'h[0-%d]', collective: allreduce, "
		   "size: 1MiB, topology: '%s' }\n", ranks - 1, topology);
	f = fabric_of(buf_cstr(&b));
	buf_fini(&b);
	return f;
}

/* From the light of one topology to another. */
struct change {
	int ranks, sites;
	const char *before, *after;
	int most;	/* moves */
	int bound;
};

/* Moves, where what is there was made beside this circuit (NULL: none). */
static int moves(const struct change *c, struct optics_xc *lit)
{
	struct plan_light light[MAX_SITES] = { 0 };
	struct plan_base base = { .intent = light, .observed = light };
	struct model_fabric *f = wide(c->ranks, c->sites, c->before);
	struct model_fabric *g = wide(c->ranks, c->sites, c->after);
	struct plan *p, *q;
	int n;

	light[0] = (struct plan_light){ .known = lit, .xcs = lit, .n_xcs = lit != NULL };
	p = plan_of(f, &base);
	for (int i = 0; i < p->n_devices; i++) {
		light[p->devices[i].device] = (struct plan_light){
			.known = true, .xcs = p->devices[i].want, .n_xcs = p->devices[i].n_want };
	}
	q = plan_of(g, &base);
	n = q->jobs[0].n_moves;
	assert_int_equal(q->jobs[0].moves_bound, c->bound);
	plan_free(p);
	plan_free(q);
	model_free(f);
	model_free(g);
	return n;
}

/* A generator that both topologies have stays on its switch: the others move, and that is the
 * least. By switches in turn, from light by switches in turn, it were 200, 294 and 926. */
static void generators_stay(void **state)
{
	static const struct change all[] = {
		{ 12, 4, "C(12,{1,2})", "C(12,{1,3})", 24, 24 },
		{ 16, 6, "C(16,{1,2,3})", "C(16,{2,3,5})", 32, 32 },
		{ 64, 8, "C(64,{1,2,3,4})", "C(64,{2,3,4,5})", 128, 128 },
		{ 64, 8, "C(64,{1,4,10,27})", "C(64,{1,5,10,20})", 256, 256 },
		{ 256, 8, "C(256,{1,4,10,27})", "C(256,{1,5,10,27})", 512, 512 },
		{ 64, 16, "C(64,{1,2,3,4,5,6,7,8})", "C(64,{1,2,3,4,5,6,7,9})", 128, 128 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(moves(&all[i], NULL), all[i].most);
	}
}

/* From light that is by switches in turn, as of a fabric in which something was lit. An integer
 * program over all switches moves 24, 40, 160, 273 and 128; groups of three and four switches that
 * are solved one after the other 160, 281 and 814 of the large ones. */
static void switches_exchange(void **state)
{
	static const struct change all[] = {
		{ 12, 4, "C(12,{1,2})", "C(12,{1,3})", 24, 24 },
		{ 16, 6, "C(16,{1,2,3})", "C(16,{2,3,5})", 40, 40 },
		{ 64, 8, "C(64,{1,2,3,4})", "C(64,{2,3,4,5})", 160, 128 },
		{ 64, 8, "C(64,{1,4,10,27})", "C(64,{1,5,10,20})", 281, 256 },
		{ 256, 8, "C(256,{1,4,10,27})", "C(256,{1,5,10,27})", 814, 512 },
		{ 64, 16, "C(64,{1,2,3,4,5,6,7,8})", "C(64,{1,2,3,4,5,6,7,9})", 128, 128 },
	};
	struct optics_xc lit = { .in = 0, .out = 1 };

	(void)state;
	for (size_t i = 0; i < ALL_OR_SOME(sizeof(all) / sizeof(all[0]), 3); i++) {
		assert_true(moves(&all[i], &lit) <= all[i].most);
	}
}

/* ---- exchanges alone, of ranks with several ports at a switch ---- */

#define SMALL 5		/* ranks */
#define PAIRS (SMALL * SMALL)
#define CELLS (PAIRS * MOST_SITES)

struct small {
	int ends[PAIRS][2], open[PAIRS], have[CELLS], lost[CELLS], give[CELLS];
	int tx[SMALL * MOST_SITES], rx[SMALL * MOST_SITES];
};

static unsigned next(unsigned *seed)
{
	return (*seed = *seed * 1103515245 + 12345) >> 16;
}

/* Arcs at random while ports are free, of which a table is made. */
static void lay(const struct small *m, unsigned *seed, int *table)
{
	int tx[SMALL * MOST_SITES], rx[SMALL * MOST_SITES];

	memcpy(tx, m->tx, sizeof(tx));
	memcpy(rx, m->rx, sizeof(rx));
	for (int i = 0; i < 60; i++) {
		int w = (int)(next(seed) % PAIRS), site = (int)(next(seed) % MOST_SITES);
		int *a = &tx[m->ends[w][0] * MOST_SITES + site];
		int *b = &rx[m->ends[w][1] * MOST_SITES + site];

		if (*a > 0 && *b > 0) {
			--*a;
			--*b;
			table[w * MOST_SITES + site]++;
		}
	}
}

static void small_init(struct small *m, unsigned *seed)
{
	*m = (struct small){ 0 };
	for (int w = 0; w < PAIRS; w++) {
		m->ends[w][0] = w / SMALL;
		m->ends[w][1] = w % SMALL;
	}
	for (int i = 0; i < SMALL * MOST_SITES; i++) {
		m->tx[i] = (int)(next(seed) % 4);
		m->rx[i] = (int)(next(seed) % 4);
	}
	lay(m, seed, m->have);
	lay(m, seed, m->lost);
	lay(m, seed, m->give);
	for (int c = 0; c < CELLS; c++) {
		m->open[c / MOST_SITES] += m->give[c];
	}
}

static void assert_spread(const struct small *m, const int *give)
{
	int tx[SMALL * MOST_SITES] = { 0 }, rx[SMALL * MOST_SITES] = { 0 }, open[PAIRS] = { 0 };

	for (int c = 0; c < CELLS; c++) {
		assert_true(give[c] >= 0);
		open[c / MOST_SITES] += give[c];
		tx[m->ends[c / MOST_SITES][0] * MOST_SITES + c % MOST_SITES] += give[c];
		rx[m->ends[c / MOST_SITES][1] * MOST_SITES + c % MOST_SITES] += give[c];
	}
	assert_memory_equal(open, m->open, sizeof(open));
	for (int i = 0; i < SMALL * MOST_SITES; i++) {
		assert_true(tx[i] <= m->tx[i] && rx[i] <= m->rx[i]);
	}
}

/* Never more ports than there are, never fewer circuits that stay, and here the most. */
static void exchanges_are_exact_where_small(void **state)
{
	unsigned seed = 3;

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct small m;
		struct plan_assignment s = { SMALL, PAIRS, MOST_SITES, (const int(*)[2])m.ends,
					     m.open, m.have, m.lost, m.tx, m.rx };
		int exact[CELLS], most, before;

		small_init(&m, &seed);
		memcpy(exact, m.give, sizeof(exact));
		most = plan_assignment_bound(&s);
		before = plan_assignment_kept(&s, m.give);
		assert_int_equal(plan_assignment_exact(&s, true, exact, &most, NULL), 0);
		plan_assignment_improve(&s, m.give, plan_assignment_bound(&s));
		assert_spread(&m, m.give);
		assert_true(plan_assignment_kept(&s, m.give) >= before);
		assert_int_equal(plan_assignment_kept(&s, m.give), plan_assignment_kept(&s, exact));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_are_the_fewest),
		cmocka_unit_test(the_smallest_case),
		cmocka_unit_test(generators_stay),
		cmocka_unit_test(switches_exchange),
		cmocka_unit_test(exchanges_are_exact_where_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
