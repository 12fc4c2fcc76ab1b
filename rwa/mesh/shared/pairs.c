/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Working lightpaths with backups that may share channels.
 *
 * Two backups may have the same slot when no cut of one link needs both, which is
 * so when their working lightpaths have no link in common. A pair is placed as one:
 * of the routes known for it, the two and their channels that cost the least, where a
 * slot in which someone is in the way costs what that one's penalty says, a new slot
 * something, and a slot that other backups hold already nothing. Who is in the way is ejected and
 * waits, as in search.c. In the end a few pairs at a time are placed again where
 * that takes fewer slots.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "rwa/mesh/shared/shared.h"

#define FIRST_ROUTES 6
#define STEPS 24		/* numbers of channels that the work is meant for */
#define TRIES 4			/* of small instances, with seeds of their own, */
#define TRIED 256		/* of up to so many lightpaths together */
#define PINNED_SAVE 16		/* less work to save slots where a plan waits for it */

/* ---- from mesh to search and back ---- */

/* Arcs cost more where the prices say so. */
static void set_base(struct shared_search *s, const int64_t *prices)
{
	double sum = 0;

	for (size_t e = 0; e < s->m->arcs.n; e++) {
		sum += (double)prices[e];
	}
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		s->base[e] = 1 + (sum > 0 ? (double)prices[e] * (double)s->m->arcs.n / sum : 0);
	}
}

/* Units of all demands; the first of each that `before` has stay where they are. */
static void make_units(struct shared_search *s, const struct rwa_assignment *before)
{
	size_t k = 0;
	int32_t n = 0;

	for (int32_t d = 0; d < (int32_t)s->m->demands.n; d++) {
		for (int32_t i = 0; i < s->m->demands.v[d].count; i++) {
			struct shared_unit *u = &s->units[n++];

			u->demand = d;
			u->penalty = 1;
			if (before && k < before->paths.n && before->paths.v[k].demand == d) {
				const struct rwa_path *p = &before->paths.v[k++];
				size_t bytes = (size_t)p->hops * sizeof(*u->hop);

				u->pinned = true;
				u->n[0] = p->hops;
				u->hop = x_alloc((size_t)p->hops + 1, sizeof(*u->hop));
				memcpy(u->hop, before->hops.v + p->first, bytes);
			}
			if (!u->pinned || s->m->demands.v[d].protect != RWA_UNPROTECTED) {
				s->wait[s->waiting++] = n - 1;
			}
		}
	}
}

static void search_init(struct shared_search *s, const struct rwa_assignment *before,
			const int64_t *prices, uint64_t seed)
{
	const struct rwa_mesh *m = s->m;
	int32_t links = 0;

	for (size_t d = 0; d < m->demands.n; d++) {
		s->n_units += m->demands.v[d].count;
	}
	mesh_paths_init(&s->paths, m);
	mesh_shut_init(m, &s->shut);
	rng_seed(&s->rng, seed);
	arrays_add(&s->arrays, s->base, m->arcs.n + 1);
	arrays_add(&s->arrays, s->price, m->arcs.n + 1);
	arrays_add(&s->arrays, s->at, m->arcs.n + 1);
	arrays_add(&s->arrays, s->links, m->arcs.n + 1);
	arrays_add(&s->arrays, s->units, s->n_units + 1);
	arrays_add(&s->arrays, s->wait, s->n_units + 1);
	for (size_t e = 0; e < m->arcs.n; e++) {
		s->at[e] = s->fibres;
		s->fibres += m->arcs.v[e].fibres;
		links = s->paths.link[e] >= links ? s->paths.link[e] + 1 : links;
	}
	set_base(s, prices);
	make_units(s, before);
	for (int32_t i = 0; i < s->n_units; i++) {
		for (int k = 0; k < FIRST_ROUTES; k++) {
			shared_find_routes(s, &s->units[i], k % 2);
		}
	}
}

static void search_fini(struct shared_search *s)
{
	for (int64_t i = 0; i < s->fibres * s->width; i++) {
		free(s->slots[i].backup);
	}
	for (int32_t i = 0; i < s->n_units; i++) {
		free(s->units[i].hop);
		vec_fini(&s->units[i].routes);
	}
	free(s->slots);
	vec_fini(&s->arcs);
	u64map_fini(&s->shut);
	mesh_paths_fini(&s->paths);
	arrays_fini(&s->arrays);
}

/* What is placed whole: of pairs the working lightpath, then the backup. */
static void take_answer(struct shared_search *s, struct rwa_mesh_result *res)
{
	struct rwa_assignment *a = &res->assignment;

	for (int32_t i = 0; i < s->n_units; i++) {
		const struct shared_unit *u = &s->units[i];
		int both = shared_kind(s, i) != RWA_UNPROTECTED;

		for (int k = 0; k <= both && u->n[0] && (!both || u->n[1]); k++) {
			struct rwa_path p = { u->demand, u->n[k], (int64_t)a->hops.n };

			vec_push(&a->paths, p);
			for (int32_t h = 0; h < u->n[k]; h++) {
				struct rwa_hop hop = u->hop[(k ? u->n[0] : 0) + h];

				vec_push(&a->hops, hop);
				res->channels = hop.channel >= res->channels ? hop.channel + 1
									     : res->channels;
				res->working_slots += !k;
			}
		}
	}
	res->slots = s->held;
}

/* ---- all of it ---- */

static int check_supported(const struct rwa_mesh *m, const struct rwa_mesh_options *opt,
			   struct err *err)
{
	const char *what = m->guard.between || m->guard.below || m->guard.above ? "guard channels" :
			   opt->pinned || opt->objective == RWA_ANY ? NULL :
			   opt->objective == RWA_MIN_MOVED ? "previous lightpaths" : "an objective";

	for (size_t v = 0; v < m->nodes.n && !what; v++) {
		const struct rwa_mesh_node *x = &m->nodes.v[v];

		what = x->convert ? "nodes that convert" :
		       x->add_limit != RWA_MESH_NO_LIMIT || x->drop_limit != RWA_MESH_NO_LIMIT ?
		       "limits to add and drop" : NULL;
	}
	return what ? err_set(err, WEFT_EUNSUPPORTED, "shared backups with %s: not supported", what)
		    : 0;
}

/* At more and more channels until all are placed, or in those given; then the fewest slots. */
static int search(struct shared_search *s, const struct rwa_mesh_options *opt,
		  const struct mesh_stop *stop, struct rwa_mesh_result *res, struct err *err)
{
	int64_t work = opt->work ? opt->work : 50 * s->m->lightpaths + 50000;
	int32_t stuck, width = opt->channels ? opt->channels : res->bound + res->bound / 2 + 2;
	int rc = shared_set_width(s, width, err);

	for (s->channels = opt->channels ? opt->channels : res->bound; rc == 0; s->channels++) {
		if (s->channels > s->width && (rc = shared_set_width(s, 2 * s->width, err))) {
			break;
		}
		shared_run(s, opt->channels ? work : work / STEPS, stop, &stuck);
		if (s->waiting == 0 || opt->channels || stuck == s->waiting) {
			break;
		}
	}
	if (rc == 0) {
		work = opt->pinned ? work / PINNED_SAVE : work;
		shared_save_slots(s, s->n_units ? work : 0, stop);
		take_answer(s, res);
	}
	return rc;
}

/* One search from the start; *res keeps the better of what it has and what is found. */
static int search_once(const struct rwa_mesh *m, const struct rwa_mesh_options *opt, int try,
		       const struct mesh_stop *stop, struct rwa_mesh_result *res, struct err *err)
{
	struct shared_search s = { .m = m, .pinned = opt->pinned };
	int64_t *none = x_new(m->arcs.n + 1, sizeof(*none));
	struct rwa_mesh_result one = { .bound = res->bound };
	int rc;

	search_init(&s, opt->pinned ? opt->before : NULL,
		    opt->pinned ? none : res->certificate.prices, opt->seed + 100 * (uint64_t)try);
	free(none);
	rc = search(&s, opt, stop, &one, err);
	search_fini(&s);
	if (rc == 0 && (try == 0 || one.assignment.paths.n > res->assignment.paths.n ||
			(one.assignment.paths.n == res->assignment.paths.n &&
			 (one.channels < res->channels ||
			  (one.channels == res->channels && one.slots < res->slots))))) {
		rwa_assignment_fini(&res->assignment);
		res->assignment = one.assignment;
		res->channels = one.channels;
		res->working_slots = one.working_slots;
		res->slots = one.slots;
		return 0;
	}
	rwa_assignment_fini(&one.assignment);
	return rc;
}

int mesh_solve_shared(const struct rwa_mesh *m, const struct rwa_mesh_options *opt,
		      struct rwa_mesh_result *res, struct err *err)
{
	struct mesh_stop stop = { .deadline = opt->deadline, .cancel = opt->cancel };
	int32_t links = 0, *link_of = x_new(m->arcs.n + 1, sizeof(*link_of));
	int64_t most = opt->pinned || opt->work ? 1 : TRIED / (m->lightpaths + 1);
	int tries = most < TRIES ? (int)most : TRIES, rc = check_supported(m, opt, err);

	mesh_links(m, link_of);
	for (size_t e = 0; e < m->arcs.n; e++) {
		links = link_of[e] >= links ? link_of[e] + 1 : links;
	}
	res->method = "pairs that share backups";
	if (rc == 0 && !opt->pinned) {
		rc = shared_bound(m, link_of, links, &stop, res, err);
	}
	for (int k = 0; rc == 0 && (k == 0 || (k < tries && !stop_now(&stop))); k++) {
		rc = search_once(m, opt, k, &stop, res, err);
	}
	res->lightpaths_bound = m->lightpaths;
	res->lightpaths = (int64_t)res->assignment.paths.n;
	if (rc == 0) {
		rc = rwa_mesh_check(m, &res->assignment, res->channels, !opt->channels, err);
	}
	free(link_of);
	return rc;
}
