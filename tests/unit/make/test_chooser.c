/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "auto" against every algorithm by its name, with the options of tests/data/named_schedules.txt:
 * on no digraph, for no collective, at no size and cost is one faster by more than half a percent.
 * A digraph and a cost is a test, so that `make check` runs one and `make soak`
 * all; of digraphs on which that takes long, `make check` looks at one collective and size, beside
 * some of the algorithms.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/make/make.h"
#include "lib/base/file.h"
#include "tests/unit/schedule/common.h"
#include "tests/unit/world.h"

#define NAMED "tests/data/named_schedules.txt"
#define LINK_BPS INT64_C(100000000000)
#define WITHIN 1.005

static const struct coll_cost costs[] = {
	{ .alpha_ns = 500, .forwards = true, .hop_ns = 400, .link_bps = LINK_BPS },
	{ .alpha_ns = 10000, .link_bps = LINK_BPS },
	{ .alpha_ns = 1500, .forwards = true, .hop_ns = 400, .message_ns = 500,
	  .link_bps = LINK_BPS },
};
static const int64_t sizes[] = { 256, 1 << 18, INT64_C(1) << 28 };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* One line of the file, for a collective. */
static bool read_option(char *text, struct coll_make_query *q)
{
	char *value = strchr(text, '=');
	const struct coll_option *o;
	char *field;

	if (value) {
		*value++ = '\0';
	}
	o = coll_option_taken(text, q->kind, q->algorithm);
	if (!o) {
		return false;
	}
	field = (char *)q + o->offset;
	if (o->type == COLL_OPTION_FLAG) {
		*(bool *)field = true;
	} else if (o->type == COLL_OPTION_WORD) {
		*(int *)field = strcmp(value, "one") == 0 ? COLL_ONE_PORT : COLL_ALL_PORTS;
	} else {
		assert_int_equal(o->type, COLL_OPTION_INT);
		*(int *)field = atoi(value);
	}
	return true;
}

/* False: it is not for the collective. */
static bool read_line(char *line, struct coll_make_query *q)
{
	char *rest = NULL, *word = strtok_r(line, " ", &rest);

	q->algorithm = coll_algorithm_find(word, q->kind);
	while (q->algorithm && (word = strtok_r(NULL, " ", &rest))) {
		if (!read_option(word, q)) {
			return false;
		}
	}
	return q->algorithm;
}

/* The least time of every n-th line; name: of which. */
static int64_t fastest(const struct coll_make_query *given, const char *lines, size_t n,
		       char name[80])
{
	char *copy = strdup(lines), *rest = NULL;
	int64_t least = INT64_MAX;
	size_t i = 0;

	for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct coll_make_query q = *given;
		struct coll_made m;
		char whole[80];

		snprintf(whole, sizeof(whole), "%s", line);
		if (*line == '#' || !in_turn(i++, n) || !read_line(line, &q) ||
		    coll_make(&q, &m, NULL)) {
			continue;
		}
		if (m.time_ns < least) {
			least = m.time_ns;
			strcpy(name, whole);
		}
		coll_made_fini(&m);
	}
	free(copy);
	return least;
}

/* Whether "auto" is behind one of every n-th line. */
static bool is_behind(const char *expr, struct coll_make_query *q, const char *lines, size_t n)
{
	struct coll_made m;
	struct err err = { 0 };
	char name[80] = "";
	int64_t least;
	bool behind;

	must(coll_make(q, &m, &err), &err);
	least = fastest(q, lines, n, name);
	behind = (double)m.time_ns > (double)least * WITHIN;
	if (behind) {
		print_message("# %s on %s, alpha %lld, %lld B: auto (%s) %lld ns, %s %lld\n",
			      coll_kind_name(q->kind), expr, (long long)q->cost->alpha_ns,
			      (long long)q->cost->size_bytes, m.algorithm->name,
			      (long long)m.time_ns, name, (long long)least);
	}
	coll_made_fini(&m);
	return behind;
}

/* ---- digraphs ---- */

/* What ranks see, and where there are switches, what is there. */
struct place {
	struct topo *seen;
	struct coll_fabric fabric;
};

static void place_init(struct place *p, const char *text)
{
	struct topo *t = graph_less(text);
	struct err err = { 0 };

	*p = (struct place){ .seen = t };
	if (topo_ranks(t) < topo_n(t)) {
		p->fabric = (struct coll_fabric){ .topo = t, .name = "f" };
		must(coll_terminals_see(t, &p->seen, &err), &err);
	}
}

static void place_fini(struct place *p)
{
	topo_free(p->seen);
	topo_free(p->fabric.topo);
}

static struct coll_make_query query(const struct place *p, const char *text, enum coll_kind kind,
				    const struct coll_cost *cost)
{
	struct coll_make_query q = coll_make_job(kind, NULL, p->seen, cost);

	q.expr = strstr(text, " less ") ? NULL : text;
	q.extra_steps = -1;
	q.links_only = !cost->forwards;
	q.fabric = p->fabric.topo ? &p->fabric : NULL;
	q.physical = p->fabric.topo;
	return q;
}

/* For every n-th of all collectives and sizes, beside every k-th line. */
static void never_behind(const char *text, const struct coll_cost *cost, size_t n, size_t k)
{
	struct place p;
	struct err err = { 0 };
	char *lines;
	size_t len;
	int behind = 0;

	must(file_read(NAMED, 1 << 16, &lines, &len, &err), &err);
	place_init(&p, text);
	for (size_t i = 0; i < COLL_KINDS * N_SIZES; i++) {
		struct coll_cost c = *cost;
		struct coll_make_query q;

		c.size_bytes = sizes[i % N_SIZES];
		q = query(&p, text, (enum coll_kind)(i / N_SIZES), &c);
		behind += in_turn(i, n) && is_behind(text, &q, lines, k);
	}
	free(lines);
	place_fini(&p);
	assert_int_equal(behind, 0);
}

static void with_hops(void **state)
{
	never_behind(*state, &costs[0], 1, 1);
}

static void with_long_steps(void **state)
{
	never_behind(*state, &costs[1], 1, 1);
}

static void with_messages(void **state)
{
	never_behind(*state, &costs[2], 1, 1);
}

/* One of 24, beside some lines, others with each commit. */
#define LARGE COLL_KINDS * N_SIZES, 7

static void large_with_hops(void **state)
{
	never_behind(*state, &costs[0], LARGE);
}

static void large_with_long_steps(void **state)
{
	never_behind(*state, &costs[1], LARGE);
}

static void large_with_messages(void **state)
{
	never_behind(*state, &costs[2], LARGE);
}

/* Where the programs of "late" are larger than on the digraphs of the sweep: at the size at which
 * it wins. */
static void beside_late(void **state)
{
	const struct coll_cost cost = { .alpha_ns = 1000, .size_bytes = 1 << 20,
					.link_bps = LINK_BPS };
	struct place p;
	struct coll_make_query q;

	place_init(&p, *state);
	q = query(&p, *state, COLL_ALLGATHER, &cost);
	assert_false(is_behind(*state, &q, "late extra-steps=0\nlate extra-steps=2\n", 1));
	place_fini(&p);
}

#define BESIDE_LATE(expr) { "late on " expr, beside_late, NULL, NULL, (void *)(expr) }

#define ON(expr)                                                                                   \
	{ expr, with_hops, NULL, NULL, (void *)(expr) },                                           \
	{ expr, with_long_steps, NULL, NULL, (void *)(expr) },                                     \
	{ expr, with_messages, NULL, NULL, (void *)(expr) }

#define ON_LARGE(expr)                                                                             \
	{ expr, large_with_hops, NULL, NULL, (void *)(expr) },                                     \
	{ expr, large_with_long_steps, NULL, NULL, (void *)(expr) },                               \
	{ expr, large_with_messages, NULL, NULL, (void *)(expr) }

#define DICAY "DiCay(4:32,r=3,{(0,31),(3,14),(0,16),(3,30)})"

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON("K(6)"), ON_LARGE("Star(3)"), BESIDE_LATE("GenKautz(4,100)"),
#if ALL_OR_SOME(1, 0)
		ON("Mesh(4,4)"), ON("Mesh(6)"), ON("DeBruijn(2,3)"), ON("Jellyfish(10,3,3)"),
		ON("Ring(5)"), ON("Ring(8)"), ON("Torus(3,5)"), ON("Torus(4,4)"), ON("Torus(7)"),
		ON("Torus(2,9)"), ON("Mesh(3,3)"), ON("Mesh(2,5)"), ON("Hypercube(3)"),
		ON("Hypercube(4)"), ON("K(4,4)"), ON("L(K(3,3))"), ON("GenKautz(2,9)"),
		ON("Pow(Ring(3),2)"), ON("Prod(Ring(4),K(3))"), ON("Jellyfish(12,3,1)"),
		ON("Jellyfish(16,4,2)"), ON("C(12,{2,3})"), ON("C(10,{1,4})"),
		ON("Prod(K(3),K(4))"), ON("Torus(11)"), ON("Torus(5,5)"), ON("Multi(Ring(6),2)"),
		BESIDE_LATE("Jellyfish(64,4,1)"), BESIDE_LATE("Xpander(4,8,1)"),
		BESIDE_LATE(DICAY),
		ON("Kautz(2,2)"), ON("HyperX(3,3)"), ON("Star(5)"), ON("Rails(2,3)"),
		ON_LARGE("Torus(4,4) less 0-1"), ON_LARGE("Torus(8,8) less 0-1"),
		ON_LARGE("Mesh(4,3) less 4-5"),
		ON_LARGE("DgxA100(2,nvlink)"), ON_LARGE("Rails(4,8)"), ON_LARGE("HyperX(4,6)"),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
