/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which peers of a rank share channels and threadblocks; see build.h.
 *
 * A channel takes so many peers of a rank in a direction, so ranks with more
 * have groups of channels. A threadblock has one peer that it receives from
 * and one that it sends to: those share one where most of what comes from the
 * one goes on to the other.
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "runtime/msccl/build.h"

/* ---- groups of peers ---- */

int msccl_group_of(const struct msccl_build *b, int from, int to)
{
	int n = b->p->ranks;

	return b->group[(to - from + n) % n];
}

/* The most peers that a rank sends to, or receives from; marks in `group`
 * how far these are. */
static int mark_peers(struct msccl_build *b, const struct lower *l)
{
	int n = b->p->ranks, most = 0;
	int32_t *seen = x_alloc((size_t)n * 2, sizeof(*seen));

	for (int i = 0; i < 2 * n; i++) {
		seen[i] = NONE;
	}
	for (int r = 0; r < n; r++) {
		int count[2] = { 0, 0 };

		for (size_t i = 0; i < l->rank[r].ops.n; i++) {
			const struct lower_op *op = &l->rank[r].ops.v[i];
			bool in = op->recv != NONE;
			int peer = in ? op->recv : op->send;

			if (peer == NONE || seen[in * n + peer] == r) {
				continue;
			}
			seen[in * n + peer] = r;
			b->group[(in ? r - peer + n : peer - r + n) % n] = 1;
			most = ++count[in] > most ? count[in] : most;
		}
	}
	free(seen);
	return most;
}

/* A channel takes MSCCL_MAX_PEERS peers of a rank in a direction. Ranks with
 * more have several, dealt by how far a peer is: of any distance a rank has
 * one peer in each direction, and both ends agree. */
void msccl_group_peers(struct msccl_build *b, const struct lower *l)
{
	int n = b->p->ranks, most, known = 0;

	b->group = x_new((size_t)n, sizeof(*b->group));
	most = mark_peers(b, l);
	for (int k = 0; k < n; k++) {
		bool used = b->group[k];

		b->group[k] = most > MSCCL_MAX_PEERS ? known / MSCCL_MAX_PEERS
						     : 0;
		known += used;
	}
	b->groups = most > MSCCL_MAX_PEERS
			    ? (known + MSCCL_MAX_PEERS - 1) / MSCCL_MAX_PEERS
			    : 1;
}

/* ---- pairing of peers ---- */

struct msccl_bond {
	int32_t recv, send, weight;
};

static int cmp_bond(const void *a, const void *b)
{
	const struct msccl_bond *p = a, *q = b;

	if (p->weight != q->weight) {
		return p->weight > q->weight ? -1 : 1;
	}
	if (p->recv != q->recv) {
		return p->recv < q->recv ? -1 : 1;
	}
	return p->send < q->send ? -1 : p->send > q->send;
}

ORDER_BY(cmp_peers, struct msccl_bond, recv, send)

static void take_bond(struct msccl_build *b, const struct msccl_bond *x)
{
	if (b->mate[x->recv] == NONE && b->mated[x->send] == NONE &&
	    msccl_group_of(b, x->recv, b->rank) == msccl_group_of(b, b->rank, x->send)) {
		b->mate[x->recv] = x->send;
		b->mated[x->send] = x->recv;
	}
}

/* Peers without a bond share threadblocks all the same when these are
 * scarce. */
static void pair_group(struct msccl_build *b, int group)
{
	int in = NONE, out = NONE;

	for (int i = 0, j = 0; i < b->n_ops; i++) {
		in = b->ops[i].recv;
		if (in == NONE || b->mate[in] != NONE || msccl_group_of(b, in, b->rank) != group) {
			continue;
		}
		for (; j < b->n_ops; j++) {
			out = b->ops[j].send;
			if (out != NONE && b->mated[out] == NONE &&
			    msccl_group_of(b, b->rank, out) == group) {
				break;
			}
		}
		if (j == b->n_ops) {
			return;
		}
		take_bond(b, &(struct msccl_bond){ in, out, 0 });
	}
}

/* A receive peer and a send peer share a threadblock where most of what
 * comes from the one goes on to the other; greedily, most first. */
void msccl_pair_peers(struct msccl_build *b)
{
	VEC(struct msccl_bond) bonds = { 0 };
	size_t n = 0;

	for (int r = 0; r < b->p->ranks; r++) {
		b->mate[r] = b->mated[r] = NONE;
	}
	for (int i = 0; i < b->n_ops && !b->apart; i++) {
		const struct msccl_op *op = &b->ops[i];

		if (op->type == MSCCL_SEND && op->writer != NONE &&
		    b->ops[op->writer].recv != NONE) {
			vec_push(&bonds, (struct msccl_bond){ b->ops[op->writer].recv, op->send,
							      1 });
		}
	}
	if (bonds.n > 0) {
		qsort(bonds.v, bonds.n, sizeof(*bonds.v), cmp_peers);
	}
	for (size_t i = 0; i < bonds.n; i++) {
		if (n > 0 && cmp_peers(&bonds.v[n - 1], &bonds.v[i]) == 0) {
			bonds.v[n - 1].weight++;
		} else {
			bonds.v[n++] = bonds.v[i];
		}
	}
	if (n > 0) {
		qsort(bonds.v, n, sizeof(*bonds.v), cmp_bond);
	}
	for (size_t i = 0; i < n; i++) {
		take_bond(b, &bonds.v[i]);
	}
	vec_fini(&bonds);
	if (b->pair_all && !b->apart) {
		for (int g = 0; g < b->groups; g++) {
			pair_group(b, g);
		}
	}
}
