/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels divide a step into pieces, each of which takes a place of its
 * connection. Here every piece is a node of a graph, with arcs for all that
 * one waits for; a program that may lock up has a cycle. That is tried for
 * every split and both numbers of places, and so is what the room
 * concludes from one chunk a piece.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/number/rng.h"
#include "runtime/msccl/msccl.h"
#include "tests/unit/msccl/lowered.h"

/* A program cut into pieces, numbered rank by rank in order. */
struct pieces {
	const struct msccl *p;
	int split, slots;
	int (*first)[1024][64];	/* by rank, threadblock, step */
	int n;
	int *waits;	/* by piece: pieces it still waits for */
	VEC(int) arcs;	/* from, to, from, to, ... */
};

static int pieces_of(const struct pieces *g, const struct msccl_step *s)
{
	return s->type == MSCCL_NOP ? 1 : (s->cnt + g->split - 1) / g->split;
}

static void arc(struct pieces *g, int from, int to)
{
	vec_push(&g->arcs, from);
	vec_push(&g->arcs, to);
}

static void number(struct pieces *g)
{
	for (int r = 0; r < g->p->ranks; r++) {
		for (size_t t = 0; t < g->p->gpus[r].tbs.n; t++) {
			const struct msccl_tb *tb = &g->p->gpus[r].tbs.v[t];

			for (size_t k = 0; k < tb->steps.n; k++) {
				g->first[r][t][k] = g->n;
				g->n += pieces_of(g, &tb->steps.v[k]);
			}
		}
	}
}

/* Order within threadblocks, and waits for other ones. */
static void local_arcs(struct pieces *g, int r, size_t t)
{
	const struct msccl_tb *tb = &g->p->gpus[r].tbs.v[t];
	int last = -1;

	for (size_t k = 0; k < tb->steps.n; k++) {
		const struct msccl_step *s = &tb->steps.v[k];
		int n = pieces_of(g, s);

		if (s->dep_tb >= 0) {
			const struct msccl_step *d =
				&g->p->gpus[r].tbs.v[s->dep_tb].steps.v[s->dep_step];

			arc(g, g->first[r][s->dep_tb][s->dep_step] + pieces_of(g, d) - 1,
			    g->first[r][t][k]);
		}
		for (int i = 0; i < n; i++) {
			if (last >= 0) {
				arc(g, last, g->first[r][t][k] + i);
			}
			last = g->first[r][t][k] + i;
		}
	}
}

/* The pieces that a threadblock sends (or receives), in order. */
static int pieces_through(const struct pieces *g, int r, size_t t, bool sends, int *out)
{
	const struct msccl_tb *tb = &g->p->gpus[r].tbs.v[t];
	int n = 0;

	for (size_t k = 0; k < tb->steps.n; k++) {
		const struct msccl_step *s = &tb->steps.v[k];

		for (int i = 0; i < pieces_of(g, s) &&
		     (sends ? msccl_sends(s->type) : msccl_receives(s->type)); i++) {
			out[n++] = g->first[r][t][k] + i;
		}
	}
	return n;
}

static void connection_arcs(struct pieces *g, int r, size_t t)
{
	static int sent[64 * MSCCL_MAX_COUNT], got[64 * MSCCL_MAX_COUNT];
	const struct msccl_tb *tb = &g->p->gpus[r].tbs.v[t];
	int n = pieces_through(g, r, t, true, sent);

	for (size_t u = 0; tb->send >= 0 && u < g->p->gpus[tb->send].tbs.n; u++) {
		const struct msccl_tb *other = &g->p->gpus[tb->send].tbs.v[u];

		if (other->recv != r || other->chan != tb->chan) {
			continue;
		}
		assert_int_equal(pieces_through(g, tb->send, u, false, got), n);
		for (int i = 0; i < n; i++) {
			arc(g, sent[i], got[i]);
			if (i + g->slots < n) {
				arc(g, got[i], sent[i + g->slots]);
			}
		}
	}
}

/* Arcs sorted by where they begin: next[head[v]] to next[head[v + 1] - 1]. */
static void sort_arcs(const struct pieces *g, int *head, int *next)
{
	for (size_t i = 0; i < g->arcs.n; i += 2) {
		head[g->arcs.v[i] + 1]++;
		g->waits[g->arcs.v[i + 1]]++;
	}
	for (int v = 0; v < g->n; v++) {
		head[v + 1] += head[v];
	}
	for (size_t i = 0; i < g->arcs.n; i += 2) {
		next[--head[g->arcs.v[i] + 1]] = g->arcs.v[i + 1];
	}
}

/* Whether all pieces can run: takes away those that wait for nothing. */
static bool acyclic(struct pieces *g)
{
	int *head = calloc((size_t)g->n + 2, sizeof(*head)), done = 0, n = 0;
	int *next = calloc(g->arcs.n / 2 + 1, sizeof(*next));
	int *open = calloc((size_t)g->n + 1, sizeof(*open));

	g->waits = calloc((size_t)g->n + 1, sizeof(*g->waits));
	assert_true(head && next && open && g->waits);
	sort_arcs(g, head, next);
	for (int v = 0; v < g->n; v++) {
		if (g->waits[v] == 0) {
			open[n++] = v;
		}
	}
	for (; done < n; done++) {
		int v = open[done];
		int end = v + 1 < g->n ? head[v + 2] : (int)g->arcs.n / 2;

		for (int i = head[v + 1]; i < end; i++) {
			if (--g->waits[next[i]] == 0) {
				open[n++] = next[i];
			}
		}
	}
	free(head);
	free(next);
	free(open);
	free(g->waits);
	return done == g->n;
}

/* Whether p ends when steps are divided so. */
static bool ends(const struct msccl *p, int split, int slots)
{
	struct pieces g = { .p = p, .split = split, .slots = slots };
	bool ok;

	g.first = calloc((size_t)p->ranks, sizeof(*g.first));
	assert_non_null(g.first);
	number(&g);
	for (int r = 0; r < p->ranks; r++) {
		for (size_t t = 0; t < p->gpus[r].tbs.n; t++) {
			local_arcs(&g, r, t);
			connection_arcs(&g, r, t);
		}
	}
	ok = acyclic(&g);
	vec_fini(&g.arcs);
	free(g.first);
	return ok;
}

static int largest_count(const struct msccl *p)
{
	int most = 1;

	for (int r = 0; r < p->ranks; r++) {
		for (size_t t = 0; t < p->gpus[r].tbs.n; t++) {
			for (size_t k = 0; k < p->gpus[r].tbs.v[t].steps.n; k++) {
				int cnt = p->gpus[r].tbs.v[t].steps.v[k].cnt;

				most = cnt > most ? cnt : most;
			}
		}
	}
	return most;
}

/* Every split of every protocol, up to the size that the program says. */
static void ends_always(const struct msccl *p, enum msccl_dialect dialect)
{
	int from = p->max_bytes ? msccl_split(p, dialect, p->max_bytes) : 1;
	int most = largest_count(p);

	for (int m = from < most ? from : most; m <= most; m++) {
		assert_true(ends(p, m, msccl_slots(p->proto)));
		assert_true(ends(p, m, 8));
	}
}

static void lowered_ends(enum coll_kind kind, const char *expr, enum msccl_dialect dialect)
{
	struct coll_sched *s = bfb(kind, expr);
	struct err err = { 0 };
	struct msccl p;

	must(msccl_lower(s, dialect, &p, &err), &err);
	assert_int_equal(p.max_bytes, 0);
	ends_always(&p, dialect);
	msccl_fini(&p);
	coll_free(s);
}

/* These locked up over 16 MiB, 16 MiB, 64 MiB and 64 MiB, when a step counted
 * as one piece however large it was. */
static void test_ring_over_16_mib(void **state)
{
	(void)state;
	lowered_ends(COLL_ALLREDUCE, "Ring(8)", MSCCL_AZURE);
	lowered_ends(COLL_ALLREDUCE, "Ring(8)", MSCCL_RCCL);
}

static void test_hypercube_over_16_mib(void **state)
{
	(void)state;
	lowered_ends(COLL_ALLREDUCE, "Hypercube(3)", MSCCL_AZURE);
	lowered_ends(COLL_ALLREDUCE, "Hypercube(3)", MSCCL_RCCL);
}

static void test_torus_over_64_mib(void **state)
{
	(void)state;
	lowered_ends(COLL_ALLREDUCE, "Torus(4,4)", MSCCL_AZURE);
	lowered_ends(COLL_ALLREDUCE, "Torus(4,4)", MSCCL_RCCL);
}

static void test_circulant_over_64_mib(void **state)
{
	(void)state;
	lowered_ends(COLL_ALLREDUCE, "C(16,{1,4})", MSCCL_AZURE);
	lowered_ends(COLL_ALLREDUCE, "C(16,{1,4})", MSCCL_RCCL);
}

/* In every protocol and in copies. */
static void test_protocols(void **state)
{
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE,
	};

	(void)state;
	for (int i = 0; i < 3 * MSCCL_PROTOS * 3; i++) {
		struct msccl_options o = { .dialect = MSCCL_AZURE,
					   .proto = (enum msccl_proto)(i % MSCCL_PROTOS),
					   .instances = 1 + i / MSCCL_PROTOS % 3 };
		struct coll_sched *s = bfb(kinds[i / (3 * MSCCL_PROTOS)], "C(12,{2,3})");
		struct err err = { 0 };
		struct msccl p;

		must(msccl_lower_as(s, &o, &p, &err), &err);
		assert_int_equal(p.loop % (12 * o.instances), 0);
		assert_int_equal(p.channels % o.instances, 0);
		ends_always(&p, MSCCL_AZURE);
		msccl_fini(&p);
		coll_free(s);
	}
}

/* ---- what one chunk a piece says of others ---- */

/* One step fewer or swapped, or other counts: some programs then lock up, many
 * only when they are divided. */
static void spoil(struct msccl *p, struct rng *rng)
{
	struct msccl_gpu *g = &p->gpus[rng_below(rng, (uint64_t)p->ranks)];
	struct msccl_tb *tb = &g->tbs.v[rng_below(rng, g->tbs.n)];
	size_t k = rng_below(rng, tb->steps.n);
	struct msccl_step *s = &tb->steps.v[k];

	if (k + 1 < tb->steps.n && s->type == s[1].type && s->cnt == s[1].cnt) {
		struct msccl_step x = s[0];

		s[0] = s[1];
		s[1] = x;
	}
}

/* All counts times `by`, with room for them. */
static void stretch(struct msccl *p, int by)
{
	p->loop *= by;
	for (int r = 0; r < p->ranks; r++) {
		for (int b = 0; b < 3; b++) {
			p->gpus[r].chunks[b] *= by;
		}
		for (size_t t = 0; t < p->gpus[r].tbs.n; t++) {
			for (size_t k = 0; k < p->gpus[r].tbs.v[t].steps.n; k++) {
				struct msccl_step *s = &p->gpus[r].tbs.v[t].steps.v[k];

				s->src = s->src < 0 ? s->src : s->src * by;
				s->dst = s->dst < 0 ? s->dst : s->dst * by;
				s->cnt *= by;
			}
		}
	}
}

/* The verdict of one chunk a piece and two places, beside every other. */
static void compare(const struct msccl *p, int *held, int *locked)
{
	struct err err = { 0 };
	bool ok = ends(p, 1, 2);
	int most = largest_count(p), least, from = most + 1;

	for (int m = most; m >= 1 && ends(p, m, 2); m--) {
		from = m;
		assert_true(ends(p, m, 8));
	}
	for (int m = most; m >= 1 && ok; m--) {
		assert_int_equal(from, 1);
	}
	*held += ok;
	*locked += !ok;
	/* What the room finds; other faults of a spoilt program count as
	 * not held there. */
	if (msccl_least_split(p, MSCCL_AZURE, &least, &err) == 0) {
		assert_int_equal(least, from);
	} else if (strstr(err.msg, "deadlock")) {
		assert_int_equal(from, most + 1);
	}
}

static void test_finest_split(void **state)
{
	static const char *const exprs[] = { "Ring(5)", "Ring(8)", "Hypercube(3)",
					     "C(9,{1,2})", "Torus(3,3)" };
	struct rng rng;
	int held = 0, locked = 0;

	(void)state;
	rng_seed(&rng, 7);
	for (int i = 0; i < 200; i++) {
		struct coll_sched *s = bfb(i % 2 ? COLL_ALLREDUCE : COLL_ALLGATHER,
					   exprs[i % 5]);
		struct err err = { 0 };
		struct msccl p;

		must(msccl_lower(s, MSCCL_AZURE, &p, &err), &err);
		stretch(&p, 1 + (int)rng_below(&rng, 5));
		for (int k = 0; k < i / 5 % 4; k++) {
			spoil(&p, &rng);
		}
		compare(&p, &held, &locked);
		msccl_fini(&p);
		coll_free(s);
	}
	print_message("# %d programs end at every split, %d do not\n", held, locked);
	assert_true(held > 10 && locked > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring_over_16_mib),
		cmocka_unit_test(test_hypercube_over_16_mib),
		cmocka_unit_test(test_torus_over_64_mib),
		cmocka_unit_test(test_circulant_over_64_mib),
		cmocka_unit_test(test_protocols),
		cmocka_unit_test(test_finest_split),
	};

	return cmocka_run_group_tests_name("msccl/splits", tests, NULL, NULL);
}
