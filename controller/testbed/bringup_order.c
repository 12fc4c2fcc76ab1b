/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: findings in an order in which they can be mended one by one.
 *
 * A fibre that is to be laid to its written place comes after the one that was
 * found there. In a circle the first one's place is taken by the last one,
 * which hangs until its turn: no second fibre is ever loose.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/bringup_private.h"
#include "lib/base/alloc.h"

enum order_mark { NOT_LISTED, BEGUN, LISTED };

/* The list in the making. */
struct finding_order {
	const struct bringup_finding *v;	/* [n], as they were */
	enum order_mark *mark;			/* [n] */
	struct bringup_finding *out;
	int n, n_out;
};

static bool is_laid(const struct bringup_finding *d)
{
	return d->kind == BRINGUP_MOVED || d->kind == BRINGUP_LOOPED;
}

/* What is at the place that a fibre is to be laid to, -1: nothing found. */
static int find_there(const struct finding_order *o, int at)
{
	const char *place = o->v[at].written;

	for (int i = 0; *place && is_laid(&o->v[at]) && i < o->n; i++) {
		const struct bringup_finding *d = &o->v[i];

		if (i != at && strcmp(d->found, place) == 0 &&
		    (is_laid(d) || d->kind == BRINGUP_UNWRITTEN || d->kind == BRINGUP_SPLIT)) {
			return i;
		}
	}
	return -1;
}

/* A finding, after those that it waits for: they are a chain, for at a place
 * there is one fibre. What is begun closes a circle. */
static void list_from(struct finding_order *o, int *chain, int at)
{
	int n = 0;

	while (at >= 0 && o->mark[at] == NOT_LISTED) {
		o->mark[at] = BEGUN;
		chain[n++] = at;
		at = find_there(o, at);
	}
	while (n > 0) {
		at = chain[--n];
		o->mark[at] = LISTED;
		o->out[o->n_out++] = o->v[at];
	}
}

void bringup_order(struct bringup_finding *v, int n)
{
	struct bringup_finding *copy = x_alloc((size_t)n + 1, sizeof(*copy));
	struct finding_order o = { .v = copy, .out = v, .n = n,
				   .mark = x_new((size_t)n + 1, sizeof(*o.mark)) };
	int *chain = x_new((size_t)n + 1, sizeof(*chain));

	memcpy(copy, v, (size_t)n * sizeof(*copy));
	for (int i = 0; i < n; i++) {
		list_from(&o, chain, i);
	}
	free(copy);
	free(o.mark);
	free(chain);
}
