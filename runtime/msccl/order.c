/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits between the threadblocks of a rank, and its steps; see build.h. A step waits for the
 * last write of what it reads, and for all earlier reads and the last write of what it writes,
 * unless its threadblock's past or another wait implies it (vector clocks).
 */
#include <stdlib.h>

#include "runtime/msccl/build.h"

/* ---- dependencies ---- */

static int32_t *clock_of(const struct msccl_build *b, int op)
{
	return b->clock + (size_t)op * b->p->gpus[b->rank].tbs.n;
}

/* Op numbers rise along a threadblock, so the larger one is the later. */
static void need(struct msccl_build *b, const struct msccl_op *op, int other)
{
	int tb = b->ops[other].tb;

	if (tb != op->tb && b->wait[tb] < other) {
		b->wait[tb] = other;
	}
}

static void read_cells(struct msccl_build *b, int i)
{
	const struct msccl_op *op = &b->ops[i];
	int64_t from = msccl_cell_of(b, op->src_buf, op->src);

	for (int64_t c = from; c < from + op->cnt; c++) {
		if (b->writer[c] != NONE) {
			need(b, op, b->writer[c]);
		}
		vec_push(&b->reads, (struct msccl_read){ i, b->reader[c] });
		b->reader[c] = (int32_t)b->reads.n - 1;
	}
}

static void write_cells(struct msccl_build *b, int i)
{
	const struct msccl_op *op = &b->ops[i];
	int64_t to = msccl_cell_of(b, op->dst_buf, op->dst);

	for (int64_t c = to; c < to + op->cnt; c++) {
		if (b->writer[c] != NONE) {
			need(b, op, b->writer[c]);
		}
		for (int32_t x = b->reader[c]; x != NONE; x = b->reads.v[x].before) {
			/* A flag that says too little is not waited for: the proof
			 * tells whether messages order the two. */
			if (!b->early_flags || b->ops[b->reads.v[x].op].type != MSCCL_SEND) {
				need(b, op, b->reads.v[x].op);
			}
		}
		b->reader[c] = NONE;
		b->writer[c] = i;
	}
}

/* The op's clock: what its threadblock knew, and itself. */
static int32_t *start_clock(struct msccl_build *b, int i)
{
	size_t n = b->p->gpus[b->rank].tbs.n;
	int tb = b->ops[i].tb;
	int32_t *mine = clock_of(b, i);

	for (size_t t = 0; t < n; t++) {
		mine[t] = b->last[tb] == NONE ? NONE
					      : clock_of(b, b->last[tb])[t];
		b->wait[t] = NONE;
	}
	mine[tb] = i;
	b->last[tb] = i;
	return mine;
}

/* Leaves only waits that neither the threadblock's own past nor another
 * wait implies, and adds to the clock what they know. */
static void prune(struct msccl_build *b, int32_t *mine)
{
	size_t n = b->p->gpus[b->rank].tbs.n;

	for (size_t t = 0; t < n; t++) {
		if (b->wait[t] <= mine[t]) {
			b->wait[t] = NONE;
		}
	}
	for (size_t t = 0; t < n; t++) {
		const int32_t *other;

		if (b->wait[t] == NONE) {
			continue;
		}
		other = clock_of(b, b->wait[t]);
		for (size_t u = 0; u < n; u++) {
			if (u != t && b->wait[u] <= other[u]) {
				b->wait[u] = NONE;
			}
			if (mine[u] < other[u]) {
				mine[u] = other[u];
			}
		}
	}
}

/* The step of an op, after nops for all its waits but the last. */
static void emit_steps(struct msccl_build *b, int i)
{
	struct msccl_gpu *g = &b->p->gpus[b->rank];
	struct msccl_op *op = &b->ops[i];
	struct msccl_tb *tb = &g->tbs.v[op->tb];
	struct msccl_step nop = {
		.type = MSCCL_NOP, .src_buf = LOWER_IN, .dst_buf = LOWER_OUT,
		.src = NONE, .dst = NONE, .dep_tb = NONE, .dep_step = NONE,
	};
	struct msccl_step step = nop;

	for (size_t t = 0; t < g->tbs.n; t++) {
		if (b->wait[t] == NONE) {
			continue;
		}
		if (step.dep_tb != NONE) {
			nop.dep_tb = step.dep_tb;
			nop.dep_step = step.dep_step;
			vec_push(&tb->steps, nop);
		}
		step.dep_tb = (int32_t)t;
		step.dep_step = b->ops[b->wait[t]].step;
		g->tbs.v[t].steps.v[step.dep_step].has_dep = true;
	}
	step.type = op->type;
	step.src_buf = op->src_buf;
	step.src = op->src;
	step.dst_buf = op->dst_buf;
	step.dst = op->dst;
	step.cnt = op->cnt;
	op->step = (int32_t)tb->steps.n;
	vec_push(&tb->steps, step);
}

static void order_op(struct msccl_build *b, int i)
{
	const struct msccl_op *op = &b->ops[i];
	int32_t *mine = start_clock(b, i);

	if (!op->own) {
		if (msccl_reads(op->type)) {
			read_cells(b, i);
		}
		if (msccl_writes(op->type)) {
			write_cells(b, i);
		}
		prune(b, mine);
	}
	emit_steps(b, i);
}

void msccl_order_ops(struct msccl_build *b)
{
	size_t n = b->p->gpus[b->rank].tbs.n;
	struct arrays arrays = { 0 };

	arrays_add(&arrays, b->wait, n);
	arrays_add(&arrays, b->last, n);
	arrays_add(&arrays, b->clock, n * (size_t)b->n_ops);
	for (size_t t = 0; t < n; t++) {
		b->last[t] = NONE;
	}
	msccl_forget_cells(b);
	for (int i = 0; i < b->n_ops; i++) {
		if (!b->ops[i].fused) {
			order_op(b, i);
		}
	}
	arrays_fini(&arrays);
}
