/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dimension-order: terminals as digits, and paths that set one digit after the other.
 *
 * The digits are not told but found, so that files have them as families do: the
 * lowest digit is the least divisor that splits the numbers so that no link, and no
 * group of switches, joins terminals that differ on both sides of the split; the
 * rest is split in the same way. On tori, meshes, HyperX, HammingMesh and servers on
 * rails these are the coordinates. Of a digraph that cannot be split only rings,
 * lines and single switches are taken, where the order of the numbers means something.
 */
#include "collective/embedding/private.h"

static bool is_terminal(const struct topo *t, int u)
{
	return u < topo_ranks(t);
}

/* ---- groups of switches ---- */

static void join(struct embed_grid *g, int u, int *end)
{
	if (!is_terminal(g->t, u) && g->component[u] < 0) {
		g->component[u] = g->n_components;
		g->queue[(*end)++] = u;
	}
}

/* Switches and memories that arcs join without a terminal between them. */
static void number_components(struct embed_grid *g)
{
	const struct topo *t = g->t;

	for (int u = 0; u < topo_n(t); u++) {
		g->component[u] = g->dist[u] = -1;
	}
	for (int s = topo_ranks(t); s < topo_n(t); s++) {
		int end = 0;

		if (g->component[s] >= 0) {
			continue;
		}
		join(g, s, &end);
		for (int k = 0; k < end; k++) {
			const int32_t *in;
			int first, n = topo_out(t, g->queue[k], &first);

			for (int a = first; a < first + n; a++) {
				join(g, topo_arc(t, a)->dst, &end);
			}
			n = topo_in(t, g->queue[k], &in);
			for (int i = 0; i < n; i++) {
				join(g, topo_arc(t, in[i])->src, &end);
			}
		}
		g->n_components++;
	}
}

/* ---- digits ---- */

/* In what terminals u and v differ: bit 0 in the digit of this radix above the
 * unit, bit 1 in all above. */
static unsigned differ(int u, int v, int unit, int radix)
{
	u /= unit;
	v /= unit;
	return (unsigned)(u % radix != v % radix) | (unsigned)(u / radix != v / radix) << 1;
}

/* No link and no group of switches joins terminals that differ in both. */
static bool splits(struct embed_grid *g, int unit, int radix)
{
	const struct topo_arc *arcs = topo_arcs(g->t);

	for (int c = 0; c < g->n_components; c++) {
		g->first[c] = -1;
		g->differs[c] = 0;
	}
	for (int a = 0; a < topo_m(g->t); a++) {
		bool from = is_terminal(g->t, arcs[a].src), to = is_terminal(g->t, arcs[a].dst);
		int u = from ? arcs[a].src : arcs[a].dst;

		if (from && to) {
			if (differ(u, arcs[a].dst, unit, radix) == 3) {
				return false;
			}
		} else if (from || to) {
			int c = g->component[from ? arcs[a].dst : arcs[a].src];

			g->first[c] = g->first[c] < 0 ? u : g->first[c];
			g->differs[c] |= (uint8_t)differ(u, g->first[c], unit, radix);
			if (g->differs[c] == 3) {
				return false;
			}
		}
	}
	return true;
}

/* All links join neighbours in a ring, and switches have no others. */
static bool is_line(const struct embed_grid *g)
{
	const struct topo_arc *arcs = topo_arcs(g->t);
	int n = topo_ranks(g->t);

	for (int a = 0; a < topo_m(g->t); a++) {
		bool from = is_terminal(g->t, arcs[a].src), to = is_terminal(g->t, arcs[a].dst);
		int offset = (arcs[a].dst - arcs[a].src + n) % n;

		if ((from && to && offset > 1 && offset != n - 1) || (!from && !to)) {
			return false;
		}
	}
	return true;
}

static void find_digits(struct embed_grid *g)
{
	int unit = 1, rest = topo_ranks(g->t);

	while (rest > 1) {
		int radix = 2;

		while (radix < rest && (rest % radix || !splits(g, unit, radix))) {
			radix++;
		}
		g->radix[g->n_digits++] = radix;
		unit *= radix;
		rest /= radix;
	}
}

static void grid_init(struct embed_grid *g, const struct topo *t)
{
	*g = (struct embed_grid){ .t = t };
	arrays_add(&g->arrays, g->dist, topo_n(t));
	arrays_add(&g->arrays, g->queue, topo_n(t));
	arrays_add(&g->arrays, g->component, topo_n(t));
	arrays_add(&g->arrays, g->first, topo_n(t));
	arrays_add(&g->arrays, g->differs, topo_n(t));
	number_components(g);
	find_digits(g);
}

int embed_grid_init(struct embed_grid *g, const struct topo *t, struct err *err)
{
	grid_init(g, t);
	if (g->n_digits == 1 && !is_line(g)) {
		return err_set(err, WEFT_EUNSUPPORTED, "dimension-order: the numbers of the "
			       "physical digraph's terminals are no digits of which every link, "
			       "and every switch, changes one");
	}
	return 0;
}

void coll_digits(const struct topo *t, int radix[COLL_MAX_DIGITS], int *n)
{
	struct embed_grid g;

	grid_init(&g, t);
	*n = g.n_digits;
	for (int k = 0; k < g.n_digits; k++) {
		radix[k] = g.radix[k];
	}
	arrays_fini(&g.arrays);
}

bool embed_keeps_digits(const struct embed_grid *grid, const struct topo_group *group)
{
	for (int i = 0; group && i < topo_group_generators(group); i++) {
		int order;
		const int32_t *image = topo_group_generator(group, i, &order);

		for (int u = 0; u < topo_ranks(grid->t); u++) {
			for (int k = 0, unit = 1; k < grid->n_digits; unit *= grid->radix[k++]) {
				int r = grid->radix[k], moved = u / unit + image[0] / unit;

				if (image[u] / unit % r != moved % r) {
					return false;
				}
			}
		}
	}
	return true;
}

/* ---- paths ---- */

/* A digit that a path sets. */
struct embed_line {
	int unit, radix;
	int from, to;		/* terminals, equal but for it */
};

static int digit(const struct embed_line *l, int terminal)
{
	return terminal / l->unit % l->radix;
}

/* Terminals that differ from the line's in no other digit; all switches. */
static bool is_on(const struct embed_grid *g, const struct embed_line *l, int u)
{
	return !is_terminal(g->t, u) || u - digit(l, u) * l->unit ==
		l->to - digit(l, l->to) * l->unit;
}

/* Distances to the end of the line, until those of its beginning is known. Returns
 * how many nodes have one: g->queue. */
static int measure_line(struct embed_grid *g, const struct embed_line *l)
{
	int end = 0;

	g->queue[end++] = l->to;
	g->dist[l->to] = 0;
	for (int k = 0; k < end && g->dist[l->from] < 0; k++) {
		const int32_t *in;
		int v = g->queue[k], n = topo_in(g->t, v, &in);

		for (int i = 0; i < n; i++) {
			int u = topo_arc(g->t, in[i])->src;

			if (g->dist[u] < 0 && is_on(g, l, u)) {
				g->dist[u] = g->dist[v] + 1;
				g->queue[end++] = u;
			}
		}
	}
	return end;
}

/* Which of the nodes that are as near to the end follows u: the lower comes first. From
 * a terminal the next up, from a switch the next below the end; switches last. */
static int preference(const struct embed_grid *g, const struct embed_line *l, int u, int v)
{
	int ahead = is_terminal(g->t, u) ? digit(l, v) - digit(l, u)
		: digit(l, l->to) - digit(l, v);

	return is_terminal(g->t, v) ? (ahead + l->radix) % l->radix : l->radix + v;
}

static int next_node(const struct embed_grid *g, const struct embed_line *l, int u)
{
	int first, n = topo_out(g->t, u, &first), best = -1;

	for (int a = first; a < first + n; a++) {
		int v = topo_arc(g->t, a)->dst;

		if (g->dist[v] == g->dist[u] - 1 && is_on(g, l, v) &&
		    (best < 0 || preference(g, l, u, v) < preference(g, l, u, best))) {
			best = v;
		}
	}
	return best;
}

/* Marks the nodes after the line's beginning, which has this level. */
static int mark_line(struct embed_grid *g, const struct embed_line *l, struct embed_paths *p,
		     int level, struct err *err)
{
	int end = measure_line(g, l), rc = 0;

	if (g->dist[l->from] < 0) {
		rc = err_set(err, WEFT_EINFEASIBLE, "dimension-order: no path from node %d to node "
			     "%d between nodes that differ in one digit", l->from, l->to);
	}
	for (int u = l->from; u != l->to && !rc;) {
		u = next_node(g, l, u);
		embed_mark(p, u, ++level);
	}
	for (int k = 0; k < end; k++) {
		g->dist[g->queue[k]] = -1;
	}
	return rc;
}

int embed_dimensions(struct embed_grid *g, struct embed_paths *p, int src, int dst,
		     struct err *err)
{
	int rc = 0, at = src;

	embed_mark(p, src, 0);
	for (int k = 0, unit = 1; k < g->n_digits && !rc; unit *= g->radix[k++]) {
		struct embed_line l = { unit, g->radix[k], at, at };

		l.to += (digit(&l, dst) - digit(&l, at)) * unit;
		if (l.to != at) {
			rc = mark_line(g, &l, p, (int)p->marked.n - 1, err);
		}
		at = l.to;
	}
	return rc;
}
