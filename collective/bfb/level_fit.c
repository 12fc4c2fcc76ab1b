/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the links of a node carry a level within a load, without a network of
 * flows: bounds.c asks it for every node that counting does not settle.
 *
 * Items that may use the same links are one group, found by a hash of the set of
 * links. Groups with the least choice are poured first, evenly over what their
 * links can still take. What does not fit then makes room by moving items of
 * other groups along augmenting paths from link to link. When no path is left,
 * the links that were reached are full and hold only items that can use no
 * others: their load is returned as the proof, and is tried next.
 */
#include "collective/bfb/balance.h"

#include <stdlib.h>
#include <string.h>

#include "collective/schedule/schedule.h"
#include "lib/base/vec.h"
#include "lib/base/number/rat.h"

void bfb_level_fini(struct bfb_level *s)
{
	free(s->groups);
	free(s->order);
	free(s->slot);
	free(s->flow);
}

void bfb_level_begin(struct bfb_level *s, int n_links, const int64_t *cap, int max_items)
{
	size_t slots = 16;

	while (slots < 2 * (size_t)max_items) {
		slots *= 2;
	}
	vec_grow((void **)&s->groups, &s->group_room, (size_t)max_items, sizeof(*s->groups));
	vec_grow((void **)&s->order, &s->order_room, (size_t)max_items, sizeof(*s->order));
	vec_grow((void **)&s->slot, &s->slot_room, slots, sizeof(*s->slot));
	memset(s->slot, 0, slots * sizeof(*s->slot));
	s->slot_mask = (uint32_t)slots - 1;
	s->n_links = n_links;
	s->n_groups = 0;
	s->cap = cap;
}

void bfb_level_add(struct bfb_level *s, uint64_t links)
{
	bfb_level_add_items(s, links, 1);
}

void bfb_level_add_items(struct bfb_level *s, uint64_t links, int64_t items)
{
	uint64_t hash = links * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t at = (uint32_t)(hash >> 32) & s->slot_mask;

	while (s->slot[at] && s->groups[s->slot[at] - 1].links != links) {
		at = (at + 1) & s->slot_mask;
	}
	if (!s->slot[at]) {
		s->groups[s->n_groups++] = (struct bfb_level_group){
			links, __builtin_popcountll(links), 0 };
		s->slot[at] = s->n_groups;
	}
	s->groups[s->slot[at] - 1].items += items;
}

/* ---- pouring ---- */

/* Numbers of the links of a set. */
static int list_links(uint64_t set, int *list)
{
	int n = 0;

	for (; set; set &= set - 1) {
		list[n++] = __builtin_ctzll(set);
	}
	return n;
}

/* The links of a group by their room, most first. */
static int list_by_room(const struct bfb_level *s, uint64_t set, int *list)
{
	int n = list_links(set, list);

	for (int i = 1; i < n; i++) {
		int w = list[i], k = i;

		for (; k > 0 && s->room[list[k - 1]] < s->room[w]; k--) {
			list[k] = list[k - 1];
		}
		list[k] = w;
	}
	return n;
}

/* Pours so many units onto the group's links, so that the rooms left are as
 * equal as can be; they may fall below zero. */
static void pour(struct bfb_level *s, int group, int64_t units)
{
	int64_t *flow = s->flow + (size_t)group * s->n_links, level, extra;
	int list[BFB_LEVEL_MAX_LINKS] = { 0 };
	int n = list_by_room(s, s->groups[group].links, list), k = 1;
	int64_t sum = s->room[list[0]];

	/* With k links in use the room left is (sum - units) / k each. */
	while (k < n && (sum - units) < s->room[list[k]] * k) {
		sum += s->room[list[k++]];
	}
	level = (sum - units) / k;
	level -= (sum - units) % k < 0;
	extra = sum - units - level * k;
	for (int i = 0; i < k; i++) {
		int64_t left = level + (i < extra);

		flow[list[i]] = s->room[list[i]] - left;
		s->room[list[i]] = left;
	}
}

/* s->order: groups by their number of links. */
static void sort_groups(struct bfb_level *s)
{
	int first[BFB_LEVEL_MAX_LINKS + 2] = { 0 };

	for (int g = 0; g < s->n_groups; g++) {
		first[s->groups[g].n_links + 1]++;
	}
	for (int n = 1; n <= s->n_links; n++) {
		first[n] += first[n - 1];
	}
	for (int g = 0; g < s->n_groups; g++) {
		s->order[first[s->groups[g].n_links]++] = g;
	}
}

/* So many units for each item. */
static void pour_all(struct bfb_level *s, int64_t units)
{
	vec_grow((void **)&s->flow, &s->flow_room,
		     (size_t)s->n_groups * s->n_links, sizeof(*s->flow));
	memset(s->flow, 0, (size_t)s->n_groups * s->n_links * sizeof(*s->flow));
	/* Those with the least choice first. */
	sort_groups(s);
	for (int i = 0; i < s->n_groups; i++) {
		int g = s->order[i];

		pour(s, g, s->groups[g].items * units);
	}
}

/* ---- moving ---- */

/* from[w] = the link from which w is reached, by group via[w]. */
struct bfb_augmenting_path {
	int from[BFB_LEVEL_MAX_LINKS], via[BFB_LEVEL_MAX_LINKS];
	uint64_t seen;
};

/* Finds links to which what is on `start` can move; returns one with room, -1
 * when there is none: then p->seen are full and no item on them can leave. */
static int search(const struct bfb_level *s, int start, struct bfb_augmenting_path *p)
{
	int queue[BFB_LEVEL_MAX_LINKS], head = 0, tail = 0;

	p->seen = UINT64_C(1) << start;
	queue[tail++] = start;
	while (head < tail) {
		int a = queue[head++];

		for (int g = 0; g < s->n_groups; g++) {
			uint64_t fresh = s->groups[g].links & ~p->seen;

			if (!fresh || s->flow[(size_t)g * s->n_links + a] <= 0) {
				continue;
			}
			p->seen |= fresh;
			for (; fresh; fresh &= fresh - 1) {
				int b = __builtin_ctzll(fresh);

				p->from[b] = a;
				p->via[b] = g;
				queue[tail++] = b;
				if (s->room[b] > 0) {
					return b;
				}
			}
		}
	}
	return -1;
}

/* Moves as much as the path from `start` to `end` allows. */
static void augment(struct bfb_level *s, int start, int end, const struct bfb_augmenting_path *p)
{
	int64_t amount = -s->room[start];

	amount = s->room[end] < amount ? s->room[end] : amount;
	for (int b = end; b != start; b = p->from[b]) {
		int64_t on = s->flow[(size_t)p->via[b] * s->n_links + p->from[b]];

		amount = on < amount ? on : amount;
	}
	for (int b = end; b != start; b = p->from[b]) {
		int64_t *flow = s->flow + (size_t)p->via[b] * s->n_links;

		flow[p->from[b]] -= amount;
		flow[b] += amount;
	}
	s->room[start] += amount;
	s->room[end] -= amount;
}

/* Items that can use only these links, per unit of their capacity. */
static struct bfb_ratio density(const struct bfb_level *s, uint64_t set)
{
	int64_t num = 0, den = 0, common;

	for (int g = 0; g < s->n_groups; g++) {
		num += s->groups[g].links & ~set ? 0 : s->groups[g].items;
	}
	for (int w = 0; w < s->n_links; w++) {
		den += set >> w & 1 ? s->cap[w] : 0;
	}
	common = rat_gcd(den, num);
	return (struct bfb_ratio){ num / common, den / common };
}

/* Moves what was poured until no link has more than its room; else *cut: no item on these can
 * leave. */
static bool move_all(struct bfb_level *s, uint64_t *cut)
{
	struct bfb_augmenting_path p;

	for (int w = 0; w < s->n_links; w++) {
		while (s->room[w] < 0) {
			int end = search(s, w, &p);

			if (end < 0) {
				*cut = p.seen;
				return false;
			}
			augment(s, w, end, &p);
		}
	}
	return true;
}

void bfb_level_fits(struct bfb_level *s, struct bfb_ratio *load, bool *fits)
{
	uint64_t cut;

	for (int w = 0; w < s->n_links; w++) {
		s->room[w] = load->num * s->cap[w];
	}
	pour_all(s, load->den);
	*fits = move_all(s, &cut);
	*load = *fits ? *load : density(s, cut);
}

bool bfb_level_carries(struct bfb_level *s, const int64_t *room, uint64_t *cut)
{
	memcpy(s->room, room, (size_t)s->n_links * sizeof(*room));
	pour_all(s, 1);
	return move_all(s, cut);
}
