/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symmetric schedules: the channels of their rounds.
 *
 * Lightpaths of one length from every node fall into classes whose members
 * share no link, so a class can have one set of channels around the whole
 * ring. Widths (channels a class) and slots (steps a round) are chosen to
 * finish the round's data soonest.
 */
#include "lib/base/order.h"
#include "optree/private.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

void optree_sym_init(struct optree_sym *s, enum coll_kind kind, const struct rwa_ring *ring)
{
	int32_t w = ring->channels * ring->fibres;

	*s = (struct optree_sym){ .kind = kind, .ring = *ring, .chunks = 1,
				  .units = 2, .w = { w, w } };
}

void optree_sym_place(struct optree_sym *s, const struct optree_params *p)
{
	s->line = p->line;
	s->overlap = part_keeps_light(p);
	s->step = (double)p->alpha_ns * (double)p->channel_bps / ((double)p->shard_bytes * 8e9);
	for (int dir = 0; dir < 2; dir++) {
		s->w[dir] = (int32_t)tree_width(p, dir);
	}
	for (int k = 0; k < p->n_light; k++) {
		vec_push(&s->light, p->light[k]);
	}
}

void optree_sym_colour(const struct optree_sym *s, int dir, int32_t colour,
		       uint8_t *fibre, uint16_t *channel)
{
	part_colour(s->light.v, s->light.n, s->ring.channels, dir, colour, fibre, channel);
}

void optree_sym_fini(struct optree_sym *s)
{
	vec_fini(&s->hops);
	vec_fini(&s->moves);
	vec_fini(&s->bands);
	vec_fini(&s->rounds);
	vec_fini(&s->light);
}

int optree_sym_classes(int n, int len)
{
	int blocks = n / len;

	return (n + blocks - 1) / blocks;
}

int optree_sym_class(int n, int len, int start)
{
	int64_t blocks = n / len, block = start * blocks / n;
	int64_t first = (block * n + blocks - 1) / blocks;

	/* Blocks begin at ceil(block * n / blocks). */
	return (int)(start - first);
}

int optree_sym_classes_of(const struct optree_sym *s, int len)
{
	if (!s->line) {
		return optree_sym_classes(s->ring.n, len);
	}
	return len < s->ring.n - len ? len : s->ring.n - len;
}

int optree_sym_class_of(const struct optree_sym *s, int len, int start)
{
	return s->line ? start % len : optree_sym_class(s->ring.n, len, start);
}

int optree_sym_band_class(const struct optree_sym *s, const struct sym_band *b, int start)
{
	int n = s->ring.n;

	return optree_sym_class_of(s, b->tile, start < b->at ? start - b->at + n : start - b->at);
}

/* ---- from hops one by one ---- */

ORDER_BY(by_round, struct compose_record, round, dir, len, hop.at, hop.dest, hop.first)

static void add_record(struct optree_sym *s, const struct compose_record *r,
		       bool new_round, bool new_move, int level)
{
	struct sym_move m = { .len = r->len, .dir = r->dir,
			      .hop = s->hops.n };
	struct sym_round round = { .move = s->moves.n, .level = level };

	if (new_round) {
		vec_push(&s->rounds, round);
	}
	if (new_move) {
		vec_push(&s->moves, m);
	}
	vec_push(&s->hops, r->hop);
	s->rounds.v[s->rounds.n - 1].n_moves += new_move;
	s->moves.v[s->moves.n - 1].n_hops++;
}

void compose_gather(struct compose_records *rec, const int *ends, struct optree_sym *s)
{
	int level = 0;

	qsort(rec->v, rec->n, sizeof(*rec->v), by_round);
	for (size_t i = 0; i < rec->n; i++) {
		const struct compose_record *r = &rec->v[i], *b = r - 1;
		bool round = i == 0 || r->round != b->round;

		if (!round && r->dir == b->dir && r->len == b->len && r->hop.at == b->hop.at &&
		    r->hop.dest == b->hop.dest && r->hop.first == b->hop.last + 1) {
			s->hops.v[s->hops.n - 1].last = r->hop.last;
			continue;
		}
		while (r->round >= ends[level]) {
			level++;
		}
		add_record(s, r, round, round || r->dir != b->dir || r->len != b->len, level);
	}
}

int compose_max_chunks(const struct optree_params *p)
{
	int max = p->shard_bytes < COMPOSE_MAX_CHUNKS
			   ? (int)p->shard_bytes : COMPOSE_MAX_CHUNKS;

	return max < 2 ? 2 : max;
}

/* ---- the other way round ---- */

static void swap(int32_t v[2])
{
	int32_t t = v[0];

	v[0] = v[1];
	v[1] = t;
}

void optree_sym_mirror(struct optree_sym *s)
{
	for (size_t k = 0; k < s->light.n; k++) {
		s->light.v[k].dir ^= 1;
	}
	swap(s->w);
	for (size_t i = 0; i < s->rounds.n; i++) {
		swap(s->rounds.v[i].per_slot);
		swap(s->rounds.v[i].from);
		swap(s->rounds.v[i].room);
	}
	for (size_t i = 0; i < s->moves.n; i++) {
		s->moves.v[i].dir ^= 1;
	}
	for (size_t h = 0; h < s->hops.n; h++) {
		s->hops.v[h].at = (s->ring.n - s->hops.v[h].at) % s->ring.n;
	}
}

/* ---- light ---- */

int optree_sym_behind(const struct optree_sym *s, const struct sym_move *m, const struct sym_hop *h)
{
	return m->dir == RWA_CW || !h->at ? h->at : s->ring.n - h->at;
}

int optree_sym_links(const struct optree_sym *s, const struct sym_move *m, const struct sym_hop *h)
{
	return m->dir == RWA_CW ? h->dest : s->ring.n - h->dest;
}

static int64_t chunks_of(const struct optree_sym *s, const struct sym_move *m)
{
	int64_t sum = 0;

	for (size_t h = m->hop; h < m->hop + m->n_hops; h++) {
		sum += s->hops.v[h].last - s->hops.v[h].first + 1;
	}
	return sum;
}

struct sym_senders optree_sym_senders(const struct optree_sym *s, const struct sym_move *m,
				      int64_t *more)
{
	struct sym_senders out = { s->ring.n, 0 };
	int64_t chunks = 0, hops = 0;
	int n = s->ring.n;

	if (!s->line) {
		out.chunks = chunks_of(s, m);
		return out;
	}
	for (size_t h = m->hop; h < m->hop + m->n_hops; h++) {
		const struct sym_hop *hop = &s->hops.v[h];
		int first = optree_sym_behind(s, m, hop), end = n - m->len;

		if (s->kind == COLL_ALLTOALL) {
			end = n - optree_sym_links(s, m, hop) + first;
		}
		if (first < end) {
			more[first] += hop->last - hop->first + 1;
			more[end] -= hop->last - hop->first + 1;
			more[n + 1 + first]++;
			more[n + 1 + end]--;
		}
	}
	out.nodes = 0;
	for (int v = 0; v <= n; v++) {
		chunks += more[v];
		hops += more[n + 1 + v];
		out.nodes += hops > 0;
		out.chunks = chunks > out.chunks ? chunks : out.chunks;
		more[v] = more[n + 1 + v] = 0;
	}
	return out;
}

/* Units of items that the move carries, in .chunks for now. */
static void count_units(struct optree_sym *s, struct sym_move *m, int64_t *more, bool *cut)
{
	m->chunks = optree_sym_senders(s, m, more).chunks;
	s->max_len = m->len > s->max_len ? m->len : s->max_len;
	for (size_t h = m->hop; h < m->hop + m->n_hops; h++) {
		*cut = *cut || s->hops.v[h].last - s->hops.v[h].first + 1 < s->units;
	}
}

/* All moves of the direction share the channels of one step: whoever takes
 * longest for its share gets a channel more, while there are any. */
static void share_channels(const struct optree_sym *s, struct sym_move *m, size_t n, int dir,
			   int64_t room)
{
	for (;;) {
		struct sym_move *worst = NULL;

		for (size_t i = 0; i < n; i++) {
			if (m[i].dir == dir &&
			    (!worst || m[i].chunks * worst->width >
				       worst->chunks * m[i].width)) {
				worst = &m[i];
			}
		}
		if (!worst || optree_sym_classes_of(s, worst->len) > room) {
			return;
		}
		worst->width++;
		room -= optree_sym_classes_of(s, worst->len);
	}
}

/* A first share that leaves little to deal out one by one. */
static int64_t begin_shares(const struct optree_sym *s, struct sym_move *m, size_t n, int dir,
			    int64_t w)
{
	int64_t load = 0, room = w;

	for (size_t i = 0; i < n; i++) {
		load += m[i].dir == dir ? optree_sym_classes_of(s, m[i].len) * m[i].chunks : 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (m[i].dir == dir) {
			int64_t share = m[i].chunks * w / load;

			m[i].width = share < 1 ? 1 : (int32_t)share;
			room -= (int64_t)m[i].width * optree_sym_classes_of(s, m[i].len);
		}
	}
	for (size_t i = 0; i < n && room < 0; i++) {
		if (m[i].dir == dir) {
			room += (int64_t)(m[i].width - 1) * optree_sym_classes_of(s, m[i].len);
			m[i].width = 1;
		}
	}
	return room;
}

static int64_t classes_of(const struct optree_sym *s, const struct sym_move *m, size_t n, int dir)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		sum += m[i].dir == dir ? optree_sym_classes_of(s, m[i].len) : 0;
	}
	return sum;
}

static int count_slots(struct optree_sym *s, struct sym_round *r, struct err *err)
{
	const struct sym_move *m = s->moves.v + r->move;
	int64_t load[2];

	if (!r->room[0] && !r->room[1]) {
		r->room[0] = s->w[0];
		r->room[1] = s->w[1];
	}
	r->slots = 1;
	for (int dir = 0; dir < 2; dir++) {
		int64_t room = r->room[dir], need;

		load[dir] = classes_of(s, m, r->n_moves, dir);
		if (load[dir] && !room) {
			return err_set(err, WEFT_EINFEASIBLE,
				       "no channel goes %s",
				       dir == RWA_CW ? "clockwise"
						     : "counter-clockwise");
		}
		need = load[dir] ? (load[dir] + room - 1) / room : 1;
		r->slots = need > r->slots ? (int32_t)need : r->slots;
	}
	for (int dir = 0; dir < 2; dir++) {
		r->per_slot[dir] = (int32_t)((load[dir] + r->slots - 1) / r->slots);
	}
	return 0;
}

/* Widths, bases and slots of a round. */
static int light_round(struct optree_sym *s, struct sym_round *r, struct err *err)
{
	struct sym_move *m = s->moves.v + r->move;
	int64_t base[2] = { 0, 0 };
	int rc = count_slots(s, r, err);

	for (int dir = 0; dir < 2 && !rc && r->slots == 1; dir++) {
		base[dir] = r->from[dir];
		share_channels(s, m, r->n_moves, dir,
			       begin_shares(s, m, r->n_moves, dir, r->room[dir]));
	}
	for (size_t i = 0; i < r->n_moves && !rc; i++) {
		int dir = m[i].dir;

		if (r->slots > 1) {
			m[i].width = r->room[dir] / r->per_slot[dir];
		}
		m[i].band = s->bands.n;
		m[i].n_bands = 1;
		vec_push(&s->bands, ((struct sym_band){ m[i].len, 0, (int32_t)base[dir],
							m[i].width }));
		base[dir] += (int64_t)optree_sym_classes_of(s, m[i].len) *
			     (r->slots > 1 ? 1 : m[i].width);
	}
	return rc;
}

static const struct sym_move *same_light(const struct optree_sym *s, const struct sym_round *r,
					 const struct sym_move *m)
{
	for (size_t i = r->move; i < r->move + r->n_moves; i++) {
		if (s->moves.v[i].dir == m->dir && s->moves.v[i].len == m->len) {
			return &s->moves.v[i];
		}
	}
	return NULL;
}

/* What was active in the round before stays as it is, when that is no slower
 * than to retune for a better share. */
static void keep_light(struct optree_sym *s, struct sym_round *r)
{
	const struct sym_round *before = r - 1;
	struct sym_move *m = s->moves.v + r->move;
	double kept = 0, fresh = 0;

	if (r->slots > 1 || before->slots > 1 || before->level != r->level) {
		return;
	}
	for (size_t i = 0; i < r->n_moves; i++) {
		const struct sym_move *old = same_light(s, before, &m[i]);
		double units = (double)m[i].chunks / s->units;

		if (!old) {
			return;
		}
		fresh = units / m[i].width > fresh ? units / m[i].width
						   : fresh;
		kept = units / old->width > kept ? units / old->width : kept;
	}
	for (size_t i = 0; i < r->n_moves && kept - fresh <= s->keep; i++) {
		const struct sym_move *old = same_light(s, before, &m[i]);

		m[i].width = old->width;
		s->bands.v[m[i].band] = s->bands.v[old->band];
	}
}

/* As many chunks as make every channel's share a whole number, or the most
 * allowed. */
static int choose_chunks(const struct optree_sym *s, bool cut, int max)
{
	int64_t q = 1, unit = cut ? 1 : s->units;
	int64_t limit = cut ? max / s->units : max;

	for (size_t i = 0; i < s->moves.n; i++) {
		const struct sym_move *m = &s->moves.v[i];
		int64_t need = m->width / rat_gcd(m->width, m->chunks / unit);

		q = q / rat_gcd(q, need) * need;
		if (q > limit) {
			q = limit;
			break;
		}
	}
	return (int)(cut ? s->units * q : q);
}

/* The slowest of the moves of one direction that are active in the slot. They
 * lie in order of their classes: *at is where to begin. */
static __int128 slowest(const struct optree_sym *s, const struct sym_round *r,
			int dir, int slot, size_t *at, const struct sym_clock *clock)
{
	const struct sym_move *m = s->moves.v + r->move;
	int64_t from = (int64_t)slot * r->per_slot[dir];
	int64_t to = from + r->per_slot[dir];
	const struct sym_band *band;
	__int128 worst = 0;

	for (size_t i = *at; i < r->n_moves; i++) {
		__int128 t;

		if (m[i].dir != dir) {
			continue;
		}
		band = &s->bands.v[m[i].band];
		if (r->slots > 1 && band->base >= to) {
			break;
		}
		if (r->slots > 1 && band->base + optree_sym_classes_of(s, band->tile) <= from) {
			*at = i + 1;
			continue;
		}
		t = (m[i].chunks + m[i].width - 1) / m[i].width * clock->chunk;
		if (clock->link) {
			t += tree_span(clock->p, m[i].len) * clock->link;
		}
		worst = t > worst ? t : worst;
	}
	return worst;
}

__int128 optree_sym_slot_time(const struct optree_sym *s, const struct sym_round *r, int slot,
			      size_t at[2], const struct sym_clock *clock)
{
	__int128 a = slowest(s, r, RWA_CW, slot, &at[0], clock);
	__int128 b = slowest(s, r, RWA_CCW, slot, &at[1], clock);

	return a > b ? a : b;
}

struct sym_clock optree_sym_clock(const struct optree_params *p, const struct optree_sym *s)
{
	__int128 unit = (__int128)p->channel_bps * s->chunks;

	return (struct sym_clock){ .chunk = (__int128)p->shard_bytes * 8000000000,
				   .link = p->span_delay_ns * unit, .p = p };
}

static void time_round(const struct optree_sym *s, struct sym_round *r)
{
	const struct sym_clock chunks = { .chunk = 1 };
	size_t at[2] = { 0, 0 };

	r->chunk_times = 0;
	for (int slot = 0; slot < r->slots; slot++) {
		r->chunk_times += (int64_t)optree_sym_slot_time(s, r, slot, at, &chunks);
	}
}

static void cut_hops(struct optree_sym *s, int from, int to)
{
	for (size_t h = 0; h < s->hops.n; h++) {
		struct sym_hop *hop = &s->hops.v[h];

		hop->first = hop->first * to / from;
		hop->last = (hop->last + 1) * to / from - 1;
	}
}

/* Moves' chunks are now counted in `to` an item, not `from`. */
static void time_moves(struct optree_sym *s, int from, int to)
{
	s->chunks = to;
	s->chunk_times = 0;
	for (size_t i = 0; i < s->moves.n; i++) {
		s->moves.v[i].chunks = s->moves.v[i].chunks * to / from;
	}
	for (size_t i = 0; i < s->rounds.n; i++) {
		time_round(s, &s->rounds.v[i]);
		s->chunk_times += s->rounds.v[i].chunk_times;
	}
}

static void *copy_of(const void *v, size_t bytes)
{
	void *copy = x_alloc(bytes + 1, 1);

	return bytes ? memcpy(copy, v, bytes) : copy;
}

/* How long it takes, in items' times. */
static double items_of(const struct optree_sym *s)
{
	return (double)s->chunk_times / s->chunks + (double)s->steps * s->step;
}

/* The same with channels shared by unlike lengths, where that is faster. */
static void finish_light(struct optree_sym *s, bool cut, int max_chunks)
{
	struct optree_sym shared = *s;

	shared.moves.v = copy_of(s->moves.v, s->moves.n * sizeof(*s->moves.v));
	shared.bands.v = copy_of(s->bands.v, s->bands.n * sizeof(*s->bands.v));
	shared.rounds.v = copy_of(s->rounds.v, s->rounds.n * sizeof(*s->rounds.v));
	shared.bands.cap = s->bands.n;
	time_moves(s, s->units, choose_chunks(s, cut, max_chunks));
	if (!s->line && !s->overlap && optree_sym_share(&shared, s)) {
		time_moves(&shared, s->units, choose_chunks(&shared, cut, max_chunks));
		if (items_of(&shared) < items_of(s)) {
			struct optree_sym plain = *s;

			*s = shared;
			shared = plain;
		}
	}
	free(shared.moves.v);
	free(shared.bands.v);
	free(shared.rounds.v);
}

void optree_sym_refine(struct optree_sym *s, int times)
{
	cut_hops(s, s->chunks, s->chunks * times);
	time_moves(s, s->chunks, s->chunks * times);
}

static void count_lightpaths(struct optree_sym *s, int64_t *more)
{
	for (size_t i = 0; i < s->moves.n; i++) {
		const struct sym_move *m = &s->moves.v[i];

		s->lightpaths += optree_sym_senders(s, m, more).nodes * m->width;
	}
}

int optree_sym_light(struct optree_sym *s, int max_chunks, struct err *err)
{
	int64_t *more = x_new(2 * ((size_t)s->ring.n + 1), sizeof(*more));
	bool cut = false;
	int rc = 0;

	s->max_len = 0;
	s->bands.n = 0;
	s->steps = s->chunk_times = s->lightpaths = 0;
	for (size_t i = 0; i < s->moves.n; i++) {
		count_units(s, &s->moves.v[i], more, &cut);
	}
	for (size_t i = 0; i < s->rounds.n && !rc; i++) {
		rc = light_round(s, &s->rounds.v[i], err);
		if (rc) {
			break;
		}
		if (s->keep > 0 && i > 0) {
			keep_light(s, &s->rounds.v[i]);
		}
		s->steps += s->rounds.v[i].slots;
		if (s->steps > COLL_MAX_STEPS) {
			rc = err_set(err, WEFT_ELIMIT, "more than %d steps", COLL_MAX_STEPS);
		}
	}
	if (!rc) {
		finish_light(s, cut, max_chunks);
		cut_hops(s, s->units, s->chunks);
		count_lightpaths(s, more);
	}
	free(more);
	return rc;
}
