/*
 * The other collectives on rings. A reduce-scatter is an all-gather with time
 * and arcs reversed, each copy becoming a reduction; an all-reduce is that
 * followed by the all-gather. The reversed lightpaths go the other direction
 * and keep their channels, so they clash no more than before;
 * collectives_check_light() counts them again all the same.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "optree/grouped/grouped.h"
#include "optree/private.h"

int collectives_check_light(const struct optree_params *p, const struct coll_sched *s,
			    struct err *err)
{
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	const struct coll_light *l;
	struct rwa_arc *arcs;
	int64_t n;
	int rc;

	l = coll_lights(s, &n);
	arcs = malloc(((size_t)n + 1) * sizeof(*arcs));
	if (!arcs) {
		return err_nomem(err);
	}
	for (int64_t k = 0; k < n; k++) {
		const struct topo_arc *a = topo_arc(coll_topo(s), l[k].arc);

		arcs[k] = (struct rwa_arc){
			.src = a->src, .dst = a->dst, .dir = l[k].dir,
			.fibre = l[k].fibre, .channel = l[k].channel,
			.slot = l[k].step };
	}
	rc = rwa_ring_check(&ring, arcs, n, err);
	free(arcs);
	return rc;
}

/* Arcs of a and b side by side, in the digraph's own order (by source, then
 * sink), so their new numbers are known: map[0] of a's arcs, map[1] of b's. */
static int merge_topos(const struct topo *a, const struct topo *b,
		       int32_t *map[2], struct topo **out, struct err *err)
{
	int i = 0, j = 0, rc = topo_new(topo_n(a), out, err);

	for (int k = 0; k < topo_m(a) + topo_m(b) && !rc; k++) {
		const struct topo_arc *x = i < topo_m(a) ? topo_arc(a, i) : NULL;
		const struct topo_arc *y = j < topo_m(b) ? topo_arc(b, j) : NULL;
		bool first = !y || (x && (x->src < y->src || (x->src == y->src &&
							      x->dst <= y->dst)));

		if (first) {
			map[0][i++] = k;
		} else {
			map[1][j++] = k;
			x = y;
		}
		rc = topo_add_arc(*out, x->src, x->dst, 1, 0, err);
	}
	if (rc) {
		return rc;
	}
	return topo_freeze(*out, err);
}

/* To node `without` nothing is sent. */
static int append(const struct coll_sched *s, int base, const int32_t *map, int without,
		  struct coll_sched *out, struct err *err)
{
	int64_t n_x, n_l;
	const struct coll_xfer *x = coll_xfers(s, &n_x);
	const struct coll_light *l = coll_lights(s, &n_l);
	int rc = 0;

	for (int64_t k = 0; k < n_x && !rc; k++) {
		struct coll_xfer moved = x[k];

		if (topo_arc(coll_topo(s), x[k].arc)->dst == without) {
			continue;
		}
		moved.step += base;
		moved.arc = map[moved.arc];
		rc = coll_add(out, &moved, err);
	}
	for (int64_t k = 0; k < n_l && !rc; k++) {
		struct coll_light moved = l[k];

		if (topo_arc(coll_topo(s), l[k].arc)->dst == without) {
			continue;
		}
		moved.step += base;
		moved.arc = map[moved.arc];
		rc = coll_add_light(out, &moved, err);
	}
	return rc;
}

/* Their arcs need not be the same: light goes where each wants it. */
int collectives_sequence(enum coll_kind kind, const struct coll_sched *a,
			 const struct coll_sched *b, struct coll_sched **out, struct err *err)
{
	int without = kind == COLL_BROADCAST ? coll_root(a) : -1;
	int32_t *map[2] = {
		malloc(((size_t)topo_m(coll_topo(a)) + 1) * sizeof(int32_t)),
		malloc(((size_t)topo_m(coll_topo(b)) + 1) * sizeof(int32_t)),
	};
	struct topo *topo = NULL;
	int rc = map[0] && map[1] ? 0 : err_nomem(err);

	*out = NULL;
	if (rc || (rc = merge_topos(coll_topo(a), coll_topo(b), map, &topo, err))) {
		topo_free(topo);
		goto out;
	}
	rc = coll_new(kind, topo, coll_chunks(a), coll_ports(a), coll_root(a), out, err);
	if (rc) {
		goto out;
	}
	coll_set_topo_name(*out, coll_topo_name(a));
	if ((rc = append(a, 0, map[0], -1, *out, err)) ||
	    (rc = append(b, coll_steps(a), map[1], without, *out, err)) ||
	    (rc = coll_finish(*out, err))) {
		coll_free(*out);
		*out = NULL;
	}
out:
	free(map[0]);
	free(map[1]);
	return rc;
}

int collectives_convert(const struct optree_params *p, enum coll_kind kind,
			const struct coll_sched *mirror, struct coll_sched **s, struct err *err)
{
	struct coll_sched *back = NULL, *both = NULL;
	int rc = coll_reverse(mirror ? mirror : *s, &back, err);

	if (!rc && kind == COLL_ALLREDUCE) {
		rc = collectives_sequence(COLL_ALLREDUCE, back, *s, &both, err);
		coll_free(back);
		back = both;
	}
	if (rc || (rc = coll_verify(back, NULL, err)) ||
	    (rc = collectives_check_light(p, back, err))) {
		coll_free(back);
		return rc;
	}
	coll_free(*s);
	*s = back;
	return 0;
}

/* Time of an all-reduce, from that of its all-gather: less what needs no
 * retuning where one half meets the other. */
static int set_both_halves(const struct optree_params *p, struct optree_plan *out, struct err *err)
{
	int64_t plain = 2 * (out->time_ns + out->retune_hidden_ns);
	int rc = 0;

	out->time_ns *= 2;
	if (p->overlap && out->sym) {
		rc = overlap_time_ns(p, out->sym, COLL_ALLREDUCE, NULL, &out->time_ns, err);
	}
	out->retune_hidden_ns = plain - out->time_ns;
	return rc;
}

/* Reverses the written all-gather of *out. Reversed lightpaths go the other
 * way round, so of unequal light the one to reverse is that of a ring whose
 * directions have changed places. */
static int reverse_written(const struct optree_params *p, enum coll_kind kind,
			   enum optree_algorithm how, struct optree_plan *out, struct err *err)
{
	struct optree_params other = *p;
	struct optree_plan mirror = { 0 };
	VEC(struct optree_fibre) light = { 0 };
	int rc = 0;

	for (int k = 0; k < p->n_light && !rc; k++) {
		struct optree_fibre f = p->light[k];

		f.dir = !f.dir;
		rc = vec_push(&light, f) ? err_nomem(err) : 0;
	}
	other.light = light.v;
	/* What composed has written out is a tree of one stage. */
	how = how == OPTREE_COMPOSED ? OPTREE_BY_ONE_STAGE : how;
	if (!rc && p->n_light) {
		rc = make_gather(&other, how, &mirror, err);
	}
	if (!rc) {
		rc = collectives_convert(p, kind, mirror.sched, &out->sched, err);
	}
	optree_plan_fini(&mirror);
	vec_fini(&light);
	return rc;
}

/* Reduce-scatter is an all-gather the other way round in time, all-reduce
 * one after the other. */
static int make_reduction(const struct optree_params *p, enum coll_kind kind,
			  enum optree_algorithm how, struct optree_plan *out, struct err *err)
{
	struct optree_params half = *p;
	int rc;

	if (kind == COLL_ALLREDUCE && p->max_lights) {
		half.max_lights = p->max_lights / 2 + !(p->max_lights / 2);
	}
	rc = make_gather(&half, how, out, err);
	if (rc) {
		return rc;
	}
	out->kind = kind;
	if (out->sched) {
		rc = reverse_written(p, kind, out->algorithm, out, err);
	}
	if (!rc && kind == COLL_ALLREDUCE) {
		if (out->time_ns > INT64_MAX / 2 - out->retune_hidden_ns) {
			return err_set(err, WEFT_ELIMIT, "it lasts longer than 292 years");
		}
		rc = set_both_halves(p, out, err);
		out->steps *= 2;
		out->rounds *= 2;
		out->lightpaths *= 2;
		out->closed_form_steps *= 2;
		out->optree_time_ns = out->optree_time_ns > INT64_MAX / 2
					      ? INT64_MAX
					      : 2 * out->optree_time_ns;
	}
	return rc;
}

/* An all-reduce, also of whole vectors where that is faster. */
static int make_allreduce(const struct optree_params *p, enum optree_algorithm how,
			  struct optree_plan *out, struct err *err)
{
	struct optree_plan sums = { 0 };
	int rc = make_reduction(p, COLL_ALLREDUCE, how, out, err);
	bool may = (how == OPTREE_AUTO && !p->depth) || how == OPTREE_GROUPED;

	if (rc || !may || grouped_make_sums(p, out->time_ns, &sums, &(struct err){ 0 })) {
		return rc;
	}
	/* The paper has two halves. */
	sums.closed_form_steps = out->closed_form_steps;
	sums.optree_time_ns = out->optree_time_ns;
	optree_plan_fini(out);
	*out = sums;
	return 0;
}

static int make_exchange(const struct optree_params *p, struct optree_plan *out, struct err *err)
{
	struct compose_shape shape;
	struct optree_sym s;
	int reach, rc = make_reach(p, &reach, err);

	if (rc || (rc = compose_exchange(p, reach, &shape, &s, err)) ||
	    (rc = make_from_sym(p, OPTREE_COMPOSED, &s, out, err))) {
		return rc;
	}
	out->kind = COLL_ALLTOALL;
	make_levels_of(p, &shape, out);
	for (int j = 0; j < out->n_levels; j++) {
		out->level[j].members = shape.level[j].gap /
					shape.level[j].stride + 1;
		out->level[j].items = 0;
		out->level[j].subsets = 0;
	}
	/* As published, OpTree is an all-gather. */
	out->optree_time_ns = 0;
	out->closed_form_steps = 0;
	return 0;
}

static int make_broadcast(const struct optree_params *p, int root,
			  struct optree_plan *out, struct err *err)
{
	int reach, rc = make_reach(p, &reach, err);

	return rc ? rc : broadcast_make(p, root, reach, out, err);
}

int optree_collective(const struct optree_params *p, enum coll_kind kind, int root,
		      enum optree_algorithm how, struct optree_plan *out, struct err *err)
{
	int rc = tree_check_params(p, err);

	memset(out, 0, sizeof(*out));
	if (rc) {
		return rc;
	}
	if (kind == COLL_ALLGATHER) {
		rc = make_gather(p, how, out, err);
	} else if (kind == COLL_REDUCE_SCATTER || kind == COLL_ALLREDUCE) {
		rc = kind == COLL_ALLREDUCE ? make_allreduce(p, how, out, err)
					    : make_reduction(p, kind, how, out, err);
	} else if (how != OPTREE_AUTO && how != OPTREE_COMPOSED) {
		rc = err_set(err, WEFT_EUNSUPPORTED, "%s by %s: not supported, only composed",
			     coll_kind_name(kind), optree_algorithm_name(how));
	} else if (kind == COLL_ALLTOALL) {
		rc = make_exchange(p, out, err);
	} else {
		rc = make_broadcast(p, root, out, err);
	}
	if (!rc) {
		rc = ring_bound_set(p, root, out, err);
	}
	if (rc) {
		optree_plan_fini(out);
	}
	return rc;
}

int optree_make(const struct optree_params *p, enum optree_algorithm how,
		struct optree_plan *out, struct err *err)
{
	return optree_collective(p, COLL_ALLGATHER, 0, how, out, err);
}

int optree_plan(const struct optree_params *p, struct optree_plan *out, struct err *err)
{
	int rc = tree_plan(p, out, err);

	if (!rc && (rc = ring_bound_set(p, 0, out, err))) {
		optree_plan_fini(out);
	}
	return rc;
}
