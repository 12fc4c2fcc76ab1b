/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Breadth-first broadcast for batches that overlap: all levels of all nodes are balanced together.
 *
 * With many batches a step carries all levels at once, so that the sum of all levels has to be even
 * over the links; at the beginning it carries the first levels only, and in the end the last, whose
 * sums should be so, too. What is least is the sum of squares, over links and steps, of what a link
 * has carried by then per unit of capacity, that of the last step more and more often. Group by
 * group the shares are poured onto the links of which that is least. Then they are cut
 * into whole chunks, by a maximum flow that keeps the sums. Where the digraph has a group, a link
 * stands for its orbit, and the groups of the first nodes are enough.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/private.h"
#include "lib/base/alloc.h"

/* Rounds, and by what the last step counts for more in each. */
#define ROUNDS 45
#define GROWTH 1.2

/* Links of groups times steps that are poured. */
#define MAX_WORK (INT64_C(1) << 26)

/* Chunks that are tried, and what rounding may cost with them: 1 in so many. */
#define MIN_CHUNKS 4
#define MAX_CHUNKS 32
#define ROUNDING_WORTH 500

struct steady {
	struct bfb b;
	struct topo_action *action;
	struct bfb_program all;		/* its links: orbits of arcs */
	VEC(int32_t) step;		/* of each group */
	size_t use_room, group_room;
	int steps;
	double worth;			/* how often the last step counts */
	double *carried;		/* by link, then step: until then, per unit of capacity */
	double *part;			/* by use: items of a group */
	int64_t *share;			/* the same in chunks */
	struct bfb_steady sides[2];	/* of b.sides */
	struct arrays arrays;
};

static void steady_fini(struct steady *s)
{
	bfb_program_fini(&s->all);
	vec_fini(&s->step);
	arrays_fini(&s->arrays);
	topo_action_free(s->action);
	bfb_fini(&s->b);
}

/* ---- the program of all ---- */

/* Appends the groups of a level, whose transfers are in `step`. back: arcs of the view's digraph to
 * those of the action's; NULL: they are. */
static void add_level(struct steady *s, struct bfb_view *v, int level, int step,
		      const int32_t *back)
{
	struct bfb_program *all = &s->all, b;

	bfb_load_program(v, level, &b);
	vec_grow((void **)&all->groups, &s->group_room, (size_t)(all->n_groups + b.n_groups),
		 sizeof(*all->groups));
	vec_grow((void **)&all->use, &s->use_room, (size_t)(all->n_use + b.n_use),
		 sizeof(*all->use));
	for (int g = 0; g < b.n_groups; g++) {
		all->groups[all->n_groups] = b.groups[g];
		all->groups[all->n_groups++].first += all->n_use;
		vec_push(&s->step, step);
	}
	for (int i = 0; i < b.n_use; i++) {
		int arc = v->links[b.use[i]];

		all->use[all->n_use++] = topo_action_orbit(s->action, back ? back[arc] : arc);
	}
	bfb_program_fini(&b);
}

static int add_side(struct steady *s, int i, int base, struct err *err)
{
	const struct bfb_side *side = &s->b.sides[i];
	const int32_t *back = side->t == s->b.reversed ? s->b.back : NULL;
	struct bfb_view v;
	int rc = 0;

	arrays_add(&s->arrays, s->sides[i].first, side->sources);
	bfb_view_init(&v, side->t);
	for (int u = 0; u < side->sources && rc == 0; u++) {
		rc = bfb_view_load(&v, u, err);
		s->sides[i].first[u] = (size_t)s->all.n_use;
		for (int t = 1; t <= v.levels && rc == 0; t++) {
			add_level(s, &v, t, base + (back ? side->diameter - t : t - 1), back);
		}
	}
	bfb_view_fini(&v);
	return rc;
}

static int load_all(struct steady *s, const struct topo *t, struct err *err)
{
	int rc = topo_action_new(t, s->b.group, &s->action, err);

	if (rc) {
		return rc;
	}
	s->all.n_links = topo_action_orbits(s->action);
	arrays_add(&s->arrays, s->all.cap, s->all.n_links);
	for (int k = 0; k < s->all.n_links; k++) {
		s->all.cap[k] = topo_arc(t, topo_action_first(s->action, k))->cap;
	}
	for (int i = 0; i < s->b.n_sides && rc == 0; i++) {
		rc = add_side(s, i, s->steps, err);
		s->steps += s->b.sides[i].diameter;
	}
	if (rc == 0 && (int64_t)s->all.n_use * s->steps > MAX_WORK) {
		return err_set(err, WEFT_ELIMIT, "steady: %d links of groups in %d steps are too "
			       "many to be balanced", s->all.n_use, s->steps);
	}
	return rc;
}

/* ---- even shares ---- */

/* What a step and all after it count. */
static double weight_from(const struct steady *s, int step)
{
	return s->steps - 1 - step + s->worth;
}

/* The weighed sum of what a link has carried by a step and by each after it. */
static double weigh(const struct steady *s, int link, int step)
{
	const double *c = &s->carried[(size_t)link * (size_t)s->steps];
	double sum = c[s->steps - 1] * s->worth;

	for (int j = step; j < s->steps - 1; j++) {
		sum += c[j];
	}
	return sum;
}

static void carry(struct steady *s, int i, int step, double more)
{
	double *c = &s->carried[(size_t)s->all.use[i] * (size_t)s->steps];

	more /= (double)s->all.cap[s->all.use[i]];
	for (int j = step; j < s->steps; j++) {
		c[j] += more;
	}
}

/* Pours the items of a group again: onto the links that weigh least, up to one level. O(links
 * (links + steps)). */
static void pour(struct steady *s, int group)
{
	const struct bfb_group *g = &s->all.groups[group];
	int step = s->step.v[group], n = 0;
	double per = weight_from(s, step), room = (double)g->items * per, caps = 0, level = 0;
	double *bare = x_alloc((size_t)g->n, sizeof(*bare));
	int *order = x_alloc((size_t)g->n, sizeof(*order));

	for (int i = 0; i < g->n; i++) {
		int k = i, use = g->first + i;

		bare[i] = weigh(s, s->all.use[use], step) -
			  per * s->part[use] / (double)s->all.cap[s->all.use[use]];
		for (; k > 0 && bare[order[k - 1]] > bare[i]; k--) {
			order[k] = order[k - 1];
		}
		order[k] = i;
	}
	/* level: where those that are taken meet. */
	while (n < g->n && (n == 0 || bare[order[n]] < level)) {
		double cap = (double)s->all.cap[s->all.use[g->first + order[n]]];

		room += bare[order[n]] * cap;
		caps += cap;
		level = room / caps;
		n++;
	}
	for (int k = 0; k < g->n; k++) {
		int use = g->first + order[k];
		double cap = (double)s->all.cap[s->all.use[use]];
		double part = k < n ? (level - bare[order[k]]) * cap / per : 0;

		carry(s, use, step, part - s->part[use]);
		s->part[use] = part;
	}
	free(bare);
	free(order);
}

static void pour_all(struct steady *s)
{
	s->worth = s->steps;
	arrays_add(&s->arrays, s->part, s->all.n_use);
	arrays_add(&s->arrays, s->carried, (size_t)s->all.n_links * (size_t)s->steps);
	for (int round = 0; round < ROUNDS; round++, s->worth *= GROWTH) {
		for (int g = 0; g < s->all.n_groups; g++) {
			pour(s, g);
		}
	}
}

/* The most that a link carries in all, in items per unit of capacity. */
static double fullest(const struct steady *s)
{
	double most = 0;

	for (int k = 0; k < s->all.n_links; k++) {
		double all = s->carried[(size_t)(k + 1) * (size_t)s->steps - 1];

		most = all > most ? all : most;
	}
	return most;
}

/* ---- whole chunks ---- */

/* The fewest with which rounding up costs next to nothing, from a few on, so that the levels by
 * themselves stay nearly even. */
static int choose_chunks(double load)
{
	int p = MIN_CHUNKS;

	while (p < MAX_CHUNKS &&
	       ceil(load * p * (1 - 1e-9)) > load * p * (1 + 1.0 / ROUNDING_WORTH)) {
		p++;
	}
	return p;
}

/* Whole chunks first; what is left of each group goes where there is room. */
static int cut(struct steady *s, int chunks, struct err *err)
{
	double most = fullest(s) * chunks;
	struct bfb_program left = s->all;
	int64_t *room = x_alloc((size_t)left.n_links, sizeof(*room));
	int64_t *more = x_alloc((size_t)left.n_use + 1, sizeof(*more));
	bool *tight = x_alloc((size_t)left.n_links, sizeof(*tight)), fits = false;
	int rc = 0;

	arrays_add(&s->arrays, s->share, s->all.n_use);
	arrays_add(&s->arrays, left.groups, s->all.n_groups);
	for (int k = 0; k < left.n_links; k++) {
		room[k] = (int64_t)ceil(most * (double)left.cap[k] * (1 - 1e-9));
	}
	for (int g = 0; g < left.n_groups; g++) {
		left.groups[g] = s->all.groups[g];
		left.groups[g].items *= chunks;
		for (int k = 0; k < left.groups[g].n; k++) {
			int i = left.groups[g].first + k;

			s->share[i] = (int64_t)(s->part[i] * chunks);
			left.groups[g].items -= s->share[i];
			room[left.use[i]] -= s->share[i];
		}
	}
	while (rc == 0 && !fits) {
		rc = bfb_program_fit(&left, 1, room, more, tight, &fits, err);
		for (int k = 0; k < left.n_links && !fits; k++) {
			room[k] += tight[k];
		}
	}
	for (int i = 0; i < left.n_use && rc == 0; i++) {
		s->share[i] += more[i];
	}
	free(room);
	free(more);
	free(tight);
	return rc;
}

int coll_steady(enum coll_kind kind, struct topo *topo, struct coll_sched **out, struct err *err)
{
	struct steady s = { .steps = 0 };
	struct coll_sched *sched;
	int chunks, rc = bfb_begin(kind, topo, 0, &sched, err);

	*out = NULL;
	if (rc || (rc = bfb_solve(&s.b, kind, topo, NULL, err)) ||
	    (rc = load_all(&s, topo, err))) {
		goto out;
	}
	pour_all(&s);
	chunks = choose_chunks(fullest(&s));
	if ((rc = cut(&s, chunks, err))) {
		goto out;
	}
	for (int i = 0; i < s.b.n_sides; i++) {
		s.sides[i].share = s.share;
		s.b.sides[i].steady = &s.sides[i];
	}
	rc = bfb_complete(&s.b, sched, chunks, err);
out:
	steady_fini(&s);
	if (rc) {
		coll_free(sched);
		return rc;
	}
	*out = sched;
	return 0;
}
