/*
 * Symmetric schedules: the channels of their rounds, and their proof.
 *
 * Lightpaths of one length from every node fall into classes whose members
 * share no link, so a class can have one set of channels around the whole
 * ring. Widths (channels a class) and slots (steps a round) are chosen to
 * finish the round's data soonest. The proof replays node 0's item alone and
 * checks each class once; rotation extends both to all nodes.
 */
#include "optree/private.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rat.h"

void optree_sym_init(struct optree_sym *s, enum coll_kind kind, const struct rwa_ring *ring)
{
	int32_t w = ring->channels * ring->fibres;

	*s = (struct optree_sym){ .kind = kind, .ring = *ring, .chunks = 1,
				  .units = 2, .w = { w, w } };
}

int optree_sym_place(struct optree_sym *s, const struct optree_params *p, struct err *err)
{
	s->line = p->line;
	for (int dir = 0; dir < 2; dir++) {
		s->w[dir] = (int32_t)tree_width(p, dir);
	}
	for (int k = 0; k < p->n_light; k++) {
		if (vec_push(&s->light, p->light[k])) {
			return err_nomem(err);
		}
	}
	return 0;
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

static int classes_for(const struct optree_sym *s, int len)
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

/* What nodes send over a move. On a line a hop is that of the nodes for which
 * the piece begins and ends on the line: not all send all. */
struct senders {
	int64_t nodes;		/* that send anything */
	int64_t chunks;		/* of who sends the most */
};

/* more: room for 2 (n + 1), all 0, and so again afterwards. O(hops + n), on a
 * ring O(hops). */
static struct senders senders_of(const struct optree_sym *s, const struct sym_move *m,
				 int64_t *more)
{
	struct senders out = { s->ring.n, 0 };
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
	m->chunks = senders_of(s, m, more).chunks;
	m->classes = classes_for(s, m->len);
	s->max_len = m->len > s->max_len ? m->len : s->max_len;
	for (size_t h = m->hop; h < m->hop + m->n_hops; h++) {
		*cut = *cut || s->hops.v[h].last - s->hops.v[h].first + 1 < s->units;
	}
}

/* All moves of the direction share the channels of one step: whoever takes
 * longest for its share gets a channel more, while there are any. */
static void share_channels(struct sym_move *m, size_t n, int dir, int64_t room)
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
		if (!worst || worst->classes > room) {
			return;
		}
		worst->width++;
		room -= worst->classes;
	}
}

/* A first share that leaves little to deal out one by one. */
static int64_t begin_shares(struct sym_move *m, size_t n, int dir, int64_t w)
{
	int64_t load = 0, room = w;

	for (size_t i = 0; i < n; i++) {
		load += m[i].dir == dir ? m[i].classes * m[i].chunks : 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (m[i].dir == dir) {
			int64_t share = m[i].chunks * w / load;

			m[i].width = share < 1 ? 1 : (int32_t)share;
			room -= (int64_t)m[i].width * m[i].classes;
		}
	}
	for (size_t i = 0; i < n && room < 0; i++) {
		if (m[i].dir == dir) {
			room += (int64_t)(m[i].width - 1) * m[i].classes;
			m[i].width = 1;
		}
	}
	return room;
}

static int64_t classes_of(const struct sym_move *m, size_t n, int dir)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		sum += m[i].dir == dir ? m[i].classes : 0;
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

		load[dir] = classes_of(m, r->n_moves, dir);
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
		share_channels(m, r->n_moves, dir, begin_shares(m, r->n_moves, dir, r->room[dir]));
	}
	for (size_t i = 0; i < r->n_moves && !rc; i++) {
		int dir = m[i].dir;

		if (r->slots > 1) {
			m[i].width = r->room[dir] / r->per_slot[dir];
		}
		m[i].base = (int32_t)base[dir];
		base[dir] += (int64_t)m[i].classes *
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
		m[i].base = old->base;
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
	__int128 worst = 0;

	for (size_t i = *at; i < r->n_moves; i++) {
		__int128 t;

		if (m[i].dir != dir) {
			continue;
		}
		if (r->slots > 1 && m[i].base >= to) {
			break;
		}
		if (r->slots > 1 && m[i].base + m[i].classes <= from) {
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

/* From units to chunks. */
static void cut_items(struct optree_sym *s)
{
	for (size_t h = 0; h < s->hops.n; h++) {
		struct sym_hop *hop = &s->hops.v[h];

		hop->first = hop->first * s->chunks / s->units;
		hop->last = (hop->last + 1) * s->chunks / s->units - 1;
	}
	for (size_t i = 0; i < s->moves.n; i++) {
		s->moves.v[i].chunks = s->moves.v[i].chunks * s->chunks /
				       s->units;
	}
}

/* Chunks, and what follows from them. */
static void finish_light(struct optree_sym *s, int64_t *more)
{
	cut_items(s);
	for (size_t i = 0; i < s->rounds.n; i++) {
		time_round(s, &s->rounds.v[i]);
		s->chunk_times += s->rounds.v[i].chunk_times;
	}
	for (size_t i = 0; i < s->moves.n; i++) {
		s->lightpaths += senders_of(s, &s->moves.v[i], more).nodes * s->moves.v[i].width;
	}
}

int optree_sym_light(struct optree_sym *s, int max_chunks, struct err *err)
{
	int64_t *more = calloc(2 * ((size_t)s->ring.n + 1), sizeof(*more));
	bool cut = false;
	int rc = more ? 0 : err_nomem(err);

	s->max_len = 0;
	s->steps = s->chunk_times = s->lightpaths = 0;
	for (size_t i = 0; i < s->moves.n && !rc; i++) {
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
		s->chunks = choose_chunks(s, cut, max_chunks);
		finish_light(s, more);
	}
	free(more);
	return rc;
}

/* ---- proof ---- */

struct proof {
	const struct optree_sym *s;
	int n;
	uint32_t all;		/* all units */
	struct arrays arrays;	/* owns all that follow */
	uint32_t *have;		/* all-gather: units held, by offset; on a
				 * line those of the other direction from n on */
	int32_t *place;		/* all-to-all: of each unit, by destination; on
				 * a line once more for the other direction */
	uint32_t *moved;	/* units that move this round, likewise */
	int64_t *more;		/* of senders_of() */
	int32_t *last;		/* tiling: end of the last lightpath, a class */
	int32_t *needs;		/* classes of a length that is proven; 0: not */
};

static void proof_fini(struct proof *p)
{
	arrays_fini(&p->arrays);
}

static int proof_init(struct proof *p, const struct optree_sym *s, struct err *err)
{
	size_t n = (size_t)s->ring.n;

	*p = (struct proof){ .s = s, .n = s->ring.n };
	if (s->units < 1 || s->units > SYM_MAX_UNITS) {
		return err_set(err, WEFT_EVERIFY, "%d units of an item: 1 to "
			       "%d are supported", s->units, SYM_MAX_UNITS);
	}
	p->all = (UINT32_C(1) << s->units) - 1;
	arrays_add(&p->arrays, p->have, 2 * n);
	arrays_add(&p->arrays, p->place, 2 * (size_t)s->units * n);
	arrays_add(&p->arrays, p->moved, 2 * n);
	arrays_add(&p->arrays, p->more, 2 * (n + 1));
	arrays_add(&p->arrays, p->last, 2 * n);
	arrays_add(&p->arrays, p->needs, n);
	if (p->arrays.failed) {
		return err_nomem(err);
	}
	p->have[0] = p->have[n] = p->all;
	return 0;
}

/* Which units of the item a hop carries; 0: not whole units. */
static uint32_t units_of(const struct proof *p, const struct sym_hop *h)
{
	int64_t chunks = p->s->chunks, units = p->s->units;
	int64_t first = h->first * units, end = (h->last + 1) * units;

	if (h->first == 0 && h->last == chunks - 1) {
		return p->all;
	}
	if (h->first < 0 || h->last < h->first || h->last >= chunks ||
	    chunks % units || first % chunks || end % chunks) {
		return 0;
	}
	return ((UINT32_C(1) << end / chunks) - 1) &
	       ~((UINT32_C(1) << first / chunks) - 1);
}

/* Where an offset is found: a line has two directions from the origin. */
static int index_of(const struct proof *p, const struct sym_move *m, int at)
{
	return (p->s->line && m->dir == RWA_CCW ? p->n : 0) + at;
}

static uint32_t *held(struct proof *p, const struct sym_move *m, int at)
{
	return &p->have[index_of(p, m, at)];
}

static int to_of(int n, const struct sym_move *m, int at)
{
	return m->dir == RWA_CW ? (at + m->len) % n : (at - m->len + n) % n;
}

static int fault(struct err *err, size_t round, const struct sym_move *m,
		 const struct sym_hop *h, const char *what)
{
	return err_set(err, WEFT_EVERIFY,
		       "round %zu: offset %d, %d links %s, chunks %d to %d: %s",
		       round, h->at, m->len,
		       m->dir == RWA_CW ? "clockwise" : "counter-clockwise",
		       h->first, h->last, what);
}

/* A piece of an all-to-all can go one way only, and on a line no further than
 * to whom it is for. */
static int check_piece(struct proof *p, size_t round, const struct sym_move *m,
		       const struct sym_hop *h, struct err *err)
{
	uint32_t units = units_of(p, h), *moved;

	if (h->dest < 1 || h->dest >= p->n) {
		return fault(err, round, m, h, "no node wants it");
	}
	if (p->s->line && optree_sym_behind(p->s, m, h) + m->len > optree_sym_links(p->s, m, h)) {
		return fault(err, round, m, h, "past the end of the line");
	}
	moved = &p->moved[index_of(p, m, h->dest)];
	if (*moved & units) {
		return fault(err, round, m, h, "sent twice");
	}
	*moved |= units;
	for (int k = 0; k < p->s->units; k++) {
		if ((units >> k & 1) &&
		    p->place[p->s->units * index_of(p, m, h->dest) + k] != h->at) {
			return fault(err, round, m, h, "sent before it is held");
		}
	}
	return 0;
}

/* What is sent is held. */
static int check_send(struct proof *p, size_t round, const struct sym_move *m,
		      const struct sym_hop *h, struct err *err)
{
	uint32_t units = units_of(p, h);

	if (!units || h->at < 0 || h->at >= p->n) {
		return fault(err, round, m, h, "not a part of the item");
	}
	if (p->s->line && optree_sym_behind(p->s, m, h) + m->len >= p->n) {
		return fault(err, round, m, h, "past the end of the line");
	}
	if (p->s->kind == COLL_ALLGATHER) {
		return (units & ~*held(p, m, h->at))
			       ? fault(err, round, m, h, "sent before it is held")
			       : 0;
	}
	return check_piece(p, round, m, h, err);
}

static int arrive(struct proof *p, size_t round, const struct sym_move *m,
		  const struct sym_hop *h, struct err *err)
{
	uint32_t units = units_of(p, h);
	int to = to_of(p->n, m, h->at);

	if (p->s->kind == COLL_ALLGATHER) {
		if (*held(p, m, to) & units) {
			return fault(err, round, m, h, "delivered twice");
		}
		*held(p, m, to) |= units;
		return 0;
	}
	p->moved[index_of(p, m, h->dest)] = 0;
	for (int k = 0; k < p->s->units; k++) {
		if (units >> k & 1) {
			p->place[p->s->units * index_of(p, m, h->dest) + k] = to;
		}
	}
	return 0;
}

typedef int each_hop(struct proof *, size_t, const struct sym_move *,
		     const struct sym_hop *, struct err *);

static int for_hops(struct proof *p, size_t round, each_hop *f, struct err *err)
{
	const struct sym_round *r = &p->s->rounds.v[round];
	int rc = 0;

	for (size_t i = r->move; i < r->move + r->n_moves && !rc; i++) {
		const struct sym_move *m = &p->s->moves.v[i];

		for (size_t h = 0; h < m->n_hops && !rc; h++) {
			rc = f(p, round, m, &p->s->hops.v[m->hop + h], err);
		}
	}
	return rc;
}

/* Offset v has all units; on a line in each direction. */
static bool is_there(const struct proof *p, int v)
{
	if (p->s->kind == COLL_ALLGATHER) {
		return p->have[v] == p->all && (!p->s->line || p->have[p->n + v] == p->all);
	}
	for (int k = 0; k < p->s->units; k++) {
		if (p->place[p->s->units * v + k] != v ||
		    (p->s->line && p->place[p->s->units * (p->n + v) + k] != v)) {
			return false;
		}
	}
	return true;
}

static int check_arrived(const struct proof *p, struct err *err)
{
	for (int v = 1; v < p->n; v++) {
		if (!is_there(p, v)) {
			return err_set(err, WEFT_EVERIFY,
				       "the item of rank 0 does not arrive "
				       "at rank %d", v);
		}
	}
	return 0;
}

/* Lightpaths of len links from every node, class by class: going once round,
 * each begins where the one before has ended, and so does the first. The
 * number of classes goes to needs[len]. */
static int prove_tiling(struct proof *p, int len, struct err *err)
{
	int n = p->n, paths = p->s->line ? n - len : n;
	int32_t *end = p->last, *first = p->last + n;

	for (int c = 0; c < n; c++) {
		end[c] = first[c] = -1;
	}
	for (int v = 0; v < paths; v++) {
		int c = optree_sym_class_of(p->s, len, v);

		if (c < 0 || c >= n || end[c] > v) {
			goto clash;
		}
		first[c] = first[c] < 0 ? v : first[c];
		end[c] = v + len;
		p->needs[len] = c >= p->needs[len] ? c + 1 : p->needs[len];
	}
	for (int c = 0; c < p->needs[len]; c++) {
		if (end[c] > first[c] + n && !p->s->line) {
			goto clash;
		}
	}
	return 0;
clash:
	return err_set(err, WEFT_EVERIFY,
		       "lightpaths of %d links on a ring of %d share a link "
		       "in one class", len, n);
}

/* The classes of a move lie behind those of the one before (`next`), within
 * the colours of the round, which are within those that there are. */
static bool fits(struct proof *p, const struct sym_round *r,
		 const struct sym_move *m, int64_t next[2])
{
	int64_t from = r->from[m->dir], room = r->room[m->dir];
	int64_t end = m->base + (int64_t)m->classes *
				       (r->slots > 1 ? 1 : m->width);
	bool in = r->slots > 1
			  ? (int64_t)m->width * r->per_slot[m->dir] <= room &&
				    end <= (int64_t)r->slots *
						   r->per_slot[m->dir]
			  : end <= from + room;

	in = in && from >= 0 && from + room <= p->s->w[m->dir] && m->classes >= p->needs[m->len] &&
		m->base >= next[m->dir] && m->chunks == senders_of(p->s, m, p->more).chunks;
	next[m->dir] = end;
	return in;
}

/* Classes follow each other without overlap, and fit. */
static int prove_light(struct proof *p, size_t round, struct err *err)
{
	const struct sym_round *r = &p->s->rounds.v[round];
	int64_t next[2] = { r->slots > 1 ? 0 : r->from[0],
			    r->slots > 1 ? 0 : r->from[1] };
	int rc = 0;

	for (size_t i = r->move; i < r->move + r->n_moves; i++) {
		const struct sym_move *m = &p->s->moves.v[i];

		if (m->len < 1 || m->len >= p->n || m->width < 1 || m->dir > RWA_CCW) {
			return err_set(err, WEFT_EVERIFY,
				       "round %zu: no lightpath has %d links "
				       "and %d channels", round, m->len,
				       m->width);
		}
		if (!p->needs[m->len]) {
			rc = prove_tiling(p, m->len, err);
		}
		if (rc) {
			return rc;
		}
		if (!fits(p, r, m, next)) {
			return err_set(err, WEFT_EVERIFY,
				       "round %zu: the light of %d links does "
				       "not fit %d channels", round, m->len,
				       p->s->w[m->dir]);
		}
	}
	return rc;
}

int optree_sym_verify(const struct optree_sym *s, struct err *err)
{
	struct proof p;
	int rc = proof_init(&p, s, err);

	for (size_t i = 0; i < s->rounds.n && !rc; i++) {
		if (!(rc = prove_light(&p, i, err)) && !(rc = for_hops(&p, i, check_send, err))) {
			rc = for_hops(&p, i, arrive, err);
		}
	}
	if (!rc) {
		rc = check_arrived(&p, err);
	}
	proof_fini(&p);
	return rc;
}
