/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which groups, and which levels. For each number of groups a dynamic programme
 * over the number of copies finds the far levels of the least time, and from
 * each number of copies another one, over the distance between holders, the
 * near levels. Times are those of building, but that each length of lightpaths
 * has its own channels, so the best of all numbers of groups are built and timed
 * exactly.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/order.h"
#include "optree/grouped/grouped.h"

#define BUILD_MAX 16		/* shapes built */
#define CAREFUL_MAX 3		/* with care */
#define BUILD_WORK ((int64_t)10 << 20)	/* lightpaths and hops of those after the first */
#define JUMPS 8			/* numbers of jumps tried, beside all at once */
#define TIMES_MAX 24		/* of a far level */

struct step {			/* to a number of copies, or a distance */
	double ns;		/* with all before; INFINITY: cannot be reached */
	int32_t from, jump;	/* comes from there */
};

struct group_search {
	const struct optree_params *p;
	enum coll_kind kind;
	int n, reach;
	int64_t w;
	double item_ns;
	int64_t limit_ns;	/* slower ones are of no use */
	bool found;
	int64_t work;		/* done by building */
	int groups;
	double per_group;	/* items */
	struct step *far;	/* by copies, 1..n */
	struct step *near;	/* by distance, 1..n */
	struct grouped_shape list[BUILD_MAX];	/* of the least estimates, ascending */
	int n_list;
};

/* What begins at how many nodes, evenly spaced. */
struct group_senders {
	int64_t nodes;
	double items;
};

static struct group_senders senders_at(const struct group_search *s, int64_t copies)
{
	int64_t common = rat_gcd(s->groups, copies), all = s->groups * copies;

	if (all / common <= s->n) {
		return (struct group_senders){ all / common, (double)common * s->per_group };
	}
	return (struct group_senders){ s->n, (double)((all + s->n - 1) / s->n) * s->per_group };
}

/* Classes of lightpaths of this many links, one from each sender. */
static int64_t classes_of(const struct group_search *s, struct group_senders x, double links)
{
	int64_t most = (int64_t)ceil(links * (double)x.nodes / s->n - 1e-9);
	int64_t blocks = most ? x.nodes / most : 0;

	return blocks ? (x.nodes + blocks - 1) / blocks : x.nodes;
}

/* A round of these classes. */
static double round_ns(const struct group_search *s, int64_t classes, double items, double links)
{
	int64_t slots = (classes + s->w - 1) / s->w, per;

	if (!slots) {
		return 0;
	}
	per = (classes + slots - 1) / slots;
	return (double)slots * ((double)s->p->alpha_ns + links * (double)s->p->span_delay_ns +
				items / (double)(s->w / per) * s->item_ns);
}

/* Rounds in which new holders come from `jump` strides each way, until `lacks`
 * are there. */
static double level_ns(const struct group_search *s, struct group_senders x, int lacks,
		       double stride,
		       int jump)
{
	int side = (lacks + 1) / 2, whole = (side - 1) / jump, rest = side - whole * jump;
	int64_t classes = 0, last = 0;

	for (int k = 1; k <= jump; k++) {
		struct group_senders y = x;

		if (k == rest && lacks % 2) {
			/* Only every second group goes so far. */
			y.items = x.nodes < s->n ? x.items : ceil(x.items / s->per_group / 2) *
							     s->per_group;
			y.nodes = x.nodes < s->n ? (x.nodes + 1) / 2 : x.nodes;
		}
		classes += classes_of(s, x, k * stride);
		last += k < rest ? classes_of(s, x, k * stride)
		      : k == rest ? classes_of(s, y, k * stride) : 0;
	}
	return whole * round_ns(s, classes, x.items, jump * stride) +
	       round_ns(s, last, x.items, rest * stride);
}

static int next_jump(int jump, int side)
{
	return jump < JUMPS || jump >= side ? jump + 1 : side;
}

/* What is left at least from so many copies on: every item goes to each other
 * node over one link or more. */
static double min_rest_ns(const struct group_search *s, int copies)
{
	return copies == s->n ? 0 : (double)s->p->alpha_ns +
		(double)(s->n - copies) / (2 * (double)s->w) * s->item_ns;
}

static void try_far(struct group_search *s, int copies, int times)
{
	struct step *to = &s->far[copies * times];
	struct group_senders x = senders_at(s, copies);
	double stride = (double)s->n / copies / times;

	for (int jump = 1; jump <= times / 2 && jump <= GROUPED_JUMP;
	     jump = next_jump(jump, times / 2)) {
		double t;

		if (jump * stride > s->reach) {
			return;
		}
		t = s->far[copies].ns + level_ns(s, x, times - 1, stride, jump);
		if (t < to->ns) {
			*to = (struct step){ t, copies, jump };
		}
	}
}

static void search_far(struct group_search *s, double from_ns)
{
	for (int k = 1; k <= s->n; k++) {
		s->far[k].ns = INFINITY;
	}
	s->far[1].ns = from_ns;
	for (int copies = 1; copies <= s->n / 2; copies++) {
		bool spread = s->groups / rat_gcd(s->groups, copies) * copies >= s->n;

		for (int m = 2; m <= TIMES_MAX && copies * m <= s->n && !spread &&
		     s->far[copies].ns + min_rest_ns(s, copies) < (double)s->limit_ns; m++) {
			try_far(s, copies, m);
		}
	}
}

static void try_near(struct group_search *s, struct group_senders x, int all, int gap, int stride)
{
	int lacks = (gap + stride - 1) / stride - 1, side = (lacks + 1) / 2;

	x.items *= (all + gap - 1) / gap;
	for (int jump = 1; jump <= side && jump <= GROUPED_JUMP; jump = next_jump(jump, side)) {
		double t;

		if (jump * stride > s->reach) {
			return;
		}
		t = s->near[gap].ns + level_ns(s, x, lacks, stride, jump);
		if (t < s->near[stride].ns) {
			s->near[stride] = (struct step){ t, gap, jump };
		}
	}
}

/* Near levels from this many copies on; the time of all is near[1].ns. */
static void search_near(struct group_search *s, int copies)
{
	int all = (s->n + copies - 1) / copies;
	struct group_senders x = senders_at(s, copies);

	for (int k = 1; k <= all; k++) {
		s->near[k].ns = INFINITY;
	}
	s->near[all].ns = s->far[copies].ns;
	for (int gap = all; gap > 1; gap--) {
		int before = gap;

		for (int m = 2; m <= gap && s->near[gap].ns < INFINITY; m++) {
			int stride = (gap + m - 1) / m;

			if (stride < before) {
				try_near(s, x, all, gap, stride);
				before = stride;
			}
		}
	}
}

static void trace(const struct group_search *s, int copies, struct grouped_shape *x)
{
	int all = (s->n + copies - 1) / copies, levels = 0;

	x->estimate_ns = s->near[1].ns;
	for (int d = 1; d < all; d = s->near[d].from) {
		levels++;
	}
	for (int c = copies; c > 1; c = s->far[c].from) {
		levels++;
	}
	x->levels = levels;
	for (int d = 1; d < all; d = s->near[d].from) {
		x->level[--levels] = (struct grouped_level){
			.gap = s->near[d].from, .stride = d, .jump = s->near[d].jump };
	}
	for (int c = copies; c > 1; c = s->far[c].from) {
		x->level[--levels] = (struct grouped_level){
			.times = c / s->far[c].from, .jump = s->far[c].jump };
	}
}

static void enlist(struct group_search *s, const struct grouped_shape *x)
{
	int k = s->n_list < BUILD_MAX ? s->n_list++ : BUILD_MAX - 1;

	for (; k > 0 && s->list[k - 1].estimate_ns > x->estimate_ns; k--) {
		s->list[k] = s->list[k - 1];
	}
	s->list[k] = *x;
}

/* One stage of gathering, so many into so many: how long. */
static double stage_ns(const struct group_search *s, int before, int after, double items)
{
	int64_t side = (before + after - 1) / after / 2;

	if (after < 1 || before < 2 * after || side > s->w || side * (s->n / before) > s->reach) {
		return INFINITY;
	}
	return (double)s->p->alpha_ns + items / (double)(s->w / side) * s->item_ns;
}

/* Items that one of so many groups sends when it is gathered. */
static double gathered(const struct group_search *s, int groups)
{
	double size = ceil((double)s->n / groups);

	return s->kind == COLL_ALLREDUCE ? s->n
	     : s->kind == COLL_ALLTOALL ? size * (s->n - size) : size;
}

/* The stages of gathering, of about equal numbers of members. */
static double gather_ns(const struct group_search *s, int groups, struct grouped_shape *x)
{
	double best = INFINITY;

	for (int stages = 1; stages <= GROUPED_STAGES; stages++) {
		double members = pow((double)s->n / groups, 1.0 / stages), t = 0;
		struct grouped_shape y = { .stages = stages };
		int before = s->n;

		for (int k = 0; k < stages; k++) {
			int count = k + 1 == stages ? groups
					: (int)lround(s->n / pow(members, k + 1));

			t += stage_ns(s, before, count, gathered(s, before));
			y.groups[k] = before = count;
		}
		if (t < best) {
			best = t;
			*x = y;
		}
	}
	return best;
}

/* The best levels for this number of groups. */
static void try_groups(struct group_search *s, int groups)
{
	struct grouped_shape x = { 0 }, best = { .estimate_ns = (double)s->limit_ns };
	double t = gather_ns(s, groups, &x);

	s->groups = groups;
	s->per_group = (double)s->n / groups;
	if (t >= (double)s->limit_ns) {
		return;
	}
	search_far(s, t);
	for (int copies = 1; copies <= s->n; copies++) {
		if (s->far[copies].ns + min_rest_ns(s, copies) < best.estimate_ns) {
			search_near(s, copies);
			if (s->near[1].ns < best.estimate_ns) {
				best = x;
				trace(s, copies, &best);
			}
		}
	}
	if (best.levels &&
	    (s->n_list < BUILD_MAX || best.estimate_ns < s->list[BUILD_MAX - 1].estimate_ns)) {
		enlist(s, &best);
	}
}

/* Numbers of groups of about the same ratio to each other, with those beside
 * them. */
static void search_groups(struct group_search *s)
{
	int before = s->n / 2 + 1;

	for (double size = 2; size <= s->n / 2.0; size *= 1.08) {
		int at = (int)lround(s->n / size);

		for (int groups = at + 1; groups >= at - 2 && groups > 1; groups--) {
			if (groups < before) {
				try_groups(s, groups);
				before = groups;
			}
		}
	}
}

/* Builds shape k and keeps it when it is the fastest. */
static int try_shape(struct group_search *s, int k, bool careful, struct optree_groups *out,
		     struct err *err)
{
	const struct optree_params *p = s->p;
	struct optree_groups g;
	int rc = grouped_build(p, &s->list[k], careful, &g, err);

	s->work += (int64_t)g.paths.n + (int64_t)p->n *
		   (s->list[k].sums || s->list[k].owners
			    ? 1 : s->list[k].groups[s->list[k].stages - 1]);
	s->list[k].estimate_ns = rc || g.time_ns < 0 ? INFINITY : (double)g.time_ns;
	if (!rc && g.time_ns >= 0 && g.time_ns < s->limit_ns && g.max_len <= s->reach &&
	    (!p->max_lights || g.lightpaths <= p->max_lights)) {
		grouped_fini(out);
		*out = g;
		s->limit_ns = g.time_ns;
		s->found = true;
	} else {
		grouped_fini(&g);
	}
	return rc == WEFT_ELIMIT ? 0 : rc;
}

ORDER_BY(by_estimate, struct grouped_shape, estimate_ns)

/* All quickly, and the fastest of them once more with care. */
static int build_all(struct group_search *s, struct optree_groups *out, struct err *err)
{
	int rc = 0;

	for (int k = 0; k < s->n_list && !rc && s->work < BUILD_WORK; k++) {
		rc = try_shape(s, k, false, out, err);
	}
	qsort(s->list, (size_t)s->n_list, sizeof(*s->list), by_estimate);
	for (int k = 0; k < s->n_list && k < CAREFUL_MAX && !rc && s->work < BUILD_WORK; k++) {
		rc = try_shape(s, k, true, out, err);
	}
	s->n_list = 0;
	return rc;
}

/* The fastest built, if there is one. */
static int take_best(const struct group_search *s, int rc, struct optree_groups *out,
		     struct err *err)
{
	if (!rc && !s->found) {
		rc = err_set(err, WEFT_EUNSUPPORTED, "no groups of %d nodes gather before their "
			     "items go on: not supported", s->n);
	}
	if (rc) {
		grouped_fini(out);
	}
	return rc;
}

int grouped_best(const struct optree_params *p, int reach, int64_t limit_ns,
		 struct optree_groups *out, struct err *err)
{
	size_t n = (size_t)p->n + 1;
	struct group_search s = {
		.p = p, .kind = COLL_ALLGATHER, .n = p->n, .reach = reach, .w =
			(int64_t)tree_ring(p).channels * tree_ring(p).fibres,
		.item_ns = (double)p->shard_bytes * 8e9 / (double)p->channel_bps,
		.limit_ns = limit_ns,
		.far = x_alloc(n, sizeof(*s.far)), .near = x_alloc(n, sizeof(*s.near)),
	};
	int rc;

	*out = (struct optree_groups){ 0 };
	search_groups(&s);
	rc = take_best(&s, build_all(&s, out, err), out, err);
	free(s.far);
	free(s.near);
	return rc;
}

/* Vectors summed in groups, and the sums of so many groups exchanged; or pieces. */
static void try_sums(struct group_search *s, int groups)
{
	struct grouped_shape x = { 0 };
	int64_t load = ((int64_t)groups * groups + 7) / 8, slots = (load + s->w - 1) / s->w;
	double t = groups < s->n ? 2 * gather_ns(s, groups, &x) : 0;
	double size = ceil((double)s->n / groups);

	x.pieces = s->kind == COLL_ALLTOALL;
	if (slots > 1 && !x.pieces) {
		return;		/* a sum must not have another one's when it is sent */
	}
	load = (load + slots - 1) / slots;
	if (groups > 1) {
		t += (double)slots * ((double)s->p->alpha_ns + (x.pieces ? size * size : s->n) *
				      s->item_ns / (double)(s->w / load));
	}
	x.sums = true;
	x.estimate_ns = t;
	if (t < (double)s->limit_ns && groups / 2 * (s->n / groups) < s->reach &&
	    (s->n_list < BUILD_MAX || t < s->list[BUILD_MAX - 1].estimate_ns)) {
		enlist(s, &x);
	}
}

/* What a level of owners takes, from `before` hubs of a part to o->hubs of `parts` in all. */
static double owner_ns(const struct group_search *s, int before, const struct grouped_owner *o,
		       int parts)
{
	double gap = (double)before / o->hubs, links = s->n / 2.0 / o->hubs;
	double away = gap * gap / 4 - (before % (2 * o->hubs) == o->hubs ? 0.25 : 0);
	int64_t load = (int64_t)ceil(parts * o->hubs * away / (2.0 * before) - 1e-9);

	load += !load;
	return load > s->w || links > s->reach ? INFINITY
	     : (double)s->p->alpha_ns + links * (double)s->p->span_delay_ns +
	       (double)s->n / parts / (double)(s->w / load) * s->item_ns;
}

/* What is left at least, from so many hubs a part on: see the loads in owners.c. */
static double min_owners_ns(const struct group_search *s, int hubs)
{
	double best = INFINITY;

	for (int levels = 1; levels <= GROUPED_OWNERS; levels++) {
		double items = s->n * pow(hubs, 1.0 / levels) / (8 * (double)s->w);

		best = fmin(best, levels * ((double)s->p->alpha_ns + items * s->item_ns));
	}
	return hubs == 1 ? 0 : best;
}

static void try_owners(struct group_search *s, struct grouped_shape *x, int parts, int hubs);

/* One more level, to so many hubs a part; t: one way until there. */
static void add_owners(struct group_search *s, struct grouped_shape *x, int parts, int before,
		       int hubs)
{
	struct grouped_owner *o = &x->owner[x->owners++];
	double t = x->estimate_ns, now;

	*o = (struct grouped_owner){ 1, hubs };
	for (; o->parts * hubs <= before &&
	     (now = t + owner_ns(s, before, o, parts * o->parts)) < INFINITY; o->parts++) {
		double limit = s->n_list < BUILD_MAX ? (double)s->limit_ns
						     : s->list[BUILD_MAX - 1].estimate_ns;

		if (2 * (now + min_owners_ns(s, hubs)) < limit) {
			x->estimate_ns = now;
			try_owners(s, x, parts * o->parts, hubs);
		}
	}
	x->estimate_ns = t;
	x->owners--;
}

/* Numbers of hubs that differ enough. */
static int next_hubs(int hubs)
{
	return hubs + 1 + hubs / 24;
}

/* All ways on from so many parts with so many hubs each. */
static void try_owners(struct group_search *s, struct grouped_shape *x, int parts, int hubs)
{
	if (hubs == 1) {
		struct grouped_shape done = *x;

		done.estimate_ns *= 2;
		if (parts / rat_gcd(parts, s->n) <= compose_max_chunks(s->p)) {
			enlist(s, &done);
		}
		return;
	}
	add_owners(s, x, parts, hubs, 1);
	for (int next = 2; next <= hubs / 2 && x->owners + 1 < GROUPED_OWNERS;
	     next = next_hubs(next)) {
		add_owners(s, x, parts, hubs, next);
	}
}

int grouped_best_sums(const struct optree_params *p, enum coll_kind kind, int reach,
		      int64_t limit_ns, struct optree_groups *out, struct err *err)
{
	struct group_search s = {
		.p = p, .kind = kind, .n = p->n, .reach = reach, .limit_ns = limit_ns,
		.w = (int64_t)tree_ring(p).channels * tree_ring(p).fibres,
		.item_ns = (double)p->shard_bytes * 8e9 / (double)p->channel_bps,
	};
	int rc;

	*out = (struct optree_groups){ 0 };
	for (int groups = 1; groups <= s.n / 2; groups++) {
		try_sums(&s, groups);
	}
	try_sums(&s, s.n);
	rc = build_all(&s, out, err);
	if (!rc && kind == COLL_ALLREDUCE) {
		try_owners(&s, &(struct grouped_shape){ 0 }, 1, s.n);
		rc = build_all(&s, out, err);
	}
	return take_best(&s, rc, out, err);
}
