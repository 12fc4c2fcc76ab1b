/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routing and wavelength assignment: which fibre and channel carries each
 * lightpath so that no two share a channel on a fibre of a link.
 */
#ifndef WEFT_RWA_RING_RING_H
#define WEFT_RWA_RING_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

enum rwa_dir { RWA_CW = 0, RWA_CCW = 1 };	/* as enum optics_dir */

/* A WDM ring of n nodes: link i joins ring positions i and i+1 mod n, with
 * `fibres` fibres each way and `channels` channels a fibre. */
struct rwa_ring {
	int n;
	int fibres;
	int channels;
};

/* Optical budget of a path through micro-ring resonators, in milli-dB. */
struct rwa_loss {
	int32_t launch_mdbm;	  /* power put on one channel */
	int32_t sensitivity_mdbm; /* least power a receiver needs */
	int32_t margin_mdb;
	int32_t add_mdb;	  /* coupling a channel onto the fibre */
	int32_t drop_mdb;	  /* coupling it off at the receiver */
	int32_t pass_mdb;	  /* one resonator passed, off resonance */
	int32_t rings_per_node;	  /* resonators passed at each node between;
				   * 0: one for each channel */
	int32_t span_mdb;	  /* fibre and connectors of one link */
};

/* Loss of a lightpath over `hops` links (hops-1 nodes passed). */
int64_t rwa_path_loss_mdb(const struct rwa_ring *ring, const struct rwa_loss *loss, int hops);

/* Largest number of hops that closes the budget (0: not even one),
 * at most n - 1. */
int rwa_reach_hops(const struct rwa_ring *ring, const struct rwa_loss *loss);

/* An arc of a ring to be given a channel: from src in direction dir to dst,
 * covering the links between. */
struct rwa_arc {
	int32_t src, dst;
	uint8_t dir;
	/* out: */
	uint8_t fibre;
	uint16_t channel;
	int32_t slot;	/* 0-based group of fibres*channels colours: arcs that
			 * do not fit at once share a ring in later slots */
};

struct rwa_result {
	int colours;	/* channel-fibre pairs needed per direction (largest
			 * of the two directions) */
	int bound;	/* no assignment needs fewer: largest link load per
			 * direction, or more when lp_solve proves it */
	int32_t pair[2];	/* rwa_ring_route(): the clockwise and the
				 * counter-clockwise link of the bound */
	int slots;	/* ceil(colours / (fibres * channels)) */
	const char *method;	/* "lp_solve", "cut", "cycle cover", ... */
};

/*
 * Colours n_arcs arcs, both directions independently, so that arcs with the
 * same (slot, fibre, channel) share no link. Tries constructive colourings
 * that meet the load bound; when they miss it and the instance is small, an
 * lp_solve program proves or finds the minimum; otherwise the best found is
 * returned with its gap (colours - bound). Deterministic. O(n_arcs log) for
 * the constructions. WEFT_EINVAL for malformed arcs.
 */
int rwa_ring_colour(const struct rwa_ring *ring, struct rwa_arc *arcs,
		    int64_t n_arcs, struct rwa_result *res, struct err *err);

/*
 * All-to-all among the m ring positions `members` (ascending): one arc for
 * each ordered pair by a shortest path, opposite pairs split evenly, with
 * channels, sources ascending, then destinations. Wavelengths needed are
 * exactly ceil(floor(m^2/4)/2) per direction on a whole ring (Bermond et al.
 * 1996) - proven by an lp_solve program for small m, constructed beyond.
 * arcs: room for m (m - 1), filled. line: members span a segment and may not go round
 * (floor(m^2/4) wavelengths).
 */
int rwa_all_to_all(const struct rwa_ring *ring, const int32_t *members, int m, bool line,
		   struct rwa_arc *arcs, struct rwa_result *res, struct err *err);

/*
 * All-to-all inside each of `groups` sets of m positions that share the
 * ring, for instance interleaved classes: members[g * m + i], ascending in i.
 * Fills groups * m (m - 1) arcs, group by group, sources ascending, then
 * destinations. Uses ceil(groups * floor(m^2/4) / 2) colours per direction:
 * groups whose opposite pairs divide unevenly are mirrored alternately.
 */
int rwa_all_to_all_groups(const struct rwa_ring *ring, const int32_t *members, int m, int groups,
			  struct rwa_arc *arcs, struct rwa_result *res, struct err *err);

/*
 * Chooses for every arc the way round (dir is out here too), balancing the
 * links' loads, and colours them. The bound holds for any choice: lightpaths
 * that use one of two links whichever way they go. Deterministic.
 * O(n_arcs * n).
 */
int rwa_ring_route(const struct rwa_ring *ring, struct rwa_arc *arcs,
		   int64_t n_arcs, struct rwa_result *res, struct err *err);

/* Checks an assignment: every (slot, dir, fibre, channel, link) at most
 * once, channels in range. WEFT_EVERIFY names the first clash; WEFT_ELIMIT:
 * nodes times fibres times channels above 2^33. O(sum of hops / 64 + arcs). */
int rwa_ring_check(const struct rwa_ring *ring, const struct rwa_arc *arcs,
		   int64_t n_arcs, struct err *err);

#endif
