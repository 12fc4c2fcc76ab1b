/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The balancing program of direct-connect-topologies eq. (3), eq. (13) with
 * unequal capacities: what node u takes over each of its links at distance
 * t, so that the fullest link has the least load. Exact.
 *
 * Items (shards) that may use the same links are one group: their shares can
 * be averaged, so the optimum of the grouped program is that of eq. (3).
 */
#ifndef WEFT_COLLECTIVE_BFB_BALANCE_H
#define WEFT_COLLECTIVE_BFB_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct bfb_group {
	int64_t items;
	int first, n;	/* its links: use[first .. first + n - 1], n >= 1 */
};

struct bfb_program {
	int n_links, n_groups;
	int64_t *cap;			/* of a link, >= 1 */
	struct bfb_group *groups;
	int *use;			/* links of the groups */
	int n_use;
};

/* A non-negative fraction in lowest terms. */
struct bfb_ratio {
	int64_t num, den;
};

/*
 * *load = the least possible load of the fullest link, in items per unit of
 * capacity: the maximum over sets S of links of (items that can use only S)
 * / capacity(S). All sets are looked at while they are few, O(d 2^d); beyond
 * that bfb_program_prove starts from all links. items * capacity must stay below
 * 2^62.
 */
int bfb_program_solve(const struct bfb_program *b, struct bfb_ratio *load, struct err *err);

/* The same for up to BFB_MAX_SUBSET_LINKS links from items[set], the number of
 * items that may use exactly the links of that set (bits): 2^n_links
 * numbers, which it overwrites. */
#define BFB_MAX_SUBSET_LINKS 8
struct bfb_ratio bfb_subsets_load(int64_t *items, const int64_t *cap, int n_links);

/* The same from any set `tight` of links: a maximum flow proves its load the
 * least, or its minimum cut is a set with a larger one, taken next; at most
 * n_links times. tight ends as a set that proves *load. */
int bfb_program_prove(const struct bfb_program *b, bool *tight, struct bfb_ratio *load,
		  struct err *err);

/* True when pouring the items onto the least loaded links, a few times over,
 * shows that the least load is smaller than `limit`; false when it does not
 * show. For many links far cheaper than bfb_program_solve. */
bool bfb_program_is_below(const struct bfb_program *b, struct bfb_ratio limit);

/* Cuts every item into `chunks` and gives each link at most *most of them per
 * unit of capacity: share[i] chunks of the group go over link use[i]. Where
 * whole chunks do not fit, *most is raised to the least value at which they
 * do: the optimum of the integer program (12) when that is above what was
 * asked. A maximum flow each time. */
int bfb_program_split(const struct bfb_program *b, int64_t chunks, struct bfb_ratio *most,
		  int64_t *share, struct err *err);

/* Sends `chunks` of every item over links that take room[w] whole chunks. When
 * that *fits, share[i] chunks of the group go over link use[i]; else `cut`
 * holds links that are full, and the items that can use no others are too
 * many for them. A maximum flow. */
int bfb_program_fit(const struct bfb_program *b, int64_t chunks, const int64_t *room,
		int64_t *share, bool *cut, bool *fits, struct err *err);

/* Below, at or above 0 as a is less than, equal to or more than b. O(1). */
int bfb_ratio_cmp(struct bfb_ratio a, struct bfb_ratio b);
/* Rounded up; the result must fit. */
int64_t bfb_ratio_ceil_mul(struct bfb_ratio r, int64_t factor);

/* ---- one level as a question ---- */

/*
 * Can the links of a node carry a level within a given load? The balancing
 * program of balance.h as a question, for up to 64 links: items that may use
 * the same links are one group, poured evenly; what is too much on a link
 * then moves along augmenting paths between the links.
 */
#define BFB_LEVEL_MAX_LINKS 64

struct bfb_level_group {
	uint64_t links;		/* that its items may use */
	int n_links;
	int64_t items;
};

/* Room for the work; zero it first. */
struct bfb_level {
	int n_links, n_groups;
	const int64_t *cap;		/* of a link, >= 1 */
	struct bfb_level_group *groups;
	int32_t *order;			/* groups, least choice first */
	int32_t *slot;			/* hash of the links -> group + 1 */
	uint32_t slot_mask;
	int64_t *flow;			/* a row of n_links a group */
	size_t group_room, order_room, slot_room, flow_room;
	int64_t room[BFB_LEVEL_MAX_LINKS];	/* what a link can still take */
};

void bfb_level_fini(struct bfb_level *s);

/* Begins a level of at most max_items items. */
void bfb_level_begin(struct bfb_level *s, int n_links, const int64_t *cap, int max_items);
/* An item that may use these links, at least one; or several. O(1). */
void bfb_level_add(struct bfb_level *s, uint64_t links);
void bfb_level_add_items(struct bfb_level *s, uint64_t links, int64_t items);

/*
 * True when shares exist with no link above *load. Otherwise *load is set to
 * the load of a set of links that proves it: items that can use no other
 * links, per unit of their capacity. Asked again until it fits, that ends
 * with the least load (Dinkelbach), after at most n_links times.
 * O(groups n_links log) and a search over the groups an augmentation.
 */
void bfb_level_fits(struct bfb_level *s, struct bfb_ratio *load, bool *fits);

/* True when shares exist with room[] items on the links at most. Otherwise *cut
 * is a set of links whose room is less than the items that can use no other. All items times the
 * links must stay below 2^63. As bfb_level_fits. */
bool bfb_level_carries(struct bfb_level *s, const int64_t *room, uint64_t *cut);

#endif
