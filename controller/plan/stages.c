/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stages of a plan that keep a floor of capacity. See private.h.
 *
 * A move is a circuit to delete or to add. A path is light from one host's
 * transmitter to another's receiver that the plan ends or begins; it is in
 * service when none of its circuits is missing. Paths that the plan leaves
 * alone are counted once and never looked at again.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/units.h"
#include "lib/base/order.h"
#include "lib/base/vec.h"

#define MAX_HOPS 4096		/* light that runs in a circle ends here */

/* A circuit that the plan deletes or adds, and what depends on it. */
struct stage_move {
	int row;		/* plan->devices */
	int at;			/* in its del or add list */
	bool is_add, done;
	bool is_displaced;		/* of others: no capacity of weft's */
	int group;
	int path[2];		/* -1: none; duplex circuits have two */
};

/* A signal from host to host that the plan ends, begins or leaves alone. */
struct stage_path {
	int tx_host, rx_host, pair;
	int64_t bps;
	bool ends, begins;	/* with the plan; neither: it stays */
	int missing;		/* circuits that are not there */
	int last;		/* a move of it, while groups are joined */
};

/* Capacity of a host one way, or of a pair of hosts. */
struct room {
	int64_t now, before, after, floor;
};

struct stage_pair {
	int from, to;
	struct room room;
};

/* What of a device uses a port: a move, or a circuit that stays. */
#define PORT_FREE (-1)
#define PORT_KEPT (-2)

struct ports {
	int *del, *add;		/* [sides] move, or one of the above */
	int *to;		/* [sides] other port of what stays */
};

typedef VEC(int) int_list;

struct group {
	int first, n;		/* in work.grouped */
	int gain;		/* adds less deletes */
	bool open, done;	/* begun in an earlier stage; all done */
};

struct stage_work {
	struct plan_ctx *ctx;
	const struct model_fabric *f;
	struct plan *p;
	struct model_changes changes;	/* the floors that hold */
	struct ports *ports;	/* [p->n_devices] */
	int *first_move;	/* [p->n_devices + 1] moves by row */
	int *row_of;		/* [f->n_devices] */
	int begin, end;		/* moves of the domain at hand */
	int *parent;		/* [moves] of groups being joined */
	int **trunk_at;		/* [f->n_devices] by egress, or NULL */
	VEC(struct stage_move) moves;
	VEC(struct stage_path) paths;
	VEC(struct stage_pair) pairs;
	struct room *tx, *rx;	/* [f->n_hosts] */
	const struct room *short_of;	/* the floor met last */
	int64_t short_by;		/* what would have been left of it */
	VEC(struct group) groups;	/* of the domain at hand */
	int *grouped;		/* [moves] */
	int_list taken;		/* deletes of the stage at hand */
	VEC(struct plan_stage) stages;
};

static const struct model_device *device_of(const struct stage_work *w, int row)
{
	return &w->f->devices[w->p->devices[row].device];
}

static struct optics_xc xc_of(const struct stage_work *w, const struct stage_move *m)
{
	const struct plan_device *d = &w->p->devices[m->row];

	return m->is_add ? d->add[m->at] : d->del[m->at];
}

/* Where in a device's port tables the two ports of a circuit stand. */
static void sides_of(const struct model_device *dev, struct optics_xc xc, int side[2])
{
	side[0] = xc.in;
	side[1] = dev->any_to_any ? xc.out : dev->n_in + xc.out;
}

/* ---- what moves ---------------------------------------------------------- */

static bool is_in(int n, const struct optics_xc *list, struct optics_xc xc)
{
	return n && bsearch(&xc, list, (size_t)n, sizeof(xc), optics_xc_cmp);
}

/* The deletes or the adds of a device, and the ports that they stand at.
 * Circuits of others that are displaced move like ours, but were never
 * capacity. */
static void list_moves(struct stage_work *w, int row, bool is_add)
{
	const struct plan_device *d = &w->p->devices[row];
	const struct model_device *dev = device_of(w, row);
	int *map = is_add ? w->ports[row].add : w->ports[row].del;
	int side[2];

	for (int i = 0; i < (is_add ? d->n_add : d->n_del); i++) {
		struct stage_move m = { .row = row, .at = i, .is_add = is_add,
				  .path = { -1, -1 } };

		m.is_displaced = !is_add && is_in(d->n_displaced, d->displaced, d->del[i]);
		sides_of(dev, xc_of(w, &m), side);
		map[side[0]] = map[side[1]] = (int)w->moves.n;
		vec_push(&w->moves, m);
	}
}

/* There before and after, and alive. */
static bool stays(const struct plan_device *d, struct optics_xc xc)
{
	return !is_in(d->n_add, d->add, xc) && !is_in(d->n_leave, d->leave, xc);
}

/* What uses each port of a device before the plan (del), after it (add), and
 * all along. */
static void map_ports(struct stage_work *w, int row)
{
	const struct plan_device *d = &w->p->devices[row];
	const struct model_device *dev = device_of(w, row);
	struct ports *t = &w->ports[row];
	int n = dev->n_in + dev->n_out + 1, side[2];

	t->del = x_alloc(n, sizeof(int));
	t->add = x_alloc(n, sizeof(int));
	t->to = x_alloc(n, sizeof(int));
	for (int i = 0; i < n; i++) {
		t->del[i] = t->add[i] = t->to[i] = PORT_FREE;
	}
	for (int i = 0; i < d->n_want; i++) {
		sides_of(dev, d->want[i], side);
		if (stays(d, d->want[i])) {
			t->del[side[0]] = t->add[side[0]] = PORT_KEPT;
			t->del[side[1]] = t->add[side[1]] = PORT_KEPT;
			t->to[side[0]] = d->want[i].out;
			t->to[side[1]] = d->want[i].in;
		}
	}
	list_moves(w, row, false);
	list_moves(w, row, true);
}

/* ---- paths ---------------------------------------------------------------- */

/* The egress that light at an ingress leaves by, -1: none. *move: the circuit
 * is that one, else it stays. */
static int egress(const struct stage_work *w, int row, int in, bool after, int *move)
{
	const struct ports *t = &w->ports[row];
	int m = after ? t->add[in] : t->del[in];
	struct optics_xc xc;

	*move = m;
	if (m < 0) {
		return m == PORT_KEPT ? t->to[in] : -1;
	}
	xc = xc_of(w, &w->moves.v[m]);
	/* Only one of any-to-any ports' two ways begins at xc.in. */
	return xc.in == in ? xc.out : xc.in;
}

/* Follows light from a transmitter; returns the receiving port or -1, and the
 * moves on its path. */
static int follow(const struct stage_work *w, int tx, bool after, int_list *moves)
{
	int device = w->f->ports[tx].tx_device, in = w->f->ports[tx].tx_port;

	moves->n = 0;
	for (int hops = 0; device >= 0 && hops < MAX_HOPS; hops++) {
		int move, out = egress(w, w->row_of[device], in, after, &move);
		const struct model_device *dev = &w->f->devices[device];
		const struct model_trunk *t;

		if (out < 0 || (move >= 0 && w->moves.v[move].is_displaced)) {
			return -1;
		}
		if (move >= 0) {
			vec_push(moves, move);
		}
		if (dev->out_port[out] != MODEL_AT_TRUNK) {
			return dev->out_port[out];
		}
		t = &w->f->trunks[w->trunk_at[device][out]];
		device = t->to_device;
		in = t->to_port;
	}
	return -1;
}

/* Adds a path to the capacity of a host or pair, at the times at which it is
 * there. */
static void count_in(struct room *r, const struct stage_path *path)
{
	r->before += path->begins ? 0 : path->bps;
	r->now += path->begins ? 0 : path->bps;
	r->after += path->ends ? 0 : path->bps;
}

/* Notes a path and the moves on it, at the rate of its slower port. One without
 * moves is seen in both passes and counted in the first. */
static void add_path(struct stage_work *w, int tx, int rx, bool after,
		   const int_list *moves)
{
	const struct model_port *from = &w->f->ports[tx];
	const struct model_port *to = &w->f->ports[rx];
	struct stage_path path = {
		.tx_host = from->host, .rx_host = to->host,
		.bps = from->rate_bps < to->rate_bps ? from->rate_bps
						     : to->rate_bps,
		.ends = !after && moves->n, .begins = after && moves->n,
		.missing = after ? (int)moves->n : 0, .last = -1,
	};
	struct stage_pair pair = { path.tx_host, path.rx_host, { 0 } };

	/* What stays is seen before and after. */
	if (moves->n == 0 && after) {
		return;
	}
	count_in(&w->tx[path.tx_host], &path);
	count_in(&w->rx[path.rx_host], &path);
	for (size_t i = 0; i < moves->n; i++) {
		struct stage_move *m = &w->moves.v[moves->v[i]];

		m->path[m->path[0] >= 0] = (int)w->paths.n;
	}
	vec_push(&w->paths, path);
	vec_push(&w->pairs, pair);
}

/* Follows every transmitter twice: as things are, when what moves is to be
 * deleted, and as they will be, when it is to be added. O(ports * hops). */
static void find_paths(struct stage_work *w)
{
	int_list moves = { 0 };

	for (int pass = 0; pass < 2; pass++) {
		for (int p = 0; p < w->f->n_ports; p++) {
			int rx = follow(w, p, pass == 1, &moves);

			if (rx >= 0) {
				add_path(w, p, rx, pass == 1, &moves);
			}
		}
	}
	vec_fini(&moves);
}

/* ---- floors -------------------------------------------------------------- */

static int64_t lesser(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Never more than is left when all is done, whatever was there before. */
static void set_floor(struct room *r, int64_t keep_ppm)
{
	__int128 x = (__int128)lesser(r->before, r->after) * keep_ppm;

	r->floor = (int64_t)((x + MODEL_PPM - 1) / MODEL_PPM);
}

ORDER_BY(by_hosts, struct stage_pair, from, to)

/* One of each. */
static void sort_pairs(struct stage_work *w)
{
	size_t kept = 0;

	if (w->pairs.n) {
		qsort(w->pairs.v, w->pairs.n, sizeof(*w->pairs.v), by_hosts);
	}
	for (size_t i = 1; i < w->pairs.n; i++) {
		if (by_hosts(&w->pairs.v[kept], &w->pairs.v[i]) != 0) {
			w->pairs.v[++kept] = w->pairs.v[i];
		}
	}
	w->pairs.n = w->pairs.n ? kept + 1 : 0;
}

/* The pair of hosts of each path, and what each has. O(paths * log pairs). */
static void count_pairs(struct stage_work *w)
{
	for (size_t i = 0; i < w->paths.n; i++) {
		struct stage_path *path = &w->paths.v[i];
		struct stage_pair key = { path->tx_host, path->rx_host, { 0 } };
		struct stage_pair *p = bsearch(&key, w->pairs.v, w->pairs.n, sizeof(key), by_hosts);

		path->pair = (int)(p - w->pairs.v);
		count_in(&p->room, path);
	}
}

static void set_floors(struct stage_work *w)
{
	const struct model_changes *ch = &w->changes;

	sort_pairs(w);
	count_pairs(w);
	for (int h = 0; h < w->f->n_hosts; h++) {
		set_floor(&w->tx[h], ch->keep_ppm);
		set_floor(&w->rx[h], ch->keep_ppm);
	}
	for (size_t i = 0; i < w->pairs.n; i++) {
		set_floor(&w->pairs.v[i].room, ch->keep_pair_ppm);
	}
}

/* ---- doing and taking back ----------------------------------------------- */

/* Adds capacity, or takes it away. False, and noted for the message, when that
 * breaks the floor. */
static bool change_room(struct stage_work *w, struct room *r, int64_t bps)
{
	r->now += bps;
	if (bps < 0 && r->now < r->floor) {
		w->short_of = r;
		w->short_by = r->now;
		return false;
	}
	return true;
}

/* One circuit more (by -1) or less (by 1) is missing on a path. */
static bool change_path(struct stage_work *w, int index, int by)
{
	struct stage_path *path = &w->paths.v[index];
	bool was = path->missing == 0, is;
	int64_t bps;

	path->missing += by;
	is = path->missing == 0;
	if (was == is) {
		return true;
	}
	bps = is ? path->bps : -path->bps;
	/* All are changed, also when one is short already. */
	return (int)change_room(w, &w->tx[path->tx_host], bps) &
	       (int)change_room(w, &w->rx[path->rx_host], bps) &
	       (int)change_room(w, &w->pairs.v[path->pair].room, bps);
}

/* Makes a circuit present or absent with all that follows for its paths. The
 * change is made even if it breaks a floor (false): the caller takes it back.
 * */
static bool change_move(struct stage_work *w, struct stage_move *m, bool present)
{
	bool ok = true;

	m->done = present == m->is_add;
	for (int k = 0; k < 2; k++) {
		if (m->path[k] >= 0) {
			ok &= change_path(w, m->path[k], present ? -1 : 1);
		}
	}
	return ok;
}

/* Deletes circuits of the stage from taken.v[first] on again. */
static void put_back(struct stage_work *w, size_t first)
{
	while (w->taken.n > first) {
		change_move(w, &w->moves.v[w->taken.v[--w->taken.n]], true);
	}
}

/* False when the floor does not allow it: then nothing was changed. */
static bool take(struct stage_work *w, int move)
{
	w->taken.v[w->taken.n++] = move;	/* there is room for all */
	if (!change_move(w, &w->moves.v[move], false)) {
		put_back(w, w->taken.n - 1);
		return false;
	}
	return true;
}

/* ---- groups -------------------------------------------------------------- */

/* Union-find with path halving. */
static int root_of(int *parent, int x)
{
	while (parent[x] != x) {
		x = parent[x] = parent[parent[x]];
	}
	return x;
}

/* The lower index becomes the root, so that groups do not depend on the order
 * of joins. */
static void join(int *parent, int a, int b)
{
	a = root_of(parent, a);
	b = root_of(parent, b);
	parent[a > b ? a : b] = a > b ? b : a;
}

/* The moves of the other kind at the two ports of one. */
static void across(const struct stage_work *w, int move, int other[2])
{
	const struct stage_move *m = &w->moves.v[move];
	const struct ports *t = &w->ports[m->row];
	const int *map = m->is_add ? t->del : t->add;
	int side[2];

	sides_of(device_of(w, m->row), xc_of(w, m), side);
	other[0] = map[side[0]] >= 0 ? map[side[0]] : -1;
	other[1] = map[side[1]] >= 0 ? map[side[1]] : -1;
	other[1] = other[1] == other[0] ? -1 : other[1];
}

/* Moves of the domain at hand that share a port or a path belong together. */
static void join_moves(struct stage_work *w)
{
	int other[2];

	for (int i = w->begin; i < w->end; i++) {
		w->parent[i] = i;
	}
	for (int i = w->begin; i < w->end; i++) {
		const struct stage_move *m = &w->moves.v[i];

		across(w, i, other);
		for (int k = 0; k < 2; k++) {
			struct stage_path *path = m->path[k] < 0 ? NULL : &w->paths.v[m->path[k]];

			if (other[k] >= 0) {
				join(w->parent, i, other[k]);
			}
			if (path && path->last >= w->begin && path->last < w->end) {
				join(w->parent, i, path->last);
			}
			if (path) {
				path->last = i;
			}
		}
	}
}

/* Groups that gain the most circuits first, then in the order of their moves.
 * */
static int by_gain(const void *a, const void *b)
{
	const struct group *g = a, *h = b;

	return g->gain != h->gain ? (g->gain < h->gain) - (g->gain > h->gain) :
				    (g->first > h->first) - (g->first < h->first);
}

/* A group for each root. A root has the lowest index of its group, so that it
 * comes before the others. */
static void add_groups(struct stage_work *w)
{
	w->groups.n = 0;
	for (int i = w->begin; i < w->end; i++) {
		int root = root_of(w->parent, i);
		struct group *g;

		if (root == i) {
			w->moves.v[i].group = (int)w->groups.n;
			vec_push(&w->groups, (struct group){ 0 });
		}
		w->moves.v[i].group = w->moves.v[root].group;
		g = &w->groups.v[w->moves.v[i].group];
		g->n++;
		g->gain += w->moves.v[i].is_add ? 1 : -1;
	}
}

/* Lists the moves of one group after those of the other. */
static void find_groups(struct stage_work *w)
{
	int n = 0;

	join_moves(w);
	add_groups(w);
	for (size_t g = 0; g < w->groups.n; g++) {
		w->groups.v[g].first = n;
		n += w->groups.v[g].n;
		w->groups.v[g].n = 0;
	}
	for (int i = w->begin; i < w->end; i++) {
		struct group *g = &w->groups.v[w->moves.v[i].group];

		w->grouped[g->first + g->n++] = i;
	}
	if (w->groups.n) {
		qsort(w->groups.v, w->groups.n, sizeof(*w->groups.v), by_gain);
	}
}

/* ---- a stage ------------------------------------------------------------- */

/* All deletes of a group, or none. */
static bool take_whole(struct stage_work *w, struct group *g)
{
	size_t first = w->taken.n;

	for (int i = g->first; i < g->first + g->n; i++) {
		int move = w->grouped[i];
		const struct stage_move *m = &w->moves.v[move];

		if (!m->is_add && !m->done && !take(w, move)) {
			put_back(w, first);
			return false;
		}
	}
	g->done = true;
	return true;
}

/* Deletes what is in the way of an add, at most `most` circuits. */
static bool make_room(struct stage_work *w, int add, int most)
{
	size_t first = w->taken.n;
	int other[2], n = 0;

	across(w, add, other);
	for (int k = 0; k < 2; k++) {
		n += other[k] >= 0 && !w->moves.v[other[k]].done;
	}
	if (n == 0 || n > most) {
		return false;
	}
	for (int k = 0; k < 2; k++) {
		if (other[k] >= 0 && !w->moves.v[other[k]].done && !take(w, other[k])) {
			put_back(w, first);
			return false;
		}
	}
	return true;
}

/* From an add that was made room for along the ports that this set free, as far as
 * the floor allows. */
static void walk(struct stage_work *w, int add, int_list *todo)
{
	todo->n = 0;
	while (true) {
		int other[2], next[2];

		across(w, add, other);
		for (int k = 0; k < 2; k++) {
			if (other[k] < 0 || !w->moves.v[other[k]].done) {
				continue;
			}
			across(w, other[k], next);
			for (int j = 0; j < 2; j++) {
				if (next[j] >= 0 && next[j] != add && make_room(w, next[j], 1)) {
					vec_push(todo, next[j]);
				}
			}
		}
		if (todo->n == 0) {
			return;
		}
		add = todo->v[--todo->n];
	}
}

/* A circuit still to be deleted that no add waits for. */
static bool blocks_nothing(const struct stage_work *w, int move)
{
	int other[2];

	across(w, move, other);
	return !w->moves.v[move].is_add && !w->moves.v[move].done &&
	       (other[0] < 0 || w->moves.v[other[0]].done) &&
	       (other[1] < 0 || w->moves.v[other[1]].done);
}

/* A part of a group: first adds that wait for one circuit, then for two, then
 * deletes alone. */
static void take_part(struct stage_work *w, struct group *g)
{
	size_t before = w->taken.n;
	int_list todo = { 0 };

	for (int most = 1; most <= 2 && w->taken.n == before; most++) {
		for (int i = g->first; i < g->first + g->n &&
		     (most == 1 || w->taken.n == before); i++) {
			int move = w->grouped[i];

			if (w->moves.v[move].is_add &&
			    !w->moves.v[move].done && make_room(w, move, most)) {
				walk(w, move, &todo);
			}
		}
	}
	for (int i = g->first; i < g->first + g->n && w->taken.n == before; i++) {
		if (blocks_nothing(w, w->grouped[i])) {
			take(w, w->grouped[i]);
		}
	}
	vec_fini(&todo);
}

/* An add can be made when nothing is left in its way. */
static bool is_ready(const struct stage_work *w, int add)
{
	int other[2];

	across(w, add, other);
	return !w->moves.v[add].done &&
	       (other[0] < 0 || w->moves.v[other[0]].done) &&
	       (other[1] < 0 || w->moves.v[other[1]].done);
}

/* Keeps the host that the stage leaves with the least share of its capacity.
 * Fractions are compared by products, exactly. */
static void note_min(struct plan_stage *st, int host, bool is_rx, const struct room *r)
{
	int64_t of = lesser(r->before, r->after);

	/* now / of < bps / of_bps */
	if (of > 0 && r->now < of && (st->host < 0 ||
				      (__int128)r->now * st->of_bps < (__int128)st->bps * of)) {
		st->host = host;
		st->is_rx = is_rx;
		st->bps = r->now;
		st->of_bps = of;
	}
}

/* Both ends of every path that a delete of the stage interrupts. */
static void note_paths(const struct stage_work *w, struct plan_stage *st,
		      const struct stage_move *m)
{
	for (int k = 0; k < 2; k++) {
		if (m->path[k] >= 0) {
			const struct stage_path *path = &w->paths.v[m->path[k]];

			note_min(st, path->tx_host, false, &w->tx[path->tx_host]);
			note_min(st, path->rx_host, true, &w->rx[path->rx_host]);
		}
	}
}

/* The number of the present stage goes into the device's step. */
static void mark_stage(struct stage_work *w, const struct stage_move *m)
{
	struct plan_device *d = &w->p->devices[m->row];

	*(m->is_add ? &d->add_stage[m->at] : &d->del_stage[m->at]) =
		(int)w->stages.n;
}

/* Writes down the stage that was put together and makes its adds. Returns how
 * many moves it has. */
static int end_stage(struct stage_work *w, const char *domain)
{
	struct plan_stage st = { .domain = domain, .host = -1,
				 .n_del = (int)w->taken.n };

	for (size_t i = 0; i < w->taken.n; i++) {
		const struct stage_move *m = &w->moves.v[w->taken.v[i]];

		mark_stage(w, m);
		note_paths(w, &st, m);
	}
	for (int i = w->begin; i < w->end; i++) {
		struct stage_move *m = &w->moves.v[i];

		if (m->is_add && is_ready(w, i)) {
			change_move(w, m, true);
			mark_stage(w, m);
			st.n_add++;
		}
	}
	w->taken.n = 0;
	if (st.n_del + st.n_add > 0) {
		vec_push(&w->stages, st);
	}
	return st.n_del + st.n_add;
}

/* Groups that were begun go first, so that few are open at a time; another is
 * begun only when nothing else can be done. */
static void fill_stage(struct stage_work *w)
{
	bool any = false;

	for (size_t i = 0; i < w->groups.n; i++) {
		struct group *g = &w->groups.v[i];

		if (g->open && !g->done) {
			any = true;
			if (!take_whole(w, g)) {
				take_part(w, g);
			}
		}
	}
	for (size_t i = 0; i < w->groups.n; i++) {
		struct group *g = &w->groups.v[i];

		any |= !g->open && !g->done && take_whole(w, g);
	}
	for (size_t i = 0; i < w->groups.n && !any; i++) {
		struct group *g = &w->groups.v[i];

		take_part(w, g);
		g->open = any = w->taken.n > 0;
	}
}

/* ---- a domain ------------------------------------------------------------ */

/* Names what is short: a host, one way, or a pair. */
static int refuse(const struct stage_work *w, const char *domain, struct err *err)
{
	const struct room *r = w->short_of;
	bool is_tx = r >= w->tx && r < w->tx + w->f->n_hosts;
	bool is_rx = r >= w->rx && r < w->rx + w->f->n_hosts;
	char what[2 * CONF_MAX_NAME + 48], of[32], floor[32], left[32];

	if (is_tx || is_rx) {
		snprintf(what, sizeof(what), "keep: what %s %s",
			 w->f->hosts[is_tx ? r - w->tx : r - w->rx].name,
			 is_tx ? "sends" : "receives");
	} else {
		const struct stage_pair *p = (const struct stage_pair *)
			((const char *)r - offsetof(struct stage_pair, room));

		snprintf(what, sizeof(what), "keep-pair: from %s to %s",
			 w->f->hosts[p->from].name, w->f->hosts[p->to].name);
	}
	unit_str(UNIT_BPS, lesser(r->before, r->after), of, sizeof(of));
	unit_str(UNIT_BPS, r->floor, floor, sizeof(floor));
	unit_str(UNIT_BPS, w->short_by, left, sizeof(left));
	err_set(err, WEFT_EINFEASIBLE, "changes: the floor cannot be kept in "
		"domain %s: %s would fall to %s of %s, at least %s must stay",
		domain, what, left, of, floor);
	err_hint(err, "a smaller change, spare ports or a lower floor makes "
		 "room");
	if (w->f->changes.place.line) {
		err_at(err, w->f->config.name, w->f->changes.place.line, w->f->changes.place.col);
	}
	return WEFT_EINFEASIBLE;
}

/* Stages until every move of the domain is made. A stage in which nothing can
 * be done means that this order finds no way. */
static int cut_domain(struct stage_work *w, const char *domain, struct err *err)
{
	int left = w->end - w->begin;

	find_groups(w);
	while (left > 0) {
		int n;

		fill_stage(w);
		n = end_stage(w, domain);
		if (n == 0) {
			return refuse(w, domain, err);
		}
		left -= n;
	}
	return 0;
}

/* Takes back the stages of the domain at hand, from `first` on. */
static void uncut(struct stage_work *w, size_t first)
{
	w->stages.n = first;
	for (int i = w->begin; i < w->end; i++) {
		struct stage_move *m = &w->moves.v[i];

		if (m->done) {
			change_move(w, m, !m->is_add);
		}
	}
}

/* ---- rings --------------------------------------------------------------- */

/* A program is replaced as a whole: the job has no light meanwhile. */
static int check_ring(const struct stage_work *w, const struct plan_device *d, struct err *err)
{
	const struct model_device *dev = &w->f->devices[d->device];

	if (!w->changes.keep_ppm && !w->changes.keep_pair_ppm) {
		return 0;
	}
	for (int i = 0; i < d->programs.n; i++) {
		const struct ring_program *p = &d->programs.v[i];
		const struct ring_program *had = ring_programs_find(&d->old_programs, p->name);

		if (had && !ring_program_equal(had, p)) {
			err_set(err, WEFT_EINFEASIBLE, "changes: the floor "
				"cannot be kept: the program of job %s on %s "
				"is replaced as a whole", p->name, dev->name);
			err_hint(err, "end the job first, or set keep and "
				 "keep-pair to 0%%");
			return WEFT_EINFEASIBLE;
		}
	}
	return 0;
}

/* Loads of a domain's rings go with its first stage. */
static int place_loads(struct stage_work *w, const char *domain, size_t first, struct err *err)
{
	struct plan_stage st = { .domain = domain, .host = -1 };
	int rc = 0;

	for (int r = 0; r < w->p->n_devices && rc == 0; r++) {
		struct plan_device *d = &w->p->devices[r];

		if (!d->load_program || strcmp(device_of(w, r)->domain, domain) != 0) {
			continue;
		}
		rc = check_ring(w, d, err);
		if (rc == 0 && w->stages.n == first) {
			vec_push(&w->stages, st);
		}
		if (rc == 0) {
			d->load_stage = (int)first;
			w->stages.v[first].n_loads++;
		}
	}
	return rc;
}

/* ---- all domains --------------------------------------------------------- */

/* The row behind the last of the domain that begins at `row`. */
static int end_of_domain(const struct stage_work *w, int row)
{
	const char *domain = device_of(w, row)->domain;

	while (row < w->p->n_devices && strcmp(device_of(w, row)->domain, domain) == 0) {
		row++;
	}
	return row;
}

/* Cuts one domain. On failure its stages and moves are taken back, and another
 * domain may come first. */
static int try_domain(struct stage_work *w, int row, int end, struct err *err)
{
	const char *domain = device_of(w, row)->domain;
	size_t first = w->stages.n;
	int rc;

	w->begin = w->first_move[row];
	w->end = w->first_move[end];
	rc = cut_domain(w, domain, err);
	if (rc == 0) {
		rc = place_loads(w, domain, first, err);
	}
	if (rc) {
		uncut(w, first);
	}
	return rc;
}

/* The first domain that is left and can be done; the error of the first
 * otherwise. */
static int cut_next(struct stage_work *w, bool *is_done, bool *any, struct err *err)
{
	struct err first = { 0 };

	*any = false;
	for (int row = 0, end; row < w->p->n_devices; row = end) {
		struct err now = { 0 };

		end = end_of_domain(w, row);
		if (is_done[row]) {
			continue;
		}
		if (try_domain(w, row, end, &now) == 0) {
			is_done[row] = *any = true;
			return 0;
		}
		first = first.code ? first : now;
		if (now.code != WEFT_EINFEASIBLE) {
			break;
		}
	}
	if (first.code && err) {
		*err = first;
	}
	return first.code;
}

/* Domain by domain, until none is left; cut_next has an error while one is left
 * that cannot be done. */
static int cut_all(struct stage_work *w, struct err *err)
{
	bool *is_done = x_new(w->p->n_devices + 1, sizeof(*is_done));
	bool any = true;
	int rc = 0;

	while (rc == 0 && any) {
		rc = cut_next(w, is_done, &any, err);
	}
	free(is_done);
	return rc;
}

static void work_init(struct stage_work *w)
{
	w->ports = x_new(w->p->n_devices + 1, sizeof(*w->ports));
	w->first_move = x_new(w->p->n_devices + 1, sizeof(*w->first_move));
	w->row_of = x_new(w->f->n_devices + 1, sizeof(*w->row_of));
	w->tx = x_new(w->f->n_hosts + 1, sizeof(*w->tx));
	w->rx = x_new(w->f->n_hosts + 1, sizeof(*w->rx));
	for (int r = 0; r < w->p->n_devices; r++) {
		struct plan_device *d = &w->p->devices[r];

		w->row_of[d->device] = r;
		d->del_stage = x_new(d->n_del + 1, sizeof(int));
		d->add_stage = x_new(d->n_add + 1, sizeof(int));
		w->first_move[r] = (int)w->moves.n;
		map_ports(w, r);
	}
	w->first_move[w->p->n_devices] = (int)w->moves.n;
	w->parent = x_alloc(w->moves.n + 1, sizeof(*w->parent));
	w->grouped = x_alloc(w->moves.n + 1, sizeof(*w->grouped));
	vec_reserve(&w->taken, w->moves.n + 1);
	w->trunk_at = plan_map_trunks(w->f);
}

static void work_fini(struct stage_work *w)
{
	for (int r = 0; r < w->p->n_devices && w->ports; r++) {
		free(w->ports[r].del);
		free(w->ports[r].add);
		free(w->ports[r].to);
	}
	free(w->ports);
	free(w->first_move);
	free(w->row_of);
	free(w->parent);
	free(w->grouped);
	plan_trunks_free(w->f, w->trunk_at);
	free(w->tx);
	free(w->rx);
	vec_fini(&w->moves);
	vec_fini(&w->paths);
	vec_fini(&w->pairs);
	vec_fini(&w->groups);
	vec_fini(&w->taken);
	vec_fini(&w->stages);
}

int plan_stages(struct plan_ctx *ctx, struct plan *p, struct err *err)
{
	struct stage_work w = { .ctx = ctx, .f = ctx->fabric, .p = p };
	int rc;

	work_init(&w);
	if (!ctx->base->no_floor) {
		w.changes = ctx->fabric->changes;
	}
	find_paths(&w);
	set_floors(&w);
	rc = cut_all(&w, err);
	if (rc == 0) {
		p->stages = w.stages.v;
		p->n_stages = (int)w.stages.n;
		w.stages.v = NULL;
	}
	work_fini(&w);
	return rc;
}
