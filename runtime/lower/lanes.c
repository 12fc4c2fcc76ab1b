/* SPDX-License-Identifier: Apache-2.0 */
/* A lowered schedule in lanes, one after the other; see lower.h. */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "runtime/lower/lower.h"

/* What divides one schedule into many. */
struct lower_split {
	const struct lower *in;
	int per, lanes, copies;
	int copy;		/* at hand */
	VEC(struct lower_op) parts;	/* of the rank at hand, in no order of lanes */
};

int lower_span(const struct lower *l, int per)
{
	int most = 1;

	for (int r = 0; r < l->ranks; r++) {
		for (size_t i = 0; i < l->rank[r].ops.n; i++) {
			const struct lower_op *op = &l->rank[r].ops.v[i];
			int span = (op->id + op->cnt - 1) / per - op->id / per + 1;

			most = op->type == LOWER_SEND && span > most ? span : most;
		}
	}
	return most;
}

/* Where a chunk of a buffer is in the copy at hand. The parts of a copy are
 * together in the whole vector where ranks have all of it, else in each shard. */
static int32_t moved(const struct lower_split *d, int32_t off)
{
	int32_t part = lower_is_whole(d->in->kind) ? d->in->loop : d->in->loop / d->in->ranks;

	return off < 0 ? off : (off / part * d->copies + d->copy) * part + off % part;
}

/* The part of an op from its chunk `from` on. */
static struct lower_op part_of(const struct lower_split *d, struct lower_op op, int32_t from,
			       int32_t cnt)
{
	int lane = op.type == LOWER_COPY ? 0 : (op.id + from) / d->per % d->lanes;

	op.cnt = cnt;
	op.src = op.src < 0 ? op.src : moved(d, op.src + from);
	op.dst = op.dst < 0 ? op.dst : moved(d, op.dst + from);
	op.scratch = op.type == LOWER_ADD ? moved(d, op.scratch + from) : op.scratch;
	op.id += from;
	op.phase += (d->copy * d->lanes + lane) * d->in->phases;
	return op;
}

/* How many chunks from `from` on stay together. What a rank copies for itself
 * does so until places part. */
static int32_t run_of(const struct lower_split *d, const struct lower_op *op, int32_t from)
{
	int32_t n = d->per - (op->id + from) % d->per, left = op->cnt - from;

	if (op->type != LOWER_COPY) {
		return n < left ? n : left;
	}
	for (n = 1; n < left && moved(d, op->src + from + n) == moved(d, op->src + from) + n &&
	     moved(d, op->dst + from + n) == moved(d, op->dst + from) + n;) {
		n++;
	}
	return n;
}

/* The ops of a rank, of the copy at hand, cut where their chunks part. */
static void add_parts(struct lower_split *d, const struct lower_rank *from)
{
	for (size_t i = 0; i < from->ops.n; i++) {
		const struct lower_op *op = &from->ops.v[i];

		for (int32_t at = 0; at < op->cnt;) {
			int32_t cnt = run_of(d, op, at);

			vec_push(&d->parts, part_of(d, *op, at, cnt));
			at += cnt;
		}
	}
}

/* The parts lane by lane; in a lane they stay in order. */
static void sort_parts(const struct lower_split *d, struct lower_rank *to)
{
	int lanes = d->lanes * d->copies;
	int64_t *end = x_new((size_t)lanes + 1, sizeof(*end));
	int phases = d->in->phases > 0 ? d->in->phases : 1;

	to->ops.v = x_alloc(d->parts.n + 1, sizeof(*to->ops.v));
	for (size_t i = 0; i < d->parts.n; i++) {
		end[d->parts.v[i].phase / phases + 1]++;
	}
	for (int k = 0; k < lanes; k++) {
		end[k + 1] += end[k];
	}
	for (size_t i = 0; i < d->parts.n; i++) {
		to->ops.v[end[d->parts.v[i].phase / phases]++] = d->parts.v[i];
	}
	free(end);
	to->ops.n = to->ops.cap = d->parts.n;
}

static void split_rank(struct lower_split *d, const struct lower_rank *from, struct lower_rank *to)
{
	d->parts.n = 0;
	for (int b = 0; b < 3; b++) {
		to->chunks[b] = from->chunks[b] * d->copies;
	}
	for (d->copy = 0; d->copy < d->copies; d->copy++) {
		add_parts(d, from);
	}
	sort_parts(d, to);
}

void lower_lanes(const struct lower *in, int per, int lanes, int copies, struct lower *out)
{
	struct lower_split d = { .in = in, .per = per, .lanes = lanes, .copies = copies };

	*out = *in;
	out->phases = in->phases * lanes * copies;
	out->loop = in->loop * copies;
	out->rank = x_new((size_t)in->ranks, sizeof(*out->rank));
	for (int r = 0; r < in->ranks; r++) {
		split_rank(&d, &in->rank[r], &out->rank[r]);
	}
	vec_fini(&d.parts);
}
