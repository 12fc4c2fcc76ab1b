/*
 * Runs the text of a lowered file on bytes, in a random order. It shares no
 * code with the room: its own reading of the lines, its own queues, its own
 * idea of what each collective promises. Threadblocks advance chunk by chunk,
 * so that steps of different threadblocks overlap. Include after cmocka.h.
 */
#ifndef WEFT_TESTS_UNIT_MSCCL_MSCCL_SIM_H
#define WEFT_TESTS_UNIT_MSCCL_MSCCL_SIM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rng.h"

#define SIM_BYTES 2	/* of a chunk */
#define SIM_FLIGHT 2	/* sends in a connection */
#define SIM_CHANS 130

struct sim_step {
	char type[8], src, dst;
	int src_off, dst_off, cnt, dep_tb, dep_step;
};

struct sim_tb {
	int rank, id, send, recv, chan, n;
	struct sim_step *steps;
	int pc, k;		/* the step, its chunks that are done */
	unsigned sent, taken;	/* of what it sends, and what others took */
	uint8_t slot[SIM_FLIGHT][72 * SIM_BYTES];
	int from;		/* the threadblock it receives from */
};

struct sim {
	char coll[32];
	int n, loop, inplace, outofplace, n_tbs, cap, steps;
	int chunks[1024][3];
	int first_tb[1025];
	uint8_t *mem[1024][3];
	struct sim_tb *tbs;
};

static inline bool sim_fail(const char *what)
{
	print_message("# simulator: %s\n", what);
	return false;
}

static inline bool sim_line(struct sim *s, const char *line)
{
	struct sim_tb *tb = s->n_tbs ? &s->tbs[s->n_tbs - 1] : NULL;
	struct sim_step *x, st;
	struct sim_tb t = { .from = -1 };
	int id, num, i, o, sc, flag;

	if (sscanf(line, "<algo name=\"%*[^\"]\" proto=\"Simple\" nchannels=\""
		   "%*d\" nchunksperloop=\"%d\" ngpus=\"%d\" coll=\"%31[^\"]"
		   "\" inplace=\"%d\" outofplace=\"%d\"", &s->loop, &s->n,
		   s->coll, &s->inplace, &s->outofplace) == 5) {
		return true;
	}
	if (sscanf(line, " <gpu id=\"%d\" i_chunks=\"%d\" o_chunks=\"%d\" "
		   "s_chunks=\"%d\"", &id, &i, &o, &sc) == 4) {
		s->chunks[id][0] = i;
		s->chunks[id][1] = o;
		s->chunks[id][2] = sc;
		s->first_tb[id] = s->n_tbs;
		return true;
	}
	if (sscanf(line, " <tb id=\"%d\" send=\"%d\" recv=\"%d\" chan=\"%d\"",
		   &t.id, &t.send, &t.recv, &t.chan) == 4) {
		if (s->n_tbs == s->cap) {
			s->cap = s->cap ? 2 * s->cap : 64;
			s->tbs = realloc(s->tbs, (size_t)s->cap *
							 sizeof(*s->tbs));
		}
		s->tbs[s->n_tbs++] = t;
		return true;
	}
	if (sscanf(line, " <step s=\"%d\" type=\"%7[^\"]\" srcbuf=\"%c\" "
		   "srcoff=\"%d\" dstbuf=\"%c\" dstoff=\"%d\" cnt=\"%d\" "
		   "depid=\"%d\" deps=\"%d\" hasdep=\"%d\"", &num, st.type,
		   &st.src, &st.src_off, &st.dst, &st.dst_off, &st.cnt,
		   &st.dep_tb, &st.dep_step, &flag) == 10) {
		tb->steps = realloc(tb->steps,
				    ((size_t)tb->n + 1) * sizeof(*x));
		tb->steps[tb->n++] = st;
		s->steps++;
		return true;
	}
	return strstr(line, "</") != NULL;
}

/* Finds the other ends after reading. */
static inline void sim_connect(struct sim *s)
{
	for (int a = 0; a < s->n_tbs; a++) {
		for (int b = 0; b < s->n_tbs && s->tbs[a].recv >= 0; b++) {
			if (s->tbs[b].rank == s->tbs[a].recv &&
			    s->tbs[b].send == s->tbs[a].rank &&
			    s->tbs[b].chan == s->tbs[a].chan) {
				s->tbs[a].from = b;
			}
		}
	}
}

static inline bool sim_read(struct sim *s, const char *text)
{
	char line[512];
	int gpu = -1;

	memset(s, 0, sizeof(*s));
	while (*text) {
		size_t n = strcspn(text, "\n");

		if (n >= sizeof(line)) {
			return sim_fail("long line");
		}
		memcpy(line, text, n);
		line[n] = '\0';
		text += n + (text[n] == '\n');
		if (strstr(line, "<gpu ")) {
			gpu++;
		}
		if (!sim_line(s, line)) {
			return sim_fail(line);
		}
		if (strstr(line, "<tb ")) {
			s->tbs[s->n_tbs - 1].rank = gpu;
			s->first_tb[gpu + 1] = s->n_tbs;
		}
	}
	sim_connect(s);
	return true;
}

static inline void sim_free(struct sim *s)
{
	for (int i = 0; i < s->n_tbs; i++) {
		free(s->tbs[i].steps);
	}
	free(s->tbs);
}

/* The byte j of chunk k of what a rank brings along. */
static inline uint8_t sim_byte(int rank, int k, int j)
{
	return (uint8_t)(rng_mix((uint64_t)rank * 1000003 +
				 (uint64_t)k * 17 + (uint64_t)j) >> 24);
}

static inline bool sim_is(const struct sim *s, const char *coll)
{
	return strcmp(s->coll, coll) == 0;
}

static inline void sim_start(struct sim *s, bool inplace, int root)
{
	int shard = s->loop / s->n;

	for (int r = 0; r < s->n; r++) {
		for (int b = 0; b < 3; b++) {
			size_t n = (size_t)s->chunks[r][b] * SIM_BYTES;

			s->mem[r][b] = malloc(n + 1);
			memset(s->mem[r][b], 0xa5, n);
		}
		if (inplace && (sim_is(s, "reducescatter") ||
				sim_is(s, "reduce_scatter"))) {
			free(s->mem[r][1]);
			s->mem[r][1] = s->mem[r][0] + r * shard * SIM_BYTES;
		} else if (inplace) {
			free(s->mem[r][0]);
			s->mem[r][0] = s->mem[r][1] +
				       (sim_is(s, "allgather")
						? r * shard * SIM_BYTES : 0);
		}
		for (int k = 0; k < s->chunks[r][0] &&
		     (!sim_is(s, "broadcast") || r == root); k++) {
			for (int j = 0; j < SIM_BYTES; j++) {
				s->mem[r][0][k * SIM_BYTES + j] =
					sim_byte(r, k, j);
			}
		}
	}
	for (int i = 0; i < s->n_tbs; i++) {
		s->tbs[i].pc = s->tbs[i].k = 0;
		s->tbs[i].sent = s->tbs[i].taken = 0;
	}
}

static inline void sim_stop(struct sim *s, bool inplace)
{
	bool scatter = sim_is(s, "reducescatter") ||
		       sim_is(s, "reduce_scatter");

	for (int r = 0; r < s->n; r++) {
		for (int b = 0; b < 3; b++) {
			if (!inplace || b != (scatter ? 1 : 0)) {
				free(s->mem[r][b]);
			}
		}
	}
}

static inline uint8_t *sim_at(struct sim *s, int rank, char buf, int off)
{
	int b = buf == 'i' ? 0 : buf == 'o' ? 1 : 2;

	if (off < 0 || off >= s->chunks[rank][b]) {
		fail_msg("chunk %d outside buffer %c of rank %d", off, buf,
			 rank);
	}
	return s->mem[rank][b] + off * SIM_BYTES;
}

/* One chunk of a step; false when the step has to wait. */
static inline bool sim_advance(struct sim *s, struct sim_tb *t)
{
	const struct sim_step *x = &t->steps[t->pc];
	bool r = x->type[0] == 'r' && strcmp(x->type, "re") != 0;
	bool snd = strchr("s", x->type[0]) || (r && x->type[1] &&
		   x->type[strlen(x->type) - 1] == 's');
	bool add = strncmp(x->type, "rr", 2) == 0 || !strcmp(x->type, "re");
	bool store = x->type[0] != 's' && strcmp(x->type, "rrs") != 0;
	struct sim_tb *f = r && t->from >= 0 ? &s->tbs[t->from] : NULL;
	uint8_t v[SIM_BYTES] = { 0 };
	int at = t->k * SIM_BYTES;

	if (t->k == 0 && x->dep_tb >= 0 &&
	    s->tbs[s->first_tb[t->rank] + x->dep_tb].pc <= x->dep_step) {
		return false;
	}
	if ((r && (!f || f->sent == f->taken)) ||
	    (snd && t->sent - t->taken >= SIM_FLIGHT)) {
		return false;
	}
	if (x->cnt > 0 && strcmp(x->type, "nop") != 0) {
		if (f) {
			memcpy(v, f->slot[f->taken % SIM_FLIGHT] + at,
			       SIM_BYTES);
		} else {
			memcpy(v, sim_at(s, t->rank, x->src,
					 x->src_off + t->k), SIM_BYTES);
		}
		for (int j = 0; j < SIM_BYTES && add; j++) {
			uint8_t *p = f ? sim_at(s, t->rank, x->src,
						x->src_off + t->k)
				       : sim_at(s, t->rank, x->dst,
						x->dst_off + t->k);

			v[j] = (uint8_t)(v[j] + p[j]);
		}
		if (store) {
			memcpy(sim_at(s, t->rank, x->dst, x->dst_off + t->k),
			       v, SIM_BYTES);
		}
		if (snd) {
			memcpy(t->slot[t->sent % SIM_FLIGHT] + at, v,
			       SIM_BYTES);
		}
	}
	if (++t->k >= x->cnt) {
		t->k = 0;
		t->pc++;
		t->sent += snd;
		if (f) {
			f->taken++;
		}
	}
	return true;
}

static inline uint8_t sim_expected(const struct sim *s, int rank, int k,
				   int j, int root)
{
	int shard = s->loop / s->n;
	uint8_t sum = 0;

	if (sim_is(s, "allgather")) {
		return sim_byte(k / shard, k % shard, j);
	}
	if (sim_is(s, "alltoall")) {
		return sim_byte(k / shard, rank * shard + k % shard, j);
	}
	if (sim_is(s, "broadcast")) {
		return sim_byte(root, k, j);
	}
	if (!sim_is(s, "allreduce")) {
		k += rank * shard;
	}
	for (int r = 0; r < s->n; r++) {
		sum = (uint8_t)(sum + sim_byte(r, k, j));
	}
	return sum;
}

static inline bool sim_results(struct sim *s, int root)
{
	for (int r = 0; r < s->n; r++) {
		for (int i = 0; i < s->chunks[r][1] * SIM_BYTES; i++) {
			if (s->mem[r][1][i] !=
			    sim_expected(s, r, i / SIM_BYTES, i % SIM_BYTES,
					 root)) {
				return sim_fail("wrong result");
			}
		}
	}
	return true;
}

/* Runs once in an order drawn from seed; the result is right. Threadblocks
 * are favoured unevenly, so that some lag far behind. */
static inline bool sim_run(struct sim *s, bool inplace, uint64_t seed,
			   int root)
{
	struct rng rng;
	int left = 0, idle = 0, *live = malloc((size_t)s->n_tbs *
					       sizeof(*live) + 1);
	bool ok;

	rng_seed(&rng, seed);
	sim_start(s, inplace, root);
	for (int i = 0; i < s->n_tbs; i++) {
		if (s->tbs[i].n) {
			live[left++] = i;
		}
	}
	while (left > 0 && idle < 40 * left + 1000) {
		int pick = (int)rng_below(&rng, (uint64_t)left);
		struct sim_tb *t = &s->tbs[live[pick]];
		int turns = 1 + (int)rng_below(&rng, 200);

		idle++;
		while (turns-- > 0 && t->pc < t->n && sim_advance(s, t)) {
			idle = 0;
		}
		if (t->pc == t->n) {
			live[pick] = live[--left];
		}
	}
	free(live);
	ok = left == 0 ? sim_results(s, root) : sim_fail("locks up");
	sim_stop(s, inplace);
	return ok;
}

/* In all ways that the file says it serves, `times` orders each. */
static inline bool sim_text(const char *text, int times, int root)
{
	struct sim *s = malloc(sizeof(*s));
	bool ok = sim_read(s, text);

	for (int i = 0; i < times && ok; i++) {
		ok = (!s->outofplace || sim_run(s, false, 77u + i, root)) &&
		     (!s->inplace || sim_run(s, true, 99u + i, root));
	}
	sim_free(s);
	free(s);
	return ok;
}

#endif
