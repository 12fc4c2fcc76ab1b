/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another group for a compact schedule, where its own is none of the physical digraph.
 *
 * A schedule that goes straight from each to each has any symmetry that its digraph
 * has, but it comes with one group, such as the rotations of all nodes of a complete
 * digraph, of which a fat tree has few. So shifts of digits that are automorphisms
 * of the physical digraph are tried: one after the other is applied to all transfers,
 * and kept when all images are transfers of the schedule too.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/embedding/private.h"
#include "lib/base/alloc.h"

struct coll_xfer embed_moved(const struct topo_group *g, const struct topo_action *action, int by,
			     const struct coll_xfer *x)
{
	struct coll_xfer to = *x;

	if (by) {
		to.arc = topo_action_move(action, by, x->arc);
		to.origin = topo_group_move(g, by, x->origin);
		to.dest = x->dest < 0 ? x->dest : topo_group_move(g, by, x->dest);
	}
	return to;
}

static int cmp(int a, int b)
{
	return a < b ? -1 : a > b;
}

/* The order of coll_xfers. */
static int by_place(const void *pa, const void *pb)
{
	const struct coll_xfer *a = pa, *b = pb;
	const int sides[][2] = {
		{ a->step, b->step }, { a->arc, b->arc }, { a->origin, b->origin },
		{ a->dest, b->dest }, { a->first, b->first }, { a->last, b->last },
		{ a->op, b->op },
	};
	int c = 0;

	for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]) && !c; i++) {
		c = cmp(sides[i][0], sides[i][1]);
	}
	return c;
}

/* A compact schedule has this transfer. */
static bool has(const struct coll_sched *s, const struct topo_action *action,
		const struct coll_xfer *x)
{
	const struct topo_group *g = coll_group(s);
	int back = topo_group_inverse(g, topo_group_element(g, x->origin));
	struct coll_xfer first = embed_moved(g, action, back, x);
	int64_t n;
	const struct coll_xfer *list = coll_xfers(s, &n);

	return bsearch(&first, list, (size_t)n, sizeof(*list), by_place) != NULL;
}

/* All images of all transfers under the one generator of `shift` are transfers. */
static bool keeps_transfers(const struct coll_sched *s, const struct topo_action *action,
			    const struct topo_group *shift, const struct topo_action *moved)
{
	const struct topo_group *g = coll_group(s);
	int64_t n;
	const struct coll_xfer *x = coll_xfers(s, &n);

	for (int64_t i = 0; i < n; i++) {
		for (int by = 0; by < topo_group_order(g); by++) {
			struct coll_xfer from = embed_moved(g, action, by, &x[i]);
			struct coll_xfer to = embed_moved(shift, moved, 1, &from);

			if (!has(s, action, &to)) {
				return false;
			}
		}
	}
	return true;
}

/* Whether the generator of this order keeps the logical digraph and the
 * schedule. */
static bool keeps(const struct coll_sched *s, const struct topo_action *action, int order,
		  const int32_t *image)
{
	const struct topo *t = coll_topo(s);
	struct topo_group *shift = NULL;
	struct topo_action *moved = NULL;
	bool yes = topo_group_new(topo_n(t), topo_ranks(t), 1, &order, image, &shift, NULL) == 0 &&
		   topo_action_new(t, shift, &moved, NULL) == 0 &&
		   keeps_transfers(s, action, shift, moved);

	topo_action_free(moved);
	topo_group_free(shift);
	return yes;
}

/* The generators of g that keep the schedule. */
static int keep_generators(const struct coll_sched *s, const struct topo_action *action,
			   const struct topo_group *g, struct topo_group **out, struct err *err)
{
	int n = topo_group_generators(g), nodes = topo_group_nodes(g), kept = 0, rc = 0;
	int *orders = x_alloc((size_t)n, sizeof(*orders));
	int32_t *images = x_alloc((size_t)n * (size_t)nodes, sizeof(*images));

	for (int i = 0; i < n; i++) {
		int order;
		const int32_t *image = topo_group_generator(g, i, &order);

		if (keeps(s, action, order, image)) {
			memcpy(images + (size_t)kept * (size_t)nodes, image,
			       (size_t)nodes * sizeof(*image));
			orders[kept++] = order;
		}
	}
	if (kept > 0) {
		rc = topo_group_new(nodes, coll_ranks(s), kept, orders, images, out, err);
	}
	free(orders);
	free(images);
	return rc;
}

int embed_other_group(const struct coll_sched *s, const struct topo_action *action,
		      const struct topo *physical, struct topo_group **out, struct err *err)
{
	struct topo_group *digits;
	int64_t n;
	int rc = 0;

	*out = NULL;
	(void)coll_xfers(s, &n);
	if (n > EMBED_MAX_MOVED / topo_group_order(coll_group(s))) {
		return 0;
	}
	digits = topo_group_digits(physical);
	if (digits) {
		rc = keep_generators(s, action, digits, out, err);
	}
	topo_group_free(digits);
	return rc;
}
