/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hamiltonian rings on two dimensions (section 2.3.1).
 *
 * On r x c nodes with r a multiple of c, one ring goes along its row but where row + column + 1 is
 * a multiple of c, and there down; the other one the other way about. The first always meets all
 * nodes; the second goes down c - 1 rows for every column, and does where r and c - 1 have no
 * common divisor. They share no link. Moving a row down and a column back keeps both.
 */
#include <stdlib.h>

#include "collective/torus/private.h"
#include "lib/base/number/rat.h"

struct torus_ring_pair {
	const struct torus_shape *shape;
	enum coll_kind kind;
	int rows, columns;	/* dimensions */
	int n;
	int32_t *at;		/* node at a place of the ring at hand */
	int32_t *place;		/* of a node */
	struct torus_builder b;
	struct arrays arrays;
};

/* Whether the next node of a ring is in the next row. */
static bool goes_down(const struct torus_ring_pair *p, int node, bool second)
{
	const struct torus_shape *s = p->shape;
	int sum = torus_digit(s, node, p->rows) + torus_digit(s, node, p->columns) + 1;

	return (sum % s->size[p->columns] == 0) != second;
}

static int neighbour(const struct torus_shape *s, int node, int e, int by)
{
	int d = s->size[e], x = torus_digit(s, node, e);

	return torus_at(s, node, e, (x + by + d) % d);
}

static void lay_ring(struct torus_ring_pair *p, bool second, bool back)
{
	int node = 0;

	for (int i = 0; i < p->n; i++) {
		int place = back ? p->n - 1 - i : i;

		p->at[place] = node;
		p->place[node] = place;
		node = neighbour(p->shape, node, goes_down(p, node, second) ? p->rows : p->columns,
				 1);
	}
}

static int add_hop(struct torus_ring_pair *p, int place, struct coll_xfer x, struct err *err)
{
	const struct torus_shape *s = p->shape;
	int from = p->at[place % p->n], to = p->at[(place + 1) % p->n];
	int e = torus_digit(s, from, p->rows) != torus_digit(s, to, p->rows) ? p->rows : p->columns;

	return torus_builder_add(&p->b, from, e, torus_digit(s, to, e), &x, err);
}

/* A shard's sum all round to its home, then from there all round. */
static int send_round(struct torus_ring_pair *p, int origin, int chunk, struct err *err)
{
	struct coll_xfer x = { .origin = origin, .dest = COLL_NO_DEST, .first = chunk,
			       .last = chunk };
	int rc = 0, home = p->place[origin];

	for (int k = 1; k < p->n && p->kind != COLL_ALLGATHER && rc == 0; k++) {
		x.op = COLL_OP_REDUCE;
		rc = add_hop(p, home + k, x, err);
		x.step++;
	}
	for (int k = 0; k < p->n - 1 && p->kind != COLL_REDUCE_SCATTER && rc == 0; k++) {
		x.op = COLL_OP_COPY;
		rc = add_hop(p, home + k, x, err);
		x.step++;
	}
	return rc;
}

static int send_rounds(struct torus_ring_pair *p, int collectives, struct err *err)
{
	const struct topo_group *g = coll_group(p->b.sched);
	int rc = 0;

	for (int c = 0; c < collectives; c++) {
		lay_ring(p, c >= 2, c % 2);
		for (int u = 0; u < p->n && rc == 0; u++) {
			rc = topo_group_first(g, u) == u ? send_round(p, u, c, err) : 0;
		}
	}
	return rc;
}

static int begin(struct torus_ring_pair *p, int collectives, struct err *err)
{
	const struct torus_shape *s = p->shape;
	struct topo_group *g;
	int order = s->size[p->rows], rc;

	arrays_add(&p->arrays, p->at, p->n);
	arrays_add(&p->arrays, p->place, p->n);
	for (int u = 0; u < p->n; u++) {
		p->at[u] = neighbour(s, neighbour(s, u, p->rows, 1), p->columns, -1);
	}
	rc = topo_group_new(p->n, p->n, 1, &order, p->at, &g, err);
	if (rc) {
		return rc;
	}
	torus_builder_init(&p->b, s, p->kind);
	for (int e = 0; e < 2; e++) {
		for (int x = 0; x < s->size[e]; x++) {
			torus_builder_join(&p->b, e, x, (x + 1) % s->size[e]);
		}
	}
	return torus_builder_begin(&p->b, collectives, 0, g, err);
}

int torus_rings_exist(const struct torus_shape *s, int *rows, struct err *err)
{
	for (int e = 0; s->n_dims == 2 && e < 2; e++) {
		int r = s->size[e], c = s->size[!e];

		if (r % c == 0 && rat_gcd(r, c - 1) == 1) {
			*rows = e;
			return 0;
		}
	}
	return err_set(err, WEFT_EUNSUPPORTED,
		       "Hamiltonian rings: not supported but in one dimension, "
		       "and on r x c nodes with r a multiple of c and no common divisor of r and "
		       "c - 1");
}

int torus_rings(const struct torus_shape *s, bool one_port, enum coll_kind kind,
		struct coll_sched **out, struct err *err)
{
	struct torus_ring_pair p = { .shape = s, .kind = kind, .n = topo_ranks(s->t) };
	int rc = torus_rings_exist(s, &p.rows, err);

	p.columns = !p.rows;

	if (rc == 0 && kind != COLL_ALLREDUCE && kind != COLL_ALLGATHER &&
	    kind != COLL_REDUCE_SCATTER) {
		rc = err_set(err, WEFT_EUNSUPPORTED, "%s on Hamiltonian rings: not supported",
			     coll_kind_name(kind));
	}
	if (rc == 0) {
		rc = begin(&p, one_port ? 1 : 4, err);
	}
	if (rc == 0) {
		rc = send_rounds(&p, one_port ? 1 : 4, err);
	}
	if (rc == 0) {
		rc = torus_builder_end(&p.b, out, err);
	}
	torus_builder_fini(&p.b);
	arrays_fini(&p.arrays);
	return rc;
}
