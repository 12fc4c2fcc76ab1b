/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search at a number of channels: room for them, what stays in place from
 * before, and beginning with lightpaths that others placed. With fewer
 * channels than before, the emptiest ones are given up and the others
 * renumbered, as this leaves the most in place; where blocks or tuning ranges
 * make channels differ, they keep their numbers.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "rwa/mesh/private.h"

#define MAX_STATES ((int64_t)1 << 26)
#define MAX_SLOTS ((int64_t)1 << 28)

/* ---- number of channels ---- */

/* Marks what must not be used, in channels 0..width-1. */
static void shut_slots(struct mesh_search *s)
{
	for (size_t i = 0; i < s->m->blocks.n; i++) {
		const struct rwa_mesh_block *b = &s->m->blocks.v[i];
		int32_t reach = b->filter ? 0 : s->m->guard.between;
		bool fibres = b->fibre == RWA_MESH_ALL;
		bool channels = b->channel == RWA_MESH_ALL;
		int32_t f_end = fibres ? s->m->arcs.v[b->arc].fibres
				       : b->fibre + 1;
		int32_t c_end = channels ? s->width : b->channel + reach + 1;
		int32_t from = channels || b->channel < reach
				       ? 0 : b->channel - reach;

		c_end = c_end < s->width ? c_end : s->width;
		for (int32_t f = fibres ? 0 : b->fibre; f < f_end; f++) {
			for (int32_t c = from; c < c_end; c++) {
				search_set_slot(s, &(struct rwa_hop){ b->arc, f, c }, SLOT_SHUT,
						SEARCH_TOLL_SHUT);
			}
		}
	}
}

/* True when channels can be exchanged for one another. */
static bool are_alike(const struct rwa_mesh *m)
{
	return m->blocks.n == 0 && m->tunings.n == 0;
}

/* Which channels may be active at all. Where channels are alike, every one that
 * the guards leave between active ones can be moved to the next that is not, so
 * that nothing is lost by leaving them dark. */
static void set_band(struct mesh_search *s)
{
	const struct rwa_mesh_guard *g = &s->m->guard;
	int32_t step = are_alike(s->m) ? g->between + 1 : 1;

	for (int32_t c = g->below; c < s->width; c += step) {
		s->active[c] = true;
	}
	for (int32_t v = 0; s->tune && v < (int32_t)s->m->nodes.n; v++) {
		for (int32_t c = 0; c < s->width; c++) {
			s->tune[(int64_t)v * s->width + c] = mesh_tunes(s->m, v, c);
		}
	}
}

/* Makes the tables for `width` channels; what they held is lost.
 * WEFT_ELIMIT beyond MAX_STATES, which A*'s keys can number, or MAX_SLOTS. */
static int make_room(struct mesh_search *s, int width, struct err *err)
{
	int64_t slots = 0;

	width = (width + SEARCH_LANES - 1) / SEARCH_LANES * SEARCH_LANES;
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		s->slot[e] = slots;
		slots += (int64_t)s->m->arcs.v[e].fibres *
			 (s->m->arcs.v[e].is_single ? 1 : width);
	}
	s->slot[s->m->arcs.n] = slots;
	if (slots > MAX_SLOTS || (int64_t)width * s->m->nodes.n > MAX_STATES) {
		return err_set(err, WEFT_ELIMIT,
			       "%d channels on %zu arcs: too large to search",
			       width, s->m->arcs.n);
	}
	free(s->owner);
	free(s->toll);
	free(s->free);
	free(s->may);
	free(s->sum);
	free(s->last);
	free(s->labels);
	free(s->active);
	free(s->tune);
	s->words = (width + 63) / 64;
	s->toll = x_new((size_t)slots + 1, sizeof(*s->toll));
	s->free = x_new((size_t)s->words * s->m->arcs.n + 1, sizeof(*s->free));
	s->may = x_new((size_t)s->words * s->m->nodes.n + 1, sizeof(*s->may));
	s->sum = x_new((size_t)width + 1, sizeof(*s->sum));
	s->last = x_new((size_t)width + 1, sizeof(*s->last));
	s->width = width;
	s->tune = NULL;
	s->active = x_new((size_t)width + 1, sizeof(*s->active));
	s->owner = x_alloc((size_t)slots + 1, sizeof(*s->owner));
	s->labels = x_new((size_t)width * s->m->nodes.n + 1, sizeof(*s->labels));
	if (s->m->tunings.n) {
		s->tune = x_new((size_t)width * s->m->nodes.n + 1, sizeof(*s->tune));
	}
	set_band(s);
	return 0;
}

/* Entries are lightpaths << 24 | channel: the most used first. */
static int by_use(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x > *y ? -1 : *x < *y;
}

/* New number of every channel, -1 when it is given up: the emptiest first,
 * unless what is blocked or tuned makes channels differ. */
static void renumber(const struct mesh_search *s, int channels, int32_t *number)
{
	int64_t *use = x_new((size_t)s->channels + 1, sizeof(*use));
	int32_t active = 0, next = 0;

	for (int32_t i = 0; i < s->n_units; i++) {
		for (int32_t h = 0; h < s->units[i].hops; h++) {
			use[s->units[i].hop[h].channel]++;
		}
	}
	for (int32_t c = 0; c < s->channels; c++) {
		number[c] = c < channels ? c : -1;
		if (s->active[c]) {
			use[active++] = use[c] << 24 | c;
		}
	}
	if (are_alike(s->m) && channels < s->channels) {
		qsort(use, (size_t)active, sizeof(*use), by_use);
		for (int32_t c = 0; c < s->channels; c++) {
			if (s->active[c]) {
				number[use[next++] & 0xffffff] = c < channels ? c : -1;
			}
		}
	}
	free(use);
}

/* Gives the units' hops their channels' new numbers. Those on a channel
 * that is given up wait, and penalties begin from 1. */
static void move_units(struct mesh_search *s, const int32_t *number)
{
	s->waiting = 0;
	for (int32_t i = 0; i < s->n_units; i++) {
		struct search_unit *u = &s->units[i];

		u->penalty = 1;
		u->tabu = 0;
		for (int32_t h = 0; h < u->hops; h++) {
			int32_t c = number[u->hop[h].channel];

			if (c < 0) {
				u->hops = 0;
				break;
			}
			u->hop[h].channel = c;
		}
		if (!u->hops) {
			s->wait[s->waiting++] = i;
		}
	}
	/* Taken from the end: the longest first when all are to be served, the
	 * cheapest first when as many as fit are. */
	for (int32_t i = 0; s->fit && i < s->waiting / 2; i++) {
		int32_t unit = s->wait[i];

		s->wait[i] = s->wait[s->waiting - 1 - i];
		s->wait[s->waiting - 1 - i] = unit;
	}
}

int search_set_channels(struct mesh_search *s, int channels, struct err *err)
{
	int32_t *number = x_new((size_t)s->channels + 1, sizeof(*number));
	int rc = 0;

	channels -= s->m->guard.above;
	channels = channels > 0 ? channels : 0;
	renumber(s, channels, number);
	move_units(s, number);
	free(number);
	if (channels > s->width || !s->owner) {
		rc = make_room(s, channels, err);
	}
	if (rc) {
		return rc;
	}
	s->channels = channels;
	s->whole = 0;
	for (int32_t i = 0; i < s->n_units; i++) {
		/* Each half of a pair counts both once. */
		s->whole += is_placed(s, i) ? pair_share(s, i) > 0 : 0;
	}
	s->max = -1;
	s->stuck = s->scale_index = 0;
	s->calm = 0;
	s->filled = s->n_units - s->waiting;
	search_clear_slots(s);
	shut_slots(s);
	for (int32_t i = 0; i < s->n_units; i++) {
		search_put_unit(s, i, i);
	}
	return 0;
}

/* ---- beginning with lightpaths in place ---- */

/* True when a slot and its guard channels are free. */
static bool is_clear(const struct mesh_search *s, const struct rwa_hop *h)
{
	return h->channel < s->channels &&
	       search_eject_price(s, h->arc, h->fibre, h->channel, SLOT_FREE) == 0;
}

/* Copies hops to a unit. */
static void copy_path(struct search_unit *u, const struct rwa_hop *hop, int32_t hops)
{
	search_reserve_hops(u, hops);
	memcpy(u->hop, hop, (size_t)hops * sizeof(*hop));
	u->hops = hops;
}

/* Units as lists by demand: first[], then next[]. */
static void list_units(const struct mesh_search *s, int32_t *first, int32_t *next)
{
	for (size_t d = 0; d < s->m->demands.n; d++) {
		first[d] = -1;
	}
	for (int32_t i = s->n_units - 1; i >= 0; i--) {
		next[i] = first[s->units[i].demand];
		first[s->units[i].demand] = i;
	}
}

/* The next unit of a list; of pairs the one whose partner has its place. */
static int32_t next_unit(const struct mesh_search *s, int32_t *first, const int32_t *next)
{
	int32_t u = *first;

	if (u < 0 || s->units[u].partner < 0) {
		*first = u < 0 ? u : next[u];
		return u;
	}
	for (int32_t k = u; k >= 0; k = next[k]) {
		if (!is_placed(s, k) && is_placed(s, s->units[k].partner)) {
			return k;
		}
	}
	while (u >= 0 && is_placed(s, u)) {
		u = next[u];
	}
	*first = u;
	return u;
}

/* Gives paths their units; unit[]: of each path, or -1. */
static void seat(struct mesh_search *s, const struct rwa_assignment *begin,
		 int32_t *first, const int32_t *next, int32_t *unit)
{
	for (size_t i = 0; i < begin->paths.n; i++) {
		const struct rwa_path *p = &begin->paths.v[i];
		const struct rwa_hop *hop = begin->hops.v + p->first;
		int32_t u, h = 0;

		unit[i] = -1;
		while (h < p->hops && is_clear(s, &hop[h])) {
			h++;
		}
		u = h < p->hops ? -1 : next_unit(s, &first[p->demand], next);
		if (u < 0) {
			continue;
		}
		copy_path(&s->units[u], hop, p->hops);
		search_put_unit(s, u, u);
		unit[i] = u;
	}
}

/* Slots are numbered by the width, so that the channels are set first, then
 * paths are given their units as long as they do not clash, and setting the
 * channels again counts what is in place. */
int search_begin(struct mesh_search *s, int channels, const struct rwa_assignment *begin,
		 const int32_t *penalties, struct err *err)
{
	size_t n = (size_t)s->n_units + 1;
	int32_t *first = x_new(s->m->demands.n + 1, sizeof(*first));
	int32_t *next = x_new(n, sizeof(*next));
	int32_t *unit = x_new(begin->paths.n + 1, sizeof(*unit));
	int rc;

	for (int32_t i = 0; i < s->n_units; i++) {
		s->units[i].hops = 0;
	}
	rc = search_set_channels(s, channels, err);
	if (!rc) {
		list_units(s, first, next);
		seat(s, begin, first, next, unit);
	}
	/* Counts again, now with what is in place. */
	if (!rc) {
		rc = search_set_channels(s, channels, err);
	}
	for (size_t i = 0; !rc && i < begin->paths.n; i++) {
		if (unit[i] >= 0) {
			s->units[unit[i]].penalty = penalties[i];
			search_put_unit(s, unit[i], unit[i]);
		}
	}
	free(first);
	free(next);
	free(unit);
	return rc;
}

/* ---- homes ---- */

/* Is a unit where path p of the homes is? */
static bool is_at(const struct mesh_search *s, int32_t unit, size_t p)
{
	const struct rwa_path *path = &s->homes->paths.v[p];
	const struct search_unit *u = &s->units[unit];

	return u->hops == path->hops &&
	       memcmp(u->hop, s->homes->hops.v + path->first,
		      (size_t)u->hops * sizeof(*u->hop)) == 0;
}

/* Gives a unit home p, and its partner the other of the pair. */
static void settle_unit(struct mesh_search *s, const bool *fits, int32_t unit, size_t p,
			size_t mate)
{
	int32_t partner = s->units[unit].partner;

	s->home[unit] = fits[p] ? (int32_t)p : -1;
	if (partner >= 0) {
		s->home[partner] = fits[mate] ? (int32_t)mate : -1;
	}
}

/* Gives the units of one demand, a list, the homes first..end-1: with `there`, to
 * those that are there. `done`: units and homes that have one. */
static void settle_demand(struct mesh_search *s, const bool *fits, const int32_t *list,
			  const int32_t *next, size_t first, size_t end, bool there,
				  bool *unit_done,
			  bool *home_done)
{
	for (size_t p = first; p < end; p++) {
		for (int32_t u = *list; !home_done[p] && u >= 0; u = next[u]) {
			int32_t partner = s->units[u].partner;
			size_t mate = partner < 0 ? p : first + ((p - first) ^ 1);

			if (unit_done[u] || mate >= end || (there && !is_at(s, u, p))) {
				continue;
			}
			settle_unit(s, fits, u, p, mate);
			unit_done[u] = home_done[p] = home_done[mate] = true;
			unit_done[partner < 0 ? u : partner] = true;
		}
	}
}

/* Who is at home already is worth more. */
static void count_homes(struct mesh_search *s)
{
	for (int32_t u = 0; u < s->n_units; u++) {
		s->at_home[u] = is_placed(s, u) && s->home[u] >= 0 &&
				is_at(s, u, (size_t)s->home[u]);
		if (s->at_home[u]) {
			s->units[u].penalty += s->home_bonus;
			search_put_unit(s, u, u);
		}
	}
}

void search_set_homes(struct mesh_search *s, const struct rwa_assignment *homes, const bool *fits,
		      int32_t bonus)
{
	size_t n = (size_t)s->n_units + 1, end;
	int32_t *first = x_new(s->m->demands.n + 1, sizeof(*first));
	int32_t *next = x_new(n, sizeof(*next));
	bool *unit_done = x_new(n, sizeof(*unit_done));
	bool *home_done = x_new(homes->paths.n + 1, sizeof(*home_done));

	s->homes = homes;
	s->home_bonus = bonus;
	s->home = x_alloc(n, sizeof(*s->home));
	s->at_home = x_new(n, sizeof(*s->at_home));
	memset(s->home, 0xff, n * sizeof(*s->home));
	list_units(s, first, next);
	for (size_t i = 0; i < homes->paths.n; i = end) {
		int32_t d = homes->paths.v[i].demand;

		for (end = i; end < homes->paths.n && homes->paths.v[end].demand == d;) {
			end++;
		}
		settle_demand(s, fits, &first[d], next, i, end, true, unit_done, home_done);
		settle_demand(s, fits, &first[d], next, i, end, false, unit_done, home_done);
	}
	count_homes(s);
	free(first);
	free(next);
	free(unit_done);
	free(home_done);
}

void search_forget_homes(struct mesh_search *s)
{
	free(s->home);
	free(s->at_home);
	s->homes = NULL;
	s->home = NULL;
	s->at_home = NULL;
}

/* True when a path runs where a unit's partner is placed. */
static bool meets_partner(const struct mesh_search *s, int32_t unit, const struct rwa_hop *hop,
			  int32_t hops)
{
	int32_t partner = s->units[unit].partner;
	const struct search_unit *p = &s->units[partner < 0 ? unit : partner];

	for (int32_t i = 0; partner >= 0 && i < hops; i++) {
		for (int32_t k = 0; k < p->hops; k++) {
			if (s->link[hop[i].arc] == s->link[p->hop[k].arc]) {
				return true;
			}
		}
	}
	return false;
}

bool search_go_home(struct mesh_search *s, int32_t unit)
{
	struct search_unit *u = &s->units[unit];
	const struct rwa_path *p;
	const struct rwa_hop *hop;

	if (!s->homes || s->home[unit] < 0) {
		return false;
	}
	p = &s->homes->paths.v[s->home[unit]];
	hop = s->homes->hops.v + p->first;
	if (s->at_home[unit]) {
		s->at_home[unit] = false;
		u->penalty -= s->home_bonus;
	}
	for (int32_t h = 0; h < p->hops; h++) {
		if (!is_clear(s, &hop[h])) {
			return false;
		}
	}
	if (meets_partner(s, unit, hop, p->hops)) {
		return false;
	}
	copy_path(u, hop, p->hops);
	s->at_home[unit] = true;
	u->penalty += s->home_bonus;
	search_put_unit(s, unit, unit);
	s->whole += pair_share(s, unit);
	return true;
}
