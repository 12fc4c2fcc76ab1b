/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one assignment of light to another on the same mesh: which lightpaths
 * stay where they are, and an order of single moves in which no two ever
 * share a channel on a fibre.
 */
#ifndef WEFT_RWA_RECONFIGURE_RECONFIGURE_H
#define WEFT_RWA_RECONFIGURE_RECONFIGURE_H

#include "rwa/mesh/mesh.h"

/* One thing done to one lightpath. */
enum rwa_step_kind {
	RWA_STEP_ADD,	/* light on its new route */
	RWA_STEP_DROP,	/* its old route is given back */
	RWA_STEP_MOVE,	/* make before break: both routes are active, then the
			 * old one is given back */
	RWA_STEP_REROUTE,	/* the same, onto a spare route for a while */
	RWA_STEP_CUT,	/* an unavoidable interruption begins: the old route is
			 * given back before the new one is free */
};

/* Where a lightpath is: hops[first .. first + n - 1] of the change, n 0: it is
 * dark. */
struct rwa_place {
	int64_t first;
	int32_t n;
};

struct rwa_step {
	enum rwa_step_kind kind;
	int32_t lightpath;	/* of the change */
	struct rwa_place old, new;	/* before the step and after it */
};

/* Steps that follow each other within one failure domain. */
struct rwa_phase {
	int32_t domain;		/* of the mesh, RWA_MESH_NO_DOMAIN for links
				 * that belong to none */
	int64_t first, steps;
};

/* An interruption: dark after step `first`, active again by step `first` +
 * `steps`. */
struct rwa_cut {
	int32_t lightpath;
	int64_t first, steps;
};

/* A plan, freed by rwa_change_fini(). Steps are numbered from 0 in their order;
 * phases follow each other without gaps; cuts are in the order in which they
 * end. moved + added + dropped + kept is the number of
 * lightpaths. */
struct rwa_change {
	struct rwa_matching lightpaths;
	VEC(struct rwa_step) steps;
	VEC(struct rwa_hop) hops;	/* of `from`, of `to`, then spare routes */
	VEC(struct rwa_phase) phases;	/* empty unless by_domain */
	VEC(struct rwa_cut) cuts;
	int64_t moved, added, dropped, kept;
	int64_t rerouted;		/* temporary routes; what is kept may have one */
	int64_t longest_cut;	/* most steps from a CUT to its ADD */
};

struct rwa_change_options {
	int channels;		/* that may be in use meanwhile */
	bool by_domain;		/* one failure domain at a time */
};

#define RWA_CHANGE_MAX_STATES ((int64_t)1 << 22)

void rwa_change_fini(struct rwa_change *c);

/*
 * Plans the change. Both assignments are of `m`; each may serve a demand only
 * in part, as rwa_mesh_check() allows, and none shares backups. Old lightpaths are matched
 * with new ones by rwa_mesh_match().
 *
 * All that holds for assignments holds at every moment, too: guard channels
 * between whatever is active, tuning ranges, no link in common for the two
 * of a pair, and add and drop limits, to which a lightpath counts from its ADD
 * to its DROP.
 *
 * First everything that goes is dropped, then moves whose new route is free are
 * made (a lightpath's own old slots count as taken while both are active), then
 * cycles of lightpaths that wait for each other are broken: one is rerouted
 * temporarily to a spare route between its ends, on one of the channels
 * 0..channels-1, each lightpath at most once (but see below). A spare route keeps away from the
 * lightpath's own new route, as from any other light, because both will be
 * active when it leaves. It changes channels where nodes convert, if no guard
 * channels are kept and nodes times channels are at most
 * RWA_CHANGE_MAX_STATES. Only when none of those that wait has a spare route
 * is one interrupted, the one that most others wait for. Of a pair, the other
 * lightpath stays active meanwhile unless it has to be interrupted itself.
 * O(rounds * lightpaths * hops), and for each temporary rerouting
 * O(lightpaths * channels * arcs).
 *
 * What is new is added at last, as it only takes what could be a spare route. While
 * something is interrupted, and there are at most 2000 lightpaths, 16 plans are
 * made in which some lightpaths leave earlier or later than they can; where at most 60
 * move, 240 more and 64 for each of them, in which a lightpath may also be rerouted several
 * times, and those that stay leave for a while. The one with the fewest interruptions is taken,
 * then the fewest temporary routes.
 *
 * By domain, a lightpath belongs to the failure domain of the first hop that
 * it gives up or takes, and all this happens within one domain until nothing
 * in it can be dropped or moved, before the next begins: the one in which most
 * can move. A domain comes again only for what had to wait for another.
 */
int rwa_change_plan(const struct rwa_mesh *m, const struct rwa_assignment *from,
		    const struct rwa_assignment *to, const struct rwa_change_options *opt,
		    struct rwa_change *out, struct err *err);

/*
 * Replays a change on its own table of slots: no slot has two lightpaths at
 * any moment, nor do any two come nearer than the guard channels (both routes
 * of a move at once). Every active route leads from the lightpath's source to
 * its destination without changing channel where nothing converts, on channels
 * that both ends reach, and shares no link with the active routes of its
 * partner. What is active at the end is exactly `to`. At each CUT no lightpath
 * of `from` that waits had its new route free or, if it was not rerouted before, a spare
 * route; the cuts are those of the steps. By domain, each step is of its
 * phase's domain, and a phase ends only when nothing of its domain can be
 * dropped or moved. WEFT_EVERIFY names the step.
 */
int rwa_change_check(const struct rwa_mesh *m, const struct rwa_assignment *from,
		     const struct rwa_assignment *to, const struct rwa_change_options *opt,
		     const struct rwa_change *c, struct err *err);

#endif
