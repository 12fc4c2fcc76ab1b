/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random tight fabrics: lasers of few channels, several trunks side by side, several jobs. An
 * integer program over all paths says whether all lightpaths fit; what does is planned, and what
 * does not is refused with a proof.
 */
#include <stdio.h>

#include "lib/base/buf.h"
#include "lib/base/number/rng.h"
#include "lib/lp/lp.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/world.h"

#define SITES 6
#define EDGES 15
#define HOSTS 18
#define PORTS 3
#define WAVES 12
#define ARCS 200

struct tight {
	int sites, each, n_edges, n_arcs, waves;	/* each: hosts a site */
	int edge[EDGES][2], trunks[EDGES];
	unsigned sends[HOSTS];		/* channels, a bit each */
	int arc[ARCS][2];		/* lightpaths, from host to host */
	char jobs[1024];
};

static int edge_of(const struct tight *t, int a, int b)
{
	for (int e = 0; e < t->n_edges; e++) {
		if ((t->edge[e][0] == a && t->edge[e][1] == b) ||
		    (t->edge[e][0] == b && t->edge[e][1] == a)) {
			return e;
		}
	}
	return -1;
}

static void add_edge(struct tight *t, struct rng *rng, int a, int b)
{
	if (a != b && edge_of(t, a, b) < 0) {
		t->edge[t->n_edges][0] = a;
		t->edge[t->n_edges][1] = b;
		t->trunks[t->n_edges++] = rng_below(rng, 4) ? 1 : 2;
	}
}

/* One way round the hosts in parallel, or both ways. */
static void add_job(struct tight *t, struct rng *rng, const int *host, int n, int number)
{
	int ways = 1 + (int)rng_below(rng, PORTS), both = rng_below(rng, 3) == 0;
	size_t at = strlen(t->jobs);

	at += (size_t)snprintf(t->jobs + at, sizeof(t->jobs) - at, "  - { name: j%d, nodes: '",
			       number);
	for (int i = 0; i < n; i++) {
		at += (size_t)snprintf(t->jobs + at, sizeof(t->jobs) - at, "%sh%d", i ? "," : "",
				       host[i]);
		for (int k = 0; k < (both ? 2 : ways); k++) {
			t->arc[t->n_arcs][0] = host[i];
			t->arc[t->n_arcs++][1] = host[(i + (both && k ? n - 1 : 1)) % n];
		}
	}
	snprintf(t->jobs + at, sizeof(t->jobs) - at, both
		 ? "', collective: allgather, size: 1MiB, topology: 'Ring(%d)', alpha: 5us }\n"
		 : "', collective: allgather, size: 1MiB, topology: 'UniRing(%d,%d)', "
		   "alpha: 5us }\n", both ? n : ways, n);
}

static void make(struct tight *t, uint64_t seed, int waves)
{
	struct rng rng;
	int host[HOSTS], n;

	rng_seed(&rng, seed);
	*t = (struct tight){ .sites = 3 + (int)rng_below(&rng, SITES - 2), .waves = waves };
	t->each = 1 + (int)rng_below(&rng, HOSTS / SITES);
	n = t->sites * t->each;
	for (int s = 1; s < t->sites; s++) {
		add_edge(t, &rng, rng_below(&rng, 2) ? s - 1 : (int)rng_below(&rng, (uint64_t)s),
			 s);
	}
	for (int k = (int)rng_below(&rng, (uint64_t)t->sites); k > 0; k--) {
		add_edge(t, &rng, (int)rng_below(&rng, (uint64_t)t->sites),
			 (int)rng_below(&rng, (uint64_t)t->sites));
	}
	for (int i = 0; i < n; i++) {
		int k = (int)rng_below(&rng, (uint64_t)i + 1);

		host[i] = host[k];
		host[k] = i;
	}
	for (int i = 0, number = 0, size; n - i >= 3; i += size) {
		size = 3 + (int)rng_below(&rng, 4);
		size = n - i - size < 3 ? n - i : size;
		add_job(t, &rng, host + i, size, number++);
	}
	for (int h = 0; h < n; h++) {
		unsigned all = (1U << waves) - 1;

		t->sends[h] = rng_below(&rng, 3) ? (unsigned)rng_below(&rng, all) + 1 : all;
	}
}

static char *text_of(const struct tight *t)
{
	int at[SITES], size[SITES];
	struct buf b = { 0 };

	buf_str(&b, "weft: 1\nfabric: t\nhosts:\n");
	for (int h = 0; h < t->sites * t->each; h++) {
		buf_printf(&b, "  - { name: h%d, ports: 'p[0-%d]', rate: 100Gbps, channels: '", h,
			   PORTS - 1);
		for (int c = 0, n = 0; c < t->waves; c++) {
			if (t->sends[h] >> c & 1) {
				buf_printf(&b, "%s%d", n++ ? "," : "", c);
			}
		}
		buf_str(&b, "' }\n");
	}
	buf_str(&b, "switches:\n");
	for (int s = 0; s < t->sites; s++) {
		size[s] = at[s] = t->each * PORTS;
		for (int e = 0; e < t->n_edges; e++) {
			size[s] += (t->edge[e][0] == s || t->edge[e][1] == s) * t->waves *
				   t->trunks[e];
		}
		buf_printf(&b, "  - { name: s%d, size: %dx%d, driver: sim }\n", s, size[s],
			   size[s]);
	}
	buf_str(&b, "fibres:\n");
	for (int s = 0; s < t->sites; s++) {
		buf_printf(&b, "  - { from: 'h[%d-%d].p[0-%d]', to: 's%d.[1-%d]' }\n", s * t->each,
			   (s + 1) * t->each - 1, PORTS - 1, s, t->each * PORTS);
	}
	for (int e = 0; e < t->n_edges; e++) {
		for (int k = 0; k < t->trunks[e]; k++) {
			int x = t->edge[e][0], y = t->edge[e][1];

			buf_printf(&b, "  - { from: 's%d.[%d-%d]', to: 's%d.[%d-%d]', channels: "
				   "'0-%d' }\n", x, at[x] + 1, at[x] + t->waves, y, at[y] + 1,
				   at[y] + t->waves, t->waves - 1);
			at[x] += t->waves;
			at[y] += t->waves;
		}
	}
	buf_printf(&b, "jobs:\n%s", t->jobs);
	return buf_steal(&b);
}

/* ---- the integer program ---- */

/* x[lightpath][path][channel]; rows: lightpaths, then (edge, direction, channel). */
struct program {
	const struct tight *t;
	struct lp *lp;
	int arc, path[SITES], n;	/* sites so far */
};

static void add_path(struct program *p)
{
	const struct tight *t = p->t;

	for (int c = 0; c < t->waves; c++) {
		int rows[SITES + 1] = { p->arc }, col;
		double ones[SITES + 1] = { 1 };

		for (int i = 0; i + 1 < p->n; i++) {
			int e = edge_of(t, p->path[i], p->path[i + 1]);

			ones[i + 1] = 1;
			rows[i + 1] = t->n_arcs + (2 * e + (t->edge[e][0] == p->path[i])) *
						  t->waves + c;
		}
		if (t->sends[t->arc[p->arc][0]] >> c & 1) {
			assert_int_equal(lp_add_col(p->lp, 0, 0, 1, true, p->n, rows, ones, &col,
						    NULL), 0);
		}
	}
}

static void walk(struct program *p, int to)
{
	if (p->path[p->n - 1] == to) {
		add_path(p);
		return;
	}
	for (int s = 0; s < p->t->sites; s++) {
		bool fresh = edge_of(p->t, p->path[p->n - 1], s) >= 0;

		for (int i = 0; i < p->n; i++) {
			fresh &= p->path[i] != s;
		}
		if (fresh) {
			p->path[p->n++] = s;
			walk(p, to);
			p->n--;
		}
	}
}

static enum lp_outcome fits(const struct tight *t)
{
	struct program p = { .t = t, .lp = lp_new() };
	struct lp_options opt = { .max_iterations = 100000 };
	struct lp_result res;
	int row;

	for (int a = 0; a < t->n_arcs; a++) {
		assert_int_equal(lp_add_row(p.lp, LP_EQ, 1, &row, NULL), 0);
	}
	for (int k = 0; k < 2 * t->n_edges * t->waves; k++) {
		assert_int_equal(lp_add_row(p.lp, LP_LE, t->trunks[k / t->waves / 2], &row, NULL),
				 0);
	}
	for (p.arc = 0; p.arc < t->n_arcs; p.arc++) {
		p.path[0] = t->arc[p.arc][0] / t->each;
		p.n = 1;
		walk(&p, t->arc[p.arc][1] / t->each);
	}
	assert_int_equal(lp_run(p.lp, &opt, &res, NULL), 0);
	lp_free(p.lp);
	return res.outcome;
}

/* ---- all of it ---- */

/* Whether it is planned; what the program decides is decided so, and a refusal proven. */
static bool check(uint64_t seed, int waves, int *decided, int *by_lp)
{
	struct tight t;
	struct model_fabric *f;
	struct plan *p = NULL;
	struct err err = { 0 };
	enum lp_outcome all;
	char *text;
	int rc;

	make(&t, seed, waves);
	text = text_of(&t);
	f = fabric_of(text);
	rc = plan_make(f, NULL, &p, &err);
	if (rc) {
		assert_int_equal(rc, WEFT_EINFEASIBLE);
		all = fits(&t);
		if (all == LP_OPTIMAL || all == LP_FEASIBLE || strstr(err.msg, "nothing proves")) {
			fail_msg("%s\nseed %llu, %d channels (%d): %s", text,
				 (unsigned long long)seed, waves, (int)all, err.msg);
		}
		*decided += all == LP_INFEASIBLE;
		*by_lp += strstr(err.msg, "lp_solve") != NULL;
	}
	free(text);
	plan_free(p);
	model_free(f);
	return rc == 0;
}

static void planned_or_proven(void **state)
{
	int decided = 0, refused = 0, by_lp = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= ALL_OR_SOME(30, 4); seed++) {
		int waves = 1;

		while (waves < WAVES && !check(seed, waves, &decided, &by_lp)) {
			waves++;
			refused++;
		}
	}
	print_message("# %d refusals, %d by the program, too\n", refused, decided);
	assert_true(decided > ALL_OR_SOME(50, 4));
	assert_true(by_lp > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(planned_or_proven),
	};

	return cmocka_run_group_tests_name("plan/fits", tests, NULL, NULL);
}
