/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules for ranks in groups that are joined better inside than to each other, such as the
 * GPUs of servers.
 *
 * The all-gather is that between the groups, each of which is as one rank with all links of its
 * ranks. What crosses from a group to another is dealt to their links by capacity. It spreads
 * within the group, by the all-gather of its own digraph, before the next step between groups: so
 * it goes on by whichever link has room, and is nowhere twice. With D steps between and d inside
 * it takes D (1 + d) steps, and d before them where the first links do not begin at the ranks
 * whose shards they carry. Links between groups carry what that schedule has them carry, and
 * links inside what has to come in: in batches, which overlap, the larger of both remains.
 * Reduce-scatter is the reverse.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/make/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/order.h"
#include "lib/base/vec.h"

/* Pieces of a chunk between groups, of which each of the links gets whole ones. */
#define MAX_PIECES 64

/* Transfers that it may have: of a schedule in one batch. */
#define MAX_TRANSFERS (1 << 22)

/* Chunks of a piece. */
#define MAX_UNIT 5040

/* Widths of arcs that are tried for groups. */
#define MAX_WIDTHS 16

/* The ranks of a group, and how a shard spreads there. */
struct rank_group {
	const int32_t *ranks;
	struct coll_sched *local;	/* all-gather inside; rank i of it is ranks[i] */
	int32_t *arcs;			/* of all ranks, by arc of it */
	const struct coll_xfer **spread;	/* its transfers, by shard */
	int64_t *first;			/* of a shard in spread; [size + 1] */
};

/* Part of a shard on its way: these chunks of an origin, into a rank. */
struct arrival {
	int32_t rank, origin, first, last;
};

struct hierarchy {
	const struct coll_make_query *q;
	int width;			/* of all that join equal groups, the widest is 0 */
	const struct topo *t;		/* of all ranks */
	int n_groups, size;		/* groups, ranks in each */
	int64_t min_cap;		/* of arcs inside; thinner ones are no part of groups */
	int32_t *group, *place;		/* of a rank: its group, and its place there */
	int32_t *ranks;			/* by group */
	struct rank_group *groups;
	int32_t *inside;		/* arcs of all groups, by group */
	struct topo *joined;		/* of groups */
	int32_t *links, *first_link;	/* arcs of t by arc of `joined`, from the first rank on */
	struct coll_sched *between;	/* all-gather on it, with every transfer */
	int depth, unit, pieces;	/* steps inside; chunks of a piece; pieces of a chunk */
	int begin;			/* step of the first transfers between groups */
	VEC(struct arrival) came;		/* over the links of a step */
	struct coll_sched *out;
	struct arrays arrays;
};

/* ---- groups ---- */

static int32_t find_root(int32_t *parent, int32_t u)
{
	while (parent[u] != u) {
		parent[u] = parent[parent[u]];
		u = parent[u];
	}
	return u;
}

int make_join_ranks(const struct topo *t, int64_t cap, int32_t *group)
{
	int n = topo_ranks(t), groups = 0;
	int32_t *parent = x_alloc((size_t)n, sizeof(*parent));

	for (int u = 0; u < n; u++) {
		parent[u] = u;
	}
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		if (arc->cap >= cap && arc->src < n && arc->dst < n) {
			int32_t u = find_root(parent, arc->src), v = find_root(parent, arc->dst);

			parent[u > v ? u : v] = u > v ? v : u;
		}
	}
	for (int u = 0; u < n; u++) {
		int32_t root = find_root(parent, u);

		group[u] = root == u ? groups++ : group[root];
	}
	free(parent);
	return groups;
}

/* Fills in ranks and places; whether all groups have as many ranks, more than one. */
static bool are_alike(struct hierarchy *h)
{
	int n = topo_ranks(h->t);
	int32_t *count = x_new((size_t)h->n_groups, sizeof(*count));
	bool alike = h->n_groups > 1 && h->n_groups < n && n % h->n_groups == 0;

	h->size = alike ? n / h->n_groups : 0;
	for (int u = 0; u < n && alike; u++) {
		h->place[u] = count[h->group[u]]++;
		alike = h->place[u] < h->size;
		if (alike) {
			h->ranks[h->group[u] * h->size + h->place[u]] = u;
		}
	}
	free(count);
	return alike;
}

static int descending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* The groups that are said. */
static bool take_groups(struct hierarchy *h)
{
	h->n_groups = 0;
	for (int u = 0; u < topo_ranks(h->t); u++) {
		h->group[u] = h->q->groups[u];
		h->n_groups = h->group[u] < h->n_groups ? h->n_groups : h->group[u] + 1;
	}
	return h->width == 0 && are_alike(h);
}

/* Those of the arcs that join equal ones, so wide and wider. */
static bool find_groups(struct hierarchy *h)
{
	int m = topo_m(h->t), tried = 0, found = -1, groups = 0;
	int64_t *caps = x_alloc((size_t)m + 1, sizeof(*caps));

	for (int a = 0; a < m; a++) {
		caps[a] = topo_arc(h->t, a)->cap;
	}
	qsort(caps, (size_t)m, sizeof(*caps), descending);
	for (int a = 0; a < m && found < h->width && tried < MAX_WIDTHS; a++) {
		if (a + 1 == m || caps[a + 1] != caps[a]) {
			h->min_cap = caps[a];
			h->n_groups = make_join_ranks(h->t, caps[a], h->group);
			found += are_alike(h) && h->n_groups != groups;
			groups = h->n_groups;
			tried++;
		}
	}
	free(caps);
	return found == h->width;
}

/* ---- inside ---- */

/* Chunks of an all-gather inside, or between. */
#define MAX_PART_CHUNKS 64

/* An all-gather by what is best, whole, of steps of so many; by breadth-first broadcast where that
 * is on other links, or of too many chunks. Every transfer stands for itself. */
static int make_part(const struct hierarchy *h, const struct topo *t, int steps,
		     struct coll_sched **out, struct err *err)
{
	int32_t *alone = x_new((size_t)topo_ranks(t), sizeof(*alone));
	struct coll_cost cost = { 0 };
	struct coll_make_query q = { .kind = COLL_ALLGATHER, .topo = t, .batches = 1,
				     .extra_steps = -1, .links_only = true, .groups = alone,
				     .max_transfers = h->q->max_transfers,
				     .fewest_chunks = true };
	struct coll_made made;
	int rc;

	if (h->q->cost) {
		cost = *h->q->cost;
		cost.alpha_ns *= steps;
		q.cost = &cost;
	}
	rc = coll_make(&q, &made, err);
	if (!rc && (coll_is_embedded(made.sched) || coll_chunks(made.sched) > MAX_PART_CHUNKS)) {
		q.chunks = coll_chunks(made.sched) > MAX_PART_CHUNKS ? MAX_PART_CHUNKS : 0;
		q.algorithm = coll_algorithm_find("bfb", COLL_ALLGATHER);
		coll_made_fini(&made);
		rc = coll_make(&q, &made, err);
	}
	if (!rc) {
		rc = coll_unfold(made.sched, out, err);
	}
	coll_made_fini(&made);
	free(alone);
	return rc;
}

/* The digraph of a group; arcs: its arcs in that of all. */
static int group_digraph(const struct hierarchy *h, int g, int32_t *arcs, struct topo **out,
			 struct err *err)
{
	int n = 0, rc = topo_new(h->size, out, err);

	for (int i = 0; i < h->size && !rc; i++) {
		int first, degree = topo_out(h->t, h->ranks[g * h->size + i], &first);

		for (int a = first; a < first + degree && !rc; a++) {
			const struct topo_arc *arc = topo_arc(h->t, a);

			if (h->group[arc->dst] == g && arc->cap >= h->min_cap) {
				arcs[n++] = a;
				rc = topo_add_arc_like(*out, i, h->place[arc->dst], arc, err);
			}
		}
	}
	if (rc) {
		topo_free(*out);
		*out = NULL;
		return rc;
	}
	topo_freeze(*out);
	return 0;
}

/* Its transfers by shard, in the order of their steps. */
static void index_spread(struct hierarchy *h, struct rank_group *group)
{
	int64_t n, *next;
	const struct coll_xfer *x = coll_xfers(group->local, &n);

	arrays_add(&h->arrays, group->spread, n + 1);
	arrays_add(&h->arrays, group->first, h->size + 1);
	next = x_new((size_t)h->size + 1, sizeof(*next));
	for (int64_t i = 0; i < n; i++) {
		group->first[x[i].origin + 1]++;
	}
	for (int r = 0; r < h->size; r++) {
		group->first[r + 1] += group->first[r];
		next[r] = group->first[r];
	}
	for (int64_t i = 0; i < n; i++) {
		group->spread[next[x[i].origin]++] = &x[i];
	}
	free(next);
}

static bool are_equal(const struct topo *a, const struct topo *b)
{
	bool equal = topo_m(a) == topo_m(b);

	for (int i = 0; i < topo_m(a) && equal; i++) {
		equal = topo_arc_compare(topo_arc(a, i), topo_arc(b, i)) == 0;
	}
	return equal;
}

/* The all-gather inside a group; of the first one where they are alike. arcs: where its own are
 * written. */
static int make_inside(struct hierarchy *h, int g, int32_t *arcs, struct err *err)
{
	struct rank_group *group = &h->groups[g], *first = &h->groups[0];
	struct topo *t;
	int rc;

	group->ranks = &h->ranks[g * h->size];
	group->arcs = arcs;
	rc = group_digraph(h, g, group->arcs, &t, err);
	if (rc) {
		return rc;
	}
	if (g > 0 && are_equal(t, coll_topo(first->local))) {
		group->local = first->local;
		group->spread = first->spread;
		group->first = first->first;
		topo_free(t);
		return 0;
	}
	rc = make_part(h, t, 1, &group->local, err);
	topo_free(t);
	if (!rc) {
		index_spread(h, group);
	}
	return rc;
}

static int make_all_inside(struct hierarchy *h, struct err *err)
{
	int32_t *arcs = h->inside;
	int rc = 0;

	h->unit = 1;
	arrays_add(&h->arrays, h->groups, h->n_groups);
	for (int g = 0; g < h->n_groups && !rc; g++) {
		rc = make_inside(h, g, arcs, err);
		if (!rc) {
			int chunks = coll_chunks(h->groups[g].local);
			int steps = coll_steps(h->groups[g].local);

			arcs += topo_m(coll_topo(h->groups[g].local));
			h->unit = h->unit / (int)rat_gcd(h->unit, chunks) * chunks;
			h->depth = steps > h->depth ? steps : h->depth;
			rc = h->unit > MAX_UNIT
				     ? err_set(err, WEFT_ELIMIT, "groups that differ too much") : 0;
		}
	}
	return rc;
}

/* ---- between ---- */

struct link {
	int32_t src, dst, place, arc;	/* groups, place of the rank that sends */
};

ORDER_BY(compare_links, struct link, src, dst, place, arc)

/* Links between groups, in the order of the arcs that they are part of. */
static int list_links(struct hierarchy *h)
{
	struct link *links = x_alloc((size_t)topo_m(h->t) + 1, sizeof(*links));
	int n = 0;

	for (int a = 0; a < topo_m(h->t); a++) {
		const struct topo_arc *arc = topo_arc(h->t, a);
		int src = h->group[arc->src], dst = h->group[arc->dst];

		if (src != dst) {
			links[n++] = (struct link){ src, dst, h->place[arc->src], a };
		}
	}
	qsort(links, (size_t)n, sizeof(*links), compare_links);
	for (int i = 0; i < n; i++) {
		h->links[i] = links[i].arc;
	}
	free(links);
	return n;
}

/* The capacity of links a to b - 1 together. */
static int64_t capacity(const struct hierarchy *h, int a, int b)
{
	int64_t sum = 0;

	for (int i = a; i < b; i++) {
		sum += topo_arc(h->t, h->links[i])->cap;
	}
	return sum;
}

/* Pieces become a multiple of parts, where they are not too many. */
static void divide_by(struct hierarchy *h, int64_t parts)
{
	parts = h->pieces / rat_gcd(h->pieces, parts) * parts;
	h->pieces = parts <= MAX_PIECES ? (int)parts : h->pieces;
}

/* Pieces of a chunk so that links a to b - 1 get whole ones of what all ranks of a group have,
 * and so do those of one rank of what it has. */
static void count_pieces(struct hierarchy *h, int a, int b)
{
	int64_t unit = 0, parts;

	for (int i = a; i < b; i++) {
		unit = rat_gcd(unit, topo_arc(h->t, h->links[i])->cap);
	}
	parts = capacity(h, a, b) / unit;
	parts = parts <= (int64_t)h->size * MAX_PIECES ? parts : b - a;
	divide_by(h, parts / rat_gcd(parts, h->size));
	if ((b - a) % h->size == 0) {
		divide_by(h, (b - a) / h->size);
	}
}

/* One arc for all links from a group to another. */
static int join_groups(struct hierarchy *h, struct err *err)
{
	int n = list_links(h), arcs = 0, rc = topo_new(h->n_groups, &h->joined, err);

	h->pieces = 1;
	for (int a = 0, b; a < n && !rc; a = b) {
		const struct topo_arc *arc = topo_arc(h->t, h->links[a]);
		int src = h->group[arc->src], dst = h->group[arc->dst];
		int64_t latency_ns = 0;

		for (b = a; b < n; b++) {
			const struct topo_arc *link = topo_arc(h->t, h->links[b]);

			if (h->group[link->src] != src || h->group[link->dst] != dst) {
				break;
			}
			latency_ns = link->latency_ns > latency_ns ? link->latency_ns : latency_ns;
		}
		h->first_link[arcs++] = a;
		count_pieces(h, a, b);
		rc = topo_add_arc(h->joined, src, dst, capacity(h, a, b), latency_ns, err);
	}
	h->first_link[arcs] = n;
	if (!rc) {
		topo_freeze(h->joined);
	}
	return rc;
}

/* ---- all ---- */

/* What a rank holds spreads in its group from a step on. */
static int spread(struct hierarchy *h, const struct arrival *p, int step, struct err *err)
{
	const struct rank_group *g = &h->groups[h->group[p->rank]];
	int place = h->place[p->rank], part = (p->last - p->first + 1) / coll_chunks(g->local);
	int rc = 0;

	for (int64_t i = g->first[place]; i < g->first[place + 1] && !rc; i++) {
		struct coll_xfer x = *g->spread[i];

		x.step += step;
		x.arc = g->arcs[x.arc];
		x.origin = p->origin;
		x.first = p->first + x.first * part;
		x.last = p->first + (x.last + 1) * part - 1;
		rc = coll_add(h->out, &x, err);
	}
	return rc;
}

/* Pieces on their way to links, in the order in which they are dealt. */
struct deal {
	int link;		/* that of now */
	int64_t dealt, total;	/* pieces */
	int64_t passed, capacity;	/* of the links up to it; of all */
};

static struct deal deal_init(const struct hierarchy *h, int first, int end, int64_t total)
{
	return (struct deal){ .link = first, .total = total, .capacity = capacity(h, first, end),
			      .passed = topo_arc(h->t, h->links[first])->cap };
}

/* Pieces `first` to `last` - 1 of a shard to the next links. */
static int deal_pieces(struct hierarchy *h, struct deal *d, int step, int origin, int first,
		       int last, struct err *err)
{
	int rc = 0;

	while (first < last && !rc) {
		int64_t n = (int64_t)((__int128)d->total * d->passed / d->capacity) - d->dealt;
		struct coll_xfer x = { .step = step, .arc = h->links[d->link], .origin = origin,
				       .dest = COLL_NO_DEST, .op = COLL_OP_COPY };

		if (n == 0) {
			d->passed += topo_arc(h->t, h->links[++d->link])->cap;
			continue;
		}
		n = n < last - first ? n : last - first;
		x.first = first * h->unit;
		x.last = (first + (int)n) * h->unit - 1;
		vec_push(&h->came, (struct arrival){ topo_arc(h->t, x.arc)->dst, origin, x.first,
						   x.last });
		rc = coll_add(h->out, &x, err);
		first += (int)n;
		d->dealt += n;
	}
	return rc;
}

/* Behind the links of an arc from `first` on that begin at the rank of this place. */
static int end_of_rank(const struct hierarchy *h, int arc, int first, int place)
{
	while (first < h->first_link[arc + 1] &&
	       h->place[topo_arc(h->t, h->links[first])->src] == place) {
		first++;
	}
	return first;
}

/* The n transfers of one arc and step between groups: each shard to all links, or (begins_here)
 * to those of the rank whose shard it is. */
static int deal_arc(struct hierarchy *h, const struct coll_xfer *x, int64_t n, bool begins_here,
		    struct err *err)
{
	int first = h->first_link[x->arc], end = h->first_link[x->arc + 1], rc = 0;
	int64_t total = 0;
	struct deal d;

	for (int64_t i = 0; i < n; i++) {
		total += (int64_t)(x[i].last - x[i].first + 1) * h->pieces;
	}
	d = deal_init(h, first, end, total * h->size);
	for (int r = 0; r < h->size; r++) {
		if (begins_here) {
			end = end_of_rank(h, x->arc, first, r);
			d = deal_init(h, first, end, total);
			first = end;
		}
		for (int64_t i = 0; i < n && !rc; i++) {
			rc = deal_pieces(h, &d, h->begin + x->step * (1 + h->depth),
					 h->groups[x[i].origin].ranks[r],
					 x[i].first * h->pieces, (x[i].last + 1) * h->pieces,
					 err);
		}
	}
	return rc;
}

/* Transfers between groups, and what they bring within them. */
static int send_between(struct hierarchy *h, struct err *err)
{
	int64_t n, end;
	const struct coll_xfer *x = coll_xfers(h->between, &n);
	int rc = 0;

	for (int64_t i = 0; i < n && !rc; i = end) {
		for (end = i; end < n && x[end].arc == x[i].arc && x[end].step == x[i].step;) {
			end++;
		}
		h->came.n = 0;
		rc = deal_arc(h, &x[i], end - i, h->begin == 0 && x[i].step == 0, err);
		for (size_t k = 0; k < h->came.n && !rc; k++) {
			rc = spread(h, &h->came.v[k], h->begin + x[i].step * (1 + h->depth) + 1,
				    err);
		}
	}
	return rc;
}

/* Whether each rank's links out of its group have nearly a like share of every arc, so that they
 * can carry its own shard first. */
static bool are_even(const struct hierarchy *h)
{
	for (int a = 0; a < topo_m(h->joined); a++) {
		int64_t least = topo_arc(h->joined, a)->cap * 3 / 4;

		for (int r = 0, i = h->first_link[a], end; r < h->size; r++, i = end) {
			end = end_of_rank(h, a, i, r);
			if (i == end || capacity(h, i, end) < least / h->size) {
				return false;
			}
		}
	}
	return true;
}

static int fill(struct hierarchy *h, struct err *err)
{
	int chunks = coll_chunks(h->out), rc = 0;
	bool even = are_even(h);

	h->begin = even ? 0 : h->depth;
	for (int r = 0; r < topo_ranks(h->t) && !rc; r++) {
		rc = spread(h, &(struct arrival){ r, r, 0, chunks - 1 }, 0, err);
	}
	if (!rc) {
		rc = send_between(h, err);
	}
	return rc ? rc : coll_finish(h->out, err);
}

/* A schedule without transfers, of as many chunks as are needed. */
static int make_empty(struct hierarchy *h, struct err *err)
{
	int64_t n, chunks = (int64_t)coll_chunks(h->between) * h->pieces * h->unit;
	struct topo *copy = NULL;
	int rc;

	coll_xfers(h->between, &n);
	if (chunks > COLL_MAX_CHUNKS || n * h->size * h->size > MAX_TRANSFERS) {
		return err_set(err, WEFT_ELIMIT, "%lld chunks and %lld transfers between groups "
			       "of %d ranks: too many", (long long)chunks, (long long)n, h->size);
	}
	rc = topo_copy(h->t, &copy, err);
	return rc ? rc : coll_new(COLL_ALLGATHER, copy, (int)chunks, 0, 0, &h->out, err);
}

static void hierarchy_init(struct hierarchy *h, const struct hierarchy *like, const struct topo *t)
{
	*h = (struct hierarchy){ .q = like->q, .width = like->width, .t = t };
	arrays_add(&h->arrays, h->group, topo_ranks(t));
	arrays_add(&h->arrays, h->place, topo_ranks(t));
	arrays_add(&h->arrays, h->ranks, topo_ranks(t));
	arrays_add(&h->arrays, h->inside, topo_m(t) + 1);
	arrays_add(&h->arrays, h->links, topo_m(t) + 1);
	arrays_add(&h->arrays, h->first_link, topo_m(t) + 1);
}

static void hierarchy_fini(struct hierarchy *h)
{
	for (int g = 0; g < h->n_groups && h->groups; g++) {
		if (g == 0 || h->groups[g].local != h->groups[0].local) {
			coll_free(h->groups[g].local);
		}
	}
	topo_free(h->joined);
	coll_free(h->between);
	vec_fini(&h->came);
	arrays_fini(&h->arrays);
}

/* coll_gather_fn. */
static int allgather(const struct topo *t, const void *like, struct coll_sched **out,
		     struct err *err)
{
	struct hierarchy h;
	int rc = topo_check_plain(t, "hierarchical", err);

	if (rc) {
		return rc;
	}
	hierarchy_init(&h, like, t);
	if (!(h.q->groups ? take_groups(&h) : find_groups(&h))) {
		rc = err_set(err, WEFT_EUNSUPPORTED, "hierarchical: the ranks are no groups of "
			     "equal size that are joined better inside");
	}
	(void)(rc || (rc = make_all_inside(&h, err)) || (rc = join_groups(&h, err)) ||
	       (rc = make_part(&h, h.joined, 1 + h.depth, &h.between, err)) ||
	       (rc = make_empty(&h, err)) || (rc = fill(&h, err)));
	if (rc) {
		coll_free(h.out);
		h.out = NULL;
	}
	*out = h.out;
	hierarchy_fini(&h);
	return rc;
}

/* Proven, not embedded. width: where groups are not said, of all widths of arcs that join equal
 * ones, from the widest on. O(transfers) beside the all-gathers inside and between. */
static int make_hierarchy(const struct coll_make_query *q, int width, struct coll_sched **out,
			  struct err *err)
{
	struct hierarchy like = { .q = q, .width = width };

	return coll_from_gathers(q->kind, q->topo, allgather, &like, out, err);
}

/* Of ranks in the groups of a width; in batches, whose transfers are not moved to idle links, as
 * that gains next to nothing here. */
static int offer_groups(const struct coll_make_query *q, const struct coll_algorithm *self,
			int width, struct coll_made *best, struct err *err)
{
	struct coll_made one = { .algorithm = self };
	int rc = make_hierarchy(q, width, &one.sched, err);

	return rc ? rc : make_offer_overlapped(q, &one, MAX_TRANSFERS, best, err);
}

/* Whether narrower arcs may join groups of which something can be made: these are of too much, or
 * have a rank that another of its group does not reach inside. */
static bool may_be_wider(int rc)
{
	return rc == 0 || rc == WEFT_ELIMIT || rc == WEFT_EINFEASIBLE;
}

/* Of ranks in groups, the smallest first; "auto" passes over digraphs that have none, and groups
 * of which nothing can be made. */
int make_by_hierarchy(const struct coll_make_query *q, const struct coll_algorithm *self,
		      struct coll_made *best, struct err *err)
{
	struct coll_make_query how = *q;
	int rc = 0;

	how.max_transfers = 0;
	for (int width = 0; may_be_wider(rc); width++) {
		if (!q->algorithm && best->sched && !make_is_above(&how, best)) {
			return 0;
		}
		err_clear(err);
		rc = offer_groups(q, self, width, best, err);
	}
	if (rc == WEFT_EUNSUPPORTED && (best->sched || !q->algorithm)) {
		err_clear(err);
		return 0;
	}
	return rc;
}
