/* SPDX-License-Identifier: Apache-2.0 */
/* The search for backups that share channels: what its files have in common. */
#ifndef WEFT_RWA_MESH_SHARED_SHARED_H
#define WEFT_RWA_MESH_SHARED_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/number/rng.h"
#include "lib/base/vec.h"
#include "rwa/mesh/private.h"

#define SHARED_NEVER (INT64_C(1) << 50)

/* Arcs of a working lightpath, and of its backup, if it has one, from `first` on. */
struct shared_routes {
	int32_t n[2];
	int64_t first;
};

struct shared_unit {
	int32_t demand;
	int32_t n[2];		/* hops held, working and backup */
	struct rwa_hop *hop;	/* working, then backup */
	int32_t penalty;
	bool pinned;		/* the working lightpath stays */
	VEC(struct shared_routes) routes;
};

/* Backups that hold a slot, or one that has it for itself. */
struct shared_slot {
	int32_t owner;		/* SLOT_FREE, SLOT_SHUT */
	int32_t n, cap;
	int32_t *backup;
};

struct shared_search {
	const struct rwa_mesh *m;
	struct mesh_paths paths;
	struct u64map shut;
	struct rng rng;
	struct arrays arrays;	/* owns what follows but the slots and the units' */
	double *base, *price;	/* of an arc */
	int64_t *at;		/* fibres before an arc */
	int32_t *links;		/* of the working lightpath that is placed: stamps by link */
	int32_t stamp;
	int32_t *wait;
	struct shared_unit *units;
	struct shared_slot *slots;	/* (fibre, channel) */
	VEC(int32_t) arcs;		/* of all routes */
	int32_t n_units, waiting, channels, width;
	int32_t scale;		/* of penalties */
	bool pinned;		/* a plan waits for it, beside what stays */
	int64_t fibres, round, held;	/* held: slots that are not free */
};

/* ---- slots.c ---- */

struct shared_slot *shared_slot_of(const struct shared_search *s, int32_t arc, int32_t fibre,
				   int32_t channel);

enum rwa_protect shared_kind(const struct shared_search *s, int32_t unit);

/* Takes or gives back what the unit holds, from lightpath `first` of the two on. */
void shared_put(struct shared_search *s, int32_t unit, int first, bool take);

/* The unit gives back what it holds, but for a working lightpath that stays, and waits. */
void shared_eject(struct shared_search *s, int32_t unit);

/* Arcs whose links are those of the working lightpath that is placed. */
void shared_mark(struct shared_search *s, const int32_t *arcs, int32_t n);

/* True when one of these is a link of the unit's working lightpath. */
bool shared_meets(const struct shared_search *s, int32_t unit);

/* The cheapest fibre of a hop; SHARED_NEVER: none. */
int64_t shared_hop_cost(const struct shared_search *s, int32_t arc, int32_t channel, bool shares,
			int32_t *fibre);

/* The cheapest channel of a route where it costs less than `most`: of equal ones a random one, or
 * beside what stays the first from *channel on, so that room is left for others, until someone is
 * in the way. */
int64_t shared_route_cost(struct shared_search *s, const struct shared_unit *u,
			  const int32_t *arcs, int32_t n, bool shares, int64_t most,
			  int32_t *channel);

/* Slots for so many channels; what is placed goes on. WEFT_ELIMIT. */
int shared_set_width(struct shared_search *s, int32_t width, struct err *err);

/* ---- placing.c ---- */

/* One more way for a unit: by random prices a route and its backup, or (pair) the cheapest pair,
 * either of which may be the working lightpath. */
void shared_find_routes(struct shared_search *s, struct shared_unit *u, bool pair);

/* Places who waits until all are placed, or so many were. What no way leads to waits at the
 * front, *stuck of them. */
void shared_run(struct shared_search *s, int64_t effort, const struct mesh_stop *stop,
		int32_t *stuck);

/* A few pairs at a time are placed again where that takes no more slots than
 * before, and at first a few more. */
void shared_save_slots(struct shared_search *s, int64_t effort, const struct mesh_stop *stop);

/* ---- bound.c ---- */

/* The most of the whole and of each network without a link; WEFT_EINFEASIBLE names a demand that
 * has no route without one. */
int shared_bound(const struct rwa_mesh *m, const int32_t *link_of, int32_t links,
		 const struct mesh_stop *stop, struct rwa_mesh_result *res, struct err *err);

#endif
