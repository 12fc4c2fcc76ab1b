/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of a logical digraph, extended to the physical one that it lies in.
 *
 * An automorphism is given for the first nodes. The images of the others follow by
 * refinement of colours, of nodes and of images at a time: the first nodes have each a
 * colour of its own, the others one that says kind and abilities, and a node's next
 * colour says its own and those of its neighbours, arc by arc. Nodes that
 * colours do not tell apart are matched in the order of their numbers, so that the
 * images of a product of automorphisms are mostly the product of the images. Colours
 * are hashes: a wrong match is possible and is found, as all that comes out is
 * checked to be an automorphism.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "topology/private.h"

/* As many shifts of digits are tried at most. */
#define MAX_SHIFTS 100

/* Colours of nodes as such, and as images. */
enum { SOURCES, IMAGES, SIDES };

struct topo_extension {
	const struct topo *t;
	int known;			/* the first nodes, whose images are given */
	uint64_t *colour[SIDES];	/* of every node */
	int32_t *order[SIDES];		/* the other nodes, by colour and number */
	uint64_t *next;
	int shifts;			/* of digits that were tried */
	struct arrays arrays;
};

/* Room to work in; the caller adds what it needs to x->arrays before. */
static void begin(struct topo_extension *x)
{
	arrays_add(&x->arrays, x->next, topo_n(x->t));
	for (int side = 0; side < SIDES; side++) {
		arrays_add(&x->arrays, x->colour[side], topo_n(x->t));
		arrays_add(&x->arrays, x->order[side], topo_n(x->t));
	}
}

/* What distinguishes an arc beside its ends. */
static uint64_t arc_hash(const struct topo *t, int arc, bool out)
{
	const struct topo_arc *a = topo_arc(t, arc);
	const int32_t *limits;
	int n = topo_arc_limits(t, arc, &limits);
	uint64_t hash = rng_mix(((uint64_t)a->cap << 1 | out) ^
				rng_mix((uint64_t)a->latency_ns ^ rng_mix((uint64_t)a->cost)));

	for (int i = 0; i < n; i++) {
		hash += rng_mix((uint64_t)topo_limit(t, limits[i])->cap ^ hash);
	}
	return hash;
}

static void refine(struct topo_extension *x, uint64_t *colour)
{
	const struct topo_arc *arcs = topo_arcs(x->t);
	size_t others = (size_t)(topo_n(x->t) - x->known);

	for (int u = x->known; u < topo_n(x->t); u++) {
		uint64_t sum = rng_mix(colour[u]);
		const int32_t *in;
		int first, n = topo_out(x->t, u, &first);

		for (int a = first; a < first + n; a++) {
			sum += rng_mix(arc_hash(x->t, a, true) ^ colour[arcs[a].dst]);
		}
		n = topo_in(x->t, u, &in);
		for (int i = 0; i < n; i++) {
			sum += rng_mix(arc_hash(x->t, in[i], false) ^ colour[arcs[in[i]].src]);
		}
		x->next[u] = rng_mix(sum);
	}
	memcpy(colour + x->known, x->next + x->known, others * sizeof(*colour));
}

static int by_colour(const void *pa, const void *pb, void *colours)
{
	int32_t a = *(const int32_t *)pa, b = *(const int32_t *)pb;
	uint64_t ca = ((const uint64_t *)colours)[a], cb = ((const uint64_t *)colours)[b];

	return ca != cb ? (ca < cb ? -1 : 1) : a < b ? -1 : a > b;
}

static void sort_nodes(struct topo_extension *x, int side)
{
	int others = topo_n(x->t) - x->known;

	for (int i = 0; i < others; i++) {
		x->order[side][i] = x->known + i;
	}
	qsort_r(x->order[side], (size_t)others, sizeof(int32_t), by_colour, x->colour[side]);
}

/* The nodes that have the colour of the i-th in order end before the one that is
 * returned. */
static int class_end(const struct topo_extension *x, int i)
{
	const uint64_t *colour = x->colour[SOURCES];
	const int32_t *order = x->order[SOURCES];
	int end = i + 1, others = topo_n(x->t) - x->known;

	while (end < others && colour[order[end]] == colour[order[i]]) {
		end++;
	}
	return end;
}

/* Refines until that separates no more nodes. */
static void refine_all(struct topo_extension *x)
{
	int others = topo_n(x->t) - x->known, classes = 0, before;

	do {
		before = classes;
		classes = 0;
		refine(x, x->colour[SOURCES]);
		refine(x, x->colour[IMAGES]);
		sort_nodes(x, SOURCES);
		for (int i = 0; i < others; i = class_end(x, i)) {
			classes++;
		}
	} while (classes > before && classes < others);
	sort_nodes(x, IMAGES);
}

/* Nodes and images have the same colours, each as often. */
static bool colours_agree(const struct topo_extension *x)
{
	for (int i = 0; i < topo_n(x->t) - x->known; i++) {
		if (x->colour[SOURCES][x->order[SOURCES][i]] !=
		    x->colour[IMAGES][x->order[IMAGES][i]]) {
			return false;
		}
	}
	return true;
}

/* Of the classes of several nodes the one with the first of them: each of its
 * nodes gets a colour of its own, as its image does. False: there is none. */
static bool split_class(struct topo_extension *x)
{
	int others = topo_n(x->t) - x->known, best = -1, end;

	for (int i = 0; i < others; i = end) {
		end = class_end(x, i);
		if (end - i > 1 &&
		    (best < 0 || x->order[SOURCES][i] < x->order[SOURCES][best])) {
			best = i;
		}
	}
	if (best < 0) {
		return false;
	}
	end = class_end(x, best);
	for (int i = best; i < end; i++) {
		for (int side = 0; side < SIDES; side++) {
			x->colour[side][x->order[side][i]] += (uint64_t)(i - best);
		}
	}
	return true;
}

/* Completes image, of which the first x->known are given. False: no automorphism has
 * these. */
static bool complete(struct topo_extension *x, int32_t *image)
{
	for (int u = 0; u < topo_n(x->t); u++) {
		uint64_t kind = (uint64_t)topo_node_kind(x->t, u) << 8 | topo_node_flags(x->t, u);

		if (u < x->known) {
			x->colour[SOURCES][u] = x->colour[IMAGES][image[u]] =
				rng_mix((uint64_t)u + 1);
		} else {
			x->colour[SOURCES][u] = x->colour[IMAGES][u] = ~kind;
		}
	}
	do {
		refine_all(x);
		if (!colours_agree(x)) {
			return false;
		}
	} while (split_class(x));
	for (int i = 0; i < topo_n(x->t) - x->known; i++) {
		image[x->order[SOURCES][i]] = x->order[IMAGES][i];
	}
	return true;
}

/* The permutation is an automorphism, and so are its powers. */
static bool generates(const struct topo *t, int order, const int32_t *image)
{
	struct topo_group *g = NULL;
	struct topo_action *a = NULL;
	bool yes = topo_group_new(topo_n(t), topo_ranks(t), 1, &order, image, &g, NULL) == 0 &&
		   topo_action_new(t, g, &a, NULL) == 0;

	topo_action_free(a);
	topo_group_free(g);
	return yes;
}

/* image = given^power, completed where that can be. */
static bool extend_power(struct topo_extension *x, const int32_t *given, int order, int power,
			 int32_t *image)
{
	for (int u = 0; u < x->known; u++) {
		image[u] = u;
		for (int k = 0; k < power; k++) {
			image[u] = given[image[u]];
		}
	}
	return complete(x, image) && generates(x->t, order / power, image);
}

/* The least power of a generator that extends; its order when none does. */
static int extend_generator(struct topo_extension *x, const int32_t *given, int order,
			    int32_t *image)
{
	int power = 1;

	while (power < order &&
	       !(order % power == 0 && extend_power(x, given, order, power, image))) {
		power++;
	}
	return power;
}

/* Automorphisms that do not commute, or not as elements of a group of such orders, are no
 * generators together: then fewer of them. NULL: none. */
static struct topo_group *group_of(const struct topo *t, int n, const int *orders,
				   const int32_t *images)
{
	struct topo_group *g = NULL;

	while (n > 0 && topo_group_new(topo_n(t), topo_ranks(t), n, orders, images, &g, NULL)) {
		n--;
	}
	return g;
}

static struct topo_group *extend_all(struct topo_extension *x, const struct topo_group *g)
{
	int n = topo_group_generators(g), kept = 0, *orders;
	int32_t *images;

	arrays_add(&x->arrays, orders, n);
	arrays_add(&x->arrays, images, (size_t)n * topo_n(x->t));
	begin(x);
	for (int i = 0; i < n; i++) {
		int order, power;
		const int32_t *given = topo_group_generator(g, i, &order);

		power = extend_generator(x, given, order, images + (size_t)kept * topo_n(x->t));
		if (power < order) {
			orders[kept++] = order / power;
		}
	}
	return group_of(x->t, kept, orders, images);
}

int topo_group_extend(const struct topo_group *g, const struct topo *t, struct topo_group **out,
		      struct err *err)
{
	struct topo_extension x = { .t = t, .known = topo_group_nodes(g) };
	int terminals;

	*out = NULL;
	if (!g) {
		return 0;
	}
	terminals = topo_group_orbits(g) * topo_group_order(g);
	if (terminals != topo_ranks(t) || x.known > topo_n(t)) {
		return err_set(err, WEFT_EINVAL,
			       "a group of %d terminals and %d nodes: the digraph "
			       "has %d and %d", terminals, x.known, topo_ranks(t), topo_n(t));
	}
	*out = extend_all(&x, g);
	arrays_fini(&x.arrays);
	return 0;
}

/* ---- digits ---- */

/* Adds one to the digit of this radix above the unit. */
static bool shift_digit(struct topo_extension *x, int unit, int radix, int32_t *image)
{
	for (int u = 0; u < x->known; u++) {
		int digit = u / unit % radix;

		image[u] = u + ((digit + 1) % radix - digit) * unit;
	}
	return complete(x, image) && generates(x->t, radix, image);
}

/* The largest radix of the digit above the unit that can be shifted, 1: none. */
static int find_radix(struct topo_extension *x, int unit, int32_t *image)
{
	int rest = x->known / unit, radix = rest;

	while (radix > 1 && !(rest % radix == 0 && x->shifts++ < MAX_SHIFTS &&
			      shift_digit(x, unit, radix, image))) {
		radix--;
	}
	return radix;
}

/* Where no digit above the unit can be shifted it grows by the least divisor of what is
 * left that makes one possible. */
static struct topo_group *find_digits(struct topo_extension *x)
{
	int kept = 0, *orders;
	int32_t *images;

	arrays_add(&x->arrays, orders, TOPO_MAX_DIGITS);
	arrays_add(&x->arrays, images, (size_t)TOPO_MAX_DIGITS * topo_n(x->t));
	begin(x);
	for (int unit = 1, skip = 1; unit * skip < x->known; skip++) {
		int radix = 1;

		if (x->known / unit % skip == 0) {
			radix = find_radix(x, unit * skip, images + (size_t)kept * topo_n(x->t));
		}
		if (radix > 1) {
			orders[kept++] = radix;
			unit *= skip * radix;
			skip = 0;
		}
	}
	return group_of(x->t, kept, orders, images);
}

struct topo_group *topo_group_digits(const struct topo *t)
{
	struct topo_extension x = { .t = t, .known = topo_ranks(t) };
	struct topo_group *g = find_digits(&x);

	arrays_fini(&x.arrays);
	return g;
}
