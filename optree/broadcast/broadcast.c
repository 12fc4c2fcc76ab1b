/* SPDX-License-Identifier: Apache-2.0 */
/* A broadcast as a value: the faster of two is kept, and its time. */
#include <stdlib.h>

#include "optree/broadcast/broadcast.h"

void broadcast_fini(struct optree_broadcast *b)
{
	vec_fini(&b->sends);
	if (b->gather) {
		optree_sym_fini(b->gather);
		free(b->gather);
		b->gather = NULL;
	}
}

void broadcast_free(struct optree_broadcast *b)
{
	if (b) {
		broadcast_fini(b);
		free(b);
	}
}

void broadcast_keep(struct optree_broadcast *best, struct optree_broadcast *b)
{
	if (b->time_ns >= 0 && (best->time_ns < 0 || b->time_ns < best->time_ns)) {
		broadcast_fini(best);
		*best = *b;
	} else {
		broadcast_fini(b);
	}
}

void broadcast_sides(const struct optree_params *p, int root, int sides[2])
{
	sides[RWA_CW] = p->line ? p->n - 1 - root : p->n - 1;
	sides[RWA_CCW] = p->line ? root : p->n - 1;
}

double broadcast_vector_ns(const struct optree_params *p)
{
	return (double)p->n * (double)p->shard_bytes * 8e9 / (double)p->channel_bps;
}

/* Sum over its steps of the chunks on the fullest channel. O(n). */
static int64_t stream_loads(const struct broadcast_stream *s)
{
	int64_t sum = 0, whole = 0;

	if (s->paired) {
		return s->steps * s->load;
	}
	/* Steps with a piece that is not cut short, then those without. */
	for (int dir = 0; dir < 2; dir++) {
		int64_t pieces = s->hops[dir] ? s->chunks / (s->width[dir] * s->load) : 0;

		if (pieces && pieces + s->hops[dir] - 1 > whole) {
			whole = pieces + s->hops[dir] - 1;
		}
	}
	for (int64_t step = whole; step < s->steps; step++) {
		int64_t most = 0;

		for (int dir = 0; dir < 2; dir++) {
			int64_t size = s->width[dir] * s->load, share;
			int64_t last = s->hops[dir] ? s->chunks / size : 0;

			if (s->hops[dir] && step >= last && step < last + s->hops[dir]) {
				share = (s->chunks - last * size + s->width[dir] - 1) /
					s->width[dir];
				most = share > most ? share : most;
			}
		}
		sum += most;
	}
	return sum + whole * s->load;
}

/* All steps of the sends without their alpha, -1 when one sends nothing. In
 * 1 / (channel_bps * chunks) ns. */
static __int128 time_of_sends(const struct optree_params *p, const struct optree_broadcast *b)
{
	__int128 chunk = (__int128)p->shard_bytes * 8000000000, sum = 0, most = 0;
	__int128 link = (__int128)p->span_delay_ns * p->channel_bps * b->chunks;
	int32_t steps = 0;

	for (size_t k = 0; k < b->sends.n; k++) {
		const struct broadcast_send *x = &b->sends.v[k];
		__int128 t = (x->end - x->first + x->width - 1) / x->width * chunk;

		if (link) {
			t += link * optree_links(p, broadcast_rank(p, b->root, x->from),
						 broadcast_rank(p, b->root, x->to), x->dir);
		}
		if (k == 0 || x->step != x[-1].step) {
			sum += most;
			most = 0;
			steps++;
		}
		most = t > most ? t : most;
	}
	return steps == b->send_steps ? sum + most : -1;
}

void broadcast_time(const struct optree_params *p, int64_t gather_ns, struct optree_broadcast *b)
{
	__int128 unit = (__int128)p->channel_bps * b->chunks;
	int64_t retune = p->overlap ? p->alpha_ns - p->convert_ns : 0;
	int64_t steps = b->stream.steps, plain = b->gather ? compose_time_ns(p, b->gather) : 0;
	__int128 sends = time_of_sends(p, b), data = sends, ns;

	data += stream_loads(&b->stream) * (__int128)p->shard_bytes * 8000000000;
	data += (__int128)steps * b->stream.span * p->span_delay_ns * unit;
	ns = (data + unit - 1) / unit + (__int128)b->send_steps * p->alpha_ns;
	b->time_ns = b->plain_ns = -1;
	if (sends < 0 || plain < 0 || ns + plain + (__int128)steps * p->alpha_ns > INT64_MAX) {
		return;
	}
	b->plain_ns = (int64_t)ns + plain + steps * p->alpha_ns;
	b->time_ns = (int64_t)ns + gather_ns + (steps ? retune : 0) +
		     steps * (p->overlap ? p->convert_ns : p->alpha_ns);
}
