/* Private to the search of mesh_search*.c: what it keeps, and its slots. */
#ifndef WEFT_RWA_MESH_SEARCH_H
#define WEFT_RWA_MESH_SEARCH_H

#include "rwa/mesh/private.h"

#define BASE 16			/* base cost of an arc without price */
#define SCALE_FILL 3000		/* what is free is filled first */
/* No one's slot, and one that must not be used. */
#define FREE (-1)
#define SHUT (-2)

struct search_unit {			/* one lightpath */
	int32_t demand;
	int32_t hops;		/* 0: waits */
	int32_t cap;
	struct rwa_hop *hop;
	int32_t penalty;
	int32_t partner;	/* the other one of a pair, -1: none */
	int64_t tabu;		/* fitting: may not eject before this round */
};

struct search_label {
	uint32_t cost, stamp;
	int64_t loss;
	int32_t from;		/* state before, -1 at the start */
	int32_t arc, fibre;	/* entered by; arc -1: channel changed */
};

HEAP(key_heap, uint64_t);

struct mesh_search {
	const struct rwa_mesh *m;
	struct mesh_adjacency out, in;
	struct rng rng;
	int channels, width;	/* width: channels there is memory for */
	int32_t *cost;		/* base cost of an arc */
	int64_t *slot;		/* first slot of an arc: (fibre, channel) */
	int32_t *owner;		/* of a slot */
	struct search_unit *units;
	int32_t n_units;
	int32_t *wait;		/* units without a place */
	int32_t waiting;
	int32_t **dist;		/* by destination: base cost from each node */
	int64_t **min;	/* by destination: least loss from each node */
	bool *active;		/* channel: may be used at all */
	bool *tune;		/* (node, channel); NULL: all */
	int32_t *link;		/* of an arc */
	int32_t *risk;		/* of a link: stamp when the partner is on it */
	int32_t risk_stamp;
	int32_t **trouble;	/* of a pair's demand: how often each link had
				 * both; NULL: not yet */
	bool fit;		/* not all can be served */
	int32_t slack;		/* how much more expensive the path of one that is
				 * taken in for another may be */
	struct search_label *labels;
	uint32_t stamp;
	struct key_heap heap;
	bool *changed;		/* node's channels were all reached */
	int32_t filled;		/* lightpaths placed at first */
	int32_t scale;		/* cost of a taken slot at penalty 1 */
	int64_t whole;		/* served: placed, partner as well */
	int64_t round;
	int32_t stuck;		/* wait[0 .. stuck - 1] have no place at all */
	int64_t calm;		/* rounds without progress */
	int32_t scale_index;		/* of the scales */
	int64_t max;		/* served at once */
	struct rwa_assignment best;
};

static inline int32_t *slot_at(const struct mesh_search *s, int32_t arc, int32_t fibre,
			int32_t channel)
{
	return &s->owner[s->slot[arc] + (int64_t)fibre * s->width + channel];
}

static inline void put_unit(struct mesh_search *s, int32_t unit, int32_t who)
{
	struct search_unit *u = &s->units[unit];

	for (int32_t i = 0; i < u->hops; i++) {
		*slot_at(s, u->hop[i].arc, u->hop[i].fibre,
			 u->hop[i].channel) = who;
	}
}

static inline bool is_placed(const struct mesh_search *s, int32_t unit)
{
	return unit >= 0 && s->units[unit].hops > 0;
}

/* Counts what a unit that comes or goes makes whole. */
static inline int32_t share(const struct mesh_search *s, int32_t unit)
{
	int32_t partner = s->units[unit].partner;

	return partner < 0 ? 1 : is_placed(s, partner) ? 2 : 0;
}

/* astar.c */

/* Price of ejecting whoever is within the guard channels of a slot, -1 when
 * it is shut. A lightpath that was ejected one hop before, of owner `before`
 * (FREE: none), is free. O(guard). */
int32_t search_eject_price(const struct mesh_search *s, int32_t arc, int32_t fibre,
			   int32_t channel, int32_t before);
/* The cheapest path of a unit into its hops, from which no one is ejected yet;
 * not *found when no path leads there. WEFT_ENOMEM. O(states log states). */
int search_find_path(struct mesh_search *s, int32_t unit, bool *found);
/* Room for a unit's hops. WEFT_ENOMEM. */
int search_reserve_hops(struct search_unit *u, int32_t hops);

#endif
