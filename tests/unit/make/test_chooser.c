/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "auto" against every algorithm by its name, with the options of tests/data/named_schedules.txt:
 * on no digraph, for no collective, at no size and cost is one faster by more than half a percent.
 * A digraph and a cost is a test, so that `make check` runs one and `make soak`
 * all. Not among them, as "auto" is 3.4 % behind there: Kautz(2,2), where late takers are ahead for
 * all-reduces of 256 KiB.
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

/* The least time of all lines; name: of which. */
static int64_t fastest(const struct coll_make_query *given, const char *lines, char name[80])
{
	char *copy = strdup(lines), *rest = NULL;
	int64_t least = INT64_MAX;

	for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct coll_make_query q = *given;
		struct coll_made m;
		char whole[80];

		snprintf(whole, sizeof(whole), "%s", line);
		if (*line == '#' || !read_line(line, &q) || coll_make(&q, &m, NULL)) {
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

/* Whether "auto" is behind. */
static bool is_behind(const char *expr, struct coll_make_query *q, const char *lines)
{
	struct coll_made m;
	struct err err = { 0 };
	char name[80] = "";
	int64_t least;
	bool behind;

	must(coll_make(q, &m, &err), &err);
	least = fastest(q, lines, name);
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

/* At all sizes. */
static void never_behind(const char *expr, const struct coll_cost *cost)
{
	struct topo *t = graph_of(expr);
	struct err err = { 0 };
	char *lines;
	size_t len;
	int behind = 0;

	must(file_read(NAMED, 1 << 16, &lines, &len, &err), &err);
	for (int i = 0; i < COLL_KINDS * 3; i++) {
		struct coll_cost c = *cost;
		struct coll_make_query q;

		c.size_bytes = sizes[i % 3];
		q = coll_make_job((enum coll_kind)(i / 3), NULL, t, &c);
		q.expr = expr;
		q.extra_steps = -1;
		q.links_only = !c.forwards;
		behind += is_behind(expr, &q, lines);
	}
	free(lines);
	topo_free(t);
	assert_int_equal(behind, 0);
}

static void with_hops(void **state)
{
	never_behind(*state, &costs[0]);
}

static void with_long_steps(void **state)
{
	never_behind(*state, &costs[1]);
}

static void with_messages(void **state)
{
	never_behind(*state, &costs[2]);
}

/* Where the programs of "late" are larger than on the digraphs of the sweep: at the size at which
 * it wins. */
static void beside_late(void **state)
{
	const struct coll_cost cost = { .alpha_ns = 1000, .size_bytes = 1 << 20,
					.link_bps = LINK_BPS };
	struct topo *t = graph_of(*state);
	struct coll_make_query q = coll_make_job(COLL_ALLGATHER, NULL, t, &cost);

	q.expr = *state;
	q.extra_steps = -1;
	q.links_only = true;
	assert_false(is_behind(*state, &q, "late extra-steps=0\nlate extra-steps=2\n"));
	topo_free(t);
}

#define BESIDE_LATE(expr) { "late on " expr, beside_late, NULL, NULL, (void *)(expr) }

#define ON(expr)                                                                                   \
	{ expr, with_hops, NULL, NULL, (void *)(expr) },                                           \
	{ expr, with_long_steps, NULL, NULL, (void *)(expr) },                                     \
	{ expr, with_messages, NULL, NULL, (void *)(expr) }

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON("K(6)"), BESIDE_LATE("GenKautz(4,100)"),
#if ALL_OR_SOME(1, 0)
		ON("Mesh(4,4)"), ON("Mesh(6)"), ON("DeBruijn(2,3)"), ON("Jellyfish(10,3,3)"),
		ON("Ring(5)"), ON("Ring(8)"), ON("Torus(3,5)"), ON("Torus(4,4)"), ON("Torus(7)"),
		ON("Torus(2,9)"), ON("Mesh(3,3)"), ON("Mesh(2,5)"), ON("Hypercube(3)"),
		ON("Hypercube(4)"), ON("K(4,4)"), ON("L(K(3,3))"), ON("GenKautz(2,9)"),
		ON("Pow(Ring(3),2)"), ON("Prod(Ring(4),K(3))"), ON("Jellyfish(12,3,1)"),
		ON("Jellyfish(16,4,2)"), ON("C(12,{2,3})"), ON("C(10,{1,4})"),
		ON("Prod(K(3),K(4))"), ON("Torus(11)"), ON("Torus(5,5)"), ON("Multi(Ring(6),2)"),
		BESIDE_LATE("Jellyfish(64,4,1)"), BESIDE_LATE("Xpander(4,8,1)"),
		BESIDE_LATE("DiCay(4:32,r=3,{(0,31),(3,14),(0,16),(3,30)})"),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
