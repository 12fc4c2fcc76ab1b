/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which way a broadcast goes: all of them are made, as sends or in numbers,
 * and the one with the shortest exact time is taken. It is written out when
 * someone wants the schedule.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "optree/broadcast/broadcast.h"

/* Lightpaths of all emissions and seeds on their ways. */
static int64_t stream_lights(const struct broadcast_stream *s)
{
	int64_t sum = 0, first, end;

	for (int dir = 0; dir < 2; dir++) {
		for (int64_t k = 0; k < s->steps && s->hops[dir]; k++) {
			int64_t reach = s->steps - k < s->hops[dir] ? s->steps - k : s->hops[dir];

			broadcast_emission(s, dir, k, &first, &end);
			end -= first;
			sum += end > 0 ? reach * (end < s->width[dir] ? end : s->width[dir]) : 0;
		}
		for (int at = 1; s->seeded && at < s->n; at++) {
			int64_t reach = dir == RWA_CW ? s->n - 1 - at : at - 1;

			broadcast_seed(s, at, &first, &end);
			end -= first;
			reach = reach < s->steps ? reach : s->steps;
			sum += end > 0 ? reach * (end < s->width[dir] ? end : s->width[dir]) : 0;
		}
	}
	return sum;
}

/* Of the all-gather, but what ends at the root, which is not sent. */
static int64_t gather_lights(const struct optree_sym *s, int root)
{
	int64_t sum = s->lightpaths;

	for (size_t i = 0; i < s->moves.n; i++) {
		const struct sym_move *m = &s->moves.v[i];
		/* Nodes of a line from its end to the one that sends. */
		int before = (m->dir == RWA_CW ? root : s->ring.n - 1 - root) - m->len;
		bool lit = !s->line;

		for (size_t h = m->hop; h < m->hop + m->n_hops && !lit; h++) {
			lit = optree_sym_behind(s, m, &s->hops.v[h]) <= before;
		}
		sum -= lit ? m->width : 0;
	}
	return sum;
}

static int64_t lights_of(const struct optree_broadcast *b)
{
	int64_t sum = stream_lights(&b->stream) +
		      (b->gather ? gather_lights(b->gather, b->root) : 0);

	for (size_t k = 0; k < b->sends.n; k++) {
		const struct broadcast_send *x = &b->sends.v[k];
		int64_t chunks = x->end - x->first;

		sum += chunks < x->width ? chunks : x->width;
	}
	return sum;
}

/* Links of the longest lightpath; of an all-gather also of those that would end
 * at the root. */
static int longest(const struct optree_params *p, const struct optree_broadcast *b)
{
	int most = b->stream.span;

	if (b->gather && tree_span(p, b->gather->max_len) > most) {
		most = tree_span(p, b->gather->max_len);
	}
	for (size_t k = 0; k < b->sends.n; k++) {
		const struct broadcast_send *x = &b->sends.v[k];
		int links = optree_links(p, broadcast_rank(p, b->root, x->from),
					 broadcast_rank(p, b->root, x->to), x->dir);

		most = links > most ? links : most;
	}
	return most;
}

static void report(const struct optree_params *p, const struct optree_broadcast *b,
		   struct optree_plan *out)
{
	struct rwa_ring ring = { p->at && p->ring_nodes ? p->ring_nodes : p->n,
				 p->fibres, p->channels };

	out->kind = COLL_BROADCAST;
	out->algorithm = OPTREE_COMPOSED;
	out->time_ns = b->time_ns;
	out->retune_hidden_ns = b->plain_ns - b->time_ns;
	out->steps = b->send_steps + b->stream.steps + (b->gather ? (int)b->gather->steps : 0);
	out->rounds = out->steps;
	out->chunks = b->chunks;
	out->lightpaths = lights_of(b);
	out->worst_loss_mdb = p->loss ? rwa_path_loss_mdb(&ring, p->loss, longest(p, b)) : 0;
}

static int check_root(const struct optree_params *p, int root, struct err *err)
{
	if (root < 0 || root >= p->n) {
		return err_set(err, WEFT_EINVAL, "root %d is none of %d nodes", root, p->n);
	}
	return 0;
}

int broadcast_make(const struct optree_params *p, int root, int reach,
		   struct optree_plan *out, struct err *err)
{
	struct optree_broadcast *b = x_new(1, sizeof(*b));
	int rc = check_root(p, root, err);

	if (rc) {
		free(b);
		return rc;
	}
	b->time_ns = -1;
	out->broadcast = b;
	broadcast_gaps(p, root, reach, b);
	broadcast_streams(p, root, reach, b);
	if ((rc = broadcast_gather(p, root, reach, b, err))) {
		return rc;
	}
	if (b->time_ns < 0) {
		return err_set(err, WEFT_ELIMIT, "no broadcast lasts less than 292 years, %d "
			       "steps and the lights allowed", COLL_MAX_STEPS);
	}
	report(p, b, out);
	return 0;
}
