/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps by first fit: chunk after chunk takes for every hop the first step
 * with room. A row of pointers to the next step with room, compressed on the
 * way as in union-find, keeps a look-up near O(1).
 */
#include "collective/flow/private.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"

struct first_fit {
	const struct flow_net *net;
	const struct flow_paths *paths;
	int64_t quantum;
	int width, last;	/* steps at most, steps used */
	int32_t *sequence;	/* paths, shuffled */
	int64_t *first;		/* a path: of its first chunk, in steps */
	int32_t *steps;		/* of each hop, chunk after chunk */
	int64_t n_hops;
	int64_t *used;		/* width x m: chunks */
	int32_t *next;		/* m x (width + 1): at k, k when the arc may
				 * have room in step k, else a later step */
	struct arrays arrays;	/* all of these */
};

void flow_timetable_fini(struct flow_timetable *tt)
{
	vec_fini(&tt->v);
	vec_fini(&tt->end);
}

/* Paths in the order of their sources would block each other for longer. */
static void shuffle(struct first_fit *f)
{
	struct rng rng;

	rng_seed(&rng, 1);
	for (size_t i = 0; i < f->paths->v.n; i++) {
		size_t j = (size_t)rng_below(&rng, i + 1);

		f->sequence[i] = f->sequence[j];
		f->sequence[j] = (int32_t)i;
	}
}

static void fit_init(struct first_fit *f)
{
	size_t m = (size_t)f->net->m, n = f->paths->v.n + 1;
	size_t row = (size_t)f->width + 1;

	arrays_add(&f->arrays, f->sequence, n);
	arrays_add(&f->arrays, f->first, n);
	for (size_t i = 0; i < f->paths->v.n; i++) {
		const struct flow_path *q = &f->paths->v.v[i];

		f->first[i] = f->n_hops;
		f->n_hops += (int64_t)q->chunks * q->n_arcs;
	}
	shuffle(f);
	arrays_add(&f->arrays, f->steps, f->n_hops);
	arrays_add(&f->arrays, f->used, m * row);
	arrays_add(&f->arrays, f->next, m * row);
	for (size_t i = 0; i < m * row; i++) {
		f->next[i] = (int32_t)(i % row);
	}
}

/* First step >= k in which arc a has room; width: none. */
static int find_room(struct first_fit *f, int a, int k)
{
	int32_t *next = f->next + (size_t)a * (f->width + 1);

	while (next[k] != k) {
		next[k] = next[next[k]];
		k = next[k];
	}
	return k;
}

/* Steps for one chunk; false when it comes too late. */
static bool place(struct first_fit *f, const struct flow_path *q, int32_t *steps)
{
	const int32_t *arcs = f->paths->arcs.v + q->first;
	int k = -1;

	for (int i = 0; i < q->n_arcs; i++) {
		int a = arcs[i];
		int64_t *used;

		k = find_room(f, a, k + 1);
		if (k == f->width) {
			return false;
		}
		used = &f->used[(size_t)k * f->net->m + (size_t)a];
		if (++*used == f->quantum * f->net->units[a]) {
			f->next[(size_t)a * (f->width + 1) + k] = k + 1;
		}
		steps[i] = k;
	}
	f->last = k + 1 > f->last ? k + 1 : f->last;
	return true;
}

static bool place_all(struct first_fit *f)
{
	for (size_t i = 0; i < f->paths->v.n; i++) {
		const struct flow_path *q = &f->paths->v.v[f->sequence[i]];
		int32_t *steps = f->steps + f->first[f->sequence[i]];

		for (int c = 0; c < q->chunks; c++, steps += q->n_arcs) {
			if (!place(f, q, steps)) {
				return false;
			}
		}
	}
	return true;
}

/* Where the entries of each step (major) and arc begin. */
static size_t *list_cells(const struct first_fit *f, struct flow_timetable *tt)
{
	size_t m = (size_t)f->net->m, cells = (size_t)f->last * m, sum = 0;
	size_t *at = x_alloc(cells + 1, sizeof(*at));

	for (size_t i = 0; i < cells; i++) {
		at[i] = sum;
		sum += (size_t)f->used[i];
		if ((i + 1) % m == 0) {
			vec_push(&tt->end, sum);
		}
	}
	return at;
}

static void list_all(const struct first_fit *f, const int32_t *chunk0, struct flow_timetable *tt)
{
	size_t *at = list_cells(f, tt);

	vec_reserve(&tt->v, (size_t)f->n_hops);
	tt->v.n = (size_t)f->n_hops;
	for (size_t i = 0; i < f->paths->v.n; i++) {
		const struct flow_path *q = &f->paths->v.v[i];
		const int32_t *step = f->steps + f->first[i];

		for (int c = 0; c < q->chunks; c++) {
			for (int k = 0; k < q->n_arcs; k++, step++) {
				int32_t a = f->paths->arcs.v[q->first + k];
				size_t cell = (size_t)*step * f->net->m +
					      (size_t)a;

				tt->v.v[at[cell]++] = (struct flow_sent){
					(int32_t)i, k, chunk0[i] + c, 1,
				};
			}
		}
	}
	free(at);
}

void flow_fit(const struct flow_net *net, const struct flow_paths *paths, const int32_t *chunk0,
	      int64_t quantum, int width, struct flow_timetable *tt, bool *fits)
{
	struct first_fit f = {
		.net = net, .paths = paths, .quantum = quantum,
		.width = width,
	};

	fit_init(&f);
	tt->v.n = tt->end.n = 0;
	*fits = place_all(&f);
	if (*fits) {
		list_all(&f, chunk0, tt);
	}
	arrays_fini(&f.arrays);
}
