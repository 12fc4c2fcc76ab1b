/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the room. First what all files build on: the arcs of a mesh by
 * node, and shortest paths under prices; then the bound that the prices
 * prove, and the state of the search for an assignment that meets it.
 */
#ifndef WEFT_RWA_MESH_PRIVATE_H
#define WEFT_RWA_MESH_PRIVATE_H

#include "lib/base/heap.h"
#include "lib/base/map.h"
#include "lib/base/number/rng.h"
#include "lib/graph/graph.h"
#include "rwa/mesh/mesh.h"

/* Arcs of a mesh by the node they leave (or, reversed, enter). */
struct mesh_adjacency {
	int32_t *first;		/* nodes + 1 */
	int32_t *arc;
};

/* Node v's arcs are arc[first[v]] to arc[first[v + 1] - 1], by number.
 * O(nodes + arcs). */
void adjacency_init(struct mesh_adjacency *a, const struct rwa_mesh *m, bool reversed);
void adjacency_fini(struct mesh_adjacency *a);

/* Lightpaths that a demand wants. */
static inline int64_t mesh_wanted(const struct rwa_mesh_demand *d)
{
	return (int64_t)d->count * (d->protect ? 2 : 1);
}

/* Arcs between the same two nodes, either way, share a fate. */
static inline bool mesh_same_link(const struct rwa_mesh *m, int32_t a, int32_t b)
{
	const struct rwa_mesh_arc *x = &m->arcs.v[a], *y = &m->arcs.v[b];

	return (x->src == y->src && x->dst == y->dst) || (x->src == y->dst && x->dst == y->src);
}

/* Fibres of an arc that are not blocked as a whole: fibres[arc]. */
void mesh_open_fibres(const struct rwa_mesh *m, int32_t *fibres);

/* A key for each slot. Fibre and channel may be RWA_MESH_ALL. */
static inline uint64_t mesh_slot_key(int32_t arc, int32_t fibre, int32_t channel)
{
	return (uint64_t)arc << 32 | (uint64_t)(fibre + 1) << 21 |
	       (uint64_t)(channel + 1);
}

/* The blocks as a set; whether it holds a slot, and whether others use a slot
 * near `channel`, so that this one is shut as well: within the guard
 * channels. */
void mesh_shut_init(const struct rwa_mesh *m, struct u64map *shut);
bool mesh_is_shut(const struct u64map *shut, const struct rwa_hop *h);
bool mesh_is_shut_near(const struct rwa_mesh *m, const struct u64map *shut, struct rwa_hop h);

/* spectrum.c */
/* True when the node's transceivers reach the channel. O(tunings). */
bool mesh_tunes(const struct rwa_mesh *m, int32_t node, int32_t channel);
/* Most active channels of a fibre with so many, by the guard channels alone; and
 * the fewest channels with so many active. */
int64_t mesh_band_slots(const struct rwa_mesh *m, int64_t channels);
int64_t mesh_band_min_channels(const struct rwa_mesh *m, int64_t slots);
/* Single channels in use, of fibres that are not closed whole, each once, by
 * channel. */
struct mesh_slots {
	struct rwa_hop *v;
	size_t n, cap;
};

void mesh_used_slots(const struct rwa_mesh *m, struct mesh_slots *out);
/* The certificate's `ends` and the node that needs them; more than
 * RWA_MESH_MAX_CHANNELS when its tuning range is too narrow for any number.
 * O((nodes + demands) * channels * tunings). */
void mesh_ends_bound(const struct rwa_mesh *m, int *channels, int32_t *node);

/* constrained_paths.c: cheapest paths under a loss budget or in pairs. */
struct path_label;
HEAP(label_heap, int32_t);

struct mesh_paths {
	const struct rwa_mesh *m;
	struct mesh_adjacency out, in;
	int32_t *fibres;	/* open, by arc */
	int32_t *link;		/* arcs of one link share a fate */
	int64_t budget;		/* of arcs and nodes passed */
	int32_t *arcs;		/* of the path found, in no order */
	int32_t n_arcs;
	/* private */
	struct arrays arrays;	/* owns all of them, and each of min[] */
	int64_t **min;	/* by destination */
	uint8_t *state;
	double *dist;
	int32_t *via, *top;
	struct graph_queue queue;
	VEC(struct path_label) labels;
	struct label_heap heap;	/* labels to go on from */
};

/* Number of the link of each arc: those between the same two nodes. */
void mesh_links(const struct rwa_mesh *m, int32_t *link);

/* For meshes with and without a budget. */
void mesh_paths_init(struct mesh_paths *w, const struct rwa_mesh *m);
void mesh_paths_fini(struct mesh_paths *w);
/* The cheapest path within the budget into w->arcs; *cost INFINITY without
 * one. WEFT_ELIMIT when there are too many paths to look at. */
int mesh_path_within(struct mesh_paths *w, const double *price, int32_t src,
		    int32_t dst, double *cost);
/* The cheapest pair of paths without common link, the budget left out, into
 * w->arcs; its cost, INFINITY without one. */
double mesh_path_pair(struct mesh_paths *w, const double *price, int32_t src, int32_t dst);
/* Loss of a path's arcs, to compare with the budget. */
int64_t mesh_path_loss(const struct mesh_paths *w, int32_t src, const int32_t *arcs, int32_t n);

/* When work stops: at a deadline, once *rounds is at_round (rounds NULL: never), or when
 * canceled (NULL: never). */
struct mesh_stop {
	struct deadline deadline;
	const int64_t *rounds;
	int64_t at_round;
	const volatile bool *cancel;
};

/* O(1), reads the clock where there is a deadline. */
bool stop_now(const struct mesh_stop *s);

/* Routes that a flow uses, one after the other: arcs[first .. first + hops - 1]
 * lead from src to dst in this order. Zeroed it is empty. */
struct mesh_route {
	int32_t src, dst;
	int32_t hops;
	int64_t first;
	double share;		/* of the flow between its ends */
};

struct mesh_routes {
	VEC(struct mesh_route) v;
	VEC(int32_t) arcs;
};

void mesh_routes_fini(struct mesh_routes *r);

/* flow.c: the certificate with the best prices found until it stops, the
 * flow's congestion, and the routes it uses (of the caller). WEFT_EINFEASIBLE names a demand
 * without a path. O(passes * sources * arcs * log nodes) where no budget and no pairs ask
 * for other paths. */
int mesh_bound(const struct rwa_mesh *m, const struct mesh_stop *stop,
	       struct rwa_certificate *out, struct mesh_routes *routes, struct err *err);
/* Prices by which the fewest lightpaths fit in so many channels: those of the
 * flow that turns the fewest away. */
int mesh_fit(const struct rwa_mesh *m, int channels, const struct mesh_stop *stop,
	     struct rwa_certificate *out, int64_t *fit, struct err *err);
/* Recomputes the sums and the bound of the prices, in integers. */
int certificate_sum(const struct rwa_mesh *m, struct rwa_certificate *c, struct err *err);

/* mip.c: *proven when lp_solve finds that all demands do not fit in so
 * many channels, within a fixed amount of work and the time (0: any). Not tried
 * on instances that are large or convert. */
int mesh_prove_too_few(const struct rwa_mesh *m, int channels,
		       const struct deadline *end, bool *proven, struct err *err);

/* configurations.c: *bound by the program over what one channel can carry, 0
 * when it does not apply or proves nothing; start: its rounded solution on so
 * many channels, a partial assignment, of the caller. A fixed amount of work within
 * the time (0: any). */
int mesh_configurations(const struct rwa_mesh *m, uint64_t seed, const struct deadline *end,
			const volatile bool *cancel, int *bound, struct rwa_assignment *start,
			struct err *err);

/* ---- search.c, search_init.c, warm_start.c, astar.c: guided ejection search
 * at a fixed number of channels ---- */

#define COST_BASE 16			/* base cost of an arc without price */
#define SCALE_FILL 3000		/* what is free is filled first */
/* No one's slot, and one that must not be used. */
#define SLOT_FREE (-1)
#define SLOT_SHUT (-2)
#define SEARCH_TOLL_SHUT (1 << 22)
#define SEARCH_LANES 16	/* channels that are compared at once */

/* A lightpath of the search, for as long as it lives: units are made once
 * and are sorted by their distance. Placed ones (hops > 0) hold exactly the
 * slots of hop[0 .. hops - 1]; the penalty is at least 1. */
struct search_unit {			/* one lightpath */
	int32_t demand;
	int32_t hops;		/* 0: waits */
	int32_t cap;
	struct rwa_hop *hop;
	int32_t penalty;
	int32_t partner;	/* the other one of a pair, -1: none */
	int64_t tabu;		/* fitting: may not eject before this round */
};

/* How a state (channel * nodes + node) was reached; valid when `stamp` is
 * the search's. cost: with the penalties; loss: milli-dB, add and drop not
 * counted. */
struct search_label {
	uint32_t cost, stamp;
	int64_t loss;
	int32_t from;		/* state before, -1 at the start */
	int32_t arc, fibre;	/* entered by; arc -1: channel changed */
};

HEAP(key_heap, uint64_t);

/* A route of the search, without channels: its cost without penalties, and
 * its arcs in order. */
struct search_route {
	int32_t cost, hops;
	int32_t *arcs;
};

/* The routes known between two nodes. */
struct search_pool {
	VEC(struct search_route) v;
};

/* Invariants between two placements: each slot's owner is the unit that
 * holds it, SLOT_FREE or SLOT_SHUT, and no two owners are nearer than the
 * guard channels; wait[0 .. waiting - 1] are the units without hops, the
 * first `stuck` of them not to be tried again; `whole` counts the
 * lightpaths placed, halves of pairs only together. `best` has the
 * assignment with the most since the channels were set, `max` of them. */
struct mesh_search {
	const struct rwa_mesh *m;
	struct mesh_adjacency out, in;
	struct rng rng;
	int channels, width;	/* width: channels there is memory for */
	struct arrays arrays;	/* owns all pointers below but owner, labels,
				 * active, tune and the units' hops */
	int32_t *cost;		/* base cost of an arc */
	int64_t *slot;		/* first slot of an arc: (fibre, channel) */
	int32_t *owner;		/* of a slot */
	int32_t *toll;		/* of a slot: what ejecting its owner costs */
	uint64_t *free;		/* of an arc, `words` of them: channels with a
				 * free fibre */
	uint64_t *may;		/* of a node, likewise: channels to use there */
	int32_t words;
	int32_t *sum, *last;	/* scratch: tolls of a route by channel, and
				 * owners of its last hop */
	struct search_pool *pools;
	int32_t n_pools;
	int32_t *pool;		/* of a demand; NULL: routes are not kept */
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
	const struct rwa_assignment *homes;	/* NULL: no one has a home */
	int32_t *home;		/* of a unit: path of homes, or -1 */
	bool *at_home;		/* the unit was last placed there */
	int32_t home_bonus;
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

/* Owner of a slot. Slots of a fibre stand next to each other; one that carries
 * a single lightpath has one for all channels. */
static inline int32_t *slot_at(const struct mesh_search *s, int32_t arc, int32_t fibre,
			int32_t channel)
{
	if (s->m->arcs.v[arc].is_single) {
		return &s->owner[s->slot[arc] + fibre];
	}
	return &s->owner[s->slot[arc] + (int64_t)fibre * s->width + channel];
}

/* What ejecting a unit costs: long ones are harder to place again. When not all
 * fit, one is as good as another. */
static inline int32_t unit_toll(const struct mesh_search *s, const struct search_unit *u)
{
	return s->fit ? 1 : u->penalty * u->hops;
}

/* True while every lightpath is tried once, where slots are free. */
static inline bool search_is_filling(const struct mesh_search *s)
{
	return s->filled < s->n_units;
}

/* False for no unit (-1). */
static inline bool is_placed(const struct mesh_search *s, int32_t unit)
{
	return unit >= 0 && s->units[unit].hops > 0;
}

/* Counts what a unit that comes or goes makes whole. */
static inline int32_t pair_share(const struct mesh_search *s, int32_t unit)
{
	int32_t partner = s->units[unit].partner;

	return partner < 0 ? 1 : is_placed(s, partner) ? 2 : 0;
}

/* astar.c */

/* Price of ejecting whoever is within the guard channels of a slot, -1 when
 * it is shut. A lightpath that was ejected one hop before, of owner `before`
 * (SLOT_FREE: none), is free. O(guard). */
int32_t search_eject_price(const struct mesh_search *s, int32_t arc, int32_t fibre,
			   int32_t channel, int32_t before);
/* The cheapest path of a unit into its hops, from which no one is ejected yet;
 * false when no path leads there. O(states log states). */
bool search_find_path(struct mesh_search *s, int32_t unit);
/* Room for a unit's hops. */
void search_reserve_hops(struct search_unit *u, int32_t hops);

/* routes.c */

/* Pools of known routes, with those given (NULL: none) to begin with. */
void search_make_pools(struct mesh_search *s, const struct mesh_routes *routes);
void search_free_pools(struct mesh_search *s);
/* Keeps the route of a unit's hops. */
void search_learn_route(struct mesh_search *s, int32_t unit);
/* All slots free, but for what keeps a node from a channel. O(slots). */
void search_clear_slots(struct mesh_search *s);
/* Gives a slot an owner, or SLOT_FREE or SLOT_SHUT. O(fibres). */
void search_set_slot(struct mesh_search *s, const struct rwa_hop *h, int32_t owner, int32_t toll);
/* The cheapest known route and channel of a unit into its hops, from which no
 * one is ejected yet; while slots are filled only where it is free. *look: none
 * is known, or it is time to look for another.
 * O(routes * hops * channels). */
void search_known_path(struct mesh_search *s, int32_t unit, bool *found, bool *look);

/* prices: of the certificate; routes: to begin with, NULL: none. fit: not all can be served, as
 * many as fit are looked for. WEFT_EINFEASIBLE, WEFT_ELIMIT. */
int search_new(const struct rwa_mesh *m, const int64_t *prices,
	       const struct mesh_routes *routes, uint64_t seed,
	       bool fit, struct mesh_search **out, struct err *err);
void search_free(struct mesh_search *s);
/* Lightpaths to serve: all that the add and drop limits let through. */
int64_t search_units(const struct mesh_search *s);
/* Starts at this many channels, guards at the edges among them. What was
 * placed below stays; with fewer channels than before, the emptiest are given
 * up. */
int search_set_channels(struct mesh_search *s, int channels, struct err *err);
/* Starts at this many channels with a partial assignment in place, each path
 * with its penalty; one that clashes with those before it is left out, as is
 * one of a demand that has enough of them. */
int search_begin(struct mesh_search *s, int channels, const struct rwa_assignment *begin,
		 const int32_t *penalties, struct err *err);
/* Writes an owner to all slots of a unit. */
void search_put_unit(struct mesh_search *s, int32_t unit, int32_t owner);
/* Gives units a home, each path of `homes` that fits one of its demand: those that
 * are there, then any other. At home the penalty is higher by the bonus; who waits
 * goes home when it is free. homes is borrowed until they are forgotten.
 * O(lightpaths * those of their demand). */
void search_set_homes(struct mesh_search *s, const struct rwa_assignment *homes, const bool *fits,
		      int32_t bonus);
void search_forget_homes(struct mesh_search *s);
/* Places a unit that waits at home, if it has one that is free. */
bool search_go_home(struct mesh_search *s, int32_t unit);
/* Looks until `target` lightpaths are served, `effort` were placed or, once each
 * has been tried, it is told to stop. The most that were ever served at once since
 * the number of channels was set. */
int64_t search_run(struct mesh_search *s, int64_t target, int64_t effort,
		   const struct mesh_stop *stop);
/* True when nothing that waits could be placed, whatever was ejected. */
bool search_is_idle(const struct mesh_search *s);
/* The demand of a lightpath that waits, that was hardest to place. There must be
 * lightpaths. O(waiting). */
int32_t search_waiting(const struct mesh_search *s);
/* The assignment that served the most. */
void search_best(const struct mesh_search *s, struct rwa_assignment *out);

/* portfolio.c: as search_run() with two searches, on one thread or two;
 * *winner serves the most, the first of equals. Each does the whole effort. */
#define PORTFOLIO 2

int64_t portfolio_run(struct mesh_search *const searches[PORTFOLIO], int threads, int64_t target,
		      int64_t effort, const struct mesh_stop *stop, int *winner);

/* ring_mesh.c: all demands by rwa_ring_route(), of the caller, and the two
 * arcs that prove its bound when they alone have a price. *channels 0 and
 * nothing in *out when the mesh is no plain duplex ring. */
int mesh_ring_start(const struct rwa_mesh *m, struct rwa_assignment *out,
		    int *channels, int32_t *pair, struct err *err);

/* shared.c: a mesh with shared backups, or with pinned working lightpaths; as rwa_mesh_solve(),
 * *res being empty. */
int mesh_solve_shared(const struct rwa_mesh *m, const struct rwa_mesh_options *opt,
		      struct rwa_mesh_result *res, struct err *err);

/* moved.c: moves as few lightpaths as it can, at the channels and with
 * the lightpaths served that `res` has. Paths of `before` belong to m's
 * demands, ascending. Sets moved and moved_bound. */
int mesh_min_moved(const struct rwa_mesh *m, struct mesh_search *search,
		   const struct rwa_assignment *before, const struct mesh_stop *stop,
		   struct rwa_mesh_result *res, struct err *err);
/* As many lightpaths as res->lightpaths_bound around what may stay of `before`, in
 * the channels given, or (0) those of `before`, or the bound's when that is more,
 * or some more. Nothing is set where that is not found, or `before` has far more
 * channels than the bound, or more than `res`. */
int mesh_start_previous(const struct rwa_mesh *m, struct mesh_search *search,
			const struct rwa_assignment *before, int channels,
			const struct mesh_stop *stop, struct rwa_mesh_result *res,
			struct err *err);
/* objectives.c: sets moved_bound, by the certificate. fits: the paths of `before`
 * that may stay; *common: those that m still wants.
 * O(sources * nodes * arcs). */
void mesh_bound_moved(const struct rwa_mesh *m, const struct rwa_assignment *before,
		      const bool *fits, struct rwa_mesh_result *res, int64_t *common);
/* Shortens the longest loss, at the same channels. Sets loss_mdb and
 * loss_bound_mdb. */
int mesh_min_max_loss(const struct rwa_mesh *m, const struct rwa_mesh_options *opt,
		      const struct mesh_stop *stop, struct rwa_mesh_result *res, struct err *err);

#endif
