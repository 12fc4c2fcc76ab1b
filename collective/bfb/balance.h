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
#include <stdint.h>

#include "lib/base/err.h"

struct balance_group {
	int64_t items;
	int first, n;	/* its links: use[first .. first + n - 1], n >= 1 */
};

struct balance {
	int n_links, n_groups;
	int64_t *cap;			/* of a link, >= 1 */
	struct balance_group *groups;
	int *use;			/* links of the groups */
	int n_use;
};

/* A non-negative fraction in lowest terms. */
struct ratio {
	int64_t num, den;
};

/*
 * *load = the least possible load of the fullest link, in items per unit of
 * capacity: the maximum over sets S of links of (items that can use only S)
 * / capacity(S). All sets are looked at while they are few, O(d 2^d); beyond
 * that balance_prove starts from all links. items * capacity must stay below
 * 2^62.
 */
int balance_solve(const struct balance *b, struct ratio *load,
		  struct err *err);

/* The same for up to BALANCE_MAX_SUBSETS links from items[set], the number of
 * items that may use exactly the links of that set (bits): 2^n_links
 * numbers, which it overwrites. */
#define BALANCE_MAX_SUBSETS 8
struct ratio balance_subsets(int64_t *items, const int64_t *cap, int n_links);

/* The same from any set `tight` of links: a maximum flow proves its load the
 * least, or its minimum cut is a set with a larger one, taken next; at most
 * n_links times. tight ends as a set that proves *load. */
int balance_prove(const struct balance *b, bool *tight, struct ratio *load,
		  struct err *err);

/* True when pouring the items onto the least loaded links, a few times over,
 * shows that the least load is smaller than `limit`; false when it does not
 * show. For many links far cheaper than balance_solve. */
bool balance_is_below(const struct balance *b, struct ratio limit);

/* Cuts every item into `chunks` and gives each link at most *most of them per
 * unit of capacity: share[i] chunks of the group go over link use[i]. Where
 * whole chunks do not fit, *most is raised to the least value at which they
 * do: the optimum of the integer program (12) when that is above what was
 * asked. A maximum flow each time. */
int balance_split(const struct balance *b, int64_t chunks, struct ratio *most,
		  int64_t *share, struct err *err);

/* Sends `chunks` of every item over links that take room[w] whole chunks. When
 * that *fits, share[i] chunks of the group go over link use[i]; else `cut`
 * holds links that are full, and the items that can use no others are too
 * many for them. A maximum flow. */
int balance_fit(const struct balance *b, int64_t chunks, const int64_t *room,
		int64_t *share, bool *cut, bool *fits, struct err *err);

int ratio_cmp(struct ratio a, struct ratio b);
/* Rounded up; the result must fit. */
int64_t ratio_ceil_mul(struct ratio r, int64_t factor);

#endif
