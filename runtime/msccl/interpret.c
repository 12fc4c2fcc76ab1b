/*
 * Runs a program on numbers: deadlock and result; see msccl.h.
 *
 * Every chunk holds a random 64-bit number that shows who contributed it;
 * sums add up modulo 2^64. A connection holds MSCCL_IN_FLIGHT sends, and a
 * step that receives and sends on takes place only when it can do both.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/rng.h"
#include "runtime/msccl/private.h"

struct msccl_queue {
	uint32_t sent, taken;
	uint64_t v[MSCCL_IN_FLIGHT][MSCCL_MAX_COUNT];
};

struct msccl_run {
	const struct msccl_proof *c;
	const struct msccl *p;
	bool inplace;
	int64_t *start;		/* by rank: its first cell */
	uint64_t *cells;
	uint32_t *pc;		/* by threadblock: the next step */
	struct msccl_queue *queues;	/* by sending threadblock */
	int64_t done;		/* steps so far; the length of the order */
};

static uint64_t *cell(const struct msccl_run *r, int rank, int buf, int64_t off)
{
	return &r->cells[r->start[rank] + msccl_cell(r->p, rank, buf, (int)off, r->inplace)];
}

/* ---- before and after ---- */

static void fill(struct msccl_run *r)
{
	for (int u = 0; u < r->p->ranks; u++) {
		int32_t n = r->p->gpus[u].chunks[LOWER_IN];

		/* What no one wrote is in no sum that is expected. */
		for (int64_t k = r->start[u]; k < r->start[u + 1]; k++) {
			r->cells[k] = rng_mix(~(uint64_t)k);
		}
		if (r->p->kind == COLL_BROADCAST && u != r->p->root) {
			continue;
		}
		for (int32_t k = 0; k < n; k++) {
			*cell(r, u, LOWER_IN, k) = lower_token(u, k);
		}
	}
}

static uint64_t expected(const struct msccl_run *r, int rank, int64_t k)
{
	return lower_expected(r->p->kind, r->p->ranks, r->p->loop, r->p->root, rank, k);
}

static int compare(const struct msccl_run *r, struct err *err)
{
	for (int u = 0; u < r->p->ranks; u++) {
		const int32_t *n = r->p->gpus[u].chunks;

		for (int32_t k = 0; k < n[LOWER_OUT]; k++) {
			if (*cell(r, u, LOWER_OUT, k) != expected(r, u, k)) {
				return err_set(err, WEFT_EVERIFY,
					       "rank %d ends with a wrong "
					       "chunk %d of its output", u, k);
			}
		}
		for (int32_t k = 0; k < n[LOWER_IN] && !r->inplace &&
		     (r->p->kind != COLL_BROADCAST || u == r->p->root); k++) {
			if (*cell(r, u, LOWER_IN, k) != lower_token(u, k)) {
				return err_set(err, WEFT_EVERIFY,
					       "rank %d ends with its input "
					       "changed at chunk %d", u, k);
			}
		}
	}
	return 0;
}

/* ---- steps ---- */

static bool ready(const struct msccl_run *r, int n, const struct msccl_step *s)
{
	const struct msccl_proof_tb *t = &r->c->tbs[n];
	const struct msccl_queue *q;

	if (s->dep_tb >= 0 && r->pc[r->c->base[t->rank] + s->dep_tb] <= (uint32_t)s->dep_step) {
		return false;
	}
	q = msccl_receives(s->type) ? &r->queues[t->from] : NULL;
	if (q && q->sent == q->taken) {
		return false;
	}
	q = msccl_sends(s->type) ? &r->queues[n] : NULL;
	return !q || q->sent - q->taken < MSCCL_IN_FLIGHT;
}

static void execute(struct msccl_run *r, int n, const struct msccl_step *s)
{
	const struct msccl_proof_tb *t = &r->c->tbs[n];
	uint64_t v[MSCCL_MAX_COUNT] = { 0 };

	if (msccl_receives(s->type)) {
		struct msccl_queue *q = &r->queues[t->from];

		memcpy(v, q->v[q->taken++ % MSCCL_IN_FLIGHT], sizeof(v));
	}
	for (int32_t k = 0; k < s->cnt && msccl_reads(s->type); k++) {
		v[k] += *cell(r, t->rank, s->src_buf, s->src + k);
	}
	for (int32_t k = 0; k < s->cnt && s->type == MSCCL_REDUCE; k++) {
		v[k] += *cell(r, t->rank, s->dst_buf, s->dst + k);
	}
	for (int32_t k = 0; k < s->cnt && msccl_writes(s->type); k++) {
		*cell(r, t->rank, s->dst_buf, s->dst + k) = v[k];
	}
	if (msccl_sends(s->type)) {
		struct msccl_queue *q = &r->queues[n];

		memcpy(q->v[q->sent++ % MSCCL_IN_FLIGHT], v, sizeof(v));
	}
}

static int stuck(const struct msccl_run *r, struct err *err)
{
	int n = 0;

	while (r->pc[n] == r->c->tbs[n].tb->steps.n) {
		n++;
	}
	return err_set(err, WEFT_EVERIFY,
		       "deadlock: rank %d threadblock %d waits forever in "
		       "step %u, with %d sends in flight a connection",
		       r->c->tbs[n].rank, r->c->tbs[n].id, r->pc[n],
		       MSCCL_IN_FLIGHT);
}

/* Sweeps over the threadblocks, each as far as it gets. What can ever run
 * does not depend on the order, as a step once ready stays so. */
static int run_all(struct msccl_run *r, struct err *err)
{
	int tbs = r->c->base[r->p->ranks];
	int64_t before;

	do {
		before = r->done;
		for (int n = 0; n < tbs; n++) {
			const struct msccl_tb *tb = r->c->tbs[n].tb;

			while (r->pc[n] < tb->steps.n && ready(r, n, &tb->steps.v[r->pc[n]])) {
				execute(r, n, &tb->steps.v[r->pc[n]]);
				r->c->order[r->done++] = (struct msccl_proof_op){
					n, (int32_t)r->pc[n]++ };
			}
		}
	} while (r->done > before);
	return r->done < r->c->n_ops ? stuck(r, err) : 0;
}

int msccl_check_run(struct msccl_proof *c, bool inplace, struct err *err)
{
	struct msccl_run r = { .c = c, .p = c->p, .inplace = inplace };
	struct arrays arrays = { 0 };
	int ranks = c->p->ranks, tbs = c->base[ranks], rc;

	arrays_add(&arrays, r.start, ranks + 1);
	arrays_add(&arrays, r.pc, tbs);
	arrays_add(&arrays, r.queues, tbs);
	for (int u = 0; u < ranks && r.start; u++) {
		r.start[u + 1] = r.start[u] + msccl_cells(c->p, u);
	}
	arrays_add(&arrays, r.cells, r.start ? r.start[ranks] : 0);
	if (arrays.failed) {
		rc = err_nomem(err);
		goto out;
	}
	fill(&r);
	rc = run_all(&r, err);
	if (!rc) {
		rc = compare(&r, err);
	}
out:
	arrays_fini(&arrays);
	return rc;
}
