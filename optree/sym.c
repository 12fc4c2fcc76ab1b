/* Symmetric schedules: the light of their rounds, and their proof. */
#include "optree/sym.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void optree_sym_init(struct optree_sym *s, enum coll_kind kind,
		     const struct rwa_ring *ring)
{
	*s = (struct optree_sym){ .kind = kind, .ring = *ring, .chunks = 1 };
}

void optree_sym_fini(struct optree_sym *s)
{
	vec_fini(&s->hops);
	vec_fini(&s->moves);
	vec_fini(&s->rounds);
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

/* ---- light ---- */

static int64_t gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t t = a % b;

		a = b;
		b = t;
	}
	return a;
}

/* Halves of items that the move carries, in .chunks for now. */
static void count_halves(struct optree_sym *s, struct sym_move *m, bool *cut)
{
	m->chunks = 0;
	m->classes = optree_sym_classes(s->ring.n, m->len);
	s->max_len = m->len > s->max_len ? m->len : s->max_len;
	for (size_t h = m->hop; h < m->hop + m->n_hops; h++) {
		int halves = s->hops.v[h].last - s->hops.v[h].first + 1;

		m->chunks += halves;
		*cut = *cut || halves == 1;
	}
}

/* All moves of the direction share the channels of one step: whoever takes
 * longest for its share gets a channel more, while there are any. */
static void share_channels(struct sym_move *m, size_t n, int dir,
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

/* Widths, bases and slots of a round. */
static void light_round(struct optree_sym *s, struct sym_round *r)
{
	struct sym_move *m = s->moves.v + r->move;
	int64_t w = (int64_t)s->ring.channels * s->ring.fibres;
	int64_t cw = classes_of(m, r->n_moves, RWA_CW);
	int64_t ccw = classes_of(m, r->n_moves, RWA_CCW);
	int64_t most = cw > ccw ? cw : ccw;
	int64_t base[2] = { 0, 0 };

	r->slots = (int32_t)((most + w - 1) / w);
	r->per_slot = (int32_t)((most + r->slots - 1) / r->slots);
	for (int dir = 0; dir < 2 && r->slots == 1; dir++) {
		share_channels(m, r->n_moves, dir,
			       begin_shares(m, r->n_moves, dir, w));
	}
	for (size_t i = 0; i < r->n_moves; i++) {
		if (r->slots > 1) {
			m[i].width = (int32_t)(w / r->per_slot);
		}
		m[i].base = (int32_t)base[m[i].dir];
		base[m[i].dir] += (int64_t)m[i].classes *
				  (r->slots > 1 ? 1 : m[i].width);
	}
}

/* As many chunks as make every channel's share a whole number, or the most
 * allowed. */
static int choose_chunks(const struct optree_sym *s, bool cut, int most)
{
	int64_t q = 1, unit = cut ? 1 : 2;
	int64_t limit = cut ? most / 2 : most;

	for (size_t i = 0; i < s->moves.n; i++) {
		const struct sym_move *m = &s->moves.v[i];
		int64_t need = m->width / gcd(m->width, m->chunks / unit);

		q = q / gcd(q, need) * need;
		if (q > limit) {
			q = limit;
			break;
		}
	}
	return (int)(cut ? 2 * q : q);
}

/* The slowest of the moves of one direction that are lit in the slot. They
 * lie in order of their classes: *at is where to begin. */
static int64_t slowest(const struct optree_sym *s, const struct sym_round *r,
		       int dir, int slot, size_t *at)
{
	const struct sym_move *m = s->moves.v + r->move;
	int64_t from = (int64_t)slot * r->per_slot, to = from + r->per_slot;
	int64_t worst = 0;

	for (size_t i = *at; i < r->n_moves; i++) {
		int64_t share;

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
		share = (m[i].chunks + m[i].width - 1) / m[i].width;
		worst = share > worst ? share : worst;
	}
	return worst;
}

static void time_round(const struct optree_sym *s, struct sym_round *r)
{
	size_t at[2] = { 0, 0 };

	r->chunk_times = 0;
	for (int slot = 0; slot < r->slots; slot++) {
		int64_t a = slowest(s, r, RWA_CW, slot, &at[0]);
		int64_t b = slowest(s, r, RWA_CCW, slot, &at[1]);

		r->chunk_times += a > b ? a : b;
	}
}

/* From halves to chunks. */
static void cut_items(struct optree_sym *s)
{
	for (size_t h = 0; h < s->hops.n; h++) {
		struct sym_hop *hop = &s->hops.v[h];

		hop->first = hop->first * s->chunks / 2;
		hop->last = (hop->last + 1) * s->chunks / 2 - 1;
	}
	for (size_t i = 0; i < s->moves.n; i++) {
		s->moves.v[i].chunks = s->moves.v[i].chunks * s->chunks / 2;
	}
}

int optree_sym_light(struct optree_sym *s, int max_chunks, struct err *err)
{
	bool cut = false;

	s->max_len = 0;
	s->steps = s->chunk_times = s->lightpaths = 0;
	for (size_t i = 0; i < s->moves.n; i++) {
		count_halves(s, &s->moves.v[i], &cut);
	}
	for (size_t i = 0; i < s->rounds.n; i++) {
		light_round(s, &s->rounds.v[i]);
		s->steps += s->rounds.v[i].slots;
		if (s->steps > COLL_MAX_STEPS) {
			return err_set(err, WEFT_ELIMIT,
				       "more than %d steps", COLL_MAX_STEPS);
		}
	}
	s->chunks = choose_chunks(s, cut, max_chunks);
	cut_items(s);
	for (size_t i = 0; i < s->rounds.n; i++) {
		time_round(s, &s->rounds.v[i]);
		s->chunk_times += s->rounds.v[i].chunk_times;
	}
	for (size_t i = 0; i < s->moves.n; i++) {
		s->lightpaths += (int64_t)s->ring.n * s->moves.v[i].width;
	}
	return 0;
}

/* ---- proof ---- */

struct proof {
	const struct optree_sym *s;
	int n;
	uint8_t *have;		/* all-gather: halves held, by offset */
	int32_t *place;		/* all-to-all: of both halves, by destination */
	uint8_t *moved;		/* all-to-all: halves under way this round */
	int32_t *last;		/* tiling: end of the last lightpath, a class */
	int32_t *needs;		/* classes of a length that is proven; 0: not */
};

static void proof_fini(struct proof *p)
{
	free(p->have);
	free(p->place);
	free(p->moved);
	free(p->last);
	free(p->needs);
}

static int proof_init(struct proof *p, const struct optree_sym *s,
		      struct err *err)
{
	size_t n = (size_t)s->ring.n;

	*p = (struct proof){ .s = s, .n = s->ring.n };
	p->have = calloc(n, 1);
	p->place = calloc(2 * n, sizeof(*p->place));
	p->moved = calloc(n, 1);
	p->last = calloc(2 * n, sizeof(*p->last));
	p->needs = calloc(n, sizeof(*p->needs));
	if (!p->have || !p->place || !p->moved || !p->last || !p->needs) {
		return err_nomem(err);
	}
	p->have[0] = 3;
	return 0;
}

/* Which halves of the item a hop carries; 0: not whole halves. */
static int halves_of(const struct optree_sym *s, const struct sym_hop *h)
{
	int p = s->chunks;

	if (h->first == 0 && h->last == p - 1) {
		return 3;
	}
	if (p % 2) {
		return 0;
	}
	return h->first == 0 && h->last == p / 2 - 1     ? 1
	       : h->first == p / 2 && h->last == p - 1 ? 2
						       : 0;
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

/* What is sent is held. In all-to-all a half can go one way only. */
static int check_send(struct proof *p, size_t round, const struct sym_move *m,
		      const struct sym_hop *h, struct err *err)
{
	int halves = halves_of(p->s, h);

	if (!halves || h->at < 0 || h->at >= p->n) {
		return fault(err, round, m, h, "not a part of the item");
	}
	if (p->s->kind == COLL_ALLGATHER) {
		return (halves & ~p->have[h->at])
			       ? fault(err, round, m, h,
				       "sent before it is held")
			       : 0;
	}
	if (h->dest < 1 || h->dest >= p->n || (p->moved[h->dest] & halves)) {
		return fault(err, round, m, h, "sent twice or for nobody");
	}
	p->moved[h->dest] |= (uint8_t)halves;
	for (int k = 0; k < 2; k++) {
		if ((halves >> k & 1) && p->place[2 * h->dest + k] != h->at) {
			return fault(err, round, m, h,
				     "sent before it is held");
		}
	}
	return 0;
}

static int arrive(struct proof *p, size_t round, const struct sym_move *m,
		  const struct sym_hop *h, struct err *err)
{
	int halves = halves_of(p->s, h), to = to_of(p->n, m, h->at);

	if (p->s->kind == COLL_ALLGATHER) {
		if (p->have[to] & halves) {
			return fault(err, round, m, h, "delivered twice");
		}
		p->have[to] |= (uint8_t)halves;
		return 0;
	}
	p->moved[h->dest] = 0;
	for (int k = 0; k < 2; k++) {
		if (halves >> k & 1) {
			p->place[2 * h->dest + k] = to;
		}
	}
	return 0;
}

typedef int each_hop(struct proof *, size_t, const struct sym_move *,
		     const struct sym_hop *, struct err *);

static int for_hops(struct proof *p, size_t round, each_hop *f,
		    struct err *err)
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

static int check_arrived(const struct proof *p, struct err *err)
{
	for (int v = 1; v < p->n; v++) {
		bool there = p->s->kind == COLL_ALLGATHER
				     ? p->have[v] == 3
				     : p->place[2 * v] == v &&
					       p->place[2 * v + 1] == v;

		if (!there) {
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
	int n = p->n;
	int32_t *end = p->last, *first = p->last + n;

	for (int c = 0; c < n; c++) {
		end[c] = first[c] = -1;
	}
	for (int v = 0; v < n; v++) {
		int c = optree_sym_class(n, len, v);

		if (c < 0 || c >= n || end[c] > v) {
			goto clash;
		}
		first[c] = first[c] < 0 ? v : first[c];
		end[c] = v + len;
		p->needs[len] = c >= p->needs[len] ? c + 1 : p->needs[len];
	}
	for (int c = 0; c < p->needs[len]; c++) {
		if (end[c] > first[c] + n) {
			goto clash;
		}
	}
	return 0;
clash:
	return err_set(err, WEFT_EVERIFY,
		       "lightpaths of %d links on a ring of %d share a link "
		       "in one class", len, n);
}

static int64_t chunks_of(const struct optree_sym *s, const struct sym_move *m)
{
	int64_t sum = 0;

	for (size_t h = m->hop; h < m->hop + m->n_hops; h++) {
		sum += s->hops.v[h].last - s->hops.v[h].first + 1;
	}
	return sum;
}

/* Classes follow each other without overlap, and fit. */
static int prove_light(struct proof *p, size_t round, struct err *err)
{
	const struct sym_round *r = &p->s->rounds.v[round];
	int64_t w = (int64_t)p->s->ring.channels * p->s->ring.fibres;
	int64_t next[2] = { 0, 0 };
	int rc = 0;

	for (size_t i = r->move; i < r->move + r->n_moves; i++) {
		const struct sym_move *m = &p->s->moves.v[i];
		int64_t span = (int64_t)m->classes *
			       (r->slots > 1 ? 1 : m->width);
		bool fits = r->slots > 1
				    ? (int64_t)m->width * r->per_slot <= w
				    : m->base + span <= w;

		if (m->len < 1 || m->len >= p->n || m->width < 1) {
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
		if (!fits || m->classes < p->needs[m->len] ||
		    m->base < next[m->dir] ||
		    m->base + span > (r->slots > 1 ? (int64_t)r->slots *
					     r->per_slot : w) ||
		    m->chunks != chunks_of(p->s, m)) {
			return err_set(err, WEFT_EVERIFY,
				       "round %zu: the light of %d links does "
				       "not fit %lld channels", round, m->len,
				       (long long)w);
		}
		next[m->dir] = m->base + span;
	}
	return rc;
}

int optree_sym_verify(const struct optree_sym *s, struct err *err)
{
	struct proof p;
	int rc = proof_init(&p, s, err);

	for (size_t i = 0; i < s->rounds.n && !rc; i++) {
		rc = prove_light(&p, i, err);
		rc = rc ? rc : for_hops(&p, i, check_send, err);
		rc = rc ? rc : for_hops(&p, i, arrive, err);
	}
	rc = rc ? rc : check_arrived(&p, err);
	proof_fini(&p);
	return rc;
}
