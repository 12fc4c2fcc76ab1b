/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translations: digraphs in which adding a number to all nodes, digit by digit of
 * a mixed radix, maps arcs to arcs.
 *
 * Adding one to each digit must be an automorphism; the rest follows, as these
 * generate the group. A candidate (a factorisation of n) is tested node by node,
 * comparing the arcs into the node, moved, with those into its image: the first
 * node mostly refutes a wrong one. Arcs are compared by source, capacity and
 * latency, so parallel arcs are matched as multisets.
 */
#include "lib/base/order.h"
#include "topology/private.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

#define MAX_TRIES 65536

/* An arc into some node, as far as translations care. */
struct topo_arc_end {
	int32_t src;
	int64_t cap, latency_ns, cost;
};

ORDER_BY(cmp_end, struct topo_arc_end, src, cap, latency_ns, cost)

static bool same_end(const struct topo_arc_end *a, const struct topo_arc_end *b)
{
	return cmp_end(a, b) == 0;
}

int topo_translate_node(const struct topo_translation *s, int u, int by)
{
	int moved = u % s->fixed, stride = s->fixed;

	u /= s->fixed;
	for (int i = 0; i < s->n_digits; i++) {
		int r = s->radix[i];

		moved += (u % r + by % r) % r * stride;
		stride *= r;
		u /= r;
		by /= r;
	}
	return moved;
}

static bool in_order(const struct topo_arc_end *v, int n)
{
	for (int i = 1; i < n; i++) {
		if (cmp_end(&v[i - 1], &v[i]) > 0) {
			return false;
		}
	}
	return true;
}

/* Most often they are in order already, or in the reverse order. */
static void sort_ends(struct topo_arc_end *v, int n)
{
	if (n > 1 && cmp_end(&v[0], &v[n - 1]) > 0) {
		for (int i = 0, k = n - 1; i < k; i++, k--) {
			struct topo_arc_end e = v[i];

			v[i] = v[k];
			v[k] = e;
		}
	}
	if (!in_order(v, n)) {
		qsort(v, (size_t)n, sizeof(*v), cmp_end);
	}
}

/* Arcs into a node, sources moved, sorted. */
static void load_ends(const struct topo *t, const struct topo_translation *s, int by,
		      const int32_t *arcs, int n, struct topo_arc_end *out)
{
	for (int i = 0; i < n; i++) {
		const struct topo_arc *a = topo_arc(t, arcs[i]);

		out[i] = (struct topo_arc_end){ topo_translate_node(s, a->src, by), a->cap,
				       a->latency_ns, a->cost };
	}
	sort_ends(out, n);
}

/* True when moving by `by` brings the arcs into u to those into u's image.
 * room: twice the largest in-degree. */
static bool moves_node(const struct topo *t, const struct topo_translation *s, int by,
		       int u, struct topo_arc_end *room)
{
	const int32_t *from, *to;
	int n = topo_in(t, u, &from);
	int image = topo_translate_node(s, u, by);

	if (topo_in(t, image, &to) != n) {
		return false;
	}
	load_ends(t, s, by, from, n, room);
	load_ends(t, s, 0, to, n, room + n);
	for (int i = 0; i < n; i++) {
		if (!same_end(&room[i], &room[n + i])) {
			return false;
		}
	}
	return true;
}

/* One step of every digit must be an automorphism; they generate the rest. */
static bool translates(const struct topo *t, const struct topo_translation *s,
		       struct topo_arc_end *room)
{
	for (int u = 0; u < topo_n(t); u++) {
		int unit = 1;

		for (int i = 0; i < s->n_digits; i++) {
			if (!moves_node(t, s, unit, u, room)) {
				return false;
			}
			unit *= s->radix[i];
		}
	}
	return true;
}

struct topo_translation_search {
	const struct topo *t;
	struct topo_translation *s;
	struct topo_arc_end *room;
	int tries;
};

/* Completes the first `have` radices, whose product leaves `rest`, to
 * n_digits of them in every way, until one translates. */
static bool try_radices(struct topo_translation_search *f, int have, int rest)
{
	struct topo_translation *s = f->s;

	if (f->tries >= MAX_TRIES) {
		return false;
	}
	if (have == s->n_digits - 1) {
		s->radix[have] = rest;
		f->tries++;
		return rest > 1 && translates(f->t, s, f->room);
	}
	for (int r = 2; r <= rest / 2; r++) {
		if (rest % r == 0) {
			s->radix[have] = r;
			if (try_radices(f, have + 1, rest / r)) {
				return true;
			}
		}
	}
	return false;
}

static bool try_fixed(struct topo_translation_search *f, int fixed)
{
	int n = topo_n(f->t) / fixed;
	bool found = false;

	f->tries = 0;
	f->s->fixed = fixed;
	f->s->moves = n;
	for (int k = 1; k <= TOPO_MAX_DIGITS && 1 << k <= n && !found; k++) {
		f->s->n_digits = k;
		found = try_radices(f, 0, n);
	}
	return found;
}

void topo_find_translations(const struct topo *t, struct topo_translation *out, bool *found)
{
	int n = topo_n(t), degree = topo_regular_degree(t);
	size_t most = (size_t)topo_max_degree(t) + 1;
	struct topo_translation_search f = { .t = t, .s = out };

	if (!topo_is_plain(t)) {
		*found = false;
		return;
	}
	*found = false;
	if (!topo_is_plain(t)) {
		return;
	}
	f.room = x_alloc(2 * most, sizeof(*f.room));
	*found = try_fixed(&f, 1);
	for (int64_t fixed = degree; !*found && degree > 1 && fixed < n &&
	     n % fixed == 0; fixed *= degree) {
		*found = try_fixed(&f, (int)fixed);
	}
	/* u -> -d u - a commutes with adding x when (d + 1) x = 0 modulo n,
	 * u -> d u + a when (d - 1) x = 0: generalized Kautz and de Bruijn. */
	for (int k = degree + 1; !*found && degree > 1 && k >= degree - 1; k -= 2) {
		int common = (int)rat_gcd(n, k);

		*found = common > 1 && common < n &&
			 try_fixed(&f, n / common);
	}
	free(f.room);
}

/* The mirror brings the arcs into u to those into its image. room: twice the
 * largest in-degree. */
static bool mirrors_node(const struct topo *t, int u, struct topo_arc_end *room)
{
	const struct topo_translation as_is = { .fixed = topo_n(t) };
	const int32_t *from, *to;
	int last = topo_n(t) - 1, n = topo_in(t, u, &from);

	if (topo_in(t, last - u, &to) != n) {
		return false;
	}
	load_ends(t, &as_is, 0, from, n, room);
	load_ends(t, &as_is, 0, to, n, room + n);
	for (int i = 0; i < n; i++) {
		room[i].src = last - room[i].src;
	}
	sort_ends(room, n);
	for (int i = 0; i < n; i++) {
		if (!same_end(&room[i], &room[n + i])) {
			return false;
		}
	}
	return true;
}

bool topo_has_mirror(const struct topo *t)
{
	size_t most = (size_t)topo_max_degree(t) + 1;
	struct topo_arc_end *room = x_alloc(2 * most, sizeof(*room));
	bool mirrors = topo_is_plain(t);

	/* Its own inverse: a node's image need not be looked at. */
	for (int u = 0; u < (topo_n(t) + 1) / 2 && mirrors; u++) {
		mirrors = mirrors_node(t, u, room);
	}
	free(room);
	return mirrors;
}
