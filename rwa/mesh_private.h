/* Private to the room: arcs by node, shortest ways, bound and search. */
#ifndef WEFT_RWA_MESH_PRIVATE_H
#define WEFT_RWA_MESH_PRIVATE_H

#include "lib/base/map.h"
#include "lib/base/rng.h"
#include "rwa/mesh.h"

/* Arcs of a mesh by the node they leave (or, reversed, enter). */
struct adjacency {
	int32_t *first;		/* nodes + 1 */
	int32_t *arc;
};

int adjacency_init(struct adjacency *a, const struct rwa_mesh *m, bool reversed);
void adjacency_fini(struct adjacency *a);

/* Fibres of an arc that are not blocked as a whole: fibres[arc]. */
int mesh_open_fibres(const struct rwa_mesh *m, int32_t *fibres,
		     struct err *err);

/* A key for each slot. Fibre and channel may be RWA_MESH_ALL. */
static inline uint64_t mesh_slot_key(int32_t arc, int32_t fibre,
				     int32_t channel)
{
	return (uint64_t)arc << 32 | (uint64_t)(fibre + 1) << 21 |
	       (uint64_t)(channel + 1);
}

/* The blocks as a set, and whether it holds a slot. */
int mesh_shut_init(const struct rwa_mesh *m, struct u64map *shut);
bool mesh_is_shut(const struct u64map *shut, const struct rwa_hop *h);

/* A moment after which work stops: at_ns 0 never, cancel may be NULL. */
struct stop {
	int64_t at_ns;
	const volatile bool *cancel;
};

bool stop_now(const struct stop *s);

/* mesh_flow.c: prices and the flow's congestion. */
int mesh_bound(const struct rwa_mesh *m, const struct stop *stop,
	       struct rwa_certificate *out, struct err *err);
/* Recomputes the sums and the bound of the prices, in integers. */
int certificate_sum(const struct rwa_mesh *m, struct rwa_certificate *c,
		    struct err *err);

/* mesh_mip.c: *proven when lp_solve finds that all demands do not fit in so
 * many channels. Not tried on instances that are large or convert. */
int mesh_prove_too_few(const struct rwa_mesh *m, int channels,
		       double time_limit_s, bool *proven, struct err *err);

/* mesh_search.c: guided ejection search at a fixed number of channels. */
struct search;

/* prices: of the certificate. WEFT_EINFEASIBLE, WEFT_ELIMIT. */
int search_new(const struct rwa_mesh *m, const int64_t *prices, uint64_t seed,
	       struct search **out, struct err *err);
void search_free(struct search *s);
/* Lightpaths to serve: all that the add and drop limits let through. */
int64_t search_units(const struct search *s);
/* Starts at this many channels. What was placed below stays; with fewer
 * channels than before, the emptiest are given up. */
int search_set_channels(struct search *s, int channels, struct err *err);
/* Starts at this many channels with a partial assignment in place, each path
 * with its penalty; one that clashes with those before it is left out, as is
 * one of a demand that has enough of them. */
int search_begin(struct search *s, int channels,
		 const struct rwa_assignment *begin, const int32_t *penalties,
		 struct err *err);
/* Looks until everything is served, `effort` lightpaths were placed or it is
 * told to stop. *served: the most that were ever served at once since
 * the number of channels was set. */
int search_run(struct search *s, int64_t effort, const struct stop *stop,
	       int64_t *served, struct err *err);
/* The assignment that served the most. */
int search_best(const struct search *s, struct rwa_assignment *out,
		struct err *err);

/* mesh_target.c: moves as few lightpaths as it can, at the channels and with
 * the lightpaths served that `res` has. Paths of `before` belong to m's
 * demands, ascending. Sets moved and moved_bound. */
int mesh_fewest_moved(const struct rwa_mesh *m, struct search *search,
		      const struct rwa_assignment *before,
		      const struct stop *stop, struct rwa_mesh_result *res,
		      struct err *err);
/* Shortens the longest loss, at the same channels. Sets loss_mdb and
 * loss_bound_mdb. */
int mesh_least_loss(const struct rwa_mesh *m,
		    const struct rwa_mesh_options *opt,
		    const struct stop *stop, struct rwa_mesh_result *res,
		    struct err *err);

#endif
