/* optree_plan: the depth with the fewest steps that the light can reach, and
 * everything that follows from it. */
#include <stdlib.h>
#include <string.h>

#include "optree/tree.h"

static int check_params(const struct optree_params *p, struct err *err)
{
	if (p->n < 2 || p->n > OPTREE_MAX_NODES) {
		return err_set(err, WEFT_ELIMIT,
			       "a ring of %d nodes: 2 to %d are supported",
			       p->n, OPTREE_MAX_NODES);
	}
	if (p->channels < 1 || p->channels > UINT16_MAX + 1 ||
	    p->fibres < 1 || p->fibres > UINT8_MAX + 1) {
		return err_set(err, WEFT_EINVAL,
			       "%d channels on %d fibres: 1 to %d channels on "
			       "1 to %d fibres are supported",
			       p->channels, p->fibres, UINT16_MAX + 1,
			       UINT8_MAX + 1);
	}
	if (p->depth < 0 || p->depth > OPTREE_MAX_DEPTH) {
		return err_set(err, WEFT_EINVAL,
			       "a tree of depth %d: 0 (best) to %d", p->depth,
			       OPTREE_MAX_DEPTH);
	}
	if (p->shard_bytes < 1 || p->channel_bps < 1 || p->alpha_ns < 0) {
		return err_set(err, WEFT_EINVAL,
			       "%lld bytes a node at %lld bit/s, %lld ns a "
			       "step: sizes and rates are positive",
			       (long long)p->shard_bytes,
			       (long long)p->channel_bps,
			       (long long)p->alpha_ns);
	}
	return 0;
}

static int hops_of(const struct rwa_ring *ring, const struct rwa_arc *a)
{
	int hops = a->dir == RWA_CW ? a->dst - a->src : a->src - a->dst;

	return hops > 0 ? hops : hops + ring->n;
}

static const struct rwa_arc *longest(const struct tree_light *t)
{
	const struct rwa_arc *best = &t->arcs[0];

	for (int64_t k = 1; k < t->n_arcs; k++) {
		if (hops_of(&t->ring, &t->arcs[k]) > hops_of(&t->ring, best)) {
			best = &t->arcs[k];
		}
	}
	return best;
}

/* WEFT_EINFEASIBLE when the budget does not close over the longest
 * lightpath. */
static int check_reach(const struct tree_light *t, const struct rwa_loss *loss,
		       int *hops, int64_t *worst_mdb, struct err *err)
{
	const struct rwa_arc *a = longest(t);
	int64_t budget;

	*hops = hops_of(&t->ring, a);
	*worst_mdb = loss ? rwa_path_loss_mdb(&t->ring, loss, *hops) : 0;
	if (!loss || *hops <= rwa_reach_hops(&t->ring, loss)) {
		return 0;
	}
	budget = (int64_t)loss->launch_mdbm - loss->sensitivity_mdbm -
		 loss->margin_mdb;
	return err_set(err, WEFT_EINFEASIBLE,
		       "lightpath %d -> %d over %d hops loses %.3f dB, and the "
		       "budget is %.3f dB (reach: %d hops)",
		       a->src, a->dst, *hops, (double)*worst_mdb / 1000,
		       (double)budget / 1000, rwa_reach_hops(&t->ring, loss));
}

/* A depth to try. */
struct candidate {
	int depth;
	int64_t least_steps;	/* it cannot have fewer */
	struct tree_shape shape;
};

struct choice {
	const struct optree_params *p;
	struct rwa_ring ring;
	struct tree_light best;
	int depth;		/* of best, 0: none yet */
	int64_t worst_mdb;
	int least_hops;		/* longest lightpath of the nearest miss */
	struct err miss;
};

static void make_candidate(const struct optree_params *p, int depth,
			   struct candidate *c)
{
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	int64_t width2 = 2 * (int64_t)p->channels * p->fibres, slots2;
	int reach = p->loss ? rwa_reach_hops(&ring, p->loss) : p->n;

	c->depth = depth;
	tree_shape(p->n, depth, reach, &c->shape, &slots2);
	c->least_steps = (slots2 + width2 - 1) / width2;
}

static int by_promise(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->least_steps != y->least_steps) {
		return x->least_steps < y->least_steps ? -1 : 1;
	}
	return x->depth - y->depth;
}

/* Builds the candidate unless it cannot win; keeps the better one. */
static int try_candidate(struct choice *ch, const struct candidate *c,
			 struct err *err)
{
	struct tree_light t = { 0 };
	int64_t worst_mdb;
	int hops, rc;

	if (ch->depth && (c->least_steps > ch->best.steps ||
			  (c->least_steps == ch->best.steps &&
			   c->depth > ch->depth))) {
		return 0;
	}
	rc = tree_build(&ch->ring, &c->shape, &t, err);
	if (rc) {
		goto out;
	}
	rc = check_reach(&t, ch->p->loss, &hops, &worst_mdb, err);
	if (rc == WEFT_EINFEASIBLE) {
		if (!ch->least_hops || hops < ch->least_hops) {
			ch->least_hops = hops;
			ch->miss = err ? *err : (struct err){ 0 };
		}
		rc = 0;
	} else if (!ch->depth || t.steps < ch->best.steps ||
		   (t.steps == ch->best.steps && c->depth < ch->depth)) {
		tree_light_fini(&ch->best);
		ch->best = t;
		ch->depth = c->depth;
		ch->worst_mdb = worst_mdb;
		return 0;
	}
out:
	tree_light_fini(&t);
	return rc;
}

static int choose(struct choice *ch, struct err *err)
{
	struct candidate c[OPTREE_MAX_DEPTH];
	int n = 0, rc = 0;

	if (ch->p->depth) {
		make_candidate(ch->p, ch->p->depth, &c[n++]);
	} else {
		for (int k = 1; k <= tree_max_depth(ch->p->n); k++) {
			make_candidate(ch->p, k, &c[n++]);
		}
	}
	qsort(c, (size_t)n, sizeof(c[0]), by_promise);
	for (int k = 0; !rc && k < n; k++) {
		rc = try_candidate(ch, &c[k], err);
	}
	if (!rc && !ch->depth) {
		if (err) {
			*err = ch->miss;
		}
		return WEFT_EINFEASIBLE;
	}
	if (!rc) {
		err_clear(err);
	}
	return rc;
}

static int radix_of(int n, int depth)
{
	int m = 2;

	for (;; m++) {
		int64_t power = 1;

		for (int j = 0; j < depth && power < n; j++) {
			power *= m;
		}
		if (power >= n) {
			return m;
		}
	}
}

static int fill_plan(const struct choice *ch, struct optree_plan *out,
		     struct err *err)
{
	const struct optree_params *p = ch->p;
	const struct tree_light *t = &ch->best;
	int64_t sending = tree_ceil_muldiv(p->shard_bytes, (int64_t)
					   t->steps * 8000000000,
					   p->channel_bps);

	out->depth = ch->depth;
	out->radix = radix_of(p->n, ch->depth);
	out->n_levels = t->n_levels;
	memcpy(out->level, t->level, sizeof(out->level));
	out->steps = t->steps;
	out->closed_form_steps = optree_closed_form(
		p->n, p->channels * p->fibres, ch->depth);
	if (sending < 0 || p->alpha_ns > (INT64_MAX - sending) / t->steps) {
		return err_set(err, WEFT_ELIMIT,
			       "%d steps last longer than 292 years",
			       t->steps);
	}
	out->time_ns = sending + t->steps * p->alpha_ns;
	out->colours_over_bound = t->colours_over_bound;
	out->worst_loss_mdb = ch->worst_mdb;
	out->lightpaths = t->n_arcs;
	return tree_bound_ns(p, &out->bound_ns, err);
}

int optree_plan(const struct optree_params *p, struct optree_plan *out,
		struct err *err)
{
	struct choice ch = { .p = p, .ring = { p->n, p->fibres, p->channels } };
	int rc;

	memset(out, 0, sizeof(*out));
	rc = check_params(p, err);
	rc = rc ? rc : choose(&ch, err);
	rc = rc ? rc : fill_plan(&ch, out, err);
	if (!rc) {
		out->gap = (double)out->time_ns / (double)out->bound_ns - 1;
		rc = rwa_ring_check(&ch.ring, ch.best.arcs, ch.best.n_arcs,
				    err);
	}
	rc = rc ? rc : tree_schedule(&ch.best, p->loss, &out->sched, err);
	tree_light_fini(&ch.best);
	return rc;
}

void optree_plan_fini(struct optree_plan *plan)
{
	coll_free(plan->sched);
	plan->sched = NULL;
}
