/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the text of an execution plan on bytes, as MSCCL++ might: it shares no
 * code with the room but the JSON parser. Between two nops the operations of
 * a threadblock take place in any order, as its threads do. Puts and signals
 * of a channel wait in a queue, and a proxy gets to them when it likes, so a
 * source is read late. The plan runs several times; every rank begins its
 * next run as soon as it has ended one, with other data, however far the
 * others are. Include after cmocka.h.
 */
#ifndef WEFT_TESTS_UNIT_MSCCLPP_MSCCLPP_SIM_H
#define WEFT_TESTS_UNIT_MSCCLPP_MSCCLPP_SIM_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"

#define PSIM_OPS 64
#define PSIM_QUEUE 256

/* What a thread handed to the proxy of a channel. */
struct psim_trigger {
	bool signals;
	const uint8_t *from;
	uint8_t *to;
	size_t bytes;
};

struct psim_end {
	int rank, peer, other;		/* other: number of the other end */
	int arrived, expected;		/* signals from the other end */
	struct psim_trigger queue[PSIM_QUEUE];
	int first, n;
};

struct psim_tb {
	json_t *ops;
	int chans[16], bufs[16];
	int rank, n, pc;	/* pc: the first op after the last nop */
	bool done[PSIM_OPS];
	bool asked[PSIM_OPS];	/* waits and acquires: have their number */
	int number[PSIM_OPS][16];
};

struct psim_rank {
	uint8_t *mem[3];
	int chunks[3], first_end, n_ends, first_tb, n_tbs, n_sems, run;
	int released[256], acquired[256];
	json_t *gpu;
};

struct psim {
	json_t *root;
	const char *coll;
	bool inplace;
	int n, loop, n_tbs, n_ends, root_rank, bytes;
	struct psim_rank *ranks;
	struct psim_tb *tbs;
	struct psim_end *ends;
	struct rng rng;
};

static inline int psim_int(const json_t *o, const char *key)
{
	return (int)json_integer_value(json_object_get(o, key));
}

static inline bool psim_is(const struct psim *s, const char *coll)
{
	return strcmp(s->coll, coll) == 0;
}

static inline int psim_list(const json_t *obj, const char *key,
			    const char *ids, int *out)
{
	json_t *v = json_object_get(json_array_get(json_object_get(obj, key),
						   0), ids);

	for (size_t i = 0; i < json_array_size(v); i++) {
		out[i] = (int)json_integer_value(json_array_get(v, i));
	}
	return (int)json_array_size(v);
}

static inline void psim_threadblocks(struct psim *s, int r)
{
	json_t *all = json_object_get(s->ranks[r].gpu, "threadblocks");

	s->ranks[r].first_tb = s->n_tbs;
	s->ranks[r].n_tbs = (int)json_array_size(all);
	s->tbs = realloc(s->tbs, ((size_t)(s->n_tbs + s->ranks[r].n_tbs) + 1) *
					 sizeof(*s->tbs));
	for (int i = 0; i < s->ranks[r].n_tbs; i++) {
		struct psim_tb *t = &s->tbs[s->n_tbs++];
		json_t *tb = json_array_get(all, (size_t)i);

		memset(t, 0, sizeof(*t));
		t->rank = r;
		t->ops = json_object_get(tb, "ops");
		t->n = (int)json_array_size(t->ops);
		assert_in_range(t->n, 0, PSIM_OPS);
		psim_list(tb, "channels", "channel_ids", t->chans);
		psim_list(tb, "remote_buffer_refs", "remote_buffer_ids",
			  t->bufs);
	}
}

static inline void psim_channels(struct psim *s, int r)
{
	struct psim_rank *k = &s->ranks[r];
	json_t *to = json_object_get(json_array_get(
		json_object_get(k->gpu, "channels"), 0), "connected_to");

	k->first_end = s->n_ends;
	k->n_ends = (int)json_array_size(to);
	s->ends = realloc(s->ends, ((size_t)(s->n_ends + k->n_ends) + 1) *
					   sizeof(*s->ends));
	for (int i = 0; i < k->n_ends; i++) {
		struct psim_end *e = &s->ends[s->n_ends++];

		memset(e, 0, sizeof(*e));
		e->rank = r;
		e->peer = (int)json_integer_value(json_array_get(to,
								 (size_t)i));
		e->other = -1;
	}
}

/* The k-th channel to a rank meets that rank's k-th back. */
static inline void psim_connect(struct psim *s)
{
	for (int a = 0; a < s->n_ends; a++) {
		for (int b = 0; b < s->n_ends && s->ends[a].other < 0; b++) {
			if (s->ends[b].rank == s->ends[a].peer &&
			    s->ends[b].peer == s->ends[a].rank &&
			    s->ends[b].other < 0) {
				s->ends[a].other = b;
				s->ends[b].other = a;
			}
		}
		assert_true(s->ends[a].other >= 0);
	}
}

static inline void psim_read(struct psim *s, const char *text)
{
	json_t *gpus;

	memset(s, 0, sizeof(*s));
	s->root = json_loads(text, 0, NULL);
	assert_non_null(s->root);
	s->coll = json_string_value(json_object_get(s->root, "collective"));
	s->inplace = json_is_true(json_object_get(s->root, "inplace"));
	s->root_rank = psim_int(s->root, "root");
	gpus = json_object_get(s->root, "gpus");
	s->n = (int)json_array_size(gpus);
	s->ranks = calloc((size_t)s->n, sizeof(*s->ranks));
	s->bytes = 2;
	for (int r = 0; r < s->n; r++) {
		struct psim_rank *k = &s->ranks[r];

		k->gpu = json_array_get(gpus, (size_t)r);
		k->chunks[0] = psim_int(k->gpu, "input_chunks");
		k->chunks[1] = psim_int(k->gpu, "output_chunks");
		k->chunks[2] = psim_int(k->gpu, "scratch_chunks");
		k->n_sems = (int)json_array_size(json_object_get(k->gpu,
							 "semaphores"));
		assert_in_range(k->n_sems, 0, 256);
		psim_threadblocks(s, r);
		psim_channels(s, r);
	}
	s->loop = s->ranks[0].chunks[psim_is(s, "allgather") ? 1 : 0];
	psim_connect(s);
}

static inline void psim_free(struct psim *s)
{
	bool scatter = psim_is(s, "reducescatter");

	for (int r = 0; r < s->n; r++) {
		for (int b = 0; b < 3; b++) {
			if (!s->inplace || b != (scatter ? 1 : 0)) {
				free(s->ranks[r].mem[b]);
			}
		}
	}
	json_decref(s->root);
	free(s->ranks);
	free(s->tbs);
	free(s->ends);
}

/* ---- data ---- */

static inline uint8_t psim_byte(int run, int rank, int k, int j)
{
	return (uint8_t)(rng_mix(((uint64_t)run << 50) +
				 (uint64_t)rank * 1000003 +
				 (uint64_t)k * 17 + (uint64_t)j) >> 24);
}

static inline uint8_t psim_expected(const struct psim *s, int run, int rank,
				    int k, int j)
{
	int shard = s->loop / s->n;
	uint8_t sum = 0;

	if (psim_is(s, "allgather")) {
		return psim_byte(run, k / shard, k % shard, j);
	}
	if (psim_is(s, "alltoall")) {
		return psim_byte(run, k / shard, rank * shard + k % shard, j);
	}
	if (psim_is(s, "broadcast")) {
		return psim_byte(run, s->root_rank, k, j);
	}
	if (psim_is(s, "reducescatter")) {
		k += rank * shard;
	}
	for (int r = 0; r < s->n; r++) {
		sum = (uint8_t)(sum + psim_byte(run, r, k, j));
	}
	return sum;
}

static inline void psim_memory(struct psim *s, int r)
{
	struct psim_rank *k = &s->ranks[r];
	int shard = s->loop / s->n;

	for (int b = 0; b < 3; b++) {
		k->mem[b] = malloc((size_t)(k->chunks[b] * s->bytes) + 1);
	}
	if (s->inplace && psim_is(s, "reducescatter")) {
		free(k->mem[1]);
		k->mem[1] = k->mem[0] + r * shard * s->bytes;
	} else if (s->inplace) {
		free(k->mem[0]);
		k->mem[0] = k->mem[1] +
			    (psim_is(s, "allgather") ? r * shard * s->bytes
						     : 0);
	}
}

/* A rank is called: garbage everywhere but in its input. */
static inline void psim_call(struct psim *s, int r)
{
	struct psim_rank *k = &s->ranks[r];

	for (int b = 2; b >= 0; b--) {
		memset(k->mem[b], 0xa5, (size_t)(k->chunks[b] * s->bytes));
	}
	for (int c = 0; c < k->chunks[0] &&
	     (!psim_is(s, "broadcast") || r == s->root_rank); c++) {
		for (int j = 0; j < s->bytes; j++) {
			k->mem[0][c * s->bytes + j] =
				psim_byte(k->run, r, c, j);
		}
	}
	for (int i = k->first_tb; i < k->first_tb + k->n_tbs; i++) {
		s->tbs[i].pc = 0;
		memset(s->tbs[i].done, 0, sizeof(s->tbs[i].done));
		memset(s->tbs[i].asked, 0, sizeof(s->tbs[i].asked));
	}
}

static inline bool psim_right(struct psim *s, int r)
{
	struct psim_rank *k = &s->ranks[r];

	for (int i = 0; i < k->chunks[1] * s->bytes; i++) {
		if (k->mem[1][i] != psim_expected(s, k->run, r, i / s->bytes,
						  i % s->bytes)) {
			return false;
		}
	}
	for (int i = 0; i < k->chunks[0] * s->bytes && !s->inplace &&
	     (!psim_is(s, "broadcast") || r == s->root_rank); i++) {
		if (k->mem[0][i] != psim_byte(k->run, r, i / s->bytes,
					      i % s->bytes)) {
			return false;
		}
	}
	return true;
}

/* ---- operations ---- */

/* The bytes of a buffer reference; rank: of a remote one. */
static inline uint8_t *psim_at(struct psim *s, const struct psim_tb *t,
			       const json_t *ref, size_t *bytes)
{
	const char *type = json_string_value(json_object_get(ref, "type"));
	int rank = t->rank, index = psim_int(ref, "index"), b;
	int size = psim_int(ref, "size");

	if (!type) {
		json_t *all = json_object_get(s->ranks[rank].gpu,
					      "remote_buffers");
		json_t *far = json_array_get(all, (size_t)t->bufs[
			psim_int(ref, "buffer_id")]);

		type = json_string_value(json_object_get(far, "type"));
		rank = psim_int(far, "rank");
	}
	b = type[0] == 'i' ? 0 : type[0] == 'o' ? 1 : 2;
	assert_true(index >= 0 && size > 0 &&
		    index + size <= s->ranks[rank].chunks[b]);
	*bytes = (size_t)(size * s->bytes);
	return s->ranks[rank].mem[b] + index * s->bytes;
}

static inline void psim_push(struct psim_end *e, struct psim_trigger x)
{
	assert_in_range(e->n, 0, PSIM_QUEUE - 1);
	e->queue[(e->first + e->n++) % PSIM_QUEUE] = x;
}

/* One turn of the proxy of a channel. */
static inline void psim_proxy(struct psim *s, struct psim_end *e)
{
	struct psim_trigger *x = &e->queue[e->first];

	if (e->n == 0) {
		return;
	}
	if (x->bytes > 0) {
		memmove(x->to, x->from, x->bytes);
	}
	s->ends[e->other].arrived += x->signals;
	e->first = (e->first + 1) % PSIM_QUEUE;
	e->n--;
}

static inline void psim_put(struct psim *s, struct psim_tb *t,
			    const json_t *op, size_t i, struct psim_end *e,
			    bool signals)
{
	struct psim_trigger x = { .signals = signals };
	size_t n;

	x.from = psim_at(s, t, json_array_get(json_object_get(op, "src_buff"),
					      i), &x.bytes);
	x.to = psim_at(s, t, json_array_get(json_object_get(op, "dst_buff"),
					    i), &n);
	assert_int_equal(n, x.bytes);
	psim_push(e, x);
}

static inline void psim_local(struct psim *s, struct psim_tb *t,
			      const json_t *op)
{
	json_t *src = json_object_get(op, "src_buff");
	size_t n, bytes;
	uint8_t *to = psim_at(s, t, json_array_get(json_object_get(op,
						   "dst_buff"), 0), &bytes);

	for (size_t j = 0; j < bytes; j++) {
		uint8_t sum = 0;

		for (size_t i = 0; i < json_array_size(src); i++) {
			sum = (uint8_t)(sum + psim_at(s, t,
				json_array_get(src, i), &n)[j]);
			assert_int_equal(n, bytes);
		}
		to[j] = sum;
	}
}

static inline const char *psim_name(const struct psim_tb *t, int k)
{
	return json_string_value(json_object_get(
		json_array_get(t->ops, (size_t)k), "name"));
}

/* Every thread takes its number once, and then waits for its turn. */
static inline bool psim_wait(struct psim *s, struct psim_tb *t, int k,
			     const json_t *ids, bool sem)
{
	struct psim_rank *r = &s->ranks[t->rank];
	bool met = true;

	for (size_t i = 0; i < json_array_size(ids); i++) {
		int id = (int)json_integer_value(json_array_get(ids, i));
		struct psim_end *e = sem ? NULL
			: &s->ends[r->first_end + t->chans[id]];

		if (!t->asked[k]) {
			t->number[k][i] = sem ? ++r->acquired[id]
					      : ++e->expected;
		}
		met &= (sem ? r->released[id] : e->arrived) >=
		       t->number[k][i];
	}
	t->asked[k] = true;
	return met;
}

/* Op k; false when it has to wait. */
static inline bool psim_op(struct psim *s, struct psim_tb *t, int k)
{
	const json_t *op = json_array_get(t->ops, (size_t)k);
	const char *name = psim_name(t, k);
	bool sem = strncmp(name, "sem_", 4) == 0;
	const json_t *ids = json_object_get(op, sem ? "semaphore_ids"
						    : "channel_ids");

	if (strcmp(name, "wait") == 0 || strcmp(name, "sem_acquire") == 0) {
		return psim_wait(s, t, k, ids, sem);
	}
	if (strcmp(name, "copy") == 0 || strcmp(name, "re") == 0) {
		psim_local(s, t, op);
		return true;
	}
	for (size_t i = 0; i < json_array_size(ids); i++) {
		int id = (int)json_integer_value(json_array_get(ids, i));
		struct psim_rank *r = &s->ranks[t->rank];
		struct psim_end *e = sem ? NULL
			: &s->ends[r->first_end + t->chans[id]];

		if (sem) {
			r->released[id]++;
		} else if (strcmp(name, "signal") == 0) {
			psim_push(e, (struct psim_trigger){ .signals = true });
		} else if (strcmp(name, "flush") == 0) {
			/* As many channels as destinations. */
			while (e->n > 0 && i < json_array_size(
					json_object_get(op, "dst_buff"))) {
				psim_proxy(s, e);
			}
		} else {
			psim_put(s, t, op, i, e, strcmp(name, "pws") == 0);
		}
	}
	return true;
}

/* One op of the present segment, any that can; or past the nop. */
static inline bool psim_turn(struct psim *s, struct psim_tb *t)
{
	int end = t->pc, left[PSIM_OPS], n = 0, k;

	while (end < t->n && strcmp(psim_name(t, end), "nop") != 0) {
		if (!t->done[end]) {
			left[n++] = end;
		}
		end++;
	}
	if (n == 0) {
		bool moved = t->pc < t->n;

		t->pc = end + (end < t->n);
		return moved;
	}
	k = left[rng_below(&s->rng, (uint64_t)n)];
	return t->done[k] = psim_op(s, t, k);
}

static inline bool psim_ended(const struct psim *s, int r)
{
	const struct psim_rank *k = &s->ranks[r];

	for (int i = k->first_tb; i < k->first_tb + k->n_tbs; i++) {
		if (s->tbs[i].pc < s->tbs[i].n) {
			return false;
		}
	}
	return true;
}

/* Ends of runs; false when a result is wrong. */
static inline bool psim_next(struct psim *s, int r, int runs, int *ended)
{
	if (s->ranks[r].run == runs || !psim_ended(s, r)) {
		return true;
	}
	if (!psim_right(s, r)) {
		return false;
	}
	if (++s->ranks[r].run == runs) {
		++*ended;
	} else {
		psim_call(s, r);
	}
	return true;
}

/* The text is right in `runs` runs in a row, in an order drawn from seed.
 * Ranks and proxies are favoured unevenly, so that some lag far behind. */
static inline bool psim_text(const char *text, int runs, uint64_t seed)
{
	struct psim *s = malloc(sizeof(*s));
	int ended = 0, idle = 0;
	bool right = true;

	psim_read(s, text);
	rng_seed(&s->rng, seed);
	for (int r = 0; r < s->n; r++) {
		psim_memory(s, r);
		psim_call(s, r);
	}
	while (ended < s->n && right && idle < 60 * (s->n_tbs + s->n_ends)) {
		struct psim_tb *t =
			&s->tbs[rng_below(&s->rng, (uint64_t)s->n_tbs)];
		struct psim_end *e =
			&s->ends[rng_below(&s->rng, (uint64_t)s->n_ends)];
		int turns = 1 + (int)rng_below(&s->rng, 12);

		idle++;
		if (e->n > 0 && rng_below(&s->rng, 3) == 0) {
			psim_proxy(s, e);
			idle = 0;
		}
		while (turns-- > 0 && s->ranks[t->rank].run < runs &&
		       psim_turn(s, t)) {
			idle = 0;
		}
		right = psim_next(s, t->rank, runs, &ended);
	}
	right = right && ended == s->n;
	psim_free(s);
	free(s);
	return right;
}

#endif
