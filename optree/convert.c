/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Written schedules: one after the other, and an all-gather made a reduction. A
 * reduce-scatter is an all-gather with time and arcs reversed, each copy becoming a
 * reduction; an all-reduce is that followed by the all-gather. The reversed lightpaths go
 * the other direction and keep their channels, so they clash no more than before;
 * collectives_prove() counts them again all the same.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "optree/private.h"

static int check_light(const struct optree_params *p, const struct coll_sched *s, struct err *err)
{
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	const struct coll_light *l;
	struct rwa_arc *arcs;
	int64_t n;
	int rc;

	l = coll_lights(s, &n);
	arcs = x_alloc((size_t)n + 1, sizeof(*arcs));
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

int collectives_prove(const struct optree_params *p, const struct coll_sched *s, struct err *err)
{
	int rc = coll_verify(s, NULL, err);

	return rc ? rc : check_light(p, s, err);
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
	topo_freeze(*out);
	return 0;
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
		x_alloc((size_t)topo_m(coll_topo(a)) + 1, sizeof(int32_t)),
		x_alloc((size_t)topo_m(coll_topo(b)) + 1, sizeof(int32_t)),
	};
	struct topo *topo = NULL;
	int rc;

	*out = NULL;
	if ((rc = merge_topos(coll_topo(a), coll_topo(b), map, &topo, err))) {
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
	if (rc || (rc = collectives_prove(p, back, err))) {
		coll_free(back);
		return rc;
	}
	coll_free(*s);
	*s = back;
	return 0;
}
