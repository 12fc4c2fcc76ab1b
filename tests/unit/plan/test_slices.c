/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices of cubes: the cross-connects of all switches against the rules of such machines, read here
 * from the numbers of their ports alone; the fewest circuits against a search through all
 * assignments, which shares no code with the planner; and laws of what stays.
 *
 * A fabric of N cubes of 4 x 4 x 4 has 48 switches of 2N ports a side: cube c has port c of the
 * plus face and port N + c of the minus face at that of its position.
 */
#include <stdio.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/world.h"

#define MAX_CUBES 64

/* A slice as a fabric file has it. */
struct slice_text {
	const char *name, *nodes;
	int size[3];		/* cubes */
	bool twist;
	int spares;
};

static struct model_fabric *fabric(int cubes, const struct slice_text *w, int n)
{
	struct buf b = { 0 };
	struct model_fabric *f;

	buf_printf(&b, "weft: 1\nfabric: t\ncubes:\n  - { name: 'c[00-%02d]', rate: 400Gbps, "
		   "switches: 'x[00-15],y[00-15],z[00-15]' }\nswitches:\n"
		   "  - { name: 'x[00-15],y[00-15],z[00-15]', size: %dx%d, driver: sim, "
		   "domain: all }\njobs:%s\n", cubes - 1, 2 * cubes, 2 * cubes, n ? "" : " []");
	for (int i = 0; i < n; i++) {
		buf_printf(&b, "  - { name: %s, nodes: '%s', shape: %dx%dx%d, twist: %s, spares: "
			   "%d, collective: allreduce, size: 1MiB, algorithm: bucket }\n",
			   w[i].name, w[i].nodes, 4 * w[i].size[0], 4 * w[i].size[1],
			   4 * w[i].size[2], w[i].twist ? "true" : "false", w[i].spares);
	}
	f = fabric_of(buf_cstr(&b));
	buf_fini(&b);
	return f;
}

/* ---- the rules ----------------------------------------------------------- */

/* What the switches of an axis do: whose minus face is at the plus face of each cube, -1: none. */
struct joined {
	int n, next[3][MAX_CUBES];
};

/* The switches of all positions of an axis do the same, a port has one circuit at most, light goes
 * both ways, and two plus or two minus faces meet only of two cubes. */
static void read_rules(const struct plan *p, int cubes, struct joined *out)
{
	int seen[3][2 * MAX_CUBES];

	memset(seen, 0xff, sizeof(seen));
	memset(out->next, 0xff, sizeof(out->next));
	out->n = cubes;
	assert_int_equal(p->n_devices, 48);
	for (int i = 0; i < p->n_devices; i++) {
		const struct plan_device *d = &p->devices[i];
		int axis = p->fabric->devices[d->device].name[0] - 'x', at[2 * MAX_CUBES];
		int back[2 * MAX_CUBES];

		memset(at, 0xff, sizeof(at));
		memset(back, 0xff, sizeof(back));
		for (int k = 0; k < d->n_want; k++) {
			int in = d->want[k].in, to = d->want[k].out;

			assert_in_range(in, 0, 2 * cubes - 1);
			assert_in_range(to, 0, 2 * cubes - 1);
			assert_int_equal(at[in], -1);
			assert_int_equal(back[to], -1);
			at[in] = to;
			back[to] = in;
			assert_true(in % cubes != to % cubes || in / cubes != to / cubes);
		}
		for (int in = 0; in < 2 * cubes; in++) {
			assert_true(at[in] < 0 || at[at[in]] == in);
			assert_true(seen[axis][in] == -1 || seen[axis][in] == at[in]);
			seen[axis][in] = at[in];
		}
		for (int c = 0; c < cubes; c++) {
			out->next[axis][c] = at[c] < 0 ? -1 : at[c] - cubes;
		}
	}
}

/* From a cube so many steps along each axis; all steps are there. */
static int walk(const struct joined *j, int from, int x, int y, int z)
{
	const int steps[3] = { x, y, z };

	for (int axis = 0; axis < 3; axis++) {
		for (int i = 0; i < steps[axis]; i++) {
			from = j->next[axis][from];
			assert_true(from >= 0);
		}
	}
	return from;
}

/* The cubes from one on are just those of a torus: all others that are reached are of other
 * coordinates, and after the last along an axis comes the first, or that of the twist. */
static int check_torus(const struct joined *j, int first, const int size[3], bool twist)
{
	const int k = size[0], shift = twist ? k : 0;
	bool mine[MAX_CUBES] = { false };
	int n = 0;

	for (int i = 0; i < size[0] * size[1] * size[2]; i++) {
		int x = i / size[2] / size[1], y = i / size[2] % size[1], z = i % size[2];
		int c = walk(j, first, x, y, z);

		assert_false(mine[c]);
		mine[c] = true;
		n++;
		assert_int_equal(walk(j, c, size[0], 0, 0),
				 walk(j, c, 0, size[1] > k ? shift : 0, shift));
		assert_int_equal(walk(j, c, 0, size[1], 0),
				 walk(j, c, 0, 0, size[1] > k ? 0 : shift));
		assert_int_equal(walk(j, c, 0, 0, size[2]), c);
		assert_int_equal(walk(j, walk(j, c, 1, 0, 0), 0, 1, 1),
				 walk(j, walk(j, c, 0, 0, 1), 1, 1, 0));
	}
	return n;
}

static int cube_of(const char *name)
{
	return atoi(name + 1);
}

/* All of it; slices share nothing, and each circuit of a job carries the arc of its chips. */
static void check_plan(const struct plan *p, int cubes, const struct slice_text *w, int n,
		       struct joined *j)
{
	bool taken[MAX_CUBES] = { false };

	read_rules(p, cubes, j);
	for (int i = 0; i < n; i++) {
		const struct plan_job *pj = &p->jobs[i];
		int all = w[i].size[0] * w[i].size[1] * w[i].size[2];

		assert_int_equal(pj->n_circuits, 96 * all);
		assert_int_equal(coll_verify(pj->sched, NULL, NULL), 0);
		for (int k = 0; k < all; k++) {
			/* The chip at the origin of each cube. */
			int y = w[i].size[1], z = w[i].size[2];
			int rank = (k / z / y * 4 * 4 * y + k / z % y * 4) * 4 * z + k % z * 4;
			const char *name = coll_placement(pj->sched)->hosts[rank];
			int c = cube_of(name), first = cube_of(coll_placement(pj->sched)->hosts[0]);

			assert_false(taken[c]);
			taken[c] = true;
			assert_int_equal(walk(j, first, k / z / y, k / z % y, k % z), c);
			if (k == 0) {
				assert_int_equal(check_torus(j, c, w[i].size, w[i].twist), all);
			}
		}
	}
}

/* ---- changes ------------------------------------------------------------- */

/* What is there, and the fabric that it is of. */
struct state {
	int cubes;
	struct model_fabric *f;
	struct plan *p;
	struct plan_light *light;
	struct joined now;
};

static void state_fini(struct state *s)
{
	free(s->light);
	plan_free(s->p);
	model_free(s->f);
}

/* Plans these slices from what is there, checks them, and makes that what is there. Returns the
 * circuits made, both ways of each as one. */
static int change(struct state *s, const struct slice_text *w, int n)
{
	struct plan_base base = { .observed = s->light, .intent = s->light };
	struct state next = { .cubes = s->cubes, .f = fabric(s->cubes, w, n) };
	int made;

	next.p = plan_of(next.f, s->light ? &base : NULL);
	check_plan(next.p, s->cubes, w, n, &next.now);
	made = next.p->n_add;
	next.light = light_after(next.p);
	state_fini(s);
	*s = next;
	assert_int_equal(made % 2, 0);
	return made / 2;
}

static int made(int cubes, const struct slice_text *before, int n, const struct slice_text *after,
		int m)
{
	struct state s = { .cubes = cubes };
	int count;

	change(&s, before, n);
	count = change(&s, after, m);
	assert_int_equal(change(&s, after, m), 0);
	state_fini(&s);
	return count;
}

static void test_one_cube_is_replaced(void **state)
{
	const struct slice_text small[] = { { "a", "c00", { 1, 1, 1 }, false, 0 },
				      { "a", "c01", { 1, 1, 1 }, false, 0 } };
	const struct slice_text flat[] = { { "a", "c[00-03]", { 1, 2, 2 }, false, 0 },
				     { "a", "c00,c05,c02,c03", { 1, 2, 2 }, false, 0 } };
	const struct slice_text cube[] = { { "a", "c[00-07]", { 2, 2, 2 }, false, 0 },
				     { "a", "c08,c[01-07]", { 2, 2, 2 }, false, 0 } };

	(void)state;
	assert_int_equal(made(9, &small[0], 1, &small[1], 1), 48);
	assert_int_equal(made(9, &flat[0], 1, &flat[1], 1), 80);
	assert_int_equal(made(9, &cube[0], 1, &cube[1], 1), 96);
}

static void test_two_neighbours_are_replaced(void **state)
{
	const struct slice_text w[] = { { "a", "c[00-26]", { 3, 3, 3 }, false, 0 },
				  { "a", "c[00-11],c27,c28,c[14-26]", { 3, 3, 3 }, false, 0 } };

	(void)state;
	assert_int_equal(made(29, &w[0], 1, &w[1], 1), 176);
}

static void test_shapes_change(void **state)
{
	const struct slice_text cube = { "a", "c[00-07]", { 2, 2, 2 }, false, 0 };
	const struct slice_text flat = { "a", "c[00-07]", { 1, 2, 4 }, false, 0 };
	const struct slice_text two[] = { { "a", "c00,c01", { 1, 1, 2 }, false, 0 },
				    { "b", "c02,c03", { 1, 1, 2 }, false, 0 } };
	const struct slice_text one = { "a", "c[00-03]", { 1, 2, 2 }, false, 0 };
	const struct slice_text twist = { "a", "c00,c01", { 1, 1, 2 }, true, 0 };

	(void)state;
	assert_int_equal(made(8, &cube, 1, &flat, 1), 192);
	assert_int_equal(made(8, two, 2, &one, 1), 64);
	assert_int_equal(made(8, two, 1, &twist, 1), 64);
}

/* ---- the fewest ---------------------------------------------------------- */

/* Next permutation in the order of words; false after the last. */
static bool permute(int *v, int n)
{
	int i = n - 2, k = n - 1;

	while (i >= 0 && v[i] > v[i + 1]) {
		i--;
	}
	if (i < 0) {
		return false;
	}
	while (v[k] < v[i]) {
		k--;
	}
	for (int t = v[i]; v[i] != v[k];) {
		v[i] = v[k];
		v[k] = t;
		break;
	}
	for (int a = i + 1, z = n - 1; a < z; a++, z--) {
		int t = v[a];

		v[a] = v[z];
		v[z] = t;
	}
	return true;
}

/* Links along the axes of a torus that are not there, with cube v[i] at the i-th coordinates;
 * order[i]: which axis of the machine the shape's i-th is on. */
static int missing(const struct joined *j, const int *v, const int size[3], bool twist,
		   const int order[3])
{
	int count = 0;

	for (int i = 0; i < size[0] * size[1] * size[2]; i++) {
		for (int axis = 0; axis < 3; axis++) {
			int at[3] = { i / size[2] / size[1], i / size[2] % size[1], i % size[2] };
			int k = size[0];

			if (++at[axis] == size[axis] && twist && axis == 0) {
				at[1] += size[1] > k ? k : 0;
				at[2] += k;
			} else if (at[axis] == size[axis] && twist && axis == 1 && size[1] == k) {
				at[2] += k;
			}
			for (int a = 0; a < 3; a++) {
				at[a] %= size[a];
			}
			count += j->next[order[axis]][v[i]] !=
				 v[(at[0] * size[1] + at[1]) * size[2] + at[2]];
		}
	}
	return count;
}

/* Over all assignments, of one order of the axes or (any) of all. */
static int fewest(const struct joined *j, int n, const int size[3], bool twist, bool any)
{
	int order[3] = { 0, 1, 2 }, best = INT32_MAX;

	do {
		int v[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };

		do {
			int now = missing(j, v, size, twist, order);

			best = now < best ? now : best;
		} while (permute(v, n));
	} while (any && permute(order, 3));
	return 16 * best;
}

/* From each shape of eight cubes to each other: as few as any assignment makes, and on the values
 * that are known also with the axes in any order. */
static void test_as_few_as_all_assignments(void **state)
{
	static const struct slice_text shapes[] = {
		{ "a", "c[00-07]", { 2, 2, 2 }, false, 0 },
		{ "a", "c[00-07]", { 1, 2, 4 }, false, 0 },
		{ "a", "c[00-07]", { 1, 1, 8 }, false, 0 },
		{ "a", "c[00-07]", { 4, 2, 1 }, false, 0 },
		{ "a", "c03,c01,c00,c07,c06,c02,c05,c04", { 2, 2, 2 }, false, 0 },
	};
	const int n = ALL_OR_SOME(5, 2);

	(void)state;
	for (int i = 0; i < n * n; i++) {
		struct state s = { .cubes = 8 };
		int least, count;

		change(&s, &shapes[i / n], 1);
		least = fewest(&s.now, 8, shapes[i % n].size, false, false);
		if (i == 1) {
			assert_int_equal(fewest(&s.now, 8, shapes[1].size, false, true), 192);
		}
		count = change(&s, &shapes[i % n], 1);
		assert_int_equal(count, least);
		assert_int_equal(s.p->jobs[0].moves_bound, 2 * least);
		state_fini(&s);
	}
}

/* Light of other slices, in whatever order: never more than an assignment of the same cubes needs,
 * never fewer than the bound. */
static void test_on_what_random_slices_left(void **state)
{
	static const int sizes[][3] = { { 1, 1, 2 }, { 1, 2, 2 }, { 1, 1, 4 }, { 1, 1, 1 },
					{ 2, 2, 2 }, { 1, 2, 3 }, { 1, 1, 6 }, { 1, 2, 4 } };
	struct state s = { .cubes = 8 };
	struct rng r;

	(void)state;
	rng_seed(&r, 44);
	for (int round = 0; round < ALL_OR_SOME(60, 8); round++) {
		const int *size = sizes[rng_below(&r, 8)];
		struct slice_text w = { .name = "a", .nodes = "c[00-07]" };
		char nodes[64] = "c00,c01,c02,c03,c04,c05,c06,c07";
		int n = size[0] * size[1] * size[2], least;

		memcpy(w.size, size, sizeof(w.size));
		w.twist = size[0] == 1 && size[2] == 2 && rng_below(&r, 2);
		nodes[4 * n - 1] = '\0';
		w.nodes = nodes;
		least = s.p ? fewest(&s.now, n, size, w.twist, false) : 0;
		n = change(&s, &w, 1);
		assert_true(round == 0 || n == least);
	}
	state_fini(&s);
}

/* Of rings along an axis that are l cubes long, n in all, the links that cannot stay where they are
 * to be m long: a longer ring is cut into pieces of m cubes, a shorter one is opened. */
static int must_go(int n, int l, int m)
{
	return l == m ? 0 : n / l * (l > m ? (l + m - 1) / m : 1);
}

/* More cubes than can be gone through: never below what any assignment needs, and, on what people
 * do, just that. */
static void test_large_shapes_change(void **state)
{
	static const int sizes[][3] = { { 1, 4, 4 }, { 2, 2, 4 }, { 1, 2, 8 }, { 4, 4, 1 },
					{ 1, 1, 16 } };
	int far = 0;

	(void)state;
	for (int i = 0; i < 5 * ALL_OR_SOME(5, 1); i++) {
		struct slice_text w = { "a", "c[00-15]", { 0 }, false, 0 };
		struct state s = { .cubes = 16 };
		int bound = 0, listed, order[16], count;

		memcpy(w.size, sizes[i / 5], sizeof(w.size));
		change(&s, &w, 1);
		for (int axis = 0; axis < 3; axis++) {
			bound += 16 * must_go(16, sizes[i / 5][axis], sizes[i % 5][axis]);
		}
		for (int k = 0; k < 16; k++) {
			order[k] = k;
		}
		listed = 16 * missing(&s.now, order, sizes[i % 5], false, (int[]){ 0, 1, 2 });
		memcpy(w.size, sizes[i % 5], sizeof(w.size));
		count = change(&s, &w, 1);
		assert_in_range(count, bound, listed);
		assert_in_range(s.p->jobs[0].moves_bound, 0, 2 * count);
		assert_int_equal(s.p->jobs[0].moves_bound, 2 * bound);
		far += count > bound;
		state_fini(&s);
	}
	/* 4x4x1 to 2x2x4: 576, where 512 is the bound. */
	assert_true(far <= 1);
}

/* ---- what stays ---------------------------------------------------------- */

static void test_light_stays_until_it_is_wanted(void **state)
{
	const struct slice_text two[] = { { "a", "c[00-03]", { 1, 2, 2 }, false, 0 },
				    { "b", "c[04-05]", { 1, 1, 2 }, false, 0 } };
	const struct slice_text again = { "z", "c03,c01,c02,c00", { 1, 2, 2 }, false, 0 };
	const struct slice_text other[] = { { "b", "c[04-05]", { 1, 1, 2 }, false, 0 },
				      { "y", "c00,c06", { 1, 1, 2 }, false, 0 } };
	struct state s = { .cubes = 8 };

	(void)state;
	change(&s, two, 2);
	assert_int_equal(change(&s, &two[1], 1), 0);
	assert_int_equal(s.p->n_del, 0);
	assert_int_equal(change(&s, &again, 1), 0);
	assert_int_equal(s.p->n_del, 0);
	change(&s, other, 2);
	for (int i = 0; i < s.p->n_devices; i++) {
		const struct plan_device *d = &s.p->devices[i];

		for (int k = 0; k < d->n_del; k++) {
			/* Only what is at one of the two cubes, neither those of b. */
			int in = d->del[k].in % 8, out = d->del[k].out % 8;

			assert_true(in == 0 || in == 6 || out == 0 || out == 6);
			assert_true(in < 4 || in > 5);
		}
	}
	state_fini(&s);
}

static void test_a_spare_stands_in(void **state)
{
	const struct slice_text w = { "a", "c[00-08]", { 2, 2, 2 }, false, 1 };
	struct state s = { .cubes = 9 };
	struct plan_light *seen;
	struct plan_base base;
	struct optics_xc dark[8];
	struct plan *p;
	const int port = 3;
	struct joined j;

	(void)state;
	change(&s, &w, 1);
	seen = calloc(48, sizeof(*seen));
	memcpy(seen, s.light, 48 * sizeof(*seen));
	ports_fail(&seen[17], dark, 1, &port, 0, NULL);
	base = (struct plan_base){ .observed = seen, .intent = s.light };
	p = plan_of(s.f, &base);
	assert_int_equal(p->n_add, 2 * 96);
	assert_null(p->jobs[0].loss);
	read_rules(p, 9, &j);
	assert_int_equal(check_torus(&j, 8, w.size, false), 8);
	for (int rank = 0; rank < 512; rank++) {
		const char *was = coll_placement(s.p->jobs[0].sched)->hosts[rank];
		const char *is = coll_placement(p->jobs[0].sched)->hosts[rank];

		assert_string_equal(is, strcmp(was, "c03") == 0 ? "c08" : was);
	}
	plan_free(p);
	free(seen);
	state_fini(&s);
}

static void test_a_dead_switch_moves_no_cube(void **state)
{
	const struct slice_text w = { "a", "c[00-08]", { 2, 2, 2 }, false, 1 };
	struct state s = { .cubes = 9 };
	struct plan_light *seen;
	struct plan_base base;
	struct optics_xc dark[18];
	struct plan *p;
	int ports[18];

	(void)state;
	change(&s, &w, 1);
	seen = calloc(48, sizeof(*seen));
	memcpy(seen, s.light, 48 * sizeof(*seen));
	for (int i = 0; i < 18; i++) {
		ports[i] = i;
	}
	ports_fail(&seen[5], dark, 18, ports, 18, ports);
	base = (struct plan_base){ .observed = seen, .intent = s.light };
	p = plan_of(s.f, &base);
	assert_int_equal(p->n_add, 0);
	assert_int_equal(p->n_del, 0);
	assert_non_null(p->jobs[0].loss);
	assert_int_equal(p->jobs[0].loss->dead, 16);
	assert_non_null(p->jobs[0].loss->sched);
	plan_free(p);
	free(seen);
	state_fini(&s);
}

/* ---- placement ----------------------------------------------------------- */

/* The first cubes that a slice of this shape gets, by number, and how many circuits it makes. */
static int place(struct state *s, int cubes, const int size[3], int spares, int *out)
{
	struct plan_base base = { .observed = s->light, .intent = s->light };
	struct place_request w = { .ring = -1, .spares = spares, .base = &base };
	bool *busy = calloc((size_t)cubes, 1);
	struct err err = { 0 };
	struct buf nodes = { 0 };
	struct slice_text t = { .name = "new", .spares = spares };
	int *hosts, n, count;

	for (int i = 0; i < s->f->n_jobs; i++) {
		for (int k = 0; k < s->f->jobs[i].n_hosts; k++) {
			busy[s->f->jobs[i].hosts[k]] = true;
		}
	}
	for (int i = 0; i < 3; i++) {
		t.size[i] = size[i];
		w.shape[i] = 4 * size[i];
	}
	if (place_job(s->f, &w, NULL, busy, &hosts, &n, &err)) {
		free(busy);
		return err.code;
	}
	assert_int_equal(n, size[0] * size[1] * size[2] + spares);
	for (int i = 0; i < n; i++) {
		assert_false(busy[hosts[i]]);
		buf_printf(&nodes, "%sc%02d", i ? "," : "", hosts[i]);
		out[i] = hosts[i];
	}
	t.nodes = buf_cstr(&nodes);
	count = change(s, &t, 1);
	buf_fini(&nodes);
	free(hosts);
	free(busy);
	return count;
}

static void test_cubes_are_where_light_is(void **state)
{
	const struct slice_text all[] = { { "a", "c[00-05]", { 1, 1, 6 }, false, 0 },
					  { "b", "c[06-09]", { 1, 2, 2 }, false, 0 },
					  { "c", "c[10-17]", { 2, 2, 2 }, false, 0 } };
	struct state s = { .cubes = 64 };
	int out[64];

	(void)state;
	change(&s, all, 3);
	change(&s, all, 1);
	assert_int_equal(place(&s, 64, all[2].size, 0, out), 0);
	assert_in_range(out[0], 10, 17);
	change(&s, all, 1);
	assert_int_equal(place(&s, 64, all[1].size, 2, out), 0);
	assert_in_range(out[0], 6, 9);
	/* Spares are where no light would go with them. */
	assert_int_equal(out[4], 18);
	change(&s, all, 1);
	assert_true(place(&s, 64, (int[]){ 4, 4, 4 }, 0, out) < 0);
	change(&s, NULL, 0);
	assert_int_equal(place(&s, 64, (int[]){ 1, 1, 2 }, 62, out), 16);
	state_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_cube_is_replaced),
		cmocka_unit_test(test_two_neighbours_are_replaced),
		cmocka_unit_test(test_shapes_change),
		cmocka_unit_test(test_as_few_as_all_assignments),
		cmocka_unit_test(test_on_what_random_slices_left),
		cmocka_unit_test(test_large_shapes_change),
		cmocka_unit_test(test_light_stays_until_it_is_wanted),
		cmocka_unit_test(test_a_spare_stands_in),
		cmocka_unit_test(test_a_dead_switch_moves_no_cube),
		cmocka_unit_test(test_cubes_are_where_light_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
