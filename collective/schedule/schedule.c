/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule as a container: transfers and light of a digraph that it owns.
 *
 * coll_add only appends, and checks every number; coll_finish sorts. The sort key
 * of a transfer fits two words (the static assertion says why), synthesisers
 * mostly deliver in order, and where they do not, one counting pass by step and
 * arc leaves only short runs to sort. Any change withdraws the proof that
 * coll_prove noted.
 */
#include "collective/schedule/private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

static const char *const kind_names[] = {
	[COLL_ALLGATHER] = "allgather",
	[COLL_REDUCE_SCATTER] = "reduce-scatter",
	[COLL_ALLREDUCE] = "allreduce",
	[COLL_ALLTOALL] = "all-to-all",
	[COLL_BROADCAST] = "broadcast",
	[COLL_REDUCE] = "reduce",
	[COLL_GATHER] = "gather",
	[COLL_SCATTER] = "scatter",
};

const char *coll_kind_name(enum coll_kind kind)
{
	return kind_names[kind];
}

bool coll_has_root(enum coll_kind kind)
{
	return kind >= COLL_BROADCAST;
}

bool coll_is_sum(enum coll_kind kind)
{
	return kind == COLL_REDUCE_SCATTER || kind == COLL_ALLREDUCE || kind == COLL_REDUCE;
}

int coll_kind_parse(const char *name, enum coll_kind *kind, struct err *err)
{
	for (int i = 0; i < COLL_KINDS; i++) {
		if (strcmp(name, kind_names[i]) == 0) {
			*kind = i;
			return 0;
		}
	}
	return err_set(err, WEFT_EINVAL,
		       "unknown collective \"%.64s\": expected allgather, "
		       "reduce-scatter, allreduce, all-to-all, broadcast, "
		       "reduce, gather or scatter",
		       name);
}

/* Refuses capacities that are too large and finds the largest total at a
 * terminal, out or in. */
int coll_count_ports(const struct topo *t, int64_t *ports, struct err *err)
{
	const struct topo_arc *arcs = topo_arcs(t);
	int n = topo_n(t), m = topo_m(t);
	int64_t *sum = x_new(2 * (size_t)n, sizeof(*sum));

	*ports = 0;
	for (int a = 0; a < m; a++) {
		if (arcs[a].cap > COLL_MAX_CAP) {
			free(sum);
			return err_set(err, WEFT_ELIMIT,
				       "arc %d (%d -> %d): capacity above "
				       "%lld, the most a schedule counts with",
				       a, arcs[a].src, arcs[a].dst,
				       (long long)COLL_MAX_CAP);
		}
		sum[arcs[a].src] += arcs[a].cap;
		sum[n + arcs[a].dst] += arcs[a].cap;
	}
	for (int u = 0; u < topo_ranks(t); u++) {
		*ports = sum[u] > *ports ? sum[u] : *ports;
		*ports = sum[n + u] > *ports ? sum[n + u] : *ports;
	}
	free(sum);
	return 0;
}

/* What every node does that a collective passes through. */
static unsigned abilities_for(enum coll_kind kind)
{
	bool copies = kind == COLL_ALLGATHER || kind == COLL_ALLREDUCE || kind == COLL_BROADCAST;

	return TOPO_CAN_STORE | (copies ? TOPO_CAN_COPY : 0U) |
	       (coll_is_sum(kind) ? TOPO_CAN_REDUCE : 0U);
}

static int check_abilities(enum coll_kind kind, const struct topo *t, struct err *err)
{
	for (int u = 0; u < topo_n(t); u++) {
		unsigned missing = abilities_for(kind) & ~topo_node_flags(t, u);

		for (int i = 0; i < TOPO_ABILITIES; i++) {
			if (missing & 1U << i) {
				return err_set(err, WEFT_EUNSUPPORTED, "node %d cannot %s: %s "
					       "without that is not supported", u,
					       topo_ability_name(i), coll_kind_name(kind));
			}
		}
	}
	return 0;
}

/* Data moves between nodes that hold it. */
static int check_nodes(enum coll_kind kind, const struct topo *t, struct err *err)
{
	int rc = topo_check_order(t, err);

	if (rc) {
		return rc;
	}
	if (topo_ranks(t) < 1) {
		return err_set(err, WEFT_EINVAL, "the digraph has no terminals");
	}
	if (topo_holders(t) < topo_n(t)) {
		return err_set(err, WEFT_EUNSUPPORTED, "node %d is a switch, which holds no data: "
			       "a schedule needs an embedding to go through it",
			       topo_holders(t));
	}
	if (coll_is_sum(kind) && topo_ranks(t) < topo_n(t)) {
		return err_set(err, WEFT_EUNSUPPORTED, "node %d is a memory: %s through memories "
			       "is not supported", topo_ranks(t), coll_kind_name(kind));
	}
	return check_abilities(kind, t, err);
}

static int check_shape(const struct topo *t, int chunks, int64_t ports, int root, struct err *err)
{
	if (chunks < 1 || chunks > COLL_MAX_CHUNKS) {
		return err_set(err, chunks < 1 ? WEFT_EINVAL : WEFT_ELIMIT,
			       "%d chunks a shard: expected 1 to %d", chunks,
			       COLL_MAX_CHUNKS);
	}
	if (ports < 0 || ports > COLL_MAX_PORTS) {
		return err_set(err, ports < 0 ? WEFT_EINVAL : WEFT_ELIMIT,
			       "%lld ports: expected 0 to %d",
			       (long long)ports, COLL_MAX_PORTS);
	}
	if (root < 0 || root >= topo_ranks(t)) {
		return err_set(err, WEFT_EINVAL,
			       "root %d is not one of the %d ranks", root,
			       topo_ranks(t));
	}
	return 0;
}

int coll_new(enum coll_kind kind, struct topo *topo, int chunks, int ports,
	     int root, struct coll_sched **out, struct err *err)
{
	struct coll_sched *s;
	int64_t degree = 0;
	int rc;

	*out = NULL;
	if ((rc = check_nodes(kind, topo, err)) || (rc = coll_count_ports(topo, &degree, err)) ||
	    (rc = check_shape(topo, chunks, degree = ports ? ports : degree, root, err))) {
		topo_free(topo);
		return rc;
	}
	s = x_new(1, sizeof(*s));
	s->kind = kind;
	s->topo = topo;
	s->ranks = topo_ranks(topo);
	s->chunks = chunks;
	s->ports = (int)degree;
	s->root = coll_has_root(kind) ? root : 0;
	*out = s;
	return 0;
}

void coll_free(struct coll_sched *s)
{
	if (!s) {
		return;
	}
	coll_forget_placement(s);
	coll_embedding_free(s->embedding);
	topo_action_free(s->action);
	topo_group_free(s->group);
	topo_free(s->topo);
	vec_fini(&s->xfers);
	vec_fini(&s->lights);
	free(s->demands);
	free(s->topo_name);
	free(s);
}

/* Of a digraph: its arcs in both orders, and what is kept of its nodes. */
static size_t topo_memory(const struct topo *t)
{
	return (size_t)topo_m(t) * (sizeof(struct topo_arc) + 2 * sizeof(int32_t)) +
	       (size_t)topo_n(t) * 4 * sizeof(int32_t);
}

/* Of a name, with what the allocator adds. */
#define NAME_MEMORY 32

size_t coll_memory(const struct coll_sched *s)
{
	size_t n = (size_t)topo_n(s->topo), arcs = (size_t)topo_m(s->topo);
	size_t sum = sizeof(*s) + topo_memory(s->topo) + s->xfers.cap * sizeof(*s->xfers.v) +
		     s->lights.cap * sizeof(*s->lights.v);

	sum += s->action ? arcs * sizeof(int64_t) : 0;
	sum += s->demands ? n * n * sizeof(*s->demands) : 0;
	if (s->embedding) {
		n = (size_t)topo_n(s->embedding->physical);
		arcs = (size_t)topo_m(s->embedding->physical);
		sum += topo_memory(s->embedding->physical) +
		       s->embedding->paths.cap * sizeof(*s->embedding->paths.v) +
		       s->embedding->hops.cap * sizeof(*s->embedding->hops.v);
	}
	return sum + (s->placement ? (n + 2 * arcs) * (sizeof(char *) + NAME_MEMORY) : 0);
}

int coll_set_group(struct coll_sched *s, struct topo_group *g, struct err *err)
{
	int rc;

	assert(!s->group && !s->embedding && s->xfers.n == 0 && s->lights.n == 0);
	if (!g) {
		return 0;
	}
	if (s->alike) {
		topo_group_free(g);
		return err_set(err, WEFT_EINVAL, "generators: all shards move alike already");
	}
	if (coll_has_root(s->kind)) {
		topo_group_free(g);
		return err_set(err, WEFT_EUNSUPPORTED, "a compact %s: not supported, as the root "
			       "would move", coll_kind_name(s->kind));
	}
	s->group = g;
	rc = topo_action_new(s->topo, g, &s->action, err);
	if (rc) {
		s->group = NULL;
		topo_group_free(g);
	}
	return rc;
}

int coll_set_alike(struct coll_sched *s, struct err *err)
{
	assert(s->xfers.n == 0);
	if (s->kind != COLL_ALLREDUCE || s->group) {
		return err_set(err, WEFT_EINVAL, "shards that move alike are for an allreduce "
			       "without generators");
	}
	s->alike = true;
	return 0;
}

bool coll_is_alike(const struct coll_sched *s)
{
	return s->alike;
}

/* ---- demands ---- */

static int check_matrix(const struct coll_sched *s, const int32_t *chunks, struct err *err)
{
	int64_t all = 0;

	for (int u = 0; u < s->ranks; u++) {
		for (int v = 0; v < s->ranks; v++) {
			int32_t c = chunks[(size_t)u * s->ranks + v];

			if (c < 0 || c > s->chunks || (u == v && c > 0)) {
				return err_set(err, WEFT_EINVAL, "demand of rank %d to rank %d: %d "
					       "is not in 0 to %d", u, v, c, u == v ? 0
						       : s->chunks);
			}
			all += c;
		}
	}
	return all > 0 ? 0 : err_set(err, WEFT_EINVAL, "all demands are 0");
}

/* The group moves pairs to pairs of the same demand. */
static int check_group(const struct coll_sched *s, const int32_t *chunks, struct err *err)
{
	for (int i = 0; s->group && i < topo_group_generators(s->group); i++) {
		int order;
		const int32_t *to = topo_group_generator(s->group, i, &order);

		for (int u = 0; u < s->ranks; u++) {
			for (int v = 0; v < s->ranks; v++) {
				if (chunks[(size_t)u * s->ranks + v] !=
				    chunks[(size_t)to[u] * s->ranks + to[v]]) {
					return err_set(err, WEFT_EINVAL,
						       "demand of rank %d to rank "
						       "%d: generator %d moves it to another", u,
						       v, i);
				}
			}
		}
	}
	return 0;
}

int coll_set_demands(struct coll_sched *s, const int32_t *chunks, struct err *err)
{
	size_t bytes = (size_t)s->ranks * s->ranks * sizeof(*chunks);
	int rc;

	assert(s->xfers.n == 0 && !s->demands);
	if (!chunks) {
		return 0;
	}
	if (s->kind != COLL_ALLTOALL || s->ranks > COLL_MAX_DEMAND_RANKS) {
		return err_set(err, s->kind != COLL_ALLTOALL ? WEFT_EINVAL : WEFT_ELIMIT,
			       "demands are for an all-to-all of at most %d ranks",
			       COLL_MAX_DEMAND_RANKS);
	}
	if ((rc = check_matrix(s, chunks, err)) || (rc = check_group(s, chunks, err))) {
		return rc;
	}
	s->demands = x_alloc(bytes, 1);
	memcpy(s->demands, chunks, bytes);
	return 0;
}

const int32_t *coll_demands(const struct coll_sched *s)
{
	return s->demands;
}

int coll_set_demands_moved(struct coll_sched *s, const struct coll_sched *from, const int *to,
			   bool reverse, struct err *err)
{
	size_t n = (size_t)from->ranks;
	int32_t *moved;
	int rc;

	if (!from->demands) {
		return 0;
	}
	moved = x_alloc(n * n, sizeof(*moved));
	for (size_t u = 0; u < n; u++) {
		for (size_t v = 0; v < n; v++) {
			size_t a = to ? (size_t)to[u] : u, b = to ? (size_t)to[v] : v;

			moved[reverse ? b * n + a : a * n + b] = from->demands[u * n + v];
		}
	}
	rc = coll_set_demands(s, moved, err);
	free(moved);
	return rc;
}

int coll_refuse_demands(const struct coll_sched *s, const char *output, struct err *err)
{
	return s->demands ? err_set(err, WEFT_EUNSUPPORTED, "%s of an all-to-all in which pairs "
				    "send unlike amounts: not supported", output) : 0;
}

/* ---- transfers ---- */

bool coll_forwards(const struct coll_sched *s)
{
	assert(s->finished);
	return s->forwards;
}

bool coll_merges(const struct coll_sched *s)
{
	assert(s->finished);
	return s->merges;
}

void coll_set_chunks(struct coll_sched *s, int chunks)
{
	assert(s->xfers.n == 0 && chunks >= 1 && chunks <= COLL_MAX_CHUNKS && !s->demands);
	s->chunks = chunks;
}

/* The step and the arc of a transfer, or (t: the physical digraph) of a light, exist. */
static int check_place(const struct topo *t, int step, int arc, struct err *err)
{
	if (step < 0) {
		return err_set(err, WEFT_EINVAL, "step %d is negative", step);
	}
	if (step >= COLL_MAX_STEPS) {
		return err_set(err, WEFT_ELIMIT, "step %d: at most %d steps", step, COLL_MAX_STEPS);
	}
	if (arc < 0 || arc >= topo_m(t)) {
		return err_set(err, WEFT_EINVAL,
			       "step %d: arc %d is missing: the digraph has "
			       "%d arcs", step, arc, topo_m(t));
	}
	return 0;
}

/* What is wrong with the operation and the destination; NULL: nothing. */
static const char *check_op(const struct coll_sched *s, const struct coll_xfer *x)
{
	bool rank = x->dest >= 0 && x->dest < s->ranks;

	if (x->op > COLL_OP_FORWARD) {
		return "operation is none of copy, reduce and forward";
	}
	if (x->kept && (s->kind != COLL_ALLREDUCE || s->group || x->op == COLL_OP_COPY)) {
		return "only sums of an allreduce without generators are kept under a number";
	}
	if (x->kept && s->ranks > COLL_MAX_MERGED) {
		return "sums are merged for at most 4096 ranks";
	}
	if (x->kept > 2 * s->ranks + 1) {
		return "the number under which it is kept is above twice the ranks plus 1";
	}
	if (s->alike && x->origin != 0) {
		return "all shards move as shard 0 does";
	}
	if (x->op == COLL_OP_FORWARD) {
		return s->kind != COLL_ALLREDUCE ? "sums are forwarded in allreduce only"
		       : rank ? NULL : "the sum that is forwarded is of no rank";
	}
	if (s->kind == COLL_ALLTOALL) {
		return rank ? NULL : "destination is not a rank";
	}
	return x->dest == COLL_NO_DEST ? NULL : "a destination belongs to all-to-all only";
}

static int check_xfer(const struct coll_sched *s, const struct coll_xfer *x, struct err *err)
{
	const char *what = check_op(s, x);
	int rc = check_place(s->topo, x->step, x->arc, err);

	if (rc) {
		return rc;
	}
	if (x->origin < 0 || x->origin >= s->ranks) {
		what = "origin is not a rank";
	} else if (what) {
		goto out;
	} else if (x->first < 0 || x->first > x->last ||
		   x->last >= coll_chunks_of(s, x->origin, x->dest)) {
		what = "chunks are not a range of the shard";
	} else {
		return 0;
	}
out:
	return err_set(err, WEFT_EINVAL,
		       "step %d: arc %d: shard %d chunks %d to %d: %s",
		       x->step, x->arc, x->origin, x->first, x->last, what);
}

int coll_add(struct coll_sched *s, const struct coll_xfer *x, struct err *err)
{
	int rc = check_xfer(s, x, err);

	if (rc) {
		return rc;
	}
	if (s->xfers.n >= COLL_MAX_XFERS) {
		return err_set(err, WEFT_ELIMIT, "more than %d transfers", COLL_MAX_XFERS);
	}
	s->finished = s->proven = false;
	vec_push(&s->xfers, *x);
	return 0;
}

int coll_add_light(struct coll_sched *s, const struct coll_light *l, struct err *err)
{
	int rc = check_place(coll_physical(s), l->step, l->arc, err);

	if (rc) {
		return err_wrap(err, "light");
	}
	if (s->group) {
		return err_set(err, WEFT_EUNSUPPORTED, "light of a compact schedule: not "
			       "supported");
	}
	if (l->dir > 1) {
		return err_set(err, WEFT_EINVAL,
			       "step %d: light of arc %d: direction %d is "
			       "neither 0 nor 1", l->step, l->arc, l->dir);
	}
	if (s->lights.n >= COLL_MAX_LIGHTS) {
		return err_set(err, WEFT_ELIMIT, "more than %d lights", COLL_MAX_LIGHTS);
	}
	s->finished = s->proven = false;
	vec_push(&s->lights, *l);
	return 0;
}

/* The limits make the sort keys of a transfer fit two words. */
_Static_assert(COLL_MAX_STEPS <= 1 << 20 && TOPO_MAX_ARCS <= 1 << 24 && TOPO_MAX_NODES <= 1 << 16 &&
	       COLL_MAX_CHUNKS <= 1 << 20, "sort keys overflow");

static uint64_t place_key(int step, int arc)
{
	return (uint64_t)step << 24 | (uint64_t)arc;
}

static uint64_t range_key(const struct coll_xfer *x)
{
	return (uint64_t)(x->dest + 1) << 42 | (uint64_t)x->first << 22 |
	       (uint64_t)x->last << 2 | x->op;
}

static int cmp_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int cmp_xfer(const void *pa, const void *pb)
{
	const struct coll_xfer *a = pa, *b = pb;
	uint64_t ka = place_key(a->step, a->arc) << 16 | (uint64_t)a->origin;
	uint64_t kb = place_key(b->step, b->arc) << 16 | (uint64_t)b->origin;

	if (ka != kb) {
		return cmp_u64(ka, kb);
	}
	/* Those of a message stand together, by their chunks. */
	if (a->kept != b->kept) {
		return cmp_u64(a->kept, b->kept);
	}
	if (a->kept && a->first != b->first) {
		return cmp_u64((uint64_t)a->first, (uint64_t)b->first);
	}
	return cmp_u64(range_key(a), range_key(b));
}

static int cmp_light(const void *pa, const void *pb)
{
	const struct coll_light *a = pa, *b = pb;
	uint64_t ka = place_key(a->step, a->arc);
	uint64_t kb = place_key(b->step, b->arc);

	if (ka != kb) {
		return cmp_u64(ka, kb);
	}
	ka = (uint64_t)a->dir << 24 | a->fibre << 16 | a->channel;
	kb = (uint64_t)b->dir << 24 | b->fibre << 16 | b->channel;
	return ka != kb ? cmp_u64(ka, kb)
			: cmp_u64((uint32_t)a->loss_mdb, (uint32_t)b->loss_mdb);
}

/* Synthesisers and files mostly deliver in order already. */
static void sort_unless_sorted(void *v, size_t n, size_t size,
			       int (*cmp)(const void *, const void *))
{
	const char *p = v;

	for (size_t i = 1; i < n; i++) {
		if (cmp(p + (i - 1) * size, p + i * size) > 0) {
			qsort(v, n, size, cmp);
			return;
		}
	}
}

/* Where a transfer is counted: by step and arc, or by step alone. */
static size_t place_number(const struct coll_xfer *x, size_t arcs)
{
	return (size_t)x->step * arcs + (arcs > 1 ? (size_t)x->arc : 0);
}

/* Sorts transfers by (step, arc) with one counting pass, or where arcs in all steps are
 * more than transfers by step, then the short runs of a place by the rest. Only where places are
 * few beside transfers; false when not done. */
static bool sort_by_place(struct coll_sched *s)
{
	size_t n = s->xfers.n, m = (size_t)topo_m(s->topo), places, at = 0;
	struct coll_xfer *v = s->xfers.v, *out;
	uint32_t *end;
	int last = 0;

	for (size_t i = 0; i < n; i++) {
		last = v[i].step > last ? v[i].step : last;
	}
	m = m * ((size_t)last + 1) > n ? 1 : m;
	places = m * ((size_t)last + 1);
	if (n < 1024 || places > n) {
		return false;
	}
	end = x_new(places + 1, sizeof(*end));
	out = x_alloc(n, sizeof(*out));
	for (size_t i = 0; i < n; i++) {
		end[place_number(&v[i], m) + 1]++;
	}
	for (size_t p = 0; p < places; p++) {
		end[p + 1] += end[p];
	}
	for (size_t i = 0; i < n; i++) {
		out[end[place_number(&v[i], m)]++] = v[i];
	}
	for (size_t p = 0; p < places; at = end[p++]) {
		sort_unless_sorted(out + at, end[p] - at, sizeof(*out), cmp_xfer);
	}
	free(end);
	free(v);
	s->xfers.v = out;
	s->xfers.cap = n;
	return true;
}

static void sort_xfers(struct coll_sched *s)
{
	const struct coll_xfer *v = s->xfers.v;

	for (size_t i = 1; i < s->xfers.n; i++) {
		if (cmp_xfer(&v[i - 1], &v[i]) > 0) {
			if (!sort_by_place(s)) {
				qsort(s->xfers.v, s->xfers.n, sizeof(*s->xfers.v), cmp_xfer);
			}
			return;
		}
	}
}

static bool adjoins(const struct coll_xfer *a, const struct coll_xfer *b)
{
	return a->step == b->step && a->arc == b->arc &&
	       a->origin == b->origin && a->dest == b->dest &&
	       a->op == b->op && a->kept == b->kept && a->last + 1 == b->first;
}

static void merge(struct coll_sched *s)
{
	struct coll_xfer *v = s->xfers.v;
	size_t kept = 0;

	for (size_t i = 0; i < s->xfers.n; i++) {
		if (kept > 0 && adjoins(&v[kept - 1], &v[i])) {
			v[kept - 1].last = v[i].last;
		} else {
			v[kept++] = v[i];
		}
	}
	s->xfers.n = kept;
}

static bool find_forwards(const struct coll_sched *s)
{
	size_t i = 0;

	while (s->kind == COLL_ALLREDUCE && i < s->xfers.n && s->xfers.v[i].op != COLL_OP_FORWARD) {
		i++;
	}
	return s->kind == COLL_ALLREDUCE && i < s->xfers.n;
}

static bool find_merges(const struct coll_sched *s)
{
	size_t i = 0;

	while (s->kind == COLL_ALLREDUCE && i < s->xfers.n && s->xfers.v[i].kept == 0) {
		i++;
	}
	return s->kind == COLL_ALLREDUCE && i < s->xfers.n;
}

struct coll_xfer coll_moved(const struct coll_sched *s, int by, const struct coll_xfer *x)
{
	struct coll_xfer to = *x;

	if (!by) {
		return to;
	}
	to.arc = topo_action_move(s->action, by, x->arc);
	to.origin = topo_group_move(s->group, by, x->origin);
	if (x->dest >= 0) {
		to.dest = topo_group_move(s->group, by, x->dest);
	}
	return to;
}

/* Of the images of each transfer the one whose origin is the first of its
 * orbit. */
static void move_to_first(struct coll_sched *s)
{
	for (size_t i = 0; s->group && i < s->xfers.n; i++) {
		int element = topo_group_element(s->group, s->xfers.v[i].origin);

		if (element) {
			s->xfers.v[i] = coll_moved(s, topo_group_inverse(s->group, element),
						   &s->xfers.v[i]);
		}
	}
}

int coll_finish(struct coll_sched *s, struct err *err)
{
	int rc = coll_finish_routes(s, err);

	if (rc) {
		return rc;
	}
	move_to_first(s);
	sort_xfers(s);
	sort_unless_sorted(s->lights.v, s->lights.n, sizeof(*s->lights.v), cmp_light);
	merge(s);
	s->forwards = find_forwards(s);
	s->merges = find_merges(s);
	s->steps = s->xfers.n ? s->xfers.v[s->xfers.n - 1].step + 1 : 0;
	s->finished = true;
	return 0;
}

enum coll_kind coll_kind_of(const struct coll_sched *s)
{
	return s->kind;
}

const struct topo *coll_topo(const struct coll_sched *s)
{
	return s->topo;
}

int coll_ranks(const struct coll_sched *s)
{
	return s->ranks;
}

int coll_chunks(const struct coll_sched *s)
{
	return s->chunks;
}

int coll_ports(const struct coll_sched *s)
{
	return s->ports;
}

int coll_root(const struct coll_sched *s)
{
	return s->root;
}

int coll_steps(const struct coll_sched *s)
{
	assert(s->finished);
	return s->steps;
}

const struct coll_xfer *coll_xfers(const struct coll_sched *s, int64_t *n)
{
	assert(s->finished);
	*n = (int64_t)s->xfers.n;
	return s->xfers.v;
}

const struct coll_light *coll_lights(const struct coll_sched *s, int64_t *n)
{
	assert(s->finished);
	*n = (int64_t)s->lights.n;
	return s->lights.v;
}

const struct topo_action *coll_action(const struct coll_sched *s)
{
	return s->action;
}

const struct topo_group *coll_group(const struct coll_sched *s)
{
	return s->group;
}

int coll_part(const struct coll_sched *s)
{
	return s->part - 1;
}

void coll_set_topo_name(struct coll_sched *s, const char *name)
{
	bool keep = name[0] && strlen(name) <= COLL_MAX_NAME;

	free(s->topo_name);
	s->topo_name = keep ? x_dup(name) : NULL;
}

const char *coll_topo_name(const struct coll_sched *s)
{
	return s->topo_name ? s->topo_name : "";
}

struct coll_run coll_light_run(const struct coll_sched *s, int64_t from, int step, int arc)
{
	const struct coll_light *l = s->lights.v;
	struct coll_run run = { from, 0 };
	int64_t end = (int64_t)s->lights.n, behind = end;

	/* Near to what was found before, or anywhere. */
	while (from > 0 && run.first < end && place_key(l[run.first].step,
		l[run.first].arc) < place_key(step, arc)) {
		run.first++;
	}
	while (from == 0 && run.first < behind) {
		int64_t middle = run.first + (behind - run.first) / 2;
		bool before = place_key(l[middle].step, l[middle].arc) < place_key(step, arc);

		run.first = before ? middle + 1 : run.first;
		behind = before ? behind : middle;
	}
	while (run.first + run.n < end && l[run.first + run.n].step == step &&
	       l[run.first + run.n].arc == arc) {
		run.n++;
	}
	return run;
}
