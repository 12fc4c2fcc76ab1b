/*
 * Can the links of a node carry a level within a given load? The balancing
 * program of balance.h as a question, for up to 64 links: items that may use
 * the same links are one group, poured evenly; what is too much on a link
 * then moves along augmenting paths between the links.
 */
#ifndef WEFT_COLLECTIVE_BFB_LEVEL_FIT_H
#define WEFT_COLLECTIVE_BFB_LEVEL_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collective/bfb/balance.h"
#include "lib/base/err.h"

#define SPREAD_MAX_LINKS 64

struct spread_group {
	uint64_t links;		/* that its items may use */
	int n_links;
	int64_t items;
};

/* Room for the work; zero it first. */
struct spread {
	int n_links, n_groups;
	const int64_t *cap;		/* of a link, >= 1 */
	struct spread_group *groups;
	int32_t *order;			/* groups, least choice first */
	int32_t *slot;			/* hash of the links -> group + 1 */
	uint32_t slot_mask;
	int64_t *flow;			/* a row of n_links a group */
	size_t group_room, order_room, slot_room, flow_room;
	int64_t room[SPREAD_MAX_LINKS];	/* what a link can still take */
};

void spread_fini(struct spread *s);

/* Begins a level of at most most_items items. */
int spread_begin(struct spread *s, int n_links, const int64_t *cap,
		 int most_items, struct err *err);
/* An item that may use these links, at least one. O(1). */
void spread_add(struct spread *s, uint64_t links);

/*
 * True when shares exist with no link above *load. Otherwise *load is set to
 * the load of a set of links that proves it: items that can use no other
 * links, per unit of their capacity. Asked again until it fits, that ends
 * with the least load (Dinkelbach), after at most n_links times.
 * O(groups n_links log) and a search over the groups an augmentation.
 */
int spread_fits(struct spread *s, struct ratio *load, bool *fits,
		struct err *err);

#endif
