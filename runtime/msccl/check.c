/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static rules of programs, and which step meets which.
 *
 * First what the runtime checks or silently assumes: sizes, offsets, counts,
 * dependencies, peers, channels. Then the threadblocks are joined: (sender,
 * receiver, channel) may occur once on each side, and the k-th send of one meets
 * the k-th receive of the other, with as many chunks. On what that gives,
 * interpret.c runs the program, and races.c searches for unordered accesses.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "runtime/msccl/private.h"

struct msccl_at {
	char text[64];
};

static struct msccl_at at(int rank, int tb, int step)
{
	struct msccl_at a;

	snprintf(a.text, sizeof(a.text), "rank %d threadblock %d step %d", rank, tb, step);
	return a;
}

static int limit(struct err *err, const struct msccl_limits *lim, int rank,
		 const char *what, long long have, long long most)
{
	err_set(err, WEFT_ELIMIT, "rank %d: %s: %lld, %s takes %lld", rank,
		what, have, lim->runtime, most);
	err_hint(err, "fits: %s up to %lld", what, most);
	return WEFT_ELIMIT;
}

/* ---- one step ---- */

static bool inside(const struct msccl_gpu *g, int buf, int64_t off, int cnt)
{
	return buf <= LOWER_SCRATCH && off >= 0 && off + cnt <= g->chunks[buf];
}

static const char *step_fault(const struct msccl_gpu *g, const struct msccl_tb *tb,
			      const struct msccl_step *s)
{
	if (s->type >= MSCCL_TYPES) {
		return "unknown type";
	}
	if (msccl_receives(s->type) && tb->recv < 0) {
		return "receives without a receive peer";
	}
	if (msccl_sends(s->type) && tb->send < 0) {
		return "sends without a send peer";
	}
	if (s->type == MSCCL_NOP) {
		return s->cnt < 0 || s->cnt > MSCCL_MAX_COUNT
			       ? "count is not in 0..71"
		       : s->has_dep ? "a nop raises no flag to wait for"
				    : NULL;
	}
	if (s->cnt < 1 || s->cnt > MSCCL_MAX_COUNT) {
		return "count is not in 1..71";
	}
	if (msccl_reads(s->type) && !inside(g, s->src_buf, s->src, s->cnt)) {
		return "reads outside the buffer";
	}
	if (msccl_writes(s->type) && !inside(g, s->dst_buf, s->dst, s->cnt)) {
		return "writes outside the buffer";
	}
	return NULL;
}

static const char *dep_fault(const struct msccl_gpu *g, int tb, const struct msccl_step *s,
			     bool early_flags)
{
	const struct msccl_step *d;

	if (s->dep_tb < 0) {
		return s->dep_tb < -1 ? "dependency below -1" : NULL;
	}
	if (s->dep_tb > MSCCL_MAX_DEP_TB) {
		return "waits for a threadblock above 127";
	}
	if ((size_t)s->dep_tb >= g->tbs.n || s->dep_step < 0 ||
	    (size_t)s->dep_step >= g->tbs.v[s->dep_tb].steps.n) {
		return "waits for a step that does not exist";
	}
	d = &g->tbs.v[s->dep_tb].steps.v[s->dep_step];
	if (s->dep_tb == tb) {
		return "waits for its own threadblock";
	}
	if (d->type == MSCCL_NOP) {
		return "waits for a nop, which raises no flag";
	}
	if (early_flags && d->type == MSCCL_SEND) {
		return "waits for a send of LL, whose flag RCCL raises before all threads have "
		       "read";
	}
	return d->has_dep ? NULL : "waits for a step without hasdep";
}

/* Chains of `re` that the runtime fuses: the rule for the one at k. */
static const char *chain_fault(const struct msccl_tb *tb, size_t k, int *chain)
{
	const struct msccl_step *s = &tb->steps.v[k];
	const struct msccl_step *p = k > 0 ? s - 1 : NULL;

	if (s->type != MSCCL_REDUCE || !p || p->type != MSCCL_REDUCE || p->dst != s->dst ||
	    p->dst_buf != s->dst_buf || p->src_buf != s->src_buf || s->dep_tb >= 0 || p->has_dep) {
		*chain = s->type == MSCCL_REDUCE;
		return NULL;
	}
	if (p->cnt != s->cnt) {
		return "a chain of re with unequal counts";
	}
	return ++*chain > MSCCL_MAX_REDUCES ? "a chain of more than 16 re"
					    : NULL;
}

static int check_steps(const struct msccl_gpu *g, int rank, int t, bool early_flags,
		       struct err *err)
{
	const struct msccl_tb *tb = &g->tbs.v[t];
	int chain = 0;

	for (size_t k = 0; k < tb->steps.n; k++) {
		const struct msccl_step *s = &tb->steps.v[k];
		const char *fault = step_fault(g, tb, s);

		fault = fault ? fault : dep_fault(g, t, s, early_flags);
		fault = fault ? fault : chain_fault(tb, k, &chain);
		if (!fault && k > 0 && s[-1].type == MSCCL_NOP && s->dep_tb < 0) {
			fault = "follows a nop and waits for nothing";
		}
		if (fault) {
			return err_set(err, WEFT_EVERIFY, "%s: %s",
				       at(rank, t, (int)k).text, fault);
		}
	}
	return 0;
}

/* ---- one rank ---- */

static int check_sizes(const struct msccl *p, int rank,
		       const struct msccl_limits *lim, struct err *err)
{
	const struct msccl_gpu *g = &p->gpus[rank];
	int64_t elements = 1 + (int64_t)p->ranks + (int64_t)g->tbs.n;

	if (g->tbs.n > (size_t)lim->tbs) {
		return limit(err, lim, rank, "threadblocks", (long long)g->tbs.n, lim->tbs);
	}
	for (size_t t = 0; t < g->tbs.n; t++) {
		size_t n = g->tbs.v[t].steps.n;

		if (n > (size_t)lim->steps) {
			return limit(err, lim, rank, "steps of a threadblock",
				     (long long)n, lim->steps);
		}
		elements += (int64_t)n;
	}
	return elements > MSCCL_MAX_ELEMENTS
		       ? lower_elements_error(rank, elements, p->ranks, MSCCL_MAX_ELEMENTS, err)
		       : 0;
}

static int check_tb(const struct msccl *p, int rank, int t, bool early_flags, struct err *err)
{
	const struct msccl_tb *tb = &p->gpus[rank].tbs.v[t];
	const char *fault = NULL;

	if (tb->send < -1 || tb->recv < -1 || tb->send >= p->ranks || tb->recv >= p->ranks) {
		fault = "a peer that does not exist";
	} else if (tb->send == rank || tb->recv == rank) {
		fault = "a rank is its own peer";
	} else if (tb->chan < 0 || tb->chan >= p->channels) {
		fault = "a channel that does not exist";
	}
	return fault ? err_set(err, WEFT_EVERIFY, "rank %d threadblock %d: %s", rank, t, fault)
		     : check_steps(&p->gpus[rank], rank, t, early_flags, err);
}

/* Sending and receiving threadblocks of each channel. */
static int check_channels(const struct msccl *p, int rank,
			  const struct msccl_limits *lim, struct err *err)
{
	const struct msccl_gpu *g = &p->gpus[rank];
	int *n = x_new((size_t)p->channels * 2, sizeof(*n)), rc = 0;

	for (size_t t = 0; t < g->tbs.n && !rc; t++) {
		const struct msccl_tb *tb = &g->tbs.v[t];
		int out = tb->send >= 0 ? ++n[2 * tb->chan] : 0;
		int in = tb->recv >= 0 ? ++n[2 * tb->chan + 1] : 0;

		if (out > MSCCL_MAX_PEERS || in > MSCCL_MAX_PEERS) {
			rc = limit(err, lim, rank,
				   out > in ? "send peers of a channel"
					    : "receive peers of a channel",
				   out > in ? out : in, MSCCL_MAX_PEERS);
		}
	}
	free(n);
	return rc;
}

static int check_rank(const struct msccl *p, int rank, const struct msccl_limits *lim,
		      bool early_flags, struct err *err)
{
	const struct msccl_gpu *g = &p->gpus[rank];
	int32_t shard = p->loop / p->ranks, *n = p->gpus[rank].chunks;
	bool gather = p->kind == COLL_ALLGATHER;
	bool scatter = p->kind == COLL_REDUCE_SCATTER;
	int rc = check_sizes(p, rank, lim, err);

	for (int b = 0; b < 3 && !rc; b++) {
		if (n[b] > MSCCL_MAX_CHUNKS) {
			rc = limit(err, lim, rank, "chunks of a buffer", n[b], MSCCL_MAX_CHUNKS);
		}
	}
	if (!rc && (n[LOWER_IN] != (gather ? shard : p->loop) ||
		    n[LOWER_OUT] != (scatter ? shard : p->loop) ||
		    n[LOWER_SCRATCH] < 0)) {
		rc = err_set(err, WEFT_EVERIFY,
			     "rank %d: buffers of %d, %d and %d chunks do not "
			     "fit a vector of %d", rank, n[0], n[1], n[2],
			     p->loop);
	}
	for (size_t t = 0; t < g->tbs.n && !rc; t++) {
		rc = check_tb(p, rank, (int)t, early_flags, err);
	}
	if (rc) {
		return rc;
	}
	return check_channels(p, rank, lim, err);
}

static int check_head(const struct msccl *p, const struct msccl_limits *lim, struct err *err)
{
	if (p->ranks < 2 || p->ranks > MSCCL_MAX_RANKS) {
		err_set(err, WEFT_ELIMIT, "%d ranks, %s takes 2 to %d",
			p->ranks, lim->runtime, MSCCL_MAX_RANKS);
		err_hint(err, "fits: N up to %d", MSCCL_MAX_RANKS);
		return WEFT_ELIMIT;
	}
	if (p->channels < 1 || p->channels > lim->channels) {
		return limit(err, lim, 0, "channels", p->channels, lim->channels);
	}
	if (p->loop < 1 || (!lower_is_whole(p->kind) && p->loop % p->ranks)) {
		return err_set(err, WEFT_EVERIFY,
			       "a vector of %d chunks is not %d equal shards",
			       p->loop, p->ranks);
	}
	if (p->kind == COLL_ALLTOALL && p->inplace) {
		return err_set(err, WEFT_EVERIFY, "all-to-all cannot be done in place");
	}
	return p->inplace || p->outofplace
		       ? 0 : err_set(err, WEFT_EVERIFY,
				     "serves neither calls in place nor out "
				     "of place");
}

static int check_cells(const struct msccl *p, struct err *err)
{
	int64_t cells = 0;

	for (int r = 0; r < p->ranks; r++) {
		cells += msccl_cells(p, r);
	}
	if (cells > LOWER_MAX_CELLS) {
		err_set(err, WEFT_ELIMIT, "%lld chunks in the buffers of all ranks",
			(long long)cells);
		err_hint(err, "fits: %d chunks", LOWER_MAX_CELLS);
		return WEFT_ELIMIT;
	}
	return 0;
}

/* ---- connections ---- */

static uint64_t key_of(int from, int to, int chan)
{
	return ((uint64_t)from << 40) | ((uint64_t)to << 20) | (uint64_t)chan;
}

/* Notes the threadblock under its connection; only one may be there. */
static int claim(struct u64map *map, uint64_t key, int tb, int rank, int t,
		 const char *what, struct err *err)
{
	if (u64map_get(map, key, NULL)) {
		return err_set(err, WEFT_EVERIFY,
			       "rank %d threadblock %d: a second threadblock "
			       "%s this peer on this channel", rank, t, what);
	}
	u64map_set(map, key, (uint64_t)tb);
	return 0;
}

static int number_tbs(struct msccl_proof *c, struct u64map *to, struct err *err)
{
	const struct msccl *p = c->p;
	int n = 0, rc = 0;

	for (int r = 0; r < p->ranks && !rc; r++) {
		c->base[r] = n;
		for (size_t t = 0; t < p->gpus[r].tbs.n && !rc; t++, n++) {
			const struct msccl_tb *tb = &p->gpus[r].tbs.v[t];

			c->tbs[n] = (struct msccl_proof_tb){
				.tb = tb, .rank = r, .id = (int)t,
				.from = -1, .to = -1,
				.first_op = c->n_ops };
			c->n_ops += (int64_t)tb->steps.n;
			if (tb->recv >= 0) {
				rc = claim(to, key_of(tb->recv, r, tb->chan),
					   n, r, (int)t, "receives from", err);
			}
		}
	}
	c->base[p->ranks] = n;
	return rc;
}

/* The next step from k on that sends (or receives); steps.n when none. */
static size_t next_of(const struct msccl_tb *tb, size_t k, bool sends)
{
	while (k < tb->steps.n && !(sends ? msccl_sends(tb->steps.v[k].type)
					  : msccl_receives(tb->steps.v[k].type))) {
		k++;
	}
	return k;
}

/* The k-th send meets the k-th receive, with as many chunks. */
static int match_steps(struct msccl_proof *c, int from, int to, struct err *err)
{
	const struct msccl_proof_tb *s = &c->tbs[from];
	const struct msccl_proof_tb *r = to >= 0 ? &c->tbs[to] : NULL;
	size_t i = next_of(s->tb, 0, true);
	size_t j = r ? next_of(r->tb, 0, false) : 0;

	while (i < s->tb->steps.n && r && j < r->tb->steps.n) {
		if (s->tb->steps.v[i].cnt != r->tb->steps.v[j].cnt) {
			return err_set(err, WEFT_EVERIFY,
				       "%s sends %d chunks, rank %d receives "
				       "%d", at(s->rank, s->id, (int)i).text,
				       s->tb->steps.v[i].cnt, r->rank,
				       r->tb->steps.v[j].cnt);
		}
		c->sent_by[r->first_op + (int64_t)j] = s->first_op + (int64_t)i;
		i = next_of(s->tb, i + 1, true);
		j = next_of(r->tb, j + 1, false);
	}
	if (i < s->tb->steps.n) {
		return err_set(err, WEFT_EVERIFY, "%s: no matching receive",
			       at(s->rank, s->id, (int)i).text);
	}
	return r && j < r->tb->steps.n
		       ? err_set(err, WEFT_EVERIFY, "%s: no matching send",
				 at(r->rank, r->id, (int)j).text)
		       : 0;
}

static int join_tbs(struct msccl_proof *c, struct u64map *to, struct err *err)
{
	struct u64map from = { 0 };
	int rc = 0;

	for (int n = 0; n < c->base[c->p->ranks] && !rc; n++) {
		struct msccl_proof_tb *s = &c->tbs[n];
		uint64_t key, other;

		if (s->tb->send < 0) {
			continue;
		}
		key = key_of(s->rank, s->tb->send, s->tb->chan);
		rc = claim(&from, key, n, s->rank, s->id, "sends to", err);
		if (u64map_get(to, key, &other)) {
			s->to = (int)other;
			c->tbs[other].from = n;
		}
		if (!rc) {
			rc = match_steps(c, n, s->to, err);
		}
	}
	for (int n = 0; n < c->base[c->p->ranks] && !rc; n++) {
		const struct msccl_proof_tb *r = &c->tbs[n];
		size_t k = next_of(r->tb, 0, false);

		if (r->from < 0 && k < r->tb->steps.n) {
			rc = err_set(err, WEFT_EVERIFY, "%s: no matching send",
				     at(r->rank, r->id, (int)k).text);
		}
	}
	u64map_fini(&from);
	return rc;
}

static int check_open(struct msccl_proof *c, struct err *err)
{
	struct u64map to = { 0 };
	size_t tbs = 0, ops = 0;
	int rc;

	for (int r = 0; r < c->p->ranks; r++) {
		const struct msccl_gpu *g = &c->p->gpus[r];

		tbs += g->tbs.n;
		for (size_t t = 0; t < g->tbs.n; t++) {
			ops += g->tbs.v[t].steps.n;
		}
	}
	arrays_add(&c->arrays, c->base, c->p->ranks + 1);
	arrays_add(&c->arrays, c->tbs, tbs);
	arrays_add(&c->arrays, c->sent_by, ops);
	arrays_add(&c->arrays, c->order, ops);
	for (size_t i = 0; i < ops; i++) {
		c->sent_by[i] = -1;
	}
	rc = number_tbs(c, &to, err);
	if (!rc) {
		rc = join_tbs(c, &to, err);
	}
	u64map_fini(&to);
	return rc;
}

static int open_proof(const struct msccl *p, struct msccl_proof *c, enum msccl_dialect dialect,
		      struct err *err)
{
	const struct msccl_limits *lim = msccl_limits(dialect);
	int rc = check_head(p, lim, err);

	*c = (struct msccl_proof){ .p = p, .early_flags = msccl_early_flags(dialect, p->proto) };
	for (int r = 0; r < p->ranks && !rc; r++) {
		rc = check_rank(p, r, lim, c->early_flags, err);
	}
	if (!rc) {
		rc = check_cells(p, err);
	}
	return rc ? rc : check_open(c, err);
}

/* The most chunks of a step. */
static int largest_count(const struct msccl_proof *c)
{
	int most = 1;

	for (int n = 0; n < c->base[c->p->ranks]; n++) {
		for (size_t k = 0; k < c->tbs[n].tb->steps.n; k++) {
			int cnt = c->tbs[n].tb->steps.v[k].cnt;

			most = cnt > most ? cnt : most;
		}
	}
	return most;
}

/* Runs at all splits that calls of the program's sizes have: one chunk a
 * piece stands for all, see interpret.c. Those from the largest step on are
 * alike. */
static int run_splits(struct msccl_proof *c, enum msccl_dialect dialect, bool inplace,
		      struct err *err)
{
	int least = c->p->max_bytes ? msccl_split(c->p, dialect, c->p->max_bytes) : 1;
	int most = least == 1 ? 1 : largest_count(c), rc = 0;

	for (int m = least < most ? least : most; m <= most && !rc; m++) {
		rc = msccl_check_run(c, m, inplace, err);
	}
	return rc;
}

int msccl_check(const struct msccl *p, enum msccl_dialect dialect, struct err *err)
{
	struct msccl_proof c;
	int rc = open_proof(p, &c, dialect, err);

	for (int place = 0; place < 2 && !rc; place++) {
		if (place ? p->inplace : p->outofplace) {
			if ((rc = run_splits(&c, dialect, place, err)) ||
			    (rc = msccl_check_races(&c, place, err))) {
				err_wrap(err, "called %s", place ? "in place" : "out of place");
			}
		}
	}
	arrays_fini(&c.arrays);
	return rc;
}

int msccl_least_split(const struct msccl *p, enum msccl_dialect dialect, int *out,
		      struct err *err)
{
	struct msccl_proof c;
	struct err why = { 0 };
	int rc = open_proof(p, &c, dialect, err), m = 0;

	if (!rc) {
		m = largest_count(&c);
		rc = msccl_check_run(&c, m, !p->outofplace, err);
	}
	/* What connections let happen does not depend on the buffers. */
	while (!rc && m > 1 && msccl_check_run(&c, m - 1, !p->outofplace, &why) == 0) {
		m--;
	}
	*out = m;
	arrays_fini(&c.arrays);
	return rc;
}
